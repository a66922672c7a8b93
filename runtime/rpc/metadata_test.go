package rpc

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"godat/ep"
	"godat/hw"
	dat "godat/runtime"
)

// handled makes a server of a handler, and a client of it.
func handled(t *testing.T, ia *dat.IA, server, client Config, handler Handler) *Client {
	t.Helper()
	s, err := Listen(t.Context(), ia, ":0", server)
	require.NoError(t, err)
	done := goServe(t, s, 2, handler)
	c := dial(t, ia, s, client)
	t.Cleanup(func() {
		assert.NoError(t, s.Close())
		assert.NoError(t, <-done)
	})
	return c
}

func TestMetadataGoesWithACallOfEachKind(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		came := make(chan Metadata, 1)
		c := handled(t, ia, Config{Message: 64}, Config{}, func(r *Request) ([]byte, error) {
			came <- r.Metadata()
			return r.Payload(), nil
		})
		memory := alloc(t, c.PZ(), 8)
		full := strings.Repeat("p", 64)
		for _, md := range []Metadata{nil, {"trace": "7"}, {"a": "1", "b.c-d_e": "\x00\xff", strings.Repeat("k", 64): "v"}, {"k": strings.Repeat("v", 252)}} {
			ctx := WithMetadata(within(t), md)
			for _, call := range []Call{
				{Payload: []byte("p")},
				{Payload: []byte(full)},
				{},
				{Source: memory.Remote(0, 8), Payload: []byte(full)},
				{Source: memory.Remote(0, 8), Sink: memory.Remote(0, 4), Payload: []byte("p")},
				{SourceBytes: make([]byte, 5), SinkBytes: make([]byte, 6)},
			} {
				got, err := c.Call(ctx, call, nil)
				require.NoError(t, err)
				assert.Equal(t, md, <-came)
				assert.Equal(t, string(call.Payload), string(got))
			}
		}
	})
}

func TestMetadataOfAContextIsThatOfAllWithTheLastValueOfEachKey(t *testing.T) {
	pair := rapid.MapOfN(rapid.StringMatching("[a-d]"), rapid.StringMatching("[x-z]{0,2}"), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		ctx, want := context.Background(), Metadata{}
		for _, md := range rapid.SliceOfN(pair, 0, 5).Draw(t, "metadata") {
			before := MetadataOf(ctx)
			next := WithMetadata(ctx, md)
			assert.Equal(t, before, MetadataOf(ctx), "that of the context before stays")
			maps.Copy(want, md)
			maps.DeleteFunc(want, func(_, value string) bool { return value == "" })
			clear(md) // which is the program's
			ctx = next
			if len(want) == 0 {
				assert.Nil(t, MetadataOf(ctx))
			} else {
				assert.Equal(t, want, MetadataOf(ctx))
			}
			b, err := encodedMetadata(ctx)
			assert.NoError(t, err)
			r := Request{message: message{metadata: b}}
			assert.True(t, isMetadata(b) && maps.Equal(want, r.Metadata()))
		}
	})
}

func TestWrongMetadataIsRefusedBeforeTheCallIsSent(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		c := handled(t, ia, Config{Metadata: 20}, Config{}, func(*Request) ([]byte, error) { return []byte("1"), nil })
		for _, wrong := range []struct {
			md   Metadata
			is   error
			says string
		}{
			{Metadata{"": "v"}, hw.ErrInvalidParameter, "key"},
			{Metadata{"Trace": "v"}, hw.ErrInvalidParameter, "Trace"},
			{Metadata{"a b": "v"}, hw.ErrInvalidParameter, "a b"},
			{Metadata{strings.Repeat("k", 65): "v"}, hw.ErrInvalidParameter, "key"},
			{Metadata{"k": strings.Repeat("v", 17)}, hw.ErrLength, "21 bytes of metadata; the ends take 20"},
			{Metadata{"k": strings.Repeat("v", 1<<16)}, hw.ErrLength, "65536"},
		} {
			before := c.Snapshot().Answers
			ctx := WithMetadata(within(t), wrong.md)
			for _, call := range []Call{{}, {SourceBytes: make([]byte, 1)}} {
				_, err := c.Call(ctx, call, nil)
				require.ErrorIs(t, err, wrong.is)
				require.ErrorContains(t, err, wrong.says)
				require.NotErrorAs(t, err, new(*CallError))
			}
			require.ErrorIs(t, c.CallJSON(ctx, Call{}, 1, nil), wrong.is)
			assert.Equal(t, before, c.Snapshot().Answers)
			for key := range wrong.md {
				_, err := c.Call(WithMetadata(ctx, Metadata{key: ""}), Call{}, nil)
				require.NoError(t, err, "without it")
			}
		}
		_, err := c.Call(WithMetadata(within(t), Metadata{"k": strings.Repeat("v", 16)}), Call{}, nil)
		require.NoError(t, err)
		for _, n := range []int{-1, mostMetadata + 1} {
			_, err := Listen(t.Context(), ia, ":0", Config{Metadata: n})
			require.ErrorIs(t, err, hw.ErrInvalidParameter)
			require.ErrorContains(t, err, "Config.Metadata")
		}
	})
}

// An end of a version before metadata has a hello that ends without it.
func TestAnEndThatKnowsNoMetadataWorksBesideOneThatDoes(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		old := hello{calls: 4, receives: 10, message: 64}.encode()[:firstHello]
		ln, err := ia.Listen(t.Context(), ":0", dat.ConnConfig{Depth: 64, Apart: true})
		require.NoError(t, err)
		accepted := make(chan *dat.Conn, 1)
		go func() {
			c, _ := ln.Accept(ep.RequestOf(<-ln.Requests()), old)
			accepted <- c
		}()
		c, err := Dial(within(t), ia, ln.Addr(), Config{})
		require.NoError(t, err)
		server := <-accepted
		_, err = c.Call(WithMetadata(within(t), Metadata{"trace": "7"}), Call{}, nil)
		require.ErrorIs(t, err, hw.ErrLength)
		require.ErrorContains(t, err, "older version")
		answered := called(within(t), c, 1)
		h, _ := heard(t, server)
		require.Zero(t, h.flags, "it sends what an old server knows")
		answer := encoded(header{kind: kindAnswer, call: h.call, taken: 1})
		require.NoError(t, server.SendBytes(answer))
		require.NoError(t, <-answered)
		require.NoError(t, errors.Join(c.Close(), server.Close(), ln.Close()))

		s := serve(t, ia, Config{}, 1, echo)
		client, err := ia.Dial(within(t), s.Addr(), dat.ConnConfig{Depth: 16, Private: old})
		require.NoError(t, err)
		require.NoError(t, client.SendBytes(encoded(header{kind: kindCall, call: 1 << 16}, 'p')))
		_, payload := heard(t, client)
		require.Equal(t, "p", string(payload))
		require.NoError(t, client.Close())
	})
}

func TestWhatRunsAroundCallsAndHandlersSeesEachOnce(t *testing.T) {
	type key struct{}
	onEach(t, func(t *testing.T, ia *dat.IA) {
		var calls []uint16
		c := handled(t, ia, Config{AroundHandler: func(r *Request, next Handler) ([]byte, error) {
			r.SetContext(WithMetadata(context.WithValue(r.Context(), key{}, "by around"), r.Metadata()))
			answer, err := next(r)
			if err != nil {
				return nil, &Error{CodeUser, "around " + err.Error()}
			}
			return append(answer, '.'), nil
		}}, Config{AroundCall: func(ctx context.Context, call Call, next CallFunc) ([]byte, error) {
			calls = append(calls, call.Method)
			switch call.Method {
			case 1:
				return nil, errors.New("not made")
			case 2: // again
				if got, err := next(ctx, call); err != nil {
					return got, err
				}
			case 3:
				return next(nil, call) //nolint:staticcheck // which is refused
			}
			return next(WithMetadata(ctx, Metadata{"trace": "7"}), call)
		}}, func(r *Request) ([]byte, error) {
			if r.Method() == 4 {
				return nil, errors.New("failed")
			}
			return []byte(r.Context().Value(key{}).(string) + " " + MetadataOf(r.Context())["trace"]), nil
		})
		call := func(method uint16) (string, error) {
			got, err := c.Call(within(t), Call{Method: method, SourceBytes: make([]byte, 4)}, []byte("dst "))
			return string(got), err
		}
		got, err := call(0)
		require.NoError(t, err)
		assert.Equal(t, "dst by around 7.", got)
		_, err = call(1)
		require.EqualError(t, err, "not made")
		got, err = call(2)
		require.NoError(t, err)
		assert.Equal(t, "dst by around 7.", got)
		_, err = call(3)
		require.ErrorIs(t, err, hw.ErrInvalidParameter)
		_, err = call(4)
		require.ErrorIs(t, err, &Error{CodeUser, "around failed"})
		assert.Equal(t, []uint16{0, 1, 2, 3, 4}, calls)
		assert.EqualValues(t, 4, c.Snapshot().Answers)
	})
}

func TestAnEarlierEndOfTheContextOfARequestEndsItsTransfers(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		enough := errors.New("enough")
		c := handled(t, ia, Config{}, Config{}, func(r *Request) ([]byte, error) {
			ctx, cancel := context.WithCancelCause(r.Context())
			r.SetContext(ctx)
			_, err := r.ReadAll()
			assert.NoError(t, err)
			cancel(enough)
			_, err = r.ReadAll()
			assert.ErrorIs(t, err, enough)
			r.SetContext(nil) //nolint:staticcheck // that of before
			_, err = r.ReadAll()
			assert.NoError(t, err)
			return nil, nil
		})
		_, err := c.Call(within(t), Call{SourceBytes: make([]byte, 4)}, nil)
		require.NoError(t, err)
	})
}

// The context of a request that has one of AroundHandler ends with the call, as the request's own.
func TestAContextOfSetContextEndsWithTheCall(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		given := make(chan context.Context, 1)
		c := handled(t, ia, Config{}, Config{}, func(r *Request) ([]byte, error) {
			ctx := WithMetadata(r.Context(), Metadata{"k": "v"})
			r.SetContext(ctx)
			assert.Equal(t, ctx, r.Context())
			given <- ctx
			return nil, nil
		})
		ctx, cancel := context.WithTimeout(within(t), 30*time.Second)
		defer cancel()
		_, err := c.Call(ctx, Call{}, nil)
		require.NoError(t, err)
		<-(<-given).Done()
	})
}
