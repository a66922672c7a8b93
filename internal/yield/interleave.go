package yield

import "godat/internal/owner"

// Interleave tests a protocol between two parties. In each round it calls first,
// and it calls second while first is at one of its points: in the first round at
// the first point, and so on. In the last round it calls second after first has
// returned. begin sets up each round; check looks at the outcome.
//
// All of it runs on the caller's goroutine, so second must not wait for anything
// that first holds. In builds without points there is one round, the last.
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
