package runtime

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// showMemory is a Setup that tells the peer where the connection's memory is.
func showMemory(size int) func(*Conn) ([]byte, error) {
	return func(c *Conn) ([]byte, error) {
		l, err := c.Alloc(size, AllPrivileges)
		if err != nil {
			return nil, err
		}
		c.Context = l
		return l.Remote(0, size).MarshalBinary()
	}
}

func TestBothEndsReachTheMemoryThatTheOtherShowed(t *testing.T) {
	const size = 64
	onEach(t, func(t *testing.T, ia *IA) {
		l := listen(t, ia, ConnConfig{Setup: showMemory(size)})
		accepted := make(chan *Conn, 1)
		go func() {
			c, err := l.Accept(RequestOf(<-l.Requests()), []byte("Setup says something else"))
			assert.NoError(t, err)
			accepted <- c
		}()
		client := dial(t, ia, l, ConnConfig{Setup: showMemory(size), Private: []byte("the same")})
		server := <-accepted
		require.Equal(t, Established, event(t, l.Events()).Number)
		for _, x := range []struct{ from, to *Conn }{{client, server}, {server, client}} {
			mine, theirs := x.from.Context.(*LMR), x.to.Context.(*LMR)
			copy(mine.Bytes(), "from "+x.from.String())
			remote, err := ParseRemoteSegment(x.from.Private())
			require.NoError(t, err)
			require.Equal(t, theirs.Remote(0, size), remote)
			require.NoError(t, x.from.Endpoint.PostRDMAWrite(1, Default, remote, mine.Segment(0, size)))
			require.NoError(t, event(t, x.from.Events()).Err())
			clear(mine.Bytes())
			require.NoError(t, x.from.Endpoint.PostRDMARead(2, Default, remote, mine.Segment(0, size)))
			require.NoError(t, event(t, x.from.Events()).Err())
			assert.Contains(t, string(mine.Bytes()), "from "+x.from.String())
		}
		require.NoError(t, client.Close())
		require.NoError(t, l.Close())
	})
}

func TestMemoryIsForConnectionsThatAreOpen(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		var none *Conn
		_, err := none.Alloc(1, AllPrivileges)
		requireCode(t, err, hw.InvalidHandle, hw.HandleEP)
		l := listen(t, ia, ConnConfig{Setup: func(c *Conn) ([]byte, error) {
			_, err := c.Alloc(0, AllPrivileges)
			requireCode(t, err, hw.LengthError, hw.NoSubtype)
			freed, err := c.Alloc(8, AllPrivileges)
			require.NoError(t, err)
			require.NoError(t, freed.Free())
			return nil, c.Close()
		}})
		c, err := l.Dial(l.Addr(), nil)
		require.ErrorIs(t, err, hw.ErrInvalidHandle)
		require.Nil(t, c)
		require.NoError(t, l.Close())
	})
}
