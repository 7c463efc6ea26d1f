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
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

// The tests stand in the order of the README, and what they share comes last. Scripts of HTTP: see play.

// README: Run it.

// A key that is given is not shown. Without one, each run makes one, and shows it in a curl line and a link.
func TestKeyAtTheStart(t *testing.T) {
	given := command{key: "!~" + strings.Repeat("k", 4094)}.start(t)
	equal(t, "stderr", given.stderr.String(), "a page for browsers is at http://"+given.addr+"/\n")
	given.play(t, "GET /v1/pets\n200 []")
	s, other := command{}.start(t), command{}.start(t)
	const banner = "PETSTORE_API_KEY is not set, so this run has a key of its own:\n\n" +
		"    curl -H 'Authorization: Bearer {key}' http://{addr}/v1/pets\n    http://{addr}/#key={key}\n\n"
	fill := strings.NewReplacer("{key}", s.key, "{addr}", s.addr)
	equal(t, "stderr", s.stderr.String(), fill.Replace(banner))
	s.play(t, "GET /v1/pets\n200 []")
	s.as(other.key).play(t, "GET /v1/pets\n"+wrongKey)
}

// The base URL on standard output is one that clients on this machine can use.
func TestBaseURL(t *testing.T) {
	for _, addr := range []string{":0", "0.0.0.0:0", "127.0.0.1:"} {
		start(t, "-addr", addr).play(t, "GET /v1/pets\n200 []")
	}
	equal(t, "of all", rootURL(&net.TCPAddr{IP: net.IPv6unspecified, Port: 80}), "http://127.0.0.1:80")
}

// The console blocks of README.md are one session, which prints in each shell what they show.
func TestReadme(t *testing.T) {
	if exec.Command("curl", "--json", "{}", "--version").Run() != nil {
		t.Skip("curl 7.82 is not installed")
	}
	varies := regexp.MustCompile(`(Date: ).*|("time":")[^"]*|("seconds":)[0-9.]*|(curl/)[0-9.]*|\r|\s+$`)
	plain := func(output string) string { return varies.ReplaceAllString(output, "$1$2$3$4") }
	block := regexp.MustCompile("(?s)\n```console\n(.*?)```")
	do := regexp.MustCompile(`(?m)^\$ ((?:.*\\\n)*.*)\n((?:(?:[^$\n].*)?\n)*)`) // and its output
	for shell, args := range map[string][]string{
		"sh": nil, "bash": nil, "zsh": {"-f", "-i", "+o", "promptsp"}, // typed, so that # begins no comment
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(shell); err != nil {
				t.Skip(shell, " is not installed")
			}
			home := t.TempDir()
			os.WriteFile(home+"/.curlrc", []byte("silent\n"), 0o600) // no progress meter
			var commands, outputs []string
			session, here := "", strings.NewReplacer()
			for _, b := range block.FindAllStringSubmatch(readFile("README.md"), -1) {
				for _, m := range do.FindAllStringSubmatch(b[1], -1) {
					send, want := m[1], m[2]
					if key, found := strings.CutSuffix(send, "go run ."); found {
						key = strings.TrimPrefix(strings.TrimSpace(key), "PETSTORE_API_KEY=")
						s := command{key: key}.start(t)
						send = "cat <<'.'\n" + s.stderr.String() + "http://" + s.addr + "/v1\n."
						here = strings.NewReplacer("127.0.0.1:8080", s.addr)
					}
					session += here.Replace(send) + "\nprintf '\\036'\n" // ends an output
					commands, outputs = append(commands, send), append(outputs, plain(here.Replace(want)))
				}
			}
			cmd := exec.Command(shell, args...)
			cmd.Env = append(os.Environ(), "CURL_HOME="+home, "PS1=", "PS2=")
			cmd.Dir, cmd.Stdin = home, strings.NewReader(session)
			out := within(t, "the end", func() []byte { out, _ := cmd.CombinedOutput(); return out })
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
				"FIFO="+fifo, "SELF="+os.Args[0], "PETSTORE_TEST_CHILD=petstore")
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

const (
	pet    = `{"name":"a","categoryId":1}`        // a new one, of 27 bytes
	stored = `{"id":1,"name":"a","categoryId":1}` // what an empty store makes of it
	made   = "201 " + stored + "\nLocation: /v1/pets/1"
	byPage = "\nPrefer: " + pagePrefer // spares a request the standing fault and the journal

	simulated = "this error is simulated, as was asked for"
	teapot    = "418 im_a_teapot"
	gateway   = "<html><head><title>502 Bad Gateway</title></head><body>502 Bad Gateway</body></html>\n"
	html502   = "502 " + gateway + "Content-Type: text/html"
)

var (
	nothing = [4]string{"no answer", "no answer", "no answer", "no answer"}
	halves  = [4]string{
		"200 [{\"id\":1,\"name\":\"a…\nContent-Length: 37",
		"no answer",
		"201 {\"id\":2,\"name\":\"a…\nContent-Length: 35\nLocation: /v1/pets/2",
		"400 {\"code\":\"invalid_body\",\"message\":\"name is m…\nContent-Length: 86",
	}
)

// faultRows tells of each code of a fault what becomes of the four requests of TestFaultCodes.
var faultRows = map[string]struct {
	done    bool   // whether the operation is
	answer  string // in the journal; by default that of the operation, if it is done
	replies [4]string
}{
	"418": {answer: string(encode(newError(418, simulated))) + "\n",
		replies: [4]string{teapot, "418", teapot, teapot}},
	"hangup":   {replies: nothing},
	"lost":     {done: true, replies: nothing},
	"truncate": {done: true, replies: halves},
	"stall":    {done: true, replies: halves},
	"html": {done: true, answer: gateway,
		replies: [4]string{html502, "502\nContent-Type: text/html", html502, html502}},
}

// What the client, the journal and the store have of each fault, and that a reset ends it all.
func TestFaultCodes(t *testing.T) {
	requests := []string{"GET /v1/pets", "HEAD /v1/pets", "POST /v1/pets " + pet, "POST /v1/pets {}"}
	equal(t, "the codes of faultRows", keys(faultRows), sorted(append([]string{"418"}, faultCodes...)))
	for code, row := range faultRows {
		for i, request := range requests {
			for _, standing := range []bool{false, true} {
				name, want := fmt.Sprintf("%s/%s/%t", code, request, standing), row.replies[i]
				t.Run(name, func(t *testing.T) { testFault(t, code, request, want, standing) })
			}
		}
	}
}

func testFault(t *testing.T, code, request, want string, standing bool) {
	t.Parallel()
	row, isOpen := faultRows[code], code == "stall"
	s := start(t, "-quiet", "-seed", tempFile(t, "["+pet+"]"))
	plain := s.do(t, strings.Replace(request, "HEAD", "GET", 1)) // without the fault
	s.do(t, "POST /__admin/reset")
	send := request
	if standing {
		s.do(t, "PUT /__admin/fault?code="+code)
	} else if send += "\nPrefer: code=" + code; want != "no answer" {
		want += "\nPreference-Applied: code=" + code
	}
	replies := make(chan reply, 1)
	go func() { replies <- s.do(t, send) }()
	if !isOpen {
		receive(t, "the answer", replies).check(t, send, want)
	}
	s.untilRecorded(t, 1)
	requests, _ := s.journal(t)
	parts := append(strings.SplitN(request, " ", 3), "")
	status, _ := strconv.Atoi(want[:3]) // 0 for no answer
	e := requests[0]                    // whose Time, Headers and Seconds may be any
	e.Method, e.URL, e.Body, e.Status = parts[0], parts[1], parts[2], status
	e.Answer, e.Error, e.Fault = row.answer, "", "code="+code
	if row.done {
		e.Answer, e.Error = cmp.Or(row.answer, plain.body), plain.error().Message
	} else if status == 418 {
		e.Error = simulated
	}
	equal(t, "the journal", requests, []entry{e})
	isAdded := s.do(t, "GET /v1/pets/2"+byPage).status == 200
	equal(t, "whether a pet is added", isAdded, row.done && plain.status == 201)
	s.do(t, "POST /__admin/reset")
	if isOpen {
		receive(t, "the end of the answer", replies).check(t, send, want)
	}
	s.recorded(t)
	s.play(t, "GET /__admin/fault\n200 {}\nGET /v1/pets\n200 ["+stored+"]")
}

// Half of a stalled answer comes at once. Then the connection is open and silent, and the client may leave.
func TestStall(t *testing.T) {
	left := make(chan bool, 1)
	s := serveAPI(t, plainAPI(), func(srv *http.Server) {
		srv.ConnState = func(_ net.Conn, state http.ConnState) { // of the only connection
			if state == http.StateClosed {
				left <- true
			}
		}
	})
	begin, c := time.Now(), s.dial(t, "GET /v1/pets"+withKey+"Prefer: code=stall\n\n")
	resp := must(http.ReadResponse(c.in, nil))
	half := must(io.ReadAll(io.LimitReader(resp.Body, resp.ContentLength/2)))
	equal(t, "half of the answer", string(half), "[")
	c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	_, err := c.in.ReadByte()
	equal(t, "whether the connection is silent and open", errors.Is(err, os.ErrDeadlineExceeded), true)
	c.Close()
	receive(t, "the end of the stall", left)
	equal(t, "whether it ends before its time", time.Since(begin) < maxWait, true)
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
	for _, want := range []string{"code is empty", "code is 399", "code is Hangup", "code is 0503",
		"delay is 30.01", "delay is -1", "delay is 1e1", "delay is empty", "retry-after is 3601",
		"retry-after is 1.5"} {
		header := strings.NewReplacer(" is ", "=", "empty", "").Replace(want)
		_, err := parsePrefer([]string{header, "code=503"})
		got, _, _ := strings.Cut(fmt.Sprint(err), "; it must be ")
		equal(t, header, got, want)
	}
	f, _ := parsePrefer([]string{"delay=1.5", "wait=9", "answer-delay=0.25"})
	equal(t, "delays", []time.Duration{f.delay, f.answerDelay}, []time.Duration{1500e6, 250e6})
}

// A Prefer header strikes its own request, under /v1 and with the key.
func TestPrefer(t *testing.T) {
	const applied = "\nPreference-Applied: "
	s := start(t)
	s.playRows(t, []row{
		{send: "GET /v1/pets?%zz\nPrefer: code=429",
			want: "429 too_many_requests: " + simulated + "\nRetry-After: 1" + applied + "code=429"},
		{send: "GET /v1/nothing\nPrefer: wait=1\nPrefer: code=401", want: wrongKey + applied + "code=401"},
		{send: "BREW /v1//pets/?%zz {\nPrefer: code=599, retry-after=7",
			want: "599 status_599\nRetry-After: 7" + applied + "code=599, retry-after=7"},
		{send: "GET /v1/pets\nPrefer: delay=0, retry-after=5", want: "200 []" + applied + "delay=0"},
		{send: "GET /v1/pets/1\nPrefer: code=html", want: html502 + applied + "code=html"},
		{send: "GET /healthz\nPrefer: code=hangup", want: `200 {"status":"ok"}`},
	})
}

// Who leaves during a delay has done nothing; during an answer-delay, the pet is there, and in the journal.
func TestLeave(t *testing.T) {
	for fault, want := range map[string]entry{
		"code=lost, delay=30":        {Error: "the client left before its answer"},
		"delay=0.1, answer-delay=30": {Status: 201, Answer: stored + "\n"},
	} {
		s, isDone := start(t), want.Status == 201
		conn := s.dial(t, "POST /v1/pets"+withKey+"Prefer: "+fault+"\nContent-Length: 27\n\n"+pet)
		if !isDone {
			conn.CloseWrite() // which is leaving too
		}
		s.untilRecorded(t, 1)
		requests, _ := s.journal(t)
		got := requests[0]
		want.Method, want.URL, want.Body, want.Fault = "POST", "/v1/pets", pet, fault
		want.Time, want.Seconds, want.Headers = got.Time, got.Seconds, got.Headers
		equal(t, "the journal", got, want)
		equal(t, "whether the pet is there", s.do(t, "GET /v1/pets/1").status == 200, isDone)
		equal(t, "whether the seconds fit", got.Seconds < 30 && (!isDone || got.Seconds >= 0.1), true)
	}
}

// The standing fault strikes the requests that it is for, and counts them.
func TestStandingFault(t *testing.T) {
	s := start(t)
	const (
		put, get = "PUT /__admin/fault?", "GET /__admin/fault"
		first    = `200 {"code":"503","operation":"createPet",`
		second   = `200 {"delay":"0","retry-after":"5","operation":"listPets",`
		third    = `200 {"code":"418","answer-delay":"0.0","skip":2,"times":2,`
	)
	s.playRows(t, []row{
		{send: put + "code=503&operation=createPet", want: first + `"met":0,"struck":0}`},
		{send: "BREW /v1/pets", want: "405 method_not_allowed\nAllow: GET, HEAD, POST"},
		{send: "POST /v1/pets\nPrefer: code=1", want: "400 invalid_parameter: code"},
		{send: "POST /v1/pets {}\nPrefer: wait=1", want: "503 service_unavailable\nRetry-After: 1"},
		{send: get, want: first + `"met":1,"struck":1}`},
		{send: put + "delay=0&retry-after=5&operation=listPets", want: second + `"met":0,"struck":0}`},
		{send: "GET /v1/pets?limit=x", want: "400 invalid_parameter: limit"},
		{send: "HEAD /v1/pets", want: "200"},
		{send: "GET /v1/pets/.", want: "404 not_found"},
		{send: get, want: second + `"met":2,"struck":2}`},
		{send: put + "times=2&skip=2&code=418&answer-delay=0.0", want: third + `"met":0,"struck":0}`},
		{send: "GET /v1/pets/", want: "404 not_found"},
		{send: "GET /v1/pets", want: "200 []"},
		{send: "GET /v1/nothing", want: teapot},
		{send: "GET /v1/pets\nPrefer: delay=0", want: "200 []\nPreference-Applied: delay=0"},
		{send: "GET /v1/pets", want: teapot},
		{send: "GET /v1/pets", want: "200 []"},
		{send: put + "code=x", want: "400 invalid_parameter: code is x"},
		{send: get, want: third + `"met":5,"struck":2}`},
		{send: "DELETE /__admin/fault", want: "204"},
		{send: get, want: "200 {}"},
	})
}

// However many requests meet a standing fault at once, it strikes exactly those it should.
func TestExactCounts(t *testing.T) {
	const n = 100000 // requests of each of 8 clients
	for _, c := range []struct{ skip, times, struck int64 }{
		{skip: 3 * n, times: 4 * n, struck: 4 * n},
		{skip: 3 * n, times: 0, struck: 5 * n},
	} {
		f, struck := &standingFault{Skip: c.skip, Times: c.times}, new(atomic.Int64)
		together(8, func(int) {
			for range n {
				if f.strikes("listPets") {
					struck.Add(1)
				}
			}
		})
		got, want := [3]int64{struck.Load(), f.Struck, f.Met}, [3]int64{c.struck, c.struck, 8 * n}
		equal(t, fmt.Sprint(c, ": struck, struck and met"), got, want)
	}
}

// README: Seed and reset.

// A seed keeps the ids that it gives; a pet without one gets the next. An error names the place.
func TestReadSeed(t *testing.T) {
	const anID, anArray = "; it must be an integer from 1 to 4611686018427387904", "; it must be a JSON array"
	const ofID, twice = `[{"name":"","categoryId":1,"id":`, ": id 1 is given twice"
	for _, c := range []struct {
		name, seed string
		ids        []int64 // in the order of the list
		err        string  // how it begins
	}{
		{name: "any order", seed: ofID + "7}," + pet + "," + ofID[1:] + "3}," + pet + "]",
			ids: []int64{3, 7, 8, 9}},
		{name: "the largest id", seed: ofID + "4611686018427387904}]", ids: []int64{1 << 62}},
		{name: "a long pet", seed: ofID + `9,"x":"` + strings.Repeat("x", maxBody) + `"}]`, ids: []int64{9}},
		{name: "nothing", err: "the seed is empty" + anArray},
		{name: "null", seed: " null\n", err: "the seed is null" + anArray},
		{name: "no name", seed: "[" + pet + `,{"id":1}]`, err: "pet 2: name is missing; it must be a string"},
		{name: "an id of 0", seed: ofID + "0}]", err: "pet 1: id is 0" + anID},
		{name: "an id beyond", seed: ofID + "4611686018427387905}]", err: "pet 1: id is 46116860184273879"},
		{name: "an id twice", seed: "[" + stored + "," + pet + "," + stored + "]", err: "pet 3" + twice},
		{name: "an id that is taken", seed: "[" + pet + "," + stored + "]", err: "pet 2" + twice},
		{name: "half of it", seed: "[" + pet, err: "the seed is not JSON: unexpected end of JSON input, " +
			"at byte 28" + anArray + `, such as [{"name":"Rex","categoryId":7}]`},
		{name: "more behind it", seed: "[] x", err: "the seed is not JSON: invalid character 'x' after"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := readSeed([]byte(c.seed))
			if want := cmp.Or(c.err, "<nil>"); !strings.HasPrefix(fmt.Sprint(err), want) {
				t.Errorf("%v, want %s", err, want)
			}
			var ids []int64
			for _, p := range cmp.Or(s, newStore()).list("", 0) {
				ids = append(ids, p.id)
				equal(t, "the pet with that id", s.get(p.id), p)
			}
			equal(t, "ids", ids, c.ids)
		})
	}
}

// The pets of -seed are there at the start and after each reset, but for one with a body, a seed too.
func TestSeed(t *testing.T) {
	const ofFile = `{"id":5,"name":"of the file","categoryId":1,"status":"sold"}`
	s := start(t, "-seed", tempFile(t, "["+ofFile+"]"))
	const made6 = `201 {"id":6,"name":"a","categoryId":1}` + "\nLocation: /v1/pets/6"
	s.playRows(t, []row{
		{send: "GET /v1/pets", want: "200 [" + ofFile + "]"},
		{send: "POST /v1/pets " + pet, want: made6},
		{send: `POST /__admin/reset [{"name":"x"}]`, want: "400 invalid_body: pet 1: categoryId is missing"},
		{send: "GET /v1/pets?status=sold", want: "200 [" + ofFile + "]"},
		{send: "POST /__admin/reset", want: "204"},
		{send: "POST /v1/pets " + pet, want: made6},
		{send: "POST /__admin/reset [" + pet + "]", want: "204"},
		{send: "GET /v1/pets", want: "200 [" + stored + "]"},
		{send: "POST /__admin/reset", want: "204"},
		{send: "GET /v1/pets", want: "200 [" + ofFile + "]"},
	})
	list := s.do(t, "GET /v1/pets").body // which is a seed too
	start(t, "-seed", tempFile(t, list)).play(t, "GET /v1/pets\n200 "+list)
	command{key: testKey, args: []string{"-seed", tempFile(t, "[5]")}}.ends(t, 1,
		`petstore: \S+pets.json: pet 1: the pet is 5; it must be a JSON object, such as .*`)
}

// A request that waits, or whose body comes, when its world ends is answered at once, from its own world.
func TestWorldEnds(t *testing.T) {
	const made2 = "201 {\"id\":2,\"name\":\"a\",\"categoryId\":1}\nLocation: /v1/pets/2"
	for name, c := range map[string]struct {
		latency time.Duration
		fault   string // a standing one; without fault and latency, the body comes when the world is over
		want    string
		added   bool // whether the pet is
	}{
		"latency":       {latency: time.Hour, want: made2, added: true},
		"a body":        {want: made2, added: true},
		"delay":         {fault: "delay=30", want: made2, added: true},
		"answer-delay":  {fault: "answer-delay=30", want: made2, added: true},
		"an error":      {fault: "code=418&delay=30", want: teapot},
		"a hangup":      {fault: "code=hangup&delay=30", want: "no answer"},
		"a lost answer": {fault: "code=lost&delay=30&answer-delay=30", want: "no answer", added: true},
		"a stall":       {fault: "code=stall", want: halves[2], added: true},
	} {
		for _, end := range []string{"reset", "stop"} {
			t.Run(name+"/"+end, func(t *testing.T) {
				t.Parallel()
				stopping, stop := context.WithCancel(context.Background())
				defer stop()
				a := testAPI(must(readSeed([]byte("["+stored+"]"))), c.latency, stopping)
				s, world, sent := serveAPI(t, a), a.current.Load(), 0 // bytes of the body
				if c.fault != "" || c.latency != 0 {
					s.do(t, "PUT /__admin/fault?"+c.fault) // without a fault, a 400
					sent = len(pet)
				}
				const head = "POST /v1/pets" + withKey + "Content-Length: 27\nExpect: 100-continue\n\n"
				conn := s.dial(t, head+pet[:sent])
				conn.read().check(t, "the headers", "100")
				if c.fault != "" {
					s.untilMet(t)
				}
				if end == "stop" {
					stop()
				} else {
					s.do(t, "POST /__admin/reset []")
					s.do(t, "PUT /__admin/fault?code=503")
				}
				io.WriteString(conn, pet[sent:])
				conn.read().check(t, "the answer", c.want)
				requests, _ := world.journal.all()
				status, _ := strconv.Atoi(c.want[:3]) // 0 for no answer
				equal(t, "the status in the journal", requests[0].Status, status)
				equal(t, "whether the pet is added", world.pets.get(2) != nil, c.added)
				if end == "reset" {
					s.recorded(t) // the next world has nothing of it
					s.play(t, "GET /__admin/fault\n"+`200 {"code":"503","met":0,"struck":0}`)
					equal(t, "pets of the next world", len(a.current.Load().pets.pets), 0)
				}
			})
		}
	}
}

// README: The journal.

// The journal has each request as it came, with what it was answered, 1,000 bytes of it.
func TestJournal(t *testing.T) {
	s, long := start(t, "-seed", tempFile(t, seedOf(40))), strings.Repeat("x", maxBody+1)
	for _, c := range []struct {
		send string
		want entry // Error begins so; Method, URL and Headers are those of send
	}{
		{send: "GET /v1/pets?limit=5&x=%20%zz;+", want: entry{Status: 400, Error: "the query is malformed"}},
		{send: "BREW /v1/pets <ü>\xff", want: entry{Status: 405, Body: "<ü>\ufffd", Error: "this path"}},
		{send: "POST /pets " + pet, want: entry{Status: 404, Body: pet, Error: "no such path"}},
		{send: "POST /v1 x\nAuthorization: Basic x", want: entry{Status: 401, Error: "send the API key"}},
		{send: "GET /v1/pets\nPrefer: delay=0.0", want: entry{Status: 200, Fault: "delay=0.0"}},
		{send: "POST /pets " + long + "\nTransfer-Encoding: chunked",
			want: entry{Status: 413, Error: "the body is over 65536 bytes"}},
	} {
		s.do(t, "DELETE /__admin/requests")
		answer := s.do(t, c.send).body
		requests, total := s.journal(t)
		equal(t, "requests", []int{len(requests), total}, []int{1, 1})
		got, want, parts := requests[0], c.want, strings.Fields(c.send)
		if age := time.Since(got.Time.Time); age < 0 || age > patience || got.Seconds > age.Seconds() {
			t.Errorf("its time is %v, %v seconds", got.Time, got.Seconds)
		}
		got.Error = got.Error[:min(len(got.Error), len(want.Error))]
		want.Method, want.URL, want.Headers, want.Time = parts[0], parts[1], got.Headers, got.Time
		want.Seconds, want.Answer = got.Seconds, answer[:min(len(answer), 1000)]
		equal(t, c.send, got, want)
	}
}

// Only clients are in the journal and in the log: to look on changes nothing.
func TestJournalHasOnlyClients(t *testing.T) {
	s := start(t)
	for _, request := range []string{"GET /", "HEAD /", "GET /openapi.json", "POST /healthz", "GET /__admin",
		"GET /__admin/requests\nAuthorization: x", "GET /%5F_admin/fault", "POST /__admin/reset",
		"OPTIONS /v1/pets", "OPTIONS *", "GET /v1/pets" + byPage, "POST /v1/pets " + pet + byPage} {
		s.do(t, request)
		s.recorded(t)
	}
	s.do(t, "GET /healthz/")
	s.do(t, "GET /v1/pets/1\nPrefer: delay=0,by=page")
	s.recorded(t, entry{Method: "GET", URL: "/healthz/", Status: 404},
		entry{Method: "GET", URL: "/v1/pets/1", Status: 200, Fault: "delay=0"})
	s.stop()
	equal(t, "requests in the log", strings.Count(s.stderr.String(), "msg=request"), 2)
}

// The journal is in the order of the answers, with the times when requests came.
func TestJournalOrder(t *testing.T) {
	s := start(t, "-quiet")
	s.do(t, "PUT /__admin/fault?delay=30&times=1")
	slow := s.dial(t, "GET /v1/pets?slow"+withKey+"\n")
	s.untilMet(t)
	s.play(t, "GET /v1/pets?quick\n200 []")
	slow.Close()
	s.untilRecorded(t, 2)
	s.recorded(t, entry{Method: "GET", URL: "/v1/pets?quick", Status: 200},
		entry{Method: "GET", URL: "/v1/pets?slow", Fault: "delay=30"})
	requests, _ := s.journal(t)
	equal(t, "whether the slow one came later", requests[1].Time.After(requests[0].Time.Time), false)
}

// The journal is one JSON object with a line for each request, so that grep can count.
func TestJournalLines(t *testing.T) {
	s := start(t)
	s.do(t, `POST /v1/pets {"name":"<\u000a>","categoryId":1}`+"\nx-a: 1\nX-A:2, 3\nx-a:")
	s.dial(t, "GET /x HTTP/1.0\n\n").read() // which has no Host
	varies := regexp.MustCompile(`("time":")\d{4}(-\d\d){2}T\d\d(:\d\d){2}\.\d{3}Z"` +
		`|("seconds":)\d+(\.\d{1,3})?\b|(no such path)[^"\\]*`)
	text := varies.ReplaceAllString(s.do(t, "GET /__admin/requests").body, "$1$4$6")
	equal(t, "the journal", text, `{"requests":[
{"time":","method":"POST","url":"/v1/pets","headers":{"Authorization":"Bearer <API_KEY>",`+
		`"Content-Length":"34","Host":"petstore","X-A":"1, 2, 3, "},"body":"{\"name\":\"<\\u000a>\",`+
		`\"categoryId\":1}","status":201,"seconds":,"answer":"{\"id\":1,\"name\":\"<\\n>\",`+
		`\"categoryId\":1}\n"},
{"time":","method":"GET","url":"/x","headers":{},"body":"","status":404,"seconds":,"answer":"{\"code\":`+
		`\"not_found\",\"message\":\"no such path\",\"status\":404}\n","error":"no such path"}
],"meta":{"total":2}}
`)
	const empty = `200 {"requests":[\n],"meta":{"total":0}}`
	s.play(t, "DELETE /__admin/requests\n204\nGET /__admin/requests\n"+empty)
}

// The journal keeps the last 1,000 requests, and 4 MiB of them to the byte. What was read stays as it was.
func TestJournalBounds(t *testing.T) {
	var j journal
	for i := range maxJournal + 3 {
		j.add(entry{URL: fmt.Sprint("/", i)})
	}
	entries, total := j.all()
	equal(t, "requests", []int{len(entries), total}, []int{1000, 1003})
	j.add(entry{}) // which changes nothing that was read
	equal(t, "the first and the last", []string{entries[0].URL, entries[999].URL}, []string{"/3", "/1002"})
	j.clear()
	most := strings.Repeat("x", 4<<20)
	for name, e := range map[string]entry{
		"method": {Method: most[:103]}, "url": {URL: most[:103]}, "body": {Body: most[:103]},
		"answer": {Answer: most[:103]}, "error": {Error: most[:103]}, "fault": {Fault: most[:103]},
		"a header": {Headers: map[string]string{"X": "yz"}},
	} {
		for over := range 2 {
			j.add(entry{Body: most[103-over:]})
			j.add(e)
			entries, total := j.all()
			equal(t, "requests with 103 bytes of "+name, []int{len(entries), total}, []int{2 - over, 2})
			j.clear()
		}
	}
}

// The key is hidden where a header has it, and nothing else is.
func TestHideKey(t *testing.T) {
	for given, want := range map[string]string{
		"Bearer e, Basic e":    "Bearer <API_KEY>, Basic <API_KEY>",
		"bearer   e ":          "bearer   <API_KEY> ",
		"Bearer e2, Bearer ae": "Bearer e2, Bearer ae",
	} {
		equal(t, given, hideKey(given, "e"), want)
	}
}

// The log has a line for each request, with what went wrong and the fault.
func TestLog(t *testing.T) {
	s := start(t)
	for _, request := range []string{"GET /v1/pets?limit=5", "GET /v1/pets/1?%0A=%22",
		"GET /v1\nPrefer: code=hangup", "GET /v1\nPrefer: code=418"} {
		s.do(t, request)
	}
	s.stop()
	log := regexp.MustCompile(`(?m)^time=\S+ |\Aa page for .*\n`).ReplaceAllString(s.stderr.String(), "")
	equal(t, "the log", log, `level=INFO msg=request method=GET path="/v1/pets?limit=5" status=200
level=INFO msg=request method=GET path="/v1/pets/1?%0A=%22" status=404 error="there is no pet 1"
level=INFO msg=request method=GET path=/v1 status=0 fault="code=hangup"
level=INFO msg=request method=GET path=/v1 status=418 error="`+simulated+`" fault="code=418"
level=INFO msg="stopping; a second signal ends the process at once" limit=10s
`)
}

// -quiet hides requests, and no warnings, as those of net/http when a process has no more files.
func TestQuiet(t *testing.T) {
	cmd := child("-quiet")
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `ulimit -n 20; exec "$0" "$@"`}, cmd.Args...)
	p := launch(t, cmd)
	p.play(t, "GET /v1/pets\n200 []")
	for range 30 {
		p.dial(t, "")
	}
	isQuiet := regexp.MustCompile(`\Aa page for .*\n(time=\S+ level=WARN msg="http: Accept error.*\n)+\z`)
	eventually(t, "the warning", func() bool { return isQuiet.MatchString(p.service.stderr.String()) })
}

// No request waits for a reader of the log: 1,000 lines are kept, and another tells how many more are lost.
func TestLineBuffer(t *testing.T) {
	var log lockedBuffer
	log.unread.Lock()
	b := newLineBuffer(&log)
	for n := range 1200 {
		fmt.Fprintln(b, n)
	}
	log.unread.Unlock()
	warning := regexp.MustCompile(`time=\S+ level=WARN msg="log lines are lost, as .*" lines=(\d+)\n`)
	eventually(t, "the warning", func() bool { return warning.MatchString(log.String()) })
	fmt.Fprintln(b, "last")
	b.close()
	receive(t, "the end of the writer", b.done)
	m, want := warning.FindStringSubmatch(log.String()), ""
	lost := must(strconv.Atoi(m[1]))
	for n := range 1200 - lost {
		want += fmt.Sprintln(n)
	}
	equal(t, "the log", log.String(), want+m[0]+"last\n")
	equal(t, "whether as many are lost as there is no room for", lost == 199 || lost == 200, true)
}

// Who begins to read the log at the end has a second for it; a service whose log nobody reads ends too.
func TestLogUnreadAtTheEnd(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	log.unread.Lock()
	defer log.unread.Unlock()
	b, begin := newLineBuffer(&log), time.Now()
	fmt.Fprintln(b, "unread")
	within(t, "the end", func() bool { b.close(); return true })
	equal(t, "whether the reader had a second", time.Since(begin) >= 950*time.Millisecond, true)
}

// A standard error that is closed hinders neither the start nor the end.
func TestStderrClosed(t *testing.T) {
	r, w, _ := os.Pipe()
	r.Close()
	cmd := child()
	cmd.Stderr = w
	p := launch(t, cmd)
	p.play(t, "GET /v1/pets\n200 []\nGET /v1/pets\n200 []")
	p.cmd.Process.Signal(syscall.SIGTERM)
	p.ends(t, "<nil>")
}

// The page, the description and /healthz need no key, and mind none.
func TestWithoutKey(t *testing.T) {
	for _, key := range []string{"", "wrong", testKey} {
		s := start(t).as(key)
		s.play(t, "GET /healthz\n200 {\"status\":\"ok\"}")
		equal(t, "openapi.json", s.do(t, "GET /openapi.json").body, string(openAPI))
		equal(t, "the page", s.do(t, "GET /").body, string(indexHTML))
	}
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
		s.as("").play(t, "OPTIONS "+target+"\nPrefer: code=503\n"+preflight)
	}
}

// preflight is the answer to OPTIONS.
const preflight = `204
Access-Control-Allow-Headers: Authorization, Content-Type, Prefer, *
Access-Control-Allow-Methods: GET, HEAD, POST, PUT, PATCH, DELETE
Access-Control-Max-Age: 600`

// README: The API.

// The operations of the contract (section 4). getPet's errors have its headers too, once its route is found.
func TestContract(t *testing.T) {
	start(t).play(t, `
		GET /v1/pets
		200 []

		POST /v1/pets {"name":"Rex","categoryId":7,"status":"available"}
		201 {"id":1,"name":"Rex","categoryId":7,"status":"available"}
		Location: /v1/pets/1

		POST /v1/pets {"name":"Tom","categoryId":9}
		201 {"id":2,"name":"Tom","categoryId":9}
		Location: /v1/pets/2

		GET /v1/pets
		200 [{"id":1,"name":"Rex","categoryId":7,"status":"available"},{"id":2,"name":"Tom","categoryId":9}]

		GET /v1/pets?status=available
		200 [{"id":1,"name":"Rex","categoryId":7,"status":"available"}]

		GET /v1/pets/2
		200 {"id":2,"name":"Tom","categoryId":9}`+deprecated+`

		GET /v1/pets/2?%zz
		400 invalid_parameter: the query`+deprecated)
}

// deprecated is what getPet's answers have in their headers.
const deprecated = `
Deprecation: @1795132800
Link: </v1/pets>; rel="successor-version"
Sunset: Thu, 05 Dec 2030 00:00:00 GMT`

// Each GET has a HEAD with the same headers: length, date and type. All but the page is JSON and a newline.
func TestHead(t *testing.T) {
	s := start(t, "-seed", tempFile(t, seedOf(50)), "-quiet")
	for _, rt := range routes {
		target, isGet := strings.CutPrefix(rt.pattern, "GET ")
		if !isGet {
			continue
		}
		target = strings.NewReplacer("{petId}", "1", "{$}", "").Replace(target)
		for _, send := range []string{target, target + "?limit=x", target + "\nPrefer: code=503"} {
			get, head := s.do(t, "GET "+send), s.do(t, "HEAD "+send)
			date, _ := http.ParseTime(get.header.Get("Date"))
			equal(t, send+": whether Date is right", time.Since(date).Abs() < patience, true)
			head.header["Date"] = get.header["Date"]
			equal(t, "HEAD "+send, head, reply{status: get.status, header: get.header})
			isJSON := json.Valid([]byte(get.body)) && strings.HasSuffix(get.body, "\n")
			equal(t, send+": whether it is JSON and a newline", isJSON, get.body != string(indexHTML))
			equal(t, send+": its type", get.header.Get("Content-Type") == "application/json", isJSON)
		}
	}
}

const (
	noKey    = "401 unauthorized\nWww-Authenticate: Bearer realm=\"petstore\""
	wrongKey = "401 invalid_token\nWww-Authenticate: Bearer realm=\"petstore\", error=\"invalid_token\""
)

// The key is asked for before anything else is looked at.
func TestKey(t *testing.T) {
	s := start(t)
	for _, request := range []string{"GET /v1", "GET /v1/pets/", "GET /v1/../v1/pets", "GET /%761/x",
		"GET /v1/pets/1?%zz", "GET /v1/store/orders", "BREW /v1/pets", "POST /v1/pets {}", "GET /__admin",
		"GET /__admin/requests", "GET /v1/pets?limit=0&key=" + testKey} {
		s.as("").play(t, request+"\nX-Api-Key: "+testKey+"\nPrefer: code=503\n"+noKey)
		s.as("wrong").play(t, request+"\nPrefer: code=503\n"+wrongKey)
	}
	for credential, want := range map[string]string{
		"": noKey, "Bearer": noKey, testKey: noKey, "Basic " + testKey: noKey,
		"Bearer CORRECT-HORSE": wrongKey, "Bearer correct-hors": wrongKey, "Bearer correct-horses": wrongKey,
		"Bearer " + testKey + "\nAuthorization: Bearer " + testKey: noKey,
		"bEARER   " + testKey: "200 []",
	} {
		s.play(t, "GET /v1/pets\nAuthorization: "+credential+"\n"+want)
	}
}

// A page has 20 pets or as many as limit says, however long they are. Link leads on, as was asked for.
func TestPages(t *testing.T) {
	long := `{"name":"` + strings.Repeat("x", 60000) + `","categoryId":1,"status":"sold"},`
	s := start(t, "-seed", tempFile(t, "["+strings.Repeat(long, 100)+seedOf(21)[1:]), "-quiet")
	for query, want := range map[string]string{ // how many pets, and Link
		"":                                    `20 </v1/pets?after=20>; rel="next"`,
		"?limit=100":                          `100 </v1/pets?limit=100&after=100>; rel="next"`,
		"?after=101":                          "20 ",
		"?status=sold&limit=7&after=100&x=y":  `7 </v1/pets?limit=7&status=sold&after=107>; rel="next"`,
		"?after=-9223372036854775808&limit=1": `1 </v1/pets?limit=1&after=1>; rel="next"`,
		"?limit=%31&Limit=9":                  `1 </v1/pets?limit=1&after=1>; rel="next"`,
	} {
		r := s.do(t, "GET /v1/pets"+query)
		equal(t, query, fmt.Sprint(strings.Count(r.body, `"id"`), " ", r.header.Get("Link")), want)
	}
}

// Goroutines add pets at once, as seldom happens over HTTP: each id is given once, and no pet is lost.
func TestAddsAtOnce(t *testing.T) {
	pets := newStore()
	var given [8*2000 + 1]atomic.Bool // by id
	together(8, func(int) {
		for range 2000 {
			if p, err := pets.add(NewPet{}); err != nil || given[p.id].Swap(true) || pets.get(p.id) != p {
				t.Errorf("an id is given twice, or cannot be looked up: %v %v", p, err)
			}
		}
	})
	list := pets.list("", 0)
	equal(t, "pets in the list", len(list), 8*2000)
	isSorted := slices.IsSortedFunc(list, func(a, b *storedPet) int { return cmp.Compare(a.id, b.id) })
	equal(t, "whether the list is in ascending order of id", isSorted, true)
}

// Worlds that begin with the same seed do not share what is added to them.
func TestClone(t *testing.T) {
	seed := must(readSeed([]byte(seedOf(3))))
	a, b := seed.clone(), seed.clone()
	must(a.add(NewPet{Name: "of a", Status: "sold"}))
	must(b.add(NewPet{Name: "of b", Status: "sold"}))
	for _, status := range []PetStatus{"", "sold"} {
		const want = `{"id":4,"name":"of a","categoryId":0,"status":"sold"}`
		equal(t, "the pet added to a", string(a.list(status, 3)[0].json), want)
	}
	equal(t, "pets of the seed", []int{len(seed.list("", 0)), len(seed.pets)}, []int{3, 3})
}

// An integer is spelt as in JSON, wherever it is given. A message shows 40 characters of what was given.
func TestParseInteger(t *testing.T) {
	forty := strings.Repeat("ä", 39) + "😀"
	for _, given := range strings.Fields(`1.0 1.5 4e2 +1 01 -01 1_0 0x1 1- - ten [1] "1" ५ ` + forty) {
		_, err := parseInteger("x", given, math.MinInt64, math.MaxInt64)
		equal(t, given, fmt.Sprint(err), "x is "+given+"; it must be an integer")
	}
	equal(t, "41 characters", shorten(forty+"x"), forty+"…")
	s := start(t)
	const least, most, beyond = "-9223372036854775808", " 9223372036854775807", " 9223372036854775808"
	for target, given := range map[string]string{ // its bounds, and what is beyond them
		"GET /v1/pets?limit=":                      "1 100 0 101",
		"GET /v1/pets?after=":                      least + most + " -9223372036854775809" + beyond,
		"PUT /__admin/fault?code=":                 "400 599 399 600",
		"PUT /__admin/fault?delay=":                "0 30 -1 30.01",
		"PUT /__admin/fault?answer-delay=":         "0 30 -1 30.01",
		"PUT /__admin/fault?code=503&retry-after=": "0 3600 -0 3601",
		"PUT /__admin/fault?code=503&skip=":        "0" + most + " -1" + beyond,
		"PUT /__admin/fault?code=503&times=":       "1" + most + " 0" + beyond,
	} {
		for i, value := range strings.Fields(given) {
			s.do(t, "DELETE /__admin/fault")
			equal(t, target+value, s.do(t, target+value).status, []int{200, 200, 400, 400}[i])
		}
	}
}

// Each message of an Error but those of a body, in full. What is refused changes nothing.
func TestMessages(t *testing.T) {
	s, smileys := start(t), strings.Repeat("😀", 40)
	const (
		bad     = "400 invalid_parameter: "
		integer = "; it must be an integer"
		status  = "; it must be available, pending or sold"
		others  = " (curl -X PUT) takes code, delay, answer-delay, retry-after, operation, skip, times"
	)
	for send, want := range map[string]string{
		"GET /v1\nAuthorization: x": "401 unauthorized: " +
			"send the API key in one header: Authorization: Bearer <API_KEY>",
		"GET /v1/pets/": "404 not_found: no such path: /v1/pets/; " +
			"the API is at /v1/pets, with no slash at the end; there are " +
			"/__admin/reset, /__admin/fault and /__admin/requests too, /openapi.json, and a page at /",
		"GET /v1/%70ets/%2d7?colour=red": "404 not_found: there is no pet -7",
		"POST /x\nContent-Length: 65537": "413 request_entity_too_large: " + tooLong,
		"POST /v1/pets x\nContent-Type: x": "415 unsupported_media_type: " +
			"Content-Type is x; it must be application/json, in UTF-8 (curl sends that with --json)",
		"GET /v1/pets/1%2F2":                   bad + "petId is 1/2" + integer,
		"GET /v1/pets?limit=x&after=x&status=": bad + "limit is x" + integer + " from 1 to 100",
		"GET /v1/pets?limit=x&after=1&after=1": bad + "after is given 2 times; it must be given once",
		"GET /v1/pets?status=Sold":             bad + "status is Sold" + status,
		"GET /v1/pets?%zz":                     bad + `the query is malformed: invalid URL escape "%zz"`,
		"PUT /__admin/fault?code=503&x=1": bad +
			"PUT /__admin/fault does not take the parameter x; PUT /__admin/fault" + others,
		"GET /v1/pets?after=" + smileys + "😀": bad + "after is " + smileys + "…" + integer,
		"PUT /__admin/fault?code=503&operation=": bad +
			"operation is empty; it must be listPets, createPet or getPet",
		"PUT /__admin/fault?delay=x": bad +
			"delay is x; it must be a number of seconds from 0 to 30, with decimals if need be",
		"PUT /__admin/fault?skip=1&times=1&retry-after=5": bad +
			"code, delay or answer-delay must be given, in the query: /__admin/fault?code=503",
	} {
		got, _, _ := strings.Cut(s.do(t, send).String(), "\n")
		equal(t, send, got, want)
	}
	s.play(t, "GET /__admin/fault\n200 {}\nPOST /v1/pets "+pet+"\n"+made)
}

const (
	tooLong  = "the body is over 65536 bytes; a larger seed goes into a file: -seed"
	anObject = `; it must be a JSON object, such as {"name":"Rex","categoryId":7}`
)

// What createPet takes, and what becomes of it, or the whole message with which it refuses a body.
func TestParsePet(t *testing.T) {
	const notJSON, aStatus = "it is not JSON: invalid character ", "; it must be available, pending or sold"
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
		{body: `{"name":"a","categoryid":1}`, want: "categoryId is missing; it must be an integer"},
	} {
		_, p, err := parsePet("it", []byte(c.body))
		got := string(encode(p))
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
			(!isGiven || slices.Contains(statuses[1:], PetStatus(word)))
		_, p, err := parsePet("the body", body)
		if equal(t, fmt.Sprintf("whether %q is taken", body), err == nil, isRight); isRight {
			equal(t, string(body), p, NewPet{name, category, PetStatus(word)})
		}
	})
}

// Nothing under /__admin takes parameters that are not its own. A wrong method is told first.
func TestAdminParameters(t *testing.T) {
	s := start(t)
	for _, rt := range routes {
		if strings.Contains(rt.pattern, " /__admin/") {
			s.play(t, rt.pattern+"?x=1\n400 invalid_parameter: "+rt.pattern+" does not take the parameter x")
		}
	}
	s.play(t, "POST /__admin/fault?code=503\n405 method_not_allowed\nAllow: DELETE, GET, HEAD, PUT")
}

// A path that is not there is a 404 and no redirect. A path that has other methods tells them.
func TestNoSuchPath(t *testing.T) {
	s := start(t)
	for _, path := range strings.Fields(`/pets /v1x //v1/pets /healthz/ /x/../healthz http://x /v1 /v1/
		/v1/pets/ /v1/pets/1/ /v1/pets/1/2 /v1/pets%2F /v1//pets /v1/./pets /v1/../v1/pets /v1/pets/%2e%2e
		/__admin /__admin/ /__admin/reset/ /__admin//requests`) {
		s.play(t, "POST "+path+"?%zz\n404 not_found: no such path")
		s.play(t, "BREW "+path+"?%zz\n404 not_found: no such path")
	}
	for path, methods := range map[string]string{
		"/v1/pets": "GET, HEAD, POST", "/v1/pets/1": "GET, HEAD", "/": "GET, HEAD",
		"/__admin/reset": "POST", "/__admin/requests": "DELETE, GET, HEAD",
	} {
		s.play(t, "BREW "+path+"?%zz {}\n405 method_not_allowed\nAllow: "+methods)
		s.play(t, "get "+path+"?%zz {}\n405 method_not_allowed\nAllow: "+methods)
	}
}

// A request with many mistakes is told one after the other. What comes before a fault uses none up.
func TestErrorOrder(t *testing.T) {
	s, long := start(t), strings.Repeat("x", maxBody+1)
	s.do(t, "PUT /__admin/fault?code=503&times=1")
	s.playRows(t, []row{
		{send: "BREW /v1//pets?%zz " + long + "\nAuthorization: x\nPrefer: code=418", want: noKey},
		{send: "BREW /v1//pets?%zz " + long + "\nPrefer: code=418",
			want: "413 request_entity_too_large\nConnection: close"},
		{send: "BREW /v1//pets?%zz {\nPrefer: code=x", want: "400 invalid_parameter: code"},
		{send: "BREW /v1//pets?%zz {", want: "503 service_unavailable\nRetry-After: 1"},
		{send: "BREW /v1//pets?%zz {", want: "404 not_found"},
		{send: "BREW /v1/pets?%zz {", want: "405 method_not_allowed\nAllow: GET, HEAD, POST"},
		{send: "POST /v1/pets?%zz {\nContent-Type: x", want: "400 invalid_parameter: the query"},
		{send: "POST /v1/pets {\nContent-Type: x", want: "415 unsupported_media_type"},
		{send: "POST /v1/pets {", want: "400 invalid_body"},
	})
	s.play(t, "GET /v1/pets/1\nContent-Length: 65537\n413 request_entity_too_large\nConnection: close")
}

// A body is JSON in UTF-8, as far as its headers tell. Where none comes, nobody looks at them.
func TestContentTypes(t *testing.T) {
	s := start(t)
	right := []string{"Content-Type: application/json", "Content-Type:", "Content-Encoding: Identity",
		`Content-Type: Application/JSON; Charset="UTF-8"; x=y`}
	wrong := []string{"Content-Type: text/plain", "Content-Type: application/jsonx", "Content-Encoding: gzip",
		"Content-Type: application/json; charset=latin1", "Content-Type: application/json; charset",
		"Content-Type: a/b\nContent-Type: application/json",
		"Content-Encoding: identity\nContent-Encoding: br"}
	for i, headers := range append(right, wrong...) {
		isTaken := func(request string) bool { return s.do(t, request+"\n"+headers).status != 415 }
		equal(t, "a create with "+headers, isTaken("POST /v1/pets "+pet), i < len(right))
		equal(t, "a reset with "+headers, isTaken("POST /__admin/reset []"), i < len(right))
		equal(t, "a reset without a body, with "+headers, isTaken("POST /__admin/reset"), true)
		equal(t, "a list with "+headers, isTaken("GET /v1/pets"), true)
	}
}

// Who speaks unusual, broken or half HTTP gets an answer, perhaps of net/http itself, or a closed connection.
func TestRawHTTP(t *testing.T) {
	s := serveAPI(t, plainAPI(), func(srv *http.Server) { srv.ReadTimeout = time.Hour }) // no 408 helps
	long, blanks := strings.Repeat("x", 300000), strings.Repeat(" ", 65510)
	const (
		get, post = "GET /v1/pets" + withKey, "POST /v1/pets" + withKey
		last      = "Connection: close\n\n"
		chunked   = post + "Transfer-Encoding: chunked\n"
		expect    = "Expect: 100-continue\nContent-Length: 27\n\n"
		closes    = "\nConnection: close"
		refused   = "413 request_entity_too_large: " + tooLong + closes
		badBody   = "400 invalid_body: the body is cut short or badly chunked"
		plainText = "\nContent-Type: text/plain; charset=utf-8" + closes
	)
	for _, c := range []struct {
		name, send string
		want       string // answers, with blank lines between them, until the service closes the connection
		isLeaving  bool   // whether the client closes its sending side
	}{
		{name: "pipelining, and a GET with a body", want: "200 []\n\n200 []\n\n200 []" + closes,
			send: get + "\n" + get + "Content-Length: 2\n\n{}" + get + last},
		{name: "chunks, 64 KiB", want: made + closes,
			send: chunked + last + "5\n" + pet[:5] + "\nfffb\n" + pet[5:] + blanks[1:] + "\n0\n\n"},
		{name: "64 KiB and a byte", send: chunked + "\n10001\n" + pet + blanks, want: refused},
		{name: "empty", send: chunked + last + "0\n\n", want: "400 invalid_body: the body is empty" + closes},
		{name: "a bad chunk", send: chunked + "\nx\n", want: badBody + closes, isLeaving: true},
		{name: "half a body", send: post + "Content-Length: 28\n\n" + pet, want: badBody, isLeaving: true},
		{name: "too long, and no body comes", send: post + "Content-Length: 65537\n\n", want: refused},
		{name: "too long", send: "PUT /" + withKey + "Content-Length: 300000\n\n" + long, want: refused},
		{name: "headers of 64 KiB", send: get + "X: " + long[:65336] + "\n" + last, want: "200 []" + closes},
		{name: "headers over 64 KiB", send: get + "X: " + long[:65536] + "\n\n",
			want: "431 431 Request Header Fields Too Large" + plainText},
		{name: "Expect", send: post + "Connection: close\n" + expect + pet, want: "100\n\n" + made + closes},
		{name: "Expect and too long", send: post + strings.Replace(expect, "27", "65537", 1), want: refused},
		{name: "a preflight", send: "OPTIONS /v1" + withKey + expect + pet, want: preflight + closes},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.do(t, "POST /__admin/reset")
			conn := s.dial(t, c.send)
			if c.isLeaving {
				conn.CloseWrite()
			}
			for _, want := range append(strings.Split(c.want, "\n\n"), "no answer") {
				conn.read().check(t, "an answer", want)
			}
			isKept := strings.Contains(s.do(t, "GET /__admin/requests").body, `"body":"{\"name`)
			equal(t, "whether the journal has the body", isKept, strings.Contains(c.want, made))
			isAdded := strings.Contains(c.want, made)
			equal(t, "whether a pet is added", s.do(t, "GET /v1/pets").body != "[]\n", isAdded)
		})
	}
}

// Who takes too long gets 408 once its headers have come, and nothing before. What waits may take longer.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	s := serveAPI(t, plainAPI(), func(srv *http.Server) {
		srv.ReadHeaderTimeout, srv.ReadTimeout = time.Second/2, time.Second/2
	})
	s.dial(t, "").read().check(t, "nothing", "no answer")
	s.dial(t, "POST /v1/pets"+withKey+"Content-Length: 3\n\n{}").read().check(t, "half a body",
		"408 request_timeout: the body did not come in time\nConnection: close")
	s.do(t, "PUT /__admin/fault?delay=.4&answer-delay=.4")
	begin := time.Now()
	s.play(t, "GET /v1/pets\n200 []")
	equal(t, "whether that took .8 seconds", time.Since(begin) >= 800*time.Millisecond, true)
}

// A bug, be it a panic or an error that is no Error, is a 500. Only the log tells what it is.
func TestBugs(t *testing.T) {
	const message = "the service has a bug; its log tells where"
	secret := errors.New("open /secret: permission denied")
	for name, do := range map[string]func(x *exchange) error{
		"an error": func(x *exchange) error { io.WriteString(x, "half"); return secret },
		"a panic":  func(x *exchange) error { writeJSON(x, 201, []byte("half")); panic(secret) },
	} {
		t.Run(name, func(t *testing.T) {
			var log lockedBuffer
			a, w, r := plainAPI(), httptest.NewRecorder(), httptest.NewRequest("GET", "/v1/x", nil)
			a.log = slog.New(slog.NewTextHandler(&log, nil))
			x := &exchange{api: a, world: a.current.Load(), r: r, w: w, status: 200}
			func() {
				defer x.finish()
				route{pattern: "GET /v1/x", do: do}.ServeHTTP(x, r)
			}()
			equal(t, "the answer", w.Body.String(), string(encode(newError(500, message)))+"\n")
			requests, _ := x.world.journal.all()
			equal(t, "the error in the journal", requests[0].Error, message)
			want := `(?s)level=ERROR msg=panic .*/secret.*stack=.*TestBugs.*\n.*msg=request .*status=500`
			equal(t, log.String(), regexp.MustCompile(want).MatchString(log.String()), true)
		})
	}
	a := plainAPI()                  // the process lives, and the connection too
	a.current.Load().pets.pets = nil // a create panics
	serveAPI(t, a).play(t, "POST /v1/pets "+pet+"\n500 internal_server_error\nGET /v1/pets\n200 []")
}

// A full store answers 507 to creates, and refuses a seed. All else is as before.
func TestFullStore(t *testing.T) {
	seed := newStore()
	seed.size = maxSize - petCost - int64(len(stored))
	const full = "507 insufficient_storage: the store is full: it holds 268435456 bytes\n"
	const create = "POST /v1/pets " + pet + "\n"
	serveAPI(t, testAPI(seed, 0, context.Background())).play(t,
		`POST /v1/pets {"name":"ab","categoryId":1}`+"\n"+full+create+made+"\n"+create+full+
			"GET /v1/pets\n200 ["+stored+"]\nPOST /__admin/reset\n204\n"+create+made+"\n"+create+full)
	pets := seed.clone()
	equal(t, "a pet of a seed that fits", pets.putSeed([]byte(pet)), nil)
	var e Error
	errors.As(pets.putSeed([]byte(pet)), &e)
	equal(t, "the status of one that does not fit", e.Status, 507)
}

// README: Flags, output, the end.

// Command lines that do not serve. A fatal error is one line on stderr, and tells the way out.
func TestCommandLine(t *testing.T) {
	const (
		duration = "it must be a duration from 0s to 30s, such as 150ms or 2s; -h lists the flags"
		badAddr  = ".*; write -addr host:port, with a port from 0 to 65535"
		badKey   = "PETSTORE_API_KEY must be 1 to 4096 visible ASCII characters: .*"
		noAddr   = ".*; write -addr 127.0.0.1:8080, or -addr :8080 for every interface"
	)
	slow, begin := start(t, "-latency", "50ms"), time.Now()
	slow.play(t, "GET /v1/pets\n200 []")
	equal(t, "whether -latency delays", time.Since(begin) >= 50*time.Millisecond, true)
	for _, c := range []struct {
		key, args string
		code      int
		error     string
	}{
		{args: "-x\ny", code: 2, error: ".*-x y; -h lists the flags"},
		{args: "-quiet stray\r\none", code: 2, error: "unexpected argument stray one; -h lists the flags"},
		{args: "-latency 150", code: 2, error: ".*150.*" + duration},
		{args: "-latency 30.001s", code: 2, error: ".*30.001s.*" + duration},
		{args: "-seed no\n.json", code: 1, error: ".*no .json.*"},
		{args: "-quiet", key: "k k", code: 1, error: badKey},
		{args: "-addr ", code: 1, error: noAddr},
		{args: "-addr 8081", code: 1, error: badAddr},
		{args: "-addr " + slow.addr, code: 1, error: ".*; -addr 127.0.0.1:0 takes a free port"},
	} {
		t.Run(c.args+c.key, func(t *testing.T) {
			command{key: c.key, args: strings.Split(c.args, " ")}.ends(t, c.code, "petstore: "+c.error)
		})
	}
	command{args: []string{"-version"}}.ends(t, 0, `1\.0\.0`)
	command{args: []string{"-h"}}.ends(t, 0, `(?s)Petstore .* at /,.* at /openapi\.json.*PETSTORE_API_KEY.*`)
}

// A listener that fails ends the service with an error.
func TestListenerFails(t *testing.T) {
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	ln.Close()
	err := within(t, "the end", func() error { return serve(ln, plainAPI(), io.Discard) })
	equal(t, "whether it ends as the listener has", errors.Is(err, net.ErrClosed), true)
}

// GOGC and GOMEMLIMIT win over what the service sets.
func TestCollector(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	stopped, stop := context.WithCancel(context.Background())
	stop()
	for set, want := range map[string][2]int64{ // by what the environment sets: GOGC and GOMEMLIMIT then
		"": {400, memoryLimit}, "GOGC": {77, memoryLimit}, "GOMEMLIMIT": {400, 900 << 20},
	} {
		debug.SetGCPercent(77) // as the runtime does at its start
		debug.SetMemoryLimit(900 << 20)
		getenv := func(name string) string { return map[string]string{set: "set"}[name] }
		run(stopped, []string{"-addr", "127.0.0.1:0"}, getenv, nil, io.Discard, io.Discard)
		equal(t, set, [2]int64{int64(debug.SetGCPercent(100)), debug.SetMemoryLimit(-1)}, want)
	}
}

// upload begins a create, and returns when the service waits for the body.
func (s *service) upload(t testing.TB) *connection {
	t.Helper()
	c := s.dial(t, "POST /v1/pets"+withKey+"Content-Length: 27\nExpect: 100-continue\n\n")
	c.read().check(t, "an upload", "100")
	return c
}

// untilRefused waits until the service takes no new connections.
func (s *service) untilRefused(t testing.TB) {
	t.Helper()
	eventually(t, "the refusal of new connections", func() bool {
		c, err := net.Dial("tcp", s.addr)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
}

// When the service stops, a connection that has sent nothing is closed. One that has been used is forgotten.
func TestUnusedConnections(t *testing.T) {
	stopping, stop := context.WithCancel(context.Background())
	srv, forgotten := newServer(testAPI(newStore(), 0, stopping)), make(chan bool, 1)
	unused, browser := net.Pipe()
	used, _ := net.Pipe()
	runtime.SetFinalizer(used, func(net.Conn) { forgotten <- true })
	srv.ConnState(unused, http.StateNew)
	srv.ConnState(used, http.StateNew)
	srv.ConnState(used, http.StateActive)
	used = nil
	eventually(t, "the end of what is forgotten", func() bool { runtime.GC(); return len(forgotten) == 1 })
	stop()
	err := within(t, "the end", func() error { _, err := browser.Read([]byte{0}); return err })
	equal(t, "the end", err, io.EOF)
	runtime.KeepAlive(srv)
}

// At a signal, what is in flight is answered. A connection that has sent nothing, as of a browser, is closed.
func TestSignal(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		t.Run(signal.String(), func(t *testing.T) {
			p := launch(t, child())
			upload, unused := p.upload(t), p.dial(t, "")
			p.cmd.Process.Signal(signal)
			unused.read().check(t, "nothing", "no answer")
			p.untilRefused(t)
			upload.send("", pet)
			upload.read().check(t, "what is in flight", made+"\nConnection: close")
			p.ends(t, "<nil>")
			log, want := p.stderr.String(), `(?s)stopping; .*limit=10s\n.*msg=request .*status=201\n$`
			equal(t, log, regexp.MustCompile(want).MatchString(log), true)
		})
	}
}

// A second signal ends the service at once. A shell that starts it in the background may ignore SIGINT.
func TestSecondSignal(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		t.Run(signal.String(), func(t *testing.T) {
			cmd := child()
			cmd.Path = "/bin/sh"
			cmd.Args = append([]string{"sh", "-c", `trap "" INT; exec "$0" "$@"`}, cmd.Args...)
			p := launch(t, cmd)
			p.upload(t)
			p.cmd.Process.Signal(signal)
			p.untilRefused(t) // otherwise, the two could come as one
			p.cmd.Process.Signal(signal)
			p.ends(t, "exit status 1")
		})
	}
}

// A start that still reads its seed stops once that is read.
func TestStopWhileSeeding(t *testing.T) {
	seed, w, _ := os.Pipe()
	cmd := child("-seed", "/dev/fd/3")
	cmd.ExtraFiles = []*os.File{seed}
	must(0, cmd.Start())
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
	s := start(t)
	upload, begin := s.upload(t), time.Now()
	s.cancel()
	upload.read().check(t, "the upload", "no answer")
	equal(t, "whether it had 9 seconds at least", time.Since(begin) >= 9*time.Second, true)
}

// With -stdin, the service stops when its standard input ends. In other tests, that is empty.
func TestStdin(t *testing.T) {
	stdin, starter := io.Pipe()
	s := command{key: testKey, stdin: stdin, args: []string{"-stdin"}}.start(t)
	within(t, "the reading of standard input", func() int { return must(starter.Write([]byte("more\n"))) })
	s.play(t, "GET /healthz\n200 {\"status\":\"ok\"}")
	starter.Close()
	s.untilRefused(t)
	s.stop()
	log, want := s.stderr.String(), `(?s)standard input has ended, .*stopping; `
	equal(t, log, regexp.MustCompile(want).MatchString(log), true)
}

// README: Limits. What stands in several places.

// Each route is described in api/openapi.json by its name and its parameters, and nothing else is, but for
// some paths. Those under /v1 are operations of a fault and steps of TestModel. Members are described.
func TestRegistries(t *testing.T) {
	api, schemas := readOpenAPI()
	described, named, operations := map[string]string{}, map[string]string{}, []string{}
	for pattern, o := range api {
		described[pattern] = o.OperationID
		for _, p := range o.Parameters {
			if p.In == "query" {
				described[pattern+" "+p.Name] = "a parameter"
			}
		}
	}
	undescribed := []string{"GET /v1/store/orders", "GET /healthz", "GET /openapi.json", "GET /{$}"}
	for _, rt := range routes {
		if !slices.Contains(undescribed, rt.pattern) {
			named[rt.pattern] = rt.operation
		}
		for _, name := range rt.parameters {
			named[rt.pattern+" "+name] = "a parameter"
		}
		if rt.operation != "" && strings.Contains(rt.pattern, " /v1/") {
			operations = append(operations, rt.operation)
		}
	}
	equal(t, "the operations in api/openapi.json, and the routes", described, named)
	equal(t, "the operations of a fault, and the routes", sorted(faultOperations), sorted(operations))
	equal(t, "the steps of TestModel, and the routes", keys(steps), sorted(operations))
	for name, v := range map[string]any{"NewPet": NewPet{}, "Pet": Pet{}, "Error": Error{},
		"Fault": standingFault{}, "JournalEntry": entry{}} {
		equal(t, "the members of "+name, keys(schemas[name].Properties), sorted(members(v)))
	}
}

// Each answer is as api/openapi.json describes it, and each status that this describes is answered.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	api, _ := readOpenAPI()
	answered := map[string]bool{} // each pattern and status
	full, buggy := newStore(), plainAPI()
	full.size = maxSize
	buggy.current.Store(&world{}) // without a store
	s, crammed := serveAPI(t, plainAPI()), serveAPI(t, testAPI(full, 0, context.Background()))
	broken := serveAPI(t, buggy)
	slow := serveAPI(t, plainAPI(), func(srv *http.Server) { srv.ReadTimeout = time.Second / 4 })
	headers := []string{"", "Authorization: x", "Authorization: Bearer x", "Prefer: code=html",
		"Prefer: code=x", "Prefer: delay=0", "Content-Length: 65537", "Content-Encoding: x", "Content-Type:x"}
	for _, code := range []int{400, 401, 404, 408, 413, 415, 429, 500, 502, 503, 507, 599} {
		headers = append(headers, fmt.Sprint("Prefer: retry-after=7, code=", code))
	}
	const fault = "PUT /__admin/fault?code=503&delay=0&answer-delay=0&retry-after=7&operation=createPet" +
		"&skip=99&times=2"
	for pattern, requests := range map[string][]string{
		"GET /v1/pets":             {"GET /v1/pets?limit=1", "GET /v1/pets?limit=0", "GET /v1/pets?%zz"},
		"POST /v1/pets":            {"POST /v1/pets " + pet, "POST /v1/pets {}", "POST /v1/pets?%zz"},
		"GET /v1/pets/{petId}":     {"GET /v1/pets/1", "GET /v1/pets/5", "GET /v1/pets/x"},
		"POST /__admin/reset":      {"POST /__admin/reset [" + stored + "]", "POST /__admin/reset {}"},
		"PUT /__admin/fault":       {fault, "PUT /__admin/fault?code=x"},
		"GET /__admin/fault":       {"GET /__admin/fault", "GET /__admin/fault?code=503"},
		"DELETE /__admin/fault":    {"DELETE /__admin/fault", "DELETE /__admin/fault?x"},
		"GET /__admin/requests":    {"GET /__admin/requests", "GET /__admin/requests?limit=1"},
		"DELETE /__admin/requests": {"DELETE /__admin/requests", "DELETE /__admin/requests?%zz"},
	} {
		check := func(request string, r reply) {
			status := strconv.Itoa(r.status)
			if _, isListed := api[pattern].Responses[status]; !isListed {
				status = "default"
			}
			if r.header.Get("Preference-Applied") == "" || status == "502" { // else it may be simulated
				answered[pattern+" "+status] = true
			}
			if !api[pattern].allows(status, r) {
				t.Errorf("the answer to %s is not as in api/openapi.json:\n%s", request, r)
			}
		}
		for _, request := range requests {
			for _, header := range headers {
				s.do(t, "POST /__admin/reset ["+stored+","+pet+"]")
				s.do(t, fault)
				s.do(t, "POST /v1/pets {}\nPrefer: delay=0") // for the journal
				check(request+" "+header, s.do(t, request+"\n"+header))
			}
		}
		check(requests[0]+" slowly", slow.do(t, requests[0]+"\nContent-Length: 999"))
		if strings.Contains(pattern, "/v1/") {
			check(requests[0]+" with a bug", broken.do(t, requests[0]))
			check(requests[0]+" with a full store", crammed.do(t, requests[0]))
		}
	}
	for pattern, o := range api {
		for status := range o.Responses {
			equal(t, "whether "+pattern+" is answered "+status, answered[pattern+" "+status], true)
		}
	}
}

// operation is an operation in api/openapi.json.
type operation struct {
	OperationID string
	Parameters  []struct{ Name, In string }
	Responses   map[string]struct {
		Headers, Content map[string]struct {
			Schema   *schema
			Required bool
		}
	}
}

// allows tells whether an answer is as the operation's response with this status, or "default", says.
func (o operation) allows(status string, r reply) bool {
	told, body := o.Responses[status], any(r.body)
	media := r.header.Get("Content-Type")
	if media == "application/json" {
		json.Unmarshal([]byte(r.body), &body)
	}
	schema := told.Content[media].Schema
	ok := r.body == "" && told.Content == nil || schema != nil && schema.allows(body)
	for name, h := range told.Headers {
		value := r.header.Get(name)
		number, _ := strconv.ParseFloat(value, 64)
		ok = ok && (value == "" && !h.Required || h.Schema.allows(value) || h.Schema.allows(number))
	}
	common := []string{"Connection", "Content-Length", "Content-Type", "Date"}
	if r.header.Get("Preference-Applied") != "" { // an error that was asked for may have these, too
		common = append(append(common, keys(o.Responses["default"].Headers)...), "Www-Authenticate")
	}
	for name := range told.Headers {
		common = append(common, http.CanonicalHeaderKey(name))
	}
	for name := range r.header {
		ok = ok && slices.Contains(common, name)
	}
	return ok
}

// schema is a schema, as far as the tests need it.
type schema struct {
	Type, Pattern               string
	Enum, Required              []string
	Properties                  map[string]*schema
	Items, AdditionalProperties *schema
	AllOf, AnyOf                []*schema
	Minimum, Maximum            *float64
	MaxItems                    int
}

// readOpenAPI reads api/openapi.json: the operations by the patterns of their routes, and the schemas.
func readOpenAPI() (map[string]operation, map[string]*schema) {
	var file struct {
		Paths, Components map[string]map[string]json.RawMessage
	}
	text, ref := string(openAPI), regexp.MustCompile(`\{\s*"\$ref": "#/components/(\w+)/(\w+)"\s*\}`)
	must(0, json.Unmarshal(openAPI, &file))
	for ref.MatchString(text) {
		text = ref.ReplaceAllStringFunc(text, func(found string) string {
			name := ref.FindStringSubmatch(found)
			return string(file.Components[name[1]][name[2]])
		})
		must(0, json.Unmarshal([]byte(text), &file))
	}
	operations, schemas := map[string]operation{}, map[string]*schema{}
	for name, described := range file.Components["schemas"] {
		schemas[name] = new(schema)
		must(0, json.Unmarshal(described, schemas[name]))
	}
	for path, methods := range file.Paths {
		if methods["servers"] == nil {
			path = "/v1" + path
		}
		for method, described := range methods {
			var o operation
			if json.Unmarshal(described, &o) == nil { // and no list of servers
				operations[strings.ToUpper(method)+" "+path] = o
			}
		}
	}
	return operations, schemas
}

// UnmarshalJSON reads a schema. Those in allOf become one.
func (s *schema) UnmarshalJSON(text []byte) error {
	type plain schema // without this method
	err := json.Unmarshal(text, (*plain)(s))
	for _, part := range s.AllOf {
		if s.Type = "object"; s.Properties == nil {
			s.Properties = map[string]*schema{}
		}
		maps.Copy(s.Properties, part.Properties)
		s.Required = append(s.Required, part.Required...)
	}
	return err
}

// allows tells whether v is as the schema says. An object may have no members but those of the schema.
func (s *schema) allows(v any) bool {
	if s.AnyOf != nil {
		return slices.ContainsFunc(s.AnyOf, func(part *schema) bool { return part.allows(v) })
	}
	switch v := v.(type) {
	case string:
		return s.Type == "string" && regexp.MustCompile(s.Pattern).MatchString(v) &&
			(s.Enum == nil || slices.Contains(s.Enum, v))
	case float64:
		return (s.Type == "number" || s.Type == "integer" && v == math.Trunc(v)) &&
			(s.Minimum == nil || v >= *s.Minimum) && (s.Maximum == nil || v <= *s.Maximum)
	case []any:
		return s.Type == "array" && (s.MaxItems == 0 || len(v) <= s.MaxItems) &&
			!slices.ContainsFunc(v, func(item any) bool { return !s.Items.allows(item) })
	case map[string]any:
		isMissing := func(name string) bool { return v[name] == nil }
		ok := s.Type == "object" && !slices.ContainsFunc(s.Required, isMissing)
		for name, value := range v {
			property := cmp.Or(s.Properties[name], s.AdditionalProperties)
			ok = ok && property != nil && property.allows(value)
		}
		return ok
	}
	return false
}

// What several places tell is the same: some line with the first text has the second, too.
func TestFacts(t *testing.T) {
	srv := newServer(plainAPI())
	kib := func(n int) string { return fmt.Sprint(n>>10, " KiB") }
	mib := func(n int) string { return fmt.Sprint(n>>20, " MiB") }
	thousands := regexp.MustCompile(`(\d)(\d{3})$`)
	count := func(n int) string { return thousands.ReplaceAllString(fmt.Sprint(n), "$1,$2") }
	seconds := func(d time.Duration) string { return fmt.Sprint(d.Seconds(), " seconds") }
	minutes := func(d time.Duration) string { return fmt.Sprint(d.Minutes(), " minutes") }
	maxKey := sort.Search(1<<20, func(n int) bool { return validateKey(strings.Repeat("k", n+1)) != nil })
	sunset := must(http.ParseTime(operationHeaders["getPet"].Get("Sunset"))).Format("2 January 2006")
	limit := fmt.Sprintf("1 to %d, by default %d", maxLimit, defaultLimit)
	wait := fmt.Sprint("0 to ", maxWait.Seconds())
	facts := map[string][][2]string{
		"README.md": {{"[the contract]", version}, {"| `limit` of", limit},
			{"| sizes", "request body " + kib(maxBody)}, {"| sizes", "seed file " + mib(maxSeed)},
			{"| sizes", "headers " + kib(srv.MaxHeaderBytes+4096)}, {"| store", mib(maxSize)},
			{"| store", fmt.Sprint(petCost, " bytes")}, {"| journal", count(maxJournal)},
			{"| journal", mib(maxJournalSize)}, {"| journal", count(maxAnswer) + " bytes"},
			{"| time", "headers " + seconds(srv.ReadHeaderTimeout)},
			{"| time", "request " + seconds(srv.ReadTimeout)},
			{"| time", "answer " + minutes(srv.WriteTimeout)}, {"| time", "the end " + seconds(stopTimeout)},
			{"| time", "idle connection " + minutes(srv.IdleTimeout)},
			{"| `-latency`, ", seconds(maxWait)}, {"| `stall`", seconds(maxWait)}, {"| `delay`", wait},
			{"| `answer-delay`", wait}, {"| `retry-after`", fmt.Sprint("0 to ", maxRetryAfter)},
			{"| key |", "1 to " + count(maxKey)}, {"| log |", count(cap(newLineBuffer(io.Discard).queue))},
			{"| getPet, deprecated", sunset}, {"what the page sends", "`Prefer: " + pagePrefer + "`"}},
		"api/contract.md": {{"# The contract", version}, {"| `limit` | integer", limit},
			{"| largest page", fmt.Sprint(maxLimit)}, {"| page without", fmt.Sprint(defaultLimit)},
			{"It is due to be removed", sunset}, {"is deprecated, and due", sunset}},
		"api/openapi.json": {{`"version"`, version}, {"Scheduled for", sunset}, {`"deprecated"`, "true"},
			{`"default"`, fmt.Sprintf(`"minimum": 1, "maximum": %d, "default": %d`, maxLimit, defaultLimit)},
			{`"double"`, fmt.Sprint(`"minimum": 0, "maximum": `, maxWait.Seconds())},
			{`"maximum"`, fmt.Sprint(`"minimum": 0, "maximum": `, maxRetryAfter)},
			{`"maximum"`, fmt.Sprint(maxSeedID)}, {`"maxItems"`, fmt.Sprint(maxLimit)},
			{`"maxItems"`, fmt.Sprint(maxJournal)}, {`"enum"`, string(encode(statuses[1:]))},
			{`"enum"`, string(encode(faultCodes))}, {`"enum"`, string(encode(faultOperations))}},
		"api/index.html": {{"refer", pagePrefer}},
	}
	add := func(file, words, fact string) { facts[file] = append(facts[file], [2]string{words, fact}) }
	for _, word := range faultCodes {
		add("README.md", "| `", "`"+word+"`")
		add("api/index.html", "option", word)
	}
	for _, name := range faultParameters {
		add("README.md", "| `"+name+"` | ", "|")
		add("api/index.html", "name=", `"`+name+`"`)
	}
	for _, name := range faultOperations {
		add("README.md", "| `operation`", "`"+name+"`")
		add("README.md", "| "+name, " /v1/pets")
		add("api/index.html", "option", name)
	}
	for _, status := range []int{401, 404, 405, 408, 413, 415, 500, 501, 507, 599} {
		add("README.md", strconv.Itoa(status), "`"+newError(status, "").Code+"`")
	}
	for code, status := range map[string]string{codeInvalidParameter: "400", codeInvalidBody: "400",
		codeInvalidToken: "401"} {
		add("README.md", status, "`"+code+"`")
	}
	for _, name := range append(members(entry{}), listParameters...) {
		if name != "seconds" { // which an example shows
			add("README.md", "`"+name+"`", name)
		}
	}
	var help lockedBuffer
	run(context.Background(), []string{"-h"}, os.Getenv, nil, io.Discard, &help)
	flags := regexp.MustCompile(`(?m)^  (-\w+)(.*)\n.*?(?:\(default "?(.*?)"?\))?$`)
	for _, m := range flags.FindAllStringSubmatch(help.String(), -1) {
		add("README.md", "| `"+m[1]+m[2]+"`", m[3])
	}
	pack := func(text string) string { return strings.ReplaceAll(text, " ", "") }
	for file, pairs := range facts {
		for _, pair := range pairs {
			isTold := slices.ContainsFunc(strings.Split(readFile(file), "\n"), func(line string) bool {
				return strings.Contains(line, pair[0]) && strings.Contains(pack(line), pack(pair[1]))
			})
			equal(t, fmt.Sprintf("%s: whether a line with %s has %s", file, pair[0], pair[1]), isTold, true)
		}
	}
	since := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC).Unix()
	equal(t, "Deprecation", operationHeaders["getPet"].Get("Deprecation"), fmt.Sprint("@", since))
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

// model has the pets that the service should have, in ascending order of id.
type model struct {
	pets []Pet
	last int64
}

var statuses = []PetStatus{"", "available", "pending", "sold"}

// randomPet returns a pet with values that meet those of other pets.
func randomPet(random *rand.Rand) NewPet {
	category := []int64{math.MinInt64, -1, 0, 7, 8, math.MaxInt64}[random.Intn(6)]
	return NewPet{strings.Repeat("n", random.Intn(30)), category, statuses[random.Intn(4)]}
}

// randomSeed returns the model of a seed, and the seed: shuffled, and the last three pets without ids.
func randomSeed(random *rand.Rand) (m model, seed string) {
	n := random.Intn(60)
	elements := make([]string, n+3)
	places := append(random.Perm(n), n, n+1, n+2)
	for i, place := range places {
		if m.last++; i < n {
			m.last += random.Int63n(4)
		}
		p := Pet{ID: m.last, NewPet: randomPet(random)}
		m.pets = append(m.pets, p)
		if elements[place] = string(encode(p)); i >= n {
			elements[place] = string(encode(p.NewPet))
		}
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
			status = statuses[random.Intn(3)+1]
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
		return "GET /v1/pets?" + query, "200 " + string(encode(page)) + link
	},
	"createPet": func(m *model, random *rand.Rand) (request, answer string) {
		m.last++
		p := Pet{ID: m.last, NewPet: randomPet(random)}
		m.pets = append(slices.Clip(m.pets), p)
		answer = fmt.Sprintf("201 %s\nLocation: /v1/pets/%d", encode(p), p.ID)
		return "POST /v1/pets " + string(encode(p.NewPet)), answer
	},
	"getPet": func(m *model, random *rand.Rand) (request, answer string) {
		id := random.Int63n(m.last+3) - 1
		answer = "404 not_found"
		if i := slices.IndexFunc(m.pets, func(p Pet) bool { return p.ID == id }); i >= 0 {
			answer = "200 " + string(encode(m.pets[i]))
		}
		return fmt.Sprint("GET /v1/pets/", id), answer + deprecated
	},
}

// Long random sequences of all operations and resets do what the model does, and the journal has them all.
func TestModel(t *testing.T) {
	for round := range 3 {
		random := rand.New(rand.NewSource(int64(round)))
		seed, file := randomSeed(random)
		s, m := start(t, "-quiet", "-seed", tempFile(t, file)), seed
		var journal []entry
		for n := 0; n < 1000 && !t.Failed(); n++ {
			switch random.Intn(50) {
			case 0:
				s.play(t, "POST /__admin/reset\n204")
				m, journal = seed, nil
			case 1:
				m, file = randomSeed(random)
				s.play(t, "POST /__admin/reset "+file+"\n204")
				journal = nil
			case 2, 3:
				s.recorded(t, journal...)
			default:
				names := keys(steps)
				request, answer := steps[names[random.Intn(len(names))]](&m, random)
				s.play(t, request+"\n"+answer)
				p, status := append(strings.SplitN(request, " ", 3), ""), must(strconv.Atoi(answer[:3]))
				journal = append(journal, entry{Method: p[0], URL: p[1], Body: p[2], Status: status})
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
		p := launch(t, child("-quiet", "-seed", tempFile(t, pets(1000000))))
		together(8, func(i int) {
			for n := range 1000 {
				after, page := int64(i*100000+n*75), []Pet{}
				r := p.do(t, fmt.Sprint("GET /v1/pets?limit=100&status=sold&after=", after))
				if json.Unmarshal([]byte(r.body), &page); len(page) != 100 || page[0].ID <= after {
					t.Errorf("a page behind %d: %s", after, r)
				}
			}
		})
		if mib := p.proc(t, "status", `VmHWM:\s*(\d+) kB`) >> 10; mib > 500 { // the most so far
			t.Errorf("it took %d MiB of memory", mib)
		}
	})
	t.Run("a stall", func(t *testing.T) {
		begin := time.Now()
		c := start(t).dial(t, "GET /v1/pets"+withKey+"Prefer: code=stall\n\n")
		c.SetDeadline(begin.Add(maxWait + patience))
		c.read().check(t, "a stall", "200 […\nContent-Length: 3\nPreference-Applied: code=stall")
		if took := time.Since(begin); took < maxWait || took >= maxWait+patience {
			t.Errorf("it ends after %v", took)
		}
	})
}

// pets returns a seed of n pets of 75 bytes. One in three is sold.
func pets(n int) string {
	text := []byte("[")
	for i := 1; i <= n; i++ {
		p := Pet{ID: int64(i), NewPet: NewPet{CategoryID: int64(i % 100), Status: "available"}}
		if i%3 == 0 {
			p.Status = "sold"
		}
		p.Name = strings.Repeat("x", 75-len(encode(p)))
		text = append(append(text, encode(p)...), ',')
	}
	return string(text[:len(text)-1]) + "]"
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
		p := launch(b, child("-quiet", "-seed", tempFile(b, pets(n))))
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
		"PETSTORE_TEST_HEADER="+string(encode(answer.header)))
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
			load(s, 500)
			used[i] += s.cpu(b) - begin
		}
	}
	b.ReportMetric(0, "ns/op") // that would be the time of both, and of the client
	b.ReportMetric(float64(used[0].Microseconds())/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(used[0])/float64(max(used[1], 1)), "x-bare")
}

// serveBare is the bare server. It has the same answer for all requests.
func serveBare() {
	srv, header, body := newServer(plainAPI()), http.Header{}, os.Getenv("PETSTORE_TEST_BODY")
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

// Helpers: scripts.

// play sends the requests of a script, and compares the answers. A script has exchanges: a request, as do
// sends it, and its answer, as String writes it. The end of an Error's message may be missing, or all of it.
func (s *service) play(t testing.TB, script string) {
	t.Helper()
	script = regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(strings.Trim(script, "\n\t"), "")
	starts := regexp.MustCompile(`(?m)^[A-Za-z]+ \S*[/*]`).FindAllStringIndex(script, -1)
	for i, next := range append(starts, []int{len(script)})[1:] {
		exchange := strings.TrimRight(script[starts[i][0]:next[0]], "\n")
		answer := regexp.MustCompile(`(?m)^(\d{3}\b|no answer)`).FindStringIndex(exchange)
		s.do(t, exchange[:answer[0]-1]).check(t, exchange[:answer[0]-1], exchange[answer[0]:])
	}
}

// row is an exchange.
type row struct{ send, want string }

func (s *service) playRows(t testing.TB, rows []row) {
	t.Helper()
	for _, c := range rows {
		s.play(t, c.send+"\n"+c.want)
	}
}

// check compares an answer with that of a script.
func (r reply) check(t testing.TB, what, want string) {
	t.Helper()
	got, want := r.String(), sortHeaders(want)
	gotLine, _, _ := strings.Cut(got, "\n")
	wantLine, _, _ := strings.Cut(want, "\n")
	if r.error() != (Error{}) && strings.HasPrefix(gotLine, wantLine) {
		got = wantLine + got[len(gotLine):]
	}
	equal(t, what, got, want)
}

func sortHeaders(answer string) string {
	lines := strings.Split(answer, "\n")
	slices.Sort(lines[1:])
	return strings.Join(lines, "\n")
}

// equal compares what came of something with what must come of it.
func equal[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%.2000s\n--- got:\n%.3000s\n--- want:\n%.3000s", what, fmt.Sprint(got), fmt.Sprint(want))
	}
}

// Helpers: requests and answers.

// service is a petstore that runs.
type service struct {
	addr, key string        // host:port, and the key that do sends
	stderr    *lockedBuffer // what it has written there so far
	cancel    func()        // asks it to stop, as SIGTERM does
	stop      func()        // stops it, and checks how it ends
	idle      sync.Pool     // connections that are not in use
}

// as returns s for a client that sends another key or, with "", none.
func (s *service) as(key string) *service { return &service{addr: s.addr, key: key} }

// do sends a request and reads the answer. In the first line are the method, the target and, behind the next
// space, the body; headers follow. Host, Authorization with the key and Content-Length are sent too unless
// they are given. With Transfer-Encoding: chunked, the body is one chunk.
func (s *service) do(t testing.TB, request string) reply {
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
func (s *service) connect(t testing.TB) *connection {
	t.Helper()
	c, _ := s.idle.Get().(*connection)
	if c == nil {
		conn, err := net.DialTimeout("tcp", s.addr, patience)
		if err != nil {
			t.Error(err)
			conn = new(net.TCPConn) // reads and writes fail
		}
		c = &connection{TCPConn: conn.(*net.TCPConn), in: bufio.NewReader(conn)}
	}
	c.SetDeadline(time.Now().Add(patience))
	return c
}

// withKey is what stands behind a target, with testKey, for dial.
const withKey = " HTTP/1.1\nHost: petstore\nAuthorization: Bearer " + testKey + "\n"

// dial opens a connection until the test ends, and sends what is given, with CR LF for each \n.
func (s *service) dial(t testing.TB, send string) *connection {
	t.Helper()
	c := s.as("").connect(t)
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
	body   string
	cut    bool // whether the connection closed before the body's end
	close  bool // whether the connection closes behind it
}

// read reads the next answer.
func (c *connection) read() reply {
	resp, err := http.ReadResponse(c.in, &http.Request{Method: c.method})
	if err != nil {
		return reply{}
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
	if e.Message == "" || e.Status != r.status || string(encode(e))+"\n" != r.body {
		return Error{}
	}
	return e
}

// String returns the answer as scripts have it: "200 []", "404 not_found: no such path" for an Error, or "no
// answer"; a body that is cut ends with …. Sorted headers follow, but those that each answer has: a right
// Content-Length, Date and a Content-Type of JSON.
func (r reply) String() string {
	if r.status == 0 {
		return "no answer"
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
func (s *service) journal(t testing.TB) (requests []entry, total int) {
	t.Helper()
	r := s.do(t, "GET /__admin/requests")
	var journal struct {
		Requests []entry
		Meta     struct{ Total int }
	}
	if err := json.Unmarshal([]byte(r.body), &journal); err != nil {
		t.Errorf("the journal: %v %.500s", err, r)
	}
	return journal.Requests, journal.Meta.Total
}

// recorded compares the journal with these entries: Method, URL, Body, Status and Fault of each.
func (s *service) recorded(t testing.TB, want ...entry) {
	t.Helper()
	requests, _ := s.journal(t)
	var got []entry
	for _, e := range requests {
		got = append(got, entry{Method: e.Method, URL: e.URL, Body: e.Body, Status: e.Status, Fault: e.Fault})
	}
	equal(t, "the journal", got, want)
}

// untilRecorded waits until the journal has n requests.
func (s *service) untilRecorded(t testing.TB, n int) {
	t.Helper()
	eventually(t, "a request in the journal", func() bool { _, total := s.journal(t); return total >= n })
}

// untilMet waits until the standing fault has met a request. If it has a delay, that waits then, or will.
func (s *service) untilMet(t testing.TB) {
	t.Helper()
	eventually(t, "a request that meets the fault", func() bool {
		return strings.Contains(s.do(t, "GET /__admin/fault").body, `"met":1,`)
	})
}

// Helpers: three ways to start a service. start runs it in this process, serveAPI gives the test its insides,
// and launch makes it a process of its own.

// testKey is the API key of the services that the tests start.
const testKey = "correct-horse"

// start runs the service with testKey on a free port until the test ends.
func start(t testing.TB, args ...string) *service {
	t.Helper()
	return command{key: testKey, args: args}.start(t)
}

// command is a command line with its standard input, and an environment that has only the key.
type command struct {
	key   string
	args  []string
	stdin io.Reader
}

func (c command) run(ctx context.Context, stdout, stderr io.Writer) int {
	getenv := func(name string) string { return map[string]string{"PETSTORE_API_KEY": c.key}[name] }
	return run(ctx, c.args, getenv, cmp.Or[io.Reader](c.stdin, strings.NewReader("")), stdout, stderr)
}

// start runs it on a free port until the test ends. It must print only its base URL, and exit with 0.
func (c command) start(t testing.TB) *service {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &service{key: c.key, stderr: new(lockedBuffer), cancel: cancel}
	c.args = append([]string{"-addr", "127.0.0.1:0"}, c.args...)
	out, w := io.Pipe()
	exit := make(chan int, 1)
	go func() { code := c.run(ctx, w, s.stderr); w.Close(); exit <- code }()
	stdout := bufio.NewReader(out)
	s.stop = sync.OnceFunc(func() {
		s.cancel()
		more, _ := io.ReadAll(stdout)
		end := fmt.Sprint(string(more), receive(t, "the end", exit))
		equal(t, "stdout behind the base URL, and exit code", end, "0")
	})
	s.addr = readAddr(t, stdout, s.stderr)
	t.Cleanup(s.stop)
	s.key = cmp.Or(s.key, regexp.MustCompile(`[0-9a-f]{32}`).FindString(s.stderr.String()))
	return s
}

// ends runs one that does not serve. What it prints is compared with a regular expression.
func (c command) ends(t testing.TB, code int, output string) {
	t.Helper()
	var stdout, stderr lockedBuffer
	got := within(t, "the end", func() int { return c.run(context.Background(), &stdout, &stderr) })
	printed := stdout.String() + stderr.String()
	if got != code || !regexp.MustCompile("^(?:"+output+")\n$").MatchString(printed) {
		t.Errorf("petstore %q exits with %d:\n%s\nwant %d:\n%s", c.args, got, printed, code, output)
	}
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
func testAPI(seed *store, latency time.Duration, stopping context.Context) *api {
	return newAPI(testKey, seed, latency, stopping, slog.New(slog.NewTextHandler(io.Discard, nil)))
}

// plainAPI returns one without pets and latency, which never stops.
func plainAPI() *api { return testAPI(newStore(), 0, context.Background()) }

// serveAPI serves a until the test ends. Each change is made to the server before.
func serveAPI(t testing.TB, a *api, changes ...func(*http.Server)) *service {
	srv := newServer(a)
	for _, change := range changes {
		change(srv)
	}
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	go srv.Serve(ln)
	t.Cleanup(func() { srv.Close() })
	return &service{addr: ln.Addr().String(), key: testKey}
}

// TestMain makes of the test binary the service itself, for launch, or the bare server of benchmarks.
func TestMain(m *testing.M) {
	time.Local = time.FixedZone("east", 9*60*60) // where a Date in local time is a wrong one
	switch os.Getenv("PETSTORE_TEST_CHILD") {
	case "petstore":
		main()
	case "bare":
		serveBare()
	}
	flag.Parse()
	flag.Set("test.parallel", "8") // many tests do nothing but wait
	os.Exit(m.Run())
}

// process is a service in a process of its own. It is killed when the test ends.
type process struct {
	*service
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
	s := &service{key: testKey, stderr: new(lockedBuffer)}
	p := &process{s, cmd, bufio.NewReader(must(cmd.StdoutPipe()))}
	cmd.Stderr = cmp.Or[io.Writer](cmd.Stderr, p.service.stderr)
	must(0, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	p.addr = readAddr(t, p.stdout, p.service.stderr)
	return p
}

// ends checks how the process ends, "exit status 1" or "<nil>", and that it printed only its base URL.
func (p *process) ends(t testing.TB, how string) {
	t.Helper()
	got := within(t, "the end of the process", func() string {
		more, _ := io.ReadAll(p.stdout)
		return fmt.Sprint(string(more), p.cmd.Wait())
	})
	equal(t, "stdout behind the base URL, and the end", got, how)
}

// Helpers: waiting.

// patience is how long a test waits for what must come. Only a test that fails waits that long.
const patience = 30 * time.Second

// within returns what f returns, in time. f must not end the test: it is a goroutine.
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

// must panics at an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// sorted returns a sorted copy of list, and keys the sorted keys of m.
func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

func keys[V any](m map[string]V) (list []string) {
	for key := range m {
		list = append(list, key)
	}
	return sorted(list)
}

// seedOf returns a seed of n pets, with ids from 1, which are sold.
func seedOf(n int) string {
	const sold = `{"name":"a","categoryId":1,"status":"sold"}`
	return "[" + strings.Repeat(sold+",", n-1) + sold + "]"
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
	unread sync.Mutex // held by a test while nobody reads what is written, so that Write waits
	mu     sync.Mutex // guards b
	b      bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.unread.Lock()
	defer l.unread.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }
