package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"hash/maphash"
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
	"unicode/utf8"
)

// service is a running petstore: what it was started with, and the current world. It is
// an http.Handler.
type service struct {
	ctx       context.Context // of the process; done when it is to end
	key       string
	seed      *store // the pets of a new world; must not be modified
	log       *slog.Logger
	durations durations
	mux       *http.ServeMux // leads to the routes and, from everywhere else, to unknownRoute
	journal   *journal       // and the current world
	wasCalled atomic.Bool    // whether any request has come
}

// durations are how long things take. Tests shorten them.
type durations struct {
	readHeader time.Duration // for the headers of a request to arrive
	read       time.Duration // for the headers and the body
	second     time.Duration // the unit of effect.pause
	journal    time.Duration // the longest wait of showJournal
	stop       time.Duration // the longest wait for the requests in flight
}

func newService(ctx context.Context, key string, seed *store, log *slog.Logger) *service {
	s := &service{
		ctx:  ctx,
		key:  key,
		seed: seed,
		log:  log,
		durations: durations{
			readHeader: 5 * time.Second,
			read:       15 * time.Second,
			second:     time.Second,
			journal:    30 * time.Second,
			stop:       maxStop - 100*time.Millisecond,
		},
		mux:     http.NewServeMux(),
		journal: newJournal(newWorld(ctx, seed)),
	}
	allowed := map[string][]string{} // methods by path
	for _, rt := range routes() {
		s.addRoute(rt)
		method, path, _ := strings.Cut(rt.pattern, " ")
		allowed[path] = append(allowed[path], strings.Replace(method, "GET", "GET, HEAD", 1))
	}
	for path, methods := range allowed {
		slices.Sort(methods)
		s.addRoute(&route{pattern: path, handle: refuseMethod(strings.Join(methods, ", ")), refuses: true})
	}
	s.addRoute(unknownRoute)
	return s
}

func (s *service) addRoute(rt *route) {
	s.mux.HandleFunc(rt.pattern, func(w http.ResponseWriter, r *http.Request) { s.respond(w, r, rt) })
}

// route maps the requests that a pattern matches to an operation.
type route struct {
	pattern    string      // of http.ServeMux, in which GET includes HEAD
	operation  string      // the name of the operation in api/openapi.json, if it has one
	parameters []string    // of the query; the operation gets no others
	takesSeed  bool        // whether its body is a seed; under /__admin, no other body is taken
	header     http.Header // of its answers, unless a gateway seems to have made them
	handle     handler     // the operation
	refuses    bool        // whether handle refuses all requests, with a 404 or a 405
}

// A handler performs an operation, or returns an error, which becomes an answer.
type handler func(*exchange) (answer, error)

func routes() []*route {
	ofList := []string{"limit", "status", "after"}
	return []*route{
		{pattern: "GET /v1/pets", operation: "listPets", handle: listPets, parameters: ofList},
		{pattern: "POST /v1/pets", operation: "createPet", handle: createPet},
		{pattern: "GET /v1/pets/{petId}", operation: "getPet", handle: getPet, header: deprecation},
		{pattern: "GET /v1/store/orders", handle: listOrders},

		{pattern: "POST /__admin/reset", operation: "reset", handle: reset, takesSeed: true, parameters: []string{"test"}},
		{pattern: "GET /__admin/pets", operation: "showPets", handle: listPets, parameters: ofList},
		{pattern: "GET /__admin/fault", operation: "showFault", handle: showFault},
		{pattern: "PUT /__admin/fault", operation: "setFault", handle: setFault, parameters: standingFaultNames},
		{pattern: "DELETE /__admin/fault", operation: "clearFault", handle: clearFault},
		{pattern: "GET /__admin/requests", operation: "showJournal", handle: showJournal,
			parameters: []string{"after", "total", "waiting", "history"}},
		{pattern: "DELETE /__admin/requests", operation: "clearJournal", handle: clearJournal},

		{pattern: "GET /healthz", handle: static("application/json", []byte(`{"status":"ok"}`+"\n"))},
		{pattern: "GET /openapi.json", handle: static("application/json", openAPI)},
		{pattern: "GET /{$}", handle: static("text/html; charset=utf-8", indexHTML), header: pageHeader},
		{pattern: "GET /page.css", handle: static("text/css; charset=utf-8", pageCSS), header: pageHeader},
		{pattern: "GET /page.js", handle: static("text/javascript; charset=utf-8", pageJS), header: pageHeader},
		{pattern: "GET /facts.js", handle: static("text/javascript; charset=utf-8", factsJS), header: pageHeader},
	}
}

// unknownRoute is the route of the paths that no other route has.
var unknownRoute = &route{pattern: "/", handle: refusePath, refuses: true}

// faultOperations returns the operations that a standing fault can be for.
func faultOperations() []string {
	var operations []string
	for _, rt := range routes() {
		if rt.operation != "" && strings.Contains(rt.pattern, " /v1/") {
			operations = append(operations, rt.operation)
		}
	}
	return operations
}

// deprecation is the header of getPet, an operation that will be removed in 2030
// (RFC 8594; contract, section 9). The contract does not date the deprecation (RFC
// 9745), so 20 November 2026 is petstore's own.
var deprecation = http.Header{
	"Deprecation": {"@1795132800"},
	"Sunset":      {"Thu, 05 Dec 2030 00:00:00 GMT"},
	"Link":        {`</v1/pets>; rel="successor-version"`},
}

// pageHeader is the header of the page and its files. The page knows the key, so it
// runs no script but its own, and no other page can frame it.
var pageHeader = http.Header{
	"Content-Security-Policy": {"default-src 'none'; script-src 'self'; style-src 'self'; " +
		"img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
	"Cross-Origin-Opener-Policy": {"same-origin"},
	"Referrer-Policy":            {"no-referrer"},
	"X-Content-Type-Options":     {"nosniff"},
}

// baseHeader is the header of all answers.
var baseHeader = http.Header{
	// A browser would keep a 410, even a simulated one, and not send the request again.
	"Cache-Control": {"no-store"},
	// A cache would give a page of another origin an answer without the header of
	// allowAllOrigins.
	"Vary": {"Origin"},
}

// ServeHTTP answers OPTIONS, and finds the route of any other request.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.wasCalled.Store(true)
	if s.ctx.Err() != nil {
		// The stop has begun. Before Go 1.25, net/http could take the connection for an idle
		// one, and close it before the answer is sent. Newer versions drop the request, too.
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), baseHeader)
	allowAllOrigins(w.Header(), r)
	if strings.HasPrefix(r.UserAgent(), "Mozilla/") || r.Header.Get("Origin") != "" { // a browser
		// On a connection that it has used before, it would send a request again if there is
		// no answer, even a POST, and show nothing of that.
		w.Header().Set("Connection", "close")
	}
	switch {
	case r.Method == "OPTIONS": // treated as a preflight, which carries no key
		allowPreflight(w.Header())
		w.WriteHeader(http.StatusNoContent)
	case !isClean(r.URL): // the mux would redirect most of these
		s.respond(w, r, unknownRoute)
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

// respond is the path of a request, and the middleware of all operations: makeAnswer requires
// the key where one is needed, and makes an Error of what fails. The request is recorded before
// its answer is complete, so a client that has its whole answer finds it in the journal.
func (s *service) respond(w http.ResponseWriter, r *http.Request, rt *route) {
	x := s.newExchange(w, r, rt)
	defer x.recordPanic()
	a := x.makeAnswer()
	x.setHeader(a)
	last := x.send(a)
	x.record(a)
	x.finish(last)
}

// exchange is a request that is being answered.
type exchange struct {
	service *service
	world   *world // the current one when the request arrived or, under /__admin, when its body has arrived; else nil
	route   *route
	area    area
	w       http.ResponseWriter
	r       *http.Request
	entry   *entry    // in the journal; nil if the request is not to be recorded
	body    []byte    // nil until it has been read
	fault   *fault    // noFault until another one is chosen
	query   arguments // the parameters of the route, for its operation
	outcome outcome   // for the journal, so far
}

func (s *service) newExchange(w http.ResponseWriter, r *http.Request, rt *route) *exchange {
	x := &exchange{service: s, route: rt, area: areaOf(r, rt), w: w, r: r, fault: noFault}
	if x.area.isRecorded {
		x.entry = &entry{
			Method:    r.Method,
			URL:       r.RequestURI,
			Client:    r.RemoteAddr,
			Operation: rt.operation,
			Headers:   sentHeader(r, s.key),
			isPartial: r.ContentLength != 0, // until the body has been read
		}
		x.world = s.journal.add(x.entry)
	}
	return x
}

// recordPanic records a request that a panic has kept from being recorded. It does not recover:
// net/http logs the panic, and closes the connection.
func (x *exchange) recordPanic() {
	if x.entry != nil && x.entry.outcome == nil {
		x.record(answer{errorText: hasBug})
	}
}

// record records and logs what has become of the request, and its answer, even if that was not
// sent. After that, nothing may change the header of the answer, which the journal keeps.
func (x *exchange) record(a answer) {
	o := &x.outcome
	switch {
	case !o.hasLeft:
		o.Error = a.errorText
	case o.Status == 0:
		o.Error = clientLeft + " before its answer"
	default:
		o.Error = clientLeft + " before the end of its answer"
	}
	if x.entry != nil {
		o.Answer = firstBytes(a.body)
		if a.status != 0 { // an answer was made
			o.AnswerHeaders = journalHeader(x.w.Header()) // net/http sends a copy, made by WriteHeader
		}
		x.service.journal.end(x.entry, *o)
	}
	x.log()
}

// clientLeft begins the error of a request whose client gave up.
const clientLeft = "the client left"

// sentHeader returns the headers of a request with Host and Transfer-Encoding, which
// net/http keeps elsewhere, and without the secret part of Authorization.
func sentHeader(r *http.Request, key string) journalHeader {
	h := maps.Clone(r.Header)
	if given := h["Authorization"]; given != nil {
		h["Authorization"] = hideCredentials(key, given)
	}
	if r.Host != "" {
		h["Host"] = []string{r.Host}
	}
	if r.TransferEncoding != nil {
		h["Transfer-Encoding"] = r.TransferEncoding
	}
	return journalHeader(h)
}

// area is how the requests for a part of the paths are treated.
type area struct {
	needsKey   bool
	isRecorded bool // in the journal
	getsFaults bool
	isAdmin    bool // under /__admin, where parameters and bodies that a route does not take are refused
}

// misplacedAdmin is where a test with the base URL of clients looks for /__admin.
const misplacedAdmin = "/v1/__admin"

// areaOf returns the area of a request. Outside of /v1 and /__admin, a request that is refused may
// be the mistake of a client with a wrong base URL. It is recorded if it has an Authorization. What
// browsers ask for by themselves, such as /favicon.ico, has none.
func areaOf(r *http.Request, rt *route) area {
	p := r.URL.Path
	switch {
	case isUnder(p, "/__admin"), isUnder(p, misplacedAdmin):
		return area{needsKey: true, isAdmin: true}
	case isUnder(p, "/v1"):
		return area{needsKey: true, isRecorded: true, getsFaults: true}
	case rt.refuses && r.Header["Authorization"] != nil:
		return area{isRecorded: true}
	}
	return area{}
}

// answer is the answer to a request. The zero answer is none.
type answer struct {
	status      int
	header      http.Header // besides that of the route
	contentType string      // empty without a body
	body        []byte      // may be shared with other answers, so it must not be modified
	errorText   string      // for the journal: the message, if it is an Error
	fromGateway bool        // whether it is to look as if a gateway had made it, without the header of the route
}

// jsonAnswer returns an answer whose body is this JSON and a newline. It does not
// append to the JSON, which other requests may be using.
func jsonAnswer(status int, text []byte) answer {
	return answer{status: status, contentType: "application/json", body: slices.Concat(text, []byte("\n"))}
}

// errorAnswer returns the answer that reports an Error.
func errorAnswer(e Error) answer {
	a := jsonAnswer(e.Status, encodeJSON(e))
	a.header, a.errorText = e.header, e.Message
	return a
}

// makeAnswer makes the answer to the request. If the client leaves during the delay, there is
// none, and the operation is not performed, although a standing fault has counted the request.
func (x *exchange) makeAnswer() (a answer) {
	if err := x.admit(); err != nil {
		return x.failure(err)
	}
	x.wait(x.fault.delay)
	if x.outcome.hasLeft {
		return answer{}
	}
	effect := x.fault.effect
	if !effect.skipsOperation {
		a = x.perform()
	}
	x.wait(x.fault.answerDelay)
	if effect.change != nil { // after the wait, as a Retry-After can be a date
		a = effect.change(x.fault, a)
	}
	return a
}

// admit checks the key, reads the body, and chooses the fault. The body is read even if
// the key is wrong, but then the error is that of the key (contract, section 5).
func (x *exchange) admit() error {
	var keyErr error
	if x.area.needsKey {
		keyErr = requireKey(x.service.key, x.r)
	}
	maxSize := int64(maxBody)
	if keyErr == nil && x.route.takesSeed {
		maxSize = maxSeed
	}
	bodyErr := x.readBody(maxSize)
	switch {
	case keyErr != nil:
		return keyErr
	case bodyErr != nil:
		return bodyErr
	case x.area.getsFaults:
		return x.chooseFault()
	case x.area.isAdmin:
		x.world = x.service.journal.currentWorld()
	}
	return nil
}

// readBody reads the body of the request, of up to maxSize bytes. It must be called before
// an answer is sent: if net/http closes a connection on which a part of a body is left, the
// answer may be lost in a reset. It must also be called before any wait, as net/http does
// not notice that a client has left until the body has been read.
func (x *exchange) readBody(maxSize int64) error {
	if x.r.ContentLength == 0 {
		return nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, maxSize))
	if x.entry != nil {
		x.service.journal.update(func() {
			x.entry.Body = firstBytes(body)
			x.entry.isPartial = err != nil
			if rest := body[len(x.entry.Body):]; len(rest) > 0 {
				x.entry.rest = uint32(maphash.Bytes(restSeed, rest))
			}
		})
	}
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		io.CopyN(io.Discard, x.r.Body, maxDiscarded)
		return newError(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is over %d bytes", maxSize))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return newError(http.StatusRequestTimeout, "the body did not arrive in time")
	case err != nil:
		return badRequest(codeInvalidBody, "the body is cut short or badly chunked") // mostly as the client has left
	}
	x.body = body
	return nil
}

// The limits of requests, in bytes.
const (
	maxHeader    = 16 << 10
	maxBody      = 64 << 10
	maxSeed      = 4 << 20 // of a reset
	maxDiscarded = 1 << 20 // of the rest of a body that is too large, which is read and dropped
)

// failure returns the answer to a request that has failed. An error that is not an Error
// is a bug: its text goes only to the log.
func (x *exchange) failure(err error) answer {
	var e Error
	if errors.As(err, &e) {
		e.Message = err.Error() // it may say more than e, such as which pet of the seed
	} else {
		x.service.log.Error("bug", "error", err, "method", x.r.Method, "url", x.r.RequestURI)
		e = newError(http.StatusInternalServerError, hasBug)
	}
	return errorAnswer(e)
}

// hasBug is what clients and the journal get of a bug.
const hasBug = "the service has a bug; its standard error has the details"

// wait waits for d, or until the fault is released or the client leaves. It notes whether the
// client has left: net/http notices when that closes the connection or its sending half, and
// when a write fails. Then nothing more may be sent, as a client that has closed its sending half
// may still be reading, and would take the rest as on time. If d is 0, wait does nothing.
func (x *exchange) wait(d time.Duration) {
	if d == 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.fault.released.Done():
	case <-x.r.Context().Done():
	}
	x.outcome.hasLeft = x.r.Context().Err() != nil
}

// perform performs the operation. Whatever fails becomes an answer, which a fault can change.
func (x *exchange) perform() (a answer) {
	defer func() {
		if v := recover(); v != nil {
			a = x.failure(fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
		}
	}()
	if err := x.parseQuery(); err != nil {
		return x.failure(err)
	}
	a, err := x.route.handle(x)
	if err != nil {
		return x.failure(err)
	}
	return a
}

// parseQuery parses the query. A parameter of the route may be given at most once.
func (x *exchange) parseQuery() error {
	if x.route.refuses {
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
	x.query = arguments{given: query, listed: x.route.parameters}
	unknown := unknownNames(query, x.route.parameters)
	if x.area.isAdmin {
		return x.refuseUnknown(unknown)
	}
	// This is no error, as the client may be newer than the service.
	x.outcome.Ignored = append(x.outcome.Ignored, unknown...)
	return nil
}

// refuseUnknown returns an Error for parameters that a route under /__admin does not
// have, and for a body that it does not take. So a GET that was meant as a PUT fails, as
// do parameters in a body.
func (x *exchange) refuseUnknown(unknown []string) error {
	var code, what string
	switch {
	case len(unknown) > 0:
		code, what = codeInvalidParameter, "the parameter "+quote(unknown[0])
	case len(x.body) > 0 && !x.route.takesSeed:
		code, what = codeInvalidBody, "a body"
	default:
		return nil
	}
	takes := "no parameters"
	if names := x.route.parameters; len(names) > 0 {
		takes = "the query parameters " + strings.Join(names, ", ")
	}
	return badRequest(code, fmt.Sprintf("%s does not take %s; it takes %s", x.route.pattern, what, takes))
}

// setHeader sets the header of an answer.
func (x *exchange) setHeader(a answer) {
	h := x.w.Header()
	if !a.fromGateway {
		maps.Copy(h, x.route.header)
	}
	maps.Copy(h, a.header)
	if len(a.body) > 0 {
		h.Set("Content-Type", a.contentType)
		// Without it, net/http would send a body over 2 KiB in chunks, and not notice that a
		// body is cut short.
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
}

// ending is how a request ends, unless its client leaves before.
type ending int

const (
	endComplete ending = iota // the answer is sent to its end
	endClosed                 // the connection is closed, and the client gets no more than what was sent
	endReset                  // as endClosed, with a TCP RST
)

// send sends an answer as the code of the fault asks for, unless the client has left. It does
// not send the piece that completes the answer, but returns it. If the fault cuts the body, and
// nothing is left of it, as of a HEAD, the status is not sent either.
func (x *exchange) send(a answer) (last []byte) {
	if x.outcome.hasLeft {
		return nil
	}
	e := x.fault.effect
	body := a.body[:len(a.body)*(100-e.cut)/100]
	if x.r.Method == "HEAD" {
		body = nil
	}
	if e.cut == 0 || len(body) > 0 {
		x.w.WriteHeader(a.status) // net/http sends it with the first piece
		x.outcome.Status = a.status
	}
	for n := min(e.pieces, len(body)); n > 1; n-- { // n pieces are left
		size := len(body) / n
		x.sendPiece(body[:size])
		body = body[size:]
	}
	if e.end == endComplete {
		return body
	}
	x.sendPiece(body)
	return nil
}

// sendPiece sends a piece of the body at once, and makes the pause that follows it. It does
// nothing if the client has left.
func (x *exchange) sendPiece(piece []byte) {
	if x.outcome.hasLeft {
		return
	}
	if len(piece) > 0 {
		x.w.Write(piece)
		http.NewResponseController(x.w).Flush()
	}
	x.wait(time.Duration(x.fault.effect.pause) * x.service.durations.second)
}

// finish sends the last piece of an answer, or ends the connection.
func (x *exchange) finish(last []byte) {
	switch {
	case x.outcome.hasLeft:
		// nothing more may be sent
	case x.fault.effect.end == endComplete:
		x.w.Write(last)
		return
	case x.fault.effect.end == endReset:
		resetTCP(x.w)
	}
	panic(http.ErrAbortHandler) // closes the connection, of which net/http logs nothing
}

// log logs, on one line, a request that is recorded, or one under /__admin that may change
// something.
func (x *exchange) log() {
	mayChange := x.area.isAdmin && x.r.Method != "GET" && x.r.Method != "HEAD"
	if !x.service.log.Enabled(x.r.Context(), slog.LevelInfo) || !x.area.isRecorded && !mayChange {
		return
	}
	attrs := []any{"method", x.r.Method, "url", x.r.RequestURI, "status", x.outcome.Status}
	if x.outcome.Error != "" {
		attrs = append(attrs, "error", x.outcome.Error)
	}
	if applied := x.fault.String(); applied != "" {
		attrs = append(attrs, "fault", applied)
	}
	if x.outcome.Ignored != nil {
		attrs = append(attrs, "ignored", x.outcome.Ignored)
	}
	attrs = append(attrs, "client", x.r.RemoteAddr, "agent", x.r.UserAgent())
	x.service.log.Info("request", attrs...)
}

// refuseMethod returns an operation that fails as the path has these methods only.
func refuseMethod(methods string) handler {
	e := newError(http.StatusMethodNotAllowed, "this path allows "+methods+" only")
	e.header = http.Header{"Allow": {methods}}
	return func(*exchange) (answer, error) { return answer{}, e }
}

// refusePath fails as there is no such path.
func refusePath(x *exchange) (answer, error) {
	u := x.r.URL
	given := cmp.Or(u.EscapedPath(), x.r.RequestURI) // CONNECT and absolute targets may have no path
	hint := "/openapi.json has the paths, such as /v1/pets, and there is a page at /"
	switch {
	case isUnder(u.Path, misplacedAdmin):
		hint = "/__admin is beside /v1, and not below it"
	case isUnder(u.Path, "/v1/v1"):
		hint = "/v1 stands twice, as the base URL ends with it"
	}
	return answer{}, newError(http.StatusNotFound, "no such path: "+shorten(given)+"; "+hint)
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
	a := answer{status: http.StatusOK, contentType: "application/json", body: encodePets(pets)}
	if more {
		a.header = http.Header{"Link": {nextLink(x, pets[len(pets)-1].id)}}
	}
	return a, nil
}

// nextLink returns the Link to the pets after the one with this id. It has the parameters
// of this request, with this id as after. They are valid, so they need no escaping.
func nextLink(x *exchange, id int64) string {
	link := "<" + x.r.URL.EscapedPath() + "?"
	for _, name := range x.route.parameters {
		if value, isGiven := x.query.lookup(name); isGiven && name != "after" {
			link += name + "=" + value + "&"
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
	x.outcome.Ignored = append(x.outcome.Ignored, unknownNames(body.members, nil)...)
	if body.err != nil {
		return answer{}, body.err
	}
	added, err := x.world.pets.add(p)
	if err != nil {
		return answer{}, err
	}
	x.outcome.Pet = added.id
	a := jsonAnswer(http.StatusCreated, added.json)
	a.header = http.Header{"Location": {"/v1/pets/" + strconv.FormatInt(added.id, 10)}}
	return a, nil
}

// checkContentType returns a 415 for a body whose headers say that it is not
// JSON in UTF-8 (contract, section 4.2).
func checkContentType(h http.Header) error {
	coding := strings.Join(h["Content-Encoding"], ", ")
	if coding != "" && !strings.EqualFold(coding, "identity") {
		return newError(http.StatusUnsupportedMediaType, mismatch("Content-Encoding", quote(coding), "left out or identity"))
	}
	given := "missing"
	values := strings.Join(h["Content-Type"], ", ")
	if values != "" {
		given = quote(values)
	}
	media, params, err := mime.ParseMediaType(values) // which refuses a list of several
	charset := cmp.Or(params["charset"], "utf-8")
	if err != nil || media != "application/json" || !strings.EqualFold(charset, "utf-8") {
		return newError(http.StatusUnsupportedMediaType, mismatch("Content-Type", given,
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
		return answer{}, newError(http.StatusNotFound, fmt.Sprintf("there is no pet %d", id))
	}
	return jsonAnswer(http.StatusOK, p.json), nil
}

// listOrders answers 501: the contract names the operation, and does not define it (section 4.4).
func listOrders(*exchange) (answer, error) {
	return answer{}, newError(http.StatusNotImplemented, "the contract names this operation without its payload")
}

// maxTestName is the length of the longest name of a test, in characters.
const maxTestName = 200

// reset replaces the world, and begins a period of the test that the query names. The pets of the
// new world come from the seed in the body or, without a body, from that of -seed.
func reset(x *exchange) (answer, error) {
	test := x.query.text("test")
	if utf8.RuneCountInString(test) > maxTestName {
		return answer{}, invalidParameter("test", test, fmt.Sprintf("a text of up to %d characters", maxTestName))
	}
	seed := x.service.seed
	if len(x.body) > 0 { // whatever its Content-Type: fetch and urllib label it as text or a form
		var err error
		if seed, err = readSeed(x.body); err != nil {
			return answer{}, err
		}
	}
	old := x.service.journal.reset(newWorld(x.service.ctx, seed), test)
	old.setStanding(nil) // as some of its requests may have yet to get a fault
	old.cancel()
	return answer{status: http.StatusNoContent}, nil
}

// showFault answers with the standing fault and its counters, or {}.
func showFault(x *exchange) (answer, error) {
	standing := x.world.standing.Load()
	if standing == nil {
		return jsonAnswer(http.StatusOK, []byte("{}")), nil
	}
	return jsonAnswer(http.StatusOK, standing.encode()), nil
}

// setFault replaces the standing fault, and answers with what was set.
func setFault(x *exchange) (answer, error) {
	standing, err := parseStandingFault(x.world.ctx, &x.query)
	if err != nil {
		return answer{}, err
	}
	a := jsonAnswer(http.StatusOK, standing.encode()) // before a request can match
	x.world.setStanding(standing)
	return a, nil
}

func clearFault(x *exchange) (answer, error) {
	x.world.setStanding(nil)
	return answer{status: http.StatusNoContent}, nil
}

// showJournal answers with the journal, once it has as many requests as asked for and few
// enough of them wait, or the longest wait is over.
func showJournal(x *exchange) (answer, error) {
	after := x.query.integer("after", 0, math.MaxInt64, 0)
	total := x.query.integer("total", 0, math.MaxInt64, 0)
	maxWaiting := x.query.integer("waiting", 0, math.MaxInt64, math.MaxInt64)
	history := x.query.choice("history", []string{"false", "true"})
	if x.query.err != nil {
		return answer{}, x.query.err
	}
	ctx, cancel := context.WithTimeout(x.r.Context(), x.service.durations.journal)
	defer cancel()
	ignoreStop := context.AfterFunc(x.service.ctx, cancel)
	defer ignoreStop()
	p, isDue := x.service.journal.wait(ctx, total, maxWaiting)
	if !isDue && x.r.Context().Err() != nil {
		// The client has left, so the journal, which may be large, is not encoded.
		return answer{}, newError(http.StatusRequestTimeout, clientLeft+" before its answer")
	}
	if history == "true" {
		p = nil // for all periods
	}
	part := x.service.journal.read(p, after)
	return answer{status: http.StatusOK, contentType: "application/json", body: part.encode()}, nil
}

func clearJournal(x *exchange) (answer, error) {
	x.service.journal.clear()
	return answer{status: http.StatusNoContent}, nil
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
	//go:embed page/facts.js
	factsJS []byte
)

// static returns an operation that answers with this body.
func static(contentType string, body []byte) handler {
	a := answer{status: http.StatusOK, contentType: contentType, body: body}
	return func(*exchange) (answer, error) { return a, nil }
}
