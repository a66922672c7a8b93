package rpc

import (
	"sync"
	"sync/atomic"
	"time"

	"godat/hw"
	dat "godat/runtime"
)

// room is how many bytes a server may still write before it looks again what the client's system has
// acknowledged. A Write is done when this end's system has taken its bytes. So on a slow link that would hold
// as much as its buffers do, and an answer behind it would wait for all of it. A server writes on when no
// more is on its way than two pieces, or than the link carries in aheadOf and the time of the way there and back.
type room struct {
	left atomic.Int64

	mu   sync.Mutex
	last hw.Flow   // from which on the rate is told
	at   time.Time // of last
	rate float64   // bytes a second; 0 before it is told

	mark   uint64        // how much will have passed when all is there that was written by markAt
	markAt time.Time     // zero before the first
	way    time.Duration // the shortest time until a mark was there; 0 before the first
}

const (
	aheadOf = 500 * time.Millisecond
	// rateOver is the least time over which the rate is told: acknowledgements come in bursts.
	rateOver = 250 * time.Millisecond
	// leastPause and mostPause bound the time between two looks while there is no room.
	leastPause = time.Millisecond
	mostPause  = 50 * time.Millisecond
	// roomForAll is the room where the transport does not tell.
	roomForAll = 1 << 40
)

// take takes n bytes of the room, if it has as many.
func (m *room) take(n int) bool { return m.left.Add(-int64(n)) >= 0 }

// await waits until there is room for a Write of a request, or its caller does not wait any more.
func (m *room) await(r *Request, n int) {
	pause := leastPause
	for !m.look(r.from.link.conn, n, int(r.from.turns.size.Load())) {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-r.Context().Done():
			timer.Stop()
			return
		}
		pause = min(2*pause, mostPause)
	}
}

// look looks what is on its way, and takes n bytes of the room that is left, if it has as many.
func (m *room) look(conn *dat.Conn, n, piece int) bool {
	now, ok := conn.Endpoint.Flow()
	if !ok {
		m.left.Store(roomForAll)
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	left, ok := m.admit(now, time.Now(), n, piece)
	if ok {
		m.left.Store(left)
	}
	return ok
}

// admit is whether there is room for n bytes, and how much behind them. The caller holds mu.
func (m *room) admit(now hw.Flow, at time.Time, n, piece int) (left int64, ok bool) {
	if d := at.Sub(m.at); d >= rateOver {
		if !m.at.IsZero() && m.last.Waiting > 0 {
			m.rate = float64(now.Passed-m.last.Passed) / d.Seconds()
		}
		m.last, m.at = now, at
	}
	most := max(int64(2*piece), int64(m.rate*(aheadOf+m.way).Seconds()))
	left = most - int64(now.Waiting) - int64(n)
	return max(left, 0), left >= 0 || now.Waiting == 0
}

// isQuick reports whether what was written up to an earlier call was there within quickPiece.
func (m *room) isQuick(conn *dat.Conn) bool {
	now, ok := conn.Endpoint.Flow()
	if !ok {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.quick(now, time.Now())
}

// quick is isQuick. The caller holds mu.
func (m *room) quick(now hw.Flow, at time.Time) (yes bool) {
	if now.Waiting == 0 {
		return true
	}
	if m.markAt.IsZero() || now.Passed >= m.mark {
		if took := at.Sub(m.markAt); !m.markAt.IsZero() && (m.way == 0 || took < m.way) {
			m.way = took
		}
		yes = at.Sub(m.markAt) < quickPiece
		m.mark, m.markAt = now.Passed+now.Waiting, at
	}
	return yes
}
