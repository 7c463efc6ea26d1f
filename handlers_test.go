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

// README: the commands and recipes as they stand there.

// The console blocks of README.md are one session, and print what they show.
func TestReadmeConsole(t *testing.T) {
	need(t, "sh")
	need(t, "curl")
	const address, randomKey = "127.0.0.1:8080", "5f0c2ae1b7d94e3c8a6610f2d3b4c5e6"
	home := t.TempDir()
	os.WriteFile(filepath.Join(home, ".curlrc"), []byte("silent\n"), 0o600) // no progress meter
	script := "exec 2>&1\n"
	type step struct {
		name, command, want, printed string
		shown                        *strings.Replacer // turns what the run has into what README.md shows
	}
	var steps []step
	var s *service             // that the commands talk to
	number := map[string]int{} // of the commands below a heading
	for _, block := range readme(t, "console") {
		for _, part := range strings.Split("\n"+block.code, "\n$ ")[1:] {
			command, output, _ := strings.Cut(strings.TrimSpace(part), "\n")
			number[block.heading]++
			step := step{name: fmt.Sprint(block.heading, " ", number[block.heading]), command: command, want: output}
			if key, found := strings.CutSuffix(command, "go run ."); found {
				s = startKey(t, strings.TrimPrefix(strings.TrimSpace(key), "PETSTORE_API_KEY="))
				step.printed = s.stderr.String() + "http://" + s.addr + "/v1"
			} else {
				script += strings.ReplaceAll(command, address, s.addr) + "\n"
			}
			script += "printf '\\036'\n"
			step.shown = strings.NewReplacer(s.addr, address, "\r", "")
			if len(s.key) == len(randomKey) {
				step.shown = strings.NewReplacer(s.addr, address, s.key, randomKey)
			}
			steps = append(steps, step)
		}
	}
	cmd := command(t, "sh", "-c", script)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "CURL_HOME="+home)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	varies := regexp.MustCompile(`(Date: ).*|("time":")[^"]*|(curl/)[0-9.]*`)
	for i, printed := range strings.Split(string(out), "\036")[:len(steps)] {
		step := steps[i]
		t.Run(step.name, func(t *testing.T) {
			got := varies.ReplaceAllString(strings.TrimSpace(step.shown.Replace(step.printed+printed)), "$1$2$3")
			if want := varies.ReplaceAllString(step.want, "$1$2$3"); got != want {
				t.Errorf("$ %s\n got %s\nwant %s", step.command, got, want)
			}
		})
	}
}

// The recipes of README.md run as they stand in a folder beside the clone.
// Where the service cannot start, they show what it says.
func TestReadmeRecipes(t *testing.T) {
	beside := besideClone(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for language, r := range recipes {
		blocks := r.blocks(t, language)
		if len(blocks) != 1 {
			t.Fatalf("there are %d recipes in %s, want 1", len(blocks), language)
		}
		t.Run(language, func(t *testing.T) {
			out, err := r.play(t, beside, blocks[0].code, r.run...)
			if err != nil || blocks[0].prints != "" && out != blocks[0].prints {
				t.Errorf("%v: got\n%s\nwant\n%s", err, out, blocks[0].prints)
			}
		})
		t.Run(language+", the service cannot start", func(t *testing.T) {
			code := strings.ReplaceAll(blocks[0].code, "127.0.0.1:0", taken.Addr().String())
			out, err := r.play(t, beside, code, r.run...)
			if err == nil || !regexp.MustCompile("level=ERROR .*address .*in use.*; -addr 127.0.0.1:0 takes a free port").MatchString(out) {
				t.Errorf("%v: the words of the service are not in\n%s", err, out)
			}
		})
	}
}

// However a recipe ends, the service that it has started ends too.
func TestReadmeOrphans(t *testing.T) {
	beside := besideClone(t)
	for _, c := range []struct {
		name, language string
		crash          string   // behind the start of the service: prints its address, and does what the name says
		run            []string // that of the recipe without these
	}{
		{"a shell is killed", "sh", `echo "$base"; kill -9 $$`, nil},
		{"a Go test is killed", "go", `println(line); me, _ := os.FindProcess(os.Getpid()); me.Kill(); select {}`, nil},
		{"a Go test panics", "go", `println(line); go panic("crash"); select {}`, nil}, // in another goroutine: no Cleanup runs
		{"a Go test takes too long", "go", `println(line); <-time.After(time.Hour)`, []string{"go", "test", "-timeout", "2s", "client_test.go"}},
		// node --test would go on reading from the process that it has started for the file.
		{"node is killed", "js", `console.log(String(base)); process.kill(process.pid, "SIGKILL");`, []string{"node", "client.test.mjs"}},
		{"Python is killed", "python", `        print(self.url, flush=True); os.kill(os.getpid(), 9)`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := recipes[c.language]
			code := r.blocks(t, c.language)[0].code
			if strings.Count(code, r.started) != 1 {
				t.Fatalf("%q is not once in the recipe", r.started)
			}
			run := r.run
			if c.run != nil {
				run = c.run
			}
			out, err := r.play(t, beside, strings.Replace(code, r.started, c.crash+"\n"+r.started, 1), run...)
			m := regexp.MustCompile(`http://(127\.0\.0\.1:\d+)`).FindStringSubmatch(out)
			if err == nil || m == nil {
				t.Fatalf("%v: the recipe has not crashed behind the start of the service\n%s", err, out)
			}
			(&service{addr: m[1]}).refused(t)
		})
	}
}

// Without a configured key, the curl line on stderr works as it stands, and
// no other key does.
func TestRandomKey(t *testing.T) {
	s, other := startKey(t, ""), startKey(t, "")
	t.Run("each run has its own", func(t *testing.T) {
		if s.key == other.key {
			t.Error("two runs have one key")
		}
	})
	for run, s := range map[string]*service{"first run": s, "second run": other} {
		line := regexp.MustCompile(`(?m)^    curl -H 'Authorization: Bearer ([0-9a-f]{32})' http://(\S+)(/v1/pets)$`).FindStringSubmatch(s.stderr.String())
		if line == nil || line[2] != s.addr {
			t.Fatalf("no curl line for %s on stderr:\n%s", s.addr, s.stderr)
		}
		get := "GET " + line[3] + "\nAuthorization:"
		s.rules(t, [][]string{
			{run + ", the curl line works", get + " Bearer " + line[1], "200 []"},
			{run + ", an empty header", get, noKey},
			{run + ", an empty key", get + " Bearer ", noKey},
			{run + ", another key", get + " Bearer 0", wrongKey},
		})
	}
}

// README: the page.

// The page is answered as it is in api/index.html, to anybody.
func TestPageHTTP(t *testing.T) {
	s := start(t)
	file, err := os.ReadFile("api/index.html")
	if err != nil {
		t.Fatal(err)
	}
	want := http.Header{"Content-Type": {"text/html; charset=utf-8"}, "Content-Length": {fmt.Sprint(len(file))}}
	for _, auth := range []string{"", "\nAuthorization", "\nAuthorization: Bearer wrong"} {
		for method, body := range map[string][]byte{"GET": file, "HEAD": {}} {
			resp := s.do(t, method+" /"+auth)
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			resp.Header.Del("Date")
			if err != nil || resp.StatusCode != 200 || !reflect.DeepEqual(resp.Header, want) || !bytes.Equal(got, body) {
				t.Errorf("%s /%s: %d %v, %d bytes, %v; want 200 %v, %d bytes", method, auth, resp.StatusCode, resp.Header, len(got), err, want, len(body))
			}
		}
		s.play(t, "POST /"+auth, only("GET, HEAD"), "GET /index.html"+auth, noPath)
	}
}

// The page does in a browser what a person asks it to do.
func TestPage(t *testing.T) {
	t.Parallel()
	const key = `a+b%41#"&=c` // what is special in an address
	s := startKey(t, key)
	b := startBrowser(t)
	base := "http://" + s.addr + "/"

	t.Run("key in the fragment", func(t *testing.T) {
		b.open(t, base+"#key="+url.PathEscape(key))
		b.see(t, "#listed", "There are no pets yet. Add one, or 25 samples.")
		if got := b.run(t, "return location.href"); got != base {
			t.Errorf("the address is %v", got)
		}
		if got := b.run(t, "return sessionStorage.apiKey + sessionStorage.length + localStorage.length + document.cookie"); got != key+"10" {
			t.Errorf("the browser keeps %v", got)
		}
		b.see(t, "#door", "")
		b.see(t, "table", "")
	})
	t.Run("samples", func(t *testing.T) {
		b.click(t, "#samples")
		b.see(t, "#added", "Added 25 pets.")
		b.see(t, "#listed", "10 pets. More follow.")
		b.see(t, "tbody tr:first-child", "1 Rex 1 available")
		b.see(t, "tbody tr:nth-child(6)", "6 Tom 1 none")
	})
	t.Run("paged to the end and back", func(t *testing.T) {
		b.click(t, "#next")
		b.see(t, "tbody tr:first-child td", "11")
		b.click(t, "#next")
		b.see(t, "#listed", "5 pets. No more follow.")
		b.see(t, "tbody tr:last-child", "25 Dolly 5 available")
		b.click(t, "#next") // does nothing
		b.click(t, "#first")
		b.see(t, "tbody tr:first-child td", "1")
	})
	t.Run("filtered", func(t *testing.T) {
		b.choose(t, "#filter", "sold")
		b.see(t, "#listed", "4 pets. No more follow.")
		b.choose(t, "#filter", "available")
		b.see(t, "#listed", "10 pets. More follow.")
		b.click(t, "#next")
		b.see(t, "#listed", "3 pets. No more follow.")
		b.see(t, "ol li:first-child pre", `curl -i -H "Authorization: Bearer $KEY" '`+base+`v1/pets?limit=10&status=available&after=19'`)
		b.choose(t, "#filter", "")
		b.see(t, "#listed", "10 pets. More follow.")
	})
	t.Run("added by hand", func(t *testing.T) {
		const name = `<img src=x onerror="document.title='bad'"> it's`
		b.fill(t, "#name", name)
		b.fill(t, "#category", "9007199254740993") // 2^53 + 1
		b.choose(t, "#status", "sold")
		b.click(t, "#add button:not([type])")
		b.see(t, "#added", "Added as /v1/pets/26.")
		b.choose(t, "#filter", "sold")
		b.see(t, "tbody tr:last-child", "26 "+name+" 9007199254740993 sold")
		if got := b.run(t, "return document.title + document.images.length"); got != "Petstore0" {
			t.Errorf("the name is HTML: %v", got)
		}
	})
	t.Run("curl line", func(t *testing.T) {
		need(t, "sh")
		need(t, "curl")
		line := b.run(t, "return [...document.querySelectorAll('ol li pre:first-child')].find(line => /POST|-d/.test(line.textContent)).textContent")
		sh := exec.Command("sh", "-c", fmt.Sprint(line))
		sh.Env = append(os.Environ(), "KEY="+key)
		if out, _ := sh.Output(); !bytes.HasPrefix(out, []byte("HTTP/1.1 201 ")) ||
			!bytes.Contains(out, []byte(`{"id":27,"name":"<img src=x onerror=\"document.title='bad'\"> it's","categoryId":9007199254740993,"status":"sold"}`)) {
			t.Errorf("$ %s\n%s", line, out)
		}
	})
	t.Run("bad request", func(t *testing.T) {
		b.fill(t, "#category", "seven")
		b.click(t, "#add button:not([type])")
		b.see(t, "#added.bad", `400 invalid_body: categoryId is "seven"; it must be an integer`)
		b.see(t, "ol li:first-child pre.bad", "400 Bad Request · ")
		b.see(t, "tbody tr:first-child td", "4") // still there
	})
	t.Run("fault", func(t *testing.T) {
		b.fill(t, "[name=code]", "503")
		b.click(t, "#fault button")
		b.see(t, "#listed.bad", "503 service_unavailable"+simulated)
		b.see(t, "ol li:first-child pre:last-child", "Preference-Applied: code=503\nRetry-After: 1\n{")
		b.see(t, "ol li:first-child pre", ` -H 'Prefer: code=503' '`)
		b.see(t, "table", "")
		b.fill(t, "[name=code]", "777")
		b.click(t, "#samples")
		b.see(t, "#added.bad", "400 invalid_parameter: code is 777")
	})
	t.Run("hangup", func(t *testing.T) {
		b.fill(t, "[name=code]", "hangup")
		b.click(t, "#reload")
		b.see(t, "#listed.bad", "No answer. Perhaps the service hung up, or does not run.")
		b.see(t, "ol li:first-child pre.bad", "no answer · ")
		b.click(t, "#fault [type=reset]")
		b.choose(t, "#filter", "")
		b.see(t, "#listed", "10 pets. More follow.")
	})
	t.Run("truncated answer", func(t *testing.T) {
		b.fill(t, "[name=code]", "truncate")
		b.fill(t, "#category", "1")
		b.click(t, "#add button:not([type])")
		b.see(t, "#added.bad", "The answer 201 broke off. The service may have done what it was asked.")
		b.see(t, "ol li:first-child pre.bad", "201 Created · broken off · ")
		b.click(t, "#fault [type=reset]")
		b.choose(t, "#filter", "sold")
		b.see(t, "tbody tr:last-child td", "28") // it was done
		b.choose(t, "#filter", "")
		b.see(t, "#listed", "10 pets. More follow.")
	})
	t.Run("slow answer", func(t *testing.T) {
		b.fill(t, "[name=delay]", "0.5")
		b.click(t, "#next")
		b.see(t, "#list[aria-busy=true] #listed", "Loading…")
		b.see(t, "ol li:first-child pre:last-child", "waiting…")
		b.see(t, "#list[aria-busy=false] tbody tr:first-child td", "11")
	})
	t.Run("answers out of order", func(t *testing.T) {
		b.fill(t, "[name=delay]", "30")
		b.click(t, "#first")
		b.see(t, "#listed", "Loading…")
		b.click(t, "#fault [type=reset]")
		b.choose(t, "#filter", "pending")
		b.see(t, "#list[aria-busy=false] #listed", "4 pets. No more follow.")
		b.see(t, "ol li:nth-child(2) pre.bad", "given up for a newer call · ")
	})
	t.Run("wrong key", func(t *testing.T) {
		b.open(t, base+"#key=100%") // the fragment alone changes: no new page
		b.see(t, "#listed.bad", "401 invalid_token: this is not the API key that the service was started with")
		b.see(t, "ol li:first-child pre:last-child", `WWW-Authenticate: Bearer realm="petstore", error="invalid_token"`)
		b.fill(t, "#key", key+"\uE007") // Enter
		b.see(t, "#listed", "4 pets. No more follow.")
		b.see(t, "#door", "")
	})
	t.Run("key of the tab", func(t *testing.T) {
		b.post(t, "/refresh", struct{}{})
		b.see(t, "#listed", "10 pets. More follow.")
	})
	t.Run("no key", func(t *testing.T) {
		b.run(t, "sessionStorage.clear()")
		b.open(t, base)
		b.see(t, "#door", "API key")
		b.see(t, "#listed", "Type the API key first.")
		b.click(t, "#reload")
		b.see(t, "#listed.bad", "401 unauthorized: ")
		b.fill(t, "#key", key)
		b.click(t, "#open button")
		b.see(t, "#listed", "10 pets. More follow.")
	})
	t.Run("stopped service", func(t *testing.T) {
		s.stop()
		b.click(t, "#reload")
		b.see(t, "#listed.bad", "No answer. Perhaps the service hung up, or does not run.")
		b.click(t, "#samples")
		b.see(t, "#added.bad", "No answer.")
	})
	t.Run("nothing from elsewhere", func(t *testing.T) {
		sent := 0
		for _, entry := range b.post(t, "/se/log", map[string]string{"type": "performance"}).([]any) {
			var event struct {
				Message struct {
					Method string
					Params struct {
						DocumentURL string
						Request     struct{ URL string }
					}
				}
			}
			json.Unmarshal([]byte(entry.(map[string]any)["message"].(string)), &event)
			if event.Message.Method == "Network.requestWillBeSent" && strings.HasPrefix(event.Message.Params.DocumentURL, base) {
				sent++
				if u := event.Message.Params.Request.URL; !strings.HasPrefix(u, base) && u != "data:," {
					t.Errorf("the page asks for %s", u)
				}
			}
		}
		if sent < 40 || strings.Contains(s.stderr.String(), "favicon") {
			t.Errorf("%d requests were seen\n%s", sent, s.stderr)
		}
		for _, entry := range b.post(t, "/se/log", map[string]string{"type": "browser"}).([]any) {
			if message := fmt.Sprint(entry.(map[string]any)["message"]); !strings.Contains(message, "Failed to load resource") {
				t.Errorf("the console says %s", message)
			}
		}
	})
}

// README: API.

// The contract, table by table: resources, parameters, answers.
func TestContract(t *testing.T) {
	const (
		rex    = `{"id":1,"name":"Rex","categoryId":1,"status":"available"}`
		bare   = `{"id":2,"name":"","categoryId":9223372036854775807}`
		odd    = `{"id":3,"name":"<ü&\u0000\n😀>","categoryId":-9223372036854775808,"status":"sold"}`
		plain  = `{"id":4,"name":"Id","categoryId":0,"status":"pending"}`
		all    = "[" + rex + "," + bare + "," + odd + "," + plain + "]"
		petID  = "400 invalid_parameter: petId is "
		notInt = "; it must be an integer" + going
	)
	t.Run("no pets yet", func(t *testing.T) { start(t).check(t, "GET /v1/pets", "200 []") })
	start(t, "-seed", seedFile(t, all)).rules(t, [][]string{
		{"list", "GET /v1/pets", "200 " + all},
		{"status available", "GET /v1/pets?status=available", "200 [" + rex + "]"},
		{"status pending and unknown parameters", "GET /v1/pets?status=pending&colour=red&limit=100", "200 [" + plain + "]"},
		{"one pet is deprecated", "GET /v1/pets/2", "200 " + bare + going},
		{"escaped path", "GET /v1/%70ets/%32?x=y", "200 " + bare + going},
		{"HEAD of a pet", "HEAD /v1/pets/2", "200" + going},
		{"HEAD of no pet", "HEAD /v1/pets/5", "404" + going},
		{"HEAD of a list", "HEAD /v1/pets?limit=1", "200\nLink: </v1/pets?limit=1&after=1>; rel=\"next\""},
		{"no such pet", "GET /v1/pets/5", noPet(5)},
		{"petId 0", "GET /v1/pets/0", noPet(0)},
		{"petId smallest", "GET /v1/pets/-9223372036854775808", noPet(math.MinInt64)},
		{"petId too large", "GET /v1/pets/9223372036854775808", petID + "9223372036854775808; it must be " + paramInt64 + going},
		{"petId no number", "GET /v1/pets/Rex", petID + "Rex" + notInt},
		{"petId with a slash", "GET /v1/pets/1%2F2", petID + "1/2" + notInt},
		{"petId 01", "GET /v1/pets/01", petID + "01" + notInt},
		{"orders", "GET /v1/store/orders", "501 not_implemented: the contract names this operation and shows no payload for it"},
	})
}

// A page has limit pets, in ascending order of id, and a Link to the next one
// if there is one.
func TestPaging(t *testing.T) {
	pets := make([]string, 46) // by id; every third one is sold
	for i := range pets {
		pets[i] = fmt.Sprintf(`{"id":%d,"name":"","categoryId":%d}`, i, i)
		if i%3 == 0 {
			pets[i] = strings.Replace(pets[i], "}", `,"status":"sold"}`, 1)
		}
	}
	page := func(link string, pets ...string) string {
		if link != "" {
			link = "\nLink: </v1/pets?" + link + `>; rel="next"`
		}
		return "200 [" + strings.Join(pets, ",") + "]" + link
	}
	s := start(t, "-seed", seedFile(t, "["+strings.Join(pets[1:], ",")+"]"))
	s.rules(t, [][]string{
		{"20 by default", "GET /v1/pets", page("after=20", pets[1:21]...)},
		{"the second page", "GET /v1/pets?after=20", page("after=40", pets[21:41]...)},
		{"the last page", "GET /v1/pets?after=40", page("", pets[41:]...)},
		{"the last page is full", "GET /v1/pets?after=25&x=1", page("", pets[26:]...)},
		{"limit is all", "GET /v1/pets?limit=45", page("", pets[1:]...)},
		{"limit is one less than all", "GET /v1/pets?limit=44", page("limit=44&after=44", pets[1:45]...)},
		{"limit 100", "GET /v1/pets?limit=100", page("", pets[1:]...)},
		{"limit 1", "GET /v1/pets?limit=1&after=44", page("", pets[45])},
		{"after the last", "GET /v1/pets?after=45", page("")},
		{"after largest", "GET /v1/pets?after=9223372036854775807", page("")},
		{"after smallest", "GET /v1/pets?after=-9223372036854775808&limit=2", page("limit=2&after=2", pets[1:3]...)},
		{"status in the link", "GET /v1/pets?status=sold&limit=2&after=4", page("limit=2&status=sold&after=9", pets[6], pets[9])},
		{"status on the last page", "GET /v1/pets?status=sold&after=36&limit=3", page("", pets[39], pets[42], pets[45])},
		{"status one page before the last", "GET /v1/pets?after=36&status=sold&limit=2", page("limit=2&status=sold&after=42", pets[39], pets[42])},
		{"status of no pet", "GET /v1/pets?status=pending", page("")},
	})
}

// Many clients at once: every id once, no pet lost, and a reader of all pages
// meets each pet that was there when it began exactly once.
func TestConcurrency(t *testing.T) {
	s := start(t, "-quiet")
	const clients, each = 16, 50
	together(2*clients, func(c int) {
		if c < clients {
			for i := range each {
				name := fmt.Sprintf("%d-%d", c, i)
				got := s.call(t, `POST /v1/pets`+"\n\n"+`{"status":"sold","categoryId":1,"name":"`+name+`"}`)
				if !regexp.MustCompile(`^201 {"id":[0-9]+,"name":"` + name + `",`).MatchString(got) {
					t.Error(got)
				}
			}
			return
		}
		for range 5 {
			for i, id := range s.readAll(t, "?status=sold&limit=7") {
				if id != int64(i+1) {
					t.Errorf("pet %d is the pet %d of the pages", id, i+1)
				}
			}
		}
	})
	if n := len(s.readAll(t, "?limit=100")); n != clients*each {
		t.Errorf("%d pets in the end, want %d", n, clients*each)
	}
}

// What a client may send to create a pet, and what it then reads.
func TestCreates(t *testing.T) {
	s := start(t)
	const (
		rex   = `"name":"Rex","categoryId":1,"status":"available"}`
		bare  = `"name":"","categoryId":9223372036854775807}`
		odd   = `"name":"<ü&\u0000\n😀>","categoryId":-9223372036854775808,"status":"sold"}`
		plain = `"name":"Id","categoryId":0,"status":"pending"}`

		postRex   = "POST /v1/pets\n\n{" + rex
		postBare  = "POST /v1/pets\nContent-Type: application/json\n\n" + `{"categoryId":9223372036854775807,"name":""}`
		postOdd   = "POST /v1/pets\nContent-Type: Application/JSON; Charset=\"UTF-8\"\n\n" + ` { "status" : "sold" , "name" : "<ü&\u0000\n\ud83d\ude00>" , "categoryId" : -9223372036854775808 } `
		postPlain = "POST /v1/pets\n\n" + `{"id":77,"name":"Id","\u0063ategoryId":-0,"status":"p\u0065nding","Name":5,"x":{"name":["}",{}]},"x":"\""}`
	)
	answer := func(id int, rest string) string {
		return fmt.Sprintf("201 {\"id\":%d,%s\nLocation: /v1/pets/%d", id, rest, id)
	}
	rules := [][]string{{"ids are 1, 2, 3, 4", postRex, answer(1, rex), postBare, answer(2, bare), postOdd, answer(3, odd), postPlain, answer(4, plain),
		"GET /v1/pets", `200 [{"id":1,` + rex + `,{"id":2,` + bare + `,{"id":3,` + odd + `,{"id":4,` + plain + "]"}}
	for _, c := range [][3]string{
		{"all members", postRex, rex},
		{"an omitted status stays absent", postBare, bare},
		{"Unicode, escapes and white space", postOdd, odd},
		{"id and unknown members are ignored", postPlain, plain},
		{"Content-Encoding identity", "POST /v1/pets\nContent-Encoding: Identity\n\n{" + rex, rex},
		{"64 KiB", create + strings.Repeat(" ", maxBody-len(pet)), pet[1:]},
	} {
		rules = append(rules, []string{c[0], c[1], answer(1, c[2]), "GET /v1/pets", `200 [{"id":1,` + c[2] + "]", "GET /v1/pets/1", `200 {"id":1,` + c[2] + going})
	}
	s.rules(t, rules)
}

// The key is asked for before anything else is looked at.
func TestKey(t *testing.T) {
	s := start(t)
	const with = "GET /v1/pets\nAuthorization: "
	s.rules(t, [][]string{
		{"no key, list", "GET /v1/pets\nAuthorization", noKey},
		{"no key, root", "GET /v1\nAuthorization", noKey},
		{"no key, no such path", "GET /v1/nothing\nAuthorization", noKey},
		{"no key, slash at the end", "GET /v1/pets/\nAuthorization", noKey},
		{"no key, unclean path", "GET /v1/../v1/pets\nAuthorization", noKey},
		{"no key, no such method", "DELETE /v1/pets\nAuthorization", noKey},
		{"no key, bad limit", "GET /v1/pets?limit=0\nAuthorization", noKey},
		{"no key, malformed query", "GET /v1/pets?%zz\nAuthorization", noKey},
		{"no key, orders", "GET /v1/store/orders\nAuthorization", noKey},
		{"no key, escaped path", "get /%761/pets\nAuthorization", noKey},
		{"no key, body", "POST /v1/pets\nAuthorization\n\n{}", strings.Replace(noKey, "\n", "\nConnection: close\n", 1)},
		{"the key in the query or another header", "GET /v1/pets?key=" + testKey + "&access_token=" + testKey + "\nX-Api-Key: " + testKey + "\nAuthorization", noKey},
		{"an empty header", with, noKey},
		{"an empty key", with + "Bearer", noKey},
		{"Basic", with + "Basic " + testKey, noKey},
		{"no scheme", with + testKey, noKey},
		{"two Authorization headers", with + "Bearer " + testKey + "\nAuthorization: Bearer " + testKey, noKey},
		{"wrong key", with + "Bearer wrong", wrongKey},
		{"wrong key, longer", with + "Bearer " + testKey + "x", wrongKey},
		{"wrong key, shorter", with + "Bearer " + testKey[1:], wrongKey},
		{"wrong key, in capitals", with + "Bearer " + strings.ToUpper(testKey), wrongKey},
		{"wrong key, no such path", "GET /v1/nothing\nAuthorization: Bearer wrong", wrongKey},
		{"the scheme in any case", with + "bEARER   " + testKey, "200 []"},
		{"other paths need none", "GET /nothing\nAuthorization", noPath},
	})
}

// Every key that a header can carry works.
func TestKeys(t *testing.T) {
	visible := ""
	for c := '!'; c <= '~'; c++ {
		visible += string(c)
	}
	for name, key := range map[string]string{"one letter": "k", "every visible character": visible, "4096 bytes": strings.Repeat("k", 4096)} {
		t.Run(name, func(t *testing.T) {
			startKey(t, key).rules(t, [][]string{{"key", "GET /v1/pets", "200 []"}, {"wrong key", "GET /v1/pets\nAuthorization: Bearer x" + key, wrongKey}})
		})
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
	operations, methods := map[string]node{}, map[string]string{} // by operationId
	for path := range doc.at("paths").object() {
		for method := range doc.at("paths", path).object() {
			operation := doc.at("paths", path, method)
			id := operation.at("operationId").v.(string)
			operations[id], methods[id] = operation, method+" "+path
		}
	}
	answered := map[string]bool{}
	// Operation, status as documented, and what is special; then requests, the
	// last of which is meant.
	for _, c := range [][]string{
		{"listPets 200 no pets", "GET /v1/pets"},
		{"listPets 200 next page", create, "POST /v1/pets\n\n" + `{"name":"b","categoryId":-9223372036854775808,"status":"sold"}`, "GET /v1/pets?limit=1"},
		{"listPets 400", "GET /v1/pets?limit=0"},
		{"listPets 401", "GET /v1/pets\nAuthorization"},
		{"listPets default", "GET /v1/pets\nPrefer: code=503"},
		{"createPet 201", create},
		{"createPet 201 all members", "POST /v1/pets\n\n" + `{"name":"b","categoryId":-9223372036854775808,"status":"sold"}`},
		{"createPet 400", "POST /v1/pets\n\n{}"},
		{"createPet 401", "POST /v1/pets\nAuthorization: Bearer x\n\n{}"},
		{"createPet 408", late},
		{"createPet 413", "POST /v1/pets\n\n" + strings.Repeat(" ", maxBody+1)},
		{"createPet 415", "POST /v1/pets\nContent-Type: text/plain\n\n{}"},
		{"createPet 507", "POST /v1/pets\n\n" + `{"name":"` + strings.Repeat("x", 500) + `","categoryId":1}`},
		{"createPet default", "POST /v1/pets\nPrefer: code=429\n\n{}"},
		{"getPet 200", create, "GET /v1/pets/1"},
		{"getPet 400", "GET /v1/pets/x"},
		{"getPet 400 malformed query", "GET /v1/pets/2?%"},
		{"getPet 401", "GET /v1/pets/2\nAuthorization"},
		{"getPet 404", "GET /v1/pets/9"},
		{"getPet default", "GET /v1/pets/9\nPrefer: code=599"},
	} {
		id, status := strings.Fields(c[0])[0], strings.Fields(c[0])[1]
		answered[id+" "+status] = true
		t.Run(c[0], func(t *testing.T) {
			s := impatient(t, state{size: maxSize - 3*recordSize - 200})
			var resp *http.Response
			for _, request := range c[1:] {
				if request == late {
					if resp, err = http.ReadResponse(bufio.NewReader(s.dial(t, late)), nil); err != nil {
						t.Fatal(err)
					}
				} else {
					resp = s.do(t, request)
				}
				defer resp.Body.Close()
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			responses := operations[id].at("responses")
			sent := strconv.Itoa(resp.StatusCode)
			if status == "default" && (responses.has(sent) || resp.Header.Get("Preference-Applied") == "") || status != "default" && status != sent {
				t.Errorf("the status is %s", sent)
			}
			response := responses.at(status)
			value, err := decode(body)
			if err != nil {
				t.Error(err)
			}
			if err := response.at("content", resp.Header.Get("Content-Type"), "schema").validate(value.v); err != nil {
				t.Errorf("%v in %s", err, body)
			}
			headers := response.at("headers")
			for name := range headers.object() {
				if headers.at(name, "required").v == true && resp.Header.Get(name) == "" {
					t.Errorf("no header %s", name)
				}
			}
			for name := range resp.Header {
				documented := slices.Contains([]string{"Content-Type", "Content-Length", "Date", "Connection"}, name)
				for known := range headers.object() {
					documented = documented || strings.EqualFold(known, name)
				}
				if !documented {
					t.Errorf("the header %s is not documented", name)
				}
			}
		})
	}
	for id, operation := range operations {
		t.Run(id+" documents no other status", func(t *testing.T) {
			for status := range operation.at("responses").object() {
				if !answered[id+" "+status] {
					t.Errorf("the status %s is documented and was not answered", status)
				}
			}
		})
		t.Run(id+" has true examples", func(t *testing.T) {
			for status := range operation.at("responses").object() {
				for media := range operation.at("responses", status, "content").object() {
					content := operation.at("responses", status, "content", media)
					if err := content.at("schema").validate(content.at("example").v); err != nil {
						t.Errorf("the example for %s: %v", status, err)
					}
				}
			}
		})
	}
	t.Run("operations", func(t *testing.T) {
		want := map[string]string{"listPets": "get /pets", "createPet": "post /pets", "getPet": "get /pets/{petId}"}
		if !reflect.DeepEqual(methods, want) {
			t.Errorf("operations %v, want %v", methods, want)
		}
	})
	t.Run("schemas", func(t *testing.T) {
		var schemas []string
		for name := range doc.at("components", "schemas").object() {
			schemas = append(schemas, name)
		}
		slices.Sort(schemas)
		if want := []string{"Error", "NewPet", "Pet", "PetStatus", "Pets"}; !slices.Equal(schemas, want) {
			t.Errorf("schemas %v, want %v", schemas, want)
		}
	})
}

// README: Flags and environment, the log, and how it stops.

// Command lines that do not serve: exit code, what is printed, and where.
func TestCommandLine(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	const badKey = "PETSTORE_API_KEY must be 1 to 4096 visible ASCII characters: no space, no control character"
	const noAddress = "-addr names neither host nor port; it must be host:port, as 127.0.0.1:8080, or :8080 for every interface"
	failure := func(message string) string { return `^time=\S+ level=ERROR msg="?` + message + `"?\n$` }
	for _, c := range []struct {
		name           string
		args           []string
		key            string
		code           int
		stdout, stderr string // regular expressions
	}{
		{"version", []string{"-version"}, "", 0, "^1\\.0\\.0\n$", "^$"},
		{"help", []string{"-h"}, "", 0, "^$", `(?s)PETSTORE_API_KEY.*-addr host:port.*-latency duration.*-quiet.*-seed file.*-stdin.*-version`},
		{"long help", []string{"--help"}, "", 0, "^$", "(?s)Usage: petstore"},
		{"unknown flag", []string{"-x"}, "", 2, "^$", failure("flag provided but not defined: -x; -h lists the flags")},
		{"bad quiet", []string{"-quiet=5"}, "", 2, "^$", failure(`invalid boolean value .*; -h lists the flags`)},
		{"latency below 0", []string{"-latency", "-1ns"}, "", 2, "^$", failure("invalid value for -latency: it must be from 0 to 30s; -h lists the flags")},
		{"latency over 30s", []string{"-latency", "30.1s"}, "", 2, "^$", failure("invalid value for -latency: it must be from 0 to 30s; -h lists the flags")},
		{"latency without a unit", []string{"-latency", "150"}, "", 2, "^$", failure(`invalid value .*150.* for flag -latency: parse error; a duration has a unit, as 150ms or 2s; -h lists the flags`)},
		{"stray argument", []string{"-quiet", "stray"}, "", 2, "^$", failure("unexpected argument stray; -h lists the flags")},
		{"address in use", []string{"-addr", taken.Addr().String()}, "k", 1, "^$", failure("listen tcp .*" + taken.Addr().String() + ": .*address.*in use; -addr 127.0.0.1:0 takes a free port")},
		{"address empty", []string{"-addr", ""}, "k", 1, "^$", failure(noAddress)},
		{"address of a colon", []string{"-addr", ":"}, "k", 1, "^$", failure(noAddress)},
		{"address of a port alone", []string{"-addr", "8081"}, "k", 1, "^$", failure("listen tcp: address 8081: missing port in address; write -addr 127.0.0.1:8081, or -addr :8081 for every interface")},
		{"address of a port too large", []string{"-addr", "127.0.0.1:99999"}, "k", 1, "^$", failure("listen tcp: address 99999: invalid port; write -addr host:port, with a port from 0 to 65535")},
		{"address without a port", []string{"-addr", "nonsense"}, "k", 1, "^$", failure("listen tcp: address nonsense: missing port in address; write -addr host:port, with a port from 0 to 65535")},
		{"address of another machine", []string{"-addr", "192.0.2.1:0"}, "k", 1, "^$", failure("listen tcp 192.0.2.1:0: .*")},
		{"key with a space inside", nil, "k k", 1, "^$", failure(badKey)},
		{"key with a letter that is no ASCII", nil, "ké", 1, "^$", failure(badKey)},
		{"key with DEL", nil, "k\x7f", 1, "^$", failure(badKey)},
		{"key of 4097 bytes", nil, strings.Repeat("k", 4097), 1, "^$", failure(badKey)},
		{"seed that is a folder", []string{"-seed", os.TempDir()}, "k", 1, "^$", failure("read " + regexp.QuoteMeta(os.TempDir()) + ": is a directory")},
		{"key with a space", nil, " k", 1, "^$", failure(badKey)},
		{"key with a control character", nil, "k\nk", 1, "^$", failure(badKey)},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := outcome(t, c.key, c.args...)
			if code != c.code || !regexp.MustCompile(c.stdout).MatchString(stdout) || !regexp.MustCompile(c.stderr).MatchString(stderr) {
				t.Errorf("petstore %q, key %q: exit code %d, stdout %q, stderr %q; want %d, %s, %s",
					c.args, c.key, code, stdout, stderr, c.code, c.stdout, c.stderr)
			}
		})
	}
}

// The base URL is one that clients of this machine can use.
func TestBaseURL(t *testing.T) {
	for addr, want := range map[string]string{"127.0.0.1:80": "127.0.0.1:80", "0.0.0.0:80": "127.0.0.1:80", "[::]:80": "127.0.0.1:80", "[::1]:80": "[::1]:80"} {
		t.Run(addr, func(t *testing.T) {
			tcp, _ := net.ResolveTCPAddr("tcp", addr)
			if got := baseURL(tcp); got != "http://"+want+"/v1" {
				t.Errorf("the base URL at %s is %s", addr, got)
			}
		})
	}
}

// The request log has one line a request, and never the key.
func TestLog(t *testing.T) {
	const line = "level=INFO msg=request "
	for _, c := range [][]string{ // name, log, requests
		{"query", line + `method=GET path="/v1/pets?limit=5" status=200`, "GET /v1/pets?limit=5"},
		{"escapes stay", line + `method=DELETE path="/v1/pets/1?a%20b%0A=%22" status=405`, "DELETE /v1/pets/1?a%20b%0A=%22"},
		{"key in path and query", line + `method=GET path=/x/<API_KEY>?<API_KEY> status=404`, "GET /x/" + testKey + "?" + testKey},
		{"escaped key", line + `method=GET path=/x/<API_KEY>%0a status=404`, "GET /x/corr%65ct-horse%0a"},
		{"escaped key beside a malformed escape", line + `method=GET path="/v1/pets?x=%zz&key=<API_KEY>&y=%" status=400`, "GET /v1/pets?x=%zz&key=%63orrect-horse&y=%"},
		{"key escaped twice", line + `method=GET path="/x?a=%2563orrect-horse&b=<API_KEY>&c=<API_KEY>" status=404`, "GET /x?a=%2563orrect-horse&b=%63orrect-hors%65&c=" + testKey},
		{"key as method", line + `method=<API_KEY> path=/v1/pets status=405`, testKey + " /v1/pets"},
		{"wrong key", line + `method=GET path=/v1/pets status=401`, "GET /v1/pets\nAuthorization: Bearer not-the-key"},
		{"a line a request", line + "method=GET path=/v1/pets status=200\n" + line + "method=GET path=/x status=404", "GET /v1/pets", "GET /x"},
	} {
		t.Run(c[0], func(t *testing.T) {
			s := start(t)
			for _, request := range c[2:] {
				s.call(t, request)
			}
			s.stop()
			if got, want := regexp.MustCompile(`(?m)^time=\S+ `).ReplaceAllString(s.stderr.String(), ""), c[1]+"\n"; got != want {
				t.Errorf("log\n%s\nwant\n%s", got, want)
			}
		})
	}
	t.Run("a short key is no secret", func(t *testing.T) {
		s := startKey(t, "e")
		s.play(t, "GET /healthz?the=key", `200 {"status":"ok"}`)
		s.stop()
		if got, want := s.stderr.String(), `method=GET path="/healthz?the=key" status=200`; !strings.Contains(got, want) {
			t.Errorf("the log lacks %s: %s", want, got)
		}
	})
	t.Run("a key with an escape in it", func(t *testing.T) {
		s := startKey(t, "abc%64efgh")
		s.call(t, "GET /x?abc%64efgh&abc%2564efgh&abcdefgh")
		s.stop()
		if got, want := s.stderr.String(), `path=/x?<API_KEY>&<API_KEY>&abcdefgh`; !strings.Contains(got, want) {
			t.Errorf("the log lacks %s: %s", want, got)
		}
	})
	t.Run("quiet", func(t *testing.T) {
		s := start(t, "-quiet")
		s.call(t, "GET /v1/pets")
		s.stop()
		if got := s.stderr.String(); got != "" {
			t.Errorf("with -quiet the log is %q", got)
		}
	})
}

// A stderr that nobody reads keeps no request waiting: lines are lost once
// 1 MiB of them is kept, and when somebody reads again, a line tells how many.
// The others are there, whole and in order. It does not keep the process from
// ending either.
func TestLogUnread(t *testing.T) {
	r, w := io.Pipe()
	s := startTo(t, w, testKey)
	in := bufio.NewReader(r)
	number := regexp.MustCompile(`level=INFO msg=request method=GET path="/v1/pets\?n=(\d+)(x*)" status=200\n$`)
	told := regexp.MustCompile(`level=WARN msg="log lines are lost, as nobody read them" lines=(\d+)\n$`)
	for round := range 2 {
		for n := range 70 { // 2.2 MiB
			s.play(t, fmt.Sprintf("GET /v1/pets?n=%d%s", n, strings.Repeat("x", 32<<10)), "200 []")
		}
		lines, previous := 0, -1
		lost := within(t, "the line that tells of lost ones", func() string {
			for {
				line, err := in.ReadString('\n')
				if err != nil {
					return err.Error()
				}
				if m := told.FindStringSubmatch(line); m != nil {
					return m[1]
				}
				m := number.FindStringSubmatch(line)
				if m == nil || len(m[2]) != 32<<10 {
					return line
				}
				n, _ := strconv.Atoi(m[1])
				if n <= previous {
					return line
				}
				lines, previous = lines+1, n
			}
		})
		if n, err := strconv.Atoi(lost); err != nil || lines+n != 70 || lines < 1<<20/(33<<10) {
			t.Fatalf("round %d: %d lines and %.200s lost, of 70", round, lines, lost)
		}
	}
	s.call(t, "GET /v1/pets")
	s.stop() // with a line that nobody reads
}

// The log keeps 1 MiB to the byte, and the journal 8 MiB.
func TestBoundsToTheByte(t *testing.T) {
	log := &lineBuffer{}
	log.changed = sync.NewCond(&log.mu)
	for range 1025 {
		log.Write(make([]byte, 1<<10))
	}
	if len(log.pending) != 1<<20 || log.lost != 1 {
		t.Errorf("of 1,025 KiB the log keeps %d bytes and loses %d lines", len(log.pending), log.lost)
	}
	j := &journal{}
	for range 8 {
		j.add(&entry{body: make([]byte, 1<<20)})
	}
	if entries, _ := j.all(); len(entries) != 8 {
		t.Errorf("of 8 MiB the journal keeps %d", len(entries))
	}
}

// Who begins to read the log when the service ends gets it all.
func TestLogReadAtTheEnd(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := execute(t, w)
	w.Close()
	for range 20 { // 640 KiB, more than a pipe keeps
		s.play(t, "GET /v1/pets?x="+strings.Repeat("x", 32<<10), "200 []")
	}
	s.cmd.Process.Signal(syscall.SIGTERM)
	s.refused(t)
	log := within(t, "the log", func() string {
		var log strings.Builder
		io.CopyBuffer(&log, struct{ io.Reader }{r}, make([]byte, 16)) // slowly
		return log.String()
	})
	if lines := regexp.MustCompile(`(?m)xxx"? status=200$`).FindAllString(log, -1); len(lines) != 20 {
		t.Errorf("the log has %d bytes and ends in %q", len(log), log[max(0, len(log)-100):])
	}
	if err := s.wait(t); err != nil {
		t.Error(err)
	}
}

// A reader of the log that leaves does not end the process.
func TestLogClosed(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := execute(t, w)
	w.Close()
	r.Close()
	for range 3 {
		s.play(t, "GET /v1/pets", "200 []")
	}
	s.cmd.Process.Signal(syscall.SIGTERM)
	if err := s.wait(t); err != nil {
		t.Error(err)
	}
}

// At SIGTERM and SIGINT the process takes no new connection, answers what is
// in flight, and exits with 0.
func TestSignals(t *testing.T) {
	for name, signal := range map[string]os.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": os.Interrupt} {
		t.Run(name, func(t *testing.T) {
			stderr := new(lockedBuffer)
			s := execute(t, stderr)
			c, in := s.dialUpload(t)
			s.cmd.Process.Signal(signal)
			s.refused(t)
			io.WriteString(c, pet)
			if b, err := io.ReadAll(in); err != nil || !bytes.HasPrefix(b, []byte("HTTP/1.1 201 Created\r\n")) {
				t.Errorf("the request in flight got %q %v", b, err)
			}
			if err := s.wait(t); err != nil {
				t.Errorf("%v\n%s", err, stderr)
			}
		})
	}
}

// A second signal ends the process at once, whatever is in flight.
func TestSecondSignal(t *testing.T) {
	s := execute(t, nil)
	s.dialUpload(t)
	s.cmd.Process.Signal(syscall.SIGTERM)
	s.refused(t)
	s.cmd.Process.Signal(syscall.SIGTERM)
	if err := s.wait(t); err == nil || err.Error() != "signal: terminated" {
		t.Errorf("the process ended with %v", err)
	}
}

// A signal stops a start that still reads its seed: exit code 0, and no URL.
func TestSignalWhileSeeding(t *testing.T) {
	fifo := mkfifo(t)
	for name, signal := range map[string]os.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": os.Interrupt} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(build(t), "-addr", "127.0.0.1:0", "-seed", fifo)
			var stdout lockedBuffer
			cmd.Stdout = &stdout
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cmd.Process.Kill() })
			seed := within(t, "the service to open its seed", func() *os.File { f, _ := os.OpenFile(fifo, os.O_WRONLY, 0); return f })
			defer seed.Close()
			io.WriteString(seed, "["+pet)
			cmd.Process.Signal(signal)
			if err := within(t, "the end of the process", cmd.Wait); err != nil || stdout.String() != "" {
				t.Errorf("it ended with %v, stdout %q", err, &stdout)
			}
		})
	}
}

// GOGC and GOMEMLIMIT win over what the service sets.
func TestCollector(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	for _, c := range []struct {
		name, gogc, gomemlimit string
		percent                int
		limit                  int64
	}{
		{"neither", "", "", 400, memoryLimit},
		{"GOGC", "77", "", 77, memoryLimit},
		{"GOMEMLIMIT", "", "900MiB", 400, 900 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			debug.SetGCPercent(77) // as the runtime does at its start
			debug.SetMemoryLimit(900 << 20)
			getenv := func(name string) string {
				return map[string]string{"PETSTORE_API_KEY": "k", "GOGC": c.gogc, "GOMEMLIMIT": c.gomemlimit}[name]
			}
			run(context.Background(), []string{"-addr", ""}, getenv, nil, io.Discard, io.Discard)
			if percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1); percent != c.percent || limit != c.limit {
				t.Errorf("percent %d, limit %d", percent, limit)
			}
		})
	}
}

// A request that never ends keeps a stopping process for 10 seconds: it is cut
// off before it would get the 408 that is due after 15.
func TestStopWaitsTenSeconds(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, in := s.dialUpload(t)
	s.cancel()
	begin := time.Now()
	if b, _ := io.ReadAll(in); len(b) > 0 {
		t.Errorf("the request got %q", b)
	}
	if waited := time.Since(begin); waited < 9*time.Second {
		t.Errorf("the request was cut off after %v", waited)
	}
}

// With -stdin the service stops when its standard input ends, as at SIGTERM.
// TestReadmeOrphans shows what that is for.
func TestStdin(t *testing.T) {
	const line = `msg="standard input has ended, so the service stops"`
	t.Run("a request in flight is answered", func(t *testing.T) {
		stderr := new(lockedBuffer)
		s := execute(t, stderr, "-stdin")
		c, in := s.dialUpload(t)
		io.WriteString(s.in, "what comes before the end does not matter\n")
		s.play(t, "GET /healthz", `200 {"status":"ok"}`)
		s.in.Close()
		s.refused(t)
		io.WriteString(c, pet)
		if b, err := io.ReadAll(in); err != nil || !bytes.HasPrefix(b, []byte("HTTP/1.1 201 Created\r\n")) {
			t.Errorf("the request in flight got %q %v", b, err)
		}
		if err := s.wait(t); err != nil {
			t.Errorf("%v\n%s", err, stderr)
		}
		if got := stderr.String(); strings.Count(got, line) != 1 || strings.Count(got, "\n") != 3 {
			t.Errorf("the log has not two requests and one line that tells why it stops:\n%s", got)
		}
	})
	t.Run("while a seed is read", func(t *testing.T) {
		need(t, "mkfifo")
		fifo := filepath.Join(t.TempDir(), "pets.json")
		if out, err := command(t, "mkfifo", fifo).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		stdin, ends := io.Pipe()
		var stdout, stderr lockedBuffer
		exit := make(chan int, 1)
		go func() {
			exit <- run(context.Background(), []string{"-addr", "127.0.0.1:0", "-stdin", "-seed", fifo}, env(testKey), stdin, &stdout, &stderr)
		}()
		seed := within(t, "the opening of the seed", func() *os.File { f, _ := os.OpenFile(fifo, os.O_WRONLY, 0); return f })
		defer seed.Close()
		io.WriteString(seed, "["+pet)
		ends.Close()
		if code := within(t, "the end of the service", func() int { return <-exit }); code != 0 || stdout.String() != "" || strings.Count(stderr.String(), line) != 1 {
			t.Errorf("exit code %d, stdout %q, stderr %q", code, &stdout, &stderr)
		}
	})
	t.Run("without the flag it does not matter", func(t *testing.T) {
		stderr := new(lockedBuffer)
		s := execute(t, stderr)
		s.in.Close()
		for range 20 {
			s.play(t, "GET /v1/pets", "200 []")
		}
		s.cmd.Process.Signal(syscall.SIGTERM)
		if err := s.wait(t); err != nil || strings.Contains(stderr.String(), "standard input") {
			t.Errorf("%v\n%s", err, stderr)
		}
	})
}

// README: As a test double.

// Health and description need no key, and mind none.
func TestOutsideV1(t *testing.T) {
	s := start(t)
	description, err := os.ReadFile("api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, auth := range map[string]string{"right key": "", "no key": "\nAuthorization", "wrong key": "\nAuthorization: Bearer wrong"} {
		s.rules(t, [][]string{
			{"health, " + name, "GET /healthz" + auth, `200 {"status":"ok"}`},
			{"description, " + name, "GET /openapi.json" + auth, "200 " + strings.TrimSuffix(string(description), "\n")},
			{"slash at the end, " + name, "GET /healthz/" + auth, noPath},
			{"health, no such method, " + name, "POST /healthz" + auth, only("GET, HEAD")},
			{"description, no such method, " + name, "DELETE /openapi.json" + auth, only("GET, HEAD")},
		})
	}
}

// Reset brings back the state after start, while others create and list.
func TestReset(t *testing.T) {
	const two, five = `{"id":2,"name":"two","categoryId":1}`, `{"id":5,"name":"five","categoryId":1,"status":"sold"}`
	const pets = "200 [" + two + "," + five + "]"
	const pending = "POST /v1/pets\n\n" + `{"name":"x","categoryId":2,"status":"pending"}`
	s := start(t, "-quiet", "-seed", seedFile(t, "["+five+","+two+"]"))
	s.rules(t, [][]string{
		{"no key", "POST /__admin/reset\nAuthorization", noKey},
		{"wrong key", "POST /__admin/reset\nAuthorization: Bearer x", wrongKey},
		{"no key, no such path", "GET /__admin\nAuthorization", noKey},
		{"no such path", "GET /__admin", noAdmin},
		{"a typo", "GET /__admin/reset/", noAdmin},
		{"a path that begins alike", "GET /__adminx", noPath},
		{"no such method", "GET /__admin/reset", only("POST")},
		{"no such method of fault", "GET /__admin/fault", only("DELETE, PUT")},
		{"clears the fault", "PUT /__admin/fault?code=500", "204", "POST /__admin/reset", "204", "GET /v1/pets", pets},
		{"brings back seed and ids", pending, `201 {"id":6,"name":"x","categoryId":2,"status":"pending"}` + "\nLocation: /v1/pets/6",
			"POST /__admin/reset", "204", "GET /v1/pets", pets, "GET /v1/pets?status=sold", "200 [" + five + "]",
			"GET /v1/pets?status=pending", "200 []", "GET /v1/pets/6", noPet(6),
			pending, `201 {"id":6,"name":"x","categoryId":2,"status":"pending"}` + "\nLocation: /v1/pets/6"},
	})
	t.Run("while others create and list", func(t *testing.T) {
		var done atomic.Bool
		together(5, func(i int) {
			if i == 0 {
				defer done.Store(true)
				for range 50 {
					s.play(t, "POST /__admin/reset", "204")
				}
				return
			}
			for !done.Load() {
				got := s.call(t, "POST /v1/pets\n\n"+`{"name":"x","categoryId":2,"status":"sold"}`)
				if !regexp.MustCompile(`^201 {"id":([6-9]|\d\d+),`).MatchString(got) {
					t.Errorf("created %s", got)
				}
				if ids := s.readAll(t, "?limit=3&status=sold"); ids[0] != 5 || !slices.IsSorted(ids) {
					t.Errorf("the sold pets are %v", ids)
				}
			}
		})
		s.check(t, "POST /__admin/reset", "204", "GET /v1/pets", pets, "GET /v1/pets?status=sold", "200 ["+five+"]", "GET /v1/pets/6", noPet(6),
			pending, `201 {"id":6,"name":"x","categoryId":2,"status":"pending"}`+"\nLocation: /v1/pets/6")
	})
}

// A seed keeps the ids it gives, numbers the other pets above them in the
// order of the file, and the counter goes on from there.
func TestSeed(t *testing.T) {
	const (
		three = `{"id":3,"name":"thrée","categoryId":1,"status":"sold"}`
		five  = `{"id":5,"name":"five","categoryId":1,"status":"sold"}`
		seven = `{"id":7,"name":"seven","categoryId":-1}`
		later = `{"id":8,"name":"later","categoryId":1,"status":"sold"}`
		last  = `{"id":9,"name":"last","categoryId":1}`
	)
	s := start(t, "-seed", seedFile(t, ` [
		{"name": "later", "categoryId": 1, "status": "sold"},
		{"id": 7, "name": "seven", "categoryId": -1, "x": null},
		{"id": 3, "name": "thr\u00e9e", "categoryId": 1, "status": "sold"},
		{"name": "last", "categoryId": 1}, `+five+`
	] `))
	s.rules(t, [][]string{
		{"ids are kept, and given above them", "GET /v1/pets", "200 [" + strings.Join([]string{three, five, seven, later, last}, ",") + "]"},
		{"status", "GET /v1/pets?status=sold&after=4", "200 [" + five + "," + later + "]"},
		{"gap", "GET /v1/pets/4", noPet(4)},
		{"one pet", "GET /v1/pets/7", "200 " + seven + going},
		{"the next id", create, created(10)},
	})
	s = start(t, "-seed", seedFile(t, `[{"id":9223372036854775806,"name":"","categoryId":1}]`))
	s.rules(t, [][]string{{"one id is left, and then none", create, created(math.MaxInt64), create, "507 insufficient_storage: there is no id left",
		"GET /v1/pets?after=9223372036854775806", `200 [{"id":9223372036854775807,"name":"a","categoryId":1}]`,
		"POST /__admin/reset", "204", create, created(math.MaxInt64)}})
	s = start(t, "-seed", seedFile(t, `[]`))
	s.rules(t, [][]string{{"no pets", "GET /v1/pets", "200 []", create, created(1)}})
}

// badSeeds has, for each seed that is refused, a name, the seed, and the place
// and what is wrong there.
var badSeeds = [][3]string{
	{"empty file", ``, "not a JSON array"},
	{"null", `null`, "not a JSON array"},
	{"no array", pet, "not a JSON array"},
	{"array without end", `[` + pet, "behind pet 1: the array does not end"},
	{"array without end behind a comma", `[` + pet + `,`, "pet 2: EOF"},
	{"bracket behind the array", `[` + pet + `]]`, "behind pet 1: something follows the array"},
	{"array behind the array", `[` + pet + `][]`, "behind pet 1: something follows the array"},
	{"comma too many", `[` + pet + `,]`, "pet 2: invalid character ']' looking for beginning of value"},
	{"no comma", `[` + pet + pet + `]`, "pet 2: expected comma after array element"},
	{"pet without end", `[` + pet + `,{"name":"`, "pet 2: unexpected EOF"},
	{"pet no object", `[` + pet + `,5]`, "pet 2: the pet is 5; it must be a JSON object"},
	{"name missing", `[` + pet + `,{"categoryId":1}]`, "pet 2: name is missing; it must be a string of valid Unicode"},
	{"categoryId no integer", `[{"name":"","categoryId":1.5}]`, "pet 1: categoryId is 1.5; it must be an integer"},
	{"unknown status", `[` + pet + `,` + pet + `,{"name":"","categoryId":1,"status":"lost"}]`, "pet 3: status is lost; it must be available, pending or sold"},
	{"invalid UTF-8", "[{\"name\":\"\xff\",\"categoryId\":1}]", "pet 1: name is not UTF-8; it must be UTF-8"},
	{"id 0", `[{"id":0,"name":"","categoryId":1}]`, "pet 1: id is 0" + seedID},
	{"id null", `[{"id":null,"name":"","categoryId":1}]`, "pet 1: id is null" + seedID},
	{"id 1.0", `[{"id":1.0,"name":"","categoryId":1}]`, "pet 1: id is 1.0" + seedID},
	{"id largest", `[{"id":9223372036854775807,"name":"","categoryId":1}]`, "pet 1: id is 9223372036854775807" + seedID},
	{"id twice in a pet", `[{"id":1,"id":1,"name":"","categoryId":1}]`, "pet 1: id is given twice; it must be given once"},
	{"id of two pets", `[{"id":2,"name":"","categoryId":1},` + pet + `,{"id":1,"name":"","categoryId":1},{"id":2,"name":"","categoryId":1}]`, "pet 4: id 2 is given twice"},
	{"no id left", `[` + pet + `,` + pet + `,{"id":9223372036854775805,"name":"","categoryId":1}]`, "pet 2: there is no id left for it"},
}

// seedID tells what an id in a seed must be.
const seedID = "; it must be an integer from 1 to 9223372036854775806"

// A bad seed is exit code 1 and a line that names the file and the place.
func TestBadSeeds(t *testing.T) {
	for _, c := range badSeeds {
		t.Run(c[0], func(t *testing.T) {
			file := seedFile(t, c[1])
			code, stdout, stderr := outcome(t, testKey, "-seed", file)
			line := regexp.MustCompile(`^time=\S+ level=ERROR msg=(".*")\n$`).FindStringSubmatch(stderr)
			if code != 1 || stdout != "" || line == nil {
				t.Errorf("%s: exit code %d, stdout %q, stderr %q", c[1], code, stdout, stderr)
			} else if got, err := strconv.Unquote(line[1]); got != file+": "+c[2] {
				t.Errorf("%s\n got %s %v\nwant %s", c[1], got, err, c[2])
			}
		})
	}
	t.Run("no such file", func(t *testing.T) {
		if code, _, stderr := outcome(t, testKey, "-seed", "/no/file"); code != 1 || !strings.Contains(stderr, `msg="open /no/file: `) {
			t.Errorf("exit code %d, stderr %q", code, stderr)
		}
	})
}

// A reset with an array of pets begins from these, for this once.
func TestResetWithPets(t *testing.T) {
	const two, five = `{"id":2,"name":"two","categoryId":1}`, `{"id":5,"name":"five","categoryId":1,"status":"sold"}`
	const nine, ten = `{"id":9,"name":"nine","categoryId":-1,"status":"sold"}`, `{"id":10,"name":"ten","categoryId":1}`
	const pets, reset, next = "200 [" + two + "," + five + "]", "POST /__admin/reset\n\n", `{"id":6,"name":"a","categoryId":1}`
	const noArray, mediaType = "400 invalid_body: not a JSON array", "415 unsupported_media_type: send JSON in UTF-8, with one Content-Type: application/json and no Content-Encoding (curl does with --json)"
	s := start(t, "-quiet", "-seed", seedFile(t, "["+two+","+five+"]"))
	rules := [][]string{
		{"these pets, ids above them, and then the seed again", create, created(6),
			reset + ` [ {"name":"ten","categoryId":1}, {"categoryId":-1,"name":"ni\u006ee","status":"sold","id":9,"x":{}} ] `, "204",
			"GET /v1/pets", "200 [" + nine + "," + ten + "]", "GET /v1/pets?status=sold", "200 [" + nine + "]", "GET /v1/pets/2", noPet(2), "GET /v1/pets/10", "200 " + ten + going,
			create, created(11), "GET /v1/pets?after=10", `200 [{"id":11,"name":"a","categoryId":1}]`,
			"POST /__admin/reset", "204", "GET /v1/pets", pets, "GET /v1/pets?status=sold", "200 [" + five + "]", create, created(6)},
		{"no pets", reset + "[]", "204", "GET /v1/pets", "200 []", create, created(1), "POST /__admin/reset", "204", "GET /v1/pets", pets},
		{"one array after the other", reset + "[" + nine + "]", "204", reset + "[" + ten + "]", "204", "GET /v1/pets", "200 [" + ten + "]", create, created(11)},
		{"one id is left, and then none", reset + `[{"id":9223372036854775806,"name":"","categoryId":1}]`, "204", create, created(math.MaxInt64), create, "507 insufficient_storage: there is no id left",
			"POST /__admin/reset", "204", create, created(6)},
		{"clears fault and journal", "PUT /__admin/fault?code=500", "204", "GET /v1/pets", "500 internal_server_error" + simulated, reset + "[]", "204", spy, nothing, "GET /v1/pets", "200 []"},
		{"64 KiB", reset + "[" + nine + strings.Repeat(" ", maxBody-len(nine)-2) + "]", "204", "GET /v1/pets", "200 [" + nine + "]"},
		{"over 64 KiB", reset + "[" + nine + strings.Repeat(" ", maxBody-len(nine)-1) + "]", "413 request_entity_too_large: the body is over 65536 bytes\nConnection: close", "GET /v1/pets", pets},
		{"no key", "POST /__admin/reset\nAuthorization\n\n[]", strings.Replace(noKey, "\n", "\nConnection: close\n", 1), "GET /v1/pets", pets},
		{"the key in it", reset + `[{"name":["` + testKey + `"],"categoryId":1}]`, `400 invalid_body: pet 1: name is ["<API_KEY>"]; it must be a string of valid Unicode`},
		{"malformed query", "POST /__admin/reset?%\n\n[]", `400 invalid_parameter: the query is malformed: invalid URL escape "%"`, "GET /v1/pets", pets},
		{"white space alone", reset + " \n", noArray, create, created(6)},
		{"no body, Content-Type text", create, created(6), "POST /__admin/reset\nContent-Type: text/plain", "204", "GET /v1/pets", pets},
		{"no body, two Content-Types", create, created(6), "POST /__admin/reset\nContent-Type: application/json\nContent-Type: application/json", "204", "GET /v1/pets", pets},
		{"no body, Content-Encoding gzip", create, created(6), "POST /__admin/reset\nContent-Encoding: gzip", "204", "GET /v1/pets", pets},
	}
	for _, c := range []struct{ name, headers, want string }{
		{"JSON", "Content-Type: application/json; charset=UTF-8", "204"},
		{"identity", "Content-Encoding: Identity", "204"},
		{"text", "Content-Type: text/plain", mediaType},
		{"form", "Content-Type: application/x-www-form-urlencoded", mediaType},
		{"latin1", "Content-Type: application/json; charset=latin1", mediaType},
		{"two Content-Types", "Content-Type: application/json\nContent-Type: application/json", mediaType},
		{"gzip", "Content-Encoding: gzip", mediaType},
		{"Content-Type before the body", "Content-Type: text/plain", mediaType},
	} {
		body, after := "[]", pets
		if c.name == "Content-Type before the body" {
			body = "x"
		}
		if c.want == "204" {
			after = "200 []"
		}
		rules = append(rules, []string{"body as " + c.name, "POST /__admin/reset\n" + c.headers + "\n\n" + body, c.want, "GET /v1/pets", after})
	}
	s.rulesOnce(t, rules)
	t.Run("chunks without a byte", func(t *testing.T) {
		s.play(t, "POST /__admin/reset", "204", create, created(6))
		got := rest(t, s.dial(t, "POST /__admin/reset HTTP/1.1\n"+withKey+"Content-Type: text/plain\nTransfer-Encoding: chunked\nConnection: close\n\n0\n\n"))
		if want := "HTTP/1.1 204 No Content\nConnection: close\n\n"; got != want {
			t.Errorf("got %q\nwant %q", got, want)
		}
		s.play(t, "GET /v1/pets", pets)
	})
	t.Run("a page of a list", func(t *testing.T) {
		s.play(t, "POST /__admin/reset", "204", create, created(6))
		page, found := strings.CutPrefix(s.call(t, "GET /v1/pets?after=2"), "200 ")
		if !found || page != "["+five+","+next+"]" {
			t.Fatal(page)
		}
		s.play(t, reset+page, "204", "GET /v1/pets", "200 "+page, create, created(7))
	})
	for _, c := range badSeeds {
		if c[1] == "" {
			continue // a plain reset
		}
		t.Run("refused: "+c[0], func(t *testing.T) {
			// The fault passes one request more, and the next id is 7.
			s.play(t, "POST /__admin/reset", "204", create, created(6), "PUT /__admin/fault?code=500&skip=2&times=1&operation=getPet", "204", "GET /v1/pets/6", "200 "+next+going)
			s.play(t, reset+c[1], "400 invalid_body: "+c[2])
			s.saw(t, 2, "POST /v1/pets 201 "+pet, "GET /v1/pets/6 200")
			s.play(t, "GET /v1/pets", pets[:len(pets)-1]+","+next+"]", "GET /v1/pets?status=sold", "200 ["+five+"]",
				"GET /v1/pets/6", "200 "+next+going, "GET /v1/pets/6", "500 internal_server_error"+simulated+going, "GET /v1/pets/6", "200 "+next+going, create, created(7))
		})
	}
}

// A web page of another origin reads every answer, and what it needs of the
// headers.
func TestCORS(t *testing.T) {
	s := start(t)
	const (
		open      = "\nAccess-Control-Allow-Origin: *\nAccess-Control-Expose-Headers: Link, Location, Allow, Deprecation, Sunset, WWW-Authenticate, Preference-Applied, Retry-After"
		preflight = "204\nAccess-Control-Allow-Headers: Authorization, Content-Type, Prefer, *\nAccess-Control-Allow-Methods: GET, HEAD, POST, PUT, DELETE"
		age       = "\nAccess-Control-Max-Age: 600"
		ask       = "\nAuthorization\nOrigin: http://demo.example\nAccess-Control-Request-Method: POST\nAccess-Control-Request-Headers: authorization"
	)
	s.rules(t, [][]string{
		{"preflight of pets", "OPTIONS /v1/pets" + ask, preflight + open + age},
		{"preflight of a pet", "OPTIONS /v1/pets/1" + ask, preflight + open + age},
		{"preflight of an unclean path", "OPTIONS /v1/pets/" + ask, preflight + open + age},
		{"preflight of no path", "OPTIONS /nothing" + ask, preflight + open + age},
		{"preflight of reset", "OPTIONS /__admin/reset" + ask, preflight + open + age},
		{"preflight of health", "OPTIONS /healthz" + ask, preflight + open + age},
		{"preflight of everything", "OPTIONS *" + ask, preflight + open + age},
		{"preflight without Origin", "OPTIONS /v1/pets\nAuthorization", preflight + age},
		{"no Origin", "GET /v1/pets", "200 []"},
	})
	for _, c := range [][3]string{
		{"list", "GET /v1/pets", "200"}, {"create", create, "201"}, {"one pet", "GET /v1/pets/1", "200"}, {"no such pet", "GET /v1/pets/9", "404"},
		{"bad limit", "GET /v1/pets?limit=0", "400"}, {"no key", "GET /v1/pets\nAuthorization", "401"}, {"no such method", "PUT /v1/pets", "405"},
		{"unclean path", "GET /x/../y", "404"}, {"health", "GET /healthz", "200"}, {"description", "GET /openapi.json", "200"},
		{"reset", "POST /__admin/reset", "204"}, {"simulated", "GET /v1/pets\nPrefer: code=503", "503"},
	} {
		t.Run(c[0], func(t *testing.T) {
			s.play(t, "POST /__admin/reset", "204", create, created(1))
			head, body, _ := strings.Cut(c[1], "\n\n")
			got := s.call(t, head+"\nOrigin: null\n\n"+body)
			if !strings.HasPrefix(got, c[2]) || !strings.Contains(got, open) {
				t.Errorf("%s\n got %s\nwant %s and%s", c[1], got, c[2], open)
			}
		})
	}
}

// The journal has what clients sent, in the order in which they were answered.
func TestJournal(t *testing.T) {
	s := start(t)
	s.rules(t, [][]string{
		{"empty", spy, nothing},
		{"other parameters", spy + "?limit=1", nothing},
	})
	s.rulesOnce(t, [][]string{
		{"no key", spy + "\nAuthorization", noKey, "HEAD /__admin/requests\nAuthorization: Bearer x", strings.Replace(wrongKey, wrongKey[3:strings.Index(wrongKey, "\n")], "", 1)},
		{"no key, DELETE", "GET /x", noPath, forget + "\nAuthorization", noKey, forget + "\nAuthorization: Bearer x", wrongKey, spy + "x", noAdmin},
		{"no such method", "POST /__admin/requests", only("DELETE, GET, HEAD"), "PUT /__admin/requests", only("DELETE, GET, HEAD")},
		{"no such path", spy + "/1", noAdmin, spy + "/", noAdmin},
		{"malformed query", spy + "?%", `400 invalid_parameter: the query is malformed: invalid URL escape "%"`},
		{"cleared", "GET /x", noPath, forget, "204", spy, nothing, forget, "204"},
		{"cleared by reset", "GET /x", noPath, "POST /__admin/reset", "204", spy, nothing},
	})
	t.Run("bytes", func(t *testing.T) {
		s.play(t, "POST /__admin/reset", "204")
		const end = "Connection: close\n"
		begin := time.Now().Truncate(time.Millisecond)
		rest(t, s.dial(t, "POST /v1/pets?x=1 HTTP/1.1\n"+withKey+end+"Content-Type: application/json\nContent-Length: 27\n\n"+pet))
		rest(t, s.dial(t, "GET /v1/pets HTTP/1.1\n"+withKey+end+"\n"))
		got := rawAnswer(t, s.dial(t, "GET /__admin/requests HTTP/1.1\n"+withKey+end+"\n"))
		times := regexp.MustCompile(`"time":"([^"]*)"`)
		last := begin
		for _, m := range times.FindAllStringSubmatch(got, -1) {
			at, err := time.Parse("2006-01-02T15:04:05.000Z", m[1])
			if err != nil || at.Before(last) || at.After(time.Now()) {
				t.Errorf("a request of now is said to be of %s", m[1])
			}
			last = at
		}
		const body = `{"requests":[` + "\n" +
			`{"time":"2026-11-20T12:00:00.000Z","method":"POST","url":"/v1/pets?x=1","headers":{"Authorization":"Bearer <API_KEY>","Connection":"close","Content-Length":"27","Content-Type":"application/json","Host":"x"},"body":"{\"name\":\"a\",\"categoryId\":1}","status":201},` + "\n" +
			`{"time":"2026-11-20T12:00:00.000Z","method":"GET","url":"/v1/pets","headers":{"Authorization":"Bearer <API_KEY>","Connection":"close","Host":"x"},"body":"","status":200}` + "\n" +
			`],"meta":{"total":2}}` + "\n"
		head := fmt.Sprintf("HTTP/1.1 200 OK\nContent-Length: %d\nContent-Type: application/json\nConnection: close\n\n", len(body))
		if got := times.ReplaceAllString(got, `"time":"2026-11-20T12:00:00.000Z"`); got != head+body {
			t.Errorf("got %s\nwant %s", got, head+body)
		}
		if got := rawAnswer(t, s.dial(t, "HEAD /__admin/requests HTTP/1.1\n"+withKey+end+"\n")); got != head {
			t.Errorf("HEAD: got %s\nwant %s", got, head)
		}
	})

	const (
		end    = "Connection: close\n\n"
		rest1  = `"Connection":"close","Host":"x"},"body":""` // of the entry of a request that has no more than this
		mine   = `"headers":{"Authorization":"Bearer <API_KEY>",` + rest1
		nobody = `"headers":{` + rest1
	)
	s.spied(t, [][]string{
		{"url as it came", "GET /v1/pets?limit=5&x=%20%zz;+ HTTP/1.1\n" + withKey + end, `{"method":"GET","url":"/v1/pets?limit=5&x=%20%zz;+",` + mine + `,"status":400}`},
		{"absolute url", "GET http://elsewhere/v1/pets HTTP/1.1\n" + withKey + end, strings.Replace(`{"method":"GET","url":"http://elsewhere/v1/pets",`+mine+`,"status":200}`, `"x"`, `"elsewhere"`, 1)},
		{"canonical names, repeats joined", "GET / HTTP/1.1\nhost: shop:8\nx-a: 1\nX-B:  <&>\" \nX-A:2, 3\nx-a:\n" + end,
			`{"method":"GET","url":"/","headers":{"Connection":"close","Host":"shop:8","X-A":"1, 2, 3, ","X-B":"<&>\""},"body":"","status":200}`},
		{"no headers", "GET /x HTTP/1.0\n\n", `{"method":"GET","url":"/x","headers":{},"body":"","status":404}`},
		{"chunked body", "POST /v1/pets HTTP/1.1\n" + withKey + "Transfer-Encoding: chunked\n" + end + "5\n" + pet[:5] + "\n16\n" + pet[5:] + "\n0\n\n",
			`{"method":"POST","url":"/v1/pets","headers":{"Authorization":"Bearer <API_KEY>","Connection":"close","Host":"x","Transfer-Encoding":"chunked"},"body":"{\"name\":\"a\",\"categoryId\":1}","status":201}`},
		{"body is text", "PUT /v1/pets HTTP/1.1\n" + withKey + "Content-Length: 8\n" + end + "<ü>\x00\t\"\xff",
			`{"method":"PUT","url":"/v1/pets","headers":{"Authorization":"Bearer <API_KEY>","Connection":"close","Content-Length":"8","Host":"x"},"body":"<ü>\u0000\t\"` + "\ufffd" + `","status":405}`},
		{"body that a fault struck", "POST /v1/pets HTTP/1.1\n" + withKey + "Prefer: code=503\nContent-Length: 2\n" + end + "ab",
			`{"method":"POST","url":"/v1/pets","headers":{"Authorization":"Bearer <API_KEY>","Connection":"close","Content-Length":"2","Host":"x","Prefer":"code=503"},"body":"ab","status":503}`},
		{"body of a hang-up", "POST /v1/pets HTTP/1.1\n" + withKey + "Prefer: code=hangup\nContent-Length: 2\n" + end + "ab",
			`{"method":"POST","url":"/v1/pets","headers":{"Authorization":"Bearer <API_KEY>","Connection":"close","Content-Length":"2","Host":"x","Prefer":"code=hangup"},"body":"ab","status":0}`},
		{"body of a bad Prefer", "POST /v1/pets HTTP/1.1\n" + withKey + "Prefer: code=1\nContent-Length: 2\n" + end + "ab",
			`{"method":"POST","url":"/v1/pets","headers":{"Authorization":"Bearer <API_KEY>","Connection":"close","Content-Length":"2","Host":"x","Prefer":"code=1"},"body":"ab","status":400}`},
		{"no body of a 401", "POST /v1/pets HTTP/1.1\nHost: x\nContent-Length: 2\n" + end + "ab",
			`{"method":"POST","url":"/v1/pets","headers":{"Connection":"close","Content-Length":"2","Host":"x"},"body":"","status":401}`},
		{"no body that nobody wants", "POST /x HTTP/1.1\nHost: x\nContent-Length: 2\n" + end + "ab",
			`{"method":"POST","url":"/x","headers":{"Connection":"close","Content-Length":"2","Host":"x"},"body":"","status":404}`},
		{"no body of a 413", "POST /v1/pets HTTP/1.1\n" + withKey + "Content-Length: 65537\n" + end + strings.Repeat("x", 65537),
			`{"method":"POST","url":"/v1/pets","headers":{"Authorization":"Bearer <API_KEY>","Connection":"close","Content-Length":"65537","Host":"x"},"body":"","status":413}`},
		{"no body of a chunked 413", "POST /v1/pets HTTP/1.1\n" + withKey + "Transfer-Encoding: chunked\n" + end + "10001\n" + strings.Repeat("x", 65537) + "\n0\n\n",
			`{"method":"POST","url":"/v1/pets","headers":{"Authorization":"Bearer <API_KEY>","Connection":"close","Host":"x","Transfer-Encoding":"chunked"},"body":"","status":413}`},
		{"no body that is cut short", "POST /v1/pets HTTP/1.1\n" + withKey + "Content-Length: 3\n" + end + "ab" + leave,
			`{"method":"POST","url":"/v1/pets","headers":{"Authorization":"Bearer <API_KEY>","Connection":"close","Content-Length":"3","Host":"x"},"body":"","status":400}`},

		{"the page", "GET / HTTP/1.1\nHost: x\n" + end, `{"method":"GET","url":"/",` + nobody + `,"status":200}`},
		{"the description", "HEAD /openapi.json HTTP/1.1\nHost: x\n" + end, `{"method":"HEAD","url":"/openapi.json",` + nobody + `,"status":200}`},
		{"no key", "GET /v1 HTTP/1.1\nHost: x\n" + end, `{"method":"GET","url":"/v1",` + nobody + `,"status":401}`},
		{"no such path", "GET /nothing HTTP/1.1\nHost: x\n" + end, `{"method":"GET","url":"/nothing",` + nobody + `,"status":404}`},
		{"no such method", "delete /v1/pets HTTP/1.1\n" + withKey + end, `{"method":"delete","url":"/v1/pets",` + mine + `,"status":405}`},
		{"a path like health", "GET /healthz2 HTTP/1.1\nHost: x\n" + end, `{"method":"GET","url":"/healthz2",` + nobody + `,"status":404}`},
		{"preflight", "OPTIONS /v1/pets HTTP/1.1\nHost: x\n" + end, `{"method":"OPTIONS","url":"/v1/pets",` + nobody + `,"status":204}`},
		{"preflight of everything", "OPTIONS * HTTP/1.1\nHost: x\n" + end, `{"method":"OPTIONS","url":"*",` + nobody + `,"status":204}`},
		{"CONNECT", "CONNECT x:80 HTTP/1.1\nHost: x\n" + end, strings.Replace(`{"method":"CONNECT","url":"x:80",`+nobody+`,"status":501}`, `"x"`, `"x:80"`, 1)},
		{"kept connection", "GET /v1 HTTP/1.1\nHost: x\n\nGET /x HTTP/1.1\nHost: x\n" + end,
			`{"method":"GET","url":"/v1","headers":{"Host":"x"},"body":"","status":401}`, `{"method":"GET","url":"/x",` + nobody + `,"status":404}`},

		{"not health", "GET /healthz HTTP/1.1\nHost: x\n" + end},
		{"not health, no such method", "POST /healthz HTTP/1.1\nHost: x\n" + end},
		{"not below health", "GET /healthz/x HTTP/1.1\nHost: x\n" + end},
		{"not a preflight of health", "OPTIONS /healthz HTTP/1.1\nHost: x\n" + end},
		{"not admin", "DELETE /__admin/fault HTTP/1.1\n" + withKey + end},
		{"not admin, no key", "GET /__admin/requests HTTP/1.1\nHost: x\n" + end},
		{"not admin, no such path", "GET /%5F_admin HTTP/1.1\n" + withKey + end},
		{"not a preflight of admin", "OPTIONS /__admin/reset HTTP/1.1\nHost: x\n" + end},
		{"not what is no request", "GET\n\n"},
	})
	t.Run("no body of a 408", func(t *testing.T) {
		impatient(t, state{}).spied(t, [][]string{{"half the body", late,
			`{"method":"POST","url":"/v1/pets","headers":{"Authorization":"Bearer <API_KEY>","Content-Length":"9","Host":"x"},"body":"","status":408}`}})
	})

	t.Run("in the order of the answers", func(t *testing.T) {
		a, stopping := quietAPI(state{}), make(chan struct{})
		a.stopping = stopping
		s := listen(t, a, nil)
		slow := s.dial(t, "GET /v1/pets?slow HTTP/1.1\n"+withKey+"Prefer: delay=30\n"+end)
		waiting(t, 1)
		gone := s.dial(t, "GET /v1/pets?gone HTTP/1.1\n"+withKey+"Prefer: delay=30\n\n")
		waiting(t, 2)
		s.play(t, "GET /v1/pets?quick", "200 []")
		s.saw(t, 1, "GET /v1/pets?quick 200")
		gone.Close()
		waiting(t, 1)
		s.saw(t, 2, "GET /v1/pets?quick 200", "GET /v1/pets?gone 0")
		close(stopping)
		rest(t, slow)
		s.saw(t, 3, "GET /v1/pets?quick 200", "GET /v1/pets?gone 0", "GET /v1/pets?slow 200")
		if entries, _ := s.journal(t); entries[2].Time > entries[1].Time || entries[1].Time > entries[0].Time {
			t.Errorf("the times are not those when requests came: %v", entries)
		}
	})
	t.Run("status 0 of a create whose client left", func(t *testing.T) {
		s := start(t)
		c := s.dial(t, "POST /v1/pets HTTP/1.1\n"+withKey+"Prefer: delay=30\nContent-Length: 27\n\n"+pet)
		waiting(t, 1)
		s.saw(t, 0)
		c.Close()
		waiting(t, 0)
		s.saw(t, 1, "POST /v1/pets 0 "+pet)
	})
	t.Run("status 0 of a HEAD that is cut off", func(t *testing.T) {
		s.play(t, forget, "204")
		if got := rawAnswer(t, s.dial(t, "HEAD /v1/pets HTTP/1.1\n"+withKey+"Prefer: code=truncate\n\n")); got != "" {
			t.Errorf("got %q", got)
		}
		s.saw(t, 1, "HEAD /v1/pets 0")
	})
	t.Run("total counts from the last clearing", func(t *testing.T) {
		s.play(t, "POST /__admin/reset", "204", "GET /x?1", noPath, "GET /x?2", noPath)
		s.saw(t, 2, "GET /x?1 404", "GET /x?2 404")
		s.play(t, forget, "204", "GET /x?3", noPath)
		s.saw(t, 1, "GET /x?3 404")
	})
	t.Run("there while its answer is sent", func(t *testing.T) {
		s := start(t, "-quiet", "-seed", seedFile(t, bigPage()))
		c := s.dial(t, "")
		c.SetReadBuffer(4 << 10) // the page does not fit into what lies between, so its handler waits
		io.WriteString(c, strings.ReplaceAll("GET /v1/pets?limit=100 HTTP/1.1\n"+withKey+"\n", "\n", "\r\n"))
		if _, err := io.ReadFull(c, make([]byte, len("HTTP/1.1 200"))); err != nil {
			t.Fatal(err)
		}
		s.saw(t, 1, "GET /v1/pets?limit=100 200")
		c.Close()
	})
	t.Run("there once its answer is", func(t *testing.T) {
		// The answer is longer than what net/http keeps until the handler returns.
		body := `{"name":"` + strings.Repeat("x", 8<<10) + `","categoryId":1}`
		for i := range 500 {
			s.play(t, "POST /__admin/reset", "204")
			s.call(t, fmt.Sprintf("POST /v1/pets?%d\n\n%s", i, body))
			s.saw(t, 1, fmt.Sprintf("POST /v1/pets?%d 201 %s", i, body))
		}
	})
}

// The key is nowhere in the journal, wherever a client puts it.
func TestJournalHidesTheKey(t *testing.T) {
	const key, escaped, half, double = "12345-67890", "%312345%2d67890", "12345-6789%30", "1234%2535-67890"
	const auth, end, hidden = "Authorization: Bearer 12345-67890\n", "Connection: close\n\n", `"Authorization":"Bearer <API_KEY>","Connection":"close",`
	get := func(headers, want string, status int) []string {
		return []string{"GET /v1/pets HTTP/1.1\n" + headers + end, `{"method":"GET","url":"/v1/pets","headers":{` + want + `},"body":"","status":` + strconv.Itoa(status) + `}`}
	}
	s := startKey(t, key)
	rules := [][]string{
		{"path and query", "GET /v1/" + key + "?" + key + "=" + key + " HTTP/1.1\nHost: x\n" + auth + end,
			`{"method":"GET","url":"/v1/<API_KEY>?<API_KEY>=<API_KEY>","headers":{` + hidden + `"Host":"x"},"body":"","status":404}`},
		{"escaped in path and query", "GET /v1/" + escaped + "?" + half + "=" + escaped + half + "%0a HTTP/1.1\nHost: x\n" + auth + end,
			`{"method":"GET","url":"/v1/<API_KEY>?<API_KEY>=<API_KEY><API_KEY>%0a","headers":{` + hidden + `"Host":"x"},"body":"","status":404}`},
		{"escaped twice stays", "GET /v1/pets?" + double + " HTTP/1.1\nHost: x\n" + auth + end,
			`{"method":"GET","url":"/v1/pets?` + double + `","headers":{` + hidden + `"Host":"x"},"body":"","status":200}`},
		{"beside a malformed escape", "GET /v1/pets?a=%zz" + escaped + "%&" + half + "%3 HTTP/1.1\nHost: x\n" + auth + end,
			`{"method":"GET","url":"/v1/pets?a=%zz<API_KEY>%&<API_KEY>%3","headers":{` + hidden + `"Host":"x"},"body":"","status":400}`},
		{"method", key + " /v1/pets HTTP/1.1\nHost: x\n" + auth + end,
			`{"method":"<API_KEY>","url":"/v1/pets","headers":{` + hidden + `"Host":"x"},"body":"","status":405}`},
		{"escaped method", escaped + " /v1/pets HTTP/1.1\nHost: x\n" + auth + end,
			`{"method":"<API_KEY>","url":"/v1/pets","headers":{` + hidden + `"Host":"x"},"body":"","status":405}`},
		{"body", "POST /v1/pets HTTP/1.1\nHost: x\n" + auth + "Content-Length: 37\n" + end + key + ` "` + escaped + half[:8] + "\xff",
			`{"method":"POST","url":"/v1/pets","headers":{"Authorization":"Bearer <API_KEY>","Connection":"close","Content-Length":"37","Host":"x"},"body":"<API_KEY> \"<API_KEY>12345-67` + "\ufffd" + `","status":400}`},
	}
	for _, c := range []struct {
		name, headers, want string
		status              int
	}{
		{"Host", "Host: a" + key + ":8\n" + auth, hidden + `"Host":"a<API_KEY>:8"`, 200},
		{"escaped Host", "Host: " + escaped + "\n" + auth, hidden + `"Host":"<API_KEY>"`, 200},
		{"header value", "Host: x\n" + auth + "X: " + key + ", k=" + escaped + "\nX: " + half, hidden + `"Host":"x","X":"<API_KEY>, k=<API_KEY>, <API_KEY>"`, 200},
		{"header name", "Host: x\n" + auth + key + ": 1", `"<API_KEY>":"1",` + hidden + `"Host":"x"`, 200},
		{"escaped header name", "Host: x\n" + auth + half + "-X: 1", `"<API_KEY>-X":"1",` + hidden + `"Host":"x"`, 200},
		{"two Authorization headers", "Host: x\n" + auth + "authorization: Basic " + half, `"Authorization":"Bearer <API_KEY>, Basic <API_KEY>","Connection":"close","Host":"x"`, 401},
		{"no scheme", "Host: x\nAuthorization: " + key, `"Authorization":"<API_KEY>","Connection":"close","Host":"x"`, 401},
		{"a key that goes on", "Host: x\n" + strings.TrimSpace(auth) + "1", `"Authorization":"Bearer <API_KEY>1","Connection":"close","Host":"x"`, 401},
		{"another key stays", "Host: x\nAuthorization: Bearer 12345-6789", `"Authorization":"Bearer 12345-6789","Connection":"close","Host":"x"`, 401},
	} {
		rules = append(rules, append([]string{c.name}, get(strings.TrimSpace(c.headers)+"\n", c.want, c.status)...))
	}
	s.spied(t, rules)

	// A key below 8 characters is hidden where it stands as a key, and the
	// rest is no riddle.
	short := startKey(t, "abc")
	short.spied(t, [][]string{
		{"short key", "POST /v1/pets?abc=%61bc HTTP/1.1\nHost: abc\nAuthorization: Bearer abc\nabc: abc\nContent-Length: 3\n" + end + "abc",
			`{"method":"POST","url":"/v1/pets?abc=%61bc","headers":{"Abc":"abc","Authorization":"Bearer <API_KEY>","Connection":"close","Content-Length":"3","Host":"abc"},"body":"abc","status":400}`},
		{"short key, escaped", "GET /v1/pets HTTP/1.1\nHost: x\nAuthorization: Bearer a%62c\n" + end,
			`{"method":"GET","url":"/v1/pets","headers":{"Authorization":"Bearer <API_KEY>","Connection":"close","Host":"x"},"body":"","status":401}`},
		{"short key, two Authorization headers", "GET /v1/pets HTTP/1.1\nHost: x\nAuthorization: Bearer abc\nAuthorization: abc\n" + end,
			`{"method":"GET","url":"/v1/pets","headers":{"Authorization":"Bearer <API_KEY>, <API_KEY>","Connection":"close","Host":"x"},"body":"","status":401}`},
	})
	startKey(t, "e").spied(t, [][]string{{"key of one character", "GET /v1/pets HTTP/1.1\nHost: x\nAuthorization: Bearer e\n" + end,
		`{"method":"GET","url":"/v1/pets","headers":{"Authorization":"Bearer <API_KEY>","Connection":"close","Host":"x"},"body":"","status":200}`}})
}

// The key is hidden in all of an Authorization header, and as the name of one.
func TestJournalHidesTheKeyInHeaders(t *testing.T) {
	const end = "Connection: close\n\n"
	s := startKey(t, "12345-67890")
	s.spied(t, [][]string{
		{"something behind the key", "GET /v1/pets HTTP/1.1\nHost: x\nAuthorization: Bearer 12345-67890 x\n" + end,
			`{"method":"GET","url":"/v1/pets","headers":{"Authorization":"Bearer <API_KEY> x","Connection":"close","Host":"x"},"body":"","status":401}`},
		{"key twice", "GET /v1/pets HTTP/1.1\nHost: x\nAuthorization: Bearer 12345-67890, Bearer 12345-67890\n" + end,
			`{"method":"GET","url":"/v1/pets","headers":{"Authorization":"Bearer <API_KEY>, Bearer <API_KEY>","Connection":"close","Host":"x"},"body":"","status":401}`},
	})
	startKey(t, "abc").spied(t, [][]string{
		{"something behind a short key", "GET /v1/pets HTTP/1.1\nHost: x\nAuthorization: Bearer abc x\n" + end,
			`{"method":"GET","url":"/v1/pets","headers":{"Authorization":"Bearer <API_KEY> x","Connection":"close","Host":"x"},"body":"","status":401}`}})
	start(t).spied(t, [][]string{
		{"header name", "GET /x HTTP/1.1\nHost: x\ncorrect-horse: 1\n" + end,
			`{"method":"GET","url":"/x","headers":{"<API_KEY>":"1","Connection":"close","Host":"x"},"body":"","status":404}`}})
	t.Run("two names that are the key", func(t *testing.T) {
		seen := map[string]bool{}
		for range 40 {
			s.play(t, "POST /__admin/reset", "204")
			rest(t, s.dial(t, "GET /x HTTP/1.1\nHost: x\n12345-67890: 1\n12345-6789%30: 2\n"+end))
			entries, _ := s.journal(t)
			seen[entries[0].line()] = true
		}
		if len(seen) > 1 || !strings.Contains(fmt.Sprint(seen), "2, 1") {
			t.Errorf("%v", seen)
		}
	})
}

// The journal keeps the last 1,000 requests, and 8 MiB of them.
func TestJournalBounds(t *testing.T) {
	// size is what the journal holds of its 8 MiB at least: the key in it is
	// longer than what stands for it.
	size := func(entries []journaled) (n int) {
		for _, e := range entries {
			n += len(e.URL) + len(e.Body)
			for name, value := range e.Headers {
				values := strings.Count(value, ", ") + 1 // those of this test have no comma of their own
				n += values*(len(name)+100) + len(value) - 2*(values-1)
			}
		}
		return n
	}
	s := start(t, "-quiet")
	t.Run("1,000 bodies of 60 KiB", func(t *testing.T) {
		s.play(t, "POST /__admin/reset", "204")
		body := strings.Repeat("x", 60<<10)
		for i := range 1000 {
			if got := s.call(t, fmt.Sprintf("PUT /v1/pets?n=%d\n\n%s", i, body)); got[:3] != "405" {
				t.Fatal(got)
			}
		}
		entries, total := s.journal(t)
		if n := size(entries); n > 8<<20 || n+2*(60<<10) < 8<<20 || total != 1000 {
			t.Errorf("%d bytes of %d requests are kept, and %d are told", n, len(entries), total)
		}
		for i, e := range entries {
			if want := fmt.Sprintf("/v1/pets?n=%d", 1000-len(entries)+i); e.URL != want || e.Body != body {
				t.Errorf("entry %d is of %s with a body of %d bytes, want %s", i, e.URL, len(e.Body), want)
			}
		}
	})
	t.Run("2,000 requests from 64 connections", func(t *testing.T) {
		s.play(t, "POST /__admin/reset", "204")
		together(64, func(c int) {
			for i := c; i < 2000; i += 64 {
				s.call(t, fmt.Sprintf("GET /v1/pets?c=%d&limit=%d", c, i/64+1))
				if i%200 == 0 {
					s.journal(t)
				}
			}
		})
		entries, total := s.journal(t)
		if len(entries) != 1000 || total != 2000 {
			t.Errorf("%d of %d requests are kept", len(entries), total)
		}
		// Each connection sends in order, so what is kept are its last ones.
		next := map[int]int{}
		for i := len(entries) - 1; i >= 0; i-- {
			var c, n int
			if _, err := fmt.Sscanf(entries[i].URL, "/v1/pets?c=%d&limit=%d", &c, &n); err != nil || entries[i].Status != 200 {
				t.Errorf("%v %+v", err, entries[i])
			}
			if _, later := next[c]; !later {
				next[c] = (1999-c)/64 + 1
			}
			if n != next[c] {
				t.Errorf("entry %d is the request %d of connection %d, want %d", i, n, c, next[c])
			}
			next[c] = n - 1
		}
	})
	long := strings.Repeat("x", 60<<10)
	for name, head := range map[string]string{
		"methods": long + " /x HTTP/1.1\nHost: x\n", "URLs": "GET /" + long + " HTTP/1.1\nHost: x\n", "hosts": "GET /x HTTP/1.1\nHost: " + long + "\n",
		"header names": "GET /x HTTP/1.1\nHost: x\n" + long + ":\n", "header values": "GET /x HTTP/1.1\nHost: x\nx: " + long + "\n",
	} {
		t.Run(name+" of 60 KiB", func(t *testing.T) {
			s.play(t, "POST /__admin/reset", "204")
			for range 200 {
				if got := rest(t, s.dial(t, head+"Connection: close\n\n")); !strings.HasPrefix(got, "HTTP/1.1 404 ") {
					t.Fatal(got)
				}
			}
			entries, total := s.journal(t)
			if want := 8 << 20 / (60<<10 + 300); len(entries) > 8<<20/(60<<10) || len(entries) < want || total != 200 {
				t.Errorf("%d of %d requests are kept, want about %d", len(entries), total, want)
			}
		})
	}
	t.Run("many small headers", func(t *testing.T) {
		s.play(t, "POST /__admin/reset", "204")
		same, different := strings.Repeat("a:\n", 15000), ""
		for i := range 10000 {
			different += strconv.FormatInt(36*36*36+int64(i), 36)[1:] + ":\n"
		}
		for i := range 40 {
			headers := []string{same, different}[i%2]
			if got := rest(t, s.dial(t, fmt.Sprintf("GET /x?%d HTTP/1.1\nHost: x\nConnection: close\n%s\n", i, headers))); !strings.HasPrefix(got, "HTTP/1.1 404 ") {
				t.Fatal(got)
			}
		}
		entries, total := s.journal(t)
		if n := size(entries); n > 8<<20 || n+2<<20 < 8<<20 || total != 40 || entries[len(entries)-1].URL != "/x?39" {
			t.Errorf("%d bytes of %d requests are kept, and %d are told", n, len(entries), total)
		}
	})
}

// Clients that ask for a full journal and do not read it keep the process
// under 1 GiB, and once they are gone, the journal answers others.
func TestJournalUnread(t *testing.T) {
	body := strings.Repeat("\x01xxxx", 12<<10) // 60 KiB, and twice as much in JSON
	fill := func(t *testing.T, s *service) {
		for i := range 150 {
			s.call(t, fmt.Sprintf("PUT /v1/pets?n=%d\n\n%s", i, body))
		}
	}
	// ask returns n connections that ask for the journal, in the order in which
	// they were opened. The first 16, as many as are served at once, have the
	// beginning of it.
	ask := func(t *testing.T, s *service, n int) (conns []*net.TCPConn) {
		for i := range n {
			c := s.dial(t, "")
			c.SetReadBuffer(4 << 10)
			io.WriteString(c, strings.ReplaceAll("GET /__admin/requests HTTP/1.1\n"+withKey+"\n", "\n", "\r\n"))
			if i < 16 {
				if _, err := io.ReadFull(c, make([]byte, 12)); err != nil {
					t.Fatal(err)
				}
			}
			conns = append(conns, c)
		}
		return conns
	}
	leaveAll := func(t *testing.T, s *service, conns []*net.TCPConn) {
		slices.Reverse(conns) // those that still wait for their turn leave first
		for _, c := range conns {
			c.Close()
		}
		s.play(t, forget, "204", "GET /x", noPath)
		s.saw(t, 1, "GET /x 404")
	}
	t.Run("300 readers", func(t *testing.T) {
		p := execute(t, nil, "-quiet")
		fill(t, &p.service)
		conns := ask(t, &p.service, 300)
		p.play(t, "GET /v1/pets", "200 []")
		fill(t, &p.service) // the readers have another journal than this
		leaveAll(t, &p.service, conns)
		if peak := resident(t, p, "VmHWM"); peak > 1024 {
			t.Errorf("resident memory reached %d MiB", peak)
		}
	})
	// That each of the 300 has another journal would take too long to test, so
	// this counts those that have one.
	t.Run("16 at once", func(t *testing.T) {
		s := start(t, "-quiet")
		fill(t, s)
		conns := ask(t, s, 20)
		buf := make([]byte, 16<<20)
		queued := 0
		for end := time.Now().Add(patience); queued != 4 && time.Now().Before(end); {
			queued = 0
			for _, goroutine := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
				if strings.Contains(goroutine, " [select") && strings.Contains(goroutine, "]:\npetstore.queue(") {
					queued++
				}
			}
		}
		if queued != 4 {
			t.Errorf("of 20 readers %d wait for their turn, want 4", queued)
		}
		leaveAll(t, s, conns)
	})
}

// A request fails as its Prefer header says.
func TestPrefer(t *testing.T) {
	s := start(t)
	var rules [][]string
	for status := 400; status <= 599; status++ {
		code := "status_" + strconv.Itoa(status)
		if text := http.StatusText(status); text != "" {
			code = strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(text), " ", "_"), "'", "")
		}
		want := fmt.Sprintf("%d %s%s\nPreference-Applied: code=%d", status, code, simulated, status)
		switch status {
		case 401:
			want = strings.Replace(want, "unauthorized", "invalid_token", 1) + "\n" + strings.SplitAfter(wrongKey, "\n")[1]
		case 429, 503:
			want += "\nRetry-After: 1"
		}
		rules = append(rules, []string{fmt.Sprint("code ", status), fmt.Sprintf("POST /v1/pets\nPrefer: code=%d\n\n%s", status, pet), want, "GET /v1/pets", "200 []"})
	}
	s.rules(t, rules)
	const teapot = "418 im_a_teapot" + simulated + "\nPreference-Applied: code=418"
	const get = "GET /v1/pets\nPrefer: "
	code := func(given string) string { return badParameter("code", given, codes) }
	delay := func(given string) string { return badParameter("delay", given, delays) }
	s.rules(t, [][]string{
		{"bad code 200", get + "code=200", code("200")},
		{"bad code 399", get + "code=399", code("399")},
		{"bad code 600", get + "code=600", code("600")},
		{"bad code in capitals", get + "code=Hangup", code("Hangup")},
		{"bad code empty", get + "code", code("empty")},
		{"bad delay x", get + "delay=x", delay("x")},
		{"bad delay empty", get + "delay=", delay("empty")},
		{"bad delay negative", get + "delay=-1", delay("-1")},
		{"bad delay with an exponent", get + "delay=1e1", delay("1e1")},
		{"bad delay NaN", get + "delay=NaN", delay("NaN")},
		{"bad delay over 30", get + "delay=30.01", delay("30.01")},
		{"bad delay with two points", get + "delay=1.2.3", delay("1.2.3")},
		{"bad delay beside a good code, with the key", get + "code=503, delay=" + testKey, delay("<API_KEY>")},
		{"delay 0", get + "delay=0", "200 []\nPreference-Applied: delay=0"},
		{"delay and code", get + "delay=0.01,code=418", "418 im_a_teapot" + simulated + "\nPreference-Applied: code=418, delay=0.01"},
		{"delay and code of a create", "POST /v1/pets\nPrefer: code=418, delay=.01\n\n" + pet, "418 im_a_teapot" + simulated + "\nPreference-Applied: code=418, delay=.01", "GET /v1/pets", "200 []"},
		{"delay of a create", "POST /v1/pets\nPrefer: delay=0.01\n\n" + pet, created(1) + "\nPreference-Applied: delay=0.01"},
		{"a body too long comes before code", "POST /v1/pets\nPrefer: code=503\n\n" + strings.Repeat(" ", maxBody+1), tooLong},
		{"getPet's headers on a simulated error", "GET /v1/pets/1\nPrefer: code=418", "418 im_a_teapot" + simulated + strings.Replace(going, "\nSunset", "\nPreference-Applied: code=418\nSunset", 1)},
		{"getPet's headers on a bad Prefer", "GET /v1/pets/1\nPrefer: code=x", code("x") + going},
		{"a quote that is not closed", get + "code=418, example=\"a, code=500", teapot, get + "x=\"a, code=418", "200 []"},
		{"a body too long comes before delay", "POST /v1/pets\nPrefer: delay=0.01\n\n" + strings.Repeat(" ", maxBody+1), tooLong},
		{"other preferences are ignored", get + "wait=5, return=minimal, example=\"code=500, code=501\"", "200 []"},
		{"quotes, parameters and the first of two", get + "example=\"a\\\",code=500\";x, respond-async\nPrefer: Code = \"418\" ; q=1, code=999", teapot},
		{"no such path", "GET /v1/nothing\nPrefer: code=418", teapot},
		{"no such method", "PUT /v1/pets/1\nPrefer: code=418", teapot},
		{"no key", get + "code=418\nAuthorization", noKey},
		{"no key, bad code", get + "code=x\nAuthorization", noKey},
		{"health", "GET /healthz\nPrefer: code=418", `200 {"status":"ok"}`},
		{"admin", "DELETE /__admin/fault\nPrefer: code=418", "204"},
	})
	t.Run("hangup", func(t *testing.T) {
		s := start(t)
		if got := rest(t, s.dial(t, "GET /v1/pets HTTP/1.1\n"+withKey+"Prefer: code=hangup, delay=0.001\n\n")); got != "" {
			t.Errorf("code=hangup answered %q", got)
		}
		s.stop()
		if !strings.Contains(s.stderr.String(), "msg=request method=GET path=/v1/pets status=0\n") {
			t.Errorf("a hangup is not in the log:\n%s", s.stderr)
		}
	})
}

// retry-after sets the header of a simulated error, and of nothing else.
func TestRetryAfter(t *testing.T) {
	s := start(t)
	const get, fault = "GET /v1/pets\nPrefer: ", "PUT /__admin/fault?"
	const applied, seconds = "\nPreference-Applied: ", "an integer from 0 to 3600"
	const teapot, down = "418 im_a_teapot" + simulated, "503 service_unavailable" + simulated
	rules := [][]string{
		{"any status, 0", get + "code=418, retry-after=0", teapot + applied + "code=418, retry-after=0\nRetry-After: 0"},
		{"any status, 3600", get + "retry-after=3600,code=400", "400 bad_request" + simulated + applied + "code=400, retry-after=3600\nRetry-After: 3600"},
		{"in place of that of 429", get + "code=429, retry-after=0", "429 too_many_requests" + simulated + applied + "code=429, retry-after=0\nRetry-After: 0"},
		{"in place of that of 503", get + "code=503, Retry-After = \"7\";x", down + applied + "code=503, retry-after=7\nRetry-After: 7"},
		{"1 without it", get + "code=503", down + applied + "code=503\nRetry-After: 1"},
		{"getPet", "GET /v1/pets/1\nPrefer: code=500, retry-after=2", "500 internal_server_error" + simulated +
			strings.Replace(going, "\nSunset", applied+"code=500, retry-after=2\nRetry-After: 2\nSunset", 1)},
		{"with a delay", get + "delay=0.001, retry-after=0, code=418", teapot + applied + "code=418, delay=0.001, retry-after=0\nRetry-After: 0"},
		{"a mere delay", get + "delay=0.001, retry-after=5", "200 []" + applied + "delay=0.001"},
		{"a mere delay before an error", "GET /v1/nothing\nPrefer: delay=0, retry-after=5", noPath + applied + "delay=0"},
		{"bad, minus 0", get + "code=503, retry-after=-0", badParameter("retry-after", "-0", seconds)},
		{"bad with a mere delay", get + "delay=0, retry-after=x", badParameter("retry-after", "x", seconds)},
		{"bad with a truncated answer", get + "code=truncate, retry-after=3601", badParameter("retry-after", "3601", seconds)},
		{"the first of two", get + "code=418, retry-after=2, retry-after=x\nPrefer: retry-after=-1", teapot + applied + "code=418, retry-after=2\nRetry-After: 2"},
		{"alone", get + "retry-after=5", "200 []"},
		{"alone and bad", get + "retry-after=x", "200 []"},
	}
	onces := [][]string{
		{"standing", fault + "code=418&retry-after=0&times=1", "204", "GET /v1/pets", teapot + "\nRetry-After: 0", "GET /v1/pets", "200 []"},
		{"standing, in place of that of 503", fault + "code=503&retry-after=3600", "204", "HEAD /v1/pets", "503\nRetry-After: 3600"},
		{"standing, a mere delay", fault + "delay=0&retry-after=5", "204", "GET /v1/pets", "200 []"},
		{"standing, alone", fault + "retry-after=5", "400 invalid_parameter: code or delay must be given, in the query: /__admin/fault?code=503"},
		{"standing, twice", fault + "code=503&retry-after=1&retry-after=1", badParameter("retry-after", "given 2 times", "given once"), "GET /v1/pets", "200 []"},
		{"alone, it is no Prefer of one's own", fault + "code=503", "204", get + "retry-after=9", down + "\nRetry-After: 1"},
	}
	for name, bad := range map[string][2]string{"-1": {"-1", "-1"}, "3601": {"3601", "3601"}, "x": {"x", "x"}, "empty": {"", "empty"}, "1.5": {"1.5", "1.5"}, "01": {"01", "01"}} {
		want := badParameter("retry-after", bad[1], seconds)
		rules = append(rules, []string{"bad " + name, "POST /v1/pets\nPrefer: code=503, retry-after=" + bad[0] + "\n\n" + pet, want, "GET /v1/pets", "200 []"})
		onces = append(onces, []string{"standing, bad " + name, fault + "code=503&retry-after=" + bad[0], want, "GET /v1/pets", "200 []"})
	}
	s.rules(t, append(rules, []string{"bad without a value", get + "code=503, retry-after", badParameter("retry-after", "empty", seconds)}))
	s.rulesOnce(t, onces)
	t.Run("beside what is no Error", func(t *testing.T) {
		if got := rest(t, s.dial(t, "GET /v1/pets HTTP/1.1\n"+withKey+"Prefer: code=hangup, retry-after=5\n\n")); got != "" {
			t.Errorf("a hang-up answered %q", got)
		}
		want := "HTTP/1.1 200 OK\nContent-Length: 3\nContent-Type: application/json\nPreference-Applied: code=truncate\n\n["
		if got := rawAnswer(t, s.dial(t, "GET /v1/pets HTTP/1.1\n"+withKey+"Prefer: code=truncate, retry-after=5\n\n")); got != want {
			t.Errorf("got %q\nwant %q", got, want)
		}
	})
}

// A truncated answer is the true one up to the middle of its body, and what
// was asked for is done.
func TestTruncate(t *testing.T) {
	const (
		seven  = `{"id":7,"name":"seven","categoryId":1}`
		seed   = seven + `,{"id":8,"name":"eight","categoryId":1}`
		prefer = withKey + "Prefer: code=truncate\n"
		head   = "Content-Length: %d\nContent-Type: application/json\n"
		also   = "Preference-Applied: code=truncate\n"
	)
	s := start(t, "-quiet", "-seed", seedFile(t, "["+seed+"]"))
	const deprecated = "Deprecation: @1795132800\nLink: </v1/pets>; rel=\"successor-version\"\n"
	for _, c := range []struct {
		name, send, head, body string
		journal                []string
	}{
		{"list", "GET /v1/pets HTTP/1.1\n" + prefer, "200 OK\n" + head + also, "[" + seed + "]\n", []string{"GET /v1/pets 200"}},
		{"list with more", "GET /v1/pets?limit=1 HTTP/1.1\n" + prefer, "200 OK\n" + head + "Link: </v1/pets?limit=1&after=7>; rel=\"next\"\n" + also, "[" + seven + "]\n", []string{"GET /v1/pets?limit=1 200"}},
		{"create", "POST /v1/pets HTTP/1.1\n" + prefer + "Content-Length: 27\n\n" + pet, "201 Created\n" + head + "Location: /v1/pets/9\n" + also,
			`{"id":9,"name":"a","categoryId":1}` + "\n", []string{"POST /v1/pets 201 " + pet}},
		{"getPet", "GET /v1/pets/7 HTTP/1.1\n" + prefer, "200 OK\n" + head + deprecated + also + "Sunset: Thu, 05 Dec 2030 00:00:00 GMT\n", seven + "\n", []string{"GET /v1/pets/7 200"}},
		{"no such pet", "GET /v1/pets/9 HTTP/1.1\n" + prefer, "404 Not Found\n" + head + deprecated + also + "Sunset: Thu, 05 Dec 2030 00:00:00 GMT\n", bodyOf(noPet(9)), []string{"GET /v1/pets/9 404"}},
		{"no such path", "GET /v1/nothing HTTP/1.1\n" + prefer, "404 Not Found\n" + head + also, bodyOf(noPath), []string{"GET /v1/nothing 404"}},
		{"unclean path", "GET /v1/pets/ HTTP/1.1\n" + prefer, "404 Not Found\n" + head + also, bodyOf(noPath), []string{"GET /v1/pets/ 404"}},
		{"bad limit", "GET /v1/pets?limit=0 HTTP/1.1\n" + prefer, "400 Bad Request\n" + head + also, bodyOf(badParameter("limit", "0", "an integer from 1 to 100")), []string{"GET /v1/pets?limit=0 400"}},
		{"bad create", "POST /v1/pets HTTP/1.1\n" + prefer + "Content-Length: 2\n\n{}", "400 Bad Request\n" + head + also,
			bodyOf("400 invalid_body: name is missing; it must be a string of valid Unicode"), []string{"POST /v1/pets 400 {}"}},
		{"no such method", "PUT /v1/pets HTTP/1.1\n" + prefer, "405 Method Not Allowed\nAllow: GET, HEAD, POST\n" + head + also, bodyOf(only("GET, HEAD, POST")), []string{"PUT /v1/pets 405"}},
		{"with a delay", "GET /v1/pets HTTP/1.1\n" + withKey + "Prefer: delay=0.001, code=truncate\n", "200 OK\n" + head + "Preference-Applied: code=truncate, delay=0.001\n", "[" + seed + "]\n", []string{"GET /v1/pets 200"}},
		{"to another origin", "GET /v1/pets HTTP/1.1\nOrigin: null\n" + prefer,
			"200 OK\nAccess-Control-Allow-Origin: *\nAccess-Control-Expose-Headers: Link, Location, Allow, Deprecation, Sunset, WWW-Authenticate, Preference-Applied, Retry-After\n" + head + also, "[" + seed + "]\n", []string{"GET /v1/pets 200"}},
		{"nothing follows on the connection", "GET /v1/pets HTTP/1.1\n" + prefer + "\nGET /v1/pets HTTP/1.1\n" + withKey, "200 OK\n" + head + also, "[" + seed + "]\n", []string{"GET /v1/pets 200"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.play(t, "POST /__admin/reset", "204")
			if !strings.Contains(c.send, "\n\n") || strings.HasSuffix(c.send, withKey) {
				c.send += "\n"
			}
			got, want := rawAnswer(t, s.dial(t, c.send)), "HTTP/1.1 "+fmt.Sprintf(c.head, len(c.body))+"\n"+c.body[:len(c.body)/2]
			if got != want {
				t.Errorf("got %q\nwant %q", got, want)
			}
			s.saw(t, 1, c.journal...)
			if strings.HasPrefix(c.name, "create") {
				s.play(t, "GET /v1/pets", "200 ["+seed+","+strings.TrimSpace(c.body)+"]")
			} else {
				s.play(t, "GET /v1/pets", "200 ["+seed+"]")
			}
		})
	}
	t.Run("HEAD", func(t *testing.T) {
		s.play(t, "POST /__admin/reset", "204")
		if got := rawAnswer(t, s.dial(t, "HEAD /v1/pets HTTP/1.1\n"+prefer+"\n")); got != "" {
			t.Errorf("got %q", got)
		}
		s.saw(t, 1, "HEAD /v1/pets 0")
	})
	t.Run("standing", func(t *testing.T) {
		s.play(t, "POST /__admin/reset", "204", "PUT /__admin/fault?code=truncate&skip=1&times=2&operation=createPet&retry-after=1", "204",
			create, created(9), "GET /v1/pets/10", noPet(10))
		for id := 10; id < 12; id++ {
			body := fmt.Sprintf(`{"id":%d,"name":"a","categoryId":1}`+"\n", id)
			want := fmt.Sprintf("HTTP/1.1 201 Created\n"+head+"Location: /v1/pets/%d\n\n%s", len(body), id, body[:len(body)/2])
			if got := rawAnswer(t, s.dial(t, "POST /v1/pets HTTP/1.1\n"+withKey+"Content-Length: 27\n\n"+pet)); got != want {
				t.Errorf("got %q\nwant %q", got, want)
			}
		}
		s.play(t, create, created(12))
		s.saw(t, 5, "POST /v1/pets 201 "+pet, "GET /v1/pets/10 404", "POST /v1/pets 201 "+pet, "POST /v1/pets 201 "+pet, "POST /v1/pets 201 "+pet)
	})
	t.Run("big page", func(t *testing.T) {
		page := bigPage()
		s := start(t, "-quiet", "-seed", seedFile(t, page))
		if got := s.half(t, "GET /v1/pets?limit=100\nPrefer: code=truncate"); got != "200 "+(page + "\n")[:(len(page)+1)/2] {
			t.Errorf("%d bytes came, and not the first half of the page", len(got))
		}
		s.saw(t, 1, "GET /v1/pets?limit=100 200")
	})
}

// What a client of net/http makes of lost answers: it repeats by itself what
// was hung up on, and not what was truncated.
func TestLostAnswers(t *testing.T) {
	s := start(t)
	for _, c := range []struct {
		name string
		play func(t *testing.T, send func(method, body string) (string, error))
	}{
		{"a hang-up on a kept connection is repeated", func(t *testing.T, send func(method, body string) (string, error)) {
			if got, err := send("GET", ""); got != "200 []\n" || err != nil {
				t.Errorf("got %q %v", got, err)
			}
			s.play(t, "PUT /__admin/fault?code=hangup&times=1", "204")
			if got, err := send("GET", ""); got != "200 []\n" || err != nil {
				t.Errorf("got %q %v", got, err)
			}
			s.saw(t, 3, "GET /v1/pets 200", "GET /v1/pets 0", "GET /v1/pets 200")
		}},
		{"a hang-up on a new connection is not", func(t *testing.T, send func(method, body string) (string, error)) {
			s.play(t, "PUT /__admin/fault?code=hangup&times=1", "204")
			if got, err := send("GET", ""); !errors.Is(err, io.EOF) {
				t.Errorf("got %q %v", got, err)
			}
			s.saw(t, 1, "GET /v1/pets 0")
		}},
		{"a create that was hung up on is not", func(t *testing.T, send func(method, body string) (string, error)) {
			send("GET", "")
			s.play(t, "PUT /__admin/fault?code=hangup&times=1", "204")
			if got, err := send("POST", pet); !errors.Is(err, io.EOF) {
				t.Errorf("got %q %v", got, err)
			}
			s.saw(t, 2, "GET /v1/pets 200", "POST /v1/pets 0 "+pet)
			s.play(t, "GET /v1/pets", "200 []")
		}},
		{"a truncated list is not repeated", func(t *testing.T, send func(method, body string) (string, error)) {
			send("GET", "")
			s.play(t, "PUT /__admin/fault?code=truncate&times=1", "204")
			if got, err := send("GET", ""); got != "200 [" || err != io.ErrUnexpectedEOF {
				t.Errorf("got %q %v", got, err)
			}
			s.saw(t, 2, "GET /v1/pets 200", "GET /v1/pets 200")
		}},
		{"a truncated create is not, and was done", func(t *testing.T, send func(method, body string) (string, error)) {
			send("GET", "")
			s.play(t, "PUT /__admin/fault?code=truncate&times=1", "204")
			if got, err := send("POST", pet); got != "201 "+(onePet + "\n")[:(len(onePet)+1)/2] || err != io.ErrUnexpectedEOF {
				t.Errorf("got %q %v", got, err)
			}
			s.saw(t, 2, "GET /v1/pets 200", "POST /v1/pets 201 "+pet)
			s.play(t, "GET /v1/pets", "200 ["+onePet+"]")
		}},
		{"a naive retry makes two pets", func(t *testing.T, send func(method, body string) (string, error)) {
			s.play(t, "PUT /__admin/fault?code=truncate&times=1&operation=createPet", "204")
			tries := 1
			for ; tries < 5; tries++ {
				if _, err := send("POST", pet); err == nil {
					break
				}
			}
			if tries != 2 {
				t.Errorf("it took %d tries", tries)
			}
			s.saw(t, 2, "POST /v1/pets 201 "+pet, "POST /v1/pets 201 "+pet)
			s.play(t, "GET /v1/pets", "200 ["+onePet+","+strings.Replace(onePet, "1", "2", 1)+"]")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.play(t, "POST /__admin/reset", "204")
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			c.play(t, func(method, body string) (string, error) {
				req, err := http.NewRequest(method, "http://"+s.addr+"/v1/pets", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer "+testKey)
				resp, err := (&http.Client{Transport: transport, Timeout: patience}).Do(req)
				if err != nil {
					return "", err
				}
				defer resp.Body.Close()
				b, err := io.ReadAll(resp.Body)
				return fmt.Sprint(resp.StatusCode, " ", string(b)), err
			})
		})
	}
}

// Standing faults strike the requests that they are set for.
func TestStandingFault(t *testing.T) {
	s := start(t)
	const (
		fault   = "PUT /__admin/fault?"
		down    = "503 service_unavailable" + simulated + "\nRetry-After: 1"
		creates = fault + "code=503&delay=0.001&times=2&operation=createPet"
		lists   = fault + "code=503&times=1&operation=listPets"
		gets    = fault + "code=500&operation=getPet"
	)
	s.rulesOnce(t, [][]string{
		// The next two creates fail, then it recovers; nothing else is touched
		// or counted.
		{"times 2 of createPet", creates, "204", create, down, "GET /v1/pets/1", noPet(1), create, down, create, created(1)},
		{"createPet, not other operations", creates, "204", "GET /v1/pets", "200 []", "GET /v1/pets/1", noPet(1), create, down, create, down, create, created(1)},
		{"createPet, not other methods", creates, "204", "PUT /v1/pets", only("GET, HEAD, POST"), "POST /v1/pets/1", only("GET, HEAD"), create, down, create, down, create, created(1)},
		{"a request without the key does not count", creates, "204", "POST /v1/pets\nAuthorization", noKey, create, down, create, down, create, created(1)},
		{"a request with a Prefer of its own does not count", creates, "204",
			"POST /v1/pets\nPrefer: code=418\n\n{}", "418 im_a_teapot" + simulated + "\nPreference-Applied: code=418",
			"POST /v1/pets\nPrefer: delay=0\n\n{}", "400 invalid_body: name is missing; it must be a string of valid Unicode\nPreference-Applied: delay=0",
			create, down, create, down, create, created(1)},
		{"times largest", fault + "code=503&times=9223372036854775807&operation=listPets", "204", "HEAD /v1/pets", "503\nRetry-After: 1", create, created(1)},

		// The third page fails: two lists pass, one fails, and all others pass.
		{"skip 2, times 1", fault + "code=503&skip=2&times=1&operation=listPets", "204", "GET /v1/pets", "200 []", "GET /v1/pets?limit=1", "200 []", "GET /v1/pets", down, "GET /v1/pets", "200 []", "GET /v1/pets", "200 []"},
		{"skip 0", fault + "code=503&skip=0&times=1", "204", "GET /v1/pets", down, "GET /v1/pets", "200 []"},
		{"skip without times", fault + "code=503&skip=1", "204", "GET /v1/pets", "200 []", "GET /v1/pets", down, "GET /v1/pets", down},
		{"skip largest", fault + "code=503&skip=9223372036854775807&times=9223372036854775807", "204", "GET /v1/pets", "200 []", "GET /v1/pets", "200 []"},
		{"skip and times largest", fault + "code=503&skip=1&times=9223372036854775807", "204", "GET /v1/pets", "200 []", "GET /v1/pets", down, "GET /v1/pets", down},
		{"skip, other operations", fault + "code=503&skip=1&times=1&operation=createPet", "204", "GET /v1/pets", "200 []", "GET /v1/pets/1", noPet(1), "PUT /v1/pets", only("GET, HEAD, POST"),
			create, created(1), "GET /v1/pets", "200 [" + onePet + "]", create, down, create, created(2)},
		{"skip, no key and a Prefer of its own", fault + "code=503&skip=1&times=1", "204", "GET /v1/pets\nAuthorization", noKey, "GET /v1/pets\nPrefer: delay=0", "200 []\nPreference-Applied: delay=0",
			"GET /v1/pets\nPrefer: code=418", "418 im_a_teapot" + simulated + "\nPreference-Applied: code=418", "GET /v1/pets", "200 []", "GET /v1/pets", down, "GET /v1/pets", "200 []"},
		{"skip, a Prefer that is bad", fault + "code=503&skip=1&times=1", "204", "GET /v1/pets\nPrefer: code=1", badParameter("code", "1", codes), "GET /v1/pets", "200 []", "GET /v1/pets", down},
		{"skip, a body that is too long", fault + "code=503&skip=1&times=1", "204", "POST /v1/pets\n\n" + strings.Repeat(" ", maxBody+1), "413 request_entity_too_large: the body is over 65536 bytes\nConnection: close",
			"GET /v1/pets", "200 []", "GET /v1/pets", down},
		{"skip, times and operation are no preferences", "GET /v1/pets\nPrefer: code=503, skip=1, times=x, operation=createPet", down[:len(down)-len("\nRetry-After: 1")] + "\nPreference-Applied: code=503\nRetry-After: 1",
			"GET /v1/pets\nPrefer: skip=x, times=1", "200 []", fault + "code=503", "204", "GET /v1/pets\nPrefer: skip=1, operation=createPet", down},
		{"a new one counts anew", fault + "code=503&skip=1&times=1", "204", "GET /v1/pets", "200 []", fault + "code=503&skip=1&times=1", "204", "GET /v1/pets", "200 []", "GET /v1/pets", down, "GET /v1/pets", "200 []"},

		{"every operation", fault + "code=503", "204", "GET /v1/pets", down, "HEAD /v1/pets", "503\nRetry-After: 1", create, down},
		{"no such path", fault + "code=503", "204", "GET /v1/nothing", down},
		{"other preferences", fault + "code=503", "204", "GET /v1/pets\nPrefer: wait=1", down},
		{"no key", fault + "code=503", "204", "GET /v1/pets\nAuthorization", noKey},
		{"outside v1", fault + "code=503", "204", "GET /healthz", `200 {"status":"ok"}`, "GET /openapi.json2", noPath},
		{"getPet, not listPets", create, created(1), gets, "204", "GET /v1/pets", "200 [" + onePet + "]"},
		{"getPet", create, created(1), gets, "204", "GET /v1/pets/1", "500 internal_server_error" + simulated + going, "HEAD /v1/pets/x", "500" + going},
		{"getPet, not an unclean path", gets, "204", "GET /v1/pets/", noPath},
		{"getPet, not other methods", gets, "204", "PUT /v1/pets/1", only("GET, HEAD")},
		{"a delay alone", create, created(1), fault + "delay=0&operation=listPets", "204", "GET /v1/pets/2", noPet(2), "GET /v1/pets", "200 [" + onePet + "]"},
		{"a new one replaces it", fault + "code=503", "204", gets, "204", "GET /v1/pets", "200 []"},
		{"cleared", fault + "code=503", "204", "DELETE /__admin/fault", "204", "DELETE /__admin/fault", "204", "HEAD /v1/pets", "200"},
		{"a body too long does not count", creates, "204", "POST /v1/pets\n\n" + strings.Repeat(" ", maxBody+1), tooLong, create, down, create, down, create, created(1)},
		{"listPets, not an escaped slash", lists, "204", "GET /v1%2Fpets", noPath, "GET /v1/pets", down, "GET /v1/pets", "200 []"},
		{"listPets, escaped letters", lists, "204", "GET /v1/%70ets", down, "GET /v1/pets", "200 []"},
		{"getPet, an escaped slash in the petId", gets, "204", "GET /v1/pets/1%2F2", "500 internal_server_error" + simulated + going},
		{"getPet, not a dot", gets, "204", "GET /v1/pets/.", noPath, "GET /v1/pets/%2e%2e", noPath},
		{"cleared by reset", fault + "code=503", "204", "POST /__admin/reset", "204", "GET /v1/pets", "200 []"},
	})
	const neither = "400 invalid_parameter: code or delay must be given, in the query: /__admin/fault?code=503"
	const times, skips, operations = "an integer from 1 to 9223372036854775807", "an integer from 0 to 9223372036854775807", "listPets, createPet or getPet"
	var rules [][]string
	for _, c := range [][3]string{ // what is refused changes nothing
		{"refused: no key", "code=500\nAuthorization", noKey},
		{"refused: no parameters", "", neither},
		{"refused: neither code nor delay", "times=1&operation=getPet", neither},
		{"refused: code 600", "code=600", badParameter("code", "600", codes)},
		{"refused: delay 31", "code=500&delay=31", badParameter("delay", "31", delays)},
		{"refused: times 0", "code=500&times=0", badParameter("times", "0", times)},
		{"refused: times empty", "code=500&times=", badParameter("times", "empty", times)},
		{"refused: skip -1", "code=500&skip=-1", badParameter("skip", "-1", skips)},
		{"refused: skip x", "code=500&skip=x", badParameter("skip", "x", skips)},
		{"refused: skip empty", "code=500&skip", badParameter("skip", "empty", skips)},
		{"refused: skip 1.0", "code=500&skip=1.0", badParameter("skip", "1.0", skips)},
		{"refused: skip over int64", "code=500&skip=9223372036854775808", badParameter("skip", "9223372036854775808", skips)},
		{"refused: skip twice", "code=500&skip=1&skip=1", badParameter("skip", "given 2 times", "given once")},
		{"refused: skip alone", "skip=1&times=1", neither},
		{"refused: operation unknown", "code=500&operation=listOrders", badParameter("operation", "listOrders", operations)},
		{"refused: operation empty", "code=500&operation=", badParameter("operation", "empty", operations)},
		{"refused: code twice", "code=500&code=500", badParameter("code", "given 2 times", "given once")},
		{"refused: operation twice", "code=500&operation=getPet&operation=", badParameter("operation", "given 2 times", "given once")},
		{"refused: unknown parameter", "code=500&time=1", badParameter("the parameter", "time", "code, delay, retry-after, skip, times or operation")},
		{"refused: several things, told in one order", "zz=1&times=0&aa=1&code=1&code=2&delay=x", badParameter("the parameter", "aa", "code, delay, retry-after, skip, times or operation")},
		{"refused: several values, told in one order", "times=0&times=1&code=1&code=2&delay=x", badParameter("code", "given 2 times", "given once")},
		{"refused: malformed query", "code=500&%", `400 invalid_parameter: the query is malformed: invalid URL escape "%"`},
	} {
		rules = append(rules, []string{c[0], fault + "code=503", "204", strings.TrimSuffix(fault+c[1], "?"), c[2], "GET /v1/pets", down})
	}
	s.rulesOnce(t, rules)
	t.Run("hangup", func(t *testing.T) {
		s.play(t, "POST /__admin/reset", "204", fault+"code=hangup&times=1", "204")
		if got := rest(t, s.dial(t, "GET /v1/pets HTTP/1.1\n"+withKey+"\n")); got != "" {
			t.Errorf("a hangup answered %q", got)
		}
		s.play(t, "GET /v1/pets", "200 []")
	})
	// 100 lists at once, and other operations among them.
	for _, c := range []struct {
		name, parameters string
		want, later      int64 // how many of them are hit, and of the next 20 lists
	}{
		{"times 10 of 100 at once", "times=10", 10, 0},
		{"skip 30 and times 10 of 100 at once", "skip=30&times=10", 10, 0},
		{"skip 95 and times 10 of 100 at once", "skip=95&times=10", 5, 5},
		{"skip 60 of 100 at once", "skip=60", 40, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.play(t, "POST /__admin/reset", "204", fault+"code=503&operation=listPets&"+c.parameters, "204")
			var hits atomic.Int64
			ask := func(request string) {
				switch got := s.call(t, request); got[:3] {
				case "503":
					hits.Add(1)
				case "200":
				default:
					t.Error(got)
				}
			}
			together(100, func(i int) {
				if i%2 == 0 {
					s.call(t, "GET /v1/pets/1")
				}
				ask([]string{"GET /v1/pets", "HEAD /v1/pets"}[i%2])
			})
			if hits.Load() != c.want {
				t.Errorf("%s hit %d of 100, want %d", c.parameters, hits.Load(), c.want)
			}
			for range 20 {
				ask("GET /v1/pets")
			}
			if later := hits.Load() - c.want; later != c.later {
				t.Errorf("%s hit %d of the next 20, want %d", c.parameters, later, c.later)
			}
		})
	}
}

// A delayed request holds nobody up, ends with its client, and is answered at
// once when the service stops.
func TestDelay(t *testing.T) {
	const long = "HTTP/1.1\n" + withKey + "Prefer: delay=30\n"
	const list, post = "GET /v1/pets " + long + "\n", "POST /v1/pets " + long + "Content-Length: 27\n\n" + pet
	for name, send := range map[string]string{
		"list whose client leaves":           list,
		"create whose client leaves":         post,
		"chunked create whose client leaves": "POST /v1/pets " + long + "Transfer-Encoding: chunked\n\n1b\n" + pet + "\n0\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			c := s.dial(t, send)
			waiting(t, 1)
			c.Close()
			waiting(t, 0)
			s.check(t, "GET /v1/pets", "200 []")
		})
	}
	t.Run("the Date is that of the answer", func(t *testing.T) {
		due := time.Now().Add(1100 * time.Millisecond)
		resp := start(t).do(t, "GET /v1/pets\nPrefer: delay=1.1")
		resp.Body.Close()
		if got, err := http.ParseTime(resp.Header.Get("Date")); err != nil || got.Before(due.Truncate(time.Second)) {
			t.Errorf("Date %v %v, want %v or later", got, err, due)
		}
	})
	t.Run("answered when the service stops", func(t *testing.T) {
		s := start(t)
		listing, creating := s.dial(t, list), s.dial(t, post)
		waiting(t, 2)
		s.check(t, "GET /v1/pets", "200 []", "GET /v1/pets\nPrefer: code=500", "500 internal_server_error"+simulated+"\nPreference-Applied: code=500")
		s.stop()
		got := strings.Replace(rest(t, creating), "Connection: close\n", "", 1) // net/http may or may not know yet that it ends
		if want := "HTTP/1.1 201 Created\nLocation: /v1/pets/1\nPreference-Applied: delay=30\n\n" + onePet + "\n"; got != want {
			t.Errorf("the delayed create got %q\nwant %q", got, want)
		}
		if got := rest(t, listing); !strings.HasPrefix(got, "HTTP/1.1 200 OK\nPreference-Applied: delay=30\n") {
			t.Errorf("the delayed list got %q", got)
		}
	})
}

// -latency delays all that is under /v1, with the key and its body, and nothing
// else.
func TestLatency(t *testing.T) {
	s := start(t, "-latency", "30s")
	s.rules(t, [][]string{
		{"not health", "GET /healthz", `200 {"status":"ok"}`},
		{"not reset", "POST /__admin/reset", "204"},
		{"not other paths", "GET /v1x", noPath},
		{"not without the key", "GET /v1/pets\nAuthorization", noKey},
		{"not before the body has come", "POST /v1/pets\n\n" + strings.Repeat(" ", maxBody+1), tooLong},
	})
	t.Run("a create whose client leaves is not done", func(t *testing.T) {
		a := quietAPI(state{})
		stopping := make(chan struct{})
		a.latency, a.stopping = time.Hour, stopping
		s := listen(t, a, nil)
		c := s.dial(t, "POST /v1/pets HTTP/1.1\n"+withKey+"Content-Length: 27\n\n"+pet)
		waiting(t, 1)
		c.Close()
		waiting(t, 0)
		close(stopping) // ends every wait
		s.play(t, "GET /v1/pets", "200 []")
	})
	for _, c := range [][3]string{
		{"list", "GET /v1/pets HTTP/1.1\n" + withKey + "\n", "HTTP/1.1 200 OK\n"},
		{"create", "POST /v1/pets HTTP/1.1\n" + withKey + "Content-Length: 27\n\n" + pet, "HTTP/1.1 201 Created\n"},
	} {
		t.Run(c[0], func(t *testing.T) {
			s := start(t, "-latency", "30s")
			conn := s.dial(t, c[1])
			waiting(t, 1)
			s.stop()
			if got := rest(t, conn); !strings.HasPrefix(got, c[2]) {
				t.Errorf("got %q, want %q", got, c[2])
			}
		})
	}
}

// README: Errors.

// What is no request of the contract: every answer is an Error, whatever the
// path and the method.
func TestErrors(t *testing.T) {
	limit := func(given string) string { return badParameter("limit", given, "an integer from 1 to 100") }
	status := func(given string) string { return badParameter("status", given, "available, pending or sold") }
	const malformed = "400 invalid_parameter: the query is malformed: invalid "
	startKey(t, "12345678").rules(t, [][]string{{"petId that is the key, a number", "GET /v1/pets/12345678", "404 not_found: there is no pet <API_KEY>" + going}})
	startKey(t, "%zzabcdef").rules(t, [][]string{{"a key like a malformed escape", "GET /v1/pets?%zzabcdef", "400 invalid_parameter: the query is malformed: it has a bad escape"}})
	start(t).rules(t, [][]string{
		{"limit 0", "GET /v1/pets?limit=0", limit("0")},
		{"limit 101", "GET /v1/pets?limit=101", limit("101")},
		{"limit -1", "GET /v1/pets?limit=-1", limit("-1")},
		{"limit 1.0", "GET /v1/pets?limit=1.0", limit("1.0")},
		{"limit 1e1", "GET /v1/pets?limit=1e1", limit("1e1")},
		{"limit +1", "GET /v1/pets?limit=%2B1", limit("+1")},
		{"limit 01", "GET /v1/pets?limit=01", limit("01")},
		{"limit -01", "GET /v1/pets?limit=-01", limit("-01")},
		{"limit in words", "GET /v1/pets?limit=ten", limit("ten")},
		{"limit empty", "GET /v1/pets?limit=", limit("empty")},
		{"limit without a value", "GET /v1/pets?limit", limit("empty")},
		{"limit over int64", "GET /v1/pets?limit=99999999999999999999", limit("99999999999999999999")},
		{"limit shortened", "GET /v1/pets?limit=" + strings.Repeat("ä", 41), limit(strings.Repeat("ä", 40) + "…")},
		{"limit just not shortened", "GET /v1/pets?limit=" + strings.Repeat("ä", 40), limit(strings.Repeat("ä", 40))},
		{"limit with the key", "GET /v1/pets?limit=a" + testKey, limit("a<API_KEY>")},
		{"limit with the key at the cut", "GET /v1/pets?limit=" + strings.Repeat("a", 39) + testKey, limit(strings.Repeat("a", 39) + "<…")},
		{"limit with the escaped key", "GET /v1/pets?limit=%2563orrect-horse", limit("<API_KEY>")},
		{"petId that is the key", "GET /v1/pets/" + testKey, badParameter("petId", "<API_KEY>", "an integer") + going},
		{"limit twice", "GET /v1/pets?limit=1&limit=1", badParameter("limit", "given 2 times", "given once")},
		{"status in capitals", "GET /v1/pets?status=Sold", status("Sold")},
		{"status empty", "GET /v1/pets?status=", status("empty")},
		{"status list", "GET /v1/pets?status=sold,pending", status("sold,pending")},
		{"status three times", "GET /v1/pets?status=sold&status=sold&status=", badParameter("status", "given 3 times", "given once")},
		{"after in words", "GET /v1/pets?after=x", badParameter("after", "x", "an integer")},
		{"after twice", "GET /v1/pets?after=1&after=2", badParameter("after", "given 2 times", "given once")},
		{"malformed query, escape", "GET /v1/pets?x=%zz", malformed + `URL escape "%zz"`},
		{"malformed query, semicolon", "GET /v1/pets?x=1;limit=5", malformed + "semicolon separator in query"},
		{"malformed query of one pet", "GET /v1/pets/1?%", malformed + `URL escape "%"` + going},

		{"no such path, without v1", "GET /pets", noPath},
		{"no such path, v1", "GET /v1", noPath},
		{"no such path, POST v1", "POST /v1", noPath},
		{"no such path, v1 and a slash", "GET /v1/", noPath},
		{"no such path, v1x", "GET /v1x", noPath},
		{"slash at the end of pets", "GET /v1/pets/", noPath},
		{"slash at the end of a pet", "GET /v1/pets/1/", noPath},
		{"no such path, behind a pet", "GET /v1/pets/1/2", noPath},
		{"unclean path, two slashes", "GET /v1//pets", noPath},
		{"unclean path, one dot", "GET /v1/./pets", noPath},
		{"unclean path, two dots", "GET /v1/../v1/pets", noPath},
		{"unclean path, escaped dots", "GET /v1/pets/%2e%2e", noPath},
		{"unclean path, escaped slash", "GET /v1/pets%2F", noPath},
		{"no such path before a malformed query", "DELETE /v1/nothing?%zz", noPath},
		{"no such path, store", "GET /v1/store", noPath},

		{"no such method, PUT pets", "PUT /v1/pets", only("GET, HEAD, POST")},
		{"no such method, lower case", "get /v1/pets", only("GET, HEAD, POST")},
		{"no such method, DELETE a pet", "DELETE /v1/pets/1", only("GET, HEAD")},
		{"no such method before a bad petId", "TRACE /v1/pets/x", only("GET, HEAD")},
		{"no such method, POST orders", "POST /v1/store/orders", only("GET, HEAD")},
		{"no such method, body", "PATCH /v1/pets/1\n\n{}", only("GET, HEAD")},
	})
}

// Of several things that are wrong, the first in this order is told: key, body
// (size, framing), fault, path, method, query, Content-Type, content of the body.
func TestErrorOrder(t *testing.T) {
	const (
		fault  = "\nPrefer: code=418"
		teapot = "418 im_a_teapot" + simulated + "\nPreference-Applied: code=418"
		badCT  = "\nContent-Type: text/plain\n\n{}"
		query  = `400 invalid_parameter: the query is malformed: invalid URL escape "%zz"`
	)
	long := strings.Repeat(" ", maxBody+1)
	start(t).rules(t, [][]string{
		{"key before body", "POST /v1/pets\nAuthorization\n\n" + long, strings.Replace(noKey, "\n", "\nConnection: close\n", 1)},
		{"body before fault", "POST /v1/pets" + fault + "\n\n" + long, tooLong},
		{"body before bad Prefer", "POST /v1/pets\nPrefer: code=1\n\n" + long, tooLong},
		{"body of a getPet, without its headers", "GET /v1/pets/1\n\n" + long, tooLong},
		{"fault before path", "GET /v1/nothing/" + fault, teapot},
		{"path before method", "PUT /v1/nothing", noPath},
		{"method before query", "PUT /v1/pets?%zz", only("GET, HEAD, POST")},
		{"query before Content-Type", "POST /v1/pets?%zz" + badCT, query},
		{"query before Content-Type of a reset", "POST /__admin/reset?%zz" + badCT, query},
		{"Content-Type before content", "POST /v1/pets" + badCT, notJSONType},
		{"Content-Type before content of a reset", "POST /__admin/reset" + badCT, notJSONType},
	})
}

// A create that is refused stores nothing and uses no id.
func TestBadCreates(t *testing.T) {
	const (
		aString  = "; it must be a string of valid Unicode"
		anInt    = "; it must be an integer"
		aStatus  = "; it must be available, pending or sold"
		anObject = "; it must be a JSON object"
		twice    = " is given twice; it must be given once"
		notUTF8  = " is not UTF-8; it must be UTF-8"
		notJSON  = "the body is not JSON: "
	)
	var rules [][]string
	for _, c := range [][3]string{
		{"no body", ``, notJSON + "unexpected end of JSON input"},
		{"object without end", `{"name":"a","categoryId":1`, notJSON + "unexpected end of JSON input"},
		{"trailing letter", pet + `x`, notJSON + "invalid character 'x' after top-level value"},
		{"trailing object", pet + `{}`, notJSON + "invalid character '{' after top-level value"},
		{"categoryId 01", `{"name":"a","categoryId":01}`, notJSON + "invalid character '1' after object key:value pair"},
		{"byte order mark", "\ufeff{}", notJSON + "invalid character 'ï' looking for beginning of value"},
		{"array", `[` + pet + `]`, `the pet is [` + pet + `]` + anObject},
		{"null", ` null `, `the pet is null` + anObject},
		{"string", `"name"`, `the pet is "name"` + anObject},
		{"empty object", `{}`, "name is missing" + aString},
		{"empty object with spaces", ` { } `, "name is missing" + aString},
		{"name in capitals", `{"Name":"a","NAME":"a","categoryId":1}`, "name is missing" + aString},
		{"name null", `{"name":null,"categoryId":1}`, "name is null" + aString},
		{"name number", `{"name":1,"categoryId":1}`, "name is 1" + aString},
		{"name array", `{"name":["a"],"categoryId":1}`, `name is ["a"]` + aString},
		{"name with the key", `{"name":["` + testKey + `"],"categoryId":1}`, `name is ["<API_KEY>"]` + aString},
		{"name with half a surrogate", `{"name":"\ud800","categoryId":1}`, `name is "\ud800"` + aString},
		{"name with half a surrogate and an escape", `{"name":"\ud800\n","categoryId":1}`, `name is "\ud800\n"` + aString},
		{"name with surrogates swapped", `{"name":"\uDC00\uD800","categoryId":1}`, `name is "\uDC00\uD800"` + aString},
		{"name not UTF-8", "{\"name\":\"\xff\",\"categoryId\":1}", "name" + notUTF8},
		{"unknown member not UTF-8", "{\"name\":\"a\",\"categoryId\":1,\"x\":[\"\xed\xa0\x80\"]}", "x" + notUTF8},
		{"member not UTF-8", "{\"name\":\"a\",\"categoryId\":1,\"\xff\":1}", "\ufffd" + notUTF8},
		{"member not UTF-8 with an escape", "{\"name\":\"a\",\"categoryId\":1,\"\xff\\n\":1}", "\ufffd\n" + notUTF8},
		{"member that is the key, not UTF-8", "{\"" + testKey + "\":\"\xff\"}", "<API_KEY>" + notUTF8},
		{"long member not UTF-8", "{\"" + strings.Repeat("m", 41) + "\":\"\xff\"}", strings.Repeat("m", 40) + "…" + notUTF8},
		{"name twice", `{"name":"a","name":"a","categoryId":1}`, "name" + twice},
		{"name twice, once escaped", `{"name":"a","n\u0061me":"a","categoryId":1}`, "name" + twice},
		{"categoryId missing", `{"name":"a"}`, "categoryId is missing" + anInt},
		{"categoryId in lower case", `{"name":"a","categoryid":1}`, "categoryId is missing" + anInt},
		{"categoryId null", `{"name":"a","categoryId":null}`, "categoryId is null" + anInt},
		{"categoryId string", `{"name":"a","categoryId":"1"}`, `categoryId is "1"` + anInt},
		{"categoryId 1.0", `{"name":"a","categoryId":1.0}`, "categoryId is 1.0" + anInt},
		{"categoryId 1e3", `{"name":"a","categoryId":1e3}`, "categoryId is 1e3" + anInt},
		{"categoryId over int64", `{"name":"a","categoryId":9223372036854775808}`, "categoryId is 9223372036854775808; it must be " + paramInt64},
		{"categoryId under int64", `{"name":"a","categoryId":-9223372036854775809}`, "categoryId is -9223372036854775809; it must be " + paramInt64},
		{"categoryId true", `{"name":"a","categoryId":true}`, "categoryId is true" + anInt},
		{"categoryId twice", `{"name":"a","categoryId":1,"categoryId":1}`, "categoryId" + twice},
		{"status unknown", `{"name":"a","categoryId":1,"status":"lost"}`, "status is lost" + aStatus},
		{"status empty", `{"name":"a","categoryId":1,"status":""}`, "status is empty" + aStatus},
		{"status null", `{"name":"a","categoryId":1,"status":null}`, "status is null" + aStatus},
		{"status array", `{"name":"a","categoryId":1,"status":["sold"]}`, `status is ["sold"]` + aStatus},
		{"status twice", `{"name":"a","categoryId":1,"status":"sold","status":null}`, "status" + twice},
	} {
		rules = append(rules, []string{c[0], "POST /v1/pets\n\n" + c[1], "400 invalid_body: " + c[2]})
	}
	rules = append(rules, [][]string{
		{"Content-Type text", "POST /v1/pets\nContent-Type: text/plain\n\n{}", notJSONType},
		{"Content-Type twice", "POST /v1/pets\nContent-Type: application/json\nContent-Type: application/json\n\n" + pet, notJSONType},
		{"Content-Type twice, the second one bad", "POST /v1/pets\nContent-Type: application/json; charset=utf-8\nContent-Type: text/plain\n\n" + pet, notJSONType},
		{"Content-Encoding gzip", "POST /v1/pets\nContent-Encoding: gzip\n\n" + pet, notJSONType},
		{"Content-Encoding identity and gzip", "POST /v1/pets\nContent-Encoding: identity\nContent-Encoding: gzip\n\n" + pet, notJSONType},
		{"Content-Type form", "POST /v1/pets\nContent-Type: application/x-www-form-urlencoded\n\n{}", notJSONType},
		{"charset latin1", "POST /v1/pets\nContent-Type: application/json; charset=latin1\n\n{}", notJSONType},
		{"charset without a value", "POST /v1/pets\nContent-Type: application/json; charset\n\n{}", notJSONType},
		{"spaces over 64 KiB", "POST /v1/pets\n\n" + strings.Repeat(" ", maxBody+1), tooLong},
		{"pet over 64 KiB", "POST /v1/pets\n\n" + `{"name":"` + strings.Repeat("a", maxBody) + `","categoryId":1}`, tooLong},
	}...)
	for i := range rules {
		rules[i] = append(rules[i], "GET /v1/pets", "200 []", create, created(1))
	}
	start(t).rules(t, rules)
}

// Peers that speak unusual, broken or half HTTP get an answer that is JSON,
// or a closed connection.
func TestRawHTTP(t *testing.T) {
	s := start(t)
	const (
		closed  = "Connection: close\n\n"
		get     = "GET /v1/pets HTTP/1.1\n" + withKey
		post    = "POST /v1/pets HTTP/1.1\n" + withKey
		list    = "HTTP/1.1 200 OK\n" + closed + "[]\n"
		made    = "HTTP/1.1 201 Created\nLocation: /v1/pets/1\n" + closed + onePet + "\n"
		absent  = "HTTP/1.1 404 Not Found\n" + closed + `{"code":"not_found","message":"no such path; the pets are at /v1/pets, without a slash at the end","status":404}` + "\n"
		locked  = "HTTP/1.1 401 Unauthorized\n" + closed + `{"code":"unauthorized","message":"send the API key in one header: Authorization: Bearer <API_KEY>","status":401}` + "\n"
		tooBig  = "HTTP/1.1 413 Request Entity Too Large\n" + closed + `{"code":"request_entity_too_large","message":"the body is over 65536 bytes","status":413}` + "\n"
		badBody = "HTTP/1.1 400 Bad Request\n" + closed + `{"code":"invalid_body","message":"the body is cut short or badly chunked","status":400}` + "\n"
		tooLong = "HTTP/1.1 431 Request Header Fields Too Large\n" + closed + `{"code":"request_header_fields_too_large","message":"431 Request Header Fields Too Large","status":431}` + "\n"
		star    = "HTTP/1.1 400 Bad Request\n" + closed + `{"code":"bad_request","message":"the target * is for OPTIONS, and this service speaks HTTP/1.1","status":400}` + "\n"
		proxy   = "HTTP/1.1 501 Not Implemented\n" + closed + `{"code":"not_implemented","message":"this service is no proxy","status":501}` + "\n"
		noMore  = "HTTP/1.1 417 Expectation Failed\n" + closed + `{"code":"expectation_failed","message":"Expectation Failed","status":417}` + "\n"
	)
	for _, c := range []struct{ name, send, want string }{
		{"pipelining", get + "\nGET /x HTTP/1.1\n" + withKey + closed, "HTTP/1.1 200 OK\n\n[]\n" + absent},
		{"HTTP 1.0", "GET /v1/pets HTTP/1.0\n" + withKey + "\n", "HTTP/1.0 200 OK\n\n[]\n"},
		{"absolute form", "GET http://elsewhere/v1/pets HTTP/1.1\n" + withKey + closed, list},
		{"absolute form without a path", "GET http://elsewhere HTTP/1.1\n" + withKey + closed, absent},
		{"authority form", "CONNECT elsewhere:80 HTTP/1.1\n" + withKey + closed, proxy},
		{"path that begins with two slashes", "GET //v1/pets HTTP/1.1\n" + withKey + closed, absent},
		{"asterisk form", "GET * HTTP/1.1\n" + withKey + closed, star},
		{"the preface of HTTP 2", "PRI * HTTP/2.0\n\nSM\n\n", star},
		{"chunked", post + "Transfer-Encoding: chunked\n" + closed + "5\n" + pet[:5] + "\n16\n" + pet[5:] + "\n0\n\n", made},
		{"64 KiB in chunks", post + "Transfer-Encoding: chunked\n" + closed + "10000\n" + pet + strings.Repeat(" ", maxBody-len(pet)) + "\n0\n\n", made},
		{"64 KiB and a byte in chunks", post + "Transfer-Encoding: chunked\n" + closed + "10001\n" + pet + strings.Repeat(" ", maxBody+1-len(pet)) + "\n0\n\n", tooBig},
		{"a body of no chunks", post + "Transfer-Encoding: chunked\n" + closed + "0\n\n", "HTTP/1.1 400 Bad Request\n" + closed + `{"code":"invalid_body","message":"the body is not JSON: unexpected end of JSON input","status":400}` + "\n"},
		{"a GET with a body keeps its connection", get + "Content-Length: 2\n\n{}" + get + closed, "HTTP/1.1 200 OK\n\n[]\n" + list},
		{"CONNECT to a path", "CONNECT /v1/pets HTTP/1.1\n" + withKey + closed, "HTTP/1.1 405 Method Not Allowed\nAllow: GET, HEAD, POST\n" + closed + `{"code":"method_not_allowed","message":"this path allows GET, HEAD, POST only","status":405}` + "\n"},
		{"headers of 64 KiB", get + "X: " + strings.Repeat("x", 64<<10-200) + "\n" + closed, list},
		{"headers over 64 KiB", get + "X: " + strings.Repeat("x", 64<<10) + "\n\n", tooLong},
		{"expect", post + "Expect: 100-continue\nContent-Length: 27\n" + closed + pet, "HTTP/1.1 100 Continue\n\n" + made},
		{"expect without a key", "POST /v1/pets HTTP/1.1\nHost: x\nExpect: 100-continue\nContent-Length: 27\n\n", locked},
		{"no key, no body", "POST /v1/pets HTTP/1.1\nHost: x\nContent-Length: 27\n\n", locked},
		{"length too large, no body", post + "Content-Length: 65537\n\n", tooBig},
		{"chunks without end", post + "Transfer-Encoding: chunked\n\n10001\n" + strings.Repeat(" ", 65537), tooBig},
		{"bad chunk", post + "Transfer-Encoding: chunked\n\nx\n", badBody},
		{"body cut short", post + "Content-Length: 28\n\n" + pet + leave, badBody},
		{"not HTTP", "hello\n\n", badRequest},
		{"no Host", "GET /v1/pets HTTP/1.1\n\n", "HTTP/1.1 400 Bad Request\n" + closed + `{"code":"bad_request","message":"400 Bad Request: missing required Host header","status":400}` + "\n"},
		{"control characters", "GET /v1/\x01 HTTP/1.1\n" + withKey + "\n", badRequest},
		{"HTTP 3", "GET /v1/pets HTTP/3.0\n" + withKey + "\n", "HTTP/1.1 505 HTTP Version Not Supported\n" + closed + `{"code":"http_version_not_supported","message":"505 HTTP Version Not Supported: unsupported protocol version","status":505}` + "\n"},
		{"transfer coding", post + "Transfer-Encoding: gzip\n\n", "HTTP/1.1 501 Not Implemented\n" + closed + `{"code":"not_implemented","message":"Unsupported transfer encoding","status":501}` + "\n"},
		{"expectation", get + "Expect: more\n\n", noMore},
		{"expectation in HTTP 1.0", "GET /v1/pets HTTP/1.0\nExpect: more\n\n", noMore},
		{"large headers", get + "X: " + strings.Repeat("x", 70<<10) + "\n\n", tooLong},
		{"gone", "POST /v1/pets HTTP/1.1\nHo" + leave, badRequest},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.play(t, "POST /__admin/reset", "204")
			if got := rest(t, s.dial(t, c.send)); got != c.want {
				t.Errorf("got %q\nwant %q", got, c.want)
			}
			pets := "200 []"
			if strings.HasSuffix(c.want, made) {
				pets = "200 [" + onePet + "]"
			}
			s.play(t, "GET /v1/pets", pets)
		})
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

// A peer that takes too long gets 408 once its headers are there, and an
// error of net/http or nothing before.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	t.Run("limits", func(t *testing.T) {
		srv := newServer(quietAPI(state{}))
		got := []time.Duration{srv.ReadHeaderTimeout, srv.ReadTimeout, srv.WriteTimeout, srv.IdleTimeout, drainTimeout, linger}
		if want := []time.Duration{5 * time.Second, 15 * time.Second, time.Minute, 2 * time.Minute, 10 * time.Second, time.Second / 2}; !slices.Equal(got, want) {
			t.Errorf("time limits for headers, request, response, idle, stop, unread body: %v, want %v", got, want)
		}
	})
	quick := listen(t, quietAPI(state{}), func(srv *http.Server) { srv.ReadHeaderTimeout = 500 * time.Millisecond })
	for _, c := range []struct {
		name       string
		s          *service
		send, want string
	}{
		{"no request", quick, "", ""},
		{"half the headers", quick, "GET /v1/pets HTTP/1.1\nHost: x\nX", badRequest},
		{"half the body", impatient(t, state{}), late, "HTTP/1.1 408 Request Timeout\nConnection: close\n\n" + `{"code":"request_timeout","message":"the body did not come in time","status":408}` + "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := rest(t, c.s.dial(t, c.send)); got != c.want {
				t.Errorf("got %q\nwant %q", got, c.want)
			}
		})
	}
	// A delay is no fault of the peer's, and counts for none of its limits.
	a := quietAPI(state{})
	a.stopping, a.latency = nil, 600*time.Millisecond
	s := listen(t, a, func(srv *http.Server) {
		srv.ReadTimeout = 500 * time.Millisecond
		srv.WriteTimeout = 500 * time.Millisecond
	})
	s.rules(t, [][]string{
		{"latency", "GET /v1/pets", "200 []"},
		{"delay", "GET /v1/pets\nPrefer: delay=0.6", "200 []\nPreference-Applied: delay=0.6"},
		{"delay of a create", "POST /v1/pets\nPrefer: delay=0.6\n\n" + pet, created(1) + "\nPreference-Applied: delay=0.6"},
	})
}

// A body that nobody wants does not keep the connection until the time limit
// for the request, which this service does not have.
func TestLinger(t *testing.T) {
	s := listen(t, quietAPI(state{}), func(srv *http.Server) { srv.ReadTimeout = 0 })
	for name, send := range map[string]string{
		"no key":         "POST /v1/pets HTTP/1.1\nHost: x\nContent-Length: 27\n\n",
		"preflight":      "OPTIONS /v1/pets HTTP/1.1\nHost: x\nContent-Length: 27\n\n",
		"no such method": "POST /healthz HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n5\n",
	} {
		t.Run(name, func(t *testing.T) {
			if got := rest(t, s.dial(t, send)); !strings.HasPrefix(got, "HTTP/1.1 40") && !strings.HasPrefix(got, "HTTP/1.1 204") {
				t.Errorf("%q\n got %q", send, got)
			}
		})
	}
}

// A client that sends all of a long body before it reads gets to see the
// answer, even if it wants the connection closed.
func TestLongBody(t *testing.T) {
	s := start(t)
	for _, c := range [][3]string{
		{"too long", "POST /v1/pets HTTP/1.1\n" + withKey, "HTTP/1.1 413 "},
		{"no key", "POST /v1/pets HTTP/1.1\nHost: x\n", "HTTP/1.1 401 "},
		{"no such method", "POST /healthz HTTP/1.1\nHost: x\n", "HTTP/1.1 405 "},
	} {
		body := strings.Repeat("x", 3000000)
		for name, rest := range map[string]string{"Content-Length": "Content-Length: 3000000\n\n" + body, "chunked": "Transfer-Encoding: chunked\n\n2dc6c0\n" + body + "\n0\n\n"} {
			t.Run(c[0]+", "+name, func(t *testing.T) {
				send := strings.ReplaceAll(c[1]+"Connection: close\n"+rest, "\n", "\r\n")
				together(40, func(int) {
					conn := s.dial(t, "")
					if _, err := io.WriteString(conn, send); err != nil {
						t.Error(err)
					}
					if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || !strings.HasPrefix("HTTP/1.1 "+resp.Status, c[2]) {
						t.Errorf("got %v %v, want %s", resp, err, c[2])
					} else if _, err := io.ReadAll(resp.Body); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// A body that nobody wants is answered while it still comes.
func TestEndlessBody(t *testing.T) {
	s := start(t)
	for name, head := range map[string]string{"no key": "POST /v1/pets HTTP/1.1\nHost: x\n", "too long": "POST /v1/pets HTTP/1.1\n" + withKey, "preflight": "OPTIONS /v1/pets HTTP/1.1\nHost: x\n"} {
		t.Run(name, func(t *testing.T) {
			conn := s.dial(t, head+"Content-Length: 1099511627776\n\n")
			var answered atomic.Bool
			go func() {
				conn.Read(make([]byte, 1))
				answered.Store(true)
			}()
			for sent := 0; !answered.Load(); sent++ {
				if _, err := conn.Write(make([]byte, 1<<20)); err != nil || sent > 1<<10 {
					t.Fatalf("no answer after %d MiB: %v", sent, err)
				}
			}
		})
	}
}

// A header that is made to be read again and again costs no more than its length.
func TestLongPrefer(t *testing.T) {
	s := start(t)
	together(8, func(int) {
		s.play(t, "GET /v1/pets\nPrefer: \""+strings.Repeat(`\"`, 30000), "200 []")
	})
}

// A bug is a 500 with its stack in the log, and no end of the service.
func TestPanic(t *testing.T) {
	log := new(lockedBuffer)
	s := listen(t, &api{key: testKey, log: slog.New(slog.NewTextHandler(log, nil))}, nil) // no store
	const want = "500 internal_server_error: the service has a bug; its log tells where"
	s.check(t, "GET /v1/pets", want, "GET /v1/pets", want)
	for _, part := range []string{"level=ERROR msg=panic value=\"runtime error: invalid memory address", "listPets", `path=/v1/pets status=500`} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log lacks %s:\n%.3000s", part, log)
		}
	}
}

// What net/http has to say of itself is a line of the log.
func TestErrorLog(t *testing.T) {
	log := new(lockedBuffer)
	newServer(&api{log: slog.New(slog.NewTextHandler(log, nil))}).ErrorLog.Print("http: Accept error")
	if !strings.HasSuffix(log.String(), ` level=WARN msg="http: Accept error"`+"\n") {
		t.Errorf("the log is %q", log)
	}
}

// README: the limits.

// A full store answers 507 to creates, and all else as before.
func TestFullStore(t *testing.T) {
	s := listen(t, quietAPI(state{size: maxSize - recordSize - int64(len(onePet))}), nil)
	s.rules(t, [][]string{
		{"a byte too many", "POST /v1/pets\n\n" + `{"name":"ab","categoryId":1}`, fullStore, create, created(1)},
		{"reading goes on", create, created(1), create, fullStore, "GET /v1/pets", "200 [" + onePet + "]", "GET /v1/pets/1", "200 " + onePet + going, "GET /v1/pets/2", noPet(2)},
		{"reset", create, created(1), create, fullStore, "POST /__admin/reset", "204", "GET /v1/pets", "200 []", create, created(1)},
	})
}

// A seed that the store cannot hold is refused while it is read, and so is a
// pet that is too large for a seed.
func TestEndlessSeed(t *testing.T) {
	fill := strings.Repeat("x", 60<<10)
	t.Parallel()
	for _, c := range []struct {
		name, begin string
		pet         func(i int) string
		want        string // a regular expression
		at, over    int    // what is taken of it, in MiB
	}{
		{"pets with ids", "[", func(i int) string { return fmt.Sprintf(`{"id":%d,"name":"%s","categoryId":1},`, i+1, fill) }, `: pet \d+: too large for the store$`, 255, 262},
		{"pets without ids", "[", func(int) string { return `{"name":"` + fill + `","categoryId":1},` }, `: pet \d+: too large for the store$`, 255, 262},
		{"small pets without ids", "[", func(int) string { return strings.Repeat(`{"name":"","categoryId":1},`, 2000) }, `: pet \d+: too large for the store$`, 68, 72},
		{"a pet without end", `[{"name":"`, func(int) string { return fill }, `: pet 1: more than 4194304 bytes for one pet$`, 3, 9},
		{"spaces without end", "[" + pet + ",", func(int) string { return strings.Repeat(" ", len(fill)) }, `: pet 2: more than 4194304 bytes for one pet$`, 3, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			fifo := mkfifo(t)
			wrote := make(chan int, 1)
			go func() {
				f, err := os.OpenFile(fifo, os.O_WRONLY, 0)
				if err != nil {
					return
				}
				defer f.Close()
				n, err := io.WriteString(f, c.begin)
				for i := 0; err == nil && n < 1<<30; i++ {
					var more int
					more, err = io.WriteString(f, c.pet(i))
					n += more
				}
				wrote <- n >> 20
			}()
			var stdout, stderr lockedBuffer
			cmd := command(t, build(t), "-seed", fifo)
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := within(t, "the end of the service", cmd.Run)
			line := regexp.MustCompile(`msg="([^"]*)"`).FindStringSubmatch(stderr.String())
			if err == nil || err.Error() != "exit status 1" || stdout.String() != "" || line == nil || !regexp.MustCompile(c.want).MatchString(line[1]) {
				t.Errorf("%v, stdout %q, stderr %q", err, &stdout, &stderr)
			}
			if n := within(t, "the end of writing", func() int { return <-wrote }); n < c.at || n > c.over {
				t.Errorf("it took %d MiB", n)
			}
		})
	}
}

// What a seed pet takes in the file beside its members is not kept, and what
// follows the array is seen however far behind it stands.
func TestSeedReader(t *testing.T) {
	junk := strings.Repeat("x", 1<<20)
	spaces := strings.Repeat(" ", 5<<20)
	t.Run("junk is not kept", func(t *testing.T) {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		s, err := readSeed(strings.NewReader("[" + strings.Repeat(`{"name":"Rex","categoryId":1,"status":"sold","junk":"`+junk+`"},`, 20) + pet + "]"))
		if err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if n := int64(after.HeapAlloc) - int64(before.HeapAlloc); n > 8<<20 || len(s.pets[""]) != 21 {
			t.Errorf("%d pets take %d bytes", len(s.pets[""]), n)
		}
	})
	const long = "more than 4194304 bytes for one pet"
	for _, c := range [][3]string{
		{"spaces before the array", spaces + "[]", long},
		{"spaces before a pet", "[" + spaces + pet + "]", "behind pet 0: " + long},
		{"spaces before the end", "[" + pet + spaces + "]", "behind pet 1: " + long},
		{"spaces before something else", "[" + pet + "]" + spaces + "x", "behind pet 1: something follows the array"},
	} {
		t.Run(c[0], func(t *testing.T) {
			if _, err := readSeed(strings.NewReader(c[1])); err == nil || err.Error() != c[2] {
				t.Error(err)
			}
		})
	}
}

// A create is as cheap behind a large seed as without one, after a reset too.
func TestCreateBehindSeed(t *testing.T) {
	seed := state{}
	for id := int64(1); id <= 1000000; id++ {
		seed.put(id, NewPet{})
	}
	s := newStore(seed)
	for range 2 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.add(NewPet{})
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("a create allocates %d bytes", n)
		}
		s.reset(seed)
	}
}

// Whatever clients do with a full store, the process stays under 1 GiB.
func TestMemory(t *testing.T) {
	s := execute(t, nil, "-quiet")
	body := `{"name":"` + strings.Repeat("x", 60<<10) + `","categoryId":1}`
	var created atomic.Int64
	together(4, func(int) { // a client that creates for ever
		for created.Load() <= maxSize/(60<<10) && strings.HasPrefix(s.call(t, "POST /v1/pets\n\n"+body), "201 ") {
			created.Add(1)
		}
	})
	if n, want := created.Load(), int64(maxSize/(60<<10+100)); n < want-10 || n > maxSize/(60<<10) {
		t.Errorf("the store held %d pets of 60 KiB, want about %d", n, want)
	}
	if got := s.call(t, "GET /v1/pets?limit=1&after=4000"); !strings.HasPrefix(got, `200 [{"id":4001,`) {
		t.Errorf("%.100s", got)
	}
	begun := make(chan bool, 300)
	for i := range 300 { // that read nothing of their pages of 6 MB
		c := s.dial(t, fmt.Sprintf("GET /v1/pets?limit=100&after=%d HTTP/1.1\n%s\n", i*10, withKey))
		go func() {
			c.Read(make([]byte, 1))
			begun <- true
		}()
		t.Cleanup(func() { c.Close() })
		defer c.Close()
	}
	for range cap(largeAnswers) {
		within(t, "a page", func() bool { return <-begun })
	}
	if got := s.call(t, "GET /v1/pets?limit=1"); !strings.HasPrefix(got, `200 [{"id":1,`) {
		t.Errorf("a small page: %.100s", got)
	}
	for range 30 { // the pages outlive resets
		s.play(t, "POST /__admin/reset", "204")
		for range 100 {
			s.call(t, "POST /v1/pets\n\n"+body)
		}
		s.dial(t, "GET /v1/pets?limit=100 HTTP/1.1\n"+withKey+"\n")
	}
	if peak := resident(t, s, "VmHWM"); peak < 256 || peak > 1024 {
		t.Errorf("resident memory reached %d MiB", peak)
	}
	s.play(t, "POST /__admin/reset", "204")
	if got := s.call(t, "POST /v1/pets\n\n"+body); !strings.HasPrefix(got, `201 {"id":1,`) {
		t.Errorf("%.100s", got)
	}
}

// A million pets take as much memory as README.md tells: loaded, and under load.
func TestMillion(t *testing.T) {
	s := execute(t, nil, "-quiet", "-seed", seedPets(t, 1000000))
	if m := resident(t, s, "VmRSS"); m > 200 {
		t.Errorf("loaded they take %d MiB", m)
	} else {
		t.Logf("loaded: %d MiB", m)
	}
	newLoad(t, s.addr, "GET /v1/pets?limit=100 HTTP/1.1\r\n"+strings.ReplaceAll(withKey, "\n", "\r\n")+"\r\n").send(t, 40000)
	if m := resident(t, s, "VmRSS"); m > 400 {
		t.Errorf("under load they take %d MiB", m)
	} else {
		t.Logf("under load: %d MiB", m)
	}
}

// README: Development. What random requests find.

// Long random sequences of all operations, faults and resets do what plain
// slices do, and the journal has them all.
func TestModel(t *testing.T) {
	statuses := []PetStatus{"", Available, Pending, Sold}
	codes := map[string]string{"418": "im_a_teapot", "429": "too_many_requests", "500": "internal_server_error"}
	for round := range 5 {
		t.Run(fmt.Sprint("round ", round), func(t *testing.T) {
			random := rand.New(rand.NewSource(int64(round)))
			// randomPets returns pets as they are listed and, shuffled and the last
			// ones without an id, as a seed.
			randomPets := func(n int) (pets []Pet, seed string) {
				var last int64
				for i := range n {
					last += random.Int63n(4) + 1
					if i >= n-3 {
						last = pets[i-1].ID + 1
					}
					pets = append(pets, Pet{last, NewPet{strings.Repeat("n", random.Intn(3)), random.Int63(), statuses[random.Intn(4)]}})
				}
				elements := make([]string, n)
				for i, j := range random.Perm(n - 3) {
					elements[j] = string(encode(pets[i]))
				}
				for i := n - 3; i < n; i++ {
					elements[i] = string(encode(pets[i].NewPet))
				}
				return pets, "[" + strings.Join(elements, ",") + "]"
			}
			seed, file := randomPets(60)
			s := start(t, "-quiet", "-seed", seedFile(t, file))
			model, next := slices.Clone(seed), seed[len(seed)-1].ID+1
			var log []string // the journal as saw takes it
			total := 0
			var fault struct {
				code, retryAfter, operation string
				skip, times, met            int
			}
			for step := range 2000 {
				var request, body, operation, want string
				effect := func() {} // of the request, unless a fault strikes it
				switch n := random.Intn(200); {
				case n < 40:
					p := Pet{next, NewPet{fmt.Sprint("pet ", step), random.Int63() - random.Int63(), statuses[random.Intn(4)]}}
					request, body, operation = "POST /v1/pets", string(encode(p.NewPet)), "createPet"
					want = fmt.Sprintf("201 %s\nLocation: /v1/pets/%d", encode(p), next)
					effect = func() {
						model = append(model, p)
						next++
					}
				case n < 80:
					id := random.Int63n(next+3) - 1
					request, operation = fmt.Sprintf("GET /v1/pets/%d", id), "getPet"
					want = noPet(id)
					for _, p := range model {
						if p.ID == id {
							want = "200 " + string(encode(p)) + going
						}
					}
				case n < 182:
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
					request, operation = "GET /v1/pets?"+query, "listPets"
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
				case n < 187:
					s.saw(t, total, log...)
					continue
				case n < 188:
					request, want = forget, "204"
					log, total = nil, 0
				case n < 195:
					request, want = "PUT /__admin/fault?", "204"
					fault.code = []string{"418", "429", "500", "truncate"}[random.Intn(4)]
					fault.retryAfter = []string{"", "0", "3600"}[random.Intn(3)]
					fault.operation = []string{"", "listPets", "createPet", "getPet"}[random.Intn(4)]
					fault.skip, fault.times, fault.met = random.Intn(4), random.Intn(4), 0
					for name, value := range map[string]string{"code": fault.code, "retry-after": fault.retryAfter, "operation": fault.operation,
						"skip": fmt.Sprint(fault.skip), "times": strings.TrimPrefix(fmt.Sprint(fault.times), "0")} {
						if value != "" {
							request += name + "=" + value + "&"
						}
					}
				case n < 196:
					request, want = "DELETE /__admin/fault", "204"
					fault.code = ""
				case n < 198:
					request, want = "POST /__admin/reset", "204"
					model, next = slices.Clone(seed), seed[len(seed)-1].ID+1
					log, total, fault.code = nil, 0, ""
				default:
					request, want = "POST /__admin/reset", "204"
					model, body = randomPets(random.Intn(60) + 4)
					next = model[len(model)-1].ID + 1
					log, total, fault.code = nil, 0, ""
				}

				// Every tenth request asks for a fault itself.
				code, retryAfter, headers := "", "", ""
				if operation != "" && random.Intn(10) == 0 {
					prefer := []string{"code=truncate", "delay=0", "code=418", "code=429, retry-after=0"}[random.Intn(4)]
					code, retryAfter, _ = strings.Cut(strings.TrimPrefix(prefer, "code="), ", retry-after=")
					headers = "\nPreference-Applied: " + prefer
				} else if operation != "" && fault.code != "" && (fault.operation == "" || fault.operation == operation) {
					if fault.met++; fault.met > fault.skip && (fault.times == 0 || fault.met <= fault.skip+fault.times) {
						code, retryAfter = fault.code, fault.retryAfter
					}
				}
				target := request
				if headers != "" {
					request += strings.Replace(headers, "Preference-Applied", "Prefer", 1)
				}
				request += "\n\n" + body
				if codes[code] != "" {
					want, effect = code+" "+codes[code]+simulated, func() {}
					if operation == "getPet" {
						want += going
					}
					if retryAfter = cmp.Or(retryAfter, map[string]string{"429": "1"}[code]); retryAfter != "" {
						headers += "\nRetry-After: " + retryAfter
					}
				}
				effect()
				if operation != "" {
					total++
					log = append(log, strings.TrimSpace(target+" "+want[:3]+" "+body))
					log = log[max(len(log)-1000, 0):]
				}
				lines := strings.Split(want+headers, "\n")
				slices.Sort(lines[1:])
				got := ""
				if want = strings.Join(lines, "\n"); code == "truncate" {
					whole := bodyOf(want)
					got, want = s.half(t, request), want[:4]+whole[:len(whole)/2]
				} else {
					got = s.call(t, request)
				}
				if got != want {
					t.Fatalf("step %d: %s\n got %s\nwant %s", step, request, got, want)
				}
			}
			s.saw(t, total, log...)
		})
	}
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
		for _, at := range seed.pets[""] {
			p := seed.at(at)
			if p.id > after && (!filtered || statuses[p.id%4] == status[0]) {
				if more = len(want) == int(limit); more {
					break
				}
				want = append(want, string(p.json))
			}
		}
		if got := w.Body.String(); got != "["+strings.Join(want, ",")+"]\n" || more != (w.Header().Get("Link") != "") {
			t.Errorf("%q: got %s %v", query, got, w.Header())
		}
	})
}

// A Prefer header does what it says, and nothing else does.
func FuzzPrefer(f *testing.F) {
	for _, header := range []string{"", "code=503", "code=503, delay=1.5", "Code = \"418\";x", "a=\"b,code=500\", delay=30", "code=hangup", "code=99", "delay=-1", "code=404,code=500", ",;=\"\\\"",
		"code=truncate", "delay=0,code=truncate, retry-after=5", "code=418, retry-after=0", "retry-after=3600;x=\",\",code=429", "code=500, retry-after=3601", "retry-after=x", "delay=0, retry-after",
		"code=418, skip=x, times=0, operation=createPet", "delay=\"1;2\"",
		"code=418, \"", "\"code=418", "a=\"b, code=418", "code=\"418", "code=418;a=\"", "code=418,a=\"\\\",delay=x", "\"" + strings.Repeat("\\\"", 30000), "code=418," + strings.Repeat("\"\\\"", 20000)} {
		f.Add(header)
	}
	h := quietAPI(state{}).routes()
	// A preference and, behind it, its parameters. What follows an unclosed quote
	// is in none.
	preference := regexp.MustCompile(`(?s)^((?:[^",;]|"(?:[^"\\]|\\.)*")*)(?:[^",]|"(?:[^"\\]|\\.)*")*(?:,|$)`)
	seconds := regexp.MustCompile(`^(0|[1-9][0-9]{0,2}|[12][0-9]{3}|3[0-5][0-9]{2}|3600)$`)
	f.Fuzz(func(t *testing.T, header string) {
		wanted := map[string]string{}
		for rest := header + ","; rest != ""; {
			m := preference.FindStringSubmatch(rest)
			if m == nil {
				break
			}
			rest = rest[len(m[0]):]
			name, value, _ := strings.Cut(m[1], "=")
			name = strings.ToLower(strings.TrimSpace(name))
			if _, again := wanted[name]; !again {
				wanted[name] = strings.Trim(strings.TrimSpace(value), "\"")
			}
		}
		code, hasCode := wanted["code"]
		delay, hasDelay := wanted["delay"]
		retryAfter, hasRetryAfter := wanted["retry-after"]
		// The answer: its status, the half of it that is sent, and two headers.
		want, cut, applied, header2 := 200, false, []string{}, ""
		if hasCode {
			applied = append(applied, "code="+code)
			switch want, _ = strconv.Atoi(code); {
			case code == "hangup" || code == "truncate":
				want, cut = 200, true
			case want < 400 || want > 599 || len(code) != 3:
				want = 0
			case hasRetryAfter:
				header2 = retryAfter
			case want == 429 || want == 503:
				header2 = "1"
			}
		}
		if hasDelay {
			applied = append(applied, "delay="+delay)
			n, err := strconv.ParseFloat(delay, 64)
			if err != nil || !regexp.MustCompile(`^[0-9.]+$`).MatchString(delay) || n > 30 {
				want = 0
			}
		}
		if (hasCode || hasDelay) && hasRetryAfter {
			if want >= 400 {
				applied = append(applied, "retry-after="+retryAfter)
			}
			if !seconds.MatchString(retryAfter) {
				want = 0
			}
		}
		if want == 0 { // a bad value
			want, cut, applied, header2 = 400, false, nil, ""
		}
		r, w := httptest.NewRequest("GET", "/v1/pets", nil), httptest.NewRecorder()
		r.Header = http.Header{"Authorization": {"Bearer " + testKey}, "Prefer": {header}}
		gotCut := func() (aborted bool) {
			defer func() {
				if v := recover(); v != nil && v != http.ErrAbortHandler {
					panic(v)
				} else {
					aborted = v != nil
				}
			}()
			h.ServeHTTP(w, r)
			return false
		}()
		body := w.Body.String()
		if w.Code != want || gotCut != cut || w.Header().Get("Retry-After") != header2 || w.Header().Get("Preference-Applied") != strings.Join(applied, ", ") {
			t.Errorf("Prefer: %.1000q: got %d %v, cut off %v; want %d, %v, %v, %q", header, w.Code, w.Header(), gotCut, want, cut, applied, header2)
		}
		if bodies := map[string]string{"hangup": "", "truncate": "["}; cut && body != bodies[code] || !cut && want == 200 && body != "[]\n" || want > 200 && !json.Valid([]byte(body)) {
			t.Errorf("Prefer: %.1000q: got the body %q", header, body)
		}
	})
}

// A seed that the rules take is what is listed, and any other is refused and
// changes nothing, be it of a file or of a reset.
func FuzzSeed(f *testing.F) {
	for _, seed := range []string{`[]`, `[{"name":"a","categoryId":1},{"id":7,"name":"b","categoryId":2,"status":"sold"},{"id":3,"name":"c","categoryId":3}]`,
		`[{"id":1,"name":"a","categoryId":1},{"id":1,"name":"a","categoryId":1}]`, `[{"id":9223372036854775806,"name":"","categoryId":1},{"name":"","categoryId":1}]`, `[1]`, `{}`, `[] []`, `[{"name":"a"`, ``, ` `, `[` + pet + `,]`} {
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
			ids := membersOf(element)["id"]
			var id int64
			if len(ids) > 0 {
				var err error
				id, err = strconv.ParseInt(string(ids[0]), 10, 64)
				good = good && len(ids) == 1 && err == nil && id > 0 && id < math.MaxInt64 && !used[id]
			}
			ok = ok && good
			if len(ids) == 0 {
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
		pets, err := readSeedFile(file)
		if ok != (err == nil) {
			t.Fatalf("%q: accepted %v, got %v", content, ok, err)
		}

		var before state
		before.put(1, NewPet{"a", 1, ""})
		a := quietAPI(before)
		h := a.routes()
		direct(t, h, "POST", "/v1/pets", []byte(pet), nil)
		direct(t, h, "PUT", "/__admin/fault?code=500&operation=getPet", nil, nil)
		w := direct(t, h, "POST", "/__admin/reset", content, nil)
		_, journaled := a.journal.all()
		switch {
		case len(content) == 0 || len(content) > maxBody: // a plain reset, or a 413
		case err != nil:
			var e Error
			json.Unmarshal(w.Body.Bytes(), &e)
			message := strings.TrimPrefix(err.Error(), file+": ")
			if e != (Error{codeInvalidBody, message, 400}) && !strings.Contains(message, testKey) {
				t.Errorf("%q: the reset is told %s, want %s", content, w.Body, message)
			}
			if journaled != 1 || a.standing.Load() == nil {
				t.Errorf("%q: a bad reset clears journal or fault", content)
			}
			if got := direct(t, h, "GET", "/v1/pets", nil, nil).Body.String(); got != "["+onePet+","+strings.Replace(onePet, "1", "2", 1)+"]\n" {
				t.Errorf("%q: a bad reset leaves %s", content, got)
			}
		default:
			got := a.pets.base.pets[""]
			if w.Code != 204 || journaled != 0 || a.standing.Load() != nil || !slices.Equal(got, pets.pets[""]) || !slices.EqualFunc(a.pets.base.chunks, pets.chunks, bytes.Equal) || a.pets.lastID != last || len(a.pets.pets) != 0 {
				t.Errorf("%q: a reset answers %d %s and has %d pets up to %d, want those of the file", content, w.Code, w.Body, len(got), a.pets.lastID)
			}
			direct(t, h, "POST", "/__admin/reset", nil, nil)
			if got := direct(t, h, "GET", "/v1/pets", nil, nil).Body.String(); got != "["+onePet+"]\n" {
				t.Errorf("%q: a plain reset leaves %s", content, got)
			}
		}
		if err != nil {
			if !strings.HasPrefix(err.Error(), file+": ") || strings.Contains(err.Error(), "Pet") {
				t.Errorf("%q: %v", content, err)
			}
			return
		}
		s := newStore(pets)
		for i, at := range s.base.pets[""] {
			p := s.base.at(at)
			if i >= len(want) || p.id != want[i].ID || string(p.json) != string(encode(want[i])) {
				t.Fatalf("%q: pet %d is %v", content, i, p)
			}
		}
		if len(s.base.pets[""]) != len(want) || s.lastID != last {
			t.Errorf("%q: %d pets up to %d, want %d up to %d", content, len(s.pets[""]), s.lastID, len(want), last)
		}
	})
}

// A mix of all operations, faults, delays, lost answers, resets, readers of the
// journal and clients that go away, for the duration in PETSTORE_SOAK, leaves nothing behind and loses nothing.
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
	add := func(n int64, name string) {
		createdMu.Lock()
		defer createdMu.Unlock()
		if created[n] != "" {
			t.Errorf("the id %d is given twice", n)
		}
		created[n] = name
	}
	end := time.Now().Add(duration)
	var total atomic.Int64
	id := regexp.MustCompile(`^201 {"id":(\d+),`)
	together(64, func(worker int) {
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
					add(n, name)
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
			case n < 834:
				s.journal(t)
			case n < 836:
				request, want = forget, "204"
			case n < 860:
				request, want = "POST /__admin/reset\n\n"+`[{"id":1,"name":"x"}]`, "400 "
			case n < 880:
				if got := s.half(t, "GET /v1/pets/5\nPrefer: code=truncate"); !strings.HasPrefix(got, `200 {"id":5,"name"`) {
					t.Errorf("truncated: %s", got)
				}
			case n < 900:
				resp := s.do(t, "POST /v1/pets\nPrefer: code=truncate\n\n"+`{"name":`+name+`,"categoryId":1,"status":"sold"}`)
				_, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				n, malformed := strconv.ParseInt(strings.TrimPrefix(resp.Header.Get("Location"), "/v1/pets/"), 10, 64)
				if resp.StatusCode != 201 || err != io.ErrUnexpectedEOF || malformed != nil {
					t.Errorf("truncated create: %d %v %v", resp.StatusCode, err, resp.Header)
				}
				add(n, name)
			case n < 998:
				send := []string{
					"GET /v1/pets HTTP/1.1\n" + withKey + "Prefer: delay=30\n\n",
					"POST /v1/pets HTTP/1.1\n" + withKey + "Content-Length: 30\n\n{\"na",
					"POST /v1/pets HTTP/1.1\n" + withKey + "Content-Length: 30\nPrefer: delay=30\n\n" + `{"name":"gone","categoryId":1}`,
					"GET /v1/pets?limit=100 HTTP/1.1\n" + withKey + "\n",
					"GET /v1/pe",
				}[random.Intn(5)]
				c, err := net.DialTimeout("tcp", s.addr, patience)
				if err != nil {
					t.Error(err)
					break
				}
				c.SetDeadline(time.Now().Add(patience))
				io.WriteString(c, strings.ReplaceAll(send, "\n", "\r\n"))
				c.Close()
			default:
				mu.RUnlock()
				mu.Lock()
				clear(created)
				request := "POST /__admin/reset"
				if random.Intn(2) == 0 {
					request += "\n\n" + `[{"name":"array","categoryId":1},{"id":5,"name":"array","categoryId":1}]`
					created[5], created[6] = `"array"`, `"array"`
				}
				if got := s.call(t, request); got != "204" {
					t.Errorf("reset: %s", got)
				}
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
	})
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

// README: Speed.

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
				benchmark(b, startChild(b, "petstore", nil, "-quiet", "-seed", seed), c.request)
			})
		}
	}
}

// BenchmarkLog compares a service that logs to a pipe with a quiet one.
func BenchmarkLog(b *testing.B) {
	seed := seedPets(b, 1000)
	r, w := io.Pipe()
	go io.Copy(io.Discard, r)
	compare(b, startChild(b, "petstore", w, "-seed", seed), startChild(b, "petstore", nil, "-quiet", "-seed", seed), "GET /v1/pets")
}

// BenchmarkStart measures the time from the start of the process to its first
// answer, in turns with that of a bare net/http server.
func BenchmarkStart(b *testing.B) {
	petstore := build(b)
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
	if out, err := command(b, "go", "build", "-o", bare, source).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	run := func(file string) (took time.Duration, memory int) {
		begin := time.Now()
		p := launch(b, file, "", nil)
		newLoad(b, p.addr, strings.ReplaceAll("GET /v1/pets HTTP/1.1\n"+withKey+"\n", "\n", "\r\n")).send(b, 1)
		took = time.Since(begin)
		memory = resident(b, p, "VmRSS")
		p.kill(b)
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
		p := execute(b, nil, "-quiet", "-seed", file)
		ours += time.Since(begin)
		p.call(b, "GET /v1/pets?limit=1")
		memory += resident(b, p, "VmRSS")
		p.kill(b)
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

// Helpers: the words of the answers.

// testKey is the API key of the services that the tests start.
const testKey = "correct-horse"

// What raw requests send.
const (
	withKey = "Host: x\nAuthorization: Bearer " + testKey + "\n"
	late    = "POST /v1/pets HTTP/1.1\n" + withKey + "Content-Length: 9\n\n{" // the rest of the body never comes
	leave   = "\x00"                                                          // at the end: the client closes its side
)

const (
	pet         = `{"name":"a","categoryId":1}`
	onePet      = `{"id":1,"name":"a","categoryId":1}`
	create      = "POST /v1/pets\n\n" + pet
	paramInt64  = "an integer from -9223372036854775808 to 9223372036854775807"
	codes       = "an integer from 400 to 599, hangup or truncate"
	delays      = "a number of seconds from 0 to 30, with decimals if need be"
	going       = "\nDeprecation: @1795132800\nLink: </v1/pets>; rel=\"successor-version\"\nSunset: Thu, 05 Dec 2030 00:00:00 GMT"
	simulated   = ": this error is simulated, as was asked for"
	noPath      = "404 not_found: no such path; the pets are at /v1/pets, without a slash at the end"
	noAdmin     = "404 not_found: no such path; there are /__admin/reset, /__admin/fault and /__admin/requests"
	noKey       = "401 unauthorized: send the API key in one header: Authorization: Bearer <API_KEY>\nWww-Authenticate: Bearer realm=\"petstore\""
	wrongKey    = "401 invalid_token: this is not the API key that the service was started with\nWww-Authenticate: Bearer realm=\"petstore\", error=\"invalid_token\""
	fullStore   = "507 insufficient_storage: the store is full: it holds 268435456 bytes"
	notJSONType = "415 unsupported_media_type: send JSON in UTF-8, with one Content-Type: application/json and no Content-Encoding (curl does with --json)"
	tooLong     = "413 request_entity_too_large: the body is over 65536 bytes\nConnection: close"
	badRequest  = "HTTP/1.1 400 Bad Request\nConnection: close\n\n" + `{"code":"bad_request","message":"400 Bad Request","status":400}` + "\n"
)

// created answers create.
func created(id int64) string {
	return fmt.Sprintf(`201 {"id":%d,"name":"a","categoryId":1}`+"\nLocation: /v1/pets/%d", id, id)
}

func noPet(id int64) string { return fmt.Sprintf("404 not_found: there is no pet %d", id) + going }

// only is the answer where a path has these methods only.
func only(methods string) string {
	return "405 method_not_allowed: this path allows " + methods + " only\nAllow: " + methods
}

func badParameter(name, given, allowed string) string {
	return "400 invalid_parameter: " + name + " is " + given + "; it must be " + allowed
}

// Helpers: asking a service.

// rules plays each rule, a name and then requests and their answers in turns,
// as a test of that name that begins from a reset service.
func (s *service) rules(t *testing.T, rules [][]string) {
	t.Helper()
	rulesBy(t, s, s.check, rules)
}

// rulesOnce is rules for what counts requests: each GET is sent just once.
func (s *service) rulesOnce(t *testing.T, rules [][]string) {
	t.Helper()
	rulesBy(t, s, s.play, rules)
}

func rulesBy(t *testing.T, s *service, play func(t *testing.T, exchanges ...string), rules [][]string) {
	t.Helper()
	for _, rule := range rules {
		t.Run(rule[0], func(t *testing.T) {
			s.play(t, "POST /__admin/reset", "204")
			play(t, rule[1:]...)
		})
	}
}

// check plays requests and their answers. A HEAD must get the headers of the
// GET that follows it.
func (s *service) check(t *testing.T, exchanges ...string) {
	t.Helper()
	for i := 0; i < len(exchanges); i += 2 {
		request := exchanges[i]
		if strings.HasPrefix(request, "GET ") {
			get, head := s.do(t, request), s.do(t, "HEAD"+request[3:])
			get.Header.Del("Date")
			head.Header.Del("Date")
			if get.StatusCode != head.StatusCode || !reflect.DeepEqual(get.Header, head.Header) {
				t.Errorf("%s\n GET %d %v\nHEAD %d %v", request, get.StatusCode, get.Header, head.StatusCode, head.Header)
			}
			get.Body.Close()
			answer(t, head)
		}
		s.play(t, request, exchanges[i+1])
	}
}

// play plays requests and their answers as check does, each just once.
func (s *service) play(t *testing.T, exchanges ...string) {
	t.Helper()
	for i := 0; i < len(exchanges); i += 2 {
		if got := s.call(t, exchanges[i]); got != exchanges[i+1] {
			t.Errorf("%.1000s\n got %s\nwant %s", exchanges[i], got, exchanges[i+1])
		}
	}
}

// call sends a request that is written as "METHOD target", header lines, an
// empty line and a body. It carries the key unless a line begins with
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
		req.Header.Set("Authorization", "Bearer "+s.key)
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

// client takes what comes: it follows no redirects.
var client = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     &http.Transport{MaxIdleConnsPerHost: 100},
	Timeout:       patience,
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
		if m == nil || m[1] == query || len(page) == 0 { // a link that leads nowhere must not do so for ever
			return ids
		}
		query = m[1]
	}
}

// What asks for the journal and clears it, and the answer of an empty one.
const (
	spy     = "GET /__admin/requests"
	forget  = "DELETE /__admin/requests"
	nothing = `200 {"requests":[` + "\n" + `],"meta":{"total":0}}`
)

// journaled is an entry of the journal.
type journaled struct {
	Time    string            `json:"time"`
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Status  int               `json:"status"`
}

// line returns the entry as the journal has it, but for its time.
func (e journaled) line() string {
	_, line, _ := strings.Cut(string(encode(e)), ",")
	return "{" + line
}

// journal returns the journal, and checks the form that it always has: a line
// for each request, and members in order.
func (s *service) journal(t testing.TB) (entries []journaled, total int) {
	t.Helper()
	text := s.call(t, spy)
	lines := strings.Split(text, "\n")
	end := lines[len(lines)-1]
	if _, err := fmt.Sscanf(end, `],"meta":{"total":%d}}`, &total); err != nil || end != fmt.Sprintf(`],"meta":{"total":%d}}`, total) || lines[0] != `200 {"requests":[` {
		t.Errorf("the journal begins with %.100s and ends with %.100s", lines[0], end)
	}
	for i, line := range lines[1:max(len(lines)-1, 1)] {
		var e journaled
		object, more := strings.CutSuffix(line, ",")
		err := json.Unmarshal([]byte(object), &e)
		plain := strings.NewReplacer(`\ufffd`, "\ufffd").Replace // what is no UTF-8 is escaped
		if _, malformed := time.Parse("2006-01-02T15:04:05.000Z", e.Time); err != nil || malformed != nil || plain(object) != plain(string(encode(e))) || more != (i < len(lines)-3) {
			t.Errorf("line %d of the journal: %v: %.1000s", i+1, err, line)
		}
		entries = append(entries, e)
	}
	if strings.Contains(text, s.key) && len(s.key) > 8 {
		t.Errorf("the journal shows the key:\n%.10000s", text)
	}
	return entries, total
}

// saw compares the journal with total and with lines of method, url, status
// and, unless it is empty, body.
func (s *service) saw(t testing.TB, total int, want ...string) {
	t.Helper()
	var got []string
	entries, n := s.journal(t)
	for _, e := range entries {
		got = append(got, strings.TrimSpace(fmt.Sprint(e.Method, " ", e.URL, " ", e.Status, " ", e.Body)))
	}
	if !slices.Equal(got, want) || n != total {
		t.Errorf("the journal has, of %d,\n%.10000s\nwant, of %d,\n%.10000s", n, strings.Join(got, "\n"), total, strings.Join(want, "\n"))
	}
}

// spied plays each rule, a name and what a connection sends, as a test of that
// name, and compares the lines of the journal with the rest of the rule.
func (s *service) spied(t *testing.T, rules [][]string) {
	t.Helper()
	for _, rule := range rules {
		t.Run(rule[0], func(t *testing.T) {
			s.play(t, "POST /__admin/reset", "204")
			rest(t, s.dial(t, rule[1]))
			var got []string
			entries, total := s.journal(t)
			for _, e := range entries {
				got = append(got, e.line())
			}
			if want := rule[2:]; !slices.Equal(got, want) || total != len(want) {
				t.Errorf("the journal has, of %d,\n%s\nwant\n%s", total, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// half sends a request whose answer breaks off in the middle of its body, and
// returns its status and what came of the body.
func (s *service) half(t testing.TB, request string) string {
	t.Helper()
	resp := s.do(t, request)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != io.ErrUnexpectedEOF || int64(len(b)) != resp.ContentLength/2 {
		t.Errorf("%.1000s\n got %d of %d bytes, %v; want half of them", request, len(b), resp.ContentLength, err)
	}
	return fmt.Sprint(resp.StatusCode, " ", string(b))
}

// bodyOf returns the body of an answer as call writes it.
func bodyOf(answer string) string {
	status, _ := strconv.Atoi(answer[:3])
	line, _, _ := strings.Cut(answer[4:], "\n")
	if status >= 400 {
		code, message, _ := strings.Cut(line, ": ")
		line = string(encode(Error{code, message, status}))
	}
	return line + "\n"
}

// bigPage is a page of 100 pets that takes 6 MB.
func bigPage() string {
	pets := make([]string, 100)
	for i := range pets {
		pets[i] = fmt.Sprintf(`{"id":%d,"name":"%s","categoryId":1}`, i+1, strings.Repeat("x", 60<<10))
	}
	return "[" + strings.Join(pets, ",") + "]"
}

// rawAnswer returns what comes on c until the service closes it, but for the
// date, with \n for CR LF.
func rawAnswer(t testing.TB, c net.Conn) string {
	t.Helper()
	b, err := io.ReadAll(c)
	if err != nil {
		t.Errorf("%v behind %.1000q", err, b)
	}
	return regexp.MustCompile(`(?m)^Date: .*\n`).ReplaceAllString(strings.ReplaceAll(string(b), "\r\n", "\n"), "")
}

// dial opens a connection and sends what is given, with \n for CR LF.
func (s *service) dial(t testing.TB, send string) *net.TCPConn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", s.addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	c := conn.(*net.TCPConn)
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	send, leaves := strings.CutSuffix(send, leave)
	io.WriteString(c, strings.ReplaceAll(send, "\n", "\r\n")) // may fail: the service need not read it all
	if leaves {
		c.CloseWrite()
	}
	return c
}

// dialUpload sends the headers of a create, and returns once the service waits
// for its body.
func (s *service) dialUpload(t testing.TB) (*net.TCPConn, *bufio.Reader) {
	t.Helper()
	c := s.dial(t, "POST /v1/pets HTTP/1.1\n"+withKey+"Expect: 100-continue\nContent-Length: 27\n\n")
	in := bufio.NewReader(c)
	for _, want := range []string{"HTTP/1.1 100 Continue\r\n", "\r\n"} {
		if line, err := in.ReadString('\n'); line != want {
			t.Fatalf("%q %v", line, err)
		}
	}
	return c, in
}

// rest returns what comes on c until the service closes it, but for the
// headers that other tests check, with \n for CR LF.
func rest(t testing.TB, c net.Conn) string {
	t.Helper()
	b, err := io.ReadAll(c)
	if err != nil {
		t.Errorf("%v behind %q", err, b)
	}
	if answers := regexp.MustCompile(`HTTP/1\.[01] [2-5]`).FindAll(b, -1); bytes.Count(b, []byte("\r\nDate: ")) != len(answers) {
		t.Errorf("an answer without a Date: %q", b)
	}
	return regexp.MustCompile(`(Date|Content-Length|Content-Type: application/json|Www-Authenticate).*\n`).ReplaceAllString(strings.ReplaceAll(string(b), "\r\n", "\n"), "")
}

// together calls f n times at once, with 0 to n-1, and waits for all.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	wg.Add(n)
	for i := range n {
		go func() {
			defer wg.Done()
			f(i)
		}()
	}
	wg.Wait()
}

// refused waits until the service takes no new connection.
func (s *service) refused(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		c, err := net.DialTimeout("tcp", s.addr, patience)
		if err != nil {
			return
		}
		c.Close()
	}
	t.Error("the service still takes connections")
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

// Helpers: starting and stopping a service.

func TestMain(m *testing.M) {
	if child := os.Getenv("PETSTORE_TEST_CHILD"); child != "" {
		os.Exit(serveChild(child))
	}
	code := m.Run()
	if binaryDir != "" {
		os.RemoveAll(binaryDir)
	}
	os.Exit(code)
}

// patience is how long a test waits for what must come: only a test that
// fails waits that long.
const patience = 30 * time.Second

// within returns what f returns, and fails the test if that takes too long: no
// test waits for ever. f must leave it to its caller to fail the test.
func within[T any](t testing.TB, what string, f func() T) T {
	t.Helper()
	result := make(chan T, 1)
	go func() { result <- f() }()
	select {
	case v := <-result:
		return v
	case <-time.After(patience):
		t.Fatalf("%s takes longer than %v", what, patience)
		panic("unreachable")
	}
}

// service is a petstore that runs in this process.
type service struct {
	addr   string        // host:port
	key    string        // its API key
	stderr *lockedBuffer // what it has logged so far
	cancel func()        // asks it to stop
	stop   func()        // stops it, and checks how it ends
}

// start runs the service with testKey on a free port until the test ends. It
// must then exit with 0, and have printed nothing but its base URL.
func start(t testing.TB, args ...string) *service {
	t.Helper()
	return startKey(t, testKey, args...)
}

// startKey is start with another key; with none, the service makes one.
func startKey(t testing.TB, key string, args ...string) *service {
	t.Helper()
	stderr := new(lockedBuffer)
	s := startTo(t, stderr, key, args...)
	s.stderr = stderr
	if key == "" {
		s.key = regexp.MustCompile(`[0-9a-f]{32}`).FindString(stderr.String())
	}
	return s
}

func startTo(t testing.TB, stderr io.Writer, key string, args ...string) *service {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &service{key: key, cancel: cancel}
	stdout, w := io.Pipe()
	exit := make(chan int, 1)
	go func() {
		exit <- run(ctx, append([]string{"-addr", "127.0.0.1:0"}, args...), env(key), strings.NewReader(""), w, stderr)
		w.Close()
	}()
	out := bufio.NewReader(stdout)
	t.Cleanup(cancel)
	s.addr = address(t, out, stderr)
	s.stop = sync.OnceFunc(func() {
		client.CloseIdleConnections()
		cancel()
		if rest := within(t, "the end of stdout", func() string { b, _ := io.ReadAll(out); return string(b) }); rest != "" {
			t.Errorf("stdout goes on behind the base URL: %q", rest)
		}
		if code := <-exit; code != 0 { // it is there before stdout ends
			t.Errorf("exit code %d, want 0\n%v", code, stderr)
		}
	})
	t.Cleanup(s.stop)
	return s
}

// address waits for the base URL on the stdout of a service, and returns its
// host:port.
func address(t testing.TB, stdout *bufio.Reader, stderr io.Writer) string {
	t.Helper()
	line := within(t, "the base URL", func() string { line, _ := stdout.ReadString('\n'); return line })
	m := regexp.MustCompile(`^http://(127\.0\.0\.1:[1-9][0-9]*)/v1\n$`).FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("stdout is %q, want the base URL\n%v", line, stderr)
	}
	return m[1]
}

// env is an environment with only the API key in it.
func env(key string) func(string) string {
	return func(name string) string { return map[string]string{"PETSTORE_API_KEY": key}[name] }
}

// outcome is the exit code and the output of a command line that does not
// serve. One that does is stopped after a while.
func outcome(t testing.TB, key string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var out, log lockedBuffer
	code = within(t, "the end of the service", func() int { return run(ctx, args, env(key), strings.NewReader(""), &out, &log) })
	return code, out.String(), log.String()
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

// listen serves a with a server that change has changed.
func listen(t testing.TB, a *api, change func(*http.Server)) *service {
	t.Helper()
	srv := newServer(a)
	if change != nil {
		change(srv)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go srv.Serve(listener{ln.(*net.TCPListener)})
	t.Cleanup(func() { srv.Close() })
	return &service{addr: ln.Addr().String(), key: testKey}
}

// impatient serves with little time for a request.
func impatient(t testing.TB, seed state) *service {
	t.Helper()
	return listen(t, quietAPI(seed), func(srv *http.Server) { srv.ReadTimeout = 500 * time.Millisecond })
}

// quietAPI is a service that logs nothing, and whose delays end at once.
func quietAPI(seed state) *api {
	stopping := make(chan struct{})
	close(stopping)
	return &api{key: testKey, pets: newStore(seed), stopping: stopping, quiet: true, log: slog.New(slog.NewTextHandler(io.Discard, nil))}
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

// Helpers: processes.

// command is a command that ends with the test, and after some minutes at the
// latest: some of them compile.
func command(t testing.TB, name string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), 10*patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second // for what it has started itself
	return cmd
}

// binaryDir is where build has put the service, and "" before.
var binaryDir string

var binary = sync.OnceValues(func() (file string, err error) {
	if binaryDir, err = os.MkdirTemp("", "petstore"); err != nil {
		return "", err
	}
	file = filepath.Join(binaryDir, "petstore")
	ctx, cancel := context.WithTimeout(context.Background(), 10*patience)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", file, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return file, nil
})

// build builds the service once for all tests, and returns its path.
func build(t testing.TB) string {
	t.Helper()
	file, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// process is a petstore that runs in a process of its own.
type process struct {
	service
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// mkfifo makes a named pipe, and returns its path.
func mkfifo(t testing.TB) string {
	t.Helper()
	need(t, "mkfifo")
	fifo := filepath.Join(t.TempDir(), "pets.json")
	if out, err := exec.Command("mkfifo", fifo).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return fifo
}

// execute runs the built service with testKey, until the test ends at the latest.
func execute(t testing.TB, stderr io.Writer, args ...string) *process {
	t.Helper()
	return launch(t, build(t), "", stderr, args...)
}

// launch does so with another file and a variable of the environment.
func launch(t testing.TB, file, variable string, stderr io.Writer, args ...string) *process {
	t.Helper()
	cmd := exec.Command(file, append([]string{"-addr", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), "PETSTORE_API_KEY="+testKey, variable)
	cmd.Stderr = stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() { p.kill(t) })
	p.addr, p.key = address(t, p.out, stderr), testKey
	return p
}

// wait waits for the end of the process, and tells how it ended.
func (p *process) wait(t testing.TB) error {
	t.Helper()
	return within(t, "the end of the process", p.cmd.Wait)
}

// kill ends the process, unless it has ended.
func (p *process) kill(t testing.TB) {
	t.Helper()
	p.cmd.Process.Kill()
	p.wait(t)
}

// resident returns the resident memory of a process in MiB: VmRSS now, VmHWM
// at most so far.
func resident(t testing.TB, p *process, which string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Skip("resident memory is read from /proc")
	}
	kib, _ := strconv.Atoi(regexp.MustCompile(which + `:\s*(\d+) kB`).FindStringSubmatch(string(status))[1])
	return (kib + 1023) >> 10
}

// need skips the test where a program is not installed.
func need(t testing.TB, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed", program)
	}
}

// Helpers: driving a browser.

// browser is a tab of a headless Chromium, driven through ChromeDriver (W3C
// WebDriver).
type browser struct{ session string } // its URL

// startBrowser skips the test where there is no Chromium.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	need(t, "chromium")
	need(t, "chromedriver")
	driver := exec.Command("chromedriver", "--port=0")
	stdout, err := driver.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { driver.Process.Kill(); driver.Wait() })
	port := within(t, "the start of chromedriver", func() (port []string) {
		for in := bufio.NewScanner(stdout); port == nil && in.Scan(); {
			port = regexp.MustCompile(`started successfully on port (\d+)`).FindStringSubmatch(in.Text())
		}
		return port
	})
	if port == nil {
		t.Fatal("chromedriver does not start")
	}
	file, _ := exec.LookPath("chromium")
	b := &browser{"http://127.0.0.1:" + port[1] + "/session"}
	b.session += "/" + b.post(t, "", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"goog:loggingPrefs": map[string]string{"performance": "ALL", "browser": "ALL"},
		"goog:chromeOptions": map[string]any{"binary": file, "args": []string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
			"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir=" + t.TempDir()}},
	}}}).(map[string]any)["sessionId"].(string)
	t.Cleanup(func() {
		req, _ := http.NewRequest("DELETE", b.session, nil)
		if resp, err := client.Do(req); err == nil {
			resp.Body.Close() // the browser has ended
		}
	})
	return b
}

// post sends a command, and returns its value.
func (b *browser) post(t *testing.T, command string, params any) any {
	t.Helper()
	resp, err := client.Post(b.session+command, "application/json", bytes.NewReader(encode(params)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct{ Value any }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != 200 {
		t.Fatalf("%s %v: %v %v", command, params, err, answer.Value)
	}
	return answer.Value
}

func (b *browser) open(t *testing.T, url string) {
	t.Helper()
	b.post(t, "/url", map[string]string{"url": url})
}

// run returns what a script in the page returns.
func (b *browser) run(t *testing.T, script string, args ...any) any {
	t.Helper()
	return b.post(t, "/execute/sync", map[string]any{"script": script, "args": append([]any{}, args...)})
}

// act does an action, such as click, to the element that a CSS selector finds.
func (b *browser) act(t *testing.T, selector, action string, params any) {
	t.Helper()
	for _, id := range b.post(t, "/element", map[string]string{"using": "css selector", "value": selector}).(map[string]any) {
		b.post(t, "/element/"+id.(string)+"/"+action, params)
	}
}

func (b *browser) click(t *testing.T, selector string) {
	t.Helper()
	b.act(t, selector, "click", struct{}{})
}

// fill types into a field, in place of what is there.
func (b *browser) fill(t *testing.T, selector, text string) {
	t.Helper()
	b.act(t, selector, "clear", struct{}{})
	b.act(t, selector, "value", map[string]string{"text": text})
}

// choose selects an option by its value.
func (b *browser) choose(t *testing.T, selector, value string) {
	t.Helper()
	b.run(t, `const field = document.querySelector(arguments[0]);
		field.value = arguments[1];
		field.dispatchEvent(new Event("change"));`, selector, value)
}

// see waits until an element shows this text, with one space between cells, or
// more than it. Only a hidden element, and an empty one, show "".
func (b *browser) see(t *testing.T, selector, text string) {
	t.Helper()
	var got any
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		got = b.run(t, `const e = document.querySelector(arguments[0]);
			return e && (e.checkVisibility() ? e.innerText.replaceAll("\t", " ") : "");`, selector)
		if s, ok := got.(string); ok && (s == text || text != "" && strings.Contains(s, text)) {
			return
		}
	}
	t.Fatalf("%s has the text %q, want %q", selector, got, text)
}

// Helpers: reading README.md.

// block is a fenced block of README.md: the heading above it, its text and, if
// a text block follows, what it prints.
type block struct{ heading, code, prints string }

// readme returns the blocks of README.md in a language.
func readme(t *testing.T, language string) (blocks []block) {
	t.Helper()
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	heading := ""
	for _, m := range regexp.MustCompile("(?sm)^#+ ([^\n]+)|```([a-z]+)\n(.*?)```(?:\n\n```text\n(.*?)```)?").FindAllStringSubmatch(string(b), -1) {
		if m[1] != "" {
			heading = m[1]
		} else if m[2] == language {
			blocks = append(blocks, block{heading, m[3], m[4]})
		}
	}
	return blocks
}

// recipe tells how a recipe of README.md is played.
type recipe struct {
	file    string
	run     []string
	started string // what begins the first line behind the start of the service
}

// recipes has them by language.
var recipes = map[string]recipe{
	"sh":     {"recipe.sh", []string{"sh", "recipe.sh"}, "auth="},
	"go":     {"client_test.go", []string{"go", "test", "client_test.go"}, "\treturn strings.TrimSuffix("},
	"js":     {"client.test.mjs", []string{"node", "--test", "client.test.mjs"}, "  const headers ="},
	"python": {"test_client.py", []string{"python3", "-W", "error", "-m", "unittest", "test_client.py"}, "    def call("},
}

// blocks returns the recipes of README.md in a language.
func (r recipe) blocks(t *testing.T, language string) []block {
	t.Helper()
	return slices.DeleteFunc(readme(t, language), func(b block) bool {
		return strings.Contains(b.code, "go test ") // what brought us here
	})
}

// play runs a recipe in a folder of its own in dir, and returns what it prints.
func (r recipe) play(t *testing.T, dir, code string, run ...string) (string, error) {
	t.Helper()
	need(t, run[0])
	cmd := command(t, run[0], run[1:]...)
	var err error
	if cmd.Dir, err = os.MkdirTemp(dir, "client"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cmd.Dir, r.file), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// besideClone returns a folder with a clone in it, called petstore, which has
// the built service.
func besideClone(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	clone := filepath.Join(dir, "petstore")
	os.MkdirAll(filepath.Join(clone, "api"), 0o755)
	for _, pattern := range []string{"*.go", "go.mod", "api/*"} {
		files, _ := filepath.Glob(pattern)
		for _, name := range files {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(name, "_test.go") {
				os.WriteFile(filepath.Join(clone, name), b, 0o600)
			}
		}
	}
	if err := os.Link(build(t), filepath.Join(clone, "petstore")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Helpers: reading api/openapi.json.

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

// Helpers: what fuzzing expects.

// expected tells what createPet must make of a body, in another way than the
// service does.
func expected(body []byte) (p NewPet, ok bool) {
	given := membersOf(body)
	if len(body) > maxBody || !utf8.Valid(body) || !json.Valid(body) || len(given["name"]) != 1 || len(given["categoryId"]) != 1 || len(given["status"]) > 1 {
		return p, false
	}
	name := given["name"][0]
	json.Unmarshal(name, &p.Name)
	ok = name[0] == '"' && !loneSurrogate(string(name), p.Name)
	var err error
	if p.CategoryID, err = strconv.ParseInt(string(given["categoryId"][0]), 10, 64); err != nil {
		ok = false
	}
	for _, status := range given["status"] {
		json.Unmarshal(status, &p.Status)
		ok = ok && (p.Status == Available || p.Status == Pending || p.Status == Sold)
	}
	return p, ok
}

// membersOf returns the values of each member of a JSON object, as they are
// spelt: none if it is no object.
func membersOf(object []byte) map[string][]json.RawMessage {
	values := map[string][]json.RawMessage{}
	dec := json.NewDecoder(bytes.NewReader(object))
	if token, _ := dec.Token(); token != json.Delim('{') {
		return values
	}
	for dec.More() {
		token, err := dec.Token()
		name, _ := token.(string)
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			break
		}
		values[name] = append(values[name], value)
	}
	return values
}

// loneSurrogate tells whether a JSON string escapes half a surrogate pair:
// encoding/json makes of it a U+FFFD that the string does not have.
func loneSurrogate(literal, text string) bool {
	literal = strings.ReplaceAll(literal, `\\`, "")
	has := strings.Count(literal, "\ufffd") + len(regexp.MustCompile(`(?i)\\ufffd`).FindAllString(literal, -1))
	return strings.Count(text, "\ufffd") > has
}

// Helpers: measuring.

// benchmark compares petstore with a bare net/http handler that has the same
// time limits and sends the same answer.
func benchmark(b *testing.B, petstore *process, request string) {
	b.Helper()
	resp := petstore.do(b, request)
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode >= 300 {
		b.Fatalf("%s: %s", request, body)
	}
	resp.Header.Del("Date")
	compare(b, petstore, startChild(b, string(encode(canned{resp.StatusCode, resp.Header, string(body)})), nil), request)
}

// compare reports what a request costs petstore and bare, in CPU time of their
// processes and in allocations. They take turns.
func compare(b *testing.B, petstore, bare *process, request string) {
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

	ourCPU, ourMallocs := petstore.used(b)
	bareCPU, bareMallocs := bare.used(b)
	b.ResetTimer()
	for done := 0; done < b.N; done += 500 {
		n := min(500, b.N-done)
		ours.send(b, n)
		theirs.send(b, n)
	}
	b.StopTimer()
	ourCPU2, ourMallocs2 := petstore.used(b)
	bareCPU2, bareMallocs2 := bare.used(b)
	per := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(b.N) }
	b.ReportMetric(0, "ns/op") // of both, and of the load
	b.ReportMetric(per(ourCPU2-ourCPU)/1000, "cpu-µs/op")
	b.ReportMetric(per(bareCPU2-bareCPU)/1000, "bare-cpu-µs/op")
	b.ReportMetric(per(ourCPU2-ourCPU)/max(per(bareCPU2-bareCPU), 1), "ratio")
	b.ReportMetric(float64(ourMallocs2-ourMallocs)/float64(b.N), "server-allocs/op")
	b.ReportMetric(float64(bareMallocs2-bareMallocs)/float64(b.N), "bare-allocs/op")
}

// canned is an answer for a handler that does nothing else than send it.
type canned struct {
	Status int
	Header http.Header
	Body   string
}

// serveChild is the process of a benchmark's server: a petstore, or a bare one
// that gives one canned answer, as JSON in mode. It answers each line on stdin with the CPU
// time and the number of allocations that it has used so far.
func serveChild(mode string) int {
	stdin := bufio.NewReader(os.Stdin)
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
		return run(context.Background(), os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	}
	var answer canned
	if err := json.Unmarshal([]byte(mode), &answer); err != nil {
		panic(err)
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

// startChild starts a serveChild.
func startChild(b testing.TB, mode string, stderr io.Writer, args ...string) *process {
	b.Helper()
	return launch(b, os.Args[0], "PETSTORE_TEST_CHILD="+mode, stderr, args...)
}

// used returns the CPU time and the allocations that the process has used.
func (p *process) used(b testing.TB) (cpu time.Duration, mallocs int) {
	b.Helper()
	fmt.Fprintln(p.in)
	var ticks int
	within(b, "the CPU time of a child", func() error { _, err := fmt.Fscan(p.out, &ticks, &mallocs); return err })
	return time.Duration(ticks) * 10 * time.Millisecond, mallocs
}

// load sends requests over connections that stay open, and reads the answers.
type load struct {
	request []byte
	conns   []*net.TCPConn
	bufs    []*bufio.ReadWriter
}

func newLoad(b testing.TB, addr, request string) *load {
	l := &load{request: []byte(request)}
	for range 8 {
		c := (&service{addr: addr}).dial(b, "")
		l.conns, l.bufs = append(l.conns, c), append(l.bufs, bufio.NewReadWriter(bufio.NewReaderSize(c, 16<<10), bufio.NewWriter(c)))
	}
	return l
}

// send sends n requests.
func (l *load) send(b testing.TB, n int) {
	together(len(l.conns), func(i int) {
		c := l.bufs[i]
		l.conns[i].SetDeadline(time.Now().Add(patience))
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
	})
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
