package raftgodat

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"
)

// Methods of calls. All but those of a snapshot's chunks have an encoded request, inside the
// message or, if that is longer, in the caller's memory.
const (
	methodAppend uint16 = iota + 1
	methodHeartbeat
	methodVote
	methodPreVote
	methodTimeoutNow
	methodSnapshot      // begins a snapshot: its number, and the request
	methodSnapshotChunk // its number; the data is in the caller's memory
	methodSnapshotEnd   // its number; the answer is raft's
)

// handle encodes raft's structures, as raft's own transport does.
var handle = &codec.MsgpackHandle{}

// errShort is the error of a request that ends too early.
var errShort = errors.New("raftgodat: the request is too short")

// pack appends a structure of raft's to b.
func pack(b []byte, v any) ([]byte, error) {
	var packed []byte
	if err := codec.NewEncoderBytes(&packed, handle).Encode(v); err != nil {
		return b, fmt.Errorf("raftgodat: encode a %T: %w", v, err)
	}
	return append(b, packed...), nil
}

// unpack decodes a structure of raft's. Its bytes are a copy.
func unpack(b []byte, v any) error {
	if err := codec.NewDecoder(bytes.NewReader(b), handle).Decode(v); err != nil {
		return fmt.Errorf("raftgodat: decode a %T: %w", v, err)
	}
	return nil
}

// place is where a request stands in the order of a pipeline. Line 0 has no order.
type place struct{ line, number uint64 }

// An append is the place, 16 bytes; the length of the request without its entries, 4 bytes; that
// request; and the entries. An entry is
//
//	0  index, 8 bytes
//	8  term, 8 bytes
//	16 the time when the leader appended it, 8 bytes: ns since 1970, or noTime
//	24 type, 1 byte
//	25 length of the data, 4 bytes
//	29 length of the extensions, 4 bytes
//	33 data, extensions
//
// Numbers are little-endian.
const (
	placeLen = 16
	entryLen = 33
	noTime   = math.MinInt64
	headLen  = 512 // about what is ahead of the entries
)

// appendAppend appends an append to b.
func appendAppend(b []byte, p place, r *raft.AppendEntriesRequest) ([]byte, error) {
	le := binary.LittleEndian
	size := headLen
	for _, e := range r.Entries {
		size += entryLen + len(e.Data) + len(e.Extensions)
	}
	b = slices.Grow(b, size)
	b = le.AppendUint64(le.AppendUint64(b, p.line), p.number)
	at := len(b)
	head := *r
	head.Entries = nil
	b, err := pack(append(b, 0, 0, 0, 0), &head)
	if err != nil {
		return b, err
	}
	le.PutUint32(b[at:], uint32(len(b)-at-4))
	for _, e := range r.Entries {
		appended := int64(noTime)
		if !e.AppendedAt.IsZero() {
			appended = e.AppendedAt.UnixNano()
		}
		b = le.AppendUint64(le.AppendUint64(b, e.Index), e.Term)
		b = append(le.AppendUint64(b, uint64(appended)), byte(e.Type))
		b = le.AppendUint32(le.AppendUint32(b, uint32(len(e.Data))), uint32(len(e.Extensions)))
		b = append(append(b, e.Data...), e.Extensions...)
	}
	return b, nil
}

// parseAppend decodes an append. The entries' data is that of b, which must stay as it is.
func parseAppend(b []byte) (p place, r *raft.AppendEntriesRequest, err error) {
	le := binary.LittleEndian
	if len(b) < placeLen+4 {
		return p, nil, errShort
	}
	p = place{le.Uint64(b), le.Uint64(b[8:])}
	n := le.Uint32(b[placeLen:])
	b = b[placeLen+4:]
	if uint64(n) > uint64(len(b)) {
		return p, nil, errShort
	}
	r = new(raft.AppendEntriesRequest)
	if err := unpack(b[:n], r); err != nil {
		return p, nil, err
	}
	r.Entries = nil
	for b = b[n:]; len(b) != 0; {
		var e *raft.Log
		if e, b, err = parseEntry(b); err != nil {
			return p, nil, err
		}
		r.Entries = append(r.Entries, e)
	}
	return p, r, nil
}

// parseEntry decodes the first entry of b, and returns what is behind it.
func parseEntry(b []byte) (*raft.Log, []byte, error) {
	le := binary.LittleEndian
	if len(b) < entryLen {
		return nil, b, errShort
	}
	data, extensions := uint64(le.Uint32(b[25:])), uint64(le.Uint32(b[29:]))
	e := &raft.Log{Index: le.Uint64(b), Term: le.Uint64(b[8:]), Type: raft.LogType(b[24])}
	if appended := int64(le.Uint64(b[16:])); appended != noTime {
		e.AppendedAt = time.Unix(0, appended)
	}
	b = b[entryLen:]
	if data+extensions > uint64(len(b)) {
		return nil, b, errShort
	}
	if data != 0 {
		e.Data = b[:data:data]
	}
	if b = b[data:]; extensions != 0 {
		e.Extensions = b[:extensions:extensions]
	}
	return e, b[extensions:], nil
}

// isHeartbeat reports whether a request is what raft's heartbeat is.
func isHeartbeat(r *raft.AppendEntriesRequest) bool {
	return r.Term != 0 && len(r.Addr) != 0 && len(r.Entries) == 0 &&
		r.PrevLogEntry == 0 && r.PrevLogTerm == 0 && r.LeaderCommitIndex == 0
}
