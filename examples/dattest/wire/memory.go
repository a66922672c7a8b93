package wire

import "encoding/binary"

// Memory is where a peer may read or write: zero where there is nothing to.
type Memory struct {
	Context uint32
	Addr    uint64
}

// MemorySize is how many bytes one has on the wire, and AllMemorySize those of
// the message in which a transaction test sends one for each operation that
// there may be.
const (
	MemorySize    = 12
	AllMemorySize = MaxOps * MemorySize
)

// AppendMemory appends one.
func AppendMemory(b []byte, m Memory) []byte {
	b = binary.LittleEndian.AppendUint32(b, m.Context)
	return binary.LittleEndian.AppendUint64(b, m.Addr)
}

// ParseMemory takes the first n of a message.
func ParseMemory(b []byte, n int) ([]Memory, error) {
	r := reader{b: b}
	all := make([]Memory, 0, MaxOps)
	for range min(n, MaxOps) {
		all = append(all, Memory{Context: r.u32(), Addr: r.u64()})
	}
	return all, r.err
}
