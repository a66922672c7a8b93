package ep

import (
	"sync/atomic"
	"time"

	"godat/ep/internal/line"
)

// wordTime is by how much a connect's alarm comes behind the connect's time. The provider has that
// time too, and can say what the attempt had come to; the alarm is for a provider that does not.
const wordTime = 100 * time.Millisecond

// leastLate is from which lateness on an alarm says nothing of those it waits for.
const leastLate = 500 * time.Millisecond

// alarm tells the endpoint's step that a time has passed. An endpoint has one during an
// attempt to connect and a graceful disconnect.
type alarm struct {
	// Immutable.
	e     *Endpoint
	limit time.Duration
	due   time.Time

	rang  atomic.Bool // the time has passed
	timer *time.Timer // owned by the token's holder
}

// setAlarm replaces the alarm by one that goes off after d; 0 sets none. The machine
// ignores an alarm that goes off while it is replaced.
func (m *machine) setAlarm(d time.Duration) {
	m.box.Token.Check()
	running := &m.e.adapter.alarms
	if m.alarm != nil && m.alarm.timer.Stop() {
		running.Done()
	}
	m.alarm = nil
	if d > 0 {
		running.Add(1)
		m.alarm = &alarm{e: m.e, limit: d, due: time.Now().Add(d)}
		m.alarm.timer = time.AfterFunc(d, m.alarm.ring)
	}
}

// ring is called by the timer, in a goroutine of its own.
func (a *alarm) ring() {
	defer a.e.adapter.alarms.Done()
	a.rang.Store(true)
	a.e.box.Tell(line.TellTimeout)
}

// timeIsUp reports whether the present alarm has gone off in time. One that is late begins anew:
// this process was paused, or has more to do than it can, and what the alarm waits for may
// have come meanwhile, or could not.
func (m *machine) timeIsUp() bool {
	m.box.Token.Check()
	if m.alarm == nil || !m.alarm.rang.Load() {
		return false
	}
	if late := time.Since(m.alarm.due); late > max(m.alarm.limit/4, leastLate) {
		m.setAlarm(m.alarm.limit)
		return false
	}
	return true
}
