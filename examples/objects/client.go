package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
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
	conn, err := rpc.Dial(ctx, ia, address, rpc.Config{Methods: methods, Redial: pause, Await: true})
	return &client{conn}, err
}

func (c *client) call(ctx context.Context, call rpc.Call, q question) (a answer, err error) {
	call.Idempotent = true
	err = c.CallJSON(ctx, call, q, &a)
	return a, err
}

// put stores a file as an object.
func (c *client) put(ctx context.Context, name, path string) error {
	body, err := os.ReadFile(path)
	if err == nil {
		_, err = c.call(ctx, rpc.Call{Method: methodPut, SourceBytes: body}, question{Name: name})
	}
	return err
}

// get fetches up to length bytes of an object, from offset on, into a file.
func (c *client) get(ctx context.Context, name, path string, offset, length int64) error {
	get, q := rpc.Call{Method: methodGet}, question{name, offset}
	before, err := c.call(ctx, get, q) // without a sink
	if err == nil && before.Size > longest {
		err = errors.New("the answer is not an object's length")
	}
	if err != nil {
		return err
	}
	get.SinkBytes = make([]byte, max(min(before.Size-offset, length), 0))
	now, err := c.call(ctx, get, q)
	if err == nil && now.Size != before.Size {
		err = errors.New("there is another object now: try again")
	}
	if err != nil {
		return err
	}
	return save(path, get.SinkBytes)
}

// save writes a file. It fills a new one beside it, and gives that the name when it is on the disk. So the file has
// all of the body, or stays as it was. What is no regular file, such as a pipe, is written into.
func save(path string, body []byte) error {
	mode := fs.FileMode(0o666)
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return os.WriteFile(path, body, 0)
	case err == nil:
		mode = info.Mode().Perm()
		path, err = filepath.EvalSymlinks(path) // a link stays one
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err != nil {
		return err
	}
	f, err := os.OpenFile(fmt.Sprintf("%s.new-%x", path, rand.Uint64()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	return replace(path, f, func() error {
		_, err := f.Write(body)
		if err == nil && info != nil {
			err = f.Chmod(mode)
		}
		return err
	})
}

// replace fills a new file, and gives it a name when it is on the disk. If it can't, it removes the file.
func replace(path string, f *os.File, fill func() error) error {
	err := fill()
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// list prints the names of all objects.
func (c *client) list(ctx context.Context, out io.Writer) error {
	many, last := make([]byte, 1<<20), ""
	for {
		a, err := c.call(ctx, rpc.Call{Method: methodList, SinkBytes: many}, question{Name: last})
		if err != nil || len(a.Names) == 0 {
			return err
		}
		for _, last = range a.Names {
			fmt.Fprintln(out, last)
		}
	}
}
