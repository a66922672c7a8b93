package main

import (
	"bufio"
	"encoding/json"
	"errors"
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
	case "skip":
		v.skipped++
	}
}

// String says how many tests and subtests there were.
func (v *verdict) String() string {
	return fmt.Sprintf("%d tests and subtests passed, %d failed, %d skipped themselves", v.passed, v.failed, v.skipped)
}

// judge returns an error unless all passed. err is that of go test.
func (v *verdict) judge(err error, all bool) error {
	if err == nil && v.failed > 0 {
		err = errors.New("some failed")
	}
	if err == nil && all && v.passed < least {
		err = fmt.Errorf("only %d passed; %d should", v.passed, least)
	}
	return err
}
