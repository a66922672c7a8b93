package wire_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw/iwarp/wire"
)

// hotFrames are the octets and values that allocation tests and benchmarks use.
type hotFrames struct {
	buf            []byte
	tagged, send   wire.Header
	taggedB, sendB []byte
	read           wire.ReadRequest
	readB          []byte
	atomic         wire.AtomicRequest
	atomicB        []byte
	payload        []byte
	fpdu, marked   []byte
}

func newHotFrames(payload int) *hotFrames {
	f := &hotFrames{
		buf:     make([]byte, 0, 1<<18),
		tagged:  wire.Header{Opcode: wire.OpWrite, Last: true, STag: 0x0a0b0c0d, TO: 1 << 40},
		send:    wire.Header{Opcode: wire.OpSendSEInvalidate, Last: true, STag: 0x0a0b0c0d, MSN: 7},
		read:    wire.ReadRequest{SinkSTag: 1, SinkTO: 2, Size: 3, SrcSTag: 4, SrcTO: 5},
		atomic:  wire.AtomicRequest{Op: wire.CmpSwap, ID: 1, STag: 2, TO: 8, Data: 3},
		payload: make([]byte, payload),
	}
	f.taggedB, f.sendB = f.tagged.Append(nil), f.send.Append(nil)
	f.readB, f.atomicB = f.read.Append(nil), f.atomic.Append(nil)
	f.fpdu = wire.AppendFPDU(nil, true, f.taggedB, f.payload)
	f.marked = wire.AppendMarkedFPDU(nil, 0, true, f.taggedB, f.payload)
	return f
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	f := newHotFrames(1428)
	var h wire.Header
	var r wire.ReadRequest
	var a wire.AtomicRequest
	var s wire.AtomicResponse
	length := len(f.taggedB) + len(f.payload)
	for _, row := range []struct {
		name string
		run  func() error
	}{
		{"parse a tagged header", func() error { _, err := h.Parse(f.taggedB, length); return err }},
		{"parse an untagged header", func() error { _, err := h.Parse(f.sendB, 18); return err }},
		{"append a tagged header", func() error { f.buf = f.tagged.AppendFramed(f.buf[:0], 1428); return nil }},
		{"append an untagged header", func() error { f.buf = f.send.AppendFramed(f.buf[:0], 1428); return nil }},
		{"append a bare header", func() error { f.buf = f.send.Append(f.buf[:0]); return nil }},
		{"read request", func() error {
			f.buf = f.read.Append(f.buf[:0])
			_, err := r.Parse(f.buf)
			return err
		}},
		{"atomic request", func() error {
			f.buf = f.atomic.Append(f.buf[:0])
			_, err := a.Parse(f.buf)
			return err
		}},
		{"atomic response", func() error {
			f.buf = s.Append(f.buf[:0])
			_, err := s.Parse(f.buf)
			return err
		}},
		{"parse an FPDU", func() error { _, _, err := wire.ParseFPDU(f.fpdu, true); return err }},
		{"append an FPDU", func() error {
			f.buf = wire.AppendFPDU(f.buf[:0], true, f.taggedB, f.payload)
			return nil
		}},
		{"seal an FPDU", func() error {
			f.buf = wire.SealFPDU(append(f.buf[:0], f.fpdu[:500]...), 0, true)
			return nil
		}},
		{"trailer", func() error {
			sum := wire.UpdateCRC(0, f.fpdu[:wire.FPDULengthSize+length])
			f.buf = wire.AppendTrailer(f.buf[:0], length, sum, true)
			_, err := wire.ParseTrailer(f.buf, length, sum, true)
			return err
		}},
		{"append an FPDU with markers", func() error {
			f.buf = wire.AppendMarkedFPDU(f.buf[:0], 0, true, f.taggedB, f.payload)
			return nil
		}},
		{"parse an FPDU with markers", func() error {
			var err error
			f.buf, _, err = wire.ParseMarkedFPDU(f.buf[:0], f.marked, 0, true)
			return err
		}},
	} {
		require.NoError(t, row.run(), row.name)
		assert.Zero(t, testing.AllocsPerRun(100, func() { _ = row.run() }), row.name)
	}
}

func TestFailuresDoNotAllocateEither(t *testing.T) {
	f := newHotFrames(100)
	f.fpdu[50] ^= 1
	f.marked[50] ^= 1
	f.taggedB[0] = 0x83
	f.sendB[1] = 0x4f
	var h wire.Header
	for _, row := range []struct {
		name string
		run  func() error
		want error
	}{
		{"CRC", func() error { _, _, err := wire.ParseFPDU(f.fpdu, true); return err }, wire.ErrCRC},
		{"CRC with markers", func() error { _, _, err := wire.ParseMarkedFPDU(nil, f.marked, 0, true); return err }, wire.ErrCRC},
		{"version", func() error { _, err := h.Parse(f.taggedB, 114); return err }, wire.ErrTaggedVersion},
		{"opcode", func() error { _, err := h.Parse(f.sendB, 118); return err }, wire.ErrOpcode},
		{"length", func() error { _, err := h.Parse(f.sendB, 3); return err }, wire.ErrULPDUShort},
		{"too little", func() error { _, err := h.Parse(f.sendB[:4], 118); return err }, wire.ErrIncomplete},
	} {
		require.ErrorIs(t, row.run(), row.want, row.name)
		assert.Zero(t, testing.AllocsPerRun(100, func() { _ = row.run() }), row.name)
	}
}
