package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEachServiceAnswersEachRequest(t *testing.T) {
	for _, of := range services {
		for _, size := range []int{1, 64, insideMost, insideMost + 1, 1 << 20} {
			callers := 3
			if of.most != 0 {
				callers = 1
			}
			if of.most != 0 && size > of.most {
				continue
			}
			s, err := of.open(size, callers)
			require.NoError(t, err, of.name)
			done := make(chan error, callers)
			for i := range callers {
				go func() {
					var err error
					for range 5 {
						err = errors.Join(err, s.call(i))
					}
					done <- err
				}()
			}
			for range callers {
				assert.NoError(t, <-done, "%s, %d bytes", of.name, size)
			}
			require.NoError(t, s.close(), of.name)
		}
	}
}

func TestTheStudyHasARowForEachServiceAndATargetForEachBound(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, runStudy(strings.Fields("-repeats 1 -duration 2ms -size 64,1048576 -callers 1,4"), &out))
	for _, of := range services {
		n := 4
		if of.most != 0 {
			n = 1
		}
		assert.Equal(t, n, strings.Count(out.String(), "\n"+of.name+"  "), of.name)
	}
	assert.Equal(t, 9, strings.Count(out.String(), "not told: too few repeats"), out.String())
	assert.NotContains(t, out.String(), "refused")
	out.Reset()
	require.NoError(t, runStudy(strings.Fields("-repeats 1 -duration 2ms -size 64 -callers 1 -only net/"), &out))
	assert.NotContains(t, out.String(), "gRPC")
	for _, args := range []string{"-repeats 0", "-duration 0s", "-size 0", "-callers x", "-size 17000000"} {
		assert.Error(t, runStudy(strings.Fields(args), &out), args)
	}
}

func TestAServiceThatFailsIsRefusedAlone(t *testing.T) {
	s := study{repeats: 1, out: new(bytes.Buffer)}
	c := contender{service: service{name: "broken"}, site: brokenSite{}, all: newHistogram(), close: brokenSite{}.close}
	c.refused = c.turn(2, 1, true)
	require.ErrorIs(t, c.refused, errAnswer)
	s.print(64, 2, []*contender{&c})
	assert.Contains(t, s.out.(*bytes.Buffer).String(), "refused: "+errAnswer.Error())
	s.judge(64, 2, map[string]*contender{overIWARP: &c, overGRPC: &c})
	assert.NotContains(t, s.out.(*bytes.Buffer).String(), "rate,")
}

// brokenSite never answers right.
type brokenSite struct{}

func (brokenSite) call(int) error { return errAnswer }
func (brokenSite) close() error   { return nil }

func TestATargetIsMissedByTheMedianOfTheRatios(t *testing.T) {
	var out bytes.Buffer
	s := study{out: &out}
	ours, theirs := &contender{}, &contender{}
	for range 9 {
		ours.rate, theirs.rate = append(ours.rate, 30), append(theirs.rate, 10)
		ours.processor, theirs.processor = append(ours.processor, 9), append(theirs.processor, 10)
	}
	s.judge(64, 1, map[string]*contender{overIWARP: ours, overGRPC: theirs})
	assert.Contains(t, out.String(), "rate, rpc over iwarp / gRPC: 3.00 (3.00–3.00), ≥ 2.00: met")
	assert.Contains(t, out.String(), "processor time, rpc over iwarp / gRPC: 0.90 (0.90–0.90), ≤ 0.50: missed")
	assert.Equal(t, []string{"processor time of 64 bytes, 1 callers"}, s.failed)
}

func TestThreeDigitsAreShown(t *testing.T) {
	for ns, want := range map[float64]string{-1: "?", 0: "0s", 999: "999ns", 1234: "1.23µs", 12345: "12.3µs", 1_236_000: "1.24ms"} {
		assert.Equal(t, want, show(ns))
	}
}
