package stream

import (
	"errors"
	"net"
	"testing"

	"golang.org/x/net/nettest"
)

func TestAStreamIsANetConn(t *testing.T) {
	onEachAtOnce(t, testConn)
}

func testConn(t *testing.T, r *rig) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		client, server, err := r.connect()
		if err != nil {
			return nil, nil, nil, err
		}
		return client, server, func() {
			if err := errors.Join(client.Close(), server.Close()); err != nil {
				t.Error(err)
			}
		}, nil
	})
}
