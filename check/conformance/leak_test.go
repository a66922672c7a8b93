package conformance

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// find looks for half a second before it complains of a goroutine; in a bubble that takes
// no time.
func TestTheLeakCheckFindsTheGoroutinesOfAnAdapter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch()
		require.NoError(t, w.find(patience))
		ia, err := dat.Open(t.Context(), "loop")
		require.NoError(t, err)
		require.NoError(t, w.find(patience), "an idle adapter has none")
		d, err := ia.NewDispatcher(evd.Config{
			QLen: 1, Mode: evd.ModeCallback, Streams: event.StreamSoftware, Callback: func([]event.Event) {},
		})
		require.NoError(t, err)
		require.NoError(t, d.PostSoftware(nil)) // with which the pool of upcalls begins
		assert.ErrorContains(t, w.find(0), "goroutine")
		require.NoError(t, ia.Close())
		assert.NoError(t, w.find(patience))
	})
}

// Close of an adapter finds the objects that are left on it, and the memory that is
// left in its books.
func TestCloseFindsWhatIsLeftOnAnAdapter(t *testing.T) {
	for name, c := range map[string]struct {
		leave        func(*dat.IA, *mem.PZ) error
		refusal, has string
	}{
		"nothing":    {func(*dat.IA, *mem.PZ) error { return nil }, "1 zones are open", "left: 0 regions of 0 bytes, 0 windows, 1 zones, 0 mappings"},
		"a region":   {func(_ *dat.IA, pz *mem.PZ) error { return errorOf(pz.Register(make([]byte, 64), hw.AllPrivileges)) }, "1 regions", "left: 1 regions of 64 bytes, 0 windows, 1 zones, 0 mappings"},
		"a mapping":  {func(_ *dat.IA, pz *mem.PZ) error { return errorOf(pz.Alloc(64, hw.AllPrivileges)) }, "1 regions", "1 mappings of"},
		"a window":   {func(_ *dat.IA, pz *mem.PZ) error { return errorOf(pz.NewRMR()) }, "1 windows", "left: 0 regions of 0 bytes, 1 windows"},
		"an EVD":     {func(ia *dat.IA, _ *mem.PZ) error { return errorOf(ia.NewDispatcher(evd.Config{QLen: 4})) }, "1 dispatchers", ""},
		"a free one": {leaveFreed, "1 zones are open", "left: 0 regions of 0 bytes, 0 windows, 1 zones, 1 mappings of"},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch()
			ia, err := dat.Open(t.Context(), "loop")
			require.NoError(t, err)
			pz, err := ia.NewPZ()
			require.NoError(t, err)
			require.NoError(t, c.leave(ia, pz))
			assert.ErrorContains(t, books(ia), c.has)
			assert.ErrorContains(t, closeAdapter(ia), c.refusal)
			if err := closeAdapter(ia); name == "a mapping" { // which is the program's until it frees the region
				assert.ErrorContains(t, err, "0 regions of 0 bytes, 0 windows, 0 zones, 1 mappings")
			} else {
				assert.NoError(t, err, "it is closed by now")
			}
			assert.NoError(t, w.find(patience))
		})
	}
}

// leaveFreed leaves nothing but the mapped range of a region that is freed.
func leaveFreed(_ *dat.IA, pz *mem.PZ) error {
	m, err := pz.Alloc(64, hw.AllPrivileges)
	return errors.Join(err, m.Free())
}
