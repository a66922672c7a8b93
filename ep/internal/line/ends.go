package line

import "godat/hw"

// The calls by which the owner begins and ends connections of the queue pair. The token's holder makes them.

// BeginDetour has completions wait until EndDetour: the owner announces the connection first.
func (b *Mailbox) BeginDetour() {
	b.Requests.watched.Or(detour)
	b.Recvs.watched.Or(detour)
}

// EndDetour delivers what waited, and lets later completions through.
func (b *Mailbox) EndDetour() {
	b.Requests.endDetour()
	b.Recvs.endDetour()
}

// Break lets through the completions that wait, breaks the queue pair, and records the
// tails of both queues at that moment.
func (b *Mailbox) Break(orderly bool) {
	b.Token.Check()
	b.EndDetour()
	if b.qp == nil { // a service point made the endpoint, and it has no zone yet
		b.noteEnds(tellRequestEnd | tellRecvEnd)
		return
	}
	if !b.broke {
		b.broke = true
		b.noteTails()
		b.qp.Break(orderly)
	}
}

// noteTails records which posts are to be flushed before the end.
func (b *Mailbox) noteTails() {
	b.Token.Check()
	w := b.Token.Load()
	b.Requests.last, b.Recvs.last = b.Requests.tail(w), b.Recvs.tail(w)
}

// Flushed reports whether everything that had a ticket at Break has been flushed; then the owner is not
// told of the end again. A post that has returned may wait behind an earlier ticket, whose poster kicks the
// step when it has filled its slot.
//
// With seal it seals the mailbox, and reports whether all that has a ticket is flushed. A post that
// passed its check before the state changed may take a ticket until then, and its flush precedes the end.
func (b *Mailbox) Flushed(seal bool) bool {
	b.Token.Check()
	if seal {
		b.seal()
		b.noteTails()
	}
	if !b.Requests.reached(b.Requests.last) || !b.Recvs.reached(b.Recvs.last) {
		return false
	}
	b.bothEnded = false
	return true
}

// Renew forgets a connection whose queues have ended, when the queue pair was reset.
func (b *Mailbox) Renew() {
	b.Token.Check()
	b.Requests.ended, b.Recvs.ended = false, false
	b.broke, b.unsignaled = false, 0
	b.unreported.marking.Store(false)
	b.unseal()
}

// SetSolicitedOnly says whether receives notify only when solicited. Nothing can complete meanwhile.
func (q *Queue) SetSolicitedOnly(only bool) {
	if only {
		q.watched.Or(solicitedOnly)
	} else {
		q.watched.And(^solicitedOnly)
	}
}

// Op is the operation that the queue has most: hw.OpSend or hw.OpRecv.
func (q *Queue) Op() hw.Op { return q.plain }
