// Tests of a client of petstore. Run "go build" in .. once, and then
// "go test client_test.go" here. README.md, beside this file, says how to use it
// in another project.
package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// client is the client under test: put yours in its place. It sends a request
// up to four times, unless the context ends first.
type client struct {
	base string // the base URL of the API
}

type pet struct {
	Name       string `json:"name"`
	CategoryID int64  `json:"categoryId"`
}

func (c client) createPet(ctx context.Context, p pet) error {
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	_, _, err = c.retry(ctx, "POST", c.base+"/pets", string(body))
	return err
}

func (c client) listPets(ctx context.Context) ([]pet, error) {
	var pets []pet
	for url := c.base + "/pets?limit=2"; url != ""; {
		answer, next, err := c.retry(ctx, "GET", url, "")
		if err != nil {
			return nil, err
		}
		var page []pet
		if err := json.Unmarshal(answer, &page); err != nil {
			return nil, err
		}
		pets = append(pets, page...)
		url = next
	}
	return pets, nil
}

func (c client) retry(ctx context.Context, method, url, body string) (answer []byte, next string, err error) {
	for range 4 {
		answer, next, err = c.send(ctx, method, url, body)
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	return answer, next, err
}

// send returns the body of the answer, and the URL of the next page if there is
// one.
func (c client) send(ctx context.Context, method, url, body string) (answer []byte, next string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("Authorization", "Bearer test")
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	if err != nil {
		return nil, "", err
	}
	if resp.StatusCode >= 400 {
		return nil, "", fmt.Errorf("%s: %s", resp.Status, answer)
	}
	link := regexp.MustCompile(`<(.*)>; rel="next"`).FindStringSubmatch(resp.Header.Get("Link"))
	if link == nil {
		return answer, "", nil
	}
	page, err := resp.Request.URL.Parse(link[1])
	if err != nil {
		return nil, "", err
	}
	return answer, page.String(), nil
}

// petstore is a petstore process that runs until its test ends.
type petstore struct {
	t    *testing.T
	base string // the base URL of the API, such as http://127.0.0.1:54321/v1
}

func start(t *testing.T) petstore {
	t.Parallel()
	cmd := exec.Command("../petstore", "-addr", "127.0.0.1:0", "-stdin")
	cmd.Env = append(os.Environ(), "PETSTORE_API_KEY=test")
	cmd.Stderr = os.Stderr         // petstore reports why it cannot start
	stdin, err1 := cmd.StdinPipe() // closing it stops petstore, even if the test is killed
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err, `; build petstore first, with "go build"`)
	}
	t.Cleanup(func() { stdin.Close(); cmd.Wait() })
	base, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal("petstore did not start; standard error says why")
	}
	base = strings.TrimSpace(base) // such as http://127.0.0.1:54321/v1
	return petstore{t, base}
}

// do sends a request of the test itself, which is not recorded and to which no
// fault is applied. It decodes the answer into v, unless v is nil.
func (p petstore) do(method, path, body string, v any) {
	p.t.Helper()
	req, err := http.NewRequest(method, strings.TrimSuffix(p.base, "/v1")+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer test")
	req.Header.Set("Petstore-Observer", "test")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 400 {
		p.t.Fatalf("%s %s: %s: %s %v", method, path, resp.Status, answer, err)
	}
	if v != nil {
		if err := json.Unmarshal(answer, v); err != nil {
			p.t.Fatalf("%s %s: %v", method, path, err)
		}
	}
}

// request is a request of the client, and the status of its answer.
type request struct {
	Operation, Body string
	Status          int
}

// journal has the recorded requests, and those that still wait for a delay.
type journal struct{ Requests, Waiting []request }

func (p petstore) journal() (j journal) {
	p.t.Helper()
	p.do("GET", "/__admin/requests", "", &j)
	return j
}

// check compares the statuses of the answers, and the number of pets, which is
// at most 100. A request is recorded before its answer is sent, so check need not
// wait. A request that still waits is one that the client has given up.
func (p petstore) check(wantStatuses string, wantPets int) {
	p.t.Helper()
	var pets []pet
	p.do("GET", "/v1/pets?limit=100", "", &pets)
	if len(pets) != wantPets {
		p.t.Errorf("there are %d pets, want %d", len(pets), wantPets)
	}
	j := p.journal()
	var statuses []string
	for _, request := range j.Requests {
		statuses = append(statuses, fmt.Sprint(request.Status))
	}
	if got := strings.Join(statuses, " "); got != wantStatuses {
		p.t.Errorf("the statuses are %q, want %q", got, wantStatuses)
	}
	if len(j.Waiting) > 0 {
		p.t.Errorf("these requests still wait: %+v", j.Waiting)
	}
}

var rex = pet{Name: "Rex", CategoryID: 7}

func TestCreate(t *testing.T) {
	p := start(t)
	if err := (client{p.base}).createPet(context.Background(), rex); err != nil {
		t.Error(err)
	}
	p.check("201", 1)
	want := []request{{"createPet", `{"name":"Rex","categoryId":7}`, 201}}
	if got := p.journal().Requests; !slices.Equal(got, want) {
		t.Errorf("the requests are %+v, want %+v", got, want)
	}
}

// The first request gets an error, the second a reset connection, and the third
// no answer, although its pet is added. So there are two pets in the end.
func TestRetry(t *testing.T) {
	p := start(t)
	p.do("PUT", "/__admin/fault?code=503,rst,lost&operation=createPet", "", nil)
	if err := (client{p.base}).createPet(context.Background(), rex); err != nil {
		t.Error(err)
	}
	p.check("503 0 0 201", 2)
}

func TestThirdPageFails(t *testing.T) {
	p := start(t)
	p.do("POST", "/__admin/reset", "["+strings.Repeat(`{"name":"Rex","categoryId":7},`, 6)+
		`{"name":"Tom","categoryId":9}]`, nil)
	p.do("PUT", "/__admin/fault?code=500&skip=2&times=1&operation=listPets", "", nil)
	pets, err := client{p.base}.listPets(context.Background())
	if err != nil || len(pets) != 7 {
		t.Errorf("listPets returns %d pets and the error %v, want 7 and none", len(pets), err)
	}
	p.check("200 200 500 200 200", 7)
}

// The answer comes in pieces, one a second, until the test ends the fault. Then
// the rest comes at once.
func TestSlowAnswer(t *testing.T) {
	p := start(t)
	p.do("POST", "/__admin/reset", `[{"name":"Rex","categoryId":7}]`, nil)
	p.do("PUT", "/__admin/fault?code=drip&operation=listPets", "", nil)
	done := make(chan error, 1)
	go func() {
		_, err := client{p.base}.listPets(context.Background())
		done <- err
	}()
	p.do("GET", "/__admin/requests?total=1", "", nil) // returns when the first piece is about to be sent
	select {
	case err := <-done:
		t.Fatalf("the client did not wait for the whole answer; its error is %v", err)
	default:
	}
	p.do("DELETE", "/__admin/fault", "", nil)
	if err := <-done; err != nil {
		t.Error(err)
	}
	p.check("200", 1)
}

func TestGiveUpBeforeOperation(t *testing.T) {
	testGiveUp(t, "delay=30", "0", 0)
}

// A client whose timeout covers only the headers waits for 30 seconds here.
func TestGiveUpOnHalfAnswer(t *testing.T) {
	testGiveUp(t, "code=stall", "201", 1)
}

func testGiveUp(t *testing.T, fault, wantStatuses string, wantPets int) {
	p := start(t)
	p.do("PUT", "/__admin/fault?operation=createPet&"+fault, "", nil)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := (client{p.base}).createPet(ctx, rex); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("createPet returns the error %v, want %v", err, context.DeadlineExceeded)
	}
	// petstore may record a request a moment after its client has left.
	p.do("GET", "/__admin/requests?total=1", "", nil)
	p.check(wantStatuses, wantPets)
}
