package proto

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/blockstore/block"
	dat "godat/runtime"
)

var limits = Limits{Slots: 16, Block: 65536}

func encoded(m Message) []byte {
	b := bytes.Repeat([]byte{0xee}, MessageLen) // old bytes of the buffer
	m.Put(b)
	return b
}

func put() Message {
	return Message{Op: OpPut, Slot: 15, Length: 65536, CRC: 0x01020304, Tag: 1 << 40, ID: block.IDOf([]byte("x"))}
}

func TestAnEncodedMessageIsParsedToItself(t *testing.T) {
	for _, m := range []Message{
		put(),
		{Op: OpGet, Slot: 3, Tag: 7, ID: block.IDOf([]byte("y"))},
		{Op: OpSetRoot, ID: block.IDOf([]byte("z"))},
		{Op: OpRoot},
	} {
		t.Run(m.Op.String(), func(t *testing.T) {
			got, err := ParseRequest(encoded(m), limits)
			require.NoError(t, err)
			assert.Equal(t, m, got)
			_, err = ParseReply(encoded(m), limits)
			require.ErrorIs(t, err, ErrMalformed, "it is a request")

			m.Reply, m.Length = true, 0
			if m.Op == OpGet {
				m.Length = 1
			}
			got, err = ParseReply(encoded(m), limits)
			require.NoError(t, err)
			assert.Equal(t, m, got)
			_, err = ParseRequest(encoded(m), limits)
			require.ErrorIs(t, err, ErrMalformed, "it is a reply")
		})
	}
}

// The layout is fixed: programs of different versions must agree on it.
func TestAMessageHasTheDocumentedLayout(t *testing.T) {
	b := encoded(put())
	assert.Equal(t, []byte{
		0xb1, 0x0c, 1, 1, 0, 0, 0, 15, // magic, version, op, status, zero, slot
		0, 1, 0, 0, 1, 2, 3, 4, // length, crc
		0, 0, 1, 0, 0, 0, 0, 0, // tag
		0, 0, 0, 0, 0, 0, 0, 0,
	}, b[:32])
	assert.Equal(t, block.IDOf([]byte("x")), block.ID(b[32:]))
}

func TestAMalformedRequestIsRefused(t *testing.T) {
	for name, change := range map[string]func(b []byte) []byte{
		"empty":                        func([]byte) []byte { return nil },
		"too short":                    func(b []byte) []byte { return b[:MessageLen-1] },
		"too long":                     func(b []byte) []byte { return append(b, 0) },
		"another magic":                func(b []byte) []byte { b[0]++; return b },
		"another version":              func(b []byte) []byte { b[2]++; return b },
		"operation 0":                  func(b []byte) []byte { b[3] = 0; return b },
		"an operation that is unknown": func(b []byte) []byte { b[3] = 5; return b },
		"a reply":                      func(b []byte) []byte { b[3] |= 0x80; return b },
		"a status":                     func(b []byte) []byte { b[4] = 1; return b },
		"an unknown status":            func(b []byte) []byte { b[4] = 200; return b },
		"a reserved byte":              func(b []byte) []byte { b[5] = 1; return b },
		"another reserved byte":        func(b []byte) []byte { b[31] = 1; return b },
		"a slot outside the window":    func(b []byte) []byte { b[7] = 16; return b },
		"a slot far outside":           func(b []byte) []byte { b[6] = 0xff; return b },
		"a block longer than a slot":   func(b []byte) []byte { b[11] = 1; return b },
		"a length that would overflow": func(b []byte) []byte { copy(b[8:], "\xff\xff\xff\xff"); return b },
		"PUT of nothing":               func(b []byte) []byte { copy(b[8:], "\x00\x00\x00\x00"); return b },
		"GET with a length":            func(b []byte) []byte { b[3] = 2; return b },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseRequest(change(encoded(put())), limits)
			require.ErrorIs(t, err, ErrMalformed)
		})
	}
}

func TestAnEncodedHandshakeIsParsedToItself(t *testing.T) {
	h := Hello{Limits{Slots: 16, Block: 4096}}
	b := h.Append(nil)
	require.Len(t, b, HelloLen)
	for _, padded := range [][]byte{b, append(b, make([]byte, 40)...)} {
		got, err := ParseHello(padded)
		require.NoError(t, err)
		assert.Equal(t, h, got)
	}

	for _, w := range []Welcome{
		{Limits: h.Limits, Window: dat.RemoteSegment{Addr: 1 << 40, Len: 16 * 4096, Context: 77}},
		{Limits: h.Limits, Status: Full},
	} {
		b := w.Append(nil)
		require.Len(t, b, WelcomeLen)
		got, err := ParseWelcome(append(b, 0, 0))
		require.NoError(t, err)
		assert.Equal(t, w, got)
	}
}

func TestAMalformedHandshakeIsRefused(t *testing.T) {
	good := Hello{Limits{Slots: 16, Block: 4096}}
	for name, b := range map[string][]byte{
		"nothing":           nil,
		"too short":         good.Append(nil)[:HelloLen-1],
		"no slots":          Hello{Limits{Slots: 0, Block: 4096}}.Append(nil),
		"too many slots":    Hello{Limits{Slots: MaxSlots + 1, Block: 4096}}.Append(nil),
		"too small a block": Hello{Limits{Slots: 1, Block: MinBlock - 1}}.Append(nil),
		"too large a block": Hello{Limits{Slots: 1, Block: MaxBlock + 1}}.Append(nil),
		"a status":          appendLimits(nil, Full, good.Limits),
		"another protocol":  []byte("GET / HTTP/1.1\r\n\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseHello(b)
			require.ErrorIs(t, err, ErrMalformed)
		})
	}
	short := Welcome{Limits: good.Limits, Window: dat.RemoteSegment{Len: 100}}
	_, err := ParseWelcome(short.Append(nil))
	require.ErrorIs(t, err, ErrMalformed, "a window of another size than the limits say")
}

func FuzzParseRequest(f *testing.F) {
	f.Add(encoded(put()))
	f.Add(encoded(Message{Op: OpRoot}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseRequest(b, limits)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		require.Less(t, int(m.Slot), limits.Slots)
		require.LessOrEqual(t, int(m.Length), limits.Block)
		require.Equal(t, b, encoded(m), "one message has one encoding")
	})
}

func FuzzParseReply(f *testing.F) {
	f.Add(encoded(Message{Op: OpGet, Reply: true, Length: 5}))
	f.Add(encoded(Message{Op: OpPut, Reply: true, Status: Failed}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseReply(b, limits)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		require.LessOrEqual(t, int(m.Length), limits.Block)
		require.Equal(t, b, encoded(m))
	})
}

func FuzzParseHandshake(f *testing.F) {
	f.Add(Hello{limits}.Append(nil))
	f.Add(Welcome{Limits: limits, Window: dat.RemoteSegment{Len: uint32(limits.Window())}}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := ParseHello(b); err == nil {
			require.NoError(t, h.Check())
			require.Equal(t, b[:HelloLen], h.Append(nil))
		}
		if w, err := ParseWelcome(b); err == nil {
			require.NoError(t, w.Check())
			require.Equal(t, b[:WelcomeLen], w.Append(nil))
		}
	})
}
