package rpc

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// byName are the rows "rpc methods" of an end.
func byName(rows []MethodSnapshot, end string) map[string]MethodSnapshot {
	all := make(map[string]MethodSnapshot)
	for _, row := range rows {
		if row.End == end {
			all[row.Method] = row
		}
	}
	return all
}

func TestCountsByMethodStayWhenTheirClientsAndServersHaveClosed(t *testing.T) {
	ia := open(t, "loop")
	names := map[uint16]string{1: "get", 2: "put"}
	for round := range uint64(20) {
		s, err := Listen(t.Context(), ia, "127.0.0.1:4712", Config{Methods: names})
		require.NoError(t, err)
		served := make(chan error, 1)
		go func() {
			served <- s.Serve(context.Background(), 1, func(r *Request) ([]byte, error) {
				if r.Method() != 1 {
					return nil, &Error{CodeUser, "no"}
				}
				return nil, nil
			})
		}()
		c, err := Dial(t.Context(), ia, s.Addr(), Config{Methods: names})
		require.NoError(t, err)
		for _, method := range []uint16{1, 1, 2, 3, 4} {
			_, _ = c.Call(t.Context(), Call{Method: method}, nil)
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = c.Call(canceled, Call{Method: 1}, nil)
		require.Error(t, err)
		if round%2 == 0 {
			require.NoError(t, c.Close())
		}
		require.NoError(t, s.Close())
		require.NoError(t, <-served)
		require.NoError(t, c.Close())
		rows := reported[MethodSnapshot](t, ia, "rpc methods")
		for _, end := range []string{"client", "server"} {
			all := byName(rows, end)
			require.Len(t, all, 3, "%v", all)
			n := round + 1
			assert.Equal(t, Answered{2 * n, 0}, all["get"].Answered, end)
			assert.Equal(t, Answered{n, n}, all["put"].Answered, end)
			assert.Equal(t, Answered{2 * n, 2 * n}, all[others].Answered, end)
			assert.Equal(t, s.Addr(), all["get"].Address)
		}
		assert.Equal(t, CallEnds{Left: round + 1}, byName(rows, "client")["get"].CallEnds)
		for _, total := range reported[TotalSnapshot](t, ia, "rpc totals") {
			var sum TotalSnapshot
			for _, row := range byName(rows, total.End) {
				sum.add(TotalSnapshot{Answered: row.Answered, CallEnds: row.CallEnds, Refused: row.Refused})
			}
			assert.Equal(t, [2]any{total.Answered, total.CallEnds}, [2]any{sum.Answered, sum.CallEnds}, "the methods are the whole, at the %s", total.End)
		}
	}
}

// A peer names any method. What is counted by its number is what the program has shown to know.
func TestAPeerMakesNoCountsByNamingMethods(t *testing.T) {
	ia := open(t, "loop")
	s, err := Listen(t.Context(), ia, ":0", Config{})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() {
		served <- s.Serve(context.Background(), 1, func(r *Request) ([]byte, error) {
			if r.Method() != 7 {
				return nil, &Error{CodeUnknown, "no such method"}
			}
			return nil, nil
		})
	}()
	c := dial(t, ia, s, Config{Methods: map[uint16]string{7: "7"}})
	for method := range uint16(300) {
		_, _ = c.Call(t.Context(), Call{Method: 100 + method}, nil)
	}
	_, err = c.Call(t.Context(), Call{Method: 7}, nil)
	require.NoError(t, err)
	for _, end := range []string{"client", "server"} {
		all := byName(reported[MethodSnapshot](t, ia, "rpc methods"), end)
		require.Len(t, all, 2, end)
		assert.EqualValues(t, 1, all["7"].Answers)
		assert.EqualValues(t, 300, all[others].Failures)
	}
	require.NoError(t, s.Close())
	require.NoError(t, <-served)
}

func TestASumOfMethodsOfManyClientsHasABound(t *testing.T) {
	sums := make(methodSums)
	for client := range uint16(10) {
		var m methods
		m.init(nil)
		for method := range uint16(mostMethods) {
			m.known(client*mostMethods + method).answered.count(0)
		}
		m.addTo(sums)
	}
	rows, sum := sums.rows("client", "x"), uint64(0)
	assert.Len(t, rows, mostMethods+1)
	for _, row := range rows {
		sum += row.Answers
	}
	assert.EqualValues(t, 10*mostMethods, sum)
}

func TestALineOfTheLogHasTheNumbersOfASnapshot(t *testing.T) {
	row := MethodSnapshot{Name: "method get, server x", Method: "get", Address: "x", End: "server", Answered: Answered{7, 2}}
	var want map[string]any
	text, err := json.Marshal(row)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &want))
	assert.EqualValues(t, 7, want["Answers"])
	var said strings.Builder
	slog.New(slog.NewJSONHandler(&said, nil)).Info("x", "calls", row)
	zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(&said), zap.InfoLevel)).Info("x", zap.Any("calls", row))
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	require.Len(t, lines, 2)
	for _, line := range lines {
		var is map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &is))
		assert.Equal(t, want, is["calls"])
	}
}
