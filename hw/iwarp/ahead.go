package iwarp

import (
	"godat/hw/iwarp/wire"
)

// A stream lends a large Read's argument to the device, and that memory may hold anything
// behind the bytes of complete writes ([hw.Remapper]). So one call reads several FPDUs of a
// write into such memory: each payload to where it belongs if it has as many octets as the
// one before, or is the last one of the write and shorter, and what comes between two payloads
// into the buffer. An end of this package cuts its messages so, and sends nothing between two
// FPDUs of one message.
//
//	memory   | payload     | payload     | payload …
//	buffer   header | trailer, header | trailer, header | … the octets behind
//
// The receiver then looks at each header. If that is not the one expected, everything from
// its payload on is copied out of the memory, behind the header in the buffer, before
// anybody else may exchange the memory; so is what came behind a shorter last payload. The octets
// are then consumed as any others. So what a peer sends decides only what lies in that memory
// behind the write; it may write there anyway.
//
// With CRCs, the receiver computes them over the memory as the payloads come, so a payload is
// in its place before the receiver checks it. Nobody uses it by then: the memory takes one
// write, which is not complete, and a wrong CRC ends the connection.
//
// A Read whose deadline passes takes the memory back in the middle of a write. It finds each
// octet of the write that has come in its place, and none of them comes to the memory that it
// left, because an honest peer sends the FPDUs of a write in order, cut as above. A peer that does
// not spoils its own stream alone.
const (
	// mostAhead is the most payloads that one call reads beside the present one. That
	// is 1 MiB, in the longest FPDUs.
	mostAhead = 16
	// gapSize is the most octets between two payloads.
	gapSize = wire.MaxTrailerSize + wire.FPDULengthSize + wire.TaggedHeaderSize
	// behindAhead is how many octets are read behind the last payload: a short message or
	// two.
	behindAhead = 256
)

// forScratch reports whether the ULPDU of length octets that b begins is part of a write
// into memory that may hold anything. A CRC may prove later that it is not.
func (p *placer) forScratch(b []byte, length int) bool {
	if !p.link.agreed.extended {
		return false
	}
	var h wire.Header
	n, err := h.Parse(b, length)
	return err == nil && h.Opcode == wire.OpWrite && len(p.mem.Scratch(h.TO, h.STag)) >= length-n
}

// readAhead is read for memory that may hold anything.
func (d *inPlace) readAhead(fd int) (again bool) {
	d.own.Check()
	d.place.beginTouch()
	to := &d.place.one[0]
	mem := d.place.mem.Scratch(to.Addr+uint64(d.place.remote.Off), to.LKey)
	if len(mem) < d.left {
		d.place.endTouch()
		d.dead = true
		return false
	}
	if len(d.in.buf)-d.trailer < readSize/2 {
		d.trailer -= d.in.compact()
	}
	got, again := d.readParts(fd, d.expect(mem))
	d.sort(got)
	clear(d.parts)
	d.place.endTouch()
	return again
}

// expect sets parts to where the octets go: in turns a payload to mem, and what comes behind
// it to the buffer. It returns for how many octets they have room.
func (d *inPlace) expect(mem []byte) (room int) {
	b := d.in.buf[d.trailer:] // no octet behind the payload has come
	gap := wire.FPDUSize(d.length) - d.length + wire.TaggedHeaderSize
	d.parts = append(d.parts[:0], mem[:d.left])
	mem = mem[d.left:]
	most := mostAhead
	if t := d.link.tap.Load(); t != nil && !t.ways[there].begun {
		most = 0 // the trace begins with the next FPDU
	}
	for n := 0; n < most && !d.h.Last && len(mem) > 0; n++ {
		k := min(d.payload, len(mem))
		d.parts = append(d.parts, b[:gap], mem[:k])
		b, mem = b[gap:], mem[k:]
		gap = wire.FPDUSize(wire.TaggedHeaderSize+k) - k
	}
	d.parts = append(d.parts, b[:min(len(b), gap+behindAhead)])
	for _, p := range d.parts {
		room += len(p)
	}
	return room
}

// sort accounts for got octets that were read into parts, of which the first is for the
// rest of the payload.
func (d *inPlace) sort(got int) {
	for parts := d.parts; ; parts = parts[2:] {
		k := min(got, d.left)
		if d.link.agreed.crc {
			d.sum = wire.UpdateCRC(d.sum, parts[0][:k])
		}
		d.place.dst.Skip(k)
		d.left -= k
		got -= k
		if behind := parts[0][k:]; got > 0 && len(behind) > 0 { // the last payload of a write is shorter
			parts[0] = behind
			d.in.spill(parts, got)
			return
		}
		k = min(got, len(parts[1]))
		d.in.w += k
		if got -= k; got == 0 {
			return
		}
		if !d.asExpected(len(parts[2])) {
			d.in.spill(parts[2:], got)
			return
		}
	}
}

// asExpected ends the FPDU, and begins the next one, if that has most octets of payload which
// belong behind those of this one, or fewer and is the last one of its write. Its header is the
// end of the buffer. Of an FPDU with an error it returns false, so that consume finds the error.
func (d *inPlace) asExpected(most int) bool {
	skip, err := wire.ParseTrailer(d.in.buf[d.trailer:d.in.w], d.length, d.sum, d.link.agreed.crc)
	if err != nil {
		return false
	}
	at := d.trailer + skip
	b := d.in.buf[at:d.in.w]
	length := wire.ULPDULength(b)
	var h wire.Header
	size, err := h.Parse(b[wire.FPDULengthSize:], length)
	n := length - size
	if err != nil || h.Opcode != wire.OpWrite || h.STag != d.h.STag || h.TO != d.h.TO+uint64(d.payload) {
		return false
	}
	if n != most && (!h.Last || n <= 0 || n > most) {
		return false
	}
	if d.place.begin(&h, n) != nil {
		return false
	}
	d.place.finishWrite(&d.h, d.payload)
	d.unlimitRest()
	d.in.r, d.trailer = at, d.in.w
	d.h, d.length, d.payload, d.left = h, length, n, n
	if d.link.agreed.crc {
		d.sum = wire.UpdateCRC(0, b)
	}
	return true
}
