package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
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
	stopping context.Context // done when the process is to end
	log      *slog.Logger

	current atomic.Pointer[world] // set by newServer
	resetMu sync.Mutex            // resets run one at a time
}

// handler returns the service as one handler. This file goes on in the order in
// which a request passes it.
func (a *api) handler() http.Handler {
	router := newRouter()
	behindKey := requireKey(a.key, router)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		area, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		x := &exchange{api: a, r: r, arrived: time.Now(), area: area, world: a.current.Load(), fault: noFault,
			w: w, answer: buffers.Get().(*bytes.Buffer)}
		defer x.send()
		allowOrigins(x, r)
		switch {
		case r.Method == http.MethodOptions: // a preflight, which carries no key
			answerPreflight(x)
		case x.area == "v1" || x.area == "__admin":
			behindKey.ServeHTTP(x, r)
		default:
			router.ServeHTTP(x, r)
		}
	})
}

// exchange is a request and its answer. As an http.ResponseWriter, it collects
// the answer: what becomes of it is decided in send.
type exchange struct {
	api     *api
	r       *http.Request
	arrived time.Time  // when its headers had come
	area    string     // the first segment of the path: the "v1" in /v1/pets
	world   *world     // that the request belongs to; reset and send set it to nil
	body    []byte     // of the request, once it is read
	query   url.Values // of a request that has reached its operation
	fault   *fault     // that strikes the request, or noFault

	w      http.ResponseWriter // of net/http: send writes to it; before, only its Header is used
	status int                 // of the answer; 0 is no answer, and the connection is closed
	answer *bytes.Buffer       // its body
}

var noFault = &fault{}

// buffers are for the bodies of answers. Without them, a page of 100 pets takes a
// seventh more time.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func (x *exchange) Header() http.Header         { return x.w.Header() }
func (x *exchange) WriteHeader(status int)      { x.status = status }
func (x *exchange) Write(p []byte) (int, error) { return x.answer.Write(p) }

// route is an operation, and the http.Handler of the requests for it. Its name
// is that in the contract and in api/openapi.json.
type route struct {
	operation, pattern string
	do                 func(*exchange) error
}

// routes returns the routes of the service; it is no variable, as setFault reads
// it. A path has the methods that are listed here; its other methods are answered
// 405, and other paths 404.
func routes() []route {
	return []route{
		{"listPets", "GET /v1/pets", (*exchange).listPets},
		{"createPet", "POST /v1/pets", (*exchange).createPet},
		{"getPet", "GET /v1/pets/{petId}", (*exchange).getPet},
		{"", "GET /v1/store/orders", (*exchange).listOrders},
		{"reset", "POST /__admin/reset", (*exchange).reset},
		{"showFault", "GET /__admin/fault", (*exchange).showFault},
		{"setFault", "PUT /__admin/fault", (*exchange).setFault},
		{"clearFault", "DELETE /__admin/fault", (*exchange).clearFault},
		{"showJournal", "GET /__admin/requests", (*exchange).showJournal},
		{"clearJournal", "DELETE /__admin/requests", (*exchange).clearJournal},
		{"", "GET /healthz", static("application/json", []byte(`{"status":"ok"}`+"\n"))},
		{"", "GET /openapi.json", static("application/json", openAPI)},
		{"", "GET /{$}", static("text/html; charset=utf-8", indexHTML)},
	}
}

// newRouter returns the handler of all routes, and of what has none.
func newRouter() http.Handler {
	mux := http.NewServeMux()
	methods := map[string][]string{} // by the path of a pattern
	for _, rt := range routes() {
		mux.Handle(rt.pattern, rt)
		method, target, _ := strings.Cut(rt.pattern, " ")
		methods[target] = append(methods[target], method)
		if method == http.MethodGet {
			methods[target] = append(methods[target], http.MethodHead)
		}
	}
	for target, allowed := range methods {
		slices.Sort(allowed)
		mux.Handle(target, route{do: refuseMethod(strings.Join(allowed, ", "))})
	}
	notFound := route{do: refusePath}
	mux.Handle("/", notFound)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := r.URL.Path; strings.HasPrefix(p, "/") && path.Clean(p) == p {
			mux.ServeHTTP(w, r)
		} else {
			notFound.ServeHTTP(w, r) // the mux would redirect to the clean path
		}
	})
}

// ServeHTTP answers the request of w, which is its exchange.
func (rt route) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := w.(*exchange)
	x.r = r // with the petId that the mux has found
	err := rt.prepare(x)
	if err == nil {
		err = rt.do(x)
	}
	if err != nil && err != errNoAnswer {
		writeError(x, asError(codeInvalidParameter, err))
	}
}

// errNoAnswer leaves the status of the exchange at 0: there is no answer.
var errNoAnswer = errors.New("no answer")

// prepare does what every route does before its operation, in this order.
func (rt route) prepare(x *exchange) (err error) {
	if err := x.readBody(); err != nil {
		return err
	}
	maps.Copy(x.Header(), operationHeaders[rt.operation])
	if x.area == "v1" {
		if err := x.wait(x.api.latency); err != nil {
			return err
		}
		if err := x.applyFault(rt.operation); err != nil {
			return err
		}
	}
	// URL.Query would drop what is malformed. A wrong path or method, which has a
	// route without a pattern, is told first.
	if x.query, err = url.ParseQuery(x.r.URL.RawQuery); err != nil && rt.pattern != "" {
		return fmt.Errorf("the query is malformed: %w", err)
	}
	return nil
}

// maxBody is the size of the largest request body, in bytes.
const maxBody = 64 << 10

// readBody reads the body of a request under /v1 or /__admin. net/http notices
// that a client has left only once the body is read.
func (x *exchange) readBody() (err error) {
	if x.r.ContentLength == 0 || x.area != "v1" && x.area != "__admin" {
		return nil
	}
	if x.r.ContentLength <= maxBody { // a longer one is refused without a wait for it
		x.body, err = io.ReadAll(io.LimitReader(x.r.Body, maxBody+1))
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = newError(408, "the body did not come in time")
	case err != nil:
		err = Error{codeInvalidBody, "the body is cut short or badly chunked", 400}
	case x.r.ContentLength > maxBody || len(x.body) > maxBody:
		x.Header().Set("Connection", "close") // net/http would read on before it sends the answer
		err = newError(413, fmt.Sprintf("the body is over %d bytes", maxBody))
	default:
		return nil
	}
	x.body = nil // the journal has no part of a body
	return err
}

// operationHeaders are on all answers of an operation. getPet is deprecated since
// 20 November 2026 (RFC 9745), to be removed in 2030 (RFC 8594; contract, section 9).
var operationHeaders = map[string]http.Header{"getPet": {
	"Deprecation": {"@1795132800"},
	"Sunset":      {"Thu, 05 Dec 2030 00:00:00 GMT"},
	"Link":        {`</v1/pets>; rel="successor-version"`},
}}

// wait holds the request up for d, or until its world or the process ends. If
// the client leaves meanwhile, there is no answer.
func (x *exchange) wait(d time.Duration) error {
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.world.over:
	case <-x.api.stopping.Done():
	case <-x.r.Context().Done():
		return errNoAnswer
	}
	return nil
}

// applyFault finds the fault of a request under /v1: what its Prefer header asks
// for or, if that has neither code nor delay, the standing fault. It does what a
// fault does before the operation; send does the rest.
func (x *exchange) applyFault(operation string) error {
	f, err := parsePrefer(x.r.Header["Prefer"])
	if err != nil {
		return err
	}
	if f != nil {
		x.Header().Set("Preference-Applied", f.String())
	} else if f = x.world.standing.Load(); f == nil || !f.strikes(operation) {
		return nil
	}
	x.fault = f
	if err := x.wait(f.delay); err != nil {
		return err
	}
	switch {
	case f.Code == "hangup":
		return errNoAnswer
	case f.status != 0:
		return simulatedError(f, x.Header())
	}
	return nil
}

// parsePrefer returns the fault that Prefer headers ask for, or nil. The first of
// each preference counts (RFC 7240, section 2), and unknown ones are ignored, as
// are parameters behind a semicolon. A comma in quotes is taken as any other.
func parsePrefer(headers []string) (*fault, error) {
	if len(headers) == 0 { // as in nearly all requests
		return nil, nil
	}
	given := url.Values{}
	for _, preference := range strings.Split(strings.Join(headers, ","), ",") {
		preference, _, _ = strings.Cut(preference, ";")
		name, value, _ := strings.Cut(preference, "=")
		name = strings.ToLower(strings.Trim(name, " \t"))
		if slices.Contains(preferences, name) && !given.Has(name) {
			given.Set(name, strings.Trim(strings.Trim(value, " \t"), `"`))
		}
	}
	return parseFault(given)
}

// simulatedError is the Error that a fault answers with. It sets the headers of the
// Error too. A simulated 401 is that of a wrong key.
func simulatedError(f *fault, h http.Header) Error {
	e := newError(int(f.status), "this error is simulated, as was asked for")
	if e.Status == 401 {
		e.Code = codeInvalidToken
		h.Set("WWW-Authenticate", wrongKeyChallenge)
	}
	if f.RetryAfter != "" {
		h.Set("Retry-After", f.RetryAfter)
	} else if e.Status == 429 || e.Status == 503 {
		h.Set("Retry-After", "1") // second
	}
	return e
}

// refuseMethod answers 405 on a path with these methods.
func refuseMethod(methods string) func(*exchange) error {
	return func(x *exchange) error {
		x.Header().Set("Allow", methods)
		return newError(405, "this path allows "+methods+" only")
	}
}

func refusePath(x *exchange) error {
	hint := "the API is at /v1/pets, its description at /openapi.json, and a page for browsers at /"
	switch x.area {
	case "v1":
		hint = "the pets are at /v1/pets, without a slash at the end; /__admin is not under /v1"
	case "__admin":
		hint = "there are /__admin/reset, /__admin/fault and /__admin/requests"
	}
	return newError(404, "no such path; "+hint)
}

// The limit of listPets, without one and at most (contract, section 8), and the
// length of the longest page, in bytes. No pet takes more than half of that.
const (
	defaultLimit = 20
	maxLimit     = 100
	maxPage      = 256 << 10
)

// listParameters are those of listPets. The link to the next page sets the first.
var listParameters = []string{"after", "limit", "status"}

// listPets answers a page of pets in ascending order of id and, when more
// follow, a Link to the next page (contract, section 4.1; RFC 8288). The page
// ends at limit pets, or where it would be longer than maxPage.
func (x *exchange) listPets() error {
	limit, errLimit := queryInteger(x.query, "limit", defaultLimit, 1, maxLimit)
	after, errAfter := queryInteger(x.query, "after", 0, math.MinInt64, math.MaxInt64)
	status, errStatus := PetStatus(""), error(nil)
	if x.query.Has("status") {
		status, errStatus = parseStatus(x.query.Get("status"))
	}
	errOnce := checkOnce(x.query, listParameters...)
	if err := cmp.Or(errOnce, errLimit, errAfter, errStatus); err != nil {
		return err
	}
	pets, n := x.world.pets.list(status, after), 0
	x.answer.WriteByte('[')
	for ; n < len(pets) && n < int(limit); n++ {
		if x.answer.Len()+len(",")+len(pets[n].json)+len("]\n") > maxPage {
			break
		}
		if n > 0 {
			x.answer.WriteByte(',')
		}
		x.answer.Write(pets[n].json)
	}
	if n < len(pets) {
		x.Header().Set("Link", nextPage(x.query, pets[n-1].id))
	}
	writeJSON(x, 200, []byte("]")) // the end of what the answer has already
	return nil
}

// nextPage is the Link to the page behind the pet with the id after.
func nextPage(query url.Values, after int64) string {
	kept := url.Values{}
	for _, name := range listParameters[1:] {
		kept[name] = query[name]
	}
	return fmt.Sprintf(`</v1/pets?%safter=%d>; rel="next"`, strings.TrimPrefix(kept.Encode()+"&", "&"), after)
}

// createPet adds a pet (contract, section 4.2).
func (x *exchange) createPet() error {
	if err := checkContentType(x.r.Header); err != nil {
		return err
	}
	_, p, err := parsePet("the body", x.body)
	if err != nil {
		return asError(codeInvalidBody, err)
	}
	added, err := x.world.pets.add(p)
	if err != nil {
		return err
	}
	x.Header().Set("Location", "/v1/pets/"+strconv.FormatInt(added.id, 10))
	writeJSON(x, 201, added.json)
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
	id, err := parseInteger("petId", x.r.PathValue("petId"), math.MinInt64, math.MaxInt64)
	if err != nil {
		return err
	}
	p := x.world.pets.get(id)
	if p == nil {
		return newError(404, fmt.Sprintf("there is no pet %d", id))
	}
	writeJSON(x, 200, p.json)
	return nil
}

// listOrders stands for the path that the contract names in section 4.4
// without showing its payload.
func (x *exchange) listOrders() error {
	return newError(501, "the contract names this operation and shows no payload for it")
}

// reset starts a new world, with the pets of the process's seed or with those of
// the body, a seed too. Resets run one at a time, so that few copies of a large seed
// are in memory at once.
func (x *exchange) reset() error {
	x.world = nil // it may be over before its turn comes, and should not stay in memory
	x.api.resetMu.Lock()
	defer x.api.resetMu.Unlock()
	seed := x.api.seed
	if len(x.body) > 0 {
		err := checkContentType(x.r.Header)
		if err != nil {
			return err
		}
		if seed, err = readSeed(x.body); err != nil {
			return asError(codeInvalidBody, err)
		}
	}
	old := x.api.current.Swap(newWorld(seed))
	close(old.over)
	x.WriteHeader(204)
	return nil
}

// showFault answers the standing fault and what has become of it, or {}.
func (x *exchange) showFault() error {
	body := []byte("{}")
	if f := x.world.standing.Load(); f != nil {
		met := f.met.Load()
		body = encode(struct {
			*fault
			Met    int64 `json:"met"`    // how many requests it was for
			Struck int64 `json:"struck"` // how many of them it struck
		}{f, met, f.struck(met)})
	}
	writeJSON(x, 200, body)
	return nil
}

// setFault replaces the standing fault, and answers as showFault does. It can be
// for the operations of the contract, which are those under /v1.
func (x *exchange) setFault() error {
	var operations []string
	for _, rt := range routes() {
		if rt.operation != "" && strings.Contains(rt.pattern, " /v1/") {
			operations = append(operations, rt.operation)
		}
	}
	f, err := parseFault(x.query)
	if err == nil && f == nil {
		err = errors.New("code, delay or answer-delay must be given, in the query: /__admin/fault?code=503")
	} else if err == nil && x.query.Has("operation") {
		err = checkChoice("operation", f.Operation, operations...)
	}
	if err != nil {
		return err
	}
	x.world.standing.Store(f)
	return x.showFault()
}

func (x *exchange) clearFault() error {
	x.world.standing.Store(nil)
	x.WriteHeader(204)
	return nil
}

// showJournal answers the journal, one request a line.
func (x *exchange) showJournal() error {
	entries, total := x.world.journal.all()
	x.answer.WriteString(`{"requests":[`)
	for i, e := range entries {
		if i > 0 {
			x.answer.WriteByte(',')
		}
		x.answer.WriteByte('\n')
		x.answer.Write(encodeEntry(e, x.api.key))
	}
	writeJSON(x, 200, fmt.Appendf(nil, "\n"+`],"meta":{"total":%d}}`, total))
	return nil
}

// encodeEntry returns an entry of the journal as JSON, without the key.
func encodeEntry(e entry, key string) []byte {
	headers := map[string]string{}
	for name, values := range e.header {
		headers[name] = hideKey(strings.Join(values, ", "), key)
	}
	return encode(struct {
		Time    string            `json:"time"` // when it came
		Method  string            `json:"method"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
		Status  int               `json:"status"`
		Seconds float64           `json:"seconds"`
		Error   string            `json:"error,omitempty"`
		Fault   string            `json:"fault,omitempty"`
	}{
		e.arrived.UTC().Format("2006-01-02T15:04:05.000Z"), e.method, hideKey(e.url, key), headers,
		hideKey(string(e.body), key), e.status, math.Round(e.took.Seconds()*1000) / 1000,
		hideKey(e.message, key), hideKey(e.fault, key),
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

func static(contentType string, body []byte) func(*exchange) error {
	return func(x *exchange) error {
		x.Header().Set("Content-Type", contentType)
		x.WriteHeader(200)
		x.Write(body)
		return nil
	}
}

// send runs last: it records the request and sends its answer, or does with the
// answer what the fault asks for.
func (x *exchange) send() {
	if v := recover(); v != nil {
		x.api.log.Error("panic", "value", v, "stack", string(debug.Stack()))
		x.answer.Reset()
		writeError(x, newError(500, "the service has a bug; its log tells where"))
	}
	body := x.answer.Bytes()
	var e Error
	if x.status >= 400 {
		json.Unmarshal(body, &e) // cannot fail: all answers with such a status are Errors
	}
	truncate := x.fault.Code == "truncate"
	if x.fault.Code == "lost" || truncate && (len(body) == 0 || x.r.Method == http.MethodHead) {
		x.status = 0 // where there is no body, half of it is nothing
	}
	x.record(e.Message)
	if x.wait(x.fault.answerDelay) != nil {
		x.status = 0 // the client has left
	}
	x.world = nil // otherwise, a slow reader would keep an old world in memory
	if x.status == 0 {
		panic(http.ErrAbortHandler) // net/http closes the connection, and logs nothing
	}
	if x.status != 204 {
		// Otherwise, net/http would send a body over 2 KiB in chunks.
		x.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	x.w.WriteHeader(x.status)
	if truncate {
		body = body[:len(body)/2] // net/http closes the connection behind a body that is too short
	}
	x.w.Write(body)
	if x.answer.Cap() <= maxPage { // that of a journal may be many times larger
		x.answer.Reset()
		buffers.Put(x.answer)
	}
}

// record puts the request into the journal, and logs it on one line, without the
// key. message is that of the answer if it is an Error.
func (x *exchange) record(message string) {
	if x.area == "__admin" || x.area == "healthz" {
		return
	}
	// net/http has taken these two out of the headers.
	if x.r.Host != "" {
		x.r.Header["Host"] = []string{x.r.Host}
	}
	if x.r.TransferEncoding != nil {
		x.r.Header["Transfer-Encoding"] = x.r.TransferEncoding
	}
	e := entry{arrived: x.arrived, method: x.r.Method, url: x.r.RequestURI, header: x.r.Header, body: x.body,
		status: x.status, took: time.Since(x.arrived), message: message, fault: x.fault.String()}
	x.world.journal.add(e)
	attrs := []any{"method", e.method, "path", hideKey(e.url, x.api.key), "status", e.status}
	if e.message != "" {
		attrs = append(attrs, "error", hideKey(e.message, x.api.key))
	}
	if e.fault != "" {
		attrs = append(attrs, "fault", hideKey(e.fault, x.api.key))
	}
	x.api.log.Info("request", attrs...)
}
