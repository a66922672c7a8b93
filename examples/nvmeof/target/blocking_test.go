package target

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/store"
	dat "godat/runtime"
)

// slow is a store whose flushes wait until the test lets them go on.
type slow struct {
	store.Store
	flushing chan struct{} // gets a value for each flush that has begun
	release  chan error    // what the flush returns
}

func (s *slow) Volatile() bool { return true }

func (s *slow) Flush(int, int) error {
	s.flushing <- struct{}{}
	return <-s.release
}

// startSlow serves a slow store, and returns an I/O queue of 32 entries without a host.
func startSlow(t *testing.T) (*fixture, *slow, *dat.Conn) {
	memory, err := store.NewMemory(1 << 20)
	require.NoError(t, err)
	s := &slow{memory, make(chan struct{}, 100), make(chan error, 100)}
	t.Cleanup(func() { require.NoError(t, memory.Close()) })
	f := start(t, "loop", func(cfg *Config) { cfg.Namespaces = []Namespace{{Store: s}} })
	admin := rawQueue(f, f.ia, f.target, 0)
	id := rawExchange(f, admin, rawConnect(0, nvme.DynamicController))
	require.Equal(f, nvme.Success, id.Status)
	rawExchange(f, admin, rawCommand(nvme.PropertySet(nvme.PropertyCC, nvme.ConfigEnable)))
	q := rawQueue(f, f.ia, f.target, 1)
	require.Equal(f, nvme.Success, rawExchange(f, q, rawConnect(1, uint16(id.Result))).Status)
	return f, s, q
}

const (
	patience = time.Minute
	tick     = time.Millisecond
)

var flush = nvme.Command{Opcode: nvme.IOFlush, NSID: 1, Flags: nvme.UsesList}

func TestAQueueThatIsFloodedEnds(t *testing.T) {
	_, s, q := startSlow(t)
	for range 33 {
		require.NoError(t, q.SendBytes(rawCommand(flush)))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := q.Receive(ctx)
	require.Error(t, err)
	require.NoError(t, ctx.Err(), "the end of the connection, and no completion")
	for range 33 {
		s.release <- nil
	}
}

func TestACommandUnderWayIsCompletedWhenTheTargetStops(t *testing.T) {
	f, s, q := startSlow(t)
	require.NoError(t, q.SendBytes(rawCommand(flush)))
	<-s.flushing
	stopped := make(chan error, 1)
	go func() { stopped <- f.stop() }()
	<-f.target.down
	s.release <- nil
	b, err := q.Receive(f.within())
	require.NoError(t, err)
	completion, err := nvme.ParseCompletion(b.Bytes())
	q.Release(b)
	require.NoError(t, err)
	assert.Equal(t, nvme.Success, completion.Status)
	require.NoError(t, <-stopped)
}

func TestFlushesAtHandAreOneAndShareItsOutcome(t *testing.T) {
	f, s, q := startSlow(t)
	require.NoError(t, q.SendBytes(rawCommand(flush)))
	<-s.flushing
	for range 5 {
		require.NoError(t, q.SendBytes(rawCommand(flush)))
	}
	require.Eventually(t, func() bool { return len(f.target.namespaces[0].worker.jobs) == 5 }, patience, tick)
	s.release <- nil
	s.release <- assert.AnError
	for i := range 6 {
		b, err := q.Receive(f.within())
		require.NoError(t, err)
		completion, err := nvme.ParseCompletion(b.Bytes())
		q.Release(b)
		require.NoError(t, err)
		if i == 0 {
			assert.Equal(t, nvme.Success, completion.Status)
		} else {
			assert.Equal(t, nvme.WriteFault, completion.Status)
		}
	}
	assert.Len(t, s.flushing, 1, "two flushes for six commands")
}
