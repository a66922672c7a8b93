package hwtest

import "godat/hw"

// mark calls Mark of an end. It returns false if the queue pair is no [hw.Marker].
func mark(e *end) bool {
	qp, ok := e.qp.(hw.Marker)
	if !ok {
		return false
	}
	e.calls.Lock()
	defer e.calls.Unlock()
	b := &e.books[sendQueue]
	e.mu.Lock()
	e.host.rig.must.Zero(b.markID, "the mark before has not completed")
	id := e.id(sendQueue, idEnd-1)
	b.markID, b.markAfter = id, len(b.entries)
	e.mu.Unlock()
	e.host.rig.must.True(qp.Mark(id), "the connection is up")
	return true
}

// marked waits for the mark, and returns how many requests are accounted for.
func marked(e *end) (n int) {
	e.await("the mark", func() bool {
		n = e.books[sendQueue].head
		return e.books[sendQueue].markID == 0
	})
	return n
}

// marks relies on the books, which check what a mark may overtake.
func marks(r *rig) {
	a, b := r.pair(notReady(hourLong))
	src := r.a.mem(1<<20, hw.LocalRead)
	silent := hw.SendWR{Op: hw.OpSend, SGL: []hw.SGE{src.sge(0, 8)}}
	if !mark(a) {
		return
	}
	r.also.Zero(marked(a), "nothing was posted")
	posted := 0
	for round := range 50 {
		dst := r.b.mem(1<<20, hw.LocalWrite)
		for range 3 {
			b.recv(dst.all())
		}
		large := hw.SendWR{Op: hw.OpSend, SGL: []hw.SGE{src.all()}}
		a.post(silent, large, silent)
		if round%2 == 0 {
			b.received(posted + 2)
		}
		mark(a)
		posted += 3
		r.also.GreaterOrEqual(marked(a), posted)
	}
	if r.a.attr.NotReadyWait {
		a.post(silent)
		mark(a)
		behind := a.post(sendOf())
		a.mustWait(behind)
		a.mu.Lock()
		r.also.NotZero(a.books[sendQueue].markID, "the send before it waits for a receive")
		a.mu.Unlock()
		b.recv(r.b.mem(8, hw.LocalWrite).all())
		r.also.GreaterOrEqual(marked(a), posted+1)
		b.recv()
		a.sent(behind)
	}
	roundTrip(r, a, b)
}

// marksAtTheEnd relies on the books, which take nothing behind a queue's end.
func marksAtTheEnd(r *rig) {
	src, dst := r.a.mem(1<<20, hw.LocalRead), r.b.mem(1<<20, hw.LocalWrite)
	for range 20 {
		a, b := r.pair()
		for range 8 {
			b.recv(dst.all())
		}
		for range 8 {
			a.post(hw.SendWR{Op: hw.OpSend, SGL: []hw.SGE{src.all()}})
		}
		if !mark(a) {
			return
		}
		b.breakNow(true)
		a.over()
		b.over()
	}
}
