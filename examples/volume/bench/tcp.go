package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"godat/examples/volume/journal"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/replica"
)

// tcpNode is a node whose messages go by TCP, with the data in its entries. It survives nothing: a node that
// falls behind does not come back.
type tcpNode struct {
	files
	replica  *replica.Replica // owned by the keeper
	id       uint64
	listener net.Listener
	peers    map[uint64]chan *pb.Message
	events   queue // of run
	jobs     queue // of the keeper
	appends  raftlog.Appends
	ctx      context.Context
	end      context.CancelFunc
	tasks    sync.WaitGroup

	// Owned by run.
	raft     *raft.RawNode
	proposed []chan error // that have no index yet
	named    []naming     // by index
}

// naming is a write whose entry has an index.
type naming struct {
	index uint64
	done  chan error
}

var errTCP = errors.New("the node on TCP leads no more")

// queue holds functions that one goroutine runs. A caller of put waits while it is full.
type queue chan func()

func openTCP(ctx context.Context, s settings) (commits, error) {
	n := &tcpNode{id: s.ID, peers: make(map[uint64]chan *pb.Message), events: make(queue, 1<<16), jobs: make(queue, 1<<16)}
	n.ctx, n.end = context.WithCancel(ctx)
	var err error
	none := journal.Layout{Nodes: 1, Slots: 1, SlotSize: 4 << 10}
	if n.files, err = openFiles(s, none); err != nil {
		return nil, err
	}
	j, err := journal.Open(n.journal, none)
	if err == nil {
		n.replica, err = replica.Open(j, n.disk, n.log)
	}
	if err == nil {
		n.raft, err = raft.NewRawNode(&raft.Config{
			ID: s.ID, ElectionTick: 10, HeartbeatTick: 1, Storage: tcpStorage{n.log}, AsyncStorageWrites: true, MaxSizePerMsg: 1 << 20,
			MaxInflightMsgs: 64, CheckQuorum: true, PreVote: true, DisableProposalForwarding: true, Logger: &raft.DefaultLogger{Logger: discard},
		})
	}
	if err == nil {
		n.listener, err = net.Listen("tcp", s.Peers[s.ID].Addr)
	}
	if err != nil {
		return nil, errors.Join(err, n.closeFiles())
	}
	for id, m := range s.Peers {
		if id != s.ID {
			messages := make(chan *pb.Message, 256)
			n.peers[id] = messages
			n.tasks.Go(func() { n.lane(m.Addr, messages) })
		}
	}
	n.tasks.Go(n.accept)
	n.tasks.Go(n.keep)
	n.tasks.Go(n.run)
	return n, nil
}

// put puts a function in, unless the node ends.
func (n *tcpNode) put(q queue, f func()) {
	select {
	case q <- f:
	case <-n.ctx.Done():
	}
}

// lane sends messages to a node.
func (n *tcpNode) lane(addr string, messages <-chan *pb.Message) {
	for n.ctx.Err() == nil {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		stop := context.AfterFunc(n.ctx, func() { _ = conn.Close() })
		_ = n.sendAll(conn, messages) // of a node that has ended
		stop()
		_ = conn.Close() // twice, perhaps
	}
}

func (n *tcpNode) sendAll(conn net.Conn, messages <-chan *pb.Message) (err error) {
	w := bufio.NewWriterSize(conn, 64<<10)
	var b []byte
	for err == nil {
		select {
		case m := <-messages:
			if b, err = (proto.MarshalOptions{}).MarshalAppend(append(b[:0], 0, 0, 0, 0), m); err == nil {
				binary.LittleEndian.PutUint32(b, uint32(len(b)-4))
				_, err = w.Write(b)
			}
			if err == nil && len(messages) == 0 {
				err = w.Flush()
			}
		case <-n.ctx.Done():
			err = n.ctx.Err()
		}
	}
	return err
}

// accept is the goroutine of the listener.
func (n *tcpNode) accept() {
	for {
		conn, err := n.listener.Accept()
		if err != nil {
			return
		}
		n.tasks.Go(func() { n.hear(conn) })
	}
}

// hear takes the messages of a node.
func (n *tcpNode) hear(conn net.Conn) {
	stop := context.AfterFunc(n.ctx, func() { _ = conn.Close() })
	defer stop()
	r := bufio.NewReaderSize(conn, 64<<10)
	var head [4]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return
		}
		b := make([]byte, binary.LittleEndian.Uint32(head[:]))
		m := new(pb.Message)
		if _, err := io.ReadFull(r, b); err != nil || proto.Unmarshal(b, m) != nil {
			return
		}
		n.put(n.events, func() { _ = n.raft.Step(m) }) // refused is lost
	}
}

// run is the goroutine of the engine.
func (n *tcpNode) run() {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-n.ctx.Done():
			n.abdicate()
			return
		case <-ticker.C:
			n.raft.Tick()
			n.put(n.jobs, n.release)
		case f := <-n.events:
			f()
			for range len(n.events) {
				(<-n.events)()
			}
		}
		for n.raft.HasReady() {
			n.handle(n.raft.Ready())
		}
	}
}

func (n *tcpNode) handle(rd raft.Ready) {
	if rd.SoftState != nil && rd.RaftState != raft.StateLeader {
		n.abdicate()
	}
	for _, e := range rd.Entries {
		if len(e.Data) != 0 && len(n.proposed) != 0 {
			n.named = append(n.named, naming{e.GetIndex(), n.proposed[0]})
			n.proposed = n.proposed[1:]
		}
	}
	for _, m := range rd.Messages {
		switch m.GetTo() {
		case raft.LocalAppendThread:
			if n.appends.Put(m) {
				n.put(n.jobs, n.keepAll)
			}
		case raft.LocalApplyThread:
			n.put(n.jobs, func() { n.keepApply(m) })
		default:
			n.send(m)
		}
	}
}
