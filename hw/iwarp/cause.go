package iwarp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// termCause is the cause of a Terminate, in the words of the layer that found the error.
func termCause(code wire.TermCode, found hw.Side) *hw.Cause {
	layer := cmp.Or(map[wire.Layer]hw.Layer{wire.LayerRDMAP: hw.LayerRDMAP, wire.LayerDDP: hw.LayerDDP}[code.Layer()], hw.LayerMPA)
	return &hw.Cause{Layer: layer, Code: int(code), Text: code.Text(), Found: found}
}

// faultCause is the cause of an error that this end found in what the peer sent.
func faultCause(e *wire.Error) *hw.Cause {
	c := termCause(e.Term, hw.SideLocal)
	c.Text, c.Err = strings.TrimPrefix(strings.TrimPrefix(e.Error(), "iwarp: "), c.Layer.String()+": "), e
	return c
}

// statusCause is the cause of an operation that failed at this end, by no fault of the peer.
func statusCause(op hw.Op, status hw.Status) *hw.Cause {
	return &hw.Cause{Code: int(status), Text: fmt.Sprintf("%v ended with %v", op, status), Err: status.Err()}
}

// causeOf is the cause of an error that this end found in what the peer sent. If the memory
// of an operation of this end was gone, the cause names the operation: the peer did nothing
// wrong.
func (p *placer) causeOf(e *wire.Error) *hw.Cause {
	p.own.Check()
	switch {
	case e != wire.ErrRDMAPLocal:
	case p.verdict.read != 0:
		return statusCause(p.link.reads.op(p.verdict.read), p.verdict.status)
	case p.failed != hw.StatusSuccess:
		return statusCause(hw.OpRecv, p.failed)
	}
	return faultCause(e)
}

// tcpCause is the cause of an error of the underlying connection. This end found it, also
// when the peer's system refused or reset the connection: no peer said why. The cause never
// matches io.EOF, by which a program's read tells it of an orderly end.
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
	case errors.Is(err, net.ErrClosed):
		c.Text = "this program itself has closed the socket under the connection: look at what made it for iwarp.Config, and who else has it"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		c.Text, c.Err = "the peer closed the connection in the middle of something", io.ErrUnexpectedEOF
	case isScarce(err):
		c.Text += " (ulimit -n)"
	}
	return c
}

// attemptCause is the cause of an attempt to connect that failed, or that lost its
// initiator.
func attemptCause(err error) *hw.Cause {
	var fault *wire.Error
	var other *otherServer
	var hook *hookError
	switch {
	case errors.As(err, &hook):
		return hookCause(hook)
	case errors.As(err, &other):
		return &hw.Cause{Layer: hw.LayerMPA, Code: int(wire.ErrMPAKey.Term), Text: other.Error(), Err: other.err, Found: hw.SideLocal}
	case errors.As(err, &fault):
		return faultCause(fault)
	case errors.Is(err, io.EOF):
		return &hw.Cause{Layer: hw.LayerTCP, Text: "the peer hung up before the connection was up", Err: errors.Join(errHungUp, io.ErrUnexpectedEOF)}
	case isTimeout(err) || errors.Is(err, hw.ErrTimeout):
		return &hw.Cause{Layer: hw.LayerMPA, Text: "the peer did not answer in time", Err: hw.ErrTimeout}
	}
	return tcpCause(err)
}

// dialCause is attemptCause for the initiator. If a listener hung up, the text says what this end saw, and what
// that means; [Config.Dial] and SECURITY.md have the reasons that the listener's page tells.
func dialCause(err error) *hw.Cause {
	c := attemptCause(err)
	if hung := (*hangUp)(nil); errors.As(err, &hung) {
		c.Text = hung.says
	}
	return c
}

// hangUp is the error of a listener that ended the stream, or reset it, in place of an answer.
type hangUp struct {
	err  error
	says string // what was seen, and what that means
}

func (h *hangUp) Error() string { return h.err.Error() }
func (h *hangUp) Unwrap() error { return h.err }

// howHungUp is err, with what it says of the listener of conn if that hung up in place of its answer; conn is nil if the
// program's Config.Dial had not returned it.
func howHungUp(conn net.Conn, err error) error {
	did := "hung up"
	switch {
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		did = "reset the connection"
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	}
	says := "the listener " + did
	switch {
	case conn == nil:
		says = "the listener ended the handshake of this end's iwarp.Config.Dial (TLS, as a rule): it has no TLS, or is closing or full: its page tells"
	case speaksTLS(conn):
		says += " behind the start-up of TLS, before it answered: it speaks no iWARP, or is closing or full: its page tells"
	default:
		says += " before it answered: it is closing or full, or wants TLS, which this end did not begin: its page tells"
	}
	return &hangUp{err, says}
}

// speaksTLS reports whether a connection is one of TLS, perhaps in a wrapper.
func speaksTLS(conn net.Conn) bool {
	for {
		switch c := conn.(type) {
		case interface{ HandshakeContext(context.Context) error }:
			return true
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return false
		}
	}
}

// behind is the cause of an attempt that failed with err. If first is not nil, it is why
// the first request failed, and err is of the second one, with MPA's revision 1.
func behind(first *hw.Cause, err error) *hw.Cause {
	if first == nil {
		return dialCause(err)
	}
	second := attemptCause(err)
	if errors.As(err, new(*hangUp)) {
		second.Text = first.Text
	} else {
		second.Text = fmt.Sprintf("%s; asked again with MPA revision 1: %s", first.Text, second.Text)
	}
	second.Err = errors.Join(second.Err, first.Err)
	return second
}

// howFar says in the cause of an attempt that ran out of time how far it had come.
func (c *connection) howFar(cause *hw.Cause) *hw.Cause {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	switch {
	case !errors.Is(cause, hw.ErrTimeout):
	case c.conn == nil:
		cause.Text += " (TCP is not connected: its host is down, or something between drops what goes there)"
	case c.heard == isLost:
		cause.Text += " (TCP was connected, and now nothing is acknowledged: the network between is cut, or its host is down)"
	default:
		cause.Text += " (TCP is connected: its program has not accepted, is stopped, or speaks another protocol)"
	}
	return cause
}

// rejection is the cause of an attempt that the peer rejected.
func rejection(text string) *hw.Cause {
	return &hw.Cause{Layer: hw.LayerMPA, Text: text, Found: hw.SidePeer}
}

// readCause is the cause of a read that failed, when the peer has not ended its stream
// in order.
func (r *reader) readCause(err error) *hw.Cause {
	r.own.Check()
	r.link.Mu.Lock()
	sent, stalled := r.link.sendErr, r.link.stalls.stalled
	r.link.Mu.Unlock()
	switch {
	case sent != nil && expired(sent):
		return &hw.Cause{Layer: hw.LayerTCP, Text: "the peer took nothing for " + span(stalled), Err: hw.ErrTimeout}
	case sent != nil && expired(err):
		return tcpCause(sent)
	case expired(err) && r.hurried:
		return &hw.Cause{Layer: hw.LayerMPA, Text: fmt.Sprintf("the rest of an FPDU did not come in %s: the peer began a message and did not finish it", span(r.rest.silence())), Err: hw.ErrTimeout}
	case expired(err):
		return &hw.Cause{Layer: hw.LayerTCP, Text: "the peer did not end the connection in time", Err: hw.ErrTimeout}
	}
	return tcpCause(err)
}

// farewellTO is the offset of a farewell: a write of no octets to an offset without a meaning, which
// has no effect on any peer. See orBroken.
const farewellTO = 0x676f6f6462796521 // "goodbye!"

// farewell is the ULPDU of a farewell.
func farewell() []byte {
	h := wire.Header{Opcode: wire.OpWrite, STag: rtrSTag, TO: farewellTO, Last: true}
	return h.Append(nil)
}
