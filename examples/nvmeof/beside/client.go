package beside

import (
	"context"
	"io"
	"net"

	"godat/examples/nvmeof/nvme"
)

// client is the other end of server, made as host.Pipeline: one goroutine keeps depth
// commands under way. It sends all commands at hand with one writev, from the memory that
// they write, and takes all completions that one read brings.
type client struct {
	conn  net.Conn
	slots [depth]slot
	sum   sum

	pieces [2 * depth][]byte
	out    net.Buffers // what begin has added since the last flush
	sent   net.Buffers // flush consumes it
	in     []byte
	have   int // bytes of in
}

// slot is what a command has.
type slot struct {
	capsule [nvme.CommandLen]byte
	read    bool
	data    [size]byte
}

func newClient(conn net.Conn) *client {
	c := &client{conn: conn, in: make([]byte, depth*(nvme.CompletionLen+size))}
	c.out = c.pieces[:0]
	return c
}

// run reads or writes blocks, one in each slot, until ctx is done.
func (c *client) run(ctx context.Context, op nvme.Opcode) (n int64, err error) {
	for i := range c.slots {
		c.begin(i, op, i)
	}
	for under := len(c.slots); under > 0; {
		if err := c.flush(); err != nil {
			return n, err
		}
		err := c.receive(func(i int) {
			n++
			if ctx.Err() == nil {
				c.begin(i, op, i)
			} else {
				under--
			}
		})
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// begin adds a slot's next command, which reads or writes a block.
func (c *client) begin(i int, op nvme.Opcode, block int) {
	s := &c.slots[i]
	command := nvme.Command{Opcode: op, NSID: 1, Flags: nvme.UsesList, CID: uint16(i)}
	command.SetRange(uint64(block), 1)
	command.Put(s.capsule[:])
	c.out = append(c.out, s.capsule[:])
	if s.read = op == nvme.IORead; !s.read {
		c.sum.add(s.data[:])
		c.out = append(c.out, s.data[:])
	}
}

// flush sends the commands that begin has added.
func (c *client) flush() error {
	if len(c.out) == 0 {
		return nil
	}
	c.sent = c.out
	c.out = c.pieces[:0]
	_, err := c.sent.WriteTo(c.conn)
	return err
}

// receive waits for completions, and calls done for the slots that they complete.
func (c *client) receive(done func(i int)) error {
	n, err := c.conn.Read(c.in[c.have:])
	if err != nil {
		return err
	}
	c.have += n
	used, err := c.complete(c.in[:c.have], done)
	c.have = copy(c.in, c.in[used:c.have])
	return err
}

// complete completes the commands whose completions are there.
func (c *client) complete(b []byte, done func(i int)) (used int, err error) {
	for len(b)-used >= nvme.CompletionLen {
		completion, err := nvme.ParseCompletion(b[used:][:nvme.CompletionLen])
		if err != nil || int(completion.CID) >= depth {
			return 0, io.ErrUnexpectedEOF
		}
		s, inside := &c.slots[completion.CID], 0
		if s.read {
			inside = size
		}
		if len(b)-used < nvme.CompletionLen+inside {
			break
		}
		used += nvme.CompletionLen
		c.sum.add(b[used:][:inside])
		copy(s.data[:], b[used:][:inside])
		used += inside
		if err := completion.Status.Err(); err != nil {
			return used, err
		}
		done(int(completion.CID))
	}
	return used, nil
}

func (c *client) close() error { return c.conn.Close() }
