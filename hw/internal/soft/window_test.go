package soft

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// A bind again kills the old key, and then waits for the accesses by it. A connection that breaks
// meanwhile flushes the bind.
func TestABindThatIsFlushedWhileItWaitsLeavesNoRegionInUse(t *testing.T) {
	for name, again := range map[string]uint64{"a bind": 8, "an unbind": 0} {
		t.Run(name, func(t *testing.T) {
			d := &Device{}
			d.Init(Config{Provider: "soft", Attr: hw.Attr{MaxMR: 1 << 20, MaxMRs: 10, MaxZones: 1, MaxQPs: 1, MaxWindows: 1}})
			zone, err := d.NewZone()
			require.NoError(t, err)
			q := &QP{Zone: zone.(*Zone)}
			region := func() (*MR, hw.Bind) {
				mem := make([]byte, 8)
				mr, err := d.Register(zone, mem, hw.LocalRead|hw.LocalWrite|hw.RemoteRead)
				require.NoError(t, err)
				return mr.(*MR), hw.Bind{MR: mr, Addr: addrOf(mem), Len: 8, Priv: hw.RemoteRead}
			}
			window, err := d.NewWindow(zone, nil)
			require.NoError(t, err)
			w := window.(*Window)
			old, first := region()
			first.Key = w.NextKey()
			ok, _, _ := w.BeginBind(q, &first)
			require.True(t, ok)
			require.True(t, w.EndBind(q, &first))
			require.ErrorIs(t, old.Deregister(), hw.ErrInvalidState)

			other, second := region()
			second.Key, second.Len = w.NextKey(), again
			ok, used, _ := w.BeginBind(q, &second)
			require.True(t, ok)
			require.True(t, used)
			assert.ErrorIs(t, old.Deregister(), hw.ErrInvalidState, "accesses may be in progress")
			w.Forget(second.Key)
			assert.NoError(t, old.Deregister())
			assert.NoError(t, other.Deregister())

			user := newAccessor(zone.(*Zone))
			user.begin()
			user.onLook = user.end
			require.NoError(t, w.Close())
			assert.NotZero(t, user.looks, "accesses by the key that died may be in progress")
			user.present.Leave()
		})
	}
}

// addrOf is the address of memory, as a bind has it.
func addrOf(mem []byte) uint64 { return uint64(uintptr(unsafe.Pointer(&mem[0]))) }
