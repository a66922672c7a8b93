//go:build linux && cgo

package ibv

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

func TestTheEndOfADeviceWaitsForAnAnswerThatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &device{}
		r, late := &request{conn: &conn{dev: d}}, &request{conn: &conn{dev: d}}
		require.NoError(t, r.answer("op"))
		require.ErrorIs(t, r.answer("op"), hw.ErrInvalidHandle)
		d.children = 1
		require.ErrorIs(t, d.end("op"), hw.ErrInvalidState, "and waits for nothing")
		d.children = 0
		ended := false
		go func() {
			assert.NoError(t, d.end("op"))
			ended = true
		}()
		synctest.Wait()
		require.False(t, ended, "the answer uses an identifier of the device's")
		require.ErrorIs(t, late.answer("op"), hw.ErrInvalidHandle, "the device answers it")
		d.answers.Done()
		synctest.Wait()
		assert.True(t, ended)
		require.ErrorIs(t, d.end("op"), hw.ErrInvalidHandle)
	})
}
