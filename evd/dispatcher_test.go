package evd

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
	"godat/internal/delivery"
	"godat/internal/door"
)

// allModes are those whose events take places.
var allModes = func() (all []Mode) {
	for mode, way := range ways {
		if !way.Placeless {
			all = append(all, Mode(mode))
		}
	}
	return all
}()

func TestNewChecksItsConfig(t *testing.T) {
	nop := func([]event.Event) {}
	for name, tc := range map[string]struct {
		cfg  Config
		typ  hw.Type
		sub  hw.Subtype
		good bool
	}{
		"the least":                      {cfg: Config{QLen: 1}, good: true},
		"the longest":                    {cfg: Config{QLen: 1, MaxLen: MaxQLen}, good: true},
		"no length":                      {Config{}, hw.InvalidParameter, hw.Arg2, false},
		"a negative length":              {Config{QLen: -1}, hw.InvalidParameter, hw.Arg2, false},
		"a maximum below the length":     {Config{QLen: 2, MaxLen: 1}, hw.InvalidParameter, hw.Arg2, false},
		"too long":                       {Config{QLen: MaxQLen + 1}, hw.InsufficientResources, hw.ResourceTEVD, false},
		"a maximum too long":             {Config{QLen: 1, MaxLen: MaxQLen + 1}, hw.InsufficientResources, hw.ResourceTEVD, false},
		"unknown streams":                {Config{QLen: 1, Streams: 0x200}, hw.InvalidParameter, hw.Arg4, false},
		"an unknown mode":                {Config{QLen: 1, Mode: Mode(len(ways))}, hw.InvalidParameter, hw.Arg4, false},
		"a function":                     {cfg: Config{Mode: ModeFunc, Func: func(event.Event) {}}, good: true},
		"no function":                    {Config{Mode: ModeFunc}, hw.InvalidParameter, hw.Arg4, false},
		"a function with places":         {Config{QLen: 1, Mode: ModeFunc, Func: func(event.Event) {}}, hw.InvalidParameter, hw.Arg2, false},
		"a callback":                     {cfg: Config{QLen: 1, Mode: ModeCallback, Callback: nop}, good: true},
		"no callback":                    {Config{QLen: 1, Mode: ModeCallback}, hw.InvalidParameter, hw.Arg4, false},
		"a callback that nobody calls":   {Config{QLen: 1, Callback: nop}, hw.InvalidParameter, hw.Arg4, false},
		"a function that nobody calls":   {Config{Func: func(event.Event) {}}, hw.InvalidParameter, hw.Arg4, false},
		"batches":                        {cfg: Config{QLen: 1, Mode: ModeBatch, BatchMin: 3, BatchMax: 3}, good: true},
		"a large minimum alone":          {cfg: Config{QLen: 1, Mode: ModeBatch, BatchMin: 100}, good: true},
		"a maximum below the minimum":    {Config{QLen: 1, BatchMin: 3, BatchMax: 2}, hw.InvalidParameter, hw.Arg4, false},
		"a negative minimum":             {Config{QLen: 1, BatchMin: -1}, hw.InvalidParameter, hw.Arg4, false},
		"a batch longer than any queue":  {Config{QLen: 1, BatchMax: MaxQLen + 1}, hw.InvalidParameter, hw.Arg4, false},
		"a batch longer than this queue": {cfg: Config{QLen: 1, BatchMax: 1000}, good: true},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := New(tc.cfg)
			if tc.good {
				require.NoError(t, err)
				assert.NoError(t, d.Close())
				return
			}
			assert.Nil(t, d)
			isError(t, err, tc.typ, tc.sub)
		})
	}
}

func TestADispatcherTellsWhatItIs(t *testing.T) {
	for _, mode := range allModes {
		d := newDispatcher(t, Config{QLen: 5, Mode: mode, Streams: event.StreamDTO | event.StreamSoftware})
		want := Param{QLen: 5, State: StateEnabled | StateWaitable | ConfigThreshold, Streams: event.StreamDTO | event.StreamSoftware}
		if mode == ModeChannel {
			want.QLen += slack
		}
		got, err := d.Query()
		require.NoError(t, err)
		assert.Equal(t, want, got, mode)
	}
}

func TestResizeMovesTheLimitWithinMaxLen(t *testing.T) {
	room := map[Mode]int{ModeChannel: slack}
	for _, mode := range allModes {
		t.Run(mode.String(), func(t *testing.T) {
			d := newDispatcher(t, Config{QLen: 4, MaxLen: 10, Mode: mode})
			q := d.inner.Main()
			isError(t, d.Resize(0), hw.InvalidParameter, hw.Arg2)
			isError(t, d.Resize(11), hw.InsufficientResources, hw.ResourceTEVD)
			for _, n := range []int{4, 10, 1, 7} {
				require.NoError(t, d.Resize(n))
				p, err := d.Query()
				require.NoError(t, err)
				assert.Equal(t, n+room[mode], p.QLen)
				assert.False(t, q.Reserve(n+room[mode]+1))
				require.True(t, q.Reserve(n+room[mode]))
				assert.False(t, q.Reserve(1))
				q.Release(n + room[mode])
			}
		})
	}
}

func TestResizeIsRefusedBelowAWaitersThreshold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(t, Config{})
		var err error
		go func() { _, _, err = d.Wait(context.Background(), 3) }()
		synctest.Wait()
		isError(t, d.Resize(2), hw.InvalidState, hw.StateEVDWaiter)
		require.NoError(t, d.Resize(3))
		put(t, d.inner.Main(), 1, 2, 3)
		synctest.Wait()
		assert.NoError(t, err)
		assert.NoError(t, d.Resize(2))
	})
}

func TestResizeKeepsEvents(t *testing.T) {
	d := newDispatcher(t, Config{QLen: 4, MaxLen: 10})
	put(t, d.inner.Main(), 1, 2, 3)
	isError(t, d.Resize(2), hw.InvalidState, hw.NoSubtype)
	require.NoError(t, d.Resize(10))
	put(t, d.inner.Main(), 4, 5, 6, 7)
	require.NoError(t, d.Resize(7))
	assert.False(t, d.inner.Main().Reserve(1))
	assert.Equal(t, list(1, 2, 3, 4, 5, 6, 7), drain(t, d))
	require.NoError(t, d.Resize(1))

	// Held events, and those in a batch, count as queued.
	c := newDispatcher(t, Config{QLen: 8, Mode: ModeChannel})
	put(t, c.inner.Main(), 1)
	putSilent(t, c.inner.Main(), 2, 3)
	isError(t, c.Resize(2), hw.InvalidState, hw.NoSubtype)
	require.NoError(t, c.Resize(3))
	b := newDispatcher(t, Config{QLen: 8, Mode: ModeBatch})
	put(t, b.inner.Main(), 1)
	putSilent(t, b.inner.Main(), 2, 3)
	isError(t, b.Resize(2), hw.InvalidState, hw.NoSubtype)
	require.NoError(t, b.Resize(3))
	(<-b.Batches()).Release()
	require.NoError(t, b.Resize(2))
}

func TestNilAndClosedAreInvalidHandles(t *testing.T) {
	gone, err := New(Config{QLen: 1, Streams: allStreams})
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	for name, d := range map[string]*Dispatcher{"nil": nil, "closed": gone} {
		for call, f := range map[string]func() error{
			"Dequeue":      func() error { _, err := d.Dequeue(make([]event.Event, 1)); return err },
			"Wait":         func() error { _, _, err := d.Wait(background, 1); return err },
			"Attach":       func() error { return d.Wiring(door.Key{}).Feeds().Attach(feed(event.StreamDTO)) },
			"Query":        func() error { _, err := d.Query(); return err },
			"Resize":       func() error { return d.Resize(1) },
			"Route":        func() error { _, err := d.Route(0, 0, 1); return err },
			"PostSoftware": func() error { return d.PostSoftware(1) },
			"Arm":          func() error { _, err := d.NewOneShot().Wiring(door.Key{}).Arm(); return err },
		} {
			isError(t, f(), hw.InvalidHandle, hw.Handle1, name, call)
		}
		for range d.Events(background) {
			t.Error("an event")
		}
		d.Wiring(door.Key{}).PutAsync(new(delivery.AsyncNode))
		d.Flush()
		d.Wiring(door.Key{}).Abort()
		assert.Nil(t, d.C())
		assert.Nil(t, d.Batches())
	}
	isError(t, (*Dispatcher)(nil).Close(), hw.InvalidHandle, hw.Handle1)
	isError(t, (*Route)(nil).Close(), hw.InvalidHandle, hw.Handle1)
	_, err = (*OneShot)(nil).Wait(background)
	isError(t, err, hw.InvalidHandle, hw.Handle1)
	(*OneShot)(nil).Release()
	assert.False(t, gone.inner.Main().Reserve(1))
}

func TestSoftwareEvents(t *testing.T) {
	for _, mode := range []Mode{ModeQueue, ModeChannel} {
		d := newDispatcher(t, Config{QLen: 2, Mode: mode, Streams: event.StreamSoftware})
		full := 2
		if mode == ModeChannel {
			full += slack
		}
		for i := range full {
			require.NoError(t, d.PostSoftware(i))
		}
		isError(t, d.PostSoftware("no room"), hw.QueueFull, hw.NoSubtype)
		var ev event.Event
		if mode == ModeChannel {
			ev = <-d.C()
		} else {
			ev, _, _ = d.Wait(background, 1)
		}
		payload, ok := ev.Software()
		assert.True(t, ok)
		assert.Equal(t, 0, payload)
		assert.NoError(t, d.PostSoftware("room again"))
	}
	d := newDispatcher(t, Config{})
	isError(t, d.PostSoftware(1), hw.InvalidParameter, hw.Arg1)
}

func TestAttachTakesOnlyTheDispatchersStreams(t *testing.T) {
	d := newDispatcher(t, Config{Streams: event.StreamDTO | event.StreamConnection})
	feeds := d.inner.Feeds()
	one, two := feed(event.StreamDTO), feed(event.StreamDTO|event.StreamConnection)
	require.NoError(t, feeds.Attach(one))
	require.NoError(t, feeds.Attach(two))
	isError(t, feeds.Attach(feed(event.StreamDTO|event.StreamAsync)), hw.InvalidParameter, hw.NoSubtype)
	isError(t, d.Close(), hw.InvalidState, hw.StateEVDInUse)
	feeds.Detach(one)
	isError(t, d.Close(), hw.InvalidState, hw.StateEVDInUse)
	require.True(t, d.inner.Main().Reserve(1), "a refused Close has no effect")
	d.inner.Main().Release(1)
	feeds.Detach(two)
	assert.Panics(t, func() { feeds.Detach(two) })
	assert.NoError(t, d.Close())
}

func feed(s event.Streams) delivery.Feed { return delivery.Feed{Streams: s} }

func TestQueryTellsHowManyEventsAreAdmitted(t *testing.T) {
	for _, mode := range allModes {
		d := newDispatcher(t, Config{Mode: mode, QLen: 6, MaxLen: 12})
		for _, qlen := range []int{6, 12, 3} {
			require.NoError(t, d.Resize(qlen), mode)
			p, err := d.Query()
			require.NoError(t, err)
			assert.GreaterOrEqual(t, p.QLen, qlen, mode)
			n := 0
			for d.inner.Main().Reserve(1) {
				n++
			}
			assert.Equal(t, p.QLen, n, mode)
			d.inner.Main().Release(n)
		}
	}
}
