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
	"strings"
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
	stage func(*bad) (node int) // makes the day, and says whose it is; 0 is of all
	// Within a minute the first line of each page says: of that node's, of the others'. N is its number. An empty one is not
	// judged: the node may not run.
	own, others string
	// neither of them says so.
	never string
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
	items = regexp.MustCompile(`(?s)<li>(.*?)</li>`)
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

// lines are what the page of a node says is wrong, a line each.
func (b *bad) lines(id int) (all []string) {
	text, err := b.get(id)
	if err != nil {
		return []string{err.Error()}
	}
	plain := func(s string) string {
		return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(s, ""))), " ")
	}
	section := told.FindString(text)
	for _, m := range items.FindAllStringSubmatch(section, -1) {
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

const (
	well     = "Nothing is wrong"
	slow     = `^volume \S+: the disk of this node, node N, is slow: a write (took|has taken) [\d.]+ (ms|s|m\d+s)`
	slowThat = `^replica node N \(its page http://\S+\): its disk is slow: a write (took|has taken) [\d.]+ (ms|s)`
	missed   = `^replica node N \(its page http://\S+\): nothing has been heard of it for [\d.]+ (ms|s): `
	// causes that are not said of a node that is only away
	guesses = `descriptor|halfopen|HTTP|may stand for election|somebody|runtime\.Dial|look whether its node runs`
)

var days = []day{
	{"nothing is wrong, under load", func(b *bad) int {
		b.load()
		return 0
	}, well, "", ""},
	{"a follower's disk is slow, on the leader's page", func(b *bad) int {
		id := 1 + b.leader()%3
		require.NoError(b, b.disk(id).Say(fault.Trouble{Slow: 3 * time.Second}))
		b.load()
		return id
	}, slow, slowThat, guesses},
	{"the leader's disk is slow", func(b *bad) int {
		leader := b.leader()
		require.NoError(b, b.disk(leader).Say(fault.Trouble{Slow: time.Second}))
		b.load()
		return leader
	}, slow, slowThat, guesses},
	{"a node that was away catches up with a slow disk", func(b *bad) int {
		leader := b.leader()
		id := 1 + leader%3
		b.kill(id)
		b.d.write(300)
		require.NoError(b, b.disk(id).Say(fault.Trouble{Slow: 2 * time.Second}))
		b.start(id)
		return id
	}, slow, slowThat, `may stand for election|runtime\.Dial`},
	{"all disks are slow", func(b *bad) int {
		for id := range b.running {
			require.NoError(b, b.disk(id).Say(fault.Trouble{Slow: 2 * time.Second}))
		}
		b.load()
		return 0
	}, slow, "", guesses},
	{"a follower's disk is full", func(b *bad) int {
		id := 1 + b.leader()%3
		require.NoError(b, b.disk(id).Say(fault.Trouble{Full: true}))
		b.load()
		return id
	}, "", missed, guesses},
	{"a node is away", func(b *bad) int {
		id := 1 + b.leader()%3
		b.kill(id)
		return id
	}, "", missed + `its process has ended \(the stream ended without a farewell; now it takes no connection\); start it`, guesses},
	{"a node is stopped", func(b *bad) int {
		id := 1 + b.leader()%3
		b.stop(id)
		return id
	}, "", missed + `it does not answer; open its page`, guesses},
	{"a majority is away", func(b *bad) int {
		leader := b.leader()
		id := 1 + leader%3
		b.kill(id)
		b.kill(leader)
		return id
	}, "", `^replica node [123] \(its page http://\S+\): nothing (is|has been) heard of it.*: its process has ended \((the stream ended without a farewell; now )?it takes no connection\); start it`, guesses},
	{"the network of a follower is cut, on its page", func(b *bad) int {
		id := 1 + b.leader()%3
		for other := 1; other <= 3; other++ {
			b.proxy.set(id, other, true)
			b.proxy.set(other, id, true)
		}
		return id
	}, `^replica node [123] \(its page http://\S+\): nothing (is|has been) heard of it.*: it does not answer; open its page`, missed + `it does not answer; open its page`, guesses},
	{"a node of another volume's certificate, on the leader's page", func(b *bad) int {
		leader := b.leader()
		id := 1 + leader%3
		b.kill(id)
		other, err := secure.NewSecret().Issue("another", fmt.Sprint("node ", id))
		require.NoError(b, err)
		require.NoError(b, other.Save(filepath.Join(string(b.disk(id)), "tls")))
		b.start(id)
		return id
	}, `^volume \S+: this node, node N, is the odd one: .* certificates are by "volume [-0-9a-f]{36}", and this end trusts "volume another"; give`, `^replica node N \(its page http://\S+\): it is the odd one, which the others refuse: the certificate of "node N of volume another" .*; give`, guesses},
}

// longest is how long a line may be that somebody reads in a hurry.
const longest = 400

// judge says what a page lacks.
func (d *day) judge(all []string, own bool, matter int) string {
	says := d.others
	if own {
		says = d.own
	}
	if says == "" {
		return ""
	}
	if !regexp.MustCompile(strings.ReplaceAll(says, "node N", fmt.Sprint("node ", matter))).MatchString(all[0]) {
		return "the first line does not say " + says
	}
	return d.misleads(all)
}

// misleads says what is on a page that should not be there on such a day.
func (d *day) misleads(all []string) string {
	if d.own == well {
		return ""
	}
	for _, line := range all {
		if len(line) > longest {
			return fmt.Sprintf("a line has %d characters: %s", len(line), line)
		}
		if never := regexp.MustCompile(d.never).FindString(line); never != "" {
			return fmt.Sprintf("a line says %q: %s", never, line)
		}
	}
	return ""
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
			b.meet()
			id := d.stage(b)
			if *pages != "" {
				b.write(d.name)
				return
			}
			began, minute := time.Now(), newLimit(time.Minute) // of this machine's time: the nodes run where this test does
			defer minute.stop()
			for page := range 3 {
				b.await(&d, page+1, id, began, minute)
			}
			b.stays(&d, id)
		})
	}
}

// meet waits until each node knows where the others' pages are.
func (b *bad) meet() {
	b.eventually("nodes don't know each other's pages", func() bool {
		known := 0
		for id := range b.running {
			s, err := b.ask(id, askStatus)
			for _, other := range s.Others {
				if err == nil && other.Page != "" {
					known++
				}
			}
		}
		return known == 6
	})
}

// await waits until a page says what the day is.
func (b *bad) await(d *day, page, matter int, began time.Time, minute *limit) {
	own := page == matter || matter == 0
	if matter == 0 {
		matter = page
	}
	if b.running[page] == nil {
		return
	}
	last := ""
	for {
		all := b.lines(page)
		if text := strings.Join(all, "\n\t\t"); text != last {
			last = text
			b.Logf("node %d, %4.1f s %s", page, time.Since(began).Seconds(), text)
		}
		lacks := d.judge(all, own, matter)
		if lacks == "" {
			return
		}
		if d.own != well && time.Since(began) > blind && !assert.NotContains(b, all[0], well, "an all-clear in a bad hour, at node %d", page) {
			return
		}
		if !assert.False(b, minute.over(), "node %d: %s", page, lacks) {
			return
		}
		time.Sleep(500 * time.Millisecond) // from one look to the next
	}
}

// stays looks at all pages for some time more: none says that all is well, or misleads, again.
func (b *bad) stays(d *day, matter int) {
	for range 10 {
		for page := range b.running {
			if page == matter && d.own == "" {
				continue // it does not run, or is stopped
			}
			all := b.lines(page)
			if d.own != well {
				assert.NotContains(b, all[0], well, "node %d", page)
			}
			assert.Empty(b, d.misleads(all), "node %d", page)
		}
		time.Sleep(time.Second) // from one look to the next
	}
}
