package main

// This file holds failures. The errors come first, with the parsing of what clients
// give. Then come the faults, which are the failures that clients ask for, in the order
// in which a request meets them.

import (
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
	"sync"
	"time"
)

// Error is the body of a response that reports a failure (contract, sections 2 and
// 7).
type Error struct {
	Code    string `json:"code"`    // one of the constants below, or made by newError
	Message string `json:"message"` // for people
	Status  int    `json:"status"`  // the HTTP status of the response

	header http.Header // of the response
}

func (e Error) Error() string { return e.Message }

// with returns e with one more header of its response. The caller must use the result
// in place of e, which may or may not have the header.
func (e Error) with(name, value string) Error {
	if e.header == nil {
		e.header = http.Header{}
	}
	e.header.Set(name, value)
	return e
}

// The values of Error.Code that are not the text of the status.
const (
	codeInvalidParameter = "invalid_parameter" // 400: a parameter of the path, the query or Prefer
	codeInvalidBody      = "invalid_body"      // 400: the request body
	codeInvalidToken     = "invalid_token"     // 401: a wrong key, not a missing one (RFC 6750, section 3.1)
)

// newError returns an Error whose Code is the text of its status in snake_case,
// or "status_" and the number if the status has no standard text.
func newError(status int, message string) Error {
	text := cmp.Or(http.StatusText(status), fmt.Sprint("status ", status))
	return Error{Code: snakeCase.Replace(strings.ToLower(text)), Message: message, Status: status}
}

var snakeCase = strings.NewReplacer(" ", "_", "'", "")

func badRequest(code, message string) Error {
	return Error{Code: code, Message: message, Status: 400}
}

// invalidToken returns the Error of a 401 for a wrong key.
func invalidToken(message string) Error {
	e := Error{Code: codeInvalidToken, Message: message, Status: 401}
	return e.with("WWW-Authenticate", `Bearer realm="petstore", error="invalid_token"`)
}

// invalidParameter returns the Error for a value of a parameter that is not allowed.
func invalidParameter(name, given, allowed string) Error {
	return badRequest(codeInvalidParameter, mismatch(name, quote(given), allowed))
}

// invalidJSON returns the Error for JSON that is not allowed.
func invalidJSON(name, given, allowed string) Error {
	return badRequest(codeInvalidBody, mismatch(name, shorten(given), allowed))
}

// mismatch returns a message that says what was given and what is allowed.
func mismatch(name, given, allowed string) string {
	return fmt.Sprintf("%s is %s; it must be %s", name, given, allowed)
}

// quote returns a text that a client gave, shortened and in quotes, so that it does
// not look like a word of the message. Double quotes would have a backslash in JSON.
func quote(given string) string { return "'" + shorten(given) + "'" }

// shorten returns the first 40 characters of what a client gave, and … if there are
// more. Bytes that are not UTF-8 become U+FFFD.
func shorten(given string) string {
	characters := []rune(given)
	if len(characters) > 40 {
		characters = append(characters[:40], '…')
	}
	return string(characters)
}

// orList returns "a, b or c". It needs two words or more.
func orList(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// parseInteger parses an integer from least to most in its JSON form: without a plus
// sign, a leading zero, a fraction or an exponent. For any other text, it returns the
// Error that invalid makes.
func parseInteger(invalid func(name, given, allowed string) Error,
	name, given string, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(given, 10, 64)
	isJSON := strconv.FormatInt(n, 10) == given || given == "-0"
	if err == nil && isJSON && least <= n && n <= most {
		return n, nil
	}
	allowed := "an integer"
	if least > math.MinInt64 || most < math.MaxInt64 || errors.Is(err, strconv.ErrRange) {
		allowed = fmt.Sprintf("an integer from %d to %d", least, most)
	}
	return 0, invalid(name, given, allowed)
}

// firstError keeps the first error of several steps, so that the caller can
// check for it once, after the last step.
type firstError struct{ err error }

// keep keeps err, unless it is nil or an error has been kept before.
func (f *firstError) keep(err error) {
	if f.err == nil {
		f.err = err
	}
}

// arguments are what a query or a Prefer header gives for parameters. The methods
// that parse one keep the first error.
type arguments struct {
	url.Values
	firstError
}

// integer returns an integer from least to most, or 0 if it is not given.
func (a *arguments) integer(name string, least, most int64) int64 {
	if !a.Has(name) {
		return 0
	}
	n, err := parseInteger(invalidParameter, name, a.Get(name), least, most)
	a.keep(err)
	return n
}

// choice returns a parameter that must be one of the allowed words, or "" if it is
// not given.
func (a *arguments) choice(name string, allowed []string) string {
	word := a.Get(name)
	if a.Has(name) && !slices.Contains(allowed, word) {
		a.keep(invalidParameter(name, word, orList(allowed)))
	}
	return word
}

// seconds returns a number of seconds from 0 to maxWait, in its shortest form and as
// a Duration, or "" and 0 if it is not given. It takes the numbers of JSON that have
// neither a sign nor an exponent.
func (a *arguments) seconds(name string) (string, time.Duration) {
	if !a.Has(name) {
		return "", 0
	}
	text := a.Get(name)
	n, err := strconv.ParseFloat(text, 64)
	isPlain := json.Valid([]byte(text)) && strings.Trim(text, ".0123456789") == ""
	if err != nil || !isPlain || n > maxWait.Seconds() {
		allowed := fmt.Sprintf("a number of seconds from 0 to %v, such as 2 or 0.5", maxWait.Seconds())
		a.keep(invalidParameter(name, text, allowed))
	}
	return strconv.FormatFloat(n, 'f', -1, 64), time.Duration(n * float64(time.Second))
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

// fault is a failure that a client asks for, to test how it handles one. A Prefer
// header asks for a fault of its own request. A standing fault is applied to the
// requests that follow. The zero fault does nothing. See exchange.serve.
type fault struct {
	faultParameters
	delay       time.Duration
	answerDelay time.Duration
	status      int                    // Code, if it is a status, or 0
	respond     func(*exchange) answer // makes the answer in place of exchange.perform; nil without a code
	standing    *standingFault         // where the fault comes from; nil for Prefer
}

// faultParameters are the parameters that Prefer and standing faults share. Those
// that were not given are empty. What they mean is in api/openapi.json.
type faultParameters struct {
	Code        string `json:"code,omitempty"` // of a standing fault, it may be a list, separated by commas
	Delay       string `json:"delay,omitempty"`
	AnswerDelay string `json:"answer-delay,omitempty"`
	RetryAfter  string `json:"retry-after,omitempty"`
}

// preferences are the names of faultParameters.
var preferences = []string{"code", "delay", "answer-delay", "retry-after"}

// String returns the parameters in the form of Preference-Applied and of the log,
// such as "code=503, delay=0.2".
func (p faultParameters) String() string {
	values := map[string]string{
		"code": p.Code, "delay": p.Delay, "answer-delay": p.AnswerDelay, "retry-after": p.RetryAfter,
	}
	var list []string
	for _, name := range preferences {
		if values[name] != "" {
			list = append(list, name+"="+values[name])
		}
	}
	return strings.Join(list, ", ")
}

const (
	maxWait       = 30 * time.Second // the longest delay, answer-delay, stall and wait of showJournal
	maxRetryAfter = 3600             // seconds
	dripPieces    = 10
	dripInterval  = time.Second
)

// chooseFault sets the fault of the request. A fault in the Prefer header takes
// precedence; the standing fault then does not count the request.
func (x *exchange) chooseFault() error {
	f, ignored, err := parsePrefer(x.r.Header.Values("Prefer"))
	x.entry.Ignored = ignored
	if err != nil {
		return err
	}
	if f != nil {
		x.fault = *f
		x.w.Header().Set("Preference-Applied", f.String())
	} else if standing := x.world.standing.Load(); standing != nil {
		x.fault = standing.next(x.route.operation)
	}
	return nil
}

// parsePrefer returns the fault that Prefer headers ask for, or nil, and the sorted
// names of the preferences that it does not know. The first preference of a name wins.
// Commas and semicolons separate preferences, even within quotes. So a code cannot be a
// list. In RFC 7240, a semicolon begins a parameter of a preference instead.
func parsePrefer(lines []string) (f *fault, ignored []string, err error) {
	if len(lines) == 0 {
		return nil, nil, nil // as for most requests, without an allocation
	}
	given := &arguments{Values: url.Values{}}
	isSeparator := func(c rune) bool { return c == ',' || c == ';' }
	for _, preference := range strings.FieldsFunc(strings.Join(lines, ","), isSeparator) {
		name, value, _ := strings.Cut(preference, "=")
		name = strings.ToLower(strings.Trim(name, " \t"))
		if name != "" && !given.Has(name) {
			given.Set(name, strings.Trim(strings.Trim(value, " \t"), `"`))
		}
	}
	ignored = unknownNames(given.Values, preferences)
	if !asksForFault(given) {
		return nil, ignored, nil
	}
	applied := parseFault(given, given.Get("code"))
	return &applied, ignored, given.err
}

// asksForFault reports whether the parameters ask for a fault at all.
func asksForFault(given *arguments) bool {
	return given.Has("code") || given.Has("delay") || given.Has("answer-delay")
}

// parseFault parses the parameters that Prefer and standing faults share, with one
// code in place of a list. The fault is only valid if given.err is nil.
func parseFault(given *arguments, code string) fault {
	var f fault
	f.Delay, f.delay = given.seconds("delay")
	f.AnswerDelay, f.answerDelay = given.seconds("answer-delay")
	retryAfter := given.integer("retry-after", 0, maxRetryAfter)
	if !given.Has("code") {
		return f
	}
	var err error
	f.Code = code
	f.status, f.respond, err = parseCode(code)
	given.keep(err)
	if given.Has("retry-after") && f.status != 0 { // only an Error has that header
		f.RetryAfter = strconv.FormatInt(retryAfter, 10)
	}
	return f
}

// parseCode returns what a code does. The status is 0 for a word, such as lost.
func parseCode(code string) (status int, respond func(*exchange) answer, err error) {
	var words []string
	for _, known := range faultCodes {
		if known.code == code {
			return 0, known.respond, nil
		}
		words = append(words, known.code)
	}
	n, err := parseInteger(invalidParameter, "code", code, 400, 599)
	if err != nil { // its message does not name the words
		return 0, nil, invalidParameter("code", code, "a status from 400 to 599, "+orList(words))
	}
	return int(n), simulate, nil
}

// standingFault is a fault for the requests that follow. It is safe for
// concurrent use.
type standingFault struct {
	faults []fault       // one for each code of state.Code, applied in turn
	ended  chan struct{} // closed when the fault is replaced or deleted

	mu    sync.Mutex
	state standingFaultState // guarded by mu; only the counters change
}

// standingFaultState is what PUT and GET /__admin/fault answer: the parameters
// of a standing fault, and its counters.
type standingFaultState struct {
	faultParameters
	Operation string `json:"operation,omitempty"` // empty for all requests under /v1
	Skip      int64  `json:"skip,omitempty"`
	Times     int64  `json:"times,omitempty"` // 0 for no limit; for a list, the number of its codes
	Matched   int64  `json:"matched"`
	Applied   int64  `json:"applied"`
	Held      int64  `json:"held"`
}

// parseStandingFault parses the parameters of PUT /__admin/fault. It returns the state
// of the new fault, and a fault for each of its codes. The operations are the values
// that the parameter operation may have.
func parseStandingFault(given *arguments, operations []string) (state standingFaultState, faults []fault, err error) {
	if !asksForFault(given) {
		return state, nil, badRequest(codeInvalidParameter,
			"code, delay or answer-delay must be given, in the query: /__admin/fault?code=503")
	}
	for _, code := range strings.Split(given.Get("code"), ",") {
		faults = append(faults, parseFault(given, code))
	}
	state.faultParameters = faults[0].faultParameters
	state.Code = given.Get("code")
	withStatus := slices.IndexFunc(faults, func(f fault) bool { return f.status != 0 })
	if withStatus >= 0 {
		state.RetryAfter = faults[withStatus].RetryAfter
	} else if given.Has("retry-after") {
		given.keep(badRequest(codeInvalidParameter, "retry-after needs a status as code, such as code=503"))
	}
	state.Skip = given.integer("skip", 0, math.MaxInt64)
	state.Times = given.integer("times", 1, math.MaxInt64)
	if len(faults) > 1 {
		if given.Has("times") {
			given.keep(badRequest(codeInvalidParameter,
				"times cannot be given with a list of codes, as each of them is applied once"))
		}
		state.Times = int64(len(faults))
	}
	state.Operation = given.choice("operation", operations)
	return state, faults, given.err
}

// next returns the fault to apply to a request of this operation, or the zero
// fault. It counts the request if the standing fault is for it.
func (f *standingFault) next(operation string) fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &f.state
	if s.Operation != "" && s.Operation != operation {
		return fault{}
	}
	s.Matched++
	usedUp := s.Times != 0 && s.Applied == s.Times
	if s.Matched <= s.Skip || usedUp {
		return fault{}
	}
	next := f.faults[s.Applied%int64(len(f.faults))] // a single fault is repeated; a list ends with Times
	next.standing = f
	s.Applied++
	return next
}

func (f *standingFault) snapshot() standingFaultState {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

func (f *standingFault) addHeld(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.Held += n
}

// hold sleeps for d on behalf of the fault. A standing fault counts the requests
// that it holds, and releases them when it ends.
func (x *exchange) hold(d time.Duration) error {
	if d == 0 {
		return nil
	}
	standing := x.fault.standing
	if standing == nil {
		return x.sleep(d, nil)
	}
	standing.addHeld(1)
	defer standing.addHeld(-1)
	return x.sleep(d, standing.ended)
}

// faultCodes lists the codes that are not a status. What a client gets is described
// in api/openapi.json. The function of a code calls exchange.perform if the operation
// is to be performed. A code that waits calls exchange.hold in answer.sendBody. By then,
// the request has been recorded.
var faultCodes = []struct {
	code    string
	respond func(*exchange) answer
}{
	{"ok", (*exchange).perform},
	{"hangup", func(*exchange) answer { return answer{} }},
	{"rst", func(*exchange) answer { return answer{sendBody: resetConnection} }},
	{"lost", func(x *exchange) answer {
		a := x.perform()
		a.status = 0
		return a
	}},
	{"truncate", func(x *exchange) answer { return performHalf(x, sendHalf) }},
	{"stall", func(x *exchange) answer { return performHalf(x, stall) }},
	{"drip", func(x *exchange) answer {
		a := x.perform()
		a.sendBody = drip
		return a
	}},
	{"html", func(x *exchange) answer {
		a := x.perform()
		for name := range x.route.headers {
			x.w.Header().Del(name) // a gateway does not have them
		}
		const page = "<html><head><title>502 Bad Gateway</title></head><body>502 Bad Gateway</body></html>\n"
		return answer{status: 502, contentType: "text/html", body: []byte(page), problem: a.problem}
	}},
}

// performHalf performs the operation. If there is no body to halve, as for HEAD, no
// answer is sent. A stall then waits all the same.
func performHalf(x *exchange, sendBody func(*exchange, []byte)) answer {
	a := x.perform()
	a.sendBody = sendBody
	if x.r.Method == "HEAD" || len(a.body) == 0 {
		a.status = 0
	}
	return a
}

// simulate responds with the Error of a fault that has a status. A simulated 401
// is that of a wrong key.
func simulate(x *exchange) answer {
	const message = "simulated error, as requested"
	status := x.fault.status
	e := newError(status, message)
	if status == 401 {
		e = invalidToken(message)
	}
	retryAfter := x.fault.RetryAfter
	if retryAfter == "" && (status == 429 || status == 503) {
		retryAfter = "1"
	}
	if retryAfter != "" {
		e = e.with("Retry-After", retryAfter)
	}
	return x.failure(e)
}

// sendHalf sends half of the body. As that is less than its Content-Length,
// net/http then closes the connection.
func sendHalf(x *exchange, body []byte) {
	x.writeNow(body[:len(body)/2])
}

// stall sends half of the body, and keeps the connection open. The rest is not sent.
func stall(x *exchange, body []byte) {
	sendHalf(x, body)
	x.hold(maxWait)
}

// drip sends the body in dripPieces pieces, one every dripInterval. Once the fault, the
// world or the process has ended, hold returns at once, and the rest is sent. To a client
// that has left, no more is sent: it may still be reading, and take the rest as on time.
func drip(x *exchange, body []byte) {
	pieces := min(dripPieces, len(body)) // so that a piece follows each pause
	for i := range pieces {
		if i > 0 && x.hold(dripInterval) != nil {
			return
		}
		x.writeNow(body[len(body)*i/pieces : len(body)*(i+1)/pieces])
	}
}

// writeNow writes a part of the body, and flushes it.
func (x *exchange) writeNow(part []byte) {
	if len(part) > 0 { // Flush would send the headers, even those of an answer that is dropped
		x.w.Write(part)
		http.NewResponseController(x.w).Flush()
	}
}

// resetConnection closes the connection with a TCP RST.
func resetConnection(x *exchange, _ []byte) {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return // the connection is closed in the usual way
	}
	conn.(*net.TCPConn).SetLinger(0) // discards unsent data, and makes Close send a RST
	conn.Close()
}
