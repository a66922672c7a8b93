package storage

import (
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The colors of rows, by their order; they can be told apart by who sees few colors.
var hues = []color.Color{
	color.RGBA{0x00, 0x72, 0xb2, 255},
	color.RGBA{0x56, 0xb4, 0xe9, 255},
	color.RGBA{0xd5, 0x5e, 0x00, 255},
	color.RGBA{0x80, 0x80, 0x80, 255},
	color.RGBA{0x00, 0x9e, 0x73, 255},
	color.RGBA{0xcc, 0x79, 0xa7, 255},
}

const (
	plotWidth  = 380 * vg.Length(1)
	plotHeight = 260 * vg.Length(1)
)

// plot draws the processor time and the median latency of a place's reads by rate, beside each other,
// on scales of logarithms.
func (s *Study) plot(w io.Writer, p Place) error {
	c := vgsvg.New(2*plotWidth, plotHeight)
	whole := draw.New(c)
	for i, panel := range []struct {
		label string
		of    series
	}{
		{"processor time of a read, µs", (*cell).processor},
		{"median latency of a read, µs", (*cell).p50},
	} {
		one, err := s.panel(p, panel.label, panel.of)
		if err != nil {
			return err
		}
		left := vg.Length(i) * plotWidth
		one.Draw(draw.Crop(whole, left, left-plotWidth, 0, 0))
	}
	_, err := c.WriteTo(w)
	return err
}

func (s *Study) panel(p Place, label string, of series) (*plot.Plot, error) {
	out := plot.New()
	out.X.Label.Text, out.Y.Label.Text = "commands/s", label
	out.Legend.Top = true
	any := false
	for i, r := range s.rows {
		var points plotter.XYs
		for _, rate := range s.Rates {
			for _, c := range s.measured(p, Load{Depth: s.Depths[len(s.Depths)-1], Rate: rate}, r.Name) {
				if y := median(of(c)) / 1e3; y > 0 && !c.saturated() {
					points = append(points, plotter.XY{X: float64(rate), Y: y})
				}
			}
		}
		if len(points) == 0 {
			continue
		}
		any = true
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, err
		}
		line.Color, dots.Color, dots.Shape = hues[i%len(hues)], hues[i%len(hues)], draw.CircleGlyph{}
		line.Width = 1.6
		out.Add(line, dots)
		out.Legend.Add(r.Name, line, dots)
	}
	out.Add(plotter.NewGrid())
	if any { // a scale of logarithms has no 0
		out.X.Scale, out.Y.Scale = plot.LogScale{}, plot.LogScale{}
		out.X.Tick.Marker, out.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	}
	return out, nil
}
