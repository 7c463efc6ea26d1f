package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"net"
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
	standing atomic.Pointer[standingFault] // nil for none
	ctx      context.Context               // once it is done, no request of this world waits for a fault
	cancel   context.CancelFunc            // ends ctx
}

// newWorld returns a world with the pets of a seed. It ends when ctx is done.
func newWorld(ctx context.Context, seed *store) *world {
	ctx, cancel := context.WithCancel(ctx)
	return &world{pets: seed.clone(), ctx: ctx, cancel: cancel}
}

// setStanding replaces the standing fault, and releases the requests that the
// old one holds. A nil fault only ends the old one.
func (w *world) setStanding(f *standingFault) {
	if old := w.standing.Swap(f); old != nil {
		old.release()
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

// parseObject parses the JSON object of a pet. The last of several members with the same name
// wins, as in encoding/json. The name, such as "the body", is what error messages call the text.
func parseObject(name string, text []byte) (*object, error) {
	if !utf8.Valid(text) {
		return nil, badRequest(codeInvalidBody, name+" is not valid UTF-8")
	}
	o := &object{}
	err := parseJSON(name, text, &o.members, `a JSON object, such as {"name":"Rex","categoryId":7}`)
	return o, err
}

// take removes a member, and returns its JSON or, if there is none, "missing", which is no JSON.
func (o *object) take(name string) json.RawMessage {
	value, isGiven := o.members[name]
	if !isGiven {
		return json.RawMessage("missing")
	}
	delete(o.members, name)
	return value
}

// text returns a member that must be a JSON string.
func (o *object) text(name string) (text string) {
	value := o.take(name)
	json.Unmarshal(value, &text) // of what is not a string, text stays empty
	if value[0] != '"' {
		o.note(invalidJSON(name, string(value), "a string"))
	}
	return text
}

// choice returns a member that must be one of the allowed words, or "" if it is missing.
func (o *object) choice(name string, allowed []string) (word string) {
	if o.members[name] == nil {
		return ""
	}
	value := o.take(name)
	json.Unmarshal(value, &word) // of what is not a string, word stays empty
	if !slices.Contains(allowed, word) {
		o.note(invalidJSON(name, string(value), orList(allowed)))
	}
	return word
}

// integer returns a member that must be an integer.
func (o *object) integer(name string, least, most int64) int64 {
	n, err := parseInteger(invalidJSON, name, string(o.take(name)), least, most)
	o.note(err)
	return n
}

// parseJSON parses text into v. The name, such as "the body", is what error messages call
// the text. They also say which JSON is allowed.
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
	id     int64
	status string
	json   []byte
}

// The size of a store is bounded. The size of a pet is the length of its JSON
// plus petCost, an estimate of what the map and the slice need for it.
const (
	maxStoreSize = 128 << 20 // bytes
	petCost      = 128       // bytes
)

// store holds pets. It is safe for concurrent use.
type store struct {
	mu      sync.RWMutex         // guards the fields below
	pets    map[int64]*storedPet // by id
	ordered []*storedPet         // in ascending order of id
	lastID  int64                // the largest id so far
	size    int64                // of all pets, in bytes; at most maxStoreSize
}

func newStore() *store {
	return &store{pets: map[int64]*storedPet{}}
}

// clone returns another store with the pets of s.
func (s *store) clone() *store {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return &store{pets: maps.Clone(s.pets), ordered: slices.Clone(s.ordered), lastID: s.lastID, size: s.size}
}

// add adds a pet under the next id.
func (s *store) add(p NewPet) (*storedPet, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, err := s.nextID()
	if err != nil {
		return nil, newError(http.StatusInsufficientStorage, err.Error())
	}
	return s.put(Pet{ID: id, NewPet: p})
}

// nextID returns the id after the largest so far, or an error if there is none. The
// caller holds mu, or is the only user of the store.
func (s *store) nextID() (int64, error) {
	if s.lastID == math.MaxInt64 {
		return 0, fmt.Errorf("there is no id after %d", s.lastID)
	}
	return s.lastID + 1, nil
}

// put adds a pet with an id of its own at the end of ordered, or returns the Error of a
// 507 if the store is full. The caller holds mu, or is the only user of the store.
func (s *store) put(p Pet) (*storedPet, error) {
	// The store would keep the spare capacity that encodeJSON leaves.
	added := &storedPet{id: p.ID, status: p.Status, json: bytes.Clone(encodeJSON(p))}
	size := s.size + int64(len(added.json)) + petCost
	if size > maxStoreSize {
		return nil, newError(http.StatusInsufficientStorage,
			fmt.Sprintf("the store is full; its limit is %d bytes", maxStoreSize))
	}
	s.pets[p.ID] = added
	s.ordered = append(s.ordered, added)
	s.lastID, s.size = max(s.lastID, p.ID), size
	return added, nil
}

// get returns the pet with this id, or nil.
func (s *store) get(id int64) *storedPet {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.pets[id]
}

// list returns up to limit pets with this status, or with any status for "", whose ids
// are above after. They are in ascending order of id. It also reports whether more follow.
func (s *store) list(status string, after int64, limit int) (page []*storedPet, more bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	first := sort.Search(len(s.ordered), func(i int) bool { return s.ordered[i].id > after })
	page = make([]*storedPet, 0, limit)
	for _, p := range s.ordered[first:] {
		if status != "" && p.status != status {
			continue
		}
		if len(page) == limit {
			return page, true
		}
		page = append(page, p)
	}
	return page, false
}

// readSeed returns a store with the pets of a JSON array. A pet without an id gets the
// next after the largest so far. An error in a pet says in which.
func readSeed(text []byte) (*store, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // a byte order mark
	var pets []json.RawMessage
	err := parseJSON("the seed", text, &pets, `a JSON array in UTF-8, such as [{"name":"Rex","categoryId":7}]`)
	if err != nil {
		return nil, err
	}
	s := newStore()
	for i, pet := range pets {
		if err := s.putSeed(pet); err != nil {
			return nil, fmt.Errorf("pet %d: %w", i+1, err)
		}
	}
	slices.SortFunc(s.ordered, func(a, b *storedPet) int { return cmp.Compare(a.id, b.id) })
	return s, nil
}

// putSeed adds the next pet of a seed. The store has only the pets before it, in the
// order of the seed, and no other user.
func (s *store) putSeed(text []byte) error {
	o, err := parseObject("the pet", text)
	if err != nil {
		return err
	}
	p := Pet{NewPet: parsePet(o)}
	if o.members["id"] != nil {
		p.ID = o.integer("id", 1, math.MaxInt64)
	}
	if unknown := unknownNames(o.members, nil); len(unknown) > 0 {
		o.note(badRequest(codeInvalidBody, "a pet has no member "+quote(unknown[0])))
	}
	if o.err != nil {
		return o.err
	}
	if p.ID == 0 { // it is not given
		if p.ID, err = s.nextID(); err != nil {
			return badRequest(codeInvalidBody, err.Error())
		}
	}
	if s.pets[p.ID] != nil {
		i := slices.IndexFunc(s.ordered, func(other *storedPet) bool { return other.id == p.ID })
		return badRequest(codeInvalidBody, fmt.Sprintf("id %d is taken by pet %d of the seed", p.ID, i+1))
	}
	_, err = s.put(p)
	return err
}

// entry is what the journal has of a request of a client. Bytes that are not UTF-8 become
// U+FFFD in JSON. What the members mean is in api/openapi.json.
type entry struct {
	Arrived   int64         `json:"arrived"`           // counts the requests as they arrive: 1, 2, 3, …
	Repeats   int64         `json:"repeats,omitempty"` // the Arrived of the request that it repeats, or 0; see noteRepetitions
	*period                 // in which the request arrived
	Time      timestamp     `json:"time"` // of its arrival
	Method    string        `json:"method"`
	URL       string        `json:"url"`
	Client    string        `json:"client"` // the address and port of the connection
	Operation string        `json:"operation,omitempty"`
	Headers   journalHeader `json:"headers"`         // see sentHeader
	Body      string        `json:"body"`            // its first bytes, as far as they have been read
	Fault     *fault        `json:"fault,omitempty"` // once it has been chosen, or nil
	*outcome                // nil while the request waits; its members are then not encoded
	Seconds   float64       `json:"seconds"` // from the arrival to the end, or so far

	isPartial     bool   // whether the body has not been read whole, or not yet
	rest          uint32 // of a hash of the bytes of the body that are not in Body, or 0 if there are none
	endingsBefore int64  // how many requests had ended when it arrived
}

// outcome is what became of a request. A request has ended when it has one.
type outcome struct {
	Status        int           `json:"status"`                  // 0 for no answer
	Pet           int64         `json:"pet,omitempty"`           // the id of the pet that it has added, or 0
	AnswerHeaders journalHeader `json:"answerHeaders,omitempty"` // without most headers that net/http adds
	Answer        string        `json:"answer"`                  // its first bytes
	Error         string        `json:"error,omitempty"`
	Ignored       []string      `json:"ignored,omitempty"` // preferences, query parameters, members of the body; each sorted
	Ended         int64         `json:"ended"`             // counts the requests as they end: 1, 2, 3, …

	hasLeft bool // whether the client left before the end of its answer; see exchange.wait
}

// isUsable reports whether a request that has ended got an answer that its client can use.
func (e *entry) isUsable() bool {
	isSpoilt := e.Fault != nil && e.Fault.effect.spoils && e.Method != "HEAD" // which has no body
	return 200 <= e.Status && e.Status < 300 && e.Error == "" && !isSpoilt
}

// hasFailed reports whether a request has ended, and its client got no answer, not all of it,
// or an error.
func (e *entry) hasFailed() bool { return e.outcome != nil && !e.isUsable() }

// maxNotice is how long petstore may take to notice that a client has left.
const maxNotice = 100 * time.Millisecond

// duration returns the Seconds of an entry.
func (e *entry) duration() time.Duration { return time.Duration(e.Seconds * float64(time.Second)) }

// since returns the time from the arrival of an earlier request to that of e.
func (e *entry) since(earlier *entry) time.Duration { return e.Time.Sub(earlier.Time.Time) }

// wasOver reports whether e, which has ended, was over when a later request arrived. If the client
// of e has left, e also counts as over if petstore noticed that within maxNotice after the arrival.
// But if both arrived within maxNotice, they may have been sent together, and left together.
func (e *entry) wasOver(later *entry) bool {
	if e.Ended <= later.endingsBefore {
		return true
	}
	between := later.since(e)
	return e.hasLeft && between > maxNotice && e.duration() < between+maxNotice
}

// identity is what makes requests equal: those with the same one are.
type identity struct {
	period                                                 *period
	address, userAgent, origin, authorization, contentType string
	method, url, body                                      string
	rest                                                   uint32
}

func (e *entry) identity() identity {
	address, _, _ := net.SplitHostPort(e.Client)
	header := func(name string) string { return strings.Join(e.Headers[name], ", ") }
	return identity{
		period:        e.period,
		address:       address,
		userAgent:     header("User-Agent"),
		origin:        header("Origin"),
		authorization: header("Authorization"),
		contentType:   header("Content-Type"),
		method:        e.Method,
		url:           e.URL,
		body:          e.Body,
		rest:          e.rest,
	}
}

// noteRepetitions replaces each entry of a request that repeats another one by a copy that says
// so. A request repeats the last equal one that was over when it arrived, if that one had failed.
// The entries are in the order of arrival.
func noteRepetitions(entries []*entry) {
	if !slices.ContainsFunc(entries, (*entry).hasFailed) {
		return // as is usual, without the work below
	}
	ended := map[identity][]*entry{} // the earlier ones that have ended
	for i, e := range entries {
		if e.isPartial {
			continue // its body is not known, so it is equal to nothing
		}
		id := e.identity()
		if before := lastOver(ended[id], e); before != nil && before.hasFailed() {
			repetition := *e
			repetition.Repeats = before.Arrived
			entries[i] = &repetition
		}
		if e.outcome != nil {
			ended[id] = append(ended[id], e)
		}
	}
}

// lastOver returns the last of the earlier requests that was over when e arrived, or nil.
func lastOver(earlier []*entry, e *entry) *entry {
	for i := len(earlier) - 1; i >= 0; i-- {
		if earlier[i].wasOver(e) {
			return earlier[i]
		}
	}
	return nil
}

// period is a part of the journal, from a reset or a clear to the next one.
type period struct {
	Number int64  `json:"period"`         // 1, 2, 3, …
	Test   string `json:"test,omitempty"` // the name of the test, or empty; a clear keeps it

	since string // when it began, in UTC
	total int64  // how many of its requests have ended; guarded by the journal
}

// The bounds of the journal.
const (
	maxEnded = 1000 // requests that have ended; while a client is checked, more
	maxText  = 4000 // bytes of a body in an entry
)

// firstBytes returns what an entry has of a body.
func firstBytes(body []byte) string { return string(body[:min(len(body), maxText)]) }

// restSeed is the seed of entry.rest.
var restSeed = maphash.MakeSeed()

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

// journal holds the requests of clients, of all periods: those that wait, which have arrived and
// have not ended, and the last ones that have ended. It also has the current world, so that the
// arrival of a request, a reset and a clear are one step each. It is safe for concurrent use.
type journal struct {
	mu       sync.Mutex // guards the fields below, the periods, and the entries that wait
	world    *world     // the current one
	period   *period    // the current one
	waiting  []*entry   // in the order of arrival
	ended    []*entry   // in the order of ending; these entries change no more
	keeps    int        // how many requests that have ended are kept
	arrivals int64      // how many requests have arrived
	endings  int64      // how many requests have ended
	changed  *sync.Cond // broadcasts that a request has ended, or that a period has begun
}

func newJournal(w *world) *journal {
	j := &journal{keeps: maxEnded, period: &period{}}
	j.changed = sync.NewCond(&j.mu)
	j.reset(w, "")
	return j
}

// reset makes w the current world, begins a period of a test, and returns the world before. The
// test may have no name.
func (j *journal) reset(w *world, test string) (before *world) {
	j.mu.Lock()
	defer j.mu.Unlock()
	before, j.world = j.world, w
	j.beginPeriod(test)
	return before
}

// clear begins another period of the current test, in the current world.
func (j *journal) clear() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.beginPeriod(j.period.Test)
}

// beginPeriod begins a period. The caller holds mu.
func (j *journal) beginPeriod(test string) {
	j.period = &period{Number: j.period.Number + 1, Test: test, since: time.Now().UTC().Format(time.RFC3339Nano)}
	j.changed.Broadcast()
}

func (j *journal) currentWorld() *world {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.world
}

// add adds the entry of a request that arrives, and returns the world of the request.
func (j *journal) add(e *entry) *world {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.arrivals++
	e.Arrived, e.endingsBefore, e.period, e.Time = j.arrivals, j.endings, j.period, timestamp{time.Now()}
	j.waiting = append(j.waiting, e)
	return j.world
}

// update calls change under the lock. Only there, and in end, may an entry that waits be changed.
func (j *journal) update(change func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change()
}

// end moves an entry from those that wait to those that have ended, with its outcome.
func (j *journal) end(e *entry, o outcome) {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := slices.Index(j.waiting, e)
	j.waiting = slices.Delete(j.waiting, i, i+1)
	j.endings++
	o.Ended = j.endings
	e.outcome, e.Seconds = &o, secondsSince(e.Time.Time)
	e.period.total++
	j.ended = append(j.ended, e)
	dropped := j.ended[:max(0, len(j.ended)-j.keeps)]
	clear(dropped) // or the array would keep these entries in memory
	j.ended = j.ended[len(dropped):]
	j.changed.Broadcast()
}

// wait waits until total requests of the current period have ended, and at most maxWaiting of
// those that arrived before the call still wait, or until the period is over. It returns this
// period, and reports false if ctx is done first.
func (j *journal) wait(ctx context.Context, total, maxWaiting int64) (p *period, isDue bool) {
	stopWaking := context.AfterFunc(ctx, func() {
		j.mu.Lock() // or this could come after the check of ctx and before the Wait below
		defer j.mu.Unlock()
		j.changed.Broadcast()
	})
	defer stopWaking()
	j.mu.Lock()
	defer j.mu.Unlock()
	p = j.period
	arrivals := j.arrivals
	mustWait := func() bool {
		var waiting int64
		for _, e := range j.waiting {
			if e.period == p && e.Arrived <= arrivals {
				waiting++
			}
		}
		return j.period == p && (p.total < total || waiting > maxWaiting)
	}
	for mustWait() {
		if ctx.Err() != nil {
			return p, false
		}
		j.changed.Wait()
	}
	return p, true
}

// settle waits until no request of any period waits.
func (j *journal) settle() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.waiting) > 0 {
		j.changed.Wait()
	}
}

// journalPart is what a reader gets of the journal.
type journalPart struct {
	ended   []*entry // in the order of arrival
	waiting []*entry // copies, in the order of arrival
	meta    journalMeta
}

// journalMeta says what the journal counts, for one period.
type journalMeta struct {
	Total int64 `json:"total"` // how many requests of the period have ended
	Ended int64 `json:"ended"` // the largest Ended so far, of any period
	*period
	Since string `json:"since"` // when it began, in UTC, to the nanosecond
}

// read returns the requests of p or, if p is nil, of all periods: those that have ended and
// whose Ended is above after, and those that wait. The meta is that of p or, if p is nil, of
// the current period: the requests are of this one or of earlier ones.
func (j *journal) read(p *period, after int64) (part journalPart) {
	all, meta := j.snapshot(p)
	part.meta = meta
	slices.SortFunc(all, func(a, b *entry) int { return cmp.Compare(a.Arrived, b.Arrived) })
	noteRepetitions(all)
	for _, e := range all {
		switch {
		case p != nil && e.period != p:
			// it is not asked for
		case e.outcome == nil:
			part.waiting = append(part.waiting, e)
		case e.Ended > after:
			part.ended = append(part.ended, e)
		}
	}
	return part
}

// snapshot returns the entries of all requests, and the meta that read returns. Of the entries
// that wait, which may still change, it returns copies.
func (j *journal) snapshot(p *period) (all []*entry, meta journalMeta) {
	j.mu.Lock()
	defer j.mu.Unlock()
	all = slices.Clone(j.ended)
	for _, e := range j.waiting {
		now := *e
		now.Seconds = secondsSince(e.Time.Time)
		all = append(all, &now)
	}
	p = cmp.Or(p, j.period)
	return all, journalMeta{Total: p.total, Ended: j.endings, period: p, Since: p.since}
}

// encode returns the journal as JSON, with one request a line.
func (p journalPart) encode() []byte {
	var b bytes.Buffer
	b.WriteString(`{"requests":`)
	writeLines(&b, p.ended)
	b.WriteString(`,"waiting":`)
	writeLines(&b, p.waiting)
	b.WriteString(`,"meta":`)
	writeJSON(&b, p.meta)
	b.WriteString("}\n")
	return b.Bytes()
}

// writeLines writes a JSON array with one entry a line. An empty one is [].
func writeLines(b *bytes.Buffer, entries []*entry) {
	before, end := "[\n", "[]"
	for _, e := range entries {
		b.WriteString(before)
		writeJSON(b, e)
		before, end = ",\n", "\n]"
	}
	b.WriteString(end)
}
