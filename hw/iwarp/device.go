package iwarp

import (
	"math"
	"net"
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
	maxSegments = 32
	maxReads    = 256
	maxMessage  = 1 << 31
	maxMR       = 1 << 40
	alignment   = 64
)

var offered = hw.Ops(hw.OpSend, hw.OpRecv, hw.OpWrite, hw.OpRead, hw.OpSendInvalidate, hw.OpRecvInvalidate)

// extended are RFC 7306's operations, for which the peer must be of our own kind.
var extended = hw.Ops(hw.OpWriteImm, hw.OpRecvImm, hw.OpFetchAdd, hw.OpCompareSwap)

// device is one opened device.
type device struct {
	// Immutable after newDevice.
	provider *Provider
	set      settings
	host     string // the local address; empty for all
	address  string
	keys     *keys.Table[region]
	running  sync.WaitGroup // goroutines

	mu        sync.Mutex
	closed    bool
	qps       int
	zones     int
	listeners int
	asked     map[*request]struct{} // handed out and not answered

	livesMu sync.Mutex         // a leaf
	lives   map[*life]struct{} // those that may touch memory
}

func newDevice(p *Provider, host string, set settings) *device {
	if host == Name {
		host = ""
	}
	return &device{
		provider: p,
		set:      set,
		host:     host,
		address:  ownAddress(p.cfg.Address, host),
		keys:     keys.New[region](2 * maxMRs),
		asked:    make(map[*request]struct{}),
		lives:    make(map[*life]struct{}),
	}
}

// ownAddress is how a peer finds the device: for all addresses, the first of an
// interface that a peer may reach.
func ownAddress(configured, host string) string {
	switch {
	case configured != "":
		return configured
	case host != "":
		return host
	}
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	return "127.0.0.1"
}

// Attr reports the limits. MaxCQs is without meaning: the device completes by
// itself.
func (d *device) Attr() hw.Attr {
	name := d.host
	if name == "" {
		name = Name
	}
	ops := offered
	if d.set.extensions {
		ops |= extended
	}
	return hw.Attr{
		Provider:        d.provider.Name(),
		Device:          name,
		Address:         d.address,
		Vendor:          "godat",
		Hardware:        [2]int{1, 0},
		Firmware:        [2]int{1, 0},
		Ops:             ops,
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
		MaxPrivate:      d.set.private,
		Alignment:       alignment,
	}
}

// Close ends the device. Connection requests that were handed out and not
// answered are refused, and connections that are ending get the time for it. It
// fails with IA_IN_USE while a zone, region, queue pair or listener lives.
func (d *device) Close() error {
	const op = "iwarp.Close"
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
			_ = r.conn.Close()
		}
	}
	d.running.Wait()
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

// addLife and dropLife keep those that grace looks at.
func (d *device) addLife(l *life) {
	d.livesMu.Lock()
	d.lives[l] = struct{}{}
	d.livesMu.Unlock()
}

func (d *device) dropLife(l *life) {
	d.livesMu.Lock()
	delete(d.lives, l)
	d.livesMu.Unlock()
}
