package identity

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestANewIdentityIsARandomUUID(t *testing.T) {
	seen := make(map[ID]bool)
	for range 1000 {
		id := New()
		require.EqualValues(t, 4, id[6]>>4, "the version")
		require.EqualValues(t, 2, id[8]>>6, "the variant")
		seen[id] = true
		again, err := Parse(id.String())
		require.NoError(t, err)
		require.Equal(t, id, again)
	}
	assert.Len(t, seen, 1000)
}

func TestATextThatIsNoUUIDIsRefused(t *testing.T) {
	good := "7f4df5b5-8e0e-4b43-8d2c-6f3a6e0f3d07"
	id, err := Parse(strings.ToUpper(good))
	require.NoError(t, err)
	assert.Equal(t, good, id.String())
	assert.Equal(t, "nqn.2014-08.org.nvmexpress:uuid:"+good, id.Name())
	plain, err := Parse(strings.ReplaceAll(good, "-", ""))
	require.NoError(t, err)
	assert.Equal(t, id, plain)
	for _, text := range []string{
		"", "x", good[:35], good + "0", strings.Replace(good, "7", "g", 1), strings.Replace(good, "-", "0", 1),
		"7f4df5b5-8e0e-4b43-cd2c-6f3a6e0f3d07", "7f4df5b5-8e0e-0b43-8d2c-6f3a6e0f3d07", "00000000-0000-0000-0000-000000000000",
	} {
		_, err := Parse(text)
		require.Error(t, err, text)
	}
}

func TestEachSubsystemHasASerialNumberOfItsOwn(t *testing.T) {
	a, b := Serial("nqn.2026-01.test:a"), Serial("nqn.2026-01.test:b")
	assert.NotEqual(t, a, b)
	assert.Equal(t, a, Serial("nqn.2026-01.test:a"))
	assert.Regexp(t, `^[0-9A-F]{20}$`, a)
}

// made makes a file.
func made(t *testing.T, path string) string {
	require.NoError(t, os.WriteFile(path, []byte("blocks"), 0o600))
	return path
}

// kept is Keep without an error.
func kept(t *testing.T, path string) Kept {
	t.Helper()
	k, err := Keep(path, false, ID{})
	require.NoError(t, err)
	return k
}

func needMarks(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("capability: marks of files")
	}
}

func TestAFileHasOneIdentityUnderEveryPath(t *testing.T) {
	needMarks(t)
	dir := t.TempDir()
	t.Chdir(dir)
	path := made(t, filepath.Join(dir, "disk.img"))
	first := kept(t, path)
	assert.True(t, first.Made)
	require.NoError(t, os.Mkdir("sub", 0o700))
	require.NoError(t, os.Symlink("disk.img", "link"))
	require.NoError(t, os.Symlink(dir, filepath.Join("sub", "here")))
	for _, spelling := range []string{"disk.img", "./disk.img", "sub/../disk.img", path, "link", "sub/here/link"} {
		again := kept(t, spelling)
		assert.Equal(t, first.ID, again.ID, spelling)
		assert.False(t, again.Made, spelling)
	}
	other := kept(t, made(t, "other.img"))
	assert.NotEqual(t, first.ID, other.ID)

	require.NoError(t, os.Rename("disk.img", "sub/moved.img"))
	require.NoError(t, os.Rename("disk.img"+Suffix, "sub/moved.img"+Suffix))
	assert.Equal(t, first.ID, kept(t, "sub/moved.img").ID, "moved with what is beside it")

	require.NoError(t, os.Link("sub/moved.img", "second.img"))
	_, err := Keep("second.img", false, ID{})
	require.ErrorContains(t, err, "hard links")
}

func TestACopyOfAFileAndOfItsIdentityIsFoundOut(t *testing.T) {
	needMarks(t)
	t.Chdir(t.TempDir())
	first := kept(t, made(t, "disk.img"))
	made(t, "copy.img")
	b, err := os.ReadFile("disk.img" + Suffix)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("copy.img"+Suffix, b, 0o600))
	_, err = Keep("copy.img", false, ID{})
	require.ErrorIs(t, err, ErrOther)
	require.ErrorContains(t, err, first.ID.String(), "what to say if it was moved")
	still, err := os.ReadFile("copy.img" + Suffix)
	require.NoError(t, err)
	assert.Equal(t, b, still, "nothing is kept")

	moved, err := Keep("copy.img", false, first.ID)
	require.NoError(t, err)
	assert.Equal(t, first.ID, moved.ID)
	assert.Equal(t, first.ID, kept(t, "copy.img").ID, "what was said once is kept")

	require.NoError(t, os.Remove("copy.img"+Suffix))
	assert.NotEqual(t, first.ID, kept(t, "copy.img").ID)
}

func TestAFreshFileGetsAnIdentityOfItsOwn(t *testing.T) {
	needMarks(t)
	t.Chdir(t.TempDir())
	first := kept(t, made(t, "disk.img"))
	fresh, err := Keep("disk.img", true, ID{})
	require.NoError(t, err)
	assert.NotEqual(t, first.ID, fresh.ID, "what lies there is that of a file that is gone")
	assert.Equal(t, fresh.ID, kept(t, "disk.img").ID)
}

func TestAnIdentityThatIsDamagedIsAnErrorAndNoOther(t *testing.T) {
	needMarks(t)
	t.Chdir(t.TempDir())
	made(t, "disk.img")
	kept(t, "disk.img")
	whole, err := os.ReadFile("disk.img" + Suffix)
	require.NoError(t, err)
	end := strings.LastIndexByte(string(whole), '}')
	for n := range end {
		require.NoError(t, os.WriteFile("disk.img"+Suffix, whole[:n], 0o600))
		_, err := Keep("disk.img", false, ID{})
		require.ErrorContains(t, err, "is damaged", "%d bytes", n)
	}
	said := New()
	_, err = Keep("disk.img", false, said)
	require.NoError(t, err)
	assert.Equal(t, said, kept(t, "disk.img").ID)
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	assert.Len(t, files, 2, "nothing else is left beside the disk")
}

func TestWhatIsSaidCountsAlsoWhereItCanNotBeKept(t *testing.T) {
	needMarks(t)
	t.Chdir(t.TempDir())
	made(t, "disk.img")
	require.NoError(t, os.MkdirAll("disk.img"+Suffix+"/full", 0o700)) // nothing can take its place
	said := New()
	k, err := Keep("disk.img", false, said)
	require.ErrorContains(t, err, "can't be kept")
	assert.Equal(t, said, k.ID)
	_, err = Keep("disk.img", false, ID{})
	require.Error(t, err)
	_, err = Keep("none", false, ID{})
	require.ErrorIs(t, err, os.ErrNotExist)
}
