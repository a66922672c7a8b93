package stream

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

func TestASnapshotSaysWhatAStreamCarriesAndWhatNobodyHasRead(t *testing.T) {
	for _, provider := range []string{"loop", "iwarp"} {
		t.Run(provider, func(t *testing.T) {
			r := newRig(t, provider, Config{})
			client, server := r.pair()
			_, err := client.Write(make([]byte, 100))
			require.NoError(t, err)
			buf := make([]byte, 40)
			_, err = server.Read(buf)
			require.NoError(t, err)
			s := server.Snapshot()
			assert.EqualValues(t, 40, s.Read)
			assert.EqualValues(t, 60, s.Unread)
			s = client.Snapshot()
			assert.EqualValues(t, 100, s.Written)
			assert.Positive(t, s.UnreadByPeer)
			assert.Positive(t, s.Credits)
			assert.Empty(t, s.Ended)
			all, err := r.ia.Snapshot()
			require.NoError(t, err)
			require.NotEmpty(t, all.Endpoints)
			for _, e := range all.Endpoints {
				assert.IsType(t, Snapshot{}, e.Owner, "%v", e)
			}
			assert.Empty(t, all.Conns)
		})
	}
}

var _ dat.Describer = (*line)(nil)

func TestAHandleOfThisPackageNamesItselfInALog(t *testing.T) {
	r := newRig(t, "loop", Config{})
	client, _ := r.pair()
	assert.Equal(t, fmt.Sprintf("[local=%v remote=%v]", client.LocalAddr(), client.RemoteAddr()), client.LogValue().String())
	require.NoError(t, client.Close())
	assert.Contains(t, client.LogValue().String(), client.RemoteAddr().String(), "also when it is closed")
	assert.Equal(t, fmt.Sprintf("Conn(%v to %v)", client.LocalAddr(), client.RemoteAddr()), client.String())
	client = nil
	assert.Equal(t, "Conn(nil)", client.LogValue().String())
	l := r.ln
	assert.Equal(t, fmt.Sprintf("Listener(%v)", l.Addr()), l.LogValue().String())
	l = nil
	assert.Equal(t, "Listener(nil)", l.LogValue().String())
}

func TestASnapshotTellsForHowLongNobodyHasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "loop", Config{})
		client, server := r.pair()
		ages := func() (here, byPeer time.Duration) {
			return server.Snapshot().UnreadAge, client.Snapshot().UnreadByPeerAge
		}
		_, err := client.Write(make([]byte, 100))
		require.NoError(t, err)
		synctest.Wait()
		here, byPeer := ages()
		assert.Zero(t, here, "nobody has looked before")
		assert.Zero(t, byPeer)
		time.Sleep(time.Minute)
		here, byPeer = ages()
		assert.Equal(t, time.Minute, here)
		assert.Equal(t, time.Minute, byPeer)
		assert.Equal(t, "this program has read nothing for 1 min 00 s; 100 octets lie unread here", server.Snapshot().Trouble(time.Second))
		assert.Empty(t, client.Snapshot().Trouble(time.Second), "no call waits, and the peer may not have told yet what it has read")
		_, err = server.Read(make([]byte, 40))
		require.NoError(t, err)
		here, _ = ages()
		assert.Zero(t, here, "another octet is the first")
	})
}
