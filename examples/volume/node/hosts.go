package node

import (
	"context"
	"encoding/json"
	"errors"

	"godat/examples/volume/raftlog"
	"godat/runtime/rpc"
)

// The leader's answer is where hosts reach all nodes: followers speak to the leader alone.

// tellHosts learns from the leader, once in an election's time, where hosts reach the other nodes.
func (n *Node) tellHosts() {
	var client *rpc.Client
	var at uint64
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
			err = n.tellOf(client, lead)
		}
		if err == nil && asks {
			err = n.consensus.exchange(client, lead)
			if errors.Is(err, noMethod(methodHealth)) {
				asks, err = false, nil // it is of the version before
			}
		}
		if err != nil {
			hangUp()
		}
	}
}

// tellOf asks the leader. One of the version before wants 8 bytes.
func (n *Node) tellOf(client *rpc.Client, lead uint64) error {
	ctx, cancel := context.WithTimeout(n.ctx, callTime)
	defer cancel()
	b := append(n.note(lead), make([]byte, hostsLen)...)
	answer, err := client.Call(ctx, rpc.Call{Method: methodHosts, Payload: b}, nil)
	if err != nil {
		return err
	}
	var told map[uint64]raftlog.Known
	if err := json.Unmarshal(answer, &told); err != nil {
		return err
	}
	return n.learn(told)
}

const hostsLen = 8

// takeHosts tells a follower where hosts reach the nodes.
func (d *door) takeHosts(b []byte) ([]byte, error) {
	if len(b) != hostsLen {
		return nil, errNote
	}
	known := d.log.Known()
	if d.cfg.Hosts.Addr != "" {
		if known == nil {
			known = make(map[uint64]raftlog.Known)
		}
		known[d.cfg.ID] = raftlog.Known{Birth: d.cfg.Birth, Hosts: d.cfg.Hosts.Addr}
	}
	return json.Marshal(known)
}
