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
)

const (
	key    = "a%key/of+the=$$test"
	rex    = `{"name":"Rex","categoryId":7}`
	markup = `<img src=x onerror='document.title=0'>` // must be shown as text

	usual = "Requests are answered as usual"
	empty = "What a lost answer does"
	again = "|again, after N s"
	early = again + ", before Retry-After"
)

// Keys, as WebDriver writes them.
const tab, enter, end, home, up, down = "\ue004", "\ue007", "\ue010", "\ue011", "\ue013", "\ue015"

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
		{"Sign", testSign},
		{"Verdicts", testVerdicts},
		{"Waiting", testWaiting},
		{"Detail", testDetail},
		{"List", testList},
		{"Filter", testFilter},
		{"Send", testSend},
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
			p.open("?" + tt.name + "#key=" + strings.ReplaceAll(key, "%", "%25"))
			p.see("#headline", usual, "#start", empty, "#noPets", "None", "#list", "", "#end", "", "#query", "")
			tt.run(p)
		})
	}
}

// The page takes the key from the link or asks for it, and keeps it to itself.
func testKey(p *page) {
	p.equal("location.href", p.base+"/") // the address does not show the key
	p.command("/refresh", struct{}{})
	p.see("#headline", usual) // the tab remembers the key

	p.eval("sessionStorage.clear()")
	p.command("/refresh", struct{}{})
	p.see("#keyForm", "API key", "#keyForm", "PETSTORE_API_KEY", "#desk", "", "#resetAll", "")
	p.equal("document.activeElement.id + ' ' + keyField.type", "keyField password")
	p.fill("keyField", " "+key+"\u00a0") // as it may be pasted
	p.click("Open")
	p.see("#headline", usual, "#keyForm", "")

	// A link with another key can be pasted into the address of an open page.
	p.open("#key=wrong")
	p.see("#keyError", "not the API key", "#desk", "", "#resetAll", "")
	p.equal("document.activeElement.id + ' ' + keyField.getAttribute('aria-describedby')", "keyField keyError")
	p.open("#key=" + url.QueryEscape(key))
	p.see("#headline", usual, "#keyForm", "")

	// The page needs no storage, but then asks for the key after each load.
	p.open("?forbidden#key=" + url.QueryEscape(key))
	p.see("#headline", usual)
	p.equal("location.href", p.base+"/")
	p.open("?forbidden=again")
	p.see("#keyForm", "API key", "#desk", "")

	// A browser that is too old, or does not run the script, shows which one can.
	p.see("#tooOld", "")
	p.open("?old")
	p.see("#tooOld", "This page needs JavaScript, and Chrome 123")
	p.devtools("Network.enable", map[string]any{})
	p.devtools("Network.setBlockedURLs", map[string]any{"urls": []string{"*/page.js"}})
	defer p.devtools("Network.setBlockedURLs", map[string]any{"urls": []string{}})
	p.open("?")
	p.see("#tooOld", "This page needs JavaScript, and Chrome 123", "#desk", "", "#keyForm", "")
	p.devtools("Network.setBlockedURLs", map[string]any{"urls": []string{}})
	p.open("")
	p.see("#headline", usual)

	// The address is in sight, without the key, and a line to paste. A click selects each.
	p.see("#base", p.base+"/v1", "#curl", `curl -H "Authorization: Bearer $PETSTORE_API_KEY" `+p.base+"/v1/pets")
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
			["503", "code=503", status[2]],
			["429", "code=429", status[2]],
			["Wait 3 s", "delay=3", delayOf("3")],
			["Wait 30 s", "delay=30", delayOf("30")],
			...words.map(([title, code, text]) => [title, "code=" + code, text]),
		];`).([]any)
	p.equal("$$('#faults button[type=button]').length", len(offers))
	for _, offer := range offers {
		button := offer.([]any)
		label, query, meaning := button[0].(string), button[1].(string), button[2].(string)
		p.equal("find(arguments[0]).title", query+": "+meaning, label)
		p.click(label)
		p.see("#sign.active #headline", label, "#sentence", "for the next request, then as usual. "+meaning,
			"#query", query+"&times=1")
		p.equal("document.title", label+" – Petstore")
	}
	for scope, want := range map[string][2]string{
		"Every request":   {"for every request. ", "code=503"},
		"The next getPet": {"for the next getPet request, ", "code=503&operation=getPet&times=1"},
		"Every createPet": {"for every createPet request. ", "code=503&operation=createPet"},
	} {
		p.eval("scope.selectedIndex = [...scope.options].findIndex(({text}) => text === arguments[0])", scope)
		p.click("503")
		p.see("#sentence", want[0])
		p.equal("shown(query)", want[1])
	}

	// A button says at once that it was pressed.
	p.equal("[find('429').click(), find('429').ariaBusy][1]", "true")
	p.equal("shown(query).startsWith('code=429') && find('429').ariaBusy", "false")

	// A fault of any kind can be set in a field, whose query says for which requests. A
	// refusal is shown there, until it is edited.
	p.fill("field", "?code=ok,500&skip=1&retry-after=none&answer-delay=0.2")
	p.press(enter)
	p.see("#headline", "As usual", "#sentence",
		"for the next request, then Answer after 0.2 s, then Answer after 0.2 s, 500, then as usual.")
	p.fill("field", "code=lost,429&times=2")
	p.eval("field.oninvalid = () => { window.isTold = true; }")
	p.click("Set")
	p.equal("window.isTold && field.validationMessage.startsWith('times cannot be given with a list of codes')", true)
	p.see("#query", "code=ok,500")
	p.equal("field.labels.length", 1)
	p.fill("field", " lost ")
	p.click("Set")
	p.see("#query", "code=lost")
	p.fill("field", "code=409&error-code=out_of_stock")
	p.click("Set")
	p.see("#headline", "409", "#sentence", "for every request.")
	p.equal("shown(query) + field.validationMessage", "code=409&error-code=out_of_stock")
	p.click("End")
	p.see("#sign.calm #headline", usual, "#query", "")
}

// The sign says what the next request gets, and the query that set it. It is red if
// that is a failure.
func testSign(p *page) {
	for _, tt := range []struct {
		fault, requests string
		class, want     string // how the headline and the sentence begin
	}{
		{"code=503", "", "active", "503 for every request. Instead of the operation, an error"},
		{"code=503&times=3", "GET", "active", "503 for the next 2 requests, then as usual. Instead"},
		{"code=503&times=2", "GET GET GET", "over", usual + " The last fault is used up: it was applied to 2 requests."},
		{"code=503&operation=listPets&skip=2", "", "calm",
			"As usual for the next 2 listPets requests, then 503 for every listPets request."},
		{"code=503&operation=listPets&skip=2", "GET PUT", "calm",
			"As usual for the next listPets request, then 503 for every listPets request."},
		{"code=503&skip=1&times=2", "", "calm", "As usual for the next request, then 503 for the next 2 requests, then as usual."},
		{"code=503&skip=1&times=2", "GET", "active", "503 for the next 2 requests, then as usual. Instead"},
		{"code=503,ok,lost&skip=1", "GET GET", "calm", "As usual for the next request, then Answer lost, then as usual."},
		{"code=503,ok,lost", "GET GET GET", "over", usual + " The last fault is used up: it was applied to 3 requests."},
		{"code=503,ok", "", "active", "503 for the next request, then as usual. Instead"},
		{"code=503,503,ok,ok", "", "active", "503 for the next 2 requests, then as usual. Instead"},
		{"code=ok,ok,503", "GET", "calm", "As usual for the next request, then 503, then as usual."},
		{"code=503&skip=9007199254740993", "", "calm", "As usual for every request."},
		{"code=ok&delay=0", "", "calm", "As usual for every request."},
		{"answer-delay=0.2", "", "active", "Answer after 0.2 s for every request. Before the answer, and after the operation, " +
			"if it is performed, a request waits for up to 0.2 s."},
		{"code=503&delay=0.1&retry-after=7", "", "active", "Wait 0.1 s, 503 for every request. Before the operation"},
	} {
		p.send("PUT /__admin/fault?"+tt.fault, "")
		for _, method := range strings.Fields(tt.requests) {
			p.send(method+" /v1/pets", "")
		}
		p.equal("`${shown(headline)} ${shown(sentence)}`.startsWith(arguments[0])", true, tt.want)
		p.equal("[sign.className, shown(end)]", map[string][]string{
			"active": {"active", "End"}, "calm": {"calm", "End"}, "over": {"calm", ""}}[tt.class], tt.fault)
		p.equal("getComputedStyle(sign).backgroundColor === 'rgb(179, 38, 30)'", tt.class == "active")
		p.equal("document.title !== 'Petstore'", tt.class == "active")
		p.equal("shown(query)", tt.fault)
	}
}

// A row says what a request has added, and which one it repeats. That is the last
// equal one of the same client that was over when it came, if it had failed.
func testVerdicts(p *page) {
	for _, tt := range []struct{ code, want string }{
		{"lost", "no answer|/v1/pets|Prefer: lost|adds pet 1"},
		{"503", "503|/v1/pets|Prefer: 503" + again},
		{"ok", "201|/v1/pets|Prefer: ok|adds it again: pets 1 and 2" + early},
		{"truncate", "201, half sent|/v1/pets|Prefer: truncate|adds pet 3"},
		{"malformed", "201, malformed|/v1/pets|Prefer: malformed|adds it again: pets 3 and 4" + again},
		{"html", "502, HTML|/v1/pets|Prefer: html|adds it again, 3 times now" + again},
		{"stall", "201, client left|/v1/pets|Prefer: stall|adds it again, 4 times now" + again},
		{"malformed", "201, malformed|/v1/pets|Prefer: malformed|adds it again, 5 times now" + again},
		{"rst", "no answer|/v1/pets|Prefer: rst" + again},
		{"hangup", "no answer|/v1/pets|Prefer: hangup" + again},
	} {
		answer := p.start("POST /v1/pets", rex, "Prefer: code="+tt.code)
		if tt.code == "stall" {
			p.see("#list .waiting", "stall")
			p.leave()
		}
		<-answer
		p.equal("rows().at(-1)", "POST|"+tt.want)
	}
	p.see("#list", "POST no answer /v1/pets Prefer: lost adds pet 1 {") // as it is read aloud
	p.equal("heard.textContent", "Request 8 adds it again, 5 times now")
	p.send("POST /v1/pets", "{}", "Prefer: code=html")
	p.equal("rows().at(-1)", "POST|502, HTML|/v1/pets|Prefer: html") // it adds nothing
	p.send("POST /v1/pets", "[]")
	p.send("POST /v1/pets", "[]")
	p.equal("rows().at(-1)", "POST|400|/v1/pets"+again)
	p.send("GET /v1/pets/99", "", "Prefer: delay=0.1") // the error is none of the fault
	p.equal("rows().at(-1)", "GET|404|/v1/pets/99|Prefer: delay=0.1")
	p.send("GET /v1/pets/99", "", "Prefer: code=409, error-code=none_left")
	p.equal("rows().at(-1)", "GET|409|/v1/pets/99|Prefer: 409 error-code=none_left"+again)
	colours := p.eval("return Object.fromEntries($$('.chip').map((one) => [shown(one), one.className]))")
	p.equal("arguments[0]", map[string]string{
		"no answer": "chip bad", "503": "chip bad", "201": "chip good", "201, half sent": "chip bad", "404": "chip warn",
		"201, malformed": "chip bad", "502, HTML": "chip bad", "409": "chip bad", "201, client left": "chip warn", "400": "chip warn",
	}, colours)
	p.equal("$$('.verdict.bad').length", 7) // the others add nothing

	// If the client did not wait for HTML, it is not known whether its pet was refused.
	p.start("POST /v1/pets", rex, "User-Agent: b", "Prefer: code=html, answer-delay=30")
	p.see("#list .waiting", "html")
	p.leave()
	p.equal("rows().at(-1)", "POST|client left|/v1/pets|Prefer: html answer-delay=30|may add a pet")
	p.send("POST /v1/pets", rex, "User-Agent: b")
	p.equal("rows().at(-1)", "POST|201|/v1/pets|adds it again, 2 times now"+again)

	// Each of these differs from the one before, which fails.
	p.send("DELETE /__admin/requests", "")
	for _, different := range []string{"User-Agent: a", "Origin: http://a.test", "Idempotency-Key: 1", "Content-Type: application/json", "Authorization: Bearer a"} {
		p.send("POST /v1/pets", rex, "Prefer: code=503")
		p.send("POST /v1/pets", rex, different)
	}
	p.send("PUT /v1/pets", rex)
	p.send("PUT /v1/pets?", rex)
	p.send("PUT /v1/pets?", rex+" ")
	p.send("POST /v1/pets", strings.Repeat("x", 70_000)) // no body is recorded
	p.send("POST /v1/pets", strings.Repeat("y", 70_000))
	p.send("POST /v1/pets", strings.Repeat("x", 70_000), "Transfer-Encoding: chunked")
	p.send("POST /v1/pets", strings.Repeat("y", 70_000), "Transfer-Encoding: chunked")
	p.send("POST /v1/pets", strings.Repeat("x", 4000)+"x") // the end of a body is not recorded
	p.send("POST /v1/pets", strings.Repeat("x", 4000)+"y")
	p.send("POST /v1/pets", strings.Repeat("x", 4000)+"x", "Transfer-Encoding: chunked")
	p.send("POST /v1/pets", strings.Repeat("x", 4000)+"y", "Transfer-Encoding: chunked")
	p.send("GET /v1/\xfe", "") // bytes that are no text are not known, either
	p.send("GET /v1/\xff", "")
	p.send("POST /v1/pets", "")
	p.equal("rows().length", 24)
	p.equal("rows().map((row, i) => row.includes('again') ? i : '').join('')", "2468") // a 503 after a 503
	p.see("#list", "adds pet 10")
	for _, code := range []string{"lost", "lost", "lost", "lost", "ok"} {
		p.send("POST /v1/pets", rex, "User-Agent: c", "Prefer: code="+code)
	}
	p.see("#list", "adds it again: pets 14, 15, 16, and 2 more")

	// What succeeds is not repeated by what follows it.
	p.send("DELETE /__admin/requests", "")
	for _, code := range []string{"ok", "503", "ok", "ok"} {
		p.send("GET /v1/pets?limit=1", "", "Prefer: code="+code)
	}
	p.equal("rows().map((row) => row.includes('again'))", []bool{false, false, true, false})

	// How and when the first request ends decides, also if that is after the second one. That
	// its client has left may be noticed up to a tenth of a second late.
	for i, tt := range []struct{ end, want string }{
		{`0.050,"status":503`, "again, after 0.15 s"},
		{`0.200,"status":503`, "again, at once"},
		{`0.050,"status":503,"answerHeaders":{"Retry-After":"1"}`, "again, after 0.15 s, before Retry-After"},
		{`0.050,"status":503,"answerHeaders":{"Retry-After":"0"}`, "again, after 0.15 s"},
		{`0.050,"status":503,"answerHeaders":{"Retry-After":"Tue, 01 Jan 2030 00:00:01 GMT"}`,
			"again, after 0.15 s, before Retry-After"},
		{`0.050,"status":503,"answerHeaders":{"Retry-After":"Tue, 01 Jan 2030 00:00:00 GMT"}`, "again, after 0.15 s"},
		{`0.050,"status":0,"answerHeaders":{"Retry-After":"1"}`, "again, after 0.15 s"}, // which was not sent
		{`0.202,"status":503`, ""},
		{`0.200,"status":200`, ""},
		{`0.290,"status":0,"error":"the client left before its answer"`, "again, at once"},
		{`0.310,"status":0,"error":"the client left before its answer"`, ""},
	} {
		const request = `"method":"GET","url":"/v1/pets","headers":{},"body":"","seconds":`
		const second = `{"arrived":2,"ended":1,"time":"2030-01-01T00:00:00.200Z",` + request + `0,"status":200}`
		const first = `{"arrived":1,"time":"2030-01-01T00:00:00.000Z",` + request
		journal := fmt.Sprintf(`{"requests":[%%s],"waiting":[%%s],"meta":{"total":%%d,"since":"%d"}}`, i)
		p.eval("window.journal = arguments[0]", fmt.Sprintf(journal, second, first+"1}", 1))
		p.equal("rows()", []string{"GET|waiting|/v1/pets", "GET|200|/v1/pets"})
		p.eval("window.journal = arguments[0]", fmt.Sprintf(journal, first+tt.end+`,"ended":2}`, "", 2))
		p.equal("shown(count) + shown('.verdict')", "2"+tt.want)
	}
}

// What waits looks so, for as long as it does, in a row that stays in its place.
func testWaiting(p *page) {
	p.send("PUT /__admin/fault?code=stall,drip,lost", "")
	for _, tt := range []struct{ prefer, fault, after string }{
		{"", "stall", "200, client left"},
		{"", "drip", "200, client left"},
		{"delay=30", "Prefer: delay=30", "client left"},
		{"wait=1; Code = stall, answer-delay=30", "Prefer: stall answer-delay=30", "client left"},
	} {
		p.start("GET /v1/pets", "", "Prefer: "+tt.prefer)
		p.equal("rows().at(-1)?.replace(arguments[0], '')", "GET|waiting|/v1/pets|"+tt.fault, again)
		p.equal("$$('details').at(-1).className + ' ' + $$('.chip').at(-1).className", "waiting chip waits")
		held := tt.prefer == ""
		p.equal("/held/.test(headline.innerText + document.title)", held)
		p.equal("shown(end)", map[bool]string{true: "End and release", false: "End"}[held])
		p.leave()
		p.equal("rows().at(-1)?.replace(arguments[0], '')", "GET|"+tt.after+"|/v1/pets|"+tt.fault, again)
		p.equal("$$('details').at(-1).className + ' ' + $$('.chip').at(-1).className", " chip warn")
	}

	p.send("POST /__admin/reset", "")
	p.send("GET /v1/pets", "", "Prefer: code=drip")
	p.equal("rows().map((row) => `${row} ${$('.chip').className}`)", []string{"GET|200|/v1/pets|Prefer: drip chip good"})

	// What is held is released with the fault, which may be used up.
	p.send("POST /__admin/reset", "")
	p.see("#start", empty)
	p.send("PUT /__admin/fault?delay=30&times=1", "")
	p.start("POST /v1/pets", rex)
	p.see("#sign.active #headline", "1 request held. New requests are answered as usual", "#count", "1 waiting")
	p.send("GET /v1/pets?limit=1", "")
	p.see("#count", "1 and 1 waiting")
	seconds := p.eval("return shown('summary > :last-child')")
	p.equal("shown('summary > :last-child') > arguments[0]", true, seconds)
	p.click("POST waiting")
	p.equal("$$('.detail h3').map(shown)", []string{"Sent"})
	p.eval("getSelection().selectAllChildren($('.detail pre'))")
	p.send("DELETE /__admin/fault", "")
	p.see("#sign.calm #headline", usual, "#query", "")
	p.equal("rows()", []string{"POST|201|/v1/pets|delay=30|adds pet 1", "GET|200|/v1/pets?limit=1"})
	p.equal("$$('.detail h3').map(shown)", []string{"Sent", "Answer"}) // in the open row
	p.equal("String(getSelection()).startsWith('POST /v1/pets')", true)
}

// A row opens to what a client sent, beside the answer. Both are shown as text.
func testDetail(p *page) {
	p.send("POST /v1/pets?stauts=sold", `{ "name" : "`+markup+`", "categoryId":9007199254740993, "x":0}`,
		"User-Agent: "+markup, "X-Text: "+markup, "Prefer: code=lost, speed=3")
	p.see("#list .client", markup, "#list", "ignored: speed, stauts, x")
	p.click("POST no answer")
	p.see(".detail", "After the operation, the connection is closed without an answer.", ".detail", "Authorization Bearer ***",
		".detail", `{"id":1,"name":"`+markup+`","categoryId":9007199254740993}`, "#petRows", "1 "+markup)
	p.equal("/Request 1, \\d{4}-.*Z, 0\\.\\d{3} s/.test(shown('.detail'))", true)
	p.equal("$$('main img').length + document.title", "0Petstore")
	p.send("GET /v1/pets?limt=1&after=x", "", "X-Id: 7")
	p.see("#list", "after is 'x'")
	p.click("GET 400")
	p.see(".detail", "X-Id 7", ".detail", `"code":"invalid_parameter"`)
	p.equal("$$('details[open]').length", 1) // the other one is closed

	// What is not seen, or turns the text around, is shown as a number.
	p.send("POST /v1/pets?\u202e", "{\"name\":\"\u0085\u202e\u2060\",\"categoryId\":1}", "X-Name: \u202e")
	p.click("/v1/pets?⟨U+202e⟩")
	const shown = "⟨U+0085⟩⟨U+202e⟩⟨U+2060⟩"
	p.see("#petRows", shown, ".detail", `{"id":2,"name":"`+shown, ".detail", "X-Name ⟨U+202e⟩")
	p.equal("/[\\u0085\\u202e\\u2060]/.test(document.body.innerHTML)", false)

	// The titles say how much of a body is known, and was sent.
	p.send("DELETE /__admin/requests", "")
	p.see("#start", empty)
	p.send("POST /v1/pets", `{"name":"x`+strings.Repeat("🦎", 1000)+`","categoryId":1}`)
	p.equal("$('.body')?.textContent.slice(-3)", "🦎…")
	p.send("POST /v1/pets", strings.Repeat("x", 4000))
	p.send("POST /v1/pets", strings.Repeat("x", 4001), "Transfer-Encoding: chunked")
	p.send("POST /v1/pets", strings.Repeat("x", 65_537))
	p.send("POST /v1/pets", strings.Repeat("x", 65_537), "Transfer-Encoding: chunked")
	for _, code := range []string{"503", "lost", "hangup", "truncate", "html"} {
		p.send("GET /v1/pets/1", "", "Prefer: code="+code)
	}
	for _, code := range []string{"stall", "drip"} {
		p.start("GET /v1/pets/1", "", "Prefer: code="+code)
		p.see("#list .waiting", code)
		p.leave()
		p.see("#list .waiting", "")
	}
	p.send("HEAD /v1/pets", "", "Prefer: code=malformed")
	p.equal("rows().length", 13)
	p.equal("eachRow(() => $$('.detail h3').map(shown).join('; '))", []string{
		"Sent, the first 4000 bytes; Answer, the first 4000 bytes",
		"Sent; Answer",
		"Sent, the first 4000 bytes; Answer",
		"Sent, without its body; Answer",
		"Sent, without its body; Answer",
		"Sent; Answer",
		"Sent; Answer, not sent",
		"Sent",
		"Sent; Answer, half sent",
		"Sent; Answer, HTML",
		"Sent; Answer, half sent",
		"Sent; Answer",
		"Sent; Answer",
	})
	// Less was done than the fault is meant to do.
	p.equal("shown('.detail p').startsWith('Request 16')", true)
	p.equal("$$('.chip').at(-1).className", "chip good")
	p.eval("$$('summary')[11].click()")
	p.equal("shown('.detail p').startsWith('The client left before the end of its answer. Request 15')", true)
	p.send("POST /v1/pets?long", strings.Repeat("a\n", 2000))
	p.click("/v1/pets?long")
	p.equal("$('.detail pre').scrollHeight > 9000 && $('.detail').offsetHeight < list.offsetHeight", true)
}

// The list stays at its end, and otherwise where it is. A row that opens does not move.
func testList(p *page) {
	send := func(from, to int) {
		for i := from; i <= to; i++ {
			p.send(fmt.Sprintf("GET /v1/pets/%d?", i), "")
		}
		p.equal("rows().length >= arguments[0]", true, min(to, 1000)) // with those above one that is being read
	}
	const topOf = "$$('summary').find((one) => shown(one).includes(`/${%d}?`)).getBoundingClientRect().top"
	const isAtEnd = "$('summary:last-of-type') && Math.abs(list.scrollTop) < 2"
	send(1, 60)
	p.equal(isAtEnd, true)
	p.resize(1366, 1200, "light")
	for _, i := range []int{40, 36, 38} { // one, one above the open one, and one below it
		top := fmt.Sprintf(topOf, i)
		before := p.eval("return " + top)
		p.click(fmt.Sprintf("/v1/pets/%d?", i))
		p.see(".detail", fmt.Sprintf("GET /v1/pets/%d?", i))
		p.equal("Math.abs("+top+" - arguments[0]) < 2", true, before)
		p.equal("isOnTop($('.detail p'))", true)
	}
	p.resize(1366, 768, "light")
	p.click("/v1/pets/60?") // there is no room below it
	p.see(".detail", "GET /v1/pets/60?")
	p.equal("isOnTop($('.detail dl')) && isOnTop($('[open] summary'))", true)
	p.eval("list.scrollTop = -300")
	before := p.eval("return " + fmt.Sprintf(topOf, 50))
	send(61, 63)
	p.equal("Math.abs("+fmt.Sprintf(topOf, 50)+" - arguments[0]) < 2", true, before)
	// What is being read stays where it is, even if the list was at its end.
	p.eval("list.scrollTop = 0")
	before = p.eval("return " + fmt.Sprintf(topOf, 60))
	p.see("[open]", "/v1/pets/60?")
	send(64, 90)
	p.equal("Math.abs("+fmt.Sprintf(topOf, 60)+" - arguments[0]) <= 1", true, before)
	p.eval("list.scrollTop = 0") // so that it is out of sight
	send(91, 91)
	p.equal(isAtEnd, true)
	before = p.eval("filter.value = 'pets/6'; filter.dispatchEvent(new Event('input')); return " + fmt.Sprintf(topOf, 60))
	p.send("GET /v1/pets/6", "")
	p.see("#count", "92: 12 found") // among which it is in sight
	p.equal("Math.abs("+fmt.Sprintf(topOf, 60)+" - arguments[0]) <= 1", true, before)
	p.fill("filter", "")
	p.eval("$('#clear').focus()")
	p.press(tab)
	p.press(end) // from the open row, which is out of sight then
	const topOfFocus = "document.activeElement.getBoundingClientRect().top"
	before = p.eval("return " + topOfFocus)
	send(92, 115)
	p.equal("Math.abs("+topOfFocus+" - arguments[0]) <= 1", true, before)
	p.fill("filter", "pets/8") // which hides the open row
	p.see("[open]", "")
	p.eval("$('#clear').focus()")
	p.press(tab)
	before = p.eval("return " + fmt.Sprintf(topOf, 89))
	for range 24 {
		p.send("GET /v1/pets/8", "")
	}
	p.see("#count", "140")
	p.equal("Math.abs("+fmt.Sprintf(topOf, 89)+" - arguments[0]) <= 1", true, before)
	p.fill("filter", "")
	p.click("/v1/pets/60?")

	// Tab leads to the newest row, and the arrow keys to the others.
	p.send("POST /__admin/reset", "")
	p.see("#start", empty)
	send(1, 1)
	p.see("#count", "1")
	send(2, 3)
	p.see("#count", "3")

	// On a phone, the row that opens stays in sight, although the list becomes shorter.
	p.resize(390, 800, "light")
	p.eval("$$('summary')[0].click(); list.scrollTop = 0; scrollTo(0, 350); $$('summary')[1].click()")
	p.equal("isOnTop($('[open] summary')) && shown($('[open] summary')).includes('/v1/pets/2?')", true)
	p.eval("$('[open] summary').click()")
	p.resize(1366, 768, "light")

	p.eval("$('#clear').focus()")
	for _, tt := range []struct {
		key  string
		want int
	}{{tab, 3}, {up, 2}, {up, 1}, {up, 1}, {down, 2}, {end, 3}, {home, 1}, {end, 3}, {down, 3}, {up, 2}} {
		p.press(tt.key)
		p.equal("shown(document.activeElement).includes(arguments[0])", true, fmt.Sprintf("/v1/pets/%d?", tt.want))
	}
	// The ring of the focus is within the row, which would clip it.
	p.equal("(({outlineStyle, outlineOffset}) => [outlineStyle, outlineOffset])(getComputedStyle(document.activeElement))",
		[]string{"solid", "-2px"})
	p.press(enter)
	p.see("[open]", "/v1/pets/2?")
	p.press(tab)
	p.see("pre:focus", "GET /v1/pets/2?") // which may be scrolled
	p.equal("$$('summary[tabindex=\"0\"]').length", 1)

	// What is counted is what is there. A row that is being read stays where it is.
	p.press(enter)
	p.eval("$('[open] summary').click(); $('summary[tabindex=\"0\"]').focus()")
	before = p.eval("return " + fmt.Sprintf(topOf, 2))
	send(4, 1001)
	p.see("#count", "the last 1000 of 1001")
	p.equal("Math.abs("+fmt.Sprintf(topOf, 2)+" - arguments[0]) <= 1", true, before)
	p.equal("$('summary[tabindex=\"0\"]').textContent.includes('/v1/pets/2?')", true) // as it was chosen
	p.resize(390, 768, "light")
	p.equal("list.offsetHeight < innerHeight", true) // or what is below it would be far away
	p.resize(1366, 768, "light")
	p.eval("document.activeElement.scrollIntoView({block: 'center'})")
	send(1002, 1010)
	p.see("#count", "the last 1000 of 1010")
	p.equal("rows().length", 1002) // with those up to the one that is being read
	p.equal("isOnTop(document.activeElement)", true)
	p.eval("document.activeElement.blur()")
	p.equal("rows().length", 1000) // as the journal has dropped it
}

// The filter finds the requests that show all its words or have them in a body, and
// says how many.
func testFilter(p *page) {
	p.send("POST /v1/pets?x=1", `{"x":"`+strings.Repeat("x", 300)+`body",`+rex[1:], "User-Agent: shop/2.1")
	p.send("GET /v1/pets?limit=404&post", "", "X-Id: hidden")
	p.send("GET /v1/pets/7", "", "User-Agent: Mozilla/5.0 Chrome/156.0.0.0 Safari/537.36 Edg/156.0.0.0")
	p.send("GET /v1/pets", "", "Prefer: code=rst")
	p.equal("shown(count)", "4")
	for _, tt := range []struct{ filter, want string }{
		{"=404", "/v1/pets?limit=404&post"},
		{"Not_Found", "/v1/pets/7"}, // in the answer
		{"  SHOP body adds pet 1 ignored: x", "/v1/pets?x=1"},
		{"edg 156", "/v1/pets/7"},
		{"get404", ""},
		{"x-id: hidden", "/v1/pets?limit=404&post"}, // a header
		{"location: /v1/pets/1", "/v1/pets?x=1"},    // a header of the answer
		{"getpet", "/v1/pets/7"},                    // an operation
		{"answerHeaders", ""},
		{"rst no answer", "/v1/pets"},
	} {
		p.fill("filter", tt.filter)
		p.equal("$$('summary').map((one) => shown(one.querySelector('.what .mono'))).join('')", tt.want)
		p.equal("shown(count)", map[bool]string{true: "4: 1 found", false: "4: 0 found"}[tt.want != ""])
		p.see("#noneFound", map[bool]string{true: "", false: "No request has all these words."}[tt.want != ""])
	}
	p.equal("heard.textContent", "1 found")
	p.eval("$('#clear').focus()")
	p.press(tab)
	p.send("GET /v1/pets", "")
	p.send("GET /v1/pets", "", "Prefer: code=rst")
	p.see("#count", "6: 2 found")
	p.press(down) // not to a row that is hidden
	p.equal("document.activeElement === $$('summary').at(-1)", true)
	p.fill("filter", "")
	p.equal("rows().length + shown(count)", "66")
	p.send("GET /v1/pets?"+strings.Repeat("x", 300)+"end", "")
	p.fill("filter", "xend") // of which the row shows the beginning
	p.see("#count", "7: 1 found")

	// The list does not move if the filter hides a row that is being read.
	p.fill("filter", "waiting")
	for range 29 {
		p.start("GET /v1/pets", "", "Prefer: delay=30")
	}
	p.see("#count", "7 and 29 waiting: 29 found")
	p.start("GET /v1/pets", "", "Prefer: delay=30")
	p.see("#count", "7 and 30 waiting: 30 found")
	p.eval("$$('summary').at(-1).click()")
	p.leave()
	p.see("#count", "8 and 29 waiting: 29 found")
	p.equal("Math.abs(list.scrollTop) < 2 && list.scrollHeight > list.clientHeight", true)
}

// The page is a client: what it sends is recorded, and gets faults.
func testSend(p *page) {
	// It tells the story of a lost answer, once, and leaves the standing fault alone.
	p.send("PUT /__admin/fault?code=503", "")
	p.eval("story.click(); story.click()")
	p.equal("rows()", []string{
		"POST|no answer|/v1/pets|Prefer: lost|adds pet 1",
		"POST|201|/v1/pets|Prefer: ok|adds it again: pets 1 and 2" + again,
	})
	p.see("#petRows", "2 Rex 1 Rex", "#start", "The pet is there twice.", "#story", "", "#headline", "503", ".client", "petstore's page")
	p.equal("JSON.parse(arguments[0]).matched", 0, p.send("GET /__admin/fault", ""))
	p.equal("document.activeElement === $$('summary').at(-1)", true)
	p.equal("heard.textContent.endsWith('Request 2 adds it again: pets 1 and 2')", true)

	// Each press adds another pet, also after the page was loaded anew. What is lost, a
	// browser does not repeat by itself.
	p.send("PUT /__admin/fault?code=lost", "")
	p.see("#headline", "Answer lost")
	for _, count := range []string{"3", "4"} {
		p.click("Add a pet")
		p.see("#count", count)
		p.command("/refresh", struct{}{})
		p.see("#count", count)
	}
	p.equal("$$('#petRows td:nth-child(2)').map(shown).sort()", []string{"Rex", "Rex", "Rex 2", "Rex 3"})
	p.send("DELETE /__admin/fault", "")

	// Requests that wait do not take all connections of the browser.
	p.send("PUT /__admin/fault?delay=30", "")
	p.see("#headline", "Wait 30 s")
	for range 9 {
		p.eval("addPet.click()")
	}
	p.see("#headline", "1 request held")
	p.eval("story.click(); field.focus()") // from where the story does not take it
	p.equal("[story.disabled, addPet.ariaBusy, document.activeElement.id]", []any{false, "true", "field"})
	p.click("End and release")
	p.see("#headline", usual)
	p.equal("addPet.ariaBusy", "false")

	// An app in the same browser is not the page.
	agent := "User-Agent: " + p.eval("return navigator.userAgent").(string)
	p.send("PUT /v1/pets", "", agent, "Origin: http://a.test")
	p.equal("/^Chrome \\d+$/.test(shown($$('.client').at(-1)))", true)
}

// The page says when the list began anew, and shows what is there then.
func testAnew(p *page) {
	p.send("POST /v1/pets", rex)
	p.send("PUT /__admin/fault?code=503&operation=getPet", "")
	p.see("#headline", "503", "#list", "201", "#petRows", "1 Rex")
	p.eval("window.answer = false") // each dialog is cancelled
	p.click("Reset all", "Clear")
	p.send("GET /v1/nothing", "")
	p.see("#list", "404", "#headline", "503")
	p.equal("rows().length", 2)
	p.eval("window.answer = true")
	p.click("Clear")
	p.see("#start", empty, "#headline", "503", "#petRows", "1 Rex", "#list", "")
	p.equal("`Cleared or restarted at ${JSON.parse(arguments[0]).meta.since.slice(11, 19)} UTC` === shown(notice)",
		true, p.send("GET /__admin/requests", ""))
	p.eval("window.said = []; new MutationObserver(() => said.push(Date.now())).observe(heard, {childList: true})")
	p.click("Reset all")
	p.see("#start", empty, "#headline", usual, "#noPets", "None", "#petTable", "")
	p.equal("heard.textContent", usual) // after there was time to say that all was cleared
	p.equal("said.length > 1 && said.at(-1) - said.at(-2) > 1000", true)
	p.eval("notice.textContent = ''; window.answer = false")
	p.click("Clear") // which asks only if there is something
	p.see("#notice", "Cleared or restarted at", "#noPets", "None")
	p.eval("window.answer = true")

	// After a reset, there may be more requests than before. The last pets are there,
	// with exact ids.
	p.send("GET /v1/pets/2", "")
	p.see("#list", "/v1/pets/2")
	p.send("POST /__admin/reset", "["+strings.Repeat(rex+",", 250)+`{"id":9223372036854775806,"name":":1234567890123456","categoryId":7}]`)
	p.send("GET /v1/pets/3", "")
	p.send("GET /v1/pets/4", "")
	p.equal("rows()", []string{"GET|200|/v1/pets/3", "GET|200|/v1/pets/4"})
	p.see("#petRows", `9223372036854775806 :1234567890123456 250 Rex`, "#petCount", "the last 100 of 251")
	p.equal("$$('#petRows tr').length", 100)
	p.send("POST /v1/pets", rex, "Prefer: code=lost")
	p.see("#petRows", `9223372036854775807 Rex 9223372036854775806 :1234567890123456 250 Rex`, "#list", "adds pet 9223372036854775807")

	p.send("POST /__admin/reset", "["+strings.Repeat(rex+",", 99)+rex+"]")
	p.see("#petRows", "100 Rex 99 Rex")
	p.equal("shown(petCount)", "100") // as these are all

	// What waits at a reset is gone with it.
	p.start("GET /v1/pets", "", "Prefer: delay=30")
	p.equal("shown(count)", "1 waiting")
	p.send("POST /__admin/reset", "")
	p.see("#start", empty, "#count", "", "#list", "")
}

// The page says that petstore does not answer, and goes on when it does.
func testTrouble(p *page) {
	// The page reads four times a second, and when it is seen again.
	p.eval(`
		const {setTimeout} = window;
		window.setTimeout = (callback, pause) => {
			window.pause = pause;
			window.setTimeout = setTimeout;
		};`)
	p.equal("window.pause", 250)
	p.send("GET /v1/pets/1", "")
	p.eval("document.dispatchEvent(new Event('visibilitychange'))")
	p.see("#list", "404")

	// A service that hangs is not waited for. What was known stays in sight.
	p.send("PUT /__admin/fault?code=503&operation=createPet", "")
	p.see("#headline", "503")
	p.resize(390, 768, "light")
	p.click("GET 404")
	p.eval("window.top404 = () => $('summary').getBoundingClientRect().top; window.before = top404(); window.isHasty = true")
	exec.Command("kill", "-STOP", fmt.Sprint(p.service.Process.Pid)).Run()
	p.see("#sign.trouble #headline", "Petstore does not answer",
		"#sentence", "Last known: 503 for every createPet request.", "#sentence", "This page goes on asking.",
		"#query", "code=503&operation=createPet", "#list", "404", "#end", "")
	p.equal("heard.textContent.includes('Petstore does not answer')", true)
	p.equal("Math.abs(top404() - before) <= 1", true) // although the sign has more lines
	p.resize(1366, 768, "light")
	p.service.Process.Kill()
	p.service.Wait()
	p.click("Add a pet", "429")
	p.equal("[addPet.ariaBusy, find('429').ariaBusy]", []string{"false", "false"}) // or the new process may get them
	p.startService(strings.TrimPrefix(p.base, "http://"))
	p.see("#sign.calm #headline", usual, "#start", empty, "#notice", "Cleared or restarted at")

	// Whatever petstore answers, the page goes on. What it cannot show, it says.
	p.send("GET /v1/pets/2", "")
	p.see("#list", "/v1/pets/2")
	for _, tt := range []struct{ path, answer, headline string }{
		{"/__admin/fault", `null`, "This page cannot show what petstore answers"},
		{"/__admin/fault", `{"code":"new","matched":0,"applied":0}`, "New"},
		{"/__admin/fault", `{"code":"503`, "This page cannot show what petstore answers"},
		{"/__admin/requests", `{"meta":{"total":9,"since":"x"}}`, "This page cannot show what petstore answers"},
		{"/__admin/pets", `[{"id":1}]`, "This page cannot show what petstore answers"},
		{"/openapi.json", `{}`, "This page cannot show what petstore answers"},
	} {
		p.eval("window.fake = arguments", tt.path, tt.answer)
		p.send("POST /__admin/reset", "["+rex+"]")
		p.send("GET /v1/pets/2", "")
		p.see("#headline", tt.headline)
		p.eval("window.fake = undefined")
		p.see("#headline", usual, "#petRows", "1 Rex", "#faults", "Wait 30 s")
		p.equal("rows()", []string{"GET|404|/v1/pets/2"})
	}
	p.eval("window.fake = ['/__admin/requests', 'no']; window.answer = true")
	p.click("Clear")
	p.see("#notice", "Unexpected token")
	p.eval("window.fake = undefined")
	p.see("#headline", usual)
	p.eval("window.journal = arguments[0]", `{"requests":[
		{"arrived":1,"ended":1,"time":"2030-01-01T00:00:00.000Z","method":"GET","url":5,"headers":{},"body":"","seconds":0,"status":200},
		{"arrived":2,"ended":2,"time":"2030-01-01T00:00:01.000Z","method":"GET","url":"/a","headers":{},"body":"","fault":{"code":"new"},
			"seconds":0,"status":200}
		],"waiting":[],"meta":{"total":2,"since":"x"}}`)
	p.see("#list", "Request 1 cannot be shown", "#list", "200 /a new")
	p.eval("window.journal = undefined")
	p.see("#list", "/v1/pets/2")

	// Something else may answer, also at first.
	p.open("?broken")
	p.see("#sign.trouble #headline", "This page cannot show what petstore answers")
	p.equal("/^This page goes on asking\\. Unexpected token /.test(shown(sentence))", true)

	// Until something is known, the page says that it loads.
	p.open("?late")
	p.see("#loading", "Loading", "#desk", "")

	// What the next request gets does not wait for the pets.
	p.send("PUT /__admin/fault?code=503", "")
	p.send("GET /v1/pets", "")
	p.open("?slow")
	p.see("#sign.active #headline", "503", "#list", "503", "#petTable", "", "#noPets", "")

	// A slow line is no trouble.
	p.send("POST /v1/pets", rex, "Prefer: code=ok")
	p.open("?narrow")
	p.see("#sign.active #headline", "503", "#list", "503", "#petRows", "1 Rex")
}

// The page is accessible in light and dark, and fits into any window.
func testLooks(p *page) {
	long := "POST /v1/pets?" + strings.Repeat("long", 100)
	p.send("POST /__admin/reset", `[{"id":99,`+rex[1:]+","+strings.Replace(rex, "Rex", strings.Repeat("R", 500), 1)+"]")
	p.send("PUT /__admin/fault?code=lost,503,ok,429&operation=createPet", "")
	for range 3 {
		p.send("POST /v1/pets", rex)
	}
	p.send("GET /v1/pets/7", "", "Authorization: Bearer none", "User-Agent: "+strings.Repeat("agent ", 99))
	p.send(long, rex, "X-Long: "+long, "Prefer: code=lost")
	p.send(long, rex, "Prefer: code=409, error-code="+strings.Repeat("long", 25))
	p.start("POST /v1/pets", rex, "Prefer: code=stall, delay=30")
	p.see("#list", "waiting", "#list", "adds pet 103", "#headline", "429", "#petRows", "RRR")
	p.equal("[...document.querySelectorAll('[role=status]')].map((one) => one.id + one.checkVisibility()).join(' ')", "heardtrue")

	// Nothing is cut off, but for what ends in an ellipsis. What a request did is whole.
	const cut = `[document.documentElement, ...$$("body :not(#heard)")].filter((one) => shown(one) && (
		one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0 && (one.matches(".verdict") || !one.closest(".cut")) ||
		one.matches(".verdict") && one.getBoundingClientRect().right > one.parentElement.getBoundingClientRect().right
	)).map(shown)`
	for _, width := range []int{320, 390, 768, 1024, 1270, 1366, 1920} {
		p.resize(width, 768, "light")
		p.equal(cut, []string{})
		p.eval("$$('summary')[2].click()")
		p.see(".detail", "Answer")
		p.equal(cut, []string{})
		p.eval("$$('summary')[2].click()")
		p.equal("$$('button, select, input, summary').filter((one) => shown(one) && one.offsetHeight < 24).length", 0)
	}

	// On a phone, Tab leads downwards. At 400 % zoom, there is room for a whole row.
	p.resize(390, 768, "light")
	p.equal("$$('a, button, input, select, [tabindex=\"0\"]').filter((one) => one.checkVisibility()).every((one, i, all) => i === 0 ||"+
		" one.getBoundingClientRect().bottom > all[i - 1].getBoundingClientRect().top)", true)
	p.equal("Math.max(...$$('.what > .mono').map((one) => one.offsetHeight)) > 30", true) // a long URL has two lines
	p.eval("scrollTo(0, 9999)")
	p.equal("isOnTop(sign)", true) // as the faults are below the requests
	p.send("PUT /__admin/fault?code="+strings.Repeat("503,429,", 30)+"500", "")
	p.see("#headline", "503", "#sentence", "then 500")
	p.equal("sign.offsetHeight < innerHeight / 2", true)
	p.send("PUT /__admin/fault?code=429", "")
	p.see("#headline", "429", "#query", "code=429")
	p.resize(320, 192, "light")
	p.eval("window.row = $('.verdict.bad + .verdict').closest('summary'); row.scrollIntoView({block: 'center'})")
	p.see(".verdict.bad + .verdict", "again, ")
	p.equal("isOnTop(row)", true)
	p.equal("row.getBoundingClientRect().top >= 0 && row.getBoundingClientRect().bottom <= innerHeight", true)
	p.eval("row.click()")
	p.see(".detail", "Answer")
	p.equal("isOnTop(row)", true)
	p.eval("row.click()")

	// The sign keeps its height, so that nothing below it moves.
	p.resize(1024, 768, "light")
	height := p.eval("return sign.offsetHeight")
	for _, fault := range []string{"code=503&times=1", "delay=30", "code=stall&operation=createPet&times=1"} {
		p.send("PUT /__admin/fault?"+fault, "")
		p.see("#query", fault)
		p.equal("sign.offsetHeight", height)
	}
	p.send("DELETE /__admin/fault", "")
	p.see("#headline", usual)
	p.equal("sign.offsetHeight", height)

	// With forced colours, an open row and an active fault are seen all the same.
	p.send("PUT /__admin/fault?code=503", "")
	p.devtools("Emulation.setEmulatedMedia",
		map[string]any{"features": []map[string]string{{"name": "forced-colors", "value": "active"}}})
	p.eval("$$('summary')[2].click()")
	p.see("#sign.active #headline", "503", "[open]", "Answer")
	p.equal("[$('[open]'), $('#sign.active')].map((one) => getComputedStyle(one)).every((style) =>"+
		" parseFloat(style.borderLeftWidth) + parseFloat(style.borderTopWidth) >= 2)", true)
	p.eval("$$('summary')[2].click()")

	file := os.Getenv("PETSTORE_AXE")
	if file == "" {
		return
	}
	axe, err := os.ReadFile(file)
	if err != nil {
		p.Fatal(err)
	}
	p.eval("$$('summary')[2].click()")
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int{390, 1366} {
			for _, fault := range []string{"PUT /__admin/fault?code=503", "DELETE /__admin/fault"} {
				p.resize(width, 768, scheme)
				p.send(fault, "")
				p.equal("sign.className === 'active'", fault[0] == 'P')
				violations := p.eval(string(axe) + `; return axe.run().then(({violations}) =>
					violations.map(({id, nodes}) => [id, ...nodes.map(({html}) => html)]));`).([]any)
				if len(violations) > 0 {
					p.Errorf("%s, %d px: axe-core finds %q", scheme, width, violations)
				}
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
	p.resize(1280, 740, "light")
	p.send("PUT /__admin/fault?code=ok,lost,ok,429&operation=createPet", "")
	for _, body := range []string{`{"name":"Bella","categoryId":2}`, rex, rex} {
		p.send("POST /v1/pets", body, "User-Agent: shop/2.1")
		p.eval("return new Promise((resolve) => realTimeout(resolve, 400))")
	}
	p.click("POST no answer")
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

// helpers run before the script of the page. They have short names for the
// expressions in this file, and let the page read again after a tenth of its pauses. The
// query of the address makes what else can happen to the page.
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
	window.rows = () => $$("summary").map((row) =>
		[...row.querySelectorAll(":scope > .mono, .chip, .what > :not(.body, .warn:not(.verdict))")].slice(1).map(shown)
			.join("|").replace(/at once|after \d+\.\d\d s/, "after N s"));
	window.eachRow = (look) => $$("summary").map((row) => {
		row.click();
		return look();
	});
	window.isOnTop = (element) => {
		const {left, top, width, height} = element.getBoundingClientRect();
		return element.contains(document.elementFromPoint(left + width / 2, top + height / 2));
	};
	const realFetch = window.fetch;
	window.realTimeout = window.setTimeout;
	window.until = async (look, want) => {
		const end = Date.now() + 120_000;
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
	AbortSignal.timeout = (limit) =>
		Object.assign(realLimit.call(AbortSignal, window.isHasty ? limit / 10 : limit), {limit});
	const situation = location.search;
	window.fetch = async (path, init) => {
		if (situation === "?broken" && path === "/openapi.json") {
			return new Response("<html>");
		}
		if (situation === "?late") {
			return new Promise(() => {});
		}
		if (situation === "?slow" && path.startsWith("/__admin/pets")) {
			return new Promise(() => {});
		}
		// On a slow line, what may be large takes ten seconds.
		if (situation === "?narrow" && /requests|pets/.test(path) && init.signal.limit < 10_000) {
			throw new TypeError("timeout");
		}
		if (window.fake && path.startsWith(window.fake[0]) && init?.method !== "POST") {
			return new Response(window.fake[1]);
		}
		if (window.journal && path.startsWith("/__admin/requests")) {
			const {requests, ...others} = JSON.parse(window.journal);
			const isNew = ({ended}) => ended > Number(path.split("=")[1]);
			return Response.json({requests: requests.filter(isNew), ...others});
		}
		return realFetch(path, init);
	};
	if (situation.startsWith("?forbidden")) {
		Object.defineProperty(window, "sessionStorage", {get() { throw new DOMException("", "SecurityError"); }});
	}
	if (situation === "?old") {
		CSS.supports = () => false;
	}
	window.confirm = () => window.answer;`

// equal waits for two minutes at most until an expression has a value.
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
		p.equal("Boolean(find(arguments[0]))", true, text)
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
		if name == "Transfer-Encoding" {
			req.ContentLength = -1 // or net/http would not send chunks
		}
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

// resize sets the size of the window in pixels, and its colour scheme.
func (p *page) resize(width, height int, scheme string) {
	p.devtools("Emulation.setDeviceMetricsOverride",
		map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width == 390}) // a phone
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
		"timeouts": {"script": 180000},
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
