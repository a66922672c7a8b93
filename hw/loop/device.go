package loop

import (
	"godat/hw"
	"godat/hw/internal/soft"
	"godat/internal/workers"
)

// The device's limits, beside those that all software devices have.
const (
	maxSegments = 64
	maxReads    = 1 << 16
	maxPrivate  = 512
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
	d := &device{node: attach(name), workers: startWorkers(), watch: &watch{wake: make(chan struct{}, 1), quit: make(chan struct{})}, handover: s.handover}
	d.Init(soft.Config{Provider: Name, Attr: soft.Common(hw.Attr{
		Provider: Name, Device: d.node.name, Address: d.node.name, Ops: offered,
		MaxSendSegments: maxSegments, MaxReadsIn: maxReads, MaxReadsOut: maxReads, MaxPrivate: maxPrivate,
		NotReadyWait: true, Strict: !s.waits,
	})})
	return d
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
