package posts

import "sync/atomic"

// Kind is the kind of a complaint.
type Kind string

// The kinds of complaints.
const (
	Lost       Kind = "lost"       // an accepted post did not complete
	Twice      Kind = "twice"      // a post completed twice, or a message arrived twice
	Stranger   Kind = "stranger"   // an event or a message has a cookie that nobody posted
	Refused    Kind = "refused"    // a post completed that was refused
	Unasked    Kind = "unasked"    // a suppressed post reported success
	Disorder   Kind = "disorder"   // completions, or messages, in the wrong order
	Mismatch   Kind = "mismatch"   // the event has the wrong endpoint, operation or length
	Misplaced  Kind = "misplaced"  // an event came to the wrong place, or on the wrong side of a connection event
	Causeless  Kind = "causeless"  // a failure without a cause, or with the wrong one
	Resurgence Kind = "resurgence" // a success after a failure
	Connection Kind = "connection" // a connection event too many, too few, or of the wrong kind
	Code       Kind = "code"       // a call returned what it must not
	Leak       Kind = "leak"       // something is left when everything is closed
	Stuck      Kind = "stuck"      // something that must happen did not
	Alarm      Kind = "alarm"      // an asynchronous error
)

// complaintsKept bounds the complaints that one run tells: those after the first
// few are mostly consequences.
const complaintsKept = 32

// complaints tells the world of complaints.
type complaints struct {
	wrong           func(format string, args ...any) // of the world
	any             atomic.Bool
	said            atomic.Int64
	closingAbruptly atomic.Bool // the program is closing the adapters under all links
}

// complain tells of a complaint. Once the program closes the adapters under all links,
// it drops those of the kinds Code, Connection, Causeless and Stuck: calls fail
// then, connections end, and what should happen does not.
func (cs *complaints) complain(k Kind, format string, args ...any) {
	if cs.closingAbruptly.Load() && (k == Code || k == Connection || k == Causeless || k == Stuck) {
		return
	}
	cs.any.Store(true)
	if cs.said.Add(1) <= complaintsKept {
		cs.wrong("%v: "+format, append([]any{k}, args...)...)
	}
}

// accuse tells of a complaint of an audit. Once the program closes the adapters under
// all links, it drops them all: events are lost with their dispatchers.
func (cs *complaints) accuse(k Kind, format string, args ...any) {
	if !cs.closingAbruptly.Load() {
		cs.complain(k, format, args...)
	}
}
