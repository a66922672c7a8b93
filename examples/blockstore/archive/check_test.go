package archive

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheErrorOfDamageNamesAFewFiles(t *testing.T) {
	err := &DamageError{Checked: 100}
	for i := range mostNamed {
		err.Files = append(err.Files, Damage{fmt.Sprintf("file%02d", i), errors.New("its reason")})
	}
	text := err.Error()
	assert.True(t, strings.HasPrefix(text, "files that are not as they were stored, 20 of 100:\n  file00: its reason\n"), text)
	assert.NotContains(t, text, "more")

	err.Files = append(err.Files, Damage{"file20", errors.New("its reason")})
	assert.True(t, strings.HasSuffix(err.Error(), "\n  file19: its reason\n  and 1 more"), err.Error())
	require.ErrorIs(t, err, ErrDamaged)
}
