package storage

import (
	"errors"
	"fmt"

	"godat/evd"
	"godat/examples/nvmeof/intake"
	"godat/hw"
	dat "godat/runtime"
)

// loops is what the adapters of an end counted in a turn: how many events were taken in which way.
// Nothing of it is what was asked for.
type loops struct {
	Provider string // of the adapter; empty of an end without one
	Channel  int64  // events received from channels
	Batches  int64  // events received in batches
	Dequeued int64  // events dequeued
	Sleeps   int64  // how often a goroutine that wanted to dequeue slept
	Served   int64  // commands that a plain server answered

	Polls hw.PollCounts // of the device
}

// look reads what an adapter has counted.
func look(ia *dat.IA) (l loops, err error) {
	s, err := ia.Snapshot()
	if err != nil {
		return l, err
	}
	l.Provider = s.Provider
	if s.Polls != nil {
		l.Polls = s.Polls.PollCounts
	}
	for _, d := range s.Dispatchers {
		taken := int64(d.Taken)
		switch d.Mode {
		case evd.ModeChannel.String():
			l.Channel += taken
		case evd.ModeBatch.String():
			l.Batches += taken
		case evd.ModeQueue.String():
			l.Dequeued += taken
			l.Sleeps += int64(d.Sleeps)
		}
	}
	return l, nil
}

func (l loops) since(mark loops) loops {
	l.Channel -= mark.Channel
	l.Batches -= mark.Batches
	l.Dequeued -= mark.Dequeued
	l.Sleeps -= mark.Sleeps
	l.Served -= mark.Served
	p, m := &l.Polls, &mark.Polls
	p.Found, p.Empty, p.Consumers = p.Found-m.Found, p.Empty-m.Empty, p.Consumers-m.Consumers
	p.Arms, p.Waits, p.Wakes, p.HandBacks, p.Spun = p.Arms-m.Arms, p.Waits-m.Waits, p.Wakes-m.Wakes, p.HandBacks-m.HandBacks, p.Spun-m.Spun
	return l
}

// few is how many events of other kinds an end may have taken in a turn, such as those of the admin queue.
const few = 16

// prove compares what both ends counted with what the row says it runs, for so many commands. A turn
// of a row that does not prove itself refuses the row.
func (r Row) prove(commands int64, server, client loops) error {
	if r.Intake == "" {
		if server.Served != commands || server.Provider != "" || client.Provider != "" {
			return fmt.Errorf("a plain server answered %d of %d commands", server.Served, commands)
		}
		return nil
	}
	return errors.Join(r.proveEnd("target", commands, server), r.proveEnd("host", commands, client))
}

func (r Row) proveEnd(end string, commands int64, l loops) error {
	var took int64
	switch r.Intake {
	case intake.Batches:
		took = l.Batches
	case intake.Channel:
		took = l.Channel
	case intake.Poll:
		took = l.Dequeued
	}
	others := l.Batches + l.Channel + l.Dequeued - took
	switch {
	case took < commands:
		return fmt.Errorf("the %s took %d events by the loop of %s, for %d commands: %+v", end, took, r.Name, commands, l)
	case others > few+commands/100:
		return fmt.Errorf("the %s took %d events by other loops than that of %s: %+v", end, others, r.Name, l)
	case l.Sleeps != 0:
		return fmt.Errorf("the %s slept %d times before it dequeued: %+v", end, l.Sleeps, l)
	}
	if why := r.contradicted(uint64(commands), l.Polls, l.Provider != "iwarp"); why != "" {
		return fmt.Errorf("the %s %s, as %s does not: %+v", end, why, r.Name, l.Polls)
	}
	return nil
}

// contradicted says what the counts of a device have that the row has not; polled says that it has
// queues that must be polled.
func (r Row) contradicted(commands uint64, p hw.PollCounts, polled bool) string {
	rarely, often := few+commands/20, few+commands/2
	switch {
	case r.Intake == intake.Poll && p.Consumers == 0:
		return "has no consumer that polls"
	case r.Intake == intake.Poll && polled && p.Arms > often: // some are for a loop that the system kept from its processor
		return "sleeps"
	case r.Intake == intake.Poll:
		return ""
	case p.Consumers > rarely:
		return "has consumers that poll"
	case r.Name == adaptive || !polled:
		return ""
	case p.Empty > 3*p.Arms+rarely:
		return "spins"
	}
	return ""
}
