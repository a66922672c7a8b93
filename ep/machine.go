package ep

import (
	"time"

	"godat/ep/internal/life"
	"godat/ep/internal/line"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/door"
)

// machine is an endpoint as its state changes: package life says what an input does, and the machine does it. The
// token's holder owns all of it; others tell the mailbox a fact, an alarm or a control call, which the holder's step
// passes on.
type machine Endpoint

func (m *machine) endpoint() *Endpoint { return (*Endpoint)(m) }
func (m *machine) at() life.State      { return stateIn(&m.box) }

// take asks what an input does, and does it.
func (m *machine) take(in life.Input, d life.Detail) life.Effects {
	m.box.Token.Check()
	fx := m.life.Answer(m.at(), in, d)
	if fx.Moved {
		m.box.SetState(inBox(fx.State))
		m.record.note(chapter{what: what(in)})
	}
	if fx.GaveUp {
		m.adapter.ends.note(m.end(0, &hw.Cause{Text: "the endpoint was closed"}))
	}
	if fx.Moved {
		m.setAlarm(fx.Alarm)
	}
	if fx.Cause != nil {
		m.blame(fx.Cause, fx.Private)
	}
	if fx.Event == event.Established {
		m.adapter.counters.of(fx.Event, fx.Passive).whole.Add(1)
		m.record.connects.whole.Add(1)
		ev := event.Event{Number: fx.Event, Source: m.endpoint()}
		if fx.Private != nil {
			ev.Data = fx.Private
		}
		m.emit(&fx, ev)
	}
	m.tellLine(fx.Line)
	return fx
}

// tellLine tells the way of posts what to do.
func (m *machine) tellLine(what life.Line) {
	switch what {
	case life.Stay:
	case life.LetThrough:
		m.box.EndDetour()
	case life.Drain:
		m.box.QP().Drain()
	case life.EndOrderly, life.Abort:
		m.box.Break(what == life.EndOrderly)
	}
}

// handle acts on the inputs that the step was told.
func (m *machine) handle(told uint32) {
	m.box.Token.Check()
	if told&line.TellAsked != 0 {
		m.asked()
	}
	if told&line.TellEstablished != 0 {
		m.established()
	} else if told&line.TellFirstData != 0 {
		m.take(life.InFirstData, life.Detail{})
	}
	if told&line.TellRefused != 0 {
		m.take(life.InRefused, life.Detail{Why: m.facts.refusal.why, Private: m.facts.refusal.private})
	}
	if told&line.TellDown != 0 {
		m.take(life.Ended(m.facts.why), life.Detail{Why: m.facts.why})
	}
	if told&line.TellOverrun != 0 {
		m.take(life.InOverrun, life.Detail{})
	}
	if told&line.TellTimeout != 0 && m.timeIsUp() {
		m.take(life.InTimeout, life.Detail{})
	}
}

// asked gives the endpoint the request that its reserved service point has received,
// and announces it.
func (m *machine) asked() {
	a := m.facts.asked
	m.facts.asked = nil
	if m.take(life.InAsked, life.Detail{}).Moved {
		m.profile.setAddresses(a.request.Local(), a.request.Remote())
	}
	a.announce()
}

// established passes on what the provider says of a connection that is up.
func (m *machine) established() {
	info := m.facts.info
	m.facts.info = nil // an idle endpoint keeps what the profile has of it
	m.profile.setAddresses(info.Local, info.Remote)
	m.profile.agree(info.ReadsIn, info.ReadsOut)
	m.take(life.InEstablished, life.Detail{Private: info.Private})
}

// setAlarm replaces the alarm by one that goes off after d; 0 sets none. The machine
// ignores an alarm that goes off while it is replaced.
func (m *machine) setAlarm(d time.Duration) {
	m.box.Token.Check()
	m.alarm.stop()
	m.alarm = nil
	if d > 0 {
		m.alarm = newAlarm(&m.box, &m.adapter.alarms, d)
	}
}

// timeIsUp reports whether the present alarm has gone off in time. One that is late begins anew.
func (m *machine) timeIsUp() bool {
	m.box.Token.Check()
	if m.alarm == nil || !m.alarm.rang.Load() {
		return false
	}
	if life.TooLate(time.Since(m.alarm.due), m.alarm.limit) {
		m.setAlarm(m.alarm.limit)
		return false
	}
	return true
}

// blame has the connection end for that cause, unless there is one already, and adds what the end knows beside.
func (m *machine) blame(cause *hw.Cause, private []byte) {
	m.cause.blame(cause)
	full := m.cause.Load().Between(m.profile.local.addr, m.profile.remote.addr)
	if private != nil {
		said := *full
		said.Private = private
		full = &said
	}
	m.cause.Store(full)
}

// ended announces the end when everything that had a ticket at its beginning has been flushed; where
// the end is to be the last event, when all has that gets a ticket.
func (m *machine) ended() {
	m.box.Token.Check()
	if !m.box.Flushed(m.endIsLast) {
		return
	}
	fx := m.life.Flushed(m.at())
	if fx.Event != 0 {
		m.announceEnd(&fx)
	}
	if fx.Release > 0 {
		wiring(m.profile.conn).Main().Release(fx.Release)
	}
	if fx.Over {
		m.ctl.over.Done()
	}
}

// announceEnd announces the end, the last event of the connection.
func (m *machine) announceEnd(fx *life.Effects) {
	m.adapter.counters.of(fx.Event, false).whole.Add(1)
	m.record.disconnects.whole.Add(1)
	cause := m.cause.Load()
	m.record.note(chapter{what: whatEnded, number: fx.Event})
	m.adapter.ends.note(m.end(fx.Event, cause))
	m.emit(fx, event.ConnectionEnd(door.Key{}, fx.Event, m.endpoint(), fx.Private, cause))
	if fx.Event == event.Broken && m.adapter.cfg.Broke != nil {
		m.adapter.cfg.Broke(cause)
	}
}

// emit delivers a connection event into the place that there is for it.
func (m *machine) emit(fx *life.Effects, ev event.Event) {
	if !fx.Deliver {
		return
	}
	to := wiring(m.profile.conn).Main()
	to.Put(&ev)
	to.Flush()
}

// end describes the end of the connection, or of an attempt at one.
func (m *machine) end(number event.Number, cause *hw.Cause) end {
	m.box.Token.Check()
	one := end{
		endKind: endKind{number, cause.Layer, cause.Code}, at: time.Now(), name: m.endpoint().name(),
		cause: cause, local: m.profile.local, remote: m.profile.remote,
	}
	if f := m.adapter.cfg.Owner; f != nil {
		one.owner = f(m.context)
	}
	m.record.Mu.Lock()
	one.story = m.record.story.lines()
	m.record.Mu.Unlock()
	return one
}
