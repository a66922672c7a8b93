package iwarp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// termCause is what a Terminate says, in the words of the layer that found the error.
func termCause(code wire.TermCode, found hw.Side) *hw.Cause {
	layer := hw.LayerMPA
	switch code.Layer() {
	case wire.LayerRDMAP:
		layer = hw.LayerRDMAP
	case wire.LayerDDP:
		layer = hw.LayerDDP
	case wire.LayerLLP:
	}
	return &hw.Cause{Layer: layer, Code: int(code), Text: code.Text(), Found: found}
}

// faultCause is what we found wrong with what the peer sent.
func faultCause(e *wire.Error) *hw.Cause {
	c := termCause(e.Term, hw.SideLocal)
	c.Text, c.Err = strings.TrimPrefix(strings.TrimPrefix(e.Error(), "iwarp: "), c.Layer.String()+": "), e
	return c
}

// statusCause is a request of ours that failed before it reached the peer.
func statusCause(op hw.Op, status hw.Status) *hw.Cause {
	return &hw.Cause{Code: int(status), Text: fmt.Sprintf("%v ended with %v", op, status), Err: status.Err()}
}

// tcpCause is an error of the connection below.
func tcpCause(err error) *hw.Cause {
	c := &hw.Cause{Layer: hw.LayerTCP, Text: err.Error(), Err: err}
	var op *net.OpError
	if errors.As(err, &op) {
		c.Text, c.Remote = op.Op, op.Addr
		if op.Err != nil {
			c.Text = op.Err.Error()
		}
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		c.Code = int(errno)
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		c.Text, c.Found = "the peer closed the connection in the middle of something", hw.SidePeer
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		c.Found = hw.SidePeer
	}
	return c
}

// attemptCause is why an attempt to connect failed, or an initiator was lost.
func attemptCause(err error) *hw.Cause {
	var fault *wire.Error
	switch {
	case errors.As(err, &fault):
		return faultCause(fault)
	case errors.Is(err, io.EOF):
		return &hw.Cause{Layer: hw.LayerTCP, Text: "the peer hung up during the start-up of MPA", Err: err, Found: hw.SidePeer}
	case isTimeout(err) || errors.Is(err, hw.ErrTimeout):
		return &hw.Cause{Layer: hw.LayerMPA, Text: "the peer did not answer in time", Err: hw.ErrTimeout}
	}
	return tcpCause(err)
}

// rejection is a reject of the peer's.
func rejection(text string) *hw.Cause {
	return &hw.Cause{Layer: hw.LayerMPA, Text: text, Found: hw.SidePeer}
}

// readCause is why reading has ended in disorder.
func (l *life) readCause(err error) *hw.Cause {
	l.mu.Lock()
	sent := l.sendErr
	l.mu.Unlock()
	switch {
	case sent != nil && isTimeout(sent):
		return &hw.Cause{Layer: hw.LayerTCP, Text: fmt.Sprintf("the peer took nothing for %v", l.dev.set.stall), Err: hw.ErrTimeout}
	case sent != nil && isTimeout(err):
		return tcpCause(sent)
	case isTimeout(err) && l.rx.hurried:
		return &hw.Cause{Layer: hw.LayerMPA, Text: fmt.Sprintf("the rest of an FPDU did not come in %v", l.dev.set.stall), Err: hw.ErrTimeout}
	case isTimeout(err):
		return &hw.Cause{Layer: hw.LayerTCP, Text: "the peer did not end the connection in time", Err: hw.ErrTimeout}
	}
	return tcpCause(err)
}

// abandoned turns a peer's end that looks orderly into what it is when work is
// outstanding: a peer whose process died. One of our own kind says when it is none
// (see farewell), and another's program that leaves in the middle of our work breaks
// the connection, too. The token's holder calls it.
func (l *life) abandoned(why hw.Reason, cause *hw.Cause) (hw.Reason, *hw.Cause) {
	x, n := &l.rx, l.sq.Tail.Load()-l.tx.head
	if why != hw.ReasonPeer || x.farewell || n == 0 && !x.open && !x.writing {
		return why, cause
	}
	text := "the peer closed the connection in the middle of its message"
	if n > 0 {
		text = fmt.Sprintf("the peer closed the connection with %d requests to it outstanding", n)
	}
	return hw.ReasonBroken, &hw.Cause{Layer: hw.LayerTCP, Text: text, Err: io.ErrUnexpectedEOF, Found: hw.SidePeer}
}

// addressed is the cause with the addresses of the connection, if there is one.
func (l *life) addressed(c *hw.Cause) *hw.Cause {
	l.mu.Lock()
	conn := l.conn
	l.mu.Unlock()
	if conn == nil {
		return c
	}
	return c.Between(conn.LocalAddr(), conn.RemoteAddr())
}

// An end of our own kind says farewell before it leaves in order: by a write of no
// octets to an offset that nobody uses, which has no effect on any peer. Without one,
// the end of its stream while work is outstanding is that of a process that died.
const farewellTO = 0x676f6f6462796521 // "goodbye!"

// farewell is its ULPDU.
func farewell() []byte {
	h := wire.Header{Opcode: wire.OpWrite, STag: rtrSTag, TO: farewellTO, Last: true}
	return h.Append(nil)
}
