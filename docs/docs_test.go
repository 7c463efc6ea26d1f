// Package docs holds the documents of petstore. In Go, it has only their tests:
// commands print what the documents show, and api/openapi.json is true. The tests
// use petstore as its users do, as a program.
package docs

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	key = "test" // as in README.md
	rex = `{"name":"Rex","categoryId":7,"status":"sold"}`
)

var update = flag.Bool("update", false, "write the tables that TestTables compares")
var petstore string // the path of the binary

// The blocks of README.md that a block of output follows, run as one session in each
// shell, print that output, where … stands for lines, and each number of seconds for any.
func TestReadme(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"sh", "bash", "zsh"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			need(t, shell+" -c :", "curl --version")
			s := start(t)
			running := strings.NewReplacer("PETSTORE_API_KEY=test go run .", "echo "+s+"/v1", "http://127.0.0.1:8080", s,
				"go run .", "go_run", "/tmp/", "./")
			text := running.Replace(readFile(t, "../README.md"))
			blocks := regexp.MustCompile("\n```sh\n([^`]*)```\n```text\n([^`]*)```\n").FindAllStringSubmatch(text, -1)
			equal(t, "the number of blocks with an output", len(blocks), strings.Count(text, "\n```text\n"))
			// In a terminal, curl shows errors and no progress.
			script := "exec 2>&1; export no_proxy=127.0.0.1; curl() { command curl -sS \"$@\"; }\n" +
				"go_run() { '" + petstore + "' \"$@\" || echo exit status $?; }\n"
			for _, block := range blocks {
				script += block[1] + "printf '\\036'\n" // separates the outputs
			}
			_, output := run(t, t.TempDir(), nil, script, shell)
			got := append(strings.Split(output, "\x1e"), make([]string, len(blocks))...) // the shell may end early
			seconds := regexp.MustCompile(`\d+\\\.\d`)
			for i, block := range blocks {
				want := strings.ReplaceAll(regexp.QuoteMeta(block[2]), "…\n", "(?:.*\n)+")
				want = seconds.ReplaceAllLiteralString(want, `\d+\.\d`)
				if !regexp.MustCompile("^" + want + "$").MatchString(strings.ReplaceAll(got[i], "\r", "")) {
					t.Errorf("%s:\n got %s\nwant %s", block[1], got[i], block[2])
				}
			}
		})
	}
}

// The examples, run as README.md says, pass in a folder that has nothing but a
// petstore, and leave none behind. They also pass with that of PETSTORE_URL, and
// without a petstore, they say what to do.
func TestExamples(t *testing.T) {
	t.Parallel()
	commands := find(readFile(t, "../README.md"), "\\(examples/[^|\n]*\\| `([^`]*)`")
	// A binary may be there, too.
	files, _ := filepath.Glob("../examples/*[pP]etstore*.[^e]*")
	equal(t, "the number of commands", len(commands), len(files))
	needs := map[string][]string{ // by program; each is of the version that README names, or newer
		"go":     {"go version"},
		"node":   {"node --test --version"},
		"pytest": {"pytest --version"},
		"java":   {"java -version", "javac --release 17 -version"},
	}
	fiveTests := regexp.MustCompile(`\bpass 5\n|\b5 passed|(ok - .*\n){5}|(?s:--- PASS: .*){5}`)
	for _, command := range commands {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(command)
			dir, file := t.TempDir(), args[len(args)-1]
			need(t, needs[args[0]]...)
			os.WriteFile(filepath.Join(dir, file), []byte(readFile(t, "../examples/"+file)), 0o600)
			code, output := run(t, dir, nil, "", args...)
			if code == 0 || !strings.Contains(output, "build petstore first, or change ") {
				t.Errorf("got the exit code %d, want one that says what is missing:\n%s", code, output)
			}
			passes := func(env ...string) {
				t.Helper()
				code, output := run(t, dir, env, "", args...)
				if code != 0 || !fiveTests.MatchString(output) {
					t.Errorf("got the exit code %d, want 0 after five tests:\n%s", code, output)
				}
			}
			passes("PETSTORE_URL="+start(t)+"/v1", "PETSTORE_API_KEY="+key)
			os.Symlink(petstore, filepath.Join(dir, "petstore"))
			passes()
		})
	}
}

// Each link to a file leads to one and, with a fragment, to a heading.
func TestLinks(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("../*/*.md")
	for _, file := range append(files, "../README.md") {
		for _, link := range find(readFile(t, file), `(?:\]\(|src=")([^)":\s]+)[)"]`) {
			path, fragment, _ := strings.Cut(link, "#")
			target := filepath.Join(filepath.Dir(file), cmp.Or(path, filepath.Base(file)))
			heading := regexp.MustCompile(`(?im)^#+ ` + strings.ReplaceAll(fragment, "-", `\W+`) + "$")
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: got the link %s: %v", file, link, err)
			} else if fragment != "" && !heading.MatchString(readFile(t, target)) {
				t.Errorf("%s: got the link %s, want one to a heading", file, link)
			}
		}
	}
}

// The tables that are marked as written are as in api/openapi.json, but for their
// heads. With -update, this test writes them, so it is not parallel.
func TestTables(t *testing.T) {
	d := readOpenAPI(t)
	tables := map[string]string{}
	row := func(table string, cells ...string) {
		tables[table] += "| " + strings.Join(cells, " | ") + " |\n"
	}
	members := func(table, prefix, of string) {
		schema := d.resolve(d.Components.Schemas[of])
		for _, m := range schema.Properties {
			name, values := "`"+prefix+m.name+"`", d.values(m.value)
			if table == "journal" && !slices.Contains(schema.Required, m.name) {
				values += ", or absent"
			}
			if table != "faults" || !strings.Contains(tables[table], "| "+name+" |") { // it is no parameter
				row(table, name, values, d.resolve(m.value).Description)
			}
		}
	}
	for _, op := range d.operations {
		table := map[bool]string{false: "operations", true: "control"}[op.isAdmin()]
		row(table, "**"+op.OperationID+"**: `"+op.request+"`", "", op.Description)
		switch op.OperationID {
		case "createPet":
			members(table, "", "NewPet")
		case "setFault":
			table = "faults"
		}
		for _, p := range op.Parameters {
			row(table, "`"+p.Name+"`", d.values(p.Schema), p.Description)
		}
	}
	members("faults", "", "Fault")
	members("journal", "", "Journal")
	members("journal", "requests[].", "JournalEntry")
	members("journal", "meta.", "JournalMeta")
	for _, code := range d.Components.Schemas["FaultCode"].OneOf {
		row("codes", d.values(code), code.Description)
	}
	written := regexp.MustCompile(`(<!-- written: (\w+) -->\n\n.*\n\|---.*\n)(?s:.*?)(\n<!-- end -->)`)
	for _, file := range []string{"../README.md", "reference.md"} {
		got := readFile(t, file)
		want := written.ReplaceAllStringFunc(got, func(part string) string {
			match := written.FindStringSubmatch(part)
			table, found := tables[match[2]]
			if !found {
				return part // another test writes it
			}
			delete(tables, match[2])
			equal(t, "what has no meaning", strings.Join(find(table, `(.*)\|  \|\n`), "\n"), "")
			return match[1] + table + match[3]
		})
		if *update {
			os.WriteFile(file, []byte(want), 0o666)
		} else if got != want {
			t.Errorf("%s is not up to date; this writes it: go test ./docs -update", file)
		}
	}
	equal(t, "the number of tables that no document has", len(tables), 0)
}

// api/openapi.json has the version, and the operations with their names, methods
// and parameters. It marks what the contract does not have.
func TestOperations(t *testing.T) {
	t.Parallel()
	d, s := readOpenAPI(t), start(t)
	out, _ := exec.Command(petstore, "-version").Output()
	contains(t, "the output of -version", "\n"+string(out), "\n"+d.Info.Version+" ")
	const mark = "Petstore's own: "
	checkMark := func(name, description string) {
		if strings.Contains(readFile(t, "../api/contract.md"), name) == strings.HasPrefix(description, mark) {
			t.Errorf("%s: got the description %q, want %q only if the contract lacks it", name, description, mark)
		}
	}
	commas := strings.NewReplacer(", or ", ", ", " or ", ", ")
	send(t, s, "POST /__admin/reset", "["+strings.Repeat(rex+",", 99)+rex+"]")
	methods := map[string][]string{}
	for _, op := range d.operations {
		method, path, _ := strings.Cut(op.request, " ")
		methods[path] = append(methods[path], strings.Replace(method, "GET", "GET, HEAD", 1))
		query, parameters := "?", ""
		for _, p := range op.Parameters {
			if !op.isAdmin() {
				checkMark("`"+p.Name+"`", p.Description)
			}
			if p.In == "query" {
				parameters += ", " + p.Name
			}
			statuses := map[any]int{"": 400, "%C3%A9": 400} // by value
			if longest := strings.Repeat("%C3%A9", p.Schema.MaxLength); longest != "" {
				statuses = map[any]int{longest: 204, longest + "x": 400}
			} else {
				_, answer := send(t, s, op.request+query+p.Name+"=x", "")
				contains(t, "the message for "+p.Name, commas.Replace(answer), strings.Join(d.words(p.Schema), ", ")+`"`)
			}
			if least, found := p.Schema.Minimum.(float64); found {
				statuses[least], statuses[least-1] = 200, 400
			}
			if most, found := p.Schema.Maximum.(float64); found {
				statuses[most], statuses[most+1] = 200, 400
			}
			if p.Name == "code" {
				query = "?code=503&" // which the other parameters need
			}
			for value, want := range statuses {
				if p.In == "query" {
					resp, _ := send(t, s, fmt.Sprint(op.request, query, p.Name, "=", value), "")
					equal(t, fmt.Sprint("the status for ", p.Name, "=", value), resp.StatusCode, want)
				}
			}
			if p.Schema.Default != nil {
				_, got := send(t, s, op.request+query, "")
				_, want := send(t, s, fmt.Sprint(op.request, query, p.Name, "=", p.Schema.Default), "")
				equal(t, "the answer without "+p.Name, got, want)
			}
		}
		query = "?unknown" + strings.ReplaceAll(parameters, ", ", "&")
		_, answer := send(t, s, op.request+query, "")
		if op.isAdmin() {
			takes := strings.Join(find(answer, `it takes the query parameters ([^"]*)`), "")
			equal(t, "the parameters of "+op.OperationID, takes, strings.TrimPrefix(parameters, ", "))
			continue
		}
		_, journal := send(t, s, "GET /__admin/requests", "")
		last := journal[strings.LastIndex(journal, `"method":`):]
		contains(t, "the last request", last, `"operation":"`+op.OperationID+`"`)
		contains(t, "the last request", last, `"ignored":["unknown"]`)
		checkMark(op.OperationID, op.Description)
	}
	send(t, s, "POST /__admin/reset", "[]") // without a fault
	for path, described := range methods {
		resp, _ := send(t, s, "PATCH "+path, "")
		slices.Sort(described)
		equal(t, "the methods of "+path, resp.Header.Get("Allow"), strings.Join(described, ", "))
	}
	newPet := d.Components.Schemas["NewPet"]
	for _, m := range newPet.Properties {
		checkMark("`"+m.name+"`", d.resolve(m.value).Description)
		resp, _ := send(t, s, "POST /v1/pets", strings.Replace(rex, m.name, "other", 1))
		isRequired := slices.Contains(newPet.Required, m.name)
		equal(t, "the status without "+m.name, resp.StatusCode, map[bool]int{true: 400, false: 201}[isRequired])
	}
}

// The answers of each operation have the members that api/openapi.json describes.
// Each of these members is in some answer.
func TestSchemas(t *testing.T) {
	t.Parallel()
	d, s := readOpenAPI(t), start(t)
	seen := map[string]bool{} // whether a member, such as Pet.id, is in some answer
	for _, op := range d.operations {
		for status, response := range op.Responses {
			if strings.HasPrefix(status, "2") {
				seen[op.OperationID+" "+status] = false
			}
			if content := response.Content["application/json"]; content.Example != nil {
				d.check(t, "the example of "+op.OperationID+" "+status, content.Schema, content.Example, map[string]bool{})
			}
		}
		body := string(op.RequestBody.Content["application/json"].Example)
		check := func(fault string, headers ...string) {
			request := strings.Replace(op.request, "{petId}", "1", 1)
			if op.OperationID == "setFault" {
				request += "?" + fault
			}
			resp, answer := send(t, s, request, body, headers...)
			described, isDescribed := op.Responses[fmt.Sprint(resp.StatusCode)]
			of := described.Content["application/json"].Schema
			equal(t, "whether "+request+" has the answer it got", isDescribed || resp.StatusCode >= 400, true)
			if resp.StatusCode >= 400 {
				of.Ref = "#/components/schemas/Error"
			}
			if resp.StatusCode != 204 {
				d.check(t, request, of, []byte(answer), seen)
			}
			seen[fmt.Sprint(op.OperationID, " ", resp.StatusCode)] = true
		}
		send(t, s, "POST /__admin/reset", `[{"name":"Ida","categoryId":2}]`) // without what is optional
		check("delay=0")
		check("delay=0", "Authorization: Bearer wrong")
		// The entry of a request that changes pets has a member that says so, as pet does.
		membersOf := func(headers ...string) map[string]json.RawMessage {
			var journal struct{ Requests []map[string]json.RawMessage }
			send(t, s, strings.Replace(op.request, "{petId}", "1", 1), body, headers...)
			_, text := send(t, s, "GET /__admin/requests", "")
			json.Unmarshal([]byte(text), &journal)
			return journal.Requests[len(journal.Requests)-1]
		}
		if !op.isAdmin() {
			send(t, s, "POST /__admin/reset", "["+rex+"]")
			without := membersOf("Prefer: code=503")
			_, before := send(t, s, "GET /__admin/pets", "")
			performed := membersOf("User-Agent: another client") // which repeats nothing
			_, after := send(t, s, "GET /__admin/pets", "")
			maps.DeleteFunc(performed, func(name string, _ json.RawMessage) bool { return without[name] != nil })
			equal(t, "whether the journal says that "+op.OperationID+" changes pets", len(performed) > 0, before != after)
		}
		// These make the fault and the journal have all members.
		const fault = "code=503&delay=0&answer-delay=0&retry-after=1&error-code=x"
		const standing = fault + "&operation=createPet&skip=1&times=2"
		send(t, s, "POST /__admin/reset?test=TestSchemas", "["+rex+"]")
		send(t, s, "POST /v1/pets", rex)
		send(t, s, "PUT /__admin/fault?"+standing, "")
		send(t, s, "POST /v1/pets", rex) // which the skip lets through
		for range 2 {                    // the second request repeats the first
			send(t, s, "GET /v1", "", "Prefer: "+strings.ReplaceAll(fault, "&", ","))
		}
		send(t, s, "HEAD /v1/pets?x", "")
		// The answer to another repetition, without its body, comes while the request waits.
		send(t, s, "GET /v1/pets", "", "Prefer: code=503")
		r := newRequest(s, "GET /v1/pets", "", "Prefer: code=stall")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		check(standing)
	}
	for _, op := range d.operations {
		for _, p := range op.Parameters {
			if _, isMember := seen["Fault."+p.Name]; op.OperationID == "setFault" && !isMember {
				t.Errorf("Fault lacks the parameter %s", p.Name)
			}
		}
	}
	for member, isThere := range seen {
		if !isThere {
			t.Errorf("no answer has %s: is it set, and does a request of this test ask for it?", member)
		}
	}
}

// description is api/openapi.json.
type description struct {
	Info       struct{ Version string }
	Paths      object[object[json.RawMessage]]
	Components struct{ Schemas map[string]schema }
	operations []operation // in their order
}

type operation struct {
	request                  string // such as GET /v1/pets
	OperationID, Description string
	RequestBody              struct{ Content map[string]content }
	Parameters               []struct {
		Name, In, Description string
		Schema                schema
	}
	Responses map[string]struct{ Content map[string]content }
}

type content struct {
	Schema  schema
	Example json.RawMessage
}

func (op operation) isAdmin() bool { return strings.Contains(op.request, " /__admin/") }

type schema struct {
	Ref                                             string `json:"$ref"`
	Description, Type                               string
	Values                                          string `json:"x-values"` // which are allowed, in words
	Enum, Required                                  []string
	MaxLength                                       int
	AllOf, OneOf                                    []schema
	Items                                           *schema
	Properties                                      object[schema]
	AdditionalProperties, Minimum, Maximum, Default any
}

// object is a JSON object whose members have an order.
type object[V any] []struct {
	name  string
	value V
}

func (o *object[V]) UnmarshalJSON(text []byte) error {
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.Token() // the brace
	for dec.More() {
		name, _ := dec.Token()
		one := make(object[V], 1)
		one[0].name = name.(string)
		if err := dec.Decode(&one[0].value); err != nil {
			return err
		}
		*o = append(*o, one...)
	}
	return nil
}

func readOpenAPI(t *testing.T) *description {
	d := &description{}
	err := json.Unmarshal([]byte(readFile(t, "../api/openapi.json")), d)
	for _, path := range d.Paths {
		for _, item := range path.value {
			if item.name != "servers" { // those of a path under /__admin
				request := strings.ToUpper(item.name) + " /v1" + path.name
				op := operation{request: strings.Replace(request, "/v1/__admin", "/__admin", 1)}
				err = errors.Join(err, json.Unmarshal(item.value, &op))
				d.operations = append(d.operations, op)
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// resolve returns the schema that a schema refers to, with the parts of allOf as one.
func (d *description) resolve(s schema) schema {
	if s.Ref != "" {
		s = d.Components.Schemas[filepath.Base(s.Ref)]
	}
	for _, part := range s.AllOf {
		part = d.resolve(part)
		s.Type = part.Type
		s.Required = append(s.Required, part.Required...)
		s.Properties = append(s.Properties, part.Properties...)
	}
	return s
}

// words returns the words that a schema allows.
func (d *description) words(s schema) []string {
	s = d.resolve(s)
	words := s.Enum
	for _, one := range s.OneOf {
		words = append(words, one.Enum...)
	}
	return words
}

// values says which values a schema allows.
func (d *description) values(s schema) string {
	s = d.resolve(s)
	text := cmp.Or(s.Values, s.Type)
	switch {
	case s.Enum != nil:
		text = "`" + strings.Join(s.Enum, "`, `") + "`"
	case s.OneOf != nil:
		text = d.values(s.OneOf[0])
		for _, one := range s.OneOf[1:] {
			text += ", " + d.values(one)
		}
	case s.Maximum != nil:
		text += fmt.Sprintf(" from %v to %v", s.Minimum, s.Maximum)
	case s.Minimum != nil:
		text += fmt.Sprintf(", at least %v", s.Minimum)
	}
	if s.Default != nil {
		text += fmt.Sprint(", by default ", s.Default)
	}
	return text
}

// check checks that JSON has the type and the members that its schema describes,
// with those that are required. It notes in seen which members are there.
func (d *description) check(t *testing.T, name string, s schema, text []byte, seen map[string]bool) {
	t.Helper()
	name = cmp.Or(strings.TrimPrefix(s.Ref, "#/components/schemas/"), name)
	s = d.resolve(s)
	var elements []json.RawMessage
	var members map[string]json.RawMessage
	into := map[string]any{"string": new(string), "integer": new(int64), "number": new(float64),
		"array": &elements, "object": &members}[s.Type]
	if err := json.Unmarshal(text, into); err != nil {
		t.Errorf("%s: got %s, want what is described: %v", name, text, err)
	}
	for _, element := range elements {
		d.check(t, name, *s.Items, element, seen)
	}
	for _, required := range s.Required {
		if members[required] == nil {
			t.Errorf("%s: got %s, want the member %s in it", name, text, required)
		}
	}
	for _, m := range s.Properties {
		path := name + "." + m.name
		seen[path] = seen[path] || members[m.name] != nil
		if members[m.name] != nil {
			d.check(t, path, m.value, members[m.name], seen)
		}
		delete(members, m.name)
	}
	if len(members) > 0 && s.AdditionalProperties == nil {
		t.Errorf("%s: got %s, want it without %s, which is not described", name, text, members)
	}
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "petstore")
	petstore = filepath.Join(dir, "petstore")
	out, err2 := exec.Command("go", "build", "-buildvcs=false", "-o", petstore, "..").CombinedOutput()
	if err := errors.Join(err, err2); err != nil {
		log.Fatalf("go build: %v\n%s", err, out)
	}
	flag.Set("test.parallel", "16") // as the tests mostly wait
	m.Run()
	os.RemoveAll(dir)
}

// start starts a petstore, which runs until the test ends. It returns its URL.
func start(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(petstore, "-addr", "127.0.0.1:0", "-stdin")
	cmd.Env = append(os.Environ(), "PETSTORE_API_KEY="+key)
	cmd.Stderr = os.Stderr
	cmd.StdinPipe() // which ends with the test binary, even if that is killed
	stdout, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, _ := bufio.NewReader(stdout).ReadString('\n') // if it has not started, no request succeeds
	return strings.TrimSuffix(line, "/v1\n")
}

// newRequest returns a request to a petstore, such as "GET /v1/pets", with headers, such as
// "Prefer: code=503".
func newRequest(base, request, body string, headers ...string) *http.Request {
	method, target, _ := strings.Cut(request, " ")
	r, _ := http.NewRequest(method, base+target, strings.NewReader(body))
	for _, header := range append([]string{"Authorization: Bearer " + key, "Content-Type: application/json"}, headers...) {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	return r
}

// send sends a newRequest, and returns the answer, and its body.
func send(t *testing.T, base, request, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(newRequest(base, request, body, headers...))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body) // if a part is missing, it is not what a test wants
	return resp, string(text)
}

// run runs a command in a folder, with variables such as "NAME=value" in addition, and
// returns its exit code and its output. What it has started must end, too, so that no
// petstore is left: it has the output.
func run(t *testing.T, dir string, env []string, stdin string, args ...string) (code int, output string) {
	t.Helper()
	r, w, _ := os.Pipe()
	defer r.Close()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "http_proxy=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1", "NODE_USE_ENV_PROXY=1",
		"TMPDIR="+dir, "GOFLAGS=-count=1 -v", "PS1=", "PS2=")
	if strings.HasSuffix(args[0], "sh") {
		cmd.Env = append(cmd.Env, "LC_ALL=C") // or bash may warn of a locale that is not installed
	}
	changesOutput := regexp.MustCompile(`^(FORCE_COLOR|PY_COLORS|PYTEST_ADDOPTS|NODE_OPTIONS|PETSTORE_URL)=`)
	cmd.Env = append(slices.DeleteFunc(cmd.Env, changesOutput.MatchString), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), w, w
	cmd.Start()
	w.Close()
	r.SetReadDeadline(time.Now().Add(100 * time.Second))
	text, err := io.ReadAll(r)
	if err != nil {
		t.Errorf("%s: got %v, want the end of all that it has started", args[0], err)
		cmd.Process.Kill()
	}
	cmd.Wait() // the exit code is what counts
	return cmd.ProcessState.ExitCode(), string(text)
}

// need skips the test unless these commands succeed: a program that is on the PATH may be
// too old, or stand for another that is not installed.
func need(t *testing.T, commands ...string) {
	t.Helper()
	for _, command := range commands {
		args := strings.Fields(command)
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%s: %v\n%s", command, err, out)
		}
	}
}

// find returns what the group of a pattern matches in a text.
func find(text, pattern string) (list []string) {
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		list = append(list, match[1])
	}
	return list
}

// readFile returns a file. As the tests depend on the source files, too, it looks
// at all files, so that go test runs the tests again if one has changed.
func readFile(t *testing.T, name string) string {
	t.Helper()
	filepath.Glob("../[a-z]*/*")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %#v\nwant %#v", what, got, want)
	}
}

func contains(t *testing.T, what, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) {
		t.Errorf("%s:\n got %q\nwant %q in it", what, got, want)
	}
}
