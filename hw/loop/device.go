package loop

import (
	"math"
	"sync"

	"godat/hw"
	"godat/internal/keys"
)

// The device's limits.
const (
	maxQPs      = 1 << 16
	maxMRs      = 1 << 20
	maxZones    = 1 << 16
	maxDepth    = 1 << 14
	maxSegments = 64
	maxReads    = 1 << 16
	maxMessage  = 1 << 31
	maxMR       = 1 << 40
	maxPrivate  = 512
	maxSRQs     = 1 << 16
	maxSRQDepth = 1 << 16
	maxWindows  = 1 << 18
	alignment   = cacheLine
)

var offered = hw.Ops(hw.OpSend, hw.OpRecv, hw.OpWrite, hw.OpRead,
	hw.OpWriteImm, hw.OpRecvImm, hw.OpFetchAdd, hw.OpCompareSwap,
	hw.OpBind, hw.OpSendInvalidate, hw.OpRecvInvalidate)

// device is one opened device.
type device struct {
	// Immutable after newDevice.
	node    *node
	keys    *keys.Table[region]
	workers *workers
	watch   *watch

	mu        sync.Mutex
	closed    bool
	qps       int
	zones     int
	listeners int
	srqs      int
	windows   int
	asked     map[*request]struct{} // handed out and not answered

	// bindMu guards what windows are bound to. It is a leaf but for the table's:
	// taken while a pipe is held.
	bindMu sync.Mutex

	pipesMu sync.Mutex // a leaf: taken while a pipe is held, holds nothing else
	pipes   []*pipe    // those that may touch the device's memory
}

func newDevice(name string) *device {
	return &device{
		node:    attach(name),
		keys:    keys.New[region](maxMRs + 2*maxWindows),
		workers: startWorkers(),
		watch:   startWatch(),
		asked:   make(map[*request]struct{}),
	}
}

// Attr reports the limits. MaxCQs is without meaning: the device completes by
// itself.
func (d *device) Attr() hw.Attr {
	return hw.Attr{
		Provider:        Name,
		Device:          d.node.name,
		Address:         d.node.name,
		Vendor:          "godat",
		Hardware:        [2]int{1, 0},
		Firmware:        [2]int{1, 0},
		Ops:             offered,
		MaxQPs:          maxQPs,
		MaxMRs:          maxMRs,
		MaxZones:        maxZones,
		MaxCQs:          math.MaxInt32,
		MaxDepth:        maxDepth,
		MaxCQDepth:      math.MaxInt32,
		MaxSendSegments: maxSegments,
		MaxRecvSegments: maxSegments,
		MaxReadSegments: maxSegments,
		MaxReadsIn:      maxReads,
		MaxReadsOut:     maxReads,
		MaxMessage:      maxMessage,
		MaxRDMA:         maxMessage,
		MaxMR:           maxMR,
		MaxPrivate:      maxPrivate,
		MaxSRQs:         maxSRQs,
		MaxWindows:      maxWindows,
		MaxSRQDepth:     maxSRQDepth,
		MaxSRQSegments:  maxSegments,
		Alignment:       alignment,
		ZeroBased:       true,
		NotReadyWait:    true,
	}
}

// Close ends the device's goroutines. Connection requests that were handed out
// and not answered are refused. It fails with IA_IN_USE while a zone, region,
// queue pair or listener lives.
func (d *device) Close() error {
	const op = "loop.Close"
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleIA, "the device is closed")
	}
	if n := d.qps + d.zones + d.listeners; n > 0 {
		d.mu.Unlock()
		return hw.Errorf(op, hw.InvalidState, hw.StateIAInUse,
			"%d queue pairs, %d zones and %d listeners", d.qps, d.zones, d.listeners)
	}
	d.closed = true
	asked := d.asked
	d.asked = nil
	d.mu.Unlock()

	for r := range asked {
		if r.answered.CompareAndSwap(false, true) {
			r.from.refuse(hw.ReasonRejected, nil)
		}
	}
	d.watch.stop()
	d.workers.stop()
	d.node.detach()
	return nil
}

// use counts one more object of a kind, within its limit. Zones count their
// regions and queue pairs themselves.
func (d *device) use(op string, count *int, limit int, sub hw.Subtype) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleIA, "the device is closed")
	}
	if *count == limit {
		return hw.Errorf(op, hw.InsufficientResources, sub, "all %d are in use", limit)
	}
	*count++
	return nil
}

func (d *device) unuse(count *int) {
	d.mu.Lock()
	*count--
	d.mu.Unlock()
}

// Listen enters the qualifier under the device's name. A request is offered from
// inside the Connect that makes it, so none is ever on its way and the backlog
// has no effect. A request offered while Close runs may arrive after it returned.
func (d *device) Listen(cfg hw.ListenConfig) (hw.Listener, error) {
	const op = "loop.Listen"
	if cfg.OnRequest == nil || cfg.Backlog < 0 {
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "no OnRequest, or a negative backlog")
	}
	if cfg.Addr != "" && cfg.Addr != d.node.name {
		return nil, hw.Errorf(op, hw.InvalidAddress, hw.AddressUnsupported, "%q is not this device's", cfg.Addr)
	}
	if err := d.use(op, &d.listeners, math.MaxInt32, hw.ResourceDevice); err != nil {
		return nil, err
	}
	ln := &listener{dev: d, qual: cfg.Qual, onRequest: cfg.OnRequest}
	if err := d.node.listen(ln); err != nil {
		d.unuse(&d.listeners)
		return nil, err
	}
	return ln, nil
}
