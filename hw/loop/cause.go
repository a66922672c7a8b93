package loop

import (
	"fmt"

	"godat/hw"
)

// causes say why a pipe failed, as each side sees it. The pipe's holder writes them
// before it sets ownFailed; a goroutine that has seen ownFailed may read them.
type causes struct {
	source, target *hw.Cause
}

// causesOf makes the two causes of a failed operation.
func (p *pipe) causesOf(f failed) causes {
	src := &hw.Cause{
		Code: int(f.status), Text: fmt.Sprintf("%v ended with %v", f.op, f.status), Err: f.status.Err(),
		Local: p.from.local, Remote: p.to.local,
	}
	dst := &hw.Cause{
		Code: int(f.status), Text: fmt.Sprintf("the peer's %v ended with %v", f.op, f.status), Err: f.status.Err(),
		Local: p.to.local, Remote: p.from.local,
	}
	if f.received != hw.StatusSuccess {
		src.Text += fmt.Sprintf(", and its receive with %v", f.received)
		dst.Code, dst.Err = int(f.received), f.received.Err()
		dst.Text = fmt.Sprintf("%v of the peer's %v ended with %v", hw.OpRecv, f.op, f.received)
	}
	switch f.status {
	case hw.StatusRemoteAccess, hw.StatusRemoteResponder:
		src.Found = hw.SidePeer
	default:
		dst.Found = hw.SidePeer
	}
	return causes{src, dst}
}

// cause is the cause that Down reports to the source; why is the attention word.
func (p *pipe) cause(why uint32) *hw.Cause {
	switch {
	case why&ownFailed != 0:
		return p.causes.source
	case p.reverse.attention.Load()&ownFailed != 0:
		return p.reverse.causes.target
	case reason(why) == hw.ReasonBroken:
		return &hw.Cause{Text: "the peer broke the connection", Found: hw.SidePeer, Local: p.from.local, Remote: p.to.local}
	}
	return nil
}

// refusal is the cause of an attempt that failed at the side with address at.
func (c *connection) refusal(at address, text string) *hw.Cause {
	return &hw.Cause{Text: text, Found: hw.SidePeer, Local: c.local, Remote: at}
}
