package main

import (
	"os"
	"path/filepath"
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
	} {
		err := run(t.Context(), args)
		require.ErrorContains(t, err, want, args)
		require.Equal(t, 2, world.Status(err), args)
	}
	t.Chdir("plant")
	require.ErrorContains(t, run(t.Context(), nil), "run it in check/world")
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
