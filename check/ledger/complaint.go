package ledger

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Kind says what is wrong.
type Kind uint8

// The kinds of complaints.
const (
	Lost       Kind = iota + 1 // an accepted post did not complete
	Twice                      // a post completed twice, or a message arrived twice
	Stranger                   // a cookie that nobody has posted, of an event or in a message
	Refused                    // a post completed that was refused
	Unasked                    // a suppressed post reported success
	Disorder                   // completions, or messages, in the wrong order
	Mismatch                   // the wrong endpoint, operation or length
	Misplaced                  // an event at the wrong place, or on the wrong side of a connection event
	Causeless                  // a failure without a cause, or with the wrong one
	Resurgence                 // a success after a failure
	Connection                 // a connection event too many, too few, or of the wrong kind
	Code                       // a call returned what it must not
	Leak                       // something is left over
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

// Complaint is one thing that the books find wrong.
type Complaint struct {
	Kind Kind
	Text string
}

func (c Complaint) String() string { return c.Kind.String() + ": " + c.Text }

// complaintsKept bounds what one run collects: what follows the first few is
// mostly their consequence.
const complaintsKept = 32

// complaints collects what is wrong.
type complaints struct {
	hear func(Complaint)

	any    atomic.Bool
	fallen atomic.Bool // the adapters are being closed under everybody
	mu     sync.Mutex
	list   []Complaint
	more   int
}

// complain adds a complaint. When the adapters are closed under everybody, calls
// fail, connections end, and what should happen does not.
func (cs *complaints) complain(k Kind, format string, args ...any) {
	if cs.fallen.Load() && (k == Code || k == Connection || k == Causeless || k == Stuck) {
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
	if cs.hear != nil {
		cs.hear(c)
	}
}

// accuse is complain for what an audit finds, which finds nothing any more when the
// adapters are closed under everybody: events are lost with their dispatchers.
func (cs *complaints) accuse(k Kind, format string, args ...any) {
	if !cs.fallen.Load() {
		cs.complain(k, format, args...)
	}
}

// all are the complaints so far.
func (cs *complaints) all() []Complaint {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	list := append([]Complaint(nil), cs.list...)
	if cs.more > 0 {
		list = append(list, Complaint{Kind: list[len(list)-1].Kind, Text: fmt.Sprintf("and %d more", cs.more)})
	}
	return list
}
