package model

import "fmt"

// World is everything that a program has made so far, as DAT has it. It is not safe
// for concurrent use.
type World struct {
	memory memory

	maxPrivate int  // bytes of private data
	long       bool // see Long
	step       int  // how many commands there were
	judges     map[string]func(*call)

	evds   objects[*evd]
	cnos   objects[*cno]
	shots  objects[*shot]
	async  []asyncError
	eps    objects[*endpoint]
	srqs   objects[*srq]
	points objects[*point]
	crs    objects[*cr]
}

// Make returns a world without objects, on a provider with atomics and writes with
// immediate data. Private data has up to maxPrivate bytes. Everything that a call
// causes has happened when the call returns.
func Make(maxPrivate int) *World {
	w := &World{
		maxPrivate: maxPrivate,
		memory:     memory{zones: objects[*zone]{kind: 'z'}, regions: objects[*region]{kind: 'm'}, windows: objects[*window]{kind: 'w'}},
		evds:       objects[*evd]{kind: 'e'}, cnos: objects[*cno]{kind: 'n'}, shots: objects[*shot]{kind: 'o'},
		eps: objects[*endpoint]{kind: 'p'}, srqs: objects[*srq]{kind: 'q'},
		points: objects[*point]{kind: 's'}, crs: objects[*cr]{kind: 'c'},
	}
	w.judges = w.commands()
	return w
}

// commands returns the judge of each command.
func (w *World) commands() map[string]func(*call) {
	connect, post := on(&w.eps, (*endpoint).connect), on(&w.eps, (*endpoint).post)
	freePoint, sync := onFreed(&w.points, (*point).free), w.memory.sync
	return map[string]func(*call){
		"pz": w.memory.newZone, "pz_free": onFreed(&w.memory.zones, w.freeZone),
		"lmr": w.memory.newRegion, "lmr_of": w.memory.newRegion, "lmr_free": onFreed(&w.memory.regions, w.memory.freeRegion), "lmr_query": on(&w.memory.regions, (*region).query),
		"sync_read": sync, "sync_write": sync,
		"rmr": w.newWindow, "rmr_free": onFreed(&w.memory.windows, (*window).free), "rmr_query": on(&w.memory.windows, (*window).query), "bind": w.postBind,

		"evd": w.newEVD, "evd_free": onFreed(&w.evds, (*evd).free), "evd_query": on(&w.evds, (*evd).query),
		"evd_resize": on(&w.evds, (*evd).resize), "post_se": on(&w.evds, (*evd).postSE),
		"dequeue": on(&w.evds, (*evd).dequeue), "wait": on(&w.evds, (*evd).wait), "block": on(&w.evds, (*evd).block), "unblock": w.unblock,
		"evd_modify_cno": on(&w.evds, (*evd).modifyCNO), "evd_enable": on(&w.evds, (*evd).enable), "evd_disable": on(&w.evds, (*evd).enable),
		"evd_set_unwaitable": on(&w.evds, (*evd).setUnwaitable), "evd_clear_unwaitable": on(&w.evds, (*evd).setUnwaitable),
		"cno": w.newCNO, "cno_free": onFreed(&w.cnos, (*cno).free), "cno_wait": on(&w.cnos, (*cno).wait),
		"oneshot": w.newShot, "os_wait": on(&w.shots, (*shot).wait), "os_release": w.releaseShot, "async": w.dequeueAsync,

		"ep": w.newEP, "ep_free": onFreed(&w.eps, (*endpoint).free), "ep_query": on(&w.eps, (*endpoint).query),
		"status": on(&w.eps, (*endpoint).status), "modify": on(&w.eps, (*endpoint).modify), "reset": on(&w.eps, (*endpoint).reset),
		"recv_query": on(&w.eps, (*endpoint).queryRecvs), "counters": on(&w.eps, (*endpoint).queryCounters),
		"set_watermark": on(&w.eps, (*endpoint).setWatermark),
		"connect":       connect, "common_connect": connect, "dup_connect": connect, "disconnect": on(&w.eps, (*endpoint).disconnect),
		"recv": post, "send": post, "send_inv": post, "write": post, "write_imm": post, "read": post, "read_rmr": post,
		"fetch_add": post, "cmp_swap": post, "batch": w.postBatch,

		"srq": w.newSRQ, "srq_free": onFreed(&w.srqs, (*srq).free), "srq_query": on(&w.srqs, (*srq).query),
		"srq_recv": on(&w.srqs, (*srq).post), "srq_resize": on(&w.srqs, (*srq).resize), "srq_set_lw": on(&w.srqs, (*srq).setLow),

		"psp": w.newPoint, "rsp": w.newPoint, "csp": w.newPoint, "psp_free": freePoint, "rsp_free": freePoint, "csp_free": freePoint,
		"sp_query": on(&w.points, (*point).query),
		"accept":   on(&w.crs, (*cr).accept), "reject": on(&w.crs, (*cr).reject), "handoff": on(&w.crs, (*cr).handoff), "cr_query": on(&w.crs, (*cr).query),
	}
}

// Commands returns the names of all commands.
func Commands() (names []string) {
	for n := range Make(0).judges {
		names = append(names, n)
	}
	return names
}

// Step judges a command by its result, and changes the world accordingly. An error
// says what DAT does not allow; after an error the world must not be used again.
func (w *World) Step(c Command, r Result) error {
	w.step++
	judge, known := w.judges[c.Op]
	if !known {
		return fmt.Errorf("no such command: %s", c.Op)
	}
	x := &call{Command: c, Result: r}
	judge(x)
	if x.end(); x.err != nil {
		return fmt.Errorf("%s: %w", c, x.err)
	}
	return nil
}

// Result is the outcome of a command.
type Result struct {
	Code   Code
	Events []Event        // what a dequeue or a wait returned
	Values map[string]int // other values that the call returned
}

// Event is what the program saw of an event.
type Event struct {
	Number  int
	Source  string // name of the endpoint, service point or shared queue; "" for others
	Cookie  int
	Status  int
	Op      int
	Length  int
	Private string
	Imm     int
	Flags   int // Solicited and so on
	Handle  any // a connection request's, for later commands

	// Attr are the attributes of the endpoint that came with a request; nil without
	// one.
	Attr *map[string]int
}

// Flags of an [Event].
const (
	Solicited   = 1 << iota // the send asked for a notification
	HasImm                  // Imm is immediate data
	Invalidated             // Imm is the context that the send invalidated
)

func (e Event) String() string {
	return fmt.Sprintf("{%s of %s cookie %d status %d op %d length %d private %q imm %d flags %d}",
		eventNames[e.Number], e.Source, e.Cookie, e.Status, e.Op, e.Length, e.Private, e.Imm, e.Flags)
}
