package stream

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// scripted is a peer that sends what a test says.
type scripted struct {
	*dat.Conn
	to hello // the listener's
}

// dialScripted dials with a hello, which edit has changed.
func (r *rig) dialScripted(edit func(b []byte) []byte) (*scripted, error) {
	c, err := r.ia.Dial(r.t.Context(), r.ln.Addr().String(), dat.ConnConfig{
		Message: slotSize,
		Setup: func(c *dat.Conn) ([]byte, error) {
			ring, err := c.Alloc(leastRing, hw.LocalRead|hw.LocalWrite|hw.RemoteWrite)
			if err != nil {
				return nil, err
			}
			return edit(hello{ring.Remote(0, leastRing), messages, 0}.append(nil)), nil
		},
	})
	if err != nil {
		return nil, err
	}
	r.t.Cleanup(func() { _ = c.Close() })
	h, err := parseHello(c.Private())
	return &scripted{c, h}, err
}

func honest(b []byte) []byte { return b }

// meetScripted makes a connection whose dialing end is scripted.
func (r *rig) meetScripted() (*scripted, *Conn) {
	accepted := make(chan net.Conn, 1)
	go func() {
		c, _ := r.ln.Accept()
		accepted <- c
	}()
	p, err := r.dialScripted(honest)
	require.NoError(r.t, err)
	c := (<-accepted).(*Conn)
	r.t.Cleanup(func() { require.NoError(r.t, c.Close()) })
	require.NoError(r.t, c.SetDeadline(time.Now().Add(5*time.Second))) // for a lie that goes unnoticed
	return p, c
}

// encode is a message with its bytes.
func encode(m message, bytes string) []byte {
	m.inline = len(bytes)
	b := make([]byte, slotSize)
	length := m.put(b, newest)
	copy(b[headerSize:], bytes)
	return b[:length]
}

func TestALieEndsTheConnectionBehindTheBytesThatCame(t *testing.T) {
	good := message{produced: 4, granted: messages}
	lies := map[string][]byte{
		"a message of an unknown form":                 {1, 2, 3},
		"a counter went back":                          encode(message{produced: 3, granted: messages}, ""),
		"it has read more bytes than were sent":        encode(message{produced: 4, consumed: 1, granted: messages}, ""),
		"it grants more receives than it has":          encode(message{produced: 4, granted: messages + 1}, ""),
		"it wrote more bytes than the ring":            encode(message{produced: 4 + leastRing + 1, granted: messages}, ""),
		"the bytes of a message are not those":         encode(message{produced: 9, granted: messages}, "four"),
		"it wrote more bytes than the ring has room f": encode(message{produced: 1<<64 - 1, granted: messages}, ""),
	}
	onEachWith(t, Config{Ring: leastRing}, func(t *testing.T, r *rig) {
		for lie, bytes := range lies {
			p, c := r.meetScripted()
			require.NoError(t, p.SendBytes(encode(good, "true")))
			require.NoError(t, p.SendBytes(bytes))
			got, err := io.ReadAll(c)
			require.ErrorIs(t, err, ErrProtocol)
			assert.Contains(t, err.Error(), lie)
			assert.Equal(t, "true", string(got), lie)
			_, err = c.Write([]byte{1})
			require.ErrorIs(t, err, ErrProtocol)
			require.NoError(t, c.Close())
		}
	})
}

func TestBytesBehindTheEndOfTheStreamAreALie(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		p, c := r.meetScripted()
		require.NoError(t, p.SendBytes(encode(message{produced: 4, granted: messages, flags: flagFIN}, "last")))
		require.NoError(t, p.SendBytes(encode(message{produced: 5, granted: messages}, "!")))
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		assert.Equal(t, "last", string(got))
		_, err = c.Write(make([]byte, 2*leastRing))
		require.ErrorIs(t, err, ErrProtocol)
	})
}

func TestAWriteWithImmediateDataEndsTheConnection(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		if !r.ia.Attr().Ops.Has(hw.OpWriteImm) {
			return // as the simulated device, which has no such writes
		}
		for _, n := range []int{0, slotSize + 1} {
			p, c := r.meetScripted()
			from, err := p.Alloc(leastRing, hw.LocalRead)
			require.NoError(t, err)
			require.NoError(t, p.Do(t.Context(), ep.DTO{Op: hw.OpWriteImm, Segment: from.Segment(0, n), Remote: p.to.ring}))
			_, err = c.Read(make([]byte, 1))
			require.ErrorIs(t, err, ErrProtocol)
			require.NoError(t, p.Close())
			<-c.line.down
			require.NoError(t, c.Close())
		}
	})
}

func TestAStreamWithoutAFINWasCut(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		p, c := r.meetScripted()
		require.NoError(t, p.SendBytes(encode(message{produced: 5, granted: messages}, "bytes")))
		require.NoError(t, p.Shutdown(t.Context()))
		got, err := io.ReadAll(c)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		assert.Equal(t, "bytes", string(got))
	})
}

func TestAPeerOfAnotherProtocolIsRefusedAndOthersAreServed(t *testing.T) {
	hellos := map[string]func(b []byte) []byte{
		"none":              func([]byte) []byte { return nil },
		"short":             func(b []byte) []byte { return b[:helloSize-1] },
		"another magic":     func(b []byte) []byte { b[0]++; return b },
		"another version":   func(b []byte) []byte { b[4], b[6] = newest+1, newest+2; return b },
		"an older version":  func(b []byte) []byte { b[4], b[6] = oldest-1, 0; return b },
		"no version":        func(b []byte) []byte { b[4], b[6] = newest, oldest-1; return b },
		"no ring":           func(b []byte) []byte { binary.LittleEndian.PutUint32(b[20:], 0); return b },
		"an odd ring":       func(b []byte) []byte { binary.LittleEndian.PutUint32(b[20:], 5000); return b },
		"a huge ring":       func(b []byte) []byte { binary.LittleEndian.PutUint32(b[20:], 1<<31); return b },
		"a ring that wraps": func(b []byte) []byte { binary.LittleEndian.PutUint64(b[8:], 1<<64-1); return b },
		"few receives":      func(b []byte) []byte { binary.LittleEndian.PutUint32(b[24:], 7); return b },
		"many receives":     func(b []byte) []byte { binary.LittleEndian.PutUint32(b[24:], 1<<31); return b },
	}
	onEach(t, func(t *testing.T, r *rig) {
		accepted := make(chan net.Conn, 1)
		go func() {
			c, _ := r.ln.Accept()
			accepted <- c
		}()
		for name, edit := range hellos {
			_, err := r.dialScripted(edit)
			var cause *hw.Cause
			require.ErrorAs(t, err, &cause, name)
			_, err = agree(cause.Private)
			require.NoError(t, err, "the reject says which version this end speaks")
		}
		c, err := r.dialer().Dial("", r.ln.Addr().String())
		require.NoError(t, err)
		require.NoError(t, c.Close())
		require.NoError(t, (<-accepted).Close())
	})
}

func TestTwoEndsAgreeOnTheNewestVersionThatBothSpeak(t *testing.T) {
	for _, c := range []struct {
		from, to uint16
		both     uint8 // 0 if they don't agree
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
		b := hello{mem.RemoteSegment{Len: leastRing}, messages, 0}.append(nil)
		binary.LittleEndian.PutUint16(b[4:], c.from)
		binary.LittleEndian.PutUint16(b[6:], c.to)
		h, err := parseHello(b)
		assert.Equal(t, c.both == 0, errors.Is(err, ErrProtocol), "%v: %v", c, err)
		assert.Equal(t, c.both, h.version, c)
	}
}

func TestADialerSaysWhichVersionsMet(t *testing.T) {
	for name, answer := range map[string]func(cr *ep.CR, ln *dat.Listener) error{
		"rejected": func(cr *ep.CR, _ *dat.Listener) error {
			b := hello{}.append(nil)
			b[4], b[6] = 7, 8
			return cr.Reject(b)
		},
		"accepted": func(cr *ep.CR, ln *dat.Listener) error {
			b := hello{}.append(nil)
			b[4], b[6] = 7, 8
			_, err := ln.Accept(cr, b)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, r *rig) {
				ln, err := r.ia.Listen(t.Context(), ":0", dat.ConnConfig{})
				require.NoError(t, err)
				answered := write(func() error { return answer(ep.RequestOf(<-ln.Requests()), ln) })
				_, err = r.dialer().Dial("", ln.Addr())
				require.ErrorIs(t, err, ErrProtocol)
				assert.Contains(t, err.Error(), "speaks versions 7 to 8, and this end version 3")
				_, caused := errors.AsType[*hw.Cause](err)
				assert.Equal(t, name == "rejected", caused, err)
				require.NoError(t, <-answered)
				require.NoError(t, ln.Close())
			})
		})
	}
}

func TestADialerSaysThatAnotherProgramListens(t *testing.T) {
	for said, want := range map[string]string{
		"DATC\x00\x02\x00\x01\x00\x02": "a server of package rpc listens there",
		"no room":                      "it speaks another protocol than package stream",
		strings.Repeat("x", helloSize): "it speaks another protocol than package stream",
		"":                             "",
	} {
		onEach(t, func(t *testing.T, r *rig) {
			ln, err := r.ia.Listen(t.Context(), ":0", dat.ConnConfig{})
			require.NoError(t, err)
			answered := write(func() error { return ep.RequestOf(<-ln.Requests()).Reject([]byte(said)) })
			_, err = r.dialer().Dial("", ln.Addr())
			require.ErrorIs(t, err, event.Error(event.PeerRejected), "%q", said)
			assert.Equal(t, want != "", errors.Is(err, ErrProtocol), "%q: %v", said, err)
			assert.ErrorContains(t, err, want)
			require.NoError(t, <-answered)
			require.NoError(t, ln.Close())
		})
	}
}

// A peer may promise a ring that it does not have. Writes to it break the connection, as
// for any region; they reach nothing.
func TestAPeerWithoutItsRingBreaksItsOwnConnection(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		accepted := make(chan net.Conn, 1)
		go func() {
			c, _ := r.ln.Accept()
			accepted <- c
		}()
		p, err := r.dialScripted(func(b []byte) []byte { b[16]++; return b })
		require.NoError(t, err)
		c := (<-accepted).(*Conn)
		require.NotNil(t, p)
		_, err = c.Write(make([]byte, 1000))
		if err == nil {
			_, err = c.Read(make([]byte, 1))
		}
		require.Error(t, err)
		require.NotErrorIs(t, err, io.EOF)
		require.NoError(t, c.Close())
	})
}

// ringOf is a message that offers a ring.
func ringOf(size uint32) []byte {
	return encode(message{granted: messages, flags: flagRing, ring: mem.RemoteSegment{Addr: 1 << 20, Len: size}}, "")
}

func TestALieAboutARingEndsTheConnection(t *testing.T) {
	moved := encode(message{produced: 4, granted: messages, flags: flagMoved}, "four")
	half := encode(message{produced: leastRing/2 + 1, granted: messages}, "")
	lies := map[string][][]byte{
		"a ring that was not offered":                     {moved},
		"a second ring twice, or one that is not larger":  {ringOf(leastRing)},
		"a second ring twice, or one that is not larger:": {ringOf(2 * leastRing), ringOf(4 * leastRing)},
		"a size that no ring has":                         {ringOf(3 * leastRing)},
		"more bytes than the ring has room":               {half, encode(message{produced: 2*leastRing + 1, granted: messages}, "")},
		"a ring that was not offered:":                    {half, encode(message{produced: leastRing, granted: messages, flags: flagMoved}, "")},
		"a message of an unknown form": {func() []byte {
			b := ringOf(2 * leastRing)
			b[24]++ // a byte of the stream, too
			return append(b, 0)
		}()},
	}
	onEachWith(t, Config{Ring: leastRing}, func(t *testing.T, r *rig) {
		for lie, script := range lies {
			p, c := r.meetScripted()
			for _, b := range script {
				require.NoError(t, p.SendBytes(b))
			}
			_, err := io.Copy(io.Discard, c)
			require.ErrorIs(t, err, ErrProtocol)
			assert.Contains(t, err.Error(), strings.TrimSuffix(lie, ":"))
			require.NoError(t, c.Close())
		}
	})
}

// A peer that was offered a larger ring may move there once.
func TestAPeerMovesOnce(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		p, c := r.meetScripted()
		require.NoError(t, p.SendBytes(encode(message{produced: leastRing, granted: messages}, "")))
		require.Eventually(t, func() bool { return c.line.flow.in.offer.Load() == offerSent }, time.Minute, time.Millisecond)
		require.NoError(t, p.SendBytes(encode(message{produced: leastRing + 4, granted: messages, flags: flagMoved}, "four")))
		got := make([]byte, leastRing+4)
		_, err := io.ReadFull(c, got)
		require.NoError(t, err)
		assert.Equal(t, "four", string(got[leastRing:]))
		require.NoError(t, p.SendBytes(encode(message{produced: leastRing + 5, granted: messages, flags: flagMoved}, "!")))
		_, err = c.Read(got)
		require.ErrorIs(t, err, ErrProtocol)
	})
}
