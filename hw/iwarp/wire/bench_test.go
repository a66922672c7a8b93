package wire_test

import (
	"strconv"
	"testing"

	"godat/hw/iwarp/wire"
)

func BenchmarkHeader(b *testing.B) {
	f := newHotFrames(1428)
	for _, row := range []struct {
		kind   string
		header wire.Header
		bytes  []byte
	}{
		{"tagged", f.tagged, f.taggedB},
		{"untagged", f.send, f.sendB},
	} {
		b.Run("op=parse/kind="+row.kind, func(b *testing.B) {
			b.ReportAllocs()
			var h wire.Header
			for b.Loop() {
				if _, err := h.Parse(row.bytes, 1442); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("op=append/kind="+row.kind, func(b *testing.B) {
			b.ReportAllocs()
			buf := f.buf
			for b.Loop() {
				buf = row.header.AppendFramed(buf[:0], 1428)
			}
		})
	}
}

func BenchmarkReadRequest(b *testing.B) {
	f := newHotFrames(0)
	b.Run("op=parse", func(b *testing.B) {
		b.ReportAllocs()
		var r wire.ReadRequest
		for b.Loop() {
			if _, err := r.Parse(f.readB); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("op=append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f.buf = f.read.Append(f.buf[:0])
		}
	})
}

// benchSizes are sizes of payload: small, one Ethernet segment, a jumbo one, the most.
var benchSizes = []int{64, 1428, 8928, 64000}

func BenchmarkCRC(b *testing.B) {
	for _, size := range benchSizes {
		b.Run("size="+strconv.Itoa(size), func(b *testing.B) {
			p := make([]byte, size)
			b.SetBytes(int64(size))
			var sum uint32
			for b.Loop() {
				sum = wire.UpdateCRC(sum, p)
			}
		})
		b.Run("copied/size="+strconv.Itoa(size), func(b *testing.B) {
			p, to := make([]byte, size), make([]byte, size)
			b.SetBytes(int64(size))
			var sum uint32
			for b.Loop() {
				sum = wire.CopyCRC(sum, to, p)
			}
		})
	}
}

func BenchmarkFPDU(b *testing.B) {
	for _, size := range benchSizes {
		f := newHotFrames(size)
		length := len(f.taggedB) + size
		for _, crc := range []bool{false, true} {
			name := "/crc=" + strconv.FormatBool(crc) + "/size=" + strconv.Itoa(size)
			b.Run("op=parse"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, _, err := wire.ParseFPDU(f.fpdu, crc); err != nil {
						b.Fatal(err)
					}
				}
			})
			// The octets that a vectored write needs besides the payload.
			b.Run("op=frame"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					f.buf = f.tagged.AppendFramed(f.buf[:0], size)
					var sum uint32
					if crc {
						sum = wire.UpdateCRC(wire.UpdateCRC(0, f.buf), f.payload)
					}
					f.buf = wire.AppendTrailer(f.buf, length, sum, crc)
				}
			})
		}
	}
}

func BenchmarkMarkers(b *testing.B) {
	f := newHotFrames(1428)
	b.Run("op=append", func(b *testing.B) {
		b.SetBytes(1428)
		b.ReportAllocs()
		for b.Loop() {
			f.buf = wire.AppendMarkedFPDU(f.buf[:0], 0, true, f.taggedB, f.payload)
		}
	})
	b.Run("op=parse", func(b *testing.B) {
		b.SetBytes(1428)
		b.ReportAllocs()
		for b.Loop() {
			var err error
			if f.buf, _, err = wire.ParseMarkedFPDU(f.buf[:0], f.marked, 0, true); err != nil {
				b.Fatal(err)
			}
		}
	})
}
