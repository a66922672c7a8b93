package target

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/nvme"
)

// pipeline connects a host with a pipeline.
func (f *fixture) pipeline(change func(*host.Config)) (*host.Controller, *host.Pipeline) {
	f.Helper()
	c := f.connect(func(cfg *host.Config) {
		cfg.Queues, cfg.Pipelines = 1, 1
		if change != nil {
			change(cfg)
		}
	})
	p, err := c.Pipeline(f.within())
	require.NoError(f, err)
	return c, p
}

// finish waits until n commands are done.
func (f *fixture) finish(p *host.Pipeline, n int) {
	f.Helper()
	for n > 0 {
		done, err := p.Wait(f.within())
		require.NoError(f, err)
		require.NotEmpty(f, done)
		for _, s := range done {
			require.NoError(f, s.Err)
		}
		n -= len(done)
	}
	require.Zero(f, n)
}

func TestAPipelineReadsWhatItWrote(t *testing.T) {
	onEach(t, func(f *fixture) {
		c, p := f.pipeline(func(cfg *host.Config) { cfg.Depth, cfg.Transfer = 9, 16<<10 })
		d, slots := f.disk(c, 1), p.Slots()
		require.Len(f, slots, 8)
		for _, n := range []int{4096, 16 << 10} { // in the capsule, and by RDMA
			for round := range 3 {
				for i := range slots {
					copy(slots[i].Data, bytes.Repeat([]byte{byte(i + round)}, n))
					require.NoError(f, p.Write(d, &slots[i], n, int64(i*n)))
				}
				f.finish(p, len(slots))
				for i := range slots {
					clear(slots[i].Data)
					require.NoError(f, p.Read(d, &slots[i], n, int64(i*n)))
				}
				f.finish(p, len(slots))
				for i := range slots {
					assert.Equal(f, bytes.Repeat([]byte{byte(i + round)}, n), slots[i].Data[:n])
				}
			}
		}
		require.NoError(f, p.Submit(&slots[3], nvme.Command{Opcode: nvme.IOFlush, NSID: 1}, 0))
		f.finish(p, 1)
		require.NoError(f, p.Close())
	})
}

func TestAPipelineRefusesASlotThatIsUnderWayAndTooMuchData(t *testing.T) {
	onEach(t, func(f *fixture) {
		c, p := f.pipeline(nil)
		d, s := f.disk(c, 1), &p.Slots()[0]
		require.NoError(f, p.Read(d, s, 4096, 0))
		require.Error(f, p.Read(d, s, 4096, 0), "the slot is under way")
		f.finish(p, 1)
		require.Error(f, p.Read(d, s, len(s.Data)+4096, 0))
		require.Error(f, p.Read(d, s, 100, 0), "no blocks")
		require.NoError(f, p.Read(d, s, 4096, d.Size()))
		done, err := p.Wait(f.within())
		require.NoError(f, err)
		require.Equal(f, []*host.Slot{s}, done)
		require.ErrorIs(f, s.Err, nvme.StatusError(nvme.LBAOutOfRange))
		_, err = c.Pipeline(f.within())
		require.Error(f, err, "the host asked for one")
	})
}

func TestAPipelineEndsWithItsController(t *testing.T) {
	onEach(t, func(f *fixture) {
		c, p := f.pipeline(nil)
		ended := make(chan error, 1)
		waits := make(chan struct{})
		go func() {
			close(waits)
			_, err := p.Wait(context.Background()) // for nothing that was submitted
			ended <- err
		}()
		<-waits
		require.NoError(f, c.Close())
		require.ErrorIs(f, <-ended, host.ErrEnded)
		_, err := c.Pipeline(f.within())
		require.Error(f, err)
	})
}

func TestAPipelineWaitsNoLongerThanItsContext(t *testing.T) {
	onEach(t, func(f *fixture) {
		c, p := f.pipeline(nil)
		ctx, cancel := context.WithCancel(f.within())
		cancel()
		_, err := p.Wait(ctx)
		require.ErrorIs(f, err, context.Canceled)
		require.NoError(f, p.Read(f.disk(c, 1), &p.Slots()[0], 4096, 0))
		f.finish(p, 1)
	})
}
