package guest

import (
	"bytes"
	"errors"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type member struct {
	name string
	mode int
	data string
}

// readCPIO reads an archive as the kernel does: it requires every number at its
// place, and every part at a multiple of four bytes.
func readCPIO(t *testing.T, b []byte) (all []member) {
	t.Helper()
	const magic, fields, width = 6, 13, 8
	at := 0
	align := func() { at = (at + 3) &^ 3 }
	inodes := map[int]bool{}
	for {
		require.Equal(t, "070701", string(b[at:at+magic]), "at %d", at)
		var f [fields]int
		for i := range f {
			from := at + magic + i*width
			n, err := strconv.ParseUint(string(b[from:from+width]), 16, 32)
			require.NoError(t, err)
			f[i] = int(n)
		}
		at += magic + fields*width
		require.False(t, inodes[f[0]], "inode %d twice", f[0])
		inodes[f[0]] = true
		nameLen := f[11]
		require.Zero(t, b[at+nameLen-1], "the name ends with a zero")
		m := member{name: string(b[at : at+nameLen-1]), mode: f[1]}
		at += nameLen
		align()
		m.data = string(b[at : at+f[6]])
		at += f[6]
		align()
		if m.name == "TRAILER!!!" {
			require.Equal(t, len(b), at, "nothing follows the trailer")
			return all
		}
		all = append(all, m)
	}
}

func TestArchiveHoldsWhatWasPutIntoItInOrder(t *testing.T) {
	var b bytes.Buffer
	a := &archive{w: &b}
	a.dir("bin")
	a.file("bin/x", modeExec, []byte("12345"))
	a.file("empty", modeFile, nil)
	a.link("bin/y", "x")
	require.NoError(t, a.close())

	assert.Equal(t, []member{
		{"bin", 0o040755, ""},
		{"bin/x", 0o100755, "12345"},
		{"empty", 0o100644, ""},
		{"bin/y", 0o120777, "x"},
	}, readCPIO(t, b.Bytes()))
}

func TestArchivePadsEveryLengthOfNameAndData(t *testing.T) {
	var b bytes.Buffer
	a := &archive{w: &b}
	var want []member
	for n := range 9 {
		name, data := "abcdefghi"[:n+1], "ABCDEFGHI"[:n]
		a.file(name, modeFile, []byte(data))
		want = append(want, member{name, modeFile, data})
	}
	require.NoError(t, a.close())
	assert.Equal(t, want, readCPIO(t, b.Bytes()))
}

type failingWriter struct{ left int }

var errFull = errors.New("full")

func (f *failingWriter) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestArchiveReportsTheFirstErrorOfItsWriter(t *testing.T) {
	a := &archive{w: &failingWriter{left: 200}}
	a.file("x", modeFile, make([]byte, 100))
	a.dir("y")
	require.ErrorIs(t, a.close(), errFull)
}
