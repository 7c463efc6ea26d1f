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
	"syscall"
	"time"
	"unicode"
)

// apiVersion is the version of the API (contract, section 9).
const apiVersion = "1.0.0"

func main() {
	// Without this, a write to standard output or standard error would end the
	// process after the reader of that pipe has gone. To ignore the signal would have a
	// client that is checked ignore it, too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(run(context.Background(), exitIfStuck, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}

// maxStop is how long a stop may take.
const maxStop = time.Second

// exitIfStuck ends the process when a stop that begins now has taken too long: it can be
// blocked by whatever a goroutine waits for, such as a reader of standard error.
func exitIfStuck() {
	time.Sleep(maxStop)
	os.Exit(0)
}

// run is petstore: it serves until it is stopped, or checks a client, or only prints the
// help or the version. It prints why it fails, and returns the exit code.
func run(ctx context.Context, onStop func(), args []string,
	getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) (exitCode int) {
	fail := func(exitCode int, err error) int {
		// An argument, or a seed, may have characters that control a terminal.
		message := strings.Map(func(c rune) rune {
			if unicode.IsControl(c) {
				return ' '
			}
			return c
		}, err.Error())
		fmt.Fprintln(stderr, "petstore:", message)
		return exitCode
	}
	opts, err := parseFlags(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return fail(2, fmt.Errorf("%w; -h lists the flags", err))
	case opts.check:
		findings, err := check(ctx, opts, getenv, stdout, stderr)
		if err != nil {
			return fail(2, err) // as 1 says that the client does something wrong
		}
		if findings > 0 {
			return fail(1, errors.New("the client does something wrong; -accept leaves out what is intended"))
		}
	case opts.version:
		if err := printVersion(stdout); err != nil {
			return fail(1, err)
		}
	default:
		if err := serve(ctx, onStop, opts, getenv, stdin, stdout, stderr); err != nil {
			return fail(1, err)
		}
	}
	return 0
}

// errInputEnded is why petstore stops when standard input has ended.
var errInputEnded = errors.New("standard input has ended")

// serve serves until ctx is done, a signal arrives or, with -stdin, standard input ends, and
// then returns nil. When it begins to stop, it calls onStop in a goroutine.
func serve(ctx context.Context, onStop func(), opts options,
	getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) error {
	key, seed, err := prepare(opts, getenv)
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
	context.AfterFunc(ctx, onStop)
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

// prepare returns the key, which may be empty, and the pets of -seed. It also sets how
// often garbage is collected.
func prepare(opts options, getenv func(string) string) (key string, seed *store, err error) {
	key = getenv("PETSTORE_API_KEY")
	if err := validateKey(key); err != nil {
		return "", nil, err
	}
	if strings.Contains(getenv("GODEBUG"), "httpmuxgo121=1") {
		return "", nil, errors.New("with httpmuxgo121=1 in GODEBUG, net/http would find no path; remove it")
	}
	if getenv("GOGC") == "" {
		debug.SetGCPercent(200) // as garbage is most of the memory, this halves the time for it
	}
	seed, err = readSeedFile(opts.seed)
	return key, seed, err
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
	flags.BoolVar(&opts.check, "check", false, "run a client without a fault and then with each fault, and print what it\n"+
		"does wrong; the client finds the base URL in PETSTORE_URL and the key\n"+
		"in PETSTORE_API_KEY, and must exit with 0 only if it has succeeded")
	flags.Func("accept", "with -check, do not count what is found with these `faults`, such as lost,stall", opts.accept.parse)
	flags.Func("only", "with -check, run the client with these `faults` only, and show what it prints;\n"+
		"the faults are "+strings.Join(checkedNames(), ","), opts.only.parse)
	flags.StringVar(&opts.operation, "operation", "", "with -check, the `name` of the operation that the faults are for:\n"+
		orList(faultOperations())+"; by default it is createPet or,\n"+
		"if the client adds no pet, that of its first request")

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
	case !opts.check && (isSet["accept"] || isSet["only"] || isSet["operation"]):
		return opts, errors.New("-accept, -only and -operation need -check")
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

// The check of a client: the faults, the runs, and what is wrong in them. All that is said
// of a run follows from its exit code, its time and its journal, beside those of the usual
// run, which has no fault.

// checkedFault is a fault with which a client is checked. The query is that of PUT
// /__admin/fault. The meaning is empty if it is that of the code.
type checkedFault struct{ name, query, meaning string }

func checkedFaults() []checkedFault {
	faults := []checkedFault{
		{name: "400", query: "code=400&times=1"},
		{name: "401", query: "code=401"},
		{name: "429", query: "code=429&times=1&retry-after=3"},
		{name: "503", query: "code=503&times=1&retry-after=date:3"},
		{name: "503-all", query: "code=503&retry-after=none"},
	}
	for _, e := range wordEffects {
		if e != noEffect {
			faults = append(faults, checkedFault{name: e.code, query: "code=" + e.code + "&times=1"})
		}
	}
	return append(faults, checkedFault{
		name:    "late",
		query:   "answer-delay=30&times=1",
		meaning: "After the operation, the answer waits for 30 seconds. Does the client stop waiting, and add no pet twice?",
	})
}

func checkedNames() []string {
	var names []string
	for _, f := range checkedFaults() {
		names = append(names, f.name)
	}
	return names
}

// explain returns the meaning of the fault or, if that is empty, what api/openapi.json says
// of its code.
func (f checkedFault) explain() string {
	if f.meaning != "" {
		return f.meaning
	}
	var api struct {
		Components struct {
			Schemas map[string]struct {
				OneOf []struct {
					Enum                 []string
					Pattern, Description string
				}
			}
		}
	}
	err := json.Unmarshal(openAPI, &api)
	query, _ := url.ParseQuery(f.query)
	code := query.Get("code")
	for _, one := range api.Components.Schemas["FaultCode"].OneOf {
		if slices.Contains(one.Enum, code) || one.Enum == nil && regexp.MustCompile(one.Pattern).MatchString(code) {
			return one.Description
		}
	}
	panic(fmt.Sprintf("api/openapi.json has no code %s (error: %v)", code, err))
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

// check runs a client twice without a fault, and then with each of the chosen faults. It
// prints what the client does wrong, and returns how many findings count. The error says
// why the client cannot be checked.
func check(ctx context.Context, opts options, getenv func(string) string, stdout, stderr io.Writer) (count int, err error) {
	key, seed, err := prepare(opts, getenv)
	if err != nil {
		return 0, err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := &checker{
		opts:    opts,
		key:     key,
		seed:    seed,
		noProxy: cmp.Or(getenv("no_proxy"), getenv("NO_PROXY")),
		stderr:  stderr,
		limit:   maxRun,
	}
	usual, operation, err := c.runUsually(ctx)
	if err != nil {
		return 0, err
	}
	out := bufio.NewWriter(stdout) // each Flush returns the first error
	fmt.Fprintln(out, "fault      exit seconds  pets  answers              finding")
	printRow(out, verdict{fault: checkedFault{name: "none"}, run: usual})
	var verdicts []verdict
	for _, f := range checkedFaults() {
		if opts.only != nil && !slices.Contains(opts.only, f.name) {
			continue
		}
		out.Flush()
		var output io.Writer // nil drops what the client prints
		if opts.only != nil {
			output = stderr
		}
		run, err := c.run(ctx, f.query+"&operation="+operation, output)
		if err != nil {
			return 0, err
		}
		findings, err := run.findings(usual)
		if err != nil {
			return 0, fmt.Errorf("with %s, the client %w", f.name, err)
		}
		v := verdict{f, run, findings, slices.Contains(opts.accept, f.name)}
		verdicts = append(verdicts, v)
		if !v.isAccepted {
			count += len(findings)
		}
		if output != nil {
			fmt.Fprintln(output) // or the row could stand on the last line of the client
		}
		printRow(out, v)
	}
	printMeanings(out, verdicts)
	fmt.Fprintf(out, "\n%s with %s of %s (- is no answer)\n",
		quantity(count, "finding"), quantity(len(verdicts), "fault"), operation)
	printAdvice(out, operation, usual, verdicts)
	if err := out.Flush(); err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, errInterrupted
	}
	return count, nil
}

// errInterrupted says that a signal has ended a check.
var errInterrupted = errors.New("interrupted")

// verdict is what is found in the run with a fault.
type verdict struct {
	fault      checkedFault
	run        *clientRun
	findings   []string
	isAccepted bool // whether the findings do not count
}

// printRow prints the row of a run. Of more than five answers, it has the first four.
func printRow(w io.Writer, v verdict) {
	var answers []string
	for _, e := range v.run.requests {
		answer := "-"
		if e.Status != 0 {
			answer = strconv.Itoa(e.Status)
		}
		answers = append(answers, answer)
	}
	if len(answers) > 5 {
		answers = append(answers[:4], "…")
	}
	finding := strings.Join(v.findings, "; ")
	if v.isAccepted && finding != "" {
		finding += "; accepted"
	}
	row := fmt.Sprintf("%-10s %4d %7.1f %5d  %-19s  %s",
		v.fault.name, v.run.exitCode, v.run.took.Seconds(), v.run.pets(), strings.Join(answers, " "), finding)
	fmt.Fprintln(w, strings.TrimRight(row, " "))
}

// printMeanings prints what the faults with a finding mean. Those that mean the same have
// one line.
func printMeanings(w io.Writer, verdicts []verdict) {
	var meanings []string
	names := map[string][]string{} // by meaning
	for _, v := range verdicts {
		if v.findings == nil {
			continue
		}
		meaning := v.fault.explain()
		if names[meaning] == nil {
			meanings = append(meanings, meaning)
		}
		names[meaning] = append(names[meaning], v.fault.name)
	}
	for i, meaning := range meanings {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: %s\n", strings.Join(names[meaning], ", "), meaning)
	}
}

// printAdvice prints what was not tested or not found, and where to read on.
func printAdvice(w io.Writer, operation string, usual *clientRun, verdicts []verdict) {
	for _, other := range faultOperations() {
		if other != operation && len(usual.of(other)) > 0 {
			fmt.Fprintf(w, "%s was not tested: -operation %[1]s\n", other)
		}
	}
	hasPet := func(e *entry) bool { return strings.Contains(e.Answer, `{"id":`) }
	if !slices.ContainsFunc(usual.of(operation), hasPet) {
		fmt.Fprintln(w, "no answer had a pet, so newer and malformed test little: -seed adds some")
	}
	var notFound []string
	for _, v := range verdicts {
		if v.isAccepted && v.findings == nil {
			notFound = append(notFound, v.fault.name)
		}
	}
	if notFound != nil {
		fmt.Fprintf(w, "accepted, but not found: %s\n", strings.Join(notFound, ","))
	}
	if slices.ContainsFunc(verdicts, func(v verdict) bool { return v.findings != nil }) {
		fmt.Fprintln(w, `what a finding means, and a way out: docs/reference.md, "Check"`)
	}
}

// quantity returns a number of things, such as "1 run" or "2 runs".
func quantity(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprint(n, " ", noun)
}

// checker runs a client.
type checker struct {
	opts    options
	key     string // empty for another one in each run
	seed    *store
	noProxy string // hosts that the client is to reach without a proxy
	stderr  io.Writer
	limit   time.Duration // for a run
}

// clientRun is what a client has done in a run.
type clientRun struct {
	base     string // the base URL that it got
	exitCode int    // -1 if a signal has ended it
	took     time.Duration
	isCut    bool     // whether it was ended, as the limit was over
	requests []*entry // the journal
}

// run runs the client with a petstore of its own, so that what is left of the run cannot
// reach the next one, unless -addr and PETSTORE_API_KEY are the same for all. The fault is a
// query of PUT /__admin/fault. What the client prints goes to output, if that is not nil.
func (c *checker) run(ctx context.Context, fault string, output io.Writer) (*clientRun, error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	s := newService(ctx, cmp.Or(c.key, newKey()), c.seed, newLog(c.stderr, c.opts.log))
	// A client that repeats without an end must not push the request with the fault out of
	// the journal.
	s.journal.keeps = 100 * maxEnded
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
	srv := newServer(s)
	present, leave := context.WithCancel(context.Background()) // ends all requests
	defer leave()
	srv.BaseContext = func(net.Listener) context.Context { return present }
	go srv.Serve(ln)
	defer srv.Close()

	root := rootURL(ln.Addr())
	host, _, _ := net.SplitHostPort(strings.TrimPrefix(root, "http://"))
	noProxy := host + ",localhost," + c.noProxy
	limited, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	cmd := exec.CommandContext(limited, c.opts.command[0], c.opts.command[1:]...)
	cmd.Env = append(os.Environ(), "PETSTORE_URL="+root+"/v1", "PETSTORE_API_KEY="+s.key,
		"NO_PROXY="+noProxy, "no_proxy="+noProxy)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // so that it can end what it has started
	cmd.WaitDelay = time.Second                                           // before it is killed
	started := time.Now()
	err = cmd.Run()
	r := &clientRun{base: root + "/v1", took: time.Since(started), isCut: limited.Err() == context.DeadlineExceeded}
	switch {
	case ctx.Err() != nil:
		return nil, errInterrupted
	case cmd.ProcessState == nil && strings.Contains(c.opts.command[0], " "):
		return nil, fmt.Errorf("%w; arguments are separate words, as in -check sh client.sh", err)
	case cmd.ProcessState == nil:
		return nil, err
	}
	r.exitCode = cmd.ProcessState.ExitCode()
	// The client has left, which net/http may not notice, as after a byte too many.
	leave()
	srv.Close()
	s.journal.settle()
	r.requests = s.journal.read(nil, 0).ended
	return r, nil
}

// runUsually runs the client twice without a fault. It returns the first run, and the
// operation that is to get the faults. From then on, the limit of a run is longer by the
// time that the client usually takes.
func (c *checker) runUsually(ctx context.Context) (usual *clientRun, operation string, err error) {
	usual, err = c.run(ctx, "code=ok", c.stderr)
	if err != nil {
		return nil, "", err
	}
	operation, err = usual.chooseOperation(c.opts.operation)
	if err != nil {
		return nil, "", fmt.Errorf("without a fault, the client %w", err)
	}
	c.limit += usual.took
	again, err := c.run(ctx, "code=ok", nil)
	if err != nil {
		return nil, "", err
	}
	if first, second := usual.counts(), again.counts(); first != second {
		return nil, "", fmt.Errorf("without a fault, the client does not do the same twice: %s, and then %s", first, second)
	}
	return usual, operation, nil
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

// pets returns the number of pets that the client has added.
func (r *clientRun) pets() int {
	return len(r.sent(func(e *entry) bool { return e.Pet != 0 }))
}

// counts returns what must be the same in two runs without a fault.
func (r *clientRun) counts() string {
	text := fmt.Sprint("exit code ", r.exitCode)
	for _, operation := range faultOperations() {
		if n := len(r.of(operation)); n > 0 {
			text += fmt.Sprintf(", %d %s", n, operation)
		}
	}
	return text
}

// chooseOperation returns the operation that is to get the faults: the given one or, if that
// is empty, createPet if the client adds a pet, and else that of its first request. It
// returns an error if a run without a fault is not one to compare others with.
func (r *clientRun) chooseOperation(given string) (string, error) {
	for _, e := range r.requests {
		if !isUsable(e) {
			return "", fmt.Errorf("gets %d for %s %s: %s", e.Status, e.Method, e.URL, e.Error)
		}
	}
	operation := given
	switch {
	case r.isCut:
		return "", errors.New("does not end within a minute")
	case r.exitCode != 0:
		return "", fmt.Errorf("exits with %d (its output is above)", r.exitCode)
	case len(r.requests) == 0:
		return "", fmt.Errorf("sends no request to %s: does it read PETSTORE_URL? (go test needs -count=1)", r.base)
	case len(r.requests) >= maxEnded:
		return "", fmt.Errorf("sends %d requests or more, which is too many for a check", maxEnded)
	case given == "" && r.pets() > 0:
		operation = "createPet"
	case given == "":
		operation = r.requests[0].Operation
	}
	if len(r.of(operation)) == 0 {
		return "", fmt.Errorf("sends no request for %s", operation)
	}
	return operation, nil
}

// isUsable reports whether a request that has ended got an answer that its client can use.
func isUsable(e *entry) bool {
	isSpoilt := e.Fault != nil && e.Fault.effect.spoils && e.Method != "HEAD"
	return 200 <= e.Status && e.Status < 300 && e.Error == "" && !isSpoilt
}

// isRefused reports whether a request that has ended was refused on its own account. If its
// body was cut short, its client has left.
func isRefused(e *entry) bool {
	return e.Fault == nil && slices.Contains([]int{400, 401, 413, 415}, e.Status) && e.Error != bodyCutShort
}

// isEqual reports whether two requests are the same, as far as the journal has them.
func isEqual(a, b *entry) bool {
	return a.Method == b.Method && a.URL == b.URL && a.Body == b.Body
}

// The limits of what is right.
const (
	maxRun  = time.Minute            // for a run, beside the time that the client usually takes
	maxWait = 25 * time.Second       // for an answer; a stall takes 30
	prompt  = time.Second            // for an answer that no time limit of a client misses
	maxRate = 10                     // repetitions of a request in a second; more leave a service no time to recover
	slack   = 100 * time.Millisecond // for timers, and to notice that a client has left
)

// A rule is what a client must not do, and whether it has done so in a run.
type rule struct {
	isBroken bool
	finding  string
}

func newRule(isBroken bool, finding string, a ...any) rule {
	return rule{isBroken, fmt.Sprintf(finding, a...)}
}

// findings returns what the client has done wrong in a run with a fault. The error says why
// nothing can be said of the run.
func (r *clientRun) findings(usual *clientRun) ([]string, error) {
	i := slices.IndexFunc(r.requests, func(e *entry) bool { return e.Fault != nil })
	if i < 0 {
		return nil, errors.New("sends no request that gets the fault: does it reset petstore, or does a result, a lock " +
			"or a circuit breaker of an earlier run last? (go test needs -count=1)")
	}
	var list []string
	for _, rule := range r.rules(usual, r.requests[i]) {
		if rule.isBroken {
			list = append(list, rule.finding)
		}
	}
	return list, nil
}

// rules returns all rules, and which of them are broken in a run. What a client may do for a
// good reason, such as not to try again, breaks none. The first request that got the fault
// is struck.
func (r *clientRun) rules(usual *clientRun, struck *entry) []rule {
	took := time.Duration(struck.Seconds * float64(time.Second))
	since := func(e *entry) time.Duration { return e.Time.Sub(struck.Time.Time) }
	isSame := func(e *entry) bool { return isEqual(e, struck) }
	succeeds, fails := r.exitCode == 0 && !r.isCut, r.exitCode != 0 && !r.isCut
	pets, usualPets := r.pets(), usual.pets()
	sent, usuallySent := r.of(struck.Operation), len(usual.of(struck.Operation))
	more := len(sent) - usuallySent
	usable := len(r.sent(func(e *entry) bool { return e.Operation == struck.Operation && isUsable(e) }))
	wanted := min(len(sent), usuallySent)
	// After the end of the struck request, the client can read again, or look with another
	// operation for what became of it. To add a pet is neither.
	mends := slices.ContainsFunc(r.requests, func(e *entry) bool {
		isLater := e.Arrived > struck.Arrived && since(e) > took-slack
		return isLater && isUsable(e) && e.Pet == 0 && (isSame(e) || e.Operation != struck.Operation)
	})
	refused := struck // which is not, as it got the fault
	if i := slices.IndexFunc(r.requests, isRefused); i >= 0 {
		refused = r.requests[i]
	}
	reason, _, _ := strings.Cut(refused.Error, ";") // without what would be allowed

	// Repetitions are the equal requests beyond the usual number or, as a client may make a
	// name anew for each try, the requests for the operation. Which of these they are is not
	// known. They are taken for the last, which is best for the client.
	same, usually := r.sent(isSame), max(1, len(usual.sent(isSame)))
	if len(same) <= usually {
		same, usually = sent, usuallySent
	}
	repeated := same[min(usually, len(same)):]
	repeatsSame := false
	var first, last time.Duration
	if len(repeated) > 0 {
		repeatsSame = isSame(repeated[0])
		first, last = since(repeated[0]), since(repeated[len(repeated)-1])
	}
	isTooFast := float64(len(repeated)) > maxRate*last.Seconds()*float64(usually)
	asked, _ := strconv.Atoi(strings.TrimPrefix(struck.Fault.RetryAfter, dateAfter)) // seconds, or 0

	return []rule{
		newRule(r.isCut && more > 1, "still repeats after a minute (%d times)", more),
		newRule(r.isCut && more <= 1, "does not end within a minute"),
		newRule(took > maxWait, "still waits after %.0f s", maxWait.Seconds()),
		newRule(pets > usualPets, "adds %d pets instead of %d", pets, usualPets),
		newRule(succeeds && pets < usualPets, "exits with 0, but has added %d of %d pets", pets, usualPets),
		newRule(succeeds && pets == usualPets && usable < wanted && !mends,
			"exits with 0 with %d of %d usable answers", usable, wanted),
		newRule(fails && isUsable(struck) && took < prompt, "fails, although the answer is right"),
		newRule(isRefused(refused), "sends a %s that is refused: %d, %s",
			cmp.Or(refused.Operation, refused.Method+" "+refused.URL), refused.Status, reason),
		// What was mended may be sent again and, after a 401, once with a key that was read anew.
		newRule(struck.Status == 400 && repeatsSame, "repeats the request after a 400"),
		newRule(struck.Status == 401 && len(repeated) > usually, "repeats the request %d times after a 401", len(repeated)),
		newRule(len(repeated) > 0 && first < time.Duration(asked)*time.Second-slack,
			"repeats after %.2f s, although Retry-After asks for %d s", first.Seconds(), asked),
		newRule(struck.Status != 401 && asked == 0 && len(repeated) > usually && isTooFast,
			"repeats %d times in %.1f s", len(repeated), last.Seconds()),
	}
}
