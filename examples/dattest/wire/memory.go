package wire

import "encoding/binary"

// Memory is where a peer may read or write; it is zero for an operation without such
// memory.
type Memory struct {
	Context uint32
	Addr    uint64
}

// MemorySize is the length of a Memory on the wire in bytes. AllMemorySize is the
// length of the message in which a transaction test sends a Memory for each possible
// operation.
const (
	MemorySize    = 12
	AllMemorySize = MaxOps * MemorySize
)

// AppendMemory appends the encoding of a Memory.
func AppendMemory(b []byte, m Memory) []byte {
	b = binary.LittleEndian.AppendUint32(b, m.Context)
	return binary.LittleEndian.AppendUint64(b, m.Addr)
}

// ParseMemory reads the first n Memories of a message.
func ParseMemory(b []byte, n int) ([]Memory, error) {
	r := reader{b: b}
	all := make([]Memory, 0, MaxOps)
	for range min(n, MaxOps) {
		all = append(all, Memory{Context: r.u32(), Addr: r.u64()})
	}
	return all, r.err
}
