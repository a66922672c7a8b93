package mistakes

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
	"godat/runtime/inspect"
	"godat/runtime/rpc"
	"godat/runtime/stream"
)

// handles are zero values of types whose values a call of the library makes. A program passes pointers to them.
var handles = map[string]any{
	"ep CR": new(ep.CR), "ep CSP": new(ep.CSP), "ep Endpoint": new(ep.Endpoint), "ep PSP": new(ep.PSP), "ep RSP": new(ep.RSP), "ep SRQ": new(ep.SRQ),
	"evd CNO": new(evd.CNO), "evd Dispatcher": new(evd.Dispatcher), "evd Route": new(evd.Route),
	"mem BufferPool": new(mem.BufferPool), "mem LMR": new(mem.LMR), "mem PZ": new(mem.PZ), "mem RMR": new(mem.RMR),
	"runtime Conn": new(dat.Conn), "runtime IA": new(dat.IA), "runtime Listener": new(dat.Listener), "runtime Pairing": new(dat.Pairing),
	"runtime/inspect Handler": new(inspect.Handler),
	"runtime/rpc Client":      new(rpc.Client), "runtime/rpc Request": new(rpc.Request), "runtime/rpc Server": new(rpc.Server),
	"runtime/stream Conn": new(stream.Conn), "runtime/stream Listener": new(stream.Listener),
}

// onTheWay are types whose methods are calls of the data path. They look for nil, but not for a zero value.
var onTheWay = map[string]any{
	"ep Outbox": new(ep.Outbox), "evd Batch": new(evd.Batch),
	"evd OneShot": new(evd.OneShot), "mem Buffer": new(mem.Buffer),
}

// bare says which methods of handles are of the data path.
var bare = regexp.MustCompile(`ep Endpoint.*\.Post|evd Dispatcher.*\.(Dequeue|Wait|NewOneShot)$`)

// values are types whose zero value is good, and errors.
var values = map[string]any{
	"evd Histogram": new(evd.Histogram), "hw Cause": new(hw.Cause), "hw Error": new(hw.Error), "hw PairAddr": new(hw.PairAddr),
	"mem RemoteSegment": new(mem.RemoteSegment), "runtime ProviderPanic": new(dat.ProviderPanic),
	"runtime/rpc CallError": new(rpc.CallError), "runtime/rpc Error": new(rpc.Error), "runtime/stream Dialer": new(stream.Dialer),
}

func TestEachTypeWithMethodsHasItsHabitsTested(t *testing.T) {
	text := must(os.ReadFile("../../runtime/api.txt"))
	all := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^pkg godat/([^,]*), method \(\*(\w+)`).FindAllStringSubmatch(string(text), -1) {
		all[m[1]+" "+m[2]] = true
	}
	require.NotEmpty(t, all)
	listed := map[string]bool{}
	for _, kind := range []map[string]any{handles, onTheWay, values} {
		for name := range kind {
			assert.False(t, listed[name], name)
			listed[name] = true
		}
	}
	assert.Equal(t, all, listed)
}

// argument is a value of a type that a program could pass.
func argument(ctx context.Context, of reflect.Type) reflect.Value {
	switch {
	case of == reflect.TypeFor[context.Context]():
		return reflect.ValueOf(ctx)
	case of == reflect.TypeFor[http.ResponseWriter]():
		return reflect.ValueOf(httptest.NewRecorder())
	case of == reflect.TypeFor[*http.Request]():
		return reflect.ValueOf(httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	case of.Kind() == reflect.String:
		return reflect.ValueOf("127.0.0.1:0").Convert(of)
	case of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Uint8:
		return reflect.MakeSlice(of, 16, 16)
	case of.Kind() == reflect.Int:
		return reflect.ValueOf(1).Convert(of)
	}
	return reflect.Zero(of)
}

// came is what came of a call.
type came struct {
	hung, fails bool
	panicked    any
	err         error
}

// call calls a method, which takes no longer than it may.
func call(t *testing.T, method reflect.Value) came {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var args []reflect.Value
	of := method.Type()
	for i := range of.NumIn() {
		if of.IsVariadic() && i == of.NumIn()-1 {
			break
		}
		args = append(args, argument(ctx, of.In(i)))
	}
	result := make(chan came, 1)
	go func() {
		var s came
		defer func() {
			s.panicked = recover()
			result <- s
		}()
		results := method.Call(args)
		if n := len(results); n > 0 && of.Out(n-1) == reflect.TypeFor[error]() {
			s.fails = true
			s.err, _ = results[n-1].Interface().(error)
		}
	}()
	select {
	case s := <-result:
		return s
	case <-time.After(2 * time.Second):
		return came{hung: true}
	}
}

// judge calls all methods of a handle but those of which leave says so, and those that take a key of the library's.
func judge(t *testing.T, name string, handle reflect.Value, leave func(method string) bool) {
	for i := range handle.NumMethod() {
		m := handle.Type().Method(i)
		method := name + "." + m.Name
		if leave(method) || slices.ContainsFunc(slices.Collect(m.Type.Ins()), func(in reflect.Type) bool { return in.Name() == "Key" }) {
			continue
		}
		switch s := call(t, handle.Method(i)); {
		case s.hung:
			t.Errorf("%s waits", method)
		case s.panicked != nil:
			t.Errorf("%s panics: %v", method, s.panicked)
		case s.fails && s.err == nil:
			t.Errorf("%s returns no error", method)
		case s.fails && len(strings.Fields(s.err.Error())) < 4:
			t.Errorf("%s says %q", method, s.err)
		}
	}
}

func TestANilHandleIsAnError(t *testing.T) {
	for _, kind := range []map[string]any{handles, onTheWay} {
		for name, handle := range kind {
			// To cut a nil buffer to a length is a panic, as it is of a nil slice, and a Writer without room has io's error.
			judge(t, fmt.Sprintf("(*%s)(nil)", name), reflect.Zero(reflect.TypeOf(handle)), regexp.MustCompile(`Buffer.*\.(Resize|Write)$`).MatchString)
		}
	}
}

func TestAZeroValueFailsInWords(t *testing.T) {
	for name, handle := range handles {
		judge(t, fmt.Sprintf("new(%s)", name), reflect.New(reflect.TypeOf(handle).Elem()), bare.MatchString)
	}
}

// An empty address is any of the adapter's, with a port that the provider chooses.
func TestNoAddressIsOneToEveryListen(t *testing.T) {
	for _, name := range []string{"loop", "iwarp:127.0.0.1"} {
		ia := must(dat.Open(t.Context(), name))
		ln := must(ia.Listen(t.Context(), "", dat.ConnConfig{}))
		require.NoError(t, ln.Close())
		calls := must(rpc.Listen(t.Context(), ia, "", rpc.Config{}))
		require.NoError(t, calls.Close())
		streams := must(stream.Listen(t.Context(), ia, "", stream.Config{}))
		require.NoError(t, streams.Close())
		require.NoError(t, ia.Close())
	}
	tcp := must(stream.Listen(t.Context(), nil, "", stream.Config{Adapter: "none", TCP: true}))
	require.NoError(t, tcp.Close())
}
