// Command nethttp runs the tests of Go's own net/http over package runtime/stream: each
// listener that the tests make, and each connection that they or an http.Transport dial,
// is a stream of an adapter in place of TCP.
//
//	go run ./check/nethttp [-adapters loop,iwarp:127.0.0.1] [-run REGEXP] [-long] [-race]
//
// The tests belong to Go's standard library, whose packages import no others, and they
// use what net/http does not export. So the command makes a temporary tree of Go, of
// symbolic links, in which this library is part of the standard library (tree.go), and
// edits the copies of net/http and of its tests there (edit.go). Nothing of Go is kept in
// this repository.
//
// testdata/exceptions.txt names the tests that are about TCP itself or about Go's own tree,
// each with its reason; they are left out. All others must pass.
package main

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	var r runner
	flag.StringVar(&r.adapters, "adapters", "loop,iwarp:127.0.0.1", "the adapters that the tests run on, one after the other")
	flag.StringVar(&r.pattern, "run", "", "run the tests that match this regular expression")
	flag.BoolVar(&r.race, "race", false, "run them under the race detector")
	flag.BoolVar(&r.long, "long", false, "run the long tests, too, and those of leaks")
	flag.BoolVar(&r.verbose, "v", false, "print what the tests print")
	flag.DurationVar(&r.limit, "timeout", 5*time.Minute, "the time limit of the tests on one adapter")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := r.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "nethttp:", err)
		os.Exit(1)
	}
}

type runner struct {
	adapters, pattern   string
	race, long, verbose bool
	limit               time.Duration
}

// run makes the tree, and runs the tests in it.
func (r *runner) run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "nethttp")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	t, err := newTree(ctx, dir)
	if err != nil {
		return err
	}
	if err := t.edit(); err != nil {
		return err
	}
	var errs []error
	for adapter := range strings.SplitSeq(r.adapters, ",") {
		if err := r.test(ctx, t, adapter); err != nil {
			errs = append(errs, fmt.Errorf("over %s: %w", adapter, err))
		}
	}
	return errors.Join(errs...)
}

// test runs the tests in the tree, and once more one or two that failed: some of Go's depend on
// a moment of the machine's.
func (r *runner) test(ctx context.Context, t *tree, adapter string) error {
	left, err := exceptions(adapter)
	if err != nil {
		return err
	}
	v, err := r.goTest(ctx, t, adapter, r.pattern, left)
	fmt.Printf("net/http over %s: %s, %d left out\n", adapter, v, len(left))
	if r.pattern == "" && v.passed < least {
		return errors.Join(err, fmt.Errorf("only %d passed; %d should", v.passed, least))
	}
	if again := v.again(); err != nil && len(again) > 0 && !r.race {
		v, err = r.goTest(ctx, t, adapter, "^("+strings.Join(again, "|")+")$", left)
		fmt.Printf("net/http over %s: RAN TWICE, %s: %s\n", adapter, strings.Join(again, " "), v)
	}
	return err
}

// goTest runs the tests that match the pattern and are not left out.
func (r *runner) goTest(ctx context.Context, t *tree, adapter, pattern string, left []string) (*verdict, error) {
	args := []string{
		"test", "-json", fmt.Sprintf("-short=%t", !r.long), "-vet=off", "-count=1", "-timeout", r.limit.String(),
		"-run", pattern, "-skip", "^(" + strings.Join(left, "|") + ")$",
	}
	cgo := "0"
	if r.race {
		args, cgo = append(args, "-race"), "1"
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(t.src, "net", "http")
	cmd.Env = append(os.Environ(),
		"GOROOT="+t.root, "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local", "CGO_ENABLED="+cgo, "GODAT_ADAPTER="+adapter)
	cmd.Stderr = os.Stderr
	v := &verdict{verbose: r.verbose}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return v, err
	}
	if err := cmd.Start(); err != nil {
		return v, err
	}
	v.read(out)
	err = cmd.Wait()
	if err == nil && v.passed == 0 {
		err = errors.New("no test ran")
	}
	return v, err
}

//go:embed testdata/exceptions.txt
var exceptionsText string

// exceptions returns the names of the tests that are left out on an adapter. A line of
// the file is the name, the adapters that it is about (all, or a provider's name), and
// the reason.
func exceptions(adapter string) (names []string, err error) {
	provider, _, _ := strings.Cut(adapter, ":")
	lines := bufio.NewScanner(strings.NewReader(exceptionsText))
	for lines.Scan() {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 3 {
			return nil, fmt.Errorf("testdata/exceptions.txt: %q has no reason", line)
		}
		if fields[1] == "all" || fields[1] == provider {
			names = append(names, fields[0])
		}
	}
	return names, nil
}
