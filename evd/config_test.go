package evd

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

func TestADispatcherMadeWithoutAMaximumGrows(t *testing.T) {
	for _, mode := range []Mode{ModeQueue, ModeCallback} {
		d := newDispatcher(t, Config{Mode: mode, QLen: 2})
		for _, qlen := range []int{3, 100, 1, 5000, MaxQLen} {
			require.NoError(t, d.Resize(qlen), mode)
			require.True(t, d.inner.Main().Reserve(qlen))
			require.False(t, d.inner.Main().Reserve(1))
			d.inner.Main().Release(qlen)
		}
		isError(t, d.Resize(MaxQLen+1), hw.InsufficientResources, hw.ResourceTEVD, mode)
	}
	for _, mode := range []Mode{ModeChannel, ModeBatch} {
		d := newDispatcher(t, Config{Mode: mode, QLen: 2})
		isError(t, d.Resize(3), hw.InsufficientResources, hw.ResourceTEVD, mode)
	}
	d := newDispatcher(t, Config{QLen: 2, MaxLen: 4})
	isError(t, d.Resize(5), hw.InsufficientResources, hw.ResourceTEVD)
}

// An iterator that waits for an event takes it as a waiter does, without a trigger
// of the CNO. Events that the iterator leaves behind trigger the CNO.
func TestEventsThatAnIteratorLeavesTriggerTheCNO(t *testing.T) {
	for name, tc := range map[string]struct {
		events []uint64
		left   bool
	}{
		"nothing":   {list(1), false},
		"one event": {list(1, 2), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, err := NewCNO(CNOConfig{})
				require.NoError(t, err)
				d := newDispatcher(t, Config{CNO: c})
				defer func() { d.inner.Abort(); require.NoError(t, c.Close()) }()
				go func() {
					for range d.Events(t.Context()) {
						break
					}
				}()
				synctest.Wait()
				require.True(t, d.inner.Main().Reserve(len(tc.events)))
				for _, cookie := range tc.events {
					d.inner.Main().Put(dto(cookie))
				}
				d.inner.Main().Flush()
				synctest.Wait()
				hint, err := c.Trigger()
				if tc.left {
					require.NoError(t, err)
					assert.Same(t, d, hint)
				} else {
					require.ErrorIs(t, err, &hw.Error{Type: hw.QueueEmpty})
				}
			})
		})
	}
}

func TestRouteChecksItsArguments(t *testing.T) {
	d := newDispatcher(t, Config{})
	for name, tc := range map[string]struct {
		mask, value uint64
		qlen        int
		typ         hw.Type
		sub         hw.Subtype
	}{
		"a value outside its mask": {0xf0, 0x11, 1, hw.InvalidParameter, hw.Arg2},
		"no length":                {0xf0, 0x10, 0, hw.InvalidParameter, hw.Arg3},
		"too long":                 {0xf0, 0x10, MaxQLen + 1, hw.InsufficientResources, hw.ResourceTEVD},
	} {
		_, err := d.Route(tc.mask, tc.value, tc.qlen)
		isError(t, err, tc.typ, tc.sub, name)
	}
	assert.Same(t, d.inner.Main(), d.inner.For(0x10))
}

func TestOvercommittingIsForQueues(t *testing.T) {
	for _, mode := range []Mode{ModeChannel, ModeBatch, ModeCallback} {
		_, err := New(called(Config{QLen: 1, Mode: mode, Overcommit: true}))
		isError(t, err, hw.InvalidParameter, hw.Arg4, mode)
	}
}
