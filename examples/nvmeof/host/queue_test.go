package host

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/nvme"
)

// openSilent returns a controller and a disk whose target, the other end, answers what the
// test says. All commands share a queue of one slot.
func openSilent(t *testing.T) (c *Controller, d *Disk, other raw) {
	l, other := openRaw(t, 1)
	q := newQueue(l)
	c = &Controller{admin: q, queues: []*queue{q}, cfg: Config{Transfer: nvme.PageLen}}
	return c, &Disk{controller: c, nsid: 1, about: nvme.Namespace{Blocks: 8, BlockShift: 9}}, other
}

// leavable are the calls that end with their context while their command is under way.
func leavable(c *Controller, d *Disk) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Flush":       d.Flush,
		"WriteZeroes": func(ctx context.Context) error { return d.WriteZeroes(ctx, 0, 512, true) },
		"Deallocate":  func(ctx context.Context) error { return d.Deallocate(ctx, nvme.Range{Blocks: 1}) },
		"Do": func(ctx context.Context) error {
			_, err := d.Do(ctx, d.Command(nvme.IORead), make([]byte, 512))
			return err
		},
		"Admin": func(ctx context.Context) error {
			_, err := c.Admin(ctx, nvme.GetFeature(nvme.FeatureQueues), nil)
			return err
		},
		"Disk":     func(ctx context.Context) error { _, err := c.Disk(ctx, 1); return err },
		"Discover": func(ctx context.Context) error { _, err := c.Discover(ctx); return err },
	}
}

func TestTheSlotOfACallThatWasLeftComesBackWithTheAnswer(t *testing.T) {
	why := errors.New("no patience")
	for name := range leavable(nil, nil) {
		t.Run(name, func(t *testing.T) {
			c, d, other := openSilent(t)
			ctx, leave := context.WithCancelCause(t.Context())
			left := make(chan error)
			go func() { left <- leavable(c, d)[name](ctx) }()
			other.received()
			leave(why)
			require.ErrorIs(t, <-left, why)
			next := make(chan error)
			go func() { next <- d.Compare(make([]byte, 512), 0) }()
			other.completes(nvme.Completion{Status: nvme.InternalError})
			other.received()
			other.completes(nvme.Completion{Status: nvme.CompareFailure})
			assert.ErrorIs(t, <-next, nvme.StatusError(nvme.CompareFailure), "the answer of its own command")
			require.NoError(t, c.admin.close())
		})
	}
}

func TestCloseEndsTheCallsThatWaitForTheSlotOfOneThatWasLeft(t *testing.T) {
	for name := range leavable(nil, nil) {
		t.Run(name, func(t *testing.T) {
			c, d, other := openSilent(t)
			ctx, leave := context.WithCancel(t.Context())
			left, waits := make(chan error), make(chan error)
			go func() { left <- leavable(c, d)[name](ctx) }()
			other.received()
			leave()
			require.ErrorIs(t, <-left, context.Canceled)
			go func() { waits <- d.Compare(make([]byte, 512), 0) }()
			require.NoError(t, c.admin.close())
			assert.ErrorIs(t, <-waits, ErrEnded)
		})
	}
}

func TestTheSlotOfACommandWhoseAbortIsRefusedComesBack(t *testing.T) {
	l, other := openRaw(t, 2)
	q := newQueue(l)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := q.doOrAbort(ctx, nvme.Command{Opcode: nvme.AdminAsyncEvent})
		left <- err
	}()
	other.received()
	leave()
	other.received() // the Abort
	other.completes(nvme.Completion{CID: 1, Status: nvme.InternalError})
	require.ErrorIs(t, <-left, nvme.StatusError(nvme.InternalError))
	other.completes(nvme.Completion{CID: 0})
	for len(q.free) != 2 {
		runtime.Gosched()
	}
	require.NoError(t, q.close())
}

func TestASlotComesBackWhoseAnswerCameAsItsCallLeft(t *testing.T) {
	c, d, other := openSilent(t)
	q := c.admin
	s, err := q.acquire(t.Context())
	require.NoError(t, err)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	_, left := q.exchange(ctx, s, d.Command(nvme.IOFlush), 0, false)
	require.ErrorIs(t, left, context.Canceled)
	other.received()
	other.completes(nvme.Completion{Status: nvme.InternalError})
	for !s.call.over.Load() {
		runtime.Gosched()
	}
	q.release(s, left)
	next := make(chan error)
	go func() { next <- d.Compare(make([]byte, 512), 0) }()
	other.received()
	other.completes(nvme.Completion{Status: nvme.CompareFailure})
	assert.ErrorIs(t, <-next, nvme.StatusError(nvme.CompareFailure), "the answer of its own command")
	require.NoError(t, q.close())
}
