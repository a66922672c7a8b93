package model

import "fmt"

// call is a command with its result, and what the result may be. If must is not
// empty, the call must fail with a code of must or may. Otherwise it may succeed, or
// fail with a code of may.
type call struct {
	Command
	Result
	must, may []Code
	ended     bool
	err       error // what DAT does not allow
}

// on returns the judge of a call on an object that must be there.
func on[T object](all *objects[T], judge func(T, *call)) func(*call) {
	return func(c *call) {
		if x := all.named(c.On); need(c, x) {
			judge(x, c)
		}
	}
}

// onFreed is on for calls that are also allowed on an object that was freed.
func onFreed[T object](all *objects[T], judge func(T, *call)) func(*call) {
	return func(c *call) {
		var none T
		x := all.named(c.On)
		if c.refuse(x == none, invalidHandle); x != none {
			judge(x, c)
		}
	}
}

// need refuses the call unless x is there. It reports whether x was made at all, so
// that its other properties can be judged.
func need[T object](c *call, x T) bool {
	var none T
	c.refuse(!there(x), invalidHandle)
	return x != none
}

// refuse adds a code that the call must fail with, if cond holds.
func (c *call) refuse(cond bool, code Code) {
	if cond {
		c.must = append(c.must, code)
	}
}

// mayRefuse adds a code that the call may fail with, if cond holds.
func (c *call) mayRefuse(cond bool, code Code) {
	if cond {
		c.may = append(c.may, code)
	}
}

// refuseUnless refuses the call if the endpoint is in none of the states.
func (c *call) refuseUnless(p *endpoint, states ...int) {
	c.refuse(!p.in(states...), stateCodes[p.state])
}

// succeeded reports whether the call succeeded and was allowed to. Its first use
// judges the code, so that all refusals come before it.
func (c *call) succeeded() bool {
	c.end()
	return c.Code == success && c.err == nil
}

// end judges the code, once.
func (c *call) end() {
	if c.ended {
		return
	}
	c.ended = true
	switch {
	case c.Code == success && len(c.must) > 0:
		c.failf("succeeded, should fail with one of %v", c.must)
	case c.Code == success || c.Code.isOneOf(c.must) || c.Code.isOneOf(c.may):
	case len(c.must) == 0:
		c.failf("failed with %v, should succeed", c.Code)
	default:
		c.failf("failed with %v, should with one of %v", c.Code, c.must)
	}
}

// failf records what DAT does not allow; the first time counts.
func (c *call) failf(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// expect compares what a call returned, if it succeeded, with what it should be:
// pairs of a name and a number.
func (c *call) expect(want ...any) {
	if c.succeeded() {
		c.compare(want...)
	}
}

// compare is expect for a call that may have failed.
func (c *call) compare(want ...any) {
	for i := 0; i < len(want); i += 2 {
		name, n := want[i].(string), want[i+1].(int)
		if got := c.Values[name]; got != n {
			c.failf("%s is %d, should be %d", name, got, n)
		}
	}
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
