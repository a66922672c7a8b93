package mem

// The limits of what freed regions may keep mapped, because a program may still
// hold slices of it by mistake: a number of ranges, and bytes together.
const (
	maxRetired      = 1024
	maxRetiredBytes = 64 << 20
)

// retire empties a range that no region uses any more and keeps it mapped, so that
// it reads as zeros. It unmaps the ranges that were retired first if there are too
// many or too large together, and the range itself if that alone is too large.
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

// giveBackRetired unmaps retired ranges, the oldest first, until at most that many
// ranges with at most that many bytes are left. It returns how many it unmapped. A
// range that the system refuses to unmap now stays until the domain's Close.
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
