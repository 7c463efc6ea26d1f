package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// maxBody is the size of the largest request body, in bytes.
const maxBody = 64 << 10

// openapi describes the service to tools.
//
//go:embed api/openapi.json
var openapi []byte

// api is the service.
type api struct {
	key      string // the API key
	pets     *store
	standing atomic.Pointer[fault] // nil for none
	latency  time.Duration         // before every answer under /v1
	stopping <-chan struct{}       // closed when the process is to end
	log      *slog.Logger
	quiet    bool // logs no requests
}

// routes lists every path, and what a request passes on its way there.
func (a *api) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/pets", a.handle(a.listPets))
	mux.HandleFunc("POST /v1/pets", a.handle(a.createPet))
	mux.HandleFunc("/v1/pets", allow("GET, HEAD, POST"))
	mux.HandleFunc("GET /v1/pets/{petId}", deprecated(a.handle(a.getPet)))
	mux.HandleFunc("/v1/pets/{petId}", allow("GET, HEAD"))
	mux.HandleFunc("GET /v1/store/orders", a.handle(listOrders))
	mux.HandleFunc("/v1/store/orders", allow("GET, HEAD"))
	mux.HandleFunc("GET /healthz", a.handle(health))
	mux.HandleFunc("/healthz", allow("GET, HEAD"))
	mux.HandleFunc("GET /openapi.json", a.handle(describe))
	mux.HandleFunc("/openapi.json", allow("GET, HEAD"))
	mux.HandleFunc("POST /__admin/reset", a.handle(a.reset))
	mux.HandleFunc("/__admin/reset", allow("POST"))
	mux.HandleFunc("PUT /__admin/fault", a.handle(a.setFault))
	mux.HandleFunc("DELETE /__admin/fault", a.handle(a.clearFault))
	mux.HandleFunc("/__admin/fault", allow("DELETE, PUT"))
	mux.HandleFunc("/", notFound)

	// A request meets the last of these first.
	h := cleanPath(mux)
	h = a.simulate(h)
	h = requireKey(a.key, h)
	h = a.delay(h)
	h = allowOrigins(h)
	h = closeUnread(h)
	h = recoverPanics(a.log, h)
	if !a.quiet {
		h = logRequests(a.log, a.key, h)
	}
	return h
}

// pages are buffers for listPets. Without them, a page of 100 pets would cost a
// fifth more.
var pages = sync.Pool{New: func() any { return new([]byte) }}

// listPets answers a page of pets in ascending order of id and, when more
// follow, a Link to the next page (contract, section 4.1; RFC 8288).
func (a *api) listPets(w http.ResponseWriter, r *http.Request) error {
	limit, err := queryInteger(r.Form, "limit", 20, 1, 100)
	if err != nil {
		return err
	}
	after, err := queryInteger(r.Form, "after", 0, math.MinInt64, math.MaxInt64)
	if err != nil {
		return err
	}
	status, err := queryStatus(r.Form)
	if err != nil {
		return err
	}

	page := pages.Get().(*[]byte)
	defer pages.Put(page)
	var last int64
	*page, last = a.pets.list((*page)[:0], status, after, int(limit))
	if last > 0 {
		var same string
		if r.Form.Has("limit") {
			same = "limit=" + r.Form.Get("limit") + "&"
		}
		if status != "" {
			same += "status=" + string(status) + "&"
		}
		w.Header().Set("Link", "</v1/pets?"+same+"after="+strconv.FormatInt(last, 10)+`>; rel="next"`)
	}
	writeJSON(w, 200, *page)
	return nil
}

// createPet adds a pet and answers it with its id and Location (contract,
// section 4.2).
func (a *api) createPet(w http.ResponseWriter, r *http.Request) error {
	if err := checkContentType(r.Header.Get("Content-Type")); err != nil {
		return err
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	pet, err := parseNewPet(body)
	if err != nil {
		return err
	}
	p, ok := a.pets.add(pet)
	if !ok {
		return Error{Status: 507, Message: fmt.Sprintf("the store is full: it holds %d bytes", maxSize)}
	}
	w.Header().Set("Location", "/v1/pets/"+strconv.FormatInt(p.id, 10))
	writeJSON(w, 201, []byte(p.json+"\n"))
	return nil
}

// getPet answers one pet (contract, section 4.3).
func (a *api) getPet(w http.ResponseWriter, r *http.Request) error {
	id, err := integer(codeInvalidParameter, "petId", r.PathValue("petId"), math.MinInt64, math.MaxInt64)
	if err != nil {
		return err
	}
	p, ok := a.pets.get(id)
	if !ok {
		return Error{Status: 404, Message: fmt.Sprintf("there is no pet %d", id)}
	}
	writeJSON(w, 200, []byte(p.json+"\n"))
	return nil
}

// deprecated tells in every answer of getPet that it is deprecated, since 20
// November 2026 (RFC 9745), and when it is due to go (RFC 8594; contract,
// section 9).
func deprecated(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Deprecation", "@1795132800")
		w.Header().Set("Sunset", "Thu, 05 Dec 2030 00:00:00 GMT")
		w.Header().Set("Link", `</v1/pets>; rel="successor-version"`)
		next(w, r)
	}
}

// listOrders stands for the path that the contract names in section 4.4
// without showing its payload.
func listOrders(http.ResponseWriter, *http.Request) error {
	return Error{Status: 501, Message: "the contract names this operation and shows no payload for it"}
}

// health tells that the service is up.
func health(w http.ResponseWriter, r *http.Request) error {
	writeJSON(w, 200, []byte(`{"status":"ok"}`+"\n"))
	return nil
}

func describe(w http.ResponseWriter, r *http.Request) error {
	writeJSON(w, 200, openapi)
	return nil
}

// reset brings back the state after start.
func (a *api) reset(w http.ResponseWriter, r *http.Request) error {
	a.standing.Store(nil)
	a.pets.reset()
	w.WriteHeader(204)
	return nil
}

// setFault replaces the standing fault.
func (a *api) setFault(w http.ResponseWriter, r *http.Request) error {
	f, err := parseFault(r.Form)
	if err != nil {
		return err
	}
	a.standing.Store(f)
	w.WriteHeader(204)
	return nil
}

func (a *api) clearFault(w http.ResponseWriter, r *http.Request) error {
	a.standing.Store(nil)
	w.WriteHeader(204)
	return nil
}

func notFound(w http.ResponseWriter, r *http.Request) {
	writeError(w, Error{Status: 404, Message: "no such path; the pets are at /v1/pets, without a slash at the end"})
}

// allow answers 405: the path has these methods only.
func allow(methods string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", methods)
		writeError(w, Error{Status: 405, Message: "this path allows " + methods + " only"})
	}
}

// cleanPath answers 404 where next, a mux, would redirect to a cleaner path,
// and to the paths without a slash: * and the empty one.
func cleanPath(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := r.URL.Path; !strings.HasPrefix(p, "/") || path.Clean(p) != p {
			notFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// delay holds every request under /v1 up for the latency of the service.
func (a *api) delay(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.latency > 0 && under(r, "/v1") {
			wait(w, r, a.latency, a.stopping)
		}
		next.ServeHTTP(w, r)
	})
}

// simulate makes a request under /v1 fail or wait: as its Prefer header says
// or, if that says neither, as the standing fault does.
func (a *api) simulate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !under(r, "/v1") {
			next.ServeHTTP(w, r)
			return
		}
		f := a.standing.Load()
		if prefer := preferences(r.Header["Prefer"]); len(prefer) > 0 {
			var err error
			if f, err = parseFault(prefer); err != nil {
				a.fail(w, err)
				return
			}
			w.Header().Set("Preference-Applied", applied(prefer))
		} else if !f.strikes(operationID(r)) {
			next.ServeHTTP(w, r)
			return
		}
		if f.delay > 0 {
			if r.ContentLength != 0 {
				body, err := readBody(w, r)
				if err != nil {
					a.fail(w, err)
					return
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
			}
			wait(w, r, f.delay, a.stopping)
		}
		if f.status != 0 {
			f.answer(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// operationID returns the contract's name of what r asks for, or "".
func operationID(r *http.Request) string {
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch dir, file := path.Split(r.URL.Path); {
	case r.URL.Path == "/v1/pets" && read:
		return "listPets"
	case r.URL.Path == "/v1/pets" && r.Method == http.MethodPost:
		return "createPet"
	case dir == "/v1/pets/" && file != "" && read:
		return "getPet"
	}
	return ""
}

// handle makes op a handler: it parses the query into r.Form, and answers the
// error that op returns.
func (a *api) handle(op func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var err error
		if r.URL.RawQuery != "" {
			if r.Form, err = url.ParseQuery(r.URL.RawQuery); err != nil {
				a.fail(w, Error{codeInvalidParameter, "the query is malformed: " + err.Error(), 400})
				return
			}
		}
		if err = op(w, r); err != nil {
			a.fail(w, err)
		}
	}
}

// fail answers err, an Error or an invalid. No message shows the key.
func (a *api) fail(w http.ResponseWriter, err error) {
	switch err := err.(type) {
	case invalid:
		err.given = strings.ReplaceAll(err.given, a.key, "<API_KEY>")
		writeError(w, Error{err.code, err.Error(), 400})
	case Error:
		writeError(w, err)
	}
}

// preference matches one preference in a Prefer header, with its parameters
// (RFC 7240, section 2).
var preference = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`([^,"]|"([^"\\]|\\.)*")+`)
})

// preferences returns code and delay as Prefer headers give them. The first of
// each counts, and all other preferences are ignored.
func preferences(headers []string) url.Values {
	if headers == nil {
		return nil
	}
	prefs := url.Values{}
	for _, p := range preference().FindAllString(strings.Join(headers, ","), -1) {
		p, _, _ = strings.Cut(p, ";")
		name, value, _ := strings.Cut(p, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		if (name == "code" || name == "delay") && !prefs.Has(name) {
			prefs.Set(name, strings.Trim(strings.TrimSpace(value), `"`))
		}
	}
	return prefs
}

// applied is the Preference-Applied header for what preferences returned.
func applied(prefs url.Values) string {
	var list []string
	for _, name := range []string{"code", "delay"} {
		if prefs.Has(name) {
			list = append(list, name+"="+prefs.Get(name))
		}
	}
	return strings.Join(list, ", ")
}

// parseFault parses code, from 400 to 599 or hangup; delay, from 0 to 30
// seconds; times, 1 or more; and operation. Code or delay must be there.
func parseFault(given url.Values) (*fault, error) {
	f := &fault{forever: !given.Has("times")}
	for name := range given {
		if !slices.Contains([]string{"code", "delay", "times", "operation"}, name) {
			return nil, invalid{codeInvalidParameter, "the parameter", name, "code, delay, times or operation"}
		}
		if _, err := single(given, name); err != nil {
			return nil, err
		}
	}
	if !given.Has("code") && !given.Has("delay") {
		return nil, Error{codeInvalidParameter, "code or delay must be given", 400}
	}
	if code := given.Get("code"); code == "hangup" {
		f.status = hangup
	} else if given.Has("code") {
		n, err := integer("", "", code, 400, 599)
		if err != nil {
			return nil, invalid{codeInvalidParameter, "code", code, "an integer from 400 to 599, or hangup"}
		}
		f.status = int(n)
	}
	if given.Has("delay") {
		delay := given.Get("delay")
		seconds, err := strconv.ParseFloat(delay, 64)
		if err != nil || strings.Trim(delay, "0123456789.") != "" || seconds > 30 {
			return nil, invalid{codeInvalidParameter, "delay", delay, "a number of seconds from 0 to 30, with decimals if need be"}
		}
		f.delay = time.Duration(seconds * float64(time.Second))
	}
	times, err := queryInteger(given, "times", 0, 1, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	f.left.Store(times)
	f.operation = given.Get("operation")
	if given.Has("operation") && !slices.Contains([]string{"listPets", "createPet", "getPet"}, f.operation) {
		return nil, invalid{codeInvalidParameter, "operation", f.operation, "listPets, createPet or getPet"}
	}
	return f, nil
}

// queryInteger returns the integer parameter called name, or def without one.
func queryInteger(query url.Values, name string, def, min, max int64) (int64, error) {
	if !query.Has(name) {
		return def, nil
	}
	given, err := single(query, name)
	if err != nil {
		return 0, err
	}
	return integer(codeInvalidParameter, name, given, min, max)
}

// queryStatus returns the parameter status, or "" without one.
func queryStatus(query url.Values) (PetStatus, error) {
	if !query.Has("status") {
		return "", nil
	}
	given, err := single(query, "status")
	if err != nil {
		return "", err
	}
	return petStatus(codeInvalidParameter, given)
}

// single returns the value of a parameter that may be given once.
func single(query url.Values, name string) (string, error) {
	if n := len(query[name]); n > 1 {
		return "", invalid{codeInvalidParameter, name, fmt.Sprintf("given %d times", n), "given once"}
	}
	return query.Get(name), nil
}

// integer parses an integer as JSON spells it: no plus sign, no leading zero,
// no fraction, no exponent.
func integer(code, name, given string, min, max int64) (int64, error) {
	n, err := strconv.ParseInt(given, 10, 64)
	digits := strings.TrimPrefix(given, "-")
	if err != nil || n < min || n > max || digits[0] == '+' || digits[0] == '0' && digits != "0" {
		return 0, invalid{code, name, given, fmt.Sprintf("an integer from %d to %d", min, max)}
	}
	return n, nil
}

func petStatus(code, given string) (PetStatus, error) {
	switch s := PetStatus(given); s {
	case Available, Pending, Sold:
		return s, nil
	}
	return "", invalid{code, "status", given, "available, pending or sold"}
}

// checkContentType tells whether a body of this type is JSON in UTF-8. curl
// sends another type unless told.
func checkContentType(given string) error {
	if given == "" || given == "application/json" {
		return nil
	}
	media, params, err := mime.ParseMediaType(given)
	if err != nil || media != "application/json" || !strings.EqualFold(cmp.Or(params["charset"], "utf-8"), "utf-8") {
		return Error{Status: 415, Message: "send the pet as JSON in UTF-8, with Content-Type: application/json (curl does with --json)"}
	}
	return nil
}

// readBody returns the request body, all of it: what closeUnread did is undone.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	var body []byte
	var err error = new(http.MaxBytesError)
	switch {
	case r.ContentLength < 0: // unknown
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	case r.ContentLength <= maxBody:
		body = make([]byte, r.ContentLength)
		_, err = io.ReadFull(r.Body, body)
	}
	switch {
	case err == nil:
		w.Header().Del("Connection")
		return body, nil
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, Error{Status: 413, Message: fmt.Sprintf("the body is over %d bytes", maxBody)}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, Error{Status: 408, Message: "the body did not come in time"}
	default:
		return nil, Error{codeInvalidBody, "the body is cut short or badly chunked", 400}
	}
}

// parseNewPet parses the body of createPet.
func parseNewPet(body []byte) (NewPet, error) {
	if !json.Valid(body) {
		err := json.Unmarshal(body, new(json.RawMessage)) // tells why
		return NewPet{}, Error{codeInvalidBody, "the body is not JSON: " + err.Error(), 400}
	}
	m, err := members(string(body), "name", "categoryId", "status")
	if err != nil {
		return NewPet{}, err
	}
	return newPet(m)
}

// newPet returns the pet whose name, categoryId and status members returned.
func newPet(m []string) (p NewPet, err error) {
	if p.Name = unquote(m[0]); m[0][0] != '"' || strings.Contains(m[0], `\u`) && !wellFormed().MatchString(m[0]) {
		return p, invalid{codeInvalidBody, "name", m[0], "a string of valid Unicode"}
	}
	if p.CategoryID, err = integer(codeInvalidBody, "categoryId", m[1], math.MinInt64, math.MaxInt64); err != nil {
		return p, err
	}
	if m[2] != missing {
		p.Status, err = petStatus(codeInvalidBody, unquote(m[2]))
	}
	return p, err
}

// missing stands for the value of a member that is not there. It is no JSON.
const missing = "missing"

// members returns the values, as they are spelt in the JSON object s, of the
// members with these names. It is for what encoding/json lets pass: names in
// another case, members given twice, null, invalid UTF-8. Members with other
// names are skipped. s is valid JSON, an object or not.
func members(s string, names ...string) ([]string, error) {
	s = strings.TrimSpace(s)
	if s[0] != '{' {
		return nil, invalid{codeInvalidBody, "the pet", s, "a JSON object"}
	}
	values := make([]string, len(names))
	for i := range values {
		values[i] = missing
	}
	for end := 0; s[end] != '}'; {
		s = s[end+1:]
		end = tokenEnd(s)
		if s[end] == '}' {
			break // the object is empty
		}
		quoted := strings.TrimSpace(s[:end])
		name := unquote(quoted)
		s = s[end+1:]
		end = tokenEnd(s)
		value := strings.TrimSpace(s[:end])
		if !utf8.ValidString(quoted) || !utf8.ValidString(value) {
			return nil, invalid{codeInvalidBody, name, "not UTF-8", "UTF-8"}
		}
		if i := slices.Index(names, name); i >= 0 {
			if values[i] != missing {
				return nil, invalid{codeInvalidBody, name, "given twice", "given once"}
			}
			values[i] = value
		}
	}
	return values, nil
}

// tokenEnd returns where the name or value that s begins with ends: at the
// next colon, comma or bracket of the object around it. s is valid JSON.
func tokenEnd(s string) int {
	depth, quoted := 0, false
	for i := 0; ; i++ {
		switch c := s[i]; {
		case c == '\\':
			i++ // only in strings
		case c == '"':
			quoted = !quoted
		case quoted:
		case depth == 0 && (c == ':' || c == ',' || c == '}'):
			return i
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
	}
}

// wellFormed matches JSON strings but those that escape one half of a
// surrogate pair alone: no UTF-8 can say that.
var wellFormed = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^"([^\\]|\\[^u]|\\u([^dD]|[dD][0-7])|\\u[dD][89abAB]..\\u[dD][c-fC-F])*"$`)
})

// unquote returns what a JSON string stands for, and other JSON as it is.
func unquote(value string) string {
	if value[0] != '"' {
		return value
	}
	if !strings.Contains(value, `\`) {
		return value[1 : len(value)-1]
	}
	var s string
	json.Unmarshal([]byte(value), &s) // cannot fail: value is a JSON string
	return s
}
