package lane

import (
	"fmt"

	"godat/hw"
	"godat/mem"
)

// stamps tell apart the messages of several producers that share a connection. The first
// byte of a message is its producer's number. Each receive has memory of its own, so that
// the consumer finds the stamp before another message overwrites it. A connection keeps
// the order of one producer's messages, so that the stamp is enough to know the slot.
type stamps struct {
	mem   []byte
	size  int
	slots int           // of each producer
	out   []mem.Segment // by producer
	in    []mem.Segment // by receive
	taken []int         // messages of each producer that the consumer took
}

// MaxProducers is how many producers a stamp tells apart.
const MaxProducers = 256

const maxStamped = 1 << 30 // bytes of all receives

func newStamps(pz *mem.PZ, cfg Config) (*stamps, error) {
	n, receives := cfg.producers(), cfg.slots()
	if receives+n > maxStamped/cfg.Size {
		return nil, fmt.Errorf("receives for %d messages of %d bytes, each with memory of its own: up to %d bytes in all", cfg.Depth, cfg.Size, maxStamped)
	}
	lmr, err := pz.Alloc((n+receives)*cfg.Size, hw.AllPrivileges)
	if err != nil {
		return nil, err
	}
	s := &stamps{mem: lmr.Bytes(), size: cfg.Size, slots: receives / n, taken: make([]int, n)}
	for i := range receives {
		s.in = append(s.in, lmr.Segment(i*cfg.Size, cfg.Size))
	}
	for i := range n {
		at := (receives + i) * cfg.Size
		s.mem[at] = byte(i)
		s.out = append(s.out, lmr.Segment(at, cfg.Size))
	}
	return s, nil
}

// slotOf returns the slot of the message that a receive took.
func (s *stamps) slotOf(recv int) int {
	producer := int(s.mem[recv*s.size])
	slot := producer*s.slots + s.taken[producer]%s.slots
	s.taken[producer]++
	return slot
}
