package loop

import (
	"unsafe"

	"godat/hw"
	"godat/internal/yield"
)

// zone is a protection zone. The device's lock guards its counts.
type zone struct {
	dev    *device
	closed bool
	users  int // queue pairs, regions, shared queues and windows
}

// NewZone makes a protection zone.
func (d *device) NewZone() (hw.Zone, error) {
	if err := d.use("loop.NewZone", &d.zones, maxZones, hw.ResourceProtectionDomain); err != nil {
		return nil, err
	}
	return &zone{dev: d}, nil
}

// Close fails with PZ_IN_USE while a queue pair or region uses the zone.
func (z *zone) Close() error {
	const op = "loop.Zone.Close"
	if z == nil {
		return hw.Errorf(op, hw.InvalidHandle, hw.HandlePZ, "no zone")
	}
	z.dev.mu.Lock()
	defer z.dev.mu.Unlock()
	switch {
	case z.closed:
		return hw.Errorf(op, hw.InvalidHandle, hw.HandlePZ, "the zone is closed")
	case z.users > 0:
		return hw.Errorf(op, hw.InvalidState, hw.StatePZInUse, "%d queue pairs and regions use it", z.users)
	}
	z.closed = true
	z.dev.zones--
	return nil
}

// useZone finds the device's zone behind a handle and counts one more user of it.
func (d *device) useZone(op string, h hw.Zone) (*zone, error) {
	z, ok := h.(*zone)
	if !ok || z == nil || z.dev != d {
		return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandlePZ, "not a zone of this device")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if z.closed {
		return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandlePZ, "the zone is closed")
	}
	z.users++
	return z, nil
}

// region is what a key stands for: memory, who may reach it, and how. It never
// changes in place; to take it out of the table is to kill it. One key serves as LKey and
// RKey: a peer that guesses the key of a local region fails on its privileges.
type region struct {
	base unsafe.Pointer
	size uint64
	addr uint64 // of the first byte, as requests name it
	zone *zone  // or a queue pair's scope; nil before a window is bound
	priv hw.Privileges

	window *window // whose key it is; nil for a region's own
}

// mr is the handle of a registered region.
type mr struct {
	dev  *device
	zone *zone
	key  uint32
	priv hw.Privileges

	// The device's bindMu guards these.
	dead  bool
	bound int // windows
}

const remote = hw.RemoteRead | hw.RemoteWrite | hw.RemoteAtomic

// Register enters mem in the device's table.
func (d *device) Register(h hw.Zone, mem []byte, priv hw.Privileges) (hw.MR, error) {
	const op = "loop.Register"
	if len(mem) == 0 || uint64(len(mem)) > maxMR {
		return nil, hw.Errorf(op, hw.LengthError, hw.NoSubtype, "%d bytes", len(mem))
	}
	if bad := priv &^ (hw.AllPrivileges | hw.RemoteAtomic); bad != 0 {
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg3, "privileges %v", bad)
	}
	z, err := d.useZone(op, h)
	if err != nil {
		return nil, err
	}
	key, _, err := d.keys.Insert(func(uint32) region {
		base := unsafe.Pointer(unsafe.SliceData(mem))
		return region{base: base, size: uint64(len(mem)), addr: uint64(uintptr(base)), zone: z, priv: priv}
	})
	if err != nil {
		d.unuse(&z.users)
		return nil, hw.Errorf(op, hw.InsufficientResources, hw.ResourceMemoryRegion, "%w", err)
	}
	return &mr{dev: d, zone: z, key: key, priv: priv}, nil
}

func (m *mr) LKey() uint32 { return m.key }

func (m *mr) RKey() uint32 {
	if m.priv&remote == 0 {
		return 0
	}
	return m.key
}

// Deregister takes the key out of the table and waits until every pipe that was
// held then has let go or moved on: the next thing each does with a key is to
// look it up, and then the key is dead. It fails with LMR_IN_USE while a window
// is bound to the region.
func (m *mr) Deregister() error {
	const op = "loop.Deregister"
	if m == nil {
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleLMR, "no region")
	}
	m.dev.bindMu.Lock()
	dead, bound := m.dead, m.bound
	m.dead = dead || bound == 0
	m.dev.bindMu.Unlock()
	switch {
	case dead:
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleLMR, "the region is gone")
	case bound > 0:
		return hw.Errorf(op, hw.InvalidState, hw.StateLMRInUse, "%d windows are bound to it", bound)
	}
	m.dev.keys.Remove(m.key)
	yield.Point()
	m.dev.grace()
	m.dev.unuse(&m.zone.users)
	return nil
}

// busy is a pipe in the middle of something, and its word at that time.
type busy struct {
	p *pipe
	w uint64
}

// grace waits until nothing that was in progress when it was called still is.
// The key was removed before a word is read here, and a pipe is taken, or taken
// up again, by a write to its word before it looks a key up: so a pipe seen idle
// here finds the key dead.
func (d *device) grace() {
	for _, b := range d.inProgress(nil) {
		for spin := 0; !b.p.movedOn(b.w); spin++ {
			rest(spin)
		}
	}
}

// inProgress is what is in progress, but for one pipe.
func (d *device) inProgress(but *pipe) (all []busy) {
	d.pipesMu.Lock()
	defer d.pipesMu.Unlock()
	for _, p := range d.pipes {
		if w := p.word.Load(); w&held != 0 && p != but {
			all = append(all, busy{p, w})
		}
	}
	return all
}

// addPipe adds a pipe to those that grace looks at, before anybody can run it.
func (d *device) addPipe(p *pipe) {
	d.pipesMu.Lock()
	defer d.pipesMu.Unlock()
	p.places[p.side(d)] = len(d.pipes)
	d.pipes = append(d.pipes, p)
}

// dropPipe removes a pipe that touches no memory any more.
func (d *device) dropPipe(p *pipe) {
	d.pipesMu.Lock()
	defer d.pipesMu.Unlock()
	i, last := p.places[p.side(d)], len(d.pipes)-1
	moved := d.pipes[last]
	d.pipes[i] = moved
	moved.places[moved.side(d)] = i
	d.pipes[last] = nil
	d.pipes = d.pipes[:last]
}
