package mem_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/loop"
	"godat/hw/sim"
	"godat/internal/door"
	"godat/mem"
)

// lender opens a domain on a provider, with a zone.
func lender(t *testing.T, p hw.Provider) *mem.PZ {
	dev, err := p.Open(hw.OpenConfig{Device: "loan-test"})
	require.NoError(t, err)
	d := mem.NewDomain(door.Key{}, dev, nil)
	t.Cleanup(func() { require.NoError(t, errors.Join(d.Close(), dev.Close())) })
	pz, err := d.NewPZ()
	require.NoError(t, err)
	return pz
}

func TestALoanTakesMemoryOfUpToItsSize(t *testing.T) {
	pz := lender(t, loop.New())
	l, err := pz.NewLoan(100, hw.LocalRead)
	require.NoError(t, err)
	require.NoError(t, l.Lend(make([]byte, 100)))
	require.ErrorIs(t, l.Lend(make([]byte, 101)), hw.ErrLength)
	require.ErrorIs(t, l.Lend(nil), hw.ErrLength)
	require.NoError(t, l.TakeBack(make([]byte, 100)))
	for off, ok := range map[int]bool{0: true, 50: true, 51: false} {
		s := l.Segment(off, 50)
		_, refusal := pz.Zone(door.Key{}).Resolve([]hw.SGE{{Addr: s.Addr, Len: s.Len, LKey: s.Context}}, hw.LocalRead)
		assert.Equal(t, ok, refusal == nil, "50 bytes from %d on", off)
	}
	require.NoError(t, l.Free())
	require.ErrorIs(t, l.Lend(make([]byte, 1)), hw.ErrInvalidHandle)
	require.ErrorIs(t, l.TakeBack(make([]byte, 1)), hw.ErrInvalidHandle)
}

// settling is a device that counts in waits how often a region waits for accesses.
type settling struct {
	hw.Provider
	hw.Device
	waits int
}

func (d *settling) Open(cfg hw.OpenConfig) (_ hw.Device, err error) {
	d.Device, err = d.Provider.Open(cfg)
	return d, err
}

func (d *settling) Register(z hw.Zone, buf []byte, priv hw.Privileges) (hw.MR, error) {
	mr, err := d.Device.Register(z, buf, priv)
	return settlingMR{mr, mr.(hw.Remapper), d}, err
}

type settlingMR struct {
	hw.MR
	hw.Remapper
	dev *settling
}

func (m settlingMR) Settle() {
	m.dev.waits++
	m.Remapper.Settle()
}

func TestTakeBackWaitsForAccessesInProgressAndLendDoesNot(t *testing.T) {
	d := &settling{Provider: loop.New()}
	l, err := lender(t, d).NewLoan(100, hw.LocalRead)
	require.NoError(t, err)
	require.NoError(t, l.Lend(make([]byte, 100)))
	assert.Zero(t, d.waits)
	require.NoError(t, l.TakeBack(make([]byte, 100)))
	assert.Equal(t, 1, d.waits)
}

func TestADeviceThatCanNotExchangeMemoryMakesNoLoan(t *testing.T) {
	pz := lender(t, sim.New(sim.Config{Seed: 1}))
	_, err := pz.NewLoan(100, hw.LocalRead)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.NoError(t, pz.Close(), "nothing of it is left")
}

func TestARegionWithMemoryOfItsOwnIsLentNone(t *testing.T) {
	l, err := lender(t, loop.New()).Alloc(100, hw.LocalRead)
	require.NoError(t, err)
	require.ErrorIs(t, l.Lend(make([]byte, 1)), hw.ErrInvalidState)
	require.ErrorIs(t, l.TakeBack(make([]byte, 1)), hw.ErrInvalidState)
	require.NoError(t, l.Free())
	for _, none := range []*mem.LMR{nil, {}} {
		require.ErrorIs(t, none.Lend(make([]byte, 1)), hw.ErrInvalidHandle)
		require.ErrorIs(t, none.TakeBack(make([]byte, 1)), hw.ErrInvalidHandle)
	}
}
