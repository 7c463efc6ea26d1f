// Petstore serves the animal store API from memory, as a test double for programs that call it.
// README.md shows how to use it. Comments cite its contract, api/contract.md, by section.
//
// main.go is the process, and the check of a client. handlers.go is the API: the routes, then
// respond, which is the path of a request, with its steps, and then the operations. store.go is
// state: the world, the pets and their JSON, the seed, and the journal of requests. auth.go is
// access: the key, and what web pages of other origins may do (CORS). errors.go is failure:
// errors, the parameters whose mistakes are errors, and the faults that these ask for.
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
	p := process{getenv: os.Getenv, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, onStop: exitAfter}
	os.Exit(p.run(context.Background(), os.Args[1:]))
}

// maxStop is how long it may take to stop.
const maxStop = time.Second

// exitAfter ends the process after this time, in which it can stop by itself. Without that, a
// write to standard output or standard error could wait for its reader for ever.
func exitAfter(limit time.Duration, exitCode int) {
	time.Sleep(limit)
	os.Exit(exitCode)
}

// process is what petstore uses of its process. Tests replace it.
type process struct {
	getenv         func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
	onStop         func(limit time.Duration, exitCode int) // is called in a goroutine when a stop begins
}

// run is petstore: it serves until it is stopped, or checks a client, or only prints the
// help or the version. It prints why it fails, and returns the exit code.
func (p process) run(ctx context.Context, args []string) (exitCode int) {
	opts, err := parseFlags(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return p.report(1, printHelp(p.stdout))
	case err != nil:
		return p.report(2, fmt.Errorf("%w; -h lists the flags", err))
	case opts.version:
		return p.report(1, printVersion(p.stdout))
	case opts.check:
		findings, err := p.check(ctx, opts)
		if err == nil && findings > 0 {
			return p.report(1, errors.New("the client does something wrong; -accept names what is intended"))
		}
		return p.report(2, err) // as 1 says that the client does something wrong
	}
	return p.report(1, p.serve(ctx, opts))
}

// report prints an error, and returns the exit code for it. Without an error, it returns 0.
func (p process) report(exitCode int, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(p.stderr, "petstore:", printable(err.Error()))
	return exitCode
}

// printable returns a text on one line, without what could control a terminal: arguments,
// seeds and clients may give such characters.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if strconv.IsPrint(c) {
			return c
		}
		return ' '
	}, text)
}

// serve serves until ctx is done, a signal arrives or, with -stdin, standard input ends. Then it
// returns nil.
func (p process) serve(ctx context.Context, opts options) error {
	key, seed, err := p.keyAndSeed(opts)
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
		fmt.Fprintf(p.stderr, randomKeyNotice, key, root)
	}
	log := newLog(p.stderr, opts.log)
	log.Info("a page for browsers", "url", root+"/")

	// Before this, a signal ends the process. After the first one, further signals are
	// ignored to the end, as some supervisors, such as timeout(1), send two.
	ctx, _ = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	if opts.stdin {
		var stop context.CancelCauseFunc
		ctx, stop = context.WithCancelCause(ctx)
		go func() {
			io.Copy(io.Discard, p.stdin)
			stop(io.EOF)
		}()
	}
	context.AfterFunc(ctx, func() { p.onStop(maxStop, 0) })
	s := newService(ctx, key, seed, log)
	err = runServer(ln, s, p.stdout)
	if context.Cause(ctx) == io.EOF && !s.wasCalled.Load() {
		log.Warn("standard input has ended before any request; -stdin needs one that stays open")
	}
	return err
}

// keyAndSeed returns the key, which may be empty, and a store with the pets of the seed file, or
// an empty one without that file.
func (p process) keyAndSeed(opts options) (key string, seed *store, err error) {
	if strings.Contains(p.getenv("GODEBUG"), "httpmuxgo121=1") {
		return "", nil, errors.New("with httpmuxgo121=1 in GODEBUG, net/http would find no path; remove it")
	}
	key = p.getenv("PETSTORE_API_KEY")
	if err := validateKey(key); err != nil {
		return "", nil, err
	}
	if opts.seed == "" {
		return key, newStore(), nil
	}
	text, err := os.ReadFile(opts.seed)
	if err != nil {
		return "", nil, fmt.Errorf("%w; -seed takes the path of a JSON file with an array of pets", err)
	}
	seed, err = readSeed(text)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", opts.seed, err)
	}
	return key, seed, nil
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
	skip      int        // the number of requests for the operation that come before the one with the fault
	command   []string   // the client to check, and its arguments
}

// checkFlags are the flags that need -check.
var checkFlags = []string{"accept", "only", "operation", "skip"}

// newFlags returns the flags, which set opts.
func newFlags(opts *options) *flag.FlagSet {
	flags := flag.NewFlagSet("petstore", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&opts.addr, "addr", "127.0.0.1:8080", "listen on `host:port`; without a host, as in :8080, on all\n"+
		"interfaces, and with port 0, which -check uses, on a free port")
	flags.StringVar(&opts.seed, "seed", "", "start with the pets in `file`, a JSON array")
	flags.BoolVar(&opts.stdin, "stdin", false, "stop when standard input ends,\n"+
		"for example because the test that started it has ended")
	flags.BoolVar(&opts.log, "log", false, "log the requests that are recorded, and those under /__admin\n"+
		"that may change something")
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
	return flags
}

// parseFlags parses the arguments. For -h, it returns flag.ErrHelp.
func parseFlags(args []string) (options, error) {
	var opts options
	flags := newFlags(&opts)
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	opts.command = flags.Args()
	isSet := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { isSet[f.Name] = true })
	for _, name := range checkFlags {
		if isSet[name] && !opts.check {
			return opts, fmt.Errorf("-%s needs -check", name)
		}
	}
	switch {
	case opts.check && len(opts.command) == 0:
		return opts, errors.New("-check needs the command that runs the client")
	case opts.check && opts.stdin:
		return opts, errors.New("-check and -stdin exclude each other")
	case opts.operation != "" && !slices.Contains(faultOperations(), opts.operation):
		return opts, fmt.Errorf("-operation is %s; it must be %s", quote(opts.operation), orList(faultOperations()))
	case opts.skip < 0:
		return opts, fmt.Errorf("-skip is %d; it must be 0 or more", opts.skip)
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

func printHelp(w io.Writer) error {
	var help strings.Builder
	fmt.Fprintf(&help, helpText, maxKey)
	flags := newFlags(new(options))
	flags.SetOutput(&help)
	flags.PrintDefaults()
	_, err := io.WriteString(w, help.String())
	return err
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

// rootURL returns the URL under which a client on this machine reaches addr,
// such as http://127.0.0.1:8080.
func rootURL(addr net.Addr) string {
	tcp := addr.(*net.TCPAddr)
	if tcp.IP.IsUnspecified() {
		return fmt.Sprintf("http://127.0.0.1:%d", tcp.Port)
	}
	return (&url.URL{Scheme: "http", Host: tcp.String()}).String() // which escapes a zone
}

// runServer serves s on ln, and prints its base URL. Once s.ctx is done, which ends all waits, it
// answers the requests in flight, for durations.stop at most, and returns nil. It returns an error
// if it cannot serve or print.
func runServer(ln net.Listener, s *service, stdout io.Writer) error {
	srv := newServer(s)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	if _, err := fmt.Fprintln(stdout, rootURL(ln.Addr())+"/v1"); err != nil {
		return fmt.Errorf("cannot print the base URL: %w", err)
	}
	select {
	case err := <-served:
		return err
	case <-s.ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.durations.stop)
	defer cancel()
	srv.Shutdown(ctx) // requests that are still in flight end with the process
	return nil
}

// newServer returns an HTTP server for s, with timeouts for slow clients.
func newServer(s *service) *http.Server {
	return &http.Server{
		Handler:           s,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: s.durations.readHeader,
		ReadTimeout:       s.durations.read,
		// Longer than the time for a body, a delay, an answer-delay and the pauses of a drip.
		WriteTimeout:   90 * time.Second,
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
func (p process) check(ctx context.Context, opts options) (count int, err error) {
	key, seed, err := p.keyAndSeed(opts)
	if err != nil {
		return 0, err
	}
	p.warnOfFlags(opts.command)
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as it is after nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(ctx, signals...)
	defer stop()
	ignoreStop := context.AfterFunc(ctx, func() { p.onStop(3*grace, 2) }) // the client ends in less than that
	defer ignoreStop()
	c := &checker{opts: opts, key: key, seed: seed, stderr: p.stderr, limit: maxRun, grace: grace}
	usual, operation, err := c.runUsually(ctx)
	if err != nil {
		return 0, err
	}
	out := bufio.NewWriter(p.stdout) // each Flush returns the first error
	fmt.Fprintln(out, "fault      exit seconds  pets  answers              finding")
	printRow(out, operation, usual, verdict{fault: "none"})
	verdicts, err := c.runFaults(ctx, out, operation, usual)
	if err != nil {
		return 0, err
	}
	fmt.Fprintln(out)
	printWaysOut(out, verdicts)
	printUntested(out, operation, usual, verdicts)
	count = printSummary(out, operation, opts.skip, usual, verdicts)
	err = out.Flush()
	noResult := faultsOf(verdicts, func(v verdict) bool { return v.noResult })
	switch {
	case err != nil:
		return 0, err
	case ctx.Err() != nil:
		return 0, errInterrupted
	case noResult != nil:
		return 0, fmt.Errorf("with %s, the client sends no request that gets the fault: does it reset petstore, "+
			"is a time limit over before it sends anything, or does a result, a lock or a circuit breaker "+
			"of an earlier run last? (go test needs -count=1)", strings.Join(noResult, ", "))
	}
	return count, nil
}

// errInterrupted says that a signal has ended a check.
var errInterrupted = errors.New("interrupted")

// warnOfFlags warns of flags for -check that come after the command, and so are arguments of
// the client.
func (p process) warnOfFlags(command []string) {
	for _, arg := range command[1:] {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if strings.HasPrefix(arg, "-") && slices.Contains(checkFlags, name) {
			fmt.Fprintf(p.stderr, "petstore: -%s comes before -check's command, if it is petstore's; here, the client gets it\n", name)
		}
	}
}

// What runs a client.

// The limits of a run.
const (
	maxRun      = time.Minute // of the first run; each later one may take a minute more than that
	grace       = time.Second // between a signal and the interrupt of a client, and then until it is killed
	maxRequests = 10_000      // recorded or not
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
		{"after:500", "code=after:500&times=1"},
		{"after:504", "code=after:504&times=1"},
	}
	for _, e := range wordEffects {
		if e != noEffect && e.code != "newer" {
			faults = append(faults, checkedFault{e.code, "code=" + e.code + "&times=1"})
		}
	}
	return append(faults,
		checkedFault{"newer", "code=newer"}, // for all requests, as a service that has a new member keeps it
		checkedFault{"late", "answer-delay=30&times=1"})
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
	opts   options
	key    string // if it is empty, each run has another one
	seed   *store
	stderr io.Writer
	limit  time.Duration // for a run
	grace  time.Duration // as the constant, except in tests
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
		return nil, "", fmt.Errorf("without a fault, the client does not do the same twice: %s, and then %s", first, second)
	}
	return usual, operation, nil
}

// runFaults runs the client with each of the chosen faults, and prints a row for each run. Of a
// run, only the verdict is kept, as its requests can be large.
func (c *checker) runFaults(ctx context.Context, out *bufio.Writer, operation string,
	usual *clientRun) (verdicts []verdict, err error) {
	var output io.Writer // nil drops what the client prints
	if c.opts.only != nil {
		output = c.stderr
	}
	looks := false
	for _, f := range checkedFaults() {
		if c.opts.only != nil && !slices.Contains(c.opts.only, f.name) {
			continue
		}
		out.Flush()
		run, err := c.run(ctx, fmt.Sprintf("%s&operation=%s&skip=%d", f.query, operation, c.opts.skip), output)
		if err != nil {
			return nil, err
		}
		v := verdict{fault: f.name, noResult: run.struck == nil, isAccepted: slices.Contains(c.opts.accept, f.name)}
		if !v.noResult {
			v.judge(compare(run, usual, looks))
			looks = looks || run.failsUnperformed()
		}
		verdicts = append(verdicts, v)
		if output != nil {
			fmt.Fprintln(output) // or the row could follow what the client has printed, on the same line
		}
		printRow(out, operation, run, v)
	}
	return verdicts, nil
}

// run runs the client with a petstore that has this fault, a query of PUT /__admin/fault. What
// the client prints goes to output, if that is not nil.
func (c *checker) run(ctx context.Context, fault string, output io.Writer) (*clientRun, error) {
	petstore, err := c.startPetstore(fault)
	if err != nil {
		return nil, err
	}
	return c.runClient(ctx, petstore, output)
}

// petstoreOfRun is the petstore of a run. Each run has another one, with another port and key,
// unless they are given. So what a run leaves behind, such as a process that goes on repeating,
// does not reach the petstore of the next one.
type petstoreOfRun struct {
	service    *service
	fault      *standingFault
	server     *http.Server
	root       string             // its URL
	served     atomic.Int64       // the number of requests, recorded or not
	connected  context.Context    // that of the connections
	disconnect context.CancelFunc // ends connected, as if all clients had left
}

func (c *checker) startPetstore(fault string) (*petstoreOfRun, error) {
	s := newService(context.Background(), cmp.Or(c.key, newKey()), c.seed, newLog(c.stderr, c.opts.log))
	s.journal.keeps = maxRequests
	w := s.journal.currentWorld()
	query, _ := url.ParseQuery(fault)
	standing, err := parseStandingFault(w.ctx, &arguments{given: query, listed: standingFaultNames})
	if err != nil {
		return nil, err
	}
	w.setStanding(standing)
	ln, err := listen(c.opts.addr)
	if err != nil {
		return nil, err
	}
	p := &petstoreOfRun{service: s, fault: standing, server: newServer(s), root: rootURL(ln.Addr())}
	p.connected, p.disconnect = context.WithCancel(context.Background())
	p.server.BaseContext = func(net.Listener) context.Context { return p.connected }
	p.server.Handler = p
	go p.server.Serve(ln)
	return p, nil
}

// ServeHTTP answers a request, unless there have been too many.
func (p *petstoreOfRun) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.served.Add(1) > maxRequests {
		p.disconnect()
		panic(http.ErrAbortHandler)
	}
	p.service.ServeHTTP(w, r)
}

// end ends the requests, and returns them, and the first one that got the fault, or nil.
func (p *petstoreOfRun) end() (requests []*entry, struck *entry) {
	// If a client has sent anything after a request, net/http does not notice that it leaves.
	p.disconnect()
	p.server.Close()
	p.service.journal.settle()
	requests = p.service.journal.read(nil, 0).ended
	for _, e := range requests {
		if slices.Contains(p.fault.faults, e.Fault) {
			return requests, e
		}
	}
	return requests, nil
}

// runClient runs the client, and then ends its petstore. It ends the client when ctx is done, the
// time is over, or the client has sent too many requests.
func (c *checker) runClient(ctx context.Context, petstore *petstoreOfRun, output io.Writer) (*clientRun, error) {
	running, cut := context.WithTimeout(ctx, c.limit)
	defer cut()
	context.AfterFunc(petstore.connected, cut)
	cmd := exec.CommandContext(running, c.opts.command[0], c.opts.command[1:]...)
	cmd.Env = append(os.Environ(), petstore.environment()...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.Cancel = func() error {
		if ctx.Err() != nil {
			// A terminal sends Ctrl-C to the client, too. A second interrupt would make some
			// clients stop cleaning up, so it first gets the time for that.
			time.Sleep(c.grace)
		}
		return cmd.Process.Signal(os.Interrupt) // so that it can end what it has started
	}
	cmd.WaitDelay = c.grace // after which it is killed
	started := time.Now()
	err := cmd.Run()
	isFlood := petstore.served.Load() > maxRequests
	run := &clientRun{
		base:     petstore.root + "/v1",
		exitCode: cmd.ProcessState.ExitCode(),
		took:     time.Since(started),
		isCut:    isFlood || running.Err() != nil, // as a flood cuts the run a moment later
		isFlood:  isFlood,
	}
	run.requests, run.struck = petstore.end()
	switch {
	case ctx.Err() != nil:
		return nil, errInterrupted
	case cmd.ProcessState == nil && strings.Contains(c.opts.command[0], " "):
		return nil, fmt.Errorf("%w; arguments are separate words, as in -check sh client.sh", err)
	case cmd.ProcessState == nil:
		return nil, err
	}
	return run, nil
}

func (p *petstoreOfRun) environment() []string {
	noProxy := cmp.Or(os.Getenv("no_proxy"), os.Getenv("NO_PROXY"))
	if noProxy != "*" { // which means all hosts only if it is alone
		host, _, _ := net.SplitHostPort(strings.TrimPrefix(p.root, "http://"))
		noProxy = host + ",localhost," + noProxy
	}
	return []string{
		"PETSTORE_URL=" + p.root + "/v1",
		"PETSTORE_API_KEY=" + p.service.key,
		"NO_PROXY=" + noProxy,
		"no_proxy=" + noProxy,
	}
}

// outline says what must be the same in two runs without a fault.
func (r *clientRun) outline(operation string) string {
	return fmt.Sprintf("exit code %d, %s, %d %s", r.exitCode, quantity(r.pets(), "pet"), len(r.of(operation)), operation)
}

// hasSucceeded reports whether the client has ended by itself, and says that it has succeeded.
func (r *clientRun) hasSucceeded() bool { return r.exitCode == 0 && !r.isCut }

// failsUnperformed reports whether the client says that it has failed, after a fault with which
// the operation was not performed.
func (r *clientRun) failsUnperformed() bool {
	return r.exitCode > 0 && !r.isCut && r.struck.Fault.effect.skipsOperation
}

// pets returns the number of pets that the client has added.
func (r *clientRun) pets() int {
	return len(filter(r.requests, func(e *entry) bool { return e.Pet != 0 }))
}

// of returns the requests for an operation.
func (r *clientRun) of(operation string) []*entry {
	return filter(r.requests, func(e *entry) bool { return e.Operation == operation })
}

// filter returns the requests that match.
func filter(requests []*entry, matches func(*entry) bool) (list []*entry) {
	for _, e := range requests {
		if matches(e) {
			list = append(list, e)
		}
	}
	return list
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
	switch {
	case r.isFlood || len(r.requests) >= maxEnded:
		return "", fmt.Errorf("sends %d requests or more, which is too many for a check", maxEnded)
	case r.isCut:
		return "", errors.New("does not end within a minute")
	case r.exitCode != 0:
		return "", fmt.Errorf("exits with %d (its output is above)", r.exitCode)
	case len(r.requests) == 0:
		return "", fmt.Errorf("sends no request to %s: does it read PETSTORE_URL? (go test needs -count=1)", r.base)
	}
	operation := cmp.Or(given, r.requests[0].Operation)
	if given == "" && r.pets() > 0 {
		operation = "createPet"
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
	noPause = 50 * time.Millisecond // a shorter time between two tries is no pause
	slack   = maxNotice             // for timers, and for petstore to notice that a client has left
)

// comparison is a run in which a request got the fault, beside the usual run, which has no fault.
type comparison struct {
	*clientRun
	usual *clientRun
	looks bool   // whether an earlier run shows that the client fails if the operation is not performed
	equal *group // the requests that are equal to the struck one; if none is usual, those in its place
	tries *group // the group with the repetitions, if there are any
	alike bool   // whether these are equal to the struck request but for numbers
}

// group is requests of both runs that are alike.
type group struct{ sent, usual []*entry }

// surplus returns how many more were sent than usual. It is 0 if none is usual.
func (g *group) surplus() int {
	if len(g.usual) == 0 {
		return 0
	}
	return len(g.sent) - len(g.usual)
}

// compare compares a run in which a request got the fault with the usual one. It looks for
// repetitions among the requests that are equal to the struck one, then among other equal ones, as
// a client may begin anew with its first request, then among those that are equal but for numbers,
// as a name may be made anew for each try, and then among all for the operation.
func compare(run, usual *clientRun, looks bool) comparison {
	all := &group{run.of(run.struck.Operation), usual.of(run.struck.Operation)}
	groupOf := groupBy(content, all)
	equal := groupOf[run.struck]
	if equal.usual == nil { // as a name is made anew for each run
		place := min(slices.Index(all.sent, run.struck), len(all.usual)-1)
		equal.usual = groupOf[all.usual[place]].usual
	}
	tries := equal
	if tries.surplus() <= 0 {
		bySurplus := func(a, b *entry) int { return cmp.Compare(groupOf[a].surplus(), groupOf[b].surplus()) }
		tries = groupOf[slices.MaxFunc(all.sent, bySurplus)]
	}
	if tries.surplus() <= 0 {
		tries = groupBy(contentButNumbers, all)[run.struck]
	}
	alike := tries.surplus() > 0 && slices.Contains(tries.sent, run.struck)
	if tries.surplus() <= 0 {
		tries = all
	}
	return comparison{run, usual, looks, equal, tries, alike}
}

// groupBy returns the group of each request: those with the same key are in one.
func groupBy(key func(*entry) identity, all *group) map[*entry]*group {
	groups := map[identity]*group{}
	groupOf := map[*entry]*group{}
	for _, e := range slices.Concat(all.sent, all.usual) {
		k := key(e)
		if groups[k] == nil {
			groups[k] = &group{}
		}
		groupOf[e] = groups[k]
	}
	for _, e := range all.sent {
		groupOf[e].sent = append(groupOf[e].sent, e)
	}
	for _, e := range all.usual {
		groupOf[e].usual = append(groupOf[e].usual, e)
	}
	return groupOf
}

// content is what a client sends. It has no User-Agent, as some clients count their tries in it,
// and no period, as each run has a journal of its own. The members of a body that the entry has
// whole are in order, as some languages write them in another order each time.
func content(e *entry) identity {
	id := e.identity()
	id.period, id.userAgent = nil, ""
	var body any
	dec := json.NewDecoder(strings.NewReader(id.body))
	dec.UseNumber() // as different integers can be the same float64
	if json.Valid([]byte(id.body)) && dec.Decode(&body) == nil {
		id.body = string(encodeJSON(body))
	}
	return id
}

// contentButNumbers is the content without the numbers of its body.
func contentButNumbers(e *entry) identity {
	id := content(e)
	id.body = anyNumber.ReplaceAllString(id.body, "#")
	return id
}

// anyNumber matches a number, also a hexadecimal one if it has a decimal digit.
var anyNumber = regexp.MustCompile(`[0-9a-fA-F-]*[0-9][0-9a-fA-F-]*`)

// A rule is what a client must not do. There is none against what it may do for a good reason,
// such as not to try again.
type rule struct {
	wayOut string                  // what the client can do instead
	judge  func(comparison) string // returns how the client has broken the rule, or ""
}

// The ways out that several rules have, and the long ones.
const (
	lookFirst = "Repeat only the request that failed, and a POST only if it was not performed, as after a refused " +
		"connection, a 429 or a 503. Else look first whether the pet is there, or report that it is not known."
	readWhole = "Read each answer: fail if its status is an error, or a part of its body is missing."
	sendAnew  = "Send each request anew with its body, its headers and the key. With an id such as undefined, the client " +
		"has taken another answer for a pet."
	stayWithIt = "Do not repeat what is answered with a 400 or a 401: the answer stays the same."
	waitLonger = "Wait before each repetition: for as long as Retry-After asks, in seconds or by a date, or, " +
		"without one, twice as long each time."
)

// rules are judged one by one.
var rules = []rule{
	// How long the client runs, and how it ends.
	{"Limit the number of tries, or the time for all of them.", func(c comparison) string {
		return when(c.isCut && c.repeated() > 1, "still repeats after %s (%d times)", c.cutAfter(), c.repeated())
	}},
	{"End when a request fails.", func(c comparison) string {
		return when(c.isCut && c.repeated() <= 1, "does not end within %s", c.cutAfter())
	}},
	{"Treat an answer that cannot be read as a failure.", func(c comparison) string {
		return when(c.exitCode < 0 && !c.isCut, "is ended by a signal")
	}},
	{"Set a time limit for the whole answer, below 25 seconds.", func(c comparison) string {
		return when(c.struck.duration() > maxWait, "still waits after %.0f s", maxWait.Seconds())
	}},

	// Which pets it adds.
	{lookFirst, func(c comparison) string {
		return when(c.pets() > c.usual.pets(), "adds %d pets instead of %d", c.pets(), c.usual.pets())
	}},
	{readWhole, func(c comparison) string {
		return when(c.hasSucceeded() && c.pets() < c.usual.pets(),
			"exits with 0, but has added %d of %d pets", c.pets(), c.usual.pets())
	}},

	// What it makes of answers.
	{readWhole, func(c comparison) string {
		hasAdded := c.hasSucceeded() && c.pets() == c.usual.pets()
		return when(hasAdded && c.lacksAnswer() && !c.isMended(), "exits with 0, though an answer %s", c.struck.fate())
	}},
	{"Ignore members that are not known.", func(c comparison) string {
		isRight := c.struck.isUsable() && c.struck.duration() < slack
		return when(c.exitCode != 0 && !c.isCut && isRight, "fails, although the answer is right")
	}},

	// What it sends.
	{sendAnew, func(c comparison) string {
		for _, e := range c.requests {
			if e.Fault == nil && slices.Contains([]int{400, 401, 413, 415}, e.Status) {
				what := cmp.Or(e.Operation, shorten(e.Method+" "+e.URL))
				return fmt.Sprintf("sends a %s that is refused: %d, %s", what, e.Status, e.Error)
			}
		}
		return ""
	}},

	// What it repeats, and when.
	{stayWithIt, func(c comparison) string {
		return when(c.struck.Status == 400 && c.alike, "repeats the request after a 400")
	}},
	{stayWithIt, func(c comparison) string { // but each one once is right, as the key may have been read anew
		isOften := c.repeated() > len(c.tries.usual)
		return when(c.struck.Status == 401 && isOften, "repeats the request %d times after a 401", c.repeated())
	}},
	{waitLonger, func(c comparison) string {
		asked, _ := c.struck.Fault.pause()
		first := c.firstRepetition()
		if first == nil || first.since(c.struck) >= asked-slack {
			return ""
		}
		return fmt.Sprintf("repeats after %.2f s, although Retry-After asks for %.0f s",
			first.since(c.struck).Seconds(), asked.Seconds())
	}},
	{waitLonger, func(c comparison) string {
		asked, _ := c.struck.Fault.pause()
		atOnce := 0
		for i, e := range c.repetitions() {
			if e.since(c.tries.sent[i]) < noPause {
				atOnce++
			}
		}
		// Each one once is right, as its connection may have been closed.
		isWrong := atOnce > len(c.tries.usual) && asked == 0 && c.struck.Status != 401
		return when(isWrong, "repeats %d times after less than %d ms", atOnce, noPause.Milliseconds())
	}},
}

// when returns a finding if a rule is broken, and else "".
func when(isBroken bool, format string, values ...any) string {
	if !isBroken {
		return ""
	}
	return fmt.Sprintf(format, values...)
}

// cutAfter says after what the client was ended.
func (r *clientRun) cutAfter() string {
	if r.isFlood {
		return fmt.Sprintf("%d requests", maxRequests)
	}
	return fmt.Sprintf("%.0f s", r.took.Seconds())
}

// repetitions returns the tries beyond the usual number. Which of them are repetitions cannot be
// known, so these are the last ones.
func (c comparison) repetitions() []*entry {
	return c.tries.sent[min(len(c.tries.usual), len(c.tries.sent)):]
}

func (c comparison) repeated() int { return len(c.repetitions()) }

// firstRepetition returns the first repetition of the struck request, or nil. The next equal one is
// a repetition, too, if it comes too early: a read if the client usually pauses before it, and a
// POST if it comes earlier than usual.
func (c comparison) firstRepetition() *entry {
	sent, usual := c.equal.sent, c.equal.usual
	next := slices.Index(sent, c.struck) + 1
	if next < len(sent) && next < len(usual) {
		pause := usual[next].since(usual[next-1])
		isRead := c.struck.Method != "POST"
		isAtOnce := pause < usual[next-1].duration()+slack
		if isRead && !isAtOnce || !isRead && sent[next].since(c.struck) < pause-slack {
			return sent[next]
		}
	}
	if c.repeated() > 0 {
		return c.repetitions()[0]
	}
	return nil
}

// lacksAnswer reports whether the client has fewer usable answers than usual, as the struck
// request got none.
func (c comparison) lacksAnswer() bool {
	usable := filter(c.of(c.struck.Operation), suffices)
	return !suffices(c.struck) && len(usable) < len(c.usual.of(c.struck.Operation))
}

// suffices reports whether a client got as much of an answer as it wants. If it has left a success
// at once, and not after a time limit, it has read enough.
func suffices(e *entry) bool {
	hasReadEnough := e.hasLeft && e.Status/100 == 2 && e.duration() < slack
	return e.isUsable() || hasReadEnough
}

// fate says what became of an answer that the client cannot use, as the request got a fault.
func (e *entry) fate() string {
	switch {
	case e.hasLeft && e.Status > 0:
		return "was not read to its end"
	case e.hasLeft:
		return "came too late"
	case e.Status == 0:
		return "was lost"
	case e.Status >= 400:
		return "was an error"
	case e.Fault.effect.end == endComplete:
		return "was no JSON"
	}
	return "was cut"
}

// isMended reports whether the client has read later what the struck request did not give it: by
// an equal request, or by one for another operation. Of that, it sends more than usual, or it is a
// client that looks. A request that adds a pet reads nothing.
func (c comparison) isMended() bool {
	isRead := func(e *entry) bool { return e.Arrived > c.struck.Arrived && e.isUsable() && e.Pet == 0 }
	isLook := func(e *entry) bool {
		isUnusual := len(c.of(e.Operation)) > len(c.usual.of(e.Operation))
		return isRead(e) && e.Operation != c.struck.Operation && (isUnusual || c.looks)
	}
	return slices.ContainsFunc(c.equal.sent, isRead) || slices.ContainsFunc(c.requests, isLook)
}

// What prints the verdicts.

// verdict is what is found in a run.
type verdict struct {
	fault       string // its name
	noResult    bool   // whether no request got the fault; then nothing is found
	isAccepted  bool   // whether the findings do not count
	findings    []string
	waysOut     []string // of the rules that are broken
	notRepeated bool     // whether no repetition was seen after a 429 or a 503
	hasPet      bool     // whether the answer with the fault had a pet
}

func (v *verdict) judge(c comparison) {
	for _, r := range rules {
		if text := r.judge(c); text != "" {
			v.findings = append(v.findings, text)
			v.waysOut = append(v.waysOut, r.wayOut)
		}
	}
	isBusy := c.struck.Status == 429 || c.struck.Status == 503
	v.notRepeated = isBusy && c.firstRepetition() == nil
	v.hasPet = strings.Contains(c.struck.Answer, `"id":`)
}

func printRow(w io.Writer, operation string, run *clientRun, v verdict) {
	findings := strings.Join(v.findings, "; ")
	switch {
	case v.noResult:
		findings = "no result: no request gets the fault"
	case v.isAccepted && findings != "":
		findings += "; accepted"
	}
	row := fmt.Sprintf("%-10s %4d %7.1f %5d  %-19s  %s", v.fault, run.exitCode, run.took.Seconds(),
		run.pets(), run.answers(operation), findings)
	fmt.Fprintln(w, strings.TrimRight(printable(row), " "))
}

// answers lists the answers to the requests for the operation, from the struck one on: the status,
// with ! if it is that of a success that cannot be used, or - for no answer. Equal ones in a row are
// counted, as in "503 x12". Of more than five, there are the first four.
func (r *clientRun) answers(operation string) string {
	requests := r.of(operation)
	var answers []string
	last, count := "", 0
	for _, e := range requests[max(0, slices.Index(requests, r.struck)):] {
		answer := strconv.Itoa(e.Status)
		if e.Status == 0 {
			answer = "-"
		} else if e.Status < 300 && !e.isUsable() {
			answer += "!"
		}
		if answer == last {
			count++
			answers[len(answers)-1] = fmt.Sprintf("%s x%d", answer, count)
			continue
		}
		answers = append(answers, answer)
		last, count = answer, 1
	}
	if len(answers) > 5 {
		answers = append(answers[:4], "…")
	}
	return strings.Join(answers, " ")
}

// printWaysOut prints what the client can do instead of what was found and not accepted. There is
// one line for each way out, with the faults that it is for.
func printWaysOut(w io.Writer, verdicts []verdict) {
	var waysOut []string
	for _, v := range verdicts {
		for _, wayOut := range v.waysOut {
			if !v.isAccepted && !slices.Contains(waysOut, wayOut) {
				waysOut = append(waysOut, wayOut)
			}
		}
	}
	for _, wayOut := range waysOut {
		faults := faultsOf(verdicts, func(v verdict) bool { return !v.isAccepted && slices.Contains(v.waysOut, wayOut) })
		fmt.Fprintf(w, "%s: %s\n", strings.Join(faults, ", "), wayOut)
	}
}

// printUntested prints what was not tested, which is no finding.
func printUntested(w io.Writer, operation string, usual *clientRun, verdicts []verdict) {
	for _, other := range faultOperations() {
		if other != operation && len(usual.of(other)) > 0 {
			fmt.Fprintf(w, "%s was not tested: -operation %[1]s\n", other)
		}
	}
	withoutPet := faultsOf(verdicts, func(v verdict) bool {
		return (v.fault == "newer" || v.fault == "malformed") && !v.noResult && !v.hasPet
	})
	if withoutPet != nil {
		fmt.Fprintln(w, "the answer had no pet, so newer and malformed test little: -seed adds some")
	}
	if names := faultsOf(verdicts, func(v verdict) bool { return v.notRepeated }); names != nil {
		fmt.Fprintf(w, "Never repeated after: %s.\n", strings.Join(names, ", "))
	}
	notFound := faultsOf(verdicts, func(v verdict) bool { return v.isAccepted && !v.noResult && len(v.findings) == 0 })
	if notFound != nil {
		fmt.Fprintf(w, "accepted, but not found: %s\n", strings.Join(notFound, ","))
	}
}

// faultsOf returns the names of the faults whose verdicts match.
func faultsOf(verdicts []verdict, matches func(verdict) bool) (names []string) {
	for _, v := range verdicts {
		if matches(v) {
			names = append(names, v.fault)
		}
	}
	return names
}

// printSummary prints the last line, and returns how many findings count.
func printSummary(w io.Writer, operation string, skip int, usual *clientRun, verdicts []verdict) (count int) {
	accepted, noResult := 0, 0
	for _, v := range verdicts {
		switch {
		case v.noResult:
			noResult++
		case v.isAccepted:
			accepted += len(v.findings)
		default:
			count += len(v.findings)
		}
	}
	summary := quantity(count, "finding")
	if accepted > 0 {
		summary += fmt.Sprintf(", %d accepted,", accepted)
	}
	summary += fmt.Sprintf(" with %s of %s", quantity(len(verdicts), "fault"), operation)
	if noResult > 0 {
		summary += fmt.Sprintf(", %d without a result", noResult)
	}
	if n := len(usual.of(operation)); n > 1 {
		summary += fmt.Sprintf(", request %d of %d: -skip chooses another", skip+1, n)
	}
	fmt.Fprintln(w, summary+" (- is no answer, ! one that cannot be used)")
	return count
}

// quantity returns a number of things, such as "1 run" or "2 runs".
func quantity(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprint(n, " ", noun)
}
