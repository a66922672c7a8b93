package archive

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"godat/examples/blockstore/block"
	"godat/examples/blockstore/client"
	"godat/examples/blockstore/report"
	"godat/examples/blockstore/tree"
)

// ErrDamaged is what the error of a Check matches that found a file not as it was
// stored.
var ErrDamaged = errors.New("not as it was stored")

// Damage says what is wrong with a file.
type Damage struct {
	File string
	Err  error
}

// DamageError is the error of a Check that found damaged files.
type DamageError struct {
	Files   []Damage // in the order of the manifest
	Checked int
}

// mostNamed is how many files an error's text names.
const mostNamed = 20

func (e *DamageError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "files that are not as they were stored, %d of %d:", len(e.Files), e.Checked)
	for i, f := range e.Files {
		if i == mostNamed {
			fmt.Fprintf(&b, "\n  and %d more", len(e.Files)-i)
			break
		}
		fmt.Fprintf(&b, "\n  %s: %v", f.File, f.Err)
	}
	return b.String()
}

// Unwrap makes the error match ErrDamaged.
func (e *DamageError) Unwrap() error { return ErrDamaged }

// checker is one Check.
type checker struct {
	crew  *crew
	opts  Options
	files []tree.File
	bytes atomic.Int64

	mu     sync.Mutex
	damage map[int]error // by the file's index
}

// Check reads everything below the store's root into zeroed memory, and compares it
// with the sums of the original files. It goes on after a damaged file; a *DamageError
// names all of them. It calls start, which may be nil, with the sum of the files' sizes
// before it reads the first of them.
func Check(ctx context.Context, o Options, start func(total int64) *report.Progress) (root block.ID, p report.Phase, err error) {
	began := time.Now()
	crew, err := hire(ctx, o.Dial, o.Links)
	if err != nil {
		return root, p, fmt.Errorf("archive: %w", err)
	}
	c := &checker{crew: crew, opts: o, damage: make(map[int]error)}
	root, c.files, err = readManifest(ctx, crew.links[0])
	if err == nil {
		if start != nil {
			c.opts.Progress = start(totalSize(c.files))
		}
		err = crew.each(ctx, c.work)
	}
	p = crew.phase("read back", len(c.files), c.bytes.Load(), began)
	if err == nil {
		err = c.verdict()
	}
	if err = errors.Join(err, crew.close()); err != nil {
		err = fmt.Errorf("archive: %w", err)
	}
	return root, p, err
}

func totalSize(files []tree.File) (n int64) {
	for i := range files {
		n += files[i].Size
	}
	return n
}

// verdict returns the damage as an error, or nil.
func (c *checker) verdict() error {
	if len(c.damage) == 0 {
		return nil
	}
	e := &DamageError{Checked: len(c.files)}
	for i := range c.files {
		if err := c.damage[i]; err != nil {
			e.Files = append(e.Files, Damage{c.files[i].Path, err})
		}
	}
	return e
}

func (c *checker) found(file int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.damage[file] = err
}

// reader joins the blocks that come over one link. They come in order, file after file.
type reader struct {
	*checker
	sum hash.Hash
	bad error // what is wrong with the current file
}

// work reads files over one link until none is left.
func (c *checker) work(ctx context.Context, l *client.Link) error {
	r := &reader{checker: c, sum: sha256.New()}
	l.OnDone = r.done
	for {
		i, ok := c.crew.take(len(c.files))
		if !ok {
			return l.Drain()
		}
		if len(c.files[i].Blocks) == 0 && c.files[i].Sum != sha256.Sum256(nil) {
			c.found(i, errors.New("it is empty, and was not"))
		}
		for n, id := range c.files[i].Blocks {
			if err := get(ctx, l, id, client.Ref{File: i, Block: n}); err != nil {
				return fmt.Errorf("%s: %w", c.files[i].Path, err)
			}
		}
	}
}

// get asks for a block, into memory that it zeroes before.
func get(ctx context.Context, l *client.Link, id block.ID, ref client.Ref) error {
	slot, err := l.Slot()
	if err != nil {
		return err
	}
	clear(slot.Buf)
	l.Get(ctx, slot, id, ref)
	return nil
}

// done takes a block of a file.
func (r *reader) done(slot *client.Slot) error {
	file := &r.files[slot.Ref.File]
	if slot.Ref.Block == 0 {
		r.sum.Reset()
		r.bad = nil
	}
	data := slot.Buf[:slot.N]
	switch {
	case r.bad != nil: // the file is known to be damaged already
	case slot.Err != nil:
		r.bad = fmt.Errorf("block %d: %w", slot.Ref.Block, slot.Err)
	case block.IDOf(data) != slot.ID:
		r.bad = fmt.Errorf("block %d is %w", slot.Ref.Block, ErrDamaged)
	}
	r.sum.Write(data)
	r.bytes.Add(int64(len(data)))
	r.opts.Progress.Add(len(data))
	if slot.Ref.Block < len(file.Blocks)-1 {
		return nil
	}
	if r.bad == nil && [sha256.Size]byte(r.sum.Sum(nil)) != file.Sum {
		r.bad = errors.New("its SHA-256 is another")
	}
	if r.bad != nil {
		r.found(slot.Ref.File, r.bad)
	}
	return nil
}

// readManifest reads the root, and the manifest that it names.
func readManifest(ctx context.Context, l *client.Link) (block.ID, []tree.File, error) {
	id, err := l.Root(ctx)
	if err != nil {
		return id, nil, fmt.Errorf("the store's root: %w", err)
	}
	text, err := readBlocks(ctx, l, []block.ID{id})
	if err != nil {
		return id, nil, fmt.Errorf("the store's root: %w", err)
	}
	root, err := tree.ParseRoot(text)
	if err != nil {
		return id, nil, err
	}
	text, err = readBlocks(ctx, l, root.Blocks)
	if err != nil {
		return id, nil, fmt.Errorf("the manifest: %w", err)
	}
	if sha256.Sum256(text) != root.Sum {
		return id, nil, fmt.Errorf("the manifest is %w", ErrDamaged)
	}
	files, err := tree.ParseManifest(text)
	return id, files, err
}

// readBlocks reads blocks and joins them.
func readBlocks(ctx context.Context, l *client.Link, ids []block.ID) (text []byte, err error) {
	l.OnDone = func(s *client.Slot) error {
		data := s.Buf[:s.N]
		switch {
		case s.Err != nil:
			return s.Err
		case block.IDOf(data) != s.ID:
			return fmt.Errorf("block %d is %w", s.Ref.Block, ErrDamaged)
		}
		text = append(text, data...)
		return nil
	}
	for i, id := range ids {
		if err := get(ctx, l, id, client.Ref{Block: i}); err != nil {
			return nil, err
		}
	}
	err = l.Drain() // fills text
	return text, err
}
