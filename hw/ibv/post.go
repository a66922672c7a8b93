//go:build linux && cgo

package ibv

// #cgo noescape gd_post_send
// #cgo nocallback gd_post_send
// #cgo noescape gd_post_recv
// #cgo nocallback gd_post_recv
// #include "shim.h"
import "C"

import (
	"syscall"
	"unsafe"

	"godat/hw"
)

const (
	opPostSend = "ibv.PostSend"
	opPostRecv = "ibv.PostRecv"
)

// PostSend implements [hw.QP]. It writes the requests into the ring in C's memory; one
// call into C posts up to GD_BATCH of them.
func (q *queuePair) PostSend(wrs []hw.SendWR) (n int, err error) {
	if len(wrs) == 0 {
		return 0, nil
	}
	if p := q.at(); p == phaseNew || p == phaseConnecting && !q.upEarly() {
		return 0, hw.Errorf(opPostSend, hw.InvalidState, hw.StateEPUnconnected, "the queue pair is not connected yet")
	}
	for n < len(wrs) && err == nil {
		var k int
		for k < C.GD_BATCH && n+k < len(wrs) && err == nil {
			if err = q.fillSend(q.sendPos+uint32(k), &wrs[n+k]); err == nil {
				k++
			}
		}
		if k == 0 {
			break
		}
		var taken C.uint32_t
		errno := C.gd_post_send(q.c, C.uint32_t(k), &taken)
		q.sendPos += uint32(taken)
		n += int(taken)
		if int(taken) < k {
			err = postError(opPostSend, errno)
		}
	}
	return n, err
}

// fillSend writes a request into the slot of position pos.
func (q *queuePair) fillSend(pos uint32, wr *hw.SendWR) error {
	if !q.sendable.Has(wr.Op) || wr.Op >= 32 {
		return hw.Errorf(opPostSend, hw.ModelNotSupported, hw.NoSubtype, "%s has no %v", q.dev.name, wr.Op)
	}
	r := &q.rings
	i := pos & uint32(r.send_mask)
	s := (*C.struct_gd_slot)(unsafe.Add(unsafe.Pointer(r.send_slots), uintptr(i)*C.sizeof_struct_gd_slot))
	sges := segmentsOf(r.send_sges, i, uint32(r.send_segs))
	if len(wr.SGL) > q.cfg.SendSegments {
		return tooManySegments(opPostSend, q.cfg.SendSegments)
	}
	nsge, total := fillSegments(sges, wr.SGL)
	s.id = C.uint64_t(wr.ID)
	s.op, s.flags, s.kind = C.uint8_t(wr.Op), C.uint8_t(wr.Flags), C.GD_USER
	s.nsge, s.len = C.uint16_t(nsge), C.uint64_t(total)
	s.imm, s.rkey, s.raddr = C.uint32_t(wr.Imm), C.uint32_t(wr.RKey), C.uint64_t(wr.RemoteAddr)
	s.operand, s.compare = C.uint64_t(wr.Operand), C.uint64_t(wr.Compare)
	if wr.Op == hw.OpBind {
		return q.fillBind(s, wr.Bind)
	}
	return nil
}

// segmentsOf are the places for the segments of slot i, in C's memory.
func segmentsOf(base *C.struct_gv_sge, i, per uint32) []hw.SGE {
	at := unsafe.Add(unsafe.Pointer(base), uintptr(i)*uintptr(per)*C.sizeof_struct_gv_sge)
	return unsafe.Slice((*hw.SGE)(at), per)
}

// fillSegments copies the segments that are not empty.
func fillSegments(dst, src []hw.SGE) (n int, total uint64) {
	for _, e := range src {
		if e.Len > 0 {
			dst[n] = e
			n++
			total += uint64(e.Len)
		}
	}
	return n, total
}

func tooManySegments(op string, most int) error {
	return hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "more than %d segments", most)
}

// PostRecv implements [hw.QP].
func (q *queuePair) PostRecv(wrs []hw.RecvWR) (n int, err error) {
	if q.parts.srq != nil {
		return 0, hw.Errorf(opPostRecv, hw.InvalidState, hw.NoSubtype, "receives come from a shared queue")
	}
	for n < len(wrs) && err == nil {
		var k int
		for k < C.GD_BATCH && n+k < len(wrs) && err == nil {
			if err = q.fillRecv(q.recvPos+uint32(k), &wrs[n+k]); err == nil {
				k++
			}
		}
		if k == 0 {
			break
		}
		var taken C.uint32_t
		errno := C.gd_post_recv(q.c, C.uint32_t(k), &taken)
		q.recvPos += uint32(taken)
		n += int(taken)
		if int(taken) < k {
			err = postError(opPostRecv, errno)
		}
	}
	return n, err
}

func (q *queuePair) fillRecv(pos uint32, wr *hw.RecvWR) error {
	r := &q.rings
	i := pos & uint32(r.recv_mask)
	s := (*C.struct_gd_slot)(unsafe.Add(unsafe.Pointer(r.recv_slots), uintptr(i)*C.sizeof_struct_gd_slot))
	return fillRecvSlot(s, segmentsOf(r.recv_sges, i, uint32(r.recv_segs)), wr, q.cfg.RecvSegments)
}

// fillRecvSlot writes a receive into a slot of a receive queue, shared or not.
func fillRecvSlot(s *C.struct_gd_slot, sges []hw.SGE, wr *hw.RecvWR, most int) error {
	if len(wr.SGL) > most {
		return tooManySegments(opPostRecv, most)
	}
	nsge, total := fillSegments(sges, wr.SGL)
	s.id = C.uint64_t(wr.ID)
	s.op, s.flags, s.kind = C.uint8_t(hw.OpRecv), 0, C.GD_USER
	s.nsge, s.len = C.uint16_t(nsge), C.uint64_t(total)
	return nil
}

// postError is the error of a post of which the device did not take all requests.
func postError(op string, errno C.int) error {
	if errno := syscall.Errno(errno); errno != syscall.ENOMEM {
		return internalError(op, errno)
	}
	return hw.Errorf(op, hw.InsufficientResources, hw.ResourceTEP, "the queue is full")
}
