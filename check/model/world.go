package model

import "fmt"

// World is everything that a program has made so far, as DAT has it. It is not safe
// for concurrent use.
type World struct {
	limits Limits
	step   int // how many commands there were

	zones   []*zone
	regions []*region
	evds    []*evd
	eps     []*endpoint
	points  []*point
	crs     []*cr
	cnos    []*cno
	windows []*window
	srqs    []*srq
	async   []asyncError
	shots   []*shot
	names   []*binding // by bind; nil for an unbind, and for a bind that was refused
}

// Limits are the properties of a provider that the model must know.
type Limits struct {
	Private  int  // bytes of private data
	InOrder  bool // everything that a call causes has happened when the call returns
	Extended bool // the provider has atomics and writes with immediate data
}

// Make returns a world without objects.
func Make(l Limits) *World { return &World{limits: l} }

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

func (e Event) attr() map[string]int {
	if e.Attr == nil {
		return nil
	}
	return *e.Attr
}

func (e Event) String() string {
	return fmt.Sprintf("{%s of %s cookie %d status %d op %d length %d private %q imm %d flags %d}",
		eventNames[e.Number], e.Source, e.Cookie, e.Status, e.Op, e.Length, e.Private, e.Imm, e.Flags)
}

// Step judges a command by its result, and changes the world accordingly. An error
// says what DAT does not allow; after an error the world must not be used again.
func (w *World) Step(c Command, r Result) error {
	w.step++
	judge, known := judges[c.Op]
	if !known {
		return fmt.Errorf("no such command: %s", c.Op)
	}
	if err := judge(w, c, r); err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	return nil
}

// judges maps each command to the method that judges it.
var judges map[string]func(*World, Command, Result) error

func init() {
	judges = map[string]func(*World, Command, Result) error{
		"pz": (*World).newZone, "pz_free": (*World).freeZone,
		"lmr": (*World).newRegion, "lmr_free": (*World).freeRegion, "lmr_query": (*World).queryRegion,
		"evd": (*World).newEVD, "evd_free": (*World).freeEVD, "evd_query": (*World).queryEVD,
		"evd_resize": (*World).resizeEVD, "dequeue": (*World).dequeue, "wait": (*World).wait, "post_se": (*World).postSE,
		"evd_modify_cno": (*World).modifyCNO, "evd_enable": (*World).enable, "evd_disable": (*World).enable,
		"evd_set_unwaitable": (*World).unwaitable, "evd_clear_unwaitable": (*World).unwaitable,
		"cno": (*World).newCNO, "cno_free": (*World).freeCNO, "cno_wait": (*World).waitCNO,
		"ep": (*World).newEP, "ep_free": (*World).freeEP, "status": (*World).status, "ep_query": (*World).queryEP,
		"modify": (*World).modify,
		"reset":  (*World).reset, "connect": (*World).connect, "disconnect": (*World).disconnect,
		"psp": (*World).newPoint, "rsp": (*World).newPoint, "csp": (*World).newPoint,
		"psp_free": (*World).freePoint, "rsp_free": (*World).freePoint, "csp_free": (*World).freePoint,
		"sp_query": (*World).queryPoint, "handoff": (*World).handoff,
		"accept": (*World).accept, "reject": (*World).reject, "cr_query": (*World).queryCR,
		"rmr": (*World).newWindow, "rmr_free": (*World).freeWindow, "rmr_query": (*World).queryWindow, "bind": (*World).bind,
		"srq": (*World).newSRQ, "srq_free": (*World).freeSRQ, "srq_query": (*World).querySRQ, "srq_recv": (*World).postShared,
		"srq_resize": (*World).resizeSRQ, "srq_set_lw": (*World).setLow, "async": (*World).dequeueAsync,
		"set_watermark": (*World).setWatermark, "recv_query": (*World).queryRecvs, "counters": (*World).countersEP,
		"batch": (*World).postBatch, "oneshot": (*World).newShot, "os_wait": (*World).waitShot, "os_release": (*World).releaseShot,
		"block": (*World).block, "unblock": (*World).unblock,
		"lmr_of": (*World).newRegionOf, "sync_read": (*World).sync, "sync_write": (*World).sync,
		"dup_connect": (*World).dupConnect, "common_connect": (*World).connect,
		"recv": (*World).postRecv, "send": (*World).postRequest, "write": (*World).postRequest,
		"read": (*World).postRequest, "write_imm": (*World).postRequest,
		"send_inv": (*World).postRequest, "read_rmr": (*World).postRequest,
		"fetch_add": (*World).postRequest, "cmp_swap": (*World).postRequest,
	}
}

// Commands returns the names of all commands.
func Commands() (names []string) {
	for n := range judges {
		names = append(names, n)
	}
	return names
}

// object returns an object by its name; nil for none.
func object[T any](all []*T, kind byte, name string) *T {
	if i := Index(kind, name); i >= 0 && i < len(all) {
		return all[i]
	}
	return nil
}

// indexOf returns the number of an object; -1 for nil.
func indexOf[T any](all []*T, o *T) int {
	for i := range all {
		if all[i] == o && o != nil {
			return i
		}
	}
	return -1
}

// check compares values with what they should be: pairs of a name and a number.
func (r Result) check(want ...any) error {
	for i := 0; i < len(want); i += 2 {
		name := want[i].(string)
		if got := r.Values[name]; got != want[i+1].(int) {
			return fmt.Errorf("%s is %d, should be %d", name, got, want[i+1])
		}
	}
	return nil
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
