//go:build linux || darwin

package spent

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The system bounds both together, so a bound from a Time that leaves one out would come early.
func TestTimeIsOfTheProgramAndOfItsCallsOfTheSystem(t *testing.T) {
	usage := func() (user, system time.Duration) {
		var u syscall.Rusage
		require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())
	}
	for end := time.Now().Add(time.Minute); ; {
		user, system := usage()
		if system > 20*time.Millisecond {
			require.GreaterOrEqual(t, Time(), user+system)
			user, system = usage()
			require.LessOrEqual(t, Time()-(user+system), time.Second)
			return
		}
		require.True(t, time.Now().Before(end), "calls of the system take no time")
	}
}
