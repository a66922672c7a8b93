package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"godat/check/mutate/patch"
	"godat/check/world"
)

func TestFaultsApplyToTheTree(t *testing.T) {
	all, err := filepath.Glob("../faults/*.patch")
	require.NoError(t, err)
	require.NotEmpty(t, all)
	for _, path := range all {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		header, changes, err := patch.Read(text)
		require.NoError(t, err, path)
		require.NotEmpty(t, header["Subject"], path)
		_, err = patch.Texts("../../..", changes)
		require.NoError(t, err, path)
	}
}

func TestOptionsThatWouldPlantNothingAreRefused(t *testing.T) {
	t.Chdir("..")
	for want, args := range map[string][]string{
		`"faults" is no flag`:         {"faults"},
		"seeds and every":             {"-seeds=0"},
		"limit is at least a second":  {"-limit=-1s"},
		`no guest is "./gest"`:        {"-guest=./gest"},
		`no program matches "cals"`:   {"-programs=cals"},
		`no program matches "volume"`: {"-programs=volume", "-guest=./guest"},
		"missing closing":             {"-programs=("},
		`no fault matches "nosuch"`:   {"-run=nosuch"},
		"-one takes the path":         {"-one="},
		"and has no -run":             {"-one=faults/a-request-is-its-slots.patch", "-run=faults"},
		"or -every beside it":         {"-one=faults/a-request-is-its-slots.patch", "-every=2"},
	} {
		err := run(t.Context(), io.Discard, args)
		require.ErrorContains(t, err, want, args)
		require.Equal(t, 2, world.Status(err), args)
	}
	t.Chdir("plant")
	require.ErrorContains(t, run(t.Context(), io.Discard, nil), "run it in check/world")
}

// A fault that nothing runs with would count as one that lives.
func TestAFaultWithoutAProgramIsNotPlanted(t *testing.T) {
	t.Chdir("..")
	err := run(t.Context(), io.Discard, []string{"-one=faults/a-request-is-its-slots.patch", "-programs=volume"})
	require.ErrorContains(t, err, `no program of ./guest matches "volume"`)
}

// What the system ends by the bound of its processors spins. What somebody else ends says nothing of the fault.
func TestWhatIsEndedBeforeItsBoundIsNoFaultThatSpins(t *testing.T) {
	const begun = "calls over loop, seed 7"
	for bound, want := range map[time.Duration]string{
		0:         begun + ": it spins: 2m0s of a processor were not enough",
		time.Hour: "not planted: signal: killed, and not for its time of processors",
	} {
		said := fmt.Sprintf("%s%v\n%s\n", bounded, bound, begun)
		cmd := exec.Command("sh", "-c", "kill -9 $$")
		err := cmd.Run()
		require.Error(t, err)
		require.Equal(t, want, became(err, cmd.ProcessState, said, ""))
	}
	cmd := exec.Command("sh", "-c", "kill -9 $$")
	require.Contains(t, became(cmd.Run(), cmd.ProcessState, "", ""), "not planted", "it had no bound yet")
	cmd = exec.Command("sh", "-c", "exit 1")
	require.Equal(t, "not planted: no room", became(cmd.Run(), cmd.ProcessState, "", "no room\n"))
	cmd = exec.Command("true")
	require.Equal(t, lives+": 20 seeds", became(cmd.Run(), cmd.ProcessState, begun+"\n"+lives+": 20 seeds\n", ""))
}

// room is a writer that has room for so many lines.
type room struct {
	lines int
	text  strings.Builder
}

func (r *room) Write(b []byte) (int, error) {
	if r.lines--; r.lines < 0 {
		return 0, syscall.ENOSPC
	}
	return r.text.Write(b)
}

func TestAReportThatHasNoRoomIsAnError(t *testing.T) {
	t.Chdir("..")
	c := campaign{seeds: 3, every: 1, commit: "0123456789ab", try: func(context.Context, string) string { return lives + ": 3 seeds" }}
	all := []string{"faults/a.patch", "faults/b.patch"}
	for lines := range 5 {
		require.ErrorIs(t, c.run(t.Context(), &room{lines: lines}, all), syscall.ENOSPC, lines)
	}
	enough := room{lines: 5}
	require.NoError(t, c.run(t.Context(), &enough, all))
	require.Regexp(t, `^commit 0123456789ab
faults/a\.patch +lives: 3 seeds
faults/b\.patch +lives: 3 seeds
faults: 0 of 2 found
0 of 2 found, by 3 seeds
$`, enough.text.String())
}

func TestAFaultThatNobodyCouldPlantIsNoneThatLives(t *testing.T) {
	var n count
	n.add(failed + ": no space left on device")
	n.add(lives + ": 20 seeds")
	n.add("calls over loop, seed 1: a call is lost")
	require.Equal(t, count{found: 1, planted: 2, failed: 1}, n)
}

func TestProgramsShareTheTimeThatAFaultHas(t *testing.T) {
	lanes := lanesOf([]world.Run{{Program: "cheap"}, {Program: "dear"}})
	require.Len(t, lanes, 4, "each in short runs and in whole ones")
	for range 100 {
		l := next(lanes, 1000)
		l.Seed++
		l.had += map[string]time.Duration{"cheap": time.Second, "dear": 10 * time.Second}[l.Program]
	}
	for _, l := range lanes {
		require.InDelta(t, 46, l.had.Seconds(), 10, "%v", l.Run)
	}
	for next(lanes, 10) != nil {
		next(lanes, 10).Seed++
	}
	require.Nil(t, next(lanes, 10), "no lane has seeds left")
}
