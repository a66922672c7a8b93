package plain

import (
	"io"
	"net"

	"godat/examples/nvmeof/nvme"
)

// Client is the other end of Server, made as host.Pipeline: it keeps many commands under way. It
// sends all commands at hand with one writev, from the memory that they write, and takes all
// completions that one read brings. One goroutine calls Begin and Flush, and one, which may be
// another, Receive.
type Client struct {
	conn     net.Conn
	slots    []slot
	sum      sum // of what was sent
	received sum

	pieces [][]byte
	out    net.Buffers // what Begin has added since the last flush
	sent   net.Buffers // Flush consumes it
	in     []byte
	have   int // bytes of in
}

// slot is what a command has.
type slot struct {
	capsule [nvme.CommandLen]byte
	read    bool
	data    [Size]byte
}

// NewClient makes the client of a connection, with as many slots for commands as depth says.
func NewClient(conn net.Conn, depth int, checksum Checksum) *Client {
	c := &Client{conn: conn, slots: make([]slot, depth), in: make([]byte, depth*(nvme.CompletionLen+Size)), pieces: make([][]byte, 2*depth)}
	c.sum.update, c.received.update = checksum, checksum
	c.out = c.pieces[:0]
	return c
}

// Data is the memory of a slot's block: what a write sends, and what a read has brought.
func (c *Client) Data(i int) []byte { return c.slots[i].data[:] }

// Begin adds a slot's next command, which reads or writes a block.
func (c *Client) Begin(i int, op nvme.Opcode, block int) {
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

// Flush sends the commands that Begin has added.
func (c *Client) Flush() error {
	if len(c.out) == 0 {
		return nil
	}
	c.sent = c.out
	c.out = c.pieces[:0]
	_, err := c.sent.WriteTo(c.conn)
	return err
}

// Receive waits for completions, and calls done for the slots that they complete.
func (c *Client) Receive(done func(i int)) error {
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
func (c *Client) complete(b []byte, done func(i int)) (used int, err error) {
	for len(b)-used >= nvme.CompletionLen {
		completion, err := nvme.ParseCompletion(b[used:][:nvme.CompletionLen])
		if err != nil || int(completion.CID) >= len(c.slots) {
			return 0, io.ErrUnexpectedEOF
		}
		s, inside := &c.slots[completion.CID], 0
		if s.read {
			inside = Size
		}
		if len(b)-used < nvme.CompletionLen+inside {
			break
		}
		used += nvme.CompletionLen
		c.received.add(b[used:][:inside])
		copy(s.data[:], b[used:][:inside])
		used += inside
		if err := completion.Status.Err(); err != nil {
			return used, err
		}
		done(int(completion.CID))
	}
	return used, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }
