//go:build race

package owner

import "strconv"

// Enabled says whether tags check ownership in this build.
const Enabled = true

// Tag remembers which goroutine owns the fields beside it. The zero Tag has no
// owner. Its methods may be called from any goroutine.
type Tag struct {
	// goroutine is the owner; 0 for none. It is a plain field that the race
	// detector does not see: with an atomic, each Acquire would be ordered after
	// the last Release, and the detector would never report a token that forgets to
	// order the two.
	goroutine uintptr
}

// Acquire makes the calling goroutine the owner. It panics if there is an owner
// already, even the caller itself.
//
//go:norace
func (t *Tag) Acquire() {
	if t.goroutine != 0 {
		wrong("takes", t.goroutine)
	}
	t.goroutine = Goroutine()
}

// Release ends the caller's ownership. It panics if the caller is not the owner.
//
//go:norace
func (t *Tag) Release() {
	if Goroutine() != t.goroutine {
		wrong("gives up", t.goroutine)
	}
	t.goroutine = 0
}

// Check panics if the calling goroutine is not the owner.
//
//go:norace
func (t *Tag) Check() {
	if Goroutine() != t.goroutine {
		wrong("touches", t.goroutine)
	}
}

func wrong(does string, owner uintptr) {
	whose := "another goroutine"
	switch owner {
	case 0:
		whose = "nobody"
	case Goroutine():
		whose = "it"
	}
	panic("owner: goroutine " + strconv.FormatUint(number(), 10) + " " + does + " what " + whose + " owns")
}
