package rpc

import (
	"bytes"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	dat "godat/runtime"
)

// readOnly maps a file of n bytes for reading alone.
func readOnly(t *testing.T, n, flags int) (pages, body []byte) {
	f, body := opened(t, n, os.O_RDONLY)
	pages, err := syscall.Mmap(int(f.Fd()), 0, n, syscall.PROT_READ, flags)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(pages)) })
	return pages, body
}

func TestMemoryThatIsMappedReadOnlyIsASourceAndNoSink(t *testing.T) {
	for name, flags := range mappings {
		for _, n := range []int{9, 3 << 20} {
			pages, body := readOnly(t, n, flags)
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				onEach(t, func(t *testing.T, ia *dat.IA) {
					var runs atomic.Int32
					s := serve(t, ia, Config{}, 1, func(r *Request) {
						runs.Add(1)
						got, err := r.ReadAll()
						assert.NoError(t, err)
						assert.True(t, bytes.Equal(body, got))
						assert.NoError(t, r.WriteBytes(pages, 0))
						_ = r.Reply(nil)
					})
					c := dial(t, ia, s, Config{})
					sink := make([]byte, n)
					_, err := c.Call(within(t), Call{SourceBytes: pages, SinkBytes: sink}, nil)
					require.NoError(t, err)
					assert.True(t, bytes.Equal(body, sink))
					_, err = c.Call(within(t), Call{SourceBytes: pages, SinkBytes: pages}, nil)
					require.ErrorIs(t, err, hw.ErrInvalidParameter)
					require.ErrorIs(t, err, syscall.EFAULT)
					assert.EqualValues(t, 1, runs.Load())
				})
			})
		}
	}
}
