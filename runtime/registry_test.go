package runtime

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/loop"
)

// recording opens loop devices and remembers the configuration of each.
type recording struct {
	info   hw.Info
	opened []hw.OpenConfig
}

func (r *recording) Name() string  { return r.info.Name }
func (r *recording) Info() hw.Info { return r.info }

func (r *recording) Open(cfg hw.OpenConfig) (hw.Device, error) {
	r.opened = append(r.opened, cfg)
	return loop.New().Open(hw.OpenConfig{Async: cfg.Async})
}

func register(t *testing.T, info hw.Info) *recording {
	t.Helper()
	r := &recording{info: info}
	require.NoError(t, hw.Register(r))
	t.Cleanup(func() { require.NoError(t, hw.Unregister(info.Name)) })
	return r
}

func TestOpenMatchesVersionAndThreadSafety(t *testing.T) {
	register(t, hw.Info{Name: "many", Major: 1, Minor: 2, ThreadSafe: true})
	two := &recording{info: hw.Info{Name: "many", Major: 2}}
	require.NoError(t, hw.Register(two))
	cases := map[string]struct {
		name string
		opts []Option
		sub  hw.Subtype
	}{
		"any":                          {"many", nil, 0},
		"the one of a version":         {"many", []Option{WithVersion(1, 2), WithThreadSafe()}, 0},
		"another major":                {"many", []Option{WithVersion(3, 0)}, hw.MajorNotFound},
		"another minor":                {"many", []Option{WithVersion(2, 2)}, hw.MinorNotFound},
		"thread-safe":                  {"many", []Option{WithVersion(2, 0), WithThreadSafe()}, hw.ThreadSafetyNotFound},
		"a given provider's":           {"many", []Option{WithProvider(two), WithVersion(2, 0)}, 0},
		"not of a given provider":      {"many", []Option{WithProvider(two), WithVersion(1, 2)}, hw.MajorNotFound},
		"not of an unregistered name":  {"few", []Option{WithVersion(2, 0)}, hw.NameNotRegistered},
		"loop is thread-safe, DAT 2.0": {"loop", []Option{WithVersion(2, 0), WithThreadSafe()}, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.sub == 0 {
				open(t, c.name, c.opts...)
				return
			}
			_, err := Open(context.Background(), c.name, c.opts...)
			requireCode(t, err, hw.ProviderNotFound, c.sub)
		})
	}
}

func TestAProviderIsInUseWhileAnAdapterIsOpen(t *testing.T) {
	require.NoError(t, hw.Register(&recording{info: hw.Info{Name: "busy", Major: 2}}))
	ia := open(t, "busy")
	requireCode(t, hw.Unregister("busy"), hw.ProviderInUse, hw.NoSubtype)
	_, err := ia.NewPZ()
	require.NoError(t, err)
	require.ErrorIs(t, ia.CloseGraceful(), hw.ErrInvalidState)
	requireCode(t, hw.Unregister("busy"), hw.ProviderInUse, hw.NoSubtype)
	require.NoError(t, ia.Close())

	// A failed Open leaves nothing behind.
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, opts := range [][]Option{
		{WithUpcalls(-1)},
		{WithAsync(ia.Async())}, // closed
		nil,
	} {
		_, err := Open(canceled, "busy", opts...)
		require.Error(t, err)
	}
	require.NoError(t, hw.Unregister("busy"))
}

func TestAProviderIsInUseUntilALateDeviceIsClosed(t *testing.T) {
	p := &slowProvider{entered: make(chan struct{}), gate: make(chan struct{}), closed: make(chan struct{})}
	require.NoError(t, hw.Register(p))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		_, err := Open(ctx, "slow")
		done <- err
	}()
	<-p.entered
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	requireCode(t, hw.Unregister("slow"), hw.ProviderInUse, hw.NoSubtype)
	close(p.gate)
	<-p.closed
	require.Eventually(t, func() bool { return hw.Unregister("slow") == nil }, time.Minute, time.Millisecond)
}

const testRegistry = `
ofa-v2-ib0      u2.0 nonthreadsafe default libdaplofa.so.2         dapl.2.0 "ib0 0" ""
ofa-v2-mlx4_0-2 u2.0 nonthreadsafe default /lib/libdaploscm.so.2   dapl.2.0 "mlx4_0 2 a=1 flag" "b=2 c=x=y"
OpenIB-cma      u1.2 nonthreadsafe default libdaplcma.so.1         dapl.1.2 "ib0 0" ""
kernel-only     k2.0 nonthreadsafe default libdaplofa.so.2         dapl.2.0 "ib0 0" ""
stranger        u2.0 threadsafe    default libother.so             x.1.0    "" ""
here            u2.0 threadsafe    default godat/loop              godat.0.1 "static-test" ""
bare            u2.0 threadsafe    default godat/loop              godat.0.1 "" ""
`

func TestNamesOfTheStaticRegistryOpenTheirProvider(t *testing.T) {
	useRegistry(t, testRegistry)
	ibv := register(t, hw.Info{Name: "ibv", Major: 2, ThreadSafe: true})
	ia := open(t, "ofa-v2-ib0", WithVersion(2, 0), WithThreadSafe())
	assert.Equal(t, "ofa-v2-ib0", ia.Name())
	requireCode(t, hw.Unregister("ibv"), hw.ProviderInUse, hw.NoSubtype)
	open(t, "ofa-v2-mlx4_0-2", WithParams(map[string]string{"a": "mine", "d": ""}))
	open(t, "OpenIB-cma", WithVersion(1, 2))
	require.Len(t, ibv.opened, 3)
	assert.Equal(t, "ib0", ibv.opened[0].Device)
	assert.Nil(t, ibv.opened[0].Params)
	assert.Equal(t, "mlx4_0", ibv.opened[1].Device)
	assert.Equal(t, map[string]string{"port": "2", "a": "mine", "flag": "", "b": "2", "c": "x=y", "d": ""}, ibv.opened[1].Params)
	assert.Equal(t, "static-test", open(t, "here").Attr().Device)
	assert.Equal(t, "loop", open(t, "bare").Attr().Provider)
}

func TestNamesOfTheStaticRegistryMatchTheirVersion(t *testing.T) {
	useRegistry(t, testRegistry+"broken line\n")
	bg := context.Background()
	for name, sub := range map[string]hw.Subtype{
		"ofa-v2-ib0":  hw.NameNotRegistered, // no provider is registered as ibv
		"kernel-only": hw.NameNotRegistered,
		"stranger":    hw.NameNotRegistered,
		"absent":      hw.NameNotRegistered,
	} {
		_, err := Open(bg, name)
		requireCode(t, err, hw.ProviderNotFound, sub)
	}
	_, err := Open(bg, "absent")
	require.ErrorContains(t, err, "line 9: 2 fields", "a broken file is not kept quiet")
	_, err = Open(bg, "ofa-v2-ib0")
	require.ErrorContains(t, err, "libdaplofa.so.2")
	_, err = Open(bg, "here", WithVersion(1, 2))
	requireCode(t, err, hw.ProviderNotFound, hw.MajorNotFound)
	_, err = Open(bg, "here", WithVersion(2, 1))
	requireCode(t, err, hw.ProviderNotFound, hw.MinorNotFound)
	register(t, hw.Info{Name: "ibv", Major: 2})
	_, err = Open(bg, "ofa-v2-ib0", WithThreadSafe())
	requireCode(t, err, hw.ProviderNotFound, hw.ThreadSafetyNotFound)
}

func TestProvidersListsWhatOpenOpens(t *testing.T) {
	useRegistry(t, testRegistry+`loop u1.2 threadsafe default godat/loop godat.0.1 "hidden" ""`)
	register(t, hw.Info{Name: "ibv", Major: 2, ThreadSafe: true})
	list, err := Providers()
	require.NoError(t, err)
	assert.Equal(t, []hw.Info{
		{Name: "ibv", Major: 2, ThreadSafe: true},
		{Name: "iwarp", Major: 2, ThreadSafe: true},
		{Name: "loop", Major: 2, ThreadSafe: true},
		{Name: "ofa-v2-ib0", Major: 2},
		{Name: "ofa-v2-mlx4_0-2", Major: 2},
		{Name: "OpenIB-cma", Major: 1, Minor: 2},
		{Name: "here", Major: 2, ThreadSafe: true},
		{Name: "bare", Major: 2, ThreadSafe: true},
	}, list)
	for _, info := range list {
		ia, err := Open(context.Background(), info.Name, WithVersion(info.Major, info.Minor))
		require.NoError(t, err)
		require.NoError(t, ia.CloseGraceful())
	}
	useRegistry(t, "broken")
	list, err = Providers()
	require.Error(t, err)
	assert.Len(t, list, 3)
}

// TestFFTHardwareConnection has the cases of dapltest's functional test hwconn.
func TestFFTHardwareConnection(t *testing.T) {
	t.Setenv("DAT_OVERRIDE", filepath.Join(t.TempDir(), "absent"))
	bg := context.Background()
	t.Run("HW-0 open, then close gracefully", func(t *testing.T) {
		ia, err := Open(bg, "loop")
		require.NoError(t, err)
		require.NotNil(t, ia.Async())
		assert.Equal(t, "loop", ia.Attr().Provider)
		require.NoError(t, ia.CloseGraceful())
	})
	t.Run("HW-1 open what is not there", func(t *testing.T) {
		for _, name := range []string{"40", "x", "xsdf", "x34", "34df"} {
			_, err := Open(bg, name)
			requireCode(t, err, hw.ProviderNotFound, hw.NameNotRegistered)
		}
		_, err := Open(bg, strings.Repeat("x", 255))
		requireCode(t, err, hw.ProviderNotFound, hw.NameNotRegistered)
		for _, name := range []string{"", strings.Repeat("x", 256)} {
			_, err := Open(bg, name)
			requireCode(t, err, hw.InvalidParameter, hw.Arg1)
		}
	})
	t.Run("HW-2 close nothing", func(t *testing.T) {
		requireCode(t, (*IA)(nil).Close(), hw.InvalidHandle, hw.HandleIA)
		requireCode(t, (*IA)(nil).CloseGraceful(), hw.InvalidHandle, hw.HandleIA)
	})
	t.Run("HW-3 close abruptly with an endpoint", func(t *testing.T) {
		ia := open(t, "loop")
		p := connect(t, ia, channel(16))
		require.NoError(t, ia.Close())
		require.ErrorIs(t, p.a.PostSend(0, hw.Default), hw.ErrInvalidHandle)
		require.NoError(t, p.mem.Free())
		assert.Zero(t, ia.MemoryStats())
	})
	t.Run("HW-4 close gracefully with an endpoint", func(t *testing.T) {
		ia := open(t, "loop")
		pz, err := ia.NewPZ()
		require.NoError(t, err)
		e, err := ia.NewEndpoint(ep.Config{PZ: pz})
		require.NoError(t, err)
		requireCode(t, ia.CloseGraceful(), hw.InvalidState, hw.StateIAInUse)
		_, err = ia.NewPZ()
		require.NoError(t, err, "the adapter is still usable")
		_, err = e.Query()
		require.NoError(t, err)
	})
	t.Run("HW-5 close twice", func(t *testing.T) {
		ia := open(t, "loop")
		require.NoError(t, ia.CloseGraceful())
		requireCode(t, ia.CloseGraceful(), hw.InvalidHandle, hw.HandleIA)
		require.NoError(t, ia.Close(), "as io.Closer's mostly are, Close is idempotent")
	})
	t.Run("HW-8 another major version", func(t *testing.T) {
		_, err := Open(bg, "loop", WithVersion(1, 2))
		requireCode(t, err, hw.ProviderNotFound, hw.MajorNotFound)
	})
}
