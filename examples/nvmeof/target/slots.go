package target

import (
	"godat/ep"
	"godat/examples/nvmeof/nvme"
	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
)

// slots are the memory of a queue for capsules and completions, and the posts that its
// next flush makes. The queue's goroutine owns them.
//
// There is a slot for each command that a host may have under way, and one more, so that
// the command that is one too many comes in, too. A slot's receive is posted again right
// before the command's completion goes out. So a host that has a completion finds a
// receive for its next command, and nothing lands in a slot whose data is still on its way
// to the host: the host has room for a further command only when it has the completion
// behind that data.
//
// Completions take their memory in turns. There are more turns than the endpoint takes
// requests plus those that wait for a flush. So when a turn comes again, the endpoint
// has taken so many requests since that the completion of the last turn has been sent.
type slots struct {
	commands []command // by slot
	region   *mem.LMR
	memory   []byte
	first    mem.Segment // the first completion

	receives []ep.DTO // of slots that are free again
	requests []ep.DTO // transfers and completions
	answers  int      // where completions begin in memory
	turn     int      // whose memory the next completion has
	turns    int
}

// slotLen is the length of a slot.
const slotLen = nvme.CommandLen + inCapsule

// make makes the slots of a queue of that many entries, whose endpoint takes so many
// requests, and posts their receives.
func (s *slots) make(c *dat.Conn, entries, requests int) (err error) {
	n := entries + 1
	s.turns, s.answers = requests+2*n, n*slotLen
	if s.region, err = c.Alloc(s.answers+s.turns*nvme.CompletionLen, hw.LocalRead|hw.LocalWrite); err != nil {
		return err
	}
	s.memory, s.commands = s.region.Bytes(), make([]command, n)
	s.receives, s.requests = make([]ep.DTO, 0, n), make([]ep.DTO, 0, 2*n+proofSlots)
	for i := range s.commands {
		c := &s.commands[i]
		c.slot, c.memory, c.local = i, s.memory[i*slotLen:][:slotLen:slotLen], s.region.Segment(i*slotLen, slotLen)
		s.receive(c)
	}
	s.first = s.region.Segment(s.answers, nvme.CompletionLen)
	_, err = c.Endpoint.PostRecvBatch(s.receives)
	s.receives = s.receives[:0]
	return err
}

// receive adds the receive of a slot that is free again.
func (s *slots) receive(c *command) {
	n := len(s.receives)
	s.receives = s.receives[:n+1] // a slot has one receive
	d := &s.receives[n]           // field by field: of the others none is ever set
	d.Cookie, d.Segment = uint64(c.slot), c.local
}

// request adds a request: what it says is of an earlier one, and the caller sets all that
// its operation uses. There are two at most for each slot between two flushes, and
// proofSlots.
func (s *slots) request() *ep.DTO {
	n := len(s.requests)
	s.requests = s.requests[:n+1]
	return &s.requests[n]
}

// completion adds the send of a completion. Nobody hears of it; see slots.
func (s *slots) completion(c nvme.Completion) *ep.DTO {
	at := s.turn * nvme.CompletionLen
	if s.turn++; s.turn == s.turns {
		s.turn = 0
	}
	c.Put(s.memory[s.answers+at:])
	d := s.request()
	d.Op, d.Flags, d.Segment = hw.OpSend, hw.Suppress, s.first
	d.Segment.Addr += uint64(at)
	return d
}

// flush posts what was added: first receives, for commands that follow completions.
func (s *slots) flush(e *ep.Endpoint) error {
	if len(s.receives) != 0 {
		_, err := e.PostRecvBatch(s.receives)
		s.receives = s.receives[:0]
		if err != nil {
			return err
		}
	}
	if len(s.requests) == 0 {
		return nil
	}
	_, err := e.PostBatch(s.requests)
	s.requests = s.requests[:0]
	return err
}
