package inspect

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

func TestThePageSaysWhatPolls(t *testing.T) {
	ia, err := dat.Open(t.Context(), "iwarp:127.0.0.1")
	require.NoError(t, err)
	defer func() { require.NoError(t, ia.Close()) }()
	r := &rig{t: t, ia: ia, h: New(ia)}
	assert.Contains(t, r.get("").Body.String(), "<dt>what polls</dt><dd>sockets</dd>")
	var said struct{ Polls *dat.PollSnapshot }
	require.NoError(t, json.Unmarshal(r.get("?format=json").Body.Bytes(), &said))
	assert.Equal(t, "sockets", said.Polls.Way)

	silent := newRig(t, 0, dat.ConnConfig{})
	assert.NotContains(t, silent.get("").Body.String(), "what polls", "nobody polls loop")
}
