package state

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"godat/examples/volume/entry"
	"godat/examples/volume/fault"
)

// checkedAt is what a check says of blocks.
func checkedAt(index uint64, blocks []byte) Checked {
	var crcs []byte
	for len(blocks) != 0 {
		n := min(chunkLen, len(blocks))
		crcs = binary.LittleEndian.AppendUint32(crcs, entry.Sum(blocks[:n]))
		blocks = blocks[n:]
	}
	return Checked{index, entry.Sum(crcs)}
}

// Entries are applied while the disk is summed, and the check says what it was at its entry.
func TestACheckIsOfTheMomentOfItsEntry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := history{size: 3*chunkLen + chunkLen/4}
		d, err := Open(fault.New(Size(h.size)), volume, 0)
		require.NoError(t, err)
		var want Checked // of the check that was begun last
		var ended bool
		t.Repeat(map[string]func(*rapid.T){
			"apply": func(t *rapid.T) {
				h.draw(t)
				require.NoError(t, h.apply(d, h.last()))
				if h.changes[h.last()-1].entry.Op == entry.Check {
					want, ended = checkedAt(h.last(), h.at(h.last())), false
				}
			},
			"sum": func(*rapid.T) {
				ended = !d.SumNext() || ended
			},
			"": func(t *rapid.T) {
				switch {
				case want == Checked{}:
				case ended:
					require.Equal(t, want, d.Checked())
					require.Zero(t, d.Checking())
				default:
					require.Equal(t, want.Index, d.Checking())
				}
			},
		})
	})
}

func TestADiskThatIsNotWholeIsNotChecked(t *testing.T) {
	s := fault.New(Size(chunkLen))
	d, err := Open(s, volume, 2) // whose blocks may have entry 2
	require.NoError(t, err)
	require.NoError(t, d.Apply(1, 1, &entry.Entry{Op: entry.Check}, nil))
	assert.Zero(t, d.Checking(), "its blocks are of several moments")
	require.NoError(t, d.Apply(2, 1, &entry.Entry{Op: entry.Check}, nil))
	assert.Equal(t, uint64(2), d.Checking())
}

func TestACheckEndsWhenAReplicaCatchesUp(t *testing.T) {
	r := newRebuild(t)
	require.NoError(t, r.to.Apply(1, 0, &entry.Entry{Op: entry.Check}, nil))
	require.True(t, r.to.SumNext())
	_, err := r.to.CatchUp(r.list(t))
	require.NoError(t, err)
	require.False(t, r.to.SumNext())
	assert.Zero(t, r.to.Checked(), "its blocks are of several moments")
}
