package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// world is what the service remembers from one reset to the next. A request belongs to one world, so what is under
// way during a reset cannot touch the world that follows: its pets, its journal or the count of its fault.
type world struct {
	pets     *store
	journal  journal
	standing atomic.Pointer[standingFault] // nil for none
	over     chan struct{}                 // closed when another world has replaced this one
}

func newWorld(seed *store) *world {
	return &world{pets: seed.clone(), over: make(chan struct{})}
}

// PetStatus is the availability of a pet (contract, section 2). The empty PetStatus stands for none given; it is
// never sent.
type PetStatus string

func parseStatus(given string) (PetStatus, error) {
	return PetStatus(given), checkChoice("status", given, "available", "pending", "sold")
}

// NewPet is the body of createPet (contract, section 2).
type NewPet struct {
	Name       string    `json:"name"`             // any string, the empty one too
	CategoryID int64     `json:"categoryId"`       // any int64: the contract shows no categories
	Status     PetStatus `json:"status,omitempty"` // absent when the client gave none
}

// Pet is a NewPet with the id that the store gave it (contract, section 2).
type Pet struct {
	ID int64 `json:"id"` // 1 or above
	NewPet
}

// parsePet parses a JSON object, which errors call what. It ignores members that it does not know. id is how the
// object spells its id, or "" without one.
func parsePet(what string, object []byte) (id string, p NewPet, err error) {
	if !utf8.Valid(object) {
		return "", p, errors.New(what + " is not valid UTF-8")
	}
	var members map[string]json.RawMessage // of those with the same name, the last one
	if err := parseJSON(what, object, &members, `a JSON object, such as {"name":"Rex","categoryId":7}`); err != nil {
		return "", p, err
	}
	spelt := func(name string) string { // "missing" is no JSON: a check refuses it, and says that name is missing
		return cmp.Or(string(members[name]), "missing")
	}
	var errName, errCategoryID, errStatus error
	if name := spelt("name"); name[0] != '"' {
		errName = invalid("name", name, "a string")
	}
	p.Name = unquote(spelt("name"))
	p.CategoryID, errCategoryID = parseInteger("categoryId", spelt("categoryId"), math.MinInt64, math.MaxInt64)
	if status := members["status"]; status != nil {
		p.Status, errStatus = parseStatus(unquote(string(status)))
	}
	return string(members["id"]), p, cmp.Or(errName, errCategoryID, errStatus)
}

// unquote returns the text of a JSON string, and other JSON as it is spelt.
func unquote(value string) string {
	if value[0] != '"' {
		return value
	}
	text := value[1 : len(value)-1]
	if strings.Contains(text, `\`) {
		json.Unmarshal([]byte(value), &text) // cannot fail: value is valid JSON
	}
	return text
}

// parseJSON parses text into v. In errors, what is its name, and allowed describes the JSON that it must be.
func parseJSON(what string, text []byte, v any, allowed string) error {
	err := json.Unmarshal(text, v)
	trimmed := bytes.TrimSpace(text)
	var broken *json.SyntaxError
	switch {
	case len(trimmed) > 0 && errors.As(err, &broken):
		return fmt.Errorf("%s is not JSON: %v, at byte %d; it must be %s", what, err, broken.Offset, allowed)
	case err != nil || string(trimmed) == "null": // which encoding/json takes for anything
		return invalid(what, string(trimmed), allowed)
	}
	return nil
}

// storedPet is a pet as the store holds it. It never changes, and is read more often than added, so it is encoded
// once.
type storedPet struct {
	id   int64
	json []byte // nobody may change it
}

// What a store holds, in bytes. Each pet counts as its JSON and petCost: about what the map and the slices take for
// it.
const (
	maxSize = 256 << 20
	petCost = 128
)

// store holds pets. Many goroutines may use it at once.
type store struct {
	mu   sync.RWMutex         // guards everything below
	pets map[int64]*storedPet // by id
	// ordered has the same pets in ascending order of id: those of each status and, under "", all of them. Once the
	// store is shared, it is only appended to, so a part of it can be read without mu.
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

// put keeps p under this id, which must be free. The caller holds mu, or is the only one that knows s.
func (s *store) put(id int64, p NewPet) (*storedPet, error) {
	added := &storedPet{id, bytes.Clone(encode(Pet{id, p}))} // a copy without the room that encode leaves
	size := s.size + int64(len(added.json)) + petCost
	if size > maxSize {
		return nil, newError(507, fmt.Sprintf("the store is full: it holds %d bytes", maxSize))
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

// list returns the pets with this status, or all for "", whose id is above after, in ascending order of id. Nobody
// may change the slice.
func (s *store) list(status PetStatus, after int64) []*storedPet {
	s.mu.RLock()
	defer s.mu.RUnlock()
	pets := s.ordered[status]
	return pets[sort.Search(len(pets), func(i int) bool { return pets[i].id > after }):]
}

// The bounds of a seed: its length in bytes, and the largest id in it, which leaves more ids than can be used up.
const (
	maxSeed   = 128 << 20
	maxSeedID = 1 << 62
)

// readSeed reads a JSON array of pets into a new store. A pet without an id gets the next after the largest so far.
// An error names the place.
func readSeed(text []byte) (*store, error) {
	if len(text) > maxSeed {
		return nil, fmt.Errorf("the seed has more than %d bytes", maxSeed)
	}
	var pets []json.RawMessage
	if err := parseJSON("the seed", text, &pets, `a JSON array, such as [{"name":"Rex","categoryId":7}]`); err != nil {
		return nil, err
	}
	s := newStore()
	for i, pet := range pets {
		if err := s.putSeed(pet); err != nil {
			return nil, fmt.Errorf("pet %d: %w", i+1, err)
		}
	}
	for _, pets := range s.ordered {
		slices.SortFunc(pets, func(a, b *storedPet) int { return cmp.Compare(a.id, b.id) })
	}
	return s, nil
}

// putSeed keeps a pet of a seed. The caller is the only one that knows s.
func (s *store) putSeed(object []byte) error {
	given, p, err := parsePet("the pet", object)
	id := s.lastID + 1
	if err == nil && given != "" {
		id, err = parseInteger("id", given, 1, maxSeedID)
	}
	if err == nil && s.pets[id] != nil {
		err = fmt.Errorf("id %d is given twice", id)
	}
	if err == nil {
		_, err = s.put(id, p)
	}
	return err
}

// entry is a request in the journal, and its answer.
type entry struct {
	Time    timestamp         `json:"time"` // when its headers had come
	Method  string            `json:"method"`
	URL     string            `json:"url"`     // as the client spelt it
	Headers map[string]string `json:"headers"` // those with the same name are joined with ", "
	Body    string            `json:"body"`    // "" if none came, or if it was not read
	Status  int               `json:"status"`  // 0 if no answer is sent
	Seconds float64           `json:"seconds"` // from Time until the answer was ready, to the millisecond
	Answer  string            `json:"answer"`  // the first maxAnswer bytes of its body, as it was made
	Error   string            `json:"error,omitempty"`
	Fault   string            `json:"fault,omitempty"` // that struck the request

	size int // what the entry counts for maxJournalSize
}

// timestamp is a time in UTC, to the millisecond. It is spelt when somebody reads it, not for each request.
type timestamp struct{ time.Time }

func (t timestamp) MarshalJSON() ([]byte, error) {
	return t.UTC().AppendFormat(nil, `"2006-01-02T15:04:05.000Z"`), nil
}

// The bounds of the journal: how many entries it keeps, the bytes of an answer in an entry, and the bytes of all
// texts in the entries. Each header counts 100 bytes more, for what the map takes.
const (
	maxJournal     = 1000
	maxAnswer      = 1000
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
	e.size = len(e.Method) + len(e.URL) + len(e.Body) + len(e.Answer) + len(e.Error) + len(e.Fault)
	for name, value := range e.Headers {
		e.size += len(name) + len(value) + 100
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
