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
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// version is that of the contract's interface (section 9).
const version = "1.0.0"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// run serves until ctx ends and returns the exit code of the process: 0 when
// it was stopped or only asked for help or version, 1 when it cannot serve, 2
// when args are wrong. stdout gets the base URL and nothing else.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	log := slog.New(slog.NewTextHandler(stderr, nil))
	flags := flag.NewFlagSet("petstore", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	addr := flags.String("addr", "127.0.0.1:8080", "listen on `host:port`; port 0 takes a free one")
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
	case *showVersion:
		fmt.Fprintln(stdout, version)
		return 0
	}

	key := getenv("PETSTORE_API_KEY")
	if err := checkKey(key); err != nil {
		log.Error(err.Error())
		return 1
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
	a := &api{key: key, pets: newStore(), log: log, quiet: *quiet}
	srv := newServer(ctx, a)
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

// baseURL is where clients of this machine reach a service that listens on addr.
func baseURL(addr net.Addr) string {
	tcp := addr.(*net.TCPAddr)
	host := tcp.IP.String()
	if tcp.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(tcp.Port)) + "/v1"
}

// newServer returns the HTTP server of a, with time limits for slow peers. The
// context of every request ends with ctx.
func newServer(ctx context.Context, a *api) *http.Server {
	return &http.Server{
		Handler:           a.routes(),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(a.log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      60 * time.Second,
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
