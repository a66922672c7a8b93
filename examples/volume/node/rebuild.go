package node

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"godat/examples/volume/entry"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/state"
	"godat/runtime/rpc"
)

var errNotLeader = errors.New("node: it gives no snapshot now")

// catchUp takes the engine's wish that this node gets a snapshot. If it has that much the leader does not
// know.
func (n *Node) catchUp(m *pb.Message) {
	meta := m.GetSnapshot().GetMetadata()
	if m.GetTerm() < n.term || n.rotten.Load() {
		return
	}
	if n.applied >= meta.GetIndex() {
		n.tellCaughtUp()
		return
	}
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// tellCaughtUp tells the leader up to where the log is his.
func (n *Node) tellCaughtUp() {
	n.send(&pb.Message{
		Type: pb.MsgAppResp.Enum(), From: new(n.cfg.ID), To: new(n.leader.Load()), Term: new(n.term), Index: new(n.applied),
	})
}

// admit lets a node be rebuilt from this one, if what it acknowledged is not needed any more: it has
// lost that anyway, or a majority without it has all up to the list, or has released all that the node
// has of this log.
func (n *Node) admit(x note) error {
	r := n.reign
	if r == nil {
		return errNotLeader
	}
	if _, member := n.log.Members()[x.from]; !member {
		return fmt.Errorf("node: node %d is no member", x.from)
	}
	applied, _ := n.replica.Disk().Applied()
	first, _ := n.log.FirstIndex()
	voters, have, spared := 0, 0, x.rotten
	n.raft.WithProgress(func(id uint64, kind raft.ProgressType, p tracker.Progress) {
		if id == x.from && (p.State == tracker.StateSnapshot || p.Next < first) {
			spared = true
		}
		if kind == raft.ProgressTypePeer {
			voters++
			if id != x.from && p.Match >= applied {
				have++
			}
		}
	})
	if !spared && have <= voters/2 {
		return errors.New("node: others do not have all of it yet")
	}
	r.pool.Leave(x.from)
	if r.out[x.from] = !r.pool.Join(x.from, applied); r.out[x.from] {
		return fmt.Errorf("node: entries behind %d are not there any more", applied)
	}
	delete(r.out, x.from)
	n.reuse()
	return nil
}

// rebuild is the goroutine that rebuilds the disk when it is woken.
func (n *Node) rebuild() {
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-n.wake:
		}
		for n.ctx.Err() == nil {
			again, err := n.rebuildOnce()
			if err == nil && !again {
				break
			}
			n.cfg.Logger.Debug("rebuild", "again", again, "error", err)
			pause(n.ctx, n.cfg.Tick)
		}
	}
}

// source is where the leader is.
func (n *Node) source() (addr string, ok bool) {
	n.ask(n.events, func() {
		if p := n.peers[n.leader.Load()]; p != nil {
			addr, ok = p.addr, true
		}
	})
	return addr, ok
}

// rebuildOnce rebuilds the disk from one snapshot. A replica that is rotten still needs another.
func (n *Node) rebuildOnce() (again bool, err error) {
	addr, ok := n.source()
	if !ok {
		return true, nil
	}
	client, err := n.dial(n.ctx, addr)
	if err != nil {
		return true, err
	}
	defer func() { _ = client.Close() }() // its memory is the node's
	s, members, err := n.getSnapshot(client)
	if err != nil {
		return true, err
	}
	var c *state.CatchUp
	if !n.ask(n.jobs, func() {
		if c, err = n.replica.CatchUp(s); err == nil {
			n.deaf = true
			n.rotten.Store(true)
		}
	}) || err != nil {
		return true, err
	}
	if err := n.getChunks(client, c); err != nil {
		return true, err
	}
	if !n.ask(n.jobs, func() {
		if err = n.replica.CaughtUp(c); err == nil {
			err = n.log.SetMembers(members)
		}
	}) || err != nil {
		return true, err
	}
	if n.replica.Rotten() {
		return true, nil
	}
	n.ask(n.events, n.restart)
	return false, nil
}

// restart gives a rebuilt replica an engine that begins there.
func (n *Node) restart() {
	if !n.ask(n.jobs, func() { n.deaf = false }) { // no job of the former engine is left
		return
	}
	n.rotten.Store(false)
	leader := n.leader.Load()
	if err := n.start(); err != nil {
		n.fail(err)
		return
	}
	n.leader.Store(leader)
	n.cfg.Logger.Info("rebuilt", "node", n.cfg.ID, "index", n.applied)
	n.tellCaughtUp()
}

// getSnapshot asks the leader for a list of its disk.
func (n *Node) getSnapshot(client *rpc.Client) (s state.Snapshot, members raftlog.Members, err error) {
	sink := make([]byte, state.MostSnapshot(len(n.replica.Disk().Memory())))
	ctx, cancel := context.WithTimeout(n.ctx, rebuildTime)
	defer cancel()
	answer, err := client.Call(ctx, rpc.Call{Method: methodSnapshot, Payload: n.note(), SinkBytes: sink}, nil)
	if err != nil {
		return s, nil, err
	}
	if len(answer) < 8 || binary.LittleEndian.Uint64(answer) > uint64(len(sink)) {
		return s, nil, errNote
	}
	if err = json.Unmarshal(answer[8:], &members); err == nil {
		s, err = state.ParseSnapshot(sink[:binary.LittleEndian.Uint64(answer)])
	}
	return s, members, err
}

// getChunks gets the chunks that differ.
func (n *Node) getChunks(client *rpc.Client, c *state.CatchUp) error {
	for chunk, to, ok := c.Next(); ok; chunk, to, ok = c.Next() {
		ctx, cancel := context.WithTimeout(n.ctx, rebuildTime)
		err := n.getChunk(ctx, client, c, chunk, to)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) getChunk(ctx context.Context, client *rpc.Client, c *state.CatchUp, chunk state.Chunk, to []byte) error {
	off := binary.LittleEndian.AppendUint64(nil, chunk.Off)
	if _, err := client.Call(ctx, rpc.Call{Method: methodChunk, Payload: off, SinkBytes: to}, nil); err != nil {
		return err
	}
	if entry.Sum(to) == chunk.CRC {
		return nil
	}
	answer, err := client.Call(ctx, rpc.Call{Method: methodRenew, Payload: off}, nil)
	if err != nil {
		return err
	}
	if len(answer) != 12 {
		return errNote
	}
	chunk.CRC = binary.LittleEndian.Uint32(answer)
	return c.Renew(chunk, binary.LittleEndian.Uint64(answer[4:]))
}
