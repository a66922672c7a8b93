package ledger

import (
	"fmt"
	"sync"
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

// Complaint is one breach that the books found.
type Complaint struct {
	Kind Kind
	Text string
}

func (c Complaint) String() string { return c.Kind.String() + ": " + c.Text }

// complaintsKept bounds the complaints that one run keeps: those after the first
// few are mostly consequences.
const complaintsKept = 32

// complaints collects the complaints of a run.
type complaints struct {
	onComplaint func(Complaint)

	any             atomic.Bool
	closingAbruptly atomic.Bool // the ledger is closing the adapters under all links
	mu              sync.Mutex
	list            []Complaint
	more            int
}

// complain adds a complaint. Once the ledger closes the adapters under all links,
// it drops those of the kinds Code, Connection, Causeless and Stuck: calls fail
// then, connections end, and what should happen does not.
func (cs *complaints) complain(k Kind, format string, args ...any) {
	if cs.closingAbruptly.Load() && (k == Code || k == Connection || k == Causeless || k == Stuck) {
		return
	}
	c := Complaint{Kind: k, Text: fmt.Sprintf(format, args...)}
	cs.any.Store(true)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if len(cs.list) < complaintsKept {
		cs.list = append(cs.list, c)
	} else {
		cs.more++
	}
	if cs.onComplaint != nil {
		cs.onComplaint(c)
	}
}

// accuse adds a complaint of an audit. Once the ledger closes the adapters under
// all links, it drops them all: events are lost with their dispatchers.
func (cs *complaints) accuse(k Kind, format string, args ...any) {
	if !cs.closingAbruptly.Load() {
		cs.complain(k, format, args...)
	}
}

// all returns the complaints so far.
func (cs *complaints) all() []Complaint {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	list := append([]Complaint(nil), cs.list...)
	if cs.more > 0 {
		list = append(list, Complaint{Kind: list[len(list)-1].Kind, Text: fmt.Sprintf("and %d more", cs.more)})
	}
	return list
}
