//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"syscall"

	"godat/hw"
)

// failure is the cause of the first completion that failed by itself, without being
// flushed; nil when none failed, or none was polled yet.
func (q *queuePair) failure() *hw.Cause {
	f := C.gd_look(q.c)
	if f.status == 0 {
		return nil
	}
	c := completionCause(int(f.status), int(f.vendor), hw.Status(f.word), bool(f.recv))
	if q.conn == nil {
		c.Text += pairText[int(f.status)]
	}
	return c
}

// eventCause is the cause that an event of the connection manager names.
func eventCause(e event) *hw.Cause {
	c := &hw.Cause{Layer: hw.LayerVerbs, Code: e.status, Text: eventNames[e.kind], Found: hw.SidePeer}
	if c.Text == "" {
		c.Text = fmt.Sprintf("event %d of the connection manager", e.kind)
	}
	if e.status < 0 {
		c.Err = syscall.Errno(-e.status)
		c.Text += ": " + c.Err.Error()
	}
	switch e.kind {
	case C.GC_EVENT_DEVICE_REMOVAL, C.GC_EVENT_ADDR_ERROR, C.GC_EVENT_ROUTE_ERROR, C.GC_EVENT_UNREACHABLE:
		c.Found = hw.SideLocal
	}
	if errors.Is(c.Err, syscall.ECONNREFUSED) { // nobody listens there
		c.Found = hw.SideLocal
	}
	return c
}

var eventNames = map[C.int]string{
	C.GC_EVENT_ADDR_ERROR:     "RDMA_CM_EVENT_ADDR_ERROR",
	C.GC_EVENT_ROUTE_ERROR:    "RDMA_CM_EVENT_ROUTE_ERROR",
	C.GC_EVENT_CONNECT_ERROR:  "RDMA_CM_EVENT_CONNECT_ERROR",
	C.GC_EVENT_UNREACHABLE:    "RDMA_CM_EVENT_UNREACHABLE",
	C.GC_EVENT_REJECTED:       "RDMA_CM_EVENT_REJECTED",
	C.GC_EVENT_DISCONNECTED:   "RDMA_CM_EVENT_DISCONNECTED",
	C.GC_EVENT_DEVICE_REMOVAL: "RDMA_CM_EVENT_DEVICE_REMOVAL",
}

// failed is the cause when a call returned an errno other than 0, and nil otherwise.
func failed(call string, errno C.int) *hw.Cause {
	err := syscall.Errno(errno)
	if err == 0 {
		return nil
	}
	c := &hw.Cause{Layer: hw.LayerVerbs, Code: int(err), Text: call + ": " + err.Error(), Err: err}
	if err == syscall.ECONNREFUSED || err == syscall.ECONNRESET {
		c.Found = hw.SidePeer
	}
	return c
}

// localCause is a cause that this side found and that has no code.
func localCause(text string, err error) *hw.Cause {
	return &hw.Cause{Layer: hw.LayerVerbs, Text: text, Err: err}
}

// asyncNames are the device's asynchronous events about a queue pair that end its connection.
var asyncNames = map[C.int]string{
	C.GV_EVENT_QP_FATAL:      "IBV_EVENT_QP_FATAL",
	C.GV_EVENT_QP_REQ_ERR:    "IBV_EVENT_QP_REQ_ERR",
	C.GV_EVENT_QP_ACCESS_ERR: "IBV_EVENT_QP_ACCESS_ERR",
}
