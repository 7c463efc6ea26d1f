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
}

// The Links lead through all pets.
func TestFollowLinks(t *testing.T) {
	s := start(t, manyPets(150)...)
	var ids []int64
	for target := "/v1/pets?limit=7"; target != ""; {
		r := s.do(t, "GET "+target, "")
		ids = append(ids, r.ids(t)...)
		next := strings.TrimPrefix(r.header.Get("Link"), "<")
		target, _, _ = strings.Cut(next, ">")
	}
	equal(t, "the ids on all pages", ids, numbers(1, 150, 1))
}

// A page is not bounded in bytes, and is not sent in chunks.
func TestLongPage(t *testing.T) {
	var added, listed []string
	for id := range 100 {
		pet := fmt.Sprintf(`"name":"%s","categoryId":1}`, strings.Repeat("x", 60_000))
		added = append(added, "{"+pet)
		listed = append(listed, fmt.Sprintf(`{"id":%d,`, id+1)+pet)
	}
	s := start(t, added...)
	s.do(t, "GET /v1/pets?limit=100", "").want(t, 200, array(listed...))
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
	for i, tt := range []struct{ name, body, pet string }{
		{"all members", newRex, `"name":"Rex","categoryId":7,"status":"sold"`},
		{"no status", newIda, `"name":"Ida","categoryId":2`},
		{
			"white space and order",
			" { \"status\" : \"pending\",\n\t\"categoryId\" : -0 , \"name\" : \"\" }\r\n",
			`"name":"","categoryId":0,"status":"pending"`,
		},
		{
			"largest categoryId",
			`{"name":"a","categoryId":9223372036854775807}`,
			`"name":"a","categoryId":9223372036854775807`,
		},
		{
			"smallest categoryId",
			`{"name":"a","categoryId":-9223372036854775808}`,
			`"name":"a","categoryId":-9223372036854775808`,
		},
		{
			"unknown members",
			`{"id":77,"x":null,"name":"a","categoryId":1,"Name":5,"STATUS":"x","y":{"name":[]}}`,
			`"name":"a","categoryId":1`,
		},
		{
			"duplicate members, of which the last wins",
			`{"name":5,"name":"a","categoryId":"x","categoryId":1}`,
			`"name":"a","categoryId":1`,
		},
		{
			"escapes",
			`{"n\u0061me":"\u003c&\/\ud83d\uDE00😀>\u0000\n\"\\","categoryId":1}`,
			`"name":"<&/😀😀>\u0000\n\"\\","categoryId":1`,
		},
		{"lone surrogate", `{"name":"\ud800","categoryId":1}`, `"name":"` + "\ufffd" + `","categoryId":1`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pet := fmt.Sprintf(`{"id":%d,%s}`, i+1, tt.pet)
			path := fmt.Sprint("/v1/pets/", i+1)
			r := s.do(t, "POST /v1/pets", tt.body)
			r.want(t, 201, pet)
			r.wantHeader(t, "Location", path)
			s.do(t, "GET "+path, "").want(t, 200, pet)
		})
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
	)
	for _, tt := range []struct{ body, message string }{
		{"", "the body is empty" + wantObject},
		{" ", "the body is empty" + wantObject},
		{" null ", "the body is null" + wantObject},
		{"[]", "the body is []" + wantObject},
		{"5", "the body is 5" + wantObject},
		{`"Rex"`, `the body is "Rex"` + wantObject},
		{
			`{"name":"a"`,
			"the body is not JSON: unexpected end of JSON input, at byte 11" + wantObject,
		},
		{
			newIda + "{}",
			"the body is not JSON: invalid character '{' after top-level value, at byte 30" + wantObject,
		},
		{
			"{'name':1}",
			`the body is not JSON: invalid character '\'' looking for beginning of object key string, ` +
				"at byte 2" + wantObject,
		},
		{`{"name":"","categoryId":1,"x":"` + "\xff\"}", "the body is not valid UTF-8"},
		{"\xff", "the body is not valid UTF-8"},

		{"{}", "name is missing; it must be a string"},
		{`{"Name":"a","NAME":"a","categoryId":1}`, "name is missing; it must be a string"},
		{`{"name":5,"categoryId":1}`, "name is 5; it must be a string"},
		{`{"name":null,"categoryId":1}`, "name is null; it must be a string"},
		{`{"name":["a"],"categoryId":1}`, `name is ["a"]; it must be a string`},

		{`{"name":"a"}`, "categoryId is missing" + wantInt},
		{`{"name":"a","categoryid":1}`, "categoryId is missing" + wantInt},
		{`{"name":"a","categoryId":null}`, "categoryId is null" + wantInt},
		{`{"name":"a","categoryId":1.0}`, "categoryId is 1.0" + wantInt},
		{`{"name":"a","categoryId":1e3}`, "categoryId is 1e3" + wantInt},
		{`{"name":"a","categoryId":"1"}`, `categoryId is "1"` + wantInt},
		{`{"name":"a","categoryId":true}`, "categoryId is true" + wantInt},
		{
			`{"name":"a","categoryId":9223372036854775808}`,
			"categoryId is 9223372036854775808; " +
				"it must be an integer from -9223372036854775808 to 9223372036854775807",
		},

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

// A body whose headers say that it is not JSON in UTF-8 is refused. Where no body
// is read as JSON, these headers do not matter.
func TestMediaTypes(t *testing.T) {
	s := start(t)
	const (
		wantType   = "; it must be application/json, in UTF-8"
		wantCoding = "; it must be left out"
	)
	for _, tt := range []struct {
		header  string
		message string // of the Error, or empty if the body is accepted
	}{
		{"Content-Type: application/json", ""},
		{`Content-Type: Application/JSON; Charset="UTF-8"; x=y`, ""},
		{"Content-Type:", ""},
		{"Content-Encoding: Identity", ""},

		{"Content-Type: text/plain", "Content-Type is text/plain" + wantType},
		{"Content-Type: application/jsonx", "Content-Type is application/jsonx" + wantType},
		{
			"Content-Type: application/json; charset=latin1",
			"Content-Type is application/json; charset=latin1" + wantType,
		},
		{"Content-Type: application/json; =", "Content-Type is application/json; =" + wantType},
		{"Content-Encoding: gzip", "Content-Encoding is gzip" + wantCoding},
	} {
		for _, request := range []string{"POST /v1/pets " + newIda, "POST /__admin/reset []"} {
			method, rest, _ := strings.Cut(request, " ")
			target, body, _ := strings.Cut(rest, " ")
			r := s.do(t, method+" "+target, body, tt.header)
			if tt.message != "" {
				r.wantError(t, 415, "unsupported_media_type", tt.message)
			} else if r.status >= 300 {
				t.Errorf("%s: got %d %s, want success", r.request, r.status, r.body)
			}
		}
		s.do(t, "POST /__admin/reset", "", tt.header).want(t, 204, "")
		s.do(t, "GET /v1/pets", "", tt.header).want(t, 200, "[]")
	}

	for _, header := range []string{"Content-Type", "Content-Encoding"} {
		twice := []string{header + ": identity", header + ": application/json"}
		r := s.do(t, "POST /v1/pets", newIda, twice...)
		r.wantError(t, 415, "unsupported_media_type", header+" is identity, application/json; ")
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
			if w.Code != 201 || again.Body.String() != w.Body.String() || !strings.Contains(w.Body.String(), name) {
				t.Errorf("create %s: got %s, and then %s", name, w.Body, again.Body)
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
	s.do(t, "GET /openapi.json", "", noKey).want(t, 200, strings.TrimSuffix(readFile(t, "api/openapi.json"), "\n"))
	page := s.do(t, "GET /", "", noKey)
	equal(t, "the page", page.body, readFile(t, "api/index.html"))
	page.wantHeader(t, "Content-Type", "text/html; charset=utf-8")
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
	s.wantFault(t, `"code":"503","matched":0,"applied":0`)
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
	addRoute(t, func(x *exchange) error {
		x.replyJSON(200, []byte("1"))
		return nil
	})
	s := start(t, newRex)
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
	for _, tt := range []struct {
		name    string
		do      func(*exchange) error
		status  int
		code    string
		message string
		log     string // a regular expression
	}{
		{
			name: "error",
			do: func(x *exchange) error {
				x.reply(201, "text/plain", []byte("half"))
				return secret
			},
			status:  500,
			code:    "internal_server_error",
			message: "the service has a bug; its log has the details",
			log:     `^time=\S+ level=ERROR msg=bug error="open /secret: permission denied" method=GET url=/v1/pets/added\?x\n$`,
		},
		{
			name:    "panic",
			do:      func(*exchange) error { panic(secret) },
			status:  500,
			code:    "internal_server_error",
			message: "the service has a bug; its log has the details",
			log:     `^time=\S+ level=ERROR msg=bug error="panic: open /secret: permission denied\\n.*TestBug.*" method=GET url=/v1/pets/added\?x\n$`,
		},
		{
			name:    "an Error with more words",
			do:      func(*exchange) error { return fmt.Errorf("pet 3: %w", newError(507, "it is full")) },
			status:  507,
			code:    "insufficient_storage",
			message: "pet 3: it is full",
			log:     "^$",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addRoute(t, tt.do)
			s := start(t)
			s.do(t, "GET /v1/pets/added?x", "").wantError(t, tt.status, tt.code, tt.message)
			matches(t, "the log", s.log.take(), tt.log)
			s.do(t, "GET /v1/pets", "").want(t, 200, "[]")
		})
	}
}

// The store takes 256 MiB of pets, each counted as its JSON and 128 bytes. A full
// store refuses creates, and still answers everything else.
func TestFullStore(t *testing.T) {
	for _, missing := range []int64{0, 1} {
		seed := seedOf(t, newRex)
		seed.size = 256<<20 - int64(len(ida)) - 128 + missing
		s := startWith(t, seed, func(*http.Server) {})
		const full = "the store is full; its limit is 268435456 bytes"
		for range 2 { // a reset restores the size, too
			if missing == 0 {
				s.do(t, "POST /v1/pets", newIda).want(t, 201, ida)
			}
			s.do(t, "POST /v1/pets", newIda).wantError(t, 507, "insufficient_storage", full)
			s.do(t, "GET /v1/pets?status=sold", "").want(t, 200, array(rex))
			s.reset(t, "")
		}
	}
	first, second := seedOf(t, newRex), seedOf(t, newRex, newIda)
	equal(t, "the size of Rex", first.size, int64(len(rex))+128)
	equal(t, "the size of Rex and Ida", second.size, int64(len(rex)+len(ida))+256)
}

// Faults for one request.

// What a fault makes of a request, whether it is set by Prefer or stands. Rex is
// in the store.
func TestFaultCodes(t *testing.T) {
	const (
		refused = "name is missing; it must be a string"
		gateway = "<html><head><title>502 Bad Gateway</title></head><body>502 Bad Gateway</body></html>\n"
	)
	list := array(rex) + "\n"
	teapot := errorText(418, "im_a_teapot", simulated) + "\n"
	nameless := errorText(400, "invalid_body", refused) + "\n"
	for _, tt := range []struct {
		code    string
		request string // create, refused create, or HEAD
		status  int    // 0 if there is no response
		body    string
		err     error
		held    bool   // whether the client waits for the end of the body until the fault ends
		created bool   // whether Ida is in the store
		answer  string // in the journal
	}{
		{code: "418", request: "create", status: 418, body: teapot, answer: teapot},
		{code: "hangup", request: "create", err: io.EOF},
		{code: "rst", request: "create", err: syscall.ECONNRESET},
		{code: "lost", request: "create", err: io.EOF, created: true, answer: ida + "\n"},
		{
			code: "truncate", request: "create", status: 201, body: half(ida + "\n"),
			err: io.ErrUnexpectedEOF, created: true, answer: ida + "\n",
		},
		{
			code: "stall", request: "create", status: 201, body: half(ida + "\n"),
			err: io.ErrUnexpectedEOF, held: true, created: true, answer: ida + "\n",
		},
		{
			code: "drip", request: "create", status: 201, body: ida + "\n",
			held: true, created: true, answer: ida + "\n",
		},
		{code: "html", request: "create", status: 502, body: gateway, created: true, answer: gateway},

		{code: "418", request: "refused create", status: 418, body: teapot, answer: teapot},
		{code: "lost", request: "refused create", err: io.EOF, answer: nameless},
		{
			code: "truncate", request: "refused create", status: 400, body: half(nameless),
			err: io.ErrUnexpectedEOF, answer: nameless,
		},
		{
			code: "drip", request: "refused create", status: 400, body: nameless,
			held: true, answer: nameless,
		},

		{code: "418", request: "HEAD", status: 418, answer: teapot},
		{code: "rst", request: "HEAD", err: syscall.ECONNRESET},
		{code: "truncate", request: "HEAD", err: io.EOF, answer: list},
		{code: "stall", request: "HEAD", err: io.EOF, held: true, answer: list},
		{code: "drip", request: "HEAD", status: 200, answer: list},
		{code: "html", request: "HEAD", status: 502, answer: gateway},
	} {
		requests := map[string][]string{
			"create":         {"POST /v1/pets", newIda},
			"refused create": {"POST /v1/pets", "{}"},
			"HEAD":           {"HEAD /v1/pets", ""},
		}
		for _, by := range []string{"Prefer", "standing fault"} {
			t.Run(tt.code+"/"+tt.request+"/"+by, func(t *testing.T) {
				s := start(t, newRex)
				prefer := "Prefer: code=" + tt.code
				if by == "standing fault" {
					s.setFault(t, "code="+tt.code)
					prefer = ""
				}
				request := requests[tt.request]
				pending := s.send(t, request[0], request[1], prefer)
				e := s.journal(t, 1)[0]
				if tt.held && prefer == "" {
					s.waitHeld(t, 1)
				}
				pets := len(s.do(t, "GET /v1/pets", "", observer).ids(t))
				if tt.held {
					s.reset(t, "")
				}

				r := pending.wait()
				equal(t, "status", r.status, tt.status)
				equal(t, "body", r.body, tt.body)
				if !errors.Is(r.err, tt.err) {
					t.Errorf("error: got %v, want %v", r.err, tt.err)
				}
				if tt.status != 0 {
					r.wantHeader(t, "Preference-Applied", strings.TrimPrefix(prefer, "Prefer: "))
				}
				equal(t, "Ida was added", pets == 2, tt.created)
				equal(t, "status in the journal", e.Status, tt.status)
				equal(t, "answer in the journal", e.Answer, tt.answer)
				equal(t, "fault in the journal", e.Fault, "code="+tt.code)
				problem := ""
				switch tt.answer {
				case teapot:
					problem = simulated
				case nameless:
					problem = refused
				}
				if tt.code != "html" {
					equal(t, "error in the journal", e.Error, problem)
				}
			})
		}
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

// The page of the fault html has none of the headers of the operation.
func TestGatewayHeaders(t *testing.T) {
	s := start(t, newRex)
	r := s.do(t, "GET /v1/pets/1", "", "Prefer: code=html", "Origin: null")
	equal(t, "status", r.status, 502)
	r.header.Del("Date")
	equal(t, "the headers", keys(r.header), []string{
		"Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Content-Length", "Content-Type",
		"Preference-Applied",
	})
	r.wantHeader(t, "Content-Type", "text/html")
}

// Prefer is read as RFC 7240 says: commas or semicolons separate preferences, the
// first of a name counts, and those with other names are ignored. What was read is
// confirmed.
func TestPrefer(t *testing.T) {
	s := start(t)
	for _, tt := range []struct {
		headers []string
		applied string
	}{
		{[]string{"code=418"}, "code=418"},
		{[]string{` CODE = "418"	; delay="0"`}, "code=418, delay=0"},
		{[]string{",;=,code=418,;"}, "code=418"},
		{[]string{"code=418, code=500"}, "code=418"},
		{[]string{"code=418,lost"}, "code=418"},
		{[]string{`code="418,500"`}, "code=418"},
		{[]string{"wait=1", "code=418"}, "code=418"},
		{[]string{"retry-after=0;answer-delay=.0;delay=0.0;code=418"}, "code=418, delay=0.0, answer-delay=.0, retry-after=0"},
		{[]string{"answer-delay=0"}, "answer-delay=0"},
		{[]string{"delay=0, retry-after=5"}, "delay=0"},
		{[]string{"wait=x, respond-async, skip=x, operation=x, times=x"}, ""},
		{[]string{"retry-after=x"}, ""},
		{[]string{""}, ""},
	} {
		var headers []string
		for _, header := range tt.headers {
			headers = append(headers, "Prefer: "+header)
		}
		r := s.do(t, "GET /v1/pets", "", headers...)
		r.wantHeader(t, "Preference-Applied", tt.applied)
		if strings.Contains(tt.applied, "418") {
			equal(t, r.request+": status", r.status, 418)
		} else {
			r.want(t, 200, "[]")
		}
	}

	for _, preference := range []string{
		"code=", "code=399", "code=600", "code=Hangup", "code=0503", "code=a status from 400 to 599",
		"delay=30.01", "delay=-1", "delay=+1", "delay=1e1", "delay=Inf", "delay=", "delay=.", "delay=1s",
		"answer-delay=31", "answer-delay=x", "retry-after=3601", "retry-after=1.5", "retry-after=-1",
	} {
		name, value, _ := strings.Cut(preference, "=")
		if value == "" {
			value = "empty"
		}
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
	for i, least := range []float64{0.3, 0.25} {
		e := s.journal(t, 2)[i]
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

// A reset and a stop end the waits of Prefer, too. No event announces that the
// request waits, so the test resets until it no longer does.
func TestPreferIsReleased(t *testing.T) {
	for _, prefer := range []string{"delay=30", "answer-delay=30", "code=drip", "code=stall"} {
		s := start(t, newRex)
		pending := s.send(t, "GET /v1/pets", "", "Prefer: "+prefer)
		eventually(t, "the release of "+prefer+" by a reset", func() bool {
			s.reset(t, "")
			return len(pending.response) > 0
		})
		equal(t, prefer+": status", pending.wait().status, 200)

		pending = s.send(t, "GET /v1/pets", "", "Prefer: "+prefer)
		s.stop()
		equal(t, prefer+": status", pending.wait().status, 200)
	}
}

// The half of a stall is sent at once, and nothing more.
func TestStallSendsHalf(t *testing.T) {
	s := start(t)
	c := s.dial(t)
	c.write("GET /v1/pets HTTP/1.1\nHost: petstore\nAuthorization: Bearer " + testKey + "\nPrefer: code=stall\n\n")
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	half := make([]byte, 1)
	if _, err := io.ReadFull(resp.Body, half); err != nil {
		t.Fatal(err)
	}
	equal(t, "the first half of []", string(half), "[")
	s.reset(t, "")
	rest, err := io.ReadAll(resp.Body)
	if len(rest) > 0 || err != io.ErrUnexpectedEOF {
		t.Errorf("after the half: got %q and the error %v", rest, err)
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
			r := httptest.NewRequest("GET", "/v1/pets", nil)
			r.Header.Set("Authorization", "Bearer "+testKey)
			r.Header.Set("Prefer", "code=drip")
			begin := time.Now()
			testHandler(t, tt.pets...).ServeHTTP(w, r)
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
	plain := "GET /v1/pets HTTP/1.1\nHost: petstore\nAuthorization: Bearer " + testKey + "\n"
	rst := plain + "Prefer: code=rst\n\n"
	plain += "\n"
	for name, sent := range map[string][]string{
		"kept alive": {plain, rst},
		"pipelined":  {plain, rst + plain},
		"HTTP/1.0":   {plain, strings.Replace(rst, "HTTP/1.1", "HTTP/1.0", 1)},
	} {
		c := s.dial(t)
		c.write(sent[0])
		c.read("GET").want(t, 200, "[]")
		c.write(sent[1])
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
	r := httptest.NewRequest("GET", "/v1/pets", nil)
	r.Header.Set("Authorization", "Bearer "+testKey)
	r.Header.Set("Prefer", "code=rst")
	testHandler(t).ServeHTTP(httptest.NewRecorder(), r)
}

// An answer without a body has no half to send.
func TestFaultsWithoutBody(t *testing.T) {
	addRoute(t, func(x *exchange) error {
		x.reply(200, "", nil)
		return nil
	})
	s := start(t)
	r := s.send(t, "GET /v1/pets/added", "", "Prefer: code=truncate").wait()
	if !errors.Is(r.err, io.EOF) {
		t.Errorf("truncate: got %d and the error %v, want no response", r.status, r.err)
	}
	s.do(t, "GET /v1/pets/added", "", "Prefer: code=drip").want(t, 200, "")
}

// A client that leaves during a delay or -latency has added no pet. One that
// leaves during an answer-delay has. The journal is in the order of the answers.
func TestClientLeaves(t *testing.T) {
	s := program(t, "-latency", "30s")
	for _, tt := range []struct {
		fault  string
		pets   int
		answer string
	}{
		{"delay=0", 0, ""}, // so the client leaves during -latency
		{"delay=30", 0, ""},
	} {
		s.reset(t, "")
		s.setFault(t, tt.fault)
		pending := s.send(t, "POST /v1/pets", newRex)
		s.waitHeld(t, 1)
		pending.leave()
		checkLeft(t, s.journal(t, 1)[0], tt.answer)
		equal(t, tt.fault+": pets", len(s.do(t, "GET /v1/pets", "", observer).ids(t)), tt.pets)
	}

	s = start(t)
	s.setFault(t, "delay=30&code=html&times=1")
	slow := s.send(t, "POST /v1/pets?slow", newRex)
	s.waitHeld(t, 1)
	s.do(t, "GET /v1/pets", "").want(t, 200, "[]")
	slow.leave()
	s.wantJournal(t, "GET /v1/pets 200", "POST /v1/pets?slow 0")
	checkLeft(t, s.journal(t, 2)[1], "")

	s.reset(t, "")
	s.setFault(t, "answer-delay=30")
	late := s.send(t, "POST /v1/pets", newRex)
	eventually(t, "the pet is added", func() bool {
		return len(s.do(t, "GET /v1/pets", "", observer).ids(t)) == 1
	})
	late.leave()
	checkLeft(t, s.journal(t, 1)[0], rex+"\n")
	s.do(t, "GET /v1/pets", "", observer).want(t, 200, array(rex))
}

// checkLeft checks the entry of a create whose client has left.
func checkLeft(t *testing.T, e recorded, answer string) {
	t.Helper()
	equal(t, "status in the journal", e.Status, 0)
	equal(t, "error in the journal", e.Error, clientLeft)
	equal(t, "body in the journal", e.Body, newRex)
	equal(t, "answer in the journal", e.Answer, answer)
}

// The standing fault.

// The standing fault is applied to the requests that match it, and counts them.
func TestStandingFault(t *testing.T) {
	s := start(t)
	create := func(headers ...string) response { return s.do(t, "POST /v1/pets", "{}", headers...) }
	refused := "name is missing"

	// A request with the wrong method is not a createPet. One that is refused before
	// the fault is not counted.
	s.setFault(t, "code=503&operation=createPet")
	s.wantFault(t, `"code":"503","operation":"createPet","matched":0,"applied":0`)
	s.do(t, "GET /v1/pets", "").want(t, 200, "[]")
	s.do(t, "BREW /v1/pets", "").wantError(t, 405, "method_not_allowed", "")
	create("Prefer: code=1").wantError(t, 400, "invalid_parameter", "code is 1")
	create(noKey).wantError(t, 401, "unauthorized", "")
	create("Prefer: wait=1").wantError(t, 503, "service_unavailable", simulated)
	s.wantFault(t, `"code":"503","operation":"createPet","matched":1,"applied":1`)

	// A HEAD counts as a GET, and a request that is refused after the fault counts. A
	// path that does not exist has no operation.
	s.setFault(t, "delay=0&operation=listPets")
	equal(t, "the status of a HEAD", s.do(t, "HEAD /v1/pets", "").status, 200)
	s.do(t, "GET /v1/pets?limit=x", "").wantError(t, 400, "invalid_parameter", "limit")
	s.do(t, "GET /v1/pets/", "").wantError(t, 404, "not_found", "")
	s.do(t, "GET /v1/pets/1", "").wantError(t, 404, "not_found", "")
	s.wantFault(t, `"delay":"0","operation":"listPets","matched":2,"applied":2`)
	s.setFault(t, "code=418&operation=getPet")
	s.do(t, "GET /v1/pets/x", "").wantError(t, 418, "im_a_teapot", simulated)
	s.do(t, "GET /v1/store/orders", "").wantError(t, 501, "not_implemented", "")
	s.wantFault(t, `"code":"418","operation":"getPet","matched":1,"applied":1`)

	// Without an operation, everything under /v1 matches. Two requests are let
	// through, and the fault is applied to the next two. A fault of its own exempts a
	// request.
	s.setFault(t, "times=2&skip=2&code=503&retry-after=7&answer-delay=0.0")
	parameters := `"code":"503","answer-delay":"0.0","retry-after":"7","skip":2,"times":2,`
	s.wantFault(t, parameters+`"matched":0,"applied":0`)
	create().wantError(t, 400, "invalid_body", refused)
	s.do(t, "GET /v1/nothing", "").wantError(t, 404, "not_found", "")
	r := s.do(t, "GET /v1/nothing", "")
	r.wantError(t, 503, "service_unavailable", simulated)
	r.wantHeader(t, "Retry-After", "7")
	create("Prefer: delay=0").wantError(t, 400, "invalid_body", refused)
	create(observer).wantError(t, 400, "invalid_body", refused)
	s.do(t, "GET /healthz", "").want(t, 200, `{"status":"ok"}`)
	create().wantError(t, 503, "service_unavailable", simulated)
	create().wantError(t, 400, "invalid_body", refused)
	s.wantFault(t, parameters+`"matched":5,"applied":2`)

	// A PUT that is refused changes nothing.
	s.do(t, "PUT /__admin/fault?code=x", "").wantError(t, 400, "invalid_parameter", "code is x")
	s.wantFault(t, parameters+`"matched":5,"applied":2`)
	s.do(t, "DELETE /__admin/fault", "").want(t, 204, "")
	s.wantFault(t, "")
	s.do(t, "DELETE /__admin/fault", "").want(t, 204, "")
}

// A list of codes is applied in order, each code once. The journal shows which
// code was applied to a request.
func TestFaultList(t *testing.T) {
	s := start(t)
	parameters := `"code":"503,lost,429","delay":"0","retry-after":"7","operation":"listPets","skip":1,"times":3,`
	put := s.do(t, "PUT /__admin/fault?code=503,lost,429&skip=1&operation=listPets&retry-after=7&delay=0", "")
	put.want(t, 200, "{"+parameters+`"matched":0,"applied":0}`)
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
	s.wantFault(t, parameters+`"matched":5,"applied":3`)
	var faults []string
	for _, e := range s.journal(t, 6) {
		faults = append(faults, e.Fault)
	}
	equal(t, "the faults in the journal", faults, []string{
		"", "", "code=503, delay=0, retry-after=7", "code=lost, delay=0", "code=429, delay=0, retry-after=7", "",
	})

	// One status in a list is enough for a retry-after.
	s.setFault(t, "code=lost,503&retry-after=9")
	s.wantFault(t, `"code":"lost,503","retry-after":"9","times":2,"matched":0,"applied":0`)
}

// A fault that is not allowed is refused with a message that says what is.
func TestFaultRefused(t *testing.T) {
	s := start(t)
	const (
		wantCode = "; it must be a status from 400 to 599, hangup, rst, lost, truncate, stall, drip or html"
		wantWait = "; it must be a number of seconds from 0 to 30, such as 2 or 0.5"
		nothing  = "code, delay or answer-delay must be given, in the query: /__admin/fault?code=503"
		noStatus = "retry-after needs a status as code, such as code=503"
	)
	for _, tt := range []struct{ query, message string }{
		{"", nothing},
		{"skip=1&times=1&retry-after=5&operation=listPets", nothing},
		{"code=x", "code is x" + wantCode},
		{"code=", "code is empty" + wantCode},
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
		{"answer-delay=", "answer-delay is empty" + wantWait},
		{"answer-delay=31", "answer-delay is 31" + wantWait},
		{"code=503&retry-after=-1", "retry-after is -1; it must be an integer from 0 to 3600"},
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
	s.setFault(t, "code=400&delay=0&retry-after=0&skip=0&times=1")        // the smallest
}

// Under /__admin, a parameter that a route does not take is refused: otherwise a
// GET in which -X PUT was forgotten would succeed.
func TestAdminParameters(t *testing.T) {
	s := start(t)
	for request, message := range map[string]string{
		"GET /__admin/fault?code=503":        "GET /__admin/fault does not take the parameter code",
		"DELETE /__admin/fault?code=503":     "DELETE /__admin/fault does not take the parameter code",
		"POST /__admin/reset?h&g&c&b&a&d":    "POST /__admin/reset does not take the parameter a",
		"GET /__admin/requests?limit=1":      "GET /__admin/requests does not take the parameter limit",
		"DELETE /__admin/requests?total=1":   "DELETE /__admin/requests does not take the parameter total",
		"GET /__admin/requests?total=x&to=y": "GET /__admin/requests does not take the parameter to",
		"GET /__admin/fault?%zz":             "the query is malformed",
	} {
		s.do(t, request, "").wantError(t, 400, "invalid_parameter", message)
	}
}

// Each code of a list is applied once, however many requests come at the same
// time. So are skip and times.
func TestConcurrentFaults(t *testing.T) {
	const clients, each = 8, 100
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
		want := fmt.Sprintf(`"matched":%d,"applied":%d`, clients*each, applied)
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
		want := fmt.Sprintf(`{"code":"503","times":%d,"matched":0,"applied":0}`+"\n", i+1)
		for range 100 {
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
			t.Run(tt.fault+"/"+end, func(t *testing.T) {
				s := start(t, newRex)
				s.setFault(t, tt.fault)
				pending := s.send(t, "POST /v1/pets", newIda)
				s.waitHeld(t, 1)
				wantPets := []int64{1}
				if tt.before {
					wantPets = []int64{1, 2}
					eventually(t, "Ida is added", func() bool {
						return len(s.do(t, "GET /v1/pets", "", observer).ids(t)) == 2
					})
				}
				equal(t, "the pets before the release", s.do(t, "GET /v1/pets", "", observer).ids(t), wantPets)
				release(t, s)
				r := pending.wait()
				equal(t, "status", r.status, tt.status)
				equal(t, "body", r.body, tt.body)
			})
		}
	}
}

// The end of a fault releases all requests that it holds.
func TestReleaseOfMany(t *testing.T) {
	s := start(t)
	s.setFault(t, "delay=30&answer-delay=30")
	var all []pending
	for range 100 {
		all = append(all, s.send(t, "GET /v1/pets", ""))
	}
	s.waitHeld(t, 100)
	s.do(t, "DELETE /__admin/fault", "").want(t, 204, "")
	for _, p := range all {
		p.wait().want(t, 200, "[]")
	}
}

// A request gets the fault that stands when it arrives, and not the one that
// stands after -latency. The end of the fault does not end the latency, but a
// reset does.
func TestFaultBeforeLatency(t *testing.T) {
	s := program(t, "-latency", "30s")
	s.setFault(t, "code=418")
	pending := s.send(t, "GET /v1/pets", "")
	s.waitHeld(t, 1)
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
	s.wantFault(t, `"code":"503,hangup","times":2,"matched":0,"applied":0`)
	s.wantJournal(t)

	// A request that is refused before the fault is not delayed.
	s.do(t, "GET /v1/pets", "", noKey).wantError(t, 401, "unauthorized", "")
	s.do(t, "GET /v1/pets", "", "Prefer: code=x").wantError(t, 400, "invalid_parameter", "")
	s.do(t, "GET /nothing", "").wantError(t, 404, "not_found", "")
	s.wantJournal(t, "GET /v1/pets 401", "GET /v1/pets 400", "GET /nothing 404")
}

// The journal.

// The journal is a JSON object with a line for each request.
func TestJournalFormat(t *testing.T) {
	s := start(t)
	s.do(t, "GET /__admin/requests", "").want(t, 200, "{\"requests\":[\n],\"meta\":{\"total\":0}}")
	c := s.dial(t)
	c.write("POST /v1/pets?%zz=%20 HTTP/1.1\nHost: petstore\nAuthorization: bearer  " + testKey + "\nx-a: 1\n" +
		"X-A:2, 3\nx-a:\nPrefer: delay=0\nTransfer-Encoding: chunked\n\n8\n<ü>\xff\n\x00\n0\n\n")
	equal(t, "status", c.read("POST").status, 400)
	c.write(`POST /v1/pets?y&x HTTP/1.0` + "\nAuthorization: " + testKey + ", Bearer x\nContent-Length: 2\n\n{}")
	equal(t, "status", c.read("POST").status, 401)

	got := s.do(t, "GET /__admin/requests", "")
	got.wantHeader(t, "Content-Type", "application/json")
	text := regexp.MustCompile(`\d{4}(-\d\d){2}T\d\d(:\d\d){2}\.\d{3}Z`).ReplaceAllString(got.body, "TIME")
	text = regexp.MustCompile(`"seconds":\d+(\.\d{1,3})?,`).ReplaceAllString(text, `"seconds":0,`)
	equal(t, "the journal", text, `{"requests":[
{"time":"TIME","method":"POST","url":"/v1/pets?%zz=%20","headers":{"Authorization":"bearer  <API_KEY>",`+
		`"Host":"petstore","Prefer":"delay=0","Transfer-Encoding":"chunked","X-A":"1, 2, 3, "},`+
		`"body":"<ü>\ufffd\r\n\u0000","status":400,"seconds":0,`+
		`"answer":"{\"code\":\"invalid_parameter\",\"message\":\"the query is malformed: invalid URL escape \\\"%zz\\\"\",\"status\":400}\n",`+
		`"error":"the query is malformed: invalid URL escape \"%zz\"","fault":"delay=0"},
{"time":"TIME","method":"POST","url":"/v1/pets?y&x","headers":{"Authorization":"<API_KEY>, Bearer x",`+
		`"Content-Length":"2"},"body":"","status":401,"seconds":0,`+
		`"answer":"{\"code\":\"unauthorized\",\"message\":\"send the API key in one header: Authorization: Bearer <API_KEY>\",\"status\":401}\n",`+
		`"error":"send the API key in one header: Authorization: Bearer <API_KEY>"}
],"meta":{"total":2}}
`)

	e := s.journal(t, 2)[1]
	if age := time.Since(e.Time); age < 0 || age > patience || e.Seconds > age.Seconds()+0.001 {
		t.Errorf("the time %v is %v ago, and the request took %v seconds", e.Time, age, e.Seconds)
	}
	s.do(t, "DELETE /__admin/requests", "").want(t, 204, "")
	s.do(t, "GET /__admin/requests", "").want(t, 200, "{\"requests\":[\n],\"meta\":{\"total\":0}}")
}

// The journal has what clients sent, and not what the page or a test does to
// observe them.
func TestRecordedRequests(t *testing.T) {
	s := start(t, newRex)
	for _, request := range []string{
		"GET /", "HEAD /", "GET /openapi.json", "GET /healthz", "POST /healthz", "GET /__admin", "PUT /__admin/fault",
		"GET /%5F_admin/nothing", "POST /__admin/reset", "OPTIONS /v1/pets", "OPTIONS /nothing",
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
	s.do(t, "GET /healthz/", "", noKey)
	s.do(t, "PUT /nothing", strings.Repeat("x", 65_537), "Expect: 100-continue")
	s.wantJournal(t, "GET /v1/pets 200", "POST /v1/pets 201", "GET /v1/pets/9 404", "HEAD /v1/store/orders 501",
		"GET /v1/pets 401", "BREW /v1/pets 405", "GET /healthz/ 404", "PUT /nothing 413")
	var bodies []string
	for _, e := range s.journal(t, 8) {
		bodies = append(bodies, e.Body)
	}
	equal(t, "the bodies", bodies, []string{"", newIda, "", "", "", "", "", ""})
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
		r := httptest.NewRequest("GET", "/v1/pets", nil)
		r.Header.Set("Authorization", "Bearer "+testKey)
		r.Header.Set("Prefer", prefer)
		w := headerRecorder{httptest.NewRecorder(), func() {
			journal := call(h, "GET", "/__admin/requests", "").Body.String()
			if want := fmt.Sprintf(`"meta":{"total":%d`, i+1); !strings.Contains(journal, want) {
				t.Errorf("%s: when the answer is sent, the journal is %s", prefer, journal)
			}
		}}
		h.ServeHTTP(w, r)
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

// The journal names what the operation ignored: first the query parameters, and
// then the members of the body, each sorted.
func TestIgnored(t *testing.T) {
	s := start(t)
	for _, tt := range []struct {
		request, body string
		ignored       []string
	}{
		{"GET /v1/pets?limit=1&after=1&status=sold", "", nil},
		{"POST /v1/pets", newRex, nil},
		{"GET /v1/pets?stauts=sold&b&a=1&b=2&%61b=", "", []string{"a", "ab", "b", "stauts"}},
		{"GET /v1/pets?limit=x&Limit=1", "", []string{"Limit"}},
		{"GET /v1/pets/1?limit=1&after=1", "", []string{"after", "limit"}},
		{"GET /v1/store/orders?x", "", []string{"x"}},
		{
			"POST /v1/pets?z&limit=1",
			`{"status":"sold","id":7,"b":1,"Status":1,"name":"","a":1,"a":2,"categoryId":1}`,
			[]string{"limit", "z", "Status", "a", "b", "id"},
		},
		{"POST /v1/pets?x", `{"id":7}`, []string{"x", "id"}},
		{"POST /v1/pets?x", `{"id":7`, []string{"x"}},
		{"GET /v1/nothing?x", "", nil},
		{"BREW /v1/pets?x", "", nil},
	} {
		s.do(t, "DELETE /__admin/requests", "")
		s.do(t, tt.request, tt.body)
		equal(t, tt.request+" "+tt.body+": ignored", s.journal(t, 1)[0].Ignored, tt.ignored)
	}
}

// In Authorization, <API_KEY> stands for the key. In any other place, the key is
// shown.
func TestKeyIsHidden(t *testing.T) {
	for key, headers := range map[string]map[string]string{
		testKey: {
			"Bearer " + testKey:                 "Bearer <API_KEY>",
			"Basic " + testKey + ", " + testKey: "Basic <API_KEY>, <API_KEY>",
			testKey:                             "<API_KEY>",
			"Bearer other":                      "Bearer other",
		},
	} {
		s := command{key: key}.start(t)
		for header, want := range headers {
			s.do(t, "DELETE /__admin/requests", "")
			s.do(t, "GET /v1/pets?"+key, "", "Authorization: "+header, "X: "+key)
			e := s.journal(t, 1)[0]
			equal(t, header+": Authorization", e.Headers["Authorization"], want)
			equal(t, header+": another header", e.Headers["X"], key)
			equal(t, header+": the URL", e.URL, "/v1/pets?"+key)
		}
	}
}

// With total, the journal waits for that many requests. A reset and a stop end the
// wait.
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

	// After a DELETE, it waits for as many as without it.
	p := s.send(t, "GET /__admin/requests?total=5", "")
	s.do(t, "DELETE /__admin/requests", "")
	for range 5 {
		s.do(t, "GET /v1/pets", "")
	}
	checkTotal(t, p.wait(), 5)

	// No event announces that a request waits, so the test resets until it does not.
	p = s.send(t, "GET /__admin/requests?total=9", "")
	eventually(t, "a reset ends the wait", func() bool {
		s.reset(t, "")
		return len(p.response) > 0
	})
	checkTotal(t, p.wait(), 0)
	p = s.send(t, "GET /__admin/requests?total=9", "")
	s.stop()
	checkTotal(t, p.wait(), 0)
}

// checkTotal checks the total of a journal.
func checkTotal(t *testing.T, r response, total int) {
	t.Helper()
	equal(t, r.request+": status", r.status, 200)
	matches(t, r.request, r.body, fmt.Sprintf(`"meta":{"total":%d}`, total))
}

// The journal keeps the last 1,000 requests, and 4 MiB of their texts.
func TestJournalBounds(t *testing.T) {
	h := testHandler(t)
	journal := func() (urls []string, total int64) {
		var content struct {
			Requests []recorded
			Meta     struct{ Total int64 }
		}
		json.Unmarshal(call(h, "GET", "/__admin/requests", "").Body.Bytes(), &content)
		for _, e := range content.Requests {
			urls = append(urls, e.URL)
		}
		return urls, content.Meta.Total
	}
	for i := range 1003 {
		call(h, "GET", fmt.Sprint("/v1/pets?n=", i), "")
	}
	urls, total := journal()
	equal(t, "the total", total, 1003)
	equal(t, "the number of entries", len(urls), 1000)
	equal(t, "the first URL", urls[0], "/v1/pets?n=3")
	equal(t, "the last URL", urls[999], "/v1/pets?n=1002")

	// An entry counts all of its texts, and 100 bytes for each header and each
	// ignored name.
	const size = 60_000
	large := strings.Repeat("x", size)
	names := "?" + strings.Repeat("&x", size/100)[1:]
	for i := range size / 100 {
		names = strings.Replace(names, "&x", fmt.Sprintf("&x%04d", i), 1)
	}
	for name, send := range map[string]func(){
		"bodies": func() { call(h, "POST", "/v1/pets", large) },
		"URLs":   func() { call(h, "GET", "/v1/pets?limit="+large, "") },
		"headers": func() {
			r := httptest.NewRequest("GET", "/v1/pets", nil)
			r.Header.Set("Authorization", large)
			h.ServeHTTP(httptest.NewRecorder(), r)
		},
		"many headers": func() {
			r := httptest.NewRequest("GET", "/v1/pets", nil)
			for i := range size / 100 {
				r.Header.Set(fmt.Sprint("X", i), "")
			}
			h.ServeHTTP(httptest.NewRecorder(), r)
		},
	} {
		for range 100 {
			send()
		}
		urls, _ := journal()
		if n, most := len(urls), 4<<20/size; n > most || n < most-5 {
			t.Errorf("of 100 requests with %s, got %d entries, want some %d", name, n, most)
		}
		call(h, "GET", "/v1/pets", "") // is small, so all others may stay
		after, _ := journal()
		if len(after) < len(urls) {
			t.Errorf("%s: a small request has removed %d entries", name, len(urls)+1-len(after))
		}
	}
}

// With -log, the log has a line for each recorded request, without the headers.
func TestLog(t *testing.T) {
	s := program(t, "-log")
	s.do(t, "GET /v1/pets?limit=5", "")
	s.do(t, "GET /v1/pets/1?%0A=%22", "")
	s.send(t, "GET /v1", "", "Prefer: code=hangup").wait()
	s.do(t, "GET /v1", "", "Prefer: code=418, delay=0")
	s.do(t, "GET /v1/pets", "", observer)
	s.do(t, "GET /healthz", "")
	s.stop()
	log := regexp.MustCompile(`(?m)^time=\S+ `).ReplaceAllString(s.log.take(), "")
	equal(t, "the log", log, "a page for browsers is at "+s.url+`/
level=INFO msg=request method=GET url="/v1/pets?limit=5" status=200
level=INFO msg=request method=GET url="/v1/pets/1?%0A=%22" status=404 error="there is no pet 1"
level=INFO msg=request method=GET url=/v1 status=0 fault="code=hangup"
level=INFO msg=request method=GET url=/v1 status=418 error="simulated error, as requested" fault="code=418, delay=0"
level=INFO msg="stopping; a second signal ends the process at once" limit=10s
`)
}

// Seeds and resets.

// The pets of a seed keep their ids, and a pet without an id gets the next after
// the largest so far. A seed that is refused changes nothing.
func TestSeed(t *testing.T) {
	s := start(t, newRex)
	pet := func(id string) string { return `{"name":"a","categoryId":1,"id":` + id + "}" }
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
		{
			seed:    "[" + newIda,
			message: "the seed is not JSON: unexpected end of JSON input, at byte 30" + wantArray,
		},
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
		s.wantFault(t, `"delay":"0","matched":0,"applied":0`)
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

// A request that is in flight during a reset belongs to the state before it.
func TestInFlightAtReset(t *testing.T) {
	s := start(t, newRex)
	late := s.startCreate(t)
	s.setFault(t, "delay=30")
	held := s.send(t, "POST /v1/pets", newIda)
	s.waitHeld(t, 1)
	s.reset(t, "[]")
	s.setFault(t, "code=418")
	held.wait().want(t, 201, ida)
	late.write(newIda)
	late.read("POST").want(t, 201, strings.Replace(ida, "2", "3", 1))

	s.wantJournal(t)
	s.wantFault(t, `"code":"418","matched":0,"applied":0`)
	s.do(t, "GET /v1/pets", "", observer).want(t, 200, "[]")
}

// Unusual, broken and incomplete HTTP.

func TestRawHTTP(t *testing.T) {
	const (
		head    = " HTTP/1.1\nHost: petstore\nAuthorization: Bearer " + testKey + "\n"
		get     = "GET /v1/pets" + head
		post    = "POST /v1/pets" + head
		chunked = post + "Transfer-Encoding: chunked\n"
		created = `{"id":1,"name":"Ida","categoryId":2}`
		last    = "Connection: close\n\n"
	)
	chunk := func(data string) string { return fmt.Sprintf("%x\n%s\n", len(data), data) }
	spaces := strings.Repeat(" ", 65_536-len(newIda))
	tooLarge := errorText(413, "request_entity_too_large", bodyTooLarge)
	cutShort := errorText(400, "invalid_body", badChunks)
	type answer struct {
		status int
		body   string
	}
	for _, tt := range []struct {
		name    string
		send    string
		closes  bool // whether the client closes its sending half
		answers []answer
	}{
		{
			name:    "pipelining, and a GET with a body",
			send:    get + "\n" + get + "Content-Length: 2\n\n{}" + get + last,
			answers: []answer{{200, "[]"}, {200, "[]"}, {200, "[]"}},
		},
		{
			name:    "64 KiB",
			send:    post + "Content-Length: 65536\n" + last + newIda + spaces,
			answers: []answer{{201, created}},
		},
		{
			name:    "64 KiB in chunks",
			send:    chunked + last + chunk(newIda[:5]) + chunk(newIda[5:]+spaces) + chunk(""),
			answers: []answer{{201, created}},
		},
		{
			name:    "a byte more in chunks",
			send:    chunked + "\n" + chunk(newIda+spaces+" "),
			answers: []answer{{413, tooLarge}},
		},
		{
			name:    "a byte more with Expect",
			send:    post + "Expect: 100-continue\nContent-Length: 65537\n\n",
			answers: []answer{{413, tooLarge}},
		},
		{
			name:    "Expect",
			send:    post + "Expect: 100-continue\nContent-Length: 29\n" + last + newIda,
			answers: []answer{{100, ""}, {201, created}},
		},
		{name: "bad chunk", send: chunked + "\nx\n", answers: []answer{{400, cutShort}}},
		{
			name:    "body cut short",
			send:    post + "Content-Length: 30\n\n" + newIda,
			closes:  true,
			answers: []answer{{400, cutShort}},
		},
		{name: "HTTP/1.0", send: "GET /v1/pets HTTP/1.0\nAuthorization: Bearer " + testKey + "\n\n", answers: []answer{{200, "[]"}}},
		{
			name:    "a URL as target, without a path",
			send:    strings.Replace(get, "/v1/pets", "http://petstore", 1) + last,
			answers: []answer{{404, ""}},
		},
		{name: "CONNECT", send: strings.Replace(get, "GET /v1/pets", "CONNECT petstore:80", 1) + last, answers: []answer{{404, ""}}},
		{name: "OPTIONS *", send: "OPTIONS * HTTP/1.1\nHost: petstore\n" + last, answers: []answer{{204, ""}}},
		{
			name:    "headers of 64 KiB",
			send:    get + "X: " + strings.Repeat("x", 65_000) + "\n" + last,
			answers: []answer{{200, "[]"}},
		},
		{
			name:    "headers over 64 KiB",
			send:    get + "X: " + strings.Repeat("x", 65_536) + "\n\n",
			answers: []answer{{431, ""}},
		},
		{name: "no HTTP", send: "x\n\n", answers: []answer{{400, ""}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := start(t)
			c := s.dial(t)
			c.write(tt.send)
			if tt.closes {
				c.CloseWrite()
			}
			for _, want := range tt.answers {
				r := c.read("GET")
				equal(t, "status", r.status, want.status)
				if want.body != "" {
					r.want(t, want.status, want.body)
				}
			}
			c.CloseWrite() // or net/http waits for the rest of a body that was refused
			if rest, err := io.ReadAll(c.in); len(rest) > 0 || err != nil {
				t.Errorf("after the answers: got %.300q and the error %v, want the end", rest, err)
			}
			wantPets := 0
			if tt.answers[len(tt.answers)-1].status == 201 {
				wantPets = 1
			}
			equal(t, "the number of pets", len(s.do(t, "GET /v1/pets", "").ids(t)), wantPets)
		})
	}
}

// A body that does not arrive in time is a 408. It uses up no fault, and getPet
// does not say that it is deprecated.
func TestSlowBody(t *testing.T) {
	s := startWith(t, seedOf(t, newRex), func(srv *http.Server) { srv.ReadTimeout = 100 * time.Millisecond })
	c := s.dial(t)
	c.write("GET /v1/pets/1 HTTP/1.1\nHost: petstore\nAuthorization: Bearer " + testKey + "\nPrefer: code=418\nContent-Length: 3\n\n")
	r := c.read("GET")
	r.wantError(t, 408, "request_timeout", "the body did not arrive in time")
	r.wantHeader(t, "Deprecation", "")
	r.wantHeader(t, "Preference-Applied", "")
}

// The limits for slow clients. A response may take three waits of 30 seconds.
func TestTimeouts(t *testing.T) {
	srv := newServer(newService(testKey, seedOf(t), 0, nil, slog.Default()))
	equal(t, "the time for headers", srv.ReadHeaderTimeout, 5*time.Second)
	equal(t, "the time for a request", srv.ReadTimeout, 15*time.Second)
	equal(t, "the time for a response", srv.WriteTimeout, 2*time.Minute)
	equal(t, "the time of an idle connection", srv.IdleTimeout, 2*time.Minute)
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
// shows it in a curl line and a link.
func TestKeyOfRun(t *testing.T) {
	longest := "!~" + strings.Repeat("k", 4094)
	s := command{key: longest}.start(t)
	s.do(t, "GET /v1/pets", "").want(t, 200, "[]")
	equal(t, "standard error with a key", s.log.take(), "")

	s, other := command{}.start(t), command{}.start(t)
	notice := s.log.take()
	s.key = regexp.MustCompile("[0-9a-f]{32}").FindString(notice)
	equal(t, "standard error without a key", notice,
		"PETSTORE_API_KEY is not set, so this run has a key of its own:\n\n"+
			"    curl -H 'Authorization: Bearer "+s.key+"' "+s.url+"/v1/pets\n"+
			"    "+s.url+"/#key="+s.key+"\n\n")
	s.do(t, "GET /v1/pets", "").want(t, 200, "[]")
	other.key = s.key
	other.do(t, "GET /v1/pets", "").wantError(t, 401, "invalid_token", "")
}

// A command line that is wrong is reported on one line, with what would be right.
func TestCommandLine(t *testing.T) {
	other := program(t)
	const (
		hint     = "; -h lists the flags"
		duration = "it must be a duration from 0s to 30s, such as 150ms or 2s" + hint
		badKey   = "PETSTORE_API_KEY must be 1 to 4096 visible ASCII characters: no space, no control character"
		noAddr   = "-addr has neither a host nor a port; write -addr 127.0.0.1:8080, or -addr :8080 for all interfaces"
		badAddr  = ".*; -addr must be host:port, .*; -addr 127.0.0.1:0 takes any free port"
		noFile   = "; -seed takes the path of a JSON file with an array of pets"
	)
	for _, tt := range []struct {
		name string
		key  string
		args []string
		code int
		want string // a regular expression
	}{
		{name: "unknown flag", args: []string{"-x\ny"}, code: 2, want: ".*-x y" + hint},
		{name: "control characters", args: []string{"-a\u009bb\x7fc"}, code: 2, want: ".*-a b c" + hint},
		{name: "argument", args: []string{"-stdin", "stray\r\none"}, code: 2, want: "unexpected argument stray one" + hint},
		{name: "-version", args: []string{"-version", "stray"}, code: 2, want: "unexpected argument stray" + hint},
		{name: "-log", args: []string{"-log=perhaps"}, code: 2, want: ".*perhaps.*: it must be true or false" + hint},
		{name: "negative -latency", args: []string{"-latency", "-1ns"}, code: 2, want: ".*-1ns.*" + duration},
		{name: "large -latency", args: []string{"-latency", "30.001s"}, code: 2, want: ".*30.001s.*" + duration},
		{name: "-latency without a unit", args: []string{"-latency", "5"}, code: 2, want: `.*"5".*` + duration},

		{name: "space in the key", key: "k k", args: []string{"-addr", "127.0.0.1:0"}, code: 1, want: badKey},
		{name: "control in the key", key: "k\x7f", args: []string{"-addr", "127.0.0.1:0"}, code: 1, want: badKey},
		{name: "key in Latin-1", key: "k\xe9", args: []string{"-addr", "127.0.0.1:0"}, code: 1, want: badKey},
		{name: "long key", key: strings.Repeat("k", 4097), args: []string{"-addr", "127.0.0.1:0"}, code: 1, want: badKey},
		{name: "empty -addr", args: []string{"-addr", ""}, code: 1, want: noAddr},
		{name: "-addr of a colon", args: []string{"-addr", ":"}, code: 1, want: noAddr},
		{name: "-addr without a port", args: []string{"-addr", "8081"}, code: 1, want: badAddr},
		{name: "-addr of nobody", args: []string{"-addr", "192.0.2.1:80"}, code: 1, want: badAddr}, // RFC 5737
		{
			name: "-addr in use",
			args: []string{"-addr", strings.TrimPrefix(other.url, "http://")},
			code: 1,
			want: "listen tcp " + strings.TrimPrefix(other.url, "http://") + badAddr,
		},
		{name: "no seed", args: []string{"-seed", "no\n.json"}, code: 1, want: ".*no .json: no such file or directory" + noFile},
		{name: "seed is a folder", args: []string{"-seed", "api"}, code: 1, want: ".*api: is a directory" + noFile},
		{
			name: "bad seed",
			args: []string{"-seed", tempFile(t, `[{"name":"a"}]`)},
			code: 1,
			want: `\S+pets.json: pet 1: categoryId is missing; it must be an integer`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := command{key: tt.key, args: tt.args}.output()
			equal(t, "the exit code", code, tt.code)
			equal(t, "standard output", stdout, "")
			matches(t, "standard error", stderr, "^petstore: "+tt.want+"\n$")
		})
	}
	for _, latency := range []string{"0s", "30s"} {
		code, _, stderr := command{args: []string{"-latency", latency, "-version"}}.output()
		equal(t, "the exit code and standard error", fmt.Sprint(code, stderr), "0")
	}
}

func TestVersion(t *testing.T) {
	code, stdout, stderr := command{args: []string{"-version"}}.output()
	equal(t, "the exit code", code, 0)
	equal(t, "standard output", stdout, "1.0.0\n")
	equal(t, "standard error", stderr, "")
}

// The help names the flags, with the defaults that do not depend on the run.
func TestHelp(t *testing.T) {
	code, stdout, help := command{args: []string{"-h"}}.output()
	equal(t, "the exit code", code, 0)
	equal(t, "standard output", stdout, "")
	for _, part := range []string{
		"PUT /__admin/fault", "GET /__admin/requests", "at /, ", "/openapi.json", "PETSTORE_API_KEY", "1 to 4096",
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

// Away from a terminal, standard error has only what went wrong.
func TestStandardErrorStaysEmpty(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := newProcess()
	cmd.Stderr = w
	p := startProcess(t, cmd)
	w.Close()
	for _, request := range []string{"GET /v1/pets", "POST /v1/pets", "BREW /v1", "PUT /__admin/fault", "POST /__admin/reset"} {
		p.do(t, request, "", "Prefer: code=html")
	}
	for _, code := range []string{"hangup", "rst", "lost", "truncate"} {
		p.send(t, "GET /v1/pets", "", "Prefer: code="+code).wait()
	}
	p.Process.Signal(syscall.SIGTERM)
	p.wantExit(t, 0)
	text, _ := io.ReadAll(r)
	equal(t, "standard error", string(text), "")
}

// At a terminal, requests are logged, unless -log=false is given.
func TestLogAtTerminal(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	equal(t, "the null device is a terminal", isTerminal(null), false)

	for _, args := range [][]string{{"-addr", "127.0.0.1:0"}, {"-addr", "127.0.0.1:0", "-log=false"}} {
		// What is written to this side of a pseudo-terminal is echoed to it.
		terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
		if err != nil {
			t.Skip("there is no /dev/ptmx")
		}
		defer terminal.Close()
		code := command{key: testKey, args: args, stdin: nil}.run(stopped(), io.Discard, terminal)
		equal(t, "the exit code", code, 0)
		terminal.WriteString("end\n")
		line, err := bufio.NewReader(terminal).ReadString('\n')
		if isLogged := strings.HasPrefix(line, "a page for browsers"); err != nil || isLogged != (len(args) == 2) {
			t.Errorf("petstore %q: got the line %q on the terminal, and the error %v", args, line, err)
		}
	}
}

// The service starts, answers and stops even if standard error is closed.
func TestStandardErrorClosed(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	cmd := newProcess("-log")
	cmd.Stderr = w
	p := startProcess(t, cmd)
	w.Close()
	p.do(t, "GET /v1/pets", "").want(t, 200, "[]")
	p.do(t, "GET /v1/pets", "").want(t, 200, "[]")
	p.Process.Signal(syscall.SIGTERM)
	p.wantExit(t, 0)
}

// With -stdin, the service stops when its standard input ends. Without it,
// standard input does not matter.
func TestStdin(t *testing.T) {
	stdin, w := io.Pipe()
	s := command{key: testKey, stdin: stdin, args: []string{"-stdin", "-log"}}.start(t)
	io.WriteString(w, "more\n") // returns when it has been read
	s.do(t, "GET /healthz", "").want(t, 200, `{"status":"ok"}`)
	w.Close()
	s.waitRefused(t)
	s.stop()
	matches(t, "the log", s.log.take(), "(?s)standard input has ended.*stopping; ")

	ignoring := command{key: testKey, stdin: strings.NewReader("")}.start(t)
	ignoring.do(t, "GET /v1/pets", "").want(t, 200, "[]")
}

// At a signal, the requests in flight are answered. A second signal ends the
// process at once. SIGINT works even if it was ignored at the start, as it is
// after "&" in a script.
func TestSignals(t *testing.T) {
	for _, tt := range []struct {
		signal os.Signal
		twice  bool
	}{
		{syscall.SIGTERM, false},
		{os.Interrupt, false},
		{syscall.SIGTERM, true},
		{os.Interrupt, true},
	} {
		t.Run(fmt.Sprint(tt.signal, " twice=", tt.twice), func(t *testing.T) {
			cmd := newProcess("-log")
			ignoring := []string{"sh", "-c", `trap "" INT; exec "$0" "$@"`}
			cmd.Path, cmd.Args = "/bin/sh", append(ignoring, cmd.Args...)
			p := startProcess(t, cmd)
			c := p.startCreate(t)
			p.Process.Signal(tt.signal)
			p.waitRefused(t) // or two signals could arrive as one
			if tt.twice {
				p.Process.Signal(tt.signal)
				p.wantExit(t, 1)
				return
			}
			c.write(newIda)
			c.read("POST").want(t, 201, `{"id":1,"name":"Ida","categoryId":2}`)
			p.wantExit(t, 0)
			matches(t, "the log", p.log.take(), `(?s)stopping; .*limit=10s\n.*msg=request .*status=201\n$`)
		})
	}
}

// A signal that arrives while the seed is read stops the service, too.
func TestStopWhileSeeding(t *testing.T) {
	seed, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := newProcess("-seed", "/dev/fd/3")
	cmd.ExtraFiles = []*os.File{seed}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	w.WriteString(strings.Repeat(" ", 1_000_000)) // more than a pipe holds
	cmd.Process.Signal(syscall.SIGTERM)
	w.WriteString("[]")
	w.Close()
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }()
	equal(t, "the end of the process", receive(t, "the end of the process", ended), nil)
}

// A request in flight has ten seconds when the service stops.
func TestStopTimeout(t *testing.T) {
	t.Parallel()
	s := program(t)
	c := s.startCreate(t)
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

// A listener that fails ends the service.
func TestListenerFails(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	err = serve(ln, newService(testKey, seedOf(t), 0, nil, slog.Default()), io.Discard)
	if !errors.Is(err, net.ErrClosed) {
		t.Errorf("got the error %v, want %v", err, net.ErrClosed)
	}
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

			home := t.TempDir()
			curlrc := filepath.Join(home, ".curlrc")
			if err := os.WriteFile(curlrc, []byte("silent\nshow-error\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			const end = "\nprintf '\\036'\n" // separates the outputs
			cmd := exec.Command(shell, options...)
			cmd.Dir = home
			cmd.Env = append(os.Environ(), "CURL_HOME="+home, "no_proxy=127.0.0.1", "PS1=", "PS2=")
			cmd.Stdin = strings.NewReader(strings.Join(commands, end) + end)
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
	for _, match := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)\n```\n").FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, match[1])
	}
	return blocks
}

// README shows parts of the examples.
func TestReadmeQuotesExamples(t *testing.T) {
	unindented := func(text string) string {
		return regexp.MustCompile(`(?m)^[ \t]+`).ReplaceAllString(text, "")
	}
	for language, program := range map[string]string{"go": "client_test.go", "js": "client.test.mjs"} {
		blocks := codeBlocks(readFile(t, "README.md"), language)
		if len(blocks) == 0 {
			t.Errorf("README.md has no code in %s", language)
		}
		for _, block := range blocks {
			if !strings.Contains(unindented(readFile(t, "testdata/examples/"+program)), unindented(block)) {
				t.Errorf("README.md has this code, which is not in %s:\n%s", program, block)
			}
		}
	}
}

// The examples pass, and leave no petstore behind.
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
		{"node --test client.test.mjs", "node --test --version", ` pass [1-9](.*\n)*.* fail 0\n`},
		{"python3 -W error -m unittest test_client.py", "python3 -c pass", `Ran [1-9].*\n\nOK\n`},
		{"java ClientTest.java", "javac --version", `^(ok - .*\n)+$`},
	} {
		t.Run(tt.command, func(t *testing.T) {
			t.Parallel()
			args, needs := strings.Fields(tt.command), strings.Fields(tt.needs)
			_, err := exec.LookPath(args[0])
			if err := errors.Join(err, exec.Command(needs[0], needs[1:]...).Run()); err != nil {
				t.Skip(err)
			}

			// A copy of the examples, with a petstore two folders above.
			root := t.TempDir()
			folder := filepath.Join(root, "testdata", "examples")
			if err := os.MkdirAll(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			programs, _ := filepath.Glob("testdata/examples/*.*")
			for _, program := range programs {
				text := []byte(readFile(t, program))
				if err := os.WriteFile(filepath.Join(root, program), text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(os.Args[0], filepath.Join(root, "petstore")); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Dir = folder
			cmd.Env = append(os.Environ(), "TMPDIR="+root, "no_proxy=127.0.0.1", childVariable+"=1")
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
	Paths      map[string]map[string]json.RawMessage // operations by method, and servers
	Components struct{ Schemas map[string]schema }
}

type operation struct {
	OperationID string
	Parameters  []struct {
		Name, In string
		Schema   schema
	}
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
// path of the service.
func readOpenAPI(t *testing.T) (api description, operations map[string]operation) {
	t.Helper()
	if err := json.Unmarshal([]byte(readFile(t, "api/openapi.json")), &api); err != nil {
		t.Fatal(err)
	}
	operations = map[string]operation{}
	for path, item := range api.Paths {
		if item["servers"] == nil { // those of the whole document
			path = "/v1" + path
		}
		for method, text := range item {
			if method == "servers" {
				continue
			}
			var op operation
			if err := json.Unmarshal(text, &op); err != nil {
				t.Fatal(err)
			}
			operations[strings.ToUpper(method)+" "+path] = op
		}
	}
	return api, operations
}

// resolve returns the schema that a schema refers to, with what allOf joins.
func (api description) resolve(s schema) schema {
	if name, found := strings.CutPrefix(s.Ref, "#/components/schemas/"); found {
		return api.resolve(api.Components.Schemas[name])
	}
	all := schema{Properties: map[string]schema{}, Required: slices.Clone(s.Required)}
	for _, part := range append(s.AllOf, schema{Properties: s.Properties}) {
		part = func() schema {
			if part.Ref != "" || part.AllOf != nil {
				return api.resolve(part)
			}
			return part
		}()
		for name, property := range part.Properties {
			all.Properties[name] = property
		}
		all.Required = append(all.Required, part.Required...)
	}
	s.Properties, s.Required = all.Properties, all.Required
	return s
}

// api/openapi.json has the routes of the service, with their query parameters and
// what these allow.
func TestOpenAPI(t *testing.T) {
	api, operations := readOpenAPI(t)
	undescribed := []string{"GET /v1/store/orders", "GET /healthz", "GET /openapi.json", "GET /{$}"}
	routed := map[string]bool{}
	for _, rt := range routes {
		if slices.Contains(undescribed, rt.pattern) {
			continue
		}
		routed[rt.pattern] = true
		op := operations[rt.pattern]
		equal(t, rt.pattern+": the name", op.OperationID, rt.operation)
		var names []string
		for _, p := range op.Parameters {
			if p.In == "query" {
				names = append(names, p.Name)
			}
		}
		equal(t, rt.pattern+": the parameters", sorted(names), sorted(rt.parameters))
	}
	equal(t, "the operations", keys(operations), keys(routed))

	s := start(t, manyPets(150)...)
	for pattern, op := range operations {
		for _, p := range op.Parameters {
			if p.In != "query" {
				continue
			}
			t.Run(op.OperationID+" "+p.Name, func(t *testing.T) {
				s.reset(t, array(manyPets(150)...))
				// A fault needs a code, and a code that is a status allows every parameter.
				target := pattern + "?"
				if op.OperationID == "setFault" && p.Name != "code" {
					target += "code=503&"
				}
				send := func(value any) response { return s.do(t, fmt.Sprint(target, p.Name, "=", value), "") }
				checkParameter(t, api.resolve(p.Schema), p.Name, send, s.do(t, target, ""))
			})
		}
	}

	// The codes of a fault are those of FaultCode.
	pattern := regexp.MustCompile(api.Components.Schemas["FaultCode"].Pattern)
	samples := append(faultWords(), "400", "499", "599", "503,lost,rst", "503,503",
		"", "399", "600", "5030", "x", "lost,", ",lost", "lost,x", "LOST", "lost lost")
	for _, code := range samples {
		r := s.do(t, "PUT /__admin/fault?code="+strings.ReplaceAll(code, " ", "+"), "")
		equal(t, fmt.Sprintf("FaultCode allows %q", code), pattern.MatchString(code), r.status == 200)
	}
}

// checkParameter checks that the service accepts what a schema allows, and
// refuses what it does not. standard is the response without the parameter.
func checkParameter(t *testing.T, schema schema, name string, send func(any) response, standard response) {
	for _, value := range schema.Enum {
		equal(t, value+": status", send(value).status, 200)
		equal(t, value+"x: status", send(value+"x").status, 400)
	}
	if schema.Type != "integer" && schema.Type != "number" {
		return
	}
	for _, tt := range []struct {
		bound *float64
		step  int64 // from the bound to a value that is not allowed
	}{
		{schema.Minimum, -1},
		{schema.Maximum, 1},
	} {
		if tt.bound != nil {
			bound := int64(*tt.bound)
			equal(t, fmt.Sprint(bound, ": status"), send(bound).status, 200)
			equal(t, fmt.Sprint(bound+tt.step, ": status"), send(bound+tt.step).status, 400)
		} else if name != "total" { // which would wait
			extreme := int64(math.MaxInt64)
			if tt.step < 0 {
				extreme = math.MinInt64
			}
			equal(t, fmt.Sprint(extreme, ": status"), send(extreme).status, 200)
		}
	}
	if schema.Default != nil {
		equal(t, "the response to the default", send(schema.Default).body, standard.body)
	}
}

// Answers have the members that api/openapi.json gives them.
func TestSchemas(t *testing.T) {
	api, _ := readOpenAPI(t)
	s := start(t, newIda, newRex)
	s.do(t, "POST /v1/pets?x", `{"id":1}`, "Prefer: delay=0")
	s.do(t, "GET /v1/pets", "")
	journal := s.do(t, "GET /__admin/requests", "").body
	s.setFault(t, "code=503&delay=0&answer-delay=0&retry-after=7&operation=createPet&skip=99&times=2")
	fault := s.do(t, "GET /__admin/fault", "").body
	for _, tt := range []struct {
		schema string
		all    string   // an answer with all members
		least  string   // an answer with the required members only
		at     []string // the place of the schema's object in the answers
	}{
		{schema: "Pet", all: rex, least: ida},
		{schema: "Error", all: errorText(400, "x", "x"), least: errorText(400, "x", "x")},
		{schema: "Fault", all: fault, least: "{}"},
		{schema: "Journal", all: journal, least: journal},
		{
			schema: "JournalEntry",
			all:    strings.TrimSuffix(strings.Split(journal, "\n")[1], ","),
			least:  strings.Split(journal, "\n")[2],
		},
	} {
		var all, least map[string]any
		if err := errors.Join(json.Unmarshal([]byte(tt.all), &all), json.Unmarshal([]byte(tt.least), &least)); err != nil {
			t.Fatal(err)
		}
		described := api.resolve(api.Components.Schemas[tt.schema])
		equal(t, tt.schema+": members", keys(described.Properties), keys(all))
		equal(t, tt.schema+": required members", sorted(described.Required), keys(least))
	}
	equal(t, "required of NewPet", sorted(api.Components.Schemas["NewPet"].Required), []string{"categoryId", "name"})
}

// The reference names everything that there is.
func TestReference(t *testing.T) {
	_, operations := readOpenAPI(t)
	api, _ := readOpenAPI(t)
	reference := words(readFile(t, "api/reference.md"))
	var names []string
	for pattern, op := range operations {
		if strings.Contains(pattern, " /v1") {
			names = append(names, op.OperationID)
		} else {
			_, path, _ := strings.Cut(pattern, " ")
			names = append(names, path)
		}
		for _, p := range op.Parameters {
			names = append(names, p.Name)
		}
	}
	names = append(names, faultWords()...)
	names = append(names, keys(api.Components.Schemas["Fault"].Properties)...)
	names = append(names, keys(api.Components.Schemas["JournalEntry"].Properties)...)
	_, _, help := command{args: []string{"-h"}}.output()
	for _, match := range regexp.MustCompile(`(?m)^  (-\w+)`).FindAllStringSubmatch(help, -1) {
		names = append(names, match[1])
	}
	for _, name := range names {
		if !reference[name] {
			t.Errorf("api/reference.md does not have %s", name)
		}
	}

	page := words(readFile(t, "api/index.html"))
	for _, code := range faultWords() {
		if !page[code] {
			t.Errorf("the page does not have %s", code)
		}
	}
}

// words returns the words of a text, such as listPets, answer-delay, -seed and
// /__admin/fault.
func words(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range regexp.MustCompile(`[\w/-]+`).FindAllString(text, -1) {
		set[word] = true
	}
	return set
}

// faultWords returns the codes of a fault that are not a status.
func faultWords() []string {
	return keys(faultKinds)
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
		for range 600 {
			journal = append(journal, "")
			recorded := &journal[len(journal)-1]
			status := statuses[random.Intn(len(statuses))]
			switch random.Intn(20) {
			case 0:
				s.reset(t, "")
				pets, journal = nil, nil
			case 1, 2, 3, 4, 5, 6, 7:
				p := pet{int64(len(pets) + 1), names[random.Intn(len(names))], random.Int63() - random.Int63(), status}
				pets = append(pets, p)
				s.do(t, "POST /v1/pets", jsonText(p)).want(t, 201, jsonText(p))
				*recorded = "POST /v1/pets 201"
			case 8:
				s.do(t, "POST /v1/pets", `{"name":"x"}`).wantError(t, 400, "invalid_body", "categoryId is missing")
				*recorded = "POST /v1/pets 400"
			case 9, 10, 11:
				id := random.Intn(len(pets) + 2)
				request := fmt.Sprint("GET /v1/pets/", id)
				r := s.do(t, request, "")
				if 1 <= id && id <= len(pets) {
					r.want(t, 200, jsonText(pets[id-1]))
				} else {
					r.wantError(t, 404, "not_found", fmt.Sprint("there is no pet ", id))
				}
				*recorded = fmt.Sprint(request, " ", r.status)
			default:
				limit, after := random.Intn(100)+1, random.Intn(len(pets)+1)
				request := fmt.Sprintf("GET /v1/pets?limit=%d&after=%d", limit, after)
				if status != "" {
					request += "&status=" + status
				}
				page := []string{}
				for _, p := range pets[after:] {
					if len(page) < limit && (status == "" || p.Status == status) {
						page = append(page, jsonText(p))
					}
				}
				s.do(t, request, "").want(t, 200, array(page...))
				*recorded = request + " 200"
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
	f.Add([]byte(`{"name":"` + strings.Repeat("[", 9999) + `","x":` + strings.Repeat("[", 9999) + strings.Repeat("]", 9999) + "}"))
	h := testHandler(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		var given map[string]any
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.UseNumber()
		dec.Decode(&given)
		name, isString := given["name"].(string)
		number, _ := given["categoryId"].(json.Number)
		category, err := number.Int64()
		status, hasStatus := given["status"]
		isValid := len(body) <= 65_536 && json.Valid(body) && utf8.Valid(body) && isString && err == nil &&
			(!hasStatus || status == "available" || status == "pending" || status == "sold")

		w := call(h, "POST", "/v1/pets", string(body))
		if (w.Code == 201) != isValid {
			t.Fatalf("%q: got %d %s, want it accepted: %v", body, w.Code, w.Body, isValid)
		}
		if !isValid {
			return
		}
		want := map[string]any{"name": name, "categoryId": json.Number(fmt.Sprint(category))}
		if hasStatus {
			want["status"] = status
		}
		var got map[string]any
		dec = json.NewDecoder(w.Body)
		dec.UseNumber()
		dec.Decode(&got)
		delete(got, "id")
		equal(t, fmt.Sprintf("the pet of %q", body), got, want)
		if w.Header().Get("Location") == "/v1/pets/10000" {
			call(h, "POST", "/__admin/reset", "")
		}
	})
}

// TestLong has what takes long: a million pets, a seed that does not fit into the
// store, a whole stall, and a whole wait for the journal.
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
	for name, send := range map[string]func(*testing.T, *server) connection{
		"a stall": func(t *testing.T, s *server) connection {
			return s.sendRaw(t, "GET /v1/pets", "Prefer: code=stall")
		},
		"a wait for the journal": func(t *testing.T, s *server) connection {
			return s.sendRaw(t, "GET /__admin/requests?total=9", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			c := send(t, program(t))
			c.SetDeadline(begin.Add(time.Minute))
			c.read("GET")
			if took := time.Since(begin); took < 30*time.Second {
				t.Errorf("it took %v, want 30 s", took)
			}
		})
	}
}

func BenchmarkListPets(b *testing.B) {
	benchmark(b, "GET", "/v1/pets", "", 200)
}

func BenchmarkListPetsByStatus(b *testing.B) {
	benchmark(b, "GET", "/v1/pets?limit=100&status=sold", "", 200)
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
	key  string // the API key, for do and send
	log  *buffer
	stop func() // ends the service, or only its waits for one that start has started
}

// response is what came back for a request.
type response struct {
	request string // what was sent, for messages
	status  int    // 0 if there was no response
	header  http.Header
	body    string // the part of it that came
	err     error  // of the connection; nil for a whole response
}

// pending is a request that was sent.
type pending struct {
	response chan response
	leave    context.CancelFunc // closes the connection of the client
}

// wait returns the response.
func (p pending) wait() response {
	return <-p.response // the client gives up after patience
}

// patience is how long a test waits for what must happen. It is shorter than a
// wait of the service (30 s), so a test fails if such a wait does not end early.
const patience = 20 * time.Second

// client sends each request on a connection of its own. On a connection that was
// kept alive, net/http would repeat requests that a fault has closed.
var client = &http.Client{
	Timeout: patience,
	Transport: &http.Transport{
		DisableKeepAlives:     true,
		DisableCompression:    true,
		ExpectContinueTimeout: patience,
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// do sends a request, such as "GET /v1/pets", and returns the response. The
// headers have the form "Prefer: code=503". The key is added to them, unless
// Authorization is given; the header noKey is not sent at all.
func (s *server) do(t testing.TB, request, body string, headers ...string) response {
	t.Helper()
	r := s.send(t, request, body, headers...).wait()
	if r.err != nil {
		t.Fatalf("%s: %v", r.request, r.err)
	}
	return r
}

// noKey is a header for do and send that keeps them from sending the key.
const noKey = "Authorization:"

// send is do for a request whose response may be late or never come.
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
	}
	if r.Header.Get("Authorization") == "" {
		r.Header.Del("Authorization")
	}
	sent := strings.TrimSpace(request + " " + strings.Join(append([]string{body}, headers...), " "))
	p := pending{response: make(chan response, 1), leave: cancel}
	go func() {
		resp, err := client.Do(r)
		p.response <- read(fmt.Sprintf("%.300s", sent), resp, err)
	}()
	return p
}

// read reads a response to its end.
func read(request string, resp *http.Response, err error) response {
	if err != nil {
		return response{request: request, err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return response{
		request: request,
		status:  resp.StatusCode,
		header:  resp.Header,
		body:    string(body),
		err:     err,
	}
}

// want checks the status, and a body that is JSON and a newline, or empty.
func (r response) want(t testing.TB, status int, body string) {
	t.Helper()
	contentType := ""
	if body != "" {
		body += "\n"
		contentType = "application/json"
	}
	if r.status != status || r.body != body || r.err != nil {
		t.Errorf("%s:\n got %d %.2000s (error: %v)\nwant %d %.2000s",
			r.request, r.status, r.body, r.err, status, body)
	}
	r.wantHeader(t, "Content-Type", contentType)
	if body != "" {
		r.wantHeader(t, "Content-Length", strconv.Itoa(len(body)))
	}
}

// wantError checks that the body is an Error, and that its message begins with
// message.
func (r response) wantError(t testing.TB, status int, code, message string) {
	t.Helper()
	var e struct{ Message string }
	json.Unmarshal([]byte(r.body), &e)
	r.want(t, status, errorText(status, code, e.Message))
	if e.Message == "" || !strings.HasPrefix(e.Message, message) {
		t.Errorf("%s: the message\n got %s\nwant %s", r.request, e.Message, message)
	}
}

// wantHeader checks a header, or for "" that it is not there.
func (r response) wantHeader(t testing.TB, name, value string) {
	t.Helper()
	var want []string
	if value != "" {
		want = []string{value}
	}
	equal(t, r.request+": "+name, r.header.Values(name), want)
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

// errorText returns an Error as JSON.
func errorText(status int, code, message string) string {
	return fmt.Sprintf(`{"code":"%s","message":%s,"status":%d}`, code, jsonText(message), status)
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
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(s.url, "http://"), patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	return connection{conn.(*net.TCPConn), bufio.NewReader(conn)}
}

// write sends text, in which a line ends with LF in place of CR LF. It ignores
// errors, as the service may answer before it has read everything.
func (c connection) write(text string) {
	io.WriteString(c, strings.ReplaceAll(text, "\n", "\r\n"))
}

// read reads the response to a request with this method.
func (c connection) read(method string) response {
	resp, err := http.ReadResponse(c.in, &http.Request{Method: method})
	return read("raw "+method, resp, err)
}

// sendRaw sends a request with the key and this header on a connection of its
// own.
func (s *server) sendRaw(t testing.TB, request, header string) connection {
	t.Helper()
	c := s.dial(t)
	c.write(request + " HTTP/1.1\nHost: petstore\nAuthorization: Bearer " + s.key + "\n" + header + "\n\n")
	return c
}

// startCreate sends the headers of a create, and returns when the service waits
// for the body, which is newIda.
func (s *server) startCreate(t testing.TB) connection {
	t.Helper()
	header := fmt.Sprintf("Expect: 100-continue\nContent-Length: %d", len(newIda))
	c := s.sendRaw(t, "POST /v1/pets", header)
	if r := c.read("POST"); r.status != 100 {
		t.Fatalf("headers of a create: got %d and the error %v, want 100", r.status, r.err)
	}
	return c
}

// Helpers: the fault and the journal.

// recorded is an entry of the journal.
type recorded struct {
	Time    time.Time
	Method  string
	URL     string
	Headers map[string]string
	Body    string
	Status  int
	Seconds float64
	Answer  string
	Error   string
	Fault   string
	Ignored []string
}

// journal waits until total requests have been recorded, and returns the journal.
func (s *server) journal(t testing.TB, total int) []recorded {
	t.Helper()
	r := s.do(t, fmt.Sprint("GET /__admin/requests?total=", total), "")
	var journal struct {
		Requests []recorded
		Meta     struct{ Total int }
	}
	err := json.Unmarshal([]byte(r.body), &journal)
	if err != nil || journal.Meta.Total < total {
		t.Fatalf("%s: got %.2000s\nwant %d requests", r.request, r.body, total)
	}
	return journal.Requests
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

// setFault sets the standing fault.
func (s *server) setFault(t testing.TB, query string) {
	t.Helper()
	if r := s.do(t, "PUT /__admin/fault?"+query, ""); r.status != 200 {
		t.Fatalf("%s: got %d %s", r.request, r.status, r.body)
	}
}

// wantFault checks the standing fault, without the braces.
func (s *server) wantFault(t testing.TB, members string) {
	t.Helper()
	s.do(t, "GET /__admin/fault", "").want(t, 200, "{"+members+"}")
}

// waitHeld waits until the standing fault holds n requests.
func (s *server) waitHeld(t testing.TB, n int) {
	t.Helper()
	want := fmt.Sprintf(`"applied":%d}`, n)
	eventually(t, want, func() bool {
		return strings.Contains(s.do(t, "GET /__admin/fault", "").body, want)
	})
}

// reset replaces the pets. The seed is a JSON array, or empty for those of the
// start.
func (s *server) reset(t testing.TB, seed string) {
	t.Helper()
	s.do(t, "POST /__admin/reset", seed).want(t, 204, "")
}

// Helpers: starting a service.

// start serves these pets until the test ends. The service must log nothing.
func start(t testing.TB, pets ...string) *server {
	t.Helper()
	return startWith(t, seedOf(t, pets...), func(*http.Server) {})
}

// startWith is start with a seed and a change of the HTTP server.
func startWith(t testing.TB, seed *store, change func(*http.Server)) *server {
	t.Helper()
	stopping := make(chan struct{})
	s := &server{
		key:  testKey,
		log:  new(buffer),
		stop: sync.OnceFunc(func() { close(stopping) }),
	}
	handler := slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelWarn})
	ts := httptest.NewUnstartedServer(nil)
	ts.Config = newServer(newService(testKey, seed, 0, stopping, slog.New(handler)))
	change(ts.Config)
	ts.Start()
	s.url = ts.URL
	t.Cleanup(func() {
		s.stop()
		ts.Close()
		equal(t, "the log", s.log.take(), "")
	})
	return s
}

// testHandler returns the handler of a service with these pets, for tests and
// benchmarks that would measure the network otherwise.
func testHandler(t testing.TB, pets ...string) http.Handler {
	t.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return newService(testKey, seedOf(t, pets...), 0, nil, log).handler()
}

// call sends a request to a handler.
func call(h http.Handler, method, target, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+testKey)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
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

// addRoute adds a route under GET /v1/pets/added until the test ends. As routes
// are global, the test must not be parallel.
func addRoute(t testing.TB, do func(*exchange) error) {
	all := routes
	t.Cleanup(func() { routes = all })
	routes = append(slices.Clip(all), route{pattern: "GET /v1/pets/added", do: do})
}

// command is a command line of petstore.
type command struct {
	args  []string
	key   string    // PETSTORE_API_KEY
	stdin io.Reader // empty if it is nil
}

// run runs the command in the process of the test, and returns its exit code.
func (c command) run(ctx context.Context, stdout, stderr io.Writer) int {
	getenv := func(name string) string {
		if name == "PETSTORE_API_KEY" {
			return c.key
		}
		return ""
	}
	if c.stdin == nil {
		c.stdin = strings.NewReader("")
	}
	return report(run(ctx, c.args, getenv, c.stdin, stdout, stderr), stderr)
}

// output runs a command that does not serve, and returns what it prints.
func (c command) output() (code int, stdout, stderr string) {
	var out, errs buffer
	code = c.run(stopped(), &out, &errs) // should it serve, it stops at once
	return code, out.take(), errs.take()
}

// start runs the command on a free port until the test ends. The log is its
// standard error.
func (c command) start(t testing.TB) *server {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c.args = append([]string{"-addr", "127.0.0.1:0"}, c.args...)
	stdout, w := io.Pipe()
	log := new(buffer)
	exit := make(chan int, 1)
	go func() {
		code := c.run(ctx, w, log)
		w.Close()
		exit <- code
	}()
	out := bufio.NewReader(stdout)
	s := &server{url: readURL(t, out, log), key: c.key, log: log}
	s.stop = sync.OnceFunc(func() {
		cancel()
		more, _ := io.ReadAll(out)
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
func readURL(t testing.TB, stdout *bufio.Reader, log *buffer) string {
	t.Helper()
	line, _ := stdout.ReadString('\n')
	url, found := strings.CutSuffix(line, "/v1\n")
	if !found || !regexp.MustCompile(`^http://127\.0\.0\.1:[1-9]\d*$`).MatchString(url) {
		t.Fatalf("standard output: got %q, want the base URL; standard error:\n%s", line, log.take())
	}
	return url
}

// process is petstore in a process of its own, which is killed when the test
// ends.
type process struct {
	*server
	*exec.Cmd
	stdout *bufio.Reader
}

// childVariable is the environment variable with which the test binary is
// petstore.
const childVariable = "PETSTORE_TEST_CHILD"

// newProcess returns a command for petstore in a process of its own.
func newProcess(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append([]string{"-addr", "127.0.0.1:0", "-stdin"}, args...)...)
	cmd.Env = append(os.Environ(), childVariable+"=1", "PETSTORE_API_KEY="+testKey)
	return cmd
}

// startProcess starts what newProcess has returned, and waits for its base URL.
// Its standard input stays open until the test binary ends.
func startProcess(t testing.TB, cmd *exec.Cmd) process {
	t.Helper()
	log := new(buffer)
	if cmd.Stderr == nil {
		cmd.Stderr = log
	}
	_, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	out := bufio.NewReader(stdout)
	return process{&server{url: readURL(t, out, log), key: testKey, log: log}, cmd, out}
}

// wantExit waits for the end of the process, and checks its exit code.
func (p process) wantExit(t testing.TB, code int) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		more, _ := io.ReadAll(p.stdout)
		equal(t, "standard output after the base URL", string(more), "")
		p.Wait()
		close(ended)
	}()
	receive(t, "the end of the process", ended)
	equal(t, "the exit code", p.ProcessState.ExitCode(), code)
}

// waitRefused waits until the service accepts no connections.
func (s *server) waitRefused(t testing.TB) {
	t.Helper()
	eventually(t, "connections are refused", func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
}

// TestMain runs the tests, or petstore for newProcess and the examples.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		main()
	}
	// In UTC, local times in the journal would look right.
	time.Local = time.FixedZone("east", 9*60*60)
	flag.Set("test.parallel", "16") // as parallel tests only wait
	flag.Parse()
	os.Exit(m.Run())
}

// Helpers: the rest.

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

// concurrently calls f with 0 to n-1 at the same time, and waits for the end of
// all calls. f must not end the test.
func concurrently(n int, f func(i int)) {
	begin := make(chan struct{})
	var wg sync.WaitGroup
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

// stopped returns a context that is done.
func stopped() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// half returns the half of a body that truncate and stall send.
func half(body string) string {
	return body[:len(body)/2]
}

// sorted returns a sorted copy of a list.
func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

// array returns a JSON array.
func array(elements ...string) string {
	return "[" + strings.Join(elements, ",") + "]"
}

// numbers returns first, first+step, … up to last.
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
	slices.Sort(list)
	return list
}

// jsonText returns a value as JSON, as the service writes it.
func jsonText(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
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

// buffer holds what a service writes. It is safe for concurrent use.
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
