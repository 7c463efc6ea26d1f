package main

// This file holds the HTTP API. It follows a request: routing, the middleware,
// the operations in the order of the routes, and sending the answer.

import (
	"cmp"
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
	"sync/atomic"
	"time"
)

// service is a running petstore: what it was started with, and the current world.
type service struct {
	key      string
	seed     *store          // the pets of a new world; must not be modified
	stopping <-chan struct{} // closed when the process is to end
	log      *slog.Logger
	routes   []route
	current  atomic.Pointer[world] // the world of new requests; the only field that changes
}

func newService(key string, seed *store, stopping <-chan struct{}, log *slog.Logger) *service {
	s := &service{key: key, seed: seed, stopping: stopping, log: log, routes: routes()}
	s.current.Store(newWorld(seed))
	return s
}

// route maps the requests that match a pattern to an operation.
type route struct {
	pattern    string      // of http.ServeMux: a method and a path; GET includes HEAD
	operation  string      // the name of the operation in api/openapi.json, if it has one
	parameters []string    // of the query
	beyond     []string    // those of them that the contract does not have
	takesBody  bool        // under /__admin: whether a request may have a body
	headers    http.Header // on all answers but that of the fault "html"
	do         func(*exchange) (answer, error)
}

func routes() []route {
	return []route{
		{pattern: "GET /v1/pets", operation: "listPets", do: listPets,
			parameters: []string{"limit", "status", "after"}, beyond: []string{"after"}},
		{pattern: "POST /v1/pets", operation: "createPet", do: createPet},
		{pattern: "GET /v1/pets/{petId}", operation: "getPet", do: getPet, headers: deprecation},
		{pattern: "GET /v1/store/orders", do: listOrders},

		{pattern: "POST /__admin/reset", operation: "reset", do: reset, takesBody: true},
		{pattern: "GET /__admin/fault", operation: "showFault", do: showFault},
		{pattern: "PUT /__admin/fault", operation: "setFault", do: setFault,
			parameters: slices.Concat(preferences, []string{"operation", "skip", "times"})},
		{pattern: "DELETE /__admin/fault", operation: "clearFault", do: clearFault},
		{pattern: "GET /__admin/requests", operation: "showJournal", do: showJournal,
			parameters: []string{"after", "total", "waiting"}},
		{pattern: "DELETE /__admin/requests", operation: "clearJournal", do: clearJournal},

		{pattern: "GET /healthz", do: static("application/json", []byte(`{"status":"ok"}`+"\n"))},
		{pattern: "GET /openapi.json", do: static("application/json", openAPI)},
		{pattern: "GET /{$}", do: static("text/html; charset=utf-8", indexHTML), headers: pageHeaders},
		{pattern: "GET /page.css", do: static("text/css; charset=utf-8", pageCSS), headers: pageHeaders},
		{pattern: "GET /page.js", do: static("text/javascript; charset=utf-8", pageJS), headers: pageHeaders},
		{pattern: "GET /favicon.ico", do: noIcon},
	}
}

// faultOperations returns the operations that a standing fault can be for.
func (s *service) faultOperations() []string {
	var operations []string
	for _, rt := range s.routes {
		if rt.operation != "" && strings.Contains(rt.pattern, " /v1/") {
			operations = append(operations, rt.operation)
		}
	}
	return operations
}

// deprecation holds the headers of getPet, an operation that will be removed in 2030
// (RFC 8594; contract, section 9). The contract does not date the deprecation (RFC
// 9745), so 20 November 2026 is petstore's own.
var deprecation = http.Header{
	"Deprecation": {"@1795132800"},
	"Sunset":      {"Thu, 05 Dec 2030 00:00:00 GMT"},
	"Link":        {`</v1/pets>; rel="successor-version"`},
}

// pageHeaders are the headers of the page and its files. The page knows the key,
// so it runs no script but its own, and no other page can frame it.
var pageHeaders = http.Header{
	"Content-Security-Policy": {"default-src 'none'; script-src 'self'; style-src 'self'; " +
		"img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
	"Cross-Origin-Opener-Policy": {"same-origin"},
	"Referrer-Policy":            {"no-referrer"},
	"X-Content-Type-Options":     {"nosniff"},
}

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	methods := []string{"HEAD"}
	for _, rt := range s.routes {
		mux.Handle(rt.pattern, s.handle(rt))
		method, _, _ := strings.Cut(rt.pattern, " ")
		methods = append(methods, method)
	}
	slices.Sort(methods)
	methods = slices.Compact(methods)
	fallback := s.handle(route{do: func(x *exchange) (answer, error) {
		return answer{}, refuse(mux, methods, x.r)
	}})
	mux.Handle("/", fallback)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		allowOrigins(w.Header(), r)
		switch {
		case r.Method == "OPTIONS": // treated as a preflight, which carries no key
			allowPreflight(w.Header())
			w.WriteHeader(204)
		case isClean(r.URL):
			mux.ServeHTTP(w, r)
		default:
			fallback(w, r) // the mux would redirect most of these paths to clean ones
		}
	})
}

// isClean reports whether a path is absolute, and has no empty, "." or ".."
// segment and no slash at its end. The root is clean.
func isClean(u *url.URL) bool {
	p := u.EscapedPath() // in which an escaped slash is not a slash
	return strings.HasPrefix(p, "/") && path.Clean(p) == p
}

// refuse returns the Error for a request that no route matches: a 405 if its path
// allows some of these methods, and a 404 otherwise. http.ServeMux does not say
// which, as its route for "/" matches every request.
func refuse(mux *http.ServeMux, methods []string, r *http.Request) error {
	var allowed []string
	if isClean(r.URL) {
		for _, method := range methods {
			_, pattern := mux.Handler(&http.Request{Method: method, URL: r.URL})
			if pattern != "/" {
				allowed = append(allowed, method)
			}
		}
	}
	if len(allowed) > 0 {
		list := strings.Join(allowed, ", ")
		return newError(405, "this path allows "+list+" only").with("Allow", list)
	}
	given := cmp.Or(r.URL.EscapedPath(), r.RequestURI) // CONNECT and absolute targets may have no path
	hint := "/openapi.json has the paths, such as /v1/pets, and there is a page at /"
	if isUnder(r.URL.Path, misplacedAdmin) {
		hint = "/__admin is beside /v1, and not below it"
	}
	return newError(404, "no such path: "+shorten(given)+"; "+hint)
}

// exchange is a request that is being answered.
type exchange struct {
	service *service
	world   *world
	route   route
	w       http.ResponseWriter
	r       *http.Request
	arrived time.Time // when the headers of the request had been read

	body  []byte    // of the request, once it has been read
	query arguments // of the request, once it has been parsed
	fault fault     // the fault that is applied to the request, or the zero fault
	entry entry     // the request in the journal; its sentRequest is nil until it waits or is recorded
}

// isRouted reports whether a route matches.
func (x *exchange) isRouted() bool { return x.route.pattern != "" }

func (x *exchange) isV1() bool    { return isUnder(x.r.URL.Path, "/v1") }
func (x *exchange) isAdmin() bool { return isUnder(x.r.URL.Path, "/__admin") }

// misplacedAdmin is where a client looks for /__admin below its base URL. No fault is
// applied to its requests, and none is used up.
const misplacedAdmin = "/v1/__admin"

// answer is the answer to a request.
type answer struct {
	status      int         // 0 if the connection is closed without an answer
	header      http.Header // besides those that handle adds; nil for most
	contentType string
	body        []byte // must not be modified
	problem     string // for the journal and the log: the message of an Error, or that the client left
	// sendBody sends the body, or does something else, such as a reset. If it is nil, the
	// body is written at once. The argument body is nil for a HEAD, and if the status is 0,
	// as no body may be sent then.
	sendBody func(x *exchange, body []byte)
}

// jsonAnswer returns an answer whose body is this JSON and a newline. It does not
// append to the JSON, which other requests may be using.
func jsonAnswer(status int, text []byte) answer {
	return answer{status: status, contentType: "application/json", body: slices.Concat(text, []byte("\n"))}
}

// handle is the middleware around every operation: serve makes the answer, perform
// runs the operation, and send writes the answer. The request is recorded before send,
// so that a client that has its answer finds its request in the journal.
func (s *service) handle(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{service: s, world: s.current.Load(), route: rt, w: w, r: r, arrived: time.Now()}
		h := w.Header()
		maps.Copy(h, rt.headers)
		a := x.serve()
		maps.Copy(h, a.header)
		if a.contentType != "" {
			h.Set("Content-Type", a.contentType)
			// Without it, net/http would send a body over 2 KiB in chunks.
			h.Set("Content-Length", strconv.Itoa(len(a.body)))
		}
		if x.isRecorded() {
			if r.Header.Get("Sec-Fetch-Site") == "same-origin" {
				// It is one that the page sends as a client. On a connection that it has used
				// before, a browser would repeat it if its answer is lost.
				h.Set("Connection", "close")
			}
			x.record(a)
		}
		x.logRequest(a)
		x.send(a)
	}
}

// serve reads the body, checks the key, chooses the fault, and responds. If net/http
// notices that the client has left during the delay of the fault, the operation is not
// performed, although a standing fault has counted the request.
func (x *exchange) serve() answer {
	if err := x.readBody(); err != nil {
		return x.failure(err)
	}
	if x.isV1() || x.isAdmin() {
		if err := requireKey(x.service.key, x.r); err != nil {
			return x.failure(err)
		}
	}
	if !x.isV1() || x.isObserver() || isUnder(x.r.URL.Path, misplacedAdmin) {
		return x.perform()
	}

	if err := x.chooseFault(); err != nil {
		return x.failure(err)
	}
	if x.fault.delay+x.fault.answerDelay > 0 {
		x.entry.sentRequest = x.newSentRequest()
		x.world.journal.addWaiting(x.entry.sentRequest)
	}
	if err := x.hold(x.fault.delay); err != nil {
		return x.failure(err)
	}
	respond := (*exchange).perform
	if x.fault.respond != nil {
		respond = x.fault.respond
	}
	a := respond(x)
	if err := x.hold(x.fault.answerDelay); err != nil {
		a.status, a.problem = 0, err.Error() // the journal shows the rest of the answer
	}
	return a
}

// perform performs the operation. A panic is a failure, too.
func (x *exchange) perform() (a answer) {
	defer func() {
		if v := recover(); v != nil {
			a = x.failure(fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
		}
	}()
	if x.isRouted() { // otherwise, the path or the method is the first error
		err := x.parseParameters()
		if err == nil && x.isAdmin() {
			err = x.refuseUnknown()
		}
		if err != nil {
			return x.failure(err)
		}
		x.noteNames()
	}
	a, err := x.route.do(x)
	if err != nil {
		return x.failure(err)
	}
	return a
}

// errClientLeft is the error of a wait that ends because the client has left. The
// connection is then closed.
var errClientLeft = errors.New("the client left before its answer")

// failure returns the answer to a request that has failed. An error that is
// neither an Error nor errClientLeft is a bug: its text goes only to the log.
func (x *exchange) failure(err error) answer {
	if errors.Is(err, errClientLeft) {
		return answer{problem: err.Error()}
	}
	var e Error
	if errors.As(err, &e) {
		e.Message = err.Error() // it may say more than e, such as which pet of the seed
	} else {
		x.service.log.Error("bug", "error", err, "method", x.r.Method, "url", x.r.RequestURI)
		e = newError(500, "the service has a bug; its log has the details")
	}
	a := jsonAnswer(e.Status, encodeJSON(e))
	a.header, a.problem = e.header, e.Message
	return a
}

// isUnder reports whether the path p is root or below it.
func isUnder(p, root string) bool {
	rest, ok := strings.CutPrefix(p, root)
	return ok && (rest == "" || rest[0] == '/')
}

// isObserver reports whether the client asks not to be recorded, as the page
// does. No fault is applied to its request.
func (x *exchange) isObserver() bool {
	return len(x.r.Header.Values("Petstore-Observer")) > 0
}

// isRecorded reports whether the request goes into the journal: a request under /v1,
// or one that no route matches, as its client may have a wrong base URL. Observers and
// requests under /__admin are not recorded, so that they do not disturb the record.
func (x *exchange) isRecorded() bool {
	return (x.isV1() || !x.isRouted() && !x.isAdmin()) && !x.isObserver()
}

// readBody reads the body of the request. It must be called before any answer: if
// net/http closes a connection on which a part of a body is left, the answer may be lost
// in a reset. It must also be called before any wait, as net/http does not notice that a
// client has left until the body has been read.
func (x *exchange) readBody() error {
	if x.r.ContentLength == 0 {
		return nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, maxBody))
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		io.CopyN(io.Discard, x.r.Body, maxDiscarded)
		return newError(413, fmt.Sprintf("the body is over %d bytes", maxBody))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return newError(408, "the body did not arrive in time")
	case err != nil:
		return badRequest(codeInvalidBody, "the body is cut short or badly chunked")
	}
	x.body = body
	return nil
}

const (
	maxBody      = 64 << 10 // bytes
	maxDiscarded = 1 << 20  // bytes of a larger body that are read and dropped after the first maxBody
)

// sleep blocks for d, or until one of these happens: released is closed, the world of
// the request is replaced, the process is to end, or net/http notices that the client
// has closed the connection or its sending half, or that a write has failed. The last
// two count as the client having left: sleep then returns errClientLeft, and otherwise
// nil. A nil released is never closed.
func (x *exchange) sleep(d time.Duration, released <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-released:
	case <-x.world.replaced:
	case <-x.service.stopping:
	case <-x.r.Context().Done():
	}
	if x.r.Context().Err() != nil {
		return errClientLeft
	}
	return nil
}

// parseParameters parses the query. A parameter of the route may be given at most once.
func (x *exchange) parseParameters() error {
	query, err := url.ParseQuery(x.r.URL.RawQuery) // URL.Query would drop what is malformed
	if err != nil {
		return badRequest(codeInvalidParameter, "the query is malformed: "+err.Error())
	}
	for _, name := range x.route.parameters {
		if n := len(query[name]); n > 1 {
			return badRequest(codeInvalidParameter, fmt.Sprintf("%s is given %d times; it may be given once", name, n))
		}
	}
	x.query.Values = query
	return nil
}

// refuseUnknown returns an Error for parameters that a route under /__admin does not
// have, and for a body that it does not take. So a GET that was meant as a PUT fails, as
// do parameters in a body.
func (x *exchange) refuseUnknown() error {
	rt := x.route
	hint := "it takes no parameters"
	if len(rt.parameters) > 0 {
		hint = "it takes the query parameters " + strings.Join(rt.parameters, ", ")
	} else if rt.operation == "showFault" {
		hint = "a fault is set with PUT (curl -X PUT)"
	}
	if unknown := unknownNames(x.query.Values, rt.parameters); len(unknown) > 0 {
		return badRequest(codeInvalidParameter,
			fmt.Sprintf("%s does not take the parameter %s; %s", rt.pattern, quote(unknown[0]), hint))
	}
	if len(x.body) > 0 && !rt.takesBody {
		return badRequest(codeInvalidBody, rt.pattern+" does not take a body; "+hint)
	}
	return nil
}

// noteNames notes in the entry the parameters that are ignored, and what the request
// uses that the contract does not have. An unknown parameter is no error under /v1, as
// the client may be newer than the service.
func (x *exchange) noteNames() {
	e := &x.entry
	e.Ignored = append(e.Ignored, unknownNames(x.query.Values, x.route.parameters)...)
	if x.r.Method == "HEAD" {
		e.Beyond = append(e.Beyond, "HEAD")
	}
	for _, name := range x.route.beyond {
		if x.query.Has(name) {
			e.Beyond = append(e.Beyond, name)
		}
	}
}

// listPets answers with a page of pets in ascending order of id and, if more
// follow, a Link to the next page (contract, sections 4.1 and 8; RFC 8288).
func listPets(x *exchange) (answer, error) {
	limit := cmp.Or(x.query.integer("limit", 1, 100), 20)
	after := x.query.integer("after", math.MinInt64, math.MaxInt64)
	status := x.query.choice("status", petStatuses)
	if x.query.err != nil {
		return answer{}, x.query.err
	}
	page, more := x.world.pets.list(status, after, int(limit))
	a := answer{status: 200, contentType: "application/json", body: encodePage(page)}
	if more {
		a.header = http.Header{"Link": {nextPage(x, page[len(page)-1].id)}}
	}
	return a, nil
}

// nextPage returns the Link to the page after the pet with this id. It has the known
// parameters of this page, with this id as after. They are valid, so they need no
// escaping.
func nextPage(x *exchange, id int64) string {
	link := "<" + x.r.URL.EscapedPath() + "?"
	for _, name := range x.route.parameters {
		if name != "after" && x.query.Has(name) {
			link += name + "=" + x.query.Get(name) + "&"
		}
	}
	return link + "after=" + strconv.FormatInt(id, 10) + `>; rel="next"`
}

// encodePage returns the JSON array of pets, and a newline.
func encodePage(pets []*storedPet) []byte {
	size := len("[]\n")
	for _, p := range pets {
		size += len(p.json) + len(",")
	}
	page := append(make([]byte, 0, size), '[')
	for i, p := range pets {
		if i > 0 {
			page = append(page, ',')
		}
		page = append(page, p.json...)
	}
	return append(page, "]\n"...)
}

// createPet adds a pet (contract, section 4.2).
func createPet(x *exchange) (answer, error) {
	if err := checkContentType(x.r.Header); err != nil {
		return answer{}, err
	}
	body, err := parseObject("the body", x.body)
	if err != nil {
		return answer{}, err
	}
	p := parsePet(body)
	x.entry.Ignored = append(x.entry.Ignored, unknownNames(body.members, nil)...)
	if body.err != nil {
		return answer{}, body.err
	}
	added, err := x.world.pets.add(p)
	if err != nil {
		return answer{}, err
	}
	a := jsonAnswer(201, added.json)
	a.header = http.Header{"Location": {"/v1/pets/" + strconv.FormatInt(added.id, 10)}}
	return a, nil
}

// checkContentType returns a 415 for a body whose headers say that it is not
// JSON in UTF-8. A body without a Content-Type is taken as JSON.
func checkContentType(h http.Header) error {
	coding := strings.Join(h["Content-Encoding"], ", ")
	if coding != "" && !strings.EqualFold(coding, "identity") {
		return newError(415, mismatch("Content-Encoding", quote(coding), "left out or identity"))
	}
	given := cmp.Or(strings.Join(h["Content-Type"], ", "), "application/json")
	media, params, err := mime.ParseMediaType(given) // which refuses a list of several
	charset := cmp.Or(params["charset"], "utf-8")
	if err != nil || media != "application/json" || !strings.EqualFold(charset, "utf-8") {
		return newError(415, mismatch("Content-Type", quote(given),
			"application/json, in UTF-8 (curl sends that with --json)"))
	}
	return nil
}

// getPet answers with one pet (contract, section 4.3).
func getPet(x *exchange) (answer, error) {
	id, err := parseInteger(invalidParameter, "petId", x.r.PathValue("petId"), math.MinInt64, math.MaxInt64)
	if err != nil {
		return answer{}, err
	}
	p := x.world.pets.get(id)
	if p == nil {
		return answer{}, newError(404, fmt.Sprintf("there is no pet %d", id))
	}
	return jsonAnswer(200, p.json), nil
}

// listOrders answers 501: the contract names the operation, and does not define
// it (section 4.4).
func listOrders(*exchange) (answer, error) {
	return answer{}, newError(501, "the contract names this operation without its payload")
}

// reset replaces the world. The pets of the new world come from the seed in the
// body or, without a body, from that of -seed.
func reset(x *exchange) (answer, error) {
	seed := x.service.seed
	if len(x.body) > 0 { // whatever its Content-Type: fetch and urllib label it as text or a form
		var err error
		if seed, err = readSeed(x.body); err != nil {
			return answer{}, err
		}
	}
	old := x.service.current.Swap(newWorld(seed))
	close(old.replaced)
	return answer{status: 204}, nil
}

// showFault answers with the standing fault and its counters, or {}.
func showFault(x *exchange) (answer, error) {
	standing := x.world.standing.Load()
	if standing == nil {
		return jsonAnswer(200, []byte("{}")), nil
	}
	return jsonAnswer(200, encodeJSON(standing.snapshot())), nil
}

// setFault replaces the standing fault, and answers with what was set.
func setFault(x *exchange) (answer, error) {
	state, faults, err := parseStandingFault(&x.query, x.service.faultOperations())
	if err != nil {
		return answer{}, err
	}
	x.world.setStanding(&standingFault{faults: faults, ended: make(chan struct{}), state: state})
	return jsonAnswer(200, encodeJSON(state)), nil
}

func clearFault(x *exchange) (answer, error) {
	x.world.setStanding(nil)
	return answer{status: 204}, nil
}

// showJournal answers with the requests in the journal whose ids are above the
// parameter after, and with the requests that wait, one request a line.
func showJournal(x *exchange) (answer, error) {
	after := x.query.integer("after", 0, math.MaxInt64)
	total := x.query.integer("total", 0, math.MaxInt64)
	maxWaiting := int64(math.MaxInt64)
	if x.query.Has("waiting") {
		maxWaiting = x.query.integer("waiting", 0, math.MaxInt64)
	}
	if x.query.err != nil {
		return answer{}, x.query.err
	}
	if err := awaitJournal(x, total, maxWaiting); err != nil {
		return answer{}, err
	}
	entries, waiting, meta := x.world.journal.read(after)
	body := appendLines([]byte(`{"requests":`), entries)
	body = appendLines(append(body, `,"waiting":`...), waiting)
	body = append(body, `,"meta":`...)
	body = append(body, encodeJSON(meta)...)
	body = append(body, "}\n"...)
	return answer{status: 200, contentType: "application/json", body: body}, nil
}

// awaitJournal waits until total requests have been recorded and no more than
// maxWaiting wait. It also returns when the journal is cleared, maxWait has passed since
// the request arrived, the client leaves, the world is replaced, or the process is to end.
func awaitJournal(x *exchange, total, maxWaiting int64) error {
	meta, waiting, changed := x.world.journal.watch()
	since := meta.Since
	for (meta.Total < total || waiting > maxWaiting) && meta.Since.Equal(since) {
		if err := x.sleep(maxWait-time.Since(x.arrived), changed); err != nil {
			return err
		}
		select {
		case <-changed:
			meta, waiting, changed = x.world.journal.watch()
		default:
			return nil // the time is up, or the world or the process ends
		}
	}
	return nil
}

// appendLines appends a JSON array, with one element a line. An empty one is [].
func appendLines[T any](b []byte, list []T) []byte {
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '\n')
		b = append(b, encodeJSON(v)...)
	}
	if len(list) > 0 {
		b = append(b, '\n')
	}
	return append(b, ']')
}

func clearJournal(x *exchange) (answer, error) {
	x.world.journal.clear()
	return answer{status: 204}, nil
}

var (
	//go:embed api/openapi.json
	openAPI []byte // describes the service to tools
	//go:embed page/index.html
	indexHTML []byte // the page
	//go:embed page/page.css
	pageCSS []byte
	//go:embed page/page.js
	pageJS []byte
)

// static returns an operation that answers with this body.
func static(contentType string, body []byte) func(*exchange) (answer, error) {
	a := answer{status: 200, contentType: contentType, body: body}
	return func(*exchange) (answer, error) { return a, nil }
}

// noIcon answers a browser, which asks for an icon by itself.
func noIcon(*exchange) (answer, error) { return answer{status: 204}, nil }

// newSentRequest returns what the journal has of the request.
func (x *exchange) newSentRequest() *sentRequest {
	h := x.r.Header.Clone()
	for i, value := range h["Authorization"] {
		// A comparison of whole words would miss a key in quotes or before a comma.
		h["Authorization"][i] = strings.ReplaceAll(value, x.service.key, "***")
	}
	if x.r.Host != "" {
		h["Host"] = []string{x.r.Host}
	}
	if x.r.TransferEncoding != nil {
		h["Transfer-Encoding"] = x.r.TransferEncoding
	}
	var applied *faultParameters
	if p := x.fault.faultParameters; p != (faultParameters{}) {
		applied = &p
	}
	return &sentRequest{
		Time:      timestamp{x.arrived},
		Method:    x.r.Method,
		URL:       x.r.RequestURI,
		Operation: x.route.operation,
		Headers:   headers(h),
		Body:      string(x.body),
		Fault:     applied,
	}
}

func (x *exchange) record(a answer) {
	e := &x.entry
	if e.sentRequest == nil {
		e.sentRequest = x.newSentRequest()
	}
	e.Status = a.status
	e.Seconds = secondsSince(x.arrived)
	e.AnswerHeaders = headers(x.w.Header())
	e.Answer = string(a.body[:min(len(a.body), maxAnswer)])
	e.Error = a.problem
	x.world.journal.add(*e)
}

// logRequest logs a recorded request, or one that may change the service through
// /__admin, on one line.
func (x *exchange) logRequest(a answer) {
	if !x.service.log.Enabled(x.r.Context(), slog.LevelInfo) {
		return // as by default, without the work below
	}
	mayChange := x.isAdmin() && x.r.Method != "GET" && x.r.Method != "HEAD"
	if !x.isRecorded() && !mayChange {
		return
	}
	attrs := []any{"method", x.r.Method, "url", x.r.RequestURI, "status", a.status}
	if a.problem != "" {
		attrs = append(attrs, "error", a.problem)
	}
	if applied := x.fault.String(); applied != "" {
		attrs = append(attrs, "fault", applied)
	}
	if x.entry.Ignored != nil {
		attrs = append(attrs, "ignored", x.entry.Ignored)
	}
	if x.entry.Beyond != nil {
		attrs = append(attrs, "beyond", x.entry.Beyond)
	}
	attrs = append(attrs, "client", x.r.RemoteAddr, "agent", x.r.UserAgent())
	x.service.log.Info("request", attrs...)
}

// send sends the answer, or closes the connection.
func (x *exchange) send(a answer) {
	var body []byte
	if a.status != 0 {
		x.w.WriteHeader(a.status)
		if x.r.Method != "HEAD" {
			body = a.body
		}
	}
	if a.sendBody != nil {
		a.sendBody(x, body)
	} else if body != nil {
		x.w.Write(body)
	}
	if a.status == 0 {
		panic(http.ErrAbortHandler) // closes the connection; net/http logs nothing
	}
}
