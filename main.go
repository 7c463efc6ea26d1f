// Petstore is the animal store service as one process that keeps its pets in memory: a demo backend, and a test
// double for its clients. README.md tells how to use it. The contract, which comments cite by its sections, is
// api/contract.md.
package main

import (
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
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode"
)

// version is that of the contract's interface (section 9).
const version = "1.0.0"

func main() {
	signal.Ignore(syscall.SIGPIPE) // otherwise, a closed standard error would end the process
	// signal.NotifyContext would have to be stopped before a second signal could end the process. Then a SIGINT that
	// was ignored at the start, as in "petstore &" of a script, would be ignored again.
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

// run serves until ctx ends and returns the exit code of the process: 0 when it was stopped or only asked for help
// or version, 2 for wrong flags and arguments, and 1 for everything else that fails, such as a bad -addr or -seed.
func run(ctx context.Context, args []string, getenv func(string) string,
	stdin io.Reader, stdout, stderr io.Writer) int {
	fail := func(code int, err error) int {
		line := strings.Join(strings.FieldsFunc(err.Error(), unicode.IsControl), " ")
		withinASecond(func() { fmt.Fprintln(stderr, "petstore:", line) })
		return code
	}
	flags := flag.NewFlagSet("petstore", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	addr := flags.String("addr", "127.0.0.1:8080", "listen on `host:port`; port 0 takes a free one")
	seedFile := flags.String("seed", "", "start with the pets of `file`, a JSON array")
	quiet := flags.Bool("quiet", false, "log no requests, but warnings and errors")
	untilEOF := flags.Bool("stdin", false, "stop when standard input ends, as it does when the starter ends")
	showVersion := flags.Bool("version", false, "print the version of the interface, and exit")
	latency := durationFlag(flags, "latency", "delay requests under /v1 with the key by this `duration`, up to 30s")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(stderr)
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
		return 0
	case err != nil:
		return fail(2, fmt.Errorf("%w; -h lists the flags", err))
	case flags.NArg() > 0:
		return fail(2, fmt.Errorf("unexpected argument %s; -h lists the flags", flags.Arg(0)))
	case *showVersion:
		fmt.Fprintln(stdout, version)
		return 0
	}
	key := getenv("PETSTORE_API_KEY")
	if err := validateKey(key); err != nil {
		return fail(1, err)
	}
	lines := newLineBuffer(stderr)
	defer lines.close()
	level := slog.LevelInfo
	if *quiet {
		level = slog.LevelWarn
	}
	log := slog.New(slog.NewTextHandler(lines, &slog.HandlerOptions{Level: level}))
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
	seed, err := readSeedFile(*seedFile)
	if err != nil {
		return fail(1, err)
	}
	ln, err := listenAt(*addr)
	if err != nil {
		return fail(1, err)
	}
	root := rootURL(ln.Addr())
	notice := fmt.Sprintf("a page for browsers is at %s/\n", root)
	if key == "" {
		key = newKey()
		notice = fmt.Sprintf(banner, key, root, root, key)
	}
	withinASecond(func() { io.WriteString(stderr, notice) })
	if err := serve(ln, newAPI(key, seed, *latency, ctx, log), stdout); err != nil {
		return fail(1, err)
	}
	return 0
}

// serve serves a on ln and prints its base URL. It returns nil once a is stopping and has answered what was in
// flight.
func serve(ln net.Listener, a *api, stdout io.Writer) error {
	srv := newServer(a)
	defer srv.Close()
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	if _, err := fmt.Fprintln(stdout, rootURL(ln.Addr())+"/v1"); err != nil {
		return fmt.Errorf("cannot print the base URL: %w", err)
	}
	select {
	case err := <-served:
		return err
	case <-a.stopping.Done():
	}
	a.log.Info("stopping; a second signal ends the process at once", "limit", stopTimeout)
	grace, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	srv.Shutdown(grace)
	return nil
}

// durationFlag defines a flag for a duration up to maxWait.
func durationFlag(flags *flag.FlagSet, name, usage string) *time.Duration {
	d := new(time.Duration)
	flags.Func(name, usage, func(given string) (err error) {
		if *d, err = time.ParseDuration(given); err != nil || *d < 0 || *d > maxWait {
			return fmt.Errorf("it must be a duration from 0s to %v, such as 150ms or 2s", maxWait)
		}
		return nil
	})
	return d
}

const usage = `Petstore serves the animal store API until it gets SIGINT or SIGTERM. Once it
accepts connections, it prints its base URL on standard output. A page for
browsers is at /, and a description for tools at /openapi.json.

Usage: petstore [flags]

Environment:
  PETSTORE_API_KEY
    	the API key that clients must send, 1 to 4096 visible ASCII characters;
    	without it a random one is made and shown on standard error

Flags:
`

// memoryLimit, in bytes, is where the garbage collector begins to run more often than GOGC says. A full store stays
// below it.
const memoryLimit = 456 << 20

// banner is for a run with a random key: a curl line and a link to paste. A browser does not send what follows the
// #.
const banner = `PETSTORE_API_KEY is not set, so this run has a key of its own:

    curl -H 'Authorization: Bearer %s' %s/v1/pets
    %s/#key=%s

`

// readSeedFile returns the pets of a file, or none if name is empty.
func readSeedFile(name string) (*store, error) {
	if name == "" {
		return newStore(), nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	seed, err := readSeed(text)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return seed, err
}

// listenAt listens on addr. Its errors say how to write addr instead.
func listenAt(addr string) (net.Listener, error) {
	if addr == "" || addr == ":" {
		return nil, errors.New("-addr names neither host nor port; " +
			"write -addr 127.0.0.1:8080, or -addr :8080 for every interface")
	}
	ln, err := net.Listen("tcp", addr)
	if errors.As(err, new(*net.AddrError)) || errors.As(err, new(*net.DNSError)) {
		err = fmt.Errorf("%w; write -addr host:port, with a port from 0 to 65535", err)
	} else if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w; -addr 127.0.0.1:0 takes a free port", err)
	}
	return ln, err
}

// rootURL is where a client on this machine reaches addr: http://127.0.0.1:8080.
func rootURL(addr net.Addr) string {
	tcp := *addr.(*net.TCPAddr)
	if tcp.IP.IsUnspecified() {
		tcp.IP = net.IPv4(127, 0, 0, 1)
	}
	return (&url.URL{Scheme: "http", Host: tcp.String()}).String() // escapes the zone of an IPv6 address
}

// stopTimeout is how long a stopping service waits for requests in flight.
const stopTimeout = 10 * time.Second

// newServer returns the HTTP server of a, with time limits for slow clients.
func newServer(a *api) *http.Server {
	srv := &http.Server{
		Handler:           a.handler(),
		ErrorLog:          slog.NewLogLogger(a.log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second, // of the headers and the body
		WriteTimeout:      2 * time.Minute,  // from the headers on; the latency and both delays are within it
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    60 << 10, // 64 KiB with the 4 that net/http adds
		// net/http would answer OPTIONS * without asking the handler.
		DisableGeneralOptionsHandler: true,
	}
	closeUnused(srv, a.stopping)
	return srv
}

// closeUnused closes the connections that have sent nothing yet when stopping is done. Browsers open such
// connections ahead, and Shutdown would wait 5 seconds for them.
func closeUnused(srv *http.Server, stopping context.Context) {
	var unused sync.Map // from such a connection to the func that keeps it open
	srv.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateNew {
			unused.Store(c, context.AfterFunc(stopping, func() { c.Close() }))
		} else if keep, found := unused.LoadAndDelete(c); found {
			keep.(func() bool)()
		}
	}
}

// lineBuffer keeps the log from holding up requests: a goroutine of its own writes the lines. While nobody reads
// them, 1,000 lines wait and more are lost.
type lineBuffer struct {
	queue chan []byte   // nil ends the writer; closing it would break a request that still logs
	lost  atomic.Int64  // how many lines were lost since the last warning
	done  chan struct{} // closed when the writer has ended
}

func newLineBuffer(w io.Writer) *lineBuffer {
	b := &lineBuffer{queue: make(chan []byte, 1000), done: make(chan struct{})}
	go func() {
		defer close(b.done)
		log := slog.New(slog.NewTextHandler(w, nil))
		for line := range b.queue {
			w.Write(line)
			// The lines that wait are written first: most of them came before those that were lost.
			if lost := b.lost.Load(); lost > 0 && len(b.queue) == 0 {
				b.lost.Add(-lost)
				log.Warn("log lines are lost, as nobody read them", "lines", lost)
			}
			if line == nil {
				return
			}
		}
	}()
	return b
}

// Write takes one line. It never waits.
func (b *lineBuffer) Write(line []byte) (int, error) {
	select {
	case b.queue <- bytes.Clone(line):
	default:
		b.lost.Add(1)
	}
	return len(line), nil
}

// close writes the lines that wait.
func (b *lineBuffer) close() {
	withinASecond(func() { b.queue <- nil; <-b.done })
}

// withinASecond calls write, and waits for its end for a second at most: standard error may be a pipe that nobody
// reads.
func withinASecond(write func()) {
	done := make(chan struct{})
	go func() { write(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Second):
	}
}
