package rpc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	dat "godat/runtime"
)

// opened is a file of n bytes, open in a mode.
func opened(t testing.TB, n, mode int) (f *os.File, body []byte) {
	t.Helper()
	body = make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(body)
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, body, 0o600))
	f, err := os.OpenFile(path, mode, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() }) // which a test may have closed
	return f, body
}

// moved is what a handler got.
type moved struct {
	n   int
	err error
}

// filing serves a file: method 0 writes it to the caller, and others read it from there, from the
// offset on that the payload says.
func filing(t *testing.T, ia *dat.IA, f *os.File) (c *Client, did chan moved) {
	did = make(chan moved, 1)
	s := serve(t, ia, Config{}, 1, func(r *Request) {
		var offset int64
		var m moved
		_, err := fmt.Sscan(string(r.Payload()), &offset)
		assert.NoError(t, err)
		if r.Method() == 0 {
			m.n, m.err = r.WriteFile(f, offset)
		} else {
			m.n, m.err = r.ReadFile(f, offset)
		}
		did <- m
		_ = r.Reply(nil)
	})
	return dial(t, ia, s, Config{}), did
}

func TestAPartOfAFileGoesIntoTheCallersMemory(t *testing.T) {
	const size = filePiece + 5000
	f, body := opened(t, size, os.O_RDONLY)
	onEach(t, func(t *testing.T, ia *dat.IA) {
		c, did := filing(t, ia, f)
		for _, part := range [][2]int{{0, size}, {0, size + 1}, {0, 0}, {1, 1}, {4095, 4098}, {size - 1, 9}, {size, 9}, {size + 9000, 9}, {1, size}} {
			sink, written := bytes.Repeat([]byte{'#'}, part[1]), 0
			_, err := c.Call(within(t), Call{Payload: fmt.Append(nil, part[0]), SinkBytes: sink, Written: &written}, nil)
			require.NoError(t, err)
			m := <-did
			require.NoError(t, m.err)
			from := min(part[0], size)
			want := body[from:min(from+part[1], size)]
			assert.Equal(t, len(want), m.n)
			assert.Equal(t, len(want), written)
			require.True(t, bytes.Equal(want, sink[:m.n]), part)
			require.Equal(t, bytes.Repeat([]byte{'#'}, part[1]-m.n), sink[m.n:])
		}
	})
}

func TestTheCallersMemoryGoesIntoAFile(t *testing.T) {
	for name, mode := range map[string]int{"open for both": os.O_RDWR, "open for writing": os.O_WRONLY} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, ia *dat.IA) {
				f, want := opened(t, 10, mode)
				c, did := filing(t, ia, f)
				for i, part := range [][2]int{{0, 0}, {3, 4}, {10, 1}, {4097, 5000}, {5, filePiece + 7}} {
					source := bytes.Repeat([]byte{byte('a' + i)}, part[1])
					_, err := c.Call(within(t), Call{Method: 1, Payload: fmt.Append(nil, part[0]), SourceBytes: source}, nil)
					require.NoError(t, err)
					m := <-did
					require.NoError(t, m.err)
					assert.Equal(t, part[1], m.n)
					if end := part[0] + part[1]; end > len(want) {
						want = append(want, make([]byte, end-len(want))...)
					}
					copy(want[part[0]:], source)
					got, err := os.ReadFile(f.Name())
					require.NoError(t, err)
					require.True(t, bytes.Equal(want, got), part)
				}
			})
		})
	}
}

func TestAFileThatIsNoneMovesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		f, body := opened(t, 10, os.O_RDWR)
		c, did := filing(t, ia, f)
		call := func(method uint16, offset int64) error {
			_, err := c.Call(within(t), Call{Method: method, Payload: fmt.Append(nil, offset), SourceBytes: []byte("x"), SinkBytes: make([]byte, 1)}, nil)
			require.NoError(t, err)
			m := <-did
			require.Zero(t, m.n)
			return m.err
		}
		for method := range uint16(2) {
			require.ErrorIs(t, call(method, -1), hw.ErrLength)
		}
		require.ErrorIs(t, call(1, math.MaxInt64), hw.ErrLength)
		got, err := os.ReadFile(f.Name())
		require.NoError(t, err)
		assert.Equal(t, body, got)
		require.NoError(t, f.Truncate(0))
		require.NoError(t, call(0, 0))
		closed, _ := opened(t, 1, os.O_RDWR)
		require.NoError(t, closed.Close())
		c, did = filing(t, ia, closed)
		for method := range uint16(2) {
			require.ErrorIs(t, call(method, 0), os.ErrClosed)
		}
	})
}

// shrinking is a file that another program cuts when its first part has been read.
type shrinking struct{ *os.File }

func (s shrinking) ReadAt(b []byte, offset int64) (n int, err error) {
	n, err = s.File.ReadAt(b, offset)
	if offset == 0 {
		err = errors.Join(err, s.Truncate(filePiece+5))
	}
	return n, err
}

// full is a file on a disk that has no room for its second part.
type full struct{ *os.File }

func (f full) WriteAt(b []byte, offset int64) (n int, err error) {
	if offset == 0 {
		return f.File.WriteAt(b, offset)
	}
	n, _ = f.File.WriteAt(b[:3], offset)
	return n, syscall.ENOSPC
}

func TestAFileThatFailsHalfwayIsAnErrorOfThatRequest(t *testing.T) {
	const size = 3 * filePiece
	onEach(t, func(t *testing.T, ia *dat.IA) {
		f, body := opened(t, size, os.O_RDWR)
		did := make(chan moved, 1)
		s := serve(t, ia, Config{}, 1, func(r *Request) {
			var m moved
			if r.Method() == 0 {
				m.n, m.err = r.moveFile(hw.OpWrite, shrinking{f}, 0, size)
			} else {
				m.n, m.err = r.moveFile(hw.OpRead, full{f}, 0, size)
			}
			did <- m
			_ = r.Reply(nil)
		})
		c := dial(t, ia, s, Config{})
		sink, written := make([]byte, size), 0
		_, err := c.Call(within(t), Call{SinkBytes: sink, Written: &written}, nil)
		require.NoError(t, err)
		assert.Equal(t, moved{filePiece, io.ErrUnexpectedEOF}, <-did)
		assert.Equal(t, filePiece, written)
		require.True(t, bytes.Equal(body[:filePiece], sink[:filePiece]))
		require.True(t, bytes.Equal(make([]byte, size-filePiece), sink[filePiece:]))

		source := bytes.Repeat([]byte("s"), size)
		_, err = c.Call(within(t), Call{Method: 1, SourceBytes: source}, nil)
		require.NoError(t, err)
		assert.Equal(t, moved{filePiece + 3, syscall.ENOSPC}, <-did)
		got, err := os.ReadFile(f.Name())
		require.NoError(t, err)
		require.True(t, bytes.Equal(append(source[:filePiece+3], body[filePiece+3:filePiece+5]...), got))
	})
}
