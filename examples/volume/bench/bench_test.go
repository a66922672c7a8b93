package main

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(asNode); text != "" {
		exit(serveNode(text))
	}
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

func TestATableHasEachRow(t *testing.T) {
	dir := t.TempDir()
	o := &options{turns: 1, time: 10 * time.Millisecond, memory: dir, disk: dir, rows: "/4K/1$", provider: "iwarp"}
	var out bytes.Buffer
	require.NoError(t, measure(o, &out), "no ratio is an error")
	assert.Regexp(t, `memory/4K/1 .*\n.*durable/4K/1 `, out.String())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestElectionsAreCounted(t *testing.T) {
	var out bytes.Buffer
	err := stay(&options{stay: 10 * time.Millisecond, disk: t.TempDir(), provider: "iwarp"}, &out)
	if errors.Is(err, errElection) { // on a busy machine
		assert.Regexp(t, ` [1-9]\d* elections\n$`, out.String())
		return
	}
	require.NoError(t, err)
	assert.Regexp(t, ` 0 elections\n$`, out.String())
}

func TestAFollowerThatWasAwayIsResynced(t *testing.T) {
	var out bytes.Buffer
	err := away(&options{away: 500 * time.Millisecond, size: diskLen, disk: t.TempDir(), provider: "iwarp"}, &out)
	if errors.Is(err, errElection) { // on a busy machine
		assert.Regexp(t, `; [1-9]\d* elections\n$`, out.String())
		return
	}
	require.NoError(t, err)
	assert.Regexp(t, `^before: \d+ writes, none answered for \S+\nwhile it is away: \d+ writes, .*\nuntil it has all: \d+ writes, .*\nsince: [1-9]\d* writes, .*\n\d+ resyncs, `, out.String())
}

func TestAGapBelongsToThePartInWhichItEnds(t *testing.T) {
	got := parts([]time.Duration{9, 1, 2, 5, 12}, []time.Duration{2, 6, 10})
	assert.Equal(t, []part{{2, 1}, {1, 3}, {1, 4}}, got)
}

func TestALengthMayHaveAUnit(t *testing.T) {
	for text, want := range map[string]length{"1": 1, "4K": 4 << 10, "64M": 64 << 20, "1G": 1 << 30} {
		var l length
		require.NoError(t, l.Set(text))
		assert.Equal(t, want, l)
	}
	for _, text := range []string{"", "0", "-1K", "G", "1T", "9999999999G"} {
		require.Error(t, new(length).Set(text), text)
	}
}
