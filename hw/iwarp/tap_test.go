package iwarp

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

func newTape() *tape { return &tape{closed: make(chan struct{})} }

// awaitClosed waits until the file is closed.
func (f *tape) awaitClosed(t *testing.T) {
	t.Helper()
	select {
	case <-f.closed:
	case <-time.After(patience):
		t.Fatal("the file stays open")
	}
}

// trace begins a trace of a peer's connection.
func (p *peer) trace() (file *tape, stop func() error) {
	p.tb.Helper()
	file = newTape()
	stop, err := p.qp.(hw.Tracer).Trace(file)
	require.NoError(p.tb, err)
	return file, stop
}

// ways are the octets that a trace of the peer's connection has from this end and from the other,
// behind the frames of the start, of which this end has the request if asked.
func (p *peer) ways(t *testing.T, file *tape, asked bool) (out, in []byte) {
	t.Helper()
	all := streams(t, file.Bytes())
	out, in = all[tracedEnd(p.info.Local, 1).Port()], all[tracedEnd(p.info.Remote, 2).Port()]
	asks, answers := &out, &in
	if !asked {
		asks, answers = &in, &out
	}
	req, n, err := wire.ParseMPARequest(*asks)
	require.NoError(t, err)
	*asks = (*asks)[n:]
	reply, n, err := wire.ParseMPAReply(*answers)
	require.NoError(t, err)
	*answers = (*answers)[n:]
	a := connections(p)[0].agreed
	assert.Equal(t, wire.MPARequest{Revision: 1, CRC: a.crc, Private: req.Private}, req)
	assert.Equal(t, wire.MPAReply{Revision: 1, CRC: a.crc, Private: reply.Private}, reply)
	assert.Equal(t, 2, bytes.Count(file.Bytes(), []byte(madeUp)))
	return out, in
}

// opened are the payloads of messages in a stream of whole FPDUs, and the last FPDU's opcode.
func opened(t *testing.T, stream []byte, crc bool) (payload []byte, last wire.Opcode) {
	t.Helper()
	for len(stream) > 0 {
		ulpdu, n, err := wire.ParseFPDU(stream, crc)
		require.NoError(t, err)
		stream = stream[n:]
		var h wire.Header
		k, err := h.Parse(ulpdu, len(ulpdu))
		require.NoError(t, err)
		if last = h.Opcode; last != wire.OpTerminate {
			payload = append(payload, ulpdu[k:]...)
		}
	}
	return payload, last
}

// traced are connections of all kinds whose traces differ.
var traced = map[string]struct {
	piped  bool
	params map[string]string
}{
	"CRCs":                  {false, nil},
	"no CRCs":               {false, noCRC},
	"markers":               {false, map[string]string{"markers": "true"}},
	"markers and no CRCs":   {false, map[string]string{"markers": "true", "crc": "false", "fpdu": "1500"}},
	"a pipe":                {true, nil},
	"a pipe, with markers":  {true, map[string]string{"markers": "true", "fpdu": "1500"}},
	"small FPDUs, one read": {false, map[string]string{"fpdu": "256"}},
}

// talk sends messages both ways of which the first belong to no trace, and returns the others.
func talk(a, b *peer, between func()) (there, back []byte) {
	const n = 100000
	ma, mb := a.memory(2*n, hw.LocalRead|hw.LocalWrite), b.memory(2*n, hw.LocalRead|hw.LocalWrite)
	for i := range n {
		ma.buf[i], mb.buf[i] = byte(i*7), byte(i*11)
	}
	for range 4 {
		a.recv(ma.sge(n, n))
		b.recv(mb.sge(n, n))
	}
	for i, size := range []int{1999, n} {
		for k, p := range []*peer{a, b} {
			m := []*memory{ma, mb}[k]
			p.post(hw.SendWR{Op: hw.OpSend, SGL: []hw.SGE{m.sge(0, size)}, Flags: hw.WRSignaled},
				hw.SendWR{Op: hw.OpSend, SGL: []hw.SGE{m.sge(0, 60)}, Flags: hw.WRSignaled})
		}
		for _, p := range []*peer{a, b} {
			p.received(2*i + 1)
			p.sent(2*i + 1)
		}
		if i == 0 {
			between()
		}
	}
	whole := func(m *memory) []byte { return append(bytes.Clone(m.buf[:n]), m.buf[:60]...) }
	return whole(ma), whole(mb)
}

func TestATraceBeginsWithTheNextFPDUOfEachDirection(t *testing.T) {
	for name, c := range traced {
		t.Run(name, func(t *testing.T) {
			p := New(Config{})
			if c.piped {
				p = New((&pipes{}).config())
			}
			a, b := newNode(t, p, c.params).peer(), newNode(t, p, c.params).peer()
			join(a, b)
			var tapes [2]*tape
			var stops [2]func() error
			there, back := talk(a, b, func() {
				tapes[0], stops[0] = a.trace()
				tapes[1], stops[1] = b.trace()
			})
			for i := range stops {
				require.NoError(t, stops[i]())
				tapes[i].awaitClosed(t)
			}
			crc := connections(a)[0].agreed.crc
			out, in := a.ways(t, tapes[0], true)
			got, _ := opened(t, out, crc)
			assert.True(t, bytes.Equal(there, got))
			got, _ = opened(t, in, crc)
			assert.True(t, bytes.Equal(back, got))
			peersOut, peersIn := b.ways(t, tapes[1], false)
			assert.True(t, bytes.Equal(out, peersIn) && bytes.Equal(in, peersOut), "both ends tell the same story")
		})
	}
}

// drain reads to the end of the stream, and then ends the other half.
func (s *script) drain() (all []byte) {
	all, _ = io.ReadAll(s.conn)
	_ = s.conn.Close()
	return all
}

// The trace begins while an FPDU is half written.
func TestATraceHasNoHalfOfAnFPDU(t *testing.T) {
	for name, end := range map[string]func(a *peer){
		"what is posted is sent":           func(a *peer) { a.qp.Drain() },
		"a Terminate behind the half FPDU": func(a *peer) { a.end(false) },
	} {
		t.Run(name, func(t *testing.T) {
			a, m, s := blocked(t)
			file, _ := a.trace()
			end(a)
			all := s.drain()
			a.end(false)
			file.awaitClosed(t)
			out, _ := a.ways(t, file, true)
			assert.True(t, bytes.HasSuffix(all, out), "the trace has the end of the stream")
			payload, last := opened(t, out, false)
			if last != wire.OpTerminate {
				assert.Less(t, len(payload), len(m.buf))
				assert.Greater(t, len(payload), len(m.buf)/2)
			}
			assert.NotZero(t, len(out))
		})
	}
}

// fins counts the packets of each end that end its half.
func fins(t *testing.T, file []byte, p *peer) (out, in int) {
	t.Helper()
	eachPacket(t, file, func(tcp []byte, port uint16) {
		switch {
		case tcp[13]&tcpFin == 0:
		case port == tracedEnd(p.info.Local, 1).Port():
			out++
		default:
			in++
		}
	})
	return out, in
}

func TestATraceEndsWithItsConnection(t *testing.T) {
	a, b := pair(t, nil)
	fa, stop := a.trace()
	fb, _ := b.trace()
	a.end(false)
	b.end(false)
	fa.awaitClosed(t)
	fb.awaitClosed(t)
	require.NoError(t, stop(), "a second end changes nothing")
	out, _ := a.ways(t, fa, true)
	_, last := opened(t, out, true)
	assert.Equal(t, wire.OpTerminate, last)
	_, in := b.ways(t, fb, false)
	_, last = opened(t, in, true)
	assert.Equal(t, wire.OpTerminate, last)
	for p, f := range map[*peer]*tape{a: fa, b: fb} {
		o, i := fins(t, f.Bytes(), p)
		assert.Equal(t, [2]int{1, 1}, [2]int{o, i})
	}
	_, err := a.qp.(hw.Tracer).Trace(newTape())
	require.ErrorIs(t, err, hw.ErrInvalidState)
}

func TestOnlyAConnectionThatIsUpHasATraceAndOneAtATime(t *testing.T) {
	n := newNode(t, New(Config{}), nil)
	unused := n.peer()
	_, err := unused.qp.(hw.Tracer).Trace(newTape())
	require.ErrorIs(t, err, hw.ErrInvalidState)

	a, _ := pair(t, nil)
	_, stop := a.trace()
	second := newTape()
	_, err = a.qp.(hw.Tracer).Trace(second)
	require.ErrorIs(t, err, hw.ErrInvalidState)
	select {
	case <-second.closed:
		t.Error("who can't trace leaves the file open")
	default:
	}
	require.NoError(t, stop())
	_, stop = a.trace()
	require.NoError(t, stop())
}

// full is a file on a disk with room for some octets.
type full struct {
	tape
	room atomic.Int64
}

var errDiskFull = errors.New("no space left on device")

func (f *full) Write(b []byte) (int, error) {
	if f.room.Add(-int64(len(b))) < 0 {
		return 0, errDiskFull
	}
	return f.tape.Write(b)
}

func TestAFullDiskEndsTheTraceAndNothingElse(t *testing.T) {
	for name, room := range map[string]int64{"at once": 10, "in a message": 60000} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, nil)
			file := &full{tape: *newTape()}
			file.room.Store(room)
			var stop func() error
			talk(a, b, func() {
				var err error
				stop, err = a.qp.(hw.Tracer).Trace(file)
				require.NoError(t, err)
			})
			file.awaitClosed(t)
			_, other := a.trace()
			require.ErrorIs(t, stop(), errDiskFull)
			require.NoError(t, other())
		})
	}
}

// A trace begins and ends at any moment of a conversation.
func TestTracesComeAndGoBesideATransfer(t *testing.T) {
	for name, c := range traced {
		t.Run(name, func(t *testing.T) {
			p := New(Config{})
			if c.piped {
				p = New((&pipes{}).config())
			}
			a, b := newNode(t, p, c.params).peer(), newNode(t, p, c.params).peer()
			join(a, b)
			crc := connections(a)[0].agreed.crc
			over := make(chan struct{})
			go func() {
				defer close(over)
				converse(a, b)
			}()
			for {
				tapes, stops := [2]*tape{}, [2]func() error{}
				for i, p := range []*peer{a, b} {
					tapes[i], stops[i] = p.trace()
				}
				for i, p := range []*peer{a, b} {
					require.NoError(t, stops[i]())
					out, in := p.ways(t, tapes[i], i == 0)
					for _, stream := range [][]byte{out, in} {
						for len(stream) > 0 {
							_, n, err := wire.ParseFPDU(stream, crc)
							if err == wire.ErrIncomplete {
								break // the trace ended between two reads
							}
							require.NoError(t, err)
							stream = stream[n:]
						}
					}
				}
				select {
				case <-over:
					return
				default:
				}
			}
		})
	}
}

// converse moves data both ways by sends and writes of several sizes.
func converse(a, b *peer) {
	const n = 70000
	priv := hw.LocalRead | hw.LocalWrite | hw.RemoteWrite
	ma, mb := a.memory(3*n, priv), b.memory(3*n, priv)
	sizes := []int{1, 100, 5000, n, 700, 20000, n, 3, n, n}
	for range sizes {
		a.recv(ma.sge(n, n))
		b.recv(mb.sge(n, n))
	}
	for i, size := range sizes {
		for _, way := range []struct {
			p        *peer
			own, far *memory
		}{{a, ma, mb}, {b, mb, ma}} {
			way.p.post(hw.SendWR{Op: hw.OpWrite, SGL: []hw.SGE{way.own.sge(0, size)}, RemoteAddr: way.far.base + 2*n, RKey: way.far.RKey()},
				hw.SendWR{Op: hw.OpSend, SGL: []hw.SGE{way.own.sge(0, size)}, Flags: hw.WRSignaled})
		}
		for _, p := range []*peer{a, b} {
			p.received(i)
			p.sent(i)
		}
	}
}

// Where the dissector of captures is installed, it reads a trace that began in the middle.
func TestTsharkReadsATraceOfAConnectionThatWasUp(t *testing.T) {
	for _, name := range []string{"CRCs", "markers"} {
		a, b := pair(t, traced[name].params)
		var file *tape
		var stop func() error
		talk(a, b, func() { file, stop = b.trace() })
		require.NoError(t, stop())
		path := filepath.Join(t.TempDir(), "trace.pcapng")
		require.NoError(t, os.WriteFile(path, file.Bytes(), 0o600))
		dissected(t, path, "made up from what", "opcode: send")
	}
}
