package loop

import (
	"math/bits"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"godat/hw"
	"godat/hw/internal/soft"
)

// A range is reached if it lies within the region, and no other, whatever the
// addresses: near both ends, and near both ends of the address space.
func TestReach(t *testing.T) {
	a := newSide(t, open(t, uniqueName()), nil)
	d := a.dev.(*device)
	e := soft.View{Keys: &d.Keys, Zone: a.zone.(*soft.Zone)}
	first := a.addr(0)
	near := rapid.Custom(func(t *rapid.T) uint64 {
		at := rapid.SampledFrom([]uint64{0, first, first + memLen, first + memLen/2, 1 << 63, 1 << 32}).Draw(t, "at")
		return at + uint64(rapid.Int64Range(-5, 5).Draw(t, "by"))
	})
	rapid.Check(t, func(t *rapid.T) {
		addr := near.Draw(t, "addr")
		n := rapid.OneOf(rapid.Uint32Range(1, 10), rapid.Uint32Range(memLen-5, memLen+5), rapid.Uint32Min(1)).Draw(t, "n")
		last, wraps := bits.Add64(addr, uint64(n-1), 0)
		inside := wraps == 0 && addr >= first && last < first+memLen
		got := e.Reach(addr, n, a.mr.LKey(), hw.LocalRead)
		if !inside {
			require.Nil(t, got)
			return
		}
		require.Equal(t, unsafe.Pointer(&a.mem[addr-first]), got)
	})
}

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
	long := []hw.SendWR{wr(hw.OpWrite, a, 0, maxInline+1, b.mr.RKey(), b.addr(0))}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		_, _ = a.qp.PostSend(long)
		spinUntil(t, func() bool { return p.word.Load()&held == 0 })
	}))
	assert.EqualValues(t, 101, done)
}
