package loop

import (
	"fmt"

	"godat/hw"
)

// causes say why a pipe failed, as each side sees it. The pipe's holder writes them
// before the attention word says failed.
type causes struct {
	source, target *hw.Cause
}

// blame makes the causes of a request that failed with status. Where it has also
// failed a receive, that one's status is atReceiver.
func (p *pipe) blame(op hw.Op, status, atReceiver hw.Status) causes {
	src := &hw.Cause{
		Code: int(status), Text: fmt.Sprintf("%v ended with %v", op, status), Err: status.Err(),
		Local: p.from.local, Remote: p.to.local,
	}
	dst := &hw.Cause{
		Code: int(status), Text: fmt.Sprintf("the peer's %v ended with %v", op, status), Err: status.Err(),
		Local: p.to.local, Remote: p.from.local,
	}
	if atReceiver != hw.StatusSuccess {
		src.Text += fmt.Sprintf(", and its receive with %v", atReceiver)
		dst.Code, dst.Err = int(atReceiver), atReceiver.Err()
		dst.Text = fmt.Sprintf("%v of the peer's %v ended with %v", hw.OpRecv, op, atReceiver)
	}
	switch status {
	case hw.StatusRemoteAccess, hw.StatusRemoteResponder:
		src.Found = hw.SidePeer
	default:
		dst.Found = hw.SidePeer
	}
	return causes{src, dst}
}

// cause is what Down tells the source; why is the attention word.
func (p *pipe) cause(why uint32) *hw.Cause {
	switch {
	case why&failed != 0:
		return p.failure.source
	case p.reverse.attention.Load()&failed != 0:
		return p.reverse.failure.target
	case reason(why) == hw.ReasonBroken:
		return &hw.Cause{Text: "the peer broke the connection", Found: hw.SidePeer, Local: p.from.local, Remote: p.to.local}
	}
	return nil
}

// refusal is the cause of an attempt that the side at addr, or nobody there, refused.
func (l *life) refusal(addr Addr, text string) *hw.Cause {
	return &hw.Cause{Text: text, Found: hw.SidePeer, Local: l.local, Remote: addr}
}

// unknown is the cause of an attempt to reach a device that is not there.
func (l *life) unknown(addr Addr) *hw.Cause {
	return &hw.Cause{Text: "no device of that name is open in this process", Local: l.local, Remote: addr}
}
