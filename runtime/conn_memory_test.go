package runtime

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

// showMemory is a Setup that tells the peer where the connection's memory is.
func showMemory(size int) func(*Conn) ([]byte, error) {
	return func(c *Conn) ([]byte, error) {
		l, err := c.Alloc(size, hw.AllPrivileges)
		if err != nil {
			return nil, err
		}
		c.Context = l
		return l.Remote(0, size).MarshalBinary()
	}
}

func TestBothEndsReachTheMemoryThatTheOtherShowed(t *testing.T) {
	const size = 64
	onEach(t, func(t *testing.T, ia *IA) {
		l := listen(t, ia, ConnConfig{Setup: showMemory(size)})
		accepted := make(chan *Conn, 1)
		go func() {
			c, err := l.Accept(ep.RequestOf(<-l.Requests()), []byte("Setup says something else"))
			assert.NoError(t, err)
			accepted <- c
		}()
		client := dial(t, ia, l, ConnConfig{Setup: showMemory(size), Private: []byte("the same")})
		server := <-accepted
		require.Equal(t, event.Established, nextEvent(t, l.Events()).Number)
		for _, x := range []struct{ from, to *Conn }{{client, server}, {server, client}} {
			mine, theirs := x.from.Context.(*mem.LMR), x.to.Context.(*mem.LMR)
			copy(mine.Bytes(), "from "+x.from.String())
			remote, err := mem.ParseRemoteSegment(x.from.Private())
			require.NoError(t, err)
			require.Equal(t, theirs.Remote(0, size), remote)
			require.NoError(t, x.from.Do(within(t), ep.DTO{Op: hw.OpWrite, Segment: mine.Segment(0, size), Remote: remote}))
			clear(mine.Bytes())
			require.NoError(t, x.from.Do(within(t), ep.DTO{Op: hw.OpRead, Flags: hw.Suppress, Segment: mine.Segment(0, size), Remote: remote}))
			assert.Contains(t, string(mine.Bytes()), "from "+x.from.String())
		}
		require.NoError(t, client.Close())
		require.NoError(t, l.Close())
	})
}

func TestMemoryIsForConnectionsThatAreOpen(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		var none *Conn
		_, err := none.Alloc(1, hw.AllPrivileges)
		requireCode(t, err, hw.InvalidHandle, hw.HandleEP)
		l := listen(t, ia, ConnConfig{Setup: func(c *Conn) ([]byte, error) {
			_, err := c.Alloc(0, hw.AllPrivileges)
			requireCode(t, err, hw.LengthError, hw.NoSubtype)
			freed, err := c.Alloc(8, hw.AllPrivileges)
			require.NoError(t, err)
			require.NoError(t, freed.Free())
			return nil, c.Close()
		}})
		c, err := l.Dial(l.Addr(), nil)
		require.ErrorIs(t, err, hw.ErrInvalidHandle)
		require.Nil(t, c)
		require.NoError(t, l.Close())
	})
}

func TestDoSaysHowItsRequestEnded(t *testing.T) {
	const size = 64
	onEach(t, func(t *testing.T, ia *IA) {
		l := listen(t, ia, ConnConfig{Setup: showMemory(size)})
		go func() { _, _ = l.Accept(ep.RequestOf(<-l.Requests()), nil) }()
		c := dial(t, ia, l, ConnConfig{Setup: showMemory(size)})
		mine := c.Context.(*mem.LMR)
		remote, err := mem.ParseRemoteSegment(c.Private())
		require.NoError(t, err)
		read := ep.DTO{Op: hw.OpRead, Segment: mine.Segment(0, size), Remote: remote}
		require.NoError(t, c.Do(within(t), read))
		requireCode(t, c.Do(nil, read), hw.InvalidParameter, hw.Arg1) //nolint:staticcheck // that is the test

		over, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, c.Do(over, read), context.Canceled)
		requireCode(t, c.Do(within(t)), hw.InvalidParameter, hw.Arg2)
		two := ep.DTO{Op: hw.OpWrite, Segment: mine.Segment(0, 8), Remote: remote.Slice(0, 8)}
		require.NoError(t, c.Do(within(t), two, read), "nothing has broken the connection")
		two.Segment.Len = size + 1
		requireCode(t, c.Do(within(t), read, two), hw.ProtectionViolation, hw.ProtectionRead) // the second
		read.Remote.Context++
		require.Error(t, c.Do(within(t), read), "the peer has no such memory")
		require.True(t, nextEvent(t, c.Events()).Ended(), "a request of Do has no event there")
		require.NoError(t, c.Close())
		requireCode(t, c.Do(within(t), read), hw.InvalidHandle, hw.HandleEP)
		requireCode(t, (*Conn)(nil).Do(within(t), read), hw.InvalidHandle, hw.HandleEP)
		require.NoError(t, l.Close())
	})
}

// ending is a context that ends as soon as it is waited for.
type ending struct {
	context.Context
	asked atomic.Bool
}

func (*ending) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

func (c *ending) Err() error {
	if c.asked.Swap(true) {
		return context.Canceled
	}
	return nil
}

func TestTheMemoryOfADoIsTheProgramsWhenItReturns(t *testing.T) {
	const size, rounds = 8 << 20, 8
	onEach(t, func(t *testing.T, ia *IA) {
		l := listen(t, ia, ConnConfig{Setup: showMemory(size)})
		for range rounds {
			go func() { _, _ = l.Accept(ep.RequestOf(<-l.Requests()), nil) }()
			c := dial(t, ia, l, ConnConfig{Setup: showMemory(size)})
			mine := c.Context.(*mem.LMR)
			remote, err := mem.ParseRemoteSegment(c.Private())
			require.NoError(t, err)
			read := ep.DTO{Op: hw.OpRead, Segment: mine.Segment(0, size), Remote: remote}
			err = c.Do(&ending{Context: t.Context()}, read)
			for i := range mine.Bytes() {
				mine.Bytes()[i] = 1
			}
			if err != nil { // the read may have completed at once
				require.ErrorIs(t, err, context.Canceled)
				require.True(t, nextEvent(t, c.Events()).Ended(), "the connection is broken")
			}
			require.NoError(t, c.Close())
			require.Equal(t, size, bytes.Count(mine.Bytes(), []byte{1}))
		}
		require.NoError(t, l.Close())
	})
}

func TestConnectionsShareMemoryThatEachRegisters(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		shared := make([]byte, 128)
		copy(shared, "of the program")
		l, client, server := both(t, ia, ConnConfig{})
		window, err := client.Alloc(64, hw.RemoteWrite|hw.LocalRead)
		require.NoError(t, err)
		for _, c := range []*Conn{server, client} {
			region, err := c.Register(shared, hw.LocalRead)
			require.NoError(t, err)
			require.Same(t, c.PZ(), region.PZ())
			if c == server {
				require.NoError(t, c.Do(within(t), ep.DTO{Op: hw.OpWrite, Segment: region.Segment(0, 64), Remote: window.Remote(0, 64)}))
				require.NoError(t, c.SendBytes(nil))
			}
		}
		b, err := client.Receive(within(t))
		require.NoError(t, err)
		client.Release(b)
		assert.Equal(t, "of the program", string(window.Bytes()[:14]))
		_, err = client.Register(nil, hw.LocalRead)
		requireCode(t, err, hw.LengthError, hw.NoSubtype)
		require.NoError(t, client.Close())
		_, err = client.Register(shared, hw.LocalRead)
		requireCode(t, err, hw.InvalidHandle, hw.HandleEP)
		_, err = (*Conn)(nil).Register(shared, hw.LocalRead)
		requireCode(t, err, hw.InvalidHandle, hw.HandleEP)
		require.NoError(t, l.Close())
	})
}

func TestAQueuedMessageInvalidatesAWindowOfThePeer(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		l, client, server := both(t, ia, ConnConfig{})
		if !ia.Attr().Ops.Has(hw.OpSendInvalidate) {
			require.NoError(t, server.QueueInvalidate(server.Buffer(), 1))
			require.ErrorIs(t, server.Flush(), hw.ErrModelNotSupported)
			require.NoError(t, l.Close())
			require.NoError(t, client.Close())
			return
		}
		memory, err := client.Alloc(64, hw.AllPrivileges)
		require.NoError(t, err)
		window, err := client.PZ().NewRMR()
		require.NoError(t, err)
		name, err := client.Endpoint.PostBind(1, 0, window, mem.Binding{Segment: memory.Segment(0, 64), Privileges: hw.RemoteWrite})
		require.NoError(t, err)
		require.NoError(t, nextEvent(t, client.Events()).Err())
		require.NoError(t, server.QueueInvalidate(server.Buffer(), name.Context))
		require.NoError(t, server.Flush())
		ev := nextEvent(t, client.Events())
		context, invalidated := ev.InvalidatedContext()
		assert.True(t, invalidated)
		assert.Equal(t, name.Context, context)
		client.Release(client.Message(ev))
		require.ErrorIs(t, server.QueueInvalidate(nil, 1), hw.ErrInvalidParameter)
		require.NoError(t, window.Free())
		require.NoError(t, client.Close())
		require.NoError(t, l.Close())
	})
}
