package iwarp

import "godat/hw"

var _ hw.Flowing = (*queuePair)(nil)

// Flow implements [hw.Flowing].
func (q *queuePair) Flow() (f hw.Flow, ok bool) {
	c := q.conn
	if c == nil || !c.up.Load() {
		return hw.Flow{}, false
	}
	tcp := tcpUnder(c.link.conn)
	if tcp == nil {
		return hw.Flow{}, false
	}
	t, ok := trafficOf(tcp)
	return hw.Flow{Came: t.came, Passed: t.passed, Waiting: t.waiting, Acknowledged: t.peer == isThere, Lost: t.peer == isLost}, ok
}
