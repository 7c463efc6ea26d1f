// Tests of a client of petstore, to start from (Go 1.22 or newer). Copy this file into
// the folder of your package, change its package line to that of your tests, such as
// yours_test, put the binary of petstore beside it, and run "go test".
package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// createPet is the client under test: put yours in its place. It tries up to this
// many times, and gives up each try after the timeout. It returns an error unless it
// got the pet.
func createPet(base string, tries int, timeout time.Duration) error {
	client := http.Client{Timeout: timeout} // for the whole answer
	for {
		req, err := http.NewRequest("POST", base+"/pets", strings.NewReader(`{"name":"Rex","categoryId":7}`))
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Content-Type", "application/json")
		retryAfter := 0
		resp, err := client.Do(req)
		if err == nil {
			retryAfter, _ = strconv.Atoi(resp.Header.Get("Retry-After"))
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
			if err == nil && resp.StatusCode >= 400 {
				err = errors.New(resp.Status)
			}
		}
		if tries--; err == nil || tries == 0 {
			return err
		}
		time.Sleep(time.Duration(retryAfter) * time.Second)
	}
}

// The first request gets an error, the second a reset connection, and the third no
// answer, although its pet is added. So there are two pets, and a try is left.
func TestRetry(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.fault("code=503,rst,lost&operation=createPet")
	if err := createPet(p.base, 5, 5*time.Second); err != nil {
		t.Errorf("createPet: %v", err)
	}
	p.wantStatuses(503, 0, 0, 201)
	if got := len(p.pets()); got != 2 {
		t.Errorf("got %d pets, want 2", got)
	}
}

// The status 201 and half of the body arrive, and no more. After 30 seconds, petstore
// closes the connection, and the client gets an error, too. So only the time shows that
// it gave up.
func TestTimeout(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.fault("code=stall&times=1")
	begin := time.Now()
	err := createPet(p.base, 1, 2*time.Second)
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("createPet took %.1f s, want 2 s (error: %v)", took.Seconds(), err)
	}
	p.wantStatuses(201)
	if err == nil {
		t.Error("createPet succeeded, want an error")
	}
}

// The first answer is late. The client gives up, and tries again, although its first
// pet was added.
func TestRetryAfterTimeout(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.reset(`[{"name":"Ace","categoryId":9}]`)
	p.fault("answer-delay=10&times=1")
	if err := createPet(p.base, 2, 2*time.Second); err != nil {
		t.Errorf("createPet: %v", err)
	}
	p.wantStatuses(0, 201)
	if got := len(p.pets()); got != 3 {
		t.Errorf("got %d pets, want Ace and two more", got)
	}
}

// Each answer asks the client to wait for two seconds, longer than any wait of its own.
// It waits, tries again, and gives up after two tries.
func TestRetryAfterHeader(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.fault("code=503&times=2&retry-after=2")
	err := createPet(p.base, 2, 5*time.Second)
	p.wantStatuses(503, 503)
	if err == nil {
		t.Error("createPet succeeded, want an error")
	}
	requests := p.requests()
	if wait := requests[1].Time.Sub(requests[0].Time); wait < 1900*time.Millisecond {
		t.Errorf("the second request came after %v, want 2s", wait)
	}
}

// key is the key of this run, so that no other petstore can answer.
var key = fmt.Sprint("test-", os.Getpid())

// petstore is a petstore process that runs until its test ends.
type petstore struct {
	t    *testing.T
	base string // the base URL of the API, such as http://127.0.0.1:54321/v1
}

func start(t *testing.T) petstore {
	t.Helper()
	cmd := exec.Command("./petstore", "-addr", "127.0.0.1:0", "-stdin", "-log")
	cmd.Env = append(os.Environ(), "PETSTORE_API_KEY="+key)
	var log strings.Builder
	cmd.Stderr = &log
	stdin, err1 := cmd.StdinPipe() // closing it stops petstore, even if the test is killed
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatalf("%v: build petstore first, or change its path in start", err)
	}
	p := petstore{t: t}
	fmt.Fscanln(stdout, &p.base)
	t.Cleanup(func() {
		stdin.Close()
		cmd.Wait()
		if t.Failed() {
			t.Logf("the log of petstore:\n%s", &log)
		}
	})
	if p.base == "" {
		t.Fatal("petstore did not start; its log may say why")
	}
	return p
}

// reset replaces the pets, ends the fault, and clears the journal.
func (p petstore) reset(pets string) {
	p.t.Helper()
	p.send("POST", "/__admin/reset", pets)
}

// fault replaces the fault.
func (p petstore) fault(query string) {
	p.t.Helper()
	p.send("PUT", "/__admin/fault?"+query, "")
}

// pets returns up to 100 pets.
func (p petstore) pets() (pets []struct{ Name string }) {
	p.t.Helper()
	json.Unmarshal(p.send("GET", "/v1/pets?limit=100", ""), &pets)
	return pets
}

// request is a request in the journal. Petstore's reference has its other members.
type request struct {
	Time   time.Time
	Body   string
	Status int // 0 for no answer
}

// requests returns the requests of clients in the order in which they arrived. It waits
// until none waits: one that was given up is recorded a moment later.
func (p petstore) requests() []request {
	p.t.Helper()
	var journal struct{ Requests []request }
	json.Unmarshal(p.send("GET", "/__admin/requests?waiting=0", ""), &journal)
	return journal.Requests
}

// wantStatuses compares the statuses of the requests. If they differ, the test ends.
func (p petstore) wantStatuses(want ...int) {
	p.t.Helper()
	var got []int
	for _, r := range p.requests() {
		got = append(got, r.Status)
	}
	if !slices.Equal(got, want) {
		p.t.Fatalf("got requests with the statuses %v, want %v", got, want)
	}
}

// send sends a request of the test itself, which is not recorded and gets no fault.
func (p petstore) send(method, path, body string) []byte {
	p.t.Helper()
	req, err := http.NewRequest(method, strings.TrimSuffix(p.base, "/v1")+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Petstore-Observer", "test")
	client := http.Client{Timeout: 40 * time.Second} // as petstore waits for up to 30
	resp, err := client.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 400 {
		p.t.Fatalf("%s %s: %s %s", method, path, resp.Status, answer)
	}
	return answer
}
