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
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
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

// Most tests send requests over HTTP and compare the responses. Both are written
// as text:
//
//	s := startServer(t)
//	s.expect(t, "GET /v1/pets\nPrefer: delay=0", "200 []\nPreference-Applied: delay=0")
//
// The first line of a request consists of the method, the target and the body,
// and that of a response of the status and the body. Headers follow. A "…" at the
// end of the first line of an expected response, and only there, stands for any
// text. For the details, see testServer.format, response.String and response.check.
// The helpers are at the end of the file, and begin with a list of the most
// important ones.

// Requests and responses that many tests have in common.
const (
	newPet   = `{"name":"a","categoryId":1}`        // the body of a create
	pet1     = `{"id":1,"name":"a","categoryId":1}` // newPet in a store that was empty
	pet2     = `{"id":2,"name":"a","categoryId":1}`
	list1    = "200 [" + pet1 + "]"
	created1 = "201 " + pet1 + "\nLocation: /v1/pets/1"
	created2 = "201 " + pet2 + "\nLocation: /v1/pets/2"

	missingKey = "401 unauthorized: …\nWww-Authenticate: Bearer realm=\"petstore\""
	wrongKey   = "401 invalid_token: …\n" +
		"Www-Authenticate: Bearer realm=\"petstore\", error=\"invalid_token\""

	// deprecated holds the headers of all responses of getPet.
	deprecated = "\nDeprecation: @1795132800" +
		"\nLink: </v1/pets>; rel=\"successor-version\"" +
		"\nSunset: Thu, 05 Dec 2030 00:00:00 GMT"

	// observer is a header that keeps a request out of the journal and the log,
	// and away from the standing fault.
	observer = "\nPetstore-Observer: test"

	// badQuery is a query that is malformed. After a path, it shows whether
	// something else is checked before the query.
	badQuery = "?%zz"

	// simulated is the message of each simulated Error, and teapot is one.
	simulated = "simulated error, as requested"
	teapot    = "418 im_a_teapot: " + simulated

	gateway = "<html><head><title>502 Bad Gateway</title></head>" +
		"<body>502 Bad Gateway</body></html>"
	gateway502 = "502 " + gateway + "\nContent-Type: text/html"

	missingName  = "400 invalid_body: name is missing; it must be a string"
	clientLeft   = "the client left before its answer"
	emptyJournal = `200 {"requests":[\n],"meta":{"total":0}}`
)

// A body that is one byte too large, and what belongs to it.
var (
	overMaxBody   = strings.Repeat("x", maxBody+1)                    // a body
	lengthTooLong = fmt.Sprintf("\nContent-Length: %d", maxBody+1)    // a header
	bodyTooLarge  = fmt.Sprintf("the body is over %d bytes", maxBody) // the message
)

// Starting, and the programs of README.md.

// A key that is given is not shown. Without one, each run makes a random key,
// and shows it in a curl line and a link.
func TestKeyFromEnvironment(t *testing.T) {
	longest := "!~" + strings.Repeat("k", 4094)
	given := command{key: longest}.start(t)
	equal(t, "stderr with a key", given.stderr.String(), "")
	given.expect(t, "GET /v1/pets", "200 []")

	s := command{}.start(t)
	other := command{}.start(t)
	notice := "PETSTORE_API_KEY is not set, so this run has a key of its own:\n\n" +
		"    curl -H 'Authorization: Bearer " + s.key + "' http://" + s.addr + "/v1/pets\n" +
		"    http://" + s.addr + "/#key=" + s.key + "\n\n"
	equal(t, "stderr without a key", s.stderr.String(), notice)
	s.expect(t, "GET /v1/pets", "200 []")
	s.withKey(other.key).expect(t, "GET /v1/pets", wrongKey)
}

// The base URL on standard output is one that clients on this machine can use.
func TestBaseURL(t *testing.T) {
	for _, addr := range []string{":0", "0.0.0.0:0", "127.0.0.1:"} {
		s := startServer(t, "-addr", addr) // fails unless the base URL has the host 127.0.0.1
		s.expect(t, "GET /v1/pets", "200 []")
	}
	for _, tt := range []struct{ ip, zone, want string }{
		{ip: "::", want: "http://127.0.0.1:80"},
		{ip: "::1", want: "http://[::1]:80"},
		{ip: "127.0.0.2", want: "http://127.0.0.2:80"},
		{ip: "fe80::1", zone: "eth0", want: "http://[fe80::1%25eth0]:80"},
	} {
		addr := &net.TCPAddr{IP: net.ParseIP(tt.ip), Port: 80, Zone: tt.zone}
		equal(t, "rootURL of "+addr.String(), rootURL(addr), tt.want)
	}
}

// The console blocks of README.md, run as one session in each shell, print what
// they show.
func TestReadme(t *testing.T) {
	if exec.Command("curl", "--json", "{}", "--version").Run() != nil {
		t.Skip("curl 7.82 or newer, which has --json, is not installed")
	}
	for _, tt := range []struct {
		shell string
		args  []string
	}{
		{shell: "sh"},
		{shell: "bash"},
		// Interactively, zsh does not treat # as the beginning of a comment.
		{shell: "zsh", args: []string{"-f", "-i", "+o", "promptsp"}},
	} {
		t.Run(tt.shell, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(tt.shell); err != nil {
				t.Skipf("%s is not installed", tt.shell)
			}
			testReadmeIn(t, tt.shell, tt.args...)
		})
	}
}

// testReadmeIn runs the commands of README.md in a shell, and compares the
// output of each.
func testReadmeIn(t *testing.T, shell string, args ...string) {
	const start = "PETSTORE_API_KEY=test go run ."
	s := command{key: "test"}.start(t)
	steps := consoleSteps(strings.ReplaceAll(readFile(t, "README.md"), "127.0.0.1:8080", s.addr))
	if len(steps) < 10 {
		t.Fatalf("README.md has %d commands, want at least 10", len(steps))
	}
	if steps[0].command != start {
		t.Errorf("the first command is %q, want %q", steps[0].command, start)
	}

	// Each output ends with a separator.
	session := ""
	for _, step := range steps {
		// s is already running, so show what it has printed instead of starting it.
		if step.command == start {
			step.command = "cat <<'.'\n" + s.stderr.String() + "http://" + s.addr + "/v1\n."
		}
		session += step.command + "\nprintf '\\036'\n"
	}

	home := t.TempDir()
	// In a terminal, curl shows errors but no progress meter.
	curlrc := filepath.Join(home, ".curlrc")
	if err := os.WriteFile(curlrc, []byte("silent\nshow-error\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, shell, args...)
	cmd.WaitDelay = patience // a command of the session may hold the output open
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "CURL_HOME="+home, "no_proxy=127.0.0.1", "PS1=", "PS2=")
	cmd.Stdin = strings.NewReader(session)
	output, err := cmd.CombinedOutput() // err may be that of the last command

	outputs := strings.Split(string(output), "\036")
	if got := len(outputs) - 1; got != len(steps) {
		t.Fatalf("%s: got the error %v and the output of %d commands, want that of %d:\n%s",
			shell, err, got, len(steps), cutMiddle(string(output), 6000))
	}
	for i, step := range steps {
		got, want := withoutSeconds(outputs[i]), withoutSeconds(step.output)
		if got != want {
			t.Errorf("$ %s\ngot:\n%s\nwant:\n%s", step.command, got, want)
		}
	}
}

// The code blocks of README.md are parts of the programs in testdata/examples.
// The programs pass, and leave no service behind.
func TestExamples(t *testing.T) {
	quotes := 0
	for _, tt := range []struct{ language, program string }{
		{language: "go", program: "client_test.go"},
		{language: "js", program: "client.test.mjs"},
	} {
		text := readFile(t, "testdata/examples/"+tt.program)
		for _, quote := range codeBlocks(readFile(t, "README.md"), tt.language) {
			quotes++
			if !containsIndented(text, quote) {
				t.Errorf("README.md quotes these lines, which are not in %s:\n%s",
					tt.program, quote)
			}
		}
	}
	if quotes < 4 {
		t.Errorf("README.md quotes %d parts of programs, want at least 4", quotes)
	}

	const (
		shellPasses  = `^(ok - .*\n)+$`
		goPasses     = `--- PASS: .*\n(.*\n)*ok `
		nodePasses   = ` pass [1-9](.*\n)*.* fail 0\n`
		pythonPasses = `Ran [1-9]\d* tests in .*\n\nOK\n`
	)
	for _, c := range []struct {
		command string
		version string // a command that prints the version that matters
		oldest  string // the oldest version with which the program works
		passes  string // a regular expression for the output
	}{
		{command: "sh client.sh", version: "curl --version", oldest: "7", passes: shellPasses},
		{command: "bash client.sh", version: "curl --version", oldest: "7", passes: shellPasses},
		{command: "zsh client.sh", version: "curl --version", oldest: "7", passes: shellPasses},
		{
			command: "go test -count=1 -v client_test.go",
			version: "go version",
			oldest:  "1.22",
			passes:  goPasses,
		},
		{
			command: "node --test client.test.mjs",
			version: "node --version",
			oldest:  "18",
			passes:  nodePasses,
		},
		{
			command: "python3 -W error -m unittest test_client.py",
			version: "python3 --version",
			oldest:  "3.10",
			passes:  pythonPasses,
		},
		{
			command: "java ClientTest.java",
			version: "javac -version",
			oldest:  "17",
			passes:  shellPasses,
		},
	} {
		t.Run(c.command, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(c.command)
			for _, program := range []string{args[0], strings.Fields(c.version)[0], "mkfifo"} {
				if _, err := exec.LookPath(program); err != nil {
					t.Skipf("%s is not installed", program)
				}
			}
			skipIfOlder(t, c.version, c.oldest)
			testExample(t, c.passes, args...)
		})
	}
}

// testExample runs a program in a copy of testdata/examples, with a petstore
// two folders above.
func testExample(t *testing.T, passes string, args ...string) {
	root := t.TempDir()
	examples := filepath.Join(root, "testdata", "examples")
	if err := os.MkdirAll(examples, 0o700); err != nil {
		t.Fatal(err)
	}
	programs, err := filepath.Glob("testdata/examples/*.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range programs {
		text := []byte(readFile(t, program))
		if err := os.WriteFile(filepath.Join(root, program), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	// Each petstore holds the FIFO open for writing. So reading it ends when the
	// last petstore has ended.
	fifo := filepath.Join(root, "fifo")
	if output, err := exec.Command("mkfifo", fifo).CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %v: %s", err, output)
	}
	const petstore = "#!/bin/sh\nexec \"$SELF\" \"$@\" 4>\"$FIFO\"\n"
	if err := os.WriteFile(filepath.Join(root, "petstore"), []byte(petstore), 0o700); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(fifo, os.O_RDWR, 0) // os.Open would wait for a writer
	if err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 4*patience) // Java starts slowly
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = examples
	cmd.WaitDelay = patience // petstore holds the standard error of the program until it ends
	cmd.Env = append(os.Environ(), "TMPDIR="+root, "no_proxy=127.0.0.1",
		"FIFO="+fifo, "SELF="+os.Args[0], "PETSTORE_TEST_CHILD=petstore")
	output, err := cmd.CombinedOutput()
	if err != nil || !regexp.MustCompile(passes).Match(output) {
		t.Errorf("got the error %v and the output\n%s\nwant no error and a match of %s",
			err, cutMiddle(string(output), 6000), passes)
	}
	writer.Close()
	within(t, "the end of petstore", func() error {
		_, err := io.ReadAll(reader)
		return err
	})
}

// Faults.

// The responses of a store with pet1 when truncate or stall sends half of them.
const (
	halfList  = `200 [{"id":1,"name":"a` + cutOff + "\nContent-Length: 37"
	halfPet2  = `201 {"id":2,"name":"a` + cutOff + "\nContent-Length: 35\nLocation: /v1/pets/2"
	halfError = `400 {"code":"invalid_body","message":"name is m` + cutOff + "\nContent-Length: 86"
)

// faultRequests are the requests of faultTests, by their names. The refused
// create is refused because the pet lacks a name.
var faultRequests = map[string]string{
	"list":           "GET /v1/pets",
	"head":           "HEAD /v1/pets",
	"create":         "POST /v1/pets " + newPet,
	"refused create": "POST /v1/pets {}",
}

// The answers in the journal of faultTests, and the error of the refused create.
const (
	listAnswer    = "[" + pet1 + "]\n"
	createAnswer  = pet2 + "\n"
	gatewayAnswer = gateway + "\n"
	refusedError  = "name is missing; it must be a string"
)

var (
	refusedAnswer = errorJSON("invalid_body", refusedError, 400)
	teapotAnswer  = errorJSON("im_a_teapot", simulated, 418)
)

// faultTests lists what each of faultCodes, and one status, does to each of
// faultRequests. The store holds pet1.
var faultTests = []struct {
	code    string
	request string // a key of faultRequests
	want    string // the response, without Preference-Applied
	held    bool   // whether the response is read after the fault has ended (see TestStall)
	created bool   // whether pet 2 is in the store then
	answer  string // in the journal
	err     string // in the journal
}{
	{code: "418", request: "list", want: teapot, answer: teapotAnswer, err: simulated},
	{code: "418", request: "head", want: "418", answer: teapotAnswer, err: simulated},
	{code: "418", request: "create", want: teapot, answer: teapotAnswer, err: simulated},
	{code: "418", request: "refused create", want: teapot, answer: teapotAnswer, err: simulated},

	{code: "hangup", request: "list", want: connClosed},
	{code: "hangup", request: "head", want: connClosed},
	{code: "hangup", request: "create", want: connClosed},
	{code: "hangup", request: "refused create", want: connClosed},

	{code: "rst", request: "list", want: connReset},
	{code: "rst", request: "head", want: connReset},
	{code: "rst", request: "create", want: connReset},
	{code: "rst", request: "refused create", want: connReset},

	{code: "lost", request: "list", want: connClosed, answer: listAnswer},
	{code: "lost", request: "head", want: connClosed, answer: listAnswer},
	{code: "lost", request: "create", want: connClosed, created: true, answer: createAnswer},
	{
		code:    "lost",
		request: "refused create",
		want:    connClosed,
		answer:  refusedAnswer,
		err:     refusedError,
	},

	{code: "truncate", request: "list", want: halfList, answer: listAnswer},
	{code: "truncate", request: "head", want: connClosed, answer: listAnswer},
	{code: "truncate", request: "create", want: halfPet2, created: true, answer: createAnswer},
	{
		code:    "truncate",
		request: "refused create",
		want:    halfError,
		answer:  refusedAnswer,
		err:     refusedError,
	},

	// The response to HEAD has no body that could be halved. The client waits as
	// long as it would for the second half.
	{code: "stall", request: "list", want: halfList, held: true, answer: listAnswer},
	{code: "stall", request: "head", want: connClosed, held: true, answer: listAnswer},
	{
		code:    "stall",
		request: "create",
		want:    halfPet2,
		held:    true,
		created: true,
		answer:  createAnswer,
	},
	{
		code:    "stall",
		request: "refused create",
		want:    halfError,
		held:    true,
		answer:  refusedAnswer,
		err:     refusedError,
	},

	// The response to HEAD has no body that could be sent in pieces.
	{code: "drip", request: "list", want: list1, held: true, answer: listAnswer},
	{code: "drip", request: "head", want: "200", answer: listAnswer},
	{
		code:    "drip",
		request: "create",
		want:    created2,
		held:    true,
		created: true,
		answer:  createAnswer,
	},
	{
		code:    "drip",
		request: "refused create",
		want:    missingName,
		held:    true,
		answer:  refusedAnswer,
		err:     refusedError,
	},

	{code: "html", request: "list", want: gateway502, answer: gatewayAnswer},
	{code: "html", request: "head", want: "502\nContent-Type: text/html", answer: gatewayAnswer},
	{code: "html", request: "create", want: gateway502, created: true, answer: gatewayAnswer},
	{
		code:    "html",
		request: "refused create",
		want:    gateway502,
		answer:  gatewayAnswer,
		err:     refusedError,
	},
}

// Each code of a fault has its effect on the client, the journal and the store,
// whether a Prefer header or the standing fault asks for it. A reset leaves
// nothing of it behind. For what else ends a fault, see TestHeldAnswers.
func TestFaultCodes(t *testing.T) {
	var codes []string
	run := oneThenParallel(t)
	for _, tt := range faultTests {
		codes = append(codes, tt.code)
		for _, by := range []string{"Prefer", "standing"} {
			run(tt.code+"/"+tt.request+"/"+by, func(t *testing.T) {
				s := startService(t, newTestService(t, newTestStore(t, "["+newPet+"]")))
				recorded := entryOf(t, faultRequests[tt.request], statusIn(tt.want))
				recorded.Answer, recorded.Error, recorded.Fault = tt.answer, tt.err, "code="+tt.code

				request, want := faultRequests[tt.request], tt.want
				if by == "standing" {
					s.setFault(t, "code="+tt.code)
				} else {
					request += "\nPrefer: code=" + tt.code
					if want != connClosed && want != connReset {
						want += "\nPreference-Applied: code=" + tt.code
					}
				}
				conn := s.send(t, request)
				if !tt.held {
					conn.read().check(t, "request:\n"+request, want)
				}
				if t.Failed() {
					return // the journal differs in the same way
				}
				equalEntry(t, request, s.journal(t, 1)[0], recorded)
				pets := s.do(t, "GET /v1/pets"+observer).body
				equal(t, "pet 2 is in the store after this request:\n"+request,
					strings.Contains(pets, `"id":2`), tt.created)
				if t.Failed() {
					return // the response to a request that is held differs in the same way
				}

				s.reset(t, "")
				if tt.held {
					conn.read().check(t, "request:\n"+request, want)
				}
				s.expect(t, "GET /__admin/requests", emptyJournal)
				s.expect(t, "GET /__admin/fault", "200 {}")
				s.expect(t, "GET /v1/pets", list1)
			})
		}
	}
	sameNames(t, "faultTests", codes, "faultCodes and 418", append([]string{"418"}, faultCodes...))
}

// A held answer continues as soon as its fault ends: a stall closes the
// connection, and a drip sends the rest of the body. The fault of a Prefer
// header ends with its world or with the service, and the standing fault also
// when it is deleted or replaced. For a client that leaves, see TestStall and
// TestDrip.
func TestHeldAnswers(t *testing.T) {
	run := oneThenParallel(t)
	for _, c := range []struct {
		code, want string
		pieces     int64 // how many parts of the body are sent
	}{
		{code: "stall", want: halfList, pieces: 1},
		{code: "drip", want: list1, pieces: 10},
	} {
		for _, tt := range []struct {
			isStanding bool
			end        string // for endFault
		}{
			{isStanding: false, end: "reset"},
			{isStanding: false, end: "stop"},
			{isStanding: true, end: "reset"},
			{isStanding: true, end: "stop"},
			{isStanding: true, end: "delete"},
			{isStanding: true, end: "replace"},
		} {
			name := fmt.Sprintf("%s/standing=%v/%s", c.code, tt.isStanding, tt.end)
			run(name, func(t *testing.T) {
				stopping := make(chan struct{})
				svc := newTestService(t, newTestStore(t, "["+newPet+"]"))
				svc.stopping = stopping
				s, mon := startMonitored(t, svc)
				request, want := "GET /v1/pets", c.want
				if tt.isStanding {
					s.setFault(t, "code="+c.code)
				} else {
					request += "\nPrefer: code=" + c.code
					want += "\nPreference-Applied: code=" + c.code
				}

				begin := time.Now()
				conn := s.send(t, request)
				if _, err := conn.in.Peek(1); err != nil { // waits for the first part
					t.Fatal(err)
				}
				if mon.hasReturned() {
					t.Fatalf("request:\n%s\n got %s\nwant a handler that waits",
						request, conn.read())
				}
				endFault(t, s, tt.end, stopping)
				conn.read().check(t, "request:\n"+request, want)
				if took := time.Since(begin); took >= wholeDrip && !t.Failed() {
					t.Errorf("got the whole response after %v, want it when the fault ends", took)
				}
				equal(t, "the number of parts", mon.writes.Load(), c.pieces)
				if tt.end == "delete" {
					s.expect(t, "GET /__admin/fault", "200 {}")
				}
			})
		}
	}
}

// wholeDrip is how long the service takes to send a body in ten pieces. Where a
// test uses it as an upper bound, the response should take no time at all, so
// that even a slow machine stays far below it.
const wholeDrip = 9 * time.Second

// A stall sends half of the body without a delay, or nothing if there is no body
// to halve. Then it keeps the connection open until the client leaves.
func TestStall(t *testing.T) {
	addRoute(t, route{pattern: "GET /v1/empty", do: func(x *exchange) error {
		x.reply(200, "", nil)
		return nil
	}})
	for _, tt := range []struct{ request, half string }{
		{request: "GET /v1/pets", half: "["},
		{request: "HEAD /v1/pets"},
		{request: "GET /v1/empty"},
	} {
		t.Run(tt.request, func(t *testing.T) {
			s, mon := startMonitored(t, newTestService(t, nil))
			conn := s.send(t, tt.request+"\nPrefer: code=stall")
			if tt.half != "" {
				resp, err := http.ReadResponse(conn.in, nil)
				if err != nil {
					t.Fatal(err)
				}
				half := make([]byte, len(tt.half))
				if _, err := io.ReadFull(resp.Body, half); err != nil {
					t.Fatal(err)
				}
				equal(t, "the first half of []", string(half), tt.half)
			}
			s.journal(t, 1)
			// No event announces that the stall goes on, so give it time to end.
			conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			if _, err := conn.in.Peek(1); !os.IsTimeout(err) || mon.hasReturned() {
				t.Errorf("got the end of the stall or more bytes (%v), want silence", err)
			}
			conn.Close()
			receive(t, "the end of the handler", mon.returned) // well before the end of the stall
		})
	}
}

// A drip sends a body in ten pieces, or in one for each byte of a shorter body.
// It waits between them, and sends nothing after the client has left. For the
// end of its fault, see TestHeldAnswers.
func TestDrip(t *testing.T) {
	t.Run("a body of 3 bytes", func(t *testing.T) {
		t.Parallel()
		s, mon := startMonitored(t, newTestService(t, nil))
		s.setFault(t, "code=drip")
		conn := s.send(t, "GET /v1/pets")
		s.waitMatched(t, 1)
		s.expect(t, "DELETE /__admin/fault", "204")
		conn.read().check(t, "GET /v1/pets", "200 []")
		equal(t, "the number of pieces", mon.writes.Load(), 3)
	})
	t.Run("HEAD", func(t *testing.T) {
		t.Parallel()
		s, mon := startMonitored(t, newTestService(t, nil))
		begin := time.Now()
		s.expect(t, "HEAD /v1/pets\nPrefer: code=drip", "200\nPreference-Applied: code=drip")
		receive(t, "the end of the handler", mon.returned)
		if took := time.Since(begin); took >= wholeDrip {
			t.Errorf("the handler returned after %v, want it to wait for nothing", took)
		}
		equal(t, "the number of pieces", mon.writes.Load(), 0)
	})
	t.Run("the client leaves", func(t *testing.T) {
		t.Parallel()
		s, mon := startMonitored(t, newTestService(t, newTestStore(t, "["+newPet+"]")))
		// Each piece is held until the service knows that the client has left.
		pieces := make(chan struct{}, dripPieces)
		mon.wrote = func(r *http.Request) {
			pieces <- struct{}{}
			<-r.Context().Done()
		}
		conn := s.send(t, "GET /v1/pets\nPrefer: code=drip")
		receive(t, "the first piece", pieces)
		conn.Close()
		receive(t, "the end of the handler", mon.returned)
		equal(t, "the number of pieces", mon.writes.Load(), 1)
	})
	t.Run("HTTP/1.0", func(t *testing.T) {
		t.Parallel()
		s := startService(t, newTestService(t, nil))
		s.setFault(t, "code=drip")
		conn := s.sendRaw(t, "GET /v1/pets HTTP/1.0\nAuthorization: Bearer "+testKey+"\n\n")
		s.waitMatched(t, 1)
		s.expect(t, "DELETE /__admin/fault", "204")
		conn.read().check(t, "GET with HTTP/1.0", "200 []\nConnection: close")
	})
}

// A request waits as long as its own Prefer header says, even if the standing
// fault ends in the meantime. A drip of ten pieces takes nine seconds.
func TestPreferDelays(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		prefer string
		least  time.Duration // how long the request takes
	}{
		{prefer: "delay=1", least: time.Second},
		{prefer: "answer-delay=1", least: time.Second},
		{prefer: "code=drip", least: wholeDrip},
	} {
		t.Run(tt.prefer, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, "-seed", tempFile(t, "["+newPet+"]"))
			s.setFault(t, "delay=30")
			begin := time.Now()
			conn := s.send(t, "GET /v1/pets\nPrefer: "+tt.prefer)
			s.setFault(t, "code=drip")
			s.expect(t, "DELETE /__admin/fault", "204")
			want := list1 + "\nPreference-Applied: " + tt.prefer
			conn.read().check(t, "GET with Prefer: "+tt.prefer, want)
			if took := time.Since(begin); took < tt.least {
				t.Errorf("Prefer: %s took %v, want %v or more", tt.prefer, took, tt.least)
			}
		})
	}
}

// The fault rst resets a new connection and one that was kept alive, even if the
// client has sent its next request already.
func TestRST(t *testing.T) {
	s := startServer(t)
	plain := s.format(t, "GET /v1/pets")
	rst := s.format(t, "GET /v1/pets\nPrefer: code=rst")
	for _, tt := range []struct {
		name string
		send []string
		want []string // the response to each
	}{
		{name: "new", send: []string{rst}, want: []string{connReset}},
		{name: "kept alive", send: []string{plain, rst}, want: []string{"200 []", connReset}},
		{name: "pipelined", send: []string{rst + plain}, want: []string{connReset}},
		{
			name: "HTTP/1.0",
			send: []string{strings.Replace(rst, "HTTP/1.1", "HTTP/1.0", 1)},
			want: []string{connReset},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn := s.connect(t)
			for i, request := range tt.send {
				conn.write(request)
				conn.read().check(t, fmt.Sprint("response ", i+1), tt.want[i])
			}
		})
	}
	s.expect(t, "GET /v1/pets", "200 []")
}

// The service works behind a wrapper that hides the other methods of the
// ResponseWriter, those to flush and to take over the connection. Then rst closes
// the connection without a reset. With the other faults, the client gets the same
// bytes as usual, although possibly all at the end.
func TestWrappedResponseWriter(t *testing.T) {
	svc := newTestService(t, newTestStore(t, "["+newPet+"]"))
	log := new(lockedBuffer)
	svc.log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	s := startService(t, svc, func(srv *http.Server) {
		inner := srv.Handler
		srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			inner.ServeHTTP(struct{ http.ResponseWriter }{w}, r)
		})
	})
	for _, tt := range []struct{ fault, want string }{
		{fault: "delay=0", want: list1},
		{fault: "code=418", want: teapot},
		{fault: "code=hangup", want: connClosed},
		{fault: "code=rst", want: connClosed},
		{fault: "code=lost", want: connClosed},
		{fault: "code=truncate", want: halfList},
		{fault: "code=stall", want: halfList},
		{fault: "code=drip", want: list1},
		{fault: "code=html", want: gateway502},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			s.expect(t, "DELETE /__admin/requests", "204")
			s.setFault(t, tt.fault)
			conn := s.send(t, "GET /v1/pets")
			s.journal(t, 1)
			s.expect(t, "DELETE /__admin/fault", "204")
			conn.read().check(t, "GET /v1/pets under "+tt.fault, tt.want)
		})
		if t.Failed() {
			return // the others are likely to fail in the same way
		}
	}
	s.expect(t, "BREW /v1/pets", "405 method_not_allowed: …\nAllow: GET, HEAD, POST")
	equal(t, "the log", log.String(), "")
}

// A Prefer header is read as RFC 7240 says, and Preference-Applied confirms what
// was read.
func TestParsePrefer(t *testing.T) {
	const bounds = "code=599, delay=30, answer-delay=30.0, retry-after=3600"
	for _, tt := range []struct{ name, header, want string }{
		{name: "nothing"},
		{name: "bounds", header: bounds, want: bounds},
		{
			name:   "order",
			header: "retry-after=0,delay=.5,code=503",
			want:   "code=503, delay=.5, retry-after=0",
		},
		{
			name:   "spaces and quotes",
			header: ` CODE = "503"	; delay="1"`,
			want:   "code=503, delay=1",
		},
		{name: "empty preferences", header: ",;=,code=503,;", want: "code=503"},
		{name: "the first wins", header: "code=404, code=500", want: "code=404"},
		{name: "no list", header: "code=503,lost", want: "code=503"},
		{name: "other names", header: "wait=x, respond-async, skip=x, operation=x, retry-after=x"},
		{name: "retry-after needs a status", header: "code=lost, retry-after=5", want: "code=lost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := parsePrefer([]string{tt.header})
			if err != nil || f.String() != tt.want {
				t.Errorf("parsePrefer(%q) = %v, %v; want %s, <nil>", tt.header, f, err, tt.want)
			}
		})
	}

	for _, header := range []string{
		"code=", "code=399", "code=600", "code=Hangup", "code=0503",
		"delay=30.01", "delay=-1", "delay=1e1", "delay=",
		"retry-after=3601", "retry-after=1.5", "retry-after=-0",
	} {
		_, err := parsePrefer([]string{header, "code=503"}) // retry-after alone would be no fault
		name, value, _ := strings.Cut(header, "=")
		want := name + " is " + cmp.Or(value, "empty") + "; it must be "
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("parsePrefer(%q): got the error %v, want %s…", header, err, want)
		}
	}

	f, err := parsePrefer([]string{"delay=1.5", "wait=9", "answer-delay=0.25"})
	equal(t, "the error for two delays", err, nil)
	equal(t, "delay=1.5", f.delay, 1500*time.Millisecond)
	equal(t, "answer-delay=0.25", f.answerDelay, 250*time.Millisecond)
}

// The fault of a Prefer header is applied to that request only, and only under
// /v1.
func TestPrefer(t *testing.T) {
	s := startServer(t)
	for _, tt := range []struct{ request, want string }{
		{
			request: "GET /v1/pets" + badQuery + "\nPrefer: code=429",
			want: "429 too_many_requests: " + simulated +
				"\nRetry-After: 1\nPreference-Applied: code=429",
		},
		{
			request: "GET /v1/pets\nPrefer: code=503",
			want:    "503 service_unavailable: …\nRetry-After: 1\nPreference-Applied: code=503",
		},
		{
			request: "GET /v1/nothing\nPrefer: wait=1\nPrefer: code=401",
			want:    wrongKey + "\nPreference-Applied: code=401",
		},
		{
			request: "BREW /v1//pets/" + badQuery + " {\nPrefer: code=599, retry-after=7",
			want: "599 status_599: …" +
				"\nRetry-After: 7\nPreference-Applied: code=599, retry-after=7",
		},
		{
			request: "GET /v1/pets\nPrefer: delay=0, retry-after=5",
			want:    "200 []\nPreference-Applied: delay=0",
		},
		{
			request: "GET /v1/pets/1\nPrefer: code=html",
			want:    gateway502 + "\nPreference-Applied: code=html",
		},
		{request: "GET /v1/pets", want: "200 []"},
		{request: "GET /healthz\nPrefer: code=hangup", want: `200 {"status":"ok"}`},
		{request: "GET /__admin/fault\nPrefer: code=hangup", want: "200 {}"},
	} {
		s.expect(t, tt.request, tt.want)
	}
}

// A client that leaves during a delay has added no pet. One that leaves during
// an answer-delay has added it. The journal lists both, with the seconds that
// they took.
func TestClientLeaves(t *testing.T) {
	s := startServer(t)
	const before, after = "code=html, delay=30", "delay=0.12, answer-delay=30"
	early := s.send(t, "POST /v1/pets "+newPet+"\nPrefer: "+before)
	early.CloseWrite() // the service takes this for the end of the connection
	early.read().check(t, "a create with Prefer: "+before, connClosed)
	s.expect(t, "GET /v1/pets"+observer, "200 []")

	late := s.send(t, "POST /v1/pets "+newPet+"\nPrefer: "+after)
	eventually(t, "the pet is in the store", func() (got any, ok bool) {
		resp := s.do(t, "GET /v1/pets"+observer)
		return resp, resp.countPets() == 1
	})
	late.CloseWrite()
	late.read().check(t, "a create with Prefer: "+after, connClosed)

	s.expectJournal(t,
		entry{Method: "POST", URL: "/v1/pets", Body: newPet, Fault: before},
		entry{Method: "POST", URL: "/v1/pets", Body: newPet, Fault: after})
	entries := s.journal(t, 2)
	equal(t, "the error of the first request", entries[0].Error, clientLeft)
	equal(t, "the error of the second request", entries[1].Error, clientLeft)
	equal(t, "the answer of the first request", entries[0].Answer, "")
	equal(t, "the answer of the second request", entries[1].Answer, pet1+"\n")
	if got := entries[1].Seconds; got < 0.12 {
		t.Errorf("the second request: got %v seconds, want 0.12 or more", got)
	}
	s.expect(t, "GET /v1/pets", list1)
}

// A client that leaves during -latency has added no pet either.
func TestClientLeavesDuringLatency(t *testing.T) {
	svc := newTestService(t, nil)
	svc.latency = time.Hour
	s := startService(t, svc)
	conn := s.send(t, "POST /v1/pets "+newPet)
	conn.CloseWrite()
	conn.read().check(t, "a create with -latency", connClosed)
	if t.Failed() {
		return // the request may never be recorded
	}
	entries := s.journal(t, 1)
	want := entry{Method: "POST", URL: "/v1/pets", Body: newPet, Error: clientLeft}
	equalEntry(t, "POST /v1/pets "+newPet, entries[0], want)
	s.expect(t, "GET /v1/pets"+observer, "200 []")
}

// The seconds of an entry include the delay and the answer-delay.
func TestSecondsIncludeDelays(t *testing.T) {
	s := startServer(t)
	s.do(t, "GET /v1/pets\nPrefer: delay=0.1, answer-delay=0.15")
	if got := s.journal(t, 1)[0].Seconds; got < 0.25 {
		t.Errorf("got %v seconds, want 0.25 or more", got)
	}
}

// The standing fault is applied to the requests that match it, and counts them.
func TestStandingFault(t *testing.T) {
	s := startServer(t)
	for _, tt := range []struct{ request, want string }{
		// A request with a wrong method is not a createPet. One with a bad Prefer is
		// refused, and not counted.
		{
			request: "PUT /__admin/fault?code=503&operation=createPet",
			want:    `200 {"code":"503","operation":"createPet","matched":0,"applied":0}`,
		},
		{request: "BREW /v1/pets", want: "405 method_not_allowed: …\nAllow: GET, HEAD, POST"},
		{request: "POST /v1/pets\nPrefer: code=1", want: "400 invalid_parameter: code is 1;…"},
		{
			request: "POST /v1/pets {}\nPrefer: wait=1",
			want:    "503 service_unavailable: …\nRetry-After: 1",
		},
		{request: "POST /v1/pets {}\nAuthorization: x", want: missingKey},
		{
			request: "GET /__admin/fault",
			want:    `200 {"code":"503","operation":"createPet","matched":1,"applied":1}`,
		},

		// A HEAD counts as a GET. A list counts even if it is refused. A wrong path
		// has no operation.
		{
			request: "PUT /__admin/fault?delay=0&operation=listPets",
			want:    `200 {"delay":"0","operation":"listPets","matched":0,"applied":0}`,
		},
		{request: "GET /v1/pets?limit=x", want: "400 invalid_parameter: limit is x;…"},
		{request: "HEAD /v1/pets", want: "200"},
		{request: "GET /v1/pets/.", want: "404 not_found: …"},
		{
			request: "GET /__admin/fault",
			want:    `200 {"delay":"0","operation":"listPets","matched":2,"applied":2}`,
		},

		// Two requests are let through, and the fault is applied to the next two. The
		// request between them has its own delay.
		{
			request: "PUT /__admin/fault?times=2&skip=2&code=418&answer-delay=0.0",
			want: `200 {"code":"418","answer-delay":"0.0","skip":2,"times":2,` +
				`"matched":0,"applied":0}`,
		},
		{request: "GET /v1/pets/", want: "404 not_found: …"},
		{request: "GET /v1/pets", want: "200 []"},
		{request: "GET /v1/nothing", want: teapot},
		{request: "GET /v1/pets\nPrefer: delay=0", want: "200 []\nPreference-Applied: delay=0"},
		{request: "GET /v1/pets", want: teapot},
		{request: "GET /v1/pets", want: "200 []"},

		// A PUT that is refused changes nothing.
		{request: "PUT /__admin/fault?code=x", want: "400 invalid_parameter: code is x;…"},
		{
			request: "GET /__admin/fault",
			want: `200 {"code":"418","answer-delay":"0.0","skip":2,"times":2,` +
				`"matched":5,"applied":2}`,
		},
		{request: "DELETE /__admin/fault", want: "204"},
		{request: "GET /__admin/fault", want: "200 {}"},
		{request: "DELETE /__admin/fault", want: "204"},
	} {
		s.expect(t, tt.request, tt.want)
		if t.Failed() {
			return // the rows that follow depend on this one
		}
	}
}

// A list of codes is applied in order, each code to one request. The journal
// shows the code that was applied to a request.
func TestFaultList(t *testing.T) {
	s := startServer(t)
	put := "PUT /__admin/fault?code=503,lost,429&skip=1&operation=listPets&retry-after=7&delay=0"
	parameters := `"code":"503,lost,429","delay":"0","retry-after":"7",` +
		`"operation":"listPets","skip":1,"times":3`
	s.expect(t, put, "200 {"+parameters+`,"matched":0,"applied":0}`)
	s.expect(t, "GET /v1/pets/1", "404 not_found: …"+deprecated)
	s.expect(t, "GET /v1/pets?n=0", "200 []")
	s.expect(t, "GET /v1/pets?n=1", "503 service_unavailable: …\nRetry-After: 7")
	s.expect(t, "GET /v1/pets?n=2\nPrefer: code=418", teapot+"\nPreference-Applied: code=418")
	s.expect(t, "GET /v1/pets?n=3", connClosed)
	s.expect(t, "GET /v1/pets?n=4", "429 too_many_requests: …\nRetry-After: 7")
	s.expect(t, "GET /v1/pets?n=5", "200 []")
	s.expect(t, "GET /__admin/fault", "200 {"+parameters+`,"matched":5,"applied":3}`)
	const with = ", delay=0, retry-after=7"
	s.expectJournal(t,
		entry{Method: "GET", URL: "/v1/pets/1", Status: 404},
		entry{Method: "GET", URL: "/v1/pets?n=0", Status: 200},
		entry{Method: "GET", URL: "/v1/pets?n=1", Status: 503, Fault: "code=503" + with},
		entry{Method: "GET", URL: "/v1/pets?n=2", Status: 418, Fault: "code=418"},
		entry{Method: "GET", URL: "/v1/pets?n=3", Status: 0, Fault: "code=lost, delay=0"},
		entry{Method: "GET", URL: "/v1/pets?n=4", Status: 429, Fault: "code=429" + with},
		entry{Method: "GET", URL: "/v1/pets?n=5", Status: 200})
}

// A list of codes may contain each code, and a code more than once.
func TestFaultListOfAllCodes(t *testing.T) {
	s := startServer(t)
	every := strings.Join(faultCodes, ",") + ",400,599,400"
	s.expect(t, "PUT /__admin/fault?code="+every,
		fmt.Sprintf(`200 {"code":"%s","times":%d,"matched":0,"applied":0}`,
			every, len(faultCodes)+3))
}

// A code, or a list of codes, that is not valid is refused with a message that
// says why.
func TestFaultCodesRefused(t *testing.T) {
	s := startServer(t)
	const words = "a status from 400 to 599, hangup, rst, lost, truncate, stall, drip or html"
	s.expect(t, "PUT /__admin/fault?code=x",
		"400 invalid_parameter: code is x; it must be "+words)
	for _, tt := range []struct{ query, message string }{
		{
			query:   "code=503,lost&times=2",
			message: "times cannot be given with a list of codes, as each of them is applied once",
		},
		{query: "code=503,", message: "code is empty; it must be …"},
		{query: "code=,503", message: "code is empty; it must be …"},
		{query: "code=503,,503", message: "code is empty; it must be …"},
		{query: "code=503,600", message: "code is 600; it must be …"},
		{query: "code=503,%20lost", message: "code is  lost; it must be …"},
		{query: "code=lost,hang", message: "code is hang; it must be …"},
		{
			query:   "code=a+status+from+400+to+599",
			message: "code is a status from 400 to 599; it must be …",
		},
		{
			query:   "code=an+integer+from+400+to+599",
			message: "code is an integer from 400 to 599; it must be …",
		},
		{
			query:   "code=lost,drip&retry-after=7",
			message: "retry-after needs a status as code, such as code=503",
		},
		{
			query:   "delay=1&retry-after=7",
			message: "retry-after needs a status as code, such as code=503",
		},
	} {
		s.expect(t, "PUT /__admin/fault?"+tt.query, "400 invalid_parameter: "+tt.message)
	}
	s.expect(t, "GET /v1/pets\nPrefer: code=a status from 400 to 599",
		"400 invalid_parameter: code is a status from 400 to 599; it must be "+words)
}

// One status in a list is enough for a retry-after.
func TestFaultListRetryAfter(t *testing.T) {
	s := startServer(t)
	s.expect(t, "PUT /__admin/fault?code=lost,503&retry-after=7",
		`200 {"code":"lost,503","retry-after":"7","times":2,"matched":0,"applied":0}`)
	s.expect(t, "GET /v1/pets", connClosed)
	s.expect(t, "GET /v1/pets", "503 service_unavailable: …\nRetry-After: 7")
}

// Each code of a list is applied exactly once, however many requests arrive
// concurrently.
func TestFaultListConcurrent(t *testing.T) {
	const clients = 64
	s := startServer(t)
	for range 10 {
		s.setFault(t, "code=503,lost,429,lost,rst&operation=listPets&skip=20")
		var mu sync.Mutex
		got := map[string]int{} // number of responses by their first line
		concurrently(t, clients, func(int) error {
			list := firstLine(s.do(t, "GET /v1/pets").String())
			pet := firstLine(s.do(t, "GET /v1/pets/0").String())
			mu.Lock()
			defer mu.Unlock()
			got[list]++
			got[pet]++
			return nil
		})
		want := map[string]int{
			"404 not_found: there is no pet 0":      clients,
			"200 []":                                clients - 5,
			"503 service_unavailable: " + simulated: 1,
			"429 too_many_requests: " + simulated:   1,
			connClosed:                              2,
			connReset:                               1,
		}
		equal(t, "the number of responses of each kind", got, want)
		matches(t, "the standing fault", s.do(t, "GET /__admin/fault").String(),
			fmt.Sprintf(`^200 .*"skip":20,"times":5,"matched":%d,"applied":5}$`, clients))
		if t.Failed() {
			return // the other rounds are likely to fail in the same way
		}
	}
}

// However many requests arrive concurrently, the standing fault is applied to
// exactly as many as it should be.
func TestFaultCountsConcurrent(t *testing.T) {
	const clients, each = 8, 100_000
	for _, tt := range []struct{ times, want int64 }{
		{times: 4 * each, want: 4 * each},
		{times: 0, want: 5 * each}, // all but those that skip lets through
	} {
		query := url.Values{"code": {"503"}, "skip": {strconv.Itoa(3 * each)}}
		f, err := parseStandingFault(query)
		if err != nil {
			t.Fatal(err)
		}
		f.state.Times = tt.times
		var applied atomic.Int64
		concurrently(t, clients, func(int) error {
			for range each {
				if f.next("listPets") != (fault{}) {
					applied.Add(1)
				}
			}
			return nil
		})
		what := fmt.Sprint("with times=", tt.times, ", the number of requests ")
		equal(t, what+"with the fault", applied.Load(), tt.want)
		equal(t, what+"applied", f.snapshot().Applied, tt.want)
		equal(t, what+"matched", f.snapshot().Matched, clients*each)
	}
}

// A PUT answers with the fault that it has set, whatever other clients do at
// the same time.
func TestSetFaultConcurrent(t *testing.T) {
	handler := newTestService(t, nil).handler()
	concurrently(t, 64, func(i int) error {
		target := fmt.Sprint("/__admin/fault?code=503&times=", i+1)
		want := fmt.Sprintf(`{"code":"503","times":%d,"matched":0,"applied":0}`+"\n", i+1)
		for range 500 {
			if got := callHandler(handler, "PUT", target).Body.String(); got != want {
				return fmt.Errorf("PUT %s\n got %q\nwant %q", target, got, want)
			}
			callHandler(handler, "GET", "/v1/pets") // is counted by whichever fault stands
		}
		return nil
	})
}

// When the standing fault is deleted, replaced or reset, or when the service
// stops, the requests that it holds go on immediately. A delay holds a request
// before its operation, and an answer-delay after it.
func TestRelease(t *testing.T) {
	const before, after, never = "before the release", "after the release", "never"
	run := oneThenParallel(t)
	for _, tt := range []struct {
		fault, want string
		performed   string // when the operation is performed
	}{
		{fault: "delay=30", want: created2, performed: after},
		{fault: "delay=30&code=418", want: teapot, performed: never},
		{fault: "delay=30&code=hangup", want: connClosed, performed: never},
		{fault: "answer-delay=30", want: created2, performed: before},
		{fault: "answer-delay=30&code=418", want: teapot, performed: never},
		{fault: "answer-delay=30&code=lost", want: connClosed, performed: before},
		{fault: "delay=30&answer-delay=30&code=truncate", want: halfPet2, performed: after},
		{fault: "delay=30&answer-delay=30&code=stall", want: halfPet2, performed: after},
		{fault: "delay=30&answer-delay=30&code=drip", want: created2, performed: after},
		{fault: "delay=30&code=drip,lost", want: created2, performed: after},
	} {
		for _, end := range []string{"reset", "stop", "delete", "replace"} {
			run(tt.fault+"/"+end, func(t *testing.T) {
				stopping := make(chan struct{})
				svc := newTestService(t, newTestStore(t, "["+newPet+"]"))
				svc.stopping = stopping
				s := startService(t, svc)
				w := svc.current.Load() // a reset replaces it, but not for this request
				isPerformed := func() bool { return w.pets.get(2) != nil }
				s.setFault(t, tt.fault)
				begin := time.Now()
				conn := s.send(t, "POST /v1/pets "+newPet)
				s.waitMatched(t, 1)
				if tt.performed == before {
					eventually(t, "pet 2 is in the store", func() (got any, ok bool) {
						return len(allPets(w.pets)), isPerformed()
					})
				}
				equal(t, "operation performed before the release", isPerformed(), tt.performed == before)
				_, total := w.journal.all()
				equal(t, "the number of recorded requests before the release", total, 0)
				endFault(t, s, end, stopping)
				conn.read().check(t, "POST /v1/pets under "+tt.fault, tt.want)
				if took := time.Since(begin); took >= wholeDrip {
					t.Errorf("got the response after %v, want it when the fault ends", took)
				}
				equal(t, "operation performed at the end", isPerformed(), tt.performed != never)
			})
		}
	}
}

// The end of the standing fault releases all requests that it holds.
func TestReleaseOfMany(t *testing.T) {
	s := startServer(t)
	s.setFault(t, "delay=30&answer-delay=30")
	var conns []*connection
	for range 200 {
		conns = append(conns, s.send(t, "GET /v1/pets"))
	}
	s.waitMatched(t, 200)
	s.expect(t, "DELETE /__admin/fault", "204")
	for i, conn := range conns {
		conn.read().check(t, fmt.Sprintf("request %d of %d", i+1, len(conns)), "200 []")
		if t.Failed() {
			break // the others are likely to fail in the same way
		}
	}
}

// Seeds, resets and worlds.

// The pets of a seed keep the ids that they have, and a pet without an id gets
// the next one. Errors name the pet.
func TestReadSeed(t *testing.T) {
	const (
		wantID    = "; it must be an integer from 1 to 4611686018427387904"
		wantArray = `; it must be a JSON array, such as [{"name":"Rex","categoryId":7}]`
	)
	withID := func(id string) string { return `{"name":"","categoryId":1,"id":` + id + "}" }
	for _, tt := range []struct {
		name, seed string
		ids        []int64 // of the pets, in the order of the list
		err        string
	}{
		{
			name: "any order",
			seed: "[" + withID("7") + "," + newPet + "," + withID("3") + "," + newPet + "]",
			ids:  []int64{3, 7, 8, 9},
		},
		{
			name: "largest id",
			seed: "[" + withID("4611686018427387904") + "]",
			ids:  []int64{1 << 62},
		},
		{
			name: "long pet",
			seed: "[" + withID("9"+strings.Repeat(" ", maxBody)) + "]",
			ids:  []int64{9},
		},
		{name: "no pets", seed: " [ ]\n"},
		{name: "empty", seed: "", err: "the seed is empty" + wantArray},
		{name: "null", seed: " null\n", err: "the seed is null" + wantArray},
		{
			name: "no name",
			seed: "[" + newPet + `,{"id":1}]`,
			err:  "pet 2: name is missing; it must be a string",
		},
		{name: "id 0", seed: "[" + withID("0") + "]", err: "pet 1: id is 0" + wantID},
		{
			name: "id too large",
			seed: "[" + withID("4611686018427387905") + "]",
			err:  "pet 1: id is 4611686018427387905" + wantID,
		},
		{
			name: "id given twice",
			seed: "[" + withID("4") + "," + withID("9") + "," + withID("4") + "]",
			err:  "pet 3: id 4 is taken by pet 1 of the seed",
		},
		{
			name: "id taken by a pet without one",
			seed: "[" + withID("4") + "," + newPet + "," + withID("5") + "]",
			err:  "pet 3: id 5 is taken by pet 2 of the seed",
		},
		{
			name: "cut short",
			seed: "[" + newPet,
			err:  "the seed is not JSON: unexpected end of JSON input, at byte 28" + wantArray,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := readSeed([]byte(tt.seed))
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("got the error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var ids []int64
			for _, p := range allPets(s) {
				ids = append(ids, p.id)
				if s.get(p.id) != p {
					t.Errorf("get(%d): got %p, want the pet of the list, %p", p.id, s.get(p.id), p)
				}
			}
			equal(t, "the ids", ids, tt.ids)
		})
	}
}

// The pets of -seed are in the store at the start, and after a reset without a
// body. A reset with a body takes the pets of the body.
func TestSeedAndReset(t *testing.T) {
	const seeded = `{"id":5,"name":"of the file","categoryId":1,"status":"sold"}`
	const created6 = `201 {"id":6,"name":"a","categoryId":1}` + "\nLocation: /v1/pets/6"
	s := startServer(t, "-seed", tempFile(t, "["+seeded+"]"))
	for _, tt := range []struct{ request, want string }{
		{request: "GET /v1/pets", want: "200 [" + seeded + "]"},
		{request: "POST /v1/pets " + newPet, want: created6},

		// A reset that is refused changes nothing.
		{
			request: `POST /__admin/reset [{"name":"x"}]`,
			want:    "400 invalid_body: pet 1: categoryId is missing; it must be an integer",
		},
		{request: "GET /v1/pets/6", want: `200 {"id":6,"name":"a","categoryId":1}` + deprecated},

		{request: "POST /__admin/reset", want: "204"},
		{request: "GET /v1/pets", want: "200 [" + seeded + "]"},
		{request: "POST /v1/pets " + newPet, want: created6},
		{request: "POST /__admin/reset [" + newPet + "]", want: "204"},
		{request: "GET /v1/pets", want: list1},
		{request: "POST /__admin/reset", want: "204"},
		{request: "GET /v1/pets", want: "200 [" + seeded + "]"},
	} {
		s.expect(t, tt.request, tt.want)
		if t.Failed() {
			return // the rows that follow depend on this one
		}
	}

	list := tempFile(t, s.do(t, "GET /v1/pets").body) // a response of listPets is a seed, too
	startServer(t, "-seed", list).expect(t, "GET /v1/pets", "200 ["+seeded+"]")
	bad := command{key: testKey, args: []string{"-seed", tempFile(t, "[5]")}}
	bad.expectExit(t, 1, "",
		`petstore: \S+pets.json: pet 1: the pet is 5; it must be a JSON object, such as .*\n`)
}

// Concurrent resets end each world once. Two resets that ended the same world
// would both close its channel done. The second close would panic, and the
// response would be a 500.
func TestResetConcurrent(t *testing.T) {
	handler := newTestService(t, nil).handler()
	concurrently(t, 16, func(int) error {
		for range 500 {
			if w := callHandler(handler, "POST", "/__admin/reset"); w.Code != 204 {
				return fmt.Errorf("a reset: got %d %q, want 204", w.Code, w.Body)
			}
		}
		return nil
	})
}

// A seed file over the limit is refused before all of it has been read.
func TestLargeSeedFile(t *testing.T) {
	t.Parallel()
	file := tempFile(t, "[")
	if err := os.Truncate(file, 6<<30); err != nil { // sparse: it takes no room on the disk
		t.Skip("cannot make a sparse file: ", err)
	}
	cmd := petstoreCommand("-seed", file)
	cmd.Env = append(cmd.Env, "PETSTORE_TEST_CHILD=memory")
	out, _ := cmd.CombinedOutput() // without a time limit, as a busy machine may need long
	pattern := `^petstore: \S+: the seed is over 134217728 bytes\nbytes of memory: (\d+)\n$`
	m := regexp.MustCompile(pattern).FindStringSubmatch(string(out))
	if m == nil {
		t.Fatalf("the output: got %q, want the size that a seed may have, and the memory", out)
	}
	if mib := atoi(t, m[1]) >> 20; mib >= 700 {
		t.Errorf("it took %d MiB of memory, want less than 700", mib)
	}
}

// A world is the state between two resets: the pets, the standing fault and the
// journal. A request in flight at a reset or a stop no longer waits. It changes
// the world in which it has arrived, and not the next.
func TestInFlightAtReset(t *testing.T) {
	run := oneThenParallel(t)
	for _, tt := range []struct {
		name    string
		latency time.Duration
		fault   string // of the standing fault, if there is one
		isLate  bool   // whether the body arrives after the end of the world
		want    string
		creates bool // whether the request creates a pet
	}{
		{name: "latency", latency: time.Hour, want: created2, creates: true},
		{name: "late body", isLate: true, want: created2, creates: true},
		{name: "delay", fault: "delay=30", want: created2, creates: true},
		{name: "answer-delay", fault: "answer-delay=30", want: created2, creates: true},
		{name: "error", fault: "code=418&delay=30", want: teapot},
		{name: "hangup", fault: "code=hangup&delay=30", want: connClosed},
		{
			name:    "lost",
			fault:   "code=lost&delay=30&answer-delay=30",
			want:    connClosed,
			creates: true,
		},
		{name: "stall", fault: "code=stall", want: halfPet2, creates: true},
		{name: "drip", fault: "code=drip", want: created2, creates: true},
	} {
		for _, end := range []string{"reset", "stop"} {
			run(tt.name+"/"+end, func(t *testing.T) {
				stopping := make(chan struct{})
				svc := newTestService(t, newTestStore(t, "["+newPet+"]"))
				svc.latency, svc.stopping = tt.latency, stopping
				s := startService(t, svc)
				w := svc.current.Load()
				if tt.fault != "" {
					s.setFault(t, tt.fault)
				}
				conn := s.startCreate(t)
				if !tt.isLate {
					conn.write(newPet)
				}
				if tt.fault != "" {
					s.waitMatched(t, 1)
				}
				if end == "stop" {
					close(stopping)
				} else {
					s.reset(t, "[]")
					s.setFault(t, "code=503")
				}
				if tt.isLate {
					conn.write(newPet)
				}
				conn.read().check(t, "POST /v1/pets", tt.want)

				_, total := w.journal.all()
				equal(t, "the number of requests in the journal of its world", total, 1)
				equal(t, "pet 2 is in its world", w.pets.get(2) != nil, tt.creates)
				if end == "reset" {
					s.expect(t, "GET /__admin/requests", emptyJournal)
					s.expect(t, "GET /__admin/fault", `200 {"code":"503","matched":0,"applied":0}`)
					next := svc.current.Load()
					equal(t, "the number of pets in the next world", len(next.pets.pets), 0)
				}
			})
		}
	}
}

// The journal, the log and CORS.

// The journal lists each request with up to 1,000 bytes of its answer. For the
// headers, see TestJournalFormat.
func TestJournal(t *testing.T) {
	longName := strings.Repeat("n", 2000)
	s := startServer(t, "-seed", tempFile(t, `[{"name":"`+longName+`","categoryId":1}]`))
	listed := (`[{"id":1,"name":"` + longName)[:1000]
	const (
		semicolon  = "the query is malformed: invalid semicolon separator in query"
		badMethod  = "this path allows GET, HEAD, POST only"
		noKey      = "send the API key in one header: Authorization: Bearer <API_KEY>"
		noSuchPath = "no such path: /pets; the API is at /v1/pets, without a slash at the end; " +
			"there are also /__admin/reset, /__admin/fault and /__admin/requests, " +
			"/openapi.json, and a page at /"
	)
	for _, tt := range []struct {
		request string
		want    entry // without what equalEntry ignores
	}{
		{
			request: "GET /v1/pets?limit=5&x=%20%zz;+",
			want: entry{
				Method: "GET",
				URL:    "/v1/pets?limit=5&x=%20%zz;+",
				Status: 400,
				Answer: errorJSON("invalid_parameter", semicolon, 400),
				Error:  semicolon,
			},
		},
		{
			request: "GET /v1/pets?limit=40",
			want:    entry{Method: "GET", URL: "/v1/pets?limit=40", Status: 200, Answer: listed},
		},
		{
			request: "BREW /v1/pets <ü>\xff",
			want: entry{
				Method: "BREW",
				URL:    "/v1/pets",
				Body:   "<ü>\ufffd",
				Status: 405,
				Answer: errorJSON("method_not_allowed", badMethod, 405),
				Error:  badMethod,
			},
		},
		{
			request: "POST /pets " + newPet,
			want: entry{
				Method: "POST",
				URL:    "/pets",
				Body:   newPet,
				Status: 404,
				Answer: errorJSON("not_found", noSuchPath, 404),
				Error:  noSuchPath,
			},
		},
		{
			request: "POST /v1 x\nAuthorization: Basic x",
			want: entry{
				Method: "POST",
				URL:    "/v1",
				Status: 401,
				Answer: errorJSON("unauthorized", noKey, 401),
				Error:  noKey,
			},
		},
		{
			request: "GET /v1/pets\nPrefer: delay=0.05",
			want: entry{
				Method: "GET",
				URL:    "/v1/pets",
				Status: 200,
				Answer: listed,
				Fault:  "delay=0.05",
			},
		},
		{
			request: "POST /pets " + overMaxBody + "\nTransfer-Encoding: chunked",
			want: entry{
				Method: "POST",
				URL:    "/pets",
				Status: 413,
				Answer: errorJSON("request_entity_too_large", bodyTooLarge, 413),
				Error:  bodyTooLarge,
			},
		},
	} {
		s.expect(t, "DELETE /__admin/requests", "204")
		answer := s.do(t, tt.request).body
		got := s.journal(t, 1)[0]
		equalEntry(t, tt.request, got, tt.want)
		equal(t, "the beginning of the response to this request:\n"+tt.request,
			answer[:min(len(answer), 1000)], tt.want.Answer)

		// The journal rounds the time down to a millisecond, and the seconds up or down.
		age := time.Since(got.Time.Time)
		if age < 0 || age > patience {
			t.Errorf("request:\n%s\n got the time %v, which is %v ago\nwant between 0s and %v",
				abridge(tt.request), got.Time, age, patience)
		} else if got.Seconds > age.Seconds()+0.001 {
			t.Errorf("request:\n%s\n got %v seconds\nwant at most the %v since its time",
				abridge(tt.request), got.Seconds, age)
		}
	}
}

// The journal and the log list the requests of clients only, so that observing
// the service does not disturb them.
func TestRequestsNotRecorded(t *testing.T) {
	s := startServer(t, "-log")
	for _, request := range []string{
		"GET /", "HEAD /", "GET /openapi.json", "POST /healthz",
		"GET /__admin", "GET /__admin/requests\nAuthorization: x", "GET /%5F_admin/fault",
		"POST /__admin/reset", "OPTIONS /v1/pets", "OPTIONS *",
		"GET /v1/pets" + observer, "POST /v1/pets " + newPet + observer,
		"GET /v1/pets\nAuthorization: x" + observer, "GET /v1/nothing" + observer,
	} {
		s.do(t, request)
		s.expect(t, "GET /__admin/requests", emptyJournal)
	}
	s.do(t, "GET /healthz/")
	s.do(t, "GET /v1/pets/1\nPrefer: delay=0")
	s.expectJournal(t,
		entry{Method: "GET", URL: "/healthz/", Status: 404},
		entry{Method: "GET", URL: "/v1/pets/1", Status: 200, Fault: "delay=0"})
	s.stop()
	logged := strings.Count(s.stderr.String(), "msg=request")
	equal(t, "the number of requests in the log", logged, 2)
}

// Neither a fault nor -latency applies to an observer, and an observer uses up
// no fault. It needs the key.
func TestObserver(t *testing.T) {
	svc := newTestService(t, nil)
	svc.latency = time.Hour
	s := startService(t, svc)
	const unused = `200 {"code":"503,hangup","times":2,"matched":0,"applied":0}`
	s.expect(t, "PUT /__admin/fault?code=503,hangup", unused)
	for _, tt := range []struct{ request, want string }{
		{request: "GET /v1/pets\nPetstore-Observer: page", want: "200 []"},
		{request: "HEAD /v1/pets\npetstore-observer:", want: "200"},
		{request: "POST /v1/pets {}\nPetstore-Observer: 0", want: missingName},
		{request: "GET /v1/pets\nPrefer: code=hangup" + observer, want: "200 []"},
		{request: "GET /v1/pets\nPrefer: code=x" + observer, want: "200 []"},
		{request: "GET /v1/nothing" + observer, want: "404 not_found: …"},
		{
			request: "GET /v1/pets/1" + observer,
			want:    "404 not_found: there is no pet 1" + deprecated,
		},
		{request: "GET /v1/pets\nAuthorization: x" + observer, want: missingKey},
		{request: "GET /v1/pets\nAuthorization: Bearer x" + observer, want: wrongKey},
	} {
		s.expect(t, tt.request, tt.want)
	}
	s.expect(t, "GET /__admin/fault", unused)
	s.expect(t, "GET /__admin/requests", emptyJournal)
}

// The journal is in the order of the answers, not of the requests.
func TestJournalOrder(t *testing.T) {
	s := startServer(t)
	s.setFault(t, "delay=30&times=1")
	slow := s.send(t, "GET /v1/pets?slow")
	s.waitMatched(t, 1)
	s.expect(t, "GET /v1/pets?quick", "200 []")
	slow.Close()
	s.expectJournal(t,
		entry{Method: "GET", URL: "/v1/pets?quick", Status: 200},
		entry{Method: "GET", URL: "/v1/pets?slow", Status: 0, Fault: "delay=30"})
}

// A request is recorded before its answer is sent.
func TestRecordedBeforeAnswer(t *testing.T) {
	for _, prefer := range []string{"wait=1", "code=503", "code=html"} {
		svc := newTestService(t, nil)
		s, mon := startMonitored(t, svc)
		var recorded int64
		mon.wrote = func(*http.Request) { _, recorded = svc.current.Load().journal.all() }
		s.do(t, "GET /v1/pets\nPrefer: "+prefer)
		receive(t, "the end of the handler", mon.returned)
		equal(t, "requests recorded when the answer was sent, with Prefer: "+prefer, recorded, 1)
	}
}

// With total, the journal waits for that many requests. A reset, a stop and a
// client that leaves end the wait.
func TestJournalTotal(t *testing.T) {
	stopping := make(chan struct{})
	svc := newTestService(t, nil)
	svc.stopping = stopping
	s := startService(t, svc)
	for _, total := range []string{"-1", "x", "", "1.0", "9223372036854775808"} {
		s.expect(t, "GET /__admin/requests?total="+total,
			"400 invalid_parameter: total is "+cmp.Or(total, "empty")+"; it must be an integer…")
	}
	s.expect(t, "GET /__admin/requests?total=0", emptyJournal)
	if t.Failed() {
		return // the waits below would take long
	}

	// wait asks for the journal, and returns when the service waits.
	wait := func(total int64) *connection {
		conn := s.send(t, fmt.Sprint("GET /__admin/requests?total=", total))
		expectWaiting(t, svc, 1)
		return conn
	}
	expectTotal := func(what string, resp response, total int) {
		t.Helper()
		matches(t, what, resp.String(), fmt.Sprintf(`^200 .*"meta":\{"total":%d\}\}$`, total))
	}

	two := wait(2)
	s.do(t, "GET /v1/pets")
	s.do(t, "GET /v1/pets"+observer)
	equal(t, "the number of waiting requests after one of two", countWaiting(svc), 1)
	s.do(t, "GET /v1/pets")
	expectTotal("total=2 after two requests", two.read(), 2)
	expectTotal("total=1 after two requests", s.do(t, "GET /__admin/requests?total=1"), 2)

	// A DELETE starts again at 0. The request keeps waiting.
	three := wait(3)
	s.expect(t, "DELETE /__admin/requests", "204")
	for range 3 {
		s.do(t, "GET /v1/pets")
	}
	expectTotal("total=3, three requests after a DELETE", three.read(), 3)

	left := wait(9)
	left.CloseWrite()
	left.read().check(t, "total=9 of a client that leaves", connClosed)
	equal(t, "the number of waiting requests after the client left", countWaiting(svc), 0)

	old := wait(4)
	s.reset(t, "")
	expectTotal("total=4 after a reset", old.read(), 3)
	one := wait(1)
	s.do(t, "GET /v1/pets")
	expectTotal("total=1 after a reset and a request", one.read(), 1)

	last := wait(2)
	close(stopping)
	expectTotal("total=2 after a stop", last.read(), 1)
}

// Any number of clients may wait for the journal concurrently, each for a total of
// its own.
func TestJournalTotalConcurrent(t *testing.T) {
	svc := newTestService(t, nil)
	s := startService(t, svc)
	const clients = 50
	var conns []*connection
	for i := range clients {
		conns = append(conns, s.send(t, fmt.Sprint("GET /__admin/requests?total=", i%2+1)))
	}
	expectWaiting(t, svc, clients)
	for total := 1; total <= 2; total++ {
		s.do(t, "GET /v1/pets")
		for i, conn := range conns {
			if i%2+1 != total {
				continue
			}
			what := fmt.Sprintf("the journal with total=%d, client %d", total, i)
			matches(t, what, conn.read().String(), fmt.Sprintf(`^200 .*"total":%d\}\}$`, total))
			if t.Failed() {
				return // the others are likely to fail in the same way
			}
		}
	}
	expectWaiting(t, svc, 0)
}

// The journal names what the operation ignored: first the sorted query
// parameters, and then the sorted members of the body.
func TestJournalIgnored(t *testing.T) {
	s := startServer(t)
	for _, tt := range []struct {
		request string
		want    []string
	}{
		{request: "GET /v1/pets?limit=1&after=1&status=sold"},
		{request: "POST /v1/pets " + `{"name":"a","categoryId":1,"status":"sold"}`},
		{
			request: "GET /v1/pets?stauts=sold&b&a=1&b=2&%61b=",
			want:    []string{"a", "ab", "b", "stauts"},
		},
		{request: "GET /v1/pets?limit=x&Limit=1", want: []string{"Limit"}},
		{request: "GET /v1/pets/1?limit=1&after=1", want: []string{"after", "limit"}},
		{request: "GET /v1/pets/99?x", want: []string{"x"}},
		{request: "GET /v1/store/orders?x", want: []string{"x"}},
		{
			request: "POST /v1/pets?z&limit=1 " +
				`{"status":"sold","id":7,"b":1,"Status":1,"name":"","a":1,"a":2,"categoryId":1}`,
			want: []string{"limit", "z", "Status", "a", "b", "id"},
		},
		{request: `POST /v1/pets?x {"id":7}`, want: []string{"x", "id"}},
		{request: `POST /v1/pets?x {"id":7`, want: []string{"x"}},
		{request: `POST /v1/pets?x {"id":7}` + "\nContent-Type: x", want: []string{"x"}},
		{request: "GET /v1/nothing?x"},
		{request: "BREW /v1/pets?x"},
		{request: "GET /v1/pets?x\nPrefer: code=503"},
		{request: "GET /v1/pets?x\nPrefer: code=lost", want: []string{"x"}},
	} {
		s.expect(t, "DELETE /__admin/requests", "204")
		s.do(t, tt.request)
		equal(t, "the ignored names of this request:\n"+tt.request,
			s.journal(t, 1)[0].Ignored, tt.want)
	}
	s.expect(t, "DELETE /__admin/requests", "204")
	s.do(t, "GET /v1/pets?limit=1")
	if body := s.do(t, "GET /__admin/requests").body; strings.Contains(body, "ignored") {
		t.Errorf("got the member ignored, want none: %s", body)
	}
}

// The journal is a JSON object with a line for each request, so that grep can
// count the requests.
func TestJournalFormat(t *testing.T) {
	s := startServer(t)
	s.do(t, `POST /v1/pets {"name":"<\u000a>","categoryId":1}`+
		"\nx-a: 1\nX-A:2, 3\nTransfer-Encoding: chunked\nx-a:")
	withoutHost := "GET /v1/pets/9?x=%20 HTTP/1.0\nAuthorization: Bearer " + testKey + "\n\n"
	s.sendRaw(t, withoutHost).read()
	got := s.do(t, "GET /__admin/requests").body
	times := regexp.MustCompile(`\d{4}(-\d\d){2}T\d\d(:\d\d){2}\.\d{3}Z`)
	got = times.ReplaceAllString(got, "TIME")
	seconds := regexp.MustCompile(`"seconds":\d+(\.\d{1,3})?\b`)
	got = seconds.ReplaceAllString(got, `"seconds":SECONDS`)
	want := `{"requests":[
{"time":"TIME","method":"POST","url":"/v1/pets",` +
		`"headers":{"Authorization":"Bearer <API_KEY>","Host":"petstore",` +
		`"Transfer-Encoding":"chunked","X-A":"1, 2, 3, "},` +
		`"body":"{\"name\":\"<\\u000a>\",\"categoryId\":1}","status":201,"seconds":SECONDS,` +
		`"answer":"{\"id\":1,\"name\":\"<\\n>\",\"categoryId\":1}\n"},
{"time":"TIME","method":"GET","url":"/v1/pets/9?x=%20",` +
		`"headers":{"Authorization":"Bearer <API_KEY>"},"body":"","status":404,"seconds":SECONDS,` +
		`"answer":"{\"code\":\"not_found\",\"message\":\"there is no pet 9\",\"status\":404}\n",` +
		`"error":"there is no pet 9","ignored":["x"]}
],"meta":{"total":2}}
`
	equal(t, "the journal", got, want)
	s.expect(t, "DELETE /__admin/requests", "204")
	s.expect(t, "GET /__admin/requests", emptyJournal)
}

// The journal keeps the last 1,000 requests, and 4 MiB of them to the byte. A
// slice that all returns is not changed by a later add.
func TestJournalBounds(t *testing.T) {
	var j journal
	for i := range maxJournal + 3 {
		j.add(entry{URL: fmt.Sprint("/", i)})
	}
	entries, total := j.all()
	equal(t, "the total", total, 1003)
	if len(entries) != 1000 {
		t.Fatalf("got %d entries, want 1000", len(entries))
	}
	j.add(entry{})
	equal(t, "the URL of the first entry", entries[0].URL, "/3")
	equal(t, "the URL of the last entry", entries[999].URL, "/1002")

	// The size of an entry is that of its texts, and 100 more for each header and
	// each ignored name.
	e := entry{
		Method:  "POST",
		URL:     "/v1/pets",
		Headers: map[string]string{"X": "yz"},
		Body:    "0123456789",
		Answer:  "01234567890123456789",
		Error:   "wrong",
		Fault:   "delay=0",
		Ignored: []string{"stauts"},
	}
	const size = 4 + 8 + (1 + 2 + 100) + 10 + 20 + 5 + 7 + (6 + 100)
	for _, tt := range []struct{ over, kept int }{
		{over: 0, kept: 2},
		{over: 1, kept: 1},
	} {
		j.clear()
		j.add(entry{Body: strings.Repeat("x", 4<<20-size+tt.over)})
		j.add(e)
		entries, total := j.all()
		what := fmt.Sprint("the number of entries, ", tt.over, " bytes over the bound")
		equal(t, what, len(entries), tt.kept)
		equal(t, "the total of two", total, 2)
	}

	// The journal keeps the last entries that fit into 4 MiB together. The sizes
	// differ, because it must subtract the size of the entry that it drops.
	const mib = 1 << 20
	j.clear()
	var sizes []int
	for _, size := range []int{3 * mib, 10, 2 * mib, mib, mib - 10, 10, 4 * mib, 1, 1, mib} {
		sizes = append(sizes, size)
		j.add(entry{Body: strings.Repeat("x", size)})
		kept, sum := 0, 0
		for kept < len(sizes) && sum+sizes[len(sizes)-1-kept] <= 4*mib {
			sum += sizes[len(sizes)-1-kept]
			kept++
		}
		entries, _ := j.all()
		equal(t, fmt.Sprint("the number of entries, of these sizes: ", sizes), len(entries), kept)
	}
}

// In an Authorization header, <API_KEY> stands for the key wherever it occurs.
func TestHideKey(t *testing.T) {
	for _, tt := range []struct{ header, key, want string }{
		{header: "Bearer key, Basic key", key: "key", want: "Bearer <API_KEY>, Basic <API_KEY>"},
		{header: "bearer   key ", key: "key", want: "bearer   <API_KEY> "},
		{header: "Bearer\tkey", key: "key", want: "Bearer\t<API_KEY>"},
		{header: "key, Bearer x", key: "key", want: "<API_KEY>, Bearer x"},
		{header: `Bearer token="key";`, key: "key", want: `Bearer token="<API_KEY>";`},
		{header: "key", key: "key", want: "<API_KEY>"},
		{header: "Bearer other", key: "key", want: "Bearer other"},
	} {
		got := hideKey(tt.header, tt.key)
		equal(t, fmt.Sprintf("hideKey(%q, %q)", tt.header, tt.key), got, tt.want)
	}
}

// With -log, the log contains a line for each request, with what went wrong and
// the fault, but without the headers.
func TestLog(t *testing.T) {
	s := startServer(t, "-log")
	s.do(t, "GET /v1/pets?limit=5")
	s.do(t, "GET /v1/pets/1?%0A=%22")
	s.do(t, "GET /v1\nPrefer: code=hangup")
	s.do(t, "GET /v1\nPrefer: code=418")
	s.stop()
	log := regexp.MustCompile(`(?m)^time=\S+ `).ReplaceAllString(s.stderr.String(), "")
	want := "a page for browsers is at http://" + s.addr + "/\n" +
		`level=INFO msg=request method=GET url="/v1/pets?limit=5" status=200
level=INFO msg=request method=GET url="/v1/pets/1?%0A=%22" status=404 error="there is no pet 1"
level=INFO msg=request method=GET url=/v1 status=0 fault="code=hangup"
level=INFO msg=request method=GET url=/v1 status=418 error="` + simulated + `" fault="code=418"
level=INFO msg="stopping; a second signal ends the process at once" limit=10s
`
	equal(t, "the log", log, want)
}

// Away from a terminal, and with a key given, standard error stays empty,
// whatever clients do and however many services run.
func TestStderrStaysEmpty(t *testing.T) {
	use := func(s *testServer) {
		for _, request := range []string{
			"GET /v1/pets", "POST /v1/pets {", "BREW /v1", "GET /v1\nAuthorization: x",
			"POST /v1/pets" + lengthTooLong, "GET /v1/pets\nPrefer: code=hangup",
			"GET /v1/pets\nPrefer: code=rst", "GET /v1/pets\nPrefer: code=truncate",
			"GET /v1/pets\nPrefer: code=html", "PUT /__admin/fault?code=x", "POST /__admin/reset",
		} {
			s.do(t, request)
		}
	}
	servers := make([]*testServer, 30)
	for i := range servers {
		servers[i] = startServer(t)
	}
	concurrently(t, len(servers), func(i int) error {
		use(servers[i])
		return nil
	})
	for i, s := range servers {
		s.stop()
		what := fmt.Sprintf("stderr of service %d of %d", i+1, len(servers))
		equal(t, what, s.stderr.String(), "")
		if t.Failed() {
			return // the others are likely to fail in the same way
		}
	}

	p := startProcess(t, petstoreCommand())
	use(p.testServer)
	p.cmd.Process.Signal(syscall.SIGTERM)
	p.expectExit(t, "<nil>")
	equal(t, "stderr of a process", p.stderr.String(), "")
}

// Requests are logged by default if standard error is a terminal. Any character
// device but the null device counts as one.
func TestLogDefault(t *testing.T) {
	pipe, _, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	file, err := os.Open(tempFile(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, tt := range []struct {
		name   string
		stderr io.Writer
		args   []string
		want   bool
	}{
		{name: "buffer", stderr: new(lockedBuffer), want: false},
		{name: "pipe", stderr: pipe, want: false},
		{name: "file", stderr: file, want: false},
		{name: "null device", stderr: null, want: false},
		{name: "pipe with -log", stderr: pipe, args: []string{"-log"}, want: true},
	} {
		opts, err := parseFlags(tt.args, tt.stderr)
		if err != nil || opts.log != tt.want {
			t.Errorf("%s: got -log %v and the error %v, want %v", tt.name, opts.log, err, tt.want)
		}
	}

	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0) // one side of a pseudo-terminal
	if err != nil {
		t.Skip("there is no /dev/ptmx")
	}
	defer terminal.Close()
	opts, _ := parseFlags(nil, terminal)
	equal(t, "-log for a terminal", opts.log, true)
	opts, _ = parseFlags([]string{"-log=false"}, terminal)
	equal(t, "-log=false for a terminal", opts.log, false)
}

// The service starts, answers and stops even if standard error is closed.
func TestStderrClosed(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	cmd := petstoreCommand("-log")
	cmd.Stderr = w
	p := startProcess(t, cmd)
	p.expect(t, "GET /v1/pets", "200 []")
	p.expect(t, "GET /v1/pets", "200 []") // although the first could not be logged
	p.cmd.Process.Signal(syscall.SIGTERM)
	p.expectExit(t, "<nil>")
}

// Web pages of every origin may read every response, with the headers that they
// need.
func TestCORS(t *testing.T) {
	s := startServer(t)
	for _, request := range []string{
		"POST /v1/pets {}", "GET /v1/pets", "PATCH /v1/pets", "OPTIONS /v1/pets",
		"GET /v1\nAuthorization: x", "GET /x/../y", "GET /", "GET /__admin/requests",
		"GET /v1\nPrefer: code=html", "POST /v1/pets" + lengthTooLong,
	} {
		h := s.do(t, request+"\nOrigin: null").header
		const (
			allowOrigin   = "Access-Control-Allow-Origin"
			exposeHeaders = "Access-Control-Expose-Headers"
		)
		equal(t, allowOrigin+" for this request:\n"+request, h[allowOrigin], []string{"*"})
		equal(t, exposeHeaders+" for this request:\n"+request, h.Get(exposeHeaders),
			"Link, Location, Allow, Deprecation, Sunset, "+
				"WWW-Authenticate, Preference-Applied, Retry-After")
	}
	const preflight = "204" +
		"\nAccess-Control-Allow-Headers: " +
		"Authorization, Content-Type, Prefer, Petstore-Observer, *" +
		"\nAccess-Control-Allow-Methods: GET, HEAD, POST, PUT, PATCH, DELETE" +
		"\nAccess-Control-Max-Age: 600"
	s.expect(t, "GET /v1/pets\nOrigin:", "200 []")
	s.setFault(t, "code=503") // must not be applied to a preflight
	for _, target := range []string{
		"/v1/pets", "/v1/pets/", "/x/../y", "/__admin/reset", "/healthz", "*",
	} {
		s.withKey("").expect(t, "OPTIONS "+target+"\nPrefer: code=503", preflight)
	}
}

// The API.

// The operations of the contract (section 4) do what it says. All responses of
// getPet have its headers, errors included.
func TestContract(t *testing.T) {
	s := startServer(t)
	const (
		newRex = `{"name":"Rex","categoryId":7,"status":"available"}`
		newTom = `{"name":"Tom","categoryId":9}`
		rex    = `{"id":1,"name":"Rex","categoryId":7,"status":"available"}`
		tom    = `{"id":2,"name":"Tom","categoryId":9}`
	)
	for _, tt := range []struct{ request, want string }{
		{request: "GET /v1/pets", want: "200 []"},
		{request: "POST /v1/pets " + newRex, want: "201 " + rex + "\nLocation: /v1/pets/1"},
		{request: "POST /v1/pets {}", want: missingName}, // uses no id
		{
			request: "POST /v1/pets " + newTom + "\nIdempotency-Key: 1",
			want:    "201 " + tom + "\nLocation: /v1/pets/2",
		},
		{request: "GET /v1/pets", want: "200 [" + rex + "," + tom + "]"},
		{request: "GET /v1/pets?status=available", want: "200 [" + rex + "]"},
		{request: "GET /v1/pets?status=pending", want: "200 []"},
		{request: "GET /v1/pets/2", want: "200 " + tom + deprecated},
		{request: "GET /v1/pets/0", want: "404 not_found: there is no pet 0" + deprecated},
		{
			request: "GET /v1/pets/x",
			want:    "400 invalid_parameter: petId is x; it must be an integer" + deprecated,
		},
		{
			request: "GET /v1/pets/2" + badQuery,
			want:    "400 invalid_parameter: the query is malformed…" + deprecated,
		},
		{
			request: "GET /v1/pets/2\nPrefer: code=418",
			want:    teapot + deprecated + "\nPreference-Applied: code=418",
		},
		{request: "GET /v1/pets/2\nAuthorization: x", want: missingKey},
	} {
		s.expect(t, tt.request, tt.want)
		if t.Failed() {
			return // the rows that follow depend on this one
		}
	}
}

// Responses that are sent at the same time share no memory: sending a stored pet
// does not write behind its JSON, where there may be room.
func TestStoredPetStays(t *testing.T) {
	svc := newTestService(t, newTestStore(t, "["+newPet+"]"))
	p := svc.current.Load().pets.get(1)
	withMore := append(slices.Clone(p.json), "more"...)
	p.json = withMore[:len(p.json)]
	s := startService(t, svc)
	s.expect(t, "GET /v1/pets/1", "200 "+pet1+deprecated)
	s.expect(t, "GET /v1/pets", list1)
	equal(t, "the memory of pet 1 and behind it", string(withMore), pet1+"more")
}

// HEAD works wherever GET does. Its response has the same headers except Date,
// and no body.
func TestHead(t *testing.T) {
	s := startServer(t, "-seed", tempFile(t, seedOf(50)))
	for _, request := range getRequests() {
		get, head := s.do(t, "GET "+request), s.do(t, "HEAD "+request)
		if get.err != nil || head.err != nil {
			t.Fatalf("GET and HEAD of this request:\n%s\n got %s\nand %s", request, get, head)
		}
		head.header["Date"] = get.header["Date"]
		equal(t, "the status of this request:\nHEAD "+request, head.status, get.status)
		equal(t, "the headers for this request:\nHEAD "+request, head.header, get.header)
		equal(t, "the body for this request:\nHEAD "+request, head.body, "")
	}
}

// Every body of a response to GET is JSON and a newline, except the page.
func TestBodiesAreJSON(t *testing.T) {
	s := startServer(t, "-seed", tempFile(t, seedOf(50)))
	for _, request := range getRequests() {
		r := s.do(t, "GET "+request)
		contentType := r.header.Get("Content-Type")
		isJSON := contentType == "application/json" &&
			json.Valid([]byte(r.body)) && strings.HasSuffix(r.body, "\n")
		isPage := contentType == "text/html; charset=utf-8" && r.body == string(indexHTML)
		if !isJSON && !isPage {
			t.Errorf("request:\nGET %s\n got %s\nwant JSON and a newline, or the page",
				request, abridge(r))
		}
	}
}

// Under /v1 and /__admin, the key is checked before anything else.
func TestKeyIsCheckedFirst(t *testing.T) {
	s := startServer(t)
	for _, request := range []string{
		"GET /v1", "GET /v1/pets/", "GET /v1/../v1/pets", "GET /%761/x",
		"GET /v1/pets/1" + badQuery, "GET /v1/store/orders", "BREW /v1/pets", "POST /v1/pets {}",
		"GET /__admin", "GET /__admin/requests", "GET /v1/pets?limit=0&key=" + testKey,
	} {
		s.withKey("").expect(t, request+"\nX-Api-Key: "+testKey+"\nPrefer: code=503", missingKey)
		s.withKey("wrong").expect(t, request+"\nPrefer: code=503", wrongKey)
	}
}

// The key must be the Bearer credential of the only Authorization header.
func TestAuthorization(t *testing.T) {
	s := startServer(t)
	for _, tt := range []struct{ authorization, want string }{
		{authorization: "", want: missingKey},
		{authorization: "Bearer", want: missingKey},
		{authorization: testKey, want: missingKey},
		{authorization: "Basic " + testKey, want: missingKey},
		{authorization: "Bearer CORRECT-HORSE", want: wrongKey},
		{authorization: "Bearer correct-hors", want: wrongKey},
		{authorization: "Bearer correct-horses", want: wrongKey},
		{
			authorization: "Bearer " + testKey + "\nAuthorization: Bearer " + testKey,
			want:          missingKey,
		},
		{authorization: "bEARER   " + testKey, want: "200 []"},
	} {
		s.expect(t, "GET /v1/pets\nAuthorization: "+tt.authorization, tt.want)
	}
}

// Three paths need no key, and ignore a wrong one.
func TestPathsWithoutKey(t *testing.T) {
	s := startServer(t)
	for _, tt := range []struct{ path, body string }{
		{path: "/healthz", body: `{"status":"ok"}` + "\n"},
		{path: "/openapi.json", body: string(openAPI)},
		{path: "/", body: string(indexHTML)},
	} {
		for _, key := range []string{"", "wrong"} {
			got := s.withKey(key).do(t, "GET "+tt.path).body
			equal(t, fmt.Sprintf("GET %s with the key %q", tt.path, key), got, tt.body)
		}
	}
}

// A page has 20 pets, or as many as limit says, however long they are. Its Link
// keeps limit and status.
func TestPaging(t *testing.T) {
	long := `{"name":"` + strings.Repeat("x", 60_000) + `","categoryId":1,"status":"sold"},`
	s := startServer(t, "-seed", tempFile(t, "["+strings.Repeat(long, 100)+seedOf(21)[1:]))
	for _, tt := range []struct {
		query string
		pets  int
		link  string
	}{
		{query: "", pets: 20, link: `</v1/pets?after=20>; rel="next"`},
		{query: "?limit=100", pets: 100, link: `</v1/pets?limit=100&after=100>; rel="next"`},
		{query: "?after=101", pets: 20},
		{query: "?after=121", pets: 0},
		{
			query: "?status=sold&limit=5&after=100&x=y",
			pets:  5,
			link:  `</v1/pets?limit=5&status=sold&after=113>; rel="next"`,
		},
		{
			query: "?after=-9223372036854775808&limit=1",
			pets:  1,
			link:  `</v1/pets?limit=1&after=1>; rel="next"`,
		},
		{query: "?limit=%31&Limit=9", pets: 1, link: `</v1/pets?limit=1&after=1>; rel="next"`},
	} {
		resp := s.do(t, "GET /v1/pets"+tt.query)
		equal(t, "the number of pets in /v1/pets"+tt.query, resp.countPets(), tt.pets)
		equal(t, "the Link of /v1/pets"+tt.query, resp.header.Get("Link"), tt.link)
	}
}

// When goroutines add pets concurrently, each id is used once, and no pet is
// lost. The store is called directly, as requests over HTTP would not come as
// close together.
func TestAddConcurrent(t *testing.T) {
	const clients, each = 8, 2000
	pets := newStore()
	var used [clients*each + 1]atomic.Bool // by id
	concurrently(t, clients, func(int) error {
		for range each {
			p, err := pets.add(NewPet{})
			if err != nil {
				return fmt.Errorf("add: got the error %w, want none", err)
			}
			if p.id < 1 || p.id > clients*each || used[p.id].Swap(true) {
				return fmt.Errorf("add: got the id %d, want a new one from 1 to %d",
					p.id, clients*each)
			}
			if pets.get(p.id) != p {
				return fmt.Errorf("get(%d): got %p, want the pet that was added, %p",
					p.id, pets.get(p.id), p)
			}
		}
		return nil
	})
	list := allPets(pets)
	equal(t, "the number of pets in the list", len(list), clients*each)
	if !slices.IsSortedFunc(list, func(a, b *storedPet) int { return cmp.Compare(a.id, b.id) }) {
		t.Error("got a list that is not in ascending order of id, want one that is")
	}
}

// Worlds with the same seed do not share the pets that are added to them.
func TestClonesAreIndependent(t *testing.T) {
	seed := newTestStore(t, seedOf(3))
	a, b := seed.clone(), seed.clone()
	if _, err := a.add(NewPet{Name: "of a", Status: "sold"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.add(NewPet{Name: "of b", Status: "sold"}); err != nil {
		t.Fatal(err)
	}
	const want = `{"id":4,"name":"of a","categoryId":0,"status":"sold"}`
	anyStatus, _ := a.list("", 3, 100)
	equal(t, "the pets of a after pet 3", string(encodePage(anyStatus)), "["+want+"]\n")
	sold, _ := a.list("sold", 3, 100)
	equal(t, "the sold pets of a after pet 3", string(encodePage(sold)), "["+want+"]\n")
	equal(t, "the number of pets in the list of the seed", len(allPets(seed)), 3)
	equal(t, "the number of pets in the map of the seed", len(seed.pets), 3)
}

// An integer must have the form that JSON requires. The message for any other
// text shows it.
func TestParseIntegerErrors(t *testing.T) {
	message := func(given string) string {
		_, err := parseInteger(codeInvalidBody, "x", given, math.MinInt64, math.MaxInt64)
		return fmt.Sprint(err)
	}
	for _, given := range []string{
		"1.0", "1.5", "4e2", "+1", "01", "-01", "1_0", "0x1", "1-", "-", "ten", "[1]",
		`"1"`, "५", strings.Repeat("😀", 40),
	} {
		equal(t, "the error for "+given, message(given), "x is "+given+"; it must be an integer")
	}
	const tooLarge = "9223372036854775808"
	equal(t, "the error for "+tooLarge, message(tooLarge), "x is "+tooLarge+
		"; it must be an integer from -9223372036854775808 to 9223372036854775807")
}

// A message shows up to 40 characters of what was given.
func TestShorten(t *testing.T) {
	forty := strings.Repeat("😀", 40)
	equal(t, "40 characters", shorten(forty), forty)
	equal(t, "41 characters", shorten(forty+"x"), forty+"…")
}

// Each query parameter has an effect, and the bounds and the default that
// api/openapi.json gives it. For limit, this test sends
//
//	GET /v1/pets?limit=10                     the body differs from that without it
//	GET /v1/pets?limit=20, the default        the body does not
//	GET /v1/pets?limit=1 and limit=100        200
//	GET /v1/pets?limit=0 and limit=101        400
func TestParameters(t *testing.T) {
	s := startServer(t, "-seed", tempFile(t, seedOf(150)))
	values := map[string]string{ // values that change the response
		"limit": "10", "status": "available", "after": "20",
		"code": "503", "delay": "1", "answer-delay": "1", "retry-after": "1",
		"operation": "createPet", "skip": "1", "times": "1",
	}
	api := readOpenAPI(t)
	for _, pattern := range keys(api.operations) {
		op := api.operations[pattern]
		for _, p := range op.Parameters {
			if p.In != "query" || p.Name == "total" { // for total, see TestJournalTotal
				continue
			}
			if values[p.Name] == "" {
				t.Errorf("values has no value for %s; add one that changes the response", p.Name)
				continue
			}
			s.expect(t, "DELETE /__admin/fault", "204")
			base := exampleOf(pattern) + "?"
			if op.OperationID == "setFault" && p.Name != "code" {
				base += "code=503&"
			}
			send := func(value any) response {
				return s.do(t, fmt.Sprint(base, p.Name, "=", value))
			}

			without, with := s.do(t, base).body, send(values[p.Name])
			if with.status != 200 || with.body == without {
				t.Errorf("%s%s=%s:\n got %s\nwant 200 and another body than without it",
					base, p.Name, values[p.Name], abridge(with))
			}
			if standard := p.Schema.Default; standard != nil {
				what := fmt.Sprint(base, p.Name, "=", standard, ", the default")
				equal(t, what, send(standard).body, without)
			}
			if p.Schema.Type != "integer" && p.Schema.Type != "number" {
				continue
			}
			for _, tt := range []struct {
				bound   *float64
				extreme int64 // the value to send if there is no bound
				step    int64 // from the bound to a value that is not allowed
			}{
				{bound: p.Schema.Minimum, extreme: math.MinInt64, step: -1},
				{bound: p.Schema.Maximum, extreme: math.MaxInt64, step: 1},
			} {
				n := tt.extreme
				if tt.bound != nil {
					n = int64(*tt.bound)
					what := fmt.Sprint("the status of ", base, p.Name, "=", n+tt.step)
					equal(t, what, send(n+tt.step).status, 400)
				}
				equal(t, fmt.Sprint("the status of ", base, p.Name, "=", n), send(n).status, 200)
			}
		}
	}
}

// Messages say what was given and what is allowed. Requests that are refused
// set no fault and add no pet. For messages on a body, see TestParsePet.
func TestMessages(t *testing.T) {
	s := startServer(t)
	const wantInteger = "; it must be an integer"
	for _, tt := range []struct{ request, want string }{
		{
			request: "GET /v1\nAuthorization: x",
			want:    "send the API key in one header: Authorization: Bearer <API_KEY>",
		},
		{
			request: "GET /v1\nAuthorization: Bearer x",
			want:    "this is not the API key that the service was started with",
		},
		{
			request: "GET /v1/store/orders",
			want:    "the contract names this operation without its payload",
		},
		{request: "BREW /v1/pets", want: "this path allows " + allow("/v1/pets") + " only"},
		{
			request: "GET /v1/pets/",
			want: "no such path: /v1/pets/; the API is at /v1/pets, without a slash at the end; " +
				"there are also /__admin/reset, /__admin/fault and /__admin/requests, " +
				"/openapi.json, and a page at /",
		},
		{request: "GET /v1/%70ets/%2d7?colour=red&colour=", want: "there is no pet -7"},
		{
			request: "POST /v1/pets x\nContent-Encoding: br",
			want:    "Content-Encoding is br; it must be left out",
		},
		{
			request: "POST /v1/pets x\nContent-Type: x",
			want: "Content-Type is x; " +
				"it must be application/json, in UTF-8 (curl sends that with --json)",
		},
		{request: "POST /v1/pets" + lengthTooLong, want: bodyTooLarge},
		{
			request: "POST /__admin/reset" + lengthTooLong,
			want:    bodyTooLarge + "; put a larger seed into a file, and start with -seed",
		},
		{request: "PUT /__admin/fault" + lengthTooLong, want: bodyTooLarge},
		{request: "GET /v1/pets/1%2F2", want: "petId is 1/2" + wantInteger},
		{
			request: "GET /v1/pets?limit=&after=x&status=",
			want:    "limit is empty" + wantInteger + " from 1 to 100",
		},
		{
			request: "GET /v1/pets?limit=x&after=1&after=1",
			want:    "after is given 2 times; it must be given once",
		},
		{
			request: "GET /v1/pets?status=",
			want:    "status is empty; it must be available, pending or sold",
		},
		{
			request: "GET /v1/pets" + badQuery,
			want:    `the query is malformed: invalid URL escape "%zz"`,
		},
		{
			request: "PUT /__admin/fault?code=503&operation=",
			want:    "operation is empty; it must be " + orList(faultOperations),
		},
		{
			request: "PUT /__admin/fault?delay=x",
			want:    "delay is x; it must be a number of seconds from 0 to 30, such as 2 or 0.5",
		},
		{
			request: "PUT /__admin/fault?skip=1&times=1&retry-after=5",
			want: "code, delay or answer-delay must be given, " +
				"in the query: /__admin/fault?code=503",
		},

		// A parameter that is unknown under /__admin. The first by name is reported.
		{
			request: "GET /__admin/fault?code=503",
			want: "GET /__admin/fault does not take the parameter code; " +
				"PUT /__admin/fault does (curl -X PUT)",
		},
		{
			request: "DELETE /__admin/fault?code=503",
			want: "DELETE /__admin/fault does not take the parameter code; " +
				"PUT /__admin/fault does (curl -X PUT)",
		},
		{
			request: "PUT /__admin/fault?code=503&stauts=x",
			want: "PUT /__admin/fault does not take the parameter stauts; " +
				"it takes code, delay, answer-delay, retry-after, operation, skip, times",
		},
		{
			request: "DELETE /__admin/requests?total=1",
			want: "DELETE /__admin/requests does not take the parameter total; " +
				"GET /__admin/requests does (curl -X GET)",
		},
		{
			request: "GET /__admin/requests?limit=1",
			want:    "GET /__admin/requests does not take the parameter limit; it takes total",
		},
		{
			request: "POST /__admin/reset?code=503",
			want:    "POST /__admin/reset does not take the parameter code; it takes none",
		},
		{
			request: "POST /__admin/reset?h&g&f&e&d&c&b&a",
			want:    "POST /__admin/reset does not take the parameter a; it takes none",
		},
	} {
		resp := s.do(t, tt.request)
		if resp.error() == (Error{}) {
			t.Errorf("request:\n%s\n got %s\nwant an Error", tt.request, resp)
			continue
		}
		equal(t, "the message for this request:\n"+tt.request, resp.error().Message, tt.want)
	}
	s.expect(t, "GET /__admin/fault", "200 {}")
	s.expect(t, "POST /v1/pets "+newPet, created1)

	s.expect(t, "CONNECT petstore:80", "404 not_found: no such path: petstore:80;…")
	s.expect(t, "GET http://petstore", "404 not_found: no such path: http://petstore;…")
}

// createPet accepts a body, or refuses it with a message that names the member.
func TestParsePet(t *testing.T) {
	const (
		notJSON    = "it is not JSON: invalid character "
		wantObject = `; it must be a JSON object, such as {"name":"Rex","categoryId":7}`
		wantStatus = "; it must be available, pending or sold"
		wantInt64  = "; it must be an integer"
	)
	for _, tt := range []struct{ name, body, want string }{
		{
			name: "all members",
			body: `{ "status" : "sold" , "name" : "", "categoryId" : -0 }`,
			want: `{"name":"","categoryId":0,"status":"sold"}`,
		},
		{
			name: "escapes",
			body: `{"n\u0061me":"\u003c&\/😀\ud83d\uDE00>","categoryId":1}`,
			want: `{"name":"<&/😀😀>","categoryId":1}`,
		},
		{
			name: "a lone surrogate",
			body: `{"name":"\ud800\u0000\n\"\\ud800\u2029","categoryId":1}`,
			want: `{"name":"` + "\ufffd" + `\u0000\n\"\\ud800\u2029","categoryId":1}`,
		},
		{
			name: "unknown and duplicate members",
			body: `{"id":7,"x":null,"name":5,"name":"a","categoryId":1,"Name":5,"y":{"name":[]}}`,
			want: newPet,
		},
		{
			name: "smallest categoryId",
			body: `{"name":"","categoryId":-9223372036854775808}`,
			want: `{"name":"","categoryId":-9223372036854775808}`,
		},

		{name: "null", body: " null", want: "it is null" + wantObject},
		{name: "empty", body: "", want: "it is empty" + wantObject},
		{name: "an array", body: "[]", want: "it is []" + wantObject},
		{
			name: "cut short",
			body: `{"name":"a"`,
			want: "it is not JSON: unexpected end of JSON input, at byte 11" + wantObject,
		},
		{
			name: "trailing data",
			body: newPet + "{}",
			want: notJSON + "'{' after top-level value, at byte 28" + wantObject,
		},
		{
			name: "invalid UTF-8",
			body: `{"name":"","categoryId":1,"x":"` + "\xff\"}",
			want: "it is not valid UTF-8",
		},
		{
			name: "name in another case",
			body: `{"Name":"a","NAME":"a","categoryId":1}`,
			want: "name is missing; it must be a string",
		},
		{
			name: "number as name",
			body: `{"name":5,"categoryId":1}`,
			want: "name is 5; it must be a string",
		},
		{
			name: "null as name",
			body: `{"name":null,"categoryId":1}`,
			want: "name is null; it must be a string",
		},
		{
			name: "status in another case",
			body: `{"name":"a","categoryId":1,"status":"Sold"}`,
			want: "status is Sold" + wantStatus,
		},
		{
			name: "null as status",
			body: `{"name":"a","categoryId":1,"status":null}`,
			want: "status is null" + wantStatus,
		},
		{
			name: "empty status",
			body: `{"name":"a","categoryId":1,"status":""}`,
			want: "status is empty" + wantStatus,
		},
		{
			name: "categoryId in another case",
			body: `{"name":"a","categoryid":1}`,
			want: "categoryId is missing" + wantInt64,
		},
		{
			name: "null as categoryId",
			body: `{"name":"a","categoryId":null}`,
			want: "categoryId is null" + wantInt64,
		},
		{
			name: "fraction as categoryId",
			body: `{"name":"a","categoryId":1.0}`,
			want: "categoryId is 1.0" + wantInt64,
		},
		{
			name: "exponent as categoryId",
			body: `{"name":"a","categoryId":1e3}`,
			want: "categoryId is 1e3" + wantInt64,
		},
		{
			name: "string as categoryId",
			body: `{"name":"a","categoryId":"1"}`,
			want: `categoryId is "1"` + wantInt64,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			parsed, err := parseObject("it", []byte(tt.body))
			var p NewPet
			if err == nil {
				p, err = parsePet(parsed)
			}
			got := string(encodeJSON(p))
			if err != nil {
				got = err.Error()
			}
			equal(t, tt.body, got, tt.want)
		})
	}
}

// A path that does not exist is a 404, never a redirect. The 405 of a path with
// other methods lists them.
func TestPathsAndMethods(t *testing.T) {
	s := startServer(t)
	for _, path := range strings.Fields(`
		/pets /v1x //v1/pets /healthz/ /x/../healthz http://x /v1 /v1/
		/v1/pets/ /v1/pets/1/ /v1/pets/1/2 /v1/pets%2F /v1/pets/%2f /%2F /%2f
		/v1//pets /v1/./pets /v1/../v1/pets
		/__admin /__admin/ /__admin/reset/ /__admin//requests /__admin/fault/.`) {
		s.expect(t, "POST "+path+badQuery, "404 not_found: no such path: …")
	}
	s.expect(t, "BREW /v1x", "404 not_found: no such path: …")
	s.withKey("").expect(t, "GET /v1x", "404 not_found: …") // not under /v1, so it needs no key
	s.expect(t, "GET /v1/store/orders", "501 not_implemented: …")

	const refused = "405 method_not_allowed: …\nAllow: "
	paths := map[string]bool{"/v1/pets/1%2F": true}
	for _, rt := range routes {
		_, path, _ := strings.Cut(exampleOf(rt.pattern), " ")
		paths[path] = true
	}
	for _, path := range keys(paths) {
		s.expect(t, "BREW "+path+badQuery+" {}", refused+allow(path))
	}
	for _, method := range []string{"PATCH", "get"} {
		s.expect(t, method+" /__admin/fault", refused+"DELETE, GET, HEAD, PUT")
	}

	// An encoded slash is a part of the petId, unless it is all of it.
	for _, tt := range []struct{ path, petID string }{
		{path: "/v1/pets/1%2F2", petID: "1/2"},
		{path: "/v1/pets/1%2F", petID: "1/"},
		{path: "/v1/pets/%2F..%2F1", petID: "/../1"},
	} {
		s.expect(t, "GET "+tt.path,
			"400 invalid_parameter: petId is "+tt.petID+"; it must be an integer"+deprecated)
	}
}

// A route such as GET /v1/pets/test can be added without a conflict.
func TestNewRoute(t *testing.T) {
	addRoute(t, route{pattern: "GET /v1/pets/test", do: func(x *exchange) error {
		x.replyJSON(200, []byte("1"))
		return nil
	}})
	s := startServer(t, "-seed", tempFile(t, "["+newPet+"]"))
	s.expect(t, "GET /v1/pets/test", "200 1")
	s.expect(t, "HEAD /v1/pets/test", "200")
	s.expect(t, "BREW /v1/pets/test", "405 method_not_allowed: …\nAllow: "+allow("/v1/pets/test"))
	s.expect(t, "GET /v1/pets/1", "200 "+pet1+deprecated)
	s.expect(t, "GET /v1/pets/tests", "400 invalid_parameter: petId is tests;…"+deprecated)
}

// Only the first of several errors is reported, in the order of the reference.
// A request with an error that comes before the fault does not use it up.
func TestErrorOrder(t *testing.T) {
	s := startServer(t)
	s.setFault(t, "code=503&times=1")
	cut := s.send(t, "POST /v1/pets\nContent-Length: 28")
	cut.CloseWrite()
	cut.read().check(t, "a body that is cut short",
		"400 invalid_body: the body is cut short or badly chunked")
	for _, tt := range []struct{ request, want string }{
		{
			request: "BREW /v1//pets" + badQuery + " " + overMaxBody +
				"\nAuthorization: x\nPrefer: code=418",
			want: missingKey,
		},
		{
			request: "BREW /v1//pets" + badQuery + " " + overMaxBody + "\nPrefer: code=418",
			want:    "413 request_entity_too_large: …\nConnection: close",
		},
		{
			request: "BREW /v1//pets" + badQuery + " {\nPrefer: code=x",
			want:    "400 invalid_parameter: code is x;…",
		},
		{
			request: "BREW /v1//pets" + badQuery + " {",
			want:    "503 service_unavailable: …\nRetry-After: 1",
		},
		{request: "BREW /v1//pets" + badQuery + " {", want: "404 not_found: …"},
		{
			request: "BREW /v1/pets" + badQuery + " {",
			want:    "405 method_not_allowed: …\nAllow: GET, HEAD, POST",
		},
		{
			request: "POST /v1/pets" + badQuery + " {\nContent-Type: x",
			want:    "400 invalid_parameter: the query is malformed…",
		},
		{request: "POST /v1/pets {\nContent-Type: x", want: "415 unsupported_media_type: …"},
		{request: "POST /v1/pets {", want: "400 invalid_body: the body is not JSON…"},
		{
			request: "GET /v1/pets/1" + lengthTooLong,
			want:    "413 request_entity_too_large: …\nConnection: close",
		},
		{
			request: "GET /healthz" + lengthTooLong,
			want:    "413 request_entity_too_large: …\nConnection: close",
		},
	} {
		s.expect(t, tt.request, tt.want)
	}
}

// A body is refused if its headers say that it is not JSON in UTF-8. Without a
// body, these headers do not matter.
func TestContentTypes(t *testing.T) {
	s := startServer(t)
	s.reset(t, "") // stops the test if no reset works
	for _, tt := range []struct {
		headers string
		refused bool
	}{
		{headers: "Content-Type: application/json"},
		{headers: "Content-Type:"},
		{headers: "Content-Encoding: Identity"},
		{headers: `Content-Type: Application/JSON; Charset="UTF-8"; x=y`},
		{headers: "Content-Type: text/plain", refused: true},
		{headers: "Content-Type: application/jsonx", refused: true},
		{headers: "Content-Type: application/json; charset=latin1", refused: true},
		{headers: "Content-Type: application/json; charset", refused: true},
		{headers: "Content-Type: a\nContent-Type: application/json", refused: true},
		{headers: "Content-Type: application/json\nContent-Type: a", refused: true},
		{headers: "Content-Encoding: gzip", refused: true},
		{headers: "Content-Encoding: identity\nContent-Encoding: x", refused: true},
	} {
		for _, r := range []struct {
			request string
			want    int
		}{
			{request: "POST /v1/pets " + newPet, want: 201},
			{request: "POST /__admin/reset []", want: 204},
		} {
			want := r.want
			if tt.refused {
				want = 415
			}
			request := r.request + "\n" + tt.headers
			equal(t, "the status of this request:\n"+request, s.do(t, request).status, want)
		}
		s.expect(t, "POST /__admin/reset\n"+tt.headers, "204")
		s.expect(t, "GET /v1/pets\n"+tt.headers, "200 []")
	}
}

// A client that sends unusual, broken or incomplete HTTP gets a response, or the
// connection is closed.
func TestRawHTTP(t *testing.T) {
	// With a ReadTimeout of an hour, no 408 ends a request.
	s := startService(t, newTestService(t, nil), readTimeout(time.Hour))
	s.reset(t, "") // stops the test if no reset works
	long, spaces := strings.Repeat("x", 300_000), strings.Repeat(" ", maxBody-len(newPet))
	const maxHeaders = 64 << 10
	chunk := func(data string) string { return fmt.Sprintf("%x\n%s\n", len(data), data) }
	const (
		headers = " HTTP/1.1\nHost: petstore\nAuthorization: Bearer " + testKey + "\n"
		get     = "GET /v1/pets" + headers
		post    = "POST /v1/pets" + headers
		chunked = post + "Transfer-Encoding: chunked\n"
		last    = "Connection: close\n\n" // the end of the headers of the last request
		closing = "\nConnection: close"
		badBody = "400 invalid_body: the body is cut short or badly chunked"
	)
	tooLarge := "413 request_entity_too_large: " + bodyTooLarge + closing
	for _, tt := range []struct {
		name       string
		send       string
		closeWrite bool     // whether the client closes its sending side
		want       []string // responses; then the service closes the connection
	}{
		{
			name: "pipelining, and a GET with a body",
			send: get + "\n" + get + "Content-Length: 2\n\n{}" + get + last,
			want: []string{"200 []", "200 []", "200 []" + closing},
		},
		{
			name: "body of 64 KiB",
			send: post + fmt.Sprintf("Content-Length: %d\n", maxBody) + last + newPet + spaces,
			want: []string{created1 + closing},
		},
		{
			name: "chunks of 64 KiB",
			send: chunked + last + chunk(newPet[:5]) + chunk(newPet[5:]+spaces) + chunk(""),
			want: []string{created1 + closing},
		},
		{
			name: "chunks of 64 KiB and a byte",
			send: chunked + "\n" + chunk(newPet+spaces+" "),
			want: []string{tooLarge},
		},
		{
			name:       "bad chunk",
			send:       chunked + "\nx\n",
			closeWrite: true,
			want:       []string{badBody + closing},
		},
		{
			name:       "body cut short",
			send:       post + "Content-Length: 28\n\n" + newPet,
			closeWrite: true,
			want:       []string{badBody},
		},
		{
			name: "body too large",
			send: "PUT /" + headers + "Content-Length: 300000\n\n" + long,
			want: []string{tooLarge},
		},
		{
			name: "headers of 64 KiB",
			send: get + "X: " + long[:maxHeaders-200] + "\n" + last,
			want: []string{"200 []" + closing},
		},
		{
			name: "headers over 64 KiB",
			send: get + "X: " + long[:maxHeaders] + "\n\n",
			want: []string{"431 431 Request Header Fields Too Large" + closing +
				"\nContent-Type: text/plain; charset=utf-8"},
		},
		{
			name: "Expect: 100-continue",
			send: post + "Expect: 100-continue\nContent-Length: 27\n" + last + newPet,
			want: []string{"100", created1 + closing},
		},
		{
			name: "Expect: 100-continue, too large",
			send: post + "Expect: 100-continue" + lengthTooLong + "\n\n",
			want: []string{tooLarge},
		},
		{
			name: "HTTP/1.0",
			send: strings.Replace(get, "HTTP/1.1", "HTTP/1.0", 1) + "\n",
			want: []string{"200 []" + closing},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s.reset(t, "")
			conn := s.sendRaw(t, tt.send)
			if tt.closeWrite {
				conn.CloseWrite()
			}
			for i, want := range append(tt.want, connClosed) {
				conn.read().check(t, fmt.Sprint("response ", i+1), want)
			}
			creates := strings.HasPrefix(tt.want[len(tt.want)-1], "201")
			hasBody := strings.Contains(s.do(t, "GET /__admin/requests").body, `"body":"{\"name`)
			equal(t, "the journal has the body", hasBody, creates)
			equal(t, "a pet was added", s.do(t, "GET /v1/pets").countPets() > 0, creates)
		})
	}
}

// If the headers of a request do not arrive in time, the connection is closed.
// If the body does not, the response is a 408, and the request does not use up a
// fault.
func TestTimeouts(t *testing.T) {
	svc := newTestService(t, nil)
	s := startService(t, svc)
	// Only what never arrives has little time. The headers of the requests below
	// have the usual time, so that they arrive in time on a busy machine, too.
	noHeaders := startService(t, svc, func(srv *http.Server) {
		srv.ReadHeaderTimeout = 100 * time.Millisecond
	})
	noBody := startService(t, svc, readTimeout(100*time.Millisecond))
	const unused = `200 {"code":"503","times":1,"matched":0,"applied":0}`
	s.expect(t, "PUT /__admin/fault?code=503&times=1", unused)
	noHeaders.connect(t).read().check(t, "no headers", connClosed)
	const timeout = "408 request_timeout: the body did not arrive in time\nConnection: close"
	noBody.expect(t, "GET /v1/pets\nContent-Length: 3", timeout)
	noBody.expect(t, "GET /v1/pets/1\nContent-Length: 3", timeout) // without the headers of getPet
	s.expect(t, "GET /__admin/fault", unused)
}

// The delays of a fault may take longer than a request may take to arrive.
func TestDelaysBeyondTimeouts(t *testing.T) {
	t.Parallel()
	svc := newTestService(t, nil)
	s := startService(t, svc)
	short := startService(t, svc, readTimeout(time.Second))
	for _, tt := range []struct{ code, want string }{
		{code: "", want: "200 []"},
		{code: "&code=418", want: teapot},
		{code: "&code=hangup", want: connClosed},
	} {
		s.setFault(t, "delay=1.1&answer-delay=1.1"+tt.code)
		begin := time.Now()
		short.expect(t, "GET /v1/pets", tt.want)
		if took := time.Since(begin); took < 2200*time.Millisecond {
			t.Errorf("with both delays and %q: took %v, want 2.2 s or more", tt.code, took)
		}
	}
}

// A request may take as long as it may to arrive, three of the longest waits
// (-latency, delay and answer-delay) and a drip. The time for the response begins
// with the headers. For the limits themselves, see testDocumentedLimits.
func TestWriteTimeout(t *testing.T) {
	srv := newServer(newTestService(t, nil))
	longest := srv.ReadTimeout + 3*maxWait + wholeDrip
	if srv.WriteTimeout <= longest {
		t.Errorf("got a WriteTimeout of %v, want more than %v", srv.WriteTimeout, longest)
	}
}

// A panic, or an error that is not an Error, is a bug. The response is a 500, and
// only the log has the details.
func TestInternalErrors(t *testing.T) {
	secret := errors.New("open /secret: permission denied")
	const bug500 = "500 internal_server_error: the service has a bug; its log has the details"
	for _, tt := range []struct {
		name string
		do   func(x *exchange) error
		want string
		log  string // a regular expression
	}{
		{
			name: "error",
			do: func(x *exchange) error {
				x.reply(201, "", []byte("half"))
				return secret
			},
			want: bug500,
			log: `^time=\S+ level=ERROR msg=bug error="open /secret: permission denied" ` +
				`method=GET url=/v1/pets/bug\n$`,
		},
		{
			name: "panic",
			do: func(x *exchange) error {
				x.replyJSON(201, []byte("half"))
				panic(secret)
			},
			want: bug500,
			log: `^time=\S+ level=ERROR msg=bug ` +
				`error="panic: open /secret: .*TestInternalErrors.*" ` +
				`method=GET url=/v1/pets/bug\n$`,
		},
		{
			name: "no bug",
			do: func(*exchange) error {
				return fmt.Errorf("pet 3: %w", newError(507, "it is full"))
			},
			want: "507 insufficient_storage: pet 3: it is full",
			log:  "^$",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addRoute(t, route{pattern: "GET /v1/pets/bug", do: tt.do})
			s := startServer(t)
			s.expect(t, "GET /v1/pets/bug", tt.want)
			s.expect(t, "GET /v1/pets", "200 []")
			s.stop()
			matches(t, "stderr", s.stderr.String(), tt.log)
		})
	}
}

// A full store refuses creates with a 507, and refuses a seed. Everything else
// still works. The size of a pet is the length of its JSON and petCost.
func TestFullStore(t *testing.T) {
	almostFull := newStore()
	almostFull.size = maxSize - petCost - int64(len(pet1))
	svc := newTestService(t, almostFull)
	s := startService(t, svc)
	const full = "507 insufficient_storage: the store is full; its limit is 268435456 bytes"
	s.expect(t, `POST /v1/pets {"name":"ab","categoryId":1}`, full)
	for range 2 {
		s.expect(t, "POST /v1/pets "+newPet, created1)
		equal(t, "the size of the full store", svc.current.Load().pets.size, maxSize)
		s.expect(t, "POST /v1/pets "+newPet, full)
		s.expect(t, "GET /v1/pets", list1)
		s.reset(t, "")
	}

	const rex = `{"id":7,"name":"é<","categoryId":-1,"status":"sold"}`
	equal(t, "the size of a store with pet1 and "+rex,
		newTestStore(t, "["+rex+","+pet1+"]").size, int64(len(rex+pet1)+2*petCost))
	seed := almostFull.clone()
	if err := seed.putSeed([]byte(newPet)); err != nil {
		t.Errorf("a pet of a seed that fits: got the error %v, want none", err)
	}
	var e Error
	if err := seed.putSeed([]byte(newPet)); !errors.As(err, &e) || e.Status != 507 {
		t.Errorf("a pet of a seed that does not fit: got the error %v, want a 507", err)
	}
}

// The process: flags, output and its end.

// A wrong command line makes the program print one line on standard error, with
// what would be right, and exit with 1 or 2.
func TestCommandLine(t *testing.T) {
	const (
		hint        = "; -h lists the flags"
		duration    = "it must be a duration from 0s to 30s, such as 150ms or 2s" + hint
		noAddr      = ".*; write -addr 127.0.0.1:8080, or -addr :8080 for all interfaces"
		badAddr     = ".*; -addr must be host:port, .*; -addr 127.0.0.1:0 takes any free port"
		badKey      = "PETSTORE_API_KEY must be 1 to 4096 visible ASCII characters: .*"
		fileOfSeeds = ".*; -seed takes the path of a JSON file with an array of pets"
	)
	other := startServer(t)
	for _, tt := range []struct {
		name string
		key  string
		args string // separated by spaces
		code int
		want string // a regular expression
	}{
		{name: "unknown flag", args: "-x\ny", code: 2, want: ".*-x y" + hint},
		{
			name: "control characters in a flag",
			args: "-stray\u009bK\x7fx",
			code: 2,
			want: ".*-stray K x" + hint,
		},
		{
			name: "argument",
			args: "-stdin stray\r\none",
			code: 2,
			want: "unexpected argument stray one" + hint,
		},
		{
			name: "argument after -version",
			args: "-version stray",
			code: 2,
			want: "unexpected argument stray" + hint,
		},
		{
			name: "-log",
			args: "-log=perhaps",
			code: 2,
			want: ".*perhaps.*: it must be true or false" + hint,
		},
		{name: "negative -latency", args: "-latency -1ns", code: 2, want: ".*-1ns.*" + duration},
		{name: "large -latency", args: "-latency 30.001s", code: 2, want: ".*30.001s.*" + duration},
		{name: "-latency without a unit", args: "-latency 5", code: 2, want: `.*"5".*` + duration},
		{
			name: "no such seed",
			args: "-seed no\n.json",
			code: 1,
			want: ".*no .json: no such file or directory" + fileOfSeeds,
		},
		{
			name: "space in the key",
			args: "-stdin -addr 127.0.0.1:0",
			key:  "k k",
			code: 1,
			want: badKey,
		},
		{
			name: "control character in the key",
			args: "-stdin -addr 127.0.0.1:0",
			key:  "k\x7f",
			code: 1,
			want: badKey,
		},
		{
			name: "long key",
			args: "-stdin -addr 127.0.0.1:0",
			key:  strings.Repeat("k", 4097),
			code: 1,
			want: badKey,
		},
		{name: "empty -addr", args: "-addr ", code: 1, want: noAddr},
		{name: "-addr of a colon", args: "-addr :", code: 1, want: noAddr},
		{name: "-addr without a colon", args: "-addr 8081", code: 1, want: badAddr},
		{
			name: "-addr of another machine",
			args: "-addr 192.0.2.1:80", // an address of no machine (RFC 5737)
			code: 1,
			want: badAddr,
		},
		{
			name: "-addr in use",
			args: "-addr " + other.addr,
			code: 1,
			want: ".*" + other.addr + badAddr,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := command{key: tt.key, args: strings.Split(tt.args, " ")}
			c.expectExit(t, tt.code, "", "petstore: "+tt.want+"\n")
		})
	}
	command{args: []string{"-version"}}.expectExit(t, 0, "1.0.0\n", "")
	for _, latency := range []string{"0s", "30s"} {
		c := command{args: []string{"-latency", latency, "-version"}}
		c.expectExit(t, 0, "1.0.0\n", "")
	}
	r, stdout := io.Pipe()
	r.Close()
	code := command{args: []string{"-version"}}.run(context.Background(), stdout, io.Discard)
	equal(t, "the exit code of -version with a closed standard output", code, 1)
}

// The help lists the flags, with the defaults that do not depend on the run.
func TestHelp(t *testing.T) {
	var stdout, stderr lockedBuffer
	code := command{args: []string{"-h"}}.run(context.Background(), &stdout, &stderr)
	equal(t, "the exit code", code, 0)
	equal(t, "stdout", stdout.String(), "")
	help := stderr.String()
	for _, part := range []string{
		"at /,", "/openapi.json", "PETSTORE_API_KEY", "1 to 4096", "up to 30s",
		"\n  -addr host:port\n", `(default "127.0.0.1:8080")`, "\n  -seed file\n",
		"\n  -latency duration\n", "\n  -stdin\n", "\n  -log\n", "\n  -version\n",
	} {
		if !strings.Contains(help, part) {
			t.Errorf("got a help without %q, want one with it:\n%s", part, help)
		}
	}
	if strings.Contains(help, "(default true)") {
		t.Errorf("got a help with \"(default true)\", want one without it:\n%s", help)
	}

	// At a terminal, where the default of -log is true, the help is the same. What
	// is written to this side of a pseudo-terminal is echoed to it.
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("there is no /dev/ptmx")
	}
	defer terminal.Close()
	parseFlags([]string{"-h"}, terminal)
	atTerminal := within(t, "the help at a terminal", func() string {
		var text string
		in := bufio.NewReader(terminal)
		for !strings.Contains(text, "-version") {
			line, err := in.ReadString('\n')
			if err != nil {
				break
			}
			text += strings.ReplaceAll(line, "\r\n", "\n")
		}
		return text
	})
	if !strings.Contains(atTerminal, "-version") || !strings.HasPrefix(help, atTerminal) {
		t.Errorf("got this help at a terminal:\n%s\nwant the beginning, with -version, of:\n%s",
			atTerminal, help)
	}
}

// The delay of a fault is added to -latency.
func TestLatencyAndDelay(t *testing.T) {
	s := startServer(t, "-latency", "50ms")
	begin := time.Now()
	s.expect(t, "GET /v1/pets\nPrefer: delay=0.05", "200 []\nPreference-Applied: delay=0.05")
	if took := time.Since(begin); took < 100*time.Millisecond {
		t.Errorf("-latency 50ms and delay=0.05 took %v, want 100 ms or more", took)
	}
}

// -latency delays only the requests under /v1 that have the key and a body that
// is accepted. The latency is an hour, so a request that is delayed by mistake
// gets no response in time.
func TestRequestsWithoutLatency(t *testing.T) {
	svc := newTestService(t, nil)
	svc.latency = time.Hour
	s := startService(t, svc)
	for _, tt := range []struct{ request, want string }{
		{request: "GET /healthz", want: `200 {"status":"ok"}`},
		{
			request: "PUT /__admin/fault?code=503",
			want:    `200 {"code":"503","matched":0,"applied":0}`,
		},
		{request: "GET /__admin/fault", want: `200 {"code":"503","matched":0,"applied":0}`},
		{request: "GET /__admin/requests", want: emptyJournal},
		{request: "POST /__admin/reset", want: "204"},
		{request: "GET /v1/pets\nAuthorization: x", want: missingKey},
		{
			request: "POST /v1/pets" + lengthTooLong,
			want:    "413 request_entity_too_large: …\nConnection: close",
		},
		{request: "GET /nothing", want: "404 not_found: …"},
	} {
		s.expect(t, tt.request, tt.want)
	}
	equal(t, "the status of the page", s.do(t, "GET /").status, 200)
	equal(t, "the status of the description", s.do(t, "GET /openapi.json").status, 200)
	equal(t, "the status of a preflight", s.do(t, "OPTIONS /v1/pets").status, 204)
}

// A request gets the fault that stands when it arrives, and not the one that
// stands after -latency. The end of a fault does not end the latency.
func TestFaultIsChosenBeforeLatency(t *testing.T) {
	svc := newTestService(t, nil)
	svc.latency = time.Hour
	s := startService(t, svc)
	s.setFault(t, "code=418")
	conn := s.send(t, "GET /v1/pets")
	s.waitMatched(t, 1)
	s.setFault(t, "code=503")
	s.expect(t, "GET /__admin/requests", emptyJournal)
	s.reset(t, "")
	conn.read().check(t, "GET /v1/pets", teapot)
}

// If the base URL cannot be written to standard output, or if the listener fails,
// the service ends with an error.
func TestServeFails(t *testing.T) {
	ln := listenLocal(t)
	r, stdout := io.Pipe()
	r.Close()
	err := within(t, "the end of serve", func() error { return serve(ln, newTestService(t, nil), stdout) })
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("with a closed standard output: got the error %v, want %v", err, io.ErrClosedPipe)
	}
	ln.Close()
	err = within(t, "the end of serve", func() error {
		return serve(ln, newTestService(t, nil), io.Discard)
	})
	if !errors.Is(err, net.ErrClosed) {
		t.Errorf("with a closed listener: got the error %v, want %v", err, net.ErrClosed)
	}
}

// The service tunes the garbage collector, unless GOGC or GOMEMLIMIT is set. The
// settings are global, so this test must not be parallel.
func TestCollectorSettings(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	stopped, stop := context.WithCancel(context.Background())
	stop()
	const fromRuntime, limitFromRuntime = 77, 900 << 20
	for _, tt := range []struct {
		set     string // the environment variable that is set
		percent int
		limit   int64
	}{
		{set: "", percent: 400, limit: memoryLimit},
		{set: "GOGC", percent: fromRuntime, limit: memoryLimit},
		{set: "GOMEMLIMIT", percent: 400, limit: limitFromRuntime},
	} {
		debug.SetGCPercent(fromRuntime)
		debug.SetMemoryLimit(limitFromRuntime)
		getenv := func(name string) string {
			if name == tt.set {
				return "set"
			}
			return ""
		}
		err := run(stopped, []string{"-addr", "127.0.0.1:0"}, getenv, nil, io.Discard, io.Discard)
		equal(t, "the error", err, nil)
		percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
		equal(t, fmt.Sprintf("the GC percentage with %q set", tt.set), percent, tt.percent)
		equal(t, fmt.Sprintf("the memory limit with %q set", tt.set), limit, tt.limit)
	}
}

// At a signal, the requests in flight are answered. A second signal ends the
// process immediately. SIGINT works even if it was ignored at the start, as it is
// after "&" in a script.
func TestSignals(t *testing.T) {
	for _, tt := range []struct {
		name   string
		signal os.Signal
		twice  bool
	}{
		{name: "SIGTERM", signal: syscall.SIGTERM},
		{name: "SIGINT", signal: os.Interrupt},
		{name: "SIGTERM twice", signal: syscall.SIGTERM, twice: true},
		{name: "SIGINT twice", signal: os.Interrupt, twice: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cmd := petstoreCommand("-log")
			ignoring := []string{"sh", "-c", `trap "" INT; exec "$0" "$@"`}
			cmd.Path, cmd.Args = "/bin/sh", append(ignoring, cmd.Args...)
			p := startProcess(t, cmd)
			conn := p.startCreate(t)
			p.cmd.Process.Signal(tt.signal)
			p.waitClosed(t) // otherwise, the two signals could arrive as one
			if tt.twice {
				p.cmd.Process.Signal(tt.signal)
				p.expectExit(t, "exit status 1")
				return
			}
			conn.write(newPet)
			conn.read().check(t, "the create in flight", created1+"\nConnection: close")
			if t.Failed() {
				return // the log differs in the same way
			}
			p.expectExit(t, "<nil>")
			matches(t, "stderr", p.stderr.String(),
				`(?s)stopping; .*limit=10s\n.*msg=request .*status=201\n$`)
		})
	}
}

// If a signal arrives while the service reads its seed, the service stops as soon
// as it has read it.
func TestStopWhileSeeding(t *testing.T) {
	seed, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	cmd := petstoreCommand("-seed", "/dev/fd/3")
	cmd.ExtraFiles = []*os.File{seed}
	stderr := new(lockedBuffer)
	logIfFailed(t, "stderr of the process", stderr)
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	spaces := strings.Repeat(" ", 1_000_000) // more than a pipe holds, so the service must read
	within(t, "the reading of the seed", func() error {
		_, err := w.WriteString(spaces)
		return err
	})
	cmd.Process.Signal(syscall.SIGTERM)
	w.WriteString("[]")
	w.Close()
	equal(t, "the end of the process", within(t, "the end of the process", cmd.Wait), nil)
}

// Requests in flight have 10 seconds at a stop. Then the connection is closed,
// before the request would get its 408 after 15 seconds.
func TestStopTimeout(t *testing.T) {
	t.Parallel()
	p := startProcess(t, petstoreCommand())
	conn := p.startCreate(t)
	begin := time.Now()
	p.cmd.Process.Signal(syscall.SIGTERM)
	conn.read().check(t, "the create in flight", connClosed)
	if took := time.Since(begin); took < 10*time.Second {
		t.Errorf("the connection was closed after %v, want 10 s or more", took)
	}
	p.expectExit(t, "<nil>")
	matches(t, "stderr", p.stderr.String(),
		`^time=\S+ level=WARN msg="requests in flight get no answer" .*\n$`)
}

// With -stdin, the service stops when its standard input ends. Without it,
// standard input does not matter.
func TestStdin(t *testing.T) {
	stdin, starter := io.Pipe()
	s := command{key: testKey, stdin: stdin, args: []string{"-stdin", "-log"}}.start(t)
	within(t, "the reading of standard input", func() error {
		_, err := io.WriteString(starter, "more\n")
		return err
	})
	s.expect(t, "GET /healthz", `200 {"status":"ok"}`)
	starter.Close()
	s.waitClosed(t)
	s.stop()
	matches(t, "stderr", s.stderr.String(), `(?s)standard input has ended, .*stopping; `)

	ended := command{key: testKey, stdin: strings.NewReader("")}.start(t)
	ended.expect(t, "GET /v1/pets", "200 []")

	quiet := command{
		key:   testKey,
		stdin: strings.NewReader(""),
		args:  []string{"-stdin", "-addr", "127.0.0.1:0"},
	}
	var stderr lockedBuffer
	code := within(t, "the end of the program", func() int {
		return quiet.run(context.Background(), io.Discard, &stderr)
	})
	equal(t, "the exit code", code, 0)
	equal(t, "stderr with -stdin and without -log", stderr.String(), "")
}

// Descriptions, documents and long runs.

// TestRegistries checks that the table of routes, api/openapi.json and TestModel
// have the same operations, and that the schemas have the members of the
// structs.
func TestRegistries(t *testing.T) {
	api, operations := readOpenAPI(t), routedOperations()
	var described, markedDeprecated []string
	for _, pattern := range keys(api.operations) {
		op := api.operations[pattern]
		described = append(described, pattern+" "+op.OperationID)
		for _, p := range op.Parameters {
			if p.In == "query" {
				described = append(described, pattern+"?"+p.Name)
			}
		}
		if op.Deprecated {
			markedDeprecated = append(markedDeprecated, op.OperationID)
		}
	}
	var routed, withHeaders []string
	undescribed := []string{"GET /v1/store/orders", "GET /healthz", "GET /openapi.json", "GET /{$}"}
	for _, rt := range routes {
		if !slices.Contains(undescribed, rt.pattern) {
			routed = append(routed, rt.pattern+" "+rt.operation)
		}
		for _, name := range rt.parameters {
			routed = append(routed, rt.pattern+"?"+name)
		}
		if rt.headers != nil {
			withHeaders = append(withHeaders, rt.operation)
		}
	}
	sameNames(t, openAPIFile, described, theRoutes, routed)
	sameNames(t, "deprecated in "+openAPIFile, markedDeprecated,
		"the routes with headers", withHeaders)
	sameNames(t, "faultKinds", keys(faultKinds), "faultCodes", faultCodes)
	sameNames(t, "newPetMembers", newPetMembers, "the struct NewPet", members(NewPet{}))
	sameNames(t, "faultOperations", faultOperations, theRoutes, operations)
	random, given := rand.New(rand.NewSource(1)), map[string]any{}
	for range 100 {
		if err := json.Unmarshal(encodeJSON(randomPet(random)), &given); err != nil {
			t.Fatal(err)
		}
	}
	sameNames(t, "100 pets of randomPet", keys(given), "the struct NewPet", members(NewPet{}))
	sameNames(t, "modelSteps", keys(modelSteps), theRoutes, operations)

	operation := api.queryParameters("PUT /__admin/fault")["operation"].Schema
	sameNames(t, "the parameter operation in "+openAPIFile, api.resolve(operation).Enum,
		theRoutes, operations)
	sameNames(t, "PetStatus in "+openAPIFile, api.resolve(api.schemas["PetStatus"]).Enum,
		"the list of statuses in the tests", statuses[1:])
	for _, code := range append([]string{"400", "599", "503,lost,rst"}, faultCodes...) {
		if err := api.validate("the code", api.schemas["FaultCode"], code); err != nil {
			t.Errorf("the schema FaultCode does not allow %q: %v", code, err)
		}
	}
	for _, code := range []string{"", "399", "600", "x", "503,", "503,x"} {
		if api.validate("the code", api.schemas["FaultCode"], code) == nil {
			t.Errorf("the schema FaultCode allows %q", code)
		}
	}
	for _, tt := range []struct {
		schema string
		value  any
	}{
		{schema: "NewPet", value: NewPet{}},
		{schema: "Pet", value: Pet{}},
		{schema: "Error", value: Error{}},
		{schema: "Fault", value: standingFaultState{}},
		{schema: "JournalEntry", value: entry{}},
	} {
		properties := keys(api.resolve(api.schemas[tt.schema]).Properties)
		structName := fmt.Sprintf("%T", tt.value)
		sameNames(t, "the schema "+tt.schema, properties, structName, members(tt.value))
	}
}

// TestNewPetSchema checks that a create knows each property that
// api/openapi.json gives NewPet, and answers with it, even if its value is 0,
// false or empty. It also checks that the values have the types of the schemas.
func TestNewPetSchema(t *testing.T) {
	api := readOpenAPI(t)
	s := startServer(t)
	sent := api.newPet(t)
	zero := maps.Clone(sent)
	properties := api.resolve(api.schemas["NewPet"]).Properties
	for name, value := range sent {
		if api.resolve(properties[name]).Enum == nil {
			zero[name] = reflect.Zero(reflect.TypeOf(value)).Interface()
		}
	}
	for _, pet := range []map[string]any{sent, zero} {
		request := "POST /v1/pets " + string(encodeJSON(pet))
		r := s.do(t, request)
		if r.status != 201 {
			t.Fatalf("%s:\n got %s\nwant 201, as the value of each property is of its type in %s",
				request, r, openAPIFile)
		}
		api.checkBody(t, api.operations["POST /v1/pets"].Responses["201"], request, r)
		returned := jsonObject(t, request, r)
		for _, name := range keys(pet) {
			equal(t, name+" in the answer to "+request, returned[name], pet[name])
		}
	}
}

// TestOpenAPI checks that each response of api/openapi.json is the response to
// some request, and that its body is as described. In a row, "getPet 404" is the
// response 404 of the operation getPet.
func TestOpenAPI(t *testing.T) {
	api := readOpenAPI(t)
	s := startService(t, newTestService(t, nil))
	impatient := startService(t, newTestService(t, nil), readTimeout(100*time.Millisecond))

	const (
		allParameters = "code=503&delay=0&answer-delay=0&retry-after=7" +
			"&operation=createPet&skip=99&times=2"
		noKey      = "\nAuthorization: x"
		wrongType  = "\nContent-Type: x"
		incomplete = "\nContent-Length: 9" // no body follows
		simulate   = "\nPrefer: retry-after=7, code="
	)
	type row struct {
		response string
		request  string
		server   *testServer // s, unless there is another one
		want     int         // the status, unless it is that of the response
	}
	succeeding := []row{
		{response: "listPets 200", request: "GET /v1/pets"},
		{response: "createPet 201", request: "POST /v1/pets " + newPet},
		{response: "getPet 200", request: "GET /v1/pets/1"},
		{response: "reset 204", request: "POST /__admin/reset [" + newPet + "]"},
		{response: "showFault 200", request: "GET /__admin/fault"},
		{response: "setFault 200", request: "PUT /__admin/fault?" + allParameters},
		{response: "clearFault 204", request: "DELETE /__admin/fault"},
		{response: "showJournal 200", request: "GET /__admin/requests"},
		{response: "clearJournal 204", request: "DELETE /__admin/requests"},
	}
	failing := []row{
		{response: "createPet 400", request: "POST /v1/pets {}"},
		{response: "getPet 404", request: "GET /v1/pets/5"},
		{response: "reset 400", request: "POST /__admin/reset {}"},
		{response: "reset 413", request: "POST /__admin/reset" + lengthTooLong},
		{response: "reset 415", request: "POST /__admin/reset []" + wrongType},
		{response: "setFault 400", request: "PUT /__admin/fault?code=x"},
		{response: "showJournal 400", request: "GET /__admin/requests?total=x"},

		{response: "listPets 401", request: "GET /v1/pets" + noKey},
		{response: "createPet 401", request: "POST /v1/pets" + noKey},
		{response: "getPet 401", request: "GET /v1/pets/1" + noKey},
		{response: "reset 401", request: "POST /__admin/reset" + noKey},
		{response: "showFault 401", request: "GET /__admin/fault" + noKey},
		{response: "setFault 401", request: "PUT /__admin/fault" + noKey},
		{response: "clearFault 401", request: "DELETE /__admin/fault" + noKey},
		{response: "showJournal 401", request: "GET /__admin/requests" + noKey},
		{response: "clearJournal 401", request: "DELETE /__admin/requests" + noKey},

		{
			response: "reset default",
			request:  "POST /__admin/reset" + incomplete,
			server:   impatient,
			want:     408,
		},
		{response: "showFault default", request: "GET /__admin/fault?x", want: 400},
		{response: "setFault default", request: "PUT /__admin/fault" + lengthTooLong, want: 413},
		{response: "clearFault default", request: "DELETE /__admin/fault?x", want: 400},
		{response: "showJournal default", request: "GET /__admin/requests" + lengthTooLong, want: 413},
		{response: "clearJournal default", request: "DELETE /__admin/requests?x", want: 400},

		{response: "listPets 401", request: "GET /v1/pets" + simulate + "401"},
		{response: "createPet 400", request: "POST /v1/pets" + simulate + "400"},
		{response: "createPet 401", request: "POST /v1/pets" + simulate + "401"},
		{response: "getPet 401", request: "GET /v1/pets/1" + simulate + "401"},
		{response: "getPet 404", request: "GET /v1/pets/1" + simulate + "404"},
	}

	described := map[string]openAPIBody{} // by response
	for _, op := range api.operations {
		for status, body := range op.Responses {
			described[op.OperationID+" "+status] = body
		}
	}
	var responses []string
	for _, tt := range slices.Concat(succeeding, failing) {
		responses = append(responses, tt.response)
		s.reset(t, "["+pet1+","+newPet+"]")
		s.setFault(t, allParameters)
		s.do(t, `POST /v1/pets?x {"id":1}`+"\nPrefer: delay=0") // an entry with all members

		_, status, _ := strings.Cut(tt.response, " ")
		resp := cmp.Or(tt.server, s).do(t, tt.request)
		if want := cmp.Or(tt.want, statusIn(status)); resp.status != want {
			t.Errorf("%s, request:\n%s\n got %s\nwant %d",
				tt.response, abridge(tt.request), abridge(resp), want)
			continue
		}
		api.checkBody(t, described[tt.response], tt.request, resp)
	}
	sameNames(t, "the list of responses in "+openAPIFile, keys(described), "TestOpenAPI", responses)
}

// The documents that TestDocuments compares with the service.
const (
	readmeFile    = "README.md"
	contractFile  = "api/contract.md"
	referenceFile = "api/reference.md"
	openAPIFile   = "api/openapi.json"
)

// TestDocuments compares the names, the numbers and the tables of the documents
// with what the service does. It does not compare the wording of sentences.
func TestDocuments(t *testing.T) {
	t.Run("versions and dates", testDocumentedVersions)
	t.Run("operations", testDocumentedOperations)
	t.Run("parameters of listPets", testDocumentedListParameters)
	t.Run("members", testDocumentedMembers)
	t.Run("NewPet", testDocumentedNewPet)
	t.Run("seed", testDocumentedSeed)
	t.Run("fault codes", testDocumentedFaultCodes)
	t.Run("fault effects", testDocumentedFaultEffects)
	t.Run("fault parameters", testDocumentedFaultParameters)
	t.Run("Retry-After", testDocumentedRetryAfter)
	t.Run("faults on the page", testPageFaults)
	t.Run("control", testDocumentedControl)
	t.Run("journal", testDocumentedJournal)
	t.Run("errors", testDocumentedErrors)
	t.Run("flags", testDocumentedFlags)
	t.Run("exit codes", testDocumentedExitCodes)
	t.Run("limits", testDocumentedLimits)
	t.Run("gaps", testDocumentedGaps)
	t.Run("examples of the OpenAPI document", testOpenAPIExamples)
}

// testDocumentedVersions checks the version of the interface and the dates of
// getPet. Documents state them in sentences, so this only checks that each has
// them as often as it should, in whatever words. A stale one is one too few.
func testDocumentedVersions(t *testing.T) {
	var stdout lockedBuffer
	command{args: []string{"-version"}}.run(context.Background(), &stdout, io.Discard)
	answered := strings.TrimSpace(stdout.String())
	header := startServer(t).do(t, "GET /v1/pets/1").header
	sunset, err := http.ParseTime(header.Get("Sunset"))
	if err != nil {
		t.Fatal(err)
	}
	removal := sunset.Format("2 January 2006")
	for _, tt := range []struct {
		file, text string
		places     int // that state it
	}{
		{file: readmeFile, text: answered, places: 1},
		{file: readmeFile, text: removal, places: 1},
		{file: contractFile, text: answered, places: 2}, // the title and section 9
		{file: contractFile, text: removal, places: 2},  // sections 4.3 and 9
		{file: openAPIFile, text: `"` + answered + `"`, places: 1},
		{file: openAPIFile, text: removal, places: 1},
		{file: openAPIFile, text: header.Get("Deprecation"), places: 1},
		{file: openAPIFile, text: header.Get("Sunset"), places: 1},
	} {
		text := strings.Join(strings.Fields(readFile(t, tt.file)), " ") // without line breaks
		if n := strings.Count(text, tt.text); n < tt.places {
			t.Errorf("%s has %q %d times, want %d", tt.file, tt.text, n, tt.places)
		}
	}
}

// documentedOperations are the operations of the contract.
var documentedOperations = []struct {
	name     string
	pattern  string   // of its route
	heading  string   // of its section in the contract
	succeeds string   // a request whose answer has all headers
	requests []string // get the other answers in the section
}{
	{
		name:     "listPets",
		pattern:  "GET /v1/pets",
		heading:  "### 4.1 listPets",
		succeeds: "GET /v1/pets?limit=1",
		requests: []string{"GET /v1/pets\nAuthorization: Bearer wrong"},
	},
	{
		name:     "createPet",
		pattern:  "POST /v1/pets",
		heading:  "### 4.2 createPet",
		succeeds: `POST /v1/pets {"name":"Rex","categoryId":7}`,
		requests: []string{"POST /v1/pets {}", "POST /v1/pets {}\nAuthorization: Bearer wrong"},
	},
	{
		name:     "getPet",
		pattern:  "GET /v1/pets/{petId}",
		heading:  "### 4.3 getPet, deprecated",
		succeeds: "GET /v1/pets/1",
		requests: []string{"GET /v1/pets/9", "GET /v1/pets/1\nAuthorization: Bearer wrong"},
	},
}

// testDocumentedOperations checks the requests, the statuses, the bodies and the
// headers that README, the contract and openapi.json give each operation. For the
// names in openapi.json, see TestRegistries.
func testDocumentedOperations(t *testing.T) {
	api := readOpenAPI(t)
	s := startServer(t)
	var inTest, inReadme []string
	for _, row := range readmeOperations(t) {
		name, _, _ := strings.Cut(row["operation"], ",")
		inReadme = append(inReadme, name)
	}
	agree(t, "the operations", readmeFile, inReadme, routedOperations())
	operationsOf := map[string][]string{} // the operations with each error
	for _, o := range documentedOperations {
		inTest = append(inTest, o.name)
		s.reset(t, `[{"name":"Rex","categoryId":7},{"name":"Tom","categoryId":7}]`)
		first := s.do(t, o.succeeds)
		isDeprecated := first.header.Get("Deprecation") != ""
		answered := map[string]string{strconv.Itoa(first.status): kindOf(first.body)}
		for _, request := range o.requests {
			r := s.do(t, request)
			status := strconv.Itoa(r.status)
			answered[status] = kindOf(r.body)
			operationsOf[status] = append(operationsOf[status], o.name)
		}

		documented := map[string]string{}
		for _, row := range markdownTable(t, contractFile, o.heading, "status", "body") {
			documented[row["status"]] = row["body"]
		}
		agree(t, "the statuses and the bodies of "+o.name, contractFile, documented, answered)
		_, section, _ := strings.Cut(readFile(t, contractFile), "\n"+o.heading+"\n")
		inContract := strings.Replace(o.pattern, " /v1", " ", 1)
		agree(t, "the request of "+o.name, contractFile, firstCode(t, section), inContract)
		agree(t, o.name+" is deprecated", contractFile,
			strings.Contains(o.heading, "deprecated"), isDeprecated)
		agree(t, "the statuses of "+o.name, openAPIFile,
			keys(api.operations[o.pattern].Responses), keys(answered))

		for _, p := range api.operations[o.pattern].Parameters {
			if p.Name == "after" {
				continue // the contract does not have it
			}
			column := p.In + " parameter"
			types := map[string]string{}
			for _, row := range markdownTable(t, contractFile, o.heading, column, "type") {
				types[firstCode(t, row[column])] = row["type"]
			}
			agree(t, "the type of "+p.Name, contractFile, types[p.Name], p.Schema.typeName())
		}

		row := readmeOperation(t, o.name)
		agree(t, "the request of "+o.name, readmeFile, firstCode(t, row["request"]), o.pattern)
		agree(t, "the status of "+o.succeeds, readmeFile,
			firstNumber(t, row["answer"]), int64(first.status))
		agree(t, o.name+" is deprecated", readmeFile,
			strings.Contains(row["operation"], "deprecated"), isDeprecated)
		for _, name := range codeSpans(row["answer"]) {
			if first.header.Get(name) == "" {
				t.Errorf("%s:\n%s has the header %s, the service does not send it",
					o.succeeds, readmeFile, name)
			}
		}
	}
	equal(t, "the names in documentedOperations", inTest, routedOperations())

	documented := map[string][]string{}
	for _, row := range markdownTable(t, contractFile, "## 7. Errors", "status", "operations") {
		documented[row["status"]] = strings.Split(row["operations"], ", ")
	}
	agree(t, "the operations with each error", contractFile, documented, operationsOf)
}

// testDocumentedListParameters checks the bounds, the default and the choices of
// the parameters of listPets. TestParameters compares those of openapi.json with
// the service.
func testDocumentedListParameters(t *testing.T) {
	api := readOpenAPI(t)
	limit := api.resolve(api.queryParameters("GET /v1/pets")["limit"].Schema)
	agree(t, "the bounds of limit", openAPIFile, bounds(limit), []int64{1, maxLimit})
	agree(t, "the default of limit", openAPIFile, limit.Default, any(float64(defaultLimit)))
	agree(t, "maxItems of Pets", openAPIFile, api.resolve(api.schemas["Pets"]).MaxItems, maxLimit)

	_, inReadme, _ := strings.Cut(readmeOperation(t, "listPets")["request"], "`limit`")
	numbers := []int64{1, maxLimit, defaultLimit}
	agree(t, "the bounds and the default of limit", readmeFile, numbersIn(inReadme), numbers)

	documented := map[string]string{} // the bounds of each parameter
	for _, row := range markdownTable(t, contractFile, "### 4.1 listPets",
		"query parameter", "required", "bounds") {
		name := firstCode(t, row["query parameter"])
		documented[name] = row["bounds"]
		agree(t, name+" is required", contractFile, row["required"], "no")
	}
	agree(t, "the parameters of listPets", contractFile,
		keys(documented), []string{"limit", "status"})
	agree(t, "the bounds and the default of limit", contractFile,
		numbersIn(documented["limit"]), numbers)
	agree(t, "the values of status", contractFile, codeSpans(documented["status"]), statuses[1:])

	inSection8 := map[string]string{}
	for _, row := range markdownTable(t, contractFile, "## 8. Limits", "limit", "value") {
		inSection8[row["limit"]] = row["value"]
	}
	agree(t, "the limits in section 8", contractFile, inSection8, map[string]string{
		"smallest page":          "1",
		"largest page":           fmt.Sprint(maxLimit),
		"page without a `limit`": fmt.Sprint(defaultLimit),
	})
}

// testDocumentedMembers checks that the contract and openapi.json give the same
// members to a Pet and an Error. For those of the service, see TestRegistries.
func testDocumentedMembers(t *testing.T) {
	api := readOpenAPI(t)
	for name, rows := range map[string][]tableRow{
		"Pet":   slices.Concat(contractMembers(t, "NewPet"), contractMembers(t, "Pet")),
		"Error": contractMembers(t, "Error"),
	} {
		described := api.resolve(api.schemas[name])
		sameNames(t, name+" in "+contractFile, namesIn(t, rows, "member"),
			name+" in "+openAPIFile, keys(described.Properties))
		for _, row := range rows {
			member := firstCode(t, row["member"])
			isRequired := slices.Contains(described.Required, member)
			agree(t, member+" is required", contractFile, row["required"] == "yes", isRequired)
			property := cmp.Or(described.Properties[member], &schema{})
			agree(t, "the type of "+member, contractFile, row["type"], property.typeName())
		}
	}

	_, petStatus, _ := strings.Cut(readFile(t, contractFile), "**PetStatus**")
	petStatus, _, _ = strings.Cut(petStatus, "\n\n")
	agree(t, "the values of PetStatus", contractFile, codeSpans(petStatus), statuses[1:])
}

// testDocumentedNewPet checks that a create needs what the contract says that it
// needs, and that README names the same members.
func testDocumentedNewPet(t *testing.T) {
	api := readOpenAPI(t)
	s := startServer(t)
	wrongValues := map[string][]any{ // values that each type does not have
		"string":         {5, nil},
		"integer, int64": {"7", 0.5, json.Number("9223372036854775808")},
		"boolean":        {"true", 1},
		"PetStatus":      {"lost", 1},
	}
	var required []string
	for _, row := range contractMembers(t, "NewPet") {
		name, kind := firstCode(t, row["member"]), row["type"]
		pet := api.newPet(t)
		if wrongValues[kind] == nil {
			t.Errorf("%s: got the type %q of %s, want one of %q",
				contractFile, kind, name, keys(wrongValues))
		}
		for _, value := range wrongValues[kind] {
			pet[name] = value
			compareStatus(t, s, contractFile, "POST /v1/pets "+string(encodeJSON(pet)), 400)
		}
		delete(pet, name)
		documented := int64(201)
		if row["required"] == "yes" {
			documented = 400
			required = append(required, name)
		}
		compareStatus(t, s, contractFile, "POST /v1/pets "+string(encodeJSON(pet)), documented)
	}

	_, inReadme, _ := strings.Cut(readmeOperation(t, "createPet")["request"], " with ")
	sameNames(t, "createPet in "+readmeFile, codeSpans(inReadme),
		"the struct NewPet", members(NewPet{}))
	inReadme, _, _ = strings.Cut(inReadme, "optionally")
	sameNames(t, "required of createPet in "+readmeFile, codeSpans(inReadme),
		contractFile, required)
}

// testDocumentedSeed checks the largest id of a pet in a seed. A schema has it as
// a float64, so this compares the digits. For the service, see TestReadSeed.
func testDocumentedSeed(t *testing.T) {
	largest := strconv.FormatInt(maxSeedID, 10)
	for _, file := range []string{openAPIFile, referenceFile} {
		if !strings.Contains(readFile(t, file), largest) {
			t.Errorf("%s lacks %s, the largest id of a seed", file, largest)
		}
	}
}

// testDocumentedFaultCodes checks that README and reference.md list the codes of a
// fault, and that openapi.json has the statuses. For its FaultCode, see
// TestRegistries.
func testDocumentedFaultCodes(t *testing.T) {
	var inReadme string // all codes, such as: 400 to 599, `hangup`, …
	for _, row := range readmeFaults(t) {
		inReadme += row["code"] + ", "
	}
	for file, text := range map[string]string{
		readmeFile:    inReadme,
		referenceFile: faultParameter(t, "code")["value"],
	} {
		agree(t, "the statuses of a fault", file, numbersIn(text), []int64{400, 599})
		agree(t, "the other codes of a fault", file, codeSpans(text), faultCodes)
	}
	api := readOpenAPI(t)
	ofError := api.resolve(api.schemas["Error"]).Properties["status"]
	agree(t, "the statuses of an Error", openAPIFile, bounds(ofError), []int64{400, 599})
	ofEntry := api.resolve(api.schemas["JournalEntry"]).Properties["status"]
	agree(t, "the statuses of a JournalEntry", openAPIFile, bounds(ofEntry), []int64{0, 599})
}

// testDocumentedFaultEffects checks what README says that each code of a fault
// does.
func testDocumentedFaultEffects(t *testing.T) {
	s := startServer(t)
	for _, row := range readmeFaults(t) {
		codes := codeSpans(row["code"])
		for _, status := range numbersIn(row["code"]) {
			codes = append(codes, fmt.Sprint(status))
		}
		for _, code := range codes {
			s.reset(t, "[]")
			s.setFault(t, "code="+code)
			c := s.send(t, "POST /v1/pets "+newPet)
			s.journal(t, 1)
			s.expect(t, "DELETE /__admin/fault", "204") // ends a stall and a drip
			r := c.read()

			performed := "no"
			if s.do(t, "GET /v1/pets").countPets() > 0 {
				performed = "yes"
			}
			agree(t, "operation performed with the code "+code, readmeFile,
				row["operation performed?"], performed)
			received := row["what the client gets"]
			for _, status := range regexp.MustCompile(`\b[1-5]\d\d\b`).FindAllString(received, -1) {
				agree(t, "the status with the code "+code, readmeFile, status, fmt.Sprint(r.status))
			}
			if code == "stall" {
				agree(t, "the seconds of a stall", readmeFile,
					firstNumber(t, received), int64(maxWait.Seconds()))
			}
		}
	}
}

// testDocumentedFaultParameters checks the names of the parameters of a standing
// fault, and their bounds. TestParameters compares the bounds of openapi.json with
// the service. For code, see testDocumentedFaultCodes.
func testDocumentedFaultParameters(t *testing.T) {
	parameters := readOpenAPI(t).queryParameters("PUT /__admin/fault")
	rows := faultParameterRows(t)
	sameNames(t, "section Faults of "+referenceFile, keys(rows),
		openAPIFile, keys(parameters))
	for _, name := range keys(rows) {
		value := rows[name]["value"]
		switch name {
		case "code":
		case "operation":
			sameNames(t, "the parameter operation in "+referenceFile, codeSpans(value),
				theRoutes, routedOperations())
		default:
			agree(t, "the bounds of "+name, referenceFile,
				numbersIn(value), bounds(parameters[name].Schema))
		}
	}
}

// testDocumentedRetryAfter checks the default of retry-after, and the statuses
// that have it.
func testDocumentedRetryAfter(t *testing.T) {
	s := startServer(t)
	var answered []int64
	for status := int64(400); status <= 599; status++ {
		r := s.do(t, fmt.Sprintf("GET /v1/pets\nPrefer: code=%d", status))
		value := r.header.Get("Retry-After")
		if value == "" {
			continue
		}
		if answered == nil {
			answered = numbersIn(value)
		}
		answered = append(answered, status)
	}
	const what = "the default of retry-after, and the statuses that have it"
	effect := faultParameter(t, "retry-after")["effect"]
	agree(t, what, referenceFile, numbersIn(effect), answered)
	described := readOpenAPI(t).queryParameters("PUT /__admin/fault")["retry-after"]
	agree(t, what, openAPIFile, numbersIn(described.Description), answered)
}

// testPageFaults checks that the page has a field for each parameter of a fault,
// and its choices.
func testPageFaults(t *testing.T) {
	page := readFile(t, "api/index.html")
	rows := faultParameterRows(t)
	for _, name := range keys(rows) {
		if !strings.Contains(page, `name="`+name+`"`) {
			t.Errorf("api/index.html lacks a field for %s", name)
		}
		for _, choice := range codeSpans(rows[name]["value"]) {
			if !strings.Contains(page, "<option>"+choice) {
				t.Errorf("api/index.html lacks the option %s", choice)
			}
		}
	}
}

// testDocumentedControl checks the answers of the routes outside of /v1, and
// whether they need the key.
func testDocumentedControl(t *testing.T) {
	s := startServer(t)
	rows := markdownTable(t, referenceFile, "## Control", "request", "key", "answer")
	for _, row := range rows {
		request, answer := firstCode(t, row["request"]), firstNumber(t, row["answer"])
		withoutKey := answer
		if row["key"] == "yes" {
			withoutKey = 401
		}
		if request == "PUT /__admin/fault" {
			request += "?delay=0"
		}
		compareStatus(t, s, referenceFile, request, answer)
		compareStatus(t, s, referenceFile, request+"\nAuthorization: none", withoutKey)
	}

	var routed []string
	for _, rt := range routes {
		if !strings.Contains(rt.pattern, " /v1") {
			routed = append(routed, strings.TrimSuffix(rt.pattern, "{$}"))
		}
	}
	sameNames(t, "section Control of "+referenceFile, namesIn(t, rows, "request"),
		theRoutes, routed)
}

// testDocumentedJournal checks the members of an entry of the journal.
func testDocumentedJournal(t *testing.T) {
	api := readOpenAPI(t)
	s := startServer(t)
	// The first entry has the members that are always there, and the second has
	// all.
	s.do(t, "GET /v1/pets")
	s.do(t, `POST /v1/pets {"Name":"Rex"}`+"\nPrefer: delay=0")
	const request = "GET /__admin/requests"
	r := s.do(t, request)
	var answered struct {
		Requests []map[string]any
	}
	err := json.Unmarshal([]byte(r.body), &answered)
	if err != nil || len(answered.Requests) != 2 {
		t.Fatalf("%s:\n got %s\nwant two requests", request, r)
	}
	least, most := keys(answered.Requests[0]), keys(answered.Requests[1])

	// The entry that README.md shows is not refused, and no fault is applied.
	blocks := codeBlocks(readFile(t, readmeFile), "json")
	if len(blocks) != 1 {
		t.Fatalf("%s: got %d code blocks of JSON, want 1: an entry of the journal",
			readmeFile, len(blocks))
	}
	var shown map[string]any
	if err := json.Unmarshal([]byte(blocks[0]), &shown); err != nil {
		t.Fatalf("%s, the entry of the journal: %v", readmeFile, err)
	}
	sameNames(t, "the entry of the journal in "+readmeFile, keys(shown),
		"the journal", append(slices.Clone(least), "ignored"))

	rows := markdownTable(t, referenceFile, "## Journal", "member", "value")
	sameNames(t, "section Journal of "+referenceFile, namesIn(t, rows, "member"),
		"the journal", most)
	for _, row := range rows {
		if row["member"] == "`answer`" {
			agree(t, "the bytes of an answer in the journal", referenceFile,
				firstNumber(t, row["value"]), maxAnswer)
		}
	}
	described := api.resolve(api.schemas["JournalEntry"])
	sameNames(t, "required of JournalEntry in "+openAPIFile, described.Required,
		"each entry of the journal", least)
	requests := api.resolve(api.resolve(api.schemas["Journal"]).Properties["requests"])
	agree(t, "maxItems of the requests of Journal", openAPIFile, requests.MaxItems, maxJournal)
}

// testDocumentedErrors checks the statuses and the codes of the errors.
func testDocumentedErrors(t *testing.T) {
	s := startServer(t)
	full := newStore()
	full.size = maxSize
	broken := newTestService(t, nil)
	broken.current.Store(&world{})                              // without a store
	broken.log = slog.New(slog.NewTextHandler(io.Discard, nil)) // the bug is on purpose
	impatient := startService(t, newTestService(t, nil), readTimeout(100*time.Millisecond))

	var answered []string // each a status and a code
	for _, r := range []response{
		s.do(t, "GET /v1/pets?limit=0"),
		s.do(t, "POST /v1/pets {}"),
		s.do(t, "GET /v1/pets\nAuthorization: none"),
		s.do(t, "GET /v1/pets\nAuthorization: Bearer wrong"),
		s.do(t, "GET /v1/pets/1"),
		s.do(t, "PUT /v1/pets"),
		impatient.do(t, "POST /v1/pets\nContent-Length: 9"),
		s.do(t, "POST /v1/pets"+lengthTooLong),
		s.do(t, "POST /v1/pets {}\nContent-Type: text/plain"),
		startService(t, broken).do(t, "GET /v1/pets"),
		s.do(t, "GET /v1/store/orders"),
		startService(t, newTestService(t, full)).do(t, "POST /v1/pets "+newPet),
	} {
		answered = append(answered, fmt.Sprint(r.status, " ", r.error().Code))
	}
	var documented, statuses []string
	for _, row := range markdownTable(t, referenceFile, "## Errors", "status", "code") {
		documented = append(documented, row["status"]+" "+firstCode(t, row["code"]))
		statuses = append(statuses, row["status"])
	}
	sameNames(t, "section Errors of "+referenceFile, documented, "the service", answered)

	// openapi.json describes the errors that the operations of the contract do not
	// have in its introduction.
	api := readOpenAPI(t)
	for _, status := range statuses {
		inOperation := false
		for _, o := range documentedOperations {
			_, found := api.operations[o.pattern].Responses[status]
			inOperation = inOperation || found
		}
		if !inOperation && !strings.Contains(api.introduction, status) {
			t.Errorf("%s has the status %s neither at an operation nor in its introduction",
				openAPIFile, status)
		}
	}
}

// testDocumentedFlags checks the flags and their defaults.
func testDocumentedFlags(t *testing.T) {
	var help lockedBuffer
	command{args: []string{"-h"}}.run(context.Background(), io.Discard, &help)
	const none = "none" // for a default that -h does not show: a zero, or an empty text
	defaults := map[string]string{"-h": none}
	shown := regexp.MustCompile(`(?m)^  (-.+)\n.*?(?:\(default "(.*)"\))?$`)
	for _, match := range shown.FindAllStringSubmatch(help.String(), -1) {
		defaults[match[1]] = cmp.Or(match[2], none)
	}

	rows := markdownTable(t, referenceFile, "## Flags", "flag", "default")
	sameNames(t, "section Flags of "+referenceFile, namesIn(t, rows, "flag"), "-h", keys(defaults))
	for _, row := range rows {
		documented := none
		if spans := codeSpans(row["default"]); len(spans) > 0 && spans[0] != "0s" {
			documented = spans[0]
		}
		name := firstCode(t, row["flag"])
		agree(t, "the default of "+name, referenceFile, documented, defaults[name])
	}
}

// testDocumentedExitCodes runs the examples of each exit code.
func testDocumentedExitCodes(t *testing.T) {
	var codes []string
	for _, row := range markdownTable(t, referenceFile, "## Exit codes", "exit code", "examples") {
		codes = append(codes, row["exit code"])
		for _, example := range codeSpans(row["examples"]) {
			var key string
			environment, line, found := strings.Cut(example, " petstore")
			if found {
				key = strings.Trim(strings.TrimPrefix(environment, "PETSTORE_API_KEY="), "'")
			} else {
				line = strings.TrimPrefix(example, "petstore")
			}
			c := command{key: key, args: strings.Fields(line)}
			ctx, cancel := context.WithCancel(context.Background())
			cancel() // should the service start, it stops at once
			code := within(t, "the end of "+example, func() int {
				return c.run(ctx, io.Discard, io.Discard)
			})
			agree(t, "the exit code of "+example, referenceFile,
				row["exit code"], strconv.Itoa(code))
		}
	}
	agree(t, "the exit codes", referenceFile, codes, []string{"0", "1", "2"})
}

// testDocumentedLimits checks the limits, in the units of the document.
func testDocumentedLimits(t *testing.T) {
	srv := newServer(newTestService(t, nil))
	const kib, mib = float64(1 << 10), float64(1 << 20)
	headers := float64(srv.MaxHeaderBytes + 4096) // net/http adds 4096
	limits := map[string][]float64{
		"`limit` of listPets":                {1, maxLimit, defaultLimit},
		"request body":                       {maxBody / kib},
		"request headers":                    {headers / kib},
		"file of `-seed`":                    {maxSeed / mib},
		"store":                              {maxSize / mib, petCost},
		"journal":                            {maxJournal, maxJournalSize / mib},
		"`answer` in the journal":            {maxAnswer},
		"`-latency` and each wait":           {maxWait.Seconds()},
		"`retry-after`":                      {maxRetryAfter},
		"drip":                               {dripPieces, dripInterval.Seconds()},
		"key":                                {maxKey},
		"time for request headers to arrive": {srv.ReadHeaderTimeout.Seconds()},
		"time for a whole request to arrive": {srv.ReadTimeout.Seconds()},
		"time for an answer to be sent":      {srv.WriteTimeout.Minutes()},
		"idle connection":                    {srv.IdleTimeout.Minutes()},
		"time for requests in flight while stopping": {stopTimeout.Seconds()},
		"`GOGC`, `GOMEMLIMIT`":                       {gcPercent, memoryLimit / mib},
	}
	documented := map[string][]float64{}
	for _, row := range markdownTable(t, referenceFile, "## Limits", "limit", "value") {
		for _, number := range numbersIn(row["value"]) {
			documented[row["limit"]] = append(documented[row["limit"]], float64(number))
		}
	}
	sameNames(t, "section Limits of "+referenceFile, keys(documented),
		"testDocumentedLimits", keys(limits))
	for _, name := range keys(documented) {
		agree(t, "the limit "+name, referenceFile, documented[name], limits[name])
	}
}

// testDocumentedGaps checks the statuses of requests that the contract does not
// describe.
func testDocumentedGaps(t *testing.T) {
	s := startServer(t)
	s.reset(t, "["+newPet+"]")
	const heading = "## Where the contract is silent"
	for _, row := range markdownTable(t, referenceFile, heading, "GET", "answer") {
		for _, target := range codeSpans(row["GET"]) {
			compareStatus(t, s, referenceFile, "GET "+target, firstNumber(t, row["answer"]))
		}
	}
}

// testOpenAPIExamples checks that the service accepts the examples of requests
// in api/openapi.json, and answers with the examples of responses.
func testOpenAPIExamples(t *testing.T) {
	api := readOpenAPI(t)
	s := startServer(t)
	impatient := startService(t, newTestService(t, nil), readTimeout(100*time.Millisecond))

	// The example of the journal has a request. Sending it should bring about this
	// journal.
	journalExample := api.operations["GET /__admin/requests"].Responses["200"].example()
	var recorded struct{ Requests []entry }
	err := json.Unmarshal(journalExample, &recorded)
	if err != nil || len(recorded.Requests) != 1 {
		t.Fatalf("%s: got the journal %s, want one with a request", openAPIFile, journalExample)
	}
	e := recorded.Requests[0]
	toRecord := fmt.Sprintf("%s %s %s", e.Method, e.URL, e.Body)
	for _, name := range keys(e.Headers) {
		if name != "Content-Length" { // do adds it
			toRecord += "\n" + name + ": " + strings.Replace(e.Headers[name], "<API_KEY>", testKey, 1)
		}
	}

	fromExample := func(pattern string) (request string) {
		return pattern + " " + string(api.operations[pattern].RequestBody.example())
	}
	create, resetToTwo := fromExample("POST /v1/pets"), fromExample("POST /__admin/reset")
	const putFault = "PUT /__admin/fault?code=503,lost&operation=createPet&skip=1"

	examples := map[string]string{} // by response, such as "getPet 404"
	for _, pattern := range keys(api.operations) {
		op := api.operations[pattern]
		for status, described := range op.Responses {
			if example := described.example(); example != nil {
				examples[op.OperationID+" "+status] = string(example)
			}
		}
		if op.RequestBody.example() != nil {
			request := fromExample(pattern)
			if r := s.do(t, request); r.status >= 300 {
				t.Errorf("%s:\n%s has this example, the service answers %s", request, openAPIFile, r)
			}
		}
	}

	varies := regexp.MustCompile(`"time":"[^"]*"|"seconds":[0-9.]+`) // from run to run
	isCompared := map[string]bool{}                                  // by example
	for _, tt := range []struct {
		response string
		requests []string    // the response is that to the last one
		server   *testServer // s, unless there is another one
	}{
		{response: "listPets 200", requests: []string{resetToTwo, "GET /v1/pets"}},
		{response: "listPets 401", requests: []string{"GET /v1/pets\nAuthorization: none"}},
		{response: "createPet 201", requests: []string{create}},
		{
			response: "createPet 400",
			requests: []string{`POST /v1/pets {"name":"Rex","categoryId":7,"status":"lost"}`},
		},
		{response: "getPet 200", requests: []string{resetToTwo, "GET /v1/pets/1"}},
		{response: "getPet 404", requests: []string{"GET /v1/pets/5"}},
		{
			response: "reset 400",
			requests: []string{"POST /__admin/reset [" + newPet + `,{"name":"Tom"}]`},
		},
		{response: "reset 413", requests: []string{"POST /__admin/reset" + lengthTooLong}},
		{response: "reset 415", requests: []string{"POST /__admin/reset []\nContent-Type: text/plain"}},
		{
			response: "reset default",
			requests: []string{"POST /__admin/reset\nContent-Length: 9"}, // no body follows
			server:   impatient,
		},
		{
			response: "showFault 200",
			requests: []string{putFault, create, create, "GET /__admin/fault"},
		},
		{response: "setFault 200", requests: []string{putFault}},
		{
			response: "setFault 400",
			requests: []string{"PUT /__admin/fault?code=503&retry-after=soon"},
		},
		{response: "showJournal 200", requests: []string{toRecord, "GET /__admin/requests"}},
		{response: "showJournal 400", requests: []string{"GET /__admin/requests?limit=1"}},
	} {
		s.reset(t, "[]")
		var request string
		var r response
		for _, request = range tt.requests {
			r = cmp.Or(tt.server, s).do(t, request)
		}
		example := examples[tt.response]
		isCompared[example] = true
		agree(t, tt.response+", "+request, openAPIFile, varies.ReplaceAllString(example, ""),
			varies.ReplaceAllString(string(encodeJSON(parseBody(r.body))), ""))
	}
	for _, name := range keys(examples) {
		if !isCompared[examples[name]] { // many operations refer to the same response
			t.Errorf("%s has an example of %s; testOpenAPIExamples lacks a request for it",
				openAPIFile, name)
		}
	}
}

// Random sequences of operations and resets get the responses that the model
// predicts, and the journal lists all requests.
func TestModel(t *testing.T) {
	for round := range 3 {
		random := rand.New(rand.NewSource(int64(round)))
		fromFile, file := randomSeed(random)
		s := startServer(t, "-seed", tempFile(t, file))
		m := fromFile
		var requests []entry
		for step := 0; step < 1000 && !t.Failed(); step++ {
			switch random.Intn(50) {
			case 0:
				s.reset(t, "")
				m, requests = fromFile, nil
			case 1:
				var seed string
				m, seed = randomSeed(random)
				s.reset(t, seed)
				requests = nil
			case 2, 3:
				s.expectJournal(t, requests...)
			default:
				names := keys(modelSteps)
				request, want := modelSteps[names[random.Intn(len(names))]](&m, random)
				what := fmt.Sprintf("round %d, step %d: %s", round, step, request)
				s.do(t, request).check(t, what, want)
				requests = append(requests, entryOf(t, request, statusIn(want)))
			}
		}
	}
}

// TestLong contains the tests that are slow or need a lot of memory: a million
// pets, a whole stall, and a whole wait for the journal. .ci/run selects it by
// its name.
func TestLong(t *testing.T) {
	if os.Getenv("PETSTORE_LONG") == "" {
		t.Skip("PETSTORE_LONG is not set")
	}
	t.Run("a million pets", func(t *testing.T) {
		p := startProcess(t, petstoreCommand("-seed", tempFile(t, seedOf(1_000_000))))
		concurrently(t, 8, func(i int) error {
			for n := range 1000 {
				after := int64(i*100_000 + n*75)
				resp := p.do(t, fmt.Sprint("GET /v1/pets?limit=100&status=sold&after=", after))
				var page []Pet
				json.Unmarshal([]byte(resp.body), &page)
				if len(page) != 100 || page[0].ID <= after {
					return fmt.Errorf("the page after %d: got %d pets, "+
						"want 100 with larger ids: %s", after, len(page), abridge(resp))
				}
			}
			return nil
		})
		peak := p.proc(t, "status", `VmHWM:\s*(\d+) kB`)
		if mib := peak >> 10; mib > 500 {
			t.Errorf("it took %d MiB of memory, want 500 or less", mib)
		}
	})
	for _, tt := range []struct{ request, want string }{
		{
			request: "GET /v1/pets\nPrefer: code=stall",
			want:    "200 [" + cutOff + "\nContent-Length: 3\nPreference-Applied: code=stall",
		},
		{request: "HEAD /v1/pets\nPrefer: code=stall", want: connClosed},
	} {
		t.Run("a stall of "+firstLine(tt.request), func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			begin := time.Now()
			conn := s.send(t, tt.request)
			conn.SetDeadline(begin.Add(maxWait + patience))
			s.setFault(t, "code=stall")
			s.expect(t, "DELETE /__admin/fault", "204") // does not end the stall of a Prefer header
			conn.read().check(t, "request:\n"+tt.request, tt.want)
			if took := time.Since(begin); took < maxWait {
				t.Errorf("the stall took %v, want 30 s", took)
			}
		})
	}
	t.Run("a wait for the journal", func(t *testing.T) {
		t.Parallel()
		s := startServer(t)
		begin := time.Now()
		conn := s.send(t, "GET /__admin/requests?total=1")
		conn.SetDeadline(begin.Add(maxWait + patience))
		conn.read().check(t, "total=1 without a request", emptyJournal)
		if took := time.Since(begin); took < maxWait {
			t.Errorf("the wait took %v, want 30 s", took)
		}
	})
}

// Fuzz tests and benchmarks.

// FuzzCreate compares how createPet reads a body with a second implementation
// of the same rules.
func FuzzCreate(f *testing.F) {
	nested := strings.Repeat("[", 9999) + strings.Repeat("]", 9999)
	f.Add([]byte(`{"name":"\ud800","name":"","categoryId":-0,"status":"s\u006fld","x":` +
		nested + "}"))
	f.Add(encodeJSON(readOpenAPI(f).newPet(f))) // a pet with all members
	f.Fuzz(func(t *testing.T, body []byte) {
		var expected map[string]any
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.UseNumber()
		dec.Decode(&expected)
		name, isString := expected["name"].(string)
		number, _ := expected["categoryId"].(json.Number)
		category, categoryErr := number.Int64()
		status, isGiven := expected["status"]
		word, _ := status.(string)
		isValid := json.Valid(body) && utf8.Valid(body) && isString && categoryErr == nil &&
			(!isGiven || slices.Contains(statuses[1:], word))

		parsed, err := parseObject("the body", body)
		var p NewPet
		if err == nil {
			p, err = parsePet(parsed)
		}
		equal(t, fmt.Sprintf("%q is accepted", body), err == nil, isValid)
		if isValid {
			want := NewPet{Name: name, CategoryID: category, Status: PetStatus(word)}
			equal(t, fmt.Sprintf("the pet of %q", body), p, want)
		}
	})
}

// BenchmarkPetstore measures the CPU time of a request, and its ratio to that
// of a bare net/http server that sends the same bytes.
func BenchmarkPetstore(b *testing.B) {
	for _, n := range []int{1000, 1_000_000} {
		if n > 1000 && os.Getenv("PETSTORE_LONG") == "" {
			continue
		}
		p := startProcess(b, petstoreCommand("-seed", tempFile(b, seedOf(n))))
		for _, bb := range []struct{ name, request string }{
			{name: "list20", request: "GET /v1/pets"},
			{name: "list100", request: "GET /v1/pets?limit=100"},
			{name: "filtered", request: "GET /v1/pets?status=sold"},
			{name: "get", request: fmt.Sprint("GET /v1/pets/", n-1)},
			{name: "create", request: "POST /v1/pets " + newPet},
		} {
			b.Run(fmt.Sprint(bb.name, "/pets=", n), func(b *testing.B) {
				compareWithBare(b, p, bb.request)
			})
		}
	}
}

// Helpers.
//
// To read a test, it is enough to know these:
//
//	startServer      runs the program with flags, in the process of the test
//	startService     serves a service whose state the test can inspect
//	startMonitored   also observes when the handler writes and returns
//	startProcess     runs the program in a process of its own
//
//	do               sends a request and returns the response
//	expect           sends a request and compares the response
//	send             sends a request; read returns the response later
//	check            compares a response
//	format, String   define how requests and responses are written as text
//
//	setFault, reset  change the service, or fail the test
//	waitMatched      waits until the standing fault has matched requests
//	journal          waits until requests are recorded, and returns them
//	expectJournal    compares them
//
//	equal, matches   compare values
//	sameNames        compares two lists in any order
//	agree            compares a document with the service
//	markdownTable    reads a table of a document
//
//	receive, within  wait for an event, up to patience
//	eventually       waits for a condition that no event announces
//	concurrently     runs goroutines, and reports their first error
//	oneThenParallel  runs subtests in parallel, until one has failed

// Helpers: comparisons.

// equal reports an error unless got is want. what names the value. If it ends
// with a request, which may have headers, the request is on lines of its own.
func equal[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		gotText, wantText := inFailure(got, want)
		t.Errorf("%s\n got %s\nwant %s", abridge(what), gotText, wantText)
	}
}

// matches reports an error unless a regular expression matches got.
func matches(t testing.TB, what, got, pattern string) {
	t.Helper()
	if !regexp.MustCompile(pattern).MatchString(got) {
		t.Errorf("%s\n got %q\nwant a match of %s", abridge(what), cutMiddle(got, 3000), pattern)
	}
}

// sameNames reports the names that only one of two lists has. Their order does
// not matter.
func sameNames(t testing.TB, what string, list []string, otherWhat string, other []string) {
	t.Helper()
	for _, name := range list {
		if !slices.Contains(other, name) {
			t.Errorf("%s lacks %s, which %s has", otherWhat, name, what)
		}
	}
	for _, name := range other {
		if !slices.Contains(list, name) {
			t.Errorf("%s lacks %s, which %s has", what, name, otherWhat)
		}
	}
}

// inFailure returns how a failure shows two values that differ.
func inFailure[T any](a, b T) (string, string) {
	aText, aIsText := any(a).(string)
	bText, bIsText := any(b).(string)
	if aIsText && bIsText {
		return excerpts(aText, bText)
	}
	return inGo(a), inGo(b)
}

// excerpts returns two strings in quotes. A long one is shown as its length and
// some 60 bytes on each side of the first byte that differs.
func excerpts(a, b string) (string, string) {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	excerpt := func(text string) string {
		if len(text) <= longText {
			return quote(text)
		}
		from, to := unitAt(text, i-60), unitAt(text, i+60)
		return fmt.Sprintf("%d bytes, which differ at byte %d: …%s…",
			len(text), i, quote(text[from:to]))
	}
	return excerpt(a), excerpt(b)
}

// quote returns a text in backquotes, so that JSON is easy to read, or in double
// quotes if it has characters that backquotes would hide. A newline at its end is
// shown separately.
func quote(text string) string {
	line, hasNewline := strings.CutSuffix(text, "\n")
	switch {
	case !strconv.CanBackquote(line):
		return strconv.Quote(text)
	case hasNewline:
		return "`" + line + "` and a newline"
	}
	return "`" + line + "`"
}

// unitAt returns where the character or the escape begins, such as \n or \u003c,
// that byte i of a text belongs to. An i outside of the text is moved into it.
func unitAt(text string, i int) int {
	i = min(max(i, 0), len(text))
	escape := max(i-len(`\u003`), 0)
	if n := strings.LastIndex(text[escape:i], `\`); n >= 0 {
		i = escape + n
	}
	for i > 0 && i < len(text) && (text[i-1] == '\\' || !utf8.RuneStart(text[i])) {
		i--
	}
	return i
}

// longText is the length of the longest text that failures show whole, in bytes.
const longText = 300

// inGo returns a value in the syntax of Go, with its strings in quotes. Errors
// and Stringers, such as durations, are shown as their text.
func inGo(v any) string {
	switch v.(type) {
	case error, fmt.Stringer:
		return fmt.Sprint(v)
	}
	return cutMiddle(fmt.Sprintf("%#v", v), 2000)
}

// abridge returns a text, such as a request or a response, with the middle of
// each long line cut out. The body is on the first line, so what remains has the
// method and the target, or the status, and all headers.
func abridge(text any) string {
	lines := strings.Split(fmt.Sprint(text), "\n")
	for i := range lines {
		lines[i] = cutMiddle(lines[i], longText)
	}
	return strings.Join(lines, "\n")
}

// cutMiddle returns a text of up to n bytes unchanged. It returns a longer one
// with the number of bytes that it has cut out in place of its middle.
func cutMiddle(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return fmt.Sprintf("%s…(%d more bytes)…%s",
		text[:n/2], len(text)-2*(n/2), text[len(text)-n/2:])
}

// Helpers: requests and responses.

// testServer is a running petstore, and a client of it.
type testServer struct {
	addr   string           // host:port
	key    string           // the API key that the client sends, or empty for none
	idle   chan *connection // connections that are kept alive; nil to keep none
	stderr *lockedBuffer    // standard error of the service; nil with startService
	stop   func()           // stops the service and waits for its end; nil with startService
}

// newTestServer returns the client of a service. It closes its connections when
// the test ends.
func newTestServer(t testing.TB, addr, key string) *testServer {
	s := &testServer{addr: addr, key: key, idle: make(chan *connection, 64)}
	t.Cleanup(func() {
		for len(s.idle) > 0 {
			(<-s.idle).Close()
		}
	})
	return s
}

// withKey returns a client of the same service that sends another key or, if
// key is empty, none.
func (s *testServer) withKey(key string) *testServer {
	return &testServer{addr: s.addr, key: key}
}

// format returns a request as it is sent. Its first line has the method, the
// target and, if there is one, the body, separated by spaces. The other lines
// are headers:
//
//	POST /v1/pets {"name":"a","categoryId":1}
//	Prefer: code=503
//
// Three headers are added unless they are given: Host; Authorization with the
// key; and Content-Length for a body. With "Transfer-Encoding: chunked", the
// body is sent as one chunk.
func (s *testServer) format(t testing.TB, request string) string {
	t.Helper()
	method, target, body, headers := parseRequest(t, request)
	isGiven := func(name string) bool {
		return strings.Contains("\n"+strings.ToLower(headers), "\n"+name+":")
	}
	head := method + " " + target + " HTTP/1.1\n"
	if headers != "" {
		head += strings.TrimSuffix(headers, "\n") + "\n"
	}
	if !isGiven("host") {
		head += "Host: petstore\n"
	}
	if !isGiven("authorization") && s.key != "" {
		head += "Authorization: Bearer " + s.key + "\n"
	}
	if isGiven("transfer-encoding") {
		body = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	} else if body != "" && !isGiven("content-length") {
		head += fmt.Sprintf("Content-Length: %d\n", len(body))
	}
	return strings.ReplaceAll(head+"\n", "\n", "\r\n") + body
}

// parseRequest returns the parts of a request, which has the form of format. If
// there is no target, it reports that with t.Errorf.
func parseRequest(t testing.TB, request string) (method, target, body, headers string) {
	t.Helper()
	line, headers, _ := strings.Cut(request, "\n")
	method, rest, _ := strings.Cut(line, " ")
	target, body, _ = strings.Cut(rest, " ")
	if target == "" {
		t.Errorf("request:\n%s\nwant a method, a space and a target", abridge(request))
	}
	return method, target, body, headers
}

// do sends a request, which has the form of format, and returns the response. It
// uses a connection that was kept alive, if there is one. It is safe for
// concurrent use, and may be called from any goroutine: if it cannot connect, it
// reports that with t.Errorf, and returns a response with the error.
func (s *testServer) do(t testing.TB, request string) response {
	t.Helper()
	resp, err := s.try(t, request)
	if err != nil {
		t.Errorf("request:\n%s\n got the error %v\nwant a connection", abridge(request), err)
	}
	return resp
}

// try is do without the report, for callers that report each response that is
// not the one they want. The error is that of connecting.
func (s *testServer) try(t testing.TB, request string) (response, error) {
	t.Helper()
	var c *connection
	select {
	case c = <-s.idle:
		c.SetDeadline(time.Now().Add(patience))
	default:
		var err error
		if c, err = s.dial(); err != nil {
			return response{err: err}, err
		}
	}
	c.write(s.format(t, request))
	resp := c.read()
	if resp.err != nil || resp.closes {
		c.Close()
		return resp, nil
	}
	select {
	case s.idle <- c:
	default:
		c.Close()
	}
	return resp, nil
}

// expect sends a request, as do does, and compares the response with want, as
// check does. It may be called from any goroutine.
func (s *testServer) expect(t testing.TB, request, want string) {
	t.Helper()
	resp, _ := s.try(t, request)
	resp.check(t, "request:\n"+request, want)
}

// send sends a request on a new connection, so that the test can do something
// before it reads the response.
func (s *testServer) send(t testing.TB, request string) *connection {
	t.Helper()
	c := s.connect(t)
	c.write(s.format(t, request))
	return c
}

// sendRaw sends a text on a new connection, as send does. It changes nothing in
// the text, except that it replaces each LF with CR LF.
func (s *testServer) sendRaw(t testing.TB, text string) *connection {
	t.Helper()
	c := s.connect(t)
	c.write(strings.ReplaceAll(text, "\n", "\r\n"))
	return c
}

// startCreate sends the headers of a create, and returns when the service waits
// for the body, newPet.
func (s *testServer) startCreate(t testing.TB) *connection {
	t.Helper()
	request := fmt.Sprintf("POST /v1/pets\nContent-Length: %d\nExpect: 100-continue", len(newPet))
	c := s.send(t, request)
	if resp := c.read(); resp.status != 100 {
		t.Fatalf("request:\n%s\n got %s\nwant 100", request, resp)
	}
	return c
}

// connection is a connection to a service.
type connection struct {
	*net.TCPConn
	in     *bufio.Reader
	method string // of the request that was written last
}

// connect opens a connection, which is closed when the test ends. It fails the
// test if it cannot connect.
func (s *testServer) connect(t testing.TB) *connection {
	t.Helper()
	c, err := s.dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// dial opens a connection.
func (s *testServer) dial() (*connection, error) {
	conn, err := net.DialTimeout("tcp", s.addr, patience)
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(patience))
	return &connection{TCPConn: conn.(*net.TCPConn), in: bufio.NewReader(conn)}, nil
}

// write writes a request or a part of it. It ignores errors, as the service may
// answer and close the connection before it has read everything.
func (c *connection) write(text string) {
	if line := firstLine(text); strings.Contains(line, " HTTP/1.") {
		c.method, _, _ = strings.Cut(line, " ")
	}
	io.WriteString(c, text)
}

// read reads the next response.
func (c *connection) read() response {
	begin := time.Now()
	timeout := func(err error) error {
		if os.IsTimeout(err) {
			return fmt.Errorf("timed out after %v", time.Since(begin).Round(time.Second))
		}
		return err
	}
	resp, err := http.ReadResponse(c.in, &http.Request{Method: c.method})
	if err != nil {
		return response{err: timeout(err)}
	}
	if resp.TransferEncoding != nil { // ReadResponse has removed it from the headers
		resp.Header["Transfer-Encoding"] = resp.TransferEncoding
	}
	body, err := io.ReadAll(resp.Body)
	r := response{
		status: resp.StatusCode,
		header: resp.Header,
		body:   string(body),
		err:    timeout(err),
		closes: resp.Close,
	}
	if r.closes && err == nil {
		c.CloseWrite() // otherwise the service may wait for the rest of the request
		more, err := io.ReadAll(c.in)
		if len(more) > 0 || os.IsTimeout(err) {
			r.err = fmt.Errorf("want the end of the connection, got %q and %v",
				more, timeout(err))
		}
	}
	return r
}

// response is what was read after a request.
type response struct {
	status int // 0 if there was no response
	header http.Header
	body   string // if err is not nil, the part that was read
	err    error  // of connecting or reading; nil for a whole response
	closes bool   // whether the service closes the connection after it
}

// error returns the Error that a response has as its body. It returns Error{}
// for any other body, also for one with other members than an Error.
func (r response) error() Error {
	var e Error
	json.Unmarshal([]byte(r.body), &e)
	if e.Message == "" || e.Status != r.status || string(encodeJSON(e))+"\n" != r.body {
		return Error{}
	}
	return e
}

// countPets returns the number of pets in a response of listPets, and 0 for
// anything else.
func (r response) countPets() int {
	if r.status != 200 {
		return 0
	}
	return strings.Count(r.body, `"id":`)
}

// errorJSON returns the body of an Error whose message needs no escapes in JSON.
func errorJSON(code, message string, status int) string {
	return fmt.Sprintf(`{"code":"%s","message":"%s","status":%d}`+"\n", code, message, status)
}

// In the text of a response, these stand for what is missing.
const (
	connClosed = "(connection closed)"  // in place of a response
	connReset  = "(connection reset)"   // by a TCP RST
	cutOff     = " (connection closed)" // after the part of a body that was read
)

// String returns the response as text. The first line has the status and the
// body, without the newline at its end. The body of an Error is shown as its
// code and message. Headers follow, in alphabetical order:
//
//	201 {"id":1,"name":"a","categoryId":1}
//	Location: /v1/pets/1
//
//	405 method_not_allowed: this path allows GET, HEAD, POST only
//	Allow: GET, HEAD, POST
//
// All headers are shown but three, which are left out if they are as in most
// responses: Date, a Content-Length that is the length of the body, and a
// Content-Type of application/json. So that the absence of a header is seen, too,
// a body without a Content-Type is shown with "Content-Type: (missing)", and a body
// in chunks, which has no Content-Length, with its Transfer-Encoding.
func (r response) String() string {
	closed := errors.Is(r.err, io.EOF) || errors.Is(r.err, io.ErrUnexpectedEOF)
	switch {
	case errors.Is(r.err, syscall.ECONNRESET):
		return connReset
	case r.status == 0 && closed:
		return connClosed
	case r.status == 0:
		return fmt.Sprintf("(%v)", r.err)
	}

	text := strings.ReplaceAll(strings.TrimSuffix(r.body, "\n"), "\n", `\n`)
	if e := r.error(); e != (Error{}) {
		text = e.Code + ": " + e.Message
	}
	if closed {
		text += cutOff
	} else if r.err != nil {
		text += fmt.Sprintf(" (%v)", r.err)
	}
	var headers []string
	for name, values := range r.header {
		for _, value := range values {
			isLength := name == "Content-Length" &&
				(r.body == "" || value == strconv.Itoa(len(r.body)))
			isJSON := name == "Content-Type" && value == "application/json" && r.status != 204
			if !isLength && !isJSON && name != "Date" {
				headers = append(headers, "\n"+name+": "+value)
			}
		}
	}
	if r.body != "" && r.header["Content-Type"] == nil {
		headers = append(headers, "\nContent-Type: (missing)")
	}
	if r.closes {
		headers = append(headers, "\nConnection: close")
	}
	slices.Sort(headers)
	return strings.TrimSpace(fmt.Sprint(r.status, " ", text)) + strings.Join(headers, "")
}

// check compares the text of a response with want, whose headers may be in any
// order. If the first line of want ends with "…", that of the response must
// begin like it: "404 not_found: …" allows any message. what says what was sent.
// A failure does not show headers that are as they should be.
func (r response) check(t testing.TB, what, want string) {
	t.Helper()
	gotLine, gotHeaders, _ := strings.Cut(r.String(), "\n")
	wantLine, wantHeaders, _ := strings.Cut(want, "\n")
	if wantHeaders != "" {
		lines := strings.Split(wantHeaders, "\n")
		slices.Sort(lines)
		wantHeaders = strings.Join(lines, "\n")
	}

	isLine := gotLine == wantLine
	if beginning, ok := strings.CutSuffix(wantLine, "…"); ok {
		isLine = strings.HasPrefix(gotLine, beginning)
	}
	if isLine && gotHeaders == wantHeaders {
		return
	}
	if isLine {
		gotLine, wantLine = abridge(gotLine), abridge(wantLine)
	} else if max(len(gotLine), len(wantLine)) > longText {
		gotLine, wantLine = excerpts(gotLine, wantLine)
	}
	if gotHeaders == wantHeaders {
		gotHeaders, wantHeaders = "", ""
	}
	// Headers are below the first line, not below the word got or want.
	indent := func(line, headers string) string {
		return strings.ReplaceAll(strings.TrimSpace(line+"\n"+headers), "\n", "\n     ")
	}
	t.Errorf("%s\n got %s\nwant %s", abridge(what),
		indent(gotLine, gotHeaders), indent(wantLine, wantHeaders))
}

// statusIn returns the status of the text of a response, or 0 if it has none.
func statusIn(want string) int {
	status, _ := strconv.Atoi(want[:min(len(want), 3)])
	return status
}

// firstLine returns the first line of the text of a response.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// Helpers: the journal and the standing fault.

// journal waits until the service has recorded at least total requests, and
// returns the journal. It fails the test if that takes too long.
func (s *testServer) journal(t testing.TB, total int) []entry {
	t.Helper()
	var content struct{ Requests []entry }
	request := fmt.Sprint("GET /__admin/requests?total=", total)
	resp, _ := s.try(t, request)
	if resp.status != 200 || resp.err != nil {
		t.Fatalf("request:\n%s\n got %s\nwant %d recorded requests", request, abridge(resp), total)
	}
	if err := json.Unmarshal([]byte(resp.body), &content); err != nil {
		t.Fatalf("request:\n%s\n got %s\nwant JSON: %v", request, abridge(resp), err)
	}
	if len(content.Requests) < total {
		t.Fatalf("request:\n%s\n got %d requests: %s\nwant %d recorded requests",
			request, len(content.Requests), abridge(resp), total)
	}
	return content.Requests
}

// expectJournal waits until the service has recorded len(want) requests, and
// compares the Method, URL, Body, Status and Fault of each. It ignores the other
// fields, and reports only the first request that differs.
func (s *testServer) expectJournal(t testing.TB, want ...entry) {
	t.Helper()
	got := s.journal(t, len(want))
	equal(t, "the number of requests in the journal", len(got), len(want))
	for i := range min(len(got), len(want)) {
		if gotLine, wantLine := journalLine(got[i]), journalLine(want[i]); gotLine != wantLine {
			t.Errorf("request %d in the journal:\n got %s\nwant %s", i+1, gotLine, wantLine)
			return
		}
	}
}

// journalLine returns what expectJournal compares of an entry, such as
//
//	GET /v1/pets: status 503, fault code=503
func journalLine(e entry) string {
	line := fmt.Sprintf("%s %s: status %d", e.Method, e.URL, e.Status)
	if e.Body != "" {
		line += fmt.Sprintf(", body %q", e.Body)
	}
	if e.Fault != "" {
		line += ", fault " + e.Fault
	}
	return line
}

// equalEntry compares two entries of the journal, except for the time, the
// seconds and the headers. request is the request that was sent.
func equalEntry(t testing.TB, request string, got, want entry) {
	t.Helper()
	of := " in the journal's entry of this request:\n" + request
	equal(t, "the method"+of, got.Method, want.Method)
	equal(t, "the URL"+of, got.URL, want.URL)
	equal(t, "the body"+of, got.Body, want.Body)
	equal(t, "the status"+of, got.Status, want.Status)
	equal(t, "the answer"+of, got.Answer, want.Answer)
	equal(t, "the error"+of, got.Error, want.Error)
	equal(t, "the fault"+of, got.Fault, want.Fault)
	equal(t, "the ignored names"+of, got.Ignored, want.Ignored)
}

// entryOf returns the entry of a request, which has the form of format. The
// entry has no headers.
func entryOf(t testing.TB, request string, status int) entry {
	t.Helper()
	method, target, body, _ := parseRequest(t, request)
	return entry{Method: method, URL: target, Body: body, Status: status}
}

// countWaiting returns the number of requests that wait for the journal.
func countWaiting(svc *service) int {
	j := &svc.current.Load().journal
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.waiting)
}

// expectWaiting waits until n requests wait for the journal.
func expectWaiting(t testing.TB, svc *service, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d requests wait for the journal", n), func() (got any, ok bool) {
		got = countWaiting(svc)
		return got, got == n
	})
}

// setFault sets the standing fault, or fails the test. query has the parameters
// of the fault, such as code=503&times=1.
func (s *testServer) setFault(t testing.TB, query string) {
	t.Helper()
	request := "PUT /__admin/fault?" + query
	if resp, _ := s.try(t, request); resp.status != 200 {
		t.Fatalf("request:\n%s\n got %s\nwant 200", request, resp)
	}
}

// reset resets the service to the pets of a seed, or to those that it has
// started with if the seed is empty. It fails the test if that does not work.
func (s *testServer) reset(t testing.TB, seed string) {
	t.Helper()
	request := strings.TrimSpace("POST /__admin/reset " + seed)
	if resp, _ := s.try(t, request); resp.status != 204 {
		t.Fatalf("request:\n%s\n got %s\nwant 204", abridge(request), abridge(resp))
	}
}

// waitMatched waits until the standing fault has matched n requests, which must
// be the first of the world. Their delays may not have begun yet. It fails the
// test at once if no fault stands, or if the service has answered n requests,
// but the fault has not matched them.
func (s *testServer) waitMatched(t testing.TB, n int) {
	t.Helper()
	condition := fmt.Sprintf("the standing fault has matched %d requests", n)
	eventually(t, condition, func() (got any, ok bool) {
		t.Helper()
		answered := len(s.journal(t, 0)) // before the fault, as they are matched before
		resp := s.do(t, "GET /__admin/fault")
		if !strings.Contains(resp.body, `"matched":`) {
			t.Fatalf("GET /__admin/fault:\n got %s\nwant a standing fault", resp)
		}
		isMatched := strings.Contains(resp.body, fmt.Sprintf(`"matched":%d,`, n))
		if !isMatched && answered >= n {
			t.Fatalf("GET /__admin/fault after %d answers:\n got %s\nwant %d matched requests",
				answered, resp, n)
		}
		return resp, isMatched
	})
}

// endFault ends the standing fault in one of four ways: reset, stop, delete or
// replace. A stop closes stopping, the channel of the service.
func endFault(t testing.TB, s *testServer, end string, stopping chan struct{}) {
	t.Helper()
	switch end {
	case "reset":
		s.reset(t, "")
	case "stop":
		close(stopping)
	case "delete":
		s.expect(t, "DELETE /__admin/fault", "204")
	case "replace":
		s.setFault(t, "code=503")
	default:
		t.Fatalf("endFault cannot end a fault by %q", end)
	}
}

// Helpers: services. startServer runs the program in the process of the test,
// startService serves a service whose state the test can inspect, and
// startProcess runs the program in a process of its own.

// testKey is the API key of the services that the tests start.
const testKey = "correct-horse"

// startServer runs the program with testKey on a free port until the test ends.
func startServer(t testing.TB, args ...string) *testServer {
	t.Helper()
	return command{key: testKey, args: args}.start(t)
}

// command is a command line of the program, in an environment with only the key.
type command struct {
	args  []string
	key   string    // PETSTORE_API_KEY
	stdin io.Reader // for -stdin
}

// run runs the command and returns its exit code. Without stdin, the standard
// input is empty.
func (c command) run(ctx context.Context, stdout, stderr io.Writer) int {
	getenv := func(name string) string {
		if name == "PETSTORE_API_KEY" {
			return c.key
		}
		return ""
	}
	if c.stdin == nil {
		c.stdin = strings.NewReader("")
	}
	return report(run(ctx, c.args, getenv, c.stdin, stdout, stderr), stderr)
}

// start runs the command on a free port until the test ends. The command must
// print its base URL and nothing else, and exit with 0.
func (c command) start(t testing.TB) *testServer {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	c.args = append([]string{"-addr", "127.0.0.1:0"}, c.args...)
	stderr := new(lockedBuffer)
	logIfFailed(t, "stderr of the service", stderr)
	out, w := io.Pipe()
	exit := make(chan int, 1)
	go func() {
		code := c.run(ctx, w, stderr)
		w.Close()
		exit <- code
	}()
	stdout := bufio.NewReader(out)
	addr := readAddr(t, stdout, stderr)
	key := cmp.Or(c.key, regexp.MustCompile(`[0-9a-f]{32}`).FindString(stderr.String()))

	stop := sync.OnceFunc(func() {
		cancel()
		more, _ := io.ReadAll(stdout)
		equal(t, "stdout after the base URL", string(more), "")
		equal(t, "the exit code", receive(t, "the end of the service", exit), 0)
	})
	t.Cleanup(stop)
	s := newTestServer(t, addr, key) // closes its connections before the service stops
	s.stderr, s.stop = stderr, stop
	return s
}

// expectExit runs a command that does not serve, and compares its standard error
// with a regular expression. A command that does serve stops immediately.
func (c command) expectExit(t testing.TB, code int, wantStdout, wantStderr string) {
	t.Helper()
	stopped, stop := context.WithCancel(context.Background())
	stop()
	var stdout, stderr lockedBuffer
	got := within(t, "the end of the program", func() int { return c.run(stopped, &stdout, &stderr) })
	equal(t, fmt.Sprintf("the exit code of petstore %q", c.args), got, code)
	equal(t, "stdout", stdout.String(), wantStdout)
	matches(t, "stderr", stderr.String(), "^"+wantStderr+"$")
}

// readAddr waits for the base URL on stdout, and returns its host:port.
func readAddr(t testing.TB, stdout *bufio.Reader, stderr fmt.Stringer) string {
	t.Helper()
	line := within(t, "the base URL", func() string {
		line, _ := stdout.ReadString('\n')
		return line
	})
	m := regexp.MustCompile(`^http://(127\.0\.0\.1:[1-9]\d*)/v1\n$`).FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("stdout: got %q, want http://127.0.0.1:<port>/v1 and a newline; stderr: %v",
			line, stderr)
	}
	return m[1]
}

// newTestService returns a service with testKey and the pets of seed, or without
// pets if seed is nil. It has no latency and does not stop. Its log has no
// requests.
func newTestService(t testing.TB, seed *store) *service {
	log := new(lockedBuffer)
	logIfFailed(t, "the log of the service", log)
	handler := slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})
	return newService(testKey, cmp.Or(seed, newStore()), 0, nil, slog.New(handler))
}

// logIfFailed adds the content of a buffer, unless it is empty, to the output of
// the test if the test fails.
func logIfFailed(t testing.TB, what string, buffer *lockedBuffer) {
	t.Cleanup(func() {
		if text := buffer.String(); t.Failed() && text != "" {
			t.Logf("%s:\n%s", what, cutMiddle(text, 3000))
		}
	})
}

// newTestStore returns a store with the pets of a seed.
func newTestStore(t testing.TB, seed string) *store {
	t.Helper()
	s, err := readSeed([]byte(seed))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// allPets returns all pets of a store, in ascending order of id.
func allPets(s *store) []*storedPet {
	pets, _ := s.list("", math.MinInt64, math.MaxInt32)
	return pets
}

// startService serves svc until the test ends, on a server that the functions
// may change before.
func startService(t testing.TB, svc *service, changes ...func(*http.Server)) *testServer {
	t.Helper()
	srv := newServer(svc)
	for _, change := range changes {
		change(srv)
	}
	ln := listenLocal(t)
	go srv.Serve(ln)
	t.Cleanup(func() { srv.Close() })
	return newTestServer(t, ln.Addr().String(), testKey)
}

// readTimeout returns a change for startService: how long the service waits for a
// whole request. Its headers have the usual time nevertheless.
func readTimeout(d time.Duration) func(*http.Server) {
	return func(srv *http.Server) { srv.ReadTimeout = d }
}

// listenLocal listens on a free port of this machine.
func listenLocal(t testing.TB) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// callHandler calls a handler with a request that has testKey. Tests with many
// goroutines use it, as requests over a network would not come as close together.
func callHandler(handler http.Handler, method, target string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.Header.Set("Authorization", "Bearer "+testKey)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// startMonitored is startService with a monitor of the requests under /v1.
func startMonitored(t testing.TB, svc *service) (*testServer, *monitor) {
	t.Helper()
	m := &monitor{returned: make(chan struct{})}
	s := startService(t, svc, func(srv *http.Server) {
		inner := srv.Handler
		srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/v1/") {
				defer close(m.returned)
				w = monitoredWriter{ResponseWriter: w, r: r, monitor: m}
			}
			inner.ServeHTTP(w, r)
		})
	})
	return s, m
}

// monitor observes how the service handles the only request under /v1.
type monitor struct {
	writes   atomic.Int64          // number of parts of the body that were written
	wrote    func(r *http.Request) // if it is not nil, called after each part was written
	returned chan struct{}         // closed when the handler has returned
}

// hasReturned reports whether the handler has returned.
func (m *monitor) hasReturned() bool {
	select {
	case <-m.returned:
		return true
	default:
		return false
	}
}

// monitoredWriter is a ResponseWriter that counts what is written to it.
type monitoredWriter struct {
	http.ResponseWriter
	r       *http.Request
	monitor *monitor
}

func (w monitoredWriter) Write(p []byte) (int, error) {
	w.monitor.writes.Add(1)
	n, err := w.ResponseWriter.Write(p)
	if w.monitor.wrote != nil {
		w.monitor.wrote(w.r)
	}
	return n, err
}

// Unwrap lets http.ResponseController flush the inner ResponseWriter.
func (w monitoredWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// addRoute adds a route to the services that start before the test ends. It
// changes a global variable, so a test that calls it must not be parallel.
func addRoute(t testing.TB, rt route) {
	all := routes
	t.Cleanup(func() { routes = all })
	routes = append(slices.Clip(all), rt)
}

// waitClosed waits until the service accepts no new connections.
func (s *testServer) waitClosed(t testing.TB) {
	t.Helper()
	eventually(t, "the service accepts no connections", func() (got any, ok bool) {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			return err, true
		}
		conn.Close()
		return "a connection to " + s.addr, false
	})
}

// TestMain runs the test binary as the program, for startProcess and for the
// examples, or as one of two other programs. For the tests, it changes the local
// time zone and the number of parallel tests. Both are global, so a test that
// changed them itself must not be parallel.
func TestMain(m *testing.M) {
	// With UTC as the local time zone, a local time in the journal would look right.
	time.Local = time.FixedZone("east", 9*60*60)
	switch os.Getenv("PETSTORE_TEST_CHILD") {
	case "petstore":
		main()
	case "bare":
		fmt.Fprintln(os.Stderr, serveBare())
		os.Exit(1)
	case "memory": // the program, and then a line with the memory that it has used
		err := run(context.Background(), os.Args[1:], os.Getenv, nil, os.Stdout, os.Stderr)
		code := report(err, os.Stderr)
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		fmt.Fprintln(os.Stderr, "bytes of memory:", stats.Sys) // Sys never shrinks
		os.Exit(code)
	}
	// Most parallel tests only wait. The flag -parallel takes precedence.
	flag.Set("test.parallel", "8")
	flag.Parse()
	os.Exit(m.Run())
}

// process is the program in a process of its own, which is killed when the test
// ends.
type process struct {
	*testServer
	cmd    *exec.Cmd
	stdout *bufio.Reader
}

// petstoreCommand returns a command that runs the program in a process of its
// own. It does not start the command.
func petstoreCommand(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append([]string{"-addr", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), "PETSTORE_TEST_CHILD=petstore", "PETSTORE_API_KEY="+testKey)
	cmd.WaitDelay = patience
	return cmd
}

// startProcess starts a command that petstoreCommand has returned, and waits for
// its base URL. The standard input of the process stays open as long as the test
// binary runs. So -stdin ends the process even if the test binary is killed.
func startProcess(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	cmd.Args = append(cmd.Args, "-stdin")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := bufio.NewReader(pipe)
	stderr := new(lockedBuffer)
	logIfFailed(t, "stderr of the process", stderr)
	if cmd.Stderr == nil {
		cmd.Stderr = stderr
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	s := newTestServer(t, readAddr(t, stdout, stderr), testKey)
	s.stderr = stderr
	return &process{testServer: s, cmd: cmd, stdout: stdout}
}

// expectExit waits for the end of the process, and compares what Wait returns:
// "<nil>" or "exit status 1". It must have printed nothing but its base URL.
func (p *process) expectExit(t testing.TB, want string) {
	t.Helper()
	var more []byte
	err := within(t, "the end of the process", func() error {
		more, _ = io.ReadAll(p.stdout)
		return p.cmd.Wait()
	})
	equal(t, "stdout after the base URL", string(more), "")
	equal(t, "the result of the process", fmt.Sprint(err), want)
}

// Helpers: waiting.

// patience is how long a test waits for what must happen. Only a failing test
// waits that long. It is shorter than maxWait, so that a test fails if a wait of
// the service should have ended early, but did not.
const patience = 25 * time.Second

// within returns what f returns, and fails the test if that takes too long. It
// calls f in a goroutine, so f must not call t.Fatal.
func within[T any](t testing.TB, what string, f func() T) T {
	t.Helper()
	result := make(chan T, 1)
	go func() { result <- f() }()
	return receive(t, what, result)
}

// receive receives from a channel, and fails the test if that takes too long.
func receive[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited %v for this: %s", patience, what)
		panic("not reached")
	}
}

// eventually waits until a condition is true, and fails the test if that takes
// too long. It calls check every millisecond, so it is only for conditions that
// no event announces. check returns what it has got, for the failure, and
// whether the condition is true.
func eventually(t testing.TB, condition string, check func() (got any, ok bool)) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		got, ok := check()
		if ok {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited %v for this: %s\n got %s", patience, condition, abridge(got))
		}
	}
}

// oneThenParallel returns a function that runs subtests. The first one runs alone,
// and the others in parallel. Once one has failed, no other begins: they are
// likely to fail in the same way, and each may wait as long as patience.
func oneThenParallel(parent *testing.T) (run func(name string, f func(t *testing.T))) {
	isFirst := true
	return func(name string, f func(t *testing.T)) {
		isParallel := !isFirst
		isFirst = false
		parent.Run(name, func(t *testing.T) {
			if isParallel {
				t.Parallel()
			}
			if parent.Failed() {
				t.Skip("another subtest has failed")
			}
			f(t)
		})
	}
}

// concurrently calls f with 0 to n-1, each in a goroutine, and waits for all. No
// goroutine calls f before all have started.
//
// It reports the first error that f returns, and no other, as the others are
// likely to be like it. As f does not run in the goroutine of the test, it must
// not end the test: it may call do, but not t.Fatal, nor a helper that starts a
// service or waits.
func concurrently(t testing.TB, n int, f func(i int) error) {
	t.Helper()
	start := make(chan struct{})
	errs := make(chan error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			<-start
			if err := f(i); err != nil {
				errs <- err
			}
		}()
	}
	close(start)
	wg.Wait()
	if len(errs) > 0 {
		t.Error(<-errs)
	}
}

// Helpers: values, files and buffers.

// keys returns the sorted keys of m.
func keys[V any](m map[string]V) []string {
	var list []string
	for key := range m {
		list = append(list, key)
	}
	slices.Sort(list)
	return list
}

// atoi returns the integer in text, and fails the test if there is none.
func atoi(t testing.TB, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// seedOf returns a seed of n pets of some 75 bytes each. The first of every
// three is sold.
func seedOf(n int) string {
	pets := make([]NewPet, n)
	for i := range pets {
		pets[i] = NewPet{
			Name:       strings.Repeat("x", 16),
			CategoryID: int64(i % 100),
			Status:     "available",
		}
		if i%3 == 0 {
			pets[i].Status = "sold"
		}
	}
	return string(encodeJSON(pets))
}

// tempFile writes a file, and returns its path. It is removed when the test
// ends.
func tempFile(t testing.TB, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pets.json")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// readFile returns a file of the repository.
func readFile(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// lockedBuffer is a bytes.Buffer that is safe for concurrent use.
type lockedBuffer struct {
	mu sync.Mutex // guards b
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

// Helpers: the commands and programs of README.md.

// consoleStep is a command of a console block, and its output.
type consoleStep struct {
	command, output string
}

// consoleSteps returns the steps of all console blocks of a Markdown text.
func consoleSteps(text string) []consoleStep {
	var steps []consoleStep
	for _, block := range codeBlocks(text, "console") {
		for _, step := range strings.Split("\n"+block, "\n$ ")[1:] {
			line, output, _ := strings.Cut(step, "\n")
			steps = append(steps, consoleStep{command: line, output: output})
		}
	}
	return steps
}

// codeBlocks returns the code blocks in a language of a Markdown text.
func codeBlocks(text, language string) []string {
	var blocks []string
	fenced := regexp.MustCompile("(?s)\n```" + language + "\n(.*?\n)```\n")
	for _, match := range fenced.FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, match[1])
	}
	return blocks
}

// withoutSeconds removes from an output what differs from run to run.
func withoutSeconds(output string) string {
	return regexp.MustCompile(`("seconds":)[0-9.]*|\r|\s+$`).ReplaceAllString(output, "$1")
}

// containsIndented reports whether a text contains these lines, all with the same
// indentation.
func containsIndented(text, lines string) bool {
	first, _, _ := strings.Cut(lines, "\n")
	for _, line := range strings.Split(text, "\n") {
		indentation, found := strings.CutSuffix(line, first)
		if !found || strings.TrimSpace(indentation) != "" {
			continue
		}
		indented := regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(lines, indentation+"$1")
		if strings.Contains("\n"+text, "\n"+indented) {
			return true
		}
	}
	return false
}

// skipIfOlder skips the test if a command prints a version below the oldest.
func skipIfOlder(t *testing.T, versionCommand, oldest string) {
	t.Helper()
	args := strings.Fields(versionCommand)
	output, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil || slices.Compare(versionIn(string(output)), versionIn(oldest)) < 0 {
		t.Skipf("%s: got %.40q and the error %v, want version %s or newer",
			versionCommand, output, err, oldest)
	}
}

// versionIn returns the first version in a text, such as 3 and 10 for 3.10.
func versionIn(text string) []int {
	var numbers []int
	for _, number := range strings.Split(regexp.MustCompile(`\d+(\.\d+)*`).FindString(text), ".") {
		n, _ := strconv.Atoi(number) // 0 if there is none
		numbers = append(numbers, n)
	}
	return numbers
}

// Helpers: the routes and api/openapi.json.

// theRoutes names the table of routes in failures.
const theRoutes = "the table of routes"

// routedOperations returns the names of the operations under /v1, in the order
// of the routes.
func routedOperations() []string {
	var operations []string
	for _, rt := range routes {
		if rt.operation != "" && strings.Contains(rt.pattern, " /v1/") {
			operations = append(operations, rt.operation)
		}
	}
	return operations
}

// getRequests returns requests for each route with GET, without the method: one
// that succeeds, one whose limit may be refused, and one with a fault.
func getRequests() []string {
	var requests []string
	for _, rt := range routes {
		if target, isGet := strings.CutPrefix(rt.pattern, "GET "); isGet {
			target = exampleOf(target)
			requests = append(requests, target, target+"?limit=x", target+"\nPrefer: code=503")
		}
	}
	return requests
}

// exampleOf returns a request, or its target, for the pattern of a route. For
// GET /v1/pets/{petId}, it is GET /v1/pets/1.
func exampleOf(pattern string) string {
	return regexp.MustCompile(`\{\w+\}`).ReplaceAllString(strings.TrimSuffix(pattern, "{$}"), "1")
}

// allow returns the header Allow for a path, from the routes.
func allow(path string) string {
	var allowed []string
	for _, rt := range routes {
		method, pattern, _ := strings.Cut(strings.TrimSuffix(rt.pattern, "{$}"), " ")
		pattern = regexp.MustCompile(`\{\w+\}`).ReplaceAllString(pattern, "*")
		if ok, _ := filepath.Match(pattern, path); !ok {
			continue
		}
		allowed = append(allowed, method)
		if method == "GET" {
			allowed = append(allowed, "HEAD")
		}
	}
	slices.Sort(allowed)
	return strings.Join(slices.Compact(allowed), ", ")
}

// members returns the names of the members of a struct in JSON.
func members(v any) []string {
	var names []string
	for _, field := range reflect.VisibleFields(reflect.TypeOf(v)) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// parseBody returns the value of a body of JSON, or nil if it is not JSON.
func parseBody(body string) any {
	var value any
	json.Unmarshal([]byte(body), &value)
	return value
}

// jsonObject returns the body of a response as a JSON object, and fails the test
// if it is anything else. request is what was sent.
func jsonObject(t testing.TB, request string, r response) map[string]any {
	t.Helper()
	parsed, ok := parseBody(r.body).(map[string]any)
	if !ok {
		t.Fatalf("%s:\n got %s\nwant an object", request, r)
	}
	return parsed
}

// openAPIDescription is api/openapi.json, as far as the tests need it.
type openAPIDescription struct {
	introduction string                      // info.description
	operations   map[string]openAPIOperation // by the patterns of their routes
	schemas      map[string]*schema
}

type openAPIOperation struct {
	OperationID string
	Deprecated  bool
	Parameters  []openAPIParameter
	RequestBody openAPIBody
	Responses   map[string]openAPIBody // by status, or "default"
}

type openAPIParameter struct {
	Name, In, Description string
	Schema                *schema
}

// openAPIBody describes the body of a request or of a response.
type openAPIBody struct {
	Content map[string]struct { // by media type
		Schema  *schema
		Example json.RawMessage // without spaces, and with sorted members
	}
}

// example returns the example of a body of JSON, or nil if there is none.
func (b openAPIBody) example() json.RawMessage { return b.Content["application/json"].Example }

// schemaRef is what a reference to a schema begins with.
const schemaRef = "#/components/schemas/"

// schema is a JSON schema.
type schema struct {
	Ref                         string `json:"$ref"` // a schema that stands in place of this one
	Description, Type, Format   string
	Pattern                     string
	Enum, Required              []string
	Minimum, Maximum            *float64
	MaxLength                   *int
	MaxItems                    int // 0 for any number
	Default                     any
	Items, AdditionalProperties *schema
	Properties                  map[string]*schema
	AllOf                       []*schema
}

// UnmarshalJSON returns an error for a keyword that validate does not know, and
// for a pattern that is malformed.
func (s *schema) UnmarshalJSON(text []byte) error {
	type plain schema // without this method
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode((*plain)(s)); err != nil {
		return err
	}
	_, err := regexp.Compile(s.Pattern)
	return err
}

// readOpenAPI reads api/openapi.json. References to schemas stay, as a schema
// may refer to itself. All other references are replaced.
func readOpenAPI(t testing.TB) openAPIDescription {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal(openAPI, &root); err != nil {
		t.Fatalf("%s: %v", openAPIFile, err)
	}
	// component returns what a reference such as "#/components/schemas/Pet"
	// refers to.
	component := func(ref string) any {
		var part any = root
		for _, name := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			parsed, _ := part.(map[string]any)
			part = parsed[name]
		}
		if part == nil {
			t.Fatalf("%s refers to %s, which does not exist", openAPIFile, ref)
		}
		return part
	}
	var replace func(part any) any
	replace = func(part any) any {
		switch part := part.(type) {
		case []any:
			for i := range part {
				part[i] = replace(part[i])
			}
		case map[string]any:
			if ref, ok := part["$ref"].(string); ok {
				target := component(ref)
				if strings.HasPrefix(ref, schemaRef) {
					return part
				}
				return replace(target)
			}
			for name := range part {
				part[name] = replace(part[name])
			}
		}
		return part
	}

	var file struct {
		Info       struct{ Description string }
		Paths      map[string]map[string]json.RawMessage
		Components struct{ Schemas map[string]*schema }
	}
	if err := json.Unmarshal(encodeJSON(replace(root)), &file); err != nil {
		t.Fatalf("%s: %v", openAPIFile, err)
	}
	api := openAPIDescription{
		introduction: file.Info.Description,
		operations:   map[string]openAPIOperation{},
		schemas:      file.Components.Schemas,
	}
	for path, item := range file.Paths {
		prefix := "/v1"
		if item["servers"] != nil { // another base path than that of the whole file
			prefix = ""
			delete(item, "servers")
		}
		for method, text := range item {
			pattern := strings.ToUpper(method) + " " + prefix + path
			var op openAPIOperation
			if err := json.Unmarshal(text, &op); err != nil {
				t.Fatalf("%s, %s: %v", openAPIFile, pattern, err)
			}
			for _, p := range op.Parameters {
				if p.Schema == nil {
					t.Fatalf("%s, %s: the parameter %q has no schema", openAPIFile, pattern, p.Name)
				}
			}
			api.operations[pattern] = op
		}
	}
	return api
}

// typeName returns the type of a schema as the contract writes it: "string",
// "integer, int64" or the name of the schema that it refers to.
func (s *schema) typeName() string {
	name := cmp.Or(s.Type, strings.TrimPrefix(s.Ref, schemaRef))
	if s.Format != "" {
		name += ", " + s.Format
	}
	return name
}

// queryParameters returns the query parameters of an operation, by name.
func (api openAPIDescription) queryParameters(pattern string) map[string]openAPIParameter {
	parameters := map[string]openAPIParameter{}
	for _, p := range api.operations[pattern].Parameters {
		if p.In == "query" {
			parameters[p.Name] = p
		}
	}
	return parameters
}

// newPet returns a NewPet with a value for each property of the schema.
func (api openAPIDescription) newPet(t testing.TB) map[string]any {
	t.Helper()
	values := map[string]any{"string": "x", "integer": 7.0, "number": 0.5, "boolean": true}
	pet := map[string]any{}
	for name, property := range api.resolve(api.schemas["NewPet"]).Properties {
		property = api.resolve(property)
		pet[name] = values[property.Type]
		if len(property.Enum) > 0 {
			pet[name] = property.Enum[0]
		}
		if pet[name] == nil {
			t.Fatalf("%s: got the type %q of %s in NewPet, want one of %q",
				openAPIFile, property.Type, name, keys(values))
		}
	}
	return pet
}

// checkBody compares the body of a response with its description.
func (api openAPIDescription) checkBody(
	t testing.TB, described openAPIBody, request string, resp response) {
	t.Helper()
	mediaType := resp.header.Get("Content-Type")
	content, ok := described.Content[mediaType]
	if !ok {
		if resp.body != "" || described.Content != nil {
			t.Errorf("%s:\n got %s\nwith the media type %q, want one of %q",
				request, abridge(resp), mediaType, keys(described.Content))
		}
		return
	}
	body := any(resp.body)
	if mediaType == "application/json" {
		if err := json.Unmarshal([]byte(resp.body), &body); err != nil {
			t.Errorf("%s:\n got %s\nwhich is not JSON: %v", request, abridge(resp), err)
			return
		}
	}
	if err := api.validate("the body", content.Schema, body); err != nil {
		t.Errorf("%s:\n got %s\n%v", request, abridge(resp), err)
	}
}

// resolve returns the schema that s refers to, with the parts of its allOf as
// its own. For a schema that does not exist, it returns one without a type.
func (api openAPIDescription) resolve(s *schema) *schema {
	for s != nil && s.Ref != "" {
		s = api.schemas[strings.TrimPrefix(s.Ref, schemaRef)]
	}
	if s == nil {
		return &schema{}
	}
	if s.AllOf == nil {
		return s
	}
	whole := &schema{Type: "object", Properties: maps.Clone(s.Properties), Required: s.Required}
	if whole.Properties == nil {
		whole.Properties = map[string]*schema{}
	}
	for _, part := range s.AllOf {
		part = api.resolve(part)
		maps.Copy(whole.Properties, part.Properties)
		whole.Required = slices.Concat(whole.Required, part.Required)
	}
	return whole
}

// validate returns an error unless the schema allows the value and describes
// each of its members. The error calls the value what.
func (api openAPIDescription) validate(what string, s *schema, value any) error {
	s = api.resolve(s)
	if s.Type == "" {
		return fmt.Errorf("%s has no schema with a type in %s", what, openAPIFile)
	}
	typeName := jsonType(value)
	if typeName != s.Type && !(typeName == "number" && s.Type == "integer") {
		return fmt.Errorf("%s is of the type %s, want %s", what, typeName, s.Type)
	}
	isAllowed := true
	switch v := value.(type) {
	case string:
		isAllowed = regexp.MustCompile(s.Pattern).MatchString(v) &&
			(s.Enum == nil || slices.Contains(s.Enum, v)) &&
			(s.MaxLength == nil || utf8.RuneCountInString(v) <= *s.MaxLength)
	case float64:
		isAllowed = (s.Type == "number" || v == math.Trunc(v)) &&
			(s.Minimum == nil || v >= *s.Minimum) &&
			(s.Maximum == nil || v <= *s.Maximum)
	case []any:
		isAllowed = s.MaxItems == 0 || len(v) <= s.MaxItems
		for i, element := range v {
			if err := api.validate(fmt.Sprintf("%s[%d]", what, i), s.Items, element); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				return fmt.Errorf("%s lacks the member %s", what, name)
			}
		}
		for _, name := range keys(v) {
			described := cmp.Or(s.Properties[name], s.AdditionalProperties)
			if described == nil {
				return fmt.Errorf("%s has the member %s, which is not described", what, name)
			}
			if err := api.validate(what+"."+name, described, v[name]); err != nil {
				return err
			}
		}
	}
	if !isAllowed {
		return fmt.Errorf("%s is %v, which its schema does not allow", what, value)
	}
	return nil
}

// jsonType returns the type that a schema has for a value that was decoded from
// JSON. It returns "number" for an integer, too.
func jsonType(value any) string {
	switch value.(type) {
	case string:
		return "string"
	case float64:
		return "number"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "null"
}

// Helpers: the documents.

// agree reports an error unless a document says what is true of the service.
func agree[T any](t *testing.T, what, file string, documented, actual T) {
	t.Helper()
	if !reflect.DeepEqual(documented, actual) {
		says, want := inFailure(documented, actual)
		t.Errorf("%s\n%s says %s\nwant %s", abridge(what), file, says, want)
	}
}

// compareStatus sends a request, and compares the status of the answer with the
// one that a document has.
func compareStatus(t *testing.T, s *testServer, file, request string, documented int64) {
	t.Helper()
	agree(t, request, file, documented, int64(s.do(t, request).status))
}

// tableRow is a row of a Markdown table: its cells, by the names of their
// columns.
type tableRow map[string]string

// markdownTable returns the rows of a table of a Markdown file: the first table
// under a heading, and above the next one, that has all of these columns. Their
// order does not matter, and their names are without backquotes. The heading is
// either a line such as "## 7. Errors", or the bold name at the beginning of a
// paragraph, such as "**NewPet**". The test fails if there is no such table, or if
// it has no rows.
func markdownTable(t *testing.T, file, heading string, columns ...string) []tableRow {
	t.Helper()
	_, section, found := strings.Cut("\n"+readFile(t, file), "\n"+heading)
	if !found {
		t.Fatalf("%s does not have the heading %q", file, heading)
	}
	section, _, _ = strings.Cut(section, "\n#")

	cellsIn := func(line string) []string {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		return cells
	}
	for _, paragraph := range strings.Split(section, "\n\n") {
		lines := strings.Split(strings.TrimSpace(paragraph), "\n")
		if len(lines) < 3 || !strings.HasPrefix(lines[0], "|") {
			continue
		}
		names := cellsIn(strings.ReplaceAll(lines[0], "`", ""))
		if slices.ContainsFunc(columns, func(name string) bool { return !slices.Contains(names, name) }) {
			continue
		}
		var rows []tableRow
		for _, line := range lines[2:] { // below the names and a line of hyphens
			cells := cellsIn(line)
			if len(cells) != len(names) {
				t.Fatalf("%s, %s: got %d cells, want one for each of %q: %s",
					file, heading, len(cells), names, line)
			}
			row := tableRow{}
			for i, name := range names {
				row[name] = cells[i]
			}
			rows = append(rows, row)
		}
		return rows
	}
	t.Fatalf("%s has no table with rows and the columns %q under %q", file, columns, heading)
	return nil
}

// codeSpans returns the texts between backquotes.
func codeSpans(text string) []string {
	var spans []string
	for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
		spans = append(spans, match[1])
	}
	return spans
}

// firstCode returns the first text between backquotes.
func firstCode(t *testing.T, text string) string {
	t.Helper()
	spans := codeSpans(text)
	if len(spans) == 0 {
		t.Fatalf("got %q, want a text with backquotes", text)
	}
	return spans[0]
}

// namesIn returns the names in a column of a table: the first text between
// backquotes in each of its cells.
func namesIn(t *testing.T, rows []tableRow, column string) []string {
	t.Helper()
	var names []string
	for _, row := range rows {
		names = append(names, firstCode(t, row[column]))
	}
	return names
}

// firstNumber returns the first integer in a text.
func firstNumber(t *testing.T, text string) int64 {
	t.Helper()
	numbers := numbersIn(text)
	if len(numbers) == 0 {
		t.Fatalf("got %q, want a text with a number", text)
	}
	return numbers[0]
}

// numbersIn returns the integers in a text. They may have commas, as in 1,000.
func numbersIn(text string) []int64 {
	var numbers []int64
	for _, digits := range regexp.MustCompile(`-?\d[\d,]*`).FindAllString(text, -1) {
		// The largest int64 takes the place of what is out of its range.
		n, _ := strconv.ParseInt(strings.ReplaceAll(digits, ",", ""), 10, 64)
		numbers = append(numbers, n)
	}
	return numbers
}

// bounds returns the minimum and the maximum of a schema, as far as it has them.
func bounds(s *schema) []int64 {
	var list []int64
	if s != nil && s.Minimum != nil {
		list = append(list, int64(*s.Minimum))
	}
	if s != nil && s.Maximum != nil {
		list = append(list, int64(*s.Maximum))
	}
	return list
}

// kindOf returns what the contract calls a body: Pet, Pets, Error or none.
func kindOf(body string) string {
	if body == "" {
		return "none"
	}
	switch value := parseBody(body).(type) {
	case []any:
		return "Pets"
	case map[string]any:
		if value["message"] != nil {
			return "Error"
		}
		return "Pet"
	}
	return "not JSON"
}

// readmeOperations returns the table of the operations in README.
func readmeOperations(t *testing.T) []tableRow {
	t.Helper()
	return markdownTable(t, readmeFile, "## The API", "operation", "request", "answer")
}

// readmeOperation returns the row of an operation in the table of README.
func readmeOperation(t *testing.T, operation string) tableRow {
	t.Helper()
	for _, row := range readmeOperations(t) {
		if name, _, _ := strings.Cut(row["operation"], ","); name == operation {
			return row
		}
	}
	t.Fatalf("%s has no row for %s", readmeFile, operation)
	return nil
}

// contractMembers returns the table of the members of a type in the contract.
func contractMembers(t *testing.T, name string) []tableRow {
	t.Helper()
	return markdownTable(t, contractFile, "**"+name+"**", "member", "type", "required")
}

// readmeFaults returns the table of the codes of a fault in README.
func readmeFaults(t *testing.T) []tableRow {
	t.Helper()
	return markdownTable(t, readmeFile, "## Make it fail",
		"code", "operation performed?", "what the client gets")
}

// faultParameterRows returns the rows of the parameters of a fault in the
// reference, by name.
func faultParameterRows(t *testing.T) map[string]tableRow {
	t.Helper()
	rows := map[string]tableRow{}
	for _, row := range markdownTable(t, referenceFile, "## Faults", "parameter", "value", "effect") {
		rows[firstCode(t, row["parameter"])] = row
	}
	return rows
}

// faultParameter returns the row of a parameter of a fault.
func faultParameter(t *testing.T, name string) tableRow {
	t.Helper()
	row := faultParameterRows(t)[name]
	if row == nil {
		t.Fatalf("%s has no row for %s", referenceFile, name)
	}
	return row
}

// Helpers: the model of TestModel.

// model has the pets that the service should have, in ascending order of id. The
// slice must not be modified, as the model of a seed shares it.
type model struct {
	pets   []Pet
	lastID int64
}

// statuses are the statuses of a pet, with the empty one first.
var statuses = []string{"", "available", "pending", "sold"}

// randomPet returns a pet whose values other pets are likely to have too.
func randomPet(random *rand.Rand) NewPet {
	categories := []int64{math.MinInt64, -1, 0, 7, 8, math.MaxInt64}
	return NewPet{
		Name:       strings.Repeat("n", random.Intn(30)),
		CategoryID: categories[random.Intn(len(categories))],
		Status:     PetStatus(statuses[random.Intn(len(statuses))]),
	}
}

// randomSeed returns a seed and its model. The pets are shuffled, and three
// without an id follow them.
func randomSeed(random *rand.Rand) (m model, seed string) {
	add := func(step int64) Pet {
		m.lastID += step
		p := Pet{ID: m.lastID, NewPet: randomPet(random)}
		m.pets = append(m.pets, p)
		return p
	}
	var elements []string
	for range random.Intn(60) {
		elements = append(elements, string(encodeJSON(add(1+random.Int63n(4)))))
	}
	random.Shuffle(len(elements), func(i, j int) {
		elements[i], elements[j] = elements[j], elements[i]
	})
	for range 3 {
		elements = append(elements, string(encodeJSON(add(1).NewPet)))
	}
	return m, "[" + strings.Join(elements, ",") + "]"
}

// modelSteps return, for each operation, a random request and its response.
var modelSteps = map[string]func(m *model, random *rand.Rand) (request, want string){
	"listPets":  listStep,
	"createPet": createStep,
	"getPet":    getStep,
}

func listStep(m *model, random *rand.Rand) (request, want string) {
	limit, after, status := 20, int64(math.MinInt64), PetStatus("")
	kept := "" // the part of the query that Link keeps
	if random.Intn(2) == 0 {
		limit = random.Intn(maxLimit) + 1
		kept += fmt.Sprintf("limit=%d&", limit)
	}
	if random.Intn(2) == 0 {
		status = PetStatus(statuses[random.Intn(3)+1])
		kept += fmt.Sprintf("status=%s&", status)
	}
	query := kept
	if random.Intn(2) == 0 {
		after = random.Int63n(m.lastID+5) - 2
		query += fmt.Sprint("after=", after)
	}

	page, link := []Pet{}, ""
	for _, p := range m.pets {
		if p.ID <= after || status != "" && p.Status != status {
			continue
		}
		if len(page) == limit {
			last := page[limit-1].ID
			link = fmt.Sprintf("\nLink: </v1/pets?%safter=%d>; rel=\"next\"", kept, last)
			break
		}
		page = append(page, p)
	}
	return "GET /v1/pets?" + query, "200 " + string(encodeJSON(page)) + link
}

func createStep(m *model, random *rand.Rand) (request, want string) {
	m.lastID++
	p := Pet{ID: m.lastID, NewPet: randomPet(random)}
	m.pets = append(slices.Clip(m.pets), p)
	return "POST /v1/pets " + string(encodeJSON(p.NewPet)),
		fmt.Sprintf("201 %s\nLocation: /v1/pets/%d", encodeJSON(p), p.ID)
}

func getStep(m *model, random *rand.Rand) (request, want string) {
	id := random.Int63n(m.lastID+3) - 1
	want = fmt.Sprint("404 not_found: there is no pet ", id)
	if i := slices.IndexFunc(m.pets, func(p Pet) bool { return p.ID == id }); i >= 0 {
		want = "200 " + string(encodeJSON(m.pets[i]))
	}
	return fmt.Sprint("GET /v1/pets/", id), want + deprecated
}

// Helpers: benchmarks.

// proc returns the number that a group of a regular expression matches in a
// file of the process in /proc. It skips the test where there is no /proc.
func (p *process) proc(t testing.TB, file, pattern string) int {
	t.Helper()
	name := fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, file)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Skip("memory and CPU time are read from /proc")
	}
	m := regexp.MustCompile(pattern).FindSubmatch(text)
	if m == nil {
		t.Fatalf("%s: got %q, want a match of %s", name, cutMiddle(string(text), 500), pattern)
	}
	return atoi(t, string(m[1]))
}

// cpu returns the CPU time that the process has used, in steps of 10 ms.
func (p *process) cpu(t testing.TB) time.Duration {
	user := p.proc(t, "stat", `(?:\S+ ){13}(\d+)`)
	system := p.proc(t, "stat", `(?:\S+ ){14}(\d+)`)
	return time.Duration(user+system) * 10 * time.Millisecond
}

// compareWithBare sends b.N requests to p and to a bare server, over 32
// connections.
func compareWithBare(b *testing.B, p *process, request string) {
	answer := p.do(b, request)
	cmd := petstoreCommand()
	cmd.Env = append(cmd.Env, "PETSTORE_TEST_CHILD=bare",
		"PETSTORE_TEST_BODY="+answer.body,
		"PETSTORE_TEST_HEADER="+string(encodeJSON(answer.header)))
	servers := []*process{p, startProcess(b, cmd)}
	load := func(s *process, n int) {
		concurrently(b, 32, func(i int) error {
			for ; i < n; i += 32 {
				if resp := s.do(b, request); resp.err != nil {
					return fmt.Errorf("%s: %w", request, resp.err)
				}
			}
			return nil
		})
	}
	var used [2]time.Duration
	for sent := 0; sent < b.N; sent += 500 { // in turns, so that other programs disturb both alike
		for i, s := range servers {
			begin := s.cpu(b)
			load(s, min(500, b.N-sent))
			used[i] += s.cpu(b) - begin
		}
	}
	b.ReportMetric(0, "ns/op") // it would be the time of both servers and of the client
	b.ReportMetric(float64(used[0].Microseconds())/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(used[0])/float64(max(used[1], 1)), "x-bare")
}

// serveBare runs the bare server, which sends the same response to all requests.
func serveBare() error {
	var header http.Header
	if err := json.Unmarshal([]byte(os.Getenv("PETSTORE_TEST_HEADER")), &header); err != nil {
		return err
	}
	header.Del("Date")
	body := os.Getenv("PETSTORE_TEST_BODY")
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	srv := newServer(newService(testKey, newStore(), 0, nil, log))
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		maps.Copy(w.Header(), header)
		if r.Method == http.MethodPost {
			w.WriteHeader(201)
		}
		io.WriteString(w, body)
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		srv.Close() // standard input has ended, and so has the test binary
	}()
	fmt.Printf("http://%s/v1\n", ln.Addr())
	return srv.Serve(ln)
}
