package evd

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/hw/event"
	"godat/internal/door"
)

// publicMethods are the methods that a program can call, by type. A method that
// only this module's packages need is reached through Wiring.
var publicMethods = map[reflect.Type]string{
	reflect.TypeFor[*Dispatcher](): "Ask Asks Batches C ClearUnwaitable Close Counters Dequeue Disable Enable Events Flush LogValue Mode ModifyCNO " +
		"NewOneShot PostSoftware Query ResetCounters Resize Route SetUnwaitable Snapshot String Wait",
	reflect.TypeFor[*CNO]():        "Close FD LogValue ModifyAgent Query String Trigger Wait",
	reflect.TypeFor[*Route]():      "C Close LogValue String",
	reflect.TypeFor[*OneShot]():    "C LogValue Release String Wait",
	reflect.TypeFor[*Batch]():      "Events Release",
	reflect.TypeFor[event.Event](): "Async Cause Ended Err Immediate InvalidatedContext Private Software String",
}

func TestAProgramCanCallNothingButThePublicMethods(t *testing.T) {
	for typ, want := range publicMethods {
		var open []string
		for m := range typ.Methods() {
			if m.Type.NumIn() < 2 || m.Type.In(1) != reflect.TypeFor[door.Key]() {
				open = append(open, m.Name)
			}
		}
		slices.Sort(open)
		assert.Equal(t, want, strings.Join(open, " "), typ.String())
	}
}

// A program could reach an exported field without the key that Wiring asks for.
func TestPublicTypesHaveNoExportedWiringInTheirFields(t *testing.T) {
	for _, typ := range []reflect.Type{
		reflect.TypeFor[Dispatcher](), reflect.TypeFor[CNO](), reflect.TypeFor[Route](), reflect.TypeFor[OneShot](), reflect.TypeFor[Batch](),
	} {
		for f := range typ.Fields() {
			assert.False(t, f.IsExported(), "%v.%s", typ, f.Name)
		}
	}
}
