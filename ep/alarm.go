package ep

import (
	"sync"
	"sync/atomic"
	"time"

	"godat/ep/internal/line"
)

// alarm tells the endpoint's step that a time has passed. An endpoint has one during an
// attempt to connect and a graceful disconnect.
type alarm struct {
	// Immutable.
	box     *line.Mailbox
	running *sync.WaitGroup // the adapter's: it has been set, and neither stopped nor gone off
	limit   time.Duration
	due     time.Time

	rang  atomic.Bool // the time has passed
	timer *time.Timer // owned by the token's holder
}

// newAlarm sets an alarm that goes off after d.
func newAlarm(box *line.Mailbox, running *sync.WaitGroup, d time.Duration) *alarm {
	running.Add(1)
	a := &alarm{box: box, running: running, limit: d, due: time.Now().Add(d)}
	a.timer = time.AfterFunc(d, a.ring)
	return a
}

// ring is called by the timer, in a goroutine of its own.
func (a *alarm) ring() {
	defer a.running.Done()
	a.rang.Store(true)
	a.box.Tell(line.TellTimeout)
}

// stop has the alarm not go off, unless it does so now. A nil alarm is none.
func (a *alarm) stop() {
	if a != nil && a.timer.Stop() {
		a.running.Done()
	}
}
