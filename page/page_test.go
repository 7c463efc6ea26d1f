// Package page holds the page of the service for browsers. In Go, it has only the test
// of the page in a browser.
package page

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
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
	"strconv"
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
	pageUp, pageDown    = "\ue00e", "\ue00f"
)

// TestPage uses the page as people do, in a headless Chromium. It is skipped
// where there is none. If PETSTORE_AXE names the file axe.min.js of axe-core,
// the test also checks the accessibility of the page. This takes page.png anew:
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
		{"Helpers", testHelpers},
		{"Key", testKey},
		{"Faults", testFaults},
		{"Queue", testQueue},
		{"Story", testStory},
		{"Sent", testSent},
		{"List", testList},
		{"Filter", testFilter},
		{"Send", testSend},
		{"Copy", testCopy},
		{"Anew", testAnew},
		{"Trouble", testTrouble},
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
			p.see("#headline", "No standing fault", "#noRequests", "No requests", "#noMatch", "",
				"#noPets", "No pets", "#end", "", "#pane", "")
			p.equal("needs.hidden", true) // it is not seen at first in any case
			tt.run(p)
		})
	}
}

// A helper that passes whatever the page shows would hide every error.
func testHelpers(p *page) {
	p.eval("window.patience = 100")
	for name, check := range map[string]func(){
		"equal":                  func() { p.equal("1 + 1", 3) },
		"see, another text":      func() { p.see("#headline", "No fault at all") },
		"see, of a second pair":  func() { p.see("#headline", "No", "#noPets", "Rex") },
		"see, nothing":           func() { p.see("#headline", "") },
		"see, a misspelled name": func() { p.see("#headlin", "") },
		"click":                  func() { p.click("No such button") },
		"fill":                   func() { p.fill("No such field", "") },
		"isCovered":              func() { p.equal("isCovered(skip)", true) },
		"isOnTop":                func() { p.equal("isOnTop(skip)", true) },
		"eval":                   func() { p.eval("throw new Error()") },
	} {
		reports := 0
		p.reports = &reports
		check()
		p.reports = nil
		if reports == 0 {
			p.Errorf("%s reports nothing", name)
		}
	}
}

// The page takes the key from the link or asks for it, and keeps it to itself.
func testKey(p *page) {
	const noFault = "No standing fault"
	p.equal("location.href", p.base+"/") // the address does not show the key
	p.command("/refresh", struct{}{})
	p.see("#headline", noFault) // the tab remembers the key

	p.eval("sessionStorage.clear()")
	p.command("/refresh", struct{}{})
	p.see("#keyForm", "API key", "#keyForm", "PETSTORE_API_KEY", "#desk", "", "#headline", "")
	p.equal("document.activeElement.id + ' ' + keyField.type", "keyField password")
	p.fill("API key", " "+key+"\u00a0") // as it may be pasted
	p.click("Open")
	p.see("#headline", noFault, "#keyForm", "")

	// A link with another key can be pasted into the address of an open page.
	p.command("/url", map[string]any{"url": p.base + "/#key=wrong"})
	p.see("#keyError", "not the API key", "#desk", "", "#headline", "")
	p.equal("keyField.getAttribute('aria-describedby')", "keyError")
	p.command("/url", map[string]any{"url": p.base + "/#key=" + url.QueryEscape(key)})
	p.see("#headline", noFault, "#keyForm", "")
	p.equal("sessionStorage.apiKey", key)
	p.equal("[shown(base), $('#brand a').href]", []string{p.base + "/v1", p.base + "/openapi.json"})

	// Petstore may start anew, with another key.
	p.send("PUT /__admin/fault?code=503", "")
	p.see("#headline", "Standing fault")
	p.eval("window.fetch = async () => new Response('{\"message\": \"another key\"}', {status: 401})")
	p.see("#keyError", "another key", "#desk", "", "#headline", "")
}

// The page offers what openapi.json describes, and each button sets its fault.
func testFaults(p *page) {
	offers := p.eval(`
		const {paths, components: {schemas}} = await (await fetch("/openapi.json")).json();
		const {parameters} = paths["/__admin/fault"].put;
		const meaningOf = ({description}) => description.replaceAll("\u0060", "");
		const codes = schemas.FaultCode.oneOf.map((one) => [one.title, one.enum?.[0], meaningOf(one)]);
		const [status] = codes.filter(([, code]) => !code);
		const words = codes.filter(([, code]) => code && code !== "ok");
		const delay = meaningOf(parameters.find(({name}) => name === "delay"));
		const delayOf = (seconds) => delay.replace("this number of seconds", seconds + " s");
		return [
			["", ...schemas.FaultOperation.enum],
			parameters.map((one) => one.name + " " + meaningOf(one)),
			["id", ...Object.keys(schemas.NewPet.properties)],
			[
				["503", "code=503", status[2]],
				["429", "code=429", status[2]],
				["Slow by 3 s", "delay=3", delayOf("3")],
				["Hold", "delay=30", delayOf("30")],
				...words.map(([title, code, text]) => [title, "code=" + code, text]),
			],
		];`).([]any)
	p.click("Another fault")
	p.equal("$$('[name=operation][type=radio]').map(({value}) => value)", offers[0])
	p.equal("$$('#anotherForm div').map(shown)", offers[1])
	p.equal("$$('#petTitles th').map((one) => one.textContent)", offers[2])
	p.equal("$$('#presets button').length", len(offers[3].([]any)))
	for _, offer := range offers[3].([]any) {
		button := offer.([]any)
		label, meaning := button[0].(string), button[2].(string)
		p.equal("find(arguments[0]).title", fmt.Sprint(button[1], ": ", meaning), label)
		p.click("createPet", label)
		p.see("#sign.active #queue .next", label, "#scope", "createPet only", "#meaning", meaning)
		p.equal("chips()", []string{label, "then as usual"})
		p.equal("document.title", label+" – Petstore")
	}
	p.click("All", "Every time", "Hold")
	p.see("#scope", "Requests under /v1", "#queue", "every time")

	// A fault of any kind can be set with the fields, which keep their values. A
	// refusal is the message of the service, until there is another fault.
	p.fill("code", "500", "delay", "0.1", "answer-delay", "0.2", "retry-after", "7",
		"operation", "createPet", "skip", "1", "times", "3")
	p.click("Set this fault")
	p.see("#scope", "createPet only, Retry-After 7")
	p.equal("chips()", []string{"As usual", "Slow by 0.1 s, Answer slow by 0.2 s, 500 × 3", "then as usual"})
	p.equal("JSON.parse(arguments[0]).code", "500", p.send("GET /__admin/fault", ""))
	p.fill("code", "lost,429")
	p.click("Set this fault")
	p.see("#refusal", "times cannot be given with a list of codes")
	p.send("GET /v1/pets", "") // is read after the refusal, which stays
	p.see("#list", "200", "#refusal", "times cannot be given", "#sign.active #queue", "500")
	p.send("PUT /__admin/fault?code=418", "")
	p.see("#queue", "418", "#refusal", "")
	p.click("Set this fault")
	p.see("#refusal", "times cannot be given")
	p.fill("times", "", "skip", "", "delay", "0", "answer-delay", "", "operation", "")
	p.click("Set this fault")
	p.see("#refusal", "", "#queue .next", "Answer lost")
}

// The sign says what the next requests get. Requests that do not match change
// nothing.
func testQueue(p *page) {
	const usual = "The request is answered as usual."
	p.see("#sign.calm #meaning", "Requests are answered as usual, unless a header Prefer asks for a fault.", "#offers", "", "#queue", "") // as the buttons are in sight
	calm := p.eval("return icon.href")
	p.send("PUT /__admin/fault?code=503,ok,lost&skip=1&operation=createPet", "")
	for _, want := range []struct{ kind, queue, next, meaning string }{
		{"active", "As usual|503|As usual|Answer lost|then as usual", "As usual", ""},
		{"active", "✓ As usual|503|As usual|Answer lost|then as usual", "503", "an error with this status is sent"},
		{"active", "✓ As usual|✓ 503|As usual|Answer lost|then as usual", "As usual", usual},
		{"active", "✓ As usual|✓ 503|✓ As usual|Answer lost|then as usual", "Answer lost", "the connection is closed without"},
		{"idle", "✓ As usual|✓ 503|✓ As usual|✓ Answer lost|As usual", "As usual", ""},
	} {
		p.equal("[sign.className, chips().join('|'), shown('[aria-current]')]", []string{want.kind, want.queue, want.next})
		p.see("#meaning", want.meaning, "#spoken", "The next one: "+want.next)
		p.equal("getComputedStyle($('.next')).backgroundColor === 'rgb(198, 47, 36)'", want.next != "As usual")
		p.equal("icon.href === arguments[0]", want.kind == "idle", calm)
		p.send("GET /v1/pets", "")
		p.send("POST /v1/pets", rex)
	}
	p.see("#headline", "Fault used up", "#scope", "", "#end", "") // as nothing is left to end
	p.equal("document.title", "Petstore")

	for _, tt := range []struct{ fault, requests, queue string }{
		{"code=503&times=3", "", "503|503 × 2|then as usual"},
		{"code=503&times=3", "GET", "✓ 503|503|503|then as usual"},
		{"code=503&skip=2", "GET", "✓ As usual|As usual|503|every time"},
		{"delay=30&skip=1", "", "As usual|Hold|every time"},
		{"code=429&delay=0", "GET GET", "✓ 429 × 2|429|every time"},
		{"code=500,500,502,503,504,507,508,429,lost", "GET GET GET GET GET GET GET GET",
			"✓ 2 before|✓ 502|✓ 503|✓ 504|✓ 507|✓ 508|✓ 429|Answer lost|then as usual"},
		{"code=500,501,502,503,504,505,506,507,508,429,429,429", "",
			"500|501|502|503|504|505|506|507|and 4 more,|then as usual"},
		{"delay=30", "", "Hold|every time"},
		{"code=ok&delay=0", "", "As usual|every time"},
	} {
		p.send("PUT /__admin/fault?"+tt.fault, "")
		for _, method := range strings.Fields(tt.requests) {
			p.send(method+" /v1/pets", "")
		}
		p.equal("chips().join('|')", tt.queue)
	}
	p.see("#sign.idle #meaning", usual) // what does nothing is no failure
	p.send("GET /v1/pets?limit=1", "")
	p.equal("rows().at(-1)", "GET 200 /v1/pets?limit=1 ok delay=0")
	p.equal("listed().at(-1).querySelector('.injected')", nil)

	// Retry-After is that of an error to come.
	p.send("PUT /__admin/fault?code=503,lost&retry-after=7", "")
	p.equal("shown('#scope')", "Requests under /v1, Retry-After 7")
	p.send("GET /v1/pets", "")
	p.equal("shown('#scope')", "Requests under /v1")

	// What is held is released with the fault, also by a reader of the keyboard.
	p.send("PUT /__admin/fault?code=stall,503", "")
	p.start("GET /v1/pets", "")
	p.see("#sign.active #headline", "Standing fault, 1 held", "#end", "End and release")
	p.equal("document.title", "Standing fault, 1 held – Petstore")
	p.send("GET /v1/pets", "")
	p.see("#sign.idle #headline", "Fault used up, 1 held", "#end", "End and release")
	p.equal("icon.href === arguments[0]", false, calm)
	p.eval("end.focus()")
	p.press(enter)
	p.see("#sign.calm #headline", "No standing fault", "#queue", "", "#end", "")
	p.equal("document.title + document.activeElement.id", "Petstorelist")

	// The sign is bounded, whatever the list is, and nothing is cut without a sign.
	p.send("PUT /__admin/fault?code="+strings.Repeat("503,429,", 1499)+"lost,ok", "")
	for _, tt := range []struct {
		width, height int
		rest          string
	}{{1366, 130, "and 2,992 more,"}, {390, 260, "and 2,997 more,"}, {320, 280, "and 2,997 more,"}} {
		p.resize(tt.width, 768, "light")
		p.see("#queue", tt.rest+" then as usual")
		p.equal("sign.offsetHeight < arguments[0]", true, tt.height)
		p.equal("$$('#band *').filter((one) => one.scrollWidth > one.clientWidth + 1 && shown(one)).map(shown)", []string{})
	}
	p.equal("document.title", "503 – Petstore")

	// Where the buttons are not in sight, the sign offers some of them.
	p.send("DELETE /__admin/fault", "")
	p.see("#offers", "Hold 503 Answer lost")
	p.eval("$('[name=operation][value=getPet]').click(); find('Answer lost').click()") // the choices are out of sight, too
	p.equal("chips()", []string{"Answer lost", "then as usual"})
	p.see("#scope", "Requests under /v1")
	p.send("GET /v1/pets", "")
	p.see("#headline", "Fault used up", "#offers", "Hold 503 Answer lost")
}

// The rows say what a request did, what it is the same as, and what has become
// of its answer.
func testStory(p *page) {
	p.send("PUT /__admin/fault?code=lost,503,ok,truncate,stall,html,drip&operation=createPet", "")
	add := func(body string, headers ...string) { p.send("POST /v1/pets", body, headers...) }
	for range 4 {
		add(rex)
	}
	p.start("POST /v1/pets", rex)
	p.see("#list .held", "stall")
	p.leave()
	p.see("#list", "stalled", "#list .held", "")
	add(rex)
	p.start("POST /v1/pets", rex)
	p.see("#list .held", "drip")
	p.leave()
	p.see("#list", "dripped", "#list .held", "")
	add("{}", "Prefer: wait=1; Code=html")
	p.start("POST /v1/pets", `{"name":"Ida","categoryId":1}`, "Prefer: answer-delay=30")
	p.see("#list .held", "waiting")
	p.leave()
	p.see("#list", "client left", "#list .held", "")
	add(strings.Repeat("x", 65_537))
	add(strings.Repeat("y", 65_537)) // the bodies are not known, so they are not said to be the same
	for _, id := range []string{"81", "82", "83", "84", "84", "83", "82", "81"} {
		p.send("GET /v1/pets/"+id, "", `Prefer: x="code=5"`)
	}
	p.start("GET /v1/pets", "", "Prefer: delay=30, code=truncate")
	p.see("#list .held", "waiting")
	p.send("GET /v1/pets", "") // the same as one that has not failed so far
	p.equal("rows()", []string{
		"POST no answer /v1/pets lost adds pet 1",
		"POST 503 /v1/pets 503 same as",
		"POST 201 /v1/pets ok adds pet 2 same as",
		"POST 201, cut /v1/pets truncate adds pet 3",
		"POST 201, stalled /v1/pets stall adds pet 4 same as",
		"POST 502 /v1/pets html adds a pet same as",
		"POST 201, dripped /v1/pets drip adds pet 6 same as",
		"POST 502 /v1/pets Prefer: html ignored: wait",
		"POST client left /v1/pets Prefer: answer-delay=30 adds pet 7",
		"POST 413 /v1/pets",
		"POST 413 /v1/pets",
		"GET 404 /v1/pets/81 ignored: x",
		"GET 404 /v1/pets/82 ignored: x",
		"GET 404 /v1/pets/83 ignored: x",
		"GET 404 /v1/pets/84 ignored: x",
		"GET 404 /v1/pets/84 same as ignored: x",
		"GET 404 /v1/pets/83 same as ignored: x",
		"GET 404 /v1/pets/82 same as ignored: x",
		"GET 404 /v1/pets/81 same as ignored: x",
		"GET waiting /v1/pets Prefer: truncate delay=30",
		"GET 200 /v1/pets",
	})
	p.equal("joins()", []string{"0-1", "0-2", "3-4", "4-5", "5-6", "12-17", "13-16", "14-15"}) // the longest has no room
	p.equal("joins().every((pair) => { const [a, b] = pair.split('-').map((i) => listed()[i]);"+
		" return shown(b.querySelector('.same')) === 'same as ' + shown(a.querySelector('.time')); })", true)
	p.equal("new Set($$('#lines i').map((one) => one.getBoundingClientRect().left)).size", 3)
	p.equal("[0, 1].map((i) => shown(listed()[i].querySelector('.body')))", []string{rex, ""}) // once, as they are the same

	// What a request adds is in bold if its answer was not sent as usual, or if an
	// equal request has added something, too. The last bar is that of the request that
	// waits.
	const ofRow = "listed().map((row) => getComputedStyle(row.querySelector(%s))%s)"
	p.equal(fmt.Sprintf(ofRow, "'.fact'", ".fontWeight > 600")+".flatMap((isBold, i) => isBold ? [] : [i])", []int{20})
	const warn, bad = "rgb(138, 83, 0)", "rgb(184, 40, 29)"
	p.equal(fmt.Sprintf(ofRow, "'b'", ".color")+".slice(5, 10)", []string{bad, warn, bad, warn, warn}) // 502, dripped, 502, client left, 413
	p.equal("new Set("+fmt.Sprintf(ofRow, "'b'", ".color")+".slice(2, 9)).size", 3)
	p.equal("listed().map((row) => row.querySelector('.seconds i').offsetWidth > 0).lastIndexOf(true)", 19)
	p.equal("(({offsetWidth, parentElement: cell}) => offsetWidth / cell.offsetWidth > parseFloat(shown(cell)) / 11)"+
		"($('.row.held .seconds i'))", true) // a bar of 10 seconds is full
	p.equal("/^\\d+\\.\\d$/.test(shown('.row.held .seconds'))", true)
	p.equal("getComputedStyle($('.row.held')).backgroundImage !== 'none' && $$('.row.held').length", 1)

	p.equal("['.injected', '.preferred'].map((name) => getComputedStyle($(name)).backgroundColor === 'rgba(0, 0, 0, 0)')", []bool{false, true})
	p.see("#titles", "Time, UTC Method Status Target Client Gap Seconds")

	// A line needs both rows. What is selected can be followed to the earlier one.
	p.fill("Filter", "location") // which the answer of html does not have
	p.equal("joins()", []string{"0-1", "2-3"})
	p.fill("Filter", "")
	p.click("201, stalled")
	p.see("#result", "201, stalled adds pet 4", "#details", "same as ")
	p.eval("$('#details button').click()")
	p.see("#result", "201, cut adds pet 3", "#list [aria-selected=true]", "truncate")
	p.equal("/code=truncate After .*[.]$/.test(shown('.asked'))", true) // without the question of a tester

	// The lines from one row share a lane, or there would not be enough lanes.
	p.send("POST /__admin/reset", "")
	p.send("PUT /__admin/fault?code=lost,503,503,503", "")
	for range 5 {
		add(rex)
	}
	p.equal("joins()", []string{"0-1", "0-2", "0-3", "0-4"})

	// What a request is the same as may be known later than its answer. That of
	// another client or with another key, and what has a byte that is not known, is
	// not the same.
	p.send("POST /__admin/reset", "")
	p.start("POST /v1/pets", rex, "Prefer: answer-delay=30")
	leave := p.leave
	p.equal("shown('#count')", "0 recorded, 1 waiting")
	p.send("POST /v1/pets", rex)
	p.click("POST 201")
	p.see("#result", "201 adds pet 2")
	leave()
	p.see("#details", "same as ", "#list", "client left")
	p.start("POST /v1/pets", rex, "Prefer: code=drip") // which has not failed
	p.see("#list", "drip")
	p.send("POST /v1/pets", rex)
	p.equal("joins()", []string{"0-1"})
	for _, name := range []string{"User-Agent: ", "Authorization: Bearer ", "Idempotency-Key: "} {
		p.send("GET /v1/pets/8", "", name+"1")
		p.send("GET /v1/pets/8", "", name+"2")
	}
	for _, target := range []string{"/v1/\xfe", "/v1/\xff"} {
		p.send("GET "+target, "")
	}
	p.equal("rows().slice(-8)", []string{
		"GET 404 /v1/pets/8", "GET 404 /v1/pets/8", "GET 401 /v1/pets/8", "GET 401 /v1/pets/8",
		"GET 404 /v1/pets/8", "GET 404 /v1/pets/8", "GET 404 /v1/⟨U+fffd⟩", "GET 404 /v1/⟨U+fffd⟩"})
}

// What a client sent, and the answer, are shown as they are, and as text.
func testSent(p *page) {
	p.send("POST /v1/pets?stauts=sold", `{ "name" : "`+markup+`", "categoryId":9007199254740993, "x":0}`,
		"User-Agent: "+markup, "X-Empty: ", "Prefer: speed=3, answer-delay=0.1", "Origin: http://a.test")
	p.equal("rows()", []string{"POST 201 /v1/pets?stauts=sold Prefer: answer-delay=0.1 adds pet 1 ignored: speed, stauts, x"})
	p.see("#list .client", markup)
	p.click("POST 201")
	p.see("#paneTitle", "POST /v1/pets?stauts=sold", "#petRows", "1 "+markup+" 9007199254740993",
		"#details .faulty", "Asked for by Prefer. Before the answer", "#details", "Authorization Bearer ***",
		"#details", `{ "id": 1, "name": "`+markup+`", "categoryId": 9007199254740993 }`)
	p.equal("$$('#desk img').length + document.title", "0Petstore")

	// Every member that openapi.json describes is there, but for the answer, which
	// is indented, and digits of the seconds.
	p.send("GET /v1/pets?after=x&limt=1", "", "Prefer: code=ok, wait=1", "X-Id: 7")
	p.click("GET 400")
	p.see("#result .refused", "400")
	p.equal(`[...$$("#details dt")].map(shown).slice(0, 6)`,
		[]string{"request id", "time", "operation", "seconds", "ignored", "beyond"})
	missing := p.eval(`
		const {requests: [, entry]} = JSON.parse(arguments[0]);
		const {JournalEntry, SentRequest} = (await (await fetch("/openapi.json")).json()).components.schemas;
		const own = JournalEntry.allOf.flatMap(({properties = {}}) => Object.keys(properties));
		const members = [...Object.keys(SentRequest.properties), ...own];
		const texts = (value) => typeof value === "object" ? Object.values(value) : [String(value)];
		const text = pane.innerText;
		return members.filter((name) => !["answer", "seconds"].includes(name) &&
			(entry[name] === undefined || !texts(entry[name]).every((one) => text.includes(one))));`,
		p.send("GET /__admin/requests", ""))
	if len(missing.([]any)) > 0 {
		p.Errorf("the pane lacks %v", missing)
	}
	p.equal("/seconds\\s\\d+\\.\\d{3}\\b/.test(pane.innerText)", true)
	p.eval("pane.scrollTop = 300")
	p.click("POST 201")
	p.equal("pane.scrollTop + shown('#result b')", "0201")
	p.send("HEAD /v1/pets?after=0", "", "Prefer: code=drip")
	p.equal("rows().at(-1)", "HEAD 200 /v1/pets?after=0 Prefer: drip beyond: HEAD, after")
	p.click("HEAD 200")
	p.see("#details", "beyond HEAD, after", "#details", "Body of the answer, not sent")
	p.equal("shown('.asked')", "code=drip Asked for by Prefer.") // and not that a body is sent

	// What is not seen, or turns the text around, is shown as a number.
	p.send("POST /v1/pets?\u202e", "{\"name\":\"\u0085\u202e\u2060\",\"categoryId\":1}", "X-Name: \u202e")
	p.click("/v1/pets?⟨U+202e⟩")
	const shown = "⟨U+0085⟩⟨U+202e⟩⟨U+2060⟩"
	p.see("#petRows", shown, "#details", `{ "id": 2, "name": "`+shown, "#details", "X-Name ⟨U+202e⟩", "#paneTitle", "⟨U+202e⟩")
	p.equal("$('[aria-selected=true] .excerpt').textContent.includes(arguments[0])", true, shown)
	p.equal("/[\\u0085\\u202e\\u2060]/.test(document.body.innerHTML)", false)

	// The pane says how much of a body is known, and was sent.
	p.send("DELETE /__admin/requests", "")
	p.see("#noRequests", "No requests")
	p.eval("$('#close').click()")
	p.send("POST /v1/pets", `{"name":"x`+strings.Repeat("🦎", 300)+`","categoryId":1}`)
	p.send("GET /v1/pets/1", "503", "Prefer: code=503")
	p.send("POST /v1/pets", strings.Repeat("x", 65_537))
	p.send("GET /v1/pets/3", "lost", "Prefer: code=lost")
	p.send("GET /v1/pets/1", "", "Prefer: code=truncate")
	for i, code := range []string{"stall", "drip"} {
		p.start("GET /v1/pets/1", "", "Prefer: code="+code)
		p.see("#list .held", code)
		p.leave()
		p.see("#list .held", "")
		p.equal("listed().length", 6+i)
	}
	p.equal("[1, 3].map((i) => shown(listed()[i].querySelector('.excerpt')))", []string{"503", "lost"})
	p.equal("eachRow(() => shown('#result'))[3]", "no answer") // and not an error that nobody was told
	p.equal("$('#list .excerpt').textContent.slice(-3)", "🦎…")
	p.equal("eachRow(() => $$('#details h3').map(shown).join('; '))", []string{
		"Sent; Body of the answer; the first 1000 of 1235 bytes are shown; Headers sent; Headers of the answer",
		"Sent; Body of the answer; Headers sent; Headers of the answer",
		"Sent; no body is recorded; Body of the answer; Headers sent; Headers of the answer",
		"Sent; Body of the answer, not sent; the first 1000 of 1235 bytes are shown; Headers sent",
		"Sent; Body of the answer (half was sent); Headers sent; Headers of the answer",
		"Sent; Body of the answer (half was sent); Headers sent; Headers of the answer",
		"Sent; Body of the answer (in pieces, if the client waited); Headers sent; Headers of the answer",
	})
	p.send("GET /v1/pets/99", "", "Prefer: code=html")
	p.click("GET 502")
	p.see("#details", "error, not sent there is no pet 99")
	p.equal("shown(result)", "502")
	p.start("GET /v1/pets/99", "", "Prefer: code=html, answer-delay=30")
	p.see("#list .held", "waiting")
	p.leave()
	p.click("GET client left")
	p.equal("[shown('.asked'), /error/.test(shown('#details'))]", []any{"code=html answer-delay=30 Asked for by Prefer.", false}) // what it did is not known
}

// The list follows its end, unless one has scrolled up. Keys move the selection.
func testList(p *page) {
	send := func(from, to int) {
		for i := from; i <= to; i++ {
			p.send(fmt.Sprintf("GET /v1/pets/%d?", i), "")
		}
		p.equal("listed().length", min(to, 1000))
	}
	const isAtEnd = "list.scrollTop + list.clientHeight > list.scrollHeight - 8"
	const scrolled = "return new Promise((resolve) => list.addEventListener('scroll', resolve))"
	send(1, 60)
	p.equal(isAtEnd, true)
	p.equal("titles.clientWidth === list.clientWidth && list.clientWidth < list.offsetWidth", true)
	p.equal("list.getBoundingClientRect().bottom > innerHeight - 2", true)
	p.eval("list.scrollTop -= 40; window.place = list.scrollTop; " + scrolled)
	send(61, 63)
	p.equal("list.scrollTop - place", 0)
	p.eval("list.scrollTop = list.scrollHeight; " + scrolled)
	send(64, 64)
	p.equal(isAtEnd, true)
	p.eval("return drawn()") // or the event of this scroll could come after the new size
	p.resize(1000, 768, "light")
	p.equal("listed()[0].offsetHeight > 40 && !shown(titles) && "+isAtEnd, true)
	p.resize(1366, 768, "light")

	p.eval("list.focus()")
	page := int(p.eval("return Math.floor(list.clientHeight / listed()[0].offsetHeight) - 1").(float64))
	for _, tt := range []struct {
		key  string
		want int
	}{
		{up, 64}, {up, 63}, {home, 1}, {down, 2}, {up, 1}, {up, 1}, {pageDown, 1 + page}, {pageUp, 1}, {end, 64}, {down, 64},
		{escape, 64}, {pageUp, 64 - page},
	} {
		p.press(tt.key)
		url := fmt.Sprintf("/v1/pets/%d?", tt.want)
		p.see("#list [aria-selected=true] .url", url)
		p.equal("shown(pane).includes(arguments[0])", tt.key != escape, url)
		p.equal("$('#' + list.getAttribute('aria-activedescendant')) === $('[aria-selected=true]')", true)
	}
	p.equal("getComputedStyle($('[aria-selected=true]')).outlineColor === 'rgba(0, 0, 0, 0)'", false)
	p.press(end)
	p.eval("list.scrollTop = 0")
	p.press(down)
	p.equal(isAtEnd, true) // as the selected row is shown
	p.press(enter)
	p.equal("document.activeElement.id", "pane")
	p.press(escape)
	p.see("#pane", "", "#list [aria-selected=true] .url", "/v1/pets/64?")
	p.equal("document.activeElement.id", "list")
	p.press(up)
	p.click("×")
	p.see("#pane", "")

	// What is selected stays in sight when the filter has gone.
	p.eval("listed()[29].click()")
	p.fill("Filter", "/30?")
	p.equal("listed().length + ' ' + list.scrollTop", "1 0")
	p.fill("Filter", "")
	p.equal("isOnTop($('#list [aria-selected=true]'))", true)
	p.eval("$('#close').click(); list.scrollTop = list.scrollHeight; " + scrolled)

	// What is counted is what is there.
	send(65, 1001)
	p.see("#count", "The last 1,000 of 1,001 recorded")
	p.start("GET /v1/pets", "", "Prefer: delay=30")
	p.see("#count", "The last 1,000 of 1,001 recorded, 1 waiting")
	p.eval("list.scrollTop = 300; " + scrolled)
	// While nothing but the time of the one that waits changes, no more is drawn.
	changed := p.eval(`
		const changed = new Set();
		const observer = new MutationObserver((records) => {
			records.filter(({target, type}) => target !== list || type !== "attributes") // the scale of the bars
				.forEach(({target}) => changed.add((target.closest ?? ((s) => target.parentElement.closest(s))).call(target, ".row")));
		});
		observer.observe(list, {subtree: true, childList: true, characterData: true, attributes: true});
		const seen = shown(".row.held .seconds");
		await until(() => shown(".row.held .seconds") === seen, false);
		return changed.size;`)
	if changed != 1.0 {
		p.Errorf("%v rows were drawn for one that waits", changed)
	}
	p.click("List pets")
	p.see("#count", "The last 1,000 of 1,002 recorded", "#sent", ": 200")
	p.equal(isAtEnd, true)
	p.fill("Filter", "/v1/pets/1001?")
	p.equal("[count, found].map((one) => one.textContent)", []string{"1 of 1,001", "1 of 1,001 requests"})
	p.equal("[count, found].map(isOnTop)", []bool{true, false})

	// Large requests push out many small ones.
	p.fill("Filter", "")
	for range 80 {
		p.send("PUT /v1/pets", strings.Repeat("x", 65_000))
	}
	kept := strings.Count(p.send("GET /__admin/requests", ""), `"PUT"`)
	p.see("#count", fmt.Sprintf("The last %d of 1,082 recorded, 1 waiting", kept))
	p.equal("listed().length", kept+1)
}

// The filter finds the requests that have all its words, and says how many.
func testFilter(p *page) {
	p.send("POST /v1/pets?x=1", `{"x":"body",`+rex[1:], "User-Agent: shop/2.1")
	p.send("GET /v1/pets?limit=404&post", "", "X-Id: Ünïque")
	p.send("GET /v1/pets/7", "", "User-Agent: Mozilla/5.0 Chrome/156.0.0.0 Safari/537.36 Edg/156.0.0.0")
	p.send("GET /v1/pets", "", "Prefer: code=rst")
	p.see("#count", "4 recorded", "#list", "Edge 156")
	p.equal("/^Mozilla.* Edg/.test(listed()[2].querySelector('.client').title)", true)
	p.fill("Filter", p.eval("return shown('#list .time')").(string))
	p.see("#count", "of 4", "#list .url", "/v1/pets?x=1")
	for _, tt := range []struct{ filter, want string }{
		{"=404", "/v1/pets?limit=404&post"},
		{"x-id: ünïque", "/v1/pets?limit=404&post"},
		{"  SHOP body createPet location \"id\" adds pet 1 ignored: x", "/v1/pets?x=1"},
		{"code=rst no answer tcp reset", "/v1/pets"},
		{"edge 156", "/v1/pets/7"},
		{"", "/v1/pets?x=1 /v1/pets?limit=404&post /v1/pets/7 /v1/pets"},
	} {
		p.fill("Filter", tt.filter)
		p.equal("$$('#list .url').map((one) => one.textContent).join(' ')", tt.want)
	}

	p.equal("$$('#list .pause').map(({textContent}) => textContent !== '')", []bool{false, true, true, true})

	// What is selected stays in the pane while it is not found.
	p.click("GET 404")
	p.fill("Filter", "shop")
	p.see("#paneTitle", "/v1/pets/7", "#notice", "The filter hides the selected request.", "#count", "1 of 4",
		"#list [aria-selected=true]", "", "#noMatch", "")
	p.fill("Filter", "shop none")
	p.see("#noMatch", "No request matches the filter.", "#noRequests", "", "#count", "0 of 4")
	p.click("Another fault")
	for _, field := range []string{"filter", "$('input[name=skip]')"} {
		p.eval(field + ".focus()")
		p.press(escape) // which is for the field
		p.see("#paneTitle", "/v1/pets/7")
	}
	p.fill("Filter", "")
	p.equal("found.textContent", "")
	p.see("#list [aria-selected=true] .url", "/v1/pets/7", "#notice", "")
}

// The page is a client: what it sends is recorded, selected, and gets faults.
func testSend(p *page) {
	p.click("Add a pet")
	p.see("#sent", "201 adds pet 1", "#petRows", "1 Rex 7 available", "#result", "201 adds pet 1", "#offers", "")
	p.equal("sent.textContent === shown('#list .time') + ': 201 adds pet 1'", true)
	p.equal("isOnTop(sent)", false) // as the row says so
	p.equal("/^Chrome \\d+$/.test($('#list .client').textContent)", true)
	p.click("503")
	p.see("#queue .next", "503")
	p.click("Add a pet")
	p.see("#sent", ": 503", "#result", "503")
	p.click("Send again")
	p.see("#sent", "201 adds pet 2", "#petRows", "2 Bella 7 available 1 Rex", "#result", "201 adds pet 2")
	p.equal("rows()", []string{"POST 201 /v1/pets adds pet 1", "POST 503 /v1/pets 503", "POST 201 /v1/pets adds pet 2 same as"})
	p.equal("$$('#list .told').map(shown).join('')", "") // as there is no pet twice
	p.click("Every time", "Answer cut")
	p.see("#queue .next", "Answer cut")
	p.fill("Filter", "post")
	p.click("List pets")
	p.see("#sent", "200, cut", "#notice", "The filter hides the selected request.", "#paneTitle", "GET", "#result", "200, cut")
	p.click("POST 503")
	p.see("#notice", "")
	p.fill("Filter", "")

	// One that waits is a row as any other. It stays selected when it has its
	// answer, even if others are nearly the same.
	p.send("DELETE /__admin/requests", "")
	p.send("PUT /__admin/fault?delay=30&times=2", "")
	p.see("#queue .next", "Hold", "#noRequests", "No requests")
	p.click("Add a pet")
	p.see("#headline", "1 held", "#sent", "", "#result", "waiting")
	p.click("Add a pet")
	p.see("#sign.idle #headline", "Fault used up, 2 held", "#queue", "✓ Hold × 2 As usual", "#count", "0 recorded, 2 waiting", "#noRequests", "")
	p.click("Add a pet") // a browser has six connections
	p.see("#notice", "Not sent, as 2 requests of this page had not ended.")
	p.send("GET /v1/pets", "", "Prefer: delay=0")
	p.see("#count", "1 recorded, 2 waiting", "#notice", "Not sent")
	p.eval("listed()[1].click(); window.arrival = shown('#list [aria-selected=true] .time')")
	p.see("#paneTitle", "POST /v1/pets", "#details", `"name":"Мурка"`, "#details", "delay=30")
	p.equal("/^[1-9]/.test(shown('[aria-selected=true] .seconds'))", true)
	p.fill("Filter", "post waiting")
	p.see("#count", "2 of 3")
	p.click("End and release")
	p.see("#headline", "No standing fault", "#count", "0 of 3", "#result", "201", "#sent", "201 adds pet", "#notice", "The filter hides")
	p.fill("Filter", "")
	p.see("#notice", "")
	p.equal("[shown('#count'), shown('#list [aria-selected=true] .time') === arrival]", []any{"3 recorded", true})
	p.equal("rows().map((row) => row.replace(/pet \\d/, 'a pet'))", []string{
		"POST 201 /v1/pets delay=30 adds a pet", "POST 201 /v1/pets delay=30 adds a pet", "GET 200 /v1/pets Prefer: delay=0"})
	// Each row but the first has a gap.
	p.eval("$('#close').click(); window.at = (i) => Date.parse('2026-11-01T' + $$('#list .time')[i].textContent + 'Z') / 1000")
	p.equal("$$('#list .pause').slice(1).every((one, i) => one.textContent === '+' + (at(i + 1) - at(i)).toFixed(3))", true)

	// A browser does not repeat a request of the page by itself, as it would on a
	// connection that it has used before.
	p.send("POST /__admin/reset", "")
	p.send("PUT /__admin/fault?code=ok,lost", "")
	p.see("#queue .next", "As usual")
	p.click("Add a pet")
	p.see("#sent", "201 adds pet 1", "#queue .next", "Answer lost")
	p.click("Add a pet")
	p.see("#sent", "no answer adds pet 2", "#result", "no answer adds pet 2")
	p.equal("rows()", []string{"POST 201 /v1/pets ok adds pet 1", "POST no answer /v1/pets lost adds pet 2"})

	// Names differ from those of the other pets, also beside the largest ids.
	p.send("POST /__admin/reset", `[{"id":9007199254740993,`+rex[1:]+"]")
	p.see("#petRows", "9007199254740993 Rex")
	p.click("Add a pet")
	p.see("#sent", "201 adds pet", "#petRows", "9007199254740994 Bella 9007199254740994 7")
	p.click("Add a pet")
	p.see("#petRows", "9007199254740995 Zoë 9007199254740995 7")

	// The pane does not open by itself where it would cover the pets.
	for _, width := range []int{1024, 390} {
		p.resize(width, 768, "light")
		p.eval("$('#close').click()")
		p.send("POST /__admin/reset", "")
		p.see("#noPets", "No pets")
		p.click("Add a pet")
		p.see("#list [aria-selected=true]", "201", "#petRows", "1 Rex")
		p.equal("Boolean(shown('#pane'))", width == 1024)
	}
}

// A copied line sends the same request in each shell, and runs nothing. Many of
// the requests here were made to harm whoever pastes them.
func testCopy(p *page) {
	p.eval("$$('.command button')[0].click()")
	p.see("#notice", "Copied, with the key.", "#firstCommand", "Bearer ***")
	p.equal("noRequests.textContent.match(/(?<=“)[^”]+/g).filter((name) => !$$('button').some((one) => one.textContent === name))", []string{})
	first := p.eval("return copied").(string)
	p.eval("$$('.command button')[1].click()")
	second := p.eval("return copied").(string)
	if err := exec.Command("curl", "--json", "{}", "--version").Run(); err != nil {
		p.Logf("the first commands need curl 7.82: %v", err)
	} else {
		exec.Command("sh", "-c", first+"\n"+second).Run()
		p.see("#petRows", "2 Rex 7 1 Rex 7", "#queue", "✓ Answer lost As usual")
	}
	p.send("POST /__admin/reset", "")
	p.see("#noRequests", "No requests")

	p.send("POST /v1/pets", `{"name":"it's <b> \"$KEY\""}\';touch PWN;#\`, "Content-Type: application/json")
	p.send("GET /v1/pets?status={a}[1-2]", "", "Prefer: code=418, wait=1")
	p.send("HEAD /v1/pets/../pets", "")
	p.send("PATCH /v1/pets", "@no 'file'", "Content-Type: text/plain")
	p.send("GET /v1/pets", "", "X-Id: ")
	p.send("`touch$IFS'PWN'` /v1/';touch${IFS}PWN;'", "")
	p.send("GET /v1/pets", "", "X-Id: @/etc/passwd';touch PWN;#")
	p.send("POST /v1/pets", "`touch PWN` $(touch PWN) !touch '!touch' %PATH% ~ ?*")
	p.equal("listed().length", 8)

	// The journal in lines, without the headers that clients add by themselves.
	own := regexp.MustCompile(`"(Accept|Accept-Encoding|Connection|Content-Length|Host|User-Agent)":"[^"]*",?`)
	entry := regexp.MustCompile(`"method":.*,"status"`)
	journal := func() []string {
		text := p.send("GET /__admin/requests", "")
		return entry.FindAllString(own.ReplaceAllString(text, ""), -1)
	}
	sent := journal()
	lines := p.eval("return eachRow(() => (copy.click(), copied)).join('\\n')").(string)
	p.see("#paneNotice", "Copied, with the key.")
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

	// What cannot be sent as it was says why.
	p.send("DELETE /__admin/requests", "")
	p.see("#noRequests", "No requests")
	const again, copied = "Send again", "Copy as curl"
	const unknown, changed = "The journal may not have all that was sent.", "A browser would change it."
	tests := []struct{ request, body, header, buttons, reason string }{
		{"POST /v1/pets", "a\nb", "", again, "A terminal would act on a character in it."},
		{"GET a:@evil.test/x", "", "", "", "Its target is not a path."},
		{"GET /v1/pets?\xff", "", "", "", unknown},
		{"POST /v1/pets", strings.Repeat("x", 70_000), "", "", unknown},
		{"POST /v1/pets", strings.Repeat("x", 70_000), "Transfer-Encoding: chunked", "", unknown},
		{"GET /v1/pets", "", "Authorization: bearer " + key, "", unknown},
		{"GET /v1/pets", "", "Authorization: Bearer ***", "", unknown},
		{"GET /v1/pets", rex, "", copied, "A browser cannot send it."},
		{"HEAD /v1/pets", rex, "", "", "A HEAD request with a body cannot be sent again."},
		{"post /v1/pets", rex, "", copied, changed},
		{"GET /v1/pets/../pets", "", "", copied, changed},
		{"GET /v1/pets", "", "X-Id: é", copied, changed},
		{"GET /v1/pets", "", "Cookie: a=b", copied, changed},
		{"GET /v1/pets", "", "", again + " " + copied, ""},
		{"GET /v1/pets", "", "Authorization: Bearer other", again + " " + copied, ""},
	}
	for _, tt := range tests {
		p.send(tt.request, tt.body, cmp.Or(tt.header, "X-Id: 1"))
	}
	p.equal("listed().length", len(tests))
	for i, tt := range tests {
		p.eval("listed()[arguments[0]].click()", i)
		p.equal("[[sendAgain, copy].filter((one) => !one.disabled).map(shown).join(' '), shown('#' + (sendAgain.disabled ? sendAgain : copy).getAttribute('aria-describedby'))]",
			[]string{tt.buttons, tt.reason})
	}
	p.see("#paneNotice", "") // which spoke of another request
	p.click(copied)
	p.equal("shown(paneNotice) + copied.includes('Bearer other')", "Copied.true")

	// Where the page may not copy, the reader can.
	p.eval("navigator.clipboard.writeText = () => Promise.reject(); window.prompt = (text, line) => { window.asked = line; }")
	p.click(copied)
	p.equal("asked === copied", true)
}

// The page says when the list began anew, and keeps what is being read.
func testAnew(p *page) {
	p.equal("/^Since \\d\\d:\\d\\d:\\d\\d UTC$/.test(shown(began))", true)
	p.send("POST /v1/pets", rex)
	p.send("PUT /__admin/fault?code=503&operation=getPet", "")
	p.see("#queue", "503", "#list", "201", "#petRows", "1 Rex")
	p.eval("window.answer = false")
	p.click("Reset all", "Clear")
	p.send("GET /v1/nothing", "")
	p.see("#list", "404", "#queue", "503")
	p.equal("listed().length", 2)
	p.eval("window.answer = true")
	p.click("POST 201", "Clear")
	p.see("#noRequests", "No requests", "#queue", "503", "#petRows", "1 Rex", "#pane", "")
	p.equal("`Cleared or restarted at ${JSON.parse(arguments[0]).meta.since.slice(11, 19)} UTC` === shown(began)",
		true, p.send("GET /__admin/requests", ""))
	p.click("Every time", "Reset all")
	p.see("#noRequests", "No requests", "#headline", "No standing fault", "#petRows", "")
	p.equal("presets.elements.times.value", "1") // as at the start

	// Between two readings, more requests come than there were before.
	p.send("GET /v1/pets/2", "")
	p.click("GET 404")
	p.close()
	seed := "[" + strings.Repeat(rex+",", 250) + `{"id":9007199254740993,` + rex[1:] + "]"
	p.send("POST /__admin/reset", seed)
	p.send("GET /v1/pets/3", "")
	p.send("GET /v1/pets/4", "")
	p.eval("new MutationObserver(() => { window.first ??= shown('#petRows td'); }).observe(petRows, {childList: true})")
	p.eval("openGate()")
	p.equal("rows()", []string{"GET 200 /v1/pets/3", "GET 200 /v1/pets/4"})
	p.see("#paneTitle", "/v1/pets/2", "#absence", "no longer in the journal", "#count", "2 recorded")

	// The last pets are shown at once, with exact ids.
	p.equal("first", "9007199254740993")
	p.see("#petRows", "9007199254740993 Rex 7 250 Rex", "#petsTitle", "Pets, the last 100")
	p.equal("$$('#petRows tr').length", 100)
	p.equal("(({scrollWidth, clientWidth}) => scrollWidth > clientWidth)($$('#petRows tr').at(-1).firstChild)", false) // its id of three digits
	p.eval("pets.scrollTop = pets.scrollHeight")
	p.equal("isOnTop(petRows.lastChild)", true)
	p.send("POST /v1/pets", rex)
	p.see("#petRows", "9007199254740994 Rex 7 9007199254740993 Rex 7 250 Rex")

	// What becomes of a request that waits at a reset is not in the journal.
	p.start("GET /v1/pets", "", "Prefer: delay=30")
	p.click("GET waiting")
	p.send("DELETE /__admin/requests", "")
	p.see("#count", "0 recorded, 1 waiting", "#clear", "", "#result", "waiting", "#absence", "")
	p.send("POST /__admin/reset", "")
	p.see("#count", "0 recorded", "#clear", "", "#result", "was waiting", "#absence", "no longer in the journal", "#noRequests", "No requests")
	p.resize(1920, 768, "light")
	p.eval("pane.focus()")
	p.press(escape)
	p.equal("document.activeElement.id", "list")
	p.see("#result", "was waiting") // beside the list, where the pane stays
}

// The page says what is wrong, and what is not.
func testTrouble(p *page) {
	for _, path := range []string{"/openapi.json", "/__admin/requests?after=0", "/v1/pets?limit=100&after=0"} {
		p.eval("sessionStorage.broken = arguments[0]", path)
		p.command("/refresh", struct{}{})
		p.see("#sign.trouble #headline", "Something other than petstore answers.")
		p.equal("getComputedStyle(headline).color", "rgb(255, 255, 255)") // on grey
		p.eval("sessionStorage.removeItem('broken')")
		p.see("#sign.calm #headline", "No standing fault", "#noRequests", "No requests")
	}

	// The page pauses between two readings, and reads when it is seen again.
	p.eval(`
		const {setTimeout} = window;
		window.setTimeout = (callback, pause) => {
			window.pause = pause;
			window.setTimeout = setTimeout;
		};`)
	p.equal("window.pause", 500)
	p.send("GET /v1/pets/1", "")
	p.eval("document.dispatchEvent(new Event('visibilitychange'))")
	p.see("#list", "404")

	// A service that hangs is not waited for. Its requests do not come back.
	p.start("GET /v1/pets", "", "Prefer: delay=30")
	p.click("GET waiting")
	p.eval("window.isHasty = true")
	pid := strconv.Itoa(p.service.Process.Pid)
	defer exec.Command("kill", "-CONT", pid).Run() // or the next test would wait for it
	exec.Command("kill", "-STOP", pid).Run()
	p.see("#sign.trouble #headline", "Petstore does not answer.", "#scope", "What is shown was last known.",
		"#spoken", "answer. What is shown",
		"#paneTitle", "/v1/pets", "#list", "404", "#queue", "")
	exec.Command("kill", "-CONT", pid).Run()
	p.see("#sign.calm #headline", "No standing fault")
	p.service.Process.Kill()
	p.service.Wait()
	p.see("#sign.trouble #headline", "Petstore does not answer.")
	p.click("Send again")
	p.see("#paneNotice", "It is not known what became of what was sent.")
	p.eval("$('#close').click()")
	p.click("503")
	p.see("#refusal", "Petstore does not answer.")
	p.startService(strings.TrimPrefix(p.base, "http://"))
	p.see("#sign.calm #headline", "No standing fault", "#noRequests", "No requests", "#began", "Cleared or restarted at", "#refusal", "")

	// An error of the page is not one of the service. Old browsers do not run it.
	p.eval("petRows.replaceChildren = () => { throw new Error('as a test of the page'); }")
	p.send("POST /v1/pets", rex)
	p.see("#sign.trouble #headline", "This page failed.", "#scope", "Petstore may be well.", "#scope", "needs JavaScript, and Chrome")
	p.devtools("Network.enable", struct{}{})
	p.devtools("Network.setBlockedURLs", map[string]any{"urls": []string{"*page.js"}})
	p.command("/refresh", struct{}{})
	p.see("#needs", "The page needs JavaScript, and Chrome", "#desk", "")
	p.devtools("Network.setBlockedURLs", map[string]any{"urls": []string{}})
}

// The page is accessible in light and dark, and fits into narrow windows.
func testLooks(p *page) {
	top := p.eval("return desk.getBoundingClientRect().top")
	p.press(tab)
	p.equal("isOnTop(skip) && document.activeElement.id", "skip")
	p.equal("desk.getBoundingClientRect().top", top) // nothing moves
	p.press(enter)
	p.equal("document.activeElement.id", "list") // also while it is empty, and no tab stop
	p.equal("[list, pane].map(({tabIndex}) => tabIndex)", []int{-1, 0})
	p.resize(1280, 560, "light")
	p.equal("isOnTop(find('Answer lost'))", true) // also in a low window

	long := "POST /v1/pets?" + strings.Repeat("long", 100)
	p.send("POST /__admin/reset", `[{"id":99,`+rex[1:]+"]")
	p.send("PUT /__admin/fault?code=503,truncate", "")
	p.send("POST /v1/pets", strings.Replace(rex, "Rex", strings.Repeat("R", 500), 1), "Petstore-Observer: test")
	p.send("POST /v1/pets", rex)
	p.send("GET /v1/pets/7", "", "Authorization: Bearer none")
	p.send("POST /v1/pets", rex)
	p.send(long, rex, "X-Long: "+long)
	p.start("GET /v1/pets", "", "Prefer: delay=30")
	p.see("#list", "waiting", "#queue", "✓ Answer cut", "#petRows", "RRR")
	p.equal("getComputedStyle($('.held b')).backgroundColor", p.eval("return getComputedStyle(document.body).backgroundColor"))
	p.equal("[list, pane].map(({tabIndex}) => tabIndex)", []int{0, 0}) // not in Chromium alone
	p.equal("[queue, list, pane, $('#close')].every(({ariaLabel}) => ariaLabel)", true)
	p.equal("$$('[role=status], [role=alert]').map(({id}) => id).join(' ')", "spoken sent keyError found notice paneNotice refusal")
	label := p.eval("return listed()[2]").(map[string]any)
	for _, id := range label {
		got := p.command("/element/"+id.(string)+"/computedlabel", nil).(string)
		for _, want := range []string{"POST", "201, cut", "faulty: truncate", "adds pet 101", "same as", "seconds later, 0."} {
			if !strings.Contains(got, want) {
				p.Errorf("the name of a row is %q, want %q in it", got, want)
			}
		}
	}

	p.equal("$$('.pause, .seconds').every((one) => getComputedStyle(one).textAlign === 'right')", true)

	// At each width, rows keep their place and height when one is selected, and say
	// what they did, and what they are the same as. Nothing is cut without a sign.
	const cutFacts = `$$(".what > * > *").filter((one) => one.textContent).flatMap((one) => {
		const own = one.getBoundingClientRect();
		const [cell, row] = [".what", ".row"].map((name) => one.closest(name).getBoundingClientRect());
		const isOutside = own.right > cell.right + 1 || own.bottom > Math.min(cell.bottom, row.bottom) + 1;
		const isCutFact = one.matches(".fact") && one.scrollWidth > one.clientWidth + 1;
		return isOutside || isCutFact ? [one.textContent] : [];
	})`
	for _, width := range []int{320, 390, 768, 1024, 1279, 1280, 1600, 1920} {
		p.resize(width, 768, "light")
		p.eval("$('#close').click(); list.scrollTop = 0; scrollTo(0, 0); return drawn()")
		p.equal(cutFacts, []string{}, fmt.Sprint(width, " px"))
		p.eval("window.before = places()")
		p.equal("before.length > 4 && new Set(before.map(([, height]) => height)).size", 1)
		p.eval("listed()[2].click()")
		p.see("#paneTitle", "POST /v1/pets", "#absence", "")
		p.equal("JSON.stringify(places()) === JSON.stringify(before)", true)
		p.equal("isOnTop(paneTitle)", true)
		p.equal("innerWidth < 1600 || isOnTop($('#titles .client'))", true)
		p.equal(cutFacts, []string{}, fmt.Sprint(width, " px"))
		p.equal("document.documentElement.scrollWidth <= innerWidth", true)
		p.equal(`$$("button, label:has(input[type=radio]), summary, #filter").filter((one) => shown(one) && one.offsetHeight < 24)`, []any{})
	}

	// The pets are in sight, in a low window and beside the pane, too.
	for _, width := range []int{768, 1280} {
		p.resize(width, 560, "light")
		p.equal("isOnTop(paneTitle) && isOnTop(petRows.firstChild) && requests.getBoundingClientRect().bottom > innerHeight - 1", true)
	}
	p.see("#titles", "Target Seconds")
	p.equal("isOnTop($('#list .seconds span'))", true)

	p.resize(1366, 768, "light")
	p.equal("titles.clientWidth === list.clientWidth", true)
	p.eval("listed()[3].click()") // with a long target, and a long header
	p.equal("pane.scrollWidth <= pane.clientWidth", true)
	p.click("Another fault")
	p.equal("isOnTop($('input[name=answer-delay]'))", true)
	p.fill("code", "777")
	p.click("Set this fault")
	p.see("#refusal", "777")
	p.equal("isOnTop(refusal) && pets.offsetHeight > 120", true)
	p.eval("operations.append(...operations.cloneNode(true).children)") // as if there were more
	for _, height := range []int{256, 640} {
		p.resize(320, height, "light")
		p.eval("$('#close').click(); list.focus(); listed()[0].click()")
		p.equal("document.activeElement.id", "pane") // which covers what had the focus
		p.eval("$('#close').click(); list.focus()")
		p.press(end)
		p.equal("document.activeElement.id", "list") // which the pane would cover
		p.press(enter)
		p.equal("document.activeElement.id", "pane")
		p.equal("isOnTop(paneTitle)", true)
		p.see("#listPets", "") // nor can the focus go to what the pane covers
		p.click("Copy as curl")
		p.see("#paneNotice", "Copied")
		p.equal("isOnTop(paneNotice)", true)
		p.press(escape)
		p.equal("document.activeElement.id", "list")
		p.equal("$$('#operations label').every((one) => one.offsetHeight < 40)", true)
		p.eval("resetAll.focus()")
		p.equal("sign.getBoundingClientRect().bottom > 0", height == 640)
	}
	p.equal("isCovered(requestsTitle.parentElement)", true) // as the window has been scrolled
	for p.eval("return document.activeElement.id") != "skip" {
		p.press(shift + tab)
		p.equal("isCovered(document.activeElement)", false)
		p.equal("getComputedStyle($(':focus-visible[type=radio] + span, :focus-visible:not([type=radio])')).outlineStyle", "solid")
	}

	// With the colours of the system, there are still bars and a pane.
	p.start("GET /v1/pets", "", "Prefer: delay=30")
	p.resize(1024, 768, "light", map[string]string{"name": "forced-colors", "value": "active"})
	p.see("#list .held", "waiting")
	p.equal("getComputedStyle($('.row.held .seconds i')).forcedColorAdjust", "none")
	p.eval("$('.row.held').click()")
	p.equal("getComputedStyle(pane).borderLeftWidth", "1px")
	p.equal("getComputedStyle($('[aria-selected=true]')).outlineStyle", "solid")

	file := os.Getenv("PETSTORE_AXE")
	if file == "" {
		return
	}
	axe, err := os.ReadFile(file)
	if err != nil {
		p.Fatal(err)
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int{390, 1024, 1920} {
			p.resize(width, 768, scheme)
			violations := p.eval(string(axe) + `; return axe.run().then(({violations}) =>
				violations.map(({id, nodes}) => [id, ...nodes.map(({html}) => html)]));`).([]any)
			if len(violations) > 0 {
				p.Errorf("%s, %d px: axe-core finds %q", scheme, width, violations)
			}
		}
	}
}

// The picture of README shows a client whose answer is lost, and which sends its
// request a second time: there are two pets.
func testPicture(p *page) {
	file := os.Getenv("PETSTORE_PICTURE")
	if file == "" {
		p.Skip("PETSTORE_PICTURE names no file")
	}
	p.resize(1200, 744, "light")
	p.send("POST /__admin/reset", `[{"name":"Bella","categoryId":2,"status":"pending"}]`)
	p.send("PUT /__admin/fault?code=503,lost,ok,429&operation=createPet", "")
	for _, sent := range [][2]string{
		{"GET /v1/pets"},
		{"POST /v1/pets", `{"name":"Rex","categoryId":7}`},
		{"POST /v1/pets", `{"name":"Rex","categoryId":7}`},
		{"POST /v1/pets", `{"name":"Rex","categoryId":7}`},
		{"GET /v1/pets"},
	} {
		p.send(sent[0], sent[1], "User-Agent: shop/2.1")
		p.eval("return new Promise((resolve) => realTimeout(resolve, 150 + 400 * Math.random()))")
	}
	p.see("#queue .next", "429", "#petRows", "3 Rex")
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
	leave   func()    // ends the request that was started last
	reports *int      // counts the reports of a helper that is tested itself, or nil
}

// Fatalf ends the test, unless a helper is tested.
func (p *page) Fatalf(format string, args ...any) {
	p.Helper()
	if p.reports == nil {
		p.T.Fatalf(format, args...)
	}
	*p.reports++
}

// helpers run before the script of the page. They have short names for the
// expressions in this file, and let the page read again after a tenth of its
// pauses. What the page asks for itself gets another answer from the path that
// is broken, and waits for the answer while the gate is closed.
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
	window.listed = () => $$("#list .row");
	window.rows = () => listed().map((row) =>
		[...row.querySelectorAll(".method, b, .url, .tag, .fact")].map((one) => one.textContent).filter(Boolean)
			.join(" ").replace(/(same as) \S+/, "$1"));
	window.chips = () => $$("#queue li").map(shown);
	window.places = () => listed().map((row) => {
		const {left, top, height} = row.getBoundingClientRect();
		return [top, height, left];
	});
	window.joins = () => $$("#lines i").map((line) => {
		const {top, bottom} = line.getBoundingClientRect();
		const rowAt = (y) => places().findIndex(([start, height]) => y >= start && y < start + height);
		return rowAt(top + 1) + "-" + rowAt(bottom - 1);
	}).sort((a, b) => parseInt(a) - parseInt(b));
	window.eachRow = (look) => listed().map((row) => {
		row.click();
		return look();
	});
	window.drawn = () => new Promise((resolve) => { // what a scroll and a new size cause
		requestAnimationFrame(() => requestAnimationFrame(resolve));
	});
	window.isOnTop = (element) => {
		const {left, top, width, height} = element.getBoundingClientRect();
		return element.contains(document.elementFromPoint(left + width / 2, top + height / 2));
	};
	const realFetch = window.fetch;
	window.realTimeout = window.setTimeout;
	window.patience = 30_000;
	window.until = async (look, want) => {
		const end = Date.now() + patience;
		for (;;) {
			const got = JSON.stringify(look() ?? null);
			if (got === JSON.stringify(want) || Date.now() > end) {
				return got === JSON.stringify(want) ? null : got;
			}
			await new Promise((resolve) => realTimeout(resolve, 10));
		}
	};
	window.setTimeout = (callback, pause) => realTimeout(callback, pause / 10);
	const realLimit = AbortSignal.timeout;
	AbortSignal.timeout = (limit) => realLimit.call(AbortSignal, window.isHasty ? limit / 10 : limit);
	let gate = null;
	window.closeGate = () => {
		window.waitsAtGate = false;
		gate = new Promise((resolve) => { window.openGate = resolve; });
	};
	window.fetch = async (path, init) => {
		if (!(path instanceof Request)) { // with which the page sends as a client
			window.waitsAtGate = true;
			await gate;
		}
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
		text, _ := json.Marshal(want)
		p.Fatalf("%s %q:\n got %s\nwant %s, in\n%.1500s", expression, args, got, text, p.eval("return shown('body')"))
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

// close closes the gate, and waits until the page waits there.
func (p *page) close() {
	p.Helper()
	p.eval("closeGate()")
	p.equal("waitsAtGate", true)
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
	ctx, cancel := context.WithCancel(context.Background())
	p.leave = cancel
	req, err := http.NewRequestWithContext(ctx, method, p.base, strings.NewReader(body))
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
		defer cancel()
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

// resize sets the size of the window in pixels, its colour scheme, and other
// media features.
func (p *page) resize(width, height int, scheme string, others ...map[string]string) {
	p.devtools("Emulation.setDeviceMetricsOverride",
		map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width == 390}) // a phone
	features := append(others, map[string]string{"name": "prefers-color-scheme", "value": scheme})
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
	value, err := p.try(path, params)
	if err != nil {
		p.Fatalf("%s %.300v: %v", path, params, err)
	}
	return value
}

// try is like command, but returns an error. Without params, it asks with GET.
func (p *page) try(path string, params any) (any, error) {
	method, body := "GET", []byte(nil)
	if params != nil {
		text, err := json.Marshal(params)
		if err != nil {
			return nil, err
		}
		method, body = "POST", text
	}
	req, err := http.NewRequest(method, p.session+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer struct{ Value any }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != 200 {
		return nil, fmt.Errorf("%s, %v, %.300v", resp.Status, err, answer.Value)
	}
	return answer.Value, nil
}

// startBrowser starts a browser. It skips the test if there is none.
func (p *page) startBrowser() {
	p.Helper()
	driver := exec.Command("chromedriver", "--port=0")
	stdout, err := driver.StdoutPipe()
	if err := errors.Join(err, driver.Start()); err != nil {
		p.Skipf("the page is not tested, which needs Chromium and chromedriver: %v", err)
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
	options := json.RawMessage(`{"capabilities": {"alwaysMatch": {
		"timeouts": {"script": 120000},
		"goog:chromeOptions": {"args": [
			"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
			"--disable-background-networking", "--disable-component-update", "--disable-sync"
		]}
	}}}`)
	session, err := p.try("", options)
	if err != nil { // some Chromiums end at their start, once in a while
		p.Log(err)
		session = p.command("", options)
	}
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
