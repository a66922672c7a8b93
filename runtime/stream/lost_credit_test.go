package stream

import (
	"bytes"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A report may take the credit of bytes that lie in the image already. The image stays until
// they are sent.
func TestBytesWhoseCreditAReportTookAreSent(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		client, server := r.pair()
		const warm = 64 // writes, in which the peer's ring grows
		want := bytes.Repeat([]byte("0123456789abcdef"), 40)
		read := make(chan []byte, 1)
		go func() {
			got := make([]byte, (warm+1)*len(want))
			n, err := io.ReadFull(server, got)
			assert.NoError(t, err)
			read <- got[:n]
		}()
		for range warm {
			_, err := client.Write(want)
			require.NoError(t, err)
		}
		f := &client.line.flow
		for f.out.imageRoom() < len(f.out.image.mem) {
			runtime.Gosched() // until no send uses the image
		}
		require.Greater(t, int(f.out.peer.Len), len(f.out.image.mem), "the image may grow")

		client.beginWrite() // as writeCopied, with a report between the copy and the send
		room, err := client.room(len(want))
		require.NoError(t, err)
		require.Equal(t, len(want), room)
		b := f.place(room)
		copy(b, want)
		f.out.cramped = true // so the image is too small for a write that is staged now
		granted := f.out.granted.Load()
		f.out.granted.Store(f.out.sent.Load() + reportCredit)
		go func() { // the credit comes when the write waits for it
			for client.line.writer.waiting.Load() == 0 {
				runtime.Gosched()
			}
			f.out.granted.Store(granted)
			client.line.writer.notify()
		}()
		_, err = client.send(b)
		client.endWrite()
		require.NoError(t, err)
		assert.Equal(t, bytes.Repeat(want, warm+1), <-read)
	})
}
