package runtime

import (
	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/mem"
)

// HandleType is a kind of object: DAT_HANDLE_TYPE.
type HandleType uint32

// The kinds of objects.
const (
	HandleTypeCR  HandleType = 0
	HandleTypeEP  HandleType = 1
	HandleTypeEVD HandleType = 2
	HandleTypeIA  HandleType = 3
	HandleTypeLMR HandleType = 4
	HandleTypePSP HandleType = 5
	HandleTypePZ  HandleType = 6
	HandleTypeRMR HandleType = 7
	HandleTypeRSP HandleType = 8
	HandleTypeCNO HandleType = 9
	HandleTypeSRQ HandleType = 10
	HandleTypeCSP HandleType = 11
)

// HandleTypeOf tells the kind of an object, such as an Event.Source. An object that is
// nil or closed, a request that was answered, and anything that is no object of DAT is
// INVALID_HANDLE. It answers to dat_get_handle_type.
func HandleTypeOf(handle any) (t HandleType, err error) {
	switch h := handle.(type) {
	case *ep.CR:
		t, err = HandleTypeCR, errorOf(h.Query())
	case *ep.Endpoint:
		t, err = HandleTypeEP, errorOf(h.Status())
	case *evd.Dispatcher:
		t, err = HandleTypeEVD, errorOf(h.Query())
	case *IA:
		t, err = HandleTypeIA, errorOf(h.Query())
	case *mem.LMR:
		t, err = HandleTypeLMR, errorOf(h.Query())
	case *ep.PSP:
		t, err = HandleTypePSP, errorOf(h.Query())
	case *mem.PZ:
		t, err = HandleTypePZ, errorOf(h.Query())
	case *mem.RMR:
		t, err = HandleTypeRMR, errorOf(h.Query())
	case *ep.RSP:
		t, err = HandleTypeRSP, errorOf(h.Query())
	case *evd.CNO:
		t, err = HandleTypeCNO, errorOf(h.Query())
	case *ep.SRQ:
		t, err = HandleTypeSRQ, errorOf(h.Query())
	case *ep.CSP:
		t, err = HandleTypeCSP, errorOf(h.Query())
	default:
		err = hw.Errorf("runtime.HandleTypeOf", hw.InvalidHandle, hw.Handle1, "a %T is no object of DAT", handle)
	}
	return t, err
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
	return errorOf(HandleTypeOf(object)) == nil
}

// SetConsumerContext attaches a value of the program's to an object, and replaces the
// one before; nil removes it. The value stays until the object is closed. What is not
// an open object is INVALID_HANDLE. It is for programs that know of an event only its
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
// nil if there is none. What is not an open object is INVALID_HANDLE. It answers to
// dat_get_consumer_context.
func (ia *IA) ConsumerContext(handle any) (any, error) {
	if err := ia.checkHandle("runtime.IA.ConsumerContext", handle); err != nil {
		return nil, err
	}
	ia.lists.mu.Lock()
	defer ia.lists.mu.Unlock()
	return ia.lists.contexts.of[handle], nil
}

func (ia *IA) checkHandle(op string, handle any) error {
	if err := ia.enter(op); err != nil {
		return err
	}
	ia.gate.RUnlock()
	_, err := HandleTypeOf(handle)
	return err
}
