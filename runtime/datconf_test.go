package runtime

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"godat/hw"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// useRegistry makes text the static registry for the test.
func useRegistry(t *testing.T, text string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dat.conf")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	t.Setenv("DAT_OVERRIDE", path)
}

const sampleRegistry = `
# a comment
OpenIB-cma u1.2 nonthreadsafe default libdaplcma.so.1 dapl.1.2 "ib0 0" ""
	ofa-v2-mlx4_0-1  u2.0 nonthreadsafe default /usr/lib/libdaploscm.so.2 dapl.2.0 "mlx4_0 1" "" # behind
"a \"name\" \\ x" k2.1 threadsafe nondefault lib#1 id.3.4 "a	b" "p=1"
`

func TestAStaticRegistryIsParsed(t *testing.T) {
	entries, err := parseRegistry(sampleRegistry + "\r\n")
	require.NoError(t, err)
	assert.Equal(t, []registryEntry{
		{
			Line: 3, Name: "OpenIB-cma", Major: 1, Minor: 2, Default: true, Library: "libdaplcma.so.1",
			Provider: "dapl", ProviderMajor: 1, ProviderMinor: 2, Params: "ib0 0",
		},
		{
			Line: 4, Name: "ofa-v2-mlx4_0-1", Major: 2, Default: true, Library: "/usr/lib/libdaploscm.so.2",
			Provider: "dapl", ProviderMajor: 2, Params: "mlx4_0 1",
		},
		{
			Line: 5, Name: `a "name" \ x`, Kernel: true, Major: 2, Minor: 1, ThreadSafe: true, Library: "lib#1",
			Provider: "id", ProviderMajor: 3, ProviderMinor: 4, Params: "a\tb", PlatformParams: "p=1",
		},
	}, entries)
}

func TestABadLineIsNamedAndLeftOut(t *testing.T) {
	const good = `n u2.0 threadsafe default lib id.1.0 "" ""`
	for bad, want := range map[string]string{
		`n u2.0 threadsafe default lib id.1.0 ""`:      "7 fields, want 8",
		`n u2.0 threadsafe default lib id.1.0 "" "" x`: "9 fields, want 8",
		`n u2.0 threadsafe default lib id.1.0 "" "`:    "field 8: no closing quote",
		`n u2.0 threadsafe default lib id.1.0 "" "x\`:  "field 8: the line ends after a backslash",
		`n u2.0 threadsafe default lib id.1.0 """"`:    `field 7: "\"" follows the closing quote`,
		`"" u2.0 threadsafe default lib id.1.0 "" ""`:  "a name of 0 bytes",
		`n x2.0 threadsafe default lib id.1.0 "" ""`:   `API version "x2.0": "x", want k or u`,
		`n u2 threadsafe default lib id.1.0 "" ""`:     `API version "u2": "2", want major.minor`,
		`n u2.-1 threadsafe default lib id.1.0 "" ""`:  `API version "u2.-1": "2.-1", want major.minor`,
		`n "" threadsafe default lib id.1.0 "" ""`:     `API version "": "", want k or u`,
		`n u2.0 safe default lib id.1.0 "" ""`:         `"safe", want threadsafe or nonthreadsafe`,
		`n u2.0 threadsafe yes lib id.1.0 "" ""`:       `"yes", want default or nondefault`,
		`n u2.0 threadsafe default "" id.1.0 "" ""`:    "no library",
		`n u2.0 threadsafe default lib id "" ""`:       `provider version "id", want id.major.minor`,
		`n u2.0 threadsafe default lib .1.0 "" ""`:     `provider version ".1.0", want id.major.minor`,
		`n u2.0 threadsafe default lib id.1 "" ""`:     `provider version "id.1": "1", want major.minor`,
		strings.Repeat("n", 256) + good[1:]:            "a name of 256 bytes",
	} {
		entries, err := parseRegistry(good + "\n\n" + bad + "\n" + good)
		require.EqualError(t, err, "line 3: "+want)
		require.Len(t, entries, 2, "the other lines are good")
		assert.Equal(t, 4, entries[1].Line)
	}
	_, err := parseRegistry("a\n\nb")
	require.EqualError(t, err, "line 1: 1 fields, want 8\nline 3: 1 fields, want 8")
}

func TestTheStaticRegistryIsWhereTheVariableSays(t *testing.T) {
	useRegistry(t, sampleRegistry)
	entries, err := staticRegistry()
	require.NoError(t, err)
	assert.Len(t, entries, 3)

	useRegistry(t, sampleRegistry+"wrong")
	entries, err = staticRegistry()
	require.ErrorContains(t, err, os.Getenv("DAT_OVERRIDE")+": line 6: 1 fields")
	require.ErrorIs(t, err, hw.ErrInvalidParameter)
	assert.Len(t, entries, 3)

	t.Setenv("DAT_OVERRIDE", t.TempDir()) // a directory can't be read
	_, err = staticRegistry()
	require.ErrorIs(t, err, hw.ErrInternal)
	require.ErrorContains(t, err, "DAT_OVERRIDE="+os.Getenv("DAT_OVERRIDE"))
}

// Without the variable there need be no file. A file that somebody names is missed.
func TestAStaticRegistryThatIsNamedAndNotThereIsToldOf(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "absent")
	t.Setenv("DAT_OVERRIDE", absent)
	registered := hw.ListProviders()
	list, err := Providers()
	require.ErrorIs(t, err, hw.ErrInternal)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "DAT_OVERRIDE="+absent)
	assert.Equal(t, registered, list, "the list is still good")

	_, err = Open(t.Context(), "my-ia")
	requireCode(t, err, hw.ProviderNotFound, hw.NameNotRegistered)
	require.ErrorContains(t, err, "DAT_OVERRIDE="+absent)
	_, err = Describe(t.Context(), "my-ia")
	require.ErrorContains(t, err, "DAT_OVERRIDE="+absent)
	require.NoError(t, open(t, "loop").CloseGraceful(), "a provider's own name needs no file")

	t.Setenv("DAT_OVERRIDE", "")
	if _, err := os.Stat(registryFile); errors.Is(err, fs.ErrNotExist) {
		_, err = Providers()
		require.NoError(t, err)
	}
}

func FuzzParseRegistry(f *testing.F) {
	f.Add(sampleRegistry)
	f.Add(`n u2.0 threadsafe default lib id.1.0 "\x" ""`)
	f.Add("\"\\\n#")
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := parseRegistry(text)
		lines := strings.Count(text, "\n") + 1
		if len(entries) > lines {
			t.Fatalf("%d entries of %d lines", len(entries), lines)
		}
		if err == nil && strings.TrimSpace(text) != "" && len(entries) == 0 && !strings.Contains(text, "#") {
			t.Fatal("lines are gone without an error")
		}
		for _, e := range entries {
			again, err := parseRegistry(e.String())
			if err != nil || len(again) != 1 {
				t.Fatalf("%q is parsed, but as a line of its own %v", e, err)
			}
			again[0].Line = e.Line
			if again[0] != e {
				t.Fatalf("%+v became %+v", e, again[0])
			}
		}
	})
}
