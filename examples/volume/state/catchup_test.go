package state

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"godat/examples/volume/entry"
	"godat/examples/volume/fault"
)

// rebuild is a disk that catches up with another one, which goes on meanwhile.
type rebuild struct {
	h        history
	from, to *Disk
	source   *fault.Store // of from
	store    *fault.Store // of to
	catchUp  *CatchUp
	under    []uint64 // chunks that are under way
	log      uint64   // the last entry that the log of to has
}

func newRebuild(t require.TestingT) *rebuild {
	r := &rebuild{h: history{size: 3*chunkLen + chunkLen/4}}
	r.store = fault.New(Size(r.h.size))
	var err error
	r.to, err = Open(r.store, volume, 0)
	require.NoError(t, err)
	r.source = fault.New(Size(r.h.size))
	r.from, err = Open(r.source, volume, 0)
	require.NoError(t, err)
	return r
}

func TestASnapshotEndsWithItsContext(t *testing.T) {
	gone := errors.New("nobody waits for it")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	_, err := newRebuild(t).from.Snapshot(ctx, 0)
	require.ErrorIs(t, err, gone)
}

// begin catches up from a new snapshot.
func (r *rebuild) begin(t *rapid.T) {
	var err error
	r.under = nil
	r.catchUp, err = r.to.CatchUp(r.list(t))
	require.NoError(t, err)
}

// list is what the one that is caught up with has since the other one's last entry.
func (r *rebuild) list(t require.TestingT) Snapshot {
	s, err := r.from.Snapshot(context.Background(), r.to.Since())
	require.NoError(t, err)
	got, err := ParseSnapshot(s.Append(nil))
	require.NoError(t, err)
	require.Equal(t, s, got)
	return got
}

// step brings a chunk, of several that are under way. It reports whether there was one.
func (r *rebuild) step(t *rapid.T) bool {
	for more := rapid.IntRange(1, 3).Draw(t, "at a time"); more != 0; more-- {
		chunk, ok := r.catchUp.Next()
		if !ok {
			break
		}
		r.under = append(r.under, chunk.Off)
	}
	if len(r.under) == 0 {
		return false
	}
	i := rapid.IntRange(0, len(r.under)-1).Draw(t, "which")
	b := make([]byte, len(r.from.chunk(r.under[i])))
	chunk, index, err := r.from.Chunk(r.under[i], b)
	require.NoError(t, err)
	if rapid.IntRange(0, 9).Draw(t, "damage") == 0 {
		b[0]++
	}
	require.NoError(t, r.catchUp.Put(chunk, index, b))
	r.under = slices.Delete(r.under, i, i+1)
	return true
}

// TestADiskThatCaughtUpIsTheOtherOne lets a disk catch up with one that goes on, with crashes at any point, with
// what says when a chunk was written damaged, and with the two changing places.
func TestADiskThatCaughtUpIsTheOtherOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRebuild(t)
		crash := func(t *rapid.T, cut bool) {
			if cut {
				r.store.Fail(seed(t))
			}
			var err error
			r.to, err = Open(r.store, volume, r.log)
			require.NoError(t, err)
			if r.catchUp != nil {
				require.ErrorIs(t, r.to.Ready(), ErrCatchingUp)
				r.begin(t)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"apply": func(t *rapid.T) {
				r.h.draw(t)
				require.NoError(t, r.h.apply(r.from, r.h.last()))
			},
			"step": func(t *rapid.T) {
				switch {
				case r.catchUp == nil:
					r.begin(t)
				case !r.step(t):
					if rapid.Bool().Draw(t, "another round") {
						require.NoError(t, r.catchUp.Flush())
						require.NoError(t, r.catchUp.Round(r.list(t)))
						return
					}
					require.NoError(t, r.catchUp.Finish())
					r.catchUp = nil
				}
			},
			"release": func(t *rapid.T) {
				for _, d := range []*Disk{r.from, r.to} {
					_, err := d.Release()
					require.NoError(t, err)
				}
			},
			"change places": func(t *rapid.T) {
				index, _ := r.to.Applied()
				if r.catchUp == nil && index == r.h.last() && r.to.Ready() == nil {
					r.from, r.to, r.source, r.store = r.to, r.from, r.store, r.source
					r.log = r.h.last()
				}
			},
			"damage": func(t *rapid.T) {
				at := marksLen + r.h.size + rapid.IntRange(0, changedLen(r.h.size)-1).Draw(t, "byte")
				r.store.Memory()[at] ^= 0x10
				crash(t, false)
			},
			"crash the other": func(t *rapid.T) {
				if rapid.Bool().Draw(t, "power") {
					r.source.Fail(seed(t))
				}
				if rapid.Bool().Draw(t, "damage") {
					clear(r.source.Memory()[marksLen+r.h.size:])
				}
				var err error
				r.from, err = Open(r.source, volume, r.h.last())
				require.NoError(t, err)
				r.h.replay(t, r.from)
			},
			"cut the power": func(t *rapid.T) { crash(t, true) },
			"kill":          func(t *rapid.T) { crash(t, false) },
			"follow": func(t *rapid.T) {
				if r.catchUp == nil {
					index, _ := r.to.Applied()
					if index < r.h.last() {
						r.log = max(r.log, index+1)
						require.NoError(t, r.h.apply(r.to, index+1))
					}
				}
			},
			"": func(t *rapid.T) {
				if r.to.Ready() == nil {
					index, _ := r.to.Applied()
					require.True(t, bytes.Equal(r.h.at(index), whole(r.to)), "after entry %d", index)
				}
			},
		})
		if r.catchUp == nil {
			r.begin(t)
		}
		for r.step(t) {
		}
		require.NoError(t, r.catchUp.Finish())
		r.h.replay(t, r.to)
		require.NoError(t, r.to.Ready())
		require.True(t, bytes.Equal(whole(r.from), whole(r.to)))
	})
}

func TestOnlyChunksThatWereWrittenSinceAreRead(t *testing.T) {
	r := newRebuild(t)
	write := func(index, off uint64, disks ...*Disk) {
		b := data(off, 2*entry.Unit, index)
		for _, d := range disks {
			require.NoError(t, d.Apply(index, 0, sealed(entry.Entry{Op: entry.Write, Off: off, Len: uint32(len(b))}, b), b))
		}
	}
	write(1, 0, r.from, r.to)
	_, err := r.to.Release()
	require.NoError(t, err)
	write(2, 3*chunkLen, r.from, r.to)
	require.Len(t, r.list(t).Chunks, 1, "the chunk that was written behind what is released")
	write(3, chunkLen, r.from)
	s := r.list(t)
	require.Len(t, s.Chunks, 2)
	for _, want := range []uint64{2, 0} {
		c, err := r.to.CatchUp(s)
		require.NoError(t, err)
		read := uint64(0)
		bytes := uint64(0)
		for chunk, ok := c.Next(); ok; chunk, ok = c.Next() {
			read++
			assert.ErrorIs(t, c.Finish(), ErrCatchingUp)
			r.bring(t, c, chunk)
			bytes += uint64(len(r.from.chunk(chunk.Off)))
		}
		assert.Equal(t, want, read)
		done, all := c.Progress()
		assert.Equal(t, [2]uint64{bytes, bytes}, [2]uint64{done, all})
		s = r.list(t)
		assert.Empty(t, s.Chunks, "nothing was written since")
	}
	require.Equal(t, r.from.Memory(), whole(r.to))
}

// A new disk gets a list of all chunks. What an earlier catch-up has brought is not brought again.
func TestOfAListOfAllOnlyChunksThatDifferAreRead(t *testing.T) {
	r := newRebuild(t)
	for i, off := range []uint64{0, chunkLen, 3 * chunkLen} {
		b := data(off, entry.Unit, uint64(i))
		require.NoError(t, r.from.Apply(uint64(i)+1, 0, sealed(entry.Entry{Op: entry.Write, Off: off, Len: entry.Unit}, b), b))
	}
	c, err := r.to.CatchUp(r.list(t))
	require.NoError(t, err)
	chunk, ok := c.Next()
	require.True(t, ok)
	r.bring(t, c, chunk)
	r.to, err = Open(r.store, volume, 0)
	require.NoError(t, err)
	c, err = r.to.CatchUp(r.list(t))
	require.NoError(t, err)
	var got []uint64
	for chunk, ok = c.Next(); ok; chunk, ok = c.Next() {
		got = append(got, chunk.Off)
		r.bring(t, c, chunk)
	}
	assert.Equal(t, []uint64{chunkLen, 3 * chunkLen}, got)
	require.NoError(t, c.Finish())
	require.Equal(t, r.from.Memory(), whole(r.to))
}

// A replica that caught up may be the one that others catch up with.
func TestZerosThatAreNotWrittenYetAreListedAsZeros(t *testing.T) {
	r := newRebuild(t)
	write := sealed(entry.Entry{Op: entry.Write, Len: 3 * chunkLen}, data(0, 3*chunkLen, 1))
	for _, d := range []*Disk{r.from, r.to} {
		require.NoError(t, d.Apply(1, 1, write, data(0, 3*chunkLen, 1)))
		_, err := d.Release()
		require.NoError(t, err)
	}
	require.NoError(t, r.from.Apply(2, 1, sealed(entry.Entry{Op: entry.Zero, Len: 2*chunkLen + 16<<10}, nil), nil))
	catchUp, err := r.to.CatchUp(r.list(t))
	require.NoError(t, err)
	chunk, ok := catchUp.Next()
	require.True(t, ok)
	require.Equal(t, uint64(2*chunkLen), chunk.Off, "the others are zeros")
	b := make([]byte, chunkLen)
	chunk, index, err := r.from.Chunk(chunk.Off, b)
	require.NoError(t, err)
	require.NoError(t, catchUp.Put(chunk, index, b))
	_, ok = catchUp.Next()
	require.False(t, ok)
	require.NoError(t, catchUp.Finish())
	require.True(t, bytes.Equal(whole(r.from), whole(r.to)))
}

func TestADiskThatCaughtUpKnowsWhatOthersMiss(t *testing.T) {
	r := newRebuild(t)
	for i := range uint64(3) {
		b := data(i*chunkLen, entry.Unit, i)
		require.NoError(t, r.from.Apply(i+1, 0, sealed(entry.Entry{Op: entry.Write, Off: i * chunkLen, Len: entry.Unit}, b), b))
	}
	r.catchUpWith(t)
	again, err := Open(r.store, volume, 3)
	require.NoError(t, err)
	for _, d := range []*Disk{r.to, again} {
		s, err := d.Snapshot(t.Context(), 1)
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(s.Chunks), 2)
		assert.Equal(t, uint64(2*chunkLen), s.Chunks[len(s.Chunks)-1].Off)
		s, err = d.Snapshot(t.Context(), 3)
		require.NoError(t, err)
		assert.Empty(t, s.Chunks)
	}
}

// catchUpWith catches up.
func (r *rebuild) catchUpWith(t require.TestingT) {
	c, err := r.to.CatchUp(r.list(t))
	require.NoError(t, err)
	for chunk, ok := c.Next(); ok; chunk, ok = c.Next() {
		r.bring(t, c, chunk)
	}
	require.NoError(t, c.Finish())
}

// bring brings a chunk as it is now.
func (r *rebuild) bring(t require.TestingT, c *CatchUp, chunk Chunk) {
	b := make([]byte, len(r.from.chunk(chunk.Off)))
	chunk, index, err := r.from.Chunk(chunk.Off, b)
	require.NoError(t, err)
	require.NoError(t, c.Put(chunk, index, b))
}

// A block that lies in two chunks is a mixture while the one has come and the other has not.
func TestADiskThatCatchesUpShowsNoBlock(t *testing.T) {
	r := newRebuild(t)
	const off = chunkLen - entry.Unit
	b := bytes.Repeat([]byte{7}, 2*entry.Unit)
	for index := range uint64(3) {
		require.NoError(t, r.from.Apply(index+1, 0, sealed(entry.Entry{Op: entry.Write, Off: off, Len: uint32(len(b))}, b), b))
	}
	got := make([]byte, len(b))
	require.NoError(t, r.to.Copy(got, off))
	c, err := r.to.CatchUp(r.list(t))
	require.NoError(t, err)
	chunk, ok := c.Next()
	require.True(t, ok)
	first := make([]byte, chunkLen)
	renewed, _, err := r.from.Chunk(chunk.Off, first)
	require.NoError(t, err)
	require.NoError(t, c.Put(renewed, 5, first))
	chunk, ok = c.Next()
	require.True(t, ok)
	mixture := r.to.Memory()[off:][:len(b)]
	require.NotEqual(t, mixture[0], mixture[len(b)-1])
	see := func(want error) {
		require.ErrorIs(t, r.to.Copy(got, off), want)
		_, err := r.to.Same(b, off)
		require.ErrorIs(t, err, want)
	}
	see(ErrCatchingUp)
	r.bring(t, c, chunk)
	_, ok = c.Next()
	require.False(t, ok)
	require.NoError(t, c.Finish())
	see(ErrNotWhole)
	for index := range uint64(2) {
		require.NoError(t, r.to.Apply(index+4, 0, sealed(entry.Entry{Op: entry.Write, Off: off, Len: uint32(len(b))}, b), b))
	}
	see(nil)
	require.Equal(t, b, got)
}

// What is stable before a mark says what is written behind it: a power cut at any flush leaves no chunk that is
// written and not noted.
func TestWhatWasWrittenIsNotedBeforeTheMarkThatHasIt(t *testing.T) {
	for flushes := range 4 {
		s := fault.New(Size(4 * chunkLen))
		d, err := Open(s, volume, 0)
		require.NoError(t, err)
		_, err = d.Release()
		require.NoError(t, err)
		b := data(chunkLen, entry.Unit, 1)
		require.NoError(t, d.Apply(1, 0, sealed(entry.Entry{Op: entry.Write, Off: chunkLen, Len: entry.Unit}, b), b))
		s.FailAfter(flushes)
		_, err = d.Release()
		require.Equal(t, flushes < 3, err != nil, "blocks, what was written, mark")
		s.Repair()
		s.Fail(rand.New(rand.NewPCG(uint64(flushes), 0)))
		d, err = Open(s, volume, 1)
		require.NoError(t, err)
		if index, _ := d.Applied(); index == 1 {
			list, err := d.Snapshot(t.Context(), 0)
			require.NoError(t, err)
			require.NotEmpty(t, list.Chunks, "after %d flushes", flushes)
		}
	}
}

func TestTheLengthOfAStoreSaysHowManyBlocksItHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := entry.Unit * rapid.IntRange(1, 1<<21).Draw(t, "units")
		require.Equal(t, n, blocksIn(Size(n)))
		require.LessOrEqual(t, Size(blocksIn(Size(n)+entry.Unit)), Size(n)+entry.Unit)
	})
}

func TestADiskThatIsNotWholeSaysSo(t *testing.T) {
	r := newRebuild(t)
	require.NoError(t, r.from.Apply(1, 0, &entry.Entry{}, nil))
	s, err := r.from.Snapshot(context.Background(), r.to.Since())
	require.NoError(t, err)
	s.Whole = 2
	c, err := r.to.CatchUp(s)
	require.NoError(t, err)
	require.ErrorIs(t, r.to.Apply(1, 0, &entry.Entry{}, nil), ErrCatchingUp)
	_, ok := c.Next()
	require.False(t, ok)
	require.NoError(t, c.Finish())
	for range 2 { // also when it is opened again
		require.ErrorIs(t, r.to.Ready(), ErrNotWhole)
		s, err = r.to.Snapshot(context.Background(), 0)
		require.NoError(t, err)
		require.Equal(t, uint64(2), s.Whole, "nor is one that it is copied to")
		_, err = r.to.Compare(0, []byte{0})
		require.ErrorIs(t, err, ErrNotWhole)
		r.to, err = Open(r.store, volume, 0)
		require.NoError(t, err)
	}
	require.NoError(t, r.to.Apply(2, 0, &entry.Entry{}, nil))
	require.NoError(t, r.to.Ready())
}

func TestASnapshotThatDoesNotFitIsRefused(t *testing.T) {
	r := newRebuild(t)
	_, err := r.to.CatchUp(Snapshot{Size: 512})
	require.ErrorContains(t, err, "512 bytes for")
	require.NoError(t, r.to.Apply(1, 0, &entry.Entry{}, nil))
	_, err = r.to.Release()
	require.NoError(t, err)
	_, err = r.to.CatchUp(Snapshot{Size: uint64(r.h.size)})
	require.ErrorContains(t, err, "has released entry 1")
	_, err = r.to.CatchUp(Snapshot{Index: 3, Since: 2, Size: uint64(r.h.size)})
	require.ErrorContains(t, err, "of entries 2 to 3")
	require.NoError(t, r.to.Ready(), "nothing has begun")
	c, err := r.to.CatchUp(Snapshot{Index: 1, Size: uint64(r.h.size), Chunks: []Chunk{{0, 1, false}}})
	require.NoError(t, err)
	require.ErrorContains(t, c.Put(Chunk{Off: chunkLen}, 1, nil), "no chunk at 65536")
	_, ok := c.Next()
	require.True(t, ok)
	require.ErrorContains(t, c.Put(Chunk{}, 1, nil), "a chunk of 0 bytes at 0")
	require.ErrorIs(t, c.Round(Snapshot{Index: 1, Size: uint64(r.h.size)}), ErrCatchingUp)
	_, err = r.from.Snapshot(t.Context(), 1)
	require.ErrorContains(t, err, "entry 1 is asked for")
	for off, n := range map[uint64]int{1: chunkLen, 4 * chunkLen: chunkLen, 0: 1, 3 * chunkLen: chunkLen} {
		_, _, err = r.from.Chunk(off, make([]byte, n))
		require.ErrorContains(t, err, "no chunk")
	}
}

func TestBytesThatAreNoSnapshotAreRefused(t *testing.T) {
	good := Snapshot{Index: 1, Whole: 2, Size: 3 * chunkLen, Chunks: []Chunk{{0, 1, false}, {2 * chunkLen, 2, true}}}
	b := good.Append(nil)
	for n := range b {
		_, err := ParseSnapshot(b[:n])
		if n != snapshotLen && n != snapshotLen+chunkBytes {
			require.ErrorIs(t, err, errSnapshot, n)
		}
	}
	for name, s := range map[string]Snapshot{
		"whole too early":       {Index: 2, Whole: 1},
		"a chunk beyond":        {Chunks: []Chunk{{0, 1, false}}},
		"a chunk in a chunk":    {Size: chunkLen, Chunks: []Chunk{{512, 1, false}}},
		"chunks out of order":   {Size: 2 * chunkLen, Chunks: []Chunk{{chunkLen, 1, false}, {0, 1, false}}},
		"a chunk that is twice": {Size: 2 * chunkLen, Chunks: []Chunk{{0, 1, false}, {0, 1, true}}},
	} {
		_, err := ParseSnapshot(s.Append(nil))
		require.ErrorIs(t, err, errSnapshot, name)
	}
}

func FuzzParseSnapshot(f *testing.F) {
	s := Snapshot{Index: 1, Whole: 2, Size: 3 * chunkLen, Chunks: []Chunk{{0, 1, false}, {2 * chunkLen, 2, true}}}
	f.Add(s.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := ParseSnapshot(b); err == nil {
			require.True(t, bytes.Equal(b, s.Append(nil)))
		}
	})
}
