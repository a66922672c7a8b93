package inspect

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

// sums are those of the page.
func (r *rig) sums() map[string]sum {
	r.t.Helper()
	var said struct{ Sums []sum }
	require.NoError(r.t, json.Unmarshal(r.get("?format=json").Body.Bytes(), &said))
	all := make(map[string]sum)
	for _, s := range said.Sums {
		all[s.Name] = s
	}
	return all
}

func TestSumsHaveARateAndForgetNothingThatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, dat.ConnConfig{Message: 1000})
		const moved = "octets that they moved"
		assert.Zero(t, r.sums()[moved].PerSecond, "a first look")
		for round := range 5 {
			client, server := r.join()
			for range 10 {
				require.NoError(t, client.SendBytes(make([]byte, 1000)))
				server.Release(server.Message(<-r.ln.Events()))
			}
			require.NoError(t, client.Close())
			require.NoError(t, server.Close())
			synctest.Wait()
			for len(r.ln.Events()) > 0 {
				require.True(t, (<-r.ln.Events()).Ended())
			}
			time.Sleep(2 * time.Second)
			all := r.sums()
			assert.EqualValues(t, 10000*(round+1), all[moved].Sum)
			assert.InDelta(t, 5000, all[moved].PerSecond, 1)
			assert.EqualValues(t, 10*(round+1), all["receives that succeeded"].Sum)
			assert.EqualValues(t, 2*(round+1), all["connections that were established"].Sum)
			assert.Contains(t, r.get("").Body.String(), "4.88 KiB a second in the last 2 s")
		}
		time.Sleep(time.Minute)
		assert.Zero(t, r.sums()[moved].PerSecond, "a look long after the one before is a first look")
		require.NoError(t, r.ln.Close())
	})
}
