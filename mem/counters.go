package mem

// Counters say how many objects were made in a domain and how many were freed: the part of
// DAT_IA_COUNTERS about memory.
type Counters struct {
	Zones, ZonesFreed     uint64
	Regions, RegionsFreed uint64
	Windows, WindowsFreed uint64
}

// Counters returns what was made and freed since the counters were last reset, and resets
// them if it is asked to. A region that found no room in the table of contexts counts as made
// and freed.
func (d *Domain) Counters(reset bool) Counters {
	if d == nil {
		return Counters{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	before, now := d.countersBefore, d.AllCounters()
	if reset {
		d.countersBefore = now
	}
	now.minus(before)
	return now
}

// AllCounters returns what was made and freed since the domain was made, whatever was reset.
func (d *Domain) AllCounters() (c Counters) {
	if d != nil {
		c.Zones, c.ZonesFreed = d.zones.counts()
		c.Regions, c.RegionsFreed = d.lmrs.counts()
		c.Windows, c.WindowsFreed = d.rmrs.counts()
	}
	return c
}

// minus takes an earlier count off.
func (c *Counters) minus(before Counters) {
	c.Zones -= before.Zones
	c.ZonesFreed -= before.ZonesFreed
	c.Regions -= before.Regions
	c.RegionsFreed -= before.RegionsFreed
	c.Windows -= before.Windows
	c.WindowsFreed -= before.WindowsFreed
}
