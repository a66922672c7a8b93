package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// scrape is what a node tells Prometheus.
func (c *cluster) scrape(addr string) string {
	response, err := http.Get("http://" + addr + "/metrics") //nolint:noctx // it is this machine's
	if err != nil {
		return ""
	}
	text, err := io.ReadAll(response.Body)
	require.NoError(c, err)
	require.NoError(c, response.Body.Close())
	require.Equal(c, http.StatusOK, response.StatusCode, "%s", text)
	return string(text)
}

func TestPrometheusSeesAVolume(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	pages := make(map[int]string)
	for id := 1; id <= 3; id++ {
		pages[id] = freePort(t)
		c.start(id, "--create", "--metrics="+pages[id])
	}
	d := &content{h: c.host(), r: rand.New(rand.NewPCG(17, 18))}
	d.write(20)
	leader := c.leader()
	volume := fmt.Sprintf(`\{volume=%q\}`, c.token.Volume.String())
	shows := func(id int, want ...string) {
		c.eventually(fmt.Sprintf("node %d does not show %q", id, want), func() bool {
			text := c.scrape(pages[id])
			for _, line := range want {
				if !regexp.MustCompile(`(?m)^` + line + `$`).MatchString(text) {
					return false
				}
			}
			return true
		})
	}
	shows(leader, "godat_volume_leads"+volume+" 1", "godat_volume_copies"+volume+" 3", "godat_volume_copies_asked"+volume+" 3",
		"godat_volume_commit_seconds_count"+volume+" [1-9].*", "godat_volume_leader_changes_total"+volume+" [1-9].*", "godat_volume_refusals"+volume+" 0")
	follower := 1 + leader%3
	shows(follower, "godat_volume_leads"+volume+" 0", "godat_volume_has_leader"+volume+" 1", "godat_volume_rebuilds_total"+volume+" 0", "godat_volume_zeros_left_bytes"+volume+" 0")
	require.NotContains(t, c.scrape(pages[follower]), "godat_volume_copies")
	problems, err := promlint.New(strings.NewReader(c.scrape(pages[leader]))).Lint()
	require.NoError(t, err)
	for _, p := range problems {
		assert.NotContains(t, p.Metric, "godat_volume", p.Text)
	}

	// The rules name what is there.
	rules, err := os.ReadFile("alerts.yaml")
	require.NoError(t, err)
	text := c.scrape(pages[leader])
	for _, name := range regexp.MustCompile(`godat_volume_[a-z_]+`).FindAllString(string(rules), -1) {
		assert.Contains(t, text, name)
	}

	c.kill(follower)
	shows(leader, "godat_volume_copies"+volume+" 2", fmt.Sprintf(`godat_volume_replica_silent\{replica="%d",volume=%q\} 1`, follower, c.token.Volume.String()))
}

func TestNumbersAreThereBeforeTheNodesAre(t *testing.T) {
	m := &machine{}
	addr := freePort(t)
	wait, err := newMetrics(m).serve(t.Context(), addr)
	require.NoError(t, err)
	response, err := http.Get("http://" + addr + "/metrics") //nolint:noctx // it is this machine's
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusOK, response.StatusCode)
	require.NoError(t, wait())
}
