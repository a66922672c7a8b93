package soft

// Accessor accesses memory for queue pairs: a connection, or one direction of it.
type Accessor interface {
	// Settle waits until the access that is in progress when it is called, if there is
	// one, has stopped, or has moved on to a point where it looks its keys up again.
	Settle()
}

// Enter adds an accessor that may look up keys of the zone, before it looks up any. The
// zone keeps it once, however often it is entered. Settle waits for those of its region's
// zone alone: so what it takes does not grow with the connections of other zones.
func (z *Zone) Enter(a Accessor) {
	z.accessMu.Lock()
	defer z.accessMu.Unlock()
	if z.accessors == nil {
		z.accessors = make(map[Accessor]struct{})
	}
	z.accessors[a] = struct{}{}
}

// Leave removes an accessor that looks no key up any more.
func (z *Zone) Leave(a Accessor) {
	z.accessMu.Lock()
	defer z.accessMu.Unlock()
	delete(z.accessors, a)
}

// settle waits for the accesses in progress in the zone. An accessor that enters
// meanwhile sees what the caller has changed before. settle holds no lock while it waits,
// because an accessor may be about to leave.
func (z *Zone) settle() {
	var few [4]Accessor // a zone of one connection has no more
	all := few[:0]
	z.accessMu.Lock()
	for a := range z.accessors {
		all = append(all, a)
	}
	z.accessMu.Unlock()
	for _, a := range all {
		a.Settle()
	}
}
