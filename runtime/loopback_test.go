package runtime

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
)

// A program that listens on a loopback address runs on a network, and inside the process.
func TestLoopbackAddressesWorkOnANetworkAndInTheProcess(t *testing.T) {
	hosts := map[string][]string{
		"loop":       {"127.0.0.1", "127.0.0.7", "localhost", "LocalHost", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1", "loop"},
		"loop:other": {"127.0.0.1", "localhost", "other"},
		"iwarp":      {"127.0.0.1", "localhost"},
	}
	for name, hosts := range hosts {
		t.Run(name, func(t *testing.T) {
			ia := open(t, name)
			for _, host := range hosts {
				for _, address := range []string{host, net.JoinHostPort(host, "0")} {
					l, err := ia.Listen(within(t), address, ConnConfig{Debug: true})
					require.NoError(t, err, address)
					_, port, err := net.SplitHostPort(l.Addr())
					require.NoError(t, err)
					for _, at := range []string{l.Addr(), net.JoinHostPort(host, port)} {
						accepted := make(chan error, 1)
						go func() {
							_, err := l.Accept(ep.RequestOf(<-l.Requests()), nil)
							accepted <- err
						}()
						c, err := ia.Dial(within(t), at, ConnConfig{})
						require.NoError(t, err, at)
						require.NoError(t, <-accepted)
						require.NoError(t, c.Close())
					}
					require.NoError(t, l.Close())
				}
			}
		})
	}
}

// A loopback address is that of the device which is asked, so it does not reach another
// one's listener, and a host elsewhere is refused.
func TestALoopbackAddressIsThatOfItsOwnDevice(t *testing.T) {
	here, there := open(t, "loop"), open(t, "loop:there")
	l := listen(t, there, ConnConfig{})
	_, port, err := net.SplitHostPort(l.Addr())
	require.NoError(t, err)
	_, err = here.Dial(within(t), net.JoinHostPort("127.0.0.1", port), ConnConfig{})
	require.ErrorIs(t, err, event.Error(event.NonPeerRejected))
	for _, host := range []string{"192.0.2.1", "example.org", "localhost.example.org"} {
		_, err = here.Listen(within(t), host, ConnConfig{})
		assert.ErrorIs(t, err, hw.ErrInvalidAddress, host)
	}
}
