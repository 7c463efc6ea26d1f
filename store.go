package main

import (
	"cmp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
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
	if strings.ContainsFunc(p.Name, func(c rune) bool { return c < ' ' || c == '"' || c == '\\' }) {
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

// record is a pet as the store holds it: encoded once, when it is added,
// because a pet never changes and is read more often than written.
type record struct {
	id   int64
	json string
}

// recordSize is what a record costs beside its JSON, in bytes, rounded up: its
// place in two slices, and what the allocator adds.
const recordSize = 64

// maxSize is how much the store holds, in bytes.
const maxSize = 256 << 20

// store holds the pets. Many goroutines may use it at once; what it returns
// is theirs.
type store struct {
	// mu guards everything below.
	mu sync.RWMutex
	state
	// seed is the state that reset goes back to.
	seed state
}

// state is what the store holds; the zero state holds nothing.
type state struct {
	// pets has the records of each status in ascending order of id, and under
	// "" those of all pets, so that every page is one stretch of one slice.
	pets map[PetStatus][]record
	// lastID is the largest id assigned so far.
	lastID int64
	// size is what the pets take of maxSize.
	size int64
}

// newStore returns a store that starts with the pets of seed, which nobody may
// use any more.
func newStore(seed state) *store {
	for _, records := range seed.pets {
		slices.SortFunc(records, func(a, b record) int { return cmp.Compare(a.id, b.id) })
	}
	s := &store{seed: seed}
	s.reset()
	return s
}

// put appends p under this id, unless the store is full or has no id left.
func (s *state) put(id int64, p NewPet) (record, bool) {
	var buf [256]byte
	rec := record{id, string(Pet{id, p}.appendJSON(buf[:0]))}
	size := s.size + int64(len(rec.json)) + recordSize
	if size > maxSize || id < 1 {
		return record{}, false
	}
	if s.pets == nil {
		s.pets = map[PetStatus][]record{}
	}
	s.size, s.lastID = size, max(s.lastID, id)
	s.pets[""] = append(s.pets[""], rec)
	if p.Status != "" {
		s.pets[p.Status] = append(s.pets[p.Status], rec)
	}
	return rec, true
}

// add keeps p under the next id. It fails when the store is full.
func (s *store) add(p NewPet) (record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put(s.lastID+1, p)
}

// reset goes back to the seed. The records are shared with it, but not the
// space behind them: the first pet added moves a slice to a place of its own.
func (s *store) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = s.seed
	s.pets = map[PetStatus][]record{}
	for status, records := range s.seed.pets {
		s.pets[status] = slices.Clip(records)
	}
}

// get returns the pet with this id, if there is one.
func (s *store) get(id int64) (record, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	pets := s.pets[""]
	i := sort.Search(len(pets), func(i int) bool { return pets[i].id >= id })
	if i == len(pets) || pets[i].id != id {
		return record{}, false
	}
	return pets[i], true
}

// list appends to page a JSON array of the pets with this status, or of all
// pets for "", in ascending order of id: those whose id is above after, at most
// limit. When more follow, last is the id of the last one; otherwise it is 0.
func (s *store) list(page []byte, status PetStatus, after int64, limit int) (_ []byte, last int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	pets := s.pets[status]
	pets = pets[sort.Search(len(pets), func(i int) bool { return pets[i].id > after }):]
	if len(pets) > limit {
		pets = pets[:limit]
		last = pets[limit-1].id
	}
	page = append(page, '[')
	for i, p := range pets {
		if i > 0 {
			page = append(page, ',')
		}
		page = append(page, p.json...)
	}
	return append(page, "]\n"...), last
}
