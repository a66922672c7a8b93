package mem

import (
	"fmt"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/internal/door"
	"godat/internal/memory"
)

// call is a public call with the code that it must fail with; with the zero code it
// must succeed.
type call struct {
	name string
	do   func() error
	typ  hw.Type
	sub  hw.Subtype
}

func err1[T any](_ T, err error) error { return err }

func runCalls(t *testing.T, calls []call) {
	t.Helper()
	for _, c := range calls {
		t.Run(c.name, func(t *testing.T) {
			require.NotPanics(t, func() {
				err := c.do()
				if c.typ == 0 {
					require.NoError(t, err)
				} else {
					requireCode(t, err, c.typ, c.sub)
				}
			})
		})
	}
}

// zoneCalls are the calls of a zone that must fail with one code, whatever else is
// wrong.
func zoneCalls(p *PZ, from *LMR, typ hw.Type, sub hw.Subtype) []call {
	buf := make([]byte, 8)
	return []call{
		{"Use", func() error { return p.Zone(door.Key{}).Use("") }, typ, sub},
		{"Alloc", func() error { return err1(p.Alloc(8, hw.LocalRead)) }, typ, sub},
		{"Alloc of nothing", func() error { return err1(p.Alloc(0, hw.LocalRead)) }, typ, sub},
		{"Alloc with no privileges there are", func() error { return err1(p.Alloc(8, 0xff)) }, typ, sub},
		{"Alloc with a nil option", func() error { return err1(p.Alloc(8, hw.LocalRead, nil)) }, typ, sub},
		{"Alloc with a bad option", func() error { return err1(p.Alloc(8, hw.LocalRead, WithAlignment(3))) }, typ, sub},
		{"Register", func() error { return err1(p.Register(buf, hw.LocalRead)) }, typ, sub},
		{"Register of nothing", func() error { return err1(p.Register(nil, hw.LocalRead)) }, typ, sub},
		{"Register with an option", func() error { return err1(p.Register(buf, hw.LocalRead, WithHugePages())) }, typ, sub},
		{"RegisterLMR", func() error { return err1(p.RegisterLMR(from, hw.LocalRead)) }, typ, sub},
		{"RegisterLMR of nil", func() error { return err1(p.RegisterLMR(nil, hw.LocalRead)) }, typ, sub},
		{"RegisterShared", func() error { return err1(p.RegisterShared(SharedID{1}, buf, hw.LocalRead)) }, typ, sub},
		{"RegisterShared of nothing", func() error { return err1(p.RegisterShared(SharedID{2}, nil, hw.LocalRead)) }, typ, sub},
		{"NewRMR", func() error { return err1(p.NewRMR()) }, typ, sub},
		{"NewRMRFor", func() error { return err1(p.NewRMRFor(door.Key{}, nil, nil)) }, typ, sub},
		{"NewBufferPool", func() error { return err1(p.NewBufferPool(BufferPoolConfig{Count: 1, Size: 1})) }, typ, sub},
		{"NewBufferPool of nothing", func() error { return err1(p.NewBufferPool(BufferPoolConfig{})) }, typ, sub},
	}
}

func TestANilHandleIsRefusedByEveryCall(t *testing.T) {
	_, _, pz := newTestPZ(t)
	from := alloc(t, pz, 8, hw.LocalRead)
	var (
		d    *Domain
		p    *PZ
		l    *LMR
		r    *RMR
		pool *BufferPool
		to   *RemoteSegment
	)
	runCalls(t, zoneCalls(p, from, hw.InvalidHandle, hw.HandlePZ))
	runCalls(t, []call{
		{"PZ.Close", p.Close, hw.InvalidHandle, hw.HandlePZ},
		{"PZ.Home", func() error { return err1(p.Home(door.Key{})) }, hw.InvalidHandle, hw.HandlePZ},
		{"PZ.Resolve", func() error {
			_, err := resolve(p, make([]hw.SGE, 1), []Segment{from.Segment(0, 8)}, hw.LocalRead)
			return err
		}, hw.InvalidHandle, hw.HandlePZ},
		{"Domain.NewPZ", func() error { return err1(d.NewPZ()) }, hw.InvalidHandle, hw.HandleIA},
		{"Domain.Close", d.Close, hw.InvalidHandle, hw.HandleIA},
		{"Domain.SyncRDMARead", func() error { return d.Sync("mem.SyncRDMARead") }, hw.InvalidHandle, hw.HandleIA},
		{"Domain.SyncRDMAWrite", func() error { return d.Sync("mem.SyncRDMAWrite") }, hw.InvalidHandle, hw.HandleIA},
		{"LMR.Free", l.Free, hw.InvalidHandle, hw.HandleLMR},
		{"LMR.Query", func() error { return err1(l.Query()) }, hw.InvalidHandle, hw.HandleLMR},
		{"RMR.Free", r.Free, hw.InvalidHandle, hw.HandleRMR},
		{"RMR.Query", func() error { return err1(r.Query()) }, hw.InvalidHandle, hw.HandleRMR},
		{"RMR.BeginBind", func() error { return err1(r.Window(door.Key{}).BeginBind(pz.zone, nil, &memory.Binding{})) }, hw.InvalidHandle, hw.HandleRMR},
		{"BufferPool.Close", pool.Close, hw.InvalidHandle, hw.HandleLMR},
		{"RemoteSegment.UnmarshalBinary", func() error { return to.UnmarshalBinary(make([]byte, 16)) }, hw.InvalidParameter, hw.NoSubtype},
		{"getters", func() error {
			regions, bytes := registeredIn(d)
			ranges, mapped := mappedIn(d)
			assert.Zero(t, regions+ranges+d.Stats().Zones+d.Stats().Windows)
			assert.Zero(t, bytes+mapped)
			assert.Zero(t, d.Counters(false))
			assert.Zero(t, d.Counters(true))
			assert.False(t, d.Has(p))
			_, ok := p.Zone(door.Key{}).LKey(&memory.Segment{Len: 1}, hw.LocalRead)
			assert.False(t, ok)
			assert.Nil(t, l.Bytes())
			assert.Zero(t, l.Context()+l.RemoteContext())
			assert.Nil(t, l.PZ())
			assert.Zero(t, l.Segment(0, 1).Context)
			assert.Zero(t, l.Remote(0, 1).Context)
			assert.Nil(t, r.PZ())
			assert.Nil(t, pool.Get())
			assert.Nil(t, pool.At(0))
			return nil
		}, 0, 0},
		{"names", func() error {
			for _, h := range []fmt.Stringer{p, l, r, pool, (*Buffer)(nil)} {
				assert.NotContains(t, h.String(), "PANIC")
			}
			return nil
		}, 0, 0},
	})
}

func TestANilBufferIsEmptyAndRefusedByPosts(t *testing.T) {
	_, _, pz := newTestPZ(t)
	var b *Buffer
	runCalls(t, []call{
		{"Segment", func() error {
			_, err := resolve(pz, make([]hw.SGE, 1), []Segment{b.Segment()}, hw.LocalRead)
			return err
		}, hw.InvalidHandle, hw.HandleLMR},
		{"the rest", func() error {
			assert.Zero(t, b.Index()+b.Cap())
			assert.Nil(t, b.Bytes())
			assert.Nil(t, b.Resize(0))
			assert.NotZero(t, b.Remote().Len, "no peer takes it for an empty piece")
			assert.Zero(t, b.Remote().Context)
			b.Lend()
			b.Return(0)
			b.Put()
			return nil
		}, 0, 0},
	})
	_, err := b.Write([]byte{1})
	require.ErrorIs(t, err, io.ErrShortBuffer)
	assert.Panics(t, func() { b.Resize(1) })
}

func TestAnIndexThatNoBufferHasFindsNone(t *testing.T) {
	p := newTestPool(t, BufferPoolConfig{Count: 2, Size: 8})
	for _, i := range []int{-1, 2, math.MinInt, math.MaxInt} {
		assert.True(t, p.At(i) == nil, i)
	}
	assert.Same(t, p, p.At(1).pool)
}

func TestHandlesNameThemselves(t *testing.T) {
	p := newTestPool(t, BufferPoolConfig{Count: 2, Size: 8})
	require.NoError(t, p.Close())
	assert.Regexp(t, `^BufferPool\([1-9][0-9]*\)$`, p.String())
	assert.Regexp(t, `^Buffer\([1-9][0-9]*, 1\)$`, p.At(1).String(), "its memory is unmapped, and not looked at")
}

func TestAClosedHandleIsRefusedByEveryCall(t *testing.T) {
	dev, d := openLoop(t)
	open, err := d.NewPZ()
	require.NoError(t, err)
	from, freed := alloc(t, open, 8, hw.AllPrivileges), alloc(t, open, 8, hw.AllPrivileges)
	seg := freed.Segment(0, 8)
	require.NoError(t, freed.Free())
	window, err := open.NewRMR()
	require.NoError(t, err)
	require.NoError(t, window.Free())
	pool, err := open.NewBufferPool(BufferPoolConfig{Count: 1, Size: 8})
	require.NoError(t, err)
	require.NoError(t, pool.Close())
	closed, err := d.NewPZ()
	require.NoError(t, err)
	require.NoError(t, closed.Close())

	runCalls(t, zoneCalls(closed, from, hw.InvalidHandle, hw.HandlePZ))
	runCalls(t, []call{
		{"PZ.Close", closed.Close, 0, 0},
		{"PZ.Home", func() error { return err1(closed.Home(door.Key{})) }, hw.InvalidHandle, hw.HandlePZ},
		{"LMR.Free", freed.Free, 0, 0},
		{"LMR.Query", func() error { return err1(freed.Query()) }, hw.InvalidHandle, hw.HandleLMR},
		{"PZ.RegisterLMR", func() error { return err1(open.RegisterLMR(freed, hw.LocalRead)) }, hw.InvalidHandle, hw.HandleLMR},
		{"PZ.Resolve", func() error {
			_, err := resolve(open, make([]hw.SGE, 1), []Segment{seg}, hw.LocalRead)
			return err
		}, hw.InvalidHandle, hw.HandleLMR},
		{"Domain.SyncRDMARead", func() error { return d.Sync("mem.SyncRDMARead", seg) }, hw.InvalidHandle, hw.HandleLMR},
		{"Domain.SyncRDMAWrite", func() error { return d.Sync("mem.SyncRDMAWrite", seg) }, hw.InvalidHandle, hw.HandleLMR},
		{"RMR.Free", window.Free, 0, 0},
		{"RMR.Query", func() error { return err1(window.Query()) }, hw.InvalidHandle, hw.HandleRMR},
		{"RMR.BeginBind", func() error { return err1(window.Window(door.Key{}).BeginBind(open.zone, nil, &memory.Binding{})) }, hw.InvalidHandle, hw.HandleRMR},
		{"BufferPool.Close", pool.Close, 0, 0},
	})
	require.NoError(t, d.Close())
	runCalls(t, zoneCalls(open, from, hw.InvalidHandle, hw.HandleIA)[1:])
	runCalls(t, []call{
		{"PZ.Use", func() error { return open.zone.Use("") }, hw.InvalidHandle, hw.HandlePZ},
		{"Domain.NewPZ", func() error { return err1(d.NewPZ()) }, hw.InvalidHandle, hw.HandleIA},
		{"Domain.SyncRDMARead", func() error { return d.Sync("mem.SyncRDMARead", seg) }, hw.InvalidHandle, hw.HandleIA},
		{"Domain.Close", d.Close, 0, 0},
	})
	require.NoError(t, dev.Close())
}

func TestAHandleOfAnotherAdapterIsRefused(t *testing.T) {
	dev, d := openLoop(t)
	otherDev, other := openLoop(t)
	pz, err := d.NewPZ()
	require.NoError(t, err)
	foreign, err := other.NewPZ()
	require.NoError(t, err)
	l := alloc(t, foreign, 8, hw.AllPrivileges)
	window, err := foreign.NewRMR()
	require.NoError(t, err)
	seg := l.Segment(0, 8)
	binding := memory.Binding{Segment: memory.Segment(seg), Privileges: hw.RemoteRead}
	own, err := pz.NewRMR()
	require.NoError(t, err)
	runCalls(t, []call{
		{"PZ.RegisterLMR", func() error { return err1(pz.RegisterLMR(l, hw.LocalRead)) }, hw.InvalidHandle, hw.HandleLMR},
		{"PZ.Resolve", func() error {
			_, err := resolve(pz, make([]hw.SGE, 1), []Segment{l.Segment(0, 8)}, hw.LocalRead)
			return err
		}, hw.InvalidHandle, hw.HandleLMR},
		{"Domain.SyncRDMARead", func() error { return d.Sync("mem.SyncRDMARead", l.Segment(0, 8)) }, hw.InvalidHandle, hw.HandleLMR},
		{"RMR.BeginBind by a zone", func() error { return err1(window.Window(door.Key{}).BeginBind(pz.zone, nil, &memory.Binding{})) }, hw.InvalidHandle, hw.HandleRMR},
		{"RMR.BeginBind to a region", func() error { return err1(own.Window(door.Key{}).BeginBind(pz.zone, nil, &binding)) }, hw.InvalidHandle, hw.HandleLMR},
	})
	require.NoError(t, d.Close())
	require.NoError(t, other.Close())
	require.NoError(t, dev.Close())
	require.NoError(t, otherDev.Close())
}

func TestImpossibleArgumentsAreRefused(t *testing.T) {
	_, d, pz := newTestPZ(t)
	runCalls(t, []call{
		{"Alloc with a nil option", func() error { return err1(pz.Alloc(8, hw.LocalRead, nil)) }, hw.InvalidParameter, hw.Arg3},
		{"Alloc with a nil option among others", func() error {
			return err1(pz.Alloc(8, hw.LocalRead, WithUnmapOnFree(), nil))
		}, hw.InvalidParameter, hw.Arg3},
		{"Alloc of a negative size", func() error { return err1(pz.Alloc(-1, hw.LocalRead)) }, hw.LengthError, hw.NoSubtype},
		{"Register of nothing", func() error { return err1(pz.Register(nil, hw.LocalRead)) }, hw.LengthError, hw.NoSubtype},
		{"Register with a nil option", func() error { return err1(pz.Register(make([]byte, 1), hw.LocalRead, nil)) }, hw.InvalidParameter, hw.Arg3},
		{"RegisterLMR of nil", func() error { return err1(pz.RegisterLMR(nil, hw.LocalRead)) }, hw.InvalidHandle, hw.HandleLMR},
		{"RegisterShared of nothing", func() error { return err1(pz.RegisterShared(SharedID{3}, nil, hw.LocalRead)) }, hw.LengthError, hw.NoSubtype},
		{"RegisterShared of an empty slice", func() error {
			return err1(pz.RegisterShared(SharedID{3}, []byte{}, hw.LocalRead))
		}, hw.LengthError, hw.NoSubtype},
		{"NewBufferPool beyond all numbers", func() error {
			return err1(pz.NewBufferPool(BufferPoolConfig{Count: mostBuffers, Size: math.MaxInt/mostBuffers*2 + 2 + stride}))
		}, hw.LengthError, hw.NoSubtype},
		{"NewBufferPool of the largest number", func() error {
			return err1(pz.NewBufferPool(BufferPoolConfig{Count: 1, Size: math.MaxInt}))
		}, hw.LengthError, hw.NoSubtype},
	})
	regions, _ := registeredIn(d)
	assert.Zero(t, regions)
	assert.Empty(t, shares.byID, "a refused region holds no id")
}
