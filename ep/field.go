package ep

import (
	"reflect"
	"slices"

	"godat/ep/internal/life"
	"godat/hw"
)

// fields are names of fields of a Param and of its Attr, which Modify changes.
type fields []string

// attrNames are the fields of Attr.
var attrNames = func() (names fields) {
	for f := range reflect.TypeFor[Attr]().Fields() {
		names = append(names, f.Name)
	}
	return names
}()

// fieldsOf returns the fields that names stand for, or says which one can't be modified.
func fieldsOf(op string, names []string) (all fields, err error) {
	for _, name := range names {
		switch {
		case name == "Attr":
			all = append(all, attrNames...)
		case statesOf(name) == 0:
			return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "%q can't be modified: what can are PZ, Recv, Request, Conn and the fields of Attr", name)
		default:
			all = append(all, name)
		}
	}
	return all, nil
}

// statesOf says in which states the field of that name may be modified.
func statesOf(name string) uint32 {
	switch name {
	case "PZ":
		return 1<<life.Unconnected | 1<<life.TentativeConnectionPending
	case "ReceiverNotReady", "DrainTimeout":
		return 1 << life.Unconnected
	case "Recv", "Request", "Conn":
	default:
		if !slices.Contains(attrNames, name) {
			return 0
		}
	}
	return 1<<life.Unconnected | 1<<life.Reserved | 1<<life.PassiveConnectionPending | 1<<life.TentativeConnectionPending
}

// may reports whether all of the fields may be modified in that state.
func (f fields) may(s life.State) bool {
	return !slices.ContainsFunc(f, func(name string) bool { return statesOf(name)>>s&1 == 0 })
}

// take sets the fields of those names to their values in b.
func (a *Attr) take(b *Attr, names []string) {
	to, from := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for _, name := range names {
		to.FieldByName(name).Set(from.FieldByName(name))
	}
}
