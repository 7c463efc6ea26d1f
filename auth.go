package main

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"net/http"
	"regexp"
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

// maxKey is the length of the longest key in bytes, which leaves room for other headers.
const maxKey = maxHeader / 4

// validateKey returns an error if the key is too long, or has other characters than
// visible ASCII ones. The empty key is valid: it stands for a random one.
func validateKey(key string) error {
	isInvisible := func(c rune) bool { return c <= ' ' || c > '~' }
	if len(key) > maxKey || strings.ContainsFunc(key, isInvisible) {
		return fmt.Errorf("PETSTORE_API_KEY must be 1 to %d visible ASCII characters: "+
			"no space, no control character", maxKey)
	}
	return nil
}

// requireKey returns the Error of a 401 unless the request has the key as its Bearer credential,
// in one Authorization header (contract, section 5; RFC 6750, section 3).
func requireKey(key string, r *http.Request) error {
	var token string
	if values := r.Header["Authorization"]; len(values) == 1 {
		// The scheme is in upper or lower case (RFC 9110, section 11.1).
		if scheme, rest, _ := strings.Cut(values[0], " "); strings.EqualFold(scheme, "Bearer") {
			token = strings.TrimLeft(rest, " ")
		}
	}
	if token == "" {
		e := newError(http.StatusUnauthorized, "send the API key in one header: Authorization: Bearer <API_KEY>")
		e.header = http.Header{"Www-Authenticate": {`Bearer realm="petstore"`}}
		return e
	}
	// The comparison takes the same time however much of the key is right.
	if subtle.ConstantTimeCompare([]byte(token), []byte(key)) != 1 {
		return invalidToken("this is not the API key that the service was started with")
	}
	return nil
}

// hideCredentials returns the values of an Authorization header without what may be secret. The
// scheme stays: Bearer, or another short word that does not contain the key.
func hideCredentials(key string, values []string) []string {
	hidden := make([]string, len(values))
	for i, value := range values {
		scheme, credentials, found := strings.Cut(value, " ")
		isHarmless := strings.EqualFold(scheme, "Bearer") || anyScheme.MatchString(scheme) && !strings.Contains(scheme, key)
		if found && isHarmless {
			hidden[i] = scheme + " " + hide(credentials, key)
		} else {
			hidden[i] = hide(value, key)
		}
	}
	return hidden
}

var anyScheme = regexp.MustCompile(`^[\pL\pN-]{1,20}$`)

// hide returns credentials with *** in place of the key, wherever it occurs. If they are longer
// than six characters, the rest is *** too: it may be a key of another service, sent by mistake.
// Six characters are enough to recognize most mistakes, such as undefined.
func hide(credentials, key string) string {
	if credentials == key {
		return "***" // as in most requests, without an allocation
	}
	credentials = strings.ReplaceAll(credentials, key, "***")
	if characters := []rune(credentials); len(characters) > 6 {
		return strings.TrimRight(string(characters[:6]), "*") + "***"
	}
	return credentials
}

// allowAllOrigins adds to h the headers that let web pages of every origin read the
// answer to r (Fetch standard, "CORS protocol").
func allowAllOrigins(h http.Header, r *http.Request) {
	if r.Header.Get("Origin") == "" {
		return
	}
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers",
		"Link, Location, Allow, Deprecation, Sunset, WWW-Authenticate, Preference-Applied, Retry-After")
}

// allowPreflight adds to h what a web page of another origin may send.
func allowPreflight(h http.Header) {
	// No path has PATCH. It is allowed so that a page that sends it gets a 405.
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
	// * covers all headers but Authorization. Older browsers do not know it.
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Prefer, *")
	h.Set("Access-Control-Max-Age", "600") // seconds
}
