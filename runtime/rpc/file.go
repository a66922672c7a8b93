package rpc

import (
	"io"
	"math"
	"os"
	"sync"

	"godat/hw"
	"godat/mem"
)

// filePiece is the most bytes of a file that are in the server's memory at a time, for a request.
const filePiece = 1 << 20

// pieces are buffers of filePiece bytes, as *[]byte, for requests that move a file.
var pieces = sync.Pool{New: func() any {
	memory := make([]byte, filePiece)
	return &memory
}}

// WriteFile writes what a file has from an offset on to the beginning of the caller's memory, by
// RDMA, as far as there is room: up to SinkLen bytes. It returns how many bytes it has written,
// which is 0 at the end of the file and behind it. Any number of requests at a time may write from
// the same file. If the file becomes shorter meanwhile, the error is io.ErrUnexpectedEOF. A
// negative offset is LENGTH_ERROR; other errors are those of Write and of the file.
//
// The bytes go through memory of the server's, of which a request has up to 1 MiB while it moves a
// file. So a file that is cut, and a disk that fails, are errors of that request alone.
func (r *Request) WriteFile(f *os.File, offset int64) (n int, err error) {
	if !r.made() {
		return 0, noRequest("rpc.Request.WriteFile")
	}
	size, err := f.Stat()
	if err == nil {
		n, err = r.moveFile(hw.OpWrite, f, offset, min(int64(r.SinkLen()), max(size.Size()-max(offset, 0), 0)))
	}
	return n, r.from.of(r.header, "WriteFile", err)
}

// ReadFile reads all of the caller's memory, which is SourceLen bytes, into a file from an offset
// on, by RDMA and through memory of the server's as WriteFile. It returns how many bytes it has
// written to the file, also with an error: those bytes stay in the file. ReadFile syncs nothing: a
// handler whose answer promises that the bytes survive a crash calls f.Sync before it answers. A
// client may name 4 GiB less a byte, so the handler looks at SourceLen before.
func (r *Request) ReadFile(f *os.File, offset int64) (n int, err error) {
	if !r.made() {
		return 0, noRequest("rpc.Request.ReadFile")
	}
	n, err = r.moveFile(hw.OpRead, f, offset, int64(r.SourceLen()))
	return n, r.from.of(r.header, "ReadFile", err)
}

// file is what an os.File does for a request.
type file interface {
	io.ReaderAt
	io.WriterAt
}

// moveFile moves so many bytes between a file and the caller's memory.
func (r *Request) moveFile(op hw.Op, f file, offset, all int64) (done int, err error) {
	if err := r.beginTransfer(); err != nil {
		return 0, err
	}
	defer r.endTransfer()
	if offset < 0 || offset > math.MaxInt64-all {
		return 0, hw.Errorf("", hw.LengthError, hw.NoSubtype, "%d bytes of a file from %d on", all, offset)
	}
	part, rights := r.writePart, hw.LocalRead
	if op == hw.OpRead {
		part, rights = r.readPart, hw.LocalWrite
	}
	memory := pieces.Get().(*[]byte)
	err = r.from.server.loans.lend(r.from.server.PZ(), (*memory)[:min(all, filePiece)], rights, func(m *mem.LMR) error {
		for err := error(nil); int64(done) < all; {
			n := int(min(all-int64(done), filePiece))
			n, err = part(f, offset+int64(done), m.Segment(0, n), (*memory)[:n], done)
			if done += n; err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil { // else the device may still have it
		pieces.Put(memory)
	}
	return done, err
}

// writePart writes a part of a file to the caller's memory.
func (r *Request) writePart(f file, offset int64, piece mem.Segment, memory []byte, at int) (n int, err error) {
	n, err = f.ReadAt(memory, offset)
	switch {
	case n == len(memory): // with io.EOF or without
		err = r.move(hw.OpWrite, piece, r.sink, at)
	case err == io.EOF: //nolint:errorlint // ReadAt does not wrap it
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return 0, err
	}
	return n, nil
}

// readPart reads a part of the caller's memory into a file.
func (r *Request) readPart(f file, offset int64, piece mem.Segment, memory []byte, at int) (n int, err error) {
	if err = r.move(hw.OpRead, piece, r.source, at); err != nil {
		return 0, err
	}
	return f.WriteAt(memory, offset)
}
