package rpc

import (
	"godat/hw/event"
)

// Requests is the channel on which requests come, for a program that waits for other things, too, in the
// same select: [RequestOf] takes a request from its event, and the program calls Reply or Fail of each,
// once. As with the other channels of this library the last event is [godat/hw/event.Closed], when the server
// or its adapter is closed, and the channel stays open. It is nil for a nil server.
//
// A request waits in the server until the program takes it. As long as it waits, its caller's leaving,
// the end of its time or of its connection takes it away: the program does not get it. One goroutine takes
// requests, and may give them to others; only one gets the last event. [Server.Serve] has goroutines of its own.
func (s *Server) Requests() <-chan event.Event {
	if s == nil || s.ia == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fed == nil {
		s.fed = make(chan struct{})
		go s.feed()
	}
	return s.requests
}

// RequestOf returns the request of an event of [Server.Requests]; nil of [godat/hw/event.Closed].
func RequestOf(ev event.Event) *Request {
	r, _ := ev.Data.(*Request)
	return r
}

func (s *Server) event(r *Request) event.Event {
	return event.Event{Number: event.SoftwareEvent, Source: s, Data: r}
}

// feed is the goroutine that gives requests to the channel, which has a place for one: feed alone puts
// events there, and takes back those of requests that end before the program takes them.
func (s *Server) feed() {
	defer close(s.fed)
	for r := s.take(); r != nil; r = s.take() {
		for r != nil {
			s.offer(r, nil)
			s.requests <- s.event(r)
			r = s.awaitTaken(r)
		}
	}
	select {
	case ev := <-s.requests:
		s.takeBack(RequestOf(ev))
	default:
	}
	s.requests <- event.Event{Number: event.Closed, Source: s}
}

// awaitTaken waits until the program has taken the request in the channel, or that has ended. A send tells
// that the channel has a place again, so the next request waits in feed's hand. awaitTaken returns the
// request in the hand, if there is one then.
func (s *Server) awaitTaken(r *Request) (hand *Request) {
	if len(s.requests) == 0 { // the program waited for it
		return nil
	}
	for {
		if hand == nil {
			hand = s.takeNow()
			s.offer(r, hand)
		}
		var to chan event.Event
		var over <-chan struct{}
		var next event.Event
		if hand != nil {
			to, over, next = s.requests, hand.Context().Done(), s.event(hand)
		}
		select {
		case to <- next:
			r, hand = hand, nil
		case <-over:
			s.takeBack(hand)
			hand = nil
		case <-s.wake:
		case <-r.Context().Done(): // also at the end of its connection
			select {
			case <-s.requests:
				s.takeBack(r)
			default: // the program has it
			}
			return hand
		case <-s.done:
			if hand != nil {
				s.takeBack(hand)
			}
			return nil
		}
	}
}

// offer says which requests the program may take: those in the channel and in feed's hand.
func (s *Server) offer(placed, hand *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.placed, s.hand = placed, hand
}

// offers reports whether a request has left the queue, and the program has not taken it. The caller holds mu.
func (s *Server) offers(r *Request) bool {
	return r == s.hand || r == s.placed && len(s.requests) > 0
}

// offered is how many requests have left the queue that the program has not taken. The caller holds mu.
func (s *Server) offered() (n int) {
	for _, r := range []*Request{s.placed, s.hand} {
		if r != nil && s.offers(r) {
			n++
		}
	}
	return n
}

// takeBack ends a request that was offered in vain.
func (s *Server) takeBack(r *Request) {
	r.mu.Lock()
	left := r.canceled
	r.mu.Unlock()
	s.mu.Lock()
	if s.placed == r {
		s.placed = nil
	}
	if s.hand == r {
		s.hand = nil
	}
	s.taken--
	s.queue.running--
	r.from.line.running--
	why := callerLeft
	if left {
		s.leaves(r)
	} else {
		why = tooLate
		s.refuses(r)
		s.lately.count(kindRefused, why)
	}
	s.mu.Unlock()
	_ = r.refuse(CodeBusy, why) // fails when the connection has ended
	s.count(-1)
}

// Why a request is not begun.
const (
	tooLate    = "its time was over before a handler began it"
	callerLeft = "its caller left before a handler began it"
)
