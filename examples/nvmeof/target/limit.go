package target

import "time"

// limit bounds how long others may take. One goroutine owns it, and reads its timer.
type limit struct {
	timer  *time.Timer
	length time.Duration
	due    time.Time // when the timer fires
}

// paused is how late a timer is seen by a process that does not run, or hardly.
const paused = 500 * time.Millisecond

func newLimit(d time.Duration) limit {
	return limit{time.NewTimer(d), d, time.Now().Add(d)}
}

// set bounds how long the others may take from now on.
func (l *limit) set(d time.Duration) {
	l.length, l.due = d, time.Now().Add(d)
	l.timer.Reset(d)
}

// again is called when the timer has fired, and reports whether the others have their time again. They have if this
// process was paused: what came meanwhile has to be looked at first, and they may have been paused together with it.
func (l *limit) again() bool {
	if time.Since(l.due) <= paused {
		return false
	}
	l.set(l.length)
	return true
}
