package runtime

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
)

func TestCloseEndsEverythingThatIsOpen(t *testing.T) {
	ia := open(t, "loop")
	p := connect(t, ia, channel(64))
	p.establish(t)
	for i := range 10 {
		require.NoError(t, p.b.PostRecv(uint64(i), hw.Default, p.mem.Segment(0, 8)))
	}
	queue, err := ia.NewDispatcher(evd.Config{QLen: 8})
	require.NoError(t, err)
	waiting := make(chan error, 2)
	for _, d := range []*evd.Dispatcher{queue, ia.Async()} {
		go func() {
			_, _, err := d.Wait(context.Background(), 1)
			waiting <- err
		}()
	}
	listener, err := ia.NewPSP(ep.PSPConfig{Dispatcher: queue})
	require.NoError(t, err)
	// Until the waiter waits, another call succeeds.
	for _, d := range []*evd.Dispatcher{queue, ia.Async()} {
		require.Eventually(t, func() bool { _, err := d.Dequeue(nil); return err != nil }, time.Minute, time.Millisecond)
	}

	require.NoError(t, ia.Close())
	for range 2 {
		require.ErrorIs(t, <-waiting, hw.ErrAbort)
	}
	flushed := 0
	for ev := range p.events.C() { // closed at the end
		if ev.Number == event.DTOCompletion {
			assert.Equal(t, hw.StatusFlushed, ev.Status)
			flushed++
		}
	}
	assert.Equal(t, 10, flushed)
	requireClosed(t, ia, p, listener)
	require.NoError(t, ia.Close(), "a second Close has nothing to do")
	requireCode(t, ia.CloseGraceful(), hw.InvalidHandle, hw.HandleIA)
}

// requireClosed requires that each object of a closed adapter is an invalid handle.
func requireClosed(t *testing.T, ia *IA, p *pair, psp *ep.PSP) {
	t.Helper()
	_, err := ia.NewPZ()
	requireCode(t, err, hw.InvalidHandle, hw.HandleIA)
	_, err = ia.NewDispatcher(channel(1))
	requireCode(t, err, hw.InvalidHandle, hw.HandleIA)
	_, err = ia.NewEndpoint(ep.Config{})
	requireCode(t, err, hw.InvalidHandle, hw.HandleIA)
	_, err = ia.NewPSP(ep.PSPConfig{})
	requireCode(t, err, hw.InvalidHandle, hw.HandleIA)
	_, err = IAOf(ia)
	requireCode(t, err, hw.InvalidHandle, hw.HandleIA)
	require.ErrorIs(t, p.a.PostSend(0, hw.Default), hw.ErrInvalidHandle)
	require.ErrorIs(t, p.b.Disconnect(ep.Abrupt), hw.ErrInvalidHandle)
	_, err = p.mem.Query()
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
	require.NoError(t, p.mem.Free(), "nothing is left to free")
	require.NoError(t, p.pz.Close())
	_, err = p.events.Query()
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
	require.NoError(t, psp.Close())
	assert.Zero(t, ia.MemoryStats())
}

func TestANilAdapterIsAnInvalidHandle(t *testing.T) {
	var ia *IA
	requireCode(t, ia.Close(), hw.InvalidHandle, hw.HandleIA)
	requireCode(t, ia.CloseGraceful(), hw.InvalidHandle, hw.HandleIA)
	_, err := ia.NewPZ()
	requireCode(t, err, hw.InvalidHandle, hw.HandleIA)
	assert.Zero(t, ia.Attr())
	assert.Nil(t, ia.Async())
	assert.Zero(t, ia.MemoryStats())
	assert.Empty(t, ia.Name())
}

func TestGracefulCloseIsRefusedWhileAnythingIsLeft(t *testing.T) {
	ia := open(t, "loop")
	p := connect(t, ia, channel(16))
	closers := []func() error{
		p.a.Close, p.b.Close, p.mem.Free, p.events.Close, p.pz.Close,
	}
	for _, c := range closers {
		requireCode(t, ia.CloseGraceful(), hw.InvalidState, hw.StateIAInUse)
		require.NoError(t, c())
	}
	pz, err := ia.NewPZ()
	require.NoError(t, err, "a refused close closed something")
	require.NoError(t, pz.Close())
	require.NoError(t, ia.CloseGraceful())
	_, err = ia.NewPZ()
	requireCode(t, err, hw.InvalidHandle, hw.HandleIA)
}

func TestOpeningAndClosingMayRaceWithEverything(t *testing.T) {
	for range 30 {
		ia, err := Open(context.Background(), "loop")
		require.NoError(t, err)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for {
					err := useAdapter(ia)
					if errors.Is(err, hw.ErrInsufficientResources) {
						continue // a post found its dispatcher ended
					}
					if err != nil {
						assert.ErrorIs(t, err, hw.ErrInvalidHandle)
						return
					}
				}
			})
		}
		for range 2 {
			wg.Go(func() { assert.NoError(t, ia.Close()) })
		}
		wg.Wait()
	}
}

func useAdapter(ia *IA) error {
	pz, err := ia.NewPZ()
	if err != nil {
		return err
	}
	d, err := ia.NewDispatcher(channel(8))
	if err != nil {
		return err
	}
	lmr, err := pz.Alloc(64, hw.AllPrivileges)
	if err != nil {
		return err
	}
	e, err := ia.NewEndpoint(ep.Config{PZ: pz, Recv: d, Request: d, Conn: d})
	if err != nil {
		return err
	}
	if err := e.PostRecv(1, hw.Default, lmr.Segment(0, 64)); err != nil {
		return err
	}
	return e.Close()
}
