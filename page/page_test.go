// Package page holds the page of the service for browsers. Its only code is
// the test of the page in a browser.
package page

import (
	"bufio"
	"cmp"
	"encoding/base64"
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
	"strings"
	"syscall"
	"testing"
)

const (
	key      = "a%key/of+the=test"
	observer = "Petstore-Observer: test"
	rex      = `{"name":"Rex","categoryId":7}`
	markup   = `<img src=x onerror='document.title=0'>` // must be shown as text
)

// Keys, as WebDriver writes them.
const (
	tab, enter, escape  = "\ue004", "\ue007", "\ue00c"
	end, home, up, down = "\ue010", "\ue011", "\ue013", "\ue015"
)

// TestPage uses the page as people do, in a headless Chromium. It is skipped
// where there is no ChromeDriver. If PETSTORE_AXE names the file axe.min.js of
// axe-core, the test also checks the accessibility of the page. This takes
// page.png anew:
//
//	PETSTORE_PICTURE=page.png go test -run TestPage/Picture ./page
func TestPage(t *testing.T) {
	session := startBrowser(t)
	program := buildService(t)
	for _, tt := range []struct {
		name string
		run  func(*page)
	}{
		{"Key", testKey},
		{"Names", testNames},
		{"Presets", testPresets},
		{"AnotherFault", testAnotherFault},
		{"Sign", testSign},
		{"Waiting", testWaiting},
		{"Sent", testSent},
		{"Answer", testAnswer},
		{"List", testList},
		{"Filter", testFilter},
		{"Send", testSend},
		{"Copy", testCopy},
		{"Pets", testPets},
		{"Reset", testReset},
		{"Outage", testOutage},
		{"Looks", testLooks},
		{"Picture", testPicture},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &page{T: t, session: session, program: program}
			p.startService("127.0.0.1:0")
			p.resize(1280, "light")
			p.command("/url", map[string]any{"url": p.base + "/#key=" + url.QueryEscape(key)}, nil)
			p.see("#headline", "No fault")
			defer func() {
				// The console has nothing but requests that failed, such as a 401.
				var entries []struct{ Source, Message string }
				p.command("/se/log", map[string]any{"type": "browser"}, &entries)
				for _, entry := range entries {
					if entry.Source != "network" {
						p.Errorf("the console says %s, want nothing", entry.Message)
					}
				}
			}()
			tt.run(p)
		})
	}
}

// The page takes the key from the link or asks for it, and keeps it to itself.
func testKey(p *page) {
	p.equal("location.href", p.base+"/") // the address does not show the key
	p.command("/refresh", struct{}{}, nil)
	p.see("#headline", "No fault") // the tab remembers the key

	p.eval("sessionStorage.clear()")
	p.command("/refresh", struct{}{}, nil)
	p.see("#keyForm", "API key", "#desk", "", "#headline", "")
	p.equal("document.activeElement.id", "keyField")
	p.fill("API key", "wrong")
	p.click("Open")
	p.see("#keyError", "not the API key")
	p.fill("API key", " "+key+" ")
	p.click("Open")
	p.see("#headline", "No fault", "#keyForm", "")

	// A link with a key can be pasted into the address of an open page. A late
	// 401 for the key before it changes nothing.
	p.eval("hold((path, {headers}) => headers.Authorization === 'Bearer old'); location.hash = '#key=old'")
	p.equal("held > 0", true)
	p.eval("location.hash = '#key=' + arguments[0]", url.QueryEscape(key))
	p.equal("location.href", p.base+"/")
	p.eval("release()")
	p.send("GET /v1/pets/1", "")
	p.rows("GET 404 /v1/pets/1")
	p.see("#keyForm", "")
}

// The page offers the operations and the codes that openapi.json names.
func testNames(p *page) {
	type schema struct {
		Enum    []string
		Pattern string
	}
	var document struct {
		Components struct{ Schemas map[string]schema }
	}
	if err := json.Unmarshal([]byte(p.send("GET /openapi.json", "").body), &document); err != nil {
		p.Fatal(err)
	}
	schemas := document.Components.Schemas
	operations := append([]string{""}, schemas["FaultOperation"].Enum...)
	p.equal("$$('[name=operation][type=radio]').map(({value}) => value)", operations)
	first, _, _ := strings.Cut(schemas["FaultCode"].Pattern, ")")
	words := regexp.MustCompile(`[a-z]+`).FindAllString(first, -1)
	if len(words) == 0 {
		p.Fatalf("the pattern of FaultCode is %q, want words", schemas["FaultCode"].Pattern)
	}
	p.equal("$$('fieldset code').map(shown).map((text) => text.replace('code=', ''))"+
		".filter((name) => /^[a-z]+$/.test(name))", words)
	p.equal("$$('#presets button').every(({title}) => title.includes('the operation'))", true)
}

// Each preset sets its fault, which does to a client what its name says. The
// fault releases what it holds.
func testPresets(p *page) {
	tests := []struct {
		label, parameters string
		added             bool // the pet of the request
		status            int  // that the client gets, or 0 if it gets no answer
		err               error
		row               string
		held              bool // until the fault ends
	}{
		{"Slow by 3 s", `"delay":"3"`, true, 201, nil, "POST 201 /v1/pets delay=3", true},
		{"Hold", `"delay":"30"`, true, 201, nil, "POST 201 /v1/pets delay=30", true},
		{"503", `"code":"503"`, false, 503, nil, "POST 503 /v1/pets code=503", false},
		{"429", `"code":"429"`, false, 429, nil, "POST 429 /v1/pets code=429", false},
		{"Hang up", `"code":"hangup"`, false, 0, io.EOF, "POST no answer /v1/pets code=hangup", false},
		{"TCP reset", `"code":"rst"`, false, 0, syscall.ECONNRESET, "POST no answer /v1/pets code=rst", false},
		{"Answer lost", `"code":"lost"`, true, 0, io.EOF, "POST no answer /v1/pets code=lost", false},
		{"Answer cut", `"code":"truncate"`, true, 201, io.ErrUnexpectedEOF, "POST 201 /v1/pets code=truncate", false},
		{"Answer stalls", `"code":"stall"`, true, 201, io.ErrUnexpectedEOF, "POST 201 /v1/pets code=stall", true},
		{"Slow body", `"code":"drip"`, true, 201, nil, "POST 201 /v1/pets code=drip", true},
		{"HTML", `"code":"html"`, true, 502, nil, "POST 502 /v1/pets code=html", false},
	}
	p.click("createPet", "Every time")
	var rows []string
	for i, tt := range tests {
		p.click(tt.label)
		p.see("#sign.active #headline", tt.label, "#meaning", "the operation")
		p.equal("document.title", tt.label+" – Petstore")
		want := "{" + tt.parameters + `,"operation":"createPet","matched":0,"applied":0,"held":0}`
		if got := strings.TrimSpace(p.send("GET /__admin/fault", "").body); got != want {
			p.Errorf("%s: the fault is %s, want %s", tt.label, got, want)
		}

		pet := fmt.Sprintf(`"categoryId":%d}`, i)
		client := p.start("POST /v1/pets", `{"name":"Rex",`+pet)
		if tt.held {
			p.see("#counters", "held 1")
			p.click("Release")
		}
		if r := <-client; r.status != tt.status || !errors.Is(r.err, tt.err) {
			p.Errorf("%s: got %+v, want the status %d and the error %v", tt.label, r, tt.status, tt.err)
		}
		pets := p.send("GET /v1/pets?limit=100", "", observer).body
		if strings.Contains(pets, pet) != tt.added {
			p.Errorf("%s: got the pets %s, want the new one: %t", tt.label, pets, tt.added)
		}
		rows = append(rows, tt.row)
		p.rows(rows...)
	}
	p.equal("$$('#presets button').length", len(tests))
	p.click("End the fault")
	p.see("#sign.calm #headline", "No fault", "#counters", "", "#end", "", "#parameters", "")
	p.equal("document.title + document.activeElement.id", "Petstorelist")
	p.want("POST /v1/pets", rex, 201)
}

// A fault of any kind can be set with the fields, which are then empty. What the
// service refuses is told in its words.
func testAnotherFault(p *page) {
	p.click("listPets", "Once", "Another fault") // which is for the presets
	p.fill("code", " 500 ", "delay", "0.1", "answer-delay", "0.2", "retry-after", "7",
		"skip", "1", "times", "3", "operation", "createPet")
	p.click("Set this fault")
	p.see("#headline", "Slow by 0.1 s, 500, Answer slow by 0.2 s", "#parameters",
		"code=500 delay=0.1 answer-delay=0.2 retry-after=7 operation=createPet skip=1 times=3")
	p.equal("$$('#anotherForm input').every(({value}) => value === '')", true)
	p.fill("code", "503,lost", "times", "2")
	p.click("Set this fault")
	p.see("#refusal", "times cannot be given with a list of codes", "#headline", "500")
	p.equal("$('[name=code]').value", "503,lost")
	p.fill("times", "")
	p.click("Set this fault")
	p.see("#refusal", "", "#headline", "503, Answer lost")
}

// The sign says what the fault is, and how far it has come.
func testSign(p *page) {
	const progress = "$$('#headline .used').length + shown('#headline .next')"
	p.send("PUT /__admin/fault?code=503,lost,429&skip=1", "")
	p.see("#headline", "503, Answer lost, 429", "#parameters", "code=503,lost,429 skip=1", "#meaning", "")
	p.equal("shown('#parameters')", "code=503,lost,429 skip=1")
	p.equal(progress, "0503")
	p.want("GET /v1/pets", "", 200)
	p.see("#counters", "applied 0 matched 1 held 0 to come 3")
	p.equal(progress, "0503")
	p.want("GET /v1/pets", "", 503, 0)
	p.see("#counters", "applied 2 matched 3 held 0 to come 1")
	p.equal(progress, "2429")
	p.want("GET /v1/pets", "", 429, 200)
	p.see("#sign.over #headline", "Used up, 503, Answer lost, 429", "#counters", "applied 3 matched 5 held 0 to come 0")
	p.click("Every time", "All", "503")
	p.see("#sign.active #headline", "503")
	p.want("GET /v1/pets", "", 503)
	p.equal("shown('#counters')", "applied 1 matched 1 held 0")

	// A list that is long keeps the next code in sight, also in a narrow window.
	p.resize(320, "light")
	p.send("PUT /__admin/fault?code="+strings.Repeat("hangup,", 30)+"418", "")
	p.see("#headline", "418")
	p.want("GET /v1/pets", "", make([]int, 30)...)
	p.see("#headline .next", "418")
	p.equal("$('.next').getBoundingClientRect().top < headline.getBoundingClientRect().bottom - 9", true)
	p.equal("document.documentElement.scrollWidth <= innerWidth", true)
}

// A request that waits is a row as any other, and is told apart from others that
// are nearly the same.
func testWaiting(p *page) {
	p.click("Every time", "Hold")
	p.see("#headline", "Hold")
	p.eval(`window.first = new AbortController();
		const headers = {Authorization: "Bearer " + arguments[0], Client: "a"};
		fetch(new Request("/v1/pets", {method: "POST", headers, body: "{}", signal: first.signal})).catch(() => {});`, key)
	p.rows("POST waiting 0 s /v1/pets delay=30")
	second := p.start("POST /v1/pets", rex, "User-Agent: two", "Client: b")
	p.see("#counters", "held 2", "#count", "2, 2 waiting")
	p.eval("list.children[1].click()")
	p.see("#paneTitle", "POST /v1/pets", "#result", "waiting", "#details", rex, "#details", "Client b",
		"#details", "delay=30 Before the operation, the request waits")
	p.see("#result", "waiting 1 s")
	p.see("#list [aria-selected=true] b", "waiting 1 s")
	p.equal("copy.checkVisibility() && sendAgain.checkVisibility()", true)
	p.fill("Filter", "two waiting")
	p.see("#count", "1 of 2, 2 waiting")
	p.eval("first.abort()")
	p.see("#count", "1 of 2, 1 waiting", "#result", "waiting", "#details", "Client b") // still
	p.fill("Filter", "")
	p.click("Release")
	p.see("#headline", "No fault", "#result", "201", "#details", "Client b", "#count", "2")
	p.equal("shown('#count')", "2")
	p.equal("list.querySelector('[aria-selected=true] .client').textContent", "two")
	if r := <-second; r.status != 201 {
		p.Errorf("the released client gets %+v, want 201", r)
	}
	p.equal("$$('#petRows tr').length", 1)
}

// What a client sent, and the answer, are shown as they are, and as text.
func testSent(p *page) {
	p.send("POST /v1/pets?stauts=sold", `{ "name" : "`+markup+`", "categoryId":9007199254740993, "x":0}`,
		"User-Agent: "+markup, "X-Empty: ", "X-Name: \u202e", "Prefer: speed=3, answer-delay=0.1", "Origin: http://a.test")
	p.rows("POST 201 /v1/pets?stauts=sold answer-delay=0.1 ignored: speed, stauts, x")
	p.see("#petRows", "1 "+markup, "#list .client", markup)
	p.click("POST 201")
	p.see("#paneTitle", "POST /v1/pets?stauts=sold", "#details", "operation createPet",
		"#details", "answer-delay=0.1 Before the answer", "#details", "ignored speed, stauts, x",
		"#details", `{ "name" : "`+markup+`", "categoryId":9007199254740993, "x":0}`, "#details", "X-Empty",
		"#details", "X-Name ⟨U+202e⟩", "#details", "Authorization Bearer <API_KEY>",
		"#details", "Location /v1/pets/1", "#details", `{ "id": 1, "name": "`+markup+`", "categoryId": 9007199254740993 }`)
	p.equal("pane.innerText.includes('Access-Control')", false)
	p.equal("/seconds\\s0\\.1\\d\\d/.test(pane.innerText)", true)
	p.equal("list.querySelector('.time').textContent === /time\\s+\\S+T(\\S+)Z/.exec(pane.innerText)[1]", true)
	p.equal("$$('#desk img').length + document.title", "0Petstore")

	// The pause since the row above is negative if that one came later.
	p.send("GET /v1/pets", "", "Prefer: delay=0.3")
	slow := p.start("GET /v1/pets/7", "", "Prefer: delay=0.3")
	p.see("#list", "waiting")
	p.send("GET /v1/pets/8", "")
	<-slow
	p.see("#count", "4")
	p.equal("[...list.children].map((row) => row.querySelector('.pause').textContent[0] ?? '').join('')", "++−")
}

// The pane says how much of an answer was sent, and gives no seconds for one that
// is sent slowly.
func testAnswer(p *page) {
	p.send("POST /v1/pets", rex)
	p.send("POST /v1/pets?long", `{"name":"x`+strings.Repeat("🦎", 300)+`","categoryId":1}`)
	p.see("#petRows", "2 x")
	for _, fault := range []string{"hangup", "lost", "truncate", "html", "503"} {
		p.send("GET /v1/pets/1?"+fault, "", "Prefer: code="+fault)
	}
	p.send("PUT /__admin/fault?code=stall,stall", "")
	left := p.start("HEAD /v1/pets/1?head-stall", "")
	p.see("#counters", "held 1")
	p.start("GET /v1/pets/1?stall", "")
	p.see("#counters", "held 2")
	p.send("HEAD /v1/pets/1?head", "")
	p.see("#count", "10")
	for url, title := range map[string]string{
		"?long":       "Answer, here its first 1000 of 1",
		"?hangup":     "No answer was sent",
		"?lost":       "Answer, which the client did not get",
		"?truncate":   "Answer, of which half was sent",
		"?html":       "Answer",
		"?503":        "Answer",
		"?head-stall": "Answer, which the client did not get",
		"?stall":      "Answer, of which half was sent",
		"?head":       "Answer, sent without its body",
	} {
		p.eval("[...list.children].find((row) => row.querySelector('.url').textContent.endsWith(arguments[0])).click()", url)
		p.see("#paneTitle", url, "#details h3:nth-of-type(2)", title)
		p.equal("/seconds\\s\\d/.test(shown('#details'))", !strings.Contains(url, "stall"))
		p.equal("shown('#details').includes('the client did not get')", strings.Contains(title, "not get"))
	}
	p.click("Release")
	<-left
}

// The list follows its end, unless one has scrolled up. It is one Tab stop, and
// the arrow keys move the selection.
func testList(p *page) {
	sent := 0
	send := func(n int) {
		p.Helper()
		for range n {
			sent++
			p.send(fmt.Sprintf("GET /v1/pets/%d?", sent), "")
		}
		p.equal("list.children.length", min(sent, 1000))
	}
	const isAtEnd = "list.scrollTop + list.clientHeight > list.scrollHeight - 8"
	const scrolled = "return new Promise((resolve) => list.addEventListener('scroll', resolve))"
	send(60)
	p.equal(isAtEnd, true)
	p.eval("list.scrollTop = 300; " + scrolled)
	send(3)
	p.equal("list.scrollTop", 300)
	p.eval("list.scrollTop = list.scrollHeight; " + scrolled)
	send(1)
	p.equal(isAtEnd, true)

	p.eval("list.focus()")
	for _, tt := range []struct {
		key  string
		want int
	}{{up, 64}, {up, 63}, {home, 1}, {down, 2}, {up, 1}, {up, 1}, {end, 64}, {down, 64}} {
		p.press(tt.key)
		p.see("#paneTitle", fmt.Sprintf("/v1/pets/%d?", tt.want))
		p.equal("shown('#list [aria-selected=true] .url')", fmt.Sprintf("/v1/pets/%d?", tt.want))
		p.equal("list.getAttribute('aria-activedescendant') === $('[aria-selected=true]').id", true)
	}
	p.press(enter)
	p.equal("document.activeElement.id", "pane")
	p.press(escape)
	p.see("#pane", "")
	p.equal("document.activeElement.id + $$('#list [aria-selected=true]').length", "list0")
	p.press(tab)
	p.equal("list.contains(document.activeElement)", false)

	// The page keeps as many requests as the service.
	send(938)
	p.see("#count", "1000 of 1002")
	p.equal("$('#list .url').textContent", "/v1/pets/3?")
	p.equal(isAtEnd, true)
}

// The filter finds the requests that have all its words, and says how many.
func testFilter(p *page) {
	p.send("POST /v1/pets?x=1", `{"body":0,`+rex[1:], "User-Agent: shop/2.1")
	p.send("GET /v1/pets?404&post", "", "X-Id: Ünïque")
	p.send("GET /v1/pets/7", "", "User-Agent: admin/1.4")
	p.send("GET /v1/pets", "", "Prefer: code=lost")
	p.see("#count", "4")
	for _, tt := range []struct{ filter, want string }{
		{"?404", "/v1/pets?404&post"},
		{"x-id: ünïque", "/v1/pets?404&post"},
		{"  SHOP body ", "/v1/pets?x=1"},
		{"createpet 201", "/v1/pets?x=1"},
		{"there is no", "/v1/pets/7"},
		{"code=lost no answer", "/v1/pets"},
		{"location: /v1/pets/1", "/v1/pets?x=1"},
		{"?y", ""},
		{"", "/v1/pets?x=1 /v1/pets?404&post /v1/pets/7 /v1/pets"},
	} {
		p.Logf("filter %q", tt.filter) // shown if the test fails
		p.fill("Filter", tt.filter)
		p.equal("[...list.children].map((row) => shown(row.querySelector('.url'))).join(' ')", tt.want)
	}
	p.equal("found.textContent", "4 requests")

	// What is selected stays in the pane, and is in sight when it is found.
	p.click("/v1/pets/7")
	p.fill("Filter", "shop")
	p.equal("found.textContent + found.role", "1 of 4 requestsstatus")
	p.see("#paneTitle", "/v1/pets/7", "#count", "1 of 4")
	p.equal("$$('[aria-selected=true]').length", 0)
	p.fill("Filter", "")
	p.equal("shown('[aria-selected=true] .url')", "/v1/pets/7")
}

// The page is a client: what it sends is recorded, and faults are applied to it.
func testSend(p *page) {
	p.click("Add a pet")
	p.see("#notice", "This browser got 201.", "#petRows", "1 Rex available")
	p.click("503")
	p.see("#headline", "503")
	p.click("List pets")
	p.see("#notice", "This browser got 503.")
	p.rows("POST 201 /v1/pets", "GET 503 /v1/pets code=503")
	p.click("POST 201", "Send again")
	p.see("#petRows", "2 Rex available 1 Rex", "#paneTitle", "POST /v1/pets")
	p.rows("POST 201 /v1/pets", "GET 503 /v1/pets code=503", "POST 201 /v1/pets")
	p.click("Answer cut")
	p.see("#headline", "Answer cut")
	p.click("Add a pet")
	p.see("#notice", "This browser got 201, and not the whole body.")
	p.click("Every time", "Hang up")
	p.see("#headline", "Hang up")
	p.click("Add a pet")
	p.see("#notice", "This browser got no answer.")

	// At most two wait at a time, so that the page has connections to go on.
	p.click("Hold")
	p.see("#headline", "Hold")
	p.click("List pets", "List pets")
	p.see("#counters", "held 2")
	p.click("List pets")
	p.see("#notice", "Not sent: 2 requests of this page still wait.")
	p.click("Release")
	p.see("#notice", "This browser got 200.", "#headline", "No fault")

}

// A copied line sends the same request in each shell, and runs nothing. Many of
// the requests here were made to harm whoever pastes them.
func testCopy(p *page) {
	tests := []struct{ request, body, header string }{
		{"POST /v1/pets", `{"name":"it's <b> \"$KEY\""}`, "Content-Type: application/json"},
		{"GET /v1/pets?status={a}[1-2]", "", "Prefer: code=418, wait=1"},
		{"HEAD /v1/pets/../pets", "", ""},
		{"PATCH /v1/pets", "@no 'file'", "Content-Type: text/plain"},
		{"GET /v1/pets", "", "X-Id: "},
		{"`touch$IFS'PWN'` /v1/';touch${IFS}PWN;'", "", ""},
		{"GET /@evil.test/steal", "", ""},
		{"GET /v1/pets", "", "X-Id: @/etc/passwd';touch PWN;#"},
		{"POST /v1/pets", `\';touch PWN;#\`, ""},
		{"POST /v1/pets", "`touch PWN` $(touch PWN) !touch '!touch' %PATH% ~ ?*", ""},
	}
	for _, tt := range tests {
		p.send(tt.request, tt.body, tt.header)
	}
	p.see("#count", fmt.Sprint(len(tests)))

	// The journal in lines, without the headers that curl sends by itself.
	own := regexp.MustCompile(`"(Accept|Accept-Encoding|Connection|Content-Length|Host|User-Agent)":"[^"]*",?`)
	entry := regexp.MustCompile(`"method":.*,"status"`)
	journal := func() []string {
		text := p.send("GET /__admin/requests", "").body
		return entry.FindAllString(own.ReplaceAllString(text, ""), -1)
	}
	sent := journal()
	var lines []string
	for i := range tests {
		p.eval("list.children[arguments[0]].click(); window.copied = null", i)
		p.click("Copy as curl")
		p.equal("copied === null", false)
		p.see("#notice", "Copied, with the key.")
		lines = append(lines, p.eval("return copied").(string))
	}
	for _, shell := range []string{"sh", "dash", "bash", "zsh", "fish"} {
		if _, err := exec.LookPath(shell); err != nil {
			p.Logf("%s is not installed", shell)
			continue
		}
		p.send("DELETE /__admin/requests", "")
		cmd := exec.Command(shell, "-c", strings.Join(lines, "\n"))
		cmd.Dir = p.TempDir()
		cmd.Env = append(os.Environ(), "no_proxy=127.0.0.1")
		output, _ := cmd.CombinedOutput() // curl fails if there is no answer
		files, err := os.ReadDir(cmd.Dir)
		if got := journal(); !slices.Equal(got, sent) || len(files) > 0 || err != nil {
			p.Errorf("in %s, the lines send\n%s\nwant\n%s\nand write the files %v (%v), and print %s",
				shell, strings.Join(got, "\n"), strings.Join(sent, "\n"), files, err, output)
		}
	}

	// What is not known whole, would go elsewhere, or a terminal would act on or not
	// keep, is not copied.
	for _, tt := range []struct{ request, body, want, buttons string }{
		{"POST /v1/pets", "a\nb", "newlines or control characters", "Send again"},
		{"POST /v1/pets", "\x1b[31m", "newlines or control characters", "Send again"},
		{"POST /v1/pets", "a\tb", "newlines or control characters", "Send again"},
		{"POST /v1/pets", strings.Repeat("é", 450), "more than 1000 bytes", "Send again"},
		{"GET a:@evil.test/x", "", "does not begin with a slash", ""},
		{"GET /v1/pets?\xff", "", "not UTF-8", ""},
		{"POST /v1/pets", strings.Repeat("x", 70_000), "does not have its body", ""},
		{"GET /v1/pets", "", "", "Send again Copy as curl"},
	} {
		p.send("DELETE /__admin/requests", "")
		p.see("#noRequests", "No requests")
		p.send(tt.request, tt.body)
		p.equal("list.children.length", 1)
		p.eval("list.lastElementChild.click()")
		p.see("#obstacle", tt.want)
		p.equal("[sendAgain, copy].map(shown).join(' ').trim()", tt.buttons)
	}
}

// Pets are listed whoever adds them: the last 100, with exact ids. One that has
// vanished leaves with the next request.
func testPets(p *page) {
	p.send("POST /v1/pets", rex, observer)
	p.see("#petRows", "1 Rex", "#noRequests", "No requests")
	seed := "[" + strings.Repeat(rex+",", 250) + `{"id":9007199254740993,` + rex[1:] + "]"
	p.send("POST /__admin/reset", seed)
	p.see("#petRows", "9007199254740993 Rex 250 Rex")
	p.equal("$$('#petRows tr').length", 100)
	p.send("POST /v1/pets", rex)
	p.see("#petRows", "9007199254740994 Rex 9007199254740993 Rex")
	p.eval(`const read = window.fetch;
		window.fetch = async (path, init) => {
			const answer = await read(path, init);
			const text = typeof path === "string" && path.startsWith("/v1/pets") && await answer.clone().text();
			return text ? new Response(text.replace(/,?\{"id":9007199254740994.*?\}/, ""), answer) : answer;
		};`)
	p.send("GET /v1/pets", "")
	p.equal("petRows.textContent.includes('9007199254740994')", false)
}

// Clear and Reset all ask first. When somebody else resets, or the service starts
// again, the page reads everything anew.
func testReset(p *page) {
	p.send("POST /v1/pets", rex)
	p.send("PUT /__admin/fault?code=503&operation=getPet", "")
	p.see("#headline", "503", "#list", "201", "#petRows", "1 Rex")
	p.eval("window.answer = false")
	p.click("Reset all", "Clear")
	p.equal("asked", "Remove all requests, for everybody?")
	p.eval("window.answer = true")
	p.click("POST 201", "Clear")
	p.see("#noRequests", "No requests", "#headline", "503", "#petRows", "1 Rex", "#pane", "")
	p.send("GET /v1/pets", "")
	p.rows("GET 200 /v1/pets")
	p.click("Reset all")
	p.see("#noRequests", "No requests", "#headline", "No fault", "#petRows", "")

	p.send("POST /v1/pets", rex)
	p.send("GET /v1/pets/2", "")
	for _, request := range []string{"DELETE /__admin/requests", "POST /__admin/reset"} {
		p.click("GET 404 /v1/pets/2")
		p.see("#paneTitle", "/v1/pets/2", "#petRows", "1 Rex")

		// Between two readings, more requests come than there were before.
		p.eval("hold((path) => path.startsWith('/__admin/requests'))")
		p.equal("held", 1)
		p.send(request, "")
		for _, id := range "23456" {
			p.send("GET /v1/pets/"+string(id), "")
		}
		p.eval("release()")
		p.rows("GET 404 /v1/pets/2", "GET 404 /v1/pets/3", "GET 404 /v1/pets/4",
			"GET 404 /v1/pets/5", "GET 404 /v1/pets/6")
		p.see("#paneTitle", "/v1/pets/2", "#count", "5") // which is still being read
		p.equal("$$('[aria-selected=true]').length", 0)
	}
	p.see("#petRows", "")
	p.stop()
	p.see("#sign.trouble", "Petstore does not answer.")
	p.startService(strings.TrimPrefix(p.base, "http://"))
	p.see("#sign.calm #headline", "No fault", "#noRequests", "No requests")
}

// The page says so while the service does not answer, and what it said then goes
// when it is back.
func testOutage(p *page) {
	p.send("POST /v1/pets", rex)
	p.send("PUT /__admin/fault?code=503&operation=getPet", "")
	p.start("GET /v1/pets", "", "Prefer: delay=30")
	p.see("#headline", "503", "#list", "waiting")
	p.click("GET waiting")
	p.click("Another fault")
	p.fill("code", "777")
	p.click("Set this fault")
	p.see("#refusal", "code is 777; it must be")
	p.eval("window.intercept = () => Promise.reject(new TypeError('lost'))")
	p.see("#sign.trouble #headline", "Petstore does not answer.", "#counters", "", "#end", "", "#pane", "")
	p.rows("POST 201 /v1/pets") // nothing is known of what waits
	p.equal("document.title", "Petstore does not answer. – Petstore")
	p.see("#sign.trouble", "This page goes on asking.", "#refusal", "code is 777")
	p.eval("window.intercept = null")
	p.see("#sign.active #headline", "503", "#list", "waiting", "#refusal", "")

	// Before the first answer, the page does not say that all is well.
	p.command("/url", map[string]any{"url": "about:blank"}, nil)
	script := p.devtools("Page.addScriptToEvaluateOnNewDocument",
		map[string]any{"source": "hold((path) => path.startsWith('/__admin/'))"})
	p.command("/url", map[string]any{"url": p.base}, nil)
	p.see("#requestsTitle", "Requests", "#headline", "", "#noRequests", "", "#keyForm", "")
	p.devtools("Page.removeScriptToEvaluateOnNewDocument", script)
	p.eval("release()")
	p.see("#sign.active", "503")

	// A service with another key.
	p.stop()
	p.key = "other"
	p.startService(strings.TrimPrefix(p.base, "http://"))
	p.see("#keyError", "this is not the API key", "#headline", "", "#desk", "")
	p.fill("API key", "other")
	p.click("Open")
	p.see("#headline", "No fault", "#noRequests", "No requests")
}

// The page is accessible in light and dark, and fits into narrow windows.
func testLooks(p *page) {
	script := "return ''"
	if file := os.Getenv("PETSTORE_AXE"); file != "" {
		axe, err := os.ReadFile(file)
		if err != nil {
			p.Fatal(err)
		}
		script = string(axe) + `; return axe.run().then(({violations}) => JSON.stringify(
			violations.map(({id, nodes}) => [id, ...nodes.map(({html}) => html)])).slice(1, -1));`
	}
	check := func() {
		p.Helper()
		for _, width := range []int{1280, 390} {
			for _, scheme := range []string{"light", "dark"} {
				p.resize(width, scheme)
				if got := p.eval(script); got != "" {
					p.Errorf("%d px, %s: axe-core finds %s", width, scheme, got)
				}
			}
		}
		p.resize(320, "light")
		p.equal("document.documentElement.scrollWidth <= innerWidth", true)
		p.resize(1280, "light")
	}
	check()
	p.press(tab)
	p.equal("document.activeElement.id", "skip")
	p.press(enter)
	p.equal("document.activeElement.id", "list") // also while it is empty
	long := "POST /v1/pets?" + strings.Repeat("long", 100)
	p.send("PUT /__admin/fault?code=503", "")
	p.send("POST /v1/pets", strings.Replace(rex, "Rex", strings.Repeat("R", 500), 1), observer)
	p.send("GET /v1/pets/7", "", "Authorization: Bearer none")
	p.send(long, rex, "X-Long: "+long)
	p.start("GET /v1/pets", "", "Prefer: delay=30")
	p.see("#list", "waiting", "#counters", "applied 1", "#petRows", "RRR")
	p.click("long")
	p.see("#details", long)
	check()
	const right = ".getBoundingClientRect().right"
	p.equal("$$('#list .tag').every((tag) => tag"+right+" <= tag.parentElement"+right+
		" && tag.scrollWidth <= tag.clientWidth)", true)
	p.click("Another fault")
	p.fill("code", "777")
	p.click("Set this fault")
	p.see("#refusal", "777")
	check()
	p.eval("location.hash = '#key=wrong'")
	p.see("#keyError", "not the API key")
	check()
}

// The picture of README shows a client that tries again.
func testPicture(p *page) {
	file := os.Getenv("PETSTORE_PICTURE")
	if file == "" {
		p.Skip("PETSTORE_PICTURE names no file")
	}
	const milo = `POST /v1/pets {"name":"Milo","categoryId":3,"status":"available"}`
	p.send("PUT /__admin/fault?code=lost,503,429,truncate&operation=createPet&skip=3", "")
	for _, request := range []string{
		`POST /v1/pets {"name":"Bella","categoryId":2,"status":"pending"}`,
		`POST /v1/pets {"name":"Zoë","categoryId":3,"status":"sold"}`,
		"GET /v1/pets?limit=20 ",
		"GET /v1/pets?stauts=sold ",
		`POST /v1/pets {"name":"Rex","categoryId":"7"}`,
		"GET /v1/pets/7 ",
		milo, milo, milo,
	} {
		i := strings.LastIndex(request, " ")
		p.send(request[:i], request[i+1:], "User-Agent: shop/2.1")
		p.eval("return new Promise((resolve) => setTimeout(resolve, 150 + 400 * Math.random()))")
	}
	p.start("GET /v1/pets?status=available", "", "User-Agent: admin/1.4", "Prefer: delay=30")
	p.see("#counters", "to come 1", "#petRows", "3 Milo", "#list", "waiting 2 s")
	p.click("no answer")
	p.see("#details", "which the client did not get")
	p.eval("document.activeElement.blur()")
	shot := p.devtools("Page.captureScreenshot", map[string]any{}).(map[string]any)
	picture, err := base64.StdEncoding.DecodeString(shot["data"].(string))
	if err := errors.Join(err, os.WriteFile(file, picture, 0o644)); err != nil {
		p.Fatal(err)
	}
}

// The rest of this file has the helpers of the tests.

// page is the page of one service, in a browser that W3C WebDriver controls.
type page struct {
	*testing.T
	session string // the URL of the session in the browser
	program string // the file of the service
	key     string // of the service, or empty for that of the test
	base    string // the URL of the service
	stop    func() // ends the service
}

// helpers run before the script of the page. They have short names for the
// expressions in this file, and a hook: the function intercept is called before the
// page reads or changes something, and may hold it or throw an error.
const helpers = `
	window.$ = (selector) => document.querySelector(selector);
	window.$$ = (selector) => [...document.querySelectorAll(selector)];
	window.shown = (what) => {
		const element = typeof what === "string" ? $(what) : what;
		return element?.checkVisibility() ? element.innerText.replace(/\s+/g, " ").trim() : "";
	};
	window.see = (selector, text) =>
		text && shown(selector).includes(text) ? text : shown(selector);
	window.rows = () => [...list.children].map((row) =>
		[...row.querySelectorAll(".method, b, .url, .tag")].map(shown).join(" "));
	window.until = async (look, want) => {
		const end = Date.now() + 30_000;
		while (JSON.stringify(look() ?? null) !== JSON.stringify(want) && Date.now() < end) {
			await new Promise((resolve) => setTimeout(resolve, 10));
		}
		return look() ?? null;
	};
	window.hold = (isHeld) => {
		const end = new Promise((resolve) => { window.release = resolve; });
		window.held = 0;
		window.intercept = (path, init) => {
			if (isHeld(path, init)) {
				held++;
				return end;
			}
		};
	};
	const realFetch = window.fetch;
	window.fetch = async (path, init) => {
		if (!(path instanceof Request)) { // which the page sends as a client
			await window.intercept?.(path, init);
		}
		return realFetch(path, init);
	};
	window.confirm = (question) => {
		window.asked = question;
		return window.answer ?? true;
	};
	if (navigator.clipboard) { // not in an empty tab
		navigator.clipboard.writeText = async (text) => { window.copied = text; };
	}`

// equal waits for half a minute at most until an expression has a value in the page.
func (p *page) equal(expression string, want any, args ...any) {
	p.Helper()
	got := p.eval("return until(() => "+expression+", [...arguments].at(-1))", append(args, want)...)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		p.Fatalf("%s %q:\n got %v\nwant %v, in\n%.1500s",
			expression, args, got, want, p.eval("return shown('body')"))
	}
}

// see takes pairs of a selector and a text. It waits until each element shows a
// text that contains the other one or, for "", until it shows nothing.
func (p *page) see(pairs ...string) {
	p.Helper()
	for i := 0; i < len(pairs); i += 2 {
		p.equal("see(...arguments)", pairs[i+1], pairs[i])
	}
}

// rows waits until the list has these rows: method, outcome, URL and tags.
func (p *page) rows(want ...string) {
	p.Helper()
	p.equal("rows()", append([]string{}, want...))
}

// click clicks, one after the other, on the first button, label or row that shows
// each of these texts.
func (p *page) click(texts ...string) {
	p.Helper()
	const find = `[...$$("button, summary, label"), ...$$("[role=option]")]
		.find((one) => shown(one).includes(arguments[0]))`
	for _, text := range texts {
		p.equal("Boolean("+find+")", true, text)
		for _, id := range p.eval("return "+find, text).(map[string]any) {
			p.command(fmt.Sprintf("/element/%s/click", id), struct{}{}, nil)
		}
	}
}

// fill takes pairs of a label and the text for its field.
func (p *page) fill(pairs ...string) {
	p.Helper()
	for i := 0; i < len(pairs); i += 2 {
		p.eval(`
			const nameOf = (field) => field.ariaLabel ?? field.labels[0].innerText.trim();
			const field = $$("input").find((one) => nameOf(one) === arguments[0]);
			field.value = arguments[1];
			field.dispatchEvent(new Event("input", {bubbles: true}));`, pairs[i], pairs[i+1])
	}
}

// press presses a key where the focus is.
func (p *page) press(key string) {
	for _, id := range p.eval("return document.activeElement").(map[string]any) {
		p.command(fmt.Sprintf("/element/%s/value", id), map[string]any{"text": key}, nil)
	}
}

// response is what a client got: no status if it got no answer, and an error if
// it did not get the whole of one.
type response struct {
	status int
	body   string
	err    error
}

// client does not keep connections: on a kept one, it would repeat a request
// that gets no answer.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// start sends a request as another client, such as "GET /v1/pets". It sends the
// target and the headers as they are.
func (p *page) start(request, body string, headers ...string) <-chan response {
	method, target, _ := strings.Cut(request, " ")
	req, err := http.NewRequest(method, p.base, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	req.URL.Opaque = target
	req.Header.Set("Authorization", "Bearer "+key)
	for _, header := range headers {
		if name, value, ok := strings.Cut(header, ": "); ok {
			req.Header[name] = []string{value}
		}
	}
	done := make(chan response, 1)
	go func() {
		resp, err := client.Do(req)
		if err != nil {
			done <- response{err: err}
			return
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		done <- response{resp.StatusCode, string(got), err}
	}()
	return done
}

// send is like start, but waits for the answer.
func (p *page) send(request, body string, headers ...string) response {
	return <-p.start(request, body, headers...)
}

// want sends a request for each of these statuses, where 0 means no answer.
func (p *page) want(request, body string, statuses ...int) {
	p.Helper()
	for _, status := range statuses {
		if r := p.send(request, body); r.status != status {
			p.Errorf("%s %s: got the status %d, want %d", request, body, r.status, status)
		}
	}
}

// resize sets the width of the window in pixels, and whether it is light or dark.
func (p *page) resize(width int, scheme string) {
	p.devtools("Emulation.setDeviceMetricsOverride",
		map[string]any{"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false})
	features := []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}
	p.devtools("Emulation.setEmulatedMedia", map[string]any{"features": features})
}

// eval runs a script in the page and returns what it or its promise returns.
func (p *page) eval(script string, args ...any) any {
	p.Helper()
	var result any
	p.command("/execute/sync", map[string]any{"script": script, "args": append([]any{}, args...)}, &result)
	return result
}

// devtools sends a command of the Chrome DevTools Protocol, and returns its result.
func (p *page) devtools(command string, params any) any {
	p.Helper()
	var result any
	p.command("/goog/cdp/execute", map[string]any{"cmd": command, "params": params}, &result)
	return result
}

// command sends a WebDriver command to the browser, and decodes the value of its
// answer into the variable that result points to, unless result is nil.
func (p *page) command(path string, params, result any) {
	p.Helper()
	body, err := json.Marshal(params)
	if err != nil {
		p.Fatal(err)
	}
	resp, err := http.Post(p.session+path, "application/json", strings.NewReader(string(body)))
	if err != nil {
		p.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct{ Value json.RawMessage }
	err = json.NewDecoder(resp.Body).Decode(&answer)
	if err == nil && resp.StatusCode == 200 && result != nil {
		err = json.Unmarshal(answer.Value, result)
	}
	if err != nil || resp.StatusCode != 200 {
		p.Fatalf("%s %.300s: %s, %v, %.300s", path, body, resp.Status, err, answer.Value)
	}
}

// startBrowser starts a browser and returns the URL of its session. It skips the
// test if there is no ChromeDriver.
func startBrowser(t *testing.T) string {
	t.Helper()
	driver := exec.Command("chromedriver", "--port=0")
	stdout, err := driver.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.Start(); err != nil {
		t.Skipf("the page cannot be tested: %v", err)
	}
	var base string
	t.Cleanup(func() {
		if resp, err := http.Get(base + "/shutdown"); err == nil {
			resp.Body.Close()
		}
		driver.Wait()
	})
	lines := bufio.NewScanner(stdout)
	for base == "" && lines.Scan() {
		if _, port, ok := strings.Cut(lines.Text(), "started successfully on port "); ok {
			base = "http://127.0.0.1:" + strings.TrimSuffix(port, ".")
		}
	}
	p := &page{T: t, session: base + "/session"}
	var session struct{ SessionID string }
	p.command("", json.RawMessage(`{"capabilities": {"alwaysMatch": {
		"goog:loggingPrefs": {"browser": "ALL"},
		"timeouts": {"script": 120000},
		"goog:chromeOptions": {"args": [
			"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
			"--disable-background-networking", "--disable-component-update", "--disable-sync"
		]}
	}}}`), &session)
	p.session += "/" + session.SessionID
	p.devtools("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": helpers})
	return p.session
}

// buildService builds the service and returns the file of the program.
func buildService(t *testing.T) string {
	t.Helper()
	os.ReadDir("..") // or go test would not run this test again when they change
	os.ReadDir(".")
	program := t.TempDir() + "/petstore"
	if out, err := exec.Command("go", "build", "-o", program, "..").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// startService starts the service at an address, with an empty store.
func (p *page) startService(addr string) {
	cmd := exec.Command(p.program, "-addr", addr, "-stdin") // so it cannot outlive the test
	cmd.Env = append(os.Environ(), "PETSTORE_API_KEY="+cmp.Or(p.key, key))
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		p.Fatal(err)
	}
	p.stop = func() {
		stdin.Close()
		cmd.Process.Kill()
		cmd.Wait()
	}
	p.Cleanup(p.stop)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		p.Fatalf("the service did not start: %v", err)
	}
	p.base = strings.TrimSuffix(line, "/v1\n")
}
