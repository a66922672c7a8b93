//go:build !race

package stream

import (
	"net"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// usage is what a process has taken.
type usage struct{ memory, goroutines, files int }

func used() usage {
	runtime.GC()
	runtime.GC() // what a finalizer has freed goes with the second one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, _ := os.ReadDir("/proc/self/fd")
	return usage{int(m.HeapAlloc + m.StackInuse), runtime.NumGoroutine(), len(files)}
}

// An end that has carried a question and an answer, and waits, takes no more than this.
// The memory is that of the heap and of stacks.
func TestAnIdleEndTakesLittle(t *testing.T) {
	const pairs = 200
	for provider, most := range map[string]usage{
		"loop":            {memory: 30 << 10},
		"iwarp:127.0.0.1": {memory: 44 << 10, goroutines: 1, files: 1},
	} {
		t.Run(provider, func(t *testing.T) {
			r := newRig(t, provider, Config{Ring: 1 << 20})
			ask := func() [2]net.Conn {
				client, server := r.pair()
				crossing(t, client, server, body(100, 1))
				crossing(t, server, client, body(1000, 2))
				return [2]net.Conn{client, server}
			}
			ask()
			before := used()
			var all [pairs][2]net.Conn
			for i := range all {
				all[i] = ask()
			}
			after := used()
			require.NotNil(t, all[0][0])
			per := func(after, before int) float64 { return float64(after-before) / (2 * pairs) }
			t.Logf("an idle end: %.0f bytes, %.2f goroutines, %.2f descriptors",
				per(after.memory, before.memory), per(after.goroutines, before.goroutines), per(after.files, before.files))
			assert.LessOrEqual(t, per(after.memory, before.memory), float64(most.memory))
			assert.LessOrEqual(t, per(after.goroutines, before.goroutines), float64(most.goroutines)+0.1)
			assert.LessOrEqual(t, per(after.files, before.files), float64(most.files)+0.1)
		})
	}
}
