package model

import (
	"fmt"
	"iter"
	"slices"
)

// object is anything that a program has a handle of.
type object interface {
	comparable
	usable() bool // the program has not freed it
}

// handle is what most kinds of objects have in common.
type handle struct {
	name string
	open bool // the program has not freed the object
}

func (h *handle) usable() bool { return h.open }

// free judges the freeing of an object, which fails with busy as long as the object
// is in use. It reports whether the call ended the object. To free an object twice
// is allowed.
func (h *handle) free(c *call, inUse bool, busy Code) bool {
	c.refuse(h.open && inUse, busy)
	ends := c.succeeded() && h.open
	h.open = h.open && !ends
	return ends
}

// objects are all objects of one kind in the order in which the program asked for
// them; nil for one that it did not get.
type objects[T object] struct {
	kind byte // the letter of their names
	all  []T
}

// at returns an object by its number; nil for none.
func (o *objects[T]) at(i int) (found T) {
	if i >= 0 && i < len(o.all) {
		found = o.all[i]
	}
	return found
}

// named returns an object by its name; nil for none.
func (o *objects[T]) named(name string) T { return o.at(Index(o.kind, name)) }

// index returns the number of an object; -1 for nil.
func (o *objects[T]) index(x T) int {
	var none T
	if x == none {
		return -1
	}
	return slices.Index(o.all, x)
}

func (o *objects[T]) name(i int) string { return fmt.Sprintf("%c%d", o.kind, i) }

// next is the name of the next object.
func (o *objects[T]) next() string { return o.name(len(o.all)) }

// add judges the call that should make x, and reports whether the program got x.
func (o *objects[T]) add(c *call, x T) bool {
	if !c.succeeded() {
		var none T
		x = none
	}
	o.all = append(o.all, x)
	return c.succeeded()
}

// live returns the objects that were not freed, with their numbers.
func (o *objects[T]) live() iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		for i, x := range o.all {
			if there(x) && !yield(i, x) {
				return
			}
		}
	}
}

// count counts the objects that were not freed and for which is holds.
func (o *objects[T]) count(is func(T) bool) (n int) {
	for _, x := range o.live() {
		if is(x) {
			n++
		}
	}
	return n
}

// there reports whether x was made and not freed.
func there[T object](x T) bool {
	var none T
	return x != none && x.usable()
}
