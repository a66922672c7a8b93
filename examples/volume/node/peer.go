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

func (n *Node) note() []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, noteLen), n.cfg.ID)
	b = binary.LittleEndian.AppendUint64(b, n.released.Load())
	b = binary.LittleEndian.AppendUint64(b, n.floor.Load())
	if n.rotten.Load() {
		return append(b, 1)
	}
	return append(b, 0)
}

var errNote = errors.New("node: malformed message")

func parseNote(b []byte) (x note, rest []byte, err error) {
	if len(b) < noteLen {
		return x, nil, errNote
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	return note{word(0), word(1), word(2), b[24] != 0}, b[noteLen:], nil
}

// peer is another node. Appends have a lane of their own, since they may take long.
type peer struct {
	addr           string
	appends, other chan *pb.Message
	end            context.CancelFunc
}

func (p *peer) stop() { p.end() }

// setPeers makes the peers those of the log's members, and of the configuration when it has none.
func (n *Node) setPeers() {
	members := n.log.Members()
	if len(members) == 0 {
		members = n.cfg.Peers
	}
	for id, p := range n.peers {
		if members[id].Addr != p.addr {
			p.stop()
			delete(n.peers, id)
		}
	}
	for id, m := range members {
		if id == n.cfg.ID || n.peers[id] != nil {
			continue
		}
		p := &peer{addr: m.Addr, appends: make(chan *pb.Message, laneLen), other: make(chan *pb.Message, laneLen)}
		var ctx context.Context
		ctx, p.end = context.WithCancel(n.ctx)
		n.peers[id] = p
		n.tasks.Go(func() { n.lane(ctx, id, p.addr, p.appends) })
		n.tasks.Go(func() { n.lane(ctx, id, p.addr, p.other) })
	}
}

// send sends a message, or loses it.
func (n *Node) send(m *pb.Message) {
	p := n.peers[m.GetTo()]
	if p == nil {
		return
	}
	lane := p.other
	if m.GetType() == pb.MsgApp {
		lane = p.appends
		if n.reign != nil && n.reign.out[m.GetTo()] {
			m.Entries = nil // its slots are not written to
		}
	}
	select {
	case lane <- m:
	default:
		n.raft.ReportUnreachable(m.GetTo())
	}
}

// lane sends messages to a node, one after the other.
func (n *Node) lane(ctx context.Context, id uint64, addr string, messages <-chan *pb.Message) {
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
				client, err = n.dial(ctx, addr)
			}
			if err == nil {
				err = n.deliver(ctx, client, m)
			}
			var refused *rpc.Error
			if err == nil || errors.As(err, &refused) {
				continue
			}
			if client != nil {
				_ = client.Close() // the same
				client = nil
			}
			n.events.put(func() { n.raft.ReportUnreachable(id) })
			pause(ctx, n.cfg.Tick)
			for len(messages) != 0 {
				<-messages
			}
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (n *Node) dial(ctx context.Context, addr string) (*rpc.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return rpc.Dial(ctx, n.ia, addr, n.rpc())
}

// deliver sends a message, nil for a note alone. The receiver may read the journal until deliver returns.
func (n *Node) deliver(ctx context.Context, client *rpc.Client, m *pb.Message) error {
	b := n.note()
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
		call.Source = n.region.Remote(0, len(n.journal.Memory()))
	}
	_, err := client.Call(ctx, call, nil)
	return err
}
