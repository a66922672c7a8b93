package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/check/mutate/patch"
)

// victim is a module with one package and its tests.
var victim = map[string]string{
	"go.mod": "module victim\n\ngo 1.26\n",
	"v/v.go": `package v

func Add(a, b int) int { return a + b }

func Forever() bool { return false }
`,
	"v/v_test.go": `package v

import (
	"os"
	"testing"
)

func TestAdd(t *testing.T) {
	t.Run("two and two", func(t *testing.T) {
		if Add(2, 2) != 4 {
			t.Error("wrong")
		}
	})
}

func TestWeak(t *testing.T) {
	if Add(0, 0) != 0 {
		t.Error("wrong")
	}
}

func TestAtThirdTry(t *testing.T) {
	name := os.Getenv("TRIES")
	was, _ := os.ReadFile(name)
	if name == "" || Add(0, 1) == 1 {
		return
	}
	if len(was) == 2 {
		t.Fatal("wrong")
	}
	if err := os.WriteFile(name, append(was, '.'), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestHangsOnce(t *testing.T) {
	name := os.Getenv("TRIES")
	if _, err := os.Stat(name); name == "" || err == nil || !Forever() {
		return
	}
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	select {}
}

func TestForever(t *testing.T) {
	for Forever() {
	}
}

func TestFails(t *testing.T) { t.Error("always") }
`,
	"empty/e.go":        "package empty\n",
	"other/go.mod":      "module victim/other\n\ngo 1.26\n\nrequire victim v0.0.0\n\nreplace victim => ../\n",
	"other/o/o.go":      "package o\n\nimport \"victim/v\"\n\nfunc Twice(a int) int { return v.Add(a, a) }\n",
	"other/o/o_test.go": "package o\n\nimport \"testing\"\n\nfunc TestTwice(t *testing.T) {\n\tif Twice(2) != 4 {\n\t\tt.Error(\"wrong\")\n\t}\n}\n",
}

func newVictim(t *testing.T) *runner {
	t.Helper()
	if testing.Short() {
		t.Skip("it compiles programs")
	}
	root := t.TempDir()
	for name, text := range victim {
		path := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return &runner{root: root, temp: t.TempDir(), timeout: 2 * time.Second, kills: 1, passes: maxPasses}
}

func replaceInV(before, after string) []patch.Change {
	return []patch.Change{{File: "v/v.go", Old: before, New: after}}
}

func TestTheVerdictIsThatOfTheNamedTest(t *testing.T) {
	r := newVictim(t)
	for name, tc := range map[string]struct {
		test    string
		changes []patch.Change
		want    verdict
		detail  string
	}{
		"a failing test kills":               {"TestAdd", replaceInV("a + b", "a - b"), killed, ""},
		"a failing subtest kills":            {"TestAdd/two_and_two", replaceInV("a + b", "a - b"), killed, ""},
		"a panic kills":                      {"TestAdd", replaceInV("return a + b", `panic("x")`), killed, ""},
		"a hang kills at the time limit":     {"TestForever", replaceInV("false", "true"), killed, ""},
		"a passing test lets it survive":     {"TestWeak", replaceInV("a + b", "a - b"), survived, "PASS"},
		"another test's failure is none":     {"TestWeak", replaceInV("false", "true"), survived, "PASS"},
		"a text that is gone is stale":       {"TestAdd", replaceInV("a * b", "a"), stale, "occurs 0 times"},
		"a text found twice is stale":        {"TestAdd", replaceInV("return", "x"), stale, "occurs 2 times"},
		"code that won't compile is no kill": {"TestAdd", replaceInV("a + b", "nonsense"), broken, "nonsense"},
		"a file that is not there is broken": {"TestAdd", []patch.Change{{File: "v/w.go", Old: "a", New: "b"}}, broken, "w.go"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := r.try(t.Context(), mutation{pkg: "./v", test: tc.test, changes: tc.changes})
			assert.Equal(t, tc.want, got.verdict, got.detail)
			assert.Contains(t, got.detail, tc.detail)
		})
	}
}

func TestATestOfAModuleBelowKills(t *testing.T) {
	r := newVictim(t)
	require.NoError(t, r.baseline(t.Context(), []*mutation{{pkg: "./other/o", test: "TestTwice"}}))
	for name, changes := range map[string][]patch.Change{
		"a change of that module": {{File: "other/o/o.go", Old: "v.Add(a, a)", New: "v.Add(a, 0)"}},
		"a change of the other":   replaceInV("a + b", "a - b"),
	} {
		got := r.try(t.Context(), mutation{pkg: "./other/o", test: "TestTwice", changes: changes})
		assert.Equal(t, killed, got.verdict, "%s: %s", name, got.detail)
	}
}

func TestALateKillCountsItsPasses(t *testing.T) {
	r := newVictim(t)
	t.Setenv("TRIES", filepath.Join(t.TempDir(), "tries"))
	late := r.try(t.Context(), mutation{pkg: "./v", test: "TestAtThirdTry", changes: replaceInV("a + b", "a - b")})
	assert.Equal(t, killed, late.verdict, late.detail)
	assert.Equal(t, "killed in 1 of 3", late.String())

	r.kills = 2
	sure := r.try(t.Context(), mutation{pkg: "./v", test: "TestAdd", changes: replaceInV("a + b", "a - b")})
	assert.Equal(t, "killed", sure.String())
	assert.Equal(t, 2, sure.tries)

	never := r.try(t.Context(), mutation{pkg: "./v", test: "TestWeak", changes: replaceInV("a + b", "a - b")})
	assert.Equal(t, "SURVIVED", never.String())
	assert.Equal(t, maxPasses, never.tries)
}

// A machine that pauses makes a test late, too.
func TestOneHangIsNoKill(t *testing.T) {
	r := newVictim(t)
	t.Setenv("TRIES", filepath.Join(t.TempDir(), "tries"))
	once := r.try(t.Context(), mutation{pkg: "./v", test: "TestHangsOnce", changes: replaceInV("false", "true")})
	assert.Equal(t, survived, once.verdict, once.detail)
	assert.Equal(t, maxPasses, once.passed)
}

func TestOfAnEndedRunNothingIsSaid(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	tried := 0
	each(ctx, 1, 3, func(context.Context, int) {
		tried++
		end()
	})
	assert.Equal(t, 1, tried)
}

// What could not be tried says nothing of a test.
func TestTheShareIsOfWhatCouldBeTried(t *testing.T) {
	all := []result{{verdict: killed}, {verdict: survived}, {verdict: killed}, {verdict: killed}}
	text, err := share(all)
	require.NoError(t, err)
	assert.Equal(t, "3 of 4 mutations are killed: 75 %", text)
	text, err = share(append(all, result{verdict: stale}, result{verdict: broken}))
	assert.Equal(t, "3 of 4 mutations are killed: 75 %", text)
	require.ErrorContains(t, err, "2 mutations could not be tried")
	text, err = share([]result{{verdict: broken}})
	assert.Empty(t, text)
	require.ErrorContains(t, err, "1 mutations could not be tried")
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	for want, all := range map[string][][]string{
		`"loop" is no flag`:          {{"loop"}, {"-parts=3", "loop", "-part=1"}},
		"-parts, -j and -kills":      {{"-parts=0"}, {"-parts=-3"}, {"-j=-1"}, {"-j=0"}, {"-kills=-1"}},
		"-part is not negative":      {{"-parts=3", "-part=-1"}},
		"-timeout is at least":       {{"-timeout=0"}, {"-timeout=-5s"}},
		"-test is PACKAGE REGEXP":    {{"-test="}, {"-test", " "}},
		"missing closing":            {{"-run=("}},
		"want Subject: NAME or Test": {{"-test=TestY", "-patches=mutations"}},
		"no mutation matches":        {{"-run=nosuch", "-patches=mutations"}, {"-parts=1000", "-part=999", "-patches=mutations"}},
		"run it in the root":         {nil},
	} {
		for _, args := range all {
			err := run(t.Context(), args)
			require.ErrorContains(t, err, want, args)
			assert.Equal(t, 2, status(err), args)
		}
	}
	assert.Equal(t, 1, status(errNoTest))
	assert.Zero(t, status(nil))
}

func TestBaselineDemandsATestThatPasses(t *testing.T) {
	r := newVictim(t)
	for name, tc := range map[string]struct {
		pkg, test string
		want      string
	}{
		"a test that passes":            {"./v", "TestAdd", ""},
		"a subtest that passes":         {"./v", "TestAdd/two_and_two", ""},
		"a test that fails":             {"./v", "TestFails", "must pass without the change"},
		"a test that does not exist":    {"./v", "TestNone", errNoTest.Error()},
		"a subtest that does not exist": {"./v", "TestAdd/three", errNoTest.Error()},
		"a part of a test's name":       {"./v", "TestAd", errNoTest.Error()},
		"a package without tests":       {"./empty", "TestAdd", errNoTest.Error()},
		"a package that does not exist": {"./none", "TestAdd", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ms := []*mutation{{pkg: tc.pkg, test: tc.test}}
			err := r.baseline(t.Context(), ms)
			if tc.want == "" {
				assert.NoError(t, err)
				assert.NotZero(t, ms[0].usual)
				return
			}
			assert.ErrorContains(t, err, tc.want)
		})
	}
}

func TestChangesOfOneFileAddUp(t *testing.T) {
	r := newVictim(t)
	dir := t.TempDir()
	_, err := patch.Overlay(r.root, dir, []patch.Change{
		{File: "v/v.go", Old: "a + b", New: "b"},
		{File: "v/v.go", Old: "return b", New: "return 0"}, // applies to the text that the first change left
	})
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(dir, "0_v.go"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "{ return 0 }")
	whole, err := os.ReadFile(filepath.Join(r.root, "v/v.go"))
	require.NoError(t, err)
	assert.Contains(t, string(whole), "a + b", "the tree itself is not touched")
}

func TestAHangIsOneByWhatTheTestTakesWithoutTheChange(t *testing.T) {
	r := runner{timeout: time.Minute}
	for _, tc := range []struct {
		m    mutation
		want time.Duration
	}{
		{mutation{}, time.Minute},
		{mutation{usual: time.Millisecond}, leastHang},
		{mutation{usual: time.Second}, 20 * time.Second},
		{mutation{usual: time.Second, times: 2}, 40 * time.Second},
		{mutation{usual: time.Second, times: 20}, time.Minute},
		{mutation{usual: time.Second, limit: 10 * time.Second}, 10 * time.Second},
		{mutation{limit: 2 * time.Minute}, 2 * time.Minute},
	} {
		assert.Equal(t, tc.want, r.limit(tc.m), tc.m)
	}
}

func TestThePartsTogetherAreAllMutations(t *testing.T) {
	all := make([]mutation, 5)
	for i := range all {
		all[i].where = strconv.Itoa(i)
	}
	var together []mutation
	for part := 7; part < 10; part++ {
		together = append(together, partOf(all, part, 3)...)
	}
	assert.ElementsMatch(t, all, together)
}
