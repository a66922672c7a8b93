package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// line is what the doctor found of one thing.
type line struct {
	Check string `json:"check"`
	State string `json:"state"`
	Says  string `json:"says"`
	Do    string `json:"do,omitempty"`
}

// The states of a line.
const (
	fine = "ok"
	note = "note" // a program may miss it
	bad  = "bad"  // the machine has it, and it does not work
)

func good(format string, args ...any) line {
	return line{State: fine, Says: fmt.Sprintf(format, args...)}
}

// unless is the line, or if ok is false the same with another state and with what to do.
func (l line) unless(ok bool, state, do string) line {
	if !ok {
		l.State, l.Do = state, do
	}
	return l
}

// unread is the line of a check that can't read its file.
func unread(path string) line {
	return line{State: note, Says: "unknown: can't read " + path, Do: "mount /proc and /sys, or look on the host"}
}

func writeJSON(w io.Writer, ok bool, list []line) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(map[string]any{"ok": ok, "lines": list})
}

// wrap wraps each line of a text. WrapSoft alone makes one line of several.
func wrap(s string, width int) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = text.WrapSoft(lines[i], width)
	}
	return strings.Join(lines, "\n")
}

func writeTable(w io.Writer, list []line) error {
	const width = 56 // characters of a column of text
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"", "", "what there is", "what to do"})
	t.SetColumnConfigs([]table.ColumnConfig{
		{Number: 3, WidthMax: width, WidthMaxEnforcer: wrap}, {Number: 4, WidthMax: width, WidthMaxEnforcer: wrap},
	})
	for _, l := range list {
		t.AppendRow(table.Row{l.Check, l.State, l.Says, l.Do})
	}
	_, err := fmt.Fprintln(w, t.Render())
	return err
}
