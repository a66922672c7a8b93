package beside

import (
	"errors"
	"io"
	"net"

	"godat/examples/nvmeof/nvme"
)

// server serves the commands Read and Write of one connection: a command capsule with the
// data of a Write behind it, a completion with the data of a Read behind it. It takes all
// commands that have come, copies what they write, and answers them with one writev,
// whose pieces are in the disk's memory.
type server struct {
	conn   net.Conn
	memory []byte // the disk
	sum    sum

	in      []byte
	answers [2 * depth][nvme.CompletionLen]byte
	pieces  [4 * depth][]byte
	out     net.Buffers
	ended   chan error
}

func newServer(conn net.Conn, memory []byte) *server {
	return &server{conn: conn, memory: memory, in: make([]byte, 2*depth*(nvme.CommandLen+size)), ended: make(chan error, 1)}
}

// run serves until the client has closed the connection.
func (s *server) run() {
	for have := 0; ; {
		n, err := s.conn.Read(s.in[have:])
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			s.ended <- err
			return
		}
		have += n
		used, err := s.serve(s.in[:have])
		if err != nil {
			s.ended <- err
			return
		}
		have = copy(s.in, s.in[used:have])
	}
}

// serve serves the commands that are complete, and returns how long they are.
func (s *server) serve(b []byte) (used int, err error) {
	s.out = s.pieces[:0]
	for answers := 0; len(b)-used >= nvme.CommandLen; answers++ {
		var c nvme.Command
		if err := c.Parse(b[used:]); err != nil {
			return 0, err
		}
		off, end := int(c.LBA())*size, int(c.LBA()+c.Blocks())*size
		if end > len(s.memory) {
			return 0, io.ErrUnexpectedEOF
		}
		inside := 0
		if c.Opcode == nvme.IOWrite {
			inside = end - off
		}
		if len(b)-used < nvme.CommandLen+inside {
			break
		}
		used += nvme.CommandLen
		s.sum.add(b[used:][:inside])
		copy(s.memory[off:end], b[used:][:inside])
		used += inside
		answer := &s.answers[answers]
		done := nvme.Completion{CID: c.CID}
		done.Put(answer[:])
		s.out = append(s.out, answer[:])
		if c.Opcode == nvme.IORead {
			s.sum.add(s.memory[off:end])
			s.out = append(s.out, s.memory[off:end])
		}
	}
	_, err = s.out.WriteTo(s.conn)
	return used, err
}

// sum is a checksum of the blocks that an end has sent and received, as iWARP has it and a
// net.Conn has not. Nobody compares it.
type sum struct {
	update func(sum uint32, p []byte) uint32 // or nil
	sum    uint32
}

func (s *sum) add(block []byte) {
	if s.update != nil {
		s.sum = s.update(s.sum, block)
	}
}
