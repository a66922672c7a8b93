package inspect

import (
	"fmt"
	"strings"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
)

// attempts are attempts to connect to an address that failed with an event.
type attempts struct {
	last *ep.EndSnapshot
	n    int
}

// broken tells connections that broke lately, and attempts to connect that failed.
func (f *finder) broken() {
	var failed []*attempts
	known := make(map[[2]string]*attempts)
	for i := len(f.now.LastEnds) - 1; i >= 0; i-- {
		e := &f.now.LastEnds[i]
		if f.now.At.Sub(e.At) >= fresh {
			continue
		}
		switch e.Event {
		case event.Disconnected.String():
		case event.PeerRejected.String(), event.NonPeerRejected.String(), event.TimedOut.String(), event.Unreachable.String():
			key := [2]string{e.Event, e.Remote}
			if known[key] == nil {
				known[key] = &attempts{last: e}
				failed = append(failed, known[key])
			}
			known[key].n++
		default:
			f.add(2, "broke", "last ends", endName(e), "ended %s ago with %s%s", ago(f.now.At.Sub(e.At)), e.Event, causeOf(e))
		}
	}
	for _, a := range failed {
		e := a.last
		when := ago(f.now.At.Sub(e.At)) + " ago"
		t := Trouble{Kind: "failed", Show: "last ends", Name: endName(e), Head: endName(e), rank: 2}
		if e.Event == event.TimedOut.String() {
			t.misses = e.Remote // nothing came from there
		}
		if a.n == 1 {
			t.Text = fmt.Sprintf("an attempt to connect failed %s with %s%s", when, e.Event, causeOf(e))
		} else {
			t.Text = fmt.Sprintf("%s%d attempts to connect to %s failed within a minute, the last %s with %s%s", f.atLeast(), a.n, e.Remote, when, e.Event, causeOf(e))
		}
		f.put(t)
	}
}

// atLeast says that the adapter may have forgotten ends of the last minute.
func (f *finder) atLeast() string {
	var ends uint64
	for _, e := range f.now.Ends {
		ends += e.Count
	}
	if all := f.now.LastEnds; ends > uint64(len(all)) && f.now.At.Sub(all[0].At) < fresh {
		return "at least "
	}
	return ""
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
	return ": " + c.Text
}

// noReceive says at which end of a connection no receive was posted.
func noReceive(e *ep.EndSnapshot, here bool) string {
	if here {
		return fmt.Sprintf(": no receive was posted here, at %s, for a message from the peer %s", e.Local, e.Remote)
	}
	return fmt.Sprintf(": no receive was posted at the peer %s for a message from %s here", e.Remote, e.Local)
}
