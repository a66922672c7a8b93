package stream

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// assertTimeout holds an error against what package net says of a call whose time is over.
func assertTimeout(t *testing.T, err error, what string) {
	t.Helper()
	require.Error(t, err, what)
	said, ok := errors.AsType[net.Error](err)
	require.True(t, ok, "%s: %v", what, err)
	assert.True(t, said.Timeout(), "%s: %v", what, err)
	assert.True(t, os.IsTimeout(err), "%s: %v", what, err)
}

func TestADialThatRanOutOfTimeIsATimeoutOfPackageNet(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) { // no goroutine accepts
		for what, cause := range map[string]error{"its own cause": nil, "the program's cause": assert.AnError} {
			ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, cause)
			defer cancel()
			for _, when := range []string{": a peer that does not answer", ": at once"} {
				_, err := r.dialer().DialContext(ctx, "", r.ln.Addr().String())
				assertTimeout(t, err, what+when)
				assert.ErrorIs(t, err, context.Cause(ctx))
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
			}
			_, err := (&Dialer{}).DialContext(ctx, "", r.ln.Addr().String())
			assertTimeout(t, err, what+": without an adapter")
			_, err = Listen(ctx, r.ia, ":0", Config{})
			assertTimeout(t, err, what+": Listen")
			_, err = Listen(ctx, nil, ":0", Config{})
			assertTimeout(t, err, what+": Listen without an adapter")
		}
	})
}

func TestADialThatItsProgramCancelsIsNoTimeout(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := r.dialer().DialContext(ctx, "", r.ln.Addr().String())
		require.ErrorIs(t, err, context.Canceled)
		assert.False(t, os.IsTimeout(err), err)
		_, err = r.dialer().Dial("", "nonsense")
		require.Error(t, err)
		assert.False(t, os.IsTimeout(err), err)
	})
}

func TestACallWhoseDeadlinePassesIsATimeoutOfPackageNet(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		client, server := r.pair()
		secure := tls.Client(client, &tls.Config{ServerName: "server"})
		require.NoError(t, client.SetDeadline(time.Now().Add(-time.Second)))
		assertTimeout(t, secure.Handshake(), "TLS")
		_, err := client.Read(make([]byte, 1))
		assertTimeout(t, err, "Read")
		_, err = client.Write(make([]byte, 1))
		assertTimeout(t, err, "Write")
		_, err = client.WriteBuffers(&net.Buffers{{1}})
		assertTimeout(t, err, "WriteBuffers")
		_, err = client.ReadFrom(server)
		assertTimeout(t, err, "ReadFrom")
		_, err = client.WriteTo(server)
		assertTimeout(t, err, "WriteTo")
	})
}

// It is one of a socket's too, whose peer's host is gone.
func TestAConnectionWhosePeerFellSilentIsATimeoutOfPackageNet(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		client, _ := r.pair()
		client.line.stop(&hw.Cause{Layer: hw.LayerTCP, Text: "the peer is silent", Err: hw.ErrTimeout})
		_, err := client.Read(make([]byte, 1))
		assertTimeout(t, err, "Read")
		_, err = client.Write(make([]byte, 1))
		assertTimeout(t, err, "Write")
		assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "no deadline passed: a new one does not help")
		assert.ErrorIs(t, err, hw.ErrTimeout)
		_, ok := errors.AsType[*hw.Cause](err)
		assert.True(t, ok, err)
	})
}

func TestAnAcceptThatRanOutOfTimeIsATimeoutOfPackageNet(t *testing.T) {
	r := newRig(t, "loop", Config{})
	err := r.ln.opError("accept", shortage{&hw.Cause{Err: hw.ErrTimeout}})
	assertTimeout(t, err, "Accept")
	said, ok := err.(interface{ Temporary() bool })
	require.True(t, ok)
	assert.True(t, said.Temporary(), "the program may call Accept again")
}
