package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math"
	"reflect"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/door"
	"godat/mem"
)

// bad is a world in which every exported method of every handle gets bad input: a nil
// or closed receiver, or one argument that no program should give. The method must
// answer soon, by a code of DAT, or by nothing if it is a getter. Reflection finds the
// methods, so a new method is tried too.
type bad struct {
	t       *testing.T
	ia      *IA
	own     objects
	foreign objects
	pair    *pair
	gone    context.Context // canceled
}

// takesKey reports whether a method takes a door.Key, so that only this module can call
// it.
func takesKey(m reflect.Type) bool {
	for in := range m.Ins() {
		if in == reflect.TypeFor[door.Key]() {
			return true
		}
	}
	return false
}

// again are methods that do nothing on a closed object. Receive tells of the end by
// io.EOF.
var again = "Close Free Release Shutdown Receive Stop"

// ownAnswer reports whether an error is a context's own, io.EOF, or that of an event.
// Calls that wait for a connection or a completion answer so.
func ownAnswer(err error) bool {
	var (
		event  event.Error
		status hw.StatusError
	)
	return errors.As(err, &event) || errors.As(err, &status) || errors.Is(err, context.Canceled) || errors.Is(err, io.EOF)
}

func newBad(t *testing.T) *bad {
	b := &bad{t: t, own: newObjects(t, "loop"), foreign: newObjects(t, "loop")}
	b.ia = b.own.ia
	b.pair = connect(t, b.ia, evd.Config{QLen: 256})
	b.pair.establish(t)
	var cancel context.CancelFunc
	b.gone, cancel = context.WithCancel(t.Context())
	cancel()
	return b
}

func TestBadInputGetsACodeFromEveryMethod(t *testing.T) {
	b := newBad(t)
	for i, m := range makers {
		typ := reflect.TypeOf(m.handle)
		name := typ.Elem().Name()
		for method := range typ.Methods() {
			if takesKey(method.Type) {
				continue // only this module can call it
			}
			t.Run(fmt.Sprintf("%d %s/%s", i, name, method.Name), func(t *testing.T) {
				w := *b
				w.t = t
				w.try(t, "nil", method, reflect.Zero(typ), w.base(method.Type), true)
				if m.close != nil {
					closed := m.live(&w)
					m.close(closed)
					w.try(t, "closed", method, reflect.ValueOf(closed), w.base(method.Type), !slices.Contains(strings.Fields(again), method.Name))
				}
				for arg := 1; arg < method.Type.NumIn(); arg++ {
					for _, v := range w.variants(method.Type.In(arg), 2) {
						args := w.base(method.Type)
						args[arg-1] = v
						w.try(t, fmt.Sprintf("argument %d is %.60v", arg, v), method, reflect.ValueOf(m.live(&w)), args, false)
					}
				}
			})
		}
	}
}

// TestNoHandleIsMissed keeps makers whole: a type with methods that a method of a handle
// returns is there, too.
func TestNoHandleIsMissed(t *testing.T) {
	known := []reflect.Type{reflect.TypeFor[*mem.Buffer]()} // its godoc announces that misuse panics
	for _, m := range makers {
		known = append(known, reflect.TypeOf(m.handle))
	}
	for _, of := range slices.Clone(known) {
		for method := range of.Methods() {
			for out := range method.Type.Outs() {
				if out.Kind() == reflect.Pointer && out.NumMethod() > 0 && !takesKey(method.Type) && !slices.Contains(known, out) {
					t.Errorf("%v.%s returns a %v, which makers do not have", of, method.Name, out)
				}
			}
		}
	}
}

// try calls a method and requires a code: INVALID_HANDLE if invalid is set.
func (b *bad) try(t *testing.T, what string, m reflect.Method, recv reflect.Value, args []reflect.Value, invalid bool) {
	t.Helper()
	o, ended := outcomeOf(m, append([]reflect.Value{recv}, args...))
	switch {
	case !ended:
		t.Fatalf("%s: the call hangs", what)
	case o.panic != nil:
		t.Errorf("%s: panic: %v\n%s", what, o.panic, o.stack)
	default:
		b.judge(t, what, o.out, invalid)
	}
}

// outcome is what a call returned, or the panic that ended it.
type outcome struct {
	out   []reflect.Value
	panic any
	stack string
}

// outcomeOf calls a method and takes one value of each iterator that it returns. ended
// is false when that has not returned in half a minute.
func outcomeOf(m reflect.Method, in []reflect.Value) (o outcome, ended bool) {
	outcomes := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			if o.panic = recover(); o.panic != nil {
				stack := make([]byte, 1<<14)
				o.stack = string(stack[:goruntime.Stack(stack, false)])
			}
			outcomes <- o
		}()
		if m.Type.IsVariadic() {
			o.out = m.Func.CallSlice(in)
		} else {
			o.out = m.Func.Call(in)
		}
		for _, out := range o.out {
			if seq, ok := out.Interface().(iter.Seq[event.Event]); ok {
				for range seq {
					break
				}
			}
		}
	}()
	select {
	case o = <-outcomes:
		return o, true
	case <-time.After(30 * time.Second):
		return o, false
	}
}

func (b *bad) judge(t *testing.T, what string, out []reflect.Value, invalid bool) {
	t.Helper()
	if n := len(out); n > 0 && out[n-1].Type() == reflect.TypeFor[error]() {
		err, _ := out[n-1].Interface().(error)
		var code *hw.Error
		switch {
		case err == nil && invalid:
			t.Errorf("%s: no error", what)
		case err != nil && !errors.As(err, &code) && !ownAnswer(err):
			t.Errorf("%s: %T %v is no code", what, err, err)
		case invalid && !errors.Is(err, hw.ErrInvalidHandle):
			t.Errorf("%s: %v is not INVALID_HANDLE", what, err)
		}
		if err == nil {
			return
		}
		out = out[:n-1]
	} else if what != "nil" {
		return
	}
	for _, v := range out {
		switch v.Interface().(type) {
		case int, string, mem.Segment, mem.RemoteSegment: // a count says how far a call came; every operation refuses a segment of no region
		case slog.Value: // the name of a nil handle, as String has it
		case ep.State: // the state of a nil endpoint is that of a closed one
		default:
			if v.Kind() != reflect.Func && !v.IsZero() {
				t.Errorf("%s: returns %.80v", what, v)
			}
		}
	}
}

// base are valid arguments, as far as a test can tell that does not know what the
// method does.
func (b *bad) base(m reflect.Type) (args []reflect.Value) {
	for i := 1; i < m.NumIn(); i++ {
		args = append(args, b.good(m.In(i)))
	}
	return args
}

// good is a valid value of a type: of a handle's type, an open one of the right
// adapter.
func (b *bad) good(t reflect.Type) reflect.Value {
	for _, h := range []any{
		b.gone, b.own.d, b.own.pz, b.own.cno, b.own.srq, b.own.rmr, b.own.lmr,
	} {
		if v := reflect.ValueOf(h); v.Type() == t || t == reflect.TypeFor[context.Context]() && v.Type().Implements(t) {
			return v.Convert(t)
		}
	}
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Pointer:
		if t == reflect.TypeFor[*ep.Endpoint]() {
			return reflect.ValueOf(b.endpoint())
		}
		if t == reflect.TypeFor[*mem.Buffer]() {
			pool, err := b.own.pz.NewBufferPool(mem.BufferPoolConfig{Count: 1, Size: 64})
			return reflect.ValueOf(made(b.t, pool, err).Get())
		}
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Func:
		return reflect.MakeFunc(t, func([]reflect.Value) (out []reflect.Value) {
			for o := range t.Outs() {
				out = append(out, reflect.Zero(o))
			}
			return out
		})
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if f.IsExported() && f.Type.Kind() == reflect.Pointer && b.isHandle(f.Type) {
				v.Field(i).Set(b.good(f.Type))
			}
		}
	default:
	}
	return v
}

// isHandle reports whether good knows the handles of that type. A shared queue needs
// other objects with it.
func (b *bad) isHandle(t reflect.Type) bool {
	return slices.Contains([]reflect.Type{
		reflect.TypeFor[*evd.Dispatcher](), reflect.TypeFor[*mem.PZ](), reflect.TypeFor[*evd.CNO](), reflect.TypeFor[*ep.Endpoint](),
	}, t)
}

// variants are bad values of a type. In structs, down to that depth, one field at a
// time is bad.
func (b *bad) variants(t reflect.Type, depth int) (all []reflect.Value) {
	add := func(vs ...any) {
		for _, v := range vs {
			all = append(all, reflect.ValueOf(v).Convert(t))
		}
	}
	all = append(all, reflect.Zero(t))
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		add(int64(-1), int64(math.MinInt32), int64(math.MaxInt32), int64(math.MinInt64), int64(math.MaxInt64))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		add(reflect.Zero(t).Interface())
		most := reflect.New(t).Elem()
		most.SetUint(math.MaxUint64 >> (64 - t.Bits()))
		all = append(all, most)
	case reflect.String:
		add("nonsense", "a:b:c", ":", "127.0.0.1:99999999999999999999", strings.Repeat("x", 1<<16), "\x00")
	case reflect.Slice:
		all = append(all, reflect.MakeSlice(t, 0, 0), reflect.MakeSlice(t, 1, 1), reflect.MakeSlice(t, 4097, 4097))
	case reflect.Pointer:
		all = append(all, b.strangers(t)...)
		if t.Elem().Kind() == reflect.Struct && t.NumMethod() == 0 { // not a handle: only calls make handles
			for _, v := range b.variants(t.Elem(), depth-1) {
				p := reflect.New(t.Elem())
				p.Elem().Set(v)
				all = append(all, p)
			}
		}
	case reflect.Struct:
		for i := range t.NumField() {
			if depth == 0 || !t.Field(i).IsExported() || t.Field(i).Name == "Submit" {
				continue
			}
			for _, f := range b.variants(t.Field(i).Type, depth-1) {
				v := reflect.New(t).Elem()
				v.Set(b.good(t))
				v.Field(i).Set(f)
				all = append(all, v)
			}
		}
	case reflect.Interface:
		if t.NumMethod() == 0 {
			add(5, (*ep.Endpoint)(nil), "text")
		}
	default:
	}
	return all
}

// strangers are handles that are closed, or that belong to another adapter.
func (b *bad) strangers(t reflect.Type) (all []reflect.Value) {
	for _, h := range []any{b.foreign.ia, b.foreign.d, b.foreign.pz, b.foreign.cno, b.foreign.ep, b.foreign.srq, b.foreign.lmr, b.foreign.rmr, b.foreign.shot} {
		if reflect.TypeOf(h) == t {
			all = append(all, reflect.ValueOf(h))
		}
	}
	for _, m := range makers {
		if m.close != nil && reflect.TypeOf(m.handle) == t {
			h := m.live(b)
			m.close(h)
			all = append(all, reflect.ValueOf(h))
		}
	}
	return all
}

// A function that takes a handle gets the same bad handles, and also nil and a value
// that is no handle.
func TestBadHandlesGetACodeFromEveryFunction(t *testing.T) {
	for _, h := range []any{
		nil, 5, "text", (*IA)(nil), (*evd.Dispatcher)(nil), (*evd.CNO)(nil), (*mem.PZ)(nil), (*mem.LMR)(nil), (*mem.RMR)(nil),
		(*ep.Endpoint)(nil), (*ep.SRQ)(nil), (*ep.PSP)(nil), (*ep.RSP)(nil), (*ep.CSP)(nil), (*ep.CR)(nil), (*ep.Adapter)(nil),
	} {
		_, err := IAOf(h)
		require.ErrorIs(t, err, hw.ErrInvalidHandle, "%T", h)
	}
	_, err := Open(t.Context(), "loop", nil)
	var code *hw.Error
	require.ErrorAs(t, err, &code)
	for _, ev := range []event.Event{{}, {Source: (*ep.Endpoint)(nil), Data: (*ep.CR)(nil)}, {Source: (*ep.SRQ)(nil), Data: (*mem.RMR)(nil)}} {
		for of, isNil := range map[string]bool{
			"EndpointOf": ep.Of(ev) == nil, "RequestOf": ep.RequestOf(ev) == nil, "RMROf": ep.RMROf(ev) == nil,
			"SRQOf": ep.SRQOf(ev) == nil, "ConnOf": ConnOf(ev) == nil,
		} {
			require.True(t, isNil, of)
		}
	}
}
