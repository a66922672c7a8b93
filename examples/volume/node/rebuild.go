package node

import (
	"context"
	"encoding/binary"
	"encoding/json"

	"godat/examples/volume/entry"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/state"
	"godat/runtime/rpc"
)

// rebuilder is the room of the goroutine that makes the disk that of the leader.
type rebuilder struct {
	*site
	consensus *consensus
	keeper    *keeper
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
			if err == nil && !again {
				break
			}
			b.cfg.Logger.Debug("rebuild", "again", again, "error", err)
			pause(b.ctx, b.cfg.Tick)
		}
	}
}

// source is where the leader is.
func (b *rebuilder) source() (addr string, ok bool) {
	b.ask(b.events, func() {
		if p := b.consensus.lanes.peers[b.leader.Load()]; p != nil {
			addr, ok = p.addr, true
		}
	})
	return addr, ok
}

// once rebuilds the disk from one snapshot. A replica that is rotten still needs another.
func (b *rebuilder) once() (again bool, err error) {
	addr, ok := b.source()
	if !ok {
		return true, nil
	}
	client, err := b.dial(b.ctx, addr)
	if err != nil {
		return true, err
	}
	defer func() { _ = client.Close() }() // its memory is the node's
	s, members, err := b.getSnapshot(client)
	if err != nil {
		return true, err
	}
	var c *state.CatchUp
	if !b.ask(b.keeper.jobs, func() {
		if c, err = b.keeper.replica.CatchUp(s); err == nil {
			b.keeper.deaf = true
			b.rotten.Store(true)
		}
	}) || err != nil {
		return true, err
	}
	if err := b.getChunks(client, c); err != nil {
		return true, err
	}
	if err := c.Flush(); err != nil {
		return true, err
	}
	b.ask(b.events, func() { again = b.consensus.adopt(c, members) })
	return again, nil
}

// getSnapshot asks the leader for a list of its disk.
func (b *rebuilder) getSnapshot(client *rpc.Client) (s state.Snapshot, members raftlog.Members, err error) {
	sink := make([]byte, state.MostSnapshot(len(b.disk.Memory())))
	ctx, cancel := context.WithTimeout(b.ctx, rebuildTime)
	defer cancel()
	answer, err := client.Call(ctx, rpc.Call{Method: methodSnapshot, Payload: b.note(), SinkBytes: sink}, nil)
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
func (b *rebuilder) getChunks(client *rpc.Client, c *state.CatchUp) error {
	defer func() {
		b.rebuilds.Store(0)
		b.rebuilt.Store(0)
	}()
	for chunk, to, ok := c.Next(); ok; chunk, to, ok = c.Next() {
		done, all := c.Progress()
		b.rebuilt.Store(done)
		b.rebuilds.Store(all)
		ctx, cancel := context.WithTimeout(b.ctx, rebuildTime)
		err := b.getChunk(ctx, client, c, chunk, to)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *rebuilder) getChunk(ctx context.Context, client *rpc.Client, c *state.CatchUp, chunk state.Chunk, to []byte) error {
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
