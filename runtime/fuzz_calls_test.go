package runtime

import (
	"reflect"
	"slices"
	"strings"

	"godat/ep"
	"godat/hw"
	"godat/hw/sim"
	"godat/mem"
)

// functions are the package's functions that take handles, events, bytes, names or
// options. The fuzzer calls them as it calls methods.
var functions = calls(map[string]any{
	"Open": Open, "Describe": Describe, "Providers": Providers, "Strerror": hw.Strerror, "IAOf": IAOf,
	"ParseRemoteSegment": mem.ParseRemoteSegment,
	"ConnOf":             ConnOf, "EndpointOf": ep.Of, "RequestOf": ep.RequestOf, "RMROf": ep.RMROf, "SRQOf": ep.SRQOf,
	"NewOutbox": ep.NewOutbox,
})

// options are the functions that make options, by the type of the option.
var options = map[reflect.Type][]reflect.Method{
	reflect.TypeFor[Option](): calls(map[string]any{
		"WithAsync": WithAsync, "WithParams": WithParams, "WithPoller": WithPoller, "WithUpcalls": WithUpcalls,
		"WithProvider": WithProvider, "WithThreadSafe": WithThreadSafe, "WithVersion": WithVersion,
	}),
	reflect.TypeFor[mem.Option](): calls(map[string]any{
		"WithAlignment": mem.WithAlignment, "WithHugePages": mem.WithHugePages, "WithUnmapOnFree": mem.WithUnmapOnFree,
	}),
}

// calls returns functions in the form of methods, by name, in a fixed order.
func calls(named map[string]any) (all []reflect.Method) {
	for name, f := range named {
		v := reflect.ValueOf(f)
		all = append(all, reflect.Method{Name: name, Type: v.Type(), Func: v})
	}
	slices.SortFunc(all, func(a, b reflect.Method) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// mostAdapters is how many adapters a program may have at a time.
const mostAdapters = 8

// drawFunction makes a call of one of the package's functions.
func (c *caller) drawFunction(p *tape) {
	f := functions[p.n(len(functions))]
	in := make([]reflect.Value, f.Type.NumIn())
	for i := range in {
		in[i] = c.draw(p, f.Type.In(i), 0)
	}
	if f.Name == "Open" || f.Name == "Describe" {
		c.mu.Lock()
		many := len(c.handles[reflect.TypeFor[*IA]()]) >= mostAdapters
		c.mu.Unlock()
		if many {
			return
		}
		if name := p.n(4); name > 0 {
			in[1].SetString([]string{"", "loop", "sim", "iwarp:127.0.0.1"}[name])
		}
		if in[1].String() == "sim" { // a device whose completions must be polled
			simulated := reflect.ValueOf(WithProvider(sim.New(sim.Config{Seed: uint64(p.n(256))})))
			last := len(in) - 1
			in[last] = reflect.Append(in[last], simulated)
		}
	}
	c.call(nil, f, in)
}

// drawOption returns what a maker of options makes of drawn arguments.
func (c *caller) drawOption(p *tape, of reflect.Type, depth int) reflect.Value {
	maker := options[of][p.n(len(options[of]))]
	var in []reflect.Value
	for arg := range maker.Type.Ins() {
		in = append(in, c.draw(p, arg, depth+1))
	}
	return maker.Func.Call(in)[0]
}
