package event

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/internal/door"
)

func TestTheErrorOfAConnectionsEndUnwrapsToItsNumberAndItsCause(t *testing.T) {
	cause := &hw.Cause{Layer: hw.LayerTCP, Text: "read", Err: syscall.ECONNRESET, Found: hw.SidePeer}
	ev := ConnectionEnd(door.Key{}, Broken, nil, []byte("bye"), cause)
	err := ev.Err()
	require.ErrorIs(t, err, Error(Broken))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	assert.NotErrorIs(t, err, Error(Disconnected))
	assert.Equal(t, "godat: connection: BROKEN: TCP: read, found by the peer", err.Error())
	var got *hw.Cause
	require.ErrorAs(t, err, &got)
	assert.Same(t, cause, got)
	assert.Same(t, cause, ev.Cause())
	var number Error
	require.ErrorAs(t, err, &number)
	assert.Equal(t, Error(Broken), number)
	assert.Equal(t, "bye", string(ev.Private()))
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = ev.Err() }))
}

func TestAConnectionsEndWithoutACauseIsWhatItsNumberIs(t *testing.T) {
	ev := ConnectionEnd(door.Key{}, TimedOut, nil, nil, nil)
	assert.Equal(t, Error(TimedOut), ev.Err())
	assert.Nil(t, ev.Cause())
	private := ConnectionEnd(door.Key{}, TimedOut, nil, []byte{1}, nil)
	require.ErrorIs(t, private.Err(), os.ErrDeadlineExceeded)
	assert.Equal(t, Error(TimedOut).Error(), private.Err().Error())
	var cause *hw.Cause
	assert.False(t, errors.As(private.Err(), &cause))
}

func TestAnOrderlyEndIsNoErrorThoughItHasACause(t *testing.T) {
	cause := &hw.Cause{Text: "the peer disconnected", Found: hw.SidePeer}
	ev := ConnectionEnd(door.Key{}, Disconnected, nil, nil, cause)
	require.NoError(t, ev.Err())
	assert.Same(t, cause, ev.Cause())
}

func TestAFlushSaysWhyTheConnectionEnded(t *testing.T) {
	cause := &hw.Cause{Layer: hw.LayerTCP, Text: "connect: connection refused", Err: syscall.ECONNREFUSED, Found: hw.SidePeer}
	ev := Event{Number: DTOCompletion, Status: hw.StatusFlushed, Op: hw.OpRecv, Data: cause}
	err := ev.Err()
	require.ErrorIs(t, err, hw.StatusFlushed.Err())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	assert.Equal(t, "godat: completion: ERR_FLUSHED: TCP: connect: connection refused, found by the peer; nothing listens there: start the server, or look at the port", err.Error())
	assert.Same(t, cause, ev.Cause())
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = ev.Err() }))
	assert.Nil(t, Event{Number: SoftwareEvent, Data: cause}.Cause(), "the program's own")
}
