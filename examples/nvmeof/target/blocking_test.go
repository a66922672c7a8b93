package target

import (
	"context"
	"io"
	"runtime"
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

// startSlow serves a slow store, and returns an I/O queue of 32 entries without a host,
// whose admin queue is f.admin.
func startSlow(t *testing.T) (*fixture, *slow, *dat.Conn) {
	memory, err := store.NewMemory(1 << 20)
	require.NoError(t, err)
	s := &slow{memory, make(chan struct{}, 100), make(chan error, 100)}
	t.Cleanup(func() { require.NoError(t, memory.Close()) })
	f := start(t, "loop", func(cfg *Config) { cfg.Namespaces = []Namespace{{Store: s}} })
	admin := rawQueue(f, f.ia, f.target, 0)
	f.admin = admin
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

// waiting is how many jobs the worker of namespace 1 has not begun.
func waiting(f *fixture) int {
	w := f.target.namespaces.at(1).worker
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.flushes)
	for _, l := range w.lanes {
		n += len(l.jobs)
	}
	return n
}

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
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the queue gets its turns however busy the machine is
	f, s, q := startSlow(t)
	require.NoError(t, q.SendBytes(rawCommand(flush)))
	<-s.flushing
	stopped := make(chan error, 1)
	go func() { stopped <- f.stop() }()
	<-f.target.down
	for range 1000 {
		runtime.Gosched() // the queue hears of the stop before the flush ends
	}
	s.release <- nil
	assert.Equal(t, nvme.Success, rawCompletion(f, q).Status)
	require.NoError(t, <-stopped)
}

func TestATargetThatStopsCompletesCommandsAlsoWhenTheirAdminQueueHasEnded(t *testing.T) {
	f, s, q := startSlow(t)
	require.NoError(t, q.SendBytes(rawCommand(flush)))
	<-s.flushing
	stopped := make(chan error, 1)
	go func() { stopped <- f.stop() }()
	_, err := f.admin.Receive(f.within())
	require.ErrorIs(t, err, io.EOF)
	require.Eventually(t, func() bool {
		r := &f.target.controllers
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.all) == 0
	}, patience, tick)
	s.release <- nil
	assert.Equal(t, nvme.Success, rawCompletion(f, q).Status)
	require.NoError(t, <-stopped)
}

func TestFlushesAtHandAreOneAndShareItsOutcome(t *testing.T) {
	f, s, q := startSlow(t)
	require.NoError(t, q.SendBytes(rawCommand(flush)))
	<-s.flushing
	for range 5 {
		require.NoError(t, q.SendBytes(rawCommand(flush)))
	}
	require.Eventually(t, func() bool { return waiting(f) == 5 }, patience, tick)
	s.release <- nil
	s.release <- assert.AnError
	for i := range 6 {
		completion := rawCompletion(f, q)
		if i == 0 {
			assert.Equal(t, nvme.Success, completion.Status)
		} else {
			assert.Equal(t, nvme.WriteFault, completion.Status)
		}
	}
	assert.Len(t, s.flushing, 1, "two flushes for six commands")
}

func TestAnAbortTakesBackACommandThatWaitsForAStore(t *testing.T) {
	f, s, q := startSlow(t)
	send := func(cid uint16) {
		command := flush
		command.CID = cid
		require.NoError(t, q.SendBytes(rawCommand(command)))
	}
	abort := func(queue, cid uint16) uint64 {
		completion := rawExchange(f, f.admin, rawCommand(nvme.Abort(queue, cid)))
		require.Equal(t, nvme.Success, completion.Status)
		return completion.Result
	}
	const aborted, notAborted = 0, 1
	send(1)
	<-s.flushing
	send(2)
	send(3)
	require.Eventually(t, func() bool { return waiting(f) == 2 }, patience, tick)
	assert.EqualValues(t, notAborted, abort(1, 1), "its flush has begun")
	assert.EqualValues(t, notAborted, abort(1, 4), "there is no such command")
	assert.EqualValues(t, notAborted, abort(2, 2), "nor on another queue")
	assert.EqualValues(t, aborted, abort(1, 2))
	completion := rawCompletion(f, q)
	assert.EqualValues(t, 2, completion.CID)
	assert.Equal(t, nvme.AbortRequested, completion.Status)
	assert.EqualValues(t, notAborted, abort(1, 2), "it is over")
	s.release <- nil
	s.release <- nil
	for _, cid := range []uint16{1, 3} {
		completion := rawCompletion(f, q)
		assert.Equal(t, cid, completion.CID)
		assert.Equal(t, nvme.Success, completion.Status)
	}
	assert.Len(t, s.flushing, 1, "the store never got the flush that was aborted")
}
