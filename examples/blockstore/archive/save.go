package archive

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"sync/atomic"
	"time"

	"godat/examples/blockstore/block"
	"godat/examples/blockstore/client"
	"godat/examples/blockstore/report"
	"godat/examples/blockstore/tree"
)

// Options say how Save and Check work.
type Options struct {
	Dial     Dialer
	Links    int              // connections, and goroutines; at least 1
	Progress *report.Progress // grows by the bytes moved; may be nil
}

// saver is one Save.
type saver struct {
	crew  *crew
	opts  Options
	root  *os.Root
	found []tree.Found
	files []tree.File // by the file's index; one goroutine writes each
	bytes atomic.Int64
}

// Save stores the files that Scan found under dir, and makes them the root.
func Save(ctx context.Context, dir string, found []tree.Found, o Options) (root block.ID, p report.Phase, err error) {
	began := time.Now()
	top, err := os.OpenRoot(dir)
	if err != nil {
		return root, p, fmt.Errorf("archive: %w", err)
	}
	defer top.Close()
	crew, err := hire(ctx, o.Dial, o.Links)
	if err != nil {
		return root, p, fmt.Errorf("archive: %w", err)
	}
	s := &saver{crew: crew, opts: o, root: top, found: found, files: make([]tree.File, len(found))}
	err = crew.each(ctx, s.work)
	if err == nil {
		root, err = s.manifest(ctx, crew.links[0])
	}
	p = crew.phase("store", len(found), s.bytes.Load(), began)
	if err = errors.Join(err, crew.close()); err != nil {
		err = fmt.Errorf("archive: %w", err)
	}
	return root, p, err
}

// work stores files over one link until none is left.
func (s *saver) work(ctx context.Context, l *client.Link) error {
	l.OnDone = s.done
	sum := sha256.New()
	for {
		i, ok := s.crew.take(len(s.found))
		if !ok {
			return l.Drain()
		}
		if err := s.file(ctx, l, i, sum); err != nil {
			return fmt.Errorf("%s: %w", s.found[i].Path, err)
		}
	}
}

// file reads one file straight into registered memory, block by block.
func (s *saver) file(ctx context.Context, l *client.Link, i int, sum hash.Hash) error {
	f, err := s.root.Open(s.found[i].Path)
	if err != nil {
		return err
	}
	defer f.Close()
	file := &s.files[i]
	file.Path = s.found[i].Path
	sum.Reset()
	for {
		slot, err := l.Slot()
		if err != nil {
			return err
		}
		n, err := io.ReadFull(f, slot.Buf)
		if n > 0 {
			sum.Write(slot.Buf[:n])
			id := l.Put(ctx, slot, n, client.Ref{File: i, Block: len(file.Blocks)})
			file.Blocks = append(file.Blocks, id)
			file.Size += int64(n)
		}
		switch err {
		case nil:
		case io.EOF, io.ErrUnexpectedEOF:
			sum.Sum(file.Sum[:0])
			return nil
		default:
			return err
		}
	}
}

// done takes the server's answer for a block. It comes some blocks after the post, so
// the error names the file.
func (s *saver) done(slot *client.Slot) error {
	if slot.Err != nil {
		name := "the manifest"
		if slot.Ref.File >= 0 {
			name = s.files[slot.Ref.File].Path
		}
		return fmt.Errorf("%s: block %d: %w", name, slot.Ref.Block, slot.Err)
	}
	s.bytes.Add(int64(slot.N))
	s.opts.Progress.Add(slot.N)
	return nil
}

// manifest stores the manifest of the files, and sets the root.
func (s *saver) manifest(ctx context.Context, l *client.Link) (block.ID, error) {
	text, err := tree.AppendManifest(nil, s.files)
	if err != nil {
		return block.ID{}, err
	}
	root := tree.Root{Sum: sha256.Sum256(text)}
	size := l.Limits().Block
	if most := tree.MaxRootBlocks(size); len(text) > most*size {
		return block.ID{}, fmt.Errorf("the manifest of %d files has %d bytes; with blocks of %d there is room for %d",
			len(s.files), len(text), size, most*size)
	}
	for len(text) > 0 {
		n := min(len(text), size)
		id, err := s.put(ctx, l, text[:n], len(root.Blocks))
		if err != nil {
			return block.ID{}, err
		}
		root.Blocks = append(root.Blocks, id)
		text = text[n:]
	}
	id, err := s.put(ctx, l, root.Append(nil), len(root.Blocks))
	if err != nil {
		return block.ID{}, err
	}
	// All blocks are stored before the root names them.
	if err := l.Drain(); err != nil {
		return block.ID{}, err
	}
	return id, l.SetRoot(ctx, id)
}

// put stores one block of the manifest.
func (s *saver) put(ctx context.Context, l *client.Link, data []byte, number int) (block.ID, error) {
	slot, err := l.Slot()
	if err != nil {
		return block.ID{}, err
	}
	return l.Put(ctx, slot, copy(slot.Buf, data), client.Ref{File: -1, Block: number}), nil
}
