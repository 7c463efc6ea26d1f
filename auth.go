package main

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strconv"
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

// maxKey is the length of the longest key, in bytes. It leaves room for other
// headers.
const maxKey = 4096

// checkKey tells why key, which is not empty, can be no API key.
func checkKey(key string) error {
	if len(key) > maxKey || strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return errors.New("PETSTORE_API_KEY must be 1 to 4096 visible ASCII characters: no space, no control character")
	}
	return nil
}

// minSecret is the length of the shortest key that hideKey looks for. A shorter
// one is no secret: where it is hidden in a longer text tells what it is.
const minSecret = 8

// hideKey returns text with <API_KEY> for every key in it, as it stands or
// percent-encoded, whole or in part. A malformed escape stands for itself.
func hideKey(text, key string) string {
	if len(key) < minSecret {
		return text
	}
	return replaceKey(text, key)
}

func replaceKey(text, key string) string {
	const hidden = "<API_KEY>"
	text = strings.ReplaceAll(text, key, hidden)
	if !strings.Contains(text, "%") {
		return text
	}
	var plain []byte // text, decoded
	var at []int     // where each byte of plain begins in text
	for i := 0; i < len(text); i++ {
		plain, at = append(plain, text[i]), append(at, i)
		if text[i] == '%' && i+2 < len(text) {
			if c, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				plain[len(plain)-1] = byte(c)
				i += 2
			}
		}
	}
	at = append(at, len(text))
	var b strings.Builder
	for done := 0; ; {
		i := bytes.Index(plain[done:], []byte(key))
		if i < 0 {
			return b.String() + text[at[done]:]
		}
		b.WriteString(text[at[done]:at[done+i]] + hidden)
		done += i + len(key)
	}
}

// hideCredentials returns an Authorization header with <API_KEY> for the key,
// however short that is.
func hideCredentials(header, key string) string {
	const bearer = "Bearer "
	if scheme := header[:min(len(bearer), len(header))]; strings.EqualFold(scheme, bearer) {
		return scheme + replaceKey(header[len(bearer):], key)
	}
	return replaceKey(header, key)
}

// requireKey lets a request through to next only with the API key as its
// Bearer credential (contract, section 5), and answers 401 otherwise, before
// anything else is looked at.
func requireKey(key string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
			h.Set("Access-Control-Expose-Headers", "Link, Location, Allow, Deprecation, Sunset, WWW-Authenticate, Preference-Applied, Retry-After")
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
