// Package api holds the documents of the service and its page. Its only code is
// the test of the page in a browser.
package api

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const (
	key = "a-key-of-the-test"
	pet = `{"name":"Rex","categoryId":7}`

	// markup must be shown as text and never be read as HTML.
	markup = `<img src=x onerror='document.title=0'>`

	tab    = "\ue004" // the keys, as WebDriver writes them
	escape = "\ue00c"
)

// TestPage uses the page as people do, in a headless Chromium. It is skipped
// where there is no ChromeDriver, or one of a Chromium older than 137, which
// lacks some of the CSS (reading-flow).
//
// If PETSTORE_AXE names the file axe.min.js of axe-core, the test also checks
// the accessibility of the page. If PETSTORE_PICTURE names a file, the test
// writes the picture of the README to it.
func TestPage(t *testing.T) {
	session := startBrowser(t)
	program := buildService(t)
	tests := []struct {
		name string
		run  func(*page)
	}{
		{name: "Key", run: testKey},
		{name: "Presets", run: testPresets},
		{name: "NothingMoves", run: testNothingMoves},
		{name: "AimedFault", run: testAimedFault},
		{name: "ListOfCodes", run: testListOfCodes},
		{name: "FaultErrors", run: testFaultErrors},
		{name: "Release", run: testRelease},
		{name: "ActionsInOrder", run: testActionsInOrder},
		{name: "Pets", run: testPets},
		{name: "PetsOfStatus", run: testPetsOfStatus},
		{name: "ManyPets", run: testManyPets},
		{name: "Rows", run: testRows},
		{name: "Details", run: testDetails},
		{name: "Retry", run: testRetry},
		{name: "SameMillisecond", run: testSameMillisecond},
		{name: "Reset", run: testReset},
		{name: "FaultUnknown", run: testFaultUnknown},
		{name: "Filter", run: testFilter},
		{name: "FailedOnly", run: testFailedOnly},
		{name: "Hold", run: testHold},
		{name: "ScrolledList", run: testScrolledList},
		{name: "RestingPointer", run: testRestingPointer},
		{name: "Repeat", run: testRepeat},
		{name: "CopySafely", run: testCopySafely},
		{name: "Keyboard", run: testKeyboard},
		{name: "TabOrder", run: testTabOrder},
		{name: "Layout", run: testLayout},
		{name: "ForcedColors", run: testForcedColors},
		{name: "Idle", run: testIdle},
		{name: "Outage", run: testOutage},
	}
	for _, tt := range tests {
		isOpen := false
		passes := t.Run(tt.name, func(t *testing.T) {
			p := &page{t: t, session: session, program: program}
			p.startService("127.0.0.1:0")
			p.resize(1200, 900)
			p.open("/#key=" + key)
			p.waitText("#live", "Live")
			p.waitWhole("#listed", "No pets yet.")
			isOpen = true
			tt.run(p)
			p.checkOrigins()
			p.checkConsole()
		})
		if !passes && !isOpen {
			t.Fatal("the page does not open, so the other tests cannot run")
		}
	}
}

// The page takes the key from the link or asks for it, and keeps it to itself.
func testKey(p *page) {
	p.waitText("header", "A test double of the animal store API, at "+p.base+"/v1.")
	p.waitText("#bar.calm", "No fault Requests are answered as usual.")
	p.waitWhole("#total", "0 requests")
	p.waitHidden("#keySection")
	p.waitValue("location.href", p.base+"/") // the address does not show the key
	p.waitValue("document.title", "Petstore")

	// The first line can be pasted into a shell.
	p.waitText("#first", "Run this in a shell")
	p.shell("sh", p.evalString(`return $("#command pre").textContent`))
	p.waitRows("GET 200 /v1/pets")
	p.waitHidden("#first")

	// Without a key, the page asks for one, and says why.
	p.open("/")
	p.waitText("#bar.unknown #headline", "A key is needed")
	p.waitFocus("#keyField")
	p.waitHidden("#columns")
	p.waitHidden("#end")
	p.waitHidden("#reset")
	p.waitHidden("#result")
	p.open("/#key=wrong")
	p.waitText("#keyForm #fieldError", "The service refuses this key.")
	p.waitHidden("#result")
	p.fill("API key", "ключ")
	p.click("Use this key")
	p.waitText("#keyForm #fieldError", "visible ASCII")
	p.fill("API key", "  "+key+" ")
	p.click("Use this key")
	p.waitText("#live", "Live")
	p.waitHidden("#keySection")
	p.waitCount("#fieldError", 0)
	p.waitFocus("#bar") // the button that had the focus is gone

	// The tab remembers the key. What was sent before does not look new.
	p.eval("location.reload()")
	p.waitText("#live", "Live")
	p.waitRows("GET 200 /v1/pets")
	p.waitCount(".fresh", 0)

	// A link with a key can be pasted into the address of an open page.
	p.open("/")
	p.waitText("#headline", "A key is needed")
	entries := p.eval("return history.length").(float64)
	p.eval("location.hash = '#key=' + arguments[0]", key)
	p.waitText("#live", "Live")
	p.waitValue("location.href", p.base+"/")
	p.waitValue("history.length", entries+1) // the key is in none of them
}

// A preset sets its fault with one press. The bar, the title and the icon show it.
func testPresets(p *page) {
	icons := map[string]bool{p.evalString("return icon.href"): true}
	for _, title := range []string{
		"503 every time",
		"Slow by 3 s",
		"Slow body",
		"Hang up",
		"TCP reset",
		"Answer lost",
		"Answer cut",
		"Answer stalls",
		"HTML page",
		"503 once",
	} {
		p.click(title)
		p.waitText("#bar.active #headline", "Fault: "+title)
		p.waitText("#result", "Set for all clients at ")
		p.waitText("#spoken", "Fault: "+title+". Set for all clients at ")
		p.waitWhole("#count", "No request yet")
		p.waitText("[aria-current=true]", title)
		p.waitValue("document.title", "Fault: "+title+" – Petstore")
	}
	icons[p.evalString("return icon.href")] = true
	p.waitValue(`$("[value='code=truncate']").title`,
		"code=truncate: the operation is performed, but its answer breaks off halfway")
	var fault map[string]any
	if p.get("/__admin/fault", &fault); fault["code"] != "503" || fault["times"] != 1.0 {
		p.t.Errorf("got the fault %v, want the code 503 once", fault)
	}

	p.send("GET /v1/pets", "")
	p.waitText("#bar.used", "Used up: 503 Requests are answered as usual")
	p.waitWhole("#count", "1 of 1 request hit")
	p.waitCount("[aria-current=true]", 0)
	icons[p.evalString("return icon.href")] = true
	p.send("GET /v1/pets", "")
	p.waitWhole("#count", "1 of 2 requests hit")

	p.click("End the fault")
	p.waitText("#bar.calm #headline", "No fault")
	p.waitText("#spoken", "No fault. Fault ended at ")
	p.waitHidden("#count")
	if len(icons) != 3 {
		p.t.Errorf("got %d icons, want one for each of the three states", len(icons))
	}
}

// Setting a fault, applying it and using it up moves no button.
func testNothingMoves(p *page) {
	const places = `
		const buttons = [...$$("header button, #bar button, #fault button"), pause, forget];
		return JSON.stringify(buttons.map((button) =>
			[box(button).x, box(button).y + scrollY].map(Math.round)));`
	for _, width := range []int{1440, 1280, 1000, 880, 390} {
		p.resize(width, 800)
		want := p.evalString(places)
		check := func(state string) {
			p.t.Helper()
			if got := p.evalString(places); got != want {
				p.t.Errorf("%s, %d px: the buttons are at\n%s, want\n%s", state, width, got, want)
			}
		}
		p.fill("Operation", "createPet")
		p.fill("Skip first", "1")
		p.click("503 once")
		p.waitWhole("#count", "1 more to let through")
		check("set")
		p.send("POST /v1/pets", pet)
		p.waitWhole("#count", "0 of 1 request hit, 1 to come")
		check("matched")
		p.send("POST /v1/pets", pet)
		p.waitText("#bar.used", "Used up on createPet: 503 Requests are answered as usual")
		check("used up")
		p.click("End the fault")
		p.waitText("#result", "Fault ended at ")
		check("ended")
	}
}

// The fields above the presets aim a fault. While one of another client stands,
// they show its operation.
func testAimedFault(p *page) {
	p.fill("Operation", "createPet")
	p.fill("Skip first", "2")
	p.fill("Delay", "1") // a preset does not use it
	p.click("503 once")
	p.waitText("#bar.active #headline", "Fault on createPet: 503 once")
	p.waitWhole("#detail", "Then: createPet is not performed")
	p.waitWhole("#count", "2 more to let through")

	p.send("GET /v1/pets", "")
	p.send("POST /v1/pets", pet)
	p.waitWhole("#count", "1 more to let through")
	for range 3 {
		p.send("POST /v1/pets", pet)
	}
	p.waitRows(
		"POST 201",
		"POST 503 /v1/pets Simulated 503",
		"POST 201",
		"POST 201",
		"GET 200",
	)
	p.waitText("#list .injected.fresh", "503")
	p.waitText("#bar.used #count", "1 of 4 requests hit")
	p.waitHidden("#result") // it is about what was before

	p.click("Another fault")
	p.fill("Code", "500")
	p.fill("Times", "2")
	p.fill("Delay", " 0.01")
	p.fill("Answer delay", "0.02")
	p.fill("Retry-After", "0")
	p.click("Set")
	p.waitText("#headline", "Fault on createPet: 500")
	p.waitText("#detail", "createPet is not performed · Delay 0.01 s · Answer delay 0.02 s · "+
		"Retry-After 0 s · Times 2 · Requests are listed when they end")
	p.send("POST /v1/pets", pet)
	p.waitWhole("#count", "1 of 1 request hit, 1 to come")
	p.waitText("#list .injected .tag",
		"Simulated 500 · Slow by 0.01 s · Answer slow by 0.02 s · Retry-After 0")

	p.click("Reset all")
	p.waitText("#spoken", "No fault. Reset at ")
	p.waitRows()
	p.waitValue(`$("[name=code]").value`, "")

	// While a fault of another client stands, the next press is for the same
	// operation, unless the reader has chosen one. A skip is for one fault.
	const aim = `$("[name=operation]").value + " " + $("[name=skip]").value`
	p.send("PUT /__admin/fault?code=500&operation=getPet&skip=1", "")
	p.waitText("#result", "Changed by another client at ")
	p.waitText("#headline", "Fault on getPet: 500")
	p.waitValue(aim, "getPet ")
	p.click("Hang up")
	p.waitText("#headline", "Fault on getPet: Hang up")
	p.waitText("#detail", "getPet is not performed, and the connection is closed")
	p.waitWhole("#count", "No getPet yet")
	p.click("End the fault")
	p.waitText("#headline", "No fault")
	p.waitValue(aim, " ")
	p.fill("Operation", "listPets")
	p.fill("Skip first", "1")
	p.send("PUT /__admin/fault?code=500", "")
	p.waitText("#headline", "Fault: 500")
	p.waitValue(aim, "listPets 1")
	p.click("Hang up")
	p.waitText("#headline", "Fault on listPets: Hang up")
	p.waitWhole("#count", "1 more to let through")
	p.waitText("#result", "Set for all clients at ")
	p.waitValue(aim, "listPets ")
	p.click("End the fault")
	p.waitText("#headline", "No fault")
	p.waitValue(aim, "listPets ")

	// A fault that another client sets again counts anew.
	p.click("Hang up")
	p.send("GET /v1/pets", "")
	p.waitWhole("#count", "1 of 1 request hit")
	p.send("PUT /__admin/fault?code=hangup&operation=listPets", "")
	p.waitText("#result", "Changed by another client at ")
	p.waitWhole("#count", "No listPets yet")
}

// The bar shows the codes of a list that are still to come.
func testListOfCodes(p *page) {
	p.click("Another fault")
	p.fill("Code", " 503, lost 429 ")
	p.click("Set")
	p.waitText("#bar.active #headline", "Fault: 503, Answer lost, 429")
	p.waitWhole("#detail", "Next: 503 · The operation is not performed")
	p.waitWhole("#count", "No request yet")
	p.send("GET /v1/pets", "")
	p.waitText("#bar.active #headline", "Fault: Answer lost, 429")
	p.waitWhole("#detail", "Next: Answer lost · The operation is performed, but its answer is lost")
	p.waitWhole("#count", "1 of 1 request hit, 2 to come")
	p.send("GET /v1/pets", "")
	p.waitText("#bar.active #headline", "Fault: 429")
	p.waitWhole("#count", "2 of 2 requests hit, 1 to come")
	p.send("GET /v1/pets", "")
	p.waitText("#bar.used #headline", "Used up: 503, Answer lost, 429")
	p.waitWhole("#count", "3 of 3 requests hit")
	p.waitRows(
		"GET 429 /v1/pets Simulated 429",
		"GET no answer /v1/pets Answer lost",
		"GET 503 /v1/pets Simulated 503",
	)

	// A longer list has smaller letters, so that one can read it, and fits the bar.
	p.eval("window.height = box(bar).height")
	p.fill("Operation", "createPet")
	p.fill("Code", "503,lost,429,truncate,rst")
	p.click("Set")
	p.waitText("#headline", "Fault on createPet: 503, Answer lost, 429, Answer cut, TCP reset")
	p.waitAtMost("headline.scrollWidth", "headline.clientWidth")
	p.waitValue("box(bar).height - height", 0)
	p.fill("Operation", "")
	p.fill("Code", strings.Repeat("503,", 3)+strings.Repeat("lost,429,", 20)+"500")
	p.click("Set")
	p.waitText("#headline", "Fault: 503 ×3, Answer lost, 429, Answer lost")
	p.waitValue("box(bar).height - height", 0)

	p.fill("Times", "2")
	p.click("Set")
	p.waitText("#fieldError", "times")
}

// An error is shown at its field, until something is typed.
func testFaultErrors(p *page) {
	p.click("Another fault")
	p.click("Set")
	p.waitText("#fieldError", "Give a code or a delay.")
	p.waitValue(`$("[name=code]").ariaInvalid`, "true")
	p.fill("Filter", "a")
	p.waitText("#fieldError", "Give a code or a delay.")
	p.fill("Filter", "")
	p.fill("Delay", "-1")
	p.waitCount("#fieldError", 0)
	p.waitHidden("#result")
	p.waitCount("[aria-invalid], [aria-describedby]", 0)

	p.click("Set")
	p.waitText("#fieldError", "delay is -1")
	p.waitText("#result.bad", "Not done: see the field.")
	p.waitText("#spoken", "Error: Not done: see the field.")
	p.waitFocus("[name=delay][aria-invalid=true][aria-describedby=fieldError]")
	p.waitAtMost(`box($("[name=delay]")).width * 2`, "box(fieldError).width")
	p.fill("Delay", "0.5")
	p.waitCount("#fieldError", 0)
	p.click("Set")
	p.waitText("#headline", "Fault: Slow by 0.5 s")

	p.fill("Answer delay", "0.25")
	p.click("Set")
	p.waitText("#detail", "The operation is performed after 0.5 s, and answered after 0.25 s · ")
	p.fill("Delay", "")
	p.click("Set")
	p.waitText("#detail", "The operation is answered after 0.25 s · ")

	// Clear empties all fields.
	p.fill("Operation", "getPet")
	p.waitWhole("#scope", "The next fault is for getPet.")
	p.fill("Skip first", "x")
	p.click("Hang up")
	p.waitText("#fieldError", "skip is x")
	p.click("Clear")
	p.waitCount("#fieldError", 0)
	p.waitWhole("#scope", "The next fault is for all operations.")
	p.waitValue(`$$("#faultForm :is(input, select)").map(({value}) => value).join("")`, "")

	// Fields that are hidden are not sent.
	p.click("Another fault")
	p.fill("Delay", "31")
	p.eval("faultForm.requestSubmit()")
	p.waitText("#otherFault[open]", "Retry-After")
	p.waitCount("#fieldError", 0)
	p.click("Set")
	p.waitText("#otherFault[open] #fieldError", "delay is 31")
}

// Ending a fault releases the requests that it holds.
func testRelease(p *page) {
	p.click("Another fault")
	p.fill("Delay", "30")
	p.click("Set")
	p.waitText("#headline", "Fault: Slow by 30 s")
	done := make(chan error, 1)
	go func() { done <- p.trySend("POST /v1/pets", pet) }()
	p.waitWhole("#detail", "The operation is performed after 30 s · Requests are listed when they end")
	p.waitWhole("#count", "1 of 1 request hit")
	if p.eval("return first.hidden") != true {
		p.t.Error("the page says that there are no requests yet, while one is held")
	}
	p.click("End the fault")
	p.waitText("#result", "Fault ended and held requests released at ")
	if err := <-done; err != nil {
		p.t.Error(err)
	}
	p.waitRows("POST 201 /v1/pets Slow by 30 s")

	p.click("Answer stalls")
	p.waitText("#result", "Set for all clients at ")
	p.click("End the fault")
	p.waitText("#result", "Fault ended and held requests released at ")
}

// A later action does not overtake an earlier one.
func testActionsInOrder(p *page) {
	p.eval(`
		const held = new Promise((resolve) => { window.release = resolve; });
		window.isHeld = false;
		window.instead = (path, init) => {
			if (path === "/__admin/fault?code=503") {
				isHeld = true;
				return held.then(() => realFetch(path, init));
			}
		};`)
	p.click("503 every time")
	p.waitTrue("isHeld")
	p.click("Slow by 3 s")
	p.waitText("#result", "Asking…")
	p.sync()
	p.eval("release()")
	p.waitText("#result", "Set for all clients")
	if got, want := p.evalString("return shown(headline)"), "Fault: Slow by 3 s"; got != want {
		p.t.Errorf("after two presses the headline is %q, want %q", got, want)
	}
}

// Pets are added, listed and counted, and errors are shown at their fields.
func testPets(p *page) {
	p.click("Create pets")
	p.click("Add 25 samples")
	p.waitText("#spoken", "No fault. Added 25 pets at ")
	p.waitWhole("#listed", "25 pets.")
	p.waitText("#petRows", "2 Bella 2 pending 1 Rex 1 available")
	p.waitValue("idColumn.ariaSort", "descending")
	p.waitHidden("#morePets")

	p.fill("Name", "Ida")
	p.click("Add")
	p.waitText("#spoken", "No fault. Added as /v1/pets/26 at ")
	p.waitText("#petRows", "26 Ida 1 none")
	p.waitFocus("[name=name]")
	p.waitValue(`$("[name=name]").value`, "")
	p.send("POST /v1/pets", pet)
	p.waitText("#petRows", "27 Rex 7 none")
	p.waitWhole("#listed", "27 pets.")

	p.fill("Category", "seven")
	p.click("Add")
	p.waitText("#fieldError", "categoryId is ")
	p.waitFocus("[name=categoryId][aria-invalid=true]")

	p.send("POST /__admin/reset", "")
	p.waitWhole("#listed", "No pets yet.")
	p.waitHidden("#petTable")
	p.send("POST /v1/pets", `{"name":"`+markup+`","categoryId":9007199254740993}`)
	p.waitText("#petRows", "1 "+markup+" 9007199254740993 none")
	p.waitCount("td *", 0)

	// A long name is cut short between two characters.
	name := strings.Repeat("x", 199)
	p.send("POST /v1/pets", `{"name":"`+name+`🦎","categoryId":1}`)
	p.waitText("#petRows", "2 "+name+"… 1 none")
}

// The page lists the pets of one status, even if an answer about another one is
// late.
func testPetsOfStatus(p *page) {
	p.click("Create pets")
	p.click("Add 25 samples")
	p.waitText("#result", "Added 25 pets")
	p.fill("Show", "sold")
	p.waitWhole("#listing[role=status]", "4 pets.")
	p.send("POST /__admin/reset", "")
	p.waitWhole("#listed", "No pet is sold.")

	// A list that comes late, for the status that was chosen before, is not shown.
	p.eval(`
		window.answers = {};
		window.instead = (path) => {
			const status = /^\/v1\/pets\?.*status=(\w+)/.exec(path)?.[1];
			if (status) {
				return new Promise((resolve) => {
					answers[status] = () => resolve(Response.json([{id: 1, name: status, categoryId: 1}]));
				});
			}
		};`)
	p.waitTrue("answers.sold")
	p.fill("Show", "pending")
	p.eval("answers.sold()")
	p.waitTrue("answers.pending")
	if got, want := p.evalString("return shown(listed)"), "Asking…"; got != want {
		p.t.Errorf("after a late list the page says %q, want %q", got, want)
	}
	p.eval("answers.pending(); instead = null")
	p.waitWhole("#listed", "No pet is pending.")
}

// The page lists many pets, the newest first, or the first ones if more follow.
func testManyPets(p *page) {
	p.eval("samples.click(); samples.click()")
	p.waitText("#result", "Added 25 pets")
	p.waitWhole("#listed", "25 pets.")
	var pets []any
	if p.get("/v1/pets?limit=100", &pets); len(pets) != 25 {
		p.t.Errorf("two quick presses added %d pets, want 25", len(pets))
	}

	// The page lists 1,000 pets and, with Show more, 2,000.
	seed := "[" + strings.Repeat(pet+",", 1020) + pet + "]"
	p.send("POST /__admin/reset", seed)
	p.waitWhole("#listed", "First 1000 pets.")
	p.waitText("#petRows", "1 Rex 7 none 2 Rex 7 none")
	p.waitValue("idColumn.ariaSort", "ascending")
	p.click("Show more")
	p.waitWhole("#listed", "1021 pets.")
	p.waitText("#petRows", "1021 Rex 7 none 1020 Rex 7 none")

	// Another status and a reset begin with 1,000 pets again.
	p.send("POST /__admin/reset", strings.ReplaceAll(seed, "}", `,"status":"sold"}`))
	p.waitText("#petRows", "1021 Rex 7 sold")
	p.waitWhole("#listed", "1021 pets.")
	p.fill("Show", "sold")
	p.waitWhole("#listed", "First 1000 pets.")
	p.click("Show more")
	p.waitWhole("#listed", "1021 pets.")
	p.fill("Show", "all")
	p.waitWhole("#listed", "First 1000 pets.")
	p.click("Show more")
	p.waitWhole("#listed", "1021 pets.")
	p.click("Reset all")
	p.waitWhole("#listed", "No pets yet.")
	p.send("POST /__admin/reset", seed)
	p.waitWhole("#listed", "First 1000 pets.")
}

// A row shows what was sent, by whom, and what was special about it.
func testRows(p *page) {
	p.send("GET /v1/pets?stauts=sold", "",
		"User-Agent: Mozilla/5.0 (X11) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Safari/537.36")
	p.send("POST /v1/pets", `{"Name":1,`+pet[1:], "User-Agent: shop/2.1")
	p.send("GET /v1/store/orders", "")
	p.send("GET /v1/pets?limit=<b>x</b>"+strings.Repeat("x", 300), "")
	p.send("POST /v1/pets", "a body without the key", "Authorization: Bearer none")
	for _, code := range []string{"503", "hangup", "lost", "truncate", "stall", "html"} {
		p.send("POST /v1/pets", pet, "Prefer: code="+code)
	}
	p.waitRows(
		"POST 502 /v1/pets Prefer: HTML page",
		"POST 201, half /v1/pets Prefer: Answer stalls",
		"POST 201, half /v1/pets Prefer: Answer cut",
		"POST no answer /v1/pets Prefer: Answer lost",
		"POST no answer /v1/pets Prefer: Hang up",
		"POST 503 /v1/pets Prefer: Simulated 503",
		"POST 401 /v1/pets this is not the API key",
		"GET 400 /v1/pets?limit=<b>x</b>"+strings.Repeat("x", 177)+"… limit is",
		"GET 501 /v1/store/orders the contract",
		"POST 201 /v1/pets ignored: Name",
		"GET 200 /v1/pets?stauts=sold ignored: stauts",
	)
	p.waitText("#list li:nth-child(10) .sent", `{"Name":1,`+pet[1:])
	p.waitText("#list li:nth-child(10) .agent", "shop/2.1")
	p.waitText("#list li:nth-child(11) .agent", "Chrome/120")
	p.waitCount(".injected .reason", 0) // it would repeat the tag

	// The columns have heads, where there are columns.
	p.waitText("#heads", "Time Method Status Request Client Took")
	const edges = `$$("#heads > *").some((head, i) =>
		Math.abs(box(head).left - box(list.querySelector("summary").children[i]).left) > 1)`
	p.waitValue(edges, false)
	p.resize(390, 844)
	p.waitHidden("#heads")
	p.resize(1440, 900)

	// A reason that the fault has not made is shown beside it.
	p.send("POST /v1/pets", "{}", "Prefer: code=html")
	p.waitText("#list .injected .reason", "name is missing")

	// Red is for what was injected.
	p.waitCount(".injected", 7)
	p.waitCount("#list li:not(.injected) .status.server-error", 1)
	p.waitCount("#list li:not(.injected) .status.client-error", 2)
	p.waitValue(`new Set($$("#list .status").map((status) => getComputedStyle(status).color)).size`, 4)
	p.waitAtMost(`Math.max(...$$("#list .status").map((status) => box(status).height))`, "25") // one line
}

// An opened request shows what was sent and answered, as text.
func testDetails(p *page) {
	p.send("POST /v1/pets?x=%20y", `{"name":`+markup)
	p.send("POST /v1/pets", "a body without the key", "Authorization: Bearer none")
	p.send("POST /v1/pets", pet, "Prefer: code=hangup")
	p.send("POST /v1/pets", pet, "Prefer: code=lost", "X-Name: "+markup)
	p.send("POST /v1/pets", pet, "Prefer: code=stall")
	p.send("GET /v1/pets/1", pet, "Prefer: code=html")
	p.send("PUT /v1/pets", "\x00", "Content-Type: text/plain")
	p.send("POST /v1/pets?long", `{"name":"x`+strings.Repeat("🦎", 300)+`","categoryId":7}`)
	p.send("POST /v1/pets?big", `{"name":"big","categoryId":9007199254740993}`)
	p.send("PATCH /v1/pets", `\';touch PWN;#`)
	p.send("POST /v1/pets?lost", strings.Replace(pet, "Rex", strings.Repeat("x", 1000), 1), "Prefer: code=lost")
	p.send("GET /v1/pets", "", "Prefer: code=503")
	p.send("GET /v1/pets", "", "Prefer: code=500")
	p.send("GET /v1/pets", "", "Prefer: code=400, retry-after=0")
	p.send("GET /v1/pets?all", "")
	for _, tt := range []struct{ row, want string }{
		{row: "/v1/pets?lost", want: "Answer, which the client did not get, its first 1,000 bytes"},
		{row: "POST 201 /v1/pets?big", want: `"categoryId": 9007199254740993`},
		{row: "PATCH 405", want: `--data-raw ''\\''\'';touch PWN;#'`}, // also for fish
		{row: "POST 400", want: `Sent body {"name":` + markup + ` Sent headers POST /v1/pets?x=%20y`},
		{row: "POST 401", want: "Sent body It was not kept. Sent headers POST /v1/pets"},
		{row: "Prefer: Hang up", want: "Answer There was none. createPet is not performed, and the connection is closed (code=hangup) Sent body"},
		{row: "no answer /v1/pets Prefer: Answer lost", want: `Answer, which the client did not get { "id": 1, "name": "Rex"`},
		{row: "no answer /v1/pets Prefer: Answer lost", want: "X-Name: " + markup},
		{row: "Prefer: Answer stalls", want: `Answer 201, of which the client got half { "id": 2, "name": "Rex"`},
		{row: "Prefer: HTML page", want: "Answer 502 <html>"},
		{row: "Prefer: HTML page", want: "Repeat it Copy curl -i -X 'GET' -H 'Authorization: Bearer " + key},
		{row: "Prefer: Simulated 503", want: `Answer 503, Retry-After 1 s { "code": "`},
		{row: "Prefer: Simulated 500", want: `Answer 500 { "code": "`},
		{row: "Prefer: Simulated 400", want: `Answer 400, Retry-After 0 s { "code": "`},
		{row: "GET 200 /v1/pets?all", want: `Answer 200, its first 1,000 bytes [ {"id":1,"name":"Rex","categoryId":7}, {"id":2,`},
		{row: "POST 201 /v1/pets?long", want: "Answer 201, its first 1,000 bytes {"},
		{row: "POST 201 /v1/pets?long", want: strings.Repeat("🦎", 240)},
		{row: "POST 201 /v1/pets?long", want: "🦎… createPet "},
		{row: "PUT 405", want: "Not exact: a shell cannot send NUL"},
	} {
		p.click(tt.row)
		p.waitText("#list [open] .content", tt.want)
		p.click(tt.row)
		p.waitCount("#list [open]", 0)
	}
	var journal struct{ Requests []struct{ Answer string } }
	p.get("/__admin/requests", &journal)
	p.click("GET 200 /v1/pets?all")
	p.waitValue(`$("#list [open] pre").textContent.replace(/\n */g, "")`,
		journal.Requests[len(journal.Requests)-1].Answer+"…")
	p.click("Resume")
	p.waitCount("#list img, .url :not(wbr), pre *", 0)
	p.waitValue("document.title", "Petstore")

	// A click that ends a selection of text does not open the row.
	const choose = `
		getSelection().selectAllChildren(list.querySelector(".url"));
		list.querySelector("summary").click();
		return $$("#list [open]").length;`
	if got := p.eval(choose); got != 0.0 {
		p.t.Errorf("selecting the text of a row opened %v rows, want 0", got)
	}
	p.eval("getSelection().removeAllRanges()")

	// What is opened comes into sight, and only a text that scrolls is a Tab stop.
	for range 40 {
		p.send("GET /v1/pets", "")
	}
	p.send("POST /v1/pets", strings.Repeat("long\n", 100))
	p.waitWhole("#total", "56 requests")
	p.click("POST 400 /v1/pets the")
	p.waitValue(`$$("#list [open] pre").map(({tabIndex}) => tabIndex).join()`, "-1,0,-1,0")
	p.click("POST 400 /v1/pets the")
	p.eval("$('#scroll').scrollTop = 300; list.children[30].querySelector('summary').click()")
	p.waitAtMost("box(list.children[30]).bottom", "box($('#scroll')).bottom + 1")
}

// What a client sends again within a minute after a failure is a retry. It says
// how long the client waited after the answer.
func testRetry(p *page) {
	p.eval(`
		const requestOf = ([time, change]) => ({
			time: "2026-11-21T10:" + time + "Z",
			method: "GET",
			url: "/v1/pets/1",
			headers: {"User-Agent": "shop/1", "X-Kind": "no retry"},
			status: 503,
			seconds: 0,
			...change,
		});
		const requests = [
			["00:00.000", {status: 0, seconds: 3, fault: "code=lost, delay=3"}],
			["00:03.001", {headers: {"User-Agent": "other/1"}}],
			["00:03.002", {url: "/v1/pets/3", status: 404}],
			["00:03.003", {url: "/v1/pets/2"}],
			["00:03.004", {method: "HEAD"}],
			["00:03.005", {body: "{}"}],
			["00:03.250", {fault: "code=503"}],
			["00:03.251", {url: "/v1/pets/3"}],
			["00:05.250", {status: 200}],
			["00:06.000", {status: 200}],
			["01:03.003", {url: "/v1/pets/2"}],
			["02:00.000", {url: "/v1/pets/2", seconds: 2}],
			["02:01.000", {url: "/v1/pets/2"}],
			["03:00.000", {status: 200, fault: "code=stall"}],
			["03:01.500", {status: 200}],
			["04:00.000", {url: "/v1/pets/4", fault: "code=503, retry-after=5"}],
			["04:00.250", {url: "/v1/pets/4"}],
		].map(requestOf);
		window.instead = (path) => path === "/__admin/requests" &&
			Response.json({requests, meta: {total: requests.length}});`)
	p.waitRows(
		"GET 503 /v1/pets/4 retry 1 after 250 ms, not 5 s",
		"GET 503 /v1/pets/4 Simulated 503 · Retry-After 5",
		"GET 200 /v1/pets/1 retry 1 after a stall of 1.5 s",
		"GET 200, half /v1/pets/1 Answer stalls",
		"GET 503 /v1/pets/2",
		"GET 503 /v1/pets/2 retry 1 after 56.997 s",
		"GET 503 /v1/pets/2",
		"GET 200 /v1/pets/1",
		"GET 200 /v1/pets/1 retry 2 after 2 s",
		"GET 503 /v1/pets/3",
		"GET 503 /v1/pets/1 Simulated 503 retry 1 after 250 ms",
		"GET 503 /v1/pets/1",
		"HEAD 503 /v1/pets/1",
		"GET 503 /v1/pets/2",
		"GET 404 /v1/pets/3",
		"GET 503 /v1/pets/1",
		"GET no answer /v1/pets/1 Answer lost · Slow by 3 s",
	)
	p.waitCount("#list .tag:not(.fault)", 5)
	p.waitCount("#list .early", 1)
	p.click("GET 200 /v1/pets/1 retry 2")
	p.click("Go to the try before")
	p.waitText("#list :focus", "GET 503 /v1/pets/1 Simulated 503 retry 1")
	p.click("Resume")
	for _, tt := range []struct{ filter, hits string }{
		{filter: "retry", hits: "5 matching"},
		{filter: "fault", hits: "4 matching"},
		{filter: "retry -fault", hits: "4 matching"},
	} {
		p.fill("Filter", tt.filter)
		p.waitText("#hits", tt.hits)
	}

	// What the filter hides is shown, if one goes to it.
	p.click("retry 1 after 250 ms, not 5 s")
	p.click("Go to the try before")
	p.waitText("#list :focus", "GET 503 /v1/pets/4 Simulated 503")
	p.waitHidden("#hits")
}

// Requests of the same millisecond are different requests.
func testSameMillisecond(p *page) {
	p.eval(`
		const request = {time: "2026-11-21T10:00:00.000Z", method: "GET", url: "/v1/pets", headers: {},
			status: 200, seconds: 0};
		window.instead = (path) => path === "/__admin/requests" &&
			Response.json({requests: [request, request], meta: {total: 2}});`)
	p.waitRows("GET 200 /v1/pets", "GET 200 /v1/pets")
	p.eval(`
		const request = {time: "2026-11-21T10:00:00.001Z", method: "GET", url: "/v1/after", headers: {},
			status: 200, seconds: 0};
		window.instead = (path) => path === "/__admin/requests" &&
			Response.json({requests: [request], meta: {total: 2}});`)
	p.waitRows("GET 200 /v1/after")
	p.waitWhole("#total", "last 1 of 2")
}

// Reset all and Forget all make the list live again.
func testReset(p *page) {
	for i, button := range []string{"Reset all", "Forget all"} {
		p.send("GET /v1/pets/1", "")
		p.click("GET 404")
		p.waitText("#live.held", "Row open")
		p.click(button)
		p.waitRows()
		p.waitText("#live.live", "Live")
		p.send(fmt.Sprint("GET /v1/pets/", i+2), "")
		p.waitRows(fmt.Sprint("GET 404 /v1/pets/", i+2))
		p.send("DELETE /__admin/requests", "")
		p.waitRows()
	}

	// After a reset, nothing is hidden.
	p.fill("Show", "sold")
	p.fill("Filter", "404")
	p.click("Failed only")
	p.click("Reset all")
	p.waitText("#spoken", "No fault. Reset at ")
	p.send("POST /v1/pets", pet)
	p.waitRows("POST 201")
	p.waitText("#petRows", "1 Rex 7 none")
	p.waitValue("petsTitle.parentElement.querySelector('select').value + filter.value", "")
}

// While the service does not answer, the page shows no fault.
func testFaultUnknown(p *page) {
	p.click("503 every time")
	p.waitWhole("#count", "No request yet")
	p.eval(`window.instead = () => { throw new TypeError("no network"); };`)
	p.waitText("#bar.unknown", "No answer")
	p.waitHidden("#count")
	p.waitValue("end.ariaDisabled", "true")
	p.waitCount("[aria-current=true]", 0)
	p.eval("window.instead = null")
	p.waitText("#bar.active", "Fault: 503 every time")
}

// The filter finds words of a request, and methods and statuses as a whole.
func testFilter(p *page) {
	p.send("POST /v1/pets?x=1", `{"body":0,`+pet[1:], "User-Agent: shop/2.1")
	p.send("GET /v1/pets?404&post", "", "X-Id: Ünïque")
	p.send("GET /v1/pets/7", "")
	p.waitWhole("#total", "3 requests")
	p.waitHidden("#hits")
	for _, tt := range []struct {
		filter, hits string
		rows         []string
	}{
		{filter: "pets GET", hits: "2 matching", rows: []string{"GET 404", "GET 200"}},
		{filter: "-404 -post", hits: "1 matching", rows: []string{"GET 200"}},
		{filter: "?y", hits: "None matching"},
		{filter: "404", hits: "1 matching", rows: []string{"GET 404"}},
		{filter: "4xx", hits: "1 matching", rows: []string{"GET 404"}},
		{filter: "createPet", hits: "1 matching", rows: []string{"POST 201"}},
		{filter: "getpet", hits: "1 matching", rows: []string{"GET 404"}},
		{filter: "listpets", hits: "1 matching", rows: []string{"GET 200"}},
		{filter: "post", hits: "1 matching", rows: []string{"POST 201"}},
		{filter: "?404", hits: "1 matching", rows: []string{"GET 200"}},
		{filter: "x-id: ünïque", hits: "1 matching", rows: []string{"GET 200"}},
		{filter: "SHOP body", hits: "1 matching", rows: []string{"POST 201"}},
		{filter: `"id":`, hits: "2 matching", rows: []string{"GET 200", "POST 201"}},
		{filter: "-", hits: "3 matching", rows: []string{"GET 404", "GET 200", "POST 201"}},
	} {
		p.t.Logf("filter %q", tt.filter) // shown if the test fails
		p.fill("Filter", tt.filter)
		p.waitText("#hits", tt.hits)
		p.waitRows(tt.rows...)
	}

	p.fill("Filter", "?y")
	p.waitText("#none", "No request matches. Each word must occur, and none after a minus sign.")
	p.click("Show all")
	p.waitHidden("#none")
	p.waitFocus("#filter")
	p.waitWhole("#total", "3 requests")

	p.fill("Filter", "get")
	p.click("Failed only")
	p.waitValue("failed.ariaPressed", "true")
	p.waitRows("GET 404")
	p.click("Failed only")
	p.waitValue("failed.ariaPressed", "false")
	p.waitRows("GET 404", "GET 200")

	// What the filter has hidden does not look new when it is shown.
	p.fill("Filter", "404")
	p.send("GET /v1/pets", "")
	p.send("GET /v1/pets/8", "")
	p.waitRows("GET 404 /v1/pets/8", "GET 404 /v1/pets/7")
	p.waitWhole("#total", "of 5")
	p.waitWhole("#listing[role=status]", "1 matching") // not read aloud with each request
	p.finishAnimations()
	p.fill("Filter", "")
	p.waitHidden("#hits")
	p.waitHidden("#listing")
	p.waitCount(".fresh", 0)

	p.fill("Filter", "404")
	p.waitWhole("#hits", "2 matching")
	p.click("Forget all")
	p.waitText("#result", "Requests forgotten at ")
	p.waitRows()
	p.waitHidden("#hits")
	p.waitWhole("#total", "0 requests")
}

// A request has failed unless its client got the whole answer of a success.
func testFailedOnly(p *page) {
	for _, prefer := range []string{
		"code=stall", "code=truncate", "code=lost", "code=404", "code=html", "delay=0", "wait=1",
	} {
		p.send("GET /v1/pets", "", "Prefer: "+prefer)
	}
	p.waitWhole("#total", "7 requests")
	p.click("Failed only")
	p.waitRows("GET 502", "GET 404", "GET no answer", "GET 200, half", "GET 200, half")
	p.waitText("#hits", "5 matching")
}

// The list does not change while somebody reads it, and says how many requests
// are new.
func testHold(p *page) {
	p.send("GET /v1/pets/1", "")
	p.waitRows("GET 404")
	p.eval("window.place = box(failed).x")
	p.click("GET 404")
	p.waitText("#live.held", "Row open")
	p.waitValue("box(failed).x - place", 0)
	p.send("POST /v1/pets", pet)
	p.send("POST /v1/pets", pet)
	p.waitWhole("#showNew", "2 new")
	p.waitRows("GET 404")
	p.click("2 new")
	p.waitRows("POST 201", "POST 201", "GET 404")
	p.waitText("#live.held", "Row open")

	// A request that is no longer in the journal does not hold the list.
	p.send("DELETE /__admin/requests", "")
	p.send("GET /v1/pets/9", "")
	p.click("1 new")
	p.waitRows("GET 404")
	p.waitText("#live.live", "Live")
	p.click("GET 404")
	p.waitText("#live.held", "Row open")
	p.waitValue("showNew.ariaDisabled", "true")
	p.waitValue("getComputedStyle(showNew).opacity", "0")

	p.click("Resume")
	p.waitText("#live.live", "Live")
	p.waitCount("#list [open]", 0)

	// Escape closes a row that the mouse has opened, and the list goes on.
	p.click("GET 404")
	p.waitText("#live.held", "Row open")
	p.typeKeys(escape)
	p.waitCount("#list [open]", 0)
	p.waitText("#live.live", "Live")

	p.eval("window.first = list.firstElementChild")
	p.click("Pause")
	p.waitText("#live.held", "Paused")
	p.send("GET /v1/pets/2", "")
	p.waitWhole("#showNew", "1 new")
	p.waitTrue("list.firstElementChild === first")
	p.click("Resume")
	p.waitTrue("list.children[1] === first")
}

// A list whose beginning is out of sight is held, or nobody would see the news.
func testScrolledList(p *page) {
	for i := range 60 {
		p.send(fmt.Sprint("GET /v1/pets/", i), "")
	}
	p.waitWhole("#total", "60 requests")
	p.eval("$('#scroll').scrollTop = 300")
	p.waitText("#live.held", "Scrolled")
	p.send("POST /v1/pets", pet)
	p.waitWhole("#showNew", "1 new")
	p.click("1 new")
	p.waitText("#live.live", "Live")
	p.waitValue("$('#scroll').scrollTop", 0)
	p.waitText("#list li", "POST")

	p.eval("$('#scroll').scrollTop = 300; list.children[20].querySelector('summary').click()")
	p.waitText("#live.held", "Row open")
	p.send("POST /__admin/reset", "")
	p.waitWhole("#total", "0 requests; 61 below are gone")
	p.waitText("#result", "Requests cleared by another client or a restart at ")
	p.click("Resume")
	p.waitText("#live.live", "Live")
	p.waitValue("$('#scroll').scrollTop", 0)
}

// A pointer holds the list while it moves, and for five seconds after that.
func testRestingPointer(p *page) {
	p.send("GET /v1/pets/1", "")
	p.waitRows("GET 404")
	p.moveMouse("#list summary")
	p.waitText("#live.held", "Pointer on list")
	p.send("GET /v1/pets/2", "")
	p.waitWhole("#showNew", "1 new")
	p.waitRows("GET 404 /v1/pets/1")
	p.waitTrue("timers[5000]")
	p.eval("timers[5000]()")
	p.waitRows("GET 404 /v1/pets/2", "GET 404 /v1/pets/1")
	p.waitText("#live.live", "Live")

	p.moveMouse("#list time")
	p.waitText("#live.held", "Pointer on list")
	p.moveMouse("h1")
	p.waitText("#live.live", "Live")
}

// A copied line sends a request again as it was sent.
func testRepeat(p *page) {
	tests := []struct{ request, body, header string }{
		{
			request: "POST /v1/pets",
			body:    `{"name":"it's <b> \"$KEY\"","categoryId":7}`,
			header:  "Content-Type: application/json",
		},
		{request: "GET /v1/pets?status={a}[1-2]", header: "Prefer: code=418, wait=1"},
		{request: "HEAD /v1/pets/../pets", header: "Authorization: Bearer <API_KEY>"},
		{
			request: "PATCH /v1/pets",
			body:    "@no\x1b[31m 'file'\u202e\n",
			header:  "Content-Type: text/plain",
		},
		{request: "POST http://a.example.test/v1/pets", body: pet, header: "X-Id: 1"},
		{request: "GET /v1/pets", header: "X-Id: "},
	}
	for _, tt := range tests {
		p.send(tt.request, tt.body, tt.header)
	}
	lines := p.copyLines(len(tests))
	p.waitText("#result", "Copied at ")
	if _, err := exec.LookPath("bash"); err != nil {
		p.t.Skip("bash is not installed")
	}
	var printed []string
	for _, line := range lines {
		_, output := p.shell("bash", line)
		printed = append(printed, output)
	}

	var journal struct {
		Requests []struct {
			Method, URL, Body, Fault string
			Status                   int
			Headers                  map[string]any // an absent one is nil, and not ""
		}
	}
	p.get("/__admin/requests", &journal)
	var requests []string
	for _, request := range journal.Requests {
		sent := fmt.Sprintf("%s %s %q, status %d, fault %q", request.Method, request.URL, request.Body,
			request.Status, request.Fault)
		for _, name := range []string{"Content-Type", "Authorization", "Prefer", "X-Id"} {
			sent += fmt.Sprintf(", %s %#v", name, request.Headers[name])
		}
		requests = append(requests, sent)
	}
	if len(requests) != 2*len(tests) {
		p.t.Fatalf("got the requests %q, want each twice; the shell printed %q", requests, printed)
	}
	for i, line := range lines {
		got := requests[len(tests)+i]
		want := strings.Replace(requests[i], "http://a.example.test", "", 1)
		if got != want {
			p.t.Errorf("%s\nis repeated as\n%s\nwant\n%s", line, got, want)
		}
		if strings.ContainsAny(line, "\x1b\u202e") {
			p.t.Errorf("got %q, want no invisible characters", line)
		}
	}
}

// A copied line goes to this service and to no other host, has the key only for
// a path under /v1, and runs nothing, whatever the shell. The requests here were
// made to harm whoever pastes them.
func testCopySafely(p *page) {
	const claimsKey = "Authorization: Bearer <API_KEY>" // as the journal shows the real one
	tests := []struct {
		request, body, header string
		path                  string
		hasKey                bool
	}{
		{request: "GET a:@evil.test/steal", header: claimsKey, path: "/a:@evil.test/steal"},
		{request: "CONNECT @evil.test:80", header: claimsKey, path: "/@evil.test:80"},
		{request: "GET //a@evil.test/steal", header: claimsKey, path: "/steal"},
		{request: "GET http://a:b@evil.test?steal", header: claimsKey, path: "/?steal"},
		{request: "GET /v1x/pets", header: claimsKey, path: "/v1x/pets"},
		{request: "GET /v1/pets", header: claimsKey, path: "/v1/pets"}, // answered 401
		{request: "GET /v1/pets", header: "Prefer: code=401", path: "/v1/pets", hasKey: true},
		{request: "GET http://a@evil.test/v1/pets", path: "/v1/pets", hasKey: true},
		{request: "-oPWN /v1/';touch${IFS}PWN;'", path: "/v1/';touch${IFS}PWN;'", hasKey: true},
		{request: "GET /v1/pets", header: "X'Id: ;touch PWN;#", path: "/v1/pets", hasKey: true},
		{
			request: "GET /v1/pets",
			header:  "X-Id: @/etc/passwd';touch PWN;#\u202e",
			path:    "/v1/pets",
			hasKey:  true,
		},
		{request: "POST /v1/pets", body: "';touch PWN;#", path: "/v1/pets", hasKey: true},
		{request: "POST /v1/pets", body: "\r';touch PWN;#", path: "/v1/pets", hasKey: true},
		{request: "POST /v1/pets", body: "\\';touch PWN;#", path: "/v1/pets", hasKey: true},
		{request: "POST /v1/pets", body: "\r\\';touch PWN;#", path: "/v1/pets", hasKey: true},
		{
			request: "POST /v1/pets",
			body:    "@/etc/passwd\n`touch PWN`\n$(touch PWN)\n",
			path:    "/v1/pets",
			hasKey:  true,
		},
	}
	for _, tt := range tests {
		p.send(tt.request, tt.body, tt.header)
	}
	lines := p.copyLines(len(tests))
	for i, tt := range tests {
		line := lines[i]
		url := " '" + p.base + strings.ReplaceAll(tt.path, "'", `'\''`) + "'"
		if !strings.HasSuffix(line, url) {
			p.t.Errorf("%s\nis repeated by\n%s\nwant it to end with%s", tt.request, line, url)
		}
		if hasKey := strings.Contains(line, key); hasKey != tt.hasKey {
			p.t.Errorf("%s\nis repeated by\n%s\nwith the key: got %t, want %t",
				tt.request, line, hasKey, tt.hasKey)
		}
	}

	for _, shell := range []string{"sh", "dash", "bash", "zsh", "fish"} {
		if _, err := exec.LookPath(shell); err != nil {
			p.t.Logf("%s is not installed", shell)
			continue
		}
		if files, output := p.shell(shell, "touch PWN"); !slices.Equal(files, []string{"PWN"}) {
			p.t.Errorf("in %s, touch wrote the files %q, want PWN, and printed %q", shell, files, output)
		}
		for _, line := range lines {
			if files, output := p.shell(shell, line); len(files) > 0 {
				p.t.Errorf("in %s\n%s\nwrote the files %q, want none, and printed %q",
					shell, line, files, output)
			}
		}
	}
}

// The page can be used with the keyboard alone.
func testKeyboard(p *page) {
	const (
		shiftTab = "\ue008\ue004"
		enter    = "\ue007"
		home     = "\ue011"
		end      = "\ue010"
		up       = "\ue013"
		down     = "\ue015"
	)
	// goTo presses tab until an element has the focus.
	goTo := func(tab, selector string) {
		p.t.Helper()
		for range 80 {
			if p.eval("return document.activeElement.matches(arguments[0])", selector) == true {
				return
			}
			p.typeKeys(tab)
		}
		p.t.Fatalf("got no focus on %s after 80 presses, want it", selector)
	}
	p.open("/")
	for i := range 3 {
		p.send(fmt.Sprint("GET /v1/pets/", i+1), "")
	}
	goTo(tab, "#keyField")
	p.typeKeys(key + enter)
	p.waitText("#live", "Live")
	goTo(shiftTab, "#skip")
	p.waitAtMost("box(mark).top", "20") // the link lies over the header
	p.typeKeys(enter)
	p.waitFocus("#requestsTitle")
	goTo(tab, "#filter")
	p.typeKeys("404")
	p.waitWhole("#hits", "3 matching")
	goTo(tab, "#list summary")
	p.waitText("#live", "Focus on list")
	for _, tt := range []struct{ key, selector string }{
		{key: down, selector: "#list li:nth-child(2) summary"},
		{key: end, selector: "#list li:nth-child(3) summary"},
		{key: up, selector: "#list li:nth-child(2) summary"},
		{key: home, selector: "#list li:nth-child(1) summary"},
		{key: escape, selector: "#filter"},
	} {
		p.typeKeys(tt.key)
		p.waitFocus(tt.selector)
	}
	goTo(tab, "#list summary")
	p.typeKeys(enter)
	p.waitText("#list [open]", "there is no pet 3")
	goTo(tab, "#list .content button")
	p.typeKeys(escape)
	p.waitFocus("#list li:nth-child(1) summary")
	p.typeKeys(escape)
	p.waitText("#live", "Focus on list")
	goTo(shiftTab, "[value='code=hangup']")
	p.waitText("#live", "Live")
	p.typeKeys(enter)
	p.waitText("#headline", "Fault: Hang up")
	goTo(shiftTab, "#end")
	p.typeKeys(enter)
	p.waitText("#headline", "No fault")
	goTo(tab, "#otherFault summary")
	p.typeKeys(enter)
	p.waitText("#otherFault", "Retry-After")
	goTo(tab, "[name=delay]")
	p.typeKeys("0" + enter)
	p.waitText("#headline", "Fault: Slow by 0 s")
	goTo(tab, "#petCreator summary")
	p.typeKeys(enter)
	goTo(tab, "[name=name]")
	p.typeKeys("Ida" + enter)
	p.waitText("#petRows", "1 Ida 1 none")
}

// Tab goes through the parts in the order in which they are seen. The element
// with the focus is always in sight, and the last Tab leaves the page.
func testTabOrder(p *page) {
	p.fillPage()
	p.click("Another fault")
	p.click("Create pets")
	const check = `
		const isInSight = () => {
			const {x, y, width, height} = box(document.activeElement);
			const top = document.elementFromPoint(x + width / 2, y + Math.min(height / 2, 20));
			return document.activeElement.contains(top);
		};
		if ($(":focus") === null) {
			return "left";
		}
		return until(isInSight).then((ok) => ok ? "" : document.activeElement.outerHTML);`
	for _, tt := range []struct {
		width, height int
		parts         string
	}{
		{width: 1200, height: 700, parts: "header bar fault pets requests"},
		{width: 390, height: 700, parts: "header bar fault requests pets nav"},
		{width: 640, height: 400, parts: "header bar nav fault requests pets"},
	} {
		size := fmt.Sprint(tt.width, " x ", tt.height)
		p.resize(tt.width, tt.height)
		p.eval("scrollTo(0, 0); skip.focus()")
		got := ""
		var parts []string
		for n := 0; n < 80 && got == ""; n++ {
			part := p.evalString(`
				const part = document.activeElement.closest("header, #bar, section, nav");
				return part ? part.id || part.localName : "";`)
			if part != "" && !slices.Contains(parts, part) {
				parts = append(parts, part)
			}
			got = p.evalString(check)
			p.typeKeys(tab)
		}
		if got != "left" {
			p.t.Errorf("%s: got a focus that cannot be seen, want it in sight until it leaves: %s", size, got)
		}
		if got := strings.Join(parts, " "); got != tt.parts {
			p.t.Errorf("%s: Tab goes through %s, want %s", size, got, tt.parts)
		}
	}
}

// In windows of all sizes, nothing is cut off or covered.
func testLayout(p *page) {
	p.resize(1440, 900)
	p.waitAtMost("box(petsTitle).top - box(pets).top", "30") // however few pets there are
	p.fillPage()
	if file := os.Getenv("PETSTORE_PICTURE"); file != "" {
		p.takePicture(file)
	}
	for i := range 40 {
		p.send(fmt.Sprint("GET /v1/pets/", i), "")
	}
	p.click("40 new")
	check := func(width, height int, media ...string) {
		p.t.Helper()
		p.resize(width, height, media...)
		p.waitAtMost("document.documentElement.scrollWidth", "innerWidth")
		p.checkAccessibility(fmt.Sprint(width, " x ", height, " ", media))
	}

	// All presets and the first pet are above the fold, and each part scrolls
	// by itself.
	for _, size := range [][2]int{{1440, 900}, {1280, 800}} {
		p.resize(size[0], size[1])
		p.waitAtMost("box(presets).bottom", "innerHeight")
		p.waitAtMost("box($('#petRows tr')).bottom", "innerHeight")
		p.waitValue("box(fault).top - box(requests).top", 0)
		p.waitAtMost("box(requests).bottom", "innerHeight")
	}
	check(1440, 900)
	check(1280, 800, "prefers-color-scheme: dark")
	check(900, 900)

	// In a single column, the requests come before the pets.
	check(390, 844, "prefers-color-scheme: dark")
	p.waitAtMost("box(fault).bottom", "box(requests).top")
	p.waitAtMost("box(requests).bottom", "box(pets).top")
	p.eval("$('nav [href=\"#requestsTitle\"]').click()")
	p.waitAtMost("box(bar).bottom", "box(requestsTitle).top")
	p.waitAtMost("box(requestsTitle).top", "box(bar).bottom + 60")

	// At a zoom of 200 %, the headline and the button stay in sight, and the
	// links stand above the parts.
	for _, size := range [][2]int{{640, 400}, {720, 450}} {
		check(size[0], size[1])
		p.waitAtMost("box($('nav')).bottom", "box(fault).top")
		p.eval("scrollTo(0, document.documentElement.scrollHeight)")
		p.waitAtMost("300", "scrollY")
		p.waitAtMost("0", "box(headline).top")
		p.waitAtMost("0", "box(end).top")
		p.waitAtMost("box(bar).bottom", "innerHeight / 3")
		p.eval("$('nav [href=\"#requestsTitle\"]').click()")
		p.waitAtMost("box(bar).bottom", "box(requestsTitle).top")
		p.waitAtMost("box(requestsTitle).top", "box(bar).bottom + 60")
		p.eval("scrollTo(0, 0)")
	}

	// The texts of the bar do not lie on one another.
	const overlaps = `
		const parts = [headline, detail, count, end, $("#result")].filter(shown);
		const isOver = (a, b) => box(a).bottom > box(b).top + 1 && box(b).bottom > box(a).top + 1 &&
			box(a).right > box(b).left + 1 && box(b).right > box(a).left + 1;
		return parts.flatMap((a, i) => parts.slice(i + 1).filter((b) => isOver(a, b))
			.map((b) => shown(a) + " over " + shown(b))).join("\n");`
	for _, size := range [][2]int{{320, 640}, {320, 256}, {390, 844}, {640, 400}, {900, 500}, {1440, 900}} {
		check(size[0], size[1])
		if got := p.evalString(overlaps); got != "" {
			p.t.Errorf("%v: got overlapping texts in the bar: %s", size, got)
		}
	}

	// An error at a field, nothing found, and the form for the key.
	p.resize(1440, 900)
	p.click("Another fault")
	p.fill("Filter", "nothing")
	p.fill("Code", "777")
	p.click("Set")
	p.waitText("#fieldError", "777")
	check(1440, 900, "prefers-color-scheme: dark")
	check(390, 844)
	p.open("/")
	p.waitText("#headline", "A key is needed")
	check(1440, 900)
	check(390, 844, "prefers-color-scheme: dark")
}

// The page can be read in forced colors, and moves nothing for those who asked
// for reduced motion.
func testForcedColors(p *page) {
	p.fillPage()
	p.resize(1280, 800, "forced-colors: active")
	const border = "return getComputedStyle($(arguments[0])).borderLeftStyle"
	for _, tt := range []struct{ selector, want string }{
		{selector: "#bar.active", want: "double"},
		{selector: "[aria-current=true]", want: "double"},
		{selector: "[aria-current=false]", want: "solid"},
	} {
		if got := p.evalString(border, tt.selector); got != tt.want {
			p.t.Errorf("%s has a %s border, want %s", tt.selector, got, tt.want)
		}
	}
	p.waitTrue(`getComputedStyle($(".injected")).borderLeftColor !==
		getComputedStyle($("#list li:not(.injected)")).borderLeftColor`)
	p.checkAccessibility("forced colors")

	p.resize(1280, 800, "prefers-reduced-motion: reduce")
	p.send("GET /v1/pets", "")
	p.click("1 new")
	p.waitTrue("$('.fresh')")
	p.waitValue("document.getAnimations().length", 0)
}

// A page without news paints nothing anew, and one that is hidden polls seldom.
func testIdle(p *page) {
	p.fillPage()
	p.sync()
	p.eval("window.changes = 0")
	p.sync()
	if got := p.eval("return changes"); got != 0.0 {
		p.t.Errorf("got %v changes of the page without news, want 0", got)
	}

	const hide = `
		Object.defineProperty(document, "hidden", {value: arguments[0], configurable: true});
		document.dispatchEvent(new Event("visibilitychange"));`
	p.eval(hide, true)
	p.waitTrue("slowPolls > 0")
	p.send("PUT /__admin/fault?code=500", "")
	p.waitValue("document.title", "Fault: 500 – Petstore")
	p.eval(hide, false)
	p.eval("window.slowPolls = 0")
	p.sync()
	p.waitValue("slowPolls", 0)
}

// The page says so while the service does not answer, and recovers.
func testOutage(p *page) {
	p.send("POST /v1/pets", pet)
	p.click("POST 201")
	p.click("503 every time")
	p.waitText("#headline", "Fault: 503 every time")

	// A service that does not answer for two seconds.
	p.eval("window.isPatient = false")
	p.sync() // a poll under way is still patient
	p.signal("STOP")
	p.click("End the fault")
	p.waitText("#result", "Asking…")
	p.waitHidden("#spoken")
	p.waitText("#live.gone", "Not live")
	p.waitText("#bar.unknown", "No answer The service has not answered for two seconds.")
	const buttons = ":is(#presets button, #setButton, #end, #reset, #forget, #add, #samples, #morePets)"
	p.waitCount(buttons+":not([aria-disabled=true])", 0)
	p.waitTrue(`getComputedStyle(setButton).background === getComputedStyle(forget).background`)
	p.signal("CONT")
	p.send("DELETE /__admin/fault", "")
	p.waitText("#bar.calm #headline", "No fault")
	p.waitText("#list [open]", "POST")

	// An action whose answer does not arrive.
	p.eval(`window.instead = (path, init) => {
		if (init.method === "DELETE") {
			throw new TypeError("no network");
		}
	};`)
	p.click("Forget all")
	p.waitText("#result.bad", "It is not known whether it was done.")
	p.eval("window.instead = null")

	// A reset, by somebody else and by this page.
	p.send("POST /__admin/reset", `[{"name":"Ida","categoryId":1}]`)
	p.waitText("#petRows", "Ida")
	p.waitText("#list [open]", "POST")
	p.click("Reset all")
	p.waitText("#spoken", "No fault. Reset at ")
	p.waitRows()

	// A service that has gone, and comes back.
	p.send("GET /v1/pets", "")
	p.waitRows("GET 200")
	p.signal("KILL")
	p.waitValue("document.title", "No answer – Petstore")
	p.waitText("#bar.unknown", "No answer The service does not answer.")
	p.waitHidden("#result") // it is out of date
	p.waitValue("[reset, add].map((button) => button.ariaDisabled).join()", "true,true")
	p.process.Wait()
	p.startService(strings.TrimPrefix(p.base, "http://"))
	p.waitText("#bar.calm", "No fault")
	p.waitText("#result", "The service answers again, and has been reset at ")
	p.waitWhole("#listed", "No pets yet.")
}

// The rest of this file has the helpers of the tests.

// page is the page of one service, in a browser that W3C WebDriver controls.
// Each of its wait methods waits for 30 seconds at most, and then ends the test
// with what it got and what it wanted.
type page struct {
	t       *testing.T
	session string // the URL of the session in the browser
	program string // the file of the service
	base    string // the URL of the service
	process *os.Process
}

// spy runs before the script of the page. It provides short names for the
// expressions in this file and notes when the page polls and changes. The page
// polls often, is patient with a busy machine, and never sees a pause of five
// seconds end: timers[5000] ends it. The function instead can answer a request
// in place of the service.
const spy = `
	window.instead = null;
	window.polls = [];
	window.changes = 0;
	window.isPatient = true;
	window.slowPolls = 0;
	window.timers = {};

	if (navigator.clipboard) { // not in an empty tab
		navigator.clipboard.writeText = async (text) => { window.copied = text; };
	}

	window.realFetch = window.fetch;
	window.fetch = async (path, init) => {
		if (path === "/__admin/requests") {
			polls.push(Date.now());
		}
		return await instead?.(path, init) || realFetch(path, init);
	};

	const realSetTimeout = window.setTimeout;
	window.setTimeout = (action, pause, ...args) => {
		if (pause === 5000) {
			timers[pause] = action;
			return 0;
		}
		if (pause === 10_000) {
			slowPolls++;
		}
		const pauses = {1000: 40, 10_000: 40, 1800: isPatient ? 60_000 : 1800};
		return realSetTimeout(action, pauses[pause] ?? pause, ...args);
	};

	new MutationObserver((records) => { changes += records.length; }).observe(document,
		{subtree: true, childList: true, attributes: true, characterData: true});

	window.$ = (selector) => document.querySelector(selector);
	window.$$ = (selector) => [...document.querySelectorAll(selector)];
	window.box = (element) => element.getBoundingClientRect();
	window.shown = (element) =>
		element?.checkVisibility() ? element.innerText.replace(/\s+/g, " ").trim() : "";
	window.shownRows = () => $$("#list li").filter((row) => row.checkVisibility()).map((row) =>
		[...row.querySelectorAll(".method, .status, .url, .tag, .reason")]
			.map((part) => part.textContent).join(" "));
	window.until = (isTrue) => new Promise((resolve) => {
		const end = Date.now() + 30_000;
		(function look() {
			if (isTrue() || Date.now() > end) {
				resolve(Boolean(isTrue()));
			} else {
				requestAnimationFrame(look);
			}
		})();
	});`

// waitText waits until an element shows a text that contains want.
func (p *page) waitText(selector, want string) {
	p.t.Helper()
	if !p.until("shown($(arguments[0])).includes(arguments[1])", selector, want) {
		got := p.evalString("return shown($(arguments[0]))", selector)
		p.t.Fatalf("%s: got %q, want %q, in\n%s", selector, got, want, p.text())
	}
}

// waitWhole waits until the text of an element is want, and nothing else.
func (p *page) waitWhole(selector, want string) {
	p.t.Helper()
	if !p.until("shown($(arguments[0])) === arguments[1]", selector, want) {
		got := p.evalString("return shown($(arguments[0]))", selector)
		p.t.Fatalf("%s: got %q, want exactly %q, in\n%s", selector, got, want, p.text())
	}
}

// waitHidden waits until an element is there that shows no text.
func (p *page) waitHidden(selector string) {
	p.t.Helper()
	if !p.until("$(arguments[0]) && !shown($(arguments[0]))", selector) {
		got := p.eval("return $(arguments[0]) && shown($(arguments[0]))", selector)
		p.t.Fatalf("%s: got %#v, want an element that shows nothing", selector, got)
	}
}

// waitCount waits until a selector matches n elements, shown or not.
func (p *page) waitCount(selector string, n int) {
	p.t.Helper()
	if !p.until("$$(arguments[0]).length === arguments[1]", selector, n) {
		got := p.eval("return $$(arguments[0]).map(({outerHTML}) => outerHTML)", selector)
		p.t.Fatalf("%s: got the elements %.1000q, want %d", selector, got, n)
	}
}

// waitRows waits until the list shows these rows, given as they begin: method,
// status, URL, tags and reason.
func (p *page) waitRows(want ...string) {
	p.t.Helper()
	const isShown = `(() => {
		const rows = shownRows();
		const want = arguments[0];
		return rows.length === want.length && rows.every((row, i) => row.startsWith(want[i]));
	})()`
	if p.until(isShown, append([]string{}, want...)) {
		return
	}
	var got []string
	p.evalInto(&got, "return shownRows()")
	for i := range min(len(got), len(want)) {
		if !strings.HasPrefix(got[i], want[i]) {
			p.t.Errorf("row %d: got %q, want it to begin with %q", i+1, got[i], want[i])
		}
	}
	p.t.Fatalf("got %d rows, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
}

// waitTrue waits until an expression is true in the page.
func (p *page) waitTrue(expression string, args ...any) {
	p.t.Helper()
	if !p.until(expression, args...) {
		p.t.Fatalf("got false, want true: %s %q in\n%s", expression, args, p.text())
	}
}

// waitValue waits until an expression has a value in the page, which is a
// string or a number.
func (p *page) waitValue(expression string, want any) {
	p.t.Helper()
	if !p.until("("+expression+") === arguments[0]", want) {
		p.t.Fatalf("%s: got %#v, want %#v, in\n%s", expression, p.eval("return "+expression), want, p.text())
	}
}

// waitAtMost waits until one number in the page is at most another one.
func (p *page) waitAtMost(expression, limit string) {
	p.t.Helper()
	if !p.until("(" + expression + ") <= (" + limit + ")") {
		p.t.Fatalf("%s: got %v, want at most %s, which is %v, in\n%s",
			expression, p.eval("return "+expression), limit, p.eval("return "+limit), p.text())
	}
}

// waitFocus waits until an element that a selector matches has the focus.
func (p *page) waitFocus(selector string) {
	p.t.Helper()
	if !p.until("document.activeElement.matches(arguments[0])", selector) {
		got := p.evalString("return document.activeElement.outerHTML")
		p.t.Fatalf("got the focus on %.300s, want it on %s", got, selector)
	}
}

// until waits until an expression is true in the page, and reports whether it
// became true.
func (p *page) until(expression string, args ...any) bool {
	p.t.Helper()
	return p.eval("return until(() => "+expression+")", args...) == true
}

// sync waits until the page shows what the service has now: until it has polled
// from beginning to end.
func (p *page) sync() {
	p.t.Helper()
	before := p.eval("return polls.length")
	// The second poll begins when the first has ended.
	p.waitTrue("polls.length >= arguments[0] + 2", before)
}

// click clicks on the first visible button or row that contains a text, once
// there is one.
func (p *page) click(text string) {
	p.t.Helper()
	const find = `window.found = $$("button, summary")
		.find((element) => shown(element).includes(arguments[0]))`
	if !p.until(find, text) {
		p.t.Fatalf("got no button %q, want one, in\n%s", text, p.text())
	}
	p.eval("found.scrollIntoView({block: 'center'})")
	p.command("/element/"+p.elementID("found")+"/click", json.RawMessage("{}"), nil)
	p.moveMouse("h1") // or it would hold the list
}

// fill puts text into the field that has a label, or selects an option.
func (p *page) fill(label, text string) {
	p.t.Helper()
	const find = `window.found = $$("label")
		.find((label) => label.textContent.trim().startsWith(arguments[0]))?.control`
	if p.eval("return Boolean("+find+")", label) != true {
		p.t.Fatalf("got no field %q, want one, in\n%s", label, p.text())
	}
	p.eval(`
		const [field, text] = [found, arguments[0]];
		const option = [...field.options ?? []].find((one) => one.text === text);
		field.value = option?.value ?? text;
		field.dispatchEvent(new Event("input", {bubbles: true}));
		field.dispatchEvent(new Event("change", {bubbles: true}));`, text)
}

// typeKeys types on the keyboard.
func (p *page) typeKeys(keys string) {
	p.t.Helper()
	var actions []map[string]string
	for _, key := range keys {
		actions = append(actions, map[string]string{"type": "keyDown", "value": string(key)})
	}
	for _, key := range keys {
		actions = append(actions, map[string]string{"type": "keyUp", "value": string(key)})
	}
	p.command("/actions", map[string]any{
		"actions": []map[string]any{{"type": "key", "id": "keyboard", "actions": actions}},
	}, nil)
}

// moveMouse moves the mouse to the middle of an element.
func (p *page) moveMouse(selector string) {
	p.t.Helper()
	const middle = `
		const {x, y, width, height} = box($(arguments[0]));
		return {type: "mouseMoved", x: x + width / 2, y: y + height / 2};`
	p.devtools("Input.dispatchMouseEvent", p.eval(middle, selector), nil)
}

// copyLines copies the lines of the first n requests, in the order in which they
// were sent.
func (p *page) copyLines(n int) []string {
	p.t.Helper()
	p.waitValue("shownRows().length", n)
	var lines []string
	for row := n - 1; row >= 0; row-- { // the newest is first
		lines = append(lines, p.evalString(`
			const row = list.children[arguments[0]];
			window.copied = null;
			row.querySelector("summary").click();
			row.querySelector(".content button").click();
			return until(() => copied).then(() => {
				row.querySelector("summary").click();
				return copied;
			});`, row))
	}
	return lines
}

// get asks the service for JSON, as an observer, and decodes it into the variable
// that result points to.
func (p *page) get(path string, result any) {
	p.t.Helper()
	req, err := http.NewRequest("GET", p.base+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Petstore-Observer", "test")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(result); err != nil || resp.StatusCode != 200 {
		p.t.Fatalf("GET %s: got %s and %v, want JSON", path, resp.Status, err)
	}
}

// send sends a request as another client, such as "GET /v1/pets", and waits for
// the answer, if there is one. It sends the target and the headers as they are.
func (p *page) send(request, body string, headers ...string) {
	p.t.Helper()
	if err := p.trySend(request, body, headers...); err != nil {
		p.t.Error(err)
	}
}

// trySend is like send, but returns an error, so that any goroutine may call it.
func (p *page) trySend(request, body string, headers ...string) error {
	method, target, _ := strings.Cut(request, " ")
	req, err := http.NewRequest(method, p.base, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.URL.Opaque = target
	req.Header.Set("Authorization", "Bearer "+key)
	for _, header := range headers {
		if name, value, ok := strings.Cut(header, ": "); ok {
			req.Header[name] = []string{value}
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return nil // a fault has closed the connection
	}
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// shell runs a line in a shell, in an empty directory. It returns the names of
// the files that the line wrote, and what the line printed. Whether it succeeds
// is not checked: curl fails if its request is answered by a closed connection.
func (p *page) shell(name, line string) (files []string, output string) {
	p.t.Helper()
	cmd := exec.Command(name, "-c", line)
	cmd.Dir = p.t.TempDir()
	printed, _ := cmd.CombinedOutput()
	entries, err := os.ReadDir(cmd.Dir)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, entry := range entries {
		files = append(files, entry.Name())
	}
	return files, string(printed)
}

// fillPage fills the page as in the middle of a presentation: with pets, a fault
// that is applied, and requests, one of which is open.
func (p *page) fillPage() {
	p.t.Helper()
	const (
		client   = "User-Agent: shop/2.1"
		jsonBody = "Content-Type: application/json"
	)
	p.click("Create pets")
	p.click("Add 25 samples")
	p.waitText("#result", "Added 25 pets")
	p.click("Create pets") // and fold the form
	p.send("GET /pets", "", client)
	p.send("GET /v1/pets", "", client)
	p.send("GET /v1/pets?stauts=sold", "", client)
	p.send("POST /v1/pets", `{"name":"Ida","categoryId":"7"}`, jsonBody, client)
	p.send("POST /v1/pets", `{"name":"Ida","categoryId":7}`, jsonBody, client)
	p.fill("Operation", "createPet")
	p.click("503 every time")
	p.waitText("#bar.active", "Fault on createPet: 503 every time")
	p.send("POST /v1/pets", `{"name":"Rex","categoryId":1}`, jsonBody, client)
	p.send("GET /v1/pets/1", "", client)
	p.send("POST /v1/pets", `{"name":"Rex","categoryId":1}`, jsonBody, client)
	p.waitWhole("#count", "2 of 2 requests hit")
	p.waitValue("shownRows().length", 8)
	p.click("POST 400")
	p.waitText("#list [open]", "categoryId is")
	p.eval("document.activeElement.blur()")
	p.finishAnimations()
}

// finishAnimations ends the flash of new rows.
func (p *page) finishAnimations() {
	p.t.Helper()
	p.eval("document.getAnimations().forEach((animation) => animation.finish())")
	p.waitCount(".fresh", 0)
}

// takePicture writes what the window shows to a PNG file.
func (p *page) takePicture(file string) {
	p.t.Helper()
	var shot struct{ Data []byte }
	p.devtools("Page.captureScreenshot", "{}", &shot)
	if err := os.WriteFile(file, shot.Data, 0o666); err != nil {
		p.t.Fatal(err)
	}
}

// checkAccessibility checks the page as it is now with axe-core.
func (p *page) checkAccessibility(state string) {
	p.t.Helper()
	file := os.Getenv("PETSTORE_AXE")
	if file == "" {
		return
	}
	axe, err := os.ReadFile(file)
	if err != nil {
		p.t.Fatal(err)
	}
	p.finishAnimations()
	const run = `;
		return axe.run().then(({violations}) => violations.map(({id, nodes}) =>
			id + ": " + nodes.map(({html}) => html).join(" ")).join("\n"));`
	if got := p.evalString(string(axe) + run); got != "" {
		p.t.Errorf("%s: axe-core finds\n%s", state, got)
	}
}

// checkOrigins checks that the page has loaded nothing from other hosts.
func (p *page) checkOrigins() {
	p.t.Helper()
	const others = `return performance.getEntriesByType("resource").map(({name}) => name)
		.filter((name) => !name.startsWith(location.origin + "/") && !name.startsWith("data:")).join(" ")`
	if got := p.evalString(others); got != "" {
		p.t.Errorf("the page has loaded %s, want nothing from elsewhere", got)
	}
}

// checkConsole checks that the console of the browser has nothing but failed
// requests, such as a 401.
func (p *page) checkConsole() {
	p.t.Helper()
	var entries []struct{ Source, Message string }
	p.command("/se/log", map[string]string{"type": "browser"}, &entries)
	for _, entry := range entries {
		if entry.Source != "network" {
			p.t.Errorf("the console says %s, want nothing", entry.Message)
		}
	}
}

// open opens the page anew, at a path or fragment. The tab has forgotten the key
// and the mouse is away.
func (p *page) open(path string) {
	p.t.Helper()
	p.eval("try { sessionStorage.clear(); } catch {}") // it fails in an empty tab
	p.command("/url", map[string]string{"url": "about:blank"}, nil)
	p.command("/url", map[string]string{"url": p.base + path}, nil)
	p.devtools("Input.dispatchMouseEvent", `{"type": "mouseMoved", "x": 1, "y": 1}`, nil)
}

// resize sets the size of the window in pixels and features of the medium, such
// as "forced-colors: active".
func (p *page) resize(width, height int, media ...string) {
	p.t.Helper()
	features := []map[string]string{}
	for _, feature := range append([]string{"prefers-color-scheme: light"}, media...) {
		name, value, _ := strings.Cut(feature, ": ")
		features = append(features, map[string]string{"name": name, "value": value})
	}
	slices.Reverse(features) // the first feature of a name counts
	metrics := map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}
	p.devtools("Emulation.setDeviceMetricsOverride", metrics, nil)
	p.devtools("Emulation.setEmulatedMedia", map[string]any{"features": features}, nil)
}

// eval runs a script in the page and returns what it or its promise returns.
func (p *page) eval(script string, args ...any) any {
	p.t.Helper()
	var result any
	p.evalInto(&result, script, args...)
	return result
}

// evalString runs a script that returns a string.
func (p *page) evalString(script string, args ...any) string {
	p.t.Helper()
	var result string
	p.evalInto(&result, script, args...)
	return result
}

// evalInto runs a script in the page, and decodes what it or its promise returns
// into the variable that result points to.
func (p *page) evalInto(result any, script string, args ...any) {
	p.t.Helper()
	params := map[string]any{"script": script, "args": append([]any{}, args...)}
	p.command("/execute/sync", params, result)
}

// text returns what the page shows, to be part of a failure.
func (p *page) text() string {
	p.t.Helper()
	return fmt.Sprintf("%.1500s", p.eval("return document.body.innerText"))
}

// elementID returns the id that WebDriver has for an element.
func (p *page) elementID(expression string) string {
	p.t.Helper()
	var element map[string]string
	p.evalInto(&element, "return "+expression)
	for _, id := range element {
		return id
	}
	p.t.Fatalf("got no element, want one: %s", expression)
	return ""
}

// devtools sends a command of the Chrome DevTools Protocol to the browser, and
// decodes its result as command does. The parameters are JSON or will be encoded
// as JSON.
func (p *page) devtools(command string, params, result any) {
	p.t.Helper()
	if text, ok := params.(string); ok {
		params = json.RawMessage(text)
	}
	p.command("/goog/cdp/execute", map[string]any{"cmd": command, "params": params}, result)
}

// command sends a WebDriver command to the browser, and decodes the value of its
// answer into the variable that result points to, unless result is nil.
func (p *page) command(path string, params, result any) {
	p.t.Helper()
	body, err := json.Marshal(params)
	if err != nil {
		p.t.Fatal(err)
	}
	resp, err := http.Post(p.session+path, "application/json", strings.NewReader(string(body)))
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct{ Value json.RawMessage }
	err = json.NewDecoder(resp.Body).Decode(&answer)
	if err == nil && resp.StatusCode == 200 && result != nil {
		err = json.Unmarshal(answer.Value, result)
	}
	if err != nil || resp.StatusCode != 200 {
		p.t.Fatalf("%s %.300s: %s, %v, %.300s", path, body, resp.Status, err, answer.Value)
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
		if base == "" {
			driver.Process.Kill()
		} else if resp, err := http.Get(base + "/shutdown"); err == nil {
			resp.Body.Close()
		}
		io.Copy(io.Discard, stdout)
		driver.Wait()
	})
	lines := bufio.NewScanner(stdout)
	for base == "" && lines.Scan() {
		if _, port, ok := strings.Cut(lines.Text(), "started successfully on port "); ok {
			base = "http://127.0.0.1:" + strings.TrimSuffix(port, ".")
		}
	}
	if base == "" {
		t.Fatal("chromedriver ended before it was ready")
	}

	p := &page{t: t, session: base + "/session"}
	var session struct {
		SessionID    string
		Capabilities struct{ BrowserVersion string }
	}
	p.command("", json.RawMessage(`{
		"capabilities": {
			"alwaysMatch": {
				"goog:loggingPrefs": {"browser": "ALL"},
				"timeouts": {"script": 60000},
				"goog:chromeOptions": {
					"args": [
						"--headless",
						"--no-sandbox",
						"--disable-gpu",
						"--disable-lcd-text",
						"--hide-scrollbars",
						"--disable-background-networking"
					]
				}
			}
		}
	}`), &session)
	p.session += "/" + session.SessionID
	version := session.Capabilities.BrowserVersion
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err == nil && n < 137 {
		t.Skipf("the page cannot be tested: Chromium %s is older than 137", version)
	}
	p.devtools("Page.addScriptToEvaluateOnNewDocument", map[string]string{"source": spy}, nil)
	p.devtools("Emulation.setFocusEmulationEnabled", `{"enabled": true}`, nil)
	return p.session
}

// buildService builds the service and returns the file of the program. It reads
// the files that the program is made of, as go test runs a test again only if a
// file has changed that the test itself has read.
func buildService(t *testing.T) string {
	t.Helper()
	const format = `{{join .GoFiles " "}} {{join .EmbedFiles " "}} go.mod`
	list, err := exec.Command("go", "list", "-f", format, "..").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range strings.Fields(string(list)) {
		if _, err := os.ReadFile("../" + file); err != nil {
			t.Fatal(err)
		}
	}
	program := t.TempDir() + "/petstore"
	if out, err := exec.Command("go", "build", "-o", program, "..").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// startService starts the service at an address, with an empty store.
func (p *page) startService(addr string) {
	p.t.Helper()
	cmd := exec.Command(p.program, "-addr", addr, "-stdin") // so it cannot outlive the test
	cmd.Env = append(os.Environ(), "PETSTORE_API_KEY="+key)
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		stdin.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		p.t.Fatalf("the service did not start: %v", err)
	}
	p.process = cmd.Process
	p.base = strings.TrimSuffix(line, "/v1\n")
}

// signal sends a signal to the service, such as "STOP".
func (p *page) signal(name string) {
	p.t.Helper()
	out, err := exec.Command("kill", "-"+name, fmt.Sprint(p.process.Pid)).CombinedOutput()
	if err != nil {
		p.t.Fatalf("%v\n%s", err, out)
	}
}
