package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A word of a line is what stands between spaces; _ is an empty one. No line has a module to build: x is none.
func TestACommandLineThatMakesNoSenseHasAStatusOfItsOwn(t *testing.T) {
	for line, want := range map[string]string{
		"--nosuch":                          "unknown flag --nosuch",
		"nosuch":                            "unexpected argument nosuch",
		"--repeats x":                       "expected a valid",
		"--repeats=-1":                      "-1 repeats",
		"--repeats=100000":                  "up to 10000 of",
		"--repeats 1 --repeats 2":           "--repeats twice",
		"--duration=5":                      "missing unit",
		"--duration=-1s":                    "repeats of -1s",
		"--duration=2h":                     "up to 1h0m0s",
		"--mode nosuch":                     "no mode",
		"--mode _":                          "an empty word behind --mode",
		"--mode=":                           "--mode is empty",
		"_":                                 "an empty word",
		"--mode poll,wait,poll":             "mode poll twice",
		"--mode poll --mode poll":           "mode poll twice",
		"--size 64,64":                      "size 64 twice",
		"--rate 10k,10000":                  "rate 10k twice",
		"--depth 2,2":                       "depth 2 twice",
		"--producers 1,1":                   "producers 1 twice",
		"--size 0":                          "a message of 0 bytes",
		"--size 2000000000":                 "a message of 2000000000 bytes",
		"--depth 70000":                     "70000 messages",
		"--producers 0":                     "0 producers",
		"--rate NaN":                        "no rate",
		"--provider nosuch":                 `provider "nosuch"`,
		"--param nosuch=1":                  `no parameter "nosuch"`,
		"--format xml":                      "--format must be one of",
		"scale --conns 1,1":                 "connections 1 twice",
		"scale --conns 0":                   "0 connections",
		"connect --depth 65":                "65 connections",
		"storage --provider loop":           "reaches no other process",
		"storage --provider sim,sim":        "provider sim twice",
		"storage --processors 0":            "0 processors",
		"storage --depth 0":                 "0 commands",
		"storage --depth 32,1":              "ascending order",
		"storage --rate 10k,1k":             "ascending order",
		"storage --rate max":                "a number a second",
		"storage --rate 1k,1000":            "rate 1k twice",
		"storage --write --folder nosuch":   "no such file",
		"storage --write --folder usage.go": "is no folder",
		"storage --folder x":                "--folder without --write",
		"storage --provider iwarp:127.0.0.1 --host 192.0.2.1": "no target could listen",
		"peers --depth 0":                               "0 messages",
		"peers --size 0":                                "a message of 0 bytes",
		"peers --provider loop,loop":                    "provider loop twice",
		"peers --module=x":                              "no Go module in x",
		"rpc --module=load":                             "no Go module in load",
		"serve --port 70000 --provider=iwarp:127.0.0.1": "70000 is no port",
		"serve --provider loop:x":                       "loop is reached by no other process",
		"dial 127.0.0.1:1 --provider loop:x":            "loop reaches no other process",
		"dial localhost":                                "want HOST:PORT",
		"dial localhost:x":                              `port "x"`,
		"results --only nosuch":                         "no part",
		"idle --for=-1s":                                "idle for -1s",
		"idle --connections 0":                          "0 connections",
	} {
		var words []string
		for _, word := range strings.Fields(line) {
			words = append(words, strings.Trim(word, "_"))
		}
		err := run(words, io.Discard)
		require.ErrorContains(t, err, want, line)
		assert.ErrorContains(t, err, "--help", line)
		assert.Equal(t, statusUsage, status(err), "%s: %v", line, err)
	}
}

// full is a disk that is full.
type full struct{}

var errFull = errors.New("no space")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWhatIsNotPrintedIsAnError(t *testing.T) {
	for _, format := range []string{"table", "markdown", "json", "benchstat"} {
		args := []string{"--repeats=1", "--duration=1ms", "--mode=poll", "--rate=closed", "--no-anchors", "--format=" + format}
		assert.ErrorIs(t, run(args, full{}), errFull, format)
	}
}

func TestWhatWasMeasuredIsPrintedAlsoIfAFileCannotBeWritten(t *testing.T) {
	var out bytes.Buffer
	nowhere := filepath.Join(t.TempDir(), "no", "such")
	err := run([]string{"--repeats=1", "--duration=1ms", "--mode=poll", "--rate=closed", "--no-anchors", "--histograms=" + nowhere}, &out)
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.Contains(t, out.String(), "poll")
}
