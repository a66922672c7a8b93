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
	interleave(1, func() (func(), []func(), func()) {
		first, second, check := begin()
		return first, []func(){second}, check
	})
}

// InterleaveTwo is Interleave with two others: it calls second while first is at one of
// its points, and third while first is at the same or a later one, in each way that there
// is. The points of second and third do not count.
func InterleaveTwo(begin func() (first, second, third, check func())) {
	interleave(2, func() (func(), []func(), func()) {
		first, second, third, check := begin()
		return first, []func(){second, third}, check
	})
}

// interleave is Interleave with n others, each at the point of the one before or later.
func interleave(n int, begin func() (first func(), others []func(), check func())) {
	defer setVisit(nil)
	me := owner.Goroutine()
	for at := make([]int, n); ; {
		first, others, check := begin()
		passed, called := 0, 0
		callUntil := func(point int) {
			for called < n && at[called] <= point {
				called++
				others[called-1]()
			}
		}
		inside := false
		setVisit(func() {
			if owner.Goroutine() == me && !inside {
				inside = true
				callUntil(passed)
				passed++
				inside = false
			}
		})
		first()
		setVisit(nil)
		callUntil(at[n-1])
		check()
		i := n - 1
		for ; passed <= at[i]; i-- {
			if i == 0 {
				return
			}
		}
		for next := at[i] + 1; i < n; i++ {
			at[i] = next
		}
	}
}
