// Package plain serves blocks of a disk in memory over a net.Conn: what a program writes without a
// storage protocol, to measure others beside it.
package plain

import (
	"errors"
	"io"
	"net"
	"sync/atomic"

	"godat/examples/nvmeof/nvme"
)

// Size is the length of a block.
const Size = 4096

// Checksum is of the blocks that an end has sent and received, as iWARP has it and a net.Conn has
// not: nil computes none. Nobody compares it.
type Checksum func(sum uint32, block []byte) uint32

// Server serves the commands Read and Write of one connection: a command capsule with the
// data of a Write behind it, a completion with the data of a Read behind it. It takes all
// commands that have come, copies what they write, and answers them with one writev,
// whose pieces are in the disk's memory.
type Server struct {
	conn   net.Conn
	memory []byte // the disk
	sum    sum

	in      []byte
	answers [][nvme.CompletionLen]byte
	pieces  [][]byte
	out     net.Buffers
	served  atomic.Int64
}

// NewServer makes a server of memory for one client, which has at most depth commands under way.
func NewServer(conn net.Conn, memory []byte, depth int, checksum Checksum) *Server {
	return &Server{
		conn: conn, memory: memory, sum: sum{update: checksum}, in: make([]byte, 2*depth*(nvme.CommandLen+Size)),
		answers: make([][nvme.CompletionLen]byte, 2*depth*(nvme.CommandLen+Size)/nvme.CommandLen),
		pieces:  make([][]byte, 2*depth*(nvme.CommandLen+Size)/nvme.CommandLen*2),
	}
}

// Served is how many commands the server has answered. Any goroutine may call it.
func (s *Server) Served() int64 { return s.served.Load() }

// Run serves until the client has closed the connection, and closes this end.
func (s *Server) Run() error {
	for have := 0; ; {
		n, err := s.conn.Read(s.in[have:])
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return errors.Join(err, s.conn.Close())
		}
		have += n
		used, err := s.serve(s.in[:have])
		if err != nil {
			return errors.Join(err, s.conn.Close())
		}
		have = copy(s.in, s.in[used:have])
	}
}

// serve serves the commands that are complete, and returns how long they are.
func (s *Server) serve(b []byte) (used int, err error) {
	s.out = s.pieces[:0]
	answers := 0
	for ; len(b)-used >= nvme.CommandLen; answers++ {
		var c nvme.Command
		if err := c.Parse(b[used:]); err != nil {
			return 0, err
		}
		off, end := int(c.LBA())*Size, int(c.LBA()+c.Blocks())*Size
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
	s.served.Add(int64(answers)) // before a client can have them
	_, err = s.out.WriteTo(s.conn)
	return used, err
}

// sum is the checksum of an end.
type sum struct {
	update Checksum // or nil
	sum    uint32
}

func (s *sum) add(block []byte) {
	if s.update != nil {
		s.sum = s.update(s.sum, block)
	}
}
