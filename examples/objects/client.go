package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	dat "godat/runtime"
	"godat/runtime/rpc"
)

const pause = 50 * time.Millisecond // at most about, before a client connects again

// client is a client of a store. Its requests may be made twice, so they are made again when
// their connection ends.
type client struct{ *rpc.Client }

// dial connects to a store, as soon as there is one.
func dial(ctx context.Context, ia *dat.IA, address string) (*client, error) {
	conn, err := rpc.Dial(ctx, ia, address, rpc.Config{Redial: pause, Await: true})
	return &client{conn}, err
}

func (c *client) call(ctx context.Context, call rpc.Call) ([]byte, error) {
	call.Idempotent = true
	return c.Call(ctx, call, nil)
}

// put stores a file as an object.
func (c *client) put(ctx context.Context, name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() > longest {
		return fmt.Errorf("%s is longer than an object may be, %d bytes", path, longest)
	}
	n := int(info.Size())
	return mapped(c.PZ(), f, 0, n, dat.LocalRead|dat.RemoteRead, func(m *dat.LMR, at int) error {
		_, err := c.call(ctx, rpc.Call{Method: methodPut, Payload: []byte(name), Source: m.Remote(at, n)})
		return err
	})
}

// get fetches up to length bytes of an object, from offset on, into a file.
func (c *client) get(ctx context.Context, name, path string, offset, length int) error {
	request := append(binary.BigEndian.AppendUint64(nil, uint64(offset)), name...)
	size, err := c.fetch(ctx, rpc.Call{Payload: request}) // without a sink
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	n := max(min(size-offset, length), 0)
	if err = allocate(f, n); err == nil {
		err = mapped(c.PZ(), f, 0, n, dat.LocalWrite|dat.RemoteWrite, func(m *dat.LMR, at int) error {
			now, err := c.fetch(ctx, rpc.Call{Payload: request, Sink: m.Remote(at, n)})
			if err == nil && now != size {
				err = errors.New("there is another object now: try again")
			}
			return err
		})
	}
	return errors.Join(err, f.Close())
}

// fetch makes a GET, and returns the object's length.
func (c *client) fetch(ctx context.Context, call rpc.Call) (int, error) {
	call.Method = methodGet
	answer, err := c.call(ctx, call)
	if err == nil && (len(answer) != 8 || binary.BigEndian.Uint64(answer) > longest) {
		err = errors.New("the answer is not an object's length")
	}
	if err != nil {
		return 0, err
	}
	return int(binary.BigEndian.Uint64(answer)), nil
}

// list prints the names of all objects.
func (c *client) list(ctx context.Context, out io.Writer) error {
	for last := ""; ; {
		names, err := c.call(ctx, rpc.Call{Method: methodList, Payload: []byte(last)})
		if err != nil || len(names) == 0 {
			return err
		}
		for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
			fmt.Fprintln(out, name)
			last = name
		}
	}
}
