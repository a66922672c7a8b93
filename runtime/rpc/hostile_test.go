package rpc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/mem"
	dat "godat/runtime"
)

// encoded makes a message.
func encoded(h header, rest ...byte) []byte {
	b := make([]byte, headerSize)
	h.put(b)
	return append(b, rest...)
}

// broken are messages that break the rules, whoever gets them.
var broken = map[string][]byte{
	"nothing":                    {},
	"half a header":              make([]byte, headerSize-1),
	"no kind":                    encoded(header{}),
	"a kind of another version":  encoded(header{kind: kindEnd + 1}),
	"a CALL with unknown flags":  encoded(header{kind: kindCall, flags: flagFetch << 1, call: 1 << 16}),
	"a CALL without its source":  encoded(header{kind: kindCall, flags: flagSource, call: 1 << 16}, 1, 2, 3),
	"a CALL without its sink":    encoded(header{kind: kindCall, flags: flagSource | flagSink, call: 1 << 16}, make([]byte, 16)...),
	"a CALL without a length":    encoded(header{kind: kindCall, flags: flagMetadata, call: 1 << 16}, 0),
	"a CALL of no metadata":      encoded(header{kind: kindCall, flags: flagMetadata, call: 1 << 16}, 0, 0),
	"metadata beyond the CALL":   encoded(header{kind: kindCall, flags: flagMetadata, call: 1 << 16}, 0, 6, 1, 0, 1, 'k', 'v'),
	"metadata of half a pair":    encoded(header{kind: kindCall, flags: flagMetadata, call: 1 << 16}, 0, 2, 1, 0),
	"metadata without a value":   encoded(header{kind: kindCall, flags: flagMetadata, call: 1 << 16}, 0, 4, 1, 0, 0, 'k'),
	"metadata without a key":     encoded(header{kind: kindCall, flags: flagMetadata, call: 1 << 16}, 0, 4, 0, 0, 1, 'v'),
	"metadata of a wrong key":    encoded(header{kind: kindCall, flags: flagMetadata, call: 1 << 16}, 0, 5, 1, 0, 1, 'K', 'v'),
	"metadata of a key twice":    encoded(header{kind: kindCall, flags: flagMetadata, call: 1 << 16}, 0, 10, 1, 0, 1, 'k', 'v', 1, 0, 1, 'k', 'v'),
	"a CANCEL with metadata":     encoded(header{kind: kindCancel, flags: flagMetadata}, 0, 5, 1, 0, 1, 'k', 'v'),
	"a CANCEL with a payload":    encoded(header{kind: kindCancel}, 1),
	"an END of a slot":           encoded(header{kind: kindEnd, call: 1}),
	"a CREDIT of a slot":         encoded(header{kind: kindCredit, call: 1}),
	"a CREDIT with a time-out":   encoded(header{kind: kindCredit, timeout: 1}),
	"more taken than was sent":   encoded(header{kind: kindCredit, taken: 1}),
	"much more taken than sent":  encoded(header{kind: kindCredit, taken: 1 << 31}),
	"an ANSWER with flags":       encoded(header{kind: kindAnswer, flags: 1, call: 1 << 16}),
	"an ANSWER beyond its sink":  encoded(header{kind: kindAnswer, call: 1 << 16, taken: 1, written: 1}),
	"an ANSWER that none wanted": encoded(header{kind: kindAnswer, call: 1 << 16}),
}

// ofAClient are messages of a client that break the rules.
var ofAClient = map[string][][]byte{
	"an END":                     {encoded(header{kind: kindEnd})},
	"a CALL beyond the slots":    {encoded(header{kind: kindCall, call: 1<<16 | 4})},
	"too much metadata":          {encoded(header{kind: kindCall, flags: flagMetadata, call: 1 << 16}, append([]byte{1, 5, 1, 1, 1, 'k'}, make([]byte, 257)...)...)},
	"a CALL out of turn":         {encoded(header{kind: kindCall, call: 2 << 16})},
	"a CALL in a slot that is":   {encoded(header{kind: kindCall, call: 1 << 16}), encoded(header{kind: kindCall, call: 2 << 16})},
	"a CANCEL beyond the slots":  {encoded(header{kind: kindCancel, call: 1<<16 | 4})},
	"a CALL and then one broken": {encoded(header{kind: kindCall, call: 1 << 16}), {}},
}

// A peer that breaks the rules loses its connection, and no other does.
func TestAServerEndsTheConnectionOfALyingClient(t *testing.T) {
	all := map[string][][]byte{}
	for name, m := range broken {
		all[name] = [][]byte{m}
	}
	for name, m := range ofAClient {
		all[name] = m
	}
	onEach(t, func(t *testing.T, ia *dat.IA) {
		cfg := Config{Calls: 4}
		s := serve(t, ia, cfg, 2, func(r *Request) {
			if r.Method() == 0 {
				silent(r)
				return
			}
			echo(r)
		})
		honest := dial(t, ia, s, cfg)
		require.NoError(t, cfg.complete("", ia.Attr()))
		for name, messages := range all {
			t.Run(name, func(t *testing.T) {
				settings := cfg.conn()
				settings.Batches = false
				c, err := ia.Dial(within(t), s.Addr(), settings)
				require.NoError(t, err)
				for _, m := range messages {
					require.NoError(t, c.SendBytes(m))
				}
				_, err = c.Receive(within(t))
				require.Error(t, err, "the server breaks the connection")
				require.NoError(t, within(t).Err())
				require.NoError(t, c.Close())
				got, err := honest.Call(within(t), Call{Method: 1, Payload: []byte("still")}, nil)
				require.NoError(t, err)
				assert.Equal(t, "still", string(got))
			})
		}
	})
}

func TestAClientEndsTheConnectionOfALyingServer(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		cfg := Config{Calls: 4}
		require.NoError(t, cfg.complete("", ia.Attr()))
		settings := cfg.conn()
		settings.Batches, settings.Apart = false, true
		for name, m := range broken {
			t.Run(name, func(t *testing.T) {
				ln, err := ia.Listen(t.Context(), ":0", settings)
				require.NoError(t, err)
				accepted := make(chan *dat.Conn, 1)
				go func() {
					c, _ := ln.Accept(ep.RequestOf(<-ln.Requests()), cfg.hello())
					accepted <- c
				}()
				c, err := Dial(within(t), ia, ln.Addr(), cfg)
				require.NoError(t, err)
				peer := <-accepted
				called := make(chan error, 1)
				go func() {
					_, err := c.Call(within(t), Call{}, nil)
					called <- err
				}()
				b, err := peer.Receive(within(t))
				require.NoError(t, err)
				peer.Release(b)
				if name == "an ANSWER that none wanted" {
					m = encoded(header{kind: kindAnswer, call: 2 << 16, taken: 1})
				} else if name == "more taken than was sent" {
					m = encoded(header{kind: kindCredit, taken: 2})
				}
				require.NoError(t, peer.SendBytes(m))
				err = <-called
				require.ErrorIs(t, err, ErrEnded)
				require.ErrorIs(t, err, errMalformed)
				require.NoError(t, c.Close())
				require.NoError(t, ln.Close())
			})
		}
	})
}

func TestAPeerOfAnotherProtocolIsRefused(t *testing.T) {
	good := hello{calls: 1, receives: 4, message: 1}
	with := func(change func(h *hello)) []byte {
		h := good
		change(&h)
		return h.encode()
	}
	for name, b := range map[string][]byte{
		"nothing":          nil,
		"half a hello":     good.encode()[:firstHello-1],
		"another magic":    append([]byte("HTTP"), good.encode()[4:]...),
		"an older version": append([]byte("DATC\x00\x01"), good.encode()[6:metadataHello]...),
		"a later version":  append([]byte("DATC\x00\x07"), good.encode()[6:metadataHello]...),
		"no version":       append([]byte("DATC\x00\x07"), good.encode()[6:]...),
		"no calls":         with(func(h *hello) { h.calls = 0 }),
		"no receives":      with(func(h *hello) { h.receives = 1 }),
		"many receives":    with(func(h *hello) { h.receives = mostReceives + 1 }),
		"no message":       with(func(h *hello) { h.message = 0 }),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseHello(b)
			require.Error(t, err)
			ia := open(t, "loop")
			s := serve(t, ia, Config{}, 1, echo)
			_, err = ia.Dial(within(t), s.Addr(), dat.ConnConfig{Private: b})
			require.Error(t, err, "the server rejects it")

			ln, err := ia.Listen(t.Context(), "", dat.ConnConfig{Apart: true})
			require.NoError(t, err)
			go func() { _, _ = ln.Accept(ep.RequestOf(<-ln.Requests()), b) }()
			_, err = Dial(within(t), ia, ln.Addr(), Config{})
			require.Error(t, err)
			require.NoError(t, ln.Close())
		})
	}
	h, err := parseHello(append(good.encode(), make([]byte, 40)...))
	require.NoError(t, err, "a provider may put zeros behind it")
	assert.EqualValues(t, newest, h.version)
	h.version = 0
	assert.Equal(t, good, h)
}

func TestTwoEndsAgreeOnTheNewestVersionThatBothSpeak(t *testing.T) {
	for _, c := range []struct {
		from, to, both uint16 // both is 0 if they don't agree
	}{
		{oldest, 0, oldest},
		{oldest, oldest, oldest},
		{oldest, newest, newest},
		{oldest, newest + 1, newest},
		{newest, newest + 9, newest},
		{newest + 1, 0, 0},
		{newest + 1, newest + 2, 0},
		{oldest - 1, 0, 0},
		{oldest - 1, oldest - 1, 0},
		{newest, oldest - 1, 0},
		{0, 0, 0},
	} {
		b := hello{calls: 1, receives: 4, message: 1}.encode()
		binary.BigEndian.PutUint16(b[4:], c.from)
		binary.BigEndian.PutUint16(b[metadataHello:], c.to)
		h, err := parseHello(b)
		assert.Equal(t, c.both == 0, errors.Is(err, errVersion), "%v: %v", c, err)
		assert.Equal(t, c.both, h.version, c)
		b = refusal(CodeFull)
		binary.BigEndian.PutUint16(b[4:], c.from)
		binary.BigEndian.PutUint16(b[firstRefusal:], c.to)
		assert.Equal(t, c.both == 0, errors.Is(parseRefusal(b), errVersion), c)
	}
}

func FuzzParse(f *testing.F) {
	for _, m := range broken {
		f.Add(m)
	}
	f.Add(encoded(header{kind: kindCall, flags: flagSource | flagSink, code: 3, call: 1 << 16, timeout: 9}, make([]byte, 40)...))
	f.Add(encoded(header{kind: kindCall, flags: flagMetadata, call: 1 << 16}, 0, 10, 1, 0, 1, 'k', 'v', 1, 0, 1, 'l', 'v', 'p'))
	f.Add(encoded(header{kind: kindAnswer, code: 3, call: 1 << 16, written: 9}, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parse(b)
		if err != nil {
			return
		}
		again := make([]byte, headerSize)
		m.put(again)
		for _, part := range []struct {
			flag byte
			of   mem.RemoteSegment
		}{{flagSource, m.source}, {flagSink, m.sink}} {
			if m.flags&part.flag != 0 {
				again, err = part.of.AppendBinary(again)
				require.NoError(t, err)
			}
		}
		if m.flags&flagMetadata != 0 {
			md, err := (&Request{message: m}).Metadata().encode()
			require.NoError(t, err)
			again = append(append(again, byte(len(md)>>8), byte(len(md))), md...)
		}
		require.True(t, bytes.Equal(b, append(again, m.payload...)))
		_, _ = parseHello(b)
		_ = parseRefusal(b)
	})
}
