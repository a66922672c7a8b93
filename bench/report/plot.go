package report

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"regexp"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// line is one series of a chart.
type line struct {
	name   string
	points plotter.XYs
	// mark is a point of the line that stands out; none for most.
	mark plotter.XYs
}

// axis says how values are laid out and written.
type axis struct {
	label string
	log   bool
	zero  bool // begins at 0
	ticks plot.Ticker
}

const (
	chartWidth  = 400 * vg.Length(1)
	chartHeight = 250 * vg.Length(1)
	margin      = 16 * vg.Length(1) // for the half of the last label that is beyond its tick
)

// Colors of the drawing that stand for colors of the page, which has a light and a dark
// theme.
var (
	ink  = color.RGBA{1, 1, 1, 255}
	grid = color.RGBA{2, 2, 2, 255}
)

func hue(i int) color.RGBA { return color.RGBA{3, uint8(i), 3, 255} }

var themed = regexp.MustCompile(`#0(10101|20202|3[0-9A-F]{2}03)\b`)

// chart draws lines. Series keep their colors in all charts of a page, by the order of
// names.
func chart(x, y axis, lines []line, names []string) (template.HTML, error) {
	p := plot.New()
	p.BackgroundColor = color.Transparent
	style(&p.X, x)
	style(&p.Y, y)
	g := plotter.NewGrid()
	g.Vertical.Color, g.Horizontal.Color = grid, grid
	g.Vertical.Width, g.Horizontal.Width = 0.6, 0.6
	p.Add(g)
	if y.zero {
		p.Y.Min = 0
	}
	for _, l := range lines {
		if len(l.points) == 0 {
			continue
		}
		i := indexOf(names, l.name)
		c, err := plotter.NewLine(l.points)
		if err != nil {
			return "", err
		}
		c.Width, c.Color = 1.6, hue(i)
		if i >= modes {
			c.Dashes = []vg.Length{vg.Length(2 + i - modes), 3}
		}
		p.Add(c)
		if err := mark(p, l.mark, draw.CircleGlyph{}, hue(i)); err != nil {
			return "", err
		}
		if len(l.points) == 1 { // which a line does not show
			if err := mark(p, l.points, draw.RingGlyph{}, hue(i)); err != nil {
				return "", err
			}
		}
	}
	return drawn(p)
}

// mark draws points, of which there may be none.
func mark(p *plot.Plot, points plotter.XYs, shape draw.GlyphDrawer, c color.Color) error {
	if len(points) == 0 {
		return nil
	}
	s, err := plotter.NewScatter(points)
	if err != nil {
		return err
	}
	s.Color, s.Shape, s.Radius = c, shape, 3.5
	p.Add(s)
	return nil
}

func style(a *plot.Axis, as axis) {
	sans := font.Font{Typeface: "Liberation", Variant: "Sans", Size: 11}
	a.Label.Text = as.label
	a.Label.TextStyle.Font, a.Tick.Label.Font = sans, sans
	a.Label.TextStyle.Color, a.Tick.Label.Color = ink, ink
	a.Color, a.Tick.Color = ink, ink
	if as.log {
		a.Scale = plot.LogScale{}
	}
	a.Tick.Marker = as.ticks
}

// drawn returns the plot as SVG that fills the width that it is given, in the page's
// colors.
func drawn(p *plot.Plot) (template.HTML, error) {
	c := vgsvg.New(chartWidth, chartHeight)
	p.Draw(draw.Crop(draw.New(c), 0, -margin, 0, 0))
	var out bytes.Buffer
	if _, err := c.WriteTo(&out); err != nil {
		return "", err
	}
	_, svg, _ := strings.Cut(out.String(), "<svg ")
	size, rest, _ := strings.Cut(svg, "viewBox")
	_ = size // the page sets it
	svg = themed.ReplaceAllStringFunc("<svg viewBox"+rest, func(c string) string {
		switch c {
		case "#010101":
			return "currentColor"
		case "#020202":
			return "var(--grid)"
		}
		var i int
		_, _ = fmt.Sscanf(c, "#03%02X03", &i)
		return fmt.Sprintf("var(--c%d)", i)
	})
	return template.HTML(svg), nil
}

func indexOf(names []string, name string) int {
	for i, n := range names {
		if n == name {
			return i
		}
	}
	return len(names)
}

// decades are ticks at powers of ten.
type decades struct{ write func(float64) string }

// Ticks returns the ticks between min and max.
func (d decades) Ticks(minimum, maximum float64) (ticks []plot.Tick) {
	for e := math.Floor(math.Log10(minimum)); e <= math.Ceil(math.Log10(maximum)); e++ {
		for _, m := range []float64{1, 2, 5} {
			v := m * math.Pow(10, e)
			if v < minimum || v > maximum {
				continue
			}
			t := plot.Tick{Value: v}
			if m == 1 || maximum < 50*minimum {
				t.Label = d.write(v)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// nines is the place of a percentile on an axis on which 90, 99, 99.9, … are equally
// far apart.
func nines(percent float64) float64 { return -math.Log10(1 - percent/100) }

var ninesTicks = plot.ConstantTicks{
	{Value: 0, Label: "0"},
	{Value: nines(50), Label: "50"},
	{Value: nines(90), Label: "90"},
	{Value: nines(99), Label: "99"},
	{Value: nines(99.9), Label: "99.9"},
	{Value: nines(99.99), Label: "99.99"},
	{Value: nines(99.999), Label: "99.999"},
}
