// Tests of a client of petstore. Copy this file into the folder of your own
// package, change the name of the package, put the binary of petstore beside it,
// and run "go test".
package client

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// PETSTORE is the path of the binary. A test runs in the folder of its package.
// Windows finds petstore.exe by itself.
const PETSTORE = "./petstore"

const rex = `{"name":"Rex","categoryId":7}`

// createPet is the client under test: put yours in its place. It tries up to
// four times. A try that times out is the last one, as its pet may have been added.
func createPet(base string, timeout time.Duration) (err error) {
	client := http.Client{Timeout: timeout}
	for range 4 {
		var answer []byte
		if answer, err = send(&client, "POST", base+"/pets", rex); err == nil {
			return json.Unmarshal(answer, new(struct{ ID int64 }))
		}
		if os.IsTimeout(err) {
			break
		}
	}
	return err
}

// The first request gets an error, the second a reset connection, and the third
// no answer, although its pet is added. So there are two pets.
func TestRetry(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.do("PUT", "/__admin/fault?code=503,rst,lost&operation=createPet", "")
	if err := createPet(p.base, 5*time.Second); err != nil {
		t.Error(err)
	}
	p.check("503 0 0 201", 2)
}

// The client gives up before its pet is added, or on half of the answer. A
// timeout that covers only the headers lets it wait for 30 seconds in the latter.
func TestTimeout(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fault, statuses string
		pets            int
	}{
		{"delay=30", "0", 1},
		{"code=stall", "201", 2},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			t.Parallel()
			p := start(t)
			p.do("POST", "/__admin/reset", "["+rex+"]") // the pets of the test
			p.do("PUT", "/__admin/fault?"+tt.fault, "")
			if err := createPet(p.base, time.Second); !os.IsTimeout(err) {
				t.Errorf("got the error %v, want a timeout", err)
			}
			// petstore may record a request a moment after its client has left.
			p.do("GET", "/__admin/requests?total=1", "")
			p.check(tt.statuses, tt.pets)
		})
	}
}

// petstore is a petstore process that runs until its test ends.
type petstore struct {
	t    *testing.T
	base string // the base URL of the API, such as http://127.0.0.1:54321/v1
}

func start(t *testing.T) petstore {
	cmd := exec.Command(PETSTORE, "-addr", "127.0.0.1:0", "-stdin")
	cmd.Env = append(os.Environ(), "PETSTORE_API_KEY=test")
	cmd.Stderr = os.Stderr         // petstore reports why it cannot start
	stdin, err1 := cmd.StdinPipe() // closing it stops petstore, even if the test is killed
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatalf("%v: build petstore first, or change PETSTORE", err)
	}
	t.Cleanup(func() { stdin.Close(); cmd.Wait() })
	base, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal("petstore did not start; standard error says why")
	}
	return petstore{t, strings.TrimSpace(base)}
}

// do sends a request of the test itself, which is not recorded and to which no
// fault is applied. It returns the body of the answer.
func (p petstore) do(method, path, body string) []byte {
	p.t.Helper()
	client := http.Client{Timeout: 10 * time.Second}
	answer, err := send(&client, method, strings.TrimSuffix(p.base, "/v1")+path, body, "Petstore-Observer")
	if err != nil {
		p.t.Fatal(err)
	}
	return answer
}

// check compares the statuses of the answers, and the number of pets. A request
// is recorded before its answer is sent, so check need not wait.
func (p petstore) check(statuses string, pets int) {
	p.t.Helper()
	var list []any
	json.Unmarshal(p.do("GET", "/v1/pets?limit=100", ""), &list)
	if len(list) != pets {
		p.t.Errorf("there are %d pets, want %d", len(list), pets)
	}
	var journal struct{ Requests []struct{ Status int } }
	json.Unmarshal(p.do("GET", "/__admin/requests", ""), &journal)
	got := strings.NewReplacer("[", "", "]", "", "{", "", "}", "").Replace(fmt.Sprint(journal.Requests))
	if got != statuses {
		p.t.Errorf("the statuses are %s, want %s", got, statuses)
	}
}

// send sends a request with these headers, and returns the body of the answer.
func send(client *http.Client, method, url, body string, headers ...string) ([]byte, error) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer test")
	req.Header.Set("Content-Type", "application/json")
	for _, name := range headers {
		req.Header.Set(name, "test")
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 400 {
		err = fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, answer)
	}
	return answer, err
}
