package ep

import (
	"sync"

	"godat/ep/internal/life"
	"godat/ep/internal/line"
	"godat/hw"
)

// control is a call that changes the state. The token's holder executes it in its
// step and closes done; the caller waits for that without the token.
type control struct {
	op   string
	in   life.Input
	done chan struct{}
	err  error

	mod     *modification    // InModify
	connect hw.ConnectConfig // InConnect
	peer    hw.PairAddr      // InPair; of InPairAddr the result
	accept  *acceptance      // InAccept, InAcceptOwn
}

// acceptance is the answer to a connection request.
type acceptance struct {
	request hw.Request
	private []byte
	asks    func() // the provider is about to be asked to accept, whether it succeeds or not
}

// controls are the calls that change an endpoint's state. Each holds the lock from beginning
// to end.
type controls struct {
	box *line.Mailbox // immutable
	sync.Mutex
	pending *control // under the lock; read by the machine

	over sync.WaitGroup // of the end of the connection, as life.Life.Over says; only a holder of the lock waits

	reach reach

	// Under the lock.
	freed    bool
	owed     []owed
	cqs      cqs            // of a polled device; the token's holder writes it
	replaced []modification // whose old parts are not given back yet; one that failed stands here the other way round
}

// reach is the way to the queue pair for calls that any goroutine may make at any time, also from a function that gets
// events: a control call may hold the controls' lock and wait for that function. What a holder of reach does waits
// for nothing. The queue pair is replaced and reset under it.
type reach struct {
	sync.Mutex
	gone bool // the queue pair is closed, or about to be
}

// end waits for the calls under way, and lets no more through.
func (r *reach) end() {
	r.Lock()
	r.gone = true
	r.Unlock()
}

// queuePair returns the queue pair; nil if there is none. The caller holds reach.
func (ctl *controls) queuePair() hw.QP {
	if ctl.reach.gone {
		return nil
	}
	return ctl.box.QP()
}

func (ctl *controls) init(box *line.Mailbox) {
	ctl.box = box
	ctl.over.Add(1)
}

// do passes c to the token's holder and waits until it is executed. The caller holds the lock.
func (ctl *controls) do(c *control) error {
	c.done = make(chan struct{})
	ctl.pending = c
	ctl.box.Tell(line.TellControl)
	<-c.done
	return c.err
}

// change executes a control call that does nothing but move the state by in.
func (ctl *controls) change(op string, in life.Input) error {
	ctl.Lock()
	defer ctl.Unlock()
	return ctl.do(&control{op: op, in: in})
}

// releaseOwed detaches the owed dispatchers, whose receives have completed. The caller holds the lock.
func (ctl *controls) releaseOwed() {
	for _, o := range ctl.owed {
		wiring(o.to).Feeds().Detach(o.feed())
	}
	ctl.owed = nil
}
