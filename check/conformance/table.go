package conformance

import (
	_ "embed" // for a test binary that runs elsewhere, without the file
	"fmt"
	"slices"
	"strings"
)

//go:embed testdata/table.txt
var tableText string

// column returns the table's column of one provider, by case.
func column(name string) (map[string]string, error) {
	var head []string
	at := -1
	says := make(map[string]string)
	for line := range strings.Lines(tableText) {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		switch {
		case len(f) == 0:
		case head == nil:
			head = f
			if at = slices.Index(head, name); at < 1 {
				return nil, fmt.Errorf("the table has no column %q", name)
			}
		case len(f) != len(head):
			return nil, fmt.Errorf("table: %q has %d fields in place of %d", f[0], len(f), len(head))
		case says[f[0]] != "":
			return nil, fmt.Errorf("table: %q is there twice", f[0])
		default:
			says[f[0]] = f[at]
		}
	}
	return says, nil
}
