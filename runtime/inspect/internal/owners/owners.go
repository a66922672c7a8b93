// Package owners says what has registered the memory of a snapshot.
package owners

import (
	"cmp"
	"fmt"
	"reflect"
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

// Of says who has the memory of a snapshot, by name: at most 64 and two more.
func Of(s *dat.Snapshot) []Owner {
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
		for _, row := range rows {
			if v := reflect.ValueOf(row); v.Kind() == reflect.Struct { // of package rpc: its first field is the address
				all[fmt.Sprintf(format, v.Field(0))] = true
			}
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
