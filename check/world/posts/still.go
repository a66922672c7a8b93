package posts

import (
	"sync"

	"godat/ep"
	"godat/hw"
	"godat/mem"
)

// longRead is how many bytes a long read reads: so many that an endpoint delivers its
// completion before the provider has handed out those that come together with it.
const longRead = 64 << 10

// still posts a long read and a send behind it, whose event goes to a one-shot, and then posts
// nothing until the event of the read has come: no later completion may be what brings it.
// Where the device can, the send invalidates a key of the peer.
func (p *poster) still() {
	if p.room() < 3 || p.account.w.cfg.Unreliable { // it would break many connections in the middle
		p.single(hw.OpRead)
		return
	}
	to := p.page.lane.dispatcher.disp.NewOneShot()
	p.batch, p.segments = p.batch[:0], p.segments[:0]
	read := p.fillLoud(hw.OpRead)
	read.length, read.remote = longRead, inSize
	read.local = span{off: outSize, len: longRead, pieces: 1}
	p.batch = append(p.batch, ep.DTO{
		Op: read.op, Flags: read.flags, Cookie: read.cookie, Segments: p.segmentsOf(read), Remote: p.remoteOf(read),
	})
	send := p.fill(hw.OpSend, 1)
	send.flags &^= hw.Suppress | hw.Unsignalled
	send.place = atShot
	d := ep.DTO{Op: send.op, Flags: send.flags, Cookie: send.cookie, Segments: p.segmentsOf(send), OneShot: to}
	if key := p.peer.expose(); key != 0 {
		send.invalidates = true
		d.Op, d.Immediate, d.Flags = hw.OpSendInvalidate, key, d.Flags&^hw.BarrierFence
	}
	p.batch = append(p.batch, d)
	p.page.begin(2)
	k, err := p.account.ep.PostBatch(p.batch)
	said := p.judge(2, k, err)
	if k < 2 {
		to.Release()
	} else {
		p.page.shots = append(p.page.shots, shot{to, send})
	}
	for said == took && read.isPending() && p.rest(nil) {
		p.page.poll()
		p.page.reclaim(false)
	}
}

// exposed is the memory of an endpoint whose keys its peer invalidates.
type exposed struct {
	mu  sync.Mutex
	all []*mem.LMR
}

// expose returns a new key to memory of the account, for the peer to invalidate; 0 if the
// device has no sends that do.
func (a *account) expose() (key uint32) {
	ops := a.home.ia.Attr().Ops
	if !ops.Has(hw.OpSendInvalidate) || !ops.Has(hw.OpRecvInvalidate) {
		return 0
	}
	m, err := a.home.pz.Register(make([]byte, 8), hw.LocalWrite|hw.RemoteWrite)
	if err != nil {
		return 0 // the adapter is being closed
	}
	a.exposed.mu.Lock()
	defer a.exposed.mu.Unlock()
	a.exposed.all = append(a.exposed.all, m)
	return m.RemoteContext()
}

// freeExposed frees the memory whose keys were invalidated, or were to be.
func (a *account) freeExposed() {
	a.exposed.mu.Lock()
	defer a.exposed.mu.Unlock()
	for _, m := range a.exposed.all {
		a.w.must(m.Free(), "%v: freeing memory whose key was invalidated", a)
	}
	a.exposed.all = nil
}
