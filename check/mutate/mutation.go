package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"godat/check/mutate/patch"
)

// mutation is one patch.
type mutation struct {
	where   string        // the patch's path below the directory of mutations, for messages
	name    string        // its subject
	pkg     string        // package of the test, "./hw/loop"
	test    string        // regular expression for the test's name
	build   []string      // flags for the compiler
	run     []string      // flags for the test binary
	limit   time.Duration // time limit of its runs; 0 is the runner's
	times   int           // how often a run runs the test; 0 is once
	usual   time.Duration // what the test takes once without the change; 0 if that is not known
	changes []patch.Change
}

// title is the name of the mutation's directory, a colon and the mutation's name.
func (m *mutation) title() string { return filepath.Dir(m.where) + ": " + m.name }

// binary names the test binary that the mutation is tried with.
func (m *mutation) binary() string { return fmt.Sprint(m.pkg, m.build) }

// trial names the test and how it is run.
func (m *mutation) trial() string { return fmt.Sprint(m.binary(), m.test, m.run) }

// inShort returns the mutation with all short tests of its package in place of the
// named test: those that a programmer runs after each change.
func (m mutation) inShort() mutation {
	m.test, m.build, m.run = ".*", nil, []string{"-test.short"}
	m.limit = max(m.limit, 2*time.Minute)
	return m
}

// by returns the mutation with another test in place of the named one.
func (m mutation) by(test string) (mutation, error) {
	m.build, m.run, m.limit, m.times = nil, nil, 0, 0
	return m, m.field("Test", test)
}

// loadPatches reads the patches in all directories below dir, in the order of their
// paths.
func loadPatches(dir string) ([]mutation, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*.patch"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, misusef("no patches in %s: run it in the root of the repository, or give -patches", dir)
	}
	all := make([]mutation, len(paths))
	for i, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		where, err := filepath.Rel(dir, path)
		if err != nil {
			return nil, err
		}
		if all[i], err = parsePatch(where, text); err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
	}
	return all, nil
}

// parsePatch reads one patch: a header like a mail's, and the output of git diff.
func parsePatch(where string, text []byte) (mutation, error) {
	m := mutation{where: where}
	header, changes, err := patch.Read(text)
	if err != nil {
		return m, err
	}
	for field, values := range header {
		if err := m.field(field, values[0]); err != nil {
			return m, err
		}
	}
	m.changes = changes
	if m.name == "" || m.test == "" || len(m.changes) == 0 {
		return m, errors.New("a mutation needs a Subject, a Test and a change")
	}
	return m, nil
}

// field sets one field of the header.
func (m *mutation) field(name, value string) error {
	words := strings.Fields(value)
	switch {
	case name == "Subject":
		m.name = value
	case name == "Test" && len(words) > 1:
		m.pkg, m.test = words[0], words[1]
		return m.flags(words[2:])
	default:
		return fmt.Errorf("field %s: %s: want Subject: NAME or Test: PACKAGE REGEXP FLAGS", name, value)
	}
	return nil
}

// flags divides flags into those for the compiler and those for the test.
func (m *mutation) flags(words []string) error {
	for _, f := range words {
		if limit, ok := strings.CutPrefix(f, "-timeout="); ok {
			var err error
			if m.limit, err = time.ParseDuration(limit); err != nil {
				return err
			}
			continue
		}
		if times, ok := strings.CutPrefix(f, "-count="); ok {
			var err error
			if m.times, err = strconv.Atoi(times); err != nil {
				return err
			}
		}
		if f == "-race" || strings.HasPrefix(f, "-tags=") {
			m.build = append(m.build, f)
			continue
		}
		if name, _, _ := strings.Cut(f, "="); strings.Contains(name, ".") { // a flag of the package itself
			m.run = append(m.run, f)
			continue
		}
		m.run = append(m.run, "-test."+strings.TrimLeft(f, "-"))
	}
	return nil
}
