package iwarp

import "godat/hw/iwarp/wire"

// A large Read's memory takes one write, and the next Read's memory, under the same STag, most
// often the next write. So behind a write of several FPDUs the receiver reads as if the next
// write began like that one: a header to the buffer, payloads to the memory. That saves the
// call which would read the first header. If something else comes, it is copied out of the
// memory as in a read ahead.
//
// The receiver does so only once the memory was exchanged for some of another length, as it is
// between two Reads: until then the bytes of a complete write are there. Nor does it once the
// reader is about to exchange the memory again, because its deadline has passed: what came there
// in vain would look like bytes of the write (OnlyWrites of [hw.Remapper]).

// headerSize is the size in bytes of what comes before the payload of a write's FPDU.
const headerSize = wire.FPDULengthSize + wire.TaggedHeaderSize

// opening is how the peer's last write began. If that had several FPDUs, it is likely the
// opening of the next one, too.
type opening struct {
	stag    uint32
	to      uint64
	n       int // octets of the first payload
	likely  bool
	changes uint64 // of the memory's key, when the write had ended
}

// mayOpen reports whether the peer is likely to begin a write as it began the last one, and
// nothing has come behind that.
func (d *direct) mayOpen() bool {
	o := &d.place.opening
	return o.likely && d.in.r == d.in.w && d.link.agreed.extended && !d.link.agreed.markersIn &&
		d.place.mem.view.Keys.Changes(o.stag) != o.changes
}

// readOpening is readMore where mayOpen holds. It returns false for done if it has not read,
// because the memory has no room for the first payload.
func (d *direct) readOpening(fd int) (again, done bool) {
	d.own.Check()
	o := &d.place.opening
	d.place.beginTouch()
	defer d.place.endTouch()
	mem := d.place.mem.view.Early(o.to, o.stag)
	if len(mem) < o.n {
		return false, false
	}
	d.in.ready(d.need)
	d.h.Last = false
	d.length, d.payload, d.left = wire.TaggedHeaderSize+o.n, o.n, o.n
	d.trailer = headerSize
	d.parts = append(d.parts[:0], d.in.buf[:headerSize])
	d.expect(mem)
	got, again := d.readParts(fd)
	d.in.w = min(got, headerSize)
	got -= d.in.w
	if got > 0 && d.beginAt(0, o.stag, o.to, o.n) {
		d.begun, d.scratch, d.need = true, true, 0
		d.sort(d.parts[1:], got)
	} else {
		d.left, o.likely = 0, again
		d.in.spill(d.parts[1:], got)
	}
	if again {
		d.pause()
	}
	clear(d.parts)
	return again, true
}
