package nodes

import (
	"math/rand/v2"
	"time"
)

// cutoff cuts a volume's host off from a node: nothing comes from one to the other, or from neither. The nodes see each
// other, so the volume goes on, by another way of the host, and other troubles may come meanwhile.
func (v *volume) cutoff(m *member, lasts time.Duration, draw *rand.Rand) {
	host := v.hostAt()
	switch draw.IntN(3) {
	case 0:
		v.w.Network.HoldOneWay(host, m.host)
	case 1:
		v.w.Network.HoldOneWay(m.host, host)
	default:
		v.w.Network.Hold(host, m.host)
	}
	time.Sleep(lasts)
	v.w.Network.Release(host, m.host)
}
