package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const goodTable = `# a comment
== first
file  a/x.go
test  ./a TestX
flags -race -count=3 -cpu=1,2 -timeout=1m
<<<
	if a {
		b()
===
	if false {
		b()
>>>

== second
test ./b TestY/sub
file b/y.go
<<<
one
===
>>>
file b/z.go
<<<
two
===
three
>>>
`

func TestTableIsReadAsWritten(t *testing.T) {
	got, err := parseTable("t.txt", []byte(goodTable))
	require.NoError(t, err)
	assert.Equal(t, []mutation{
		{
			where: "t.txt:2", name: "first", pkg: "./a", test: "TestX",
			build: []string{"-race"}, run: []string{"-test.count=3", "-test.cpu=1,2"}, limit: time.Minute,
			changes: []change{{"a/x.go", "\tif a {\n\t\tb()", "\tif false {\n\t\tb()"}},
		},
		{
			where: "t.txt:14", name: "second", pkg: "./b", test: "TestY/sub",
			changes: []change{{"b/y.go", "one", ""}, {"b/z.go", "two", "three"}},
		},
	}, got)
}

func TestBadTableIsRefusedWithItsLine(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"a field before the first name":  {"file x.go\n", "t.txt:1:"},
		"an unknown field":               {"== a\nfiel x.go\n", "t.txt:2:"},
		"a change without a file":        {"== a\ntest ./a T\n<<<\nx\n===\ny\n>>>\n", "t.txt:3: a change needs a file"},
		"a change that is not closed":    {"== a\ntest ./a T\nfile x.go\n<<<\nx\n===\ny\n", "no >>>"},
		"a change without a new text":    {"== a\ntest ./a T\nfile x.go\n<<<\nx\n", "no ==="},
		"a change that changes nothing":  {"== a\ntest ./a T\nfile x.go\n<<<\nx\n===\nx\n>>>\n", "equal to the new"},
		"an entry without a test":        {"== a\nfile x.go\n<<<\nx\n===\ny\n>>>\n", "needs a test"},
		"an entry without a change":      {"== a\ntest ./a T\n\n== b\n", `mutation "a" needs`},
		"a test without its package":     {"== a\ntest TestX\n", "t.txt:2:"},
		"text that is not in the format": {"== a\nhello\n", "t.txt:2:"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseTable("t.txt", []byte(tc.text))
			assert.ErrorContains(t, err, tc.want)
		})
	}
}

func TestCommittedTablesAreWellFormed(t *testing.T) {
	all, err := loadTables("mutations")
	require.NoError(t, err)
	names := make(map[string]string)
	for _, m := range all {
		assert.Empty(t, names[m.title()], "%s has the name of %s", m.where, names[m.title()])
		names[m.title()] = m.where
		_, err := writeOverlay(filepath.Join("..", ".."), t.TempDir(), m.changes)
		assert.NoError(t, err, "%s: %s", m.where, m.name)
	}
}
