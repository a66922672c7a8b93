package hwtest

import "godat/hw"

// readIntoWindow reads into a window: the window's key names the sink.
func readIntoWindow(r *rig) {
	a, b := r.pair()
	src, dst := r.a.mem(64, hw.AllPrivileges), r.b.mem(64, localAll)
	fill(src.buf, 3)
	key := b.bind(r.b.newWindow(r.b.zone, nil), dst, 16, 32, hw.RemoteWrite)
	read := func(addr uint64, n uint32) hw.WC {
		return b.sent(b.post(rdma(hw.OpReadToRMR, src, 0, hw.SGE{Addr: addr, Len: n, LKey: key})))
	}
	wc := read(dst.base+24, 16)
	r.also.Equal(hw.StatusSuccess, wc.Status)
	r.also.Equal(hw.OpRead, wc.Op)
	r.also.EqualValues(16, wc.Len)
	r.also.Equal(make([]byte, 24), dst.buf[:24])
	r.also.Equal(src.buf[:16], dst.buf[24:40])
	r.also.Equal(make([]byte, 24), dst.buf[40:])
	roundTrip(r, a, b)
	r.also.Equal(hw.StatusLocalProtection, read(dst.base+40, 16).Status, "it ends beyond the window")
	r.broken(a, b)
}
