package stream

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A reader has read half of the ring and had no credit to say so. It is woken when there is
// one: by a message that grants it, and by a send that leaves its slot. Nobody else may
// ever report.
func TestAReaderIsWokenWhenItsReportGetsACredit(t *testing.T) {
	blocked := func() *Conn {
		c := bareConn(leastRing)
		c.line.reader.wake = make(chan struct{}, 1)
		c.line.flow.in.produced.Store(leastRing / 2)
		c.line.flow.in.consumed.Store(leastRing / 2)
		c.line.flow.out.sent.Store(messages - 2)
		c.line.flow.out.completed.Store(messages)
		c.line.reader.waiting.Store(1)
		return c
	}
	t.Run("granted", func(t *testing.T) {
		c := blocked()
		assert.False(t, c.line.mayRead())
		c.line.flow.in.slots = append(encode(message{produced: leastRing / 2, granted: messages + 8}, ""), make([]byte, messages*slotSize)...)
		c.line.arrive(0)
		assert.True(t, c.line.mayRead())
		assert.Len(t, c.line.reader.wake, 1)
	})
	t.Run("completed", func(t *testing.T) {
		c := blocked()
		c.line.flow.out.granted.Store(4 * messages)
		c.line.flow.out.sent.Store(messages)
		c.line.flow.out.completed.Store(0)
		assert.False(t, c.line.mayRead())
		c.line.sent(2)
		assert.True(t, c.line.mayRead())
		assert.Len(t, c.line.reader.wake, 1)
	})
}

// A reader waits while fourteen messages without bytes come, in two lots for each of
// which alone it would not grant receives. The peer needs a third credit for its bytes.
func TestReceivesThatAreNotPostedAgainYetAreGranted(t *testing.T) {
	c := bareConn(leastRing)
	c.line.flow.in.received.Store(14)
	c.line.flow.in.reposted.Store(7)
	assert.True(t, c.line.flow.due())
}

// A Read announces that it waits, and then waits for its turn. The call before it takes the
// announcement back.
func TestAReadWhoseAnnouncementWasTakenBackIsWoken(t *testing.T) {
	client, server := newRig(t, "loop", Config{}).pair()
	client.reading.Lock()
	read := write(func() error {
		_, err := client.Read(make([]byte, 1))
		return err
	})
	require.Eventually(t, client.line.reader.announced, time.Minute, time.Millisecond)
	client.endRead()
	require.Eventually(t, client.line.reader.announced, time.Minute, time.Millisecond, "it waits unseen")
	_, err := server.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, <-read)
}

// A receive takes a message of any length, however short the one was that it took before.
// A message behind bytes that were written to the ring is as short as a message can be.
func TestAReceiveThatIsPostedAgainTakesAnyMessage(t *testing.T) {
	for _, answers := range []bool{false, true} { // an answer posts receives again, too
		client, server := newRig(t, "loop", Config{}).pair()
		for _, size := range []int{maxInline + 1, maxInline} {
			p, got := make([]byte, size), make([]byte, size)
			for range 3 * messages {
				_, err := client.Write(p)
				require.NoError(t, err)
				_, err = io.ReadFull(server, got)
				require.NoError(t, err)
				if answers {
					_, err = server.Write(got[:1])
					require.NoError(t, err)
					_, err = io.ReadFull(client, got[:1])
					require.NoError(t, err)
				}
			}
		}
	}
}

// Bytes in a buffer that the peer has offered are unread, too, and may be more than its
// ring has room for. Then the ring has room for none.
func TestNoMessageHasRoomWhileMoreIsUnreadThanTheRingHolds(t *testing.T) {
	c := bareConn(leastRing)
	c.line.flow.out.produced.Store(2*leastRing - 1)
	c.line.flow.out.consumed.Store(leastRing)
	assert.True(t, c.line.flow.takes(1))
	assert.False(t, c.line.flow.takes(2))
	c.line.flow.out.produced.Store(2*leastRing + 1)
	assert.False(t, c.line.flow.takes(1))
}
