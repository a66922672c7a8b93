package mem

import "godat/hw"

// Sync checks the segments for the adapter's SyncRDMARead or SyncRDMAWrite.
func (d *Domain) Sync(op string, segments ...Segment) error {
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
		if !r.Holds(s.Addr, s.Len) {
			return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "segment %d: %s", i, r.Outside(s.Addr, s.Len))
		}
	}
	return nil
}
