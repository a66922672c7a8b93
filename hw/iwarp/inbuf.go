package iwarp

import "sync"

// readSize is the size of a receive buffer in bytes: one read takes what the peer has
// gathered for one write. It is more than the longest FPDU with markers.
const readSize = arenaSize

// firstSize is the size in bytes of the buffer with which a receiver without a
// descriptor waits for the beginning of an FPDU.
const firstSize = 256

// spillSize is the size in bytes of a buffer that has room, beside its former contents, for
// all that a read ahead may put elsewhere.
const spillSize = readSize + mostAhead*(1<<16+gapSize)

var (
	readBufs  = sync.Pool{New: func() any { return new([readSize]byte) }}
	spillBufs = sync.Pool{New: func() any { return new([spillSize]byte) }}
)

// inbuf holds the octets that are read and not consumed: buf[r:w]. A receiver without
// such octets waits without a buffer.
type inbuf struct {
	buf  []byte // of readSize bytes, or of spillSize while a spill is consumed
	r, w int
}

func (in *inbuf) bytes() []byte {
	if in.buf == nil {
		return nil
	}
	return in.buf[in.r:in.w]
}

// ready makes sure that there is a buffer with room for need octets from r on, and for
// one more octet at least.
func (in *inbuf) ready(need int) {
	if in.buf == nil {
		in.buf = readBufs.Get().(*[readSize]byte)[:]
		in.r, in.w = 0, 0
		return
	}
	if in.r == in.w {
		in.r, in.w = 0, 0
		return
	}
	if len(in.buf)-in.r < need || in.w == len(in.buf) {
		in.compact()
	}
}

// compact moves the octets to the beginning of the buffer, and returns by how much.
func (in *inbuf) compact() (moved int) {
	moved = in.r
	in.r, in.w = 0, copy(in.buf, in.buf[in.r:in.w])
	return moved
}

// release gives the buffer back when it is empty.
func (in *inbuf) release() {
	if in.buf != nil && in.r == in.w {
		recycle(in.buf)
		in.buf, in.r, in.w = nil, 0, 0
	}
}

func recycle(buf []byte) {
	if len(buf) == spillSize {
		spillBufs.Put((*[spillSize]byte)(buf))
	} else {
		readBufs.Put((*[readSize]byte)(buf))
	}
}

// spill appends the first n octets of parts, which may lie in the buffer itself. If they are not
// all of the first part, or the buffer has no room for them, it changes to a buffer that has.
// r stays.
func (in *inbuf) spill(parts [][]byte, n int) {
	if n <= min(len(parts[0]), len(in.buf)-in.w) {
		in.w += copy(in.buf[in.w:], parts[0][:n])
		return
	}
	old, from := in.buf, in.w
	in.buf = spillBufs.Get().(*[spillSize]byte)[:]
	copy(in.buf[in.r:], old[in.r:from])
	for _, p := range parts {
		p = p[:min(n, len(p))]
		in.w += copy(in.buf[in.w:], p)
		n -= len(p)
	}
	recycle(old)
}

// unspill changes back to a buffer of the usual size, which has room for what is left,
// and returns by how much that has moved.
func (in *inbuf) unspill() (moved int) {
	if len(in.buf) != spillSize || in.w-in.r > readSize {
		return 0
	}
	old, moved := in.buf, in.r
	in.buf = readBufs.Get().(*[readSize]byte)[:]
	in.r, in.w = 0, copy(in.buf, old[in.r:in.w])
	recycle(old)
	return moved
}

// drop discards the octets and gives the buffer back.
func (in *inbuf) drop() {
	in.r = in.w
	in.release()
}
