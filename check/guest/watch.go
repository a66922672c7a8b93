package guest

import (
	"fmt"
	"io"
	"time"
)

// watch watches over one boot: it ends the machine when the program has ended or a time limit has passed.
type watch struct {
	g    *Guest
	con  *console
	line io.Writer // to the guest's second serial line
	late chan error
	stop chan struct{} // closed when the machine has ended
	gone chan struct{} // closed when run has ended
	end  func()        // kills the machine

	// Of the goroutine that reads the console.
	began time.Time
	clock clock
	again bool // the machine was killed, since its clock is wrong
}

func (w *watch) run() {
	defer close(w.gone)
	if !w.wait(w.g.booted, bootTimeout, "the guest did not boot") {
		return
	}
	if !w.wait(w.con.finished, w.g.cfg.Timeout, "the program did not end") {
		return
	}
	w.halt()
}

// halt answers init's last report, upon which init powers the machine off, and
// waits for that. After haltTimeout it kills the machine, which is no failure.
func (w *watch) halt() {
	_, _ = io.WriteString(w.line, "heard\n")
	w.wait(nil, haltTimeout, "the guest did not power off")
}

// wait waits for ch. It returns false when the machine has ended, init has failed
// or the limit has passed; in the last two cases it ends the machine.
func (w *watch) wait(ch <-chan struct{}, limit time.Duration, what string) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	failed := w.con.finished
	if ch == nil {
		failed = nil
	}
	select {
	case <-ch:
		return true
	case <-failed:
		w.halt()
		return false
	case <-w.stop:
		return false
	case <-timer.C:
		w.late <- fmt.Errorf("%s in %v: %w", what, limit, ErrTimeout)
		w.end()
		return false
	}
}

// readClock answers a reading of the guest's clock. The first time that the clock is wrong
// it kills the machine instead.
func (w *watch) readClock(report string) {
	g := w.g
	answer, err := w.clock.read(time.Since(w.began), report)
	switch {
	case err != nil:
		answer = clockUnknown
		fmt.Fprintf(g.cfg.Complaints, "guest: TIMES MEAN NOTHING in the guest: %v\n", err)
	case answer == clockRight:
		fmt.Fprintf(g.cfg.Progress, "guest: %v\n", &w.clock)
	case answer == clockWrong && !g.job.slowClock:
		fmt.Fprintf(g.cfg.Progress, "guest: %v: booting again, with a slower clock\n", &w.clock)
		w.again = true
		w.end()
		return
	case answer != clockAgain:
		fmt.Fprintf(g.cfg.Complaints, "guest: TIMES MEAN NOTHING in the guest: %v, after %v\n", &w.clock, time.Since(w.began).Round(time.Second))
	}
	_, _ = io.WriteString(w.line, answer+"\n")
}
