package iwarp

import (
	"iter"
	"sync"

	"godat/hw"
	"godat/hw/internal/soft"
	"godat/hw/iwarp/wire"
)

// Sizes of a send buffer.
const (
	// A batch of 32 requests of 4 KiB goes out with one write. There is room for at least two
	// of the longest FPDUs.
	arenaSize = 160 << 10
	mostParts = 256
	// Payloads of up to inlined bytes are copied, which costs less than an iovec each.
	inlined = 512
	// spareParts is the most pieces of one FPDU: its segments, its header and trailer.
	spareParts = maxSegments + 2
	// frameSpare is the most bytes that an FPDU takes in the arena beside its payload.
	frameSpare = wire.MaxFramedHeaderSize + wire.AtomicRequestSize + wire.MaxTrailerSize
)

// piece is a run of octets to send. If key is 0, it lies in the arena or is a copy.
// Otherwise it lies in a region, and the sender looks its key up again before each write
// but the first.
type piece struct {
	mem  []byte
	addr uint64
	key  uint32
	need hw.Privileges
}

// frame says where an FPDU begins among the pieces, and which message it belongs to.
type frame struct {
	piece, off int
	end        uint64 // position in the stream
	slot       uint64 // position of its request in the send queue; of a response, the place in asked
	response   bool
}

// sendBuf is the memory that a connection needs while it has something to send.
type sendBuf struct {
	arena  []byte
	pieces []piece
	frames []frame
	asked  []response                    // what the responses in frames answer; their queue's slots may be used again
	copied []byte                        // the rest of a half-written FPDU
	parts  [][]byte                      // scratch, empty between uses
	header [wire.UntaggedHeaderSize]byte // scratch
	vec    vector
}

var sendBufs = sync.Pool{New: func() any {
	return &sendBuf{
		arena:  make([]byte, 0, arenaSize),
		pieces: make([]piece, 0, mostParts),
		frames: make([]frame, 0, mostParts),
		parts:  make([][]byte, 0, mostParts),
	}
}}

// outbox holds the FPDUs that are not written, or not wholly. Positions count the octets
// of the stream from its first FPDU.
type outbox struct {
	*sendBuf               // nil when nothing is queued
	first, skip     int    // the first piece not wholly written, and how much of it is
	queued, written uint64 // positions
	base            uint64 // position of the buffer's first octet
	most            uint64 // bytes gathered for one write; immutable
}

func (o *outbox) empty() bool { return o.queued == o.written }

// ready makes sure that there is a buffer.
func (o *outbox) ready() {
	if o.sendBuf == nil {
		o.sendBuf = sendBufs.Get().(*sendBuf)
		o.base = o.queued
	}
}

// release gives the buffer back.
func (o *outbox) release() {
	b := o.sendBuf
	if b == nil {
		return
	}
	clear(b.pieces)
	clear(b.asked)
	b.arena, b.pieces, b.frames, b.asked = b.arena[:0], b.pieces[:0], b.frames[:0], b.asked[:0]
	o.sendBuf, o.first, o.skip = nil, 0, 0
	sendBufs.Put(b)
}

// room reports whether there is room for an FPDU that takes n octets of the arena.
func (o *outbox) room(n int) bool {
	return len(o.pieces)+spareParts <= mostParts && len(o.frames) < mostParts &&
		cap(o.arena)-len(o.arena) >= n && o.queued-o.written < o.most
}

// answers records what the next FPDU is a response to, and returns its place in asked. A response may
// take several FPDUs.
func (o *outbox) answers(r *response) uint64 {
	if n := len(o.asked); n == 0 || o.asked[n-1].msn != r.msn {
		o.asked = append(o.asked, *r)
	}
	return uint64(len(o.asked) - 1)
}

// begin records where the next FPDU begins.
func (o *outbox) begin(slot uint64, response bool) {
	o.frames = append(o.frames, frame{})
	f := &o.frames[len(o.frames)-1] // set field by field, as the placer's completions are
	f.piece, f.slot, f.response = len(o.pieces), slot, response
	if n := len(o.pieces); n > 0 && o.pieces[n-1].key == 0 {
		f.piece, f.off = n-1, len(o.pieces[n-1].mem)
	}
}

// addArena adds the arena's octets from start on. They extend the last piece if that
// ends where they begin.
func (o *outbox) addArena(start int) {
	if start == len(o.arena) {
		return
	}
	o.queued += uint64(len(o.arena) - start)
	if n := len(o.pieces); n > 0 && o.pieces[n-1].key == 0 {
		p := &o.pieces[n-1]
		p.mem = o.arena[start-len(p.mem):] // the arena holds nothing but pieces, in order
		return
	}
	o.pieces = append(o.pieces, piece{mem: o.arena[start:]})
}

// addMemory adds a run of a region.
func (o *outbox) addMemory(mem []byte, c *soft.Cursor) {
	s := &c.SGL[0]
	o.pieces = append(o.pieces, piece{mem: mem, addr: s.Addr + uint64(c.Off), key: s.LKey, need: c.Need})
	o.queued += uint64(len(mem))
}

// seal ends the FPDU.
func (o *outbox) seal() { o.frames[len(o.frames)-1].end = o.queued }

// cut removes frame i and all behind it, of which no octet is written.
func (o *outbox) cut(i int) {
	f := o.frames[i]
	start := o.start(i)
	n := f.piece
	if f.off > 0 {
		o.pieces[n].mem = o.pieces[n].mem[:f.off]
		n++
	}
	clear(o.pieces[n:])
	o.pieces = o.pieces[:n]
	o.frames = o.frames[:i]
	o.queued = start
}

// start is the position at which frame i begins.
func (o *outbox) start(i int) uint64 {
	if i > 0 {
		return o.frames[i-1].end
	}
	return o.base
}

// advance counts n more octets as written.
func (o *outbox) advance(n int) {
	o.written += uint64(n)
	if o.empty() {
		o.release()
		return
	}
	for n > 0 {
		k := len(o.pieces[o.first].mem) - o.skip
		if n < k {
			o.skip += n
			return
		}
		n -= k
		o.first++
		o.skip = 0
	}
}

// current is the frame that is half written, if one is.
func (o *outbox) current() (i int, half bool) {
	if o.sendBuf == nil {
		return 0, false
	}
	for i = range o.frames {
		if o.frames[i].end > o.written {
			return i, o.start(i) < o.written
		}
	}
	return 0, false
}

// bounce replaces the rest of a half-written FPDU by a copy, so that the sender can
// finish it even if its memory is deregistered.
func (o *outbox) bounce() {
	i, half := o.current()
	if !half {
		return
	}
	o.copied = o.copied[:0]
	need := int(o.frames[i].end - o.written)
	if cap(o.copied) < need {
		o.copied = make([]byte, 0, wire.FPDUSize(1<<16-1))
	}
	for k, mem := range o.ahead(need) {
		if o.pieces[k].key != 0 {
			start := len(o.copied)
			o.copied = append(o.copied, mem...)
			o.pieces[k] = piece{mem: o.copied[start:]}
			if k == o.first {
				o.skip = 0
			}
		}
	}
}

// ahead has the next n octets that are not written, by piece.
func (o *outbox) ahead(n int) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for k, skip := o.first, o.skip; n > 0; k, skip = k+1, 0 {
			mem := o.pieces[k].mem[skip:]
			mem = mem[:min(n, len(mem))]
			n -= len(mem)
			if !yield(k, mem) {
				return
			}
		}
	}
}
