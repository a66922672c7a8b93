package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"godat/bench/mode"
	"godat/bench/report"
)

// peersCommand measures what others take for the same work.
type peersCommand struct {
	Provider []string    `help:"The interface adapters of the library's rows." default:"loop,iwarp:127.0.0.1"`
	Mode     []mode.Mode `help:"Ways of delivery of the library's rows." default:"poll,channel"`
	Size     []int       `help:"Bytes of a message." default:"64"`
	Depth    int         `help:"Messages outstanding at most, one way. Round trips are made one at a time." default:"64"`
	Only     string      `help:"Measure only the rows whose name contains this." placeholder:"TEXT"`
	module
	output
}

// Run lets the library's lanes, anchors and the lanes of the module take turns, in the module's program.
func (p *peersCommand) Run(c *command, out io.Writer) error {
	if p.Depth < 1 || p.Depth > 1<<12 {
		return misusedf("%d messages outstanding: from 1 to 4096", p.Depth)
	}
	for _, size := range p.Size {
		if size < 1 || size > 1<<20 {
			return misusedf("a message of %d bytes: from 1 to 1 MiB", size)
		}
	}
	if err := errors.Join(twice("size", p.Size), twice("provider", p.Provider), twice("mode", p.Mode)); err != nil {
		return err
	}
	repeats, duration := c.turn()
	var said bytes.Buffer
	if err := p.run("rows", map[string]any{
		"Providers": p.Provider, "Modes": p.Mode, "Sizes": p.Size, "Depth": p.Depth, "Only": p.Only, "Repeats": repeats, "Duration": duration,
	}, &said); err != nil {
		return err
	}
	var rows []report.Row
	if err := json.Unmarshal(said.Bytes(), &rows); err != nil {
		return fmt.Errorf("the program of gRPC and QUIC has printed no rows: %w", err)
	}
	return p.report(c, out, report.Peers, rows)
}
