package iwarp

import "sync"

// readSize is the size of a receive buffer in bytes: more than the longest FPDU with
// markers.
const readSize = 128 << 10

// firstSize is the size in bytes of the buffer with which a receiver without a
// descriptor waits for the beginning of an FPDU.
const firstSize = 256

var readBufs = sync.Pool{New: func() any { return new([readSize]byte) }}

// inbuf holds the octets that are read and not consumed: buf[r:w]. A receiver without
// such octets waits without a buffer.
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

// ready makes sure that there is a buffer with room for need octets from r on, and for
// one more octet at least.
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

// drop discards the octets and gives the buffer back.
func (in *inbuf) drop() {
	in.r = in.w
	in.release()
}
