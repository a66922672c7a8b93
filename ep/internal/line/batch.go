package line

import "godat/hw"

// PostBatch posts operations to one queue, in order, and returns how many it posted; err says why it did not
// post the next one.
func (b *Mailbox) PostBatch(q *Queue, dtos []Post) (n int, err error) {
	if len(dtos) == 1 && (q == &b.Recvs || dtos[0].Op <= hw.OpRead) {
		if err = b.postOne(q, &dtos[0]); err != nil {
			return 0, err
		}
		return 1, nil
	}
	for n < len(dtos) && err == nil {
		some := dtos[n:min(len(dtos), n+batchPosts)]
		if b.postRun(q, some) {
			n += len(some)
			continue
		}
		var took int
		took, err = b.postSome(q, some)
		n += took
	}
	return n, err
}

// postOne posts a batch of one: a receive, a send, a write or a read.
func (b *Mailbox) postOne(q *Queue, d *Post) error {
	op, remote, shot := d.Op, &d.Remote, d.OneShot
	if q == &b.Recvs {
		op = hw.OpRecv
	}
	switch {
	case shot == OwnShot: // a send or a receive
		remote, shot = &OwnSend, nil
	case op == hw.OpSend || op == hw.OpRecv:
		remote = nil
	}
	return PostPlain(b, op, d.Cookie, d.Flags, d.list(), remote, shot)
}

// postSome posts up to batchPosts operations one after the other, and steps behind the last.
func (b *Mailbox) postSome(q *Queue, dtos []Post) (n int, err error) {
	var (
		w      work
		x      extra
		ticket uint32
		mine   bool
	)
	for ; n < len(dtos); n++ {
		d := &dtos[n]
		d.work(q, &w)
		w.segs, w.ext = d.list(), nil
		if operations[w.op&31].extended {
			x = extra{d.Immediate, operands{d.Operand, d.Compare}}
			w.ext = &x
		}
		at, took, fail := b.admit(q, &w, d.shot())
		if fail != nil {
			err = fail
			break
		}
		q.publish(at, 1)
		ticket, mine = at, mine || took
	}
	switch {
	case mine:
		b.run(false)
	case n > 0:
		b.kickStep()
	}
	if q.prompt && n > 0 {
		q.awaitHanded((ticket + 1) & ticketMask)
	}
	return n, err
}
