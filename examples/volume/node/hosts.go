package node

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"

	"godat/examples/volume/raftlog"
	"godat/runtime/rpc"
)

// Hosts that reach a follower alone can't use the disk, though all nodes live. So a follower tells its leader how many
// associations it has with hosts, and how many of their commands it has refused; a leader of which hosts want nothing hands
// over to a follower of which they do. The leader's answer is where hosts reach all nodes: followers speak to the leader alone.

// wants is what hosts want of a follower.
type wants struct {
	associations, refused uint32 // refused is since the follower told last
	ticks                 int    // for how many more ticks that holds
}

// tellHosts tells the leader, once in an election's time, what hosts want of this node, and learns where hosts reach the others.
func (n *Node) tellHosts() {
	var client *rpc.Client
	var at, told uint64
	var asks bool // the leader knows the question of health
	hangUp := func() {
		if client != nil {
			_ = client.Close() // its memory is the node's
			client = nil
		}
	}
	defer hangUp()
	for n.ctx.Err() == nil {
		pause(n.ctx, electionTicks*n.cfg.Tick)
		lead := n.leader.Load()
		if client != nil && lead != at {
			hangUp()
		}
		m, member := n.log.Member(lead)
		if !member || lead == n.cfg.ID {
			continue
		}
		var err error
		if client == nil {
			client, err = n.dial(n.ctx, lead, m.Addr)
			at, asks = lead, true
		}
		if err == nil {
			told, err = n.tellOf(client, lead, told)
		}
		if err == nil && asks {
			err = n.exchange(client, lead)
			if refused := (*rpc.Error)(nil); errors.As(err, &refused) {
				asks, err = false, nil // it is of the version before
			}
		}
		if err != nil {
			hangUp()
		}
	}
}

// tellOf tells the leader what hosts want, and returns how many commands were refused before that.
func (n *Node) tellOf(client *rpc.Client, lead, before uint64) (refused uint64, err error) {
	ctx, cancel := context.WithTimeout(n.ctx, callTime)
	defer cancel()
	associations := 0
	if n.cfg.Hosts.Count != nil {
		associations, refused = n.cfg.Hosts.Count()
	}
	b := binary.LittleEndian.AppendUint32(n.note(lead), uint32(associations))
	b = binary.LittleEndian.AppendUint32(b, uint32(refused-before))
	answer, err := client.Call(ctx, rpc.Call{Method: methodHosts, Payload: b}, nil)
	if err != nil {
		return refused, err
	}
	var told map[uint64]raftlog.Known
	if err := json.Unmarshal(answer, &told); err != nil {
		return refused, err
	}
	return refused, n.learn(told)
}

// takeHosts takes what a follower tells of its hosts.
func (d *door) takeHosts(from uint64, b []byte) ([]byte, error) {
	if len(b) != 8 {
		return nil, errNote
	}
	w := wants{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), 2 * electionTicks}
	d.events.put(func() { d.consensus.wanted(from, w) })
	known := d.log.Known()
	if d.cfg.Hosts.Addr != "" {
		if known == nil {
			known = make(map[uint64]raftlog.Known)
		}
		known[d.cfg.ID] = raftlog.Known{Birth: d.cfg.Birth, Hosts: d.cfg.Hosts.Addr}
	}
	return json.Marshal(known)
}

// wanted notes what hosts want of a follower.
func (c *consensus) wanted(id uint64, w wants) {
	if c.reign != nil {
		c.reign.wanted[id] = w
	}
}

// followHosts gives the lead to a follower that hosts want, if they have wanted nothing of this node for an election's time. It
// does so no earlier than five such times after this reign began, or after it did so before: a lead that moves serves nobody.
func (r *reign) followHosts() {
	for id, w := range r.wanted {
		if w.ticks--; w.ticks == 0 {
			delete(r.wanted, id)
		} else {
			r.wanted[id] = w
		}
	}
	r.settled++
	if asked := r.c.asked.Load(); r.c.cfg.Hosts.Count == nil || asked != r.asks {
		r.idle, r.asks = 0, asked
		return
	}
	if r.idle++; r.idle < electionTicks || r.settled < lateness || len(r.wanted) == 0 {
		return
	}
	associations, _ := r.c.cfg.Hosts.Count()
	next := uint64(0)
	r.c.raft.WithProgress(func(id uint64, kind raft.ProgressType, _ tracker.Progress) {
		w := r.wanted[id]
		wants := w.refused != 0 || w.associations != 0 && associations == 0
		if wants && kind == raft.ProgressTypePeer && !r.out[id] && r.unheard[id] <= electionTicks/2 && id != r.c.cfg.ID {
			next = id
		}
	})
	if next != 0 {
		r.settled = 0
		r.c.cfg.Logger.Warn("hosts ask nothing of this node, and something of another one, which is to lead", "node", next)
		r.c.raft.TransferLeader(next)
	}
}
