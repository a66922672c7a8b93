package mem

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/internal/door"
)

func TestFreeEndsARegionOnce(t *testing.T) {
	dev, d, pz := newTestPZ(t)
	l := alloc(t, pz, 4096, hw.AllPrivileges)
	require.NoError(t, l.Free())
	assert.Zero(t, dev.registered())
	assert.Nil(t, l.Bytes())
	_, err := l.Query()
	requireCode(t, err, hw.InvalidHandle, hw.HandleLMR)
	require.NoError(t, l.Free(), "freeing it again does nothing")
	regions, size := registeredIn(d)
	assert.Zero(t, regions)
	assert.Zero(t, size)
}

func TestASecondFreeDoesNotTouchTheRegionThatGotTheContext(t *testing.T) {
	_, _, pz := newTestPZ(t)
	first := alloc(t, pz, 64, hw.LocalRead)
	require.NoError(t, first.Free())
	l := alloc(t, pz, 64, hw.LocalRead)
	first.context = l.context // as if the new region had got the same context
	require.NoError(t, first.Free())
	_, refusal := resolve(pz, make([]hw.SGE, 1), []Segment{l.Segment(0, 64)}, hw.LocalRead)
	require.Nil(t, refusal)
}

func TestFreedMemoryStaysReadableAsZerosUntilTheDomainCloses(t *testing.T) {
	dev := newFakeDevice()
	d := NewDomain(door.Key{}, dev, nil)
	pz, err := d.NewPZ()
	require.NoError(t, err)
	for _, opts := range [][]Option{nil, {WithHugePages()}} {
		l := alloc(t, pz, 3<<20, hw.AllPrivileges, opts...)
		b := l.Bytes()
		for i := range b {
			b[i] = 0xff
		}
		require.NoError(t, l.Free())
		assert.True(t, bytes.Equal(b, make([]byte, len(b))), "freed memory is not zero")
		b[0], b[len(b)-1] = 1, 1 // a mistaken write does no harm
	}
	ranges, _ := mappedIn(d)
	assert.Equal(t, 2, ranges)
	require.NoError(t, d.Close())
	requireEmpty(t, dev, d)
}

func TestFreedMemoryIsGivenBackAtOnceIfAsked(t *testing.T) {
	_, d, pz := newTestPZ(t)
	l := alloc(t, pz, 1<<20, hw.AllPrivileges, WithUnmapOnFree())
	ranges, mapped := mappedIn(d)
	assert.Equal(t, 1, ranges)
	assert.EqualValues(t, 1<<20, mapped)
	require.NoError(t, l.Free())
	ranges, mapped = mappedIn(d)
	assert.Zero(t, ranges)
	assert.Zero(t, mapped)
}

func TestStatsFollowEveryRegion(t *testing.T) {
	_, d, pz := newTestPZ(t)
	var (
		live []*LMR
		sum  int64
		rng  = rand.New(rand.NewPCG(1, 2))
	)
	for range 300 {
		if len(live) > 0 && rng.IntN(2) == 0 {
			i := rng.IntN(len(live))
			sum -= int64(len(live[i].Bytes()))
			require.NoError(t, live[i].Free())
			live = slices.Delete(live, i, i+1)
		} else {
			n := 1 + rng.IntN(10000)
			l, err := pz.Register(make([]byte, n), hw.LocalRead)
			if rng.IntN(2) == 0 {
				require.NoError(t, l.Free())
				l, err = pz.Alloc(n, hw.LocalRead)
			}
			require.NoError(t, err)
			live, sum = append(live, l), sum+int64(n)
		}
		regions, size := registeredIn(d)
		require.Equal(t, len(live), regions)
		require.Equal(t, sum, size)
	}
}

func TestARegionThatTheDeviceKeepsIsDeadButNotGivenBack(t *testing.T) {
	for name, register := range map[string]func(*testing.T, *PZ) *LMR{
		"allocated": func(t *testing.T, pz *PZ) *LMR { return alloc(t, pz, 4096, hw.AllPrivileges, WithUnmapOnFree()) },
		"registered": func(t *testing.T, pz *PZ) *LMR {
			l, err := pz.Register(make([]byte, 4096), hw.AllPrivileges)
			require.NoError(t, err)
			return l
		},
	} {
		t.Run(name, func(t *testing.T) {
			dev := newFakeDevice()
			d := NewDomain(door.Key{}, dev, nil)
			pz, err := d.NewPZ()
			require.NoError(t, err)
			l := register(t, pz)
			seg, b := l.Segment(0, 8), l.Bytes()
			l.mr.(*fakeMR).err = syscall.EIO

			requireCode(t, l.Free(), hw.InternalError, hw.NoSubtype)
			_, refusal := resolve(pz, make([]hw.SGE, 1), []Segment{seg}, hw.LocalRead)
			requireCode(t, refusal, hw.InvalidHandle, hw.HandleLMR)
			require.ErrorIs(t, d.Close(), syscall.EIO)
			b[0] = 1 // still mapped, because the device may be writing to it
			regions, size := registeredIn(d)
			assert.Equal(t, 1, regions)
			assert.EqualValues(t, 4096, size)

			l.mr.(*fakeMR).err = nil
			require.NoError(t, d.Close())
			require.NoError(t, l.Free())
			requireEmpty(t, dev, d)
		})
	}
}

func TestDomainCloseFreesEverythingAndThenRefuses(t *testing.T) {
	dev := newFakeDevice()
	d := NewDomain(door.Key{}, dev, nil)
	var segs []Segment
	var pzs []*PZ
	var regions []*LMR
	for range 3 {
		pz, err := d.NewPZ()
		require.NoError(t, err)
		pzs = append(pzs, pz)
		for range 3 {
			allocated := alloc(t, pz, 64, hw.LocalRead)
			segs = append(segs, allocated.Segment(0, 64))
			registered, err := pz.Register(make([]byte, 64), hw.LocalRead)
			require.NoError(t, err)
			regions = append(regions, allocated, registered)
		}
		require.NoError(t, pz.zone.Use(""))
	}
	require.NoError(t, d.Close())
	require.NoError(t, d.Close(), "a second Close has nothing to do")
	assert.Zero(t, dev.registered())
	assert.Equal(t, 9, d.Stats().Mapped, "the program has not freed its memory")
	for _, l := range regions {
		l.Bytes()[63] = 1
		require.NoError(t, l.Free())
		assert.Nil(t, l.Bytes())
	}
	requireEmpty(t, dev, d)

	_, err := d.NewPZ()
	requireCode(t, err, hw.InvalidHandle, hw.HandleIA)
	_, err = pzs[0].Alloc(64, hw.LocalRead)
	requireCode(t, err, hw.InvalidHandle, hw.HandleIA)
	_, err = pzs[0].Register(make([]byte, 8), hw.LocalRead)
	requireCode(t, err, hw.InvalidHandle, hw.HandleIA)
	require.NoError(t, pzs[0].Close())
	_, refusal := resolve(pzs[0], make([]hw.SGE, 1), segs[:1], hw.LocalRead)
	requireCode(t, refusal, hw.InvalidHandle, hw.HandlePZ)
	pzs[0].zone.Unuse() // as an endpoint that is closed late does
}

func TestDomainCloseReportsAZoneThatIsStillInUse(t *testing.T) {
	dev := newFakeDevice()
	d := NewDomain(door.Key{}, dev, nil)
	pz, err := d.NewPZ()
	require.NoError(t, err)
	l := alloc(t, pz, 64, hw.LocalRead)
	inUse := hw.Errorf("fake", hw.InvalidState, hw.StatePZInUse, "a queue pair is in it")
	pz.zone.Device().(*fakeZone).err = inUse
	require.ErrorIs(t, d.Close(), inUse)
	assert.Equal(t, 1, d.Stats().Zones)
	assert.Zero(t, dev.registered())
	l.Bytes()[0] = 1
	pz.zone.Device().(*fakeZone).err = nil
	require.NoError(t, d.Close())
	require.NoError(t, l.Free())
	requireEmpty(t, dev, d)
}

// Posters resolve segments and hand them over, a device copies, and the owner frees
// the region: once Free has returned, nothing writes a byte and no post finds the
// region. The memory is Go's, so that the race detector sees each access to it.
func TestNothingTouchesARegionAfterFree(t *testing.T) {
	dev, d, pz := newTestPZ(t)
	for round := range 200 {
		var (
			buf     = make([]byte, 256)
			l, err  = pz.Register(buf, hw.LocalWrite)
			seg     = l.Segment(0, len(buf))
			refused atomic.Int32
			wg      sync.WaitGroup
		)
		require.NoError(t, err)
		for p := range 3 {
			wg.Go(func() {
				var sge [1]hw.SGE
				for {
					if _, err := resolve(pz, sge[:], []Segment{seg}, hw.LocalWrite); err != nil {
						assert.ErrorIs(t, err, hw.ErrInvalidHandle)
						refused.Add(1)
						return
					}
					// The post is accepted; the device executes it later.
					runtime.Gosched()
					if mr := dev.find(sge[0].LKey); mr != nil {
						mr.write(byte(p), 16)
					}
				}
			})
		}
		for range round % 7 {
			runtime.Gosched()
		}
		require.NoError(t, l.Free())
		_, refusal := resolve(pz, make([]hw.SGE, 1), []Segment{seg}, hw.LocalWrite)
		requireCode(t, refusal, hw.InvalidHandle, hw.HandleLMR)
		for i := range buf {
			buf[i] = 0xaa // the race detector reports a device that still writes
		}
		wg.Wait()
		assert.EqualValues(t, 3, refused.Load())
		for i := range buf {
			require.EqualValues(t, 0xaa, buf[i], "byte %d changed after Free", i)
		}
	}
	regions, _ := registeredIn(d)
	assert.Zero(t, regions)
}

func TestFreeWaitsForACopyInProgressButNotLonger(t *testing.T) {
	_, _, pz := newTestPZ(t)
	l := alloc(t, pz, 4096, hw.LocalWrite)
	seg := l.Segment(0, 1)
	mr := l.mr.(*fakeMR)
	mr.busy.Lock() // a copy begins
	end := sync.OnceFunc(mr.busy.Unlock)
	defer end()
	freed := make(chan error, 1)
	go func() { freed <- l.Free() }()

	require.Eventually(t, mr.dead.Load, time.Minute, time.Millisecond)
	_, refusal := resolve(pz, make([]hw.SGE, 1), []Segment{seg}, hw.LocalWrite)
	requireCode(t, refusal, hw.InvalidHandle, hw.HandleLMR)
	select {
	case err := <-freed:
		require.Fail(t, "Free returned during a copy", "%v", err)
	default:
	}
	l.buf[0] = 1 // the copy still has its memory
	end()
	require.NoError(t, <-freed)
}

func TestManyFreesOfOneRegionEndItOnce(t *testing.T) {
	_, d, pz := newTestPZ(t)
	for range 100 {
		l := alloc(t, pz, 64, hw.LocalRead, WithUnmapOnFree())
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				assert.NoError(t, l.Free())
				regions, _ := registeredIn(d)
				assert.Zero(t, regions, "a call returned before the region was gone")
			})
		}
		wg.Wait()
	}
}

func TestAllocRegisterFreeAndCloseMayRaceEachOther(t *testing.T) {
	domains := 20
	if testing.Short() {
		domains = 3
	}
	for range domains {
		dev := newFakeDevice()
		d := NewDomain(door.Key{}, dev, nil)
		pz, err := d.NewPZ()
		require.NoError(t, err)
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				var kept []*LMR
				defer func() {
					for _, l := range kept {
						l.Bytes()[0] = 1
						assert.NoError(t, l.Free())
					}
				}()
				for i := 0; ; i++ {
					var l *LMR
					var err error
					if (g+i)%2 == 0 {
						l, err = pz.Alloc(100, hw.LocalRead)
					} else {
						l, err = pz.Register(make([]byte, 100), hw.LocalRead)
					}
					if errors.Is(err, hw.ErrInsufficientResources) {
						runtime.Gosched() // every context is in use
						continue
					}
					if err != nil {
						assert.ErrorIs(t, err, hw.ErrInvalidHandle)
						return
					}
					if i%3 == 0 {
						kept = append(kept, l)
					} else if err := l.Free(); err != nil {
						assert.ErrorIs(t, err, hw.ErrInvalidHandle)
					}
				}
			})
		}
		for range 50 {
			runtime.Gosched()
		}
		require.NoError(t, d.Close())
		wg.Wait()
		requireEmpty(t, dev, d)
	}
}
