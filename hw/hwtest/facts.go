package hwtest

import (
	"fmt"

	"godat/hw"
)

// facts implements [hw.Facts] for an end. It records the facts and their violations.
type facts struct{ end *end }

// Established implements [hw.Facts].
func (f facts) Established(info hw.ConnInfo) {
	f.record("Established", func(e *end) string {
		switch {
		case e.info != nil:
			return "Established twice"
		case e.refused != hw.ReasonNone || e.down != hw.ReasonNone:
			return "Established after Refused or Down"
		}
		e.info = &info
		return ""
	})
}

// Refused implements [hw.Facts].
func (f facts) Refused(why hw.Reason, private []byte, cause *hw.Cause) {
	f.record("Refused", func(e *end) string {
		switch {
		case e.info != nil || e.refused != hw.ReasonNone:
			return "Refused after Established or Refused"
		case why < hw.ReasonPeerRejected || why > hw.ReasonTimeout:
			return fmt.Sprintf("Refused(%v)", why)
		case badCause(cause):
			return fmt.Sprintf("Refused(%v) with the cause %v", why, cause)
		}
		e.refused, e.refusal, e.cause = why, private, cause
		return ""
	})
}

// Down implements [hw.Facts].
func (f facts) Down(why hw.Reason, cause *hw.Cause) {
	f.record("Down", func(e *end) string {
		switch {
		case e.info == nil:
			return "Down of what was never established"
		case e.down != hw.ReasonNone:
			return "Down twice"
		case why < hw.ReasonDrained:
			return fmt.Sprintf("Down(%v)", why)
		case why == hw.ReasonBroken && badCause(cause):
			return fmt.Sprintf("Down(%v) with the cause %v", why, cause)
		}
		e.down, e.cause = why, cause
		return ""
	})
}

// record notes a fact by calling note, which returns what the contract has against it.
func (f facts) record(name string, note func(*end) string) {
	e := f.end
	e.mu.Lock()
	if e.books[sendQueue].ended && e.books[recvQueue].ended {
		e.bad = append(e.bad, name+" after both queues ended")
	}
	if bad := note(e); bad != "" {
		e.bad = append(e.bad, bad)
	}
	e.mu.Unlock()
	e.cond.Broadcast()
	e.answers()
}
