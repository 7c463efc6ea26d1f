// Package api has the test of the page in a browser, and nothing else.
package api

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestPage does what people do on the page. PETSTORE_AXE names axe.min.js, of axe-core, to check it for
// accessibility, and PETSTORE_PICTURE a file to write the picture of the README to.
func TestPage(t *testing.T) {
	t.Parallel()
	browser, program := startBrowser(t), build(t)
	for does, what := range map[string]func(d *desk){"enter": enter, "present": present, "aim": aim,
		"keep pets": keepPets, "debug": debug, "filter": filter, "hold": hold, "repeat": repeat,
		"copy safely": copySafely, "use the keyboard": useKeyboard, "use all sizes": useSizes, "meet outages": meetOutages} {
		t.Run(does, func(t *testing.T) {
			d := &desk{T: t, browser: browser, program: program}
			d.serve("127.0.0.1:0").window(1200, 900, "light").open("/#key=" + key)
			what(d.see("#held", "Live").see("#listed", "There are no pets yet."))
			d.until("performance.getEntriesByType('resource').every(({name}) => name.startsWith(origin))")
			log := fmt.Sprint(d.command("/se/log", map[string]string{"type": "browser"}))
			if strings.Count(log, " source:") != strings.Count(log, " source:network") { // as of a 401
				t.Errorf("console: %s", log)
			}
		})
	}
}

const key, pet = "a-key-of-the-test", `{"name":"Rex","categoryId":7}`
const html = `<img src=x onerror='document.title=0'>` // which is text, and never HTML

func enter(d *desk) {
	d.see("header", "Petstore An animal store to test API clients against, at "+d.base+"/v1.").gone("#door")
	d.see("#bar.calm #headline", "No fault").see("#count", "0 requests").see("#first", "1. Run this in")
	d.until("location.href === arguments[0] && document.title === 'Petstore'", d.base+"/")
	exec.Command("sh", "-c", d.run(`return $("#command pre").textContent`).(string)).Run() // it can be pasted
	d.rows("GET 200 /v1/pets").gone("#first").open("/").see("#bar.unknown #headline", "A key is needed")
	d.gone("#desk").gone("#end").gone("#said").until("document.activeElement === typed")
	d.open("/#key=x").see("#doorForm #why", "The service refuses this key.").see("#said.bad", "refuses")
	d.fill("API key", "  "+key+" ").press("Use this key").see("#held", "Live").gone("#door").gone("#why")
	d.run("location.reload()") // the tab remembers the key
	d.see("#held", "Live")
}

// Each press sets a fault, and is told. The bar tells its states apart, and moves no button.
func present(d *desk) {
	for _, width := range []int{1440, 390} {
		d.window(width, 900, "light")
		const places = `$$("#presets button, #renew").map(one =>
			Math.round(box(one).top + scrollY + controls.scrollTop)).join()`
		before := d.run("colours = new Set; return " + places)
		look := func(state, headline string) {
			d.see("#bar."+state+" #headline", headline).until(places+" === arguments[0]", before)
			d.run("colours.add(getComputedStyle(bar).backgroundColor)")
		}
		look("calm", "No fault")
		for _, c := range [][2]string{{"All fail", "503"}, {"Slow by 3 s", "delay=3"}, {"Hang up", "hangup"},
			{"Answers lost", "lost"}, {"Answers cut", "truncate"}, {"Answers stall", "stall"},
			{"A page of HTML", "html"}, {"Next request fails", "503"}} {
			d.press(c[0]).see("#spoken", "Fault: "+c[1]+". Set for all").see("[aria-current=true]", c[0])
			d.see("#detail", "met: 0, struck: 0").until("document.title.startsWith(headline.textContent)")
			look("strikes", "Fault: "+c[1])
		}
		d.send("GET /v1/pets", "").see("#detail", "met: 1, struck: 1. Clients get true answers again.")
		look("used", "Used up: 503")
		d.press("End the fault").see("#spoken", "No fault. Ended at ").until("colours.size === 3")
	}
}

func aim(d *desk) { // the third createPet fails, once
	d.fill("Operation", "createPet").fill("Skip first", "2").fill("Delay", "1").press("Next request fails")
	d.see("#detail", "Requests met: 0, struck: 0, to come: 1. With operation=createPet, skip=2, times=1.")
	d.send("GET /v1/pets", "").send("POST /v1/pets", pet).send("POST /v1/pets", pet)
	d.send("POST /v1/pets", pet).send("POST /v1/pets", pet)
	d.rows("POST 201", "POST 503 /v1/pets code=503 this error is", "POST 201", "POST 201", "GET 200")
	d.see("#list li.struck.fresh:nth-child(2)", "503").see("#bar.used #detail", "Requests met: 4, struck: 1.")
	d.fill("Delay", "").press("Another fault").press("Set for all").see("#why", "Give a code or a delay.")
	d.fill("Skip first", "").fill("Delay", "-1").press("Set for all").see("#spoken", "delay is -1")
	d.see("[name=delay]:focus + #why", "delay is -1").gone("#why + small").fill("Delay", " 0.01").gone("#why")
	d.fill("Answer delay", "0.02").fill("Retry-After", "0").fill("Times", "2")
	d.fill("Code", "500").press("Set for all clients").see("#headline", "Fault: 500").see("#detail",
		"to come: 2. With delay=0.01, answer-delay=0.02, retry-after=0, operation=createPet, times=2.")
	d.press("Reset all").see("#spoken", "No fault. Reset at ").rows().until("!$('[name=code]').value")
}

func keepPets(d *desk) {
	d.press("Add 25 samples").see("#spoken", "Added 25 pets at ").see("#listed", "20 pets, more follow.")
	d.see("#rows", "1 Rex 1 available 2 Bella 2").press("Show more").see("#spoken", "25 pets, no more.")
	d.fill("Name", "Ida").press("Add").see("#spoken", "No fault. Added as /v1/pets/26 at ").gone("#further")
	d.see("#rows", "26 Ida 1 none").until(`$("[name=name]:focus")?.value === ""`)
	d.send("POST /v1/pets", pet).see("#rows", "27 Rex 7 none").see("#listed", "27 pets, no more.")
	d.fill("Category id", "seven").press("Add").see("[name=categoryId]:focus + #why", "categoryId is ")
	d.fill("Show", "sold").see("#spoken", "No fault. 4 pets, no more.")
	d.send("POST /__admin/reset", "").see("#listed", "No pet is sold.").gone("#table").fill("Show", "all")
	d.send("POST /v1/pets", `{"name":"`+html+`","categoryId":9007199254740993}`)
	d.see("#rows", "1 "+html+" 9007199254740993 none").gone("td *")
	d.run(`instead = path => path.startsWith("/v1") && new Response('{"message":"Oh"}', {status: 401})`)
	d.send("POST /v1/pets", pet).see("#listed.bad", "They cannot be listed: Oh").gone("#door")
}

func debug(d *desk) {
	d.send("POST /v1/pets?x=%20y", `{"name":`+html, "X-Name: "+html)
	d.send("GET /v1/pets?limit=<b>x</b>"+strings.Repeat("x", 300), "")
	d.send("POST /v1/pets", "a body without the key", "Authorization: Bearer none")
	for _, code := range []string{"hangup", "lost", "truncate", "stall", "html"} {
		d.send("POST /v1/pets", pet, "Prefer: code="+code)
	}
	d.rows("POST 502 /v1/pets code=html", "POST 201, stalled /v1/pets code=stall",
		"POST 201, cut /v1/pets code=truncate", "POST no answer /v1/pets code=lost",
		"POST no answer /v1/pets code=hangup", "POST 401 /v1/pets this is not the API key",
		"GET 400 /v1/pets?limit=<b>x</b>"+strings.Repeat("x", 177)+"… limit is", "POST 400 /v1/pets?x=%20y")
	for row, seen := range map[string]string{"code=hangup": "Answer There was none. Body " + pet,
		"code=lost":  `Answer, which the client did not get {"id":1,"name":"Rex","categoryId":7}`,
		"code=stall": `Answer {"id":3,"name":"Rex","categoryId":7}`, "code=html": "Answer <html>",
		"POST 401": "Body It was not kept. Headers", "POST 400": `Body {"name":` + html} {
		d.press(row).see("#list [open] .content", seen).press(row).gone("#list [open]")
	}
	d.until(`!$("#list img, .url *, pre *") && document.title !== "0"`)
}

func filter(d *desk) {
	d.send("POST /v1/pets?x=1", `{"body":0,`+pet[1:], "User-Agent: shop/2.1").send("GET /v1/pets", "")
	d.send("GET /v1/pets/7", "").see("#count", "3 requests, newest first").gone("#hits")
	for text, n := range map[string]int{"pets GET": 2, "-404 -post": 1, "?y": 0, "SHOP body": 1, `"id":`: 2} {
		d.fill("Filter", "").gone("#hits").fill("Filter", text)
		d.see("#hits[role=status]", []string{"Nothing matches", "1 hit", "2 hits"}[n])
		d.until("[...list.children].filter(row => row.checkVisibility()).length === arguments[0]", n)
	}
	d.fill("Filter", "404").send("GET /v1/pets/8", "").rows("GET 404 /v1/pets/8 ", "GET 404 /v1/pets/7 ")
	d.see("#count", "in 4 requests").press("Forget all").see("#said", "Forgotten at ").rows()
}

func hold(d *desk) { // the list holds still while it is read, and tells what is new. One press shows that
	d.send("GET /v1/pets/1", "").rows("GET 404").press("GET 404").see("#held.still", "Held: one is open")
	d.send("POST /v1/pets", pet).send("POST /v1/pets", pet).see("#newer", "2 new").rows("GET 404")
	d.press("2 new").rows("POST 201", "POST 201", "GET 404").see("#newer", "0 new").see("#held", "Held: one")
	d.press("Go on").see("#spoken", "The list goes on.").see("#held.live", "Live").gone("#list [open]")
	d.until("kept = list.firstChild").press("Pause").see("#held.still", "Paused")
	d.send("GET /v1/pets/2", "").see("#newer", "1 new").until("list.firstChild === kept")
	d.press("Go on").until("list.children[1] === kept").press("pets/2").press("pets/2")
	d.see("#held.still", "Held: pointer").press("Pause").press("Go on").see("#held.live", "Live")
}

func repeat(d *desk) { // what is repeated in a shell is as it was sent
	const journal = `return fetch("/__admin/requests", {headers: {Authorization: arguments[0]}}).then(got =>
		got.json()).then(({requests}) => requests.map(({method, url, body, status, fault, headers: h}) =>
		[method, url, body, status, fault, h["Content-Type"], h.Authorization, h.Prefer].join(" | ")))`
	d.run("navigator.clipboard.writeText = async text => { copied = text }")
	for _, c := range []struct{ request, body, header string }{
		{"POST /v1/pets", `{"name":"it's <b> \"$KEY\"","categoryId":7}`, "Content-Type: application/json"},
		{"GET /v1/pets?status={a}[1-2]", "", "Prefer: code=418, wait=1"},
		{"HEAD /v1/pets/../pets", "", "Authorization: Bearer <API_KEY>"},             // not the real key
		{"PATCH /v1/pets", "@no\x1b[31m 'file'\u202e\n", "Content-Type: text/plain"}, // spelt as \x1b
		{"POST http://a.example.test/v1/pets", pet, "X-Id: 1"},
	} {
		d.press("Forget all").rows().send(c.request, c.body, c.header).press("/pets").run("copied = ''")
		line := d.press("Copy").until("copied").see("#list .row", "Copied at ").run("return copied").(string)
		exec.Command("bash", "-c", line).Run()
		got := d.run(journal, "Bearer "+key).([]any) // once sent by the client, and once repeated
		isSame := len(got) == 2 && got[1] == strings.Replace(got[0].(string), "http://a.example.test", "", 1)
		if !isSame || strings.ContainsAny(line, "\x1b\u202e") {
			d.Errorf("$ %s\n%s", line, got)
		}
	}
}

// copySafely copies lines of requests that were made to harm whoever pastes them. A line goes to this service and to no
// other host, has the key only for a path under /v1, and runs nothing, in any of the shells.
func copySafely(d *desk) {
	d.run("navigator.clipboard.writeText = async text => { copied = text }")
	for _, c := range []struct {
		request, body, header, target string
		hasKey                        bool
	}{
		{"GET a:@evil.test/steal", "", "Authorization: Bearer <API_KEY>", "/a:@evil.test/steal", false},
		{"CONNECT @evil.test:80", "", "Authorization: Bearer <API_KEY>", "/@evil.test:80", false},
		{"GET //a@evil.test/steal", "", "Authorization: Bearer <API_KEY>", "/steal", false},
		{"GET http://a:b@evil.test?steal", "", "Authorization: Bearer <API_KEY>", "/?steal", false},
		{"GET http://a@evil.test/v1/pets", "", "X-Id: 1", "/v1/pets", true},
		{"GET /v1x/pets", "", "Authorization: Bearer <API_KEY>", "/v1x/pets", false},
		{"GET /v1/pets", "", "Authorization: Bearer <API_KEY>", "/v1/pets", false}, // answered 401
		{"-oPWN /v1/';touch${IFS}PWN;'", "", "X-Id: 1", "/v1/';touch${IFS}PWN;'", true},
		{"POST /v1/pets", "\r';touch PWN;#", "X-Id: 1", "/v1/pets", true},
		{"POST /v1/pets", "';touch PWN;#", "X-Id: 1", "/v1/pets", true},
		{"POST /v1/pets", "\\';touch PWN;#", "X-Id: 1", "/v1/pets", true},
		{"POST /v1/pets", "\r\\';touch PWN;#", "X-Id: 1", "/v1/pets", true},
		{"POST /v1/pets", "@/etc/passwd\n`touch PWN`\n$(touch PWN)\n", "X-Id: 1", "/v1/pets", true},
		{"GET /v1/pets", "", "X-Id: @/etc/passwd';touch PWN;#\u202e", "/v1/pets", true},
		{"GET /v1/pets", "", "X'Id: ;touch PWN;#", "/v1/pets", true},
	} {
		d.send("DELETE /__admin/requests", "").rows().send(c.request, c.body, c.header)
		d.see("#list li", "").press(strings.Fields(c.request)[0]).run("copied = ''")
		line := d.press("Copy").until("copied").run("return copied").(string)
		d.press("Go on")
		if to := "'" + d.base + strings.ReplaceAll(c.target, "'", `'\''`) + "'"; !strings.HasSuffix(line, " "+to) {
			d.Errorf("%s is repeated by\n%s\nwant it to end with %s", c.request, line, to)
		}
		if hasKey := strings.Contains(line, key); hasKey != c.hasKey {
			d.Errorf("%s is repeated by\n%s\nwith the key: %t, want %t", c.request, line, hasKey, c.hasKey)
		}
		for _, shell := range []string{"sh", "dash", "bash", "zsh"} {
			cmd := exec.Command(shell, "-c", line)
			cmd.Dir = d.TempDir()
			out, _ := cmd.CombinedOutput() // not every shell is installed
			if files, _ := os.ReadDir(cmd.Dir); len(files) > 0 {
				d.Errorf("$ %s\n%s\nin %s it wrote %v", line, out, shell, files)
			}
		}
	}
}

func useKeyboard(d *desk) {
	const forth, back, enterKey = "\ue004", "\ue008\ue004", "\ue007" // Tab, Shift with Tab, and Enter
	typeIn := func(keys string) { d.element("document.activeElement", "value", `{"text": "`+keys+`"}`) }
	do := func(way, to, keys, selector, seen string) {
		for n := 0; n < 80 && d.run("return document.activeElement.matches(arguments[0])", to) != true; n++ {
			typeIn(way)
		}
		d.until("document.activeElement.matches(arguments[0])", to)
		typeIn(keys)
		d.see(selector, seen)
	}
	d.open("/").send("GET /v1/pets/1", "")
	do(forth, "#typed", key+enterKey, "#held", "Live")
	do(back, "#skip", enterKey, "#requests:focus", "Requests")
	do(forth, "#filter", "404", "#hits", "1 hit")
	do(forth, "#list summary", enterKey, "#list [open]", "there is no pet 1")
	do(back, "#list summary", enterKey, "#held", "Held: focus")
	do(back, "[value='code=hangup']", enterKey, "#headline", "Fault: hangup")
	do(back, "#end", enterKey, "#headline", "No fault")
	do(forth, "#other summary", enterKey, "#other", "Retry-After")
	do(forth, "[name=delay]", "0"+enterKey, "#headline", "Fault: delay=0")
	do(forth, "[name=name]", "Ida"+enterKey, "#rows", "1 Ida 1 none")
	for _, width := range []int{1200, 390} { // the focus is always in sight, and leaves the page at the end
		d.window(width, 700, "light").run("scrollTo(0, 0); skip.focus()")
		for n := 0; n < 10 || n < 80 && d.run("return !$(':focus')") != true; n++ {
			d.until(`(({x, y, width, height}) => document.activeElement.contains(
				document.elementFromPoint(x + width / 2, y + height / 2)))(box(document.activeElement))`)
			typeIn(forth)
		}
		d.until("!$(':focus')")
	}
}

// The page never scrolls sideways, has two columns from 50rem on, and ends where a large window does.
func useSizes(d *desk) {
	axe, _ := os.ReadFile(os.Getenv("PETSTORE_AXE"))
	const check = `; document.getAnimations().forEach(one => one.finish()); return window.axe?.run().then(
		({violations}) => violations.map(({id, nodes}) => id + nodes.map(({html}) => html)).join()) ?? ""`
	look := func(state string) {
		for i, width := range []int{1440, 900, 390, 390, 900, 1440} {
			d.window(width, 900, []string{"light", "dark"}[i/3]).until(`$("html").scrollWidth <= innerWidth`)
			d.until(`desk.hidden || (innerWidth < 800 ? box(controls).bottom < box(requests).top :
				box(controls).top === box(requests).top && box(requests).bottom <= innerHeight)`)
			if got := d.run(string(axe) + check); got != "" {
				d.Errorf("%s, %d, %d: %v", state, i, width, got)
			}
		}
	}
	const typed, client = "Content-Type: application/json", "User-Agent: shop/2.1"
	d.window(1440, 900, "light").press("Add 25 samples").see("#said", "Added").send("GET /pets", "", client)
	d.send("GET /v1/pets", "", client).send("POST /v1/pets", `{"name":"Ida","categoryId":"7"}`, typed, client)
	d.fill("Operation", "createPet").press("All fail").see("#bar.strikes", "")
	d.send("POST /v1/pets", pet, typed, client).send("POST /v1/pets", pet, typed, client)
	d.see("#list li:nth-child(5)", "").press("POST 400").see("#list [open]", "categoryId is")
	d.run("document.activeElement.blur(); document.getAnimations().forEach(one => one.finish())")
	if file := os.Getenv("PETSTORE_PICTURE"); file != "" {
		shot := d.devtools("Page.captureScreenshot", "{}").(map[string]any)["data"].(string)
		picture, _ := base64.StdEncoding.DecodeString(shot)
		os.WriteFile(file, picture, 0o666)
	}
	for i := range 40 {
		d.send(fmt.Sprint("GET /v1/pets/", i), "")
	}
	d.press("40 new").press("Another fault").fill("Filter", "pets").see("#hits", "45 hits")
	d.fill("Code", "777").press("Set for all clients").see("#why", "777")
	look("busy")
	d.open("/").see("#headline", "A key is needed")
	look("the door")
}

func meetOutages(d *desk) {
	signal := func(name string) { exec.Command("kill", name, fmt.Sprint(d.process.Pid)).Run() }
	d.press("Add 25 samples").see("#said", "Added").send("GET /v1/pets/1", "")
	d.press("GET 200").run("changes = 0; polls = []")
	d.until("polls.length > 4 && changes === 0") // nothing is painted anew
	const hide = `Object.defineProperty(document, "hidden", {value: arguments[0], configurable: true});
		document.dispatchEvent(new Event("visibilitychange"))`
	d.run(hide, true)
	d.until("Date.now() - polls.at(-1) > 1000") // it polls no more
	d.send("PUT /__admin/fault?code=503", "").see("#headline", "No fault").run(hide, false)
	d.see("#headline", "Fault: 503").run("patient = false")
	signal("-STOP")
	d.press("End the").until(`shown(said) === "Asking…" && !shown(spoken)`).see("#held.gone", "Not live")
	d.see("#bar.unknown", "No answer The service has not answered for two seconds.")
	signal("-CONT")
	d.send("DELETE /__admin/fault", "").see("#bar.calm #headline", "No fault").see("#list [open]", "GET")
	d.run(`instead = (path, init) => init.method === "DELETE" && Promise.reject(new TypeError("no network"))`)
	d.press("Forget all").see("#said.bad", "It is not known whether it was done.").run("instead = null")
	d.send("POST /__admin/reset", `[{"name":"Ida","categoryId":1}]`).see("#rows", "Ida")
	d.see("#list [open]", "").press("Reset all").see("#spoken", "No fault. Reset at ").gone("#table").rows()
	signal("-KILL")
	d.until("/^No answer/.test(document.title)").see("#bar.unknown", "No answer The service does not answer.")
	d.until(`[renew, add].every(one => one.ariaDisabled === "true")`).process.Wait()
	d.serve(strings.TrimPrefix(d.base, "http://")).see("#bar.calm", "No fault").see("#listed", "no pets yet.")
}

// build builds the program. It reads what that is made of: go test caches by what the test itself has read.
func build(t *testing.T) string {
	made, _ := exec.Command("go", "list", "-f", `{{.GoFiles}} {{.EmbedFiles}} go.mod`, "..").Output()
	for _, file := range strings.Fields(strings.NewReplacer("[", "", "]", "").Replace(string(made))) {
		os.ReadFile("../" + file)
	}
	program := t.TempDir() + "/petstore"
	if out, err := exec.Command("go", "build", "-o", program, "..").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// desk is the page of a service in a browser: a headless Chromium, driven by W3C WebDriver.
type desk struct {
	*testing.T
	browser, program, base string // the URL of the browser's session, the program, and the URL of the service
	process                *os.Process
}

func (d *desk) serve(addr string) *desk {
	cmd := exec.Command(d.program, "-addr", addr)
	cmd.Env = append(os.Environ(), "PETSTORE_API_KEY="+key)
	stdout, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	d.process, d.base = cmd.Process, strings.TrimSuffix(line, "/v1\n")
	return d
}

// spy runs before the page's script. It notes when the page polls, counts changes, lets tests answer instead
// of the service, and makes the page poll ten times a second, and be patient with a busy machine.
const spy = `
	Object.assign(window, {instead: null, polls: [], changes: 0, patient: true});
	const send = fetch, later = setTimeout, pauses = {1000: () => 100, 1800: () => patient ? 60_000 : 1800};
	window.fetch = async (path, init) => (path === "/__admin/requests" && polls.push(Date.now()),
		instead?.(path, init) || send(path, init));
	window.setTimeout = (act, pause, ...rest) => later(act, pauses[pause]?.() ?? pause, ...rest);
	new MutationObserver(all => { changes += all.length; }).observe(document,
		{subtree: true, childList: true, attributes: true, characterData: true});
	window.$ = selector => document.querySelector(selector);
	window.$$ = selector => [...document.querySelectorAll(selector)];
	window.box = element => element.getBoundingClientRect();
	window.shown = one => one?.checkVisibility() ? one.innerText.replace(/\s+/g, " ") : "";
	window.until = (isTrue, end = Date.now() + 30_000) => new Promise(done => { (function look() {
		isTrue() ? done(true) : Date.now() > end ? done(false) : requestAnimationFrame(look); })(); });`

// startBrowser returns the URL of a session. It skips the test where there is no ChromeDriver.
func startBrowser(t *testing.T) string {
	driver := exec.Command("chromedriver", "--port=0")
	stdout, _ := driver.StdoutPipe()
	if err := driver.Start(); err != nil {
		t.Skip(err)
	}
	in, port := bufio.NewScanner(stdout), ""
	for found := false; !found && in.Scan(); { // it ends if chromedriver does
		_, port, found = strings.Cut(strings.TrimSuffix(in.Text(), "."), "started successfully on port ")
	}
	base := "http://127.0.0.1:" + port
	t.Cleanup(func() { http.Get(base + "/shutdown"); io.Copy(io.Discard, stdout); driver.Wait() })
	d := &desk{T: t, browser: base + "/session"}
	wanted := json.RawMessage(`{"capabilities": {"alwaysMatch": {"goog:loggingPrefs": {"browser": "ALL"},
		"timeouts": {"script": 60000}, "goog:chromeOptions": {"args": ["--headless", "--no-sandbox",
		"--disable-gpu", "--disable-lcd-text", "--hide-scrollbars", "--disable-background-networking"]}}}}`)
	d.browser += "/" + d.command("", wanted).(map[string]any)["sessionId"].(string)
	d.devtools("Page.addScriptToEvaluateOnNewDocument", fmt.Sprintf(`{"source": %q}`, spy))
	d.devtools("Emulation.setFocusEmulationEnabled", `{"enabled": true}`)
	return d.browser
}

// command sends a command to the browser, and returns its value. devtools sends one of Chromium's own.
func (d *desk) command(path string, params any) any {
	body, _ := json.Marshal(params)
	resp, err := http.Post(d.browser+path, "application/json", strings.NewReader(string(body)))
	if err != nil {
		d.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct{ Value any }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != 200 {
		d.Fatalf("%s %.300s: %v %.300v", path, body, err, answer.Value)
	}
	return answer.Value
}

func (d *desk) devtools(command, params string) any {
	return d.command("/goog/cdp/execute", map[string]any{"cmd": command, "params": json.RawMessage(params)})
}

// run runs a script in the page, and returns what it returns, or what its promise brings.
func (d *desk) run(script string, args ...any) any {
	return d.command("/execute/sync", map[string]any{"script": script, "args": append([]any{}, args...)})
}

// open opens the page anew, at a path or fragment. The tab has forgotten the key, and the mouse is away.
func (d *desk) open(path string) *desk {
	d.run("try { sessionStorage.clear() } catch {}") // fails in an empty tab
	d.command("/url", map[string]string{"url": "about:blank"})
	d.command("/url", map[string]string{"url": d.base + path})
	d.devtools("Input.dispatchMouseEvent", `{"type": "mouseMoved", "x": 1, "y": 1}`)
	return d
}

// window sets the size of the window, in pixels, and the color scheme, light or dark.
func (d *desk) window(width, height int, scheme string) *desk {
	d.devtools("Emulation.setDeviceMetricsOverride", fmt.Sprintf(
		`{"width": %d, "height": %d, "deviceScaleFactor": 1, "mobile": false}`, width, height))
	d.devtools("Emulation.setEmulatedMedia",
		`{"features": [{"name": "prefers-color-scheme", "value": "`+scheme+`"}]}`)
	return d
}

// until waits until an expression is true in the page, for 30 seconds at most.
func (d *desk) until(expression string, args ...any) *desk {
	d.Helper()
	if d.run("return until(() => "+expression+")", args...) != true {
		d.Fatalf("not true: %s %q in\n%.3000s", expression, args, d.run("return document.body.innerText"))
	}
	return d
}

// see waits until an element shows a text or more, and gone until nothing of it is shown.
func (d *desk) see(selector, text string) *desk {
	d.Helper()
	return d.until("$(arguments[0]) && shown($(arguments[0])).includes(arguments[1])", selector, text)
}
func (d *desk) gone(what string) *desk { d.Helper(); return d.until("!shown($(arguments[0]))", what) }

// rows waits until the list has these rows, given as they begin: method, status, url, fault and reason.
func (d *desk) rows(want ...string) *desk {
	d.Helper()
	return d.until(`((rows, want) => rows.length === want.length && rows.every((row, i) =>
		["method", "status", "url", "tag", "why"].flatMap(name => [...row.getElementsByClassName(name)])
		.map(part => part.textContent).join(" ").startsWith(want[i])))(
		$$("#list li").filter(row => row.checkVisibility()), arguments[0])`, append([]string{}, want...))
}

// press clicks on the first button, row or link that has a text, once there is one.
func (d *desk) press(text string) *desk {
	d.until(`pressed = $$("button, summary, nav a").find(one => shown(one).includes(arguments[0]))`, text)
	return d.element("pressed.scrollIntoView({block: 'center'}), pressed", "click", "{}")
}

// fill puts text into the field that has a label, or selects the option.
func (d *desk) fill(label, text string) *desk {
	d.run(`const [label, text] = arguments;
		const field = $$("label").find(one => one.textContent.trim().startsWith(label)).control;
		field.value = [...field.options ?? []].find(one => one.text === text)?.value ?? text;
		field.dispatchEvent(new Event("input", {bubbles: true}));
		field.dispatchEvent(new Event("change", {bubbles: true}))`, label, text)
	return d
}

// element sends a command for an element of the page.
func (d *desk) element(which, command, params string) *desk {
	for _, id := range d.run("return " + which).(map[string]any) {
		d.command("/element/"+id.(string)+"/"+command, json.RawMessage(params))
	}
	return d
}

// send is a request of another client, "GET /v1/pets", sent as it is written.
func (d *desk) send(request, body string, headers ...string) *desk {
	method, target, _ := strings.Cut(request, " ")
	req, _ := http.NewRequest(method, d.base, strings.NewReader(body))
	req.URL.Opaque = target
	req.Header.Set("Authorization", "Bearer "+key)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		req.Header.Set(name, value)
	}
	if resp, err := http.DefaultClient.Do(req); err == nil { // no matter what comes of it
		resp.Body.Close()
	}
	return d
}
