package evd

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
)

// The queue has room for every post of a round, so an error that says that it is
// full is wrong.
func TestADispatcherThatIsAbortedUnderAPostIsNotFull(t *testing.T) {
	const rounds, posts = 500, 1000
	under := 0
	for range rounds {
		d, err := New(Config{QLen: posts, Streams: event.StreamSoftware})
		require.NoError(t, err)
		begun, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			err := d.PostSoftware(nil)
			close(begun)
			for n := 1; n < posts && err == nil; n++ {
				if n == posts-1 {
					runtime.Gosched() // lets the abort run, on one processor
				}
				err = d.PostSoftware(nil)
			}
			ended <- err
		}()
		<-begun
		d.inner.Abort()
		if err := <-ended; err != nil {
			require.ErrorIs(t, err, &hw.Error{Type: hw.InvalidHandle})
			under++
		}
	}
	assert.NotZero(t, under, "no post met the abort")
}
