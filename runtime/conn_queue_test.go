package runtime

import (
	"errors"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

// dequeue takes the next completion of a connection with ConnConfig.Queue.
func dequeue(t testing.TB, c *Conn) event.Event {
	t.Helper()
	var buf [1]event.Event
	for began := time.Now(); time.Since(began) < patience; goruntime.Gosched() {
		n, err := c.Dequeue(buf[:])
		require.NoError(t, err)
		if n == 1 {
			return buf[0]
		}
	}
	require.Fail(t, "no completion came")
	return event.Event{}
}

func TestAProgramThatPollsDequeuesWhatItPosted(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		memory := make(map[*Conn]*mem.LMR)
		cfg := ConnConfig{Depth: 4, OwnReceives: true, Queue: true, Setup: func(c *Conn) ([]byte, error) {
			m, err := c.Alloc(64, hw.LocalRead|hw.LocalWrite)
			if err == nil {
				memory[c], err = m, c.Endpoint.PostRecv(1, 0, m.Segment(0, 32))
			}
			return nil, err
		}}
		l := listen(t, ia, cfg)
		accepted := make(chan *Conn, 1)
		client, err := l.Dial(l.Addr(), nil)
		require.NoError(t, err)
		go func() {
			c, err := l.Accept(ep.RequestOf(<-l.Requests()), nil)
			assert.NoError(t, err)
			accepted <- c
		}()
		server := <-accepted
		for range 2 {
			require.Equal(t, event.Established, nextEvent(t, l.Events()).Number)
		}
		copy(memory[client].Bytes()[32:], "polled")
		require.NoError(t, client.Endpoint.PostSend(2, 0, memory[client].Segment(32, 6)))
		sent, received := dequeue(t, client), dequeue(t, server)
		require.NoError(t, errors.Join(sent.Err(), received.Err()))
		assert.EqualValues(t, 2, sent.Cookie)
		assert.EqualValues(t, 1, received.Cookie)
		assert.Equal(t, "polled", string(memory[server].Bytes()[:received.Length]))
		require.NoError(t, client.Endpoint.Disconnect(ep.Abrupt))
		for _, c := range []*Conn{client, server} {
			require.True(t, nextEvent(t, l.Events()).Ended())
			require.NoError(t, c.Close())
			_, err := c.Dequeue(make([]event.Event, 1))
			require.ErrorIs(t, err, hw.ErrInvalidHandle)
		}
		require.NoError(t, l.Close())
	})
}

func TestAQueueThatAConnectionCanNotHaveIsRefused(t *testing.T) {
	ia := open(t, "loop")
	_, err := ia.Listen(within(t), "", ConnConfig{Queue: true})
	require.ErrorIs(t, err, &hw.Error{Type: hw.InvalidParameter})
	l, c, other := both(t, ia, ConnConfig{})
	for _, c := range []*Conn{c, nil} {
		_, err = c.Dequeue(make([]event.Event, 1))
		require.ErrorIs(t, err, hw.ErrInvalidHandle)
	}
	require.NoError(t, errors.Join(c.Close(), other.Close(), l.Close()))
}
