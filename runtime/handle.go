package runtime

import (
	"godat/hw"
	"godat/internal/door"
)

// object is an object of DAT that knows the adapter that it was made on.
type object interface {
	Home(door.Key) (ia any, err error)
}

// Home returns the adapter itself.
func (ia *IA) Home(door.Key) (home any, err error) {
	if err := ia.enter("runtime.IAOf"); err != nil {
		return nil, err
	}
	ia.gate.RUnlock()
	return ia, nil
}

// IAOf returns the adapter of an object, such as an Event.Source. An object that is nil or closed, a request
// that was answered, and anything that is no object of DAT is INVALID_HANDLE. It answers to the adapter that
// DAT's queries tell.
func IAOf(handle any) (*IA, error) {
	o, ok := handle.(object)
	if !ok {
		return nil, hw.Errorf("runtime.IAOf", hw.InvalidHandle, hw.Handle1, "a %T is no object of DAT", handle)
	}
	home, err := o.Home(door.Key{})
	if err != nil {
		return nil, err
	}
	ia, _ := home.(*IA)
	return ia, nil
}

// errorOf is the error of a call whose other result does not count.
func errorOf[T any](_ T, err error) error { return err }

// isOpen reports whether an object is not closed, or nil.
func isOpen(object any) bool {
	switch o := object.(type) {
	case nil:
		return true
	case *IA: // without the gate, for a caller that holds it or a mutex
		return !isDone(o.gate.down)
	case *Listener:
		return !o.isClosed()
	}
	return errorOf(IAOf(object)) == nil
}

// SetConsumerContext attaches a value of the program's to an object, and replaces the
// one before; nil removes it. The value stays until the object is closed. What is not
// an open object of the adapter is INVALID_HANDLE. It is for programs that know of an event only its
// source, and not for the data path. It answers to dat_set_consumer_context.
func (ia *IA) SetConsumerContext(handle, context any) error {
	if err := ia.checkHandle("runtime.IA.SetConsumerContext", handle); err != nil {
		return err
	}
	ia.lists.mu.Lock()
	defer ia.lists.mu.Unlock()
	if context == nil {
		delete(ia.lists.contexts.of, handle)
	} else {
		ia.lists.contexts.put(handle, context)
	}
	return nil
}

// ConsumerContext returns the value that SetConsumerContext attached to an object, or
// nil if there is none. What is not an open object of the adapter is INVALID_HANDLE. It answers to
// dat_get_consumer_context.
func (ia *IA) ConsumerContext(handle any) (any, error) {
	if err := ia.checkHandle("runtime.IA.ConsumerContext", handle); err != nil {
		return nil, err
	}
	ia.lists.mu.Lock()
	defer ia.lists.mu.Unlock()
	return ia.lists.contexts.of[handle], nil
}

// checkHandle refuses what is no open object of the adapter.
func (ia *IA) checkHandle(op string, handle any) error {
	if err := ia.enter(op); err != nil {
		return err
	}
	ia.gate.RUnlock()
	home, err := IAOf(handle)
	if err == nil && home != ia {
		err = hw.Errorf(op, hw.InvalidHandle, hw.Handle1, "the object is another adapter's: IAOf tells whose")
	}
	return err
}
