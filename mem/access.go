package mem

import "godat/hw"

// registerWithDevice registers the memory, if it is what the privileges say: an access of
// a provider's goroutine to other memory would be a fault, which ends the process.
func (l *LMR) registerWithDevice(op string) (hw.MR, error) {
	read, write := l.priv&(hw.LocalRead|hw.RemoteRead) != 0, l.priv&(hw.LocalWrite|hw.RemoteWrite|hw.RemoteAtomic) != 0
	if l.block == nil { // it is the program's memory
		if err := accessible(l.buf, read, write); err != nil {
			return nil, hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "%w", err)
		}
	}
	mr, err := l.pz.domain.dev.Register(l.pz.zone.Device(), l.buf, l.priv)
	if err != nil {
		return nil, lockedMemory(op, len(l.buf), err)
	}
	return mr, nil
}
