package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"syscall"

	"go.uber.org/zap"

	"godat/examples/blockstore/block"
	"godat/examples/blockstore/proto"
	"godat/examples/blockstore/store"
	"godat/runtime/rpc"
)

var (
	errMalformed = errors.New("not a request of the block store")
	errDamaged   = errors.New("damaged on the way")
	errStore     = errors.New("the store failed")
)

// handle answers a request.
func (s *Server) handle(r *rpc.Request) (answer []byte, err error) {
	var id block.ID
	named := copy(id[:], r.Payload()) == len(r.Payload()) && len(r.Payload()) == len(id)
	switch method := r.Method(); {
	case method == proto.Open:
		answer = s.limits.Encode()
	case method == proto.Root:
		id, err = s.store.Root()
		answer, err = id[:], s.told(r, err)
	case method == proto.SetRoot && named:
		err = s.told(r, s.store.SetRoot(id))
	case method == proto.Put && named:
		err = s.put(r, id)
	case method == proto.Get && named:
		answer, err = s.get(r, id)
	default:
		err = errMalformed
	}
	if entry := s.log.Check(zap.DebugLevel, "request"); entry != nil {
		entry.Write(zap.Stringer("request", r), zap.Error(err))
	}
	return answer, err
}

// put reads a block from its client's memory, and has it stored.
func (s *Server) put(r *rpc.Request, id block.ID) error {
	n := r.SourceLen()
	if n == 0 || n > s.limits.Block {
		return fmt.Errorf("a block of %d bytes; 1 to %d are possible", n, s.limits.Block)
	}
	at := <-s.free // there is room for each handler
	defer s.giveBack(at)
	if err := r.Read(s.memory.Segment(at, n), 0); err != nil {
		return err
	}
	data := s.memory.Bytes()[at : at+n]
	if block.IDOf(data) != id {
		return errDamaged
	}
	stored := make(chan error, 1)
	s.puts <- put{store.Block{ID: id, Data: data}, stored}
	return s.told(r, <-stored)
}

// get writes a block to its client's memory.
func (s *Server) get(r *rpc.Request, id block.ID) ([]byte, error) {
	at := <-s.free
	defer s.giveBack(at)
	n, err := s.store.Get(id, s.memory.Bytes()[at:at+s.limits.Block])
	if err != nil {
		return nil, s.told(r, err)
	}
	return binary.BigEndian.AppendUint32(nil, uint32(n)), r.Write(s.memory.Segment(at, n), 0)
}

func (s *Server) giveBack(at int) { s.free <- at }

// told is what a client hears of the store's error.
func (s *Server) told(r *rpc.Request, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrNotFound):
		return &rpc.Error{Code: rpc.CodeUnknown, Text: err.Error()}
	}
	s.log.Error("store", zap.Stringer("request", r), zap.Error(err))
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("the file system of the server's %s is full: nothing is stored until there is room for the block there", s.store.Path())
	}
	return errStore
}

// put is a block that its handler has read.
type put struct {
	block  store.Block
	stored chan<- error // has room
}

// write is the goroutine that stores blocks: all that wait in one transaction, because a
// transaction costs one write to the disk however many blocks it has.
func (s *Server) write() {
	defer close(s.wrote)
	var puts []put
	var blocks []store.Block
	for p := range s.puts {
		puts, blocks = append(puts[:0], p), append(blocks[:0], p.block)
		runtime.Gosched() // handlers that have read blocks bring them meanwhile
		for range len(s.puts) {
			p := <-s.puts
			puts, blocks = append(puts, p), append(blocks, p.block)
		}
		err := s.store.Put(blocks)
		for _, p := range puts {
			p.stored <- err
		}
	}
}
