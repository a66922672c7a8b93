package hw

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestACauseSaysLayerCodeSideAndAddresses(t *testing.T) {
	local := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 40000}
	remote := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 4444}
	for _, c := range []struct {
		cause Cause
		want  string
	}{
		{
			Cause{Layer: LayerDDP, Code: 0x1202, Text: "no buffer available", Found: SidePeer, Local: local, Remote: remote},
			"DDP: no buffer available (0x1202), found by the peer (10.0.0.1:40000 to 10.0.0.2:4444); " + adviseReceives,
		},
		{
			Cause{Layer: LayerTCP, Code: 111, Text: "dial: connection refused", Err: errors.New("connection refused"), Remote: remote},
			"TCP: dial: connection refused (111), found here (to 10.0.0.2:4444)",
		},
		{Cause{Err: StatusReceiverNotReady.Err()}, "DAT: godat: completion: ERR_RECEIVER_NOT_READY, found here"},
	} {
		assert.Equal(t, c.want, c.cause.Error())
	}
}

func TestACauseUnwrapsToTheErrorBelow(t *testing.T) {
	c := &Cause{Layer: LayerTCP, Err: syscall.ECONNRESET}
	assert.ErrorIs(t, c, syscall.ECONNRESET)
	assert.Nil(t, errors.Unwrap(&Cause{}))
}

func TestACauseIsCompletedAndNotChanged(t *testing.T) {
	local, remote := &net.TCPAddr{Port: 1}, &net.TCPAddr{Port: 2}
	c := &Cause{Local: local}
	full := c.Between(remote, remote)
	assert.Equal(t, &Cause{Local: local, Remote: remote}, full)
	assert.Nil(t, c.Remote)
	assert.Same(t, full, full.Between(local, local))
	assert.Nil(t, (*Cause)(nil).Between(local, remote))
}

func TestACauseShowsPrivateDataThatIsAText(t *testing.T) {
	for private, want := range map[string]string{
		"full; ask 10.0.0.7": `DAT: rejected: "full; ask 10.0.0.7", found by the peer`,
		"":                   "DAT: rejected, found by the peer",
		"\x00\x01":           "DAT: rejected, found by the peer",
		"full\xff":           "DAT: rejected, found by the peer",
	} {
		c := &Cause{Text: "rejected", Found: SidePeer, Private: []byte(private)}
		assert.Equal(t, want, c.Error())
	}
}
