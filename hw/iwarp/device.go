package iwarp

import (
	"cmp"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"godat/hw"
	"godat/hw/internal/soft"
	"godat/hw/iwarp/internal/sock"
)

// The device's limits, beside those that all software devices have.
const (
	maxSegments = 32
	maxReads    = 256
)

var offered = hw.Ops(hw.OpSend, hw.OpRecv, hw.OpWrite, hw.OpRead,
	hw.OpBind, hw.OpSendInvalidate, hw.OpRecvInvalidate)

// extended holds RFC 7306's operations, for which the peer must be of this package.
var extended = hw.Ops(hw.OpWriteImm, hw.OpRecvImm, hw.OpFetchAdd, hw.OpCompareSwap)

// device is one opened device.
type device struct {
	soft.Device

	// Immutable after newDevice.
	provider *provider
	set      settings
	host     string // the local address; empty for all
	procs    int    // that the program may use
	async    func(hw.AsyncEvent)
	running  sync.WaitGroup // the goroutines of connections

	poller  sock.Poller // what consumers do; see Progress
	hangups sock.HangUps
	hooks   hooks

	waits atomic.Uint64 // of receivers, for octets

	rejecting atomic.Int64 // rejected connections that wait for the peer to close

	hookTime time.Duration // how long Close waits for functions of the program's
	leftOne  atomic.Bool   // Close has left one behind

	untraced sync.Once // why a connection has no trace was said
}

func newDevice(p *provider, host string, set settings, async func(hw.AsyncEvent)) *device {
	if host == Name {
		host = ""
	}
	d := &device{provider: p, set: set, host: host, procs: runtime.GOMAXPROCS(0), async: async, hookTime: hookTime}
	d.Init(soft.Config{Provider: Name, Attr: d.attributes(), Split: true})
	return d
}

// ownAddress is the address under which a peer finds the device. If the device has all
// addresses, it is the first address of an interface that a peer may reach.
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

// attributes are the device's.
func (d *device) attributes() hw.Attr {
	ops := offered
	if d.set.extensions {
		ops |= extended
	}
	return soft.Common(hw.Attr{
		Provider: d.provider.Name(), Device: cmp.Or(d.host, Name), Address: ownAddress(d.provider.cfg.Address, d.host),
		Ops: ops, MaxSendSegments: maxSegments, MaxReadsIn: maxReads, MaxReadsOut: maxReads, MaxPrivate: d.set.private,
		ExposesSink: true,
	})
}

// Progress implements [hw.Progresser].
func (d *device) Progress() { d.poller.Progress() }

// PollCounts implements [hw.PollCounter].
func (d *device) PollCounts() hw.PollCounts {
	found, empty := d.poller.Counts()
	return hw.PollCounts{Found: found, Empty: empty, Consumers: found + empty, Waits: d.waits.Load()}
}

// Close closes the device, and waits for connections that are still ending. It fails if a function of the program's has
// not returned, and then closes the device but for that function's goroutine; the next call waits for it once more.
func (d *device) Close() error {
	const op = "Close"
	if !d.leftOne.Load() {
		if err := d.End(); err != nil {
			return err
		}
		d.running.Wait()
		d.poller.Close()
		d.hangups.Close()
	}
	name := d.hooks.wait(d.hookTime)
	d.leftOne.Store(name != "")
	if name != "" {
		return d.Errorf(op, hw.InvalidState, hw.NoSubtype, "%s has not returned in %v: all else is closed", name, d.hookTime)
	}
	return nil
}
