package evd

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestModesAndStatesHaveNames(t *testing.T) {
	for want, s := range map[string]interface{ String() string }{
		"queue":                             ModeQueue,
		"channel":                           ModeChannel,
		"batch":                             ModeBatch,
		"callback":                          ModeCallback,
		"unknown":                           Mode(9),
		"ENABLED|WAITABLE|CONFIG_THRESHOLD": StateEnabled | StateWaitable | ConfigThreshold,
		"DISABLED|UNWAITABLE|CONFIG_NOTIFY": StateDisabled | StateUnwaitable | ConfigNotify,
		"ENABLED|CONFIG_SOLICITED":          StateEnabled | ConfigSolicited,
	} {
		assert.Equal(t, want, s.String())
	}
}
