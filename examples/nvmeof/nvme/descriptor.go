package nvme

import "encoding/binary"

// DescriptorType is the type and the subtype of a data descriptor, as its last byte has
// them: the type in the high four bits.
type DescriptorType uint8

// The descriptors of NVMe over RDMA.
const (
	// InCapsule is a data block at an offset in the capsule, behind the command.
	InCapsule DescriptorType = 0x01
	// Keyed is a data block in the host's memory, under a key for RDMA.
	Keyed DescriptorType = 0x40
	// KeyedInvalidate is Keyed by a host that wants the key invalidated by the
	// completion's send.
	KeyedInvalidate DescriptorType = 0x4f
)

// Descriptor says where the data of a command is: a scatter/gather list of one entry.
//
//	keyed:       address 8 | length 3 | key 4 | type 1
//	in capsule:  offset 8  | length 4 | 0 0 0 | type 1
type Descriptor struct {
	Type    DescriptorType
	Address uint64 // in the host's memory, or the offset behind the command
	Length  uint32
	Key     uint32 // of the host's memory
}

// MaxKeyed is the most bytes that a keyed descriptor can name.
const MaxKeyed = 1<<24 - 1

// IsKeyed reports whether the data is in the host's memory.
func (d Descriptor) IsKeyed() bool { return d.Type == Keyed || d.Type == KeyedInvalidate }

func (d *Descriptor) parse(b []byte) {
	le := binary.LittleEndian
	d.Type, d.Address, d.Length, d.Key = DescriptorType(b[15]), le.Uint64(b), le.Uint32(b[8:]), 0
	if d.Type>>4 == Keyed>>4 {
		d.Length, d.Key = d.Length&MaxKeyed, le.Uint32(b[11:])
	}
}

func (d *Descriptor) put(b []byte) {
	le := binary.LittleEndian
	le.PutUint64(b, d.Address)
	le.PutUint32(b[8:], d.Length)
	if d.Type>>4 == Keyed>>4 {
		le.PutUint32(b[11:], d.Key) // over the highest byte of the length
	}
	b[15] = byte(d.Type)
}
