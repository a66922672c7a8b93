package node

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/target"
)

func TestARangeOfZerosIsOneEntryOfTheLogAndBecomesZerosEverywhere(t *testing.T) {
	c := newTrio(t, nil)
	leader := c.leader(nil)
	d := leader.Device()
	w, answer := target.NewWrite()
	w.Len = 16 << 10
	d.Place(w)
	require.NoError(t, answer())
	for i := range w.Len {
		d.Room()[w.At+i] = 7
	}
	d.Take(w)
	require.NoError(t, answer())
	last := leader.Status().Last
	require.NoError(t, d.Zero(0, blocks))
	require.Equal(t, last+1, leader.Status().Last)
	require.NoError(t, d.Probe(0, blocks, false))
	require.True(t, bytes.Equal(make([]byte, blocks), d.Memory()), "they are there before they are read")
	for i := range c.all {
		m := &c.all[i]
		c.eventually(func() bool { return m.Status().Applied > last && !m.Node.disk.Zeroing() }, "a node does not write the zeros")
		require.True(t, bytes.Equal(make([]byte, blocks), m.Node.disk.Memory()))
	}
}
