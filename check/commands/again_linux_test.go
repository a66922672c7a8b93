package commands

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sh runs a script of the checks with a directory for what it leaves.
func sh(temp string, args ...string) (out string, err error) {
	cmd := exec.Command("bash", args...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CI_TEMP="+temp)
	b, err := cmd.CombinedOutput()
	return string(b), err
}

// script writes a program that behaves as go test does: the packages whose names have
// "moment" fail the first time, those with "broken" each time.
func script(t *testing.T, temp string) string {
	name := filepath.Join(temp, "gotest")
	require.NoError(t, os.WriteFile(name, []byte(`#!/usr/bin/env bash
status=0
for package; do
  case $package in
    *moment*) seen='`+temp+`'/${package//\//-}; if [[ -e $seen ]]; then echo "ok  	$package	1s"; else touch "$seen"; status=1; echo "FAIL	$package	1s"; fi ;;
    *broken*) status=1; echo "FAIL	$package	1s" ;;
    */*) echo "ok  	$package	1s" ;;
  esac
done
exit $status
`), 0o700))
	return name
}

// again runs packages by again.sh, as a stage does, each call a stage, and then says how the run
// ends.
func again(t *testing.T, stages ...string) (passed bool, closing string) {
	t.Helper()
	temp := t.TempDir()
	gotest := script(t, temp)
	passed = true
	for i, packages := range stages {
		name := "stage" + string(rune('a'+i))
		_, err := sh(temp, append([]string{".ci/again.sh", name, gotest, "--"}, strings.Fields(packages)...)...)
		passed = passed && err == nil
	}
	closing, err := sh(temp, ".ci/closing.sh")
	return passed && err == nil, closing
}

func TestWhatRanTwiceIsCountedAndHasABound(t *testing.T) {
	for name, c := range map[string]struct {
		stages []string
		passes bool
		says   []string
	}{
		"nothing":                   {[]string{"godat/a godat/b"}, true, []string{"ran twice: 0 packages of tests (at most 3), 0 guests (at most 1)"}},
		"one":                       {[]string{"godat/a godat/moment"}, true, []string{"ran twice: 1 packages", "package godat/moment, in stagea"}},
		"two, in two stages":        {[]string{"godat/moment1", "godat/moment2"}, true, []string{"ran twice: 2 packages"}},
		"four, in two stages":       {[]string{"godat/moment1 godat/moment2", "godat/moment3 godat/moment4"}, false, []string{"ran twice: 4 packages", "too much needed a second try"}},
		"what is broken":            {[]string{"godat/broken"}, false, []string{"ran twice: 1 packages"}},
		"three at once, not at all": {[]string{"godat/moment1 godat/moment2 godat/moment3"}, false, []string{"ran twice: 0 packages"}},
	} {
		passed, closing := again(t, c.stages...)
		assert.Equal(t, c.passes, passed, "%s: %s", name, closing)
		for _, says := range c.says {
			assert.Contains(t, closing, says, name)
		}
	}
}

func TestGuestsThatWereBootedTwiceAreCounted(t *testing.T) {
	temp := t.TempDir()
	boots := filepath.Join(temp, "boots")
	require.NoError(t, os.WriteFile(boots, []byte("if [[ -e $1 ]]; then exit 0; fi\ntouch $1\nexit 123\n"), 0o600))
	for i, want := range []string{"1 guests", "2 guests"} {
		_, err := sh(temp, ".ci/twice.sh", "bash", boots, filepath.Join(temp, "guest"+want[:1]))
		require.NoError(t, err)
		closing, err := sh(temp, ".ci/closing.sh")
		assert.Contains(t, closing, want)
		assert.Equal(t, i == 0, err == nil, closing)
	}
}
