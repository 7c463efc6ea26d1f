package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Error is the body of every answer that is not a success (contract, section 2).
type Error struct {
	Code    string `json:"code"`    // the text of the status, or a constant where it has several causes
	Message string `json:"message"` // tells a person what was wrong and what would be right
	Status  int    `json:"status"`  // the HTTP status of the answer
}

func (e Error) Error() string { return e.Message }

// The values of Error.Code that are not the text of the status.
const (
	codeInvalidParameter = "invalid_parameter" // 400: a parameter in the path, the query or a Prefer header
	codeInvalidBody      = "invalid_body"      // 400: the request body
	codeInvalidToken     = "invalid_token"     // 401: a wrong key, not a missing one (RFC 6750, section 3.1)
)

// newError returns an Error whose Code is the text of its status: not_found for
// 404, and status_599 where HTTP has no text for it.
func newError(status int, message string) Error {
	text := cmp.Or(http.StatusText(status), fmt.Sprint("status ", status))
	code := strings.NewReplacer(" ", "_", "'", "").Replace(strings.ToLower(text))
	return Error{code, message, status}
}

// invalid is the Error of a parameter that its schema does not allow. For a
// member of a body or a header, its text alone is used.
func invalid(name, given, allowed string) Error {
	message := fmt.Sprintf("%s is %s; it must be %s", shorten(name), shorten(given), allowed)
	return Error{codeInvalidParameter, message, 400}
}

// invalidBody is the Error of a request body; err tells what is wrong with it.
func invalidBody(err error) Error {
	return Error{codeInvalidBody, err.Error(), 400}
}

// shorten returns at most 40 characters of what was given, or "empty" for
// nothing. What is not UTF-8 in it becomes U+FFFD.
func shorten(given string) string {
	n := 0
	for i := range given {
		if n++; n > 40 {
			given = given[:i] + "…"
			break
		}
	}
	return cmp.Or(strings.ToValidUTF8(given, "\ufffd"), "empty")
}

// integer parses an integer as JSON spells it: no plus sign, no leading zero,
// no fraction, no exponent.
func integer(name, given string, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(given, 10, 64)
	asJSON := strconv.FormatInt(n, 10) == given || given == "-0" && least < 0 // -0 is JSON, but no count
	if err != nil || !asJSON || n < least || n > most {
		allowed := "an integer"
		if least > math.MinInt64 || most < math.MaxInt64 || errors.Is(err, strconv.ErrRange) {
			allowed = fmt.Sprintf("an integer from %d to %d", least, most)
		}
		return 0, invalid(name, given, allowed)
	}
	return n, nil
}

// queryInteger returns the integer parameter called name, or def without one.
func queryInteger(query url.Values, name string, def, least, most int64) (int64, error) {
	if !query.Has(name) {
		return def, nil
	}
	return integer(name, query.Get(name), least, most)
}

// checkOnce refuses a query that gives one of these parameters more often than once.
func checkOnce(query url.Values, names ...string) error {
	for _, name := range names {
		if n := len(query[name]); n > 1 {
			return invalid(name, fmt.Sprintf("given %d times", n), "given once")
		}
	}
	return nil
}

// writeError answers with e.
func writeError(w http.ResponseWriter, e Error) {
	writeJSON(w, e.Status, encode(e))
}

// writeJSON answers with a body that is JSON already.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	writeBody(w, status, "application/json", body)
}

// writeBody sends Content-Length, because net/http would chunk a body over 2
// KiB. It sends the body with one Write, which a truncated answer needs. w is an
// exchange, so WriteHeader also records the request.
func writeBody(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}

// encode returns v as JSON on a line of its own, with <, > and & as they are.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // a bug: every v is made of structs, maps, strings and integers
	}
	return b.Bytes()
}

// The WWW-Authenticate header of a 401, for no key and for a wrong one (RFC
// 6750, section 3).
const (
	challenge         = `Bearer realm="petstore"`
	wrongKeyChallenge = challenge + `, error="invalid_token"`
)

// fault is a failure that a client asks for, to test itself: for one request,
// in a Prefer header (RFC 7240), or as the standing fault, for those that follow.
// Code, Delay and RetryAfter are kept as they were given; "" is none.
type fault struct {
	// Code is a status from 400 to 599, hangup or truncate.
	Code string `json:"code,omitempty"`
	// Delay is how long a request waits first, in seconds from 0 to 30.
	Delay string `json:"delay,omitempty"`
	// RetryAfter is the Retry-After header of the simulated Error, in whole
	// seconds from 0 to 3600. Without it, 429 and 503 have 1, others none.
	RetryAfter string `json:"retry-after,omitempty"`

	// A standing fault meets the requests of Operation, or all if that is "".
	// It lets the first Skip of them pass, and strikes the next Times, or all
	// that follow if Times is 0.
	Operation string `json:"operation,omitempty"`
	Skip      int64  `json:"skip,omitempty"`
	Times     int64  `json:"times,omitempty"`

	status int           // what Code stands for: a status, hangup, truncate, or 0 for no failure
	delay  time.Duration // what Delay stands for
	met    atomic.Int64  // how many requests the standing fault has met
}

// The values of fault.status that are no HTTP status.
const (
	hangup   = -1 // closes the connection without an answer, and nothing is done
	truncate = -2 // does what was asked, sends half of the answer, and closes the connection
)

// preferences are the parameters that a Prefer header may give, and
// faultParameters those of a standing fault.
var (
	preferences     = []string{"code", "delay", "retry-after"}
	faultParameters = append(slices.Clip(preferences), "skip", "times", "operation")
)

// parseFault parses the parameters of a fault. Code or delay must be there.
func parseFault(given url.Values) (*fault, error) {
	var unknown []string
	for name := range given {
		if !slices.Contains(faultParameters, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 { // the order of a map is random, but the message is to be the same each time
		return nil, invalid("the parameter", slices.Min(unknown), "code, delay, retry-after, skip, times or operation")
	}
	if err := checkOnce(given, faultParameters...); err != nil {
		return nil, err
	}
	if !given.Has("code") && !given.Has("delay") {
		const message = "code or delay must be given, in the query: /__admin/fault?code=503"
		return nil, Error{codeInvalidParameter, message, 400}
	}
	f := &fault{Code: given.Get("code"), Delay: given.Get("delay"), RetryAfter: given.Get("retry-after"),
		Operation: given.Get("operation")}
	if given.Has("code") {
		switch f.Code {
		case "hangup":
			f.status = hangup
		case "truncate":
			f.status = truncate
		default:
			status, err := integer("code", f.Code, 400, 599)
			if err != nil {
				return nil, invalid("code", f.Code, "an integer from 400 to 599, hangup or truncate")
			}
			f.status = int(status)
		}
	}
	if given.Has("delay") {
		seconds, err := strconv.ParseFloat(f.Delay, 64) // which takes signs, exponents and Inf too
		if err != nil || strings.Trim(f.Delay, "0123456789.") != "" || seconds > 30 {
			return nil, invalid("delay", f.Delay, "a number of seconds from 0 to 30, with decimals if need be")
		}
		f.delay = time.Duration(seconds * float64(time.Second))
	}
	if _, err := queryInteger(given, "retry-after", 0, 0, 3600); err != nil {
		return nil, err
	}
	var err error
	if f.Skip, err = queryInteger(given, "skip", 0, 0, math.MaxInt64); err != nil {
		return nil, err
	}
	if f.Times, err = queryInteger(given, "times", 0, 1, math.MaxInt64); err != nil {
		return nil, err
	}
	if given.Has("operation") && !slices.Contains([]string{"listPets", "createPet", "getPet"}, f.Operation) {
		return nil, invalid("operation", f.Operation, "listPets, createPet or getPet")
	}
	return f, nil
}

// parsePrefer returns the fault that Prefer headers ask for, or nil if they have
// neither code nor delay. The first of each preference counts (RFC 7240, section
// 2), and unknown ones are ignored, as are parameters behind a semicolon. A comma
// in quotes is taken as any other.
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
	if !given.Has("code") && !given.Has("delay") {
		return nil, nil
	}
	return parseFault(given)
}

// String spells the fault as Preference-Applied and the journal have it: code,
// delay and retry-after, if they have an effect.
func (f *fault) String() string {
	var list []string
	if f.Code != "" {
		list = append(list, "code="+f.Code)
	}
	if f.Delay != "" {
		list = append(list, "delay="+f.Delay)
	}
	if f.RetryAfter != "" && f.status > 0 {
		list = append(list, "retry-after="+f.RetryAfter)
	}
	return strings.Join(list, ", ")
}

// meet counts a request that the standing fault is for, by its operation, and
// tells whether it strikes the request. However many requests come at once, it
// strikes exactly f.Times of them.
func (f *fault) meet(operation string) bool {
	if f.Operation != "" && f.Operation != operation {
		return false
	}
	n := f.met.Add(1)
	return n > f.Skip && (f.Times == 0 || n-f.Skip <= f.Times)
}

// answer is the Error that the fault answers with. It sets the headers that
// belong to it. A simulated 401 is that of a wrong key.
func (f *fault) answer(h http.Header) Error {
	e := newError(f.status, "this error is simulated, as was asked for")
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

// errorListener makes Errors of the answers that net/http gives by itself,
// without asking the handler: to malformed or too large headers, and to an HTTP
// version, a transfer coding or an expectation that it does not know. Those
// answers are plain text, or have no body.
type errorListener struct{ *net.TCPListener }

func (l errorListener) Accept() (net.Conn, error) {
	c, err := l.AcceptTCP()
	return errorConn{c}, err
}

// errorConn embeds *net.TCPConn, not net.Conn, because net/http needs its
// CloseWrite.
type errorConn struct{ *net.TCPConn }

// Write sends p, or an Error in its place if p is an answer of net/http's own:
// net/http begins each answer with a new Write, so p then begins with the status
// line of an error, and its headers do not say JSON. A later part of an answer
// may begin in the same way, but it has an empty line only where a chunked body
// ends, for JSON has no bare CR.
func (c errorConn) Write(p []byte) (int, error) {
	if len(p) < 12 || string(p[:7]) != "HTTP/1." || p[9] < '4' {
		return c.TCPConn.Write(p)
	}
	head, text, found := bytes.Cut(p, []byte("\r\n\r\n"))
	lastChunk := bytes.HasSuffix(p, []byte("\r\n0\r\n\r\n"))
	if !found || lastChunk || bytes.Contains(head, []byte("application/json")) {
		return c.TCPConn.Write(p)
	}
	status, _ := strconv.Atoi(string(p[9:12]))
	body := encode(newError(status, cmp.Or(string(text), http.StatusText(status))))
	_, err := fmt.Fprintf(c.TCPConn, "HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, http.StatusText(status), time.Now().UTC().Format(http.TimeFormat), len(body), body)
	return len(p), err
}
