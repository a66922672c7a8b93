package node

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"godat/examples/nvmeof/identity"
	"godat/runtime/rpc"
)

// The versions of what nodes say to each other. A node speaks its own, and the one before that; before version 1
// nobody said of which volume he was.
const (
	wireVersion  = 1
	wireEarliest = 1
)

// Versions are those of what nodes say to each other that this program speaks.
func Versions() (least, most int) { return wireEarliest, wireVersion }

// noMethod is the refusal of a call by a node that does not know it, as one of the version before.
func noMethod(method uint16) error {
	return &rpc.Error{Code: rpc.CodeFailed, Text: fmt.Sprintf("node: no method %d", method)}
}

// note is what each call between nodes begins with, and its answer.
type note struct {
	volume         identity.ID
	terms          [termsLen]byte // the digest of what is the same on all nodes
	from, to       uint64
	released       uint64
	floor          uint64
	rotten         bool
	version, magic uint16
}

const (
	noteMagic = 'g' | 'v'<<8
	termsLen  = 8
	termsEnd  = 4 + len(identity.ID{}) + termsLen
	noteLen   = termsEnd + 4*8 + 1
)

// A note as bytes, little-endian.
//
//	0    2         4        20      28     36   44         52      60       61
//	+----+---------+--------+-------+------+----+----------+-------+--------+
//	|"gv"| version | volume | terms | from | to | released | floor | rotten |
//	+----+---------+--------+-------+------+----+----------+-------+--------+
func (x *note) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint16(b, x.magic)
	b = binary.LittleEndian.AppendUint16(b, x.version)
	b = append(b, x.volume[:]...)
	b = append(b, x.terms[:]...)
	for _, v := range []uint64{x.from, x.to, x.released, x.floor} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	if x.rotten {
		return append(b, 1)
	}
	return append(b, 0)
}

func parseNote(b []byte) (x note, rest []byte, err error) {
	if len(b) < noteLen {
		return x, nil, errNote
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[termsEnd+8*i:]) }
	x = note{
		magic: binary.LittleEndian.Uint16(b), version: binary.LittleEndian.Uint16(b[2:]), volume: identity.ID(b[4:20]), terms: [termsLen]byte(b[20:termsEnd]),
		from: word(0), to: word(1), released: word(2), floor: word(3), rotten: b[noteLen-1] != 0,
	}
	return x, b[noteLen:], nil
}

// Term is an option that is the same on all nodes of a volume.
type Term struct{ Name, Value string }

// Terms are such options. Founding ones are those of the nodes that were there from the beginning.
type Terms struct {
	All      []Term
	Founding []Term `json:",omitempty"`
}

// digest stands for the terms of all nodes.
func (t *Terms) digest() (d [termsLen]byte) {
	h := sha256.New()
	for _, x := range t.All {
		fmt.Fprintf(h, "%q=%q\n", x.Name, x.Value)
	}
	copy(d[:], h.Sum(nil))
	return d
}

// Differences says what differs here from there, or nothing.
func (t *Terms) Differences(there *Terms) string {
	var all []string
	compare := func(here, there []Term, both bool) {
		values := make(map[string]string)
		for _, x := range there {
			values[x.Name] = x.Value
		}
		for _, x := range here {
			if value, has := values[x.Name]; (has || !both) && value != x.Value {
				all = append(all, fmt.Sprintf("%s: %s here, %s there", x.Name, x.Value, value))
			}
		}
	}
	compare(t.All, there.All, false)
	if len(t.Founding) != 0 && len(there.Founding) != 0 {
		compare(t.Founding, there.Founding, true)
	}
	return strings.Join(all, "; ")
}
