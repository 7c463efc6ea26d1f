package main

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
)

// newKey returns a random API key of 128 bits.
func newKey() string {
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		panic(err) // the system has no randomness, so no key is safe
	}
	return fmt.Sprintf("%x", b)
}

const maxKey = 4096 // bytes, of the 64 KiB that all headers may have

// validateKey refuses a key that a header cannot carry. It accepts the empty one, which stands for a random key.
func validateKey(key string) error {
	if len(key) > maxKey || strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return fmt.Errorf("PETSTORE_API_KEY must be 1 to %d visible ASCII characters: "+
			"no space, no control character", maxKey)
	}
	return nil
}

// hideKey returns an Authorization header, or several that are joined, with <API_KEY> in place of the key.
func hideKey(authorization, key string) string {
	words := strings.Split(authorization, " ")
	for i, word := range words {
		if rest, found := strings.CutPrefix(word, key); found && (rest == "" || rest == ",") {
			words[i] = "<API_KEY>" + rest
		}
	}
	return strings.Join(words, " ")
}

// The WWW-Authenticate header of a 401, for no key and for a wrong one (RFC 6750, section 3).
const (
	challenge         = `Bearer realm="petstore"`
	wrongKeyChallenge = challenge + `, error="invalid_token"`
)

// requireKey lets a request through to next only with the API key as its Bearer credential (contract, section 5),
// and answers 401 otherwise.
func requireKey(key string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var given string
		if headers := r.Header["Authorization"]; len(headers) == 1 {
			scheme, credential, _ := strings.Cut(headers[0], " ")
			if strings.EqualFold(scheme, "Bearer") { // the case does not matter (RFC 9110, section 11.1)
				given = strings.TrimLeft(credential, " ")
			}
		}
		switch {
		case given == "":
			w.Header().Set("WWW-Authenticate", challenge)
			writeError(w, newError(401, "send the API key in one header: Authorization: Bearer <API_KEY>"))
		case subtle.ConstantTimeCompare([]byte(given), []byte(key)) == 0:
			w.Header().Set("WWW-Authenticate", wrongKeyChallenge)
			writeError(w, Error{codeInvalidToken, "this is not the API key that the service was started with", 401})
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// allowOrigins lets web pages of every origin use the service, without credentials of the browser's own (the Fetch
// standard's CORS protocol).
func allowOrigins(w http.ResponseWriter, r *http.Request) {
	if r.Header["Origin"] != nil {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Access-Control-Expose-Headers",
			"Link, Location, Allow, Deprecation, Sunset, WWW-Authenticate, Preference-Applied, Retry-After")
	}
}

// answerPreflight answers OPTIONS, which asks what a web page may send.
func answerPreflight(w http.ResponseWriter) {
	h := w.Header()
	// No path takes PATCH. A page that sends it is to see the 405.
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
	// To browsers, * stands for all headers but Authorization.
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Prefer, *")
	h.Set("Access-Control-Max-Age", "600") // seconds
	w.WriteHeader(204)
}
