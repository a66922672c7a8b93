package peers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"godat/examples/blockstore/client"
	"godat/examples/blockstore/proto"
	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/nvme"
	"godat/hw"
	"godat/mem"
	"godat/runtime/rpc"
	"godat/runtime/stream"
)

// abandon ends what a peer has by its client's package: in the way that the peer leaves, and
// then by close, whose error means nothing to a client that leaves so.
func (a *actor) abandon(close func() error) {
	switch a.end {
	case vanishes, abruptly, halfWay:
		a.errs.add(a.ia.Close())
	case resets:
		a.reset()
	case inOrder, closes, lastWords:
	}
	_ = close()
}

// playStream plays a peer by package stream. It complains of an echo with other bytes.
func playStream(ctx context.Context, a *actor) error {
	nc, err := (&stream.Dialer{IA: a.ia, Config: stream.Config{Ring: 4096 << (a.depth % 8), Linger: time.Second}}).DialContext(ctx, "", a.addr)
	if err != nil {
		return nil // a server may refuse
	}
	c := nc.(*stream.Conn)
	_ = c.SetDeadline(time.Now().Add(atMost))
	said, wrong := bytes.Buffer{}, make(chan error, 1)
	for _, s := range a.steps {
		for range s.count {
			said.Write(text(s.seed, s.size))
		}
	}
	if a.deaf {
		wrong <- nil
	} else {
		go compare(c, said.Bytes(), wrong)
	}
	rest := said.Bytes()
	for _, s := range a.steps {
		n, err := c.Write(rest[:s.count*s.size])
		if rest = rest[n:]; err != nil {
			break
		}
	}
	if a.end == inOrder && c.CloseWrite() == nil {
		err = <-wrong
		wrong <- err
	}
	a.abandon(c.Close)
	return <-wrong
}

// compare reads a stream until it ends. What it reads is to be the beginning of want.
func compare(r io.Reader, want []byte, wrong chan<- error) {
	got := make([]byte, 10_000)
	for {
		n, err := r.Read(got)
		if n > len(want) || !bytes.Equal(got[:n], want[:n]) {
			wrong <- errWrong
			return
		}
		if want = want[n:]; err != nil {
			wrong <- nil
			return
		}
	}
}

// playCalls plays a peer by package rpc, some of whose calls end before their answers come.
func playCalls(ctx context.Context, a *actor) error {
	c, err := rpc.Dial(ctx, a.ia, a.addr, rpc.Config{Calls: 1 + a.depth%callSlots, Patience: time.Second})
	if err != nil {
		return nil // a server may refuse
	}
	defer a.abandon(c.Close)
	memory, err := c.PZ().Alloc(1<<20, hw.AllPrivileges)
	if err != nil {
		return err
	}
	for _, s := range a.steps {
		n := min(s.size, 1<<20)
		copy(memory.Bytes(), text(s.seed, n))
		call := rpc.Call{Method: kvGet, Payload: fmt.Appendf(nil, "k%d", s.seed%8), Sink: memory.Remote(0, n)}
		if s.seed&8 != 0 {
			call.Method, call.Source, call.Sink = kvPut, call.Sink, mem.RemoteSegment{}
		}
		brief, cancel := context.WithCancel(ctx)
		if !s.await {
			go cancel()
		}
		_, err = c.Call(brief, call, nil)
		cancel()
		if errors.Is(err, rpc.ErrEnded) || ctx.Err() != nil {
			break
		}
	}
	return memory.Free()
}

// playBlocks plays a peer by the block store's client.
func playBlocks(ctx context.Context, a *actor) error {
	l, err := client.Dial(ctx, a.ia, client.Config{Addr: a.addr, Limits: proto.Limits{Slots: a.depth, Block: limits.Block}, Stall: atMost})
	if err != nil {
		return nil // a server may refuse
	}
	defer a.abandon(l.Close)
	wrong := false
	want := map[client.Ref][]byte{}
	l.OnDone = func(s *client.Slot) error {
		wrong = wrong || s.Err == nil && !bytes.Equal(s.Buf[:s.N], want[s.Ref])
		return nil
	}
	for i, s := range a.steps {
		slot, err := l.Slot()
		if err != nil {
			break
		}
		ref := client.Ref{File: i}
		n := 1 + s.size%limits.Block
		want[ref] = text(s.seed, n)
		copy(slot.Buf, want[ref])
		id := l.Put(ctx, slot, n, ref)
		if s.await && l.Drain() == nil {
			if slot, err = l.Slot(); err == nil {
				l.Get(ctx, slot, id, ref)
			}
		}
	}
	if a.end == inOrder {
		_ = l.Drain()
	}
	if wrong {
		return errWrong
	}
	return nil
}

// playDisk plays a peer by package host: well-formed commands, and damaged ones.
func playDisk(ctx context.Context, a *actor) error {
	c, err := host.Connect(ctx, a.ia, host.Config{Addr: a.addr, Subsystem: subsystem, Name: hostName, Queues: 1 + a.depth%3, Depth: 2 + a.depth%8})
	if err != nil {
		return nil // a server may refuse
	}
	defer a.abandon(c.Close)
	d, err := c.Disk(ctx, uint32(1+a.depth%2))
	if err != nil {
		return nil
	}
	data := make([]byte, 64<<10)
	for _, s := range a.steps {
		p := data[:min(len(data), (s.size+4095)&^4095)]
		at := int64(s.at) << 9 & (1<<20 - 1) &^ 4095
		switch s.op {
		case hw.OpSend:
			_, err = d.WriteAt(p, at)
		case hw.OpWrite:
			_, err = d.WriteStable(p, at)
		case hw.OpRead:
			_, err = d.ReadAt(p, at)
		case hw.OpWriteImm:
			err = d.Compare(p, at)
		case hw.OpFetchAdd:
			err = d.WriteZeroes(ctx, at, int64(len(p)), s.seed&1 == 0)
		case hw.OpCompareSwap:
			err = d.Deallocate(ctx, nvme.Range{LBA: uint64(at >> 12), Blocks: uint32(len(p) >> 12)})
		default:
			r := nvmeRequest(asked{n: 2, seed: s.seed, size: s.size})
			var command nvme.Command
			if err = command.Parse(r); err != nil {
				break
			}
			if s.content == asClients {
				_, err = c.Admin(ctx, command, p[:min(len(p), nvme.PageLen)])
			} else {
				_, err = d.Do(ctx, command, p)
			}
		}
		if errors.Is(err, host.ErrEnded) || ctx.Err() != nil {
			break
		}
	}
	return nil
}
