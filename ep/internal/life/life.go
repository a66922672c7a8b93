package life

import (
	"time"

	"godat/hw"
	"godat/hw/event"
)

// Life is what one connection, or attempt at one, comes to beyond its state: posters read the state, so their mailbox
// has it. The zero value is that of an endpoint that was just made. One goroutine at a time asks it.
type Life struct {
	places  int          // for events, reserved for this connection
	outcome event.Number // how it ended; 0 before that, and once the end is announced
	private []byte       // private data of the outcome
	over    bool         // the end is announced, or is not to be
}

// Places is how many events a connection may have, the outcome of the attempt and the end. Who connects or accepts
// reserves as many before.
const Places = 2

// Detail is what comes with an input.
type Detail struct {
	Why     hw.Reason     // of InRefused and InDown
	Private []byte        // the peer's private data, of InEstablished and InRefused; it is for the end that has asked
	Err     error         // of InFailure
	Limit   time.Duration // how long what begins with InConnect or InGraceful may take; 0: no bound
}

// Effects are what is to be done after an input, in this order. What is zero is not to be done.
type Effects struct {
	State   State // the next one, or the same
	Moved   bool  // it is the next one: whoever reads the state sees it from here on
	Refused bool  // INVALID_STATE

	GaveUp bool          // the program gave up a connection, or an attempt at one, whose end is not announced
	Alarm  time.Duration // when to ring, if Moved; 0: never
	Cause  *hw.Cause     // why the connection ends, unless the provider has said so

	Event   event.Number // to announce now; 0: nothing
	Deliver bool         // there is a place for the event
	Private []byte       // the peer's, with the event or with the cause
	Passive bool         // of ESTABLISHED: this end accepted

	Line    Line
	Release int  // places to give back
	Over    bool // the end is announced, or is not to be: nobody waits for it any more
}

// Line is what the way of posts is to do.
type Line uint8

// What it may be told.
const (
	Stay       Line = iota
	LetThrough      // completions that waited for ESTABLISHED
	Drain           // run the requests to completion
	EndOrderly      // flush all, and tell the peer
	Abort           // flush all
)

// Over reports whether the end is announced, or is not to be: a Reset waits for it.
func (l *Life) Over() bool { return l.over }

// Answer says what an input does in a state. What follows depends on the next state; its event and its cause on the
// input, too.
func (l *Life) Answer(s State, in Input, d Detail) Effects {
	next := transitions[s][in]
	if next < firstEdge {
		return Effects{State: s, Refused: next == refuse}
	}
	fx := Effects{State: State(next - firstEdge), Moved: true}
	switch fx.State {
	case ActiveConnectionPending, CompletionPending:
		l.places = Places
		fx.Alarm = attemptTime(d.Limit)
	case Connected:
		fx.Event, fx.Passive, fx.Line = event.Established, s == CompletionPending, LetThrough
		if !fx.Passive {
			fx.Private = d.Private
		}
		fx.Deliver = l.takePlace()
	case DisconnectPending:
		fx.Alarm, fx.Line = d.Limit, Drain
	case Disconnected:
		var how event.Number
		how, fx.Cause = outcome(s, in, d)
		if in == InRefused && s != CompletionPending {
			fx.Private = d.Private
		}
		l.outcome, l.private = how, fx.Private
		fx.Line = EndOrderly
		if how == event.Broken {
			fx.Line = Abort
		}
	case Closed:
		fx.GaveUp, fx.Line = s.underWay(), EndOrderly
	case Unconnected:
		if in == InReset {
			*l = Life{}
		}
	default: // Reserved and its like: nothing follows
	}
	return fx
}

// Flushed says what to do when all that was posted before the end is flushed: it announces the end, the last event
// of a connection. A closed endpoint announces none.
func (l *Life) Flushed(s State) Effects {
	fx := Effects{State: s, Over: !l.over}
	if s != Closed && l.outcome != 0 {
		fx.Event, fx.Private = l.outcome, l.private
		fx.Deliver = l.takePlace()
	}
	fx.Release = l.places
	l.outcome, l.places, l.over = 0, 0, true
	return fx
}

// takePlace takes a place, if there is one. A device may fail an endpoint that never began to connect.
func (l *Life) takePlace() bool {
	if l.places == 0 {
		return false
	}
	l.places--
	return true
}
