package peers

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"godat/check/peers/observer"
	"godat/examples/blockstore/client"
	"godat/examples/blockstore/proto"
	"godat/examples/nvmeof/host"
	"godat/hw"
	dat "godat/runtime"
	"godat/runtime/rpc"
	"godat/runtime/stream"
)

// patience is how long a server may take to answer a client, and to give back what peers that
// have gone have cost.
const patience = 30 * time.Second

// What a server may hold beside what it held before the peers came. The rest is what its runtime
// and its provider keep to use again.
const (
	moreGoroutines  = 16
	moreDescriptors = 4
	moreResident    = 48 << 10 // KiB
)

// settle lets a well-behaved client use a new server, and notes what it holds then.
func (s *server) settle(ctx context.Context) (err error) {
	for range 2 {
		if err = s.serves(ctx); err != nil {
			return err
		}
	}
	s.base, err = s.ask(observer.Count)
	return err
}

// judge says what is wrong with a server whose peers have gone.
func (s *server) judge(ctx context.Context) error {
	err := s.alive()
	if err == nil {
		err = s.serves(ctx)
	}
	if err == nil {
		err = s.lean(ctx)
	}
	if err == nil {
		err = s.alive()
	}
	if err == nil {
		return nil
	}
	select { // a death may be on its way
	case <-s.done:
	case <-time.After(time.Second):
		err = errors.Join(err, s.dump())
	}
	return errors.Join(err, s.said())
}

// serves is an error if a well-behaved client does not get what it is due.
func (s *server) serves(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ia, err := dat.Open(ctx, device)
	if err != nil {
		return err
	}
	if err := errors.Join(s.kind.check(ctx, ia, s.addr), ia.Close()); err != nil {
		return fmt.Errorf("a well-behaved client of %s: %w", s.kind.name, err)
	}
	return nil
}

// lean is an error if the server keeps what its peers have cost.
func (s *server) lean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		now, err := s.ask(observer.Count)
		if err != nil {
			return fmt.Errorf("%s does not say what it holds: %w", s.kind.name, err)
		}
		if now.Goroutines <= s.base.Goroutines+moreGoroutines && now.Descriptors <= s.base.Descriptors+moreDescriptors && now.Resident <= s.base.Resident+moreResident {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("%s holds %+v, and held %+v before its peers came and went", s.kind.name, now, s.base)
		}
	}
}

// fresh is n bytes that no server has seen.
func fresh(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

// errWrong is the error of an answer with other bytes than are due.
var errWrong = errors.New("the answer has other bytes than are due")

func same(got, want []byte) error {
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%w: %d for %d", errWrong, len(got), len(want))
	}
	return nil
}

// checkEcho sends messages of several sizes, and compares the answers.
func checkEcho(ctx context.Context, ia *dat.IA, addr string) error {
	c, err := ia.Dial(ctx, addr, dat.ConnConfig{})
	if err != nil {
		return err
	}
	for _, n := range []int{1, 100, 4096} {
		said := fresh(n)
		if err == nil {
			err = c.SendBytes(said)
		}
		if err == nil {
			err = hear(ctx, c, said)
		}
	}
	return errors.Join(err, c.Shutdown(ctx))
}

// hear receives a message that is to be equal to want.
func hear(ctx context.Context, c *dat.Conn, want []byte) error {
	b, err := c.Receive(ctx)
	if err != nil {
		return err
	}
	defer c.Release(b)
	return same(b.Bytes(), want)
}

// checkValues stores a short and a long value and gets them again.
func checkValues(ctx context.Context, ia *dat.IA, addr string) error {
	c, err := rpc.Dial(ctx, ia, addr, rpc.Config{})
	if err != nil {
		return err
	}
	return errors.Join(keepValues(ctx, c), c.Close())
}

func keepValues(ctx context.Context, c *rpc.Client) error {
	const long = 20_000
	memory, err := c.PZ().Alloc(2*long, hw.AllPrivileges)
	if err != nil {
		return err
	}
	value := fresh(long)
	copy(memory.Bytes(), value)
	got := []byte(nil)
	for _, step := range [...]struct {
		call rpc.Call
		want []byte
	}{
		{rpc.Call{Method: kvPut, Payload: []byte("judge"), Source: memory.Remote(0, long)}, nil},
		{rpc.Call{Method: kvPut, Payload: append([]byte("judge's\x00"), value[:100]...)}, nil},
		{rpc.Call{Method: kvGet, Payload: []byte("judge's")}, append([]byte{0, 0, 0, 100}, value[:100]...)},
		{rpc.Call{Method: kvGet, Payload: []byte("judge"), Sink: memory.Remote(long, long)}, binary.BigEndian.AppendUint32(nil, long)},
	} {
		if err == nil {
			got, err = c.Call(ctx, step.call, got[:0])
		}
		if err == nil {
			err = same(got, step.want)
		}
	}
	if err == nil {
		err = same(memory.Bytes()[long:], value)
	}
	return errors.Join(err, memory.Free())
}

// checkBlocks stores two blocks and gets them again.
func checkBlocks(ctx context.Context, ia *dat.IA, addr string) error {
	l, err := client.Dial(ctx, ia, client.Config{Addr: addr, Limits: proto.Limits{Slots: 2, Block: limits.Block}, Stall: patience})
	if err != nil {
		return err
	}
	return errors.Join(keepBlocks(ctx, l), l.Close())
}

func keepBlocks(ctx context.Context, l *client.Link) error {
	for _, n := range []int{100, limits.Block} {
		s, err := l.Slot()
		if err != nil {
			return err
		}
		data := fresh(n)
		copy(s.Buf, data)
		id := l.Put(ctx, s, n, client.Ref{})
		if err = errors.Join(l.Drain(), s.Err); err != nil {
			return err
		}
		if s, err = l.Slot(); err != nil {
			return err
		}
		l.Get(ctx, s, id, client.Ref{})
		if err = errors.Join(l.Drain(), s.Err, same(s.Buf[:s.N], data)); err != nil {
			return err
		}
	}
	return nil
}

// checkStream sends bytes, ends its direction, and compares what comes back until the end.
func checkStream(ctx context.Context, ia *dat.IA, addr string) error {
	c, err := (&stream.Dialer{IA: ia}).DialContext(ctx, "", addr)
	if err != nil {
		return err
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	said, wrote := fresh(100_000), make(chan error, 1)
	go speak(c.(*stream.Conn), said, wrote)
	heard, err := io.ReadAll(c)
	return errors.Join(err, same(heard, said), c.Close(), <-wrote)
}

// speak writes to a stream and ends that direction.
func speak(c *stream.Conn, what []byte, done chan<- error) {
	_, err := c.Write(what)
	done <- errors.Join(err, c.CloseWrite())
}

// checkDisk writes blocks to both disks and reads them again.
func checkDisk(ctx context.Context, ia *dat.IA, addr string) error {
	c, err := host.Connect(ctx, ia, host.Config{Addr: addr, Subsystem: subsystem})
	if err != nil {
		return err
	}
	for nsid := uint32(1); err == nil && nsid <= 2; nsid++ {
		err = keepOnDisk(ctx, c, nsid)
	}
	return errors.Join(err, c.Close())
}

func keepOnDisk(ctx context.Context, c *host.Controller, nsid uint32) error {
	d, err := c.Disk(ctx, nsid)
	if err != nil {
		return err
	}
	data, got := fresh(64<<10), make([]byte, 64<<10)
	at := d.Size() - int64(len(data)) // where random peers write less
	if _, err := d.WriteAt(data, at); err != nil {
		return err
	}
	if _, err := d.ReadAt(got, at); err != nil {
		return err
	}
	return errors.Join(same(got, data), d.Flush(ctx))
}
