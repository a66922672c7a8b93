package inspect

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw/iwarp"
	dat "godat/runtime"
)

// noTLS is a configuration of TLS by which no start-up succeeds.
var noTLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, io.EOF }}

// lines are a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// strangers are programs that dial a listener of iWARP and speak something else, and what the page
// and the log of the listener's program say.
var strangers = map[string]struct {
	listen func(address string) (net.Listener, error) // nil is TCP
	dial   func(ctx context.Context, address string) error
	says   string
}{
	"HTTP": {nil, func(ctx context.Context, address string) error {
		ask, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/a/long/enough/path", nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(ask)
		if err == nil {
			err = answer.Body.Close()
		}
		return err
	}, "a request of HTTP to this port, which is iWARP's"},
	"TLS": {nil, func(ctx context.Context, address string) error {
		c, err := (&tls.Dialer{Config: &tls.Config{ServerName: "server", MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", address)
		if err == nil {
			err = c.Close()
		}
		return err
	}, "a peer began TLS, and this listener speaks none"},
	"iWARP without TLS": {
		func(address string) (net.Listener, error) { return tls.Listen("tcp", address, noTLS) },
		func(ctx context.Context, address string) error {
			ia, err := dat.Open(ctx, "iwarp:127.0.0.1")
			if err != nil {
				return err
			}
			defer ia.Close()
			_, err = ia.Dial(ctx, address, dat.ConnConfig{})
			return err
		}, "start-up of TLS failed",
	},
	"another protocol": {nil, func(ctx context.Context, address string) error {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err = io.WriteString(c, "EHLO mail.example and more octets"); err == nil {
			_, err = c.Read(make([]byte, 1))
		}
		return err
	}, "no request of iWARP"},
}

func TestAPeerOfAnotherProtocolIsNamedOnThePageAndOnceInTheLog(t *testing.T) {
	for name, s := range strangers {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			log := new(lines)
			ia, err := dat.Open(ctx, "iwarp:127.0.0.1", dat.WithSlog(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))), dat.WithProvider(iwarp.New(iwarp.Config{Listen: s.listen})))
			require.NoError(t, err)
			defer func() { require.NoError(t, ia.Close()) }()
			ln, err := ia.Listen(ctx, "127.0.0.1:0", dat.ConnConfig{})
			require.NoError(t, err)
			r := &rig{t, ia, ln, New(ia)}
			require.Empty(t, r.ask("?format=json").Troubles)
			for range 2 {
				require.Error(t, s.dial(ctx, ln.Addr()))
			}
			var found []trouble
			require.Eventually(t, func() bool {
				now, err := ia.Snapshot()
				require.NoError(t, err)
				if now.Listeners[0].Device.Foreign < 2 {
					return false
				}
				r.h.adapters[0].mu.Lock()
				defer r.h.adapters[0].mu.Unlock()
				found = troubles(&seen{Snapshot: now}, r.h.adapters[0].now)
				return true
			}, time.Minute, time.Millisecond)
			require.Len(t, found, 1)
			assert.Equal(t, "another protocol", found[0].Kind)
			assert.Equal(t, ln.String(), found[0].Name)
			assert.Contains(t, found[0].Text, s.says)
			told := func() int { return strings.Count(log.String(), s.says) } // a task of the pool writes them
			require.Eventually(t, func() bool { return told() > 0 }, time.Minute, time.Millisecond)
			require.NoError(t, ia.Close()) // behind which no task writes
			assert.Equal(t, 1, told(), log)
		})
	}
}
