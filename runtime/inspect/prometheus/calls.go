package prometheus

import (
	"time"

	"godat/evd"
	"godat/runtime/rpc"
)

// calls sums the clients of package rpc by the address of the server, and the servers.
func (p *scrape) calls() {
	type sum struct {
		calls, waiting, down, callers int
		oldest, callersAge            time.Duration
	}
	clients := make(map[string]sum)
	for _, row := range p.now.Reports["rpc clients"] {
		if c, ok := row.(rpc.ClientSnapshot); ok {
			s := clients[c.Server]
			s.calls += c.Calls
			s.waiting += c.Waiting
			if c.Down != "" {
				s.down++
			}
			s.callers += c.Callers
			s.callersAge = max(s.callersAge, c.CallersAge)
			s.oldest = max(s.oldest, c.OldestAge)
			clients[c.Server] = s
		}
	}
	for server, s := range clients {
		p.gauge(callsUnderWay, float64(s.calls), server)
		p.gauge(messagesWaiting, float64(s.waiting), server)
		p.gauge(clientsDown, float64(s.down), server)
		p.gauge(oldestCall, s.oldest.Seconds(), server)
		p.gauge(callersWaiting, float64(s.callers), server)
		p.gauge(oldestCaller, s.callersAge.Seconds(), server)
	}
	p.servers()
}

// servers sums the servers of package rpc by their address, where one may be closing beside the next.
func (p *scrape) servers() {
	type sum struct {
		requests, untaken int
		taken, waits      time.Duration
	}
	servers := make(map[string]sum)
	for _, row := range p.now.Reports["rpc servers"] {
		if r, ok := row.(rpc.ServerSnapshot); ok {
			s := servers[r.Address]
			s.requests += r.Requests
			s.untaken += r.Untaken
			s.taken, s.waits = max(s.taken, r.OldestAge), max(s.waits, r.UntakenAge)
			servers[r.Address] = s
		}
	}
	for address, s := range servers {
		p.gauge(requestsUnderWay, float64(s.requests), address)
		p.gauge(requestsUntaken, float64(s.untaken), address)
		p.gauge(oldestTaken, s.taken.Seconds(), address)
		p.gauge(oldestUntaken, s.waits.Seconds(), address)
	}
}

// totals has how often clients of package rpc connected anew, those that are closed among them.
func (p *scrape) totals() {
	for _, row := range p.now.Reports["rpc totals"] {
		if t, ok := row.(rpc.TotalSnapshot); ok && t.End == "client" {
			p.counter(reconnects, t.Reconnects, t.Address)
		}
	}
}

// minute has what went wrong with calls of the last minute, by code: of those that live, and by the address.
func (p *scrape) minute() {
	type end struct{ server, end string }
	answers, failures := make(map[end]uint64), make(map[end]map[string]uint64)
	add := func(of end, m *rpc.Minute) {
		answers[of] += m.Answers
		for _, f := range m.Failures {
			if failures[of] == nil {
				failures[of] = make(map[string]uint64)
			}
			failures[of][f.Code] += f.Count
		}
	}
	for _, row := range p.now.Reports["rpc clients"] {
		if c, ok := row.(rpc.ClientSnapshot); ok {
			add(end{c.Server, "client"}, &c.Minute)
		}
	}
	for _, row := range p.now.Reports["rpc servers"] {
		if s, ok := row.(rpc.ServerSnapshot); ok {
			add(end{s.Address, "server"}, &s.Minute)
		}
	}
	for of, n := range answers {
		p.gauge(minuteAnswers, float64(n), of.server, of.end)
	}
	for of, codes := range failures {
		for code, n := range codes {
			p.gauge(minuteFailures, float64(n), of.server, of.end, code)
		}
	}
}

// methods has what clients and servers of package rpc have counted by method, those that are closed among them.
func (p *scrape) methods() {
	for _, row := range p.now.Reports["rpc methods"] {
		m, ok := row.(rpc.MethodSnapshot)
		if !ok {
			continue
		}
		metric := clientCalls
		if m.End == "server" {
			metric = answers
			p.counter(metric, m.Refused, m.Address, m.Method, "refused")
		} else {
			p.counter(metric, m.Lost, m.Address, m.Method, "lost")
		}
		p.counter(metric, m.Answers-m.Failures, m.Address, m.Method, "done")
		p.counter(metric, m.Failures, m.Address, m.Method, "failed")
		p.counter(metric, m.Left, m.Address, m.Method, "left")
		p.counter(late, m.Late, m.Address, m.Method, m.End)
		p.histogram(callTimes, []*evd.HistogramSnapshot{m.Latency}, m.Address, m.Method, m.End)
	}
}
