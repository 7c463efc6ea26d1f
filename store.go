package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// world is what the service remembers from one reset to the next. A request
// belongs to one world, so what is under way during a reset cannot touch the
// world that follows: its pets, its journal or the count of its fault.
type world struct {
	pets     *store
	journal  journal
	standing atomic.Pointer[fault] // nil for none
	over     chan struct{}         // closed when another world has replaced this one
}

func newWorld(seed *store) *world {
	return &world{pets: seed.clone(), over: make(chan struct{})}
}

// PetStatus is the availability of a pet (contract, section 2). The empty
// PetStatus stands for none given; it is never sent.
type PetStatus string

func parseStatus(given string) (PetStatus, error) {
	return PetStatus(given), checkChoice("status", given, "available", "pending", "sold")
}

// NewPet is the body of createPet (contract, section 2).
type NewPet struct {
	// Name is any string, the empty one too.
	Name string `json:"name"`
	// CategoryID is any int64: the contract shows no categories to check it against.
	CategoryID int64 `json:"categoryId"`
	// Status is absent from the JSON when the client gave none.
	Status PetStatus `json:"status,omitempty"`
}

// Pet is a NewPet with the id that the store gave it (contract, section 2).
type Pet struct {
	// ID is 1 or above.
	ID int64 `json:"id"`
	NewPet
}

// parsePet parses a JSON object, which errors call what. It ignores members that it
// does not know. id is how the object spells its id, or "" without one.
func parsePet(what string, object []byte) (id string, p NewPet, err error) {
	if !utf8.Valid(object) {
		return "", p, errors.New(what + " is not valid UTF-8")
	}
	var members map[string]json.RawMessage // of those with the same name, the last one
	if err := parseJSON(what, object, &members, `a JSON object, as {"name":"Rex","categoryId":7}`); err != nil {
		return "", p, err
	}
	spelt := func(name string) string { // "missing" is no JSON, so that no check accepts it
		return cmp.Or(string(members[name]), "missing")
	}
	var errName, errCategoryID, errStatus error
	p.Name, errName = parseName(spelt("name"))
	p.CategoryID, errCategoryID = parseInteger("categoryId", spelt("categoryId"), math.MinInt64, math.MaxInt64)
	if status := members["status"]; status != nil {
		p.Status, errStatus = parseStatus(unquote(string(status)))
	}
	return string(members["id"]), p, cmp.Or(errName, errCategoryID, errStatus)
}

// wellFormed matches the JSON strings that have no lone surrogate. encoding/json
// would turn \ud800 without its other half into U+FFFD.
var wellFormed = regexp.MustCompile(
	`^"([^\\]|\\[^u]|\\u([^dD]|[dD][0-7])|\\u[dD][89abAB]..\\u[dD][c-fC-F])*"$`)

func parseName(value string) (string, error) {
	if value[0] != '"' || strings.Contains(value, `\u`) && !wellFormed.MatchString(value) {
		return "", invalid("name", value, "a string of valid Unicode")
	}
	return unquote(value), nil
}

// unquote returns the text of a JSON string, and other JSON as it is spelt.
func unquote(value string) string {
	text := value
	if value[0] == '"' {
		json.Unmarshal([]byte(value), &text) // cannot fail: value is valid JSON
	}
	return text
}

// parseJSON parses text into v. In errors, what is its name, and allowed describes
// the JSON that it must be.
func parseJSON(what string, text []byte, v any, allowed string) error {
	err := json.Unmarshal(text, v)
	trimmed := bytes.TrimSpace(text)
	if err == nil && string(trimmed) != "null" { // encoding/json leaves v as it is for null
		return nil
	}
	var broken *json.SyntaxError
	isJSON := !errors.As(err, &broken)
	switch {
	case bytes.HasPrefix(trimmed, []byte("\ufeff")):
		return errors.New(what + " begins with a byte order mark (BOM); it must be UTF-8 without one")
	case bytes.ContainsRune(trimmed, '\'') && !bytes.ContainsRune(trimmed, '"'):
		return fmt.Errorf("%s has single quotes where JSON has double quotes; it must be %s", what, allowed)
	case nameWithoutQuotes.Match(trimmed):
		return fmt.Errorf("%s has a name without double quotes; it must be %s; "+
			"in a shell, put single quotes around all of it", what, allowed)
	case isJSON || len(trimmed) == 0 || trimmed[0] != '{' && trimmed[0] != '[':
		return invalid(what, string(trimmed), allowed)
	case strings.Contains(err.Error(), "max depth"):
		return errors.New(what + " is nested more than 10000 levels deep")
	case json.NewDecoder(bytes.NewReader(text)).Decode(new(json.RawMessage)) == io.ErrUnexpectedEOF:
		return errors.New(what + " is JSON that ends too early")
	}
	rest := text[broken.Offset-1:]
	return fmt.Errorf("%s is not JSON from byte %d on: %s", what, broken.Offset, shorten(string(rest)))
}

// nameWithoutQuotes matches what a shell leaves of {"name":"Rex"} if there are no
// single quotes around it: {name:Rex} or, where there is a comma in it, name:Rex.
var nameWithoutQuotes = regexp.MustCompile(`^[\s\[{]*\w+\s*:`)

// storedPet is a pet as the store holds it. It never changes, and is read more
// often than added, so it is encoded once.
type storedPet struct {
	id   int64
	json []byte // nobody may change it
}

// What a store holds, in bytes. Each pet counts as its JSON and petCost: about what
// the map and the slices take for it.
const (
	maxSize = 256 << 20
	petCost = 128
)

var errFull = newError(507, fmt.Sprintf("the store is full: it holds %d bytes", maxSize))

// store holds pets. Many goroutines may use it at once.
type store struct {
	mu   sync.RWMutex         // guards everything below
	pets map[int64]*storedPet // by id
	// ordered has the same pets in ascending order of id: those of each status
	// and, under "", all of them. Once the store is shared, it is only appended
	// to, so a part of it can be read without mu.
	ordered map[PetStatus][]*storedPet
	lastID  int64 // the largest id so far
	size    int64 // of all pets, at most maxSize
}

func newStore() *store {
	return &store{pets: map[int64]*storedPet{}, ordered: map[PetStatus][]*storedPet{}}
}

// clone returns another store with the same pets. Nobody may add to s meanwhile.
func (s *store) clone() *store {
	c := &store{pets: maps.Clone(s.pets), ordered: map[PetStatus][]*storedPet{}, lastID: s.lastID, size: s.size}
	for status, pets := range s.ordered {
		c.ordered[status] = slices.Clip(pets) // an append to it makes a copy
	}
	return c
}

// add keeps p under the next id.
func (s *store) add(p NewPet) (*storedPet, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put(s.lastID+1, p)
}

// put keeps p under this id, which must be free. The caller holds mu, or is the
// only one that knows s.
func (s *store) put(id int64, p NewPet) (*storedPet, error) {
	added := &storedPet{id, bytes.Clone(encode(Pet{id, p}))} // a clone has no spare capacity
	size := s.size + int64(len(added.json)) + petCost
	if size > maxSize {
		return nil, errFull
	}
	s.pets[id] = added
	s.ordered[""] = append(s.ordered[""], added)
	if p.Status != "" {
		s.ordered[p.Status] = append(s.ordered[p.Status], added)
	}
	s.size, s.lastID = size, max(s.lastID, id)
	return added, nil
}

// get returns the pet with this id, or nil.
func (s *store) get(id int64) *storedPet {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.pets[id]
}

// list returns the pets with this status, or all for "", whose id is above
// after, in ascending order of id. Nobody may change the slice.
func (s *store) list(status PetStatus, after int64) []*storedPet {
	s.mu.RLock()
	defer s.mu.RUnlock()
	pets := s.ordered[status]
	return pets[sort.Search(len(pets), func(i int) bool { return pets[i].id > after }):]
}

// The bounds of a seed: its length and that of a pet in it, in bytes, and the
// largest id in it, which leaves more ids than can be used up.
const (
	maxSeed    = 128 << 20
	maxSeedPet = 64 << 10
	maxSeedID  = 1 << 62
)

// readSeed reads a JSON array of pets into a new store. Pets without an id are
// numbered above the largest id, in their order. An error names the place.
func readSeed(text []byte) (*store, error) {
	if len(text) > maxSeed {
		return nil, fmt.Errorf("the seed has more than %d bytes", maxSeed)
	}
	var elements []json.RawMessage
	if err := parseJSON("the seed", text, &elements, `a JSON array, as [{"name":"Rex","categoryId":7}]`); err != nil {
		return nil, err
	}
	if len(elements) > maxSize/petCost {
		return nil, errFull // known now, and not after many seconds
	}
	s := newStore()
	places, later := []int{}, []NewPet{} // the pets without an id, and where they stand
	for i, element := range elements {
		id, p, err := parseSeedPet(element)
		switch {
		case err != nil:
		case id == 0:
			places, later = append(places, i+1), append(later, p)
		case s.pets[id] != nil:
			err = fmt.Errorf("id %d is given twice", id)
		default:
			_, err = s.put(id, p)
		}
		if err != nil {
			return nil, fmt.Errorf("pet %d: %w", i+1, err)
		}
	}
	for _, pets := range s.ordered {
		slices.SortFunc(pets, func(a, b *storedPet) int { return cmp.Compare(a.id, b.id) })
	}
	for i, p := range later {
		if _, err := s.add(p); err != nil {
			return nil, fmt.Errorf("pet %d: %w", places[i], err)
		}
	}
	return s, nil
}

// parseSeedPet parses a pet of a seed. id is 0 if it has none.
func parseSeedPet(object []byte) (id int64, p NewPet, err error) {
	if len(object) > maxSeedPet {
		return 0, p, fmt.Errorf("more than %d bytes", maxSeedPet)
	}
	given, p, err := parsePet("the pet", object)
	if err == nil && given != "" {
		id, err = parseInteger("id", given, 1, maxSeedID)
	}
	return id, p, err
}

// fault is what a client asks for to test itself: in a Prefer header for one
// request (RFC 7240), or as the standing fault for those that follow. The strings
// are kept as they were given; "" is none.
type fault struct {
	// Code is a status from 400 to 599, which is answered in place of the
	// operation, or one of
	//   hangup    nothing is done, and the connection is closed
	//   lost      all is done, and the connection is closed without an answer
	//   truncate  all is done, half of the body is sent, and the connection is closed
	Code string `json:"code,omitempty"`
	// Delay is how long a request waits before anything is done, and AnswerDelay
	// how long its answer waits after that, in seconds from 0 to 30.
	Delay       string `json:"delay,omitempty"`
	AnswerDelay string `json:"answer-delay,omitempty"`
	// RetryAfter is the Retry-After header of the simulated Error, in whole
	// seconds from 0 to 3600. Without it, 429 and 503 have 1, others none.
	RetryAfter string `json:"retry-after,omitempty"`

	// A standing fault counts the requests of Operation, or all for "". It lets the
	// first Skip of them pass and strikes the next Times, or all that follow for 0.
	Operation string `json:"operation,omitempty"`
	Skip      int64  `json:"skip,omitempty"`
	Times     int64  `json:"times,omitempty"`

	status             int64         // that Code stands for, or 0
	delay, answerDelay time.Duration // that Delay and AnswerDelay stand for
	met                atomic.Int64  // how many requests the standing fault has met
}

// faultParameters are the names that PUT /__admin/fault takes, and preferences
// those that a Prefer header may give.
var (
	faultParameters = []string{"code", "delay", "answer-delay", "retry-after", "operation", "skip", "times"}
	preferences     = faultParameters[:4]
)

// parseFault parses the parameters of a fault, but leaves Operation unchecked.
// Without code, delay and answer-delay there is no fault: nil.
func parseFault(given url.Values) (f *fault, err error) {
	var names []string
	for name := range given {
		names = append(names, name)
	}
	slices.Sort(names) // so that of two unknown ones, the same is told each time
	for _, name := range names {
		if err := checkChoice("the parameter", name, faultParameters...); err != nil {
			return nil, err
		}
	}
	if err := checkOnce(given, faultParameters...); err != nil {
		return nil, err
	}
	if !given.Has("code") && !given.Has("delay") && !given.Has("answer-delay") {
		return nil, nil
	}
	f = &fault{Code: given.Get("code"), Delay: given.Get("delay"), AnswerDelay: given.Get("answer-delay"),
		RetryAfter: given.Get("retry-after"), Operation: given.Get("operation")}
	if given.Has("code") && f.Code != "hangup" && f.Code != "lost" && f.Code != "truncate" {
		if f.status, err = parseInteger("code", f.Code, 400, 599); err != nil {
			return nil, invalid("code", f.Code, "an integer from 400 to 599, hangup, lost or truncate")
		}
	}
	var errDelay, errAnswerDelay, errRetryAfter, errSkip, errTimes error
	f.delay, errDelay = parseDelay(given, "delay")
	f.answerDelay, errAnswerDelay = parseDelay(given, "answer-delay")
	_, errRetryAfter = queryInteger(given, "retry-after", 0, 0, 3600)
	f.Skip, errSkip = queryInteger(given, "skip", 0, 0, math.MaxInt64)
	f.Times, errTimes = queryInteger(given, "times", 0, 1, math.MaxInt64)
	return f, cmp.Or(errDelay, errAnswerDelay, errRetryAfter, errSkip, errTimes)
}

func parseDelay(given url.Values, name string) (time.Duration, error) {
	if !given.Has(name) {
		return 0, nil
	}
	delay := given.Get(name)
	seconds, err := strconv.ParseFloat(delay, 64) // which takes signs, exponents and Inf too
	if err != nil || strings.Trim(delay, "0123456789.") != "" || seconds > 30 {
		return 0, invalid(name, delay, "a number of seconds from 0 to 30, with decimals if need be")
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// String spells the fault as Preference-Applied, the journal and the log have it.
func (f *fault) String() string {
	var list []string
	add := func(name, value string) {
		if value != "" {
			list = append(list, name+"="+value)
		}
	}
	add("code", f.Code)
	add("delay", f.Delay)
	add("answer-delay", f.AnswerDelay)
	if f.status != 0 { // otherwise, there is no Error that could have that header
		add("retry-after", f.RetryAfter)
	}
	return strings.Join(list, ", ")
}

// strikes tells whether the standing fault strikes a request of this operation, and
// counts the request if the fault is for it. However many requests come at once, it
// strikes exactly f.Times of them.
func (f *fault) strikes(operation string) bool {
	if f.Operation != "" && f.Operation != operation {
		return false
	}
	n := f.met.Add(1)
	return f.struck(n) > f.struck(n-1)
}

// struck returns how many of the first met requests the standing fault strikes.
func (f *fault) struck(met int64) int64 {
	n := max(met-f.Skip, 0)
	if f.Times == 0 {
		return n
	}
	return min(n, f.Times)
}

// entry is a request in the journal, as net/http has read it: nothing is
// copied or encoded until somebody reads the journal.
type entry struct {
	arrived     time.Time
	method, url string
	header      map[string][]string
	body        []byte
	status      int           // of the answer as it was made; 0 for none
	took        time.Duration // until the answer was ready
	message     string        // of the answer if it is an Error
	fault       string        // that struck the request, "" for none
	size        int           // what the entry counts for maxJournalSize
}

// The bounds of the journal: how many entries it keeps, and the bytes of their
// texts: urls, headers, bodies and so on. Each header counts 100 bytes more, for
// what it takes in memory beside its text.
const (
	maxJournal     = 1000
	maxJournalSize = 4 << 20
)

// journal holds the last requests. Many goroutines may use it at once.
type journal struct {
	mu      sync.Mutex // guards everything below
	entries []entry    // the oldest first
	size    int        // of all entries
	total   int        // counts the requests since the journal was cleared, dropped ones too
}

// add appends e, and drops the oldest entries that are too many.
func (j *journal) add(e entry) {
	e.size = len(e.method) + len(e.url) + len(e.body) + len(e.message) + len(e.fault)
	for name, values := range e.header {
		for _, value := range values {
			e.size += len(name) + len(value) + 100
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.total++
	j.entries = append(j.entries, e)
	j.size += e.size
	for len(j.entries) > maxJournal || j.size > maxJournalSize {
		j.size -= j.entries[0].size
		j.entries[0] = entry{} // so that what it points to is not kept
		j.entries = j.entries[1:]
	}
}

// all returns the entries, the oldest first, and how many requests there were.
func (j *journal) all() (entries []entry, total int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.entries), j.total
}

func (j *journal) clear() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries, j.size, j.total = nil, 0, 0
}
