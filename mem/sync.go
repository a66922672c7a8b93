package mem

import "godat/hw"

// SyncRDMARead makes what was stored to the segments visible to peers' RDMA reads.
// No device here needs it (DAT's lmr_sync_req is false), so it only checks the
// segments, which may be of several regions and zones: a context that names no
// live region is INVALID_HANDLE/LMR, a range outside its region INVALID_PARAMETER.
// It answers to dat_lmr_sync_rdma_read.
func (d *Domain) SyncRDMARead(segments ...Segment) error {
	return d.sync("mem.SyncRDMARead", segments)
}

// SyncRDMAWrite makes what peers wrote to the segments visible here. As for
// SyncRDMARead nothing but the check is needed: a completion that tells of the
// data orders it. It answers to dat_lmr_sync_rdma_write.
func (d *Domain) SyncRDMAWrite(segments ...Segment) error {
	return d.sync("mem.SyncRDMAWrite", segments)
}

func (d *Domain) sync(op string, segments []Segment) error {
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.gate.RUnlock()
	for i, s := range segments {
		if s.Len == 0 {
			continue
		}
		r := d.table.Lookup(s.Context)
		if r == nil {
			return hw.Errorf(op, hw.InvalidHandle, hw.HandleLMR, "segment %d: context %#x names no region, or a freed one", i, s.Context)
		}
		if off := s.Addr - r.base; off > r.size || uint64(s.Len) > r.size-off {
			return hw.Errorf(op, hw.InvalidParameter, hw.Arg2,
				"segment %d: %s", i, outside(s, r.base, r.size))
		}
	}
	return nil
}
