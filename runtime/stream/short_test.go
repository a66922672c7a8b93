package stream

import (
	"bytes"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// A short Write takes no turn behind others if it need not wait, but it never comes into
// the middle of a long one.
func TestAShortWriteKeepsOutOfALongOne(t *testing.T) {
	const long, turns = 8 * leastRing, 200
	onEachWith(t, Config{Ring: leastRing}, func(t *testing.T, r *rig) {
		client, server := r.pair()
		done, over := make(chan error, 2), make(chan struct{})
		go func() {
			p := bytes.Repeat([]byte{'l'}, long)
			var err error
			for n := 0; n < turns && err == nil; n++ {
				_, err = client.Write(p)
			}
			close(over)
			done <- err
		}()
		go func() {
			for {
				select {
				case <-over:
					done <- nil
					return
				default:
				}
				if _, err := client.Write([]byte("s")); err != nil {
					done <- err
					return
				}
			}
		}()
		read := make(chan []byte)
		go func() {
			got, _ := io.ReadAll(server)
			read <- got
		}()
		for range cap(done) {
			require.NoError(t, <-done)
		}
		require.NoError(t, client.CloseWrite())
		for _, run := range bytes.Split(<-read, []byte("s")) {
			require.Zero(t, len(run)%long, "a short Write in the middle of a long one")
		}
	})
}

// A Read that yields before it has its turn most often waits in no other way.
func TestAReadNoticesThatTheProgramHasMoreProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	client, _ := newRig(t, "loop", Config{}).pair()
	client.line.reader.alone.Store(true)
	for range 64 {
		client.lockReading(true, false)
		client.endRead()
	}
	require.False(t, client.line.reader.alone.Load())
}
