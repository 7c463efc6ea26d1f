// Petstore is the animal store service as one process that keeps its pets in
// memory: a demo backend, and a test double for its clients. README.md tells
// how to use it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// version is that of the contract's interface (section 9).
const version = "1.0.0"

func main() {
	signal.Ignore(syscall.SIGPIPE) // who reads the log may leave
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// run serves until ctx ends and returns the exit code of the process: 0 when
// it was stopped or only asked for help or version, 1 when it cannot serve, 2
// when args are wrong. stdout gets the base URL and nothing else.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	lines := newLineBuffer(stderr)
	defer lines.close()
	log := slog.New(slog.NewTextHandler(lines, nil))
	flags := flag.NewFlagSet("petstore", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	addr := flags.String("addr", "127.0.0.1:8080", "listen on `host:port`; port 0 takes a free one")
	seed := flags.String("seed", "", "start with the pets of `file`, a JSON array")
	latency := flags.Duration("latency", 0, "wait this `duration`, up to 30s, before every answer under /v1")
	quiet := flags.Bool("quiet", false, "log no requests")
	showVersion := flags.Bool("version", false, "print the version of the interface, and exit")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(stderr)
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
		return 0
	case err != nil:
		log.Error(err.Error() + "; -h lists the flags")
		return 2
	case flags.NArg() > 0:
		log.Error("unexpected argument " + flags.Arg(0) + "; -h lists the flags")
		return 2
	case *latency < 0 || *latency > 30*time.Second:
		log.Error("invalid value for -latency: it must be from 0 to 30s; -h lists the flags")
		return 2
	case *showVersion:
		fmt.Fprintln(stdout, version)
		return 0
	}

	key := getenv("PETSTORE_API_KEY")
	if err := checkKey(key); err != nil {
		log.Error(err.Error())
		return 1
	}
	// Collect garbage once there is four times as much of it as of what is in
	// use: a twentieth less time a request, for some 16 MiB. With many pets the
	// limit takes over; a full store takes 300 MiB of it.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(512 << 20)
	var pets state
	if *seed != "" {
		if err := pets.readSeed(*seed); err != nil {
			log.Error(err.Error())
			return 1
		}
		debug.FreeOSMemory() // reading takes about as much again as the pets
	}
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Error(err.Error())
		return 1
	}
	url := baseURL(ln.Addr())
	if key == "" {
		key = newKey()
		fmt.Fprintf(stderr, "PETSTORE_API_KEY is not set, so this run has a key of its own:\n\n    curl -H 'Authorization: Bearer %s' %s/pets\n\n", key, url)
	}
	srv := newServer(&api{key: key, pets: newStore(pets), latency: *latency, stopping: ctx.Done(), log: log, quiet: *quiet})
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener{ln.(*net.TCPListener)}) }()
	fmt.Fprintln(stdout, url)

	select {
	case err := <-served:
		log.Error(err.Error())
		return 1
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if srv.Shutdown(drain) != nil {
		srv.Close() // a peer has not finished in time
	}
	return 0
}

const usage = `Petstore serves the animal store API until it gets SIGINT or SIGTERM. Once it
accepts connections, it prints its base URL on standard output.

Usage: petstore [flags]

Environment:
  PETSTORE_API_KEY
    	the API key that clients must send; without it a random one is made
    	and shown on standard error

Flags:
`

// readSeed adds the pets of a file, a JSON array. Those without an id are
// numbered above the largest one in the file, in its order. The error names
// the file and the place in it.
func (s *state) readSeed(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	dec := json.NewDecoder(f)
	if token, err := dec.Token(); err != nil || token != json.Delim('[') {
		return fmt.Errorf("%s: not a JSON array", file)
	}
	n := 0 // the pet at hand, counted from 1
	fail := func(reason any) error { return fmt.Errorf("%s: pet %d: %v", file, n, reason) }
	const full = "too large for the store"
	type unnumbered struct {
		n int
		NewPet
	}
	var later []unnumbered
	var taken map[int64]bool // nil while the ids ascend
	var raw json.RawMessage
	for dec.More() {
		n++
		if err := dec.Decode(&raw); err != nil {
			return fail(err)
		}
		id, p, err := parseSeedPet(string(raw))
		if err != nil {
			return fail(err)
		}
		if id == 0 {
			later = append(later, unnumbered{n, p})
			continue
		}
		if id <= s.lastID && taken == nil {
			taken = map[int64]bool{}
			for _, rec := range s.pets[""] {
				taken[rec.id] = true
			}
		}
		if taken[id] {
			return fail(fmt.Sprintf("id %d is given twice", id))
		}
		if taken != nil {
			taken[id] = true
		}
		if _, ok := s.put(id, p); !ok {
			return fail(full)
		}
	}
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("%s: behind pet %d: the array does not end", file, n)
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("%s: behind pet %d: something follows the array", file, n)
	}
	for _, p := range later {
		n = p.n
		if s.lastID == math.MaxInt64-1 {
			return fail("there is no id left for it")
		}
		if _, ok := s.put(s.lastID+1, p.NewPet); !ok {
			return fail(full)
		}
	}
	return nil
}

// parseSeedPet parses a pet of a seed file; its id is 0 if it has none.
func parseSeedPet(object string) (id int64, p NewPet, err error) {
	m, err := members(object, "name", "categoryId", "status", "id")
	if err != nil {
		return 0, p, err
	}
	if m[3] != missing {
		// The largest int64 would leave no next id.
		if id, err = integer(codeInvalidBody, "id", m[3], 1, math.MaxInt64-1); err != nil {
			return 0, p, err
		}
	}
	p, err = newPet(m)
	return id, p, err
}

// baseURL is where clients of this machine reach a service that listens on addr.
func baseURL(addr net.Addr) string {
	tcp := addr.(*net.TCPAddr)
	host := tcp.IP.String()
	if tcp.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(tcp.Port)) + "/v1"
}

// The time limits for a whole request, from its first byte, and for the answer.
const (
	readTimeout  = 15 * time.Second
	writeTimeout = 60 * time.Second
)

// newServer returns the HTTP server of a, with time limits for slow peers.
func newServer(a *api) *http.Server {
	return &http.Server{
		Handler:           a.routes(),
		ErrorLog:          slog.NewLogLogger(a.log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		// net/http answers OPTIONS * without asking the handler.
		DisableGeneralOptionsHandler: true,
	}
}

// logRequests logs each request on one line: method, path with query, status.
// It never logs the key.
func logRequests(log *slog.Logger, key string, next http.Handler) http.Handler {
	hide := strings.NewReplacer(key, "<API_KEY>")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sw := &statusWriter{ResponseWriter: w}
		defer func() {
			target := r.RequestURI
			if plain, err := url.PathUnescape(target); err == nil && strings.Contains(plain, key) {
				target = plain
			}
			log.LogAttrs(r.Context(), slog.LevelInfo, "request", slog.String("method", hide.Replace(r.Method)),
				slog.String("path", hide.Replace(target)), slog.Int("status", sw.status))
		}()
		next.ServeHTTP(sw, r)
	})
}

// lineBuffer keeps the log from holding up requests: a goroutine of its own
// writes the lines. When nobody reads them, it keeps maxLines of them and loses
// the next ones; how many, it tells when it can.
type lineBuffer struct {
	mu      sync.Mutex // guards all below
	changed *sync.Cond
	lines   []byte
	lost    int
	closed  bool
	done    chan struct{} // closed when all is written
}

// maxLines is how much of the log is kept, in bytes.
const maxLines = 1 << 20

func newLineBuffer(w io.Writer) *lineBuffer {
	b := &lineBuffer{done: make(chan struct{})}
	b.changed = sync.NewCond(&b.mu)
	go b.drain(w)
	return b
}

// Write takes one line. It never waits for the writer of the lines.
func (b *lineBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.lines)+len(line) > maxLines {
		b.lost++
	} else {
		b.lines = append(b.lines, line...)
		b.changed.Signal()
	}
	return len(line), nil
}

func (b *lineBuffer) drain(w io.Writer) {
	log := slog.New(slog.NewTextHandler(w, nil))
	var lines []byte
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		for len(b.lines) == 0 && !b.closed {
			b.changed.Wait()
		}
		if len(b.lines) == 0 {
			close(b.done)
			return
		}
		lines, b.lines = b.lines, lines[:0]
		lost := b.lost
		b.lost = 0
		b.mu.Unlock()
		w.Write(lines)
		if lost > 0 {
			log.Warn("log lines are lost, as nobody read them", "lines", lost)
		}
		b.mu.Lock()
	}
}

// close waits until all lines are written, for a second at most.
func (b *lineBuffer) close() {
	b.mu.Lock()
	b.closed = true
	b.changed.Signal()
	b.mu.Unlock()
	select {
	case <-b.done:
	case <-time.After(time.Second):
	}
}

// statusWriter remembers the status of the answer, 0 while there is none.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
