package main

import (
	"bufio"
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
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxBody is the size of the largest request body, in bytes.
const maxBody = 64 << 10

// The time limits for a whole request, from its first byte, and for the answer.
const (
	readTimeout  = 15 * time.Second
	writeTimeout = 60 * time.Second
)

// openapi describes the service to tools.
//
//go:embed api/openapi.json
var openapi []byte

// index is what a browser shows of the service.
//
//go:embed api/index.html
var index []byte

// api is the service.
type api struct {
	key      string // the API key
	pets     *store
	journal  journal
	standing atomic.Pointer[fault] // nil for none
	latency  time.Duration         // of every request under /v1
	stopping <-chan struct{}       // closed when the process is to end
	log      *slog.Logger
	quiet    bool // logs no requests
}

// routes lists every path, and what a request passes on its way there.
func (a *api) routes() http.Handler {
	mux := http.NewServeMux()
	operations := map[string]string{} // names by pattern
	methods := map[string][]string{}  // by path
	for _, route := range []struct {
		operation, pattern string
		do                 func(*exchange, *http.Request) error
	}{
		{"listPets", "GET /v1/pets", a.listPets},
		{"createPet", "POST /v1/pets", a.createPet},
		{"getPet", "GET /v1/pets/{petId}", a.getPet},
		{"", "GET /v1/store/orders", listOrders},
		{"", "POST /__admin/reset", a.reset},
		{"", "PUT /__admin/fault", a.setFault},
		{"", "DELETE /__admin/fault", a.clearFault},
		{"", "GET /__admin/requests", a.listRequests},
		{"", "DELETE /__admin/requests", a.clearRequests},
		{"", "GET /healthz", health},
		{"", "GET /openapi.json", describe},
		{"", "GET /{$}", showPage},
	} {
		mux.HandleFunc(route.pattern, a.handle(route.operation, route.do))
		operations[route.pattern] = route.operation
		method, path, _ := strings.Cut(route.pattern, " ")
		methods[path] = append(methods[path], method)
		if method == http.MethodGet {
			methods[path] = append(methods[path], http.MethodHead)
		}
	}
	for path, allowed := range methods {
		slices.Sort(allowed)
		mux.HandleFunc(path, refuseMethod(strings.Join(allowed, ", ")))
	}
	mux.HandleFunc("/", notFound)
	operation := func(r *http.Request) string {
		if !clean(r.URL.Path) {
			return ""
		}
		_, pattern := mux.Handler(r)
		return operations[pattern]
	}

	// A request meets the last of these first.
	rest := refuseUnclean(mux)
	admin := requireKey(a.key, readBody(rest))
	v1 := a.simulate(operation, rest)
	v1 = a.delay(v1)
	v1 = readBody(v1)
	v1 = requireKey(a.key, v1)
	h := split(allowOrigins(v1), allowOrigins(admin), allowOrigins(rest))
	h = recoverPanics(a.log, h)
	h = drainUnread(h)
	return a.record(h)
}

// exchange is a request and its answer, as long as they last.
type exchange struct {
	http.ResponseWriter
	entry                // what the journal keeps of it
	private   bool       // the journal does not keep it
	unread    bool       // there is a body that has not been read
	query     url.Values // nil if there is none
	truncated bool       // the answer ends in the middle of its body
	left      int        // how much of a truncated body is to be sent, in bytes
	api       *api
}

// WriteHeader notes the exchange before its answer is sent, so that a client
// that has the answer finds it in the journal.
func (x *exchange) WriteHeader(status int) {
	if x.status != 0 {
		panic(http.ErrAbortHandler) // a bug came to light behind this answer
	}
	if x.truncated {
		length, err := strconv.Atoi(x.Header().Get("Content-Length"))
		if err != nil || x.method == http.MethodHead {
			panic(http.ErrAbortHandler) // without a body there is no half of it
		}
		x.left = length / 2
	}
	if x.unread {
		x.Header().Set("Connection", "close")
	}
	x.Header()["Date"] = date()
	x.status = status
	x.api.note(x)
	x.ResponseWriter.WriteHeader(status)
}

func (x *exchange) Write(p []byte) (int, error) {
	if !x.truncated {
		return x.ResponseWriter.Write(p)
	}
	n, err := x.ResponseWriter.Write(p[:min(len(p), x.left)])
	if x.left -= n; x.left == 0 || err != nil {
		http.NewResponseController(x).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, nil
}

// Unwrap is for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// dated is the Date header of a second.
type dated struct {
	second int64
	header []string
}

var lastDate atomic.Pointer[dated]

// date returns the Date header of now. net/http would format one for each
// answer, which takes a sixtieth of its time.
func date() []string {
	now := time.Now()
	d := lastDate.Load()
	if d == nil || d.second != now.Unix() {
		d = &dated{now.Unix(), []string{now.UTC().Format(http.TimeFormat)}}
		lastDate.Store(d)
	}
	return d.header
}

// record notes each request, and holds what is known of it.
func (a *api) record(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{ResponseWriter: w, api: a, unread: r.ContentLength != 0, entry: entry{time: time.Now().UnixMilli(),
			method: r.Method, url: r.RequestURI, host: r.Host, header: r.Header, chunked: r.ContentLength < 0}}
		defer func() {
			if x.status == 0 { // it is given up
				a.note(x)
			}
		}()
		next.ServeHTTP(x, r)
	})
}

// note keeps x in the journal and logs it on one line, without the key.
func (a *api) note(x *exchange) {
	if !x.private {
		a.journal.add(&x.entry)
	}
	if !a.quiet {
		a.log.LogAttrs(context.Background(), slog.LevelInfo, "request", slog.String("method", hideKey(x.method, a.key)),
			slog.String("path", hideKey(x.url, a.key)), slog.Int("status", x.status))
	}
}

// linger is how long the service waits for more of a body that it has no use for.
const linger = 500 * time.Millisecond

// drainUnread goes on reading a body that nobody has read, once it is answered
// and while more comes, for readTimeout at most, so that a client that goes on
// sending gets to see the answer. Then the connection is closed: otherwise,
// net/http would read the body before it sends the answer.
func drainUnread(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r)
		if !w.(*exchange).unread {
			return
		}
		rc := http.NewResponseController(w)
		rc.Flush()
		buf := make([]byte, 32<<10)
		for end := time.Now().Add(readTimeout); time.Now().Before(end); {
			rc.SetReadDeadline(time.Now().Add(linger))
			if _, err := r.Body.Read(buf); err != nil {
				return
			}
		}
	})
}

// split sends a request on by the first segment of its path, as it is once
// decoded.
func split(v1, admin, rest http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		segment, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		w.(*exchange).private = segment == "__admin" || segment == "healthz"
		switch segment {
		case "v1":
			v1.ServeHTTP(w, r)
		case "__admin":
			admin.ServeHTTP(w, r)
		default:
			rest.ServeHTTP(w, r)
		}
	})
}

// readBody reads the body, all of it, into the exchange.
func readBody(next http.Handler) http.Handler {
	tooLarge := Error{Status: 413, Message: fmt.Sprintf("the body is over %d bytes", maxBody)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := w.(*exchange)
		var err error
		switch {
		case r.ContentLength > maxBody:
			writeError(x, tooLarge)
			return
		case r.ContentLength < 0: // unknown
			x.body, err = io.ReadAll(io.LimitReader(r.Body, maxBody+1))
		case r.ContentLength > 0:
			x.body = make([]byte, r.ContentLength)
			_, err = io.ReadFull(r.Body, x.body)
		}
		switch {
		case err == nil && len(x.body) <= maxBody:
			x.unread = false
			next.ServeHTTP(x, r)
			return
		case err == nil:
			err = tooLarge
		case errors.Is(err, os.ErrDeadlineExceeded):
			err = Error{Status: 408, Message: "the body did not come in time"}
		default:
			err = Error{codeInvalidBody, "the body is cut short or badly chunked", 400}
		}
		x.body = nil
		writeError(x, err.(Error))
	})
}

// delay holds a request up for the latency of the service.
func (a *api) delay(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.latency > 0 {
			wait(w, r, a.latency, a.stopping)
		}
		next.ServeHTTP(w, r)
	})
}

// wait holds a request up for d. It ends early when stopping is closed, and
// with the request when the client leaves, which net/http notices because the
// body has been read. The time limit for the answer restarts from then.
func wait(w http.ResponseWriter, r *http.Request, d time.Duration, stopping <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-stopping:
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	}
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
}

// simulate makes a request fail or wait: as its Prefer header says or, if that
// says neither, as the standing fault does.
func (a *api) simulate(operation func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := a.standing.Load()
		prefer := preferences(r.Header["Prefer"])
		if f == nil && prefer == nil {
			next.ServeHTTP(w, r)
			return
		}
		name := operation(r)
		deprecate(w, name)
		if prefer != nil {
			var err error
			if f, err = parseFault(prefer); err != nil {
				a.fail(w, err)
				return
			}
			w.Header().Set("Preference-Applied", f.applied(prefer))
		} else if !f.strikes(name) {
			next.ServeHTTP(w, r)
			return
		}
		if f.delay > 0 {
			wait(w, r, f.delay, a.stopping)
		}
		switch f.status {
		case hangup:
			panic(http.ErrAbortHandler)
		case truncate:
			w.(*exchange).truncated = true
			next.ServeHTTP(w, r)
		case 0:
			next.ServeHTTP(w, r)
		default:
			f.answer(w)
		}
	})
}

// clean tells whether p, a decoded path, is one that can be registered.
func clean(p string) bool { return strings.HasPrefix(p, "/") && path.Clean(p) == p }

// refuseUnclean answers 404 where next, a mux, would redirect to a cleaner
// path, and refuses a target that is no path.
func refuseUnclean(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case clean(r.URL.Path):
			next.ServeHTTP(w, r)
		case r.Method == http.MethodConnect && r.URL.Path == "":
			w.Header().Set("Connection", "close")
			writeError(w, Error{Status: 501, Message: "this service is no proxy"})
		case r.RequestURI == "*": // the preface of HTTP/2 too
			w.Header().Set("Connection", "close")
			writeError(w, Error{Status: 400, Message: "the target * is for OPTIONS, and this service speaks HTTP/1.1"})
		default:
			notFound(w, r)
		}
	})
}

func notFound(w http.ResponseWriter, r *http.Request) {
	message := "no such path; the pets are at /v1/pets, without a slash at the end"
	if strings.HasPrefix(r.URL.Path+"/", "/__admin/") {
		message = "no such path; there are /__admin/reset, /__admin/fault and /__admin/requests"
	}
	writeError(w, Error{Status: 404, Message: message})
}

// refuseMethod answers 405: the path has these methods only.
func refuseMethod(methods string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", methods)
		writeError(w, Error{Status: 405, Message: "this path allows " + methods + " only"})
	}
}

// handle makes do a handler: it parses the query, and answers the error that
// do returns.
func (a *api) handle(operation string, do func(*exchange, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		x := w.(*exchange)
		deprecate(x, operation)
		var err error
		if r.URL.RawQuery != "" {
			x.query, err = url.ParseQuery(r.URL.RawQuery)
		}
		if err != nil {
			_, err = url.ParseQuery(hideKey(r.URL.RawQuery, a.key)) // the key may look like a bad escape
			err = fmt.Errorf("the query is malformed: %w", cmp.Or(err, errors.New("it has a bad escape")))
		} else {
			err = do(x, r)
		}
		if err != nil {
			a.fail(x, err)
		}
	}
}

// invalidBody marks an error as one of the request's body.
type invalidBody struct{ error }

// fail answers err: an Error as it is, and any other with 400. No message shows
// the key.
func (a *api) fail(w http.ResponseWriter, err error) {
	e := Error{Code: codeInvalidParameter, Status: 400}
	if body, ok := err.(invalidBody); ok {
		e.Code, err = codeInvalidBody, body.error
	}
	switch err := err.(type) {
	case invalid: // before it is shortened
		err.name, err.given = hideKey(err.name, a.key), hideKey(err.given, a.key)
		e.Message = err.Error()
	case Error:
		e = err
		e.Message = hideKey(e.Message, a.key)
	default:
		e.Message = hideKey(err.Error(), a.key)
	}
	writeError(w, e)
}

// pages are buffers for listPets, for a page is written in pieces of bounded
// size: its pets may take 6 MB, and a client need not read them.
var pages = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 16<<10) }}

// largePage is the length from which a page is a large answer, in bytes.
const largePage = 256 << 10

// largeAnswers bounds how many large answers are under way, for each keeps up
// to 8 MB in memory that may be in use nowhere else, until its client has read it.
var largeAnswers = make(chan struct{}, 16)

// queue waits until a large answer may begin. The time limit for it starts then.
func queue(w http.ResponseWriter, r *http.Request) (done func()) {
	select {
	case largeAnswers <- struct{}{}:
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	}
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	return func() { <-largeAnswers }
}

// listPets answers a page of pets in ascending order of id and, when more
// follow, a Link to the next page (contract, section 4.1; RFC 8288).
func (a *api) listPets(x *exchange, r *http.Request) error {
	limit, err := queryInteger(x.query, "limit", 20, 1, 100)
	if err != nil {
		return err
	}
	after, err := queryInteger(x.query, "after", 0, math.MinInt64, math.MaxInt64)
	if err != nil {
		return err
	}
	status, err := queryStatus(x.query)
	if err != nil {
		return err
	}

	var room [100]record
	pets, more := a.pets.list(room[:0], status, after, int(limit))
	length := size(pets)
	if length > largePage {
		clear(room[:]) // the pets may be gone before it is this page's turn
		defer queue(x, r)()
		pets, more = a.pets.list(room[:0], status, after, int(limit))
		length = size(pets)
	}
	if more {
		var next string
		if x.query.Has("limit") {
			next = "limit=" + x.query.Get("limit") + "&"
		}
		if status != "" {
			next += "status=" + string(status) + "&"
		}
		x.Header().Set("Link", "</v1/pets?"+next+"after="+strconv.FormatInt(pets[len(pets)-1].id, 10)+`>; rel="next"`)
	}
	writeHeader(x, 200, length+max(len(pets)-1, 0)+len("[]\n"))
	page := pages.Get().(*bufio.Writer)
	page.Reset(x)
	defer func() {
		page.Reset(nil)
		pages.Put(page)
	}()
	page.WriteByte('[')
	for i, p := range pets {
		if i > 0 {
			page.WriteByte(',')
		}
		page.Write(p.json)
	}
	page.WriteString("]\n")
	page.Flush()
	return nil
}

// size returns the length of the JSON of pets.
func size(pets []record) (n int) {
	for _, p := range pets {
		n += len(p.json)
	}
	return n
}

// queryStatus returns the parameter status, or "" without one.
func queryStatus(query url.Values) (PetStatus, error) {
	if !query.Has("status") {
		return "", nil
	}
	if err := checkOnce(query, "status"); err != nil {
		return "", err
	}
	return petStatus(query.Get("status"))
}

// createPet adds a pet and answers it with its id and Location (contract,
// section 4.2).
func (a *api) createPet(x *exchange, r *http.Request) error {
	if err := checkContentType(r.Header); err != nil {
		return err
	}
	if !json.Valid(x.body) {
		err := json.Unmarshal(x.body, new(json.RawMessage)) // tells why
		return invalidBody{fmt.Errorf("the body is not JSON: %w", err)}
	}
	_, pet, err := parsePet(string(x.body), false)
	if err != nil {
		return invalidBody{err}
	}
	p, err := a.pets.add(pet)
	if err != nil {
		return Error{Status: 507, Message: err.Error()}
	}
	x.Header().Set("Location", "/v1/pets/"+strconv.FormatInt(p.id, 10))
	writeJSON(x, 201, p.line())
	return nil
}

// checkContentType tells whether a body is JSON in UTF-8, as far as its
// headers tell. curl sends another Content-Type unless told.
func checkContentType(h http.Header) error {
	given, coding := strings.Join(h["Content-Type"], ","), strings.Join(h["Content-Encoding"], ",")
	if (given == "" || given == "application/json") && coding == "" {
		return nil
	}
	media, params, err := mime.ParseMediaType(cmp.Or(given, "application/json")) // fails for two of them
	if err != nil || media != "application/json" || !strings.EqualFold(cmp.Or(params["charset"], "utf-8"), "utf-8") ||
		!strings.EqualFold(cmp.Or(coding, "identity"), "identity") {
		return Error{Status: 415, Message: "send JSON in UTF-8, with one Content-Type: application/json and no Content-Encoding (curl does with --json)"}
	}
	return nil
}

// getPet answers one pet (contract, section 4.3).
func (a *api) getPet(x *exchange, r *http.Request) error {
	id, err := integer("petId", r.PathValue("petId"), math.MinInt64, math.MaxInt64)
	if err != nil {
		return err
	}
	p, ok := a.pets.get(id)
	if !ok {
		return Error{Status: 404, Message: fmt.Sprintf("there is no pet %d", id)}
	}
	writeJSON(x, 200, p.line())
	return nil
}

// deprecation has the headers that tell in every answer of getPet that it is
// deprecated, since 20 November 2026 (RFC 9745), and when it will be removed
// (RFC 8594; contract, section 9).
var deprecation = http.Header{
	"Deprecation": {"@1795132800"},
	"Sunset":      {"Thu, 05 Dec 2030 00:00:00 GMT"},
	"Link":        {`</v1/pets>; rel="successor-version"`},
}

// deprecate sets these headers if they are for the operation.
func deprecate(w http.ResponseWriter, operation string) {
	if operation == "getPet" {
		maps.Copy(w.Header(), deprecation)
	}
}

// listOrders stands for the path that the contract names in section 4.4
// without showing its payload.
func listOrders(*exchange, *http.Request) error {
	return Error{Status: 501, Message: "the contract names this operation and shows no payload for it"}
}

// reset brings back the state after start or, for this once, that of the body,
// a JSON array of pets as in a seed file.
func (a *api) reset(x *exchange, r *http.Request) error {
	seed := a.pets.seed
	if len(x.body) > 0 {
		err := checkContentType(r.Header)
		if err != nil {
			return err
		}
		if seed, err = readSeed(bytes.NewReader(x.body)); err != nil {
			return invalidBody{err}
		}
	}
	a.standing.Store(nil)
	a.journal.clear()
	a.pets.reset(seed)
	x.WriteHeader(204)
	return nil
}

// setFault replaces the standing fault.
func (a *api) setFault(x *exchange, r *http.Request) error {
	f, err := parseFault(x.query)
	if err != nil {
		return err
	}
	a.standing.Store(f)
	x.WriteHeader(204)
	return nil
}

func (a *api) clearFault(x *exchange, r *http.Request) error {
	a.standing.Store(nil)
	x.WriteHeader(204)
	return nil
}

// listRequests answers the journal, one request a line. It encodes each entry
// twice, so as to know the length without keeping what may take 50 MB.
func (a *api) listRequests(x *exchange, r *http.Request) error {
	defer queue(x, r)()
	entries, total := a.journal.all()
	line := func(i int) []byte {
		line := a.encodeEntry(entries[i])
		if i < len(entries)-1 {
			line = append(line, ',')
		}
		return append(line, '\n')
	}
	const begin = `{"requests":[` + "\n"
	end := fmt.Sprintf(`],"meta":{"total":%d}}`+"\n", total)
	length := len(begin) + len(end)
	for i := range entries {
		length += len(line(i))
	}
	writeHeader(x, 200, length)
	io.WriteString(x, begin)
	for i := range entries {
		if _, err := x.Write(line(i)); err != nil {
			return nil // the client has left, or it is a HEAD
		}
	}
	io.WriteString(x, end)
	return nil
}

// encodeEntry returns an entry of the journal as JSON, without the key.
func (a *api) encodeEntry(e entry) []byte {
	names := make([]string, 0, len(e.header))
	for name := range e.header {
		names = append(names, name)
	}
	slices.Sort(names) // for those that look alike without the key
	shown := map[string][]string{}
	for _, name := range names {
		hidden, lower := hideKey(name, a.key), strings.ToLower(name)
		if other := hideKey(lower, strings.ToLower(a.key)); hidden == name && other != lower {
			hidden = other // net/http has changed its case
		}
		for _, value := range e.header[name] {
			if name == "Authorization" {
				value = hideCredentials(value, a.key)
			}
			shown[hidden] = append(shown[hidden], hideKey(value, a.key))
		}
	}
	headers := map[string]string{}
	for name, values := range shown {
		headers[name] = strings.Join(values, ", ")
	}
	if e.host != "" {
		headers["Host"] = hideKey(e.host, a.key)
	}
	if e.chunked { // net/http takes this header out, as the one before
		headers["Transfer-Encoding"] = "chunked"
	}
	return encode(struct {
		Time    string            `json:"time"`
		Method  string            `json:"method"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
		Status  int               `json:"status"`
	}{
		time.UnixMilli(e.time).UTC().Format("2006-01-02T15:04:05.000Z"), hideKey(e.method, a.key), hideKey(e.url, a.key),
		headers, hideKey(string(e.body), a.key), e.status,
	})
}

func (a *api) clearRequests(x *exchange, r *http.Request) error {
	a.journal.clear()
	x.WriteHeader(204)
	return nil
}

// health tells that the service is up.
func health(x *exchange, r *http.Request) error {
	writeJSON(x, 200, []byte(`{"status":"ok"}`+"\n"))
	return nil
}

func describe(x *exchange, r *http.Request) error {
	writeJSON(x, 200, openapi)
	return nil
}

// showPage answers the page for browsers.
func showPage(x *exchange, r *http.Request) error {
	x.Header().Set("Content-Type", "text/html; charset=utf-8")
	x.Header().Set("Content-Length", strconv.Itoa(len(index)))
	x.WriteHeader(200)
	x.Write(index)
	return nil
}
