package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"godat/examples/blockstore/block"
)

var (
	// ErrNotFound says that a block, or the root, is not in the store.
	ErrNotFound = errors.New("not in the store")
	// ErrDamaged says that the store's file is not as it was written.
	ErrDamaged = errors.New("the store is damaged")
)

var (
	indexBucket = []byte("index")
	dataBucket  = []byte("data")
	metaBucket  = []byte("meta")
	rootKey     = []byte("root")
)

// Store is an open store. Its methods may be called from any goroutine.
type Store struct {
	db   *bbolt.DB
	path string
}

// Mode says for what a store is opened.
type Mode int

// The modes.
const (
	ReadWrite Mode = iota // Open makes the file if it does not exist
	ReadOnly
)

// Open opens the store at path.
func Open(path string, mode Mode) (s *Store, err error) {
	if mode == ReadWrite {
		err = create(path)
	}
	if err == nil {
		err = guarded(func() error {
			s, err = open(path, mode)
			return err
		})
	}
	var system *fs.PathError
	var number syscall.Errno
	switch {
	case err == nil:
		return s, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("store: %s is in use by another process", path)
	case errors.As(err, &system), errors.As(err, &number), errors.Is(err, ErrDamaged):
	default: // what bbolt found in the file
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil, fmt.Errorf("store: %s: %w", path, err)
}

// open opens the store at path, which exists. A file that is shorter than it should be is
// looked at before it is opened to write: bbolt would read beyond its end then, and keep the
// file's lock when that fails.
func open(path string, mode Mode) (*Store, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 && mode == ReadOnly {
		return nil, fmt.Errorf("%w: it is empty", ErrDamaged)
	}
	if info.Size() != 0 {
		db, err := openDB(path, ReadOnly)
		if err != nil {
			return nil, err
		}
		if mode == ReadOnly {
			return &Store{db: db, path: path}, nil
		}
		if err := db.Close(); err != nil {
			return nil, err
		}
	}
	db, err := openDB(path, mode)
	if err != nil {
		return nil, err
	}
	db.AllocSize = 4 << 20 // the file grows in such steps
	if err := db.Update(makeBuckets); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Store{db: db, path: path}, nil
}

// openDB opens a database that has all of its pages.
func openDB(path string, mode Mode) (*bbolt.DB, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{
		ReadOnly:     mode == ReadOnly,
		Timeout:      2 * time.Second, // for the file's lock
		FreelistType: bbolt.FreelistMapType,
	})
	if err != nil {
		return nil, err
	}
	err = db.View(func(tx *bbolt.Tx) error {
		info, err := os.Stat(path)
		if err == nil && info.Size() < tx.Size() {
			err = fmt.Errorf("%w: the file has %d bytes of %d", ErrDamaged, info.Size(), tx.Size())
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func makeBuckets(tx *bbolt.Tx) error {
	for _, name := range [][]byte{indexBucket, dataBucket, metaBucket} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	return nil
}

// Path is the path of the store's file.
func (s *Store) Path() string { return s.path }

// Block is a block for Put.
type Block struct {
	ID   block.ID
	Data []byte
}

// Put stores blocks, and skips those that the store has already. When it returns nil
// they are on disk; otherwise it has stored none of them.
func (s *Store) Put(blocks []Block) error {
	return s.update(func(tx *bbolt.Tx) error {
		index, data := tx.Bucket(indexBucket), tx.Bucket(dataBucket)
		data.FillPercent = 1 // keys are only appended
		for _, b := range blocks {
			if err := put(index, data, b); err != nil {
				return err
			}
		}
		return nil
	})
}

func put(index, data *bbolt.Bucket, b Block) error {
	if index.Get(b.ID[:]) != nil {
		return nil
	}
	n, err := data.NextSequence()
	if err != nil {
		return err
	}
	number := binary.BigEndian.AppendUint64(nil, n)
	if err := index.Put(b.ID[:], number); err != nil {
		return err
	}
	return data.Put(number, b.Data)
}

// Get copies a block into dst and returns its length.
func (s *Store) Get(id block.ID, dst []byte) (n int, err error) {
	err = s.view(func(index, data, _ *bbolt.Bucket) error {
		number := index.Get(id[:])
		if number == nil {
			return ErrNotFound
		}
		b := data.Get(number)
		if len(b) == 0 || len(b) > len(dst) {
			return fmt.Errorf("%w: block %v has %d bytes", ErrDamaged, id, len(b))
		}
		n = copy(dst, b)
		return nil
	})
	return n, err
}

// SetRoot makes id the root, the block that a reader begins with.
func (s *Store) SetRoot(id block.ID) error {
	return s.update(func(tx *bbolt.Tx) error {
		return tx.Bucket(metaBucket).Put(rootKey, id[:])
	})
}

// Root is the root that was set last.
func (s *Store) Root() (id block.ID, err error) {
	err = s.view(func(_, _, meta *bbolt.Bucket) error {
		b := meta.Get(rootKey)
		switch len(b) {
		case 0:
			return ErrNotFound
		case len(id):
			id = block.ID(b)
			return nil
		}
		return fmt.Errorf("%w: the root has %d bytes", ErrDamaged, len(b))
	})
	return id, err
}

// view and update run a transaction.
func (s *Store) view(read func(index, data, meta *bbolt.Bucket) error) error {
	return guarded(func() error {
		return s.db.View(func(tx *bbolt.Tx) error {
			index, data, meta := tx.Bucket(indexBucket), tx.Bucket(dataBucket), tx.Bucket(metaBucket)
			if index == nil || data == nil || meta == nil {
				return fmt.Errorf("%w: %s is not a block store", ErrDamaged, s.path)
			}
			return read(index, data, meta)
		})
	})
}

func (s *Store) update(write func(*bbolt.Tx) error) error {
	return guarded(func() error { return s.db.Update(write) })
}

// guarded runs f, and turns what bbolt does on a damaged file into an error: a panic,
// or a fault from a wrong offset outside of its mapping.
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, r)
			if _, fault := r.(runtime.Error); fault {
				err = fmt.Errorf("%w: a page of it leads nowhere", ErrDamaged)
			}
		}
	}()
	return f()
}

// Close closes the file.
func (s *Store) Close() error { return s.db.Close() }

// Remove deletes the file of a closed store.
func (s *Store) Remove() error {
	err := os.Remove(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
