// Petstore serves the animal store API from memory, as a test double for programs
// that call it. README.md shows how to use it. Comments cite its contract,
// api/contract.md, by section.
//
// main.go is the process, and the check of a client. handlers.go is the API, in the order
// in which a request passes through it. store.go is state: the pets, and the journal of
// requests. auth.go is access: the key, and CORS. errors.go is failure: errors, and the
// faults that are asked for.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unicode"
)

// apiVersion is the version of the API (contract, section 9).
const apiVersion = "1.0.0"

func main() {
	// Without this, a write to standard output or standard error would end the process
	// after the reader of that pipe has gone. With signal.Ignore instead, a client that is
	// checked would inherit that the signal is ignored.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200) // as garbage is most of the memory, this halves the time for it
	}
	os.Exit(run(context.Background(), exitAfter, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}

// maxStop is how long a stop may take.
const maxStop = time.Second

// exitAfter ends the process after the longest time that a stop may take. The stop may never
// end by itself, as a write to standard output or standard error waits for its reader.
func exitAfter(longest time.Duration, exitCode int) {
	time.Sleep(longest)
	os.Exit(exitCode)
}

// run is petstore: it serves until it is stopped, or checks a client, or only prints the
// help or the version. It prints why it fails, and returns the exit code. When it begins to
// stop, it calls onStop, such as exitAfter, in a goroutine.
func run(ctx context.Context, onStop func(longest time.Duration, exitCode int), args []string,
	getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) (exitCode int) {
	fail := func(code int, err error) int {
		fmt.Fprintln(stderr, "petstore:", printable(err.Error()))
		return code
	}
	opts, err := parseFlags(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return fail(2, fmt.Errorf("%w; -h lists the flags", err))
	case opts.version:
		if err := printVersion(stdout); err != nil {
			return fail(1, err)
		}
	case opts.check:
		findings, err := check(ctx, onStop, opts, getenv, stdout, stderr)
		if err != nil {
			return fail(2, err) // as 1 says that the client does something wrong
		}
		if findings > 0 {
			return fail(1, errors.New("the client does something wrong; -accept names what is intended"))
		}
	default:
		if err := serve(ctx, onStop, opts, getenv, stdin, stdout, stderr); err != nil {
			return fail(1, err)
		}
	}
	return 0
}

// printable returns a text on one line, without what could control a terminal: arguments,
// seeds and clients may give such characters.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return ' '
	}, text)
}

// errInputEnded is why petstore stops when standard input has ended.
var errInputEnded = errors.New("standard input has ended")

// serve serves until ctx is done, a signal arrives or, with -stdin, standard input ends, and
// then returns nil.
func serve(ctx context.Context, onStop func(longest time.Duration, exitCode int), opts options,
	getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) error {
	key, err := readEnvironment(getenv)
	if err != nil {
		return err
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
	}
	log := newLog(stderr, opts.log)
	log.Info("a page for browsers", "url", root+"/")

	// Before this, a signal ends the process. After the first one, further signals are
	// ignored to the end, as some supervisors, such as timeout(1), send two.
	ctx, stop := context.WithCancelCause(ctx)
	context.AfterFunc(ctx, func() { onStop(maxStop, 0) })
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
	if context.Cause(ctx) == errInputEnded && !s.wasCalled.Load() {
		log.Warn("standard input has ended before any request; -stdin needs one that stays open")
	}
	return err
}

// readEnvironment returns the key, which may be empty.
func readEnvironment(getenv func(string) string) (key string, err error) {
	if strings.Contains(getenv("GODEBUG"), "httpmuxgo121=1") {
		return "", errors.New("with httpmuxgo121=1 in GODEBUG, net/http would find no path; remove it")
	}
	key = getenv("PETSTORE_API_KEY")
	return key, validateKey(key)
}

// listen listens on an address, with advice on ports that are taken.
func listen(addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	const inUseOnWindows = syscall.Errno(10048) // WSAEADDRINUSE, which is not syscall.EADDRINUSE
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, inUseOnWindows) {
		err = fmt.Errorf("%w; -addr 127.0.0.1:0 takes any free port", err)
	}
	return ln, err
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
	addr      string
	seed      string
	stdin     bool
	log       bool
	version   bool
	check     bool
	accept    faultNames
	only      faultNames // nil for all
	operation string     // empty for that of the client
	skip      int        // how many of its requests come before the one with the fault
	command   []string   // the client to check, and its arguments
}

// parseFlags parses the arguments. It returns flag.ErrHelp after it has printed
// the help.
func parseFlags(args []string, stdout io.Writer) (options, error) {
	var opts options
	flags := flag.NewFlagSet("petstore", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&opts.addr, "addr", "127.0.0.1:8080", "listen on `host:port`; port 0, that of -check,\n"+
		"takes a free port, and :8080 listens on all interfaces")
	flags.StringVar(&opts.seed, "seed", "", "start with the pets in `file`, a JSON array")
	flags.BoolVar(&opts.stdin, "stdin", false, "stop when standard input ends,\n"+
		"for example because the test that started it has ended")
	flags.BoolVar(&opts.log, "log", false, "log the recorded requests, those under /__admin except GET,\n"+
		"HEAD and OPTIONS and, without -check, the address of the page")
	flags.BoolVar(&opts.version, "version", false, "print the versions of the API and of this build, and exit")
	flags.BoolVar(&opts.check, "check", false, "run a client without a fault and then with each fault, and print the\n"+
		"mistakes that it makes only then; the client finds the base URL in\n"+
		"PETSTORE_URL and the key in PETSTORE_API_KEY, and must exit with 0 only\n"+
		"if it has succeeded")
	flags.Func("accept", "with -check, do not count what is found with these `faults`, such as lost,stall", opts.accept.parse)
	flags.Func("only", "with -check, run the client with these `faults` only, and show what it prints;\n"+
		"the faults are "+strings.Join(checkedNames(), ","), opts.only.parse)
	flags.StringVar(&opts.operation, "operation", "", "with -check, the `name` of the operation that the faults are for:\n"+
		orList(faultOperations())+"; by default it is createPet or,\n"+
		"if the client adds no pet, that of its first request")
	flags.IntVar(&opts.skip, "skip", 0, "with -check, let the first `n` requests for the operation through")

	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(stdout, helpText, maxKey)
			flags.SetOutput(stdout)
			flags.PrintDefaults()
		}
		return opts, err
	}
	opts.command = flags.Args()
	isSet := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { isSet[f.Name] = true })
	switch {
	case opts.check && len(opts.command) == 0:
		return opts, errors.New("-check needs the command that runs the client")
	case opts.check && opts.stdin:
		return opts, errors.New("-check and -stdin exclude each other")
	case opts.check && opts.operation != "" && !slices.Contains(faultOperations(), opts.operation):
		return opts, fmt.Errorf("-operation is %s; it must be %s", quote(opts.operation), orList(faultOperations()))
	case opts.skip < 0:
		return opts, fmt.Errorf("-skip is %d; it must be 0 or more", opts.skip)
	case !opts.check && (isSet["accept"] || isSet["only"] || isSet["operation"] || isSet["skip"]):
		return opts, errors.New("-accept, -only, -operation and -skip need -check")
	case !opts.check && len(opts.command) > 0:
		return opts, fmt.Errorf("unexpected argument %s", opts.command[0])
	}
	if opts.check && !isSet["addr"] {
		opts.addr = "127.0.0.1:0"
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
       petstore [flags] -check command [argument]...

Environment:
  PETSTORE_API_KEY
    	the API key that clients must send, 1 to %d visible ASCII characters;
    	if it is empty or not set, a random key is used and, without -check, shown
    	on standard error

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
	pauses := time.Duration(longestPauses()) * d.second
	return &http.Server{
		Handler:           s,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: d.readHeader,
		ReadTimeout:       d.read,
		// The time for a body, a delay, an answer-delay and the pauses, and some seconds to
		// spare.
		WriteTimeout:   d.read + 2*maxDelay + pauses + 6*time.Second,
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: maxHeader - 4<<10, // to which net/http adds 4 KiB
		// net/http would answer OPTIONS * itself.
		DisableGeneralOptionsHandler: true,
	}
}

// The check of a client has three parts: what runs it, what judges it, and what prints the
// verdicts.

// check runs a client twice without a fault, and then with each of the chosen faults. It
// prints what the client does wrong, and returns how many findings count. The error says why
// there is no result.
func check(ctx context.Context, onStop func(longest time.Duration, exitCode int), opts options,
	getenv func(string) string, stdout, stderr io.Writer) (count int, err error) {
	key, err := readEnvironment(getenv)
	if err != nil {
		return 0, err
	}
	seed, err := readSeedFile(opts.seed)
	if err != nil {
		return 0, err
	}
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as it is after nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(ctx, signals...)
	defer stop()
	isOver := context.AfterFunc(ctx, func() { onStop(3*maxEnd, 2) }) // longer than the client takes to end
	defer isOver()
	c := &checker{
		opts:    opts,
		key:     key,
		seed:    seed,
		noProxy: cmp.Or(getenv("no_proxy"), getenv("NO_PROXY")),
		stderr:  stderr,
		limit:   maxRun,
		maxEnd:  maxEnd,
	}
	usual, operation, err := c.runUsually(ctx)
	if err != nil {
		return 0, err
	}
	out := bufio.NewWriter(stdout) // each Flush returns the first error
	fmt.Fprintln(out, "fault      exit seconds  pets  answers              finding")
	printRow(out, operation, verdict{fault: checkedFault{name: "none"}, run: usual})
	var verdicts []verdict
	var withoutResult []string // names of faults
	for _, f := range checkedFaults() {
		if opts.only != nil && !slices.Contains(opts.only, f.name) {
			continue
		}
		out.Flush()
		var output io.Writer // nil drops what the client prints
		if opts.only != nil {
			output = stderr
		}
		run, err := c.run(ctx, fmt.Sprintf("%s&operation=%s&skip=%d", f.query, operation, opts.skip), output)
		if err != nil {
			return 0, err
		}
		v := verdict{fault: f, run: run, noResult: run.struck == nil, isAccepted: slices.Contains(opts.accept, f.name)}
		if v.noResult {
			withoutResult = append(withoutResult, f.name)
		} else {
			v.broken = compare(run, usual).brokenRules()
		}
		verdicts = append(verdicts, v)
		if output != nil {
			fmt.Fprintln(output) // or the row could follow what the client has printed, on the same line
		}
		printRow(out, operation, v)
	}
	fmt.Fprintln(out)
	printWaysOut(out, verdicts)
	printUntested(out, operation, usual, verdicts)
	count = printSummary(out, operation, opts.skip, usual, verdicts)
	err = out.Flush()
	switch {
	case err != nil:
		return 0, err
	case ctx.Err() != nil:
		return 0, errInterrupted
	case withoutResult != nil:
		return 0, fmt.Errorf("with %s, the client sends no request that gets the fault: does it reset petstore, "+
			"is a time limit over before it sends anything, or does a result, a lock or a circuit breaker "+
			"of an earlier run last? (go test needs -count=1)", strings.Join(withoutResult, ", "))
	}
	return count, nil
}

// errInterrupted says that a signal has ended a check.
var errInterrupted = errors.New("interrupted")

// What runs a client.

// The limits of a run.
const (
	maxRun      = time.Minute // for the first run; a later one may take longer by what that took
	maxEnd      = time.Second // for a client to end by itself after a signal, and then after an interrupt
	maxRequests = 10_000      // in one run, also those that are not recorded
)

// checkedFault is a fault with which a client is checked. The query is that of PUT
// /__admin/fault.
type checkedFault struct{ name, query string }

func checkedFaults() []checkedFault {
	faults := []checkedFault{
		{"400", "code=400&times=1"},
		{"401", "code=401"},
		{"429", "code=429&times=1&retry-after=3"},
		{"503", "code=503&times=1&retry-after=date:3"},
		{"503-all", "code=503&retry-after=none"},
	}
	for _, e := range wordEffects {
		if e != noEffect {
			faults = append(faults, checkedFault{e.code, "code=" + e.code + "&times=1"})
		}
	}
	return append(faults, checkedFault{"late", "answer-delay=30&times=1"})
}

func checkedNames() []string {
	var names []string
	for _, f := range checkedFaults() {
		names = append(names, f.name)
	}
	return names
}

// faultNames are names of checkedFaults.
type faultNames []string

// parse adds the names in the value of a flag, in which commas separate them.
func (n *faultNames) parse(text string) error {
	for _, name := range strings.Split(text, ",") {
		if !slices.Contains(checkedNames(), name) {
			return fmt.Errorf("there is no fault %s; the faults are %s", quote(name), strings.Join(checkedNames(), ","))
		}
		*n = append(*n, name)
	}
	return nil
}

// checker runs a client.
type checker struct {
	opts    options
	key     string // if it is empty, each run has another one
	seed    *store
	noProxy string // hosts that the client is to reach without a proxy
	stderr  io.Writer
	limit   time.Duration // for a run
	maxEnd  time.Duration // as the constant
}

// clientRun is what a client has done in a run.
type clientRun struct {
	base     string // the base URL that it got
	exitCode int    // -1 if a signal has ended it
	took     time.Duration
	isCut    bool     // whether it was ended, as it took too long or sent too many requests
	isFlood  bool     // whether these were more than maxRequests
	requests []*entry // in the order of arrival
	struck   *entry   // the first request that got the fault, or nil
}

// run runs the client with a petstore that has this fault, a query of PUT /__admin/fault. What
// the client prints goes to output, if that is not nil. Each run has another petstore, with
// another port and key, unless they are given. So what a run leaves behind, such as a process
// that goes on repeating, does not reach the petstore of the next one.
func (c *checker) run(ctx context.Context, fault string, output io.Writer) (*clientRun, error) {
	serving, stopServing := context.WithCancel(context.Background())
	defer stopServing()
	s := newService(serving, cmp.Or(c.key, newKey()), c.seed, newLog(c.stderr, c.opts.log))
	s.journal.keeps = maxRequests
	w, _ := s.journal.current()
	query, _ := url.ParseQuery(fault)
	standing, err := parseStandingFault(w.ctx, &arguments{Values: query}, s.faultOperations)
	if err != nil {
		return nil, err
	}
	w.setStanding(standing)
	ln, err := listen(c.opts.addr)
	if err != nil {
		return nil, err
	}
	running, cut := context.WithTimeout(ctx, c.limit)
	defer cut()
	srv := newServer(s)
	var count atomic.Int64
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if count.Add(1) > maxRequests {
			cut()
			panic(http.ErrAbortHandler)
		}
		s.ServeHTTP(w, r)
	})
	connected, disconnect := context.WithCancel(context.Background())
	defer disconnect()
	srv.BaseContext = func(net.Listener) context.Context { return connected }
	go srv.Serve(ln)
	defer srv.Close()

	root := rootURL(ln.Addr())
	r := &clientRun{base: root + "/v1"}
	cmd := exec.CommandContext(running, c.opts.command[0], c.opts.command[1:]...)
	cmd.Env = append(os.Environ(), c.environment(root, s.key)...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.Cancel = func() error {
		if ctx.Err() != nil {
			// A terminal sends Ctrl-C to the client, too. A second interrupt would make some
			// clients stop cleaning up, so it first gets the time for that.
			time.Sleep(c.maxEnd)
		}
		return cmd.Process.Signal(os.Interrupt) // so that it can end what it has started
	}
	cmd.WaitDelay = c.maxEnd // after which it is killed
	started := time.Now()
	err = cmd.Run()
	r.took = time.Since(started)
	r.isCut = running.Err() != nil
	r.isFlood = count.Load() > maxRequests
	switch {
	case ctx.Err() != nil:
		return nil, errInterrupted
	case cmd.ProcessState == nil && strings.Contains(c.opts.command[0], " "):
		return nil, fmt.Errorf("%w; arguments are separate words, as in -check sh client.sh", err)
	case cmd.ProcessState == nil:
		return nil, err
	}
	r.exitCode = cmd.ProcessState.ExitCode()

	// The client has ended, so its requests end, too. If it has sent anything after one of
	// them, net/http does not notice that by itself.
	disconnect()
	srv.Close()
	s.journal.settle()
	r.requests = s.journal.read(nil, 0).ended
	for _, e := range r.requests {
		if slices.Contains(standing.faults, e.Fault) {
			r.struck = e
			break
		}
	}
	return r, nil
}

// environment returns the variables that a client gets, with the root and the key of its
// petstore.
func (c *checker) environment(root, key string) []string {
	noProxy := c.noProxy
	if noProxy != "*" { // which means all hosts only if it is alone
		host, _, _ := net.SplitHostPort(strings.TrimPrefix(root, "http://"))
		noProxy = host + ",localhost," + noProxy
	}
	return []string{
		"PETSTORE_URL=" + root + "/v1",
		"PETSTORE_API_KEY=" + key,
		"NO_PROXY=" + noProxy,
		"no_proxy=" + noProxy,
	}
}

// runUsually runs the client twice without a fault. It returns the first run, and the
// operation that is to get the faults. From then on, the limit of a run is longer by the
// time that the client usually takes.
func (c *checker) runUsually(ctx context.Context) (usual *clientRun, operation string, err error) {
	usual, err = c.run(ctx, "code=ok", c.stderr)
	if err != nil {
		return nil, "", err
	}
	operation, err = usual.chooseOperation(c.opts.operation, c.opts.skip)
	if err != nil {
		return nil, "", fmt.Errorf("without a fault, the client %w", err)
	}
	c.limit += usual.took
	again, err := c.run(ctx, "code=ok", nil)
	if err != nil {
		return nil, "", err
	}
	if first, second := usual.outline(operation), again.outline(operation); first != second {
		return nil, "", fmt.Errorf("without a fault, the client does not do the same twice: %v, and then %v", first, second)
	}
	return usual, operation, nil
}

// outline is what must be the same in two runs without a fault.
type outline struct {
	exitCode  int
	pets      int // that the client has added
	operation string
	requests  int // for the operation
}

func (o outline) String() string {
	return fmt.Sprintf("exit code %d, %s, %d %s", o.exitCode, quantity(o.pets, "pet"), o.requests, o.operation)
}

func (r *clientRun) outline(operation string) outline {
	return outline{r.exitCode, countPets(r.requests), operation, len(r.of(operation))}
}

// sent returns the requests for which isOne reports true.
func (r *clientRun) sent(isOne func(*entry) bool) (list []*entry) {
	for _, e := range r.requests {
		if isOne(e) {
			list = append(list, e)
		}
	}
	return list
}

// of returns the requests for an operation.
func (r *clientRun) of(operation string) []*entry {
	return r.sent(func(e *entry) bool { return e.Operation == operation })
}

// countPets returns the number of pets that requests have added.
func countPets(requests []*entry) (n int) {
	for _, e := range requests {
		if e.Pet != 0 {
			n++
		}
	}
	return n
}

// chooseOperation returns the operation that is to get the faults: the given one or, if that
// is empty, createPet if the client adds a pet, and else that of its first request. It
// returns an error if a run without a fault is not one to compare others with.
func (r *clientRun) chooseOperation(given string, skip int) (string, error) {
	for _, e := range r.requests {
		if !e.isUsable() {
			return "", fmt.Errorf("gets %d for %s %s: %s", e.Status, e.Method, e.URL, e.Error)
		}
	}
	operation := given
	switch {
	case r.isFlood || len(r.requests) >= maxEnded:
		return "", fmt.Errorf("sends %d requests or more, which is too many for a check", maxEnded)
	case r.isCut:
		return "", errors.New("does not end within a minute")
	case r.exitCode != 0:
		return "", fmt.Errorf("exits with %d (its output is above)", r.exitCode)
	case len(r.requests) == 0:
		return "", fmt.Errorf("sends no request to %s: does it read PETSTORE_URL? (go test needs -count=1)", r.base)
	case given == "" && countPets(r.requests) > 0:
		operation = "createPet"
	case given == "":
		operation = r.requests[0].Operation
	}
	switch n := len(r.of(operation)); {
	case n == 0:
		return "", fmt.Errorf("sends no request for %s", operation)
	case n <= skip:
		return "", fmt.Errorf("sends %s for %s, all of which -skip %d lets through", quantity(n, "request"), operation, skip)
	}
	return operation, nil
}

// What judges a client.

// The limits of what is right.
const (
	maxWait = 25 * time.Second      // for an answer; a stall takes 30
	prompt  = time.Second           // for an answer that no time limit of a client misses
	maxRate = 10                    // repetitions of a request in a second; more leave a service no time to recover
	noPause = 20 * time.Millisecond // in which two repetitions come if there is no pause before them
	slack   = maxNotice             // for timers, and for petstore to notice that a client has left
)

// comparison is a run with a fault beside the usual one, which has none.
type comparison struct {
	run, usual  *clientRun
	equal       []*entry // the requests of run that are equal to the struck one
	usualEqual  []*entry // those of usual, or what stands for them; see largestGroup
	repetitions []*entry // the requests of run beyond the usual number
	usually     int      // that number
	areAlike    bool     // whether the repetitions are equal to the struck request, at least but for numbers
}

// compare compares a run in which a request got the fault with the usual one. Repetitions are
// looked for among the requests that are equal to the struck one, then among those that are equal
// but for numbers, as a name may be made anew for each try, and then among all for the operation.
// Which of these requests are repetitions cannot be known: the last ones are taken for them.
func compare(run, usual *clientRun) comparison {
	c := comparison{run: run, usual: usual}
	c.equal, c.usualEqual = c.alike(content)
	if len(c.usualEqual) == 0 {
		c.usualEqual = c.largestGroup()
	}
	usualEqual := max(1, len(c.usualEqual))
	similar, usualSimilar := c.alike(contentButNumbers)
	all, usualAll := run.of(run.struck.Operation), usual.of(run.struck.Operation)
	switch {
	case len(c.equal) > usualEqual:
		c.repetitions, c.usually, c.areAlike = c.equal[usualEqual:], usualEqual, true
	case len(similar) > len(usualSimilar) && len(usualSimilar) > 0:
		c.repetitions, c.usually, c.areAlike = similar[len(usualSimilar):], len(usualSimilar), true
	case len(all) > len(usualAll):
		c.repetitions, c.usually = all[len(usualAll):], len(usualAll)
	}
	return c
}

// alike returns the requests of both runs that look like the struck one in a view.
func (c comparison) alike(view func(*entry) identity) (sent, usual []*entry) {
	struck := view(c.run.struck)
	isAlike := func(e *entry) bool { return view(e) == struck }
	return c.run.sent(isAlike), c.usual.sent(isAlike)
}

// largestGroup returns the largest group of equal requests for the operation that the usual run
// has and the other run has not. If a client makes names anew for each run, these are sent in
// place of the requests that are equal to the struck one.
func (c comparison) largestGroup() (largest []*entry) {
	usual := c.usual.of(c.run.struck.Operation)
	groups := map[identity][]*entry{}
	for _, e := range usual {
		groups[content(e)] = append(groups[content(e)], e)
	}
	for _, e := range c.run.requests {
		delete(groups, content(e))
	}
	for _, e := range usual {
		if group := groups[content(e)]; len(group) > len(largest) {
			largest = group
		}
	}
	return largest
}

// content is a view of what a client sends. The User-Agent is left out, as some clients count
// their tries in it, and the period, as each run has a journal of its own. The members of a body
// are put in order, as some languages write them in another one each time.
func content(e *entry) identity {
	id := e.identity()
	id.period, id.userAgent = nil, ""
	var body any
	if json.Unmarshal([]byte(id.body), &body) == nil {
		id.body = string(encodeJSON(body))
	}
	return id
}

// contentButNumbers is a view without numbers.
func contentButNumbers(e *entry) identity {
	id := content(e)
	id.url = anyNumber.ReplaceAllString(id.url, "#")
	id.body = anyNumber.ReplaceAllString(id.body, "#")
	return id
}

// anyNumber matches a number, also a hexadecimal one if it has a decimal digit.
var anyNumber = regexp.MustCompile(`[0-9a-fA-F-]*[0-9][0-9a-fA-F-]*`)

// A rule is what a client must not do, whether it has done so, and what it can do instead.
type rule struct {
	isBroken bool
	wayOut   string
	format   string // of the finding; see fmt.Sprintf
	finding  string // how the client has broken the rule
}

// The ways out that several rules have.
const (
	lookFirst = "Repeat a POST only if it was not performed, as after a refused connection, a 429 or a 503. " +
		"Else look first whether the pet is there."
	readWhole  = "Read each answer: fail if its status is an error, or a part of its body is missing."
	stayWithIt = "Do not repeat what is answered with a 400 or a 401: the answer stays the same."
	waitLonger = "Wait before each repetition: for as long as Retry-After asks, in seconds or by a date, or, " +
		"without one, twice as long each time."
)

// brokenRules returns the rules that the client has broken.
func (c comparison) brokenRules() []rule {
	return slices.DeleteFunc(c.rules(), func(r rule) bool { return !r.isBroken })
}

// rules returns all rules. There is none against what a client may do for a good reason, such
// as not to try again.
func (c comparison) rules() (rules []rule) {
	add := func(isBroken bool, wayOut, format string, args ...any) {
		rules = append(rules, rule{isBroken, wayOut, format, fmt.Sprintf(format, args...)})
	}
	r, struck := c.run, c.run.struck
	hasSucceeded := r.exitCode == 0 && !r.isCut
	repeated := len(c.repetitions)

	// How long the client runs, and how it ends.
	limitTime := fmt.Sprintf("Set a time limit for the whole answer, below %.0f seconds.", maxWait.Seconds())
	limit := fmt.Sprintf("%.0f s", r.took.Seconds())
	if r.isFlood {
		limit = fmt.Sprintf("%d requests", maxRequests)
	}
	isLonger := r.took > c.usual.took+prompt
	add(r.isCut && repeated > 1, "Limit the number of tries, or the time for all of them.",
		"still repeats after %s (%d times)", limit, repeated)
	add(r.isCut && repeated <= 1, limitTime, "does not end within %s", limit)
	add(r.exitCode < 0 && !r.isCut, "Treat an answer that cannot be read as a failure.", "is ended by a signal")
	add(isLonger && struck.duration() > maxWait, limitTime, "still waits after %.0f s", maxWait.Seconds())

	// Which pets it adds.
	pets, usualPets := countPets(r.requests), countPets(c.usual.requests)
	equalPets, usualEqual := countPets(c.equal), max(1, len(c.usualEqual))
	add(pets > usualPets, lookFirst, "adds %d pets instead of %d", pets, usualPets)
	add(pets <= usualPets && equalPets > usualEqual, lookFirst,
		"adds %d equal pets instead of %d", equalPets, usualEqual)
	add(hasSucceeded && pets < usualPets, readWhole,
		"exits with 0, but has added %d of %d pets", pets, usualPets)

	// What it makes of answers.
	sent := r.of(struck.Operation)
	usable, wanted := 0, min(len(sent), len(c.usual.of(struck.Operation)))
	for _, e := range sent {
		if e.isUsable() {
			usable++
		}
	}
	isRight := struck.isUsable() && struck.duration() < prompt
	add(hasSucceeded && pets == usualPets && usable < wanted && !c.isMended(),
		readWhole+" If the client always looks by a list instead, -accept it.",
		"exits with 0, but can use %d of %d answers", usable, wanted)
	add(r.exitCode != 0 && !r.isCut && isRight, "Ignore members that are not known.",
		"fails, although the answer is right")

	// What it sends.
	var what, message string // of the first request that is refused
	status := 0
	if refused := r.sent(isRefused); len(refused) > 0 {
		e := refused[0]
		what, status, message = cmp.Or(e.Operation, shorten(e.Method+" "+e.URL)), e.Status, e.Error
	}
	add(status != 0, "Send each request anew with its body, its headers and the key.",
		"sends a %s that is refused: %d, %s", what, status, message)

	// What it repeats, and when. Each of the usual requests may be repeated once.
	isOften := repeated > c.usually
	add(struck.Status == 400 && repeated > 0 && c.areAlike, stayWithIt, "repeats the request after a 400")
	add(struck.Status == 401 && isOften, stayWithIt, // but once is right, as the key may have been read anew
		"repeats the request %d times after a 401", repeated)
	asked, _ := strconv.Atoi(strings.TrimPrefix(struck.Fault.RetryAfter, dateAfter)) // seconds, or 0
	pause, isRepeated := c.firstPause()
	add(isRepeated && pause < time.Duration(asked)*time.Second-slack, waitLonger,
		"repeats after %.2f s, although Retry-After asks for %d s", pause.Seconds(), asked)
	var lasted time.Duration // until the last repetition
	if repeated > 0 {
		lasted = c.sinceStruck(c.repetitions[repeated-1])
	}
	most := maxRate * lasted.Seconds() * float64(c.usually)
	isFast := float64(repeated) > most
	isSure := repeated > 2 || lasted < noPause // as two random pauses can be short by chance
	add(struck.Status != 401 && asked == 0 && isOften && isFast && isSure, waitLonger,
		"repeats %d times in %.2f s", repeated, lasted.Seconds())
	return rules
}

// sinceStruck returns the time from the arrival of the struck request to that of another one.
func (c comparison) sinceStruck(e *entry) time.Duration { return e.Time.Sub(c.run.struck.Time.Time) }

// firstPause returns the time from the struck request to its first repetition, if there is one.
// That is the next equal request. If it is a read, this holds even if there are no more than
// usual, as of a client that polls. But if the client usually sends the second of its equal
// requests at once, the next one may not be a repetition: then, as with a User-Agent that
// changes, only what is beyond the usual number is one.
func (c comparison) firstPause() (pause time.Duration, isRepeated bool) {
	isAtOnce := false
	if usual := c.usualEqual; len(usual) > 1 {
		isAtOnce = usual[1].Time.Sub(usual[0].Time.Time) < usual[0].duration()+slack
	}
	struck := c.run.struck
	isRead := struck.Method == "GET" || struck.Method == "HEAD"
	next := slices.IndexFunc(c.run.requests, func(e *entry) bool { return e.Repeats == struck.Arrived })
	switch {
	case next >= 0 && !isAtOnce && (isRead || len(c.repetitions) > 0):
		return c.sinceStruck(c.run.requests[next]), true
	case len(c.repetitions) > 0:
		return c.sinceStruck(c.repetitions[0]), true
	}
	return 0, false
}

// isMended reports whether the client has read later what the struck request did not give it:
// by an equal request, or by a look with another operation that it uses more often than usual.
// A request that adds a pet reads nothing.
func (c comparison) isMended() bool {
	struck := c.run.struck
	isRead := func(e *entry) bool { return e.Arrived > struck.Arrived && e.isUsable() && e.Pet == 0 }
	if slices.ContainsFunc(c.equal, isRead) {
		return true
	}
	for _, operation := range faultOperations() {
		looks := c.run.of(operation)
		isMore := len(looks) > len(c.usual.of(operation))
		if operation != struck.Operation && isMore && slices.ContainsFunc(looks, isRead) {
			return true
		}
	}
	return false
}

// isRefused reports whether a request that has ended was refused for a mistake of its own. A
// body that is cut short is none, as its client has left.
func isRefused(e *entry) bool {
	return e.Fault == nil && slices.Contains([]int{400, 401, 413, 415}, e.Status) && e.Error != bodyCutShort
}

// What prints the verdicts.

// verdict is what is found in a run.
type verdict struct {
	fault      checkedFault
	run        *clientRun
	noResult   bool // whether no request got the fault
	broken     []rule
	isAccepted bool // whether the findings do not count
}

// printRow prints the row of a run. It has the answers to the requests for the operation, from
// the struck one on. Of more than five, it has the first four.
func printRow(w io.Writer, operation string, v verdict) {
	requests := v.run.of(operation)
	requests = requests[max(0, slices.Index(requests, v.run.struck)):]
	var answers []string
	for _, e := range requests {
		answer := "-"
		if e.Status != 0 {
			answer = strconv.Itoa(e.Status)
		}
		answers = append(answers, answer)
	}
	if len(answers) > 5 {
		answers = append(answers[:4], "…")
	}
	var findings []string
	for _, rule := range v.broken {
		findings = append(findings, rule.finding)
	}
	switch {
	case v.noResult:
		findings = []string{"no result: no request gets the fault"}
	case v.isAccepted && findings != nil:
		findings = append(findings, "accepted")
	}
	row := fmt.Sprintf("%-10s %4d %7.1f %5d  %-19s  %s", v.fault.name, v.run.exitCode, v.run.took.Seconds(),
		countPets(v.run.requests), strings.Join(answers, " "), strings.Join(findings, "; "))
	fmt.Fprintln(w, strings.TrimRight(printable(row), " "))
}

// printWaysOut prints what the client can do instead of what was found and not accepted. What
// several findings have in common has one line.
func printWaysOut(w io.Writer, verdicts []verdict) {
	var waysOut []string
	faults := map[string][]string{} // names, by way out
	for _, v := range verdicts {
		if v.isAccepted {
			continue
		}
		for _, rule := range v.broken {
			if faults[rule.wayOut] == nil {
				waysOut = append(waysOut, rule.wayOut)
			}
			faults[rule.wayOut] = append(faults[rule.wayOut], v.fault.name)
		}
	}
	for _, wayOut := range waysOut {
		names := slices.Compact(faults[wayOut]) // as two findings of a fault may have the same
		fmt.Fprintf(w, "%s: %s\n", strings.Join(names, ", "), wayOut)
	}
}

// printUntested prints what was not tested, and which of the tested faults were accepted in
// vain.
func printUntested(w io.Writer, operation string, usual *clientRun, verdicts []verdict) {
	for _, other := range faultOperations() {
		if other != operation && len(usual.of(other)) > 0 {
			fmt.Fprintf(w, "%s was not tested: -operation %[1]s\n", other)
		}
	}
	isWithoutPet := false // the answer that should test whether the client reads a pet
	var notFound []string // names of faults
	for _, v := range verdicts {
		needsPet := v.fault.name == "newer" || v.fault.name == "malformed"
		if needsPet && !v.noResult && !strings.Contains(v.run.struck.Answer, `"id":`) {
			isWithoutPet = true
		}
		if v.isAccepted && len(v.broken) == 0 {
			notFound = append(notFound, v.fault.name)
		}
	}
	if isWithoutPet {
		fmt.Fprintln(w, "the answer had no pet, so newer and malformed test little: -seed adds some")
	}
	if notFound != nil {
		fmt.Fprintf(w, "accepted, but not found: %s\n", strings.Join(notFound, ","))
	}
}

// printSummary prints the last line, and returns how many findings count.
func printSummary(w io.Writer, operation string, skip int, usual *clientRun, verdicts []verdict) (count int) {
	accepted := 0
	for _, v := range verdicts {
		if v.isAccepted {
			accepted += len(v.broken)
		} else {
			count += len(v.broken)
		}
	}
	summary := quantity(count, "finding")
	if accepted > 0 {
		summary += fmt.Sprintf(", %d accepted,", accepted)
	}
	summary += fmt.Sprintf(" with %s of %s", quantity(len(verdicts), "fault"), operation)
	if n := len(usual.of(operation)); n > 1 {
		summary += fmt.Sprintf(", request %d of %d: -skip chooses another", skip+1, n)
	}
	fmt.Fprintln(w, summary+" (- is no answer)")
	return count
}

// quantity returns a number of things, such as "1 run" or "2 runs".
func quantity(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprint(n, " ", noun)
}
