package loop

import (
	"godat/hw"
	"godat/hw/internal/soft"
	"godat/internal/yield"
)

// couple makes the pipes between two connections, unless one is not in the phase from any more, and
// calls tell, which may be nil, while this goroutine holds both pipes: until then nothing
// completes on them, and neither side hears that it is down.
func couple(a, b *connection, from soft.Phase, tell func(ab, ba *pipe)) bool {
	ab, ba := newPipe(a, b), newPipe(b, a)
	ab.reverse, ba.reverse = ba, ab
	if !a.install(b, ab, ba, from) {
		return false
	}
	yield.Point()
	if tell != nil {
		tell(ab, ba)
	}
	ab.goOn()
	ba.goOn()
	return true
}

// join connects a, which asked, with b, which answers, and reports Established to
// both. It returns false if a has gone. b's phase is connecting, and stays so if join
// returns false.
func join(a, b *connection, private []byte) bool {
	in, out := min(a.qp.Cfg.ReadsIn, b.qp.Cfg.ReadsOut), min(a.qp.Cfg.ReadsOut, b.qp.Cfg.ReadsIn)
	return couple(a, b, soft.Connecting, func(ab, ba *pipe) {
		if ab.attention.Load()&srcClosed == 0 {
			a.facts.Established(hw.ConnInfo{Local: a.local, Remote: b.local, ReadsIn: in, ReadsOut: out, Private: private})
		}
		if ba.attention.Load()&srcClosed == 0 {
			b.facts.Established(hw.ConnInfo{Local: b.local, Remote: a.local, ReadsIn: out, ReadsOut: in})
		}
	})
}

// install makes the pipes known to the queue pairs, unless a side is not in the phase from
// any more. Two ends that pair at the same time call it with the same one first, so they take
// the two locks in one order; of two that join, one calls it.
func (c *connection) install(b *connection, ab, ba *pipe, from soft.Phase) bool {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	// The owner of a side that answers is in Accept and makes no other call. If the provider
	// reports something to it before Accept returns, it finds the pipes.
	b.Mu.Lock()
	defer b.Mu.Unlock()
	if c.Phase != from || b.Phase != from {
		return false
	}
	c.Phase, b.Phase = soft.Connected, soft.Connected
	if c.draining {
		ab.attention.Or(draining)
	}
	if b.draining {
		ba.attention.Or(draining)
	}
	c.qp.out.Store(ab)
	c.qp.in.Store(ba)
	b.qp.out.Store(ba)
	b.qp.in.Store(ab)
	return true
}
