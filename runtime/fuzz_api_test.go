package runtime

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"reflect"
	"regexp"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

// A program of random bytes calls any function of the package and any method of any
// handle, in any order, with valid and invalid arguments. Handles may be live, closed, nil or of another adapter. No
// call may panic or hang, and each error must have a code of DAT.

// FuzzAPI decodes bytes into the calls of one to three goroutines.
func FuzzAPI(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(randomProgram(seed))
	}
	f.Fuzz(runProgram)
}

func TestRandomCallsGetAnAnswer(t *testing.T) {
	programs := uint64(60)
	if testing.Short() {
		programs = 10
	}
	for seed := range programs {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { runProgram(t, randomProgram(1000+seed)) })
	}
}

func randomProgram(seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, 0))
	program := make([]byte, 64+random.IntN(1500))
	for i := range program {
		program[i] = byte(random.Uint32())
	}
	return program
}

// tape is a program: the fuzzer takes decisions from it until it ends.
type tape struct{ left []byte }

// n is the next decision, below k.
func (p *tape) n(k int) int {
	if len(p.left) == 0 || k <= 1 {
		return 0
	}
	b := p.left[0]
	p.left = p.left[1:]
	return int(b) % k
}

// caller is the state that the goroutines of a program share.
type caller struct {
	t    *testing.T
	own  *bad
	pool *mem.BufferPool

	mu      sync.Mutex
	handles map[reflect.Type][]reflect.Value
	given   []any // all regions and buffers
	types   []reflect.Type
	log     []string
	ctx     context.Context
}

// oneOwner are handles that one goroutine at a time may use, as their godoc says.
var oneOwner = []reflect.Type{reflect.TypeFor[*ep.Outbox](), reflect.TypeFor[*mem.Buffer](), reflect.TypeFor[*evd.Batch]()}

// documented are the beginnings of the panics that godoc announces.
var documented = regexp.MustCompile("^(evd: a (batch|one-shot request) was released twice|ep.NewOutbox: )")

// runProgram gives a program eight seconds, and prints every goroutine's stack when they
// are over. The fuzzer kills a worker whose input takes ten and keeps nothing but the
// input: a second run of that input prints the stacks.
func runProgram(t *testing.T, program []byte) {
	c := &caller{t: t, handles: map[reflect.Type][]reflect.Value{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.runAll(program)
	}()
	select {
	case <-done:
	case <-time.After(8 * time.Second):
		stacks := make([]byte, 1<<20)
		t.Fatalf("hangs, after\n%s\n%s", c.program(), stacks[:goruntime.Stack(stacks, true)])
	}
}

func (c *caller) runAll(program []byte) {
	t := c.t
	p := &tape{left: program}
	provider := "loop"
	if p.n(8) == 0 {
		provider = "iwarp"
	}
	var cancel context.CancelFunc
	c.ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	c.furnish(provider)
	goroutines := 1 + p.n(3)
	share := len(p.left)/goroutines + 1
	var wg sync.WaitGroup
	for part := range slices.Chunk(p.left, share) {
		wg.Go(func() { c.run(&tape{left: part}, goroutines == 1) })
	}
	wg.Wait()
	for _, ia := range slices.Backward(c.handles[reflect.TypeFor[*IA]()]) { // a later one may use an earlier one's dispatcher
		if adapter := ia.Interface().(*IA); adapter != nil {
			if err := adapter.Close(); err != nil {
				require.ErrorIs(t, err, hw.ErrInvalidHandle, "%s\n%s", "Close", c.program())
			}
			c.giveBackMemory()
			require.Zero(t, adapter.MemoryStats(), c.program())
		}
	}
}

// giveBackMemory frees the regions and puts the buffers that the program still has.
func (c *caller) giveBackMemory() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.given {
		switch h := h.(type) {
		case *mem.LMR:
			_ = h.Free() // it may be another adapter's, and bound there
		case *mem.Buffer:
			if h == nil {
				continue
			}
			unlessRefused(func() { h.Return(0) })
			unlessRefused(h.Put)
		}
	}
}

// unlessRefused calls a method of a buffer, which panics if somebody else has that.
func unlessRefused(call func()) {
	defer func() { _ = recover() }()
	call()
}

// furnish makes the first handles of every kind.
func (c *caller) furnish(provider string) {
	t := c.t
	b := &bad{t: t, own: newObjects(t, provider), foreign: newObjects(t, provider), gone: c.ctx}
	b.ia = b.own.ia
	b.pair = connect(t, b.ia, evd.Config{QLen: 256})
	b.pair.establish(t)
	c.own = b
	c.keep(reflect.ValueOf(b.pair.mem))
	for _, o := range []objects{b.own, b.foreign} {
		for _, h := range []any{o.ia, o.pz, o.d, o.cno, o.ep, o.srq, o.lmr, o.rmr, o.shot} {
			c.keep(reflect.ValueOf(h))
		}
	}
	for _, m := range makers {
		if reflect.TypeOf(m.handle) == reflect.TypeFor[*IA]() {
			continue
		}
		c.keep(reflect.ValueOf(m.live(b)))
	}
	var err error
	c.pool, err = b.own.pz.NewBufferPool(mem.BufferPoolConfig{Count: 16, Size: 64})
	require.NoError(t, err)
	c.keep(reflect.ValueOf(c.pool))
	for _, h := range []any{b.pair.a, b.pair.b, b.pair.pz, b.pair.events, b.pair.mem} {
		c.keep(reflect.ValueOf(h))
	}
}

// keep adds a handle for later calls.
func (c *caller) keep(h reflect.Value) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(h)
}

func (c *caller) add(h reflect.Value) {
	switch of := h.Interface().(type) {
	case *mem.LMR, *mem.Buffer:
		c.given = append(c.given, of)
	}
	of := h.Type()
	if of.Kind() != reflect.Pointer || h.IsNil() || of.NumMethod() == 0 || !strings.HasPrefix(of.Elem().PkgPath(), "godat/") {
		return
	}
	if of == reflect.TypeFor[*mem.Buffer]() { // its godoc announces that misuse panics
		return
	}
	if c.handles[of] == nil {
		c.types = append(c.types, of)
		slices.SortFunc(c.types, func(a, b reflect.Type) int { return strings.Compare(a.String(), b.String()) })
	}
	if len(c.handles[of]) < 24 && !slices.ContainsFunc(c.handles[of], h.Equal) {
		c.handles[of] = append(c.handles[of], h)
	}
}

// run makes the calls of a tape.
func (c *caller) run(p *tape, alone bool) {
	for len(p.left) > 0 && !c.t.Failed() {
		if p.n(16) == 0 {
			c.drawFunction(p)
			continue
		}
		c.mu.Lock()
		of := c.types[p.n(len(c.types))]
		c.mu.Unlock()
		method := of.Method(p.n(of.NumMethod()))
		switch {
		case takesKey(method.Type):
			continue
		case of == reflect.TypeFor[*IA]() && strings.HasPrefix(method.Name, "Close") && p.n(16) != 0:
			continue // otherwise most programs would run on a closed adapter
		case !alone && slices.Contains(oneOwner, of):
			continue
		}
		in := []reflect.Value{c.draw(p, of, 0)}
		for i := 1; i < method.Type.NumIn(); i++ {
			in = append(in, c.draw(p, method.Type.In(i), 0))
		}
		if method.Name == "Alloc" {
			in[1] = reflect.ValueOf(int(modest(in[1].Int(), 1<<26)))
		}
		c.call(of, method, in)
	}
}

// call makes one call and judges its answer. of is the type of a method, and nil for a
// function.
func (c *caller) call(of reflect.Type, m reflect.Method, in []reflect.Value) {
	line := describeCall(of, m, in)
	c.mu.Lock()
	c.log = append(c.log, line)
	c.mu.Unlock()
	o, ended := outcomeOf(m, in)
	switch {
	case !ended:
		stacks := make([]byte, 1<<20)
		c.t.Errorf("%s hangs, after\n%s\n%s", line, c.program(), stacks[:goruntime.Stack(stacks, true)])
	case o.panic == nil:
		c.judge(line, in, o.out)
	case !documented.MatchString(fmt.Sprint(o.panic)):
		c.t.Errorf("%s: panic: %v\n%s\nafter\n%s", line, o.panic, o.stack, c.program())
	}
}

func (c *caller) judge(line string, in, out []reflect.Value) {
	for _, v := range out {
		err, ok := v.Interface().(error)
		if ok && v.Type() == reflect.TypeFor[error]() {
			var code *hw.Error
			if !errors.As(err, &code) && !ownAnswer(err) && !errors.Is(err, context.DeadlineExceeded) {
				c.t.Errorf("%s: %T %v is no code; after\n%s", line, err, err, c.program())
			}
			return
		}
	}
	for _, v := range append(in, out...) {
		c.harvest(v)
	}
}

// harvest keeps the handles of an answer, and those that its events are about.
func (c *caller) harvest(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		c.keep(v)
	case reflect.Slice:
		if events, ok := v.Interface().([]event.Event); ok {
			for i := range min(len(events), 8) {
				c.keep(reflect.ValueOf(ep.RequestOf(events[i])))
			}
		}
	default:
	}
}

// program returns the last calls as text.
func (c *caller) program() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.log[max(0, len(c.log)-60):], "\n")
}

func describeCall(of reflect.Type, m reflect.Method, in []reflect.Value) string {
	var args []string
	for _, v := range in {
		if v.Kind() == reflect.Slice && v.Len() > 4 || v.Kind() == reflect.Func {
			args = append(args, v.Type().String())
			continue
		}
		if _, says := v.Interface().(fmt.Stringer); v.Kind() == reflect.Pointer && !says {
			args = append(args, v.Type().String()) // what is behind it may be another goroutine's
			continue
		}
		text := fmt.Sprint(v)
		args = append(args, text[:min(len(text), 120)])
	}
	if of == nil {
		return fmt.Sprintf("%s(%s)", m.Name, strings.Join(args, ", "))
	}
	return fmt.Sprintf("(%v)(%v).%s(%s)", of, args[0], m.Name, strings.Join(args[1:], ", "))
}

var numbers = []int64{0, 1, 2, 3, 8, 64, 100, 4096, -1, math.MinInt32, math.MaxInt32, math.MaxUint32, math.MinInt64, math.MaxInt64}

// draw returns a value of a type, by decisions of the tape.
func (c *caller) draw(p *tape, of reflect.Type, depth int) reflect.Value {
	v := reflect.New(of).Elem()
	switch of.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n := numbers[p.n(len(numbers))]
		if of == reflect.TypeFor[time.Duration]() {
			n = []int64{0, 1, -1, int64(time.Millisecond), math.MaxInt64, math.MinInt64}[p.n(6)]
		}
		v.SetInt(n)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if p.n(3) == 0 {
			v.SetUint(uint64(numbers[p.n(len(numbers))]))
		} else {
			v.SetUint(1 << p.n(of.Bits()) >> 1)
		}
	case reflect.Bool:
		v.SetBool(p.n(2) == 1)
	case reflect.String:
		v.SetString([]string{"", "nonsense", ":", ":0", "127.0.0.1:1", "[::1]:1", "\x00", "a:b:c", "127.0.0.1:99999999999999999999", c.own.ia.Attr().Address}[p.n(10)])
		if p.n(2) == 0 {
			v.SetString("")
		}
	case reflect.Pointer:
		c.drawPointer(p, v, depth)
	case reflect.Slice:
		n := []int{0, 0, 1, 2, 3, 17}[p.n(6)]
		if p.n(4) == 0 && n == 0 {
			return v
		}
		v.Set(reflect.MakeSlice(of, n, n))
		if depth < 3 {
			for i := range min(n, 3) {
				v.Index(i).Set(c.draw(p, of.Elem(), depth+1))
			}
		}
	case reflect.Array:
		for i := range min(v.Len(), 2) {
			v.Index(i).Set(c.draw(p, of.Elem(), depth+1))
		}
	case reflect.Struct:
		c.drawStruct(p, v, depth)
	case reflect.Interface:
		c.drawInterface(p, v)
	case reflect.Func:
		switch {
		case p.n(4) == 0:
			return v
		case options[of] != nil:
			return c.drawOption(p, of, depth)
		}
		return c.own.good(of)
	case reflect.Map:
		v.Set(reflect.MakeMap(of))
		for range p.n(3) {
			v.SetMapIndex(c.draw(p, of.Key(), depth+1), c.draw(p, of.Elem(), depth+1))
		}
	case reflect.Chan:
		if p.n(2) == 0 {
			v.Set(reflect.ValueOf(c.ctx.Done()))
		}
	default:
	}
	return v
}

// drawPointer sets a handle of any state; now and then it leaves nil.
func (c *caller) drawPointer(p *tape, v reflect.Value, depth int) {
	of := v.Type()
	c.mu.Lock()
	all := c.handles[of]
	c.mu.Unlock()
	switch {
	case p.n(10) == 0:
	case len(all) > 0:
		v.Set(all[p.n(len(all))])
	case of == reflect.TypeFor[*mem.Buffer]():
		b := reflect.ValueOf(c.pool.Get())
		c.keep(b)
		v.Set(b)
	case of.Elem().Kind() == reflect.Struct && of.NumMethod() == 0 && depth < 3:
		v.Set(reflect.New(of.Elem()))
		v.Elem().Set(c.draw(p, of.Elem(), depth+1))
	}
}

func (c *caller) drawStruct(p *tape, v reflect.Value, depth int) {
	switch of := v.Type(); {
	case of == reflect.TypeFor[mem.Segment]() && p.n(4) != 0:
		v.Set(reflect.ValueOf(c.own.pair.mem.Segment(8*p.n(32), 8*p.n(4))))
		return
	case of == reflect.TypeFor[mem.RemoteSegment]() && p.n(4) != 0:
		v.Set(reflect.ValueOf(c.own.pair.mem.Remote(8*p.n(32), 8*p.n(4))))
		return
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() || depth > 3 {
			continue
		}
		if handle := f.Type.Kind() == reflect.Pointer && f.Type.NumMethod() > 0; handle || p.n(3) == 0 {
			v.Field(i).Set(c.draw(p, f.Type, depth+1))
		}
	}
	if debug := v.FieldByName("Debug"); debug.IsValid() && debug.Bool() {
		bound(v, 1<<10) // such a pool fills its buffers with a pattern
	}
	if v.Type() == reflect.TypeFor[mem.BufferPoolConfig]() || v.Type() == reflect.TypeFor[ConnConfig]() {
		bound(v, 1<<13)
	}
}

// bound keeps the memory of a configuration small: the system clears gigabytes for seconds,
// and a program has eight. What no machine has is left for the library to refuse.
func bound(config reflect.Value, most int64) {
	for i := range config.NumField() {
		if f := config.Field(i); f.CanInt() && f.CanSet() && f.Type() != reflect.TypeFor[time.Duration]() {
			f.SetInt(modest(f.Int(), most))
		}
	}
}

func modest(n, most int64) int64 {
	if n < math.MaxInt64 {
		return min(n, most)
	}
	return n
}

func (c *caller) drawInterface(p *tape, v reflect.Value) {
	switch of := v.Type(); {
	case of == reflect.TypeFor[context.Context]():
		ctx, cancel := context.WithTimeout(c.ctx, time.Duration(p.n(3))*time.Millisecond)
		c.t.Cleanup(cancel)
		v.Set(reflect.ValueOf(ctx))
	case of == reflect.TypeFor[any]():
		switch p.n(4) {
		case 0:
			v.Set(reflect.ValueOf(5))
		case 1:
			v.Set(c.draw(p, reflect.TypeFor[*ep.Endpoint](), 1))
		case 2:
			c.mu.Lock()
			of := c.types[p.n(len(c.types))]
			c.mu.Unlock()
			v.Set(c.draw(p, of, 1))
		}
	case of == reflect.TypeFor[hw.Provider]():
		if p.n(2) == 0 {
			loop, _ := hw.Lookup("loop")
			v.Set(reflect.ValueOf(loop))
		}
	case of == reflect.TypeFor[net.Addr]():
		v.Set(reflect.ValueOf(&net.TCPAddr{}))
	}
}
