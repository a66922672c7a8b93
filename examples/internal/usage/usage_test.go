package usage

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/hw"
)

func TestAProviderThatThereIsNotIsAMistakeOfTheCommandLine(t *testing.T) {
	for err, status := range map[error]int{
		fmt.Errorf("it: %w", hw.ErrProviderNotFound): Status,
		hw.ErrInvalidParameter:                       Status,
		hw.ErrInvalidAddress:                         Status,
		hw.ErrConnQualInUse:                          1,
		errors.New("another"):                        1,
	} {
		assert.Equal(t, status, StatusOf(err), err)
	}
}

func TestLoopReachesNobody(t *testing.T) {
	for provider, reaches := range map[string]bool{"loop": false, "loop:0": false, "iwarp": true, "iwarp:loop": true, "loops": true} {
		assert.Equal(t, reaches, Reaches(provider) == nil, provider)
	}
}
