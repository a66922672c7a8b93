package node

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"time"

	"godat/examples/volume/raftlog"
	"godat/examples/volume/state"
	"godat/runtime/rpc"
)

// rebuilder is the room of the goroutine that makes the disk that of the leader.
type rebuilder struct {
	*site
	consensus *consensus
	keeper    *keeper
	sinks     [chunksAtOnce][state.MostChunk]byte
}

// chunksAtOnce are under way from the leader: while one is put into the disk others come.
const chunksAtOnce = 8

// run is the goroutine that rebuilds the disk when it is woken.
func (b *rebuilder) run() {
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-b.wake:
		}
		for b.ctx.Err() == nil {
			again, err := b.once()
			if news := b.gets(err); err != nil && news && b.ctx.Err() == nil {
				b.cfg.Logger.Warn("the disk of the leader has not come: it is tried again", "node", b.cfg.ID, "error", err)
			}
			if failed := b.disk.Failed(); err != nil && failed != nil {
				b.fail(failed) // it is this node's own disk, of which nothing becomes stable any more
				return
			}
			if err == nil && !again {
				break
			}
			b.cfg.Logger.Debug("rebuild", "again", again, "error", err)
			pause(b.ctx, b.cfg.Tick)
		}
	}
}

// membership is the members as a leader tells them to a node that is rebuilt.
type membership struct {
	Members raftlog.Members `json:"members"`
	Gone    []uint64        `json:"gone,omitempty"`
}

// keep keeps the membership for good.
func (m *membership) keep(log *raftlog.Log) error {
	if err := log.SetGone(m.Gone...); err != nil {
		return err
	}
	return log.SetMembers(m.Members)
}

// source is where the leader is, nil if nobody is known to lead. lacks says whether this node needs a snapshot at all.
func (b *rebuilder) source() (leader *peer, id uint64, lacks bool) {
	var x struct {
		leader *peer
		id     uint64
		lacks  bool
	}
	if !b.ask(b.events, func() {
		x.id = b.leader.Load()
		x.leader, x.lacks = b.consensus.lanes.peers[x.id], b.consensus.lacks()
	}) {
		return nil, 0, false
	}
	return x.leader, x.id, x.lacks
}

// mostRounds is how many rounds a rebuild has at most, when none of them is short.
const mostRounds = 16

// once makes the disk that of the leader, if that is needed: round by round it gets what was written since the one
// before, until a round is short. In the one behind that the leader keeps what it writes meanwhile. A replica that is
// rotten afterwards still needs another rebuild.
func (b *rebuilder) once() (again bool, err error) {
	leader, id, lacks := b.source()
	if !lacks || leader == nil {
		return lacks, nil
	}
	client, err := b.dial(b.ctx, id, leader.addr)
	if err != nil {
		return true, err
	}
	defer func() { _ = client.Close() }() // its memory is the node's
	if err := b.consensus.meets(client, id); err != nil {
		return true, err
	}
	var c *state.CatchUp
	var members membership
	for round, last := 1, false; ; round++ {
		began := time.Now()
		final := last
		var s state.Snapshot
		if s, members, err = b.getSnapshot(client, id, final); err != nil {
			return true, err
		}
		if c == nil {
			if c, err = b.begin(s); c == nil || err != nil {
				return err != nil, err
			}
		} else if err = c.Round(s); err != nil {
			return true, err
		}
		if err = b.getChunks(client, id, c); err != nil {
			return true, err
		}
		if err = b.catching.during(c.Flush); err != nil {
			return true, err
		}
		if final {
			break
		}
		last = time.Since(began) < b.cfg.Tick || round+1 >= mostRounds
	}
	rotten := false
	again = b.ask(b.events, func() { rotten = b.consensus.adopt(c, members) }) && rotten
	return again, nil
}

// begin begins to catch up from a list, or returns nil.
func (b *rebuilder) begin(s state.Snapshot) (*state.CatchUp, error) {
	var c *state.CatchUp
	var err error
	if !b.ask(b.events, func() { c, err = b.consensus.begin(s) }) {
		return nil, context.Cause(b.ctx)
	}
	return c, err
}

// listTime is how long the leader may take for the list of a disk, of which it may have to read all bytes.
func listTime(bytes int) time.Duration {
	return rebuildTime + time.Duration(bytes/readRate)*time.Second
}

// getSnapshot asks the leader for a list of what this node lacks.
func (b *rebuilder) getSnapshot(client *rpc.Client, id uint64, last bool) (s state.Snapshot, members membership, err error) {
	sink := make([]byte, state.MostSnapshot(len(b.disk.Memory())))
	ctx, cancel := context.WithTimeout(b.ctx, listTime(len(b.disk.Memory())))
	defer cancel()
	asked := append(binary.LittleEndian.AppendUint64(b.note(id), b.disk.Since()), 0)
	if last {
		asked[len(asked)-1] = 1
	}
	answer, err := client.Call(ctx, rpc.Call{Method: methodSnapshot, Payload: asked, SinkBytes: sink}, nil)
	if err != nil {
		return s, members, err
	}
	if len(answer) < 8 || binary.LittleEndian.Uint64(answer) > uint64(len(sink)) {
		return s, members, errNote
	}
	if err = json.Unmarshal(answer[8:], &members); err == nil {
		s, err = state.ParseSnapshot(sink[:binary.LittleEndian.Uint64(answer)])
	}
	return s, members, err
}

// flushLen is how much is made stable at a time: other disks of the machine wait no longer than for that.
const flushLen = 8 << 20

// arrival is a chunk that the leader has sent, or why it has not.
type arrival struct {
	state.Chunk
	index uint64
	sink  []byte
	err   error
}

// getChunks gets the chunks that differ, several at a time.
func (b *rebuilder) getChunks(client *rpc.Client, id uint64, c *state.CatchUp) error {
	ctx, cancel := context.WithCancel(b.ctx)
	arrivals := make(chan arrival)
	free := make([][]byte, 0, chunksAtOnce)
	for i := range b.sinks {
		free = append(free, b.sinks[i][:])
	}
	under, unflushed := 0, 0
	defer func() {
		for cancel(); under != 0; under-- {
			<-arrivals
		}
		b.rebuilds.Store(0)
		b.rebuilt.Store(0)
	}()
	for {
		for len(free) != 0 {
			chunk, ok := c.Next()
			if !ok {
				break
			}
			sink := free[len(free)-1]
			free = free[:len(free)-1]
			under++
			go func() { arrivals <- b.getChunk(ctx, client, id, chunk.Off, sink) }()
		}
		done, all := c.Progress()
		b.rebuilt.Store(done)
		b.rebuilds.Store(all)
		if under == 0 {
			return nil
		}
		x := <-arrivals
		under--
		if x.err == nil {
			x.err = c.Put(x.Chunk, x.index, x.sink)
		}
		if x.err != nil {
			return x.err
		}
		b.counts.rebuiltBytes.Add(uint64(len(x.sink)))
		if unflushed += len(x.sink); unflushed >= flushLen {
			unflushed = 0
			if err := b.catching.during(c.Flush); err != nil {
				return err
			}
		}
		free = append(free, x.sink[:state.MostChunk])
	}
}

// getChunk gets a chunk into a sink. It is no place in the disk: no device writes to a file's pages.
func (b *rebuilder) getChunk(ctx context.Context, client *rpc.Client, id, off uint64, sink []byte) arrival {
	ctx, cancel := context.WithTimeout(ctx, rebuildTime)
	defer cancel()
	sink = sink[:min(uint64(len(sink)), uint64(len(b.disk.Memory()))-off)]
	asked := binary.LittleEndian.AppendUint64(b.note(id), off)
	answer, err := client.Call(ctx, rpc.Call{Method: methodChunk, Payload: asked, SinkBytes: sink}, nil)
	if err == nil && len(answer) != 12 {
		err = errNote
	}
	if err != nil {
		return arrival{err: err}
	}
	return arrival{state.Chunk{Off: off, CRC: binary.LittleEndian.Uint32(answer)}, binary.LittleEndian.Uint64(answer[4:]), sink, nil}
}
