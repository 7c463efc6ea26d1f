package main

// This file holds the HTTP API, in the order in which a request passes through it:
// routing, the steps of respond, and the operations in the order of the routes.

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
	ctx       context.Context // of the process; done when it is to end
	key       string
	seed      *store // the pets of a new world; must not be modified
	log       *slog.Logger
	durations durations
	routes    []route
	mux       *http.ServeMux // leads to the routes and, from everywhere else, to noRoute

	current atomic.Pointer[world] // the world of new requests
	isUsed  atomic.Bool           // whether any request has come
}

// durations are how long things take. Tests shorten them.
type durations struct {
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
		durations: durations{
			headers: 5 * time.Second,
			read:    15 * time.Second,
			stall:   30 * time.Second,
			drip:    time.Second,
			journal: 30 * time.Second,
			stop:    900 * time.Millisecond, // so that all of a stop takes at most a second
		},
		mux: http.NewServeMux(),
	}
	for _, rt := range routes() {
		s.addRoute(rt)
	}
	s.handle(noRoute)
	s.current.Store(newWorld(ctx, seed))
	return s
}

func (s *service) addRoute(rt route) {
	s.routes = append(s.routes, rt)
	s.handle(&rt)
}

func (s *service) handle(rt *route) {
	s.mux.HandleFunc(rt.pattern, func(w http.ResponseWriter, r *http.Request) { s.respond(w, r, rt) })
}

// route maps the requests that a pattern matches to an operation.
type route struct {
	pattern    string      // of http.ServeMux, with a method, of which GET includes HEAD
	operation  string      // the name of the operation in api/openapi.json, if it has one
	parameters []string    // of the query
	beyond     []string    // those of them that the contract does not have
	takesBody  bool        // whether a request under /__admin may have a body
	headers    http.Header // of all answers but that of a gateway
	perform    func(*exchange) (answer, error)
}

func routes() []route {
	return []route{
		{pattern: "GET /v1/pets", operation: "listPets", perform: listPets,
			parameters: []string{"limit", "status", "after"}, beyond: []string{"after"}},
		{pattern: "POST /v1/pets", operation: "createPet", perform: createPet},
		{pattern: "GET /v1/pets/{petId}", operation: "getPet", perform: getPet, headers: deprecation},
		{pattern: "GET /v1/store/orders", perform: listOrders},

		{pattern: "POST /__admin/reset", operation: "reset", perform: reset, takesBody: true},
		{pattern: "GET /__admin/fault", operation: "showFault", perform: showFault},
		{pattern: "PUT /__admin/fault", operation: "setFault", perform: setFault,
			parameters: slices.Concat(faultParameters, []string{"operation", "skip", "times"})},
		{pattern: "DELETE /__admin/fault", operation: "clearFault", perform: clearFault},
		{pattern: "GET /__admin/requests", operation: "showJournal", perform: showJournal,
			parameters: []string{"after", "total", "waiting"}},
		{pattern: "DELETE /__admin/requests", operation: "clearJournal", perform: clearJournal},

		{pattern: "GET /healthz", perform: static("application/json", []byte(`{"status":"ok"}`+"\n"))},
		{pattern: "GET /openapi.json", perform: static("application/json", openAPI)},
		{pattern: "GET /{$}", perform: static("text/html; charset=utf-8", indexHTML), headers: pageHeaders},
		{pattern: "GET /page.css", perform: static("text/css; charset=utf-8", pageCSS), headers: pageHeaders},
		{pattern: "GET /page.js", perform: static("text/javascript; charset=utf-8", pageJS), headers: pageHeaders},
		{pattern: "GET /favicon.ico", perform: noIcon},
	}
}

// noRoute is the route of the requests that no other one matches.
var noRoute = &route{pattern: "/", perform: refuse}

// faultOperations returns the operations that a standing fault can be for.
func (s *service) faultOperations() []string {
	var operations []string
	for _, rt := range s.routes {
		_, path, _ := strings.Cut(rt.pattern, " ")
		if rt.operation != "" && isUnder(path, "/v1") {
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

// ServeHTTP answers OPTIONS, and finds the route of any other request.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.isUsed.Store(true)
	allowOrigins(w.Header(), r)
	if strings.HasPrefix(r.UserAgent(), "Mozilla/") || r.Header.Get("Origin") != "" { // a browser
		// On a connection that it has used before, it would send a request again if there is
		// no answer, even a POST, and show nothing of that.
		w.Header().Set("Connection", "close")
	}
	switch {
	case r.Method == "OPTIONS": // treated as a preflight, which carries no key
		allowPreflight(w.Header())
		w.WriteHeader(204)
	case !isClean(r.URL): // the mux would redirect most of these
		s.respond(w, r, noRoute)
	default:
		s.mux.ServeHTTP(w, r) // which calls respond with the route
	}
}

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

// respond answers a request, and puts it into the journal. It sends all pieces of the
// answer but the last, records the request, and then sends the last piece. So the journal
// shows how the request ended, and a client that has its whole answer finds its request
// there. This is the middleware of all operations: makeAnswer requires the key, if
// policyOf says so, and makes an Error of what fails.
func (s *service) respond(w http.ResponseWriter, r *http.Request, rt *route) {
	x := s.newExchange(w, r, rt)
	if x.isRecorded {
		x.world.journal.begin(x.entry)
		defer x.world.journal.end(x.entry) // if something panics before record
	}
	a, d := x.makeAnswer()
	x.writeHeader(a, d)
	last := x.sendPieces(&a, &d)
	x.record(a, d)
	x.log()
	x.sendLast(last, d)
}

// exchange is a request that is being answered.
type exchange struct {
	service *service
	world   *world // that of the arrival of the request
	route   *route
	policy
	w     http.ResponseWriter
	r     *http.Request
	entry *entry // the request in the journal, if it is recorded

	body     []byte         // of the request, once it has been read
	fault    fault          // of the request, once it has been chosen
	standing *standingFault // where the fault comes from; nil for Prefer
	query    arguments      // of the request, once it has been parsed
}

func (s *service) newExchange(w http.ResponseWriter, r *http.Request, rt *route) *exchange {
	x := &exchange{
		service: s,
		world:   s.current.Load(),
		route:   rt,
		policy:  policyOf(r, rt),
		w:       w,
		r:       r,
		entry:   &entry{},
	}
	if x.isRecorded {
		x.entry.sentRequest = sentRequest{
			Time:      timestamp{time.Now()},
			Method:    r.Method,
			URL:       r.RequestURI,
			Operation: rt.operation,
			Headers:   sentHeaders(r, s.key),
		}
	}
	return x
}

// sentHeaders returns the headers of a request with Host and Transfer-Encoding, which
// net/http keeps elsewhere, and with *** in place of the key in Authorization.
func sentHeaders(r *http.Request, key string) headers {
	h := maps.Clone(r.Header)
	if given := h["Authorization"]; given != nil {
		h["Authorization"] = hideKey(key, given)
	}
	if r.Host != "" {
		h["Host"] = []string{r.Host}
	}
	if r.TransferEncoding != nil {
		h["Transfer-Encoding"] = r.TransferEncoding
	}
	return headers(h)
}

// policy is what is done with a request, besides answering it.
type policy struct {
	needsKey   bool
	takesFault bool
	isRecorded bool
	isControl  bool // so unknown parameters are refused, and all but GET and HEAD are logged
}

// policyOf returns the policy for a request. Observers, such as the page, and requests
// under /__admin do not disturb the record.
func policyOf(r *http.Request, rt *route) policy {
	isObserver := r.Header["Petstore-Observer"] != nil
	switch p := r.URL.Path; {
	case isUnder(p, "/__admin"):
		return policy{needsKey: true, isControl: true}
	case isUnder(p, "/v1") && isObserver:
		return policy{needsKey: true}
	case isUnder(p, misplacedAdmin):
		return policy{needsKey: true, isRecorded: true}
	case isUnder(p, "/v1"):
		return policy{needsKey: true, isRecorded: true, takesFault: true}
	case rt == noRoute && !isObserver: // its client may have a wrong base URL
		return policy{isRecorded: true}
	}
	return policy{}
}

// misplacedAdmin is where a client looks for /__admin below its base URL. No fault is
// applied to its requests, and none is used up.
const misplacedAdmin = "/v1/__admin"

// answer is the answer to a request, as the journal shows it.
type answer struct {
	status      int
	header      header // besides those that all answers of the route have
	contentType string // empty without a body
	body        []byte // must not be modified
	retryAfter  string // the parameter of a fault, of which the header is made when it is sent
	problem     string // the message of an Error, or that the client left
	isGateway   bool   // whether it is that of a gateway, without the headers of the route
}

// header is a header of an answer. The zero header is none.
type header struct{ name, value string }

// delivery is how an answer is sent. The zero delivery is the usual one.
type delivery struct {
	pieces int           // into how many the body is divided, if there are several
	pause  time.Duration // after each piece but the last
	ending ending
}

// ending is how the last piece is sent.
type ending int

const (
	asUsual  ending = iota
	cutShort        // it is not sent, and the connection is closed
	noAnswer        // nothing is sent, and the connection is closed
	tcpReset        // nothing is sent, and the connection is reset (TCP RST)
)

// isSent reports whether the status and the headers are sent.
func (d delivery) isSent() bool { return d.ending == asUsual || d.ending == cutShort }

// jsonAnswer returns an answer whose body is this JSON and a newline. It does not
// append to the JSON, which other requests may be using.
func jsonAnswer(status int, text []byte) answer {
	return answer{status: status, contentType: "application/json", body: slices.Concat(text, []byte("\n"))}
}

// errorAnswer returns the answer that reports an Error.
func errorAnswer(e Error) answer {
	a := jsonAnswer(e.Status, encodeJSON(e))
	a.header, a.problem = e.header, e.Message
	return a
}

// makeAnswer makes the answer to a request, and decides how it is sent. If net/http
// notices that the client has left during the delay, the operation is not performed,
// although a standing fault has counted the request.
func (x *exchange) makeAnswer() (answer, delivery) {
	err := x.receive()
	x.world.journal.update(x.entry, x.body, x.fault, x.standing)
	if err != nil {
		return x.failure(err), delivery{}
	}
	if !x.wait(x.fault.delay) {
		return answer{problem: leftBefore}, delivery{ending: noAnswer}
	}
	code := cmp.Or(x.fault.code, noCode)
	var a answer
	if !code.instead {
		a = x.perform()
	}
	if code.change != nil {
		a = code.change(x.fault, a)
	}
	if !x.wait(x.fault.answerDelay) {
		a.problem = leftBefore
		return a, delivery{ending: noAnswer}
	}
	if code.deliver == nil {
		return a, delivery{}
	}
	size := len(a.body)
	if x.r.Method == "HEAD" {
		size = 0
	}
	return a, code.deliver(size, x.service.durations)
}

// What the journal says of a client that has left.
const (
	leftBefore = "the client left before its answer"
	leftDuring = "the client left before the end of its answer"
)

// receive reads the body, checks the key, and chooses the fault.
func (x *exchange) receive() error {
	if err := x.readBody(); err != nil {
		return err
	}
	if x.needsKey {
		if err := requireKey(x.service.key, x.r); err != nil {
			return err
		}
	}
	if x.takesFault {
		return x.chooseFault()
	}
	return nil
}

// readBody reads the body of the request. It must be called before an answer is sent: if
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

// failure returns the answer to a request that has failed. An error that is not an Error
// is a bug: its text goes only to the log.
func (x *exchange) failure(err error) answer {
	var e Error
	if errors.As(err, &e) {
		e.Message = err.Error() // it may say more than e, such as which pet of the seed
	} else {
		x.service.log.Error("bug", "error", err, "method", x.r.Method, "url", x.r.RequestURI)
		e = newError(500, "the service has a bug; its log has the details")
	}
	return errorAnswer(e)
}

// wait waits for d, or until the fault, the world or the process ends, or the client
// leaves. It reports false if the client has left: once net/http notices that it has closed
// the connection or its sending half, or that a write has failed.
func (x *exchange) wait(d time.Duration) bool {
	if d == 0 {
		return true
	}
	ended := x.world.ctx.Done()
	if x.standing != nil {
		ended = x.standing.ctx.Done() // also when the world ends
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ended:
	case <-x.r.Context().Done():
	}
	return x.r.Context().Err() == nil
}

// perform performs the operation. Whatever fails becomes an answer, which a fault can
// change.
func (x *exchange) perform() (a answer) {
	defer func() {
		if v := recover(); v != nil {
			a = x.failure(fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
		}
	}()
	if err := x.parseQuery(); err != nil {
		return x.failure(err)
	}
	a, err := x.route.perform(x)
	if err == nil && (a.status < 200 || a.status > 599) {
		err = fmt.Errorf("the operation has returned no error, and the status %d", a.status)
	}
	if err != nil {
		return x.failure(err)
	}
	return a
}

// parseQuery parses the query. A parameter of the route may be given at most once.
func (x *exchange) parseQuery() error {
	if x.route == noRoute {
		return nil // as the path or the method is the first error
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
	if x.isControl {
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
	e := x.entry
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

// writeHeader writes the status and the headers, which net/http sends with the first
// piece of the body.
func (x *exchange) writeHeader(a answer, d delivery) {
	h := x.w.Header()
	if !a.isGateway {
		maps.Copy(h, x.route.headers)
	}
	if a.header.name != "" {
		h.Set(a.header.name, a.header.value)
	}
	if value := retryAfterNow(a.retryAfter); value != "" {
		h.Set("Retry-After", value)
	}
	if len(a.body) > 0 {
		h.Set("Content-Type", a.contentType)
		// Without it, net/http would send a body over 2 KiB in chunks, and not notice that a
		// body is cut short.
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	if d.isSent() {
		x.w.WriteHeader(a.status)
	}
}

// sendPieces sends all pieces of the body but the last, which it returns. If the client
// leaves, a says so, and d ends the answer here: a client that has closed its sending half
// may still be reading, and would take the rest as on time.
func (x *exchange) sendPieces(a *answer, d *delivery) (last []byte) {
	last = a.body
	for n := d.pieces; n > 1; n-- {
		piece := last[:len(last)/n]
		last = last[len(piece):]
		if d.isSent() {
			x.w.Write(piece)
			http.NewResponseController(x.w).Flush()
		}
		if !x.wait(d.pause) {
			a.problem = leftBefore
			if d.isSent() {
				a.problem, d.ending = leftDuring, cutShort
			}
			break
		}
	}
	return last
}

// record puts the answer into the journal.
func (x *exchange) record(a answer, d delivery) {
	e := x.entry
	if d.isSent() {
		e.Status = a.status
	}
	e.AnswerHeaders = headers(x.w.Header()) // net/http sends a copy that WriteHeader has made
	e.Answer = string(a.body[:min(len(a.body), maxAnswer)])
	e.Error = a.problem
	x.world.journal.end(e)
}

// log logs a recorded request, or one that may change the service through /__admin, on
// one line.
func (x *exchange) log() {
	if !x.service.log.Enabled(x.r.Context(), slog.LevelInfo) {
		return // as by default, without the work below
	}
	mayChange := x.isControl && x.r.Method != "GET" && x.r.Method != "HEAD"
	if !x.isRecorded && !mayChange {
		return
	}
	e := x.entry
	attrs := []any{"method", x.r.Method, "url", x.r.RequestURI, "status", e.Status}
	if e.Error != "" {
		attrs = append(attrs, "error", e.Error)
	}
	if applied := x.fault.String(); applied != "" {
		attrs = append(attrs, "fault", applied)
	}
	if e.Ignored != nil {
		attrs = append(attrs, "ignored", e.Ignored)
	}
	if e.Beyond != nil {
		attrs = append(attrs, "beyond", e.Beyond)
	}
	attrs = append(attrs, "client", x.r.RemoteAddr, "agent", x.r.UserAgent())
	x.service.log.Info("request", attrs...)
}

// sendLast sends the last piece of the body, or ends the connection in its place. If less
// than the Content-Length has been sent then, net/http closes the connection.
func (x *exchange) sendLast(last []byte, d delivery) {
	switch d.ending {
	case asUsual:
		x.w.Write(last)
	case tcpReset:
		resetConnection(x.w)
	case noAnswer:
		panic(http.ErrAbortHandler) // closes the connection; net/http logs nothing
	}
}

// resetConnection closes the connection with a TCP RST.
func resetConnection(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // the connection is closed in the usual way
	}
	conn.(*net.TCPConn).SetLinger(0) // discards unsent data, and makes Close send a RST
	conn.Close()
}

// refuse fails for a request that no route matches: with a 405 if its path has another
// method, and with a 404 otherwise.
func refuse(x *exchange) (answer, error) {
	u := x.r.URL
	if methods := x.service.methodsOf(u); methods != "" {
		e := newError(405, "this path allows "+methods+" only")
		e.header = header{"Allow", methods}
		return answer{}, e
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

// methodsOf returns the methods of the routes for this URL, separated by commas.
func (s *service) methodsOf(u *url.URL) string {
	if !isClean(u) {
		return ""
	}
	var methods []string
	for _, rt := range s.routes {
		method, _, _ := strings.Cut(rt.pattern, " ")
		_, pattern := s.mux.Handler(&http.Request{Method: method, URL: u})
		if pattern == rt.pattern {
			methods = append(methods, strings.Replace(method, "GET", "GET, HEAD", 1))
		}
	}
	slices.Sort(methods)
	return strings.Join(methods, ", ")
}

// listPets answers with pets in ascending order of id and, if more follow, a Link to
// the next ones (contract, sections 4.1 and 8; RFC 8288).
func listPets(x *exchange) (answer, error) {
	limit := x.query.integer("limit", 1, 100, 20)
	after := x.query.integer("after", math.MinInt64, math.MaxInt64, 0)
	status := x.query.choice("status", petStatuses)
	if x.query.err != nil {
		return answer{}, x.query.err
	}
	pets, more := x.world.pets.list(status, after, int(limit))
	a := answer{status: 200, contentType: "application/json", body: encodePets(pets)}
	if more {
		a.header = header{"Link", nextLink(x, pets[len(pets)-1].id)}
	}
	return a, nil
}

// nextLink returns the Link to the pets after the one with this id. It has the known
// parameters of this request, with this id as after. They are valid, so they need no
// escaping.
func nextLink(x *exchange, id int64) string {
	link := "<" + x.r.URL.EscapedPath() + "?"
	for _, name := range x.route.parameters {
		if name != "after" && x.query.Has(name) {
			link += name + "=" + x.query.Get(name) + "&"
		}
	}
	return link + "after=" + strconv.FormatInt(id, 10) + `>; rel="next"`
}

// encodePets returns the JSON array of pets, and a newline.
func encodePets(pets []*storedPet) []byte {
	size := len("[]\n")
	for _, p := range pets {
		size += len(p.json) + len(",")
	}
	text := append(make([]byte, 0, size), '[')
	for i, p := range pets {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, p.json...)
	}
	return append(text, "]\n"...)
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
	a.header = header{"Location", "/v1/pets/" + strconv.FormatInt(added.id, 10)}
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
	held := x.world.journal.held(standing) // before the counters, so that it is not above them
	return jsonAnswer(200, standing.encode(held)), nil
}

// setFault replaces the standing fault, and answers with what was set.
func setFault(x *exchange) (answer, error) {
	standing, err := parseStandingFault(x.world.ctx, &x.query, x.service.faultOperations())
	if err != nil {
		return answer{}, err
	}
	a := jsonAnswer(200, standing.encode(0)) // before a request can match
	x.world.setStanding(standing)
	return a, nil
}

func clearFault(x *exchange) (answer, error) {
	x.world.setStanding(nil)
	return answer{status: 204}, nil
}

// showJournal answers with the journal, once it has as many requests as asked for, or
// few enough of them wait.
func showJournal(x *exchange) (answer, error) {
	after := x.query.integer("after", 0, math.MaxInt64, 0)
	total := x.query.integer("total", 0, math.MaxInt64, 0)
	maxWaiting := x.query.integer("waiting", 0, math.MaxInt64, math.MaxInt64)
	if x.query.err != nil {
		return answer{}, x.query.err
	}
	ctx, cancel := context.WithTimeout(x.r.Context(), x.service.durations.journal)
	defer cancel()
	defer context.AfterFunc(x.world.ctx, cancel)()
	x.world.journal.wait(ctx, total, maxWaiting)

	return answer{status: 200, contentType: "application/json", body: x.world.journal.encode(after)}, nil
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
