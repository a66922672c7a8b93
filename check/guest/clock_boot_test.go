//go:build guest

package guest

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// passed runs a program that sleeps in a guest with these words on the kernel's command
// line. It returns what the program was told of its clock, what was said, and how many
// seconds passed for the program while one passed here.
func passed(t *testing.T, kernel string) (told, said string, ratio float64) {
	t.Helper()
	var complaints bytes.Buffer
	var out stamps
	cfg := Config{Kernel: kernel, Output: &out, Progress: os.Stderr, Complaints: io.MultiWriter(&complaints, os.Stderr), Timeout: 5 * time.Minute}
	status, err := Run(t.Context(), cfg, "/bin/sh", "-c",
		`echo "$GODAT_GUEST_CLOCK"; read a b </proc/uptime; echo "$a"; for i in $(seq 40); do busybox usleep 250000; done; read a b </proc/uptime; echo "$a"`)
	require.NoError(t, err)
	require.Zero(t, status)
	words := strings.Fields(out.text.String())
	require.Len(t, words, 3)
	first, err := strconv.ParseFloat(words[1], 64)
	require.NoError(t, err)
	last, err := strconv.ParseFloat(words[2], 64)
	require.NoError(t, err)
	return words[0], complaints.String(), (last - first) / out.last.Sub(out.first).Seconds()
}

// stamps is output, and when its first and last piece came.
type stamps struct {
	text        bytes.Buffer
	first, last time.Time
}

func (s *stamps) Write(p []byte) (int, error) {
	s.last = time.Now()
	if s.first.IsZero() {
		s.first = s.last
	}
	return s.text.Write(p)
}

// The pieces of output may be late by a fraction of a second.
const late = 0.15

func TestTheGuestsClockKeepsTheHostsTime(t *testing.T) {
	told, said, ratio := passed(t, "")
	assert.Equal(t, clockRight, told)
	assert.Empty(t, said)
	assert.InDelta(t, 1, ratio, late)
}

// The kernel believes that its processor's counter counts a twelfth of what it does, as it
// may find out by itself on a busy host.
const twelfth = "tsc=reliable tsc_early_khz=200000"

func TestAClockThatIsWrongGivesWayToASlowerOne(t *testing.T) {
	told, said, ratio := passed(t, twelfth)
	assert.Equal(t, clockRight, told)
	assert.Empty(t, said)
	assert.InDelta(t, 1, ratio, late)
}

func TestAClockThatStaysWrongIsSaidAloud(t *testing.T) {
	told, said, ratio := passed(t, twelfth+" hpet=disable")
	assert.Equal(t, clockWrong, told)
	assert.Contains(t, said, "TIMES MEAN NOTHING")
	assert.Equal(t, 1, strings.Count(said, "\n"))
	assert.Greater(t, ratio, 2.0, "the counter's rate is above 400 MHz")
}
