package stream

import (
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/loop"
	dat "godat/runtime"
)

// vain is a device that puts octets of no write into the memory of a loan, as it may until
// OnlyWrites keeps it from that; see [hw.Remapper].
type vain struct {
	hw.Provider
	hw.Device
	exchanged func() // called when the memory was exchanged, before Settle returns; while nil, Remap leaves the memory as it is
}

func (d *vain) Open(cfg hw.OpenConfig) (_ hw.Device, err error) {
	d.Device, err = d.Provider.Open(cfg)
	return d, err
}

func (d *vain) Register(z hw.Zone, mem []byte, priv hw.Privileges) (hw.MR, error) {
	mr, err := d.Device.Register(z, mem, priv)
	if err != nil || priv != forPeer {
		return mr, err
	}
	return &vainMR{MR: mr, Remapper: mr.(hw.Remapper), dev: d}, nil
}

type vainMR struct {
	hw.MR
	hw.Remapper
	dev        *vain
	mem        []byte // what the region was lent
	onlyWrites bool
}

// readInVain changes all bytes of the memory.
func (m *vainMR) readInVain() {
	for i := range m.mem {
		m.mem[i]++
	}
}

func (m *vainMR) OnlyWrites() {
	if !m.onlyWrites {
		m.readInVain()
	}
	m.onlyWrites = true
	m.Remapper.OnlyWrites()
}

func (m *vainMR) Remap(mem []byte) error {
	if !m.onlyWrites && m.dev.exchanged != nil {
		m.readInVain()
	}
	m.mem, m.onlyWrites = mem, false
	return m.Remapper.Remap(mem)
}

func (m *vainMR) Settle() {
	m.Remapper.Settle()
	if m.dev.exchanged != nil {
		m.dev.exchanged()
	}
}

// A Read whose deadline has passed leaves its buffer, and the peer writes to the next one right
// behind the exchange. An octet that changes the first buffer in vain between the glance and
// the exchange would be copied over the write.
func TestAReadThatLeavesItsBufferTakesNothingThatCameInVainForBytes(t *testing.T) {
	d := &vain{Provider: loop.Provider{}}
	client, server := openRig(t, "loop", Config{}, dat.WithProvider(d)).pair()
	require.True(t, warm(t, client, server))
	p, want := make([]byte, leastOffered), body(leastOffered, 2)
	got := reading(server, p)
	awaitOffer(t, client)
	d.exchanged = func() {
		d.exchanged = nil
		_, err := client.Write(want)
		assert.NoError(t, err)
	}
	require.NoError(t, server.SetReadDeadline(time.Now()))
	require.ErrorIs(t, (<-got).err, os.ErrDeadlineExceeded)
	require.Nil(t, d.exchanged, "the Read has exchanged its buffer")
	require.NoError(t, server.SetReadDeadline(time.Time{}))
	_, err := io.ReadFull(server, p)
	require.NoError(t, err)
	assert.True(t, string(want) == string(p))
	assert.Equal(t, client.out.produced.Load(), server.in.end.Load(), "the write went to the buffer")
}
