package main

import (
	"flag"
	"fmt"
	"html"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/nvme"
	"godat/examples/volume/fault"
	"godat/examples/volume/secure"
)

// day is a bad day of a volume, of which a visitor knows nothing but the pages of its nodes.
type day struct {
	name  string
	stage func(*bad) (node int) // makes the day, and says whose page the visitor looks at
	says  string                // its first line, within a minute
}

// bad is a volume that has a bad day.
type bad struct {
	*cluster
	pages []string // addresses, by id from 1
	d     *content
}

func (b *bad) start(id int, args ...string) {
	b.cluster.start(id, append(args, "--inspect="+b.pages[id-1])...)
}

const blind = 6 * time.Second // in which an all-clear is no lie: nothing has lasted for long

var (
	told  = regexp.MustCompile(`(?s)<section aria-label="What is wrong">(.*?)</section>`)
	lines = regexp.MustCompile(`(?s)<li>(.*?)</li>`)
	tags  = regexp.MustCompile(`<[^>]*>`)
)

// get is the page of a node.
func (b *bad) get(id int) (string, error) {
	r, err := (&http.Client{Timeout: 5 * time.Second}).Get("http://" + b.pages[id-1] + "/")
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	return string(text), err
}

var pages = flag.String("pages", "", "judge nothing, and write the pages of each day that is run to this directory, for a reader")

// write writes the pages of all nodes some time into a day.
func (b *bad) write(name string) {
	all := make(map[string]string)
	for began := time.Now(); time.Since(began) < 30*time.Second; time.Sleep(2 * time.Second) {
		for id := 1; id <= 3; id++ {
			page, err := b.get(id)
			if err != nil {
				page = err.Error()
			}
			all[fmt.Sprintf("node%d.html", id)] = page
		}
	}
	dir := filepath.Join(*pages, strings.ReplaceAll(name, " ", "_"))
	require.NoError(b, os.MkdirAll(dir, 0o700))
	for file, page := range all {
		require.NoError(b, os.WriteFile(filepath.Join(dir, file), []byte(page), 0o600))
	}
}

// page is what the page of a node says is wrong, a line each.
func (b *bad) page(id int) (all []string) {
	text, err := b.get(id)
	if err != nil {
		return []string{err.Error()}
	}
	plain := func(s string) string {
		return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(s, ""))), " ")
	}
	section := told.FindString(text)
	for _, m := range lines.FindAllStringSubmatch(section, -1) {
		all = append(all, plain(m[1]))
	}
	if all == nil {
		all = []string{plain(section)}
	}
	return all
}

// load writes until the test ends.
func (b *bad) load() {
	stop := make(chan struct{})
	ended := make(chan struct{})
	h := b.host()
	go func() {
		defer close(ended)
		r := rand.New(rand.NewPCG(1, 2))
		for number := uint64(1000); ; number++ {
			select {
			case <-stop:
				return
			default:
				off := r.IntN(diskLen/blockLen) * blockLen
				_, _ = h.try(nvme.IOWrite, placed(off, blockLen, number), off)
			}
		}
	}()
	b.Cleanup(func() { close(stop); <-ended })
}

const well = "Nothing is wrong"

var days = []day{
	{"nothing is wrong, under load", func(b *bad) int {
		b.load()
		return b.leader()
	}, well},
	{"a follower's disk is slow, on the leader's page", func(b *bad) int {
		leader := b.leader()
		require.NoError(b, b.disk(1+leader%3).Say(fault.Trouble{Slow: 3 * time.Second}))
		b.load()
		return leader
	}, `replica \S+: (the replica is out, \d+ records behind|the replica's node took [\d.]+s until it had more|nothing is heard) .* and at its disk`},
	{"a follower's disk is slow, on its own page", func(b *bad) int {
		id := 1 + b.leader()%3
		require.NoError(b, b.disk(id).Say(fault.Trouble{Slow: 3 * time.Second}))
		b.load()
		return id
	}, `volume \S+: this node's disk is slow: a write took`},
	{"the leader's disk is slow", func(b *bad) int {
		leader := b.leader()
		require.NoError(b, b.disk(leader).Say(fault.Trouble{Slow: time.Second}))
		b.load()
		return leader
	}, `volume \S+: this node's disk is slow: a write took`},
	{"a node that was away catches up with a slow disk", func(b *bad) int {
		leader := b.leader()
		id := 1 + leader%3
		b.kill(id)
		b.d.write(300)
		require.NoError(b, b.disk(id).Say(fault.Trouble{Slow: 2 * time.Second}))
		b.start(id)
		return id
	}, `volume \S+: this node's disk is slow: a write took`},
	{"all disks are slow", func(b *bad) int {
		for id := range b.running {
			require.NoError(b, b.disk(id).Say(fault.Trouble{Slow: 2 * time.Second}))
		}
		b.load()
		return b.leader()
	}, `volume \S+: this node's disk is slow: a write took`},
	{"a follower's disk is full", func(b *bad) int {
		leader := b.leader()
		require.NoError(b, b.disk(1+leader%3).Say(fault.Trouble{Full: true}))
		b.load()
		return leader
	}, `replica \S+: nothing is heard of the replica's node|the peer's process has died|attempts to connect to \S+ failed within a minute`},
	{"a node is away", func(b *bad) int {
		leader := b.leader()
		b.kill(1 + leader%3)
		return leader
	}, `replica \S+: nothing is heard of the replica's node|the peer's process has died|attempts to connect to \S+ failed within a minute`},
	{"a node is stopped", func(b *bad) int {
		leader := b.leader()
		id := 1 + leader%3
		b.signal(id, syscall.SIGSTOP)
		return leader
	}, `replica \S+: nothing is heard of the replica's node|has not answered`},
	{"a majority is away", func(b *bad) int {
		leader := b.leader()
		b.kill(1 + leader%3)
		b.kill(leader)
		return 1 + (leader+1)%3
	}, `volume \S+: nobody leads`},
	{"the network of a follower is cut, on its page", func(b *bad) int {
		leader := b.leader()
		id := 1 + leader%3
		for other := 1; other <= 3; other++ {
			b.proxy.set(id, other, true)
			b.proxy.set(other, id, true)
		}
		return id
	}, `volume \S+: (nobody leads|it does not reach node)`},
	{"a node of another volume's certificate, on the leader's page", func(b *bad) int {
		leader := b.leader()
		id := 1 + leader%3
		b.kill(id)
		other, err := secure.NewSecret().Issue("another", fmt.Sprint("node ", id))
		require.NoError(b, err)
		require.NoError(b, other.Save(filepath.Join(string(b.disk(id)), "tls")))
		b.start(id)
		return leader
	}, `volume \S+: nodes refuse each other: .*certificate`},
}

func TestABadDayOfAVolumeIsToldByTheFirstLineOfAPage(t *testing.T) {
	for _, d := range days {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			b := &bad{cluster: newCluster(t)}
			if strings.Contains(d.name, "certificate") {
				b.secured()
			} else {
				b.newProxy()
			}
			for range 3 {
				b.pages = append(b.pages, freePort(t))
			}
			for id := 1; id <= 3; id++ {
				b.start(id, "--create")
			}
			b.d = &content{h: b.host(), r: rand.New(rand.NewPCG(5, 6))}
			b.d.write(20)
			id := d.stage(b)
			if *pages != "" {
				b.write(d.name)
				return
			}
			began, says := time.Now(), regexp.MustCompile(d.says)
			minute := newLimit(time.Minute) // of this machine's time: the nodes run where this test does
			defer minute.stop()
			var last string
			for {
				all := b.page(id)
				if text := strings.Join(all, "\n\t\t"); text != last {
					last = text
					t.Logf("%4.1f s %.170s", time.Since(began).Seconds(), all[0])
				}
				if slices.ContainsFunc(all[:1], says.MatchString) {
					break
				}
				if d.says != well && time.Since(began) > blind && !assert.NotContains(t, all[0], well, "an all-clear in a bad hour") {
					break
				}
				if !assert.False(t, minute.over(), "the first line never says %s", d.says) {
					break
				}
				time.Sleep(500 * time.Millisecond) // from one look to the next
			}
		})
	}
}
