package node

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"godat/ep"
	"godat/examples/volume/entry"
	"godat/examples/volume/journal"
	"godat/examples/volume/state"
	dat "godat/runtime"
	"godat/runtime/rpc"
)

// door is the room of the server. Its methods run in the server's handlers.
type door struct {
	*site
	consensus *consensus

	orders   chan struct{} // has a value for each order whose data comes
	fetching sync.Mutex
	fence    *journal.Fence        // guarded by fetching
	reads    atomic.Pointer[reads] // for whom the goroutine that has fetching reads; nil for nobody
}

// reads is a leader whose slots are read.
type reads struct {
	term uint64
	conn *dat.Conn
}

// hold notes the slots of the log that a replica begins with.
func (d *door) hold() error {
	first, last := d.log.Bounds()
	for index := max(first, d.released.Load()+1); index <= last; index++ {
		r, err := d.log.Record(index)
		if err != nil {
			return err
		}
		if x, err := entry.Parse(r.Data); err == nil && !r.Member && x.Op == entry.Write {
			d.fence.Hold(x.Slot, index)
		}
	}
	return nil
}

// handlers are enough for all calls of all followers: those that bring orders wait for a majority, and hold up no others.
const handlers = 16 + 7*calls

// run is the goroutine of the server, whose handlers it waits for, until the server is closed.
func (d *door) run() {
	if err := d.server.Serve(context.Background(), handlers, d.call); err != nil {
		d.fail(err)
	}
}

// call answers a call of another node, or of an operator.
func (d *door) call(r *rpc.Request) ([]byte, error) {
	if r.Method() == methodAdmin {
		return d.administer(r)
	}
	x, rest, err := parseNote(r.Payload())
	if err != nil {
		x, err = note{}, d.check(&note{}, false)
	} else {
		err = d.check(&x, r.Method() == methodHello)
	}
	var answer []byte
	if err == nil {
		answer, err = d.callOf(x, rest, r)
	}
	if err != nil {
		d.refused(x.from, r.Conn().RemoteAddr().String(), true, err)
	}
	return answer, err
}

// callOf answers a call of a node of this volume.
func (d *door) callOf(x note, rest []byte, r *rpc.Request) ([]byte, error) {
	switch r.Method() {
	case methodHello:
		return d.greeted(r)
	case methodMessage:
		return d.takeMessages(r)
	case methodHosts:
		return d.takeHosts(rest)
	case methodHealth:
		return d.takeHealth(x.from, rest)
	case methodPass:
		return d.takePass(x.from, rest, r)
	case methodIndex:
		return d.takeIndex()
	case methodOrder:
		return d.takeOrder(x.from, rest, r)
	case methodSnapshot:
		return d.giveSnapshot(x, rest, r)
	case methodChunk:
		return d.giveChunk(rest, r)
	}
	return nil, noMethod(r.Method())
}

// greeted answers a hello with this node's own.
func (d *door) greeted(r *rpc.Request) ([]byte, error) {
	x, err := d.compare(r.Payload())
	if err != nil {
		return nil, err
	}
	d.health.calls(x.from, r.Conn().RemoteAddr().String())
	b, err := d.hello()
	return append(d.note(x.from), b...), err
}

// takeMessages gives messages to the engine, up to the first that it may not have, and answers with its answers.
func (d *door) takeMessages(r *rpc.Request) ([]byte, error) {
	x, messages, err := parseMessages(r.Payload(), 0, d.cfg.ID)
	if err == nil {
		err = d.bounded(messages)
	}
	if err != nil {
		return nil, err
	}
	h := newHold(x.from, messages)
	d.events.put(func() {
		d.consensus.hear(x)
		if h != nil {
			d.consensus.holds = append(d.consensus.holds, h)
		}
	})
	for _, m := range messages {
		if err = d.takeMessage(m, r); err != nil {
			break
		}
	}
	if h == nil {
		return nil, err
	}
	if err != nil {
		d.events.put(func() {
			for _, m := range d.consensus.holds.take(h) {
				d.consensus.send(m)
			}
		})
		return nil, err
	}
	return d.answer(h)
}

// answer waits for a call's answers.
func (d *door) answer(h *hold) (b []byte, err error) {
	timer := time.NewTimer(d.cfg.held)
	defer timer.Stop()
	var got []*pb.Message
	select {
	case got = <-h.done:
	case <-timer.C:
		if !d.ask(d.events, func() { got = d.consensus.holds.take(h) }) {
			return nil, context.Cause(d.ctx)
		}
	case <-d.ctx.Done():
		return nil, context.Cause(d.ctx)
	}
	b = d.note(h.from)
	for _, m := range got {
		if b, err = appendMessage(b, m); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// takeMessage gives a message to the engine, when the data that its entries name is here.
func (d *door) takeMessage(m *pb.Message, r *rpc.Request) error {
	switch m.GetType() {
	case pb.MsgApp:
		return d.takeAppend(m, r)
	case pb.MsgSnap:
		d.events.put(func() { d.consensus.offered(m) })
	default:
		d.events.put(func() { d.consensus.step(m) })
	}
	return nil
}

var (
	errOld    = errors.New("node: the message is of an earlier term")
	errRotten = errors.New("node: the replica is being rebuilt")
	errHeld   = errors.New("node: an entry that is not released needs the slot")
)

// takeAppend reads the data of slots from the sender's journal, and then gives the append to
// the engine. It reads for no entry that the log has, and for none that the fence keeps out. Entries before
// the first whose data can't be read are taken without it. A read for a leader of an earlier term ends first, with its connection.
func (d *door) takeAppend(m *pb.Message, r *rpc.Request) error {
	if x := d.reads.Load(); x != nil && x.term < m.GetTerm() {
		_ = x.conn.Endpoint.Disconnect(ep.Abrupt) // a leader of before may stand still; its connection may have ended
	}
	d.fetching.Lock()
	defer d.fetching.Unlock()
	if !d.fence.Pass(m.GetTerm()) {
		d.events.put(func() { d.consensus.step(withoutEntries(m)) }) // by the answer the sender learns of the term
		return errOld
	}
	if d.rotten.Load() {
		return errRotten
	}
	d.reads.Store(&reads{m.GetTerm(), r.Conn()})
	defer d.reads.Store(nil)
	var err error
	for i, e := range m.GetEntries() {
		if e.GetType() != pb.EntryNormal || d.log.Has(e.GetIndex(), e.GetTerm()) {
			continue
		}
		if err = d.fetch(e, r); err != nil {
			m.Entries = m.Entries[:i]
			break
		}
	}
	if err == nil || len(m.Entries) != 0 {
		d.events.put(func() { d.consensus.step(m) })
	}
	return err
}

func withoutEntries(m *pb.Message) *pb.Message {
	m.Entries = nil
	return m
}

var errDamaged = errors.New("node: an entry has other data than its CRC says")

// fetch reads the data of an entry's slot, unless it is here. What is in the entry itself has come with it.
func (d *door) fetch(e *pb.Entry, r *rpc.Request) error {
	x, err := entry.Parse(e.Data)
	if err != nil {
		return err
	}
	if x.Op != entry.Write {
		if !x.Right(x.Data) {
			return errDamaged
		}
		return nil
	}
	if _, err := d.journal.Slot(x.Slot, int(x.Len)); err != nil {
		return err
	}
	if d.fence.Has(x.Slot, e.GetIndex()) { // else the slot has something else, and nobody needs to sum that
		if _, err := d.journal.Data(&x); err == nil {
			return nil
		}
	}
	if d.fence.Held(x.Slot, e.GetIndex(), d.released.Load()) {
		return errHeld
	}
	at := d.journal.Offset(x.Slot)
	d.journal.Forget(x.Slot)
	if err := r.Read(d.region.Segment(at, int(x.Len)), at); err != nil {
		return err
	}
	if _, err := d.journal.Data(&x); err != nil {
		return &rpc.Error{Code: errGone.Code, Text: err.Error()}
	}
	d.fence.Hold(x.Slot, e.GetIndex())
	return nil
}

// administer does what an operator asks.
func (d *door) administer(r *rpc.Request) ([]byte, error) {
	var c Command
	if err := json.Unmarshal(r.Payload(), &c); err != nil {
		return nil, err
	}
	if c.Do == "status" {
		return json.Marshal(d.consensus.Status())
	}
	if volume := d.cfg.Layout.Volume.String(); c.Volume != volume {
		return nil, stranger("node %d is of volume %s, and the command is for volume %q", d.cfg.ID, volume, c.Volume)
	}
	switch c.Do {
	case "sums":
		return d.consensus.sums(c.From)
	case "meet":
		d.learnWays(c.Members)
		return json.Marshal(d.consensus.Status())
	}
	done := make(chan error, 1)
	d.events.put(func() { d.consensus.command(c, done) })
	select {
	case err := <-done:
		if err != nil {
			return nil, err
		}
		return json.Marshal(d.consensus.Status())
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	case <-d.ctx.Done():
		return nil, context.Cause(d.ctx)
	}
}

// giveSnapshot lists for a node what it lacks. In its last round entries behind the list stay in log and slots until the
// node has them, or holds them for too long.
func (d *door) giveSnapshot(x note, asked []byte, r *rpc.Request) ([]byte, error) {
	if len(asked) != askLen {
		return nil, errNote
	}
	var err error
	last := asked[askLen-1] != 0 // the function below may run when the call has ended, and its memory is gone
	if !d.ask(d.events, func() { err = d.consensus.admit(x, last) }) {
		return nil, errNotLeader
	}
	if err != nil {
		return nil, err
	}
	s, err := d.disk.Snapshot(r.Context(), binary.LittleEndian.Uint64(asked))
	if err != nil {
		return nil, err
	}
	members, err := json.Marshal(membership{d.log.Members(), d.log.AllGone()})
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

// askLen is the length of what a call for a list asks for: above which entry, and whether it is the last round.
const askLen = 8 + 1

// giveChunk writes a chunk of the disk to the caller's memory, and says which one it is now.
func (d *door) giveChunk(at []byte, r *rpc.Request) ([]byte, error) {
	if len(at) != 8 || r.SinkLen() > state.MostChunk {
		return nil, errNote
	}
	b := make([]byte, r.SinkLen())
	c, index, err := d.disk.Chunk(binary.LittleEndian.Uint64(at), b)
	if err != nil {
		return nil, err
	}
	if err := r.WriteBytes(b, 0); err != nil {
		return nil, err
	}
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(nil, c.CRC), index), nil
}
