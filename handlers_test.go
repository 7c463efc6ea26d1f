package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// testKey is the API key of the services that the tests start.
const testKey = "correct-horse"

// patience is how long a test waits for what must come: only a test that
// fails waits that long.
const patience = time.Minute

// service is a petstore that runs in this process.
type service struct {
	addr   string        // host:port
	stderr *lockedBuffer // what it has logged so far
	cancel func()        // asks it to stop
	stop   func()        // stops it, and checks how it ends
}

// lockedBuffer is a bytes.Buffer that many goroutines may use.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start runs the service with testKey on a free port until the test ends. It
// must then exit with 0, and have printed nothing but its base URL.
func start(t testing.TB, args ...string) *service {
	t.Helper()
	return startKey(t, testKey, args...)
}

func startKey(t testing.TB, key string, args ...string) *service {
	t.Helper()
	stderr := new(lockedBuffer)
	s := startTo(t, stderr, key, args...)
	s.stderr = stderr
	return s
}

func startTo(t testing.TB, stderr io.Writer, key string, args ...string) *service {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &service{stderr: new(lockedBuffer), cancel: cancel}
	stdout, w := io.Pipe()
	exit := make(chan int, 1)
	go func() {
		exit <- run(ctx, append([]string{"-addr", "127.0.0.1:0"}, args...), env(key), w, stderr)
		w.Close()
	}()
	out := bufio.NewReader(stdout)
	line, _ := out.ReadString('\n')
	m := regexp.MustCompile(`^http://(127\.0\.0\.1:[1-9][0-9]*)/v1\n$`).FindStringSubmatch(line)
	if m == nil {
		cancel()
		t.Fatalf("stdout is %q, want the base URL\n%s", line, s.stderr)
	}
	s.addr = m[1]
	s.stop = sync.OnceFunc(func() {
		client.CloseIdleConnections()
		cancel()
		if rest, _ := io.ReadAll(out); len(rest) > 0 {
			t.Errorf("stdout goes on behind the base URL: %q", rest)
		}
		if code := <-exit; code != 0 {
			t.Errorf("exit code %d, want 0\n%s", code, s.stderr)
		}
	})
	t.Cleanup(s.stop)
	return s
}

// env is an environment with only the API key in it.
func env(key string) func(string) string {
	return func(name string) string { return map[string]string{"PETSTORE_API_KEY": key}[name] }
}

// client takes what comes: it follows no redirects.
var client = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     &http.Transport{MaxIdleConnsPerHost: 100},
	Timeout:       patience,
}

// call sends a request that is written as "METHOD target", header lines, an
// empty line and a body. It carries testKey unless a line begins with
// "Authorization". See answer for what comes back.
func (s *service) call(t testing.TB, request string) string {
	t.Helper()
	return answer(t, s.do(t, request))
}

func (s *service) do(t testing.TB, request string) *http.Response {
	t.Helper()
	head, body, _ := strings.Cut(request, "\n\n")
	lines := strings.Split(head, "\n")
	method, target, _ := strings.Cut(lines[0], " ")
	req, err := http.NewRequest(method, "http://"+s.addr, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.URL.Opaque = target // goes out as it is
	if !strings.Contains(head, "\nAuthorization") {
		req.Header.Set("Authorization", "Bearer "+testKey)
	}
	for _, line := range lines[1:] {
		if name, value, ok := strings.Cut(line, ":"); ok {
			req.Header.Add(name, strings.TrimSpace(value))
		}
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// answer writes a response as a line of status and body, and sorted lines of
// headers; an Error is shortened to its code and message. The headers and the
// form that every answer has are checked and left out.
func answer(t testing.TB, resp *http.Response) string {
	t.Helper()
	method := resp.Request.Method
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	h := resp.Header.Clone()
	length, err := strconv.Atoi(h.Get("Content-Length"))
	switch {
	case resp.StatusCode == 204:
		if len(body) > 0 || h.Get("Content-Type")+h.Get("Content-Length") != "" {
			t.Errorf("%s: a 204 with a body: %v %q", method, h, body)
		}
	case err != nil || h.Get("Content-Type") != "application/json":
		t.Errorf("%s: not JSON of a known length: %v %q", method, h, body)
	case method == "HEAD":
		if len(body) > 0 {
			t.Errorf("HEAD: a body: %q", body)
		}
	case length != len(body) || !bytes.HasSuffix(body, []byte("\n")):
		t.Errorf("%s: Content-Length %d of %q", method, length, body)
	}
	if strings.Contains(string(body)+fmt.Sprint(h), testKey) {
		t.Errorf("%s: the answer shows the key: %v %q", method, h, body)
	}
	for _, name := range []string{"Content-Type", "Content-Length", "Date"} {
		h.Del(name)
	}
	if resp.Close {
		h.Set("Connection", "close")
	}
	line := strings.TrimSuffix(string(body), "\n")
	if resp.StatusCode >= 400 && method != "HEAD" {
		var e Error
		json.Unmarshal(body, &e)
		if string(encode(e)) != line || e.Status != resp.StatusCode || e.Message == "" || !regexp.MustCompile(`^[a-z0-9_]+$`).MatchString(e.Code) {
			t.Errorf("%s: no Error of status %d: %q", method, resp.StatusCode, body)
		}
		line = e.Code + ": " + e.Message
	}
	var b strings.Builder
	h.Write(&b)
	return strings.TrimSpace(strings.TrimSpace(fmt.Sprint(resp.StatusCode, " ", line)) + "\n" + strings.ReplaceAll(b.String(), "\r\n", "\n"))
}

// check plays cases, each a request and its answer, in order. A HEAD must get
// the headers of the GET before it.
func (s *service) check(t *testing.T, cases [][2]string) {
	t.Helper()
	for _, c := range cases {
		if strings.HasPrefix(c[0], "GET ") {
			get, head := s.do(t, c[0]), s.do(t, "HEAD"+c[0][3:])
			get.Header.Del("Date")
			head.Header.Del("Date")
			if get.StatusCode != head.StatusCode || !reflect.DeepEqual(get.Header, head.Header) {
				t.Errorf("%s\n GET %d %v\nHEAD %d %v", c[0], get.StatusCode, get.Header, head.StatusCode, head.Header)
			}
			get.Body.Close()
			answer(t, head)
		}
		s.play(t, c)
	}
}

// play plays cases as check does, each just once.
func (s *service) play(t *testing.T, cases ...[2]string) {
	t.Helper()
	for _, c := range cases {
		if got := s.call(t, c[0]); got != c[1] {
			t.Errorf("%s\n got %s\nwant %s", c[0], got, c[1])
		}
	}
}

const (
	paramInt64 = "an integer from -9223372036854775808 to 9223372036854775807"
	going      = "\nDeprecation: @1795132800\nLink: </v1/pets>; rel=\"successor-version\"\nSunset: Thu, 05 Dec 2030 00:00:00 GMT"
	noPath     = "404 not_found: no such path; the pets are at /v1/pets, without a slash at the end"
	noKey      = "401 unauthorized: send the API key in one header: Authorization: Bearer <API_KEY>\nWww-Authenticate: Bearer realm=\"petstore\""
	wrongKey   = "401 invalid_token: this is not the API key that the service was started with\nWww-Authenticate: Bearer realm=\"petstore\", error=\"invalid_token\""
)

// The contract, table by table: resources, parameters, answers.
func TestContract(t *testing.T) {
	s := start(t)
	s.check(t, [][2]string{
		{"GET /v1/pets", "200 []"},
		{"POST /v1/pets\n\n" + `{"name":"Rex","categoryId":1,"status":"available"}`,
			`201 {"id":1,"name":"Rex","categoryId":1,"status":"available"}` + "\nLocation: /v1/pets/1"},
		{"POST /v1/pets\nContent-Type: application/json\n\n" + `{"categoryId":9223372036854775807,"name":""}`,
			`201 {"id":2,"name":"","categoryId":9223372036854775807}` + "\nLocation: /v1/pets/2"},
		{"POST /v1/pets\nContent-Type: Application/JSON; Charset=\"UTF-8\"\n\n" + ` { "status" : "sold" , "name" : "<ü&\u0000\n\ud83d\ude00>" , "categoryId" : -9223372036854775808 } `,
			`201 {"id":3,"name":"<ü&\u0000\n😀>","categoryId":-9223372036854775808,"status":"sold"}` + "\nLocation: /v1/pets/3"},
		{"POST /v1/pets\n\n" + `{"id":77,"name":"Id","\u0063ategoryId":-0,"status":"p\u0065nding","Name":5,"x":{"name":["}",{}]},"x":"\""}`,
			`201 {"id":4,"name":"Id","categoryId":0,"status":"pending"}` + "\nLocation: /v1/pets/4"},
		{"GET /v1/pets", `200 [{"id":1,"name":"Rex","categoryId":1,"status":"available"},{"id":2,"name":"","categoryId":9223372036854775807},` +
			`{"id":3,"name":"<ü&\u0000\n😀>","categoryId":-9223372036854775808,"status":"sold"},{"id":4,"name":"Id","categoryId":0,"status":"pending"}]`},
		{"GET /v1/pets?status=available", `200 [{"id":1,"name":"Rex","categoryId":1,"status":"available"}]`},
		{"GET /v1/pets?status=pending&colour=red&limit=100", `200 [{"id":4,"name":"Id","categoryId":0,"status":"pending"}]`},
		{"GET /v1/pets/2", `200 {"id":2,"name":"","categoryId":9223372036854775807}` + going},
		{"GET /v1/%70ets/%32?x=y", `200 {"id":2,"name":"","categoryId":9223372036854775807}` + going},
		{"HEAD /v1/pets/2", "200" + going},
		{"HEAD /v1/pets/5", "404" + going},
		{"HEAD /v1/pets?limit=1", "200\nLink: </v1/pets?limit=1&after=1>; rel=\"next\""},
		{"GET /v1/pets/5", "404 not_found: there is no pet 5" + going},
		{"GET /v1/pets/0", "404 not_found: there is no pet 0" + going},
		{"GET /v1/pets/-9223372036854775808", "404 not_found: there is no pet -9223372036854775808" + going},
		{"GET /v1/pets/9223372036854775808", "400 invalid_parameter: petId is 9223372036854775808; it must be " + paramInt64 + going},
		{"GET /v1/pets/Rex", "400 invalid_parameter: petId is Rex; it must be " + paramInt64 + going},
		{"GET /v1/pets/1%2F2", "400 invalid_parameter: petId is 1/2; it must be " + paramInt64 + going},
		{"GET /v1/pets/01", "400 invalid_parameter: petId is 01; it must be " + paramInt64 + going},
		{"GET /v1/store/orders", "501 not_implemented: the contract names this operation and shows no payload for it"},
	})
}

// What is no request of the contract: every answer is an Error, whatever the
// path and the method.
func TestErrors(t *testing.T) {
	s := start(t)
	limit := func(given string) string {
		return "400 invalid_parameter: limit is " + given + "; it must be an integer from 1 to 100"
	}
	status := func(given string) string {
		return "400 invalid_parameter: status is " + given + "; it must be available, pending or sold"
	}
	s.check(t, [][2]string{
		{"GET /v1/pets?limit=0", limit("0")},
		{"GET /v1/pets?limit=101", limit("101")},
		{"GET /v1/pets?limit=-1", limit("-1")},
		{"GET /v1/pets?limit=1.0", limit("1.0")},
		{"GET /v1/pets?limit=1e1", limit("1e1")},
		{"GET /v1/pets?limit=%2B1", limit("+1")},
		{"GET /v1/pets?limit=01", limit("01")},
		{"GET /v1/pets?limit=-01", limit("-01")},
		{"GET /v1/pets?limit=ten", limit("ten")},
		{"GET /v1/pets?limit=", limit("empty")},
		{"GET /v1/pets?limit", limit("empty")},
		{"GET /v1/pets?limit=99999999999999999999", limit("99999999999999999999")},
		{"GET /v1/pets?limit=" + strings.Repeat("ä", 41), limit(strings.Repeat("ä", 40) + "…")},
		{"GET /v1/pets?limit=" + strings.Repeat("ä", 40), limit(strings.Repeat("ä", 40))},
		{"GET /v1/pets?limit=a" + testKey, limit("a<API_KEY>")},
		{"GET /v1/pets?limit=" + strings.Repeat("a", 39) + testKey, limit(strings.Repeat("a", 39) + "<…")},
		{"GET /v1/pets?limit=1&limit=1", "400 invalid_parameter: limit is given 2 times; it must be given once"},
		{"GET /v1/pets?status=Sold", status("Sold")},
		{"GET /v1/pets?status=", status("empty")},
		{"GET /v1/pets?status=sold,pending", status("sold,pending")},
		{"GET /v1/pets?status=sold&status=sold&status=", "400 invalid_parameter: status is given 3 times; it must be given once"},
		{"GET /v1/pets?after=x", "400 invalid_parameter: after is x; it must be " + paramInt64},
		{"GET /v1/pets?after=1&after=2", "400 invalid_parameter: after is given 2 times; it must be given once"},
		{"GET /v1/pets?x=%zz", `400 invalid_parameter: the query is malformed: invalid URL escape "%zz"`},
		{"GET /v1/pets?x=1;limit=5", "400 invalid_parameter: the query is malformed: invalid semicolon separator in query"},
		{"GET /v1/pets/1?%", `400 invalid_parameter: the query is malformed: invalid URL escape "%"` + going},

		{"GET /", noPath},
		{"GET /pets", noPath},
		{"GET /v1", noPath},
		{"POST /v1", noPath},
		{"GET /v1/", noPath},
		{"GET /v1x", noPath},
		{"GET /v1/pets/", noPath},
		{"GET /v1/pets/1/", noPath},
		{"GET /v1/pets/1/2", noPath},
		{"GET /v1//pets", noPath},
		{"GET /v1/./pets", noPath},
		{"GET /v1/../v1/pets", noPath},
		{"GET /v1/pets/%2e%2e", noPath},
		{"GET /v1/pets%2F", noPath},
		{"DELETE /v1/nothing?%zz", noPath},
		{"GET /v1/store", noPath},

		{"PUT /v1/pets", "405 method_not_allowed: this path allows GET, HEAD, POST only\nAllow: GET, HEAD, POST"},
		{"get /v1/pets", "405 method_not_allowed: this path allows GET, HEAD, POST only\nAllow: GET, HEAD, POST"},
		{"DELETE /v1/pets/1", "405 method_not_allowed: this path allows GET, HEAD only\nAllow: GET, HEAD"},
		{"TRACE /v1/pets/x", "405 method_not_allowed: this path allows GET, HEAD only\nAllow: GET, HEAD"},
		{"POST /v1/store/orders", "405 method_not_allowed: this path allows GET, HEAD only\nAllow: GET, HEAD"},
		{"PATCH /v1/pets/1\n\n{}", "405 method_not_allowed: this path allows GET, HEAD only\nAllow: GET, HEAD\nConnection: close"},
	})
}

// A create that is refused stores nothing and uses no id.
func TestBadCreates(t *testing.T) {
	s := start(t)
	const (
		aString = "; it must be a string of valid Unicode"
		anInt   = "; it must be " + paramInt64
		object  = "; it must be a JSON object"
		charset = "415 unsupported_media_type: send the pet as JSON in UTF-8, with Content-Type: application/json (curl does with --json)\nConnection: close"
		tooBig  = "413 request_entity_too_large: the body is over 65536 bytes\nConnection: close"
	)
	post := func(body string) string { return "POST /v1/pets\n\n" + body }
	bad := func(message string) string { return "400 invalid_body: " + message }
	s.check(t, [][2]string{
		{post(``), bad("the body is not JSON: unexpected end of JSON input")},
		{post(`{"name":"a","categoryId":1`), bad("the body is not JSON: unexpected end of JSON input")},
		{post(`{"name":"a","categoryId":1}x`), bad("the body is not JSON: invalid character 'x' after top-level value")},
		{post(`{"name":"a","categoryId":1}{}`), bad("the body is not JSON: invalid character '{' after top-level value")},
		{post(`{"name":"a","categoryId":01}`), bad("the body is not JSON: invalid character '1' after object key:value pair")},
		{post("\ufeff{}"), bad("the body is not JSON: invalid character 'ï' looking for beginning of value")},
		{post(`[{"name":"a","categoryId":1}]`), bad(`the pet is [{"name":"a","categoryId":1}]` + object)},
		{post(` null `), bad(`the pet is null` + object)},
		{post(`"name"`), bad(`the pet is "name"` + object)},
		{post(`{}`), bad("name is missing" + aString)},
		{post(` { } `), bad("name is missing" + aString)},
		{post(`{"Name":"a","NAME":"a","categoryId":1}`), bad("name is missing" + aString)},
		{post(`{"name":null,"categoryId":1}`), bad("name is null" + aString)},
		{post(`{"name":1,"categoryId":1}`), bad("name is 1" + aString)},
		{post(`{"name":["a"],"categoryId":1}`), bad(`name is ["a"]` + aString)},
		{post(`{"name":["` + testKey + `"],"categoryId":1}`), bad(`name is ["<API_KEY>"]` + aString)},
		{post(`{"name":"\ud800","categoryId":1}`), bad(`name is "\ud800"` + aString)},
		{post(`{"name":"\ud800\n","categoryId":1}`), bad(`name is "\ud800\n"` + aString)},
		{post(`{"name":"\uDC00\uD800","categoryId":1}`), bad(`name is "\uDC00\uD800"` + aString)},
		{post("{\"name\":\"\xff\",\"categoryId\":1}"), bad("name is not UTF-8; it must be UTF-8")},
		{post("{\"name\":\"a\",\"categoryId\":1,\"x\":[\"\xed\xa0\x80\"]}"), bad("x is not UTF-8; it must be UTF-8")},
		{post("{\"name\":\"a\",\"categoryId\":1,\"\xff\":1}"), bad("\ufffd is not UTF-8; it must be UTF-8")},
		{post("{\"name\":\"a\",\"categoryId\":1,\"\xff\\n\":1}"), bad("\ufffd\n is not UTF-8; it must be UTF-8")},
		{post(`{"name":"a","name":"a","categoryId":1}`), bad("name is given twice; it must be given once")},
		{post(`{"name":"a","n\u0061me":"a","categoryId":1}`), bad("name is given twice; it must be given once")},
		{post(`{"name":"a"}`), bad("categoryId is missing" + anInt)},
		{post(`{"name":"a","categoryid":1}`), bad("categoryId is missing" + anInt)},
		{post(`{"name":"a","categoryId":null}`), bad("categoryId is null" + anInt)},
		{post(`{"name":"a","categoryId":"1"}`), bad(`categoryId is "1"` + anInt)},
		{post(`{"name":"a","categoryId":1.0}`), bad("categoryId is 1.0" + anInt)},
		{post(`{"name":"a","categoryId":1e3}`), bad("categoryId is 1e3" + anInt)},
		{post(`{"name":"a","categoryId":9223372036854775808}`), bad("categoryId is 9223372036854775808" + anInt)},
		{post(`{"name":"a","categoryId":-9223372036854775809}`), bad("categoryId is -9223372036854775809" + anInt)},
		{post(`{"name":"a","categoryId":true}`), bad("categoryId is true" + anInt)},
		{post(`{"name":"a","categoryId":1,"categoryId":1}`), bad("categoryId is given twice; it must be given once")},
		{post(`{"name":"a","categoryId":1,"status":"lost"}`), bad("status is lost; it must be available, pending or sold")},
		{post(`{"name":"a","categoryId":1,"status":""}`), bad("status is empty; it must be available, pending or sold")},
		{post(`{"name":"a","categoryId":1,"status":null}`), bad("status is null; it must be available, pending or sold")},
		{post(`{"name":"a","categoryId":1,"status":["sold"]}`), bad(`status is ["sold"]; it must be available, pending or sold`)},
		{post(`{"name":"a","categoryId":1,"status":"sold","status":null}`), bad("status is given twice; it must be given once")},

		{"POST /v1/pets\nContent-Type: text/plain\n\n{}", charset},
		{"POST /v1/pets\nContent-Type: application/x-www-form-urlencoded\n\n{}", charset},
		{"POST /v1/pets\nContent-Type: application/json; charset=latin1\n\n{}", charset},
		{"POST /v1/pets\nContent-Type: application/json; charset\n\n{}", charset},
		{post(strings.Repeat(" ", maxBody+1)), tooBig},
		{post(`{"name":"` + strings.Repeat("a", maxBody) + `","categoryId":1}`), tooBig},

		{"GET /v1/pets", "200 []"},
		{post(`{"name":"a","categoryId":1}` + strings.Repeat(" ", maxBody-27)), `201 {"id":1,"name":"a","categoryId":1}` + "\nLocation: /v1/pets/1"},
	})
}

// The key is asked for before anything else is looked at.
func TestKey(t *testing.T) {
	s := start(t)
	for _, request := range []string{"GET /v1/pets", "GET /v1", "GET /v1/nothing", "GET /v1/pets/", "GET /v1/../v1/pets",
		"DELETE /v1/pets", "GET /v1/pets?limit=0", "GET /v1/pets?%zz", "GET /v1/store/orders", "get /%761/pets",
		"GET /v1/pets?key=" + testKey + "&access_token=" + testKey + "\nX-Api-Key: " + testKey} {
		if got := s.call(t, request+"\nAuthorization"); got != noKey {
			t.Errorf("%s without a key:\n got %s\nwant %s", request, got, noKey)
		}
	}
	s.check(t, [][2]string{
		{"POST /v1/pets\nAuthorization\n\n{}", noKey[:strings.Index(noKey, "Www")] + "Connection: close" + noKey[strings.Index(noKey, "\nWww"):]},
		{"GET /v1/pets\nAuthorization:", noKey},
		{"GET /v1/pets\nAuthorization: Bearer", noKey},
		{"GET /v1/pets\nAuthorization: Basic " + testKey, noKey},
		{"GET /v1/pets\nAuthorization: " + testKey, noKey},
		{"GET /v1/pets\nAuthorization: Bearer " + testKey + "\nAuthorization: Bearer " + testKey, noKey},
		{"GET /v1/pets\nAuthorization: Bearer wrong", wrongKey},
		{"GET /v1/pets\nAuthorization: Bearer " + testKey + "x", wrongKey},
		{"GET /v1/pets\nAuthorization: Bearer " + testKey[1:], wrongKey},
		{"GET /v1/pets\nAuthorization: Bearer " + strings.ToUpper(testKey), wrongKey},
		{"GET /v1/nothing\nAuthorization: Bearer wrong", wrongKey},
		{"GET /v1/pets\nAuthorization: bEARER   " + testKey, "200 []"},
		{"GET /nothing\nAuthorization", noPath},
	})
}

// A page has limit pets, in ascending order of id, and a Link to the next one
// if there is one.
func TestPaging(t *testing.T) {
	s := start(t)
	for i := 1; i <= 45; i++ {
		status := ""
		if i%3 == 0 {
			status = `,"status":"sold"`
		}
		s.call(t, fmt.Sprintf("POST /v1/pets\n\n"+`{"name":"","categoryId":%d%s}`, i, status))
	}
	for _, c := range []struct{ target, ids, link string }{
		{"/v1/pets", "1-20", "/v1/pets?after=20"},
		{"/v1/pets?after=20", "21-40", "/v1/pets?after=40"},
		{"/v1/pets?after=40", "41-45", ""},
		{"/v1/pets?after=25&x=1", "26-45", ""},
		{"/v1/pets?limit=45", "1-45", ""},
		{"/v1/pets?limit=44", "1-44", "/v1/pets?limit=44&after=44"},
		{"/v1/pets?limit=100", "1-45", ""},
		{"/v1/pets?limit=1&after=44", "45-45", ""},
		{"/v1/pets?after=45", "", ""},
		{"/v1/pets?after=9223372036854775807", "", ""},
		{"/v1/pets?after=-9223372036854775808&limit=2", "1-2", "/v1/pets?limit=2&after=2"},
		{"/v1/pets?status=sold&limit=2&after=4", "6,9", "/v1/pets?limit=2&status=sold&after=9"},
		{"/v1/pets?status=sold&after=36&limit=3", "39,42,45", ""},
		{"/v1/pets?after=36&status=sold&limit=2", "39,42", "/v1/pets?limit=2&status=sold&after=42"},
		{"/v1/pets?status=pending", "", ""},
	} {
		want := "200 ["
		ids := strings.Split(c.ids, ",")
		if from, to, ok := strings.Cut(c.ids, "-"); ok {
			ids = nil
			first, _ := strconv.Atoi(from)
			last, _ := strconv.Atoi(to)
			for i := first; i <= last; i++ {
				ids = append(ids, strconv.Itoa(i))
			}
		}
		for i, id := range ids {
			if c.ids == "" {
				break
			}
			if i > 0 {
				want += ","
			}
			want += `{"id":` + id + `,"name":"","categoryId":` + id
			if n, _ := strconv.Atoi(id); n%3 == 0 {
				want += `,"status":"sold"`
			}
			want += "}"
		}
		want += "]"
		if c.link != "" {
			want += "\nLink: <" + c.link + `>; rel="next"`
		}
		if got := s.call(t, "GET "+c.target); got != want {
			t.Errorf("%s\n got %s\nwant %s", c.target, got, want)
		}
	}
}

// Many clients at once: every id once, no pet lost, and a reader of all pages
// meets each pet that was there when it began exactly once.
func TestConcurrency(t *testing.T) {
	s := start(t, "-quiet")
	const clients, each = 16, 50
	var wg sync.WaitGroup
	for c := range clients {
		wg.Add(2)
		go func() {
			defer wg.Done()
			for i := range each {
				name := fmt.Sprintf("%d-%d", c, i)
				got := s.call(t, `POST /v1/pets`+"\n\n"+`{"status":"sold","categoryId":1,"name":"`+name+`"}`)
				if !regexp.MustCompile(`^201 {"id":[0-9]+,"name":"` + name + `",`).MatchString(got) {
					t.Error(got)
				}
			}
		}()
		go func() {
			defer wg.Done()
			for range 5 {
				for i, id := range s.readAll(t, "?status=sold&limit=7") {
					if id != int64(i+1) {
						t.Errorf("pet %d is the pet %d of the pages", id, i+1)
					}
				}
			}
		}()
	}
	wg.Wait()
	if n := len(s.readAll(t, "?limit=100")); n != clients*each {
		t.Errorf("%d pets in the end, want %d", n, clients*each)
	}
}

// readAll returns the ids on all pages.
func (s *service) readAll(t testing.TB, query string) (ids []int64) {
	next := regexp.MustCompile(`^</v1/pets(.*)>; rel="next"$`)
	for {
		resp := s.do(t, "GET /v1/pets"+query)
		var page []Pet
		err := json.NewDecoder(resp.Body).Decode(&page)
		resp.Body.Close()
		if err != nil {
			t.Error(err)
		}
		for _, p := range page {
			ids = append(ids, p.ID)
		}
		m := next.FindStringSubmatch(resp.Header.Get("Link"))
		if m == nil {
			return ids
		}
		query = m[1]
	}
}

// dial opens a connection and sends what is given, with \n for CR LF.
func (s *service) dial(t testing.TB, send string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	io.WriteString(c, strings.ReplaceAll(send, "\n", "\r\n")) // may fail: the service need not read it all
	return c.(*net.TCPConn)
}

// rest returns what comes on c until the service closes it, but for the
// headers that other tests check, with \n for CR LF.
func rest(t testing.TB, c net.Conn) string {
	t.Helper()
	b, err := io.ReadAll(c)
	if err != nil {
		t.Errorf("%v behind %q", err, b)
	}
	return regexp.MustCompile(`(Date|Content-Length|Content-Type: application/json|Www-Authenticate).*\n`).ReplaceAllString(strings.ReplaceAll(string(b), "\r\n", "\n"), "")
}

// Peers that speak unusual, broken or half HTTP get an answer that is JSON,
// or a closed connection.
func TestPeers(t *testing.T) {
	s := start(t)
	const (
		key        = "Host: x\nAuthorization: Bearer " + testKey + "\n"
		end        = "Connection: close\n\n"
		closed     = "Connection: close\n\n"
		pet        = `{"name":"a","categoryId":1}`
		notFound   = `{"code":"not_found","message":"no such path; the pets are at /v1/pets, without a slash at the end","status":404}` + "\n"
		noKey      = "HTTP/1.1 401 Unauthorized\n" + closed + `{"code":"unauthorized","message":"send the API key in one header: Authorization: Bearer <API_KEY>","status":401}` + "\n"
		tooLarge   = "HTTP/1.1 413 Request Entity Too Large\n" + closed + `{"code":"request_entity_too_large","message":"the body is over 65536 bytes","status":413}` + "\n"
		badRequest = "HTTP/1.1 400 Bad Request\n" + closed + `{"code":"bad_request","message":"400 Bad Request","status":400}` + "\n"
	)
	created := func(id int) string {
		return fmt.Sprintf("HTTP/1.1 201 Created\nLocation: /v1/pets/%d\n%s"+`{"id":%d,"name":"a","categoryId":1}`+"\n", id, closed, id)
	}
	for _, c := range []struct{ name, send, want string }{
		{"pipelining", "GET /v1/pets HTTP/1.1\n" + key + "\nGET /x HTTP/1.1\n" + key + end,
			"HTTP/1.1 200 OK\n\n[]\nHTTP/1.1 404 Not Found\n" + closed + notFound},
		{"HTTP/1.0", "GET /v1/pets HTTP/1.0\n" + key + "\n", "HTTP/1.0 200 OK\n\n[]\n"},
		{"absolute form", "GET http://elsewhere/v1/pets HTTP/1.1\n" + key + end, "HTTP/1.1 200 OK\n" + closed + "[]\n"},
		{"absolute form without a path", "GET http://elsewhere HTTP/1.1\n" + key + end, "HTTP/1.1 404 Not Found\n" + closed + notFound},
		{"authority form", "CONNECT elsewhere:80 HTTP/1.1\n" + key + end, "HTTP/1.1 404 Not Found\n" + closed + notFound},
		{"path that begins with two slashes", "GET //v1/pets HTTP/1.1\n" + key + end, "HTTP/1.1 404 Not Found\n" + closed + notFound},
		{"asterisk form", "GET * HTTP/1.1\n" + key + end, "HTTP/1.1 404 Not Found\n" + closed + notFound},
		{"chunked", "POST /v1/pets HTTP/1.1\n" + key + "Transfer-Encoding: chunked\n" + end + "5\n" + pet[:5] + "\n16\n" + pet[5:] + "\n0\n\n", created(1)},
		{"expect", "POST /v1/pets HTTP/1.1\n" + key + "Expect: 100-continue\nContent-Length: 27\n" + end + pet, "HTTP/1.1 100 Continue\n\n" + created(2)},
		{"expect without a key", "POST /v1/pets HTTP/1.1\nHost: x\nExpect: 100-continue\nContent-Length: 27\n\n", noKey},
		{"no key, no body", "POST /v1/pets HTTP/1.1\nHost: x\nContent-Length: 27\n\n", noKey},
		{"length too large, no body", "POST /v1/pets HTTP/1.1\n" + key + "Content-Length: 65537\n\n", tooLarge},
		{"chunks without end", "POST /v1/pets HTTP/1.1\n" + key + "Transfer-Encoding: chunked\n\n10001\n" + strings.Repeat(" ", 65537), tooLarge},
		{"bad chunk", "POST /v1/pets HTTP/1.1\n" + key + "Transfer-Encoding: chunked\n\nx\n", "HTTP/1.1 400 Bad Request\n" + closed + `{"code":"invalid_body","message":"the body is cut short or badly chunked","status":400}` + "\n"},
		{"body cut short", "POST /v1/pets HTTP/1.1\n" + key + "Content-Length: 28\n\n" + pet, "HTTP/1.1 400 Bad Request\n" + closed + `{"code":"invalid_body","message":"the body is cut short or badly chunked","status":400}` + "\n"},
		{"not HTTP", "hello\n\n", badRequest},
		{"no Host", "GET /v1/pets HTTP/1.1\n\n", "HTTP/1.1 400 Bad Request\n" + closed + `{"code":"bad_request","message":"400 Bad Request: missing required Host header","status":400}` + "\n"},
		{"control characters", "GET /v1/\x01 HTTP/1.1\n" + key + "\n", badRequest},
		{"HTTP/3", "GET /v1/pets HTTP/3.0\n" + key + "\n", "HTTP/1.1 505 HTTP Version Not Supported\n" + closed + `{"code":"http_version_not_supported","message":"505 HTTP Version Not Supported: unsupported protocol version","status":505}` + "\n"},
		{"transfer coding", "POST /v1/pets HTTP/1.1\n" + key + "Transfer-Encoding: gzip\n\n", "HTTP/1.1 501 Not Implemented\n" + closed + `{"code":"not_implemented","message":"Unsupported transfer encoding","status":501}` + "\n"},
		{"expectation", "GET /v1/pets HTTP/1.1\n" + key + "Expect: more\n\n", "HTTP/1.1 417 Expectation Failed\n" + closed + `{"code":"expectation_failed","message":"Expectation Failed","status":417}` + "\n"},
		{"expectation in HTTP/1.0", "GET /v1/pets HTTP/1.0\nExpect: more\n\n", "HTTP/1.1 417 Expectation Failed\n" + closed + `{"code":"expectation_failed","message":"Expectation Failed","status":417}` + "\n"},
		{"large headers", "GET /v1/pets HTTP/1.1\n" + key + "X: " + strings.Repeat("x", 70<<10) + "\n\n", "HTTP/1.1 431 Request Header Fields Too Large\n" + closed + `{"code":"request_header_fields_too_large","message":"431 Request Header Fields Too Large","status":431}` + "\n"},
		{"gone", "POST /v1/pets HTTP/1.1\nHo", badRequest},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := s.dial(t, c.send)
			if c.name == "body cut short" || c.name == "gone" {
				conn.CloseWrite()
			}
			if got := rest(t, conn); got != c.want {
				t.Errorf("got %q\nwant %q", got, c.want)
			}
		})
	}
	if ids := s.readAll(t, ""); !slices.Equal(ids, []int64{1, 2}) {
		t.Errorf("in the end there are the pets %v, want 1 and 2", ids)
	}
}

// A pet that looks like one of net/http's own errors is sent as it is.
func TestPetLikeAnError(t *testing.T) {
	s := start(t)
	const text = "HTTP/1.1 400 Bad Request\\r\\nContent-Type: text/plain; charset=utf-8\\r\\n\\r\\n"
	name := strings.Repeat(text, 60000/len(text))
	for range 200 { // some begin where net/http begins a Write
		name = name[1:] + "x"
		body := `{"name":"` + strings.TrimLeft(name, `\rn`) + `","categoryId":1}`
		if got, want := s.call(t, "POST /v1/pets\n\n"+body), body[1:]; !strings.Contains(got, want) {
			t.Fatalf("%d bytes came back as %d", len(want), len(got))
		}
	}
}

// A peer that takes too long gets 408 once its headers are there, and a
// closed connection before.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	quick := listen(t, &api{log: log, quiet: true}, func(srv *http.Server) {
		got := []time.Duration{srv.ReadHeaderTimeout, srv.ReadTimeout, srv.WriteTimeout, srv.IdleTimeout}
		if want := []time.Duration{5 * time.Second, 15 * time.Second, time.Minute, 2 * time.Minute}; !slices.Equal(got, want) {
			t.Errorf("time limits for headers, request, response, idle: %v, want %v", got, want)
		}
		srv.ReadHeaderTimeout = 500 * time.Millisecond
	})
	if got := rest(t, quick.dial(t, "")); got != "" {
		t.Errorf("without a request came %q", got)
	}
	want := "HTTP/1.1 400 Bad Request\nConnection: close\n\n" + `{"code":"bad_request","message":"400 Bad Request","status":400}` + "\n"
	if got := rest(t, quick.dial(t, "GET /v1/pets HTTP/1.1\nHost: x\nX")); got != want {
		t.Errorf("half the headers got %q\nwant %q", got, want)
	}

	s := listen(t, &api{key: testKey, pets: newStore(state{}), latency: 600 * time.Millisecond, log: log, quiet: true}, func(srv *http.Server) {
		srv.ReadTimeout = 500 * time.Millisecond
		srv.WriteTimeout = 500 * time.Millisecond
	})
	// A delay is no fault of the peer's, and counts for none of its limits.
	s.check(t, [][2]string{
		{"GET /v1/pets", "200 []"},
		{"GET /v1/pets\nPrefer: delay=0.6", "200 []\nPreference-Applied: delay=0.6"},
		{"POST /v1/pets\nPrefer: delay=0.6\n\n" + `{"name":"a","categoryId":1}`, `201 {"id":1,"name":"a","categoryId":1}` + "\nLocation: /v1/pets/1\nPreference-Applied: delay=0.6"},
	})
}

// late sends half a body to a service with little patience.
func late(t *testing.T) net.Conn {
	t.Helper()
	s := listen(t, quietAPI(state{}), func(srv *http.Server) { srv.ReadTimeout = 500 * time.Millisecond })
	return s.dial(t, "POST /v1/pets HTTP/1.1\nHost: x\nAuthorization: Bearer "+testKey+"\nContent-Length: 9\n\n{")
}

func TestLateBody(t *testing.T) {
	want := "HTTP/1.1 408 Request Timeout\nConnection: close\n\n" + `{"code":"request_timeout","message":"the body did not come in time","status":408}` + "\n"
	if got := rest(t, late(t)); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// A body that nobody wants does not keep the connection until the time limit
// for the request, which this service does not have.
func TestLinger(t *testing.T) {
	s := listen(t, quietAPI(state{}), func(srv *http.Server) { srv.ReadTimeout = 0 })
	for _, send := range []string{
		"POST /v1/pets HTTP/1.1\nHost: x\nContent-Length: 27\n\n",
		"PUT /v1/pets HTTP/1.1\nHost: x\nAuthorization: Bearer " + testKey + "\nTransfer-Encoding: chunked\n\n5\n",
	} {
		if got := rest(t, s.dial(t, send)); !strings.HasPrefix(got, "HTTP/1.1 40") {
			t.Errorf("%q\n got %q", send, got)
		}
	}
}

// listen serves a with a server that change has changed.
func listen(t *testing.T, a *api, change func(*http.Server)) *service {
	t.Helper()
	srv := newServer(a)
	change(srv)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go srv.Serve(listener{ln.(*net.TCPListener)})
	t.Cleanup(func() { srv.Close() })
	return &service{addr: ln.Addr().String()}
}

// A bug is a 500 with its stack in the log, and no end of the service.
func TestPanic(t *testing.T) {
	log := new(lockedBuffer)
	a := &api{key: testKey, log: slog.New(slog.NewTextHandler(log, nil))} // no store
	srv := httptest.NewServer(a.routes())
	defer srv.Close()
	s := &service{addr: srv.Listener.Addr().String()}
	const want = "500 internal_server_error: the service has a bug; its log tells where"
	s.check(t, [][2]string{{"GET /v1/pets", want}, {"GET /v1/pets", want}})
	for _, part := range []string{"level=ERROR msg=panic value=\"runtime error: invalid memory address", "listPets", `path=/v1/pets status=500`} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log lacks %s:\n%.3000s", part, log)
		}
	}
}

// The request log has one line a request, and never the key.
func TestLog(t *testing.T) {
	s := start(t)
	s.call(t, "GET /v1/pets?limit=5")
	s.call(t, "DELETE /v1/pets/1?a%20b%0A=%22")
	s.call(t, "GET /x/"+testKey+"?"+testKey)
	s.call(t, "GET /x/corr%65ct-horse%0a")
	s.call(t, testKey+" /v1/pets")
	s.call(t, "GET /v1/pets\nAuthorization: Bearer not-the-key")
	want := `level=INFO msg=request method=GET path="/v1/pets?limit=5" status=200
level=INFO msg=request method=DELETE path="/v1/pets/1?a%20b%0A=%22" status=405
level=INFO msg=request method=GET path=/x/<API_KEY>?<API_KEY> status=404
level=INFO msg=request method=GET path="/x/<API_KEY>\n" status=404
level=INFO msg=request method=<API_KEY> path=/v1/pets status=405
level=INFO msg=request method=GET path=/v1/pets status=401
`
	s.stop()
	if got := regexp.MustCompile(`(?m)^time=\S+ `).ReplaceAllString(s.stderr.String(), ""); got != want {
		t.Errorf("log\n%s\nwant\n%s", got, want)
	}

	s = start(t, "-quiet")
	s.call(t, "GET /v1/pets")
	s.stop()
	if got := s.stderr.String(); got != "" {
		t.Errorf("with -quiet the log is %q", got)
	}
}

// A stderr that nobody reads keeps no request waiting: lines are lost once
// 1 MiB of them is kept, and when somebody reads again, the log tells so. It
// does not keep the process from ending either.
func TestLogUnread(t *testing.T) {
	r, w := io.Pipe()
	s := startTo(t, w, testKey)
	request := "GET /v1/pets?x=" + strings.Repeat("x", 32<<10)
	for range 40 { // 1.25 MiB
		if got := s.call(t, request); got != "200 []" {
			t.Error(got)
		}
	}
	in := bufio.NewReader(r)
	lines := 0
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if m := regexp.MustCompile(`level=WARN msg="log lines are lost, as nobody read them" lines=(\d+)\n$`).FindStringSubmatch(line); m != nil {
			lost, _ := strconv.Atoi(m[1])
			if lines+lost != 40 || lost == 0 {
				t.Errorf("%d lines and %d lost, of 40", lines, lost)
			}
			break
		}
		lines++
	}
	s.call(t, request)
	s.stop() // with a line that nobody reads
}

// Command lines that do not serve: exit code, what is printed, and where.
func TestCommandLine(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	failure := func(message string) string { return `^time=\S+ level=ERROR msg="?` + message + `"?\n$` }
	for _, c := range []struct {
		args           []string
		key            string
		code           int
		stdout, stderr string // regular expressions
	}{
		{[]string{"-version"}, "", 0, "^1\\.0\\.0\n$", "^$"},
		{[]string{"-h"}, "", 0, "^$", `(?s)PETSTORE_API_KEY.*-addr host:port.*-latency duration.*-quiet.*-seed file.*-version`},
		{[]string{"--help"}, "", 0, "^$", "(?s)Usage: petstore"},
		{[]string{"-x"}, "", 2, "^$", failure("flag provided but not defined: -x; -h lists the flags")},
		{[]string{"-quiet=5"}, "", 2, "^$", failure(`invalid boolean value .*; -h lists the flags`)},
		{[]string{"-latency", "-1ns"}, "", 2, "^$", failure("invalid value for -latency: it must be from 0 to 30s; -h lists the flags")},
		{[]string{"-latency", "30.1s"}, "", 2, "^$", failure("invalid value for -latency: it must be from 0 to 30s; -h lists the flags")},
		{[]string{"-quiet", "stray"}, "", 2, "^$", failure("unexpected argument stray; -h lists the flags")},
		{[]string{"-addr", taken.Addr().String()}, "k", 1, "^$", failure("listen tcp .*" + taken.Addr().String() + ": .*address.*in use.*")},
		{[]string{"-addr", "nonsense"}, "k", 1, "^$", failure("listen tcp: address nonsense: missing port in address")},
		{[]string{"-addr", "192.0.2.1:0"}, "k", 1, "^$", failure("listen tcp 192.0.2.1:0: .*")},
		{nil, " k", 1, "^$", failure("PETSTORE_API_KEY begins or ends with white space, which no header can carry")},
		{nil, "k\nk", 1, "^$", failure("PETSTORE_API_KEY has a control character, which no header can carry")},
	} {
		var stdout, stderr bytes.Buffer
		code := run(context.Background(), c.args, env(c.key), &stdout, &stderr)
		if code != c.code || !regexp.MustCompile(c.stdout).Match(stdout.Bytes()) || !regexp.MustCompile(c.stderr).Match(stderr.Bytes()) {
			t.Errorf("petstore %q, key %q: exit code %d, stdout %q, stderr %q; want %d, %s, %s",
				c.args, c.key, code, &stdout, &stderr, c.code, c.stdout, c.stderr)
		}
	}
	for addr, want := range map[string]string{"127.0.0.1:80": "127.0.0.1:80", "0.0.0.0:80": "127.0.0.1:80", "[::]:80": "127.0.0.1:80", "[::1]:80": "[::1]:80"} {
		tcp, _ := net.ResolveTCPAddr("tcp", addr)
		if got := baseURL(tcp); got != "http://"+want+"/v1" {
			t.Errorf("the base URL at %s is %s", addr, got)
		}
	}
}

// Without a configured key, the curl line on stderr works as it stands, and
// no other key does.
func TestRandomKey(t *testing.T) {
	keys := map[string]bool{}
	for range 2 {
		s := startKey(t, "")
		line := regexp.MustCompile(`(?m)^    curl -H 'Authorization: Bearer ([0-9a-f]{32})' http://(\S+)(/v1/pets)$`).FindStringSubmatch(s.stderr.String())
		if line == nil || line[2] != s.addr {
			t.Fatalf("no curl line for %s on stderr:\n%s", s.addr, s.stderr)
		}
		s.check(t, [][2]string{
			{"GET " + line[3] + "\nAuthorization: Bearer " + line[1], "200 []"},
			{"GET " + line[3] + "\nAuthorization:", noKey},
			{"GET " + line[3] + "\nAuthorization: Bearer ", noKey},
			{"GET " + line[3] + "\nAuthorization: Bearer 0", wrongKey},
		})
		keys[line[1]] = true
	}
	if len(keys) != 2 {
		t.Error("two runs have one key")
	}
}

// binary builds the service once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "petstore")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "petstore")
	out, err := exec.Command("go", "build", "-o", file, ".").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return file, err
})

func TestMain(m *testing.M) {
	if child := os.Getenv("PETSTORE_TEST_CHILD"); child != "" {
		os.Exit(serveChild(child))
	}
	code := m.Run()
	if file, err := binary(); err == nil {
		os.RemoveAll(filepath.Dir(file))
	}
	os.Exit(code)
}

// execute runs the built service with testKey, until the test ends at the latest.
func execute(t testing.TB, stderr io.Writer, args ...string) (*service, *exec.Cmd) {
	t.Helper()
	file, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	s := &service{}
	cmd := exec.Command(file, append([]string{"-addr", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), "PETSTORE_API_KEY="+testKey)
	cmd.Stderr = stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	s.addr = address(bufio.NewReader(stdout))
	return s, cmd
}

// address waits for the base URL on the stdout of a process, and returns its
// host:port.
func address(stdout *bufio.Reader) string {
	line, _ := stdout.ReadString('\n')
	return strings.TrimSuffix(strings.TrimPrefix(line, "http://"), "/v1\n")
}

// refused waits until the service takes no new connection.
func (s *service) refused(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			return
		}
		c.Close()
	}
	t.Error("the service still takes connections")
}

// At SIGTERM and SIGINT the process takes no new connection, answers what is
// in flight, and exits with 0.
func TestSignals(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		stderr := new(lockedBuffer)
		s, cmd := execute(t, stderr)
		c := s.dial(t, "POST /v1/pets HTTP/1.1\nHost: x\nAuthorization: Bearer "+testKey+"\nExpect: 100-continue\nContent-Length: 27\n\n")
		in := bufio.NewReader(c)
		if line, err := in.ReadString('\n'); line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("%q %v", line, err) // the handler reads the body
		}
		cmd.Process.Signal(signal)
		s.refused(t)
		io.WriteString(c, `{"name":"a","categoryId":1}`)
		if b, err := io.ReadAll(in); err != nil || !bytes.HasPrefix(b, []byte("\r\nHTTP/1.1 201 Created\r\n")) {
			t.Errorf("%v: the request in flight got %q %v", signal, b, err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v\n%s", signal, err, stderr)
		}
	}
}

// A reader of the log that leaves does not end the process.
func TestLogClosed(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s, cmd := execute(t, w)
	w.Close()
	r.Close()
	for range 3 {
		if got := s.call(t, "GET /v1/pets"); got != "200 []" {
			t.Error(got)
		}
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A request that never ends keeps a stopping process for 10 seconds: it is cut
// off before it would get the 408 that is due after 15.
func TestStopWaitsTenSeconds(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.dial(t, "POST /v1/pets HTTP/1.1\nHost: x\nAuthorization: Bearer "+testKey+"\nExpect: 100-continue\nContent-Length: 27\n\n")
	in := bufio.NewReader(c)
	in.ReadString('\n')
	in.ReadString('\n')
	s.cancel()
	begin := time.Now()
	if b, _ := io.ReadAll(in); len(b) > 0 {
		t.Errorf("the request got %q", b)
	}
	if waited := time.Since(begin); waited < 9*time.Second {
		t.Errorf("the request was cut off after %v", waited)
	}
}

// readmeBlock is a fenced block of README.md: its language, its text and, if a
// text block follows, what it prints.
var readmeBlock = regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```(?:\n\n```text\n(.*?)```)?")

func readme(t *testing.T) [][]string {
	t.Helper()
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	return readmeBlock.FindAllStringSubmatch(string(b), -1)
}

// The address and the key that README.md shows stand for those of the run.
const readmeAddress, readmeKey = "127.0.0.1:8080", "5f0c2ae1b7d94e3c8a6610f2d3b4c5e6"

// startReadme starts the service that README.md talks to. The first replacer
// turns what README.md shows into what the run has, the second one turns it back.
func startReadme(t *testing.T) (s *service, real, shown *strings.Replacer) {
	t.Helper()
	s = startKey(t, "")
	key := regexp.MustCompile(`[0-9a-f]{32}`).FindString(s.stderr.String())
	return s, strings.NewReplacer(readmeKey, key, readmeAddress, s.addr), strings.NewReplacer(key, readmeKey, s.addr, readmeAddress, "\r", "")
}

// need skips the test where a program is not installed.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed", program)
	}
}

// The console blocks of README.md are one session, and print what they show.
func TestReadmeConsole(t *testing.T) {
	need(t, "sh")
	need(t, "curl")
	s, real, shown := startReadme(t)
	started := s.stderr.String() + "http://" + s.addr + "/v1"

	home := t.TempDir()
	os.WriteFile(filepath.Join(home, ".curlrc"), []byte("silent\n"), 0o600) // no progress meter
	script := "exec 2>&1\n"
	var commands, want []string
	for _, block := range readme(t) {
		if block[1] != "console" {
			continue
		}
		for _, part := range strings.Split("\n"+block[2], "\n$ ")[1:] {
			command, output, _ := strings.Cut(strings.TrimSpace(part), "\n")
			commands, want = append(commands, command), append(want, output)
			if command != "go run ." {
				script += command + "\n"
			}
			script += "printf '\\036'\n"
		}
	}
	cmd := exec.Command("sh", "-c", real.Replace(script))
	cmd.Env = append(os.Environ(), "CURL_HOME="+home)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	outputs := strings.Split(string(out), "\036")
	outputs[0] = started
	date := regexp.MustCompile(`Date: .*`)
	for i, command := range commands {
		got, want := date.ReplaceAllString(strings.TrimSpace(shown.Replace(outputs[i])), "Date"), date.ReplaceAllString(want[i], "Date")
		if got != want {
			t.Errorf("$ %s\n got %s\nwant %s", command, got, want)
		}
	}
}

// The recipes of README.md run as they stand in a folder beside the clone.
func TestReadmeRecipes(t *testing.T) {
	file, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	clone := filepath.Join(dir, "petstore")
	os.MkdirAll(filepath.Join(clone, "api"), 0o755)
	for _, name := range []string{"auth.go", "errors.go", "handlers.go", "main.go", "store.go", "go.mod", "api/openapi.json"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		os.WriteFile(filepath.Join(clone, name), b, 0o600)
	}
	if err := os.Link(file, filepath.Join(clone, "petstore")); err != nil {
		t.Fatal(err)
	}
	ran := map[string]bool{}
	for i, block := range readme(t) {
		language, code, want := block[1], block[2], block[3]
		name, args := "", []string(nil)
		switch language {
		case "sh":
			if strings.Contains(code, "go test ") {
				continue // what brought us here
			}
			name, args = "recipe.sh", []string{"sh", "recipe.sh"}
		case "go":
			name, args = "client_test.go", []string{"go", "test", "client_test.go"}
		case "js":
			name, args = "client.test.mjs", []string{"node", "--test", "client.test.mjs"}
		case "python":
			name, args = "test_client.py", []string{"python3", "-W", "error", "test_client.py"}
		default:
			continue
		}
		ran[language] = true
		t.Run(fmt.Sprint(language, i), func(t *testing.T) {
			need(t, args[0])
			beside := filepath.Join(dir, fmt.Sprint("client", i))
			os.Mkdir(beside, 0o755)
			os.WriteFile(filepath.Join(beside, name), []byte(code), 0o600)
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Dir = beside
			out, err := cmd.CombinedOutput()
			if err != nil || want != "" && string(out) != want {
				t.Errorf("%v: got\n%s\nwant\n%s", err, out, want)
			}
		})
	}
	if len(ran) != 4 {
		t.Errorf("there are recipes in %v", ran)
	}
}

// The web page of README.md works in a browser.
func TestReadmePage(t *testing.T) {
	need(t, "chromium")
	_, real, _ := startReadme(t)
	for _, block := range readme(t) {
		if block[1] != "html" {
			continue
		}
		page := filepath.Join(t.TempDir(), "page.html")
		os.WriteFile(page, []byte(real.Replace(block[2])), 0o600)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		out, err := exec.CommandContext(ctx, "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
			"--user-data-dir="+t.TempDir(), "--virtual-time-budget=60000", "--dump-dom", "file://"+page).Output()
		if err != nil || !bytes.Contains(out, []byte(`<ul id="pets">1 at /v1/pets/1</ul>`)) {
			t.Errorf("%v: %s", err, out)
		}
	}
}

// seedFile writes a seed and returns its path.
func seedFile(t testing.TB, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pets.json")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A seed keeps the ids it gives, numbers the other pets above them in the
// order of the file, and the counter goes on from there.
func TestSeed(t *testing.T) {
	s := start(t, "-seed", seedFile(t, ` [
		{"name": "later", "categoryId": 1, "status": "sold"},
		{"id": 7, "name": "seven", "categoryId": -1, "x": null},
		{"id": 3, "name": "thr\u00e9e", "categoryId": 1, "status": "sold"},
		{"name": "last", "categoryId": 1}, {"id": 5, "name": "five", "categoryId": 1, "status": "sold"}
	] `))
	s.check(t, [][2]string{
		{"GET /v1/pets", `200 [{"id":3,"name":"thrée","categoryId":1,"status":"sold"},{"id":5,"name":"five","categoryId":1,"status":"sold"},` +
			`{"id":7,"name":"seven","categoryId":-1},{"id":8,"name":"later","categoryId":1,"status":"sold"},{"id":9,"name":"last","categoryId":1}]`},
		{"GET /v1/pets?status=sold&after=4", `200 [{"id":5,"name":"five","categoryId":1,"status":"sold"},{"id":8,"name":"later","categoryId":1,"status":"sold"}]`},
		{"GET /v1/pets/4", "404 not_found: there is no pet 4" + going},
		{"GET /v1/pets/7", `200 {"id":7,"name":"seven","categoryId":-1}` + going},
		{"POST /v1/pets\n\n" + `{"name":"new","categoryId":1}`, `201 {"id":10,"name":"new","categoryId":1}` + "\nLocation: /v1/pets/10"},
	})

	// The largest ids: one is left, and then none.
	s = start(t, "-seed", seedFile(t, `[{"id":9223372036854775806,"name":"","categoryId":1}]`))
	full := "507 insufficient_storage: the store is full: it holds 268435456 bytes"
	create := "POST /v1/pets\n\n" + `{"name":"","categoryId":1}`
	s.check(t, [][2]string{
		{create, `201 {"id":9223372036854775807,"name":"","categoryId":1}` + "\nLocation: /v1/pets/9223372036854775807"},
		{create, full},
		{"GET /v1/pets?after=9223372036854775806", `200 [{"id":9223372036854775807,"name":"","categoryId":1}]`},
		{"POST /__admin/reset", "204"},
		{create, `201 {"id":9223372036854775807,"name":"","categoryId":1}` + "\nLocation: /v1/pets/9223372036854775807"},
	})
	s = start(t, "-seed", seedFile(t, `[]`))
	s.check(t, [][2]string{{"GET /v1/pets", "200 []"}, {create, `201 {"id":1,"name":"","categoryId":1}` + "\nLocation: /v1/pets/1"}})
}

// A bad seed is exit code 1 and a line that names the file and the place.
func TestBadSeeds(t *testing.T) {
	const good = `{"name":"","categoryId":1}`
	const id = "; it must be an integer from 1 to 9223372036854775806"
	for content, want := range map[string]string{
		``:                                "not a JSON array",
		`null`:                            "not a JSON array",
		good:                              "not a JSON array",
		`[` + good:                        "behind pet 1: the array does not end",
		`[` + good + `,`:                  "pet 2: EOF",
		`[` + good + `]]`:                 "behind pet 1: something follows the array",
		`[` + good + `][]`:                "behind pet 1: something follows the array",
		`[` + good + `,]`:                 "pet 2: invalid character ']' looking for beginning of value",
		`[` + good + good + `]`:           "pet 2: expected comma after array element",
		`[` + good + `,{"name":"`:         "pet 2: unexpected EOF",
		`[` + good + `,5]`:                "pet 2: the pet is 5; it must be a JSON object",
		`[` + good + `,{"categoryId":1}]`: "pet 2: name is missing; it must be a string of valid Unicode",
		`[{"name":"","categoryId":1.5}]`:  "pet 1: categoryId is 1.5; it must be " + paramInt64,
		`[` + good + `,` + good + `,{"name":"","categoryId":1,"status":"lost"}]`: "pet 3: status is lost; it must be available, pending or sold",
		"[{\"name\":\"\xff\",\"categoryId\":1}]":                                 "pet 1: name is not UTF-8; it must be UTF-8",
		`[{"id":0,"name":"","categoryId":1}]`:                                    "pet 1: id is 0" + id,
		`[{"id":null,"name":"","categoryId":1}]`:                                 "pet 1: id is null" + id,
		`[{"id":1.0,"name":"","categoryId":1}]`:                                  "pet 1: id is 1.0" + id,
		`[{"id":9223372036854775807,"name":"","categoryId":1}]`:                  "pet 1: id is 9223372036854775807" + id,
		`[{"id":1,"id":1,"name":"","categoryId":1}]`:                             "pet 1: id is given twice; it must be given once",
		`[{"id":2,"name":"","categoryId":1},` + good + `,{"id":1,"name":"","categoryId":1},{"id":2,"name":"","categoryId":1}]`: "pet 4: id 2 is given twice",
		`[` + good + `,` + good + `,{"id":9223372036854775805,"name":"","categoryId":1}]`:                                      "pet 2: there is no id left for it",
	} {
		file := seedFile(t, content)
		var stdout, stderr bytes.Buffer
		code := run(context.Background(), []string{"-seed", file}, env(testKey), &stdout, &stderr)
		line := regexp.MustCompile(`^time=\S+ level=ERROR msg=(".*")\n$`).FindStringSubmatch(stderr.String())
		if code != 1 || stdout.Len() > 0 || line == nil {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", content, code, &stdout, &stderr)
		} else if got, err := strconv.Unquote(line[1]); got != file+": "+want {
			t.Errorf("%s\n got %s %v\nwant %s", content, got, err, want)
		}
	}
	var stderr bytes.Buffer
	if code := run(context.Background(), []string{"-seed", "/no/file"}, env(testKey), io.Discard, &stderr); code != 1 || !strings.Contains(stderr.String(), `msg="open /no/file: `) {
		t.Errorf("no such file: exit code %d, stderr %q", code, &stderr)
	}
}

// A seed that the store cannot hold is refused like any bad one.
func TestSeedTooLarge(t *testing.T) {
	for _, pet := range []string{`{"name":"","categoryId":1}`, `{"id":2,"name":"","categoryId":1}`} {
		file := seedFile(t, `[{"id":1,"name":"","categoryId":1},`+pet+`]`)
		pets := state{size: maxSize - 150}
		if err := pets.readSeed(file); err == nil || err.Error() != file+": pet 2: too large for the store" {
			t.Errorf("%s: %v", pet, err)
		}
	}
}

// Reset brings back the state after start, while others create and list.
func TestReset(t *testing.T) {
	const seed = `[{"id":5,"name":"five","categoryId":1,"status":"sold"},{"id":2,"name":"two","categoryId":1}]`
	s := start(t, "-quiet", "-seed", seedFile(t, seed))
	const pets = `200 [{"id":2,"name":"two","categoryId":1},{"id":5,"name":"five","categoryId":1,"status":"sold"}]`
	s.check(t, [][2]string{
		{"POST /__admin/reset\nAuthorization", noKey},
		{"POST /__admin/reset\nAuthorization: Bearer x", wrongKey},
		{"GET /__admin\nAuthorization", noKey},
		{"GET /__admin", noPath},
		{"GET /__admin/reset", "405 method_not_allowed: this path allows POST only\nAllow: POST"},
		{"GET /__admin/fault", "405 method_not_allowed: this path allows DELETE, PUT only\nAllow: DELETE, PUT"},
		{"PUT /__admin/fault?code=500", "204"},
		{"POST /__admin/reset", "204"},
		{"GET /v1/pets", pets},
	})
	var wg sync.WaitGroup
	stop := make(chan bool)
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				select {
				case <-stop:
					return
				default:
				}
				got := s.call(t, "POST /v1/pets\n\n"+`{"name":"x","categoryId":2,"status":"sold"}`)
				if !regexp.MustCompile(`^201 {"id":([6-9]|\d\d+),`).MatchString(got) {
					t.Errorf("created %s", got)
				}
				if ids := s.readAll(t, "?limit=3&status=sold"); ids[0] != 5 || !slices.IsSorted(ids) {
					t.Errorf("the sold pets are %v", ids)
				}
			}
		}()
	}
	for range 50 {
		if got := s.call(t, "POST /__admin/reset"); got != "204" {
			t.Error(got)
		}
	}
	close(stop)
	wg.Wait()
	s.check(t, [][2]string{
		{"POST /__admin/reset", "204"},
		{"GET /v1/pets", pets},
		{"GET /v1/pets?status=sold", `200 [{"id":5,"name":"five","categoryId":1,"status":"sold"}]`},
		{"GET /v1/pets/6", "404 not_found: there is no pet 6" + going},
		{"POST /v1/pets\n\n" + `{"name":"x","categoryId":2,"status":"pending"}`, `201 {"id":6,"name":"x","categoryId":2,"status":"pending"}` + "\nLocation: /v1/pets/6"},
		{"POST /__admin/reset", "204"},
		{"GET /v1/pets?status=pending", "200 []"},
	})
}

// A full store answers 507 to creates, and all else as before.
func TestFullStore(t *testing.T) {
	create := "POST /v1/pets\n\n" + `{"name":"a","categoryId":1}`
	const one = `{"id":1,"name":"a","categoryId":1}`
	created := "201 " + one + "\nLocation: /v1/pets/1"
	s := listen(t, quietAPI(state{size: maxSize - recordSize - int64(len(one))}), func(*http.Server) {})
	s.check(t, [][2]string{
		{"POST /v1/pets\n\n" + `{"name":"ab","categoryId":1}`, "507 insufficient_storage: the store is full: it holds 268435456 bytes"},
		{create, created},
		{create, "507 insufficient_storage: the store is full: it holds 268435456 bytes"},
		{"GET /v1/pets", "200 [" + one + "]"},
		{"GET /v1/pets/1", "200 " + one + going},
		{"GET /v1/pets/2", "404 not_found: there is no pet 2" + going},
		{"POST /__admin/reset", "204"},
		{"GET /v1/pets", "200 []"},
		{create, created},
	})
}

// A client that creates for ever fills the store up to its bound, and the
// process stays under 1 GiB.
func TestMemory(t *testing.T) {
	s, cmd := execute(t, nil, "-quiet")
	body := `{"name":"` + strings.Repeat("x", 60<<10) + `","categoryId":1}`
	var wg sync.WaitGroup
	var created atomic.Int64
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for strings.HasPrefix(s.call(t, "POST /v1/pets\n\n"+body), "201 ") {
				created.Add(1)
			}
		}()
	}
	wg.Wait()
	if n, want := created.Load(), int64(maxSize/(60<<10+100)); n < want-10 || n > maxSize/(60<<10) {
		t.Errorf("the store held %d pets of 60 KiB, want about %d", n, want)
	}
	if got := s.call(t, "GET /v1/pets?limit=1&after=4000"); !strings.HasPrefix(got, `200 [{"id":4001,`) {
		t.Errorf("%.100s", got)
	}
	if got := s.call(t, "POST /__admin/reset"); got != "204" {
		t.Error(got)
	}
	if got := s.call(t, "POST /v1/pets\n\n"+body); !strings.HasPrefix(got, `201 {"id":1,`) {
		t.Errorf("%.100s", got)
	}
	if peak := resident(t, cmd, "VmHWM"); peak < 256 || peak > 1024 {
		t.Errorf("resident memory reached %d MiB", peak)
	}
}

// resident returns the resident memory of a process in MiB: VmRSS now, VmHWM
// at most so far.
func resident(t testing.TB, cmd *exec.Cmd, which string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		t.Skip("resident memory is read from /proc")
	}
	kib, _ := strconv.Atoi(regexp.MustCompile(which + `:\s*(\d+) kB`).FindStringSubmatch(string(status))[1])
	return (kib + 1023) >> 10
}

// Health and description need no key, and mind none.
func TestOutsideV1(t *testing.T) {
	s := start(t)
	description, err := os.ReadFile("api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, auth := range []string{"", "\nAuthorization", "\nAuthorization: Bearer wrong"} {
		s.check(t, [][2]string{
			{"GET /healthz" + auth, `200 {"status":"ok"}`},
			{"GET /openapi.json" + auth, "200 " + strings.TrimSuffix(string(description), "\n")},
			{"GET /healthz/" + auth, noPath},
			{"POST /healthz" + auth, "405 method_not_allowed: this path allows GET, HEAD only\nAllow: GET, HEAD"},
			{"DELETE /openapi.json" + auth, "405 method_not_allowed: this path allows GET, HEAD only\nAllow: GET, HEAD"},
		})
	}
}

// A web page of another origin reads every answer, and what it needs of the
// headers.
func TestCORS(t *testing.T) {
	s := start(t)
	const (
		open      = "Access-Control-Allow-Origin: *\nAccess-Control-Expose-Headers: Link, Location, Deprecation, Sunset, WWW-Authenticate, Preference-Applied, Retry-After"
		preflight = "Access-Control-Allow-Headers: Authorization, Content-Type, Prefer, *\nAccess-Control-Allow-Methods: GET, HEAD, POST, PUT, DELETE\n"
		age       = "Access-Control-Max-Age: 600"
	)
	for _, target := range []string{"/v1/pets", "/v1/pets/1", "/v1/pets/", "/nothing", "/__admin/reset", "/healthz", "*"} {
		ask := "OPTIONS " + target + "\nAuthorization\nOrigin: http://demo.example\nAccess-Control-Request-Method: POST\nAccess-Control-Request-Headers: authorization"
		if got, want := s.call(t, ask), "204\n"+strings.Replace(preflight, "Methods: GET, HEAD, POST, PUT, DELETE\n", "Methods: GET, HEAD, POST, PUT, DELETE\n"+open+"\n", 1)+age; got != want {
			t.Errorf("OPTIONS %s\n got %s\nwant %s", target, got, want)
		}
	}
	if got, want := s.call(t, "OPTIONS /v1/pets\nAuthorization"), "204\n"+preflight+age; got != want {
		t.Errorf("OPTIONS without Origin\n got %s\nwant %s", got, want)
	}
	for _, c := range [][2]string{
		{"GET /v1/pets", "200"}, {"POST /v1/pets\n\n" + `{"name":"","categoryId":1}`, "201"}, {"GET /v1/pets/1", "200"}, {"GET /v1/pets/9", "404"},
		{"GET /v1/pets?limit=0", "400"}, {"GET /v1/pets\nAuthorization", "401"}, {"PUT /v1/pets", "405"}, {"GET /x/../y", "404"}, {"GET /healthz", "200"},
		{"GET /openapi.json", "200"}, {"POST /__admin/reset", "204"}, {"GET /v1/pets\nPrefer: code=503", "503"},
	} {
		head, body, _ := strings.Cut(c[0], "\n\n")
		got := s.call(t, head+"\nOrigin: null\n\n"+body)
		if !strings.HasPrefix(got, c[1]) || !strings.Contains(got, "\n"+open) {
			t.Errorf("%s\n got %s\nwant %s and\n%s", c[0], got, c[1], open)
		}
	}
	if got := s.call(t, "GET /v1/pets"); got != "200 []" {
		t.Errorf("without Origin: %s", got)
	}
}

const (
	simulated = ": this error is simulated, as was asked for"
	codes     = "an integer from 400 to 599, or hangup"
	delays    = "a number of seconds from 0 to 30, with decimals if need be"
)

func badParameter(name, given, allowed string) string {
	return "400 invalid_parameter: " + name + " is " + given + "; it must be " + allowed
}

// A request fails as its Prefer header says.
func TestPrefer(t *testing.T) {
	s := start(t)
	for status := 400; status <= 599; status++ {
		code := "status_" + strconv.Itoa(status)
		if text := http.StatusText(status); text != "" {
			code = strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(text), " ", "_"), "'", "")
		}
		want := fmt.Sprintf("%d %s%s\nConnection: close\nPreference-Applied: code=%d", status, code, simulated, status)
		switch status {
		case 401:
			want += "\n" + strings.SplitAfter(wrongKey, "\n")[1]
		case 429, 503:
			want += "\nRetry-After: 1"
		}
		if got := s.call(t, fmt.Sprintf("POST /v1/pets\nPrefer: code=%d\n\n"+`{"name":"","categoryId":1}`, status)); got != want {
			t.Errorf("code=%d\n got %s\nwant %s", status, got, want)
		}
	}
	const teapot = "418 im_a_teapot" + simulated + "\nPreference-Applied: code=418"
	s.check(t, [][2]string{
		{"GET /v1/pets", "200 []"},
		{"GET /v1/pets\nPrefer: code=200", badParameter("code", "200", codes)},
		{"GET /v1/pets\nPrefer: code=399", badParameter("code", "399", codes)},
		{"GET /v1/pets\nPrefer: code=600", badParameter("code", "600", codes)},
		{"GET /v1/pets\nPrefer: code=Hangup", badParameter("code", "Hangup", codes)},
		{"GET /v1/pets\nPrefer: code", badParameter("code", "empty", codes)},
		{"GET /v1/pets\nPrefer: delay=x", badParameter("delay", "x", delays)},
		{"GET /v1/pets\nPrefer: delay=", badParameter("delay", "empty", delays)},
		{"GET /v1/pets\nPrefer: delay=-1", badParameter("delay", "-1", delays)},
		{"GET /v1/pets\nPrefer: delay=1e1", badParameter("delay", "1e1", delays)},
		{"GET /v1/pets\nPrefer: delay=NaN", badParameter("delay", "NaN", delays)},
		{"GET /v1/pets\nPrefer: delay=30.01", badParameter("delay", "30.01", delays)},
		{"GET /v1/pets\nPrefer: delay=1.2.3", badParameter("delay", "1.2.3", delays)},
		{"GET /v1/pets\nPrefer: code=503, delay=" + testKey, badParameter("delay", "<API_KEY>", delays)},
		{"GET /v1/pets\nPrefer: delay=0", "200 []\nPreference-Applied: delay=0"},
		{"GET /v1/pets\nPrefer: delay=0.01,code=418", "418 im_a_teapot" + simulated + "\nPreference-Applied: code=418, delay=0.01"},
		{"POST /v1/pets\nPrefer: code=418, delay=.01\n\n" + `{"name":"","categoryId":1}`, "418 im_a_teapot" + simulated + "\nPreference-Applied: code=418, delay=.01"},
		{"POST /v1/pets\nPrefer: delay=0.01\n\n" + strings.Repeat(" ", maxBody+1), "413 request_entity_too_large: the body is over 65536 bytes\nConnection: close\nPreference-Applied: delay=0.01"},
		{"GET /v1/pets\nPrefer: wait=5, return=minimal, example=\"code=500, code=501\"", "200 []"},
		{"GET /v1/pets\nPrefer: example=\"a\\\",code=500\";x, respond-async\nPrefer: Code = \"418\" ; q=1, code=999", teapot},
		{"GET /v1/nothing\nPrefer: code=418", teapot},
		{"PUT /v1/pets/1\nPrefer: code=418", teapot},
		{"GET /v1/pets\nAuthorization\nPrefer: code=418", noKey},
		{"GET /v1/pets\nAuthorization\nPrefer: code=x", noKey},
		{"GET /healthz\nPrefer: code=418", `200 {"status":"ok"}`},
		{"DELETE /__admin/fault\nPrefer: code=418", "204"},
		{"POST /v1/pets\nPrefer: delay=0.01\n\n" + `{"name":"","categoryId":1}`, `201 {"id":1,"name":"","categoryId":1}` + "\nLocation: /v1/pets/1\nPreference-Applied: delay=0.01"},
	})
	c := s.dial(t, "GET /v1/pets HTTP/1.1\nHost: x\nAuthorization: Bearer "+testKey+"\nPrefer: code=hangup, delay=0.001\n\n")
	if got := rest(t, c); got != "" {
		t.Errorf("code=hangup answered %q", got)
	}
	s.stop()
	if !strings.Contains(s.stderr.String(), "msg=request method=GET path=/v1/pets status=0\n") {
		t.Errorf("a hangup is not in the log:\n%s", s.stderr)
	}
}

// Standing faults strike the requests that they are set for.
func TestStandingFault(t *testing.T) {
	s := start(t)
	const down = "503 service_unavailable" + simulated + "\nRetry-After: 1"
	const downClose = "503 service_unavailable" + simulated + "\nConnection: close\nRetry-After: 1"
	create := "POST /v1/pets\n\n" + `{"name":"","categoryId":1}`
	s.play(t,
		// The next two creates fail, then it recovers; nothing else is touched.
		[2]string{"PUT /__admin/fault?code=503&delay=0.001&times=2&operation=createPet", "204"},
		[2]string{"GET /v1/pets", "200 []"},
		[2]string{"PUT /v1/pets", "405 method_not_allowed: this path allows GET, HEAD, POST only\nAllow: GET, HEAD, POST"},
		[2]string{"POST /v1/pets/1", "405 method_not_allowed: this path allows GET, HEAD only\nAllow: GET, HEAD"},
		[2]string{"POST /v1/pets\nAuthorization", "401 unauthorized" + noKey[len("401 unauthorized"):]},
		[2]string{create, down},
		[2]string{"GET /v1/pets/1", "404 not_found: there is no pet 1" + going},
		[2]string{"POST /v1/pets\nPrefer: code=418\n\n{}", "418 im_a_teapot" + simulated + "\nConnection: close\nPreference-Applied: code=418"},
		[2]string{"POST /v1/pets\nPrefer: delay=0\n\n{}", "400 invalid_body: name is missing; it must be a string of valid Unicode\nPreference-Applied: delay=0"},
		[2]string{create, down},
		[2]string{create, `201 {"id":1,"name":"","categoryId":1}` + "\nLocation: /v1/pets/1"},

		// For ever, every operation, until it is replaced or cleared.
		[2]string{"PUT /__admin/fault?code=503", "204"},
		[2]string{"GET /v1/pets", down},
		[2]string{"HEAD /v1/pets", "503\nRetry-After: 1"},
		[2]string{create, downClose},
		[2]string{"GET /v1/nothing", down},
		[2]string{"GET /v1/pets\nPrefer: wait=1", down},
		[2]string{"GET /v1/pets\nAuthorization", noKey},
		[2]string{"GET /healthz", `200 {"status":"ok"}`},
		[2]string{"GET /openapi.json2", noPath},
		[2]string{"PUT /__admin/fault?code=500&operation=getPet", "204"},
		[2]string{"GET /v1/pets", `200 [{"id":1,"name":"","categoryId":1}]`},
		[2]string{"GET /v1/pets/1", "500 internal_server_error" + simulated},
		[2]string{"HEAD /v1/pets/x", "500"},
		[2]string{"GET /v1/pets/", noPath},
		[2]string{"PUT /v1/pets/1", "405 method_not_allowed: this path allows GET, HEAD only\nAllow: GET, HEAD"},
		[2]string{"PUT /__admin/fault?delay=0&operation=listPets", "204"},
		[2]string{"GET /v1/pets/2", "404 not_found: there is no pet 2" + going},
		[2]string{"GET /v1/pets", `200 [{"id":1,"name":"","categoryId":1}]`},
		[2]string{"PUT /__admin/fault?code=503&times=9223372036854775807&operation=listPets", "204"},
		[2]string{"HEAD /v1/pets", "503\nRetry-After: 1"},
		[2]string{create, `201 {"id":2,"name":"","categoryId":1}` + "\nLocation: /v1/pets/2"},
		[2]string{"DELETE /__admin/fault", "204"},
		[2]string{"DELETE /__admin/fault", "204"},
		[2]string{"HEAD /v1/pets", "200"},
		[2]string{"PUT /__admin/fault?code=503", "204"},
		[2]string{"POST /__admin/reset", "204"},
		[2]string{"GET /v1/pets", "200 []"},

		// What is refused changes nothing.
		[2]string{"PUT /__admin/fault?code=503", "204"},
		[2]string{"PUT /__admin/fault?code=500\nAuthorization", noKey},
		[2]string{"PUT /__admin/fault", "400 invalid_parameter: code or delay must be given"},
		[2]string{"PUT /__admin/fault?times=1&operation=getPet", "400 invalid_parameter: code or delay must be given"},
		[2]string{"PUT /__admin/fault?code=600", badParameter("code", "600", codes)},
		[2]string{"PUT /__admin/fault?code=500&delay=31", badParameter("delay", "31", delays)},
		[2]string{"PUT /__admin/fault?code=500&times=0", badParameter("times", "0", "an integer from 1 to 9223372036854775807")},
		[2]string{"PUT /__admin/fault?code=500&times=", badParameter("times", "empty", "an integer from 1 to 9223372036854775807")},
		[2]string{"PUT /__admin/fault?code=500&operation=listOrders", badParameter("operation", "listOrders", "listPets, createPet or getPet")},
		[2]string{"PUT /__admin/fault?code=500&operation=", badParameter("operation", "empty", "listPets, createPet or getPet")},
		[2]string{"PUT /__admin/fault?code=500&code=500", badParameter("code", "given 2 times", "given once")},
		[2]string{"PUT /__admin/fault?code=500&operation=getPet&operation=", badParameter("operation", "given 2 times", "given once")},
		[2]string{"PUT /__admin/fault?code=500&time=1", badParameter("the parameter", "time", "code, delay, times or operation")},
		[2]string{"PUT /__admin/fault?code=500&%", `400 invalid_parameter: the query is malformed: invalid URL escape "%"`},
		[2]string{"GET /v1/pets", down},
		[2]string{"PUT /__admin/fault?code=hangup&times=1", "204"},
	)
	if got := rest(t, s.dial(t, "GET /v1/pets HTTP/1.1\nHost: x\nAuthorization: Bearer "+testKey+"\n\n")); got != "" {
		t.Errorf("a hangup answered %q", got)
	}
	s.play(t, [2]string{"GET /v1/pets", "200 []"})

	// Of many at once, exactly as many are hit.
	s.play(t, [2]string{"PUT /__admin/fault?code=503&times=10&operation=listPets", "204"})
	var hits atomic.Int64
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			switch got := s.call(t, []string{"GET /v1/pets", "HEAD /v1/pets"}[i%2]); got[:3] {
			case "503":
				hits.Add(1)
			case "200":
			default:
				t.Error(got)
			}
		}()
	}
	wg.Wait()
	if hits.Load() != 10 {
		t.Errorf("times=10 hit %d of 100", hits.Load())
	}
}

// waiting waits until n requests are held up by wait.
func waiting(t *testing.T, n int) {
	t.Helper()
	buf := make([]byte, 16<<20)
	got := 0
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if got = bytes.Count(buf[:runtime.Stack(buf, true)], []byte("\npetstore.wait(")); got == n {
			return
		}
	}
	t.Errorf("%d requests wait, want %d", got, n)
}

// A delayed request holds nobody up, outlives the timeouts, ends with its
// client, and is answered at once when the service stops.
func TestDelay(t *testing.T) {
	const long = "HTTP/1.1\nHost: x\nAuthorization: Bearer " + testKey + "\nPrefer: delay=30\n"
	const body = `{"name":"a","categoryId":1}`
	s := start(t)
	for _, send := range []string{"GET /v1/pets " + long + "\n", "POST /v1/pets " + long + "Content-Length: 27\n\n" + body} {
		c := s.dial(t, send)
		waiting(t, 1)
		c.Close()
		waiting(t, 0)
	}
	list := s.dial(t, "GET /v1/pets "+long+"\n")
	create := s.dial(t, "POST /v1/pets "+long+"Content-Length: 27\n\n"+body)
	waiting(t, 2)
	s.check(t, [][2]string{{"GET /v1/pets", "200 []"}, {"GET /v1/pets\nPrefer: code=500", "500 internal_server_error: this error is simulated, as was asked for\nPreference-Applied: code=500"}})
	s.stop()
	got := strings.Replace(rest(t, create), "Connection: close\n", "", 1) // net/http may or may not know yet that it ends
	if want := "HTTP/1.1 201 Created\nLocation: /v1/pets/1\nPreference-Applied: delay=30\n\n" + `{"id":1,"name":"a","categoryId":1}` + "\n"; got != want {
		t.Errorf("the delayed create got %q\nwant %q", got, want)
	}
	if got := rest(t, list); !strings.HasPrefix(got, "HTTP/1.1 200 OK\nPreference-Applied: delay=30\n") {
		t.Errorf("the delayed list got %q", got)
	}
}

// -latency delays all that is under /v1, refusals too, and nothing else.
func TestLatency(t *testing.T) {
	s := start(t, "-latency", "30s")
	s.check(t, [][2]string{{"GET /healthz", `200 {"status":"ok"}`}, {"POST /__admin/reset", "204"}, {"GET /v1x", noPath}})
	auth := "Host: x\nAuthorization: Bearer " + testKey + "\n"
	var conns []net.Conn
	for _, send := range []string{"GET /v1/pets HTTP/1.1\n" + auth + "\n", "GET /v1 HTTP/1.1\nHost: x\n\n",
		"POST /v1/pets HTTP/1.1\n" + auth + "Content-Length: 27\n\n" + `{"name":"a","categoryId":1}`} {
		conns = append(conns, s.dial(t, send))
	}
	waiting(t, 3)
	s.stop()
	for i, want := range []string{"HTTP/1.1 200 OK\n", "HTTP/1.1 401 Unauthorized\n", "HTTP/1.1 201 Created\n"} {
		if got := rest(t, conns[i]); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// api/openapi.json and the service tell the same: each documented status of
// each operation is answered, with the documented headers and body; no other
// one is; and the examples in it are true to their schemas.
func TestOpenAPI(t *testing.T) {
	doc, err := decode(openapi)
	if err != nil {
		t.Fatal(err)
	}
	one := `{"name":"a","categoryId":1}`
	s := listen(t, quietAPI(state{size: maxSize - 3*recordSize - 200}), func(*http.Server) {})
	answered := map[string]bool{}
	for _, c := range [][2]string{
		{"get /pets", "GET /v1/pets"},
		{"post /pets", "POST /v1/pets\n\n" + one},
		{"post /pets", "POST /v1/pets\n\n" + `{"name":"b","categoryId":-9223372036854775808,"status":"sold"}`},
		{"get /pets", "GET /v1/pets?limit=1"},
		{"get /pets", "GET /v1/pets?limit=0"},
		{"get /pets", "GET /v1/pets\nAuthorization"},
		{"get /pets", "GET /v1/pets\nPrefer: code=503"},
		{"post /pets", "POST /v1/pets\n\n{}"},
		{"post /pets", "POST /v1/pets\nAuthorization: Bearer x\n\n{}"},
		{"post /pets", ""}, // late
		{"post /pets", "POST /v1/pets\n\n" + strings.Repeat(" ", maxBody+1)},
		{"post /pets", "POST /v1/pets\nContent-Type: text/plain\n\n{}"},
		{"post /pets", "POST /v1/pets\n\n" + `{"name":"` + strings.Repeat("x", 500) + `","categoryId":1}`},
		{"post /pets", "POST /v1/pets\nPrefer: code=429\n\n{}"},
		{"get /pets/{petId}", "GET /v1/pets/2"},
		{"get /pets/{petId}", "GET /v1/pets/x"},
		{"get /pets/{petId}", "GET /v1/pets/2?%"},
		{"get /pets/{petId}", "GET /v1/pets/2\nAuthorization"},
		{"get /pets/{petId}", "GET /v1/pets/9"},
		{"get /pets/{petId}", "GET /v1/pets/9\nPrefer: code=599"},
	} {
		var resp *http.Response
		if c[1] == "" {
			if resp, err = http.ReadResponse(bufio.NewReader(late(t)), nil); err != nil {
				t.Fatal(err)
			}
		} else {
			resp = s.do(t, c[1])
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		method, path, _ := strings.Cut(c[0], " ")
		responses := doc.at("paths", path, method, "responses")
		status := strconv.Itoa(resp.StatusCode)
		if !responses.has(status) {
			status = "default"
		}
		if status == "default" && resp.Header.Get("Preference-Applied") == "" {
			t.Errorf("%q: the status %d is not documented", c[1], resp.StatusCode)
		}
		answered[c[0]+" "+status] = true
		response := responses.at(status)
		value, err := decode(body)
		if err != nil {
			t.Errorf("%q: %v", c[1], err)
		}
		if err := response.at("content", resp.Header.Get("Content-Type"), "schema").validate(value.v); err != nil {
			t.Errorf("%q: %v in %s", c[1], err, body)
		}
		headers := response.at("headers")
		for name := range headers.object() {
			if headers.at(name, "required").v == true && resp.Header.Get(name) == "" {
				t.Errorf("%q: no header %s", c[1], name)
			}
		}
		for name := range resp.Header {
			documented := slices.Contains([]string{"Content-Type", "Content-Length", "Date", "Connection"}, name)
			for known := range headers.object() {
				documented = documented || strings.EqualFold(known, name)
			}
			if !documented {
				t.Errorf("%q: the header %s is not documented", c[1], name)
			}
		}
	}
	operations := map[string]string{}
	for path := range doc.at("paths").object() {
		for method := range doc.at("paths", path).object() {
			operation := doc.at("paths", path, method)
			operations[operation.at("operationId").v.(string)] = method + " " + path
			for status := range operation.at("responses").object() {
				if !answered[method+" "+path+" "+status] {
					t.Errorf("%s %s: the status %s is documented and was not answered", method, path, status)
				}
				for media := range operation.at("responses", status, "content").object() {
					content := operation.at("responses", status, "content", media)
					if err := content.at("schema").validate(content.at("example").v); err != nil {
						t.Errorf("%s %s: the example for %s: %v", method, path, status, err)
					}
				}
			}
		}
	}
	want := map[string]string{"listPets": "get /pets", "createPet": "post /pets", "getPet": "get /pets/{petId}"}
	if !reflect.DeepEqual(operations, want) {
		t.Errorf("operations %v, want %v", operations, want)
	}
	var schemas []string
	for name := range doc.at("components", "schemas").object() {
		schemas = append(schemas, name)
	}
	slices.Sort(schemas)
	if want := []string{"Error", "NewPet", "Pet", "PetStatus", "Pets"}; !slices.Equal(schemas, want) {
		t.Errorf("schemas %v, want %v", schemas, want)
	}
}

// node is a part of a JSON document.
type node struct{ v, root any }

func decode(b []byte) (node, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return node{v, v}, err
}

// at follows members, and references on the way.
func (n node) at(members ...string) node {
	for _, name := range append(members, "") {
		if ref, ok := n.object()["$ref"].(string); ok {
			n = node{n.root, n.root}.at(strings.Split(ref, "/")[1:]...)
		}
		if name != "" {
			n.v = n.object()[name]
		}
	}
	return n
}

func (n node) object() map[string]any {
	object, _ := n.v.(map[string]any)
	return object
}

func (n node) has(name string) bool { return n.object()[name] != nil }

// validate tells what in v the schema n does not allow.
func (n node) validate(v any) error {
	n = n.at()
	if n.v == nil {
		return errors.New("no schema")
	}
	all, _ := n.object()["allOf"].([]any)
	for _, part := range all {
		if err := (node{part, n.root}).validate(v); err != nil {
			return err
		}
	}
	bound := func(name string) (int64, bool) {
		number, ok := n.object()[name].(json.Number)
		i, _ := number.Int64()
		return i, ok
	}
	kind := n.object()["type"]
	switch v := v.(type) {
	case map[string]any:
		if kind != "object" && all == nil {
			return fmt.Errorf("an object for %v", n.v)
		}
		required, _ := n.object()["required"].([]any)
		for _, name := range required {
			if v[name.(string)] == nil {
				return fmt.Errorf("no %v", name)
			}
		}
		for name := range n.at("properties").object() {
			if v[name] != nil {
				if err := n.at("properties", name).validate(v[name]); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
		}
	case []any:
		if max, ok := bound("maxItems"); kind != "array" || ok && len(v) > int(max) {
			return fmt.Errorf("%d items for %v", len(v), n.v)
		}
		for _, item := range v {
			if err := n.at("items").validate(item); err != nil {
				return err
			}
		}
	case string:
		enum, ok := n.object()["enum"].([]any)
		pattern, _ := n.object()["pattern"].(string)
		if kind != "string" || ok && !slices.Contains(enum, any(v)) || !regexp.MustCompile(pattern).MatchString(v) {
			return fmt.Errorf("%q for %v", v, n.v)
		}
	case json.Number:
		i, err := v.Int64()
		min, hasMin := bound("minimum")
		max, hasMax := bound("maximum")
		if kind != "integer" || err != nil || hasMin && i < min || hasMax && i > max {
			return fmt.Errorf("%v for %v", v, n.v)
		}
	default:
		return fmt.Errorf("%v for %v", v, n.v)
	}
	return nil
}

// canned is an answer for a handler that does nothing else than send it.
type canned struct {
	Status int
	Header http.Header
	Body   string
}

// serveChild is the process of a benchmark's server: a petstore, or a bare one
// that gives one canned answer. It answers each line on stdin with the CPU
// time and the number of allocations that it has used so far.
func serveChild(mode string) int {
	stdin := bufio.NewReader(os.Stdin)
	var answer canned
	if mode == "bare" {
		json.NewDecoder(stdin).Decode(&answer)
	}
	go func() {
		for {
			if _, err := stdin.ReadString('\n'); err != nil {
				os.Exit(0)
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			fmt.Println(cpuTicks(), m.Mallocs)
		}
	}()
	if mode == "petstore" {
		return run(context.Background(), os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("http://%s/v1\n", ln.Addr())
	body := []byte(answer.Body)
	srv := newServer(&api{log: slog.New(slog.NewTextHandler(os.Stderr, nil))}) // for its time limits
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > 0 {
			io.Copy(io.Discard, r.Body)
		}
		for name, values := range answer.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Status)
		w.Write(body)
	})
	panic(srv.Serve(ln))
}

// cpuTicks is the CPU time of this process, in the kernel's ticks of 10 ms.
func cpuTicks() (ticks int) {
	stat, _ := os.ReadFile("/proc/self/stat")
	if fields := strings.Fields(string(stat)); len(fields) > 14 {
		user, _ := strconv.Atoi(fields[13])
		system, _ := strconv.Atoi(fields[14])
		ticks = user + system
	}
	return ticks
}

// childProcess is a running serveChild.
type childProcess struct {
	service
	in  io.Writer
	out *bufio.Reader
}

func startChild(b testing.TB, mode string, answer *canned, stderr io.Writer, args ...string) *childProcess {
	b.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"-addr", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), "PETSTORE_TEST_CHILD="+mode, "PETSTORE_API_KEY="+testKey)
	cmd.Stderr = stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); cmd.Wait() })
	if answer != nil {
		json.NewEncoder(in).Encode(answer)
	}
	c := &childProcess{in: in, out: bufio.NewReader(out)}
	c.addr = address(c.out)
	return c
}

// used returns the CPU time and the allocations that the process has used.
func (c *childProcess) used() (cpu time.Duration, mallocs int) {
	fmt.Fprintln(c.in)
	var ticks int
	fmt.Fscan(c.out, &ticks, &mallocs)
	return time.Duration(ticks) * 10 * time.Millisecond, mallocs
}

// load sends requests over connections that stay open, and reads the answers.
type load struct {
	request []byte
	conns   []*bufio.ReadWriter
}

func newLoad(b testing.TB, addr, request string) *load {
	l := &load{request: []byte(request)}
	for range 8 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c.Close() })
		l.conns = append(l.conns, bufio.NewReadWriter(bufio.NewReaderSize(c, 16<<10), bufio.NewWriter(c)))
	}
	return l
}

// send sends n requests.
func (l *load) send(b testing.TB, n int) {
	var wg sync.WaitGroup
	for i, c := range l.conns {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := i; j < n; j += len(l.conns) {
				c.Write(l.request)
				c.Flush()
				length := 0
				for {
					line, err := c.ReadSlice('\n')
					if err != nil {
						b.Error(err)
						return
					}
					if rest, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
						length, _ = strconv.Atoi(string(bytes.TrimSpace(rest)))
					}
					if len(line) == 2 {
						break
					}
				}
				c.Discard(length)
			}
		}()
	}
	wg.Wait()
}

// benchmark compares petstore with a bare net/http handler that has the same
// time limits and sends the same answer.
func benchmark(b *testing.B, petstore *childProcess, request string) {
	b.Helper()
	resp := petstore.do(b, request)
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode >= 300 {
		b.Fatalf("%s: %s", request, body)
	}
	resp.Header.Del("Date")
	compare(b, petstore, startChild(b, "bare", &canned{resp.StatusCode, resp.Header, string(body)}, nil), request)
}

// compare reports what a request costs petstore and bare, in CPU time of their
// processes and in allocations. They take turns.
func compare(b *testing.B, petstore, bare *childProcess, request string) {
	b.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		b.Skip("CPU time is read from /proc")
	}
	head, content, _ := strings.Cut(request, "\n\n")
	raw := strings.ReplaceAll(head, "\n", "\r\n")
	raw = strings.Replace(raw+"\r\n", "\r\n", " HTTP/1.1\r\nHost: "+petstore.addr+"\r\nAuthorization: Bearer "+testKey+"\r\n", 1)
	if content != "" {
		raw += "Content-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(content)) + "\r\n"
	}
	raw += "\r\n" + content
	ours, theirs := newLoad(b, petstore.addr, raw), newLoad(b, bare.addr, raw)
	ours.send(b, 1000)
	theirs.send(b, 1000)

	ourCPU, ourMallocs := petstore.used()
	bareCPU, bareMallocs := bare.used()
	b.ResetTimer()
	for done := 0; done < b.N; done += 500 {
		n := min(500, b.N-done)
		ours.send(b, n)
		theirs.send(b, n)
	}
	b.StopTimer()
	ourCPU2, ourMallocs2 := petstore.used()
	bareCPU2, bareMallocs2 := bare.used()
	per := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(b.N) }
	b.ReportMetric(0, "ns/op") // of both, and of the load
	b.ReportMetric(per(ourCPU2-ourCPU)/1000, "cpu-µs/op")
	b.ReportMetric(per(bareCPU2-bareCPU)/1000, "bare-cpu-µs/op")
	b.ReportMetric(per(ourCPU2-ourCPU)/max(per(bareCPU2-bareCPU), 1), "ratio")
	b.ReportMetric(float64(ourMallocs2-ourMallocs)/float64(b.N), "server-allocs/op")
	b.ReportMetric(float64(bareMallocs2-bareMallocs)/float64(b.N), "bare-allocs/op")
}

// seedPets writes a seed of n pets of 75 bytes of JSON each. One in three is
// sold, the last ten are pending, and the others are available.
func seedPets(b testing.TB, n int) string {
	b.Helper()
	file := filepath.Join(b.TempDir(), "pets.json")
	f, err := os.Create(file)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriter(f)
	for i := 1; i <= n; i++ {
		status := Available
		if i > n-10 {
			status = Pending
		} else if i%3 == 0 {
			status = Sold
		}
		p := Pet{int64(i), NewPet{"", int64(i % 100), status}}
		p.Name = strings.Repeat("x", 75-len(encode(p)))
		if i == 1 {
			w.WriteString("[")
		} else {
			w.WriteString(",\n")
		}
		w.Write(encode(p))
	}
	w.WriteString("]")
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		b.Fatal(err)
	}
	return file
}

func BenchmarkPetstore(b *testing.B) {
	for _, n := range []int{1000, 1000000} {
		seed := seedPets(b, n)
		for _, c := range []struct{ name, request string }{
			{"list20", "GET /v1/pets"},
			{"list100", "GET /v1/pets?limit=100"},
			{"filtered", "GET /v1/pets?status=sold"},
			{"sparse", "GET /v1/pets?status=pending"},
			{"get", fmt.Sprintf("GET /v1/pets/%d", n-1)},
			{"create", "POST /v1/pets\n\n" + `{"name":"` + strings.Repeat("x", 24) + `","categoryId":7,"status":"sold"}`},
		} {
			b.Run(fmt.Sprintf("%s/pets=%d", c.name, n), func(b *testing.B) {
				benchmark(b, startChild(b, "petstore", nil, nil, "-quiet", "-seed", seed), c.request)
			})
		}
	}
}

// BenchmarkLog compares a service that logs to a pipe with a quiet one.
func BenchmarkLog(b *testing.B) {
	seed := seedPets(b, 1000)
	r, w := io.Pipe()
	go io.Copy(io.Discard, r)
	compare(b, startChild(b, "petstore", nil, w, "-seed", seed), startChild(b, "petstore", nil, nil, "-quiet", "-seed", seed), "GET /v1/pets")
}

// expected tells what createPet must make of a body, in another way than the
// service does: token by token.
func expected(body []byte) (p NewPet, ok bool) {
	if len(body) > maxBody || !utf8.Valid(body) || !json.Valid(body) {
		return p, false
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if token, _ := dec.Token(); token != json.Delim('{') {
		return p, false
	}
	seen := map[string]int{}
	good := map[string]bool{"status": true}
	for dec.More() {
		name, _ := dec.Token()
		start := dec.InputOffset()
		value, _ := dec.Token()
		literal := body[start:dec.InputOffset()]
		for depth := 0; ; {
			switch value {
			case json.Delim('{'), json.Delim('['):
				depth++
			case json.Delim('}'), json.Delim(']'):
				depth--
			}
			if depth == 0 {
				break
			}
			value, _ = dec.Token()
		}
		text, isText := value.(string)
		number, _ := value.(json.Number)
		n, err := strconv.ParseInt(number.String(), 10, 64)
		seen[name.(string)]++
		switch name {
		case "name":
			p.Name, good["name"] = text, isText && !loneSurrogate(literal)
		case "categoryId":
			p.CategoryID, good["categoryId"] = n, err == nil
		case "status":
			p.Status, good["status"] = PetStatus(text), text == "available" || text == "pending" || text == "sold"
		}
	}
	return p, good["name"] && good["categoryId"] && good["status"] && seen["name"] == 1 && seen["categoryId"] == 1 && seen["status"] <= 1
}

// loneSurrogate tells whether a JSON string escapes half a surrogate pair.
func loneSurrogate(literal []byte) bool {
	var units []uint16
	for i := 0; i < len(literal); i++ {
		unit := uint16('x')
		if literal[i] == '\\' {
			if i++; literal[i] == 'u' {
				n, _ := strconv.ParseUint(string(literal[i+1:i+5]), 16, 16)
				unit = uint16(n)
				i += 4
			}
		}
		units = append(units, unit)
	}
	for i := 0; i < len(units); i++ {
		if utf16.IsSurrogate(rune(units[i])) {
			if i+1 == len(units) || utf16.DecodeRune(rune(units[i]), rune(units[i+1])) == utf8.RuneError {
				return true
			}
			i++
		}
	}
	return false
}

// direct sends a request to the handler without a connection in between.
func direct(t *testing.T, h http.Handler, method, target string, body []byte, change func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, bytes.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+testKey)
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if strings.Contains(w.Body.String(), "has a bug") || w.Code != 204 && !json.Valid(w.Body.Bytes()) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	return w
}

// quietAPI is a service that logs nothing, and whose delays end at once.
func quietAPI(seed state) *api {
	stopping := make(chan struct{})
	close(stopping)
	return &api{key: testKey, pets: newStore(seed), stopping: stopping, quiet: true, log: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

// What createPet takes is what the rules take, and it reads back unchanged.
func FuzzCreate(f *testing.F) {
	for _, body := range []string{
		`{"name":"Rex","categoryId":1,"status":"sold"}`, ` { "name" : "\ud83d\ude00\u0000\\\"<" , "categoryId" : -0 , "x" : [ { "}" : "]" } ] } `,
		`{"name":"\n","categoryId":1}`, `{"name":"\"","categoryId":1}`, `{"name":"\\","categoryId":1}`,
		`{"name":"\ud800","categoryId":1}`, `{"n\u0061me":"a","name":"a","categoryId":1}`, `{"name":"a","categoryId":9223372036854775808}`,
		`{"name":"a","categoryId":1e3}`, `{"name":"a","categoryId":1,"status":null}`, "{\"name\":\"\xff\",\"categoryId\":1}", `{"name":"a","categoryId":1}{}`, `[]`, ``,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		h := quietAPI(state{}).routes()
		want, ok := expected(body)
		created := direct(t, h, "POST", "/v1/pets", body, nil)
		if ok != (created.Code == 201) {
			t.Fatalf("%q: accepted %v; got %d %s", body, ok, created.Code, created.Body)
		}
		next := `{"id":1,"name":"","categoryId":1}` + "\n"
		if ok {
			read := direct(t, h, "GET", "/v1/pets/1", nil, nil)
			var p Pet
			if err := json.Unmarshal(read.Body.Bytes(), &p); err != nil || p != (Pet{1, want}) || read.Body.String() != created.Body.String() {
				t.Errorf("%q: want %+v, read %s", body, want, read.Body)
			}
			if string(encode(p))+"\n" != read.Body.String() {
				t.Errorf("%s is not %s", read.Body, encode(p))
			}
			next = strings.Replace(next, "1", "2", 1)
		}
		if got := direct(t, h, "POST", "/v1/pets", []byte(`{"name":"","categoryId":1}`), nil).Body.String(); got != next {
			t.Errorf("%q: the next pet is %s", body, got)
		}
	})
}

// What listPets takes as a query is what the rules take, and it answers the
// page that was asked for.
func FuzzQuery(f *testing.F) {
	for _, query := range []string{"", "limit=5", "status=sold&limit=1&after=3", "limit=0", "limit=%31", "limit=+1", "limit=1&limit=1", "a;b", "%zz", "after=-9223372036854775808", "status="} {
		f.Add(query)
	}
	var seed state
	statuses := []string{"", "available", "pending", "sold"}
	for id := int64(1); id <= 120; id++ {
		seed.put(id, NewPet{"", id, PetStatus(statuses[id%4])})
	}
	h := quietAPI(seed).routes()
	integer := regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	f.Fuzz(func(t *testing.T, query string) {
		values, err := url.ParseQuery(query)
		ok := err == nil
		number := func(name string, n int64) int64 {
			if given, is := values[name]; is {
				n, err = strconv.ParseInt(given[0], 10, 64)
				ok = ok && len(given) == 1 && err == nil && integer.MatchString(given[0])
			}
			return n
		}
		limit, after := number("limit", 20), number("after", 0)
		status, filtered := values["status"]
		ok = ok && limit >= 1 && limit <= 100 && (!filtered || len(status) == 1 && slices.Contains(statuses[1:], status[0]))
		w := direct(t, h, "GET", "/v1/pets", nil, func(r *http.Request) { r.URL.RawQuery = query })
		if ok != (w.Code == 200) || !ok && w.Code != 400 {
			t.Fatalf("%q: accepted %v, got %d %s", query, ok, w.Code, w.Body)
		}
		if !ok {
			return
		}
		var want []string
		more := false
		for _, p := range seed.pets[""] {
			if p.id > after && (!filtered || statuses[p.id%4] == status[0]) {
				if more = len(want) == int(limit); more {
					break
				}
				want = append(want, p.json)
			}
		}
		if got := w.Body.String(); got != "["+strings.Join(want, ",")+"]\n" || more != (w.Header().Get("Link") != "") {
			t.Errorf("%q: got %s %v", query, got, w.Header())
		}
	})
}

// A Prefer header does what it says, and nothing else does.
func FuzzPrefer(f *testing.F) {
	for _, header := range []string{"", "code=503", "code=503, delay=1.5", "Code = \"418\";x", "a=\"b,code=500\", delay=30", "code=hangup", "code=99", "delay=-1", "code=404,code=500", ",;=\"\\\""} {
		f.Add(header)
	}
	h := quietAPI(state{}).routes()
	f.Fuzz(func(t *testing.T, header string) {
		var list []string
		quoted, escaped, start := false, false, 0
		for i := 0; i < len(header); i++ {
			switch c := header[i]; {
			case escaped:
				escaped = false
			case quoted && c == '\\':
				escaped = true
			case c == '"':
				quoted = !quoted
			case c == ',' && !quoted:
				list = append(list, header[start:i])
				start = i + 1
			}
		}
		if quoted {
			return // no list
		}
		wanted := map[string]string{}
		for _, p := range append(list, header[start:]) {
			p, _, _ = strings.Cut(p, ";")
			name, value, _ := strings.Cut(p, "=")
			name = strings.ToLower(strings.TrimSpace(name))
			if _, again := wanted[name]; !again {
				wanted[name] = strings.Trim(strings.TrimSpace(value), "\"")
			}
		}
		code, hasCode := wanted["code"]
		delay, hasDelay := wanted["delay"]
		want := 200
		if hasCode {
			if want, _ = strconv.Atoi(code); want < 400 || want > 599 || len(code) != 3 {
				want = 400
			}
		}
		seconds, err := strconv.ParseFloat(delay, 64)
		if hasDelay && (err != nil || !regexp.MustCompile(`^[0-9.]+$`).MatchString(delay) || seconds > 30) {
			want = 400
		}
		defer func() {
			if v := recover(); v != nil && (v != http.ErrAbortHandler || code != "hangup") {
				panic(v)
			}
		}()
		w := direct(t, h, "GET", "/v1/pets", nil, func(r *http.Request) { r.Header["Prefer"] = []string{header} })
		if w.Code != want || (w.Header().Get("Preference-Applied") != "") != (hasCode || hasDelay) && want != 400 {
			t.Errorf("Prefer: %q: got %d %v, want %d", header, w.Code, w.Header(), want)
		}
	})
}

// A seed that the rules take is what is listed, and any other is refused.
func FuzzSeed(f *testing.F) {
	for _, seed := range []string{`[]`, `[{"name":"a","categoryId":1},{"id":7,"name":"b","categoryId":2,"status":"sold"},{"id":3,"name":"c","categoryId":3}]`,
		`[{"id":1,"name":"a","categoryId":1},{"id":1,"name":"a","categoryId":1}]`, `[{"id":9223372036854775806,"name":"","categoryId":1},{"name":"","categoryId":1}]`, `[1]`, `{}`, `[] []`, `[{"name":"a"`} {
		f.Add([]byte(seed))
	}
	file := filepath.Join(f.TempDir(), "pets.json")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		var want, later []Pet
		var elements []json.RawMessage
		ok := json.Unmarshal(content, &elements) == nil && elements != nil
		used := map[int64]bool{}
		for _, element := range elements {
			p, good := expected(element)
			ids := 0
			var id int64
			dec := json.NewDecoder(bytes.NewReader(element))
			dec.UseNumber()
			dec.Token()
			for good && dec.More() {
				name, _ := dec.Token()
				var value any
				dec.Decode(&value)
				if name == "id" {
					number, _ := value.(json.Number)
					ids++
					var err error
					id, err = strconv.ParseInt(number.String(), 10, 64)
					good = ids == 1 && err == nil && id > 0 && id < math.MaxInt64 && !used[id]
				}
			}
			ok = ok && good
			if ids == 0 {
				later = append(later, Pet{0, p})
			} else {
				used[id] = true
				want = append(want, Pet{id, p})
			}
		}
		slices.SortFunc(want, func(a, b Pet) int { return cmp.Compare(a.ID, b.ID) })
		last := int64(0)
		if len(want) > 0 {
			last = want[len(want)-1].ID
		}
		for _, p := range later {
			if last++; last == math.MaxInt64 {
				ok = false
				break
			}
			want = append(want, Pet{last, p.NewPet})
		}
		var pets state
		err := pets.readSeed(file)
		if ok != (err == nil) {
			t.Fatalf("%q: accepted %v, got %v", content, ok, err)
		}
		if err != nil {
			if !strings.HasPrefix(err.Error(), file+": ") || strings.Contains(err.Error(), "Pet") {
				t.Errorf("%q: %v", content, err)
			}
			return
		}
		s := newStore(pets)
		for i, p := range s.pets[""] {
			if i >= len(want) || p != (record{want[i].ID, string(encode(want[i]))}) {
				t.Fatalf("%q: pet %d is %v", content, i, p)
			}
		}
		if len(s.pets[""]) != len(want) || s.lastID != last {
			t.Errorf("%q: %d pets up to %d, want %d up to %d", content, len(s.pets[""]), s.lastID, len(want), last)
		}
	})
}

// Long random sequences of all operations do what a plain slice does.
func TestModel(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	statuses := []PetStatus{"", Available, Pending, Sold}
	for range 5 {
		var seed []Pet
		for id := random.Int63n(5) + 1; len(seed) < 60; id += random.Int63n(4) + 1 {
			seed = append(seed, Pet{id, NewPet{strings.Repeat("n", random.Intn(3)), random.Int63(), statuses[random.Intn(4)]}})
		}
		shuffled := slices.Clone(seed)
		random.Shuffle(len(seed), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		s := start(t, "-quiet", "-seed", seedFile(t, string(encode(shuffled))))
		model := slices.Clone(seed)
		last := seed[len(seed)-1].ID
		next := last + 1
		for step := range 2000 {
			var request, want string
			switch n := random.Intn(100); {
			case n < 20:
				p := Pet{next, NewPet{fmt.Sprint("pet ", step), random.Int63() - random.Int63(), statuses[random.Intn(4)]}}
				request = "POST /v1/pets\n\n" + string(encode(p.NewPet))
				want = fmt.Sprintf("201 %s\nLocation: /v1/pets/%d", encode(p), next)
				model = append(model, p)
				next++
			case n < 40:
				id := random.Int63n(next+3) - 1
				request = fmt.Sprintf("GET /v1/pets/%d", id)
				want = fmt.Sprintf("404 not_found: there is no pet %d", id) + going
				for _, p := range model {
					if p.ID == id {
						want = "200 " + string(encode(p)) + going
					}
				}
			case n < 99:
				limit, after, status := 20, int64(0), statuses[random.Intn(4)]
				query := ""
				if random.Intn(2) == 0 {
					limit = random.Intn(100) + 1
					query += fmt.Sprintf("limit=%d&", limit)
				}
				if status != "" {
					query += "status=" + string(status) + "&"
				}
				link := query
				if random.Intn(2) == 0 {
					after = random.Int63n(next+5) - 2
					query += fmt.Sprintf("after=%d&", after)
				}
				request = "GET /v1/pets?" + query
				var page []string
				for _, p := range model {
					if p.ID > after && (status == "" || p.Status == status) {
						if len(page) == limit {
							link = fmt.Sprintf("\nLink: </v1/pets?%safter=%d>; rel=\"next\"", link, after)
							break
						}
						page = append(page, string(encode(p)))
						after = p.ID
					}
				}
				want = "200 [" + strings.Join(page, ",") + "]"
				if strings.HasPrefix(link, "\n") {
					want += link
				}
			default:
				request, want = "POST /__admin/reset", "204"
				model, next = slices.Clone(seed), last+1
			}
			if got := s.call(t, request); got != want {
				t.Fatalf("step %d: %s\n got %s\nwant %s", step, request, got, want)
			}
		}
	}
}

// A mix of all operations, faults, delays, resets and clients that go away,
// for the duration in PETSTORE_SOAK, leaves nothing behind and loses nothing.
func TestSoak(t *testing.T) {
	duration, err := time.ParseDuration(os.Getenv("PETSTORE_SOAK"))
	if err != nil {
		t.Skip("PETSTORE_SOAK is not set to a duration, such as 10m")
	}
	client.CloseIdleConnections()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	goroutines := runtime.NumGoroutine()

	s := start(t, "-quiet", "-seed", seedFile(t, `[{"id":5,"name":"seed","categoryId":1}]`))
	var mu sync.RWMutex // held for writing by who resets
	var createdMu sync.Mutex
	created := map[int64]string{}
	end := time.Now().Add(duration)
	var wg sync.WaitGroup
	var total atomic.Int64
	id := regexp.MustCompile(`^201 {"id":(\d+),`)
	for worker := range 64 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			random := rand.New(rand.NewSource(int64(worker)))
			name := fmt.Sprintf(`"w%d"`, worker)
			for time.Now().Before(end) {
				total.Add(1)
				mu.RLock()
				var request, want string
				n := random.Intn(1000)
				switch {
				case n < 300:
					got := s.call(t, "POST /v1/pets\n\n"+`{"name":`+name+`,"categoryId":1,"status":"sold"}`)
					if m := id.FindStringSubmatch(got); m == nil {
						t.Errorf("create: %s", got)
					} else {
						n, _ := strconv.ParseInt(m[1], 10, 64)
						createdMu.Lock()
						if created[n] != "" {
							t.Errorf("the id %d is given twice", n)
						}
						created[n] = name
						createdMu.Unlock()
					}
				case n < 500:
					request, want = fmt.Sprintf("GET /v1/pets?limit=%d&status=sold&after=%d", random.Intn(100)+1, random.Intn(10000)), "200 "
				case n < 600:
					request, want = "GET /v1/pets/5", ""
				case n < 650:
					request, want = "GET /v1/pets?limit=x", "400 "
				case n < 700:
					code := 400 + random.Intn(200)
					request, want = fmt.Sprintf("POST /v1/pets\nPrefer: code=%d\n\n{}", code), strconv.Itoa(code)+" "
				case n < 750:
					request, want = "GET /v1/pets\nPrefer: delay=0.02", "200 "
				case n < 800:
					request, want = "GET /v1/pets\nAuthorization: Bearer x", "401 "
				case n < 820:
					request, want = "PUT /__admin/fault?code=599&delay=0.01&times=3&operation=getPet", "204"
				case n < 830:
					request, want = "POST /v1/pets\n\n"+strings.Repeat("x", maxBody+1), "413 "
				case n < 998:
					send := []string{
						"GET /v1/pets HTTP/1.1\nHost: x\nAuthorization: Bearer " + testKey + "\nPrefer: delay=30\n\n",
						"POST /v1/pets HTTP/1.1\nHost: x\nAuthorization: Bearer " + testKey + "\nContent-Length: 30\n\n{\"na",
						"POST /v1/pets HTTP/1.1\nHost: x\nAuthorization: Bearer " + testKey + "\nContent-Length: 30\nPrefer: delay=30\n\n" + `{"name":"gone","categoryId":1}`,
						"GET /v1/pets?limit=100 HTTP/1.1\nHost: x\nAuthorization: Bearer " + testKey + "\n\n",
						"GET /v1/pe",
					}[random.Intn(5)]
					c, err := net.Dial("tcp", s.addr)
					if err != nil {
						t.Error(err)
						break
					}
					io.WriteString(c, strings.ReplaceAll(send, "\n", "\r\n"))
					c.Close()
				default:
					mu.RUnlock()
					mu.Lock()
					if got := s.call(t, "POST /__admin/reset"); got != "204" {
						t.Errorf("reset: %s", got)
					}
					clear(created)
					mu.Unlock()
					mu.RLock()
				}
				if request != "" {
					got := s.call(t, request)
					if !strings.HasPrefix(got, want) || want == "" && got[:3] != "200" && got[:3] != "599" {
						t.Errorf("%.200s\n got %.200s", request, got)
					}
				}
				mu.RUnlock()
			}
		}()
	}
	wg.Wait()
	t.Logf("%d requests", total.Load())
	s.call(t, "DELETE /__admin/fault")
	found := map[int64]bool{}
	for _, id := range s.readAll(t, "?limit=100") {
		if found[id] {
			t.Errorf("pet %d is listed twice", id)
		}
		found[id] = true
	}
	for id, name := range created {
		if !found[id] {
			t.Errorf("pet %d is lost", id)
		}
		if got := s.call(t, fmt.Sprintf("GET /v1/pets/%d", id)); !strings.HasPrefix(got, fmt.Sprintf(`200 {"id":%d,"name":%s,`, id, name)) {
			t.Errorf("pet %d: %s", id, got)
		}
	}
	waiting(t, 0)
	s.stop()
	left := runtime.NumGoroutine()
	for end := time.Now().Add(patience); left > goroutines && time.Now().Before(end); left = runtime.NumGoroutine() {
		runtime.Gosched()
	}
	if left > goroutines {
		t.Errorf("%d goroutines are left of %d", left, goroutines)
	}
	clear(created)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if after.HeapAlloc > before.HeapAlloc+64<<20 {
		t.Errorf("the heap has grown from %d to %d bytes", before.HeapAlloc, after.HeapAlloc)
	}
}

// BenchmarkStart measures the time from the start of the process to its first
// answer, in turns with that of a bare net/http server.
func BenchmarkStart(b *testing.B) {
	petstore, err := binary()
	if err != nil {
		b.Fatal(err)
	}
	source := filepath.Join(b.TempDir(), "bare.go")
	bare := strings.TrimSuffix(source, ".go")
	os.WriteFile(source, []byte(`package main

import ("fmt"; "net"; "net/http")

func main() {
	ln, _ := net.Listen("tcp", "127.0.0.1:0")
	fmt.Printf("http://%s/v1\n", ln.Addr())
	http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("[]")) }))
}
`), 0o600)
	if out, err := exec.Command("go", "build", "-o", bare, source).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	run := func(file string) (took time.Duration, memory int) {
		cmd := exec.Command(file, "-addr", "127.0.0.1:0")
		cmd.Env = append(os.Environ(), "PETSTORE_API_KEY="+testKey)
		stdout, _ := cmd.StdoutPipe()
		begin := time.Now()
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		addr := address(bufio.NewReader(stdout))
		newLoad(b, addr, "GET /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+testKey+"\r\n\r\n").send(b, 1)
		took = time.Since(begin)
		memory = resident(b, cmd, "VmRSS")
		cmd.Process.Kill()
		cmd.Wait()
		return took, memory
	}
	var ours, theirs time.Duration
	var memory, bareMemory int
	for i := 0; i < b.N; i++ {
		took, m := run(petstore)
		ours, memory = ours+took, memory+m
		took, m = run(bare)
		theirs, bareMemory = theirs+took, bareMemory+m
	}
	per := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / float64(b.N) }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(per(ours), "ms/start")
	b.ReportMetric(per(theirs), "bare-ms/start")
	b.ReportMetric(float64(memory)/float64(b.N), "MiB")
	b.ReportMetric(float64(bareMemory)/float64(b.N), "bare-MiB")
}

// BenchmarkSeed measures how long a million pets take to load, compared with
// encoding/json alone, and the memory that they take.
func BenchmarkSeed(b *testing.B) {
	file := seedPets(b, 1000000)
	var ours, theirs time.Duration
	memory := 0
	for i := 0; i < b.N; i++ {
		begin := time.Now()
		s, cmd := execute(b, nil, "-quiet", "-seed", file)
		ours += time.Since(begin)
		s.call(b, "GET /v1/pets?limit=1")
		memory += resident(b, cmd, "VmRSS")
		cmd.Process.Kill()
		cmd.Wait()
		begin = time.Now()
		f, err := os.Open(file)
		if err != nil {
			b.Fatal(err)
		}
		var pets []Pet
		if err := json.NewDecoder(f).Decode(&pets); err != nil || len(pets) != 1000000 {
			b.Fatal(err)
		}
		theirs += time.Since(begin)
		f.Close()
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ours.Seconds()/float64(b.N), "s/load")
	b.ReportMetric(theirs.Seconds()/float64(b.N), "encoding/json-s/load")
	b.ReportMetric(float64(memory)/float64(b.N), "MiB")
}
