package report

import (
	_ "embed"
	"encoding/json"
	"html/template"
	"io"
	"slices"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page is what the template shows.
type page struct {
	*Report
	Names  []string // in the order of their colors
	Charts []figure
	Groups []section
	Notes  []note
	Method string
	Raw    string
}

// figure is a chart and what it shows.
type figure struct {
	Title, Says string
	SVG         template.HTML
}

// section is a table of the page.
type section struct {
	Title   string
	Header  []string
	Rows    [][]any
	Refused []refusal
	Doubts  []string
}

// WriteHTML writes the report as a page that needs nothing else: no script runs in it,
// and it fetches nothing.
func (r *Report) WriteHTML(w io.Writer) error {
	p := page{Report: r, Names: r.names(), Notes: r.notes(), Method: r.method()}
	charts := []func(*Report, []string) ([]figure, error){loadCharts, sweepCharts, percentileCharts}
	if r.Kind == Peers { // work that differs has no place on one axis
		p.Names, charts = nil, nil
	}
	for _, draw := range charts {
		figures, err := draw(r, p.Names)
		if err != nil {
			return err
		}
		p.Charts = append(p.Charts, figures...)
	}
	for _, g := range r.groups() {
		s := section{Title: g.title, Header: r.columns(), Refused: g.refused(), Doubts: r.doubts(&g)}
		for _, row := range g.rows {
			if row.Refused == "" {
				s.Rows = append(s.Rows, r.cells(row))
			}
		}
		p.Groups = append(p.Groups, s)
	}
	raw, err := json.MarshalIndent(r.withoutHistograms(), "", " ")
	if err != nil {
		return err
	}
	p.Raw = string(raw)
	return pageTemplate.Execute(w, p)
}

// withoutHistograms is the report without what only a program reads.
func (r *Report) withoutHistograms() *Report {
	light := *r
	light.Rows = slices.Clone(r.Rows)
	for i := range light.Rows {
		row := &light.Rows[i]
		row.Samples = slices.Clone(row.Samples)
		for j := range row.Samples {
			row.Samples[j].Histogram = ""
		}
	}
	return &light
}

const modes = 7 // colors of modes; anchors have the others, and broken lines

// names are the names of all rows: modes first, so that the colors of modes differ most.
func (r *Report) names() (list []string) {
	var anchors []string
	for i := range r.Rows {
		row := &r.Rows[i]
		into := &list
		if row.Anchor {
			into = &anchors
		}
		if !slices.Contains(*into, row.Name) {
			*into = append(*into, row.Name)
		}
	}
	for len(list) < modes {
		list = append(list, "")
	}
	return append(list, anchors...)
}
