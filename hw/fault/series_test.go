package fault

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/hw"
)

// manners is a direct sink that records what it is given, and how.
type manners struct {
	hw.SeriesSink
	ids  []uint64
	how  map[string]int
	open bool // a series
}

func (m *manners) Complete(wcs []hw.WC) {
	m.open = false
	for _, wc := range wcs {
		m.ids = append(m.ids, wc.ID)
		m.how["in an array"]++
	}
}

func (m *manners) CompleteOne(id uint64, _ hw.Op, _ uint32, flags hw.WCFlags) {
	m.ids = append(m.ids, id)
	if m.open = flags&hw.WCMore != 0; m.open {
		m.how["with more"]++
	} else {
		m.how["alone"]++
	}
}

func (m *manners) Flush() { m.open = false }

func TestSeriesHandsOnInEveryMannerAndEndsEachSeries(t *testing.T) {
	m := &manners{how: make(map[string]int)}
	p := &Provider{cfg: Config{Series: true, Seed: 1}}
	q := &queue{qp: &queuePair{dev: &device{fault: p}}, sink: m}
	var want []uint64
	for id := uint64(0); id < 90; id += 3 {
		q.handOn([]hw.WC{{ID: id, Op: hw.OpRead}, {ID: id + 1, Op: hw.OpFetchAdd}, {ID: id + 2, Op: hw.OpWrite}})
		assert.False(t, m.open, "the device waits now")
		want = append(want, id, id+1, id+2)
	}
	assert.Equal(t, want, m.ids)
	for _, how := range []string{"in an array", "with more", "alone"} {
		assert.Greater(t, m.how[how], 5, how)
	}
	q.handOn([]hw.WC{{ID: 91, Status: hw.StatusFlushed}, {ID: 92, Op: hw.OpRecv, QP: 7}, {ID: 93, Op: hw.OpRecv, Flags: hw.WCInvalidated}})
	assert.Equal(t, []uint64{91, 92, 93}, m.ids[90:], "what CompleteOne does not take goes in arrays")
}
