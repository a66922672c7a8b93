package ledger

import (
	"errors"
	"runtime"

	"godat/hw"
	dat "godat/runtime"
)

// victim is a region on Go's heap that is freed while posts use it.
type victim struct {
	account *account
	region  *region
	yields  int
}

// isDead reports whether err says that a region was freed.
func isDead(err error) bool {
	return errors.Is(err, &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandleLMR})
}

// free frees the region after some yields.
func (v *victim) free() {
	for range v.yields {
		runtime.Gosched()
	}
	if err := v.region.lmr.Free(); err != nil {
		v.account.w.complain(Code, "%v: freeing memory under traffic: %v", v.account, err)
	}
}

// useVictim posts a send from the victim (own) or a write to it, and reports
// whether the poster may go on.
func (p *poster) useVictim(v *victim, own bool) bool {
	if !p.makeRoom() {
		return false
	}
	e := p.fillLoud(dat.OpSend)
	off := p.rng.IntN(victimSize/2 - maxMessage)
	if !own {
		e.op, e.flags = dat.OpWrite, e.flags&^dat.SolicitedWait
		to := v.region.lmr.Remote(off, int(e.length))
		return p.submit(func() error {
			return p.account.ep.PostRDMAWrite(e.cookie, e.flags, to, p.account.out.segments(e.local, nil)...)
		}) <= busy
	}
	// This send is shorter than a header, since its bytes are not the message of its
	// cookie. It reads the half of the victim to which the peer does not write, since
	// nothing orders the two.
	e.length = min(e.length, headerSize-1)
	p.begin(1)
	err := p.account.ep.PostSend(e.cookie, e.flags, v.region.lmr.Segment(victimSize/2+off, int(e.length)))
	if isDead(err) {
		p.returned(1, 0)
		return true
	}
	return p.judge(1, accepts(err), err) <= busy
}
