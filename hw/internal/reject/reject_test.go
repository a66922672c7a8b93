package reject

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheMarkIsRecognizedWithItsPadding(t *testing.T) {
	assert.True(t, IsByProvider(ByProvider()))
	assert.True(t, IsByProvider(append(ByProvider(), make([]byte, 140)...)))
	for _, private := range []string{"", "no", "\x00", "\x02\x00\x02\x00", string(ByProvider()) + "no", string(ByProvider()[:7])} {
		assert.False(t, IsByProvider([]byte(private)), "%q", private)
	}
}
