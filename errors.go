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
	"time"
	"unicode/utf8"
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

// asError makes an Error of err: the one that it wraps, or else a 400 with this
// code. The message is that of err.
func asError(code string, err error) Error {
	e := Error{Code: code, Status: 400}
	errors.As(err, &e)
	e.Message = err.Error()
	return e
}

// invalid tells what was given, and what is allowed.
func invalid(name, given, allowed string) error {
	return fmt.Errorf("%s is %s; it must be %s", shorten(name), shorten(given), allowed)
}

// shorten returns at most 40 characters of what was given, or "empty" for
// nothing. What is not UTF-8 in it becomes U+FFFD.
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

// parseInteger parses an integer as JSON spells it: no plus sign, no leading zero,
// no fraction, no exponent.
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

// checkOnce refuses a query that gives one of these parameters more often than once.
func checkOnce(query url.Values, names ...string) error {
	for _, name := range names {
		if n := len(query[name]); n > 1 {
			return invalid(name, fmt.Sprintf("given %d times", n), "given once")
		}
	}
	return nil
}

func writeError(w http.ResponseWriter, e Error) {
	writeJSON(w, e.Status, encode(e))
}

// writeJSON answers with JSON that is encoded already, and a newline.
func writeJSON(w http.ResponseWriter, status int, json []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(json)
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

// errorListener makes Errors of the answers that net/http gives without asking
// the handler: to malformed or too large headers, and to an HTTP version or a
// transfer coding that it does not know.
type errorListener struct{ *net.TCPListener }

func (l errorListener) Accept() (net.Conn, error) {
	c, err := l.AcceptTCP()
	return errorConn{c}, err
}

type errorConn struct{ *net.TCPConn } // net/http needs its CloseWrite

// plainTextHead stands between the status line and the text of each answer of
// net/http's own. Answers of the handler are JSON or HTML, and do not have it.
var plainTextHead = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")

// Write sends p or, if p is an answer of net/http's own, which it writes at once,
// an Error in its place.
func (c errorConn) Write(p []byte) (int, error) {
	statusLine, text, found := bytes.Cut(p, plainTextHead)
	if !found {
		return c.TCPConn.Write(p)
	}
	status, _ := strconv.Atoi(string(statusLine[len("HTTP/1.1 "):][:3]))
	body := encode(newError(status, string(text)))
	_, err := fmt.Fprintf(c.TCPConn, "HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\nConnection: close\r\n\r\n%s\n",
		status, http.StatusText(status), time.Now().UTC().Format(http.TimeFormat), len(body)+len("\n"), body)
	return len(p), err
}
