package inspect

import (
	"cmp"

	"godat/evd"
)

// dispatchers looks for consumers that sleep, and for events without room.
func (f *finder) dispatchers() {
	what := f.eventsOf()
	for i := range f.now.Dispatchers {
		d := &f.now.Dispatchers[i]
		was := before(f.last.Dispatchers, d.Name, func(d *evd.DispatcherSnapshot) string { return d.Name })
		f.dispatcher(d, was, what(d))
	}
}

// asyncErrors is what a snapshot calls the owner of the dispatcher that an adapter has made for errors of the device.
const asyncErrors = "asynchronous errors"

// eventsOf names the events of a dispatcher.
func (f *finder) eventsOf() func(d *evd.DispatcherSnapshot) string {
	requests, listeners := make(map[string]bool), make(map[string]bool)
	for i := range f.now.Listeners {
		l := &f.now.Listeners[i]
		requests[l.Dispatcher], listeners[l.Name] = true, true
	}
	return func(d *evd.DispatcherSnapshot) string {
		switch {
		case d.Owner == asyncErrors:
			return "what the device reports of its own accord (IA.Async)"
		case requests[d.Name]:
			return "connection requests"
		case listeners[d.Owner]:
			return "the messages and completions of its connections"
		case d.Owner != "":
			return "its messages and completions"
		}
		return "its events"
	}
}

func waiting(d *evd.DispatcherSnapshot) string {
	if d.Queued == 1 {
		return "1 event has waited for " + ago(d.OldestAge)
	}
	return wait(d.Queued, "event") + ", the oldest for " + ago(d.OldestAge)
}

// fills reports whether at least half of a dispatcher's places have events that wait.
func fills(d *evd.DispatcherSnapshot) bool { return d.Queued > 0 && d.Queued >= d.QLen/2 }

// dispatcher looks at one, whose events are what.
func (f *finder) dispatcher(d, was *evd.DispatcherSnapshot, what string) {
	name := cmp.Or(d.Owner, d.Name)
	var refused, lost uint64
	if was != nil {
		refused, lost = grown(d.Refused, was.Refused), grown(d.Lost, was.Lost)
	}
	refused, lost = f.lately("full", d.Name, refused), f.lately("lost", d.Name, lost)
	full := d.Refused > 0 && d.QLen > 0 && d.Reserved >= d.QLen // without a refusal the length is exact
	room := ""
	if full {
		room = "; no room is left, and " + were(d.Refused, "post") + " refused"
	}
	switch {
	case d.CallbackAge >= late:
		waits := "nothing waits"
		if d.Queued > 0 {
			waits = wait(d.Queued, "event")
		}
		f.add(0, "callback", "dispatchers", name, "this program's callback has not returned for %s; %s behind it%s", ago(d.CallbackAge), waits, room)
	case d.OldestAge >= late:
		f.add(0, "no consumer", "dispatchers", name, "this program does not take %s: %s; its goroutine that should take them sleeps or is blocked%s", what, waiting(d), room)
	case full && (refused > 0 || was == nil):
		f.add(0, "full", "dispatchers", name, "no room is left for %s: %s reserved, and %s refused; make the dispatcher longer, or take its events", what, are(d.QLen, "place"), were(d.Refused, "post"))
	case was != nil && fills(d) && fills(was):
		f.add(1, "slow consumer", "dispatchers", name, "this program takes %s more slowly than they come: %s, and there is room for %s", what, wait(d.Queued, "event"), number(d.QLen))
	}
	if refused > 0 && !full {
		f.add(1, "full", "dispatchers", name, "%s refused lately, because there was no room for %s", were(refused, "post"), what)
	}
	if lost > 0 {
		f.add(0, "lost", "dispatchers", name, "%s lost within the last minute, because more were posted than there is room for", were(lost, "event"))
	}
}
