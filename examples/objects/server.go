package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	dat "godat/runtime"
	"godat/runtime/rpc"
)

// The methods: what a request says, and what its answer.
const (
	methodPut  = 1 + iota // a name, and the body as the source; nothing
	methodGet             // 8 bytes of offset and a name, and the sink for what is there; 8 bytes of the object's length
	methodList            // a name; names of objects behind it, each with a zero behind it; none at the end
)

const (
	longest = 1 << 30 // bytes of an object
	workers = 64      // requests that are handled at a time; each may wait for its client
	listLen = 4096    // bytes of names in an answer; rpc.Config.Message
	prefix  = "o-"    // of the names of objects' files
)

// store serves the files of a directory.
type store struct {
	dir    string
	server *rpc.Server
	log    *slog.Logger
}

// serve serves until ctx ends. Then it answers the requests that it has begun, and refuses
// others, which their clients repeat.
func serve(ctx context.Context, ia *dat.IA, address, dir string, out io.Writer) error {
	err := os.MkdirAll(dir, 0o755)
	left, _ := filepath.Glob(filepath.Join(dir, "*.put")) // by a server that was killed
	for _, file := range left {
		err = errors.Join(err, os.Remove(file))
	}
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(out, nil))
	server, err := rpc.Listen(ctx, ia, address, rpc.Config{Log: log})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, server.Addr())
	s := &store{dir, server, log}
	return server.Serve(ctx, workers, s.handle)
}

// handle answers a request.
func (s *store) handle(r *rpc.Request) (answer []byte, err error) {
	err = &rpc.Error{Code: rpc.CodeUnknown, Text: "no such method"}
	switch r.Method() {
	case methodPut:
		err = s.put(r, string(r.Payload()))
	case methodGet:
		if b := r.Payload(); len(b) >= 8 {
			answer, err = s.get(r, string(b[8:]), binary.BigEndian.Uint64(b))
		}
	case methodList:
		answer, err = s.list(string(r.Payload()))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = errors.New("no such object")
	case err != nil: // also if the client has gone
		s.log.Warn("a request failed", "request", r, "error", err)
	}
	return answer, err
}

// path is the name of an object's file.
func (s *store) path(name string) string {
	return filepath.Join(s.dir, prefix+url.PathEscape(name))
}

// put fills a new file, and gives it the object's name when it is on the disk. So the object
// is the old one or the new one, and whole.
func (s *store) put(r *rpc.Request, name string) error {
	if name == "" || r.SourceLen() > longest {
		return errors.New("no name, or too long a body")
	}
	f, err := os.CreateTemp(s.dir, "*.put")
	if err != nil {
		return err
	}
	err = errors.Join(s.fill(f, r), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), s.path(name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(s.dir)
}

// fill reads the client's memory into a file.
func (s *store) fill(f *os.File, r *rpc.Request) error {
	n := r.SourceLen()
	err := allocate(f, n)
	if err == nil {
		err = mapped(s.server.PZ(), f, 0, n, dat.LocalWrite, func(m *dat.LMR, at int) error { return r.Read(m.Segment(at, n), 0) })
	}
	if err == nil {
		err = f.Sync()
	}
	return err
}

// get writes what an object has from offset on to the client's memory.
func (s *store) get(r *rpc.Request, name string, offset uint64) ([]byte, error) {
	f, err := os.Open(s.path(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := uint64(info.Size())
	offset = min(offset, size)
	n := min(r.SinkLen(), int(size-offset))
	err = mapped(s.server.PZ(), f, int64(offset), n, dat.LocalRead, func(m *dat.LMR, at int) error { return r.Write(m.Segment(at, n), 0) })
	return binary.BigEndian.AppendUint64(nil, size), err
}

// list returns names behind one.
func (s *store) list(after string) (names []byte, err error) {
	behind := filepath.Base(s.path(after))
	entries, err := os.ReadDir(s.dir) // in order
	for _, entry := range entries {
		file, isObject := strings.CutPrefix(entry.Name(), prefix)
		if name, err := url.PathUnescape(file); err == nil && isObject && entry.Name() > behind {
			if len(names)+len(name)+1 > listLen {
				break
			}
			names = append(append(names, name...), 0)
		}
	}
	return names, err
}
