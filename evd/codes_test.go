package evd

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
)

// code is a return code; the zero one is success.
type code struct {
	typ hw.Type
	sub hw.Subtype
}

var (
	ok         = code{}
	waiter     = code{hw.InvalidState, hw.StateEVDWaiter}
	unwaitable = code{hw.InvalidState, hw.StateEVDUnwaitable}
	inUse      = code{hw.InvalidState, hw.StateEVDInUse}
	timedOut   = code{hw.TimeoutExpired, hw.NoSubtype}
	gone       = code{hw.InvalidHandle, hw.Handle1}
)

func (c code) is(t *testing.T, err error, msg ...any) {
	t.Helper()
	if c == ok {
		assert.NoError(t, err, msg...)
	} else {
		isError(t, err, c.typ, c.sub, msg...)
	}
}

// callsByState has what each call on a dispatcher returns, by the dispatcher's
// state.
var callsByState = []struct {
	state                                                    string
	dequeue, wait, post, resize, enable, disable, modify, cl code
}{
	{"empty", ok, timedOut, ok, ok, ok, ok, ok, ok},
	{"with an event", ok, ok, ok, ok, ok, ok, ok, ok},
	{"disabled, with an event", ok, ok, ok, ok, ok, ok, ok, ok},
	{"unwaitable, with an event", ok, unwaitable, ok, ok, ok, ok, ok, ok},
	{"unwaitable", ok, unwaitable, ok, ok, ok, ok, ok, ok},
	{"a goroutine waits", waiter, waiter, ok, ok, ok, ok, ok, waiter},
	{"something feeds it", ok, timedOut, ok, ok, ok, ok, ok, inUse},
	{"a channel", waiter, waiter, ok, ok, ok, ok, waiter, ok},
	{"closed", gone, gone, gone, gone, gone, gone, gone, ok},
}

func TestEachCallHasItsCodeInEachState(t *testing.T) {
	for _, row := range callsByState {
		calls := map[string]struct {
			call func(d *Dispatcher, c *CNO) error
			want code
		}{
			"dequeue": {func(d *Dispatcher, _ *CNO) error { return second(d.Dequeue(make([]event.Event, 1))) }, row.dequeue},
			"wait": {func(d *Dispatcher, _ *CNO) error {
				_, _, err := d.Wait(expired(), 1)
				return err
			}, row.wait},
			"post":    {func(d *Dispatcher, _ *CNO) error { return d.PostSoftware(1) }, row.post},
			"resize":  {func(d *Dispatcher, _ *CNO) error { return d.Resize(5) }, row.resize},
			"enable":  {func(d *Dispatcher, _ *CNO) error { return d.Enable() }, row.enable},
			"disable": {func(d *Dispatcher, _ *CNO) error { return d.Disable() }, row.disable},
			"modify":  {(*Dispatcher).ModifyCNO, row.modify},
			"close":   {func(d *Dispatcher, _ *CNO) error { return d.Close() }, row.cl},
		}
		for name, tc := range calls {
			synctest.Test(t, func(t *testing.T) {
				c, d := newCNO(t, CNOConfig{}), inState(t, row.state)
				tc.want.is(t, tc.call(d, c), row.state, name)
			})
		}
	}
}

// inState makes a dispatcher in one of the states of the table.
func inState(t *testing.T, state string) *Dispatcher {
	cfg := Config{Streams: event.DefaultStreams | event.StreamSoftware}
	if state == "a channel" {
		cfg.Mode = ModeChannel
	}
	d := newDispatcher(t, cfg)
	switch state {
	case "with an event":
		put(t, d.inner.Main(), 1)
	case "disabled, with an event":
		put(t, d.inner.Main(), 1)
		require.NoError(t, d.Disable())
	case "unwaitable, with an event":
		put(t, d.inner.Main(), 1)
		require.NoError(t, d.SetUnwaitable())
	case "unwaitable":
		require.NoError(t, d.SetUnwaitable())
	case "a goroutine waits":
		go func() { _, _, _ = d.Wait(t.Context(), 3) }()
		synctest.Wait()
	case "something feeds it":
		require.NoError(t, d.inner.Feeds().Attach(feed(event.StreamDTO)))
	case "closed":
		require.NoError(t, d.Close())
	}
	return d
}

// DAT's rules 1, 3 and 4, for a queue of 4: what a Wait without time returns, by
// its threshold and by the number of queued events.
func TestWaitersGetTheirThreshold(t *testing.T) {
	bad := code{hw.InvalidParameter, hw.Arg3}
	want := [6][5]code{ // rows: threshold 0 to 5; columns: 0 to 4 events
		{bad, bad, bad, bad, bad},
		{timedOut, ok, ok, ok, ok},
		{timedOut, timedOut, ok, ok, ok},
		{timedOut, timedOut, timedOut, ok, ok},
		{timedOut, timedOut, timedOut, timedOut, ok},
		{bad, bad, bad, bad, bad},
	}
	for threshold, row := range want {
		for queued, code := range row {
			d := newDispatcher(t, Config{QLen: 4})
			for c := range uint64(queued) {
				put(t, d.inner.Main(), c)
			}
			ev, nmore, err := d.Wait(expired(), threshold)
			code.is(t, err, "threshold %d of %d", threshold, queued)
			left := queued
			switch code {
			case ok:
				left--
				assert.Zero(t, ev.Cookie, "the first")
				assert.Equal(t, left, nmore)
				assert.GreaterOrEqual(t, nmore, threshold-1)
			case timedOut:
				assert.Equal(t, queued, nmore)
			}
			assert.Len(t, drain(t, d), left, "threshold %d of %d", threshold, queued)
		}
	}
}

// Each pair of streams may share a dispatcher, and the dispatcher refuses each
// stream that it does not take.
func TestAnyTwoStreamsMerge(t *testing.T) {
	number := map[event.Streams]event.Number{
		event.StreamSoftware: event.SoftwareEvent, event.StreamCR: event.ConnectionRequest, event.StreamDTO: event.DTOCompletion,
		event.StreamConnection: event.Established, event.StreamBind: event.BindCompletion, event.StreamAsync: event.AsyncIACatastrophic,
	}
	for a := range number {
		for b := range number {
			d := newDispatcher(t, Config{Streams: a | b})
			for s, n := range number {
				err := d.inner.Feeds().Attach(feed(s))
				if s&(a|b) == 0 {
					isError(t, err, hw.InvalidParameter, hw.NoSubtype, s)
					continue
				}
				require.NoError(t, err)
				putEvent(t, d.inner.Main(), &event.Event{Number: n, Cookie: uint64(s)}, false)
				d.inner.Feeds().Detach(feed(s))
			}
			var sum uint64
			for _, c := range drain(t, d) {
				sum |= c
			}
			assert.EqualValues(t, a|b, sum)
		}
	}
}
