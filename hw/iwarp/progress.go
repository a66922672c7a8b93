package iwarp

// Progress implements [hw.Progresser].
func (d *device) Progress() { d.poller.progress() }
