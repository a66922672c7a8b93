package ledger

import (
	"errors"
	"runtime"

	"godat/hw"
	dat "godat/runtime"
)

// victim is a region of Go's memory that is freed while it is used.
type victim struct {
	account *account
	region  *region
	yields  int
	done    chan struct{} // closed when Free has returned
}

// isDead reports whether err says that a region was freed.
func isDead(err error) bool {
	return errors.Is(err, &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandleLMR})
}

// run frees the region after a while.
func (v *victim) run() {
	defer close(v.done)
	for range v.yields {
		runtime.Gosched()
	}
	if err := v.region.lmr.Free(); err != nil {
		v.account.w.complain(Code, "%v: freeing memory under traffic: %v", v.account, err)
	}
}

// useVictim posts a send from the victim, or a write to it, and reports whether
// that could be posted.
func (p *poster) useVictim(v *victim, own bool) bool {
	if !p.makeRoom() {
		return false
	}
	e := p.fillSend(0, true)
	n := int(e.length)
	off := p.rng.IntN(victimSize/2 - maxMessage)
	var err error
	if own {
		// What is sent is not the message of its cookie, and so too short to be one.
		// It is not from where the peer writes, for nobody orders the two.
		off += victimSize / 2
		n = min(n, headerSize-1)
		e.length = uint32(n)
		p.begin(1)
		err = p.account.ep.PostSend(e.cookie, e.flags, v.region.lmr.Segment(off, n))
	} else {
		e.op, e.flags = dat.OpWrite, e.flags&^dat.SolicitedWait
		p.begin(1)
		err = p.account.ep.PostRDMAWrite(e.cookie, e.flags, v.region.lmr.Remote(off, n), p.account.out.segments(e.local, nil)...)
	}
	if own && isDead(err) {
		p.returned(1, 0)
		return true
	}
	said := p.judge(1, accepts(err), err)
	return said == took || said == busy
}
