// Petstore is the animal store service as one process that keeps its pets in
// memory: a demo backend, and a test double for its clients. README.md tells
// how to use it. The contract that comments cite by its sections is the store's
// interface document, version 1.0.0.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// version is that of the contract's interface (section 9).
const version = "1.0.0"

func main() {
	signal.Ignore(syscall.SIGPIPE) // otherwise, a closed standard error would end the process
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		stop()
		<-signals
		os.Exit(1) // answers in flight are cut
	}()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}

// run serves until ctx ends and returns the exit code of the process: 0 when
// it was stopped or only asked for help or version, 1 when it cannot serve, for
// a bad -addr or -seed too, and 2 for other wrong args. stdout gets the base URL,
// or the version, and nothing else.
func run(ctx context.Context, args []string, getenv func(string) string,
	stdin io.Reader, stdout, stderr io.Writer) int {
	fail := func(code int, err error) int {
		fmt.Fprintln(stderr, "petstore:", err)
		return code
	}
	flags := flag.NewFlagSet("petstore", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	addr := flags.String("addr", "127.0.0.1:8080", "listen on `host:port`; port 0 takes a free one")
	seedFile := flags.String("seed", "", "start with the pets of `file`, a JSON array")
	latency := flags.Duration("latency", 0, "by what `duration` to delay requests under /v1 with the key, up to 30s")
	quiet := flags.Bool("quiet", false, "log no requests")
	untilEOF := flags.Bool("stdin", false, "stop when standard input ends, as it does when the starter ends")
	showVersion := flags.Bool("version", false, "print the version of the interface, and exit")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(stderr)
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
		return 0
	case err != nil && strings.Contains(err.Error(), "flag -latency"):
		return fail(2, fmt.Errorf("%w; a duration has a unit, as 150ms or 2s", err))
	case err != nil:
		return fail(2, fmt.Errorf("%w; -h lists the flags", err))
	case flags.NArg() > 0:
		return fail(2, fmt.Errorf("unexpected argument %s; -h lists the flags", flags.Arg(0)))
	case *latency < 0 || *latency > 30*time.Second:
		return fail(2, fmt.Errorf("invalid value %v for flag -latency: it must be from 0 to 30s", *latency))
	case *showVersion:
		fmt.Fprintln(stdout, version)
		return 0
	}

	key := getenv("PETSTORE_API_KEY")
	if err := checkKey(key); err != nil {
		return fail(1, err)
	}
	lines := newLineBuffer(stderr)
	defer lines.close()
	log := slog.New(slog.NewTextHandler(lines, nil))
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if *untilEOF {
		go func() {
			io.Copy(io.Discard, stdin)
			log.Info("standard input has ended, so the service stops")
			stop()
		}()
	}
	if getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	seed, err := loadSeed(ctx, *seedFile)
	if ctx.Err() != nil {
		return 0
	}
	if err != nil {
		return fail(1, err)
	}
	ln, err := listenAt(*addr)
	if err != nil {
		return fail(1, err)
	}
	base := baseURL(ln.Addr())
	pageURL := strings.TrimSuffix(base, "v1")
	if key == "" {
		key = newKey()
		fmt.Fprintf(stderr, banner, key, base, pageURL, key)
	} else {
		fmt.Fprintf(stderr, "a page for browsers is at %s\n", pageURL)
	}
	srv := newServer(&api{key: key, seed: seed, latency: *latency, stopping: ctx.Done(), log: log, quiet: *quiet})
	served := make(chan error, 1)
	go func() { served <- srv.Serve(errorListener{ln.(*net.TCPListener)}) }()
	if _, err := fmt.Fprintln(stdout, base); err != nil {
		return fail(1, fmt.Errorf("cannot print the base URL: %w", err))
	}

	select {
	case err := <-served:
		return fail(1, err)
	case <-ctx.Done():
	}
	log.Info("stopping; a second signal ends the process at once", "limit", stopTimeout)
	limit, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if srv.Shutdown(limit) != nil {
		srv.Close() // a client has not taken its answer in time
	}
	return 0
}

const usage = `Petstore serves the animal store API until it gets SIGINT or SIGTERM, or its
standard input ends if -stdin is given. Once it accepts connections, it prints
its base URL on standard output. Beside the API, it serves a page for browsers
at / and a description for tools at /openapi.json.

Usage: petstore [flags]

Environment:
  PETSTORE_API_KEY
    	the API key that clients must send, 1 to 4096 visible ASCII characters;
    	without it a random one is made and shown on standard error

Flags:
`

// memoryLimit is where, in bytes, the collector starts to work more than GOGC
// says. It is above what a full store uses, or the collector would never rest.
const memoryLimit = 456 << 20

// banner is for a run with a random key: a curl line and a link to paste. A
// browser does not send what follows the #.
const banner = `PETSTORE_API_KEY is not set, so this run has a key of its own:

    curl -H 'Authorization: Bearer %s' %s/pets
    %s#key=%s

`

// loadSeed reads a seed file; without one, the seed is empty. It returns early
// when ctx ends, for the file may be a pipe without an end.
func loadSeed(ctx context.Context, file string) (*store, error) {
	if file == "" {
		return newStore(0), nil
	}
	var seed *store
	var err error
	loaded := make(chan struct{})
	go func() {
		seed, err = readSeedFile(file)
		close(loaded)
	}()
	select {
	case <-loaded:
		return seed, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func readSeedFile(file string) (*store, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	seed, err := readSeed(f, 0)
	if err != nil && !errors.As(err, new(*os.PathError)) { // a PathError has the name of the file
		err = fmt.Errorf("%s: %w", file, err)
	}
	return seed, err
}

// listenAt listens on addr. The error tells a way out.
func listenAt(addr string) (net.Listener, error) {
	if addr == "" || addr == ":" {
		return nil, errors.New("-addr names neither host nor port; " +
			"write -addr 127.0.0.1:8080, or -addr :8080 for every interface")
	}
	ln, err := net.Listen("tcp", addr)
	if _, parseErr := strconv.ParseUint(addr, 10, 16); parseErr == nil { // a port alone
		err = fmt.Errorf("%w; write -addr 127.0.0.1:%s, or -addr :%s for every interface", err, addr, addr)
	} else if errors.As(err, new(*net.AddrError)) || errors.As(err, new(*net.DNSError)) {
		err = fmt.Errorf("%w; write -addr host:port, with a port from 0 to 65535", err)
	} else if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w; -addr 127.0.0.1:0 takes a free port", err)
	}
	return ln, err
}

// baseURL is where clients on this machine reach a service that listens on addr.
func baseURL(addr net.Addr) string {
	tcp := *addr.(*net.TCPAddr)
	if tcp.IP.IsUnspecified() {
		tcp.IP = net.IPv4(127, 0, 0, 1)
	}
	base := url.URL{Scheme: "http", Host: tcp.String(), Path: "/v1"} // escapes the zone of an IPv6 address
	return base.String()
}

// stopTimeout is how long a stopping service waits for requests in flight.
const stopTimeout = 10 * time.Second

// newServer returns the HTTP server of a, in its first world, with time limits
// for slow clients.
func newServer(a *api) *http.Server {
	a.current.Store(newWorld(a.seed.clone()))
	return &http.Server{
		Handler:           a.handler(),
		ErrorLog:          slog.NewLogLogger(a.log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second, // of the headers and the body
		WriteTimeout:      writeTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    60 << 10, // net/http takes 4 KiB more
		// net/http would answer OPTIONS * without asking the handler.
		DisableGeneralOptionsHandler: true,
	}
}

// lineBuffer keeps the log from holding up requests: a goroutine of its own
// writes the lines. While nobody reads them, 1,000 lines wait and more are lost.
type lineBuffer struct {
	lines chan []byte   // nil is the last one
	lost  atomic.Int64  // how many lines are lost since that was last told
	done  chan struct{} // closed when the last line is written
}

func newLineBuffer(w io.Writer) *lineBuffer {
	b := &lineBuffer{lines: make(chan []byte, 1000), done: make(chan struct{})}
	go b.writeLines(w)
	return b
}

// Write takes one line. It never waits.
func (b *lineBuffer) Write(line []byte) (int, error) {
	select {
	case b.lines <- bytes.Clone(line):
	default:
		b.lost.Add(1)
	}
	return len(line), nil
}

func (b *lineBuffer) writeLines(w io.Writer) {
	defer close(b.done)
	buffer := bufio.NewWriter(w)
	log := slog.New(slog.NewTextHandler(buffer, nil))
	for line := range b.lines {
		buffer.Write(line)
		if line != nil && len(b.lines) > 0 {
			continue // write more lines at once
		}
		if lost := b.lost.Swap(0); lost > 0 {
			log.Warn("log lines are lost, as nobody read them", "lines", lost)
		}
		if buffer.Flush() != nil {
			buffer.Reset(w) // or it would refuse all later lines
		}
		if line == nil {
			return
		}
	}
}

// close waits until all lines are written, for a second at most.
func (b *lineBuffer) close() {
	timeout := time.After(time.Second)
	select {
	case b.lines <- nil:
	case <-timeout:
		return
	}
	select {
	case <-b.done:
	case <-timeout:
	}
}
