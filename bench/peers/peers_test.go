package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/bench/lane"
	study "godat/bench/peers/calls"
	"godat/bench/report"
)

// The pool library runs two goroutines of its own from the start.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// carry posts n messages from another goroutine, never more than depth at a time, and
// takes them.
func carry(t *testing.T, l lane.Lane, n, depth int) {
	t.Helper()
	room, posted := make(chan struct{}, depth), make(chan struct{})
	go func() {
		defer close(posted)
		for i := range n {
			room <- struct{}{}
			assert.NoError(t, l.Post(i%l.Slots()))
		}
	}()
	var taken int
	require.NoError(t, l.Take(func(slot int) bool {
		assert.Equal(t, taken%l.Slots(), slot)
		taken++
		<-room
		return taken < n
	}))
	assert.Equal(t, n, taken)
	<-posted
}

func TestEveryLaneCarriesAllMessagesInOrder(t *testing.T) {
	for _, of := range transports() {
		name := of.Name + ", one way"
		if of.RoundTrip {
			name = of.Name + ", there and back"
		}
		for _, size := range []int{1, 64, 100_000} {
			t.Run(fmt.Sprintf("%s, %d bytes", name, size), func(t *testing.T) {
				l, err := of.Open(size, 4)
				require.NoError(t, err)
				carry(t, l, 32, 4)
				carry(t, l, 2*l.Slots(), 1)
				require.NoError(t, l.Close())
			})
		}
	}
}

func TestEveryLaneSaysWhatItDoes(t *testing.T) {
	names := map[string]int{}
	for _, l := range transports() {
		assert.NotEmpty(t, l.Does, l.Name)
		names[l.Name]++
	}
	assert.LessOrEqual(t, names["gRPC stream"], 2, "a name is that of two lanes, one of each kind")
	assert.Contains(t, names, "gRPC call over godat's streams over iwarp")
	assert.Contains(t, names, "QUIC stream")
}

// measured are the rows of the command rows, with a turn each.
func measured(t *testing.T, what string) (list []report.Row) {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, measure(`{"Repeats":1,"Duration":2000000,"Depth":64,"Sizes":[64],`+what+`}`, &out))
	require.NoError(t, json.Unmarshal(out.Bytes(), &list))
	return list
}

func TestEachPeerHasARowOfEachKindAndSaysWhatItDoes(t *testing.T) {
	rows := measured(t, `"Providers":["loop","iwarp:127.0.0.1"],"Modes":["poll","channel"]`)
	assert.Len(t, rows, 2*2*2+len(lane.Anchors())+len(lane.RoundTrips())+len(transports()))
	for i := range rows {
		assert.NotEmpty(t, rows[i].Does, rows[i].Name)
		if why := rows[i].Refused; why != "" {
			assert.Regexp(t, "something else used|other programs had|its post waits", why, rows[i].Name)
		}
	}
}

func TestOnlyThePeersThatAreNamedAreMeasured(t *testing.T) {
	rows := measured(t, `"Only":"raw"`)
	require.Len(t, rows, 4)
	for i := range rows {
		assert.Contains(t, rows[i].Name, "raw ")
	}
	assert.ErrorIs(t, measure(`{"Sizes":[64],"Only":"nosuch"}`, io.Discard), study.ErrUsage)
	assert.ErrorIs(t, measure(`{"Modes":["telepathy"]}`, io.Discard), study.ErrUsage)
}

func TestAnAdapterThatCannotBeOpenedRefusesItsRowsOnly(t *testing.T) {
	rows := measured(t, `"Providers":["absent","loop"],"Modes":["poll"],"Only":"poll over"`)
	require.Len(t, rows, 4)
	for i := range rows {
		if strings.HasSuffix(rows[i].Name, "absent") {
			assert.Contains(t, rows[i].Refused, `provider "absent"`)
		} else {
			assert.NotContains(t, rows[i].Refused, "provider")
		}
	}
}

func TestAMessageOfAnotherSizeIsAnError(t *testing.T) {
	m := newMessage(64)
	slot, err := slotOf(m, 64)
	require.NoError(t, err)
	assert.Zero(t, slot)
	_, err = slotOf(m, 65)
	assert.ErrorContains(t, err, "65 bytes came with 64")
	_, err = slotOf(newMessage(1), 1)
	assert.NoError(t, err, "a message has room for its slot at least")
}
