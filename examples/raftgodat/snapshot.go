package raftgodat

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/raft"

	"godat/runtime/rpc"
)

var (
	errAnswered = errors.New("raftgodat: raft has answered, and reads no more of the snapshot")
	errStalled  = errors.New("raftgodat: the sender of the snapshot has stopped")
	errNumber   = errors.New("raftgodat: there is no such snapshot")
)

// InstallSnapshot implements raft.Transport.
func (t *Transport) InstallSnapshot(_ raft.ServerID, target raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	p, err := t.peer(target)
	if err != nil {
		return err
	}
	number := binary.LittleEndian.AppendUint64(nil, rand.Uint64())
	request, err := pack(number[:8:8], args)
	if err != nil {
		return err
	}
	if _, err := t.step(p.calls, t.cfg.Timeout, rpc.Call{Method: methodSnapshot, SourceBytes: request}); err != nil {
		return err
	}
	if err := t.sendChunks(p.calls, number, io.LimitReader(data, args.Size)); err != nil {
		return err
	}
	answer, err := t.step(p.calls, t.cfg.restoreTime(args.Size), rpc.Call{Method: methodSnapshotEnd, Payload: number})
	if err != nil {
		return err
	}
	return unpack(answer, resp)
}

// sendChunks sends the data of a snapshot, or what of it raft reads before it answers.
func (t *Transport) sendChunks(l *link, number []byte, data io.Reader) error {
	b := make([]byte, chunk)
	for {
		n, err := io.ReadFull(data, b)
		if n != 0 {
			answer, err := t.step(l, t.cfg.Timeout, rpc.Call{Method: methodSnapshotChunk, Payload: number, SourceBytes: b[:n]})
			if err != nil || len(answer) != 0 {
				return err
			}
		}
		switch err {
		case nil:
		case io.EOF, io.ErrUnexpectedEOF:
			return nil
		default:
			return fmt.Errorf("raftgodat: read the snapshot: %w", err)
		}
	}
}

// step makes a call of a snapshot.
func (t *Transport) step(l *link, d time.Duration, call rpc.Call) ([]byte, error) {
	ctx, cancel := context.WithTimeout(t.life, d)
	defer cancel()
	return l.do(ctx, call)
}

// incoming is a snapshot that comes.
type incoming struct {
	data     *io.PipeWriter
	stalled  *time.Timer // fires when no chunk has come for long
	answered chan struct{}
	answer   raft.RPCResponse // valid when answered is closed
}

// beginSnapshot gives raft the request of a snapshot, whose data follows.
func (t *Transport) beginSnapshot(ctx context.Context, request []byte) ([]byte, error) {
	if len(request) < 8 {
		return nil, errShort
	}
	number, command := binary.LittleEndian.Uint64(request), new(raft.InstallSnapshotRequest)
	if err := unpack(request[8:], command); err != nil {
		return nil, err
	}
	from, to := io.Pipe()
	response, err := t.submit(ctx, raft.RPC{Command: command, Reader: io.LimitReader(from, command.Size)})
	if err != nil {
		return nil, err
	}
	in := &incoming{data: to, answered: make(chan struct{})}
	in.stalled = time.AfterFunc(2*t.cfg.Timeout, func() { t.forget(number, errStalled) })
	t.mu.Lock()
	t.snapshots[number] = in
	t.mu.Unlock()
	t.tasks.Add(1)
	go t.awaitRaft(in, from, response)
	return nil, nil
}

// awaitRaft waits for raft's answer to a snapshot.
func (t *Transport) awaitRaft(in *incoming, from *io.PipeReader, response <-chan raft.RPCResponse) {
	defer t.tasks.Done()
	select {
	case in.answer = <-response:
		_ = from.CloseWithError(errAnswered)
	case <-t.life.Done():
		in.answer.Error = errClosed
		_ = from.CloseWithError(errClosed)
		_ = in.data.CloseWithError(errClosed) // raft may read still
	}
	close(in.answered)
}

// find is the snapshot that a call is about, whose number is its payload.
func (t *Transport) find(r *rpc.Request) (uint64, *incoming, error) {
	if len(r.Payload()) != 8 {
		return 0, nil, errShort
	}
	number := binary.LittleEndian.Uint64(r.Payload())
	t.mu.Lock()
	defer t.mu.Unlock()
	if in := t.snapshots[number]; in != nil {
		return number, in, nil
	}
	return 0, nil, errNumber
}

// forget ends a snapshot: raft's next read has the error, or with nil the end.
func (t *Transport) forget(number uint64, err error) {
	t.mu.Lock()
	in := t.snapshots[number]
	delete(t.snapshots, number)
	t.mu.Unlock()
	if in != nil {
		in.stalled.Stop()
		_ = in.data.CloseWithError(err)
	}
}

// takeChunk gives raft a chunk. The answer has a byte if raft reads no more.
func (t *Transport) takeChunk(r *rpc.Request) ([]byte, error) {
	number, in, err := t.find(r)
	if err != nil {
		return nil, err
	}
	if r.SourceLen() > chunk {
		return nil, fmt.Errorf("raftgodat: a chunk of %d bytes", r.SourceLen())
	}
	b, err := r.ReadAll()
	if err != nil {
		return nil, err
	}
	in.stalled.Stop() // the caller waits for raft now
	stop := context.AfterFunc(r.Context(), func() { t.forget(number, errStalled) })
	defer stop()
	_, err = in.data.Write(b)
	in.stalled.Reset(2 * t.cfg.Timeout)
	if errors.Is(err, errAnswered) {
		return []byte{1}, nil
	}
	return nil, err
}

// endSnapshot waits for raft's answer.
func (t *Transport) endSnapshot(r *rpc.Request) ([]byte, error) {
	number, in, err := t.find(r)
	if err != nil {
		return nil, err
	}
	t.forget(number, nil)
	select {
	case <-in.answered:
	case <-r.Context().Done():
		return nil, ErrNoAnswer
	}
	if in.answer.Error != nil {
		return nil, &EngineError{in.answer.Error.Error()}
	}
	return pack(nil, in.answer.Response)
}
