package patch

import (
	"bufio"
	"fmt"
	"net/textproto"
	"regexp"
	"strings"
)

// Change replaces one piece of text in one file.
type Change struct {
	File     string // relative to the module's root
	Old, New string
}

// begins matches the line that begins the changes of a file: @@ FILE, or git's.
var begins = regexp.MustCompile(`(?m)^(@@|diff --git|---) `)

// Read reads one patch: a header like a mail's, and hunks. A hunk begins with a line @@ FILE, and has the lines of a
// diff. What git diff prints is as good: line numbers say nothing, since they move with every change above them.
func Read(text []byte) (header map[string][]string, changes []Change, err error) {
	preamble, hunks := string(text), ""
	if at := begins.FindIndex(text); at != nil {
		preamble, hunks = preamble[:at[0]], preamble[at[0]:]
	}
	fields, err := textproto.NewReader(bufio.NewReader(strings.NewReader(preamble + "\n"))).ReadMIMEHeader()
	if err != nil {
		return nil, nil, err
	}
	file := ""
	for line := range strings.Lines(hunks) {
		what, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch {
		case what == "diff" || what == "index" || what == "---":
		case what == "+++":
			file = strings.TrimPrefix(rest, "b/")
		case what == "@@":
			if !strings.HasPrefix(rest, "-") {
				file = rest
			}
			changes = append(changes, Change{File: file})
		case len(changes) == 0 || !strings.ContainsAny(line[:1], " +-\n"):
			return nil, nil, fmt.Errorf("%q is no line of a hunk", line)
		default:
			c, of := &changes[len(changes)-1], line[1:]
			if of == "" {
				of = "\n" // an editor took the blank of an empty line away
			}
			if line[0] != '+' {
				c.Old += of
			}
			if line[0] != '-' {
				c.New += of
			}
		}
	}
	return fields, changes, nil
}
