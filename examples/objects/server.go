package main

import (
	"context"
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

// The methods: what a call has besides its question.
const (
	methodPut  = 1 + iota // the body as the source
	methodGet             // the sink for what is there from Offset on; the answer has the object's Size
	methodList            // nothing; the answer has Names behind Name, and none at the end
)

type question struct {
	Name   string
	Offset int64
}

type answer struct {
	Size  int64
	Names []string
}

const (
	longest = 1 << 30 // bytes of an object
	workers = 64      // requests that are handled at a time; each may wait for its client
	most    = 1000    // names in an answer
	prefix  = "o-"    // of the names of objects' files

	unfinished = ".put-*" // the names of files that a PUT fills
)

// methods are the names on the page and in metrics.
var methods = map[uint16]string{methodPut: "put", methodGet: "get", methodList: "list"}

// store serves the files of a directory.
type store struct {
	dir string
	log *slog.Logger
}

// serve serves until ctx ends. Then it answers the requests that it has begun, and refuses
// others, which their clients repeat.
func serve(ctx context.Context, ia *dat.IA, address, dir string, out io.Writer) error {
	s := &store{dir, slog.New(slog.NewTextHandler(out, nil))}
	server, err := rpc.Listen(ctx, ia, address, rpc.Config{Methods: methods, Log: s.log, Await: true})
	if err != nil {
		return err
	}
	err = os.MkdirAll(dir, 0o755)
	left, _ := filepath.Glob(filepath.Join(dir, unfinished)) // by a server that was killed; none that runs has this address
	for _, file := range left {
		err = errors.Join(err, os.Remove(file))
	}
	if err != nil {
		return errors.Join(err, server.Close())
	}
	fmt.Fprintln(out, server.Addr())
	return server.Serve(ctx, workers, rpc.HandleJSON(s.handle))
}

// handle answers a request.
func (s *store) handle(r *rpc.Request, q question) (a answer, err error) {
	switch r.Method() {
	case methodPut:
		err = s.put(r, q.Name)
	case methodGet:
		a.Size, err = s.get(r, q)
	case methodList:
		a.Names, err = s.list(q.Name)
	default:
		err = &rpc.Error{Code: rpc.CodeUnknown, Text: "no such method"}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = errors.New("no such object")
	case err != nil: // also if the client has gone
		s.log.Warn("a request failed", "request", r, "error", err)
	}
	return a, err
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
	f, err := os.CreateTemp(s.dir, unfinished)
	if err != nil {
		return err
	}
	err = replace(s.path(name), f, func() error {
		_, err := r.ReadFile(f, 0)
		return err
	})
	if err != nil {
		return err
	}
	d, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close()) // the name is on the disk
}

// get writes what an object has from an offset on to the client's memory.
func (s *store) get(r *rpc.Request, q question) (size int64, err error) {
	f, err := os.Open(s.path(q.Name))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	_, err = r.WriteFile(f, q.Offset)
	return info.Size(), err
}

// list returns names behind one.
func (s *store) list(after string) (names []string, err error) {
	behind := filepath.Base(s.path(after))
	entries, err := os.ReadDir(s.dir) // in order
	for _, entry := range entries {
		file, isObject := strings.CutPrefix(entry.Name(), prefix)
		if name, err := url.PathUnescape(file); err == nil && isObject && entry.Name() > behind && len(names) < most {
			names = append(names, name)
		}
	}
	return names, err
}
