package stream

import (
	"bytes"
	"io"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A report may take the credit of bytes that lie in the image already. The image stays until
// they are sent.
func TestBytesWhoseCreditAReportTookAreSent(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		client, server := r.pair()
		grown(t, client, server)
		want := bytes.Repeat([]byte("0123456789abcdef"), 40)
		read := make(chan []byte, 1)
		go func() {
			got, err := io.ReadAll(server)
			assert.NoError(t, err)
			read <- got
		}()
		f := &client.line.flow
		writes := 1
		suits := func() bool { // the image may grow, and has room for a write in one piece
			size := len(f.out.image.mem)
			return size > 0 && int(f.out.peer.Len) > size && size-int(f.out.produced.Load())&(size-1) >= len(want)
		}
		for ; !suits(); writes++ {
			_, err := client.Write(want)
			require.NoError(t, err)
		}
		for f.out.imageRoom() < len(f.out.image.mem) {
			runtime.Gosched() // until no send uses the image
		}

		client.beginWrite() // as writeCopied, with a report between the copy and the send
		room, err := client.room(len(want))
		require.NoError(t, err)
		require.Equal(t, len(want), room)
		b := f.place(room)
		copy(b, want)
		f.out.cramped = true // so the image is too small for a write that is staged now
		granted, none := f.out.granted.Load(), f.out.sent.Load()+reportCredit
		f.out.granted.Store(none)
		sent := make(chan struct{})
		var granting sync.WaitGroup
		granting.Go(func() { // the credit comes when the write waits for it
			for client.line.writer.waiting.Load() == 0 && !isClosed(sent) {
				runtime.Gosched()
			}
			f.out.granted.CompareAndSwap(none, granted) // unless the server has granted it
			client.line.writer.notify()
		})
		_, err = client.send(b)
		client.endWrite()
		close(sent)
		granting.Wait()
		require.NoError(t, err)
		require.NoError(t, client.CloseWrite())
		assert.Equal(t, bytes.Repeat(want, writes), <-read)
	})
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
