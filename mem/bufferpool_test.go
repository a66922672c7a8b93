package mem

import (
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/internal/door"
	"godat/internal/memory"
)

func newTestPool(t *testing.T, cfg BufferPoolConfig) *BufferPool {
	d := NewDomain(door.Key{}, newFakeDevice(), nil)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	pz, err := d.NewPZ()
	require.NoError(t, err)
	p, err := pz.NewBufferPool(cfg)
	require.NoError(t, err)
	return p
}

func TestAPoolHandsOutEachBufferOnce(t *testing.T) {
	p := newTestPool(t, BufferPoolConfig{Count: 3, Size: 100})
	seen := make(map[uint64]*Buffer)
	for range 3 {
		b := p.Get()
		require.NotNil(t, b)
		assert.Same(t, b, p.At(b.Index()))
		assert.Empty(t, b.Bytes())
		assert.Equal(t, 100, b.Cap())
		b.Resize(100)
		seg := b.Segment()
		assert.EqualValues(t, 100, seg.Len)
		assert.Zero(t, seg.Addr%stride, "two owners share no cache line")
		seen[seg.Addr] = b
	}
	assert.Len(t, seen, 3)
	assert.Nil(t, p.Get(), "none is left")
	for _, b := range seen {
		b.Put()
	}
	assert.NotNil(t, p.Get())
	require.NoError(t, p.Close())
	require.NoError(t, p.Close(), "again")
}

func TestABufferIsWrittenAsFarAsItHasRoom(t *testing.T) {
	p := newTestPool(t, BufferPoolConfig{Count: 1, Size: 5})
	b := p.Get()
	n, err := b.Write([]byte("abc"))
	require.NoError(t, err)
	require.Equal(t, 3, n)
	n, err = b.Write([]byte("def"))
	require.ErrorIs(t, err, io.ErrShortBuffer)
	assert.Equal(t, 2, n)
	assert.Equal(t, "abcde", string(b.Bytes()))
	assert.Panics(t, func() { b.Resize(6) })
	b.Lend()
	b.Return(2)
	assert.Equal(t, "ab", string(b.Bytes()))
	require.NoError(t, p.Close())
	b.Put() // the pool is closed: Put does nothing
}

// The completion of an operation may come after its program has taken the buffer back and
// lent it again.
func TestAnOperationPutsTheBufferOfItsOwnTurnAlone(t *testing.T) {
	for _, debug := range []bool{false, true} {
		p := newTestPool(t, BufferPoolConfig{Count: 1, Size: 8, Debug: debug})
		var tags [2]uint64
		require.Equal(t, 1, Own{p}.LendAll(0, tags[:]))
		first := tags[0]
		b := p.At(int(uint32(first)))
		assert.Equal(t, memory.Operation, b.owner.Owner())
		assert.EqualValues(t, 8, b.Segment().Len)
		b.Return(0)
		second, ok := Own{}.Lend(b)
		require.True(t, ok)
		assert.False(t, Own{}.PutBack(b, first))
		assert.True(t, Own{}.PutBack(b, second))
		assert.False(t, Own{}.PutBack(b, second), "a buffer is put once")
		assert.Same(t, b, p.Get())
		assert.Zero(t, Own{p}.LendAll(0, tags[:]))
		b.Put()
		require.NoError(t, p.Close())
		assert.Zero(t, Own{p}.LendAll(0, tags[:]))
	}
}

func TestManyBuffersAreTakenAtOnce(t *testing.T) {
	const count = 2*lendAtOnce + 3
	p := newTestPool(t, BufferPoolConfig{Count: count, Size: 8})
	var tags [count + 1]uint64
	require.Equal(t, count, Own{p}.LendAll(0, tags[:]))
	seen := make(map[*Buffer]bool)
	for _, tag := range tags[:count] {
		b := p.At(int(uint32(tag)))
		seen[b] = true
		assert.True(t, Own{}.PutBack(b, tag))
	}
	assert.Len(t, seen, count)
	require.NoError(t, p.Close())
}

func TestAPoolOfImpossibleSizeIsRefused(t *testing.T) {
	d := NewDomain(door.Key{}, newFakeDevice(), nil)
	defer func() { require.NoError(t, d.Close()) }()
	pz, err := d.NewPZ()
	require.NoError(t, err)
	for _, cfg := range []BufferPoolConfig{{}, {Count: 1}, {Size: 1}, {Count: -1, Size: 8}, {Count: mostBuffers + 1, Size: 1}} {
		_, err := pz.NewBufferPool(cfg)
		assert.ErrorIs(t, err, hw.ErrLength, "%+v", cfg)
	}
	_, err = (*PZ)(nil).NewBufferPool(BufferPoolConfig{Count: 1, Size: 1})
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
	require.ErrorIs(t, (*BufferPool)(nil).Close(), hw.ErrInvalidHandle)
}

func TestGetAndPutAllocateNothing(t *testing.T) {
	p := newTestPool(t, BufferPoolConfig{Count: 2, Size: 64})
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		b := p.Get()
		b.Resize(8)
		b.Lend()
		_ = b.Segment()
		b.Return(8)
		b.Put()
	}))
}

func TestManyGoroutinesShareAPool(t *testing.T) {
	p := newTestPool(t, BufferPoolConfig{Count: 3, Size: 64})
	var wg sync.WaitGroup
	for id := range byte(4) {
		wg.Go(func() {
			for range 2000 {
				b := p.Get()
				if b == nil {
					continue
				}
				b.Resize(1)[0] = id
				assert.Equal(t, id, b.Bytes()[0], "somebody else has the buffer, too")
				b.Put()
			}
		})
	}
	wg.Wait()
}

// panicOf returns the text that f panics with.
func panicOf(t *testing.T, f func()) (said string) {
	defer func() {
		s, ok := recover().(string)
		assert.True(t, ok, "no panic")
		said = s
	}()
	f()
	return
}

func TestASecondPutPanics(t *testing.T) {
	p := newTestPool(t, BufferPoolConfig{Count: 1, Size: 8})
	b := p.Get()
	b.Put()
	assert.Contains(t, panicOf(t, b.Put), "put twice")
}

// forget gets a buffer and never puts it.
func forget(p *BufferPool) *Buffer { return p.Get() }

func TestAWatchedPoolNamesTheMisuserOfABuffer(t *testing.T) {
	for name, c := range map[string]struct {
		misuse func(p *BufferPool, b *Buffer)
		says   string
	}{
		"written by a slice before it was got": {
			func(p *BufferPool, b *Buffer) {
				b.Put()
				p.watch.traces[0].put = trace{} // as if the buffer were new
				clear(b.memory())
				b.memory()[5] = 1
				p.Get()
			}, "written at byte 5 after it was put",
		},
		"put twice":             {func(_ *BufferPool, b *Buffer) { b.Put(); b.Put() }, "put twice, or while it was lent; the pool has it"},
		"put while lent":        {func(_ *BufferPool, b *Buffer) { b.Lend(); b.Put() }, "put twice, or while it was lent; an operation has it"},
		"read after it was put": {func(_ *BufferPool, b *Buffer) { b.Put(); b.Bytes() }, "used; the pool has it"},
		"sized after it was put": {
			func(_ *BufferPool, b *Buffer) { b.Put(); b.Resize(1) }, "resized; the pool has it",
		},
		"written while lent": {func(_ *BufferPool, b *Buffer) { b.Lend(); _, _ = b.Write(nil) }, "written; an operation has it"},
		"lent twice":         {func(_ *BufferPool, b *Buffer) { b.Lend(); b.Lend() }, "lent; an operation has it"},
		"returned twice":     {func(_ *BufferPool, b *Buffer) { b.Return(0) }, "returned; its holder has it"},
		"written by a slice after it was put": {
			func(p *BufferPool, b *Buffer) { s := b.Resize(8); b.Put(); s[3] = 0; p.Get() }, "written at byte 3 after it was put",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTestPool(t, BufferPoolConfig{Count: 1, Size: 8, Debug: true})
			b := forget(p)
			said := panicOf(t, func() { c.misuse(p, b) })
			assert.Contains(t, said, c.says)
			assert.Contains(t, said, "mem.forget", "the owner is named")
		})
	}
}

func TestALeakNamesItsOwner(t *testing.T) {
	p := newTestPool(t, BufferPoolConfig{Count: 2, Size: 8, Debug: true})
	p.Get().Put()
	forget(p)
	p.Get().Lend()
	err := p.Close()
	require.ErrorIs(t, err, hw.ErrInvalidState)
	assert.ErrorContains(t, err, "buffer 0 was not put")
	assert.ErrorContains(t, err, "mem.forget")
	assert.NotContains(t, err.Error(), "buffer 1")
	require.NoError(t, p.Close(), "said once")
}
