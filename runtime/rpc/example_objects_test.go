package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
	"godat/runtime/rpc"
)

// A server keeps large objects in registered memory. It reads an object from the memory of the client that
// puts it, and writes it to the memory of one that gets it, so no byte is copied on the way. The zone is the
// program's, which frees the objects when the server has ended.
func ExampleRequest_Read() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ia, err := dat.Open(ctx, "loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	pz, err := ia.NewPZ()
	if err != nil {
		fmt.Println(err)
		return
	}
	server, err := rpc.Listen(ctx, ia, "127.0.0.1:0", rpc.Config{PZ: pz})
	if err != nil {
		fmt.Println(err)
		return
	}
	store := &objects{pz: pz, named: map[string]*object{}}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, 8, store.handle) }()
	if err := storeAndFetch(ctx, ia, server.Addr()); err != nil {
		fmt.Println(err)
	}
	stop()
	fmt.Println(errors.Join(<-served, store.free(), pz.Close()))
	// Output:
	// the object has 4194304 bytes, of which 1048576 came: xxxx
	// <nil>
}

const (
	putObject = 1
	getObject = 2
	mostBytes = 1 << 30 // of an object
)

// object is memory that stays until nobody uses it: a PUT of its name may replace it while a GET moves it.
type object struct {
	lmr   *mem.LMR
	users int // the store, and each GET under way
}

type objects struct {
	pz    *mem.PZ
	mu    sync.Mutex
	named map[string]*object
}

func (s *objects) handle(r *rpc.Request) ([]byte, error) {
	switch name := string(r.Payload()); r.Method() {
	case putObject:
		return nil, s.put(r, name)
	case getObject:
		o := s.take(name)
		if o == nil {
			return nil, &rpc.Error{Code: rpc.CodeUser, Text: "no such object"}
		}
		size := len(o.lmr.Bytes())
		err := r.Write(o.lmr.Segment(0, min(size, r.SinkLen())), 0)
		return fmt.Append(nil, size), errors.Join(err, s.release(o))
	}
	return nil, &rpc.Error{Code: rpc.CodeUnknown, Text: "no such method"}
}

func (s *objects) put(r *rpc.Request, name string) error {
	size := r.SourceLen()
	if size == 0 || size > mostBytes {
		return &rpc.Error{Code: rpc.CodeUser, Text: "an object has 1 byte to 1 GiB"}
	}
	lmr, err := s.pz.Alloc(size, hw.LocalRead|hw.LocalWrite) // no client reaches it
	if err != nil {
		return err
	}
	if err := r.Read(lmr.Segment(0, size), 0); err != nil {
		return errors.Join(err, lmr.Free())
	}
	s.mu.Lock()
	old := s.named[name]
	s.named[name] = &object{lmr, 1}
	s.mu.Unlock()
	return s.release(old)
}

func (s *objects) take(name string) *object {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.named[name]
	if o != nil {
		o.users++
	}
	return o
}

func (s *objects) release(o *object) error {
	if o == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.users--; o.users > 0 {
		return nil
	}
	return o.lmr.Free()
}

// free is called when no handler runs any more.
func (s *objects) free() (err error) {
	for _, o := range s.named {
		err = errors.Join(err, s.release(o))
	}
	return err
}

// storeAndFetch is a client, whose memory needs no registration: one that makes many calls registers it once,
// in Client.PZ.
func storeAndFetch(ctx context.Context, ia *dat.IA, address string) error {
	client, err := rpc.Dial(ctx, ia, address, rpc.Config{})
	if err != nil {
		return err
	}
	body := make([]byte, 4<<20)
	for i := range body {
		body[i] = 'x'
	}
	if _, err := client.Call(ctx, rpc.Call{Method: putObject, Payload: []byte("x"), SourceBytes: body}, nil); err != nil {
		return errors.Join(err, client.Close())
	}
	part, came := make([]byte, 1<<20), 0
	size, err := client.Call(ctx, rpc.Call{Method: getObject, Payload: []byte("x"), SinkBytes: part, Written: &came}, nil)
	fmt.Printf("the object has %s bytes, of which %d came: %s\n", size, came, part[:4])
	return errors.Join(err, client.Close())
}
