package secure

import (
	"context"
	"crypto/tls"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// told is what a Refused heard.
type told struct {
	here bool
	why  string
}

// meet has two ends meet, and returns what each heard, and how their reads ended.
func meet(t *testing.T, server, client *tls.Config) (atServer, atClient told, err error) {
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	done := make(chan error, 1)
	go func() {
		x, err := (&listener{l, func(_ string, here bool, why string) { atServer = told{here, why} }}).Accept()
		if err == nil {
			_, err = x.Read(make([]byte, 1))
			_ = x.Close()
		}
		done <- err
	}()
	hears := func(_ string, here bool, why string) { atClient = told{here, why} }
	x, err := (&tls.Dialer{Config: client}).DialContext(context.Background(), "tcp", l.Addr().String())
	if err != nil {
		tell(hears, "", err)
		return atServer, atClient, firstOf(<-done, err)
	}
	both := &conn{Conn: x.(*tls.Conn), refused: hears}
	_, _ = both.Write([]byte{1})
	_, readError := both.Read(make([]byte, 1))
	_ = both.Close()
	if err = <-done; err != nil {
		return atServer, atClient, firstOf(err, readError)
	}
	return atServer, atClient, nil
}

func firstOf(errs ...error) error { return errs[0] }

func TestEndsOfOneVolumeTrustEachOtherAndNobodyElse(t *testing.T) {
	secret := NewSecret()
	one, err := secret.Issue("A", "node 1")
	require.NoError(t, err)
	two, err := secret.Issue("A", "node 2")
	require.NoError(t, err)
	other, err := NewSecret().Issue("B", "node 2")
	require.NoError(t, err)

	_, _, err = meet(t, one.config(), two.config())
	require.NoError(t, err)

	_, client, err := meet(t, one.config(), other.config())
	require.Error(t, err)
	require.True(t, client.here)
	require.Contains(t, client.why, `is by "volume A", and this end trusts "volume B"`)

	lenient := other.config()
	lenient.VerifyConnection = nil
	server, client, err := meet(t, one.config(), lenient)
	require.Error(t, err)
	require.True(t, server.here)
	require.Contains(t, server.why, `is by "volume B", and this end trusts "volume A"`)
	require.False(t, client.here)
	require.Contains(t, client.why, "does not take this end's certificate")

	server, _, err = meet(t, one.config(), &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}) //nolint:gosec // a stranger
	require.Error(t, err)
	require.Contains(t, server.why, "no certificate")
}

func TestAStrangerWithoutTLSIsToldOf(t *testing.T) {
	one, err := NewSecret().Issue("A", "node 1")
	require.NoError(t, err)
	l, err := tls.Listen("tcp", "127.0.0.1:0", one.config())
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	x, err := net.Dial("tcp", l.Addr().String()) //nolint:noctx // it is this machine's
	require.NoError(t, err)
	_, err = x.Write([]byte("MPA ID Req Frame, which is no TLS"))
	require.NoError(t, err)
	var got told
	server, err := (&listener{l, func(addr string, here bool, why string) {
		require.Equal(t, "127.0.0.1", addr, "a port that is another one each time would make each attempt news")
		got = told{here, why}
	}}).Accept()
	require.NoError(t, err)
	_, err = server.Read(make([]byte, 1))
	require.Error(t, err)
	require.Contains(t, got.why, "does not speak TLS")
	require.NoError(t, x.Close())
	_ = server.Close()
}

func TestCredentialsAreFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	one, err := NewSecret().Issue("A", "node 1")
	require.NoError(t, err)
	require.NoError(t, one.Save(dir))
	again, err := LoadDir(dir)
	require.NoError(t, err)
	_, _, err = meet(t, one.config(), again.config())
	require.NoError(t, err)
	other, err := NewSecret().Issue("B", "node 1")
	require.NoError(t, err)
	_, err = parse(one.cert, one.key, other.ca)
	require.ErrorContains(t, err, "others would refuse this")
	_, err = parse(one.cert, other.key, one.ca)
	require.Error(t, err)
	_, err = parse(one.cert, one.key, nil)
	require.ErrorContains(t, err, "no certificate of an authority")
}
