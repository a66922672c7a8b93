package node

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"godat/runtime/rpc"
)

// Methods of calls between nodes.
const (
	methodMessage  uint16 = iota + 1 // a note, and a message of the engine or nothing
	methodSnapshot                   // a note; the answer is in the caller's sink
	methodChunk                      // an offset; the chunk is in the caller's sink
	methodRenew                      // an offset; the answer is the chunk's CRC and index
	methodAdmin                      // a command, as JSON
)

const (
	calls    = 8
	callTime = 2 * time.Second

	rebuildTime = 10 * time.Second // for the next piece of a rebuild
	laneLen     = 256
)

// note is what each message between nodes begins with.
type note struct {
	from, released, floor uint64
	rotten                bool
}

const noteLen = 25

var errNote = errors.New("node: malformed message")

func parseNote(b []byte) (x note, rest []byte, err error) {
	if len(b) < noteLen {
		return x, nil, errNote
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	return note{word(0), word(1), word(2), b[24] != 0}, b[noteLen:], nil
}

// lanes are the ways to the other nodes. Their goroutines end with the site. Consensus owns the table.
type lanes struct {
	*site
	peers map[uint64]*peer
}

// peer is another node. Appends have a lane of their own, since they may take long.
type peer struct {
	addr           string
	appends, other chan *pb.Message
	end            context.CancelFunc
}

// set makes the peers those of the log's members, and of the configuration when it has none. lost hears
// of a node that can't be reached.
func (l *lanes) set(lost func(id uint64)) {
	members := l.log.Members()
	if len(members) == 0 {
		members = l.cfg.Peers
	}
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
		l.tasks.Go(func() { l.lane(ctx, p.addr, p.appends, func() { lost(id) }) })
		l.tasks.Go(func() { l.lane(ctx, p.addr, p.other, func() { lost(id) }) })
	}
}

// send sends a message, or loses it, and reports which.
func (l *lanes) send(m *pb.Message) bool {
	p := l.peers[m.GetTo()]
	if p == nil {
		return true // there is nothing to report
	}
	lane := p.other
	if m.GetType() == pb.MsgApp {
		lane = p.appends
	}
	select {
	case lane <- m:
		return true
	default:
		return false
	}
}

// lane sends messages to a node, one after the other.
func (l *lanes) lane(ctx context.Context, addr string, messages <-chan *pb.Message, lost func()) {
	var client *rpc.Client
	for {
		select {
		case <-ctx.Done():
			if client != nil {
				_ = client.Close() // its memory is the node's
			}
			return
		case m := <-messages:
			var err error
			if client == nil {
				client, err = l.dial(ctx, addr)
			}
			if err == nil {
				err = l.deliver(ctx, client, m)
			}
			var refused *rpc.Error
			if err == nil || errors.As(err, &refused) {
				l.withdraw(m, err)
				continue
			}
			if client != nil {
				_ = client.Close() // the same
				client = nil
			}
			l.events.put(lost)
			pause(ctx, l.cfg.Tick)
			for len(messages) != 0 {
				<-messages
			}
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

// deliver sends a message, nil for a note alone. The receiver may read the journal until deliver returns.
func (l *lanes) deliver(ctx context.Context, client *rpc.Client, m *pb.Message) error {
	b := l.note()
	if m != nil {
		var err error
		if b, err = (proto.MarshalOptions{}).MarshalAppend(b, m); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	call := rpc.Call{Method: methodMessage, Payload: b}
	if m.GetType() == pb.MsgApp {
		call.Source = l.region.Remote(0, len(l.journal.Memory()))
	}
	_, err := client.Call(ctx, call, nil)
	return err
}
