//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

import (
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"godat/hw"
)

var _ hw.Pairer = (*device)(nil)

// ownPath is this side's part of the way to a peer that pairs.
type ownPath struct {
	gid       gid
	pkeyIndex int
	values    hw.PairAddr
	ethernet  bool

	// Of a queue pair's, guarded by its mu.
	farewells
	probes time.Duration // how often; 0: never
	looks  int           // alarms since the last probe
}

// Local implements [hw.Pairer].
func (d *device) Local(qp hw.QP) (hw.PairAddr, error) {
	const op = "ibv.Local"
	q, err := d.pairable(op, qp)
	if err != nil {
		return hw.PairAddr{}, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	own, err := q.ownPath(op)
	if err != nil {
		return hw.PairAddr{}, err
	}
	return own.values, nil
}

// pairable is the device's queue pair behind qp.
func (d *device) pairable(op string, qp hw.QP) (*queuePair, error) {
	q, _ := qp.(*queuePair)
	switch {
	case d.transport.iwarp:
		return nil, hw.Errorf(op, hw.ModelNotSupported, hw.NoSubtype, "%s is an iWARP device, which connects by TCP alone", d.name)
	case q == nil || q.dev != d:
		return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandleEP, "not a queue pair of this device")
	}
	return q, nil
}

// ownPath finds this side's part of the way, once in each life, with mu held.
func (q *queuePair) ownPath(op string) (*ownPath, error) {
	if q.closed {
		return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandleEP, "the queue pair is closed")
	}
	if q.own == nil {
		own, err := q.dev.ownPath(op)
		if err != nil {
			return nil, err
		}
		own.values.QPN, own.values.PSN = uint32(q.rings.qp_num), rand.Uint32N(hw.MaxPSN+1)
		own.place = q.parts.zone.farewellPlace()
		own.values.Farewell = own.place.note().packed()
		q.own = own
	}
	return q.own, nil
}

// ownPath finds the device's part of the way, from its parameters.
func (d *device) ownPath(op string) (*ownPath, error) {
	var a C.struct_gv_device_attr
	var attr C.struct_gv_port_attr
	if err := result(op, C.gd_query(d.c, &a, &attr, C.int(d.params.port))); err != nil {
		return nil, err
	}
	dir := filepath.Join("/sys/class/infiniband", d.name, "ports", strconv.Itoa(d.params.port))
	own := &ownPath{ethernet: attr.link_layer == C.GV_LINK_LAYER_ETHERNET}
	var err error
	if own.gid, err = d.foundGID.choose(op, dir, d.params.gid, d.addresses[0]); err != nil {
		return nil, err
	}
	if d.params.pkey != 0 {
		if own.pkeyIndex, err = (port{pkeys: readPKeys(dir)}).pkeyIndex(d.params.pkey); err != nil {
			return nil, paramError(op, "pkey", err)
		}
	}
	mtu, err := checkMTU(d.params.mtu, mtuOf(int(attr.active_mtu)))
	if err != nil {
		return nil, paramError(op, "mtu", err)
	}
	own.values = hw.PairAddr{LID: uint16(attr.lid), GID: own.gid.addr, MTU: mtu}
	return own, nil
}

// Pair implements [hw.Pairer]. On Ethernet the kernel asks the network for the peer's
// hardware address, for a second at most.
func (d *device) Pair(qp hw.QP, peer hw.PairAddr) error {
	const op = "ibv.Pair"
	if err := peer.Check(op); err != nil {
		return err
	}
	q, err := d.pairable(op, qp)
	if err != nil {
		return err
	}
	q.mu.Lock()
	own, err := q.ownPath(op)
	if err == nil && q.at() != phaseNew {
		err = hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "the queue pair is not new or reset")
	}
	if err != nil {
		q.mu.Unlock()
		return err
	}
	if err := own.reaches(op, peer); err != nil {
		q.mu.Unlock()
		return err
	}
	path := own.to(&d.params, peer)
	q.up.reads_in, q.up.reads_out = C.uint8_t(q.cfg.ReadsIn), C.uint8_t(q.cfg.ReadsOut)
	C.gd_hold(q.c, true) // no poll hands on a completion before Established was told
	if errno := C.gd_pair(q.c, &path, &q.up, d.access); errno != 0 {
		C.gd_hold(q.c, false)
		q.mu.Unlock()
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "%v: the device finds no way there from GID %v, MTU %d: %w",
			peer, own.gid, own.values.MTU, syscall.Errno(errno))
	}
	q.become(phaseConnecting)
	own.peer, own.probes = unpacked(peer.Farewell), d.params.probes(peer)
	life := q.life
	q.mu.Unlock()
	up := q.established(life, hw.ConnInfo{Local: own.values, Remote: peer, ReadsIn: q.cfg.ReadsIn, ReadsOut: q.cfg.ReadsOut})
	if up && (own.probes > 0 || peer.Farewell != 0) {
		d.watcher.setAlarm(alarmPair, q, life)
	}
	return nil
}

// reaches refuses a peer to which no way leads from this side's GID, in words: the kernel only
// says "invalid argument".
func (o *ownPath) reaches(op string, peer hw.PairAddr) error {
	own, theirs := netip.AddrFrom16(o.gid.addr), netip.AddrFrom16(peer.GID)
	switch {
	case !o.ethernet:
		return nil
	case peer.GID == [16]byte{}:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "%v: the peer gave no GID, which Ethernet needs: one like %v here", peer, own.Unmap())
	case own.Is4In6() != theirs.Is4In6():
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "%v: GID %v and %v here are not of the same IP version: choose another GID there, or by the parameter gid here",
			peer, theirs.Unmap(), own.Unmap())
	}
	return nil
}

// to is the way to a peer.
func (o *ownPath) to(p *params, peer hw.PairAddr) C.struct_gd_path {
	mtu := o.values.MTU
	if peer.MTU != 0 {
		mtu = min(mtu, peer.MTU)
	}
	path := C.struct_gd_path{
		port: C.uint8_t(p.port), sgid_index: C.uint8_t(o.gid.index), hop_limit: C.uint8_t(p.hopLimit),
		traffic_class: C.uint8_t(p.trafficClass), sl: C.uint8_t(p.serviceLevel), mtu: C.uint8_t(mtuCode(mtu)),
		dlid: C.uint16_t(peer.LID), pkey_index: C.uint16_t(o.pkeyIndex), flow_label: C.uint32_t(p.flowLabel),
		global: C.bool(o.ethernet || peer.LID == 0 || p.gid.index >= 0),
		qpn:    C.uint32_t(peer.QPN), rq_psn: C.uint32_t(peer.PSN), sq_psn: C.uint32_t(o.values.PSN),
	}
	for i, b := range peer.GID {
		path.dgid[i] = C.uint8_t(b)
	}
	return path
}

// checkPath makes Open refuse parameters of the way that the port does not have.
func (d *device) checkPath() error {
	if !d.params.pathed || d.transport.iwarp {
		return nil
	}
	_, err := d.ownPath(opOpen)
	return err
}

// No connection manager tells a pair that its peer is gone. So the watcher looks at each pair
// again and again: whether the peer's farewell has come, and, once in the time keepalive,
// whether the peer still answers. The probe is a write of no bytes, which fails if it does not.

// lookForPeer handles an alarm of a life of a pair.
func (q *queuePair) lookForPeer(life uint64) {
	if !q.lockAt(life, phaseUp) {
		return
	}
	if q.own.heard() {
		q.mu.Unlock()
		q.lost(life, hw.ReasonPeer, nil)
		return
	}
	w := &q.dev.watcher
	q.own.looks++
	if every := q.own.probes; every > 0 && int64(q.own.looks)*int64(w.delay(alarmPair)) >= int64(every) {
		q.own.looks = 0
		C.gd_probe(q.c)
	}
	w.setAlarm(alarmPair, q, life)
	q.mu.Unlock()
}
