package entry

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var examples = []Entry{
	{},
	{Op: Write, Off: 4096, Len: 65536, Slot: 7, CRC: 0xdeadbeef},
	{Op: Small, Off: 512, Len: 512, CRC: 1, Data: bytes.Repeat([]byte{3}, 512)},
	{Op: Zero, Off: 1 << 40, Len: 1 << 31},
}

func TestAnEntryIsParsedAsItWasWritten(t *testing.T) {
	for _, e := range examples {
		got, err := Parse(e.Append(nil))
		require.NoError(t, err)
		assert.Equal(t, e, got)
	}
	assert.Equal(t, []byte{1, 0, 0, 0, 0, 0, 1, 0, 0, 16, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0xef, 0xbe, 0xad, 0xde}, examples[1].Append(nil))
}

func TestBytesThatAreNoEntryAreRefused(t *testing.T) {
	for name, e := range map[string]Entry{
		"an unknown operation":        {Op: 9, Len: 512},
		"no bytes":                    {Op: Write},
		"a part of a block":           {Op: Write, Len: 100},
		"an offset within a block":    {Op: Write, Off: 5, Len: 512},
		"a range beyond all":          {Op: Zero, Off: 1<<63 - 512, Len: 1024},
		"a write with data":           {Op: Write, Len: 512, Data: []byte{1}},
		"a small write without":       {Op: Small, Len: 512},
		"a small write with too much": {Op: Small, Len: 512, Data: make([]byte, 513)},
		"a small write with a slot":   {Op: Small, Len: 512, Slot: 1, Data: make([]byte, 512)},
		"zeros with a slot":           {Op: Zero, Len: 512, Slot: 1},
	} {
		_, err := Parse(e.Append(nil))
		assert.ErrorIs(t, err, errEntry, name)
	}
	for n := 1; n < headLen; n++ {
		_, err := Parse(examples[1].Append(nil)[:n])
		assert.ErrorIs(t, err, errEntry, "%d bytes", n)
	}
}

func FuzzParse(f *testing.F) {
	for _, e := range examples {
		f.Add(e.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := Parse(b)
		if err == nil {
			require.True(t, bytes.Equal(b, e.Append(nil)))
		}
	})
}

// A flip in what an entry says is found like one in its data.
func TestTheCRCCoversAllThatAnEntrySays(t *testing.T) {
	data := bytes.Repeat([]byte{7}, Unit)
	for _, e := range []Entry{
		Entry{Op: Write, Off: 4096, Len: Unit, Slot: 3}.Sealed(data),
		Entry{Op: Small, Off: 4096, Len: Unit, Data: data}.Sealed(data),
		Entry{Op: Zero, Off: 4096, Len: Unit}.Sealed(nil),
	} {
		with := data
		if e.Op == Zero {
			with = nil
		}
		require.True(t, e.Right(with))
		got, err := Parse(e.Append(nil))
		require.NoError(t, err)
		require.True(t, got.Right(with))
		for name, flip := range map[string]func(e *Entry){
			"operation": func(e *Entry) { e.Op ^= 1 },
			"offset":    func(e *Entry) { e.Off ^= Unit },
			"length":    func(e *Entry) { e.Len ^= 2 * Unit },
			"slot":      func(e *Entry) { e.Slot ^= 1 },
			"CRC":       func(e *Entry) { e.CRC ^= 1 },
		} {
			other := e
			flip(&other)
			require.False(t, other.Right(with), "%s of operation %d", name, e.Op)
		}
	}
	for _, e := range []Entry{{}, {Op: Check}} {
		require.True(t, e.Right(nil))
	}
}
