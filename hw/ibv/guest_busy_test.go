//go:build guest

package ibv

import (
	"encoding/binary"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// speaker is one end of a conversation. Its memory has places for messages that come, for
// messages that it sends, and for what it reads.
type speaker struct {
	*memory
	t  testing.TB
	qp hw.QP

	sent, asked, offered int64 // messages, reads and receives that it has posted
	done, heard, failed  atomic.Int64
}

const (
	places    = 16      // for messages of either direction
	placeSize = 8 << 10 // octets of a long message
	speech    = (2*places + 1) * placeSize
)

// place is where the nth message that comes is, or, behind those places, the nth that goes.
func (s *speaker) place(n int64, goes bool, size int) hw.SGE {
	i := n % places
	if goes {
		i += places
	}
	return s.sge(int(i)*placeSize, size)
}

// Complete implements [hw.Sink].
func (s *speaker) Complete(wcs []hw.WC) {
	for _, wc := range wcs {
		switch {
		case wc.Status != hw.StatusSuccess:
			s.failed.Add(1)
		case wc.Op == hw.OpRecv:
			n := s.heard.Load()
			assert.EqualValues(s.t, n, binary.BigEndian.Uint64(s.buf[n%places*placeSize:]))
			s.heard.Add(1)
		case wc.Op != hw.OpEnd:
			s.done.Add(1)
		}
	}
}

// post posts a request, if there is room, and reports whether it did.
func (s *speaker) post(wr hw.SendWR) bool {
	if s.sent+s.asked-s.done.Load() >= places {
		return false
	}
	wr.Flags = hw.WRSignaled
	n, err := s.qp.PostSend([]hw.SendWR{wr})
	require.NoError(s.t, err)
	require.Equal(s.t, 1, n)
	return true
}

// listen keeps a receive posted for each place.
func (s *speaker) listen() {
	for ; s.offered < s.heard.Load()+places; s.offered++ {
		n, err := s.qp.PostRecv([]hw.RecvWR{{SGL: []hw.SGE{s.place(s.offered, false, placeSize)}}})
		require.NoError(s.t, err)
		require.Equal(s.t, 1, n)
	}
}

// speak sends a message, if it has sent fewer than most and the peer has a receive for it.
func (s *speaker) speak(to *speaker, most int64) {
	if s.sent == most || s.sent == to.offered {
		return
	}
	size := 64
	if s.sent%16 == 0 {
		size = placeSize
	}
	binary.BigEndian.PutUint64(s.buf[(s.sent%places+places)*placeSize:], uint64(s.sent))
	if s.post(hw.SendWR{Op: hw.OpSend, SGL: []hw.SGE{s.place(s.sent, true, size)}}) {
		s.sent++
	}
}

// ask reads an octet of the peer's memory.
func (s *speaker) ask(of *speaker) {
	at := hw.SGE{Addr: s.addr() + 2*places*placeSize, Len: 1, LKey: s.LKey()}
	if s.post(hw.SendWR{Op: hw.OpRead, SGL: []hw.SGE{at}, RKey: of.RKey(), RemoteAddr: of.addr()}) {
		s.asked++
	}
}

// The peer asks siw all that it may: it reads octets of its memory, and looks after it
// when it is silent. Neither breaks a connection on which siw sends. The pauses between
// bursts are of many lengths, so that what the peer asks comes as siw begins to send.
func TestABusySiwKeepsItsConnectionWhateverIsAskedOfIt(t *testing.T) {
	if !onSIW(t) {
		return
	}
	const (
		burst  = 1000
		bursts = 20
		look   = 250 * time.Millisecond
	)
	b := &bench{t: t}
	e := b.open(nil, nil)
	b.ends[0] = e
	far := newStranger(t, map[string]string{"keepalive": (4 * look).String()})
	near := &speaker{t: t, qp: e.qp, memory: e.region(speech)}
	peer := &far.speaker
	near.listen()
	peer.listen()
	far.accept(func(port uint64) {
		require.NoError(t, e.qp.Connect(hw.ConnectConfig{Addr: strangerAddress, Qual: port}))
	})
	e.until("Established", func() bool { return e.info != nil })
	until := func(ok func() bool) {
		for deadline := time.Now().Add(patience); !ok(); runtime.Gosched() {
			var wcs [16]hw.WC
			near.Complete(wcs[:e.poll.Poll(wcs[:])])
			require.Zero(t, near.failed.Load()+peer.failed.Load(), "of %d messages sent, and %d received", near.sent, near.heard.Load())
			require.True(t, time.Now().Before(deadline))
		}
	}
	for i := range int64(bursts) {
		most := (i + 1) * burst
		until(func() bool {
			near.listen()
			peer.listen()
			near.speak(peer, most)
			peer.speak(near, most)
			if peer.asked < peer.sent/2 {
				peer.ask(near)
			}
			return near.heard.Load() == most && peer.heard.Load() == most
		})
		begin, pause := time.Now(), look+look*time.Duration(i)/bursts
		until(func() bool { return time.Since(begin) > pause })
	}
	until(func() bool { return near.done.Load() == near.sent && peer.done.Load() == peer.sent+peer.asked })
	t.Logf("%d messages each way, %d reads", near.sent, peer.asked)
	far.leave()
	e.until("Down", func() bool { return e.down != hw.ReasonNone })
	e.leave()
}

// region is memory that a peer may read and write; shut deregisters it.
func (e *benchEnd) region(n int) *memory {
	m := &memory{buf: pages(e.b.t, n)}
	mr, err := e.dev.Register(e.zone, m.buf, hw.LocalRead|hw.LocalWrite|hw.RemoteRead|hw.RemoteWrite)
	require.NoError(e.b.t, err)
	m.MR = mr
	e.regions = append(e.regions, mr)
	return m
}

// leave breaks the connection and closes all objects of an end.
func (e *benchEnd) leave() {
	e.qp.Break(false)
	e.completion(sendEnd)
	e.completion(recvEnd)
	e.shut()
}
