package mem

// The limits of what freed regions may keep mapped: ranges, and bytes together.
const (
	maxRetired      = 1024
	maxRetiredBytes = 64 << 20
)

// retire empties a range that no region uses any more and keeps it mapped, so that it reads
// as zeros: a program may still hold a slice of it by mistake. It unmaps the ranges that were
// retired first if they exceed the limits, and the range itself if that alone does.
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

// giveBackRetired unmaps retired ranges, the oldest first, until at most so many with so many
// bytes are left, and returns how many it unmapped. One that the system refuses to unmap
// stays until the domain's Close.
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
