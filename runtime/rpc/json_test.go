package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	dat "godat/runtime"
)

// value is a question, and an answer.
type value struct {
	Text string
	N    int
}

// onValues runs a test against a server of values, on each provider. Method 1 fails, method 2 writes
// to the sink, and any other method answers with the question, one more, N times as long.
func onValues(t *testing.T, server, client Config, test func(t *testing.T, c *Client)) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s, err := Listen(t.Context(), ia, ":0", server)
		require.NoError(t, err)
		served := make(chan error, 1)
		go func() {
			served <- s.Serve(t.Context(), 2, HandleJSON(func(r *Request, q value) (value, error) {
				switch r.Method() {
				case 1:
					return q, &Error{CodeUser, "not " + q.Text}
				case 2:
					return value{strings.Repeat("a", defaultMessage), 0}, r.WriteBytes([]byte("body"), 0)
				}
				return value{strings.Repeat(q.Text, q.N), q.N + 1}, nil
			}))
		}()
		test(t, dial(t, ia, s, client))
		require.NoError(t, s.Close())
		require.NoError(t, <-served)
	})
}

func TestAValueOfAnySizeIsAskedAndAnswered(t *testing.T) {
	onValues(t, Config{Message: 100}, Config{Message: 200}, func(t *testing.T, c *Client) {
		for _, n := range []int{1, 60, 99, 100, 150, 199, 200, 3 << 20} {
			var got value
			sink := make([]byte, n+100)
			require.NoError(t, c.CallJSON(within(t), Call{SinkBytes: sink}, value{strings.Repeat("q", n), 1}, &got))
			assert.True(t, got == value{strings.Repeat("q", n), 2}, n)
		}
		var got value
		require.NoError(t, c.CallJSON(within(t), Call{}, value{"a", 1}, &got))
		assert.Equal(t, value{"a", 2}, got)
	})
}

func TestWhatIsNoQuestionOrNoAnswerIsAnError(t *testing.T) {
	onValues(t, Config{}, Config{}, func(t *testing.T, c *Client) {
		var got value
		ask := func(call Call, q any) error { return c.CallJSON(within(t), call, q, &got) }
		assert.Equal(t, &Error{CodeUser, "not a"}, ask(Call{Method: 1}, value{"a", 1}))
		unknown := &Error{Code: CodeUnknown}
		require.ErrorIs(t, ask(Call{}, "no value"), unknown)
		require.ErrorIs(t, ask(Call{}, value{strings.Repeat("q", mostQuestion), 0}), unknown)
		_, err := c.Call(within(t), Call{}, nil)
		require.ErrorIs(t, err, unknown, "neither a payload nor a source")
		require.ErrorIs(t, ask(Call{Payload: []byte{}}, value{}), hw.ErrInvalidParameter)
		require.ErrorIs(t, ask(Call{SourceBytes: make([]byte, 1)}, value{strings.Repeat("q", defaultMessage), 0}), hw.ErrLength)
		require.Error(t, ask(Call{}, func() {}), "it has no form in JSON")
		assert.Zero(t, got)
		require.ErrorIs(t, ask(Call{Sink: alloc(t, c.PZ(), 8).Remote(0, 8)}, value{}), hw.ErrInvalidParameter)
		require.NoError(t, c.CallJSON(within(t), Call{}, value{"a", 1}, nil), "nobody wants the answer")
		require.NoError(t, c.CallJSON(within(t), Call{}, value{"long", defaultMessage}, nil), "however long it is")
		require.ErrorIs(t, c.CallJSON(within(t), Call{Method: 1}, value{"a", 1}, nil), &Error{Code: CodeUser})
		sink := make([]byte, 2*defaultMessage)
		require.NoError(t, c.CallJSON(within(t), Call{Method: 2, SinkBytes: sink}, value{}, &got))
		assert.Equal(t, "body", string(sink[:4]), "the answer goes over nothing that its handler wrote")
		over, cancel := context.WithCancel(t.Context())
		cancel()
		var failed *CallError
		require.ErrorAs(t, c.CallJSON(over, Call{}, value{}, &got), &failed)
		require.True(t, errors.Is(failed, context.Canceled) && !failed.MayHaveRun)
	})
}

func TestAnErrorOfAValueNamesTheMethodAndTheServer(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s := serve(t, ia, Config{}, 1, func(r *Request) { _ = r.Reply([]byte("7}")[:r.Method()]) })
		c := dial(t, ia, s, Config{})
		ask := func(method uint16, question, answer any) error {
			return c.CallJSON(within(t), Call{Method: method}, question, answer)
		}
		var number int
		require.NoError(t, ask(1, value{}, &number))
		require.Equal(t, 7, number)
		for _, wrong := range []struct {
			err  error
			as   any
			what string
		}{
			{ask(0, value{}, &number), new(*json.SyntaxError), "method 0 of " + s.Addr() + ": the answer: "},
			{ask(2, value{}, &number), new(*json.SyntaxError), "method 2 of " + s.Addr() + ": the answer: "},
			{ask(1, value{}, new(value)), new(*json.UnmarshalTypeError), "method 1 of " + s.Addr() + ": the answer: "},
			{ask(1, value{}, number), new(*json.InvalidUnmarshalError), "method 1 of " + s.Addr() + ": the answer: "},
			{ask(1, func() {}, &number), new(*json.UnsupportedTypeError), "method 1 of " + s.Addr() + ": the question: "},
		} {
			require.ErrorAs(t, wrong.err, wrong.as)
			assert.ErrorContains(t, wrong.err, wrong.what)
		}
	})
}
