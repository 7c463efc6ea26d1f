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
	"math/rand"
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
// The arguments of do are the method and the target, the body, and headers. The tests of
// the process start petstore with startProcess. The helpers are at the end of the file.

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
	testKey = "a-key-of-the-tests"

	// simulated is the message of a simulated Error.
	simulated = "simulated error, as requested"

	// gatewayPage is the body of the fault html.
	gatewayPage = "<html><head><title>502 Bad Gateway</title></head><body>502 Bad Gateway</body></html>\n"
)

// teapot is the body of a simulated 418.
var teapot = errorText(418, "im_a_teapot", simulated) + "\n"

// tooLarge is a body that is a byte too large.
var tooLarge = strings.Repeat("x", 65_537)

var update = flag.Bool("update", false, "write the table that TestFindings compares")

// TestContract checks what the contract says of any service, in its sections 2, 4, 5, 7
// and 8, and nothing else. The service is petstore or, with PETSTORE_URL and
// PETSTORE_API_KEY, the one with this base URL, to which it adds two pets.
func TestContract(t *testing.T) {
	base, key := os.Getenv("PETSTORE_URL"), os.Getenv("PETSTORE_API_KEY")
	if base == "" {
		s := start(t, manyPets(150)...)
		base, key = s.url+"/v1", s.key
	}
	credential := "Bearer " + key
	type pet struct { // as the contract has it, and not as petstore encodes it
		ID         int64  `json:"id"`
		Name       string `json:"name"`
		CategoryID int64  `json:"categoryId"`
		Status     string `json:"status"`
	}
	// send sends a request, such as "GET /pets", and returns the status and the body.
	send := func(section, request, body, authorization string) (int, []byte) {
		t.Helper()
		method, target, _ := strings.Cut(request, " ")
		r, err := http.NewRequest(method, base+target, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		resp, err := client.Do(r)
		answer := read(request, resp, err)
		if answer.err != nil {
			t.Fatalf("contract, section %s: %s: %v", section, request, answer.err)
		}
		return answer.status, []byte(answer.body)
	}
	// wantPet checks that JSON is a Pet, and returns it.
	wantPet := func(section, request string, text []byte) (got pet) {
		t.Helper()
		var members map[string]json.RawMessage // encoding/json ignores the case of members of a struct
		err := json.Unmarshal(text, &members)
		isPet := err == nil && json.Unmarshal(text, &got) == nil
		for _, name := range []string{"id", "name", "categoryId"} {
			isPet = isPet && members[name] != nil && string(members[name]) != "null"
		}
		if members["status"] != nil {
			isPet = isPet && slices.Contains([]string{"available", "pending", "sold"}, got.Status)
		}
		if !isPet {
			t.Errorf("contract, sections 2 and %s: %s: got %.300s, want a Pet with id, name, categoryId and perhaps status",
				section, request, text)
		}
		return got
	}
	wantStatus := func(section, request string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("contract, section %s: %s: got the status %d, want %d", section, request, got, want)
		}
	}
	wantError := func(section, request, body, authorization string, want int) {
		t.Helper()
		status, text := send(section, request, body, authorization)
		wantStatus(section, request+" "+body, status, want)
		var members map[string]any
		json.Unmarshal(text, &members)
		_, hasCode := members["code"].(string)
		_, hasMessage := members["message"].(string)
		if !hasCode || !hasMessage || members["status"] != float64(status) {
			t.Errorf("contract, sections 2 and 7: %s %s: got %.300s, want an Error with code, message and the status %d",
				request, body, text, status)
		}
	}

	name := "added by TestContract of petstore, " + time.Now().UTC().Format(time.RFC3339Nano)
	var added []pet
	for status, member := range map[string]string{"sold": `,"status":"sold"`, "": ""} {
		code, text := send("4.2", "POST /pets", fmt.Sprintf(`{"name":"%s","categoryId":1%s}`, name, member), credential)
		wantStatus("4.2", "POST /pets", code, 201)
		got := wantPet("4.2", "POST /pets", text)
		want := pet{got.ID, name, 1, status}
		if status == "" {
			want.Status = got.Status // which a service may choose
		}
		if got != want {
			t.Errorf("contract, section 4.2: POST /pets: got %s, want the pet %v", text, want)
		}
		added = append(added, got)
	}
	t.Logf("added the pets %d and %d to %s", added[0].ID, added[1].ID, base)
	if added[0].ID == added[1].ID {
		t.Errorf("contract, section 2: got the id %d twice, want a unique one for each pet", added[0].ID)
	}
	request := fmt.Sprint("GET /pets/", added[0].ID)
	status, text := send("4.3", request, "", credential)
	wantStatus("4.3", request, status, 200)
	if got := wantPet("4.3", request, text); got != added[0] {
		t.Errorf("contract, section 4.3: %s: got %s, want the pet %v", request, text, added[0])
	}

	for query, most := range map[string]int{
		"": 20, "?limit=1": 1, "?limit=100": 100, "?limit=3&status=sold": 3, "?status=available": 20, "?status=pending": 20,
	} {
		request := "GET /pets" + query
		status, text := send("4.1", request, "", credential)
		wantStatus("4.1", request, status, 200)
		var list []json.RawMessage
		if err := json.Unmarshal(text, &list); err != nil || list == nil || len(list) > most {
			t.Errorf("contract, sections 4.1 and 8: %s: got %d pets in %.300s, want an array of at most %d",
				request, len(list), text, most)
		}
		_, wanted, isFiltered := strings.Cut(query, "status=")
		for _, element := range list {
			if got := wantPet("4.1", request, element); isFiltered && got.Status != wanted {
				t.Errorf("contract, section 4.1, rule 3: %s: got %s, want the status %s", request, element, wanted)
			}
		}
		if len(list) == 0 && (!isFiltered || wanted == "sold") {
			t.Errorf("contract, section 4.1: %s: got no pet, want one, as one was added", request)
		}
	}

	for _, body := range []string{
		`{}`, `{"categoryId":1}`, `{"name":"x"}`, `{"name":5,"categoryId":1}`, `{"name":"x","categoryId":"1"}`,
		`{"name":"x","categoryId":1.5}`, `{"name":"x","categoryId":1,"status":"lost"}`,
	} {
		wantError("4.2", "POST /pets", body, credential, 400)
	}
	wantError("4.3", "GET /pets/9223372036854775807", "", credential, 404)
	for _, wrong := range []string{"", credential + "x", "Basic " + key} {
		wantError("5", "GET /pets", "", wrong, 401)
		wantError("5", "POST /pets", newRex, wrong, 401)
		wantError("5", request, "", wrong, 401)
	}
}

// The contract, section 4.1: list pets. For tests, there is the same list beside /v1.
func TestListPets(t *testing.T) {
	s := start(t, append(manyPets(150), newIda)...) // every tenth is sold, and Ida has no status
	for _, tt := range []struct {
		target string
		ids    []int64
		link   string
	}{
		{"/v1/pets", numbers(1, 20, 1), `</v1/pets?after=20>; rel="next"`},
		{"/v1/pets?limit=100", numbers(1, 100, 1), `</v1/pets?limit=100&after=100>; rel="next"`},
		{"/v1/pets?after=131", numbers(132, 151, 1), ""},
		{"/v1/pets?status=sold&limit=4&after=100", numbers(110, 140, 10), `</v1/pets?limit=4&status=sold&after=140>; rel="next"`},
		{"/v1/pets?status=available&limit=1&after=148", numbers(149, 149, 1), ""},
		{"/v1/pets?limit=%32&Limit=9&x=y", numbers(1, 2, 1), `</v1/pets?limit=2&after=2>; rel="next"`},
		{"/__admin/pets?status=sold&limit=2&after=30", numbers(40, 50, 10), `</__admin/pets?limit=2&status=sold&after=50>; rel="next"`},
	} {
		r := s.do(t, "GET "+tt.target, "")
		equal(t, "the status of "+tt.target, r.status, 200)
		equal(t, "the ids of "+tt.target, r.ids(t), tt.ids)
		r.wantHeader(t, "Link", tt.link)
	}
}

// The contract, section 4.2: add a pet. Unknown members are ignored, the last of duplicate members
// wins, and a lone surrogate becomes U+FFFD.
func TestCreatePet(t *testing.T) {
	s := start(t)
	for i, tt := range []struct{ body, pet string }{
		{newRex, newRex},
		{"\t{ \"categoryId\" : -0,\n\"name\":\"\"} ", `{"name":"","categoryId":0}`},
		{`{"name":"a","categoryId":9223372036854775807}`, `{"name":"a","categoryId":9223372036854775807}`},
		{`{"id":77,"x":null,"name":"a","categoryId":1,"Name":5,"STATUS":"x"}`, `{"name":"a","categoryId":1}`},
		{`{"name":5,"name":"a","categoryId":"x","categoryId":1}`, `{"name":"a","categoryId":1}`},
		{`{"n\u0061me":"\u003c&\/\ud83d\uDE00😀>\u0000\n\"\\","categoryId":1}`, `{"name":"<&/😀😀>\u0000\n\"\\","categoryId":1}`},
		{`{"name":"\ud800","categoryId":1}`, `{"name":"` + "\ufffd" + `","categoryId":1}`},
	} {
		pet := withID(int64(i+1), tt.pet)
		path := fmt.Sprint("/v1/pets/", i+1)
		r := s.do(t, "POST /v1/pets", tt.body)
		r.want(t, 201, pet)
		r.wantHeader(t, "Location", path)
		s.do(t, "GET "+path, "").want(t, 200, pet)
	}
}

// A pet whose headers do not say that it is JSON in UTF-8 is refused. On other requests, these
// headers have no effect.
func TestMediaTypes(t *testing.T) {
	s := start(t, newRex)
	const ofJSON, identity = "Content-Type: application/json", "\nContent-Encoding: Identity"
	const allowed = "; it must be application/json, in UTF-8 (curl sends that with --json)"
	for headers, refusal := range map[string]string{
		`Content-Type: Application/JSON; Charset="UTF-8"; x=y`: "",
		ofJSON + identity:                   "",
		"Content-Type:":                     "Content-Type is missing" + allowed,
		"Content-Type: text/plain":          "Content-Type is 'text/plain'" + allowed,
		ofJSON + "; charset=latin1":         "Content-Type is 'application/json; charset=latin1'" + allowed,
		ofJSON + "\n" + ofJSON:              "Content-Type is 'application/json, application/json'" + allowed,
		ofJSON + "\nContent-Encoding: gzip": "Content-Encoding is 'gzip'; it must be left out or identity",
		ofJSON + identity + identity:        "Content-Encoding is 'Identity, Identity'",
	} {
		list := strings.Split(headers, "\n")
		s.do(t, "POST /__admin/reset", array(newRex), list...).want(t, 204, "")
		s.do(t, "GET /v1/pets/1", "", list...).want(t, 200, rex)
		create := s.do(t, "POST /v1/pets", newIda, list...)
		if refusal == "" {
			create.want(t, 201, ida)
		} else {
			create.wantError(t, 415, "unsupported_media_type", refusal)
		}
	}
}

// The contract, section 4.3: get a pet. All answers but the page of a gateway say that the
// operation is deprecated.
func TestGetPet(t *testing.T) {
	s := start(t, newRex)
	const deprecated = `[@1795132800] [Thu, 05 Dec 2030 00:00:00 GMT] [</v1/pets>; rel="successor-version"]`
	for _, tt := range []struct {
		target, header  string
		status          int
		answer, headers string // a part of the body; Deprecation, Sunset and Link
	}{
		{"/v1/pets/1", "", 200, rex, deprecated},
		{"/v1/pets/%31?x", "", 200, rex, deprecated},
		{"/v1/pets/-1", "", 404, "there is no pet -1", deprecated},
		{"/v1/pets/01", "", 400, "petId is '01'; it must be an integer", deprecated},
		{"/v1/pets/1%2F", "", 400, "petId is '1/'; it must be an integer", deprecated},
		{"/v1/pets/1", "Prefer: code=418", 418, simulated, deprecated},
		{"/v1/pets/1", noKey, 401, "unauthorized", deprecated},
		{"/v1/pets/1", "Prefer: code=html", 502, gatewayPage, "[] [] []"},
	} {
		r := s.do(t, "GET "+tt.target, "", tt.header)
		equal(t, r.request+": the status", r.status, tt.status)
		contains(t, r.request+": the body", r.body, tt.answer)
		headers := fmt.Sprint(r.header["Deprecation"], r.header["Sunset"], r.header["Link"])
		equal(t, r.request+": Deprecation, Sunset and Link", headers, tt.headers)
	}
}

// HEAD has the status and the headers of GET, and no body.
func TestHead(t *testing.T) {
	s := start(t, manyPets(60)...)
	for _, target := range []string{
		"/v1/pets", "/v1/pets?limit=0", "/v1/pets/7", "/v1/pets/77", "/v1/store/orders", "/v1/x",
		"/__admin/pets", "/__admin/fault", "/__admin/requests?total=0", "/healthz", "/openapi.json", "/",
	} {
		get, head := s.do(t, "GET "+target, ""), s.do(t, "HEAD "+target, "")
		get.header.Del("Date")
		head.header.Del("Date")
		equal(t, "the answer to HEAD", head, response{head.request, get.status, get.header, "", nil})
	}
}

// Pets that are added at the same time have ids of their own, and the lists are in order afterwards.
func TestConcurrentCreates(t *testing.T) {
	h := start(t).service
	const clients, each = 8, 200
	concurrently(clients, func(i int) {
		for n := range each {
			name := fmt.Sprint(i, "-", n)
			create := call(h, "POST", "/v1/pets", `{"name":"`+name+`","categoryId":1,"status":"sold"}`)
			get := call(h, "GET", cmp.Or(create.Header().Get("Location"), "/"), "").Body.String()
			list := call(h, "GET", "/v1/pets?status=sold", "").Code
			if create.Code != 201 || get != create.Body.String() || !strings.Contains(get, name) || list != 200 {
				t.Errorf("create %s: got %d %s, then %s, and a list with %d", name, create.Code, create.Body, get, list)
			}
		}
	})
	var ids []int64
	for range clients * each / 100 {
		list := call(h, "GET", fmt.Sprint("/v1/pets?status=sold&limit=100&after=", len(ids)), "")
		ids = append(ids, response{body: list.Body.String()}.ids(t)...)
	}
	equal(t, "the ids", ids, numbers(1, clients*each, 1))
}

// The contract, section 5: authentication.
func TestKey(t *testing.T) {
	s := start(t)
	const bearer, right = `Bearer realm="petstore"`, "Authorization: Bearer " + testKey
	for _, tt := range []struct{ headers, code, challenge string }{
		{right, "", ""},
		{"Authorization: bEARER   " + testKey, "", ""},
		{"Authorization: " + testKey, "unauthorized", bearer},
		{"Authorization: Basic " + testKey, "unauthorized", bearer},
		{right + "\n" + right, "unauthorized", bearer},
		{right + "x", "invalid_token", bearer + `, error="invalid_token"`},
	} {
		r := s.do(t, "GET /v1/pets", "", strings.Split(tt.headers, "\n")...)
		r.wantHeader(t, "WWW-Authenticate", tt.challenge)
		if tt.code == "" {
			r.want(t, 200, "[]")
		} else {
			r.wantError(t, 401, tt.code, "")
		}
	}
}

// Everything under /v1 and /__admin but OPTIONS needs the key, whatever else is wrong.
func TestKeyIsNeeded(t *testing.T) {
	s := start(t)
	for status, requests := range map[int][]string{
		401: {
			"GET /v1", "GET /v1/", "GET /v1/pets", "HEAD /v1/pets", "BREW /v1/pets?%zz", "GET /v1//pets",
			"POST /v1/pets", "GET /v1/nothing", "GET /v1/store/orders", "GET /%76%31/pets",
			"GET /__admin", "GET /__admin/nothing", "GET /__admin/pets", "GET /v1/__admin/pets",
			"POST /__admin/reset", "PUT /__admin/fault?code=x", "DELETE /__admin/requests", "GET /%5F_admin/fault",
		},
		404: {"GET /v1x", "GET /__adminx", "GET /nothing"},
	} {
		for _, request := range requests {
			equal(t, "the status of "+request, s.do(t, request, "x", noKey, "Prefer: code=418").status, status)
		}
	}
}

// The page, its files and the description are sent as they are, whatever the pets, the fault and
// the journal are. The page knows the key, so its headers protect it from other pages.
func TestOpenPaths(t *testing.T) {
	s := start(t, newRex)
	s.setFault(t, "code=503")
	s.do(t, "GET /v1/pets", "")
	s.do(t, "GET /healthz", "", noKey).want(t, 200, `{"status":"ok"}`)
	files := map[string]struct{ name, contentType string }{ // by path
		"/{$}":          {"page/index.html", "text/html; charset=utf-8"},
		"/page.css":     {"page/page.css", "text/css; charset=utf-8"},
		"/page.js":      {"page/page.js", "text/javascript; charset=utf-8"},
		"/facts.js":     {"page/facts.js", "text/javascript; charset=utf-8"},
		"/openapi.json": {"api/openapi.json", "application/json"},
	}
	for _, rt := range routes() {
		_, path, _ := strings.Cut(rt.pattern, " ")
		if isUnder(path, "/v1") || isUnder(path, "/__admin") || path == "/healthz" {
			continue
		}
		text, err := os.ReadFile(files[path].name)
		equal(t, "the error of the file of "+path, err, nil)
		r := s.do(t, "GET "+strings.TrimSuffix(path, "{$}"), "", noKey)
		equal(t, "the status of "+path, r.status, 200)
		equal(t, "the body of "+path, r.body, string(text))
		r.wantHeader(t, "Content-Type", files[path].contentType)
		if path != "/openapi.json" {
			r.wantHeader(t, "Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; "+
				"img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
			r.wantHeader(t, "X-Content-Type-Options", "nosniff")
			r.wantHeader(t, "Referrer-Policy", "no-referrer")
			r.wantHeader(t, "Cross-Origin-Opener-Policy", "same-origin")
		}
	}

	// The page looks for these texts in what petstore sends.
	for _, text := range []string{clientLeft, "this number of seconds"} {
		contains(t, "openapi.json", string(openAPI), text)
		contains(t, "facts.js", string(factsJS), `"`+text+`"`)
	}
}

// A page of any origin may read every answer, with the headers that it needs. A preflight is
// answered before anything else.
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
		}
	}
	r := s.do(t, "GET /v1/pets", "")
	r.wantHeader(t, "Access-Control-Allow-Origin", "")
	r.wantHeader(t, "Vary", "Origin") // for caches

	s.setFault(t, "code=503")
	for _, target := range []string{"/v1/pets", "/v1/nothing/", "/x/../y", "/__admin/reset", "/healthz", "/"} {
		r := s.do(t, "OPTIONS "+target, "", noKey, "Prefer: code=503", "Origin: http://example.com")
		r.want(t, 204, "")
		r.wantHeader(t, "Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
		r.wantHeader(t, "Access-Control-Allow-Headers", "Authorization, Content-Type, Prefer, *")
		r.wantHeader(t, "Access-Control-Max-Age", "600")
	}
	s.wantFault(t, `{"code":"503","matched":0,"applied":0,"next":{"code":"503"}}`)
}

// The contract, section 7: errors. A wrong parameter or body is a 400 whose message says what is
// wrong. It changes nothing, and uses no id.
func TestRefused(t *testing.T) {
	s := start(t, newRex)
	const list, create, fault, reset = "GET /v1/pets?", "POST /v1/pets", "PUT /__admin/fault?", "POST /__admin/reset"
	pet := func(id string) string { return `{"name":"a","categoryId":1,"id":` + id + "}" }
	for _, tt := range []struct{ request, body, message string }{
		{list + "limit=0", "", "limit is '0'; it must be an integer from 1 to 100"},
		{list + "limit=%2B5", "", "limit is '+5';"},
		{list + "limit=" + strings.Repeat("x", 40), "", "limit is '" + strings.Repeat("x", 40) + "';"},
		{list + "limit=5&limit=5", "", "limit is given 2 times"},
		{create, " ", `the body is empty; it must be a JSON object, such as {"name":"Rex","categoryId":7}`},
		{create, " null ", "the body is null;"},
		{create, `{"name":"a"`, "the body is not JSON: unexpected end of JSON input, at byte 11;"},
		{create, `{"name":"","categoryId":1,"x":"` + "\xff\"}", "UTF-8"},
		{create, `{"Name":"a","NAME":"a","categoryId":1}`, "name is missing; it must be a string"},
		{create, strings.Repeat("[", 10_001), "exceeded max depth, at byte 10001; it must be a JSON object"},
		{create, `{"name":` + strings.Repeat("5", 41) + "}", "name is " + strings.Repeat("5", 40) + "…; it must be a string"},
		{create, `{"name":"a","categoryId":null}`, "categoryId is null;"},
		{create, `{"name":"a","categoryId":9223372036854775808}`, "from -9223372036854775808 to"},
		{create, `{"name":"a","categoryId":1,"status":"Sold"}`, `status is "Sold"; it must be available, pending or sold`},
		{create, `{"name":"a","categoryId":1,"status":null}`, "status is null;"},

		// Of several errors, it is always the same one that is reported.
		{list + "status=x&after=x&limit=x", "", "limit is 'x';"},
		{create, `{"status":1,"categoryId":"x","name":1}`, "name is 1;"},

		{fault, "", "code, delay or answer-delay must be given"},
		{fault + "code=600", "", "code is '600'; it must be a status from 400 to 599, after: and such a status, ok, hangup, rst, "},
		{fault + "code=after:399", "", "code is 'after:399'; it must be a status from 400 to 599, after: and such a status, ok,"},
		{fault + "code=after:x", "", "code is 'after:x';"},
		{fault + "code=503,after:", "", "code is 'after:';"},
		{fault + "code=503,,503", "", "code is '';"},
		{fault + "code=503,lost&times=2", "", "times cannot be given with a list"},
		{fault + "code=lost,drip&retry-after=none", "", "retry-after needs a status"},
		{fault + "delay=1&error-code=x", "", "error-code needs a status as code, such as code=503"},
		{fault + "code=503&error-code=" + strings.Repeat("x", 101), "", "…'; it must be 1 to 100 of the characters a-z, A-Z, 0-9, _, - and ."},
		{fault + "delay=01", "", "delay is '01'; it must be a number of seconds from 0 to 30, such as 2 or 0.5"},
		{fault + "delay=1e-05", "", "delay is '1e-05';"},
		{fault + "code=503&retry-after=3601", "", "retry-after is '3601'; it must be an integer from 0 to 3600, date: and such an integer, or none"},
		{fault + "code=503&retry-after=date:00", "", "retry-after is 'date:00';"},
		{fault + "code=503&operation=reset", "", "operation is 'reset'; it must be listPets, createPet"},

		// Under /__admin, what a route does not take is refused, so that a GET in which -X PUT was
		// forgotten fails.
		{"GET /__admin/fault?z&x&code=503&y", "", "GET /__admin/fault does not take the parameter 'code'; it takes no parameters"},
		{"GET /__admin/requests?waiting=-1", "", "waiting is '-1'; it must be an integer from 0 to"},
		{"GET /__admin/requests?limit=1", "", "the parameter 'limit'; it takes the query parameters after, total, waiting, history"},
		{"PUT /__admin/fault?code=503", "{}", "does not take a body"},

		{reset + "?test=" + strings.Repeat("é", 201), "", "test is '" + strings.Repeat("é", 40) + "…'; it must be a text of up to 200 characters"},
		{reset, " ", `the seed is empty; it must be a JSON array in UTF-8, such as [{"name":"Rex","categoryId":7}]`},
		{reset, "\xef\xbb\xbf[", "the seed is not JSON: unexpected end of JSON input, at byte 1;"}, // after the mark
		{reset, "[5]", "pet 1: the pet is 5; it must be a JSON object"},
		{reset, array(newIda, `{"id":1}`), "pet 2: name is missing;"},
		{reset, array(newIda, `{"name":"a","categoryId":1,"stauts":"sold"}`), "pet 2: a pet has no member 'stauts'"},
		{reset, array(pet("0")), "pet 1: id is 0; it must be an integer from 1 to 9223372036854775807"},
		{reset, array(pet("9"), pet("4"), newIda, pet("4")), "pet 4: id 4 is taken by pet 2"},
		{reset, array(pet("9223372036854775807"), newIda), "pet 2: there is no id after 9223372036854775807"},
	} {
		code := "invalid_parameter"
		if tt.body != "" {
			code = "invalid_body"
		}
		s.setFault(t, "code=418&skip=1")
		s.do(t, tt.request, tt.body, "Prefer: delay=0").wantError(t, 400, code, tt.message)
		equal(t, "the pets after "+tt.request+" "+tt.body, s.pets(t), array(rex))
		s.wantFault(t, `{"code":"418","skip":1,"matched":0,"applied":0}`)
	}
	s.do(t, "POST /v1/pets", newIda).want(t, 201, ida)
}

// A path that does not exist is a 404 and never a redirect, even if it only needs cleaning. Where a
// test with the base URL looks for /__admin, it says where that is, and no fault is applied.
func TestNoSuchPath(t *testing.T) {
	s := start(t)
	for _, path := range []string{
		"/pets", "/v1x", "/v1", "/v1/", "/v1/pets/", "/v1/pets/1/", "/v1/pets/1/2",
		"//v1/pets", "/v1//pets", "/v1/./pets", "/v1/../v1/pets", "/v1/pets/.", "/x/../healthz",
		"/healthz/", "/__admin", "/__admin/", "/__admin/reset/", "/__admin//requests",
	} {
		for _, method := range []string{"GET", "POST", "BREW"} {
			r := s.do(t, method+" "+path+"?%zz", "{")
			r.wantError(t, 404, "not_found", "no such path: "+path+"; /openapi.json has the paths, such as /v1/pets")
			r.wantHeader(t, "Allow", "")
		}
	}
	s.do(t, "GET /v1/v1/pets", "").wantError(t, 404, "not_found", "; /v1 stands twice")
	long := "/" + strings.Repeat("x", 40)
	s.do(t, "GET "+long, "").wantError(t, 404, "not_found", "no such path: "+long[:40]+"…;")
	s.do(t, "GET /v1/store/orders", "").wantError(t, 501, "not_implemented", "")

	s.setFault(t, "code=418")
	for _, request := range []string{"PUT /v1/__admin/fault?code=503", "GET /v1/__admin"} {
		r := s.do(t, request, "", "Prefer: code=503")
		r.wantError(t, 404, "not_found", "; /__admin is beside /v1, and not below it")
	}
	s.wantFault(t, `{"code":"418","matched":0,"applied":0,"next":{"code":"418"}}`)
}

// A path without this method is a 405 with the methods that its routes have.
func TestNoSuchMethod(t *testing.T) {
	s := start(t)
	for path, allowed := range map[string]string{
		"/v1/pets/1%2F2": "GET, HEAD", "/__admin/fault": "DELETE, GET, HEAD, PUT", "/": "GET, HEAD",
	} {
		for _, method := range []string{"PATCH", "BREW", "get"} {
			r := s.do(t, method+" "+path+"?%zz", "{")
			r.wantError(t, 405, "method_not_allowed", "this path allows "+allowed+" only")
			r.wantHeader(t, "Allow", allowed)
			r.wantHeader(t, "Deprecation", "")
		}
	}
}

// Only the first of several errors is reported. One that comes before the fault does not use it up.
func TestErrorOrder(t *testing.T) {
	s := start(t)
	for _, tt := range []struct {
		request, body, header string
		status                int
		message               string
		applied               int // how often the fault was applied
	}{
		{"BREW /v1//pets?%zz", tooLarge, noKey, 401, "API key", 0},
		{"BREW /v1//pets?%zz", tooLarge, "Prefer: code=x", 413, "65536 bytes", 0},
		{"BREW /v1//pets?%zz", "{", "Prefer: code=x", 400, "code is 'x'", 0},
		{"BREW /v1//pets?%zz", "{", "", 404, "no such path", 1},
		{"POST /v1/pets?%zz", "{", "Content-Type: x", 400, `the query is malformed: invalid URL escape`, 1},
		{"GET /healthz", tooLarge, "", 413, "65536 bytes", 0},
	} {
		s.setFault(t, "delay=0")
		r := s.do(t, tt.request, tt.body, tt.header, "Expect: 100-continue")
		equal(t, "the status of "+r.request, r.status, tt.status)
		contains(t, "the body", r.body, tt.message)
		s.wantFault(t, fmt.Sprintf(`{"delay":"0","matched":%d,"applied":%[1]d,"next":{"delay":"0"}}`, tt.applied))
	}
}

// An operation that panics, reads a parameter that its route does not list, or returns an error
// that is not an Error, has a bug. Only the log has the details. A fault is applied all the same.
func TestBug(t *testing.T) {
	secret := errors.New("open /secret: permission denied")
	for logged, handle := range map[string]handler{
		secret.Error() + `"`: func(*exchange) (answer, error) { return jsonAnswer(201, []byte("1")), secret },
		secret.Error() + `\\ngoroutine .*handlers_test.go`: func(*exchange) (answer, error) { panic(secret) },
		"the parameter color is not listed":                func(x *exchange) (answer, error) { return answer{}, errors.New(x.query.text("color")) },
	} {
		s := start(t)
		s.service.addRoute(&route{pattern: "GET /v1/pets/added", handle: handle, parameters: []string{"limit"}})
		s.do(t, "GET /v1/pets/added?color=red", "").want(t, 500, errorText(500, "internal_server_error", hasBug))
		matches(t, "the log", s.log.take(), `^.* level=ERROR .*`+logged+`.* url="/v1/pets/added\?color=red"\n$`)
		lost := s.send(t, "GET /v1/pets/added", "", "Prefer: code=lost").wait()
		equal(t, "whether the connection is closed", errors.Is(lost.err, io.EOF), true)
		for _, e := range s.journal(t, 2) {
			equal(t, "the error in the journal", e.Error, hasBug)
		}
		s.log.take()
	}
}

// If anything but an operation panics, the journal says that petstore has a bug, as does the log.
func TestPanic(t *testing.T) {
	for status, e := range map[int]*effect{ // by what has been sent before
		0:   {change: func(*fault, answer) answer { panic("a bug") }},
		200: {pieces: 2, pause: 1}, // of a fault that cannot be released
	} {
		s := start(t)
		w := s.service.journal.currentWorld()
		w.setStanding(&standingFault{faults: []*fault{{effect: e}}, maxApplied: 1, release: func() {}})
		r := s.send(t, "GET /v1/pets", "").wait()
		equal(t, "whether the whole answer comes", r.err == nil, false)
		got := s.journal(t, 1)[0]
		equal(t, "the entry", fmt.Sprint(got.Status, got.Error, got.Answer, got.AnswerHeaders), fmt.Sprint(status, hasBug, "map[]"))
		s.waitWaiting(t)
		s.do(t, "GET /v1/pets", "").want(t, 200, "[]")
		contains(t, "the log", s.log.take(), "panic serving")
	}
}

// The store takes 128 MiB of pets, each counted as its JSON and 128 bytes. A full store refuses
// creates, and still answers everything else. A create that is refused uses no id.
func TestFullStore(t *testing.T) {
	s := start(t, newRex)
	seed := s.service.seed
	equal(t, "the size of Rex", seed.size, int64(len(rex))+128)
	seed.size = 128<<20 - int64(len(ida)) - 128
	for range 2 { // a reset restores the size, too
		s.reset(t, "")
		s.do(t, "POST /v1/pets", newIda).want(t, 201, ida)
		s.do(t, "POST /v1/pets", newIda).wantError(t, 507, "insufficient_storage", "134217728 bytes")
		s.do(t, "GET /v1/pets?status=sold", "").want(t, 200, array(rex))
	}
}

// Faults. Each code changes what the client gets. The journal has the answer, the error and the pet
// that was added, even if the fault keeps them from the client. Rex is in the store.
func TestFaultCodes(t *testing.T) {
	const later = `{"addedLater":{"x":[1]},` // begins a pet of the fault newer
	added := ida + "\n"
	newer := later + added[1:]
	rows := map[string]struct {
		status int    // 0 if there is no answer
		body   string // the part of it that comes
		err    error  // of the connection
		answer string // in the journal
	}{
		"418":       {418, teapot, nil, teapot},
		"after:418": {418, teapot, nil, teapot},
		"ok":        {201, added, nil, added},
		"hangup":    {0, "", io.EOF, ""},
		"rst":       {0, "", syscall.ECONNRESET, ""},
		"lost":      {0, "", io.EOF, added},
		"truncate":  {201, half(added), io.ErrUnexpectedEOF, added},
		"stall":     {201, half(added), io.ErrUnexpectedEOF, added},
		"drip":      {201, added, nil, added},
		"malformed": {201, half(added), nil, half(added)},
		"html":      {502, gatewayPage, nil, gatewayPage},
		"newer":     {201, newer, nil, newer},
	}
	for code, tt := range rows {
		t.Run(code, func(t *testing.T) {
			s := startWith(t, shortWaits, newRex)
			r := s.send(t, "POST /v1/pets", newIda, "Prefer: code="+code).wait()
			equal(t, "status", r.status, tt.status)
			equal(t, "body", r.body, tt.body)
			equal(t, fmt.Sprintf("whether the error %v is %v", r.err, tt.err), errors.Is(r.err, tt.err), true)
			effect, _ := findEffect(code)
			equal(t, "whether it spoils the body", effect.spoils, tt.status == 201 && !json.Valid([]byte(tt.body)))
			want := sentRecord{Status: tt.status, Answer: tt.answer, Fault: map[string]string{"code": code}}
			pets := array(rex)
			if !effect.skipsOperation {
				want.Pet, pets = 2, array(rex, ida)
			}
			if effect.errorStatus > 0 {
				want.Error = simulated
			}
			entries, _, _ := s.readJournal(t, "") // without a wait: it was recorded before
			e := append(entries, sentRecord{})[0]
			got := sentRecord{Status: e.Status, Answer: e.Answer, Fault: e.Fault, Pet: e.Pet, Error: e.Error}
			equal(t, "the journal", got, want)
			equal(t, "whether it has the headers", e.AnswerHeaders != nil, tt.answer != "")
			equal(t, "whether it has the path of the pet", r.header.Get("Location") != "", tt.status == 201)
			equal(t, "the pets", s.pets(t), pets)
		})
	}
	for _, e := range wordEffects {
		_, isTested := rows[e.code]
		equal(t, "whether there is a row of "+e.code, isTested, true)
		if e.spoils { // which the page says with this member
			hasBody := regexp.MustCompile(`"enum": \["` + e.code + `"\],\s.*\s+"x-body": `).Match(openAPI)
			equal(t, "whether openapi.json has x-body for "+e.code, hasBody, true)
		}
	}

	const quoted = `{"name":"{\"id\":","categoryId":1}` // in which newer sees no pet
	s := start(t, newRex, quoted)
	s.do(t, "GET /v1/pets", "", "Prefer: code=newer").want(t, 200, array(later+rex[1:], later+withID(2, quoted)[1:]))
	html := s.do(t, "POST /v1/pets", "[]", "Prefer: code=html") // which is refused
	equal(t, "the page of a gateway", html.body, gatewayPage)
	html.wantHeader(t, "Content-Type", "text/html")
	contains(t, "the error in the journal", s.journal(t, 2)[1].Error, "the body is [];")
	lost := start(t, manyPets(9)...).send(t, "GET /v1/pets", "", "Prefer: code=lost").wait() // over 100 bytes
	equal(t, "whether the connection is closed", errors.Is(lost.err, io.EOF), true)
	head := s.send(t, "HEAD /v1/pets", "", "Prefer: code=truncate").wait()
	equal(t, "the status of HEAD", head.status, 0)
}

// A simulated Error is like a real one, but without the header Allow, whatever the request. Its
// Retry-After is as asked for, or else 1 for 429 and 503.
func TestSimulatedErrors(t *testing.T) {
	s := start(t)
	const challenge = `Bearer realm="petstore", error="invalid_token"`
	for _, tt := range []struct {
		prefer                      string
		status                      int
		code, retryAfter, challenge string // of the Error, and headers
	}{
		{"code=401", 401, "invalid_token", "", challenge},
		{"code=429", 429, "too_many_requests", "1", ""},
		{"code=503", 503, "service_unavailable", "1", ""},
		{"code=after:599", 599, "status_599", "", ""},
		{"code=after:503", 503, "service_unavailable", "1", ""},
		{"code=after:409, retry-after=7, error-code=x", 409, "x", "7", ""},
		{"code=429, retry-after=0", 429, "too_many_requests", "0", ""},
		{"code=503, retry-after=none", 503, "service_unavailable", "", ""},
		{"code=409, error-code=azAZ_-.09" + strings.Repeat("x", 91), 409, "azAZ_-.09" + strings.Repeat("x", 91), "", ""},
		{"code=401, retry-after=2, error-code=x", 401, "x", "2", challenge},
	} {
		r := s.do(t, "BREW /v1/pets?%zz", "{", "Prefer: "+tt.prefer)
		r.wantError(t, tt.status, tt.code, simulated)
		r.wantHeader(t, "Retry-After", tt.retryAfter)
		r.wantHeader(t, "WWW-Authenticate", tt.challenge)
		r.wantHeader(t, "Allow", "")
		r.wantHeader(t, "Preference-Applied", tt.prefer)
	}
}

// The journal has the seconds that both delays take. Retry-After can be a date, which counts from
// the moment when the answer is sent, and is rounded up to a second.
func TestDelays(t *testing.T) {
	t.Parallel()
	s := start(t)
	least := time.Now().Add(6200 * time.Millisecond)
	r := s.do(t, "GET /v1/pets", "", "Prefer: delay=0.1, answer-delay=1.1, code=503, retry-after=date:5")
	most := time.Now().Add(6 * time.Second)
	date, err := http.ParseTime(r.header.Get("Retry-After"))
	if err != nil || date.Before(least) || date.After(most) {
		t.Errorf("got Retry-After: %q, want a date from %v to %v", r.header.Get("Retry-After"), least.UTC(), most.UTC())
	}
	e := s.journal(t, 1)[0]
	if most := time.Since(e.Time).Seconds() + 0.002; e.Seconds < 1.2 || e.Seconds > most {
		t.Errorf("the request took %v seconds, want 1.2 to %v", e.Seconds, most)
	}
}

// Commas and semicolons separate preferences, the first of a name counts, and those with other
// names are ignored. Preference-Applied says what was read. A request that asks for no fault gets
// the standing one. Prefer has no effect outside of /v1.
func TestPrefer(t *testing.T) {
	s := start(t)
	s.setFault(t, "code=503")
	for _, tt := range []struct {
		prefer, applied string
		status          int
	}{
		{` CODE = "418"	; delay="0"`, "code=418, delay=0", 418},
		{",;=,code=418,;", "code=418", 418},
		{"code=418\nPrefer: code=500", "code=418", 418},
		{"code=418,lost", "code=418", 418},
		{"code=after:418,ok", "code=after:418", 418},
		{"answer-delay=0.0;delay=0.010;retry-after=date:-0;code=418", "code=418, delay=0.01, answer-delay=0, retry-after=date:0", 418},
		{"delay=0", "delay=0", 200},
		{"wait=x, respond-async, skip=x, operation=x, times=x", "", 503},
	} {
		lines := strings.Split("Prefer: wait=1\nPrefer: "+tt.prefer, "\n")
		r := s.do(t, "GET /v1/pets", "", lines...)
		equal(t, "the status of "+r.request, r.status, tt.status)
		r.wantHeader(t, "Preference-Applied", tt.applied)
	}
	s.wantFault(t, `{"code":"503","matched":1,"applied":1,"next":{"code":"503"}}`)
	s.do(t, "GET /healthz", "", "Prefer: code=hangup").want(t, 200, `{"status":"ok"}`)
	s.do(t, "GET /__admin/pets", "", "Prefer: code=hangup").want(t, 200, "[]")
}

// A drip sends ten pieces with a pause between them, or one for each byte of a shorter body. When
// the last piece of an answer is written, its request has been recorded and logged, and not before.
func TestPieces(t *testing.T) {
	const pause = 5 * time.Millisecond
	for _, tt := range []struct {
		method, target, code, body string
		pieces                     int
	}{
		{"GET", "/v1/pets", "ok", array(rex) + "\n", 1},
		{"HEAD", "/v1/pets", "ok", "", 1},
		{"GET", "/v1/pets", "drip", array(rex) + "\n", 10},
		{"GET", "/v1/pets?after=1", "drip", "[]\n", 3},
		{"HEAD", "/v1/pets", "drip", "", 1},
	} {
		log := new(buffer)
		s := startWith(t, func(s *service) { s.log, s.durations.second = newLog(log, true), pause }, newRex)
		var recorded, logged []int
		w := writer{httptest.NewRecorder(), func() {
			entries, _, _ := s.readJournal(t, "")
			recorded = append(recorded, len(entries))
			logged = append(logged, strings.Count(log.take(), "msg=request method="+tt.method))
		}}
		r := newRequest(tt.method, tt.target, "")
		r.Header.Set("Prefer", "code="+tt.code)
		begin := time.Now()
		s.service.ServeHTTP(w, r)
		if took := time.Since(begin); took < time.Duration(tt.pieces-1)*pause {
			t.Errorf("%d pieces took %v, want pauses of %v", tt.pieces, took, pause)
		}
		once := append(make([]int, tt.pieces-1), 1)
		equal(t, "what is recorded before each piece", recorded, once)
		equal(t, "what is logged before each piece", logged, once)
		equal(t, "what is sent", w.Body.String(), tt.body)
	}
}

// writer calls a function before it writes.
type writer struct {
	*httptest.ResponseRecorder
	before func()
}

func (w writer) Write(p []byte) (int, error) {
	w.before()
	return w.ResponseRecorder.Write(p)
}

// A drip and a stall send what they can before they wait. A client that closes its sending half
// counts as having left, if its request waits.
func TestSentAtOnce(t *testing.T) {
	s := startWith(t, longWaits)
	for _, code := range []string{"drip", "stall"} {
		c := s.sendRaw(t, "GET /v1/pets", "Prefer: code="+code)
		first, _ := c.in.ReadString('[')
		matches(t, "what comes at once of a "+code, first, `^HTTP/1.1 200 OK\r\n(?s:.*)\r\n\r\n\[$`)
		s.waitWaiting(t, "GET /v1/pets listPets")
		c.CloseWrite()
		rest, _ := io.ReadAll(c.in)
		equal(t, "the rest of a "+code, string(rest), "")
	}
	gone, leave := context.WithCancel(context.Background())
	leave()
	w := httptest.NewRecorder()
	s.service.ServeHTTP(w, newRequest("GET", "/v1/pets", "").WithContext(gone))
	equal(t, "the status without a wait", w.Code, 200)
}

// On a connection that it has used before, a browser would repeat a request that gets no answer, so
// a connection with a browser is closed after each answer. Those of other clients stay open.
func TestConnectionOfBrowser(t *testing.T) {
	s := startWith(t, shortWaits)
	const browser = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	for _, tt := range []struct {
		request, header string
		next            int // the status of the next request, or 0
	}{
		{"GET /v1/pets", browser, 0},
		{"GET /v1/pets", "Origin: http://a.test", 0},
		{"GET /v1/pets", browser + "\nPrefer: code=503", 0},
		{"OPTIONS /v1/pets", browser, 0},
		{"GET /v1/pets", "User-Agent: curl Mozilla/5.0", 200},
		{"GET /v1/pets", "Prefer: code=drip", 200},
	} {
		c := s.sendRaw(t, tt.request, tt.header)
		c.read()
		c.write("GET /healthz HTTP/1.1\nHost: petstore\n\n")
		equal(t, "the status after "+tt.request+" with "+tt.header, c.read().status, tt.next)
	}
}

// A wait ends when its standing fault ends, at a reset, at a stop, and when the client leaves.
// Until then, the request is listed as waiting, and is not recorded.
func TestWaitEnds(t *testing.T) {
	ends := map[string]func(*testing.T, *server, pending){
		"delete": func(t *testing.T, s *server, _ pending) { s.do(t, "DELETE /__admin/fault", "").want(t, 204, "") },
		"put":    func(t *testing.T, s *server, _ pending) { s.setFault(t, "code=503") },
		"reset":  func(t *testing.T, s *server, _ pending) { s.reset(t, "") },
		"stop":   func(_ *testing.T, s *server, _ pending) { s.stop() },
		"leave":  func(_ *testing.T, _ *server, p pending) { p.leave() },
	}
	const noAnswer, part = "0 the client left before its answer", "201 the client left before the end of its answer"
	before, after, added := array(rex), array(rex, ida), ida+"\n"
	for _, tt := range []struct {
		fault, header string
		pets          string // while the request waits
		status        int    // of the answer after a release
		body          string
		left          string // the status and the error in the journal if the client leaves
		answer        string // in the journal then
	}{
		{"delay=30", "", before, 201, added, noAnswer, ""},
		{"answer-delay=30", "", after, 201, added, noAnswer, added},
		{"code=lost&answer-delay=30", "", after, 0, "", noAnswer, added},
		{"code=after:418&answer-delay=30", "", after, 418, teapot, noAnswer, teapot},
		{"code=hangup&answer-delay=30", "", before, 0, "", noAnswer, ""},
		{"code=drip", "", after, 201, added, part, added},
		{"code=stall", "", after, 201, half(added), part, added},
		{"code=503", "Prefer: delay=30", before, 201, added, noAnswer, ""},
	} {
		for end, act := range ends {
			if tt.header != "" && (end == "delete" || end == "put") {
				continue // which end the standing fault only
			}
			t.Run(tt.fault+" "+tt.header+"/"+end, func(t *testing.T) {
				s := startWith(t, longWaits)
				s.reset(t, array(newRex)) // a stop ends the waits of this world, too
				s.setFault(t, tt.fault)
				p := s.send(t, "POST /v1/pets", newIda, tt.header)
				s.waitWaiting(t, "POST /v1/pets createPet")
				s.wantJournal(t)
				eventually(t, "the pets", func() bool { return s.pets(t) == tt.pets })
				act(t, s, p)
				if end != "leave" {
					r := p.wait()
					equal(t, "status", r.status, tt.status)
					equal(t, "body", r.body, tt.body)
					return
				}
				e := s.journal(t, 1)[0]
				equal(t, "status and error in the journal", fmt.Sprint(e.Status, " ", e.Error), tt.left)
				equal(t, "answer in the journal", e.Answer, tt.answer)
				equal(t, "whether its headers are there", e.AnswerHeaders != nil, tt.answer != "")
				equal(t, "the pets", s.pets(t), tt.pets)
			})
		}
	}
}

// The journal has the operation of a request, for which a standing fault can be. HEAD counts as GET.
func TestFaultOperation(t *testing.T) {
	s := start(t)
	s.setFault(t, "code=418&operation=getPet")
	for request, want := range map[string]string{ // the status and the operation
		"GET /v1/pets": "200 listPets", "HEAD /v1/pets?limit=x": "400 listPets", "POST /v1/%70ets": "415 createPet",
		"GET /v1/pets/x": "418 getPet", "HEAD /v1/pets/1": "418 getPet",
		"GET /v1/store/orders": "501 ", "BREW /v1/pets": "405 ", "GET /v1/pets/": "404 ", "GET /v1/nothing": "404 ",
	} {
		s.do(t, "DELETE /__admin/requests", "")
		r := s.do(t, request, "")
		equal(t, request, fmt.Sprint(r.status, " ", s.journal(t, 1)[0].Operation), want)
	}
	s.wantFault(t, `{"code":"418","operation":"getPet","matched":2,"applied":2,"next":{"code":"418"}}`)
}

// A standing fault lets skip requests through, and is applied to times requests. Each code of a
// list is applied once, in order. A request that matches gets what next had, as the journal shows.
func TestFaultList(t *testing.T) {
	requests := map[string]string{"list": "GET /v1/pets", "get": "GET /v1/pets/9", "create": "POST /v1/pets"}
	for _, tt := range []struct {
		query, requests  string // the requests, each with its status and what it gets
		matched, applied int    // in the end
	}{
		{"code=418", "list 418 [code:418], get 418 [code:418]", 2, 2},
		{"code=418&times=2", "list 418 [code:418], get 418 [code:418], list 200 []", 3, 2},
		{"code=418&skip=2&times=1", "list 200 [], get 404 [], list 418 [code:418], list 200 []", 4, 1},
		{"code=418&skip=1&operation=getPet", "list 200 [], get 404 [], list 200 [], get 418 [code:418]", 2, 1},
		{"delay=0.00&answer-delay=0", "list 200 [answer-delay:0 delay:0], list 200 [answer-delay:0 delay:0]", 2, 2},
		{"code=after:504,ok&retry-after=3", "create 504 [code:after:504 retry-after:3], create 201 [code:ok], create 201 []", 3, 2},
		{"code=lost,404&skip=1&delay=0&retry-after=7&error-code=x",
			"create 201 [], create 0 [code:lost delay:0], list 404 [code:404 delay:0 error-code:x retry-after:7], list 200 []", 4, 2},
	} {
		s := start(t)
		var before, after struct {
			Matched, Applied int
			Next             map[string]string
		}
		json.Unmarshal([]byte(s.do(t, "PUT /__admin/fault?"+tt.query, "").body), &before)
		var got []string
		for i, request := range strings.Split(tt.requests, ", ") {
			name, _, _ := strings.Cut(request, " ")
			r := s.send(t, requests[name], newRex).wait()
			given := s.journal(t, i+1)[i].Fault
			got = append(got, fmt.Sprintf("%s %d %s", name, r.status, strings.TrimPrefix(fmt.Sprint(given), "map")))
			r.wantHeader(t, "Retry-After", given["retry-after"])
			after.Next = nil
			json.Unmarshal([]byte(s.do(t, "GET /__admin/fault", "").body), &after)
			if after.Matched > before.Matched {
				equal(t, tt.query+": next before "+request, before.Next, given)
			}
			before = after
		}
		equal(t, tt.query, strings.Join(got, ", "), tt.requests)
		equal(t, tt.query+": matched and applied", []int{after.Matched, after.Applied}, []int{tt.matched, tt.applied})
		equal(t, tt.query+": the number of pets", strings.Count(s.pets(t), `"id"`), strings.Count(tt.requests, "create"))
	}
	start(t).do(t, "PUT /__admin/fault?code=lost,503&skip=1&operation=listPets&retry-after=7&error-code=x&delay=0.00", "").want(t, 200,
		`{"code":"lost,503","delay":"0","retry-after":"7","error-code":"x","operation":"listPets","skip":1,"matched":0,"applied":0}`)
}

// Each code of a list is applied once, however many requests come at the same time.
func TestConcurrentFaults(t *testing.T) {
	const clients, each = 8, 500
	h := start(t).service
	call(h, "PUT", "/__admin/fault?code=503,404,429,404&skip=300", "")
	statuses := make(chan int, clients*each)
	concurrently(clients, func(int) {
		for range each {
			statuses <- call(h, "GET", "/v1/pets", "").Code
		}
	})
	close(statuses)
	got := map[int]int{}
	for status := range statuses {
		got[status]++
	}
	equal(t, "answers by status", got, map[int]int{200: clients*each - 4, 404: 2, 429: 1, 503: 1})
	counts := fmt.Sprintf(`"matched":%d,"applied":4`, clients*each)
	contains(t, "the fault", call(h, "GET", "/__admin/fault", "").Body.String(), counts)
}

// Of faults that are set at the same time, all but the last have ended, so they hold no request.
func TestConcurrentPuts(t *testing.T) {
	const clients, each = 8, 2000
	w := start(t).service.journal.currentWorld()
	var running atomic.Int64
	concurrently(clients, func(int) {
		for range each {
			ctx, cancel := context.WithCancel(w.ctx)
			running.Add(1)
			context.AfterFunc(ctx, func() { running.Add(-1) })
			w.setStanding(&standingFault{release: cancel})
		}
	})
	eventually(t, "the end of all faults but one", func() bool { return running.Load() == 1 })
}

// A request is listed as waiting from its arrival, and with its body and its fault once
// these are known, but without the key. It has the seconds so far.
func TestWaiting(t *testing.T) {
	s := start(t)
	s.startRequest(t, "POST /v1/pets")
	_, arrived, _ := s.readJournal(t, "")
	if len(arrived) != 1 || arrived[0].URL != "/v1/pets" || arrived[0].Arrived != 1 || arrived[0].Fault != nil {
		t.Errorf("got %+v, want the request whose body has not arrived", arrived)
	}
	s.send(t, "POST /v1/pets?x", newRex, "Prefer: delay=30.00", "X: y")
	w := s.waitWaiting(t, "POST /v1/pets?x createPet")[0]
	equal(t, "fault", w.Fault, map[string]string{"delay": "30"})
	equal(t, "body", w.Body, newRex)
	equal(t, "the key", w.Headers["Authorization"], "Bearer ***")
	s.setFault(t, "code=503")
	s.do(t, "DELETE /__admin/fault", "") // which does not release what has a fault of its own
	eventually(t, "the seconds so far to grow", func() bool {
		_, later, _ := s.readJournal(t, "")
		return len(later) == 2 && later[1].Seconds > w.Seconds
	})
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
	s.send(t, "GET /v1/pets", "", "Prefer: delay=30", "User-Agent: a")
	s.waitWaiting(t, "GET /v1/pets listPets")

	r := s.do(t, "GET /__admin/requests", "")
	equal(t, "status", r.status, 200)
	r.wantHeader(t, "Content-Type", "application/json")
	varying := regexp.MustCompile(`("time":)"\d{4}(?:-\d\d){2}T\d\d(?::\d\d){2}\.\d{3}Z"|` +
		`("seconds":)\d+(?:\.\d{1,3})?|("since":)"\d{4}(?:-\d\d){2}T\d\d(?::\d\d){2}\.\d+Z"|` +
		`("client":"127\.0\.0\.1:)\d+","operation":"listPets"`)
	got := varying.ReplaceAllString(r.body, "$1$2$3$4")
	got = strings.ReplaceAll(got, "\ufffd", `\ufffd`) // which Go 1.27 does not escape
	connection := jsonText(c.LocalAddr().String())
	equal(t, "the journal", got, `{"requests":[
{"arrived":1,"period":1,"time":,"method":"POST","url":"/v1/pets?%zz=%20","client":`+connection+`,"operation":"createPet",`+
		`"headers":{"Authorization":"Bearer ***","Host":"petstore","Prefer":"delay=0, y",`+
		`"Transfer-Encoding":"chunked","X-A":"1, 2, 3, "},`+
		`"body":"<ü>\ufffd\r\n\u0000","fault":{"delay":"0"},"status":400,`+
		`"answerHeaders":{"Cache-Control":"no-store","Content-Length":"`+first.header.Get("Content-Length")+`",`+
		`"Content-Type":"application/json","Preference-Applied":"delay=0","Vary":"Origin"},`+
		`"answer":`+jsonText(first.body)+`,"error":`+jsonText(first.message())+`,"ignored":["y"],"ended":1,"seconds":},
{"arrived":2,"period":1,"time":,"method":"POST","url":"/v1/pets?y&x","client":`+connection+`,"operation":"createPet",`+
		`"headers":{"Content-Length":"2"},"body":"{}","status":401,`+
		`"answerHeaders":{"Cache-Control":"no-store","Content-Length":"`+second.header.Get("Content-Length")+`",`+
		`"Content-Type":"application/json","Vary":"Origin","Www-Authenticate":"Bearer realm=\"petstore\""},`+
		`"answer":`+jsonText(second.body)+`,"error":`+jsonText(second.message())+`,"ended":2,"seconds":}
],"waiting":[
{"arrived":3,"period":1,"time":,"method":"GET","url":"/v1/pets","client":"127.0.0.1:,`+
		`"headers":{"Authorization":"Bearer ***","Connection":"close","Host":"`+strings.TrimPrefix(s.url, "http://")+`",`+
		`"Prefer":"delay=30","User-Agent":"a"},"body":"","fault":{"delay":"30"},"seconds":}
],"meta":{"total":2,"ended":2,"period":1,"since":}}
`)
	zeros, err := json.Marshal(timestamp{time.Unix(0, 0)})
	equal(t, "a time and its error", fmt.Sprint(string(zeros), err), `"1970-01-01T00:00:00.000Z"<nil>`)
	for _, e := range s.journal(t, 2) {
		if e.Time.Before(begin.Truncate(time.Millisecond)) || e.Time.After(time.Now()) {
			t.Errorf("got the time %v, want one since %v", e.Time, begin)
		}
	}
}

// Whatever comes, in whatever order, the journal shows what a list of all requests says.
func TestJournalModel(t *testing.T) {
	type request struct{ arrived, period, ended int64 } // ended is 0 while it waits
	done, cancel := context.WithCancel(context.Background())
	cancel()
	for seed := range int64(200) {
		random := rand.New(rand.NewSource(seed))
		j := newJournal(newWorld(done, newStore()))
		j.keeps = 4
		var all, waiting []*request // in the order of arrival
		entries := map[*request]*entry{}
		number, test, endings, totals := int64(1), "", int64(0), map[int64]int64{} // by period
		for range 50 {
			switch n := random.Intn(8); {
			case n == 0:
				j.clear()
				number++
			case n == 1:
				w := newWorld(done, newStore())
				test = fmt.Sprint(number)
				j.reset(w, test)
				equal(t, "the world after a reset", j.currentWorld(), w)
				number++
			case n < 5 || len(waiting) == 0:
				r := &request{arrived: int64(len(all) + 1), period: number}
				all, waiting, entries[r] = append(all, r), append(waiting, r), &entry{}
				j.add(entries[r])
			default:
				i := random.Intn(len(waiting))
				r := waiting[i]
				waiting = slices.Delete(waiting, i, i+1)
				endings++
				totals[r.period]++
				r.ended = endings
				j.end(entries[r], outcome{Status: 500}) // so that each repeats an earlier one
			}
			after, total, most := random.Int63n(endings+2), random.Int63n(4), random.Int63n(3)
			p, isDue := j.wait(done, total, most)
			for _, shown := range []*period{p, nil} {
				var ended, held []int64
				for _, r := range all {
					isShown := shown == nil || r.period == number
					if isShown && r.ended == 0 {
						held = append(held, r.arrived)
					} else if isShown && r.ended > after && r.ended > endings-4 {
						ended = append(ended, r.arrived)
					}
				}
				got := j.read(shown, after)
				equal(t, "what has ended", arrivals(got.ended), ended)
				equal(t, "what waits", arrivals(got.waiting), held)
				equal(t, "the period and its test", fmt.Sprint(got.meta.Number, got.meta.Test), fmt.Sprint(number, test))
				equal(t, "total and ended", []int64{got.meta.Total, got.meta.Ended}, []int64{totals[number], endings})
				if shown != nil {
					equal(t, "whether a wait is over", isDue, totals[number] >= total && int64(len(held)) <= most)
				}
			}
			if t.Failed() {
				t.Fatalf("with the seed %d, after %d requests", seed, len(all))
			}
		}
	}
}

func arrivals(entries []*entry) (list []int64) {
	for _, e := range entries {
		list = append(list, e.Arrived)
	}
	return list
}

// A reset begins a period, with the name of a test if it gives one, and so does a DELETE, with the
// same name. The journal has the requests of the current period and, with the history, of all.
func TestPeriods(t *testing.T) {
	s := start(t)
	for _, tt := range []struct{ request, test string }{
		{"POST /__admin/reset?test=A%20b", "A b"},
		{"DELETE /__admin/requests", "A b"},
		{"POST /__admin/reset", ""},
	} {
		begin := time.Now()
		s.do(t, tt.request, "").want(t, 204, "")
		_, _, meta := s.readJournal(t, "")
		if meta.Since.Before(begin) || meta.Since.After(time.Now()) || meta.Since.Location() != time.UTC {
			t.Errorf("since: got %v, want the time of the request, after %v, in UTC", meta.Since, begin)
		}
		s.do(t, "GET /v1/pets", "")
		e := s.journal(t, 1)[0]
		equal(t, "the test after "+tt.request, []string{meta.Test, e.Test}, []string{tt.test, tt.test})
		equal(t, "the period after "+tt.request, e.Period, meta.Period)
	}
	for query, want := range map[string][]int64{
		"": {4}, "?history=false": {4}, "?history=true": {2, 3, 4}, "?history=true&after=1": {3, 4}, "?after=3": nil,
	} {
		entries, _, meta := s.readJournal(t, query)
		var periods []int64
		for _, e := range entries {
			periods = append(periods, e.Period)
		}
		equal(t, "the periods with "+query, periods, want)
		equal(t, "total, ended and period with "+query, []int64{meta.Total, meta.Ended, meta.Period}, []int64{1, 3, 4})
	}
	for range 1000 {
		call(s.service, "GET", "/v1/pets", "")
	}
	entries, _, _ := s.readJournal(t, "?history=true")
	equal(t, "how many requests are kept", len(entries), 1000)
}

// requestsOf returns the requests that a text describes, such as "429 fault=429/3, 2x201 at=3":
// the first gets a fault, and two come 3 seconds later. A - in place of the status is one that
// waits. What has no other meaning is a header, and _ stands for a space.
func requestsOf(t *testing.T, text string) (requests []*entry) {
	for _, one := range strings.Split(text, ", ") {
		fields := strings.Fields(one)
		count, status, isMany := strings.Cut(fields[0], "x")
		if !isMany {
			count, status = "1", fields[0]
		}
		e := entry{Operation: "createPet", Method: "POST", Client: "[::1]:80", Time: timestamp{time.Unix(1000, 0)}}
		var o outcome
		for _, field := range fields[1:] {
			name, value, _ := strings.Cut(strings.ReplaceAll(field, "_", " "), "=")
			switch name {
			case "at":
				e.Time = timestamp{time.Unix(1000, 0).Add(parsedSeconds(value))}
			case "for":
				e.Seconds = parsedSeconds(value).Seconds()
			case "pet":
				o.Pet = 1
			case "name":
				e.Body = `{"name":"` + value + `"}`
			case "body":
				e.Body = value
			case "rest":
				e.rest = 1
			case "part":
				e.isPartial = true
			case "period":
				e.period = &period{}
			case "client":
				e.Client = value
			case "url":
				e.URL = value
			case "method":
				e.Method = value
			case "list":
				e.Operation, e.Method = "listPets", "GET"
			case "path":
				e.Operation, e.URL = "", value
			case "left":
				o.hasLeft, o.Error = true, clientLeft+" before its answer"
			case "error":
				o.Error = value
			case "fault":
				code, retryAfter, _ := strings.Cut(value, "/")
				effect, err := findEffect(code)
				equal(t, "the error for "+code, err, nil)
				e.Fault = &fault{effect: effect, faultParameters: faultParameters{RetryAfter: retryAfter}}
			default:
				e.Headers = journalHeader{name: {value}}
			}
		}
		n, _ := strconv.Atoi(count)
		for range n {
			copied := e
			if status != "-" {
				o := o
				o.Status, _ = strconv.Atoi(status)
				copied.outcome = &o
			}
			requests = append(requests, &copied)
		}
	}
	// They are counted as they arrive and end.
	for i, e := range requests {
		e.Arrived = int64(i + 1)
		for _, other := range requests {
			end := other.Time.Add(other.duration())
			if other.outcome != nil && !end.After(e.Time.Time) {
				e.endingsBefore++
			}
			if other.outcome != nil && e.outcome != nil && !end.After(e.Time.Add(e.duration())) {
				e.Ended++
			}
		}
	}
	return requests
}

// A request repeats the last equal one that was over when it arrived, if that one had failed.
func TestRepetitions(t *testing.T) {
	for _, tt := range []struct{ name, requests, repeats string }{
		{"after an error", "503 for=1, 201 at=2", "0 1"},
		{"after a refusal", "400 for=1, 400 at=2", "0 1"},
		{"after no answer", "0 for=1, 201 at=2", "0 1"},
		{"after a success", "201 for=1, 503 at=2", "0 0"},
		{"after a part", "200 for=1 fault=malformed, 200 at=2", "0 1"},
		{"after a HEAD", "200 for=1 fault=malformed method=HEAD, 200 at=2 method=HEAD", "0 0"},
		{"each repeats the last", "503 for=1, 503 at=2 for=1, 201 at=4", "0 1 2"},
		{"a success ends it", "503 for=1, 201 at=2 for=1, 201 at=4", "0 1 0"},
		{"two repeat the same", "503 for=1, 201 at=2 for=7, 201 at=3 for=6", "0 1 1"},
		{"the other one in flight", "503 for=2, 201 at=1 for=2", "0 0"},
		{"a hedge that succeeds", "503 for=5, 201 at=1 for=1, 201 at=6", "0 0 0"},
		{"at once, but for the last", "503 for=2, 503 for=5, 201 at=3", "0 0 1"},
		{"one that waits", "503 for=1, - at=2, 201 at=3", "0 1 1"},

		// The client may have left before petstore notices it.
		{"left, and noticed in time", "0 for=2.099 left, 201 at=2", "0 1"},
		{"left, and noticed too late", "0 for=2.1 left, 201 at=2", "0 0"},
		{"left, but sent together", "0 for=0.15 left, 0 at=0.1 for=0.05 left", "0 0"},
		{"left, and not together", "0 for=0.15 left, 0 at=0.101 for=0.049 left", "0 1"},
		{"ended, and did not leave", "503 for=2.001, 201 at=2", "0 0"},

		// Requests are equal if they agree in these.
		{"period", "503, 201 at=2 period", "0 0"},
		{"address", "503, 201 at=2 client=[::2]:80", "0 0"},
		{"port", "503, 201 at=2 client=[::1]:81", "0 1"},
		{"method", "503, 201 at=2 method=HEAD", "0 0"},
		{"URL", "503, 201 at=2 url=/?x", "0 0"},
		{"body", "503, 201 at=2 body=x", "0 0"},
		{"rest of the body", "503, 201 at=2 rest", "0 0"},
		{"whole body", "503 part, 201 at=2", "0 0"},
		{"the other whole body", "503, 201 at=2 part", "0 0"},
		{"User-Agent", "503, 201 at=2 User-Agent=x", "0 0"},
		{"Origin", "503, 201 at=2 Origin=x", "0 0"},
		{"Authorization", "503, 201 at=2 Authorization=x", "0 0"},
		{"Content-Type", "503, 201 at=2 Content-Type=x", "0 0"},
		{"other headers", "503, 201 at=2 X-Request-Id=x", "0 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			requests := requestsOf(t, tt.requests)
			shown := slices.Clone(requests)
			noteRepetitions(shown)
			var got []string
			for i, e := range shown {
				got = append(got, fmt.Sprint(e.Repeats))
				equal(t, "Repeats in the journal", requests[i].Repeats, 0)
			}
			equal(t, "what they repeat", strings.Join(got, " "), tt.repeats)
		})
	}
}

// The journal says what a request repeats as soon as its body has been read, and for as long as
// the earlier request is kept.
func TestRepeats(t *testing.T) {
	s := start(t)
	long := strings.Repeat("x", 4001) // of which a byte is not kept
	s.send(t, "POST /v1/pets", newRex, "Prefer: code=lost").wait()
	for _, body := range []string{newRex, newRex, long, long, long[:4000] + "y"} {
		s.do(t, "POST /v1/pets", body, "X-Request-Id: 2")
	}
	s.do(t, "POST /v1/pets", "")
	s.sendRaw(t, "POST /v1/pets", "User-Agent: Go-http-client/1.1\nTransfer-Encoding: chunked\n\n0").read()
	for range 2 { // a body that does not come whole is equal to none
		c := s.sendRaw(t, "POST /v1/pets", "Content-Length: 9\n\n{}")
		c.CloseWrite()
		c.read()
	}
	s.do(t, "POST /v1/pets", "{}")
	s.startRequest(t, "POST /v1/pets") // whose body has not come yet
	ended, waiting, _ := s.readJournal(t, "")
	var repeats []int64
	for _, e := range append(ended, waiting...) {
		repeats = append(repeats, e.Repeats)
	}
	equal(t, "what the requests repeat", repeats, []int64{0, 1, 0, 0, 4, 0, 0, 7, 0, 0, 0, 0})

	// One that waits repeats one whose client has left, which a reader may have seen before.
	s.reset(t, "")
	held := s.send(t, "GET /v1/pets", "", "Prefer: delay=30")
	first := s.waitWaiting(t, "GET /v1/pets listPets")[0].Arrived
	held.leave()
	s.journal(t, 1)
	s.send(t, "GET /v1/pets", "", "Prefer: delay=30")
	s.waitWaiting(t, "GET /v1/pets listPets")
	repeated := func() int64 {
		_, waiting, _ := s.readJournal(t, "?after=9999")
		return waiting[0].Repeats
	}
	equal(t, "what it repeats", repeated(), first)
	for range 999 {
		call(s.service, "GET", "/v1/pets?other", "")
	}
	equal(t, "what it repeats while the first is kept", repeated(), first)
	call(s.service, "GET", "/v1/pets?other", "")
	equal(t, "what it repeats when the first is dropped", repeated(), 0)
}

// However others reset and clear, a reader of the history gets each request once, and periods
// ascend in the order of arrival.
func TestConcurrentPeriods(t *testing.T) {
	const clients, each = 4, 200 // fewer requests than the journal keeps
	h := start(t).service
	others := map[string]string{"/__admin/reset": "POST", "/__admin/requests": "DELETE"}
	go concurrently(clients, func(int) {
		for range each {
			call(h, "POST", "/v1/pets", newRex) // whose entry changes while the journal is read
			for target, method := range others {
				call(h, method, target, "")
			}
		}
	})
	periods := make([]int64, clients*each+1) // by number of arrival
	after, found := int64(0), 0
	eventually(t, "all requests", func() bool {
		var journal struct {
			Requests []sentRecord
			Meta     sentMeta
		}
		text := call(h, "GET", fmt.Sprint("/__admin/requests?history=true&after=", after), "").Body.Bytes()
		equal(t, "the error of the journal", json.Unmarshal(text, &journal), nil)
		for _, e := range journal.Requests {
			if periods[e.Arrived] != 0 || e.Period > journal.Meta.Period {
				t.Errorf("got request %d of period %d in period %d, want each once, and none of a later period", e.Arrived, e.Period, journal.Meta.Period)
			}
			periods[e.Arrived] = e.Period
			found++
		}
		after = journal.Meta.Ended
		return found == clients*each
	})
	equal(t, "whether periods ascend", slices.IsSorted(periods), true)
}

// The journal has what clients sent, and not what the page or a test does to observe
// them. An entry has the first 4,000 bytes of a body, even if that was refused, and of the
// answer.
func TestRecordedRequests(t *testing.T) {
	s := start(t, manyPets(100)...)
	s.do(t, "POST /__admin/reset", "", noKey) // with the key, it would remove what was recorded
	for _, request := range []string{
		"GET /", "HEAD /", "GET /page.css", "GET /page.js", "GET /facts.js", "GET /openapi.json",
		"GET /healthz", "GET /__admin", "GET /__admin/pets", "PUT /__admin/fault", "GET /%5F_admin/nothing",
		"GET /v1/__admin", "POST /v1/__admin/reset",
		"OPTIONS /v1/pets", "OPTIONS /nothing",
	} {
		s.do(t, request, "")
		s.do(t, request, "", noKey)
	}
	for _, request := range []string{"GET /favicon.ico", "GET /.well-known/x", "POST /healthz", "GET /v1x"} {
		s.do(t, request, "", noKey) // as browsers do by themselves
	}
	s.wantJournal(t)

	long := strings.Repeat("0123456789", 401)
	for _, tt := range []struct {
		request, body, header string
		status                int
		recorded              string // the body
	}{
		{"POST /v1/pets", newIda, noKey, 401, newIda},
		{"GET /v1/", "", noKey, 401, ""},
		{"POST /healthz", "", "", 405, ""},
		{"GET /healthz/", "", "Authorization: x", 404, ""},
		{"GET //v1/pets", "", "", 404, ""},
		{"POST /nothing", long, "", 404, long[:4000]},
		{"PUT /nothing", tooLarge, "Expect: 100-continue", 413, tooLarge[:4000]},
	} {
		t.Run(tt.request+" "+tt.header, func(t *testing.T) {
			s.do(t, "DELETE /__admin/requests", "")
			s.do(t, tt.request, tt.body, tt.header)
			s.wantJournal(t, fmt.Sprint(tt.request, " ", tt.status))
			equal(t, "the body", s.journal(t, 1)[0].Body, tt.recorded)
		})
	}

	s.do(t, "DELETE /__admin/requests", "")
	list := s.do(t, "GET /v1/pets?limit=100", "").body
	equal(t, "the answer in the journal", s.journal(t, 1)[0].Answer, list[:4000])
}

// The journal names what was ignored: first the preferences, then the query
// parameters, and then the members of the body, each sorted. If a fault skips the
// operation, it names the preferences only.
func TestIgnored(t *testing.T) {
	for _, tt := range []struct {
		request, body, prefer string
		ignored               []string
	}{
		{"POST /v1/pets", newRex, "code=lost,delay=0;answer-delay=0,retry-after=1", nil},
		{"GET /v1/pets?stauts=sold&b&a=1&b=2&%61b=", "", "", []string{"a", "ab", "b", "stauts"}},
		{"GET /v1/pets?limit=x&Limit=1", "", "", []string{"Limit"}},
		{
			"POST /v1/pets?z&limit=1",
			`{"status":"sold","id":7,"b":1,"Status":1,"name":"","a":1,"a":2,"categoryId":1}`,
			"wait=9; Times=2,=, wait=1",
			[]string{"times", "wait", "limit", "z", "Status", "a", "b", "id"},
		},
		{"POST /v1/pets?x", `{"id":7}`, "y, code=hangup", []string{"y"}},
		{"POST /v1/pets?x", `{"id":7}`, "y, code=lost", []string{"y", "x", "id"}},
		{"GET /v1/pets", "", "y, code=x", []string{"y"}},
	} {
		t.Run(tt.request+" "+tt.body+" "+tt.prefer, func(t *testing.T) {
			s := start(t)
			s.send(t, tt.request, tt.body, "Prefer: "+tt.prefer).wait()
			equal(t, "ignored", s.journal(t, 1)[0].Ignored, tt.ignored)
		})
	}
}

// In Authorization, *** replaces the key wherever it occurs, but for the scheme, and all but the
// first six characters of anything else. Elsewhere, the key is shown.
func TestKeyIsHidden(t *testing.T) {
	for sent, want := range map[string]string{
		"Bearer a-key":                "Bearer ***",
		`Bearer "a-key"`:              `Bearer "***"`,
		"Basic xa-keyxyz":             "Basic x***xy***",
		"Bearer undefined":            "Bearer undefi***",
		"Bearer schlüsselchen":        "Bearer schlüs***",
		"Bearer secret":               "Bearer secret",
		"Bearer abcda-key":            "Bearer abcd***",
		"Bearera-key x":               "Bearer***",
		"a-key x":                     "*** x",
		"sk_live_12345678 x":          "sk_liv***",
		"AWS4-HMAC-SHA256 Credential": "AWS4-HMAC-SHA256 Creden***",
		"a-word-of-21-letters- x":     "a-word***",
	} {
		equal(t, sent, hideCredentials("a-key", []string{sent})[0], want)
	}
	equal(t, "a key that is a part of Bearer", hideCredentials("e", []string{"BEARER e"})[0], "BEARER ***")

	s := start(t)
	s.do(t, "GET /v1/pets?"+testKey, "", "Authorization: x"+testKey, "Authorization: Basic "+testKey+"y", "X: "+testKey)
	e := s.journal(t, 1)[0]
	equal(t, "two headers", e.Headers["Authorization"], "x***, Basic ***y")
	equal(t, "another header", e.Headers["X"], testKey)
	equal(t, "the URL", e.URL, "/v1/pets?"+testKey)
	r := newRequest("GET", "/v1/pets", "")
	sent := r.Header.Clone()
	s.service.ServeHTTP(httptest.NewRecorder(), r)
	equal(t, "the headers of the request", r.Header, sent) // which a handler must not modify
}

// A reader of the journal waits for a total, and until few enough requests wait. A request that
// ends, a DELETE, a reset, a stop and a time limit end the waits of all readers, who get the period
// for which they waited.
func TestJournalWaits(t *testing.T) {
	for _, event := range []string{"GET /v1/pets", "DELETE /__admin/requests", "POST /__admin/reset", "stop"} {
		s := start(t)
		s.do(t, "GET /v1/pets?old", "")
		var readers []pending
		for range 3 {
			readers = append(readers, s.watch(t, "total=2"))
		}
		if event == "stop" {
			s.stop()
		} else {
			s.do(t, event, "")
		}
		for _, reader := range readers {
			contains(t, "the journal after "+event, reader.wait().body, "/v1/pets?old")
		}
	}

	s := start(t)
	slow := s.startRequest(t, "POST /v1/pets") // which waits from its arrival
	held := s.send(t, "GET /v1/pets", "", "Prefer: delay=30")
	s.waitWaiting(t, "GET /v1/pets listPets")
	one, none := s.watch(t, "waiting=1"), s.watch(t, "waiting=0")
	s.send(t, "GET /v1/pets?later", "", "Prefer: delay=30") // for which nobody waits
	s.waitWaiting(t, "GET /v1/pets listPets", "GET /v1/pets?later listPets")
	slow.write(newIda)
	contains(t, "the journal", one.wait().body, `"meta":{"total":1,`)
	held.leave()
	contains(t, "the journal", none.wait().body, `"meta":{"total":2,`)

	const most = 100 * time.Millisecond
	s.service.durations.journal = most
	begin := time.Now()
	s.do(t, "GET /__admin/requests?total=9", "")
	if took := time.Since(begin); took < most {
		t.Errorf("the wait took %v, want %v", took, most)
	}
}

// watch asks for the journal, and returns when the service waits for a change of it.
func (s *server) watch(t testing.TB, query string) pending {
	t.Helper()
	j := s.service.journal
	waits := make(chan bool, 1)
	j.mu.Lock()
	j.changed.L = watchedLock{&j.mu, waits}
	j.mu.Unlock()
	p := s.send(t, "GET /__admin/requests?"+query, "")
	<-waits
	return p
}

// watchedLock is the lock of a sync.Cond. Its Wait unlocks it, and nothing else does.
type watchedLock struct {
	sync.Locker
	waits chan<- bool // gets an element when somebody begins to wait
}

func (l watchedLock) Unlock() {
	select {
	case l.waits <- true:
	default:
	}
	l.Locker.Unlock()
}

// With -log, the log has the address of the page, and a line for each recorded request,
// and for each that may change the service through /__admin, whatever the answer.
func TestLog(t *testing.T) {
	s := startProcess(t, petstore(testKey, "-log"))
	s.do(t, "HEAD /v1/pets?after=5&x", "")
	s.do(t, "GET /v1/pets/1?%0A=%22", "", "User-Agent: a \"b\"")
	s.send(t, "GET /v1", "", "Prefer: code=hangup").wait()
	s.do(t, "GET /v1", "", "Prefer: code=418, delay=0")
	s.do(t, "GET /healthz", "")

	s.do(t, "PUT /__admin/fault?code=503", "", "User-Agent: curl/8")
	s.do(t, "DELETE /__admin/fault?x", "")
	for _, request := range []string{"GET /__admin/pets", "GET /__admin/fault", "HEAD /__admin/requests", "OPTIONS /__admin/reset"} {
		s.do(t, request, "")
	}
	s.stop() // ends standard input
	agent := "agent=Go-http-client/1.1"
	want := []string{
		`msg="a page for browsers" url=` + s.url + "/",
		`msg=request method=HEAD url="/v1/pets\?after=5&x" status=200 ignored=\[x\] ` + agent,
		`msg=request method=GET url="/v1/pets/1\?%0A=%22" status=404 error="there is no pet 1" ignored="\[\\n\]" agent="a \\"b\\""`,
		`msg=request method=GET url=/v1 status=0 fault="code=hangup" ` + agent,
		`msg=request method=GET url=/v1 status=418 error="` + simulated + `" fault="code=418, delay=0" ` + agent,
		`msg=request method=PUT url="/__admin/fault\?code=503" status=200 agent=curl/8`,
		`msg=request method=DELETE url=/__admin/fault\?x status=400 error=".*" ` + agent,
	}
	log := s.log.take()
	lines := strings.Split(strings.TrimSuffix(log, "\n"), "\n")
	if len(lines) != len(want) {
		t.Fatalf("got %d lines, want %d:\n%s", len(lines), len(want), log)
	}
	for i, line := range lines {
		pattern := strings.Replace(want[i], " agent=", ` client=127\.0\.0\.1:\d+ agent=`, 1)
		matches(t, "the log", line, `^time=\S+ level=INFO `+pattern+"$")
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
		sold []int64
		next int64
	}{
		{" [ ]\n", nil, nil, 1},
		{"\xef\xbb\xbf[" + pet("5") + "]", []int64{5}, []int64{5}, 6}, // with a byte order mark
		{array(pet("7"), newIda, pet("3"), newIda), []int64{3, 7, 8, 9}, []int64{3, 7}, 10},
	} {
		t.Run(tt.seed, func(t *testing.T) {
			s := start(t, newRex)
			s.reset(t, tt.seed)
			list := s.do(t, "GET /v1/pets", "")
			equal(t, "ids", list.ids(t), tt.ids)
			equal(t, "ids of the sold pets", s.do(t, "GET /v1/pets?status=sold", "").ids(t), tt.sold)
			s.reset(t, list.body) // a list is a seed
			equal(t, "ids after a reset to the list", s.do(t, "GET /v1/pets", "").ids(t), tt.ids)
			create := s.do(t, "POST /v1/pets", newIda)
			create.wantHeader(t, "Location", fmt.Sprint("/v1/pets/", tt.next))
		})
	}

	// There is no id after the largest.
	s := start(t)
	s.reset(t, array(pet("9223372036854775807")))
	s.do(t, "POST /v1/pets", newIda).wantError(t, 507, "insufficient_storage", "no id after 9223372036854775807")
}

// A reset replaces the pets, ends the standing fault and clears the journal. Without a
// body, the pets are those of the start.
func TestReset(t *testing.T) {
	s := startProcess(t, petstore(testKey, "-seed", tempFile(t, array(newRex))))
	for range 2 {
		s.do(t, "GET /v1/pets", "").want(t, 200, array(rex))
		s.do(t, "POST /v1/pets", newIda).want(t, 201, ida)
		s.setFault(t, "delay=0")
		s.wantJournal(t, "GET /v1/pets 200", "POST /v1/pets 201")
		s.reset(t, array(newIda))
		s.wantJournal(t)
		s.wantFault(t, "{}")
		s.do(t, "GET /v1/pets", "").want(t, 200, array(withID(1, newIda)))
		s.reset(t, "")
		equal(t, "the pets after a reset", s.pets(t), array(rex))
	}
}

// Requests that are in flight during a reset belong to the state before it.
func TestInFlightAtReset(t *testing.T) {
	s := start(t)
	late := s.startRequest(t, "POST /v1/pets")
	s.setFault(t, "code=503&delay=30&answer-delay=30")
	held := s.send(t, "POST /v1/pets", newRex)
	s.waitWaiting(t, "POST /v1/pets createPet")
	own := s.send(t, "POST /v1/pets?own", newRex, "Prefer: delay=30")
	s.waitWaiting(t, "POST /v1/pets createPet", "POST /v1/pets?own createPet")
	s.reset(t, "[]")
	s.setFault(t, "code=418")
	held.wait().wantError(t, 503, "service_unavailable", simulated)
	own.wait().want(t, 201, rex)
	late.write(newIda)
	late.read().want(t, 201, ida) // the fault has ended
	s.wantJournal(t)
	s.wantFault(t, `{"code":"418","matched":0,"applied":0,"next":{"code":"418"}}`)
	equal(t, "the pets", s.pets(t), "[]")

	// When its body has arrived, a request under /__admin uses the state of that moment, and
	// another request gets the fault that is set then.
	put := s.sendRaw(t, "PUT /__admin/fault?code=404", "Expect: 100-continue\nTransfer-Encoding: chunked")
	equal(t, "the status before the body", put.read().status, 100)
	s.reset(t, "")
	late = s.startRequest(t, "POST /v1/pets")
	put.write("0\n\n")
	put.read().want(t, 200, `{"code":"404","matched":0,"applied":0,"next":{"code":"404"}}`)
	late.write(newIda)
	late.read().wantError(t, 404, "not_found", simulated)

	// Whoever is released by a reset finds the new state.
	old := s.service.journal.currentWorld()
	found := make(chan *world, 1)
	context.AfterFunc(old.ctx, func() { found <- s.service.journal.currentWorld() })
	s.reset(t, array(manyPets(10_000)...))
	if <-found == old {
		t.Error("the state before a reset ended before there was a new one")
	}
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
	list.read().want(t, 200, array(withID(4, newIda)))
}

// Unusual, broken and incomplete HTTP.

// A client that sends unusual, broken or incomplete HTTP gets an answer, and the
// connection is closed where the next request would be misread.
func TestRawHTTP(t *testing.T) {
	const (
		head    = " HTTP/1.1\nHost: petstore\nAuthorization: Bearer " + testKey + "\n"
		get     = "GET /v1/pets" + head
		post    = "POST /v1/pets" + head + "Content-Type: application/json\n"
		chunked = post + "Transfer-Encoding: chunked\n"
		last    = "Connection: close\n\n"
	)
	body := newIda + strings.Repeat(" ", 65_536-len(newIda)) // as large as it may be
	chunk := func(data string) string { return fmt.Sprintf("%x\n%s\n", len(data), data) }
	sized := func(size int) string { // a request with headers of this size, with CR LF for each LF
		x := size - len(get+"X: \n"+last) - strings.Count(get+"\n"+last, "\n")
		return get + "X: " + strings.Repeat("x", x) + "\n" + last
	}
	for _, tt := range []struct {
		name, send string
		want       string // statuses
		message    string // a part of the last answer
		recorded   string // the body of the last request in the journal
	}{
		{"pipelining", get + "\n" + get + "Content-Length: 2\n\n{}" + get + last, "200 200 200", "", ""},
		{"large body", post + "Content-Length: 65536\n" + last + body, "201", "", body[:4000]},
		{"too large chunks", chunked + "\n" + chunk(body+" ") + chunk(""), "413", "65536 bytes", body[:4000]},
		{"endless body", chunked + "\n" + strings.Repeat(chunk(body), 18), "413", "65536 bytes", body[:4000]},
		{"bad chunk", chunked + "\n" + chunk("{") + "x\n", "400", "badly chunked", "{"},
		{"body cut short", post + "Content-Length: 2\n\n{", "400", "cut short", "{"},
		{"OPTIONS *", "OPTIONS * HTTP/1.1\nHost: petstore\n" + last, "204", "", ""},
		{"large headers", sized(16_384), "200", "", ""},
		{"too large headers", sized(16_385), "431", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// The usual time for a request is shorter than patience, and could end a connection.
			s := startWith(t, func(s *service) { s.durations.read = time.Hour })
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
			contains(t, "the last answer", r.body, tt.message)
			if entries, _, _ := s.readJournal(t, ""); len(entries) > 0 {
				equal(t, "the recorded body", entries[len(entries)-1].Body, tt.recorded)
			}
			c.write(get + last) // has no answer: the connection is closed, or this is a part of the body
			c.CloseWrite()      // or net/http waits for the rest of a body that was refused
			rest, err := io.ReadAll(c.in)
			if len(rest) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("after the answers: got %.300q and the error %v, want the end", rest, err)
			}
			equal(t, "the number of pets", len(s.do(t, "GET /v1/pets", "").ids(t)), strings.Count(tt.want, "201"))
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
		status, ofLarge int
	}{
		{"POST /v1/pets", "Authorization: Bearer x", 401, 401}, // as the key comes first
		{"POST /nothing", "X: x", 404, 413},
		{"POST /v1/pets", "Content-Type: x", 415, 413},
		{"POST /v1/pets", "Prefer: code=503", 503, 413},
	} {
		for size, status := range map[int]int{60_000: tt.status, 66_000: tt.ofLarge, 1 << 20: tt.ofLarge} {
			t.Run(fmt.Sprint(tt.request, tt.header, size), func(t *testing.T) {
				c := s.sendRaw(t, tt.request, fmt.Sprint(tt.header, "\nConnection: close\nContent-Length: ", size))
				c.write(strings.Repeat("x", size))
				r := c.read()
				equal(t, "status", r.status, status)
				equal(t, "the error of the connection", r.err, nil)
			})
		}
	}

	// Of a larger body, 64 KiB, a byte and 1 MiB are read. The body of a reset may be
	// larger, up to 4 MiB, but not without the key.
	for target, sent := range map[string]int{"/v1/pets": 2 << 20, "/__admin/reset": 3 << 20} {
		body := strings.NewReader(strings.Repeat("x", sent))
		s.service.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", target, body))
		equal(t, "the number of bytes that are left", body.Len(), sent-64<<10-1-1<<20)
	}
	seed := array(manyPets(3000)...)
	largest := seed + strings.Repeat(" ", 4<<20-len(seed))
	s.reset(t, largest)
	s.do(t, "GET /v1/pets?after=2999", "").want(t, 200, array(withID(3000, manyPets(3000)[2999])))
	s.do(t, "POST /__admin/reset", largest+" ").wantError(t, 413, "request_entity_too_large", "4194304 bytes")
}

// A body that does not arrive in time is a 408. It uses up no fault.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	s := startWith(t, func(s *service) { s.durations.read = time.Second })
	s.setFault(t, "code=503")
	c := s.sendRaw(t, "GET /v1/pets", "Content-Length: 3")
	c.write("ab")
	c.read().wantError(t, 408, "request_timeout", "")
	equal(t, "the recorded body", s.journal(t, 1)[0].Body, "ab")
	s.wantFault(t, `{"code":"503","matched":0,"applied":0,"next":{"code":"503"}}`)
}

// The process.

// The times are those that the documents name, and the time to send an answer is longer
// than all that an answer can wait for.
func TestTimes(t *testing.T) {
	s := start(t).service
	equal(t, "the durations", s.durations, durations{readHeader: 5 * time.Second, read: 15 * time.Second,
		second: time.Second, journal: 30 * time.Second, stop: 900 * time.Millisecond})
	srv := newServer(s)
	equal(t, "ReadHeaderTimeout", srv.ReadHeaderTimeout, s.durations.readHeader)
	equal(t, "IdleTimeout", srv.IdleTimeout, 2*time.Minute)
	// Only the longest pauses of a code count.
	const delays, pauses = 2 * maxDelay, 9 * time.Second
	equal(t, "WriteTimeout, which is longer than a body and all waits by 6 seconds", srv.WriteTimeout,
		s.durations.read+delays+pauses+6*time.Second)
}

// The base URL is one that clients on this machine can use. Without -stdin, the end of
// standard input stops nothing.
func TestBaseURL(t *testing.T) {
	equal(t, "the URL of an IPv6 address", rootURL(&net.TCPAddr{IP: net.IPv6loopback, Port: 80}), "http://[::1]:80")
	cmd := petstore(testKey, "-addr", ":0")
	cmd.Stdin = strings.NewReader("")
	s := startProcess(t, cmd)
	s.do(t, "GET /v1/pets", "").want(t, 200, "[]")
}

// The key comes from the environment. Without one, each run has a random key, and
// shows it in a curl line and a link.
func TestKeyOfRun(t *testing.T) {
	s := startProcess(t, petstore("!~"+strings.Repeat("k", 4094))) // the longest
	s.do(t, "GET /v1/pets", "").want(t, 200, "[]")
	s.stop()
	equal(t, "standard error with a key", s.log.take(), "")

	keys := map[string]bool{}
	for range 2 {
		s := startProcess(t, petstore(""))
		notice := s.log.wait(t, "/#key=")
		s.key = regexp.MustCompile("[0-9a-f]{32}").FindString(notice)
		matches(t, "standard error without a key", notice,
			"curl -H 'Authorization: Bearer "+s.key+"' '"+s.url+"/v1/pets'\n +"+s.url+"/#key="+s.key+"\n\n$")
		s.do(t, "GET /v1/pets", "").want(t, 200, "[]")
		keys[s.key] = true
	}
	equal(t, "the number of keys", len(keys), 2)
}

// A command line that is wrong is refused with one line, which says what would be
// right. The exit code is 2 if the arguments are wrong, and 1 if something else is. The
// input is empty, so with -stdin petstore stops at once.
func TestCommandLine(t *testing.T) {
	inUse := strings.TrimPrefix(start(t).url, "http://")
	seed := tempFile(t, `[{"name":"a"}]`)
	const base = `^http://127\.0\.0\.1:\d+/v1\n`
	for _, tt := range []struct {
		args string // in which _ stands for a space
		key  string
		code int
		want string // a part of the error or, with 0, a pattern of what is printed
	}{
		{"-stdin", "k", 0, base + "time=.* level=WARN .*standard input has ended before any request.*\n$"},
		{"-stdin -log -seed=", "k", 0, base + ".*a page for browsers"},
		{"-version -check x", "", 0, `^1\.0\.0 \(build \S+, ` + runtime.Version() + `\)\n$`},
		{"-h", "", 0, `\nUsage: petstore \[flags\]\n(?s:.*)default "127\.0\.0\.1:8080"(?s:.*)the faults are 400,401,`},

		{"-x\n\x1b\u009by", "", 2, "-x   y; -h lists the flags"},
		{"stray", "", 2, "unexpected argument stray"},
		{"-addr=", "", 2, "-addr takes host:port"},
		{"-check", "", 2, "-check needs the command that runs the client; -h lists the flags"},
		{"-stdin -check true", "", 2, "-check and -stdin exclude each other"},
		{"-skip -1 -check true", "", 2, "-skip is -1; it must be 0 or more"},
		{"-accept lost,x -check true", "", 2, "there is no fault 'x'; the faults are 400,401,429,503,503-all,after:500,"},
		{"-operation reset -check true", "", 2, "-operation is 'reset'; it must be listPets, createPet or getPet"},
		{"-check true", "k k", 2, "PETSTORE_API_KEY must be"},
		{"-addr " + inUse + " -check true", "", 2, "address already in use; -addr 127.0.0.1:0 takes any free port"},
		{"-check no-such-command", "", 2, `exec: "no-such-command": executable file not found`},
		{"-check sh_client.sh", "", 2, "in $PATH; arguments are separate words, as in -check sh client.sh"},

		{"-log", "k k", 1, "PETSTORE_API_KEY must be 1 to 4096 visible ASCII characters"},
		{"-log", strings.Repeat("k", 4097), 1, "PETSTORE_API_KEY"},
		{"-addr " + inUse, "", 1, "address already in use; -addr 127.0.0.1:0 takes any free port"},
		{"-seed no\n.json", "", 1, "no .json: no such file or directory; -seed takes the path of a JSON file"},
		{"-seed " + seed, "", 1, seed + ": pet 1: categoryId is missing"},
	} {
		t.Run(fmt.Sprintf("%.40s %.10s", tt.args, tt.key), func(t *testing.T) {
			args := strings.Split(tt.args, " ")
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "_", " ")
			}
			code, stdout, stderr := output(petstore(tt.key, args...))
			equal(t, "the exit code", code, tt.code)
			if tt.code > 0 {
				tt.want = "^petstore: .*" + regexp.QuoteMeta(tt.want) + ".*\n$"
			}
			matches(t, "what is printed", stdout+stderr, tt.want)
		})
	}

	// The help says which flags need -check.
	values := map[string]string{"accept": "lost", "only": "lost", "operation": "getPet", "skip": "1"}
	_, help, _ := output(petstore(testKey, "-h"))
	for _, match := range regexp.MustCompile(`(?m)^  -([\w-]+).*\s+with -check,`).FindAllStringSubmatch(help, -1) {
		_, _, stderr := output(petstore("", "-"+match[1], values[match[1]]))
		equal(t, "standard error", stderr, "petstore: -"+match[1]+" needs -check; -h lists the flags\n")
		delete(values, match[1])
	}
	equal(t, "the flags that the help does not have", values, map[string]string{})

	_, _, stderr := output(petstore(testKey, "-addr", "127.0.0.1:99999"))
	matches(t, "standard error", stderr, "^petstore: .*invalid port\n$") // without the advice on ports

	p := process{getenv: func(string) string { return "httpmuxgo121=1" }} // with which net/http would find no path
	_, _, err := p.keyAndSeed(options{})
	contains(t, "the error", fmt.Sprint(err), "httpmuxgo121=1 in GODEBUG")
}

// Petstore fails if it cannot print what it is asked for. It answers and stops even if it
// cannot write its log.
func TestClosedPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	for cmd, want := range map[*exec.Cmd]int{
		petstore(testKey):                         1,
		petstore(testKey, "-h"):                   1,
		petstore(testKey, "-version"):             1,
		checkOf(t, testKey, "-only newer", "add"): 2,
	} {
		cmd.Stdout = w
		code, _, stderr := output(cmd)
		equal(t, "the exit code", code, want)
		contains(t, "standard error", stderr, "petstore: ")
	}

	cmd := petstore(testKey, "-log")
	cmd.Stderr = w
	s := startProcess(t, cmd)
	s.do(t, "GET /v1/pets", "").want(t, 200, "[]")
	s.stop()
}

// At a signal, the requests that a fault holds are answered, even if the signal comes
// again, as timeout(1) sends two. SIGINT works even if it was ignored at the start, as it
// is after "&" in a script. Before petstore listens, a signal ends it as any process.
func TestSignals(t *testing.T) {
	signal.Ignore(os.Interrupt)
	defer signal.Reset(os.Interrupt)
	defer signal.Notify(make(chan os.Signal, 1), os.Interrupt) // as Reset does not undo Ignore
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		t.Run(sig.String(), func(t *testing.T) {
			cmd := petstore(testKey)
			s := startProcess(t, cmd)
			s.startRequest(t, "POST /v1/pets") // for whose body the stop waits
			held := s.send(t, "GET /v1/pets", "", "Prefer: delay=30")
			s.waitWaiting(t, "GET /v1/pets listPets")
			cmd.Process.Signal(sig)
			held.wait().want(t, 200, "[]")
			go func() {
				for cmd.Process.Signal(sig) == nil {
					time.Sleep(time.Millisecond)
				}
			}()
			wantExit(t, cmd, 0)
		})
	}

	// Only the end of standard input has a word on it.
	cmd := petstore(testKey)
	s := startProcess(t, cmd)
	cmd.Process.Signal(syscall.SIGTERM)
	wantExit(t, cmd, 0)
	equal(t, "standard error", s.log.take(), "")

	cmd = petstore(testKey, "-seed", "/dev/stdin")
	stdin, err := cmd.StdinPipe()
	if err := errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	io.WriteString(stdin, strings.Repeat(" ", 1<<20)) // which has been read, but for what a pipe holds
	cmd.Process.Signal(syscall.SIGTERM)
	wantExit(t, cmd, -1)
	equal(t, "the end of the process", cmd.ProcessState.String(), "signal: terminated")
}

// A stop waits for the requests in flight, but not for long, and neither for connections
// without a request, as browsers open them, nor for a log that is not read.
func TestStop(t *testing.T) {
	s := startWith(t, func(s *service) { s.durations.stop = time.Hour })
	c := s.startRequest(t, "POST /v1/pets")
	go s.stop()
	eventually(t, "the beginning of the stop", func() bool { return s.send(t, "GET /healthz", "").wait().err != nil })
	c.write(newIda)
	c.read().want(t, 201, withID(1, newIda))

	_, unread := io.Pipe()
	s = startWith(t, func(s *service) { s.durations.stop, s.log = 100*time.Millisecond, newLog(unread, true) })
	s.dial(t)
	s.startRequest(t, "POST /v1/pets")
	s.send(t, "GET /v1/pets", "") // which is not answered, as its log is not read
	s.journal(t, 1)
	s.stop()
}

// A stop ends the process even if nothing that petstore prints is read.
func TestStopWithoutReaders(t *testing.T) {
	r, full, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	full.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	_, err = full.Write(make([]byte, 1<<20)) // more than a pipe holds
	equal(t, "whether the pipe is full", errors.Is(err, os.ErrDeadlineExceeded), true)
	unheard, silent := petstore(testKey, "-stdin"), petstore(testKey, "-stdin")
	unheard.Stdout = full
	silent.Stderr = full // which is to have the word on an input that ends before any request
	if err := errors.Join(unheard.Start(), silent.Start()); err != nil {
		t.Fatal(err)
	}
	wantExit(t, unheard, 0)
	wantExit(t, silent, 0)
}

// The check of a client.

// steps are what a client that is checked can do.
var steps = map[string]func() error{
	"add":       func() error { return retry(1) },
	"naive":     func() error { return retry(6) },
	"list":      func() error { return sendOnce("GET", "/pets", "").err },
	"look":      func() error { return sendOnce("GET", "/pets/1", "").err },
	"misplaced": func() error { return sendOnce("POST", "/v1/pets", newRex).err },
	"fail":      func() error { return errors.New("failed") },
	"endless": func() error {
		client.Transport = nil // which keeps its connection, for speed
		return retry(2 * maxRequests)
	},
	"clumsy": func() error { // with each fault, make another mistake
		isNewer := func(r response) bool { return strings.Contains(r.body, "addedLater") }
		answer := sendOnce("POST", "/pets", newRex)
		switch {
		case isNewer(answer) && isNewer(sendOnce("POST", "/pets", newRex)):
			return errors.New("a member is not known")
		case answer.status == 0:
			self, _ := os.FindProcess(os.Getpid())
			self.Kill()
			time.Sleep(patience)
		case answer.status == 502:
			sendOnce("POST", "/pets", "[\n\t\"\u009b2J\u202e\"]") // which could look like rows of the table
		}
		return nil
	},
	"show": func() error {
		input, err := io.ReadAll(os.Stdin)
		fmt.Printf("%q %v url=%s key=%s\n", input, err, os.Getenv("PETSTORE_URL"), os.Getenv("PETSTORE_API_KEY"))
		return nil
	},
	"leave": func() error { // behind it a process that keeps its output, which is long, open
		cmd := exec.Command(os.Args[0], "client", os.DevNull, "stubborn")
		cmd.Stdout = os.Stdout
		fmt.Print(strings.Repeat("x", 1<<20))
		return cmd.Start()
	},
	"stop": func() error { // at an interrupt, and say so
		interrupt := make(chan os.Signal, 2)
		signal.Notify(interrupt, os.Interrupt)
		fmt.Fprintln(os.Stderr, os.Getpid(), "it runs")
		<-interrupt
		fmt.Fprintln(os.Stderr, "it was interrupted")
		select {
		case <-interrupt: // as it cleans up
			fmt.Fprintln(os.Stderr, "again")
		case <-time.After(500 * time.Millisecond):
		}
		return errors.New("interrupted")
	},
	"stubborn": func() error {
		signal.Ignore(os.Interrupt)
		fmt.Fprintln(os.Stderr, os.Getpid(), "it runs")
		time.Sleep(3 * patience)
		return nil
	},
}

// act is a client: it performs these steps, and returns the first error. A step with a ? may fail.
// The next runs perform what is after each |, as in "add | add add". A file counts the runs.
func act(file, text string) error {
	client.Timeout = time.Second
	runs, _ := os.ReadFile(file)
	os.WriteFile(file, append(runs, '.'), 0o600)
	texts := strings.Split(text, "|")
	for _, step := range strings.Fields(texts[min(len(runs), len(texts)-1)]) {
		name, mayFail := strings.CutSuffix(step, "?")
		if err := steps[name](); err != nil && !mayFail {
			return err
		}
	}
	return nil
}

// retry adds a pet. Whatever has failed, it tries again at once.
func retry(tries int) (err error) {
	for range tries {
		if err = sendOnce("POST", "/pets", newRex).err; err == nil {
			return nil
		}
	}
	return err
}

// sendOnce sends a request to the service in the environment. It is an error if the answer
// is late, not whole, no JSON, or reports a failure.
func sendOnce(method, path, body string) response {
	r, err := http.NewRequest(method, os.Getenv("PETSTORE_URL")+path, strings.NewReader(body))
	if err != nil {
		return response{err: err}
	}
	r.Header.Set("Authorization", "Bearer "+os.Getenv("PETSTORE_API_KEY"))
	r.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(r)
	answer := read(method+path, resp, err)
	if answer.err == nil && (answer.status >= 300 || !json.Valid([]byte(answer.body))) {
		answer.err = fmt.Errorf("got %d %s", answer.status, answer.body)
	}
	return answer
}

// clientOf returns the command of a client, which is this test binary.
func clientOf(t *testing.T, steps string) []string {
	return []string{os.Args[0], "client", filepath.Join(t.TempDir(), "runs"), steps}
}

// checkOf returns a command that checks a client.
func checkOf(t *testing.T, key, flags, steps string) *exec.Cmd {
	cmd := petstore(key)
	cmd.Args = slices.Concat(cmd.Args[:1], strings.Fields(flags), []string{"-check"}, clientOf(t, steps))
	return cmd
}

// A check runs a client without a fault and with each fault, and shows what it does wrong. If
// nothing can be said of a client, it says why.
func TestCheck(t *testing.T) {
	t.Parallel()
	const (
		twice    = "adds 2 pets instead of 1"
		noGet    = "getPet was not tested: -operation getPet\n"
		noList   = "listPets was not tested: -operation listPets\n"
		oneOf    = "1 finding with 1 fault of createPet"
		unlike   = "without a fault, the client does not do the same twice: exit code 0, 1 pet, 1 "
		noResult = ", the client sends no request that gets the fault: does it reset petstore, is a time limit over before it " +
			"sends anything, or does a result, a lock or a circuit breaker of an earlier run last? (go test needs -count=1)"
	)
	for _, tt := range []struct {
		flags, client string
		code          int
		want          string // the rows with a finding, what is below the table but for the ways out, and the error of a 2
	}{
		{"", "add", 0, "Never repeated after: 429, 503, 503-all.\n0 findings with ALL of createPet"},
		{"-only 503,lost,stall,html,newer", "clumsy", 1, "503 exits with 0, but has added 0 of 1 pets\n" +
			"lost is ended by a signal\nstall exits with 0, though an answer was not read to its end\n" +
			"html exits with 0, though an answer was an error; sends a createPet that is refused: 400, " +
			`the body is [  " 2J "]; it must be a JSON object, such as {"name":"Rex","categoryId":7}` + "\n" +
			"newer adds 2 pets instead of 1; fails, although the answer is right\nNever repeated after: 503.\n7 findings with 5 faults of createPet"},
		{"-only 503-all", "endless", 1, "503-all still repeats after 10000 requests (9999 times); repeats ? times after less than 50 ms\n" +
			"2 findings with 1 fault of createPet"},
		{"-only lost", "leave naive", 1, "lost " + twice + "\n" + oneOf},
		{"-only lost", "list naive | list list naive", 1, "lost " + twice + "\n" + noList + oneOf},

		// A client that fails with a 401 looks by what it reads in each run.
		{"-only lost,html", "add? look", 1, "lost exits with 0, though an answer was lost\n" +
			"html exits with 0, though an answer was an error\n" + noGet + "2 findings with 2 faults of createPet"},
		{"-only 401,lost", "add? look", 0, noGet + "0 findings with 2 faults of createPet"},

		// What gets the fault.
		{"-only html -operation listPets", "add list", 0, "createPet was not tested: -operation createPet\n0 findings with 1 fault of listPets"},
		{"-only lost -skip 1", "add naive", 1, "lost adds 3 pets instead of 2\n" + oneOf + ", request 2 of 2: -skip chooses another"},
		{"-only newer,malformed,lost -seed SEED", "list", 0, "0 findings with 3 faults of listPets"},
		{"-only newer,malformed,lost", "list", 0,
			"the answer had no pet, so newer and malformed test little: -seed adds some\n0 findings with 3 faults of listPets"},

		// Flags that are given twice add up.
		{"-only lost -only newer -accept lost,newer -accept stall", "naive", 0,
			"lost " + twice + "; accepted\naccepted, but not found: newer\n0 findings, 1 accepted, with 2 faults of createPet"},

		// What cannot be checked.
		{"", "add fail", 2, "without a fault, the client exits with 1 (its output is above)"},
		{"", "misplaced", 2, "without a fault, the client gets 404 for POST /v1/v1/pets: no such path: /v1/v1/pets; " +
			"/v1 stands twice, as the base URL ends with it"},
		{"", "", 2, "without a fault, the client sends no request to http://127.0.0.1:?/v1: " +
			"does it read PETSTORE_URL? (go test needs -count=1)"},
		{"", strings.Repeat("list ", maxEnded), 2, "without a fault, the client sends 1000 requests or more, which is too many for a check"},
		{"-operation getPet", "list", 2, "without a fault, the client sends no request for getPet"},
		{"-skip 3", "add add add", 2, "without a fault, the client sends 3 requests for createPet, all of which -skip 3 lets through"},
		{"", "add | add add", 2, unlike + "createPet, and then exit code 0, 2 pets, 2 createPet"},
		{"", "add | add fail", 2, unlike + "createPet, and then exit code 1, 1 pet, 1 createPet"},
		{"-operation listPets", "list add | list add add", 2, unlike + "listPets, and then exit code 0, 2 pets, 1 listPets"},
		{"-operation listPets", "list add | list list add", 2, unlike + "listPets, and then exit code 0, 1 pet, 2 listPets"},
		{"-only lost,html", "add | add | add |", 2, "html no result: no request gets the fault\n" +
			"0 findings with 2 faults of createPet, 1 without a result\nwith html" + noResult},
	} {
		t.Run(fmt.Sprintf("%s %.30s", tt.flags, tt.client), func(t *testing.T) {
			t.Parallel()
			flags := strings.Replace(tt.flags, "SEED", tempFile(t, array(newRex, newIda)), 1)
			code, stdout, stderr := output(checkOf(t, testKey, flags, tt.client))
			equal(t, "the exit code", code, tt.code)
			_, message, _ := strings.Cut(stderr, "petstore: ")
			varies := regexp.MustCompile(`\d+( times after less)|(127\.0\.0\.1:)\d+`)
			got := varies.ReplaceAllString(inShort(stdout)+message, "$2?$1")
			want := strings.Replace(tt.want, "ALL", quantity(len(checkedFaults()), "fault"), 1) + "\n"
			if tt.code == 1 {
				want += "the client does something wrong; -accept names what is intended\n"
			}
			equal(t, "what is said of the client", got, want)
		})
	}
}

// inShort returns, of what a check prints, the rows with a finding, and what is below the table
// but for the ways out.
func inShort(printed string) (short string) {
	table, rest, _ := strings.Cut(printed, "\n\n")
	for _, row := range regexp.MustCompile(`(?m)^(\S+) +-?\d.*?  ([a-z].*\n?)`).FindAllStringSubmatch(table+"\n", -1) {
		short += row[1] + " " + row[2]
	}
	short += regexp.MustCompile(`(?m)^[-a-z0-9:, ]+: [A-Z].*\.\n`).ReplaceAllString(rest, "")
	return strings.Replace(short, " (- is no answer, ! one that cannot be used)", "", 1)
}

// The faults of a check ask for the pauses that the reference names.
func TestCheckedFaults(t *testing.T) {
	s := start(t)
	for name, want := range map[string]string{"429": "3", "503": `\w+, .* GMT`, "503-all": ""} {
		i := slices.Index(checkedNames(), name)
		s.setFault(t, checkedFaults()[i].query)
		retryAfter := s.do(t, "GET /v1/pets", "").header.Get("Retry-After")
		matches(t, "the Retry-After of "+name, retryAfter, "^"+want+"$")
	}
}

// A check shows for each run what became of it, and the ways out of what was found and not
// accepted, each once.
func TestCheckOutput(t *testing.T) {
	t.Parallel()
	_, stdout, stderr := output(checkOf(t, testKey, "-accept 401", "show naive"))
	got, want := strings.Split(stdout, "\n"), strings.Split(`fault      exit seconds  pets  answers              finding
none          0     \d\.\d     1  201
400           0     \d\.\d     1  400 201              repeats the request after a 400
401           1     \d\.\d     0  401 x6               repeats the request 5 times after a 401; accepted
429           0     \d\.\d     1  429 201              repeats after \d\.\d\d s, although Retry-After asks for 3 s
503           0     \d\.\d     1  503 201              repeats after \d\.\d\d s, although Retry-After asks for 3 s
503-all       1     \d\.\d     0  503 x6               repeats \d times after less than 50 ms
after:500     0     \d\.\d     2  500 201              adds 2 pets instead of 1
after:504     0     \d\.\d     2  504 201              adds 2 pets instead of 1
hangup        0     \d\.\d     1  - 201
rst           0     \d\.\d     1  - 201
lost          0     \d\.\d     2  - 201                adds 2 pets instead of 1
truncate      0     \d\.\d     2  201! 201             adds 2 pets instead of 1
stall         0     \d\.\d     2  201! 201             adds 2 pets instead of 1
drip          0     \d\.\d     2  201! 201             adds 2 pets instead of 1
malformed     0     \d\.\d     2  201! 201             adds 2 pets instead of 1
html          0     \d\.\d     2  502 201              adds 2 pets instead of 1
newer         0     \d\.\d     1  201
late          0     \d\.\d     2  - 201                adds 2 pets instead of 1

400: Do not repeat .*\.
429, 503, 503-all: Wait before .*\.
after:500, after:504, lost, truncate, stall, drip, malformed, html, late: Repeat only the request that failed, .*\.
13 findings, 1 accepted, with \d+ faults of createPet \(- is no answer, ! one that cannot be used\)
`, "\n")
	equal(t, "the number of lines", len(got), len(want))
	for i := range min(len(got), len(want)) {
		matches(t, fmt.Sprint("line ", i+1), got[i], "^"+want[i]+"$")
	}
	matches(t, "standard error without -only", stderr, `^"" <nil> url=\S+ key=`+testKey+"\npetstore: the client .*\n$")

	// The client has an empty input. Each run has an address and a key of its own. What the
	// client prints ends before the next row. Flags after the command are the client's.
	cmd := checkOf(t, "", "-log -only 400,lost", "show naive")
	cmd.Args = append(cmd.Args, "-only", "newer", "only", "--skip=2", "-x")
	cmd.Stdin = strings.NewReader("input")
	_, _, stderr = output(cmd)
	const misplaced = "petstore: -%s comes before -check's command, if it is petstore's; here, the client gets it\n"
	matches(t, "the beginning of standard error", stderr, "^"+fmt.Sprintf(misplaced+misplaced, "only", "skip")+`""`)
	seen := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^"" <nil> url=(\S+)/v1 key=(\w{32})$`).FindAllStringSubmatch(stderr, -1) {
		seen[match[1]], seen[match[2]] = true, true
	}
	equal(t, "the number of addresses and keys", len(seen), 6)
	equal(t, "the number of empty lines", strings.Count(stderr, "\n\n"), 2)
	equal(t, "the number of requests in the log", strings.Count(stderr, "msg=request method=POST"), 6)

	// The answers are those for the operation, from the struck one on.
	for requests, want := range map[string]string{
		"200 list, 503 list fault=503, 200 list left, 200 list, 200 path=/x": "503 200! 200",
		"0 fault=lost, 0, 503, 12x201":                                       "- x2 503 201 x12",
		"500 fault=500, 501, 500, 501, 500":                                  "500 501 500 501 500",
		"500 fault=500, 501, 500, 501, 500, 501":                             "500 501 500 501 …",
	} {
		run := runOf(t, 0, requests)
		equal(t, "the answers to "+requests, run.answers(run.struck.Operation), want)
	}
}

// The client finds petstore without a proxy.
func TestNoProxy(t *testing.T) {
	p := petstoreOfRun{service: start(t).service, root: "http://127.0.0.1:80"}
	for given, want := range map[string]string{"a.test": "127.0.0.1,localhost,a.test", "": "127.0.0.1,localhost,b.test", "*": "*"} {
		t.Setenv("no_proxy", given)
		t.Setenv("NO_PROXY", "b.test")
		equal(t, "the variables", p.environment()[2:], []string{"NO_PROXY=" + want, "no_proxy=" + want})
	}
}

// At a signal, the client is interrupted, and killed if it does not end then.
func TestCheckSignals(t *testing.T) {
	t.Parallel()
	for sig, client := range map[os.Signal]string{os.Interrupt: "stop", syscall.SIGHUP: "stop", syscall.SIGTERM: "stubborn"} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			if sig == syscall.SIGHUP && signal.Ignored(sig) {
				t.Skip("as after nohup, a check ignores the signal, too")
			}
			said := new(buffer)
			cmd := checkOf(t, testKey, "", client)
			cmd.Stderr = said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			said.wait(t, "it runs\n")
			cmd.Process.Signal(sig)
			wantExit(t, cmd, 2)
			says := map[string]string{"stop": "it was interrupted\n"}[client]
			equal(t, "standard error", said.take(), says+"petstore: interrupted\n")
		})
	}

	// A terminal sends the signal to the client, too, which then gets no other one.
	t.Run("terminal", func(t *testing.T) {
		t.Parallel()
		said := new(buffer)
		c := checkerOf(t, "stop")
		c.grace = 3 * time.Second // more than the client takes, even on a busy machine
		ctx, interrupt := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() {
			_, err := c.run(ctx, "code=ok", said)
			ended <- err
		}()
		pid, _ := strconv.Atoi(strings.Fields(said.wait(t, "it runs\n"))[0])
		client, _ := os.FindProcess(pid)
		client.Signal(os.Interrupt)
		said.wait(t, "it was interrupted\n")
		interrupt()
		equal(t, "the error of the run", <-ended, errInterrupted)
		equal(t, "what the client says then", said.take(), "")
	})
}

// checkerOf returns what runs this client.
func checkerOf(t *testing.T, steps string) *checker {
	opts := options{addr: "127.0.0.1:0", command: clientOf(t, steps)}
	return &checker{opts: opts, seed: newStore(), stderr: io.Discard, limit: patience, grace: time.Second}
}

// A check that a signal has interrupted has no result, however late the signal comes. If nobody
// reads what it prints, the process ends with the same exit code.
func TestCheckInterruptedLate(t *testing.T) {
	ctx, interrupt := context.WithCancel(context.Background())
	stops := make(chan int, 1)
	onStop := func(_ time.Duration, exitCode int) { stops <- exitCode }
	writes := 0
	stdout := writer{httptest.NewRecorder(), func() {
		if writes++; writes == 2 { // the end of the table
			interrupt()
			equal(t, "the exit code while this waits", <-stops, 2)
		}
	}}
	p := process{func(string) string { return "" }, nil, stdout, io.Discard, onStop}
	code := p.run(ctx, append([]string{"-only", "newer", "-check"}, clientOf(t, "add")...))
	equal(t, "the exit code", code, 2)
}

// A client that does not end in time, or sends too many requests, is ended.
func TestCheckLimits(t *testing.T) {
	ctx := context.Background()
	c := checkerOf(t, "stubborn")
	c.limit, c.grace = 100*time.Millisecond, 100*time.Millisecond
	r, err := c.run(ctx, "code=ok", nil)
	equal(t, "the error of a run", err, nil)
	equal(t, "whether it was ended", r.isCut && r.took >= c.limit, true)
	equal(t, "the exit code", r.exitCode, -1)
	_, err = r.chooseOperation("", 0)
	equal(t, "the reason why it cannot be checked", fmt.Sprint(err), "does not end within a minute")

	// With a fault, a run may take longer by what it takes without one.
	c = checkerOf(t, "endless")
	usual, _, err := c.runUsually(ctx)
	equal(t, "the error of the usual runs", err, nil)
	equal(t, "the limit with a fault", c.limit, patience+usual.took)

	petstore, err1 := c.startPetstore("code=lost&times=1")
	petstore.served.Store(maxRequests - 1)
	r, err2 := c.runClient(ctx, petstore, nil)
	equal(t, "the errors of the run with a fault", errors.Join(err1, err2), nil)
	var v verdict
	v.judge(compare(r, usual, false))
	contains(t, "the findings", fmt.Sprint(v.findings), "does not end within 10000 requests")
}

// A request that waits at the end of a run has the fault, even if petstore has not noticed
// that its client has left, and the journal was cleared.
func TestEndOfRun(t *testing.T) {
	petstore, err := checkerOf(t, "").startPetstore("answer-delay=30")
	equal(t, "the error", err, nil)
	s := &server{url: petstore.root, key: petstore.service.key}
	s.sendRaw(t, "GET /v1/pets", "\n"+strings.Repeat("x", 8192)) // more than net/http reads ahead
	s.waitWaiting(t, "GET /v1/pets listPets")
	s.do(t, "DELETE /__admin/requests", "").want(t, 204, "")
	_, struck := petstore.end()
	equal(t, "the error of the request", struck.Error, clientLeft+" before its answer")
}

// Each finding has its limits. The reference has the first one of each rule.
func TestFindings(t *testing.T) {
	const (
		cut    = -2 // the client was ended, after 61 seconds
		early  = "repeats after 1.00 s, although Retry-After asks for 3 s"
		of400  = "repeats the request after a 400"
		of401  = "repeats the request 2 times after a 401"
		lost   = "exits with 0, though an answer was lost"
		late   = "exits with 0, though an answer came too late"
		half   = "exits with 0, though an answer was not read to its end"
		atOnce = "repeats 2 times after less than 50 ms"
	)
	found := make([]string, len(rules)) // for each rule, what was first found
	for _, tt := range []struct {
		name             string
		exitCode         int
		usual, run, want string
	}{
		{"repeats until the end", cut, "201", "503 fault=503, 503 at=30, 503 at=60", "still repeats after 61 s (2 times)"},
		{"waits until the end", cut, "201", "503 fault=503", "does not end within 61 s"},
		{"repeats once until then", cut, "201", "0 fault=lost, 201 at=60", "does not end within 61 s"},
		{"has more to send", cut, "9x201", "503 fault=503, 5x503 at=60", "does not end within 61 s"},
		{"crashes", -1, "201", "0 fault=lost", "is ended by a signal"},
		{"waits for over 25 s", 1, "201", "201 fault=stall for=25.1", "still waits after 25 s"},
		{"waits for 25 s", 1, "201", "201 fault=stall for=25", ""},

		{"adds a pet twice", 1, "201 pet", "0 fault=lost pet, 201 at=1 pet", "adds 2 pets instead of 1"},
		{"adds equal pets, as usual", 1, "2x201 pet", "0 fault=lost pet, 201 at=1 pet", ""},
		{"adds one of two", 0, "2x201 pet", "0 fault=lost, 201 at=1 pet", "exits with 0, but has added 1 of 2 pets"},

		// A client that exits with 0 has what it wants.
		{"loses an answer", 0, "201", "0 fault=lost", lost},
		{"gives up", 0, "201", "0 fault=ok for=2 left", late},
		{"takes an error", 0, "201", "502 fault=html", "exits with 0, though an answer was an error"},
		{"takes what is no JSON", 0, "201", "201 fault=malformed", "exits with 0, though an answer was no JSON"},
		{"takes a part", 0, "201", "201 fault=truncate", "exits with 0, though an answer was cut"},
		{"has read enough", 0, "201", "201 fault=drip for=0.09 left", ""},
		{"has not read enough", 0, "201", "201 fault=drip for=0.1 left", half},
		{"repeats", 0, "201", "503 fault=503, 201 at=1", ""},
		{"sends one of two", 0, "2x201", "201 fault=drip", ""},
		{"one of two, unheard", 0, "2x201", "0 fault=stall, 201 at=1 name=Ida", lost},
		{"an equal one succeeds", 0, "2x201 pet", "0 fault=lost pet, 201 at=1 pet", lost},
		{"reads", 0, "3x201", "0 fault=lost, 200 at=1, 200 at=2", ""},
		{"looks, even before it has left", 0, "201", "0 fault=lost for=2, 200 list at=0.1", ""},
		{"looks, as usual", 0, "201, 200 list", "0 fault=lost, 200 list at=1", lost},
		{"looks once more", 0, "201, 200 list", "0 fault=lost, 200 list at=1, 200 list at=2", ""},
		{"looks before", 0, "201", "200 list, 0 fault=lost at=1", lost},
		{"looks in vain", 0, "201", "0 fault=lost, 404 list at=1", lost},

		{"fails with a right answer", 1, "201", "201 fault=newer", "fails, although the answer is right"},
		{"fails with a slow answer", 1, "201", "201 fault=drip for=0.1", ""},
		{"fails, as it has left", 1, "201", "201 fault=drip left", ""},

		{"is refused", 1, "201", "503 fault=503/3, 415 at=4 error=no_'a;b';_it_must_be_c",
			"sends a createPet that is refused: 415, no 'a;b'; it must be c"},
		{"is refused on another path", 1, "201", "503 fault=503/3, 401 at=9 path=/x error=no_key", "sends a POST /x that is refused: 401, no key"},
		{"finds nothing", 1, "201", "503 fault=503/3, 404 list at=4 error=no_pet", ""},

		{"repeats after a 400", 1, "201", "400 fault=400, 201", of400},
		{"equal ones after it, as usual", 1, "2x201", "400 fault=400, 201", ""},
		{"repeats another one", 1, "201, 201 name=Ida", "400 fault=400, 2x201 name=Ida", ""},
		{"mends the body", 1, "201", "400 fault=400, 201 name=Ida", ""},
		{"mends the type", 1, "201", "400 fault=400, 201 Content-Type=x", ""},
		{"counts its tries in the agent", 1, "201", "400 fault=400, 201 User-Agent=2", of400},
		{"orders members at random", 1, "201", `400 fault=400 body={"a":1,"b":[2]}, 201 body={"b":[2],_"a":1}`, of400},
		{"numbers its runs and tries", 1, "201 name=Rex_f0-A1", "400 fault=400 name=Rex_0cb-1, 201 name=Rex_0cb-E2", of400},
		{"a word for each run", 1, "201 name=abc, 2x201 name=xyz", "201 name=rst, 400 fault=400 name=uvw, 201 name=uvw", ""},
		{"a word for each run, once more", 1, "2x201 name=xyz", "400 fault=400 name=uvw, 2x201 name=uvw", of400},

		{"repeats once after a 401", 1, "201", "2x401 fault=401", ""},
		{"repeats twice after a 401", 1, "201", "3x401 fault=401", of401},
		{"with other names after a 401", 1, "201", "401 fault=401, 500 name=Ida, 500 at=1 name=Ida", of401},
		{"repeats the first of two pages", 1, "200 list url=/1, 200 list url=/2", "200 list url=/1, 401 list url=/2 fault=401, 2x401 list url=/1 fault=401", of401},
		{"one of two large integers", 1, "201 body=9007199254740992, 201 body=9007199254740993", "3x401 fault=401 body=9007199254740992", of401},

		{"repeats before Retry-After", 1, "201", "429 fault=429/3, 201 at=2.85", "repeats after 2.85 s, although Retry-After asks for 3 s"},
		{"repeats after Retry-After", 1, "201", "429 fault=429/3, 201 at=2.95", ""},
		{"repeats before a date", 1, "201", "503 fault=503/date:3, 201 at=1", early},
		{"repeats twice, first early", 1, "201", "429 fault=429/3, 503 at=1, 201 at=9", early},
		{"repeats early with another name", 1, "201", "429 fault=429/3, 201 at=1 name=Ida", early},
		{"polls early after the first", 1, "2x200 list, 200 list at=9", "200 list, 429 list at=2 fault=429/3, 200 list at=3", early},
		{"reads twice, after the first", 1, "200 list, 2x200 list at=9", "200 list, 429 list at=2 fault=429/3, 200 list at=3", ""},
		{"polls early, as usual", 1, "200 list, 200 list at=1", "429 list fault=429/3, 200 list at=1", early},
		{"polls late", 1, "200 list, 200 list at=3", "429 list fault=429/3, 200 list at=3", ""},
		{"reads twice, at once", 1, "200 list for=1, 200 list at=1.09", "429 list fault=429/3, 200 list at=0.1", ""},
		{"adds two, as usual", 1, "201, 201 at=1.09", "429 fault=429/3, 201 at=1, 201 at=3", ""},
		{"adds two, and repeats one early", 1, "201, 201 at=1.11", "429 fault=429/3, 201 at=1", early},
		{"four instead of three at once", 1, "3x201", "429 fault=429/3, 2x201, 201 at=1", early},

		{"repeats at once", 1, "201", "503 fault=503, 503 at=0.049, 503 at=0.098", atOnce},
		{"repeats after a pause", 1, "201", "503 fault=503, 503 at=0.049, 503 at=0.099", ""},
		{"repeats at once between pauses", 1, "201", "503 fault=503, 503, 2x503 at=9", atOnce},
		{"repeats once, at once", 1, "201", "503 fault=503, 503", ""},
		{"each of two once", 1, "2x201", "503 fault=503, 3x503", ""},
		{"each of three twice", 1, "3x201", "3x503 fault=503, 3x503 at=0.25, 3x503 at=0.5", ""},
		{"with other names, at once", 1, "201", "503 fault=503, 2x503 name=Ida", atOnce},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := compare(runOf(t, tt.exitCode, tt.run), &clientRun{requests: requestsOf(t, tt.usual)}, false)
			var texts []string
			for i, r := range rules {
				if text := r.judge(c); text != "" {
					found[i] = cmp.Or(found[i], "*"+text+"*")
					texts = append(texts, text)
				}
			}
			equal(t, "the findings", strings.Join(texts, "; "), tt.want)
		})
	}

	// A client that has failed in an earlier run looks by what it reads in each run.
	usual := &clientRun{requests: requestsOf(t, "201, 200 list")}
	for run, looks := range map[string]bool{
		"401 fault=401": true, "503 fault=503": true, "0 fault=hangup": true, "0 fault=lost": false, "500 fault=after:500": false,
	} {
		equal(t, "whether a client that fails with "+run+" looks", runOf(t, 1, run).failsUnperformed(), looks)
	}
	equal(t, "whether one that exits with 0 looks", runOf(t, 0, "401 fault=401").failsUnperformed(), false)
	equal(t, "whether one that is ended looks", runOf(t, cut, "401 fault=401").failsUnperformed(), false)
	looking := compare(runOf(t, 0, "0 fault=lost, 200 list at=1"), usual, true)
	equal(t, "whether it has read the answer", looking.isMended(), true)

	// A client is ended after 10,000 requests.
	flood := runOf(t, cut, "503 fault=503, 2x503 at=9")
	flood.isFlood = true
	equal(t, "the first finding", rules[0].judge(compare(flood, usual, false)), "still repeats after 10000 requests (2 times)")

	table, cells := "", []string(nil)
	for i, r := range rules {
		cells = append(cells, found[i])
		if i+1 == len(rules) || rules[i+1].wayOut != r.wayOut {
			table += fmt.Sprintf("| %s | %s |\n", strings.Join(cells, "; "), r.wayOut)
			cells = nil
		}
	}
	equal(t, "whether a rule has no row", slices.Contains(found, ""), false)
	written := regexp.MustCompile(`(<!-- written: findings -->\n\n\|.*\n\|.*\n)(?s:.*?)(\n<!-- end -->)`)
	want := written.ReplaceAllString(readReference(), "${1}"+table+"${2}")
	if *update {
		equal(t, "the error of the reference", os.WriteFile("docs/reference.md", []byte(want), 0o666), nil)
	} else if readReference() != want || !strings.Contains(want, table) {
		t.Error("docs/reference.md is not up to date; this writes it: go test . ./docs -update")
	}
}

// runOf returns a run with requestsOf a text, which has taken 61 seconds. An exit code of -2 is
// that of a client that was ended.
func runOf(t *testing.T, exitCode int, text string) *clientRun {
	requests := requestsOf(t, text)
	i := slices.IndexFunc(requests, func(e *entry) bool { return e.Fault != nil })
	return &clientRun{exitCode: exitCode, isCut: exitCode == -2, took: 61 * time.Second, requests: requests, struck: requests[i]}
}

// Fuzzing, and speed.

// FuzzCreate compares createPet with encoding/json.
func FuzzCreate(f *testing.F) {
	f.Add([]byte(`{"name":"\ud800","name":"","categoryId":-0,"status":"s\u006fld","x":[[]]}`))
	nested := strings.Repeat("[", 9999) + strings.Repeat("]", 9999)
	f.Add([]byte(`{"name":"","categoryId":1,"x":` + nested + "}"))
	decode := func(text []byte) (object map[string]any) {
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		dec.Decode(&object)
		return object
	}
	h := start(f).service
	f.Fuzz(func(t *testing.T, body []byte) {
		want := decode(body)
		for _, name := range unknownNames(want, []string{"name", "categoryId", "status"}) {
			delete(want, name)
		}
		_, isString := want["name"].(string)
		number, _ := want["categoryId"].(json.Number)
		category, err := number.Int64()
		status, hasStatus := want["status"]
		isPet := isString && err == nil && (!hasStatus || slices.Contains([]any{"available", "pending", "sold"}, status))
		wantStatus := 201
		switch {
		case len(body) > 65_536:
			wantStatus = 413
		case !json.Valid(body) || !utf8.Valid(body) || !isPet:
			wantStatus = 400
		}

		call(h, "POST", "/__admin/reset", "")
		w := call(h, "POST", "/v1/pets", string(body))
		equal(t, fmt.Sprintf("the status of %q", body), w.Code, wantStatus)
		if wantStatus == 201 {
			want["id"], want["categoryId"] = json.Number("1"), json.Number(fmt.Sprint(category)) // -0 is 0
			equal(t, fmt.Sprintf("the pet of %q", body), decode(w.Body.Bytes()), want)
		}
	})
}

// Benchmark measures requests to a service that begins with 1,000 pets and as many requests in
// its journal, and collects garbage as rarely as the process does. In the journal with failures,
// each second request repeats the one before it, which has failed.
func Benchmark(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(200))
	for _, bb := range []struct{ name, method, target, body, prefer string }{
		{"listPets", "GET", "/v1/pets", "", ""},
		{"createPet", "POST", "/v1/pets", newRex, ""},
		{"getPet", "GET", "/v1/pets/777", "", ""},
		{"reset", "POST", "/__admin/reset", "", ""},
		{"showJournal", "GET", "/__admin/requests", "", ""},
		{"showJournal with failures", "GET", "/__admin/requests", "", "code=503"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			h := start(b, manyPets(1000)...).service
			for i := range 1000 {
				r := newRequest("GET", "/v1/pets", "")
				if i%2 == 0 && bb.prefer != "" {
					r.Header.Set("Prefer", bb.prefer)
				}
				h.ServeHTTP(httptest.NewRecorder(), r)
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
	log     *buffer  // standard error
	service *service // nil for a process
	stop    func()   // stops the service, and waits for its end
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
// have the form "Prefer: code=503". The key is added, unless one is given. No answer
// may be kept: browsers would keep a 410 for ever, even a simulated one.
func (s *server) do(t testing.TB, request, body string, headers ...string) response {
	t.Helper()
	r := s.send(t, request, body, headers...).wait()
	if r.err != nil {
		t.Fatalf("%s: %v", r.request, r.err)
	}
	r.wantHeader(t, "Cache-Control", "no-store")
	for name := range r.header {
		if !slices.Contains(knownHeaders, name) {
			t.Errorf("%s: got the header %s, want one that pages of other origins can read", r.request, name)
		}
	}
	return r
}

// knownHeaders are those of answers that pages of other origins can read, and those that no page
// needs to read.
var knownHeaders = func() (names []string) {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Origin", "null")
	h := http.Header{}
	allowAllOrigins(h, r)
	for _, name := range strings.Split(h.Get("Access-Control-Expose-Headers"), ", ") {
		names = append(names, http.CanonicalHeaderKey(name))
	}
	return append(names, "Cache-Control", "Content-Length", "Content-Type", // of the Fetch standard
		"Access-Control-Allow-Headers", "Access-Control-Allow-Methods", "Access-Control-Allow-Origin",
		"Access-Control-Expose-Headers", "Access-Control-Max-Age", "Connection", "Content-Security-Policy",
		"Cross-Origin-Opener-Policy", "Date", "Referrer-Policy", "Vary", "X-Content-Type-Options")
}()

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
	if row := fmt.Sprintf("| %d | `%s` |", status, code); message != simulated {
		equal(t, "whether docs/reference.md has "+row, strings.Contains(readReference(), row), true)
	}
	if message == "" || !strings.Contains(message, text) {
		t.Errorf("%s: the message\n got %q\nwant %q in it", r.request, message, text)
	}
}

var readReference = sync.OnceValue(func() string {
	text, err := os.ReadFile("docs/reference.md")
	if err != nil {
		panic(err)
	}
	return strings.ReplaceAll(string(text), "\r", "")
})

func errorText(status int, code, message string) string {
	return fmt.Sprintf(`{"code":"%s","message":%s,"status":%d}`, code, jsonText(message), status)
}

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

// pets returns the list of the first pets. It has no trace in the journal.
func (s *server) pets(t testing.TB) string {
	t.Helper()
	return strings.TrimSpace(s.do(t, "GET /__admin/pets", "").body)
}

// connection is a TCP connection, for requests that net/http's client would not
// send.
type connection struct {
	*net.TCPConn
	in *bufio.Reader
}

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
	c := s.sendRaw(t, request, fmt.Sprintf("Expect: 100-continue\nContent-Type: application/json\nContent-Length: %d", len(newIda)))
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

func (s *server) setFault(t testing.TB, query string) {
	t.Helper()
	if r := s.do(t, "PUT /__admin/fault?"+query, ""); r.status != 200 {
		t.Fatalf("%s: got %d %s", r.request, r.status, r.body)
	}
}

func (s *server) wantFault(t testing.TB, want string) {
	t.Helper()
	s.do(t, "GET /__admin/fault", "").want(t, 200, want)
}

// waitWaiting waits until as many requests are listed as waiting with a fault, checks that
// they are these, each with its operation, such as "GET /v1/pets listPets", and returns
// them.
func (s *server) waitWaiting(t testing.TB, want ...string) (waiting []sentRecord) {
	t.Helper()
	eventually(t, fmt.Sprint("the waiting requests ", want), func() bool {
		_, waiting, _ = s.readJournal(t, "")
		waiting = slices.DeleteFunc(waiting, func(r sentRecord) bool { return r.Fault == nil })
		return len(waiting) == len(want)
	})
	var got []string
	for _, r := range waiting {
		got = append(got, fmt.Sprint(r.Method, " ", r.URL, " ", r.Operation))
	}
	equal(t, "the waiting requests", got, want)
	return waiting
}

// sentRecord is a request in the journal as a client reads it: an entry, or one that waits, whose
// Ended is 0.
type sentRecord struct {
	Arrived, Repeats, Period, Ended, Pet        int64
	Time                                        time.Time
	Method, URL, Operation, Body, Answer, Error string
	Test                                        string
	Headers, AnswerHeaders, Fault               map[string]string
	Status                                      int
	Seconds                                     float64
	Ignored                                     []string
}

// sentMeta is what the journal counts, as a client reads it.
type sentMeta struct {
	Total, Ended, Period int64
	Test                 string
	Since                time.Time
}

func (s *server) readJournal(t testing.TB, query string) (entries, waiting []sentRecord, meta sentMeta) {
	t.Helper()
	r := s.do(t, "GET /__admin/requests"+query, "")
	var journal struct {
		Requests, Waiting []sentRecord
		Meta              sentMeta
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

// start serves these pets, in the process of the test, until the test ends. The log must
// stay empty.
func start(t testing.TB, pets ...string) *server {
	t.Helper()
	return startWith(t, func(*service) {}, pets...)
}

// startWith is start with a function that changes the service before it is used.
func startWith(t testing.TB, change func(*service), pets ...string) *server {
	t.Helper()
	seed, err := readSeed([]byte(array(pets...)))
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{url: rootURL(ln.Addr()), key: testKey, log: new(buffer)}
	s.service = newService(ctx, testKey, seed, newLog(s.log, false))
	change(s.service)
	ended := make(chan error, 1)
	go func() { ended <- runServer(ln, s.service, io.Discard) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		equal(t, "the error of runServer", <-ended, nil)
	})
	t.Cleanup(func() {
		s.stop()
		equal(t, "the log", s.log.take(), "")
	})
	return s
}

// longWaits makes stalls and the pauses of a drip longer than a test can last.
func longWaits(s *service) { s.durations.second = time.Hour }

// shortWaits makes stalls and drips short.
func shortWaits(s *service) { s.durations.second = time.Millisecond }

func call(h http.Handler, method, target, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, newRequest(method, target, body))
	return w
}

func newRequest(method, target, body string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+testKey)
	r.Header.Set("Content-Type", "application/json")
	return r
}

// childVariable is the environment variable that makes the test binary petstore.
const childVariable = "PETSTORE_TEST_CHILD"

// petstore returns a command that runs petstore on a free port, with this key.
func petstore(key string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append([]string{"-addr", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), childVariable+"=1", "PETSTORE_API_KEY="+key)
	return cmd
}

// startProcess runs petstore, with -stdin unless its standard input is set. The process is
// killed when the test ends and, with -stdin, stops if the test binary is killed.
func startProcess(t testing.TB, cmd *exec.Cmd) *server {
	t.Helper()
	s := &server{log: new(buffer)}
	if cmd.Stderr == nil {
		cmd.Stderr = s.log
	}
	if cmd.Stdin == nil {
		cmd.Args = append(cmd.Args, "-stdin")
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(stdin, "more\n") // only its end stops petstore
		s.stop = func() {
			stdin.Close()
			wantExit(t, cmd, 0)
		}
	}
	stdout, err := cmd.StdoutPipe()
	if err := errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	matches(t, "standard output", line, `^http://127\.0\.0\.1:[1-9]\d*/v1\n$`)
	s.url = strings.TrimSuffix(line, "/v1\n")
	_, s.key, _ = strings.Cut(cmd.Env[len(cmd.Env)-1], "=")
	return s
}

// output runs a command that ends by itself. It returns what the command has written to
// standard output, unless that is set, and to standard error.
func output(cmd *exec.Cmd) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	cmd.Stderr = &errs
	cmd.WaitDelay = time.Second // for a process that has outlived the command, with its output
	if cmd.Start() == nil {
		defer time.AfterFunc(2*patience, func() { cmd.Process.Kill() }).Stop()
		cmd.Wait()
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// wantExit waits for the end of a process, and checks its exit code.
func wantExit(t testing.TB, cmd *exec.Cmd, code int) {
	t.Helper()
	defer time.AfterFunc(patience, func() { cmd.Process.Kill() }).Stop()
	cmd.WaitDelay = patience
	equal(t, "whether a process is left", errors.Is(cmd.Wait(), exec.ErrWaitDelay), false)
	equal(t, "the exit code", cmd.ProcessState.ExitCode(), code)
}

// TestMain runs the tests or, in a process that a test has started, petstore or a client.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "client" {
		if act(os.Args[2], os.Args[3]) != nil {
			os.Exit(1)
		}
		return
	}
	if os.Getenv(childVariable) != "" {
		main()
		return
	}
	time.Local = time.FixedZone("east", 9*60*60) // in UTC, a local time would look right
	// With -race, each process that a test starts would sleep for a second at its end.
	os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
	os.Exit(m.Run())
}

// Helpers: comparing and waiting.

func equal[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %.3000s\nwant %.3000s", what, fmt.Sprintf("%#v", got), fmt.Sprintf("%#v", want))
	}
}

func contains(t testing.TB, what, got, part string) {
	t.Helper()
	if !strings.Contains(got, part) {
		t.Errorf("%s:\n got %.3000q\nwant %q in it", what, got, part)
	}
}

func matches(t testing.TB, what, got, pattern string) {
	t.Helper()
	if !regexp.MustCompile(pattern).MatchString(got) {
		t.Errorf("%s:\n got %.3000q\nwant a match of %s", what, got, pattern)
	}
}

// eventually polls a condition until it is true. It is for what no event announces.
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

// buffer keeps what a service writes. It is safe for concurrent use.
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

// wait waits until the text has a part, and takes it.
func (b *buffer) wait(t testing.TB, part string) (text string) {
	t.Helper()
	eventually(t, part, func() bool {
		text += b.take()
		return strings.Contains(text, part)
	})
	return text
}

// Helpers: values and files.

// half returns the first half of a text. It is what truncate and stall send of a body.
func half(text string) string { return text[:len(text)/2] }

func array(elements ...string) string { return "[" + strings.Join(elements, ",") + "]" }

func jsonText(v any) string { return string(encodeJSON(v)) }

// numbers returns first, first+step and so on, up to last.
func numbers(first, last, step int64) []int64 {
	var list []int64
	for n := first; n <= last; n += step {
		list = append(list, n)
	}
	return list
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
