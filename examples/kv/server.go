package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	dat "godat/runtime"
)

// server is one goroutine: it needs no lock.
type server struct {
	values map[string][]byte
	moving *dat.Contexts[move] // the RDMA under way, by cookie
	memory *dat.BufferPool     // that it goes through
}

// move is what an RDMA is for.
type move struct {
	memory  *dat.Buffer
	request *dat.Buffer // of a put, which is answered when the value is here
	key     string
}

func serveTo(ctx context.Context, ia *dat.IA, address string, ready chan<- string, done chan<- error) {
	done <- serve(ctx, ia, address, ready)
}

// serve serves until ctx ends.
func serve(ctx context.Context, ia *dat.IA, address string, ready chan<- string) error {
	pz, err := ia.NewPZ() // one for all connections: they share the memory
	if err != nil {
		return err
	}
	const moves = 4 * depth
	s := &server{values: make(map[string][]byte), moving: dat.NewContexts[move](moves)}
	if s.memory, err = pz.NewBufferPool(dat.BufferPoolConfig{Count: moves, Size: longest}); err != nil {
		return err
	}
	ln, err := ia.Listen(ctx, address, dat.ConnConfig{Depth: depth, Message: messages, PZ: pz})
	if err != nil {
		return err
	}
	if ready != nil {
		ready <- ln.Addr()
	}
	for {
		var err error
		select {
		case ev, ok := <-ln.Requests():
			if !ok {
				return errors.New("kv: the adapter is closed")
			}
			_, err = ln.Accept(dat.RequestOf(ev), nil)
		case ev := <-ln.Events():
			c := dat.ConnOf(ev)
			if err = s.handle(c, ev); err != nil && !ev.Ended() {
				err = errors.Join(err, c.Close())
			}
		case <-ctx.Done():
			return errors.Join(ln.Shutdown(context.WithoutCancel(ctx)), s.memory.Close(), pz.Close())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "kv:", err) // one client's fault ends that client
		}
	}
}

func (s *server) handle(c *dat.Conn, ev dat.Event) error {
	switch {
	case ev.Ended():
		return errors.Join(ev.Err(), c.Close())
	case ev.Number == dat.Established:
		return nil
	}
	if b := c.Message(ev); b != nil {
		return s.request(c, b)
	}
	m, ok := s.moving.Take(ev.Cookie)
	if !ok {
		return nil // a message on a connection that was closed
	}
	defer m.memory.Put()
	if m.request == nil || ev.Err() != nil { // a get's value is there, or the client is gone
		c.Release(m.request)
		return nil
	}
	s.values[m.key] = bytes.Clone(m.memory.Bytes())
	return answer(c, m.request, statusOK, nil)
}

// request answers a request in the buffer that it came in.
func (s *server) request(c *dat.Conn, b *dat.Buffer) error {
	r := b.Bytes()
	if len(r) < 2 || len(r) < 2+int(r[1]) {
		return answer(c, b, statusBad, nil)
	}
	op, key, rest := r[0], string(r[2:2+r[1]]), r[2+r[1]:]
	if op == opPut {
		s.values[key] = bytes.Clone(rest)
		return answer(c, b, statusOK, nil)
	}
	remote, err := dat.ParseRemoteSegment(rest)
	value, found := s.values[key]
	switch {
	case err != nil:
		return answer(c, b, statusBad, nil)
	case op == opPutLong:
		return s.read(c, b, key, remote)
	case op != opGet || len(value) > int(remote.Len):
		return answer(c, b, statusBad, nil)
	case !found:
		return answer(c, b, statusMissing, nil)
	case len(value) <= short:
		return answer(c, b, statusOK, value)
	}
	return s.write(c, b, value, remote)
}

// read reads a put's value; handle answers when it is there.
func (s *server) read(c *dat.Conn, b *dat.Buffer, key string, from dat.RemoteSegment) error {
	if from.Len > longest {
		return answer(c, b, statusBad, nil)
	}
	memory := s.memory.Get()
	if memory == nil {
		return answer(c, b, statusBusy, nil)
	}
	memory.Resize(int(from.Len))
	cookie, _ := s.moving.Put(move{memory, b, key}) // there are as many places as buffers
	return s.begun(c, cookie, c.Endpoint.PostRDMARead(cookie, dat.Default, from, memory.Segment()))
}

// write writes a get's value and answers, in one batch: the answer is behind the value.
func (s *server) write(c *dat.Conn, b *dat.Buffer, value []byte, to dat.RemoteSegment) error {
	memory := s.memory.Get()
	if memory == nil {
		return answer(c, b, statusBusy, nil)
	}
	_, _ = memory.Write(value) // as long as a value may be
	cookie, _ := s.moving.Put(move{memory: memory})
	err := c.Outbox().Add(dat.DTO{Op: dat.OpWrite, Cookie: cookie, Segment: memory.Segment(), Remote: to})
	if err = s.begun(c, cookie, err); err != nil {
		c.Release(b)
		return err
	}
	b.Resize(1)[0] = statusLong
	_, _ = b.Write(binary.BigEndian.AppendUint32(nil, uint32(len(value))))
	return errors.Join(c.Queue(b), c.Flush())
}

// begun forgets a move that could not be posted.
func (s *server) begun(c *dat.Conn, cookie uint64, err error) error {
	if err != nil {
		m, _ := s.moving.Take(cookie)
		m.memory.Put()
		c.Release(m.request)
	}
	return err
}

// answer sends the buffer of a request back with an answer in it.
func answer(c *dat.Conn, b *dat.Buffer, status byte, value []byte) error {
	b.Resize(1)[0] = status
	_, _ = b.Write(value) // at most short bytes
	return c.Send(b)
}
