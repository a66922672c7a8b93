package runtime

import (
	"context"
	"os"
	"os/exec"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
)

// panicIn is the variable that tells a child process where to panic.
const panicIn = "GODAT_TEST_PANIC_IN"

// panickers make a callback of the program's panic, on an adapter whose pool has one
// place.
var panickers = map[string]func(t *testing.T, ia *IA){
	"callback": func(t *testing.T, ia *IA) { callBack(t, ia, func([]event.Event) { programsOwnMistake() }) },
	"agent": func(t *testing.T, ia *IA) {
		cno, err := ia.NewCNO(evd.CNOConfig{Agent: func(*evd.Dispatcher) { programsOwnMistake() }})
		require.NoError(t, err)
		d, err := ia.NewDispatcher(evd.Config{QLen: 1, Streams: event.StreamSoftware, CNO: cno})
		require.NoError(t, err)
		require.NoError(t, d.PostSoftware(nil))
	},
}

func programsOwnMistake() { panic("the program's own mistake") }

// callBack makes an event that f is called back with.
func callBack(t *testing.T, ia *IA, f func([]event.Event)) {
	d, err := ia.NewDispatcher(evd.Config{QLen: 1, Mode: evd.ModeCallback, Streams: event.StreamSoftware, Callback: f})
	require.NoError(t, err)
	require.NoError(t, d.PostSoftware(nil))
}

// A panic in a callback ends the process, with the trace of the goroutine that
// panicked. For that, the test runs itself as a child process.
func TestAPanicInACallbackEndsTheProcess(t *testing.T) {
	if where := os.Getenv(panicIn); where != "" {
		panicHere(t, where)
		return
	}
	for what := range panickers {
		for _, pool := range []string{"free", "exhausted"} {
			t.Run(what+" with the pool "+pool, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestAPanicInACallbackEndsTheProcess$")
				cmd.Env = append(os.Environ(), panicIn+"="+what+" "+pool)
				out, err := cmd.CombinedOutput()
				require.NoError(t, ctx.Err(), "the child lives on:\n%s", out)
				var exit *exec.ExitError
				require.ErrorAs(t, err, &exit, "%s", out)
				assert.Contains(t, string(out), "panic: the program's own mistake")
				assert.Contains(t, string(out), "runtime.programsOwnMistake(", "the trace of who panicked")
				assert.NotContains(t, string(out), "--- FAIL", "the test failed in place of the process")
			})
		}
	}
}

// panicHere is the child's part.
func panicHere(t *testing.T, where string) {
	ia := open(t, "loop", WithUpcalls(1))
	for what, panics := range panickers {
		switch where {
		case what + " exhausted":
			begun := make(chan struct{})
			callBack(t, ia, func([]event.Event) { close(begun); select {} })
			<-begun
			fallthrough
		case what + " free":
			panics(t, ia)
		}
	}
	<-make(chan struct{}) // until the process ends, by the panic or by its parent
}

// panicProvider calls open, which panics, when it is to open a device.
type panicProvider struct{ open func() }

func (panicProvider) Name() string { return "panic" }

func (p panicProvider) Open(hw.OpenConfig) (hw.Device, error) {
	p.open()
	return nil, nil
}

func TestAProvidersPanicInOpenIsTheCallers(t *testing.T) {
	mistake := func() { panic("the provider's mistake") }
	for name, ctx := range map[string]context.Context{
		"a context that ends":       t.Context(),
		"a context that never ends": context.Background(),
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				p, ok := recover().(*ProviderPanic)
				require.True(t, ok)
				assert.Equal(t, "the provider's mistake", p.Value)
				assert.Contains(t, string(p.Stack), "runtime.TestAProvidersPanicInOpenIsTheCallers.func", "the trace of who panicked")
				assert.Contains(t, p.Error(), "the provider's mistake")
				assert.Contains(t, p.Error(), "TestAProvidersPanicInOpenIsTheCallers")
			}()
			_, err := Open(ctx, "panic", WithProvider(panicProvider{mistake}))
			assert.NoError(t, err, "unreachable")
		})
	}
}

func TestAProviderThatReturnsNothingIsRefusedByName(t *testing.T) {
	_, err := Open(t.Context(), "panic", WithProvider(panicProvider{func() {}}))
	requireCode(t, err, hw.InternalError, hw.NoSubtype)
	assert.ErrorContains(t, err, "the provider panic returned neither a device nor an error")
}

func TestAProvidersPanicWithAnErrorUnwrapsToIt(t *testing.T) {
	defer func() {
		err, ok := recover().(error)
		require.True(t, ok)
		assert.ErrorIs(t, err, os.ErrPermission)
	}()
	_, err := Open(t.Context(), "panic", WithProvider(panicProvider{func() { panic(os.ErrPermission) }}))
	assert.NoError(t, err, "unreachable")
}

func TestAProvidersGoexitInOpenIsTheCallers(t *testing.T) {
	returned, done := false, make(chan struct{})
	go func() {
		defer close(done)
		_, _ = Open(context.Background(), "panic", WithProvider(panicProvider{goruntime.Goexit}))
		returned = true
	}()
	<-done
	assert.False(t, returned)
}
