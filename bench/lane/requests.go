package lane

import "sync"

// Requests are what Go programs write today around a transport: a map from the number of
// a request to a channel of its own, on which its answer comes.
type Requests struct {
	mu      sync.Mutex
	waiting map[int]chan message
	order   chan chan message // the channels in the order of posts, for the consumer
}

// NewRequests makes a lane for depth requests at a time.
func NewRequests(depth int) *Requests {
	return &Requests{waiting: make(map[int]chan message), order: make(chan chan message, 2*depth)}
}

// Slots is twice the depth.
func (l *Requests) Slots() int { return cap(l.order) }

// Post makes a channel for a request, and answers the request at once.
func (l *Requests) Post(slot int) error {
	answer := make(chan message, 1)
	l.mu.Lock()
	l.waiting[slot] = answer
	l.mu.Unlock()
	l.order <- answer
	l.answer(slot)
	return nil
}

func (l *Requests) answer(slot int) {
	l.mu.Lock()
	answer := l.waiting[slot]
	delete(l.waiting, slot)
	l.mu.Unlock()
	answer <- message{uint64(slot)}
}

// Take waits for one answer after the other.
func (l *Requests) Take(f func(slot int) bool) error {
	for answer := range l.order {
		m := <-answer
		if !f(int(m[0])) {
			break
		}
	}
	return nil
}

// Close ends a Take.
func (l *Requests) Close() error {
	close(l.order)
	return nil
}
