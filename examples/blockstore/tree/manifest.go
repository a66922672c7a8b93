package tree

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"godat/examples/blockstore/block"
)

// ErrMalformed is wrapped by the parsers' errors.
var ErrMalformed = errors.New("malformed manifest")

// File describes a stored file.
type File struct {
	Path   string // from the tree's top, with slashes
	Size   int64
	Sum    [sha256.Size]byte // SHA-256 of the whole file
	Blocks []block.ID        // none for an empty file
}

const (
	manifestMagic = "BSM1"
	rootMagic     = "BSR1"
	// fileFixed is the length of a file's entry without its path and blocks: the length
	// of the path, the size, the sum and the number of blocks.
	fileFixed = 2 + 8 + sha256.Size + 4
)

// AppendManifest appends the encoding of files to b. All numbers are big endian:
// "BSM1", the number of files (4 bytes), and for each file the length of its path (2),
// the path, the size (8), the sum (32), the number of blocks (4) and their IDs (32
// each).
func AppendManifest(b []byte, files []File) ([]byte, error) {
	b = append(b, manifestMagic...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(files)))
	for _, f := range files {
		if len(f.Path) == 0 || len(f.Path) > math.MaxUint16 {
			return nil, fmt.Errorf("tree: a path of %d bytes", len(f.Path))
		}
		b = binary.BigEndian.AppendUint16(b, uint16(len(f.Path)))
		b = append(b, f.Path...)
		b = binary.BigEndian.AppendUint64(b, uint64(f.Size))
		b = append(b, f.Sum[:]...)
		b = appendIDs(b, f.Blocks)
	}
	return b, nil
}

// ParseManifest reads the encoding that AppendManifest writes. It allocates no more
// than a small multiple of len(b), whatever b contains.
func ParseManifest(b []byte) ([]File, error) {
	count, b, err := header(b, manifestMagic)
	if err != nil {
		return nil, err
	}
	if uint64(count) > uint64(len(b)/fileFixed) {
		return nil, fmt.Errorf("%w: %d files in %d bytes", ErrMalformed, count, len(b))
	}
	files := make([]File, count)
	for i := range files {
		if b, err = files[i].parse(b); err != nil {
			return nil, fmt.Errorf("%w, file %d of %d", err, i, count)
		}
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("%w: %d bytes after the last file", ErrMalformed, len(b))
	}
	return files, nil
}

// parse reads one file and returns the rest of b.
func (f *File) parse(b []byte) ([]byte, error) {
	if len(b) < fileFixed {
		return nil, errCut
	}
	n := int(binary.BigEndian.Uint16(b))
	if n == 0 || len(b) < fileFixed+n {
		return nil, fmt.Errorf("%w: a path of %d bytes", ErrMalformed, n)
	}
	f.Path = string(b[2 : 2+n])
	b = b[2+n:]
	size := binary.BigEndian.Uint64(b)
	if size > math.MaxInt64 {
		return nil, fmt.Errorf("%w: a size of %d", ErrMalformed, size)
	}
	f.Size = int64(size)
	f.Sum = [sha256.Size]byte(b[8:])
	var err error
	f.Blocks, b, err = parseIDs(b[8+sha256.Size:])
	if err == nil && (f.Size == 0) != (len(f.Blocks) == 0) {
		err = fmt.Errorf("%w: %d bytes in %d blocks", ErrMalformed, f.Size, len(f.Blocks))
	}
	return b, err
}

// Root names the blocks of the manifest.
type Root struct {
	Sum    [sha256.Size]byte // of the manifest
	Blocks []block.ID
}

// rootFixed is the length of a root without its blocks' IDs.
const rootFixed = len(rootMagic) + 4 + sha256.Size + 4

// MaxRootBlocks is how many blocks a manifest may have so that its root fits into one
// block.
func MaxRootBlocks(blockSize int) int { return (blockSize - rootFixed) / len(block.ID{}) }

// Append appends the encoding to b: "BSR1", 4 zero bytes, the sum (32), the
// number of blocks (4) and their IDs (32 each).
func (r Root) Append(b []byte) []byte {
	b = append(b, rootMagic...)
	b = append(b, 0, 0, 0, 0)
	b = append(b, r.Sum[:]...)
	return appendIDs(b, r.Blocks)
}

// ParseRoot reads the encoding that Append writes.
func ParseRoot(b []byte) (Root, error) {
	zero, b, err := header(b, rootMagic)
	switch {
	case err != nil:
		return Root{}, err
	case zero != 0 || len(b) < sha256.Size:
		return Root{}, errCut
	}
	r := Root{Sum: [sha256.Size]byte(b)}
	r.Blocks, b, err = parseIDs(b[sha256.Size:])
	switch {
	case err != nil:
		return Root{}, err
	case len(b) > 0 || len(r.Blocks) == 0:
		return Root{}, fmt.Errorf("%w: a root of %d blocks with %d bytes after them", ErrMalformed, len(r.Blocks), len(b))
	}
	return r, nil
}

var errCut = fmt.Errorf("%w: cut short", ErrMalformed)

// header reads a magic word and the number that follows it.
func header(b []byte, magic string) (uint32, []byte, error) {
	if len(b) < len(magic)+4 || string(b[:len(magic)]) != magic {
		return 0, nil, fmt.Errorf("%w: it does not begin with %s", ErrMalformed, magic)
	}
	b = b[len(magic):]
	return binary.BigEndian.Uint32(b), b[4:], nil
}

func appendIDs(b []byte, ids []block.ID) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(ids)))
	for _, id := range ids {
		b = append(b, id[:]...)
	}
	return b
}

func parseIDs(b []byte) ([]block.ID, []byte, error) {
	if len(b) < 4 {
		return nil, nil, errCut
	}
	n := int64(binary.BigEndian.Uint32(b))
	b = b[4:]
	if n > int64(len(b)/len(block.ID{})) {
		return nil, nil, errCut
	}
	if n == 0 {
		return nil, b, nil
	}
	ids := make([]block.ID, n)
	for i := range ids {
		ids[i] = block.ID(b)
		b = b[len(ids[i]):]
	}
	return ids, b, nil
}
