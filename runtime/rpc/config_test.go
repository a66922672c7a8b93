package rpc

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
)

// A server that listens lets clients in, whatever its settings; others are refused in this package's words.
func TestAServerThatListensHasAPlaceForItsClients(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		most := mostCallsOf(ia.Attr())
		for _, cfg := range []Config{{Calls: most, Conns: 2, Message: 64}, {Calls: 1362, Message: 64}, {Calls: 1361, Conns: 128, Message: 64}} {
			if cfg.Calls > most {
				continue
			}
			s := serve(t, ia, cfg, 1, echo)
			_, err := dial(t, ia, s, Config{}).Call(within(t), Call{}, nil)
			require.NoError(t, err)
		}
		refused := map[string]Config{
			"Config.Calls":   {Calls: most + 1, Conns: 2},
			"Config.Conns":   {Calls: min(1362, most), Conns: 1 << 19},
			"Config.Message": {Message: 1<<30 + 1},
			"Config.Answer":  {Answer: -1},
		}
		if most > 1<<11 {
			refused["has for messages"] = Config{Message: 1 << 29, Calls: 1 << 11}
		}
		for text, cfg := range refused {
			_, err := Listen(t.Context(), ia, ":0", cfg)
			require.ErrorIs(t, err, hw.ErrInvalidParameter)
			require.ErrorContains(t, err, "rpc.Listen")
			require.ErrorContains(t, err, text)
			require.NotContains(t, err.Error(), "ConnConfig")
			_, err = Dial(t.Context(), ia, "127.0.0.1:1", cfg)
			require.ErrorIs(t, err, hw.ErrInvalidParameter)
			require.ErrorContains(t, err, "rpc.Dial")
			require.ErrorContains(t, err, text)
		}
	})
}

// A name that two methods have, or that stands for the rest, would count them together.
func TestNamesOfMethodsThatNameNoneAreRefused(t *testing.T) {
	ia := open(t, "loop")
	for want, names := range map[string]map[uint16]string{
		`Config.Methods names 7 ""`:               {7: "", 8: "get"},
		`Config.Methods names 8 "others"`:         {7: "get", 8: "others"},
		`Config.Methods names both 7 and 9 "get"`: {7: "get", 8: "put", 9: "get"},
		`Config.Methods names both 1 and 2 "a?"`:  {1: "a\xff", 2: "a?"},
	} {
		_, err := Listen(t.Context(), ia, ":0", Config{Methods: names})
		require.ErrorIs(t, err, hw.ErrInvalidParameter, want)
		require.ErrorContains(t, err, "rpc.Listen")
		require.ErrorContains(t, err, want)
		_, err = Dial(t.Context(), ia, "127.0.0.1:1", Config{Methods: names})
		require.ErrorIs(t, err, hw.ErrInvalidParameter, want)
		require.ErrorContains(t, err, "rpc.Dial")
		require.ErrorContains(t, err, want)
	}
	s := serve(t, ia, Config{Methods: map[uint16]string{}}, 1, echo)
	dial(t, ia, s, Config{Methods: map[uint16]string{7: "8", 8: "7"}})
}

func TestAZoneThatCantServeIsRefusedByItsName(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		closed, err := ia.NewPZ()
		require.NoError(t, err)
		require.NoError(t, closed.Close())
		foreign, err := open(t, "loop").NewPZ()
		require.NoError(t, err)
		s := serve(t, ia, Config{}, 1, echo)
		for _, pz := range []*mem.PZ{closed, foreign} {
			_, err = Listen(t.Context(), ia, ":0", Config{PZ: pz})
			require.ErrorIs(t, err, hw.ErrInvalidHandle)
			require.ErrorContains(t, err, "Config.PZ")
			_, err = Dial(t.Context(), ia, s.Addr(), Config{PZ: pz})
			require.ErrorIs(t, err, hw.ErrInvalidHandle)
			require.ErrorContains(t, err, "Config.PZ")
		}
	})
}

// What a server can't make for a client is told where the server's program looks.
func TestAConnectionThatCantBeMadeIsLogged(t *testing.T) {
	var log bytes.Buffer
	ia := open(t, "loop")
	s := serve(t, ia, Config{Log: slog.New(slog.NewTextHandler(&log, nil)), Conns: 1}, 1, echo)
	dial(t, ia, s, Config{})
	_, err := Dial(t.Context(), ia, s.Addr(), Config{})
	require.ErrorIs(t, err, &Error{Code: CodeFull})
	require.NoError(t, s.Close()) // the reader, which logs, has ended
	assert.Empty(t, log.String(), "a server that is full is no news: its snapshot counts")

	pz, err := ia.NewPZ()
	require.NoError(t, err)
	s = serve(t, ia, Config{Log: slog.New(slog.NewTextHandler(&log, nil)), PZ: pz}, 1, echo)
	require.NoError(t, pz.Close())
	_, err = Dial(t.Context(), ia, s.Addr(), Config{})
	require.ErrorContains(t, err, "no place for another connection")
	require.Eventually(t, func() bool { return s.Snapshot().Trouble(time.Second) != "" }, time.Minute, time.Millisecond)
	assert.Contains(t, s.Snapshot().Trouble(time.Second), "1 connection was refused within the last minute for what this end lacks: ")
	assert.Contains(t, s.Snapshot().Trouble(time.Second), "PZ is closed")
	_, explained := s.Snapshot().Connections()
	assert.True(t, explained)
	require.NoError(t, s.Close())
	assert.Contains(t, log.String(), "a connection was not accepted")
	assert.Contains(t, log.String(), "PZ is closed")
}

func TestWhatWasNotMadeSaysSo(t *testing.T) {
	for _, c := range []*Client{nil, new(Client)} {
		_, err := c.Call(t.Context(), Call{}, nil)
		require.ErrorIs(t, err, hw.ErrInvalidHandle)
		require.ErrorIs(t, c.CallJSON(t.Context(), Call{}, 1, nil), hw.ErrInvalidHandle)
		assert.Nil(t, c.PZ())
		assert.Zero(t, c.Snapshot())
		require.ErrorIs(t, c.Close(), hw.ErrInvalidHandle)
	}
	for _, s := range []*Server{nil, new(Server)} {
		require.ErrorIs(t, s.Serve(t.Context(), 1, func(*Request) ([]byte, error) { return nil, nil }), hw.ErrInvalidHandle)
		require.ErrorIs(t, s.Shutdown(t.Context()), hw.ErrInvalidHandle)
		assert.Nil(t, s.PZ())
		assert.Nil(t, s.Requests())
		assert.Empty(t, s.Addr())
		assert.Zero(t, s.Snapshot())
		require.ErrorIs(t, s.Close(), hw.ErrInvalidHandle)
	}
	_, err := Dial(t.Context(), nil, "127.0.0.1:1", Config{})
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
	_, err = Listen(t.Context(), nil, ":0", Config{})
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
	ia := open(t, "loop")
	s := serve(t, ia, Config{}, 1, echo)
	require.ErrorIs(t, s.Serve(t.Context(), 1, nil), hw.ErrInvalidParameter)
	require.ErrorIs(t, ListenAndServe(t.Context(), ia, s.Addr(), Config{}, 1, nil), hw.ErrInvalidParameter)
}
