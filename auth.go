package main

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
)

// newKey returns a random API key of 128 bits.
func newKey() string {
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		panic(err) // the system has no randomness, so no key is safe
	}
	return fmt.Sprintf("%x", b)
}

// checkKey tells why no Authorization header can carry key.
func checkKey(key string) error {
	if strings.TrimSpace(key) != key {
		return errors.New("PETSTORE_API_KEY begins or ends with white space, which no header can carry")
	}
	if strings.ContainsFunc(key, unicode.IsControl) {
		return errors.New("PETSTORE_API_KEY has a control character, which no header can carry")
	}
	return nil
}

// under tells whether the request's path is root or below it.
func under(r *http.Request, root string) bool {
	rest, found := strings.CutPrefix(r.URL.Path, root)
	return found && (rest == "" || rest[0] == '/')
}

// requireKey lets a request under /v1 or /__admin through to next only with
// the API key as its Bearer credential (contract, section 5), and answers 401
// otherwise, before anything else is looked at.
func requireKey(key string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !under(r, "/v1") && !under(r, "/__admin") {
			next.ServeHTTP(w, r)
			return
		}
		auth := r.Header["Authorization"]
		var given string
		if len(auth) == 1 {
			if scheme, rest, _ := strings.Cut(auth[0], " "); strings.EqualFold(scheme, "Bearer") {
				given = strings.TrimLeft(rest, " ")
			}
		}
		switch {
		case given == "":
			w.Header().Set("WWW-Authenticate", challenge)
			writeError(w, Error{Status: 401, Message: "send the API key in one header: Authorization: Bearer <API_KEY>"})
		case subtle.ConstantTimeCompare([]byte(given), []byte(key)) == 0:
			w.Header().Set("WWW-Authenticate", wrongKeyChallenge)
			writeError(w, Error{codeInvalidToken, "this is not the API key that the service was started with", 401})
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// allowOrigins lets web pages of every origin use the service, without
// credentials of the browser's (the Fetch standard's CORS protocol). Any
// OPTIONS is a preflight, which carries no key.
func allowOrigins(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		if r.Header["Origin"] != nil {
			h.Set("Access-Control-Allow-Origin", "*")
			h.Set("Access-Control-Expose-Headers", "Link, Location, Deprecation, Sunset, WWW-Authenticate, Preference-Applied, Retry-After")
		}
		if r.Method != http.MethodOptions {
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, DELETE")
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Prefer, *") // * leaves Authorization out
		h.Set("Access-Control-Max-Age", "600")
		w.WriteHeader(204)
	})
}
