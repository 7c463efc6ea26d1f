package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Error is the body of an answer that reports a failure (contract, sections 2 and 7).
type Error struct {
	Code    string `json:"code"`    // one of the constants below, made by newError, or given by a fault
	Message string `json:"message"` // for people
	Status  int    `json:"status"`  // the HTTP status of the answer

	header http.Header // of the answer
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

func badRequest(code, message string) Error {
	return Error{Code: code, Message: message, Status: http.StatusBadRequest}
}

// invalidToken returns the Error of a 401 for a wrong key.
func invalidToken(message string) Error {
	return Error{
		Code:    codeInvalidToken,
		Message: message,
		Status:  http.StatusUnauthorized,
		header:  http.Header{"Www-Authenticate": {`Bearer realm="petstore", error="invalid_token"`}},
	}
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

// firstError is the first error of several steps, so that the caller can check for it
// once, after the last step.
type firstError struct{ err error }

// note notes the result of a step: an error, or nil.
func (f *firstError) note(err error) {
	if f.err == nil {
		f.err = err
	}
}

// arguments are what a query or a Prefer header gives for the parameters that are listed. The
// error is that of the first one that a method has refused.
type arguments struct {
	given  url.Values
	listed []string // names
	firstError
}

// lookup returns what is given for a parameter, and whether anything is. It panics if the
// parameter is not listed: clients could not give it.
func (a *arguments) lookup(name string) (text string, isGiven bool) {
	if !slices.Contains(a.listed, name) {
		panic("the parameter " + name + " is not listed")
	}
	return a.given.Get(name), a.given.Has(name)
}

// text returns a parameter that can be any text, or "" if it is not given.
func (a *arguments) text(name string) string {
	text, _ := a.lookup(name)
	return text
}

// integer returns an integer from least to most, or byDefault if it is not given.
func (a *arguments) integer(name string, least, most, byDefault int64) int64 {
	text, isGiven := a.lookup(name)
	if !isGiven {
		return byDefault
	}
	n, err := parseInteger(invalidParameter, name, text, least, most)
	a.note(err)
	return n
}

// choice returns a parameter that must be one of the allowed words, or "" if it is not given.
func (a *arguments) choice(name string, allowed []string) string {
	word, isGiven := a.lookup(name)
	if isGiven && !slices.Contains(allowed, word) {
		a.note(invalidParameter(name, word, orList(allowed)))
	}
	return word
}

// seconds returns a number of seconds from 0 to maxDelay, in its shortest form, or "" if it is
// not given. It takes the numbers of JSON that have neither a sign nor an exponent.
func (a *arguments) seconds(name string) string {
	text, isGiven := a.lookup(name)
	if !isGiven {
		return ""
	}
	n, err := strconv.ParseFloat(text, 64)
	isPlain := json.Valid([]byte(text)) && strings.Trim(text, ".0123456789") == ""
	if err != nil || !isPlain || n > maxDelay.Seconds() {
		allowed := fmt.Sprintf("a number of seconds from 0 to %v, such as 2 or 0.5", maxDelay.Seconds())
		a.note(invalidParameter(name, text, allowed))
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// retryAfter returns a number of seconds, dateAfter and such a number, "none", or "" if the
// parameter is not given.
func (a *arguments) retryAfter(name string) string {
	text, isGiven := a.lookup(name)
	if !isGiven || text == "none" {
		return text
	}
	number, isDate := strings.CutPrefix(text, dateAfter)
	n, err := parseInteger(invalidParameter, name, number, 0, maxRetryAfter)
	if err != nil { // its message does not name the other forms
		allowed := fmt.Sprintf("an integer from 0 to %d, date: and such an integer, or none", maxRetryAfter)
		a.note(invalidParameter(name, text, allowed))
	}
	seconds := strconv.FormatInt(n, 10) // as it may be given as -0
	if isDate {
		return dateAfter + seconds
	}
	return seconds
}

// errorCode returns a word for Error.Code, or "" if it is not given.
func (a *arguments) errorCode(name string) string {
	word, isGiven := a.lookup(name)
	if isGiven && !anyErrorCode.MatchString(word) {
		a.note(invalidParameter(name, word, "1 to 100 of the characters a-z, A-Z, 0-9, _, - and ."))
	}
	return word
}

var anyErrorCode = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,100}$`)

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

// fault is what a request gets to test a program: it fails, or waits. A Prefer header asks
// for a fault of its own request, and a standing fault gives one to the requests that follow.
// A fault must not be modified: requests and their entries in the journal share it.
type fault struct {
	faultParameters // whose Code is a single one, or empty
	effect          *effect
	delay           time.Duration
	answerDelay     time.Duration
	released        context.Context // once it is done, no request waits for the fault
}

// noFault is the fault of a request that gets none. It must not be modified.
var noFault = &fault{effect: noEffect, released: context.Background()}

// faultParameters are the parameters of a fault, as they are shown. Those that were not
// given are empty. What they mean is in api/openapi.json.
type faultParameters struct {
	Code        string `json:"code,omitempty"`
	Delay       string `json:"delay,omitempty"`
	AnswerDelay string `json:"answer-delay,omitempty"`
	RetryAfter  string `json:"retry-after,omitempty"` // of a simulated error
	ErrorCode   string `json:"error-code,omitempty"`  // of a simulated error
}

type faultParameter struct {
	name  string
	value *string
	parse func(given *arguments, name string) string // returns the value
}

// all returns the parameters in the order of Preference-Applied.
func (p *faultParameters) all() []faultParameter {
	return []faultParameter{
		{"code", &p.Code, (*arguments).text},
		{"delay", &p.Delay, (*arguments).seconds},
		{"answer-delay", &p.AnswerDelay, (*arguments).seconds},
		{"retry-after", &p.RetryAfter, (*arguments).retryAfter},
		{"error-code", &p.ErrorCode, (*arguments).errorCode},
	}
}

var faultParameterNames = func() (names []string) {
	for _, p := range new(faultParameters).all() {
		names = append(names, p.name)
	}
	return names
}()

// String returns the parameters in the form of Preference-Applied and of the log,
// such as "code=503, delay=0.2".
func (p faultParameters) String() string {
	var given []string
	for _, p := range p.all() {
		if *p.value != "" {
			given = append(given, p.name+"="+*p.value)
		}
	}
	return strings.Join(given, ", ")
}

// pause returns the time for which a RetryAfter asks, or 0, and whether as a date.
func (p faultParameters) pause() (pause time.Duration, isDate bool) {
	seconds, isDate := strings.CutPrefix(p.RetryAfter, dateAfter)
	return parsedSeconds(seconds), isDate
}

// parsedSeconds returns the duration of a number of seconds, or 0 for any other text.
func parsedSeconds(text string) time.Duration {
	n, _ := strconv.ParseFloat(text, 64)
	return time.Duration(n * float64(time.Second))
}

const (
	maxDelay       = 30 * time.Second // of a delay and of an answer-delay
	maxRetryAfter  = 3600             // seconds
	dateAfter      = "date:"          // begins a RetryAfter that is to be a date
	afterOperation = "after:"         // begins a Code of an error that is sent after the operation
)

// chooseFault chooses the fault of the request. A fault in the Prefer header takes
// precedence; the standing fault then does not count the request.
func (x *exchange) chooseFault() error {
	f, ignored, err := parsePrefer(x.world.ctx, x.r.Header["Prefer"])
	x.outcome.Ignored = ignored
	if err != nil {
		return err
	}
	if f != nil {
		x.w.Header().Set("Preference-Applied", f.String())
	} else if standing := x.world.standing.Load(); standing != nil {
		f = standing.apply(x.route.operation)
	}
	if f != nil {
		x.fault = f
		x.service.journal.update(func() { x.entry.Fault = f })
	}
	return nil
}

// parsePrefer returns the fault that Prefer headers ask for, or nil, and the sorted names
// of the preferences that it does not know. The fault is released when ctx is done. The
// first preference of a name wins. Commas and semicolons separate preferences, even within
// quotes. In RFC 7240, a semicolon begins a parameter of a preference instead.
func parsePrefer(ctx context.Context, lines []string) (f *fault, ignored []string, err error) {
	if len(lines) == 0 {
		return nil, nil, nil // as for most requests, without an allocation
	}
	values := url.Values{}
	isSeparator := func(c rune) bool { return c == ',' || c == ';' }
	for _, preference := range strings.FieldsFunc(strings.Join(lines, ","), isSeparator) {
		name, value, _ := strings.Cut(preference, "=")
		name = strings.ToLower(strings.Trim(name, " \t"))
		if name != "" && !values.Has(name) {
			values.Set(name, strings.Trim(strings.Trim(value, " \t"), `"`))
		}
	}
	given := &arguments{given: values, listed: faultParameterNames}
	asked, faults := parseFault(ctx, given)
	if asked != (faultParameters{}) {
		f = faults[0] // the only one: a comma ends a preference, so the code is no list
	}
	return f, unknownNames(values, faultParameterNames), given.err
}

// parseFault parses the parameters that Prefer and standing faults share. It returns them,
// and the faults that they ask for: one for each code of a list, or else one. The faults are
// released when ctx is done. The results are valid if given.err is nil.
func parseFault(ctx context.Context, given *arguments) (asked faultParameters, faults []*fault) {
	for _, p := range asked.all() {
		*p.value = p.parse(given, p.name)
	}
	codes := []string{noEffect.code}
	_, hasCode := given.lookup("code")
	if hasCode {
		codes = strings.Split(asked.Code, ",")
	}
	hasStatus := false
	for _, code := range codes {
		effect, err := findEffect(code)
		given.note(err)
		f := &fault{faultParameters: asked, effect: effect, released: ctx}
		f.delay, f.answerDelay = parsedSeconds(asked.Delay), parsedSeconds(asked.AnswerDelay)
		if hasCode {
			f.Code = code
		}
		if effect.errorStatus > 0 {
			hasStatus = true
		} else {
			f.RetryAfter, f.ErrorCode = "", ""
		}
		faults = append(faults, f)
	}
	for _, name := range []string{"retry-after", "error-code"} {
		if _, isGiven := given.lookup(name); isGiven && !hasStatus {
			given.note(badRequest(codeInvalidParameter, name+" needs a status as code, such as code=503"))
		}
	}
	return asked, faults
}

// standingFault gives faults to the requests that follow. It is safe for concurrent use.
type standingFault struct {
	faultParameters        // its Code may be a list, separated by commas
	Operation       string `json:"operation,omitempty"` // empty for all requests under /v1
	Skip            int64  `json:"skip,omitempty"`
	Times           int64  `json:"times,omitempty"` // 0 if it is not given

	mu      sync.Mutex // guards the counters
	Matched int64      `json:"matched"`
	Applied int64      `json:"applied"`

	faults     []*fault           // one for each code of a list, each applied once, or else one
	maxApplied int64              // the largest value of Applied; of a list, its length
	release    context.CancelFunc // releases the faults
}

// standingFaultNames are the names of the parameters of PUT /__admin/fault.
var standingFaultNames = slices.Concat(faultParameterNames, []string{"operation", "skip", "times"})

// parseStandingFault parses the parameters of PUT /__admin/fault. Once the release of the fault
// has been called, or ctx is done, no request waits for it.
func parseStandingFault(ctx context.Context, given *arguments) (*standingFault, error) {
	f := &standingFault{}
	ctx, f.release = context.WithCancel(ctx)
	f.faultParameters, f.faults = parseFault(ctx, given)
	if f.faultParameters == (faultParameters{}) {
		given.note(badRequest(codeInvalidParameter,
			"code, delay or answer-delay must be given, in the query: /__admin/fault?code=503"))
	}
	f.Skip = given.integer("skip", 0, math.MaxInt64, 0)
	f.Times = given.integer("times", 1, math.MaxInt64, 0)
	f.maxApplied = cmp.Or(f.Times, math.MaxInt64)
	if len(f.faults) > 1 {
		f.maxApplied = int64(len(f.faults))
		if f.Times > 0 {
			given.note(badRequest(codeInvalidParameter,
				"times cannot be given with a list of codes, as each of them is applied once"))
		}
	}
	f.Operation = given.choice("operation", faultOperations())
	if given.err != nil {
		f.release()
		return nil, given.err
	}
	return f, nil
}

// apply counts a request of this operation if the fault is for it, and returns the fault
// that the request gets, or nil.
func (f *standingFault) apply(operation string) *fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Operation != "" && f.Operation != operation {
		return nil
	}
	next := f.next()
	f.Matched++
	if next != nil {
		f.Applied++
	}
	return next
}

// next returns the fault that the next matching request gets, or nil. The caller holds mu.
func (f *standingFault) next() *fault {
	if f.Matched < f.Skip || f.Applied == f.maxApplied {
		return nil
	}
	return f.faults[f.Applied%int64(len(f.faults))]
}

// encode returns the JSON of a standing fault, as PUT and GET /__admin/fault show it.
func (f *standingFault) encode() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	shown := struct {
		*standingFault
		Next *faultParameters `json:"next,omitempty"`
	}{standingFault: f}
	if next := f.next(); next != nil {
		shown.Next = &next.faultParameters
	}
	return encodeJSON(shown)
}

// effect is what the code of a fault does to a request. It must not be modified. What it
// means for the client is described in api/openapi.json.
type effect struct {
	code           string
	errorStatus    int                         // the status of the simulated error, or 0
	skipsOperation bool                        // whether the operation is not performed
	change         func(*fault, answer) answer // returns the answer to send; nil leaves it as it is
	cut            int                         // percent of the body that is not sent; see send
	pieces         int                         // in which the body is sent, if there are several
	pause          int                         // in seconds, after each piece; the last piece of a whole body has none
	end            ending                      // how the request ends
	spoils         bool                        // whether the client cannot use what it gets of the body
}

// noEffect is also that of a fault without a code.
var noEffect = &effect{code: "ok"}

// wordEffects are the effects of the codes that are words.
var wordEffects = []*effect{
	noEffect,
	{code: "hangup", skipsOperation: true, cut: 100, end: endClosed},
	{code: "rst", skipsOperation: true, cut: 100, end: endReset},
	{code: "lost", cut: 100, end: endClosed},
	{code: "truncate", cut: 50, end: endClosed, spoils: true},
	{code: "stall", cut: 50, pause: 30, end: endClosed, spoils: true},
	{code: "drip", pieces: 10, pause: 1},
	{code: "malformed", change: halve, spoils: true},
	{code: "html", change: replaceByHTML},
	{code: "newer", change: addMember},
}

// findEffect returns the effect of a code, or noEffect and an Error if there is no such code.
func findEffect(code string) (*effect, error) {
	var words []string
	for _, e := range wordEffects {
		if e.code == code {
			return e, nil
		}
		words = append(words, e.code)
	}
	number, isAfter := strings.CutPrefix(code, afterOperation)
	status, err := parseInteger(invalidParameter, "code", number, 400, 599)
	if err != nil { // its message does not name the other forms
		return noEffect, invalidParameter("code", code,
			"a status from 400 to 599, after: and such a status, "+orList(words))
	}
	return &effect{code: code, errorStatus: int(status), skipsOperation: !isAfter, change: simulate}, nil
}

// simulate answers with the Error of a status. A simulated 401 is that of a wrong key.
func simulate(f *fault, _ answer) answer {
	const message = "simulated error, as requested"
	e := newError(f.effect.errorStatus, message)
	retryAfter := f.RetryAfter
	switch e.Status {
	case http.StatusUnauthorized:
		e = invalidToken(message)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		retryAfter = cmp.Or(retryAfter, "1")
	}
	e.Code = cmp.Or(f.ErrorCode, e.Code)
	a := errorAnswer(e)
	if pause, isDate := f.pause(); isDate {
		date := time.Now().Add(pause + time.Second - 1) // which is rounded up
		retryAfter = date.UTC().Format(http.TimeFormat)
	}
	if retryAfter != "" && retryAfter != "none" {
		a.header = http.Header{"Retry-After": {retryAfter}}
		maps.Copy(a.header, e.header)
	}
	return a
}

// halve leaves half of the body, so that it is no JSON.
func halve(_ *fault, a answer) answer {
	a.body = a.body[:len(a.body)/2]
	return a
}

// addMember gives each pet a member that clients do not know. What it replaces occurs only where a
// pet begins, as each quote in a name has a backslash before it.
func addMember(_ *fault, a answer) answer {
	a.body = bytes.ReplaceAll(a.body, []byte(`{"id":`), []byte(`{"addedLater":{"x":[1]},"id":`))
	return a
}

// replaceByHTML answers as a gateway that lost the answer.
func replaceByHTML(_ *fault, a answer) answer {
	return answer{
		status:      http.StatusBadGateway,
		contentType: "text/html",
		body:        []byte("<html><head><title>502 Bad Gateway</title></head><body>502 Bad Gateway</body></html>\n"),
		errorText:   a.errorText,
		fromGateway: true,
	}
}

// resetTCP closes the connection of w with a TCP RST, if net/http hands it over.
func resetTCP(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		conn.(*net.TCPConn).SetLinger(0) // discards unsent data, and makes Close send a RST
		conn.Close()
	}
}
