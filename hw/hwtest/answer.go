package hwtest

// answer is what an owner does once, by calls on its queue pair, from inside the call by
// which the provider tells it something.
type answer struct {
	when func() bool // called with the end's lock
	act  func()
}

// whenHears sets the end's answer.
func (e *end) whenHears(when func() bool, act func()) { e.answer.Store(&answer{when, act}) }

// answers answers what the provider tells, if that is due. An owner that is in a call does
// not: its calls come one at a time.
func (e *end) answers() {
	a := e.answer.Load()
	if a == nil {
		return
	}
	e.mu.Lock()
	due := a.when()
	e.mu.Unlock()
	if due && e.calls.TryLock() {
		e.calls.Unlock()
		a.give(e)
	}
}

// answerNow gives the answer if the provider told of it while the owner was in a call.
func (e *end) answerNow() { e.answer.Load().give(e) }

// give gives an end's answer, once.
func (a *answer) give(e *end) {
	if a != nil && e.answer.CompareAndSwap(a, nil) {
		a.act()
	}
}
