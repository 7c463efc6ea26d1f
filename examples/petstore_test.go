// Tests of an HTTP client of petstore, for Go 1.22 or newer.
//
// Copy this file and the binary petstore into the folder of your package, and change the package
// line to that of your tests, such as yours_test. The tests pass with the sample client below.
// Then put your own client in its place.
package petstore_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// repeatsLostPost says whether your client repeats a POST of which it did not get the whole
// answer. Such a client may add a pet twice. The tests expect what you choose here.
const repeatsLostPost = false

// newClient makes the client under test, which sends a request up to tries times, and gives up
// each try after the timeout. Replace all from here to the line where the client ends. The tests
// use newClient, the type client with its methods createPet and listPets, and the ID of a pet.
func newClient(base, key string, tries int, timeout time.Duration) *client {
	// The timeout of an http.Client is for the whole answer.
	return &client{base, key, tries, http.Client{Timeout: timeout}}
}

type client struct {
	base, key string
	tries     int
	http      http.Client
}

type pet struct {
	ID   int64
	Name string
}

// createPet adds a pet, and returns it with its ID.
func (c *client) createPet(name string) (pet, error) {
	var added pet
	body, _ := json.Marshal(map[string]any{"name": name, "categoryId": 7})
	_, err := c.send("POST", c.base+"/pets", body, &added)
	return added, err
}

var nextLink = regexp.MustCompile(`^<(.+)>; rel="next"$`)

// listPets returns the pets of all pages.
func (c *client) listPets() ([]pet, error) {
	var pets []pet
	target := c.base + "/pets"
	for {
		var page []pet
		resp, err := c.send("GET", target, nil, &page)
		if err != nil {
			return nil, err
		}
		pets = append(pets, page...)
		link := nextLink.FindStringSubmatch(resp.Header.Get("Link"))
		if link == nil {
			return pets, nil
		}
		next, err := resp.Request.URL.Parse(link[1])
		if err != nil {
			return nil, err
		}
		target = next.String()
	}
}

// send sends a request until it succeeds, must not be repeated, or has no tries left.
func (c *client) send(method, target string, body []byte, result any) (*http.Response, error) {
	for try := 1; ; try++ {
		req, err := http.NewRequest(method, target, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+c.key)
		req.Header.Set("Content-Type", "application/json")
		var answer []byte
		resp, err := c.http.Do(req)
		if err == nil {
			answer, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		if err == nil && resp.StatusCode < 300 {
			return resp, json.Unmarshal(answer, result)
		}
		repeat := method == "GET" || repeatsLostPost
		wait := 50 * time.Millisecond << try
		if err == nil {
			err = fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(answer))
			notPerformed := resp.StatusCode == 429 || resp.StatusCode == 503
			repeat = notPerformed || repeat && resp.StatusCode >= 500
			seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
			wait = max(wait, time.Duration(seconds)*time.Second)
		}
		if !repeat || try >= c.tries {
			return nil, err
		}
		time.Sleep(wait)
	}
}

// ------------------------------ here ends the client under test ------------------------------

// The first request gets a 503, and the third a reset. The second, the fourth and the fifth add
// their pets, but get no answer, a page of HTML, and half of the answer.
func TestLostAnswer(t *testing.T) {
	p, c := start(t, 0, "code=503,lost,rst,html,truncate&operation=createPet", 6, 5*time.Second)
	wants := []string{
		"error, stored pets: 1, statuses: [503 0]",
		"error, stored pets: 1, statuses: [503 0 0]",
		"error, stored pets: 2, statuses: [503 0 0 502]",
		"error, stored pets: 3, statuses: [503 0 0 502 201]",
	}
	if repeatsLostPost {
		wants = []string{"success, stored pets: 4, statuses: [503 0 0 502 201 201]"}
	}
	for _, want := range wants {
		_, err := c.createPet("Rex")
		p.check(err, want)
	}
}

// The pet is added, but only the status 201 and half of the body arrive. After 30 seconds,
// petstore closes the connection, which is an error for the client, too. So only the time shows
// that the client gave up. It has two tries, so that a repetition is noticed in any case.
func TestStalledAnswer(t *testing.T) {
	p, c := start(t, 0, "code=stall&times=2", 2, 2*time.Second)
	want := "error, stored pets: 1, statuses: [201]"
	if repeatsLostPost {
		want = "error, stored pets: 2, statuses: [201 201]"
	}
	begin := time.Now()
	_, err := c.createPet("Rex")
	took := time.Since(begin).Seconds()
	p.check(err, want)
	if took > 10 {
		p.fail(err, "createPet took %.1f s, want 2 s for each try", took)
	}
}

// The first request adds its pet, but its answer comes after the timeout. The journal says
// whether the client sent the request again.
func TestLateAnswer(t *testing.T) {
	p, c := start(t, 0, "answer-delay=10&times=1", 2, 2*time.Second)
	_, err := c.createPet("Rex")
	repeated := slices.ContainsFunc(p.requests(), func(r request) bool { return r.Repeats > 0 })
	if repeated != repeatsLostPost || (err == nil) != repeatsLostPost {
		p.fail(err, "repeated: %v; want a repetition, or else an error", repeated)
	}
}

// Both answers ask the client to wait for two seconds, which must be longer than it waits
// without Retry-After. The client waits, tries again, and gives up after two tries.
func TestObeysRetryAfter(t *testing.T) {
	p, c := start(t, 0, "code=503&times=2&retry-after=2", 2, 5*time.Second)
	_, err := c.createPet("Rex")
	p.check(err, "error, stored pets: 0, statuses: [503 503]")
	requests := p.requests()
	gap := requests[1].Time.Sub(requests[0].Time).Seconds()
	if gap < 1.9 {
		p.fail(err, "the second request came %.1f s after the first, want 2 s", gap)
	}
}

// A page has 20 pets. Half of the second page arrives, then half and no more for 30 seconds, and
// then all of it. Instead of the third page, the connection is closed.
func TestListsAllPages(t *testing.T) {
	p, c := start(t, 45, "code=ok,truncate,stall,ok,hangup&operation=listPets", 5, 2*time.Second)
	pets, err := c.listPets()
	p.check(err, "success, stored pets: 45, statuses: [200 200 200 200 0 200]")
	ids := map[int64]bool{}
	for _, pet := range pets {
		ids[pet.ID] = true
	}
	if len(pets) != 45 || len(ids) != 45 {
		p.fail(err, "listPets returned %d pets with %d different IDs, want 45", len(pets), len(ids))
	}
}

// key is the key of the petstore of PETSTORE_URL, or of those that the tests start.
var key = cmp.Or(os.Getenv("PETSTORE_API_KEY"), "test")

// A proxy of the environment could not reach petstore. Some clients read only one of these.
func init() {
	for _, name := range []string{"no_proxy", "NO_PROXY"} {
		os.Setenv(name, "127.0.0.1,localhost,"+os.Getenv(name))
	}
}

// petstore is the petstore of a test.
type petstore struct {
	t    *testing.T
	base string // the base URL of the API, such as http://127.0.0.1:54321/v1
}

// start returns the petstore of PETSTORE_URL or one for this test, and a client. In the journal,
// the requests have the name of the test. The client adds a pet first, because some libraries
// repeat a request by themselves only if its connection has been used before.
func start(t *testing.T, pets int, fault string, tries int, timeout time.Duration) (petstore, *client) {
	t.Helper()
	p := petstore{t, os.Getenv("PETSTORE_URL")}
	if p.base == "" {
		t.Parallel()
		p.base = startProcess(t)
	}
	reset := "/__admin/reset?test=" + url.QueryEscape(t.Name())
	p.send("POST", reset, "[]", nil)
	c := newClient(p.base, key, tries, timeout)
	if ida, err := c.createPet("Ida"); err != nil || ida.ID != 1 {
		p.fail(err, "without a fault, createPet returned the ID %d, want 1", ida.ID)
	}
	seed := strings.Repeat(`{"name":"Rex","categoryId":7},`, pets)
	p.send("POST", reset, "["+strings.TrimSuffix(seed, ",")+"]", nil)
	p.send("PUT", "/__admin/fault?"+fault, "", nil)
	return p, c
}

// startProcess starts a petstore that runs until the test ends, and returns its base URL.
func startProcess(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("./petstore", "-addr", "127.0.0.1:0", "-stdin")
	cmd.Env = append(os.Environ(), "PETSTORE_API_KEY="+key)
	cmd.Stderr = os.Stderr
	// Petstore stops when its standard input is closed, so also when the test is killed.
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatalf("%v: build petstore first, or change its path in startProcess", err)
	}
	t.Cleanup(func() {
		stdin.Close()
		cmd.Wait()
	})
	var base string
	if _, err := fmt.Fscanln(stdout, &base); err != nil {
		t.Fatalf("petstore did not start (%v); its standard error says why", err)
	}
	return base
}

// request is a request in the journal.
type request struct {
	Time              time.Time
	Method, URL, Body string
	Status            int // 0 for no answer
	Repeats           int // 0 unless the request repeats an equal one that had failed
	Fault             json.RawMessage
}

// check ends the test unless what the client reported, the number of pets, and the statuses of
// the client's requests are what the test wants.
func (p petstore) check(err error, want string) {
	p.t.Helper()
	var statuses []int
	for _, r := range p.requests() {
		statuses = append(statuses, r.Status)
	}
	var pets []any
	p.send("GET", "/__admin/pets?limit=100", "", &pets)
	outcome := "success"
	if err != nil {
		outcome = "error"
	}
	got := fmt.Sprintf("%s, stored pets: %d, statuses: %v", outcome, len(pets), statuses)
	if got != want {
		p.fail(err, "got %s; want %s", got, want)
	}
}

// requests returns the requests of the client, once those that it gave up have ended.
func (p petstore) requests() []request {
	p.t.Helper()
	var journal struct{ Requests []request }
	p.send("GET", "/__admin/requests?waiting=0", "", &journal)
	return journal.Requests
}

// fail ends the test, and shows the error that the client reported, what it sent, and a line that
// shows all of it if petstore outlives the test.
func (p petstore) fail(err error, format string, args ...any) {
	p.t.Helper()
	message := fmt.Sprintf(format, args...)
	message += fmt.Sprintf("; repeatsLostPost is %v\nthe error of the client: %v", repeatsLostPost, err)
	for _, r := range p.requests() {
		message += fmt.Sprintf("\n%s %s %s: %d %s", r.Method, r.URL, r.Body, r.Status, r.Fault)
	}
	const line = `curl -sSH "Authorization: Bearer $PETSTORE_API_KEY" ` +
		`"${PETSTORE_URL%%v1}__admin/requests?history=true" | grep -F '"test":%q'`
	p.t.Fatalf("%s\nwith PETSTORE_URL, all of it: "+line, message, p.t.Name())
}

// send sends a request to /__admin. It stores the answer in result, unless that is nil.
func (p petstore) send(method, path, body string, result any) {
	p.t.Helper()
	req, err := http.NewRequest(method, strings.TrimSuffix(p.base, "/v1")+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	client := http.Client{Timeout: 40 * time.Second} // as waiting=0 takes up to 30
	resp, err := client.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && result != nil {
		err = json.Unmarshal(answer, result)
	}
	if err != nil || resp.StatusCode >= 300 {
		p.t.Fatalf("%s %s: %s %s (error: %v)", method, path, resp.Status, answer, err)
	}
}
