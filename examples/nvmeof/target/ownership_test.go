package target

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/nvme"
)

// Two hosts may number their queues and commands alike.
func TestAnAbortTakesBackNoOtherControllersCommand(t *testing.T) {
	w, mine, other := newWorker(nil), new(controller), new(controller)
	results := make(chan result, 2)
	for i, c := range []*controller{other, mine} {
		q := &queue{controller: c, asked: nvme.ConnectRequest{QueueID: 1}, results: results}
		w.submit(job{from: q, command: int32(i), cid: 7, flush: true})
	}
	assert.False(t, w.abort(mine, 2, 7), "another queue")
	assert.False(t, w.abort(mine, 1, 8), "another command")
	require.True(t, w.abort(mine, 1, 7))
	assert.Equal(t, result{1, errAborted}, <-results)
	require.False(t, w.abort(mine, 1, 7), "the other host's command is not to be aborted")
	assert.Len(t, w.flushes, 1)
}

// A reset makes room for a queue of each number before the former queues have left.
func TestAQueueFromBeforeAResetLeavesItsSuccessorsNumberTaken(t *testing.T) {
	var r registry
	r.init(&Config{Controllers: 1, HostControllers: 1, AddressControllers: 1, Queues: 1})
	data := nvme.ConnectData{Host: "nqn.2026-01.test:host"}
	c := r.add(&data, "10.0.0.1/32")
	c.config.Store(nvme.ConfigEnable)
	data.Controller = c.id
	join := func() (<-chan struct{}, nvme.Status) {
		_, gone, status, _ := r.join(&data, 1)
		return gone, status
	}
	former, status := join()
	require.Equal(t, nvme.Success, status)
	r.reset(c)
	present, status := join()
	require.Equal(t, nvme.Success, status)
	r.leave(c, 1, former)
	_, status = join()
	require.Equal(t, nvme.ConnectInvalidParameters|nvme.DoNotRetry, status, "the number is taken")
	r.leave(c, 1, present)
	_, status = join()
	require.Equal(t, nvme.Success, status)
}

// The head that completions tell of runs through all entries of the queue.
func TestTheHeadOfASubmissionQueueRunsThroughAllEntries(t *testing.T) {
	onEach(t, func(f *fixture) {
		c := rawQueue(f, f.ia, f.target, 0)
		const entries = 32 // of a raw queue
		for n := 1; n <= 2*entries+1; n++ {
			capsule := rawCommand(nvme.Command{Opcode: nvme.AdminKeepAlive, Flags: nvme.UsesList})
			if n == 1 {
				capsule = rawConnect(0, nvme.DynamicController)
			}
			require.EqualValues(f, n%entries, rawExchange(f, c, capsule).SQ.Head)
		}
	})
}
