package main

// This file holds failures: first the real ones and the checks that return
// them, then the faults, which are the failures that clients ask for.

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Error is the body of every response that reports a failure (contract, sections
// 2 and 7), except for the page of the fault "html".
type Error struct {
	// Code is the kind of failure, for programs: one of the constants below, or
	// else the text of the status in snake_case, such as "not_found".
	Code string `json:"code"`
	// Message is for people. It says what was wrong and what is allowed.
	Message string `json:"message"`
	// Status is the HTTP status of the response, from 400 to 599.
	Status int `json:"status"`
}

func (e Error) Error() string { return e.Message }

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

// badRequest returns an Error with the status 400.
func badRequest(code, message string) Error {
	return Error{Code: code, Message: message, Status: 400}
}

// invalid returns an Error with this code for a value that is not allowed.
func invalid(code, name, given, allowed string) Error {
	return badRequest(code, mismatch(name, given, allowed))
}

// mismatch returns a message that says what was given and what is allowed.
func mismatch(name, given, allowed string) string {
	return fmt.Sprintf("%s is %s; it must be %s", name, shorten(given), allowed)
}

// shorten returns at most 40 characters of what a client gave, or "empty" for
// the empty string. Bytes that are not UTF-8 become U+FFFD.
func shorten(given string) string {
	const most = 40
	const mostBytes = (most + 1) * utf8.UTFMax // enough to find one character too many
	characters := []rune(given[:min(len(given), mostBytes)])
	if len(characters) > most {
		characters = append(characters[:most], '…')
	}
	return cmp.Or(string(characters), "empty")
}

// orList returns "a, b or c".
func orList(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// parseChoice returns given, or an Error with this code if it is not one of the
// allowed words.
func parseChoice(code, name, given string, allowed []string) (string, error) {
	if !slices.Contains(allowed, given) {
		return "", invalid(code, name, given, orList(allowed))
	}
	return given, nil
}

// parseInteger parses an integer in its JSON form: without a plus sign, a
// leading zero, a fraction or an exponent. For any other text, it returns an
// Error with this code.
func parseInteger(code, name, given string, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(given, 10, 64)
	isJSON := strconv.FormatInt(n, 10) == given || given == "-0"
	if err == nil && isJSON && least <= n && n <= most {
		return n, nil
	}
	allowed := "an integer"
	if least > math.MinInt64 || most < math.MaxInt64 || errors.Is(err, strconv.ErrRange) {
		allowed = fmt.Sprintf("an integer from %d to %d", least, most)
	}
	return 0, invalid(code, name, given, allowed)
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

// fault is a failure that a client asks for, to test how it handles one. A
// Prefer header asks for a fault of its own request (RFC 7240). A standing fault
// is applied to the requests that follow. The zero fault does nothing.
//
// A request with a fault takes these steps:
//
//   - It waits for -latency and for the delay. A client that leaves then has not
//     changed the pets, but its request counts.
//   - It runs the operation, unless the code skips it.
//   - It waits for the answer-delay.
//   - It sends the answer, or what the code makes of it.
//
// Every wait ends early when the client leaves, when the process stops, or when a
// reset replaces the world; the waits of a standing fault also end when it is
// replaced or deleted. A delayed request then goes on to its next step, a stalled
// connection is closed, and the rest of a drip is sent at once.
type fault struct {
	faultParameters
	kind               faultKind      // what Code does; zero without a code
	delay, answerDelay time.Duration  // Delay and AnswerDelay, parsed
	standing           *standingFault // where the fault comes from; nil for Prefer
}

// faultParameters are the parameters that Prefer and standing faults share, as
// strings. They are empty if they were not given.
type faultParameters struct {
	// Code is a status from 400 to 599, or the code of one of faultKinds. For a
	// standing fault, it may be a list, separated by commas.
	Code string `json:"code,omitempty"`
	// Delay and AnswerDelay are in seconds, from 0 to maxWait.
	Delay       string `json:"delay,omitempty"`
	AnswerDelay string `json:"answer-delay,omitempty"`
	// RetryAfter is the Retry-After header of the simulated Error, in whole
	// seconds from 0 to maxRetryAfter. By default it is 1 for 429 and 503, and
	// other statuses have no such header.
	RetryAfter string `json:"retry-after,omitempty"`
}

const (
	maxWait       = 30 * time.Second // the longest -latency, delay, answer-delay, stall and ?total= wait
	maxRetryAfter = 3600             // seconds
	dripPieces    = 10
	dripInterval  = time.Second
)

// faultKind is what a code does to a request.
type faultKind struct {
	code string
	// skips means that the operation is not performed, and that no answer is sent.
	skips bool
	// status is that of the simulated Error, which is sent in place of performing the
	// operation, or 0 if there is none.
	status int
	// alter, if it is not nil, changes the answer before it is recorded. A status
	// of 0 drops the answer.
	alter func(x *exchange, a answer) answer
	// send sends the body, after the answer has been recorded. If it is nil, the
	// body is sent at once. The body is nil for HEAD and if the answer is dropped:
	// even then, a stall has to wait, and rst has to reset the connection.
	send func(x *exchange, body []byte)
}

// faultKinds lists the codes that are not a status.
var faultKinds = []faultKind{
	{code: "hangup", skips: true},                             // closes the connection
	{code: "rst", skips: true, send: resetConnection},         // resets the connection (TCP RST)
	{code: "lost", alter: drop},                               // closes the connection without the answer
	{code: "truncate", alter: dropUnlessHalf, send: sendHalf}, // sends half of the body, and closes the connection
	{code: "stall", alter: dropUnlessHalf, send: stall},       // as truncate, but waits for maxWait before it closes
	{code: "drip", send: drip},                                // sends the body in dripPieces pieces
	{code: "html", alter: replaceWithPage},                    // sends a 502 with an HTML page, as from a gateway
}

// parseFaultKind returns what a code does.
func parseFaultKind(code string) (faultKind, error) {
	var codes []string
	for _, kind := range faultKinds {
		if kind.code == code {
			return kind, nil
		}
		codes = append(codes, kind.code)
	}
	status, err := parseInteger(codeInvalidParameter, "code", code, 400, 599)
	if err != nil {
		return faultKind{}, invalid(codeInvalidParameter, "code", code, "a status from 400 to 599, "+orList(codes))
	}
	return faultKind{status: int(status)}, nil
}

// drop drops the answer.
func drop(_ *exchange, a answer) answer {
	a.status = 0
	return a
}

// dropUnlessHalf drops the answer if its body is too short to be halved, or is
// not sent because the method is HEAD.
func dropUnlessHalf(x *exchange, a answer) answer {
	if x.r.Method == "HEAD" || len(a.body) < 2 {
		return drop(x, a)
	}
	return a
}

// replaceWithPage replaces the answer, and the headers of the operation, with
// those of a gateway that cannot reach the service.
func replaceWithPage(x *exchange, a answer) answer {
	maps.DeleteFunc(x.w.Header(), func(name string, _ []string) bool {
		return name != "Preference-Applied" && !strings.HasPrefix(name, "Access-Control-")
	})
	const page = "<html><head><title>502 Bad Gateway</title></head><body>502 Bad Gateway</body></html>\n"
	return answer{status: 502, contentType: "text/html", body: []byte(page), problem: a.problem}
}

// sendHalf sends half of the body. As that is less than its Content-Length,
// net/http then closes the connection.
func sendHalf(x *exchange, body []byte) {
	x.writeNow(body[:len(body)/2])
}

// stall sends half of the body, and makes the client wait for the rest before
// the connection is closed.
func stall(x *exchange, body []byte) {
	sendHalf(x, body)
	x.hold(maxWait)
}

// drip sends the body in dripPieces pieces, one every dripInterval. Once the
// fault, the world or the process has ended, hold returns at once, and so the
// rest is sent without delay.
func drip(x *exchange, body []byte) {
	pieces := min(dripPieces, len(body)) // so that no piece is empty
	for i := range pieces {
		if i > 0 && x.hold(dripInterval) != nil {
			return // the client has left
		}
		x.writeNow(body[len(body)*i/pieces : len(body)*(i+1)/pieces])
	}
}

// writeNow writes a part of the body, and flushes it.
func (x *exchange) writeNow(part []byte) {
	if len(part) > 0 { // even an empty Write would send the headers of an answer that is dropped
		x.w.Write(part)
		http.NewResponseController(x.w).Flush()
	}
}

// resetConnection closes the connection with a TCP RST, and sends no body.
func resetConnection(x *exchange, _ []byte) {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return // the connection is closed in the usual way
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0) // discards unsent data, and makes Close send a RST
	}
	conn.Close()
}

// simulatedError returns the Error of a fault with a status. It adds the
// headers of the Error to h. A simulated 401 is that of a wrong key.
func (f fault) simulatedError(h http.Header) Error {
	e := newError(f.kind.status, "simulated error, as requested")
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

// preferences are the parameters of a fault that Prefer can have, too.
var preferences = []string{"code", "delay", "answer-delay", "retry-after"}

// parsePrefer returns the fault that Prefer headers ask for, or the zero fault,
// and the sorted names of the preferences that it does not know (RFC 7240,
// section 2). Commas or semicolons separate preferences, also within quotes, so a
// code cannot be a list. The first preference of a name wins.
func parsePrefer(values []string) (f fault, ignored []string, err error) {
	if len(values) == 0 {
		return fault{}, nil, nil // as for most requests, without an allocation
	}
	given := &parameters{Values: url.Values{}}
	isSeparator := func(c rune) bool { return c == ',' || c == ';' }
	for _, preference := range strings.FieldsFunc(strings.Join(values, ","), isSeparator) {
		name, value, _ := strings.Cut(preference, "=")
		name = strings.ToLower(strings.Trim(name, " \t"))
		if name != "" && !given.Has(name) {
			given.Set(name, strings.Trim(strings.Trim(value, " \t"), `"`))
		}
	}
	ignored = unknownNames(given.Values, preferences)
	if !asksForFault(given) {
		return fault{}, ignored, nil
	}
	_, faults := parseFaults(given)
	return faults[0], ignored, given.err // the only one, as the code is not a list
}

// asksForFault reports whether the parameters ask for a fault at all.
func asksForFault(given *parameters) bool {
	return given.Has("code") || given.Has("delay") || given.Has("answer-delay")
}

// parseFaults parses the parameters that Prefer and standing faults share. It
// returns them as strings, and one fault for each code of the list, or one if
// there is no code. Only a fault with a status has the Retry-After.
func parseFaults(given *parameters) (all faultParameters, faults []fault) {
	var f fault
	f.Delay, f.delay = given.seconds("delay")
	f.AnswerDelay, f.answerDelay = given.seconds("answer-delay")
	all = f.faultParameters // f is the template: each code below gets a copy
	if given.Has("retry-after") {
		all.RetryAfter = strconv.FormatInt(given.integer("retry-after", 0, maxRetryAfter), 10)
	}
	if !given.Has("code") {
		return all, []fault{f}
	}
	all.Code = given.Get("code")
	for _, code := range strings.Split(all.Code, ",") {
		kind, err := parseFaultKind(code)
		given.keep(err)
		next := f
		next.kind = kind
		next.Code = code
		if kind.status != 0 {
			next.RetryAfter = all.RetryAfter
		}
		faults = append(faults, next)
	}
	return all, faults
}

// isZero reports whether no parameter was given.
func (p faultParameters) isZero() bool { return p == faultParameters{} }

// String returns the parameters in the form of Preference-Applied and of the
// log.
func (p faultParameters) String() string {
	var list []string
	add := func(name, value string) {
		if value != "" {
			list = append(list, name+"="+value)
		}
	}
	add("code", p.Code)
	add("delay", p.Delay)
	add("answer-delay", p.AnswerDelay)
	add("retry-after", p.RetryAfter)
	return strings.Join(list, ", ")
}

// standingFault is a fault for the requests that follow. It is safe for
// concurrent use.
type standingFault struct {
	faults []fault       // applied in turn
	ended  chan struct{} // closed when the fault is replaced or deleted

	mu    sync.Mutex
	state standingFaultState // guarded by mu; only the counters change
}

// standingFaultState is what PUT and GET /__admin/fault answer: the parameters
// of a standing fault, and its counters. The first Skip requests that match are
// let through, and the fault is applied to the next Times.
type standingFaultState struct {
	faultParameters
	Operation string `json:"operation,omitempty"` // the name of a route under /v1, or empty for all requests there
	Skip      int64  `json:"skip,omitempty"`
	Times     int64  `json:"times,omitempty"` // 0 for no limit; for a list, the number of its codes
	Matched   int64  `json:"matched"`         // number of requests that matched, whether it was applied or not
	Applied   int64  `json:"applied"`         // number of requests that it was applied to
	Held      int64  `json:"held"`            // number of requests that it makes wait at this moment
}

// parseStandingFault parses the parameters of PUT /__admin/fault. The fault may
// be for one of these operations.
func parseStandingFault(given *parameters, operations []string) (*standingFault, error) {
	if !asksForFault(given) {
		return nil, badRequest(codeInvalidParameter,
			"code, delay or answer-delay must be given, in the query: /__admin/fault?code=503")
	}
	all, faults := parseFaults(given)
	hasStatus := slices.ContainsFunc(faults, func(f fault) bool { return f.kind.status != 0 })
	if given.Has("retry-after") && !hasStatus {
		given.keep(badRequest(codeInvalidParameter, "retry-after needs a status as code, such as code=503"))
	}
	state := standingFaultState{
		faultParameters: all,
		Skip:            given.integer("skip", 0, math.MaxInt64),
		Times:           given.integer("times", 1, math.MaxInt64),
	}
	if len(faults) > 1 {
		if given.Has("times") {
			given.keep(badRequest(codeInvalidParameter,
				"times cannot be given with a list of codes, as each of them is applied once"))
		}
		state.Times = int64(len(faults))
	}
	state.Operation = given.choice("operation", operations)
	if given.err != nil {
		return nil, given.err
	}
	return &standingFault{faults: faults, ended: make(chan struct{}), state: state}, nil
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

// snapshot returns the parameters and the counters.
func (f *standingFault) snapshot() standingFaultState {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// addHeld adds n to the number of requests that the fault makes wait.
func (f *standingFault) addHeld(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state.Held += n
}
