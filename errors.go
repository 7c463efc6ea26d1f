package main

import (
	"bytes"
	"cmp"
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

// Error is the body of every failure (contract, section 2), but for a page of HTML that a fault asks for.
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

// newError returns an Error whose Code is the text of its status: not_found for 404, and status_599 where HTTP has
// no text for it.
func newError(status int, message string) Error {
	text := cmp.Or(http.StatusText(status), fmt.Sprint("status ", status))
	code := strings.NewReplacer(" ", "_", "'", "").Replace(strings.ToLower(text))
	return Error{code, message, status}
}

// asError makes a 400 with this code of what a check has found.
func asError(code string, err error) error { return Error{code, err.Error(), 400} }

// writeError answers with an Error. It tells the message to a writer that wants to know it, as exchange does for
// the journal and the log.
func writeError(w http.ResponseWriter, e Error) {
	if listener, ok := w.(interface{ tell(message string) }); ok {
		listener.tell(e.Message)
	}
	writeJSON(w, e.Status, encode(e))
}

// writeJSON answers with a body that is JSON already, and a newline.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(body)
	w.Write([]byte("\n"))
}

// encode returns v as JSON, with <, > and & as they are.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // a bug: every v is made of structs, maps, strings and numbers
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// invalid tells what was given, and what is allowed.
func invalid(name, given, allowed string) error {
	return fmt.Errorf("%s is %s; it must be %s", name, shorten(given), allowed)
}

// shorten returns at most 40 characters of what was given, or "empty" for nothing. What is not UTF-8 in it becomes
// U+FFFD.
func shorten(given string) string {
	characters := []rune(given[:min(len(given), 41*utf8.UTFMax)])
	if len(characters) > 40 {
		characters = append(characters[:40], '…')
	}
	return cmp.Or(string(characters), "empty")
}

// checkChoice refuses what is none of the allowed words.
func checkChoice(name, given string, allowed ...string) error {
	if slices.Contains(allowed, given) {
		return nil
	}
	last := len(allowed) - 1
	return invalid(name, given, strings.Join(allowed[:last], ", ")+" or "+allowed[last])
}

// parseInteger parses an integer as JSON spells it: no plus sign, no leading zero, no fraction, no exponent.
func parseInteger(name, given string, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(given, 10, 64)
	asJSON := strconv.FormatInt(n, 10) == given || given == "-0" && least < 0 // JSON has a minus zero
	if err != nil || !asJSON || n < least || n > most {
		allowed := "an integer"
		if least > math.MinInt64 || most < math.MaxInt64 || errors.Is(err, strconv.ErrRange) {
			allowed = fmt.Sprintf("an integer from %d to %d", least, most)
		}
		return 0, invalid(name, given, allowed)
	}
	return n, nil
}

// queryInteger returns an integer parameter, or fallback if it is not given.
func queryInteger(query url.Values, name string, fallback, least, most int64) (int64, error) {
	if !query.Has(name) {
		return fallback, nil
	}
	return parseInteger(name, query.Get(name), least, most)
}

// fault is what a client asks for to test itself: with a Prefer header for one request (RFC 7240), or with a
// standing fault. This is its life:
//
//   - Before the operation, the request waits for Delay.
//   - Instead of the operation, a Code from 400 to 599 answers an Error with this status, and "hangup" closes the
//     connection. Nothing is done then.
//   - Before its answer is sent, or the connection closed, the request waits for AnswerDelay. Then "lost" closes the
//     connection, "truncate" sends half of the body and closes it, "stall" sends the same half and closes it after
//     maxWait, or when the client leaves or the world or the process ends, and "html" sends a gateway's page of HTML.
//
// applyFault does the first two, and finish the last. The strings are kept as they were given; "" is none.
type fault struct {
	Code        string `json:"code,omitempty"`         // a status, or one of faultCodes
	Delay       string `json:"delay,omitempty"`        // in seconds, up to maxWait
	AnswerDelay string `json:"answer-delay,omitempty"` // in seconds, up to maxWait
	// RetryAfter is that header of the simulated Error, in whole seconds up to maxRetryAfter. Without it, 429 and
	// 503 have 1, others none.
	RetryAfter string `json:"retry-after,omitempty"`

	status             int64         // that Code stands for, or 0
	delay, answerDelay time.Duration // that Delay and AnswerDelay stand for
}

// standingFault is a fault for the requests that follow. It counts those for its Operation, or all for "". It lets
// the first Skip of them pass and strikes the next Times, or all that follow for 0.
type standingFault struct {
	fault
	Operation string `json:"operation,omitempty"` // one of faultOperations
	Skip      int64  `json:"skip,omitempty"`
	Times     int64  `json:"times,omitempty"`

	mu     sync.Mutex // guards everything below
	Met    int64      `json:"met"`    // how many requests it was for
	Struck int64      `json:"struck"` // how many of them it struck
}

const (
	maxWait       = 30 * time.Second // bounds each wait: -latency, both delays and a stall
	maxRetryAfter = 3600             // seconds
)

// The words of a fault. preferences are the names that a Prefer header may give, and faultParameters those of a
// standing fault.
var (
	faultCodes      = []string{"hangup", "lost", "truncate", "stall", "html"}
	faultOperations = []string{"listPets", "createPet", "getPet"}
	preferences     = []string{"code", "delay", "answer-delay", "retry-after"}
	faultParameters = slices.Concat(preferences, []string{"operation", "skip", "times"})
)

// parsePrefer returns the fault that Prefer headers ask for, or the empty one. Commas or semicolons separate
// preferences. The first of each name counts (RFC 7240, section 2), and other names are ignored. A separator in
// quotes is taken as any other.
func parsePrefer(headers []string) (fault, error) {
	given := url.Values{}
	for _, preference := range strings.Split(strings.ReplaceAll(strings.Join(headers, ","), ";", ","), ",") {
		name, value, _ := strings.Cut(preference, "=")
		name = strings.ToLower(strings.Trim(name, " \t"))
		if slices.Contains(preferences, name) && !given.Has(name) {
			given.Set(name, strings.Trim(strings.Trim(value, " \t"), `"`))
		}
	}
	return parseFault(given)
}

// parseStandingFault parses the parameters of PUT /__admin/fault.
func parseStandingFault(given url.Values) (*standingFault, error) {
	f, errFault := parseFault(given)
	if errFault == nil && f == (fault{}) {
		errFault = errors.New("code, delay or answer-delay must be given, in the query: /__admin/fault?code=503")
	}
	skip, errSkip := queryInteger(given, "skip", 0, 0, math.MaxInt64)
	times, errTimes := queryInteger(given, "times", 0, 1, math.MaxInt64)
	var errOperation error
	if given.Has("operation") {
		errOperation = checkChoice("operation", given.Get("operation"), faultOperations...)
	}
	return &standingFault{fault: f, Operation: given.Get("operation"), Skip: skip, Times: times},
		cmp.Or(errFault, errSkip, errTimes, errOperation)
}

// parseFault parses the parameters that both kinds of fault have. Without code, delay and answer-delay there is no
// fault: the empty one.
func parseFault(given url.Values) (f fault, err error) {
	if !given.Has("code") && !given.Has("delay") && !given.Has("answer-delay") {
		return f, nil
	}
	f = fault{Code: given.Get("code"), Delay: given.Get("delay"), AnswerDelay: given.Get("answer-delay"),
		RetryAfter: given.Get("retry-after")}
	var errCode, errDelay, errAnswerDelay, errRetryAfter error
	if given.Has("code") && !slices.Contains(faultCodes, f.Code) {
		if f.status, err = parseInteger("code", f.Code, 400, 599); err != nil {
			errCode = checkChoice("code", f.Code, append([]string{"an integer from 400 to 599"}, faultCodes...)...)
		}
	}
	f.delay, errDelay = parseDelay(given, "delay")
	f.answerDelay, errAnswerDelay = parseDelay(given, "answer-delay")
	_, errRetryAfter = queryInteger(given, "retry-after", 0, 0, maxRetryAfter)
	return f, cmp.Or(errCode, errDelay, errAnswerDelay, errRetryAfter)
}

func parseDelay(given url.Values, name string) (time.Duration, error) {
	if !given.Has(name) {
		return 0, nil
	}
	delay := given.Get(name)
	seconds, err := strconv.ParseFloat(delay, 64) // which takes signs, exponents and Inf too
	if err != nil || strings.Trim(delay, "0123456789.") != "" || seconds > maxWait.Seconds() {
		return 0, invalid(name, delay, fmt.Sprintf("a number of seconds from 0 to %v, with decimals if need be",
			maxWait.Seconds()))
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// String spells the fault as Preference-Applied, the journal and the log have it.
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
	if f.status != 0 { // otherwise, there is no Error that could have that header
		add("retry-after", f.RetryAfter)
	}
	return strings.Join(list, ", ")
}

// strikes tells whether the standing fault strikes a request of this operation, and counts the request if the fault
// is for it.
func (f *standingFault) strikes(operation string) bool {
	if f.Operation != "" && f.Operation != operation {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Met++
	if f.Met <= f.Skip || f.Times != 0 && f.Struck == f.Times {
		return false
	}
	f.Struck++
	return true
}

// encode returns the fault and what has become of it as JSON.
func (f *standingFault) encode() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return encode(f)
}
