package node

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"godat/examples/volume/entry"
	"godat/runtime/rpc"
)

const handlers = 16

// serve is the goroutine of the server, whose handlers it waits for, until the server is closed.
func (n *Node) serve() {
	if err := n.server.Serve(context.Background(), handlers, n.call); err != nil {
		n.fail(err)
	}
}

// call answers a call of another node, or of an operator.
func (n *Node) call(r *rpc.Request) ([]byte, error) {
	switch r.Method() {
	case methodMessage:
		return nil, n.takeMessage(r)
	case methodSnapshot:
		return n.giveSnapshot(r)
	case methodChunk:
		return nil, n.giveChunk(r)
	case methodRenew:
		return n.giveCRC(r)
	case methodAdmin:
		return n.administer(r)
	}
	return nil, fmt.Errorf("node: no method %d", r.Method())
}

// takeMessage gives a message to the engine, when the data that its entries name is here.
func (n *Node) takeMessage(r *rpc.Request) error {
	x, b, err := parseNote(r.Payload())
	if err != nil {
		return err
	}
	n.events.put(func() { n.hear(x) })
	if len(b) == 0 {
		return nil
	}
	m := new(pb.Message)
	if err := proto.Unmarshal(b, m); err != nil {
		return err
	}
	if m.GetFrom() != x.from || m.GetTo() != n.cfg.ID {
		return errNote
	}
	switch m.GetType() {
	case pb.MsgApp:
		return n.takeAppend(m, r)
	case pb.MsgSnap:
		n.events.put(func() { n.catchUp(m) })
		return nil
	case pb.MsgTimeoutNow:
		if n.rotten.Load() {
			return errRotten
		}
	default:
	}
	n.events.put(func() { n.step(m) })
	return nil
}

var (
	errOld    = errors.New("node: the message is of an earlier term")
	errRotten = errors.New("node: the replica is being rebuilt")
)

// takeAppend reads the data of slots from the sender's journal, and then gives the append to
// the engine. It reads into no slot for a leader of an earlier term: its successor's entries may
// name that slot by now. Nor for an entry that the log has.
func (n *Node) takeAppend(m *pb.Message, r *rpc.Request) error {
	n.fetching.Lock()
	defer n.fetching.Unlock()
	if m.GetTerm() < n.fence {
		n.events.put(func() { n.step(withoutEntries(m)) }) // by the answer the sender learns of the term
		return errOld
	}
	n.fence = m.GetTerm()
	if n.rotten.Load() {
		return errRotten
	}
	for _, e := range m.GetEntries() {
		if e.GetType() != pb.EntryNormal || n.log.Has(e.GetIndex(), e.GetTerm()) {
			continue
		}
		if err := n.fetch(e, r); err != nil {
			return err
		}
	}
	n.events.put(func() { n.step(m) })
	return nil
}

func withoutEntries(m *pb.Message) *pb.Message {
	m.Entries = nil
	return m
}

// fetch reads the data of an entry's slot, unless it is here.
func (n *Node) fetch(e *pb.Entry, r *rpc.Request) error {
	x, err := entry.Parse(e.Data)
	if err != nil || x.Op != entry.Write {
		return err
	}
	if _, err := n.journal.Slot(x.Slot, int(x.Len)); err != nil {
		return err
	}
	if _, err := n.journal.Data(&x); err == nil {
		return nil
	}
	at := n.journal.Offset(x.Slot)
	if err := r.Read(n.region.Segment(at, int(x.Len)), at); err != nil {
		return err
	}
	_, err = n.journal.Data(&x)
	return err
}

// giveSnapshot lists the disk for a node that is rebuilt. Entries behind the list stay in log and slots
// until the node has them, or holds them for too long.
func (n *Node) giveSnapshot(r *rpc.Request) ([]byte, error) {
	x, _, err := parseNote(r.Payload())
	if err != nil {
		return nil, err
	}
	if !n.ask(n.events, func() { err = n.admit(x) }) {
		return nil, errNotLeader
	}
	if err != nil {
		return nil, err
	}
	s, err := n.replica.Disk().Snapshot()
	if err != nil {
		return nil, err
	}
	members, err := json.Marshal(n.log.Members())
	if err != nil {
		return nil, err
	}
	b := s.Append(nil)
	if len(b) > r.SinkLen() {
		return nil, fmt.Errorf("node: a list of %d bytes for a disk of another size", len(b))
	}
	if err := r.WriteBytes(b, 0); err != nil {
		return nil, err
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(b))), members...), nil
}

// giveChunk writes a chunk of the disk to the caller's memory.
func (n *Node) giveChunk(r *rpc.Request) error {
	memory := n.replica.Disk().Memory()
	if len(r.Payload()) != 8 {
		return errNote
	}
	off := binary.LittleEndian.Uint64(r.Payload())
	if size := uint64(len(memory)); off > size || uint64(r.SinkLen()) > size-off {
		return errNote
	}
	return r.WriteBytes(memory[off:][:r.SinkLen()], 0)
}

// giveCRC says what a chunk is now.
func (n *Node) giveCRC(r *rpc.Request) ([]byte, error) {
	if len(r.Payload()) != 8 {
		return nil, errNote
	}
	c, index, err := n.replica.Disk().Chunk(binary.LittleEndian.Uint64(r.Payload()))
	if err != nil {
		return nil, err
	}
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(nil, c.CRC), index), nil
}
