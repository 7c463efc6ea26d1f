package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"math/rand"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
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
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

// The tests stand in the order of the README, and what they share behind them. They are written as HTTP: see play.
// README: the API.

// The operations of the contract (section 4).
func TestContract(t *testing.T) {
	start(t).play(t, `
		GET, HEAD /v1/pets
		200 []

		POST /v1/pets {"name":"Rex","categoryId":7,"status":"available"}
		201 {"id":1,"name":"Rex","categoryId":7,"status":"available"}
		Location: /v1/pets/1

		POST /v1/pets {"name":"Tom","categoryId":9}
		201 {"id":2,"name":"Tom","categoryId":9}
		Location: /v1/pets/2

		GET, HEAD /v1/pets
		200 [{"id":1,"name":"Rex","categoryId":7,"status":"available"},{"id":2,"name":"Tom","categoryId":9}]

		GET, HEAD /v1/pets?status=available
		200 [{"id":1,"name":"Rex","categoryId":7,"status":"available"}]

		GET, HEAD /v1/pets?limit=1
		200 [{"id":1,"name":"Rex","categoryId":7,"status":"available"}]
		Link: </v1/pets?limit=1&after=1>; rel="next"

		GET, HEAD /v1/pets/2
		200 {"id":2,"name":"Tom","categoryId":9}`+deprecated+`

		GET, HEAD /v1/pets/3
		404 not_found`+deprecated+`

		GET, HEAD /v1/store/orders
		501 not_implemented
	`)
}

// deprecated is what getPet's answers have in their headers.
const deprecated = `
Deprecation: @1795132800
Link: </v1/pets>; rel="successor-version"
Sunset: Thu, 05 Dec 2030 00:00:00 GMT`

// A page has 20 pets or as many as limit says, 1 to 100 (contract, section 8). FuzzQuery has the pets themselves.
func TestLimit(t *testing.T) {
	s := start(t, "-seed", tempFile(t, seedOf(121)))
	for query, want := range map[string]string{
		"":           "20 </v1/pets?after=20>; rel=\"next\"",
		"?limit=100": "100 </v1/pets?limit=100&after=100>; rel=\"next\"",
	} {
		r := s.do(t, "GET /v1/pets"+query)
		same(t, query, fmt.Sprint(strings.Count(r.body, `"id"`), " ", r.Header.Get("Link")), want)
	}
}

// A page ends before it has more than 256 KiB, and Link leads on.
func TestBoundedPage(t *testing.T) {
	s := start(t)
	const query = "?limit=5&status=sold"
	for last, want := range map[int]string{65485: "4 262144 ", 65486: "3 196609 "} { // pets and bytes of the page
		s.do(t, "POST /__admin/reset")
		for _, length := range []int{65485, 65486, 65486, last, 1} {
			s.do(t, `POST /v1/pets {"name":"`+repeat("x", length)+`","categoryId":1,"status":"sold"}`)
		}
		r := s.do(t, "GET /v1/pets"+query)
		same(t, query, fmt.Sprint(strings.Count(r.body, "sold"), len(r.body), " ", r.Header.Get("Link")),
			want+"</v1/pets"+query+"&after="+want[:1]+`>; rel="next"`)
		same(t, "all pages", fmt.Sprint(len(s.pets(t, query))), "5")
	}
}

// Many goroutines at once add pets: each id is given once, and no pet is lost. Over HTTP, creates seldom meet.
func TestAddsAtOnce(t *testing.T) {
	pets := newStore()
	var given [8*5000 + 1]atomic.Bool // by id
	together(8, func(int) {
		for range 5000 {
			if p, err := pets.add(NewPet{}); err != nil || given[p.id].Swap(true) || pets.get(p.id) != p {
				t.Errorf("an id is given twice, or cannot be looked up: %v %v", p, err)
			}
		}
	})
	same(t, "the pets in the list", fmt.Sprint(len(pets.list("", 0))), fmt.Sprint(8*5000))
}

// Worlds that begin with the same seed do not share what is added to them.
func TestClone(t *testing.T) {
	seed := seedStore(seedOf(3))
	a, b := seed.clone(), seed.clone()
	a.add(NewPet{Name: "of a"})
	b.add(NewPet{Name: "of b"})
	same(t, "the pet added to a", string(a.list("", 3)[0].json), `{"id":4,"name":"of a","categoryId":0}`)
}

// pet is a new pet of 27 bytes. An empty store makes stored of it, and answers made; createFirst is the script.
const (
	pet         = `{"name":"a","categoryId":1}`
	stored      = `{"id":1,"name":"a","categoryId":1}`
	made        = "201 " + stored + "\nLocation: /v1/pets/1"
	createFirst = "POST /v1/pets " + pet + "\n" + made + "\n"
)

// An integer is spelt as in JSON, wherever it is given, and has its bounds.
func TestIntegers(t *testing.T) {
	s := start(t)
	const ofAll = "-9223372036854775808 -0 9223372036854775807" // int64
	const beyond = "-9223372036854775809 9223372036854775808"
	const badBody, bad = "400 invalid_body: ", "400 invalid_parameter: "
	for _, c := range []struct{ send, right, wrong, refusal string }{ // send has @ for the integer
		{"GET /v1/pets?limit=@", "1 100", "0 -0 101", bad + "limit is "},
		{"GET /v1/pets?after=@", ofAll, beyond, bad + "after is "},
		{"GET /v1/pets/@", ofAll, beyond, bad + "petId is "},
		{`POST /v1/pets {"name":"a","categoryId":@}`, ofAll, beyond, badBody},
		{`POST /__admin/reset [{"name":"","categoryId":1,"id":@}]`, "1 4611686018427387904",
			"0 -0 4611686018427387905", badBody},
		{"PUT /__admin/fault?code=500&skip=@", "0 9223372036854775807", "-1 -0 9223372036854775808", bad + "skip is "},
		{"PUT /__admin/fault?code=500&times=@", "1 9223372036854775807", "0 -0 9223372036854775808", bad + "times is "},
		{"PUT /__admin/fault?code=500&retry-after=@", "0 3600", "-1 -0 3601", bad + "retry-after is "},
		{"PUT /__admin/fault?code=@", "400 599", "399 -0 600", bad + "code is "},
	} {
		for _, given := range strings.Fields(c.right + " " + c.wrong + ` 1.0 1.5 4e2 +1 01 -01 1_0 0x1 1- - ten true [1]
			"1" ५ 99999999999999999999`) {
			spelt := given
			if !strings.Contains(c.send, "{") {
				spelt = url.QueryEscape(given)
			}
			got := s.do(t, strings.Replace(c.send, "@", spelt, 1)).String()
			s.do(t, "DELETE /__admin/fault")
			if right := slices.Contains(strings.Fields(c.right), given); right == strings.HasPrefix(got, c.refusal) {
				t.Errorf("%s: with %s, the answer is %s", c.send, given, got)
			}
		}
	}
}

const (
	noKey    = "401 unauthorized\nWWW-Authenticate: Bearer realm=\"petstore\""
	wrongKey = "401 invalid_token\nWWW-Authenticate: Bearer realm=\"petstore\", error=\"invalid_token\""
)

// The key is asked for before anything else is looked at.
func TestKey(t *testing.T) {
	s := start(t)
	for _, request := range []string{"GET, HEAD /v1/pets", "GET /v1", "GET /v1/pets/", "GET /v1/../v1/pets",
		"GET /%761/x", "GET /v1/pets/1?%zz", "GET /v1/store/orders", "BREW /v1/pets", "GET /__admin",
		"POST /v1/pets {}", "GET /__admin/requests", "GET /v1/pets?limit=0&key=" + testKey} {
		s.as("").play(t, request+"\nX-Api-Key: "+testKey+"\nPrefer: code=503\n"+noKey)
		s.as("wrong").play(t, request+"\nPrefer: code=503\n"+wrongKey)
	}
	for credential, want := range map[string]string{"": noKey, "Bearer": noKey, testKey: noKey,
		"Basic " + testKey: noKey, "Bearer " + testKey + "\nAuthorization: Bearer " + testKey: noKey,
		"Bearer CORRECT-HORSE": wrongKey, "Bearer correct-hors": wrongKey, "Bearer correct-horses": wrongKey,
		"bEARER   " + testKey: "200 []"} {
		s.play(t, "GET /v1/pets\nAuthorization: "+credential+"\n"+want)
	}
	for _, key := range []string{"", "wrong", testKey} { // these need none, and mind none
		s := s.as(key)
		s.play(t, "GET, HEAD /healthz\n200 {\"status\":\"ok\"}")
		same(t, "openapi.json", s.do(t, "GET /openapi.json").body, string(openAPI))
		r := s.do(t, "GET /")
		same(t, "the page", r.Header.Get("Content-Type")+"\n"+r.body, "text/html; charset=utf-8\n"+string(indexHTML))
	}
}

// Web pages of every origin read every answer, and the headers that they need.
func TestCORS(t *testing.T) {
	s := start(t)
	const exposed = "* Link, Location, Allow, Deprecation, Sunset, WWW-Authenticate, Preference-Applied, Retry-After"
	for _, request := range []string{"POST /v1/pets {}", "GET /v1/pets", "GET /v1/pets/1", "BREW /v1/pets",
		"GET /v1\nAuthorization: x", "GET /x/../y", "GET /", "GET /openapi.json", "GET /__admin/requests",
		"GET /v1\nPrefer: code=503", "POST /v1/pets\nContent-Length: 65537", "OPTIONS /v1/pets"} {
		h := s.do(t, request+"\nOrigin: null").Header
		same(t, request, h.Get("Access-Control-Allow-Origin")+" "+h.Get("Access-Control-Expose-Headers"), exposed)
	}
	for _, target := range []string{"/v1/pets", "/v1/pets/", "/x/../y", "/__admin/reset", "/healthz", "*"} {
		s.as("").play(t, "OPTIONS "+target+"\nPrefer: code=503\n"+preflight)
	}
}

// preflight is the answer to OPTIONS.
const preflight = `204
Access-Control-Allow-Headers: Authorization, Content-Type, Prefer, *
Access-Control-Allow-Methods: GET, HEAD, POST, PUT, DELETE
Access-Control-Max-Age: 600`

// README: faults.

// A Prefer header makes its own request fail or wait, under /v1 and with the key. FuzzPrefer has more of its spelling.
func TestPrefer(t *testing.T) {
	s := start(t)
	for _, c := range []struct{ send, prefer, want string }{
		{"GET, HEAD /v1/pets", "code=503", "503 service_unavailable\nRetry-After: 1\nPreference-Applied: code=503"},
		{"GET, HEAD /v1/nothing", "code=429", "429 too_many_requests\nRetry-After: 1\nPreference-Applied: code=429"},
		{"BREW /v1//pets/?%zz {", "code=500", "500 internal_server_error\nPreference-Applied: code=500"},
		{"GET, HEAD /v1/pets", "code=401", wrongKey + "\nPreference-Applied: code=401"},
		{"GET, HEAD /v1/pets", "code=599", "599 status_599\nPreference-Applied: code=599"},
		{"GET, HEAD /v1/pets/1", "code=418", "418 im_a_teapot\nPreference-Applied: code=418" + deprecated},
		{"GET, HEAD /v1/pets", "code=hangup", "no answer"},
		{"GET, HEAD /v1/pets", "code=lost", "no answer"},
		{"GET /v1/pets", "code=truncate", "200 […\nContent-Length: 3\nPreference-Applied: code=truncate"},
		{"HEAD /v1/pets", "code=truncate", "no answer"},
		{"GET, HEAD /v1/pets", "answer-delay=.0", "200 []\nPreference-Applied: answer-delay=.0"},
		{"GET /v1/pets", "retry-after=0,answer-delay=0.0\nPrefer: x=\"code=500\";y , CODE = \"503\" ; q=1,delay=.0",
			"503 service_unavailable\nRetry-After: 0\n" +
				"Preference-Applied: code=503, delay=.0, answer-delay=0.0, retry-after=0"},
		{"GET, HEAD /v1/pets", "delay=0, retry-after=5", "200 []\nPreference-Applied: delay=0"},
		{"GET, HEAD /v1/pets", "retry-after=x, skip=x, times=0, operation=x, wait=1", "200 []"},
		{"GET, HEAD /v1/pets/1", "code=x", "400 invalid_parameter: code is x" + deprecated},
		{"GET, HEAD /v1/pets", "code=503, retry-after=3601", "400 invalid_parameter: retry-after"},
		{"GET, HEAD /healthz", "code=hangup", `200 {"status":"ok"}`},
		{"DELETE /__admin/fault", "code=418", "204"},
	} {
		s.play(t, c.send+"\nPrefer: "+c.prefer+"\n"+c.want)
	}
}

// What the client, the store and the journal get of a create with a fault, be it asked for or a standing one.
func TestFaultyCreate(t *testing.T) {
	const request, refused, added = "POST /v1/pets " + pet, "[]", "[" + stored + "]"
	const half = "201 {\"id\":1,\"name\":\"a…\nContent-Length: 35\nLocation: /v1/pets/1"
	s := start(t)
	for _, c := range []struct{ fault, answer, status, pets string }{ // the status is that in the journal
		{"code=418", "418 im_a_teapot", "418", refused},
		{"code=418, delay=0.01, answer-delay=0.01, retry-after=7", "418 im_a_teapot\nRetry-After: 7", "418", refused},
		{"code=hangup", "no answer", "0", refused},
		{"code=hangup, delay=0.01, answer-delay=0.01", "no answer", "0", refused},
		{"code=lost", "no answer", "0", added},
		{"code=lost, delay=0.01, answer-delay=0.01", "no answer", "0", added},
		{"code=truncate", half, "201", added},
		{"code=truncate, delay=0.01, answer-delay=0.01", half, "201", added},
		{"delay=0.02", made, "201", added},
		{"answer-delay=0.02", made, "201", added},
	} {
		own := request + "\nPrefer: " + c.fault + "\n" + c.answer
		if c.answer != "no answer" {
			own += "\nPreference-Applied: " + c.fault
		}
		for _, exchange := range []string{own, request + "\n" + c.answer} {
			s.do(t, "POST /__admin/reset")
			if exchange != own {
				s.do(t, "PUT /__admin/fault?"+strings.ReplaceAll(c.fault, ", ", "&"))
			}
			begin := time.Now()
			s.play(t, exchange)
			if took := time.Since(begin); strings.Contains(c.fault, "delay") && took < 20*time.Millisecond {
				t.Errorf("%s took %v", c.fault, took)
			}
			s.recorded(t, strings.Replace(request, " {", " "+c.status+" "+c.fault+" {", 1))
			s.play(t, "DELETE /__admin/fault\n204\nGET /v1/pets\n200 "+c.pets)
		}
	}
}

// Who leaves during a delay has done nothing, even if only the sending side of the connection is closed.
func TestLeaveDuringDelay(t *testing.T) {
	for fault, a := range map[string]*api{" delay=30": {}, "": {latency: time.Hour}} {
		s := serve(t, a, nil)
		for send, line := range map[string]string{"\n": "", "Content-Length: 2\n\n{}": " {}",
			"Transfer-Encoding: chunked\n\n2\n{}\n0\n\n": " {}"} {
			c := s.dial(t, "POST /v1/pets"+withKey+"Prefer:"+fault+"\n"+send)
			c.CloseWrite()
			if line == "" {
				c.Close()
			}
			eventually(t, "the end of "+send, func() bool { return s.journalLines(t) == "POST /v1/pets 0"+fault+line })
			s.do(t, "DELETE /__admin/requests")
		}
	}
}

// Who leaves during an answer-delay leaves the pet behind. The journal has the request, and the delay in its seconds.
func TestLeaveDuringAnswerDelay(t *testing.T) {
	s := start(t)
	c := s.dial(t, "POST /v1/pets"+withKey+"Prefer: delay=0.1, answer-delay=30\nContent-Length: 27\n\n"+pet)
	eventually(t, "the entry in the journal", func() bool { _, total := s.journal(t); return total == 1 })
	c.Close()
	requests, _ := s.journal(t)
	if e := requests[0]; e.Seconds < 0.1 || e.Seconds >= 30 || e.Status != 201 {
		t.Errorf("%+v", e)
	}
	s.play(t, "GET /v1/pets\n200 ["+stored+"]")
}

// The standing fault strikes the requests that it is set for, and counts them. TestFaultyCreate has what it does.
func TestStandingFault(t *testing.T) {
	s := start(t, "-quiet")
	for _, c := range []row{
		{"GET, HEAD /__admin/fault?code=x", `200 {}`},
		{"DELETE /__admin/fault?bogus=1", "204"},
		{"PUT /__admin/fault?code=503&operation=createPet",
			`200 {"code":"503","operation":"createPet","met":0,"struck":0}`},
		{"BREW /v1/pets", "405 method_not_allowed\nAllow: GET, HEAD, POST"},
		{"POST /v1/pets\nPrefer: code=1", "400 invalid_parameter: code"},
		{"POST /v1/pets {}\nPrefer: wait=1, retry-after=9", "503 service_unavailable\nRetry-After: 1"},
		{"GET, HEAD /__admin/fault", `200 {"code":"503","operation":"createPet","met":1,"struck":1}`},
		{"PUT /__admin/fault?delay=0&retry-after=5&operation=getPet",
			`200 {"delay":"0","retry-after":"5","operation":"getPet","met":0,"struck":0}`},
		{"GET, HEAD /v1/pets/x", "400 invalid_parameter: petId" + deprecated},
		{"GET, HEAD /v1/pets/.", "404 not_found"},
		{"GET /__admin/fault", `200 {"delay":"0","retry-after":"5","operation":"getPet","met":2,"struck":2}`},
		{"PUT /__admin/fault?times=2&skip=3&code=418&answer-delay=0.0",
			`200 {"code":"418","answer-delay":"0.0","skip":3,"times":2,"met":0,"struck":0}`},
		{"GET /v1/pets/", "404 not_found"},
		{"GET, HEAD /v1/pets", "200 []"},
		{"GET, HEAD /v1/nothing", "418 im_a_teapot"},
		{"GET /v1/pets\nPrefer: delay=0", "200 []\nPreference-Applied: delay=0"},
		{"GET, HEAD /v1/pets", "200 []"},
		{"GET /__admin/fault", `200 {"code":"418","answer-delay":"0.0","skip":3,"times":2,"met":7,"struck":2}`},
		{"DELETE /__admin/fault", "204"},
		{"GET /__admin/fault", "200 {}"},
	} {
		s.play(t, c.send+"\n"+c.want)
	}
}

// A bad standing fault is refused, with the name of the last parameter here, and changes nothing.
func TestBadFaults(t *testing.T) {
	s := start(t)
	s.do(t, "PUT /__admin/fault?code=503&skip=1")
	for _, query := range strings.Fields(`code=Hangup code= code=503&delay=-1 delay=30.01 delay=1e1 delay= delay=1.2.3
		answer-delay=30.01 answer-delay=NaN code=503&operation=getpet code=503&operation= code=503&code=503
		delay=1&delay=1 answer-delay=1&answer-delay=1 code=503&skip=1&skip=1 code=503&times=1&times=1
		code=503&retry-after=1&retry-after=1 code=503&operation=getPet&operation=getPet
		code=503&skip= code=503&times= code=503&retry-after=`) {
		name := regexp.MustCompile(`([a-z-]+)=[^=]*$`).FindStringSubmatch(query)[1]
		s.play(t, "PUT /__admin/fault?"+query+"\n400 invalid_parameter: "+name+" is")
	}
	for range 10 { // of several, the same one is told each time
		s.play(t, "PUT /__admin/fault?code=503&zz=1&y=1&x=1&w=1&v=1&aa=1\n400 invalid_parameter: the parameter is aa")
	}
	s.play(t, "PUT /__admin/fault?skip=1&times=1&operation=getPet&retry-after=5\n400 invalid_parameter: code, delay or")
	s.play(t, "GET /__admin/fault\n200 {\"code\":\"503\",\"skip\":1,\"met\":0,\"struck\":0}")
}

// However many requests meet a standing fault at once, as they seldom do over HTTP, it strikes exactly those it should.
func TestExactCounts(t *testing.T) {
	const n, huge = 100000, math.MaxInt64 // n requests of each of 8 clients
	for _, c := range []struct{ skip, times, struck int64 }{
		{skip: 0, times: 1000, struck: 1000}, {skip: 3 * n, times: 4 * n, struck: 4 * n},
		{skip: 7 * n, times: 4 * n, struck: n}, {skip: 3 * n, times: 0, struck: 5 * n},
		{skip: huge, times: huge, struck: 0}, {skip: 0, times: huge, struck: 8 * n},
	} {
		f, struck := &fault{Skip: c.skip, Times: c.times}, new(atomic.Int64)
		together(8, func(int) {
			for range n {
				if f.strikes("listPets") {
					struck.Add(1)
				}
			}
		})
		same(t, fmt.Sprint(c), fmt.Sprint(struck.Load(), f.met.Load()), fmt.Sprint(c.struck, 8*n))
	}
}

// README: seeds and resets.

// A seed, as a file and as a body, keeps the ids that it gives, and numbers the other pets above them, in their order.
func TestSeed(t *testing.T) {
	const seed = `[{"name":"later","categoryId":1,"status":"sold"},{"id":7,"name":"7th","categoryId":-1,"x":null},` +
		`{"id":3,"name":"thr\u00e9e","categoryId":1}, {"name":"last", "categoryId":1} ]`
	create := func(id string) string { // the script
		return "POST /v1/pets " + pet + "\n" + strings.NewReplacer("/1", "/"+id, ":1,", ":"+id+",").Replace(made) + "\n"
	}
	script := create("10") + `
		GET /v1/pets?limit=2
		200 [{"id":3,"name":"thrée","categoryId":1},{"id":7,"name":"7th","categoryId":-1}]
		Link: </v1/pets?limit=2&after=7>; rel="next"
		GET /v1/pets?after=8
		200 [{"id":9,"name":"last","categoryId":1},{"id":10,"name":"a","categoryId":1}]
		GET /v1/pets?status=sold
		200 [{"id":8,"name":"later","categoryId":1,"status":"sold"}]
		GET /v1/pets/3
		200 {"id":3,"name":"thrée","categoryId":1}` + deprecated + "\n"
	s := start(t, "-seed", tempFile(t, " "+seed+" "))
	s.play(t, script+"POST /__admin/reset\n204\n"+script) // which brings back the pets of the file
	s = start(t, "-seed", tempFile(t, `[{"id":5,"name":"of the file","categoryId":1}]`))
	s.do(t, "PUT /__admin/fault?code=500")
	s.play(t, "POST /__admin/reset "+seed+"\n204\nGET /__admin/fault\n200 {}")
	s.recorded(t)
	s.play(t, script+`
		POST /__admin/reset
		204
		GET /v1/pets
		200 [{"id":5,"name":"of the file","categoryId":1}]
		POST /__admin/reset []
		204
		`+createFirst+`
		POST /__admin/reset [{"id":4611686018427387904,"name":"","categoryId":1}]
		204
		`+create("4611686018427387905"))
}

// badSeedFile checks that a service does not start with a seed file. One line tells why, and begins with these words.
func badSeedFile(t *testing.T, file, message string) {
	t.Helper()
	p := petstore{key: testKey, args: []string{"-addr", "127.0.0.1:0", "-seed", file}}
	p.ends(t, 1, "petstore: "+regexp.QuoteMeta(file+": "+message)+".*")
}

// A seed file, which may be a pipe, has 128 MiB at most, and a pet in it 64 KiB.
func TestSeedBounds(t *testing.T) {
	slow(t)
	onePet := func(size int) string { return `[{"categoryId":1,"name":"` + repeat("x", size-26) + `"}]` }
	start(t, "-seed", tempFile(t, onePet(65536)))
	badSeedFile(t, tempFile(t, onePet(65537)), "pet 1: more than 65536 bytes")
	pipe := func(size int) (file string) {
		r, w, _ := os.Pipe()
		t.Cleanup(func() { r.Close() })
		go func() {
			defer w.Close()
			n, err := w.WriteString(seedOf(9999))
			for spaces := repeat(" ", 1<<20); n < size && err == nil; n += len(spaces) {
				_, err = w.WriteString(spaces[:min(len(spaces), size-n)])
			}
		}()
		return fmt.Sprint("/dev/fd/", r.Fd())
	}
	const list = "GET /v1/pets?after=9998\n200 [{\"id\":9999,\"name\":\"a\",\"categoryId\":1,\"status\":\"sold\"}]\n"
	start(t, "-seed", pipe(128<<20)).play(t, list+"POST /__admin/reset\n204\n"+list)
	badSeedFile(t, pipe(128<<20+1), "the seed has more than 134217728 bytes")
	badSeedFile(t, pipe(math.MaxInt), "the seed has more than 134217728 bytes")
}

// README: what a reset separates.

// watched is the context of a request, and tells when that begins to wait: only a delay asks for the end of a context.
type watched struct {
	context.Context
	waits chan<- bool
}

func (w watched) Done() <-chan struct{} {
	w.waits <- true
	return w.Context.Done()
}

// A request that waits when its world or the service ends is answered at once: from its own world, as its fault says.
func TestWorldEnds(t *testing.T) {
	const post, added = "POST /v1/pets " + pet, `{"id":2,"name":"a","categoryId":1}`
	const made, half = "201 " + added + "\nLocation: /v1/pets/2",
		`201 {"id":2,"name":"a…` + "\nContent-Length: 35\nLocation: /v1/pets/2"
	for _, c := range []struct{ fault, request, answer, line, added string }{
		{"delay=30", post, made, "POST /v1/pets 201 delay=30 " + pet, added},
		{"delay=30", "GET /v1/pets", `200 [{"id":1,"name":"1","categoryId":1}]`, "GET /v1/pets 200 delay=30", ""},
		{"code=429&delay=30&times=1", post, "429 too_many_requests\nRetry-After: 1",
			"POST /v1/pets 429 code=429, delay=30 " + pet, ""},
		{"code=truncate&delay=30", post, half, "POST /v1/pets 201 code=truncate, delay=30 " + pet, added},
		{"code=hangup&delay=30", post, "no answer", "POST /v1/pets 0 code=hangup, delay=30 " + pet, ""},
		{"code=lost&delay=30", post, "no answer", "POST /v1/pets 0 code=lost, delay=30 " + pet, added},
		{"answer-delay=30", post, made, "POST /v1/pets 201 answer-delay=30 " + pet, added},
		{"code=418", post + "\nPrefer: answer-delay=30", made + "\nPreference-Applied: answer-delay=30",
			"POST /v1/pets 201 answer-delay=30 " + pet, added},
		{"code=418", "BREW /v1/pets", "418 im_a_teapot", "BREW /v1/pets 418 code=418", ""}, // waits for the latency
	} {
		for _, reset := range []bool{true, false} {
			waits, answered := make(chan bool, 9), make(chan reply, 1)
			stopping, stop := context.WithCancel(context.Background())
			t.Cleanup(stop)
			a := &api{stopping: stopping, seed: seedStore(`[{"name":"1","categoryId":1}]`)}
			if !strings.Contains(c.fault+c.request, "delay") {
				a.latency = time.Hour
			}
			s := serve(t, a, func(srv *http.Server) {
				h := srv.Handler
				srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					h.ServeHTTP(w, r.WithContext(watched{r.Context(), waits}))
				})
				srv.ConnState = nil // otherwise, it would close new connections behind stop
			})
			s.do(t, "PUT /__admin/fault?"+c.fault)
			go func() { answered <- s.do(t, c.request) }()
			within(t, "the wait", func() bool { return <-waits })
			old := a.current.Load()
			if reset {
				s.play(t, "POST /__admin/reset []\n204")
			} else {
				stop()
			}
			within(t, "the answer", func() reply { return <-answered }).check(t, c.request, c.answer)
			a.latency = 0
			if reset { // the next world knows nothing of it
				s.recorded(t)
				s.play(t, "GET /v1/pets\n200 []\nGET /__admin/fault\n200 {}")
				a.current.Store(old)
			}
			s.recorded(t, c.line)
			s.play(t, "DELETE /__admin/fault\n204\nGET /v1/pets?after=1\n200 ["+c.added+"]")
		}
	}
}

// A body that comes behind a reset adds its pet, its line in the journal and its count of a fault to its own world.
func TestUploadAcrossReset(t *testing.T) {
	a := &api{}
	s := serve(t, a, nil)
	for framing, body := range map[string]string{
		"Content-Length: 27\n": pet, "Transfer-Encoding: chunked\n": "1b\r\n" + pet + "\r\n0\r\n\r\n",
	} {
		s.do(t, "POST /__admin/reset")
		s.do(t, "PUT /__admin/fault?code=418&skip=1")
		old := a.current.Load()
		c := s.dial(t, "POST /v1/pets"+withKey+framing+"Expect: 100-continue\n\n")
		c.read().check(t, "the headers of a create", "100")
		s.do(t, "POST /__admin/reset")
		s.do(t, "PUT /__admin/fault?code=503&times=1")
		io.WriteString(c, body)
		c.read().check(t, "its body", made)
		state := func() string { // the journal, the fault and the pets
			journal, fault := s.journalLines(t), s.do(t, "GET /__admin/fault").body
			return journal + fault + s.do(t, "GET /v1/pets\nPrefer: delay=0").body
		}
		same(t, "the next world", state(), `{"code":"503","times":1,"met":0,"struck":0}`+"\n[]\n")
		a.current.Store(old)
		same(t, "its world", state(),
			"POST /v1/pets 201 "+pet+`{"code":"418","skip":1,"met":1,"struck":0}`+"\n["+stored+"]\n")
	}
}

// An exchange lets go of its world before its answer is sent: who does not read a page keeps no world in memory.
func TestWorldIsLetGo(t *testing.T) {
	a := &api{}
	s := serve(t, a, func(srv *http.Server) {
		srv.ConnState = func(c net.Conn, _ http.ConnState) { c.(errorConn).SetWriteBuffer(4 << 10) }
	})
	for _, request := range []string{"GET /v1/pets", "GET /__admin/requests"} {
		for range 5 { // the last one is behind the page
			s.do(t, `POST /v1/pets {"name":"`+repeat("x", 60000)+`","categoryId":1}`)
		}
		var gone atomic.Int64
		runtime.SetFinalizer(a.current.Load(), func(any) { gone.Add(1) })
		runtime.SetFinalizer(a.current.Load().pets.get(5), func(any) { gone.Add(1) })
		c := s.dial(t, "")
		c.SetReadBuffer(4 << 10)
		c.send(request+withKey+"\n", "")
		c.in.Peek(1)
		s.do(t, "POST /__admin/reset")
		eventually(t, "the end of the world behind "+request, func() bool { runtime.GC(); return gone.Load() == 2 })
		c.Close()
	}
}

// README: the journal.

// The journal has each request as it came, with what it was answered. Headers that do adds are not compared.
func TestJournal(t *testing.T) {
	s, long := start(t), repeat("x", 65537)
	for _, c := range []struct{ send, headers, line string }{
		{"GET /v1/pets?limit=5&x=%20%zz;+", `{}`, "GET /v1/pets?limit=5&x=%20%zz;+ 400"},
		{"GET http://elsewhere/v1/pets", `{"Host":"elsewhere"}`, "GET http://elsewhere/v1/pets 200"},
		{"GET /\nx-a: 1\nX-B:  <&>\"\nX-A:2, 3\nx-a:", `{"X-A":"1, 2, 3, ","X-B":"<&>\""}`, "GET / 200"},
		{"POST /v1/pets x\nTransfer-Encoding: chunked", `{"Transfer-Encoding":"chunked"}`, "POST /v1/pets 400 x"},
		{"BREW /v1/pets <ü>\x00\t\"\xff", `{"Content-Length":"8"}`, "BREW /v1/pets 405 <ü>\x00\t\"\ufffd"},
		{"POST /v1 x\nAuthorization: Basic x", `{"Authorization":"Basic x","Content-Length":"1"}`, "POST /v1 401"},
		{"GET /x\nPrefer: code=503", `{"Prefer":"code=503"}`, "GET /x 404"},
		{"GET /v1\nPrefer: code=503, delay=0.0", `{"Prefer":"code=503, delay=0.0"}`, "GET /v1 503 code=503, delay=0.0"},
		{"GET /v1/pets\nPrefer: code=1", `{"Prefer":"code=1"}`, "GET /v1/pets 400"},
		{"POST /v1 " + long, `{"Content-Length":"65537"}`, "POST /v1 413"},
		{"POST /v1 " + long + "\nTransfer-Encoding: chunked", `{"Transfer-Encoding":"chunked"}`, "POST /v1 413"},
		{"HEAD /openapi.json", `{}`, "HEAD /openapi.json 200"},
		{"GET /healthz2", `{}`, "GET /healthz2 404"},
		{"OPTIONS *", `{}`, "OPTIONS * 204"},
		{send: "GET /healthz"}, {send: "POST /healthz/x"}, {send: "OPTIONS /healthz"}, // not in the journal
		{send: "GET /__admin"}, {send: "GET /%5F_admin/requests"}, {send: "OPTIONS /__admin/reset"},
	} {
		s.do(t, "POST /__admin/reset")
		message := s.do(t, c.send).error().Message
		s.recorded(t, c.line)
		requests, _ := s.journal(t)
		for _, r := range requests {
			maps.DeleteFunc(r.Headers, func(_, v string) bool { return v == "petstore" || v == "Bearer <API_KEY>" })
			same(t, c.send, asJSON(r.Headers)+r.Error, c.headers+message)
		}
	}
	for send, line := range map[string]string{"GET /x HTTP/1.0\n\n": "GET /x 404", "GET\n\n": "", // is net/http's
		"POST /v1/pets" + withKey + "Content-Length: 3\n\nab": "POST /v1/pets 400"} {
		s.do(t, "POST /__admin/reset")
		c := s.dial(t, send)
		c.CloseWrite()
		io.Copy(io.Discard, c)
		s.recorded(t, line)
	}
	head, get := s.do(t, "HEAD /__admin/requests"), s.do(t, "GET /__admin/requests?limit=1")
	same(t, "HEAD", fmt.Sprint(head.Status, head.ContentLength), fmt.Sprint("200 OK", get.ContentLength))
	s.play(t, "DELETE /__admin/requests?x=%zz\n400 invalid_parameter\nDELETE /__admin/requests\n204")
	s.recorded(t)
}

// The journal is in the order of the answers, with the times when requests came.
func TestJournalOrder(t *testing.T) {
	s := start(t, "-quiet")
	now := func() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }
	begin := now()
	s.do(t, "PUT /__admin/fault?delay=30&times=2")
	slow := s.dial(t, "GET /v1/pets?slow"+withKey+"\n")
	s.met(t, 1)
	gone := s.dial(t, "GET /v1/pets?gone"+withKey+"\n")
	s.met(t, 2)
	s.play(t, "GET /v1/pets?quick\n200 []")
	journal := "GET /v1/pets?quick 200"
	s.recorded(t, journal)
	for i, c := range []*connection{gone, slow} {
		c.Close()
		journal += "\nGET /v1/pets?" + []string{"gone", "slow"}[i] + " 0 delay=30"
		eventually(t, "the end of who leaves", func() bool { return s.journalLines(t) == journal })
	}
	entries, _ := s.journal(t)
	if times := []string{begin, entries[2].Time, entries[1].Time, entries[0].Time, now()}; !slices.IsSorted(times) {
		t.Errorf("the times are not those when requests came: %v", times)
	}
}

// A request is in the journal before its answer begins, and the answer's buffer is not used before all of it is sent.
func TestSend(t *testing.T) {
	a := filledIn(&api{seed: seedStore(seedOf(3))})
	h := newServer(a).Handler
	for n := range 20 {
		get := httptest.NewRequest("GET", "/v1/pets", nil)
		get.Header.Set("Authorization", "Bearer "+testKey)
		h.ServeHTTP(writerFunc(func(body []byte) error {
			_, total := a.current.Load().journal.all()
			same(t, "requests in the journal when the answer begins", fmt.Sprint(total), fmt.Sprint(2*n+1))
			if want := string(body); want != "" {
				ask(h, "GET /v1/pets?after=1", "", "")
				same(t, "the page", string(body), want)
			}
			return nil
		}), get)
	}
}

// writerFunc is an http.ResponseWriter that is called with what is written, and at the status with nil.
type writerFunc func([]byte) error

func (f writerFunc) Header() http.Header         { return http.Header{} }
func (f writerFunc) WriteHeader(int)             { f(nil) }
func (f writerFunc) Write(p []byte) (int, error) { return len(p), f(p) }

// The key is not in the journal. One below 8 characters is no secret, and hidden where it is all of a credential.
func TestJournalHidesTheKey(t *testing.T) {
	const secret, short = "12345-67890", "abc"
	for _, c := range []struct{ key, send, want string }{ // KEY stands for the key
		{secret, "POST /v1/KEY?x=KEY0 KEY\xffKEY\nX: k=KEY, KEY\nX: 12345-6789\nHost: aKEY:8",
			`/v1/<API_KEY>?x=<API_KEY>0 {"Authorization":"Bearer <API_KEY>","Content-Length":"23",` +
				`"Host":"a<API_KEY>:8","X":"k=<API_KEY>, <API_KEY>, 12345-6789"} ` + "<API_KEY>\ufffd<API_KEY>"},
		{secret, "GET /v1\nAuthorization: bearer  KEY\nAuthorization: Basic KEY\nHost: x",
			`/v1 {"Authorization":"bearer  <API_KEY>, Basic <API_KEY>","Host":"x"} `},
		{short, "GET /\nAuthorization: bearer  KEY\nHost: x", `/ {"Authorization":"bearer  <API_KEY>","Host":"x"} `},
		{short, "POST /v1?KEY KEY\nHost: KEY\nKEY: KEY",
			`/v1?abc {"Abc":"abc","Authorization":"Bearer <API_KEY>","Content-Length":"3","Host":"abc"} abc`},
		{short, "GET /\nAuthorization: Bearer KEY KEY\nHost: x", `/ {"Authorization":"Bearer abc abc","Host":"x"} `},
	} {
		s := petstore{key: c.key}.start(t)
		s.do(t, strings.ReplaceAll(c.send, "KEY", c.key))
		requests, _ := s.journal(t)
		same(t, c.send, requests[0].URL+" "+asJSON(requests[0].Headers)+" "+requests[0].Body, c.want)
	}
	s := start(t) // an error may have a text of the client, and is told where it was lost
	s.do(t, "GET /v1/pets?limit="+testKey+"\nPrefer: code=lost")
	requests, _ := s.journal(t)
	same(t, "the error", strings.Split(requests[0].Error, ";")[0], "limit is <API_KEY>")
}

// The journal keeps the last 1,000 requests, and 4 MiB of them to the byte.
func TestJournalBounds(t *testing.T) {
	s := start(t, "-quiet")
	for i := range 1003 {
		s.do(t, fmt.Sprint("GET /x?", i))
	}
	if lines := s.journalLines(t); !strings.HasPrefix(lines, "total 1003\nGET /x?3 404\n") ||
		strings.Count(lines, "\n") != 1000 || !strings.HasSuffix(lines, "GET /x?1002 404") {
		t.Errorf("the journal of 1,003 requests: %.200s", lines)
	}
	// filled returns the journal behind 69 requests with bodies, and one with n bytes in place of @.
	filled := func(send string, n int) ([]journaled, int) {
		s.do(t, "DELETE /__admin/requests")
		for range 69 {
			s.do(t, "GET /v1/pets "+repeat("x", 60000))
		}
		s.do(t, strings.Replace(send, "@", repeat("0", n), 1))
		return s.journal(t)
	}
	const always = (4 + 8 + 100) + (13 + 20 + 100)       // Host and Authorization, which do adds
	const size = 3 + 8 + always + (14 + 5 + 100) + 60000 // of method, url, these and Content-Length, body
	for send, others := range map[string]int{            // what counts beside @ and the error
		"@ /x":                            2 + always,
		"PUT /@":                          3 + 1 + always,
		"PUT /x\nHost: @":                 3 + 2 + always - 8,
		"PUT /x\n@: z":                    3 + 2 + always + 1 + 100,
		"PUT /x\nY: z\nY: @":              3 + 2 + always + 2*(1+100) + 1,
		"GET /v1/pets @":                  3 + 8 + always + (14 + 5 + 100),
		"GET /v1\nPrefer: code=503\n@: z": 3 + 3 + always + (6 + 8 + 100) + 1 + 100 + len("code=503"), // the fault
	} {
		entries, _ := filled(send, 1)
		n := 4<<20 - 69*size - others - len(entries[69].Error)
		for over := range 2 {
			entries, total := filled(send, n+over)
			same(t, send, fmt.Sprint(len(entries), total), fmt.Sprint(70-over, 70))
		}
	}
}

// Who reads the journal has it as it was then, whatever is added meanwhile. What is dropped is not kept in memory.
func TestJournalSnapshot(t *testing.T) {
	var j journal
	var dropped atomic.Bool
	body := make([]byte, 1000)
	runtime.SetFinalizer(&body[0], func(*byte) { dropped.Store(true) })
	j.add(entry{body: body})
	for i := range maxJournal - 1 {
		j.add(entry{url: fmt.Sprint("/", i), took: 1118 * time.Millisecond})
	}
	entries, _ := j.all()
	want := fmt.Sprint(entries)
	j.add(entry{url: "/later"})
	same(t, "the entries", fmt.Sprint(entries), want)
	if line := string(encodeEntry(entries[1], testKey)); !strings.Contains(line, `"seconds":1.118}`) {
		t.Errorf("1118 ms are shown in %s", line)
	}
	entries, body = nil, nil
	eventually(t, "the end of what was dropped", func() bool { runtime.GC(); return dropped.Load() })
	runtime.KeepAlive(&j)
}

// README: errors.

// Each message stands here in full, elsewhere its first words. What is refused changes nothing, as a seed file too.
func TestMessages(t *testing.T) {
	s := start(t)
	const anObject = `; it must be a JSON object, as {"name":"Rex","categoryId":7}`
	const anArray = `; it must be a JSON array, as [{"name":"Rex","categoryId":7}]`
	const aString, aStatus = "; it must be a string of valid Unicode", "; it must be available, pending or sold"
	const seconds = "; it must be a number of seconds from 0 to 30, with decimals if need be"
	const anInteger, anID = "; it must be an integer", "; it must be an integer from 1 to 4611686018427387904"
	const create, reset, wrongType = "POST /v1/pets ", "POST /__admin/reset ", "415 unsupported_media_type: Content-"
	const badBody, bad, fault = "400 invalid_body: ", "400 invalid_parameter: ", "PUT /__admin/fault"
	const inJSON = `; it must be application/json, in UTF-8 (curl sends that with --json)`
	const early, utf8 = badBody + "the body is JSON that ends too early", "is not valid UTF-8"
	for _, c := range []row{
		{"GET /v1\nAuthorization: x",
			"401 unauthorized: send the API key in one header: Authorization: Bearer <API_KEY>"},
		{"GET /v1\nAuthorization: Bearer x",
			"401 invalid_token: this is not the API key that the service was started with"},
		{"GET /nothing", "404 not_found: no such path; the API is at /v1/pets, its description at /openapi.json, " +
			"and a page for browsers at /"},
		{"GET /v1/pets/", "404 not_found: no such path; the pets are at /v1/pets, without a slash at the end; " +
			"/__admin is not under /v1"},
		{"GET /__admin", "404 not_found: no such path; there are /__admin/reset, /__admin/fault and /__admin/requests"},
		{"BREW /openapi.json", "405 method_not_allowed: this path allows GET, HEAD only"},
		{create + "\nContent-Length: 65537", "413 request_entity_too_large: the body is over 65536 bytes"},
		{"GET /v1/store/orders", "501 not_implemented: the contract names this operation and shows no payload for it"},
		{"GET /v1/pets\nPrefer: code=503", "503 service_unavailable: this error is simulated, as was asked for"},
		{"GET /v1/pets/7", "404 not_found: there is no pet 7"},
		{"GET /v1/%70ets/%2d7?colour=red", "404 not_found: there is no pet -7"},
		{"GET /v1/pets/1%2F2", bad + "petId is 1/2" + anInteger},
		{"GET /v1/pets/9223372036854775808", bad + "petId is 9223372036854775808; " +
			"it must be an integer from -9223372036854775808 to 9223372036854775807"},
		{"GET /v1/pets?limit=101", bad + "limit is 101; it must be an integer from 1 to 100"},
		{"GET /v1/pets?after=", bad + "after is empty" + anInteger},
		{"GET /v1/pets?after=" + repeat("ä", 40), bad + "after is " + repeat("ä", 40) + "" + anInteger},
		{"GET /v1/pets?after=" + repeat("ä", 41), bad + "after is " + repeat("ä", 40) + "…" + anInteger},
		{"GET /v1/pets?after=%ff", bad + "after is \ufffd" + anInteger},
		{"GET /v1/pets?after=1&after=1", bad + "after is given 2 times; it must be given once"},
		{"GET /v1/pets?status=Sold", bad + "status is Sold" + aStatus},
		{"GET /v1/pets?%zz", bad + `the query is malformed: invalid URL escape "%zz"`},
		{"GET /v1/pets?x;y", bad + "the query is malformed: invalid semicolon separator in query"},
		{create + "x\nContent-Type: text/plain", wrongType + "Type is text/plain" + inJSON},
		{create + "x\nContent-Type: a/b\nContent-Type: c/d", wrongType + "Type is a/b, c/d" + inJSON},
		{create + "x\nContent-Encoding: br", wrongType + "Encoding is br; it must be left out"},
		{create, badBody + "the body is empty" + anObject},
		{create + "name=Rex&categoryId=7", badBody + "the body is name=Rex&categoryId=7" + anObject},
		{create + "null", badBody + "the body is null" + anObject},
		{create + "{'name':'Rex'}", badBody + "the body has single quotes where JSON has double quotes" + anObject},
		{create + "{name:Rex,categoryId:7}", badBody + "the body has a name without double quotes" + anObject +
			"; in a shell, put single quotes around all of it"},
		{create + "\ufeff{}", badBody + "the body begins with a byte order mark (BOM); it must be UTF-8 without one"},
		{create + "{\"name\":\"a\",\"categoryId\":1,\"x\":\"\xff\"}", badBody + "the body " + utf8},
		{create + "{\"name\":\"\xed\xa0\x80\",\"categoryId\":1}", badBody + "the body " + utf8},
		{create + `{"name":"Rex","categoryId":7`, early},
		{create + `{"name":"Rex","categoryId":-`, early},
		{create + `{"name":"Rex","x":tru`, early},
		{create + `{"name":"it's","categoryId":01}`, badBody + "the body is not JSON from byte 30 on: 1}"},
		{create + `{"name":"Rex","categoryId":7}{}`, badBody + "the body is not JSON from byte 30 on: {}"},
		{create + repeat("[", 10001), badBody + "the body is nested more than 10000 levels deep"},
		{create + `{"Name":"a","NAME":"a","categoryId":1}`, badBody + "name is missing" + aString},
		{create + `{"name":null,"categoryId":1}`, badBody + "name is null" + aString},
		{create + `{"name":["a"],"categoryId":1}`, badBody + `name is ["a"]` + aString},
		{create + `{"name":"\ud800","categoryId":1}`, badBody + `name is "\ud800"` + aString},
		{create + `{"name":"a","categoryid":1}`, badBody + "categoryId is missing" + anInteger},
		{create + `{"name":"a","categoryId":null}`, badBody + "categoryId is null" + anInteger},
		{create + `{"name":"a","categoryId":1,"status":"lost"}`, badBody + "status is lost" + aStatus},
		{create + `{"name":"a","categoryId":1,"status":null}`, badBody + "status is null" + aStatus},
		{create + `{"name":"a","categoryId":1,"status":["sold"]}`, badBody + `status is ["sold"]` + aStatus},
		{reset + " ", badBody + "the seed is empty" + anArray},
		{reset + "null", badBody + "the seed is null" + anArray},
		{reset + "[{name:Rex,categoryId:7}]", badBody + "the seed has a name without double quotes" + anArray +
			"; in a shell, put single quotes around all of it"},
		{reset + `{"name":"a"}`, badBody + `the seed is {"name":"a"}` + anArray},
		{reset + "[" + pet + `,{"name":"b"`, badBody + "the seed is JSON that ends too early"},
		{reset + "[" + pet + ",]", badBody + "the seed is not JSON from byte 30 on: ]"},
		{reset + `[] x`, badBody + "the seed is not JSON from byte 4 on: x"},
		{reset + "[{\"name\":\"\xff\",\"categoryId\":1}]", badBody + "pet 1: the pet " + utf8},
		{reset + "[" + pet + ",5]", badBody + "pet 2: the pet is 5" + anObject},
		{reset + "[" + pet + `,{"categoryId":1}]`, badBody + "pet 2: name is missing" + aString},
		{reset + `[{"name":"a","categoryId":1,"id":0}]`, badBody + "pet 1: id is 0" + anID},
		{reset + `[{"name":"a","categoryId":1,"id":null}]`, badBody + "pet 1: id is null" + anID},
		{reset + "[" + stored + "," + pet + "," + stored + "]", badBody + "pet 3: id 1 is given twice"},
		{fault + "?code=x", bad + "code is x; it must be an integer from 400 to 599, hangup, lost or truncate"},
		{fault + "?delay=x", bad + "delay is x" + seconds},
		{fault + "?code=503&operation=x", bad + "operation is x; it must be listPets, createPet or getPet"},
		{fault + "?x",
			bad + "the parameter is x; it must be code, delay, answer-delay, retry-after, operation, skip or times"},
		{fault, bad + "code, delay or answer-delay must be given, in the query: /__admin/fault?code=503"},
	} {
		s.do(t, "POST /__admin/reset")
		if line, _, _ := strings.Cut(s.do(t, c.send).String(), "\n"); line != c.want {
			t.Errorf("%s\n%s, want\n%s", c.send, line, c.want)
		}
		s.play(t, createFirst)
		if seed, found := strings.CutPrefix(c.send, reset); found {
			badSeedFile(t, tempFile(t, seed), strings.TrimPrefix(c.want, badBody))
		}
	}
	badSeedFile(t, tempFile(t, ""), "the seed is empty"+anArray)
}

// A path that is not there is a 404 and no redirect. A path that has other methods tells them.
func TestNoSuchPath(t *testing.T) {
	s := start(t)
	const notFound = "\n404 not_found: no such path\n"
	for _, path := range strings.Fields(`/pets /v1x //v1/pets /healthz/ /x/../healthz http://elsewhere
		/v1 /v1/ /v1/pets/ /v1/pets/1/ /v1/pets/1/2 /v1/pets%2F /v1/store /v1//pets /v1/./pets /v1/../v1/pets
		/v1/pets/%2e%2e /__admin /__admin/ /__admin/reset/ /__admin//requests`) {
		s.play(t, "GET, HEAD "+path+notFound+"POST "+path+notFound+"BREW "+path+"?%zz"+notFound)
	}
	for path, methods := range map[string]string{"/v1/pets": "GET, HEAD, POST", "/v1/pets/1": "GET, HEAD",
		"/__admin/reset": "POST", "/__admin/fault": "DELETE, GET, HEAD, PUT", "/__admin/requests": "DELETE, GET, HEAD",
		"/": "GET, HEAD"} {
		s.play(t, "BREW "+path+"?%zz {}\n405 method_not_allowed\nAllow: "+methods)
		s.play(t, "get "+path+"\n405 method_not_allowed\nAllow: "+methods)
	}
}

// A request that is wrong in every way is told one thing after the other. What comes before a fault uses none up.
func TestErrorOrder(t *testing.T) {
	s, long := start(t), repeat("x", 65537)
	s.do(t, "PUT /__admin/fault?code=503&times=1")
	for _, c := range []row{
		{"BREW /v1//pets?%zz " + long + "\nAuthorization: x\nPrefer: code=418\nContent-Type: x", "401 unauthorized"},
		{"BREW /v1//pets?%zz " + long + "\nPrefer: code=418\nContent-Type: x", "413 request_entity_too_large"},
		{"BREW /v1//pets?%zz {\nPrefer: code=x\nContent-Type: x", "400 invalid_parameter: code"},
		{"BREW /v1//pets?%zz {\nContent-Type: x", "503 service_unavailable"},
		{"BREW /v1//pets?%zz {\nContent-Type: x", "404 not_found"},
		{"BREW /v1/pets?%zz {\nContent-Type: x", "405 method_not_allowed"},
		{"POST /v1/pets?%zz {\nContent-Type: x", "400 invalid_parameter: the query"},
		{"POST /v1/pets {\nContent-Type: x", "415 unsupported_media_type"},
		{"POST /v1/pets {", "400 invalid_body"},
	} {
		if got := s.do(t, c.send).String(); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s\n%s, want %s", c.send, got, c.want)
		}
	}
}

// A body is JSON in UTF-8, as far as its headers tell. Without a byte of body, nobody looks at them.
func TestContentTypes(t *testing.T) {
	s := start(t)
	for i, headers := range []string{"Content-Type: application/json", "Content-Type:", "Content-Encoding: Identity",
		`Content-Type: Application/JSON; Charset="UTF-8"; x=y`, // these are right
		"Content-Type: text/plain", "Content-Type: application/x-www-form-urlencoded", "Content-Encoding: gzip",
		"Content-Type: application/json; charset=latin1", "Content-Type: application/json; charset",
		"Content-Type: application/json\nContent-Type: application/json", "Content-Type: application/jsonx",
		"Content-Type: a/b\nContent-Type: application/json", "Content-Encoding: identity\nContent-Encoding: br"} {
		s.play(t, "POST /__admin/reset\n"+headers+"\n204\nGET /v1/pets\n"+headers+"\n200 []")
		for request, want := range map[string]int{"POST /v1/pets " + pet: 201, "POST /__admin/reset []": 204} {
			if i >= 4 {
				want = 415
			}
			same(t, request+"\n"+headers, fmt.Sprint(s.do(t, request+"\n"+headers).StatusCode), fmt.Sprint(want))
		}
	}
}

// Peers that speak unusual, broken or half HTTP get an answer that is JSON, or a closed connection.
func TestRawHTTP(t *testing.T) {
	s, long, spaces := start(t), repeat("x", 300000), repeat(" ", 65510)
	const (
		host    = " HTTP/1.1\nHost: x\n"
		get     = "GET /v1/pets" + withKey
		post    = "POST /v1/pets" + withKey
		last    = "Connection: close\n\n"
		chunked = post + "Transfer-Encoding: chunked\n"
		expect  = "Expect: 100-continue\nContent-Length: 27\n\n" + pet
		closes  = "\nConnection: close"
		tooLong = "413 request_entity_too_large" + closes
		badBody = "400 invalid_body: the body is cut short or badly chunked"
		badHTTP = "400 bad_request: 400 Bad Request" + closes
	)
	for _, c := range []struct {
		name, send, want string
		leaves           bool // the client closes its sending side
	}{
		{name: "pipelining, and a GET with a body", want: "200 []\n\n200 []\n\n200 []" + closes,
			send: get + "\n" + get + "Content-Length: 2\n\n{}" + get + last},
		{name: "half-closed", send: get + last, want: "200 []" + closes, leaves: true},
		{name: "HTTP 1.0", send: strings.Replace(get, "1.1", "1.0", 1) + "\n", want: "200 []" + closes},
		{name: "chunks", send: chunked + last + "5\n" + pet[:5] + "\n16\n" + pet[5:] + "\n0\n\n", want: made + closes},
		{name: "64 KiB", send: chunked + last + "10000\n" + pet + spaces[1:] + "\n0\n\n", want: made + closes},
		{name: "64 KiB and a byte", send: chunked + "\n10001\n" + pet + spaces, want: tooLong},
		{name: "no chunks", send: chunked + last + "0\n\n", want: "400 invalid_body: the body is empty" + closes},
		{name: "a reset of no chunks", want: "204" + closes,
			send: strings.Replace(chunked, "v1/pets", "__admin/reset", 1) + "Content-Type: x\n" + last + "0\n\n"},
		{name: "a bad chunk", send: chunked + "\nx\n", want: badBody + closes, leaves: true},
		{name: "half a body", send: post + "Content-Length: 28\n\n" + pet, want: badBody, leaves: true},
		{name: "too long, no body", send: post + "Content-Length: 65537\n\n", want: tooLong},
		{name: "too long", send: post + "Content-Length: 300000\n\n" + long, want: tooLong},
		{name: "too long, no key", send: "POST /v1" + host + "Content-Length: 300000\n\n" + long, want: noKey + closes},
		{name: "headers of 64 KiB", send: get + "X: " + long[:65336] + "\n" + last, want: "200 []" + closes},
		{name: "headers over 64 KiB", send: get + "X: " + long[:65536] + "\n\n",
			want: "431 request_header_fields_too_large: 431" + closes},
		{name: "Expect", send: post + "Connection: close\n" + expect, want: "100\n\n" + made + closes},
		{name: "Expect, no key", send: "POST /v1/pets" + host + expect, want: noKey + closes},
		{name: "Expect, too long", send: post + strings.Replace(expect, "27", "65537", 1), want: tooLong},
		{name: "Expect, preflight", send: "OPTIONS /v1/pets" + withKey + expect, want: preflight + closes},
		{name: "no Host", send: "GET / HTTP/1.1\n\n", want: badHTTP},
		{name: "control characters", send: "GET /v1/\x01" + withKey + "\n", want: badHTTP},
		{name: "HTTP 3", send: "GET / HTTP/3.0\nHost: x\n\n", want: "505 http_version_not_supported: 505" + closes},
		{name: "coding", send: post + "Transfer-Encoding: x\n\n", want: "501 not_implemented: Unsupported" + closes},
		{name: "half a header", send: "POST /v1/pets HTTP/1.1\nHo", want: badHTTP, leaves: true},
	} {
		s.do(t, "POST /__admin/reset")
		conn := s.dial(t, c.send)
		if c.leaves {
			conn.CloseWrite()
		}
		conn.rest(t, c.name, c.want)
		if pets := s.do(t, "GET /v1/pets").body; strings.Contains(c.want, "201 ") != (pets != "[]\n") {
			t.Errorf("%s: the pets then are %s", c.name, pets)
		}
	}
}

// Who takes too long gets 408 once its headers have come, and an error of net/http or nothing before.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	srv := newServer(filledIn(&api{}))
	limits := []time.Duration{srv.ReadHeaderTimeout, srv.ReadTimeout, srv.WriteTimeout, srv.IdleTimeout, stopTimeout}
	same(t, "the time limits", fmt.Sprint(limits), "[5s 15s 2m0s 2m0s 10s]")
	const post, half = "POST /v1/pets" + withKey, time.Second / 2
	s := serve(t, &api{}, func(srv *http.Server) { srv.ReadHeaderTimeout, srv.ReadTimeout = half, half })
	for send, want := range map[string]string{
		"":                               "no answer",
		post + "X":                       "400 bad_request\nConnection: close",
		post + "Content-Length: 3\n\n{}": "408 request_timeout: the body did not come in time\nConnection: close",
	} {
		s.dial(t, send).rest(t, send, want)
	}
	s.recorded(t, "POST /v1/pets 408")
	s.play(t, "GET /v1/pets\nPrefer: delay=.4, answer-delay=.4\n200 []\nPreference-Applied: delay=.4, answer-delay=.4")
}

// A bug is a 500 with its stack in the log, and the process lives, even if a part of the answer was written before.
func TestPanic(t *testing.T) {
	log := new(lockedBuffer)
	a := &api{log: slog.New(slog.NewTextHandler(log, nil))}
	s := serve(t, a, nil)
	s.do(t, "POST /__admin/reset "+seedOf(2))
	pets := a.current.Load().pets
	pets.ordered[""] = append(pets.ordered[""], nil) // breaks the page behind its second pet
	s.play(t, "GET, HEAD /v1/pets\n500 internal_server_error: the service has a bug; its log tells where")
	s.recorded(t, "GET /v1/pets 500", "HEAD /v1/pets 500")
	newServer(a).ErrorLog.Print("http: Accept error")
	want := regexp.MustCompile(`(?s)level=ERROR msg=panic value="runtime error: invalid memory address.*listPets.*` +
		`path=/v1/pets status=500.*level=WARN msg="http: Accept error"`)
	if !want.MatchString(log.String()) {
		t.Errorf("the log is\n%s\nwant %s", log, want)
	}
}

// A full store answers 507 to creates. All else is as before.
func TestFullStore(t *testing.T) {
	seed := newStore()
	seed.size = maxSize - petCost - 34 // the pet takes 34 bytes with its id
	const full = "\n507 insufficient_storage: the store is full: it holds 268435456 bytes\n"
	s := serve(t, &api{seed: seed}, nil)
	for range 2 {
		s.play(t, `POST /v1/pets {"name":"ab","categoryId":1}`+full+createFirst+"POST /v1/pets "+pet+full)
		s.play(t, "GET /v1/pets\n200 ["+stored+"]\nPOST /__admin/reset []\n204\n"+createFirst)
		s.play(t, "GET /v1/pets?after=1\n200 []\nPOST /__admin/reset\n204")
	}
	// A seed that cannot fit is refused before its pets are read.
	badSeedFile(t, tempFile(t, "["+repeat("1,", maxSize/petCost)+"1]"), "the store is full")
}

// FuzzCreate compares what createPet takes with another reading of the rules, and with what getPet then answers.
func FuzzCreate(f *testing.F) {
	for _, body := range append(strings.Split(`{"name":"","categoryId":0,"status":"pending"}
{ "status" : "sold" , "categoryId" : -0 , "name" : " " }
{"n\u0061me":"a","categoryId":1,"status":"s\u006fld"}
{"name":"\u003cü&\/😀\ud83d\uDE00\uDBFF\udfff\uDAbc\uDC00>","categoryId":1}
{"name":"\u0000\n\"\\\\ud800\u2029\u007f\ufffd","categoryId":1}
{"name":"\\\udfff","categoryId":1}
{"name":"\uDC00\uD800","categoryId":1}
{"id":7,"id":"x","name":"a","categoryId":1,"Name":5}
{"name":5,"name":"a","categoryId":"x","categoryId":1,"status":"x","status":"sold"}
{"name":"a","name":5,"categoryId":1}
{"x":{"name":["}",{"]":"\""}]},"x":null,"name":"a","categoryId":1}
[]`, "\n"), `{"x":`+repeat("[", 9999)+repeat("]", 9999)+`,"name":"a","categoryId":1}`, pet+repeat(" ", 65509),
		`{"name":"`+repeat("a", 65510)+`","categoryId":1}`, "{\"name\":\"\u2028\",\"categoryId\":1}") {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		h, m := handlerOf(newStore()), model{}
		p, ok := readPet(body)
		created := ask(h, "POST /v1/pets", "", string(body))
		if ok && len(body) <= maxBody {
			same(t, string(body), created.String(), m.add(p))
			same(t, string(body), ask(h, "GET /v1/pets/1", "", "").body, created.body)
		} else if created.StatusCode != 400 && created.StatusCode != 413 {
			t.Errorf("%q: got %d %s", body, created.StatusCode, created.body)
		}
		same(t, string(body), ask(h, "GET /v1/pets", "", "").String(), m.list(nil))
		same(t, string(body), ask(h, "POST /v1/pets", "", pet).String(), m.add(NewPet{Name: "a", CategoryID: 1}))
	})
}

// readPet reads a pet token by token, and tells whether createPet must take it.
func readPet(body []byte) (p NewPet, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(body))
	if token, _ := dec.Token(); token != json.Delim('{') || !json.Valid(body) || !utf8.Valid(body) {
		return p, false
	}
	right := map[json.Token]bool{"status": true} // by name, for the last member of that name
	for dec.More() {
		name, _ := dec.Token()
		var raw json.RawMessage
		dec.Decode(&raw)
		text, isText := parsed(string(raw)).(string)
		switch name {
		case "name": // in which half of a surrogate pair becomes a U+FFFD that is not in the spelling
			spelt := strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(string(raw), `\\`, "")), `\ufffd`, "\ufffd")
			p.Name, right[name] = text, isText && strings.Count(text, "\ufffd") == strings.Count(spelt, "\ufffd")
		case "categoryId":
			number, err := strconv.ParseInt(string(raw), 10, 64)
			p.CategoryID, right[name] = number, err == nil
		case "status":
			p.Status, right[name] = PetStatus(text), slices.Contains(statuses[1:], PetStatus(text))
		}
	}
	return p, right["name"] && right["categoryId"] && right["status"]
}

// Pages are as those of the model: 20 pets, or 1 to 100 as limit says (contract, section 8), and a link if more follow.
func FuzzQuery(f *testing.F) {
	m, seed := randomSeed(rand.New(rand.NewSource(1)), 250)
	for _, query := range strings.Split("/limit=1/limit=100/limit=100&status=sold/status=sold&limit=1&after=3/"+
		"limit=%31/limit=+1/after=-0/%zz/a;b/status=/limit=/limit=1&limit=1/after=-9&x=y&Limit=x/limit=101", "/") {
		f.Add(query)
	}
	f.Add(fmt.Sprint("after=", m.pets[229].ID)) // the last 20
	f.Add(fmt.Sprint("limit=100&after=", m.pets[149].ID))
	h := handlerOf(seedStore(seed))
	fine := regexp.MustCompile(`^(limit=([1-9]\d?|100)(&|$))?(after=[1-9]\d{0,9}(&|$))?(status=(pending|sold))?$`)
	f.Fuzz(func(t *testing.T, query string) {
		r := ask(h, "GET /v1/pets?"+query, "", "")
		if given, err := url.ParseQuery(query); r.StatusCode == 200 && err == nil {
			same(t, query, r.String(), m.list(given))
		} else if r.StatusCode != 400 || r.Header["Link"] != nil || fine.MatchString(query) {
			t.Errorf("%s is answered: %.500s", query, r)
		}
	})
}

// README: the description, and all that stands in several places.

// notDescribed are the routes that api/openapi.json and the README's tables leave out on purpose.
var notDescribed = []string{"GET /v1/store/orders", "GET /healthz", "GET /openapi.json", "GET /{$}"}

// Each route is described in api/openapi.json and the README, under its name, and nothing else is.
func TestRoutesAreDescribed(t *testing.T) {
	var named, described []string // patterns and operations
	for _, rt := range routes() {
		if slices.Contains(notDescribed, rt.pattern) {
			continue
		}
		named = append(named, rt.pattern+" "+rt.operation)
		if !inTable(readFile("README.md"), rt.pattern) {
			t.Errorf("no table of README.md has `%s`", rt.pattern)
		}
	}
	for pattern, o := range readOpenAPI() {
		described = append(described, pattern+" "+o.OperationID)
	}
	same(t, "the operations in api/openapi.json, and the routes without notDescribed", sorted(described), sorted(named))
}

// The query parameters of listPets are the same wherever they stand, and so is its largest page.
func TestParametersAreDescribed(t *testing.T) {
	var described []string
	for _, p := range readOpenAPI()["GET /v1/pets"].Parameters {
		if p.In == "query" {
			described = append(described, p.Name)
		}
	}
	listPets := regexp.MustCompile(`(?s)\) listPets\(.*?\n}`).FindString(readFile("handlers.go"))
	same(t, "what listPets reads", found(listPets, `x\.query(?:, |\.Has\()"(\w+)"`), listParameters)
	same(t, "parameters of listPets in api/openapi.json", sorted(described), listParameters)
	for _, name := range listParameters {
		rowHas(t, "README.md", "listPets", "`"+name+"`")
		rowHas(t, "README.md", "400 | `invalid_parameter`", "`"+name+"`")
	}
	bounds := fmt.Sprintf("1 to %d, by default %d", maxLimit, defaultLimit)
	rowHas(t, "README.md", "listPets", bounds)
	rowHas(t, "api/contract.md", "`limit`", bounds)
}

// The bounds and defaults in api/openapi.json are those that the service has.
func TestBoundsAreDescribed(t *testing.T) {
	described, s := readOpenAPI(), start(t, "-seed", tempFile(t, seedOf(1200)))
	for pattern, o := range described {
		for _, p := range o.Parameters {
			others := "" // which the request needs
			if strings.Contains(pattern, "fault") && p.Name != "code" {
				others = "&code=503"
			}
			answer := func(value any) reply {
				s.do(t, "DELETE /__admin/fault")
				return s.do(t, fmt.Sprint(pattern, "?", p.Name, "=", value, others))
			}
			check := func(keyword string, bound *float64, beyond float64) {
				if bound == nil && answer(999*beyond).StatusCode == 400 ||
					bound != nil && (answer(*bound).StatusCode != 200 || answer(*bound+beyond).StatusCode != 400) {
					t.Errorf("the service has another %s for %s of %s than api/openapi.json", keyword, p.Name, pattern)
				}
			}
			if p.In == "query" && (p.Schema.Type == "integer" || p.Schema.Type == "number") {
				check("minimum", p.Schema.Minimum, -1)
				check("maximum", p.Schema.Maximum, 1)
			}
			if d := p.Schema.Default; d != nil && answer(d).body != s.do(t, pattern+"?"+others).body {
				t.Errorf("the service has another default for %s of %s than api/openapi.json", p.Name, pattern)
			}
		}
	}
	content := func(r response) *schema { return r.Content["application/json"].Schema }
	page := content(described["GET /v1/pets"].Responses["200"])
	journal := content(described["GET /__admin/requests"].Responses["200"]).Properties["requests"]
	id := content(described["POST /__admin/reset"].RequestBody).Items.Properties["id"]
	same(t, "maxItems of pets and of the journal, minimum and maximum of an id in a seed, in api/openapi.json",
		fmt.Sprint(page.MaxItems, journal.MaxItems, *id.Minimum, *id.Maximum),
		fmt.Sprint(maxLimit, maxJournal, 1.0, float64(maxSeedID)))
}

// A pet has the same members in store.go, in api/openapi.json and in the README.
func TestMembersAreDescribed(t *testing.T) {
	var members, described []string
	for _, field := range reflect.VisibleFields(reflect.TypeOf(Pet{})) {
		if member, options, _ := strings.Cut(field.Tag.Get("json"), ","); member != "" {
			members = append(members, fmt.Sprint(member, " is required: ", options != "omitempty"))
			rowHas(t, "README.md", "createPet", "`"+member+"`")
		}
	}
	told := readOpenAPI()["POST /v1/pets"].Responses["201"].Content["application/json"].Schema
	for member := range told.Properties {
		described = append(described, fmt.Sprint(member, " is required: ", slices.Contains(told.Required, member)))
	}
	same(t, "the members in api/openapi.json", sorted(described), sorted(members))
}

// The parameters, words and operations of a fault are those of the routes, of README's tables and of the page's form.
func TestFaultIsDescribed(t *testing.T) {
	s := start(t)
	choices := func(query string) []string { // which the refusal of a fault tells
		_, list, _ := strings.Cut(s.do(t, "PUT /__admin/fault?"+query).error().Message, "; it must be ")
		return regexp.MustCompile(`, | or `).Split(list, -1)
	}
	parameters, words, operations := choices("bogus"), choices("code")[1:], choices("code=503&operation")
	for _, p := range readOpenAPI()["PUT /__admin/fault"].Parameters {
		for _, choice := range map[string][]string{"code": words, "operation": operations}[p.Name] {
			if !p.Schema.allows(choice) {
				t.Errorf("api/openapi.json does not allow %s=%s of a fault", p.Name, choice)
			}
		}
	}
	for _, name := range operations {
		rowHas(t, "README.md", "`operation`", "`"+name+"`")
	}
	for _, word := range words {
		same(t, word, s.do(t, "PUT /__admin/fault?code="+word).Status, "200 OK")
		rowHas(t, "README.md", "| `hangup`", "`"+word+"`")
	}
	for _, rt := range routes() {
		named := strings.Contains(rt.pattern, " /v1/") && rt.operation != ""
		same(t, rt.pattern+" is for a fault", slices.Contains(operations, rt.operation), named)
	}
	form := regexp.MustCompile(`(?s)^.*<form|</form>.*`).ReplaceAllString( // up to the form that has the field delay
		regexp.MustCompile(`(?s)^.*name="delay".*?</form>`).FindString(string(indexHTML)), "")
	cells := found(readFile("README.md"), "\n\\| `([a-z][a-z-]+)` \\|")
	same(t, "first cells in README.md", cells, sorted(parameters, words))
	same(t, "fields for a fault in api/index.html", found(form, `name="([^"]+)"`), sorted(parameters))
	same(t, "options for a fault in api/index.html", found(form, `<option[^>]*>([a-z][A-Za-z]{3,})`),
		sorted(words, operations))
}

// The codes of Errors are those in the README's table.
func TestCodesAreDescribed(t *testing.T) {
	source := readFile("errors.go") + readFile("auth.go") + readFile("store.go") + readFile("handlers.go")
	codes := found(source, `\tcode\w+ += "(\w+)"`)
	for _, status := range found(source, `newError\((\d{3}),`) {
		codes = append(codes, newError(must(strconv.Atoi(status)), "").Code)
	}
	same(t, "the codes in README.md", found(readFile("README.md"), "\n\\| \\d{3} \\| `(\\w+)`"), sorted(codes))
	const ofHTTP = "`bad_request`, `request_header_fields_too_large`, `http_version_not_supported`" // of net/http
	rowHas(t, "README.md", "400, 431, 505", ofHTTP)
}

// The answers to each operation are as api/openapi.json describes them: with a status of the file or its default, the
// headers and the members there, and no others. Each example in the file is what the service says.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	described, missing := readOpenAPI(), map[string]bool{} // what the file tells, and no answer has been so far
	for pattern, o := range described {
		for status, told := range o.Responses {
			missing[pattern+" "+status] = true
			example := told.Content["application/json"].Example
			if example != nil && pattern != "GET /__admin/requests" {
				missing[pattern+" "+status+" "+asJSON(example)] = true // in the one left out, there are times
			}
			for name, h := range told.Headers {
				missing[fmt.Sprint(name, ": ", h.Example)] = true
			}
		}
	}
	check := func(pattern string, r reply) {
		t.Helper()
		responses, status := described[pattern].Responses, strconv.Itoa(r.StatusCode)
		if _, listed := responses[status]; !listed {
			status = "default"
		}
		told, headers, body := responses[status], r.Header.Clone(), parsed(r.body)
		schema := told.Content["application/json"].Schema
		ok := r.Request.Method == "HEAD" || r.body == "" && schema == nil || schema != nil && schema.allows(body)
		delete(missing, pattern+" "+status+" "+asJSON(body))
		for name, h := range told.Headers {
			value := headers.Get(name)
			ok = ok && (value == "" && h.Required != true || h.Schema.allows(value) || h.Schema.allows(parsed(value)))
			delete(missing, name+": "+value)
			headers.Del(name)
		}
		if headers.Get("Preference-Applied") == "" {
			delete(missing, pattern+" "+status)
		} else { // it was asked for, and may have these besides
			for name := range responses["default"].Headers {
				headers.Del(name)
			}
			headers.Del("WWW-Authenticate")
		}
		for _, name := range []string{"Connection", "Content-Length", "Content-Type", "Date", "Preference-Applied"} {
			headers.Del(name)
		}
		if !ok || len(headers) > 0 {
			t.Errorf("%s %s is not as in api/openapi.json, or has %v besides:\n%s", pattern, status, headers, r)
		}
	}
	headers := []string{"", "Authorization: x", "Authorization: Bearer x", "Prefer: delay=0, answer-delay=0",
		"Prefer: code=x", "Content-Length: 65537", "Content-Encoding: br", "Transfer-Encoding: gzip"}
	for _, code := range []int{400, 401, 404, 408, 413, 415, 429, 500, 503, 507, 599} {
		headers = append(headers, fmt.Sprint("Prefer: code=", code), fmt.Sprint("Prefer: retry-after=7, code=", code))
	}
	buggy, full := &api{}, newStore()
	full.size = maxSize
	s, broken, crammed := serve(t, &api{}, nil), serve(t, buggy, nil), serve(t, &api{seed: full}, nil)
	impatient := serve(t, &api{}, func(srv *http.Server) { srv.ReadTimeout = time.Second / 4 })
	buggy.current.Store(&world{}) // without a store
	rex := asJSON(described["POST /v1/pets"].RequestBody.Content["application/json"].Example)
	const tom, fault = `{"name":"Tom","categoryId":9}`, "PUT /__admin/fault?code=503&times=2&operation=createPet"
	for pattern, requests := range map[string][]string{ // what is done first, then a right request, and others
		"GET /v1/pets": {"POST /__admin/reset [" + rex + "," + tom + "," + tom + "]",
			"GET /v1/pets?limit=2", "GET /v1/pets?limit=0", "GET /v1/pets?%zz"},
		"POST /v1/pets": {"", "POST /v1/pets " + rex, "POST /v1/pets " + tom, "POST /v1/pets?%zz",
			"POST /v1/pets {}\nContent-Type: text/plain", `POST /v1/pets {"name":"a","categoryId":1,"status":"lost"}`},
		"GET /v1/pets/{petId}": {"POST /__admin/reset [" + rex + "]",
			"GET /v1/pets/1", "GET /v1/pets/5", "GET /v1/pets/Rex", "GET /v1/pets/1?%zz"},
		"POST /__admin/reset": {"", "POST /__admin/reset [" + rex + "]", "POST /__admin/reset?%zz",
			"POST /__admin/reset [" + tom + `,{"name":"Tom"}]`, "POST /__admin/reset []\nContent-Type: text/plain"},
		"PUT /__admin/fault": {"", fault, "PUT /__admin/fault?code=500&retry-after=soon",
			"PUT /__admin/fault?skip=1&delay=0&answer-delay=0&retry-after=5&code=418"},
		"GET /__admin/fault":       {fault + "|POST /v1/pets|POST /v1/pets|POST /v1/pets " + tom, "GET /__admin/fault"},
		"DELETE /__admin/fault":    {"", "DELETE /__admin/fault"},
		"GET /__admin/requests":    {"GET /v1/pets/x\nPrefer: delay=0|POST /v1/pets " + tom, "GET /__admin/requests"},
		"DELETE /__admin/requests": {"", "DELETE /__admin/requests"},
	} {
		for _, request := range requests[1:] {
			for _, header := range headers {
				for _, before := range strings.Split(strings.TrimSuffix("POST /__admin/reset|"+requests[0], "|"), "|") {
					s.do(t, before)
				}
				check(pattern, s.do(t, request+"\n"+header))
				if strings.HasPrefix(request, "GET") {
					check(pattern, s.do(t, "HEAD"+request[3:]+"\n"+header))
				}
			}
		}
		check(pattern, impatient.do(t, requests[1]+"\nContent-Length: 999"))
		if strings.Contains(pattern, "/v1/") {
			check(pattern, broken.do(t, requests[1]))
			check(pattern, crammed.do(t, requests[1]))
		}
	}
	same(t, "what api/openapi.json tells, and no answer is", fmt.Sprint(missing), "map[]")
}

// README: the limits.

// slow skips what takes too long or too much memory under the race detector, as far as the binary tells that.
func slow(t *testing.T) {
	info, _ := debug.ReadBuildInfo()
	if testing.Short() || strings.Contains(fmt.Sprint(info.Settings), "{-race true}") {
		t.Skip("takes too long with -short or -race")
	}
	t.Parallel()
}

// proc returns what Linux tells of the process.
func (p *process) proc(t testing.TB, file string) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, file))
	if err != nil {
		t.Skip("memory and CPU time are read from /proc")
	}
	return string(text)
}

// stayedWithin checks the most resident memory that the process has had, in MiB.
func (p *process) stayedWithin(t testing.TB, most int) {
	t.Helper()
	found := regexp.MustCompile(`VmHWM:\s*(\d+) kB`).FindStringSubmatch(p.proc(t, "status"))
	kib := must(strconv.Atoi(found[1]))
	if kib>>10 > most {
		t.Errorf("the process took %d MiB of memory, more than %d", kib>>10, most)
	}
}

// 100 clients that stall while they send, wait or read, each a page of another world, take less than 1 GiB of memory.
func TestMemory(t *testing.T) {
	slow(t)
	p, long := launch(t, child("-quiet")), repeat("x", 60000)
	for send, each := range map[string]int{ // how often each client sends it
		"POST /v1/pets" + withKey + "Content-Length: 65536\n\n" + long:                   1,
		"POST /v1/pets" + withKey + "Prefer: delay=30\nContent-Length: 60000\n\n" + long: 1,
		"GET /v1/pets?limit=100" + withKey + "Prefer: answer-delay=30\n\n":               1,
		"GET /v1/pets?limit=100" + withKey + "\n":                                        50,
	} {
		var stalled []*connection
		for i := range 100 {
			if each > 1 || i == 0 {
				p.do(t, `POST /__admin/reset [{"name":"`+long[:50000]+`","categoryId":1}]`)
				for range 4 {
					p.do(t, `POST /v1/pets {"name":"`+long+`","categoryId":1}`)
				}
			}
			c := p.dial(t, "")
			c.SetReadBuffer(4 << 10)
			c.send(repeat(send, each), "")
			stalled = append(stalled, c)
			if each > 1 {
				c.in.Peek(1)
			}
		}
		p.pets(t, "")
		p.journal(t)
		for _, c := range stalled {
			c.Close()
		}
	}
	p.stayedWithin(t, 1024)
	p.cmd.Process.Signal(syscall.SIGTERM)
	p.ends(t, "<nil>")
}

// A million pets load, and take no more memory under load than README.md tells.
func TestMillion(t *testing.T) {
	slow(t)
	pets, most := 200000, 250
	if soak > time.Second {
		pets, most = 1000000, 500
	}
	three := ""
	for _, status := range statuses[1:] {
		three += asJSON(NewPet{repeat("x", 30), 7, status}) + ","
	}
	seed := "[" + repeat(three, pets/3) + `{"name":"last","categoryId":7}]`
	p := launch(t, child("-quiet", "-seed", tempFile(t, seed)))
	together(8, func(i int) {
		for after := i * 24000; after < i*24000+24000; after += 24 {
			r := p.do(t, fmt.Sprintf("GET /v1/pets?limit=100&status=sold&after=%d", after))
			same(t, "a page", fmt.Sprintf("%.15s", r.body), fmt.Sprintf(`[{"id":%d,"name":"`, after+3)[:15])
		}
	})
	p.stayedWithin(t, most)
}

// Resets that come at once do not each keep a copy of a large seed.
func TestResetsAtOnce(t *testing.T) {
	slow(t)
	p := launch(t, child("-quiet", "-seed", tempFile(t, seedOf(200000))))
	together(100, func(int) {
		for range 3 {
			same(t, "a reset", p.do(t, "POST /__admin/reset").String(), "204")
		}
	})
	p.stayedWithin(t, 400) // some 500 if those that wait kept their worlds
}

// README: development. What random requests find.

// soak is how long TestSoak runs. A long one makes other tests long too.
var soak = must(time.ParseDuration(cmp.Or(os.Getenv("PETSTORE_SOAK"), "1s")))

// model has the pets that the service should have, in ascending order of id.
type model struct {
	pets []Pet
	last int64
}

var statuses = []PetStatus{"", "available", "pending", "sold"}

// list returns the answer to a listPets with this query, as in a script.
func (m model) list(query url.Values) string {
	limit, page := 20, []Pet{}
	after, _ := strconv.ParseInt(query.Get("after"), 10, 64)
	kept := "" // of the query in the Link
	if query.Has("limit") {
		limit, _ = strconv.Atoi(query.Get("limit"))
		kept = fmt.Sprintf("limit=%d&", limit)
	}
	if query.Has("status") {
		kept += "status=" + query.Get("status") + "&"
	}
	for _, p := range m.pets {
		if p.ID <= after || query.Has("status") && string(p.Status) != query.Get("status") {
			continue
		} else if len(page) == limit {
			return fmt.Sprintf("200 %s\nLink: </v1/pets?%safter=%d>; rel=\"next\"", asJSON(page), kept, after)
		}
		page, after = append(page, p), p.ID
	}
	return "200 " + asJSON(page)
}

// add adds a pet, and returns the answer to its createPet, as in a script.
func (m *model) add(p NewPet) string {
	m.last++
	m.pets = append(m.pets[:len(m.pets):len(m.pets)], Pet{ID: m.last, NewPet: p})
	return fmt.Sprintf("201 %s\nLocation: /v1/pets/%d", asJSON(m.pets[len(m.pets)-1]), m.last)
}

// randomPet returns a pet with values that meet those of other pets.
func randomPet(random *rand.Rand) NewPet {
	category := []int64{math.MinInt64, -1, 0, 7, 8, math.MaxInt64}[random.Intn(6)]
	return NewPet{Name: repeat("n", random.Intn(30)), CategoryID: category, Status: statuses[random.Intn(4)]}
}

// randomSeed returns the model of a seed of n pets, and the seed: shuffled, and the last pets without ids.
func randomSeed(random *rand.Rand, n int) (m model, seed string) {
	elements := make([]string, n)
	places := append(random.Perm(n-3), n-3, n-2, n-1)
	for i := range n {
		if m.last++; i < n-3 {
			m.last += random.Int63n(4)
		}
		p := Pet{ID: m.last, NewPet: randomPet(random)}
		m.pets = append(m.pets, p)
		if elements[places[i]] = asJSON(p); i >= n-3 {
			elements[places[i]] = asJSON(p.NewPet)
		}
	}
	return m, "[" + strings.Join(elements, ",") + "]"
}

// randomRead returns a getPet or listPets, and its answer.
func (m model) randomRead(random *rand.Rand) (request, answer string) {
	if id := random.Int63n(m.last+3) - 1; random.Intn(3) == 0 {
		answer = "404 not_found"
		if i := slices.IndexFunc(m.pets, func(p Pet) bool { return p.ID == id }); i >= 0 {
			answer = "200 " + asJSON(m.pets[i])
		}
		return fmt.Sprint("GET /v1/pets/", id), answer + deprecated
	}
	query := url.Values{}
	for i, name := range []string{"limit", "after", "status"} {
		if random.Intn(2) == 0 {
			query.Set(name, []string{fmt.Sprint(random.Intn(maxLimit) + 1), fmt.Sprint(random.Int63n(m.last+5) - 2),
				string(statuses[random.Intn(3)+1])}[i])
		}
	}
	return "GET /v1/pets?" + query.Encode(), m.list(query)
}

// Long random sequences of all operations and resets do what the model does, and the journal has them all.
func TestModel(t *testing.T) {
	for round := range 3 {
		random := rand.New(rand.NewSource(int64(round)))
		seed, file := randomSeed(random, random.Intn(60)+4)
		s, m := start(t, "-quiet", "-seed", tempFile(t, file)), seed
		var journal []string
		for step := 0; step < 1500 && !t.Failed(); step++ {
			request, answer := m.randomRead(random)
			switch n := random.Intn(100); {
			case n < 20:
				p := randomPet(random)
				request, answer = "POST /v1/pets "+asJSON(p), m.add(p)
			case n == 20:
				request, answer = "POST /__admin/reset", "204"
				m, journal = seed, nil
			case n == 21:
				m, file = randomSeed(random, random.Intn(60)+4)
				request, answer, journal = "POST /__admin/reset "+file, "204", nil
			case n < 25:
				s.recorded(t, journal...)
			}
			s.play(t, request+"\n"+answer)
			if !strings.Contains(request, " /__admin/") {
				parts := append(strings.SplitN(request, " ", 3), "")
				journal = append(journal, strings.TrimSpace(parts[0]+" "+parts[1]+" "+answer[:3]+" "+parts[2]))
			}
		}
	}
}

// On 64 connections at once, clients create, list and leave, answers are lost or cut, and the service is reset: each
// page is of one world, and of each world, the pets, the journal and the fault tell the same.
func TestSoak(t *testing.T) {
	goroutines, a, srv := runtime.NumGoroutine(), &api{}, (*http.Server)(nil)
	s := serve(t, a, func(server *http.Server) { srv = server })
	for end, round := time.Now().Add(soak), int64(0); time.Now().Before(end) && !t.Failed(); round++ {
		var mu sync.Mutex // guards worlds
		var worlds []*world
		var lost, steps atomic.Int64
		reset := func() {
			mu.Lock()
			defer mu.Unlock()
			seed := fmt.Sprintf(`{"name":"seed %d","categoryId":1}`, len(worlds))
			s.do(t, "POST /__admin/reset ["+seed+","+seed+"]")
			worlds = append(worlds, a.current.Load())
			s.do(t, fmt.Sprintf("PUT /__admin/fault?code=lost&operation=createPet&skip=1&times=%d", len(worlds)%9+1))
		}
		reset()
		together(64, func(i int) {
			random := rand.New(rand.NewSource(64*round + int64(i)))
			send := func(status int, request string) (r reply) {
				if steps.Add(1)%100 == 0 {
					reset()
				}
				r = s.do(t, request)
				if r.StatusCode == 0 && status == 201 { // the standing fault has struck
					lost.Add(1)
				} else if r.StatusCode != status {
					t.Errorf("%.200s\n%s", request, r)
				}
				return r
			}
			create := func() string { return "POST /v1/pets " + asJSON(randomPet(random)) }
			for range 2 {
				send(201, create())
				send(201, create())
				send(201, create()+"\nPrefer: code=truncate")
				send(0, create()+"\nPrefer: code=lost")
				send(500, "POST /v1/pets {}\nPrefer: code=500")
				send(404, "GET /v1/pets/0")
				page, pets := send(200, "GET /v1/pets?limit=100"), []Pet{}
				if err := json.Unmarshal([]byte(page.body), &pets); err != nil || len(pets) < 2 ||
					pets[0].Name != pets[1].Name || pets[len(pets)-1].ID != int64(len(pets)) {
					t.Errorf("a page of two worlds, or with a gap: %s", page)
				}
			}
			for _, unfinished := range []string{"GET /v1/pets?limit=100" + withKey + "\n", "GET /v1/pe",
				"POST /v1/pets" + withKey + "Content-Length: 30\n\n{", "GET /__admin/requests" + withKey + "\n",
				"POST /v1/pets" + withKey + "Prefer: delay=30\nContent-Length: 2\n\n{}"} {
				s.dial(t, unfinished).Close()
			}
		})
		for i, world := range worlds {
			a.current.Store(world)
			var created, added []string
			var struck int64 // requests that the standing fault has struck, as the journal tells
			requests, _ := s.journal(t)
			for _, r := range requests {
				if r.Status == 201 || r.Fault == "code=lost" {
					created = append(created, r.Body)
				}
				if r.Fault == "code=lost" && r.Headers["Prefer"] == "" {
					struck++
				}
			}
			for _, p := range s.pets(t, "?limit=100")[2:] {
				added = append(added, asJSON(p.NewPet))
			}
			slices.Sort(created)
			slices.Sort(added)
			same(t, fmt.Sprint("pets of world ", i, ", and its journal"), added, created)
			fault := world.standing.Load()
			same(t, fmt.Sprint("the fault of world ", i), struck, max(min(fault.met.Load()-1, fault.Times), 0))
			lost.Add(-struck)
		}
		same(t, "lost answers that the journals do not have", fmt.Sprint(lost.Load()), "0")
	}
	srv.Close()
	eventually(t, "the end of all goroutines", func() bool { return runtime.NumGoroutine() <= goroutines })
}

// A Prefer header does what it says, and nothing else does.
func FuzzPrefer(f *testing.F) {
	for _, header := range strings.Split(`|code=503, delay=1.5|Code = "418" ; q=1,,code=999|code=lost, answer-delay=30|
code=418 |answer-delay=30.1|answer-delay=|a="b;code=500";c, delay=30|wait,code=401|code=hangup|code=99|code=600|
code=Hangup|code|delay=-1|delay=1e1|delay=30.01|delay=NaN|delay=1.2.3|code=404,code=500|,;="\"|code=425|code=511|
delay=0,code=truncate, retry-after=5|code=418, retry-after=0|retry-after=3600;x=",",code=429|code=500, retry-after=3601|
retry-after=x, skip=x, wait=5, codes=500|delay=0, retry-after|code=418, skip=x, times=0|code=503, retry-after=-0|
code=418,"retry-after=01", a="code=1`, "|") {
		f.Add(strings.Trim(header, "\n"))
	}
	f.Add("Code\v")
	f.Add(repeat(`"\"`, 30000))
	h := handlerOf(newStore())
	preference := regexp.MustCompile(`(?s)^[ \t]*([^=;]*?)[ \t]*(?:=[ \t]*"*([^;]*?)"*[ \t]*)?(?:;.*)?$`)
	valid := regexp.MustCompile(`^(code=([45]\d\d|hangup|lost|truncate)|(answer-)?delay=(\d+\.?\d*|\.\d+)|` +
		`retry-after=(0|[1-9]\d{0,2}|[12]\d{3}|3[0-5]\d\d|3600))$`)
	f.Fuzz(func(t *testing.T, header string) {
		given, ok := url.Values{}, true
		for _, p := range strings.Split(header, ",") {
			m := preference.FindStringSubmatch(p)
			if name := strings.ToLower(m[1]); slices.Contains(preferences, name) && !given.Has(name) {
				given.Set(name, m[2])
				seconds, _ := strconv.ParseFloat(m[2], 64)
				ok = ok && valid.MatchString(name+"="+m[2]) && (seconds <= 30 || !strings.HasSuffix(name, "delay"))
			}
		}
		r, code, want := ask(h, "GET /v1/pets", header, ""), given.Get("code"), "200 false" // the latter: it breaks off
		switch {
		case !given.Has("code") && !given.Has("delay") && !given.Has("answer-delay"):
			given = nil
		case !ok:
			want, given = "400 false", nil
		case code == "hangup" || code == "lost":
			want, given = "0 true", nil
		case code == "truncate":
			want = "200 true"
		case code != "":
			want = code + " false"
		}
		var applied []string
		for _, name := range preferences {
			if given.Has(name) && (name != "retry-after" || want[:3] == code) {
				applied = append(applied, name+"="+given.Get(name))
			}
		}
		same(t, header, fmt.Sprint(r.StatusCode, " ", r.broken, " ", r.Header.Get("Preference-Applied")),
			want+" "+strings.Join(applied, ", "))
	})
}

// README: flags and environment.

// Command lines that do not serve. A fatal error is one line on stderr, and tells the way out.
func TestCommandLine(t *testing.T) {
	const duration = "it must be a duration from 0s to 30s, as 150ms or 2s; .*"
	taken := start(t, "-latency", "30s").addr
	check := func(key string, code int, output string, args ...string) {
		petstore{key: key, args: args}.ends(t, code, output)
	}
	check("", 0, `1\.0\.0`, "-version")
	check("", 0, `(?s)Petstore .* page for browsers\sat / .* /openapi\.json\..*PETSTORE_API_KEY.*`+
		`-addr host:port.*127\.0\.0\.1:8080.*-latency duration.*-quiet.*-seed file.*-stdin.*-version.*`, "-h")
	check("", 2, "petstore: .*-x y; -h lists the flags", "-x\ny")
	check("", 2, "petstore: unexpected argument stray one; -h lists the flags", "-quiet", "stray\r\none")
	for _, bad := range []string{"150", "-1ns", "30.001s"} {
		check("", 2, "petstore: .*"+bad+".*"+duration, "-latency", bad)
	}
	check("k", 1, "petstore: .*no .json.*", "-seed", "no\n.json")
	check("k", 1, "petstore: .*api.*", "-seed", "api") // a folder
	for _, bad := range []string{" k", "k k", "k\nk", "k\x7f", "ké", repeat("k", 4097)} {
		check(bad, 1, "petstore: PETSTORE_API_KEY must be 1 to 4096 visible ASCII .*")
	}
	for bad, port := range map[string]string{"": "8080", ":": "8080", "8081": "8081"} {
		check("k", 1, "petstore: .*; write -addr 127.0.0.1:"+port+", or -addr :"+port+" for every .*", "-addr", bad)
	}
	for _, bad := range strings.Split("65536 :65536 :80a localhost ::1:8080 [::1:8080 http://127.0.0.1:80 a\nb", " ") {
		check("k", 1, "petstore: .*; write -addr host:port, with a port from 0 to 65535", "-addr", bad)
	}
	check("k", 1, "petstore: .*192.0.2.1:0.*", "-addr", "192.0.2.1:0") // another machine's
	check("k", 1, "petstore: .*"+taken+".*; -addr 127.0.0.1:0 takes a free port", "-addr", taken)
}

// A key that is given is not shown. Without one, each run makes one, and shows it in a curl line and a link.
func TestKeys(t *testing.T) {
	given := petstore{key: "!~" + repeat("k", 4094)}.start(t)
	same(t, "stderr", given.stderr.String(), "a page for browsers is at http://"+given.addr+"/\n")
	given.play(t, "GET /v1/pets\n200 []")
	s, other := petstore{}.start(t), petstore{}.start(t)
	banner := "PETSTORE_API_KEY is not set, so this run has a key of its own:\n\n" +
		"    curl -H 'Authorization: Bearer {key}' http://{addr}/v1/pets\n    http://{addr}/#key={key}\n\n"
	same(t, "stderr", s.stderr.String(), strings.NewReplacer("{key}", s.key, "{addr}", s.addr).Replace(banner))
	s.play(t, "GET /v1/pets\n200 []")
	s.as(other.key).play(t, "GET /v1/pets\n"+wrongKey)
}

// The base URL is one that clients on this machine can use.
func TestBaseURL(t *testing.T) {
	for _, addr := range []string{":0", "0.0.0.0:0", "127.0.0.1:"} {
		start(t, "-addr", addr).play(t, "GET /v1/pets\n200 []")
	}
	for want, addr := range map[string]net.TCPAddr{"http://127.0.0.1:80": {IP: net.IPv6unspecified, Port: 80},
		"http://[::1]:80":          {IP: net.IPv6loopback, Port: 80},
		"http://[fe80::1%25lo]:80": {IP: net.ParseIP("fe80::1"), Zone: "lo", Port: 80}} {
		same(t, addr.String(), rootURL(&addr), want)
	}
}

// A service whose base URL is lost, as with > /dev/full, ends: nobody would find it.
func TestLostURL(t *testing.T) {
	var stderr lockedBuffer
	cmd := child()
	cmd.Stdout, cmd.Stderr = closedPipe(), &stderr
	end := fmt.Sprint(within(t, "the end of the process", cmd.Run), stderr.String())
	if !regexp.MustCompile(`(?s)^exit status 1.*\npetstore: cannot print the base URL: [^\n]+\n$`).MatchString(end) {
		t.Error(end)
	}
}

// closedPipe returns a file that refuses all that is written to it.
func closedPipe() *os.File { r, w, _ := os.Pipe(); r.Close(); return w }

// GOGC and GOMEMLIMIT win over what the service sets.
func TestCollector(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	stopped, stop := context.WithCancel(context.Background())
	stop()
	for set, want := range map[string]string{"": fmt.Sprint(400, memoryLimit), "GOGC": fmt.Sprint(77, memoryLimit),
		"GOMEMLIMIT": fmt.Sprint(400, 900<<20)} {
		debug.SetGCPercent(77) // as the runtime does at its start
		debug.SetMemoryLimit(900 << 20)
		getenv := func(name string) string { return map[string]string{set: "set"}[name] }
		run(stopped, []string{"-addr", "127.0.0.1:0"}, getenv, nil, io.Discard, io.Discard)
		same(t, set, fmt.Sprint(debug.SetGCPercent(100), debug.SetMemoryLimit(-1)), want)
	}
}

// README: output.

// logged returns what the service has logged so far, without the times, and the first words of what it says at its end.
func (s *service) logged() string {
	log := regexp.MustCompile(`(?m)^time=\S+ |\Aa page for .*\n`).ReplaceAllString(s.stderr.String(), "")
	return regexp.MustCompile(`level=INFO msg="(stopping|standard input has ended).*`).ReplaceAllString(log, "$1")
}

// The log has one line for each request that the journal has, with what went wrong and the fault, and not the key.
func TestLog(t *testing.T) {
	s := start(t)
	s.dial(t, "no HTTP\n\n").rest(t, "no HTTP", "400 bad_request\nConnection: close")
	want := ""
	for request, line := range map[string]string{ // ERROR stands for the error
		"GET /v1/pets?limit=5":              `method=GET path="/v1/pets?limit=5" status=200`,
		"BREW /v1/pets/1?a%20b%0A=%22":      `method=BREW path="/v1/pets/1?a%20b%0A=%22" status=405 error=ERROR`,
		"GET /x/" + testKey + "?" + testKey: `method=GET path=/x/<API_KEY>?<API_KEY> status=404 error=ERROR`,
		"OPTIONS /v1":                       `method=OPTIONS path=/v1 status=204`,
		"GET /v1\nAuthorization: Bearer x":  `method=GET path=/v1 status=401 error=ERROR`,
		"GET /v1/store/orders":              `method=GET path=/v1/store/orders status=501 error=ERROR`,
		"GET /v1\nPrefer: code=hangup":      `method=GET path=/v1 status=0 fault="code=hangup"`,
		"GET /v1\nPrefer: code=418":         `method=GET path=/v1 status=418 error=ERROR fault="code=418"`,
		"GET /v1/pets?limit=" + testKey:     `method=GET path="/v1/pets?limit=<API_KEY>" status=400 error=ERROR`,
		"GET /healthz":                      "", "OPTIONS /healthz": "", "BREW /__admin": "",
	} {
		message := strings.ReplaceAll(s.do(t, request).error().Message, testKey, "<API_KEY>")
		if line != "" {
			want += "level=INFO msg=request " + strings.Replace(line, "ERROR", strconv.Quote(message), 1) + "\n"
		}
	}
	_, total := s.journal(t)
	s.stop()
	same(t, "the log", s.logged(), want+"stopping\n")
	same(t, "requests in the journal", fmt.Sprint(total), fmt.Sprint(strings.Count(want, "\n")))
	for key, shown := range map[string]string{"1234567": "1234567", "12345678": "<API_KEY>"} {
		s := petstore{key: key}.start(t)
		s.do(t, "OPTIONS /"+key)
		s.stop()
		same(t, key, s.logged(), "level=INFO msg=request method=OPTIONS path=/"+shown+" status=204\nstopping\n")
	}
	s = start(t, "-quiet")
	s.do(t, "GET /v1/pets")
	s.recorded(t, "GET /v1/pets 200")
	s.stop()
	same(t, "-quiet", s.logged(), "")
}

// No request waits for a reader of the log: 1,000 lines are kept, more are lost, and another line tells how many. At
// its end, the service waits for a second, also if no more lines can be kept.
func TestLogUnread(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.stderr.unread.Lock()
	for n := range 1200 {
		s.do(t, fmt.Sprint("OPTIONS /", n))
	}
	s.stderr.unread.Unlock()
	told := regexp.MustCompile(`level=WARN msg="log lines are lost, as nobody read them" lines=(1\d\d)\n`)
	eventually(t, "the line that tells how many are lost", func() bool { return told.MatchString(s.logged()) })
	s.do(t, "OPTIONS /last")
	s.stop()
	lost, want := told.FindStringSubmatch(s.logged()), ""
	for n := range 1200 - must(strconv.Atoi(lost[1])) {
		want += fmt.Sprintf("level=INFO msg=request method=OPTIONS path=/%d status=204\n", n)
	}
	want += lost[0] + "level=INFO msg=request method=OPTIONS path=/last status=204\nstopping\n"
	same(t, "the log", s.logged(), want)
	s = start(t)
	s.stderr.unread.Lock()
	defer s.stderr.unread.Unlock()
	for range 1200 {
		s.do(t, "OPTIONS /")
	}
	s.stop()
}

// A standard error that is full or closed before the start keeps the service neither from its start nor from its end.
func TestStderrUnread(t *testing.T) {
	t.Parallel()
	r, full, _ := os.Pipe()
	defer r.Close()
	full.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	full.Write(make([]byte, 1<<20)) // more than it takes
	for _, stderr := range []*os.File{full, closedPipe()} {
		cmd := child()
		cmd.Stderr = stderr
		p := launch(t, cmd)
		p.play(t, "GET /v1/pets\n200 []\nGET /v1/pets\n200 []")
		p.cmd.Process.Signal(syscall.SIGTERM)
		p.ends(t, "<nil>")
	}
}

// Who begins to read the log when the service ends gets all of it.
func TestLogReadAtTheEnd(t *testing.T) {
	p := launch(t, child())
	p.service.stderr.unread.Lock()
	long := repeat("x", 32000)
	for range 20 { // of which a pipe takes the first two or three
		p.do(t, "OPTIONS /"+long)
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	p.refused(t)
	p.service.stderr.unread.Unlock() // a service that does not wait for a reader has nearly ended
	p.ends(t, "<nil>")
	line := "level=INFO msg=request method=OPTIONS path=/" + long + " status=204\n"
	if log := p.logged(); strings.Replace(log, line, "", 20) != "stopping\n" {
		t.Errorf("the log has %d bytes, and ends with %q", len(log), log[max(0, len(log)-200):])
	}
}

// A write of the log that fails, as on a full disk, loses its lines and no others.
func TestLogDiskFull(t *testing.T) {
	var log lockedBuffer
	var failed atomic.Bool
	s := petstore{key: testKey, stderr: writerFunc(func(p []byte) error {
		if strings.Contains(string(p), "?lost") && !failed.Swap(true) {
			return errors.New("no space left")
		}
		log.Write(p)
		return nil
	})}.start(t)
	s.do(t, "GET /v1/pets?lost")
	eventually(t, "the failing write", failed.Load)
	s.do(t, "GET /v1/pets?kept")
	eventually(t, "the next line of the log", func() bool { return strings.Contains(log.String(), "?kept") })
}

// README: the end.

// upload begins a create, and returns when the service waits for the body.
func (s *service) upload(t testing.TB) *connection {
	t.Helper()
	c := s.dial(t, "POST /v1/pets"+withKey+"Content-Length: 27\nExpect: 100-continue\n\n")
	c.read().check(t, "an upload", "100")
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

// finish checks that the service is stopping, and yet answers an upload.
func (c *connection) finish(t testing.TB, s *service) {
	t.Helper()
	s.refused(t)
	c.send("", pet)
	c.rest(t, "an upload in flight", made+"\nConnection: close")
}

// At a signal, what is in flight is answered. A connection that has sent nothing, as browsers keep one, is closed.
func TestSignal(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		p := launch(t, child())
		upload, unused := p.upload(t), p.dial(t, "")
		p.cmd.Process.Signal(signal)
		unused.SetDeadline(time.Now().Add(4 * time.Second))
		unused.rest(t, "nothing", "no answer")
		upload.finish(t, p.service)
		p.ends(t, "<nil>")
		same(t, signal.String(), p.logged(), "stopping\nlevel=INFO msg=request method=POST path=/v1/pets status=201\n")
	}
}

// A second signal ends the service at once. A shell that starts it in the background may have it ignore SIGINT.
func TestSecondSignal(t *testing.T) {
	for _, signals := range [][]os.Signal{{syscall.SIGTERM, syscall.SIGTERM}, {syscall.SIGTERM, os.Interrupt},
		{os.Interrupt, os.Interrupt}} {
		cmd := child()
		if signals[0] == os.Interrupt {
			cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `trap "" INT; exec "$0" -addr 127.0.0.1:0`, os.Args[0]}
		}
		p := launch(t, cmd)
		p.upload(t)
		p.cmd.Process.Signal(signals[0])
		if signals[0] == signals[1] {
			p.refused(t) // otherwise both come at once
		}
		p.cmd.Process.Signal(signals[1])
		p.ends(t, "exit status 1")
	}
}

// A start that still reads its seed stops once that is read.
func TestStopWhileSeeding(t *testing.T) {
	seed, w, _ := os.Pipe()
	cmd := child("-seed", "/dev/fd/3")
	cmd.ExtraFiles = []*os.File{seed}
	need(cmd.Start())
	spaces := repeat(" ", 1000000) // more than a pipe holds
	within(t, "the reading of the seed", func() error { _, err := w.WriteString(spaces); return err })
	cmd.Process.Signal(syscall.SIGTERM)
	w.WriteString("[]")
	w.Close()
	same(t, "the end of the process", fmt.Sprint(within(t, "the end of the process", cmd.Wait)), "<nil>")
}

// What is in flight has 10 seconds. Here it is cut off before it would get the 408 that is due after 15.
func TestStopWaitsTenSeconds(t *testing.T) {
	t.Parallel()
	s := start(t)
	upload := s.upload(t)
	begin := time.Now()
	s.cancel()
	upload.rest(t, "the upload", "no answer")
	if waited := time.Since(begin); waited < 9*time.Second {
		t.Errorf("it was cut off after %v", waited)
	}
}

// With -stdin, the service stops when its standard input ends. In other tests, that is empty, which does not matter.
func TestStdin(t *testing.T) {
	stdin, starter := io.Pipe()
	s := petstore{key: testKey, stdin: stdin, args: []string{"-stdin"}}.start(t)
	upload := s.upload(t)
	within(t, "the reading of standard input", func() error { return json.NewEncoder(starter).Encode("not the end") })
	s.play(t, "GET /healthz\n200 {\"status\":\"ok\"}")
	starter.Close()
	upload.finish(t, s)
	s.stop()
	if log := s.logged(); !strings.HasPrefix(log, "standard input has ended\nstopping\n") {
		t.Error(log)
	}
}

// README: all that can be run.

// The console blocks of README.md are one session, which prints in each shell what they show. Those of sh run too.
func TestReadme(t *testing.T) {
	readme := readFile("README.md")
	_, _, help := petstore{args: []string{"-h"}}.outcome(t)
	for _, flag := range regexp.MustCompile(`(?m)^  (-\w+)`).FindAllStringSubmatch(help, -1) {
		if !inTable(readme, flag[1]) {
			t.Errorf("no table of README.md has the flag %s", flag[1])
		}
	}
	if exec.Command("curl", "--json", "{}", "--version").Run() != nil {
		t.Skip("curl 7.82 is not installed")
	}
	home := t.TempDir()
	os.WriteFile(home+"/.curlrc", []byte("silent\n"), 0o600) // no progress meter
	self := "#!/bin/sh\nPETSTORE_TEST_CHILD=petstore exec '" + os.Args[0] + "' \"$@\"\n"
	os.WriteFile(home+"/petstore", []byte(self), 0o700)
	block := regexp.MustCompile("(?s)\n```(console|sh)\n(.*?)```")
	command := regexp.MustCompile(`(?m)^\$ ((?:.*\\\n)*.*)\n((?:(?:[^$\n].*)?\n)*)`) // and what it prints
	varies := regexp.MustCompile(`(Date: ).*|("time":")[^"]*|("seconds":)[0-9.]*|(curl/)[0-9.]*|\r|\s+$`)
	plain := func(output string) string { return varies.ReplaceAllString(output, "$1$2$3$4") }
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
				return plain(string(out))
			}
			var commands, outputs []string
			session, address := "", ""
			for _, b := range block.FindAllStringSubmatch(readme, -1) {
				if strings.Contains(b[2], "go test ") {
					continue // that has brought us here
				} else if b[1] == "sh" {
					same(t, b[2], run(b[2]), "")
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
					commands, outputs = append(commands, m[1]), append(outputs, plain(here.Replace(want)))
				}
			}
			var typedInto []string
			if shell == "zsh" { // which takes no comments then
				typedInto = []string{"-f", "-i", "+o", "promptsp"}
			}
			got := append(strings.Split(run(session, typedInto...), "\036"), make([]string, len(commands))...)
			for i, want := range outputs {
				same(t, "$ "+commands[i], plain(got[i]), want)
			}
		})
	}
}

// Each example passes, shows why a service cannot start, tells how to build one, and leaves none behind, if killed too.
func TestExamples(t *testing.T) {
	const n, ok = "6", `^(ok - .*\n){6}$` // tests in each file, and what a shell prints
	for command, passed := range map[string]string{"sh client.sh": ok, "bash client.sh": ok, "zsh client.sh": ok,
		"java ClientTest.java": ok, "go test -count=1 -v client_test.go": `(?s)(--- PASS: .*){` + n + `}`,
		"node --test client.test.mjs":                 `tests ` + n + `\n(.*\n)*.* pass ` + n + `\n`,
		"python3 -W error -m unittest test_client.py": `Ran ` + n + ` tests in .*\n\nOK\n`} {
		t.Run(command, func(t *testing.T) {
			args := strings.Fields(command)
			for _, program := range []string{args[0], "mkfifo", "curl"} {
				if _, err := exec.LookPath(program); err != nil {
					t.Skip(program + " is not installed")
				}
			}
			root := t.TempDir() // as the clone: petstore beside testdata/examples
			examples, fifo := filepath.Join(root, "testdata", "examples"), filepath.Join(root, "fifo")
			os.MkdirAll(examples, 0o700)
			for _, name := range must(filepath.Glob("testdata/examples/*.*")) {
				os.WriteFile(filepath.Join(root, name), []byte(readFile(name)), 0o600)
			}
			os.WriteFile(filepath.Join(root, "petstore"), []byte("#!/bin/sh\neval \"$SCRIPT\""), 0o700)
			must(exec.Command("mkfifo", fifo).CombinedOutput())
			t.Parallel()
			// run runs the example with a shell script in place of petstore, and waits for the end of fifo, which
			// every petstore holds open. If a process id and then a base URL come out of it, run kills that process.
			run := func(script string) (output string, killed bool, err error) {
				keep := must(os.OpenFile(fifo, os.O_RDWR, 0)) // until the example has ended
				r, ended := must(os.Open(fifo)), make(chan bool)
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
			if err != nil || !regexp.MustCompile(passed).MatchString(out) {
				t.Errorf("%v: it has not passed its %s tests\n%s", err, n, out)
			}
			// The example waits for the base URL, which goes elsewhere, when it is killed.
			if out, killed, err := run(`exec 4>&1 >"$FIFO"; echo $PPID; exec "$PETSTORE" "$@"`); !killed || err == nil {
				t.Errorf("it was not killed\n%s", out)
			}
			for _, says := range []string{"this is why", "go build"} { // the last one without petstore
				if out, _, err := run("echo this is why >&2; exit 1"); err == nil || !strings.Contains(out, says) {
					t.Errorf("%v: it does not say %q\n%s", err, says, out)
				}
				os.Remove(filepath.Join(root, "petstore"))
			}
		})
	}
}

// Benchmarks.

// serveBare is the bare net/http server that benchmarks compare with: the same time limits, one answer to all requests.
func serveBare() {
	answer := must(http.ReadResponse(bufio.NewReader(strings.NewReader(os.Getenv("PETSTORE_TEST_ANSWER"))), nil))
	body := []byte(all(answer.Body))
	srv := newServer(filledIn(&api{}))
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		maps.Copy(w.Header(), answer.Header)
		w.WriteHeader(answer.StatusCode)
		w.Write(body)
	})
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	fmt.Printf("http://%s/v1\n", ln.Addr())
	panic(srv.Serve(ln))
}

// launchBare starts a bare server that answers a request as s does.
func launchBare(b *testing.B, s *service, request string) *process {
	r, cmd, raw := s.do(b, request), child(), new(bytes.Buffer)
	r.Header.Del("Date")
	r.Body = io.NopCloser(strings.NewReader(r.body))
	need(r.Write(raw))
	cmd.Env = append(cmd.Env, "PETSTORE_TEST_CHILD=bare", "PETSTORE_TEST_ANSWER="+raw.String())
	return launch(b, cmd)
}

// load sends n requests over connections, and reads the answers.
func load(b *testing.B, connections []*connection, request []byte, n int) {
	together(len(connections), func(i int) {
		c := connections[i]
		c.SetDeadline(time.Now().Add(patience))
		for err := error(nil); i < n && err == nil; i += len(connections) {
			c.Write(request)
			line := []byte("\r\n")
			for err == bufio.ErrBufferFull || bytes.HasSuffix(line, []byte("\r\n")) { // the body is one line
				line, err = c.in.ReadSlice('\n')
			}
			if err != nil {
				b.Error(err)
			}
		}
	})
}

// cpu returns the CPU time that the process has used, in steps of 10 ms.
func (p *process) cpu(b *testing.B) time.Duration {
	fields := strings.Fields(p.proc(b, "stat"))
	return time.Duration(must(strconv.Atoi(fields[13]))+must(strconv.Atoi(fields[14]))) * 10 * time.Millisecond
}

// compare reports the CPU time of a request, and its ratio to that of the bare server. Both get 500 requests in turns.
func compare(b *testing.B, p *process, request string, connections int) {
	servers := []*process{p, launchBare(b, p.service, request)}
	parts := append(strings.SplitN(request, " ", 3), "")
	raw := strings.ReplaceAll(fmt.Sprintf("%s %s%sContent-Length: %d\n\n", parts[0], parts[1], withKey, len(parts[2])),
		"\n", "\r\n") + parts[2]
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

// benchmarkSeed writes a seed of n pets of 75 bytes. One in three is sold, and the last ten are pending.
func benchmarkSeed(b *testing.B, n int) string {
	text := []byte("[")
	for i := 1; i <= n; i++ {
		p := Pet{ID: int64(i), NewPet: NewPet{CategoryID: int64(i % 100), Status: statuses[[]int{3, 1, 1}[i%3]]}}
		if i > n-10 {
			p.Status = "pending"
		}
		p.Name = repeat("x", 75-len(encode(p)))
		text = append(append(text, encode(p)...), ',')
	}
	return tempFile(b, string(text[:len(text)-1])+"]")
}

func BenchmarkPetstore(b *testing.B) {
	for _, n := range []int{1000, 1000000} {
		p := launch(b, child("-quiet", "-seed", benchmarkSeed(b, n)))
		for _, c := range []struct{ name, request string }{
			{"list20", "GET /v1/pets"},
			{"list100", "GET /v1/pets?limit=100"},
			{"filtered", "GET /v1/pets?status=sold"},
			{"sparse", "GET /v1/pets?status=pending"},
			{"get", fmt.Sprintf("GET /v1/pets/%d", n-1)},
			{"create", `POST /v1/pets {"name":"` + repeat("x", 24) + `","categoryId":7,"status":"sold"}`},
		} {
			for _, connections := range []int{1, 32} {
				b.Run(fmt.Sprintf("%s/pets=%d/connections=%d", c.name, n, connections), func(b *testing.B) {
					compare(b, p, c.request, connections)
				})
			}
		}
	}
}

// Helpers: scripts.

// play sends the requests of a script, and compares the answers. A script is HTTP, in which blank lines do not count:
//
//	POST /v1/pets {"name":"Rex","categoryId":7}
//	Prefer: delay=0.1
//	201 {"id":1,"name":"Rex","categoryId":7}
//	Location: /v1/pets/1
//	Preference-Applied: delay=0.1
//
//	GET, HEAD /v1/pets/2?limit=5
//	404 not_found
//
// A request is a method, a target and, behind the next space, the whole body; then come headers. GET, HEAD stands for
// two requests, and the answer to HEAD has the same status and headers. Host, Authorization with the key of s, and
// Content-Length are sent too unless they are given; with Transfer-Encoding: chunked, the body is sent as one chunk.
//
// An answer is a status and the whole body but the newline that ends it, or of an Error its code and, behind a colon,
// how its message begins. Then come all headers but those that every answer has: Date, Content-Type of JSON, and
// Content-Length of the body. One that should be there and is not has the value (none), and Connection: close is there
// where the service closes the connection. A body that breaks off ends with …, and no answer is a closed connection.
func (s *service) play(t testing.TB, script string) {
	t.Helper()
	script = regexp.MustCompile(`(?m)^[\t\n]+|\n\s*\z`).ReplaceAllString(script, "")
	starts := regexp.MustCompile(`(?m)^(GET, HEAD|[A-Za-z]+) \S*[/*]`).FindAllStringIndex(script, -1)
	for i, next := range append(starts, []int{len(script)})[1:] {
		block := strings.TrimSpace(script[starts[i][0]:next[0]])
		answer := regexp.MustCompile(`(?m)^(\d{3}( |$)|no answer$)`).FindStringIndex(block)
		if answer == nil {
			t.Fatalf("a request without an answer:\n%s", block)
		}
		request, want := block[:answer[0]-1], block[answer[0]:]
		rest, both := strings.CutPrefix(request, "GET, HEAD")
		if both {
			request = "GET" + rest
		}
		r := s.do(t, request)
		r.check(t, request, want)
		if both {
			head := s.do(t, "HEAD"+rest)
			r.Request.Method, r.body = "HEAD", ""
			same(t, "HEAD"+rest, fmt.Sprint(head, head.ContentLength), fmt.Sprint(r, r.ContentLength))
		}
	}
}

// row is a request and its answer, as in a script.
type row struct{ send, want string }

// same compares what came of something with what must come of it, as fmt prints both.
func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%.2000s\n--- got:\n%.2000s\n--- want:\n%.2000s", what, fmt.Sprint(got), fmt.Sprint(want))
	}
}

var repeat = strings.Repeat

// asJSON returns v as JSON, and parsed what JSON stands for.
func asJSON(v any) string        { return string(encode(v)) }
func parsed(text string) (v any) { json.Unmarshal([]byte(text), &v); return v }

// need and must panic at an error.
func need(err error) { must(0, err) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Helpers: requests and answers.

// do sends a request that is written as in a script, and reads the answer. The connection stays open for the next one.
func (s *service) do(t testing.TB, request string) reply {
	t.Helper()
	line, headers, _ := strings.Cut(request, "\n")
	parts := append(strings.SplitN(line, " ", 3), "", "")
	head, body, given := parts[0]+" "+parts[1]+" HTTP/1.1\n", parts[2], http.Header{}
	for _, line := range strings.Split(headers, "\n") {
		if name, value, found := strings.Cut(line, ":"); found {
			given.Add(name, strings.TrimSpace(value))
			head += line + "\n"
		}
	}
	if given["Host"] == nil {
		head += "Host: petstore\n"
	}
	if given["Authorization"] == nil && s.key != "" {
		head += "Authorization: Bearer " + s.key + "\n"
	}
	if given.Get("Transfer-Encoding") == "chunked" {
		body = strings.TrimPrefix(fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body), "0\r\n\r\n")
	} else if body != "" && given["Content-Length"] == nil {
		head += fmt.Sprintf("Content-Length: %d\n", len(body))
	}
	c := s.connect(t)
	c.send(head+"\n", body)
	r := c.read()
	if r.broken || r.Close {
		c.Close()
	} else {
		s.idle.Put(c)
	}
	return r
}

// as returns s for a client that sends another key or, with "", none.
func (s *service) as(key string) *service { return &service{addr: s.addr, key: key} }

// connection is a connection to the service.
type connection struct {
	*net.TCPConn
	in     *bufio.Reader
	method string // of the request
}

// connect returns a connection that is not in use, and has patience. If it is refused, there is no answer on it.
func (s *service) connect(t testing.TB) *connection {
	t.Helper()
	c, _ := s.idle.Get().(*connection)
	if c == nil {
		conn, err := net.DialTimeout("tcp", s.addr, patience)
		if err != nil {
			t.Error(err)
			conn = new(net.TCPConn) // reads and writes fail
		}
		c = &connection{TCPConn: conn.(*net.TCPConn), in: bufio.NewReader(conn)}
	}
	c.SetDeadline(time.Now().Add(patience))
	return c
}

// withKey is what stands behind a target, with testKey, for dial.
const withKey = " HTTP/1.1\nHost: petstore\nAuthorization: Bearer " + testKey + "\n"

// dial opens a connection until the test ends, and sends what is given, with CR LF for each \n.
func (s *service) dial(t testing.TB, send string) *connection {
	t.Helper()
	c := s.as("").connect(t)
	t.Cleanup(func() { c.Close() })
	c.send(send, "")
	return c
}

// send sends head, with CR LF for each \n, and body. That may fail, as the service need not read it all.
func (c *connection) send(head, body string) {
	c.method, _, _ = strings.Cut(head, " ")
	io.WriteString(c, strings.ReplaceAll(head, "\n", "\r\n")+body)
}

// rest checks all answers until the service closes the connection, as in a script with a blank line between two.
func (c *connection) rest(t testing.TB, sent, want string) {
	t.Helper()
	for i, answer := range strings.Split(want+"\n\nno answer", "\n\n") {
		c.read().check(t, fmt.Sprintf("answer %d to %s", i+1, sent), answer)
	}
}

// reply is an answer that has been read.
type reply struct {
	*http.Response
	body   string // all of it, and what is wrong with it
	broken bool   // no answer, or none that is whole
}

// noReply is no answer. Its body tells what went wrong, if that is not all.
func noReply(body string) reply {
	return reply{&http.Response{Header: http.Header{}, Request: &http.Request{}}, body, true}
}

// read reads the next answer.
func (c *connection) read() reply {
	if _, err := c.in.Peek(1); err != nil && !os.IsTimeout(err) {
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

// error returns the Error that the answer is, or Error{} for any other answer.
func (r reply) error() (e Error) {
	json.Unmarshal([]byte(r.body), &e)
	if e.Message == "" || e.Status != r.StatusCode || asJSON(e)+"\n" != r.body {
		return Error{}
	}
	return e
}

// String returns the answer as a script has it, with the whole message of an Error and with sorted headers.
func (r reply) String() string {
	h, line, headers := r.Header.Clone(), fmt.Sprint(r.StatusCode, " ", strings.TrimSuffix(r.body, "\n")), []string{}
	if e := r.error(); e.Code != "" {
		line = fmt.Sprint(r.StatusCode, " ", e.Code, ": ", e.Message)
	} else if r.StatusCode == 0 {
		line = "no answer " + r.body
	}
	line = strings.TrimSpace(line)
	if r.StatusCode >= 200 {
		usual := map[string]string{"Content-Length": strconv.Itoa(len(r.body)), "Content-Type": "application/json"}
		if r.Request.Method == "HEAD" && r.ContentLength >= 0 {
			usual["Content-Length"] = h.Get("Content-Length")
		} else if r.StatusCode == 204 {
			clear(usual)
		}
		date, _ := http.ParseTime(h.Get("Date"))
		if usual["Date"] = "now"; time.Since(date).Abs() < patience {
			usual["Date"] = date.UTC().Format(http.TimeFormat)
		}
		for name, value := range usual {
			if h.Get(name) == value {
				h.Del(name)
			} else if h[name] == nil {
				h.Set(name, "(none)")
			}
		}
		if r.broken {
			line += "…"
		} else if r.body != "" && !strings.HasSuffix(r.body, "\n") {
			line += " (without a newline at the end)"
		}
	}
	if r.Close {
		h.Set("Connection", "close")
	}
	for name, values := range h {
		headers = append(headers, "\n"+name+": "+strings.Join(values, "\n"+name+": "))
	}
	slices.Sort(headers)
	return line + strings.Join(headers, "")
}

// check compares the answer with one of a script.
func (r reply) check(t testing.TB, request, want string) {
	t.Helper()
	lines := strings.Split(want, "\n")
	for i, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ":")
		lines[i+1] = http.CanonicalHeaderKey(name) + ":" + value
	}
	slices.Sort(lines[1:])
	got := strings.Split(r.String(), "\n")
	more, found := strings.CutPrefix(got[0], lines[0])
	if found && r.error().Code != "" && strings.Contains(" :;,", (more + " ")[:1]) {
		got[0] = lines[0] // the message goes on
	}
	same(t, request, strings.Join(got, "\n"), strings.Join(lines, "\n"))
}

// pets returns the pets of the page that a query asks for, and of all pages that follow. Their ids must ascend.
func (s *service) pets(t testing.TB, query string) (all []Pet) {
	t.Helper()
	for target, more := "/v1/pets"+query, true; more; {
		page, pets := s.do(t, "GET "+target), []Pet{}
		if err := json.Unmarshal([]byte(page.body), &pets); err != nil {
			t.Errorf("%s: %v %.500s", target, err, page)
		}
		all = append(all, pets...)
		link, _ := strings.CutPrefix(page.Header.Get("Link"), "<")
		target, more = strings.CutSuffix(link, `>; rel="next"`)
	}
	if !slices.IsSortedFunc(all, func(a, b Pet) int { return cmp.Compare(a.ID, b.ID) }) {
		t.Errorf("%s: the pets are not in the order of their ids", query)
	}
	return all
}

// Helpers: the journal.

// journaled is a request in the journal.
type journaled struct {
	Time    string            `json:"time"`
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Status  int               `json:"status"`
	Seconds float64           `json:"seconds"`
	Error   string            `json:"error,omitempty"`
	Fault   string            `json:"fault,omitempty"`
}

// journal returns the journal, and checks the form that it always has: a line for each request, members in order, an
// error where the status is one, and no key that is a secret.
func (s *service) journal(t testing.TB) (requests []journaled, total int) {
	t.Helper()
	r := s.do(t, "GET /__admin/requests")
	var journal struct {
		Requests []journaled
		Meta     struct{ Total int }
	}
	err, lines := json.Unmarshal([]byte(r.body), &journal), []string{}
	for _, request := range journal.Requests {
		lines = append(lines, "\n"+asJSON(request))
		_, badTime := time.Parse("2006-01-02T15:04:05.000Z", request.Time)
		if badTime != nil || request.Status > 0 && (request.Status >= 400) != (request.Error != "") {
			t.Errorf("%+v", request)
		}
	}
	form := fmt.Sprintf("{\"requests\":[%s\n],\"meta\":{\"total\":%d}}\n", strings.Join(lines, ","), journal.Meta.Total)
	body := strings.ReplaceAll(r.body, `\ufffd`, "\ufffd") // what is no UTF-8 is escaped
	same(t, "the journal", fmt.Sprint(err, r.StatusCode, r.ContentLength)+body, fmt.Sprint(nil, 200, len(r.body))+form)
	if len(s.key) >= 8 && strings.Contains(r.body, s.key) {
		t.Errorf("the journal shows the key:\n%.5000s", r.body)
	}
	return journal.Requests, journal.Meta.Total
}

// journalLines has a line "POST /v1/pets 201 fault body" for each request. "total N" comes first if they are not all.
func (s *service) journalLines(t testing.TB) string {
	t.Helper()
	requests, total := s.journal(t)
	var lines []string
	if total != len(requests) {
		lines = append(lines, fmt.Sprint("total ", total))
	}
	for _, r := range requests {
		line := strings.TrimSpace(fmt.Sprintf("%s %s %d %s", r.Method, r.URL, r.Status, r.Fault))
		lines = append(lines, strings.TrimSpace(line+" "+r.Body))
	}
	return strings.Join(lines, "\n")
}

// recorded compares the journal with its lines.
func (s *service) recorded(t testing.TB, lines ...string) {
	t.Helper()
	same(t, "the journal", s.journalLines(t), strings.Join(lines, "\n"))
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
	idle   sync.Pool     // connections that are not in use
}

// petstore is how a service is started in this process. Without stdin it has an empty one, without stderr a buffer.
type petstore struct {
	key    string
	stdin  io.Reader
	stderr io.Writer
	args   []string
}

// start runs the service with testKey on a free port until the test ends. It must print its base URL only, exit with 0.
func start(t testing.TB, args ...string) *service {
	t.Helper()
	return petstore{key: testKey, args: args}.start(t)
}

func (p petstore) start(t testing.TB) *service {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &service{key: p.key, stderr: new(lockedBuffer), cancel: cancel}
	p.stderr = cmp.Or[io.Writer](p.stderr, s.stderr)
	p.args = append([]string{"-addr", "127.0.0.1:0"}, p.args...)
	out, w := io.Pipe()
	exit := make(chan int, 1)
	go func() { code := p.run(ctx, w); w.Close(); exit <- code }()
	stdout := bufio.NewReader(out)
	s.stop = sync.OnceFunc(func() {
		s.cancel()
		select {
		case code := <-exit:
			same(t, "exit code, and stdout behind the base URL", fmt.Sprint(code, all(stdout)), "0")
		case <-time.After(patience):
			t.Errorf("the service does not stop in %v\n%v", patience, s.stderr)
		}
	})
	s.addr = address(t, stdout, s.stderr)
	t.Cleanup(s.stop)
	s.key = cmp.Or(s.key, regexp.MustCompile(`[0-9a-f]{32}`).FindString(s.stderr.String()))
	return s
}

// run calls run with what p has and an environment that has only the key.
func (p petstore) run(ctx context.Context, stdout io.Writer) int {
	getenv := func(name string) string { return map[string]string{"PETSTORE_API_KEY": p.key}[name] }
	return run(ctx, p.args, getenv, cmp.Or[io.Reader](p.stdin, strings.NewReader("")), stdout, p.stderr)
}

// outcome returns what comes of a command line that does not serve.
func (p petstore) outcome(t testing.TB) (code int, stdout, stderr string) {
	t.Helper()
	var out, log lockedBuffer
	p.stderr = &log
	code = within(t, "the end of the service", func() int { return p.run(context.Background(), &out) })
	return code, out.String(), log.String()
}

// ends checks how a command line that does not serve ends. Only -version prints on stdout. output is an expression.
func (p petstore) ends(t testing.TB, code int, output string) {
	t.Helper()
	got, stdout, stderr := p.outcome(t)
	if told := stdout + stderr; got != code || !regexp.MustCompile("^"+output+"\n$").MatchString(told) ||
		(stdout != "") != slices.Equal(p.args, []string{"-version"}) {
		t.Errorf("petstore %q, with the key %q: exit code %d, %s, want %d, %s", p.args, p.key, got, told, code, output)
	}
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

// serve serves a with a server that change has changed. It fills in testKey, a log that nobody reads, and no pets.
func serve(t testing.TB, a *api, change func(*http.Server)) *service {
	srv := newServer(filledIn(a))
	if change != nil {
		change(srv)
	}
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	go srv.Serve(errorListener{ln.(*net.TCPListener)})
	t.Cleanup(func() { srv.Close() })
	return &service{addr: ln.Addr().String(), key: testKey}
}

func filledIn(a *api) *api {
	a.key, a.seed, a.stopping = testKey, cmp.Or(a.seed, newStore()), cmp.Or(a.stopping, context.Background())
	a.log = cmp.Or(a.log, slog.New(slog.NewTextHandler(io.Discard, nil)))
	return a
}

// handlerOf returns a service without a connection. It is stopping already, so that no delay takes its time.
func handlerOf(seed *store) http.Handler {
	stopping, stop := context.WithCancel(context.Background())
	stop()
	return newServer(filledIn(&api{seed: seed, stopping: stopping})).Handler
}

// ask sends a request, as "GET /v1/pets", to a handler without a connection.
func ask(h http.Handler, request, prefer, body string) (r reply) {
	request, query, _ := strings.Cut(request, "?")
	method, path, _ := strings.Cut(request, " ")
	req, w := httptest.NewRequest(method, path, strings.NewReader(body)), httptest.NewRecorder()
	req.URL.RawQuery = query
	req.Header = http.Header{"Authorization": {"Bearer " + testKey}, "Prefer": {prefer}}
	defer func() {
		if v := recover(); v == http.ErrAbortHandler {
			r = noReply("")
		} else if v != nil {
			panic(v)
		}
	}()
	h.ServeHTTP(w, req)
	r = reply{w.Result(), w.Body.String(), false}
	r.Request, r.broken = req, r.ContentLength > int64(len(r.body))
	r.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat)) // as net/http does
	return r
}

// Helpers: processes.

// TestMain makes of the test binary the service itself, for child, or the bare server that benchmarks compare it with.
func TestMain(m *testing.M) {
	time.Local = time.FixedZone("east", 9*60*60) // where a Date in local time is a wrong one
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
	cmd := exec.Command(os.Args[0], append([]string{"-addr", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), "PETSTORE_TEST_CHILD=petstore", "PETSTORE_API_KEY="+testKey)
	return cmd
}

// process is a service in a process of its own. It is killed when the test ends.
type process struct {
	*service
	cmd    *exec.Cmd
	stdout *bufio.Reader
}

// launch is start for a command that child has made. What the process must do at its end, the test has to check.
func launch(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	must(cmd.StdinPipe()) // stays open
	p := &process{&service{key: testKey, stderr: new(lockedBuffer)}, cmd, bufio.NewReader(must(cmd.StdoutPipe()))}
	cmd.Stderr = cmp.Or[io.Writer](cmd.Stderr, p.service.stderr)
	cmd.WaitDelay = patience // also if a test that fails has left its stderr unread
	need(cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	p.addr = address(t, p.stdout, p.service.stderr)
	return p
}

// ends checks how the process ends, as os/exec tells it. On stdout there must have been nothing but the base URL.
func (p *process) ends(t testing.TB, how string) {
	t.Helper()
	got := within(t, "the end of the process", func() string { return all(p.stdout) + fmt.Sprint(p.cmd.Wait()) })
	same(t, "the end of the process", got, how)
}

// Helpers: waiting.

// patience is how long a test waits for what must come. Only a test that fails waits that long.
const patience = 30 * time.Second

// within returns what f returns, or fails the test if that takes too long. f must not end the test: it is a goroutine.
func within[T any](t testing.TB, what string, f func() T) (v T) {
	t.Helper()
	result := make(chan T, 1)
	go func() { result <- f() }()
	select {
	case v = <-result:
	case <-time.After(patience):
		t.Fatalf("%s takes longer than %v", what, patience)
	}
	return v
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

// met waits until the standing fault has met n requests. If it has a delay, a reset or a stop finds them waiting.
func (s *service) met(t testing.TB, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("the fault's meeting %d requests", n), func() bool {
		return strings.Contains(s.do(t, "GET /__admin/fault").body, fmt.Sprintf(`"met":%d,`, n))
	})
}

// together calls f n times at once, with 0 to n-1, and waits for all.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	wg.Add(n)
	for i := range n {
		go func() { defer wg.Done(); f(i) }()
	}
	wg.Wait()
}

// Helpers: seeds, files and buffers.

// seedOf returns a seed of n pets, with ids from 1, which are sold.
func seedOf(n int) string {
	const pet = `{"name":"a","categoryId":1,"status":"sold"}`
	return "[" + repeat(pet+",", n-1) + pet + "]"
}

func seedStore(seed string) *store { return must(readSeed([]byte(seed))) }

// tempFile writes a file, and returns its path.
func tempFile(t testing.TB, content string) string {
	file := filepath.Join(t.TempDir(), "pets.json")
	need(os.WriteFile(file, []byte(content), 0o600))
	return file
}

// readFile returns a file of the repository, and all what is left of r.
func readFile(name string) string { return string(must(os.ReadFile(name))) }
func all(r io.Reader) string      { b, _ := io.ReadAll(r); return string(b) }

// lockedBuffer is a bytes.Buffer that many goroutines may use.
type lockedBuffer struct {
	unread sync.Mutex // held by a test while nobody reads what is written, so that Write waits
	mu     sync.Mutex // guards b
	b      bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.unread.Lock()
	defer l.unread.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}
func (l *lockedBuffer) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

// Helpers: what is described.

// operation is an operation in api/openapi.json, and schema a schema, as far as the tests need them.
type operation struct {
	OperationID string
	Parameters  []struct {
		Name, In string
		Schema   *schema
	}
	RequestBody response
	Responses   map[string]response
}

type response struct {
	Headers, Content map[string]struct {
		Schema            *schema
		Required, Example any
	}
}

type schema struct {
	Type, Pattern               string
	Enum, Required              []string
	Properties                  map[string]*schema
	Items, AdditionalProperties *schema
	AllOf                       []*schema
	Minimum, Maximum            *float64
	MaxItems                    int
	Default                     any
}

// readOpenAPI returns the operations of api/openapi.json by the patterns of their routes.
func readOpenAPI() map[string]operation {
	var file struct {
		Paths, Components map[string]map[string]json.RawMessage
	}
	text, ref := string(openAPI), regexp.MustCompile(`\{\s*"\$ref": "#/components/(\w+)/(\w+)"\s*\}`)
	for need(json.Unmarshal(openAPI, &file)); ref.MatchString(text); need(json.Unmarshal([]byte(text), &file)) {
		text = ref.ReplaceAllStringFunc(text, func(found string) string {
			name := ref.FindStringSubmatch(found)
			return string(file.Components[name[1]][name[2]])
		})
	}
	operations := map[string]operation{}
	for path, methods := range file.Paths {
		if methods["servers"] == nil {
			path = "/v1" + path
		}
		for method, described := range methods {
			var o operation
			if json.Unmarshal(described, &o) == nil { // and no list of servers
				operations[strings.ToUpper(method)+" "+path] = o
			}
		}
	}
	return operations
}

// UnmarshalJSON reads a schema. Those in allOf become one.
func (s *schema) UnmarshalJSON(text []byte) error {
	type plain schema // without this method
	err := json.Unmarshal(text, (*plain)(s))
	for _, part := range s.AllOf {
		if s.Type = "object"; s.Properties == nil {
			s.Properties = map[string]*schema{}
		}
		maps.Copy(s.Properties, part.Properties)
		s.Required = append(s.Required, part.Required...)
	}
	return err
}

// allows tells whether v is as the schema says. An object may have no members but those of the schema.
func (s *schema) allows(v any) bool {
	switch v := v.(type) {
	case string:
		return s.Type == "string" && regexp.MustCompile(s.Pattern).MatchString(v) &&
			(s.Enum == nil || slices.Contains(s.Enum, v))
	case float64:
		return (s.Type == "number" || s.Type == "integer" && v == math.Trunc(v)) &&
			(s.Minimum == nil || v >= *s.Minimum) && (s.Maximum == nil || v <= *s.Maximum)
	case []any:
		return s.Type == "array" && (s.MaxItems == 0 || len(v) <= s.MaxItems) &&
			!slices.ContainsFunc(v, func(item any) bool { return !s.Items.allows(item) })
	case map[string]any:
		ok := s.Type == "object" && !slices.ContainsFunc(s.Required, func(name string) bool { return v[name] == nil })
		for name, value := range v {
			property := cmp.Or(s.Properties[name], s.AdditionalProperties)
			ok = ok && property != nil && property.allows(value)
		}
		return ok
	}
	return false
}

// inTable tells whether a cell or a code span in a row of a Markdown table begins with text.
func inTable(markdown, text string) bool {
	return regexp.MustCompile("(?m)^\\|(.*[`|])? *" + regexp.QuoteMeta(text) + "(\\W|$)").MatchString(markdown)
}

// rowHas checks that the row of a Markdown table that begins with these cells has a text.
func rowHas(t *testing.T, file, cells, text string) {
	t.Helper()
	row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(cells) + `[ ,].*`).FindString(readFile(file))
	if !strings.Contains(row, text) {
		t.Errorf("%s has no %s in the row of %s, or not that row: %s", file, text, cells, row)
	}
}

// found returns, sorted, what the group of a regular expression matches in text.
func found(text, expression string) (list []string) {
	for _, m := range regexp.MustCompile(expression).FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	return sorted(list)
}

// sorted returns what is in the lists, once each.
func sorted(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}
