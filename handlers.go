package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// api is the service.
type api struct {
	key      string
	seed     *store          // the pets of a new world; nobody may change it
	latency  time.Duration   // of every request under /v1
	stopping <-chan struct{} // closed when the process is to end
	log      *slog.Logger
	quiet    bool // logs no requests

	current   atomic.Pointer[world] // set by newServer
	resetting sync.Mutex            // held by a reset, which may copy a large seed
}

// handler returns the service as one handler. What follows in this file is in
// the order in which a request passes it.
func (a *api) handler() http.Handler {
	routes := newRoutes()
	behindKey := requireKey(a.key, routes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := begin(a, w, r)
		defer x.end()
		allowOrigins(x, r)
		switch {
		case r.Method == http.MethodOptions: // a preflight, which carries no key
			answerPreflight(x)
		case x.needsKey():
			behindKey.ServeHTTP(x, r)
		default:
			routes.ServeHTTP(x, r)
		}
	})
}

// exchange is a request and its answer, as long as they last.
type exchange struct {
	http.ResponseWriter
	api       *api
	r         *http.Request
	area      string     // the first segment of the path: the "v1" in /v1/pets
	operation string     // listPets, createPet, getPet, or "" for a route that is none of them
	world     *world     // what the request belongs to; nil before enterWorld and after record
	query     url.Values // nil if there is none
	entry     entry      // what the journal keeps of it
	unread    bool       // the client may be sending a body that nobody has read
	truncated bool       // half of the body is sent, and then the connection is closed
	abort     bool       // the connection is closed once the handler ends
}

func begin(a *api, w http.ResponseWriter, r *http.Request) *exchange {
	area, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return &exchange{ResponseWriter: w, api: a, r: r, area: area, unread: r.ContentLength != 0, entry: entry{
		received: time.Now(), method: r.Method, url: r.RequestURI, host: r.Host, header: r.Header,
		chunked: len(r.TransferEncoding) > 0}}
}

func (x *exchange) needsKey() bool { return x.area == "v1" || x.area == "__admin" }

// newRoutes returns the routes of the service. A path has the methods that are
// listed here; its other methods are answered 405, and other paths 404.
func newRoutes() http.Handler {
	mux := http.NewServeMux()
	methods := map[string][]string{} // by path
	for _, route := range []struct {
		operation, pattern string
		do                 step
	}{
		{"listPets", "GET /v1/pets", (*exchange).listPets},
		{"createPet", "POST /v1/pets", (*exchange).createPet},
		{"getPet", "GET /v1/pets/{petId}", (*exchange).getPet},
		{"", "GET /v1/store/orders", (*exchange).listOrders},
		{"", "POST /__admin/reset", (*exchange).reset},
		{"", "GET /__admin/fault", (*exchange).showFault},
		{"", "PUT /__admin/fault", (*exchange).setFault},
		{"", "DELETE /__admin/fault", (*exchange).clearFault},
		{"", "GET /__admin/requests", (*exchange).showJournal},
		{"", "DELETE /__admin/requests", (*exchange).clearJournal},
		{"", "GET /healthz", static("application/json", []byte(`{"status":"ok"}`+"\n"))},
		{"", "GET /openapi.json", static("application/json", openAPI)},
		{"", "GET /{$}", static("text/html; charset=utf-8", indexHTML)},
	} {
		mux.Handle(route.pattern, handle(route.operation, (*exchange).parseQuery, route.do))
		method, path, _ := strings.Cut(route.pattern, " ")
		methods[path] = append(methods[path], method)
		if method == http.MethodGet {
			methods[path] = append(methods[path], http.MethodHead)
		}
	}
	for path, allowed := range methods {
		slices.Sort(allowed)
		mux.Handle(path, handle("", refuseMethod(strings.Join(allowed, ", "))))
	}
	notFound := handle("", (*exchange).refusePath)
	mux.Handle("/", notFound)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := r.URL.Path; strings.HasPrefix(p, "/") && path.Clean(p) == p {
			mux.ServeHTTP(w, r)
		} else {
			notFound.ServeHTTP(w, r) // the mux would redirect to the clean path
		}
	})
}

// step is a part of the way of a request. If it returns an error, that is the
// answer, and the steps behind it are not taken.
type step func(*exchange) error

// errNoAnswer is the error of a step that ends the way without an answer. The
// connection is closed.
var errNoAnswer = errors.New("no answer")

// handle returns the handler of a route: the steps of every request that reaches
// a route, and behind them its own.
func handle(operation string, do ...step) http.Handler {
	steps := append([]step{
		(*exchange).readBody,
		(*exchange).enterWorld,
		(*exchange).deprecate,
		(*exchange).addLatency,
		(*exchange).applyFault,
	}, do...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := w.(*exchange) // which handler has made
		x.operation = operation
		for _, step := range steps {
			if err := step(x); err != nil {
				x.answerError(err)
				return
			}
		}
	})
}

// maxBody is the size of the largest request body, in bytes.
const maxBody = 64 << 10

var errTooLarge = newError(413, fmt.Sprintf("the body is over %d bytes", maxBody))

// readBody reads the whole body of a request under /v1 or /__admin. It is the
// first step, so that all that follows can leave the connection open.
func (x *exchange) readBody() (err error) {
	body, length := []byte(nil), x.r.ContentLength
	switch {
	case !x.needsKey() || length == 0:
		return nil
	case length > maxBody:
		return errTooLarge
	case length > 0:
		body = make([]byte, length)
		_, err = io.ReadFull(x.r.Body, body)
	default: // it comes in chunks
		body, err = io.ReadAll(io.LimitReader(x.r.Body, maxBody+1))
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return newError(408, "the body did not come in time")
	case err != nil:
		return invalidBody(errors.New("the body is cut short or badly chunked"))
	case len(body) > maxBody:
		return errTooLarge
	}
	x.entry.body, x.unread = body, false
	return nil
}

// enterWorld settles to which world the request belongs: once its body has come,
// so that a slow upload does not keep a world that is over in memory.
func (x *exchange) enterWorld() error {
	x.world = x.api.current.Load()
	return nil
}

// deprecation has the headers of getPet's answers: that it is deprecated, since
// 20 November 2026 (RFC 9745), and when it will be removed (RFC 8594; contract,
// section 9). A 401, and what readBody refuses, comes before it and lacks them.
var deprecation = http.Header{
	"Deprecation": {"@1795132800"},
	"Sunset":      {"Thu, 05 Dec 2030 00:00:00 GMT"},
	"Link":        {`</v1/pets>; rel="successor-version"`},
}

func (x *exchange) deprecate() error {
	if x.operation == "getPet" {
		maps.Copy(x.Header(), deprecation)
	}
	return nil
}

// addLatency delays a request under /v1 by the latency of the service.
func (x *exchange) addLatency() error {
	if x.area != "v1" {
		return nil
	}
	return x.wait(x.api.latency)
}

// applyFault makes a request under /v1 wait or fail: as its Prefer header asks
// or, if that has neither code nor delay, as the standing fault does.
func (x *exchange) applyFault() error {
	if x.area != "v1" {
		return nil
	}
	f, err := parsePrefer(x.r.Header["Prefer"])
	if err != nil {
		return err
	}
	if f != nil {
		x.Header().Set("Preference-Applied", f.String())
	} else if f = x.world.standing.Load(); f == nil || !f.meet(x.operation) {
		return nil
	}
	x.entry.fault = f.String()
	if err := x.wait(f.delay); err != nil {
		return err
	}
	switch f.status {
	case 0:
		return nil
	case hangup:
		return errNoAnswer
	case truncate:
		x.truncated = true
		return nil
	}
	return f.answer(x.Header())
}

// writeTimeout is the time from the headers of a request, or from the end of a
// delay, to the last byte of its answer.
const writeTimeout = 60 * time.Second

// wait holds the request up for d, or until its world or the process ends. If
// the client leaves meanwhile, which net/http notices once the body has been
// read, nothing more is done.
func (x *exchange) wait(d time.Duration) error {
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.world.over:
	case <-x.api.stopping:
	case <-x.r.Context().Done():
		return errNoAnswer
	}
	// The delay must not use up the time that net/http has set for the answer.
	http.NewResponseController(x.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTimeout))
	return nil
}

// parseQuery refuses a malformed query. URL.Query would drop the malformed part.
func (x *exchange) parseQuery() (err error) {
	if x.r.URL.RawQuery == "" {
		return nil
	}
	if x.query, err = url.ParseQuery(x.r.URL.RawQuery); err != nil {
		return Error{codeInvalidParameter, "the query is malformed: " + err.Error(), 400}
	}
	return nil
}

// refuseMethod answers 405 on a path that has these methods only.
func refuseMethod(methods string) step {
	return func(x *exchange) error {
		x.Header().Set("Allow", methods)
		return newError(405, "this path allows "+methods+" only")
	}
}

// refusePath answers what has no route: 404 or, where the target is no path, 400.
func (x *exchange) refusePath() error {
	message := "no such path; the API is at /v1/pets, its description at /openapi.json, and a page for browsers at /"
	switch {
	case x.r.RequestURI == "*" || x.r.Method == http.MethodConnect && x.r.URL.Path == "":
		x.Header().Set("Connection", "close")
		return newError(400, "the target must be a path, in HTTP/1.1; this service is no proxy")
	case x.area == "v1":
		message = "no such path; the pets are at /v1/pets, without a slash at the end"
	case x.area == "__admin":
		message = "no such path; there are /__admin/reset, /__admin/fault and /__admin/requests"
	}
	return newError(404, message)
}

// maxPage is the length of the longest page of pets, in bytes. No pet takes more
// than half of it.
const maxPage = 256 << 10

// pages are buffers for pages, which would be most of the garbage otherwise.
var pages = sync.Pool{New: func() any { return new([]byte) }}

// listPets answers a page of pets in ascending order of id and, when more
// follow, a Link to the next page (contract, section 4.1; RFC 8288). The page
// ends at limit pets, or where it would be longer than maxPage.
func (x *exchange) listPets() error {
	if err := checkOnce(x.query, "limit", "after", "status"); err != nil {
		return err
	}
	limit, err := queryInteger(x.query, "limit", 20, 1, 100)
	if err != nil {
		return err
	}
	after, err := queryInteger(x.query, "after", 0, math.MinInt64, math.MaxInt64)
	if err != nil {
		return err
	}
	var status PetStatus
	if x.query.Has("status") {
		if status, err = parseStatus(x.query.Get("status")); err != nil {
			return err
		}
	}

	pets := x.world.pets.list(status, after)
	buffer := pages.Get().(*[]byte)
	page, n := appendPage((*buffer)[:0], pets, int(limit))
	if n < len(pets) {
		x.Header().Set("Link", nextPage(x.query, pets[n-1].id))
	}
	writeJSON(x, 200, page)
	*buffer = page
	pages.Put(buffer)
	return nil
}

// appendPage appends a page with the first n of pets, as many as limit and
// maxPage allow.
func appendPage(page []byte, pets []*storedPet, limit int) (_ []byte, n int) {
	page = append(page, '[')
	for ; n < len(pets) && n < limit; n++ {
		line := pets[n].line
		if len(page)+len(line)+len("]") > maxPage {
			break
		}
		page = append(page, line...)
		page[len(page)-1] = ',' // in place of the newline
	}
	if n > 0 {
		page = page[:len(page)-1]
	}
	return append(page, "]\n"...), n
}

// nextPage is the Link to the page behind the pet with this id, with the limit
// and the status of the query.
func nextPage(query url.Values, after int64) string {
	target := "/v1/pets?"
	for _, name := range []string{"limit", "status"} {
		if query.Has(name) {
			target += name + "=" + query.Get(name) + "&"
		}
	}
	return "<" + target + "after=" + strconv.FormatInt(after, 10) + `>; rel="next"`
}

// createPet adds a pet and answers it with its id and Location (contract,
// section 4.2).
func (x *exchange) createPet() error {
	if err := checkContentType(x.r.Header); err != nil {
		return err
	}
	p, err := parsePet(x.entry.body)
	if err != nil {
		return invalidBody(err)
	}
	added, err := x.world.pets.add(p)
	if err != nil {
		return err
	}
	x.Header().Set("Location", "/v1/pets/"+strconv.FormatInt(added.id, 10))
	writeJSON(x, 201, added.line)
	return nil
}

// checkContentType refuses a body that is not JSON in UTF-8, as far as its
// headers tell. A body without Content-Type is taken as JSON.
func checkContentType(h http.Header) error {
	given, coding := strings.Join(h["Content-Type"], ", "), strings.Join(h["Content-Encoding"], ", ")
	if coding != "" && !strings.EqualFold(coding, "identity") {
		return newError(415, invalid("Content-Encoding", coding, "left out").Error())
	}
	if given == "" || given == "application/json" {
		return nil
	}
	media, params, err := mime.ParseMediaType(given) // an error if there are two
	charset := cmp.Or(params["charset"], "utf-8")
	if err != nil || media != "application/json" || !strings.EqualFold(charset, "utf-8") {
		const allowed = "application/json, in UTF-8 (curl sends that with --json)"
		return newError(415, invalid("Content-Type", given, allowed).Error())
	}
	return nil
}

// getPet answers one pet (contract, section 4.3).
func (x *exchange) getPet() error {
	id, err := integer("petId", x.r.PathValue("petId"), math.MinInt64, math.MaxInt64)
	if err != nil {
		return err
	}
	p := x.world.pets.get(id)
	if p == nil {
		return newError(404, fmt.Sprintf("there is no pet %d", id))
	}
	writeJSON(x, 200, p.line)
	return nil
}

// listOrders stands for the path that the contract names in section 4.4
// without showing its payload.
func (x *exchange) listOrders() error {
	return newError(501, "the contract names this operation and shows no payload for it")
}

// reset starts a new world, with the pets of the process's seed or with those of
// the body, a JSON array of pets as in a seed file. Resets run one at a time, and
// those that wait keep no world, so that few copies of a large seed are in memory
// at once.
func (x *exchange) reset() error {
	x.world = nil
	x.api.resetting.Lock()
	defer x.api.resetting.Unlock()
	var pets *store
	if body := x.entry.body; len(body) == 0 {
		pets = x.api.seed.clone()
	} else {
		err := checkContentType(x.r.Header)
		if err != nil {
			return err
		}
		if pets, err = readSeed(bytes.NewReader(body), x.api.seed.size); errors.Is(err, errFull) {
			return err
		} else if err != nil {
			return invalidBody(err)
		}
	}
	old := x.api.current.Swap(newWorld(pets))
	close(old.over)
	x.WriteHeader(204)
	return nil
}

// showFault answers the standing fault, or {} without one.
func (x *exchange) showFault() error {
	body := []byte("{}\n")
	if f := x.world.standing.Load(); f != nil {
		body = encode(struct {
			*fault
			Met int64 `json:"met"`
		}{f, f.met.Load()})
	}
	writeJSON(x, 200, body)
	return nil
}

// setFault replaces the standing fault.
func (x *exchange) setFault() error {
	f, err := parseFault(x.query)
	if err != nil {
		return err
	}
	x.world.standing.Store(f)
	x.WriteHeader(204)
	return nil
}

func (x *exchange) clearFault() error {
	x.world.standing.Store(nil)
	x.WriteHeader(204)
	return nil
}

// showJournal answers the journal, one request a line. It is encoded line by
// line as it is sent, for all of it may take many times its 4 MiB.
func (x *exchange) showJournal() error {
	entries, total := x.world.journal.all()
	x.Header().Set("Content-Type", "application/json")
	x.WriteHeader(200)
	io.WriteString(x, `{"requests":[`+"\n")
	for i, e := range entries {
		line := encodeEntry(e, x.api.key)
		if i < len(entries)-1 {
			line = append(line[:len(line)-1], ",\n"...)
		}
		if _, err := x.Write(line); err != nil {
			return nil // the client has left
		}
	}
	fmt.Fprintf(x, `],"meta":{"total":%d}}`+"\n", total)
	return nil
}

// encodeEntry returns an entry of the journal as a line of JSON, without the key.
func encodeEntry(e entry, key string) []byte {
	headers := map[string]string{}
	for name, values := range e.header {
		var shown []string
		for _, value := range values {
			if name == "Authorization" {
				value = hideCredential(value, key)
			}
			shown = append(shown, hideKey(value, key))
		}
		headers[name] = strings.Join(shown, ", ")
	}
	// net/http takes these two out of the headers.
	if e.host != "" {
		headers["Host"] = hideKey(e.host, key)
	}
	if e.chunked {
		headers["Transfer-Encoding"] = "chunked"
	}
	return encode(struct {
		Time    string            `json:"time"`
		Method  string            `json:"method"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
		Status  int               `json:"status"`
		Fault   string            `json:"fault,omitempty"`
	}{
		e.received.UTC().Format("2006-01-02T15:04:05.000Z"), e.method, hideKey(e.url, key), headers,
		hideKey(string(e.body), key), e.status, e.fault,
	})
}

func (x *exchange) clearJournal() error {
	x.world.journal.clear()
	x.WriteHeader(204)
	return nil
}

// openAPI describes the service to tools, and indexHTML shows it to a browser.
var (
	//go:embed api/openapi.json
	openAPI []byte
	//go:embed api/index.html
	indexHTML []byte
)

// static is the step that answers with the same body each time.
func static(contentType string, body []byte) step {
	return func(x *exchange) error {
		writeBody(x, 200, contentType, body)
		return nil
	}
}

// answerError answers err.
func (x *exchange) answerError(err error) {
	var e Error
	switch {
	case err == errNoAnswer:
		x.abort = true
	case errors.As(err, &e):
		writeError(x, e)
	case errors.Is(err, errFull) || errors.Is(err, errNoID):
		writeError(x, newError(507, err.Error()))
	default:
		panic(err) // a bug: all errors are of these
	}
}

// WriteHeader records the request before its answer is sent, so that a client
// that has the answer finds the request in the journal.
func (x *exchange) WriteHeader(status int) {
	if x.truncated && x.r.Method == http.MethodHead {
		x.abort = true // there is no body to send half of
		return
	}
	if x.unread {
		// net/http would read the rest of the body before it sends the answer.
		x.Header().Set("Connection", "close")
	}
	x.entry.status = status
	x.record()
	x.ResponseWriter.WriteHeader(status)
}

// Write sends the body, or half of it if the answer is to be truncated.
func (x *exchange) Write(body []byte) (int, error) {
	if x.abort {
		return 0, errNoAnswer
	}
	if x.truncated {
		body = body[:len(body)/2]
		x.abort = true
	}
	return x.ResponseWriter.Write(body)
}

// record keeps the request in the journal and logs it on one line, without the
// key. Then it drops the world, which nobody may use after WriteHeader: a client
// that is slow to read its answer must not keep a world that is over in memory.
func (x *exchange) record() {
	world := cmp.Or(x.world, x.api.current.Load())
	x.world = nil
	if x.area == "__admin" || x.area == "healthz" {
		return
	}
	world.journal.add(x.entry)
	if !x.api.quiet {
		x.api.log.LogAttrs(context.Background(), slog.LevelInfo, "request", slog.String("method", x.entry.method),
			slog.String("path", hideKey(x.entry.url, x.api.key)), slog.Int("status", x.entry.status))
	}
}

// end runs last. It answers 500 after a panic, records a request that got no
// answer, and closes the connection where it must.
func (x *exchange) end() {
	if v := recover(); v != nil {
		x.api.log.Error("panic", "value", v, "stack", string(debug.Stack()))
		if x.entry.status == 0 {
			writeError(x, newError(500, "the service has a bug; its log tells where"))
		} else {
			x.abort = true // the client would take the rest of the answer for whole
		}
	}
	if x.entry.status == 0 {
		x.record()
	} else if x.unread || x.abort {
		x.flush()
	}
	if x.abort {
		panic(http.ErrAbortHandler) // net/http closes the connection, and logs nothing
	}
}

// linger is how long a connection stays open for a client that is still sending.
const linger = time.Second

// flush sends the answer of a connection that is to be closed. If the client may
// still be sending its body, it reads on for a while first: to close at once
// would send a reset, and the client could lose the answer.
func (x *exchange) flush() {
	rc := http.NewResponseController(x.ResponseWriter)
	rc.Flush()
	if !x.unread {
		return
	}
	rc.SetReadDeadline(time.Now().Add(linger))
	if x.r.Header.Get("Expect") == "" { // otherwise, Go 1.22 would ask for the body with 100 Continue
		io.Copy(io.Discard, x.r.Body)
	}
}
