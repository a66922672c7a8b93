package loop

import (
	"math"

	"godat/hw"
	"godat/hw/internal/soft"
	"godat/internal/workers"
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
	alignment   = soft.CacheLine
)

var offered = hw.Ops(hw.OpSend, hw.OpRecv, hw.OpWrite, hw.OpRead,
	hw.OpWriteImm, hw.OpRecvImm, hw.OpFetchAdd, hw.OpCompareSwap,
	hw.OpBind, hw.OpSendInvalidate, hw.OpRecvInvalidate, hw.OpReadToRMR)

// device is one opened device.
type device struct {
	soft.Device // its locks are leaves: a pipe's holder takes them

	// Immutable after newDevice.
	node     *node
	workers  *workers.Pool[pipe]
	watch    *watch
	handover uint32 // see settings
}

func newDevice(name string, s settings) *device {
	d := &device{node: attach(name), workers: startWorkers(), watch: newWatch(), handover: s.handover}
	attr := attributes(d.node.name)
	attr.Strict = !s.waits
	d.Init(soft.Config{Provider: Name, Attr: attr})
	return d
}

// attributes are those of a device of that name. MaxCQs and MaxCQDepth mean nothing,
// because a device delivers completions by itself.
func attributes(name string) hw.Attr {
	return hw.Attr{
		Provider:        Name,
		Device:          name,
		Address:         name,
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

// Close closes the device and ends its goroutines.
func (d *device) Close() error {
	if err := d.End(); err != nil {
		return err
	}
	d.watch.stop()
	d.workers.Stop()
	d.node.detach()
	return nil
}

// Listen enters the qualifier under the device's name. Connect itself calls OnRequest,
// so no request is ever on its way and the backlog has no effect. A Connect that has
// found the listener before the listener's Close may call OnRequest after Close has
// returned.
func (d *device) Listen(cfg hw.ListenConfig) (hw.Listener, error) {
	const op = "loop.Listen"
	if cfg.OnRequest == nil || cfg.Backlog < 0 {
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "no OnRequest, or a negative backlog")
	}
	if cfg.Addr != "" && cfg.Addr != d.node.name && !isHere(cfg.Addr) {
		return nil, hw.Errorf(op, hw.InvalidAddress, hw.AddressUnsupported, "%q is not this device's", cfg.Addr)
	}
	if err := d.Use("Listen", soft.Listeners); err != nil {
		return nil, err
	}
	ln := &listener{dev: d, qual: cfg.Qual, onRequest: cfg.OnRequest}
	if err := d.node.listen(ln); err != nil {
		d.Unuse(soft.Listeners)
		return nil, err
	}
	return ln, nil
}
