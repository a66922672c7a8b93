package posts

import (
	"fmt"
	"sync/atomic"
)

// Kind is the kind of a complaint.
type Kind uint8

// The kinds of complaints.
const (
	Lost       Kind = iota + 1 // an accepted post did not complete
	Twice                      // a post completed twice, or a message arrived twice
	Stranger                   // an event or a message has a cookie that nobody posted
	Refused                    // a post completed that was refused
	Unasked                    // a suppressed post reported success
	Disorder                   // completions, or messages, in the wrong order
	Mismatch                   // the event has the wrong endpoint, operation or length
	Misplaced                  // an event came to the wrong place, or on the wrong side of a connection event
	Causeless                  // a failure without a cause, or with the wrong one
	Resurgence                 // a success after a failure
	Connection                 // a connection event too many, too few, or of the wrong kind
	Code                       // a call returned what it must not
	Leak                       // something is left when everything is closed
	Stuck                      // something that must happen did not
	Alarm                      // an asynchronous error
)

var kindText = [...]string{
	Lost: "lost", Twice: "twice", Stranger: "stranger", Refused: "refused", Unasked: "unasked", Disorder: "disorder",
	Mismatch: "mismatch", Misplaced: "misplaced", Causeless: "causeless", Resurgence: "resurgence",
	Connection: "connection", Code: "code", Leak: "leak", Stuck: "stuck", Alarm: "alarm",
}

func (k Kind) String() string {
	if int(k) < len(kindText) && kindText[k] != "" {
		return kindText[k]
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

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
