package main

// This file holds failures: first the real ones and the checks that return
// them, then the faults, which are the failures that clients ask for.

import (
	"cmp"
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

// checkChoice returns an Error with this code unless given is one of the allowed
// words.
func checkChoice(code, name, given string, allowed []string) error {
	if slices.Contains(allowed, given) {
		return nil
	}
	return invalid(code, name, given, orList(allowed))
}

// orList returns "a, b or c".
func orList(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// parseInteger parses an integer in its JSON form: without a plus sign, a
// leading zero, a fraction or an exponent. For any other text, it returns an
// Error with this code.
func parseInteger(code, name, given string, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(given, 10, 64)
	// -0 is valid JSON, but FormatInt returns "0". It is refused where negative
	// integers are.
	isMinusZero := given == "-0" && least < 0
	isJSON := isMinusZero || strconv.FormatInt(n, 10) == given
	if err == nil && isJSON && least <= n && n <= most {
		return n, nil
	}
	allowed := "an integer"
	if least > math.MinInt64 || most < math.MaxInt64 || errors.Is(err, strconv.ErrRange) {
		allowed = fmt.Sprintf("an integer from %d to %d", least, most)
	}
	return 0, invalid(code, name, given, allowed)
}

// integerParameter returns an integer from the parameters of a query or of a
// Prefer header, or fallback if it is not given.
func integerParameter(given url.Values, name string, fallback, least, most int64) (int64, error) {
	if !given.Has(name) {
		return fallback, nil
	}
	return parseInteger(codeInvalidParameter, name, given.Get(name), least, most)
}

// fault is a failure that a client asks for, to test how it handles one. A
// Prefer header asks for a fault of its own request (RFC 7240). A standing fault
// is applied to the requests that follow. The zero fault does nothing.
//
// A request with a fault takes these steps:
//
//   - It waits for -latency and for the delay. A client that leaves then has not
//     changed the pets, but its request counts.
//   - It runs the operation. A status answers with its Error instead; hangup and
//     rst skip the operation.
//   - It waits for the answer-delay.
//   - It sends the answer, or what the code makes of it. The constants below
//     describe the codes.
//
// Every wait ends early when the process stops or when a reset replaces the
// world; the waits of a standing fault also end when it is replaced or deleted.
// A delayed request then goes on to its next step, a stalled connection is
// closed, and the rest of a drip is sent at once.
//
// In handlers.go, applyFault takes the first two steps, and finish the others.
type fault struct {
	faultParameters
	status             int           // the status that Code names, or 0
	delay, answerDelay time.Duration // Delay and AnswerDelay, parsed
}

// faultParameters are the parameters that both kinds of fault have, as given.
// They are empty if they were not given.
type faultParameters struct {
	// Code is a status from 400 to 599 or one of faultCodes. For a standing
	// fault, it may be a list, separated by commas.
	Code string `json:"code,omitempty"`
	// Delay and AnswerDelay are in seconds, from 0 to maxWait.
	Delay       string `json:"delay,omitempty"`
	AnswerDelay string `json:"answer-delay,omitempty"`
	// RetryAfter is the Retry-After header of the simulated Error, in whole
	// seconds from 0 to maxRetryAfter. By default it is 1 for 429 and 503, and
	// other statuses have no such header.
	RetryAfter string `json:"retry-after,omitempty"`
}

// The codes of a fault that are not a status. If there is no body to be halved,
// as for HEAD, truncate and stall send nothing.
const (
	faultHangup   = "hangup"   // skips the operation, and closes the connection
	faultRST      = "rst"      // skips the operation, and resets the connection (TCP RST)
	faultLost     = "lost"     // closes the connection without the answer
	faultTruncate = "truncate" // sends half of the body, and closes the connection
	faultStall    = "stall"    // sends half of the body, waits for maxWait, and closes the connection
	faultDrip     = "drip"     // sends the body in dripPieces pieces, one every dripInterval
	faultHTML     = "html"     // sends a 502 with an HTML page, as from a gateway
)

const (
	maxWait       = 30 * time.Second // the longest -latency, delay, answer-delay, stall and ?total= wait
	maxRetryAfter = 3600             // seconds
	dripPieces    = 10
	dripInterval  = time.Second
)

// The words that describe a fault. In handlers.go, faultKinds has each of
// faultCodes, and routes has each of faultOperations.
var (
	faultCodes      = []string{faultHangup, faultRST, faultLost, faultTruncate, faultStall, faultDrip, faultHTML}
	faultOperations = []string{"listPets", "createPet", "getPet"}
	// preferences are the names that mean something in a Prefer header.
	preferences = []string{"code", "delay", "answer-delay", "retry-after"}
	// standingFaultParameters are the query parameters of PUT /__admin/fault.
	standingFaultParameters = slices.Concat(preferences, []string{"operation", "skip", "times"})
)

// parsePrefer returns the fault that Prefer headers ask for, or the zero fault.
// Commas or semicolons separate preferences, also within quotes, so a code
// cannot be a list. The first preference of a name wins, and those with unknown
// names are ignored (RFC 7240, section 2).
func parsePrefer(headers []string) (fault, error) {
	if len(headers) == 0 {
		return fault{}, nil
	}
	given := url.Values{}
	isSeparator := func(c rune) bool { return c == ',' || c == ';' }
	for _, preference := range strings.FieldsFunc(strings.Join(headers, ","), isSeparator) {
		name, value, _ := strings.Cut(preference, "=")
		name = strings.ToLower(strings.Trim(name, " \t"))
		if slices.Contains(preferences, name) && !given.Has(name) {
			given.Set(name, strings.Trim(strings.Trim(value, " \t"), `"`))
		}
	}
	if !asksForFault(given) {
		return fault{}, nil
	}
	faults, err := parseFaults(given)
	if err != nil {
		return fault{}, err
	}
	return faults[0], nil // the only one
}

// asksForFault reports whether the parameters ask for a fault at all.
func asksForFault(given url.Values) bool {
	return given.Has("code") || given.Has("delay") || given.Has("answer-delay")
}

// parseFaults parses the parameters that both kinds of fault have. It returns a
// fault for each code of the list, or one fault if there is no code.
func parseFaults(given url.Values) ([]fault, error) {
	f := fault{faultParameters: faultParameters{
		Delay:       given.Get("delay"),
		AnswerDelay: given.Get("answer-delay"),
		RetryAfter:  given.Get("retry-after"),
	}}
	var err error
	if f.delay, err = parseDelay(given, "delay"); err != nil {
		return nil, err
	}
	if f.answerDelay, err = parseDelay(given, "answer-delay"); err != nil {
		return nil, err
	}
	if _, err := integerParameter(given, "retry-after", 0, 0, maxRetryAfter); err != nil {
		return nil, err
	}
	if !given.Has("code") {
		return []fault{f}, nil
	}
	var faults []fault
	for _, code := range strings.Split(given.Get("code"), ",") {
		f.Code = code
		if f.status, err = parseFaultCode(code); err != nil {
			return nil, err
		}
		faults = append(faults, f)
	}
	return faults, nil
}

// parseFaultCode returns the status that a code of a fault names, or 0 for one
// of faultCodes.
func parseFaultCode(code string) (status int, err error) {
	if slices.Contains(faultCodes, code) {
		return 0, nil
	}
	n, err := parseInteger(codeInvalidParameter, "code", code, 400, 599)
	if err != nil {
		return 0, invalid(codeInvalidParameter, "code", code, "a status from 400 to 599, "+orList(faultCodes))
	}
	return int(n), nil
}

// parseDelay returns the duration of a delay, or 0 if it is not given.
func parseDelay(given url.Values, name string) (time.Duration, error) {
	if !given.Has(name) {
		return 0, nil
	}
	text := given.Get(name)
	seconds, err := strconv.ParseFloat(text, 64)
	isPlain := strings.Trim(text, "0123456789.") == "" // ParseFloat accepts signs, exponents and Inf, too
	if err != nil || !isPlain || seconds > maxWait.Seconds() {
		allowed := fmt.Sprintf("a number of seconds from 0 to %v, such as 2 or 0.5", maxWait.Seconds())
		return 0, invalid(codeInvalidParameter, name, text, allowed)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// String returns the fault in the form of Preference-Applied, the journal and
// the log.
func (f fault) String() string {
	var list []string
	add := func(name, value string) {
		if value != "" {
			list = append(list, name+"="+value)
		}
	}
	add("code", f.Code)
	add("delay", f.Delay)
	add("answer-delay", f.AnswerDelay)
	if f.status != 0 { // retry-after has no effect without a simulated Error
		add("retry-after", f.RetryAfter)
	}
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
	Operation string `json:"operation,omitempty"` // one of faultOperations, or empty for all requests under /v1
	Skip      int64  `json:"skip,omitempty"`
	Times     int64  `json:"times,omitempty"` // 0 for no limit; for a list, the number of its codes
	Matched   int64  `json:"matched"`         // number of requests that matched, whether it was applied or not
	Applied   int64  `json:"applied"`         // number of requests that it was applied to
}

// parseStandingFault parses the parameters of PUT /__admin/fault.
func parseStandingFault(given url.Values) (*standingFault, error) {
	if !asksForFault(given) {
		return nil, badRequest(codeInvalidParameter,
			"code, delay or answer-delay must be given, in the query: /__admin/fault?code=503")
	}
	faults, err := parseFaults(given)
	if err != nil {
		return nil, err
	}
	hasStatus := slices.ContainsFunc(faults, func(f fault) bool { return f.status != 0 })
	if given.Has("retry-after") && !hasStatus {
		return nil, badRequest(codeInvalidParameter, "retry-after needs a status as code, such as code=503")
	}
	skip, err := integerParameter(given, "skip", 0, 0, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	times, err := integerParameter(given, "times", 0, 1, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	if len(faults) > 1 {
		if given.Has("times") {
			return nil, badRequest(codeInvalidParameter,
				"times cannot be given with a list of codes, as each of them is applied once")
		}
		times = int64(len(faults))
	}
	if given.Has("operation") {
		err := checkChoice(codeInvalidParameter, "operation", given.Get("operation"), faultOperations)
		if err != nil {
			return nil, err
		}
	}

	state := standingFaultState{
		faultParameters: faults[0].faultParameters,
		Operation:       given.Get("operation"),
		Skip:            skip,
		Times:           times,
	}
	state.Code = given.Get("code") // the whole list
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
	s.Applied++
	return next
}

// snapshot returns the parameters and the counters.
func (f *standingFault) snapshot() standingFaultState {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}
