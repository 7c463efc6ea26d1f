package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// PetStatus tells whether a pet can be had (contract, section 2). The empty
// PetStatus stands for none given; it is never sent.
type PetStatus string

// The statuses of the contract. No operation turns one into another.
const (
	Available PetStatus = "available"
	Pending   PetStatus = "pending"
	Sold      PetStatus = "sold"
)

func petStatus(given string) (PetStatus, error) {
	for _, s := range []PetStatus{Available, Pending, Sold} {
		if given == string(s) {
			return s, nil // not given, which is part of a longer text
		}
	}
	return "", invalid{name: "status", given: given, allowed: "available, pending or sold"}
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

// appendJSON appends what encode(p) returns. Without it, a create would cost a
// tenth more.
func (p Pet) appendJSON(b []byte) []byte {
	b = append(b, `{"id":`...)
	b = strconv.AppendInt(b, p.ID, 10)
	b = append(b, `,"name":`...)
	if strings.ContainsFunc(p.Name, func(c rune) bool { return c < ' ' || c == '"' || c == '\\' || c|1 == '\u2029' }) {
		b = append(b, encode(p.Name)...)
	} else {
		b = append(b, '"')
		b = append(b, p.Name...)
		b = append(b, '"')
	}
	b = append(b, `,"categoryId":`...)
	b = strconv.AppendInt(b, p.CategoryID, 10)
	if p.Status != "" {
		b = append(b, `,"status":"`...)
		b = append(b, p.Status...)
		b = append(b, '"')
	}
	return append(b, '}')
}

// parsePet parses a pet: id is 0 if it has none, and for a pet that brings no
// id of its own, as in a create, it is not looked at. It refuses what
// encoding/json lets pass: names in another case, members given twice, null,
// invalid UTF-8. Unknown members are skipped. object is valid JSON, an object
// or not.
func parsePet(object string, withID bool) (id int64, p NewPet, err error) {
	const missing = "missing" // stands for the value of a member that is not there, and is no JSON
	object = strings.TrimSpace(object)
	rest, found := strings.CutPrefix(object, "{")
	if !found {
		return 0, p, invalid{name: "the pet", given: object, allowed: "a JSON object"}
	}
	values := [4]string{missing, missing, missing, missing}
	for rest != "" {
		var quoted, value string
		if quoted, rest = cutToken(rest); quoted == "" {
			break // the object is empty
		}
		value, rest = cutToken(rest)
		name := unquote(quoted)
		if !utf8.ValidString(quoted) || !utf8.ValidString(value) {
			return 0, p, invalid{name: name, given: "not UTF-8", allowed: "UTF-8"}
		}
		i := slices.Index([]string{"name", "categoryId", "status", "id"}, name)
		if i < 0 || name == "id" && !withID {
			continue
		}
		if values[i] != missing {
			return 0, p, invalid{name: name, given: "given twice", allowed: "given once"}
		}
		values[i] = value
	}

	name, categoryID, status := values[0], values[1], values[2]
	if values[3] != missing {
		// The largest int64 would leave no next id.
		if id, err = integer("id", values[3], 1, math.MaxInt64-1); err != nil {
			return 0, p, err
		}
	}
	if name[0] != '"' || strings.Contains(name, `\u`) && !wellFormed.MatchString(name) {
		return 0, p, invalid{name: "name", given: name, allowed: "a string of valid Unicode"}
	}
	p.Name = unquote(name)
	if p.CategoryID, err = integer("categoryId", categoryID, math.MinInt64, math.MaxInt64); err != nil {
		return 0, p, err
	}
	if status != missing {
		p.Status, err = petStatus(unquote(status))
	}
	return id, p, err
}

// cutToken cuts the members of a JSON object behind their first name or value:
// at the colon, the comma or the bracket that ends it. Behind the last value,
// rest is empty.
func cutToken(members string) (token, rest string) {
	depth, quoted := 0, false
	for i := 0; ; i++ {
		switch c := members[i]; {
		case c == '\\':
			i++ // only in strings
		case c == '"':
			quoted = !quoted
		case quoted:
		case depth == 0 && c == '}':
			return strings.TrimSpace(members[:i]), ""
		case depth == 0 && (c == ':' || c == ','):
			return strings.TrimSpace(members[:i]), members[i+1:]
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
	}
}

// wellFormed matches JSON strings but those that escape one half of a
// surrogate pair alone: no UTF-8 can say that.
var wellFormed = regexp.MustCompile(`^"([^\\]|\\[^u]|\\u([^dD]|[dD][0-7])|\\u[dD][89abAB]..\\u[dD][c-fC-F])*"$`)

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

// record is a pet as the store holds it: encoded once, when it is added,
// because a pet never changes and is read more often than written.
type record struct {
	id   int64
	json []byte // which nobody may change
}

// line returns the pet on a line of its own.
func (r record) line() []byte {
	return append(append(make([]byte, 0, len(r.json)+1), r.json...), '\n')
}

// place tells where in the chunks of a state a record is. It has no pointer, as
// the collector would follow millions of them.
type place struct {
	id                   int64
	chunk, start, length int32
}

// recordSize is what a record costs beside its JSON, in bytes, rounded up: its
// place in two slices, and the room that they have to grow.
const recordSize = 64

// The sizes of the smallest and the largest chunk, in bytes, but for those of a
// larger pet. Each is twice as large as the one before.
const minChunk, maxChunk = 4 << 10, 1 << 20

// maxSize is how much the store holds, in bytes.
const maxSize = 256 << 20

// maxSeedPet is how much of a seed one pet may take, in bytes, with the white
// space before it.
const maxSeedPet = 4 << 20

var errSeedPet = fmt.Errorf("more than %d bytes for one pet", maxSeedPet)

// seedReader fails with errSeedPet behind N bytes, where an io.LimitedReader ends.
type seedReader struct{ io.LimitedReader }

func (r *seedReader) Read(p []byte) (int, error) {
	if r.N <= 0 {
		return 0, errSeedPet
	}
	return r.LimitedReader.Read(p)
}

// state is a set of pets; the zero state is empty.
type state struct {
	// pets has the places of the pets of each status in ascending order of id,
	// and under "" those of all pets, so that every page is one stretch of one
	// slice.
	pets map[PetStatus][]place
	// chunks have the JSON of the pets, one behind the other.
	chunks [][]byte
	// lastID is the largest id assigned so far.
	lastID int64
	// size is what the pets take of maxSize.
	size int64
}

// put appends p under this id, unless the store is full.
func (s *state) put(id int64, p NewPet) (record, bool) {
	var buf [256]byte
	text := Pet{id, p}.appendJSON(buf[:0])
	size := s.size + int64(len(text)) + recordSize
	if size > maxSize {
		return record{}, false
	}
	if s.pets == nil {
		s.pets = map[PetStatus][]place{}
	}
	last := len(s.chunks) - 1
	if last < 0 || cap(s.chunks[last])-len(s.chunks[last]) < len(text) {
		next := minChunk
		if last >= 0 {
			next = min(2*cap(s.chunks[last]), maxChunk)
		}
		s.chunks = append(s.chunks, make([]byte, 0, max(next, len(text))))
		last++
	}
	at := place{id, int32(last), int32(len(s.chunks[last])), int32(len(text))}
	s.chunks[last] = append(s.chunks[last], text...)
	s.size, s.lastID = size, max(s.lastID, id)
	s.pets[""] = append(s.pets[""], at)
	if p.Status != "" {
		s.pets[p.Status] = append(s.pets[p.Status], at)
	}
	return s.at(at), true
}

// at returns the record at p.
func (s *state) at(p place) record {
	end := p.start + p.length
	return record{p.id, s.chunks[p.chunk][p.start:end:end]}
}

// readSeed reads a JSON array of pets. Those without an id are numbered above
// the largest one in it, in its order. The error names the place in it; it is
// an invalid if a value is wrong. What is too large is refused while it is read.
func readSeed(r io.Reader) (state, error) {
	var s state
	limited := &seedReader{io.LimitedReader{R: r, N: maxSeedPet}}
	dec := json.NewDecoder(limited)
	if token, err := dec.Token(); token != json.Delim('[') {
		if err == errSeedPet || errors.As(err, new(*fs.PathError)) {
			return s, err // a folder, for one
		}
		return s, errors.New("not a JSON array")
	}
	n := 0 // number of the current pet, from 1
	fail := func(err error) (state, error) {
		place := fmt.Sprintf("pet %d: ", n)
		if err, ok := err.(invalid); ok {
			err.place = place
			return s, err
		}
		return s, fmt.Errorf("%s%w", place, err)
	}
	full := errors.New("too large for the store")
	type unnumbered struct {
		n int
		NewPet
	}
	var later []unnumbered
	var laterSize int64          // what they take of maxSize at least
	var taken map[int64]struct{} // nil while the ids ascend
	var raw json.RawMessage
	for ; dec.More(); limited.N = maxSeedPet {
		n++
		if err := dec.Decode(&raw); err != nil {
			return fail(err)
		}
		id, p, err := parsePet(string(raw), true)
		if err != nil {
			return fail(err)
		}
		if id == 0 {
			laterSize += int64(len(p.Name)+len(`{"id":1,"name":"","categoryId":1}`)) + recordSize
			if s.size+laterSize > maxSize {
				return fail(full)
			}
			p.Name = strings.Clone(p.Name) // without the rest of raw
			later = append(later, unnumbered{n, p})
			continue
		}
		if id <= s.lastID && taken == nil {
			taken = map[int64]struct{}{}
			for _, p := range s.pets[""] {
				taken[p.id] = struct{}{}
			}
		}
		if _, again := taken[id]; again {
			return fail(fmt.Errorf("id %d is given twice", id))
		}
		if taken != nil {
			taken[id] = struct{}{}
		}
		if _, ok := s.put(id, p); !ok || s.size+laterSize > maxSize {
			return fail(full)
		}
	}
	if _, err := dec.Token(); err == errSeedPet {
		return s, fmt.Errorf("behind pet %d: %w", n, err)
	} else if err != nil {
		return s, fmt.Errorf("behind pet %d: the array does not end", n)
	}
	if _, err := dec.Token(); err != io.EOF {
		return s, fmt.Errorf("behind pet %d: something follows the array", n)
	}
	for _, places := range s.pets {
		slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.id, b.id) })
	}
	for _, p := range later {
		n = p.n
		if s.lastID == math.MaxInt64-1 {
			return fail(errors.New("there is no id left for it"))
		}
		if _, ok := s.put(s.lastID+1, p.NewPet); !ok {
			return fail(full)
		}
	}
	return s, nil
}

// store holds the pets in two layers: those that it began with, which nobody
// changes, and those that were added since, whose ids are larger. Many
// goroutines may use it at once; what it returns is theirs.
type store struct {
	// seed is what the process began with.
	seed state
	// mu guards everything below.
	mu sync.RWMutex
	// base is what the last reset began with.
	base state
	// state has the pets added since. Its size and lastID count those of base.
	state
}

// newStore returns a store that begins with seed.
func newStore(seed state) *store {
	s := &store{seed: seed}
	s.reset(seed)
	return s
}

// reset drops all pets but those of base.
func (s *store) reset(base state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.base = base
	s.state = state{lastID: base.lastID, size: base.size}
}

// add keeps p under the next id.
func (s *store) add(p NewPet) (record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lastID == math.MaxInt64 {
		return record{}, errors.New("there is no id left")
	}
	rec, ok := s.put(s.lastID+1, p)
	if !ok {
		return record{}, fmt.Errorf("the store is full: it holds %d bytes", maxSize)
	}
	return rec, nil
}

// get returns the pet with this id, if there is one.
func (s *store) get(id int64) (record, bool) {
	var room [1]record
	pets, _ := s.list(room[:0], "", id-1, 1)
	return room[0], len(pets) > 0 && pets[0].id == id
}

// list appends to page the pets with this status, or all pets for "", in
// ascending order of id: those whose id is above after, at most limit, and
// tells whether more follow.
func (s *store) list(page []record, status PetStatus, after int64, limit int) (_ []record, more bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, layer := range [...]*state{&s.base, &s.state} {
		pets := layer.pets[status]
		pets = pets[sort.Search(len(pets), func(i int) bool { return pets[i].id > after }):]
		for _, p := range pets {
			if len(page) == limit {
				return page, true
			}
			page = append(page, layer.at(p))
		}
	}
	return page, false
}

// entry is a request in the journal, as net/http has read it: nothing is
// copied or encoded until somebody reads the journal.
type entry struct {
	time              int64 // when it came, in milliseconds since 1970
	method, url, host string
	header            map[string][]string
	chunked           bool
	body              []byte // empty if none came or none was read
	status            int    // of the answer, 0 if none was sent
	size              int    // what the entry takes of maxJournalSize
}

// The bounds of the journal: the number of its entries, and the bytes of their
// urls, headers and bodies.
const (
	maxJournal     = 1000
	maxJournalSize = 8 << 20
)

// journal holds the last requests. Many goroutines may use it at once.
type journal struct {
	// mu guards everything below.
	mu sync.Mutex
	// ring has count entries, from first on.
	ring         [maxJournal]entry
	first, count int
	// size is what they take of maxJournalSize.
	size int
	// total counts the requests since the journal was cleared, those that are gone too.
	total int
}

// add appends e. The oldest entries make room for it.
func (j *journal) add(e *entry) {
	e.size = len(e.method) + len(e.url) + len(e.host) + len(e.body)
	for name, values := range e.header {
		for _, value := range values {
			e.size += len(name) + len(value) + 100
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.count == maxJournal || j.size+e.size > maxJournalSize {
		oldest := &j.ring[j.first]
		j.size -= oldest.size
		*oldest = entry{}
		j.first = (j.first + 1) % maxJournal
		j.count--
	}
	j.ring[(j.first+j.count)%maxJournal] = *e
	j.count++
	j.size += e.size
	j.total++
}

// all returns the entries, the oldest first, and the number of all requests
// since the journal was cleared.
func (j *journal) all() ([]entry, int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	entries := make([]entry, j.count)
	for i := range entries {
		entries[i] = j.ring[(j.first+i)%maxJournal]
	}
	return entries, j.total
}

func (j *journal) clear() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ring = [maxJournal]entry{}
	j.first, j.count, j.size, j.total = 0, 0, 0, 0
}
