package iwarp

import "sync"

// readSize holds at least the longest FPDU, with markers, and then some.
const readSize = 128 << 10

// firstSize is what is read at once, on a connection without a descriptor, when
// nothing is at hand.
const firstSize = 256

var readBufs = sync.Pool{New: func() any { return new([readSize]byte) }}

// inbuf is what has been read and not been looked at: buf[r:w]. A connection that
// waits with nothing in it has no buffer, if it can wait without.
type inbuf struct {
	buf  *[readSize]byte
	r, w int
}

func (in *inbuf) bytes() []byte {
	if in.buf == nil {
		return nil
	}
	return in.buf[in.r:in.w]
}

// ready sees to a buffer with room for need octets from r on.
func (in *inbuf) ready(need int) {
	if in.buf == nil {
		in.buf = readBufs.Get().(*[readSize]byte)
		in.r, in.w = 0, 0
		return
	}
	if in.r == in.w {
		in.r, in.w = 0, 0
		return
	}
	if readSize-in.r < need || in.w == readSize {
		in.w = copy(in.buf[:], in.buf[in.r:in.w])
		in.r = 0
	}
}

// release gives the buffer back when it is empty.
func (in *inbuf) release() {
	if in.buf != nil && in.r == in.w {
		readBufs.Put(in.buf)
		in.buf, in.r, in.w = nil, 0, 0
	}
}

// drop gives it back in any case.
func (in *inbuf) drop() {
	in.r = in.w
	in.release()
}
