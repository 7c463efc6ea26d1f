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
	err := run(context.Background(), exitIfStuck, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
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

// exitIfStuck ends the process when a stop that begins now has taken too long: it can be
// blocked by whatever a goroutine waits for, such as a reader of standard error.
func exitIfStuck() {
	time.Sleep(maxStop)
	os.Exit(0)
}

// usageError is an error in the arguments or, with -check, the reason why nothing can be
// said of the client.
type usageError struct{ error }

// errInputEnded is why petstore stops when standard input has ended.
var errInputEnded = errors.New("standard input has ended")

// run serves until ctx is done, a signal arrives or, with -stdin, standard input ends, and
// then returns nil. When it begins to stop, it calls onStop in a goroutine. With -check, it
// checks a client instead. It also returns nil after it has printed the help or the version.
func run(ctx context.Context, onStop func(), args []string,
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
	if opts.check {
		err := check(ctx, opts, getenv, stdout, stderr)
		if err != nil && err != errFindings {
			return usageError{err}
		}
		return err
	}
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
	flags.BoolVar(&opts.log, "log", false, "log the address of the page, the recorded requests,\n"+
		"and those under /__admin except GET, HEAD and OPTIONS")
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

// The check of a client: the faults, the runs, and what is found. All that is said of a run
// follows from its exit code, its time and its journal, beside those of the run without a
// fault.

// checkedFault is a fault with which a client is checked. The parameters are those of
// PUT /__admin/fault.
type checkedFault struct{ name, parameters string }

func checkedFaults() []checkedFault {
	faults := []checkedFault{
		{"400", "code=400&times=1"},
		{"401", "code=401&times=1"},
		{"429", "code=429&times=1&retry-after=3"},
		{"503", "code=503&times=1&retry-after=date:3"},
		{"503-all", "code=503&retry-after=none"},
	}
	for _, e := range wordEffects {
		if e != noEffect {
			faults = append(faults, checkedFault{e.code, "code=" + e.code + "&times=1"})
		}
	}
	return faults
}

func checkedNames() []string {
	var names []string
	for _, f := range checkedFaults() {
		names = append(names, f.name)
	}
	return names
}

// meaning returns what api/openapi.json says of the code of the fault.
func (f checkedFault) meaning() string {
	var description struct {
		Components struct {
			Schemas map[string]struct {
				OneOf []struct {
					Enum        []string
					Description string
				}
			}
		}
	}
	json.Unmarshal(openAPI, &description)
	meanings := description.Components.Schemas["FaultCode"].OneOf
	for _, one := range meanings {
		if slices.Contains(one.Enum, f.name) {
			return one.Description
		}
	}
	return meanings[0].Description // that of a status
}

// faultNames are names of checkedFaults.
type faultNames []string

// parse parses the value of a flag, in which commas separate the names.
func (n *faultNames) parse(text string) error {
	*n = strings.Split(text, ",")
	for _, name := range *n {
		if !slices.Contains(checkedNames(), name) {
			return fmt.Errorf("there is no fault %s; the faults are %s", quote(name), strings.Join(checkedNames(), ","))
		}
	}
	return nil
}

// errFindings says that a client was checked, and does something wrong.
var errFindings = errors.New("the client does something wrong; -accept leaves out what is intended")

// check runs a client without a fault and then with each of the chosen faults, and prints
// what it does wrong. If any of that counts, it returns errFindings. Any other error says
// why the client cannot be checked.
func check(ctx context.Context, opts options, getenv func(string) string, stdout, stderr io.Writer) error {
	key, seed, err := prepare(opts, getenv)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	run := func(fault string, output io.Writer) (*clientRun, error) {
		// Each run has a service of its own, so that what is left of it cannot reach the next
		// one, unless -addr and PETSTORE_API_KEY are the same for all.
		s := newService(ctx, cmp.Or(key, newKey()), seed, newLog(stderr, opts.log))
		return runClient(s, opts, fault, output)
	}
	usual, err := run("code=ok", stderr)
	if err != nil {
		return err
	}
	operation, err := usual.chooseOperation(opts.operation)
	if err != nil {
		return fmt.Errorf("without a fault, the client %w", err)
	}
	var output io.Writer // nil drops what the client prints
	if opts.only != nil {
		output = stderr
	}

	fmt.Fprintln(stdout, "fault      exit seconds  pets  answers              finding")
	var found []checkedFault // with which something is found, to be explained
	var notFound []string    // the accepted faults with which nothing is found
	runs, count := 0, 0
	for _, f := range checkedFaults() {
		if opts.only != nil && !slices.Contains(opts.only, f.name) {
			continue
		}
		r, err := run(f.parameters+"&operation="+operation, output)
		if err != nil {
			return err
		}
		runs++
		findings := r.findings(usual)
		switch isAccepted := slices.Contains(opts.accept, f.name); {
		case isAccepted && findings == nil:
			notFound = append(notFound, f.name)
		case isAccepted:
			findings = append(findings, "accepted")
		default:
			count += len(findings)
		}
		if findings != nil {
			found = append(found, f)
		}
		row := fmt.Sprintf("%-10s %4d %7.1f %5d  %-19s  %s",
			f.name, r.exitCode, r.took.Seconds(), r.pets, r.answers(), strings.Join(findings, "; "))
		fmt.Fprintln(stdout, strings.TrimRight(row, " "))
	}
	fmt.Fprintln(stdout)
	for _, f := range found {
		fmt.Fprintf(stdout, "%s: %s\n", f.name, f.meaning())
	}
	if found != nil {
		fmt.Fprintln(stdout)
	}
	fmt.Fprintf(stdout, "%s in %s with %s (- is no answer)\n", quantity(count, "finding"), quantity(runs, "run"), operation)
	for _, other := range faultOperations() {
		if other != operation && len(usual.of(other)) > 0 {
			fmt.Fprintf(stdout, "%s was not tested: -operation %[1]s\n", other)
		}
	}
	if notFound != nil {
		fmt.Fprintf(stdout, "accepted, but not found: %s\n", strings.Join(notFound, ","))
	}
	if count > 0 {
		return errFindings
	}
	return nil
}

// quantity returns a number of things, such as "1 run" or "2 runs".
func quantity(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprint(n, " ", noun)
}

// clientRun is what a client has done in a run.
type clientRun struct {
	base     string // the base URL that it got
	exitCode int    // -1 if a signal has ended it
	took     time.Duration
	isCut    bool     // whether it was ended, as it took longer than a run may take
	requests []*entry // the journal
	pets     int      // that they have added
}

// runClient runs the client of opts with a standing fault of a service, which it closes.
func runClient(s *service, opts options, fault string, output io.Writer) (*clientRun, error) {
	w := s.current.Load()
	// A client that repeats without an end must not push the request with the fault out of
	// the journal.
	w.journal.keeps = 100 * maxEnded
	parameters, _ := url.ParseQuery(fault)
	standing, err := parseStandingFault(w.ctx, &arguments{Values: parameters}, s.faultOperations)
	if err != nil {
		return nil, err
	}
	w.setStanding(standing)
	ln, err := listen(opts.addr)
	if err != nil {
		return nil, err
	}
	srv := newServer(s)
	go srv.Serve(ln)
	defer srv.Close()

	root := rootURL(ln.Addr())
	host, _, _ := net.SplitHostPort(strings.TrimPrefix(root, "http://"))
	noProxy := host + ",localhost," + cmp.Or(os.Getenv("no_proxy"), os.Getenv("NO_PROXY"))
	r := &clientRun{base: root + "/v1"}
	ctx, cancel := context.WithTimeout(s.ctx, s.durations.run)
	defer cancel()
	cmd := exec.CommandContext(ctx, opts.command[0], opts.command[1:]...)
	cmd.Env = append(os.Environ(), "PETSTORE_URL="+r.base, "PETSTORE_API_KEY="+s.key,
		"NO_PROXY="+noProxy, "no_proxy="+noProxy)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // so that it can end what it has started
	cmd.WaitDelay = time.Second                                           // before it is killed
	started := time.Now()
	err = cmd.Run()
	r.took, r.isCut = time.Since(started), ctx.Err() != nil
	switch {
	case s.ctx.Err() != nil:
		return nil, errors.New("interrupted")
	case cmd.ProcessState == nil:
		return nil, err // as there is no such command, for example
	}
	r.exitCode = cmd.ProcessState.ExitCode()
	srv.Close() // so that a request that still waits ends, as its client has left
	part, _ := w.journal.read(s.ctx, journalQuery{})
	r.requests = part.ended
	for _, e := range r.requests {
		if e.Pet != 0 {
			r.pets++
		}
	}
	return r, nil
}

// answers returns the statuses of the first answers, such as "503 - 201".
func (r *clientRun) answers() string {
	var list []string
	for _, e := range r.requests {
		if e.Status == 0 {
			list = append(list, "-")
		} else {
			list = append(list, strconv.Itoa(e.Status))
		}
	}
	if len(list) > 5 {
		list = append(list[:4], "…")
	}
	return strings.Join(list, " ")
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

// chooseOperation returns the operation whose first request is to get the faults: the
// given one or, if that is empty, createPet if the client adds a pet, and else that of its
// first request. It returns an error if a run without a fault is not one to compare others
// with.
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
		return "", errors.New("sends too many requests for the journal")
	case given == "" && r.pets > 0:
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
	isSpoilt := e.Fault != nil && e.Fault.effect != nil && e.Fault.effect.spoils
	return 200 <= e.Status && e.Status < 300 && e.Error == "" && !isSpoilt
}

// findings returns what the client has done wrong in a run with a fault. What it may have
// done for a good reason, such as not to try again, is not wrong.
func (r *clientRun) findings(usual *clientRun) (list []string) {
	rule := func(isBroken bool, finding string, a ...any) {
		if isBroken {
			list = append(list, fmt.Sprintf(finding, a...))
		}
	}
	rule(r.isCut, "does not end within a minute")
	i := slices.IndexFunc(r.requests, func(e *entry) bool { return e.Fault != nil })
	rule(len(r.requests) == 0, "sends no request")
	rule(len(r.requests) > 0 && i < 0, "sends no request that gets the fault")
	if i < 0 {
		return list
	}
	struck := r.requests[i] // the first request with the fault
	since := func(e *entry) float64 { return e.Time.Sub(struck.Time.Time).Seconds() }
	succeeds := r.exitCode == 0 && !r.isCut
	fails := r.exitCode != 0 && !r.isCut
	// An answer is one to the struck request, to one in its place, or to one that began after
	// its end. That may be recorded a moment late, if the client has left.
	usable := r.sent(func(e *entry) bool { return e.Operation == struck.Operation && isUsable(e) })
	hasAnswer := len(usable) >= len(usual.of(struck.Operation)) ||
		slices.ContainsFunc(r.requests, func(e *entry) bool { return isUsable(e) && since(e) > struck.Seconds-0.1 })
	// Of the same requests, it is known how many are repetitions, and not which. The first of
	// them came when as many were left, or before.
	isSame := func(e *entry) bool { return e.Method == struck.Method && e.URL == struck.URL && e.Body == struck.Body }
	same, usually := r.sent(isSame), max(1, len(usual.sent(isSame)))
	repeats := len(same) - usually
	first, last := since(same[len(same)-max(1, repeats)]), since(same[len(same)-1])
	retryAfter := http.Header(struck.AnswerHeaders).Get("Retry-After")

	rule(struck.Seconds > 25, "waits for more than 25 s") // of the 30 of a stall
	rule(r.pets > usual.pets, "adds %d pets instead of %d", r.pets, usual.pets)
	rule(succeeds && r.pets < usual.pets, "exits with 0, but has added %d of %d pets", r.pets, usual.pets)
	// If the pets are not those of the usual run, that is said above.
	rule(succeeds && r.pets == usual.pets && !hasAnswer, "exits with 0 without a usable answer")
	// If the time limit of the client has ended before, it has left, and is right.
	rule(fails && isUsable(struck), "fails, although the answer is right")
	// The answer to the same request would be the same.
	rule(repeats > 0 && (struck.Status == 400 || struck.Status == 401), "repeats the request after a %d", struck.Status)
	// A date in 3 s is one in 2 s for a client that drops fractions.
	rule(repeats > 0 && retryAfter != "" && first < 1.9,
		"repeats after %.1f s, in spite of Retry-After: %s", first, retryAfter)
	// At a rate of more than five a second, a service has no time to recover.
	rule(repeats > usually && retryAfter == "" && float64(repeats) > 5*last*float64(usually),
		"repeats %d times in %.1f s", repeats, last)
	return list
}
