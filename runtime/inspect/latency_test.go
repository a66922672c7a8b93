package inspect

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	dat "godat/runtime"
	"godat/runtime/rpc"
)

func TestWhatWasMeasuredIsDrawn(t *testing.T) {
	staged(t, dat.ConnConfig{}, func(r *rig) {
		stop, err := r.ia.MeasureLatency()
		require.NoError(t, err)
		s, c := r.serve(rpc.Config{})
		done := r.call(c, 7)
		time.Sleep(time.Millisecond)
		require.NoError(t, rpc.RequestOf(<-s.Requests()).Reply(nil))
		<-done
		stop()
		writes := evd.NewHistogram()
		writes.Record(time.Second)
		type disk struct {
			Name          string
			Writes, Reads *evd.HistogramSnapshot
		}
		_, err = r.ia.Report("disks", func() []any { return []any{disk{"a", writes.Snapshot(), nil}} })
		require.NoError(t, err)
		var said struct{ Table struct{ Items []timed } }
		r.askFor("?show=latencies&format=json", &said)
		found := make(map[string]uint64)
		for _, i := range said.Table.Items {
			found[strings.Split(i.Name, ", ")[0]+"; "+i.What] += i.Latency.Count
		}
		assert.EqualValues(t, 1, found["method 7; rpc methods: latency"]/2, "both ends: %v", found)
		assert.EqualValues(t, 1, found["a; disks: writes"])
		body := r.get("?show=latencies&sort=-times").Body.String()
		assert.Equal(t, len(said.Table.Items), strings.Count(body, "<svg role=\"img\""))
		assert.Contains(t, body, "below 1.07 s: 1 of 1")
		assert.Less(t, strings.Index(body, ">disks: writes<"), strings.Index(body, ">rpc methods: latency<"), "the longest first")
		assert.Contains(t, r.get("?show=disks").Body.String(), "99 % in 1 s</td>")
		require.NoError(t, c.Close())
		require.NoError(t, s.Close())
	})
}

func TestADrawingHasABarForEachPowerOfTwoFromTheFirstToTheLast(t *testing.T) {
	h := evd.NewHistogram()
	for _, took := range []time.Duration{1, 200, 255, 256, time.Microsecond, time.Hour} {
		h.Record(took)
	}
	d := draw(h.Snapshot())
	assert.Equal(t, []bar{
		{1, 0, barWidth - 1, barHeight, "below 256 ns: 3 of 6"},
		{1 + barWidth, barHeight - 13, barWidth - 1, 13, "below 512 ns: 1 of 6"},
		{1 + 2*barWidth, barHeight - 13, barWidth - 1, 13, "below 1 µs: 1 of 6"},
		{1 + (lastBar-firstBar)*barWidth, barHeight - 13, barWidth - 1, 13, "8.59 s and more: 1 of 6"},
	}, d.Bars)
	assert.Contains(t, d.Label, "longest 1 h")
}
