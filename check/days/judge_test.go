package days

import (
	"flag"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// atOnce is how many days of networks run at a time: they wait for peers.
const atOnce = "24"

// The pool package starts two goroutines of its own when it is imported.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

// day is one that is staged. A visitor of a program's page knows nothing but what it prints.
type day struct {
	name string
	// says is what the first line says when it has told the trouble; of a good day it is empty.
	says string
	// also is what it may say before, and beside: what is true, too.
	also string
	// within is how soon it is told; 0 is a minute. What grows without end needs longer to be told from load.
	within time.Duration
	stage  func(s *stage)
}

const (
	soon  = time.Minute
	pause = 2 * time.Second // from one look to the next, as the page's script has it
	blind = 6 * time.Second // in which an all-clear is no lie: nothing has waited for long
)

var (
	tag      = regexp.MustCompile(`<[^>]*>`)
	line     = regexp.MustCompile(`(?s)<li>(.*?)</li>`)
	section  = regexp.MustCompile(`(?s)<section aria-label="What is wrong">(.*?)</section>`)
	digits   = regexp.MustCompile(`[\d.]+`)
	allClear = "Nothing is wrong"
	first    = "This is a first look"
)

// plain is a part of a page as somebody reads it.
func plain(part string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tag.ReplaceAllString(part, ""))), " ")
}

// read is what the page says is wrong, the first line first; an all-clear and a first look are lines, too.
func read(page http.Handler) (lines []string) {
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/", nil))
	if w.Code != http.StatusOK {
		return []string{strings.TrimSpace(w.Body.String())}
	}
	body := section.FindString(w.Body.String())
	for _, m := range line.FindAllStringSubmatch(body, -1) {
		lines = append(lines, plain(m[1]))
	}
	if len(lines) == 0 {
		return []string{plain(body)}
	}
	return lines
}

// verdict is what a visitor has learned.
type verdict struct {
	told   time.Duration // after so long; -1 is never
	by     string        // the first line
	wrong  []string      // first lines that are not so
	greens []string      // all-clears in a bad hour
	seen   []string      // all first lines, each kind once
	jargon []string      // lines of which an operator understands nothing, or which say what nobody knows
}

// visit looks at a page until it has told, and some looks more.
func (d *day) visit(t *testing.T, page http.Handler) verdict {
	v := verdict{told: -1}
	says, also := regexp.MustCompile(d.says), regexp.MustCompile(d.also)
	known := make(map[string]bool)
	began := time.Now()
	within := d.within
	if within == 0 {
		within = soon
	}
	for more := 3; time.Since(began) <= within && more > 0; time.Sleep(pause) {
		lines := read(page)
		if v.jargon == nil {
			v.jargon = jargonOf(lines)
		}
		now, at := lines[0], time.Since(began)
		if key := digits.ReplaceAllString(now, "0"); !known[key] {
			known[key] = true
			v.seen = append(v.seen, at.Round(time.Second).String()+" "+strings.Join(lines, "\n\t\t"))
		}
		switch {
		case strings.HasPrefix(now, first):
		case strings.HasPrefix(now, allClear):
			if d.says != "" && (v.told >= 0 || at > blind && within == soon) {
				v.greens = append(v.greens, at.String())
			}
		case d.says != "" && says.MatchString(now):
			if v.told < 0 {
				v.told, v.by = at, now
			}
		case (d.also == "" || !also.MatchString(now)) && !slices.Contains(v.wrong, now):
			v.wrong = append(v.wrong, now)
		}
		if v.told >= 0 {
			more--
		}
	}
	return v
}

// unfit is what no line of a page says: words of Go's net package, layers' talk, and what no end knows of the other.
var unfit = regexp.MustCompile(`use of closed network connection|process has died|, found (here|by the peer)|halfopenip|the start-up of MPA|owes the answer`)

// longest is how long a line about a connection may be.
const longest = 300

// jargonOf are the lines of a page that are unfit.
func jargonOf(lines []string) (list []string) {
	for _, l := range lines {
		if unfit.MatchString(l) || len(l) > longest {
			list = append(list, l)
		}
	}
	return list
}

// timeless is judge of a day in which time costs nothing.
func (d *day) timeless(t *testing.T) {
	if *pages != "" { // a reader wants true times
		d.write(t)
		return
	}
	synctest.Test(t, d.judge)
}

// judge stages a day, and demands that the page tells it.
func (d *day) judge(t *testing.T) {
	if *pages != "" {
		d.write(t)
		return
	}
	s := newStage(t)
	d.stage(s)
	v := d.visit(t, s.page)
	v.jargon = append(v.jargon, jargonOf(read(s.there))...)
	s.end()
	t.Logf("%s: %s", d.name, strings.Join(v.seen, "\n\t"))
	assert.Empty(t, v.wrong, "told wrongly")
	assert.Empty(t, v.jargon, "lines that nobody understands")
	assert.Empty(t, v.greens, "an all-clear in a bad hour")
	if d.says != "" {
		assert.GreaterOrEqual(t, v.told, time.Duration(0), "the first line never says %s", d.says)
	}
}

// inTime are days in which time costs nothing; in the others peers and the system take theirs.
var (
	inTime    = append(append([]day{}, ofCalls...), ofEvents...)
	ofSystems []day // where there are some
)

func TestABadDayIsToldByTheFirstLineWithinAMinute(t *testing.T) {
	for _, d := range inTime {
		t.Run(d.name, func(t *testing.T) { d.timeless(t) })
	}
	for _, d := range ofSystems {
		t.Run(d.name, d.judge)
	}
	for _, d := range ofNetworks {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			d.judge(t)
		})
	}
}

func TestAGoodDayRaisesNothing(t *testing.T) {
	for _, d := range good {
		t.Run(d.name, func(t *testing.T) { d.timeless(t) })
	}
}

func TestTheDaysAreTwentyFourAtLeast(t *testing.T) {
	require.GreaterOrEqual(t, len(inTime)+len(ofNetworks), 24)
	require.GreaterOrEqual(t, len(good), 5)
}
