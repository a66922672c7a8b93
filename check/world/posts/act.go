package posts

import (
	"godat/ep"
	"godat/hw"
	"godat/mem"
)

// acts are the operations of a poster, weighted in percent.
var acts = [...]struct {
	weight int
	do     func(*poster)
}{
	{44, func(p *poster) { p.single(hw.OpSend) }},
	{22, func(p *poster) { p.single(hw.OpWrite) }},
	{17, func(p *poster) { p.single(hw.OpRead) }},
	{12, (*poster).several},
	{4, (*poster).byShot},
	{1, (*poster).still},
}

// act does one operation, chosen by weight.
func (p *poster) act() {
	x := p.rng.IntN(100)
	for _, a := range acts {
		if x -= a.weight; x < 0 {
			a.do(p)
			return
		}
	}
}

// flags chooses the flags of the k-th entry after next. The entry that fills the
// window is neither suppressed nor UNSIGNALLED, so that the poster has an event to
// wait for.
func (p *poster) flags(op hw.Op, k int) (f hw.Flags) {
	x := p.rng.Uint32()
	last := p.page.outstanding()+k+1 >= p.page.window
	if !last && x%4 == 0 {
		f |= hw.Suppress
	}
	if !last && p.account.kind == silent && x>>8%2 == 0 {
		f |= hw.Unsignalled
	}
	if x>>16%8 == 0 {
		f |= hw.BarrierFence
	}
	if op == hw.OpSend {
		if p.unasked++; p.unasked >= solicitEvery || x>>24%8 == 0 {
			f |= hw.SolicitedWait
			p.unasked = 0
		}
	}
	return f
}

// size chooses the length of a message.
func (p *poster) size() int {
	switch x := p.rng.IntN(100); {
	case x < 4:
		return 0
	case x < 8:
		return 1 + p.rng.IntN(headerSize-1)
	case x < 70:
		return headerSize + p.rng.IntN(120)
	case x < 95:
		return headerSize + p.rng.IntN(504)
	}
	return maxMessage
}

// local lays out n bytes in the slot of the k-th entry after next.
func (p *poster) local(k, n int) span { return cut(p.rng, p.page.slotAt(p.page.slot(k)), n) }

// fill fills in the k-th entry after next. A write goes to, and a read comes from, the
// same slot of the peer. The local segments of a read may be longer than the read.
func (p *poster) fill(op hw.Op, k int) *entry {
	e := p.page.label(k, p.page.choosePlace(p.rng), untagged|uint8(p.rng.Uint32()))
	n := p.size()
	e.op, e.flags, e.length = op, p.flags(op, k), uint32(n)
	if op == hw.OpRead {
		n = min(maxMessage, n+p.rng.IntN(2)*p.rng.IntN(64))
	}
	e.local, e.remote = p.local(k, n), uint32(p.page.slotAt(p.page.slot(k)))
	if op == hw.OpSend {
		p.account.out.address(e)
	}
	return e
}

// fillLoud fills in the next entry, neither suppressed nor UNSIGNALLED.
func (p *poster) fillLoud(op hw.Op) *entry {
	e := p.fill(op, 0)
	e.flags &^= hw.Suppress | hw.Unsignalled
	return e
}

// segmentsOf returns the segments of an entry's local memory.
func (p *poster) segmentsOf(e *entry) []mem.Segment {
	at := len(p.segments)
	p.segments = p.account.out.segments(e.local, p.segments)
	return p.segments[at:]
}

// remoteOf returns the segment of the peer's memory that the entry reads or writes.
// A write may be up to 7 bytes shorter than its remote segment.
func (p *poster) remoteOf(e *entry) mem.RemoteSegment {
	n := int(e.length)
	if e.op != hw.OpRead {
		n += n & 7
	}
	return p.peer.in.lmr.Remote(int(e.remote), n)
}

// submit begins the next entry, which is filled in, posts it, and judges the result.
func (p *poster) submit(post func() error) verdict {
	p.page.begin(1)
	err := post()
	return p.judge(1, accepts(err), err)
}

// accepts is how many posts a single post accepted, by its error.
func accepts(err error) int {
	if err != nil {
		return 0
	}
	return 1
}

// post posts the next entry, which is filled in.
func (p *poster) post() verdict {
	e, ep := p.page.next(), p.account.ep
	p.segments = p.segments[:0]
	segs := p.segmentsOf(e)
	return p.submit(func() error {
		switch e.op {
		case hw.OpSend:
			return ep.PostSend(e.cookie, e.flags, segs...)
		case hw.OpWrite:
			return ep.PostRDMAWrite(e.cookie, e.flags, p.remoteOf(e), segs...)
		default:
			return ep.PostRDMARead(e.cookie, e.flags, p.remoteOf(e), segs...)
		}
	})
}

// single posts one request of a kind.
func (p *poster) single(op hw.Op) {
	p.fill(op, 0)
	p.post()
}

// room is how many entries still fit into the window.
func (p *poster) room() int { return p.page.window - p.page.outstanding() }

// several posts a batch of sends, writes and reads.
func (p *poster) several() {
	n := min(p.room(), 1+p.rng.IntN(mostBatch))
	p.batch, p.segments = p.batch[:0], p.segments[:0]
	for k := range n {
		e := p.fill([...]hw.Op{hw.OpSend, hw.OpSend, hw.OpWrite, hw.OpRead}[p.rng.IntN(4)], k)
		d := ep.DTO{Op: e.op, Flags: e.flags, Cookie: e.cookie, Segments: p.segmentsOf(e)}
		if e.op != hw.OpSend {
			d.Remote = p.remoteOf(e)
		}
		p.batch = append(p.batch, d)
	}
	p.page.begin(n)
	k, err := p.account.ep.PostBatch(p.batch)
	p.judge(n, k, err)
}

// byShot posts a request whose event goes to a one-shot. The poster waits for the
// event at once, polls for it later, or releases the one-shot unread.
func (p *poster) byShot() {
	if p.room() < 2 {
		p.single(hw.OpWrite) // the request that fills the window keeps its event at the usual place
		return
	}
	e := p.fillLoud([...]hw.Op{hw.OpWrite, hw.OpRead}[p.rng.IntN(2)])
	x := p.rng.IntN(10)
	e.place = atShot
	if x == 0 {
		e.place = nowhere
	}
	to := p.spare
	if p.spare = nil; to == nil {
		to = p.page.lane.dispatcher.disp.NewOneShot()
	}
	p.segments = p.segments[:0]
	p.batch = append(p.batch[:0], ep.DTO{
		Op: e.op, Flags: e.flags, Cookie: e.cookie, Segments: p.segmentsOf(e), Remote: p.remoteOf(e), OneShot: to,
	})
	p.page.begin(1)
	k, err := p.account.ep.PostBatch(p.batch)
	switch {
	case p.judge(1, k, err) != took || e.place == nowhere:
		to.Release()
	case x < 5:
		p.waitShot(to, e)
	default:
		p.page.shots = append(p.page.shots, shot{to, e})
	}
}
