package main

// This file holds the Error, the parsing of what clients give, most of whose failures
// are Errors, and the faults that clients ask for, in the order in which a request meets
// them.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
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

// with returns e with this header of its response, and no other.
func (e Error) with(name, value string) Error {
	e.header = http.Header{http.CanonicalHeaderKey(name): {value}}
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

// orList returns "a, b or c". It needs one word or more.
func orList(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
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

// seconds returns a number of seconds from 0 to maxDelay, in its shortest form and as
// a Duration, or "" and 0 if it is not given. It takes the numbers of JSON that have
// neither a sign nor an exponent.
func (a *arguments) seconds(name string) (string, time.Duration) {
	if !a.Has(name) {
		return "", 0
	}
	text := a.Get(name)
	n, err := strconv.ParseFloat(text, 64)
	isPlain := json.Valid([]byte(text)) && strings.Trim(text, ".0123456789") == ""
	if err != nil || !isPlain || n > maxDelay.Seconds() {
		allowed := fmt.Sprintf("a number of seconds from 0 to %v, such as 2 or 0.5", maxDelay.Seconds())
		a.keep(invalidParameter(name, text, allowed))
	}
	return strconv.FormatFloat(n, 'f', -1, 64), time.Duration(n * float64(time.Second))
}

// retryAfter returns the parameter retry-after, or the zero value if it is not given.
func (a *arguments) retryAfter() retryAfter {
	const name = "retry-after"
	text := a.Get(name)
	if text == "none" || !a.Has(name) {
		return retryAfter{text: text}
	}
	number, isDate := strings.CutPrefix(text, "date:")
	n, err := parseInteger(invalidParameter, name, number, 0, maxRetryAfter)
	if err != nil { // its message does not name the other forms
		allowed := fmt.Sprintf("an integer from 0 to %d, date: and such an integer, or none", maxRetryAfter)
		a.keep(invalidParameter(name, text, allowed))
	}
	text = strconv.FormatInt(n, 10)
	if isDate {
		return retryAfter{text: "date:" + text, dateIn: time.Duration(n) * time.Second, isDate: true}
	}
	return retryAfter{text: text}
}

// object is a JSON object that is being parsed. A method that parses a member removes
// it, so only the unknown members are left in the end. The first error is kept.
type object struct {
	members map[string]json.RawMessage
	firstError
}

// parseObject parses the JSON object of a pet. The last of several members with the
// same name wins, as in encoding/json. Error messages call the text name,
// such as "the body".
func parseObject(name string, text []byte) (*object, error) {
	if !utf8.Valid(text) {
		return nil, badRequest(codeInvalidBody, name+" is not valid UTF-8")
	}
	o := &object{}
	err := parseJSON(name, text, &o.members, `a JSON object, such as {"name":"Rex","categoryId":7}`)
	return o, err
}

// take removes a member and returns its JSON. If there is none, it keeps an error
// that says what is allowed, and returns nil.
func (o *object) take(name, allowed string) json.RawMessage {
	value := o.members[name]
	if value == nil {
		o.keep(invalidJSON(name, "missing", allowed))
	}
	delete(o.members, name)
	return value
}

// text returns a member that must be a JSON string.
func (o *object) text(name string) string {
	value := o.take(name, "a string")
	if !bytes.HasPrefix(value, []byte(`"`)) {
		o.keep(invalidJSON(name, string(value), "a string"))
	}
	var text string
	json.Unmarshal(value, &text) // fails only after an error above
	return text
}

// choice returns a member that must be one of the allowed words.
func (o *object) choice(name string, allowed []string) string {
	value := o.take(name, orList(allowed))
	var word string
	json.Unmarshal(value, &word) // what is not a string is not one of the words
	if !slices.Contains(allowed, word) {
		o.keep(invalidJSON(name, string(value), orList(allowed)))
	}
	return word
}

// integer returns a member that must be an integer.
func (o *object) integer(name string, least, most int64) int64 {
	value := o.take(name, "an integer")
	n, err := parseInteger(invalidJSON, name, string(value), least, most)
	o.keep(err)
	return n
}

// parseJSON parses text into v. Error messages call the text name, such as "the body".
// They also say which JSON is allowed.
func parseJSON(name string, text []byte, v any, allowed string) error {
	err := json.Unmarshal(text, v)
	trimmed := bytes.TrimSpace(text)
	isNull := string(trimmed) == "null" // encoding/json accepts null for anything
	if err == nil && !isNull {
		return nil
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) && len(trimmed) > 0 {
		message := fmt.Sprintf("%s is not JSON: %v, at byte %d; it must be %s", name, syntax, syntax.Offset, allowed)
		return badRequest(codeInvalidBody, message)
	}
	return invalidJSON(name, cmp.Or(string(trimmed), "empty"), allowed)
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
// requests that follow. The zero fault does nothing. See service.handle.
type fault struct {
	faultParameters
	delay       time.Duration
	answerDelay time.Duration
	retryAfter  retryAfter
	status      int                    // Code, if it is a status, or 0
	answer      func(*exchange) answer // makes the answer in place of exchange.perform; nil without a code
	standing    *standingFault         // where the fault comes from; nil for Prefer
	ended       <-chan struct{}        // closed when no request is to wait for it any longer
}

// faultParameters are the parameters that Prefer and standing faults share. Those
// that were not given are empty. What they mean is in api/openapi.json.
type faultParameters struct {
	Code        string `json:"code,omitempty"` // of a standing fault, it may be a list, separated by commas
	Delay       string `json:"delay,omitempty"`
	AnswerDelay string `json:"answer-delay,omitempty"`
	RetryAfter  string `json:"retry-after,omitempty"`
}

// preferences are the names of faultParameters, in their order.
var preferences = []string{"code", "delay", "answer-delay", "retry-after"}

// areGiven reports whether there is a parameter.
func (p faultParameters) areGiven() bool { return p != faultParameters{} }

// String returns the parameters in the form of Preference-Applied and of the log,
// such as "code=503, delay=0.2".
func (p faultParameters) String() string {
	var list []string
	for i, value := range []string{p.Code, p.Delay, p.AnswerDelay, p.RetryAfter} {
		if value != "" {
			list = append(list, preferences[i]+"="+value)
		}
	}
	return strings.Join(list, ", ")
}

// retryAfter is the header Retry-After of a simulated error.
type retryAfter struct {
	text   string        // as in faultParameters; also the value of the header if it is a number
	isDate bool          // whether the value of the header is a date
	dateIn time.Duration // from when the header is sent until that date
}

// header returns the value of the header, or "" for none.
func (r retryAfter) header() string {
	if r.isDate {
		at := time.Now().Add(r.dateIn + time.Second - 1) // so that Format does not round down
		return at.UTC().Format(http.TimeFormat)
	}
	if r.text == "none" {
		return ""
	}
	return r.text
}

const (
	maxDelay      = 30 * time.Second // of a delay and of an answer-delay
	maxRetryAfter = 3600             // seconds
	dripPieces    = 10
)

// chooseFault sets the fault of the request. A fault in the Prefer header takes
// precedence; the standing fault then does not count the request.
func (x *exchange) chooseFault() error {
	if !x.takesFault {
		return nil
	}
	f, ignored, err := parsePrefer(x.r.Header["Prefer"])
	x.entry.Ignored = ignored
	if err != nil {
		return err
	}
	if f.areGiven() {
		f.ended = x.world.ctx.Done()
		x.w.Header().Set("Preference-Applied", f.String())
	} else if standing := x.world.standing.Load(); standing != nil {
		f = standing.next(x.route.operation)
	}
	x.fault = f
	return nil
}

// parsePrefer returns the fault that Prefer headers ask for, or the zero fault, and the
// sorted names of the preferences that it does not know. The first preference of a name
// wins. Commas and semicolons separate preferences, even within quotes. So a code cannot
// be a list. In RFC 7240, a semicolon begins a parameter of a preference instead.
func parsePrefer(lines []string) (f fault, ignored []string, err error) {
	if len(lines) == 0 {
		return f, nil, nil // as for most requests, without an allocation
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
	if !slices.ContainsFunc(preferences, given.Has) {
		return f, ignored, nil
	}
	_, faults := parseFaults(given, []string{given.Get("code")})
	return faults[0], ignored, given.err
}

// parseFaults parses the parameters that Prefer and standing faults share, with these
// codes in place of the one that is given. It returns the parameters, and a fault for
// each code. They are only valid if given.err is nil.
func parseFaults(given *arguments, codes []string) (faultParameters, []fault) {
	var shared fault
	shared.Delay, shared.delay = given.seconds("delay")
	shared.AnswerDelay, shared.answerDelay = given.seconds("answer-delay")
	retryAfter := given.retryAfter()

	var faults []fault
	hasStatus := false
	for _, code := range codes {
		f := shared
		if given.Has("code") {
			given.keep(f.setCode(code))
		}
		if f.status != 0 { // only an Error has that header
			f.RetryAfter, f.retryAfter = retryAfter.text, retryAfter
			hasStatus = true
		}
		faults = append(faults, f)
	}
	if given.Has("retry-after") && !hasStatus {
		given.keep(badRequest(codeInvalidParameter, "retry-after needs a status as code, such as code=503"))
	}
	shared.Code, shared.RetryAfter = given.Get("code"), retryAfter.text
	return shared.faultParameters, faults
}

// setCode sets what the fault does.
func (f *fault) setCode(code string) error {
	f.Code = code
	var words []string
	for _, known := range faultCodes {
		if known.code == code {
			f.answer = known.answer
			return nil
		}
		words = append(words, known.code)
	}
	n, err := parseInteger(invalidParameter, "code", code, 400, 599)
	if err != nil { // its message does not name the words
		return invalidParameter("code", code, "a status from 400 to 599, "+orList(words))
	}
	f.status, f.answer = int(n), simulate
	return nil
}

// standingFault is a fault for the requests that follow. It is safe for
// concurrent use.
type standingFault struct {
	faults []fault         // one for each code of state.Code, applied in turn
	ctx    context.Context // done when no request is to wait for the fault any longer
	end    context.CancelFunc

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
	Held      int64  `json:"held"` // set by showFault
}

// newStandingFault returns a fault that ends when end is called, or ctx is done.
func newStandingFault(ctx context.Context, faults []fault, state standingFaultState) *standingFault {
	ctx, end := context.WithCancel(ctx)
	return &standingFault{faults: faults, ctx: ctx, end: end, state: state}
}

// parseStandingFault parses the parameters of PUT /__admin/fault. It returns the state
// of the new fault, and a fault for each of its codes. The operations are the values
// that the parameter operation may have.
func parseStandingFault(given *arguments, operations []string) (state standingFaultState, faults []fault, err error) {
	if !slices.ContainsFunc(preferences, given.Has) {
		return state, nil, badRequest(codeInvalidParameter,
			"code, delay or answer-delay must be given, in the query: /__admin/fault?code=503")
	}
	state.faultParameters, faults = parseFaults(given, strings.Split(given.Get("code"), ","))
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
	next.standing, next.ended = f, f.ctx.Done()
	s.Applied++
	return next
}

func (f *standingFault) snapshot() standingFaultState {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// wait blocks for d, or until one of these happens: the fault, the world or the process
// ends, or net/http notices that the client has closed the connection or its sending
// half, or that a write has failed. The last two count as the client having left: wait
// then returns errClientLeft, and otherwise nil.
func (x *exchange) wait(d time.Duration) error {
	if d == 0 {
		return nil
	}
	x.listAsWaiting()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.fault.ended:
	case <-x.r.Context().Done():
	}
	if x.r.Context().Err() != nil {
		return errClientLeft
	}
	return nil
}

// listAsWaiting lets the journal list the request as waiting, until it is recorded.
func (x *exchange) listAsWaiting() {
	x.world.journal.addWaiting(x.sentRequest(), x.fault.standing)
}

// faultCodes lists the codes that are not a status. What a client gets is described
// in api/openapi.json. The function of a code calls exchange.perform if the operation
// is to be performed.
var faultCodes = []struct {
	code   string
	answer func(*exchange) answer
}{
	{"ok", (*exchange).perform},
	{"hangup", func(*exchange) answer { return answer{} }},
	{"rst", func(*exchange) answer { return answer{isReset: true} }},
	{"lost", lose},
	{"truncate", truncate},
	{"stall", stall},
	{"drip", drip},
	{"malformed", malform},
	{"html", replaceByPage},
}

// simulate answers with the Error of a fault that has a status. A simulated 401 is
// that of a wrong key.
func simulate(x *exchange) answer {
	const message = "simulated error, as requested"
	status := x.fault.status
	e := newError(status, message)
	if status == 401 {
		e = invalidToken(message)
	}
	a := x.failure(e)
	a.retryAfter = x.fault.retryAfter
	if a.retryAfter.text == "" && (status == 429 || status == 503) {
		a.retryAfter.text = "1"
	}
	return a
}

// lose performs the operation, and sends no answer.
func lose(x *exchange) answer {
	a := x.perform()
	a.status = noAnswer
	return a
}

// truncate sends half of the body. As that is less than its Content-Length, net/http
// then closes the connection. If there is no body to halve, as for HEAD, no answer is
// sent.
func truncate(x *exchange) answer {
	a := x.perform()
	if x.r.Method == "HEAD" || len(a.body) == 0 {
		a.status = noAnswer
	}
	a.rest = a.body[:len(a.body)/2]
	return a
}

// stall is truncate with a pause before the connection is closed, even if no answer is
// sent.
func stall(x *exchange) answer {
	a := truncate(x)
	a.slow, a.pause, a.rest = [][]byte{a.rest}, x.service.times.stall, nil
	return a
}

// drip sends the body in dripPieces pieces, or in one for each byte of a shorter body.
func drip(x *exchange) answer {
	a := x.perform()
	if x.r.Method == "HEAD" {
		return a
	}
	a.pause = x.service.times.drip
	for left := min(dripPieces, len(a.body)); left > 1; left-- {
		size := len(a.rest) / left
		a.slow = append(a.slow, a.rest[:size])
		a.rest = a.rest[size:]
	}
	return a
}

// malform halves the body, so that it is no JSON. The answer is otherwise whole.
func malform(x *exchange) answer {
	a := x.perform()
	a.body = a.body[:len(a.body)/2]
	a.rest = a.body
	return a
}

// replaceByPage performs the operation, and answers as a gateway that lost the answer.
func replaceByPage(x *exchange) answer {
	performed := x.perform()
	x.route.headers = nil // a gateway does not have them
	a := newAnswer(502, "text/html",
		[]byte("<html><head><title>502 Bad Gateway</title></head><body>502 Bad Gateway</body></html>\n"))
	a.problem = performed.problem
	return a
}
