package state

import (
	"bytes"
	"context"
	"errors"
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
	store    *fault.Store // of to
	catchUp  *CatchUp
	last     Chunk  // that Next returned
	log      uint64 // the last entry that the log of to has
}

func newRebuild(t require.TestingT) *rebuild {
	r := &rebuild{h: history{size: chunkLen + chunkLen/4}}
	r.store = fault.New(Size(r.h.size))
	var err error
	r.to, err = Open(r.store, volume, 0)
	require.NoError(t, err)
	r.from, err = Open(fault.New(Size(r.h.size)), volume, 0)
	require.NoError(t, err)
	return r
}

func TestASnapshotEndsWithItsContext(t *testing.T) {
	gone := errors.New("nobody waits for it")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	_, err := newRebuild(t).from.Snapshot(ctx)
	require.ErrorIs(t, err, gone)
}

// begin catches up from a new snapshot.
func (r *rebuild) begin(t *rapid.T) {
	s, err := r.from.Snapshot(context.Background())
	require.NoError(t, err)
	got, err := ParseSnapshot(s.Append(nil))
	require.NoError(t, err)
	require.Equal(t, s, got)
	r.catchUp, err = r.to.CatchUp(got)
	require.NoError(t, err)
	r.last = Chunk{}
}

// step gets a chunk. It reports whether there was one.
func (r *rebuild) step(t *rapid.T) bool {
	chunk, to, ok := r.catchUp.Next()
	if ok && chunk == r.last {
		renewed, index, err := r.from.Chunk(chunk.Off)
		require.NoError(t, err)
		require.NoError(t, r.catchUp.Renew(renewed, index))
	}
	r.last = chunk
	copy(to, r.from.chunk(chunk.Off))
	return ok
}

// TestADiskThatCaughtUpIsTheOtherOne lets a disk catch up with one that goes on, with crashes
// at any point.
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
					require.NoError(t, r.catchUp.Finish())
					r.catchUp = nil
				}
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
					require.True(t, bytes.Equal(r.h.at(index), r.to.Memory()), "after entry %d", index)
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
		require.True(t, bytes.Equal(r.from.Memory(), r.to.Memory()))
	})
}

func TestOnlyChunksThatDifferAreRead(t *testing.T) {
	r := newRebuild(t)
	b := data(chunkLen, 2*entry.Unit, 1)
	write := entry.Entry{Op: entry.Write, Off: chunkLen, Len: uint32(len(b)), CRC: entry.Sum(b)}
	require.NoError(t, r.from.Apply(1, 0, &write, b))
	copy(r.to.Memory(), "old")
	s, err := r.from.Snapshot(context.Background())
	require.NoError(t, err)
	assert.Len(t, s.Chunks, 1, "chunks of zeros are left out")
	for _, want := range []int{1, 0} {
		c, err := r.to.CatchUp(s)
		require.NoError(t, err)
		read := 0
		for chunk, to, ok := c.Next(); ok; chunk, to, ok = c.Next() {
			read++
			assert.ErrorIs(t, c.Finish(), ErrCatchingUp)
			copy(to, r.from.chunk(chunk.Off))
		}
		assert.Equal(t, want, read)
		done, all := c.Progress()
		assert.Equal(t, [2]uint64{uint64(r.h.size), uint64(r.h.size)}, [2]uint64{done, all})
	}
}

func TestADiskThatIsNotWholeSaysSo(t *testing.T) {
	r := newRebuild(t)
	require.NoError(t, r.from.Apply(1, 0, &entry.Entry{}, nil))
	s, err := r.from.Snapshot(context.Background())
	require.NoError(t, err)
	s.Whole = 2
	c, err := r.to.CatchUp(s)
	require.NoError(t, err)
	require.ErrorIs(t, r.to.Apply(1, 0, &entry.Entry{}, nil), ErrCatchingUp)
	_, _, ok := c.Next()
	require.False(t, ok)
	require.NoError(t, c.Finish())
	for range 2 { // also when it is opened again
		require.ErrorIs(t, r.to.Ready(), ErrNotWhole)
		s, err = r.to.Snapshot(context.Background())
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
	c, err := r.to.CatchUp(Snapshot{Index: 1, Size: uint64(r.h.size)})
	require.NoError(t, err)
	require.ErrorContains(t, c.Renew(Chunk{}, 1), "chunk at 0")
	for _, off := range []uint64{1, 3 * chunkLen} {
		_, _, err = r.from.Chunk(off)
		require.ErrorContains(t, err, "no chunk")
	}
}

func TestBytesThatAreNoSnapshotAreRefused(t *testing.T) {
	good := Snapshot{Index: 1, Whole: 2, Size: 3 * chunkLen, Chunks: []Chunk{{0, 1}, {2 * chunkLen, 2}}}
	b := good.Append(nil)
	for n := range b {
		_, err := ParseSnapshot(b[:n])
		if n != snapshotLen && n != snapshotLen+chunkBytes {
			require.ErrorIs(t, err, errSnapshot, n)
		}
	}
	for name, s := range map[string]Snapshot{
		"whole too early":       {Index: 2, Whole: 1},
		"a chunk beyond":        {Chunks: []Chunk{{0, 1}}},
		"a chunk in a chunk":    {Size: chunkLen, Chunks: []Chunk{{512, 1}}},
		"chunks out of order":   {Size: 2 * chunkLen, Chunks: []Chunk{{chunkLen, 1}, {0, 1}}},
		"a chunk that is twice": {Size: 2 * chunkLen, Chunks: []Chunk{{0, 1}, {0, 1}}},
	} {
		_, err := ParseSnapshot(s.Append(nil))
		require.ErrorIs(t, err, errSnapshot, name)
	}
}

func FuzzParseSnapshot(f *testing.F) {
	s := Snapshot{Index: 1, Whole: 2, Size: 3 * chunkLen, Chunks: []Chunk{{0, 1}, {2 * chunkLen, 2}}}
	f.Add(s.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := ParseSnapshot(b); err == nil {
			require.True(t, bytes.Equal(b, s.Append(nil)))
		}
	})
}
