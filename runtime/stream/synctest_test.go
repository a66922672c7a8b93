package stream

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDeadlinesPassWhenTheClockSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "loop", Config{})
		client, _ := r.pair()
		for what, c := range map[string]struct {
			set  func(time.Time) error
			call func() error
		}{
			"Read": {client.SetReadDeadline, func() error {
				_, err := client.Read(make([]byte, 1))
				return err
			}},
			"Write": {client.SetWriteDeadline, func() error {
				_, err := client.Write(make([]byte, 2*defaultRing))
				return err
			}},
		} {
			begin := time.Now()
			require.NoError(t, c.set(begin.Add(time.Hour)))
			outcome := write(c.call)
			synctest.Wait()
			require.NoError(t, c.set(begin.Add(time.Minute)), "while it waits")
			require.ErrorIs(t, <-outcome, os.ErrDeadlineExceeded, what)
			assert.Equal(t, time.Minute, time.Since(begin), what)
			require.ErrorIs(t, c.call(), os.ErrDeadlineExceeded, what)
			assert.Equal(t, time.Minute, time.Since(begin), "%s, at once", what)
		}
	})
}
