package conformance

import (
	"errors"

	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

// capability is what a provider may lack.
type capability struct {
	name string // in the table
	// has reports whether the provider has it. If it has not, it has seen a call
	// that needs it be refused as it must.
	has func(*rig) bool
}

// lacks is the first of the capabilities that the provider has not, or nil.
func (r *rig) lacks(needs []*capability) *capability {
	r.Helper()
	for _, c := range needs {
		if !c.has(r) {
			return c
		}
	}
	return nil
}

// granted reports whether a call went well. If not, it must have been refused
// because the provider can't do it.
func (r *rig) granted(err error) bool {
	r.Helper()
	if err == nil {
		return true
	}
	require.ErrorIs(r, err, errors.ErrUnsupported)
	require.ErrorIs(r, err, dat.ErrModelNotSupported)
	return false
}

func needs(c ...*capability) []*capability { return c }

// notReadyWait: a send waits for the peer to post a receive. Without it the
// connection breaks at once.
var notReadyWait = &capability{"not-ready-wait", func(r *rig) bool {
	client, server := r.pair()
	if client.waitsForReceives() {
		return true
	}
	require.NoError(r, client.ep.PostSend(1, 0, client.mem.Segment(0, 8)))
	client.connection(dat.Broken)
	server.connection(dat.Broken)
	return false
}}

// waitsForReceives is what the device says of notReadyWait.
func (n *node) waitsForReceives() bool { return n.ia.Attr().NotReadyWait }
