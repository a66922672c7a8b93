package stream

import (
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/ep"
)

// adaptersOwn are an adapter's own goroutines: the pool of upcalls begins when a line of the log, or a callback,
// wants it, and ends with the adapter.
var adaptersOwn = []goleak.Option{
	goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"),
	goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
	goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*goWorker).run.func1"),
}

// openFiles returns how many descriptors the process has open.
func openFiles(t *testing.T) int {
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(files)
}

// exchange sends bytes over some connections, and ends them: behind a CloseWrite, by a cut,
// and by the close of either end.
func (r *rig) exchange() {
	for i := range 8 {
		client, server, err := r.connect()
		require.NoError(r.t, err)
		want := body(100_000, byte(i))
		sent := write(func() error {
			_, err := client.Write(want)
			return err
		})
		got := make([]byte, len(want))
		_, err = io.ReadFull(server, got)
		require.NoError(r.t, err)
		require.NoError(r.t, <-sent)
		assert.Equal(r.t, want, got)
		switch i % 4 {
		case 0:
			require.NoError(r.t, client.CloseWrite())
		case 1:
			require.NoError(r.t, client.line.endpoint.Disconnect(ep.Abrupt))
		case 2:
			client, server = server, client
		}
		require.NoError(r.t, client.Close())
		require.NoError(r.t, server.Close())
	}
}

func TestClosedConnectionsLeaveNothing(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		r.exchange() // opens the network poller's own descriptors
		running, files, memory := append(adaptersOwn, goleak.IgnoreCurrent()), openFiles(t), r.ia.MemoryStats()
		r.exchange()
		assert.Equal(t, memory, r.ia.MemoryStats(), "registered memory")
		assert.Eventually(t, func() bool { return openFiles(t) <= files }, time.Minute, time.Millisecond, "descriptors")
		goleak.VerifyNone(t, running...)
	})
}

func TestAClosedAdapterLeavesNothingOfItsStreams(t *testing.T) {
	for _, provider := range adapters {
		t.Run(provider, func(t *testing.T) {
			cycle := func() {
				r := newRig(t, provider, Config{})
				r.exchange()
				client, server, err := r.connect() // they are closed behind the adapter
				require.NoError(t, err)
				require.NoError(t, r.ia.Close())
				assert.Zero(t, r.ia.MemoryStats())
				for _, c := range []io.Closer{client, server} {
					require.NoError(t, c.Close())
				}
			}
			cycle()
			running, files := goleak.IgnoreCurrent(), openFiles(t)
			cycle()
			assert.LessOrEqual(t, openFiles(t), files, "descriptors")
			goleak.VerifyNone(t, running)
		})
	}
}
