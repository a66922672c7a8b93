package inspect

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
)

// over are connections to or from a peer that broke, or attempts to connect to it that failed, all for one reason.
type over struct {
	last   *ep.EndSnapshot
	first  time.Time // when the first ended
	to     string    // what was dialed; empty if the peer dialed
	host   string    // of a peer that dialed
	failed bool      // attempts
	n      uint64
	least  bool   // there were more, which the adapter has forgotten
	before string // what also ended; see joined
}

// settled is from which age on what ended is over, if the peer has connected since.
const settled = 5 * time.Second

// broken tells connections that broke lately, and attempts to connect that failed.
func (f *finder) broken() {
	list := f.ended()
	for _, o := range list {
		if !o.failed && !f.joined(o, list) && !f.isOver(o) && !f.isEffect(o) {
			f.put(trouble{Kind: "broke", Show: "last ends", Name: endName(o.last), Head: endName(o.last), Text: f.brokeText(o), rank: 2})
		}
	}
	for _, o := range list {
		if !o.failed || f.isOver(o) {
			continue
		}
		t := trouble{Kind: "failed", Show: "last ends", Name: endName(o.last), Head: endName(o.last), Text: f.failedText(o), rank: 2}
		if o.last.Event == event.TimedOut.String() {
			t.misses = o.last.Remote // nothing came from there
			if i, told := f.silentAt[o.to]; told {
				f.list[i].Text += fmt.Sprintf("; %s to connect to it anew failed within a minute", many(o.n, "attempt"))
				continue
			}
		}
		f.put(t)
	}
}

// ownClose is the event of an end that the program made by closing its endpoint.
const ownClose = "CLOSED"

// isOrderly reports whether an end of that event was asked for.
func isOrderly(ev string) bool { return ev == event.Disconnected.String() || ev == ownClose }

// ended are the ends of the last minute that are no orderly ones, by peer and reason, the latest first.
func (f *finder) ended() (list []*over) {
	known := make(map[[3]string]*over)
	for i := len(f.now.LastEnds) - 1; i >= 0; i-- {
		e := &f.now.LastEnds[i]
		if f.now.At.Sub(e.At) >= fresh || isOrderly(e.Event) {
			continue
		}
		o := &over{last: e, to: dialed(e), failed: isAttempt(e)}
		reason := e.Event
		if !o.failed {
			reason = numerals.ReplaceAllString(causeOf(e), "")
		}
		if o.to == "" {
			o.host = hostOf(e.Remote)
		}
		key := [3]string{o.to, o.host, reason}
		if known[key] == nil {
			known[key] = o
			list = append(list, o)
		}
		known[key].n++
		known[key].first = e.At
	}
	f.counted(list)
	return list
}

// counted gives what failed the adapter's count of the last minute, where all that failed so is one: of many ends it
// remembers the last.
func (f *finder) counted(list []*over) {
	grew := make(map[string]uint64)
	for _, c := range f.now.Ends {
		i := slices.IndexFunc(f.last.Ends, func(was ep.EndCount) bool {
			return was.Event == c.Event && was.Layer == c.Layer && was.Code == c.Code
		})
		n := c.Count
		if i >= 0 {
			n = grown(n, f.last.Ends[i].Count)
		}
		if !f.last.At.IsZero() {
			grew[c.Event] += f.lately("ended", fmt.Sprint(c.Event, c.Layer, c.Code), n)
		}
	}
	forgot := f.forgot()
	for _, o := range list {
		alone := !slices.ContainsFunc(list, func(other *over) bool { return other != o && other.last.Event == o.last.Event })
		if o.least = forgot; alone && grew[o.last.Event] > o.n {
			o.n, o.least = grew[o.last.Event], false
		}
	}
}

var numerals = regexp.MustCompile(`[0-9]+`)

// isAttempt reports whether an end is that of an attempt to connect.
func isAttempt(e *ep.EndSnapshot) bool {
	switch e.Event {
	case event.PeerRejected.String(), event.NonPeerRejected.String(), event.TimedOut.String(), event.Unreachable.String():
		return true
	}
	return false
}

// dialed is the address to which a connection or an attempt was dialed; empty if the peer dialed.
func dialed(e *ep.EndSnapshot) string {
	to, _, ok := strings.Cut(e.Owner, " (dial ")
	if !ok && (isAttempt(e) || e.Owner == "") {
		return e.Remote
	}
	if !ok {
		return ""
	}
	return to
}

// since is how many connections there are to the same peer, or from its host, that are younger than the last end.
func (f *finder) since(o *over) (n int) {
	count := func(name string, e *ep.EndpointSnapshot) {
		if e.State != connected || !e.Connected.After(o.last.At) {
			return
		}
		to, _, isDialed := strings.Cut(name, " (dial ")
		if o.to != "" && (isDialed && to == o.to || e.Remote == o.to) || o.to == "" && !isDialed && hostOf(e.Remote) == o.host {
			n++
		}
	}
	for i := range f.now.Conns {
		count(f.now.Conns[i].Name, &f.now.Conns[i].Endpoint)
	}
	for i := range f.now.Endpoints {
		count(f.now.Endpoints[i].Name, &f.now.Endpoints[i])
	}
	return n
}

// isOver reports whether the peer has connected since, and it goes on: what comes again and again is not over.
func (f *finder) isOver(o *over) bool {
	if f.now.At.Sub(o.last.At) < settled || !o.failed && o.last.At.Sub(o.first) >= settled {
		return false
	}
	if o.to != "" {
		return f.since(o) > 0
	}
	return uint64(f.since(o)) >= o.n
}

// isEffect reports whether another line says why no receive was posted here.
func (f *finder) isEffect(o *over) bool {
	return strings.HasPrefix(causeOf(o.last), ": no receive was posted here") && f.found["no consumer"]+f.found["callback"]+f.found["buffers"] > 0
}

// joined reports whether attempts to connect to the same peer fail since a connection broke: they say so.
func (f *finder) joined(o *over, list []*over) bool {
	for _, a := range list {
		if a.failed && o.to != "" && a.to == o.to && a.last.At.After(o.last.At) {
			a.before = fmt.Sprintf("; before that, %s to it broke, the last %s ago", many(o.n, "connection"), ago(f.now.At.Sub(o.last.At)))
			return true
		}
	}
	return false
}

// brokeText says of connections how they broke.
func (f *finder) brokeText(o *over) string {
	why := causeOf(o.last)
	if saw, _, unknown := strings.Cut(why, "without a farewell: "); unknown && f.since(o) > 0 {
		why = saw + "without a farewell: a peer there has connected again since, so its program or something between cuts the connection"
		if o.to != "" {
			why = saw + "without a farewell: the peer has connected again since, so its program or something between cuts the connection"
		}
	}
	when := ago(f.now.At.Sub(o.last.At)) + " ago with " + o.last.Event
	if o.n == 1 {
		return "ended " + when + why
	}
	peer := "from " + o.host
	if o.to != "" {
		peer = "to " + o.to
	}
	return fmt.Sprintf("%s %s ended within a minute, the last %s%s", o.number("connection"), peer, when, why)
}

// failedText says of attempts how they failed.
func (f *finder) failedText(o *over) string {
	when := ago(f.now.At.Sub(o.last.At)) + " ago with " + o.last.Event
	if o.n == 1 {
		return "an attempt to connect failed " + when + causeOf(o.last) + o.before
	}
	return fmt.Sprintf("%s to connect to %s failed within a minute, the last %s%s%s", o.number("attempt"), o.last.Remote, when, causeOf(o.last), o.before)
}

// forgot reports whether the adapter may have forgotten ends of the last minute that are no orderly ones.
func (f *finder) forgot() bool {
	var ends uint64
	for _, e := range f.now.Ends {
		if !isOrderly(e.Event) {
			ends += e.Count
		}
	}
	known, oldest := uint64(0), f.now.At
	for i := range f.now.LastEnds {
		if e := &f.now.LastEnds[i]; !isOrderly(e.Event) {
			if known++; known == 1 {
				oldest = e.At
			}
		}
	}
	return ends > known && f.now.At.Sub(oldest) < fresh
}

// number is how many there were, of something.
func (o *over) number(one string) string {
	if o.least {
		return "at least " + many(o.n, one)
	}
	return many(o.n, one)
}

// causeOf is the cause of an end in words; empty if none is known.
func causeOf(e *ep.EndSnapshot) string {
	const noBuffer = 0x1202 // of DDP
	c := e.Cause
	if c == nil {
		return ""
	}
	byPeer := strings.Contains(c.Text, "found "+hw.SidePeer.String())
	switch {
	case c.Layer == hw.LayerDAT.String() && c.Code == int(hw.StatusReceiverNotReady):
		return noReceive(e, byPeer) + " (" + hw.StatusReceiverNotReady.String() + ")"
	case c.Layer == hw.LayerDDP.String() && c.Code == noBuffer:
		return noReceive(e, !byPeer) + fmt.Sprintf(" (%s %#x)", c.Layer, c.Code)
	}
	if e.Event == event.PeerRejected.String() && strings.Contains(c.Text, "rejected the request, found") {
		return ": the peer's program rejected the request: its page tells why"
	}
	return ": " + found.ReplaceAllStringFunc(c.Text, func(side string) string {
		if strings.Contains(side, hw.SidePeer.String()) && !strings.Contains(c.Text, ": the peer's program") {
			return ", as the peer says"
		}
		return ""
	})
}

// found is what a cause says of the end that found it, and of the addresses, which the line has.
var found = regexp.MustCompile(`, found (here|by the peer)( \([^()]*\))?`)

// noReceive says at which end of a connection no receive was posted.
func noReceive(e *ep.EndSnapshot, here bool) string {
	if here {
		return fmt.Sprintf(": no receive was posted here, at %s, for a message from the peer %s: this program takes no events, keeps its buffers, or posts too few", e.Local, e.Remote)
	}
	return fmt.Sprintf(": no receive was posted at the peer %s for a message from %s here: look at the peer's page, whether it takes no events, keeps its buffers, or posts too few", e.Remote, e.Local)
}
