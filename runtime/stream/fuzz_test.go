package stream

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/mem"
)

func FuzzHello(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(hello{}.append(nil))
	f.Add(hello{mem.RemoteSegment{Addr: 4096, Len: leastRing, Context: 7}, messages, 0}.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHello(b)
		if err != nil {
			require.ErrorIs(t, err, ErrProtocol)
			assert.Equal(t, hello{}, h)
			return
		}
		again, err := parseHello(h.append(nil))
		require.NoError(t, err)
		assert.Equal(t, h, again)
		assert.LessOrEqual(t, h.ring.Len, uint32(mostRing))
		assert.LessOrEqual(t, h.receives, uint32(mostReceives))
	})
}

// bareConn is a connection that is up and has no endpoint: what its receiving side needs.
func bareConn(size int) *Conn {
	c := &Conn{line: line{up: make(chan struct{}), down: make(chan struct{})}}
	c.line.flow.in.first.mem, c.line.flow.in.slots = make([]byte, size), make([]byte, messages*slotSize)
	c.line.flow.out.image.mem, c.line.flow.out.slots = make([]byte, size), make([]byte, messages*slotSize)
	c.line.flow.in.movedAt.Store(notMoved)
	c.line.flow.in.at.Store(notOffered)
	c.line.flow.out.bufferAt.Store(notOffered)
	c.line.flow.out.peer.Len, c.line.flow.out.smallest = uint32(size), uint32(size)
	c.line.flow.out.toldGranted.Store(messages)
	c.line.flow.out.receives, c.line.flow.out.version = messages, newest
	c.line.late = time.AfterFunc(time.Hour, func() {}) // it has no endpoint to report by
	c.line.late.Stop()
	c.line.establish(nil)
	return c
}

// A peer may send any messages. The counters never go back, and never pass what there is.
func FuzzMessages(f *testing.F) {
	f.Add(uint16(0), encode(message{produced: 4, granted: messages}, "true"))
	f.Add(uint16(9), append(
		encode(message{produced: slotSize - headerSize, consumed: 3, granted: messages + 1}, string(make([]byte, slotSize-headerSize))),
		encode(message{produced: 300, consumed: 5, granted: messages + 2, flags: flagFIN}, "")...))
	f.Add(uint16(9), append(
		append(encode(message{produced: 1, consumed: 8, granted: messages, flags: flagOffer, ring: mem.RemoteSegment{Len: leastRing}}, ""),
			make([]byte, slotSize-headerSize-16)...),
		encode(message{produced: 1 + 2*leastRing, granted: messages, flags: flagDirect}, "")...))
	f.Fuzz(func(t *testing.T, sent uint16, script []byte) {
		c := bareConn(leastRing)
		c.line.flow.out.sent.Store(uint64(sent))
		c.line.flow.out.produced.Store(2 * uint64(sent))
		for i := 0; len(script) > 0; i++ {
			slot := i % messages
			n := copy(c.line.flow.in.slots[slot*slotSize:][:slotSize], script)
			script = script[n:]
			produced, consumed, granted, fin := c.line.flow.in.produced.Load(), c.line.flow.out.consumed.Load(), c.line.flow.out.granted.Load(), c.line.flow.in.fin.Load()
			over := c.line.ended.Load()
			c.line.arrive(slot)
			if c.line.ended.Load() != nil {
				require.ErrorIs(t, c.line.ended.Load().err, ErrProtocol)
				assert.Equal(t, produced, c.line.flow.in.produced.Load(), "the lie counts nothing")
			}
			if over != nil {
				assert.Same(t, over, c.line.ended.Load(), "the first lie stays")
			}
			assert.GreaterOrEqual(t, c.line.flow.in.produced.Load(), produced)
			assert.GreaterOrEqual(t, c.line.flow.out.consumed.Load(), consumed)
			assert.GreaterOrEqual(t, c.line.flow.out.granted.Load(), granted)
			room := uint64(leastRing)
			if c.line.flow.in.end.Load() > c.line.flow.in.consumed.Load() {
				room = uint64(c.line.flow.in.size)
			}
			assert.LessOrEqual(t, c.line.flow.in.produced.Load()-c.line.flow.in.consumed.Load(), room)
			assert.LessOrEqual(t, c.line.flow.out.consumed.Load(), 2*uint64(sent))
			assert.LessOrEqual(t, c.line.flow.out.granted.Load(), uint64(sent)+messages)
			assert.True(t, !fin || c.line.flow.in.produced.Load() == produced)
			if n%2 == 0 { // the program reads a part
				c.line.flow.in.consumed.Add(uint64(len(c.line.flow.readable(0)) / 2))
			} else if at := c.line.flow.in.consumed.Add(uint64(len(c.line.flow.readable(0)))); at == c.line.flow.in.produced.Load() { // and offers a buffer
				c.line.flow.in.mem, c.line.flow.in.size = make([]byte, 2*leastRing), 2*leastRing
				c.line.flow.in.at.Store(at)
			}
		}
	})
}

func TestAHeaderIsReadAsItWasWritten(t *testing.T) {
	b := make([]byte, slotSize)
	for _, want := range []message{
		{},
		{produced: 1 << 63, consumed: 1<<63 - 1, granted: 77, inline: maxInline, flags: flagFIN},
		{produced: 1, inline: 1, flags: flagMoved},
		{consumed: 1, flags: flagRing, ring: mem.RemoteSegment{Addr: 1 << 40, Len: 1 << 20, Context: 9}},
	} {
		length := want.put(b, newest)
		var got message
		ok := got.parse(b, newest)
		assert.Equal(t, length > headerSize, want.inline > 0 || want.has(flagRing))
		assert.True(t, ok)
		assert.Equal(t, want, got)
	}
	golden := message{produced: 0x0102, consumed: 3, granted: 4, inline: 5, flags: flagFIN}
	golden.put(b, newest)
	assert.Equal(t, []byte{2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 1, 0, 0, 0, 0, 3}, b[:headerSize])
	h := hello{mem.RemoteSegment{Addr: 0x0102, Len: leastRing, Context: 3}, 16, 0}
	assert.Equal(t, append([]byte("DATS"),
		3, 0, 3, 0, 2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 16, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0), h.append(nil))
	for i := 25; i < headerSize; i++ {
		golden.put(b, newest)
		b[i] ^= 0x80
		ok := new(message).parse(b, newest)
		assert.False(t, ok, "byte %d", i)
	}
}
