package evd

// Over some providers whoever waits for completions helps to find them: a polled device tells
// nobody of them, and sockets are read sooner by a goroutine that waits for what they bring. A
// Dequeue and a Wait do that by themselves. In ModeFunc the goroutine that waits for what
// Func records calls Ask, with these rules:
//
//	if d.Asks() {
//		d.Ask(false) // and then it looks for the last time before it sleeps
//		for range few {
//			d.Ask(true) // each time before it looks again
//		}
//	}

// Asks reports whether a goroutine that waits for what [Config.Func] takes has to ask the device
// for completions, or may. It is the same as long as the endpoints are that feed the dispatcher.
func (d *Dispatcher) Asks() bool { return d.isMade() && d.inner.Consumer().Asks() }

// Ask polls the device, if Asks reports that it is to be asked, and delivers what it finds: the
// calling goroutine calls Func. It returns at once if there is nothing. A goroutine calls Ask
// before it looks for the last time and sleeps; later completions wake it. If it looks a few
// times more before it sleeps, it calls Ask again before each look, with again.
func (d *Dispatcher) Ask(again bool) {
	switch {
	case !d.isMade():
	case again:
		d.inner.Consumer().PollAgain()
	default:
		d.inner.Consumer().BeforeSleep()
	}
}
