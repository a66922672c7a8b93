package inspect

import (
	"regexp"
	"slices"
	"strings"
)

// Missing is a [godat/runtime.Troubled] row whose trouble may be that somebody is missed: nothing comes from there,
// or late. Misses is whose address that is, "host:port"; it is "" where the trouble says why, or is another. A line that
// names that address, or its host alone, and says more, stands before the row's.
type Missing interface{ Misses() string }

// missed says of a row's trouble whom it misses.
func missed(r row) string {
	if m, ok := r.(Missing); ok {
		return m.Misses()
	}
	return ""
}

// causesFirst puts each line that says why before the first line that misses the peer of which it says that. What
// users feel stays first.
func causesFirst(list []Trouble) {
	for i, cause := range list {
		if cause.misses != "" {
			continue
		}
		at := slices.IndexFunc(list[:i], func(t Trouble) bool {
			return t.rank > felt && t.misses != "" && names(cause.Head+": "+cause.Text, t.misses)
		})
		if at >= 0 {
			copy(list[at+1:i+1], list[at:i])
			list[at] = cause
		}
	}
}

var (
	wordEnds = regexp.MustCompile(`[\w.-]$`)
	portOf   = regexp.MustCompile(`^\]?(:\d+)?(?:[^\w]|$)`)
)

// names reports whether a text has an address, or its host without a port.
func names(text, address string) bool {
	host := hostOf(address)
	port := strings.TrimLeft(strings.TrimPrefix(strings.TrimLeft(address, "["), host), "]")
	for host != "" {
		before, after, found := strings.Cut(text, host)
		if !found {
			return false
		}
		if m := portOf.FindStringSubmatch(after); m != nil && !wordEnds.MatchString(before) && (m[1] == "" || m[1] == port) {
			return true
		}
		text = after
	}
	return false
}
