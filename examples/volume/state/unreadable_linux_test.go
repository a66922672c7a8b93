package state

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/store"
	"godat/examples/volume/entry"
)

// A page of a mapped file that can't be read is a signal to whoever touches it, as on a disk with a bad sector.
func TestABadSectorIsAnError(t *testing.T) {
	const blocks = 4 * chunkLen
	b := data(0, 4096, 1)
	at := uint64(3 * chunkLen)
	write := sealed(entry.Entry{Op: entry.Write, Off: at, Len: 4096}, b)
	for name, touch := range map[string]func(d *Disk) error{
		"write": func(d *Disk) error { return d.Apply(2, 1, write, b) },
		"zero": func(d *Disk) error {
			return d.Apply(2, 1, sealed(entry.Entry{Op: entry.Zero, Off: at, Len: 4096}, nil), nil)
		},
		"probe":  func(d *Disk) error { return d.Probe(int(at), 4096) },
		"list":   func(d *Disk) error { _, err := d.Snapshot(t.Context(), 0); return err },
		"copy":   func(d *Disk) error { _, _, err := d.Chunk(at, make([]byte, chunkLen)); return err },
		"settle": func(d *Disk) error { return d.Settle(0, blocks) },
		"check": func(d *Disk) error {
			if err := d.Apply(2, 1, &entry.Entry{Op: entry.Check}, nil); err != nil {
				return err
			}
			for d.SumNext() {
				require.Zero(t, d.Checked())
			}
			return d.Apply(3, 1, &entry.Entry{}, nil)
		},
		"release": func(d *Disk) error { _, err := d.Release(); return err },
		"catch up": func(d *Disk) error {
			c, err := d.CatchUp(Snapshot{Index: 5, Whole: 5, Size: blocks, Chunks: []Chunk{{Off: at, CRC: 1}}})
			if err == nil {
				_, more := c.Next()
				require.False(t, more)
				err = c.Finish()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "disk")
			s, err := store.OpenFile(path, Size(blocks))
			require.NoError(t, err)
			d, err := Open(s, volume, 0)
			require.NoError(t, err)
			require.NoError(t, d.Apply(1, 1, write, b))
			if name == "settle" {
				require.NoError(t, d.Apply(2, 1, sealed(entry.Entry{Op: entry.Zero, Len: blocks}, nil), nil))
			}
			require.NoError(t, os.Truncate(path, marksLen+2*chunkLen))
			require.ErrorIs(t, touch(d), store.ErrUnreadable)
			require.NoError(t, os.Truncate(path, int64(Size(blocks))))
			require.NoError(t, s.Close())
		})
	}
}
