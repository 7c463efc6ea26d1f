package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Error is the body of every answer that is not a success (contract, section 2).
type Error struct {
	// Code is statusCode(Status) or, where that says too little, one of the
	// code constants.
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

// statusCode is the Error.Code of a status: its text in snake_case, not_found
// for 404, or status_599 where HTTP has no text for it.
func statusCode(status int) string {
	text := http.StatusText(status)
	if text == "" {
		text = fmt.Sprint("status ", status)
	}
	return strings.NewReplacer(" ", "_", "'", "").Replace(strings.ToLower(text))
}

// invalid is the error of a value that its schema does not allow.
type invalid struct {
	code    string // Error.Code
	name    string // of the parameter or member
	given   string // what came, as it came
	allowed string // what would do
}

// Error shows at most 40 characters of what was given.
func (e invalid) Error() string {
	given, n := cmp.Or(e.given, "empty"), 0
	for i := range given {
		if n++; n > 40 {
			given = given[:i] + "…"
			break
		}
	}
	return strings.ToValidUTF8(fmt.Sprintf("%s is %s; it must be %s", e.name, given, e.allowed), "\ufffd")
}

// writeError answers with e, whose Code may be left out.
func writeError(w http.ResponseWriter, e Error) {
	if e.Code == "" {
		e.Code = statusCode(e.Status)
	}
	writeJSON(w, e.Status, append(encode(e), '\n'))
}

var contentType = []string{"application/json"}

// writeJSON answers with a body that is JSON already. Its length is always
// sent, as net/http would chunk what is over 2 KiB.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h["Content-Type"] = contentType
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	w.Write(body)
}

// encode returns v as JSON on one line, with <, > and & as they are.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // a bug: every v is a struct of strings and integers
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// linger is how long the service goes on reading a body that it has no use for.
const linger = 500 * time.Millisecond

// closeUnread closes the connection after a request whose body was not read:
// otherwise, net/http would read it before it sends the answer. It still reads
// some of it afterwards, for linger at most, so that a client that goes on
// sending gets to see the answer. Who reads a body to its end takes the
// Connection header away again.
func closeUnread(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Connection", "close")
		next.ServeHTTP(w, r)
		if w.Header().Get("Connection") != "" {
			http.NewResponseController(w).SetReadDeadline(time.Now().Add(linger))
		}
	})
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
	status int           // of the Error that is answered, 0 for none, or hangup
	delay  time.Duration // before that, or before the true answer
	// A standing fault strikes the requests of one operation, "" for all...
	operation string
	// ...and as many of them as left says, unless it is forever.
	left    atomic.Int64
	forever bool
}

// hangup is the status of a fault that closes the connection.
const hangup = -1

// strikes tells whether a request of this operation meets the standing fault
// f, and counts it. It is true exactly as often as f.left said at first,
// however many requests ask at once.
func (f *fault) strikes(operation string) bool {
	return f != nil && (f.operation == "" || f.operation == operation) && (f.forever || f.left.Add(-1) >= 0)
}

// answer answers with the simulated Error. Its code is the text of its status.
func (f *fault) answer(w http.ResponseWriter) {
	switch f.status {
	case hangup:
		panic(http.ErrAbortHandler)
	case 401:
		w.Header().Set("WWW-Authenticate", wrongKeyChallenge)
	case 429, 503:
		w.Header().Set("Retry-After", "1") // second
	}
	writeError(w, Error{Status: f.status, Message: "this error is simulated, as was asked for"})
}

// wait holds a request up for d. It ends early when stopping is closed, and
// with the request when the client leaves, which net/http notices once the
// body has been read. The time limits for the rest of the request begin anew.
func wait(w http.ResponseWriter, r *http.Request, d time.Duration, stopping <-chan struct{}) {
	rc := http.NewResponseController(w)
	rc.SetReadDeadline(time.Time{}) // when it passes, net/http thinks that the client has left
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-stopping:
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	}
	rc.SetReadDeadline(time.Now().Add(readTimeout))
	rc.SetWriteDeadline(time.Now().Add(writeTimeout))
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
	body := append(encode(Error{statusCode(status), string(text), status}), '\n')
	_, err := fmt.Fprintf(c.TCPConn, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, http.StatusText(status), len(body), body)
	return len(p), err
}
