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
