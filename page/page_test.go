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
		{"Presets", testPresets},
		{"AnotherFault", testAnotherFault},
		{"HostileText", testHostileText},
		{"List", testList},
		{"Filter", testFilter},
		{"Send", testSend},
		{"Copy", testCopy},
		{"Again", testAgain},
		{"Pets", testPets},
		{"Reset", testReset},
		{"Outage", testOutage},
		{"Timers", testTimers},
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
	p.see("#keyForm", "API key", "#desk", "")
	for _, tt := range []struct{ key, want string }{
		{"wrong", "refuses this key"},
		{"ключ", "visible ASCII"},
		{" " + key + " ", ""},
	} {
		p.fill("API key", tt.key)
		p.click("Open the page")
		p.see("#keyError", tt.want)
	}
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

// Each preset does to a client what its name says.
func testPresets(p *page) {
	tests := []struct {
		title  string
		added  bool // the pet of the request
		status int  // that the client gets, or 0 if it gets no answer
		err    error
		row    string
		held   string // the row while the fault holds the request
	}{
		{"503", false, 503, nil, "POST 503 /v1/pets Simulated", ""},
		{"429", false, 429, nil, "POST 429 /v1/pets Simulated", ""},
		{"Hang up", false, 0, io.EOF, "POST no answer /v1/pets Hang up", ""},
		{"TCP reset", false, 0, syscall.ECONNRESET, "POST no answer /v1/pets TCP reset", ""},
		{"Slow by 3 s", true, 201, nil, "POST 201 /v1/pets Slow by 3 s", "POST waiting /v1/pets"},
		{"Slow body", true, 201, nil, "POST 201 /v1/pets Slow body", "POST 201 /v1/pets Slow body"},
		{"Answer lost", true, 0, io.EOF, "POST no answer /v1/pets Answer lost", ""},
		{"Answer cut", true, 201, io.ErrUnexpectedEOF, "POST 201, half /v1/pets Answer cut", ""},
		{"Answer stalls", true, 201, io.ErrUnexpectedEOF, "POST 201, half /v1/pets Answer stalls",
			"POST 201, half /v1/pets Answer stalls"},
		{"HTML page", true, 502, nil, "POST 502 /v1/pets HTML page", ""},
	}
	p.click("Every time")
	var rows []string
	for i, tt := range tests {
		p.click(tt.title)
		p.see("#sign.active #headline", tt.title+" every time")
		p.equal("document.title", tt.title+" every time – Petstore")
		p.equal("$('[aria-current=true] b').textContent", tt.title)
		p.equal("shown('#effect').includes('is not performed')", !tt.added)

		pet := fmt.Sprintf(`"categoryId":%d}`, i)
		client := p.start("POST /v1/pets", `{"name":"Rex",`+pet)
		if tt.held != "" {
			p.see("#counts", "1 held now")
			p.rows(append(rows, tt.held)...)
			p.click("End the fault")
		}
		rows = append(rows, tt.row)
		r := <-client
		if r.status != tt.status || !errors.Is(r.err, tt.err) {
			p.Errorf("%s: got %+v, want the status %d and the error %v", tt.title, r, tt.status, tt.err)
		}
		pets := p.send("GET /v1/pets?limit=100", "", observer).body
		if strings.Contains(pets, pet) != tt.added {
			p.Errorf("%s: got the pets %s, want the new one: %t", tt.title, pets, tt.added)
		}
		p.rows(rows...)
		p.eval("list.lastElementChild.click()")
		p.equal("shown('#pane').includes('Effect createPet is not performed')", !tt.added)
		p.equal("shown('#pane').includes('the client did not get')", tt.status == 0 && tt.added)
		p.equal("shown('#pane').includes('the client got half')", tt.err == io.ErrUnexpectedEOF)
	}
	p.equal("$$('#faults button b').length", len(tests))
	p.equal("$$('#list .took').map((took, i) => took.innerText.includes('…') && i).filter(Boolean)",
		[]int{5, 8}) // those whose body went on

	// A fault that is used up says how many it has hit, and no more.
	p.click("Once", "503")
	p.see("#headline", "503 once", "#counts", "No request hit yet")
	p.want("GET /v1/pets", "", 503, 200)
	p.see("#sign.calm #headline", "503 once", "#effect", "Used up. Requests are answered as usual.")
	p.equal("shown('#counts')", "1 request hit")
	p.equal("$$('[aria-current=true]').length", 0)
	p.click("Dismiss")
	p.see("#sign.calm #headline", "No fault", "#counts", "", "#end", "")
	p.want("GET /v1/pets", "", 200)
}

// A fault of any kind can be set with the fields.
func testAnotherFault(p *page) {
	p.click("Every time", "createPet", "503")
	p.see("#headline", "503 every time on createPet")
	p.want("GET /v1/pets", "", 200)
	p.want("POST /v1/pets", "{}", 503)
	p.see("#counts", "1 of 1 createPet request hit")

	// What is chosen is for the next fault only, and for the fields, too.
	p.click("listPets", "Once", "Another fault")
	p.fill("Code", "500")
	p.click("Set this fault")
	p.see("#headline", "500 once on listPets", "[name=code]", "")
	p.equal("document.activeElement.id", "anotherTitle")
	p.want("GET /v1/pets", "", 500)
	p.want("POST /v1/pets", "{}", 400)
	p.send("PUT /__admin/fault?code=503&times=7&operation=getPet&answer-delay=0.1", "")
	p.see("#headline", "503, 7 times on getPet", "#effect", "waits 0.1 s")
	p.equal("$$('[aria-current=true]').length + $('[name=operation]:checked').value", "0listPets")

	// A list keeps its codes. The sign fits into a narrow window.
	const next = "$$('#headline s').length + shown('#headline strong')"
	p.click("All", "Another fault")
	p.fill("Code", " 503,lost 429, 429,rst,html,truncate,500,599 ", "Skip", "1", "Retry-After", "7")
	p.click("Set this fault")
	p.see("#effect", "Retry-After is 7 s", "#counts", "1 more let through", "#counts", "9 to come",
		"#headline", "503, Answer lost, 429, 429, TCP reset, HTML page, Answer cut, 500 and 1 more")
	p.equal(next, "0503")
	p.resize(320, "light")
	p.equal("document.documentElement.scrollWidth <= innerWidth", true)
	p.equal("end.getBoundingClientRect().right <= innerWidth", true)
	p.want("GET /v1/pets", "", 200, 503, 0, 429)
	p.see("#counts", "3 of 4 requests hit 6 to come", "#effect", "Next: The operation is not performed")
	p.equal(next, "3429")
	p.want("GET /v1/pets", "", 429, 0, 502, 200)
	p.equal("shown('#headline')",
		"1 done, Answer lost, 429, 429, TCP reset, HTML page, Answer cut, 500, 599")
	p.equal(next, "6500")
	p.want("GET /v1/pets", "", 500, 599, 200)
	p.see("#sign.calm #effect", "Used up.")
	p.equal("shown('#counts')", "9 requests hit")

	// What the service refuses is shown at its field, until something is typed.
	p.click("Another fault")
	p.fill("Times", "2")
	p.click("Set this fault")
	p.see("#fieldError", "times")
	p.equal("document.activeElement === $('[name=times][aria-invalid=true]')", true)
	p.fill("Code", "503")
	p.see("#fieldError", "")

	// A fault that is used up may still hold requests.
	p.fill("Skip", "", "Delay", "30")
	p.click("Set this fault")
	p.see("#headline", "503, 2 times", "#effect", "waits 30 s")
	p.start("GET /v1/pets", "")
	p.start("GET /v1/pets", "")
	p.see("#sign.active #counts", "2 held now", "#effect", "Used up, but it still holds requests.")
	p.click("End the fault")
	p.click("GET 503 /v1/pets Simulated, Slow by 30 s")
	p.see("#pane", "It was let go after")
}

// What clients send is shown as text, and whole in the pane. A code that the page
// does not know is shown by its name.
func testHostileText(p *page) {
	p.send("POST /v1/pets?"+strings.ReplaceAll(markup, " ", "+"),
		`{"name":"`+markup+`","categoryId":9007199254740993}`,
		"User-Agent: "+markup, "X-Name: "+markup+"\u202e")
	p.send("GET /"+strings.Repeat("x", 300), "\x1b[31m")
	p.rows("POST 201 /v1/pets?<img+src=x+onerror='document.title=0'> ignored: <img src",
		"GET 404 /"+strings.Repeat("x", 199)+"…")
	p.see("#petRows", "1 "+markup+" 9007199254740993 –") // not exact as a number of JavaScript
	p.equal("$('#request-2 code').title.length", 301)    // of what is cut
	p.click("POST 201")
	p.see("#pane", "Client "+markup, "#pane", "X-Name "+markup+"⟨U+202e⟩",
		"#pane", "Authorization Bearer <API_KEY>", "#pane", "Location /v1/pets/1",
		"#pane", `{ "id": 1, "name": "`+markup+`", "categoryId": 9007199254740993 }`,
		"#pane", `{ "name": "`+markup+`", "categoryId": 9007199254740993 }`) // as sent
	p.click("GET 404")
	p.see("#pane", strings.Repeat("x", 300), "#pane", "⟨U+001b⟩[31m")

	// The journal has the first 1,000 bytes of an answer.
	p.send("POST /v1/pets?long", `{"name":"x`+strings.Repeat("🦎", 300)+`","categoryId":1}`)
	p.see("#petRows", "2 x"+strings.Repeat("🦎", 29)+"…")
	p.click("/v1/pets?long")
	p.see("#pane", "the first 1,000 of 1,2", "#pane", "🦎🦎…")
	p.equal("document.title", "Petstore")

	p.eval(`window.after = (path, text) => path.startsWith("/__admin/")
		? text.replaceAll(/"code":"([^"]*)lost"/g, '"code":"$1' + arguments[0] + '"') : text;`, markup)
	p.send("PUT /__admin/fault?code=429,lost", "")
	p.see("#headline", "429, "+markup)
	p.want("GET /v1/pets", "", 429, 0)
	p.see("#sign.calm #headline", "429, "+markup)
	p.click("GET no answer /v1/pets " + markup)
	p.see("#pane", "Fault "+markup+" Effect listPets")
	p.start("GET /v1/pets?"+strings.ReplaceAll(markup, " ", "+"), "", "Prefer: delay=30")
	p.see("#list", "GET waiting /v1/pets?<img+src=x")
	p.click("503")
	p.see("#headline", "503 once")
	p.equal("$$('#desk img').length", 0)
}

// The list follows its end, unless one has scrolled up or selected a row. It is
// one Tab stop, and the arrow keys move the selection.
func testList(p *page) {
	sent := 0
	send := func(n int, known string) {
		p.Helper()
		for range n {
			sent++
			p.send(fmt.Sprintf("GET /v1/pets/%d?", sent), "")
		}
		p.see("#known", known)
	}
	const isAtEnd = "list.scrollTop + list.clientHeight > list.scrollHeight - 8"
	send(60, "60")
	p.equal(isAtEnd, true)
	send(1, "61")
	p.equal(isAtEnd, true)
	scroll := func(to string) {
		p.Helper()
		p.eval("list.scrollTop = " + to + `;
			return new Promise((resolve) => list.addEventListener("scroll", resolve));`)
	}
	scroll("300")
	send(3, "64")
	p.see("#news", "3 new ↓")
	p.equal("list.scrollTop", 300)
	p.click("3 new")
	scroll("300")
	scroll("list.scrollHeight")
	send(1, "65")
	p.equal(isAtEnd, true)
	p.see("#news", "")

	const tab, enter, escape = "\ue004", "\ue007", "\ue00c" // as WebDriver writes them
	const end, home, up, down = "\ue010", "\ue011", "\ue013", "\ue015"
	p.eval("list.focus()")
	for _, tt := range []struct {
		key  string
		want int
	}{{up, 65}, {up, 64}, {home, 1}, {down, 2}, {up, 1}, {up, 1}, {end, 65}, {down, 65}} {
		p.press(tt.key)
		p.see("#pane", fmt.Sprintf("/v1/pets/%d?", tt.want))
		p.equal("selected()", fmt.Sprint("request-", tt.want))
	}
	send(1, "66")
	p.see("#news", "1 new ↓") // the selected row stays
	p.press(enter)
	p.equal("document.activeElement.id", "pane")
	p.press(escape)
	p.see("#pane", "")
	p.equal("selected() + document.activeElement.id", "list") // which has the focus again
	p.press(up)                                               // from the row that was selected last
	p.see("#pane", "/v1/pets/64?")
	p.press(escape)
	p.press(tab)
	p.equal("list.contains(document.activeElement)", false)

	// The page keeps as many requests as the service. What one reads stays in
	// place while rows above it leave.
	const place = "$('#request-50').getBoundingClientRect().top"
	before := p.eval("return " + place)
	send(937, "the last 1,000 of 1,003")
	p.see("#news", "938 new ↓")
	p.equal(place, before)
	p.equal("list.children.length", 1000)
	p.eval("list.focus()")
	p.press(end)
	p.press(escape)
	send(1, "the last 1,000 of 1,004")
	p.equal(isAtEnd, true)
}

// The filter finds words of a request, and methods and statuses as a whole.
func testFilter(p *page) {
	p.send("POST /v1/pets?x=1", `{"body":0,`+rex[1:], "User-Agent: shop/2.1")
	p.send("GET /v1/pets?404&post", "", "X-Id: Ünïque")
	p.send("GET /v1/pets/7", "", "User-Agent: Mozilla/5.0")
	for _, fault := range []string{"code=truncate", "code=lost", "code=html", "delay=0"} {
		p.send("GET /v1/pets", "", "Prefer: "+fault)
	}
	p.see("#known", "7")
	for _, tt := range []struct{ filter, want string }{
		{"pets POST", "1"},
		{"404", "3"},
		{"createpet", "1"},
		{"?404", "2"},
		{"x-id: ünïque", "2"},
		{"  SHOP body ", "1"},
		{"there is no", "3"},
		{"cut", "4"},
		{"get 200", "2 4 7"},
		{"browser", "3"}, // as the rows show it
		{"again", "5 6 7"},
		{"connect", ""}, // a method, and not the header
		{"?y", ""},
	} {
		p.Logf("filter %q", tt.filter) // shown if the test fails
		p.fill("Filter", tt.filter)
		p.equal("[...list.children].map(({id}) => id.replace('request-', '')).join(' ')", tt.want)
	}
	p.see("#known", "0 of 7", "#none", "No request matches")

	// A request has failed unless its client got the whole answer of a success. A
	// selected one that is hidden stays in the pane.
	p.fill("Filter", "")
	p.see("#known", "7", "#none", "")
	p.click("GET 200 /v1/pets Prefer")
	p.see("#pane", "Prefer: Slow by 0 s")
	p.fill("Filter", "failed")
	p.rows("GET 404 /v1/pets/7", "GET 200, half /v1/pets Prefer: Answer cut",
		"GET no answer /v1/pets Prefer: Answer lost", "GET 502 /v1/pets Prefer: HTML page")
	p.see("#known", "4 of 7", "#pane", "Prefer: Slow by 0 s")
	p.equal("selected()", "")
	p.fill("Filter", "")
	p.equal("selected()", "request-7")
	p.fill("Filter", "failed")
	p.eval("list.focus()")
	p.press("\ue015") // down, from a row that is hidden
	p.equal("selected()", "request-6")

	// The selected row stays in sight, and requests that wait are found, too.
	for range 40 {
		p.send("POST /v1/pets", "{}")
	}
	p.see("#known", "44 of 47")
	p.fill("Filter", "")
	const isInSight = "(({top, bottom}) => top >= list.getBoundingClientRect().top &&" +
		" bottom <= list.getBoundingClientRect().bottom)($('#request-6').getBoundingClientRect())"
	p.equal(isInSight, true)
	p.eval("list.scrollTop = 600")
	p.fill("Filter", "pets")
	p.equal(isInSight, true)
	p.fill("Filter", "waiting listPets")
	p.start("GET /v1/pets/1", "", "Prefer: delay=30")
	p.start("GET /v1/pets", "", "Prefer: delay=30")
	p.rows("GET waiting /v1/pets")

	// The focus is not lost with a list that is hidden.
	p.fill("Filter", "?y")
	p.eval("pane.focus()")
	p.press("\ue00c") // Escape
	p.equal("document.activeElement.id", "filter")
}

// Send and Add a pet send requests as a client: they are recorded, and faults are
// applied to them.
func testSend(p *page) {
	p.eval("window.flashes = 0; list.addEventListener('animationstart', () => { flashes++; })")
	p.click("Copy as curl")
	p.see("#notice", "Copied.", "#example", "Bearer <API_KEY>")
	p.equal("copied", "curl -i -H 'Authorization: Bearer "+key+"' '"+p.base+"/v1/pets'")
	p.click("Send")
	p.see("#notice", "This browser got a 200.")
	p.rows("GET 200 /v1/pets")
	p.equal("flashes + ' ' + $('#list .client').textContent", "1 browser")
	p.equal("document.activeElement.id", "list") // as the button is hidden now
	p.click("GET 200")
	p.see("#pane", "Cache-Control no-cache")
	p.click("503")
	p.see("#headline", "503 once")
	p.click("Add a pet")
	p.see("#notice", "This browser got a 503.")
	p.rows("GET 200 /v1/pets", "POST 503 /v1/pets Simulated")
	p.click("POST 503", "Send")
	p.see("#petRows", "1 Rex 1 available", "#list", "again, +")
	p.click("Add a pet")
	p.see("#petRows", "2 Bella 2 pending 1 Rex")
	p.rows("GET 200 /v1/pets", "POST 503 /v1/pets Simulated", "POST 201 /v1/pets", "POST 201 /v1/pets")
	p.send("PUT /__admin/fault?code=truncate&times=1", "")
	p.click("Send")
	p.see("#notice", "got a 201, but not the whole answer")
	p.send("PUT /__admin/fault?code=lost", "") // browsers repeat it, some more often
	p.click("Send")
	p.see("#notice", "This browser got no answer.", "#list", "no answer /v1/pets Answer lost")

	// Each pet that is added is another one, or it would be "again".
	for _, pet := range []string{"Zoë 3 sold", "Мурка 2 –", "Rex 5 1 available"} {
		p.click("Add a pet")
		p.see("#petRows", pet)
	}

	// At most two wait at a time, so that the page has connections to go on.
	p.send("PUT /__admin/fault?delay=30", "")
	p.see("#headline", "Slow by 30 s")
	p.click("Send", "Send")
	p.see("#counts", "2 held now")
	p.click("Send")
	p.see("#notice", "Nothing was sent: 2 requests of this page still wait")
	p.equal("$$('#list [aria-disabled=true]').length", 2)
	p.click("End the fault")
	p.see("#notice", "This browser got a 201.", "#headline", "No fault")
	p.equal("$$('#list [aria-disabled=true]').length", 0)

	// A request that a browser would refuse or change has no button.
	p.send("DELETE /__admin/requests", "")
	p.see("#first", "No requests yet")
	tests := []struct{ request, body, header string }{
		{"TRACE /v1/pets", "", ""},
		{"CONNECT /v1/pets", "", ""},
		{"delete /v1/pets", "", ""},
		{"GET /v1/pets", "{}", ""},
		{"GET /v1/./pets", "", ""},
		{"GET /v1/pets?'", "", ""},
		{"GET /v1/pets", "", "Via: 1.1 proxy"},
		{"GET /v1/pets", "", "X-Id: é"},
		{"POST /v1/pets", strings.Repeat("x", 70_000), ""}, // is not kept
	}
	for i, tt := range tests {
		p.send(tt.request, tt.body, tt.header)
		p.equal("list.children.length", i+1)
		p.eval("list.lastElementChild.click()")
		p.equal("$$('#pane .line button').map(shown).join()", "×,Copy as curl")
	}
	p.see("#pane", "Without the body", "#pane", "The body was not kept")
}

// A copied line sends the same request in each shell, to this service and to no
// other host. It has the key only for a path under /v1, and runs nothing. Many
// of the requests here were made to harm whoever pastes them.
func testCopy(p *page) {
	const claimsKey = "Authorization: Bearer <API_KEY>" // as the journal shows the real one
	tests := []struct {
		request, body, header string
		path                  string // that the line sends, if it is another one
		isKeyless             bool
	}{
		{request: "POST /v1/pets", body: `{"name":"it's <b> \"$KEY\""}`, header: "Content-Type: application/json"},
		{request: "GET /v1/pets?status={a}[1-2]", header: "Prefer: code=418, wait=1"},
		{request: "HEAD /v1/pets/../pets"},
		{request: "PATCH /v1/pets", body: "@no 'file'\n\n", header: "Content-Type: text/plain"},
		{request: "GET /v1/pets", header: "X-Id: "},
		{request: "GET /v1/pets", header: "Prefer: code=401"},
		{request: "POST http://a.example.test/v1/pets", body: "{}", path: "/v1/pets"},
		{request: "`touch$IFS'PWN'` /v1/';touch${IFS}PWN;'"},
		{request: "GET /v1/pets", header: "X-Id: @/etc/passwd';touch PWN;#"},
		{request: "POST /v1/pets", body: `\';touch PWN;#\`},
		{request: "POST /v1/pets", body: "@/etc/passwd\n`touch PWN`\n$(touch PWN)\n!touch\n%PATH%"},
		{request: "GET /v1x/pets", isKeyless: true},
		{request: "GET /v1/pets", header: claimsKey, isKeyless: true}, // answered 401
		{request: "GET a:@evil.test/steal", path: "/a:@evil.test/steal", isKeyless: true},
		{request: "CONNECT @evil.test:80", path: "/@evil.test:80", isKeyless: true},
		{request: "GET http://a@evil.test/steal", path: "/steal", isKeyless: true},
	}
	for _, tt := range tests {
		p.send(tt.request, tt.body, tt.header)
	}
	p.see("#known", fmt.Sprint(len(tests)))

	// The journal in lines, without the headers that curl sends by itself.
	own := regexp.MustCompile(`"(Accept|Accept-Encoding|Connection|Content-Length|Host|User-Agent)":"[^"]*",?`)
	entry := regexp.MustCompile(`"method":.*,"status"`)
	journal := func() []string {
		text := p.send("GET /__admin/requests", "").body
		return entry.FindAllString(own.ReplaceAllString(text, ""), -1)
	}
	sent := journal()
	var lines []string
	for i, tt := range tests {
		p.eval("list.children[arguments[0]].click(); window.copied = null", i)
		p.click("Copy as curl")
		p.equal("copied === null", false)
		line := p.eval("return copied").(string)
		if hasKey := strings.Contains(line, key); hasKey == tt.isKeyless {
			p.Errorf("%s\nhas the key: got %t, want %t", line, hasKey, !tt.isKeyless)
		}
		lines = append(lines, line)
	}
	for _, shell := range []string{"sh", "dash", "bash", "zsh", "fish"} {
		if _, err := exec.LookPath(shell); err != nil {
			p.Logf("%s is not installed", shell)
			continue
		}
		for i, line := range lines {
			p.send("DELETE /__admin/requests", "")
			cmd := exec.Command(shell, "-c", line)
			cmd.Dir = p.TempDir()
			cmd.Env = append(os.Environ(), "no_proxy=127.0.0.1")
			output, _ := cmd.CombinedOutput() // curl fails if there is no answer
			files, err := os.ReadDir(cmd.Dir)
			got := journal()
			_, target, _ := strings.Cut(tests[i].request, " ")
			want := []string{strings.Replace(sent[i], target, cmp.Or(tests[i].path, target), 1)}
			if !slices.Equal(got, want) || len(files) > 0 || err != nil {
				p.Errorf("in %s\n%s\nsends\n%s\nwant\n%s\nand writes the files %v (%v), and prints %s",
					shell, line, got, want, files, err, output)
			}
		}
	}

	// A line that would have other bytes than the request, or control characters,
	// is shown without the key, and cannot be copied. A browser sends the latter.
	p.send("POST /v1/pets?control", "\x1b[31m\r';touch PWN;#\u202e")
	p.send("GET /v1/pets?byte=\xff", "")
	for _, tt := range []struct{ url, line, buttons string }{
		{"/v1/pets?control", `--data-raw '⟨U+001b⟩[31m⟨U+000d⟩'\'';touch PWN;#⟨U+202e⟩'`, "×,Send"},
		{"/v1/pets?byte", "<API_KEY>' '" + p.base + "/v1/pets?byte=%EF%BF%BD'", "×"},
	} {
		p.click(tt.url)
		p.see("#pane", tt.line)
		p.equal("$$('#pane button').map(shown).join()", tt.buttons)
	}
	p.send("HEAD /v1/pets?head", "")
	p.click("/v1/pets?head")
	p.see("#pane", "which HEAD leaves out")

	// Where the browser refuses to copy, the line is shown, with the key of now.
	p.send("GET /v1/pets?shown", "")
	p.click("/v1/pets?shown")
	p.eval("navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed'))")
	p.eval("hold(() => true); location.hash = '#key=new'")
	p.equal("location.href", p.base+"/")
	p.click("Copy as curl")
	p.see("#pane", "Bearer new' '"+p.base+"/v1/pets?shown'")
}

// A request is marked as another try of an equal one only if that one has ended
// before, with a failure that may pass.
func testAgain(p *page) {
	p.eval(`
		window.tests = [
			["00.000", {status: 503}, ""],
			["01.020", {status: 429}, "again, +1.02 s"],
			["01.270", {}, "again, +250 ms"],
			["02.000", {status: 404}, ""],
			["03.000", {fault: {code: "truncate"}}, ""],
			["03.500", {status: 0, seconds: 2}, "again, +500 ms"],
			["03.501", {status: 500, seconds: 2}, ""], // parallel
			["07.000", {status: 408}, "again, +3.5 s"],
			["07.500", {headers: {"User-Agent": "other/1"}}, ""],
			["07.501", {url: "/v1/pets/2"}, ""],
			["07.502", {method: "HEAD"}, ""],
			["07.503", {body: "{}"}, ""],
			["09.000", {}, "again, +2 s"],
		];
		const requests = tests.map(([time, change], i) => ({
			id: i + 1, time: "2026-11-21T10:00:" + time + "Z", method: "GET", url: "/v1/pets/1", body: "",
			headers: {"User-Agent": "shop/1"}, status: 200, seconds: 0.001, answer: "", ...change,
		}));
		window.after = (path, text) => {
			const id = /^\/__admin\/requests\?after=(\d+)$/.exec(path)?.[1];
			const meta = {total: requests.length, since: "2026-11-21T10:00:00Z"};
			return id ? JSON.stringify({requests: requests.slice(id), waiting: [], meta}) : text;
		};`)
	want := p.eval("return tests.map(([, , again]) => again)")
	p.equal("[...list.children].map((row) => shown(row.querySelector('.again')))", want)
	p.click("again, +3.5 s")
	p.see("#pane", "Again 3.5 s after")
}

// Pets are listed whoever adds them.
func testPets(p *page) {
	p.send("POST /v1/pets", rex, observer)
	p.see("#petRows", "1 Rex 7 –", "#first", "No requests yet")
	p.start("GET /v1/pets", "", "Prefer: delay=30")
	p.see("#list", "GET waiting", "#first", "")

	// More pets than the page reads at a time, and an id beyond 2^53.
	p.eval("window.counts = []; new MutationObserver(() => counts.push(shown(petCount)))" +
		".observe(petCount, {childList: true})")
	seed := "[" + strings.Repeat(rex+",", 2019) + `{"id":9007199254740993,` + rex[1:] + "]"
	p.send("POST /__admin/reset", seed)
	p.see("#petCount", "the last 1,000 of 2,020", "#petRows", "9007199254740993 Rex 7 – 2019 Rex")
	p.equal("counts.includes('2,000 so far')", true)
	p.send("POST /v1/pets", rex)
	p.see("#petCount", "the last 1,000 of 2,021", "#petRows", "9007199254740994 Rex 7 – 9007199254740993 Rex")
}

// Reset all and Clear ask once more, and Clear removes the requests only. When
// the ids of the requests begin again, the page reads everything anew, and keeps
// what is being read.
func testReset(p *page) {
	p.send("POST /v1/pets", rex)
	p.send("PUT /__admin/fault?code=503", "")
	p.see("#headline", "503 every time", "#list", "POST 201")
	p.click("Reset all", "Cancel", "Clear", "Cancel", "Clear", "Clear") // which would come after a reset
	p.see("#first", "No requests yet", "#headline", "503 every time", "#petRows", "1 Rex")
	p.want("GET /v1/pets", "", 503)
	p.click("GET 503")
	p.fill("Filter", "get")
	p.click("Every time", "Reset all", "Reset all")
	p.see("#first", "No requests yet", "#headline", "No fault", "#petRows", "", "#notice", "All is reset.")
	p.equal("$('[name=often]:checked').value + filter.value + shown('#pane')", "1")

	p.send("POST /v1/pets", rex)
	p.send("GET /v1/pets/2", "")
	for _, request := range []string{"DELETE /__admin/requests", "POST /__admin/reset"} {
		p.click("GET 404 /v1/pets/2")
		p.see("#pane", "getPet 404", "#petRows", "1 Rex 7 –", ".gone", "")

		// Between two readings, more requests come than there were before.
		p.eval("hold((path) => path.startsWith('/__admin/requests'))")
		p.equal("held", 1)
		p.eval("document.dispatchEvent(new Event('visibilitychange'))")
		p.send(request, "")
		for _, id := range "23456" {
			p.send("GET /v1/pets/"+string(id), "")
		}
		p.equal("held", 1) // readings do not overlap
		p.eval("release()")
		p.see("#pane", "getPet 404", ".gone", "no longer in the list")
		p.equal("selected()", "")
		p.rows("GET 404 /v1/pets/2", "GET 404 /v1/pets/3", "GET 404 /v1/pets/4",
			"GET 404 /v1/pets/5", "GET 404 /v1/pets/6")
		p.press("\ue015") // down, from a row that is gone
		p.see("#pane", "GET /v1/pets/6")
	}
	p.see("#petRows", "")
	p.send("DELETE /__admin/requests", "")
	p.equal("document.activeElement.id", "pane") // as the list is hidden now
}

// The page says so while the service does not answer, and recovers.
func testOutage(p *page) {
	p.send("POST /v1/pets", rex)
	p.click("POST 201")
	p.send("PUT /__admin/fault?code=503", "")
	p.see("#headline", "503 every time")

	// An action whose answer does not arrive.
	p.eval("window.before = (path, {method}) => method === 'DELETE' && Promise.reject(new TypeError('lost'))")
	p.click("Clear", "Clear")
	p.see("#notice.error", "not known")
	p.eval(`window.before = (path, {signal}) => // no answer, for ever
		new Promise((resolve, reject) => signal?.addEventListener("abort", reject));`)
	p.see("#sign.unknown", "answer", "#counts", "", "#end", "")
	p.equal("document.title === 'Petstore'", false)
	p.equal("$$('[aria-current=true]').length", 0)
	p.click("429")
	p.see("#notice", "nothing was done")
	p.eval("window.before = null")
	p.see("#sign.active #headline", "503 every time", "#pane", "createPet")
	p.rows("POST 201 /v1/pets")

	// A service that has gone, and comes back.
	p.stop()
	p.see("#sign.unknown", "answer")
	p.click("Send", "429")
	p.see("#notice", "nothing was done")
	p.startService(strings.TrimPrefix(p.base, "http://"))
	p.see("#sign.calm #headline", "No fault", "#first", "No requests yet", "#petRows", "")

	// Before the first answer, the page is there, and does not say that all is well.
	p.command("/url", map[string]any{"url": "about:blank"}, nil)
	script := p.devtools("Page.addScriptToEvaluateOnNewDocument",
		map[string]any{"source": "hold((path) => path.startsWith('/__admin/'))"})
	p.command("/url", map[string]any{"url": p.base}, nil)
	p.see("#sign.unknown", "not answered yet", "#requests", "Requests", "#first", "", "#keyForm", "")
	p.devtools("Page.removeScriptToEvaluateOnNewDocument", script)
	p.eval("release()")
	p.see("#sign.calm", "No fault", "#first", "No requests yet")
}

// A tab that becomes visible asks at once. While it is hidden, it goes on asking.
// A notice fades, but an error stays until it is closed.
func testTimers(p *page) {
	var other struct{ Handle string }
	p.command("/window/new", map[string]any{"type": "tab"}, &other)
	defer p.devtools("Target.closeTarget", map[string]any{"targetId": other.Handle})
	p.eval(` // no time passes
		window.due = new Map();
		window.setTimeout = (action, time, ...given) => {
			const timer = {};
			due.set(timer, {time, action: () => due.delete(timer) && action(...given)});
			return timer;
		};
		window.clearTimeout = (timer) => due.delete(timer);
		window.timers = (time) => [...due.values()].filter((timer) => timer.time === time);`)
	p.devtools("Target.activateTarget", map[string]any{"targetId": other.Handle})
	p.equal("document.hidden && timers(500).length", 1)
	p.send("PUT /__admin/fault?code=500", "")
	p.eval("timers(500)[0].action()")
	p.equal("document.title", "500 every time – Petstore")
	p.send("GET /v1/pets", "")
	p.devtools("Page.bringToFront", map[string]any{})
	p.rows("GET 500 /v1/pets Simulated")
	p.click("503") // as does a press
	p.see("#headline", "503 once")
	p.equal("due.size", 1) // or each press would add a poll for ever

	p.click("Clear", "Clear")
	p.see("#notice", "The requests are removed.")
	p.eval("timers(6000)[0].action()")
	p.see("#notice", "")
	p.click("Clear", "Clear")
	p.see("#notice", "The requests are removed.")
	p.eval("window.before = (path, {method}) => method === 'DELETE' && Promise.reject(new TypeError('lost'))")
	p.click("Clear", "Clear")
	p.see("#notice.error", "not known")
	p.equal("timers(6000).length", 0)
	p.eval("closeNotice.click()")
	p.see("#notice", "")
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
		p.equal("document.getAnimations().length", 0)
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
	p.equal("skip.focus() ?? sign.offsetTop", 48) // as before the first Tab
	long := "POST /v1/pets?" + strings.Repeat("long", 100)
	p.send("PUT /__admin/fault?code=503", "")
	p.send("POST /v1/pets", rex, observer)
	p.see("#petCount", "1", "#headline", "503 every time")
	p.send("GET /v1/pets/7", "", "Authorization: Bearer none")
	p.send(long, rex, "X-Long: "+long)
	p.see("#counts", "1 of 1") // or both might be of the same millisecond
	p.send(long, rex, "X-Long: "+long)
	p.start("GET /v1/pets", "", "Prefer: delay=30")
	p.see("#list", "waiting")
	p.click("again, +")
	p.see("#pane", long)
	const right = ".getBoundingClientRect().right"
	p.equal("$('.again')"+right+" <= $('.again').parentElement"+right, true)
	check()
	p.click("Another fault")
	p.fill("Code", "777", "Filter", "nothing")
	p.click("Set this fault")
	p.see("#fieldError", "777", "#none", "No request matches")
	check()
	p.eval("petRows.scrollIntoView()") // pets can be reached
	p.equal("petRows.getBoundingClientRect().bottom <= innerHeight", true)
	p.eval("location.hash = '#key=wrong'")
	p.see("#keyError", "refuses")
	check()
}

// The picture of README shows a client that tries again.
func testPicture(p *page) {
	file := os.Getenv("PETSTORE_PICTURE")
	if file == "" {
		p.Skip("PETSTORE_PICTURE names no file")
	}
	milo := `{"name":"Milo","categoryId":3,"status":"available"}`
	p.send("PUT /__admin/fault?code=lost,503,429,truncate&skip=6", "")
	for _, tt := range []struct {
		request, body string
		pause         int // after it, in milliseconds
	}{
		{"POST /v1/pets", `{"name":"Bella","categoryId":2,"status":"pending"}`, 120},
		{"POST /v1/pets", `{"name":"Zoë","categoryId":3,"status":"sold"}`, 240},
		{"GET /v1/pets?limit=20", "", 310},
		{"GET /v1/pets/2", "", 420},
		{"GET /v1/pets?stauts=sold", "", 160},
		{"POST /v1/pets", `{"name":"Rex","categoryId":"7"}`, 530},
		{"POST /v1/pets", milo, 350},
		{"POST /v1/pets", milo, 700},
		{"POST /v1/pets", milo, 0},
	} {
		p.send(tt.request, tt.body, "User-Agent: shop/2.1")
		p.eval("return new Promise((resolve) => realSetTimeout(resolve, arguments[0]))", tt.pause)
	}
	p.start("GET /v1/pets?status=available", "", "User-Agent: admin/1.4", "Prefer: delay=30")
	p.see("#counts", "3 of 9", "#petCount", "3", "#list", "waiting")
	p.equal("document.getAnimations().length", 0)
	p.click("no answer")
	p.see("#pane", "which the client did not get")
	p.eval("base.textContent = 'http://127.0.0.1:8080/v1'; document.activeElement.blur()")
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
	base    string // the URL of the service
	stop    func() // ends the service
}

// helpers run before the script of the page. They have short names for the
// expressions in this file, and two hooks: the function before is called before
// the page reads or changes something, and may hold it or throw an error; the
// function after may change the text of an answer.
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
		[...row.querySelectorAll(".method, .status, code, .tag:not(.again)")].map(shown).join(" "));
	window.selected = () => {
		const active = list.getAttribute("aria-activedescendant") ?? "";
		const chosen = $$("#list [aria-selected=true]").map(({id}) => id).join();
		return active === chosen ? active : "active: " + active + ", chosen: " + chosen;
	};

	const realSetTimeout = window.setTimeout;
	window.until = async (look, want) => {
		const end = Date.now() + 10_000;
		while (JSON.stringify(look() ?? null) !== JSON.stringify(want) && Date.now() < end) {
			await new Promise((resolve) => realSetTimeout(resolve, 10));
		}
		return look() ?? null;
	};
	window.hold = (isHeld) => {
		const end = new Promise((resolve) => { window.release = resolve; });
		window.held = 0;
		window.before = (path, init) => {
			if (isHeld(path, init)) {
				held++;
				return end;
			}
		};
	};
	const realFetch = window.fetch;
	window.fetch = async (path, init) => {
		if (path instanceof Request) { // that the page sends as a client
			return realFetch(path);
		}
		await window.before?.(path, init);
		const answer = await realFetch(path, init);
		return window.after ? new Response(after(path, await answer.text()), answer) : answer;
	};

	if (navigator.clipboard) { // not in an empty tab
		navigator.clipboard.writeText = async (text) => { window.copied = text; };
	}`

// equal waits for ten seconds at most until an expression has a value in the page.
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
	const find = `[...($("dialog[open]") ?? document).querySelectorAll("button, summary, label, [role=option]")]
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
			const field = $$("input").find((one) => nameOf(one).startsWith(arguments[0]));
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
	cmd.Env = append(os.Environ(), "PETSTORE_API_KEY="+key)
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
