package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/check/mutate/patch"
)

const goodPatch = `Subject: first: of two
Test: ./a TestX/sub -race -count=3 -cpu=1,2 -timeout=1m -model.programs=5
@@ a/x.go
 	if a {
-		b()
-		c()
+		d()
@@ a/x.go
 e
+f

+
diff --git a/b/y.go b/b/y.go
index ee99d02..ed39ec7 100644
--- a/b/y.go
+++ b/b/y.go
@@ -1 +1 @@ func y() {
-one
+two
@@ -7 +7 @@
-three
`

func TestPatchIsReadAsWritten(t *testing.T) {
	got, err := parsePatch("t/first.patch", []byte(goodPatch))
	require.NoError(t, err)
	assert.Equal(t, mutation{
		where: "t/first.patch", name: "first: of two", pkg: "./a", test: "TestX/sub",
		build: []string{"-race"}, run: []string{"-test.count=3", "-test.cpu=1,2", "-model.programs=5"}, limit: time.Minute, times: 3,
		changes: []patch.Change{
			{File: "a/x.go", Old: "\tif a {\n\t\tb()\n\t\tc()\n", New: "\tif a {\n\t\td()\n"},
			{File: "a/x.go", Old: "e\n\n", New: "e\nf\n\n\n"},
			{File: "b/y.go", Old: "one\n", New: "two\n"},
			{File: "b/y.go", Old: "three\n"},
		},
	}, got)
	assert.Equal(t, "t: first: of two", got.title())
}

func TestAnotherTestJudgesByItsOwnFlags(t *testing.T) {
	m, err := parsePatch("t/first.patch", []byte(goodPatch))
	require.NoError(t, err)
	other, err := m.by("./b TestY -b.ops=7")
	require.NoError(t, err)
	assert.Equal(t, mutation{where: m.where, name: m.name, pkg: "./b", test: "TestY", run: []string{"-b.ops=7"}, changes: m.changes}, other)
	_, err = m.by("TestY")
	assert.ErrorContains(t, err, "want Subject: NAME or Test: PACKAGE REGEXP FLAGS")
}

func TestBadPatchIsRefused(t *testing.T) {
	const diff = "@@ a/x.go\n-x\n+y\n"
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":                   {"", "needs a Subject"},
		"an unknown field":          {"Subject: a\nTest: ./a T\nFiel: x\n" + diff, "field Fiel: x: want"},
		"a header that is none":     {"hello\n" + diff, "malformed"},
		"no subject":                {"Test: ./a T\n" + diff, "needs a Subject"},
		"no test":                   {"Subject: a\n" + diff, "needs a Subject, a Test"},
		"no change":                 {"Subject: a\nTest: ./a T\n\n", "and a change"},
		"a test without a package":  {"Subject: a\nTest: TestX\n" + diff, "field Test: TestX: want"},
		"a time limit that is none": {"Subject: a\nTest: ./a T -timeout=soon\n" + diff, "soon"},
		"a count that is none":      {"Subject: a\nTest: ./a T -count=often\n" + diff, "often"},
		"a line that is in no diff": {"Subject: a\nTest: ./a T\n" + diff + "z\n", "is no line of a hunk"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parsePatch("t/x.patch", []byte(tc.text))
			assert.ErrorContains(t, err, tc.want)
		})
	}
}

func TestCommittedPatchesApply(t *testing.T) {
	all, err := loadPatches("mutations")
	require.NoError(t, err)
	assert.LessOrEqual(t, len(all), 200, "doc.go says which lines have a mutation")
	names := make(map[string]string)
	for _, m := range all {
		assert.Empty(t, names[m.title()], "%s has the name of %s", m.where, names[m.title()])
		names[m.title()] = m.where
		_, err := patch.Texts(filepath.Join("..", ".."), m.changes)
		assert.NoError(t, err, m.where)
	}
}
