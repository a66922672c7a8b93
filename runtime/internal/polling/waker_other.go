//go:build !linux

package polling

// waker lets the poller's thread wake a goroutine. Here it goes through the scheduler,
// which costs a locked thread more than the eventfd of Linux.
type waker struct{ woken chan struct{} }

func newWaker() (*waker, error) { return &waker{woken: make(chan struct{}, 1)}, nil }

// wake ends the current wait or the next one. It does not block.
func (w *waker) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// wait sleeps until wake was called. One goroutine waits at a time.
func (w *waker) wait() { <-w.woken }

func (w *waker) close() error { return nil }
