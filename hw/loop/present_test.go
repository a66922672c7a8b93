package loop

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/internal/soft"
)

// What Deregister costs does not grow with the connections of its zone that are idle: it
// looks at the pipes that were at work since the last wait.
func TestDeregisterLooksAtNoIdleConnection(t *testing.T) {
	const pairs = 100
	dev := open(t, uniqueName())
	var sides [pairs][2]*side
	for i := range sides {
		var shared func(*hw.QPConfig)
		if i > 0 {
			shared = inZoneOf(sides[0][1])
		}
		sides[i] = [2]*side{newSide(t, dev, nil), newSide(t, dev, shared)}
		connect(t, sides[i][0], sides[i][1])
	}
	zone := sides[0][1].zone.(*soft.Zone)
	looks := func() uint64 {
		before := zone.Looks()
		m, err := dev.Register(zone, make([]byte, 8), all)
		require.NoError(t, err)
		require.NoError(t, m.Deregister())
		return zone.Looks() - before
	}
	assert.Zero(t, looks(), "none was at work yet")
	exchange := func(i int, direct bool) {
		a, b := sides[i][0], sides[i][1]
		a.direct, b.direct = direct, direct
		b.recv(1, sides[0][1].sge(0, 8))
		a.post(send(1, a.sge(0, 8)))
		b.recvs.forget()
	}
	for _, direct := range []bool{false, true} {
		for i := range sides {
			exchange(i, direct)
		}
		assert.EqualValues(t, pairs, looks(), "once at each")
		assert.Zero(t, looks())
		exchange(17, direct)
		exchange(18, direct)
		assert.EqualValues(t, 2, looks())
		assert.Zero(t, looks())
	}
}
