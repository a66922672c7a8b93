package mem

import (
	"os"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"godat/hw"
)

// mapping maps n bytes of a file, or of nothing, for the time of the test.
func mapping(t *testing.T, f *os.File, n, prot, flags int) []byte {
	fd := -1
	if f != nil {
		fd = int(f.Fd())
	}
	buf, err := unix.Mmap(fd, 0, n, prot, flags)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(buf)) })
	return buf
}

const (
	readOnly = unix.PROT_READ
	both     = unix.PROT_READ | unix.PROT_WRITE
	anon     = unix.MAP_PRIVATE | unix.MAP_ANON
)

func TestRegisterRefusesMemoryThatIsNotWhatThePrivilegesSay(t *testing.T) {
	page := os.Getpagesize()
	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer file.Close()
	require.NoError(t, file.Truncate(int64(page)))
	const long = 2 * mostProbed
	protect := func(buf []byte, at, prot int) []byte {
		require.NoError(t, unix.Mprotect(buf[at:][:page], prot))
		return buf
	}
	for name, tc := range map[string]struct {
		buf                 []byte
		readable, writeable bool
	}{
		"the Go heap":                      {make([]byte, 10), true, true},
		"a part of a page":                 {make([]byte, 3*page)[page-1:][:page+2], true, true},
		"a mapping":                        {mapping(t, nil, 4*page, both, anon), true, true},
		"a file":                           {mapping(t, file, page, both, unix.MAP_SHARED), true, true},
		"a file that can't be written":     {mapping(t, file, page, readOnly, unix.MAP_SHARED), true, false},
		"private pages, not to be written": {mapping(t, nil, page, readOnly, anon), true, false},
		"behind the end of a file":         {mapping(t, file, 2*page, both, unix.MAP_SHARED), false, false},
		"pages without access":             {mapping(t, nil, page, unix.PROT_NONE, anon), false, false},
		"one page, in the middle":          {protect(mapping(t, nil, 5*page, both, anon), 2*page, readOnly), true, false},
		"the last page":                    {protect(mapping(t, nil, 5*page, both, anon), 4*page, unix.PROT_NONE), false, false},
		"behind the end of a longer file":  {mapping(t, file, 6*page, both, unix.MAP_SHARED), false, false},
		"long":                             {mapping(t, nil, long, both, anon), true, true},
		"long, without its last page":      {protect(mapping(t, nil, long, both, anon), long-page, readOnly), true, false},
		"long, one page without access":    {protect(mapping(t, nil, long, both, anon), long/2, unix.PROT_NONE), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, d, pz := newTestPZ(t)
			for priv, allowed := range map[hw.Privileges]bool{
				hw.LocalRead: tc.readable, hw.RemoteRead: tc.readable,
				hw.LocalWrite: tc.writeable, hw.RemoteWrite: tc.writeable, hw.RemoteAtomic: tc.writeable,
				hw.AllPrivileges: tc.readable && tc.writeable,
			} {
				l, err := pz.Register(tc.buf, priv)
				if !allowed {
					require.ErrorIs(t, err, hw.ErrInvalidParameter, "%v", priv)
					require.ErrorIs(t, err, unix.EFAULT)
					continue
				}
				require.NoError(t, err, "%v", priv)
				require.NoError(t, l.Free())
			}
			assert.Zero(t, d.Stats().Regions)
			// What stands in for the question for a mapping, where the system does not know it.
			from := uintptr(unsafe.Pointer(&tc.buf[0]))
			to := from + uintptr(len(tc.buf))
			if len(tc.buf) <= mostProbed {
				assert.Equal(t, tc.readable, askPages(from, to, true, false) == nil)
				assert.Equal(t, tc.writeable, askPages(from, to, false, true) == nil)
				return
			}
			for _, write := range []bool{false, true} {
				maps, err := os.Open("/proc/self/maps")
				require.NoError(t, err)
				assert.Equal(t, write && tc.writeable || !write && tc.readable, lookUp(maps, from, to, !write, write) == nil)
				require.NoError(t, maps.Close())
			}
		})
	}
}

func TestARegionOfARegionIsNoWayAroundItsMemory(t *testing.T) {
	_, _, pz := newTestPZ(t)
	buf := mapping(t, nil, os.Getpagesize(), readOnly, anon)
	l, err := pz.Register(buf, hw.LocalRead)
	require.NoError(t, err)
	_, err = pz.RegisterLMR(l, hw.RemoteWrite)
	require.ErrorIs(t, err, unix.EFAULT)
	_, err = pz.RegisterShared(SharedID{1}, buf, hw.RemoteWrite)
	require.ErrorIs(t, err, unix.EFAULT)
	shared, err := pz.RegisterShared(SharedID{1}, buf, hw.RemoteRead)
	require.NoError(t, err, "the id is free")
	require.NoError(t, shared.Free())
	require.NoError(t, l.Free())
}

func TestRegisterChangesNothing(t *testing.T) {
	_, _, pz := newTestPZ(t)
	page := os.Getpagesize()
	buf := make([]byte, 4*page)
	for i := range buf {
		buf[i] = byte(i)
	}
	word := (*uint32)(unsafe.Pointer(&buf[page])) // of the memory's second page, which may begin anywhere
	before := *word
	var counting sync.WaitGroup
	const rounds = 2000
	counting.Go(func() {
		for range rounds {
			atomic.AddUint32(word, 1)
		}
	})
	for range rounds {
		l, err := pz.Register(buf[page:], hw.AllPrivileges)
		require.NoError(t, err)
		require.NoError(t, l.Free())
	}
	counting.Wait()
	assert.Equal(t, before+rounds, *word)
	*word = before
	for i := range buf {
		require.Equal(t, byte(i), buf[i])
	}
}

// To ask a page takes no sleep, whatever the page holds. A sleep for each page of zeros would hold up
// the registration of 1 MiB for milliseconds.
func TestAPageOfZerosIsAskedWithoutASleep(t *testing.T) {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	const pages = 256
	page := os.Getpagesize()
	zeros := mapping(t, nil, pages*page, both, anon)
	for i := 0; i < len(zeros); i += page {
		zeros[i] = 0 // the page has memory
	}
	from := uintptr(unsafe.Pointer(&zeros[0]))
	sleeps := func() int {
		var used unix.Rusage
		require.NoError(t, unix.Getrusage(unix.RUSAGE_THREAD, &used))
		return int(used.Nvcsw)
	}
	before := sleeps()
	require.NoError(t, askPages(from, from+pages*uintptr(page), true, false))
	assert.Less(t, sleeps()-before, pages/4)
}

// A mapping that the program has not used yet does not get its memory. Where the system
// can't be asked for one mapping, only a long one does not.
func TestRegisterGivesAMappingNoMemory(t *testing.T) {
	registerGivesNoMemory(t, 1<<30)
	maps, err := os.Open("/proc/self/maps")
	require.NoError(t, err)
	defer maps.Close()
	var here byte
	at := uintptr(unsafe.Pointer(&here))
	if askMappings(int(maps.Fd()), at, at+1, true, false) == nil {
		registerGivesNoMemory(t, 256<<10)
	}
}

func registerGivesNoMemory(t *testing.T, long int) {
	_, _, pz := newTestPZ(t)
	buf := mapping(t, nil, long, both, anon|unix.MAP_NORESERVE)
	l, err := pz.Register(buf, hw.AllPrivileges)
	require.NoError(t, err)
	resident := make([]byte, long/os.Getpagesize())
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&buf[0])), uintptr(long), uintptr(unsafe.Pointer(&resident[0])))
	require.Zero(t, errno)
	for _, r := range resident {
		require.Zero(t, r&1)
	}
	require.NoError(t, l.Free())
}
