package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/bench/lane"
	"godat/bench/report"
)

func TestPeersHaveARowEachAndSayWhatTheyDo(t *testing.T) {
	var out bytes.Buffer
	require.ErrorIs(t, run([]string{"--repeats=1", "--duration=2ms", "peers", "--module=nowhere", "--format=json"}, &out), errUnable)
	var r report.Report
	require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	const ours, noModule = 2 * 2, 1
	assert.Len(t, r.Rows, 2*(ours+noModule)+len(lane.Anchors())+len(lane.RoundTrips()))
	refused := map[string]string{}
	for _, row := range r.Rows {
		if row.Refused != "" {
			refused[row.Name] = row.Refused
		} else {
			assert.NotEmpty(t, row.Does, row.Name)
		}
	}
	assert.Contains(t, refused["gRPC and QUIC"], "no Go module in nowhere")
}

func TestOnlyThePeersThatAreNamedAreMeasured(t *testing.T) {
	var out bytes.Buffer
	require.ErrorIs(t, run([]string{"--repeats=1", "--duration=2ms", "peers", "--module=nowhere", "--only=raw"}, &out), errUnable)
	assert.Contains(t, out.String(), "round trips of 64 bytes, 1 outstanding")
	assert.Contains(t, out.String(), "messages one way of 64 bytes, 64 outstanding")
	assert.Contains(t, out.String(), "- raw ring: ")
	assert.NotContains(t, out.String(), "net.Pipe")
}

func TestPeersThatCannotBeMeasuredAreRefused(t *testing.T) {
	for args, why := range map[string]string{"--size=0": "from 1 to", "--size=2000000": "from 1 to", "--depth=0": "from 1 to", "--mode=telepathy": "no mode"} {
		err := run(append([]string{"peers", "--module=nowhere"}, strings.Fields(args)...), io.Discard)
		assert.ErrorContains(t, err, why, args)
	}
}

func TestAModuleThatCannotBeBuiltSaysWhy(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module broken\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nfunc main() { nothing() }\n"), 0o600))
	_, err := startModule(dir)
	assert.ErrorContains(t, err, "undefined: nothing")
}

func TestAnAdapterThatCannotBeOpenedRefusesItsRowsOnly(t *testing.T) {
	r := ran(t, "peers", "--module=nowhere", "--provider=absent,loop", "--mode=poll", "--only=poll over", "--format=json")
	require.Len(t, r.Rows, 4)
	for i := range r.Rows {
		if strings.HasSuffix(r.Rows[i].Name, "absent") {
			assert.Contains(t, r.Rows[i].Refused, `provider "absent"`)
		} else {
			assert.NotContains(t, r.Rows[i].Refused, "provider")
		}
	}
}
