package provider

import (
	"math/rand/v2"
	"sync"
	"unsafe"

	"godat/hw"
)

// Provider is a host with any number of devices, which reach each other. Its zero value is
// ready. Its lock guards everything that the package has.
type Provider struct {
	mu        sync.Mutex
	regions   map[uint32]*region
	listeners map[uint64]*listener
	lastQual  uint64
	news      []func() // calls of sinks and facts that are due, in order
	telling   bool     // a goroutine makes them
}

// unlock makes the calls that are due and releases the lock. The lock is free during each
// call, since an owner that hears of something may call a queue pair at once. One goroutine
// at a time makes calls, so they keep their order; the others leave theirs to it.
func (p *Provider) unlock() {
	for !p.telling && len(p.news) > 0 {
		call := p.news[0]
		p.news, p.telling = p.news[1:], true
		p.mu.Unlock()
		call()
		p.mu.Lock()
		p.telling = false
	}
	p.mu.Unlock()
}

// tell has a call made when the lock is released.
func (p *Provider) tell(call func()) { p.news = append(p.news, call) }

// complete has a completion handed to a sink.
func (p *Provider) complete(to hw.Sink, wc hw.WC) { p.tell(func() { to.Complete([]hw.WC{wc}) }) }

// Name is the provider's name.
func (p *Provider) Name() string { return "small" }

// Open opens a device of the name in cfg.
func (p *Provider) Open(cfg hw.OpenConfig) (hw.Device, error) {
	for key := range cfg.Params {
		return nil, hw.Errorf("Open", hw.InvalidParameter, hw.Arg1, "no parameter %q", key)
	}
	p.mu.Lock()
	defer p.unlock()
	if p.regions == nil {
		p.regions, p.listeners = map[uint32]*region{}, map[uint64]*listener{}
	}
	return &device{p: p}, nil
}

const most = 1 << 20 // of whatever has no natural limit

// device is one opened device.
type device struct {
	p    *Provider
	open int // zones, queue pairs, regions and listeners
}

func (d *device) Attr() hw.Attr {
	return hw.Attr{
		Provider: d.p.Name(), Device: "only", Address: address, Vendor: "godat",
		Ops:    hw.Ops(hw.OpSend, hw.OpWrite, hw.OpRead),
		MaxQPs: most, MaxMRs: most, MaxZones: most, MaxDepth: most,
		MaxSendSegments: 16, MaxRecvSegments: 16, MaxReadSegments: 16, MaxReadsIn: most, MaxReadsOut: most,
		MaxMessage: 1 << 30, MaxRDMA: 1 << 30, MaxMR: 1 << 40, MaxPrivate: 256, Alignment: 64,
	}
}

func (d *device) Close() error {
	d.p.mu.Lock()
	defer d.p.unlock()
	if d.open > 0 {
		return hw.Errorf("Device.Close", hw.InvalidState, hw.StateIAInUse, "%d objects are open", d.open)
	}
	return nil
}

// zone is a protection zone.
type zone struct {
	dev   *device
	users int // queue pairs and regions
}

func (d *device) NewZone() (hw.Zone, error) {
	d.p.mu.Lock()
	defer d.p.unlock()
	d.open++
	return &zone{dev: d}, nil
}

func (z *zone) Close() error {
	z.dev.p.mu.Lock()
	defer z.dev.p.unlock()
	if z.users > 0 {
		return hw.Errorf("Zone.Close", hw.InvalidState, hw.StatePZInUse, "%d objects use it", z.users)
	}
	z.dev.open--
	return nil
}

// use counts one user more, or less, of the zone behind a handle. The caller holds the lock.
func (d *device) use(h hw.Zone, n int) (*zone, error) {
	z, ok := h.(*zone)
	if !ok || z == nil || z.dev != d {
		return nil, hw.Errorf("use", hw.InvalidHandle, hw.HandlePZ, "not a zone of this device")
	}
	z.users += n
	d.open += n
	return z, nil
}

// region is registered memory. One key names it here and at peers.
type region struct {
	zone *zone
	mem  []byte
	priv hw.Privileges
	key  uint32
}

func (d *device) Register(h hw.Zone, mem []byte, priv hw.Privileges) (hw.MR, error) {
	if len(mem) == 0 {
		return nil, hw.Errorf("Register", hw.LengthError, hw.NoSubtype, "no memory")
	}
	if bad := priv &^ (hw.AllPrivileges | hw.RemoteAtomic); bad != 0 {
		return nil, hw.Errorf("Register", hw.InvalidParameter, hw.Arg3, "privileges %v", bad)
	}
	d.p.mu.Lock()
	defer d.p.unlock()
	z, err := d.use(h, 1)
	if err != nil {
		return nil, err
	}
	r := &region{zone: z, mem: mem, priv: priv}
	for r.key == 0 || d.p.regions[r.key] != nil {
		r.key = rand.Uint32() // a peer can't guess it
	}
	d.p.regions[r.key] = r
	return r, nil
}

func (r *region) LKey() uint32 { return r.key }

func (r *region) RKey() uint32 {
	if r.priv&(hw.RemoteRead|hw.RemoteWrite) == 0 {
		return 0
	}
	return r.key
}

func (r *region) Bound() bool { return false }

// Deregister waits for accesses in progress by taking the lock, under which they are made.
func (r *region) Deregister() error {
	p := r.zone.dev.p
	p.mu.Lock()
	defer p.unlock()
	if p.regions[r.key] != r {
		return hw.Errorf("Deregister", hw.InvalidHandle, hw.HandleLMR, "the region is gone")
	}
	delete(p.regions, r.key)
	_, err := r.zone.dev.use(r.zone, -1)
	return err
}

// reach returns the n bytes at addr, if the key is of the zone and allows the access.
func (p *Provider) reach(z *zone, addr uint64, n, key uint32, need hw.Privileges) ([]byte, bool) {
	r := p.regions[key]
	if r == nil || r.zone != z || r.priv&need != need {
		return nil, false
	}
	from := addr - uint64(uintptr(unsafe.Pointer(unsafe.SliceData(r.mem))))
	if from > uint64(len(r.mem)) || uint64(n) > uint64(len(r.mem))-from {
		return nil, false
	}
	return r.mem[from:][:n], true
}

// gather is reach of all segments; n is their length together.
func (p *Provider) gather(z *zone, sgl []hw.SGE, need hw.Privileges) (parts [][]byte, n uint64, ok bool) {
	for _, s := range sgl {
		n += uint64(s.Len)
	}
	for _, s := range sgl {
		if s.Len == 0 {
			continue
		}
		part, ok := p.reach(z, s.Addr, s.Len, s.LKey, need)
		if !ok {
			return nil, n, false
		}
		parts = append(parts, part)
	}
	return parts, n, true
}
