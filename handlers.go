package main

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

// api is the service.
type api struct {
	key      string
	seed     *store          // the pets of a new world; nobody may change it
	latency  time.Duration   // of every request under /v1 that has the key
	stopping context.Context // done when the process is to end
	log      *slog.Logger
	current  atomic.Pointer[world]
}

// newAPI returns the service with its first world.
func newAPI(key string, seed *store, latency time.Duration, stopping context.Context, log *slog.Logger) *api {
	a := &api{key: key, seed: seed, latency: latency, stopping: stopping, log: log}
	a.current.Store(newWorld(seed))
	return a
}

// handler returns the service as one handler. This file goes on in the order in which a request passes it.
func (a *api) handler() http.Handler {
	router := newRouter()
	behindKey := requireKey(a.key, router)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{api: a, world: a.current.Load(), r: r, arrived: time.Now(), w: w, status: 200}
		defer x.finish()
		allowOrigins(x, r)
		switch {
		case r.Method == http.MethodOptions: // a preflight, which carries no key
			answerPreflight(x)
		case x.isAPI(), x.isAdmin():
			behindKey.ServeHTTP(x, r)
		default:
			router.ServeHTTP(x, r)
		}
	})
}

// exchange is a request and its answer. As an http.ResponseWriter, it collects the answer: what becomes of it is
// decided in finish.
type exchange struct {
	api     *api
	world   *world // that the request belongs to, whatever is reset meanwhile
	r       *http.Request
	arrived time.Time  // when its headers had come
	body    []byte     // of the request, once it is read
	query   url.Values // parsed; nil without one
	fault   fault      // that strikes the request, or the empty one

	w       http.ResponseWriter // of net/http: finish writes to it; before, only its Header is used
	status  int                 // of the answer: 200 at first; 0 for none, and finish closes the connection
	answer  []byte              // its body
	message string              // of an Error, or why there is no answer
}

func (x *exchange) Header() http.Header { return x.w.Header() }

// WriteHeader begins the answer anew: what an operation that has failed had written of its body is dropped.
func (x *exchange) WriteHeader(status int) { x.status, x.answer = status, x.answer[:0] }

func (x *exchange) Write(p []byte) (int, error) {
	x.answer = append(x.answer, p...)
	return len(p), nil
}

// tell notes the message of an Error: see writeError.
func (x *exchange) tell(message string) { x.message = message }

func (x *exchange) isAPI() bool   { return x.isUnder("/v1") }
func (x *exchange) isAdmin() bool { return x.isUnder("/__admin") }

func (x *exchange) isUnder(root string) bool {
	return x.r.URL.Path == root || strings.HasPrefix(x.r.URL.Path, root+"/")
}

// pagePrefer is the Prefer header of the page's own requests under /v1. The delay of nothing spares them the
// standing fault.
const pagePrefer = "delay=0, by=page"

// isOfClient tells whether the journal and the log have the request. To look on, by the page or otherwise, changes
// nothing there, nor do the preflights of browsers.
func (x *exchange) isOfClient() bool {
	isAside := x.isAdmin() || slices.Contains([]string{"/", "/openapi.json", "/healthz"}, x.r.URL.Path)
	return !isAside && x.r.Method != http.MethodOptions && strings.Join(x.r.Header["Prefer"], "\n") != pagePrefer
}

// route is an operation, and the http.Handler of the requests for it. Its name is that in the contract and in
// api/openapi.json.
type route struct {
	operation, pattern string
	parameters         []string // of the query
	do                 func(*exchange) error
}

// routes are those of the service. A path has the methods that are listed here, and HEAD beside GET; its other methods
// are answered 405, and other paths 404.
var routes = []route{
	{"listPets", "GET /v1/pets", listParameters, (*exchange).listPets},
	{"createPet", "POST /v1/pets", nil, (*exchange).createPet},
	{"getPet", "GET /v1/pets/{petId}", nil, (*exchange).getPet},
	{"", "GET /v1/store/orders", nil, (*exchange).listOrders},
	{"reset", "POST /__admin/reset", nil, (*exchange).reset},
	{"showFault", "GET /__admin/fault", nil, (*exchange).showFault},
	{"setFault", "PUT /__admin/fault", faultParameters, (*exchange).setFault},
	{"clearFault", "DELETE /__admin/fault", nil, (*exchange).clearFault},
	{"showJournal", "GET /__admin/requests", nil, (*exchange).showJournal},
	{"clearJournal", "DELETE /__admin/requests", nil, (*exchange).clearJournal},
	{"", "GET /healthz", nil, static("application/json", []byte(`{"status":"ok"}`+"\n"))},
	{"", "GET /openapi.json", nil, static("application/json", openAPI)},
	{"", "GET /{$}", nil, static("text/html; charset=utf-8", indexHTML)},
}

// newRouter returns the handler of all routes, and of what has none.
func newRouter() http.Handler {
	mux, unmatched := http.NewServeMux(), http.NewServeMux()
	methods := map[string][]string{} // by the path of a pattern
	for _, rt := range routes {
		mux.Handle(rt.pattern, rt)
		method, target, _ := strings.Cut(rt.pattern, " ")
		methods[target] = append(methods[target], method)
		if method == http.MethodGet {
			methods[target] = append(methods[target], http.MethodHead)
		}
	}
	// In mux, the pattern of a 405, which has no method, would conflict with a route like GET /v1/pets/count.
	mux.Handle("/", unmatched)
	for target, allowed := range methods {
		slices.Sort(allowed)
		unmatched.Handle(target, route{do: refuseMethod(strings.Join(allowed, ", "))})
	}
	notFound := route{do: refusePath}
	unmatched.Handle("/", notFound)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := r.URL.Path; strings.HasPrefix(p, "/") && path.Clean(p) == p {
			mux.ServeHTTP(w, r)
		} else {
			notFound.ServeHTTP(w, r) // the mux would redirect to the clean path
		}
	})
}

// ServeHTTP answers the request of w, which is its exchange.
func (rt route) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	x := w.(*exchange)
	err := rt.serve(x)
	var e Error
	switch {
	case errors.As(err, &e):
		e.Message = err.Error() // with what was wrapped around it
		writeError(x, e)
	case err != nil:
		panic(err) // a bug: no client should see what it says
	}
}

// serve does what every route does first, in this order, and then the operation.
func (rt route) serve(x *exchange) error {
	if err := x.readBody(); err != nil {
		return err
	}
	if x.isAPI() {
		maps.Copy(x.Header(), operationHeaders[rt.operation])
		x.wait(x.api.latency)
		if err := x.applyFault(rt.operation); err != nil {
			return err
		}
	}
	if err := x.parseQuery(rt); err != nil {
		return asError(codeInvalidParameter, err)
	}
	return rt.do(x)
}

// maxBody is the size of the largest request body, in bytes.
const maxBody = 64 << 10

// readBody reads the body of the request. net/http notices that a client has left only once the body is read.
func (x *exchange) readBody() (err error) {
	if x.r.ContentLength == 0 {
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
		err = newError(413, fmt.Sprintf("the body is over %d bytes; a larger seed goes into a file: -seed", maxBody))
	default:
		return nil
	}
	x.body = nil // the journal has no part of a body
	return err
}

// operationHeaders are on all answers of an operation. getPet is deprecated since 20 November 2026 (RFC 9745), to
// be removed in 2030 (RFC 8594; contract, section 9).
var operationHeaders = map[string]http.Header{"getPet": {
	"Deprecation": {"@1795132800"},
	"Sunset":      {"Thu, 05 Dec 2030 00:00:00 GMT"},
	"Link":        {`</v1/pets>; rel="successor-version"`},
}}

// wait holds the request up for d, or until its world or the process ends. If the client leaves meanwhile, there is
// no answer.
func (x *exchange) wait(d time.Duration) {
	if d == 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.world.over:
	case <-x.api.stopping.Done():
	case <-x.r.Context().Done():
		x.message = "the client left before its answer"
		panic(http.ErrAbortHandler)
	}
}

// applyFault finds the fault of a request under /v1: what its Prefer header asks for or, if that has neither code
// nor delay, the standing fault. It does what the fault does before the operation and instead of it.
func (x *exchange) applyFault(operation string) error {
	f, err := parsePrefer(x.r.Header["Prefer"])
	if err != nil {
		return asError(codeInvalidParameter, err)
	}
	if f != (fault{}) {
		x.Header().Set("Preference-Applied", f.String())
	} else if standing := x.world.standing.Load(); standing != nil && standing.strikes(operation) {
		f = standing.fault
	}
	x.fault = f
	x.wait(f.delay)
	switch {
	case f.Code == "hangup":
		panic(http.ErrAbortHandler)
	case f.status != 0:
		return simulatedError(f, x.Header())
	}
	return nil
}

// simulatedError is the Error that a fault answers with. It sets the headers of the Error too. A simulated 401 is
// that of a wrong key.
func simulatedError(f fault, h http.Header) Error {
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

// parseQuery parses the query, and refuses a parameter that is given twice. Under /__admin, it refuses those that
// the route does not take, so that a forgotten "-X PUT" is told. Elsewhere they are ignored: clients may be newer
// than the service.
func (x *exchange) parseQuery(rt route) (err error) {
	if x.r.URL.RawQuery == "" || rt.pattern == "" { // a wrong path or method has no pattern, and is told first
		return nil
	}
	if x.query, err = url.ParseQuery(x.r.URL.RawQuery); err != nil { // URL.Query would drop what is malformed
		return fmt.Errorf("the query is malformed: %w", err)
	}
	for _, name := range rt.parameters {
		if n := len(x.query[name]); n > 1 {
			return invalid(name, fmt.Sprintf("given %d times", n), "given once")
		}
	}
	if !x.isAdmin() || len(x.query) == 0 {
		return nil
	}
	for _, pair := range strings.Split(x.query.Encode(), "&") { // which sorts them: the same one is told each time
		name, _, _ := strings.Cut(pair, "=")
		if !slices.Contains(rt.parameters, name) {
			return fmt.Errorf("%s does not take the parameter %s; PUT /__admin/fault (curl -X PUT) takes %s",
				rt.pattern, shorten(name), strings.Join(faultParameters, ", "))
		}
	}
	return nil
}

// refuseMethod answers 405 on a path with these methods.
func refuseMethod(methods string) func(*exchange) error {
	return func(x *exchange) error {
		x.Header().Set("Allow", methods)
		return newError(405, "this path allows "+methods+" only")
	}
}

func refusePath(x *exchange) error {
	return newError(404, "no such path: "+shorten(x.r.URL.Path)+"; the API is at /v1/pets, with no slash at the end; "+
		"there are /__admin/reset, /__admin/fault and /__admin/requests too, /openapi.json, and a page at /")
}

// The limit of listPets, without one and at most (contract, section 8).
const defaultLimit, maxLimit = 20, 100

// listParameters are those of listPets. A link to the next page keeps all but after.
var listParameters = []string{"limit", "status", "after"}

// listPets answers a page of pets in ascending order of id and, when more follow, a Link to the next page
// (contract, section 4.1; RFC 8288).
func (x *exchange) listPets() error {
	limit, errLimit := queryInteger(x.query, "limit", defaultLimit, 1, maxLimit)
	after, errAfter := queryInteger(x.query, "after", 0, math.MinInt64, math.MaxInt64)
	status, errStatus := PetStatus(""), error(nil)
	if x.query.Has("status") {
		status, errStatus = parseStatus(x.query.Get("status"))
	}
	if err := cmp.Or(errLimit, errAfter, errStatus); err != nil {
		return asError(codeInvalidParameter, err)
	}
	pets := x.world.pets.list(status, after)
	if int64(len(pets)) > limit {
		pets = pets[:limit]
		x.Header().Set("Link", nextPage(x.query, pets[limit-1].id))
	}
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
	x.Header().Set("Content-Type", "application/json")
	x.answer = append(page, "]\n"...)
	return nil
}

// nextPage is the Link to the page behind the pet with the id after.
func nextPage(query url.Values, after int64) string {
	link := "</v1/pets?"
	for _, name := range listParameters {
		if name != "after" && query.Has(name) {
			link += name + "=" + url.QueryEscape(query.Get(name)) + "&"
		}
	}
	return link + "after=" + strconv.FormatInt(after, 10) + `>; rel="next"`
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

// checkContentType refuses a body that is not JSON in UTF-8, as far as its headers tell. A body without
// Content-Type is taken as JSON.
func checkContentType(h http.Header) error {
	coding := strings.Join(h["Content-Encoding"], ", ")
	if coding != "" && !strings.EqualFold(coding, "identity") {
		return newError(415, invalid("Content-Encoding", coding, "left out").Error())
	}
	given := cmp.Or(strings.Join(h["Content-Type"], ", "), "application/json")
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
		return asError(codeInvalidParameter, err)
	}
	if p := x.world.pets.get(id); p != nil {
		writeJSON(x, 200, p.json)
		return nil
	}
	return newError(404, fmt.Sprintf("there is no pet %d", id))
}

// listOrders stands for the path that the contract names in section 4.4 without showing its payload.
func (x *exchange) listOrders() error {
	return newError(501, "the contract names this operation and shows no payload for it")
}

// reset starts a new world, with the pets of the process's seed or with those of the body, a seed too.
func (x *exchange) reset() (err error) {
	seed := x.api.seed
	if len(x.body) > 0 {
		if err := checkContentType(x.r.Header); err != nil {
			return err
		}
		if seed, err = readSeed(x.body); err != nil {
			return asError(codeInvalidBody, err)
		}
	}
	close(x.api.current.Swap(newWorld(seed)).over) // that of the old world
	x.WriteHeader(204)
	return nil
}

// showFault answers the standing fault and what has become of it, or {}.
func (x *exchange) showFault() error {
	body := []byte("{}")
	if f := x.world.standing.Load(); f != nil {
		body = f.encode()
	}
	writeJSON(x, 200, body)
	return nil
}

// setFault replaces the standing fault, and answers as showFault does.
func (x *exchange) setFault() error {
	f, err := parseStandingFault(x.query)
	if err != nil {
		return asError(codeInvalidParameter, err)
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
	x.Header().Set("Content-Type", "application/json")
	io.WriteString(x, `{"requests":[`)
	for i, e := range entries {
		if i > 0 {
			io.WriteString(x, ",")
		}
		io.WriteString(x, "\n")
		x.Write(encode(e))
	}
	fmt.Fprintf(x, "\n"+`],"meta":{"total":%d}}`+"\n", total)
	return nil
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
		x.Write(body)
		return nil
	}
}

// finish runs last: it records the request and sends its answer, or does with the answer what the fault asks for.
func (x *exchange) finish() {
	code := x.fault.Code
	switch v := recover(); v {
	case nil:
	case http.ErrAbortHandler: // a hangup, or the client has left
		code = "hangup"
	default: // a bug
		x.api.log.Error("panic", "value", v, "stack", string(debug.Stack()))
		writeError(x, newError(500, "the service has a bug; its log tells where"))
	}
	cut := false
	switch code {
	case "hangup", "lost":
		x.status = 0
	case "html":
		x.answerAsGateway()
	case "truncate", "stall":
		cut = true
		if len(x.answer) < 2 || x.r.Method == http.MethodHead { // there is no body to cut
			x.status = 0
		}
	}
	x.record()
	x.wait(x.fault.answerDelay)
	if x.status != 0 {
		x.send(cut)
	}
	if code == "stall" {
		x.wait(maxWait)
	}
	if x.status == 0 {
		panic(http.ErrAbortHandler) // net/http closes the connection, and logs nothing
	}
}

// answerAsGateway replaces the answer by what a gateway answers for a service that it cannot reach, and drops the
// headers of the operation.
func (x *exchange) answerAsGateway() {
	maps.DeleteFunc(x.Header(), func(name string, _ []string) bool {
		return name != "Preference-Applied" && !strings.HasPrefix(name, "Access-Control-")
	})
	x.Header().Set("Content-Type", "text/html")
	x.WriteHeader(502)
	io.WriteString(x, "<html><head><title>502 Bad Gateway</title></head><body>502 Bad Gateway</body></html>\n")
}

// send sends the answer, or the first half of its body.
func (x *exchange) send(cut bool) {
	// Without it, net/http would send a body over 2 KiB in chunks. From a 204, it takes it away.
	x.Header().Set("Content-Length", strconv.Itoa(len(x.answer)))
	x.w.WriteHeader(x.status)
	if !cut {
		x.w.Write(x.answer)
		return
	}
	// As Content-Length tells the whole length, net/http closes the connection behind the half, once finish has ended.
	x.w.Write(x.answer[:len(x.answer)/2])
	http.NewResponseController(x.w).Flush()
}

// record puts the request into the journal, and logs it on one line.
func (x *exchange) record() {
	if !x.isOfClient() {
		return
	}
	headers := make(map[string]string, len(x.r.Header)+1)
	for name, values := range x.r.Header {
		headers[name] = strings.Join(values, ", ")
	}
	if authorization, found := headers["Authorization"]; found {
		headers["Authorization"] = hideKey(authorization, x.api.key)
	}
	// net/http has taken Host and Transfer-Encoding out of the headers.
	if x.r.Host != "" {
		headers["Host"] = x.r.Host
	}
	if x.r.TransferEncoding != nil {
		headers["Transfer-Encoding"] = strings.Join(x.r.TransferEncoding, ", ")
	}
	e := entry{
		Time: timestamp{x.arrived}, Method: x.r.Method, URL: x.r.RequestURI, Headers: headers, Body: string(x.body),
		Status: x.status, Seconds: math.Round(time.Since(x.arrived).Seconds()*1000) / 1000,
		Answer: string(x.answer[:min(len(x.answer), maxAnswer)]), Error: x.message, Fault: x.fault.String(),
	}
	x.world.journal.add(e)
	if !x.api.log.Enabled(x.r.Context(), slog.LevelInfo) {
		return
	}
	attrs := []any{"method", e.Method, "path", e.URL, "status", e.Status}
	if e.Error != "" {
		attrs = append(attrs, "error", e.Error)
	}
	if e.Fault != "" {
		attrs = append(attrs, "fault", e.Fault)
	}
	x.api.log.Info("request", attrs...)
}
