package ep

import (
	"fmt"
	"strings"

	"godat/hw"
)

// pointCounts are what a service point counts; its mu guards them.
type pointCounts struct{ accepted, rejected, handedOff, overflows uint64 }

// PointSnapshot describes a service point at one moment. All counts only grow.
type PointSnapshot struct {
	Name       string // as in String
	Kind       string // PSP, RSP or CSP
	Addr       string // where it listens
	Qual       uint64
	Dispatcher string // what gets the requests

	Backlog   int    // the most requests that may wait for an answer
	Waiting   int    // requests that wait for the program's answer
	Accepted  uint64 // answers of the program
	Rejected  uint64 // and of the library, when something closes
	HandedOff uint64
	Overflows uint64 // requests that the library rejected because as many waited as Backlog allows

	// Device has what the provider counts; nil if it counts nothing.
	Device *hw.ListenerCounts
}

// snapshot describes the service point now.
func (p *point) snapshot() PointSnapshot {
	s := PointSnapshot{
		Name: fmt.Sprint(p.self), Addr: p.addr().String(), Qual: p.qual(), Dispatcher: p.to.String(), Backlog: p.backlog,
	}
	s.Kind, _, _ = strings.Cut(s.Name, "(")
	if l, ok := p.listener.(hw.CountingListener); ok {
		c := l.Counts()
		s.Device = &c
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Waiting = p.waiting
	c := &p.counted
	s.Accepted, s.Rejected, s.HandedOff, s.Overflows = c.accepted, c.rejected, c.handedOff, c.overflows
	return s
}
