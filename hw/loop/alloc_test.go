//go:build !race

package loop

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/hw"
	"godat/internal/token"
)

func TestTheDataPathDoesNotAllocate(t *testing.T) {
	var got counter
	a, b := pair(t, func(cfg *hw.QPConfig) { cfg.SendSink, cfg.RecvSink = &got, &got })
	recvs := []hw.RecvWR{{SGL: []hw.SGE{b.sge(0, 64)}}}
	recvParts := []hw.RecvWR{{SGL: []hw.SGE{b.sge(0, 32), b.sge(100, 32)}}}
	write := wr(hw.OpWrite, a, 0, 64, b.mr.RKey(), b.addr(0))
	read, add, imm := write, write, write
	read.Op, add.Op, imm.Op = hw.OpRead, hw.OpFetchAdd, hw.OpWriteImm
	add.SGL = []hw.SGE{a.sge(0, 8)}
	one := []hw.SendWR{send(1, a.sge(0, 64))}
	batch := []hw.SendWR{send(1, a.sge(0, 30), a.sge(90, 34)), write, read, add, imm}
	post := func(sends []hw.SendWR) {
		if n, err := a.qp.PostSend(sends); n != len(sends) || err != nil {
			t.Error(n, err)
		}
	}
	recv := func(recvs []hw.RecvWR) {
		if n, err := b.qp.PostRecv(recvs); n != len(recvs) || err != nil {
			t.Error(n, err)
		}
	}
	for name, f := range map[string]func(){
		"receive, then send":       func() { recv(recvs); post(one) },
		"send, then receive":       func() { post(one); recv(recvs) },
		"a batch":                  func() { recv(recvParts); recv(recvs); post(batch) },
		"a batch that waits twice": func() { post(batch); recv(recvParts); recv(recvs) },
	} {
		t.Run(name, func(t *testing.T) {
			assert.Zero(t, testing.AllocsPerRun(1000, f))
		})
	}
	assert.Zero(t, a.facts.isDown())
}

func TestWorkersDoNotAllocate(t *testing.T) {
	var done counter
	a, b := pair(t, func(cfg *hw.QPConfig) { cfg.SendSink = &done })
	p := a.qp.(*queuePair).out.Load()
	long := []hw.SendWR{wr(hw.OpWrite, a, 0, handover+1, b.mr.RKey(), b.addr(0))}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		_, _ = a.qp.PostSend(long)
		spinUntil(t, func() bool { return p.token.Load()&token.Held == 0 })
	}))
	assert.EqualValues(t, 101, done)
}

func TestSharedReceivesAllocateNothing(t *testing.T) {
	owner, q, xs, ys := shared(t, 1, hw.SRQConfig{Depth: 8, Segments: 1}, func(c *hw.QPConfig) { c.SendSink = discard{} })
	ys[0].recvs.hook = nil
	room, wr := []hw.RecvWR{{ID: 1, SGL: []hw.SGE{owner.sge(0, 64)}}}, []hw.SendWR{send(1, xs[0].sge(0, 64))}
	ys[0].recvs.wcs = make([]hw.WC, 0, 4096)
	for _, f := range []func(){
		func() { _, _ = q.PostRecv(room); _, _ = xs[0].qp.PostSend(wr) },
		func() { _, _ = xs[0].qp.PostSend(wr); _, _ = q.PostRecv(room) },
	} {
		f()
		assert.Zero(t, testing.AllocsPerRun(500, f))
	}
}
