package node

import (
	"context"
	"errors"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"godat/runtime/rpc"
)

// Methods of calls between nodes.
const (
	methodMessage  uint16 = iota + 1 // a note, and messages of the engine; so is the answer
	methodSnapshot                   // a note, and what is asked for; the answer is in the caller's sink
	methodChunk                      // a note, and an offset; the chunk is in the caller's sink, the answer its CRC and index
	methodAdmin                      // a command, as JSON
	methodHello                      // a note, and a hello as JSON; so is the answer
	methodHosts                      // a note, and 8 bytes; the answer is what the leader knows of nodes, as JSON
	methodHealth                     // a note, and what the caller says of itself, as JSON; the answer is how the leader sees all, as JSON
	methodPass                       // a note, and a host; the answer is its pass
	methodIndex                      // a note; the answer is up to where the caller must have applied, so that a host reads what was acknowledged
	methodOrder                      // a note, and an order; the data of a write is in the caller's source
)

// methods are their names on the page and in metrics.
var methods = map[uint16]string{
	methodMessage: "message", methodSnapshot: "snapshot", methodChunk: "chunk", methodAdmin: "admin", methodHello: "hello", methodHosts: "hosts", methodHealth: "health", methodPass: "pass", methodIndex: "index", methodOrder: "order",
}

const (
	calls    = 4
	callTime = 2 * time.Second

	rebuildTime = 10 * time.Second // for the next piece of a rebuild
	readRate    = 32 << 20         // bytes a second: a leader reads its disk no slower, for the list of a rebuild
	laneLen     = 256
)

// lanes are the ways to the other nodes. Their goroutines end with the site. Consensus owns the table.
type lanes struct {
	*site
	peers map[uint64]*peer
	lost  func(id uint64)           // hears of a node that can't be reached
	heard func(note, []*pb.Message) // hears what a node answers
}

// peer is another node. Appends have a lane of their own, since they may take long.
type peer struct {
	addr           string
	appends, other chan *pb.Message
	end            context.CancelFunc
	told           uint64 // the highest record that it was told to be committed, or is to be told with what comes next
}

// set makes the peers those that this node knows to be somewhere.
func (l *lanes) set() {
	members := l.where()
	for id, p := range l.peers {
		if members[id].Addr != p.addr {
			p.end()
			delete(l.peers, id)
		}
	}
	for id, m := range members {
		if id == l.cfg.ID || l.peers[id] != nil {
			continue
		}
		p := &peer{addr: m.Addr, appends: make(chan *pb.Message, laneLen), other: make(chan *pb.Message, laneLen)}
		var ctx context.Context
		ctx, p.end = context.WithCancel(l.ctx)
		l.peers[id] = p
		l.tasks.Go(func() { l.lane(ctx, id, p.addr, p.appends) })
		l.tasks.Go(func() { l.lane(ctx, id, p.addr, p.other) })
	}
	l.tellElsewhere()
}

// send sends a message, or loses it, and reports which.
func (l *lanes) send(m *pb.Message) bool {
	p := l.peers[m.GetTo()]
	if p == nil {
		return true // there is nothing to report
	}
	lane := p.other
	switch m.GetType() {
	case pb.MsgApp:
		lane = p.appends
		p.told = max(p.told, m.GetCommit())
	case pb.MsgHeartbeat:
		p.told = max(p.told, m.GetCommit())
	default:
	}
	select {
	case lane <- m:
		return true
	default:
		return false
	}
}

// justNote is the message of a call that has only a note.
var justNote = new(pb.Message)

// lane sends messages to a node, those that wait in one call.
func (l *lanes) lane(ctx context.Context, id uint64, addr string, messages <-chan *pb.Message) {
	var client *rpc.Client
	var next *pb.Message // found no room in the last call
	for {
		m := next
		if m == nil {
			select {
			case m = <-messages:
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			if client != nil {
				_ = client.Close() // its memory is the node's
			}
			return
		}
		var err error
		if client == nil {
			client, err = l.dial(ctx, id, addr)
			l.reached(id, err)
		}
		if err == nil {
			next, err = l.deliver(ctx, client, id, addr, m, messages)
		}
		if err == nil {
			continue
		}
		if client != nil {
			l.health.loses(id, err)
			_ = client.Close() // the same
			client = nil
		}
		l.events.put(func() { l.lost(id) })
		pause(ctx, l.cfg.Tick)
		for next = nil; len(messages) != 0; {
			<-messages
		}
	}
}

// errGone is the refusal of an append whose data is not in the sender's slots.
var errGone = &rpc.Error{Code: rpc.CodeUser + 1}

// withdraw offers entries no more whose slots have other data by now, and which are in the disk for good: a
// leader that has been started again does not know up to where its term, or the one before, has freed slots.
// A replica that needs them is rebuilt.
func (l *lanes) withdraw(m *pb.Message, refusal error) {
	if entries := m.GetEntries(); errors.Is(refusal, errGone) && len(entries) != 0 {
		last := entries[len(entries)-1].GetIndex()
		l.events.put(func() { l.log.SetFloor(min(last, l.released.Load())) })
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// deliver sends a message, and those behind it for which the call has room, and takes the answers. It returns the
// first message that found no room. The receiver may read the journal until deliver returns.
func (l *lanes) deliver(ctx context.Context, client *rpc.Client, id uint64, addr string, m *pb.Message, behind <-chan *pb.Message) (next *pb.Message, err error) {
	b, first := l.note(id), m
	for m != nil {
		before := len(b)
		if b, err = appendMessage(b, m); err != nil {
			return nil, err
		}
		if before != noteLen && len(b) > mostMessage {
			b, next = b[:before], m
			break
		}
		select {
		case m = <-behind:
		default:
			m = nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	call := rpc.Call{Method: methodMessage, Payload: b}
	if first.GetType() == pb.MsgApp {
		call.Source = l.region.Remote(0, len(l.journal.Memory()))
	}
	answer, err := client.Call(ctx, call, nil)
	var refusal *rpc.Error
	if errors.As(err, &refusal) {
		l.refused(id, addr, false, err)
		l.withdraw(first, err)
		if errors.Is(err, errStranger) {
			return next, err // a hello says why
		}
		return next, nil
	}
	if err != nil || len(answer) == 0 {
		return next, err
	}
	x, messages, err := parseMessages(answer, id, l.cfg.ID)
	if err == nil {
		err = l.check(&x, false)
	}
	if err == nil {
		err = l.bounded(messages)
	}
	if err != nil {
		l.refused(id, addr, true, err)
	}
	if err == nil {
		l.events.put(func() { l.heard(x, messages) })
	}
	return next, err
}
