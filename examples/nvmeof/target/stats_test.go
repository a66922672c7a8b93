package target

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/nvme"
)

func TestARecordCountsCommandsByKindAndKeepsTheirLatencies(t *testing.T) {
	r, begun := newRecord(), time.Second
	for i := range 50 {
		pair := []finished{{begun: begun, kind: kindRead, bytes: 512}, {begun: begun, kind: kindRead, bytes: 512}}
		if i%2 == 0 { // those that begin at different times are told apart
			pair[1].begun = begun - time.Millisecond
		}
		r.addAll(pair, begun+time.Duration(2*i+1)*time.Millisecond)
	}
	r.addAll([]finished{{begun: begun, kind: kindWrite, bytes: 4096}}, begun+time.Hour)
	r.addAll([]finished{{kind: kindOther, neutral: true}, {begun: begun, kind: kindOther, failed: true, bytes: 9}}, begun)
	all := newRecord()
	all.merge(&r)
	all.merge(&r)
	assert.Equal(t, Counters{Reads: 200, BytesRead: 200 * 512, Writes: 2, BytesWritten: 8192, Others: 2, Failures: 2}, all.Counters)
	read := all.of(kindRead)
	assert.EqualValues(t, 200, read.Count)
	for want, got := range map[time.Duration]time.Duration{50: read.Median, 98: read.P99, 99: read.Longest} {
		assert.InEpsilon(t, want*time.Millisecond, got, 0.02)
	}
	assert.InEpsilon(t, 100*time.Second, all.of(kindWrite).Longest, 0.02, "as long as is told apart")
	assert.EqualValues(t, 2, all.of(kindOther).Count)
	empty := newRecord()
	assert.Zero(t, empty.of(kindRead))
}

func TestTheStatisticsHaveEachQueueUntilItEndsAndItsSumsAfterwards(t *testing.T) {
	onEach(t, func(f *fixture) {
		c := f.connect(nil)
		d := f.disk(c, 1)
		b := make([]byte, 8192)
		const each = 6
		for range each {
			_, err := d.WriteAt(b, 0)
			require.NoError(f, err)
			_, err = d.ReadAt(b, 0)
			require.NoError(f, err)
		}
		_, err := d.Do(f.within(), nvme.Command{Opcode: 0x55, NSID: 1}, nil)
		require.ErrorIs(f, err, nvme.StatusError(nvme.InvalidOpcode))
		// A host may have a completion before the target has counted it.
		require.Eventually(f, func() bool { s := f.target.Stats(); return s.Reads+s.Writes+s.Failures == 2*each+1 }, patience, tick)
		s := f.target.Stats()
		require.Len(f, s.Queues, 1+c.Queues())
		reads := uint64(0)
		for _, q := range s.Queues {
			assert.Equal(f, c.ID(), q.Controller)
			assert.NotEmpty(f, q.Host)
			assert.NotEmpty(f, q.Address)
			assert.EqualValues(f, q.Reads, q.Read.Count)
			assert.True(f, q.Queue != 0 || q.Read.Count == 0)
			reads += q.Reads
		}
		assert.EqualValues(f, each, reads)
		require.NoError(f, c.Close())
		require.NoError(f, f.stop())
		s = f.target.Stats()
		assert.Empty(f, s.Queues)
		assert.EqualValues(f, each, s.Reads)
		assert.EqualValues(f, each*8192, s.BytesRead)
		assert.EqualValues(f, each, s.Write.Count)
		assert.EqualValues(f, 1, s.Failures)
		assert.EqualValues(f, 1+c.Queues(), s.Counters.Queues)
	})
}
