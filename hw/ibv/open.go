//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

import (
	"errors"
	"io/fs"
	"math"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"godat/hw"
)

// load loads the libraries at its first call; later calls return the same error.
var load = sync.OnceValue(func() error {
	var missing *C.char
	if C.gd_load(&missing) == 0 {
		return nil
	}
	return hw.Errorf(opOpen, hw.ProviderNotFound, hw.NoSubtype,
		"%s: install the RDMA libraries (libibverbs1, librdmacm1 and ibverbs-providers on Debian; libibverbs and librdmacm on Fedora)",
		C.GoString(missing))
})

func open(cfg hw.OpenConfig, p params) (hw.Device, error) {
	if err := load(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(cmFile); err != nil {
		return nil, noFile(cmFile)
	}
	d := &device{
		params: p, async: cfg.Async,
		qps: make(map[uint64]*queuePair), cqs: make(map[uint64]*completionQueue),
		srqs: make(map[uint64]*sharedQueue), conns: make(map[uint64]*conn), listeners: make(map[uint64]*listener),
	}
	if d.async == nil {
		d.async = func(hw.AsyncEvent) {}
	}
	if err := d.find(cfg.Device); err != nil {
		return nil, err
	}
	for _, step := range []func() error{d.describe, d.findAddresses, d.checkPath, d.openSleeper, d.postSentry} {
		if err := step(); err != nil {
			d.sleeper.close()
			C.gd_close(d.c)
			return nil, err
		}
	}
	d.watcher.start(d)
	return d.public(), nil
}

// find opens the device of that name; an empty name means the first device.
func (d *device) find(name string) error {
	var n C.int
	list := C.gd_devices(&n)
	defer C.gd_free_devices(list)
	var names []string
	for _, dev := range unsafe.Slice(list, int(n)) {
		own := C.GoString(&dev.name[0])
		names = append(names, own)
		if name != "" && name != own {
			continue
		}
		c, errno := C.gd_open(dev)
		if c == nil {
			if err := closedFile(own, tryFile, folder+C.GoString(&dev.dev_name[0]), cmFile); err != nil {
				return err
			}
			return openError(own, errno)
		}
		d.c, d.name = c, own
		return nil
	}
	if err := unlisted(os.DirFS("/sys/class"), name); err != nil {
		return err
	}
	if len(names) == 0 {
		return hw.Errorf(opOpen, hw.ProviderNotFound, hw.NameNotRegistered,
			"there is no RDMA device: no adapter's kernel module is loaded (rdma link add rxe0 type rxe netdev eth0 makes one in software)")
	}
	return hw.Errorf(opOpen, hw.ProviderNotFound, hw.NameNotRegistered,
		"there is no RDMA device %q, only %s", name, strings.Join(names, ", "))
}

func openError(name string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return hw.Errorf(opOpen, hw.PrivilegesViolation, hw.NoSubtype, "%s: %w: %s", name, err, giveAccess)
	}
	return hw.Errorf(opOpen, hw.InsufficientResources, hw.ResourceDevice, "%s: %w", name, err)
}

// unlimited is the value of an [hw.Attr] count without a limit.
const unlimited = math.MaxInt32

const (
	mostReads  = 128 // the connection manager's messages have one byte for the number
	mostVector = 32  // segments of a request: more is no use, and every ring slot would pay for them
	// spareDepth is the part of the device's queue depth that the provider keeps for
	// its own requests.
	spareDepth = C.GD_BATCH
)

// describe queries the device, derives its attributes and configures the C half.
func (d *device) describe() error {
	var a C.struct_gv_device_attr
	var port C.struct_gv_port_attr
	if errno := C.gd_query(d.c, &a, &port, C.int(d.params.port)); errno != 0 {
		return openError(d.name, syscall.Errno(errno))
	}
	d.transport.iwarp = C.gd_transport(d.c) == C.GV_TRANSPORT_IWARP
	d.siw = a.vendor_id == vendorSoftIWARP
	d.transport.siw = d.siw
	d.transport.tail = d.params.tail == tailOn || d.params.tail == tailAuto && !d.transport.iwarp
	major, minor := firmware(C.GoString(&a.fw_ver[0]))
	d.attr = hw.Attr{
		Provider: provider{}.Name(), Device: d.name, Vendor: vendor(uint32(a.vendor_id)),
		Hardware: [2]int{int(a.hw_ver), 0}, Firmware: [2]int{major, minor},
		MaxQPs: limit(a.max_qp), MaxMRs: limit(a.max_mr), MaxZones: limit(a.max_pd), MaxCQs: limit(a.max_cq),
		MaxDepth: limit(a.max_qp_wr) - spareDepth, MaxCQDepth: usefulCQ(limit(a.max_cqe)),
		MaxSendSegments: min(limit(a.max_sge), mostVector), MaxRecvSegments: min(limit(a.max_sge), mostVector),
		MaxReadSegments: min(limit(a.max_sge), mostVector),
		MaxReadsIn:      min(limit(a.max_qp_rd_atom), mostReads),
		MaxReadsOut:     min(limit(a.max_qp_init_rd_atom), mostReads),
		MaxMessage:      uint64(port.max_msg_sz), MaxRDMA: uint64(port.max_msg_sz), MaxMR: min(uint64(a.max_mr_size), math.MaxInt64),
		MaxPrivate: d.transport.most(),
		Alignment:  64, NotReadyWait: !d.transport.iwarp, ExposesSink: d.transport.iwarp,
	}
	if d.transport.iwarp {
		d.attr.MaxReadSegments = max(1, min(limit(a.max_sge_rd), d.attr.MaxReadSegments))
	}
	if a.max_srq > 0 {
		d.attr.MaxSRQs, d.attr.MaxSRQDepth, d.attr.MaxSRQSegments = limit(a.max_srq), limit(a.max_srq_wr), min(limit(a.max_srq_sge), mostVector)
	}
	d.operations(&a)
	return d.configure(&port)
}

// operations derives from the device's capabilities which operations it takes.
func (d *device) operations(a *C.struct_gv_device_attr) {
	d.attr.Ops = hw.Ops(hw.OpSend, hw.OpWrite, hw.OpRead)
	d.access = C.GV_ACCESS_REMOTE_WRITE | C.GV_ACCESS_REMOTE_READ
	if a.device_cap_flags&C.GV_DEVICE_MEM_MGT != 0 {
		d.attr.Ops |= hw.Ops(hw.OpSendInvalidate)
	}
	if d.transport.iwarp {
		return // neither immediate data nor atomics
	}
	d.attr.Ops |= hw.Ops(hw.OpWriteImm)
	if a.atomic_cap != 0 {
		d.attr.Ops |= hw.Ops(hw.OpFetchAdd, hw.OpCompareSwap)
		d.access |= C.GV_ACCESS_REMOTE_ATOMIC
	}
	const windows = C.GV_DEVICE_MEM_WINDOW | C.GV_DEVICE_MW_TYPE_2B
	if d.params.windows && a.max_mw > 0 && a.device_cap_flags&windows == windows {
		d.attr.MaxWindows = limit(a.max_mw)
		d.attr.Ops |= hw.Ops(hw.OpBind)
	}
}

// vendorSoftIWARP is the vendor identifier that soft-iWARP reports.
const vendorSoftIWARP = 0x626d74

// configure gives the C half what it must know of the device.
func (d *device) configure(port *C.struct_gv_port_attr) error {
	cfg := C.struct_gd_device_config{
		max_message: C.uint64_t(d.attr.MaxMessage), max_rdma: C.uint64_t(d.attr.MaxRDMA),
		signal_all: C.bool(d.transport.iwarp), siw: C.bool(d.siw), plain_ib: port.link_layer == C.GV_LINK_LAYER_INFINIBAND,
	}
	for i, recv := range []bool{false, true} {
		for j, s := range statusTable(recv) {
			cfg.status_of[i][j] = C.uint8_t(s)
		}
	}
	if errno := C.gd_configure(d.c, &cfg); errno != 0 {
		return openError(d.name, syscall.Errno(errno))
	}
	return nil
}

func limit(n C.int) int {
	if n <= 0 || n > unlimited {
		return unlimited
	}
	return int(n)
}

// usefulCQ is the largest depth that NewCQ grants when the device's largest queue has
// most places: NewCQ keeps a third of a queue for completions of the provider's own.
func usefulCQ(most int) int { return (most - ownCompletions) / 3 * 2 }

// vendors names the vendors by the identifiers that devices report.
var vendors = map[uint32]string{0xffffff: "soft-RoCE", vendorSoftIWARP: "softiwarp", 0x2c9: "Mellanox", 0x14e4: "Broadcom", 0x8086: "Intel", 0x1425: "Chelsio"}

func vendor(id uint32) string {
	if v, ok := vendors[id]; ok {
		return v
	}
	return "vendor 0x" + strconv.FormatUint(uint64(id), 16)
}

// firmware parses the first two numbers of a firmware version; a part that is no
// number counts as 0.
func firmware(s string) (major, minor int) {
	parts := strings.SplitN(s, ".", 3)
	major, _ = strconv.Atoi(parts[0])
	if len(parts) > 1 {
		minor, _ = strconv.Atoi(parts[1])
	}
	return major, minor
}

// findAddresses collects the device's addresses: it asks the connection manager of each
// of the host's addresses whether it is one.
func (d *device) findAddresses() error {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return internalError(opOpen, err)
	}
	for _, a := range all {
		p, err := netip.ParsePrefix(a.String())
		if ip := p.Addr().Unmap(); err == nil && !ip.IsLoopback() && !ip.IsLinkLocalUnicast() && d.owns(ip) {
			d.addresses = append(d.addresses, ip)
		}
	}
	own := d.params.address.Unmap()
	switch {
	case own.IsValid() && !d.owns(own):
		return hw.Errorf(opOpen, hw.InvalidAddress, hw.AddressUnsupported, "%s is not an address of %s", own, d.name)
	case own.IsValid():
		others := slices.DeleteFunc(d.addresses, func(a netip.Addr) bool { return a == own })
		d.addresses = append([]netip.Addr{own}, others...)
	case len(d.addresses) == 0:
		return hw.Errorf(opOpen, hw.InvalidAddress, hw.AddressUnsupported,
			"%s has no IP address: give its network interface one", d.name)
	}
	d.attr.Address = d.addresses[0].String()
	return nil
}

// postSentry binds an identifier to the device: the connection manager reports a
// device's removal only to identifiers that are bound to the device.
func (d *device) postSentry() error {
	if errno := C.gd_cm_new(d.c, 0, &d.sentry); errno != 0 {
		return openError(d.name, syscall.Errno(errno))
	}
	addr := sockaddr(netip.AddrPortFrom(d.addresses[0], 0))
	if errno := C.gd_cm_bind(d.sentry, &addr); errno != 0 {
		C.gd_cm_destroy(d.sentry)
		return openError(d.name, syscall.Errno(errno))
	}
	return nil
}

// owns reports whether an address is one of the device's: whether rdma_bind_addr of
// the address selects the device.
func (d *device) owns(ip netip.Addr) bool {
	var id *C.struct_gc_id
	if C.gd_cm_new(d.c, 0, &id) != 0 {
		return false
	}
	defer C.gd_cm_destroy(id)
	addr := sockaddr(netip.AddrPortFrom(ip, 0))
	return C.gd_cm_bind(id, &addr) == 0 && C.GoString(C.gd_cm_device(id)) == d.name
}
