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

// requireKey lets a request under /v1 through to next only with the API key
// as its Bearer credential (contract, section 5), and answers 401 otherwise,
// before anything else is looked at.
func requireKey(key string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1" && !strings.HasPrefix(r.URL.Path, "/v1/") {
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
		const challenge = `Bearer realm="petstore"` // RFC 6750, section 3
		switch {
		case given == "":
			w.Header().Set("WWW-Authenticate", challenge)
			writeError(w, Error{Status: 401, Message: "send the API key in one header: Authorization: Bearer <API_KEY>"})
		case subtle.ConstantTimeCompare([]byte(given), []byte(key)) == 0:
			w.Header().Set("WWW-Authenticate", challenge+`, error="invalid_token"`)
			writeError(w, Error{codeInvalidToken, "this is not the API key that the service was started with", 401})
		default:
			next.ServeHTTP(w, r)
		}
	})
}
