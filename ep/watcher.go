package ep

import "godat/hw"

// Watcher returns where the messages of the endpoint's connection come in, so that a goroutine
// which waits for them can wait there, and process them itself: that saves the wake-up by another
// goroutine. It is nil for a nil or closed endpoint, and where the provider has no such place; iwarp has one over
// TCP on Linux. [hw.Watcher] says what its caller does. It is for an endpoint whose events a function gets
// ([godat/evd.Config.Func]), which a goroutine in Watch calls. A program asks for it when it has
// made the endpoint, and again after a Reset. DAT has no such call.
func (e *Endpoint) Watcher() hw.Watcher {
	if alive("ep.Watcher", e) != nil {
		return nil
	}
	e.ctl.reach.Lock()
	defer e.ctl.reach.Unlock()
	if w, ok := e.ctl.queuePair().(hw.Watchable); ok {
		return w.Watcher()
	}
	return nil
}
