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

// InterleaveTwo is Interleave with two others: it calls second while first is at one of
// its points, and third while first is at the same or a later one, in each way that there
// is. The points of second and third do not count.
func InterleaveTwo(begin func() (first, second, third, check func())) {
	defer setVisit(nil)
	me := owner.Goroutine()
	for at, until := 0, 0; ; until++ {
		first, second, third, check := begin()
		passed, inside := 0, false
		others := func(n int) {
			inside = true
			if n == at {
				second()
			}
			if n == until {
				third()
			}
			inside = false
		}
		setVisit(func() {
			if owner.Goroutine() != me || inside {
				return
			}
			others(passed)
			passed++
		})
		first()
		setVisit(nil)
		last := passed <= until
		for n := passed; n <= max(at, until); n++ {
			others(n)
		}
		check()
		switch {
		case last && passed <= at:
			return
		case last:
			at++
			until = at - 1
		}
	}
}
