package runtime

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/mem"
)

// nextBatch takes the next batch of a channel.
func nextBatch(t testing.TB, batches <-chan *evd.Batch) *evd.Batch {
	t.Helper()
	select {
	case b := <-batches:
		return b
	case <-time.After(patience):
		require.Fail(t, "no batch came")
		return nil
	}
}

// A server answers what comes in batches, and hears of the end, which is the last event.
func TestEventsComeInBatches(t *testing.T) {
	for name, apart := range map[string]bool{"one channel": false, "a channel each": true} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, ia *IA) {
				const depth, rounds = 16, 10
				cfg := ConnConfig{Depth: depth, Message: 64, Apart: apart, Batches: true}
				l := listen(t, ia, cfg)
				served := make(chan error, 1)
				go func() { served <- serveBatches(l, apart) }()
				client := dial(t, ia, l, cfg)
				assert.Nil(t, client.Events())
				assert.Nil(t, l.Events())
				_, err := client.Receive(within(t))
				require.ErrorIs(t, err, hw.ErrInvalidState)
				for round := range rounds {
					for i := range depth {
						b := client.Buffer()
						require.NotNil(t, b)
						_, _ = fmt.Fprintf(b, "%d %d", round, i)
						require.NoError(t, client.Queue(b))
					}
					require.NoError(t, client.Flush())
					for i := 0; i < depth; {
						batch := nextBatch(t, client.Batches())
						for _, ev := range batch.Events() {
							m := client.Message(ev)
							require.NotNil(t, m, ev.String())
							require.Equal(t, fmt.Sprint(round, i), string(m.Bytes()))
							client.Release(m)
							i++
						}
						batch.Release()
					}
				}
				require.NoError(t, client.Shutdown(within(t)))
				require.NoError(t, <-served)
				require.NoError(t, l.Close())
				assert.Nil(t, (*Conn)(nil).Batches())
				assert.Nil(t, (*Listener)(nil).Batches())
			})
		})
	}
}

// serveBatches accepts a connection, and sends its messages back until it ends.
func serveBatches(l *Listener, apart bool) error {
	c, err := l.Accept(ep.RequestOf(<-l.Requests()), nil)
	if err != nil {
		return err
	}
	batches := l.Batches()
	if apart {
		batches = c.Batches()
	}
	for batch := range batches {
		for _, ev := range batch.Events() {
			if ConnOf(ev) != c {
				return fmt.Errorf("an event of %v", ConnOf(ev))
			}
			if b := c.Message(ev); b != nil {
				if err := c.Queue(b); err != nil {
					return err
				}
			}
			if ev.Ended() {
				batch.Release()
				return c.Close()
			}
		}
		batch.Release()
		if err := c.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// A connection posts its receives in batches, and yet there is one for each of Depth
// messages at any time.
func TestDepthReceivesAreAlwaysPosted(t *testing.T) {
	for _, depth := range []int{1, 2, 3, 7, 64} {
		onEach(t, func(t *testing.T, ia *IA) {
			l, client, server := both(t, ia, ConnConfig{Depth: depth, Message: 64})
			for i := range 3*depth + 50 {
				require.NoError(t, client.SendBytes([]byte("message")))
				b := server.Message(nextEvent(t, server.Events()))
				require.GreaterOrEqual(t, server.cfg.receives()-int(server.missing.Load()), depth, i)
				require.NotNil(t, b)
				server.Release(b)
				require.Eventually(t, func() bool { return allBack(client) }, patience, time.Microsecond)
			}
			require.NoError(t, l.Close())
			require.NoError(t, client.Close())
		})
	}
}

// What a program keeps is missing among the receives only once no other buffer is free.
func TestReceivesThatFoundNoBufferArePostedLater(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		const depth = 8
		l, client, server := both(t, ia, ConnConfig{Depth: depth, Message: 64})
		var kept []*mem.Buffer
		for range buffersPerDepth * depth {
			require.NoError(t, client.SendBytes([]byte("message")))
			kept = append(kept, server.Message(nextEvent(t, server.Events())))
			require.NotNil(t, kept[len(kept)-1])
			require.Less(t, kept[len(kept)-1].Index(), 4*depth, "programs count on it")
			require.Eventually(t, func() bool { return allBack(client) }, patience, time.Microsecond)
		}
		assert.EqualValues(t, server.cfg.receives(), server.missing.Load(), "the program has all buffers")
		for _, b := range kept {
			server.Release(b)
		}
		assert.Less(t, int(server.missing.Load()), server.cfg.batch)
		require.NoError(t, client.SendBytes([]byte("again")))
		assert.Equal(t, "again", hear(t, server))
		require.NoError(t, l.Close())
		require.NoError(t, client.Close())
	})
}

func TestAProgramThatSetsItsReceivesHasAllOfThem(t *testing.T) {
	ia := open(t, "loop")
	cfg := ConnConfig{Depth: 16, Attr: &ep.Attr{MaxRecvDTOs: 18}}
	require.NoError(t, cfg.complete("test", ia.attr))
	assert.Equal(t, 16, cfg.receives())
}
