package main

import (
	"encoding/binary"
	"fmt"

	"godat/mem"
)

// advertSize is the length of every message. The client's messages are adverts; what the
// server's contain has no use, because they only tell that the server has finished.
//
//	 0               8       12      16
//	+---------------+-------+-------+
//	| address       | key   | bytes |   in network order
//	+---------------+-------+-------+
const advertSize = 16

func putAdvert(b []byte, r mem.RemoteSegment) {
	binary.BigEndian.PutUint64(b, r.Addr)
	binary.BigEndian.PutUint32(b[8:], r.Context)
	binary.BigEndian.PutUint32(b[12:], r.Len)
}

func checkSize(b []byte) error {
	if len(b) != advertSize {
		return fmt.Errorf("a message of %d bytes, not %d", len(b), advertSize)
	}
	return nil
}

// parseAdvert reads an advert of a buffer of at most most bytes.
func parseAdvert(b []byte, most int) (mem.RemoteSegment, error) {
	if err := checkSize(b); err != nil {
		return mem.RemoteSegment{}, err
	}
	r := mem.RemoteSegment{
		Addr: binary.BigEndian.Uint64(b), Context: binary.BigEndian.Uint32(b[8:]), Len: binary.BigEndian.Uint32(b[12:]),
	}
	if r.Len == 0 || int64(r.Len) > int64(most) {
		return r, fmt.Errorf("the peer's buffer has %d bytes, and at most %d were agreed on (-S)", r.Len, most)
	}
	return r, nil
}
