package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"regexp"
	"slices"
	"sort"
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

func newWorld(pets *store) *world {
	return &world{pets: pets, over: make(chan struct{})}
}

// PetStatus tells whether a pet can be had (contract, section 2). The empty
// PetStatus stands for none given; it is never sent.
type PetStatus string

// The statuses of the contract. No operation turns one into another.
const (
	Available PetStatus = "available"
	Pending   PetStatus = "pending"
	Sold      PetStatus = "sold"
)

func parseStatus(given string) (PetStatus, error) {
	switch s := PetStatus(given); s {
	case Available, Pending, Sold:
		return s, nil
	}
	return "", invalid("status", given, "available, pending or sold")
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

// cutMembers returns the values of the members of these names, as they are spelt.
// Other members are skipped, those with a name in another case too. It refuses
// what encoding/json lets pass: a member that is given twice, and invalid UTF-8.
// object is valid JSON, but may be no object.
func cutMembers(object string, names ...string) (map[string]string, error) {
	rest, found := strings.CutPrefix(strings.TrimSpace(object), "{")
	if !found {
		return nil, invalid("the pet", object, "a JSON object")
	}
	members := map[string]string{}
	for rest != "" {
		var quoted, value string
		if quoted, rest = cutToken(rest); quoted == "" {
			break // the object is empty
		}
		value, rest = cutToken(rest)
		name := unquote(quoted)
		switch {
		case !utf8.ValidString(quoted) || !utf8.ValidString(value):
			return nil, fmt.Errorf("%s is not valid UTF-8", shorten(name))
		case !slices.Contains(names, name):
		case members[name] != "":
			return nil, invalid(name, "given twice", "given once")
		default:
			members[name] = value
		}
	}
	return members, nil
}

// cutToken cuts the text of a JSON object behind its first name or value: at the
// colon, the comma or the bracket that ends it. Behind the last value, rest is
// empty.
func cutToken(text string) (token, rest string) {
	depth, quoted := 0, false
	for i := 0; ; i++ {
		switch c := text[i]; {
		case c == '\\': // valid JSON has it in strings only
			i++ // the next character may be a quote that does not end the string
		case c == '"':
			quoted = !quoted
		case quoted:
		case depth == 0 && c == '}':
			return strings.TrimSpace(text[:i]), ""
		case depth == 0 && (c == ':' || c == ','):
			return strings.TrimSpace(text[:i]), text[i+1:]
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
	}
}

// wellFormed matches the JSON strings that have no lone surrogate. encoding/json
// would turn \ud800 without its other half into U+FFFD.
var wellFormed = regexp.MustCompile(
	`^"([^\\]|\\[^u]|\\u([^dD]|[dD][0-7])|\\u[dD][89abAB]..\\u[dD][c-fC-F])*"$`)

// unquote returns what a JSON string stands for, and other JSON as it is.
func unquote(value string) string {
	if value[0] != '"' {
		return value
	}
	if !strings.Contains(value, `\`) {
		return value[1 : len(value)-1]
	}
	var s string
	json.Unmarshal([]byte(value), &s) // cannot fail: value is a JSON string
	return s
}

// parsePet parses the body of a create. An id in it is ignored, as any unknown
// member.
func parsePet(body []byte) (NewPet, error) {
	if !json.Valid(body) {
		return NewPet{}, notJSON(body)
	}
	members, err := cutMembers(string(body), "name", "categoryId", "status")
	if err != nil {
		return NewPet{}, err
	}
	return checkPet(members)
}

// parseSeedPet parses a pet of a seed, which is valid JSON. id is 0 if it has none.
func parseSeedPet(object string) (id int64, p NewPet, err error) {
	members, err := cutMembers(object, "name", "categoryId", "status", "id")
	if err == nil && members["id"] != "" {
		id, err = integer("id", members["id"], 1, math.MaxInt64-1) // the largest int64 would leave no next id
	}
	if err != nil {
		return 0, p, err
	}
	p, err = checkPet(members)
	return id, p, err
}

// checkPet checks the values of name, categoryId and status.
func checkPet(members map[string]string) (p NewPet, err error) {
	const missing = "missing" // no value is spelt so; the message says "name is missing"
	name := cmp.Or(members["name"], missing)
	if name[0] != '"' || strings.Contains(name, `\u`) && !wellFormed.MatchString(name) {
		return p, invalid("name", name, "a string of valid Unicode")
	}
	p.Name = unquote(name)
	categoryID := cmp.Or(members["categoryId"], missing)
	if p.CategoryID, err = integer("categoryId", categoryID, math.MinInt64, math.MaxInt64); err != nil {
		return p, err
	}
	if status := members["status"]; status != "" {
		p.Status, err = parseStatus(unquote(status))
	}
	return p, err
}

// notJSON tells what is wrong with a body that is not JSON.
func notJSON(body []byte) error {
	const example = `{"name":"Rex","categoryId":7}`
	text := strings.TrimSpace(string(body))
	switch {
	case strings.Contains(text, "'") && !strings.Contains(text, `"`):
		return errors.New("the body has single quotes where JSON has double quotes, as in " + example)
	case !strings.HasPrefix(text, "{"):
		return invalid("the body", text, "a JSON object, as "+example)
	}
	err := json.Unmarshal(body, new(json.RawMessage))
	if plain := plainly(err); plain != errNotJSON {
		return fmt.Errorf("the body is %w", plain)
	}
	at := err.(*json.SyntaxError).Offset // from 1
	return fmt.Errorf("the body is not JSON from byte %d on: %s", at, shorten(string(body[at-1:])))
}

var errNotJSON = errors.New("not JSON")

// plainly tells in plain words what encoding/json says of a text that is not JSON.
func plainly(err error) error {
	switch {
	case err == io.EOF || err == io.ErrUnexpectedEOF || err.Error() == "unexpected end of JSON input":
		return errors.New("JSON that ends too early")
	case strings.Contains(err.Error(), "max depth"):
		return errors.New("nested more than 10000 levels deep")
	case errors.As(err, new(*json.SyntaxError)):
		return errNotJSON
	}
	return err // the text cannot be read
}

// storedPet is a pet as the store holds it. It never changes, and is read more
// often than added, so it is encoded once.
type storedPet struct {
	id   int64
	line []byte // its JSON and a newline; nobody may change it
}

// What a store holds, in bytes. Each pet counts as its JSON and petCost, which
// is what it takes beside: its places in the map and the slices.
const (
	maxSize = 256 << 20
	petCost = 128
)

var (
	errFull = fmt.Errorf("the store is full: it holds %d bytes", maxSize)
	errNoID = errors.New("there is no id left")
)

// store holds pets. Many goroutines may use it at once.
type store struct {
	mu   sync.RWMutex         // guards everything below
	pets map[int64]*storedPet // by id
	// ordered has the same pets in ascending order of id: those of each status
	// and, under "", all of them. Once the store is shared, it is only appended
	// to, so a part of it can be read without mu.
	ordered map[PetStatus][]*storedPet
	lastID  int64 // the largest id so far
	size    int64 // what counts for maxSize, in bytes
}

// newStore returns an empty store. size is what counts for maxSize from the start.
func newStore(size int64) *store {
	return &store{pets: map[int64]*storedPet{}, ordered: map[PetStatus][]*storedPet{}, size: size}
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
	if s.lastID == math.MaxInt64 {
		return nil, errNoID
	}
	return s.put(s.lastID+1, p)
}

// put keeps p under this id, which is not taken. The caller holds mu, or is the
// only one that knows s.
func (s *store) put(id int64, p NewPet) (*storedPet, error) {
	line := bytes.Clone(encode(Pet{id, p})) // without the room that encode has left
	size := s.size + int64(len(line)-len("\n")) + petCost
	if size > maxSize {
		return nil, errFull
	}
	added := &storedPet{id, line}
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

// What a seed, and one pet in it, may take, in bytes.
const (
	maxSeed    = 128 << 20
	maxSeedPet = 64 << 10
)

// readSeed reads a JSON array of pets into a new store. Pets without an id are
// numbered above the largest id, in their order. size counts what the new store
// must leave free for the process's seed, which stays in memory beside it. The
// error names the place in the array.
func readSeed(r io.Reader, size int64) (*store, error) {
	s := newStore(size)
	limited := &io.LimitedReader{R: r, N: maxSeed + 1}
	dec := json.NewDecoder(limited)
	n := 0 // the number of the pet that is read, from 1
	fail := func(err error) (*store, error) {
		switch {
		case limited.N == 0: // to dec, it looks like the end of the text
			err = fmt.Errorf("more than %d bytes", maxSeed)
		case n > 0:
			err = fmt.Errorf("pet %d: %w", n, err)
		}
		return nil, err
	}
	if token, err := dec.Token(); token != json.Delim('[') {
		if errors.As(err, new(*fs.PathError)) {
			return nil, err // it cannot be read
		}
		return nil, errors.New(`not a JSON array, as [{"name":"Rex","categoryId":7}]`)
	}
	type unnumbered struct {
		n int
		NewPet
	}
	var later []unnumbered
	var raw json.RawMessage
	for dec.More() {
		n++
		if err := dec.Decode(&raw); err != nil {
			return fail(plainly(err))
		}
		if len(raw) > maxSeedPet {
			return fail(fmt.Errorf("more than %d bytes", maxSeedPet))
		}
		id, p, err := parseSeedPet(string(raw))
		switch {
		case err != nil:
			return fail(err)
		case id == 0:
			later = append(later, unnumbered{n, p})
			continue
		case s.pets[id] != nil:
			return fail(fmt.Errorf("id %d is given twice", id))
		}
		if _, err := s.put(id, p); err != nil {
			return fail(err)
		}
	}
	if _, err := dec.Token(); err != nil {
		return fail(errors.New("the array does not end"))
	}
	if _, err := dec.Token(); err != io.EOF || limited.N == 0 {
		return fail(errors.New("something follows the end of the array"))
	}
	for _, pets := range s.ordered {
		slices.SortFunc(pets, func(a, b *storedPet) int { return cmp.Compare(a.id, b.id) })
	}
	for _, p := range later {
		n = p.n
		if s.lastID == math.MaxInt64-1 { // a seed has no largest int64, see parseSeedPet
			return fail(errNoID)
		}
		if _, err := s.put(s.lastID+1, p.NewPet); err != nil {
			return fail(err)
		}
	}
	return s, nil
}

// entry is a request in the journal, as net/http has read it: nothing is
// copied or encoded until somebody reads the journal.
type entry struct {
	received          time.Time
	method, url, host string
	header            map[string][]string
	chunked           bool // the body came in chunks, which net/http does not keep in header
	body              []byte
	status            int    // of the answer, 0 if none was sent
	fault             string // that struck the request, "" for none
	size              int    // what the entry counts for maxJournalSize
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
	e.size = len(e.method) + len(e.url) + len(e.host) + len(e.body) + len(e.fault)
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
