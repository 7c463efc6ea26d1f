package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Error is the body of every answer that is not a success (contract, section 2).
type Error struct {
	// Code is codeOf(Status) or, where that says too little, one of the code
	// constants.
	Code string `json:"code"`
	// Message tells a person what was wrong and what would be right.
	Message string `json:"message"`
	// Status is the HTTP status of the answer.
	Status int `json:"status"`
}

func (e Error) Error() string { return e.Message }

// The values of Error.Code that are not the text of the status.
const (
	codeInvalidParameter = "invalid_parameter" // 400: a parameter in path, query or header
	codeInvalidBody      = "invalid_body"      // 400: the request body
	codeInvalidToken     = "invalid_token"     // 401: a wrong key, not a missing one (RFC 6750, section 3.1)
)

// codeOf is the Error.Code of a status: its text in snake_case, not_found for
// 404, or status_599 where HTTP has no text for it.
func codeOf(status int) string {
	text := http.StatusText(status)
	if text == "" {
		text = fmt.Sprint("status ", status)
	}
	return strings.NewReplacer(" ", "_", "'", "").Replace(strings.ToLower(text))
}

// invalid is the error of a value that its schema does not allow.
type invalid struct {
	place   string // where it stands, if that must be told: "pet 2: "
	name    string // of the parameter or member
	given   string // what came, as it came
	allowed string // what would be accepted
}

func (e invalid) Error() string {
	return strings.ToValidUTF8(fmt.Sprintf("%s%s is %s; it must be %s", e.place, shorten(e.name), shorten(e.given), e.allowed), "\ufffd")
}

// shorten returns at most 40 characters of what was given.
func shorten(given string) string {
	n := 0
	for i := range given {
		if n++; n > 40 {
			return given[:i] + "…"
		}
	}
	return cmp.Or(given, "empty")
}

// integer parses an integer as JSON spells it: no plus sign, no leading zero,
// no fraction, no exponent.
func integer(name, given string, min, max int64) (int64, error) {
	n, err := strconv.ParseInt(given, 10, 64)
	digits := strings.TrimPrefix(given, "-")
	if err != nil || n < min || n > max || min >= 0 && digits != given || digits[0] == '+' || digits[0] == '0' && digits != "0" {
		allowed := "an integer"
		if min > math.MinInt64 || max < math.MaxInt64 || errors.Is(err, strconv.ErrRange) {
			allowed = fmt.Sprintf("an integer from %d to %d", min, max)
		}
		return 0, invalid{name: name, given: given, allowed: allowed}
	}
	return n, nil
}

// queryInteger returns the integer parameter called name, or def without one.
func queryInteger(query url.Values, name string, def, min, max int64) (int64, error) {
	if !query.Has(name) {
		return def, nil
	}
	if err := checkOnce(query, name); err != nil {
		return 0, err
	}
	return integer(name, query.Get(name), min, max)
}

// checkOnce tells whether a parameter is given more often than once.
func checkOnce(query url.Values, name string) error {
	if n := len(query[name]); n > 1 {
		return invalid{name: name, given: fmt.Sprintf("given %d times", n), allowed: "given once"}
	}
	return nil
}

// writeError answers with e, whose Code may be left out.
func writeError(w http.ResponseWriter, e Error) {
	e.Code = cmp.Or(e.Code, codeOf(e.Status))
	writeJSON(w, e.Status, append(encode(e), '\n'))
}

// writeJSON answers with a body that is JSON already.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	writeHeader(w, status, len(body))
	w.Write(body)
}

var contentType = []string{"application/json"}

// writeHeader begins an answer with a body that is JSON. Its length is always
// sent, as net/http would chunk what is over 2 KiB.
func writeHeader(w http.ResponseWriter, status, length int) {
	h := w.Header()
	h["Content-Type"] = contentType
	h["Content-Length"] = []string{strconv.Itoa(length)}
	w.WriteHeader(status)
}

// encode returns v as JSON on one line, with <, > and & as they are.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // a bug: every v is made of structs, maps, strings and integers
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// recoverPanics answers 500 when next panics, where net/http would close the
// connection. http.ErrAbortHandler does close it.
func recoverPanics(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch v := recover(); v {
			case nil:
			case http.ErrAbortHandler:
				panic(v)
			default:
				log.Error("panic", "value", v, "stack", string(debug.Stack()))
				writeError(w, Error{Status: 500, Message: "the service has a bug; its log tells where"})
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// The WWW-Authenticate header of a 401, for no key and for a wrong one (RFC
// 6750, section 3).
const (
	challenge         = `Bearer realm="petstore"`
	wrongKeyChallenge = challenge + `, error="invalid_token"`
)

// fault is a failure that a client asked for, so as to test itself.
type fault struct {
	status     int           // of the Error that is answered, 0 for none, hangup or truncate
	delay      time.Duration // before that, or before the true answer
	retryAfter string        // the Retry-After header of the Error, "" for that of its status
	// A standing fault strikes the requests of one operation, "" for all...
	operation string
	// ...but for the first ones, skip of them, and of the others the next ones,
	// times of them, or all of them for 0.
	skip, times int64
	met         atomic.Int64 // counts the requests of the operation
}

// What else than an Error a fault.status may be.
const (
	hangup   = -1 // closes the connection without an answer, and nothing is done
	truncate = -2 // closes it in the middle of the true answer, after all was done
)

// The parameters of a standing fault. The first three are preferences too.
var faultParameters = []string{"code", "delay", "retry-after", "skip", "times", "operation"}

// parseFault parses code, from 400 to 599, hangup or truncate; delay, from 0
// to 30 seconds; retry-after, from 0 to 3600 seconds; skip, 0 or more; times, 1
// or more; and operation. Code or delay must be there.
func parseFault(given url.Values) (*fault, error) {
	var unknown []string
	for name := range given {
		if !slices.Contains(faultParameters, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return nil, invalid{name: "the parameter", given: slices.Min(unknown), allowed: "code, delay, retry-after, skip, times or operation"}
	}
	for _, name := range faultParameters {
		if err := checkOnce(given, name); err != nil {
			return nil, err
		}
	}
	if !given.Has("code") && !given.Has("delay") {
		return nil, errors.New("code or delay must be given, in the query: /__admin/fault?code=503")
	}
	f := &fault{retryAfter: given.Get("retry-after"), operation: given.Get("operation")}
	if given.Has("code") {
		switch code := given.Get("code"); code {
		case "hangup":
			f.status = hangup
		case "truncate":
			f.status = truncate
		default:
			n, err := integer("", code, 400, 599)
			if err != nil {
				return nil, invalid{name: "code", given: code, allowed: "an integer from 400 to 599, hangup or truncate"}
			}
			f.status = int(n)
		}
	}
	if given.Has("delay") {
		delay := given.Get("delay")
		seconds, err := strconv.ParseFloat(delay, 64)
		if err != nil || strings.Trim(delay, "0123456789.") != "" || seconds > 30 {
			return nil, invalid{name: "delay", given: delay, allowed: "a number of seconds from 0 to 30, with decimals if need be"}
		}
		f.delay = time.Duration(seconds * float64(time.Second))
	}
	if _, err := queryInteger(given, "retry-after", 0, 0, 3600); err != nil {
		return nil, err
	}
	var err error
	if f.skip, err = queryInteger(given, "skip", 0, 0, math.MaxInt64); err != nil {
		return nil, err
	}
	if f.times, err = queryInteger(given, "times", 0, 1, math.MaxInt64); err != nil {
		return nil, err
	}
	if given.Has("operation") && !slices.Contains([]string{"listPets", "createPet", "getPet"}, f.operation) {
		return nil, invalid{name: "operation", given: f.operation, allowed: "listPets, createPet or getPet"}
	}
	return f, nil
}

// preferences returns code, delay and retry-after as Prefer headers give them
// (RFC 7240, section 2), or nil where they give neither code nor delay. The
// first of each counts, all others are ignored, and a malformed header is read
// up to where it breaks: at a quote that is not closed.
func preferences(headers []string) url.Values {
	if headers == nil {
		return nil
	}
	given := strings.Join(headers, ",") + ","
	prefs := url.Values{}
	quoted, start, end := false, 0, -1 // end is where the parameters of a preference begin
	for i := 0; i < len(given); i++ {
		switch c := given[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted:
		case c == ';' && end < 0:
			end = i
		case c == ',':
			if end < 0 {
				end = i
			}
			name, value, _ := strings.Cut(given[start:end], "=")
			name = strings.ToLower(strings.TrimSpace(name))
			if slices.Contains(faultParameters[:3], name) && !prefs.Has(name) {
				prefs.Set(name, strings.Trim(strings.TrimSpace(value), `"`))
			}
			start, end = i+1, -1
		}
	}
	if !prefs.Has("code") && !prefs.Has("delay") {
		return nil
	}
	return prefs
}

// applied is the Preference-Applied header for a fault that preferences asked for.
func (f *fault) applied(prefs url.Values) string {
	var list []string
	for _, name := range faultParameters[:3] {
		if prefs.Has(name) && (name != "retry-after" || f.status > 0) {
			list = append(list, name+"="+prefs.Get(name))
		}
	}
	return strings.Join(list, ", ")
}

// strikes tells whether a request of this operation meets the standing fault
// f, and counts it. However many requests ask at once, it is true exactly
// f.times times.
func (f *fault) strikes(operation string) bool {
	if f.operation != "" && f.operation != operation {
		return false
	}
	n := f.met.Add(1)
	return n > f.skip && (f.times == 0 || n-f.skip <= f.times)
}

// answer answers with the simulated Error. Its code is the text of its status,
// and a 401 is that of a wrong key.
func (f *fault) answer(w http.ResponseWriter) {
	e := Error{Status: f.status, Message: "this error is simulated, as was asked for"}
	if e.Status == 401 {
		e.Code = codeInvalidToken
		w.Header().Set("WWW-Authenticate", wrongKeyChallenge)
	}
	if f.retryAfter != "" {
		w.Header().Set("Retry-After", f.retryAfter)
	} else if e.Status == 429 || e.Status == 503 {
		w.Header().Set("Retry-After", "1") // second
	}
	writeError(w, e)
}

// listener and conn are there for the few answers that net/http gives by
// itself, in plain text or without a body, to what it does not take for a
// request: malformed or too large headers, an unknown HTTP version, transfer
// coding or expectation. conn makes them Errors.
type listener struct{ *net.TCPListener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.AcceptTCP()
	return conn{c}, err
}

// conn embeds *net.TCPConn, not net.Conn, as net/http needs its CloseWrite.
type conn struct{ *net.TCPConn }

// Write sends p. net/http begins every answer with a Write of its own, and no
// JSON has a bare CR, so p is an answer of net/http's own if it begins with
// an error's status line and its headers do not tell of JSON.
func (c conn) Write(p []byte) (int, error) {
	if len(p) < 12 || string(p[:7]) != "HTTP/1." || p[9] < '4' {
		return c.TCPConn.Write(p)
	}
	head, text, found := bytes.Cut(p, []byte("\r\n\r\n"))
	if !found || bytes.Contains(head, []byte("application/json")) {
		return c.TCPConn.Write(p)
	}
	status, _ := strconv.Atoi(string(p[9:12]))
	if len(text) == 0 {
		text = []byte(http.StatusText(status))
	}
	body := append(encode(Error{codeOf(status), string(text), status}), '\n')
	_, err := fmt.Fprintf(c.TCPConn, "HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, http.StatusText(status), time.Now().UTC().Format(http.TimeFormat), len(body), body)
	return len(p), err
}
