package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/bench/lane"
	"godat/bench/load"
	"godat/bench/mode"
)

// modes are the names of all modes in their order, or backwards.
func modes(backwards bool) string {
	var names []string
	for _, m := range mode.All() {
		names = append(names, m.Name)
	}
	if backwards {
		slices.Reverse(names)
	}
	return strings.Join(names, ",")
}

// serving is the address of a server that another process might be.
func serving(t *testing.T) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	in, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, lane.Config{Provider: "iwarp:127.0.0.1"}, 0, out) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-ended)
	})
	said, err := bufio.NewReader(in).ReadString('\n')
	require.NoError(t, err)
	return "127.0.0.1:" + said[strings.LastIndexByte(said, ':')+1:len(said)-1]
}

// commandsByMode are the commands whose rows are named by modes.
func commandsByMode(t *testing.T) []string {
	return []string{
		"delivery --no-anchors --rate=closed,max", "delivery --no-anchors --rate=max --producers=2 --depth=4", "latency --no-anchors", "latency --no-anchors --provider=iwarp", "bandwidth --size=4096 --no-anchors",
		"scale --conns=3", "dial " + serving(t) + " --provider=iwarp",
	}
}

// words are those of a command line, where _ is a space within one.
func words(line string) []string {
	list := strings.Fields(line)
	for i := range list {
		list[i] = strings.ReplaceAll(list[i], "_", " ")
	}
	return list
}

func TestEachRowRunsTheLoopOfItsNameInAnyOrderOfModes(t *testing.T) {
	for _, line := range commandsByMode(t) {
		t.Run(line, func(t *testing.T) {
			for _, order := range []string{modes(false), modes(true), "poll,channel", "channel,poll"} {
				ranInOrder(t, line, order)
			}
		})
	}
}

func TestEachRowAmongPeersRunsTheLoopOfItsName(t *testing.T) {
	for _, order := range []string{"poll,channel", "channel,poll"} {
		ranInOrder(t, "peers --provider=loop --only=over_loop --module=none", order)
		ranInOrder(t, "peers --provider=iwarp:127.0.0.1 --only=over_iwarp --module=none", order)
	}
}

// ranInOrder requires that each row by mode ran the loop of its name.
func ranInOrder(t *testing.T, line, order string) {
	rows := 0
	for _, row := range ran(t, append(words(line), "--mode="+order, "--format=json")...).Rows {
		if row.Anchor {
			continue
		}
		rows++
		name, _, _ := strings.Cut(row.Name, " over ")
		require.NotNil(t, row.Ran, "%s: %s", line, row.Name)
		assert.Equal(t, name, row.Ran.Loop, "%s --mode=%s", line, order)
		m, err := row.Ran.Did.Loop()
		require.NoError(t, err)
		assert.Equal(t, name, m.Name, "%s --mode=%s", line, order)
		assert.GreaterOrEqual(t, row.Ran.Messages, int64(1))
	}
	assert.GreaterOrEqual(t, rows, len(strings.Split(order, ",")), line)
}

func TestARowHasTheSizeDepthConnectionsAndProducersThatRan(t *testing.T) {
	for _, line := range []string{
		// All ways once, and of two of them each value with each.
		"delivery --size=100 --depth=7 --rate=closed,max", "delivery --size=8,5000 --depth=1,7 --rate=closed,max --mode=poll,channel",
		"delivery --size=300 --producers=2 --depth=8 --rate=max --no-anchors", "delivery --size=64,300 --producers=2,4 --depth=8,16 --rate=max --no-anchors --mode=poll,channel",
		"latency --size=5000 --depth=3", "latency --size=8,5000 --depth=1,3 --mode=poll,channel",
		"bandwidth --size=70000 --depth=5 --rate=closed,max", "bandwidth --size=8,70000 --depth=1,5 --rate=closed,max --mode=poll,channel",
		"scale --conns=2 --size=500 --depth=4 --duration=5ms", "scale --conns=1,2,7 --size=8,500 --depth=1,4 --duration=5ms --mode=poll,channel",
		"latency --provider=iwarp --size=9,3000", "peers --size=64,300 --depth=5 --only=over_loop --module=none", "connect --depth=3", "connect --provider=iwarp",
	} {
		for _, row := range ran(t, append(words(line), "--format=json")...).Rows {
			what := fmt.Sprint(line, ": ", row.Name)
			if row.Ran == nil {
				assert.Equal(t, load.ErrPostWaits.Error(), row.Refused, what)
				continue
			}
			if row.Ran.Size != 0 {
				assert.Equal(t, row.Size, row.Ran.Size, what)
			} else {
				assert.Contains(t, []string{"raw channel", "raw ring", "map of channels", "net.Conn", "loop", "iwarp"}, row.Name, what)
			}
			assert.Equal(t, max(row.Conns, 1), row.Ran.Conns, what)
			assert.LessOrEqual(t, row.Offered.Outstanding, row.Depth, what)
			if row.Rate == load.Closed {
				assert.Equal(t, row.Depth, row.Offered.Outstanding, what)
				assert.Zero(t, row.Offered.Producers, what)
			} else {
				assert.Equal(t, max(row.Producers, 1), row.Offered.Producers, what)
			}
		}
	}
}

func TestARowHasTheAdapterParametersAndCRCsThatRan(t *testing.T) {
	for _, line := range []string{"delivery --rate=closed --no-anchors", "latency --no-anchors", "bandwidth --size=4096 --no-anchors", "scale --conns=2", "connect"} {
		for params, crc := range map[string]bool{"": true, "--param=crc=false": false, "--param=crc=true": true, "--param=fpdu=1440": true} {
			args := strings.Fields(line + " --provider=iwarp:127.0.0.1 --format=json " + params)
			if line != "connect" {
				args = append(args, "--mode=poll,channel")
			}
			for _, row := range ran(t, args...).Rows {
				if row.Anchor {
					continue
				}
				assert.Equal(t, "iwarp:127.0.0.1", row.Ran.Provider, line)
				key, value, given := strings.Cut(strings.TrimPrefix(params, "--param="), "=")
				if given {
					assert.Equal(t, lane.Params{key: value}, row.Ran.Params, line)
				} else {
					assert.Empty(t, row.Ran.Params, line)
				}
				if line != "connect" { // whose connections are over when it is asked
					require.NotNil(t, row.Ran.CRC, line)
					assert.Equal(t, crc, *row.Ran.CRC, "%s %s", line, params)
				}
			}
		}
	}
}

func TestADialerThatWantsNoCRCsAndGetsThemHasNoFigures(t *testing.T) {
	err := run([]string{"--repeats=1", "--duration=2ms", "dial", serving(t), "--mode=poll", "--param=crc=false"}, io.Discard)
	assert.ErrorContains(t, err, "give it to both ends")
}
