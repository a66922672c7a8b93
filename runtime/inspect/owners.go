package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"godat/mem"
	dat "godat/runtime"
)

// Owner is what has registered memory: the connections of a listener or of an rpc server, those that were
// dialed to an address, a pool of the program's, all streams, or all other regions.
type Owner struct {
	Name    string
	Bytes   uint64 // of buffers and regions
	Buffers int
	Held    int           // buffers that the program has
	HeldAge time.Duration // for how long at least it has had the oldest of these: since the first look at it
	// Grown is by how many bytes the least memory of the last looks is more than that of looks Since.
	Grown int64
	Since time.Time
	lows  lows
}

const (
	mostOwners = 64
	otherOnes  = "others"
	regionsOf  = "regions of the program"
)

// streamsOf is the owner of what endpoints that are no connections say of their memory: streams do.
const streamsOf = "streams"

// registers is what an endpoint's owner says who knows how much memory is registered for it.
type registers interface{ RegisteredMemory() uint64 }

// OwnersOf says who has the memory of a snapshot, by name: at most 64 and two more.
func OwnersOf(s *dat.Snapshot) []Owner {
	names, all := ownerNames(s), make(map[string]*Owner)
	left := uint64(s.Memory.Bytes)
	add := func(name string, p *mem.PoolSnapshot) {
		if p.Buffers == 0 {
			return
		}
		if all[name] == nil && len(all) >= mostOwners {
			name = otherOnes
		}
		if all[name] == nil {
			all[name] = &Owner{Name: name}
		}
		o := all[name]
		bytes := uint64(p.Buffers) * uint64((p.Size+63)/64*64)
		o.Bytes += bytes
		o.Buffers += p.Buffers
		o.Held += p.Held
		o.HeldAge = max(o.HeldAge, p.HeldAge)
		left -= min(left, bytes)
	}
	for i := range s.Conns {
		add(names.of(&s.Conns[i]), &s.Conns[i].Buffers)
	}
	for i := range s.Pools {
		add(s.Pools[i].Name, &s.Pools[i])
	}
	for i := range s.Endpoints {
		if o, ok := s.Endpoints[i].Owner.(registers); ok && left > 0 {
			if all[streamsOf] == nil {
				all[streamsOf] = &Owner{Name: streamsOf}
			}
			bytes := min(left, o.RegisteredMemory())
			all[streamsOf].Bytes += bytes
			left -= bytes
		}
	}
	if left > 0 {
		all[regionsOf] = &Owner{Name: regionsOf, Bytes: left}
	}
	list := make([]Owner, 0, len(all))
	for _, o := range all {
		list = append(list, *o)
	}
	slices.SortFunc(list, func(a, b Owner) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// rpcNames are the addresses of rpc's servers and of those that clients call.
type rpcNames struct{ servers, clients map[string]bool }

func ownerNames(s *dat.Snapshot) rpcNames {
	names := func(kind, format string) map[string]bool {
		all, rows := make(map[string]bool), s.Reports[kind]
		for i := range rows {
			all[fmt.Sprintf(format, rowFields(rows)[0].of(&rows[i]).text)] = true
		}
		return all
	}
	return rpcNames{names("rpc servers", "Listener(%s)"), names("rpc clients", "%s")}
}

// of names the owner of a connection.
func (n rpcNames) of(c *dat.ConnSnapshot) string {
	switch to := c.Endpoint.Remote; {
	case n.servers[c.Listener]:
		return "rpc server of " + c.Listener
	case c.Listener != "":
		return "connections of " + c.Listener
	case n.clients[to]:
		return "rpc clients of " + to
	}
	return "connections that were dialed"
}

// What the lows of an owner are of.
const (
	ofBytes = iota
	ofHeld
)

// take takes over what earlier looks saw of the owner.
func (o *Owner) take(was *Owner, at time.Time) {
	var before lows
	if was != nil {
		before = was.lows
	}
	o.lows = before.with(at, [3]uint64{o.Bytes, uint64(o.Held)})
	o.Since, o.Grown = o.lows[0].at, o.lows.grown(ofBytes)
}

// owners looks for memory, and for buffers with the program, that grow without end.
func (f *finder) owners() {
	for i := range f.now.Owners {
		o := &f.now.Owners[i]
		lasts := ago(f.now.At.Sub(o.lows[0].at))
		if o.lows.endless(f.now.At, ofHeld) {
			f.add(1, "buffers out", "memory", o.Name, "this program takes buffers and gives too few back: %s of %s out, %s more within %s%s, and the oldest for %s; a Release or Put is missing",
				number(o.Held), are(o.Buffers, "buffer"), number(int(o.lows.grown(ofHeld))), lasts, o.until(f.now.At), ago(o.HeldAge))
		}
		if o.lows.endless(f.now.At, ofBytes) {
			f.add(2, "memory grows", "memory", o.Name, "%s registered, more and more for %s, %s since then; if that is no load that grows, something is not closed or freed", octets(o.Bytes), lasts, octets(uint64(o.Grown)))
		}
	}
}

// until says when the program will have all buffers, if it goes on so.
func (o *Owner) until(now time.Time) string {
	over, grown := now.Sub(o.lows[0].at), o.lows.grown(ofHeld)
	if grown <= 0 || o.Held >= o.Buffers {
		return ""
	}
	return ", so that none is left in about " + ago(time.Duration(float64(over)*float64(o.Buffers-o.Held)/float64(grown)))
}

var ownerFields = []field[Owner]{
	{"owner", func(o *Owner) value { return word(o.Name) }},
	{"memory", func(o *Owner) value { return bytesOf(o.Bytes) }},
	{"grown", func(o *Owner) value {
		if o.Grown < 0 {
			return value{text: "−" + octets(uint64(-o.Grown)), number: float64(o.Grown)}
		}
		return bytesOf(uint64(o.Grown))
	}},
	{"since", func(o *Owner) value { return word(o.Since.Format(time.TimeOnly)) }},
	{"buffers", func(o *Owner) value { return count(o.Buffers) }},
	{"held", func(o *Owner) value { return count(o.Held) }},
	{"oldest held", func(o *Owner) value { return lasting(o.HeldAge) }},
}

// heldText says for how long the oldest of the buffers that the program has has been out; nothing if it is not known yet.
func heldText(age time.Duration) string {
	if age == 0 {
		return ""
	}
	return fmt.Sprintf(", the oldest for %s", ago(age))
}
