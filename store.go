package main

// This file holds state: the world, the pets and their JSON, the seed, and the journal
// of requests.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// world is the state that a reset replaces. A request of a client stays in the world that
// was current when it arrived. So a request in flight during a reset cannot affect the
// pets, the journal or the fault of the next test.
type world struct {
	pets     *store
	journal  *journal
	standing atomic.Pointer[standingFault] // nil for none
	ctx      context.Context               // done when the world, or the process, is to end
	cancel   context.CancelFunc            // ends ctx
}

// newWorld returns a world with the pets of a seed. It ends when ctx is done.
func newWorld(ctx context.Context, seed *store) *world {
	ctx, cancel := context.WithCancel(ctx)
	return &world{pets: seed.clone(), journal: newJournal(), ctx: ctx, cancel: cancel}
}

// end ends the standing fault and all waits, when another world has replaced this one.
func (w *world) end() {
	w.setStanding(nil)
	w.cancel()
}

// setStanding replaces the standing fault, and releases the requests that the
// old one holds. A nil fault only ends the old one.
func (w *world) setStanding(f *standingFault) {
	if old := w.standing.Swap(f); old != nil {
		old.cancel()
	}
}

// petStatuses are the values of a PetStatus (contract, section 2).
var petStatuses = []string{"available", "pending", "sold"}

// NewPet is the body of createPet (contract, section 2).
type NewPet struct {
	Name       string `json:"name"`             // any string, including the empty one
	CategoryID int64  `json:"categoryId"`       // any int64, as the contract shows no categories
	Status     string `json:"status,omitempty"` // one of petStatuses, or absent if the client gave none
}

// Pet is a NewPet with its id (contract, section 2).
type Pet struct {
	ID int64 `json:"id"` // at least 1
	NewPet
}

// parsePet returns the pet that an object describes, if o.err is nil. It leaves
// the unknown members in the object.
func parsePet(o *object) NewPet {
	return NewPet{
		Name:       o.text("name"),
		CategoryID: o.integer("categoryId", math.MinInt64, math.MaxInt64),
		Status:     o.choice("status", petStatuses),
	}
}

// object is a JSON object that is being parsed. A method that parses a member removes
// it, so only the unknown members are left in the end. The error is that of the first
// member that a method has refused.
type object struct {
	members map[string]json.RawMessage
	firstError
}

// parseObject parses the JSON object of a pet. The last of several members with the
// same name wins, as in encoding/json. Error messages call the text name,
// such as "the body".
func parseObject(name string, text []byte) (*object, error) {
	if !utf8.Valid(text) {
		return nil, badRequest(codeInvalidBody, name+" is not valid UTF-8")
	}
	o := &object{}
	err := parseJSON(name, text, &o.members, `a JSON object, such as {"name":"Rex","categoryId":7}`)
	return o, err
}

// take removes a member that must be there, and returns its JSON, or nil if it is
// missing.
func (o *object) take(name, allowed string) json.RawMessage {
	value := o.members[name]
	if value == nil {
		o.note(invalidJSON(name, "missing", allowed))
	}
	delete(o.members, name)
	return value
}

// text returns a member that must be a JSON string.
func (o *object) text(name string) string {
	value := o.take(name, "a string")
	if !bytes.HasPrefix(value, []byte(`"`)) {
		o.note(invalidJSON(name, string(value), "a string"))
	}
	var text string
	json.Unmarshal(value, &text) // fails only after an error above
	return text
}

// choice returns a member that must be one of the allowed words, or "" if it is missing.
func (o *object) choice(name string, allowed []string) string {
	value := o.members[name]
	if value == nil {
		return ""
	}
	delete(o.members, name)
	var word string
	json.Unmarshal(value, &word) // what is not a string is not one of the words
	if !slices.Contains(allowed, word) {
		o.note(invalidJSON(name, string(value), orList(allowed)))
	}
	return word
}

// integer returns a member that must be an integer.
func (o *object) integer(name string, least, most int64) int64 {
	value := o.take(name, "an integer")
	n, err := parseInteger(invalidJSON, name, string(value), least, most)
	o.note(err)
	return n
}

// parseJSON parses text into v. Error messages call the text name, such as "the body".
// They also say which JSON is allowed.
func parseJSON(name string, text []byte, v any, allowed string) error {
	err := json.Unmarshal(text, v)
	trimmed := bytes.TrimSpace(text)
	isNull := string(trimmed) == "null" // encoding/json accepts null for anything
	if err == nil && !isNull {
		return nil
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) && len(trimmed) > 0 {
		message := fmt.Sprintf("%s is not JSON: %v, at byte %d; it must be %s", name, syntax, syntax.Offset, allowed)
		return badRequest(codeInvalidBody, message)
	}
	return invalidJSON(name, cmp.Or(string(trimmed), "empty"), allowed)
}

// encodeJSON returns v as JSON, with <, > and & as they are.
func encodeJSON(v any) []byte {
	var b bytes.Buffer
	writeJSON(&b, v)
	return b.Bytes()
}

// writeJSON writes what encodeJSON returns.
func writeJSON(b *bytes.Buffer, v any) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // a bug: each v can be encoded
	}
	b.Truncate(b.Len() - len("\n"))
}

// storedPet is a pet in the store. It must not be modified. A pet is read more
// often than it is added, so it is encoded once.
type storedPet struct {
	id   int64
	json []byte
}

// The size of a store is bounded. The size of a pet is the length of its JSON
// plus petCost, an estimate of what the map and the slices need for it.
const (
	maxStoreSize = 256 << 20 // bytes
	petCost      = 128       // bytes
)

// store holds pets. It is safe for concurrent use.
type store struct {
	mu sync.RWMutex // guards the fields below

	pets map[int64]*storedPet // by id
	// ordered holds the pets of each status, and under "" all pets, in ascending
	// order of id. Once readSeed has returned, its slices are only appended to, as
	// list returns parts of them. To remove a pet, replace the slice.
	ordered map[string][]*storedPet
	lastID  int64 // the largest id so far
	size    int64 // of all pets, in bytes; at most maxStoreSize
}

func newStore() *store {
	return &store{pets: map[int64]*storedPet{}, ordered: map[string][]*storedPet{}}
}

// clone returns another store with the pets of s, which must be a seed. It takes no
// lock, as a seed is not modified. The stores share the slices of ordered, which
// readSeed has clipped, so that an append copies them.
func (s *store) clone() *store {
	return &store{pets: maps.Clone(s.pets), ordered: maps.Clone(s.ordered), lastID: s.lastID, size: s.size}
}

// add adds a pet under the next id.
func (s *store) add(p NewPet) (*storedPet, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	added, err := s.put(0, p)
	if err != nil {
		return nil, newError(http.StatusInsufficientStorage, err.Error())
	}
	return added, nil
}

// put adds a pet under an id that is free, or under the next one if the id is 0. It
// returns an error if there is no next id, or the store is full. The caller holds mu, or
// is the only user of the store.
func (s *store) put(id int64, p NewPet) (*storedPet, error) {
	if id == 0 {
		if s.lastID == math.MaxInt64 {
			return nil, fmt.Errorf("there is no id after %d", s.lastID)
		}
		id = s.lastID + 1
	}
	// The store would keep the spare capacity that encodeJSON leaves.
	added := &storedPet{id: id, json: bytes.Clone(encodeJSON(Pet{ID: id, NewPet: p}))}
	size := s.size + int64(len(added.json)) + petCost
	if size > maxStoreSize {
		return nil, fmt.Errorf("the store is full; its limit is %d bytes", maxStoreSize)
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

// list returns up to limit pets with this status, or with any status for "",
// whose ids are above after. It returns them in ascending order of id, and
// reports whether more follow. The page must neither be modified nor appended to.
func (s *store) list(status string, after int64, limit int) (page []*storedPet, more bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	pets := s.ordered[status]
	first := sort.Search(len(pets), func(i int) bool { return pets[i].id > after })
	end := min(first+limit, len(pets))
	return pets[first:end], end < len(pets)
}

// readSeed returns a new store with the pets of a JSON array. A pet without an
// id gets the next id after the largest so far. An error in a pet says in which.
func readSeed(text []byte) (*store, error) {
	isStart := func(start string) bool { return bytes.HasPrefix(text, []byte(start)) }
	if slices.ContainsFunc([]string{"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff", "[\x00", "\x00["}, isStart) {
		return nil, badRequest(codeInvalidBody,
			"the seed begins with a byte order mark, or is in UTF-16; save it as UTF-8 without a byte order mark")
	}
	var pets []json.RawMessage
	err := parseJSON("the seed", text, &pets, `a JSON array, such as [{"name":"Rex","categoryId":7}]`)
	if err != nil {
		return nil, err
	}
	s := newStore()
	for i, pet := range pets {
		if err := s.putSeed(pet); err != nil {
			return nil, fmt.Errorf("pet %d: %w", i+1, err)
		}
	}
	for status, pets := range s.ordered {
		slices.SortFunc(pets, func(a, b *storedPet) int { return cmp.Compare(a.id, b.id) })
		s.ordered[status] = slices.Clip(pets)
	}
	return s, nil
}

// putSeed adds the next pet of a seed. The store has only the pets before it, in
// the order of the seed. The caller is its only user.
func (s *store) putSeed(pet []byte) error {
	o, err := parseObject("the pet", pet)
	if err != nil {
		return err
	}
	p := parsePet(o)
	var id int64 // 0 if it is not given
	if o.members["id"] != nil {
		id = o.integer("id", 1, math.MaxInt64)
	}
	if o.err != nil {
		return o.err
	}
	if unknown := unknownNames(o.members, nil); len(unknown) > 0 {
		return badRequest(codeInvalidBody, "a pet has no member "+quote(unknown[0]))
	}
	if s.pets[id] != nil {
		owner := slices.IndexFunc(s.ordered[""], func(other *storedPet) bool { return other.id == id }) + 1
		return badRequest(codeInvalidBody, fmt.Sprintf("id %d is taken by pet %d of the seed", id, owner))
	}
	if _, err := s.put(id, p); err != nil {
		return badRequest(codeInvalidBody, err.Error())
	}
	return nil
}

// sentRequest is what the journal has of a request that a client has sent, and the fault
// that was applied to it. Here and in entry, bytes that are not UTF-8 become U+FFFD in JSON.
// What the members mean is in api/openapi.json.
type sentRequest struct {
	Time      timestamp     `json:"time"` // of its arrival
	Method    string        `json:"method"`
	URL       string        `json:"url"`
	Operation string        `json:"operation,omitempty"`
	Headers   journalHeader `json:"headers"`         // see sentHeader
	Body      string        `json:"body"`            // empty if it could not be read
	Fault     *fault        `json:"fault,omitempty"` // nil for none; must not be modified
}

// waitingRequest is a request that has arrived and has not been recorded yet.
type waitingRequest struct {
	sentRequest
	Seconds float64 `json:"seconds"`
}

// entry is a request, and what became of it.
type entry struct {
	ID int64 `json:"id"` // in the order of recording
	sentRequest
	Status        int           `json:"status"` // 0 for no answer
	Seconds       float64       `json:"seconds"`
	AnswerHeaders journalHeader `json:"answerHeaders,omitempty"` // without most headers that net/http adds
	Answer        string        `json:"answer"`                  // up to maxAnswer bytes
	Error         string        `json:"error,omitempty"`
	Ignored       []string      `json:"ignored,omitempty"` // preferences, query parameters, members of the body; each sorted

	size    int  // see estimate
	cleared bool // whether the journal has been cleared since the request arrived; guarded by its mu
}

// The bounds of the journal.
const (
	maxEntries     = 1000
	maxAnswer      = 1000    // bytes of an answer in an entry
	maxJournalSize = 4 << 20 // bytes of all entries, see estimate
)

// estimate returns the size of what can be large in the entry, in bytes.
func (e *entry) estimate() int {
	const each = 100 // what a value of a header, or a name, needs besides its text
	size := len(e.Method) + len(e.URL) + len(e.Operation) + len(e.Body) + len(e.Answer) + len(e.Error)
	for _, h := range []journalHeader{e.Headers, e.AnswerHeaders} {
		for name, values := range h {
			size += len(name)
			for _, value := range values {
				size += len(value) + each
			}
		}
	}
	for _, name := range e.Ignored {
		size += len(name) + each
	}
	return size
}

// timestamp is a time that is encoded in UTC, to the millisecond. It is
// formatted when the journal is read, and not for each request.
type timestamp struct{ time.Time }

func (t timestamp) MarshalJSON() ([]byte, error) {
	const layout = `"2006-01-02T15:04:05.000Z"`
	return t.UTC().AppendFormat(make([]byte, 0, len(layout)), layout), nil
}

// secondsSince returns the time since t, to the millisecond. The result of
// Duration.Seconds can have more digits, as 1.1179999999999999 has.
func secondsSince(t time.Time) float64 {
	return float64(time.Since(t).Round(time.Millisecond).Milliseconds()) / 1000
}

// journalHeader is the header of a request or an answer. It must not be modified. In JSON,
// it is an object, and the values of a repeated field are joined with ", ".
type journalHeader http.Header

func (h journalHeader) MarshalJSON() ([]byte, error) {
	joined := make(map[string]string, len(h))
	for name, values := range h {
		joined[name] = strings.Join(values, ", ")
	}
	return encodeJSON(joined), nil
}

// journalMeta says what a journal counts.
type journalMeta struct {
	Total int64     `json:"total"`
	First int64     `json:"first"` // the smallest id that is kept, or the next id
	Since time.Time `json:"since"` // to the nanosecond, so that clients can tell clears apart
}

// journal holds the last requests that were recorded, and those that wait, which have
// arrived and have not been recorded yet. It is safe for concurrent use.
type journal struct {
	mu sync.Mutex // guards the fields below

	waiting map[*entry]sentRequest // what readers get of the requests that wait
	entries []*entry               // in the order of recording, which is that of their ids
	size    int                    // of all entries
	meta    journalMeta            // what readers get beside the entries
	clears  int                    // how often the journal was cleared
	changed chan struct{}          // closed by the next record or clear; nil until somebody waits for that
}

func newJournal() *journal {
	j := &journal{waiting: map[*entry]sentRequest{}}
	j.clear()
	return j
}

// track lists a request as waiting, until it is recorded, with a copy of what is known of
// it. It is called when the request arrives, which is its time, and again when more is known.
func (j *journal) track(e *entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e.Time.IsZero() {
		e.Time = timestamp{time.Now()} // not before the last clear, as clear takes mu, too
	}
	j.waiting[e] = e.sentRequest
}

// record records a request that is being tracked, unless the journal has been cleared since
// it arrived, and drops the oldest entries beyond the bounds. The entry must not be modified
// any more. The standing fault that was applied to the request, if it is not nil, releases
// it under the same lock, so that no reader finds a request that is recorded and still held,
// or neither.
func (j *journal) record(e *entry, standing *standingFault) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if standing != nil {
		standing.release()
	}
	delete(j.waiting, e)
	j.wake()
	if e.cleared {
		return
	}
	j.meta.Total++
	e.ID, e.Seconds, e.size = j.meta.Total, secondsSince(e.Time.Time), e.estimate()
	j.entries = append(j.entries, e)
	j.size += e.size
	// The new entry stays, as no request has an estimate of maxJournalSize: its headers and
	// its body have 64 KiB each.
	for len(j.entries) > maxEntries || j.size > maxJournalSize {
		j.size -= j.entries[0].size
		j.entries[0] = nil // so that it can be collected
		j.entries = j.entries[1:]
		j.meta.First++
	}
}

// encode returns the journal as JSON, with one request a line: what read returns.
func (j *journal) encode(after int64) []byte {
	entries, waiting, meta := j.read(after)
	size := 0
	for _, e := range entries {
		size += e.size
	}
	var b bytes.Buffer
	b.Grow(size) // as a large buffer that grows takes up to three times its size
	b.WriteString(`{"requests":`)
	writeLines(&b, entries)
	b.WriteString(`,"waiting":`)
	writeLines(&b, waiting)
	b.WriteString(`,"meta":`)
	writeJSON(&b, meta)
	b.WriteString("}\n")
	return b.Bytes()
}

// writeLines writes a JSON array with one element a line. An empty one is [].
func writeLines[T any](b *bytes.Buffer, list []T) {
	before, end := "[\n", "[]"
	for _, v := range list {
		b.WriteString(before)
		writeJSON(b, v)
		before, end = ",\n", "\n]"
	}
	b.WriteString(end)
}

// read returns the entries whose ids are above after, and the requests that wait. Both
// lists are in the order in which the requests arrived. This is not the order of ids: a
// request whose client has given up may be recorded after its own retry.
func (j *journal) read(after int64) (entries []*entry, waiting []waitingRequest, meta journalMeta) {
	j.mu.Lock()
	first := sort.Search(len(j.entries), func(i int) bool { return j.entries[i].ID > after })
	entries = slices.Clone(j.entries[first:])
	for _, sent := range j.waiting {
		waiting = append(waiting, waitingRequest{sent, secondsSince(sent.Time.Time)})
	}
	meta = j.meta
	j.mu.Unlock()
	slices.SortStableFunc(entries, func(a, b *entry) int { return a.Time.Compare(b.Time.Time) })
	slices.SortFunc(waiting, func(a, b waitingRequest) int { return a.Time.Compare(b.Time.Time) })
	return entries, waiting, meta
}

// clear removes all entries. The requests that wait stay listed until they are over, and
// are not recorded then.
func (j *journal) clear() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for e := range j.waiting {
		e.cleared = true
	}
	j.entries, j.size, j.meta = nil, 0, journalMeta{First: 1, Since: time.Now().UTC()}
	j.clears++
	j.wake()
}

// wait waits until total requests have been recorded, and all but maxWaiting of the requests
// that wait at its call are over. It also returns when the journal is cleared, or ctx is done.
func (j *journal) wait(ctx context.Context, total, maxWaiting int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	clears := j.clears
	var earlier []*entry // the requests that wait at the call, and are not over
	for e := range j.waiting {
		earlier = append(earlier, e)
	}
	for j.clears == clears && ctx.Err() == nil {
		earlier = slices.DeleteFunc(earlier, func(e *entry) bool {
			_, waits := j.waiting[e]
			return !waits
		})
		if j.meta.Total >= total && int64(len(earlier)) <= maxWaiting {
			return
		}
		if j.changed == nil {
			j.changed = make(chan struct{})
		}
		changed := j.changed
		j.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		j.mu.Lock()
	}
}

// wake lets those that wait look again. The caller holds mu.
func (j *journal) wake() {
	if j.changed != nil {
		close(j.changed)
		j.changed = nil
	}
}
