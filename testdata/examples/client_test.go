// Tests of a client of petstore. Run "go build" in ../.. once, then "go test client_test.go" here.
// In a module that has petstore as a tool, start the path that "go tool -n petstore" prints.
package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// createPet, listPets and retry are the client under test: put yours in their place. This one
// sends a request up to three times while ctx lasts.
func createPet(ctx context.Context, url string) error {
	_, _, err := retry(ctx, "POST", url+"/v1/pets", `{"name":"Rex","categoryId":7}`)
	return err
}

func listPets(ctx context.Context, url string) (pets []any, err error) {
	next := "/v1/pets?limit=2"
	for next != "" && err == nil {
		var link, body string
		var page []any
		link, body, err = retry(ctx, "GET", url+next, "")
		json.Unmarshal([]byte(body), &page)
		pets = append(pets, page...)
		next, _, _ = strings.Cut(strings.TrimPrefix(link, "<"), ">")
	}
	return pets, err
}

func retry(ctx context.Context, method, url, body string) (link, answer string, err error) {
	for range 3 {
		if link, answer, err = send(ctx, method, url, body); err == nil || ctx.Err() != nil {
			break
		}
	}
	return link, answer, err
}

func send(ctx context.Context, method, url, body string) (link, answer string, err error) {
	req, _ := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer test")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if resp.StatusCode >= 400 {
		err = errors.New(resp.Status)
	}
	return resp.Header.Get("Link"), string(b), err
}

// start runs a petstore until t ends, and returns http://127.0.0.1:PORT.
func start(t *testing.T) string {
	var said strings.Builder
	cmd := exec.Command("../../petstore", "-addr", "127.0.0.1:0", "-stdin")
	cmd.Env = append(os.Environ(), "PETSTORE_API_KEY=test")
	cmd.Stderr = &said
	stdin, err1 := cmd.StdinPipe() // closed when this process ends, however it ends
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err, `: run "go build" in ../.. first`)
	}
	t.Cleanup(func() { stdin.Close(); cmd.Wait() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		cmd.Wait() // until said has all of it
		t.Fatal("petstore does not start: ", said.String())
	}
	t.Parallel()
	return strings.TrimSuffix(line, "/v1\n")
}

// admin sends a request of the test itself, and returns the body of the answer.
func admin(t *testing.T, method, url, body string) string {
	t.Helper()
	_, answer, err := send(context.Background(), method, url, body)
	if err != nil {
		t.Fatal(method, url, err)
	}
	return answer
}

// saw checks the statuses in the journal and the number of pets. It waits for the statuses up to
// ten seconds, as petstore does not notice at once that a client has left.
func saw(t *testing.T, url, want string, pets int) {
	t.Helper()
	got := ""
	for end := time.Now().Add(10 * time.Second); got != want && time.Now().Before(end); {
		journal := admin(t, "GET", url+"/__admin/requests", "")
		statuses := regexp.MustCompile(`"status":\d+`).FindAllString(journal, -1)
		got = strings.ReplaceAll(strings.Join(statuses, " "), `"status":`, "")
	}
	if got != want {
		t.Errorf("the journal has %q, want %q", got, want)
	}
	if n := strings.Count(admin(t, "GET", url+"/v1/pets", ""), `"id":`); n != pets {
		t.Errorf("there are %d pets, want %d", n, pets)
	}
}

func TestAddOnce(t *testing.T) {
	url := start(t)
	if err := createPet(context.Background(), url); err != nil {
		t.Error(err)
	}
	saw(t, url, "201", 1)
}

func TestTwoErrors(t *testing.T) {
	url := start(t)
	admin(t, "PUT", url+"/__admin/fault?code=503&retry-after=0&times=2&operation=createPet", "")
	if err := createPet(context.Background(), url); err != nil {
		t.Error(err)
	}
	saw(t, url, "503 503 201", 1)
}

func TestThirdPageFails(t *testing.T) {
	url := start(t)
	seed := strings.Repeat(`{"name":"Rex","categoryId":7},`, 6) + `{"name":"Tom","categoryId":9}`
	admin(t, "POST", url+"/__admin/reset", "["+seed+"]")
	admin(t, "PUT", url+"/__admin/fault?code=500&skip=2&times=1&operation=listPets", "")
	if pets, err := listPets(context.Background(), url); err != nil || len(pets) != 7 {
		t.Error(err, pets)
	}
	saw(t, url, "200 200 500 200 200", 7)
}

// net/http reports an error and does not repeat a POST, unless it has an Idempotency-Key. So it is
// retry that sends this one again, and there are two pets.
func TestLostAnswer(t *testing.T) {
	url := start(t)
	admin(t, "PUT", url+"/__admin/fault?code=lost&times=1&operation=createPet", "")
	if err := createPet(context.Background(), url); err != nil {
		t.Error(err)
	}
	saw(t, url, "0 201", 2)
}

func TestGiveUpBeforeItIsDone(t *testing.T) { giveUp(t, "delay=10", "0", 0) }

// A client whose timeout ends when the headers have come waits for the body for 30 seconds.
func TestGiveUpOnHalfAnAnswer(t *testing.T) { giveUp(t, "code=stall&times=1", "201", 1) }

func giveUp(t *testing.T, fault, want string, pets int) {
	url := start(t)
	admin(t, "PUT", url+"/__admin/fault?"+fault+"&operation=createPet", "")
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := createPet(ctx, url); !errors.Is(err, context.DeadlineExceeded) {
		t.Error("it has not given up: ", err)
	}
	saw(t, url, want, pets)
}
