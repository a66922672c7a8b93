//go:build guest

package ibv

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// disturb starts a goroutine that signals all threads of the process, again and again,
// as Go's runtime does when it preempts them. end stops the goroutine.
func disturb(t *testing.T) (end func()) {
	t.Helper()
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-quit:
				return
			default:
				signalThreads(t)
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}

func signalThreads(t *testing.T) {
	t.Helper()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Error(err)
	}
	for _, thread := range threads {
		if tid, err := strconv.Atoi(thread.Name()); err == nil {
			_ = unix.Tgkill(os.Getpid(), tid, unix.SIGURG) // fails when the thread has ended
		}
	}
}

func TestSignalsDoNotDisturbAnAttemptToConnect(t *testing.T) {
	end := disturb(t)
	defer end()
	for range 8 {
		b := &bench{t: t}
		for i := range b.ends {
			b.ends[i] = b.open(tailed, nil)
		}
		b.connect(nil)
		b.close()
		require.False(t, t.Failed())
	}
}
