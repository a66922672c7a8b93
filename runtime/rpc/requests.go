package rpc

import "time"

// busy reports whether requests wait because no handler is free. The caller holds mu.
func (s *Server) busy() bool {
	return s.queue.waiting >= max(s.queue.idle, 1) && s.queue.running > 0 && (s.fed == nil || s.offered() > 0)
}

// admit lets a request wait for a handler, or says why it is refused.
func (s *Server) admit(r *Request) (code uint16, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.offered = s.offered()
	switch why = s.queue.tooLate(r, s.busy()); {
	case s.draining:
		code, why = CodeDraining, refusals[CodeDraining]
	case s.taken == s.most: // connections have ended, and their requests are not answered
		code, why = CodeBusy, refusals[CodeBusy]
	case why != "":
		code = CodeBusy
	default:
		s.active++
		s.taken++
		s.queue.add(r)
		s.more.Signal()
		select {
		case s.wake <- struct{}{}: // feed, if it waits for the program
		default:
		}
		return 0, ""
	}
	s.refuses(r)
	s.lately.count(kindRefused, why)
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
		if r := s.next(); r != nil {
			return r
		}
	}
}

// takeNow is take without a wait: nil if no request waits.
func (s *Server) takeNow() *Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.queue.waiting > 0 && !s.over {
		if r := s.next(); r != nil {
			return r
		}
	}
	return nil
}

// next is the request whose turn it is; nil if that does not help its caller any more. The caller holds
// mu, which next gives back for a while then.
func (s *Server) next() *Request {
	r, now := s.queue.next(), time.Now()
	why := s.queue.expired(r, now, s.busy())
	if why == "" {
		r.began = now
		s.queue.running++
		r.from.line.running++
		if waited := now.Sub(r.arrived); waited >= time.Millisecond {
			s.lately.waited(waited)
		}
		return r
	}
	s.taken--
	s.refuses(r)
	s.lately.count(kindRefused, why)
	s.mu.Unlock()
	_ = r.refuse(CodeBusy, why) // fails when the connection has ended
	s.count(-1)
	s.mu.Lock()
	return nil
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
	s.last = time.Now()
	took, of := s.last.Sub(r.began), s.counts(r, code)
	of.answered.count(code)
	of.takes.observe(took)
	s.queue.load.observe(r.header.code, took, inTime)
}

// counts are those of a request's method. One that the program does not know is a peer's, and gets none of its own.
func (s *Server) counts(r *Request, code uint16) *methodCounts {
	if code == CodeUnknown {
		return s.methods.of(r.header.code)
	}
	return s.methods.known(r.header.code)
}

// refuses counts a request that is refused. The caller holds mu.
func (s *Server) refuses(r *Request) {
	s.refused++
	s.methods.of(r.header.code).refused.Add(1)
}

// withdraw takes a request out of the queue; false if it is not there. The caller that got true answers it, because nobody else can any more.
func (s *Server) withdraw(r *Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.queue.remove(r) {
		return false
	}
	s.taken--
	s.leaves(r)
	s.lately.waited(time.Since(r.arrived)) // in vain
	return true
}

// leaves counts a request that no handler has begun, and whose caller has left. The caller holds mu.
func (s *Server) leaves(r *Request) {
	s.ends.left.Add(1)
	s.methods.of(r.header.code).ends.left.Add(1)
	s.lately.count(kindLeft, "")
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
	return s.queue.waiting + s.offered()
}

// untakenAge is for how long the oldest of them has waited. The caller holds mu.
func (s *Server) untakenAge() (age time.Duration) {
	now := time.Now()
	for _, p := range s.queue.turns {
		age = max(age, now.Sub(p.line.first.arrived))
	}
	for _, r := range []*Request{s.placed, s.hand} {
		if r != nil && s.offers(r) {
			age = max(age, now.Sub(r.arrived))
		}
	}
	return age
}
