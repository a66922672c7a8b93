package state

import (
	"testing"

	"github.com/stretchr/testify/require"

	"godat/examples/volume/entry"
	"godat/examples/volume/fault"
)

// cold is a store whose pages come slowly from a disk when they are read: Probe waits for the test, each time.
type cold struct {
	*fault.Store
	reads, comes chan struct{}
}

func (c *cold) Probe(_, _ int, write bool) error {
	if !write && c.reads != nil {
		c.reads <- struct{}{}
		<-c.comes
	}
	return nil
}

func TestNobodyWaitsWhileAChunkComesFromTheDisk(t *testing.T) {
	const blocks = 4 * chunkLen
	b := data(0, 4096, 1)
	write := sealed(entry.Entry{Op: entry.Write, Len: 4096}, b)
	for name, read := range map[string]func(d *Disk) error{
		"list": func(d *Disk) error { _, err := d.Snapshot(t.Context(), 0); return err },
		"copy": func(d *Disk) error { _, _, err := d.Chunk(0, make([]byte, chunkLen)); return err },
	} {
		t.Run(name, func(t *testing.T) {
			s := &cold{Store: fault.New(Size(blocks))}
			d, err := Open(s, volume, 0)
			require.NoError(t, err)
			require.NoError(t, d.Apply(1, 1, write, b))
			s.reads, s.comes = make(chan struct{}), make(chan struct{})
			done := make(chan error, 1)
			go func() { done <- read(d) }()
			<-s.reads
			require.NoError(t, d.Apply(2, 1, write, b), "it does not wait for the chunk")
			s.comes <- struct{}{}
			<-s.reads // once more, in memory by now
			index, _ := d.Applied()
			require.Equal(t, uint64(2), index)
			s.comes <- struct{}{}
			require.NoError(t, <-done)
		})
	}
}
