package soft

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// remapped is a region on a device of its own, and an accessor of the region's zone.
func remapped(t *testing.T, split bool, size int) (d *Device, m *MR, base uint64, user *accessor) {
	d = &Device{}
	d.Init(Config{
		Provider: "soft", Split: split,
		Attr: hw.Attr{MaxMR: 1 << 20, MaxMRs: 10, MaxZones: 1, MaxQPs: 1},
	})
	zone, err := d.NewZone()
	require.NoError(t, err)
	user = newAccessor(zone.(*Zone))
	mem := make([]byte, size)
	mr, err := d.Register(zone, mem, hw.LocalRead|hw.RemoteRead)
	require.NoError(t, err)
	return d, mr.(*MR), uint64(uintptr(unsafe.Pointer(&mem[0]))), user
}

func TestARegionKeepsItsKeysAndItsAddressWhenItsMemoryIsExchanged(t *testing.T) {
	for _, split := range []bool{false, true} {
		d, m, at, user := remapped(t, split, 8)
		user.begin()
		v := NewView(&d.Keys, &QP{Zone: m.zone})
		for _, size := range []uint32{8, 16, 4} { // the same, more, less
			mem := make([]byte, size)
			require.NoError(t, m.Remap(mem))
			assert.Zero(t, user.looks, "Settle waits")
			for _, key := range []struct {
				key  uint32
				need hw.Privileges
			}{{m.LKey(), hw.LocalRead}, {m.RKey(), hw.RemoteRead}} {
				assert.Equal(t, unsafe.Pointer(&mem[0]), v.Reach(at, size, key.key, key.need))
				assert.Nil(t, v.Reach(at, size+1, key.key, key.need), "not a byte more")
				assert.Nil(t, v.Reach(at, size, key.key, hw.LocalWrite|hw.RemoteWrite))
			}
		}
		user.onLook = user.end
		m.Settle()
		assert.NotZero(t, user.looks)
		user.looks = 0
		user.present.Leave()
		m.Settle()
		assert.Zero(t, user.looks, "it accesses nothing any more")
	}
}

func TestARegionThatIsGoneGetsNoOtherMemory(t *testing.T) {
	d, m, at, _ := remapped(t, false, 8)
	require.ErrorIs(t, m.Remap(nil), hw.ErrLength)
	require.NoError(t, m.Deregister())
	require.ErrorIs(t, m.Remap(make([]byte, 8)), hw.ErrInvalidHandle)
	v := NewView(&d.Keys, &QP{Zone: m.zone})
	assert.Nil(t, v.Reach(at, 8, m.LKey(), hw.LocalRead))
}

// While memory of the same length takes the place of the former one, the key is alive.
func TestNoLookUpFindsTheKeyDeadWhileItsMemoryIsExchanged(t *testing.T) {
	d, m, at, _ := remapped(t, false, 8)
	v := NewView(&d.Keys, &QP{Zone: m.zone})
	stop, done := make(chan struct{}), make(chan int)
	go func() {
		dead := 0
		for {
			select {
			case <-stop:
				done <- dead
				return
			default:
				if v.Reach(at, 8, m.LKey(), hw.LocalRead) == nil {
					dead++
				}
			}
		}
	}()
	areas := [2][]byte{make([]byte, 8), make([]byte, 8)}
	for i := range 20000 {
		require.NoError(t, m.Remap(areas[i%2]))
	}
	close(stop)
	assert.Zero(t, <-done)
}

func TestOnlyMemoryForWritesOfAPeerThatWasExchangedMayHoldAnything(t *testing.T) {
	for _, split := range []bool{false, true} {
		for _, priv := range []hw.Privileges{
			hw.LocalWrite | hw.RemoteWrite, hw.LocalRead | hw.LocalWrite | hw.RemoteWrite,
			hw.RemoteRead | hw.RemoteWrite, hw.LocalWrite | hw.RemoteWrite | hw.RemoteAtomic, hw.LocalWrite, hw.LocalRead,
		} {
			d, first, _, _ := remapped(t, split, 8)
			mem := make([]byte, 8)
			mr, err := d.Register(first.zone, mem, priv)
			require.NoError(t, err)
			m, at := mr.(*MR), uint64(uintptr(unsafe.Pointer(&mem[0])))
			v := NewView(&d.Keys, &QP{Zone: m.zone})
			stranger := NewView(&d.Keys, &QP{Zone: new(Zone)})
			assert.Nil(t, v.Scratch(at, m.RKey()), "before an exchange")
			require.NoError(t, m.Remap(mem))
			if priv&Remote != hw.RemoteWrite {
				assert.Nil(t, v.Scratch(at, m.RKey()), priv)
				continue
			}
			assert.Equal(t, unsafe.SliceData(mem[3:]), unsafe.SliceData(v.Scratch(at+3, m.RKey())))
			assert.Len(t, v.Scratch(at+3, m.RKey()), 5)
			assert.Nil(t, v.Scratch(at+8, m.RKey()))
			assert.Nil(t, v.Scratch(at-1, m.RKey()))
			assert.Nil(t, stranger.Scratch(at, m.RKey()))
			require.NoError(t, m.Deregister())
			assert.Nil(t, v.Scratch(at, m.RKey()))
		}
	}
}
