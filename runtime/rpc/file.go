package rpc

import (
	"io"
	"math"
	"os"

	"godat/hw"
	dat "godat/runtime"
)

// filePiece is the most bytes of a file that are mapped, or copied, at a time.
const filePiece = 4 << 20

// WriteFile writes what a file has from an offset on to the beginning of the caller's memory, by
// RDMA, as far as there is room: up to SinkLen bytes. It returns how many bytes it has written,
// which is 0 at the end of the file and behind it. Any number of requests at a time may write from
// the same file. A negative offset is LENGTH_ERROR; other errors are those of Write and of the file.
//
// On Linux the bytes go out of the mapped file, and no program copies them. A file that becomes
// shorter meanwhile is a fault at a mapped address, and so is a disk that fails: a fault ends the
// process. A file that can't be mapped, or whose memory the device does not take, is copied.
func (r *Request) WriteFile(f *os.File, offset int64) (n int, err error) {
	size, err := f.Stat()
	if err == nil {
		n, err = r.moveFile(dat.OpWrite, f, offset, min(int64(r.SinkLen()), max(size.Size()-max(offset, 0), 0)))
	}
	return n, r.from.of(r.header, "WriteFile", err)
}

// ReadFile reads all of the caller's memory, which is SourceLen bytes, into a file from an offset
// on, by RDMA. It returns how many bytes of it the file has. On Linux the bytes go into the
// mapped file, as those of WriteFile come out of it, if the file was opened for reading and
// writing. ReadFile takes room on the disk for them before, so that a full disk is an error.
// A client may name 4 GiB less a byte: the program looks at SourceLen before.
func (r *Request) ReadFile(f *os.File, offset int64) (n int, err error) {
	n, err = r.moveFile(dat.OpRead, f, offset, int64(r.SourceLen()))
	return n, r.from.of(r.header, "ReadFile", err)
}

// moveFile moves so many bytes between a file and the caller's memory.
func (r *Request) moveFile(op dat.Op, f *os.File, offset, all int64) (done int, err error) {
	if offset < 0 || offset > math.MaxInt64-all {
		return 0, hw.Errorf("", hw.LengthError, hw.NoSubtype, "%d bytes of a file from %d on", all, offset)
	}
	for err == nil && int64(done) < all {
		n := int(min(all-int64(done), filePiece))
		if err = r.movePart(op, f, offset+int64(done), done, n); err == nil {
			done += n
		}
	}
	return done, err
}

// movePart moves n bytes between a file, from an offset on, and the caller's memory.
func (r *Request) movePart(op dat.Op, f *os.File, offset int64, at, n int) error {
	memory, unmap, err := mapFile(f, offset, n, op == dat.OpRead)
	if err == nil {
		defer unmap()
		if taken, err := r.lendAndMove(op, memory, at); taken {
			return err
		}
	}
	memory = make([]byte, n)
	if op == dat.OpWrite {
		if _, err = io.ReadFull(io.NewSectionReader(f, offset, int64(n)), memory); err != nil {
			return err
		}
	}
	if _, err = r.lendAndMove(op, memory, at); err == nil && op == dat.OpRead {
		_, err = f.WriteAt(memory, offset)
	}
	return err
}

// lendAndMove moves between memory of the server's and the caller's. It reports whether the
// device has taken the memory.
func (r *Request) lendAndMove(op dat.Op, memory []byte, at int) (taken bool, err error) {
	rights, callers := dat.LocalRead, r.sink
	if op == dat.OpRead {
		rights, callers = dat.LocalWrite, r.source
	}
	err = r.from.server.loans.lend(r.from.server.PZ(), memory, rights, func(m *dat.LMR) error {
		taken = true
		return r.move(op, segment(m, len(memory)), callers, at)
	})
	return taken, err
}
