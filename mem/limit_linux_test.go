package mem

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"godat/hw"
)

const inChild = "GODAT_MEM_TEST_IN_CHILD"

// limited runs a test again in a process of its own, whose address space can grow
// by no more than room bytes.
func limited(t *testing.T, room uint64, test func(t *testing.T)) {
	if os.Getenv(inChild) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), inChild+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	statm, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	var pages uint64
	_, err = fmt.Sscan(string(statm), &pages)
	require.NoError(t, err)
	limit := pages*uint64(os.Getpagesize()) + room
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: limit, Max: limit}))
	test(t)
}

func TestAllocAndFreeGoOnForEverUnderALimitOfTheAddressSpace(t *testing.T) {
	limited(t, 512<<20, func(t *testing.T) {
		_, _, pz := newTestPZ(t)
		for range 3000 {
			require.NoError(t, alloc(t, pz, 1<<20, hw.AllPrivileges).Free())
		}
	})
}

// The ranges that freed regions have left are below the limit for them, but take
// too much of this process's address space.
func TestAllocTakesBackWhatFreedRegionsLeftWhenTheAddressSpaceIsShort(t *testing.T) {
	const room = 512 << 20
	limited(t, room, func(t *testing.T) {
		_, d, pz := newTestPZ(t)
		require.NoError(t, alloc(t, pz, maxRetiredBytes, hw.AllPrivileges).Free())
		var big []*LMR
		for range 2 * room / maxRetiredBytes {
			before, _ := mappedIn(d)
			l, err := pz.Alloc(maxRetiredBytes/2, hw.AllPrivileges)
			if err != nil {
				requireCode(t, err, hw.InsufficientResources, hw.ResourceMemory)
				break
			}
			big = append(big, l)
			if after, _ := mappedIn(d); after == before {
				break // the freed range was unmapped for the new region
			}
		}
		require.NotEmpty(t, big)
		ranges, _ := mappedIn(d)
		assert.Equal(t, len(big), ranges, "nothing dead is left")
	})
}
