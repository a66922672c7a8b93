package mem

// How much of the address space freed regions may keep, for slices that somebody
// still holds by mistake: so many ranges, and so many bytes together.
const (
	maxRetired      = 1024
	maxRetiredBytes = 64 << 20
)

// retire empties a range that no region uses any more and keeps it mapped, which
// then reads as zeros. The ranges that were retired first are given back for it if
// they would be too many, and it is itself if it is too large.
func (d *Domain) retire(b *block) error {
	if len(b.whole) > maxRetiredBytes {
		return d.unmap(b)
	}
	if err := b.empty(); err != nil {
		return err
	}
	d.mu.Lock()
	d.retired = append(d.retired, b)
	d.retiredBytes += len(b.whole)
	d.mu.Unlock()
	d.giveBackRetired(maxRetired, maxRetiredBytes)
	return nil
}

// giveBackRetired unmaps retired ranges, the oldest first, until no more than that
// many are left with no more than that many bytes. It reports how many it unmapped.
// One that the system does not take back now waits for the domain's Close.
func (d *Domain) giveBackRetired(ranges, bytes int) (n int) {
	for {
		d.mu.Lock()
		if len(d.retired) <= ranges && d.retiredBytes <= bytes {
			d.mu.Unlock()
			return n
		}
		b := d.retired[0]
		d.retired[0] = nil
		d.retired = d.retired[1:]
		d.retiredBytes -= len(b.whole)
		d.mu.Unlock()
		if d.unmap(b) == nil {
			n++
		}
	}
}
