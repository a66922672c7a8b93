package yield

import "godat/internal/owner"

// Interleave is for tests of a protocol between two: it has second happen at each
// of the points that first passes, one after the other, and after first in the
// end. begin sets up each round anew; check looks at what has come of it.
//
// All of it runs on the caller's goroutine, so second must wait for nothing that
// first holds. In builds without points there is one round, the last.
func Interleave(begin func() (first, second, check func())) {
	defer setVisit(nil)
	me := owner.Goroutine()
	for at := 0; ; at++ {
		first, second, check := begin()
		passed := 0
		setVisit(func() {
			if owner.Goroutine() != me {
				return
			}
			if passed++; passed == at+1 {
				second()
			}
		})
		first()
		setVisit(nil)
		last := passed <= at
		if last {
			second()
		}
		check()
		if last {
			return
		}
	}
}
