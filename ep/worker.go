package ep

import (
	"sync/atomic"
	"time"
)

// alarm asks the endpoint's goroutine to tell the step when d has passed. A later
// alarm replaces it; d = 0 only cancels.
type alarm struct {
	d   time.Duration
	gen uint32
}

// worker is the endpoint's goroutine and its clock. The token's holder starts it and
// sets its alarms; it lives from the first Connect or Accept to Close.
type worker struct {
	e            *Endpoint     // immutable, as are bell and alarms
	bell         chan struct{} // wakes the goroutine, so that it inherits the token
	alarms       chan alarm
	quit, served chan struct{} // made by start; Close uses them when no step runs any more

	fired atomic.Uint32 // generation of the alarm that went off

	// Owned by the token's holder.
	serving  bool // the goroutine is there
	alarmGen uint32
}

func (w *worker) init(e *Endpoint) {
	w.e, w.bell, w.alarms = e, make(chan struct{}, 1), make(chan alarm, 1)
}

// start starts the endpoint's goroutine unless it runs.
func (w *worker) start() {
	w.e.box.own.Check()
	if !w.serving {
		w.serving = true
		w.quit, w.served = make(chan struct{}), make(chan struct{})
		go w.serve(w.quit, w.served)
	}
}

// serve is the endpoint's goroutine: it inherits the token when a holder left work,
// and it watches the clock.
func (w *worker) serve(quit <-chan struct{}, served chan<- struct{}) {
	defer close(served)
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	var gen uint32
	for {
		select {
		case <-w.bell:
			w.e.box.inherit()
		case a := <-w.alarms:
			timer.Stop()
			gen = a.gen
			if a.d > 0 {
				timer.Reset(a.d)
			}
		case <-timer.C:
			w.fired.Store(gen)
			w.e.box.tell(tellTimeout)
		case <-quit:
			return
		}
	}
}

// setAlarm has the goroutine tell the step after d, unless setAlarm is called again
// before; 0 sets no alarm.
func (w *worker) setAlarm(d time.Duration) {
	w.e.box.own.Check()
	w.alarmGen++
	if !w.serving {
		return
	}
	select {
	case <-w.alarms:
	default:
	}
	w.alarms <- alarm{d, w.alarmGen} // only the holder sends, and it made room
}

// wake wakes the endpoint's goroutine.
func (w *worker) wake() {
	select {
	case w.bell <- struct{}{}:
	default:
	}
}
