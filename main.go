// Petstore serves the animal store API from memory. It is a backend for demos,
// and a test double for clients of the API. README.md shows how to use it.
// Comments cite its contract, api/contract.md, by section.
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
	"net/url"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"
)

// version is the version of the API (contract, section 9).
const version = "1.0.0"

func main() {
	// Without this, a write to standard output or standard error would end the
	// process after the reader of that pipe has gone.
	signal.Ignore(syscall.SIGPIPE)
	// The first signal stops the service, and the second ends the process.
	// signal.NotifyContext cannot do that: its stop function would restore how the
	// process treated SIGINT at its start, and a shell starts a background job,
	// such as "petstore &", with SIGINT ignored.
	ctx, stop := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		sig := <-signals
		stop(errors.New(sig.String()))
		<-signals
		os.Exit(1) // requests in flight get no answer
	}()
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	os.Exit(report(err, os.Stderr))
}

// report prints an error of run on one line. It returns the exit code of the
// process: 0 for nil, 2 for a usageError, which parseFlags returns, and 1 for any
// other error.
func report(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	line := strings.Join(strings.FieldsFunc(err.Error(), unicode.IsControl), " ")
	fmt.Fprintln(stderr, "petstore:", line)
	var usage usageError
	if errors.As(err, &usage) {
		return 2
	}
	return 1
}

// run serves until ctx is done, and then returns nil. It also returns nil after
// it has printed the help or the version.
func run(ctx context.Context, args []string, getenv func(string) string,
	stdin io.Reader, stdout, stderr io.Writer) error {
	opts, err := parseFlags(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if opts.version {
		_, err := fmt.Fprintf(stdout, "%s (build %s, %s)\n", version, build(), runtime.Version())
		return err
	}
	key := getenv("PETSTORE_API_KEY")
	if err := validateKey(key); err != nil {
		return err
	}
	limitMemory(getenv)

	level := slog.LevelWarn
	if opts.log {
		level = slog.LevelInfo
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if opts.stdin {
		go func() {
			io.Copy(io.Discard, stdin)
			stop(errors.New("standard input has ended"))
		}()
	}

	seed, err := readSeedFile(opts.seed)
	if err != nil {
		return err
	}
	ln, err := listen(opts.addr)
	if err != nil {
		return err
	}
	root := rootURL(ln.Addr())
	if key == "" {
		key = newKey()
		fmt.Fprintf(stderr, randomKeyNotice, key, root)
	} else if opts.log {
		fmt.Fprintf(stderr, "a page for browsers is at %s/\n", root)
	}
	return serveUntil(ctx, ln, newService(key, seed, opts.latency, ctx.Done(), log), stdout)
}

// randomKeyNotice has a curl line and a link to paste. A browser does not send
// the part of a link after the #.
const randomKeyNotice = `PETSTORE_API_KEY is empty or not set, so this run has a key of its own:

    curl -H 'Authorization: Bearer %[1]s' '%[2]s/v1/pets'
    %[2]s/#key=%[1]s

`

// options are the values of the flags.
type options struct {
	addr    string
	seed    string
	latency time.Duration
	stdin   bool
	log     bool
	version bool
}

// usageError is an error that parseFlags finds.
type usageError struct{ error }

// parseFlags parses the arguments. Its errors are usageErrors, or flag.ErrHelp
// after it has printed the help.
func parseFlags(args []string, stderr io.Writer) (options, error) {
	opts := options{log: isTerminal(stderr)}
	flags := flag.NewFlagSet("petstore", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&opts.addr, "addr", "127.0.0.1:8080", "listen on `host:port`; port 0 takes a free port")
	flags.Func("seed", "start with the pets in `file`, a JSON array", func(name string) error {
		if name == "" { // as from an unset variable
			return errors.New("it must be the path of a file")
		}
		opts.seed = name
		return nil
	})
	flags.Func("latency", fmt.Sprintf("delay each request under /v1 that has the key by this `duration`, up to %v;\n"+
		"a Petstore-Observer header exempts a request", maxWait),
		func(text string) (err error) {
			opts.latency, err = parseLatency(text)
			return err
		})
	flags.BoolVar(&opts.stdin, "stdin", false, "stop when standard input ends,\n"+
		"for example because the test that started it has ended")
	// The help of a BoolVar would show a default that depends on the terminal.
	flags.BoolFunc("log", "log every recorded request, and every change through /__admin;\n"+
		"the default is to do so only on a terminal",
		func(text string) (err error) {
			if opts.log, err = strconv.ParseBool(text); err != nil {
				return errors.New("it must be true or false")
			}
			return nil
		})
	flags.BoolVar(&opts.version, "version", false, "print the versions of the interface and of this build, and exit")

	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stderr, helpText)
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		return opts, err
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %s", flags.Arg(0))
	}
	if err != nil {
		return opts, usageError{fmt.Errorf("%w; -h lists the flags", err)}
	}
	return opts, nil
}

const helpText = `Petstore is a test double of the animal store API. It fails when it is asked to
(PUT /__admin/fault) and shows what clients have sent (GET /__admin/requests).
It prints its base URL on standard output once it accepts connections, and
serves until it is interrupted (Ctrl-C) or terminated. There is a page for
browsers at /, and an OpenAPI description at /openapi.json.

Usage: petstore [flags]

Environment:
  PETSTORE_API_KEY
    	the API key that clients must send, 1 to 4096 visible ASCII characters;
    	if it is empty or not set, a random key is used and shown on standard error

Flags:
`

// build returns the version of the module or, if it has none, the revision that
// the version control system gave to the build.
func build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return "unknown" // as with "go run"
}

// parseLatency parses a duration from 0 to maxWait.
func parseLatency(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxWait {
		return 0, fmt.Errorf("it must be a duration from 0s to %v, such as 150ms or 2s", maxWait)
	}
	return d, nil
}

// isTerminal reports whether w is a terminal. It treats every character device
// except the null device as a terminal.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// memoryLimit is the soft memory limit: near it, the garbage collector runs more
// often than GOGC says. A full store and a full journal stay below it.
const memoryLimit = maxStoreSize + 200<<20 // bytes

// gcPercent is the GOGC of the service. Compared with the default of 100, it
// saves 10 to 30 % of the CPU time of a request. The memory limit bounds the
// memory that this costs.
const gcPercent = 400

// limitMemory tunes the garbage collector, unless the environment does.
func limitMemory(getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}

const maxSeed = 128 << 20 // bytes of JSON

// readSeedFile returns a store with the pets in a file, or an empty one if name is
// empty. It does not read the rest of a file that is too large.
func readSeedFile(name string) (*store, error) {
	if name == "" {
		return newStore(), nil
	}
	const hint = "-seed takes the path of a JSON file with an array of pets"
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, hint)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxSeed+1))
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, hint)
	}
	if len(text) > maxSeed {
		return nil, fmt.Errorf("%s: the seed is over %d bytes", name, maxSeed)
	}
	seed, err := readSeed(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return seed, nil
}

// listen listens on addr. Its errors explain what addr must be.
func listen(addr string) (net.Listener, error) {
	if addr == "" || addr == ":" {
		return nil, errors.New("-addr has neither a host nor a port; " +
			"write -addr 127.0.0.1:8080, or -addr :8080 for all interfaces")
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		// Error numbers differ between systems, so one hint covers all errors.
		return nil, fmt.Errorf("%w; -addr must be host:port, with an address of this machine and "+
			"a port that is free and that you may use; -addr 127.0.0.1:0 takes any free port", err)
	}
	return ln, nil
}

// rootURL returns the URL under which a client on this machine reaches addr,
// such as http://127.0.0.1:8080.
func rootURL(addr net.Addr) string {
	tcp := *addr.(*net.TCPAddr)
	if tcp.IP.IsUnspecified() {
		tcp.IP = net.IPv4(127, 0, 0, 1)
	}
	root := url.URL{Scheme: "http", Host: tcp.String()}
	return root.String() // escapes the zone of an IPv6 address
}

const (
	stopTimeout = 10 * time.Second // how long a stopping service waits for requests in flight
	logTimeout  = time.Second      // how long it then waits for its log to be written
)

// serveUntil serves s on ln, and prints its base URL. It returns nil once ctx is
// done and the requests in flight have been answered, or their time is up.
func serveUntil(ctx context.Context, ln net.Listener, s *service, stdout io.Writer) error {
	srv := newServer(s)
	defer srv.Close()
	closeSpareConnections(srv)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	if _, err := fmt.Fprintln(stdout, rootURL(ln.Addr())+"/v1"); err != nil {
		return fmt.Errorf("cannot print the base URL: %w", err)
	}
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}

	// A terminal that is paused (Ctrl-S) blocks the log. That must not keep the
	// process from stopping.
	stopped := make(chan error, 1)
	logged := make(chan struct{})
	go func() {
		s.log.Info("stopping; a second signal ends the process at once",
			"reason", context.Cause(ctx), "limit", stopTimeout)
		if err := <-stopped; err != nil {
			s.log.Warn("requests in flight get no answer", "error", err)
		}
		close(logged)
	}()
	limit, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	stopped <- srv.Shutdown(limit)
	select {
	case <-logged:
	case <-time.After(logTimeout):
	}
	return nil
}

// closeSpareConnections makes Shutdown close the connections whose first request
// has not been read. Browsers open connections before they need them, and
// Shutdown would wait for up to 5 s for a request on them.
func closeSpareConnections(srv *http.Server) {
	var mu sync.Mutex // guards the variables below
	spare := map[net.Conn]bool{}
	stopping := false
	srv.ConnState = func(conn net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case state != http.StateNew:
			delete(spare, conn)
		case stopping: // it was accepted just before the listener was closed
			conn.Close()
		default:
			spare[conn] = true
		}
	}
	srv.RegisterOnShutdown(func() {
		mu.Lock()
		defer mu.Unlock()
		stopping = true
		for conn := range spare {
			conn.Close()
		}
	})
}

// newServer returns an HTTP server for s, with timeouts for slow clients.
func newServer(s *service) *http.Server {
	const readTimeout = 15 * time.Second // for the headers and the body
	return &http.Server{
		Handler:           s.handler(),
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       readTimeout,
		// The time for a body, -latency, a delay, an answer-delay and a drip, and some
		// seconds to spare. A stall waits after its last write.
		WriteTimeout:   readTimeout + 3*maxWait + (dripPieces-1)*dripInterval + 6*time.Second,
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: 60 << 10, // 64 KiB with the 4 KiB that net/http adds
		// net/http would answer OPTIONS * itself.
		DisableGeneralOptionsHandler: true,
	}
}
