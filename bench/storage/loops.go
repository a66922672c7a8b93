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
	Served   int64  // commands that a plain server answered, or the disk of Linux's target

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

// late is how many events a completer may have sent without having counted them: it counts several at a time,
// and the system may keep it from its processor before it does.
const late = 8

// prove compares what both ends counted with what the row says it runs, for so many commands. A turn
// of a row that does not prove itself refuses the row.
func (r Row) prove(commands int64, server, client loops) error {
	if r.Intake == "" {
		if r.Name == pacing {
			commands = 0
		}
		if server.Served != commands || server.Provider != "" || client.Provider != "" {
			return fmt.Errorf("a plain server answered %d of %d commands", server.Served, commands)
		}
		return nil
	}
	if r.Kernel {
		if server.Served != commands {
			return fmt.Errorf("the disk of Linux's target answered %d of %d commands", server.Served, commands)
		}
		return r.proveEnd("host", commands, client)
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
	case took < commands-min(late, commands/10):
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

// soon is how many commands a second come sooner than a sleep costs.
const soon = 20_000

// provePolling looks whether an adapter that is to poll on while completions come soon did, when it found
// nothing more often than now and then.
func (r Row) provePolling(perSecond float64, server, client loops) error {
	if r.Name != adaptive || perSecond < soon {
		return nil
	}
	for _, p := range []hw.PollCounts{server.Polls, client.Polls} {
		if p.Arms > few && p.Spun == 0 {
			return fmt.Errorf("an end sleeps at %.0f commands a second whenever it finds nothing, as %s does not: %+v", perSecond, r.Name, p)
		}
	}
	return nil
}

// proveIdle compares what both ends counted while there was no command.
func (r Row) proveIdle(server, client loops) error {
	if r.Intake == intake.Poll && client.Polls.Consumers == 0 {
		return fmt.Errorf("the host has no consumer that polls while idle, as %s has: %+v", r.Name, client.Polls)
	}
	for end, l := range map[string]loops{"target": server, "host": client} {
		switch {
		case r.Intake != intake.Poll && l.Polls.Consumers > few:
			return fmt.Errorf("the %s has consumers that poll while idle, as %s has not: %+v", end, r.Name, l.Polls)
		case r.Name != adaptive && !r.Kernel && r.Intake != intake.Poll && l.Polls.Spun != 0:
			return fmt.Errorf("the %s spins while idle, as %s does not: %+v", end, r.Name, l.Polls)
		}
	}
	return nil
}

// contradicted says what the counts of a device have that the row has not; polled says that it has
// queues that must be polled.
func (r Row) contradicted(commands uint64, p hw.PollCounts, polled bool) string {
	rarely := few + commands/20
	switch {
	case r.Intake == intake.Poll && p.Consumers == 0:
		return "has no consumer that polls"
	case r.Intake == intake.Poll && polled && p.Arms > rarely: // some are for a loop that the system kept from its processor
		return "sleeps"
	case r.Intake == intake.Poll:
		return ""
	case p.Consumers > rarely:
		return "has consumers that poll"
	case !polled:
		return ""
	case r.Rounds == 0:
		return ""
	case p.Spun != 0 || p.Empty > 3*p.Arms+rarely:
		return "spins"
	}
	return ""
}
