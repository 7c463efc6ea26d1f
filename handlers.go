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

// service is the state of the HTTP service.
type service struct {
	key      string
	seed     *store          // the pets of a new world; must not be modified
	latency  time.Duration   // delays requests under /v1, except those with a Petstore-Observer header
	stopping <-chan struct{} // closed when the process is to end
	log      *slog.Logger
	current  atomic.Pointer[world] // the world of new requests
}

// newService returns a service with its first world.
func newService(key string, seed *store, latency time.Duration, stopping <-chan struct{}, log *slog.Logger) *service {
	s := &service{key: key, seed: seed, latency: latency, stopping: stopping, log: log}
	s.current.Store(newWorld(seed))
	return s
}

// route maps requests to an operation.
type route struct {
	operation  string      // the name of the operation in api/openapi.json, if it has one
	pattern    string      // for http.ServeMux
	parameters []string    // of the query
	headers    http.Header // on all answers, once the key and the body have been accepted
	do         func(*exchange) error
}

// isFallback reports whether the route is that of the requests that no other
// route matches.
func (rt route) isFallback() bool { return rt.pattern == fallbackPattern }

// routes are the routes of the service. A path has the methods that are listed
// here, and HEAD where it has GET.
var routes = []route{
	{operation: "listPets", pattern: "GET /v1/pets", parameters: listParameters, do: listPets},
	{operation: "createPet", pattern: "POST /v1/pets", do: createPet},
	{operation: "getPet", pattern: "GET /v1/pets/{petId}", headers: deprecation, do: getPet},
	{pattern: "GET /v1/store/orders", do: listOrders},
	{operation: "reset", pattern: "POST /__admin/reset", do: reset},
	{operation: "showFault", pattern: "GET /__admin/fault", do: showFault},
	{operation: "setFault", pattern: "PUT /__admin/fault", parameters: standingFaultParameters, do: setFault},
	{operation: "clearFault", pattern: "DELETE /__admin/fault", do: clearFault},
	{operation: "showJournal", pattern: "GET /__admin/requests", parameters: []string{"total"}, do: showJournal},
	{operation: "clearJournal", pattern: "DELETE /__admin/requests", do: clearJournal},
	{pattern: "GET /healthz", do: static("application/json", []byte(`{"status":"ok"}`+"\n"))},
	{pattern: "GET /openapi.json", do: static("application/json", openAPI)},
	{pattern: "GET /{$}", do: static("text/html; charset=utf-8", indexHTML)},
}

// methods are the methods that routes have, and HEAD, in alphabetical order.
var methods = []string{"DELETE", "GET", "HEAD", "POST", "PUT"}

// deprecation holds the headers of getPet, which has been deprecated since 20
// November 2026 (RFC 9745), and will be removed in 2030 (RFC 8594; contract,
// section 9).
var deprecation = http.Header{
	"Deprecation": {"@1795132800"},
	"Sunset":      {"Thu, 05 Dec 2030 00:00:00 GMT"},
	"Link":        {`</v1/pets>; rel="successor-version"`},
}

// handler returns the service as an http.Handler.
func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range routes {
		mux.Handle(rt.pattern, s.handle(rt))
	}
	fallback := s.handle(route{
		pattern: fallbackPattern,
		do:      func(x *exchange) error { return refuse(x, mux) },
	})
	mux.Handle(fallbackPattern, fallback)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isClean(r.URL) {
			mux.ServeHTTP(w, r)
		} else {
			fallback.ServeHTTP(w, r) // the mux would redirect to the clean path
		}
	})
}

// fallbackPattern matches all requests that no route matches.
const fallbackPattern = "/"

// isClean reports whether a path is absolute, and has no empty, "." or ".."
// segment and no slash at its end. The root is clean.
func isClean(u *url.URL) bool {
	p := u.EscapedPath() // in which an escaped slash is not a slash
	if strings.HasSuffix(p, "/%2F") || strings.HasSuffix(p, "/%2f") {
		return false // http.ServeMux would take it for a slash at the end
	}
	return strings.HasPrefix(p, "/") && path.Clean(p) == p
}

// refuse returns a 405 if the path of the request has routes with other methods,
// and a 404 otherwise.
func refuse(x *exchange, mux *http.ServeMux) error {
	if allowed := allowedMethods(mux, x.r); len(allowed) > 0 {
		list := strings.Join(allowed, ", ")
		x.w.Header().Set("Allow", list)
		return newError(405, "this path allows "+list+" only")
	}
	given := cmp.Or(x.r.URL.EscapedPath(), x.r.RequestURI) // the target of CONNECT has no path
	return newError(404, "no such path: "+shorten(given)+"; the API is at /v1/pets, without a slash at the end; "+
		"there are also /__admin/reset, /__admin/fault and /__admin/requests, /openapi.json, and a page at /")
}

// allowedMethods returns the methods that the path of the request has. As the
// fallback matches every method, http.ServeMux does not find them itself.
func allowedMethods(mux *http.ServeMux, r *http.Request) []string {
	if !isClean(r.URL) {
		return nil
	}
	var allowed []string
	probe := &http.Request{Host: r.Host, URL: r.URL}
	for _, method := range methods {
		probe.Method = method
		if _, pattern := mux.Handler(probe); pattern != fallbackPattern {
			allowed = append(allowed, method)
		}
	}
	return allowed
}

// exchange is a request and the answer to it. Operations set the answer with
// reply or replyJSON, or return an error. finish sends it.
type exchange struct {
	service *service
	world   *world
	route   route
	r       *http.Request
	arrived time.Time  // when the headers of the request had arrived
	body    []byte     // of the request, once it has been read
	query   url.Values // of the request, once it has been parsed; nil without a query
	ignored []string   // names of unknown query parameters and body members, which the operation ignored

	fault      fault           // the fault that is applied to the request, or the zero fault
	faultEnded <-chan struct{} // closed when the standing fault is replaced or deleted; nil without one

	w       http.ResponseWriter
	status  int    // of the answer
	answer  []byte // the body of the answer
	dropped bool   // whether the connection is closed without an answer
	reason  string // the message of an Error, or that the client left
}

// handle is the middleware around every operation: it checks the API key,
// applies faults, turns errors into answers, and records the request.
func (s *service) handle(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{service: s, world: s.current.Load(), route: rt, r: r, arrived: time.Now(), w: w}
		if err := x.serve(); err != nil {
			x.fail(err)
		}
		x.finish()
	})
}

// serve takes the steps that all operations share, and then runs the operation.
// It returns the first error, or a panic as an error.
func (x *exchange) serve() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()

	h := x.w.Header()
	allowOrigins(h, x.r)
	if x.r.Method == "OPTIONS" { // taken for a preflight, which carries no key
		allowPreflight(h)
		x.reply(204, "", nil)
		return nil
	}
	isV1 := x.isUnder("/v1")
	if isV1 || x.isUnder("/__admin") {
		if err := requireKey(x.service.key, h, x.r); err != nil {
			return err
		}
	}
	if err := x.readBody(); err != nil {
		return err
	}
	maps.Copy(h, x.route.headers)
	if isV1 && !x.isObserver() {
		if err := x.applyFault(); err != nil {
			return err
		}
	}
	if err := x.parseQuery(); err != nil {
		return err
	}
	return x.route.do(x)
}

// Errors for which the connection is closed without an answer.
var (
	errClientLeft = errors.New("the client left before its answer")
	errNoAnswer   = errors.New("the fault skips the operation and the answer")
)

// fail turns an error into the answer. An error that is neither an Error nor one
// of errClientLeft and errNoAnswer is a bug: its text goes to the log, and not to
// the client.
func (x *exchange) fail(err error) {
	var e Error
	switch {
	case errors.Is(err, errNoAnswer):
		x.drop()
		return
	case errors.Is(err, errClientLeft):
		x.drop()
		x.reason = err.Error()
		return
	case errors.As(err, &e):
		e.Message = err.Error() // it may say more than e, such as the number of a pet
	default:
		x.service.log.Error("bug", "error", err, "method", x.r.Method, "url", x.r.RequestURI)
		e = newError(500, "the service has a bug; its log has the details")
	}
	x.reason = e.Message
	x.replyJSON(e.Status, encodeJSON(e))
}

// reply sets the answer.
func (x *exchange) reply(status int, contentType string, body []byte) {
	x.status, x.answer = status, body
	if contentType != "" {
		x.w.Header().Set("Content-Type", contentType)
	}
}

// replyJSON sets an answer whose body is JSON and a newline. It does not append
// to the JSON itself, as other requests may be using it.
func (x *exchange) replyJSON(status int, json []byte) {
	body := append(make([]byte, 0, len(json)+1), json...)
	x.reply(status, "application/json", append(body, '\n'))
}

// drop lets finish close the connection without an answer.
func (x *exchange) drop() { x.dropped = true }

// isUnder reports whether the path of the request is root or below it.
func (x *exchange) isUnder(root string) bool {
	return x.r.URL.Path == root || strings.HasPrefix(x.r.URL.Path, root+"/")
}

// isObserver reports whether the client asks not to be recorded, as the page
// does. Neither -latency nor faults apply to its request.
func (x *exchange) isObserver() bool {
	return len(x.r.Header.Values("Petstore-Observer")) > 0
}

// isRecorded reports whether the request goes into the journal and the log.
// Observers, preflights and requests for the service's own paths do not, so that
// observing the service does not disturb the record.
func (x *exchange) isRecorded() bool {
	switch x.r.URL.Path {
	case "/", "/openapi.json", "/healthz":
		return false
	}
	return !x.isUnder("/__admin") && !x.isObserver() && x.r.Method != "OPTIONS"
}

// maxBody is the size of the largest request body, in bytes.
const maxBody = 64 << 10

// readBody reads the body of the request. It must be called before any wait, as
// net/http does not notice that a client has left until the body has been read.
func (x *exchange) readBody() error {
	if x.r.ContentLength == 0 {
		return nil
	}
	if x.r.ContentLength > maxBody {
		return x.refuseBody()
	}
	body, err := io.ReadAll(io.LimitReader(x.r.Body, maxBody+1))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return newError(408, "the body did not arrive in time")
	}
	if err != nil {
		return badRequest(codeInvalidBody, "the body is cut short or badly chunked")
	}
	if len(body) > maxBody {
		return x.refuseBody()
	}
	x.body = body
	return nil
}

// refuseBody returns the Error for a body that is too large.
func (x *exchange) refuseBody() error {
	// net/http would read the rest of the body first, so close the connection.
	x.w.Header().Set("Connection", "close")
	message := fmt.Sprintf("the body is over %d bytes", maxBody)
	if x.route.operation == "reset" {
		message += "; put a larger seed into a file, and start with -seed"
	}
	return newError(413, message)
}

// wait blocks for d, or until one of these happens: until is closed, the world of
// the request is replaced, the process is to end, or the client closes the
// connection or its sending half. It returns errClientLeft in the last case, and
// nil otherwise. A nil until is never closed.
func (x *exchange) wait(d time.Duration, until <-chan struct{}) error {
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-until:
	case <-x.world.done:
	case <-x.service.stopping:
	case <-x.r.Context().Done():
	}
	if x.r.Context().Err() != nil {
		return errClientLeft
	}
	return nil
}

// applyFault takes the steps before the operation of a request under /v1: it
// chooses the fault, waits for the latency of the service and for the delay, and
// returns an error if the fault replaces the operation.
func (x *exchange) applyFault() error {
	if err := x.chooseFault(); err != nil {
		return err
	}
	if err := x.wait(x.service.latency, nil); err != nil {
		return err
	}
	if err := x.wait(x.fault.delay, x.faultEnded); err != nil {
		return err
	}
	if x.fault.status != 0 {
		return simulatedError(x.fault, x.w.Header())
	}
	if faultKinds[x.fault.Code].noOperation {
		return errNoAnswer
	}
	return nil
}

// chooseFault sets the fault of the request. A fault in the Prefer header takes
// precedence; the standing fault then does not count the request.
func (x *exchange) chooseFault() error {
	f, err := parsePrefer(x.r.Header.Values("Prefer"))
	if err != nil {
		return err
	}
	if f != (fault{}) {
		x.w.Header().Set("Preference-Applied", f.String())
		x.fault = f
	} else if standing := x.world.standing.Load(); standing != nil {
		x.fault = standing.next(x.route.operation)
		x.faultEnded = standing.ended
	}
	return nil
}

// simulatedError returns the Error of a fault with a status. It adds the
// headers of the Error to h. A simulated 401 is that of a wrong key.
func simulatedError(f fault, h http.Header) Error {
	e := newError(f.status, "simulated error, as requested")
	if e.Status == 401 {
		e.Code = codeInvalidToken
		h.Set("WWW-Authenticate", wrongKeyChallenge)
	}
	if f.RetryAfter != "" {
		h.Set("Retry-After", f.RetryAfter)
	} else if e.Status == 429 || e.Status == 503 {
		h.Set("Retry-After", "1")
	}
	return e
}

// parseQuery parses the query. A parameter of the route may be given once. Other
// parameters are ignored under /v1, as a client may be newer than the service;
// the journal names them. Under /__admin they are refused, so that a GET that was
// meant as a PUT fails.
func (x *exchange) parseQuery() error {
	rt := x.route
	if x.r.URL.RawQuery == "" || rt.isFallback() { // refuse reports the path or the method instead
		return nil
	}
	query, err := url.ParseQuery(x.r.URL.RawQuery) // URL.Query would drop what is malformed
	if err != nil {
		return badRequest(codeInvalidParameter, "the query is malformed: "+err.Error())
	}
	for _, name := range rt.parameters {
		if n := len(query[name]); n > 1 {
			return invalid(codeInvalidParameter, name, fmt.Sprintf("given %d times", n), "given once")
		}
	}
	unknown := unknownNames(query, rt.parameters)
	if len(unknown) > 0 && x.isUnder("/__admin") {
		return refuseParameter(rt, unknown[0])
	}
	x.query, x.ignored = query, unknown
	return nil
}

// unknownNames returns the sorted keys of given that are not known.
func unknownNames[V any](given map[string]V, known []string) []string {
	var unknown []string
	for name := range given {
		if !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// refuseParameter returns a 400 that says what the route takes instead, or which
// other method of the path takes the parameter.
func refuseParameter(rt route, name string) error {
	hint := "it takes none"
	if len(rt.parameters) > 0 {
		hint = "it takes " + strings.Join(rt.parameters, ", ")
	}
	_, target, _ := strings.Cut(rt.pattern, " ")
	for _, other := range routes {
		method, otherTarget, _ := strings.Cut(other.pattern, " ")
		if otherTarget == target && slices.Contains(other.parameters, name) {
			hint = fmt.Sprintf("%s does (curl -X %s)", other.pattern, method)
		}
	}
	return badRequest(codeInvalidParameter,
		fmt.Sprintf("%s does not take the parameter %s; %s", rt.pattern, shorten(name), hint))
}

// The bounds of the limit of listPets (contract, section 8).
const (
	defaultLimit = 20
	maxLimit     = 100
)

// listParameters are the parameters of listPets. A link to the next page keeps
// all of them except after.
var listParameters = []string{"limit", "status", "after"}

// listPets answers with a page of pets in ascending order of id and, if more
// follow, a Link to the next page (contract, section 4.1; RFC 8288).
func listPets(x *exchange) error {
	limit, err := integerParameter(x.query, "limit", defaultLimit, 1, maxLimit)
	if err != nil {
		return err
	}
	after, err := integerParameter(x.query, "after", 0, math.MinInt64, math.MaxInt64)
	if err != nil {
		return err
	}
	var status PetStatus
	if x.query.Has("status") {
		if status, err = parseStatus(codeInvalidParameter, x.query.Get("status")); err != nil {
			return err
		}
	}

	page, more := x.world.pets.list(status, after, int(limit))
	if more {
		x.w.Header().Set("Link", nextPage(x.query, page[len(page)-1].id))
	}
	x.reply(200, "application/json", encodePage(page))
	return nil
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

// nextPage returns the Link to the page after the pet with this id.
func nextPage(query url.Values, id int64) string {
	link := "</v1/pets?"
	for _, name := range listParameters {
		if name != "after" && query.Has(name) {
			link += name + "=" + url.QueryEscape(query.Get(name)) + "&"
		}
	}
	return link + "after=" + strconv.FormatInt(id, 10) + `>; rel="next"`
}

// createPet adds a pet (contract, section 4.2).
func createPet(x *exchange) error {
	if err := checkContentType(x.r.Header); err != nil {
		return err
	}
	members, err := parseObject("the body", x.body)
	if err != nil {
		return err
	}
	x.ignored = append(x.ignored, unknownNames(members, newPetMembers)...)
	p, err := parsePet(members)
	if err != nil {
		return err
	}
	added, err := x.world.pets.add(p)
	if err != nil {
		return err
	}
	x.w.Header().Set("Location", "/v1/pets/"+strconv.FormatInt(added.id, 10))
	x.replyJSON(201, added.json)
	return nil
}

// checkContentType returns a 415 for a body whose headers say that it is not
// JSON in UTF-8. A body without a Content-Type is taken as JSON.
func checkContentType(h http.Header) error {
	coding := strings.Join(h["Content-Encoding"], ", ")
	if coding != "" && !strings.EqualFold(coding, "identity") {
		return newError(415, mismatch("Content-Encoding", coding, "left out"))
	}
	given := cmp.Or(strings.Join(h["Content-Type"], ", "), "application/json")
	media, params, err := mime.ParseMediaType(given) // which refuses a list of several
	charset := cmp.Or(params["charset"], "utf-8")
	if err != nil || media != "application/json" || !strings.EqualFold(charset, "utf-8") {
		return newError(415, mismatch("Content-Type", given,
			"application/json, in UTF-8 (curl sends that with --json)"))
	}
	return nil
}

// getPet answers with one pet (contract, section 4.3).
func getPet(x *exchange) error {
	id, err := parseInteger(codeInvalidParameter, "petId", x.r.PathValue("petId"), math.MinInt64, math.MaxInt64)
	if err != nil {
		return err
	}
	p := x.world.pets.get(id)
	if p == nil {
		return newError(404, fmt.Sprintf("there is no pet %d", id))
	}
	x.replyJSON(200, p.json)
	return nil
}

// listOrders answers 501: the contract names the operation, and does not define
// it (section 4.4).
func listOrders(*exchange) error {
	return newError(501, "the contract names this operation without its payload")
}

// reset replaces the world. The pets of the new world come from the seed in the
// body or, without a body, from that of -seed.
func reset(x *exchange) error {
	seed := x.service.seed
	if len(x.body) > 0 {
		err := checkContentType(x.r.Header)
		if err != nil {
			return err
		}
		seed, err = readSeed(x.body)
		if err != nil {
			return err
		}
	}
	old := x.service.current.Swap(newWorld(seed))
	close(old.done)
	x.reply(204, "", nil)
	return nil
}

// showFault answers with the standing fault and its counters, or {}.
func showFault(x *exchange) error {
	if f := x.world.standing.Load(); f != nil {
		x.replyJSON(200, encodeJSON(f.snapshot()))
	} else {
		x.replyJSON(200, []byte("{}"))
	}
	return nil
}

// setFault replaces the standing fault, and answers with what was set.
func setFault(x *exchange) error {
	f, err := parseStandingFault(x.query)
	if err != nil {
		return err
	}
	// Encode first: once the fault is installed, other requests change its counters.
	x.replyJSON(200, encodeJSON(f.snapshot()))
	x.world.setStanding(f)
	return nil
}

// clearFault ends the standing fault.
func clearFault(x *exchange) error {
	x.world.setStanding(nil)
	x.reply(204, "", nil)
	return nil
}

// showJournal answers with the journal, one request a line. With the parameter
// total, it first waits until that many requests have been recorded, for up to
// maxWait. The answer may have fewer, if that or the world ends first.
func showJournal(x *exchange) error {
	wanted, err := integerParameter(x.query, "total", 0, 0, math.MaxInt64)
	if err != nil {
		return err
	}
	reached, cancel := x.world.journal.await(wanted)
	defer cancel()
	if err := x.wait(maxWait, reached); err != nil {
		return err
	}
	entries, total := x.world.journal.all()
	body := []byte(`{"requests":[`)
	for i, e := range entries {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, '\n')
		body = append(body, encodeJSON(e)...)
	}
	body = fmt.Appendf(body, "\n],\"meta\":{\"total\":%d}}\n", total)
	x.reply(200, "application/json", body)
	return nil
}

// clearJournal clears the journal.
func clearJournal(x *exchange) error {
	x.world.journal.clear()
	x.reply(204, "", nil)
	return nil
}

var (
	//go:embed api/openapi.json
	openAPI []byte // describes the service to tools
	//go:embed api/index.html
	indexHTML []byte // the page
)

// static returns an operation that answers with this body.
func static(contentType string, body []byte) func(*exchange) error {
	return func(x *exchange) error {
		x.reply(200, contentType, body)
		return nil
	}
}

// finish waits for the answer-delay, alters the answer as the fault requires,
// records the request, and sends the answer. It records first, so that a client
// that has its answer finds its request in the journal.
func (x *exchange) finish() {
	if err := x.wait(x.fault.answerDelay, x.faultEnded); err != nil {
		x.fail(err)
	}
	kind := faultKinds[x.fault.Code]
	if kind.alter != nil && !x.dropped {
		kind.alter(x)
	}
	x.record()
	x.deliver(kind)
	if x.dropped {
		panic(http.ErrAbortHandler) // closes the connection; net/http logs nothing
	}
}

// faultKind is how a fault with one of faultCodes works.
type faultKind struct {
	// noOperation means that the operation is skipped and no answer is sent.
	noOperation bool
	// alter, if it is not nil, changes or drops the answer before it is recorded.
	alter func(*exchange)
	// send sends the body. If it is nil, the body is sent at once. The body is nil
	// for HEAD and if the answer is dropped: even then, a stall has to wait, and
	// rst has to reset the connection.
	send func(x *exchange, body []byte)
}

// faultKinds has each of faultCodes. A fault with a status or without a code has
// the zero faultKind.
var faultKinds = map[string]faultKind{
	faultHangup:   {noOperation: true},
	faultRST:      {noOperation: true, send: (*exchange).resetConnection},
	faultLost:     {alter: (*exchange).drop},
	faultTruncate: {alter: (*exchange).dropUnlessHalf, send: (*exchange).sendHalf},
	faultStall:    {alter: (*exchange).dropUnlessHalf, send: (*exchange).stall},
	faultDrip:     {send: (*exchange).drip},
	faultHTML:     {alter: (*exchange).replyAsGateway},
}

// dropUnlessHalf drops the answer if its body is too short to be halved, or is
// not sent because the method is HEAD.
func (x *exchange) dropUnlessHalf() {
	if x.r.Method == "HEAD" || len(x.answer) < 2 {
		x.drop()
	}
}

// replyAsGateway replaces the answer, and the headers of the operation, with
// those of a gateway that cannot reach the service.
func (x *exchange) replyAsGateway() {
	maps.DeleteFunc(x.w.Header(), func(name string, _ []string) bool {
		return name != "Preference-Applied" && !strings.HasPrefix(name, "Access-Control-")
	})
	x.reply(502, "text/html", []byte(gatewayPage))
}

const gatewayPage = "<html><head><title>502 Bad Gateway</title></head><body>502 Bad Gateway</body></html>\n"

// deliver sends the answer, unless it is dropped.
func (x *exchange) deliver(kind faultKind) {
	var body []byte
	if !x.dropped {
		// Without a Content-Length, net/http would send a body over 2 KiB in chunks.
		x.w.Header().Set("Content-Length", strconv.Itoa(len(x.answer)))
		x.w.WriteHeader(x.status)
		if x.r.Method != "HEAD" {
			body = x.answer
		}
	}
	if kind.send != nil {
		kind.send(x, body)
	} else if len(body) > 0 { // for a dropped answer, even an empty Write would begin a 200
		x.w.Write(body)
	}
}

// sendHalf sends half of the body. As that is less than its Content-Length,
// net/http then closes the connection.
func (x *exchange) sendHalf(body []byte) {
	x.writeNow(body[:len(body)/2])
}

// stall sends half of the body, and lets the client wait for the rest before
// the connection is closed.
func (x *exchange) stall(body []byte) {
	x.sendHalf(body)
	x.wait(maxWait, x.faultEnded)
}

// drip sends the body in dripPieces pieces, one every dripInterval. Once the
// fault, the world or the process has ended, it sends the rest without delay.
func (x *exchange) drip(body []byte) {
	pieces := min(dripPieces, len(body)) // so that no piece is empty
	for i := range pieces {
		if i > 0 && x.wait(dripInterval, x.faultEnded) != nil {
			return
		}
		x.writeNow(body[len(body)*i/pieces : len(body)*(i+1)/pieces])
	}
}

// writeNow sends a part of the body without a delay.
func (x *exchange) writeNow(part []byte) {
	if len(part) > 0 {
		x.w.Write(part)
		http.NewResponseController(x.w).Flush()
	}
}

// resetConnection closes the connection with a TCP RST, and sends no body.
func (x *exchange) resetConnection([]byte) {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return // finish closes the connection in the usual way
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0) // discards unsent data, and makes Close send a RST
	}
	conn.Close()
}

// record adds the request to the journal, and logs it on one line.
func (x *exchange) record() {
	if !x.isRecorded() {
		return
	}
	status := x.status
	if x.dropped {
		status = 0
	}
	e := entry{
		Time:    timestamp{x.arrived},
		Method:  x.r.Method,
		URL:     x.r.RequestURI,
		Headers: x.recordedHeaders(),
		Body:    string(x.body),
		Status:  status,
		Seconds: math.Round(time.Since(x.arrived).Seconds()*1000) / 1000,
		Answer:  string(x.answer[:min(len(x.answer), maxAnswer)]),
		Error:   x.reason,
		Fault:   x.fault.String(),
		Ignored: x.ignored,
	}
	x.world.journal.add(e)

	if !x.service.log.Enabled(x.r.Context(), slog.LevelInfo) {
		return
	}
	attrs := []any{"method", e.Method, "url", e.URL, "status", e.Status}
	if e.Error != "" {
		attrs = append(attrs, "error", e.Error)
	}
	if e.Fault != "" {
		attrs = append(attrs, "fault", e.Fault)
	}
	x.service.log.Info("request", attrs...)
}

// recordedHeaders returns the headers of the request as net/http has them, with
// the key hidden in Authorization.
func (x *exchange) recordedHeaders() map[string]string {
	headers := make(map[string]string, len(x.r.Header)+1)
	for name, values := range x.r.Header {
		headers[name] = strings.Join(values, ", ")
	}
	if authorization, ok := headers["Authorization"]; ok {
		headers["Authorization"] = hideKey(authorization, x.service.key)
	}
	// net/http has moved these two out of the headers.
	if x.r.Host != "" {
		headers["Host"] = x.r.Host
	}
	if x.r.TransferEncoding != nil {
		headers["Transfer-Encoding"] = strings.Join(x.r.TransferEncoding, ", ")
	}
	return headers
}
