package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
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

// README: API.

// The operations of the contract, and the path that it only names. FuzzQuery has
// the queries of a list.
func TestContract(t *testing.T) {
	const rex, tom = `{"id":1,"name":"Rex","categoryId":7,"status":"available"}`, `{"id":5,"name":"Tom","categoryId":9}`
	start(t, "-seed", tempFile(t, "["+rex+","+tom+"]")).play(t, `# operations
		GET /v1/pets -> 200 [{rex},{tom}]
		GET /v1/pets?status=available&limit=1 -> 200 [{rex}]
		GET /v1/pets?limit=1 -> 200 [{rex}] -> Link: </v1/pets?limit=1&after=1>; rel="next"
		GET /v1/pets/5 -> 200 {tom} -> {deprecated}
		GET /v1/%70ets/%35?colour=red -> 200 {tom} -> {deprecated}
		GET /v1/pets/2 -> 404 not_found: there is no pet 2 -> {deprecated}
		GET /v1/pets/0 -> 404 not_found: there is no pet 0 -> {deprecated}
		GET /v1/pets/1%2F2 -> 400 invalid_parameter: petId is 1/2; it must be an integer -> {deprecated}
		GET /v1/store/orders -> 501 not_implemented: the contract names this operation and shows no payload for it
		POST /v1/pets {tom} -> 201 {"id":6,"name":"Tom","categoryId":9} -> Location: /v1/pets/6
	`, "{rex}", rex, "{tom}", tom)
}

// A page ends before it has more than 256 KiB, and Link leads on.
func TestBoundedPage(t *testing.T) {
	s := start(t)
	for _, query := range []string{"?limit=5", "?limit=5&status=sold"} {
		for _, c := range []struct{ last, pets, length int }{{65485, 4, 262144}, {65486, 3, 196609}} {
			s.do(t, "POST /__admin/reset")
			for _, length := range []int{65485, 65486, 65486, c.last, 1} {
				s.do(t, fmt.Sprintf(`POST /v1/pets {"name":"{x*%d}","categoryId":1,"status":"sold"}`, length))
			}
			r := s.do(t, "GET /v1/pets"+query)
			same(t, query, fmt.Sprint(strings.Count(r.body, "sold"), len(r.body), r.Header.Get("Link")),
				fmt.Sprintf(`%d %d</v1/pets%s&after=%[1]d>; rel="next"`, c.pets, c.length, query))
			if pets := s.pets(t, query); len(pets) != 5 {
				t.Errorf("%s: who follows Link reads %d pets", query, len(pets))
			}
		}
	}
}

// Many goroutines at once add pets: each id is given once, and no pet is lost.
// TestSoak does that over HTTP, where creates seldom meet in the store.
func TestAddsAtOnce(t *testing.T) {
	pets := newStore(0)
	var given [8*5000 + 1]atomic.Bool // by id
	together(8, func(int) {
		for range 5000 {
			if p, err := pets.add(NewPet{}); err != nil || given[p.id].Swap(true) || pets.get(p.id) != p {
				t.Errorf("an id is given twice, or cannot be looked up: %v %v", p, err)
			}
		}
	})
	if n := len(pets.list("", 0)); n != 8*5000 {
		t.Errorf("the store lists %d pets", n)
	}
}

// A create that is refused stores nothing and uses no id.
func TestBadCreates(t *testing.T) {
	start(t).each(t, `
		{x*0} -> the body is empty; it must be {an object}
		name=Rex&categoryId=7 -> the body is name=Rex&categoryId=7; it must be {an object}
		{\ufeff*1}{} -> the body is {\ufeff*1}{}; it must be {an object}
		{'name':'Rex'} -> the body has single quotes where JSON has double quotes, as in {"name":"Rex","categoryId":7}
		{"name":"a","categoryId":1 -> the body is JSON that ends too early
		{"name":"it's","categoryId":01} -> the body is not JSON from byte 30 on: 1}
		{"name":"a","categoryId":1}{} -> the body is not JSON from byte 28 on: {}
		{"x":{[*10000}{]*10000}} -> the body is nested more than 10000 levels deep
		[{"name":"a","categoryId":1}] -> the pet is [{"name":"a","categoryId":1}]; it must be a JSON object
		null -> the pet is null; it must be a JSON object
		{} -> name is missing; {a string}
		{"Name":"a","NAME":"a","categoryId":1} -> name is missing; {a string}
		{"name":null,"categoryId":1} -> name is null; {a string}
		{"name":1,"categoryId":1} -> name is 1; {a string}
		{"name":["{a*41}"],"categoryId":1} -> name is ["{a*38}…; {a string}
		{"name":"\ud800","categoryId":1} -> name is "\ud800"; {a string}
		{"name":"{\xff*1}","categoryId":1} -> name is not valid UTF-8
		{"name":"a","categoryId":1,"x":["{\xed\xa0\x80*1}"]} -> x is not valid UTF-8
		{"name":"a","categoryId":1,"{\xff*1}\n":1} -> {\ufffd\n*1} is not valid UTF-8
		{"{m*41}":"{\xff*1}"} -> {m*40}… is not valid UTF-8
		{"name":"a","n\u0061me":"a","categoryId":1} -> name is given twice; it must be given once
		{"name":"a"} -> categoryId is missing; it must be an integer
		{"name":"a","categoryId":null} -> categoryId is null; it must be an integer
		{"name":"a","categoryId":1,"categoryId":1} -> categoryId is given twice; it must be given once
		{"name":"a","categoryId":1,"status":"lost"} -> status is lost; {a status}
		{"name":"a","categoryId":1,"status":""} -> status is empty; {a status}
		{"name":"a","categoryId":1,"status":null} -> status is null; {a status}
		{"name":"a","categoryId":1,"status":["sold"]} -> status is ["sold"]; {a status}
		{"name":"a","categoryId":1,"status":"sold","status":null} -> status is given twice; it must be given once
	`, `
		POST /v1/pets {1} -> 400 invalid_body: {2}
		POST /v1/pets {pet} -> {made}
		GET /v1/pets -> 200 [{made pet}]
	`, "{an object}", `a JSON object, as {"name":"Rex","categoryId":7}`,
		"{a string}", "it must be a string of valid Unicode", "{a status}", "it must be available, pending or sold")
}

// An integer is spelt as in JSON, wherever it is given, and has its bounds.
func TestIntegers(t *testing.T) {
	s := start(t)
	const low, high, above = "-9223372036854775808", "9223372036854775807", "9223372036854775808"
	for _, c := range [][6]string{ // a parameter, where it is given, the values below, at and above its bounds
		{"limit", "GET /v1/pets?limit=@", "0", "1", "100", "101"},
		{"after", "GET /v1/pets?after=@", "-9223372036854775809", low, high, above},
		{"petId", "GET /v1/pets/@", "-9223372036854775809", low, high, above},
		{"categoryId", `POST /v1/pets {"name":"a","categoryId":@}`, "-9223372036854775809", low, high, above},
		{"pet 1: id", `POST /__admin/reset [{"name":"","categoryId":1,"id":@}]`, "0", "1", "9223372036854775806", high},
		{"skip", "PUT /__admin/fault?code=500&skip=@", "-1", "0", high, above},
		{"times", "PUT /__admin/fault?code=500&times=@", "0", "1", high, above},
		{"retry-after", "PUT /__admin/fault?code=500&retry-after=@", "-1", "0", "3600", "3601"},
		{"code", "PUT /__admin/fault?code=@", "399", "400", "599", "600"},
	} {
		name, inJSON := c[0], strings.Contains(c[1], "{")
		message := func(given string) string {
			if !inJSON {
				given = url.QueryEscape(given)
			}
			line, _, _ := strings.Cut(s.do(t, strings.Replace(c[1], "@", given, 1)).String(), "\n")
			_, message, _ := strings.Cut(line, ": ")
			return message
		}
		for _, given := range append(strings.Fields(`1.0 1.5 4e2 +1 01 -01 -0 1_0 0x1 1- - ten true [1] "1" ५`),
			"99999999999999999999", "", c[2], c[5]) {
			if given == "" && name == "petId" || given == "-0" && c[3] == low || inJSON && !json.Valid([]byte(given)) {
				continue // no such path; an integer; no JSON
			}
			allowed := "an integer from " + c[3] + " to " + c[4]
			if c[3] == low && len(given) < 19 {
				allowed = "an integer"
			} else if name == "code" {
				allowed += ", hangup or truncate"
			}
			same(t, c[1], message(given), name+" is "+cmp.Or(given, "empty")+"; it must be "+allowed)
		}
		for _, given := range c[3:5] {
			if strings.Contains(message(given), "must be") {
				t.Errorf("%s: %s is refused", c[1], given)
			}
		}
	}
}

// The key is asked for before anything else is looked at.
func TestKey(t *testing.T) {
	s := start(t)
	s.each(t, `
		GET /v1 | GET /v1/pets/ | GET /v1/../v1/pets | GET /%761/nothing | GET /v1/pets/1?%zz | GET /v1/store/orders
		DELETE /v1/pets | GET /v1/pets?limit=0&key=correct-horse&access_token=correct-horse
		GET /__admin | POST /__admin/reset | PUT /__admin/fault?code=503 | GET /__admin/requests
	`, "{1}\nAuthorization: -\nX-Api-Key: correct-horse\nPrefer: code=503\n{no key}")
	s.each(t, `
		Authorization: | Authorization: Bearer | Authorization: correct-horse | Authorization: Basic correct-horse
		Authorization: Bearer correct-horse{\nA*1}uthorization: Bearer correct-horse
	`, "GET /v1/pets\n{1}\n{no key}")
	s.each(t, "Bearer wrong | Bearer correct-horsex | Bearer correct-hors | Bearer CORRECT-HORSE",
		"GET /v1/nothing\nAuthorization: {1}\n{wrong key}")
	s.play(t, "GET /v1/pets -> Authorization: bEARER   correct-horse -> 200 []")
	// These need no key, and mind none.
	for _, credential := range []string{"-", "Bearer wrong", "Bearer correct-horse"} {
		s.play(t, "GET /healthz -> Authorization: "+credential+` -> 200 {"status":"ok"}`)
		same(t, "openapi.json", s.do(t, "GET /openapi.json\nAuthorization: "+credential).body, string(openAPI))
		r := s.do(t, "GET /\nAuthorization: "+credential)
		same(t, "the page", r.Header.Get("Content-Type")+"\n"+r.body, "text/html; charset=utf-8\n"+string(indexHTML))
	}
}

// Web pages of every origin read every answer, and the headers that they need.
func TestCORS(t *testing.T) {
	s := start(t)
	const exposed = "* Link, Location, Allow, Deprecation, Sunset, WWW-Authenticate, Preference-Applied, Retry-After"
	for _, request := range []string{`POST /v1/pets {"name":"a","categoryId":1}`, "GET /v1/pets", "GET /v1/pets/1",
		"GET /v1/pets?limit=0", "GET /v1/pets\nAuthorization: -", "PUT /v1/pets", "GET /x/../y", "GET /",
		"GET /openapi.json", "POST /__admin/reset", "GET /__admin/requests", "GET /v1\nPrefer: code=503",
		"POST /v1/pets\nContent-Length: 65537", "OPTIONS /v1/pets"} {
		h := s.do(t, request+"\nOrigin: null").Header
		same(t, request, h.Get("Access-Control-Allow-Origin")+" "+h.Get("Access-Control-Expose-Headers"), exposed)
	}
	s.each(t, "/v1/pets | /v1/pets/ | /x/../y | /__admin/reset | /healthz | *",
		"OPTIONS {1}\nAuthorization: -\nPrefer: code=503\n"+preflight)
}

// preflight is the answer to OPTIONS.
const preflight = `204
Access-Control-Allow-Headers: Authorization, Content-Type, Prefer, *
Access-Control-Allow-Methods: GET, HEAD, POST, PUT, DELETE
Access-Control-Max-Age: 600`

// README: Errors.

// There is no such path or no such method, or the query is wrong.
func TestErrors(t *testing.T) {
	s := start(t)
	s.each(t, "/pets | /v1x | //v1/pets | /healthz/ | /x/../healthz | http://elsewhere",
		"GET {1} -> Authorization: - -> 404 not_found: no such path; "+
			"the API is at /v1/pets, its description at /openapi.json, and a page for browsers at /")
	s.each(t, `
		/v1 | /v1/ | /v1/pets/ | /v1/pets/1/ | /v1/pets/1/2 | /v1/pets%2F | /v1/store
		/v1//pets | /v1/./pets | /v1/../v1/pets | /v1/pets/%2e%2e
	`, "GET {1} -> {no path}\nPOST {1} -> {no path}")
	s.each(t, "CONNECT /__admin | POST /__admin/reset/ | GET /__admin//requests",
		"{1} -> 404 not_found: no such path; there are /__admin/reset, /__admin/fault and /__admin/requests")
	s.each(t, `
		PUT /v1/pets -> GET, HEAD, POST | get /v1/pets -> GET, HEAD, POST | CONNECT /v1/pets -> GET, HEAD, POST
		PATCH /v1/pets/1 {} -> GET, HEAD | POST /v1/store/orders -> GET, HEAD | GET /__admin/reset -> POST
		POST /__admin/fault -> DELETE, GET, HEAD, PUT | PUT /__admin/requests -> DELETE, GET, HEAD
		POST /healthz -> GET, HEAD | DELETE /openapi.json -> GET, HEAD | POST / -> GET, HEAD
	`, "{1} -> 405 method_not_allowed: this path allows {2} only -> Allow: {2}")
	s.each(t, `
		limit -> limit is empty; it must be an integer from 1 to 100
		limit={ä*40} -> limit is {ä*40}; it must be an integer from 1 to 100
		limit={ä*41} -> limit is {ä*40}…; it must be an integer from 1 to 100
		limit=%ff -> limit is {\ufffd*1}; it must be an integer from 1 to 100
		limit=1&limit=1 -> limit is given 2 times; it must be given once
		after=1&after=2 -> after is given 2 times; it must be given once
		status=sold&status=sold&status= -> status is given 3 times; it must be given once
		status=Sold -> status is Sold; it must be available, pending or sold
		status= -> status is empty; it must be available, pending or sold
		x=%zz -> the query is malformed: invalid URL escape "%zz"
		x=1;limit=5 -> the query is malformed: invalid semicolon separator in query
	`, "GET /v1/pets?{1} -> 400 invalid_parameter: {2}")
}

// Of several things that are wrong, the first in this order is told: key, body
// (size, framing), fault, path, method, query, Content-Type, content of the body.
func TestErrorOrder(t *testing.T) {
	s := start(t)
	s.play(t, `# order
		POST /v1/pets {x*65537} -> Authorization: - -> {no key} -> Connection: close
		POST /v1/pets {x*65537} -> Prefer: code=418 -> {too long} -> Connection: close
		GET /v1/pets/1 {x*65537} -> Prefer: code=1 -> {too long} -> Connection: close
		GET /v1/pets/1 -> Prefer: code=x -> Authorization: - -> {no key}
		GET /v1/nothing/ -> Prefer: code=418 -> {teapot} -> Preference-Applied: code=418
		GET /v1//pets -> Prefer: code=418 -> {teapot} -> Preference-Applied: code=418
		PUT /v1/pets -> Prefer: code=418 -> {teapot} -> Preference-Applied: code=418
		GET /v1/pets?limit=0&% -> Prefer: code=418 -> {teapot} -> Preference-Applied: code=418
		POST /v1/pets {} -> Content-Type: x -> Prefer: code=418 -> {teapot} -> Preference-Applied: code=418
		PUT /v1/pets -> Prefer: delay=x -> 400 invalid_parameter: delay is x; {seconds}
		PUT /v1/nothing?%zz -> {no path}
		TRACE /v1/pets/x?%zz -> 405 method_not_allowed: this path allows GET, HEAD only -> Allow: GET, HEAD
		GET /v1/pets/x?%zz -> {bad query} -> {deprecated}
		POST /v1/pets?%zz {} -> Content-Type: text/plain -> {bad query}
		POST /v1/pets {} -> Content-Type: x -> Content-Encoding: br -> 415 unsupported_media_type: {coding}
		GET /v1/pets?status=x&after=x&limit=x -> 400 invalid_parameter: limit is x; it must be an integer from 1 to 100
		GET /v1/pets?status=x&after=x -> 400 invalid_parameter: after is x; {an integer}
		POST /v1/pets {"status":1,"categoryId":"x","name":1} -> 400 invalid_body: name is 1; {a string}
		POST /v1/pets {"status":1,"categoryId":null,"name":""} -> 400 invalid_body: categoryId is null; {an integer}
		GET /v1/pets -> 200 []
	`, "{too long}", "413 request_entity_too_large: the body is over 65536 bytes",
		"{seconds}", "it must be a number of seconds from 0 to 30, with decimals if need be",
		"{bad query}", `400 invalid_parameter: the query is malformed: invalid URL escape "%zz"`,
		"{coding}", "Content-Encoding is br; it must be left out",
		"{a string}", "it must be a string of valid Unicode", "{an integer}", "it must be an integer")
	// What is told before the fault is looked at does not use it up.
	s.do(t, "PUT /__admin/fault?code=503&times=1")
	s.do(t, "POST /v1/pets {x*65537}")
	s.do(t, "GET /v1/pets\nAuthorization: -")
	s.play(t, `GET /__admin/fault -> 200 {"code":"503","times":1,"met":0}`)
}

// A body is JSON in UTF-8, as far as its headers tell.
func TestContentTypes(t *testing.T) {
	s := start(t)
	s.each(t, `
		Content-Type: text/plain -> Content-Type is text/plain; {json}
		Content-Type: application/x-www-form-urlencoded -> Content-Type is application/x-www-form-urlencoded; {json}
		Content-Type: {type}; charset=latin1 -> Content-Type is {type}; charset=latin1; {json}
		Content-Type: {type}; charset -> Content-Type is {type}; charset; {json}
		Content-Type: application/{x*41} -> Content-Type is application/{x*28}…; {json}
		Content-Type: a/b{\nC*1}ontent-Type: {type} -> Content-Type is a/b, {type}; {json}
		Content-Type: {type}{\nC*1}ontent-Type: {type} -> Content-Type is {type}, {type}; {json}
		Content-Encoding: gzip -> Content-Encoding is gzip; it must be left out
		Content-Encoding: identity{\nC*1}ontent-Encoding: br -> Content-Encoding is identity, br; it must be left out
	`, `
		POST /v1/pets {pet} -> {1} -> 415 unsupported_media_type: {2}
		POST /__admin/reset?%zz [{pet}] -> {1} -> 400 invalid_parameter: {bad query}
		POST /__admin/reset [{pet}] -> {1} -> 415 unsupported_media_type: {2}
		GET /v1/pets -> 200 []
	`, "{type}", "application/json", "{json}", "it must be application/json, in UTF-8 (curl sends that with --json)",
		"{bad query}", `the query is malformed: invalid URL escape "%zz"`)
	s.each(t, `Content-Type: application/json | Content-Type: | Content-Encoding: Identity
		Content-Type: Application/JSON; Charset="UTF-8"; x=y
	`, "POST /v1/pets {pet} -> {1} -> {made}\nPOST /__admin/reset [] -> {1} -> 204\nGET /v1/pets -> 200 []")
	// Without a byte of body, nobody looks at them.
	s = start(t, "-seed", tempFile(t, `[{"name":"a","categoryId":1}]`))
	s.each(t, "Content-Encoding: gzip | Transfer-Encoding: chunked", `
		POST /__admin/reset []{ *65534} -> 204
		GET /v1/pets -> 200 []
		POST /__admin/reset -> Content-Type: text/plain -> {1} -> 204
		GET /v1/pets -> 200 [{made pet}]
	`)
}

// Peers that speak unusual, broken or half HTTP, or send a body that nobody
// reads, get an answer that is JSON, or a closed connection.
func TestRawHTTP(t *testing.T) {
	s := start(t)
	const (
		host    = " HTTP/1.1\nHost: x\n"
		get     = "GET /v1/pets" + withKey
		post    = "POST /v1/pets" + withKey
		chunked = post + "Transfer-Encoding: chunked\n"
		pet     = `{"name":"a","categoryId":1}`
		expect  = "Expect: 100-continue\nContent-Length: 27\n\n" + pet
		closes  = "\nConnection: close"
		made    = `201 {"id":1,"name":"a","categoryId":1}` + closes + "\nLocation: /v1/pets/1"
		locked  = "401 unauthorized: send the API key in one header: Authorization: Bearer <API_KEY>" + closes +
			"\nWww-Authenticate: " + challenge
		tooLong  = "413 request_entity_too_large: the body is over 65536 bytes" + closes
		badBody  = "400 invalid_body: the body is cut short or badly chunked" + closes
		notPath  = "400 bad_request: the target must be a path, in HTTP/1.1; this service is no proxy" + closes
		badHTTP  = "400 bad_request: 400 Bad Request" + closes
		longHead = "431 request_header_fields_too_large: 431 Request Header Fields Too Large" + closes
	)
	for _, c := range []struct{ name, send, want string }{
		{"pipelining, and a GET with a body",
			get + "\nGET /v1" + withKey + "\n" + get + "Content-Length: 2\n\n{}" + get + "Connection: close\n\n",
			"200 []\n\n{no path}\n\n200 []\n\n200 []" + closes},
		{"HTTP 1.0", strings.Replace(get, "1.1", "1.0", 1) + "\n", "200 []" + closes},
		{"asterisk form", "GET *" + withKey + "\n", notPath},
		{"authority form", "CONNECT elsewhere:80" + withKey + "\n", notPath},
		{"the preface of HTTP 2", "PRI * HTTP/2.0\n\nSM\n\n", notPath},
		{"chunks", chunked + "Connection: close\n\n5\n" + pet[:5] + "\n16\n" + pet[5:] + "\n0\n\n", made},
		{"64 KiB in a chunk", chunked + "Connection: close\n\n10000\n" + pet + "{ *65509}\n0\n\n", made},
		{"64 KiB and a byte in a chunk", chunked + "\n10001\n" + pet + "{ *65510}", tooLong},
		{"a body of no chunks", chunked + "Connection: close\n\n0\n\n", "400 invalid_body: the body is empty; " +
			`it must be a JSON object, as {"name":"Rex","categoryId":7}` + closes},
		{"a bad chunk", chunked + "\nx\n", badBody},
		{"the client leaves within the body", post + "Content-Length: 28\n\n" + pet, badBody},
		{"a length too large, no body", post + "Content-Length: 65537\n\n", tooLong},
		{"no key, no body", "POST /v1/pets" + host + "Content-Length: 27\n\n", locked},
		{"headers of 64 KiB", get + "X: {x*65336}\nConnection: close\n\n", "200 []" + closes},
		{"headers over 64 KiB", get + "X: {x*65536}\n\n", longHead},
		{"headers far over 64 KiB", get + "X: {x*300000}\n\n", longHead},
		{"Expect", strings.Replace(post+expect, "\n", "\nConnection: close\n", 1), "100\n\n" + made},
		{"Expect, no key", "POST /v1/pets" + host + expect, locked},
		{"Expect, too long", post + strings.Replace(expect, "27", "65537", 1), tooLong},
		{"Expect, preflight", "OPTIONS /v1/pets" + withKey + expect, preflight + closes},
		{"Expect, health", "GET /healthz" + host + expect, `200 {"status":"ok"}` + closes},
		{"no Host", "GET / HTTP/1.1\n\n", "400 bad_request: 400 Bad Request: missing required Host header" + closes},
		{"control characters", "GET /v1/\x01" + withKey + "\n", badHTTP},
		{"HTTP 3", "GET /v1/pets HTTP/3.0\nHost: x\n\n", "505 http_version_not_supported: " +
			"505 HTTP Version Not Supported: unsupported protocol version" + closes},
		{"coding", post + "Transfer-Encoding: gzip\n\n", "501 not_implemented: Unsupported transfer encoding" + closes},
		{"expectation", get + "Expect: more\n\n", "417 expectation_failed: Expectation Failed" + closes},
		{"the client leaves within the headers", "POST /v1/pets HTTP/1.1\nHo", badHTTP},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.do(t, "POST /__admin/reset")
			conn := s.dial(t, expand(c.send))
			if strings.HasPrefix(c.name, "the client leaves") {
				conn.CloseWrite()
			}
			same(t, c.send, conn.rest(), words.Replace(c.want))
			if pets := s.do(t, "GET /v1/pets").body; strings.Contains(c.want, "201 ") != (pets != "[]\n") {
				t.Errorf("the pets then are %s", pets)
			}
		})
	}
}

// A pet that looks like one of net/http's own errors is sent as it is, and so is
// a journal that has it: however the text lies where net/http begins a Write, and
// though the last Write of the journal ends with an empty line.
func TestPetLikeAnError(t *testing.T) {
	s := start(t)
	for _, like := range []string{`HTTP/1.1 400 Bad Request\r\n\r\n`, "HTTP/1.1 499 x"} {
		for i := range 2 * len(like) {
			pet := `"name":"` + strings.Repeat("x", i) + strings.Repeat(like, 4500/len(like)) + `","categoryId":1}`
			s.do(t, "POST /__admin/reset")
			same(t, "the pet", s.do(t, "POST /v1/pets {"+pet).body, `{"id":1,`+pet+"\n")
			s.journal(t)
		}
	}
}

// A peer that takes too long gets 408 once its headers have come, and an error
// of net/http or nothing before. A delay counts for none of the limits.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	srv := newServer(&api{log: slog.Default(), seed: newStore(0)})
	same(t, "the time limits for headers, request, answer, idle connection, stopping and unread body",
		fmt.Sprint(srv.ReadHeaderTimeout, srv.ReadTimeout, srv.WriteTimeout, srv.IdleTimeout, stopTimeout, linger),
		"5s 15s 1m0s 2m0s 10s 1s")
	const post, half = "POST /v1/pets" + withKey, time.Second / 2
	s := serve(t, &api{}, func(srv *http.Server) { srv.ReadHeaderTimeout, srv.ReadTimeout = half, half })
	together(3, func(i int) {
		send := []string{"", post + "X", post + "Content-Length: 3\n\n{}"}[i]
		same(t, "a peer that takes too long", s.dial(t, send).rest(), []string{"000",
			"400 bad_request: 400 Bad Request\nConnection: close",
			"408 request_timeout: the body did not come in time\nConnection: close"}[i])
	})
	late := func(srv *http.Server) { srv.ReadTimeout, srv.WriteTimeout = half, 1 } // 1 ns, which is always over
	serve(t, &api{}, late).play(t, "POST /v1/pets {pet} -> Prefer: delay=.6 -> {made} -> Preference-Applied: delay=.6")
	serve(t, &api{latency: half + 1}, late).play(t, "GET /v1/pets -> 200 []")
}

// A client that sends all of a long body before it reads gets the answer, and
// one that never stops sending is cut off, although this service has no time
// limit for a request.
func TestUnreadBody(t *testing.T) {
	t.Parallel()
	s := serve(t, &api{}, func(srv *http.Server) { srv.ReadTimeout = 0 })
	s.play(t, "POST /healthz {} -> Transfer-Encoding: chunked -> "+
		"405 method_not_allowed: this path allows GET, HEAD only -> Allow: GET, HEAD -> Connection: close")
	const noKey = " HTTP/1.1\nHost: x\n"
	together(16, func(i int) {
		head := []string{"POST /v1/pets" + withKey, "POST /v1/pets" + noKey, "OPTIONS *" + noKey, "GET /" + noKey}[i/4]
		framing, body := "Content-Length: 3000000\n\n", strings.Repeat("x", 3000000)
		if i%2 == 1 {
			framing, body = "Transfer-Encoding: chunked\n\n", "2dc6c0\r\n"+body+"\r\n0\r\n\r\n"
		}
		c := s.dial(t, head+"Connection: close\n"+framing)
		_, err := io.WriteString(c, body)
		if r := c.read(); err != nil || r.broken {
			t.Errorf("%s: who sends all gets %s and %v", head, r, err)
		}
		expect := []string{"", "Expect: 100-continue\n"}[i%2]
		c = s.dial(t, head+expect+"Content-Length: 1000000000\n\n")
		go func() {
			for err := error(nil); err == nil; time.Sleep(10 * time.Millisecond) {
				_, err = io.WriteString(c, "x")
			}
		}()
		if answer, err := io.ReadAll(c); os.IsTimeout(err) || !strings.HasPrefix(string(answer), "HTTP/1.1 ") {
			t.Errorf("%s: who never stops sending gets %.300s and %v", head, answer, err)
		}
	})
}

// A bug is a 500 with its stack in the log, and the process lives. Where the
// answer has begun, the connection closes, or it would be taken for whole.
func TestPanic(t *testing.T) {
	log := new(lockedBuffer)
	a := &api{log: slog.New(slog.NewTextHandler(log, nil))}
	s := serve(t, a, nil)
	a.current.Store(&world{}) // without a store
	for range 2 {
		s.play(t, "GET /v1/pets -> 500 internal_server_error: the service has a bug; its log tells where")
	}
	s = serve(t, a, func(srv *http.Server) {
		h := srv.Handler
		srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(buggyWriter{w}, r) })
	})
	if r := s.do(t, "GET /__admin/requests"); r.StatusCode != 200 || !r.broken {
		t.Errorf("after a panic within the journal, the answer is %s", r)
	}
	newServer(a).ErrorLog.Print("http: Accept error")
	for _, part := range []string{`level=ERROR msg=panic value="runtime error: invalid memory address`, "listPets",
		"path=/v1/pets status=500", `msg=panic value="a bug"`, "showJournal", `level=WARN msg="http: Accept error"`} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log lacks %s:\n%.3000s", part, log)
		}
	}
}

// buggyWriter panics once some of the body is sent.
type buggyWriter struct{ http.ResponseWriter }

func (w buggyWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w buggyWriter) Write(p []byte) (int, error) {
	w.ResponseWriter.Write(p)
	panic("a bug")
}

// A full store answers 507 to creates and to resets with pets. All else is as
// before. The seed of the process counts too.
func TestFullStore(t *testing.T) {
	s := serve(t, &api{seed: newStore(maxSize - petCost - 34)}, nil) // the pet takes 34 bytes with its id
	s.play(t, `
		POST /v1/pets {"name":"ab","categoryId":1} -> 507 insufficient_storage: {full}
		POST /v1/pets {pet} -> {made}
		POST /v1/pets {pet} -> 507 insufficient_storage: {full}
		GET /v1/pets -> 200 [{made pet}]
		GET /v1/pets/1 -> 200 {made pet} -> {deprecated}
		POST /__admin/reset [{"name":"b","categoryId":1}] -> 204
		POST /v1/pets {pet} -> 507 insufficient_storage: {full}
		POST /__admin/reset [{pet},{pet}] -> 507 insufficient_storage: pet 2: {full}
		POST /__admin/reset [{"name":"ab","categoryId":1}] -> 507 insufficient_storage: pet 1: {full}
		GET /v1/pets -> 200 [{"id":1,"name":"b","categoryId":1}]
		POST /__admin/reset -> 204
		POST /v1/pets {pet} -> {made}
	`, "{full}", "the store is full: it holds 268435456 bytes")
}

// api/openapi.json and the service tell the same: the file has each status that
// an operation answers, its headers and its body, and no other status. Each
// example in the file is what the service says.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	file, seen := readOpenAPI(t), map[string]bool{}
	check := func(id string, r reply) {
		t.Helper()
		status := strconv.Itoa(r.StatusCode)
		if _, listed := file[id].Responses[status]; !listed {
			status = "default"
		}
		told, headers, body := file[id].Responses[status], r.Header.Clone(), parsed(r.body)
		if headers.Get("Preference-Applied") == "" {
			seen[id+" "+status] = true // and not only simulated
		}
		seen[id+" "+status+" "+asJSON(body)] = true
		ok := r.Request.Method == "HEAD" || told.Content[headers.Get("Content-Type")].Schema.allows(body)
		for name, h := range told.Headers {
			value := headers.Get(name)
			seen[name+": "+value] = true
			ok = ok && (value == "" || h.Schema.allows(value) || h.Schema.allows(parsed(value))) &&
				(value != "" || h.Required != true)
			headers.Del(name)
		}
		for _, name := range []string{"Connection", "Content-Length", "Content-Type", "Date"} {
			headers.Del(name)
		}
		if !ok || len(headers) > 0 {
			t.Errorf("%s %s is not as in the file:\n%s", id, status, r)
		}
	}
	headers := []string{"", "Authorization: -", "Authorization: Bearer x", "Prefer: delay=0", "Prefer: code=x",
		"Expect: x", "Content-Length: 65537", "Content-Encoding: br", "Transfer-Encoding: gzip", "X: {x*65536}"}
	for code := 400; code < 600; code++ {
		headers = append(headers, fmt.Sprint("Prefer: code=", code), fmt.Sprint("Prefer: retry-after=7, code=", code))
	}
	buggy := &api{}
	s, broken, full := serve(t, &api{}, nil), serve(t, buggy, nil), serve(t, &api{seed: newStore(maxSize)}, nil)
	impatient := serve(t, &api{}, func(srv *http.Server) { srv.ReadTimeout = time.Second / 2 })
	buggy.current.Store(&world{}) // without a store
	const tom = `{"name":"Tom","categoryId":9}`
	rex := asJSON(file["createPet"].RequestBody.Content["application/json"].Example)
	for _, o := range [][]string{ // operation, seed, requests: the first one is right
		{"listPets", rex + "," + tom + "," + tom, "GET /v1/pets?limit=2", "GET /v1/pets?limit=0", "GET /v1/pets?%zz"},
		{"createPet", "", "POST /v1/pets " + rex, "POST /v1/pets " + tom, "POST /v1/pets?%zz",
			"POST /v1/pets {}\nContent-Type: text/plain",
			"POST /v1/pets " + strings.Replace(rex, "available", "lost", 1)},
		{"getPet", rex, "GET /v1/pets/1", "GET /v1/pets/5", "GET /v1/pets/Rex", "GET /v1/pets/1?%zz"},
	} {
		id, right := o[0], o[2]
		for _, request := range o[2:] {
			for _, header := range headers {
				s.do(t, "POST /__admin/reset ["+o[1]+"]")
				check(id, s.do(t, request+"\n"+header))
				if strings.HasPrefix(request, "GET") {
					check(id, s.do(t, "HEAD"+request[3:]+"\n"+header))
				}
			}
		}
		check(id, broken.do(t, right))
		check(id, full.do(t, right))
		check(id, impatient.do(t, right+"\nContent-Length: 99"))
		line, _, _ := strings.Cut(right, " {")
		check(id, s.dial(t, line+" HTTP/3.0\nHost: x\n\n").read())
		check(id, s.dial(t, line+" HTTP/1.1\nHost: x\nAuthorization: Bearer "+testKey+
			"\nTransfer-Encoding: chunked\n\nx\n").read())
	}
	for id, o := range file {
		for status, told := range o.Responses {
			example := asJSON(told.Content["application/json"].Example)
			if !seen[id+" "+status] || !seen[id+" "+status+" "+example] {
				t.Errorf("%s never answers %s, or never as in the example %s", id, status, example)
			}
			for name, h := range told.Headers {
				if example := fmt.Sprint(name, ": ", h.Example); !seen[example] {
					t.Errorf("no answer has the header of the example %s", example)
				}
			}
		}
	}
}

// FuzzCreate compares what createPet takes with what another reading of the
// rules takes, and with what getPet then answers.
func FuzzCreate(f *testing.F) {
	for _, body := range strings.Split(`{"name":"","categoryId":0,"status":"pending"}
		{ "status" : "sold" , "categoryId" : -0 , "name" : " " }
		{"n\u0061me":"a","categoryId":1,"status":"s\u006fld"}
		{"name":"\u003cü&\/😀\ud83d\uDE00\uDBFF\udfff\uDAbc\uDC00>","categoryId":1}
		{"name":"\u0000\n\"\\\\ud800","categoryId":1}
		{"name":"{\u2028*1}\u2029\u007f\ufffd","categoryId":1}
		{"id":7,"id":"x","name":"a","categoryId":1,"Name":5}
		{"x":{"name":["}",{"]":"\""}]},"x":null,"name":"a","categoryId":1}
		{"x":{[*9999}{]*9999},"name":"a","categoryId":1}
		{"name":"{a*65510}","categoryId":1}
		{"name":"a","categoryId":1}{ *65509}
		{"name":"\uDC00\uD800","categoryId":1}
		{"name":"\\\udfff","categoryId":1}
		{"name":"a","categoryId":9223372036854775808}
		[]`, "\n") {
		f.Add([]byte(expand(strings.TrimSpace(body))))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		h, want := handlerOf(newStore(0)), model{}
		p, _, ok := readPet(body)
		created := ask(h, "POST /v1/pets", "", string(body))
		if ok && len(body) <= maxBody {
			want = model{[]Pet{{1, p}}, 1}
			same(t, string(body), created.String(), "201 "+asJSON(want.pets[0])+"\nLocation: /v1/pets/1")
			same(t, string(body), ask(h, "GET /v1/pets/1", "", "").body, created.body)
		} else if created.StatusCode != 400 && created.StatusCode != 413 {
			t.Errorf("%q: got %d %s", body, created.StatusCode, created.body)
		}
		want.compare(t, h, string(body))
	})
}

// readPet reads a pet token by token. It tells the values of its members called
// id, and whether the rest is as createPet must take it.
func readPet(body []byte) (p NewPet, ids []string, ok bool) {
	dec, given := json.NewDecoder(bytes.NewReader(body)), map[json.Token]int{}
	token, _ := dec.Token()
	valid := token == json.Delim('{') && json.Valid(body) && utf8.Valid(body)
	ok = valid
	for valid && dec.More() {
		name, _ := dec.Token()
		given[name]++
		var raw json.RawMessage
		dec.Decode(&raw)
		text, isText := parsed(string(raw)).(string)
		switch name {
		case "name":
			// Half of a surrogate pair becomes a U+FFFD that is not in the spelling.
			spelt := strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(string(raw), `\\`, "")), `\ufffd`, "\ufffd")
			p.Name, ok = text, ok && isText && strings.Count(text, "\ufffd") == strings.Count(spelt, "\ufffd")
		case "categoryId":
			number, err := strconv.ParseInt(string(raw), 10, 64)
			p.CategoryID, ok = number, ok && err == nil
		case "status":
			p.Status, ok = PetStatus(text), ok && slices.Contains(statuses[1:], PetStatus(text))
		case "id":
			ids = append(ids, string(raw))
		}
	}
	return p, ids, ok && given["name"] == 1 && given["categoryId"] == 1 && given["status"] <= 1
}

// FuzzQuery compares the pages of listPets with those of the model.
func FuzzQuery(f *testing.F) {
	for _, query := range []string{"", "limit=5", "status=sold&limit=1&after=3", "limit=%31", "limit=+1", "after=-0",
		"limit=1&limit=1", "a;b", "%zz", "after=-9223372036854775808", "status=", "limit=100&after=20", "limit=100",
		"after=-9&colour=red&Limit=x", "limit=149", "limit=101", "after=400", "status=pending&limit=100"} {
		f.Add(query)
	}
	m, text := randomSeed(rand.New(rand.NewSource(1)), 150)
	seed, err := readSeed(strings.NewReader(text), 0)
	if err != nil {
		f.Fatal(err)
	}
	h := handlerOf(seed)
	f.Fuzz(func(t *testing.T, query string) {
		given, err := url.ParseQuery(query)
		ok := err == nil
		for name, form := range map[string]string{"limit": `[1-9]\d?|100`, "after": `-?(0|[1-9]\d*)`,
			"status": "available|pending|sold"} {
			for i, value := range given[name] {
				ok = ok && i == 0 && regexp.MustCompile("^("+form+")$").MatchString(value)
			}
		}
		after, err := strconv.ParseInt(cmp.Or(given.Get("after"), "0"), 10, 64)
		r := ask(h, "GET /v1/pets?"+query, "", "")
		if !ok || err != nil {
			same(t, query, fmt.Sprint(r.StatusCode, r.Header["Link"]), "400 []")
			return
		}
		page, link := m.page(given.Get("limit"), after, given.Get("status"))
		same(t, query, r.String(), "200 "+page+link)
	})
}

// README: resets, and the world.

// withKey is what stands behind a target, with testKey, for dial.
const withKey = " HTTP/1.1\nHost: petstore\nAuthorization: Bearer " + testKey + "\n"

// watched is the context of a request, and tells when the request begins to wait:
// nothing but a delay asks for its end.
type watched struct {
	context.Context
	waits chan<- bool
}

func (w watched) Done() <-chan struct{} {
	w.waits <- true
	return w.Context.Done()
}

// A request that waits when its world is over, or when the service stops, is
// answered at once: from its own world, and as its fault says.
func TestWorldEnds(t *testing.T) {
	const made4 = `201 {"id":4,"name":"a","categoryId":1} -> Location: /v1/pets/4`
	const added = `[{"id":4,"name":"a","categoryId":1}]`
	const next = `
		POST /__admin/reset -> 204
		PUT /__admin/fault?code=418&skip=1 -> 204
		POST /v1/pets {"name":"b","categoryId":1} -> 201 {"id":4,"name":"b","categoryId":1} -> Location: /v1/pets/4
		GET /__admin/fault -> 200 {"code":"418","skip":1,"met":1}

		journal
		POST /v1/pets 201 {"name":"b","categoryId":1}`
	for _, c := range [][5]string{ // a fault, a request, its answer, its line in the journal, and what it adds
		{"delay=30", "POST /v1/pets {pet}", made4, "POST /v1/pets 201 delay=30 {pet}", added},
		{"delay=30", "POST /v1/pets {pet} -> Transfer-Encoding: chunked", made4,
			"POST /v1/pets 201 delay=30 {pet}", added},
		{"delay=30", "GET /v1/pets?after=2", `200 [{"id":3,"name":"3","categoryId":1}]`,
			"GET /v1/pets?after=2 200 delay=30", "[]"},
		{"code=503&delay=30&times=1", "POST /v1/pets {pet}", "503 service_unavailable{simulated} -> Retry-After: 1",
			"POST /v1/pets 503 code=503, delay=30 {pet}", "[]"},
		{"code=truncate&delay=30", "POST /v1/pets {pet}",
			`201 {"id":4,"name":"a… -> Content-Length: 35 -> Location: /v1/pets/4`,
			"POST /v1/pets 201 code=truncate, delay=30 {pet}", added},
		{"code=hangup&delay=30", "POST /v1/pets {pet}", "000", "POST /v1/pets 0 code=hangup, delay=30 {pet}", "[]"},
		{"code=418", "POST /v1/pets {pet} -> Prefer: delay=30", made4 + " -> Preference-Applied: delay=30",
			"POST /v1/pets 201 delay=30 {pet}", added},
		{"code=418", "DELETE /v1/pets", "{teapot}", "DELETE /v1/pets 418 code=418", "[]"}, // waits for the latency
	} {
		for _, reset := range []bool{true, false} {
			stopping, waits, answered := make(chan struct{}), make(chan bool, 9), make(chan bool)
			a := &api{stopping: stopping}
			if !strings.Contains(c[0]+c[1], "delay") {
				a.latency = time.Hour
			}
			a.seed, _ = readSeed(strings.NewReader(
				`[{"name":"1","categoryId":1},{"name":"2","categoryId":1},{"name":"3","categoryId":1}]`), 0)
			s := serve(t, a, func(srv *http.Server) {
				h := srv.Handler
				srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					h.ServeHTTP(w, r.WithContext(watched{r.Context(), waits}))
				})
			})
			s.play(t, "PUT /__admin/fault?"+c[0]+" -> 204")
			go func() { s.play(t, c[1]+" -> "+c[2]); close(answered) }()
			within(t, "the wait", func() bool { return <-waits })
			old := a.current.Load()
			if reset {
				s.play(t, "POST /__admin/reset [] -> 204")
			} else {
				close(stopping)
			}
			within(t, "the answer", func() bool { return <-answered })
			a.latency = 0
			if reset {
				s.play(t, "GET /v1/pets -> 200 []"+next)
			}
			a.current.Store(old) // to see what has become of it
			s.play(t, "journal\n"+c[3]+"\n\nDELETE /__admin/fault -> 204\nGET /v1/pets?after=3 -> 200 "+c[4])
		}
	}
}

// A request belongs to the world in which its body had come.
func TestWorldOfTheBody(t *testing.T) {
	s := start(t)
	s.play(t, "PUT /__admin/fault?code=500 -> 204")
	c := s.dial(t, "POST /v1/pets"+withKey+"Content-Length: 27\nExpect: 100-continue\n\n")
	same(t, "the head of a create", c.read().String(), "100")
	s.play(t, "POST /__admin/reset -> 204")
	io.WriteString(c, words.Replace("{pet}"))
	same(t, "its body", c.read().String(), `201 {"id":1,"name":"a","categoryId":1}`+"\nLocation: /v1/pets/1")
	s.play(t, "GET /v1/pets -> 200 [{made pet}]\n\njournal\nPOST /v1/pets 201 {pet}\nGET /v1/pets 200")
}

// 8 clients create, list and leave while others reset. Each world has the pets
// of its creates, and each page is of one world: the two pets of its seed, and
// the created ones behind them, without a gap.
func TestWorldsUnderLoad(t *testing.T) {
	s := start(t, "-quiet")
	const create = `POST /v1/pets {"name":"x","categoryId":1}`
	reset := func(world string) {
		seed := `{"name":"` + world + `","categoryId":1}`
		s.play(t, "POST /__admin/reset ["+seed+","+seed+"] -> 204")
	}
	check := func(pets []Pet) {
		for i, p := range pets {
			if p.ID != int64(i+1) || i == 1 && p.Name != pets[0].Name || i > 1 && p.Name != "x" {
				t.Errorf("pet %d is not of the same state as those before it: %v", i, pets)
			}
		}
	}
	reset("0")
	for round := range 10 {
		var creators atomic.Int64 // whose creates end with their worlds
		creators.Store(2)
		together(10, func(i int) {
			for n := 0; creators.Load() > 0; n++ {
				switch {
				case i < 2 && n == 20:
					creators.Add(-1)
					return
				case i < 4:
					if r := s.do(t, create+[]string{"\nPrefer: delay=30", ""}[i/2]); r.StatusCode != 201 {
						t.Error(r)
					}
				case i < 6:
					var pets []Pet
					err := json.Unmarshal([]byte(s.do(t, "GET /v1/pets?limit=100").body), &pets)
					if check(pets); err != nil || len(pets) < 2 {
						t.Error(err, pets)
					}
				case i < 8:
					s.leave(t, "POST /v1/pets"+withKey+"Prefer: delay=0.002\nContent-Length: 27\n\n"+create[14:])
				default:
					reset(fmt.Sprint(n, " of ", i))
				}
			}
		})
		eventually(t, fmt.Sprintf("round %d: that each 201 is of a pet", round), func() bool {
			pets := s.pets(t, "?limit=100")
			check(pets)
			return len(pets) == 2+strings.Count(s.journalLines(t), " 201 ")
		})
	}
}

// An exchange lets go of its world once it is answered: a client that does not
// read its answer keeps a page in memory, and neither a world nor its pets.
func TestWorldIsLetGo(t *testing.T) {
	a := &api{}
	s := serve(t, a, func(srv *http.Server) {
		srv.ConnState = func(c net.Conn, _ http.ConnState) { c.(errorConn).SetWriteBuffer(4 << 10) }
	})
	for _, request := range []string{"GET /v1/pets", "GET /__admin/requests"} {
		for range 5 { // the last one is behind the page
			s.do(t, `POST /v1/pets {"name":"{x*60000}","categoryId":1}`)
		}
		var gone atomic.Int64
		runtime.SetFinalizer(a.current.Load(), func(any) { gone.Add(1) })
		runtime.SetFinalizer(a.current.Load().pets.get(5), func(any) { gone.Add(1) })
		c := s.dial(t, "")
		c.SetReadBuffer(4 << 10)
		c.send(request+withKey+"\n", "")
		c.in.Peek(1)
		s.play(t, "POST /__admin/reset -> 204")
		eventually(t, "the end of the world behind "+request, func() bool { runtime.GC(); return gone.Load() == 2 })
		c.Close()
	}
}

// README: seeds.

// A seed is the same as a file and as the body of a reset: it keeps the ids that
// it gives, and numbers the other pets above them, in their order.
func TestSeed(t *testing.T) {
	const file = `[{"id":5,"name":"of the file","categoryId":1,"status":"sold"}]`
	pets := []string{"{3}", `{"id":3,"name":"thrée","categoryId":1,"status":"sold"}`,
		"{7}", `{"id":7,"name":"7th","categoryId":-1}`, "{8}", `{"id":8,"name":"later","categoryId":1,"status":"sold"}`,
		"{9}", `{"id":9,"name":"last","categoryId":1}`, "{10}", `{"id":10,"name":"a","categoryId":1}`,
		"{last}", "9223372036854775807"}
	for seed, check := range map[string]string{
		` [ {"name":"later","categoryId":1,"status":"sold"}, {"id":7,"name":"7th","categoryId":-1,"x":null},` +
			`{"id":3,"name":"thr\u00e9e","categoryId":1,"status":"sold"}, {"name":"last", "categoryId":1} ] `: `
			GET /v1/pets?limit=1 -> 200 [{3}] -> Link: </v1/pets?limit=1&after=3>; rel="next"
			GET /v1/pets/7 -> 200 {7} -> {deprecated}
			POST /v1/pets {pet} -> 201 {10} -> Location: /v1/pets/10
			GET /v1/pets -> 200 [{3},{7},{8},{9},{10}]
			GET /v1/pets?status=sold -> 200 [{3},{8}]`,
		`[{"id":9223372036854775806,"name":"","categoryId":1}]`: `
			POST /v1/pets {pet} -> 201 {"id":{last},"name":"a","categoryId":1} -> Location: /v1/pets/{last}
			POST /v1/pets {pet} -> 507 insufficient_storage: there is no id left
			GET /v1/pets?after=9223372036854775806 -> 200 [{"id":{last},"name":"a","categoryId":1}]`,
	} {
		s := start(t, "-seed", tempFile(t, seed))
		s.play(t, check+"\nPOST /__admin/reset -> 204\n"+check, pets...)
		s = start(t, "-seed", tempFile(t, file))
		for range 2 {
			s.play(t, "PUT /__admin/fault?code=500 -> 204\nPOST /__admin/reset "+seed+" -> 204\n"+
				"GET /__admin/fault -> 200 {}\n\njournal\n\n"+check, pets...)
		}
		s.play(t, "POST /__admin/reset -> 204\nGET /v1/pets -> 200 "+file)
	}
}

// A bad seed is told with its place. As a file it ends the service, as the body
// of a reset it changes nothing.
func TestBadSeeds(t *testing.T) {
	const ids = "; it must be an integer from 1 to 9223372036854775806"
	const notArray = `not a JSON array, as [{"name":"Rex","categoryId":7}]`
	s := start(t)
	s.play(t, "POST /v1/pets {pet} -> {made}\nPUT /__admin/fault?code=500&skip=1 -> 204")
	for _, c := range [][2]string{
		{" ", notArray},
		{"[{pet}", "pet 1: the array does not end"},
		{"[{pet},", "pet 2: JSON that ends too early"},
		{"[{pet}]]", "pet 1: something follows the end of the array"},
		{"[] x", "something follows the end of the array"},
		{"[{pet},]", "pet 2: not JSON"},
		{"[{pet},5]", "pet 2: the pet is 5; it must be a JSON object"},
		{`[{pet},{"categoryId":1}]`, "pet 2: name is missing; it must be a string of valid Unicode"},
		{`[{"name":"{\xff*1}","categoryId":1}]`, "pet 1: name is not valid UTF-8"},
		{`[{"id":0,"name":"","categoryId":1}]`, "pet 1: id is 0" + ids},
		{`[{"id":null,"name":"","categoryId":1}]`, "pet 1: id is null" + ids},
		{`[{"id":9223372036854775807,"name":"","categoryId":1}]`, "pet 1: id is 9223372036854775807" + ids},
		{`[{"id":1,"id":1,"name":"","categoryId":1}]`, "pet 1: id is given twice; it must be given once"},
		{`[{"id":3,"name":"","categoryId":1},{made pet},{pet},{made pet}]`, "pet 4: id 1 is given twice"},
		{`[{pet},{pet},{"id":9223372036854775805,"name":"","categoryId":1}]`, "pet 2: there is no id left"},
	} {
		s.play(t, "POST /__admin/reset "+c[0]+" -> 400 invalid_body: "+c[1])
		if !t.Failed() {
			badSeedFile(t, tempFile(t, expand(words.Replace(c[0]))), c[1])
		}
	}
	s.play(t, `
		journal
		POST /v1/pets 201 {pet}

		GET /__admin/fault -> 200 {"code":"500","skip":1,"met":0}
		GET /v1/pets -> 200 [{made pet}]
		DELETE /__admin/fault -> 204
		POST /v1/pets {pet} -> 201 {"id":2,"name":"a","categoryId":1} -> Location: /v1/pets/2`)
	start(t, "-seed", tempFile(t, expand(`[{"name":"{x*65510}","categoryId":1}]`)))
	badSeedFile(t, tempFile(t, expand(`[{"name":"{x*65511}","categoryId":1}]`)), "pet 1: more than 65536 bytes")
	badSeedFile(t, tempFile(t, ""), notArray)
}

// badSeedFile checks that a service does not start with a seed file.
func badSeedFile(t *testing.T, file, message string) {
	t.Helper()
	code, stdout, stderr := petstore{key: testKey, args: []string{"-addr", "127.0.0.1:0", "-seed", file}}.outcome(t)
	same(t, message, fmt.Sprint(code, stdout, stderr), "1petstore: "+file+": "+message+"\n")
}

// A seed may come from a pipe. It has bounds there too.
func TestSeedFromPipe(t *testing.T) {
	feed := func(times int, begin, more, end string) (file string, sent func() int) {
		r, w, _ := os.Pipe()
		n := make(chan int, 1)
		go func() {
			sum, err := io.WriteString(w, begin)
			for i := 0; i < times && err == nil; i++ {
				_, err = io.WriteString(w, more)
				sum += len(more)
			}
			io.WriteString(w, end)
			w.Close()
			n <- sum
		}()
		return fmt.Sprint("/dev/fd/", r.Fd()), func() int { r.Close(); return <-n }
	}
	file, sent := feed(99999, `[{"name":"0","categoryId":0}`, `,{"name":"x","categoryId":1}`, "]")
	s := start(t, "-quiet", "-seed", file)
	sent()
	s.play(t, `POST /v1/pets {pet} -> 201 {"id":100001,"name":"a","categoryId":1} -> Location: /v1/pets/100001
		GET /v1/pets?after=99999&limit=1 -> 200 [{last}] -> Link: </v1/pets?limit=1&after=100000>; rel="next"
		POST /__admin/reset -> 204
		GET /v1/pets?after=99999 -> 200 [{last}]`, "{last}", `{"id":100000,"name":"x","categoryId":1}`)
	slow(t)
	file, sent = feed(math.MaxInt, "[", expand(`{"name":"a","categoryId":1,"x":"{x*60000}"},`), "")
	badSeedFile(t, file, "more than 134217728 bytes")
	if n := sent(); n > maxSeed+2<<20 {
		t.Errorf("%d bytes were read", n)
	}
}

// README: faults.

// A Prefer header counts under /v1. FuzzPrefer has how it is spelt, TestModel how
// answers are truncated, and TestErrorOrder what it comes before.
func TestPrefer(t *testing.T) {
	start(t).play(t, `
		GET /healthz -> Prefer: code=hangup -> 200 {"status":"ok"}
		DELETE /__admin/fault -> Prefer: code=418 -> 204
		POST /v1/pets {pet} -> Prefer: code=hangup, delay=0.001, retry-after=5 -> 000
		HEAD /v1/pets -> Prefer: code=truncate -> 000
		GET /v1/pets -> 200 []

		journal
		POST /v1/pets 0 code=hangup, delay=0.001 {pet}
		HEAD /v1/pets 0 code=truncate
		GET /v1/pets 200

		GET /v1/pets/1
		Prefer: retry-after=0,delay=.0
		Prefer: x="code=500";y , CODE = "418" ; q=1
		{teapot}
		Preference-Applied: code=418, delay=.0, retry-after=0
		Retry-After: 0
		{deprecated}

		GET /v1/pets/1 -> Prefer: code=x -> 400 invalid_parameter: code is x; {code} -> {deprecated}
	`, "{code}", "it must be an integer from 400 to 599, hangup or truncate")
}

// The standing fault strikes the requests that it is set for, and counts them.
// TestModel has more of it, and TestIntegers the values of its parameters.
func TestStandingFault(t *testing.T) {
	s := start(t, "-quiet")
	s.play(t, `
		DELETE /__admin/fault?bogus=1 -> 204
		GET /__admin/fault?code=x -> 200 {}

		PUT /__admin/fault?code=503&operation=createPet -> 204
		POST /v1/pets -> Prefer: code=1 -> 400 invalid_parameter: code is 1; {code}
		PUT /v1/pets -> 405 method_not_allowed: this path allows GET, HEAD, POST only -> Allow: GET, HEAD, POST
		POST /v1/pets {} -> Prefer: wait=1, retry-after=9 -> 503 service_unavailable{simulated} -> Retry-After: 1
		GET /__admin/fault -> 200 {"code":"503","operation":"createPet","met":1}
		HEAD /__admin/fault -> 200

		PUT /__admin/fault?delay=0&retry-after=5&operation=getPet -> 204
		GET /v1/pets/x -> 400 invalid_parameter: petId is x; it must be an integer -> {deprecated}
		GET /v1/pets/. -> {no path}
		GET /v1%2Fpets/1 -> {no path}
		GET /__admin/fault -> 200 {"delay":"0","retry-after":"5","operation":"getPet","met":1}

		PUT /__admin/fault?code=418&skip=1&times={largest} -> 204
		GET /v1/pets/ -> {no path}
		GET /v1/nothing -> {teapot}
		GET /healthz -> 200 {"status":"ok"}
		GET /__admin/fault -> 200 {"code":"418","skip":1,"times":{largest},"met":2}

		PUT /__admin/fault?code=418&skip={largest}&times={largest} -> 204
		GET /v1/pets -> 200 []
	`, "{code}", "it must be an integer from 400 to 599, hangup or truncate", "{largest}", "9223372036854775807")
	s.play(t, strings.ReplaceAll(`
		code=503&delay=-1 -> 400 invalid_parameter: delay is -1; {seconds}
		delay=30.01 -> 400 invalid_parameter: delay is 30.01; {seconds}
		code=503&delay= -> 400 invalid_parameter: delay is empty; {seconds}
		code=Hangup -> 400 invalid_parameter: code is Hangup; it must be an integer from 400 to 599, hangup or truncate
		code=503&operation=getpet -> 400 invalid_parameter: operation is getpet; {operation}
		code=503&operation= -> 400 invalid_parameter: operation is empty; {operation}
		code=503&%zz -> 400 invalid_parameter: the query is malformed: invalid URL escape "%zz"
		zz=1&y=1&x=1&w=1&v=1&aa=1 -> 400 invalid_parameter: the parameter is aa; it must be code, {other parameters}
		 -> 400 invalid_parameter: {neither}
		times=1&skip=1&retry-after=5&operation=getPet -> 400 invalid_parameter: {neither}
	`, "\n\t\t", "\nPUT /__admin/fault?")+`
		GET /__admin/fault -> 200 {"code":"418","skip":{largest},"times":{largest},"met":1}
	`, "{seconds}", "it must be a number of seconds from 0 to 30, with decimals if need be", "{largest}",
		"9223372036854775807", "{operation}", "it must be listPets, createPet or getPet", "{other parameters}",
		"delay, retry-after, skip, times or operation",
		"{neither}", "code or delay must be given, in the query: /__admin/fault?code=503")
	for _, name := range faultParameters {
		s.play(t, strings.ReplaceAll("PUT /__admin/fault?@=1&@=1 -> 400 invalid_parameter: "+
			"@ is given 2 times; it must be given once", "@", name))
	}
}

// However many requests meet a standing fault at once, it strikes exactly as many
// as it should. TestSoak does that over HTTP, where requests seldom meet in it.
func TestExactCounts(t *testing.T) {
	for _, c := range []struct{ skip, times, struck int64 }{
		{0, 1000, 1000}, {70000, 50000, 50000}, {150000, 50000, 10000}, {60000, 0, 100000},
	} {
		f, struck := &fault{Skip: c.skip, Times: c.times}, new(atomic.Int64)
		together(8, func(int) {
			for range 20000 {
				if f.meet("listPets") {
					struck.Add(1)
				}
			}
		})
		same(t, fmt.Sprint(c), fmt.Sprint(struck.Load(), f.met.Load()), fmt.Sprint(c.struck, 8*20000))
	}
}

// A delay ends when its client leaves, even if that closes only its sending
// side, and then nothing is done.
func TestDelayWhoseClientLeaves(t *testing.T) {
	for _, a := range []*api{{}, {latency: time.Hour}} {
		s, header, fault := serve(t, a, nil), "Prefer: delay=30\n", " delay=30"
		if a.latency > 0 {
			header, fault = "", ""
		}
		for i, c := range [][2]string{
			{"GET /v1/pets" + withKey + header + "\n", "GET /v1/pets 0" + fault},
			{"POST /v1/pets" + withKey + header + "Content-Length: 2\n\n{}", "POST /v1/pets 0" + fault + " {}"},
			{"POST /v1/pets" + withKey + header + "Transfer-Encoding: chunked\n\n2\n{}\n0\n\n",
				"POST /v1/pets 0" + fault + " {}"},
		} {
			conn := s.dial(t, c[0])
			if conn.CloseWrite(); i == 0 {
				conn.Close()
			}
			eventually(t, "the end of "+c[0], func() bool { return s.journalLines(t) == c[1] })
			s.play(t, "DELETE /__admin/requests -> 204")
		}
	}
}

// README: the journal.

// headerLines returns the requests in the journal with their headers, but for
// the Host and the key that do adds.
func (s *service) headerLines(t *testing.T) (lines string) {
	t.Helper()
	requests, _ := s.journal(t)
	for _, r := range requests {
		for name, usual := range map[string]string{"Host": "petstore", "Authorization": "Bearer <API_KEY>"} {
			if r.Headers[name] == usual {
				delete(r.Headers, name)
			}
		}
		lines += fmt.Sprintln(r.Method, r.URL, asJSON(r.Headers), r.Status, r.Body)
	}
	return lines
}

// The journal has each request as it came.
func TestJournal(t *testing.T) {
	s := start(t)
	// send sends the requests of a table, and returns the lines of the journal that it has for them.
	send := func(table string) (lines string) {
		for _, row := range strings.Split(expand(table), "\n") {
			request, line, found := strings.Cut(strings.TrimLeft(row, "\t"), " => ")
			if s.do(t, strings.ReplaceAll(request, " -> ", "\n")); found {
				lines += line + "\n"
			}
		}
		return lines
	}
	want := send(`GET /v1/pets?limit=5&x=%20%zz;+ => GET /v1/pets?limit=5&x=%20%zz;+ {} 400{ *1}
		GET http://elsewhere/v1/pets => GET http://elsewhere/v1/pets {"Host":"elsewhere"} 200{ *1}
		GET / -> x-a: 1 -> X-B:  <&>"  -> X-A:2, 3 -> x-a: => GET / {"X-A":"1, 2, 3, ","X-B":"<&>\""} 200{ *1}
		POST /v1/pets x -> Transfer-Encoding: chunked => POST /v1/pets {"Transfer-Encoding":"chunked"} 400 x
		PUT /v1/pets <ü>{\x00\t*1}"{\xff*1} => PUT /v1/pets {"Content-Length":"8"} 405 <ü>{\x00\t*1}"{\ufffd*1}
		delete /v1/pets -> Authorization: - => delete /v1/pets {} 401{ *1}`)
	same(t, "HTTP/1.0", s.dial(t, "GET /x HTTP/1.0\n\n").rest()[:4], "404 ")
	same(t, "the journal", s.headerLines(t), want+"GET /x {} 404 \n")

	// What is in it, and what is not.
	s.play(t, "POST /__admin/reset -> 204")
	want = send(`POST /v1/pets ab -> Prefer: code=503, delay=0.0 => POST /v1/pets 503 code=503, delay=0.0 ab
		POST /v1/pets ab -> Prefer: code=1 => POST /v1/pets 400 ab
		POST /v1/pets ab -> Authorization: - => POST /v1/pets 401
		POST /x ab => POST /x 404
		POST /v1/pets {x*65537} => POST /v1/pets 413
		POST /v1/pets {x*65537} -> Transfer-Encoding: chunked => POST /v1/pets 413
		HEAD /openapi.json => HEAD /openapi.json 200
		GET /healthz2 => GET /healthz2 404
		OPTIONS /v1/pets => OPTIONS /v1/pets 204
		OPTIONS * => OPTIONS * 204
		GET /healthz
		POST /healthz/x
		OPTIONS /healthz
		GET /__admin
		GET /%5F_admin/requests -> Authorization: -
		OPTIONS /__admin/reset`)
	s.dial(t, "GET\n\n").rest()
	c := s.dial(t, "POST /v1/pets"+withKey+"Content-Length: 3\n\nab")
	c.CloseWrite()
	c.rest()
	s.play(t, "journal\n"+want+"POST /v1/pets 400\n\n"+`
		DELETE /__admin/requests -> Authorization: - -> {no key}
		DELETE /__admin/requests -> 204
		GET /v1?3 -> {no path}

		journal
		GET /v1?3 404`)
	same(t, "HEAD of the journal", s.do(t, "HEAD /__admin/requests?limit=1").Status, "200 OK")
	late := serve(t, &api{}, func(srv *http.Server) { srv.ReadTimeout = 100 * time.Millisecond })
	late.dial(t, "POST /v1/pets"+withKey+"Content-Length: 9\n\nab").rest()
	late.play(t, "journal\nPOST /v1/pets 408")
}

// The journal is in the order of the answers, with the times when requests came,
// and has each one before its answer is sent.
func TestJournalOrder(t *testing.T) {
	s := start(t, "-quiet")
	now := func() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }
	begin := now()
	s.play(t, "PUT /__admin/fault?delay=30&times=2 -> 204")
	slow := s.dial(t, "GET /v1/pets?slow"+withKey+"\n")
	s.held(t, 1)
	gone := s.dial(t, "GET /v1/pets?gone"+withKey+"\n")
	s.held(t, 2)
	journal := "GET /v1/pets?quick 200"
	s.play(t, "GET /v1/pets?quick -> 200 []\n\njournal\n"+journal)
	for i, c := range []*connection{gone, slow} {
		c.Close()
		journal += "\nGET /v1/pets?" + []string{"gone", "slow"}[i] + " 0 delay=30"
		eventually(t, "the end of who leaves", func() bool { return s.journalLines(t) == journal })
	}
	entries, _ := s.journal(t)
	if times := []string{begin, entries[2].Time, entries[1].Time, entries[0].Time, now()}; !slices.IsSorted(times) {
		t.Errorf("the times are not those when requests came: %v", times)
	}

	a := &api{}
	s = serve(t, a, func(srv *http.Server) {
		h := srv.Handler
		srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(beforeAnswer{w, func() {
				if _, total := a.current.Load().journal.all(); total != 1 {
					t.Errorf("%s is answered, and the journal has %d requests", r.URL, total)
				}
			}}, r)
		})
	})
	s.play(t, "GET /v1/pets -> 200 []")
}

// beforeAnswer calls check before an answer begins.
type beforeAnswer struct {
	http.ResponseWriter
	check func()
}

func (w beforeAnswer) WriteHeader(status int) {
	w.check()
	w.ResponseWriter.WriteHeader(status)
}

// The key is not in the journal. One below 8 characters is no secret, and hidden
// where it is all of a credential.
func TestJournalHidesTheKey(t *testing.T) {
	for _, c := range [][3]string{
		{"12345-67890", "POST /v1/KEY?KEY=KEY0 KEY{\\xff*1}KEY\nHost: aKEY:8\nX: k=KEY, KEY\nX: 12345-6789",
			`POST /v1/<API_KEY>?<API_KEY>=<API_KEY>0 {"Content-Length":"23","Host":"a<API_KEY>:8",` +
				`"X":"k=<API_KEY>, <API_KEY>, 12345-6789"} 404 ` + "<API_KEY>\ufffd<API_KEY>"},
		{"12345-67890", "GET /v1/pets\nAuthorization: bearer  KEY\nauthorization: Basic KEY",
			`GET /v1/pets {"Authorization":"bearer  <API_KEY>, Basic <API_KEY>"} 401 `},
		{"12345-67890", "GET /v1/pets\nAuthorization: Bearer KEY, Bearer KEY1",
			`GET /v1/pets {"Authorization":"Bearer <API_KEY>, Bearer <API_KEY>1"} 401 `},
		{"abc", "POST /v1/pets?abc abc\nHost: abc\nabc: abc",
			`POST /v1/pets?abc {"Abc":"abc","Content-Length":"3","Host":"abc"} 400 abc`},
		{"abc", "GET /v1/pets\nAuthorization: Bearer abc abc", `GET /v1/pets {"Authorization":"Bearer abc abc"} 401 `},
		{"e", "GET /v1/pets", `GET /v1/pets {} 200 `},
	} {
		s := petstore{key: c[0]}.start(t)
		s.do(t, strings.ReplaceAll(c[1], "KEY", c[0]))
		same(t, c[1], s.headerLines(t), c[2]+"\n")
	}
}

// The journal keeps the last 1,000 requests, and 4 MiB of them to the byte.
func TestJournalBounds(t *testing.T) {
	s := start(t, "-quiet")
	fill := func(x string) {
		request := expand("PUT /v1/x {" + x + "*60000}")
		for range 69 {
			s.do(t, request)
		}
	}
	const size = 3 + 5 + 8 + (13 + 20 + 100) + (14 + 5 + 100) + 60000 // of method, url, Host, two headers, body
	for _, c := range []struct {
		request string // with N for the length of what fills the journal
		size    int
	}{
		{"{y*N} /x", 2 + 8 + 133},
		{"PUT /{y*N}", 3 + 1 + 8 + 133},
		{"PUT /x\nHost: {y*N}", 3 + 2 + 133},
		{"PUT /x\n{y*N}: z", 3 + 2 + 8 + 133 + 1 + 100},
		{"PUT /x\nY: z\nY: {y*N}", 3 + 2 + 8 + 133 + 102 + 1 + 100},
		{"PUT /v1/x {y*N}", 3 + 5 + 8 + 133 + 119},
		{"PUT /__admin/fault?operation=listPets&delay=0.{0*N}\n\nGET /v1/pets", 3 + 8 + 8 + 133 + len("delay=0.")},
	} {
		for over := range 2 {
			s.do(t, "DELETE /__admin/requests")
			fill("x")
			last := strings.ReplaceAll(c.request, "N", fmt.Sprint(4<<20-69*size-c.size+over))
			for _, request := range strings.Split(last, "\n\n") {
				s.do(t, request)
			}
			journal := s.do(t, "GET /__admin/requests").body
			same(t, c.request, fmt.Sprint(strings.Count(journal, "\n{"), journal[len(journal)-23:]),
				fmt.Sprint(70-over, "],\"meta\":{\"total\":70}}\n"))
		}
	}

	// A slow reader gets the journal of the time when it asked.
	s.do(t, "DELETE /__admin/requests")
	fill(`\x01`) // 24 MB of JSON, which is more than the sockets take
	want := s.do(t, "GET /__admin/requests").body
	c := s.dial(t, "")
	c.SetReadBuffer(1 << 20)
	c.send("GET /__admin/requests"+withKey+"\n", "")
	c.in.Peek(1)
	fill("x")
	if got := c.read(); got.body != want {
		t.Errorf("a slow reader gets %d bytes, want %d", len(got.body), len(want))
	}
	want = ""

	s.do(t, "DELETE /__admin/requests")
	for i := range 1003 {
		s.do(t, fmt.Sprint("GET /x?", i))
	}
	if lines := s.journalLines(t); !strings.HasPrefix(lines, "total 1003\nGET /x?3 404\n") ||
		strings.Count(lines, "\n") != 1000 || !strings.HasSuffix(lines, "GET /x?1002 404") {
		t.Errorf("the journal of 1,003 requests: %.200s", lines)
	}

	// What is dropped is not kept in memory.
	var stats runtime.MemStats
	heap := func() uint64 {
		runtime.GC()
		runtime.GC() // empties pools
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	for before, i := heap(), 1; i <= 6; i++ {
		if fill("x"); heap() > before+8<<20 {
			t.Fatalf("behind %d bodies of 60,000 bytes, the heap has grown by more than 8 MiB", i*69)
		}
	}
}

// Clients that close only their sending side, as nc -N does, get all of a page
// and of the journal.
func TestHalfClosed(t *testing.T) {
	s := start(t, "-quiet")
	for range 5 {
		s.do(t, `POST /v1/pets {"name":"{x*50000}","categoryId":1}`)
	}
	page := s.do(t, "GET /v1/pets").body
	for i := range 200 {
		c := s.dial(t, []string{"GET /v1/pets", "GET /__admin/requests"}[i%2]+withKey+"\n")
		c.CloseWrite()
		got, end := c.read(), fmt.Sprintf("],\"meta\":{\"total\":%d}}\n", 6+i/2+1)
		if got.broken || got.body != page && !strings.HasSuffix(got.body, end) {
			t.Errorf("%d bytes, want %d or a journal", len(got.body), len(page))
		}
	}
}

// README: the limits.

// slow skips what takes too long under the race detector, as far as the binary
// tells (that of Go 1.22 does not), or measures memory, which is another there.
func slow(t *testing.T) {
	info, _ := debug.ReadBuildInfo()
	if testing.Short() || strings.Contains(fmt.Sprint(info.Settings), "{-race true}") {
		t.Skip("takes too long with -short or -race")
	}
}

// 100 clients that read nothing of a full journal or of large pages, each of
// another world, keep the process under 1 GiB, and nobody from an answer.
func TestMemory(t *testing.T) {
	slow(t)
	p := launch(t, "-quiet")
	fill := expand("PUT /v1/x {\\x01yyyy*12000}") // which takes twice as much in JSON
	pet := expand(`POST /v1/pets {"name":"{x*60000}","categoryId":1}`)
	for request, repeat := range map[string]int{"GET /__admin/requests": 1, "GET /v1/pets?limit=100": 50} {
		var stalled []*connection
		for i := range 100 {
			if repeat > 1 || soak > time.Second || i%10 == 0 {
				p.do(t, fmt.Sprintf(`POST /__admin/reset [{"name":"{x*50000}","categoryId":%d}]`, i))
				for range 70 / repeat {
					p.do(t, fill)
				}
				for range 4 {
					p.do(t, pet)
				}
			}
			c := p.dial(t, "")
			c.SetReadBuffer(4 << 10)
			c.send(strings.Repeat(request+withKey+"\n", repeat), "")
			c.in.Peek(1)
			stalled = append(stalled, c)
		}
		p.pets(t, "")
		p.journal(t)
		for _, c := range stalled {
			c.Close()
		}
	}
	if peak := p.memory(t, "VmHWM"); peak > 1024 {
		t.Errorf("resident memory reached %d MiB", peak)
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	if err := p.wait(t); err != nil {
		t.Error(err)
	}
}

// A million pets load, and take no more memory under load than README.md tells.
func TestMillion(t *testing.T) {
	slow(t)
	pets, most := 200000, 200
	if soak > time.Second {
		pets, most = 1000000, 450
	}
	const three = `{"name":"{x*30}","categoryId":7,"status":"available"},` +
		`{"name":"{x*30}","categoryId":7,"status":"pending"},{"name":"{x*30}","categoryId":7,"status":"sold"},`
	seed := "[" + strings.Repeat(expand(three), pets/3) + `{"name":"last","categoryId":7}]`
	p := launch(t, "-quiet", "-seed", tempFile(t, seed))
	together(8, func(i int) {
		for j := range 1000 {
			r := p.do(t, fmt.Sprintf("GET /v1/pets?limit=100&status=sold&after=%d", (i*1000+j)*24))
			if want := fmt.Sprintf(`[{"id":%d,`, (i*1000+j)*24+3); !strings.HasPrefix(r.body, want) {
				t.Errorf("%.100s, want %s", r.body, want)
			}
		}
	})
	if peak := p.memory(t, "VmHWM"); peak > most {
		t.Errorf("%d pets and lists of them take %d MiB of memory, more than %d", pets, peak, most)
	}
}

// Resets that come at once do not each keep a copy of a large seed.
func TestResetsAtOnce(t *testing.T) {
	slow(t)
	p := launch(t, "-quiet", "-seed", tempFile(t, "["+strings.Repeat(`{"name":"a","categoryId":1},`, 199999)+
		`{"name":"a","categoryId":1}]`))
	together(100, func(int) {
		for range 3 {
			p.play(t, "POST /__admin/reset -> 204")
		}
	})
	if peak := p.memory(t, "VmHWM"); peak > 500 {
		t.Errorf("300 resets of 200,000 pets take %d MiB of memory", peak)
	}
}

// README: development. What random requests find.

// soak is how long TestSoak runs. A long one makes other tests long too.
var soak = func() time.Duration {
	d, err := time.ParseDuration(os.Getenv("PETSTORE_SOAK"))
	if err != nil {
		return time.Second
	}
	return d
}()

// model has the pets that the service should have, in ascending order of id.
type model struct {
	pets []Pet
	last int64
}

var statuses = []PetStatus{"", Available, Pending, Sold}

// page returns the body of a listPets, and its header Link or "". limit and
// status are as the query has them, or "".
func (m model) page(limit string, after int64, status string) (body, link string) {
	query, most, page := "", 20, []Pet{}
	if limit != "" {
		query = "limit=" + limit + "&"
		most, _ = strconv.Atoi(limit)
	}
	if status != "" {
		query += "status=" + status + "&"
	}
	for _, p := range m.pets {
		if p.ID <= after || status != "" && string(p.Status) != status {
			continue
		} else if len(page) == most {
			return asJSON(page), fmt.Sprintf("\nLink: </v1/pets?%safter=%d>; rel=\"next\"", query, after)
		}
		page, after = append(page, p), p.ID
	}
	return asJSON(page), ""
}

// compare compares the pets of a handler with the model, and the id that it
// gives next.
func (m model) compare(t *testing.T, h http.Handler, what string) {
	t.Helper()
	page, _ := m.page("100", 0, "")
	same(t, what, ask(h, "GET /v1/pets?limit=100", "", "").body, page+"\n")
	next := ask(h, "POST /v1/pets", "", `{"name":"","categoryId":1}`).Header.Get("Location")
	same(t, what, next, fmt.Sprint("/v1/pets/", m.last+1))
}

func randomPet(random *rand.Rand) NewPet {
	return NewPet{strings.Repeat("n", random.Intn(30)), random.Int63() - random.Int63(), statuses[random.Intn(4)]}
}

// randomSeed returns the model of a seed of n pets, and the seed: shuffled, and
// the last pets without ids.
func randomSeed(random *rand.Rand, n int) (m model, seed string) {
	elements := make([]string, n)
	places := append(random.Perm(n-3), n-3, n-2, n-1)
	for i := range n {
		m.last++
		if i < n-3 {
			m.last += random.Int63n(4)
		}
		p := Pet{m.last, randomPet(random)}
		m.pets = append(m.pets, p)
		if elements[places[i]] = asJSON(p); i >= n-3 {
			elements[places[i]] = asJSON(p.NewPet)
		}
	}
	return m, "[" + strings.Join(elements, ",") + "]"
}

// randomRead returns a getPet or listPets, and its answer.
func (m model) randomRead(random *rand.Rand) (operation, request, answer string) {
	if id := random.Int63n(m.last+3) - 1; random.Intn(3) == 0 {
		answer = fmt.Sprintf("404 not_found: there is no pet %d", id)
		if i := slices.IndexFunc(m.pets, func(p Pet) bool { return p.ID == id }); i >= 0 {
			answer = "200 " + asJSON(m.pets[i])
		}
		return "getPet", fmt.Sprint("GET /v1/pets/", id), answer + "\n{deprecated}"
	}
	query, limit, after, status := "", "", int64(0), string(statuses[random.Intn(4)])
	if random.Intn(2) == 0 {
		limit = strconv.Itoa(random.Intn(100) + 1)
		query = "limit=" + limit + "&"
	}
	if status != "" {
		query = "status=" + status + "&" + query
	}
	if random.Intn(2) == 0 {
		after = random.Int63n(m.last+5) - 2
		query += fmt.Sprintf("after=%d&", after)
	}
	page, link := m.page(limit, after, status)
	return "listPets", "GET /v1/pets?" + query, "200 " + page + link
}

// randomFault returns the parameters of a fault.
func randomFault(random *rand.Rand) url.Values {
	f := url.Values{}
	for _, p := range [][]string{{"code", "418", "429", "500", "hangup", "truncate"}, {"delay", "0", ".0"},
		{"retry-after", "0", "3600"}} {
		if random.Intn(3) < 2 {
			f.Set(p[0], p[1+random.Intn(len(p)-1)])
		}
	}
	if told(f) == "" {
		return randomFault(random)
	}
	return f
}

// told spells what a fault does, as Preference-Applied and the journal do.
func told(f url.Values) string {
	var list []string
	for _, name := range []string{"code", "delay", "retry-after"} {
		if f.Has(name) && (name != "retry-after" || f.Get("code") != "" && f.Get("code") < "6") {
			list = append(list, name+"="+f.Get(name))
		}
	}
	return strings.Join(list, ", ")
}

// strike returns the answer of a request that a fault strikes, in place of the
// right one, and whether what was asked is done.
func strike(f url.Values, operation, answer string) (struck string, done bool) {
	code := f.Get("code")
	status, _ := strconv.Atoi(code)
	text := strings.NewReplacer(" ", "_", "'", "").Replace(strings.ToLower(http.StatusText(status)))
	switch code {
	case "":
		return answer, true
	case "hangup":
		return "000", false
	case "truncate":
		line, _, _ := strings.Cut(answer, "\n")
		body := line[4:]
		if code, message, found := strings.Cut(body, ": "); line[0] == '4' && found {
			status, _ = strconv.Atoi(line[:3])
			body = asJSON(Error{code, message, status})
		}
		half := body[:(len(body)+1)/2]
		return fmt.Sprintf("%s %s…\nContent-Length: %d%s", line[:3], half, len(body)+1, answer[len(line):]), true
	case "401":
		struck = "401 invalid_token{simulated}\nWWW-Authenticate: " + wrongKeyChallenge
	default:
		struck = code + " " + cmp.Or(text, "status_"+code) + "{simulated}"
	}
	if retryAfter := cmp.Or(f.Get("retry-after"), map[string]string{"429": "1", "503": "1"}[code]); retryAfter != "" {
		struck += "\nRetry-After: " + retryAfter
	}
	if operation == "getPet" {
		struck += "\n{deprecated}"
	}
	return struck, false
}

// Long random sequences of all operations, faults and resets do what the model
// does, and the journal has them all.
func TestModel(t *testing.T) {
	for round := range 3 {
		random := rand.New(rand.NewSource(int64(round)))
		seed, file := randomSeed(random, random.Intn(60)+4)
		s, m := start(t, "-quiet", "-seed", tempFile(t, file)), seed
		var journal []string
		var fault url.Values // nil for none
		var skip, times, met int
		var faultOperation, shown string
		for range 1500 {
			var operation, request, body, answer string
			var p Pet
			switch n := random.Intn(200); {
			case n < 40:
				p = Pet{m.last + 1, randomPet(random)}
				operation, request, body = "createPet", "POST /v1/pets", asJSON(p.NewPet)
				answer = fmt.Sprintf("201 %s\nLocation: /v1/pets/%d", asJSON(p), p.ID)
			case n < 160:
				operation, request, answer = m.randomRead(random)
			case n < 165:
				operation, request, answer = "none", "GET /v1/nothing", words.Replace("{no path}")
			case n < 170:
				s.play(t, "GET /v1/pets -> Authorization: - -> {no key}")
				journal = append(journal, "GET /v1/pets 401")
			case n < 175:
				s.play(t, "journal\n"+strings.Join(journal, "\n"))
			case n < 176:
				request, answer, journal = "DELETE /__admin/requests", "204", nil
			case n < 186:
				fault, skip, times, met = randomFault(random), random.Intn(4), random.Intn(4), 0
				faultOperation = []string{"", "listPets", "createPet", "getPet"}[random.Intn(4)]
				all := fmt.Sprintf("%s&operation=%s&skip=%d&times=%d", fault.Encode(), faultOperation, skip, times)
				all = regexp.MustCompile("&(operation=(&|$)|times=0)").ReplaceAllString(all, "$2")
				request, answer = "PUT /__admin/fault?"+all, "204"
				shown = fmt.Sprintf(`{"code":%q,"delay":%q,"retry-after":%q,"operation":%q,"skip":%d,"times":%d,`,
					fault.Get("code"), fault.Get("delay"), fault.Get("retry-after"), faultOperation, skip, times)
				shown = regexp.MustCompile(`"[^"]*":(""|0),`).ReplaceAllString(shown, "")
			case n < 190:
				request, answer = "GET /__admin/fault", "200 {}"
				if fault != nil {
					answer = fmt.Sprintf(`200 %s"met":%d}`, shown, met)
				}
			case n < 192:
				request, answer, fault = "DELETE /__admin/fault", "204", nil
			default:
				request, answer = "POST /__admin/reset", "204"
				m, journal, fault = seed, nil, nil
				if n >= 198 {
					m, body = randomSeed(random, random.Intn(60)+4)
				}
			}

			// Every tenth request asks for a fault itself.
			line, headers, struck, done := strings.TrimSpace(request+" "+body), "", "", true
			if operation != "" && random.Intn(10) == 0 {
				own := randomFault(random)
				struck = told(own)
				headers = "\nPrefer: " + struck
				if answer, done = strike(own, operation, answer); answer != "000" {
					answer += "\nPreference-Applied: " + struck
				}
			} else if operation != "" && fault != nil && (faultOperation == "" || faultOperation == operation) {
				if met++; met > skip && (times == 0 || met <= skip+times) {
					struck = told(fault)
					answer, done = strike(fault, operation, answer)
				}
			}
			if p.ID > 0 && done {
				m = model{append(m.pets, p), p.ID}
			}
			if operation != "" {
				status := strings.Replace(answer[:3], "000", "0", 1)
				journal = append(journal, strings.Join(strings.Fields(request+" "+status+" "+struck+" "+body), " "))
			}
			if s.play(t, line+headers+"\n"+answer); t.Failed() {
				t.Fatalf("round %d", round)
			}
		}
	}
}

// On 64 connections at once, random requests lose no pet, and then get the
// answers of the model, for the duration in PETSTORE_SOAK.
func TestSoak(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	s := start(t, "-quiet")
	end := time.Now().Add(soak)
	for round := int64(0); time.Now().Before(end) && !t.Failed(); round++ {
		s.play(t, "POST /__admin/reset -> 204\nPUT /__admin/fault?code=599&skip=3&times=5&operation=getPet -> 204")
		var mu sync.Mutex // guards m
		var m model
		var struck atomic.Int64
		together(64, func(i int) {
			random := rand.New(rand.NewSource(64*round + int64(i)))
			for range 12 {
				p := randomPet(random)
				request, status, _ := strings.Cut([]string{
					"POST /v1/pets " + asJSON(p) + " -> 201",
					"POST /v1/pets " + asJSON(p) + "\nPrefer: delay=0.001, code=truncate -> 201",
					"GET /v1/pets/0 -> ",
					"POST /v1/pets {}\nPrefer: code=500 -> 500",
					"POST /v1/pets {x*65537} -> 413",
					"GET /__admin/requests -> 200",
				}[max(random.Intn(9)-3, 0)], " -> ")
				r := s.do(t, request)
				struck.Add(int64(r.StatusCode / 599))
				if got := r.String(); !strings.HasPrefix(got, status) {
					same(t, request, got, status)
				} else if status == "201" {
					id, _ := strconv.ParseInt(r.Header.Get("Location")[len("/v1/pets/"):], 10, 64)
					mu.Lock()
					m = model{append(m.pets, Pet{id, p}), max(m.last, id)}
					mu.Unlock()
				}
			}
			for _, send := range []string{"GET /v1/pets?limit=100" + withKey + "\n", "GET /v1/pe",
				"POST /v1/pets" + withKey + "Content-Length: 30\n\n{", "GET /__admin/requests" + withKey + "\n",
				"POST /v1/pets" + withKey + "Prefer: delay=30\nContent-Length: 2\n\n{}"} {
				s.leave(t, send)
			}
		})
		slices.SortFunc(m.pets, func(a, b Pet) int { return cmp.Compare(a.ID, b.ID) })
		same(t, "the pets", asJSON(s.pets(t, "?limit=100")), asJSON(m.pets))
		same(t, "the last id, and who is struck", fmt.Sprint(m.last, struck.Load()), fmt.Sprint(len(m.pets), 5))
		s.play(t, "DELETE /__admin/fault -> 204")
		together(64, func(i int) {
			_, request, answer := m.randomRead(rand.New(rand.NewSource(64*round + int64(i))))
			s.play(t, request+"\n"+answer)
		})
	}
	s.stop()
	eventually(t, "the end of all goroutines", func() bool { return runtime.NumGoroutine() <= goroutines })
}

// A Prefer header does what it says, and nothing else does.
func FuzzPrefer(f *testing.F) {
	for _, header := range []string{"", "code=503", "code=503, delay=1.5", "Code = \"418\" ; q=1,,code=999",
		"Code\v", "code=418\u00a0",
		"a=\"b;code=500\";c, delay=30", "respond-async,code=401", "code=hangup", "code=99", "code=Hangup", "code",
		"delay=-1", "delay=1e1", "delay=30.01", "delay=NaN", "delay=1.2.3", "code=404,code=500", ",;=\"\\\"",
		"delay=0,code=truncate, retry-after=5", "code=418, retry-after=0", "retry-after=3600;x=\",\",code=429",
		"code=500, retry-after=3601", "retry-after=x, skip=x, wait=5, codes=500", "delay=0.001, retry-after=5",
		"delay=0, retry-after", "code=418, skip=x, times=0, operation=createPet", "code=503, retry-after=-0",
		"code=418,\"retry-after=01\", a=\"code=1", strings.Repeat(`"\"`, 30000)} {
		f.Add(header)
	}
	for status := 400; status <= 599; status++ {
		f.Add(fmt.Sprint("code=", status))
	}
	h := handlerOf(newStore(0))
	preference := regexp.MustCompile(`(?s)^[ \t]*([^=;]*?)[ \t]*(?:=[ \t]*"*([^;]*?)"*[ \t]*)?(?:;.*)?$`)
	f.Fuzz(func(t *testing.T, header string) {
		given, ok := url.Values{}, true
		for _, p := range strings.Split(header, ",") {
			if m := preference.FindStringSubmatch(p); m != nil && !given.Has(strings.ToLower(m[1])) {
				given.Set(strings.ToLower(m[1]), m[2])
			}
		}
		for name, form := range map[string]string{"code": `[45]\d\d|hangup|truncate`, "delay": `\d+\.?\d*|\.\d+`,
			"retry-after": `0|[1-9]\d{0,2}|[12]\d{3}|3[0-5]\d\d|3600`} {
			ok = ok && (!given.Has(name) || regexp.MustCompile("^("+form+")$").MatchString(given.Get(name)))
		}
		seconds, _ := strconv.ParseFloat(given.Get("delay"), 64)
		r, want := ask(h, "GET /v1/pets", header, ""), "200 []"
		if !given.Has("code") && !given.Has("delay") {
			ok, seconds = true, 0
		} else if want, _ = strike(given, "listPets", want); want != "000" {
			want += "\nPreference-Applied: " + told(given)
		}
		if ok && seconds <= 30 {
			same(t, header, r.String(), written(strings.Split(words.Replace(want), "\n")))
		} else if r.StatusCode != 400 || r.Header.Get("Preference-Applied") != "" {
			t.Errorf("%q: got %s, want a 400", header, r)
		}
	})
}

// A seed is taken if each pet could be created and each id is right. Then it is
// listed. Any other is refused, and changes nothing. A file and a reset agree.
func FuzzSeed(f *testing.F) {
	const pet = `{"name":"a","categoryId":1}`
	for _, seed := range []string{"[]", "[" + pet + `,{"id":7,"name":"b","categoryId":2,"status":"sold"},` +
		`{"id":3,"name":"","categoryId":3}]`, `[{"id":1,"name":"a","categoryId":1},{"id":1,"name":"a","categoryId":1}]`,
		`[{"id":5,"name":"a","categoryId":1},{"id":1,"name":"a","categoryId":1}]`,
		"[1]", "{}", "[] []", `[{"name":"a"`, "", " ", "[" + pet + ",]", "[" + pet + "", "null",
		`[{"id":9223372036854775806,"name":"","categoryId":1},` + pet + "]"} {
		f.Add([]byte(seed))
	}
	file := filepath.Join(f.TempDir(), "pets.json")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		var elements []json.RawMessage
		ok := json.Unmarshal(content, &elements) == nil && elements != nil
		var m model
		var later []NewPet
		for _, element := range elements {
			p, ids, isPet := readPet(element)
			ok = ok && isPet && len(element) <= maxSeedPet
			if len(ids) == 0 {
				later = append(later, p)
				continue
			}
			id, err := strconv.ParseInt(ids[0], 10, 64)
			taken := slices.ContainsFunc(m.pets, func(p Pet) bool { return p.ID == id })
			ok = ok && len(ids) == 1 && err == nil && id > 0 && id < math.MaxInt64 && !taken
			m = model{append(m.pets, Pet{id, p}), max(m.last, id)}
		}
		slices.SortFunc(m.pets, func(a, b Pet) int { return cmp.Compare(a.ID, b.ID) })
		for _, p := range later {
			ok = ok && m.last < math.MaxInt64-1
			m.last++
			m.pets = append(m.pets, Pet{m.last, p})
		}
		seed, err := readSeedFile(file)
		if ok != (err == nil) {
			t.Fatalf("%q: want %v, got %v", content, ok, err)
		}
		h := handlerOf(newStore(0))
		ask(h, "PUT /__admin/fault?code=500", "", "")
		r := ask(h, "POST /__admin/reset", "", string(content))
		fault := ask(h, "GET /__admin/fault", "", "").body
		switch {
		case len(content) == 0 || len(content) > maxBody: // a plain reset, or a 413
		case ok:
			same(t, "the reset", fmt.Sprint(r.StatusCode, fault), "204{}\n")
			m.compare(t, handlerOf(seed), "the file "+string(content))
			m.compare(t, h, "the reset "+string(content))
		default:
			message := strings.TrimPrefix(err.Error(), file+": ")
			same(t, "the reset "+string(content), r.body+fault,
				asJSON(Error{"invalid_body", message, 400})+"\n"+`{"code":"500","met":0}`+"\n")
		}
	})
}

// README: Flags and environment.

// Command lines that do not serve. A fatal error is one line on stderr, and
// tells the way out.
func TestCommandLine(t *testing.T) {
	check := func(args, key string, code int, form string) {
		t.Helper()
		gotCode, stdout, stderr := petstore{key: key, args: strings.Fields(args)}.outcome(t)
		if gotCode != code || !regexp.MustCompile("^"+form+"\n$").MatchString(stdout+stderr) {
			t.Errorf("petstore %s, with the key %q: exit code %d, %s%s", args, key, gotCode, stdout, stderr)
		}
		if onStdout := args == "-version"; onStdout == (stdout == "") {
			t.Errorf("petstore %s: stdout is %q", args, stdout)
		}
	}
	check("-version", "", 0, `1\.0\.0`)
	check("-h", "", 0, `(?s)Petstore .* page for browsers\sat / .* /openapi\.json\..*PETSTORE_API_KEY.*`+
		`-addr host:port.*127\.0\.0\.1:8080.*-latency duration.*-quiet.*-seed file.*-stdin.*-version.*`)
	check("-x", "", 2, "petstore: .*-x.*; -h lists the flags")
	check("-quiet stray", "", 2, "petstore: unexpected argument stray; -h lists the flags")
	check("-latency 150", "", 2, "petstore: .*150.*; a duration has a unit, as 150ms or 2s")
	for _, bad := range []string{"-1ns", "30.001s"} {
		check("-latency "+bad, "", 2, "petstore: invalid value "+bad+" for flag -latency: it must be from 0 to 30s")
	}
	start(t, "-latency", "30s")
	check("-seed no.json", "k", 1, "petstore: .*no.json.*")
	check("-seed api", "k", 1, "petstore: .*api.*") // a folder
	for _, key := range []string{" k", "k k", "k\nk", "k\x7f", "ké", strings.Repeat("k", 4097)} {
		check("", key, 1, "petstore: PETSTORE_API_KEY must be 1 to 4096 visible ASCII characters: .*")
	}
	for _, bad := range []string{"-addr=", "-addr=:"} {
		check(bad, "k", 1, "petstore: -addr names neither host nor port; "+
			"write -addr 127.0.0.1:8080, or -addr :8080 for every interface")
	}
	check("-addr 8081", "k", 1, "petstore: .*; write -addr 127.0.0.1:8081, or -addr :8081 for every interface")
	for _, bad := range strings.Fields("65536 :65536 :80a localhost ::1:8080 [::1:8080 http://127.0.0.1:8080") {
		check("-addr "+bad, "k", 1, "petstore: .*; write -addr host:port, with a port from 0 to 65535")
	}
	check("-addr 192.0.2.1:0", "k", 1, "petstore: .*192.0.2.1:0.*") // another machine's
	taken := start(t).addr
	check("-addr "+taken, "k", 1, "petstore: .*"+taken+".*; -addr 127.0.0.1:0 takes a free port")
}

// A key that is given is not shown. Without one, each run makes one, and shows it
// in a curl line and a link.
func TestKeys(t *testing.T) {
	other := petstore{}.start(t).key
	for _, key := range []string{"!", "~" + strings.Repeat("k", 4095), ""} {
		s := petstore{key: key}.start(t)
		stderr := strings.NewReplacer(s.key, "{key}", s.addr, "{addr}").Replace(s.stderr.String())
		want := "a page for browsers is at http://{addr}/\n"
		if key == "" {
			want = `PETSTORE_API_KEY is not set, so this run has a key of its own:

    curl -H 'Authorization: Bearer {key}' http://{addr}/v1/pets
    http://{addr}/#key={key}

`
		}
		same(t, "stderr", stderr, want)
		s.play(t, "GET /v1/pets\n200 []\n\nGET /v1/pets\nAuthorization: Bearer "+other+"\n{wrong key}")
	}
}

// The base URL is one that clients on this machine can use.
func TestBaseURL(t *testing.T) {
	for _, addr := range []string{":0", "0.0.0.0:0", "127.0.0.1:"} {
		start(t, "-addr", addr).play(t, "GET /v1/pets\n200 []")
	}
	for _, c := range [][4]string{ // IP, zone, base URL, host in it
		{"::", "", "http://127.0.0.1:80/v1", "127.0.0.1:80"},
		{"::1", "", "http://[::1]:80/v1", "[::1]:80"},
		{"fe80::1", "lo", "http://[fe80::1%25lo]:80/v1", "[fe80::1%lo]:80"},
	} {
		base := baseURL(&net.TCPAddr{IP: net.ParseIP(c[0]), Zone: c[1], Port: 80})
		if u, err := url.Parse(base); base != c[2] || err != nil || u.Host != c[3] {
			t.Errorf("%s: %s, which leads to %v %v", c[0], base, u, err)
		}
	}
}

// A service whose base URL is lost, as with > /dev/full, ends: nobody would find it.
func TestLostURL(t *testing.T) {
	var stderr lockedBuffer
	r, closed, _ := os.Pipe()
	defer closed.Close()
	r.Close()
	cmd := child("-addr", "127.0.0.1:0")
	cmd.Stdout, cmd.Stderr = closed, &stderr
	err := within(t, "the end of the process", cmd.Run)
	told := regexp.MustCompile(`\npetstore: cannot print the base URL: .+\n$`).MatchString(stderr.String())
	if fmt.Sprint(err) != "exit status 1" || !told {
		t.Errorf("%v\n%s", err, stderr.String())
	}
}

// GOGC and GOMEMLIMIT win over what the service sets.
func TestCollector(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	stopped, stop := context.WithCancel(context.Background())
	stop()
	for variable, want := range map[string]string{
		"neither":    fmt.Sprint(400, memoryLimit),
		"GOGC":       fmt.Sprint(77, memoryLimit),
		"GOMEMLIMIT": fmt.Sprint(400, 900<<20),
	} {
		debug.SetGCPercent(77) // as the runtime does at its start
		debug.SetMemoryLimit(900 << 20)
		getenv := func(name string) string { return map[string]string{variable: "set"}[name] }
		run(stopped, nil, getenv, nil, io.Discard, io.Discard)
		same(t, variable, fmt.Sprint(debug.SetGCPercent(100), debug.SetMemoryLimit(-1)), want)
	}
}

// README: Output.

// logged returns what the service has logged so far, without the times. Of what
// it says at its end, only the first words are there.
func (s *service) logged() string {
	log := regexp.MustCompile(`(?m)^time=\S+ |\Aa page for .*\n`).ReplaceAllString(s.stderr.String(), "")
	return regexp.MustCompile(`level=INFO msg="(stopping|standard input has ended).*`).ReplaceAllString(log, "$1")
}

const created = "level=INFO msg=request method=POST path=/v1/pets status=201\n"

// The log has one line for each request that the journal has, and not the key.
func TestLog(t *testing.T) {
	s := start(t)
	s.dial(t, "no HTTP\n\n").rest()
	for _, request := range []string{
		"GET /v1/pets?limit=5", "DELETE /v1/pets/1?a%20b%0A=%22", "GET /x/{key}?{key}", "GET /", "OPTIONS /v1",
		"GET /v1/pets\nAuthorization: Bearer not-the-key", "GET /v1/pets\nPrefer: code=hangup",
		"GET /healthz", "OPTIONS /healthz", "GET /__admin/requests", "DELETE /__admin/x", "OPTIONS /__admin/fault",
	} {
		s.do(t, strings.ReplaceAll(request, "{key}", s.key))
	}
	_, total := s.journal(t)
	s.stop()
	same(t, "the log", s.logged(), `level=INFO msg=request method=GET path="/v1/pets?limit=5" status=200
level=INFO msg=request method=DELETE path="/v1/pets/1?a%20b%0A=%22" status=405
level=INFO msg=request method=GET path=/x/<API_KEY>?<API_KEY> status=404
level=INFO msg=request method=GET path=/ status=200
level=INFO msg=request method=OPTIONS path=/v1 status=204
level=INFO msg=request method=GET path=/v1/pets status=401
level=INFO msg=request method=GET path=/v1/pets status=0
stopping
`)
	same(t, "requests in the journal", fmt.Sprint(total), "7")

	for key, shown := range map[string]string{"1234567": "1234567", "12345678": "<API_KEY>"} {
		s := petstore{key: key}.start(t)
		s.do(t, "GET /"+key)
		s.stop()
		same(t, key, s.logged(), "level=INFO msg=request method=GET path=/"+shown+" status=404\nstopping\n")
	}

	s = start(t, "-quiet")
	s.play(t, "GET /v1/pets\n200 []\n\njournal\nGET /v1/pets 200")
	s.stop()
	same(t, "-quiet", s.logged(), "stopping\n")

	log := slog.New(slog.NewTextHandler(s.stderr, nil))
	newServer(&api{seed: newStore(0), log: log}).ErrorLog.Print("http: a line of net/http")
	same(t, "net/http", s.logged(), "stopping\nlevel=WARN msg=\"http: a line of net/http\"\n")
}

// No request waits for a reader of the log: 1,000 lines are kept, more are lost,
// and another line tells how many. At its end, the service waits for a second.
func TestLogUnread(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.stderr.mu.Lock() // nobody reads
	for n := 0; n < 1200 && !t.Failed(); n++ {
		same(t, "a request", s.do(t, fmt.Sprint("GET /x", n)).String()[:3], "404")
	}
	s.stderr.mu.Unlock()
	told := regexp.MustCompile(`level=WARN msg="log lines are lost, as nobody read them" lines=(1\d\d)\n`)
	eventually(t, "the line that tells how many are lost", func() bool { return told.MatchString(s.logged()) })
	s.do(t, "GET /y")
	s.stop()
	lost, _ := strconv.Atoi(told.FindStringSubmatch(s.logged())[1])
	want := ""
	for n := range 1200 - lost {
		want += fmt.Sprintf("level=INFO msg=request method=GET path=/x%d status=404\n", n)
	}
	want += told.FindString(s.logged()) + "level=INFO msg=request method=GET path=/y status=404\nstopping\n"
	same(t, "the log", s.logged(), want)

	s = start(t)
	s.stderr.mu.Lock()
	s.do(t, "GET /x")
	s.stop()
	s.stderr.mu.Unlock()
}

// Who begins to read the log when the service ends gets all of it.
func TestLogReadAtTheEnd(t *testing.T) {
	p := launch(t)
	p.service.stderr.mu.Lock() // nobody reads
	for range 20 {             // of which a pipe takes the first two or three
		p.do(t, "GET /{x*32000}")
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	p.refused(t)
	time.Sleep(50 * time.Millisecond) // a service that does not wait for a reader ends meanwhile
	p.service.stderr.mu.Unlock()
	same(t, "the end of the process", fmt.Sprint(p.wait(t)), "<nil>")
	line := expand("level=INFO msg=request method=GET path=/{x*32000} status=404\n")
	if log := p.logged(); strings.Replace(log, line, "", 20) != "stopping\n" {
		t.Errorf("the log has %d bytes, and ends with %q", len(log), log[max(0, len(log)-200):])
	}
}

// A reader of the log who leaves does not end the service.
func TestLogClosed(t *testing.T) {
	r, closed, _ := os.Pipe()
	defer closed.Close()
	r.Close()
	cmd := child("-addr", "127.0.0.1:0")
	cmd.Stderr = closed
	p := launchCommand(t, cmd)
	p.play(t, "GET /v1/pets\n200 []\n\nGET /v1/pets\n200 []")
	p.cmd.Process.Signal(syscall.SIGTERM)
	same(t, "the end of the process", fmt.Sprint(p.wait(t)), "<nil>")
}

// A write of the log that fails, as on a full disk, loses its lines and no others.
func TestLogDiskFull(t *testing.T) {
	disk := &fullOnce{}
	s := petstore{key: testKey, stderr: disk}.start(t)
	s.play(t, "GET /v1/pets?lost -> 200 []")
	eventually(t, "the failing write", disk.failed.Load)
	s.play(t, "GET /v1/pets?kept -> 200 []")
	eventually(t, "the next line of the log", func() bool { return strings.Contains(disk.String(), "?kept") })
}

// fullOnce fails to write the first line of a request.
type fullOnce struct {
	lockedBuffer
	failed atomic.Bool
}

func (w *fullOnce) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "?lost") && !w.failed.Swap(true) {
		return 0, errors.New("no space left")
	}
	return w.lockedBuffer.Write(p)
}

// README: The end.

// Who waits for a delay is answered at once when the service stops.
func TestStopEndsDelays(t *testing.T) {
	s := start(t)
	s.play(t, "PUT /__admin/fault?delay=30 -> 204")
	waiting := s.dial(t, "GET /v1/pets"+withKey+"Connection: close\n\n")
	s.held(t, 1)
	s.cancel()
	same(t, "GET /v1/pets", waiting.read().String(), "200 []\nConnection: close")
}

// upload begins to create Rex, and returns when the service waits for the body.
func (s *service) upload(t testing.TB) *connection {
	t.Helper()
	c := s.dial(t, "POST /v1/pets HTTP/1.1\nHost: petstore\nAuthorization: Bearer "+s.key+
		"\nContent-Length: 29\nExpect: 100-continue\n\n")
	same(t, "an upload", c.read().String(), "100")
	return c
}

// refused waits until the service takes no new connections.
func (s *service) refused(t testing.TB) {
	t.Helper()
	eventually(t, "the refusal of new connections", func() bool {
		c, err := net.Dial("tcp", s.addr)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
}

// answers checks that the service is stopping, and yet answers an upload.
func (s *service) answers(t testing.TB, upload *connection) {
	t.Helper()
	s.refused(t)
	upload.send("", `{"name":"Rex","categoryId":7}`)
	same(t, "an upload in flight", upload.rest(), "201 {\"id\":1,\"name\":\"Rex\",\"categoryId\":7}\n"+
		"Connection: close\nLocation: /v1/pets/1")
}

func TestSignal(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		p := launch(t)
		upload := p.upload(t)
		p.cmd.Process.Signal(signal)
		p.answers(t, upload)
		same(t, signal.String(), fmt.Sprint(p.wait(t), p.logged()), "<nil>stopping\n"+created)
	}
}

// A second signal ends the service at once, whatever is in flight. A shell that
// starts it in the background may have it ignore SIGINT, which changes nothing.
func TestSecondSignal(t *testing.T) {
	ignoring := exec.Command("sh", "-c", `trap "" INT; exec "$0" -addr 127.0.0.1:0`, os.Args[0])
	ignoring.Env = child().Env
	for name, c := range map[string]struct {
		cmd           *exec.Cmd
		first, second os.Signal
	}{
		"twice SIGTERM": {child("-addr", "127.0.0.1:0"), syscall.SIGTERM, syscall.SIGTERM},
		"two at once":   {child("-addr", "127.0.0.1:0"), syscall.SIGTERM, os.Interrupt},
		"twice SIGINT":  {ignoring, os.Interrupt, os.Interrupt},
	} {
		p := launchCommand(t, c.cmd)
		p.upload(t)
		p.cmd.Process.Signal(c.first)
		if name != "two at once" {
			p.refused(t)
		}
		p.cmd.Process.Signal(c.second)
		same(t, name, fmt.Sprint(p.wait(t)), "exit status 1")
	}
}

// A start that still reads its seed stops too, and prints no URL.
func TestStopWhileSeeding(t *testing.T) {
	seed, w, _ := os.Pipe() // the seed does not end, for w is open
	defer seed.Close()
	defer w.Close()
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		var output lockedBuffer
		cmd := child("-addr", "127.0.0.1:0", "-seed", "/dev/fd/3")
		cmd.ExtraFiles, cmd.Stdout, cmd.Stderr = []*os.File{seed}, &output, &output
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Process.Kill()
		within(t, "the reading of the seed", func() error { // more than a pipe holds
			_, err := w.WriteString(expand("{ *1000000}"))
			return err
		})
		cmd.Process.Signal(signal)
		err := within(t, "the end of the process", cmd.Wait)
		same(t, signal.String(), fmt.Sprint(err, output.String()), "<nil>")
	}
	args := []string{"-stdin", "-seed", fmt.Sprint("/dev/fd/", seed.Fd())}
	code, stdout, stderr := petstore{key: testKey, args: args}.outcome(t)
	stderr = regexp.MustCompile(`^time.*msg="(standard input) .*`).ReplaceAllString(stderr, "$1")
	same(t, "-stdin", fmt.Sprint(code, stdout, stderr), "0standard input\n")
}

// What is in flight has 10 seconds. Here it is cut off before it would get the
// 408 that is due after 15.
func TestStopWaitsTenSeconds(t *testing.T) {
	t.Parallel()
	s := start(t)
	upload := s.upload(t)
	begin := time.Now()
	s.cancel()
	same(t, "the upload", upload.rest(), "000")
	if waited := time.Since(begin); waited < 9*time.Second {
		t.Errorf("it was cut off after %v", waited)
	}
}

// With -stdin, the service stops when its standard input ends. Without it, that
// does not matter: standard input is empty in other tests.
func TestStdin(t *testing.T) {
	stdin, starter := io.Pipe()
	s := petstore{key: testKey, stdin: stdin, args: []string{"-stdin"}}.start(t)
	upload := s.upload(t)
	within(t, "the reading of standard input", func() error { return json.NewEncoder(starter).Encode("not the end") })
	s.play(t, "GET /healthz\n200 {\"status\":\"ok\"}")
	starter.Close()
	s.answers(t, upload)
	s.stop()
	same(t, "the log", s.logged(), "standard input has ended\nstopping\n"+created)
}

// README: all that can be run or compared.

// The console blocks of README.md are one session, which prints in each shell
// what they show. The blocks of sh run too, in a folder that has the binary.
func TestReadme(t *testing.T) {
	file, _ := os.ReadFile("README.md")
	readme := string(file)
	_, _, help := petstore{args: []string{"-h"}}.outcome(t)
	for _, flag := range regexp.MustCompile(`(?m)^  (-\w+)`).FindAllStringSubmatch(help, -1) {
		if !strings.Contains(readme, "`"+flag[1]) {
			t.Errorf("README.md does not name the flag %s", flag[1])
		}
	}
	if exec.Command("curl", "--json", "{}", "--version").Run() != nil {
		t.Skip("curl 7.82 is not installed")
	}
	home := t.TempDir()
	os.WriteFile(home+"/.curlrc", []byte("silent\n"), 0o600) // no progress meter
	self := "#!/bin/sh\nPETSTORE_TEST_CHILD=petstore exec '" + os.Args[0] + "' \"$@\"\n"
	os.WriteFile(home+"/petstore", []byte(self), 0o700)
	block := regexp.MustCompile("(?s)\n```(console|sh)\n(.*?)```(?:\n\n```text\n(.*?)```)?")
	command := regexp.MustCompile(`(?m)^\$ ((?:.*\\\n)*.*)\n((?:(?:[^$\n].*)?\n)*)`) // and what it prints
	varies := regexp.MustCompile(`(Date: ).*|("time":")[^"]*|(curl/)[0-9.]*|\r|\s+$`)
	for _, shell := range []string{"sh", "bash", "zsh"} {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skip(shell, " is not installed")
			}
			run := func(script string, args ...string) string {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				cmd := exec.CommandContext(ctx, shell, args...)
				cmd.Env = append(os.Environ(), "CURL_HOME="+home, "PS1=", "PS2=")
				cmd.Dir, cmd.Stdin, cmd.WaitDelay = home, strings.NewReader(script), time.Second
				out, _ := cmd.CombinedOutput()
				return varies.ReplaceAllString(string(out), "$1$2$3")
			}
			var steps [][2]string // commands, and what they print
			session, address := "", ""
			for _, b := range block.FindAllStringSubmatch(readme, -1) {
				if strings.Contains(b[2], "go test ") {
					continue // that has brought us here
				} else if b[1] == "sh" {
					same(t, b[2], run(b[2]), strings.TrimSpace(b[3]))
				}
				for _, m := range command.FindAllStringSubmatch(b[2], -1) {
					do, want := m[1], m[2]
					if key, found := strings.CutSuffix(do, "go run ."); found {
						s := petstore{key: strings.TrimPrefix(strings.TrimSpace(key), "PETSTORE_API_KEY=")}.start(t)
						do = "cat <<'.'\n" + s.stderr.String() + "http://" + s.addr + "/v1\n."
						want = regexp.MustCompile(`\b[0-9a-f]{32}\b`).ReplaceAllString(want, s.key)
						address = s.addr
					}
					here := strings.NewReplacer("127.0.0.1:8080", address)
					session += here.Replace(do) + "\nprintf '\\036'\n"
					steps = append(steps, [2]string{m[1], varies.ReplaceAllString(here.Replace(want), "$1$2$3")})
				}
			}
			var typedInto []string
			if shell == "zsh" { // which takes no comments then
				typedInto = []string{"-f", "-i", "+o", "promptsp"}
			}
			outs := append(strings.Split(run(session, typedInto...), "\036"), make([]string, len(steps))...)
			for i, step := range steps {
				same(t, "$ "+step[0], varies.ReplaceAllString(outs[i], "$1$2$3"), step[1])
			}
		})
	}
}

// Benchmarks.

// serveBare is the process of the bare net/http server that benchmarks compare
// petstore with. It has the same time limits, and one answer to all requests.
func serveBare() {
	var answer bareAnswer
	json.Unmarshal([]byte(os.Getenv("PETSTORE_TEST_ANSWER")), &answer)
	srv := newServer(&api{seed: newStore(0), log: slog.Default()})
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		for name, values := range answer.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Status)
		w.Write(answer.Body)
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		fmt.Printf("http://%s/v1\n", ln.Addr())
		err = srv.Serve(ln)
	}
	panic(err)
}

type bareAnswer struct {
	Status int
	Header http.Header
	Body   []byte
}

// launchBare starts a bare server that answers a request as s does.
func launchBare(b *testing.B, s *service, request string) *process {
	r := s.do(b, request)
	r.Header.Del("Date")
	cmd := child()
	cmd.Env = append(cmd.Env, "PETSTORE_TEST_CHILD=bare",
		"PETSTORE_TEST_ANSWER="+asJSON(bareAnswer{r.StatusCode, r.Header, []byte(r.body)}))
	return launchCommand(b, cmd)
}

// load sends n requests over connections, and reads the answers.
func load(b *testing.B, connections []*connection, request []byte, n int) {
	together(len(connections), func(i int) {
		c := connections[i]
		c.SetDeadline(time.Now().Add(patience))
		for j := i; j < n; j += len(connections) {
			c.Write(request)
			line, err := c.in.ReadSlice('\n')
			for err == bufio.ErrBufferFull || bytes.HasSuffix(line, []byte("\r\n")) { // the body is one line
				line, err = c.in.ReadSlice('\n')
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// cpu returns the CPU time that the process has used, in steps of 10 ms.
func (p *process) cpu(b *testing.B) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		b.Skip("CPU time is read from /proc")
	}
	fields := strings.Fields(string(stat))
	user, _ := strconv.Atoi(fields[13])
	system, _ := strconv.Atoi(fields[14])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// compare reports the CPU time of a request, and its ratio to that of the bare
// server. Both run at once, and get 500 requests in turns.
func compare(b *testing.B, p *process, request string, connections int) {
	servers := []*process{p, launchBare(b, p.service, request)}
	parts := append(strings.SplitN(request, " ", 3), "")
	raw := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: petstore\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
		parts[0], parts[1], testKey, len(parts[2]), parts[2])
	var open [2][]*connection
	var used [2]time.Duration
	for i, server := range servers {
		for range connections {
			open[i] = append(open[i], server.dial(b, ""))
		}
		load(b, open[i], []byte(raw), 1000)
		used[i] = -server.cpu(b)
	}
	for done := 0; done < b.N; done += 500 {
		for i := range servers {
			load(b, open[i], []byte(raw), min(500, b.N-done))
		}
	}
	for i, server := range servers {
		used[i] += server.cpu(b)
	}
	b.ReportMetric(0, "ns/op") // that would be the time of both, and of the client
	b.ReportMetric(float64(used[0].Microseconds())/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(used[0])/float64(max(used[1], 1)), "x-bare")
}

// benchmarkSeed writes a seed of n pets of 75 bytes. One in three is sold, and
// the last ten are pending.
func benchmarkSeed(b *testing.B, n int) string {
	text := []byte("[")
	for i := 1; i <= n; i++ {
		p := Pet{int64(i), NewPet{"", int64(i % 100), []PetStatus{Sold, Available, Available}[i%3]}}
		if i > n-10 {
			p.Status = Pending
		}
		p.Name = strings.Repeat("x", 75-len(encode(p)))
		text = append(append(text, encode(p)...), ',')
	}
	text[len(text)-1] = ']'
	return tempFile(b, string(text))
}

func BenchmarkPetstore(b *testing.B) {
	for _, n := range []int{1000, 1000000} {
		p := launch(b, "-quiet", "-seed", benchmarkSeed(b, n))
		for _, c := range []struct{ name, request string }{
			{"list20", "GET /v1/pets"},
			{"list100", "GET /v1/pets?limit=100"},
			{"filtered", "GET /v1/pets?status=sold"},
			{"sparse", "GET /v1/pets?status=pending"},
			{"get", fmt.Sprintf("GET /v1/pets/%d", n-1)},
			{"create", `POST /v1/pets {"name":"` + strings.Repeat("x", 24) + `","categoryId":7,"status":"sold"}`},
		} {
			for _, connections := range []int{1, 32} {
				b.Run(fmt.Sprintf("%s/pets=%d/connections=%d", c.name, n, connections), func(b *testing.B) {
					compare(b, p, c.request, connections)
				})
			}
		}
	}
}

// starts measures the time from the start of a process to its first answer, and
// the memory that it has then.
func starts(b *testing.B, launch func() *process) {
	memory := 0
	b.ResetTimer()
	for range b.N {
		b.StartTimer()
		p := launch()
		p.do(b, "GET /v1/pets")
		b.StopTimer()
		memory += p.memory(b, "VmRSS")
		p.cmd.Process.Kill()
		p.cmd.Wait()
	}
	b.ReportMetric(float64(memory)/float64(b.N), "MiB")
}

// BenchmarkStart compares the start with that of the bare server. In both cases,
// the process is the test binary, which starts somewhat more slowly than petstore.
func BenchmarkStart(b *testing.B) {
	s := start(b)
	b.Run("petstore", func(b *testing.B) { starts(b, func() *process { return launch(b) }) })
	b.Run("bare", func(b *testing.B) { starts(b, func() *process { return launchBare(b, s, "GET /v1/pets") }) })
}

// BenchmarkSeed starts with a million pets.
func BenchmarkSeed(b *testing.B) {
	file := benchmarkSeed(b, 1000000)
	starts(b, func() *process { return launch(b, "-quiet", "-seed", file) })
}

// BenchmarkReset resets a service with a seed of 100,000 pets.
func BenchmarkReset(b *testing.B) {
	p := launch(b, "-quiet", "-seed", benchmarkSeed(b, 100000))
	b.ResetTimer()
	for range b.N {
		p.do(b, "POST /__admin/reset")
	}
}

// Each file in testdata/examples passes, shows what a service says that cannot start, and leaves no
// service behind, when it is killed either.
func TestExamples(t *testing.T) {
	const five = `^(ok - .*\n){5}$`
	for _, c := range []struct{ command, passed string }{
		{"sh client.sh", five},
		{"bash client.sh", five},
		{"zsh client.sh", five},
		{"go test -count=1 -v client_test.go", `(?s)(--- PASS: .*){5}`},
		{"node --test client.test.mjs", `tests 5\n(.*\n)*.* pass 5\n`},
		{"python3 -W error -m unittest test_client.py", `Ran 5 tests in .*\n\nOK\n`},
		{"java ClientTest.java", five},
	} {
		t.Run(c.command, func(t *testing.T) {
			args := strings.Fields(c.command)
			for _, program := range []string{args[0], "mkfifo", "curl"} {
				if _, err := exec.LookPath(program); err != nil {
					t.Skip(program + " is not installed")
				}
			}
			root := t.TempDir() // as the clone: petstore beside testdata/examples
			examples := filepath.Join(root, "testdata", "examples")
			os.MkdirAll(examples, 0o700)
			files, _ := filepath.Glob("testdata/examples/*.*")
			for _, name := range files {
				b, _ := os.ReadFile(name)
				os.WriteFile(filepath.Join(root, name), b, 0o600)
			}
			os.WriteFile(filepath.Join(root, "petstore"), []byte("#!/bin/sh\neval \"$SCRIPT\""), 0o700)
			fifo := filepath.Join(root, "fifo")
			if out, err := exec.Command("mkfifo", fifo).CombinedOutput(); err != nil {
				t.Fatal(err, string(out))
			}
			t.Parallel()
			// run runs the example with a shell script in place of petstore, and waits for the end of fifo,
			// which every petstore holds open as long as it runs. When a process id and then a base URL come
			// out of it, run kills that process.
			run := func(script string) (output string, killed bool, err error) {
				keep, _ := os.OpenFile(fifo, os.O_RDWR, 0) // until the example has ended
				r, _ := os.Open(fifo)
				ended := make(chan bool)
				go func() {
					defer r.Close()
					var example *os.Process
					killed := false
					for lines := bufio.NewScanner(r); lines.Scan(); {
						if pid, err := strconv.Atoi(lines.Text()); err == nil {
							example, _ = os.FindProcess(pid)
						} else if example != nil && !killed {
							killed = example.Kill() == nil
						}
					}
					ended <- killed
				}()
				cmd := exec.Command(args[0], args[1:]...)
				cmd.Dir = examples
				cmd.Env = append(os.Environ(), "SCRIPT="+script, "FIFO="+fifo, "TMPDIR="+root,
					"PETSTORE="+os.Args[0], "PETSTORE_TEST_CHILD=petstore")
				out, err := cmd.CombinedOutput()
				keep.Close()
				return string(out), within(t, "the end of petstore", func() bool { return <-ended }), err
			}

			out, _, err := run(`exec "$PETSTORE" "$@" 4>"$FIFO"`)
			if err != nil || !regexp.MustCompile(c.passed).MatchString(out) {
				t.Errorf("%v: it has not passed five tests\n%s", err, out)
			}
			out, _, err = run(`echo "this is why" >&2; exit 1`)
			if err == nil || !strings.Contains(out, "this is why") {
				t.Errorf("%v: it does not show what petstore says\n%s", err, out)
			}
			// The example waits for the base URL, which goes elsewhere, when it is killed.
			if out, killed, err := run(`exec 4>&1 >"$FIFO"; echo $PPID; exec "$PETSTORE" "$@"`); !killed || err == nil {
				t.Errorf("it was not killed\n%s", out)
			}
		})
	}
}

// The page does in a browser what a person asks it to do. PETSTORE_AXE names axe.min.js, of the package axe-core, to
// check it for accessibility, and PETSTORE_PICTURE a file to write the picture of the README to.
func TestPage(t *testing.T) {
	t.Parallel()
	s := start(t)
	session := startBrowser(t)
	run := func(name string, test func(d *desk)) {
		t.Run(name, func(t *testing.T) {
			d := &desk{t, session, "http://" + s.addr, s.key}
			d.send("POST /__admin/reset", "")
			d.open("/#key=" + s.key)
			d.see("#state", "Live")
			test(d)
			d.until(`performance.getEntriesByType("resource").every(({name}) => name.startsWith(location.origin))`)
			for _, line := range d.command("/se/log", map[string]string{"type": "browser"}).([]any) {
				if line.(map[string]any)["source"] != "network" { // where the browser tells of each answer like 401
					t.Errorf("console: %v", line)
				}
			}
		})
	}
	run("first sight", func(d *desk) {
		d.see("header p", "An animal store to test API clients against.", "header p", "“As a test double”",
			`header a[href="/openapi.json"]`, "/openapi.json", "#standing", "No fault: clients get true answers.",
			"#listed", "There are no pets yet. Add one, or 25 samples.", "table", "", "#door", "",
			"#count", "None of clients yet: they call "+d.base+"/v1, with the key; 2 of this page.")
		d.until(`location.href + sessionStorage.length + localStorage.length + document.cookie === arguments[0]`,
			d.base+"/10")
	})
	run("the key", func(d *desk) {
		for path, told := range map[string]string{"": "", "#key=x": "The service refuses", "#key=%C3%BC": "This is"} {
			d.open("/" + path)
			d.see("#state", "A key is needed.", "#door", "API key", "#refused", told, "#cards", "", "#end", "")
		}
		d.fill("#key", d.key)
		d.click("#door button", "#listed", "There are no pets yet.", "#door", "")
		d.do("location.reload()") // the tab remembers the key
		d.see("#listed", "There are no pets yet.")
		d.open(fmt.Sprintf("/#key=%%%x%s", d.key[0], d.key[1:]))
		d.see("#listed", "There are no pets yet.")
	})
	run("errors are told, and only a 401 of the admin paths asks for the key", func(d *desk) {
		d.send("PUT /__admin/fault?code=401", "")
		d.see("#standing", "code=401")
		d.click("#reload", "#listed", "There are no pets yet.") // the fault lets the page pass
		d.send("GET /v1/pets", "")
		d.see("li", "GET /v1/pets fault: code=401 401")
		d.hook()
		for _, step := range [][]string{
			{`path.startsWith("/v1") && new Response('{"message":"simulated"}', {status: 401})`, "#reload",
				"#listed.bad", "simulated", "table", "", "#door", ""},
			{`Promise.reject(new TypeError("no network"))`, "#end",
				"#state.bad", "The service does not answer. Trying again…", "#set.bad", "The service does not",
				"#standing", "What stands now is not known."},
			{`({text: () => Promise.reject(new TypeError("cut")), status: 200})`, "#pets form button",
				"#state.bad", "The answer 200 broke off. Trying again…", "#added.bad", "Not added: The answer 200"},
			{`new Response("<p>A proxy", {status: 502})`, "#clear", "#cleared.bad", "no reason was given"},
			{`null`, "#clear", "#state:not(.bad)", "Live", "#cleared:not(.bad)", "Cleared",
				"#standing", "Fault for all clients"},
			{`path.startsWith("/__admin") && new Response("{}", {status: 401})`, "h1",
				"#refused", "The service refuses this key.", "#cards", ""},
		} {
			d.do("instead = path => " + step[0])
			d.click(step[1], step[2:]...)
		}
	})
	run("pets", func(d *desk) {
		d.click("#samples", "#added", "Added 25 pets.", "#listed", "Page 1: 10 pets, more follow.")
		d.see("tbody tr:first-child", "1 Rex 1 available", "tbody tr:nth-child(6)", "6 Tom 1 none")
		d.click("#previous", "#listed", "Page 1") // does nothing
		d.click("#next", "#listed", "Page 2: 10 pets, more follow.", "tbody td", "11")
		d.click("#next", "#listed", "Page 3: 5 pets, no more follow.", "tbody tr:last-child", "25 Dolly 5 available")
		d.click("#next", "#listed", "Page 3") // does nothing
		d.click("#previous", "#listed", "Page 2: 10 pets", "tbody td", "11")
		d.click("#reload", "#listed", "Page 2: 10 pets")
		d.click("#first", "#listed", "Page 1: 10 pets")
		d.fill("#filter", "sold")
		d.see("#listed", "Page 1: 4 pets, no more follow.", "tbody tr:last-child", "22 Babe")
		d.fill("#filter", "available")
		d.see("#listed", "Page 1: 10 pets, more follow.")
		d.click("#next", "#listed", "Page 2: 3 pets, no more follow.")
		d.fill("#name", "Ida", "#status", "available")
		d.click("#pets form button", "#added", "Added as /v1/pets/26.", "tbody tr:last-child", "26 Ida 1 available")
		d.until(`document.activeElement.id === "name" && document.activeElement.value === ""`)
		d.fill("#name", "Tom", "#category", "seven")
		d.click("#pets form button", "#added.bad", `Not added: categoryId is "seven"`)
		d.until(`document.querySelector("#name").value === "Tom" && added.getBoundingClientRect().bottom < innerHeight`)
		d.send("POST /v1/pets", `{"name":"Zoë","categoryId":1}`)
		d.see("#listed", "Clients have added pets since.")
		d.click("#first", "#listed", "Page 1: 10 pets, more follow.")
	})
	run("an old listing does not replace a newer one", func(d *desk) {
		d.click("#samples", "#listed", "Page 1: 10 pets")
		d.hook() // the next listing gets its answer late, and although it was given up
		d.do(`instead = path => path.startsWith("/v1") && new Promise(answer => { late = answer; instead = null; })`)
		d.click("#next")
		d.until("instead === null")
		d.fill("#filter", "sold")
		d.see("#listed", "Page 1: 4 pets, no more follow.")
		d.watch("#pets")
		d.async(`late(new Response("[]", {headers: {Link: '</v1/pets?after=1>; rel="next"'}}));
			requestAnimationFrame(() => requestAnimationFrame(done));`)
		d.until("seen.length === 0")
		d.click("#next", "#listed", "Page 1: 4 pets") // there is none
	})
	run("two clicks on samples", func(d *desk) {
		d.do("samples.click(); samples.click()")
		d.until(`samples.ariaDisabled === "false"`)
		d.see("#added", "Added 25 pets.", "#count", "28 of this page.", "tbody tr:nth-child(2)", "2 Bella")
		d.until(`document.querySelector("#listed").textContent === "Page 1: 10 pets, more follow."`) // of clients, none
	})
	run("integers are exact, text is never HTML", func(d *desk) {
		d.send("POST /__admin/reset", `[{"id":9007199254740993,"name":"Rex","categoryId":-9223372036854775808}]`)
		d.click("#reload", "tbody tr", "9007199254740993 Rex -9223372036854775808 none")
		d.fill("#category", "9223372036854775807")
		d.click("#pets form button", "#added", "Added as /v1/pets/9007199254740994.",
			"tbody tr:last-child", "9007199254740994 9223372036854775807 none")
		d.send("PUT /__admin/fault?code=500&skip=9007199254740993&times=9223372036854775807", "")
		d.see("#standing", "skip=9007199254740993, times=9223372036854775807",
			"#met", "Requests met: 0, struck: 0, to come: 9223372036854775807.")
		const html = `<img src=x onerror='document.title=0'>`
		d.send("POST /v1/pets", `{"name":"`+html+`","categoryId":1}`, "X-Name: "+html)
		d.click("#reload", "tbody tr:last-child", "9007199254740995 "+html+" 1 none")
		d.send("GET /v1/pets?"+strings.Repeat("<b>x</b>", 500), html)
		d.see("li", "GET /v1/pets?<b>x")
		d.click("li summary", "li pre", html)
		d.click("li:nth-child(3) summary", "li:nth-child(3) h3 ~ h3 + pre", "X-Name: "+html)
		d.until(`document.title === "Petstore" && !document.querySelector("img, b b, td *, span *, pre *") &&
			document.querySelector("summary :nth-child(3)").textContent.length < 250`)
	})
	run("the standing fault", func(d *desk) {
		d.fill("[name=times]", "2", "[name=skip]", "1", "[name=delay]", "0.01", "[name=retry-after]", "0",
			"[name=operation]", "createPet")
		d.click("#fault form button", "#set", "Set for all clients at ", "#strip.strikes #standing",
			"Fault for all clients: code=503, delay=0.01, retry-after=0, operation=createPet, skip=1, times=2")
		const end = "2."
		for i, want := range []string{"0, to come: 2.", "1, to come: 1.", end, end} {
			d.send("POST /v1/pets", `{"name":"Rex","categoryId":7}`)
			d.see("#met", fmt.Sprintf("Requests met: %d, struck: %s", i+1, want))
		}
		d.see("#strip:not(.strikes)", "The fault is used up, clients get true answers: code=503",
			"li:nth-child(1)", "POST /v1/pets 201", "li:nth-child(4)", "201",
			"li:nth-child(2)", "POST /v1/pets fault: code=503, delay=0.01, retry-after=0 503", "li:nth-child(3)", "503")
		d.do(`document.querySelector("#fault form").reset()`)
		d.fill("[name=code]", "hangup")
		d.click("#fault form button", "#standing", "code=hangup", "#met", "Requests met: 0, struck: 0.")
		d.send("GET /v1/pets", "")
		d.see("li:first-child", "no answer")
		d.click("#end", "#standing", "No fault", "#set", "Ended at ", "#met", "", "#strip:not(.strikes)", "No fault")
		d.until(`document.activeElement.id === "end"`)
	})
	run("mistakes of a fault", func(d *desk) {
		for _, name := range []string{"code", "delay", "retry-after", "skip", "times"} {
			d.fill("[name="+name+"]", "-1")
			d.click("#fault form button", "label:has([name="+name+"][aria-invalid=true]) small.bad", name+" is -1")
			d.until(`document.activeElement.name === arguments[0] &&
				document.querySelectorAll("#fault .bad, #fault [aria-invalid]").length === 2`, name)
			d.do(`document.querySelector("#fault form").reset()`)
		}
		d.fill("[name=code]", "")
		d.click("#fault form button", "label:has([name=code]) small.bad", "code or delay must be given",
			"#standing", "No fault")
		d.fill("[name=delay]", "1")
		d.click("#fault form button", "#standing", "Fault for all clients: delay=1")
		d.until(`!document.querySelector("#fault .bad, #fault [aria-invalid]")`)
	})
	run("two pages", func(d *desk) {
		other := &desk{d.T, startBrowser(d.T), d.base, d.key}
		other.open("/#key=" + d.key)
		d.fill("[name=times]", "1")
		d.click("#fault form button")
		other.see("#standing", "Fault for all clients: code=503, times=1")
		d.send("GET /v1/pets?of=a-client", "")
		for _, d := range []*desk{d, other} {
			d.see("li:first-child", "GET /v1/pets?of=a-client fault: code=503 503", "#met",
				"Requests met: 1, struck: 1.", "#count", "1 of clients, ")
		}
		other.click("#end")
		d.see("#standing", "No fault")
	})
	run("requests", func(d *desk) {
		d.see("li", "") // the page's own are hidden
		d.click("#all", "li", "GET /v1/pets?limit=10 this page 200", "li:last-child", "GET / this page 200")
		d.click("#all", "li", "")
		d.send("POST /v1/pets?x=%20y", `{"name":`, "Idempotency-Key: a1")
		d.send("GET /v1/pets", "", "Authorization: Bearer none")
		d.send("POST /v1/pets", "a body without the key", "Authorization: Bearer none")
		d.see("#count", "3 of clients, 2 of this page.", "li:nth-child(3)", "POST /v1/pets?x=%20y 400")
		d.until(`/^\d\d:\d\d:\d\d\.\d{3}$/.test(document.querySelector("time").innerText)`)
		const headers = "li:nth-child(3) h3 ~ h3 + pre"
		d.click("li:nth-child(3) summary", "li:nth-child(3) pre", `{"name":`, headers, "POST /v1/pets?x=%20y ",
			headers, "Authorization: Bearer <API_KEY> ", headers, "Idempotency-Key: a1 ")
		d.click("li:nth-child(2) summary", "li:nth-child(2) h3 + p", "There was none.")
		d.click("li:nth-child(1) summary", "li:nth-child(1) h3 + p", "It was not read.")
		d.click("#clear", "#cleared", "Cleared at ", "#count", "None of clients yet", "ol", "")
		d.send("GET /v1/pets/7", "")
		d.see("li:first-child", "GET /v1/pets/7 404")
	})
	run("the curl line", func(d *desk) {
		const line, json = "li h3:last-of-type + pre", "Content-Type: application/json"
		d.send("GET /v1/pets?x=1", "")
		d.see("li", "GET /v1/pets?x=1 200")
		d.click("li summary", line, "curl -i -H 'Authorization: Bearer '\"$KEY\" '"+d.base+"/v1/pets?x=1'")
		d.click("li button")
		d.until(`document.querySelector("li button").innerText === "Copied" ||
			getSelection().toString() === document.querySelector(arguments[0]).innerText`, line)
		if _, err := exec.LookPath("curl"); err != nil {
			d.Skip(err)
		}
		matters := regexp.MustCompile( // to the service
			`"(method|url|body|status|fault|Content-Type|Authorization|Prefer|X-\w+)":("(\\.|[^"])*"|\d+)`)
		for _, request := range [][]string{
			{"POST /v1/pets", `{"name":"it's <b> \"$KEY\" ` + d.key + `","categoryId":7}`, "X-Id: a'b'", json},
			{"POST /v1/pets", `{"name":"Rex","categoryId":1}`, "X-Empty: "},
			{"GET /v1/pets?status={a}[1-2]&x=" + d.key, "", "Prefer: code=418, wait=1"},
			{"HEAD /v1/pets", "", "X-Id: 1"},
			{"DELETE /v1//pets/../pets", "", "Authorization: Basic x"},
			{"PATCH /v1/pets", "@no file\n", "Content-Type: text/plain"},
		} {
			d.click("#clear", "ol", "")
			d.send(request[0], request[1], request[2:]...)
			want := matters.FindAllString(d.send("GET /__admin/requests", ""), -1)
			d.see("li:only-child", request[0][:4])
			d.click("li summary", line, "curl -i")
			text := d.do(`return document.querySelector(arguments[0]).textContent`, line).(string)
			sh := exec.Command("sh", "-c", text)
			sh.Env = append(os.Environ(), "KEY="+d.key)
			d.send("DELETE /__admin/requests", "")
			out, _ := sh.Output()
			got := matters.FindAllString(d.send("GET /__admin/requests", ""), -1)
			if len(got) < 5 || fmt.Sprint(got) != fmt.Sprint(want) {
				d.Errorf("$ %s\n%s\nsent %q\nwant %q", text, out, got, want)
			}
		}
	})
	run("a poll that brings nothing new changes nothing, and a reset all", func(d *desk) {
		d.click("#samples", "#added", "Added 25 pets.", "#listed", "Page 1: 10 pets")
		d.send("PUT /__admin/fault?code=503", "")
		d.send("GET /v1/pets", "")
		d.see("#met", "Requests met: 1")
		d.click("li summary", "li h3 ~ h3 + pre", "GET /v1/pets")
		d.hook()
		d.watch("html")
		d.until("polls > 5")
		d.until("seen.length === 0")
		d.see("#reset p", "the pets are again those the service was started with")
		d.click("#reset button", "#done", "Reset to the pets of the start, no fault and no requests at ",
			"#listed", "There are no pets yet.", "#standing", "No fault", "#count", "None of clients yet")
	})
	run("one poll at a time, none while hidden", func(d *desk) {
		d.hook()
		d.until("pauses.size === 1 && pauses.has(1000)") // between two polls is a second
		d.do(`instead = (path, init, send) => path === "/__admin/requests" && init.method === "GET" &&
			new Promise(answer => release = () => { instead = null; answer(send(path, init)); })`)
		d.until("flying === 1 && window.release && (from = polls)")
		d.click("#fault form button", "#set", "Set for all clients")
		d.click("#clear", "#cleared", "Cleared")
		d.do("release()")
		d.see("#standing", "code=503")
		d.until("polls > from + 1 && most === 1")
		// A page that cannot be seen lets its timer run out, and polls when it is seen again.
		const hide = `Object.defineProperty(document, "hidden", {value: %v, configurable: true}); from = polls;
			document.dispatchEvent(new Event("visibilitychange"));`
		d.do(fmt.Sprintf(hide, true))
		d.until("timers.size === 0 && flying === 0")
		d.send("GET /v1/pets", "")
		d.click("#end", "#set", "Ended", "#count", "None of clients yet")
		d.until("timers.size === 0 && flying === 0 && polls === from")
		d.do(fmt.Sprintf(hide, false))
		d.see("#count", "1 of clients", "#standing", "No fault")
	})
	run("a thousand requests: what is new is added, what is open stays open, and where it is", func(d *desk) {
		for i := range 1010 {
			d.send(fmt.Sprint("GET /v1/pets/", i), "")
		}
		d.see("li", "/v1/pets/1009", "#count",
			"1000 of clients, 0 of this page. Older ones are gone: the service keeps 1000 of 1012.")
		d.click("li summary", "li h3 ~ h3 + pre", "/v1/pets/1009")
		d.watch("ol")
		d.do(`entry = document.querySelector("li"), place = entry.getBoundingClientRect().top, slow = 0;
			new PerformanceObserver(list => slow = Math.max(slow, ...list.getEntries().map(task => task.duration))).
				observe({type: "longtask"})`)
		d.send("GET /v1/pets/1010", "")
		d.see("li", "/v1/pets/1010", "#count", "Older ones are gone: the service keeps 1000 of 1013.")
		d.until(`seen.length === 2 && seen[0].addedNodes.length === 1 && seen[1].removedNodes.length === 1`)
		d.until(`entry.querySelector("[open] pre") && entry.contains(document.activeElement)`)
		d.until(`Math.abs(entry.getBoundingClientRect().top - place) < 2 && slow < 300`) // px, ms
	})
	run("keyboard alone", func(d *desk) {
		const tab, back, enter = "\ue004", "\ue008\ue004", "\ue007"
		d.open("/")
		d.send("GET /v1/pets/1", "")
		for _, step := range [][]string{ // a key that leads there, what is typed, and what is seen
			{tab, "#key", d.key + enter, "#state", "Live"},
			{tab, "[name=times]", "3" + enter, "#standing", "code=503, times=3"},
			{tab, "#name", "Ida" + enter, "#added", "Added as /v1/pets/1."},
			{tab, "#name", "Tom" + enter, "tbody tr:last-child", "2 Tom 1 none"},
			{tab, "#all", " ", "li:last-child", "this page"},
			{tab, "li:not(.own) summary", enter, "li:not(.own) pre", "GET /v1/pets/1"},
			{back, "#end", enter, "#standing", "No fault"},
		} {
			for n := 0; d.do("return document.activeElement.matches(arguments[0])", step[1]) != true; n++ {
				if d.press(step[0]); n == 60 {
					d.Fatalf("%s is out of reach of the keyboard", step[1])
				}
			}
			d.press(step[2])
			d.see(step[3:]...)
		}
	})
	run("phone", func(d *desk) {
		d.screen(390, "light")
		d.click("#samples", "#added", "Added 25 pets.")
		d.send("PUT /__admin/fault?code=503&delay=0.01&retry-after=3600&operation=createPet&skip=20&times=2000", "")
		d.send("GET /v1/pets?"+strings.Repeat("x", 900), "")
		d.see("#count", "1 of clients")
		d.do("scrollTo(0, 0)")
		d.until(`document.querySelector("nav").getBoundingClientRect().bottom === innerHeight`) // in a thumb's reach
		d.click(`nav [href="#requests"]`, "#standing", "code=503")
		d.until(`(({top, bottom}) => top > strip.getBoundingClientRect().bottom && bottom < innerHeight - 60)(
			document.querySelector("#requests h2").getBoundingClientRect())`)
		d.click("li summary", "li h3 ~ h3 + pre", "GET /v1/pets?xxx")
		d.until("document.documentElement.scrollWidth <= 390 && strip.getBoundingClientRect().top === 0")
	})
	run("picture and axe", func(d *desk) { // a client sends a wrong body, and adds a pet in vain
		client := []string{"Content-Type: application/json", "User-Agent: shop/2.1"}
		d.screen(1500, "light")
		d.click("#samples", "#added", "Added 25 pets.")
		d.send("GET /v1/pets?status=available", "", client[1])
		d.send("POST /v1/pets", `{"name":"Ida","categoryId":"7"}`, client...)
		d.fill("[name=times]", "3", "[name=operation]", "createPet")
		d.click("#fault form button", "#set", "Set for all clients")
		d.send("POST /v1/pets", `{"name":"Ida","categoryId":7}`, client...)
		d.send("POST /v1/pets", `{"name":"Ida","categoryId":7}`, client...)
		d.see("#met", "Requests met: 2, struck: 2, to come: 1.", "li", "POST /v1/pets fault: code=503 503")
		d.click("li:nth-child(3) summary", "li:nth-child(3) pre", `{"name":"Ida","categoryId":"7"}`)
		d.do("document.activeElement.blur(); scrollTo(0, 0)")
		shot := d.command("/goog/cdp/execute", map[string]any{"cmd": "Page.captureScreenshot", "params": map[string]any{
			"clip": map[string]any{"x": 0, "y": 0, "width": 1500, "height": 1000, "scale": 0.8}}})
		picture, err := base64.StdEncoding.DecodeString(shot.(map[string]any)["data"].(string))
		if file := os.Getenv("PETSTORE_PICTURE"); file != "" && err == nil {
			err = os.WriteFile(file, picture, 0o666)
		}
		if err != nil || len(picture) > 150_000 {
			d.Errorf("a picture of %d bytes, %v", len(picture), err)
		}
		axe, err := os.ReadFile(os.Getenv("PETSTORE_AXE"))
		if err != nil {
			d.Skip("PETSTORE_AXE: ", err)
		}
		check := func(state string) {
			for i := range 4 {
				width, scheme := []int{1200, 390}[i/2], []string{"light", "dark"}[i%2]
				d.screen(width, scheme)
				got := d.async(string(axe) + `; axe.run().then(({violations, passes}) => done([passes.length > 10,
					...violations.map(v => v.id + " " + v.nodes.map(node => node.html).join())].join("\n")), done)`)
				if got != "true" {
					d.Errorf("%s, %d px, %s: %v", state, width, scheme, got)
				}
			}
		}
		d.fill("[name=code]", "777")
		d.click("#fault form button", "#fault small.bad", "code is 777")
		check("busy, with an error")
		d.click("#reset button", "#listed", "There are no pets yet.", "#count", "None of clients yet")
		check("empty")
		d.open("/")
		d.see("#state", "A key is needed.")
		check("the door")
	})
}

// desk is the page of a service in a browser: a headless Chromium, driven through ChromeDriver (W3C WebDriver).
type desk struct {
	*testing.T
	session, base, key string // the URL of the browser; the URL and the key of the service
}

// startBrowser returns the URL of a session. It skips the test where there is no ChromeDriver.
func startBrowser(t *testing.T) string {
	profile := t.TempDir() // which is removed after what t.Cleanup does below
	driver := exec.Command("chromedriver", "--port=0")
	stdout, _ := driver.StdoutPipe()
	if err := driver.Start(); err != nil {
		t.Skip(err)
	}
	var port []string
	for in := bufio.NewScanner(stdout); port == nil && in.Scan(); { // it ends if chromedriver does
		port = regexp.MustCompile(`started successfully on port (\d+)`).FindStringSubmatch(in.Text())
	}
	if port == nil {
		t.Fatal("chromedriver does not start")
	}
	url := "http://127.0.0.1:" + port[1]
	t.Cleanup(func() { http.Get(url + "/shutdown"); io.Copy(io.Discard, stdout); driver.Wait() })
	d := &desk{T: t, session: url + "/session"}
	args := []string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-lcd-text", "--hide-scrollbars",
		"--window-size=1200,900", "--disable-background-networking", "--user-data-dir=" + profile}
	return d.session + "/" + d.command("", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"goog:loggingPrefs": map[string]string{"browser": "ALL"}, "goog:chromeOptions": map[string]any{"args": args},
	}}}).(map[string]any)["sessionId"].(string)
}

// command sends a command to the browser, and returns its value.
func (d *desk) command(path string, params any) any {
	d.Helper()
	body, _ := json.Marshal(params)
	resp, err := http.Post(d.session+path, "application/json", strings.NewReader(string(body)))
	if err != nil {
		d.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct{ Value any }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != 200 {
		d.Fatalf("%s %.300s: %v %.300v", path, body, err, answer.Value)
	}
	return answer.Value
}

// open opens the page anew, at a path or fragment. The tab has forgotten the key.
func (d *desk) open(path string) {
	d.do("try { sessionStorage.clear() } catch {}") // fails in an empty tab
	d.command("/url", map[string]string{"url": "about:blank"})
	d.command("/url", map[string]string{"url": d.base + path})
}

// do returns what a script in the page returns.
func (d *desk) do(script string, args ...any) any {
	d.Helper()
	return d.command("/execute/sync", map[string]any{"script": script, "args": append([]any{}, args...)})
}

// async returns what a script in the page calls done with. when acts once a condition holds, or after ten seconds.
func (d *desk) async(script string, args ...any) any {
	d.Helper()
	const when = `const done = [...arguments].pop(), end = Date.now() + 10_000, when = (condition, act) =>
		condition() || Date.now() > end ? act() : requestAnimationFrame(() => when(condition, act));`
	return d.command("/execute/async", map[string]any{"script": when + script, "args": append([]any{}, args...)})
}

// until waits until an expression is true in the page.
func (d *desk) until(expression string, args ...any) {
	d.Helper()
	if d.async("const holds = () => Boolean("+expression+"); when(holds, () => done(holds()));", args...) != true {
		d.Fatalf("it does not come true: %s %v", expression, args)
	}
}

// see waits, for each selector, until its first element shows the text behind it, or more. White space shows as one
// space. An element that is hidden, missing or empty shows "".
func (d *desk) see(selectorsAndTexts ...string) {
	d.Helper()
	for i := 0; i < len(selectorsAndTexts); i += 2 {
		selector, text := selectorsAndTexts[i], selectorsAndTexts[i+1]
		got := d.async(`const [selector, text] = arguments, shown = () => {
				const element = document.querySelector(selector);
				return element?.checkVisibility() ? element.innerText.replace(/\s+/g, " ") : "";
			};
			when(() => text ? shown().includes(text) : !shown(), () => done(shown()));`, selector, text).(string)
		if text == "" && got != "" || !strings.Contains(got, text) {
			d.Fatalf("%s shows %q, want %q", selector, got, text)
		}
	}
}

// click clicks on an element, and sees what comes of it.
func (d *desk) click(selector string, see ...string) {
	d.Helper()
	element := d.do(`const element = document.querySelector(arguments[0]);
		element.scrollIntoView({block: "center"});
		return element`, selector)
	for _, id := range element.(map[string]any) {
		d.command("/element/"+id.(string)+"/click", struct{}{})
	}
	d.see(see...)
}

// fill puts text into fields, or selects the options that have it.
func (d *desk) fill(selectorsAndTexts ...string) {
	d.Helper()
	d.do(`for (let i = 0; i < arguments[0].length; i += 2) {
			const field = document.querySelector(arguments[0][i]);
			field.value = arguments[0][i + 1];
			field.dispatchEvent(new Event("change"));
		}`, selectorsAndTexts)
}

// press types where the focus is. Keys such as Tab are those of WebDriver; all are held down until the last.
func (d *desk) press(keys string) {
	var down, up []map[string]string
	for _, key := range keys {
		down = append(down, map[string]string{"type": "keyDown", "value": string(key)})
		up = append(up, map[string]string{"type": "keyUp", "value": string(key)})
	}
	d.command("/actions", map[string]any{"actions": []any{
		map[string]any{"type": "key", "id": "keys", "actions": append(down, up...)}}})
}

// screen sets the width of the window, in pixels, and the color scheme, light or dark.
func (d *desk) screen(width int, scheme string) {
	size := map[string]any{"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": false}
	media := map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}
	d.command("/goog/cdp/execute", map[string]any{"cmd": "Emulation.setDeviceMetricsOverride", "params": size})
	d.command("/goog/cdp/execute", map[string]any{"cmd": "Emulation.setEmulatedMedia", "params": media})
}

// watch collects the changes of an element in seen.
func (d *desk) watch(selector string) {
	d.do(`seen = []; new MutationObserver(all => seen.push(...all)).observe(document.querySelector(arguments[0]),
		{subtree: true, childList: true, attributes: true, characterData: true});`, selector)
}

// hook counts the polls and the timers of the page, makes the second between two polls short, and lets a test answer
// requests instead of the service.
func (d *desk) hook() {
	d.do(`const send = fetch, later = setTimeout, drop = clearTimeout;
		Object.assign(window, {polls: 0, flying: 0, most: 0, instead: null, timers: new Set(), pauses: new Set()});
		window.fetch = async (path, init) => {
			const poll = path === "/__admin/requests" && init.method === "GET";
			if (poll) most = Math.max(most, ++flying), polls++;
			try { return await (instead?.(path, init, send) || send(path, init)); } finally { if (poll) flying--; }
		};
		window.setTimeout = (act, pause) => {
			const timer = later(() => { timers.delete(timer); act(); }, pause === 1000 ? 10 : pause);
			return pauses.add(pause), timers.add(timer), timer;
		};
		window.clearTimeout = timer => { timers.delete(timer); drop(timer); };`)
}

// send is a request of another client, "GET /v1/pets". It returns the body of the answer, "" if there is none.
func (d *desk) send(request, body string, headers ...string) string {
	d.Helper()
	method, path, _ := strings.Cut(request, " ")
	req, _ := http.NewRequest(method, d.base+path, strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer "+d.key)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	return string(answer)
}

// Helpers: scripts. A script is requests and their answers, as in
//
//	# limit 0 is refused
//	GET /v1/pets?limit=0
//	400 invalid_parameter: limit is 0; it must be an integer from 1 to 100
//
//	POST /v1/pets {"name":"Rex","categoryId":7}
//	Content-Type: application/json
//	201 {"id":1,"name":"Rex","categoryId":7}
//	Location: /v1/pets/1
//
//	journal
//	GET /v1/pets?limit=0 400
//	POST /v1/pets 201 {"name":"Rex","categoryId":7}
//
// A stanza may also stand on one line, with -> between its parts:
//
//	POST /v1/pets {} -> Prefer: code=503 -> 503 service_unavailable: … -> Retry-After: 1
//
// A line with # begins a subtest of that name, from a reset service. What
// stands before the first one belongs to the test itself, without a reset. Tabs
// at the beginning of a line do not count. A blank line ends a stanza.
//
// A request is a method, a target and, behind the next space, the whole body;
// then come headers. Host, the key and Content-Length are added where they are
// not given. "Authorization: -" sends no key. "Transfer-Encoding: chunked" sends
// the body as one chunk.
//
// An answer is a status and the whole body but the newline that ends it, or
// code and message for an Error; then come all headers, in any order. Those that
// every answer has are left out where they are as they must be: Content-Type for
// JSON, the Content-Length of the body, and Date. "Connection: close" stands
// where the service then closes the connection. A header that should be there
// and is not has the value "(none)". An answer that breaks off ends with …, and
// 000 is a connection that closes without an answer.
//
// In a subtest without /__admin and journal, where nothing counts requests, each
// GET is sent again as HEAD, which must get the same status and headers.
//
// "journal" compares the journal: method, url, status and, unless they are
// empty, fault and body. "total N" comes first if that is not the number of lines.
//
// {x*100} is 100 times x, with escapes as in a Go string: {\n*1}. Other words in
// braces are in words or, each followed by its meaning, in pairs.
func (s *service) play(t *testing.T, script string, pairs ...string) {
	t.Helper()
	script = regexp.MustCompile(`(?m)^.* -> .*$`).ReplaceAllStringFunc(script, func(line string) string {
		return strings.ReplaceAll(line, " -> ", "\n") + "\n"
	})
	script = words.Replace(strings.NewReplacer(pairs...).Replace(script))
	script = regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(script, "")
	parts := regexp.MustCompile(`(?m)^# `).Split(script, -1)
	s.playStanzas(t, parts[0], false)
	for _, part := range parts[1:] {
		name, stanzas, _ := strings.Cut(part, "\n")
		t.Run(name, func(t *testing.T) {
			t.Helper()
			s.playStanzas(t, "POST /__admin/reset\n204", false)
			s.playStanzas(t, stanzas, !regexp.MustCompile(`/__admin|(?m)^journal$`).MatchString(stanzas))
		})
	}
}

// words are what several scripts say.
var words = strings.NewReplacer(
	"{deprecated}", `Deprecation: @1795132800
		Link: </v1/pets>; rel="successor-version"
		Sunset: Thu, 05 Dec 2030 00:00:00 GMT`,
	"{no key}", `401 unauthorized: send the API key in one header: Authorization: Bearer <API_KEY>
		WWW-Authenticate: Bearer realm="petstore"`,
	"{wrong key}", `401 invalid_token: this is not the API key that the service was started with
		WWW-Authenticate: Bearer realm="petstore", error="invalid_token"`,
	"{pet}", `{"name":"a","categoryId":1}`,
	"{made}", `201 {"id":1,"name":"a","categoryId":1}
		Location: /v1/pets/1`,
	"{made pet}", `{"id":1,"name":"a","categoryId":1}`,
	"{teapot}", "418 im_a_teapot: this error is simulated, as was asked for",
	"{simulated}", ": this error is simulated, as was asked for",
	"{no path}", "404 not_found: no such path; the pets are at /v1/pets, without a slash at the end",
)

// each plays a script for each row of a table, in a subtest of its name and from
// a reset service. Rows end with the line or with |. {1} and {2} stand in the
// script for the columns of the row, which have -> between them.
func (s *service) each(t *testing.T, table, script string, pairs ...string) {
	t.Helper()
	table = strings.NewReplacer(pairs...).Replace(strings.ReplaceAll(strings.TrimSpace(table), "\n", " | "))
	for _, row := range strings.Split(table, " | ") {
		columns := append(strings.Split(strings.TrimSpace(row), " -> "), "")
		stanzas := strings.NewReplacer("{1}", columns[0], "{2}", columns[1]).Replace(script)
		s.play(t, "# "+columns[0]+"\n"+stanzas, pairs...)
	}
}

func (s *service) playStanzas(t *testing.T, stanzas string, alsoHead bool) {
	t.Helper()
	for _, stanza := range strings.Split(stanzas, "\n\n") {
		lines := strings.Split(strings.Trim(stanza, "\n"), "\n")
		answer := slices.IndexFunc(lines, regexp.MustCompile(`^\d{3}( |$)`).MatchString)
		switch request := strings.Join(lines[:max(answer, 0)], "\n"); {
		case lines[0] == "":
		case lines[0] == "journal":
			same(t, "journal", s.journalLines(t), expand(strings.Join(lines[1:], "\n")))
		case answer < 1:
			t.Errorf("a request without an answer, or an answer without a request:\n%s", stanza)
		default:
			get := s.do(t, request)
			same(t, request, get.String(), written(lines[answer:]))
			if alsoHead && !get.broken && strings.HasPrefix(request, "GET ") {
				head := s.do(t, "HEAD"+request[3:])
				get.Request.Method, get.body = "HEAD", ""
				same(t, "HEAD"+request[3:], head.String(), get.String())
				same(t, "the length of HEAD"+request[3:], fmt.Sprint(head.ContentLength), fmt.Sprint(get.ContentLength))
			}
		}
	}
}

// same compares what came of a request with what must come of it.
func same(t testing.TB, request, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%.2000s\n--- got:\n%.2000s\n--- want:\n%.2000s", request, got, want)
	}
}

// expand replaces each {x*100} by 100 times x.
func expand(text string) string {
	repeated := regexp.MustCompile(`\{([^{}]+)\*(\d+)\}`)
	return repeated.ReplaceAllStringFunc(text, func(match string) string {
		m := repeated.FindStringSubmatch(match)
		x, _ := strconv.Unquote(`"` + m[1] + `"`)
		n, _ := strconv.Atoi(m[2])
		return strings.Repeat(x, n)
	})
}

// written returns an answer as a script has it in the form of reply.String.
func written(lines []string) string {
	status, body, _ := strings.Cut(expand(lines[0]), " ")
	var headers []string
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(expand(line), ":")
		headers = append(headers, "\n"+http.CanonicalHeaderKey(name)+": "+strings.TrimSpace(value))
	}
	slices.Sort(headers)
	return strings.TrimSpace(status+" "+shortError(status, body)) + strings.Join(headers, "")
}

// shortError returns the code and message of a body that is exactly the Error
// of a status, and any other body as it is.
func shortError(status, body string) string {
	var e struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Status  int    `json:"status"`
	}
	json.Unmarshal([]byte(body), &e)
	if asJSON(e) == body && strconv.Itoa(e.Status) == status && e.Status >= 400 {
		return e.Code + ": " + e.Message
	}
	return body
}

// asJSON returns v as JSON on one line.
func asJSON(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n")
}

// Helpers: requests and answers.

// do sends a request that is written as in a script, and reads the answer. The
// connection stays open for the next one.
func (s *service) do(t testing.TB, request string) reply {
	t.Helper()
	line, headers, _ := strings.Cut(request, "\n")
	parts := append(strings.SplitN(expand(line), " ", 3), "", "")
	head, body, given := parts[0]+" "+parts[1]+" HTTP/1.1\n", parts[2], http.Header{}
	for _, line := range strings.Split(expand(headers), "\n") {
		name, value, _ := strings.Cut(line, ":")
		given.Add(name, strings.TrimSpace(value))
		if line != "" && line != "Authorization: -" {
			head += line + "\n"
		}
	}
	if given["Host"] == nil {
		head += "Host: petstore\n"
	}
	if given["Authorization"] == nil {
		head += "Authorization: Bearer " + s.key + "\n"
	}
	if given.Get("Transfer-Encoding") == "chunked" {
		if body != "" {
			body = fmt.Sprintf("%x\r\n%s\r\n", len(body), body)
		}
		body += "0\r\n\r\n"
	} else if body != "" && given["Content-Length"] == nil {
		head += fmt.Sprintf("Content-Length: %d\n", len(body))
	}
	c, err := s.connect()
	if err != nil {
		t.Errorf("%.2000s\n%v", request, err)
		return noReply("")
	}
	c.send(head+"\n", body)
	r := c.read()
	if r.broken || r.Close {
		c.Close()
	} else {
		s.idle.Put(c)
	}
	return r
}

// connection is a connection to the service.
type connection struct {
	*net.TCPConn
	in     *bufio.Reader
	method string // of the request
}

// connect returns a connection that is not in use, and has patience.
func (s *service) connect() (*connection, error) {
	c, _ := s.idle.Get().(*connection)
	if c == nil {
		conn, err := net.DialTimeout("tcp", s.addr, patience)
		if err != nil {
			return nil, err
		}
		c = &connection{TCPConn: conn.(*net.TCPConn), in: bufio.NewReader(conn)}
	}
	return c, c.SetDeadline(time.Now().Add(patience))
}

// dial opens a connection until the test ends, and sends what is given, with
// CR LF for each \n.
func (s *service) dial(t testing.TB, send string) *connection {
	t.Helper()
	c, err := (&service{addr: s.addr}).connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.send(send, "")
	return c
}

// leave sends what is given, and closes the connection.
func (s *service) leave(t *testing.T, send string) {
	c, err := (&service{addr: s.addr}).connect()
	if err != nil {
		t.Error(err)
		return
	}
	c.send(send, "")
	c.Close()
}

// send sends head, with CR LF for each \n, and body. That may fail, as the
// service need not read it all.
func (c *connection) send(head, body string) {
	c.method, _, _ = strings.Cut(head, " ")
	io.WriteString(c, strings.ReplaceAll(head, "\n", "\r\n")+body)
}

// rest returns all answers that come until the service closes the connection,
// as a script has them: with a blank line between two, and 000 for none.
func (c *connection) rest() string {
	r := c.read()
	answers := r.String()
	for !r.broken {
		if r = c.read(); r.StatusCode != 0 || r.body != "" {
			answers += "\n\n" + r.String()
		}
	}
	return answers
}

// reply is an answer that has been read.
type reply struct {
	*http.Response
	body   string // all of it, and what is wrong with it
	broken bool   // no answer, or none that is whole
}

func noReply(why string) reply {
	return reply{&http.Response{Header: http.Header{}, Request: &http.Request{}}, why, true}
}

// read reads the next answer.
func (c *connection) read() reply {
	if _, err := c.in.Peek(1); os.IsTimeout(err) {
		return noReply(err.Error())
	} else if err != nil {
		return noReply("")
	}
	resp, err := http.ReadResponse(c.in, &http.Request{Method: c.method})
	if err != nil {
		return noReply(err.Error())
	}
	body, err := io.ReadAll(resp.Body)
	r := reply{resp, string(body), err != nil}
	if r.Close && !r.broken {
		c.CloseWrite() // or the service may wait for the rest of the request
		if more, err := io.ReadAll(c.in); len(more) > 0 || os.IsTimeout(err) {
			r.body += fmt.Sprintf("and then, where the connection should close: %q %v", more, err)
		}
	}
	return r
}

// String returns the answer as a script has it, with sorted headers.
func (r reply) String() string {
	h, end := r.Header.Clone(), ""
	if r.StatusCode >= 200 {
		date, _ := http.ParseTime(h.Get("Date"))
		if time.Since(date).Abs() > patience {
			date = time.Time{}
		}
		usual := map[string]string{"Date": date.UTC().Format(http.TimeFormat), "Content-Type": "", "Content-Length": ""}
		if r.StatusCode != 204 {
			usual["Content-Type"], usual["Content-Length"] = "application/json", strconv.Itoa(len(r.body))
		}
		if r.Request.Method == "HEAD" && r.ContentLength >= 0 {
			usual["Content-Length"] = h.Get("Content-Length")
		}
		for name, value := range usual {
			if h.Get(name) == value {
				h.Del(name)
			} else if h[name] == nil {
				h.Set(name, "(none)")
			}
		}
		if r.broken {
			end = "…"
		} else if r.body != "" && !strings.HasSuffix(r.body, "\n") {
			end = " (without a newline at the end)"
		}
	}
	if r.Close {
		h.Set("Connection", "close")
	}
	var lines []string
	for name, values := range h {
		for _, value := range values {
			lines = append(lines, "\n"+name+": "+value)
		}
	}
	slices.Sort(lines)
	status := fmt.Sprintf("%03d", r.StatusCode)
	line := strings.TrimSpace(status + " " + shortError(status, strings.TrimSuffix(r.body, "\n")))
	return line + end + strings.Join(lines, "")
}

// pets returns the pets of the page that a query asks for, and of all pages
// that follow. Their ids must ascend.
func (s *service) pets(t testing.TB, query string) (all []Pet) {
	t.Helper()
	for target, more := "/v1/pets"+query, true; more; {
		var pets []Pet
		page := s.do(t, "GET "+target)
		if err := json.Unmarshal([]byte(page.body), &pets); err != nil {
			t.Errorf("%s: %v %.500s", target, err, page)
		}
		all = append(all, pets...)
		link, _ := strings.CutPrefix(page.Header.Get("Link"), "<")
		target, more = strings.CutSuffix(link, `>; rel="next"`)
	}
	for i := 1; i < len(all); i++ {
		if all[i-1].ID >= all[i].ID {
			t.Errorf("%s: pet %d follows pet %d", query, all[i].ID, all[i-1].ID)
		}
	}
	return all
}

// journaled is a request in the journal.
type journaled struct {
	Time    string            `json:"time"`
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Status  int               `json:"status"`
	Fault   string            `json:"fault,omitempty"`
}

// journal returns the journal, and checks the form that it always has: a line
// for each request, members in order, and no key that is a secret.
func (s *service) journal(t testing.TB) (requests []journaled, total int) {
	t.Helper()
	r := s.do(t, "GET /__admin/requests")
	var journal struct {
		Requests []journaled
		Meta     struct{ Total int }
	}
	if err := json.Unmarshal([]byte(r.body), &journal); err != nil || r.StatusCode != 200 {
		t.Errorf("the journal: %v\n%.5000s", err, r)
	}
	form := `{"requests":[`
	for i, request := range journal.Requests {
		form += strings.Repeat(",", min(i, 1)) + "\n" + asJSON(request)
		if _, err := time.Parse("2006-01-02T15:04:05.000Z", request.Time); err != nil {
			t.Error(err)
		}
	}
	form += fmt.Sprintf("\n],\"meta\":{\"total\":%d}}\n", journal.Meta.Total)
	r.body = strings.ReplaceAll(r.body, `\ufffd`, "\ufffd") // what is no UTF-8 is escaped
	same(t, "the form of the journal", r.body, form)
	if len(s.key) >= 8 && strings.Contains(r.body, s.key) {
		t.Errorf("the journal shows the key:\n%.5000s", r.body)
	}
	return journal.Requests, journal.Meta.Total
}

// journalLines returns the journal as a script has it.
func (s *service) journalLines(t testing.TB) string {
	t.Helper()
	var lines []string
	requests, total := s.journal(t)
	if total != len(requests) {
		lines = append(lines, fmt.Sprint("total ", total))
	}
	for _, r := range requests {
		lines = append(lines, fmt.Sprint(r.Method, " ", r.URL, " ", r.Status))
		for _, part := range []string{r.Fault, r.Body} {
			if part != "" {
				lines[len(lines)-1] += " " + part
			}
		}
	}
	return strings.Join(lines, "\n")
}

// Helpers: starting and stopping a service.

// testKey is the API key of the services that the tests start.
const testKey = "correct-horse"

// service is a petstore that runs.
type service struct {
	addr   string        // host:port
	key    string        // its API key
	stderr *lockedBuffer // what it has written there so far
	cancel func()        // asks it to stop, as SIGTERM does
	stop   func()        // stops it, and checks how it ends
	begun  chan struct{} // of serve: gets one for each request whose head has come
	idle   sync.Pool     // connections that are not in use
}

// petstore is how a service is started: in this process, by a call of run.
type petstore struct {
	key    string    // with none, the service makes one
	stdin  io.Reader // nil is empty
	stderr io.Writer // nil is the service's stderr
	args   []string
}

// start runs the service with testKey on a free port until the test ends. It
// must then exit with 0, and have printed nothing but its base URL.
func start(t testing.TB, args ...string) *service {
	t.Helper()
	return petstore{key: testKey, args: args}.start(t)
}

func (p petstore) start(t testing.TB) *service {
	t.Helper()
	s := &service{key: p.key, stderr: new(lockedBuffer)}
	if p.stderr == nil {
		p.stderr = s.stderr
	}
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(context.Background())
	t.Cleanup(s.cancel)
	p.args = append([]string{"-addr", "127.0.0.1:0"}, p.args...)
	out, w := io.Pipe()
	exit := make(chan int, 1)
	go func() {
		exit <- p.run(ctx, w)
		w.Close()
	}()
	stdout := bufio.NewReader(out)
	s.addr = address(t, stdout, s.stderr)
	if p.key == "" {
		s.key = regexp.MustCompile(`[0-9a-f]{32}`).FindString(s.stderr.String())
	}
	s.stop = sync.OnceFunc(func() {
		s.cancel()
		if rest := within(t, "the end of stdout", func() string { return all(stdout) }); rest != "" {
			t.Errorf("stdout goes on behind the base URL: %q", rest)
		}
		if code := <-exit; code != 0 {
			t.Errorf("exit code %d, want 0\n%v", code, s.stderr)
		}
	})
	t.Cleanup(s.stop)
	return s
}

// run calls run with what p has and an environment that has only the key.
func (p petstore) run(ctx context.Context, stdout io.Writer) int {
	getenv := func(name string) string { return map[string]string{"PETSTORE_API_KEY": p.key}[name] }
	if p.stdin == nil {
		p.stdin = strings.NewReader("")
	}
	return run(ctx, p.args, getenv, p.stdin, stdout, p.stderr)
}

// outcome returns what comes of a command line that does not serve.
func (p petstore) outcome(t testing.TB) (code int, stdout, stderr string) {
	t.Helper()
	var out, log lockedBuffer
	p.stderr = &log
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	code = within(t, "the end of the service", func() int { return p.run(ctx, &out) })
	return code, out.String(), log.String()
}

// address waits for the base URL on stdout, and returns its host:port.
func address(t testing.TB, stdout *bufio.Reader, stderr fmt.Stringer) string {
	t.Helper()
	line := within(t, "the base URL", func() string { line, _ := stdout.ReadString('\n'); return line })
	m := regexp.MustCompile(`^http://(127\.0\.0\.1:[1-9]\d*)/v1\n$`).FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("stdout is %q, want the base URL\n%v", line, stderr)
	}
	return m[1]
}

// serve serves a with a server that change has changed. What a does not have
// is filled in: testKey, a log that nobody reads, and no pets.
func serve(t testing.TB, a *api, change func(*http.Server)) *service {
	t.Helper()
	a.key = cmp.Or(a.key, testKey)
	if a.log == nil {
		a.log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if a.seed == nil {
		a.seed = newStore(0)
	}
	s := &service{key: a.key, begun: make(chan struct{}, 1000)}
	srv := newServer(a)
	srv.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateActive {
			select {
			case s.begun <- struct{}{}:
			default: // nobody waits for so many
			}
		}
	}
	if change != nil {
		change(srv)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = ln.Addr().String()
	go srv.Serve(errorListener{ln.(*net.TCPListener)})
	t.Cleanup(func() { srv.Close() })
	return s
}

// handlerOf returns a service without a connection, for requests by the
// thousand. It is stopping already, so that no delay takes its time.
func handlerOf(seed *store) http.Handler {
	stopping := make(chan struct{})
	close(stopping)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	return newServer(&api{key: testKey, log: log, quiet: true, seed: seed, stopping: stopping}).Handler
}

// ask sends a request, as "GET /v1/pets", to a handler without a connection. The
// reply is broken if the handler wants the connection closed.
func ask(h http.Handler, request, prefer, body string) (r reply) {
	request, query, _ := strings.Cut(request, "?")
	method, path, _ := strings.Cut(request, " ")
	req, w := httptest.NewRequest(method, path, strings.NewReader(body)), httptest.NewRecorder()
	req.URL.RawQuery = query
	req.Header = http.Header{"Authorization": {"Bearer " + testKey}, "Prefer": {prefer}}
	defer func() {
		v := recover()
		if v != nil && v != http.ErrAbortHandler {
			panic(v)
		}
		r = reply{w.Result(), w.Body.String(), v != nil}
		r.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat)) // as net/http does
		if r.Request = req; r.broken && r.body == "" {
			r = noReply("")
		}
	}()
	h.ServeHTTP(w, req)
	return r
}

// Helpers: processes.

// TestMain makes of the test binary the service itself, for child, or the bare
// server that benchmarks compare it with.
//
// The tests run east of UTC, where a Date in local time is a wrong one.
func TestMain(m *testing.M) {
	time.Local = time.FixedZone("east", 9*60*60)
	switch os.Getenv("PETSTORE_TEST_CHILD") {
	case "petstore":
		main()
	case "bare":
		serveBare()
	}
	os.Exit(m.Run())
}

// child is the command of a service in a process of its own, not yet started.
func child(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "PETSTORE_TEST_CHILD=petstore", "PETSTORE_API_KEY="+testKey)
	return cmd
}

// process is a service in a process of its own. It is killed when the test ends.
type process struct {
	*service
	cmd    *exec.Cmd
	stdin  io.WriteCloser // stays open
	stdout *bufio.Reader
}

// launch is start in a process of its own. What it must do at its end, the test
// has to check.
func launch(t testing.TB, args ...string) *process {
	t.Helper()
	return launchCommand(t, child(append([]string{"-addr", "127.0.0.1:0"}, args...)...))
}

// launchCommand is launch for a command that child has made, and a test changed.
func launchCommand(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{service: &service{key: testKey, stderr: new(lockedBuffer)}, cmd: cmd}
	if cmd.Stderr == nil {
		cmd.Stderr = p.service.stderr
	}
	p.stdin, _ = p.cmd.StdinPipe()
	stdout, _ := p.cmd.StdoutPipe()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
	})
	p.stdout = bufio.NewReader(stdout)
	p.addr = address(t, p.stdout, p.service.stderr)
	return p
}

// wait waits for the end of the process, and tells how it ended. On stdout
// there must have been nothing but the base URL.
func (p *process) wait(t testing.TB) error {
	t.Helper()
	return within(t, "the end of the process", func() error {
		if rest := all(p.stdout); rest != "" {
			t.Errorf("stdout goes on behind the base URL: %q", rest)
		}
		return p.cmd.Wait()
	})
}

// memory returns the resident memory of the process in MiB: VmRSS is what it
// has now, VmHWM the most that it has had.
func (p *process) memory(t testing.TB, which string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Skip("resident memory is read from /proc")
	}
	kib, _ := strconv.Atoi(regexp.MustCompile(which + `:\s*(\d+) kB`).FindStringSubmatch(string(status))[1])
	return kib >> 10
}

// Helpers: waiting.

// patience is how long a test waits for what must come. Only a test that fails
// waits that long.
const patience = 30 * time.Second

// within returns what f returns, and fails the test if that takes too long. f
// runs in a goroutine of its own, and so must not end the test.
func within[T any](t testing.TB, what string, f func() T) T {
	t.Helper()
	result := make(chan T, 1)
	go func() { result <- f() }()
	select {
	case v := <-result:
		return v
	case <-time.After(patience):
		t.Fatalf("%s takes longer than %v", what, patience)
		panic("unreachable")
	}
}

// eventually waits until f holds, where there is nothing to wait for but that.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s does not happen in %v", what, patience)
		}
	}
}

// held waits until the standing fault has met n requests. If it has a delay,
// they are being held up then: a reset or a stop finds them waiting.
func (s *service) held(t testing.TB, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("the fault's meeting %d requests", n), func() bool {
		return strings.Contains(s.do(t, "GET /__admin/fault").body, fmt.Sprintf(`"met":%d}`, n))
	})
}

// together calls f n times at once, with 0 to n-1, and waits for all.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	wg.Add(n)
	for i := range n {
		go func() {
			defer wg.Done()
			f(i)
		}()
	}
	wg.Wait()
}

// Helpers: files and buffers.

// tempFile writes a file, and returns its path.
func tempFile(t testing.TB, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pets.json")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// all returns what is left of r.
func all(r io.Reader) string {
	b, _ := io.ReadAll(r)
	return string(b)
}

// lockedBuffer is a bytes.Buffer that many goroutines may use.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Helpers: api/openapi.json.

// parsed returns what JSON stands for.
func parsed(text string) (v any) {
	json.Unmarshal([]byte(text), &v)
	return v
}

// described is an operation in api/openapi.json, or a part of it, as far as a
// test needs it.
type described struct {
	OperationID                             string
	RequestBody, Schema, Items              *described
	Responses, Headers, Content, Properties map[string]described
	Type, Pattern                           string
	Enum                                    []string
	Required                                any // true for a header, and the names of members for a schema
	AllOf                                   []described
	Minimum, Maximum                        float64
	MaxItems                                int
	Example                                 any
}

// readOpenAPI returns the operations of api/openapi.json by operationId.
func readOpenAPI(t *testing.T) map[string]described {
	var file struct {
		Paths      map[string]map[string]described
		Components map[string]map[string]json.RawMessage
	}
	text, ref := string(openAPI), regexp.MustCompile(`\{\s*"\$ref": "#/components/(\w+)/(\w+)"\s*\}`)
	for err := json.Unmarshal(openAPI, &file); ref.MatchString(text); err = json.Unmarshal([]byte(text), &file) {
		text = ref.ReplaceAllStringFunc(text, func(found string) string {
			name := ref.FindStringSubmatch(found)
			return string(file.Components[name[1]][name[2]])
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	operations := map[string]described{}
	for _, methods := range file.Paths {
		for _, o := range methods {
			operations[o.OperationID] = o
		}
	}
	return operations
}

// allows tells whether v is as the schema says.
func (s *described) allows(v any) bool {
	if s == nil || slices.ContainsFunc(s.AllOf, func(part described) bool { return !part.allows(v) }) {
		return false
	}
	switch v := v.(type) {
	case string:
		return s.Type == "string" && regexp.MustCompile(s.Pattern).MatchString(v) &&
			(s.Enum == nil || slices.Contains(s.Enum, v))
	case float64:
		return s.Type == "integer" && v == math.Trunc(v) &&
			v >= cmp.Or(s.Minimum, math.Inf(-1)) && v <= cmp.Or(s.Maximum, math.Inf(1))
	case []any:
		return s.Type == "array" && len(v) <= s.MaxItems &&
			!slices.ContainsFunc(v, func(item any) bool { return !s.Items.allows(item) })
	case map[string]any:
		for name, value := range v {
			if property, known := s.Properties[name]; known && !property.allows(value) {
				return false
			}
		}
		names, _ := s.Required.([]any)
		return (s.Type == "object" || s.AllOf != nil) &&
			!slices.ContainsFunc(names, func(name any) bool { return v[name.(string)] == nil })
	}
	return false
}
