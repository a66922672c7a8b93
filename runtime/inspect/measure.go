package inspect

import "time"

// longestMeasuring bounds for how long a visitor may measure at a time.
const longestMeasuring = 10 * time.Minute

// LetMeasure lets visitors of the page have the requests of an adapter measured for up to ten minutes
// at a time, as [godat/runtime.IA.MeasureLatency] does, and says on the page how. It ends by itself,
// however many visitors ask and go. Without LetMeasure the page switches nothing. A program that is
// measured is a little slower, so it is for a page that only operators reach. LetMeasure is called
// before the first request, and returns h.
func (h *Handler) LetMeasure() *Handler {
	if h.isMade() {
		h.letsMeasure = true
	}
	return h
}

type measuring struct {
	Can  bool          // a visitor can switch it
	Left time.Duration // of what a visitor has switched on
	On   bool          // by whomever
}

// Text is measuring in words.
func (m *measuring) Text() string {
	switch {
	case m.Left > 0:
		return "Requests and calls are measured, for " + ago(m.Left.Round(time.Second)) + " more."
	case m.On:
		return "The program has requests and calls measured."
	case m.Can:
		return "Requests and calls are not measured now. Measure for"
	}
	return "Requests and calls are not measured now, and the program lets no visitor switch that on."
}

// meter measures for visitors. The mutex of its adapter guards it.
type meter struct {
	stop  func() // nil while nobody measures
	until time.Time
	timer *time.Timer
}

// measureFor measures for so many seconds from now on, or not any more.
func (a *adapter) measureFor(seconds int) error {
	d := time.Duration(min(seconds, int(longestMeasuring/time.Second))) * time.Second
	a.mu.Lock()
	defer a.mu.Unlock()
	m := &a.meter
	if m.stop == nil && d > 0 {
		stop, err := a.ia.MeasureLatency()
		if err != nil {
			return err
		}
		m.stop = stop
	}
	if m.timer != nil {
		m.timer.Stop()
	}
	m.until = time.Now().Add(d)
	if d > 0 {
		m.timer = time.AfterFunc(d, a.measured)
	}
	a.endMeter()
	return nil
}

// measured is called when the time to measure is over.
func (a *adapter) measured() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.endMeter()
}

// endMeter ends what a visitor has had measured, if its time is over. The caller holds the mutex.
func (a *adapter) endMeter() {
	if m := &a.meter; m.stop != nil && !time.Now().Before(m.until) { // a visitor may have begun anew
		m.stop()
		m.stop = nil
	}
}

func (h *Handler) measuring(a *adapter) *measuring {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := &measuring{Can: h.letsMeasure, On: a.ia.MeasuresLatency()}
	if a.meter.stop != nil {
		m.Left = time.Until(a.meter.until)
	}
	return m
}
