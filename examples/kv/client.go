package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	dat "godat/runtime"
)

// client is a connection to a server. One goroutine uses it.
type client struct {
	conn   *dat.Conn
	pool   *dat.BufferPool
	memory *dat.Buffer // the server reads long values from it, and writes them to it
}

var errMissing = errors.New("no such key")

func connect(ctx context.Context, ia *dat.IA, address string) (*client, error) {
	c, err := ia.Dial(ctx, address, dat.ConnConfig{Depth: depth, Message: messages})
	if err != nil {
		return nil, err
	}
	pool, err := c.PZ().NewBufferPool(dat.BufferPoolConfig{Count: 1, Size: longest, Privileges: dat.AllPrivileges})
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &client{c, pool, pool.Get()}, nil
}

func (k *client) close(ctx context.Context) error {
	k.memory.Put()
	return errors.Join(k.pool.Close(), k.conn.Shutdown(ctx))
}

// put keeps a value under a key.
func (k *client) put(ctx context.Context, key string, value []byte) (err error) {
	switch {
	case len(value) > longest:
		return fmt.Errorf("a value of %d bytes, at most %d", len(value), longest)
	case len(value) > short:
		copy(k.memory.Resize(len(value)), value)
		_, err = k.call(ctx, opPutLong, key, k.where())
	default:
		_, err = k.call(ctx, opPut, key, value)
	}
	return err
}

// get returns the value under a key.
func (k *client) get(ctx context.Context, key string) ([]byte, error) {
	k.memory.Resize(longest)
	return k.call(ctx, opGet, key, k.where())
}

// where names the client's memory to the server.
func (k *client) where() []byte {
	b, _ := k.memory.Remote().MarshalBinary() // its error is always nil
	return b
}

// call sends a request and takes its answer.
func (k *client) call(ctx context.Context, op byte, key string, body []byte) ([]byte, error) {
	if len(key) > maxKey {
		return nil, fmt.Errorf("a key of %d bytes, at most %d", len(key), maxKey)
	}
	request := k.conn.Buffer()
	if request == nil {
		return nil, errors.New("the connection is closed")
	}
	fmt.Fprintf(request, "%c%c%s%s", op, 0, key, body)
	request.Bytes()[1] = byte(len(key))
	if err := k.conn.Send(request); err != nil {
		return nil, err
	}
	b, err := k.conn.Receive(ctx)
	if err != nil {
		return nil, err
	}
	defer k.conn.Release(b)
	return k.answer(b.Bytes())
}

func (k *client) answer(a []byte) ([]byte, error) {
	switch {
	case len(a) == 0:
	case a[0] == statusOK:
		return bytes.Clone(a[1:]), nil
	case a[0] == statusLong && len(a) == 5:
		if n := binary.BigEndian.Uint32(a[1:]); n <= longest {
			return bytes.Clone(k.memory.Bytes()[:n]), nil
		}
	case a[0] == statusMissing:
		return nil, errMissing
	case a[0] == statusBusy:
		return nil, errors.New("the server is busy")
	}
	return nil, errors.New("the server did not understand, or was not understood")
}

// ask does what the command line asks for.
func ask(ctx context.Context, ia *dat.IA, address string, args []string, out io.Writer) error {
	k, err := connect(ctx, ia, address)
	if err != nil {
		return err
	}
	switch {
	case len(args) == 3 && args[0] == "put":
		err = k.put(ctx, args[1], []byte(args[2]))
	case len(args) == 2 && args[0] == "get":
		var value []byte
		if value, err = k.get(ctx, args[1]); err == nil {
			_, err = fmt.Fprintf(out, "%s\n", value)
		}
	default:
		err = errors.New("usage: kv -addr host:port put key value | get key")
	}
	return errors.Join(err, k.close(ctx))
}
