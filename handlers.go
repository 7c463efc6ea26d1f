package main

// This file holds the HTTP API, in the order in which a request passes through it:
// routing, the steps, and the operations in the order of the routes.

import (
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
	"net"
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

// service is a running petstore: what it was started with, and the current world. It is
// an http.Handler.
type service struct {
	ctx     context.Context // of the process; done when it is to end
	key     string
	seed    *store // the pets of a new world; must not be modified
	log     *slog.Logger
	times   times
	routes  []route
	mux     *http.ServeMux
	current atomic.Pointer[world] // the world of new requests; the only field that changes
}

// times are how long things take. Tests shorten them.
type times struct {
	headers time.Duration // for the headers of a request to arrive
	read    time.Duration // for the headers and the body
	stall   time.Duration // before the connection is closed
	drip    time.Duration // between two pieces
	journal time.Duration // the longest wait of showJournal
	stop    time.Duration // the longest wait for the requests in flight
}

func newService(ctx context.Context, key string, seed *store, log *slog.Logger) *service {
	s := &service{
		ctx:  ctx,
		key:  key,
		seed: seed,
		log:  log,
		times: times{
			headers: 5 * time.Second,
			read:    15 * time.Second,
			stall:   30 * time.Second,
			drip:    time.Second,
			journal: 30 * time.Second,
			stop:    10 * time.Second,
		},
		mux: http.NewServeMux(),
	}
	for _, rt := range routes() {
		s.addRoute(rt)
	}
	s.current.Store(newWorld(ctx, seed))
	return s
}

func (s *service) addRoute(rt route) {
	s.routes = append(s.routes, rt)
	s.mux.HandleFunc(rt.pattern(), func(w http.ResponseWriter, r *http.Request) {
		s.handle(w, r, rt)
	})
}

// route maps the requests with a method and a path to an operation.
type route struct {
	method     string      // GET includes HEAD
	path       string      // a pattern of http.ServeMux
	operation  string      // the name of the operation in api/openapi.json, if it has one
	parameters []string    // of the query
	beyond     []string    // those of them that the contract does not have
	takesBody  bool        // under /__admin: whether a request may have a body
	headers    http.Header // on all answers but that of the fault "html"
	isPage     bool        // whether a browser asks for it to show the page
	perform    func(*exchange) (answer, error)
}

func (rt route) pattern() string { return rt.method + " " + rt.path }

func routes() []route {
	return []route{
		{method: "GET", path: "/v1/pets", operation: "listPets", perform: listPets,
			parameters: []string{"limit", "status", "after"}, beyond: []string{"after"}},
		{method: "POST", path: "/v1/pets", operation: "createPet", perform: createPet},
		{method: "GET", path: "/v1/pets/{petId}", operation: "getPet", perform: getPet, headers: deprecation},
		{method: "GET", path: "/v1/store/orders", perform: listOrders},

		{method: "POST", path: "/__admin/reset", operation: "reset", perform: reset, takesBody: true},
		{method: "GET", path: "/__admin/fault", operation: "showFault", perform: showFault},
		{method: "PUT", path: "/__admin/fault", operation: "setFault", perform: setFault,
			parameters: slices.Concat(preferences, []string{"operation", "skip", "times"})},
		{method: "DELETE", path: "/__admin/fault", operation: "clearFault", perform: clearFault},
		{method: "GET", path: "/__admin/requests", operation: "showJournal", perform: showJournal,
			parameters: []string{"after", "total", "waiting"}},
		{method: "DELETE", path: "/__admin/requests", operation: "clearJournal", perform: clearJournal},

		{method: "GET", path: "/healthz", perform: static("application/json", []byte(`{"status":"ok"}`+"\n"))},
		{method: "GET", path: "/openapi.json", perform: static("application/json", openAPI)},
		{method: "GET", path: "/{$}", perform: static("text/html; charset=utf-8", indexHTML),
			headers: pageHeaders, isPage: true},
		{method: "GET", path: "/page.css", perform: static("text/css; charset=utf-8", pageCSS),
			headers: pageHeaders, isPage: true},
		{method: "GET", path: "/page.js", perform: static("text/javascript; charset=utf-8", pageJS),
			headers: pageHeaders, isPage: true},
		{method: "GET", path: "/favicon.ico", perform: noIcon, isPage: true},
	}
}

// faultOperations returns the operations that a standing fault can be for.
func (s *service) faultOperations() []string {
	var operations []string
	for _, rt := range s.routes {
		if rt.operation != "" && isUnder(rt.path, "/v1") {
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

// ServeHTTP answers a preflight, and lets handle answer any other request.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	allowOrigins(w.Header(), r)
	if r.Method == "OPTIONS" { // treated as a preflight, which carries no key
		allowPreflight(w.Header())
		if mayRepeat(r) {
			w.Header().Set("Connection", "close")
		}
		w.WriteHeader(204)
		return
	}
	refusal, pattern := s.mux.Handler(r)
	if pattern == "" || !isClean(r.URL) { // the mux would redirect most unclean paths
		s.handle(w, r, route{perform: refuse(refusal)})
		return
	}
	s.mux.ServeHTTP(w, r)
}

// mayRepeat reports whether the request is that of a browser, but for what the page of
// petstore reads for itself, which has no Origin. On a connection that it has used before,
// a browser would send a request again if there is no answer, even a POST, and show
// nothing of that.
func mayRepeat(r *http.Request) bool {
	isControl := isObserver(r) || isUnder(r.URL.Path, "/__admin")
	isOwn := isControl && r.Header["Origin"] == nil
	return strings.HasPrefix(r.UserAgent(), "Mozilla/") && !isOwn
}

// isObserver reports whether the client asks not to be recorded, as the page
// does. No fault is applied to its request.
func isObserver(r *http.Request) bool { return r.Header["Petstore-Observer"] != nil }

// isUnder reports whether the path p is root or below it.
func isUnder(p, root string) bool {
	rest, ok := strings.CutPrefix(p, root)
	return ok && (rest == "" || rest[0] == '/')
}

// isClean reports whether a path is absolute, and has no empty, "." or ".."
// segment and no slash at its end. The root is clean.
func isClean(u *url.URL) bool {
	p := u.EscapedPath() // in which an escaped slash is not a slash
	return strings.HasPrefix(p, "/") && path.Clean(p) == p
}

// refuse returns an operation for a request that no route matches. It fails with a 405 if
// the answer of http.ServeMux, the refusal, has the header Allow, and with a 404 otherwise.
func refuse(refusal http.Handler) func(*exchange) (answer, error) {
	return func(x *exchange) (answer, error) {
		u := x.r.URL
		if isClean(u) {
			h := headerWriter{}
			refusal.ServeHTTP(h, x.r)
			if methods := h.Header().Get("Allow"); methods != "" {
				return answer{}, newError(405, "this path allows "+methods+" only").with("Allow", methods)
			}
		}
		given := cmp.Or(u.EscapedPath(), x.r.RequestURI) // CONNECT and absolute targets may have no path
		hint := "/openapi.json has the paths, such as /v1/pets, and there is a page at /"
		switch {
		case isUnder(u.Path, misplacedAdmin):
			hint = "/__admin is beside /v1, and not below it"
		case isUnder(u.Path, "/v1/v1"):
			hint = "/v1 stands twice, as the base URL ends with it"
		}
		return answer{}, newError(404, "no such path: "+shorten(given)+"; "+hint)
	}
}

// misplacedAdmin is where a client looks for /__admin below its base URL. No fault is
// applied to its requests, and none is used up.
const misplacedAdmin = "/v1/__admin"

// headerWriter is an http.ResponseWriter that keeps the headers alone.
type headerWriter http.Header

func (h headerWriter) Header() http.Header         { return http.Header(h) }
func (h headerWriter) Write(p []byte) (int, error) { return len(p), nil }
func (h headerWriter) WriteHeader(int)             {}

// exchange is a request that is being answered.
type exchange struct {
	service *service
	world   *world
	route   route // without a method if no route matches
	w       http.ResponseWriter
	r       *http.Request
	arrived time.Time // when the headers of the request had been read

	isAdmin    bool // whether it controls petstore
	needsKey   bool
	takesFault bool
	isRecorded bool
	closes     bool // whether the connection is closed after the answer

	body  []byte    // of the request, once it has been read
	query arguments // of the request, once it has been parsed
	fault fault     // the fault that is applied to the request, or the zero fault
	entry entry     // the request in the journal; its sentRequest is nil until it waits or is recorded
}

// newExchange decides what happens to a request. All requests under /v1 but those of
// observers are recorded, and so are others that no route matches, as their clients may
// have a wrong base URL. Observers and requests under /__admin do not disturb the record.
func (s *service) newExchange(w http.ResponseWriter, r *http.Request, rt route) *exchange {
	isV1, isAdmin := isUnder(r.URL.Path, "/v1"), isUnder(r.URL.Path, "/__admin")
	isClient, isRouted := !isObserver(r), rt.method != ""
	return &exchange{
		service:    s,
		world:      s.current.Load(),
		route:      rt,
		w:          w,
		r:          r,
		arrived:    time.Now(),
		isAdmin:    isAdmin,
		needsKey:   isV1 || isAdmin,
		takesFault: isV1 && isClient && !isUnder(r.URL.Path, misplacedAdmin),
		isRecorded: isClient && (isV1 || !isRouted && !isAdmin),
		closes:     mayRepeat(r) && !rt.isPage,
	}
}

// answer is the answer to a request.
type answer struct {
	status      int         // noAnswer if none is sent
	header      http.Header // besides those that writeHeader adds; nil for most
	retryAfter  retryAfter  // of a simulated error
	contentType string
	body        []byte   // must not be modified
	more        [][]byte // what follows the body; nil for all operations but showJournal
	problem     string   // for the journal and the log: the message of an Error, or that the client left

	// What is sent of the body: slow in pieces, with a pause after each, and then rest.
	// newAnswer makes rest the whole body.
	slow    [][]byte
	pause   time.Duration
	rest    []byte
	isReset bool // whether the connection is closed with a TCP RST
}

// noAnswer is the status of an answer that is not sent: the connection is closed.
const noAnswer = 0

func newAnswer(status int, contentType string, body []byte) answer {
	return answer{status: status, contentType: contentType, body: body, rest: body}
}

// jsonAnswer returns an answer whose body is this JSON and a newline. It does not
// append to the JSON, which other requests may be using.
func jsonAnswer(status int, text []byte) answer {
	return newAnswer(status, "application/json", slices.Concat(text, []byte("\n")))
}

// handle answers a request. The part of an answer that a fault sends slowly comes before
// the record, and the rest after it. So the journal shows how the request ended, and a
// client that has its whole answer finds its request there.
func (s *service) handle(w http.ResponseWriter, r *http.Request, rt route) {
	x := s.newExchange(w, r, rt)
	a := x.try((*exchange).serve)
	a = x.delayAnswer(a)
	x.writeHeader(a)
	a = x.sendSlowly(a)
	x.record(a)
	x.log(a)
	x.sendRest(a)
}

// try returns the answer of f. An error, or a panic, becomes an answer here. This is so
// for serve, and within it for perform, whose answer a fault can change.
func (x *exchange) try(f func(*exchange) (answer, error)) (a answer) {
	defer func() {
		if v := recover(); v != nil {
			a = x.failure(fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
		}
	}()
	a, err := f(x)
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
		return answer{status: noAnswer, problem: err.Error()}
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

// serve makes the answer. If net/http notices that the client has left during the delay
// of the fault, the operation is not performed, although a standing fault has counted the
// request.
func (x *exchange) serve() (answer, error) {
	if err := x.readBody(); err != nil {
		return answer{}, err
	}
	if err := x.checkKey(); err != nil {
		return answer{}, err
	}
	if err := x.chooseFault(); err != nil {
		return answer{}, err
	}
	if err := x.wait(x.fault.delay); err != nil {
		return answer{}, err
	}
	if x.fault.answer != nil {
		return x.fault.answer(x), nil
	}
	return x.perform(), nil
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
	maxDiscarded = 1 << 20  // bytes of a larger body that are read and dropped after the first maxBody + 1
)

func (x *exchange) checkKey() error {
	if !x.needsKey {
		return nil
	}
	return requireKey(x.service.key, x.r)
}

// perform parses the query, and performs the operation.
func (x *exchange) perform() answer {
	return x.try(func(x *exchange) (answer, error) {
		if err := x.parseQuery(); err != nil {
			return answer{}, err
		}
		return x.route.perform(x)
	})
}

// parseQuery parses the query. A parameter of the route may be given at most once.
func (x *exchange) parseQuery() error {
	if x.route.method == "" {
		return nil // as no route matches, the path or the method is the first error
	}
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
	if x.isAdmin {
		return x.refuseUnknown()
	}
	x.noteNames()
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
			fmt.Sprintf("%s does not take the parameter %s; %s", rt.pattern(), quote(unknown[0]), hint))
	}
	if len(x.body) > 0 && !rt.takesBody {
		return badRequest(codeInvalidBody, rt.pattern()+" does not take a body; "+hint)
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

// delayAnswer waits for the answer-delay of the fault. If the client leaves, no answer is
// sent, and the journal shows the one that was made.
func (x *exchange) delayAnswer(a answer) answer {
	if err := x.wait(x.fault.answerDelay); err != nil {
		a.status, a.problem = noAnswer, err.Error()
	}
	return a
}

// writeHeader writes the status and the headers, which net/http sends with the first
// part of the body.
func (x *exchange) writeHeader(a answer) {
	h := x.w.Header()
	maps.Copy(h, x.route.headers)
	maps.Copy(h, a.header)
	if value := a.retryAfter.header(); value != "" {
		h.Set("Retry-After", value)
	}
	if a.contentType != "" {
		length := len(a.body)
		for _, part := range a.more {
			length += len(part)
		}
		h.Set("Content-Type", a.contentType)
		// Without it, net/http would send a body over 2 KiB in chunks.
		h.Set("Content-Length", strconv.Itoa(length))
	}
	if x.closes {
		h.Set("Connection", "close")
	}
	if a.status != noAnswer {
		x.w.WriteHeader(a.status)
	}
}

// sendSlowly sends the slow pieces of the body. To a client that has left, no more is
// sent: it may still be reading, and take the rest as on time.
func (x *exchange) sendSlowly(a answer) answer {
	if len(a.slow) > 0 {
		x.listAsWaiting() // before the client has a piece, and a write can block
	}
	for _, piece := range a.slow {
		if a.status != noAnswer {
			x.w.Write(piece)
			http.NewResponseController(x.w).Flush()
		}
		if err := x.wait(a.pause); err != nil {
			a.rest, a.problem = nil, "the client left before the end of its answer"
			break
		}
	}
	return a
}

// record puts the request and its answer into the journal.
func (x *exchange) record(a answer) {
	if !x.isRecorded {
		return
	}
	e := &x.entry
	e.sentRequest = x.sentRequest()
	e.Status = a.status
	e.Seconds = secondsSince(x.arrived)
	e.AnswerHeaders = headers(x.w.Header()) // net/http sends a copy that WriteHeader has made
	e.Answer = string(a.body[:min(len(a.body), maxAnswer)])
	e.Error = a.problem
	x.world.journal.add(*e)
}

// sentRequest returns what the journal has of the request. It must be called only after
// the body has been read and the fault has been chosen, or one of these has failed.
func (x *exchange) sentRequest() *sentRequest {
	if x.entry.sentRequest != nil {
		return x.entry.sentRequest
	}
	// The journal keeps these headers, to copy none. That is safe, as net/http reads
	// nothing from them once the handler has begun (golang.org/issue/14940).
	h := x.r.Header
	if given := h["Authorization"]; given != nil {
		h["Authorization"] = hideKey(x.service.key, given)
	}
	if x.r.Host != "" {
		h["Host"] = []string{x.r.Host}
	}
	if x.r.TransferEncoding != nil {
		h["Transfer-Encoding"] = x.r.TransferEncoding
	}
	var applied *faultParameters
	if p := x.fault.faultParameters; p.areGiven() {
		applied = &p
	}
	x.entry.sentRequest = &sentRequest{
		Time:      timestamp{x.arrived},
		Method:    x.r.Method,
		URL:       x.r.RequestURI,
		Operation: x.route.operation,
		Headers:   headers(h),
		Body:      string(x.body),
		Fault:     applied,
	}
	return x.entry.sentRequest
}

// log logs a recorded request, or one that may change the service through /__admin, on
// one line.
func (x *exchange) log(a answer) {
	if !x.service.log.Enabled(x.r.Context(), slog.LevelInfo) {
		return // as by default, without the work below
	}
	mayChange := x.isAdmin && x.r.Method != "GET" && x.r.Method != "HEAD"
	if !x.isRecorded && !mayChange {
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

// sendRest sends the rest of the answer, or closes the connection. If less than the
// Content-Length has been sent then, net/http closes it, too.
func (x *exchange) sendRest(a answer) {
	if a.isReset {
		resetConnection(x.w)
	}
	if a.status == noAnswer {
		panic(http.ErrAbortHandler) // closes the connection; net/http logs nothing
	}
	x.w.Write(a.rest)
	for _, part := range a.more {
		x.w.Write(part)
	}
}

// resetConnection closes the connection with a TCP RST.
func resetConnection(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // the connection is closed in the usual way
	}
	conn.(*net.TCPConn).SetLinger(0) // discards unsent data, and makes Close send a RST
	conn.Close()
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
	a := newAnswer(200, "application/json", encodePage(page))
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
	old := x.service.current.Swap(newWorld(x.service.ctx, seed))
	old.end()
	return answer{status: 204}, nil
}

// showFault answers with the standing fault and its counters, or {}.
func showFault(x *exchange) (answer, error) {
	standing := x.world.standing.Load()
	if standing == nil {
		return jsonAnswer(200, []byte("{}")), nil
	}
	state := standing.snapshot()
	state.Held = x.world.journal.held(standing)
	return jsonAnswer(200, encodeJSON(state)), nil
}

// setFault replaces the standing fault, and answers with what was set.
func setFault(x *exchange) (answer, error) {
	state, faults, err := parseStandingFault(&x.query, x.service.faultOperations())
	if err != nil {
		return answer{}, err
	}
	x.world.setStanding(newStandingFault(x.world.ctx, faults, state))
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
	ctx, cancel := context.WithTimeout(x.r.Context(), x.service.times.journal)
	defer cancel()
	defer context.AfterFunc(x.world.ctx, cancel)()
	x.world.journal.wait(ctx, total, maxWaiting)

	entries, waiting, meta := x.world.journal.read(after)
	parts := appendLines(nil, entries)
	parts = append(parts, []byte(`,"waiting":`))
	parts = appendLines(parts, waiting)
	parts = append(parts, []byte(`,"meta":`), encodeJSON(meta), []byte("}\n"))
	a := newAnswer(200, "application/json", []byte(`{"requests":`))
	a.more = parts
	return a, nil
}

// appendLines appends the parts of a JSON array, with one element a line. An empty one is
// []. A single text that grows would take twice the memory.
func appendLines[T any](parts [][]byte, list []T) [][]byte {
	before, end := "[\n", "[]"
	for _, v := range list {
		parts = append(parts, []byte(before), encodeJSON(v))
		before, end = ",\n", "\n]"
	}
	return append(parts, []byte(end))
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
	a := newAnswer(200, contentType, body)
	return func(*exchange) (answer, error) { return a, nil }
}

// noIcon answers a browser, which asks for an icon by itself.
func noIcon(*exchange) (answer, error) { return answer{status: 204}, nil }
