package lane

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"sync/atomic"
)

// message is what anchors carry: as many bytes as an event has.
type message [7]uint64

// Channel is a buffered channel of Go.
type Channel struct {
	c chan message
}

// NewChannel makes a channel for depth messages.
func NewChannel(depth int) *Channel { return &Channel{c: make(chan message, 2*depth)} }

// Slots is the length of the channel.
func (l *Channel) Slots() int { return cap(l.c) }

// Post sends to the channel.
func (l *Channel) Post(slot int) error {
	l.c <- message{uint64(slot)}
	return nil
}

// Take receives from the channel.
func (l *Channel) Take(f func(slot int) bool) error {
	for m := range l.c {
		if !f(int(m[0])) {
			break
		}
	}
	return nil
}

// Close ends a Take.
func (l *Channel) Close() error {
	close(l.c)
	return nil
}

// Ring is a bounded ring for many producers and one consumer, which spins and yields.
type Ring struct {
	r      *MPSC
	closed atomic.Bool
}

// NewRing makes a ring for depth messages.
func NewRing(depth int) *Ring { return &Ring{r: NewMPSC(2 * depth)} }

// Slots is the length of the ring.
func (l *Ring) Slots() int { return len(l.r.cells) }

// Post pushes into the ring.
func (l *Ring) Post(slot int) error {
	if !l.r.Push(&[7]uint64{uint64(slot)}) {
		return errors.New("the ring is full")
	}
	return nil
}

// Take pops from the ring.
func (l *Ring) Take(f func(slot int) bool) error {
	var m [7]uint64
	for {
		switch {
		case l.r.Pop(&m):
			if !f(int(m[0])) {
				return nil
			}
		case l.closed.Load():
			return io.EOF
		default:
			runtime.Gosched()
		}
	}
}

// Close ends a Take.
func (l *Ring) Close() error {
	l.closed.Store(true)
	return nil
}

// Conn is a byte stream: messages are written to one end, and read from the other.
type Conn struct {
	to    io.Writer
	from  io.Reader
	close func() error
	out   [][]byte // by producer
	in    []byte
	slots int // of each producer
	room  int // bytes that can be written before any is read
}

// NewTCP makes a lane over loopback TCP.
func NewTCP(cfg Config) (*Conn, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer ln.Close()
	a, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		return nil, err
	}
	b, err := ln.Accept()
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return NewConn(a, b, cfg, SocketRoom, func() error { return errors.Join(a.Close(), b.Close()) }), nil
}

// SocketRoom is less than the least that a socket's two buffers hold.
const SocketRoom = 32 << 10

// NewPipe makes a lane over net.Pipe, which has no buffer.
func NewPipe(cfg Config) *Conn {
	a, b := net.Pipe()
	return NewConn(a, b, cfg, 0, func() error { return errors.Join(a.Close(), b.Close()) })
}

// slotLen is how many bytes of a message tell its slot.
const slotLen = 8

// NewConn makes a lane of a stream that has room for so many bytes before any is read. closeEnds closes both ends.
func NewConn(to io.Writer, from io.Reader, cfg Config, room int, closeEnds func() error) *Conn {
	size := max(cfg.Size, slotLen)
	l := &Conn{to: to, from: from, close: closeEnds, in: make([]byte, size), slots: 2 * cfg.Depth / cfg.producers(), room: room}
	for range cfg.producers() {
		l.out = append(l.out, make([]byte, size))
	}
	return l
}

// PostBlocks reports whether depth messages don't fit into the connection.
func (l *Conn) PostBlocks(depth int) bool { return depth*len(l.in) > l.room }

// Slots is twice the depth.
func (l *Conn) Slots() int { return l.slots * len(l.out) }

// Post writes a message.
func (l *Conn) Post(slot int) error {
	out := l.out[slot/l.slots]
	binary.LittleEndian.PutUint64(out, uint64(slot))
	_, err := l.to.Write(out)
	return err
}

// Take reads messages.
func (l *Conn) Take(f func(slot int) bool) error {
	for {
		if _, err := io.ReadFull(l.from, l.in); err != nil {
			return err
		}
		if !f(int(binary.LittleEndian.Uint64(l.in))) {
			return nil
		}
	}
}

// The names of connections that are none of the library's.
const overTCP, overPipe = "net.Conn", "net.Pipe"

// Close closes both ends.
func (l *Conn) Close() error { return l.close() }
