package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// least is the least number of tests and subtests that must pass, so that a tree in which
// they don't run is noticed.
const least = 1300

// event is one line of go test -json.
type event struct{ Action, Test, Output string }

// verdict is what came of the tests.
type verdict struct {
	verbose                 bool
	passed, failed, skipped int
	failures                []string            // the tests that failed, without subtests
	printed                 map[string][]string // by the test that has not ended
}

// read counts the tests' ends, and prints what failed tests have printed.
func (v *verdict) read(r io.Reader) {
	v.printed = make(map[string][]string)
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var e event
		if json.Unmarshal(line, &e) != nil {
			fmt.Print(string(line))
			continue
		}
		v.take(e)
	}
	for _, left := range v.printed { // the program has died
		fmt.Print(strings.Join(left, ""))
	}
}

func (v *verdict) take(e event) {
	switch e.Action {
	case "output", "build-output":
		v.printed[e.Test] = append(v.printed[e.Test], e.Output)
		if v.verbose {
			fmt.Print(e.Output)
		}
		return
	case "pass", "skip", "fail":
	default:
		return
	}
	text := strings.Join(v.printed[e.Test], "")
	delete(v.printed, e.Test)
	if e.Action == "fail" && !v.verbose {
		fmt.Print(text)
	}
	if e.Test == "" { // the package
		return
	}
	switch e.Action {
	case "pass":
		v.passed++
	case "fail":
		v.failed++
		if !strings.Contains(e.Test, "/") {
			v.failures = append(v.failures, e.Test)
		}
	case "skip":
		v.skipped++
	}
}

// String says how many tests and subtests there were.
func (v *verdict) String() string {
	return fmt.Sprintf("%d tests and subtests passed, %d failed, %d skipped themselves", v.passed, v.failed, v.skipped)
}

// again returns the names of the tests that failed, if they are two at most and each has come to
// its end: then a moment of the machine's may be why.
func (v *verdict) again() []string {
	if len(v.failures) > 2 || len(v.printed) > 0 {
		return nil
	}
	return v.failures
}
