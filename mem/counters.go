package mem

// Counters say what was made in a domain and freed again: the part of
// DAT_IA_COUNTERS that memory has.
type Counters struct {
	Zones, ZonesFreed     uint64
	Regions, RegionsFreed uint64
	Windows, WindowsFreed uint64
}

// Counters tells what was made and freed since the domain was, or its counters
// were reset. Whatever could not be entered in the table of contexts counts as made
// and freed.
func (d *Domain) Counters() Counters { return d.takeCounters(false) }

// ResetCounters is Counters, which from then on count from 0.
func (d *Domain) ResetCounters() Counters { return d.takeCounters(true) }

func (d *Domain) takeCounters(reset bool) Counters {
	if d == nil {
		return Counters{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.counters
	if reset {
		d.counters = Counters{}
	}
	return c
}
