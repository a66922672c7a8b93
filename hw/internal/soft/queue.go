package soft

import (
	"math/bits"

	"godat/hw"
)

// CacheLine keeps apart what different processors write.
const CacheLine = 64

// RingLen is the power of two that holds n, at least 1.
func RingLen(n int) int { return 1 << bits.Len(uint(max(n, 1)-1)) }

// CheckQP holds a queue pair's configuration against the device's limits.
func (d *Device) CheckQP(op string, cfg *hw.QPConfig) error {
	a := &d.cfg.Attr
	bad := func(why string) error { return d.errorf(op, hw.InvalidParameter, hw.Arg1, "%s", why) }
	outside := func(n, limit int) bool { return n < 0 || n > limit }
	switch {
	case cfg.SendSink == nil || cfg.RecvSink == nil || cfg.Facts == nil:
		return bad("a sink or the facts are missing")
	case cfg.SendCQ != nil || cfg.RecvCQ != nil:
		return bad("the device has no completion queues")
	case outside(cfg.SendDepth, a.MaxDepth) || outside(cfg.RecvDepth, a.MaxDepth):
		return bad("depth")
	case outside(cfg.SendSegments, a.MaxSendSegments) || outside(cfg.RecvSegments, a.MaxRecvSegments):
		return bad("segments")
	case outside(cfg.ReadsIn, a.MaxReadsIn) || outside(cfg.ReadsOut, a.MaxReadsOut):
		return bad("reads")
	case cfg.NotReady < 0:
		return bad("negative NotReady")
	}
	return nil
}
