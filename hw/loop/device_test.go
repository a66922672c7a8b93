package loop

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/internal/soft"
)

func TestTheProviderRegistersItself(t *testing.T) {
	p, ok := hw.Lookup("loop")
	require.True(t, ok)
	assert.Equal(t, New(), p)
	for _, params := range []map[string]string{{"speed": "11"}, {"handover": "-1"}, {"handover": "1048577"}, {"handover": ""}, {"notready": "5"}} {
		_, err := p.Open(hw.OpenConfig{Params: params})
		require.ErrorIs(t, err, hw.ErrInvalidParameter, params)
	}
}

func TestADeviceInUseDoesNotClose(t *testing.T) {
	dev, err := New().Open(hw.OpenConfig{Device: uniqueName()})
	require.NoError(t, err)
	inUse := &hw.Error{Type: hw.InvalidState, Sub: hw.StateIAInUse}
	zoneInUse := &hw.Error{Type: hw.InvalidState, Sub: hw.StatePZInUse}

	ln, err := dev.Listen(hw.ListenConfig{OnRequest: func(hw.Request) bool { return true }})
	require.NoError(t, err)
	require.ErrorIs(t, dev.Close(), inUse)
	require.NoError(t, ln.Close())

	zone, err := dev.NewZone()
	require.NoError(t, err)
	require.ErrorIs(t, dev.Close(), inUse)
	region, err := dev.Register(zone, make([]byte, 1), hw.LocalRead)
	require.NoError(t, err)
	require.ErrorIs(t, zone.Close(), zoneInUse)
	require.NoError(t, region.Deregister())
	require.ErrorIs(t, region.Deregister(), hw.ErrInvalidHandle)
	require.NoError(t, zone.Close())
	require.ErrorIs(t, zone.Close(), hw.ErrInvalidHandle)

	require.NoError(t, dev.Close())
	require.ErrorIs(t, dev.Close(), hw.ErrInvalidHandle)
	_, err = dev.NewZone()
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
	_, err = dev.Listen(hw.ListenConfig{OnRequest: func(hw.Request) bool { return true }})
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
	_, err = dev.NewQP(hw.QPConfig{Zone: zone, SendSink: &recorder{}, RecvSink: &recorder{}, Facts: &facts{}})
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
	_, err = dev.Register(zone, make([]byte, 1), hw.LocalRead)
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
}

func TestAZoneOfAnotherDeviceIsRefused(t *testing.T) {
	dev, other := open(t, uniqueName()), open(t, uniqueName())
	theirs, err := other.NewZone()
	require.NoError(t, err)
	defer theirs.Close()
	for _, z := range []hw.Zone{nil, (*soft.Zone)(nil), theirs} {
		_, err := dev.Register(z, make([]byte, 1), hw.LocalRead)
		require.ErrorIs(t, err, &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandlePZ})
		_, err = dev.NewQP(hw.QPConfig{Zone: z, SendSink: &recorder{}, RecvSink: &recorder{}, Facts: &facts{}})
		require.ErrorIs(t, err, &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandlePZ})
	}
	require.ErrorIs(t, (*soft.Zone)(nil).Close(), hw.ErrInvalidHandle)
	require.ErrorIs(t, (*soft.MR)(nil).Deregister(), hw.ErrInvalidHandle)
	require.ErrorIs(t, (*listener)(nil).Close(), hw.ErrInvalidHandle)
}

func TestRegisterChecksItsArguments(t *testing.T) {
	dev := open(t, uniqueName())
	zone, err := dev.NewZone()
	require.NoError(t, err)
	defer zone.Close()
	_, err = dev.Register(zone, nil, hw.LocalRead)
	require.ErrorIs(t, err, hw.ErrLength)
	_, err = dev.Register(zone, make([]byte, 1), 0x80)
	require.ErrorIs(t, err, hw.ErrInvalidParameter)
	for priv, hasRKey := range map[hw.Privileges]bool{
		hw.NoPrivileges: false, hw.LocalRead | hw.LocalWrite: false,
		hw.RemoteRead: true, hw.RemoteWrite: true, hw.RemoteAtomic: true,
	} {
		region, err := dev.Register(zone, make([]byte, 1), priv)
		require.NoError(t, err)
		assert.Equal(t, hasRKey, region.RKey() != 0, priv)
		assert.NotZero(t, region.LKey())
		require.NoError(t, region.Deregister())
	}
}

func TestNewQPChecksItsArguments(t *testing.T) {
	dev := open(t, uniqueName())
	attr := dev.Attr()
	zone, err := dev.NewZone()
	require.NoError(t, err)
	defer zone.Close()
	good := func() hw.QPConfig {
		return hw.QPConfig{
			Zone: zone, SendSink: &recorder{t: t}, RecvSink: &recorder{t: t}, Facts: &facts{t: t},
			SendDepth: attr.MaxDepth, RecvDepth: attr.MaxDepth,
			SendSegments: attr.MaxSendSegments, RecvSegments: attr.MaxRecvSegments,
			ReadsIn: attr.MaxReadsIn, ReadsOut: attr.MaxReadsOut,
		}
	}
	for name, change := range map[string]func(*hw.QPConfig){
		"no send sink":           func(c *hw.QPConfig) { c.SendSink = nil },
		"no receive sink":        func(c *hw.QPConfig) { c.RecvSink = nil },
		"no facts":               func(c *hw.QPConfig) { c.Facts = nil },
		"too deep to send":       func(c *hw.QPConfig) { c.SendDepth++ },
		"too deep to receive":    func(c *hw.QPConfig) { c.RecvDepth++ },
		"a negative depth":       func(c *hw.QPConfig) { c.RecvDepth = -1 },
		"too many send segments": func(c *hw.QPConfig) { c.SendSegments++ },
		"too many recv segments": func(c *hw.QPConfig) { c.RecvSegments++ },
		"too many reads in":      func(c *hw.QPConfig) { c.ReadsIn++ },
		"too many reads out":     func(c *hw.QPConfig) { c.ReadsOut++ },
		"a negative wait":        func(c *hw.QPConfig) { c.NotReady = -1 },
		"a completion queue":     func(c *hw.QPConfig) { c.SendCQ = fakeCQ{} },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good()
			change(&cfg)
			_, err := dev.NewQP(cfg)
			require.ErrorIs(t, err, hw.ErrInvalidParameter)
		})
	}
	cfg := good()
	cfg.SRQ = fakeSRQ{}
	_, err = dev.NewQP(cfg)
	require.ErrorIs(t, err, &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandleSRQ})
	qp, err := dev.NewQP(good())
	require.NoError(t, err)
	require.NoError(t, qp.Reset(), "a new queue pair may be reset")
	require.NoError(t, qp.Close())
}

type (
	fakeCQ  struct{ hw.CQ }
	fakeSRQ struct{ hw.SRQ }
)

func TestLimitsAreEnforced(t *testing.T) {
	d := open(t, uniqueName()).(*device)
	attr := d.Attr()
	attr.MaxQPs, attr.MaxZones, attr.MaxWindows, attr.MaxSRQs = 1, 2, 1, 1
	d.Init(soft.Config{Provider: Name, Attr: attr})
	zone, err := d.NewZone()
	require.NoError(t, err)
	cfg := hw.QPConfig{Zone: zone, SendSink: &recorder{t: t}, RecvSink: &recorder{t: t}, Facts: &facts{t: t}}
	qp, err := d.NewQP(cfg)
	require.NoError(t, err)
	_, err = d.NewQP(cfg)
	require.ErrorIs(t, err, hw.ErrInsufficientResources)
	last, err := d.NewZone()
	require.NoError(t, err)
	_, err = d.NewZone()
	require.ErrorIs(t, err, hw.ErrInsufficientResources)
	w, err := d.NewWindow(zone, nil)
	require.NoError(t, err)
	_, err = d.NewWindow(zone, nil)
	require.ErrorIs(t, err, hw.ErrInsufficientResources)
	q, err := d.NewSRQ(hw.SRQConfig{Zone: zone, Depth: 1})
	require.NoError(t, err)
	_, err = d.NewSRQ(hw.SRQConfig{Zone: zone, Depth: 1})
	require.ErrorIs(t, err, hw.ErrInsufficientResources)
	for _, c := range []interface{ Close() error }{w, q, last, qp} {
		require.NoError(t, c.Close())
	}
	require.NoError(t, zone.Close(), "an attempt that failed left no use behind")
}

func TestAttrListsOnlyWhatTheDeviceHas(t *testing.T) {
	attr := open(t, uniqueName()).Attr()
	assert.Equal(t, offered, attr.Ops)
	for _, op := range []hw.Op{hw.OpFastRegister, hw.OpInvalidate} {
		assert.False(t, attr.Ops.Has(op), op)
	}
	assert.Positive(t, attr.MaxSRQs)
	assert.Positive(t, attr.MaxWindows)
	assert.True(t, attr.NotReadyWait)
	assert.True(t, attr.Strict)
	assert.True(t, openWith(t, uniqueName(), map[string]string{"notready": "fail"}).Attr().Strict)
	assert.False(t, openWith(t, uniqueName(), map[string]string{"notready": "wait"}).Attr().Strict)
}
