// Petstore is the animal store service as one process that keeps its pets in
// memory: a demo backend, and a test double for its clients. README.md tells
// how to use it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
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
	ctx, cancel := context.WithCancel(context.Background())
	signals, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(signals, func() {
		stop() // so that a second signal ends the process at once
		cancel()
	})
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}

// run serves until ctx ends and returns the exit code of the process: 0 when
// it was stopped or only asked for help or version, 1 when it cannot serve, 2
// when args are wrong. stdout gets the base URL and nothing else.
func run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	lines := newLineBuffer(stderr)
	defer lines.close()
	log := slog.New(slog.NewTextHandler(lines, nil))
	flags := flag.NewFlagSet("petstore", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	addr := flags.String("addr", "127.0.0.1:8080", "listen on `host:port`; port 0 takes a free one")
	seed := flags.String("seed", "", "start with the pets of `file`, a JSON array")
	latency := flags.Duration("latency", 0, "delay every request under /v1 that has the key by this `duration`, up to 30s")
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
		log.Error(err.Error() + "; a duration has a unit, as 150ms or 2s; -h lists the flags")
		return 2
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
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if *untilEOF {
		go func() {
			io.Copy(io.Discard, stdin)
			log.Info("standard input has ended, so the service stops")
			stop()
		}()
	}
	// Collect garbage once there is four times as much of it as of what is in
	// use: a twentieth less time a request, for some 16 MiB.
	collect := func(percent int64) {
		if getenv("GOGC") == "" {
			debug.SetGCPercent(int(percent))
		}
	}
	collect(400)
	if getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	var pets state
	if *seed != "" {
		loaded := make(chan error, 1)
		go func() {
			var err error
			pets, err = readSeedFile(*seed)
			loaded <- err
		}()
		select {
		case err := <-loaded:
			if err != nil {
				log.Error(err.Error())
				return 1
			}
		case <-ctx.Done():
			return 0
		}
		// Of many pets that would be so much that the processor's caches miss.
		collect(min(400, max(20, 100*(32<<20)/(pets.size+1))))
		debug.FreeOSMemory() // reading takes about as much again as the pets
	}
	ln, err := listenAt(*addr)
	if err != nil {
		log.Error(err.Error())
		return 1
	}
	url := baseURL(ln.Addr())
	if key == "" {
		key = newKey()
		fmt.Fprintf(stderr, "PETSTORE_API_KEY is not set, so this run has a key of its own:\n\n    curl -H 'Authorization: Bearer %s' %s/pets\n    %s#key=%s\n\n",
			key, url, strings.TrimSuffix(url, "v1"), key)
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
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if srv.Shutdown(drain) != nil {
		srv.Close() // a peer has not finished in time
	}
	return 0
}

const usage = `Petstore serves the animal store API until it gets SIGINT or SIGTERM, or its
standard input ends if -stdin is given. Once it accepts connections, it prints
its base URL on standard output.

Usage: petstore [flags]

Environment:
  PETSTORE_API_KEY
    	the API key that clients must send, 1 to 4096 visible ASCII characters;
    	without it a random one is made and shown on standard error

Flags:
`

// memoryLimit is what the collector keeps the process under if it can, in
// bytes. A full store takes 300 MiB of it.
const memoryLimit = 352 << 20

// readSeedFile reads a seed. The error names the file.
func readSeedFile(file string) (state, error) {
	f, err := os.Open(file)
	if err != nil {
		return state{}, err
	}
	defer f.Close()
	s, err := readSeed(f)
	if err != nil && !errors.As(err, new(*os.PathError)) {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return s, err
}

// listenAt listens on addr. The error tells a way out.
func listenAt(addr string) (net.Listener, error) {
	if addr == "" || addr == ":" {
		return nil, errors.New("-addr names neither host nor port; it must be host:port, as 127.0.0.1:8080, or :8080 for every interface")
	}
	ln, err := net.Listen("tcp", addr)
	var bad *net.AddrError
	if _, notPort := strconv.ParseUint(addr, 10, 16); notPort == nil {
		err = fmt.Errorf("%w; write -addr 127.0.0.1:%s, or -addr :%s for every interface", err, addr, addr)
	} else if errors.As(err, &bad) {
		err = fmt.Errorf("%w; write -addr host:port, with a port from 0 to 65535", err)
	} else if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w; -addr 127.0.0.1:0 takes a free port", err)
	}
	return ln, err
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

// drainTimeout is how long a stopping service waits for requests in flight.
const drainTimeout = 10 * time.Second

// newServer returns the HTTP server of a, with time limits for slow peers.
func newServer(a *api) *http.Server {
	return &http.Server{
		Handler:           a.routes(),
		ErrorLog:          slog.NewLogLogger(a.log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    60 << 10, // net/http takes 4 KiB more
		// net/http answers OPTIONS * without asking the handler.
		DisableGeneralOptionsHandler: true,
	}
}

// lineBuffer keeps the log from holding up requests: a goroutine of its own
// writes the lines. When nobody reads them, it keeps maxPending bytes of them
// and loses the next ones; one line tells how many were lost.
type lineBuffer struct {
	mu      sync.Mutex // guards all below
	changed *sync.Cond
	pending []byte // lines to be written
	lost    int    // lines
	closed  bool
	done    chan struct{} // closed when all is written
}

// maxPending is how much of the log is kept, in bytes.
const maxPending = 1 << 20

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
	if len(b.pending)+len(line) > maxPending {
		b.lost++
	} else {
		b.pending = append(b.pending, line...)
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
		for len(b.pending) == 0 && !b.closed {
			b.changed.Wait()
		}
		if len(b.pending) == 0 {
			close(b.done)
			return
		}
		lines, b.pending = b.pending, lines[:0]
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
