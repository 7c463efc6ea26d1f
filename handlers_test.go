package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

// Most tests start a service with some pets, send requests to it, and compare the
// responses:
//
//	s := start(t, newRex)
//	s.do(t, "GET /v1/pets", "").want(t, 200, array(rex))
//	s.do(t, "GET /v1/pets/9", "").wantError(t, 404, "not_found", "there is no pet 9")
//
// The arguments of do are the method and the target, the body, and headers. The
// helpers are at the end of the file.

// Rex and Ida, as they are added, and as they are returned if their ids are 1 and
// 2.
const (
	newRex = `{"name":"Rex","categoryId":7,"status":"sold"}`
	rex    = `{"id":1,"name":"Rex","categoryId":7,"status":"sold"}`
	newIda = `{"name":"Ida","categoryId":2}`
	ida    = `{"id":2,"name":"Ida","categoryId":2}`
)

const (
	testKey  = "a-key-of-the-tests"
	observer = "Petstore-Observer: test" // a header that keeps a request out of the journal

	// simulated is the message of a simulated Error.
	simulated = "simulated error, as requested"

	// gatewayPage is the body of the fault html.
	gatewayPage = "<html><head><title>502 Bad Gateway</title></head><body>502 Bad Gateway</body></html>\n"

	bodyTooLarge = "the body is over 65536 bytes"
	clientLeft   = "the client left before its answer"
	badChunks    = "the body is cut short or badly chunked"
)

// The contract, section 4.1: list animals.

// A page has 20 pets, or as many as limit says, in ascending order of id. While
// more follow, Link leads to the next page, and keeps limit and status.
func TestListPets(t *testing.T) {
	s := start(t, manyPets(150)...) // every tenth is sold
	for _, tt := range []struct {
		query string
		ids   []int64
		next  string // the query of the next page
	}{
		{"", numbers(1, 20, 1), "after=20"},
		{"?limit=1", numbers(1, 1, 1), "limit=1&after=1"},
		{"?limit=100", numbers(1, 100, 1), "limit=100&after=100"},
		{"?after=129", numbers(130, 149, 1), "after=149"},
		{"?after=130", numbers(131, 150, 1), ""},
		{"?after=150", nil, ""},
		{"?after=9223372036854775807", nil, ""},
		{"?after=-9223372036854775808&limit=2", numbers(1, 2, 1), "limit=2&after=2"},
		{"?status=sold", numbers(10, 150, 10), ""},
		{"?status=sold&limit=4&after=100", numbers(110, 140, 10), "limit=4&status=sold&after=140"},
		{"?status=sold&limit=5&after=100", numbers(110, 150, 10), ""},
		{"?status=pending", nil, ""},
		{"?status=available&limit=1", numbers(1, 1, 1), "limit=1&status=available&after=1"},
		{"?limit=%32&Limit=9&x=y", numbers(1, 2, 1), "limit=2&after=2"},
	} {
		r := s.do(t, "GET /v1/pets"+tt.query, "")
		equal(t, r.request+": status", r.status, 200)
		equal(t, r.request+": ids", r.ids(t), tt.ids)
		link := ""
		if tt.next != "" {
			link = "</v1/pets?" + tt.next + `>; rel="next"`
		}
		r.wantHeader(t, "Link", link)
	}

	empty := start(t)
	empty.do(t, "GET /v1/pets", "").want(t, 200, "[]")
	empty.do(t, "GET /v1/pets?status=sold", "").want(t, 200, "[]")

	// The Link has the path of the request, so a list at another path has its own.
	other := startAdded(t, listPets, manyPets(30)...)
	other.do(t, "GET /v1/pets/added", "").wantHeader(t, "Link", `</v1/pets/added?after=20>; rel="next"`)
	other.do(t, "GET /v1/%70ets?limit=1", "").wantHeader(t, "Link", `</v1/%70ets?limit=1&after=1>; rel="next"`)
}

// A parameter that is not allowed is a 400 that says what was given and what is
// allowed.
func TestListPetsRefuses(t *testing.T) {
	s := start(t)
	const (
		wantLimit  = "; it must be an integer from 1 to 100"
		wantStatus = "; it must be available, pending or sold"
		tooLarge   = "9223372036854775808"
	)
	forty := strings.Repeat("é", 40)
	for _, tt := range []struct{ query, message string }{
		{"limit=0", "limit is 0" + wantLimit},
		{"limit=101", "limit is 101" + wantLimit},
		{"limit=-1", "limit is -1" + wantLimit},
		{"limit=", "limit is empty" + wantLimit},
		{"limit", "limit is empty" + wantLimit},
		{"limit=ten", "limit is ten" + wantLimit},
		{"limit=5.0", "limit is 5.0" + wantLimit},
		{"limit=5e0", "limit is 5e0" + wantLimit},
		{"limit=%2B5", "limit is +5" + wantLimit},
		{"limit=05", "limit is 05" + wantLimit},
		{"limit=0x5", "limit is 0x5" + wantLimit},
		{"limit=" + tooLarge, "limit is " + tooLarge + wantLimit},
		{"limit=" + forty, "limit is " + forty + wantLimit},
		{"limit=" + forty + "x", "limit is " + forty + "…" + wantLimit},
		{"limit=%ff", "limit is \ufffd" + wantLimit},
		{"limit=5&limit=5", "limit is given 2 times; it must be given once"},
		{"after=x", "after is x; it must be an integer"},
		{"after=", "after is empty; it must be an integer"},
		{"after=1&after=2&after=3", "after is given 3 times; it must be given once"},
		{"after=" + tooLarge, "after is " + tooLarge +
			"; it must be an integer from -9223372036854775808 to 9223372036854775807"},
		{"status=", "status is empty" + wantStatus},
		{"status=Sold", "status is Sold" + wantStatus},
		{"status=sold,pending", "status is sold,pending" + wantStatus},
		{"status=sold&status=sold", "status is given 2 times; it must be given once"},
		{"%zz", `the query is malformed: invalid URL escape "%zz"`},
		{"limit=5;status=sold", "the query is malformed: invalid semicolon separator in query"},

		// Of several errors, it is always the same one that is reported.
		{"status=x&after=x&limit=x", "limit is x" + wantLimit},
		{"status=x&after=x", "after is x; it must be an integer"},
		{"limit=x&status=sold&status=sold", "status is given 2 times"},
	} {
		r := s.do(t, "GET /v1/pets?"+tt.query, "")
		r.wantError(t, 400, "invalid_parameter", tt.message)
		r.wantHeader(t, "Link", "")
	}
}

// The contract, section 4.2: add an animal.

// The 201 has the pet with its id, and the path of the pet.
func TestCreatePet(t *testing.T) {
	s := start(t)
	for i, tt := range []struct{ body, pet string }{
		{newRex, `"name":"Rex","categoryId":7,"status":"sold"`},
		{newIda, `"name":"Ida","categoryId":2`},
		{"\t{ \"categoryId\" : -0,\n\"name\":\"\"} ", `"name":"","categoryId":0`},
		{`{"name":"a","categoryId":9223372036854775807}`, `"name":"a","categoryId":9223372036854775807`},
		{`{"name":"a","categoryId":-9223372036854775808}`, `"name":"a","categoryId":-9223372036854775808`},

		// Unknown members are ignored, and the last of duplicate members wins.
		{`{"id":77,"x":null,"name":"a","categoryId":1,"Name":5,"STATUS":"x"}`, `"name":"a","categoryId":1`},
		{`{"name":5,"name":"a","categoryId":"x","categoryId":1}`, `"name":"a","categoryId":1`},

		// A lone surrogate becomes U+FFFD.
		{
			`{"n\u0061me":"\u003c&\/\ud83d\uDE00😀>\u0000\n\"\\","categoryId":1}`,
			`"name":"<&/😀😀>\u0000\n\"\\","categoryId":1`,
		},
		{`{"name":"\ud800","categoryId":1}`, `"name":"` + "\ufffd" + `","categoryId":1`},
	} {
		pet := fmt.Sprintf(`{"id":%d,%s}`, i+1, tt.pet)
		path := fmt.Sprint("/v1/pets/", i+1)
		r := s.do(t, "POST /v1/pets", tt.body)
		r.want(t, 201, pet)
		r.wantHeader(t, "Location", path)
		s.do(t, "GET "+path, "").want(t, 200, pet)
	}
}

// A body that is not allowed is a 400 that names the member. Nothing is stored,
// and no id is used.
func TestCreatePetRefuses(t *testing.T) {
	s := start(t)
	const (
		wantObject = `; it must be a JSON object, such as {"name":"Rex","categoryId":7}`
		wantStatus = "; it must be available, pending or sold"
		wantInt    = "; it must be an integer"
		wantInt64  = " from -9223372036854775808 to 9223372036854775807"
		notJSON    = "the body is not JSON: "
	)
	for _, tt := range []struct{ body, message string }{
		{"", "the body is empty" + wantObject},
		{" null ", "the body is null" + wantObject},
		{"[]", "the body is []" + wantObject},
		{`{"name":"a"`, notJSON + "unexpected end of JSON input, at byte 11" + wantObject},
		{newIda + "{}", notJSON + "invalid character '{' after top-level value, at byte 30" + wantObject},
		{`{"name":"","categoryId":1,"x":"` + "\xff\"}", "the body is not valid UTF-8"},

		{"{}", "name is missing; it must be a string"},
		{`{"Name":"a","NAME":"a","categoryId":1}`, "name is missing; it must be a string"},
		{`{"name":5,"categoryId":1}`, "name is 5; it must be a string"},
		{`{"name":null,"categoryId":1}`, "name is null; it must be a string"},

		{`{"name":"a"}`, "categoryId is missing" + wantInt},
		{`{"name":"a","categoryid":1}`, "categoryId is missing" + wantInt},
		{`{"name":"a","categoryId":null}`, "categoryId is null" + wantInt},
		{`{"name":"a","categoryId":1.0}`, "categoryId is 1.0" + wantInt},
		{`{"name":"a","categoryId":1e3}`, "categoryId is 1e3" + wantInt},
		{`{"name":"a","categoryId":"1"}`, `categoryId is "1"` + wantInt},
		{`{"name":"a","categoryId":9223372036854775808}`,
			"categoryId is 9223372036854775808" + wantInt + wantInt64},

		{`{"name":"a","categoryId":1,"status":"Sold"}`, "status is Sold" + wantStatus},
		{`{"name":"a","categoryId":1,"status":""}`, "status is empty" + wantStatus},
		{`{"name":"a","categoryId":1,"status":null}`, "status is null" + wantStatus},
		{`{"name":"a","categoryId":1,"status":1}`, "status is 1" + wantStatus},

		// Of several errors, it is always the same one that is reported.
		{`{"status":1,"categoryId":"x","name":1}`, "name is 1"},
		{`{"status":1,"categoryId":"x","name":""}`, `categoryId is "x"`},
	} {
		s.do(t, "POST /v1/pets", tt.body).wantError(t, 400, "invalid_body", tt.message)
	}
	s.do(t, "GET /v1/pets", "").want(t, 200, "[]")
	s.do(t, "POST /v1/pets", newRex).want(t, 201, rex)
}

// A body whose headers say that it is not JSON in UTF-8 is refused. Without a body,
// these headers do not matter.
func TestMediaTypes(t *testing.T) {
	s := start(t)
	for _, header := range []string{
		"Content-Type: application/json", `Content-Type: Application/JSON; Charset="UTF-8"; x=y`,
		"Content-Type:", "Content-Encoding: Identity",
	} {
		s.do(t, "POST /__admin/reset", "[]", header).want(t, 204, "")
		s.do(t, "POST /v1/pets", newRex, header).want(t, 201, rex)
	}
	s.reset(t, "")
	const (
		wantType   = "; it must be application/json, in UTF-8 (curl sends that with --json)"
		wantCoding = "; it must be left out"
	)
	for _, tt := range []struct {
		headers []string
		message string
	}{
		{[]string{"Content-Type: text/plain"}, "Content-Type is text/plain" + wantType},
		{[]string{"Content-Type: application/jsonx"}, "Content-Type is application/jsonx" + wantType},
		{[]string{"Content-Type: application/json; ="}, "Content-Type is application/json; =" + wantType},
		{
			[]string{"Content-Type: application/json; charset=latin1"},
			"Content-Type is application/json; charset=latin1" + wantType,
		},
		{
			[]string{"Content-Type: application/json", "Content-Type: a/b"},
			"Content-Type is application/json, a/b" + wantType,
		},
		{[]string{"Content-Encoding: gzip"}, "Content-Encoding is gzip" + wantCoding},
		{
			[]string{"Content-Encoding: identity", "Content-Encoding: gzip"},
			"Content-Encoding is identity, gzip" + wantCoding,
		},
	} {
		for request, body := range map[string]string{"POST /v1/pets": newIda, "POST /__admin/reset": "[]"} {
			s.do(t, request, body, tt.headers...).wantError(t, 415, "unsupported_media_type", tt.message)
		}
		s.do(t, "POST /__admin/reset", "", tt.headers...).want(t, 204, "")
		s.do(t, "GET /v1/pets", "", tt.headers...).want(t, 200, "[]")
	}
}

// The contract, section 4.3: get an animal.

// The headers of getPet say that it is deprecated. They are on all of its own
// responses, but not on those that come before it.
func TestGetPet(t *testing.T) {
	s := start(t, newRex)
	for _, tt := range []struct {
		target, header string
		status         int
		answer         string // the pet, or else the message of the Error
	}{
		{"/v1/pets/1", "", 200, rex},
		{"/v1/pets/%31?x", "", 200, rex},
		{"/v1/pets/2", "", 404, "there is no pet 2"},
		{"/v1/pets/0", "", 404, "there is no pet 0"},
		{"/v1/pets/-0", "", 404, "there is no pet 0"},
		{"/v1/pets/-9223372036854775808", "", 404, "there is no pet -9223372036854775808"},
		{"/v1/pets/x", "", 400, "petId is x; it must be an integer"},
		{"/v1/pets/1.0", "", 400, "petId is 1.0; it must be an integer"},
		{"/v1/pets/01", "", 400, "petId is 01; it must be an integer"},
		{"/v1/pets/1%2F2", "", 400, "petId is 1/2; it must be an integer"},
		{"/v1/pets/1%2F", "", 400, "petId is 1/; it must be an integer"},
		{
			"/v1/pets/9223372036854775808", "", 400, "petId is 9223372036854775808; " +
				"it must be an integer from -9223372036854775808 to 9223372036854775807",
		},
		{"/v1/pets/1?%zz", "", 400, "the query is malformed"},
		{"/v1/pets/1", "Prefer: code=418", 418, simulated},
	} {
		r := s.do(t, "GET "+tt.target, "", tt.header)
		equal(t, r.request+": status", r.status, tt.status)
		if !strings.Contains(r.body, tt.answer) {
			t.Errorf("%s: got %s, want it to contain %s", r.request, r.body, tt.answer)
		}
		r.wantHeader(t, "Deprecation", "@1795132800")
		r.wantHeader(t, "Sunset", "Thu, 05 Dec 2030 00:00:00 GMT")
		r.wantHeader(t, "Link", `</v1/pets>; rel="successor-version"`)
	}
	s.do(t, "GET /v1/pets/1", "", noKey).wantHeader(t, "Deprecation", "")
	s.do(t, "GET /v1/pets", "").wantHeader(t, "Deprecation", "")
	large := s.do(t, "GET /v1/pets/1", strings.Repeat("x", 65_537), "Expect: 100-continue")
	large.wantError(t, 413, "request_entity_too_large", bodyTooLarge)
	large.wantHeader(t, "Deprecation", "")
}

// HEAD has the status and the headers of GET, and no body.
func TestHead(t *testing.T) {
	s := start(t, manyPets(60)...)
	for _, target := range []string{
		"/v1/pets", "/v1/pets?limit=0", "/v1/pets/7", "/v1/pets/77", "/v1/store/orders", "/v1/x",
		"/__admin/fault", "/__admin/requests?total=0", "/healthz", "/openapi.json", "/",
	} {
		get := s.do(t, "GET "+target, "")
		head := s.do(t, "HEAD "+target, "")
		get.header.Del("Date")
		head.header.Del("Date")
		equal(t, head.request+": status", head.status, get.status)
		equal(t, head.request+": headers", head.header, get.header)
		equal(t, head.request+": body", head.body, "")
	}
}

// When clients add pets at the same time, each pet gets an id of its own, and a
// list is always in order.
func TestConcurrentCreates(t *testing.T) {
	h := testHandler(t)
	const clients, each = 8, 200
	concurrently(clients, func(i int) {
		for n := range each {
			name := fmt.Sprint(i, "-", n)
			w := call(h, "POST", "/v1/pets", `{"name":"`+name+`","categoryId":1,"status":"sold"}`)
			again := call(h, "GET", w.Header().Get("Location"), "")
			got := w.Body.String()
			if list := call(h, "GET", "/v1/pets?status=sold", ""); list.Code != 200 {
				t.Errorf("a list among creates: got %d %s", list.Code, list.Body)
			}
			if w.Code != 201 || !strings.Contains(got, name) || again.Body.String() != got {
				t.Errorf("create %s: got %d %s, and then %s", name, w.Code, got, again.Body)
			}
		}
	})
	for _, status := range []string{"", "&status=sold"} {
		var ids []int64
		for range clients * each / 100 {
			target := fmt.Sprint("/v1/pets?limit=100&after=", len(ids), status)
			ids = append(ids, response{body: call(h, "GET", target, "").Body.String()}.ids(t)...)
		}
		equal(t, "the ids"+status, ids, numbers(1, clients*each, 1))
	}
}

// The contract, section 5: authentication.

func TestKey(t *testing.T) {
	s := start(t)
	challenges := map[string]string{ // by code
		"unauthorized":  `Bearer realm="petstore"`,
		"invalid_token": `Bearer realm="petstore", error="invalid_token"`,
	}
	messages := map[string]string{
		"unauthorized":  "send the API key in one header: Authorization: Bearer <API_KEY>",
		"invalid_token": "this is not the API key that the service was started with",
	}
	for _, tt := range []struct {
		header string
		code   string // of the Error, or empty if the key is right
	}{
		{"Authorization: Bearer " + testKey, ""},
		{"Authorization: bEARER   " + testKey, ""},

		{noKey, "unauthorized"},
		{"Authorization: Bearer", "unauthorized"},
		{"Authorization: " + testKey, "unauthorized"},
		{"Authorization: Basic " + testKey, "unauthorized"},
		{"Authorization: Bearer" + testKey, "unauthorized"},

		{"Authorization: Bearer " + testKey[1:], "invalid_token"},
		{"Authorization: Bearer " + testKey[:5], "invalid_token"},
		{"Authorization: Bearer " + testKey + "x", "invalid_token"},
		{"Authorization: Bearer " + strings.ToUpper(testKey), "invalid_token"},
		{"Authorization: Bearer " + testKey + ", Bearer " + testKey, "invalid_token"},
	} {
		r := s.do(t, "GET /v1/pets", "", tt.header)
		if tt.code == "" {
			r.want(t, 200, "[]")
		} else {
			r.wantError(t, 401, tt.code, messages[tt.code])
		}
		r.wantHeader(t, "WWW-Authenticate", challenges[tt.code])
	}
	right := "Authorization: Bearer " + testKey
	s.do(t, "GET /v1/pets", "", right, right).wantError(t, 401, "unauthorized", "")
}

// Everything under /v1 and /__admin needs the key, before anything else is looked
// at. Other paths do not.
func TestKeyIsNeeded(t *testing.T) {
	s := start(t)
	for _, request := range []string{
		"GET /v1", "GET /v1/", "GET /v1/pets", "HEAD /v1/pets", "BREW /v1/pets?%zz", "GET /v1//pets",
		"POST /v1/pets", "GET /v1/nothing", "GET /v1/store/orders", "GET /%76%31/pets",
		"GET /__admin", "GET /__admin/nothing", "POST /__admin/reset", "PUT /__admin/fault?code=x",
		"DELETE /__admin/requests", "GET /%5F_admin/fault",
	} {
		r := s.do(t, request, "x", noKey, "Prefer: code=418", observer)
		equal(t, r.request+": status", r.status, 401)
	}
	for request, status := range map[string]int{
		"GET /": 200, "GET /healthz": 200, "GET /openapi.json": 200, "PUT /healthz": 405,
		"GET /v1x": 404, "GET /__adminx": 404, "GET /nothing": 404, "OPTIONS /v1/pets": 204,
	} {
		r := s.do(t, request, "", noKey)
		equal(t, r.request+": status", r.status, status)
	}
	s.do(t, "GET /healthz", "", noKey).want(t, 200, `{"status":"ok"}`)
	api := strings.TrimSuffix(readFile(t, "api/openapi.json"), "\n")
	s.do(t, "GET /openapi.json", "", noKey).want(t, 200, api)
}

// The page and its files are sent with headers that protect the key, which it
// knows, from other pages.
func TestPageFiles(t *testing.T) {
	s := start(t)
	for path, file := range map[string]struct{ name, contentType string }{
		"/":         {"page/index.html", "text/html; charset=utf-8"},
		"/page.css": {"page/page.css", "text/css; charset=utf-8"},
		"/page.js":  {"page/page.js", "text/javascript; charset=utf-8"},
	} {
		r := s.do(t, "GET "+path, "", noKey)
		equal(t, r.request+": status", r.status, 200)
		equal(t, r.request, r.body, readFile(t, file.name))
		for name, value := range map[string]string{
			"Content-Type": file.contentType,
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; " +
				"img-src 'self' data:; connect-src 'self'; " +
				"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":     "nosniff",
			"Referrer-Policy":            "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin",
		} {
			r.wantHeader(t, name, value)
		}
	}
	s.do(t, "GET /favicon.ico", "", noKey).want(t, 204, "")
}

// A page of any origin may read every answer, with the headers that it needs. A
// preflight is answered before anything else.
func TestCORS(t *testing.T) {
	s := start(t)
	for _, request := range []string{
		"GET /v1/pets", "PATCH /v1/pets", "OPTIONS /v1/pets", "GET /v1/../x", "GET /", "PUT /__admin/fault",
	} {
		for _, header := range []string{"Authorization: x", "Prefer: code=html", "Prefer: code=503"} {
			r := s.do(t, request, "{", header, "Origin: null")
			r.wantHeader(t, "Access-Control-Allow-Origin", "*")
			r.wantHeader(t, "Access-Control-Expose-Headers",
				"Link, Location, Allow, Deprecation, Sunset, WWW-Authenticate, Preference-Applied, Retry-After")
			r.wantHeader(t, "Access-Control-Allow-Credentials", "")
		}
	}
	s.do(t, "GET /v1/pets", "").wantHeader(t, "Access-Control-Allow-Origin", "")

	s.setFault(t, "code=503")
	for _, target := range []string{"/v1/pets", "/v1/nothing/", "/x/../y", "/__admin/reset", "/healthz", "/"} {
		r := s.do(t, "OPTIONS "+target, "", noKey, "Prefer: code=503", "Origin: http://example.com")
		r.want(t, 204, "")
		r.wantHeader(t, "Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
		r.wantHeader(t, "Access-Control-Allow-Headers",
			"Authorization, Content-Type, Prefer, Petstore-Observer, *")
		r.wantHeader(t, "Access-Control-Max-Age", "600")
	}
	s.wantFault(t, `"code":"503","matched":0,"applied":0,"held":0`)
}

// The contract, section 7: errors.

// A path that does not exist is a 404 and never a redirect, even if it only needs
// cleaning.
func TestNoSuchPath(t *testing.T) {
	s := start(t)
	for _, path := range []string{
		"/pets", "/v1x", "/v1", "/v1/", "/v1/pets/", "/v1/pets/1/", "/v1/pets/1/2",
		"//v1/pets", "/v1//pets", "/v1/./pets", "/v1/../v1/pets", "/v1/pets/.", "/x/../healthz",
		"/healthz/", "/__admin", "/__admin/", "/__admin/reset/", "/__admin//requests",
	} {
		for _, method := range []string{"GET", "POST", "BREW"} {
			r := s.do(t, method+" "+path+"?%zz", "{")
			r.wantError(t, 404, "not_found", "no such path: "+path+"; the API is at /v1/pets, ")
			r.wantHeader(t, "Allow", "")
		}
	}
	s.do(t, "GET /v1/store/orders", "").wantError(t, 501, "not_implemented",
		"the contract names this operation without its payload")
}

// A path without this method is a 405 with the methods that it has.
func TestNoSuchMethod(t *testing.T) {
	s := start(t)
	for path, allowed := range map[string]string{
		"/v1/pets":          "GET, HEAD, POST",
		"/v1/pets/1":        "GET, HEAD",
		"/v1/pets/1%2F2":    "GET, HEAD",
		"/v1/store/orders":  "GET, HEAD",
		"/__admin/reset":    "POST",
		"/__admin/fault":    "DELETE, GET, HEAD, PUT",
		"/__admin/requests": "DELETE, GET, HEAD",
		"/healthz":          "GET, HEAD",
		"/openapi.json":     "GET, HEAD",
		"/":                 "GET, HEAD",
	} {
		for _, method := range []string{"PATCH", "BREW", "get"} {
			r := s.do(t, method+" "+path+"?%zz", "{")
			r.wantError(t, 405, "method_not_allowed", "this path allows "+allowed+" only")
			r.wantHeader(t, "Allow", allowed)
			r.wantHeader(t, "Deprecation", "")
		}
	}
}

// A route that another one would also match can be added.
func TestAddedRoute(t *testing.T) {
	one := func(*exchange) (answer, error) { return jsonAnswer(200, []byte("1")), nil }
	s := startAdded(t, one, newRex)
	s.do(t, "GET /v1/pets/added", "").want(t, 200, "1")
	r := s.do(t, "POST /v1/pets/added", "")
	r.wantError(t, 405, "method_not_allowed", "this path allows GET, HEAD only")
	s.do(t, "GET /v1/pets/1", "").want(t, 200, rex)
	s.do(t, "GET /v1/pets/adde", "").wantError(t, 400, "invalid_parameter", "petId is adde")
}

// Only the first of several errors is reported. An error that comes before the
// fault does not use it up.
func TestErrorOrder(t *testing.T) {
	s := start(t)
	tooLarge := strings.Repeat("x", 65_537)
	const wrongType = "Content-Type: x"
	s.setFault(t, "code=503&times=1")
	for _, tt := range []struct {
		request, body string
		headers       []string
		status        int
		message       string
	}{
		{"BREW /v1//pets?%zz", tooLarge, []string{noKey, "Prefer: code=x"}, 401, "send the API key"},
		{"BREW /v1//pets?%zz", tooLarge, []string{"Prefer: code=x"}, 413, bodyTooLarge},
		{"BREW /v1//pets?%zz", "{", []string{"Prefer: code=x"}, 400, "code is x"},
		{"BREW /v1//pets?%zz", "{", nil, 503, simulated},
		{"BREW /v1//pets?%zz", "{", nil, 404, "no such path"},
		{"BREW /v1/pets?%zz", "{", nil, 405, "this path allows"},
		{"POST /v1/pets?%zz", "{", []string{wrongType}, 400, "the query is malformed"},
		{"POST /v1/pets?x", "{", []string{wrongType}, 415, "Content-Type is x"},
		{"POST /v1/pets", "{", nil, 400, "the body is not JSON"},
		{"GET /healthz", tooLarge, nil, 413, bodyTooLarge},
		{"PUT /__admin/fault?code=x", tooLarge, nil, 413, bodyTooLarge},
		{
			"POST /__admin/reset", tooLarge, nil, 413,
			bodyTooLarge + "; put a larger seed into a file, and start with -seed",
		},
	} {
		r := s.do(t, tt.request, tt.body, append(tt.headers, "Expect: 100-continue")...)
		equal(t, r.request+": status", r.status, tt.status)
		if !strings.Contains(r.body, `"message":"`+tt.message) {
			t.Errorf("%s: got %s, want the message %s", r.request, r.body, tt.message)
		}
	}
}

// A panic, or an error that is not an Error, is a bug. Only the log has the
// details.
func TestBug(t *testing.T) {
	secret := errors.New("open /secret: permission denied")
	for name, tt := range map[string]struct {
		do  func(*exchange) (answer, error)
		log string // a regular expression
	}{
		"error": {
			func(*exchange) (answer, error) { return jsonAnswer(201, []byte("1")), secret },
			`error="open /secret: permission denied"`,
		},
		"panic": {
			func(*exchange) (answer, error) { panic(secret) },
			`error="panic: open /secret: permission denied\\n.*TestBug.*"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startAdded(t, tt.do)
			const message = "the service has a bug; its log has the details"
			s.do(t, "GET /v1/pets/added", "").wantError(t, 500, "internal_server_error", message)
			matches(t, "the log", s.log.take(),
				`^time=\S+ level=ERROR msg=bug `+tt.log+` method=GET url=/v1/pets/added\n$`)
			s.do(t, "GET /v1/pets", "").want(t, 200, "[]")
		})
	}
}

// The store takes 256 MiB of pets, each counted as its JSON and 128 bytes. A full
// store refuses creates, and still answers everything else. A create that is
// refused uses no id.
func TestFullStore(t *testing.T) {
	seed := seedOf(t, newRex)
	seed.size = 256<<20 - int64(len(ida)) - 128
	s := startWith(t, seed, func(*service, *http.Server) {})
	const full = "the store is full; its limit is 268435456 bytes"
	const oneByteMore = `{"name":"Ida+","categoryId":2}`
	for range 2 { // a reset restores the size, too
		s.do(t, "POST /v1/pets", oneByteMore).wantError(t, 507, "insufficient_storage", full)
		s.do(t, "POST /v1/pets", newIda).want(t, 201, ida)
		s.do(t, "POST /v1/pets", newIda).wantError(t, 507, "insufficient_storage", full)
		s.do(t, "GET /v1/pets?status=sold", "").want(t, 200, array(rex))
		s.reset(t, "")
	}
	first, second := seedOf(t, newRex), seedOf(t, newRex, newIda)
	equal(t, "the size of Rex", first.size, int64(len(rex))+128)
	equal(t, "the size of Rex and Ida", second.size, int64(len(rex)+len(ida))+256)
}

// Faults for one request.

// What a client gets from a fault, whether Prefer sets it or it stands. Rex is in
// the store, and the request is to add Ida.
func TestFaultCodes(t *testing.T) {
	added := ida + "\n"
	cut := io.ErrUnexpectedEOF
	teapot := errorText(418, "im_a_teapot", simulated) + "\n"
	tested := map[string]bool{}
	for _, tt := range []struct {
		code   string
		status int    // 0 if there is no answer
		body   string // the part of it that comes
		err    error  // of the connection
		held   bool   // whether the client waits until the fault ends
		added  bool   // whether Ida is in the store
	}{
		{code: "418", status: 418, body: teapot},
		{code: "hangup", err: io.EOF},
		{code: "rst", err: syscall.ECONNRESET},
		{code: "lost", err: io.EOF, added: true},
		{code: "truncate", status: 201, body: half(added), err: cut, added: true},
		{code: "stall", status: 201, body: half(added), err: cut, held: true, added: true},
		{code: "drip", status: 201, body: added, held: true, added: true},
		{code: "html", status: 502, body: gatewayPage, added: true},
	} {
		for source, prefer := range map[string]string{"standing": "", "Prefer": "Prefer: code=" + tt.code} {
			ok := t.Run(tt.code+"/"+source, func(t *testing.T) {
				s := start(t, newRex)
				if prefer == "" {
					s.setFault(t, "code="+tt.code)
				}
				p := s.send(t, "POST /v1/pets", newIda, prefer)
				s.journal(t, 1)
				if tt.held && prefer == "" {
					s.waitFault(t, `"held":1`)
				}
				equal(t, "Ida was added", s.has(t, ida), tt.added)
				if tt.held {
					s.reset(t, "")
				}
				r := p.wait()
				equal(t, "status", r.status, tt.status)
				equal(t, "body", r.body, tt.body)
				if !errors.Is(r.err, tt.err) {
					t.Errorf("error: got %v, want %v", r.err, tt.err)
				}
				if tt.status != 0 {
					r.wantHeader(t, "Preference-Applied", strings.TrimPrefix(prefer, "Prefer: "))
				}
			})
			if !ok {
				return // the others are likely to wait for long
			}
		}
		tested[tt.code] = true
	}
	equal(t, "the codes of this test", keys(tested), sorted(append(faultWords(), "418")))
}

// The journal has the answer and the error of the operation, even if a fault keeps
// them from the client. The status is what the client gets, or 0 if it gets none.
func TestFaultsInJournal(t *testing.T) {
	const create, refused, head = "POST " + newIda, "POST {}", "HEAD "
	const nameless = "name is missing; it must be a string"
	list := array(rex) + "\n"
	added := ida + "\n"
	bad := errorText(400, "invalid_body", nameless) + "\n"
	teapot := errorText(418, "im_a_teapot", simulated) + "\n"
	for _, tt := range []struct {
		code, send string // a method and a body
		status     int
		answer     string
		problem    string // the error in the journal
	}{
		{"418", create, 418, teapot, simulated},
		{"hangup", create, 0, "", ""},
		{"rst", create, 0, "", ""},
		{"lost", create, 0, added, ""},
		{"truncate", create, 201, added, ""},
		{"stall", create, 201, added, ""},
		{"drip", create, 201, added, ""},
		{"html", create, 502, gatewayPage, ""},

		{"418", refused, 418, teapot, simulated},
		{"lost", refused, 0, bad, nameless},
		{"truncate", refused, 400, bad, nameless},
		{"html", refused, 502, gatewayPage, nameless},

		{"418", head, 418, teapot, simulated},
		{"rst", head, 0, "", ""},
		{"truncate", head, 0, list, ""},
		{"stall", head, 0, list, ""},
		{"drip", head, 200, list, ""},
		{"html", head, 502, gatewayPage, ""},
	} {
		s := start(t, newRex)
		method, body, _ := strings.Cut(tt.send, " ")
		p := s.send(t, method+" /v1/pets", body, "Prefer: code="+tt.code)
		e := s.journal(t, 1)[0]
		s.reset(t, "") // ends a stall and a drip
		r := p.wait()
		name := tt.code + " of " + tt.send
		equal(t, name+": status", r.status, tt.status)
		equal(t, name+": status in the journal", e.Status, tt.status)
		equal(t, name+": answer in the journal", e.Answer, tt.answer)
		equal(t, name+": error in the journal", e.Error, tt.problem)
		equal(t, name+": fault in the journal", e.Fault, map[string]string{"code": tt.code})
	}
}

// A simulated Error is like a real one. Its Retry-After is 1 for the statuses
// that clients retry, or as asked for.
func TestSimulatedErrors(t *testing.T) {
	s := start(t)
	for _, tt := range []struct {
		prefer     string
		status     int
		code       string // of the Error
		retryAfter string
	}{
		{"code=400", 400, "bad_request", ""},
		{"code=401", 401, "invalid_token", ""},
		{"code=404", 404, "not_found", ""},
		{"code=418", 418, "im_a_teapot", ""},
		{"code=429", 429, "too_many_requests", "1"},
		{"code=503", 503, "service_unavailable", "1"},
		{"code=599", 599, "status_599", ""},
		{"code=429, retry-after=0", 429, "too_many_requests", "0"},
		{"code=500, retry-after=3600", 500, "internal_server_error", "3600"},
	} {
		// Neither the path, the method, the query nor the body matters.
		for _, request := range []string{"GET /v1/pets", "BREW /v1//nothing?%zz"} {
			r := s.do(t, request, "{", "Prefer: "+tt.prefer)
			r.wantError(t, tt.status, tt.code, simulated)
			r.wantHeader(t, "Retry-After", tt.retryAfter)
			r.wantHeader(t, "Preference-Applied", tt.prefer)
			challenge := ""
			if tt.status == 401 {
				challenge = `Bearer realm="petstore", error="invalid_token"`
			}
			r.wantHeader(t, "WWW-Authenticate", challenge)
		}
	}
}

// Prefer is read as RFC 7240 says: commas or semicolons separate preferences, the
// first of a name counts, and those with other names are ignored. What was read is
// confirmed.
func TestPrefer(t *testing.T) {
	s := start(t)
	for _, tt := range []struct{ prefer, applied string }{
		{"code=418", "code=418"},
		{` CODE = "418"	; delay="0"`, "code=418, delay=0"},
		{",;=,code=418,;", "code=418"},
		{"code=418, code=500", "code=418"},
		{"code=418,lost", "code=418"},
		{`code="418,500"`, "code=418"},
		{
			"answer-delay=.0;delay=0.0;retry-after=0;code=418",
			"code=418, delay=0.0, answer-delay=.0, retry-after=0",
		},
		{"answer-delay=0", "answer-delay=0"},
		{"delay=0, retry-after=5", "delay=0"},
		{"wait=x, respond-async, skip=x, operation=x, times=x", ""},
		{"retry-after=x", ""},
		{"", ""},
	} {
		r := s.do(t, "GET /v1/pets", "", "Prefer: wait=1", "Prefer: "+tt.prefer)
		r.wantHeader(t, "Preference-Applied", tt.applied)
		if strings.Contains(tt.applied, "418") {
			r.wantError(t, 418, "im_a_teapot", simulated)
		} else {
			r.want(t, 200, "[]")
		}
	}

	// TestFaultRefused has more of what is refused.
	for _, preference := range []string{"code=600", "delay=31", "answer-delay=x", "retry-after=-1"} {
		name, value, _ := strings.Cut(preference, "=")
		r := s.do(t, "GET /v1/pets", "", "Prefer: "+preference, "Prefer: code=503")
		r.wantError(t, 400, "invalid_parameter", name+" is "+value+"; it must be ")
		r.wantHeader(t, "Preference-Applied", "")
	}

	// Prefer has no effect outside of /v1, and on requests that are not performed.
	s.do(t, "GET /healthz", "", "Prefer: code=hangup").want(t, 200, `{"status":"ok"}`)
	s.do(t, "GET /__admin/fault", "", "Prefer: code=hangup").want(t, 200, "{}")
	s.do(t, "GET /v1", "", "Prefer: code=hangup", noKey).wantError(t, 401, "unauthorized", "")
}

// The delays, and -latency, come before the answer. The journal has the time that
// they take together.
func TestDelays(t *testing.T) {
	s := program(t, "-latency", "50ms")
	s.do(t, "GET /v1/pets", "", "Prefer: delay=0.1, answer-delay=0.15").want(t, 200, "[]")
	s.setFault(t, "answer-delay=0.2")
	s.do(t, "GET /v1/pets", "").want(t, 200, "[]")
	s.setFault(t, "code=503&answer-delay=0.2")
	s.do(t, "GET /v1/pets", "").wantError(t, 503, "service_unavailable", simulated)
	for i, least := range []float64{0.3, 0.25, 0.25} {
		e := s.journal(t, 3)[i]
		if e.Seconds < least || e.Seconds > time.Since(e.Time).Seconds()+0.002 {
			t.Errorf("request %d took %v seconds, want %v or more", i+1, e.Seconds, least)
		}
	}
}

// The fault of a Prefer header does not end with the standing fault.
func TestPreferIsNotReleased(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.setFault(t, "delay=30")
	pending := s.send(t, "GET /v1/pets", "", "Prefer: delay=0.5, answer-delay=0.5")
	s.setFault(t, "delay=30")
	s.do(t, "DELETE /__admin/fault", "").want(t, 204, "")
	pending.wait().want(t, 200, "[]")
	if e := s.journal(t, 1)[0]; e.Seconds < 1 {
		t.Errorf("it took %v seconds, want 1 or more", e.Seconds)
	}
}

// A reset and a stop end the waits of Prefer, too.
func TestPreferIsReleased(t *testing.T) {
	for end, release := range map[string]func(*server){
		"reset": func(s *server) { s.reset(t, "") },
		"stop":  func(s *server) { s.stop() },
	} {
		for _, prefer := range []string{"delay=30", "answer-delay=30", "code=drip", "code=stall"} {
			s := start(t, newRex)
			pending := s.send(t, "GET /v1/pets", "", "Prefer: "+prefer)
			if strings.HasPrefix(prefer, "code=") {
				s.journal(t, 1)
			} else {
				s.waitWaiting(t, "GET /v1/pets listPets")
			}
			begin := time.Now()
			release(s)
			equal(t, prefer+": status after a "+end, pending.wait().status, 200)
			if took := time.Since(begin); took >= wholeDrip {
				t.Errorf("%s: after a %s, it went on for %v", prefer, end, took)
			}
		}
	}
}

// The half of a stall is sent at once.
func TestStallSendsHalf(t *testing.T) {
	s := start(t)
	c := s.sendRaw(t, "GET /v1/pets", "Prefer: code=stall")
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	begin := make([]byte, 1)
	io.ReadFull(resp.Body, begin)
	equal(t, "the first half of []", string(begin), "[")
	s.reset(t, "")
	rest, err := io.ReadAll(resp.Body)
	if len(rest) > 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the rest: got %q and the error %v, want nothing and %v", rest, err, io.ErrUnexpectedEOF)
	}
}

// A drip sends ten pieces, one a second, or one for each byte of a shorter body.
func TestDrip(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pets   []string
		pieces []string
	}{
		{nil, []string{"[", "]", "\n"}},
		{[]string{newRex}, []string{ // 55 bytes
			`[{"id`, `":1,"n`, `ame":`, `"Rex",`, `"cate`, `goryId`, `":7,"`, `status`, `":"so`, "ld\"}]\n",
		}},
	} {
		t.Run(fmt.Sprint(len(tt.pieces), " pieces"), func(t *testing.T) {
			t.Parallel()
			w := &pieceRecorder{ResponseRecorder: httptest.NewRecorder()}
			begin := time.Now()
			testHandler(t, tt.pets...).ServeHTTP(w, newRequest("GET", "/v1/pets", "", "code=drip"))
			equal(t, "the pieces", w.pieces, tt.pieces)
			least := time.Duration(len(tt.pieces)-1) * time.Second
			if took := time.Since(begin); took < least {
				t.Errorf("the drip took %v, want %v or more", took, least)
			}
		})
	}
}

// pieceRecorder records what is sent at once.
type pieceRecorder struct {
	*httptest.ResponseRecorder
	pieces []string
}

func (w *pieceRecorder) Flush() {
	sent := len(strings.Join(w.pieces, ""))
	w.pieces = append(w.pieces, w.Body.String()[sent:])
}

// The fault rst resets a connection that was kept alive, even if the client has
// sent its next request already.
func TestRST(t *testing.T) {
	s := start(t)
	const get = "GET /v1/pets HTTP/1.1\nHost: petstore\nAuthorization: Bearer " + testKey + "\n"
	const rst = get + "Prefer: code=rst\n\n"
	for name, next := range map[string]string{
		"kept alive": rst,
		"pipelined":  rst + get + "\n",
		"HTTP/1.0":   strings.Replace(rst, "1.1", "1.0", 1),
	} {
		c := s.sendRaw(t, "GET /v1/pets", "Prefer: delay=0")
		c.read("GET").want(t, 200, "[]")
		c.write(next)
		if r := c.read("GET"); !errors.Is(r.err, syscall.ECONNRESET) {
			t.Errorf("%s: got %d and the error %v, want a reset", name, r.status, r.err)
		}
	}
}

// Behind a wrapper that hides the connection, rst closes the connection as a
// hangup does.
func TestRSTWithoutConnection(t *testing.T) {
	defer func() {
		if v := recover(); v != http.ErrAbortHandler {
			t.Errorf("the handler ended with %v, want %v", v, http.ErrAbortHandler)
		}
	}()
	testHandler(t).ServeHTTP(httptest.NewRecorder(), newRequest("GET", "/v1/pets", "", "code=rst"))
}

// An answer without a body has no half to send, and a drip has nothing to wait for.
func TestFaultsWithoutBody(t *testing.T) {
	s := startAdded(t, func(*exchange) (answer, error) { return answer{status: 200}, nil })
	r := s.send(t, "GET /v1/pets/added", "", "Prefer: code=truncate").wait()
	if !errors.Is(r.err, io.EOF) {
		t.Errorf("truncate: got %d and the error %v, want no response", r.status, r.err)
	}
	begin := time.Now()
	s.do(t, "GET /v1/pets/added", "", "Prefer: code=drip").want(t, 200, "")
	testHandler(t, newRex).ServeHTTP(httptest.NewRecorder(), newRequest("HEAD", "/v1/pets", "", "code=drip"))
	if took := time.Since(begin); took >= wholeDrip {
		t.Errorf("drips without a body took %v", took)
	}
}

// A client that leaves during -latency or a delay has added no pet. One that
// leaves during an answer-delay has.
func TestClientLeaves(t *testing.T) {
	for _, tt := range []struct {
		latency, fault, counter string
		answer                  string // in the journal
	}{
		{"30s", "delay=0", `"applied":1`, ""},
		{"0s", "delay=30", `"held":1`, ""},
		{"0s", "delay=30&code=html", `"held":1`, ""},
		{"0s", "answer-delay=30&code=html", `"held":1`, rex + "\n"},
	} {
		s := program(t, "-latency", tt.latency)
		s.setFault(t, tt.fault)
		p := s.send(t, "POST /v1/pets", newRex)
		s.waitFault(t, tt.counter)
		p.leave()
		e := s.journal(t, 1)[0]
		equal(t, tt.fault+": status in the journal", e.Status, 0)
		equal(t, tt.fault+": error in the journal", e.Error, clientLeft)
		equal(t, tt.fault+": body in the journal", e.Body, newRex)
		equal(t, tt.fault+": answer in the journal", e.Answer, tt.answer)
		equal(t, tt.fault+": the pet was added", s.has(t, rex), tt.answer != "")
		s.waitFault(t, `"held":0`)
	}

	// A client that leaves while its answer is sent ends the stall or the drip.
	for _, code := range []string{"stall", "drip"} {
		s := start(t, newRex)
		s.setFault(t, "code="+code)
		p := s.send(t, "GET /v1/pets", "")
		s.waitFault(t, `"held":1`)
		begin := time.Now()
		p.leave()
		s.waitFault(t, `"held":0`)
		if took := time.Since(begin); took >= wholeDrip {
			t.Errorf("%s: it went on for %v after the client had left", code, took)
		}
	}
}

// The journal is in the order of the answers.
func TestJournalOrder(t *testing.T) {
	s := start(t)
	s.setFault(t, "delay=30&times=1")
	slow := s.send(t, "GET /v1/pets?slow", "")
	s.waitFault(t, `"held":1`)
	s.do(t, "GET /v1/pets?quick", "").want(t, 200, "[]")
	s.do(t, "DELETE /__admin/fault", "").want(t, 204, "")
	slow.wait().want(t, 200, "[]")
	s.wantJournal(t, "GET /v1/pets?quick 200", "GET /v1/pets?slow 200")
}

// The standing fault.

// A fault for an operation is applied to its requests only, and counts them. A
// HEAD is a request of the operation for GET.
func TestFaultOperation(t *testing.T) {
	s := start(t)
	s.setFault(t, "code=503&operation=createPet")
	s.wantFault(t, `"code":"503","operation":"createPet","matched":0,"applied":0,"held":0`)
	s.do(t, "GET /v1/pets", "").want(t, 200, "[]")
	s.do(t, "BREW /v1/pets", "").wantError(t, 405, "method_not_allowed", "")
	s.do(t, "POST /v1/pets", "{}").wantError(t, 503, "service_unavailable", simulated)
	s.wantFault(t, `"code":"503","operation":"createPet","matched":1,"applied":1,"held":0`)

	// A request that is refused after the fault counts.
	s.setFault(t, "delay=0&operation=listPets")
	equal(t, "the status of a HEAD", s.do(t, "HEAD /v1/pets", "").status, 200)
	s.do(t, "GET /v1/pets?limit=x", "").wantError(t, 400, "invalid_parameter", "limit")
	s.do(t, "GET /v1/pets/", "").wantError(t, 404, "not_found", "")
	s.do(t, "GET /v1/pets/1", "").wantError(t, 404, "not_found", "")
	s.wantFault(t, `"delay":"0","operation":"listPets","matched":2,"applied":2,"held":0`)

	s.setFault(t, "code=418&operation=getPet")
	s.do(t, "GET /v1/pets/x", "").wantError(t, 418, "im_a_teapot", simulated)
	s.do(t, "GET /v1/store/orders", "").wantError(t, 501, "not_implemented", "")
	s.wantFault(t, `"code":"418","operation":"getPet","matched":1,"applied":1,"held":0`)
}

// Without an operation, everything under /v1 matches. The first requests are let
// through, and the fault is applied to the next ones. A fault that is used up goes
// on counting.
func TestSkipAndTimes(t *testing.T) {
	s := start(t)
	s.setFault(t, "times=2&skip=2&code=503&retry-after=7&answer-delay=0.0")
	parameters := `"code":"503","answer-delay":"0.0","retry-after":"7","skip":2,"times":2,`
	s.wantFault(t, parameters+`"matched":0,"applied":0,"held":0`)
	s.do(t, "GET /v1/pets", "").want(t, 200, "[]")
	s.do(t, "GET /v1/nothing", "").wantError(t, 404, "not_found", "")
	r := s.do(t, "GET /v1/nothing", "")
	r.wantError(t, 503, "service_unavailable", simulated)
	r.wantHeader(t, "Retry-After", "7")
	s.do(t, "GET /v1/pets", "").wantError(t, 503, "service_unavailable", simulated)
	s.do(t, "GET /v1/pets", "").want(t, 200, "[]")
	s.wantFault(t, parameters+`"matched":5,"applied":2,"held":0`)

	// A PUT that is refused changes nothing.
	s.do(t, "PUT /__admin/fault?code=x", "").wantError(t, 400, "invalid_parameter", "code is x")
	s.wantFault(t, parameters+`"matched":5,"applied":2,"held":0`)
	s.do(t, "DELETE /__admin/fault", "").want(t, 204, "")
	s.wantFault(t, "")
	s.do(t, "DELETE /__admin/fault", "").want(t, 204, "")
}

// The standing fault neither counts nor is applied to a request with a fault of
// its own, one that is refused before faults are looked at, an observer's, or one
// outside of /v1.
func TestFaultExempts(t *testing.T) {
	s := start(t)
	s.setFault(t, "code=503")
	s.do(t, "GET /v1/pets", "", "Prefer: delay=0").want(t, 200, "[]")
	s.do(t, "GET /v1/pets", "", "Prefer: code=1").wantError(t, 400, "invalid_parameter", "code is 1")
	s.do(t, "GET /v1/pets", "", noKey).wantError(t, 401, "unauthorized", "")
	s.do(t, "GET /v1/pets", "", observer).want(t, 200, "[]")
	s.do(t, "GET /healthz", "").want(t, 200, `{"status":"ok"}`)
	s.wantFault(t, `"code":"503","matched":0,"applied":0,"held":0`)

	s.do(t, "GET /v1/pets", "", "Prefer: wait=1").wantError(t, 503, "service_unavailable", simulated)
	s.wantFault(t, `"code":"503","matched":1,"applied":1,"held":0`)
}

// A list of codes is applied in order, each code once. The journal shows which
// code was applied to a request.
func TestFaultList(t *testing.T) {
	s := start(t)
	parameters := `"code":"503,lost,429","delay":"0","retry-after":"7",` +
		`"operation":"listPets","skip":1,"times":3,`
	put := s.do(t, "PUT /__admin/fault?code=503,lost,429&skip=1&operation=listPets&retry-after=7&delay=0", "")
	put.want(t, 200, "{"+parameters+`"matched":0,"applied":0,"held":0}`)
	s.do(t, "GET /v1/pets/1", "").wantError(t, 404, "not_found", "")
	var statuses []int
	for n := range 5 {
		r := s.send(t, fmt.Sprint("GET /v1/pets?n=", n), "").wait()
		statuses = append(statuses, r.status)
		if r.status > 200 {
			r.wantHeader(t, "Retry-After", "7")
		}
	}
	equal(t, "the statuses", statuses, []int{200, 503, 0, 429, 200})
	s.wantFault(t, parameters+`"matched":5,"applied":3,"held":0`)
	var faults []map[string]string
	for _, e := range s.journal(t, 6) {
		faults = append(faults, e.Fault)
	}
	equal(t, "the faults in the journal", faults, []map[string]string{
		nil,
		nil,
		{"code": "503", "delay": "0", "retry-after": "7"},
		{"code": "lost", "delay": "0"},
		{"code": "429", "delay": "0", "retry-after": "7"},
		nil,
	})

	// One status in a list is enough for a retry-after.
	s.setFault(t, "code=lost,503&retry-after=9")
	s.wantFault(t, `"code":"lost,503","retry-after":"9","times":2,"matched":0,"applied":0,"held":0`)
}

// A fault that is not allowed is refused with a message that says what is.
func TestFaultRefused(t *testing.T) {
	s := start(t)
	const (
		wantCode = "; it must be a status from 400 to 599, "
		wantWait = "; it must be a number of seconds from 0 to 30, such as 2 or 0.5"
		nothing  = "code, delay or answer-delay must be given, in the query: /__admin/fault?code=503"
		noStatus = "retry-after needs a status as code, such as code=503"
	)
	for _, tt := range []struct{ query, message string }{
		{"", nothing},
		{"skip=1&times=1&retry-after=5&operation=listPets", nothing},
		{"code=x", "code is x" + wantCode + "hangup, rst, lost, truncate, stall, drip or html"},
		{"code=", "code is empty" + wantCode},
		{"code=Hangup", "code is Hangup" + wantCode},
		{"code=0503", "code is 0503" + wantCode},
		{"code=399", "code is 399" + wantCode},
		{"code=600", "code is 600" + wantCode},
		{"code=503,", "code is empty" + wantCode},
		{"code=,503", "code is empty" + wantCode},
		{"code=503,,503", "code is empty" + wantCode},
		{"code=503,600", "code is 600" + wantCode},
		{"code=503,%20lost", "code is  lost" + wantCode},
		{"code=a+status+from+400+to+599", "code is a status from 400 to 599" + wantCode},
		{"code=503&code=503", "code is given 2 times; it must be given once"},
		{"code=503,lost&times=2", "times cannot be given with a list of codes"},
		{"code=lost,drip&retry-after=7", noStatus},
		{"delay=1&retry-after=7", noStatus},
		{"delay=x", "delay is x" + wantWait},
		{"delay=30.001", "delay is 30.001" + wantWait},
		{"delay=-1", "delay is -1" + wantWait},
		{"delay=%2B1", "delay is +1" + wantWait},
		{"delay=1e1", "delay is 1e1" + wantWait},
		{"delay=Inf", "delay is Inf" + wantWait},
		{"delay=.", "delay is ." + wantWait},
		{"delay=1s", "delay is 1s" + wantWait},
		{
			"delay=" + strings.Repeat("0", 33),
			"delay is 000000000000000000000000000000000; it must be at most 32 characters long",
		},
		{"answer-delay=", "answer-delay is empty" + wantWait},
		{"answer-delay=31", "answer-delay is 31" + wantWait},
		{"code=503&retry-after=-1", "retry-after is -1; it must be an integer from 0 to 3600"},
		{"code=503&retry-after=1.5", "retry-after is 1.5; it must be an integer from 0 to 3600"},
		{"code=503&retry-after=3601", "retry-after is 3601; it must be an integer from 0 to 3600"},
		{"code=503&operation=", "operation is empty; it must be listPets, createPet or getPet"},
		{"code=503&operation=reset", "operation is reset; it must be listPets, createPet or getPet"},
		{"code=503&skip=-1", "skip is -1; it must be an integer from 0 to 9223372036854775807"},
		{"code=503&times=0", "times is 0; it must be an integer from 1 to 9223372036854775807"},
		{"code=503&x", "PUT /__admin/fault does not take the parameter x"},
	} {
		s.do(t, "PUT /__admin/fault?"+tt.query, "").wantError(t, 400, "invalid_parameter", tt.message)
	}
	s.wantFault(t, "")
	s.setFault(t, "code=599&delay=30&answer-delay=30.0&retry-after=3600") // the largest values
	s.setFault(t, "code=400&delay=0&retry-after=-0&skip=0&times=1")       // the smallest
	s.wantFault(t, `"code":"400","delay":"0","retry-after":"0","times":1,"matched":0,"applied":0,"held":0`)
	s.setFault(t, "answer-delay="+strings.Repeat("0", 32)) // the longest
}

// Under /__admin, a parameter that a route does not take is refused: otherwise a
// GET in which -X PUT was forgotten would succeed.
func TestAdminParameters(t *testing.T) {
	s := start(t)
	for _, tt := range []struct{ request, parameter, hint string }{
		{"GET /__admin/fault", "code", "PUT /__admin/fault does (curl -X PUT)"},
		{"DELETE /__admin/fault", "code", "PUT /__admin/fault does (curl -X PUT)"},
		{"DELETE /__admin/requests", "total", "GET /__admin/requests does (curl -X GET)"},
		{"GET /__admin/requests", "limit", "it takes after, total"},
		{"POST /__admin/reset", "seed", "it takes none"},
	} {
		r := s.do(t, tt.request+"?z&x&"+tt.parameter+"=1&y", "") // the first by name is reported
		r.wantError(t, 400, "invalid_parameter",
			tt.request+" does not take the parameter "+tt.parameter+"; "+tt.hint)
	}
}

// Under /__admin, a body that no operation reads is refused: its parameters would
// have no effect. An unknown path, method or parameter is reported first.
func TestAdminBodies(t *testing.T) {
	s := start(t)
	s.setFault(t, "delay=0")
	s.do(t, "GET /v1/nothing", "{}").wantError(t, 404, "not_found", "")
	const inQuery = "; its parameters go into the query, such as ?"
	for request, message := range map[string]string{
		"PUT /__admin/fault?code=503": "PUT /__admin/fault does not take a body" + inQuery + "code=…",
		"GET /__admin/fault":          "GET /__admin/fault does not take a body; it has no parameters",
		"DELETE /__admin/fault":       "DELETE /__admin/fault does not take a body; it has no parameters",
		"GET /__admin/requests":       "GET /__admin/requests does not take a body" + inQuery + "after=…",
		"DELETE /__admin/requests":    "DELETE /__admin/requests does not take a body; it has no parameters",
	} {
		s.do(t, request, `{"code":"500"}`).wantError(t, 400, "invalid_body", message)
	}
	s.do(t, "PUT /__admin/fault?x", "{}").wantError(t, 400, "invalid_parameter", "PUT /__admin/fault does not take")
	s.do(t, "PUT /__admin/faults", "{}").wantError(t, 404, "not_found", "")
	s.do(t, "PUT /__admin/reset", "{}").wantError(t, 405, "method_not_allowed", "")
	s.wantFault(t, `"delay":"0","matched":1,"applied":1,"held":0`)
	s.wantJournal(t, "GET /v1/nothing 404")
	s.do(t, "GET /v1/pets", "{}").want(t, 200, "[]") // under /v1, it is ignored
}

// Each code of a list is applied once, however many requests come at the same
// time. So are skip and times.
func TestConcurrentFaults(t *testing.T) {
	const clients, each = 8, 500
	h := testHandler(t)
	for _, tt := range []struct {
		query string
		want  map[int]int // number of answers by status
	}{
		{"code=503,404,429,404&skip=20", map[int]int{200: clients*each - 4, 404: 2, 429: 1, 503: 1}},
		{"code=503&skip=300&times=400", map[int]int{200: clients*each - 400, 503: 400}},
		{"code=503&skip=300", map[int]int{200: 300, 503: clients*each - 300}},
	} {
		call(h, "PUT", "/__admin/fault?"+tt.query, "")
		var mu sync.Mutex
		got := map[int]int{}
		concurrently(clients, func(int) {
			for range each {
				w := call(h, "GET", "/v1/pets", "")
				mu.Lock()
				got[w.Code]++
				mu.Unlock()
			}
		})
		equal(t, tt.query+": answers by status", got, tt.want)
		fault := call(h, "GET", "/__admin/fault", "").Body.String()
		applied := clients*each - tt.want[200]
		want := fmt.Sprintf(`"matched":%d,"applied":%d,"held":0`, clients*each, applied)
		if !strings.Contains(fault, want) {
			t.Errorf("%s: got %s, want %s", tt.query, fault, want)
		}
	}
}

// A PUT answers with the fault that it has set, whatever others do at the same
// time.
func TestConcurrentPuts(t *testing.T) {
	h := testHandler(t)
	concurrently(16, func(i int) {
		want := fmt.Sprintf(`{"code":"503","times":%d,"matched":0,"applied":0,"held":0}`+"\n", i+1)
		for range 1500 {
			got := call(h, "PUT", fmt.Sprint("/__admin/fault?code=503&times=", i+1), "").Body.String()
			if got != want {
				t.Errorf("PUT %d: got %s, want %s", i, got, want)
			}
			call(h, "GET", "/v1/pets", "")
		}
	})
}

// When the standing fault is deleted, replaced or reset, or when the service
// stops, the requests that it holds go on at once.
func TestRelease(t *testing.T) {
	ends := map[string]func(*testing.T, *server){
		"delete": func(t *testing.T, s *server) { s.do(t, "DELETE /__admin/fault", "").want(t, 204, "") },
		"put":    func(t *testing.T, s *server) { s.setFault(t, "code=503") },
		"reset":  func(t *testing.T, s *server) { s.reset(t, "") },
		"stop":   func(t *testing.T, s *server) { s.stop() },
	}
	for _, tt := range []struct {
		fault  string
		before bool // whether the operation is performed before the release
		status int
		body   string
	}{
		{"delay=30", false, 201, ida + "\n"},
		{"delay=30&code=418", false, 418, errorText(418, "im_a_teapot", simulated) + "\n"},
		{"delay=30&code=hangup", false, 0, ""},
		{"answer-delay=30", true, 201, ida + "\n"},
		{"answer-delay=30&code=lost", true, 0, ""},
		{"delay=30&answer-delay=30", false, 201, ida + "\n"},
		{"delay=30&code=stall", false, 201, half(ida + "\n")},
		{"code=drip", true, 201, ida + "\n"},
		{"code=stall", true, 201, half(ida + "\n")},
		{"code=drip,lost", true, 201, ida + "\n"},
	} {
		for end, release := range ends {
			ok := t.Run(tt.fault+"/"+end, func(t *testing.T) {
				s := start(t, newRex)
				s.setFault(t, tt.fault)
				p := s.send(t, "POST /v1/pets", newIda)
				s.waitFault(t, `"held":1`)
				equal(t, "Ida is added before the release", s.has(t, ida), tt.before)
				begin := time.Now()
				release(t, s)
				r := p.wait()
				if took := time.Since(begin); took >= wholeDrip {
					t.Errorf("it went on for %v", took)
				}
				equal(t, "status", r.status, tt.status)
				equal(t, "body", r.body, tt.body)
			})
			if !ok {
				return // the others are likely to wait for long
			}
		}
	}
}

// A request gets the fault that stands when it arrives, and not the one that
// stands after -latency. The end of the fault does not end the latency, but a
// reset does.
func TestFaultBeforeLatency(t *testing.T) {
	s := program(t, "-latency", "30s")
	s.setFault(t, "code=418")
	pending := s.send(t, "GET /v1/pets", "")
	s.waitFault(t, `"applied":1`)
	s.setFault(t, "code=503")
	s.wantJournal(t)
	s.reset(t, "")
	pending.wait().wantError(t, 418, "im_a_teapot", simulated)
}

// An observer is neither delayed nor recorded, no fault is applied to it, and it
// uses up none. It needs the key. The service's own paths are not delayed either.
func TestObserver(t *testing.T) {
	s := program(t, "-latency", "30s")
	s.setFault(t, "code=503,hangup")
	s.do(t, "GET /v1/pets", "", "Petstore-Observer: 0").want(t, 200, "[]")
	s.do(t, "GET /v1/pets", "", "Petstore-Observer:", "Prefer: code=hangup").want(t, 200, "[]")
	s.do(t, "GET /v1/pets", "", observer, "Prefer: code=x").want(t, 200, "[]")
	s.do(t, "GET /v1/nothing", "", observer).wantError(t, 404, "not_found", "")
	s.do(t, "GET /v1/pets", "", observer, noKey).wantError(t, 401, "unauthorized", "")
	s.do(t, "GET /healthz", "").want(t, 200, `{"status":"ok"}`)
	s.do(t, "OPTIONS /v1/pets", "").want(t, 204, "")
	s.wantFault(t, `"code":"503,hangup","times":2,"matched":0,"applied":0,"held":0`)
	s.wantJournal(t)

	// A request that is refused before the fault is not delayed.
	s.do(t, "GET /v1/pets", "", noKey).wantError(t, 401, "unauthorized", "")
	s.do(t, "GET /v1/pets", "", "Prefer: code=x").wantError(t, 400, "invalid_parameter", "")
	s.do(t, "GET /nothing", "").wantError(t, 404, "not_found", "")
	s.wantJournal(t, "GET /v1/pets 401", "GET /v1/pets 400", "GET /nothing 404")
}

// The requests that wait for a delay are listed, the oldest first, until they are
// recorded. Those whose answer is being sent are recorded already.
func TestWaiting(t *testing.T) {
	s := program(t, "-latency", "30s")
	s.send(t, "POST /v1/pets?x", newRex)
	s.waitWaiting(t, "POST /v1/pets?x createPet")
	s.do(t, "GET /v1/pets", "", observer).want(t, 200, "[]")
	s.do(t, "GET /v1/pets", "", noKey).wantError(t, 401, "unauthorized", "")
	second := s.send(t, "HEAD /v1/nothing", "")
	s.waitWaiting(t, "POST /v1/pets?x createPet", "HEAD /v1/nothing ")
	s.do(t, "DELETE /__admin/requests", "").want(t, 204, "")
	for range 100 { // a wrong order would not stay the same
		journal := s.do(t, "GET /__admin/requests?after=9", "").body
		matches(t, "the journal", journal, `^{"requests":\[\n\],"waiting":\[\n`+
			`{"time":"\S+Z","method":"POST","url":"/v1/pets\?x","operation":"createPet"},\n`+
			`{"time":"\S+Z","method":"HEAD","url":"/v1/nothing"}\n\],"meta":{"total":0,"since":"\S+Z"}}\n$`)
	}
	second.leave()
	s.wantJournal(t, "HEAD /v1/nothing 0")
	s.waitWaiting(t, "POST /v1/pets?x createPet")

	for _, tt := range []struct{ prefer, fault string }{
		{"Prefer: delay=30", "code=503"},
		{"Prefer: code=503, delay=30", "code=404"},
		{"Prefer: answer-delay=30", "code=503"},
		{"", "delay=30"},
		{"", "answer-delay=30&code=lost"},
	} {
		s := start(t)
		s.setFault(t, tt.fault)
		pending := s.send(t, "GET /v1/pets", "", tt.prefer)
		s.waitWaiting(t, "GET /v1/pets listPets")
		s.wantJournal(t)
		s.reset(t, "")
		pending.wait()
	}
	for _, prefer := range []string{"code=stall", "code=drip"} {
		s := start(t)
		s.setFault(t, prefer)
		s.send(t, "GET /v1/pets", "")
		s.waitFault(t, `"held":1`)
		s.waitWaiting(t)
	}
}

// The journal.

// The journal is a JSON object with a line for each request.
func TestJournalFormat(t *testing.T) {
	s := start(t)
	begin := time.Now()
	c := s.sendRaw(t, "POST /v1/pets?%zz=%20", "x-a: 1\nX-A:2, 3\nx-a:\nPrefer: delay=0\n"+
		"Transfer-Encoding: chunked\n\n8\n<ü>\xff\n\x00\n0")
	equal(t, "status", c.read("POST").status, 400)
	c.write("POST /v1/pets?y&x HTTP/1.0\nContent-Length: 2\n\n{}")
	equal(t, "status", c.read("POST").status, 401)

	r := s.do(t, "GET /__admin/requests", "")
	equal(t, "status", r.status, 200)
	r.wantHeader(t, "Content-Type", "application/json")
	varying := regexp.MustCompile(`("time":)"\d{4}(?:-\d\d){2}T\d\d(?::\d\d){2}\.\d{3}Z"|` +
		`("seconds":)\d+(?:\.\d{1,3})?|("since":)"\d{4}(?:-\d\d){2}T\d\d(?::\d\d){2}\.\d+Z"`)
	equal(t, "the journal", varying.ReplaceAllString(r.body, "$1$2$3"), `{"requests":[
{"id":1,"time":,"method":"POST","url":"/v1/pets?%zz=%20","operation":"createPet",`+
		`"headers":{"Authorization":"Bearer <API_KEY>","Host":"petstore","Prefer":"delay=0",`+
		`"Transfer-Encoding":"chunked","X-A":"1, 2, 3, "},`+
		`"body":"<ü>\ufffd\r\n\u0000","status":400,"seconds":,`+
		`"answerHeaders":{"Content-Length":"105","Content-Type":"application/json",`+
		`"Preference-Applied":"delay=0"},`+
		`"answer":"{\"code\":\"invalid_parameter\",\"message\":`+
		`\"the query is malformed: invalid URL escape \\\"%zz\\\"\",\"status\":400}\n",`+
		`"error":"the query is malformed: invalid URL escape \"%zz\"","fault":{"delay":"0"}},
{"id":2,"time":,"method":"POST","url":"/v1/pets?y&x","operation":"createPet","headers":{"Content-Length":"2"},`+
		`"body":"","status":401,"seconds":,`+
		`"answerHeaders":{"Content-Length":"113","Content-Type":"application/json",`+
		`"Www-Authenticate":"Bearer realm=\"petstore\""},`+
		`"answer":"{\"code\":\"unauthorized\",\"message\":`+
		`\"send the API key in one header: Authorization: Bearer <API_KEY>\",\"status\":401}\n",`+
		`"error":"send the API key in one header: Authorization: Bearer <API_KEY>"}
],"waiting":[
],"meta":{"total":2,"since":}}
`)
	for _, e := range s.journal(t, 2) {
		if e.Time.Before(begin.Truncate(time.Millisecond)) || e.Time.After(time.Now()) {
			t.Errorf("got the time %v, want one since %v", e.Time, begin)
		}
	}
}

// An entry has the headers that the service set, even if a fault kept them from
// the client.
func TestAnswerHeaders(t *testing.T) {
	s := start(t)
	type headers = map[string]string
	for _, tt := range []struct {
		request, header string
		want            headers // without Content-Length, and the Content-Type of JSON
	}{
		{"POST /v1/pets", "Prefer: x", headers{"Location": "/v1/pets/1"}},
		{
			"POST /v1/pets", "Prefer: code=lost",
			headers{"Location": "/v1/pets/2", "Preference-Applied": "code=lost"},
		},
		{"GET /v1/pets?limit=1", "", headers{"Link": `</v1/pets?limit=1&after=1>; rel="next"`}},
		{"BREW /v1/pets", "", headers{"Allow": "GET, HEAD, POST"}},
		{"GET /v1/pets", "Prefer: code=503", headers{"Preference-Applied": "code=503", "Retry-After": "1"}},
		{
			"GET /v1/pets/1", "Prefer: code=html", // with none of the headers of getPet
			headers{"Content-Type": "text/html", "Preference-Applied": "code=html"},
		},
	} {
		s.do(t, "DELETE /__admin/requests", "")
		s.send(t, tt.request, newIda, tt.header).wait()
		e := s.journal(t, 1)[0]
		equal(t, tt.request+": Content-Length", e.AnswerHeaders["Content-Length"], strconv.Itoa(len(e.Answer)))
		delete(e.AnswerHeaders, "Content-Length")
		if e.AnswerHeaders["Content-Type"] == "application/json" {
			delete(e.AnswerHeaders, "Content-Type")
		}
		equal(t, tt.request+" "+tt.header, e.AnswerHeaders, tt.want)
	}

	s.reset(t, "")
	s.setFault(t, "code=hangup")
	s.send(t, "GET /v1/pets", "").wait()
	body := s.do(t, "GET /__admin/requests", "").body
	if strings.Contains(body, "answerHeaders") {
		t.Errorf("after a hangup: got answerHeaders, want none: %s", body)
	}
}

// The ids of the journal count from the start, a reset or a DELETE, which since
// tells apart. With after, entries up to this id are left out.
func TestJournalIDs(t *testing.T) {
	s := start(t)
	ids := func(query string) (ids []int64, since time.Time) {
		requests, _, since := s.readJournal(t, query)
		for _, e := range requests {
			ids = append(ids, e.ID)
		}
		return ids, since
	}
	s.do(t, "GET /v1/pets", "")
	_, before := ids("")
	for _, clear := range []string{"DELETE /__admin/requests", "POST /__admin/reset"} {
		s.do(t, clear, "")
		for range 4 {
			s.do(t, "GET /v1/pets", "")
		}
		for query, want := range map[string][]int64{
			"": {1, 2, 3, 4}, "?after=0": {1, 2, 3, 4}, "?after=3": {4}, "?after=4": nil, "?after=99": nil,
			"?after=2&total=3": {3, 4}, "?after=9223372036854775807": nil,
		} {
			got, since := ids(query)
			equal(t, query+": ids", got, want)
			if !since.After(before) || since.After(time.Now()) {
				t.Errorf("after %s: got since %v, want it after %v", clear, since, before)
			}
		}
		_, before = ids("")
	}
	for _, after := range []string{"-1", "x", ""} {
		r := s.do(t, "GET /__admin/requests?after="+after, "")
		r.wantError(t, 400, "invalid_parameter", "after is ")
	}

	// Together with total, it waits for the next one.
	next := s.send(t, "GET /__admin/requests?after=4&total=5", "")
	s.do(t, "GET /v1/pets?next", "")
	matches(t, "the next entry", next.wait().body,
		`^{"requests":\[\n{"id":5,.*"url":"/v1/pets\?next".*\n\],"waiting"`)
}

// An entry has the operation of the route that matched, if it has one.
func TestJournalOperation(t *testing.T) {
	s := start(t)
	want := map[string]string{
		"GET /v1/pets": "listPets", "HEAD /v1/pets?limit=x": "listPets", "POST /v1/%70ets": "createPet",
		"GET /v1/pets/x": "getPet", "HEAD /v1/pets/1": "getPet",
		"GET /v1/store/orders": "", "BREW /v1/pets": "", "GET /v1/pets/": "", "GET /nothing": "",
	}
	for request := range want {
		s.do(t, request, "", noKey)
		s.do(t, request, "")
	}
	got := map[string]string{}
	for _, e := range s.journal(t, 2*len(want)) {
		got[e.Method+" "+e.URL] = e.Operation
	}
	equal(t, "the operations", got, want)
	if body := s.do(t, "GET /__admin/requests", "").body; strings.Contains(body, `"operation":""`) {
		t.Errorf("got an empty operation, want none: %s", body)
	}
}

// The journal has what clients sent, and not what the page or a test does to
// observe them.
func TestRecordedRequests(t *testing.T) {
	s := start(t, newRex)
	s.do(t, "POST /__admin/reset", "", noKey) // with the key, it would remove what was recorded
	for _, request := range []string{
		"GET /", "HEAD /", "GET /page.css", "GET /page.js", "GET /favicon.ico", "GET /openapi.json",
		"GET /healthz", "GET /__admin", "PUT /__admin/fault", "GET /%5F_admin/nothing",
		"OPTIONS /v1/pets", "OPTIONS /nothing",
	} {
		s.do(t, request, "")
		s.do(t, request, "", noKey)
	}
	for _, request := range []string{"GET /v1/pets", "POST /v1/pets", "GET /nothing"} {
		s.do(t, request, "", observer)
		s.do(t, request, "", observer, noKey)
	}
	s.wantJournal(t)

	s.do(t, "GET /v1/pets", "")
	s.do(t, "POST /v1/pets", newIda)
	s.do(t, "GET /v1/pets/9", "")
	s.do(t, "HEAD /v1/store/orders", "")
	s.do(t, "GET /v1/pets", "", noKey)
	s.do(t, "BREW /v1/pets", "")
	s.do(t, "POST /healthz", "", noKey)
	s.do(t, "GET /healthz/", "", noKey)
	s.do(t, "PUT /nothing", strings.Repeat("x", 65_537), "Expect: 100-continue")
	s.wantJournal(t, "GET /v1/pets 200", "POST /v1/pets 201", "GET /v1/pets/9 404", "HEAD /v1/store/orders 501",
		"GET /v1/pets 401", "BREW /v1/pets 405", "POST /healthz 405", "GET /healthz/ 404", "PUT /nothing 413")
	var bodies []string
	for _, e := range s.journal(t, 9) {
		bodies = append(bodies, e.Body)
	}
	equal(t, "the bodies", bodies, []string{"", newIda, "", "", "", "", "", "", ""})
}

// An entry has the first 1,000 bytes of the answer.
func TestJournalAnswer(t *testing.T) {
	s := start(t, manyPets(60)...)
	list := s.do(t, "GET /v1/pets?limit=60", "").body
	equal(t, "the answer", s.journal(t, 1)[0].Answer, list[:1000])
}

// A request is recorded before its answer is sent.
func TestRecordedBeforeAnswer(t *testing.T) {
	h := testHandler(t)
	for i, prefer := range []string{"wait=1", "code=503", "code=html", "code=truncate"} {
		w := headerRecorder{httptest.NewRecorder(), func() {
			journal := call(h, "GET", "/__admin/requests", "").Body.String()
			matches(t, "the journal when the answer is sent", journal, fmt.Sprintf(`"meta":{"total":%d,`, i+1))
		}}
		h.ServeHTTP(w, newRequest("GET", "/v1/pets", "", prefer))
	}
}

// headerRecorder calls a function when the headers are sent.
type headerRecorder struct {
	*httptest.ResponseRecorder
	sending func()
}

func (w headerRecorder) WriteHeader(status int) {
	w.sending()
	w.ResponseRecorder.WriteHeader(status)
}

// The journal names what was ignored: first the preferences, then the query
// parameters, and then the members of the body, each sorted. If a fault skips the
// operation, it names the preferences only.
func TestIgnored(t *testing.T) {
	s := start(t)
	for _, tt := range []struct {
		request, body, prefer string
		ignored               []string
	}{
		{"GET /v1/pets?limit=1&after=1&status=sold", "", "", nil},
		{"POST /v1/pets", newRex, "code=lost,delay=0;answer-delay=0,retry-after=1", nil},
		{"GET /v1/pets?stauts=sold&b&a=1&b=2&%61b=", "", "", []string{"a", "ab", "b", "stauts"}},
		{"GET /v1/pets?limit=x&Limit=1", "", "", []string{"Limit"}},
		{"GET /v1/pets/1?limit=1&after=1", "", "", []string{"after", "limit"}},
		{"GET /v1/store/orders?x", "", "", []string{"x"}},
		{
			"POST /v1/pets?z&limit=1",
			`{"status":"sold","id":7,"b":1,"Status":1,"name":"","a":1,"a":2,"categoryId":1}`,
			"wait=9; Times=2,=, wait=1",
			[]string{"times", "wait", "limit", "z", "Status", "a", "b", "id"},
		},
		{"POST /v1/pets?x", `{"id":7}`, "", []string{"x", "id"}},
		{"POST /v1/pets?x", `{"id":7`, "", []string{"x"}},
		{"GET /v1/nothing?x", "", "y", []string{"y"}},
		{"BREW /v1/pets?x", "", "code=503,lost", []string{"lost"}},
		{"POST /v1/pets?x", `{"id":7}`, "y, code=hangup", []string{"y"}},
		{"POST /v1/pets?x", `{"id":7}`, "y, code=lost", []string{"y", "x", "id"}},
		{"GET /v1/pets", "", "y, code=x", []string{"y"}},
	} {
		s.do(t, "DELETE /__admin/requests", "")
		s.send(t, tt.request, tt.body, "Prefer: "+tt.prefer).wait()
		equal(t, tt.request+" "+tt.body+" "+tt.prefer+": ignored", s.journal(t, 1)[0].Ignored, tt.ignored)
	}
}

// In Authorization, <API_KEY> stands wherever the key stood. In any other place,
// the key is shown.
func TestKeyIsHidden(t *testing.T) {
	for _, key := range []string{testKey, "e", ",~"} {
		s := command{key: key}.start(t)
		for _, header := range []string{
			"Bearer " + key, "bearer   " + key, "Bearer\t" + key, `Bearer "` + key + `"`, "Bearer:" + key,
			"Bearer " + key + ",", "Basic x" + key + "x", key, key + key, "Basic x",
		} {
			s.do(t, "DELETE /__admin/requests", "")
			s.do(t, "GET /v1/pets?"+key, "", "Authorization: "+header, "X: "+key)
			e := s.journal(t, 1)[0]
			equal(t, header+": Authorization",
				e.Headers["Authorization"], strings.ReplaceAll(header, key, "<API_KEY>"))
			equal(t, header+": another header", e.Headers["X"], key)
			equal(t, header+": the URL", e.URL, "/v1/pets?"+key)
		}
		s.do(t, "GET /v1/pets", "", "Authorization: x"+key, "Authorization: "+key+"y")
		equal(t, "two headers", s.journal(t, 2)[1].Headers["Authorization"], "x<API_KEY>, <API_KEY>y")
	}
}

// With total, the journal waits for that many requests.
func TestJournalTotal(t *testing.T) {
	s := start(t)
	for total, message := range map[string]string{
		"-1": "total is -1; it must be an integer from 0 to 9223372036854775807",
		"":   "total is empty",
		"x":  "total is x",
	} {
		s.do(t, "GET /__admin/requests?total="+total, "").wantError(t, 400, "invalid_parameter", message)
	}

	// Several clients wait for several totals.
	var all []pending
	for i := range 20 {
		all = append(all, s.send(t, fmt.Sprint("GET /__admin/requests?total=", i%2+1), ""))
	}
	for total := 1; total <= 2; total++ {
		s.do(t, "GET /v1/pets", "")
		s.do(t, "GET /v1/pets", "", observer)
		for i, p := range all {
			if i%2+1 == total {
				checkTotal(t, p.wait(), total)
			}
		}
	}
	s.do(t, "GET /v1/pets", "")
	checkTotal(t, s.do(t, "GET /__admin/requests?total=2", ""), 3)
}

// A reset, a DELETE, a stop and a client that leaves end the wait for a total.
func TestJournalTotalEnds(t *testing.T) {
	var journal *journal
	s := startWith(t, seedOf(t), func(s *service, _ *http.Server) { journal = s.current.Load().journal })
	c := s.sendRaw(t, "GET /__admin/requests?total=9", "")
	c.CloseWrite()
	if r := c.read("GET"); !errors.Is(r.err, io.ErrUnexpectedEOF) {
		t.Errorf("a client that leaves: got %d and the error %v", r.status, r.err)
	}
	journal.mu.Lock()
	equal(t, "the number of waits after a client has left", len(journal.awaited), 0)
	journal.mu.Unlock()

	for _, end := range []string{"POST /__admin/reset", "DELETE /__admin/requests"} {
		p := s.send(t, "GET /__admin/requests?total=9", "")
		eventually(t, end+" ends the wait", func() bool { // no event says that it has begun
			s.do(t, end, "")
			return len(p.response) > 0
		})
		checkTotal(t, p.wait(), 0)
	}

	p := s.send(t, "GET /__admin/requests?total=9", "")
	s.stop()
	checkTotal(t, p.wait(), 0)
}

// A total that has been reached is answered, even if the client has closed its
// sending half, which net/http takes for leaving.
func TestJournalTotalReached(t *testing.T) {
	h := testHandler(t)
	call(h, "GET", "/v1/pets", "")
	left, leave := context.WithCancel(context.Background())
	leave()
	for _, query := range []string{"", "?total=1"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, newRequest("GET", "/__admin/requests"+query, "", "").WithContext(left))
		checkTotal(t, response{request: query, status: w.Code, body: w.Body.String()}, 1)
	}
}

// checkTotal checks the total of a journal.
func checkTotal(t *testing.T, r response, total int) {
	t.Helper()
	equal(t, r.request+": status", r.status, 200)
	matches(t, r.request, r.body, fmt.Sprintf(`"meta":{"total":%d,`, total))
}

// The journal keeps the last 1,000 requests, and 4 MiB: an entry counts its texts,
// and 100 bytes for each header.
func TestJournalBounds(t *testing.T) {
	s := start(t)
	for n := range 1003 {
		s.do(t, fmt.Sprint("GET /nothing?n=", n), "")
	}
	entries, total, _ := s.readJournal(t, "")
	equal(t, "the total", total, 1003)
	equal(t, "the number of entries", len(entries), 1000)
	equal(t, "the first entry", entries[0].URL, "/nothing?n=3")
	equal(t, "the last entry", entries[999].URL, "/nothing?n=1002")

	const size = 60_000
	large := strings.Repeat("x", size)
	var headers []string
	for n := range size / 100 {
		headers = append(headers, fmt.Sprintf("X%d:", n))
	}
	var members []string // which are unknown, so the entry lists their names
	for n := range size / 110 {
		members = append(members, fmt.Sprintf(`"x%d":0`, n))
	}
	for _, tt := range []struct {
		request, body string
		headers       []string
	}{
		{"POST /nothing", large, nil},
		{"GET /nothing?" + large, "", nil},
		{"GET /nothing", "", []string{"X: " + large}},
		{"GET /nothing", "", headers},
		{"POST /v1/pets", "{" + strings.Join(members, ",") + "}", nil},
	} {
		s.do(t, "DELETE /__admin/requests", "") // of a journal that is full
		for range 100 {
			s.do(t, tt.request, tt.body, tt.headers...)
		}
		entries, _, _ := s.readJournal(t, "")
		if n, most := len(entries), 4<<20/size; n > most || n < most-5 {
			t.Errorf("of 100 large requests (%.40s), the journal has %d, want %d to %d", tt.request, n, most-5, most)
		}
	}
}

// A reader gets whole entries with consecutive ids, while requests are recorded
// and entries are dropped.
func TestConcurrentJournal(t *testing.T) {
	h := testHandler(t)
	for range 1000 {
		call(h, "GET", "/nothing", "")
	}
	concurrently(8, func(i int) {
		for range 5 {
			for range 50 {
				call(h, "GET", "/nothing", "")
			}
			var journal struct{ Requests []recorded }
			err := json.Unmarshal(call(h, "GET", "/__admin/requests", "").Body.Bytes(), &journal)
			if err != nil || len(journal.Requests) != 1000 {
				t.Errorf("got %d entries and the error %v, want 1000", len(journal.Requests), err)
				return
			}
			for i, e := range journal.Requests {
				if want := journal.Requests[0].ID + int64(i); e.ID != want || e.URL != "/nothing" {
					t.Errorf("entry %d: got the id %d and the URL %s, want %d and /nothing", i, e.ID, e.URL, want)
					return
				}
			}
		}
	})
}

// With -log, the log has a line for each recorded request, without the headers.
// It also has one for each request that may change the service through /__admin,
// whatever its answer, with the address and the User-Agent of the client.
func TestLog(t *testing.T) {
	s := program(t, "-log")
	s.do(t, "GET /v1/pets?limit=5", "")
	s.do(t, "GET /v1/pets/1?%0A=%22", "")
	s.send(t, "GET /v1", "", "Prefer: code=hangup").wait()
	s.do(t, "GET /v1", "", "Prefer: code=418, delay=0")
	s.do(t, "GET /v1/pets", "", observer)
	s.do(t, "GET /healthz", "")

	s.do(t, "PUT /__admin/fault?code=503", "", "User-Agent: curl/8")
	s.do(t, "DELETE /__admin/fault?x", "", observer, "User-Agent:")
	s.do(t, "POST /%5F_admin/reset", "", noKey, "User-Agent: a \"b\"")
	for _, request := range []string{
		"GET /__admin/fault", "HEAD /__admin/requests", "OPTIONS /__admin/reset", "PATCH /__admin/reset",
	} {
		s.do(t, request, "")
	}
	s.stop()
	log := regexp.MustCompile(`(?m)^time=\S+ |:\d+( agent)`).ReplaceAllString(s.log.take(), "$1")
	equal(t, "the log", log, "a page for browsers is at "+s.url+`/
level=INFO msg=request method=GET url="/v1/pets?limit=5" status=200
level=INFO msg=request method=GET url="/v1/pets/1?%0A=%22" status=404 error="there is no pet 1"
level=INFO msg=request method=GET url=/v1 status=0 fault="code=hangup"
level=INFO msg=request method=GET url=/v1 status=418 error="simulated error, as requested" fault="code=418, delay=0"
level=INFO msg=control method=PUT url="/__admin/fault?code=503" status=200 client=127.0.0.1 agent=curl/8
level=INFO msg=control method=DELETE url=/__admin/fault?x status=400 error="`+
		`DELETE /__admin/fault does not take the parameter x; it takes none" client=127.0.0.1 agent=""
level=INFO msg=control method=POST url=/%5F_admin/reset status=401 error="`+
		`send the API key in one header: Authorization: Bearer <API_KEY>" client=127.0.0.1 agent="a \"b\""
level=INFO msg="stopping; a second signal ends the process at once" reason="context canceled" limit=10s
`)
}

// Seeds and resets.

// The pets of a seed keep their ids, and a pet without an id gets the next after
// the largest so far. A seed that is refused changes nothing.
func TestSeed(t *testing.T) {
	s := start(t, newRex)
	pet := func(id string) string { return `{"name":"a","categoryId":1,"status":"sold","id":` + id + "}" }
	const wantArray = `; it must be a JSON array, such as [{"name":"Rex","categoryId":7}]`
	const wantID = "; it must be an integer from 1 to 4611686018427387904"
	for _, tt := range []struct {
		seed    string
		ids     []int64
		message string // of the Error, if it is refused
	}{
		{seed: " [ ]\n"},
		{seed: array(pet("7"), newIda, pet("3"), newIda), ids: []int64{3, 7, 8, 9}},
		{seed: array(newIda, newIda, pet("1000")), ids: []int64{1, 2, 1000}},
		{seed: array(pet("4611686018427387904")), ids: []int64{1 << 62}},

		{seed: " ", message: "the seed is empty" + wantArray},
		{seed: "null", message: "the seed is null" + wantArray},
		{seed: "{}", message: "the seed is {}" + wantArray},
		{seed: "[1", message: "the seed is not JSON: unexpected end of JSON input, at byte 2" + wantArray},
		{seed: "[5]", message: "pet 1: the pet is 5; it must be a JSON object"},
		{seed: array(newIda, `{"id":1}`), message: "pet 2: name is missing; it must be a string"},
		{seed: `[{"name":"` + "\xff" + `"}]`, message: "pet 1: the pet is not valid UTF-8"},
		{seed: array(pet("0")), message: "pet 1: id is 0" + wantID},
		{seed: array(pet("null")), message: "pet 1: id is null" + wantID},
		{seed: array(pet("4611686018427387905")), message: "pet 1: id is 4611686018427387905" + wantID},
		{seed: array(pet("4"), pet("9"), pet("4")), message: "pet 3: id 4 is taken by pet 1 of the seed"},
		{seed: array(pet("4"), newIda, pet("5")), message: "pet 3: id 5 is taken by pet 2 of the seed"},
	} {
		r := s.do(t, "POST /__admin/reset", tt.seed)
		if tt.message != "" {
			r.wantError(t, 400, "invalid_body", tt.message)
			continue
		}
		r.want(t, 204, "")
		list := s.do(t, "GET /v1/pets", "")
		equal(t, tt.seed+": ids", list.ids(t), tt.ids)
		sold := s.do(t, "GET /v1/pets?status=sold", "").ids(t)
		equal(t, tt.seed+": the sold pets are in order", slices.IsSorted(sold), true)
		s.reset(t, list.body) // a list is a seed
		equal(t, list.body+": ids", s.do(t, "GET /v1/pets", "").ids(t), tt.ids)
		next := int64(1)
		for _, id := range tt.ids {
			next = id + 1
			equal(t, "status of a pet", s.do(t, fmt.Sprint("GET /v1/pets/", id), "").status, 200)
		}
		s.do(t, "POST /v1/pets", newIda).wantHeader(t, "Location", fmt.Sprint("/v1/pets/", next))
	}
	equal(t, "the pets after seeds that were refused",
		s.do(t, "GET /v1/pets", "").ids(t), []int64{1 << 62, 1<<62 + 1})
}

// A reset without a body restores the pets of the start, ends the standing fault
// and clears the journal.
func TestReset(t *testing.T) {
	s := program(t, "-seed", tempFile(t, array(newRex)))
	for range 2 {
		s.do(t, "GET /v1/pets", "").want(t, 200, array(rex))
		s.do(t, "POST /v1/pets", newIda).want(t, 201, ida)
		s.setFault(t, "delay=0")
		s.do(t, "POST /__admin/reset", "{").wantError(t, 400, "invalid_body", "the seed is not JSON")
		s.wantJournal(t, "GET /v1/pets 200", "POST /v1/pets 201")
		s.wantFault(t, `"delay":"0","matched":0,"applied":0,"held":0`)
		s.do(t, "GET /v1/pets/2", "", observer).want(t, 200, ida)

		s.reset(t, array(newIda))
		s.wantJournal(t)
		s.wantFault(t, "")
		s.do(t, "GET /v1/pets", "").want(t, 200, array(strings.Replace(ida, "2", "1", 1)))
		s.reset(t, "")
	}
}

// Resets at the same time end each world once. To end one twice would be a panic.
func TestConcurrentResets(t *testing.T) {
	h := testHandler(t, newRex)
	concurrently(8, func(int) {
		for range 100 {
			if w := call(h, "POST", "/__admin/reset", ""); w.Code != 204 {
				t.Errorf("a reset: got %d %s", w.Code, w.Body)
			}
			call(h, "POST", "/v1/pets", newIda)
			call(h, "PUT", "/__admin/fault?delay=0", "")
			call(h, "GET", "/__admin/requests", "")
		}
	})
	call(h, "POST", "/__admin/reset", "")
	equal(t, "the pets", call(h, "GET", "/v1/pets", "").Body.String(), array(rex)+"\n")
}

// Requests that are in flight during a reset belong to the state before it.
func TestInFlightAtReset(t *testing.T) {
	s := start(t)
	late := s.startRequest(t, "POST /v1/pets")
	s.setFault(t, "delay=30&answer-delay=30")
	var held []pending
	for range 50 {
		held = append(held, s.send(t, "POST /v1/pets", newRex))
	}
	s.waitFault(t, `"held":50`)
	s.reset(t, "[]")
	s.setFault(t, "code=418")
	for _, p := range held {
		equal(t, "the status of a request that was held", p.wait().status, 201)
	}
	late.write(newIda)
	late.read("POST").want(t, 201, strings.Replace(ida, "2", "51", 1))

	s.wantJournal(t)
	s.wantFault(t, `"code":"418","matched":0,"applied":0,"held":0`)
	s.do(t, "GET /v1/pets", "", observer).want(t, 200, "[]")
}

// Worlds with the same seed do not share the pets that are added to them.
func TestWorldsAreIndependent(t *testing.T) {
	s := start(t, manyPets(3)...)
	list := s.startRequest(t, "GET /v1/pets?after=3")
	s.do(t, "POST /v1/pets", newIda)
	s.reset(t, "")
	s.do(t, "POST /v1/pets", newRex)
	list.write(newIda)
	list.read("GET").want(t, 200, array(strings.Replace(ida, "2", "4", 1)))
}

// Unusual, broken and incomplete HTTP.

// A client that sends unusual, broken or incomplete HTTP gets an answer, and the
// connection is closed where the next request would be misread.
func TestRawHTTP(t *testing.T) {
	const (
		head    = " HTTP/1.1\nHost: petstore\nAuthorization: Bearer " + testKey + "\n"
		get     = "GET /v1/pets" + head
		post    = "POST /v1/pets" + head
		chunked = post + "Transfer-Encoding: chunked\n"
		last    = "Connection: close\n\n"
	)
	body := newIda + strings.Repeat(" ", 65_536-len(newIda)) // as large as it may be
	chunk := func(data string) string { return fmt.Sprintf("%x\n%s\n", len(data), data) }
	for _, tt := range []struct {
		name, send string
		want       string // statuses
		message    string // of the last answer, if it is an Error
	}{
		{"pipelining", get + "\n" + get + "Content-Length: 2\n\n{}" + get + last, "200 200 200", ""},
		{"large body", post + "Content-Length: 65536\n" + last + body, "201", ""},
		{"large chunks", chunked + last + chunk(body[:5]) + chunk(body[5:]) + chunk(""), "201", ""},
		{"too large chunks", chunked + "\n" + chunk(body+" "), "413", bodyTooLarge},
		{"Expect", post + "Expect: 100-continue\nContent-Length: 29\n" + last + newIda, "100 201", ""},
		{"too large body, not sent", post + "Content-Length: 65537\n\n", "413", bodyTooLarge},
		{"the same with Expect", post + "Expect: 100-continue\nContent-Length: 65537\n\n", "413", bodyTooLarge},
		{"bad chunk", chunked + "\nx\n", "400", badChunks},
		{"body cut short", post + "Content-Length: 30\n\n" + newIda, "400", badChunks},
		{"HTTP/1.0", strings.Replace(get, "1.1", "1.0", 1) + "\n", "200", ""},
		{"URL without a path", strings.Replace(get, "/v1/pets", "http://petstore", 1) + last, "404",
			"no such path: http://petstore; "},
		{"CONNECT", strings.Replace(get, "GET /v1/pets", "CONNECT petstore:80", 1) + last, "404",
			"no such path: petstore:80; "},
		{"OPTIONS *", "OPTIONS * HTTP/1.1\nHost: petstore\n" + last, "204", ""},
		{"large headers", get + "X: " + strings.Repeat("x", 65_000) + "\n" + last, "200", ""},
		{"too large headers", get + "X: " + strings.Repeat("x", 65_536) + "\n\n", "431", ""},
		{"no HTTP", "x\n\n", "400", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// The time to read a request does not end a connection.
			s := startWith(t, seedOf(t), func(_ *service, srv *http.Server) { srv.ReadTimeout = time.Hour })
			c := s.dial(t)
			c.write(tt.send)
			if tt.message == badChunks {
				c.CloseWrite()
			}
			var statuses []string
			var r response
			for range strings.Fields(tt.want) {
				r = c.read("GET")
				statuses = append(statuses, strconv.Itoa(r.status))
			}
			equal(t, "statuses", strings.Join(statuses, " "), tt.want)
			if !strings.Contains(r.body, tt.message) {
				t.Errorf("got %s, want the message %s", r.body, tt.message)
			}
			c.CloseWrite() // or net/http waits for the rest of a body that was refused
			if rest, err := io.ReadAll(c.in); len(rest) > 0 || err != nil {
				t.Errorf("after the answers: got %.300q and the error %v, want the end", rest, err)
			}
			list := s.do(t, "GET /v1/pets", "").body
			equal(t, "a pet was added", list != "[]\n", strings.HasSuffix(tt.want, "201"))
		})
	}
}

// A body that does not arrive in time is a 408. It uses up no fault, and getPet
// does not say that it is deprecated.
func TestSlowBody(t *testing.T) {
	s := startWith(t, seedOf(t, newRex), func(_ *service, srv *http.Server) { srv.ReadTimeout = 100 * time.Millisecond })
	r := s.sendRaw(t, "GET /v1/pets/1", "Prefer: code=418\nContent-Length: 3").read("GET")
	r.wantError(t, 408, "request_timeout", "the body did not arrive in time")
	r.wantHeader(t, "Deprecation", "")
	r.wantHeader(t, "Preference-Applied", "")
}

// The process.

// The base URL is one that clients on this machine can use.
func TestBaseURL(t *testing.T) {
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0", "127.0.0.1:"} {
		s := program(t, "-addr", addr) // fails unless the base URL has 127.0.0.1
		s.do(t, "GET /v1/pets", "").want(t, 200, "[]")
	}
	for addr, want := range map[string]*net.TCPAddr{
		"http://127.0.0.1:80":      {IP: net.IPv6zero, Port: 80},
		"http://[::1]:80":          {IP: net.IPv6loopback, Port: 80},
		"http://[fe80::1%25lo]:80": {IP: net.ParseIP("fe80::1"), Port: 80, Zone: "lo"},
	} {
		equal(t, "the root URL", rootURL(want), addr)
	}
}

// The key comes from the environment. Without one, each run has a random key, and
// shows it in a curl line and a link. No part of it is the same in each run.
func TestKeyOfRun(t *testing.T) {
	longest := "!~" + strings.Repeat("k", 4094)
	s := command{key: longest}.start(t)
	s.do(t, "GET /v1/pets", "").want(t, 200, "[]")
	equal(t, "standard error with a key", s.log.take(), "")

	s, other := command{}.start(t), command{}.start(t)
	notice := s.log.take()
	s.key = regexp.MustCompile("[0-9a-f]{32}").FindString(notice)
	equal(t, "standard error without a key", notice,
		"PETSTORE_API_KEY is empty or not set, so this run has a key of its own:\n\n"+
			"    curl -H 'Authorization: Bearer "+s.key+"' '"+s.url+"/v1/pets'\n"+
			"    "+s.url+"/#key="+s.key+"\n\n")
	s.do(t, "GET /v1/pets", "").want(t, 200, "[]")
	otherKey := regexp.MustCompile("[0-9a-f]{32}").FindString(other.log.take())
	for i := 0; i < 32; i += 8 {
		if s.key[i:i+8] == otherKey[i:i+8] {
			t.Errorf("got the keys %s and %s, want them to differ at %d", s.key, otherKey, i)
		}
	}
}

// A command line that is wrong is reported on one line, with what would be right.
func TestCommandLine(t *testing.T) {
	inUse := strings.TrimPrefix(program(t).url, "http://")
	badSeed := tempFile(t, `[{"name":"a"}]`)
	const (
		hint     = "; -h lists the flags"
		duration = "it must be a duration from 0s to 30s, such as 150ms or 2s" + hint
		badKey   = "PETSTORE_API_KEY must be 1 to 4096 visible ASCII characters: no space, no control character"
		noAddr   = "-addr has neither a host nor a port; write -addr 127.0.0.1:8080, or .*"
		badAddr  = ".*; -addr must be host:port, .*; -addr 127.0.0.1:0 takes any free port"
		noFile   = "; -seed takes the path of a JSON file with an array of pets"
	)
	for _, tt := range []struct {
		args string // separated by spaces
		key  string
		code int
		want string // a regular expression
	}{
		{"-x\ny", "", 2, ".*-x y" + hint},
		{"-a\u009bb\x7fc", "", 2, ".*-a b c" + hint},
		{"-stdin stray\r\none", "", 2, "unexpected argument stray one" + hint},
		{"-version stray", "", 2, "unexpected argument stray" + hint},
		{"-log=perhaps", "", 2, ".*perhaps.*: it must be true or false" + hint},
		{"-latency -1ns", "", 2, ".*-1ns.*" + duration},
		{"-latency 30.001s", "", 2, ".*30.001s.*" + duration},
		{"-latency 5", "", 2, `.*"5".*` + duration},
		{"-seed ", "", 2, `.*"" for flag -seed: it must be the path of a file` + hint},

		{"-addr 127.0.0.1:0", "k k", 1, badKey},
		{"-addr 127.0.0.1:0", "k\x7f", 1, badKey},
		{"-addr 127.0.0.1:0", "k\xe9", 1, badKey},
		{"-addr 127.0.0.1:0", strings.Repeat("k", 4097), 1, badKey},
		{"-addr ", "", 1, noAddr},
		{"-addr :", "", 1, noAddr},
		{"-addr 8081", "", 1, badAddr},
		{"-addr 192.0.2.1:80", "", 1, badAddr}, // an address of no machine (RFC 5737)
		{"-addr " + inUse, "", 1, "listen tcp " + inUse + badAddr},
		{"-seed no\n.json", "", 1, ".*no .json: no such file or directory" + noFile},
		{"-seed api", "", 1, ".*api: is a directory" + noFile},
		{"-seed " + badSeed, "", 1, badSeed + ": pet 1: categoryId is missing; it must be an integer"},
	} {
		code, stdout, stderr := command{key: tt.key, args: strings.Split(tt.args, " ")}.output()
		equal(t, tt.args+": the exit code", code, tt.code)
		equal(t, tt.args+": standard output", stdout, "")
		matches(t, tt.args+": standard error", stderr, "^petstore: "+tt.want+"\n$")
	}
	for _, latency := range []string{"0s", "30s"} {
		code, _, stderr := command{args: []string{"-latency", latency, "-version"}}.output()
		equal(t, "the exit code", code, 0)
		equal(t, "standard error", stderr, "")
	}
}

// The version names the build, so that a report of a bug can.
func TestVersion(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := command{args: []string{"-version"}}.output()
	equal(t, "the exit code", code, 0)
	equal(t, "standard output of a test", stdout, "1.0.0 (build unknown, "+runtime.Version()+")\n")
	equal(t, "standard error", stderr, "")

	if info, err := os.Stat(".git"); err != nil || !info.IsDir() {
		t.Skip("this is not a clone, so a build has no version")
	}
	binary := filepath.Join(t.TempDir(), "petstore")
	build := exec.Command("go", "build", "-buildvcs=true", "-o", binary, ".")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	output, err := exec.Command(binary, "-version").Output()
	if err != nil {
		t.Fatal(err)
	}
	matches(t, "the version", string(output), `^1\.0\.0 \(build (v\S+|[0-9a-f]{40}), go\S+\)\n$`)
}

// The help names the flags, with the defaults that do not depend on the run.
func TestHelp(t *testing.T) {
	code, stdout, help := command{args: []string{"-h"}}.output()
	equal(t, "the exit code", code, 0)
	equal(t, "standard output", stdout, "")
	for _, part := range []string{
		"PUT /__admin/fault", "GET /__admin/requests", "at /, ", "/openapi.json", "PETSTORE_API_KEY",
		"\n  -addr host:port\n", `(default "127.0.0.1:8080")`, "\n  -seed file\n", "\n  -latency duration\n",
		"up to 30s", "\n  -stdin\n", "\n  -log\n", "\n  -version\n",
	} {
		if !strings.Contains(help, part) {
			t.Errorf("the help lacks %q:\n%s", part, help)
		}
	}
}

// A seed file over the limit is refused, and is not read to its end.
func TestLargeSeedFile(t *testing.T) {
	file := tempFile(t, "[")
	if err := os.Truncate(file, 1<<40); err != nil { // a sparse file, which no memory could hold
		t.Skip(err)
	}
	code, _, stderr := command{key: testKey, args: []string{"-seed", file}}.output()
	equal(t, "the exit code", code, 1)
	equal(t, "standard error", stderr, "petstore: "+file+": the seed is over 134217728 bytes\n")
}

// What cannot be printed on standard output ends the program.
func TestStandardOutputClosed(t *testing.T) {
	for _, args := range [][]string{{"-addr", "127.0.0.1:0"}, {"-version"}} {
		r, stdout := io.Pipe()
		r.Close()
		var stderr buffer
		code := command{key: testKey, args: args}.run(context.Background(), stdout, &stderr)
		equal(t, "the exit code", code, 1)
		matches(t, "standard error", stderr.take(), "^petstore: .*closed pipe\n$")
	}
}

// Away from a terminal, standard error has only what went wrong with petstore.
func TestStandardErrorStaysEmpty(t *testing.T) {
	s := program(t)
	for _, request := range []string{"POST /v1/pets", "BREW /v1", "PUT /__admin/fault", "POST /__admin/reset"} {
		s.do(t, request, "{")
	}
	for _, kind := range faultKinds {
		p := s.send(t, "HEAD /v1/pets", "", "Prefer: code="+kind.code)
		if kind.code != "stall" { // which the stop ends
			p.wait()
		}
	}
	s.stop()
	equal(t, "standard error", s.log.take(), "")
}

// At a terminal, requests are logged, unless -log=false is given. A pipe and the
// null device are no terminals.
func TestLogAtTerminal(t *testing.T) {
	_, pipe, err1 := os.Pipe()
	null, err2 := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	equal(t, "a pipe is a terminal", isTerminal(pipe), false)
	equal(t, "the null device is a terminal", isTerminal(null), false)

	for flag, want := range map[string]bool{"-log": true, "-log=false": false, "-stdin": true} {
		terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
		if err != nil {
			t.Skip("there is no /dev/ptmx")
		}
		defer terminal.Close()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		c := command{key: testKey, args: []string{flag, "-addr", "127.0.0.1:0"}}
		equal(t, "the exit code", c.run(ctx, io.Discard, terminal), 0)
		terminal.WriteString("end\n") // What is written to this side is echoed to it.
		line, _ := bufio.NewReader(terminal).ReadString('\n')
		equal(t, "petstore "+flag+" logs", strings.HasPrefix(line, "a page for browsers"), want)
	}
}

// The service answers and stops even if standard error is closed.
func TestStandardErrorClosed(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	s, cmd := startProcess(t, w, "-log")
	s.do(t, "GET /v1/pets", "").want(t, 200, "[]")
	s.do(t, "GET /v1/pets", "").want(t, 200, "[]")
	cmd.Process.Signal(syscall.SIGTERM)
	wantExit(t, cmd, 0)
}

// A standard error without a reader, such as a paused terminal, does not keep the
// service from stopping.
func TestStandardErrorBlocks(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"signal", "end of standard input"} {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		stdin, w := io.Pipe()
		r, stderr := io.Pipe() // a write to it waits for a reader
		defer r.Close()
		defer time.AfterFunc(patience, func() { r.Close() }).Stop()
		c := command{key: testKey, stdin: stdin, args: []string{"-addr", "127.0.0.1:0", "-stdin", "-log"}}
		exit := make(chan int, 1)
		go func() { exit <- c.run(ctx, io.Discard, stderr) }()
		if line, err := bufio.NewReader(r).ReadString('\n'); err != nil {
			t.Fatalf("got the line %q and the error %v", line, err)
		}
		if by == "signal" {
			cancel()
		} else {
			w.Close()
		}
		equal(t, by+": the exit code", receive(t, "the end of the service", exit), 0)
	}
}

// With -stdin, the service stops when its standard input ends. Without it,
// standard input does not matter.
func TestStdin(t *testing.T) {
	stdin, w := io.Pipe()
	s := command{key: testKey, stdin: stdin, args: []string{"-stdin", "-log"}}.start(t)
	written := make(chan error, 1)
	go func() {
		_, err := io.WriteString(w, "more\n") // returns when it has been read
		written <- err
	}()
	receive(t, "the service to read its standard input", written)
	s.do(t, "GET /healthz", "").want(t, 200, `{"status":"ok"}`)
	w.Close()
	s.waitRefused(t)
	s.stop()
	matches(t, "the log", s.log.take(), `stopping; .* reason="standard input has ended" limit=10s\n$`)

	ignoring := command{key: testKey, stdin: strings.NewReader("")}.start(t)
	ignoring.do(t, "GET /v1/pets", "").want(t, 200, "[]")
}

// At a signal, the requests in flight are answered. A second signal ends the
// process at once. SIGINT works even if it was ignored at the start, as it is
// after "&" in a script.
func TestSignals(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		for _, twice := range []bool{false, true} {
			log := new(buffer)
			s, cmd := startProcess(t, log, "-log")
			c := s.startRequest(t, "POST /v1/pets")
			cmd.Process.Signal(signal)
			s.waitRefused(t) // or two signals could arrive as one
			if twice {
				cmd.Process.Signal(signal)
				wantExit(t, cmd, 1)
				continue
			}
			c.write(newIda)
			c.read("POST").want(t, 201, `{"id":1,"name":"Ida","categoryId":2}`)
			wantExit(t, cmd, 0)
			text := log.take()
			matches(t, "the log", text, fmt.Sprint(`msg="stopping; .* reason=`, signal, ` limit=10s\n`))
			matches(t, "the log", text, `msg=request .* status=201\n`)
		}
	}
}

// A stop does not wait for connections on which no request has begun, as browsers
// open them: Shutdown would do so for five seconds.
func TestSpareConnections(t *testing.T) {
	s := program(t)
	for range 50 {
		s.dial(t)
	}
	s.do(t, "GET /v1/pets", "").want(t, 200, "[]") // so those before it have been accepted
	begin := time.Now()
	s.stop()
	if took := time.Since(begin); took > 4*time.Second {
		t.Errorf("the stop took %v, want less than 4 s", took)
	}
}

// A listener that fails ends the program.
func TestListenerFails(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	service := newService(testKey, seedOf(t), 0, nil, slog.Default())
	if err := serveUntil(context.Background(), ln, service, io.Discard); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got the error %v, want %v", err, net.ErrClosed)
	}
}

// The garbage collector is tuned, unless the environment does that.
func TestMemoryLimits(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(1<<40)
	defer debug.SetGCPercent(percent)
	defer debug.SetMemoryLimit(limit)
	stopped, stop := context.WithCancel(context.Background())
	stop()
	for _, tt := range []struct {
		environment string // the value of all variables
		percent     int
		limit       int64
	}{
		{"1", 100, 1 << 40},
		{"", 400, 456 << 20},
	} {
		getenv := func(string) string { return tt.environment }
		err := run(stopped, []string{"-addr", "127.0.0.1:0"}, getenv, nil, io.Discard, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "GOGC", debug.SetGCPercent(100), tt.percent)
		equal(t, "the memory limit", debug.SetMemoryLimit(-1), tt.limit)
	}
}

// A request in flight has ten seconds when the service stops.
func TestStopTimeout(t *testing.T) {
	t.Parallel()
	s := program(t)
	c := s.startRequest(t, "POST /v1/pets")
	begin := time.Now()
	s.stop()
	if took := time.Since(begin); took < 10*time.Second {
		t.Errorf("the stop took %v, want 10 s or more", took)
	}
	if r := c.read("POST"); r.err == nil {
		t.Errorf("got %d, want a closed connection", r.status)
	}
	matches(t, "the log", s.log.take(), `^time=\S+ level=WARN msg="requests in flight get no answer" .*\n$`)
}

// Documents.

// The console blocks of README.md, run as one session in each shell, print what
// they show.
func TestReadme(t *testing.T) {
	t.Parallel()
	if exec.Command("curl", "--json", "{}", "--version").Run() != nil {
		t.Skip("there is no curl with --json (7.82)")
	}
	for shell, options := range map[string][]string{
		"sh":   nil,
		"bash": nil,
		"zsh":  {"-f", "-i", "+o", "promptsp"}, // interactively, # begins no comment
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(shell); err != nil {
				t.Skip(err)
			}
			s := command{key: "test"}.start(t)
			var commands, want []string
			text := strings.ReplaceAll(readFile(t, "README.md"), "http://127.0.0.1:8080", s.url)
			for _, block := range codeBlocks(text, "console") {
				for _, step := range strings.Split("\n"+block, "\n$ ")[1:] {
					command, output, _ := strings.Cut(step, "\n")
					commands = append(commands, command)
					want = append(want, output)
				}
			}
			equal(t, "the first command", commands[0], "PETSTORE_API_KEY=test go run .")
			commands[0] = "echo " + s.url + "/v1" // it is running already

			// In a terminal, curl shows errors and no progress.
			const begin = "curl() { command curl -sS \"$@\"; }\n"
			const end = "\nprintf '\\036'\n" // separates the outputs
			ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, shell, options...)
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), "no_proxy=127.0.0.1", "PS1=", "PS2=")
			cmd.Stdin = strings.NewReader(begin + strings.Join(commands, end) + end)
			output, err := cmd.CombinedOutput()
			got := strings.Split(string(output), "\x1e")
			if len(got) != len(want)+1 {
				t.Fatalf("got the output of %d commands, want %d: %v\n%s", len(got)-1, len(want), err, output)
			}
			for i := range want {
				equal(t, "$ "+commands[i], withoutTimes(got[i]), withoutTimes(want[i]))
			}
		})
	}
}

// withoutTimes removes from an output what differs from run to run.
func withoutTimes(output string) string {
	varying := regexp.MustCompile(`("(time|since)":)"[^"]*"|("seconds":)[\d.]+|\r|\s+$`)
	return varying.ReplaceAllString(output, "$1$3")
}

// codeBlocks returns the code blocks in a language of a Markdown text.
func codeBlocks(text, language string) []string {
	var blocks []string
	fenced := regexp.MustCompile("(?s)\n```" + language + "\n(.*?)\n```\n")
	for _, match := range fenced.FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, match[1])
	}
	return blocks
}

// In fish and tcsh, the variables of README.md are set as it says.
func TestReadmeVariables(t *testing.T) {
	t.Parallel()
	s := command{key: "test"}.start(t)
	text := strings.ReplaceAll(readFile(t, "README.md"), "http://127.0.0.1:8080", s.url)
	match := regexp.MustCompile("In fish, [^`]*`(set auth [^`]*)`").FindStringSubmatch(text)
	if match == nil {
		t.Fatal("README.md has no line for fish")
	}
	for shell, line := range map[string]string{
		"fish": match[1],
		"tcsh": strings.NewReplacer("set auth ", "set auth = ", "set url ", "set url = ").Replace(match[1]),
	} {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skip(err)
			}
			cmd := exec.Command(shell, "-c", line+`; curl -sS -H "$auth" $url/v1/pets`)
			cmd.Env = append(os.Environ(), "no_proxy=127.0.0.1")
			output, err := cmd.CombinedOutput()
			if string(output) != "[]\n" || err != nil {
				t.Errorf("%s: got %s and the error %v, want []", line, output, err)
			}
		})
	}
}

// The commands for CI reach the petstore that they have started. They fail if
// another one has the port.
func TestReferenceCommands(t *testing.T) {
	t.Parallel()
	if exec.Command("curl", "--version").Run() != nil {
		t.Skip("there is no curl")
	}
	script := strings.Replace(codeBlocks(readFile(t, "api/reference.md"), "sh")[0], "go build", "true", 1)
	other := command{key: "test"}.start(t)
	other.do(t, "POST /v1/pets", newRex)
	for _, tt := range []struct {
		addr   string
		code   int
		stdout string
	}{
		{"127.0.0.1:0", 0, "[]\n"},
		{strings.TrimPrefix(other.url, "http://"), 1, ""},
	} {
		dir := t.TempDir()
		if err := os.Symlink(os.Args[0], filepath.Join(dir, "petstore")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", "-c", strings.ReplaceAll(script, "127.0.0.1:0", tt.addr))
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "no_proxy=127.0.0.1", "TMPDIR="+dir, childVariable+"=1")
		cmd.WaitDelay = patience // an end of the output shows that petstore has ended, too
		stdout, err := cmd.Output()
		equal(t, tt.addr+": petstore goes on", errors.Is(err, exec.ErrWaitDelay), false)
		equal(t, tt.addr+": the exit code", cmd.ProcessState.ExitCode(), tt.code)
		equal(t, tt.addr+": standard output", string(stdout), tt.stdout)
	}
}

// The examples and the program in README.md pass, and leave no petstore behind.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		command string
		needs   string // a command that succeeds if the language is new enough
		passes  string // a regular expression for the output
	}{
		{"sh client.sh", "curl --version", `^(ok - .*\n)+$`},
		{"bash client.sh", "curl --version", `^(ok - .*\n)+$`},
		{"zsh client.sh", "curl --version", `^(ok - .*\n)+$`},
		{"go test -count=1 -v client_test.go", "go version", `--- PASS: `},
		{"go test -C own -count=1 -v .", "go version", `--- PASS: `},
		{"node --test client.test.mjs", "node --test --version", ` pass [1-9](.*\n)*.* fail 0\n`},
		{"python3 -W error -m unittest test_client.py", "python3 -c pass", `Ran [1-9].*\n\nOK\n`},
		{"java ClientTest.java", "javac --version", `^(ok - .*\n)+$`},
	} {
		t.Run(tt.command, func(t *testing.T) {
			t.Parallel()
			args, needs := strings.Fields(tt.command), strings.Fields(tt.needs)
			_, err := exec.LookPath(args[0])
			if err != nil || exec.Command(needs[0], needs[1:]...).Run() != nil {
				t.Skip("not installed, or too old")
			}

			root := t.TempDir() // of a copy of the examples, with a petstore in the folder above
			_, err = exec.Command("cp", "-R", "examples", root).Output()
			dir := filepath.Join(root, "examples")
			own := filepath.Join(dir, "own") // a module with the program, beside a petstore
			programs := codeBlocks(readFile(t, "README.md"), "go")
			equal(t, "programs in README.md", len(programs), 1)
			if err := errors.Join(err,
				os.Symlink(os.Args[0], filepath.Join(root, "petstore")),
				os.Mkdir(own, 0o700),
				os.Symlink(os.Args[0], filepath.Join(own, "petstore")),
				os.WriteFile(filepath.Join(own, "go.mod"), []byte("module own\n\ngo 1.22\n"), 0o600),
				os.WriteFile(filepath.Join(own, "petstore_test.go"), []byte(programs[0]+"\n"), 0o600),
			); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 4*patience) // Java starts slowly
			defer cancel()
			cmd := exec.CommandContext(ctx, args[0], args[1:]...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "no_proxy=127.0.0.1", childVariable+"=1")
			// A petstore has the standard error of the program. As long as one runs, there
			// is no end of the output.
			cmd.WaitDelay = patience
			output, err := cmd.CombinedOutput()
			if err != nil || !regexp.MustCompile(tt.passes).Match(output) {
				t.Errorf("got the error %v and this output, want a match of %s:\n%s", err, tt.passes, output)
			}
		})
	}
}

// description is api/openapi.json.
type description struct {
	Paths map[string]struct {
		Servers                []any
		Get, Put, Post, Delete *operation
	}
	Components struct{ Schemas map[string]schema }
}

type operation struct {
	OperationID string
	Parameters  []parameter
}

type parameter struct {
	Name, In string
	Schema   schema
}

type schema struct {
	Ref              string `json:"$ref"`
	AllOf            []schema
	Type, Pattern    string
	Enum             []string
	Minimum, Maximum *float64
	Default          any
	Required         []string
	Properties       map[string]schema
}

// readOpenAPI returns api/openapi.json, and its operations by the method and the
// path, with the parameters of the query.
func readOpenAPI(t *testing.T) (d description, operations map[string]operation) {
	t.Helper()
	if err := json.Unmarshal([]byte(readFile(t, "api/openapi.json")), &d); err != nil {
		t.Fatal(err)
	}
	operations = map[string]operation{}
	for path, item := range d.Paths {
		if item.Servers == nil { // so those of the whole document
			path = "/v1" + path
		}
		for method, op := range map[string]*operation{
			"GET": item.Get, "PUT": item.Put, "POST": item.Post, "DELETE": item.Delete,
		} {
			if op != nil {
				isPath := func(p parameter) bool { return p.In == "path" }
				op.Parameters = slices.DeleteFunc(op.Parameters, isPath)
				operations[method+" "+path] = *op
			}
		}
	}
	return d, operations
}

// resolve returns the schema that a schema refers to.
func (d description) resolve(s schema) schema {
	if name, found := strings.CutPrefix(s.Ref, "#/components/schemas/"); found {
		return d.Components.Schemas[name]
	}
	return s
}

// members returns the members of an object, and those that are required.
func (d description) members(s schema) (all, required []string) {
	s = d.resolve(s)
	all, required = keys(s.Properties), s.Required
	for _, part := range s.AllOf {
		a, r := d.members(part)
		all, required = append(all, a...), append(required, r...)
	}
	return all, required
}

// api/openapi.json has the routes of the service, and their query parameters with
// what these allow.
func TestOpenAPI(t *testing.T) {
	d, operations := readOpenAPI(t)
	undescribed := []string{
		"GET /v1/store/orders", "GET /healthz", "GET /openapi.json",
		"GET /{$}", "GET /page.css", "GET /page.js", "GET /favicon.ico",
	}
	routed := map[string]bool{}
	var faultOperations []string
	for _, rt := range routes() {
		if slices.Contains(undescribed, rt.pattern) {
			continue
		}
		if strings.Contains(rt.pattern, " /v1/") {
			faultOperations = append(faultOperations, rt.operation)
		}
		routed[rt.pattern] = true
		equal(t, rt.pattern+": the name", operations[rt.pattern].OperationID, rt.operation)
		var names []string
		for _, p := range operations[rt.pattern].Parameters {
			names = append(names, p.Name)
		}
		equal(t, rt.pattern+": the parameters", sorted(names), sorted(rt.parameters))
	}
	equal(t, "the operations", keys(operations), keys(routed))
	equal(t, "FaultOperation", d.Components.Schemas["FaultOperation"].Enum, faultOperations)

	s := start(t, manyPets(150)...)
	for request, op := range operations {
		for _, p := range op.Parameters {
			t.Run(op.OperationID+" "+p.Name, func(t *testing.T) {
				s.do(t, "DELETE /__admin/fault", "")
				target := request + "?"
				if op.OperationID == "setFault" && p.Name != "code" {
					target += "code=503&" // with which every parameter is allowed
				}
				send := func(value any) response { return s.do(t, fmt.Sprint(target, p.Name, "=", value), "") }
				checkParameter(t, d.resolve(p.Schema), send, s.do(t, target, "").body)
			})
		}
	}

	// The codes of a fault are those of FaultCode.
	pattern := regexp.MustCompile(d.Components.Schemas["FaultCode"].Pattern)
	for _, code := range append(faultWords(), "400", "499", "599", "503,lost,rst", "503,503",
		"", "399", "600", "5030", "x", "lost,", ",lost", "lost,x", "LOST", "lost+lost") {
		r := s.do(t, "PUT /__admin/fault?code="+code, "")
		equal(t, fmt.Sprintf("FaultCode allows %q", code), pattern.MatchString(code), r.status == 200)
	}
}

// checkParameter checks that the service accepts what the schema of a parameter
// allows, refuses what it does not, and takes its default if it is not given.
func checkParameter(t *testing.T, s schema, send func(value any) response, without string) {
	accepts := func(value any, want bool) {
		t.Helper()
		r := send(value)
		equal(t, r.request+": accepted", r.status == 200, want)
	}
	for _, value := range s.Enum {
		accepts(value, true)
		accepts(value+"x", false)
	}
	if s.Minimum != nil {
		accepts(int64(*s.Minimum), true)
		accepts(int64(*s.Minimum)-1, false)
	} else if s.Type == "integer" {
		accepts(int64(math.MinInt64), true)
	}
	if s.Maximum != nil {
		accepts(int64(*s.Maximum), true)
		accepts(int64(*s.Maximum)+1, false)
	}
	if s.Default != nil {
		r := send(s.Default)
		equal(t, r.request+", the default", r.body, without)
	}
}

// The schemas of api/openapi.json have the members of the JSON that the service
// writes.
func TestSchemas(t *testing.T) {
	d, _ := readOpenAPI(t)
	for name, value := range map[string]any{
		"NewPet":          NewPet{},
		"Pet":             Pet{},
		"Error":           Error{},
		"Fault":           standingFaultState{},
		"AppliedFault":    faultParameters{},
		"ReceivedRequest": received{},
		"JournalEntry":    entry{},
	} {
		all, required := d.members(d.Components.Schemas[name])
		wantAll, wantRequired := jsonMembers(reflect.TypeOf(value))
		if name == "Fault" {
			wantRequired = nil // without a standing fault, it is {}
		}
		equal(t, name+": members", sorted(all), sorted(wantAll))
		equal(t, name+": required members", sorted(required), sorted(wantRequired))
	}

	var journal, meta map[string]json.RawMessage
	json.Unmarshal([]byte(start(t).do(t, "GET /__admin/requests", "").body), &journal)
	json.Unmarshal(journal["meta"], &meta)
	schema := d.Components.Schemas["Journal"]
	equal(t, "Journal: members", keys(schema.Properties), keys(journal))
	equal(t, "Journal: required members", sorted(schema.Required), keys(journal))
	equal(t, "meta: members", keys(schema.Properties["meta"].Properties), keys(meta))
	equal(t, "meta: required members", sorted(schema.Properties["meta"].Required), keys(meta))
}

// jsonMembers returns the names that encoding/json gives to the fields of a struct,
// and those that are always there.
func jsonMembers(s reflect.Type) (all, required []string) {
	for _, field := range reflect.VisibleFields(s) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			continue // an embedded struct, or a field that is not encoded
		}
		all = append(all, name)
		if options != "omitempty" {
			required = append(required, name)
		}
	}
	return all, required
}

// Each operation, parameter, code, flag and member is in the first cell of a row
// of a table of the reference. The page has a row for each code.
func TestReference(t *testing.T) {
	d, operations := readOpenAPI(t)
	names := faultWords()
	for request, op := range operations {
		names = append(names, op.OperationID)
		if strings.Contains(request, " /__admin/") {
			names = append(names, request)
		}
		for _, p := range op.Parameters {
			names = append(names, p.Name)
		}
	}
	for _, schema := range []string{"Fault", "Journal", "JournalEntry"} {
		members, _ := d.members(d.Components.Schemas[schema])
		names = append(names, members...)
	}
	_, _, help := command{args: []string{"-h"}}.output()
	names = append(names, regexp.MustCompile(`(?m)^  -\w+`).FindAllString(help, -1)...)

	var cells []string
	lines := strings.Split(readFile(t, "api/reference.md"), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "|") && !strings.HasPrefix(lines[i+1], "|---") { // no heading
			cells = append(cells, strings.Split(line, "|")[1])
		}
	}
	for _, name := range names {
		code := regexp.MustCompile("`" + strings.TrimSpace(name) + "[`= ]")
		if !slices.ContainsFunc(cells, code.MatchString) {
			t.Errorf("no table of api/reference.md has `%s` in the first cell of a row", name)
		}
	}
	page := readFile(t, "page/page.js")
	for _, code := range faultWords() {
		if !strings.Contains(page, `{ code: "`+code+`",`) {
			t.Errorf("page/page.js has no row for the code %s", code)
		}
	}
}

// faultWords returns the codes of a fault that are not a status.
func faultWords() []string {
	var codes []string
	for _, kind := range faultKinds {
		codes = append(codes, kind.code)
	}
	return codes
}

// Everything together.

// Random operations get the answers that a simple model predicts.
func TestModel(t *testing.T) {
	type pet struct {
		ID         int64  `json:"id"`
		Name       string `json:"name"`
		CategoryID int64  `json:"categoryId"`
		Status     string `json:"status,omitempty"`
	}
	statuses := []string{"", "available", "pending", "sold"}
	names := []string{"", "Rex", `"<&>\`, "é😀", "\u2028\x00"}
	for round := range 3 {
		random := rand.New(rand.NewSource(int64(round)))
		s := start(t)
		var pets []pet // pets[i] has the id i+1
		var journal []string
		send := func(request, body string) response {
			r := s.do(t, request, body)
			journal = append(journal, fmt.Sprint(request, " ", r.status))
			return r
		}
		for range 600 {
			status := statuses[random.Intn(len(statuses))]
			switch random.Intn(20) {
			case 0:
				s.wantJournal(t, journal...)
				s.reset(t, "")
				pets, journal = nil, nil
			case 1, 2, 3, 4, 5, 6, 7:
				name, category := names[random.Intn(len(names))], random.Int63()-random.Int63()
				p := pet{int64(len(pets) + 1), name, category, status}
				pets = append(pets, p)
				send("POST /v1/pets", jsonText(p)).want(t, 201, jsonText(p))
			case 8:
				send("POST /v1/pets", `{"name":"x"}`).wantError(t, 400, "invalid_body", "categoryId is missing")
			case 9, 10, 11:
				id := random.Intn(len(pets) + 2)
				r := send(fmt.Sprint("GET /v1/pets/", id), "")
				if 1 <= id && id <= len(pets) {
					r.want(t, 200, jsonText(pets[id-1]))
				} else {
					r.wantError(t, 404, "not_found", fmt.Sprint("there is no pet ", id))
				}
			default:
				limit, after := random.Intn(100)+1, random.Intn(len(pets)+1)
				request := fmt.Sprintf("GET /v1/pets?limit=%d&after=%d", limit, after)
				if status != "" {
					request += "&status=" + status
				}
				var page []string
				for _, p := range pets[after:] {
					if len(page) < limit && (status == "" || p.Status == status) {
						page = append(page, jsonText(p))
					}
				}
				send(request, "").want(t, 200, array(page...))
			}
		}
		s.wantJournal(t, journal...)
		if t.Failed() {
			return
		}
	}
}

// FuzzCreate compares createPet with encoding/json.
func FuzzCreate(f *testing.F) {
	f.Add([]byte(newRex))
	f.Add([]byte(`{"name":"\ud800","name":"","categoryId":-0,"status":"s\u006fld","x":[[]]}`))
	nested := strings.Repeat("[", 9999) + strings.Repeat("]", 9999)
	f.Add([]byte(`{"name":"","categoryId":1,"x":` + nested + "}"))
	decode := func(text []byte) (object map[string]any) {
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		dec.Decode(&object)
		return object
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		want := decode(body)
		for name := range want {
			if name != "name" && name != "categoryId" && name != "status" {
				delete(want, name)
			}
		}
		_, isString := want["name"].(string)
		number, _ := want["categoryId"].(json.Number)
		category, err := number.Int64()
		status, hasStatus := want["status"]
		isValid := len(body) <= 65_536 && json.Valid(body) && utf8.Valid(body) && isString && err == nil &&
			(!hasStatus || status == "available" || status == "pending" || status == "sold")

		w := call(testHandler(t), "POST", "/v1/pets", string(body))
		equal(t, fmt.Sprintf("%q is accepted", body), w.Code == 201, isValid)
		if isValid {
			want["id"], want["categoryId"] = json.Number("1"), json.Number(fmt.Sprint(category)) // -0 is 0
			equal(t, fmt.Sprintf("the pet of %q", body), decode(w.Body.Bytes()), want)
		}
	})
}

// TestLong has what takes long: a million pets, a seed that does not fit into the
// store, a whole stall, whole delays, a whole wait for the journal, and requests
// that do not arrive.
func TestLong(t *testing.T) {
	if os.Getenv("PETSTORE_LONG") == "" {
		t.Skip("PETSTORE_LONG is not set")
	}
	t.Run("a million pets", func(t *testing.T) {
		s := program(t, "-seed", tempFile(t, array(manyPets(1_000_000)...)))
		for after := int64(0); after < 999_000; after += 33_333 {
			r := s.do(t, fmt.Sprint("GET /v1/pets?limit=100&after=", after), "")
			equal(t, r.request+": ids", r.ids(t), numbers(after+1, after+100, 1))
			r = s.do(t, fmt.Sprint("GET /v1/pets?status=sold&after=", after), "")
			equal(t, r.request+": ids", r.ids(t), numbers(after/10*10+10, after/10*10+200, 10))
		}
	})
	t.Run("a seed that is too large", func(t *testing.T) {
		seed := tempFile(t, "["+strings.Repeat(`{"name":"","categoryId":1},`, 2_000_000)+newRex+"]")
		code, _, stderr := command{key: testKey, args: []string{"-seed", seed}}.output()
		equal(t, "the exit code", code, 1)
		matches(t, "standard error", stderr, `: pet \d+: the store is full; its limit is 268435456 bytes\n$`)
	})
	for _, tt := range []struct {
		request, header string
		status          int // 0 if there is no answer
	}{
		{"GET /v1/pets", "Prefer: code=stall", 200},
		{"HEAD /v1/pets", "Prefer: code=stall", 0},
		{"GET /v1/pets", "Prefer: delay=30, answer-delay=30", 200},
		{"GET /__admin/requests?total=9", "", 200},
	} {
		t.Run(tt.request+" "+tt.header, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			c := program(t).sendRaw(t, tt.request, tt.header)
			c.SetDeadline(begin.Add(2 * time.Minute))
			equal(t, "status", c.read("GET").status, tt.status)
			if took := time.Since(begin); took < 30*time.Second {
				t.Errorf("it took %v, want 30 s", took)
			}
		})
	}
	t.Run("a body that does not arrive", func(t *testing.T) {
		t.Parallel()
		c := program(t).sendRaw(t, "POST /v1/pets", "Content-Length: 3")
		c.read("POST").wantError(t, 408, "request_timeout", "the body did not arrive in time")
	})
	t.Run("headers that do not arrive", func(t *testing.T) {
		t.Parallel()
		c := program(t).dial(t)
		c.write("GET /v1/pets HTTP/1.1\n")
		c.SetDeadline(time.Now().Add(14 * time.Second)) // they have 5 s, and a body 15 s
		if rest, err := io.ReadAll(c.in); len(rest) > 0 || err != nil {
			t.Errorf("got %q and the error %v, want a closed connection", rest, err)
		}
	})
}

func BenchmarkListPets(b *testing.B) {
	benchmark(b, "GET", "/v1/pets", "", 200)
}

func BenchmarkCreatePet(b *testing.B) {
	benchmark(b, "POST", "/v1/pets", newRex, 201)
}

func BenchmarkGetPet(b *testing.B) {
	benchmark(b, "GET", "/v1/pets/777", "", 200)
}

func BenchmarkReset(b *testing.B) {
	benchmark(b, "POST", "/__admin/reset", "", 204)
}

func BenchmarkShowJournal(b *testing.B) {
	benchmark(b, "GET", "/__admin/requests", "", 200)
}

// benchmark measures a request to a service with 1,000 pets and as many requests
// in its journal.
func benchmark(b *testing.B, method, target, body string, status int) {
	h := testHandler(b, manyPets(1000)...)
	for range 1000 {
		call(h, "GET", "/v1/pets", "")
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if w := call(h, method, target, body); w.Code != status {
			b.Fatalf("got %d %s, want %d", w.Code, w.Body, status)
		}
	}
}

// Helpers: requests and responses.

// server is a running petstore.
type server struct {
	url  string // without a slash at the end
	key  string // the API key that do and send use
	log  *buffer
	stop func() // stops the service; that of start only ends its waits
}

// response is the answer to a request.
type response struct {
	request string // for messages
	status  int    // 0 if there was no answer
	header  http.Header
	body    string // the part of it that came
	err     error  // of the connection; nil for a whole answer
}

// pending is a request that was sent.
type pending struct {
	response chan response
	leave    context.CancelFunc // closes the connection of the client
}

// wait returns the response.
func (p pending) wait() response { return <-p.response }

// patience is how long a test waits for what must happen. It is less than the
// longest waits of the service (30 s), so that a test notices if one does not end.
const patience = 20 * time.Second

// wholeDrip is how long a drip takes if nothing ends it. What a test releases must
// end sooner.
const wholeDrip = 9 * time.Second

// client uses a new connection for each request: net/http would repeat a request
// if a fault closes a connection that was kept alive.
var client = &http.Client{
	Timeout: patience,
	Transport: &http.Transport{
		DisableKeepAlives:     true,
		DisableCompression:    true,
		ExpectContinueTimeout: patience,
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// noKey is a header for do and send: it keeps them from sending the key.
const noKey = "Authorization:"

// do sends a request, such as "GET /v1/pets", and returns the response. Headers
// have the form "Prefer: code=503". The key is added, unless one is given.
func (s *server) do(t testing.TB, request, body string, headers ...string) response {
	t.Helper()
	r := s.send(t, request, body, headers...).wait()
	if r.err != nil {
		t.Fatalf("%s: %v", r.request, r.err)
	}
	return r
}

// send sends a request as do does, but does not wait for its response.
func (s *server) send(t testing.TB, request, body string, headers ...string) pending {
	t.Helper()
	method, target, _ := strings.Cut(request, " ")
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, s.url+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range headers {
		if name, value, found := strings.Cut(header, ":"); found {
			r.Header.Add(name, strings.TrimSpace(value))
		}
	}
	if r.Header["Authorization"] == nil {
		r.Header.Set("Authorization", "Bearer "+s.key)
	} else if r.Header.Get("Authorization") == "" {
		r.Header.Del("Authorization")
	}
	p := pending{response: make(chan response, 1), leave: cancel}
	go func() {
		resp, err := client.Do(r)
		p.response <- read(fmt.Sprintf("%.300s", fmt.Sprint(request, " ", body, " ", headers)), resp, err)
	}()
	return p
}

// read reads an answer to its end.
func read(request string, resp *http.Response, err error) response {
	if err != nil {
		return response{request: request, err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return response{request, resp.StatusCode, resp.Header, string(body), err}
}

// want checks the status, and a body that is JSON and a newline, or empty.
func (r response) want(t testing.TB, status int, body string) {
	t.Helper()
	contentType, length := "", r.header.Get("Content-Length")
	if body != "" {
		body += "\n"
		contentType, length = "application/json", strconv.Itoa(len(body))
	}
	if r.status != status || r.body != body || r.err != nil {
		t.Errorf("%s:\n got %d %.2000s (error: %v)\nwant %d %.2000s",
			r.request, r.status, r.body, r.err, status, body)
	}
	r.wantHeader(t, "Content-Type", contentType)
	r.wantHeader(t, "Content-Length", length)
}

// wantError checks that the body is an Error whose message begins like this.
func (r response) wantError(t testing.TB, status int, code, message string) {
	t.Helper()
	var e struct{ Message string }
	json.Unmarshal([]byte(r.body), &e)
	r.want(t, status, errorText(status, code, e.Message))
	if e.Message == "" || !strings.HasPrefix(e.Message, message) {
		t.Errorf("%s: the message\n got %s\nwant %s", r.request, e.Message, message)
	}
}

// errorText returns an Error as JSON.
func errorText(status int, code, message string) string {
	return fmt.Sprintf(`{"code":"%s","message":%s,"status":%d}`, code, jsonText(message), status)
}

// wantHeader checks the only value of a header, which is not there if it is "".
func (r response) wantHeader(t testing.TB, name, value string) {
	t.Helper()
	equal(t, r.request+": "+name, strings.Join(r.header.Values(name), "\n"), value)
}

// ids returns the ids of the pets in a list.
func (r response) ids(t testing.TB) []int64 {
	t.Helper()
	var pets []struct{ ID int64 }
	if err := json.Unmarshal([]byte(r.body), &pets); err != nil {
		t.Fatalf("%s: %v in %.300s", r.request, err, r.body)
	}
	var ids []int64
	for _, pet := range pets {
		ids = append(ids, pet.ID)
	}
	return ids
}

// has reports whether the store has a pet, without a trace in the journal.
func (s *server) has(t testing.TB, pet string) bool {
	t.Helper()
	return strings.Contains(s.do(t, "GET /v1/pets", "", observer).body, pet)
}

// connection is a TCP connection, for requests that net/http's client would not
// send.
type connection struct {
	*net.TCPConn
	in *bufio.Reader
}

// dial connects to the service.
func (s *server) dial(t testing.TB) connection {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	return connection{conn.(*net.TCPConn), bufio.NewReader(conn)}
}

// write sends text with CR LF in place of LF. It ignores errors: the service may
// answer and close the connection before it has read everything.
func (c connection) write(text string) {
	io.WriteString(c, strings.ReplaceAll(text, "\n", "\r\n"))
}

// read reads the answer to a request with this method.
func (c connection) read(method string) response {
	resp, err := http.ReadResponse(c.in, &http.Request{Method: method})
	return read(method+" on a connection of the test", resp, err)
}

// sendRaw sends a request with the key and this header on a new connection.
func (s *server) sendRaw(t testing.TB, request, header string) connection {
	t.Helper()
	c := s.dial(t)
	c.write(request + " HTTP/1.1\nHost: petstore\nAuthorization: Bearer " + s.key + "\n" + header + "\n\n")
	return c
}

// startRequest sends a request without its body, newIda, and returns when the
// service waits for that.
func (s *server) startRequest(t testing.TB, request string) connection {
	t.Helper()
	c := s.sendRaw(t, request, fmt.Sprintf("Expect: 100-continue\nContent-Length: %d", len(newIda)))
	if r := c.read("POST"); r.status != 100 {
		t.Fatalf("%s without its body: got %d and the error %v, want 100", request, r.status, r.err)
	}
	return c
}

// Helpers: resets, the standing fault and the journal.

// reset replaces the pets with those of a JSON array, or for "" with those of the
// start.
func (s *server) reset(t testing.TB, seed string) {
	t.Helper()
	s.do(t, "POST /__admin/reset", seed).want(t, 204, "")
}

// setFault sets the standing fault.
func (s *server) setFault(t testing.TB, query string) {
	t.Helper()
	if r := s.do(t, "PUT /__admin/fault?"+query, ""); r.status != 200 {
		t.Fatalf("%s: got %d %s", r.request, r.status, r.body)
	}
}

// wantFault checks the members of the standing fault.
func (s *server) wantFault(t testing.TB, members string) {
	t.Helper()
	s.do(t, "GET /__admin/fault", "").want(t, 200, "{"+members+"}")
}

// waitFault waits until the standing fault has a counter, such as "held":1.
func (s *server) waitFault(t testing.TB, counter string) {
	t.Helper()
	eventually(t, counter, func() bool {
		return strings.Contains(s.do(t, "GET /__admin/fault", "").body, counter)
	})
}

// waitWaiting waits until these requests are listed as waiting, each with its
// operation, such as "GET /v1/pets listPets".
func (s *server) waitWaiting(t testing.TB, want ...string) {
	t.Helper()
	eventually(t, fmt.Sprint("the waiting requests ", want), func() bool {
		var journal struct{ Waiting []recorded }
		json.Unmarshal([]byte(s.do(t, "GET /__admin/requests", "").body), &journal)
		var got []string
		for _, r := range journal.Waiting {
			got = append(got, fmt.Sprint(r.Method, " ", r.URL, " ", r.Operation))
		}
		return slices.Equal(got, want)
	})
}

// recorded is an entry of the journal.
type recorded struct {
	ID            int64
	Time          time.Time
	Method, URL   string
	Operation     string
	Headers       map[string]string
	Body          string
	Status        int
	Seconds       float64
	AnswerHeaders map[string]string
	Answer, Error string
	Fault         map[string]string
	Ignored       []string
}

// readJournal returns what the journal answers to a query.
func (s *server) readJournal(t testing.TB, query string) (entries []recorded, total int, since time.Time) {
	t.Helper()
	r := s.do(t, "GET /__admin/requests"+query, "")
	var journal struct {
		Requests []recorded
		Meta     struct {
			Total int
			Since time.Time
		}
	}
	if err := json.Unmarshal([]byte(r.body), &journal); err != nil {
		t.Fatalf("%s: %v in %.2000s", r.request, err, r.body)
	}
	return journal.Requests, journal.Meta.Total, journal.Meta.Since
}

// journal waits until n requests have been recorded, and returns them.
func (s *server) journal(t testing.TB, n int) []recorded {
	t.Helper()
	entries, total, _ := s.readJournal(t, fmt.Sprint("?total=", n))
	if total < n {
		t.Fatalf("the journal has %d requests, want %d: %+v", total, n, entries)
	}
	return entries
}

// wantJournal checks the method, the URL and the status of all recorded requests,
// such as "GET /v1/pets 200".
func (s *server) wantJournal(t testing.TB, want ...string) {
	t.Helper()
	var got []string
	for _, e := range s.journal(t, len(want)) {
		got = append(got, fmt.Sprint(e.Method, " ", e.URL, " ", e.Status))
	}
	equal(t, "the journal", got, want)
}

// Helpers: services.

// start serves these pets until the test ends. The log must stay empty.
func start(t testing.TB, pets ...string) *server {
	t.Helper()
	return startWith(t, seedOf(t, pets...), func(*service, *http.Server) {})
}

// startWith is start with a seed, and a function that changes the service and its
// HTTP server.
func startWith(t testing.TB, seed *store, change func(*service, *http.Server)) *server {
	t.Helper()
	stopping := make(chan struct{})
	s := &server{key: testKey, log: new(buffer), stop: sync.OnceFunc(func() { close(stopping) })}
	handler := slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelWarn})
	service := newService(testKey, seed, 0, stopping, slog.New(handler))
	ts := httptest.NewUnstartedServer(nil)
	ts.Config = newServer(service)
	change(service, ts.Config)
	ts.Start()
	s.url = ts.URL
	t.Cleanup(func() {
		s.stop()
		ts.Close()
		equal(t, "the log", s.log.take(), "")
	})
	return s
}

// seedOf returns a store with these pets.
func seedOf(t testing.TB, pets ...string) *store {
	t.Helper()
	seed, err := readSeed([]byte(array(pets...)))
	if err != nil {
		t.Fatal(err)
	}
	return seed
}

// startAdded is start with one more route, GET /v1/pets/added.
func startAdded(t testing.TB, do func(*exchange) (answer, error), pets ...string) *server {
	t.Helper()
	return startWith(t, seedOf(t, pets...), func(s *service, srv *http.Server) {
		s.routes = append(s.routes, route{pattern: "GET /v1/pets/added", do: do})
		srv.Handler = s.handler()
	})
}

// testHandler returns the handler of a service with these pets, for tests and
// benchmarks that the network would slow down.
func testHandler(t testing.TB, pets ...string) http.Handler {
	t.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return newService(testKey, seedOf(t, pets...), 0, nil, log).handler()
}

// call sends a request to a handler.
func call(h http.Handler, method, target, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, newRequest(method, target, body, ""))
	return w
}

// newRequest returns a request for a handler.
func newRequest(method, target, body, prefer string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+testKey)
	r.Header.Set("Prefer", prefer)
	return r
}

// command is a command line of petstore, which runs in the process of the test.
type command struct {
	args  []string
	key   string    // PETSTORE_API_KEY
	stdin io.Reader // empty if it is nil
}

// run runs the command, and returns its exit code.
func (c command) run(ctx context.Context, stdout, stderr io.Writer) int {
	if c.stdin == nil {
		c.stdin = strings.NewReader("")
	}
	getenv := func(name string) string { return map[string]string{"PETSTORE_API_KEY": c.key}[name] }
	return report(run(ctx, c.args, getenv, c.stdin, stdout, stderr), stderr)
}

// output runs a command that does not serve, or else stops at once.
func (c command) output() (code int, stdout, stderr string) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errs buffer
	code = c.run(ctx, &out, &errs)
	return code, out.take(), errs.take()
}

// start runs the command on a free port until the test ends.
func (c command) start(t testing.TB) *server {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c.args = append([]string{"-addr", "127.0.0.1:0"}, c.args...)
	r, w := io.Pipe()
	log := new(buffer)
	exit := make(chan int, 1)
	go func() {
		code := c.run(ctx, w, log)
		w.Close()
		exit <- code
	}()
	stdout := bufio.NewReader(r)
	s := &server{url: readURL(t, stdout), key: c.key, log: log}
	s.stop = sync.OnceFunc(func() {
		cancel()
		more, _ := io.ReadAll(stdout)
		equal(t, "standard output after the base URL", string(more), "")
		equal(t, "the exit code", receive(t, "the end of the service", exit), 0)
	})
	t.Cleanup(s.stop)
	return s
}

// program starts petstore with these flags and testKey.
func program(t testing.TB, args ...string) *server {
	t.Helper()
	return command{args: args, key: testKey}.start(t)
}

// readURL reads the base URL from standard output, and returns it without /v1.
func readURL(t testing.TB, stdout *bufio.Reader) string {
	t.Helper()
	line, _ := stdout.ReadString('\n')
	match := regexp.MustCompile(`^(http://127\.0\.0\.1:[1-9]\d*)/v1\n$`).FindStringSubmatch(line)
	if match == nil {
		t.Fatalf("standard output: got %q, want the base URL", line)
	}
	return match[1]
}

// childVariable is the environment variable that makes the test binary petstore.
const childVariable = "PETSTORE_TEST_CHILD"

// startProcess starts petstore in a process of its own, with SIGINT ignored. The
// process is killed when the test ends, and stops if the test binary is killed.
func startProcess(t testing.TB, stderr io.Writer, args ...string) (*server, *exec.Cmd) {
	t.Helper()
	args = append([]string{os.Args[0], "-addr", "127.0.0.1:0", "-stdin"}, args...)
	cmd := exec.Command("/bin/sh", append([]string{"-c", `trap "" INT; exec "$0" "$@"`}, args...)...)
	cmd.Env = append(os.Environ(), childVariable+"=1", "PETSTORE_API_KEY="+testKey)
	cmd.Stderr = stderr
	_, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return &server{url: readURL(t, bufio.NewReader(stdout)), key: testKey}, cmd
}

// wantExit waits for the end of a process, and checks its exit code.
func wantExit(t testing.TB, cmd *exec.Cmd, code int) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	receive(t, "the end of the process", ended)
	equal(t, "the exit code", cmd.ProcessState.ExitCode(), code)
}

// waitRefused waits until the service accepts no connections.
func (s *server) waitRefused(t testing.TB) {
	t.Helper()
	eventually(t, "the end of the listener", func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
}

// TestMain runs the tests, or petstore for startProcess and the examples.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		main()
	}
	time.Local = time.FixedZone("east", 9*60*60) // in UTC, a local time would look right
	flag.Set("test.parallel", "16")              // as parallel tests mostly wait
	flag.Parse()
	os.Exit(m.Run())
}

// Helpers: comparing and waiting.

// equal checks that got is want.
func equal[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %.3000s\nwant %.3000s", what, fmt.Sprint(got), fmt.Sprint(want))
	}
}

// matches checks that a regular expression matches a text.
func matches(t testing.TB, what, got, pattern string) {
	t.Helper()
	if !regexp.MustCompile(pattern).MatchString(got) {
		t.Errorf("%s:\n got %.3000s\nwant a match of %s", what, got, pattern)
	}
}

// receive waits for a value from a channel.
func receive[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited too long for %s", what)
		panic("not reached")
	}
}

// eventually waits until a condition is true that no event announces.
func eventually(t testing.TB, what string, isTrue func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !isTrue(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// concurrently calls f with 0 to n-1 at the same time. f must not end the test.
func concurrently(n int, f func(i int)) {
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			<-begin
			f(i)
		}()
	}
	close(begin)
	wg.Wait()
}

// buffer is what a service has written. It is safe for concurrent use.
type buffer struct {
	mu   sync.Mutex
	text []byte
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p...)
	return len(p), nil
}

// take returns the text, and removes it.
func (b *buffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := string(b.text)
	b.text = nil
	return text
}

// Helpers: values and files.

// manyPets returns n pets. Every tenth is sold, and the others are available.
func manyPets(n int) []string {
	var pets []string
	for id := 1; id <= n; id++ {
		status := "available"
		if id%10 == 0 {
			status = "sold"
		}
		pets = append(pets, fmt.Sprintf(`{"name":"pet %d","categoryId":%d,"status":"%s"}`, id, id, status))
	}
	return pets
}

// half returns the half of a body that truncate and stall send.
func half(body string) string { return body[:len(body)/2] }

// array returns a JSON array.
func array(elements ...string) string { return "[" + strings.Join(elements, ",") + "]" }

// jsonText returns a value as the service writes it.
func jsonText(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n")
}

// numbers returns first, first+step and so on, up to last.
func numbers(first, last, step int64) []int64 {
	var list []int64
	for n := first; n <= last; n += step {
		list = append(list, n)
	}
	return list
}

// keys returns the sorted keys of a map.
func keys[V any](m map[string]V) []string {
	var list []string
	for key := range m {
		list = append(list, key)
	}
	return sorted(list)
}

// sorted returns a sorted copy of a list.
func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

// readFile returns a file of the repository.
func readFile(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tempFile returns the name of a file with this text.
func tempFile(t testing.TB, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pets.json")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
