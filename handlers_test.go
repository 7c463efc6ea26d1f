package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
// The arguments of do are the method and the target, the body, and headers. Helpers
// of many tests are at the end of the file. The tests of the operations and of their
// errors know what a pet is; the others send the pets below.

// Rex and Ida, as they are added.
const (
	newRex = `{"name":"Rex","categoryId":7,"status":"sold"}`
	newIda = `{"name":"Ida","categoryId":2}`
)

// Rex and Ida, as they are returned if their ids are 1 and 2.
var (
	rex = withID(1, newRex)
	ida = withID(2, newIda)
)

// withID returns a pet with an id as its first member.
func withID(id int64, pet string) string {
	return fmt.Sprintf(`{"id":%d,%s`, id, strings.TrimPrefix(pet, "{"))
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

const (
	testKey  = "a-key-of-the-tests"
	observer = "Petstore-Observer: test" // a header that keeps a request out of the journal

	// simulated is the message of a simulated Error.
	simulated = "simulated error, as requested"

	// gatewayPage is the body of the fault html.
	gatewayPage = "<html><head><title>502 Bad Gateway</title></head><body>502 Bad Gateway</body></html>\n"
)

// teapot is the body of a simulated 418.
var teapot = errorText(418, "im_a_teapot", simulated) + "\n"

// tooLarge is a body that is a byte too large.
var tooLarge = strings.Repeat("x", 65_537)

// The contract, section 4.1: list pets.

func TestListPets(t *testing.T) {
	s := start(t, manyPets(150)...) // every tenth is sold
	for _, tt := range []struct {
		query string
		ids   []int64
		next  string // the query of the next page
	}{
		{"", numbers(1, 20, 1), "after=20"},
		{"limit=1", numbers(1, 1, 1), "limit=1&after=1"},
		{"limit=100", numbers(1, 100, 1), "limit=100&after=100"},
		{"after=129", numbers(130, 149, 1), "after=149"},
		{"after=130", numbers(131, 150, 1), ""},
		{"after=150", nil, ""},
		{"after=9223372036854775807", nil, ""},
		{"after=-9223372036854775808&limit=2", numbers(1, 2, 1), "limit=2&after=2"},
		{"status=sold", numbers(10, 150, 10), ""},
		{"status=sold&limit=4&after=100", numbers(110, 140, 10), "limit=4&status=sold&after=140"},
		{"status=sold&limit=5&after=100", numbers(110, 150, 10), ""},
		{"status=pending", nil, ""},
		{"status=available&limit=1", numbers(1, 1, 1), "limit=1&status=available&after=1"},
		{"limit=%32&Limit=9&x=y", numbers(1, 2, 1), "limit=2&after=2"},
	} {
		t.Run(tt.query, func(t *testing.T) {
			r := s.do(t, "GET /v1/pets?"+tt.query, "")
			equal(t, "status", r.status, 200)
			equal(t, "ids", r.ids(t), tt.ids)
			link := ""
			if tt.next != "" {
				link = "</v1/pets?" + tt.next + `>; rel="next"`
			}
			r.wantHeader(t, "Link", link)
		})
	}

	start(t).do(t, "GET /v1/pets", "").want(t, 200, "[]")
	start(t, newIda).do(t, "GET /v1/pets?status=available", "").want(t, 200, "[]") // Ida has no status
}

// The contract, section 4.2: add a pet.

func TestCreatePet(t *testing.T) {
	for _, tt := range []struct{ body, pet string }{
		{newRex, newRex},
		{newIda, newIda},
		{"\t{ \"categoryId\" : -0,\n\"name\":\"\"} ", `{"name":"","categoryId":0}`},
		{`{"name":"a","categoryId":9223372036854775807}`, `{"name":"a","categoryId":9223372036854775807}`},
		{`{"name":"a","categoryId":-9223372036854775808}`, `{"name":"a","categoryId":-9223372036854775808}`},

		// Unknown members are ignored, and the last of duplicate members wins.
		{`{"id":77,"x":null,"name":"a","categoryId":1,"Name":5,"STATUS":"x"}`, `{"name":"a","categoryId":1}`},
		{`{"name":5,"name":"a","categoryId":"x","categoryId":1}`, `{"name":"a","categoryId":1}`},

		// A lone surrogate becomes U+FFFD.
		{
			`{"n\u0061me":"\u003c&\/\ud83d\uDE00😀>\u0000\n\"\\","categoryId":1}`,
			`{"name":"<&/😀😀>\u0000\n\"\\","categoryId":1}`,
		},
		{`{"name":"\ud800","categoryId":1}`, `{"name":"` + "\ufffd" + `","categoryId":1}`},
	} {
		t.Run(tt.body, func(t *testing.T) {
			s := start(t)
			for _, id := range []int64{1, 2} {
				pet := withID(id, tt.pet)
				path := fmt.Sprint("/v1/pets/", id)
				r := s.do(t, "POST /v1/pets", tt.body)
				r.want(t, 201, pet)
				r.wantHeader(t, "Location", path)
				s.do(t, "GET "+path, "").want(t, 200, pet)
			}
		})
	}
}

// A pet whose headers say that it is not JSON in UTF-8 is refused. For other requests,
// these headers do not matter.
func TestMediaTypes(t *testing.T) {
	const ofJSON = "Content-Type: application/json"
	for headers, accepted := range map[string]bool{
		ofJSON: true,
		`Content-Type: Application/JSON; Charset="UTF-8"; x=y`: true,
		"Content-Type:":                                                 true,
		ofJSON + "\nContent-Encoding: Identity":                         true,
		"Content-Type: text/plain":                                      false,
		"Content-Type: application/jsonx":                               false,
		"Content-Type: application/json; =":                             false,
		ofJSON + "; charset=latin1":                                     false,
		ofJSON + "\nContent-Type: a/b":                                  false,
		ofJSON + "\nContent-Encoding: gzip":                             false,
		ofJSON + "\nContent-Encoding: identity\nContent-Encoding: gzip": false,
	} {
		t.Run(headers, func(t *testing.T) {
			s := start(t)
			list := strings.Split(headers, "\n")
			s.do(t, "GET /v1/pets", "", list...).want(t, 200, "[]")
			s.do(t, "POST /__admin/reset", "", list...).want(t, 204, "")
			create := s.do(t, "POST /v1/pets", newRex, list...)
			if accepted {
				create.want(t, 201, rex)
			} else {
				create.wantError(t, 415, "unsupported_media_type", "")
			}
			s.do(t, "POST /__admin/reset", array(newIda, newIda), list...).want(t, 204, "")
			s.do(t, "GET /v1/pets/2", "").want(t, 200, ida)
		})
	}
}

// The contract, section 4.3: get a pet.

// The headers of getPet say that it is deprecated. They are on all of its responses,
// but for the page of a gateway.
func TestGetPet(t *testing.T) {
	s := start(t, newRex)
	for _, tt := range []struct {
		target, header string
		status         int
		answer         string // a part of the body
	}{
		{"1", "", 200, rex},
		{"%31?x", "", 200, rex},
		{"2", "", 404, "there is no pet 2"},
		{"-0", "", 404, "there is no pet 0"},
		{"-9223372036854775808", "", 404, "there is no pet -9223372036854775808"},
		{"x", "", 400, "petId is 'x'; it must be an integer"},
		{"01", "", 400, "petId is '01';"},
		{"1%2F", "", 400, "petId is '1/';"},
		{"9223372036854775808", "", 400, "from -9223372036854775808 to 9223372036854775807"},
		{"1?%zz", "", 400, "%zz"},
		{"1", "Prefer: code=418", 418, simulated},
		{"1", noKey, 401, "unauthorized"},
	} {
		t.Run(tt.target+tt.header, func(t *testing.T) {
			r := s.do(t, "GET /v1/pets/"+tt.target, "", tt.header)
			equal(t, "status", r.status, tt.status)
			equal(t, r.body+" has "+tt.answer, strings.Contains(r.body, tt.answer), true)
			r.wantHeader(t, "Deprecation", "@1795132800")
			r.wantHeader(t, "Sunset", "Thu, 05 Dec 2030 00:00:00 GMT")
			r.wantHeader(t, "Link", `</v1/pets>; rel="successor-version"`)
		})
	}
	for _, other := range []response{
		s.do(t, "GET /v1/pets/1", "", "Prefer: code=html"),
		s.do(t, "GET /v1/pets", ""),
	} {
		for _, name := range []string{"Deprecation", "Sunset", "Link"} {
			other.wantHeader(t, name, "")
		}
	}
}

// HEAD has the status and the headers of GET, and no body.
func TestHead(t *testing.T) {
	s := start(t, manyPets(60)...)
	for _, target := range []string{
		"/v1/pets", "/v1/pets?limit=0", "/v1/pets/7", "/v1/pets/77", "/v1/store/orders", "/v1/x",
		"/__admin/fault", "/__admin/requests?total=0", "/healthz", "/openapi.json", "/",
	} {
		t.Run(target, func(t *testing.T) {
			get := s.do(t, "GET "+target, "")
			head := s.do(t, "HEAD "+target, "")
			get.header.Del("Date")
			head.header.Del("Date")
			equal(t, "status", head.status, get.status)
			equal(t, "headers", head.header, get.header)
			equal(t, "body", head.body, "")
		})
	}
}

// When clients add pets at the same time, each pet gets an id of its own, and the
// lists are in order afterwards.
func TestConcurrentCreates(t *testing.T) {
	h := start(t).service.handler()
	const clients, each = 8, 200
	concurrently(clients, func(i int) {
		for n := range each {
			name := fmt.Sprint(i, "-", n)
			w := call(h, "POST", "/v1/pets", `{"name":"`+name+`","categoryId":1,"status":"sold"}`)
			again := call(h, "GET", cmp.Or(w.Header().Get("Location"), "/"), "")
			list := call(h, "GET", "/v1/pets?status=sold", "")
			call(h, "GET", "/v1/pets/1", "") // which all clients read
			got := w.Body.String()
			if w.Code != 201 || !strings.Contains(got, name) || again.Body.String() != got || list.Code != 200 {
				t.Errorf("create %s: got %d %s, then %s, and a list with %d", name, w.Code, got, again.Body, list.Code)
				return
			}
		}
	})
	if t.Failed() {
		return
	}
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
	for _, tt := range []struct {
		authorization string
		code          string // of the Error, or empty if the key is right
	}{
		{"Bearer " + testKey, ""},
		{"bEARER   " + testKey, ""},

		{"", "unauthorized"},
		{"Bearer", "unauthorized"},
		{testKey, "unauthorized"},
		{"Basic " + testKey, "unauthorized"},
		{"Bearer" + testKey, "unauthorized"},

		{"Bearer " + testKey[1:], "invalid_token"},
		{"Bearer " + testKey[:5], "invalid_token"},
		{"Bearer " + testKey + "x", "invalid_token"},
		{"Bearer " + strings.ToUpper(testKey), "invalid_token"},
		{"Bearer " + testKey + ", Bearer " + testKey, "invalid_token"},
	} {
		t.Run(tt.authorization, func(t *testing.T) {
			r := s.do(t, "GET /v1/pets", "", "Authorization: "+tt.authorization)
			if tt.code == "" {
				r.want(t, 200, "[]")
			} else {
				r.wantError(t, 401, tt.code, "")
			}
			r.wantHeader(t, "WWW-Authenticate", challenges[tt.code])
		})
	}
	right := "Authorization: Bearer " + testKey
	s.do(t, "GET /v1/pets", "", right, right).wantError(t, 401, "unauthorized", "one header")
}

// Everything under /v1 and /__admin but OPTIONS needs the key. It is checked once the
// body has been read, and before anything else. Other paths do not need it.
func TestKeyIsNeeded(t *testing.T) {
	s := start(t)
	for _, request := range []string{
		"GET /v1", "GET /v1/", "GET /v1/pets", "HEAD /v1/pets", "BREW /v1/pets?%zz", "GET /v1//pets",
		"POST /v1/pets", "GET /v1/nothing", "GET /v1/store/orders", "GET /%76%31/pets",
		"GET /__admin", "GET /__admin/nothing", "POST /__admin/reset", "PUT /__admin/fault?code=x",
		"DELETE /__admin/requests", "GET /%5F_admin/fault",
	} {
		t.Run(request, func(t *testing.T) {
			r := s.do(t, request, "x", noKey, "Prefer: code=418", observer)
			equal(t, "status", r.status, 401)
		})
	}
	for request, status := range map[string]int{
		"PUT /healthz": 405, "GET /v1x": 404, "GET /__adminx": 404, "GET /nothing": 404,
	} {
		t.Run(request, func(t *testing.T) {
			equal(t, "status", s.do(t, request, "", noKey).status, status)
		})
	}
}

// The page, its files and the description are sent as they are. The page knows the
// key, so its headers protect it from other pages.
func TestPageFiles(t *testing.T) {
	s := start(t)
	for path, file := range map[string]struct{ name, contentType string }{
		"/":             {"page/index.html", "text/html; charset=utf-8"},
		"/page.css":     {"page/page.css", "text/css; charset=utf-8"},
		"/page.js":      {"page/page.js", "text/javascript; charset=utf-8"},
		"/openapi.json": {"api/openapi.json", "application/json"},
	} {
		t.Run(path, func(t *testing.T) {
			r := s.do(t, "GET "+path, "", noKey)
			equal(t, "status", r.status, 200)
			equal(t, "body", r.body, readFile(t, file.name))
			r.wantHeader(t, "Content-Type", file.contentType)
			if path == "/openapi.json" {
				return
			}
			r.wantHeader(t, "Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; "+
				"img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
			r.wantHeader(t, "X-Content-Type-Options", "nosniff")
			r.wantHeader(t, "Referrer-Policy", "no-referrer")
			r.wantHeader(t, "Cross-Origin-Opener-Policy", "same-origin")
		})
	}
	s.do(t, "GET /favicon.ico", "", noKey).want(t, 204, "")
	s.do(t, "GET /healthz", "", noKey).want(t, 200, `{"status":"ok"}`)
}

// A page of any origin may read every answer, with the headers that it needs. A
// preflight is answered before anything else.
func TestCORS(t *testing.T) {
	s := start(t)
	for _, request := range []string{
		"GET /v1/pets", "PATCH /v1/pets", "OPTIONS /v1/pets", "GET /v1/../x", "GET /", "PUT /__admin/fault",
	} {
		for _, header := range []string{"Authorization: x", "Prefer: code=html", "Prefer: code=503"} {
			t.Run(request+" "+header, func(t *testing.T) {
				r := s.do(t, request, "{", header, "Origin: null")
				r.wantHeader(t, "Access-Control-Allow-Origin", "*")
				r.wantHeader(t, "Access-Control-Expose-Headers",
					"Link, Location, Allow, Deprecation, Sunset, WWW-Authenticate, Preference-Applied, Retry-After")
				r.wantHeader(t, "Access-Control-Allow-Credentials", "")
			})
		}
	}
	s.do(t, "GET /v1/pets", "").wantHeader(t, "Access-Control-Allow-Origin", "")

	s.setFault(t, "code=503")
	for _, target := range []string{"/v1/pets", "/v1/nothing/", "/x/../y", "/__admin/reset", "/healthz", "/"} {
		t.Run("OPTIONS "+target, func(t *testing.T) {
			r := s.do(t, "OPTIONS "+target, "", noKey, "Prefer: code=503", "Origin: http://example.com")
			r.want(t, 204, "")
			r.wantHeader(t, "Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
			r.wantHeader(t, "Access-Control-Allow-Headers",
				"Authorization, Content-Type, Prefer, Petstore-Observer, *")
			r.wantHeader(t, "Access-Control-Max-Age", "600")
		})
	}
	s.wantFault(t, `{"code":"503","matched":0,"applied":0,"held":0}`)
}

// The contract, section 7: errors.

// A wrong parameter or body is a 400 whose message says what is wrong. It changes
// nothing, and uses no id.
func TestRefused(t *testing.T) {
	s := start(t, newRex)
	const list, create, fault, reset = "GET /v1/pets?", "POST /v1/pets", "PUT /__admin/fault?", "POST /__admin/reset"
	pet := func(id string) string { return `{"name":"a","categoryId":1,"id":` + id + "}" }
	forty := strings.Repeat("é", 40)
	const utf16 = "[\x00{\x00}\x00]\x00"
	for _, tt := range []struct{ request, body, message string }{
		{list + "limit=0", "", "limit is '0'; it must be an integer from 1 to 100"},
		{list + "limit=", "", "limit is '';"},
		{list + "limit=5.0", "", "limit is '5.0';"},
		{list + "limit=%2B5", "", "limit is '+5';"},
		{list + "limit=05", "", "limit is '05';"},
		{list + "limit=" + forty, "", "limit is '" + forty + "';"},
		{list + "limit=" + forty + "x", "", "limit is '" + forty + "…';"},
		{list + "limit=%ff", "", "limit is '\ufffd';"},
		{list + "limit=5&limit=5", "", "limit is given 2 times"},
		{list + "after=x", "", "after is 'x'; it must be an integer"},
		{list + "after=9223372036854775808", "", "from -9223372036854775808 to 9223372036854775807"},
		{list + "status=", "", "status is '';"},
		{list + "status=Sold", "", "status is 'Sold'; it must be available, pending or sold"},
		{list + "%zz", "", `"%zz"`},
		{list + "limit=5;status=sold", "", "semicolon"},

		{create, "", `the body is empty; it must be a JSON object, such as {"name":"Rex","categoryId":7}`},
		{create, " null ", "the body is null;"},
		{create, "[]", "the body is [];"},
		{create, `{"name":"a"`, "the body is not JSON: unexpected end of JSON input, at byte 11;"},
		{create, newIda + "{}", fmt.Sprintf("at byte %d;", len(newIda)+1)},
		{create, `{"name":"","categoryId":1,"x":"` + "\xff\"}", "UTF-8"},
		{create, "{}", "name is missing; it must be a string"},
		{create, `{"Name":"a","NAME":"a","categoryId":1}`, "name is missing;"},
		{create, `{"name":5,"categoryId":1}`, "name is 5;"},
		{create, `{"name":null,"categoryId":1}`, "name is null;"},
		{create, `{"name":"a","categoryid":1}`, "categoryId is missing; it must be an integer"},
		{create, `{"name":"a","categoryId":null}`, "categoryId is null;"},
		{create, `{"name":"a","categoryId":"1"}`, `categoryId is "1";`},
		{create, `{"name":"a","categoryId":5e0}`, `categoryId is 5e0;`},
		{create, `{"name":"a","categoryId":9223372036854775808}`, "from -9223372036854775808 to"},
		{create, `{"name":"a","categoryId":1,"status":"Sold"}`, `status is "Sold"; it must be available, pending or sold`},
		{create, `{"name":"a","categoryId":1,"status":""}`, `status is "";`},
		{create, `{"name":"a","categoryId":1,"status":null}`, "status is null;"},
		{create, `{"name":"a","categoryId":1,"status":"null"}`, `status is "null";`},

		// Of several errors, it is always the same one that is reported.
		{list + "status=x&after=x&limit=x", "", "limit is 'x';"},
		{list + "status=x&after=x", "", "after is 'x';"},
		{list + "limit=x&status=sold&status=sold", "", "status is given 2 times"},
		{list + "status=sold&status=sold&limit=1&limit=1", "", "limit is given 2 times"},
		{create, `{"status":1,"categoryId":"x","name":1}`, "name is 1;"},

		{fault, "", "code, delay or answer-delay must be given"},
		{fault + "code=x", "", "code is 'x'; it must be a status from 400 to 599, ok, hangup, rst, "},
		{fault + "code=503,,503", "", "code is '';"},
		{fault + "code=503,%20lost", "", "code is ' lost';"},
		{fault + "code=503,lost&times=2", "", "times cannot be given with a list"},
		{fault + "code=lost,drip&retry-after=7", "", "retry-after needs a status"},
		{fault + "delay=1&retry-after=7", "", "retry-after needs a status"},
		{fault + "delay=x", "", "delay is 'x'; it must be a number of seconds from 0 to 30"},
		{fault + "delay=NaN", "", "delay is 'NaN';"},
		{fault + "delay=30.01", "", "delay is '30.01';"},
		{fault + "delay=-0", "", "delay is '-0';"},
		{fault + "delay=%2B5", "", "delay is '+5';"},
		{fault + "delay=1_0", "", "delay is '1_0';"},
		{fault + "delay=0x1p2", "", "delay is '0x1p2';"},
		{fault + "delay=1e-05", "", "delay is '1e-05';"},
		{fault + "delay=05", "", "delay is '05';"},
		{fault + "delay=.5", "", "delay is '.5';"},
		{fault + "delay=5.", "", "delay is '5.';"},
		{fault + "answer-delay=", "", "answer-delay is '';"},
		{fault + "code=503&retry-after=1.5", "", "retry-after is '1.5'; it must be an integer from 0 to 3600"},
		{fault + "code=lost&retry-after=x", "", "retry-after is 'x';"},
		{fault + "code=503&operation=reset", "", "operation is 'reset'; it must be listPets, createPet"},

		// Under /__admin, an unknown parameter is refused, so that a GET in which -X PUT
		// was forgotten fails, and a body that would have no effect, too.
		{"GET /__admin/fault?z&x&code=503&y", "", "GET /__admin/fault does not take the parameter 'code';"},
		{"GET /__admin/fault?code=503", "", "-X PUT"},
		{"DELETE /__admin/requests?after=1", "", "it takes no parameters"},
		{"GET /__admin/requests?limit=1", "", "the parameter 'limit'; it takes the query parameters after, total, waiting"},
		{"GET /__admin/requests?total=x", "", "total is 'x';"},
		{"GET /__admin/requests?waiting=-1", "", "waiting is '-1'; it must be an integer from 0 to"},
		{"PUT /__admin/fault?code=503", "{}", "does not take a body"},
		{"DELETE /__admin/requests", "{}", "does not take a body"},

		{reset, " ", `the seed is empty; it must be a JSON array, such as [{"name":"Rex","categoryId":7}]`},
		{reset, "null\n", "the seed is null;"},
		{reset, "{}", "the seed is {};"},
		{reset, "\xef\xbb\xbf[]", "the seed begins with a byte order mark"},
		{reset, "\xff\xfe" + utf16, "the seed begins with a byte order mark"},
		{reset, utf16, "is in UTF-16; save it as UTF-8"},
		{reset, "\x00" + utf16, "is in UTF-16; save it as UTF-8"},
		{reset, "[1", "the seed is not JSON: unexpected end of JSON input, at byte 2;"},
		{reset, "[5]", "pet 1: the pet is 5; it must be a JSON object"},
		{reset, array(newIda, `{"id":1}`), "pet 2: name is missing;"},
		{reset, array(newIda, `{"name":"a","categoryId":1,"stauts":"sold"}`), "pet 2: a pet has no member 'stauts'"},
		{reset, `[{"name":"` + "\xff" + `"}]`, "pet 1: the pet is not valid UTF-8"},
		{reset, array(pet("0")), "pet 1: id is 0; it must be an integer from 1 to 9223372036854775807"},
		{reset, array(pet("9223372036854775808")), "pet 1: id is 9223372036854775808;"},
		{reset, array(pet("4"), pet("9"), pet("4")), "pet 3: id 4 is taken by pet 1"},
	} {
		t.Run(tt.request+" "+tt.body, func(t *testing.T) {
			code := "invalid_parameter"
			if tt.body != "" || tt.request == create {
				code = "invalid_body"
			}
			s.setFault(t, "code=418&skip=1")
			s.do(t, tt.request, tt.body, "Prefer: delay=0").wantError(t, 400, code, tt.message)
			s.wantFault(t, `{"code":"418","skip":1,"matched":0,"applied":0,"held":0}`)
			s.do(t, "GET /v1/pets", "", observer).want(t, 200, array(rex))
		})
	}
	s.do(t, "POST /v1/pets", newIda).want(t, 201, ida)
}

// A path that does not exist is a 404 and never a redirect, even if it only needs
// cleaning. Under /v1/__admin, where clients of the base URL look for /__admin, it says
// where that is, and no fault is applied to it.
func TestNoSuchPath(t *testing.T) {
	s := start(t)
	for _, path := range []string{
		"/pets", "/v1x", "/v1", "/v1/", "/v1/pets/", "/v1/pets/1/", "/v1/pets/1/2",
		"//v1/pets", "/v1//pets", "/v1/./pets", "/v1/../v1/pets", "/v1/pets/.", "/x/../healthz",
		"/healthz/", "/__admin", "/__admin/", "/__admin/reset/", "/__admin//requests",
	} {
		for _, method := range []string{"GET", "POST", "BREW"} {
			t.Run(method+" "+path, func(t *testing.T) {
				r := s.do(t, method+" "+path+"?%zz", "{")
				r.wantError(t, 404, "not_found", "no such path: "+path+"; /openapi.json has the paths, such as /v1/pets")
				r.wantHeader(t, "Allow", "")
			})
		}
	}
	s.do(t, "GET /v1/store/orders", "").wantError(t, 501, "not_implemented", "")

	s.setFault(t, "code=418")
	for _, request := range []string{"PUT /v1/__admin/fault?code=503", "GET /v1/__admin"} {
		r := s.do(t, request, "", "Prefer: code=503")
		r.wantError(t, 404, "not_found", "; /__admin is beside /v1, and not below it")
	}
	s.wantFault(t, `{"code":"418","matched":0,"applied":0,"held":0}`)
}

// A path without this method is a 405 with the methods that its routes have.
func TestNoSuchMethod(t *testing.T) {
	s := start(t)
	paths := map[string][]string{}
	for _, rt := range routes() {
		method, path, _ := strings.Cut(rt.pattern, " ")
		path = strings.NewReplacer("{petId}", "1%2F2", "{$}", "").Replace(path)
		paths[path] = append(paths[path], method)
		if method == "GET" {
			paths[path] = append(paths[path], "HEAD")
		}
	}
	for path, methods := range paths {
		allowed := strings.Join(sorted(methods), ", ")
		for _, method := range []string{"PATCH", "BREW", "get"} {
			t.Run(method+" "+path, func(t *testing.T) {
				r := s.do(t, method+" "+path+"?%zz", "{")
				r.wantError(t, 405, "method_not_allowed", allowed+" only")
				r.wantHeader(t, "Allow", allowed)
				r.wantHeader(t, "Deprecation", "")
			})
		}
	}
}

// Only the first of several errors is reported. An error that comes before the
// fault does not use it up.
func TestErrorOrder(t *testing.T) {
	s := start(t)
	const wrongType = "Content-Type: x"
	for _, tt := range []struct {
		request, body string
		headers       []string
		status        int
		message       string
		applied       int // how often the fault was applied
	}{
		{"BREW /v1//pets?%zz", tooLarge, []string{noKey, "Prefer: code=x"}, 413, "65536 bytes", 0},
		{"BREW /v1//pets?%zz", "{", []string{noKey, "Prefer: code=x"}, 401, "API key", 0},
		{"BREW /v1//pets?%zz", "{", []string{"Prefer: code=x"}, 400, "code is 'x'", 0},
		{"BREW /v1//pets?%zz", "{", nil, 404, "no such path", 1},
		{"BREW /v1/pets?%zz", "{", nil, 405, "this path allows", 1},
		{"POST /v1/pets?%zz", "{", []string{wrongType}, 400, "query", 1},
		{"POST /v1/pets?x", "{", []string{wrongType}, 415, "Content-Type is 'x'", 1},
		{"POST /v1/pets", "{", nil, 400, "JSON", 1},
		{"GET /healthz", tooLarge, nil, 413, "65536 bytes", 0},
		{"POST /__admin/reset", tooLarge, nil, 413, "65536 bytes", 0},
	} {
		t.Run(fmt.Sprintf("%d %s %.2s", tt.status, tt.request, tt.body), func(t *testing.T) {
			s.setFault(t, "delay=0")
			r := s.do(t, tt.request, tt.body, append(tt.headers, "Expect: 100-continue")...)
			equal(t, "status", r.status, tt.status)
			if !strings.Contains(r.body, tt.message) {
				t.Errorf("got %s, want the message %s", r.body, tt.message)
			}
			s.wantFault(t, fmt.Sprintf(`{"delay":"0","matched":%d,"applied":%[1]d,"held":0}`, tt.applied))
		})
	}
}

// A panic, or an error that is not an Error, is a bug. Only the log has the
// details.
func TestBug(t *testing.T) {
	secret := errors.New("open /secret: permission denied")
	logged := map[string]string{"error": `"`, "panic": `\\ngoroutine .*handlers_test.go`} // with the stack
	for name, do := range map[string]func(*exchange) (answer, error){
		"error": func(*exchange) (answer, error) { return jsonAnswer(201, []byte("1")), secret },
		"panic": func(*exchange) (answer, error) { panic(secret) },
	} {
		t.Run(name, func(t *testing.T) {
			s := startWith(t, seedOf(t), func(s *server, srv *http.Server) {
				s.service.routes = append(s.service.routes, route{pattern: "GET /v1/pets/added", do: do})
				srv.Handler = s.service.handler()
			})
			r := s.do(t, "GET /v1/pets/added", "")
			r.wantError(t, 500, "internal_server_error", "the service has a bug")
			equal(t, "the answer has the secret", strings.Contains(r.body, "secret"), false)
			equal(t, "the error in the journal", s.journal(t, 1)[0].Error, r.message())
			matches(t, "the log", s.log.take(), `^.* level=ERROR .*`+secret.Error()+logged[name]+`.* url=/v1/pets/added\n$`)
			s.do(t, "GET /v1/pets", "").want(t, 200, "[]")
		})
	}
}

// The store takes 256 MiB of pets, each counted as its JSON and 128 bytes. A full
// store refuses creates, and still answers everything else. A create that is
// refused uses no id.
func TestFullStore(t *testing.T) {
	seed := seedOf(t, newRex)
	equal(t, "the size of Rex", seed.size, int64(len(rex))+128)
	seed.size = 256<<20 - int64(len(ida)) - 128
	s := startWith(t, seed, func(*server, *http.Server) {})
	oneByteMore := strings.Replace(newIda, "Ida", "Ida+", 1)
	for range 2 { // a reset restores the size, too
		s.do(t, "POST /v1/pets", oneByteMore).wantError(t, 507, "insufficient_storage", "268435456 bytes")
		s.do(t, "POST /v1/pets", newIda).want(t, 201, ida)
		s.do(t, "POST /v1/pets", newIda).wantError(t, 507, "insufficient_storage", "")
		s.do(t, "GET /v1/pets?status=sold", "").want(t, 200, array(rex))
		s.reset(t, "")
	}
}

// Petstore sets how often garbage is collected, unless its environment does.
func TestGarbageCollection(t *testing.T) {
	percent := debug.SetGCPercent(123)
	defer debug.SetGCPercent(percent)
	limit := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(limit)
	command{key: testKey, env: map[string]string{"GOGC": "123", "GOMEMLIMIT": "off"}}.start(t)
	equal(t, "the percentage of the environment", debug.SetGCPercent(123), 123)
	equal(t, "the memory limit of the environment", debug.SetMemoryLimit(-1), math.MaxInt64)
	program(t)
	equal(t, "the percentage", debug.SetGCPercent(123), 400)
	equal(t, "the memory limit", debug.SetMemoryLimit(-1), 456<<20)
}

// Faults for one request.

// What a client gets from a fault, and what the journal has: the answer and the
// error, even if the fault keeps them from the client. Rex is in the store.
func TestFaultCodes(t *testing.T) {
	const create, refused, head = "POST " + newIda, "POST []", "HEAD "
	list, added := array(rex)+"\n", ida+"\n"
	bad := start(t).do(t, "POST /v1/pets", "[]").body
	tested := map[string]bool{}
	for _, tt := range []struct {
		code, send string // the request: a method and a body
		status     int    // 0 if there is no answer
		body       string // the part of it that comes
		answer     string // in the journal
		err        error  // of the connection
	}{
		{"418", create, 418, teapot, teapot, nil},
		{"ok", create, 201, added, added, nil},
		{"hangup", create, 0, "", "", io.EOF},
		{"rst", create, 0, "", "", syscall.ECONNRESET},
		{"lost", create, 0, "", added, io.EOF},
		{"truncate", create, 201, half(added), added, io.ErrUnexpectedEOF},
		{"stall", create, 201, half(added), added, io.ErrUnexpectedEOF},
		{"drip", create, 201, added, added, nil},
		{"html", create, 502, gatewayPage, gatewayPage, nil},

		{"lost", refused, 0, "", bad, io.EOF},
		{"truncate", refused, 400, half(bad), bad, io.ErrUnexpectedEOF},
		{"html", refused, 502, gatewayPage, gatewayPage, nil},

		{"418", head, 418, "", teapot, nil},
		{"rst", head, 0, "", "", syscall.ECONNRESET},
		{"truncate", head, 0, "", list, io.EOF},
		{"stall", head, 0, "", list, io.EOF},
		{"drip", head, 200, "", list, nil},
		{"html", head, 502, "", gatewayPage, nil},
	} {
		tested[tt.code] = true
		performed := tt.code != "418" && tt.code != "hangup" && tt.code != "rst"
		problem := "" // a part of the error in the journal
		if tt.code == "418" {
			problem = simulated
		} else if tt.send == refused {
			problem = "the body is []"
		}
		for source, prefer := range map[string]string{"standing": "", "Prefer": "code=" + tt.code} {
			ok := t.Run(tt.code+" "+tt.send+"/"+source, func(t *testing.T) {
				s := start(t, newRex)
				if prefer == "" {
					s.setFault(t, "code="+tt.code)
				}
				method, body, _ := strings.Cut(tt.send, " ")
				p := s.send(t, method+" /v1/pets", body, "Prefer: "+prefer)
				e := s.journal(t, 1)[0]
				equal(t, "Ida was added", s.has(t, ida), performed && tt.send == create)
				s.reset(t, "") // ends a stall and a drip
				r := p.wait()
				equal(t, "status", r.status, tt.status)
				equal(t, "body", r.body, tt.body)
				if !errors.Is(r.err, tt.err) {
					t.Errorf("error: got %v, want %v", r.err, tt.err)
				}
				equal(t, "status in the journal", e.Status, tt.status)
				equal(t, "answer in the journal", e.Answer, tt.answer)
				equal(t, "fault in the journal", e.Fault, map[string]string{"code": tt.code})
				equal(t, "Preference-Applied in the journal", e.AnswerHeaders["Preference-Applied"], prefer)
				if !strings.HasPrefix(e.Error, problem) || (problem == "") != (e.Error == "") {
					t.Errorf("error in the journal: got %q, want %q", e.Error, problem)
				}
			})
			if !ok {
				return // the others are likely to wait for long
			}
		}
	}
	html := start(t).do(t, "GET /v1/pets", "", "Prefer: code=html")
	html.wantHeader(t, "Content-Type", "text/html")
	equal(t, "the codes of this test", keys(tested), sorted(append(faultWords(), "418")))
}

// A simulated Error is like a real one, but without the header Allow. Its Retry-After is
// as asked for, or else 1 for 429 and 503.
func TestSimulatedErrors(t *testing.T) {
	s := start(t)
	for _, tt := range []struct {
		prefer     string
		status     int
		code       string // of the Error
		retryAfter string
		challenge  string
	}{
		{"code=400", 400, "bad_request", "", ""},
		{"code=401", 401, "invalid_token", "", `Bearer realm="petstore", error="invalid_token"`},
		{"code=405", 405, "method_not_allowed", "", ""},
		{"code=429", 429, "too_many_requests", "1", ""},
		{"code=503", 503, "service_unavailable", "1", ""},
		{"code=599", 599, "status_599", "", ""},
		{"code=429, retry-after=0", 429, "too_many_requests", "0", ""},
		{"code=401, retry-after=2", 401, "invalid_token", "2", `Bearer realm="petstore", error="invalid_token"`},
		{"code=500, retry-after=3600", 500, "internal_server_error", "3600", ""},
	} {
		// Neither the path, the method, the query nor the body matters.
		for _, request := range []string{"GET /v1/pets", "BREW /v1//nothing?%zz"} {
			t.Run(tt.prefer+" "+request, func(t *testing.T) {
				r := s.do(t, request, "{", "Prefer: "+tt.prefer)
				r.wantError(t, tt.status, tt.code, simulated)
				r.wantHeader(t, "Retry-After", tt.retryAfter)
				r.wantHeader(t, "WWW-Authenticate", tt.challenge)
				r.wantHeader(t, "Allow", "")
				r.wantHeader(t, "Preference-Applied", tt.prefer)
			})
		}
	}
}

// Commas and semicolons separate preferences, the first of a name counts, and those
// with other names are ignored. Preference-Applied says what was read.
func TestPrefer(t *testing.T) {
	s := start(t)
	for _, tt := range []struct{ prefer, applied string }{
		{` CODE = "418"	; delay="0"`, "code=418, delay=0"},
		{",;=,code=418,;", "code=418"},
		{"code=418, code=500", "code=418"},
		{"code=418\nPrefer: code=500", "code=418"},
		{"code=418,lost", "code=418"},
		{`code="418,500"`, "code=418"},
		{
			"answer-delay=0.0;delay=0.010;retry-after=0;code=418",
			"code=418, delay=0.01, answer-delay=0, retry-after=0",
		},
		{"answer-delay=0.00001", "answer-delay=0.00001"},
		{"delay=0, retry-after=5", "delay=0"},
		{"wait=x, respond-async, skip=x, operation=x, times=x", ""},
		{"retry-after=x", ""},
	} {
		t.Run(tt.prefer, func(t *testing.T) {
			lines := strings.Split("Prefer: wait=1\nPrefer: "+tt.prefer, "\n")
			r := s.do(t, "GET /v1/pets", "", lines...)
			r.wantHeader(t, "Preference-Applied", tt.applied)
			if strings.Contains(tt.applied, "418") {
				r.wantError(t, 418, "im_a_teapot", simulated)
			} else {
				r.want(t, 200, "[]")
			}
		})
	}

	// Prefer has no effect outside of /v1.
	s.do(t, "GET /healthz", "", "Prefer: code=hangup").want(t, 200, `{"status":"ok"}`)
	s.do(t, "GET /__admin/fault", "", "Prefer: code=hangup").want(t, 200, "{}")
}

// The delays come before the answer. The journal has the time that they take together.
func TestDelays(t *testing.T) {
	s := start(t)
	for _, tt := range []struct {
		fault, prefer string
		status        int
		least         float64 // seconds
	}{
		{"code=503", "Prefer: delay=0.1, answer-delay=0.15", 200, 0.25},
		{"delay=0.2", "", 200, 0.2},
		{"code=503&answer-delay=0.2", "", 503, 0.2},
	} {
		t.Run(tt.fault+" "+tt.prefer, func(t *testing.T) {
			s.reset(t, "")
			s.setFault(t, tt.fault)
			equal(t, "status", s.do(t, "GET /v1/pets", "", tt.prefer).status, tt.status)
			e := s.journal(t, 1)[0]
			if most := time.Since(e.Time).Seconds() + 0.002; e.Seconds < tt.least || e.Seconds > most {
				t.Errorf("it took %v seconds, want %v to %v", e.Seconds, tt.least, most)
			}
		})
	}
}

// A drip sends ten pieces of about the same length, one a second, or one for each byte
// of a shorter body. The half of a stall is sent at once, and nothing more.
func TestPieces(t *testing.T) {
	t.Parallel()
	t.Run("stall over HTTP", func(t *testing.T) { // which sends its half before it waits
		t.Parallel()
		want := half(array(rex) + "\n")
		c := start(t, newRex).sendRaw(t, "GET /v1/pets", "Prefer: code=stall")
		resp, err := http.ReadResponse(c.in, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(want))
		io.ReadFull(resp.Body, got)
		equal(t, "the half that comes at once", string(got), want)
	})
	t.Run("drip over HTTP", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		s.setFault(t, "code=drip")
		c := s.sendRaw(t, "GET /v1/pets", "X: y") // which stays open
		c.read().want(t, 200, "[]")
		s.wantFault(t, `{"code":"drip","matched":1,"applied":1,"held":0}`)
	})
	for name, tt := range map[string]struct {
		method, code string
		pets         []string
		sent         string
		pieces       int
		leave        bool // after the first piece
	}{
		"drip of no pets":     {"GET", "drip", nil, "[]\n", 3, false},
		"drip of one pet":     {"GET", "drip", []string{newRex}, array(rex) + "\n", 10, false},
		"drip without a body": {"HEAD", "drip", []string{newRex}, "", 0, false},
		"drip that is left":   {"GET", "drip", nil, "[", 1, true},
		"stall":               {"GET", "stall", []string{newRex}, half(array(rex) + "\n"), 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, leave := context.WithCancel(context.Background())
			defer leave()
			w := &pieceRecorder{ResponseRecorder: httptest.NewRecorder()}
			if tt.leave {
				w.leave = leave
			}
			r := newRequest(tt.method, "/v1/pets", "").WithContext(ctx)
			r.Header.Set("Prefer", "code="+tt.code)
			start(t, tt.pets...).service.handler().ServeHTTP(w, r)
			equal(t, "the number of pieces", len(w.pieces), tt.pieces)
			equal(t, "the pieces", strings.Join(w.pieces, ""), tt.sent)
			equal(t, "all that is sent", w.Body.String(), tt.sent)
			for i, piece := range w.pieces {
				if least := len(tt.sent) / tt.pieces; len(piece) < least || len(piece) > least+1 {
					t.Errorf("piece %d: got %q, want %d bytes or one more", i+1, piece, least)
				}
				if i > 0 && w.times[i].Sub(w.times[i-1]) < time.Second {
					t.Errorf("the pause before piece %d: got %v, want a second or more", i+1, w.times[i].Sub(w.times[i-1]))
				}
			}
		})
	}
}

// pieceRecorder records what is sent at once, and when.
type pieceRecorder struct {
	*httptest.ResponseRecorder
	pieces []string
	times  []time.Time
	leave  func() // called after each piece, unless it is nil
}

func (w *pieceRecorder) Flush() {
	sent := len(strings.Join(w.pieces, ""))
	w.pieces = append(w.pieces, w.Body.String()[sent:])
	w.times = append(w.times, time.Now())
	if w.leave != nil {
		w.leave()
	}
}

// A client that leaves during a delay has added no pet. One that leaves during an
// answer-delay, a stall or a drip has added one, and the wait ends.
func TestClientLeaves(t *testing.T) {
	for _, tt := range []struct {
		fault  string
		answer string // in the journal
		status int    // in the journal
	}{
		{"delay=30", "", 0},
		{"answer-delay=30", rex + "\n", 0},
		{"code=stall", rex + "\n", 201},
		{"code=drip", rex + "\n", 201},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			s := start(t)
			s.setFault(t, tt.fault)
			begin := time.Now()
			p := s.send(t, "POST /v1/pets", newRex)
			s.waitHeld(t, 1)
			p.leave()
			e := s.journal(t, 1)[0]
			s.waitHeld(t, 0)
			endsEarly(t, begin)
			matches(t, "the fault", s.do(t, "GET /__admin/fault", "").body, `"matched":1,"applied":1,`)
			equal(t, "status in the journal", e.Status, tt.status)
			equal(t, "body in the journal", e.Body, newRex)
			equal(t, "answer in the journal", e.Answer, tt.answer)
			equal(t, "the pet was added", s.has(t, rex), tt.answer != "")
			problem := ""
			if tt.status == 0 {
				problem = "the client left before its answer"
			}
			equal(t, "error in the journal", e.Error, problem)
		})
	}
}

// The standing fault.

// A standing fault for an operation is applied to its requests only, and counts
// them. The journal has the operation of a request. A HEAD is one for GET.
func TestFaultOperation(t *testing.T) {
	s := start(t)
	tested := map[string]bool{"": true}
	for request, want := range map[string]string{
		"GET /v1/pets": "listPets", "HEAD /v1/pets?limit=x": "listPets", "POST /v1/%70ets": "createPet",
		"GET /v1/pets/x": "getPet", "HEAD /v1/pets/1": "getPet",
		"GET /v1/store/orders": "", "BREW /v1/pets": "", "GET /v1/pets/": "", "GET /v1/nothing": "",
	} {
		tested[want] = true
		for _, operation := range s.service.faultOperations() {
			t.Run(request+" "+operation, func(t *testing.T) {
				s.reset(t, "")
				s.setFault(t, "code=418&operation="+operation)
				got := s.do(t, request, "").status == 418
				equal(t, "the fault was applied", got, operation == want)
				n := 0
				if operation == want {
					n = 1
				}
				s.wantFault(t, fmt.Sprintf(`{"code":"418","operation":"%s","matched":%d,"applied":%[2]d,"held":0}`, operation, n))
				s.do(t, request, "", noKey)
				for _, e := range s.journal(t, 2) {
					equal(t, "operation in the journal", e.Operation, want)
				}
			})
		}
	}
	equal(t, "the operations of this test", keys(tested), sorted(append(s.service.faultOperations(), "")))
}

// A list of codes is applied in order, each code once. The journal shows which
// code was applied to a request.
func TestFaultList(t *testing.T) {
	s := start(t)
	put := s.do(t, "PUT /__admin/fault?code=lost,503,429&skip=1&operation=listPets&retry-after=7&delay=0.00", "")
	put.want(t, 200, `{"code":"lost,503,429","delay":"0","retry-after":"7","operation":"listPets",`+
		`"skip":1,"times":3,"matched":0,"applied":0,"held":0}`)
	s.do(t, "GET /v1/pets/1", "").wantError(t, 404, "not_found", "")
	var statuses []int
	for n := range 5 {
		r := s.send(t, fmt.Sprint("GET /v1/pets?n=", n), "").wait()
		statuses = append(statuses, r.status)
		if r.status > 200 {
			r.wantHeader(t, "Retry-After", "7")
		}
	}
	equal(t, "the statuses", statuses, []int{200, 0, 503, 429, 200})
	s.do(t, "GET /__admin/fault", "").want(t, 200, strings.Replace(strings.TrimSpace(put.body),
		`"matched":0,"applied":0`, `"matched":5,"applied":3`, 1))
	var faults []map[string]string
	for _, e := range s.journal(t, 6) {
		faults = append(faults, e.Fault)
	}
	equal(t, "the faults in the journal", faults, []map[string]string{
		nil,
		nil,
		{"code": "lost", "delay": "0"},
		{"code": "503", "delay": "0", "retry-after": "7"},
		{"code": "429", "delay": "0", "retry-after": "7"},
		nil,
	})
}

// Each code of a list is applied once, however many requests come at the same
// time. The counts of skip and times are exact, too.
func TestConcurrentFaults(t *testing.T) {
	const clients, each = 8, 500
	h := start(t).service.handler()
	for query, want := range map[string]map[int]int{ // number of answers by status
		"code=503,404,429,404&skip=20": {200: clients*each - 4, 404: 2, 429: 1, 503: 1},
		"code=503&skip=300&times=400":  {200: clients*each - 400, 503: 400},
	} {
		t.Run(query, func(t *testing.T) {
			call(h, "PUT", "/__admin/fault?"+query, "")
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
			equal(t, "answers by status", got, want)
			matches(t, "the fault", call(h, "GET", "/__admin/fault", "").Body.String(),
				fmt.Sprintf(`"matched":%d,"applied":%d,"held":0`, clients*each, clients*each-want[200]))
		})
	}

	// No request comes between a check of times and its count.
	for range 100 {
		f := &standingFault{faults: []fault{{}}, state: standingFaultState{Times: 20_000}}
		concurrently(clients, func(int) {
			for range 5000 {
				f.next("")
			}
		})
		equal(t, "applied", f.snapshot().Applied, 20_000)
	}

	// Each fault and each world ends once: to end one twice would be a panic.
	w := newWorld(newStore())
	concurrently(clients, func(int) {
		for range 200 * each {
			w.setStanding(&standingFault{ended: make(chan struct{})})
		}
		for range 2 * each {
			if w := call(h, "POST", "/__admin/reset", ""); w.Code != 204 {
				t.Errorf("reset: got %d %s", w.Code, w.Body)
				return
			}
		}
	})
}

// When the standing fault is deleted, replaced or reset, or when the service
// stops, the requests that it holds go on at once. A reset and a stop end the waits
// of Prefer, too. A request is recorded before its answer is sent.
func TestRelease(t *testing.T) {
	ends := map[string]func(*testing.T, *server){
		"delete": func(t *testing.T, s *server) {
			s.do(t, "DELETE /__admin/fault", "").want(t, 204, "")
			s.wantFault(t, "{}")
		},
		"put":   func(t *testing.T, s *server) { s.setFault(t, "code=503") },
		"reset": func(t *testing.T, s *server) { s.reset(t, "") },
		"stop":  func(t *testing.T, s *server) { s.stop() },
	}
	for _, tt := range []struct {
		fault  string // standing, or else a preference
		before bool   // whether the operation is performed before the release
		status int
		body   string
	}{
		{"delay=30", false, 201, ida + "\n"},
		{"delay=30&code=418", false, 418, teapot},
		{"answer-delay=30", true, 201, ida + "\n"},
		{"answer-delay=30&code=lost", true, 0, ""},
		{"delay=30&answer-delay=30", false, 201, ida + "\n"},
		{"code=drip", true, 201, ida + "\n"},
		{"code=stall", true, 201, half(ida + "\n")},
		{"Prefer: delay=30", false, 201, ida + "\n"},
		{"Prefer: answer-delay=30", true, 201, ida + "\n"},
		{"Prefer: code=drip", true, 201, ida + "\n"},
		{"Prefer: code=stall", true, 201, half(ida + "\n")},
	} {
		prefers := strings.HasPrefix(tt.fault, "Prefer: ")
		for end, release := range ends {
			if prefers && (end == "delete" || end == "put") {
				continue // which end the standing fault only
			}
			ok := t.Run(tt.fault+"/"+end, func(t *testing.T) {
				s := start(t, newRex)
				begin := time.Now()
				var p pending
				if prefers {
					p = s.send(t, "POST /v1/pets", newIda, tt.fault)
				} else {
					s.setFault(t, tt.fault)
					p = s.send(t, "POST /v1/pets", newIda)
					s.waitHeld(t, 1)
				}
				if strings.Contains(tt.fault, "delay") {
					s.waitWaiting(t, "POST /v1/pets createPet")
					s.wantJournal(t)
				} else {
					s.journal(t, 1)
				}
				if tt.before { // with Prefer: answer-delay, perhaps not yet
					eventually(t, "Ida to be added", func() bool { return s.has(t, ida) })
				} else {
					equal(t, "Ida is added before the release", s.has(t, ida), false)
				}
				release(t, s)
				r := p.wait()
				endsEarly(t, begin)
				equal(t, "status", r.status, tt.status)
				equal(t, "body", r.body, tt.body)
			})
			if !ok {
				return // the others are likely to wait for long
			}
		}
	}
}

// A request that waits for a delay is listed with all that was sent, but for the
// key, and with the seconds so far. It leaves the list when it is recorded.
func TestWaiting(t *testing.T) {
	s := start(t)
	held := s.send(t, "POST /v1/pets?x", newRex, "Prefer: delay=30.00", "X: y")
	w := s.waitWaiting(t, "POST /v1/pets?x createPet")[0]
	equal(t, "fault", w.Fault, map[string]string{"delay": "30"})
	equal(t, "body", w.Body, newRex)
	equal(t, "the key", w.Headers["Authorization"], "Bearer ***")
	eventually(t, "the seconds so far to grow", func() bool {
		_, later, _ := s.readJournal(t, "")
		return len(later) == 1 && later[0].Seconds > w.Seconds
	})

	// DELETE keeps the list, in the order of arrival. A client that leaves is recorded.
	want := []string{"POST /v1/pets?x createPet"}
	for n := range 7 {
		s.send(t, fmt.Sprint("GET /v1/pets?n=", n), "", "Prefer: delay=30")
		want = append(want, fmt.Sprintf("GET /v1/pets?n=%d listPets", n))
		s.waitWaiting(t, want...)
	}
	s.do(t, "DELETE /__admin/requests", "").want(t, 204, "")
	s.waitWaiting(t, want...)
	held.leave()
	s.journal(t, 1)
	s.waitWaiting(t, want[1:]...)
}

// The journal.

// The journal is a JSON object with a line for each request.
func TestJournalFormat(t *testing.T) {
	s := start(t)
	begin := time.Now()
	c := s.sendRaw(t, "POST /v1/pets?%zz=%20", "x-a: 1\nX-A:2, 3\nx-a:\nPrefer: delay=0, y\n"+
		"Transfer-Encoding: chunked\n\n8\n<ü>\xff\n\x00\n0")
	first := c.read()
	equal(t, "status", first.status, 400)
	c.write("POST /v1/pets?y&x HTTP/1.0\nContent-Length: 2\n\n{}")
	second := c.read()
	equal(t, "status", second.status, 401)

	r := s.do(t, "GET /__admin/requests", "")
	equal(t, "status", r.status, 200)
	r.wantHeader(t, "Content-Type", "application/json")
	varying := regexp.MustCompile(`("time":)"\d{4}(?:-\d\d){2}T\d\d(?::\d\d){2}\.\d{3}Z"|` +
		`("seconds":)\d+(?:\.\d{1,3})?|("since":)"\d{4}(?:-\d\d){2}T\d\d(?::\d\d){2}\.\d+Z"`)
	equal(t, "the journal", varying.ReplaceAllString(r.body, "$1$2$3"), `{"requests":[
{"id":1,"time":,"method":"POST","url":"/v1/pets?%zz=%20","operation":"createPet",`+
		`"headers":{"Authorization":"Bearer ***","Host":"petstore","Prefer":"delay=0, y",`+
		`"Transfer-Encoding":"chunked","X-A":"1, 2, 3, "},`+
		`"body":"<ü>\ufffd\r\n\u0000","fault":{"delay":"0"},"status":400,"seconds":,`+
		`"answerHeaders":{"Content-Length":"`+first.header.Get("Content-Length")+`",`+
		`"Content-Type":"application/json","Preference-Applied":"delay=0"},`+
		`"answer":`+jsonText(first.body)+`,"error":`+jsonText(first.message())+`,"ignored":["y"]},
{"id":2,"time":,"method":"POST","url":"/v1/pets?y&x","operation":"createPet","headers":{"Content-Length":"2"},`+
		`"body":"{}","status":401,"seconds":,`+
		`"answerHeaders":{"Content-Length":"`+second.header.Get("Content-Length")+`",`+
		`"Content-Type":"application/json","Www-Authenticate":"Bearer realm=\"petstore\""},`+
		`"answer":`+jsonText(second.body)+`,"error":`+jsonText(second.message())+`}
],"waiting":[],"meta":{"total":2,"first":1,"since":}}
`)
	for _, e := range s.journal(t, 2) {
		if e.Time.Before(begin.Truncate(time.Millisecond)) || e.Time.After(time.Now()) {
			t.Errorf("got the time %v, want one since %v", e.Time, begin)
		}
	}
}

// The ids of the journal count from the start, a reset or a DELETE, and since is its
// time. With after, entries up to this id are left out.
func TestJournalIDs(t *testing.T) {
	for _, request := range []string{"DELETE /__admin/requests", "POST /__admin/reset"} {
		t.Run(request, func(t *testing.T) {
			s := start(t)
			s.do(t, "GET /v1/pets", "")
			begin := time.Now()
			s.do(t, request, "").want(t, 204, "")
			_, _, meta := s.readJournal(t, "")
			equal(t, "since is then", meta.Since.After(begin) && meta.Since.Before(time.Now()), true)
			equal(t, "the time zone of since", meta.Since.Location(), time.UTC)
			for range 4 {
				s.do(t, "GET /v1/pets", "")
			}
			for query, want := range map[string][]int64{
				"": {1, 2, 3, 4}, "?after=3": {4}, "?after=4": nil,
				"?after=2&total=3": {3, 4}, "?after=9223372036854775807": nil,
			} {
				var ids []int64
				entries, _, _ := s.readJournal(t, query)
				for _, e := range entries {
					ids = append(ids, e.ID)
				}
				equal(t, "ids"+query, ids, want)
			}
		})
	}
}

// The journal lists requests in the order in which they arrived, and gives them ids as
// it records them. So a request whose body came late, or whose client gave up, comes
// before those that overtook it.
func TestJournalOrder(t *testing.T) {
	s := start(t)
	slow := s.startRequest(t, "POST /v1/pets?slow")
	s.setFault(t, "answer-delay=30&times=1")
	first := s.send(t, "POST /v1/pets", newIda)
	s.waitWaiting(t, "POST /v1/pets createPet")
	s.do(t, "POST /v1/pets", newIda)
	first.leave()
	s.journal(t, 2)
	slow.write(newIda)
	slow.read()
	s.wantJournal(t, "POST /v1/pets?slow 201", "POST /v1/pets 0", "POST /v1/pets 201")
	late, _, _ := s.readJournal(t, "?after=1")
	equal(t, "the ids after 1", len(late) == 2 && late[0].ID == 3 && late[1].ID == 2, true)

	// The journal keeps the requests that were recorded last, in whatever order they
	// arrived. Of two that arrived at one time, the first that was recorded comes first.
	j := newJournal()
	now := time.Now()
	var want []int64
	for n := range int64(1500) {
		j.add(entry{sentRequest: &sentRequest{Time: timestamp{now.Add(-time.Duration(n / 2))}}})
		if n%2 == 1 && n > 700 {
			want = append([]int64{n, n + 1}, want...)
		}
	}
	entries, _, _ := j.read(700)
	var ids []int64
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	equal(t, "the ids", ids, want)

	// The entries and the total are of one moment, even while requests are recorded.
	j = newJournal()
	var ended atomic.Bool
	concurrently(2, func(i int) {
		if i == 0 {
			for !ended.Load() {
				j.add(entry{sentRequest: &sentRequest{}})
			}
			return
		}
		defer ended.Store(true)
		for n := 0; n < 2000; {
			entries, _, meta := j.read(0)
			if len(entries) == 0 {
				continue // the other goroutine has not begun
			}
			n++
			if last := entries[len(entries)-1].ID; last != meta.Total {
				t.Errorf("total: got %d, want the largest id, %d", meta.Total, last)
				return
			}
		}
	})
}

// The journal has what clients sent, and not what the page or a test does to
// observe them. A body that was not read to its end is empty. An entry has the first
// 1,000 bytes of the answer.
func TestRecordedRequests(t *testing.T) {
	s := start(t, manyPets(60)...)
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
		s.do(t, request, "", "Petstore-Observer:") // of any value
		s.do(t, request, "", observer, noKey)
	}
	s.wantJournal(t)

	for _, tt := range []struct {
		request, body, header string
		status                int
		recorded              string // the body
	}{
		{"GET /v1/pets", "", "", 200, ""},
		{"POST /v1/pets", newIda, "", 201, newIda},
		{"GET /v1/pets/99", "x", "", 404, "x"},
		{"HEAD /v1/store/orders", "", "", 501, ""},
		{"POST /v1/pets", newIda, noKey, 401, newIda},
		{"BREW /v1/pets", "", "", 405, ""},
		{"POST /healthz", "", noKey, 405, ""},
		{"GET /healthz/", "", noKey, 404, ""},
		{"PUT /nothing", tooLarge, "Expect: 100-continue", 413, ""},
	} {
		t.Run(tt.request+" "+tt.header, func(t *testing.T) {
			s.do(t, "DELETE /__admin/requests", "")
			s.do(t, tt.request, tt.body, tt.header)
			s.wantJournal(t, fmt.Sprint(tt.request, " ", tt.status))
			equal(t, "the body", s.journal(t, 1)[0].Body, tt.recorded)
		})
	}

	s.do(t, "DELETE /__admin/requests", "")
	c := s.sendRaw(t, "POST /v1/pets", "Content-Length: 2")
	c.write("{")
	c.CloseWrite()
	equal(t, "the status of a body cut short", c.read().status, 400)
	equal(t, "a body cut short", s.journal(t, 1)[0].Body, "")
	list := s.do(t, "GET /v1/pets?limit=60", "").body
	answer := s.journal(t, 2)[1].Answer
	equal(t, "the length of the answer", len(answer), 1000)
	equal(t, "the answer is the start of the list", strings.HasPrefix(list, answer), true)
}

// The journal names what was ignored: first the preferences, then the query
// parameters, and then the members of the body, each sorted. If a fault skips the
// operation, it names the preferences only. It also names what is petstore's own.
func TestIgnored(t *testing.T) {
	for _, tt := range []struct {
		request, body, prefer string
		ignored               []string
		beyond                []string
	}{
		{"GET /v1/pets?limit=1&after=1&status=sold", "", "", nil, []string{"after"}},
		{"POST /v1/pets", newRex, "code=lost,delay=0;answer-delay=0,retry-after=1", nil, nil},
		{"GET /v1/pets?stauts=sold&b&a=1&b=2&%61b=", "", "", []string{"a", "ab", "b", "stauts"}, nil},
		{"GET /v1/pets?limit=x&Limit=1", "", "", []string{"Limit"}, nil},
		{"GET /v1/pets/1?limit=1&after=1", "", "", []string{"after", "limit"}, nil},
		{"GET /v1/store/orders?x", "", "", []string{"x"}, nil},
		{
			"POST /v1/pets?z&limit=1",
			`{"status":"sold","id":7,"b":1,"Status":1,"name":"","a":1,"a":2,"categoryId":1}`,
			"wait=9; Times=2,=, wait=1",
			[]string{"times", "wait", "limit", "z", "Status", "a", "b", "id"},
			nil,
		},
		{"POST /v1/pets?x", `{"id":7}`, "", []string{"x", "id"}, nil},
		{"POST /v1/pets?x", `{"id":7`, "", []string{"x"}, nil},
		{"GET /v1/nothing?x", "", "y", []string{"y"}, nil},
		{"BREW /v1/pets?x", "", "code=503,lost", []string{"lost"}, nil},
		{"POST /v1/pets?x", `{"id":7}`, "y, code=hangup", []string{"y"}, nil},
		{"POST /v1/pets?x", `{"id":7}`, "y, code=lost", []string{"y", "x", "id"}, nil},
		{"GET /v1/pets", "", "y, code=x", []string{"y"}, nil},
		{"GET /v1/pets?after=x&limit=x", "", "", nil, []string{"after"}},
		{"HEAD /v1/pets?after=1", "", "", nil, []string{"HEAD", "after"}},
		{"HEAD /v1/pets?after=1", "", "code=503", nil, nil},
	} {
		t.Run(tt.request+" "+tt.body+" "+tt.prefer, func(t *testing.T) {
			s := start(t)
			s.send(t, tt.request, tt.body, "Prefer: "+tt.prefer).wait()
			equal(t, "ignored", s.journal(t, 1)[0].Ignored, tt.ignored)
			equal(t, "beyond", s.journal(t, 1)[0].Beyond, tt.beyond)
		})
	}
}

// In Authorization, *** stands wherever the key stood. In any other place,
// the key is shown.
func TestKeyIsHidden(t *testing.T) {
	s := start(t)
	key := testKey
	for _, sent := range []string{`Bearer "` + key + `"`, "Basic x" + key + "x", key + key} {
		s.do(t, "DELETE /__admin/requests", "")
		s.do(t, "GET /v1/pets?"+key, "", "Authorization: "+sent, "X: "+key)
		e := s.journal(t, 1)[0]
		equal(t, "Authorization", e.Headers["Authorization"], strings.ReplaceAll(sent, key, "***"))
		equal(t, "another header", e.Headers["X"], key)
		equal(t, "the URL", e.URL, "/v1/pets?"+key)
	}
	s.do(t, "GET /v1/pets", "", "Authorization: x"+key, "Authorization: "+key+"y")
	equal(t, "two headers", s.journal(t, 2)[1].Headers["Authorization"], "x***, ***y")
}

// With total, the journal waits for that many requests. Several clients may wait.
func TestJournalTotal(t *testing.T) {
	s := start(t)
	first := s.watch(t, "?total=1")
	second := s.watch(t, "?total=2")
	s.do(t, "GET /v1/pets", "")
	matches(t, "the journal", first.wait().body, `"meta":{"total":1,`)
	third := s.watch(t, "?total=2")
	s.do(t, "GET /v1/pets", "")
	matches(t, "the journal", second.wait().body, `"meta":{"total":2,`)
	matches(t, "the journal", third.wait().body, `"meta":{"total":2,`)
}

// With waiting, the journal waits until no more requests than that wait for a delay.
// With total, it waits for both.
func TestJournalWaiting(t *testing.T) {
	s := start(t)
	begin := time.Now()
	late := s.send(t, "GET /v1/pets", "", "Prefer: answer-delay=30")
	s.waitWaiting(t, "GET /v1/pets listPets")
	slow := s.send(t, "GET /v1/pets", "", "Prefer: delay=30")
	s.waitWaiting(t, "GET /v1/pets listPets", "GET /v1/pets listPets")
	_, waiting, _ := s.readJournal(t, "?waiting=2")
	equal(t, "the number of waiting requests", len(waiting), 2)

	one, none, both := s.watch(t, "?waiting=1"), s.watch(t, "?waiting=0"), s.watch(t, "?waiting=0&total=3")
	late.leave()
	matches(t, "the journal", one.wait().body, `"meta":{"total":1,`)
	slow.leave()
	matches(t, "the journal", none.wait().body, `"meta":{"total":2,`)
	s.do(t, "GET /v1/pets", "")
	matches(t, "the journal with a total", both.wait().body, `"meta":{"total":3,`)
	endsEarly(t, begin)
}

// A reset, a DELETE and a stop end the wait for a total and for those that wait, and it
// ends 30 seconds after the request has arrived.
func TestJournalWaitEnds(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *server){
		"reset":  func(t *testing.T, s *server) { s.reset(t, "") },
		"DELETE": func(t *testing.T, s *server) { s.do(t, "DELETE /__admin/requests", "").want(t, 204, "") },
		"stop":   func(_ *testing.T, s *server) { s.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			p := s.watch(t, "?total=9")
			end(t, s)
			matches(t, "the journal", p.wait().body, `"meta":{"total":0,`)
		})
	}
	t.Run("time", func(t *testing.T) {
		service := start(t).service
		r := newRequest("GET", "/__admin/requests?total=9", "")
		begin := time.Now()
		arrived := begin.Add(-29_800 * time.Millisecond)
		x := &exchange{service: service, world: service.current.Load(), r: r, arrived: arrived}
		equal(t, "the error", awaitJournal(x, 9, 0), nil)
		if took := time.Since(arrived); took < 30*time.Second {
			t.Errorf("it took %v, want 30 s", took)
		}
		endsEarly(t, begin)
	})
}

// watch asks for the journal, and returns when the service waits for a change of it. If
// other clients wait already, it may return before that.
func (s *server) watch(t testing.TB, query string) pending {
	t.Helper()
	j := s.service.current.Load().journal
	j.mu.Lock()
	j.wake() // so that there is a channel only if somebody watches from now on
	j.mu.Unlock()
	p := s.send(t, "GET /__admin/requests"+query, "")
	eventually(t, "a client that waits for the journal", func() bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.changed != nil
	})
	return p
}

// The journal keeps the last 1,000 requests, and 4 MiB. A large request pushes out
// many small ones.
func TestJournalBounds(t *testing.T) {
	j := newJournal()
	add := func(size int) { j.add(entry{sentRequest: &sentRequest{Body: strings.Repeat("x", size)}}) }
	for range 1003 {
		add(4000)
	}
	check := func(what string, n int, last int64) {
		t.Helper()
		entries, _, meta := j.read(0)
		first := last - int64(n) + 1
		if len(entries) != n || meta.Total != last || meta.First != first || entries[0].ID != first || entries[n-1].ID != last {
			t.Fatalf("%s: got %d entries and %+v, want %d up to %d", what, len(entries), meta, n, last)
		}
	}
	check("small requests", 1000, 1003)
	read, _, _ := j.read(3)
	add(1 << 20)
	equal(t, "the oldest entry that was read before", read[0].ID, 4)
	check("a large request", 1+(3<<20)/4000, 1004)
	j.clear()
	add(4 << 20)
	check("a large request after a clear", 1, 1)
}

// The size of an entry counts all that can be large.
func TestEntrySize(t *testing.T) {
	const size = 10_000
	large, many := strings.Repeat("x", size), make([]string, size/100)
	values := map[reflect.Type][]any{
		reflect.TypeFor[string]():   {large},
		reflect.TypeFor[[]string](): {[]string{large}, many},
		reflect.TypeFor[headers]():  {headers{"X": {large}}, headers{large: {""}}, headers{"X": many}},
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[entry]()) {
		for _, value := range values[field.Type] {
			e := entry{sentRequest: &sentRequest{}}
			reflect.ValueOf(&e).Elem().FieldByIndex(field.Index).Set(reflect.ValueOf(value))
			if got := e.estimate(); got < size {
				t.Errorf("%s: got %d bytes, want %d or more", field.Name, got, size)
			}
		}
	}
}

// With -log, the log has the address of the page, and a line for each recorded
// request, and for each that may change the service through /__admin, whatever its
// answer.
func TestLog(t *testing.T) {
	s := program(t, "-log")
	s.do(t, "GET /v1/pets?limit=5", "")
	s.do(t, "HEAD /v1/pets?after=5&x", "")
	s.do(t, "GET /v1/pets/1?%0A=%22", "", "User-Agent: a \"b\"")
	s.send(t, "GET /v1", "", "Prefer: code=hangup").wait()
	s.do(t, "GET /v1", "", "Prefer: code=418, delay=0")
	s.do(t, "POST /v1/pets", newIda, observer)
	s.do(t, "GET /healthz", "")

	s.do(t, "PUT /__admin/fault?code=503", "", "User-Agent: curl/8")
	s.do(t, "DELETE /__admin/fault?x", "", observer)
	s.do(t, "POST /%5F_admin/reset", "", noKey)
	for _, request := range []string{"GET /__admin/fault", "HEAD /__admin/requests", "OPTIONS /__admin/reset"} {
		s.do(t, request, "")
	}
	s.stop()
	agent := "agent=Go-http-client/1.1"
	want := []string{
		`msg="a page for browsers" url=` + s.url + "/",
		`msg=request method=GET url="/v1/pets\?limit=5" status=200 ` + agent,
		`msg=request method=HEAD url="/v1/pets\?after=5&x" status=200 ignored=\[x\] beyond="\[HEAD after\]" ` + agent,
		`msg=request method=GET url="/v1/pets/1\?%0A=%22" status=404 error="there is no pet 1" ignored="\[\\n\]" agent="a \\"b\\""`,
		`msg=request method=GET url=/v1 status=0 fault="code=hangup" ` + agent,
		`msg=request method=GET url=/v1 status=418 error="` + simulated + `" fault="code=418, delay=0" ` + agent,
		`msg=request method=PUT url="/__admin/fault\?code=503" status=200 agent=curl/8`,
		`msg=request method=DELETE url=/__admin/fault\?x status=400 error=".*" ` + agent,
		`msg=request method=POST url=/%5F_admin/reset status=401 error=".*" ` + agent,
	}
	log := s.log.take()
	lines := strings.Split(strings.TrimSuffix(log, "\n"), "\n")
	if len(lines) != len(want) {
		t.Fatalf("got %d lines, want %d:\n%s", len(lines), len(want), log)
	}
	for i, line := range lines {
		client := regexp.MustCompile(` client=127\.0\.0\.1:\d+`)
		equal(t, line+" has the client", client.MatchString(line), i > 0)
		matches(t, "the log", client.ReplaceAllString(line, ""), `^time=\S+ level=INFO `+want[i]+"$")
	}
}

// Seeds and resets.

// The pets of a seed keep their ids, and a pet without an id gets the next after
// the largest so far.
func TestSeed(t *testing.T) {
	pet := func(id string) string { return `{"name":"a","categoryId":1,"status":"sold","id":` + id + "}" }
	for _, tt := range []struct {
		seed string
		ids  []int64
	}{
		{" [ ]\n", nil},
		{array(pet("7"), newIda, pet("3"), newIda), []int64{3, 7, 8, 9}},
		{array(newIda, newIda, pet("1000")), []int64{1, 2, 1000}},
		{array(newIda, pet("9223372036854775807")), []int64{1, math.MaxInt64}},
	} {
		t.Run(tt.seed, func(t *testing.T) {
			s := start(t, newRex)
			s.reset(t, tt.seed)
			list := s.do(t, "GET /v1/pets", "")
			equal(t, "ids", list.ids(t), tt.ids)
			sold := s.do(t, "GET /v1/pets?status=sold", "").ids(t)
			equal(t, "the sold pets are in order", slices.IsSorted(sold), true)
			s.reset(t, list.body) // a list is a seed
			equal(t, "ids after a reset to the list", s.do(t, "GET /v1/pets", "").ids(t), tt.ids)
			next := int64(1)
			for _, id := range tt.ids {
				next = id + 1
				equal(t, "status of a pet", s.do(t, fmt.Sprint("GET /v1/pets/", id), "").status, 200)
			}
			create := s.do(t, "POST /v1/pets", newIda)
			if next < 0 {
				create.wantError(t, 507, "insufficient_storage", "there is no id after 9223372036854775807")
			} else {
				create.wantHeader(t, "Location", fmt.Sprint("/v1/pets/", next))
			}
		})
	}
	r := start(t).do(t, "POST /__admin/reset", array(pet("9223372036854775807"), newIda))
	r.wantError(t, 507, "insufficient_storage", "pet 2: there is no id after")
}

// A reset replaces the pets, ends the standing fault and clears the journal. Without a
// body, the pets are those of the start.
func TestReset(t *testing.T) {
	s := program(t, "-seed", tempFile(t, array(newRex)))
	for range 2 {
		s.do(t, "GET /v1/pets", "").want(t, 200, array(rex))
		s.do(t, "POST /v1/pets", newIda).want(t, 201, ida)
		s.setFault(t, "delay=0")
		s.wantJournal(t, "GET /v1/pets 200", "POST /v1/pets 201")
		s.reset(t, array(newIda))
		s.wantJournal(t)
		s.wantFault(t, "{}")
		s.do(t, "GET /v1/pets", "").want(t, 200, array(strings.Replace(ida, "2", "1", 1)))
		s.setFault(t, "delay=0")
		s.reset(t, "")
		s.wantJournal(t)
		s.wantFault(t, "{}")
		s.do(t, "GET /v1/pets/2", "", observer).wantError(t, 404, "not_found", "")
	}
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
	s.waitHeld(t, 50)
	s.reset(t, "[]")
	s.setFault(t, "code=418")
	for _, p := range held {
		if r := p.wait(); r.status != 201 {
			t.Fatalf("a request that was held: got %d %s and the error %v", r.status, r.body, r.err)
		}
	}
	late.write(newIda)
	late.read().want(t, 201, strings.Replace(ida, "2", "51", 1))

	s.wantJournal(t)
	s.wantFault(t, `{"code":"418","matched":0,"applied":0,"held":0}`)
	s.do(t, "GET /v1/pets", "", observer).want(t, 200, "[]")
}

// Worlds with the same seed do not share the pets that are added to them. A request
// stays in the world of its arrival until its body has come, even a GET.
func TestWorldsAreIndependent(t *testing.T) {
	s := start(t, manyPets(3)...)
	list := s.startRequest(t, "GET /v1/pets?after=3")
	s.do(t, "POST /v1/pets", newIda)
	s.reset(t, "")
	s.do(t, "POST /v1/pets", newRex)
	list.write(newIda)
	list.read().want(t, 200, array(strings.Replace(ida, "2", "4", 1)))
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
		message    string // a part of the last answer
	}{
		{"pipelining", get + "\n" + get + "Content-Length: 2\n\n{}" + get + last, "200 200 200", ""},
		{"large body", post + "Content-Length: 65536\n" + last + body, "201", ""},
		{"large chunks", chunked + last + chunk(body[:5]) + chunk(body[5:]) + chunk(""), "201", ""},
		{"too large chunks", chunked + "\n" + chunk(body+" ") + chunk(""), "413", "65536 bytes"},
		{"too large body", post + "Content-Length: 65537\n\n" + body + " ", "413", "65536 bytes"},
		{"too large body that waits", post + "Expect: 100-continue\nContent-Length: 65537\n\n" + body + " ",
			"100 413", "65536 bytes"},
		{"endless body", chunked + "\n" + strings.Repeat(chunk(body), 18), "413", "65536 bytes"},
		{"bad chunk", chunked + "\nx\n", "400", "badly chunked"},
		{"body cut short", post + "Content-Length: 2\n\n{", "400", "cut short"},
		{"HTTP/1.0", strings.Replace(get, "1.1", "1.0", 1) + "\n", "200", ""},
		{"URL without a path", strings.Replace(get, "/v1/pets", "http://petstore", 1) + last, "404",
			"no such path: http://petstore; "},
		{"CONNECT", strings.Replace(get, "GET /v1/pets", "CONNECT petstore:80", 1) + last, "404",
			"no such path: petstore:80; "},
		{"OPTIONS *", "OPTIONS * HTTP/1.1\nHost: petstore\n" + last, "204", ""},
		{"GET *", strings.Replace(get, "/v1/pets", "*", 1) + last, "404", "no such path: *; "},
		{"large headers", get + "X: " + strings.Repeat("x", 65_000) + "\n" + last, "200", ""},
		{"too large headers", get + "X: " + strings.Repeat("x", 65_536) + "\n\n", "431", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// The usual ReadTimeout is shorter than patience, and could end a connection.
			s := startWith(t, seedOf(t), func(_ *server, srv *http.Server) { srv.ReadTimeout = time.Hour })
			c := s.dial(t)
			c.write(tt.send)
			if tt.name == "bad chunk" || tt.name == "body cut short" {
				c.CloseWrite()
			}
			var statuses []string
			var r response
			for range strings.Fields(tt.want) {
				r = c.read()
				statuses = append(statuses, strconv.Itoa(r.status))
			}
			equal(t, "statuses", strings.Join(statuses, " "), tt.want)
			if !strings.Contains(r.body, tt.message) {
				t.Errorf("got %s, want the message %s", r.body, tt.message)
			}
			c.write(get + last) // has no answer: the connection is closed, or this is a part of the body
			c.CloseWrite()      // or net/http waits for the rest of a body that was refused
			rest, err := io.ReadAll(c.in)
			if len(rest) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("after the answers: got %.300q and the error %v, want the end", rest, err)
			}
			list := s.do(t, "GET /v1/pets", "").body
			equal(t, "a pet was added", list != "[]\n", strings.HasSuffix(tt.want, "201"))
		})
	}
}

// The answer to a request that is refused reaches its client, whatever its body, even
// if the connection is then closed. If a part of the body was left unread, the answer
// could be lost in a reset.
func TestRefusedBodies(t *testing.T) {
	s := start(t)
	for _, tt := range []struct {
		request, header string
		status          int
	}{
		{"POST /v1/pets", "Authorization: Bearer x", 401},
		{"POST /nothing", "", 404},
		{"PUT /v1/pets", "", 405},
		{"POST /v1/pets", "Content-Type: x", 415},
		{"POST /v1/pets", "Prefer: code=503", 503},
	} {
		for size, status := range map[int]int{4_000: tt.status, 60_000: tt.status, 66_000: 413, 1 << 20: 413} {
			t.Run(fmt.Sprint(tt.request, " ", tt.header, " ", size), func(t *testing.T) {
				length := fmt.Sprint("Content-Length: ", size)
				c := s.sendRaw(t, tt.request, strings.TrimPrefix(tt.header+"\nConnection: close\n"+length, "\n"))
				c.write(strings.Repeat("x", size))
				r := c.read()
				equal(t, "status", r.status, status)
				equal(t, "the error of the connection", r.err, nil)
			})
		}
	}

	// A body of 1 MiB is read to its end, and one that goes on is not.
	for size, left := range map[int]int{1 << 20: 0, 2 << 20: 1<<20 - 65_537} {
		body := strings.NewReader(strings.Repeat("x", size))
		r := httptest.NewRequest("POST", "/v1/pets", body)
		s.service.handler().ServeHTTP(httptest.NewRecorder(), r)
		equal(t, fmt.Sprint("what is left of ", size, " bytes"), body.Len(), left)
	}

	// A client that waits with its body is asked for it, and can go on after a refusal.
	c := s.sendRaw(t, "POST /v1/pets", "Authorization: Bearer x\nExpect: 100-continue\nContent-Length: 2")
	equal(t, "the status before the body", c.read().status, 100)
	c.write("{}")
	equal(t, "the status", c.read().status, 401)
	c.write("GET /healthz HTTP/1.1\nHost: petstore\n\n")
	equal(t, "the status of the next request", c.read().status, 200)
}

// A body that does not arrive in time is a 408. It uses up no fault.
func TestSlowBody(t *testing.T) {
	s := startWith(t, seedOf(t, newRex), func(_ *server, srv *http.Server) { srv.ReadTimeout = 100 * time.Millisecond })
	s.setFault(t, "code=503")
	s.sendRaw(t, "GET /v1/pets/1", "Content-Length: 3").read().wantError(t, 408, "request_timeout", "")
	s.wantFault(t, `{"code":"503","matched":0,"applied":0,"held":0}`)
}

// The server has timeouts. The one for an answer is longer than the time for a body,
// two delays and a drip together. What net/http reports goes into the log.
func TestServer(t *testing.T) {
	startWith(t, seedOf(t), func(s *server, srv *http.Server) {
		equal(t, "ReadHeaderTimeout", srv.ReadHeaderTimeout, 5*time.Second)
		equal(t, "ReadTimeout", srv.ReadTimeout, 15*time.Second)
		equal(t, "WriteTimeout", srv.WriteTimeout, (15+2*30+9+6)*time.Second)
		equal(t, "IdleTimeout", srv.IdleTimeout, 2*time.Minute)
		if srv.ErrorLog == nil {
			t.Fatal("ErrorLog is nil")
		}
		srv.ErrorLog.Print("reported")
		matches(t, "the log", s.log.take(), "level=WARN msg=reported")
	})
}

// The process.

// The base URL is one that clients on this machine can use.
func TestBaseURL(t *testing.T) {
	s := program(t, "-addr", ":0") // fails unless the base URL has 127.0.0.1
	s.do(t, "GET /v1/pets", "").want(t, 200, "[]")
	equal(t, "the root URL of 0.0.0.0", rootURL(&net.TCPAddr{IP: net.IPv4zero, Port: 80}), "http://127.0.0.1:80")
	equal(t, "the root URL of ::1", rootURL(&net.TCPAddr{IP: net.IPv6loopback, Port: 80}), "http://[::1]:80")
	zoned := &net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0", Port: 80}
	equal(t, "the root URL of an address with a zone", rootURL(zoned), "http://[fe80::1%25eth0]:80")
}

// The key comes from the environment. Without one, each run has a random key, and
// shows it in a curl line and a link.
func TestKeyOfRun(t *testing.T) {
	s := command{key: "!~" + strings.Repeat("k", 4094)}.start(t) // the longest
	s.do(t, "GET /v1/pets", "").want(t, 200, "[]")
	equal(t, "standard error with a key", s.log.take(), "")

	s, other := command{}.start(t), command{}.start(t)
	notice := s.log.take()
	random := regexp.MustCompile("[0-9a-f]{32}")
	s.key, other.key = random.FindString(notice), random.FindString(other.log.take())
	matches(t, "standard error without a key", notice,
		"curl -H 'Authorization: Bearer "+s.key+"' '"+s.url+"/v1/pets'\n +"+s.url+"/#key="+s.key+"\n")
	s.do(t, "GET /v1/pets", "").want(t, 200, "[]")
	if half(s.key) == half(other.key) || strings.TrimPrefix(s.key, half(s.key)) == strings.TrimPrefix(other.key, half(other.key)) {
		t.Errorf("got the keys %q and %q, want random ones", s.key, other.key)
	}
}

// A command line that is wrong is refused with one line, which says what would be
// right. The exit code is 2 if the arguments are wrong, and 1 if something else is.
func TestCommandLine(t *testing.T) {
	inUse := strings.TrimPrefix(program(t).url, "http://")
	seed := tempFile(t, `[{"name":"a"}]`)
	for _, tt := range []struct {
		args   []string
		key    string
		code   int
		stderr string // a part of it
	}{
		{[]string{"-x\n\x1b\u009by"}, "", 2, "-x   y; -h lists the flags"},
		{[]string{"stray"}, "", 2, "unexpected argument stray"},
		{[]string{"-log=perhaps"}, "", 2, "perhaps"},
		{[]string{"-addr", ""}, "", 2, "-addr takes host:port"},
		{[]string{"-addr", "8081"}, "", 2, "-addr takes host:port"},

		{[]string{"-log"}, "k k", 1, "PETSTORE_API_KEY must be 1 to 4096 visible ASCII characters"},
		{[]string{"-log"}, "k\x7f", 1, "PETSTORE_API_KEY"},
		{[]string{"-log"}, "k\xe9", 1, "PETSTORE_API_KEY"},
		{[]string{"-log"}, strings.Repeat("k", 4097), 1, "PETSTORE_API_KEY"},
		{[]string{"-addr", "192.0.2.1:80"}, "", 1, "192.0.2.1:80"}, // an address of no machine (RFC 5737)
		{[]string{"-addr", inUse}, "", 1, "address already in use; -addr 127.0.0.1:0 takes any free port"},
		{[]string{"-seed", "no\n.json"}, "", 1, "no .json: no such file or directory; -seed takes the path of a JSON file"},
		{[]string{"-seed", "api"}, "", 1, "api"},
		{[]string{"-seed", seed}, "", 1, seed + ": pet 1: categoryId is missing"},
	} {
		t.Run(fmt.Sprintf("%.40q %.10q", tt.args, tt.key), func(t *testing.T) {
			args := append([]string{"-addr", "127.0.0.1:0", "-stdin"}, tt.args...)
			code, stdout, stderr := command{key: tt.key, args: args}.output()
			equal(t, "the exit code", code, tt.code)
			equal(t, "standard output", stdout, "")
			matches(t, "standard error", stderr, "^petstore: .*"+regexp.QuoteMeta(tt.stderr)+".*\n$")
		})
	}
	for args, want := range map[string]string{ // what is not an error
		"-addr 127.0.0.1:0 -stdin":             "http://127.0.0.1:.*/v1\n",
		"-addr 127.0.0.1:0 -stdin -log -seed=": "http://127.0.0.1:.*/v1\n",
		"-version":                             `1\.0\.0 \(build \S+, ` + runtime.Version() + `\)\n`,
		"-h":                                   "",
	} {
		code, stdout, stderr := command{key: testKey, args: strings.Split(args, " ")}.output()
		equal(t, args+": the exit code", code, 0)
		matches(t, args+": standard output", stdout, "^"+want+"$")
		equal(t, args+": the help is shown", strings.Contains(stderr, "\nUsage: petstore [flags]\n"), args == "-h")
	}
	defaults, err := parseFlags(nil, io.Discard)
	equal(t, "the flags by default", defaults, options{addr: "127.0.0.1:8080"})
	equal(t, "the error without flags", err, nil)
}

// An error of standard output or of the listener ends the service.
func TestServeErrors(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, w := io.Pipe()
	r.Close()
	getenv := func(string) string { return "" }
	err := run(ctx, []string{"-addr", "127.0.0.1:0"}, getenv, strings.NewReader(""), w, io.Discard)
	matches(t, "the error of standard output", fmt.Sprint(err), "^cannot print the base URL: ")

	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	err = serveUntil(ctx, ln, newService(testKey, newStore(), ctx.Done(), newLog(io.Discard, false)), io.Discard)
	equal(t, "the error of the listener", errors.Is(err, net.ErrClosed), true)
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
	cmd.Process.Signal(syscall.SIGTERM)
	wantExit(t, cmd)
}

// At a signal, the requests in flight are answered, even if the signal comes twice,
// as timeout(1) sends it. SIGINT works even if it was ignored at the start, as it is
// after "&" in a script.
func TestSignals(t *testing.T) {
	signal.Ignore(os.Interrupt)
	defer signal.Reset(os.Interrupt)
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		t.Run(sig.String(), func(t *testing.T) {
			log := new(buffer)
			s, cmd := startProcess(t, log)
			c := s.startRequest(t, "POST /v1/pets")
			held := s.send(t, "GET /v1/pets", "", "Prefer: delay=30")
			s.waitWaiting(t, "GET /v1/pets listPets")
			cmd.Process.Signal(sig)
			held.wait().want(t, 200, "[]")
			s.waitRefused(t) // or two signals could arrive as one
			cmd.Process.Signal(sig)
			c.write(newIda)
			c.read().want(t, 201, `{"id":1,"name":"Ida","categoryId":2}`)
			wantExit(t, cmd)
			equal(t, "standard error", log.take(), "")
		})
	}
}

// A stop closes the connections without a request, as browsers open them, even those
// that are accepted after it has begun. Shutdown would wait for them for five seconds.
func TestSpareConnections(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	connState := newServer(ctx, start(t).service).ConnState
	wantEnd := func(what string, begin func(net.Conn)) {
		client, conn := net.Pipe()
		client.SetDeadline(time.Now().Add(patience))
		begin(conn)
		_, err := client.Read(make([]byte, 1))
		equal(t, "the error of "+what, err, io.EOF)
	}
	wantEnd("a spare connection", func(conn net.Conn) {
		connState(conn, http.StateNew)
		stop()
	})
	wantEnd("a late connection", func(conn net.Conn) { connState(conn, http.StateNew) })
}

// When the service stops, it waits for requests in flight for ten seconds. It does not
// wait for its log, even if standard error is a full pipe.
func TestStopTimeout(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s, cmd := startProcess(t, w, "-log")
	const requests = 5 // whose lines fill the pipe
	for range requests {
		s.send(t, "GET /v1/pets?"+strings.Repeat("x", 50_000), "")
	}
	s.journal(t, requests)
	begin := time.Now()
	cmd.Process.Signal(syscall.SIGTERM)
	wantExit(t, cmd)
	if took := time.Since(begin); took < 10*time.Second {
		t.Errorf("the stop took %v, want 10 s", took)
	}
}

// Documents.

// The console blocks of README.md, run as one session in each shell, print what they
// show, but for times, ports and the version of curl.
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
			need(t, shell, "grep", "sed", "jq")
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
			if len(commands) == 0 || commands[0] != "PETSTORE_API_KEY=test go run ." {
				t.Fatalf("got the commands %q, want one that starts petstore first", commands)
			}
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
			varying := regexp.MustCompile(`time: "[^"]+"|seconds: [0-9.]+|127\.0\.0\.1:\d+|curl/[0-9.]+|\r`)
			clean := func(text string) string { return varying.ReplaceAllString(strings.TrimSpace(text), "") }
			for i := range want {
				equal(t, "$ "+commands[i], clean(got[i]), clean(want[i]))
			}
		})
	}
}

// need skips the test unless these programs are installed.
func need(t testing.TB, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
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

// The script for CI reaches the petstore that it has started, and leaves none behind. If
// another one has the port, or the script is cancelled, it fails, and shows the log. The
// script of a shared petstore saves its pets.
func TestRecipes(t *testing.T) {
	t.Parallel()
	need(t, "sh", "curl", "sed", "mktemp", "mkfifo", "mv", "rm", "cat")
	blocks := codeBlocks(readFile(t, "docs/recipes.md"), "sh")
	if len(blocks) != 2 {
		t.Fatalf("got %d scripts, want one for CI and one that saves pets", len(blocks))
	}
	script := blocks[0]
	run := func(t *testing.T, dir, script string, args ...string) (code int, stdout, stderr string) {
		ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", script, "sh"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "http_proxy=http://127.0.0.1:1", "TMPDIR="+dir, childVariable+"=1")
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		cmd.Stderr = w            // which petstore may have, too, so that it ends when both have ended
		output, _ := cmd.Output() // the exit code is what counts
		w.Close()
		r.SetReadDeadline(time.Now().Add(patience))
		text, err := io.ReadAll(r)
		equal(t, "the error when standard error is read to its end", err, nil)
		return cmd.ProcessState.ExitCode(), string(output), string(text)
	}

	other := command{key: "test"}.start(t)
	other.do(t, "POST /v1/pets", newRex)
	const list = `curl -fsS -H "Authorization: Bearer $PETSTORE_API_KEY" "$base/pets"`
	for name, tt := range map[string]struct {
		script, tests  string
		code           int
		stdout, stderr string // standard error is a part of it
	}{
		"Free":     {script, list, 0, "[]\n", ""},
		"Failed":   {script, list + "; exit 7", 7, "[]\n", "url=/v1/pets"},
		"Occupied": {strings.Replace(script, "127.0.0.1:0", strings.TrimPrefix(other.url, "http://"), 1), list, 1, "", "in use"},
		// These tests end the script, which ends them, or they would go on.
		"Cancelled": {script, list + "; kill $PPID; exec sleep 300 >/dev/null", 1, "[]\n", "url=/v1/pets"},
		"Killed":    {script, list + "; kill -9 $PPID", -1, "[]\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Symlink(os.Args[0], filepath.Join(dir, "petstore")); err != nil {
				t.Fatal(err)
			}
			code, stdout, stderr := run(t, dir, tt.script, "sh", "-c", tt.tests)
			equal(t, "the exit code", code, tt.code)
			equal(t, "standard output", stdout, tt.stdout)
			equal(t, "standard error "+stderr+" has "+tt.stderr, strings.Contains(stderr, tt.stderr), true)
		})
	}
	_, _, stderr := run(t, t.TempDir(), script)
	equal(t, "standard error without tests, "+stderr+", says so", strings.Contains(stderr, "the tests is missing"), true)

	t.Run("Save", func(t *testing.T) {
		odd := `{"id":9223372036854775807,"name":"\"},][{\"id\":5,\\n","categoryId":-9223372036854775808}`
		s := start(t, append(manyPets(250), odd)...)
		list := func() (all string) {
			for _, after := range []string{"0", "100", "200"} {
				all += s.do(t, "GET /v1/pets?limit=100&after="+after, "").body
			}
			return all
		}
		want := list()
		dir := t.TempDir()
		save := func(key string) int {
			code, _, _ := run(t, dir, fmt.Sprintf("no_proxy=127.0.0.1 auth='Authorization: Bearer %s' base=%s/v1\nexport no_proxy\n%s", key, s.url, blocks[1]))
			return code
		}
		equal(t, "the exit code", save(testKey), 0)
		equal(t, "the exit code with a wrong key", save("wrong"), 1)
		s.reset(t, "[]")
		s.reset(t, readFile(t, filepath.Join(dir, "pets.json")))
		equal(t, "the pets", list(), want)
	})
}

// The examples, run as README.md says, pass in a folder that has nothing but a
// petstore, and leave none behind. Without a petstore, they say what to do.
func TestExamples(t *testing.T) {
	t.Parallel()
	shell := []string{"curl", "mktemp", "mkfifo", "rm", "grep", "cut", "tr", "xargs", "awk", "date", "cat"}
	needs := map[string][]string{"sh": shell, "bash": shell, "zsh": shell, "java": {"javac"}}
	commands := []string{"bash client.sh", "zsh client.sh"}
	row := regexp.MustCompile("\\(examples/[^|\n]*\\| `([^`]*)`")
	for _, match := range row.FindAllStringSubmatch(readFile(t, "README.md"), -1) {
		commands = append(commands, match[1])
	}
	fourTests := regexp.MustCompile(`# pass 4\n|\b4 passed|(ok - .*\n){4}|(?s:--- PASS: .*){4}`)
	files, _ := filepath.Glob("examples/*[cC]lient*")
	equal(t, "the number of commands", len(commands), 2+len(files))
	for _, command := range commands {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(command)
			need(t, append(needs[args[0]], args[0])...)
			if args[0] == "node" && exec.Command("node", "--test", "--version").Run() != nil {
				t.Skip("this Node.js is too old")
			}
			dir, file := t.TempDir(), args[len(args)-1]
			text := readFile(t, filepath.Join("examples", file))
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			run := func() (output []byte, err error) {
				ctx, cancel := context.WithTimeout(context.Background(), 4*patience) // Java starts slowly
				defer cancel()
				cmd := exec.CommandContext(ctx, args[0], args[1:]...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "http_proxy=http://127.0.0.1:1", "GOFLAGS=-count=1 -v", childVariable+"=1")
				// A petstore has the standard error of the program. As long as one runs, there
				// is no end of the output.
				cmd.WaitDelay = patience
				return cmd.CombinedOutput()
			}
			output, err := run()
			if err == nil || !strings.Contains(string(output), "build petstore first, or change ") {
				t.Errorf("without petstore, got the error %v and this output:\n%s", err, output)
			}
			if err := os.Symlink(os.Args[0], filepath.Join(dir, "petstore")); err != nil {
				t.Fatal(err)
			}
			output, err = run()
			if err != nil || !fourTests.Match(output) {
				t.Errorf("got the error %v and this output, want that of four tests:\n%s", err, output)
			}
		})
	}
}

// description is api/openapi.json.
type description struct {
	Info  struct{ Version string }
	Paths map[string]struct {
		Servers                []any
		Get, Put, Post, Delete *operation
	}
	Components struct{ Schemas map[string]schema }
}

type operation struct {
	OperationID, Summary, Description string
	Tags                              []string
	Parameters                        []parameter
	RequestBody                       struct{ Content content }
	Responses                         map[string]struct{ Content content }
}

// content is a body.
type content struct {
	JSON struct {
		Schema  schema
		Example any
	} `json:"application/json"`
}

type parameter struct {
	Name, In, Description string
	Required              bool
	Schema                schema
}

type schema struct {
	Ref                  string `json:"$ref"`
	AllOf, OneOf         []schema
	Title, Description   string
	Type, Pattern        string
	Enum                 []string
	Minimum, Maximum     *float64
	Default              any
	Required             []string
	Properties           map[string]schema
	AdditionalProperties *schema
	Items                *schema
}

// readOpenAPI returns api/openapi.json, and its operations by the method and the
// path.
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
				operations[method+" "+path] = *op
			}
		}
	}
	return d, operations
}

// resolve returns the schema that a schema refers to, with the parts of allOf as
// one.
func (d description) resolve(s schema) schema {
	if name, found := strings.CutPrefix(s.Ref, "#/components/schemas/"); found {
		s = d.Components.Schemas[name]
	}
	if s.AllOf == nil {
		return s
	}
	whole := schema{Type: "object", Properties: map[string]schema{}}
	for _, part := range s.AllOf {
		part = d.resolve(part)
		maps.Copy(whole.Properties, part.Properties)
		whole.Required = append(whole.Required, part.Required...)
	}
	return whole
}

// check checks that a value has the type, the bounds and the members of a schema, and
// adds the names of the members to seen.
func (d description) check(t testing.TB, seen map[string]bool, s schema, value any, name string) {
	t.Helper()
	if s.Ref != "" {
		name = strings.TrimPrefix(s.Ref, "#/components/schemas/")
	}
	s = d.resolve(s)
	kind := ""
	switch v := value.(type) {
	case string:
		kind = "string"
		if s.Enum != nil && !slices.Contains(s.Enum, v) {
			t.Errorf("%s: got %q, want one of %q", name, v, s.Enum)
		}
	case float64:
		kind = "number"
		if s.Type == "integer" && v == math.Trunc(v) {
			kind = "integer"
		}
		if s.Minimum != nil && v < *s.Minimum || s.Maximum != nil && v > *s.Maximum {
			t.Errorf("%s: got %v, which is out of bounds", name, v)
		}
	case []any:
		kind = "array"
		if s.Items != nil {
			for _, element := range v {
				d.check(t, seen, *s.Items, element, name)
			}
		}
	case map[string]any:
		kind = "object"
		for member, value := range v {
			described, found := s.Properties[member]
			if !found && s.AdditionalProperties != nil {
				described, found = *s.AdditionalProperties, true
			}
			equal(t, name+" describes "+member, found, true)
			if found {
				seen[name+"."+member] = true
				d.check(t, seen, described, value, name+"."+member)
			}
		}
		for _, member := range s.Required {
			equal(t, name+" has "+member, v[member] != nil, true)
		}
	}
	equal(t, name+": type", kind, s.Type)
}

// api/openapi.json has the version and the operations of the service, their query
// parameters, and the codes of a fault. The bounds and defaults of these are true. It
// marks the operations under /v1, their parameters and the members of a pet that the
// contract does not have.
func TestOpenAPI(t *testing.T) {
	d, operations := readOpenAPI(t)
	equal(t, "the version", d.Info.Version, version)
	s := start(t, manyPets(100)...)
	s.do(t, "GET /v1/pets", "") // so that the journal is not empty
	contract := readFile(t, "api/contract.md")
	checkMark := func(name, description string, isOwn bool) {
		isMarked := strings.HasPrefix(description, "Petstore's own: ")
		equal(t, name+" is marked as petstore's own", isMarked, isOwn)
	}
	var routed []string
	for _, rt := range s.service.routes {
		if rt.operation == "" {
			continue
		}
		routed = append(routed, rt.pattern)
		op := operations[rt.pattern]
		equal(t, rt.pattern+": the name", op.OperationID, rt.operation)
		equal(t, rt.pattern+" has a summary and a tag", op.Summary != "" && len(op.Tags) == 1, true)
		_, hasDefault := op.Responses["default"]
		equal(t, rt.pattern+" describes its other errors", hasDefault, true)
		isOfAPI := slices.Contains(s.service.faultOperations(), rt.operation)
		if isOfAPI {
			checkMark(rt.operation, op.Description, !strings.Contains(contract, rt.operation))
		}
		var names []string
		for _, p := range op.Parameters {
			in := "query"
			if strings.Contains(rt.pattern, "{"+p.Name+"}") {
				in = "path"
			}
			equal(t, p.Name+" is in", p.In, in)
			equal(t, p.Name+" is required", p.Required, in == "path")
			equal(t, p.Name+" has a type", d.resolve(p.Schema).Type != "", true)
			if in == "path" {
				names = append(names, "{"+p.Name+"}")
				continue
			}
			names = append(names, p.Name)
			if isOfAPI {
				checkMark(p.Name, p.Description, slices.Contains(rt.beyond, p.Name))
			}
			base := rt.pattern + "?"
			if rt.operation == "setFault" {
				base += "code=503&"
			}
			try := func(value any, status int) string {
				t.Helper()
				r := s.do(t, fmt.Sprint(base, p.Name, "=", value), "", observer)
				equal(t, r.request, r.status, status)
				return r.body
			}
			if least := p.Schema.Minimum; least != nil {
				try(*least, 200)
				try(*least-1, 400)
			}
			if most := p.Schema.Maximum; most != nil {
				try(*most, 200)
				try(*most+1, 400)
			}
			switch p.Schema.Type {
			case "integer":
				try(0.5, 400)
			case "number":
				try(0.5, 200)
			}
			if p.Schema.Default != nil {
				without := s.do(t, base, "", observer).body
				equal(t, p.Name+": the answer with the default", try(p.Schema.Default, 200), without)
			}
		}
		ofPath := regexp.MustCompile(`\{\w+\}`).FindAllString(rt.pattern, -1)
		equal(t, rt.pattern+": the parameters", sorted(names), sorted(append(ofPath, rt.parameters...)))
	}
	equal(t, "the operations", keys(operations), sorted(routed))
	newPet := d.Components.Schemas["NewPet"]
	for name, member := range newPet.Properties {
		checkMark(name, d.resolve(member).Description, !strings.Contains(contract, "`"+name+"`"))
		var pet map[string]any
		json.Unmarshal([]byte(newRex), &pet) // which has all members
		delete(pet, name)
		r := s.do(t, "POST /v1/pets", jsonText(pet), observer)
		equal(t, name+" is required", r.status == 400, slices.Contains(newPet.Required, name))
	}

	var words []string
	faultCode := d.Components.Schemas["FaultCode"]
	for _, code := range faultCode.OneOf {
		words = append(words, code.Enum...)
		hasBoth := code.Type == "string" && code.Title != ""
		equal(t, fmt.Sprint(code.Enum, code.Pattern, " has a type and a title"), hasBoth, true)
	}
	equal(t, "the words of FaultCode", words, faultWords())
	for _, code := range []string{"400", "599", "503,lost,rst", "", "399", "600", "x", "lost,", "LOST"} {
		isDescribed := slices.ContainsFunc(faultCode.OneOf, func(s schema) bool {
			isPattern := s.Pattern != "" && regexp.MustCompile(s.Pattern).MatchString(code)
			return isPattern || slices.Contains(s.Enum, code)
		})
		r := s.do(t, "PUT /__admin/fault?code="+code, "")
		equal(t, fmt.Sprintf("FaultCode describes %q", code), isDescribed, r.status == 200)
	}
}

// The answers of each operation have the statuses, members and types that
// api/openapi.json describes, and the examples of the operations have the members and
// types. Each member of the schemas below is in some answer.
func TestSchemas(t *testing.T) {
	d, operations := readOpenAPI(t)
	seen := map[string]bool{}
	for request, op := range operations {
		example := op.RequestBody.Content.JSON.Example
		body := ""
		if example != nil {
			body = jsonText(example)
			d.check(t, map[string]bool{}, op.RequestBody.Content.JSON.Schema, example, op.OperationID)
		}
		for _, r := range op.Responses {
			if c := r.Content.JSON; c.Example != nil {
				d.check(t, map[string]bool{}, c.Schema, c.Example, op.OperationID+": example")
			}
		}
		send := func(t *testing.T, s *server, query string, headers ...string) {
			target := strings.Replace(request, "{petId}", "1", 1)
			if op.OperationID == "setFault" {
				target += query
			}
			r := s.do(t, target, body, append(headers, "Prefer: delay=0")...)
			described, found := op.Responses[strconv.Itoa(r.status)]
			wanted := described.Content.JSON.Schema
			if r.status >= 400 {
				wanted = schema{Ref: "#/components/schemas/Error"}
				if strings.Contains(request, " /__admin/") {
					_, found = op.Responses["default"]
				}
			}
			equal(t, fmt.Sprint("the status ", r.status, " is described"), found, true)
			var answer any
			json.Unmarshal([]byte(r.body), &answer) // none for a 204
			d.check(t, seen, wanted, answer, op.OperationID)
		}
		t.Run(op.OperationID, func(t *testing.T) {
			send(t, start(t), "?delay=0") // which may be a 404
			send(t, start(t), "", noKey)
			few := start(t, newIda)
			few.do(t, "GET /nothing", "")
			send(t, few, "?delay=0")

			// These requests make the fault and the journal have all members.
			all := start(t, newRex)
			all.setFault(t, "code=503&delay=30&answer-delay=0&retry-after=1&operation=createPet&skip=1&times=2")
			all.do(t, "GET /v1", "", "Prefer: code=503, delay=0, answer-delay=0, retry-after=1")
			all.do(t, "HEAD /v1/pets?x", "")
			all.do(t, "POST /v1/pets", newRex)
			all.send(t, "POST /v1/pets", newRex)
			all.waitHeld(t, 1)
			send(t, all, "?code=503&delay=0&answer-delay=0&retry-after=1&operation=createPet&skip=1&times=1")
		})
	}
	for _, name := range []string{"Pet", "Error", "Fault", "AppliedFault", "Journal", "JournalMeta", "SentRequest", "JournalEntry"} {
		for member := range d.resolve(d.Components.Schemas[name]).Properties {
			if !seen[name+"."+member] {
				t.Errorf("no answer has %s.%s: is it set, and does a request of this test or an example ask for it?", name, member)
			}
		}
	}
}

var update = flag.Bool("update", false, "write what TestDocuments compares")

// The enums FaultOperation and PetStatus of api/openapi.json are up to date, and so are
// the tables of README.md and the reference that are marked as written. With -update,
// this test writes them.
func TestDocuments(t *testing.T) {
	compare := func(name, want string) {
		t.Helper()
		switch {
		case readFile(t, name) == want:
		case *update:
			if err := os.WriteFile(name, []byte(want), 0o666); err != nil {
				t.Error(err)
			}
		default:
			t.Errorf("%s is not up to date; this writes it: go test . -run TestDocuments -update", name)
		}
	}
	text := readFile(t, "api/openapi.json")
	for name, words := range map[string][]string{
		"FaultOperation": start(t).service.faultOperations(),
		"PetStatus":      petStatuses,
	} {
		enum := regexp.MustCompile(`"` + name + `":\s*\{[^{}]*"enum":\s*(\[[^]]*\])`)
		found := enum.FindStringSubmatchIndex(text)
		if found == nil {
			t.Fatalf(`api/openapi.json has no "%s": { … "enum": [ … ] … }`, name)
		}
		var described []string
		json.Unmarshal([]byte(text[found[2]:found[3]]), &described)
		if !slices.Equal(described, words) {
			text = text[:found[2]] + `["` + strings.Join(words, `", "`) + `"]` + text[found[3]:]
		}
	}
	compare("api/openapi.json", text)

	tables := writeTables(t)
	if t.Failed() {
		return
	}
	var used []string
	for _, name := range []string{"README.md", "docs/reference.md"} {
		written := regexp.MustCompile(`(?s)<!-- written: (\w+) -->.*?<!-- end -->`)
		compare(name, written.ReplaceAllStringFunc(readFile(t, name), func(part string) string {
			name := written.FindStringSubmatch(part)[1]
			used = append(used, name)
			return "<!-- written: " + name + " -->\n\n" + tables[name] + "\n<!-- end -->"
		}))
	}
	equal(t, "the tables in the documents", sorted(used), keys(tables))
}

// writeTables returns the tables by their names: the flags as -h prints them, and the
// others from api/openapi.json. The operations are in the order of the routes. The
// members are in the order of the structs of the service, but for those of the journal
// itself. A row without a meaning is an error.
func writeTables(t *testing.T) map[string]string {
	d, operations := readOpenAPI(t)
	tables := map[string]string{}
	row := func(table string, cells ...string) {
		line := "| " + strings.Join(cells, " | ") + " |\n"
		equal(t, line+" has a meaning", cells[len(cells)-1] != "", true)
		tables[table] += line
	}
	head := func(table string, cells ...string) {
		row(table, cells...)
		tables[table] += "|" + strings.Repeat("---|", len(cells)) + "\n"
	}
	members := func(table, prefix string, s schema, names []string) {
		for _, name := range names {
			member := d.resolve(s.Properties[name])
			row(table, "`"+prefix+name+"`", d.values(member), member.Description)
		}
	}

	head("operations", "operation, with its parameters", "value", "meaning")
	head("control", "operation, with its parameters", "value", "meaning")
	for _, rt := range routes() {
		if rt.operation == "" {
			continue
		}
		table := "operations"
		if strings.Contains(rt.pattern, "/__admin/") {
			table = "control"
		}
		op := operations[rt.pattern]
		row(table, "**"+rt.operation+"**: `"+rt.pattern+"`", "", op.Description)
		switch rt.operation {
		case "createPet":
			members(table, "", d.Components.Schemas["NewPet"], memberNames(reflect.TypeFor[NewPet]()))
		case "setFault": // has a table for its parameters
		default:
			for _, p := range op.Parameters {
				row(table, "`"+p.Name+"`", d.values(p.Schema), p.Description)
			}
		}
	}

	head("codes", "`code`", "what the client gets")
	for _, code := range d.Components.Schemas["FaultCode"].OneOf {
		row("codes", d.values(code), code.Description)
	}

	head("faults", "parameter", "value", "meaning")
	fault := d.resolve(d.Components.Schemas["Fault"])
	for _, p := range operations["PUT /__admin/fault"].Parameters {
		s := d.resolve(p.Schema)
		s.Description = p.Description
		fault.Properties[p.Name] = s
	}
	members("faults", "", fault, memberNames(reflect.TypeFor[standingFaultState]()))

	head("journal", "member", "value", "meaning")
	journal := d.Components.Schemas["Journal"]
	members("journal", "", journal, journal.Required)
	request := d.resolve(d.Components.Schemas["JournalEntry"])
	members("journal", "requests[].", request, memberNames(reflect.TypeFor[entry]()))
	members("journal", "meta.", d.resolve(journal.Properties["meta"]), memberNames(reflect.TypeFor[journalMeta]()))

	var help bytes.Buffer
	parseFlags([]string{"-h"}, &help)
	_, usage, _ := strings.Cut(help.String(), "\n\n")
	equal(t, "the number of flags", strings.Count(usage, "\n  -"), reflect.TypeFor[options]().NumField())
	equal(t, "each flag has a meaning", strings.Contains(usage, "\t\n"), false)
	tables["flags"] = "```\n" + usage + "```\n"
	return tables
}

// values says which values a schema allows.
func (d description) values(s schema) string {
	s = d.resolve(s)
	text := cmp.Or(s.Title, s.Type)
	switch {
	case s.Enum != nil:
		text = "`" + strings.Join(s.Enum, "`, `") + "`"
	case s.OneOf != nil:
		var list []string
		for _, one := range s.OneOf {
			list = append(list, d.values(one))
		}
		text = strings.Join(list, ", ")
	case s.Minimum != nil && s.Maximum != nil:
		text += fmt.Sprintf(" from %v to %v", *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		text += fmt.Sprintf(", at least %v", *s.Minimum)
	}
	if s.Default != nil {
		text += fmt.Sprint(", by default ", s.Default)
	}
	return text
}

// memberNames returns the names that the fields of a struct have in JSON, with those
// of embedded structs in their place.
func memberNames(t reflect.Type) []string {
	var names []string
	for _, field := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// faultWords returns the codes of a fault that are not a status.
func faultWords() []string {
	var codes []string
	for _, known := range faultCodes {
		codes = append(codes, known.code)
	}
	return codes
}

// A helper of these tests that is given a wrong value reports it.
func TestHelpers(t *testing.T) {
	s := start(t, newRex)
	list := s.do(t, "GET /v1/pets", "")
	failed := s.do(t, "GET /v1/pets/9", "")
	d, _ := readOpenAPI(t)
	checkSchema := func(s schema, value any) func(testing.TB) {
		return func(t testing.TB) { d.check(t, map[string]bool{}, s, value, "value") }
	}
	pet := schema{Ref: "#/components/schemas/Pet"}
	pets := schema{Type: "array", Items: &pet}
	least, most := 1.0, 2.0
	within := schema{Type: "number", Minimum: &least, Maximum: &most}
	for name, check := range map[string]func(testing.TB){
		"equal":               func(t testing.TB) { equal(t, "value", 1, 2) },
		"matches":             func(t testing.TB) { matches(t, "value", "abc", "^b") },
		"endsEarly":           func(t testing.TB) { endsEarly(t, time.Now().Add(-time.Minute)) },
		"want: status":        func(t testing.TB) { list.want(t, 201, array(rex)) },
		"want: body":          func(t testing.TB) { list.want(t, 200, "[]") },
		"want: headers":       func(t testing.TB) { response{status: 200, body: "[]\n"}.want(t, 200, "[]") },
		"want: error":         func(t testing.TB) { response{err: io.EOF}.want(t, 0, "") },
		"wantError: status":   func(t testing.TB) { failed.wantError(t, 400, "not_found", "") },
		"wantError: code":     func(t testing.TB) { failed.wantError(t, 404, "not", "") },
		"wantError: message":  func(t testing.TB) { failed.wantError(t, 404, "not_found", "pet 8") },
		"wantHeader: value":   func(t testing.TB) { list.wantHeader(t, "Content-Type", "text/html") },
		"wantHeader: none":    func(t testing.TB) { list.wantHeader(t, "Content-Type", "") },
		"do":                  func(t testing.TB) { s.do(t, "GET /v1/pets", "", "Prefer: code=lost") },
		"reset":               func(t testing.TB) { s.reset(t, "{}") },
		"setFault":            func(t testing.TB) { s.setFault(t, "code=x") },
		"wantFault":           func(t testing.TB) { s.wantFault(t, `{"code":"503"}`) },
		"wantJournal":         func(t testing.TB) { s.wantJournal(t, "GET /v1 200") },
		"wantExit":            func(t testing.TB) { cmd := command{args: []string{"-x"}}.process(); cmd.Start(); wantExit(t, cmd) },
		"readURL":             func(t testing.TB) { readURL(t, bufio.NewReader(strings.NewReader("http://127.0.0.1:1/\n"))) },
		"ids":                 func(t testing.TB) { failed.ids(t) },
		"check: type":         checkSchema(pets, map[string]any{}),
		"check: no member":    checkSchema(pets, []any{map[string]any{"id": 1.0, "name": "a"}}),
		"check: enum":         checkSchema(schema{Type: "string", Enum: []string{"a"}}, "b"),
		"check: too small":    checkSchema(within, 0.5),
		"check: too large":    checkSchema(within, 2.5),
		"check: fraction":     checkSchema(schema{Type: "integer"}, 0.5),
		"check: other member": checkSchema(schema{Type: "object"}, map[string]any{"x": 1.0}),
	} {
		t.Run(name, func(t *testing.T) {
			noted := &failure{TB: t}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				check(noted)
			}()
			<-ended
			if !noted.failed {
				t.Error("this was not reported")
			}
		})
	}
}

// failure is a test that may fail.
type failure struct {
	testing.TB
	failed bool
}

func (f *failure) Error(...any)          { f.failed = true }
func (f *failure) Errorf(string, ...any) { f.failed = true }

func (f *failure) Fatal(...any) {
	f.failed = true
	runtime.Goexit()
}

func (f *failure) Fatalf(string, ...any) { f.Fatal() }

// Fuzzing, a long wait, and speed.

// FuzzCreate compares createPet with encoding/json.
func FuzzCreate(f *testing.F) {
	f.Add([]byte(`{"name":"Rex","categoryId":7,"status":"sold"}`))
	f.Add([]byte(`{"name":"\ud800","name":"","categoryId":-0,"status":"s\u006fld","x":[[]]}`))
	nested := strings.Repeat("[", 9999) + strings.Repeat("]", 9999)
	f.Add([]byte(`{"name":"","categoryId":1,"x":` + nested + "}"))
	decode := func(text []byte) (object map[string]any) {
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		dec.Decode(&object)
		return object
	}
	h := start(f).service.handler()
	f.Fuzz(func(t *testing.T, body []byte) {
		want := decode(body)
		for _, name := range unknownNames(want, memberNames(reflect.TypeFor[NewPet]())) {
			delete(want, name)
		}
		_, isString := want["name"].(string)
		number, _ := want["categoryId"].(json.Number)
		category, err := number.Int64()
		status, hasStatus := want["status"]
		isValid := len(body) <= 65_536 && json.Valid(body) && utf8.Valid(body) && isString && err == nil &&
			(!hasStatus || status == "available" || status == "pending" || status == "sold")

		call(h, "POST", "/__admin/reset", "")
		w := call(h, "POST", "/v1/pets", string(body))
		wantStatus := 400
		if isValid {
			wantStatus = 201
		} else if len(body) > 65_536 {
			wantStatus = 413
		}
		equal(t, fmt.Sprintf("the status of %q", body), w.Code, wantStatus)
		if isValid {
			want["id"], want["categoryId"] = json.Number("1"), json.Number(fmt.Sprint(category)) // -0 is 0
			equal(t, fmt.Sprintf("the pet of %q", body), decode(w.Body.Bytes()), want)
		}
	})
}

// TestLong has a whole stall, which takes long.
func TestLong(t *testing.T) {
	if os.Getenv("PETSTORE_LONG") == "" {
		t.Skip("PETSTORE_LONG is not set")
	}
	begin := time.Now()
	c := program(t).sendRaw(t, "GET /v1/pets", "Prefer: code=stall")
	c.SetDeadline(begin.Add(2 * time.Minute))
	r := c.read()
	equal(t, "status", r.status, 200)
	equal(t, "body", r.body, half("[]\n"))
	equal(t, "the body is cut", errors.Is(r.err, io.ErrUnexpectedEOF), true)
	if took := time.Since(begin); took < 30*time.Second || took > time.Minute {
		t.Errorf("it took %v, want 30 s", took)
	}
}

// Benchmark measures requests to a service that begins with 1,000 pets and as many
// requests in its journal.
func Benchmark(b *testing.B) {
	for _, bb := range []struct{ operation, method, target, body string }{
		{"listPets", "GET", "/v1/pets", ""},
		{"createPet", "POST", "/v1/pets", newRex},
		{"getPet", "GET", "/v1/pets/777", ""},
		{"reset", "POST", "/__admin/reset", ""},
		{"showJournal", "GET", "/__admin/requests", ""},
	} {
		b.Run(bb.operation, func(b *testing.B) {
			h := start(b, manyPets(1000)...).service.handler()
			for range 1000 {
				call(h, "GET", "/v1/pets", "")
			}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if w := call(h, bb.method, bb.target, bb.body); w.Code >= 300 {
					b.Fatalf("got %d %s", w.Code, w.Body)
				}
			}
		})
	}
}

// Helpers: requests and responses.

// server is a running petstore.
type server struct {
	url     string   // without a slash at the end
	key     string   // the API key that do and send use
	log     *buffer  // nil for a process
	service *service // nil for a process or a command
	stop    func()   // stops the service; nil for a process; that of start closes no listener
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
		name, value, found := strings.Cut(header, ":")
		if !found && header != "" {
			t.Fatalf("%s: the header %q has no colon", request, header)
		}
		if found {
			r.Header.Add(name, strings.TrimSpace(value))
		}
	}
	if r.Header["Authorization"] == nil {
		r.Header.Set("Authorization", "Bearer "+s.key)
	}
	if r.Header["Content-Type"] == nil && body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, name := range []string{"Authorization", "Content-Type"} {
		if r.Header.Get(name) == "" {
			r.Header.Del(name)
		}
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
	contentType, length := "", ""
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

// wantError checks that the body is an Error whose message has this text in it.
func (r response) wantError(t testing.TB, status int, code, text string) {
	t.Helper()
	message := r.message()
	r.want(t, status, errorText(status, code, message))
	if message == "" || !strings.Contains(message, text) {
		t.Errorf("%s: the message\n got %q\nwant %q in it", r.request, message, text)
	}
}

// errorText returns an Error as JSON.
func errorText(status int, code, message string) string {
	return fmt.Sprintf(`{"code":"%s","message":%s,"status":%d}`, code, jsonText(message), status)
}

// message returns the message of an Error.
func (r response) message() string {
	var e struct{ Message string }
	json.Unmarshal([]byte(r.body), &e)
	return e.Message
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

// read reads the answer to a request that is not HEAD.
func (c connection) read() response {
	resp, err := http.ReadResponse(c.in, nil)
	return read("the request on a connection of the test", resp, err)
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
	if r := c.read(); r.status != 100 {
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

// wantFault checks what GET /__admin/fault shows.
func (s *server) wantFault(t testing.TB, want string) {
	t.Helper()
	s.do(t, "GET /__admin/fault", "").want(t, 200, want)
}

// waitHeld waits until the standing fault makes this many requests wait.
func (s *server) waitHeld(t testing.TB, want int) {
	t.Helper()
	eventually(t, fmt.Sprint(want, " requests to be held"), func() bool {
		return strings.Contains(s.do(t, "GET /__admin/fault", "").body, fmt.Sprintf(`"held":%d}`, want))
	})
}

// waitWaiting waits until as many requests are listed as waiting, checks that they are
// these, each with its operation, such as "GET /v1/pets listPets", and returns them.
func (s *server) waitWaiting(t testing.TB, want ...string) (waiting []sentRecord) {
	t.Helper()
	eventually(t, fmt.Sprint("the waiting requests ", want), func() bool {
		_, waiting, _ = s.readJournal(t, "?after=9")
		return len(waiting) == len(want)
	})
	var got []string
	for _, r := range waiting {
		got = append(got, fmt.Sprint(r.Method, " ", r.URL, " ", r.Operation))
	}
	equal(t, "the waiting requests", got, want)
	return waiting
}

// sentRecord is a request in the journal as a client reads it: an entry, or one that
// waits.
type sentRecord struct {
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
	Beyond        []string
}

// readJournal returns what the journal answers to a query.
func (s *server) readJournal(t testing.TB, query string) (entries, waiting []sentRecord, meta journalMeta) {
	t.Helper()
	r := s.do(t, "GET /__admin/requests"+query, "")
	var journal struct {
		Requests, Waiting []sentRecord
		Meta              journalMeta
	}
	if err := json.Unmarshal([]byte(r.body), &journal); err != nil {
		t.Fatalf("%s: %v in %.2000s", r.request, err, r.body)
	}
	return journal.Requests, journal.Waiting, journal.Meta
}

// journal waits until n requests have been recorded, and returns them.
func (s *server) journal(t testing.TB, n int) []sentRecord {
	t.Helper()
	entries, _, meta := s.readJournal(t, fmt.Sprint("?total=", n))
	if len(entries) < n {
		t.Fatalf("the journal has %d of %d requests, want %d: %+v", len(entries), meta.Total, n, entries)
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
	return startWith(t, seedOf(t, pets...), func(*server, *http.Server) {})
}

// startWith is start with a seed, and a function that changes the service and its
// HTTP server.
func startWith(t testing.TB, seed *store, change func(*server, *http.Server)) *server {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{key: testKey, log: new(buffer), stop: cancel}
	s.service = newService(testKey, seed, ctx.Done(), newLog(s.log, false))
	ts := httptest.NewUnstartedServer(nil)
	ts.Config = newServer(ctx, s.service)
	change(s, ts.Config)
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

// call sends a request to a handler.
func call(h http.Handler, method, target, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, newRequest(method, target, body))
	return w
}

// newRequest returns a request for a handler.
func newRequest(method, target, body string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+testKey)
	return r
}

// command is a command line of petstore.
type command struct {
	args []string
	key  string            // PETSTORE_API_KEY
	env  map[string]string // other variables, for start
}

// process returns the command as a process of its own.
func (c command) process() *exec.Cmd {
	cmd := exec.Command(os.Args[0], c.args...)
	cmd.Env = append(os.Environ(), childVariable+"=1", "PETSTORE_API_KEY="+c.key)
	return cmd
}

// output runs a command that ends by itself, as one with -stdin does.
func (c command) output() (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	cmd := c.process()
	cmd.Stdout, cmd.Stderr = &out, &errs
	if cmd.Start() == nil {
		defer time.AfterFunc(patience, func() { cmd.Process.Kill() }).Stop()
		cmd.Wait()
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// start runs the command, in the process of the test, on a free port until the test
// ends.
func (c command) start(t testing.TB) *server {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	args := append([]string{"-addr", "127.0.0.1:0"}, c.args...)
	getenv := func(name string) string {
		if name == "PETSTORE_API_KEY" {
			return c.key
		}
		return c.env[name]
	}
	r, w := io.Pipe()
	log := new(buffer)
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, args, getenv, strings.NewReader(""), w, log)
		w.CloseWithError(err)
		ended <- err
	}()
	stdout := bufio.NewReader(r)
	s := &server{url: readURL(t, stdout), key: c.key, log: log}
	s.stop = sync.OnceFunc(func() {
		cancel()
		more, _ := io.ReadAll(stdout)
		equal(t, "standard output after the base URL", string(more), "")
		equal(t, "the error of run", <-ended, nil)
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
	line, err := stdout.ReadString('\n')
	match := regexp.MustCompile(`^(http://127\.0\.0\.1:[1-9]\d*)/v1\n$`).FindStringSubmatch(line)
	if match == nil {
		t.Fatalf("standard output: got %q and the error %v, want the base URL", line, err)
	}
	return match[1]
}

// childVariable is the environment variable that makes the test binary petstore.
const childVariable = "PETSTORE_TEST_CHILD"

// startProcess starts petstore in a process of its own. The process is killed when
// the test ends, and stops if the test binary is killed.
func startProcess(t testing.TB, stderr io.Writer, args ...string) (*server, *exec.Cmd) {
	t.Helper()
	args = append([]string{"-addr", "127.0.0.1:0", "-stdin"}, args...)
	cmd := command{key: testKey, args: args}.process()
	cmd.Stderr = stderr
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	io.WriteString(stdin, "more\n") // only its end stops petstore
	t.Cleanup(func() { cmd.Process.Kill() })
	return &server{url: readURL(t, bufio.NewReader(stdout)), key: testKey}, cmd
}

// wantExit waits for the end of a process, and checks that its exit code is 0.
func wantExit(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	receive(t, "the end of the process", ended)
	equal(t, "the exit code", cmd.ProcessState.ExitCode(), 0)
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

// TestMain runs the tests or, in a process that a test has started, petstore.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		main()
		return
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
		t.Errorf("%s:\n got %.3000s\nwant %.3000s", what, fmt.Sprintf("%#v", got), fmt.Sprintf("%#v", want))
	}
}

// matches checks that a regular expression matches a text.
func matches(t testing.TB, what, got, pattern string) {
	t.Helper()
	if !regexp.MustCompile(pattern).MatchString(got) {
		t.Errorf("%s:\n got %.3000q\nwant a match of %s", what, got, pattern)
	}
}

// receive waits for a value from a channel.
func receive[T any](t testing.TB, what string, c <-chan T) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("waited too long for %s", what)
	}
}

// endsEarly checks that what began then took less time than a whole drip.
func endsEarly(t testing.TB, begin time.Time) {
	t.Helper()
	if took := time.Since(begin); took >= 9*time.Second {
		t.Errorf("it took %v, want less than 9 s", took)
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
	for i := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			f(i)
		}()
	}
	wg.Wait()
}

// buffer is what a service has written. It is safe for concurrent use.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// take returns the text, and removes it.
func (b *buffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.text.Reset()
	return b.text.String()
}

// Helpers: values and files.

// half returns the first half of a text. It is what truncate and stall send of a body.
func half(text string) string { return text[:len(text)/2] }

// array returns a JSON array.
func array(elements ...string) string { return "[" + strings.Join(elements, ",") + "]" }

// jsonText returns a value as the service writes it.
func jsonText(v any) string { return string(encodeJSON(v)) }

// numbers returns first, first+step and so on, up to last.
func numbers(first, last, step int64) []int64 {
	var list []int64
	for n := first; n <= last; n += step {
		list = append(list, n)
	}
	return list
}

// keys returns the sorted keys of a map.
func keys[V any](m map[string]V) []string { return unknownNames(m, nil) }

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
