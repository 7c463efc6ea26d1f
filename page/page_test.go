// Package page holds the page of the service for browsers. In Go, it has only the test
// of the page in a browser.
package page

import (
	"bufio"
	"bytes"
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
	"testing"
)

const (
	key    = "a%key/of+the=test"
	rex    = `{"name":"Rex","categoryId":7}`
	markup = `<img src=x onerror='document.title=0'>` // must be shown as text
)

// Keys, as WebDriver writes them.
const (
	tab, enter, escape  = "\ue004", "\ue007", "\ue00c"
	shift               = "\ue008"
	end, home, up, down = "\ue010", "\ue011", "\ue013", "\ue015"
)

// TestPage uses the page as people do, in a headless Chromium. It is skipped
// where there is no ChromeDriver. If PETSTORE_AXE names the file axe.min.js of
// axe-core, the test also checks the accessibility of the page. This takes
// page.png anew:
//
//	PETSTORE_PICTURE=page.png go test -run TestPage/Picture ./page
func TestPage(t *testing.T) {
	p := &page{T: t, program: t.TempDir() + "/petstore"}
	p.startBrowser()
	for _, folder := range []string{"..", "../api", "."} {
		os.ReadDir(folder) // or go test would not run this test again when a file changes
	}
	if out, err := exec.Command("go", "build", "-o", p.program, "..").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p.startService("127.0.0.1:0")
	for _, tt := range []struct {
		name string
		run  func(*page)
	}{
		{"Key", testKey},
		{"Faults", testFaults},
		{"Sent", testSent},
		{"List", testList},
		{"Filter", testFilter},
		{"Send", testSend},
		{"Copy", testCopy},
		{"Reset", testReset},
		{"Looks", testLooks},
		{"Picture", testPicture},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p.T = t
			p.send("POST /__admin/reset", "")
			p.resize(1366, 768, "light")
			// A link with another address loads the page anew. Its + is not a space.
			link := p.base + "/?" + tt.name + "#key=" + strings.ReplaceAll(key, "%", "%25")
			p.command("/url", map[string]any{"url": link})
			p.see("#headline", "No fault", "#noRequests", "No requests", "#noMatch", "",
				"#noPets", "No pets", "#end", "")
			tt.run(p)
		})
	}
}

// The page takes the key from the link or asks for it, and keeps it to itself.
func testKey(p *page) {
	p.equal("location.href", p.base+"/") // the address does not show the key
	p.command("/refresh", struct{}{})
	p.see("#headline", "No fault") // the tab remembers the key

	p.eval("sessionStorage.clear()")
	p.command("/refresh", struct{}{})
	p.see("#keyForm", "API key", "#desk", "", "#headline", "")
	p.equal("document.activeElement.id", "keyField")
	p.fill("API key", " "+key+"\u00a0") // as it may be pasted
	p.click("Open")
	p.see("#headline", "No fault", "#keyForm", "")

	// A link with another key can be pasted into the address of an open page.
	p.eval("location.hash = '#key=wrong'")
	p.see("#keyError", "not the API key", "#desk", "", "#headline", "")
	p.eval("location.hash = '#key=' + arguments[0]", url.QueryEscape(key))
	p.see("#headline", "No fault", "#keyForm", "")
}

// The page offers what openapi.json describes, and each button sets its fault.
func testFaults(p *page) {
	p.eval("sessionStorage.broken = '/openapi.json'")
	p.command("/refresh", struct{}{})
	p.see("#sign.trouble #headline", "Something other than petstore answers.")
	p.eval("sessionStorage.removeItem('broken')")
	p.see("#sign.calm #headline", "No fault")

	offers := p.eval(`
		const {paths, components: {schemas}} = await (await fetch("/openapi.json")).json();
		const {parameters} = paths["/__admin/fault"].put;
		const meaningOf = ({description}) => description.replaceAll("\u0060", "");
		const codes = schemas.FaultCode.oneOf.map((one) => [one.title, one.enum?.[0], meaningOf(one)]);
		const [status] = codes.filter(([, code]) => !code);
		const words = codes.filter(([, code]) => code && code !== "ok");
		const delay = meaningOf(parameters.find(({name}) => name === "delay"));
		window.meaningOfCode = (code) => codes.find((one) => one[1] === code)?.[2] ?? status[2];
		return [
			["", ...schemas.FaultOperation.enum],
			parameters.map((one) => one.name + " " + meaningOf(one)),
			["id", ...Object.keys(schemas.NewPet.properties)],
			[
				["503", "503", "code=503", status[2]],
				["429", "429", "code=429", status[2]],
				["Slow by 3 s", "Slow by 3 s", "delay=3", delay],
				["Hold", "Slow by 30 s", "delay=30", delay],
				...words.map(([title, code, text]) => [title, title, "code=" + code, text]),
			],
		];`).([]any)
	p.click("Another fault")
	p.equal("$$('[name=operation][type=radio]').map(({value}) => value)", offers[0])
	p.equal("$$('#anotherForm div').map(shown)", offers[1])
	p.equal("$$('#petTitles th').map((one) => one.textContent)", offers[2])
	p.equal("$$('.buttons button').length", len(offers[3].([]any)))
	for _, offer := range offers[3].([]any) {
		button := offer.([]any)
		label, headline, parameters := button[0].(string), button[1].(string), button[2].(string)
		p.equal("find(arguments[0]).title", parameters+": "+button[3].(string), label)
		p.click("createPet", label) // the choice is for one button
		p.see("#sign.active #headline", headline, "#end", "End the fault")
		p.equal("[parameters, meaning].map(shown)", []any{parameters + " operation=createPet times=1", button[3]})
		p.equal("document.title", headline+" – Petstore")
	}
	p.click("Every time", "Hold")
	p.see("#headline", "Slow by 30 s")
	p.equal("shown('#parameters')", "delay=30")

	// A fault of any kind can be set with the fields, which keep their values. A
	// refusal is the message of the service.
	p.fill("code", "500", "delay", "0.1", "answer-delay", "0.2", "retry-after", "7",
		"operation", "createPet", "skip", "1", "times", "3")
	p.click("Set this fault")
	p.see("#headline", "Slow by 0.1 s, Answer slow by 0.2 s, 500", "#parameters",
		"code=500 delay=0.1 answer-delay=0.2 retry-after=7 operation=createPet skip=1 times=3")
	p.equal("shown('#meaning') === "+
		"[shown('#about-delay'), shown('#about-answer-delay'), meaningOfCode('500')].join(' ')", true)
	p.fill("code", "lost,429,ok", "delay", "", "answer-delay", "", "retry-after", "", "operation", "")
	p.click("Set this fault")
	p.see("#refusal", "times cannot be given with a list of codes", "#headline", "500")
	p.fill("times", "")
	p.click("Set this fault")
	p.see("#refusal", "", "#sign.active #headline", "Answer lost")
	p.equal("shown('#parameters')", "code=lost,429,ok skip=1 times=3")

	// The sign says how far a fault has come, and what is next. It is not red if that
	// is no failure, unless a request is held.
	for _, want := range [][]string{
		{"lost", "active", "applied 0 matched 0 held 0 to come 3 to skip 1", "Answer lost, 429, OK"},
		{"lost", "active", "applied 0 matched 1 held 0 to come 3", "Answer lost, 429, OK"},
		{"429", "active", "applied 1 matched 2 held 0 to come 2", "429, OK"},
		{"ok", "idle", "applied 2 matched 3 held 0 to come 1", "OK"},
	} {
		p.equal("[sign.className, shown('#counters'), shown('#headline')]", want[1:])
		p.equal("shown('#meaning') === meaningOfCode(arguments[0])", true, want[0])
		p.send("GET /v1/pets", "")
	}
	p.see("#sign.idle #headline", "Used up", "#counters", "applied 3 matched 4 held 0 to come 0", "#meaning", "")
	p.send("PUT /__admin/fault?code=stall,ok", "")
	p.start("GET /v1/pets", "")
	p.see("#sign.active #headline", "OK", "#counters", "held 1 to come 1")
	p.send("GET /v1/pets", "")
	p.see("#sign.active #headline", "Used up, requests held", "#counters", "held 1 to come 0", "#meaning", "", "#end", "End and release")
	p.click("End and release")
	p.see("#sign.calm #headline", "No fault", "#counters", "", "#end", "", "#parameters", "")
	p.equal("document.title + document.activeElement.id", "Petstorelist")

	// What does nothing is not shown as a failure.
	p.send("PUT /__admin/fault?code=ok&delay=0", "")
	p.see("#sign.idle #headline", "Slow by 0 s, OK")
	p.send("GET /v1/pets", "")
	p.click("code=ok delay=0")
	p.see("#details .asked", "code=ok delay=0", ".faulty[aria-selected=true], #details .faulty", "")
	p.equal("shown('.asked p') === meaningOfCode('ok')", true)
}

// What a client sent, and the answer, are shown as they are, and as text.
func testSent(p *page) {
	p.send("POST /v1/pets?stauts=sold", `{ "name" : "`+markup+`", "categoryId":9007199254740993, "x":0}`,
		"User-Agent: "+markup, "X-Empty: ", "Prefer: speed=3, answer-delay=0.1", "Origin: http://a.test")
	p.equal("rows()", []string{"POST 201 /v1/pets?stauts=sold answer-delay=0.1 ignored: speed, stauts, x"})
	p.click("POST 201")
	p.see("#paneTitle", "POST /v1/pets?stauts=sold", "#petRows", "1 "+markup+" 9007199254740993", "#list .client", markup,
		"#details", "operation createPet", "#details .faulty", "answer-delay=0.1",
		"#details", "ignored speed, stauts, x", "#details", "X-Empty", "#details", "Access-Control-Allow-Origin",
		"#details", `{ "name" : "`+markup+`", "categoryId":9007199254740993, "x":0}`,
		"#details", "Authorization Bearer ***", "#details", "Location /v1/pets/1",
		"#details", `{ "id": 1, "name": "`+markup+`", "categoryId": 9007199254740993 }`)
	p.equal("/seconds\\s\\d+\\.\\d{3}\\b/.test(pane.innerText)", true)
	p.equal("$$('#desk img').length + document.title", "0Petstore")
	p.send("HEAD /v1/pets?after=0", "", "Prefer: code=drip")
	p.click("HEAD 200 /v1/pets?after=0 code=drip beyond: HEAD, after")
	p.see("#details", "An answer to HEAD has no body. beyond HEAD, after")

	// What is not seen, or turns the text around, is shown as a number.
	p.send("POST /v1/pets?\u202e", "{\"name\":\"\u0085\u202e\u2060\",\"categoryId\":1}", "X-Name: \u202e")
	p.click("POST 201 /v1/pets?⟨U+202e⟩")
	const shown = "⟨U+0085⟩⟨U+202e⟩⟨U+2060⟩"
	p.see("#list [aria-selected=true] .excerpt", shown, "#petRows", shown, "#details", `{ "id": 2, "name": "`+shown,
		"#details", "X-Name ⟨U+202e⟩", "#paneTitle", "⟨U+202e⟩")
	p.equal("/[\\u0085\\u202e\\u2060]/.test(document.body.innerHTML)", false)

	// A repetition is known by its body, which the pane and the row show.
	p.send("DELETE /__admin/requests", "")
	p.send("POST /v1/pets", `{"name":"x`+strings.Repeat("🦎", 300)+`","categoryId":1}`)
	p.send("GET /v1/pets/1", "503", "Prefer: code=503")
	p.send("POST /v1/pets", strings.Repeat("x", 65_537))
	p.send("GET /v1/pets/3", "lost", "Prefer: code=lost")
	p.send("GET /v1/pets/1", "", "Prefer: code=truncate")
	p.start("GET /v1/pets/1", "", "Prefer: code=drip")
	p.equal("$$('#list .seconds').map((one) => one.textContent[0]).join('')", "00000>")
	p.equal("shown('#list :nth-child(2) .excerpt')", "503")
	p.equal("eachRow(() => $$('#details h3').map(shown).join('; '))", []string{
		"Sent; Body of the answer, the first 1000 of 1235 bytes; Headers of the answer; Headers sent",
		"Sent; Body of the answer; Headers of the answer; Headers sent",
		"Sent, with a body that is not known; Body of the answer; Headers of the answer; Headers sent",
		"Sent; Body of the answer, not sent, the first 1000 of 1235 bytes; Headers sent",
		"Sent; Body of the answer (half was sent); Headers of the answer; Headers sent",
		"Sent; Body of the answer (in pieces); Headers of the answer; Headers sent",
	})
}

// The list follows its end, unless one has scrolled up. The arrow keys move the
// selection.
func testList(p *page) {
	send := func(from, to int) {
		for i := from; i <= to; i++ {
			p.send(fmt.Sprintf("GET /v1/pets/%d?", i), "")
		}
		p.equal("list.children.length", min(to, 1000))
	}
	const isAtEnd = "list.scrollTop + list.clientHeight > list.scrollHeight - 8"
	const scrolled = "return new Promise((resolve) => list.addEventListener('scroll', resolve))"
	send(1, 60)
	p.equal(isAtEnd, true)
	p.equal("$('.titles').clientHeight >= $('.titles span').offsetHeight", true) // as all titles are seen
	p.eval("list.scrollTop = 300; " + scrolled)
	send(61, 63)
	p.equal("list.scrollTop", 300)
	p.eval("list.scrollTop = list.scrollHeight; " + scrolled)
	send(64, 64)
	p.equal(isAtEnd, true)

	p.eval("list.focus()")
	for _, tt := range []struct {
		key  string
		want int
	}{{up, 64}, {up, 63}, {home, 1}, {down, 2}, {up, 1}, {up, 1}, {end, 64}, {down, 64}} {
		p.press(tt.key)
		url := fmt.Sprintf("/v1/pets/%d?", tt.want)
		p.see("#paneTitle", url, "#list [aria-selected=true] .url", url)
		p.equal("$('#' + list.getAttribute('aria-activedescendant')) === $('[aria-selected=true]')", true)
	}
	p.eval("list.scrollTop = 0")
	p.press(down)
	p.equal(isAtEnd, true) // as the selected row is shown
	p.press(enter)
	p.equal("document.activeElement.id", "pane")
	p.press(escape)
	p.see("#pane", "", "#list [aria-selected=true]", "")
	p.equal("document.activeElement.id", "list")
	p.press(up)
	p.click("×")
	p.see("#pane", "")

	// What is counted is what is there.
	send(65, 1004)
	p.see("#count", "the last 1,000 of 1,004")
	p.eval("list.scrollTop = 300; " + scrolled)
	p.click("List pets")
	p.see("#count", "the last 1,000 of 1,005", "#notice", "got 200")
	p.equal(isAtEnd, true)
	p.fill("Filter", "/v1/pets/1004?")
	p.equal("[count, found].map((one) => one.textContent)", []string{"1 of 1,000", "1 of 1,000 requests"})
}

// The filter finds the requests that have all its words, and says how many.
func testFilter(p *page) {
	p.send("POST /v1/pets?x=1", `{"x":"body",`+rex[1:], "User-Agent: shop/2.1")
	p.send("GET /v1/pets?limit=404&post", "", "X-Id: Ünïque")
	p.send("GET /v1/pets/7", "", "User-Agent: Mozilla/5.0 Chrome/156.0.0.0 Safari/537.36 Edg/156.0.0.0")
	p.send("GET /v1/pets", "", "Prefer: code=lost")
	p.see("#count", "4", "#list", "Edge 156")
	p.equal("$$('#list b').map((one) => one.className).join(' ')", "succeeded refused refused error")
	p.fill("Filter", p.eval("return shown('#list .time')").(string))
	p.see("#count", "of 4", "#list .url", "/v1/pets?x=1")
	for _, tt := range []struct{ filter, want string }{
		{"=404", "/v1/pets?limit=404&post"},
		{"x-id: ünïque", "/v1/pets?limit=404&post"},
		{"  SHOP body createPet location \"id\" ", "/v1/pets?x=1"},
		{"code=lost no answer", "/v1/pets"},
		{"edge 156", "/v1/pets/7"},
		{"", "/v1/pets?x=1 /v1/pets?limit=404&post /v1/pets/7 /v1/pets"},
	} {
		p.fill("Filter", tt.filter)
		p.equal("$$('#list .url').map(shown).join(' ')", tt.want)
	}

	// What is selected stays in the pane while it is not found.
	p.click("/v1/pets/7")
	p.fill("Filter", "shop")
	p.see("#paneTitle", "/v1/pets/7", "#count", "1 of 4", "#list [aria-selected=true]", "", "#noMatch", "")
	p.fill("Filter", "shop none")
	p.see("#noMatch", "No request matches.", "#noRequests", "", "#count", "0 of 4")
	p.fill("Filter", "")
	p.equal("found.textContent", "")
	p.see("#list [aria-selected=true] .url", "/v1/pets/7")
}

// The page is a client: what it sends is recorded, and faults are applied.
func testSend(p *page) {
	p.click("Add a pet")
	p.see("#notice", "This browser got 201.", "#petRows", "1 Rex 7 available")
	p.equal("/^Chrome \\d+$/.test(shown('#list .client'))", true)
	p.click("503")
	p.see("#headline", "503")
	p.click("Add a pet")
	p.see("#notice", "This browser got 503.")
	p.click("POST 503", "Send again")
	p.see("#petRows", "2 Bella 7 available 1 Rex", "#notice", "got 201.")
	p.equal("rows()", []string{"POST 201 /v1/pets", "POST 503 /v1/pets code=503", "POST 201 /v1/pets"})
	p.click("Every time", "Answer cut")
	p.see("#headline", "Answer cut")
	p.click("List pets")
	p.see("#notice", "This browser got no answer, or not all of it.", "#headline", "Answer cut")

	// One that waits is a row as any other. It stays selected when it has its
	// answer, even if others are nearly the same.
	p.send("DELETE /__admin/requests", "")
	p.send("PUT /__admin/fault?delay=30&times=2", "")
	p.see("#headline", "Slow by 30 s", "#noRequests", "No requests")
	p.click("Add a pet")
	p.see("#counters", "held 1")
	p.click("Add a pet")
	p.see("#counters", "held 2 to come 0", "#sign.active #headline", "Slow by 30 s", "#count", "2, 2 waiting", "#noRequests", "")
	p.click("Add a pet") // a browser has six connections
	p.see("#notice", "Not sent: 2 requests of this page still wait.")
	p.send("GET /v1/pets", "", "Prefer: delay=0")
	p.see("#count", "3, 2 waiting", "#notice", "Not sent")
	p.eval("list.children[1].click(); window.arrival = shown('#list [aria-selected=true] .time')")
	p.see("#paneTitle", "POST /v1/pets", "#result", "waiting", "#details", `"name":"Zoë"`,
		"#details", "delay=30", "#copy", "Copy", "#sendAgain", "Send", "#list [aria-selected=true] .seconds", "")
	p.equal("/^waiting [1-9]/.test(shown('[aria-selected=true] b'))", true)
	p.fill("Filter", "post waiting")
	p.see("#count", "2 of 3")
	p.click("End and release")
	p.see("#headline", "No fault", "#count", "0 of 3", "#result", "201", "#notice", "This browser got 201.")
	p.fill("Filter", "")
	p.equal("[shown('#count'), shown('#list [aria-selected=true] .time') === arrival]", []any{"3", true})
	p.equal("rows()", []string{"POST 201 /v1/pets delay=30", "POST 201 /v1/pets delay=30", "GET 200 /v1/pets delay=0"})
	// Each row but the first has a gap.
	p.eval("window.at = (i) => Date.parse('2026-11-01T' + $$('#list .time')[i].textContent + 'Z') / 1000")
	p.equal("$$('#list .pause').slice(1).every((one, i) => one.textContent === '+' + (at(i + 1) - at(i)).toFixed(3))", true)
}

// A copied line sends the same request in each shell, and runs nothing. Many of
// the requests here were made to harm whoever pastes them.
func testCopy(p *page) {
	p.send("POST /v1/pets", `{"name":"it's <b> \"$KEY\""}\';touch PWN;#\`, "Content-Type: application/json")
	p.send("GET /v1/pets?status={a}[1-2]", "", "Prefer: code=418, wait=1")
	p.send("HEAD /v1/pets/../pets", "")
	p.send("PATCH /v1/pets", "@no 'file'", "Content-Type: text/plain")
	p.send("GET /v1/pets", "", "X-Id: ")
	p.send("`touch$IFS'PWN'` /v1/';touch${IFS}PWN;'", "")
	p.send("GET /v1/pets", "", "X-Id: @/etc/passwd';touch PWN;#")
	p.send("POST /v1/pets", "`touch PWN` $(touch PWN) !touch '!touch' %PATH% ~ ?*")
	p.equal("list.children.length", 8)

	// The journal in lines, without the headers that clients add by themselves.
	own := regexp.MustCompile(`"(Accept|Accept-Encoding|Connection|Content-Length|Host|User-Agent)":"[^"]*",?`)
	entry := regexp.MustCompile(`"method":.*,"status"`)
	journal := func() []string {
		text := p.send("GET /__admin/requests", "")
		return entry.FindAllString(own.ReplaceAllString(text, ""), -1)
	}
	sent := journal()
	lines := p.eval("return eachRow(() => (copy.click(), copied)).join('\\n')").(string)
	p.see("#notice", "Copied, with the key.")
	for _, shell := range []string{"sh", "bash", "zsh", "fish"} {
		_, err1 := exec.LookPath(shell)
		_, err2 := exec.LookPath("curl")
		if err := errors.Join(err1, err2); err != nil {
			p.Log(err)
			continue
		}
		p.send("DELETE /__admin/requests", "")
		cmd := exec.Command(shell, "-c", lines)
		cmd.Dir = p.TempDir()
		cmd.Env = append(os.Environ(), "http_proxy=http://127.0.0.1:1", "no_proxy=")
		output, _ := cmd.CombinedOutput() // curl fails if there is no answer
		files, err := os.ReadDir(cmd.Dir)
		if got := journal(); len(got) != 8 || !slices.Equal(got, sent) || len(files) > 0 || err != nil {
			p.Errorf("in %s, the lines send\n%s\nwant\n%s\nand write the files %v (%v), and print %s",
				shell, strings.Join(got, "\n"), strings.Join(sent, "\n"), files, err, output)
		}
	}

	// What is not known whole, would go elsewhere, or would be another request is
	// not offered.
	p.send("DELETE /__admin/requests", "")
	p.see("#noRequests", "No requests")
	const again, copied = "Send again", "Copy as curl"
	tests := []struct{ request, body, header, buttons string }{
		{"POST /v1/pets", "a\nb", "", again},
		{"GET a:@evil.test/x", "", "", ""},
		{"GET /v1/pets?\xff", "", "", ""},
		{"POST /v1/pets", strings.Repeat("x", 70_000), "", ""},
		{"POST /v1/pets", strings.Repeat("x", 70_000), "Transfer-Encoding: chunked", ""},
		{"GET /v1/pets", "", "Authorization: bearer " + key, ""},
		{"GET /v1/pets", "", "Authorization: Bearer ***", ""},
		{"GET /v1/pets", rex, "", copied},
		{"post /v1/pets", rex, "", copied},
		{"GET /v1/pets/../pets", "", "", copied},
		{"GET /v1/pets", "", "X-Id: é", copied},
		{"GET /v1/pets", "", "Cookie: a=b", copied},
		{"GET /v1/pets", "", "", again + " " + copied},
	}
	for _, tt := range tests {
		p.send(tt.request, tt.body, cmp.Or(tt.header, "X-Id: 1"))
	}
	p.equal("list.children.length", len(tests))
	for i, tt := range tests {
		p.eval("list.children[arguments[0]].click()", i)
		p.equal("[sendAgain, copy].map(shown).join(' ').trim()", tt.buttons)
		p.equal("obstacle.hidden", tt.buttons == again+" "+copied)
	}
}

// Clear and Reset all ask first. When somebody else resets, or the service
// starts again, the page reads everything anew. It says when no answer comes.
func testReset(p *page) {
	p.send("POST /v1/pets", rex)
	p.send("PUT /__admin/fault?code=503&operation=getPet", "")
	p.see("#headline", "503", "#list", "201", "#petRows", "1 Rex")
	p.eval("window.answer = false")
	p.click("Reset all", "Clear")
	p.send("GET /v1/nothing", "")
	p.see("#list", "404", "#headline", "503")
	p.equal("list.children.length", 2)
	p.eval("window.answer = true")
	p.click("POST 201", "Clear")
	p.see("#noRequests", "No requests", "#headline", "503", "#petRows", "1 Rex", "#pane", "")
	p.click("Reset all")
	p.see("#noRequests", "No requests", "#headline", "No fault", "#petRows", "")

	// Between two readings, more requests come than there were before.
	p.send("GET /v1/pets/2", "")
	p.click("GET 404 /v1/pets/2")
	p.see("#paneTitle", "/v1/pets/2")
	p.eval("window.gate = new Promise((resolve) => { window.release = resolve; })")
	seed := "[" + strings.Repeat(rex+",", 250) + `{"id":9007199254740993,` + rex[1:] + "]"
	p.send("POST /__admin/reset", seed)
	p.send("GET /v1/pets/3", "")
	p.send("GET /v1/pets/4", "")
	p.eval("new MutationObserver(() => { window.first ??= shown('#petRows td'); }).observe(petRows, {childList: true})")
	p.eval("release()")
	p.equal("rows()", []string{"GET 200 /v1/pets/3", "GET 200 /v1/pets/4"})
	p.see("#pane", "", "#count", "2")

	// The last pets are shown at once, with exact ids.
	p.equal("first", "9007199254740993")
	p.see("#petRows", "9007199254740993 Rex 7 250 Rex", "#petsTitle", "Pets, the last 100")
	p.equal("$$('#petRows tr').length", 100)
	p.send("POST /v1/pets", rex)
	p.see("#petRows", "9007199254740994 Rex 7 9007199254740993 Rex 7 250 Rex")
	p.send("DELETE /__admin/requests", "")
	p.see("#noRequests", "No requests")
	p.send("GET /v1/pets/5", "")

	p.start("GET /v1/pets", "", "Prefer: delay=30")
	p.see("#list", "waiting")
	p.click("GET waiting")
	p.service.Process.Kill()
	p.service.Wait()
	p.see("#sign.trouble #headline", "Petstore does not answer.", "#meaning", "What follows is what was last known.",
		"#paneTitle", "/v1/pets", "#petRows", "Rex")
	p.startService(strings.TrimPrefix(p.base, "http://"))
	p.see("#sign.calm #headline", "No fault", "#noRequests", "No requests", "#petRows", "", "#pane", "")
}

// The page is accessible in light and dark, and fits into narrow windows.
func testLooks(p *page) {
	top := p.eval("return desk.getBoundingClientRect().top")
	p.press(tab)
	p.equal("document.activeElement.id", "skip")
	p.equal("desk.getBoundingClientRect().top", top) // nothing moves
	p.press(enter)
	p.equal("document.activeElement.id", "list") // also while it is empty

	long := "POST /v1/pets?" + strings.Repeat("long", 100)
	p.send("PUT /__admin/fault?code=503", "")
	p.send("POST /v1/pets", strings.Replace(rex, "Rex", strings.Repeat("R", 500), 1), "Petstore-Observer: test")
	p.send("GET /v1/pets/7", "", "Authorization: Bearer none")
	p.send(long, rex, "X-Long: "+long)
	p.start("GET /v1/pets", "", "Prefer: delay=30")
	p.see("#list", "waiting", "#counters", "applied 1", "#petRows", "RRR")
	p.click("long", "Another fault")
	p.fill("code", "777")
	p.click("Set this fault")
	p.see("#details", long, "#refusal", "777")
	p.eval("operations.append(...operations.cloneNode(true).children)") // as if there were more
	for _, height := range []int{256, 640} {
		p.resize(320, height, "light")
		p.equal("document.documentElement.scrollWidth <= innerWidth", true)
		p.equal("$$('#operations label').every((one) => one.offsetHeight < 40)", true)
		p.eval("list.focus()")
		p.press(enter)
		p.equal("isCovered(paneTitle) || paneTitle.getBoundingClientRect().top < 0", false)
		news := fmt.Sprint("/v1/pets/", height)
		p.send("GET "+news, "")
		p.see("#list", news, "#notice", "")
		p.click("Copy as curl")
		p.see("#notice", "Copied")
		p.equal("isCovered(notice)", false)
		p.eval("reset.focus()")
		p.equal("sign.getBoundingClientRect().bottom > 0", height == 640)
	}
	for p.eval("return document.activeElement.id") != "skip" {
		p.press(shift + tab)
		p.equal("isCovered(document.activeElement)", false)
	}

	file := os.Getenv("PETSTORE_AXE")
	if file == "" {
		return
	}
	axe, err := os.ReadFile(file)
	if err != nil {
		p.Fatal(err)
	}
	for _, scheme := range []string{"light", "dark"} {
		p.resize(1366, 768, scheme)
		violations := p.eval(string(axe) + `; return axe.run().then(({violations}) =>
			violations.map(({id, nodes}) => [id, ...nodes.map(({html}) => html)]));`).([]any)
		if len(violations) > 0 {
			p.Errorf("%s: axe-core finds %q", scheme, violations)
		}
	}
}

// The picture of README shows a client that tries again.
func testPicture(p *page) {
	file := os.Getenv("PETSTORE_PICTURE")
	if file == "" {
		p.Skip("PETSTORE_PICTURE names no file")
	}
	p.send("PUT /__admin/fault?code=lost,503,429,truncate&operation=createPet&skip=3", "")
	for _, request := range []string{
		`POST /v1/pets {"name":"Bella","categoryId":2,"status":"pending"}`,
		`POST /v1/pets {"name":"Zoë","categoryId":3,"status":"sold"}`,
		"GET /v1/pets?limit=20 ",
		"GET /v1/pets?stauts=sold ",
		`POST /v1/pets {"name":"Rex","categoryId":"7"}`,
		`POST /v1/pets {"name":"Milo","categoryId":3,"status":"available"}`,
		`POST /v1/pets {"name":"Milo","categoryId":3,"status":"available"}`,
		`POST /v1/pets {"name":"Milo","categoryId":3,"status":"available"}`,
	} {
		i := strings.LastIndex(request, " ")
		p.send(request[:i], request[i+1:], "User-Agent: shop/2.1")
		p.eval("return new Promise((resolve) => realTimeout(resolve, 150 + 400 * Math.random()))")
	}
	p.start("GET /v1/pets?status=available", "", "User-Agent: admin/1.4", "Prefer: delay=30")
	p.see("#counters", "to come 1", "#petRows", "3 Milo", "#list", "waiting 2 s")
	p.click("no answer")
	p.eval("document.activeElement.blur()")
	shot := p.devtools("Page.captureScreenshot", map[string]any{}).(map[string]any)
	picture, err := base64.StdEncoding.DecodeString(shot["data"].(string))
	if err := errors.Join(err, os.WriteFile(file, picture, 0o644)); err != nil {
		p.Fatal(err)
	}
}

// page is the page of a service, in a browser that W3C WebDriver controls.
type page struct {
	*testing.T
	session string    // the URL of the session in the browser
	program string    // the file of the service
	service *exec.Cmd // its process
	base    string    // its URL
}

// helpers run before the script of the page. They have short names for the
// expressions in this file, and let the page read again after a tenth of its
// pauses. What the page sends, but not as a client, waits for
// the promise gate, and gets another answer from the path that is broken.
const helpers = `
	window.$ = (selector) => document.querySelector(selector);
	window.$$ = (selector) => [...document.querySelectorAll(selector)];
	window.shown = (what) => {
		const element = typeof what === "string" ? $(what) : what;
		return element?.checkVisibility() ? element.innerText.replace(/\s+/g, " ").trim() : "";
	};
	const isThere = (selector) => $(/#\w+/.exec(selector)[0]) !== null; // it may be misspelled
	window.missing = (pairs) => pairs.filter((text, i) => i % 2 && (text
		? !shown(pairs[i - 1]).includes(text)
		: shown(pairs[i - 1]) || !isThere(pairs[i - 1])));
	window.find = (text) => [...$$("button, summary, label"), ...$$("[role=option]")]
		.find((one) => shown(one).includes(text));
	window.rows = () => [...list.children].map((row) =>
		[...row.querySelectorAll(".method, b, .url, .tag")].map(shown).join(" "));
	window.eachRow = (look) => [...list.children].map((row) => {
		row.click();
		return look();
	});
	const realFetch = window.fetch;
	const realTimeout = window.setTimeout;
	window.until = async (look, want) => {
		const end = Date.now() + 30_000;
		for (;;) {
			const got = JSON.stringify(look() ?? null);
			if (got === JSON.stringify(want) || Date.now() > end) {
				return got === JSON.stringify(want) ? null : got;
			}
			await new Promise((resolve) => realTimeout(resolve, 10));
		}
	};
	window.setTimeout = (callback, pause) => realTimeout(callback, pause / 10);
	window.fetch = async (path, init) => {
		await (path instanceof Request || window.gate); // it sends Requests as a client
		return path === sessionStorage.broken ? new Response("{}") : realFetch(path, init);
	};
	window.isCovered = (element) => !sign.contains(element) && element !== skip &&
		element.getBoundingClientRect().top < sign.getBoundingClientRect().bottom - 1;
	window.confirm = () => window.answer;
	navigator.clipboard.writeText = async (text) => { window.copied = text; };`

// equal waits for half a minute at most until an expression has a value.
func (p *page) equal(expression string, want any, args ...any) {
	p.Helper()
	got := p.eval("return until(() => "+expression+", [...arguments].at(-1))", append(args, want)...)
	if got != nil {
		p.Fatalf("%s %q:\n got %s\nwant %q, in\n%.1500s", expression, args, got, want, p.eval("return shown('body')"))
	}
}

// see takes pairs of a selector and a text. It waits until each element shows a
// text that contains the other one or, for "", until it shows nothing.
func (p *page) see(pairs ...string) {
	p.Helper()
	p.equal("missing(arguments[0])", []string{}, pairs)
}

// click clicks, one after the other, on the first button, summary or label that
// shows each of these texts, or else on the first such row.
func (p *page) click(texts ...string) {
	p.Helper()
	for _, text := range texts {
		p.equal("Boolean(find(arguments[0]))", true, text)
		element, _ := p.eval("return find(arguments[0])", text).(map[string]any)
		for _, id := range element {
			p.command(fmt.Sprintf("/element/%s/click", id), struct{}{})
		}
	}
}

// fill takes pairs of a label and the text for its field.
func (p *page) fill(pairs ...string) {
	p.Helper()
	for i := 0; i < len(pairs); i += 2 {
		p.eval(`
			const nameOf = (field) => field.ariaLabel ?? field.labels[0].innerText.trim();
			const field = $$("input").find((one) => one.checkVisibility() && nameOf(one) === arguments[0]);
			field.value = arguments[1];
			field.dispatchEvent(new Event("input", {bubbles: true}));`, pairs[i], pairs[i+1])
	}
}

// press presses a key where the focus is.
func (p *page) press(key string) {
	p.Helper()
	for _, id := range p.eval("return document.activeElement").(map[string]any) {
		p.command(fmt.Sprintf("/element/%s/value", id), map[string]any{"text": key})
	}
}

// client does not keep connections: on a kept one, it would repeat a request
// that gets no answer.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// start sends a request as another client, such as "GET /v1/pets", with its
// target and headers as they are. The channel gets the body of the answer.
func (p *page) start(request, body string, headers ...string) <-chan string {
	p.Helper()
	method, target, _ := strings.Cut(request, " ")
	req, err := http.NewRequest(method, p.base, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	req.URL.Opaque = target
	req.Header.Set("Authorization", "Bearer "+key)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		req.Header[name] = []string{value}
	}
	req.TransferEncoding = req.Header["Transfer-Encoding"]
	done := make(chan string, 1)
	go func() {
		defer close(done)
		if resp, err := client.Do(req); err == nil {
			got, _ := io.ReadAll(resp.Body) // a part, for some faults
			resp.Body.Close()
			done <- string(got)
		}
	}()
	return done
}

// send is like start, but waits for the answer.
func (p *page) send(request, body string, headers ...string) string {
	p.Helper()
	return <-p.start(request, body, headers...)
}

// resize sets the size of the window in pixels, and its colour scheme.
func (p *page) resize(width, height int, scheme string) {
	p.devtools("Emulation.setDeviceMetricsOverride",
		map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false})
	features := []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}
	p.devtools("Emulation.setEmulatedMedia", map[string]any{"features": features})
}

// eval runs a script in the page and returns what it or its promise returns.
func (p *page) eval(script string, args ...any) any {
	p.Helper()
	return p.command("/execute/sync", map[string]any{"script": script, "args": append([]any{}, args...)})
}

// devtools sends a command of the Chrome DevTools Protocol.
func (p *page) devtools(command string, params any) any {
	return p.command("/goog/cdp/execute", map[string]any{"cmd": command, "params": params})
}

// command sends a WebDriver command to the browser, and returns the value of
// its answer.
func (p *page) command(path string, params any) any {
	p.Helper()
	body, err1 := json.Marshal(params)
	resp, err2 := http.Post(p.session+path, "application/json", bytes.NewReader(body))
	if err := errors.Join(err1, err2); err != nil {
		p.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct{ Value any }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != 200 {
		p.Fatalf("%s %.300s: %s, %v, %.300v", path, body, resp.Status, err, answer.Value)
	}
	return answer.Value
}

// startBrowser starts a browser. It skips the test if there is no ChromeDriver.
func (p *page) startBrowser() {
	p.Helper()
	driver := exec.Command("chromedriver", "--port=0")
	stdout, err := driver.StdoutPipe()
	if err := errors.Join(err, driver.Start()); err != nil {
		p.Skipf("the page cannot be tested: %v", err)
	}
	var base string
	p.Cleanup(func() {
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
	p.session = base + "/session"
	session := p.command("", json.RawMessage(`{"capabilities": {"alwaysMatch": {
		"timeouts": {"script": 120000},
		"goog:chromeOptions": {"args": [
			"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
			"--disable-background-networking", "--disable-component-update", "--disable-sync"
		]}
	}}}`))
	p.session += "/" + session.(map[string]any)["sessionId"].(string)
	p.devtools("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": helpers})
}

// startService starts the service at an address, with an empty store.
func (p *page) startService(addr string) {
	p.Helper()
	p.service = exec.Command(p.program, "-addr", addr, "-stdin") // which ends with the test
	p.service.Env = append(os.Environ(), "PETSTORE_API_KEY="+key)
	_, err1 := p.service.StdinPipe()
	stdout, err2 := p.service.StdoutPipe()
	if err := errors.Join(err1, err2, p.service.Start()); err != nil {
		p.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		p.Fatalf("the service did not start: %v", err)
	}
	p.base = strings.TrimSuffix(line, "/v1\n")
}
