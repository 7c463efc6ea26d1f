// Package page holds the page of the service for browsers. In Go, it has only the test
// of the page in a browser.
package page

import (
	"bufio"
	"bytes"
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
	"strings"
	"testing"
	"time"
)

const (
	key    = "a%key/of+the=&$$'test"
	rex    = `{"name":"Rex","categoryId":7}`
	markup = `<img src=x onerror='document.title=0'>` // must be shown as text

	usual = "Requests are answered as usual."
	empty = "What a lost answer does"
	early = ". Retry-After 60 s had not passed"
)

// same is how rows says which request one is the same as.
func same(number int) string { return fmt.Sprintf("|same as request %d, then", number) }

// Keys, as WebDriver writes them.
const tab, enter, down = "\ue004", "\ue007", "\ue015"

// TestPage uses the page as people do, in a headless Chromium. It is skipped where
// there is none. If PETSTORE_AXE names the file axe.min.js of axe-core, the test also
// checks the accessibility of the page. This takes page.png anew:
//
//	PETSTORE_PICTURE=page.png go test -run TestPage/Picture ./page
func TestPage(t *testing.T) {
	p := &page{T: t, program: t.TempDir() + "/petstore"}
	p.startBrowser()
	for _, folder := range []string{"..", "../api", "."} {
		os.ReadDir(folder) // or go test would not run this test again when a file changes
	}
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", p.program, "..").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, tt := range []struct {
		name string
		run  func(*page)
	}{
		{"Key", testKey},
		{"Faults", testFaults},
		{"Sign", testSign},
		{"Facts", testFacts},
		{"Texts", testTexts},
		{"Waiting", testWaiting},
		{"Detail", testDetail},
		{"List", testList},
		{"Last", testLast},
		{"Filter", testFilter},
		{"Send", testSend},
		{"Story", testStory},
		{"Periods", testPeriods},
		{"Trouble", testTrouble},
		{"Looks", testLooks},
		{"Picture", testPicture},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p.T = t
			p.resize(1366, 768, "light")
			p.anew()
			p.see("#petCount", "None", "#petRows", "", "#end", "", "#query", "")
			tt.run(p)
		})
	}
}

// The page takes the key from the link or asks for it, and keeps it to itself.
func testKey(p *page) {
	p.equal("location.href", p.base+"/") // the address does not show the key
	p.command("/refresh", struct{}{})
	p.see("#headline", usual) // the tab remembers the key

	for _, given := range []string{" " + key + "\u00a0", "bearer  " + key, `"` + key + `"`} { // as it may be pasted
		p.eval("sessionStorage.clear()")
		p.command("/refresh", struct{}{})
		p.see("#key", "API key", "#key", "PETSTORE_API_KEY", "#desk", "", "#resetAll", "")
		p.equal("document.activeElement.id + ' ' + keyField.type", "keyField password")
		p.fill("keyField", "wrong")
		p.click("Open")
		p.see("#keyError", "not the API key")
		p.equal("[keyField.selectionStart, keyField.selectionEnd]", []int{0, 5}) // so that typing replaces it
		p.fill("keyField", given)
		p.click("Open")
		p.see("#headline", usual, "#key", "")
		p.equal("document.activeElement.id", "saying") // as the button is hidden
	}

	// A link with another key can be pasted into the address of an open page.
	p.open("#key=wrong")
	p.see("#keyError", "not the API key", "#desk", "", "#resetAll", "", "#how", "")
	p.equal("document.activeElement.id + keyField.ariaInvalid", "keyFieldtrue")
	p.open("#key=" + key) // which is taken although it is not encoded
	p.see("#headline", usual, "#key", "")

	// The page needs no storage, but then asks for the key after each load.
	p.open("?forbidden#key=" + url.QueryEscape(key))
	p.see("#headline", usual)
	p.equal("location.href", p.base+"/")
	p.open("?forbidden=again")
	p.see("#key", "API key", "#desk", "")

	// A browser that is too old shows which one is not.
	p.see("#tooOld", "")
	p.open("?old")
	p.see("#tooOld", "This page needs JavaScript, and Chrome 125")
	p.open("")
	p.see("#headline", usual)

	// The address is in sight, and a line to paste, which has the key only when it is copied.
	p.see("#base", p.base+"/v1", "#curl", "")
	p.click("Use curl")
	line := `curl -H 'Authorization: Bearer ***' ` + p.base + "/v1/pets"
	p.equal("shown(curl)", line)
	p.click("Copy")
	p.see("#copy", "Copied, with the key", "#heard", "Copied, with the key")
	p.equal("copied", strings.Replace(line, "***", strings.Replace(key, "'", `'\''`, 1), 1)) // for a shell
	p.equal("document.body.textContent.includes(arguments[0])", false, key)
	p.eval("window.cannotCopy = true")
	p.click("Copied")
	p.see("#copy", "This browser lets no page copy here")
	p.click("Close")
	p.see("#curl", "")
}

// The page offers what openapi.json describes, and each button sets its fault.
func testFaults(p *page) {
	words := p.eval(`
		const {components: {schemas: {FaultCode}}} = await (await fetch("/openapi.json")).json();
		return FaultCode.oneOf.flatMap(({title, enum: [code] = ["ok"]}) => code === "ok" ? [] : [[title, "code=" + code]]);`)
	presets := []any{[]any{"Wait 3 s", "delay=3"}, []any{"Wait 30 s", "delay=30"}, []any{"503", "code=503"}, []any{"429", "code=429"}}
	offers := append(presets, words.([]any)...)
	p.equal("$$('#buttons button').length", len(offers))
	for _, offer := range offers {
		label, query := offer.([]any)[0].(string), offer.([]any)[1].(string)
		p.click(label)
		p.see("#sign.active #headline", "Next request: "+label+".", "#query", query+"&times=1")
		p.equal("[document.title, find(arguments[0]).title === `${arguments[1]}: ${shown(sentence)}`]",
			[]any{"Next request: " + label + " – Petstore", true}, label, query)
	}
	// Each is below the moment when it acts.
	p.equal("$$('#buttons h3').map(shown)",
		p.eval("return [...new Set($$('#buttons button').map(({title}) => title.split(/: |,/)[1]))]"))
	p.eval("scope.selectedIndex = [...scope.options].findIndex(({text}) => text === 'Every getPet')")
	p.click("503")
	p.see("#headline", "Every getPet request: 503.", "#query", "code=503&operation=getPet")

	// A button says at once that it was pressed.
	p.equal("[find('429').click(), find('429').ariaBusy][1]", "true")
	p.equal("shown(query).startsWith('code=429') && find('429').ariaBusy", "false")

	// A fault of any kind can be set in a field, for the requests that are chosen, unless it says
	// for which. A list has one for each code. A refusal is shown there until it is changed, and
	// moves nothing.
	p.eval("scope.value = 'times=1&operation=createPet'")
	for _, tt := range []struct{ text, query, headline string }{
		{" lost ", "code=lost&operation=createPet&times=1", "Next createPet request: Answer lost."},
		{"after:504", "code=after:504&operation=createPet&times=1", "Next createPet request: after:504."},
		{"lost,503", "code=lost,503&operation=createPet", "Next createPet request: Answer lost."},
		{"?code=409&error-code=none_left", "code=409&error-code=none_left&operation=createPet&times=1",
			"Next createPet request: 409."},
		{"code=lost&times=2&operation=getPet", "code=lost&operation=getPet&times=2", "Next 2 getPet requests: Answer lost."},
		{"code=ok,500&skip=1&retry-after=none&operation=", "", ""},
		{"code=ok,500&skip=1&retry-after=none&answer-delay=0.2",
			"code=ok,500&answer-delay=0.2&retry-after=none&operation=createPet&skip=1", "Next createPet request: as usual."},
	} {
		p.fill("field", tt.text)
		p.press(enter)
		if tt.query == "" {
			p.equal("field.validationMessage.startsWith('Operation is')", true)
			continue
		}
		p.see("#headline", tt.headline)
		p.equal("[shown(query), find('Set').ariaBusy, field.validationMessage]", []string{tt.query, "false", ""})
	}
	p.eval("window.before = places()")
	p.fill("field", "code=lost,429&times=2")
	p.click("Set")
	p.equal("/^Times cannot be given with a list of codes/.test(field.validationMessage)", true)
	p.see("#query", "code=ok,500")
	p.fill("field", "code=lost,429")
	p.equal("field.validationMessage", "")

	// The focus goes from the button that is hidden to where an arrow key changes nothing.
	p.click("End fault")
	p.see("#sign.calm #headline", usual, "#query", "")
	p.equal("moved(before)", []string{})
	p.equal("document.activeElement.id", "saying")
	p.press(down)
	p.equal("scope.value", "times=1&operation=createPet")

	// On a phone, the controls open when they are asked for.
	p.resize(390, 768, "light")
	p.command("/refresh", struct{}{})
	p.see("#headline", usual, "#buttons", "")
	p.click("Make it fail", "503")
	p.see("#headline", "503", "#buttons", "429")
	p.equal("field.autocapitalize", "none")
}

// The sign says which requests get what, and the query that set it. It is red if the next
// one gets a failure.
func testSign(p *page) {
	for _, tt := range []struct {
		fault, requests string
		class, want     string // how the headline and the sentence begin
	}{
		{"code=503", "", "active", "Every request: 503. Instead of the operation, an error"},
		{"code=503&times=3", "GET", "active", "Next 2 requests: 503. Instead"},
		{"code=503&times=2", "GET GET GET", "calm", usual + " The fault is used up: 2 requests got it."},
		{"code=503&operation=listPets&skip=2", "", "coming", "Next 2 listPets requests: as usual. Then 503, each time."},
		{"code=503&skip=1&times=2", "", "coming", "Next request: as usual. Then 503, 2 times."},
		{"code=503,ok,lost&skip=1", "", "coming", "Next request: as usual. Then 503, then as usual, then Answer lost, then as usual."},
		{"code=503,ok,lost&skip=1", "GET", "active", "Next request: 503. Then as usual, then Answer lost, then as usual."},
		{"code=503,ok,lost&skip=1", "GET GET", "coming", "Next request: as usual. Then Answer lost, then as usual."},
		{"code=503,ok,lost&skip=1", "GET GET GET", "active", "Next request: Answer lost. After the operation, the"},
		{"code=ok&delay=0", "", "coming", "Every request: as usual."},
		{"answer-delay=0.2", "", "active", "Every request: Answer after 0.2 s. Before the answer, and after the operation, " +
			"if it is performed, a request waits for up to 0.2 s."},
		{"code=lost,503&delay=0.1", "", "active", "Next request: Wait 0.1 s + Answer lost. Then Wait 0.1 s + 503, then as usual."},
		{"code=503&delay=0.1&retry-after=7", "", "active", "Every request: Wait 0.1 s + 503. Before the operation"},
	} {
		p.send("PUT /__admin/fault?"+tt.fault, "")
		for _, method := range strings.Fields(tt.requests) {
			p.send(method+" /v1/pets", "")
		}
		p.equal("`${shown(headline)} ${shown(sentence)}`.startsWith(arguments[0])", true, tt.want)
		p.equal("[sign.className, shown(end)]", map[string][]string{
			"active": {"active", "End fault"}, "coming": {"", "End fault"}, "calm": {"calm", ""}}[tt.class], tt.fault)
		p.equal("getComputedStyle(sign).backgroundColor === 'rgb(179, 38, 30)'", tt.class == "active")
		p.equal("document.title !== 'Petstore'", tt.class != "calm")
		p.equal("shown(query)", map[bool]string{true: tt.fault}[tt.class != "calm"])
	}

	// What is selected stays so, as it is to be copied.
	p.eval("getSelection().selectAllChildren(query); window.readings = 0")
	p.equal("readings > 6 && getSelection().toString()", "code=503&delay=0.1&retry-after=7")

	// It is heard when it is new, but not each time that a number in it changes.
	p.send("PUT /__admin/fault?code=503&times=9&operation=getPet", "")
	p.see("#heard", "Next 9 getPet requests: 503.")
	p.send("GET /v1/pets/7", "")
	p.see("#headline", "Next 8 getPet requests: 503.", "#heard", ": 503")
	p.equal("shown(heard).includes('Next')", false)
	p.send("PUT /__admin/fault?delay=30", "")
	p.start("GET /v1/pets?a", "")
	p.see("#heard", "1 request held. Every request: Wait 30 s.")
	p.start("GET /v1/pets?b", "")
	p.see("#headline", "2 requests held.")
	p.eval("window.clock = Date.now(); window.readings = 0") // it is not heard all the time
	p.send("GET /v1/pets?c", "", "Prefer: code=418")
	p.equal("readings > 9 && !shown(heard).includes(': 418')", true)
	p.eval("window.clock = undefined")
	p.see("#heard", ": 418")
	p.equal("shown(heard).includes('held')", false)
}

// A row says what the fault was, which pet was added, and what the journal says that the
// request repeats.
func testFacts(p *page) {
	for _, tt := range []struct{ body, prefer, want string }{
		{rex, "code=lost", "no answer|POST /v1/pets|Prefer: code=lost|adds pet 1"},
		{rex, "code=503, retry-after=60", "503|POST /v1/pets|Prefer: code=503, retry-after=60" + same(1)},
		{rex, "code=hangup", "no answer|POST /v1/pets|Prefer: code=hangup" + same(2) + early},
		{rex, "code=ok", "201|POST /v1/pets|adds pet 2, the same as pet 1" + same(3)},
		{rex, "code=truncate", "201, half sent|POST /v1/pets|Prefer: code=truncate|adds pet 3"},
		{rex, "code=html", "502, HTML|POST /v1/pets|Prefer: code=html|adds pet 4, the same as pet 3" + same(5)},
		{rex, "code=after:504", "504|POST /v1/pets|Prefer: code=after:504|adds pet 5, the same as pet 4" + same(6)},
		{"[]", "code=ok", "400|POST /v1/pets"},
		{"[]", "delay=0.1", "400|POST /v1/pets|Prefer: delay=0.1" + same(8)},
	} {
		p.send("POST /v1/pets", tt.body, "Prefer: "+tt.prefer)
		p.equal("rows().at(-1)", tt.want)
	}
	p.see("#list", "no answer POST /v1/pets Prefer: code=lost adds pet 1 {") // as it is read aloud
	p.equal("$$('.chip').map(({className}) => className.slice(5)).join(' ')", "bad bad bad good bad bad bad warn warn")
	p.equal("$$('.verdict.bad').length", 3) // the others add nothing that is there
	p.equal("$$('.what > .bad').map(shown).includes('adds pet 1')", true)

	// A row shows the standing fault, but for what its answer says, and that a wait was released.
	for _, tt := range []struct{ query, request, outcome, fault string }{
		{"code=400", "GET /v1/pets?a", "400", ""},
		{"code=503&retry-after=7", "GET /v1/pets?b", "503", "|retry-after=7"},
		{"code=hangup&delay=0.1", "GET /v1/pets?c", "no answer", "|hangup, delay=0.1"},
		{"delay=0.1", "GET /v1/pets?d", "200", "|delay=0.1"},
	} {
		p.send("PUT /__admin/fault?"+tt.query, "")
		p.send(tt.request, "", "Prefer: wait=1") // which asks for nothing
		p.equal("rows().at(-1)", tt.outcome+"|"+tt.request+tt.fault)
	}
	p.send("PUT /__admin/fault?delay=30", "")
	p.start("GET /v1/pets?e", "")
	p.equal("rows().at(-1)", "waiting|GET /v1/pets?e|delay=30")
	p.send("DELETE /__admin/fault", "")
	p.equal("rows().at(-1)", "200|GET /v1/pets?e|delay=30, released")
	p.equal("$$('.chip').at(-1).className", "chip good")

	// The detail leads to the other request, whatever the filter.
	p.click("Problems only")
	p.fill("filter", "Prefer: code=hangup")
	p.see("#count", "1 of 14 requests")
	p.click("Prefer: code=hangup", "Show request 2")
	p.equal("failed.ariaPressed", "false")
	p.see("#count", "14 requests", "#list", "code=html")
	p.equal("$$('#rows [open]').map((one) => shown(one.querySelector('summary')).split(' ')[0])", []string{"2", "3"})
	p.equal("document.activeElement === $('#rows [open] summary')", true)

	// Problems only has what succeeds, too, if it came too early.
	p.anew()
	p.send("GET /v1/pets", "", "Prefer: code=503, retry-after=60")
	p.send("GET /v1/pets", "")
	p.send("GET /v1/pets", "")
	p.click("Problems only (2)")
	p.equal("rows()", []string{"503|GET /v1/pets|Prefer: code=503, retry-after=60", "200|GET /v1/pets" + same(1) + early})
	p.equal("$$('.what > .warn').at(-1).textContent.startsWith('same as request 1')", true)

	// Petstore may notice only after a reading that a request of it repeats another one, which
	// may not be there.
	p.anew()
	entry := func(number int, repeats string) string {
		return fmt.Sprintf(`{"arrived":%[1]d,"ended":%[1]d,"pet":%[1]d,"method":"POST","url":"/%[1]d","headers":{},"period":1,
			"body":"","time":"2030-01-01T00:00:00.00%[1]dZ","seconds":0,"status":201%[2]s}`, number, repeats)
	}
	journal := func(entries ...string) string {
		return `{"meta":{"total":3,"ended":3,"period":1},"waiting":[],"requests":[` + strings.Join(entries, ",") + "]}"
	}
	p.eval("window.fake = arguments; window.readings = 0", "/__admin/requests", journal(entry(1, ""), entry(2, ""), entry(3, "")), 200)
	p.equal("readings > 9 && rows()", []string{"201|POST /1|adds pet 1", "201|POST /2|adds pet 2", "201|POST /3|adds pet 3"})
	p.eval("window.fake = arguments", "/__admin/requests?history=true&after=2",
		journal(entry(2, `,"repeats":1`), entry(3, `,"repeats":9`)), 200)
	p.equal("rows()", []string{
		"201|POST /1|adds pet 1", "201|POST /2|adds pet 2, the same as pet 1" + same(1), "201|POST /3|adds pet 3|same as request 9",
	})
	p.click("/3")
	p.equal("$$('.detail button').map(shown)", []string{"Copy as curl"})
	p.eval("window.fake = undefined")
}

// What a row says of a request, and of the one before, which began at 2030-01-01T00:00:00Z and
// took 50 ms: when it came after that, and whether that was too early.
func testTexts(p *page) {
	p.devtools("Emulation.setTimezoneOverride", map[string]string{"timezoneId": "Asia/Kolkata"})
	defer p.devtools("Emulation.setTimezoneOverride", map[string]string{"timezoneId": ""})
	p.eval(`window.facts = await import("/facts.js");
		window.told = ({retryAfter, ...first}, seconds) => {
			const start = "2030-01-01T00:00:00.000Z";
			const time = new Date(Date.parse(start) + seconds * 1000).toISOString();
			const answerHeaders = {"Retry-After": retryAfter};
			const earlier = {time: start, ended: 1, status: 503, seconds: 0.05, answerHeaders, ...first};
			return [facts.pauseOf({time}, earlier), facts.neglectedOf({time}, earlier)].filter(Boolean).join(", not ");
		};
		window.extentOf = (length, size) => facts.extentOf("x".repeat(length), size && {"Content-Length": size});
		window.faultTextOf = (seconds) => facts.faultTextOf({headers: {}, fault: {delay: "1", "answer-delay": "2"}, ended: 1, seconds});`)
	const flag = "\U0001F3F4\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F"
	for expression, want := range map[string]string{
		"facts.reveal('" + flag + "❤\ufe0f')":                             flag + "❤\ufe0f",
		"told({seconds: 0.044}, 0.2)":                                     "0.15 s after its end", // rounded down
		"told({seconds: 0.2}, 0.2)":                                       "at once",
		"told({seconds: 0.215}, 0.2)":                                     "at once", // an end that is noticed late
		"told({retryAfter: '1'}, 1.045)":                                  "0.99 s after its end, not 1 s",
		"told({retryAfter: '1'}, 1.049)":                                  "0.99 s after its end", // times are rounded
		"told({retryAfter: '1', status: 0}, 0.2)":                         "0.15 s after its end", // it was not sent
		"told({retryAfter: 'Tue, 01 Jan 2030 00:00:01 GMT'}, 0.2)":        "0.15 s after its end, not Tue, 01 Jan 2030 00:00:01 GMT",
		"told({retryAfter: 'soon'}, 0.2)":                                 "0.15 s after its end",
		"facts.timeOf('2030-01-01T00:00:00.007Z')":                        "05:30:00.007",
		"facts.durationOf({ended: 1, seconds: 0.0126})":                   "13 ms",
		"facts.durationOf({ended: 1, seconds: 2.345})":                    "2.35 s",
		"facts.durationOf({seconds: 2.345})":                              "2.3 s",
		"faultTextOf(2.998)":                                              "delay=1, answer-delay=2, released",
		"faultTextOf(2.999)":                                              "delay=1, answer-delay=2", // times are rounded
		"extentOf(4000, 4000)":                                            "",
		"extentOf(4000, 4026)":                                            "the first 4000 of 4026 bytes",
		"extentOf(0, 4026)":                                               "without its body",
		"extentOf(3999)":                                                  "", // a body in chunks
		"extentOf(4000)":                                                  "the first 4000 bytes",
		"facts.extentOf('\ufffd'.repeat(4000), {'Content-Length': 5000})": "the first 4000 of 5000 bytes", // it is longer in UTF-8
		"facts.excerpt('x' + '🦎'.repeat(101)).slice(-3)":                  "🦎…",                           // without half a character
	} {
		p.equal(expression, want)
	}
}

// What waits looks so, for as long as it does, in a row that stays in its place.
func testWaiting(p *page) {
	p.send("PUT /__admin/fault?code=stall,drip,lost", "")
	for _, tt := range []struct{ prefer, fault, after string }{
		{"", "stall", "200, client left"},
		{"", "drip", "200, client left"},
		{"delay=30", "Prefer: delay=30", "client left"},
		{"wait=1; Code = stall", "Prefer: code=stall", "200, client left"},
	} {
		p.start("GET /v1/pets", "", "Prefer: "+tt.prefer)
		const row = "[rows().at(-1)?.replace(/.same.*/, ''), $$('.chip').at(-1)?.className]"
		p.equal(row, []string{"waiting|GET /v1/pets|" + tt.fault, "chip waits"})
		held := tt.prefer == ""
		p.equal("[/held/.test(shown(headline)), /held/.test(document.title)]", []bool{held, held})
		p.equal("shown(end)", map[bool]string{true: "End and release", false: "End fault"}[held])
		p.leave()
		p.equal(row, []string{tt.after + "|GET /v1/pets|" + tt.fault, "chip warn"})
	}

	// What is held is released with the fault, which may be used up. It is a problem until then.
	p.anew()
	p.send("PUT /__admin/fault?delay=30&times=1", "")
	p.start("POST /v1/pets", rex)
	p.see("#sign.active #headline", "1 request held. New requests are answered as usual",
		"#sentence", "The fault is used up: 1 request got it.", "#end", "End and release")
	p.send("GET /v1/pets?limit=1", "")
	p.see("#count", "2 requests, 1 waiting")
	p.click("Problems only (1)")
	p.equal("rows()", []string{"waiting|POST /v1/pets|delay=30"})
	p.click("Problems only")
	seconds := p.eval("return shown('#rows summary .duration')")
	p.equal("shown('#rows summary .duration') > arguments[0]", true, seconds)
	p.click("waiting POST")
	p.equal("$$('.detail h3').map(shown)", []string{"Sent"})
	p.equal("/^Before the operation.* From 127[.0-9]+:\\d+\\.$/.test(shown('.detail p'))", true)

	// What is read stays, although the request ends and others come.
	p.eval("$('.detail pre').focus(); getSelection().selectAllChildren($('.detail pre'))")
	p.eval("window.read = [$('pre').offsetWidth, $('pre').innerText]")
	p.send("PUT /__admin/fault?code=429", "") // which ends the wait
	p.sendMany(30, "GET /v1/pets?")
	p.see("#sign.active #headline", "429", ".detail", "Answer", "#count", "32 requests")
	p.equal("[document.activeElement === $('pre'), $('pre').offsetWidth, String(getSelection())]",
		p.eval("return [true, ...read]"))

	// A row that is pressed has its click, although its request ends.
	p.anew()
	p.start("GET /v1/pets", "", "Prefer: delay=30")
	p.equal("rows()", []string{"waiting|GET /v1/pets|Prefer: delay=30"})
	y := p.eval("return $('#rows summary').getBoundingClientRect().y").(float64) + 9
	p.mouse("mousePressed", 200, y)
	p.leave()
	p.equal("rows()", []string{"client left|GET /v1/pets|Prefer: delay=30"})
	p.mouse("mouseReleased", 200, y)
	p.see("#rows [open]", "client left GET /v1/pets")
}

// A row opens to what a client sent, beside the answer. Both are shown as text.
func testDetail(p *page) {
	p.send("POST /v1/pets?stauts=sold", `{ "name" : "`+markup+`", "categoryId":9007199254740993, "x":0}`,
		"User-Agent: "+markup, "X-Text: "+markup, "Prefer: code=lost, speed=3")
	p.see("#list .client", markup, "#list", "ignored: speed, stauts, x")
	p.click("no answer POST")
	p.see(".detail", "After the operation, the connection is closed without an answer.", ".detail", "Authorization: Bearer ***",
		".detail", `{"id":1,"name":"`+markup+`","categoryId":9007199254740993}`, "#petRows", "1 "+markup)
	p.equal("/From 127[.0-9]+:\\d+\\. /.test(shown('.detail'))", true)
	p.equal("$('.detail pre').innerText.startsWith(arguments[0])", true, "POST /v1/pets?stauts=sold\n{ \"name\" :") // the headers follow
	p.equal("$$('.detail pre')[1].innerText.startsWith('{\"id\":1,')", true)                                        // as no status was sent
	p.equal("$$('main img').length + document.title", "0Petstore")
	p.send("GET /v1/pets?limt=1&after=x", "", "X-Id: 7")
	p.see("#list", "after is 'x'")
	p.click("400 GET")
	p.see("#rows details:last-of-type", "X-Id: 7", "#rows details:last-of-type", `"code":"invalid_parameter"`)

	// A request that is known as a whole is copied as a line that sends it again, with the key.
	p.anew()
	p.send("POST /v1/pets?x=[1]", `{"name":"O'Neil"}`, "Prefer: code=lost")
	p.send("POST /v1/pets?long", strings.Repeat("x", 4001))
	p.send("HEAD /v1/pets", "")
	p.equal("rows().length", 3)
	p.eval("$$('#rows summary').forEach((row) => row.click())")
	p.equal("$$('.detail').map((one) => shown(one.querySelector('.bar')))", []string{"Copy as curl", "", "Copy as curl"})
	const quoted = `'\''`
	p.click("Copy as curl")
	p.equal("copied", "curl -g -X POST '"+p.base+"/v1/pets?x=[1]' -H 'Authorization: Bearer "+strings.ReplaceAll(key, "'", quoted)+
		"' -H 'Content-Type: application/json' -H 'Prefer: code=lost' --data-raw '{\"name\":\"O"+quoted+"Neil\"}'")
	p.click("Copy as curl")
	p.equal("copied.startsWith(arguments[0])", true, "curl -g -I '"+p.base+"/v1/pets' -H")

	// What is not seen, or turns the text around, is shown as a number.
	p.anew()
	p.send("POST /v1/pets?\u202e", "{\"name\":\"\u0085\u202e\u2060\",\"categoryId\":1}", "X-Name: \u202e")
	p.click("/v1/pets?⟨U+202e⟩")
	const shown = "⟨U+0085⟩⟨U+202e⟩⟨U+2060⟩"
	p.see("#petRows", shown, ".detail", `{"id":1,"name":"`+shown, ".detail", "X-Name: ⟨U+202e⟩")
	p.equal("/[\\u0085\\u202e\\u2060]/.test(document.body.innerHTML)", false)

	// The titles say how much of a body is known, and what was sent.
	p.anew()
	p.send("POST /v1/pets", `{"name":"`+strings.Repeat("x", 4000)+`","categoryId":1}`)
	for _, code := range []string{"503", "lost", "hangup", "truncate"} {
		p.send("GET /v1/pets/1", "", "Prefer: code="+code)
	}
	p.start("GET /v1/pets/1", "", "Prefer: code=stall")
	p.see("#list summary:has(.waits)", "stall")
	p.leave()
	p.send("HEAD /v1/pets", "", "Prefer: code=malformed")
	p.see("#list", "HEAD", "#list summary:has(.waits)", "")
	p.eval("$$('#rows summary').forEach((row) => row.click())")
	p.equal("$$('.detail').map((one) => [...one.querySelectorAll('h3')].map(shown).join('; '))", []string{
		"Sent, the first 4000 of 4026 bytes; Answer, the first 4000 of 4034 bytes",
		"Sent; Answer",
		"Sent; Answer, not sent, the first 4000 of 4034 bytes",
		"Sent",
		"Sent; Answer, half sent, the first 4000 of 4034 bytes",
		"Sent; Answer, half sent, the first 4000 of 4034 bytes",
		"Sent; Answer",
	})
	// Less was done than the fault is meant to do.
	p.equal("/^From 127/.test(shown($$('.detail p:first-child').at(-1)))", true)
	p.equal("$$('.chip').at(-1).className", "chip good")
	p.equal("shown($$('.detail p:first-child').at(-2)).startsWith('The client left before the end of its answer. ')", true)
	p.equal("$$('.detail').every((one) => one.offsetHeight < list.offsetHeight)", true)
}

// The list follows its end, unless somebody has scrolled away. What somebody reads or aims at
// stays where it is, although rows come, and one above it grows.
func testList(p *page) {
	const isAtEnd = "list.scrollTop > 0 && list.scrollTop + list.clientHeight > list.scrollHeight - 2"
	const top = "window.row.getBoundingClientRect().top"
	sent := 0
	send := func(count int) {
		p.Helper()
		p.sendMany(count, "GET /v1/pets/7")
		sent += count
		p.see("#count", fmt.Sprint(sent))
	}
	send(60)
	p.equal(isAtEnd, true)
	p.see("#below", "")
	p.eval("list.scrollTop = 0; readings = 0") // as somebody does
	p.equal("readings > 9 && list.scrollTop", 0)
	p.eval("$('#rows summary').click(); below.focus()")
	p.press(enter)
	p.equal(isAtEnd, true)
	p.equal("document.activeElement.id + shown(below)", "list") // as the button does nothing any more
	send(3)
	p.equal(isAtEnd, true) // as the open row is out of sight

	for _, tt := range []struct{ act, below string }{
		{"row.click()", "To the newest"},
		{"row.focus()", "To the newest"},
		{"mousePressed", ""}, // nothing comes below the pointer
		{"mouseMoved", ""},
	} {
		p.mouse("mouseMoved", 1300, 700)
		p.eval("$$('#rows [open] summary').forEach((one) => one.click()); document.activeElement.blur(); below.click()")
		p.send("PUT /__admin/fault?delay=30&operation=createPet", "")
		p.start("POST /v1/pets", "[]")
		sent++
		send(3)
		p.equal(isAtEnd, true)
		p.eval("window.waits = $('#rows summary:has(.waits)'); window.row = $$('#rows summary').at(-1)")
		y := p.eval("return "+top).(float64) + 9
		if strings.HasPrefix(tt.act, "mouse") {
			p.eval("window.clock = arguments[0] === 'mouseMoved' ? Date.now() : undefined", tt.act)
			p.mouse(tt.act, 200, y)
		} else {
			p.eval(tt.act)
		}
		p.equal("$('#rows [open]:not(:has(.detail))')", nil)
		before := p.eval("window.height = waits.offsetHeight; return " + top)
		send(3)
		p.see("#below", tt.below)
		p.equal(top, before)
		p.send("DELETE /__admin/fault", "")
		p.equal("waits.offsetHeight > height", true)
		p.eval("readings = 0")
		p.equal("readings > 9 && "+top, before)
		p.see("#below", tt.below)
		p.mouse("mouseReleased", 200, y)
		p.eval("window.clock = undefined")
		p.equal("row.parentElement.open", tt.act == "row.click()" || tt.act == "mousePressed")
	}
	p.equal(isAtEnd, true) // as the pointer rests
	p.mouse("mouseMoved", 1300, 700)

	// A row that opens at the end is seen with its detail.
	p.eval("below.click(); window.row = $$('#rows summary').at(-1); row.click()")
	p.equal("isWhole(row) && isWhole($$('.detail pre').at(-1))", true)

	// With the keyboard, one comes from the controls to the rows, and to what they show.
	p.eval("$('#clear').focus()")
	p.press(tab)
	p.equal("document.activeElement === $('#rows summary')", true)
	p.equal("getComputedStyle(document.activeElement).outline.includes('solid 2px')", true)
	p.press(enter)
	p.see("#rows [open]", "Sent")
	p.press(tab)
	p.press(tab)
	p.see("pre:focus", "GET /v1/pets/7") // which may be scrolled
}

// The list has the last thousand requests that have ended, and those that wait.
func testLast(p *page) {
	p.start("GET /v1/pets?slow", "", "Prefer: delay=30")
	leave := p.leave
	p.see("#count", "1 waiting")
	p.sendMany(1000, "GET /v1/pets/7")
	p.see("#count", "1,001 requests, 1 waiting")
	p.eval("$$('#rows summary')[1].click()")
	p.see("#rows [open]", "Sent")
	p.sendMany(1, "GET /v1/pets/7?last")
	p.see("#count", "1,002 requests, 1 waiting") // as the oldest is in sight
	p.eval("below.click()")
	leave()
	p.see("#count", "1,000 requests", "#rows", "client left GET /v1/pets?slow") // as it ended last

	// What has ended, and is not in the journal any more, does not wait for ever.
	p.start("GET /v1/pets?slow", "", "Prefer: delay=30")
	p.see("#count", "1 waiting")
	p.eval("window.isPaused = true")
	p.leave()
	p.send("GET /__admin/requests?waiting=0", "")
	p.sendMany(1000, "GET /v1/pets")
	p.eval("window.isPaused = false")
	p.equal("$$('.waits').length", 0)
	p.send("GET /v1/pets", "")
	p.equal("shown(count)", "1,000 requests")
}

// The filter finds the requests that show all its words or have them in what was sent and
// answered, and says how many.
func testFilter(p *page) {
	p.send("POST /__admin/reset?test=TestCheckout", "")
	p.send("POST /v1/pets?x=1", `{"x":"`+strings.Repeat("x", 300)+`body",`+rex[1:], "User-Agent: shop/2.1")
	p.send("GET /v1/pets?limit=404&post", "", "X-Id: hidden")
	p.send("POST /__admin/reset", "")
	p.send("GET /v1/pets/7", "", "User-Agent: Mozilla/5.0 Edg/156.0.0.0")
	p.send("GET /v1/pets?"+strings.Repeat("x", 300)+"end", "", "Prefer: code=rst")
	p.equal("shown(count)", "4 requests")
	p.click("limit=404")
	p.see(".detail", "From")
	address := p.eval("return /From (\\S+)\\./.exec(shown('.detail'))[1]").(string)
	for _, tt := range []struct{ filter, want string }{
		{"=404", "GET /v1/pets?limit=404&post"},
		{"Not_Found", "GET /v1/pets/7"}, // in the answer
		{"  SHOP body adds pet 1 ignored: x", "POST /v1/pets?x=1"},
		{"edg 156", "GET /v1/pets/7"},
		{"x-id: hidden", "GET /v1/pets?limit=404&post"}, // a header
		{"location: /v1/pets/1", "POST /v1/pets?x=1"},   // a header of the answer
		{"getpet", "GET /v1/pets/7"},                    // an operation
		{"testcheckout adds", "POST /v1/pets?x=1"},      // a test
		{address, "GET /v1/pets?limit=404&post"},        // of the client
		{"answerHeaders", ""},
		{"rst xend", "GET /v1/pets?" + strings.Repeat("x", 187) + "…"}, // of which the row shows the beginning
	} {
		p.fill("filter", tt.filter)
		p.equal("$$('#rows summary').map((one) => shown(one.querySelector('.what .mono'))).join('')", tt.want)
		p.equal("shown(count)", map[bool]string{true: "1 of 4 requests", false: "0 of 4 requests"}[tt.want != ""])
	}
	p.see("#heard", "1 of 4 requests")
	p.fill("filter", p.eval("return $('#rows summary').children[1].textContent").(string)) // the time
	p.see("#count", "0 of 4 requests", "#noneFound", "No request is shown.")
	p.fill("filter", "rst")
	p.send("GET /v1/pets", "")
	p.send("GET /v1/pets", "", "Prefer: code=rst")
	p.see("#count", "2 of 6 requests", "#noneFound", "")
	p.click("Problems only (4)")
	p.fill("filter", "")
	p.equal("failed.ariaPressed + rows().map((row) => row.split('|')[0])", "true400,404,no answer,no answer")
	p.equal("headings()", []string{"Period 2 · TestCheckout · 2 requests, 1 problem", "Period 3 · 4 requests, 3 problems"})
	p.click("Problems only")
	p.equal("failed.ariaPressed + shown(count)", "false6 requests")

	// What was found is where it was when the filter is gone, among what is around it.
	p.anew()
	p.sendMany(30, "GET /v1/pets?m")
	p.send("GET /v1/pets?n", "")
	p.sendMany(30, "GET /v1/pets?o")
	p.see("#count", "61 requests")
	const top = "$$('#rows summary').find((one) => shown(one).includes('pets?n')).getBoundingClientRect().top"
	p.fill("filter", "pets?n")
	p.see("#count", "1 of 61 requests")
	before := p.eval("return " + top)
	p.fill("filter", "")
	p.equal("[shown(count), "+top+"]", []any{"61 requests", before})
	p.sendMany(2, "GET /v1/pets?o")
	p.see("#count", "63 requests", "#below", "To the newest")
	p.equal(top, before)
}

// The page is a client: what it sends is recorded, and gets faults.
func testSend(p *page) {
	// Each press adds another pet, also after the page was loaded anew. What is lost, a
	// browser does not repeat by itself.
	p.send("PUT /__admin/fault?code=lost", "")
	p.see("#headline", "Answer lost")
	for _, count := range []string{"1", "2"} {
		p.click("Add a pet")
		p.see("#count", count)
		p.command("/refresh", struct{}{})
		p.see("#count", count)
	}
	p.equal("$$('#petRows span:nth-child(2)').map(shown).sort()", []string{"Rex", "Rex 2"})
	p.see(".client", "petstore's page")

	// A request that waits does not stop the page.
	p.send("PUT /__admin/fault?delay=30", "")
	p.see("#headline", "Wait 30 s", "#heard", "Wait 30 s")
	p.eval("addPet.click(); addPet.click(); field.focus()")
	p.see("#headline", "1 request held", "#heard", "1 request held")
	p.equal("[addPet.ariaBusy, document.activeElement.id]", []any{"true", "field"})
	p.click("End and release")
	p.see("#headline", usual)
	p.equal("addPet.ariaBusy", "false")

	// The buttons stay where they are, although the list of pets grows, and one says more.
	for _, width := range []int{390, 1366} {
		p.resize(width, 768, "light")
		p.anew()
		p.eval("window.before = places()")
		p.click("Add a pet", "Add a pet", "Add a pet")
		p.send("GET /v1/pets/99", "")
		p.see("#petRows", "3 Rex 3 2 Rex 2 1 Rex", "#failed", "Problems only (1)")
		p.equal("[moved(before), addPet.ariaBusy]", []any{[]string{}, "false"})
	}

	// An app in the same browser is not the page.
	agent := "User-Agent: " + p.eval("return navigator.userAgent").(string)
	p.send("PUT /v1/pets", "", agent, "Origin: http://a.test")
	p.equal("shown($$('.client').at(-1))", "http://a.test")
}

// The page tells the story of a lost answer, once, and leaves the standing fault alone. The
// sign takes part, until somebody presses something, or a client sends.
func testStory(p *page) {
	tell := func() {
		p.Helper()
		p.eval("window.heldPause = 2500; story.click(); story.click()")
		p.see("#rows", "no answer", "#start", "")
		p.equal("typeof goOn", "function")
	}
	p.send("PUT /__admin/fault?code=503", "")
	p.see("#headline", "503")
	tell()
	p.see("#sign.active #headline", "This page sent a pet, and got no answer. Every request: 503.")
	p.eval("goOn()")
	p.see("#petRows", "2 Rex 1 Rex", "#headline", "The pet is there twice. Every request: 503.")
	p.equal("rows()", []string{
		"no answer|POST /v1/pets|Prefer: code=lost|adds pet 1", "201|POST /v1/pets|adds pet 2, the same as pet 1" + same(1),
	})
	p.equal("JSON.parse(arguments[0]).matched", 0, p.send("GET /__admin/fault", ""))
	p.equal("/Request 2: 201, adds pet 2, the same as pet 1, same as request 1, .* after its end/.test(shown(heard))", true)
	p.click("Problems only (2)") // which keeps a pet that is there twice
	p.equal("failed.ariaPressed + rows().length", "true2")
	p.send("DELETE /__admin/fault", "")
	p.see("#sentence", "It was added before the answer was lost. Now choose a fault, and press Add a pet, or Use curl.")
	p.click("Add a pet")
	p.see("#petRows", "3 Rex 3", "#sign.calm #headline", usual)

	p.anew()
	tell()
	p.see("#headline", "This page sent a pet, and got no answer.", "#sentence", "It will send it again.")
	p.equal("sign.className", "")
	p.send("GET /v1/pets", "")
	p.see("#sign.calm #headline", usual)

	// After a reset, it does not go on.
	p.send("POST /__admin/reset", "")
	p.eval("goOn()")
	p.equal("story.ariaBusy", "false")
	p.equal("rows()", []string{"no answer|POST /v1/pets|Prefer: code=lost|adds pet 1", "200|GET /v1/pets"})
	p.see("#petRows", "", "#sign.calm #headline", usual, "#start", "")
}

// The requests of a period are a group, which has the name of its test.
func testPeriods(p *page) {
	p.send("POST /v1/pets", rex)
	p.send("PUT /__admin/fault?code=503&operation=getPet", "")
	p.eval("window.answer = false") // each dialog is cancelled
	p.click("Reset all")
	p.send("GET /v1/nothing", "")
	p.see("#list", "404", "#headline", "503", "#petRows", "1 Rex")
	p.equal("headings()", []string{}) // as there is one

	// Nothing is lost, although the page reads only after all of this.
	want := []string{"201|POST /v1/pets|adds pet 1", "404|GET /v1/nothing"}
	p.eval("window.isPaused = true")
	for _, test := range []string{"TestCheckout", markup, ""} {
		p.send("POST /__admin/reset?test="+url.QueryEscape(test), "")
		p.send("GET /v1/pets", "")
		want = append(want, "200|GET /v1/pets")
	}
	p.send("POST /__admin/reset", "")
	p.eval("window.isPaused = false")
	p.see("#heard", "Reset or cleared")
	p.equal("rows()", want)
	p.equal("headings()", []string{
		"Period 1 · 2 requests, 1 problem", "Period 2 · TestCheckout · 1 request", "Period 3 · " + markup + " · 1 request",
		"Period 4 · 1 request", "Period 5 · 0 requests",
	})
	p.click("Problems only (1)") // without the groups of what has none
	p.equal("rows().concat(headings())", []string{"404|GET /v1/nothing", "Period 1 · 2 requests, 1 problem"})
	p.click("Problems only")
	p.see("#count", "5 requests", "#headline", usual, "#petCount", "None")

	// It is all there again when the page is loaded again. Who empties the list on this page
	// has an empty list.
	p.command("/refresh", struct{}{})
	p.eval("window.readings = 0")
	p.equal("rows()", want)
	p.equal("readings > 9 && shown(heard)", usual) // and nothing that was there before
	p.send("GET /v1/pets/7", "")
	p.see("#count", "6 requests")
	p.click("Clear")
	p.see("#start", "", "#rows", "", "#noneFound", "No request is shown.")
	p.equal("JSON.parse(arguments[0]).requests.length", 6, p.send("GET /__admin/requests?history=true", ""))
	p.send("GET /v1/pets", "")
	p.see("#count", "1 request")
	p.eval("window.answer = true")
	p.click("Reset all")
	p.see("#start", empty, "#rows", "", "#heard", "Reset or cleared")
	p.send("POST /__admin/reset?test=TestLogin", "")
	p.equal("headings()", []string{"Period 7 · TestLogin · 0 requests"}) // although it is the only one

	// What waits at a reset or a clear is there once, with its outcome.
	p.start("GET /v1/pets?slow", "", "Prefer: delay=30")
	leave := p.leave
	p.see("#count", "1 waiting")
	p.send("DELETE /__admin/requests", "")
	p.send("GET /v1/pets/2", "")
	p.equal("headings()", []string{"Period 7 · TestLogin · 1 request, 1 problem", "Period 8 · TestLogin · 1 request, 1 problem"})
	p.equal("rows()", []string{"waiting|GET /v1/pets?slow|Prefer: delay=30", "404|GET /v1/pets/2"})
	p.click("Clear") // which keeps what waits
	p.equal("rows()", []string{"waiting|GET /v1/pets?slow|Prefer: delay=30"})
	leave()
	p.equal("rows()", []string{"client left|GET /v1/pets?slow|Prefer: delay=30"})
	p.send("GET /v1/pets/2", "")
	p.click("404 GET")
	p.see("#rows [open]", "Copy as curl")
	p.equal("$$('.detail button').length", 1) // as the request that it repeats was cleared

	// After a reset, the last pets of a seed are there, with exact ids.
	p.send("POST /__admin/reset", "["+strings.Repeat(rex+",", 250)+`{"id":9223372036854775806,"name":":1234567890123456","categoryId":7}]`)
	p.see("#petRows", `9223372036854775806 :1234567890123456 250 Rex`, "#petCount", "the last 100 of 251")
	p.equal("$$('#petRows li').length", 100)
	p.send("POST /v1/pets", rex)
	p.see("#petRows", `9223372036854775807 Rex 9223372036854775806 :1234567890123456 250 Rex`, "#list", "adds pet 9223372036854775807")
	p.send("POST /__admin/reset", "["+strings.Repeat(rex+",", 99)+rex+"]")
	p.equal("shown(petCount)", "100") // as these are all
}

// The page says that petstore does not answer, and goes on when it does.
func testTrouble(p *page) {
	p.send("GET /v1/pets/1", "")
	p.see("#list", "404")

	// A service that hangs is not waited for. What was known stays in sight.
	p.send("PUT /__admin/fault?code=503&operation=createPet", "")
	p.see("#headline", "503")
	p.eval("window.isHasty = true")
	exec.Command("kill", "-STOP", fmt.Sprint(p.service.Process.Pid)).Run()
	p.see("#headline", "Petstore does not answer.", "#sentence", "This page goes on asking.",
		"#list", "404", "#end", "", "#heard", "Petstore does not answer.")
	p.stopService()
	p.click("Add a pet", "429")
	p.equal("[addPet.ariaBusy, find('429').ariaBusy]", []string{"false", "false"}) // or the new process may get them

	// When petstore is started again, the page begins anew, also if it has had as many requests.
	p.startService(strings.TrimPrefix(p.base, "http://"))
	p.see("#sign.calm #headline", usual, "#start", empty)
	p.equal("rows()", []string{})
	p.send("GET /v1/pets/2", "")
	p.see("#list", "/v1/pets/2")
	p.eval("window.isPaused = true")
	p.stopService()
	p.startService(strings.TrimPrefix(p.base, "http://"))
	p.send("GET /v1/pets/3", "")
	p.eval("window.isPaused = false")
	p.equal("rows()", []string{"404|GET /v1/pets/3"})

	// Whatever petstore answers, the page goes on. What it cannot show, it says.
	for _, tt := range []struct {
		path, answer, headline string
		status                 int
	}{
		{"/__admin/fault", `null`, "Petstore does not answer: what answers, with the status 200, is not petstore.", 200},
		{"/__admin/pets", `[{"id":1}]`, "This page cannot show what petstore answers.", 200},
		{"/__admin/fault", `<html>`, "Petstore does not answer: what answers, with the status 502, is not petstore.", 502}, // as a proxy
		{"/__admin/fault", `{"error":"x"}`, "Petstore does not answer: what answers, with the status 401, is not petstore.", 401},
	} {
		p.eval("window.fake = arguments", tt.path, tt.answer, tt.status)
		p.send("POST /__admin/reset", "["+rex+"]")
		p.send("GET /v1/pets/2", "")
		p.see("#headline", tt.headline)
		p.eval("window.fake = undefined")
		p.see("#headline", usual, "#petRows", "1 Rex", "#buttons", "Wait 30 s")
		p.equal("rows().at(-1)", "404|GET /v1/pets/2")
	}
	// It asks for the key if that is another one now.
	p.send("PUT /__admin/fault?code=503", "")
	p.see("#headline", "503")
	p.eval("window.fake = arguments", "/__admin/fault", `{"code":"unauthorized","message":"this is not the API key","status":401}`, 401)
	p.see("#keyError", "This is not the API key.", "#desk", "")
	p.equal("document.title", "Petstore")
}

// The page is accessible in light and dark, and fits into any window.
func testLooks(p *page) {
	long := "POST /v1/pets?" + strings.Repeat("long", 100)
	p.send("POST /__admin/reset?test="+strings.Repeat("Long", 50), `[{"id":99,`+rex[1:]+","+strings.Replace(rex, "Rex", strings.Repeat("R", 500), 1)+"]")
	p.send("PUT /__admin/fault?code=lost,503,ok,429&operation=createPet", "")
	p.send("POST /v1/pets", rex)
	p.send("POST /v1/pets", rex)
	p.send("POST /v1/pets", rex)
	p.send("GET /v1/pets/7", "", "Authorization: Bearer none", "User-Agent: "+strings.Repeat("agent ", 99))
	p.send(long, rex, "X-Long: "+long, "Prefer: code=lost")
	p.send("GET /v1/pets/99", "", "Prefer: code=truncate")
	p.start("POST /v1/pets", rex, "Prefer: code=stall, delay=30")
	p.send("PUT /__admin/fault?code=drip&delay=30&answer-delay=30", "") // which takes long to say
	p.see("#list", "waiting", "#list", "adds pet 103", "#headline", "Slow body", "#petRows", "RRR")

	// Nothing is cut off, but for what ends in an ellipsis. What a request did is whole. The sign
	// shows all that it says, or a scrollbar.
	const cut = `[document.documentElement, ...$$("body :not(#heard, #heard *)")].filter((one) => shown(one) && (
		one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0 && (one.matches(".verdict") || !one.closest(".cut, #petRows")) ||
		one.matches(".verdict") && one.getBoundingClientRect().right > one.parentElement.getBoundingClientRect().right
	)).map(shown)`
	for _, size := range [][2]int{{320, 568}, {390, 844}, {640, 360}, {768, 1024}, {853, 480}, {1024, 768}, {1366, 650}, {1920, 1080}} {
		p.resize(size[0], size[1], "light")
		p.eval("$$('#rows summary')[2].click()")
		p.see(".detail", "Answer")
		p.equal(cut, []string{})
		p.equal("saying.scrollHeight <= saying.clientHeight || getComputedStyle(saying).overflowY === 'auto'", true)
		p.eval("$$('#rows summary')[2].click()")
		p.equal(`$$("button, select, input, summary").filter(shown).filter((one) => Math.min(one.offsetWidth, one.offsetHeight) <
			(matchMedia("(pointer: coarse)").matches && one.matches(":not(summary)") ? 44 : 24)).map(shown)`, []string{})
		// What has the focus is whole.
		p.eval("$$('#rows summary').at(-2).focus()")
		p.press(tab)
		p.equal("document.activeElement === $$('#rows summary').at(-1) && isWhole(document.activeElement)", true)
		p.eval("document.activeElement.blur()")
	}

	// At 400 % zoom, all of the page scrolls, and how to use curl can be scrolled to its end.
	p.resize(320, 192, "light")
	p.eval("$('.verdict').scrollIntoView({block: 'center'})")
	p.equal("$('.verdict').getBoundingClientRect().top > $('#rows h3').getBoundingClientRect().bottom", true)
	p.click("Use curl")
	p.equal("call.getBoundingClientRect().bottom <= innerHeight && call.getBoundingClientRect().top >= 0", true)
	p.click("Close")

	// With forced colours, an open row and an active fault are seen all the same.
	p.resize(1024, 768, "light")
	p.devtools("Emulation.setEmulatedMedia",
		map[string]any{"features": []map[string]string{{"name": "forced-colors", "value": "active"}}})
	p.eval("$$('#rows summary')[2].click()")
	p.see("#rows [open]", "Answer")
	p.equal("[list.scrollTop = 999, isWhole($('#rows h3'))][1]", true) // the heading stays
	p.equal("[$('#rows [open]'), $('#sign.active')].map((one) => getComputedStyle(one).outlineWidth)", []string{"2px", "2px"})
	p.equal("getComputedStyle($('.chip')).color === getComputedStyle(document.body).color", true) // not as a link

	file := os.Getenv("PETSTORE_AXE")
	if file == "" {
		return
	}
	axe, err := os.ReadFile(file)
	if err != nil {
		p.Fatal(err)
	}
	p.eval(string(axe))
	for _, fault := range []string{"PUT /__admin/fault?code=503", "DELETE /__admin/fault"} {
		p.send(fault, "")
		p.equal("sign.className === 'active'", fault[0] == 'P')
		for _, width := range []int{390, 1366} {
			for _, scheme := range []string{"light", "dark"} {
				p.resize(width, 768, scheme)
				p.equal("arguments[0]", []string{}, p.eval(`return axe.run().then(({violations}) =>
					violations.map(({id, nodes}) => [id, ...nodes.map(({html}) => html)]))`))
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
	p.resize(1280, 780, "light")
	p.send("POST /__admin/reset?test=TestCheckout", "")
	p.send("PUT /__admin/fault?code=ok,lost,ok,429&operation=createPet", "")
	for _, body := range []string{`{"name":"Bella","categoryId":2}`, rex, rex} {
		p.send("POST /v1/pets", body, "User-Agent: shop/2.1")
	}
	p.click("no answer POST")
	p.see("#headline", "429", "#petRows", "3 Rex 2 Rex 1 Bella", ".detail", "Answer, not sent")
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
}

// helpers run before the script of the page. They have short names for the expressions in
// this file, and let the times of the page pass twenty times as fast, or stand still with
// window.clock. The query of the address makes what else can happen to the page.
const helpers = `
	window.$ = (selector) => document.querySelector(selector);
	window.$$ = (selector) => [...document.querySelectorAll(selector)].filter((one) => !one.closest("[hidden]"));
	window.shown = (what) => {
		const element = typeof what === "string" ? $(what) : what;
		return element?.checkVisibility() ? (element.innerText ?? "").replace(/\s+/g, " ").trim() : "";
	};
	const isThere = (selector) => $(/[#.]\w+/.exec(selector)?.[0] ?? selector) !== null; // it may be misspelled
	window.missing = (pairs) => pairs.filter((text, i) => i % 2 && (text
		? !shown(pairs[i - 1]).includes(text)
		: shown(pairs[i - 1]) || !isThere(pairs[i - 1])));
	window.find = (text) => $$("button").find((one) => shown(one).startsWith(text)) ??
		$$("summary").find((one) => shown(one).includes(text));
	window.rows = () => $$("#rows summary").map((row) => {
		const facts = [...row.querySelectorAll(".what > *")].filter((one) => one.matches(".mono") || /^(adds|same)/.test(shown(one)));
		return [row.querySelector(".chip"), ...facts].map(shown).join("|").replace(/\d+\.\d\d s after its end|at once(, or sent together)?/, "then");
	});
	window.headings = () => $$("#rows > section > h3").map(shown).filter(Boolean);
	window.places = () => $$("button").filter(shown).map((one) => [one, one.getBoundingClientRect()]);
	window.moved = (before) => before.filter(([one, {left, top}]) => {
		const now = one.getBoundingClientRect();
		return shown(one) && (now.left !== left || now.top !== top);
	}).map(([one]) => shown(one));
	window.isWhole = (element) => {
		const {left, top, right, bottom} = element.getBoundingClientRect();
		const points = [[left + 1, top + 1], [right - 1, top + 1], [left + 1, bottom - 1], [right - 1, bottom - 1]];
		return points.every(([x, y]) => element.contains(document.elementFromPoint(x, y)));
	};
	const realFetch = window.fetch;
	window.realTimeout = window.setTimeout;
	window.until = async (look, want) => {
		const end = realNow() + 30_000;
		for (;;) {
			const got = JSON.stringify(look() ?? null);
			if (got === JSON.stringify(want) || realNow() > end) {
				return got === JSON.stringify(want) ? null : got;
			}
			await new Promise((resolve) => realTimeout(resolve, 10));
		}
	};
	window.setTimeout = (callback, pause) => {
		if (pause === window.heldPause) {
			window.goOn = callback;
			return;
		}
		return realTimeout(callback, pause / 20);
	};
	const realNow = Date.now;
	Date.now = () => window.clock ?? realNow() * 20;
	const realLimit = AbortSignal.timeout;
	AbortSignal.timeout = (limit) => realLimit.call(AbortSignal, window.isHasty ? limit / 20 : limit);
	const situation = location.search;
	window.fetch = async (path, init) => {
		window.readings++;
		while (window.isPaused) {
			await new Promise((resolve) => realTimeout(resolve, 10));
		}
		if (window.fake && path.startsWith(window.fake[0]) && init?.method !== "POST") {
			return new Response(window.fake[1], {status: window.fake[2]});
		}
		return realFetch(path, init);
	};
	if (situation.startsWith("?forbidden")) {
		Object.defineProperty(window, "sessionStorage", {get() { throw new DOMException("", "SecurityError"); }});
	}
	if (situation === "?old") {
		CSS.supports = () => false;
	}
	window.confirm = () => window.answer;
	const clipboard = {writeText: async (text) => void (window.copied = text)};
	Object.defineProperty(navigator, "clipboard", {get: () => window.cannotCopy ? undefined : clipboard});`

// equal waits for half a minute at most until an expression has a value.
func (p *page) equal(expression string, want any, args ...any) {
	p.Helper()
	got := p.eval("return until(() => "+expression+", [...arguments].at(-1))", append(args, want)...)
	if got != nil {
		text, _ := json.Marshal(want)
		p.Fatalf("%s %.200q:\n got %s\nwant %s, in\n%.1500s", expression, args, got, text, p.eval("return shown('body')"))
	}
}

// see takes pairs of a selector and a text. It waits until each element shows a text
// that contains the other one or, for "", until it shows nothing.
func (p *page) see(pairs ...string) {
	p.Helper()
	p.equal("missing(arguments[0])", []string{}, pairs)
}

// click clicks, one after the other, on the first button or row that shows each of
// these texts.
func (p *page) click(texts ...string) {
	p.Helper()
	for _, text := range texts {
		p.equal("Boolean(find(arguments[0])) && find(arguments[0]).ariaBusy !== 'true'", true, text)
		element, _ := p.eval("return find(arguments[0])", text).(map[string]any)
		for _, id := range element {
			p.command(fmt.Sprintf("/element/%s/click", id), struct{}{})
		}
	}
}

// open loads the page with a query, or a fragment.
func (p *page) open(address string) {
	p.Helper()
	p.command("/url", map[string]any{"url": p.base + "/" + address})
}

// anew opens the page of another service, whose history is empty.
func (p *page) anew() {
	p.Helper()
	p.stopService()
	p.startService("127.0.0.1:0")
	p.open("#key=" + strings.ReplaceAll(key, "%", "%25")) // the + is not a space
	p.see("#headline", usual, "#start", empty, "#rows", "")
}

// fill puts a text into the field with an id, and the focus there.
func (p *page) fill(id, text string) {
	p.Helper()
	p.eval(`
		const field = document.getElementById(arguments[0]);
		field.focus();
		field.value = arguments[1];
		field.dispatchEvent(new Event("input", {bubbles: true}));`, id, text)
}

// press presses a key where the focus is.
func (p *page) press(key string) {
	p.Helper()
	for _, id := range p.eval("return document.activeElement").(map[string]any) {
		p.command(fmt.Sprintf("/element/%s/value", id), map[string]any{"text": key})
	}
}

// mouse moves, presses or releases the mouse.
func (p *page) mouse(kind string, x, y float64) {
	p.devtools("Input.dispatchMouseEvent", map[string]any{"type": kind, "button": "left", "clickCount": 1, "x": x, "y": y})
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
	if body != "" && strings.HasPrefix(target, "/v1/") {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		req.Header[name] = []string{value}
	}
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

// sendMany sends requests, one after the other.
func (p *page) sendMany(count int, request string) {
	p.Helper()
	for range count {
		p.send(request, "")
	}
}

// resize sets the size of the window in pixels, and its colour scheme.
func (p *page) resize(width, height int, scheme string) {
	p.devtools("Emulation.setDeviceMetricsOverride",
		map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width <= 390}) // a phone
	p.devtools("Emulation.setTouchEmulationEnabled", map[string]any{"enabled": width <= 390})
	p.devtools("Emulation.setEmulatedMedia",
		map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}})
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

// try is like command, but returns an error.
func (p *page) try(path string, params any) (any, error) {
	body, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	resp, err := http.Post(p.session+path, "application/json", bytes.NewReader(body))
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

// startBrowser starts a browser. It skips the test if there is none that runs.
func (p *page) startBrowser() {
	p.Helper()
	const missing = "the page is not tested, which needs Chromium and chromedriver: %v"
	driver := exec.Command("chromedriver", "--port=0")
	driver.WaitDelay = time.Second
	stdout, err := driver.StdoutPipe()
	if err := errors.Join(err, driver.Start()); err != nil {
		p.Skipf(missing, err)
	}
	var base string
	lines := bufio.NewScanner(stdout)
	for base == "" && lines.Scan() {
		if _, port, ok := strings.Cut(lines.Text(), "started successfully on port "); ok {
			base = "http://127.0.0.1:" + strings.TrimSuffix(port, ".")
		}
	}
	if base == "" {
		p.Skipf(missing, driver.Wait())
	}
	p.Cleanup(func() {
		http.Get(base + "/shutdown")
		driver.Wait()
	})
	p.session = base + "/session"
	options := json.RawMessage(`{"capabilities": {"alwaysMatch": {
		"timeouts": {"script": 60000},
		"goog:chromeOptions": {"args": [
			"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
			"--disable-background-networking", "--disable-component-update", "--disable-sync"
		]}
	}}}`)
	session, err := p.try("", options)
	if err != nil { // some Chromiums end at their start, once in a while
		session, err = p.try("", options)
	}
	if err != nil {
		p.Skipf(missing, err)
	}
	p.session += "/" + session.(map[string]any)["sessionId"].(string)
	p.devtools("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": helpers})
}

// stopService ends the service, if there is one.
func (p *page) stopService() {
	if p.service != nil {
		p.service.Process.Kill()
		p.service.Wait()
	}
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
