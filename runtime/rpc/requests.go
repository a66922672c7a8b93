package rpc

import "time"

// Requests is the channel on which requests come, for a program that waits for other things, too, in
// the same select. The program calls Reply or Fail of each, once. The channel is closed when the server
// or its adapter is closed, and nil of a nil server. A select that goes on behind that sets its variable
// of the channel to nil.
//
// A request waits in the server until the program takes it. As long as it waits, its caller's leaving,
// the end of its time or of its connection takes it away: the program does not get it.
func (s *Server) Requests() <-chan *Request {
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

// feed is the goroutine that gives requests to the channel.
func (s *Server) feed() {
	defer close(s.fed)
	defer close(s.requests)
	for r := s.take(); r != nil; r = s.take() {
		select {
		case s.requests <- r: // the program waits
			continue
		default:
		}
		s.offer(r)
		ctx := r.Context()
		select {
		case s.requests <- r:
			s.offer(nil)
		case <-ctx.Done(): // also at the end of its connection
			s.takeBack(r)
			_ = r.refuse(CodeBusy, "its time was over before a handler began it") // fails when the connection has ended
			s.count(-1)
		case <-s.done:
			s.takeBack(r)
			r.discard()
			s.count(-1)
		}
	}
}

// offer says which request waits for the program.
func (s *Server) offer(r *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offered = r
}

// busy reports whether requests wait because no handler is free. The caller holds mu.
func (s *Server) busy() bool {
	return s.queue.waiting >= max(s.queue.idle, 1) && s.queue.running > 0 && (s.fed == nil || s.offered != nil)
}

// admit lets a request wait for a handler, or says why it is refused.
func (s *Server) admit(r *Request) (code uint16, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch why = s.queue.tooLate(r, s.busy()); {
	case s.draining:
		code, why = CodeDraining, refusals[CodeDraining]
	case s.taken == s.most: // connections have ended, and their requests are not answered
		code, why = CodeBusy, refusals[CodeBusy]
	case why != "":
		code = CodeBusy
	default:
		s.begun++
		s.active++
		s.taken++
		s.queue.add(r)
		s.more.Signal()
		return 0, ""
	}
	s.refused++
	return code, why
}

// take waits for the next request that still helps its caller, for a handler. It is nil when the server
// has ended.
func (s *Server) take() *Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for s.queue.waiting == 0 && !s.over {
			s.queue.idle++
			s.more.Wait()
			s.queue.idle--
		}
		if s.over {
			return nil
		}
		r, now := s.queue.next(), time.Now()
		why := s.queue.expired(r, now, s.busy())
		if why == "" {
			r.began = now
			s.queue.running++
			r.from.line.running++
			return r
		}
		s.taken--
		s.refused++
		s.mu.Unlock()
		_ = r.refuse(CodeBusy, why) // fails when the connection has ended
		s.count(-1)
		s.mu.Lock()
	}
}

// takeBack is of a request that was offered in vain.
func (s *Server) takeBack(r *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offered = nil
	s.refused++
	s.taken--
	s.queue.running--
	r.from.line.running--
}

// finish counts an answer of the program's; count(-1) follows when it has been sent. What takes a method
// is told by answers in time: a handler whose caller has left may stop half-way, or wait for that.
func (s *Server) finish(r *Request, code uint16, inTime bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	s.answered.count(code)
	s.queue.running--
	r.from.line.running--
	s.queue.load.observe(r.header.code, time.Since(r.began), inTime)
}

// withdraw takes a request out of the queue; false if it is not there. Who withdraws it answers it.
func (s *Server) withdraw(r *Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.queue.remove(r) {
		return false
	}
	s.taken--
	s.refused++
	return true
}

// drop ends the requests of a connection that has ended which no handler has begun.
func (s *Server) drop(p *served) {
	for {
		s.mu.Lock()
		r := p.line.first
		if r != nil {
			s.queue.remove(r)
			s.taken--
		}
		s.mu.Unlock()
		if r == nil {
			return
		}
		r.discard()
		s.count(-1)
	}
}

// endRequests lets no request come any more.
func (s *Server) endRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.more.Broadcast()
}

// untaken is how many requests the program has not got. The caller holds mu.
func (s *Server) untaken() int {
	if s.offered != nil {
		return s.queue.waiting + 1
	}
	return s.queue.waiting
}
