package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"math/rand"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

// The tests roughly follow the order of the README. A request is spelt as in "POST /v1/pets {}\nHost: x", and
// its answer as in "204", "200 []" or "404 not_found\nConnection: close": see service.do and reply.String.
// Here is what many tests send and get.
const (
	pet      = `{"name":"a","categoryId":1}`        // a new one, of 27 bytes
	stored   = `{"id":1,"name":"a","categoryId":1}` // what an empty store makes of it
	made     = "201 " + stored + "\nLocation: /v1/pets/1"
	noKey    = "401 unauthorized\nWww-Authenticate: Bearer realm=\"petstore\""
	wrongKey = "401 invalid_token\nWww-Authenticate: Bearer realm=\"petstore\", error=\"invalid_token\""
	byPage   = "\nPetstore-Observer: test" // keeps a request from journal and standing fault
	// What getPet's answers have in their headers.
	deprecated = "\nDeprecation: @1795132800\nLink: </v1/pets>; rel=\"successor-version\"" +
		"\nSunset: Thu, 05 Dec 2030 00:00:00 GMT"
	simulated = "this error is simulated, as was asked for"
	teapot    = "418 im_a_teapot"
	gateway   = "<html><head><title>502 Bad Gateway</title></head><body>502 Bad Gateway</body></html>\n"
	html502   = "502 " + gateway + "Content-Type: text/html"
	noAnswer  = "no answer"
	// What read adds for a connection that is reset.
	resetByPeer = " as the connection was reset"
	made2       = "201 {\"id\":2,\"name\":\"a\",\"categoryId\":1}\nLocation: /v1/pets/2"
	halfList    = "200 [{\"id\":1,\"name\":\"a…\nContent-Length: 37"
	halfPet     = "201 {\"id\":2,\"name\":\"a…\nContent-Length: 35\nLocation: /v1/pets/2"
	halfError   = "400 {\"code\":\"invalid_body\",\"message\":\"name is m…\nContent-Length: 86"
)

// README: Run it.

// A key that is given is not shown. Without one, each run makes one, and shows it in a curl line and a link.
func TestKeyAtTheStart(t *testing.T) {
	given := command{key: "!~" + strings.Repeat("k", 4094)}.start(t)
	equal(t, "stderr", given.stderr.String(), "")
	given.expect(t, "GET /v1/pets", "200 []")
	s, other := command{}.start(t), command{}.start(t)
	const text = "PETSTORE_API_KEY is not set, so this run has a key of its own:\n\n" +
		"    curl -H 'Authorization: Bearer {key}' http://{addr}/v1/pets\n    http://{addr}/#key={key}\n\n"
	equal(t, "stderr", s.stderr.String(), strings.NewReplacer("{key}", s.key, "{addr}", s.addr).Replace(text))
	s.expect(t, "GET /v1/pets", "200 []")
	s.as(other.key).expect(t, "GET /v1/pets", wrongKey)
}

// The base URL on standard output is one that clients on this machine can use.
func TestBaseURL(t *testing.T) {
	for _, addr := range []string{":0", "0.0.0.0:0", "127.0.0.1:"} {
		start(t, "-addr", addr).expect(t, "GET /v1/pets", "200 []")
	}
	equal(t, "unspecified", rootURL(&net.TCPAddr{IP: net.IPv6unspecified, Port: 80}), "http://127.0.0.1:80")
}

// Run as one session in each shell, the console blocks of README.md print what they show.
func TestReadme(t *testing.T) {
	if exec.Command("curl", "--json", "{}", "--version").Run() != nil {
		t.Skip("curl 7.82 is not installed")
	}
	varies := regexp.MustCompile(`("seconds":)[0-9.]*|\r|\s+$`)
	plain := func(output string) string { return varies.ReplaceAllString(output, "$1") }
	block := regexp.MustCompile("(?s)\n```console(\n.*?)```")
	for shell, args := range map[string][]string{
		"sh": nil, "bash": nil, "zsh": {"-f", "-i", "+o", "promptsp"}, // typed: # begins no comment
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(shell); err != nil {
				t.Skip(shell, " is not installed")
			}
			home, s, session := t.TempDir(), command{key: "test"}.start(t), ""
			os.WriteFile(home+"/.curlrc", []byte("silent\n"), 0o600) // no progress meter
			here := strings.NewReplacer("127.0.0.1:8080", s.addr)
			var commands, outputs []string
			for _, b := range block.FindAllStringSubmatch(readFile("README.md"), -1) {
				for _, step := range strings.Split(b[1], "\n$ ")[1:] {
					send, want, _ := strings.Cut(here.Replace(step), "\n")
					commands, outputs = append(commands, send), append(outputs, plain(want))
					if send == "PETSTORE_API_KEY=test go run ." { // s runs already: show what it has printed
						send = "cat <<'.'\n" + s.stderr.String() + "http://" + s.addr + "/v1\n."
					}
					session += send + "\nprintf '\\036'\n" // ends an output
				}
			}
			holds(t, len(commands) > 5, "README.md has commands: %q", commands)
			cmd := exec.Command(shell, args...)
			cmd.Env = append(os.Environ(), "CURL_HOME="+home, "no_proxy=127.0.0.1", "PS1=", "PS2=")
			cmd.Dir, cmd.Stdin = home, strings.NewReader(session)
			out := within(t, "the end", func() []byte { out, _ := cmd.CombinedOutput(); return out })
			// Padded, so that of a session that ends early each command fails.
			got := append(strings.Split(string(out), "\036"), make([]string, len(commands))...)
			for i, want := range outputs {
				equal(t, "$ "+commands[i], plain(got[i]), want)
			}
		})
	}
}

// What the programs in README.md need besides.
const (
	readmeGo = `package petstore
import ("bufio"; "errors"; "io"; "net/http"; "os"; "os/exec"; "strings"; "testing")
func addPet(base, name string) error {
	for range 3 {
		body := strings.NewReader("{\"name\":\"" + name + "\",\"categoryId\":1}")
		r, _ := http.NewRequest("POST", base+"/pets", body)
		r.Header.Set("Authorization", "Bearer test")
		if answer, err := http.DefaultClient.Do(r); err == nil && answer.StatusCode == 201 {
			return nil
		}
	}
	return errors.New("no pet was added")
}
func TestAddPet(t *testing.T) {
`
	readmeNode = `import assert from "node:assert"; import test from "node:test";
import { spawn } from "node:child_process";
async function addPet(base, name) {
  const headers = { Authorization: "Bearer test", "Content-Type": "application/json" };
  const send = { method: "POST", headers, body: JSON.stringify({ name, categoryId: 1 }) };
  for (let i = 0; i < 3 && (await fetch(base + "/pets", send)).status != 201; i++);
}
`
)

// The examples, and the programs in README.md, pass, and leave no service behind.
func TestExamples(t *testing.T) {
	const shell, goTest, node = `^(ok - .*\n)+$`, `--- PASS: .*\n(.*\n)*ok `, ` pass [1-9](.*\n)*.* fail 0\n`
	for command, passed := range map[string]string{
		"sh client.sh": shell, "bash client.sh": shell, "zsh client.sh": shell, "java ClientTest.java": shell,
		"go test -count=1 -v client_test.go": goTest, "go test -count=1 -v readme_test.go": goTest,
		"node --test client.test.mjs": node, "node --test readme.test.mjs": node,
		"python3 -W error -m unittest test_client.py": `Ran [1-9]\d* tests in .*\n\nOK\n`,
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(command)
			for _, program := range []string{args[0], "mkfifo", "curl"} {
				if _, err := exec.LookPath(program); err != nil {
					t.Skip(program + " is not installed")
				}
			}
			root := t.TempDir() // as the clone: petstore beside testdata/examples
			examples, fifo := filepath.Join(root, "testdata", "examples"), filepath.Join(root, "fifo")
			os.MkdirAll(examples, 0o700)
			write := func(name, text string) { os.WriteFile(filepath.Join(root, name), []byte(text), 0o700) }
			for _, name := range must(filepath.Glob("testdata/examples/*.*")) {
				write(name, readFile(name))
			}
			block := regexp.MustCompile("(?s)\n```(?:go|js)\n(.*?)```")
			programs := block.FindAllStringSubmatch(readFile("README.md"), -1)
			write("testdata/examples/readme_test.go", readmeGo+programs[0][1]+"}\n")
			write("testdata/examples/readme.test.mjs", readmeNode+programs[1][1])
			// Each petstore holds the fifo open, so its end is the end of them all.
			write("petstore", "#!/bin/sh\nexec \"$SELF\" \"$@\" 4>\"$FIFO\"\n")
			must(exec.Command("mkfifo", fifo).CombinedOutput())
			held := must(os.OpenFile(fifo, os.O_RDWR, 0)) // until the program has ended
			end := must(os.Open(fifo))
			defer end.Close()
			ctx, cancel := context.WithTimeout(context.Background(), 4*patience) // Java is slow to start
			defer cancel()
			cmd := exec.CommandContext(ctx, args[0], args[1:]...)
			cmd.Dir, cmd.WaitDelay = examples, time.Second
			cmd.Env = append(os.Environ(), "PATH="+root+":"+os.Getenv("PATH"), "TMPDIR="+root,
				"no_proxy=127.0.0.1", "FIFO="+fifo, "SELF="+os.Args[0], "PETSTORE_TEST_CHILD=petstore")
			out, err := cmd.CombinedOutput()
			if err != nil || !regexp.MustCompile(passed).Match(out) {
				t.Errorf("%v: it has not passed\n%s", err, out)
			}
			held.Close()
			within(t, "the end of petstore", func() error { _, err := io.ReadAll(end); return err })
		})
	}
}

// README: Make it fail.

// faultRows tells, for each code of a fault, what becomes of four requests to a store with one pet.
var faultRows = map[string]struct {
	list, head, create, refused string // what the client gets; refused is a create without a name
	isDone                      bool   // whether the operation runs
	journalAnswer, journalError string // in the journal, in place of those of the operation
}{
	"418": {list: teapot, head: "418", create: teapot, refused: teapot,
		journalAnswer: string(encodeJSON(newError(418, simulated))) + "\n", journalError: simulated},
	"hangup":   {list: noAnswer, head: noAnswer, create: noAnswer, refused: noAnswer},
	"lost":     {list: noAnswer, head: noAnswer, create: noAnswer, refused: noAnswer, isDone: true},
	"truncate": {list: halfList, head: noAnswer, create: halfPet, refused: halfError, isDone: true},
	"rst": {list: noAnswer + resetByPeer, head: noAnswer + resetByPeer, create: noAnswer + resetByPeer,
		refused: noAnswer + resetByPeer},
	"drip": {list: "200 [" + stored + "]", head: "200", create: made2, refused: "400 invalid_body: name is missing",
		isDone: true},
	"stall": {list: halfList, head: noAnswer, create: halfPet, refused: halfError, isDone: true},
	"html": {list: html502, head: "502\nContent-Type: text/html", create: html502, refused: html502,
		isDone: true, journalAnswer: gateway},
}

// What the client, the journal and the store have of each fault, and that a reset ends it all.
func TestFaultCodes(t *testing.T) {
	sameNames(t, "faultRows", keys(faultRows), "faultCodes with 418", append([]string{"418"}, faultCodes...))
	for code, row := range faultRows {
		for _, c := range []struct{ name, send, want string }{
			{name: "list", send: "GET /v1/pets", want: row.list},
			{name: "head", send: "HEAD /v1/pets", want: row.head},
			{name: "create", send: "POST /v1/pets " + pet, want: row.create},
			{name: "refused", send: "POST /v1/pets {}", want: row.refused},
		} {
			for _, by := range []string{"Prefer", "standing"} {
				t.Run(code+"/"+c.name+"/"+by, func(t *testing.T) { testFault(t, by, code, c.send, c.want) })
			}
		}
	}
}

// testFault sends a request that a fault strikes, and resets the service.
func testFault(t *testing.T, by, code, request, want string) {
	t.Parallel()
	row, s := faultRows[code], start(t, "-seed", tempFile(t, "["+pet+"]"))
	plain := s.do(t, strings.Replace(request, "HEAD", "GET", 1)) // what the operation itself answers
	s.do(t, "POST /__admin/reset")
	send := request
	if by == "standing" {
		s.do(t, "PUT /__admin/fault?code="+code)
	} else {
		send += "\nPrefer: code=" + code
		if !strings.HasPrefix(want, noAnswer) {
			want += "\nPreference-Applied: code=" + code
		}
	}
	replies := make(chan reply, 1)
	go func() { replies <- s.do(t, send) }()
	s.untilRecorded(t, 1)
	requests, total := s.journal(t)
	pets := s.do(t, "GET /v1/pets"+byPage).body
	s.expect(t, "POST /__admin/reset", "204") // ends a stall
	got := receive(t, "the answer", replies)
	got.check(t, send, want)
	e := entryOf(request, got.status)
	e.Answer, e.Error, e.Fault = row.journalAnswer, row.journalError, "code="+code
	if row.isDone {
		e.Answer, e.Error = cmp.Or(row.journalAnswer, plain.body), plain.error().Message
	}
	equal(t, "requests in the journal", total, 1)
	equal(t, "the first", comparableOf(requests[0]), e)
	equal(t, "whether a pet is added", strings.Contains(pets, `"id":2`), row.isDone && plain.status == 201)
	s.recorded(t) // which is empty after the reset
	s.expect(t, "GET /__admin/fault", "200 {}")
	s.expect(t, "GET /v1/pets", "200 ["+stored+"]")
}

// Half of a stalled answer comes at once. Then the connection is open and silent, and the client may leave.
func TestStall(t *testing.T) {
	states := make(chan http.ConnState, 9) // of the only connection
	s := serveService(t, plainService(), func(srv *http.Server) {
		srv.ConnState = func(_ net.Conn, state http.ConnState) { states <- state }
	})
	begin, c := time.Now(), s.dial(t, "GET /v1/pets"+withKey+"Prefer: code=stall\n\n")
	half := must(http.ReadResponse(c.in, nil)).Body
	equal(t, "half of the answer", string(must(io.ReadAll(io.LimitReader(half, 1)))), "[")
	c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	_, err := c.in.ReadByte()
	holds(t, errors.Is(err, os.ErrDeadlineExceeded), "the connection is silent and open: %v", err)
	c.Close()
	for receive(t, "the end of the stall", states) != http.StateClosed {
	}
	holds(t, time.Since(begin) < maxWait, "the stall ends as the client leaves")
}

// How a Prefer header is read, and how Preference-Applied spells what was read.
func TestParsePrefer(t *testing.T) {
	const bounds = "code=599, delay=30, answer-delay=30.0, retry-after=3600"
	for _, c := range []struct{ name, header, want string }{
		{name: "nothing"},
		{name: "bounds", header: bounds, want: bounds},
		{name: "order", header: "retry-after=0,delay=.5,code=503", want: "code=503, delay=.5, retry-after=0"},
		{name: "blanks and quotes", header: ` CODE = "503"	; delay="1"`, want: "code=503, delay=1"},
		{name: "empty preferences", header: ",;=,code=503,;", want: "code=503"},
		{name: "the first counts", header: "code=404, code=500", want: "code=404"},
		{name: "others are ignored", header: "wait=x, respond-async, skip=x, operation=x, retry-after=x"},
		{name: "retry-after is for an Error", header: "code=lost, retry-after=5", want: "code=lost"},
	} {
		f, err := parsePrefer([]string{c.header})
		equal(t, c.name, fmt.Sprint(f, err), c.want+" <nil>")
	}
	for _, header := range []string{"code=", "code=399", "code=Hangup", "code=0503", "delay=30.01",
		"delay=-1", "delay=1e1", "delay=", "retry-after=3601", "retry-after=1.5", "retry-after=-0"} {
		_, err := parsePrefer([]string{header, "code=503"}) // as retry-after alone is no fault
		name, value, _ := strings.Cut(header, "=")
		want := name + " is " + cmp.Or(value, "empty") + "; it must be "
		holds(t, strings.HasPrefix(fmt.Sprint(err), want), "%s is refused with %q: %v", header, want, err)
	}
	f, _ := parsePrefer([]string{"delay=1.5", "wait=9", "answer-delay=0.25"})
	equal(t, "delays", []time.Duration{f.delay, f.answerDelay}, []time.Duration{1500e6, 250e6})
}

// The fault of a Prefer header strikes that request only, and only under /v1.
func TestPrefer(t *testing.T) {
	const applied = "\nPreference-Applied: "
	s := start(t)
	s.expect(t, "GET /v1/pets?%zz\nPrefer: code=429",
		"429 too_many_requests: "+simulated+"\nRetry-After: 1"+applied+"code=429")
	s.expect(t, "GET /v1/nothing\nPrefer: wait=1\nPrefer: code=401", wrongKey+applied+"code=401")
	s.expect(t, "BREW /v1//pets/?%zz {\nPrefer: code=599, retry-after=7",
		"599 status_599\nRetry-After: 7"+applied+"code=599, retry-after=7")
	s.expect(t, "GET /v1/pets\nPrefer: delay=0, retry-after=5", "200 []"+applied+"delay=0")
	s.expect(t, "GET /v1/pets/1\nPrefer: code=html", html502+applied+"code=html")
	s.expect(t, "GET /healthz\nPrefer: code=hangup", `200 {"status":"ok"}`)
}

// A client that leaves during a delay adds no pet. One that leaves during an answer-delay has added it.
func TestClientLeaves(t *testing.T) {
	s := start(t)
	create := func(fault string) *connection {
		return s.dial(t, "POST /v1/pets"+withKey+"Prefer: "+fault+"\nContent-Length: 27\n\n"+pet)
	}
	early := create("code=lost, delay=30")
	early.CloseWrite() // for the service, the client has left
	early.read().check(t, "the answer during the delay", noAnswer)
	late := create("delay=0.12, answer-delay=30")
	eventually(t, "the pet", func() bool { return s.do(t, "GET /v1/pets"+byPage).body != "[]\n" })
	late.CloseWrite()
	late.read().check(t, "the answer during the answer-delay", noAnswer)
	s.recorded(t, entry{Method: "POST", URL: "/v1/pets", Body: pet, Fault: "code=lost, delay=30"},
		entry{Method: "POST", URL: "/v1/pets", Body: pet, Fault: "delay=0.12, answer-delay=30"})
	requests, _ := s.journal(t)
	equal(t, "the error of the first", requests[0].Error, "the client left before its answer")
	equal(t, "the error of the second", requests[1].Error, "the client left before its answer")
	equal(t, "the answer of the second", requests[1].Answer, stored+"\n")
	holds(t, requests[1].Seconds >= 0.12, "its seconds have the delay: %v", requests[1].Seconds)
	s.expect(t, "GET /v1/pets", "200 ["+stored+"]")
}

// The standing fault strikes the requests that it is for, and counts them.
func TestStandingFault(t *testing.T) {
	s := start(t)
	const (
		put, get = "PUT /__admin/fault?", "GET /__admin/fault"
		first    = `200 {"code":"503","operation":"createPet",`
		second   = `200 {"delay":"0","operation":"listPets",`
		third    = `200 {"code":"418","answer-delay":"0.0","skip":2,"times":2,`
	)
	// A wrong method is no createPet. A bad Prefer is refused, and not counted.
	s.expect(t, put+"code=503&operation=createPet", first+`"matched":0,"applied":0}`)
	s.expect(t, "BREW /v1/pets", "405 method_not_allowed\nAllow: GET, HEAD, POST")
	s.expect(t, "POST /v1/pets\nPrefer: code=1", "400 invalid_parameter: code is 1;")
	s.expect(t, "POST /v1/pets {}\nPrefer: wait=1", "503 service_unavailable\nRetry-After: 1")
	s.expect(t, get, first+`"matched":1,"applied":1}`)
	// HEAD counts as GET, and a list that is refused counts. A path that is none has no operation.
	s.expect(t, put+"delay=0&operation=listPets", second+`"matched":0,"applied":0}`)
	s.expect(t, "GET /v1/pets?limit=x", "400 invalid_parameter: limit is x;")
	s.expect(t, "HEAD /v1/pets", "200")
	s.expect(t, "GET /v1/pets/.", "404 not_found")
	s.expect(t, get, second+`"matched":2,"applied":2}`)
	// Two pass, and two are struck. The one with a delay of its own does not count.
	s.expect(t, put+"times=2&skip=2&code=418&answer-delay=0.0", third+`"matched":0,"applied":0}`)
	s.expect(t, "GET /v1/pets/", "404 not_found")
	s.expect(t, "GET /v1/pets", "200 []")
	s.expect(t, "GET /v1/nothing", teapot)
	s.expect(t, "GET /v1/pets\nPrefer: delay=0", "200 []\nPreference-Applied: delay=0")
	s.expect(t, "GET /v1/pets", teapot)
	s.expect(t, "GET /v1/pets", "200 []")
	s.expect(t, put+"code=x", "400 invalid_parameter: code is x;")
	s.expect(t, get, third+`"matched":5,"applied":2}`)
	s.expect(t, "DELETE /__admin/fault", "204")
	s.expect(t, get, "200 {}")
}

// However many requests meet a standing fault at once, it strikes exactly those it should.
func TestExactCounts(t *testing.T) {
	const n = 100000 // requests of each of 8 clients
	for times, want := range map[int64]int64{4 * n: 4 * n, 0: 5 * n} {
		f, struck := must(parseStandingFault(url.Values{"code": {"503"}, "skip": {strconv.Itoa(3 * n)}})), new(atomic.Int64)
		f.state.Times = times
		together(8, func(int) {
			for range n {
				if f.next("listPets") != (fault{}) {
					struck.Add(1)
				}
			}
		})
		got := []int64{struck.Load(), f.state.Applied, f.state.Matched}
		equal(t, fmt.Sprint("struck, struck and met with times=", times), got, []int64{want, want, 8 * n})
	}
}

// README: Seed and reset.

// A seed keeps the ids that it gives; a pet without one gets the next. An error names the place.
func TestReadSeed(t *testing.T) {
	const anID, anArray = "; it must be an integer from 1 to 4611686018427387904", "; it must be a JSON array"
	withID := func(id string) string { return `{"name":"","categoryId":1,"id":` + id + "}" }
	for _, c := range []struct {
		name, seed string
		ids        []int64 // in the order of the list
		err        string  // how it begins
	}{
		{name: "any order", seed: "[" + withID("7") + "," + pet + "," + withID("3") + "," + pet + "]",
			ids: []int64{3, 7, 8, 9}},
		{name: "the largest id", seed: "[" + withID("4611686018427387904") + "]", ids: []int64{1 << 62}},
		{name: "a long pet", seed: "[" + withID("9"+strings.Repeat(" ", maxBody)) + "]", ids: []int64{9}},
		{name: "nothing", err: "the seed is empty" + anArray},
		{name: "null", seed: " null\n", err: "the seed is null" + anArray},
		{name: "no name", seed: "[" + pet + `,{"id":1}]`, err: "pet 2: name is missing; it must be a string"},
		{name: "an id of 0", seed: "[" + withID("0") + "]", err: "pet 1: id is 0" + anID},
		{name: "an id beyond", seed: "[" + withID("4611686018427387905") + "]",
			err: "pet 1: id is 4611686018427387905" + anID},
		{name: "an id twice", seed: "[" + pet + "," + stored + "]", err: "pet 2: id 1 is taken by pet 1 of the seed"},
		{name: "half of it", seed: "[" + pet, err: "the seed is not JSON: unexpected end of JSON input, " +
			"at byte 28" + anArray + `, such as [{"name":"Rex","categoryId":7}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := readSeed([]byte(c.seed))
			holds(t, strings.HasPrefix(fmt.Sprint(err), cmp.Or(c.err, "<nil>")), "%v begins %s", err, c.err)
			var ids []int64
			for _, p := range allPets(cmp.Or(s, newStore())) {
				ids = append(ids, p.id)
				equal(t, "the pet with that id", s.get(p.id), p)
			}
			equal(t, "ids", ids, c.ids)
		})
	}
}

// The pets of -seed are there at the start, and after a reset without a body. One with a body takes its pets.
func TestSeed(t *testing.T) {
	const ofFile = `{"id":5,"name":"of the file","categoryId":1,"status":"sold"}`
	s := start(t, "-seed", tempFile(t, "["+ofFile+"]"))
	const made6 = `201 {"id":6,"name":"a","categoryId":1}` + "\nLocation: /v1/pets/6"
	s.expect(t, "GET /v1/pets", "200 ["+ofFile+"]")
	s.expect(t, "POST /v1/pets "+pet, made6)
	s.expect(t, `POST /__admin/reset [{"name":"x"}]`, "400 invalid_body: pet 1: categoryId is missing")
	s.expect(t, "GET /v1/pets?status=sold", "200 ["+ofFile+"]")
	s.expect(t, "POST /__admin/reset", "204")
	s.expect(t, "POST /v1/pets "+pet, made6)
	s.expect(t, "POST /__admin/reset ["+pet+"]", "204")
	s.expect(t, "GET /v1/pets", "200 ["+stored+"]")
	s.expect(t, "POST /__admin/reset", "204")
	s.expect(t, "GET /v1/pets", "200 ["+ofFile+"]")
	list := tempFile(t, s.do(t, "GET /v1/pets").body) // which is a seed too
	start(t, "-seed", list).expect(t, "GET /v1/pets", "200 ["+ofFile+"]")
	command{key: testKey, args: []string{"-seed", tempFile(t, "[5]")}}.ends(t, 1, "",
		`petstore: \S+pets.json: pet 1: the pet is 5; it must be a JSON object, such as .*\n`)
}

// A request under way at a reset or stop waits no longer. It changes its own world, and not the next.
func TestWorldEnds(t *testing.T) {
	for name, c := range map[string]struct {
		isLate  bool // whether the body comes when the world is over
		latency time.Duration
		fault   string // a standing one
		want    string
		added   bool // whether the pet is
	}{
		"latency":       {latency: time.Hour, want: made2, added: true},
		"a body":        {isLate: true, want: made2, added: true},
		"delay":         {fault: "delay=30", want: made2, added: true},
		"answer-delay":  {fault: "answer-delay=30", want: made2, added: true},
		"an error":      {fault: "code=418&delay=30", want: teapot},
		"a hangup":      {fault: "code=hangup&delay=30", want: noAnswer},
		"a lost answer": {fault: "code=lost&delay=30&answer-delay=30", want: noAnswer, added: true},
		"a stall":       {fault: "code=stall", want: halfPet, added: true},
		"a drip":        {fault: "code=drip", want: made2, added: true},
	} {
		for _, end := range []string{"reset", "stop"} {
			t.Run(name+"/"+end, func(t *testing.T) {
				t.Parallel()
				stopping, stop := context.WithCancel(context.Background())
				defer stop()
				a := testService(must(readSeed([]byte("["+stored+"]"))), c.latency, stopping)
				s, world := serveService(t, a), a.current.Load()
				if c.fault != "" {
					s.do(t, "PUT /__admin/fault?"+c.fault)
				}
				conn := s.upload(t)
				if !c.isLate {
					conn.send("", pet)
				}
				if c.fault != "" {
					s.untilMet(t)
				}
				if end == "stop" {
					stop()
				} else {
					s.do(t, "POST /__admin/reset []")
					s.do(t, "PUT /__admin/fault?code=503")
				}
				if c.isLate {
					conn.send("", pet)
				}
				conn.read().check(t, "the answer", c.want)
				_, total := world.journal.all()
				equal(t, "requests in its journal", total, 1)
				equal(t, "whether the pet is added", world.pets.get(2) != nil, c.added)
				if end == "reset" {
					s.recorded(t) // which is empty after the reset
					s.expect(t, "GET /__admin/fault", `200 {"code":"503","matched":0,"applied":0}`)
					equal(t, "pets of the next world", len(a.current.Load().pets.pets), 0)
				}
			})
		}
	}
}

// README: The journal. The log, and CORS.

// The journal has each request and up to 1,000 bytes of its answer. For headers, see TestJournalLines.
func TestJournal(t *testing.T) {
	s, long := start(t, "-seed", tempFile(t, seedOf(40))), strings.Repeat("x", maxBody+1)
	for _, c := range []struct {
		send string
		want entry // Error begins so; Method and URL are those of send
	}{
		{send: "GET /v1/pets?limit=5&x=%20%zz;+", want: entry{Status: 400, Error: "the query is malformed"}},
		{send: "BREW /v1/pets <ü>\xff", want: entry{Status: 405, Body: "<ü>\ufffd", Error: "this path"}},
		{send: "POST /pets " + pet, want: entry{Status: 404, Body: pet, Error: "no such path"}},
		{send: "POST /v1 x\nAuthorization: Basic x", want: entry{Status: 401, Error: "send the API key"}},
		{send: "GET /v1/pets\nPrefer: delay=0.05", want: entry{Status: 200, Fault: "delay=0.05"}},
		{send: "POST /pets " + long + "\nTransfer-Encoding: chunked",
			want: entry{Status: 413, Error: "the body is over 65536 bytes"}},
	} {
		s.do(t, "DELETE /__admin/requests")
		answer, want := s.do(t, c.send).body, c.want
		requests, _ := s.journal(t)
		if len(requests) != 1 {
			t.Fatalf("after %.100s, the journal has %d requests", c.send, len(requests))
		}
		got, age := requests[0], time.Since(requests[0].Time.Time)
		holds(t, age < patience && got.Seconds <= age.Seconds()+0.001, "%v s since %v", got.Seconds, got.Time)
		holds(t, strings.HasPrefix(got.Error, want.Error), "%q begins with %q", got.Error, want.Error)
		parts := strings.Fields(c.send)
		want.Method, want.URL, want.Error = parts[0], parts[1], got.Error
		want.Answer = answer[:min(len(answer), 1000)]
		equal(t, c.send, comparableOf(got), want)
	}
}

// Only clients are in the journal and in the log: to look on changes nothing.
func TestJournalHasOnlyClients(t *testing.T) {
	s := start(t, "-log")
	for _, request := range []string{"GET /", "HEAD /", "GET /openapi.json", "POST /healthz", "GET /__admin",
		"GET /__admin/requests\nAuthorization: x", "GET /%5F_admin/fault", "POST /__admin/reset",
		"OPTIONS /v1/pets", "OPTIONS *", "GET /v1/pets" + byPage, "POST /v1/pets " + pet + byPage} {
		s.do(t, request)
		s.recorded(t)
	}
	s.do(t, "GET /healthz/")
	s.do(t, "GET /v1/pets/1\nPrefer: delay=0")
	s.recorded(t, entry{Method: "GET", URL: "/healthz/", Status: 404},
		entry{Method: "GET", URL: "/v1/pets/1", Status: 200, Fault: "delay=0"})
	s.stop()
	equal(t, "requests in the log", strings.Count(s.stderr.String(), "msg=request"), 2)
}

// The journal is in the order of the answers, not in that of the requests.
func TestJournalOrder(t *testing.T) {
	s := start(t)
	s.do(t, "PUT /__admin/fault?delay=30&times=1")
	slow := s.dial(t, "GET /v1/pets?slow"+withKey+"\n")
	s.untilMet(t)
	s.expect(t, "GET /v1/pets?quick", "200 []")
	slow.Close()
	s.untilRecorded(t, 2)
	s.recorded(t, entry{Method: "GET", URL: "/v1/pets?quick", Status: 200},
		entry{Method: "GET", URL: "/v1/pets?slow", Fault: "delay=30"})
}

// With a total, the journal waits for that many requests. A reset, a stop and a client that leaves end the wait.
func TestJournalWaits(t *testing.T) {
	stopping, stop := context.WithCancel(context.Background())
	defer stop()
	svc := testService(newStore(), 0, stopping)
	s := serveService(t, svc)
	wait := func(total int) <-chan reply {
		answer, w := make(chan reply, 1), svc.current.Load()
		go func() { answer <- s.do(t, fmt.Sprint("GET /__admin/requests?total=", total)) }()
		eventually(t, "a waiting request", func() bool {
			w.journal.mu.Lock()
			defer w.journal.mu.Unlock()
			return len(w.journal.waiting) > 0
		})
		return answer
	}
	for _, total := range []string{"-1", "x", "", "1.0"} {
		s.expect(t, "GET /__admin/requests?total="+total, "400 invalid_parameter: total is ")
	}
	s.expect(t, "GET /__admin/requests?total=0", `200 {"requests":[\n],"meta":{"total":0}}`)
	two := wait(2)
	s.do(t, "GET /v1/pets")
	s.do(t, "GET /v1/pets"+byPage)
	if len(two) > 0 {
		t.Error("got an answer after one request, want it after two")
	}
	s.do(t, "GET /v1/pets")
	matches(t, receive(t, "the answer", two).body, `"meta":\{"total":2\}`)
	matches(t, s.do(t, "GET /__admin/requests?total=1").body, `"meta":\{"total":2\}`)
	three := wait(3)
	s.do(t, "POST /__admin/reset")
	matches(t, receive(t, "the answer after a reset", three).body, `"meta":\{"total":2\}`)
	one := wait(1)
	stop()
	matches(t, receive(t, "the answer after a stop", one).body, `"meta":\{"total":0\}`)
}

// The journal is one JSON object with a line for each request, so that grep can count.
func TestJournalLines(t *testing.T) {
	s := start(t)
	s.do(t, `POST /v1/pets {"name":"<\u000a>","categoryId":1}`+
		"\nx-a: 1\nX-A:2, 3\nTransfer-Encoding: chunked\nx-a:")
	s.dial(t, "GET /v1/pets/9 HTTP/1.0\nAuthorization: Bearer "+testKey+"\n\n").read() // which has no Host
	text := s.do(t, "GET /__admin/requests").body
	text = regexp.MustCompile(`\d{4}(-\d\d){2}T\d\d(:\d\d){2}\.\d{3}Z`).ReplaceAllString(text, "TIME")
	text = regexp.MustCompile(`"seconds":\d+(\.\d{1,3})?\b`).ReplaceAllString(text, `"seconds":0`)
	equal(t, "the journal", text, `{"requests":[
{"time":"TIME","method":"POST","url":"/v1/pets","headers":{"Authorization":"Bearer <API_KEY>",`+
		`"Host":"petstore","Transfer-Encoding":"chunked","X-A":"1, 2, 3, "},"body":"{\"name\":\"<\\u000a>\",`+
		`\"categoryId\":1}","status":201,"seconds":0,"answer":"{\"id\":1,\"name\":\"<\\n>\",`+
		`\"categoryId\":1}\n"},
{"time":"TIME","method":"GET","url":"/v1/pets/9","headers":{"Authorization":"Bearer <API_KEY>"},"body":"",`+
		`"status":404,"seconds":0,"answer":"{\"code\":\"not_found\",\"message\":\"there is no pet 9\",`+
		`\"status\":404}\n","error":"there is no pet 9"}
],"meta":{"total":2}}
`)
	s.expect(t, "DELETE /__admin/requests", "204")
	s.expect(t, "GET /__admin/requests", `200 {"requests":[\n],"meta":{"total":0}}`)
}

// The journal keeps the last 1,000 requests, and 4 MiB of them to the byte. What was read stays as it was.
func TestJournalBounds(t *testing.T) {
	var j journal
	for i := range maxJournal + 3 {
		j.add(entry{URL: fmt.Sprint("/", i)})
	}
	entries, total := j.all()
	equal(t, "requests", []int{len(entries), int(total)}, []int{1000, 1003})
	j.add(entry{}) // which changes nothing that was read
	equal(t, "the first and the last", []string{entries[0].URL, entries[999].URL}, []string{"/3", "/1002"})
	e, size := entry{Headers: map[string]string{"X": "yz"}}, 3+100 // a header counts 100 bytes more
	for i, fields := 0, reflect.ValueOf(&e).Elem(); i < fields.NumField(); i++ {
		if fields.Field(i).Kind() == reflect.String {
			fields.Field(i).SetString("0123456789")
			size += 10
		}
	}
	for over, kept := range []int{2, 1} { // by how many bytes both are over 4 MiB, and how many are kept
		j.clear()
		j.add(entry{Body: strings.Repeat("x", 4<<20-size+over)})
		j.add(e)
		entries, total := j.all()
		equal(t, fmt.Sprint("kept of two, ", over, " bytes over"), []int{len(entries), int(total)}, []int{kept, 2})
	}
}

// The key is hidden wherever it occurs.
func TestHideKey(t *testing.T) {
	equal(t, "twice", hideKey("Bearer key, Basic key", "key"), "Bearer <API_KEY>, Basic <API_KEY>")
	equal(t, "with blanks", hideKey("bearer   key ", "key"), "bearer   <API_KEY> ")
	equal(t, "as the scheme", hideKey("key, Bearer x", "key"), "<API_KEY>, Bearer x")
	equal(t, "behind a tab", hideKey("Bearer\tkey", "key"), "Bearer\t<API_KEY>")
	equal(t, "in quotes", hideKey(`Bearer token="key";`, "key"), `Bearer token="<API_KEY>";`)
	equal(t, "without a scheme", hideKey("key", "key"), "<API_KEY>")
}

// The log has a line for each request, with what went wrong and the fault.
func TestLog(t *testing.T) {
	s := start(t, "-log")
	for _, request := range []string{"GET /v1/pets?limit=5", "GET /v1/pets/1?%0A=%22",
		"GET /v1\nPrefer: code=hangup", "GET /v1\nPrefer: code=418"} {
		s.do(t, request)
	}
	s.stop()
	log := regexp.MustCompile(`(?m)^time=\S+ |\Aa page for .*\n`).ReplaceAllString(s.stderr.String(), "")
	equal(t, "the log", log, `level=INFO msg=request method=GET url="/v1/pets?limit=5" status=200
level=INFO msg=request method=GET url="/v1/pets/1?%0A=%22" status=404 error="there is no pet 1"
level=INFO msg=request method=GET url=/v1 status=0 fault="code=hangup"
level=INFO msg=request method=GET url=/v1 status=418 error="`+simulated+`" fault="code=418"
level=INFO msg="stopping; a second signal ends the process at once" limit=10s
`)
}

// A standard error that is closed hinders neither the start nor the end.
func TestStderrClosed(t *testing.T) {
	r, w, _ := os.Pipe()
	r.Close()
	cmd := child()
	cmd.Stderr = w
	p := launch(t, cmd)
	p.expect(t, "GET /v1/pets", "200 []")
	p.expect(t, "GET /v1/pets", "200 []") // though the log's line of the first has failed
	p.cmd.Process.Signal(syscall.SIGTERM)
	p.ends(t, "<nil>")
}

// Web pages of every origin read every answer, and the headers that they need.
func TestCORS(t *testing.T) {
	s := start(t)
	for _, request := range []string{"POST /v1/pets {}", "GET /v1/pets", "PATCH /v1/pets", "OPTIONS /v1/pets",
		"GET /v1\nAuthorization: x", "GET /x/../y", "GET /", "GET /__admin/requests",
		"GET /v1\nPrefer: code=html", "POST /v1/pets\nContent-Length: 65537"} {
		h := s.do(t, request+"\nOrigin: null").header
		equal(t, request, h["Access-Control-Allow-Origin"], []string{"*"})
		equal(t, request, h.Get("Access-Control-Expose-Headers"), "Link, Location, Allow, Deprecation, "+
			"Sunset, WWW-Authenticate, Preference-Applied, Retry-After")
	}
	for _, target := range []string{"/v1/pets", "/v1/pets/", "/x/../y", "/__admin/reset", "/healthz", "*"} {
		s.as("").expect(t, "OPTIONS "+target+"\nPrefer: code=503", preflight)
	}
}

// preflight is the answer to OPTIONS.
const preflight = `204
Access-Control-Allow-Headers: Authorization, Content-Type, Prefer, Petstore-Observer, *
Access-Control-Allow-Methods: GET, HEAD, POST, PUT, PATCH, DELETE
Access-Control-Max-Age: 600`

// README: The API.

// The operations of the contract (section 4). getPet's errors have its headers too, once its route is found.
func TestContract(t *testing.T) {
	s, again := start(t), "\nIdempotency-Key: 1" // which is ignored
	rex, tom := `{"name":"Rex","categoryId":7,"status":"available"}`, `{"name":"Tom","categoryId":9}`
	rex1, tom2 := strings.Replace(rex, "{", `{"id":1,`, 1), strings.Replace(tom, "{", `{"id":2,`, 1)
	s.expect(t, "POST /v1/pets "+rex+again, "201 "+rex1+"\nLocation: /v1/pets/1")
	s.expect(t, "POST /v1/pets "+tom+again, "201 "+tom2+"\nLocation: /v1/pets/2")
	s.expect(t, "GET /v1/pets", "200 ["+rex1+","+tom2+"]")
	s.expect(t, "GET /v1/pets?status=available", "200 ["+rex1+"]")
	s.expect(t, "GET /v1/pets/2", "200 "+tom2+deprecated)
	s.expect(t, "GET /v1/pets/2?%zz", "400 invalid_parameter: the query"+deprecated)
	s.expect(t, "GET /v1/pets/2\nPrefer: code=418", teapot+deprecated+"\nPreference-Applied: code=418")
}

// Each GET has a HEAD with the same headers, but for the Date. All but the page is JSON and a newline.
func TestHead(t *testing.T) {
	s := start(t, "-seed", tempFile(t, seedOf(50)))
	for _, rt := range routes {
		target, isGet := strings.CutPrefix(rt.pattern, "GET ")
		if !isGet {
			continue
		}
		target = sample(target)
		for _, send := range []string{target, target + "?limit=x", target + "\nPrefer: code=503"} {
			get, head := s.do(t, "GET "+send), s.do(t, "HEAD "+send)
			head.header["Date"] = get.header["Date"]
			equal(t, "HEAD "+send, head, reply{status: get.status, header: get.header})
			isJSON := json.Valid([]byte(get.body)) && strings.HasSuffix(get.body, "\n") &&
				get.header.Get("Content-Type") == "application/json"
			isPage := get.body == string(indexHTML) &&
				get.header.Get("Content-Type") == "text/html; charset=utf-8"
			holds(t, isJSON || isPage, "%s is answered with JSON and a newline, or the page: %s", send, get)
		}
	}
}

// Under /v1 and /__admin, the key is checked before all else. The three public paths mind none.
func TestKey(t *testing.T) {
	s := start(t)
	for _, request := range []string{"GET /v1", "GET /v1/pets/", "GET /v1/../v1/pets", "GET /%761/x",
		"GET /v1/pets/1?%zz", "GET /v1/store/orders", "BREW /v1/pets", "POST /v1/pets {}", "GET /__admin",
		"GET /__admin/requests", "GET /v1/pets?limit=0&key=" + testKey} {
		s.as("").expect(t, request+"\nX-Api-Key: "+testKey+"\nPrefer: code=503", noKey)
		s.as("wrong").expect(t, request+"\nPrefer: code=503", wrongKey)
	}
	for credential, want := range map[string]string{
		"": noKey, "Bearer": noKey, testKey: noKey, "Basic " + testKey: noKey,
		"Bearer CORRECT-HORSE": wrongKey, "Bearer correct-hors": wrongKey, "Bearer correct-horses": wrongKey,
		"Bearer " + testKey + "\nAuthorization: Bearer " + testKey: noKey,
		"bEARER   " + testKey: "200 []",
	} {
		s.expect(t, "GET /v1/pets\nAuthorization: "+credential, want)
	}
	for path, body := range map[string]string{"/healthz": `{"status":"ok"}` + "\n", "/": string(indexHTML),
		"/openapi.json": string(openAPI)} {
		equal(t, path+" without a key", s.as("").do(t, "GET "+path).body, body)
		equal(t, path+" with a wrong one", s.as("wrong").do(t, "GET "+path).body, body)
	}
}

// A page has 20 pets or as many as limit says, however long they are. Link keeps limit and status.
func TestPaging(t *testing.T) {
	long := `{"name":"` + strings.Repeat("x", 60000) + `","categoryId":1,"status":"sold"},`
	s := start(t, "-seed", tempFile(t, "["+strings.Repeat(long, 100)+seedOf(21)[1:]))
	for query, want := range map[string]string{ // how many pets, and Link
		"":                                    `20 </v1/pets?after=20>; rel="next"`,
		"?limit=100":                          `100 </v1/pets?limit=100&after=100>; rel="next"`,
		"?after=101":                          "20 ",
		"?status=sold&limit=5&after=100&x=y":  `5 </v1/pets?limit=5&status=sold&after=113>; rel="next"`,
		"?after=-9223372036854775808&limit=1": `1 </v1/pets?limit=1&after=1>; rel="next"`,
		"?limit=%31&Limit=9":                  `1 </v1/pets?limit=1&after=1>; rel="next"`,
	} {
		r := s.do(t, "GET /v1/pets"+query)
		equal(t, "a list"+query, fmt.Sprint(strings.Count(r.body, `"id"`), " ", r.header.Get("Link")), want)
	}
}

// allPets returns all pets of a store.
func allPets(s *store) []*storedPet {
	pets, _ := s.list("", math.MinInt64, math.MaxInt32)
	return pets
}

// Goroutines add pets at once, closer together than over HTTP: each id is given once, and no pet is lost.
func TestAddsAtOnce(t *testing.T) {
	pets := newStore()
	var given [8*2000 + 1]atomic.Bool // by id
	together(8, func(int) {
		for range 2000 {
			p, err := pets.add(NewPet{})
			isNew := err == nil && !given[p.id].Swap(true)
			holds(t, isNew && pets.get(p.id) == p, "the id of %v is new, and can be looked up: %v", p, err)
		}
	})
	list := allPets(pets)
	equal(t, "pets in the list", len(list), 8*2000)
	isSorted := slices.IsSortedFunc(list, func(a, b *storedPet) int { return cmp.Compare(a.id, b.id) })
	holds(t, isSorted, "the list is in ascending order of id")
}

// Worlds that begin with the same seed do not share what is added to them.
func TestWorldsShareNothing(t *testing.T) {
	seed := must(readSeed([]byte(seedOf(3))))
	a, b := seed.clone(), seed.clone()
	must(a.add(NewPet{Name: "of a", Status: "sold"}))
	must(b.add(NewPet{Name: "of b", Status: "sold"}))
	const want = `{"id":4,"name":"of a","categoryId":0,"status":"sold"}`
	equal(t, "the pet added to a", string(allPets(a)[3].json), want)
	sold, _ := a.list("sold", 3, 1)
	equal(t, "the same among those sold", string(sold[0].json), want)
	equal(t, "pets of the seed", []int{len(allPets(seed)), len(seed.pets)}, []int{3, 3})
}

// An integer is spelt as in JSON. A message shows 40 characters of what was given.
func TestParseInteger(t *testing.T) {
	forty := strings.Repeat("😀", 40)
	for _, given := range strings.Fields(`1.0 1.5 4e2 +1 01 -01 1_0 0x1 1- - ten [1] "1" ५ ` + forty) {
		_, err := parseInteger(codeInvalidBody, "x", given, math.MinInt64, math.MaxInt64)
		equal(t, given, fmt.Sprint(err), "x is "+given+"; it must be an integer")
	}
	_, err := parseInteger(codeInvalidBody, "x", "9223372036854775808", math.MinInt64, math.MaxInt64)
	const bounds = "; it must be an integer from -9223372036854775808 to 9223372036854775807"
	equal(t, "beyond an int64", fmt.Sprint(err), "x is 9223372036854775808"+bounds)
	equal(t, "41 characters", shorten(forty+"x"), forty+"…")
}

// A parameter has an effect, and the bounds and the default that are in api/openapi.json.
func TestParameters(t *testing.T) {
	s := start(t, "-seed", tempFile(t, seedOf(150)))
	values := map[string]string{ // with which the answer is another one
		"limit": "10", "status": "available", "after": "20", "code": "503", "delay": "1", "answer-delay": "1",
		"retry-after": "1", "operation": "createPet", "skip": "1", "times": "1",
	}
	api, _ := readOpenAPI()
	for pattern, o := range api {
		for _, p := range o.Parameters {
			if p.In != "query" || p.Name == "total" { // see TestJournalWaits
				continue
			}
			s.do(t, "DELETE /__admin/fault")
			base := sample(pattern) + "?"
			if o.OperationID == "setFault" && p.Name != "code" {
				base += "code=503&"
			}
			with := func(value any) reply { return s.do(t, fmt.Sprint(base, p.Name, "=", value)) }
			what := o.OperationID + "'s " + p.Name
			without, got := s.do(t, base).body, with(values[p.Name])
			holds(t, got.status == 200 && got.body != without, "%s in values has an effect: %s", what, got)
			if standard := string(p.Schema.Default); standard != "" {
				equal(t, "the answer with the default of "+what, with(standard).body, without)
			}
			if p.Schema.Type != "integer" && p.Schema.Type != "number" {
				continue
			}
			for step, bound := range map[int64]json.Number{-1: p.Schema.Minimum, 1: p.Schema.Maximum} {
				n, err := bound.Int64()
				if err != nil { // no bound is told, so the last int64 is taken
					n = step * math.MaxInt64
				} else {
					equal(t, fmt.Sprint("the status beyond ", what, "=", n), with(n+step).status, 400)
				}
				equal(t, fmt.Sprint("the status of ", what, "=", n), with(n).status, 200)
			}
		}
	}
}

// Messages of Errors, but for those of a body (see TestParsePet). No fault is set, and no pet added.
func TestMessages(t *testing.T) {
	s := start(t)
	const bad, integer = "400 invalid_parameter: ", "; it must be an integer"
	for send, want := range map[string]string{
		"GET /v1\nAuthorization: x":        "send the API key in one header: Authorization: Bearer <API_KEY>",
		"GET /v1\nAuthorization: Bearer x": "this is not the API key that the service was started with",
		"GET /v1/store/orders":             "the contract names this operation without its payload",
		"BREW /v1/pets":                    "this path allows GET, HEAD, POST only",
		"GET /v1/pets/": "no such path: /v1/pets/; the API is at /v1/pets, without a slash at the end; there " +
			"are also /__admin/reset, /__admin/fault and /__admin/requests, /openapi.json, and a page at /",
		"GET /v1/%70ets/%2d7?colour=red&colour=": "there is no pet -7",
		"POST /v1/pets x\nContent-Encoding: br":  "Content-Encoding is br; it must be left out",
		"POST /v1/pets x\nContent-Type: x": "Content-Type is x; it must be application/json, in UTF-8 " +
			"(curl sends that with --json)",
		"GET /v1/pets/1%2F2":                   "petId is 1/2" + integer,
		"GET /v1/pets?limit=&after=x&status=":  "limit is empty" + integer + " from 1 to 100",
		"GET /v1/pets?limit=x&after=1&after=1": "after is given 2 times; it must be given once",
		"GET /v1/pets?status=":                 "status is empty; it must be available, pending or sold",
		"GET /v1/pets?%zz":                     `the query is malformed: invalid URL escape "%zz"`,
		"GET /__admin/fault?x=1&code=503&c=":   "GET /__admin/fault does not take the parameter c; it takes none",
		"PUT /__admin/fault?delay=x": "delay is x; it must be a number of seconds from 0 to 30, " +
			"such as 2 or 0.5",
		"PUT /__admin/fault?skip=1&times=1&retry-after=5": "code, delay or answer-delay must be given, " +
			"in the query: /__admin/fault?code=503",
	} {
		equal(t, "the message of "+send, s.do(t, send).error().Message, want)
	}
	s.expect(t, "PUT /__admin/fault?code=x", bad+"code is x; it must be a status from 400 to 599, hangup, ")
	s.expect(t, "PUT /__admin/fault?code=503&operation=", bad+"operation is empty; it must be listPets, ")
	for _, rt := range routes {
		if strings.Contains(rt.pattern, " /__admin/") {
			s.expect(t, rt.pattern+"?x", bad+rt.pattern+" does not take the parameter x;")
		}
	}
	s.expect(t, "GET /__admin/fault", "200 {}")
	s.expect(t, "POST /v1/pets "+pet, made)
}

// What createPet takes, and what becomes of it, or the whole message with which it refuses a body.
func TestParsePet(t *testing.T) {
	const (
		notJSON  = "it is not JSON: invalid character "
		anObject = `; it must be a JSON object, such as {"name":"Rex","categoryId":7}`
		aStatus  = "; it must be available, pending or sold"
	)
	for _, c := range []struct{ body, want string }{
		{body: `{ "status" : "sold" , "name" : "", "categoryId" : -0 }`,
			want: `{"name":"","categoryId":0,"status":"sold"}`},
		{body: `{"n\u0061me":"\u003c&\/😀\ud83d\uDE00>","categoryId":1}`,
			want: `{"name":"<&/😀😀>","categoryId":1}`},
		{body: `{"name":"\ud800\u0000\n\"\\ud800\u2029","categoryId":1}`,
			want: `{"name":"` + "\ufffd" + `\u0000\n\"\\ud800\u2029","categoryId":1}`},
		{body: `{"id":7,"x":null,"name":5,"name":"a","categoryId":1,"Name":5,"y":{"name":[]}}`, want: pet},
		{body: " null", want: "it is null" + anObject},
		{body: `{"name":"a"`, want: "it is not JSON: unexpected end of JSON input, at byte 11" + anObject},
		{body: pet + "{}", want: notJSON + "'{' after top-level value, at byte 28" + anObject},
		{body: `{"name":"","categoryId":1,"x":"` + "\xff\"}", want: "it is not valid UTF-8"},
		{body: `{"Name":"a","NAME":"a","categoryId":1}`, want: "name is missing; it must be a string"},
		{body: `{"name":5,"categoryId":1}`, want: "name is 5; it must be a string"},
		{body: `{"name":"a","categoryId":1,"status":"Sold"}`, want: "status is Sold" + aStatus},
		{body: `{"name":"a","categoryId":1,"status":null}`, want: "status is null" + aStatus},
		{body: `{"name":"a","categoryid":1}`, want: "categoryId is missing; it must be an integer"},
	} {
		members, err := parseObject("it", []byte(c.body))
		var p NewPet
		if err == nil {
			p, err = parsePet(members)
		}
		got := string(encodeJSON(p))
		if err != nil {
			got = err.Error()
		}
		equal(t, c.body, got, c.want)
	}
}

// FuzzCreate compares what createPet takes with another reading of the rules.
func FuzzCreate(f *testing.F) {
	nested := strings.Repeat("[", 9999) + strings.Repeat("]", 9999)
	f.Add([]byte(`{"name":"\ud800","name":"","categoryId":-0,"status":"s\u006fld","x":` + nested + "}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		var members map[string]any
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.UseNumber()
		dec.Decode(&members)
		name, isString := members["name"].(string)
		number, _ := members["categoryId"].(json.Number)
		category, errCategory := number.Int64()
		status, isGiven := members["status"]
		word, _ := status.(string)
		isRight := json.Valid(body) && utf8.Valid(body) && isString && errCategory == nil &&
			(!isGiven || slices.Contains(statuses[1:], word))
		object, err := parseObject("the body", body)
		var p NewPet
		if err == nil {
			p, err = parsePet(object)
		}
		equal(t, fmt.Sprintf("whether %q is taken", body), err == nil, isRight)
		if isRight {
			equal(t, string(body), p, NewPet{name, category, PetStatus(word)})
		}
	})
}

// A path that is not there is a 404 and no redirect. A path that has other methods tells them.
func TestPathsAndMethods(t *testing.T) {
	s := start(t)
	for _, path := range strings.Fields(`/pets /v1x //v1/pets /healthz/ /x/../healthz http://x /v1 /v1/
		/v1/pets/ /v1/pets/1/ /v1/pets/1/2 /v1/pets%2F /v1/pets/%2f /%2F /v1//pets /v1/./pets /v1/../v1/pets
		/__admin /__admin/ /__admin/reset/ /__admin//requests`) {
		s.expect(t, "POST "+path+"?%zz", "404 not_found: no such path")
		s.expect(t, "BREW "+path+"?%zz", "404 not_found: no such path")
	}
	s.as("").expect(t, "GET /v1x", "404 not_found") // it is not under /v1, so it needs no key
	s.expect(t, "GET /v1/store/orders", "501 not_implemented")
	for path, methods := range map[string]string{
		"/v1/pets": "GET, HEAD, POST", "/v1/pets/1": "GET, HEAD", "/": "GET, HEAD",
		"/__admin/reset": "POST", "/__admin/fault": "DELETE, GET, HEAD, PUT",
	} {
		s.expect(t, "BREW "+path+"?%zz {}", "405 method_not_allowed\nAllow: "+methods)
		s.expect(t, "get "+path+"?%zz {}", "405 method_not_allowed\nAllow: "+methods)
	}
}

// Of several mistakes, the first in the order of the README is told. Those before the fault do not use it up.
func TestErrorOrder(t *testing.T) {
	s, long := start(t), strings.Repeat("x", maxBody+1)
	s.do(t, "PUT /__admin/fault?code=503&times=1")
	s.expect(t, "BREW /v1//pets?%zz "+long+"\nAuthorization: x\nPrefer: code=418", noKey)
	s.expect(t, "BREW /v1//pets?%zz "+long+"\nPrefer: code=418",
		"413 request_entity_too_large\nConnection: close")
	s.expect(t, "BREW /v1//pets?%zz {\nPrefer: code=x", "400 invalid_parameter: code is x;")
	s.expect(t, "BREW /v1//pets?%zz {", "503 service_unavailable\nRetry-After: 1")
	s.expect(t, "BREW /v1//pets?%zz {", "404 not_found")
	s.expect(t, "BREW /v1/pets?%zz {", "405 method_not_allowed\nAllow: GET, HEAD, POST")
	s.expect(t, "POST /v1/pets?%zz {\nContent-Type: x", "400 invalid_parameter: the query")
	s.expect(t, "POST /v1/pets {\nContent-Type: x", "415 unsupported_media_type")
	s.expect(t, "POST /v1/pets {", "400 invalid_body")
	s.expect(t, "GET /v1/pets/1\nContent-Length: 65537", "413 request_entity_too_large\nConnection: close")
}

// A body is JSON in UTF-8, as far as its headers tell. Without a body, they are not looked at.
func TestContentTypes(t *testing.T) {
	s := start(t)
	right := []string{"Content-Type: application/json", "Content-Type:", "Content-Encoding: Identity",
		`Content-Type: Application/JSON; Charset="UTF-8"; x=y`}
	wrong := []string{"Content-Type: text/plain", "Content-Type: application/jsonx", "Content-Encoding: gzip",
		"Content-Type: application/json; charset=latin1", "Content-Type: application/json; charset",
		"Content-Type: a\nContent-Type: application/json", "Content-Encoding: identity\nContent-Encoding: x"}
	for i, headers := range append(right, wrong...) {
		isTaken := func(request string) bool { return s.do(t, request+"\n"+headers).status != 415 }
		equal(t, "a create with "+headers, isTaken("POST /v1/pets "+pet), i < len(right))
		equal(t, "a reset with "+headers, isTaken("POST /__admin/reset []"), i < len(right))
		equal(t, "a reset without a body, with "+headers, isTaken("POST /__admin/reset"), true)
		equal(t, "a list with "+headers, isTaken("GET /v1/pets"), true)
	}
}

// A client that speaks unusual, broken or half HTTP gets an answer, or a closed connection.
func TestRawHTTP(t *testing.T) {
	s := serveService(t, plainService(), func(srv *http.Server) { srv.ReadTimeout = time.Hour }) // no 408 helps
	long, rest := strings.Repeat("x", 300000), strings.Repeat(" ", maxBody-len(pet))
	chunk := func(data string) string { return fmt.Sprintf("%x\n%s\n", len(data), data) }
	const (
		get, post    = "GET /v1/pets" + withKey, "POST /v1/pets" + withKey
		last, closes = "Connection: close\n\n", "\nConnection: close"
		chunked      = post + "Transfer-Encoding: chunked\n"
		expect       = "Expect: 100-continue\nContent-Length: 27\n\n"
		refused      = "413 request_entity_too_large: the body is over 65536 bytes" + closes
		badBody      = "400 invalid_body: the body is cut short or badly chunked"
	)
	for _, c := range []struct {
		name, send string
		want       string // answers, with blank lines between them, until the service closes the connection
		isLeaving  bool   // whether the client closes its sending side
	}{
		{name: "pipelining, and a GET with a body", want: "200 []\n\n200 []\n\n200 []" + closes,
			send: get + "\n" + get + "Content-Length: 2\n\n{}" + get + last},
		{name: "chunks, 64 KiB", want: made + closes,
			send: chunked + last + chunk(pet[:5]) + chunk(pet[5:]+rest) + chunk("")},
		{name: "64 KiB and a byte", send: chunked + "\n" + chunk(pet+rest+" "), want: refused},
		{name: "a bad chunk", send: chunked + "\nx\n", want: badBody + closes, isLeaving: true},
		{name: "half a body", send: post + "Content-Length: 28\n\n" + pet, want: badBody, isLeaving: true},
		{name: "too long", send: "PUT /" + withKey + "Content-Length: 300000\n\n" + long, want: refused},
		{name: "headers of 64 KiB", send: get + "X: " + long[:65336] + "\n" + last, want: "200 []" + closes},
		{name: "headers over 64 KiB", send: get + "X: " + long[:65536] + "\n\n", want: "431 431 Request " +
			"Header Fields Too Large" + closes + "\nContent-Type: text/plain; charset=utf-8"},
		{name: "Expect", send: post + "Connection: close\n" + expect + pet, want: "100\n\n" + made + closes},
		{name: "Expect and too long", send: post + strings.Replace(expect, "27", "65537", 1), want: refused},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.do(t, "POST /__admin/reset")
			conn := s.dial(t, c.send)
			if c.isLeaving {
				conn.CloseWrite()
			}
			for _, want := range append(strings.Split(c.want, "\n\n"), noAnswer) {
				conn.read().check(t, "an answer", want)
			}
			isKept := strings.Contains(s.do(t, "GET /__admin/requests").body, `"body":"{\"name`)
			isMade := strings.Contains(c.want, made)
			equal(t, "whether the journal has the body", isKept, isMade)
			equal(t, "whether a pet is added", s.do(t, "GET /v1/pets").body != "[]\n", isMade)
		})
	}
}

// Slow headers close the connection, and a slow body is a 408. The delays of a fault may take longer.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	s := serveService(t, plainService(), func(srv *http.Server) {
		srv.ReadHeaderTimeout, srv.ReadTimeout = 2*time.Second, 2*time.Second
	})
	s.dial(t, "").read().check(t, "nothing", noAnswer)
	s.dial(t, "POST /v1/pets"+withKey+"Content-Length: 3\n\n{}").read().check(t, "half a body",
		"408 request_timeout: the body did not arrive in time\nConnection: close")
	for code, want := range map[string]string{"": "200 []", "&code=418": teapot, "&code=hangup": noAnswer} {
		s.do(t, "PUT /__admin/fault?delay=1.1&answer-delay=1.1"+code)
		begin := time.Now()
		s.expect(t, "GET /v1/pets", want)
		holds(t, time.Since(begin) >= 2200*time.Millisecond, "%q waits for both: %v", code, time.Since(begin))
	}
}

// A bug, be it a panic or an error that is no Error, is a 500. Only the log tells what it is.
func TestBugs(t *testing.T) {
	all, secret := routes, errors.New("open /secret: permission denied")
	defer func() { routes = all }()
	const bug, full = "the service has a bug; its log has the details", "pet 3: it is full"
	const logged, panicked = `level=ERROR msg=bug error="open /secret: permission denied" method=GET url=/v1/pets/bug`, `level=ERROR msg=bug error="panic: open /secret: .*TestBugs.*"`
	for name, c := range map[string]struct {
		do             func(x *exchange) error
		answer, logged string
	}{
		"an error": {do: func(x *exchange) error { x.reply(201, "", []byte("half")); return secret },
			answer: "500 internal_server_error: " + bug, logged: logged},
		"a panic": {do: func(x *exchange) error { x.replyJSON(201, []byte("half")); panic(secret) },
			answer: "500 internal_server_error: " + bug, logged: panicked},
		"no bug": {do: func(*exchange) error { return fmt.Errorf("pet 3: %w", newError(507, "it is full")) },
			answer: "507 insufficient_storage: " + full, logged: "^$"},
	} {
		t.Run(name, func(t *testing.T) {
			routes = append(slices.Clip(all), route{pattern: "GET /v1/pets/bug", do: c.do})
			s := start(t)
			s.expect(t, "GET /v1/pets/bug", c.answer)
			s.expect(t, "GET /v1/pets", "200 []")
			s.stop()
			matches(t, s.stderr.String(), c.logged)
		})
	}
}

// A full store answers 507 to creates, and refuses a seed. All else is as before.
func TestFullStore(t *testing.T) {
	seed := newStore()
	seed.size = maxSize - petCost - int64(len(stored))
	const full = "507 insufficient_storage: the store is full; its limit is 268435456 bytes"
	const create = "POST /v1/pets " + pet
	s := serveService(t, testService(seed, 0, context.Background()))
	s.expect(t, `POST /v1/pets {"name":"ab","categoryId":1}`, full)
	for range 2 {
		s.expect(t, create, made)
		s.expect(t, create, full)
		s.expect(t, "GET /v1/pets", "200 ["+stored+"]")
		s.expect(t, "POST /__admin/reset", "204")
	}
	pets := seed.clone()
	equal(t, "the error of a pet of a seed that fits", pets.putSeed([]byte(pet)), nil)
	e, _ := pets.putSeed([]byte(pet)).(Error)
	equal(t, "the status of one that does not fit", e.Status, 507)
}

// README: Flags, output, the end.

// Flags, and command lines that do not serve. A fatal error is one line on stderr, and says what is right.
func TestCommandLine(t *testing.T) {
	const duration = "it must be a duration from 0s to 30s, such as 150ms or 2s; -h lists the flags"
	slow, begin := start(t, "-latency", "50ms"), time.Now()
	slow.expect(t, "GET /v1/pets\nPrefer: delay=0.05", "200 []\nPreference-Applied: delay=0.05")
	holds(t, time.Since(begin) >= 100*time.Millisecond, "-latency delays the request, and the fault does too")
	for _, c := range []struct {
		key, args string
		code      int
		error     string
	}{
		{args: "-x\ny", code: 2, error: ".*-x y; -h lists the flags"},
		{args: "-stdin stray\r\none", code: 2, error: "unexpected argument stray one; -h lists the flags"},
		{args: "-version stray", code: 2, error: "unexpected argument stray; -h lists the flags"},
		{args: "-log=perhaps", code: 2, error: ".*perhaps.*; -h lists the flags"},
		{args: "-latency -1ns", code: 2, error: ".*-1ns.*" + duration},
		{args: "-latency 30.001s", code: 2, error: ".*30.001s.*" + duration},
		{args: "-seed no\n.json", code: 1, error: ".*no .json.*"},
		{args: "-stdin", key: "k k", code: 1, error: "PETSTORE_API_KEY must be 1 to 4096 visible ASCII .*"},
		{args: "-stdin", key: "k\x7f", code: 1, error: "PETSTORE_API_KEY must be .*"},
		{args: "-stdin", key: strings.Repeat("k", 4097), code: 1, error: "PETSTORE_API_KEY must be .*"},
		{args: "-addr ", code: 1, error: ".*; write -addr 127.0.0.1:8080, or -addr :8080 for all interfaces"},
		{args: "-addr :", code: 1, error: ".*; write -addr 127.0.0.1:8080, or -addr :8080 for all interfaces"},
		{args: "-addr 8081", code: 1, error: ".*; -addr must be host:port, .*"},
		{args: "-addr 1.2.3.4:80", code: 1, error: ".*; -addr must be host:port, .*"},
		{args: "-addr " + slow.addr, code: 1, error: ".*; -addr 127.0.0.1:0 takes any free port"},
	} {
		t.Run(fmt.Sprintf("%s %.9s", c.args, c.key), func(t *testing.T) {
			command{key: c.key, args: strings.Split(c.args, " ")}.ends(t, c.code, "", "petstore: "+c.error)
		})
	}
	command{args: []string{"-version"}}.ends(t, 0, "1.0.0\n", "")
	command{args: []string{"-h"}}.ends(t, 0, "", `(?s).* at /,.*/openapi.*_API_KEY.*1 to 4096.*up to 30s.*`)
}

// A standard output that cannot be written, or a listener that fails, ends the service with an error.
func TestServeFails(t *testing.T) {
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	r, stdout := io.Pipe()
	r.Close()
	err := within(t, "the end", func() error { return serve(ln, plainService(), stdout) })
	holds(t, errors.Is(err, io.ErrClosedPipe), "it ends with the error of standard output: %v", err)
	ln.Close()
	err = within(t, "the end", func() error { return serve(ln, plainService(), io.Discard) })
	holds(t, errors.Is(err, net.ErrClosed), "it ends with the error of the listener: %v", err)
}

// GOGC and GOMEMLIMIT win over what the service sets.
func TestCollectorSettings(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	stopped, stop := context.WithCancel(context.Background())
	stop()
	for set, want := range map[string][2]int64{ // by the variable that is set: GOGC and GOMEMLIMIT afterwards
		"": {400, memoryLimit}, "GOGC": {77, memoryLimit}, "GOMEMLIMIT": {400, 900 << 20},
	} {
		debug.SetGCPercent(77) // as the runtime does at its start
		debug.SetMemoryLimit(900 << 20)
		getenv := func(name string) string { return map[string]string{set: "set"}[name] }
		run(stopped, []string{"-addr", "127.0.0.1:0"}, getenv, nil, io.Discard, io.Discard)
		equal(t, "with "+set, [2]int64{int64(debug.SetGCPercent(100)), debug.SetMemoryLimit(-1)}, want)
	}
}

// At a signal, what is in flight is answered. A second one ends the service at once. SIGINT is ignored at the
// start, as by "&" in scripts.
func TestSignals(t *testing.T) {
	for name, signal := range map[string]os.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": os.Interrupt} {
		for _, isTwice := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/twice=%t", name, isTwice), func(t *testing.T) {
				cmd := child("-log")
				ignoring := []string{"sh", "-c", `trap "" INT; exec "$0" "$@"`}
				cmd.Path, cmd.Args = "/bin/sh", append(ignoring, cmd.Args...)
				p := launch(t, cmd)
				upload := p.upload(t)
				p.cmd.Process.Signal(signal)
				p.untilRefused(t) // otherwise, the two could come as one
				if isTwice {
					p.cmd.Process.Signal(signal)
					p.ends(t, "exit status 1")
					return
				}
				upload.send("", pet)
				upload.read().check(t, "what is in flight", made+"\nConnection: close")
				p.ends(t, "<nil>")
				matches(t, p.stderr.String(), `(?s)stopping; .*limit=10s\n.*msg=request .*status=201\n$`)
			})
		}
	}
}

// A start that still reads its seed stops once that is read.
func TestStopWhileSeeding(t *testing.T) {
	seed, w, _ := os.Pipe()
	cmd := child("-seed", "/dev/fd/3")
	cmd.ExtraFiles = []*os.File{seed}
	must(0, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	within(t, "the reading of the seed", func() int { // more than a pipe holds
		return must(w.WriteString(strings.Repeat(" ", 1000000)))
	})
	cmd.Process.Signal(syscall.SIGTERM)
	w.WriteString("[]")
	w.Close()
	equal(t, "the end of the process", within(t, "the end of the process", cmd.Wait), nil)
}

// What is in flight has 10 seconds. Here it is cut off before it would get the 408 that is due after 15.
func TestStopWaitsTenSeconds(t *testing.T) {
	t.Parallel()
	p := launch(t, child())
	upload, begin := p.upload(t), time.Now()
	p.cmd.Process.Signal(syscall.SIGTERM)
	upload.read().check(t, "the upload", noAnswer)
	holds(t, time.Since(begin) >= 9*time.Second, "it had 9 seconds at least: %v", time.Since(begin))
	p.ends(t, "<nil>")
}

// With -stdin, the service stops when its standard input ends. Without it, that is ignored.
func TestStdin(t *testing.T) {
	stdin, starter := io.Pipe()
	s := command{key: testKey, stdin: stdin, args: []string{"-stdin", "-log"}}.start(t)
	within(t, "the reading of standard input", func() int { return must(starter.Write([]byte("more\n"))) })
	s.expect(t, "GET /healthz", `200 {"status":"ok"}`)
	starter.Close()
	s.untilRefused(t)
	s.stop()
	matches(t, s.stderr.String(), `(?s)standard input has ended, .*stopping; `)
}

// README: Limits. What several files must say alike, and long runs.

// The routes and api/openapi.json have the same operations and parameters, but for a few paths. Operations
// under /v1 are those of a fault and the steps of TestModel. Schemas have the members of the structs.
func TestRegistries(t *testing.T) {
	const openapi, theRoutes = "api/openapi.json", "the table of routes"
	api, schemas := readOpenAPI()
	var described, outdated, routed, operations []string
	for pattern, o := range api {
		described = append(described, pattern+" "+o.OperationID)
		for _, p := range o.Parameters {
			if p.In == "query" {
				described = append(described, pattern+"?"+p.Name)
			}
		}
		if o.Deprecated {
			outdated = append(outdated, o.OperationID)
		}
	}
	undescribed := []string{"GET /v1/store/orders", "GET /healthz", "GET /openapi.json", "GET /{$}"}
	for _, rt := range routes {
		if !slices.Contains(undescribed, rt.pattern) {
			routed = append(routed, rt.pattern+" "+rt.operation)
		}
		for _, name := range rt.parameters {
			routed = append(routed, rt.pattern+"?"+name)
		}
		if rt.operation != "" && strings.Contains(rt.pattern, " /v1/") {
			operations = append(operations, rt.operation)
		}
	}
	sameNames(t, openapi, described, theRoutes, routed)
	var withHeaders []string
	for _, rt := range routes {
		if rt.headers != nil {
			withHeaders = append(withHeaders, rt.operation)
		}
	}
	sameNames(t, "deprecated in "+openapi, outdated, "the routes with headers", withHeaders)
	sameNames(t, "faultKinds", keys(faultKinds), "faultCodes", faultCodes)
	sameNames(t, "newPetMembers", newPetMembers, "NewPet", members(NewPet{}))
	sameNames(t, "faultOperations", faultOperations, theRoutes, operations)
	sameNames(t, "steps of TestModel", keys(steps), theRoutes, operations)
	sameNames(t, "the schema FaultOperation", schemas["FaultOperation"].Enum, theRoutes, operations)
	words := schemas["FaultCode"].AnyOf[1].Enum // AnyOf[0] is a status
	sameNames(t, "the schema FaultCode", words, "faultCodes", faultCodes)
	sameNames(t, "the schema PetStatus", schemas["PetStatus"].Enum, "statuses", statuses[1:])
	for name, v := range map[string]any{"NewPet": NewPet{}, "Pet": Pet{}, "Error": Error{},
		"Fault": standingFaultState{}, "JournalEntry": entry{}} {
		sameNames(t, "the schema "+name, keys(schemas[name].Properties), fmt.Sprintf("%T", v), members(v))
	}
}

// Each status that api/openapi.json describes is answered, as it is described there.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	full := newStore()
	full.size = maxSize
	s, crammed := serveService(t, plainService()), serveService(t, testService(full, 0, context.Background()))
	slow := serveService(t, plainService(), func(srv *http.Server) { srv.ReadTimeout = time.Second })
	const fault = "PUT /__admin/fault?code=503&delay=0&answer-delay=0&retry-after=7&operation=createPet" +
		"&skip=99&times=2"
	succeeds := map[string]string{ // where the pattern of the route is not enough
		"createPet": "POST /v1/pets " + pet, "reset": "POST /__admin/reset [" + pet + "]", "setFault": fault,
	}
	fails := map[string]string{
		"listPets 400": "GET /v1/pets?limit=0", "createPet 400": "POST /v1/pets {}",
		"getPet 400": "GET /v1/pets/x", "getPet 404": "GET /v1/pets/5", "reset 400": "POST /__admin/reset {}",
		"setFault 400": "PUT /__admin/fault?code=x",
	}
	headers := map[string]string{ // with which those requests fail that have the status
		"401": "Authorization: x", "413": "Content-Length: 65537", "415": "Content-Type: x",
		"502": "Prefer: code=html", "default": "Content-Length: 999", // no body comes: a 408
	}
	services := map[string]*testServer{"507": crammed, "default": slow} // for the rest, s
	api, _ := readOpenAPI()
	for pattern, o := range api {
		name := o.OperationID
		request := cmp.Or(succeeds[name], sample(pattern))
		for status := range o.Responses {
			t.Run(name+"/"+status, func(t *testing.T) {
				s.do(t, "POST /__admin/reset ["+stored+","+pet+"]")
				s.do(t, fault)
				s.do(t, "POST /v1/pets {}\nPrefer: delay=0") // for the journal
				sent := cmp.Or(fails[name+" "+status], request+"\n"+headers[status])
				r := cmp.Or(services[status], s).do(t, sent)
				equal(t, sent, strconv.Itoa(r.status), strings.Replace(status, "default", "408", 1))
				o.check(t, r)
				if strings.Contains(request, "/v1/") && status[0] != '2' { // the same may be simulated
					code := strings.Replace(status, "default", "599", 1)
					o.check(t, s.do(t, request+"\nPrefer: retry-after=7, code="+code))
				}
			})
		}
	}
}

// sample returns a request, or its target, for the pattern of a route: /v1/pets/1 for /v1/pets/{petId}.
func sample(pattern string) string {
	return regexp.MustCompile(`\{\w+\}`).ReplaceAllString(strings.TrimSuffix(pattern, "{$}"), "1")
}

// operation is an operation in api/openapi.json.
type operation struct {
	OperationID string
	Deprecated  bool
	Parameters  []struct {
		Name, In string
		Schema   *schema
	}
	Responses map[string]struct {
		Headers, Content map[string]struct {
			Schema   *schema
			Required bool // of a header
		}
	}
}

// check compares an answer with its description: that of its status, or the default.
func (o operation) check(t *testing.T, r reply) {
	t.Helper()
	told, found := o.Responses[strconv.Itoa(r.status)]
	if !found {
		told = o.Responses["default"]
	}
	media, body := r.header.Get("Content-Type"), any(r.body)
	if media == "application/json" {
		json.Unmarshal([]byte(r.body), &body)
	}
	if schema := told.Content[media].Schema; schema != nil {
		err := schema.check("the body", body)
		holds(t, err == nil, "the body is as described: %v: %s", err, r)
	} else {
		holds(t, r.body == "" && told.Content == nil, "a body of the type %q is described: %s", media, r)
	}
	names := []string{"Connection", "Content-Length", "Content-Type", "Date"}
	if r.header.Get("Preference-Applied") != "" { // an error that was asked for may have these, too
		names = append(append(names, keys(o.Responses["default"].Headers)...), "WWW-Authenticate")
	}
	for name, h := range told.Headers {
		names = append(names, name)
		holds(t, !h.Required || r.header.Get(name) != "", "the answer has the header %s", name)
	}
	for name := range r.header {
		isName := func(described string) bool { return strings.EqualFold(described, name) }
		holds(t, slices.ContainsFunc(names, isName), "the header %s is described", name)
	}
}

// schema is a schema, as far as the tests need it.
type schema struct {
	Type, Pattern               string
	Enum, Required              []string
	Properties                  map[string]*schema
	Items, AdditionalProperties *schema
	AllOf, AnyOf                []*schema
	Minimum, Maximum, Default   json.Number
	MaxItems                    int
}

// readOpenAPI reads api/openapi.json: the operations by the patterns of their routes, and the schemas.
func readOpenAPI() (map[string]operation, map[string]*schema) {
	var file struct {
		Paths, Components map[string]map[string]json.RawMessage
	}
	text, ref := string(openAPI), regexp.MustCompile(`\{\s*"\$ref": "#/components/(\w+)/(\w+)"\s*\}`)
	must(0, json.Unmarshal(openAPI, &file))
	for ref.MatchString(text) { // what is referred to takes the place of each reference
		text = ref.ReplaceAllStringFunc(text, func(found string) string {
			name := ref.FindStringSubmatch(found)
			return string(file.Components[name[1]][name[2]])
		})
	}
	must(0, json.Unmarshal([]byte(text), &file))
	var described struct {
		Components struct{ Schemas map[string]*schema }
	}
	must(0, json.Unmarshal([]byte(text), &described))
	operations := map[string]operation{}
	for path, methods := range file.Paths {
		if methods["servers"] == nil {
			path = "/v1" + path
		}
		for method, value := range methods {
			var o operation
			if json.Unmarshal(value, &o) == nil { // and no list of servers
				operations[strings.ToUpper(method)+" "+path] = o
			}
		}
	}
	return operations, described.Components.Schemas
}

// UnmarshalJSON reads a schema. Those in allOf become one.
func (s *schema) UnmarshalJSON(text []byte) error {
	type plain schema // without this method
	err := json.Unmarshal(text, (*plain)(s))
	for _, part := range s.AllOf {
		s.Type = "object"
		if s.Properties == nil {
			s.Properties = map[string]*schema{}
		}
		maps.Copy(s.Properties, part.Properties)
		s.Required = append(s.Required, part.Required...)
	}
	return err
}

// check returns how v, which it calls what, differs from the schema. Members that this lacks are an error.
func (s *schema) check(what string, v any) error {
	if slices.ContainsFunc(s.AnyOf, func(part *schema) bool { return part.check(what, v) == nil }) {
		return nil
	}
	ok := false
	switch v := v.(type) {
	case string:
		ok = s.Type == "string" && s.AnyOf == nil && regexp.MustCompile(s.Pattern).MatchString(v) &&
			(s.Enum == nil || slices.Contains(s.Enum, v))
	case float64:
		least, errLeast := s.Minimum.Float64()
		most, errMost := s.Maximum.Float64()
		ok = (s.Type == "number" || s.Type == "integer" && v == math.Trunc(v)) &&
			(errLeast != nil || v >= least) && (errMost != nil || v <= most)
	case []any:
		ok = s.Type == "array" && (s.MaxItems == 0 || len(v) <= s.MaxItems)
		for i, item := range v {
			if err := s.Items.check(fmt.Sprintf("%s[%d]", what, i), item); err != nil {
				return err
			}
		}
	case map[string]any:
		ok = s.Type == "object"
		for _, name := range s.Required {
			if v[name] == nil {
				return fmt.Errorf("%s lacks %s", what, name)
			}
		}
		for name, value := range v {
			property := cmp.Or(s.Properties[name], s.AdditionalProperties)
			if property == nil {
				return fmt.Errorf("%s has %s, which is not described", what, name)
			}
			if err := property.check(what+"."+name, value); err != nil {
				return err
			}
		}
	}
	if !ok {
		return fmt.Errorf("%s is %v, which its schema does not allow", what, v)
	}
	return nil
}

// The documents say the constants and the names of the source.
func TestDocuments(t *testing.T) {
	readme, contract, openapi, page := "README.md", "api/contract.md", "api/openapi.json", "api/index.html"
	says := func(document, words string, values ...any) {
		t.Helper()
		if want := fmt.Sprintf(words, values...); !strings.Contains(readFile(document), want) {
			t.Errorf("%s does not say: %s", document, want)
		}
	}
	srv, wait := newServer(plainService()), maxWait.Seconds()
	code := func(status int) string { return newError(status, "").Code }
	thousands := func(n int) string { return fmt.Sprintf("%d,%03d", n/1000, n%1000) }
	says(readme, "[the contract](api/contract.md), version %s,", version)
	says(contract, "# The contract of the animal store, version %s\n", version)
	says(contract, "1. This is version %s of", version)
	says(openapi, `"version": "%s"`, version)
	says(readme, "| `limit` of a list | 1 to %d, by default %d |", maxLimit, defaultLimit)
	says(contract, "| `limit` | integer | no | 1 to %d, by default %d |", maxLimit, defaultLimit)
	says(contract, "no `limit` gets up to %d pets", defaultLimit)
	says(contract, "`limit` below 1 or above %d is against", maxLimit)
	says(contract, "| largest page | `limit` of listPets | %d |", maxLimit)
	says(contract, "| page without a `limit` | `limit` of listPets | %d |", defaultLimit)
	says(openapi, `"minimum": 1, "maximum": %d, "default": %d }`, maxLimit, defaultLimit)
	says(openapi, `"maxItems": %d,`, maxLimit)
	says(openapi, `"maxItems": %d,`, maxJournal)
	says(openapi, `"maximum": %d,`, maxSeedID)
	says(readme, "| sizes | request body %d KiB, headers %d KiB, seed file %d MiB |", maxBody>>10,
		(srv.MaxHeaderBytes+4096)>>10, maxSeed>>20)
	says(readme, "| store | %d MiB of pets, each counted as its JSON and %d bytes |", maxSize>>20, petCost)
	says(readme, "| journal | the last %s requests, %d MiB of them; %s bytes of each answer;",
		thousands(maxJournal), maxJournalSize>>20, thousands(maxAnswer))
	says(readme, "| time | headers %v seconds, request %v seconds, answer %v minutes, idle connection "+
		"%v minutes, the end %v seconds |", srv.ReadHeaderTimeout.Seconds(), srv.ReadTimeout.Seconds(),
		srv.WriteTimeout.Minutes(), srv.IdleTimeout.Minutes(), stopTimeout.Seconds())
	says(readme, "| `-latency`, each delay, a stall | %v seconds |", wait)
	says(readme, "| key | 1 to %s visible", thousands(maxKey))
	for _, word := range faultCodes {
		says(readme, "\n| `%s` | ", word)
	}
	says(page, "<option>%s</datalist>", strings.Join(faultCodes, "<option>"))
	says(readme, " open and silent for %v seconds,", wait)
	for _, name := range standingFaultParameters {
		says(readme, "\n| `%s` | ", name)
		says(page, `name="%s"`, name)
	}
	says(readme, "| `delay` | seconds, 0 to %v |", wait)
	says(readme, "| `answer-delay` | seconds, 0 to %v |", wait)
	says(readme, "| `retry-after` | seconds, 0 to %d |", maxRetryAfter)
	says(readme, "| `operation` | `%s` |", strings.Join(faultOperations, "`, `"))
	says(page, "all<option>%s</select>", strings.Join(faultOperations, "<option>"))
	says(readme, "`Petstore-Observer`")
	says(page, `"Petstore-Observer"`)
	says(readme, "| 400 | `%s` |", codeInvalidParameter)
	says(readme, "| 400 | `%s` |", codeInvalidBody)
	says(readme, "| 401 | `%s`, `%s` |", code(401), codeInvalidToken)
	says(readme, "| 404, 405 | `%s`, `%s` |", code(404), code(405))
	says(readme, "| 408, 413 | `%s`, `%s` |", code(408), code(413))
	says(readme, "| 415 | `%s` |", code(415))
	says(readme, "| 500, 501, 507 | `%s`, `%s`, `%s` |", code(500), code(501), code(507))
	for _, name := range members(entry{}) {
		says(readme, "`%s`", name)
	}
	for _, rt := range routes {
		for _, name := range rt.parameters {
			says(readme, "`%s`", name)
		}
		if !slices.Contains(faultOperations, rt.operation) {
			continue
		}
		heading, headers := rt.operation, rt.headers
		if headers != nil {
			heading += ", deprecated"
			sunset := must(http.ParseTime(headers.Get("Sunset"))).Format("2 January 2006")
			says(readme, "`Sunset` (%s)", sunset)
			says(contract, "It is due to be removed on %s.", sunset)
			says(contract, "is deprecated, and due to be removed on %s.", sunset)
			says(openapi, "Scheduled for removal on %s.", sunset)
		}
		says(readme, "\n| %s | `%s`", heading, rt.pattern)
		says(contract, " %s\n\n`%s`", heading, strings.Replace(rt.pattern, "/v1", "", 1))
	}
	for document, words := range map[string]string{readme: ", deprecated |", contract: ", deprecated\n"} {
		equal(t, words+" in "+document, strings.Count(readFile(document), words), 1)
	}
	var help lockedBuffer
	run(context.Background(), []string{"-h"}, os.Getenv, nil, io.Discard, &help)
	flags := regexp.MustCompile(`(?m)^  (-.+)\n.*?(?:\(default "?(.*?)"?\))?$`) // and its use on a line
	for _, m := range flags.FindAllStringSubmatch(help.String(), -1) {
		says(readme, "\n| `%s`", m[1])
		if m[2] != "" {
			says(readme, "\n| `%s` | `%s` |", m[1], m[2])
		}
	}
}

// members returns the names of a struct in JSON.
func members(v any) (names []string) {
	for _, field := range reflect.VisibleFields(reflect.TypeOf(v)) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// model has the pets that the service should have, in ascending order of id. Nobody may change the slice in
// place, as the model of a seed shares it.
type model struct {
	pets []Pet
	last int64
}

var statuses = []string{"", "available", "pending", "sold"}

// randomPet returns a pet with values that meet those of other pets.
func randomPet(random *rand.Rand) NewPet {
	category := []int64{math.MinInt64, -1, 0, 7, 8, math.MaxInt64}[random.Intn(6)]
	return NewPet{strings.Repeat("n", random.Intn(30)), category, PetStatus(statuses[random.Intn(4)])}
}

// randomSeed returns the model of a seed, and the seed: shuffled, and behind it three pets without ids.
func randomSeed(random *rand.Rand) (m model, seed string) {
	next := func(step int64) Pet {
		m.last += step
		p := Pet{ID: m.last, NewPet: randomPet(random)}
		m.pets = append(m.pets, p)
		return p
	}
	var elements []string
	for range random.Intn(60) {
		elements = append(elements, string(encodeJSON(next(1+random.Int63n(4)))))
	}
	random.Shuffle(len(elements), reflect.Swapper(elements))
	for range 3 {
		elements = append(elements, string(encodeJSON(next(1).NewPet)))
	}
	return m, "[" + strings.Join(elements, ",") + "]"
}

// steps return, for each operation, a random request and its answer.
var steps = map[string]func(m *model, random *rand.Rand) (request, answer string){
	"listPets": func(m *model, random *rand.Rand) (request, answer string) {
		limit, after, status, kept, link := 20, int64(math.MinInt64), PetStatus(""), "", ""
		if random.Intn(2) == 0 {
			limit = random.Intn(maxLimit) + 1
			kept += fmt.Sprintf("limit=%d&", limit)
		}
		if random.Intn(2) == 0 {
			status = PetStatus(statuses[random.Intn(3)+1])
			kept += fmt.Sprintf("status=%s&", status)
		}
		query, page := kept, []Pet{}
		if random.Intn(2) == 0 {
			after = random.Int63n(m.last+5) - 2
			query += fmt.Sprint("after=", after)
		}
		for _, p := range m.pets {
			if p.ID <= after || status != "" && p.Status != status {
				continue
			} else if len(page) == limit {
				link = fmt.Sprintf("\nLink: </v1/pets?%safter=%d>; rel=\"next\"", kept, page[limit-1].ID)
				break
			}
			page = append(page, p)
		}
		return "GET /v1/pets?" + query, "200 " + string(encodeJSON(page)) + link
	},
	"createPet": func(m *model, random *rand.Rand) (request, answer string) {
		m.last++
		p := Pet{ID: m.last, NewPet: randomPet(random)}
		m.pets = append(slices.Clip(m.pets), p)
		answer = fmt.Sprintf("201 %s\nLocation: /v1/pets/%d", encodeJSON(p), p.ID)
		return "POST /v1/pets " + string(encodeJSON(p.NewPet)), answer
	},
	"getPet": func(m *model, random *rand.Rand) (request, answer string) {
		id := random.Int63n(m.last+3) - 1
		answer = "404 not_found"
		if i := slices.IndexFunc(m.pets, func(p Pet) bool { return p.ID == id }); i >= 0 {
			answer = "200 " + string(encodeJSON(m.pets[i]))
		}
		return fmt.Sprint("GET /v1/pets/", id), answer + deprecated
	},
}

// Long random sequences of all operations and resets do what the model does, and the journal has them all.
func TestModel(t *testing.T) {
	for round := range 3 {
		random := rand.New(rand.NewSource(int64(round)))
		seed, file := randomSeed(random)
		s, m := start(t, "-seed", tempFile(t, file)), seed
		var journal []entry
		for n := 0; n < 1000 && !t.Failed(); n++ {
			switch random.Intn(50) {
			case 0:
				s.expect(t, "POST /__admin/reset", "204")
				m, journal = seed, nil
			case 1:
				m, file = randomSeed(random)
				s.expect(t, "POST /__admin/reset "+file, "204")
				journal = nil
			case 2, 3:
				s.recorded(t, journal...)
			default:
				names := keys(steps)
				request, answer := steps[names[random.Intn(len(names))]](&m, random)
				s.do(t, request).check(t, fmt.Sprintf("round %d, step %d: %s", round, n, request), answer)
				journal = append(journal, entryOf(request, must(strconv.Atoi(answer[:3]))))
			}
		}
	}
}

// What takes long or much memory: a million pets, and the end of a stall.
func TestLong(t *testing.T) {
	if os.Getenv("PETSTORE_LONG") == "" {
		t.Skip("PETSTORE_LONG is not set")
	}
	t.Run("a million pets", func(t *testing.T) {
		p := launch(t, child("-seed", tempFile(t, seedOf(1000000))))
		together(8, func(i int) {
			for n := range 1000 {
				after, page := int64(i*100000+n*75), []Pet{}
				r := p.do(t, fmt.Sprint("GET /v1/pets?limit=100&status=sold&after=", after))
				json.Unmarshal([]byte(r.body), &page)
				holds(t, len(page) == 100 && page[0].ID > after, "a page after %d has 100 pets: %s", after, r)
			}
		})
		mib := p.proc(t, "status", `VmHWM:\s*(\d+) kB`) >> 10 // the most so far
		holds(t, mib <= 500, "it takes 500 MiB of memory at most: %d", mib)
	})
	t.Run("a stall", func(t *testing.T) {
		begin := time.Now()
		c := start(t).dial(t, "GET /v1/pets"+withKey+"Prefer: code=stall\n\n")
		c.SetDeadline(begin.Add(maxWait + patience))
		c.read().check(t, "a stall", "200 […\nContent-Length: 3\nPreference-Applied: code=stall")
		holds(t, time.Since(begin) >= maxWait, "it takes 30 seconds: %v", time.Since(begin))
	})
}

// proc returns what a group of a regular expression matches in a file of the process in Linux's /proc.
func (p *process) proc(t testing.TB, file, expression string) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, file))
	if err != nil {
		t.Skip("memory and CPU time are read from /proc")
	}
	return must(strconv.Atoi(regexp.MustCompile(expression).FindStringSubmatch(string(text))[1]))
}

// cpu returns the CPU time that the process has used, in steps of 10 ms.
func (p *process) cpu(t testing.TB) time.Duration {
	user, system := p.proc(t, "stat", `(?:\S+ ){13}(\d+)`), p.proc(t, "stat", `(?:\S+ ){14}(\d+)`)
	return time.Duration(user+system) * 10 * time.Millisecond
}

// The CPU time of a request, and its ratio to that of a bare net/http server that sends the same bytes.
func BenchmarkPetstore(b *testing.B) {
	for _, n := range []int{1000, 1000000} {
		if n > 1000 && os.Getenv("PETSTORE_LONG") == "" {
			continue
		}
		p := launch(b, child("-seed", tempFile(b, seedOf(n))))
		for name, request := range map[string]string{
			"list20": "GET /v1/pets", "list100": "GET /v1/pets?limit=100",
			"filtered": "GET /v1/pets?status=sold", "get": fmt.Sprint("GET /v1/pets/", n-1),
			"create": "POST /v1/pets " + pet,
		} {
			b.Run(fmt.Sprint(name, "/pets=", n), func(b *testing.B) { compare(b, p, request) })
		}
	}
}

// compare sends b.N requests to p and to a bare server, over 32 connections.
func compare(b *testing.B, p *process, request string) {
	answer, bare := p.do(b, request), child()
	bare.Env = append(bare.Env, "PETSTORE_TEST_CHILD=bare", "PETSTORE_TEST_BODY="+answer.body,
		"PETSTORE_TEST_HEADER="+string(encodeJSON(answer.header)))
	servers := []*process{p, launch(b, bare)}
	load := func(s *process, n int) {
		together(32, func(i int) {
			for ; i < n; i += 32 {
				s.do(b, request)
			}
		})
	}
	var used [2]time.Duration
	for sent := 0; sent < b.N; sent += 500 { // in turns, as other programs run, too
		for i, s := range servers {
			begin := s.cpu(b)
			load(s, min(500, b.N-sent))
			used[i] += s.cpu(b) - begin
		}
	}
	b.ReportMetric(0, "ns/op") // that would be the time of both, and of the client
	b.ReportMetric(float64(used[0].Microseconds())/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(used[0])/float64(max(used[1], 1)), "x-bare")
}

// serveBare is the bare server. It has the same answer for all requests.
func serveBare() {
	srv, header, body := newServer(plainService()), http.Header{}, os.Getenv("PETSTORE_TEST_BODY")
	must(0, json.Unmarshal([]byte(os.Getenv("PETSTORE_TEST_HEADER")), &header))
	header.Del("Date")
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		maps.Copy(w.Header(), header)
		if r.Method == http.MethodPost {
			w.WriteHeader(201)
		}
		io.WriteString(w, body)
	})
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	fmt.Printf("http://%s/v1\n", ln.Addr())
	panic(srv.Serve(ln))
}

// Helpers: comparisons.

// expect sends a request, as do takes it, and compares the answer, as String writes it. The end of an Error's
// message may be missing, or all of it.
func (s *testServer) expect(t testing.TB, request, answer string) {
	t.Helper()
	s.do(t, request).check(t, request, answer)
}

// check compares an answer as expect does. A failure calls it what.
func (r reply) check(t testing.TB, what, want string) {
	t.Helper()
	got, want := r.String(), sortHeaders(want)
	line, _, _ := strings.Cut(want, "\n")
	code, message, _ := strings.Cut(line, ": ") // if the message begins as wanted, its rest does not matter
	if e := r.error(); code == fmt.Sprint(r.status, " ", e.Code) && strings.HasPrefix(e.Message, message) {
		got = line + strings.TrimPrefix(got, code+": "+e.Message)
	}
	equal(t, what, got, want)
}

func sortHeaders(answer string) string {
	lines := strings.Split(answer, "\n")
	slices.Sort(lines[1:])
	return strings.Join(lines, "\n")
}

// sameNames compares two lists of names, in any order.
func sameNames(t testing.TB, what string, list []string, otherList string, other []string) {
	t.Helper()
	for _, name := range slices.Concat(list, other) {
		if !slices.Contains(list, name) {
			t.Errorf("%s lacks %s, which %s has", what, name, otherList)
		} else if !slices.Contains(other, name) {
			t.Errorf("%s lacks %s, which %s has", otherList, name, what)
		}
	}
}

// holds reports what is not so.
func holds(t testing.TB, isSo bool, what string, values ...any) {
	t.Helper()
	if !isSo {
		t.Errorf("it is not so that "+what, values...)
	}
}

// matches compares a text with a regular expression.
func matches(t testing.TB, text, expression string) {
	t.Helper()
	if !regexp.MustCompile(expression).MatchString(text) {
		t.Errorf("%.3000s\n--- does not match:\n%s", text, expression)
	}
}

// equal reports got if it is not want.
func equal[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%.300s\n--- got:\n%.30000s\n--- want:\n%.30000s", what, fmt.Sprint(got), fmt.Sprint(want))
	}
}

// Helpers: requests and answers.

// testServer is a petstore that runs.
type testServer struct {
	addr, key string        // host:port, and the key that do sends
	stderr    *lockedBuffer // what it has written there so far
	stop      func()        // of start: stops it, and checks how it ends
	idle      sync.Pool     // connections that are not in use
}

// as returns s for a client that sends another key or, with "", none. It has connections of its own.
func (s *testServer) as(key string) *testServer { return &testServer{addr: s.addr, key: key} }

// do sends a request and reads the answer. In the first line are the method, the target and, behind the next
// space, the body; headers follow. Host, Authorization with the key and a body's Content-Length are sent too
// unless they are given. With Transfer-Encoding: chunked, the body is one chunk.
func (s *testServer) do(t testing.TB, request string) reply {
	t.Helper()
	line, headers, _ := strings.Cut(request, "\n")
	parts := append(strings.SplitN(line, " ", 3), "", "")
	head, body, names := parts[0]+" "+parts[1]+" HTTP/1.1\n", parts[2], "\n"+strings.ToLower(headers)
	if headers != "" {
		head += strings.TrimSuffix(headers, "\n") + "\n"
	}
	if !strings.Contains(names, "\nhost:") {
		head += "Host: petstore\n"
	}
	if !strings.Contains(names, "\nauthorization:") && s.key != "" {
		head += "Authorization: Bearer " + s.key + "\n"
	}
	if strings.Contains(names, "\ntransfer-encoding:") {
		body = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	} else if body != "" && !strings.Contains(names, "\ncontent-length:") {
		head += fmt.Sprintf("Content-Length: %d\n", len(body))
	}
	c := s.connect(t)
	c.send(head+"\n", body)
	r := c.read()
	if r.status == 0 || r.cut || r.close {
		c.Close()
	} else {
		s.idle.Put(c)
	}
	return r
}

// connection is a connection to a service.
type connection struct {
	*net.TCPConn
	in     *bufio.Reader
	method string // of the request that was sent last
}

// connect returns a connection that is not in use.
func (s *testServer) connect(t testing.TB) *connection {
	t.Helper()
	c, _ := s.idle.Get().(*connection)
	if c == nil {
		conn := must(net.DialTimeout("tcp", s.addr, patience))
		c = &connection{TCPConn: conn.(*net.TCPConn), in: bufio.NewReader(conn)}
	}
	c.SetDeadline(time.Now().Add(patience))
	return c
}

// withKey ends the request line that dial is given, and adds Host and the key.
const withKey = " HTTP/1.1\nHost: petstore\nAuthorization: Bearer " + testKey + "\n"

// dial opens a connection until the test ends, and sends what is given, with CR LF for each \n.
func (s *testServer) dial(t testing.TB, send string) *connection {
	t.Helper()
	c := s.as("").connect(t) // a new one: as returns a service that has none yet
	t.Cleanup(func() { c.Close() })
	c.send(send, "")
	return c
}

// send sends head, with CR LF for each \n, and body. That may fail, as the service need not read it all.
func (c *connection) send(head, body string) {
	c.method, _, _ = strings.Cut(head, " ")
	io.WriteString(c, strings.ReplaceAll(head, "\n", "\r\n")+body)
}

// reply is an answer that has been read.
type reply struct {
	status int // 0 if there is no answer
	header http.Header
	body   string // or why there is no answer, if the connection was not just closed
	cut    bool   // whether the connection closed before the body's end
	close  bool   // whether the connection closes after it
}

// read reads the next answer.
func (c *connection) read() reply {
	resp, err := http.ReadResponse(c.in, &http.Request{Method: c.method})
	if errors.Is(err, syscall.ECONNRESET) {
		return reply{body: strings.TrimSpace(resetByPeer)}
	}
	if err != nil {
		return reply{body: strings.TrimPrefix(err.Error(), io.ErrUnexpectedEOF.Error())}
	}
	body, err := io.ReadAll(resp.Body)
	r := reply{resp.StatusCode, resp.Header, string(body), err != nil, resp.Close}
	if r.close && !r.cut {
		c.CloseWrite() // or the service may wait for the rest of the request
		if more, err := io.ReadAll(c.in); len(more) > 0 || os.IsTimeout(err) {
			r.body += fmt.Sprintf("and then, where the connection should close: %q %v", more, err)
		}
	}
	return r
}

// error returns the Error that the answer is, or Error{} for any other answer.
func (r reply) error() (e Error) {
	json.Unmarshal([]byte(r.body), &e)
	if e.Message == "" || e.Status != r.status || string(encodeJSON(e))+"\n" != r.body {
		return Error{}
	}
	return e
}

// String returns the answer as expect takes it: "200 []", "404 not_found: no such path" for an Error, or "no
// answer"; a body that is cut ends with …. Sorted headers follow, but those that each answer has: a right
// Content-Length, Date and a Content-Type of JSON.
func (r reply) String() string {
	if r.status == 0 {
		return strings.TrimSpace("no answer " + r.body)
	}
	answer := strings.ReplaceAll(strings.TrimSuffix(r.body, "\n"), "\n", `\n`)
	if e := r.error(); e != (Error{}) {
		answer = e.Code + ": " + e.Message
	} else if r.cut {
		answer += "…"
	}
	answer = strings.TrimSpace(fmt.Sprint(r.status, " ", answer))
	for name, values := range r.header {
		for _, value := range values {
			isLength := name == "Content-Length" && (r.body == "" || value == strconv.Itoa(len(r.body)))
			if !isLength && name != "Date" && name+value != "Content-Typeapplication/json" {
				answer += "\n" + name + ": " + value
			}
		}
	}
	if r.close {
		answer += "\nConnection: close"
	}
	return sortHeaders(answer)
}

// journal returns the journal.
func (s *testServer) journal(t testing.TB) (requests []entry, total int) {
	t.Helper()
	var journal struct {
		Requests []entry
		Meta     struct{ Total int }
	}
	answer := s.do(t, "GET /__admin/requests")
	if err := json.Unmarshal([]byte(answer.body), &journal); err != nil {
		t.Fatalf("the journal: %v: %s", err, answer)
	}
	return journal.Requests, journal.Meta.Total
}

// recorded compares the journal with these entries: Method, URL, Body, Status and Fault of each.
func (s *testServer) recorded(t testing.TB, want ...entry) {
	t.Helper()
	requests, _ := s.journal(t)
	var got []entry
	for _, e := range requests {
		got = append(got, entry{Method: e.Method, URL: e.URL, Body: e.Body, Status: e.Status, Fault: e.Fault})
	}
	equal(t, "the journal", got, want)
}

// String is JSON, so that a failure names the members.
func (e entry) String() string { return string(encodeJSON(e)) + "\n" }

// comparableOf returns an entry without what varies: times, headers and size.
func comparableOf(e entry) entry {
	e.Time, e.Seconds, e.Headers, e.size = timestamp{}, 0, nil, 0
	return e
}

// entryOf returns the entry of a request, spelt as do takes it, with this status.
func entryOf(request string, status int) entry {
	p := append(strings.SplitN(request, " ", 3), "")
	return entry{Method: p[0], URL: p[1], Body: p[2], Status: status}
}

// untilRecorded waits until the journal has n requests.
func (s *testServer) untilRecorded(t testing.TB, n int) {
	t.Helper()
	eventually(t, "a request in the journal", func() bool { _, total := s.journal(t); return total >= n })
}

// upload begins a create, and returns when the service waits for the body.
func (s *testServer) upload(t testing.TB) *connection {
	t.Helper()
	c := s.dial(t, "POST /v1/pets"+withKey+"Content-Length: 27\nExpect: 100-continue\n\n")
	c.read().check(t, "an upload", "100")
	return c
}

// untilRefused waits until the service takes no new connections.
func (s *testServer) untilRefused(t testing.TB) {
	t.Helper()
	eventually(t, "the refusal of new connections", func() bool {
		c, err := net.Dial("tcp", s.addr)
		return err != nil || c.Close() != nil
	})
}

// untilMet waits until the standing fault has met a request, whose delay may not have begun yet.
func (s *testServer) untilMet(t testing.TB) {
	t.Helper()
	eventually(t, "a request that meets the fault", func() bool {
		return strings.Contains(s.do(t, "GET /__admin/fault").body, `"matched":1,`)
	})
}

// Helpers: three ways to start a service. start runs it in this process, serveAPI gives the test its insides,
// and launch makes it a process of its own.

// testKey is the API key of the services that the tests start.
const testKey = "correct-horse"

// start runs the service with testKey on a free port until the test ends.
func start(t testing.TB, args ...string) *testServer {
	t.Helper()
	return command{key: testKey, args: args}.start(t)
}

// command is a command line, and an environment that has only the key.
type command struct {
	key    string
	args   []string
	stdin  io.Reader // for -stdin
	stderr io.Writer // with nil, start keeps what is written there
}

func (c command) run(ctx context.Context, stdout, stderr io.Writer) int {
	getenv := func(name string) string { return map[string]string{"PETSTORE_API_KEY": c.key}[name] }
	return report(run(ctx, c.args, getenv, c.stdin, stdout, stderr), stderr)
}

// start runs it on a free port until the test ends. It must print only its base URL, and exit with 0.
func (c command) start(t testing.TB) *testServer {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &testServer{key: c.key, stderr: new(lockedBuffer)}
	c.args = append([]string{"-addr", "127.0.0.1:0"}, c.args...)
	out, w := io.Pipe()
	exit := make(chan int, 1)
	go func() { code := c.run(ctx, w, cmp.Or[io.Writer](c.stderr, s.stderr)); w.Close(); exit <- code }()
	stdout := bufio.NewReader(out)
	s.stop = sync.OnceFunc(func() {
		cancel()
		more, _ := io.ReadAll(stdout)
		end := fmt.Sprint(string(more), receive(t, "the end", exit))
		equal(t, "stdout after the base URL, and exit code", end, "0")
	})
	s.addr = readAddr(t, stdout, s.stderr)
	t.Cleanup(s.stop)
	s.key = cmp.Or(s.key, regexp.MustCompile(`[0-9a-f]{32}`).FindString(s.stderr.String()))
	return s
}

// ends runs one that does not serve. Its stderr is compared with a regular expression.
func (c command) ends(t testing.TB, code int, wantStdout, wantStderr string) {
	t.Helper()
	var stdout, stderr lockedBuffer
	got := within(t, "the end", func() int { return c.run(context.Background(), &stdout, &stderr) })
	equal(t, fmt.Sprintf("the exit code of petstore %q", c.args), got, code)
	equal(t, "stdout", stdout.String(), wantStdout)
	matches(t, stderr.String(), "^(?:"+wantStderr+")\n?$")
}

// readAddr waits for the base URL on stdout, and returns its host:port.
func readAddr(t testing.TB, stdout *bufio.Reader, stderr fmt.Stringer) string {
	t.Helper()
	line := within(t, "the base URL", func() string { line, _ := stdout.ReadString('\n'); return line })
	m := regexp.MustCompile(`^http://(127\.0\.0\.1:[1-9]\d*)/v1\n$`).FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("stdout is %q, want the base URL\n%v", line, stderr)
	}
	return m[1]
}

// testAPI returns an api with testKey, whose log nobody reads.
func testService(seed *store, latency time.Duration, stopping context.Context) *service {
	return newService(testKey, seed, latency, stopping.Done(), slog.New(slog.NewTextHandler(io.Discard, nil)))
}

// plainAPI returns one without pets and latency, which never stops.
func plainService() *service { return testService(newStore(), 0, context.Background()) }

// serveAPI serves a until the test ends. Each change is made to the server before.
func serveService(t testing.TB, a *service, changes ...func(*http.Server)) *testServer {
	srv := newServer(a)
	for _, change := range changes {
		change(srv)
	}
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	go srv.Serve(ln)
	t.Cleanup(func() { srv.Close() })
	return &testServer{addr: ln.Addr().String(), key: testKey}
}

// TestMain runs the test binary as the service, for launch, or as the bare server of benchmarks.
func TestMain(m *testing.M) {
	time.Local = time.FixedZone("east", 9*60*60) // so that a local time in the journal is found
	switch os.Getenv("PETSTORE_TEST_CHILD") {
	case "petstore":
		main()
	case "bare":
		serveBare()
	}
	flag.Set("test.parallel", "8") // unless -parallel is given: most parallel tests only wait
	flag.Parse()
	os.Exit(m.Run())
}

// process is a service in a process of its own. It is killed when the test ends.
type process struct {
	*testServer
	cmd    *exec.Cmd
	stdout *bufio.Reader
}

// child is the command of such a process, not yet started.
func child(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append([]string{"-addr", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), "PETSTORE_TEST_CHILD=petstore", "PETSTORE_API_KEY="+testKey)
	cmd.WaitDelay = patience
	return cmd
}

// launch starts a process with a command that child has made.
func launch(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	must(cmd.StdinPipe()) // stays open
	s := &testServer{key: testKey, stderr: new(lockedBuffer)}
	p := &process{s, cmd, bufio.NewReader(must(cmd.StdoutPipe()))}
	cmd.Stderr = cmp.Or[io.Writer](cmd.Stderr, p.stderr)
	must(0, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	p.addr = readAddr(t, p.stdout, p.stderr)
	return p
}

// ends checks how the process ends, "exit status 1" or "<nil>", and that it printed only its base URL.
func (p *process) ends(t testing.TB, how string) {
	t.Helper()
	got := within(t, "the end of the process", func() string {
		more, _ := io.ReadAll(p.stdout)
		return fmt.Sprint(string(more), p.cmd.Wait())
	})
	equal(t, "stdout after the base URL, and the end", got, how)
}

// Helpers: waiting.

// patience is how long a test waits for what must come. Only a test that fails waits that long.
const patience = 30 * time.Second

// within returns what f returns, in time. f runs in a goroutine, so it must not call t.Fatal.
func within[T any](t testing.TB, what string, f func() T) T {
	t.Helper()
	result := make(chan T, 1)
	go func() { result <- f() }()
	return receive(t, what, result)
}

// receive waits for what comes out of a channel.
func receive[T any](t testing.TB, what string, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		t.Fatalf("%s takes longer than %v", what, patience)
	}
	return v
}

// eventually waits until f holds, where there is nothing to wait for but that.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s does not come in %v", what, patience)
		}
	}
}

// together calls f n times at once, with 0 to n-1, and waits for all.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	wg.Add(n)
	for i := range n {
		go func() { defer wg.Done(); f(i) }()
	}
	wg.Wait()
}

// Helpers: values, files and buffers.

// must returns v, and panics at an error. must(0, err) only does the latter.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// keys returns the sorted keys of m.
func keys[V any](m map[string]V) (list []string) {
	for key := range m {
		list = append(list, key)
	}
	slices.Sort(list)
	return list
}

// seedOf returns a seed of n pets, which take some 75 bytes each. The first of each three is sold.
func seedOf(n int) string {
	pets := make([]NewPet, n)
	for i := range pets {
		pets[i] = NewPet{strings.Repeat("x", 16), int64(i % 100), "available"}
		if i%3 == 0 {
			pets[i].Status = "sold"
		}
	}
	return string(encodeJSON(pets))
}

// tempFile writes a file, and returns its path. readFile returns a file of the repository.
func tempFile(t testing.TB, content string) string {
	file := filepath.Join(t.TempDir(), "pets.json")
	must(0, os.WriteFile(file, []byte(content), 0o600))
	return file
}

func readFile(name string) string { return string(must(os.ReadFile(name))) }

// lockedBuffer is a bytes.Buffer that many goroutines may use.
type lockedBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }
