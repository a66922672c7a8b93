package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryExceptionHasItsReason(t *testing.T) {
	loop, err := exceptions("loop")
	require.NoError(t, err)
	iwarp, err := exceptions("iwarp:127.0.0.1")
	require.NoError(t, err)
	assert.Subset(t, loop, iwarp, "only loop has exceptions of its own")
	assert.Contains(t, loop, "TestSetsRemoteAddr")
	assert.NotContains(t, iwarp, "TestSetsRemoteAddr")
}

func TestAPackageIsListedUnderItsVendoredModule(t *testing.T) {
	v := &vendored{
		mod:     "module std\n",
		modules: "# m.org/sys v0.1.0\n## explicit; go 1.24.0\nm.org/sys/cpu\n# m.org/text v0.2.0\n## explicit; go 1.24.0\nm.org/text/a\n",
	}
	v.add("m.org/sys/unix", "m.org/sys", "v0.9.0")
	v.add("other.org/b", "other.org", "v1.0.0")
	v.add("other.org/a", "other.org", "v1.0.0")
	assert.Equal(t, "module std\nrequire other.org v1.0.0\n", v.mod)
	assert.Equal(t, "# m.org/sys v0.1.0\n## explicit; go 1.24.0\nm.org/sys/unix\nm.org/sys/cpu\n"+
		"# m.org/text v0.2.0\n## explicit; go 1.24.0\nm.org/text/a\n"+
		"# other.org v1.0.0\n## explicit; go 1.18\nother.org/a\nother.org/b\n", v.modules)
}

func TestAFailedTestIsCountedAndItsOutputPrinted(t *testing.T) {
	var v verdict
	v.read(strings.NewReader(`{"Action":"run","Test":"TestA"}
{"Action":"output","Test":"TestA","Output":"=== RUN TestA\n"}
{"Action":"pass","Test":"TestA"}
{"Action":"skip","Test":"TestB"}
{"Action":"fail","Test":"TestC/h1"}
{"Action":"fail"}
`))
	assert.Equal(t, "1 tests and subtests passed, 1 failed, 1 skipped themselves", v.String())
	assert.Empty(t, v.again(), "TestC itself has no end")
}

func TestOneOrTwoTestsThatFailedRunAgain(t *testing.T) {
	var v verdict
	v.read(strings.NewReader(`{"Action":"output","Test":"TestA/h1","Output":"it failed\n"}
{"Action":"fail","Test":"TestA/h1"}
{"Action":"fail","Test":"TestA"}
{"Action":"fail","Test":"TestB"}
`))
	assert.Equal(t, []string{"TestA", "TestB"}, v.again())
	v.take(event{Action: "output", Test: "TestC", Output: "it began\n"})
	assert.Empty(t, v.again(), "TestC has not ended: the program died")
	v.take(event{Action: "fail", Test: "TestC"})
	assert.Empty(t, v.again(), "three tests are too many for a moment")
}

func TestTheHTTPPackageDeclaresWhatTheOthersUse(t *testing.T) {
	assert.Contains(t, dialing("http"), "\tTestDial ")
	assert.NotContains(t, dialing("http"), "nethttp")
	assert.Contains(t, dialing("httptest"), "nethttp.TestDial")
	assert.NotContains(t, dialing("httptest"), "\tTestDial ")
}
