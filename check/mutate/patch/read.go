package patch

import (
	"bufio"
	"bytes"
	"net/textproto"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// Change replaces one piece of text in one file.
type Change struct {
	File     string // relative to the module's root
	Old, New string
}

// Read reads one patch: a header like a mail's, and the output of git diff.
func Read(text []byte) (header map[string][]string, changes []Change, err error) {
	files, preamble, err := gitdiff.Parse(bytes.NewReader(text))
	if err != nil {
		return nil, nil, err
	}
	fields, err := textproto.NewReader(bufio.NewReader(strings.NewReader(preamble + "\n"))).ReadMIMEHeader()
	if err != nil {
		return nil, nil, err
	}
	for _, f := range files {
		for _, hunk := range f.TextFragments {
			changes = append(changes, changeOf(f.NewName, hunk))
		}
	}
	return fields, changes, nil
}

// changeOf returns the change of a hunk. The old text alone says where it applies,
// since line numbers move with every change above them.
func changeOf(file string, hunk *gitdiff.TextFragment) Change {
	c := Change{File: file}
	for _, line := range hunk.Lines {
		if line.Old() {
			c.Old += line.Line
		}
		if line.New() {
			c.New += line.Line
		}
	}
	return c
}
