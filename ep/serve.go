package ep

import "time"

// alarm asks the endpoint's goroutine to time something: the step is told when d
// has passed. An alarm that follows replaces it; d = 0 only cancels.
type alarm struct {
	d   time.Duration
	gen uint32
}

// startServing starts the endpoint's goroutine. It lives from the first Connect
// or Accept to Close.
func (e *Endpoint) startServing() {
	if !e.serving {
		e.serving = true
		e.quit, e.served = make(chan struct{}), make(chan struct{})
		go e.serve(e.quit, e.served)
	}
}

// serve does what no poster should: it inherits the token with what a poster
// left over, and it watches the clock.
func (e *Endpoint) serve(quit <-chan struct{}, served chan<- struct{}) {
	defer close(served)
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	var gen uint32
	for {
		select {
		case <-e.bell:
			e.inherit()
		case a := <-e.alarms:
			timer.Stop()
			gen = a.gen
			if a.d > 0 {
				timer.Reset(a.d)
			}
		case <-timer.C:
			e.fired.Store(gen)
			e.box.tell(tellTimeout)
		case <-quit:
			return
		}
	}
}

// setAlarm tells the step after d, unless another call of setAlarm came first;
// 0 sets none.
func (e *Endpoint) setAlarm(d time.Duration) {
	e.box.own.Check()
	e.alarmGen++
	if !e.serving {
		return
	}
	select {
	case <-e.alarms:
	default:
	}
	e.alarms <- alarm{d, e.alarmGen} // only the holder sends, and it made room
}
