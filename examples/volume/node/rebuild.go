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
	chunk     [state.MostChunk]byte
}

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
			b.gets(err)
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
	b.gets(nil)
	defer func() { _ = client.Close() }() // its memory is the node's
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

// getChunks gets the chunks that differ.
func (b *rebuilder) getChunks(client *rpc.Client, id uint64, c *state.CatchUp) error {
	defer func() {
		b.rebuilds.Store(0)
		b.rebuilt.Store(0)
	}()
	for chunk, to, ok := c.Next(); ok; chunk, to, ok = c.Next() {
		done, all := c.Progress()
		b.rebuilt.Store(done)
		b.rebuilds.Store(all)
		ctx, cancel := context.WithTimeout(b.ctx, rebuildTime)
		err := b.getChunk(ctx, client, id, c, chunk, to)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *rebuilder) getChunk(ctx context.Context, client *rpc.Client, id uint64, c *state.CatchUp, chunk state.Chunk, to []byte) error {
	off := binary.LittleEndian.AppendUint64(b.note(id), chunk.Off)
	sink := b.chunk[:len(to)] // no device writes to a file's pages
	answer, err := client.Call(ctx, rpc.Call{Method: methodChunk, Payload: off, SinkBytes: sink}, nil)
	if err != nil {
		return err
	}
	if len(answer) != 12 {
		return errNote
	}
	copy(to, sink)
	b.counts.rebuiltBytes.Add(uint64(len(to)))
	chunk.CRC, chunk.Zero = binary.LittleEndian.Uint32(answer), false
	return c.Renew(chunk, binary.LittleEndian.Uint64(answer[4:]))
}
