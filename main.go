// Petstore serves the animal store API from memory, as a test double for programs
// that call it. README.md shows how to use it. Comments cite its contract,
// api/contract.md, by section.
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
	"strings"
	"syscall"
	"time"
	"unicode"
)

// apiVersion is the version of the API (contract, section 9).
const apiVersion = "1.0.0"

func main() {
	// Without this, a write to standard output or standard error would end the
	// process after the reader of that pipe has gone.
	signal.Ignore(syscall.SIGPIPE)
	err := run(context.Background(), exitSoon, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	if err == nil {
		return
	}
	// An argument, or a seed, may have characters that control a terminal.
	message := strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, err.Error())
	fmt.Fprintln(os.Stderr, "petstore:", message)
	if errors.As(err, new(usageError)) {
		os.Exit(2)
	}
	os.Exit(1)
}

// maxStop is how long a stop may take.
const maxStop = time.Second

// exitSoon ends the process when a stop that begins now has taken too long: it can be
// blocked by whatever a goroutine waits for, such as a reader of standard error.
func exitSoon() {
	time.Sleep(maxStop)
	os.Exit(0)
}

// usageError is an error in the arguments.
type usageError struct{ error }

// errInputEnded is why petstore stops when standard input has ended.
var errInputEnded = errors.New("standard input has ended")

// run serves until ctx is done, a signal arrives or, with -stdin, standard input ends, and
// then returns nil. When it begins to stop, it calls stopping in a goroutine. It also
// returns nil after it has printed the help or the version.
func run(ctx context.Context, stopping func(), args []string,
	getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) error {
	opts, err := parseFlags(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return usageError{fmt.Errorf("%v; -h lists the flags", err)}
	}
	if opts.version {
		return printVersion(stdout)
	}
	key := getenv("PETSTORE_API_KEY")
	if err := validateKey(key); err != nil {
		return err
	}
	if strings.Contains(getenv("GODEBUG"), "httpmuxgo121=1") {
		return errors.New("with httpmuxgo121=1 in GODEBUG, net/http would find no path; remove it")
	}
	if getenv("GOGC") == "" {
		debug.SetGCPercent(200) // as garbage is most of the memory, this halves the time for it
	}
	seed, err := readSeedFile(opts.seed)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", opts.addr)
	const inUseOnWindows = syscall.Errno(10048) // WSAEADDRINUSE, which is not syscall.EADDRINUSE
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, inUseOnWindows) {
		return fmt.Errorf("%w; -addr 127.0.0.1:0 takes any free port", err)
	}
	if err != nil {
		return err
	}
	root := rootURL(ln.Addr())
	if key == "" {
		key = newKey()
		fmt.Fprintf(stderr, randomKeyNotice, key, root)
	}
	log := newLog(stderr, opts.log)
	log.Info("a page for browsers", "url", root+"/")

	// Before this, a signal ends the process. After the first one, further signals are
	// ignored to the end, as some supervisors, such as timeout(1), send two.
	ctx, stop := context.WithCancelCause(ctx)
	context.AfterFunc(ctx, stopping)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		stop(nil)
	}()
	s := newService(ctx, key, seed, log)
	if opts.stdin {
		go func() {
			io.Copy(io.Discard, stdin)
			stop(errInputEnded)
		}()
	}
	err = runServer(ln, s, stdout)
	if context.Cause(ctx) == errInputEnded && !s.used.Load() {
		log.Warn("standard input has ended before any request; -stdin needs one that stays open")
	}
	return err
}

// printVersion prints the version of the API and of this build.
func printVersion(w io.Writer) error {
	build := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		build = info.Main.Version // since Go 1.24, from the version control system
	}
	_, err := fmt.Fprintf(w, "%s (build %s, %s)\n", apiVersion, build, runtime.Version())
	return err
}

// newLog returns a log of what goes wrong. With hasRequests, it also has the requests
// and the address of the page.
func newLog(w io.Writer, hasRequests bool) *slog.Logger {
	level := slog.LevelWarn
	if hasRequests {
		level = slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
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
	stdin   bool
	log     bool
	version bool
}

// parseFlags parses the arguments. It returns flag.ErrHelp after it has printed
// the help.
func parseFlags(args []string, stdout io.Writer) (options, error) {
	var opts options
	flags := flag.NewFlagSet("petstore", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&opts.addr, "addr", "127.0.0.1:8080", "listen on `host:port`; port 0 takes a free port,\n"+
		"and :8080 listens on all interfaces")
	flags.StringVar(&opts.seed, "seed", "", "start with the pets in `file`, a JSON array")
	flags.BoolVar(&opts.stdin, "stdin", false, "stop when standard input ends,\n"+
		"for example because the test that started it has ended")
	flags.BoolVar(&opts.log, "log", false, "log the address of the page, the recorded requests, and those under\n"+
		"/__admin with a method other than GET, HEAD and OPTIONS")
	flags.BoolVar(&opts.version, "version", false, "print the versions of the API and of this build, and exit")

	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(stdout, helpText, maxKey)
			flags.SetOutput(stdout)
			flags.PrintDefaults()
		}
		return opts, err
	}
	if flags.NArg() > 0 {
		return opts, fmt.Errorf("unexpected argument %s", flags.Arg(0))
	}
	if _, _, err := net.SplitHostPort(opts.addr); err != nil { // net.Listen would take "" as all interfaces
		return opts, fmt.Errorf("-addr takes host:port: %w", err)
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
    	the API key that clients must send, 1 to %d visible ASCII characters;
    	if it is empty or not set, a random key is used and shown on standard error

Flags:
`

// readSeedFile returns a store with the pets in a file, or an empty one if the name
// is empty.
func readSeedFile(name string) (*store, error) {
	if name == "" {
		return newStore(), nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%w; -seed takes the path of a JSON file with an array of pets", err)
	}
	seed, err := readSeed(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return seed, nil
}

// rootURL returns the URL under which a client on this machine reaches addr,
// such as http://127.0.0.1:8080.
func rootURL(addr net.Addr) string {
	tcp := addr.(*net.TCPAddr)
	if tcp.IP.IsUnspecified() {
		return fmt.Sprintf("http://127.0.0.1:%d", tcp.Port)
	}
	return (&url.URL{Scheme: "http", Host: tcp.String()}).String() // which escapes a zone
}

// runServer serves s on ln, and prints its base URL. Once s.ctx is done, which ends all
// waits, it answers the requests in flight, for durations.stop at most, and returns nil. If
// it cannot serve, or cannot print, it returns the error.
func runServer(ln net.Listener, s *service, stdout io.Writer) error {
	srv := newServer(s)
	stopped := make(chan struct{})
	context.AfterFunc(s.ctx, func() {
		defer close(stopped)
		ctx, cancel := context.WithTimeout(context.Background(), s.durations.stop)
		defer cancel()
		srv.Shutdown(ctx) // requests that are still in flight end with the process
	})
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	if _, err := fmt.Fprintln(stdout, rootURL(ln.Addr())+"/v1"); err != nil {
		return fmt.Errorf("cannot print the base URL: %w", err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-stopped
	return nil
}

// newServer returns an HTTP server for s, with timeouts for slow clients.
func newServer(s *service) *http.Server {
	d := s.durations
	return &http.Server{
		Handler:           s,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: d.readHeader,
		ReadTimeout:       d.read,
		// The time for a body, a delay, an answer-delay and a drip, and some seconds to
		// spare. A stall waits after its last write.
		WriteTimeout:   d.read + 2*maxDelay + (dripPieces-1)*d.drip + 6*time.Second,
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: maxHeader - 4<<10, // to which net/http adds 4 KiB
		// net/http would answer OPTIONS * itself.
		DisableGeneralOptionsHandler: true,
	}
}
