package inspect

import (
	"cmp"
	"reflect"
	"time"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
)

func connFields(at time.Time) []field[dat.ConnSnapshot] {
	list := []field[dat.ConnSnapshot]{{"name", func(c *dat.ConnSnapshot) value { return word(c.Name) }}}
	for _, f := range endpointFields(at)[1:] {
		list = append(list, field[dat.ConnSnapshot]{f.name, func(c *dat.ConnSnapshot) value { return f.of(&c.Endpoint) }})
	}
	return append(list, field[dat.ConnSnapshot]{"unposted receives", func(c *dat.ConnSnapshot) value { return count(c.Missing) }})
}

// endpointFields are the columns of endpoints: octets that requests and receives moved, for how long
// neither has, requests that are outstanding, the age of the oldest, and receives that are posted.
func endpointFields(at time.Time) []field[ep.EndpointSnapshot] {
	type e = *ep.EndpointSnapshot
	return []field[ep.EndpointSnapshot]{
		{"name", func(e e) value { return word(e.Name) }},
		{"state", func(e e) value { return word(e.State) }},
		{"peer", func(e e) value { return word(e.Remote) }},
		{"age", func(e e) value { return lasting(lifetime(at, e)) }},
		{"requested", func(e e) value { return bytesOf(total(e.Requests.Moved)) }},
		{"received", func(e e) value { return bytesOf(total(e.Receives.Moved)) }},
		{"quiet", func(e e) value { return lasting(min(e.Requests.QuietAge, e.Receives.QuietAge)) }},
		{"pending", func(e e) value { return count(e.Requests.Outstanding) }},
		{"oldest", func(e e) value { return lasting(e.Requests.OldestAge) }},
		{"posted", func(e e) value { return count(e.Receives.Outstanding) }},
	}
}

// ownedFields are the columns of the endpoints of no Conn: those of an endpoint, and what their
// owners say, such as streams.
func ownedFields(s *seen) []field[ep.EndpointSnapshot] {
	list := endpointFields(s.At)
	for i := range s.Endpoints {
		if of := reflect.TypeOf(s.Endpoints[i].Owner); of != nil && of.Kind() == reflect.Struct {
			return append(list, structFields(of, func(e *ep.EndpointSnapshot) any { return e.Owner })...)
		}
	}
	return list
}

// lifetime is for how long an endpoint has been connected.
func lifetime(at time.Time, e *ep.EndpointSnapshot) time.Duration {
	if e.Connected.IsZero() || e.State != connected {
		return 0
	}
	return at.Sub(e.Connected)
}

var dispatcherFields = []field[evd.DispatcherSnapshot]{
	{"name", func(d *evd.DispatcherSnapshot) value { return word(d.Name) }},
	{"owner", func(d *evd.DispatcherSnapshot) value { return word(d.Owner) }},
	{"mode", func(d *evd.DispatcherSnapshot) value { return word(d.Mode) }},
	{"room", func(d *evd.DispatcherSnapshot) value { return count(d.QLen) }},
	{"reserved", func(d *evd.DispatcherSnapshot) value { return count(d.Reserved) }},
	{"queued", func(d *evd.DispatcherSnapshot) value { return count(d.Queued) }},
	{"oldest", func(d *evd.DispatcherSnapshot) value { return lasting(d.OldestAge) }},
	{"events", func(d *evd.DispatcherSnapshot) value { return count(d.Events) }},
	{"refused", func(d *evd.DispatcherSnapshot) value { return count(d.Refused) }},
	{"lost", func(d *evd.DispatcherSnapshot) value { return count(d.Lost) }},
	{"waiters", func(d *evd.DispatcherSnapshot) value { return count(d.Waiters) }},
	{"callback", func(d *evd.DispatcherSnapshot) value { return lasting(d.CallbackAge) }},
}

var listenerFields = []field[dat.ListenerSnapshot]{
	{"name", func(l *dat.ListenerSnapshot) value { return word(l.Name) }},
	{"address", func(l *dat.ListenerSnapshot) value { return word(l.Addr) }},
	{"connections", func(l *dat.ListenerSnapshot) value { return count(l.Taken) }},
	{"of", func(l *dat.ListenerSnapshot) value { return count(l.Conns) }},
	{"waiting", func(l *dat.ListenerSnapshot) value { return count(l.Waiting) }},
	{"accepted", func(l *dat.ListenerSnapshot) value { return count(l.Accepted) }},
	{"rejected", func(l *dat.ListenerSnapshot) value { return count(l.Rejected) }},
	{"no place", func(l *dat.ListenerSnapshot) value { return count(l.NoPlace) }},
	{"no room", func(l *dat.ListenerSnapshot) value { return count(l.Overflows) }},
	{"half open", func(l *dat.ListenerSnapshot) value { return count(device(l).HalfOpen) }},
	{"gave way", func(l *dat.ListenerSnapshot) value { return count(device(l).GaveWay) }},
	{"no request", func(l *dat.ListenerSnapshot) value {
		return count(device(l).Silent - min(device(l).Foreign, device(l).Silent))
	}},
	{"turned away", func(l *dat.ListenerSnapshot) value { return count(device(l).Foreign) }},
	{"no descriptor", func(l *dat.ListenerSnapshot) value { return count(device(l).Descriptors) }},
}

// device is what the device counts, if it does.
func device(l *dat.ListenerSnapshot) hw.ListenerCounts {
	if l.Device == nil {
		return hw.ListenerCounts{}
	}
	return *l.Device
}

var srqFields = []field[ep.SRQSnapshot]{
	{"name", func(q *ep.SRQSnapshot) value { return word(q.Name) }},
	{"receives out", func(q *ep.SRQSnapshot) value { return count(q.Outstanding) }},
	{"of", func(q *ep.SRQSnapshot) value { return count(q.Depth) }},
	{"endpoints", func(q *ep.SRQSnapshot) value { return count(q.Endpoints) }},
}

var poolFields = []field[mem.PoolSnapshot]{
	{"name", func(p *mem.PoolSnapshot) value { return word(p.Name) }},
	{"buffers", func(p *mem.PoolSnapshot) value { return count(p.Buffers) }},
	{"size", func(p *mem.PoolSnapshot) value { return bytesOf(uint64(p.Size)) }},
	{"free", func(p *mem.PoolSnapshot) value { return count(p.Free) }},
	{"held", func(p *mem.PoolSnapshot) value { return count(p.Held) }},
	{"oldest held", func(p *mem.PoolSnapshot) value { return lasting(p.HeldAge) }},
	{"sending", func(p *mem.PoolSnapshot) value { return count(p.Sending) }},
	{"waiting", func(p *mem.PoolSnapshot) value { return count(p.Waiting) }},
}

func endFields(at time.Time) []field[ep.EndSnapshot] {
	return []field[ep.EndSnapshot]{
		{"name", func(e *ep.EndSnapshot) value { return word(endName(e)) }},
		{"ago", func(e *ep.EndSnapshot) value { return lasting(at.Sub(e.At)) }},
		{"event", func(e *ep.EndSnapshot) value { return word(e.Event) }},
		{"peer", func(e *ep.EndSnapshot) value { return word(e.Remote) }},
		{"cause", func(e *ep.EndSnapshot) value { return word(causeText(e.Cause)) }},
	}
}

// endName names the connection that has ended, or the endpoint of none.
func endName(e *ep.EndSnapshot) string { return cmp.Or(e.Owner, e.Name) }

// causeText is what is known of a cause; nothing if there is none.
func causeText(c *ep.CauseSnapshot) string {
	if c == nil {
		return ""
	}
	return c.Text
}
