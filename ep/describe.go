package ep

import (
	"fmt"
	"log/slog"
)

// name names a service point; kind is its type.
func (p *point) name(kind string) string {
	if p == nil {
		return kind + "(nil)"
	}
	return fmt.Sprintf("%s(%d)", kind, p.number)
}

// String names the service point.
func (p *PSP) String() string { return p.point().name("PSP") }

// LogValue is String, for log/slog.
func (p *PSP) LogValue() slog.Value { return slog.StringValue(p.String()) }

// String names the service point.
func (r *RSP) String() string { return r.point().name("RSP") }

// LogValue is String, for log/slog.
func (r *RSP) LogValue() slog.Value { return slog.StringValue(r.String()) }

// String names the service point.
func (c *CSP) String() string { return c.point().name("CSP") }

// LogValue is String, for log/slog.
func (c *CSP) LogValue() slog.Value { return slog.StringValue(c.String()) }

// String names the request by the qualifier that it asked for.
func (c *CR) String() string {
	if c == nil {
		return "CR(nil)"
	}
	return fmt.Sprintf("CR(%d, for %d)", c.number, c.qual)
}

// LogValue is String, for log/slog.
func (c *CR) LogValue() slog.Value { return slog.StringValue(c.String()) }

// String names the shared receive queue.
func (q *SRQ) String() string {
	if q == nil {
		return "SRQ(nil)"
	}
	return fmt.Sprintf("SRQ(%d)", q.number)
}

// LogValue is String, for log/slog.
func (q *SRQ) LogValue() slog.Value { return slog.StringValue(q.String()) }
