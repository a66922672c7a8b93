package model

import (
	"fmt"
	"strconv"
	"strings"
)

// Command is one call: its name, the object it is made on, and its arguments as
// key=value.
//
//	send p0 cookie=3 flags=SUPPRESS local=m0:0+16,m1:8+4
//
// Objects are named by a letter and a number that counts from 0: z zone, m memory
// region, e event dispatcher, p endpoint, s service point, c connection request, n
// notification object, w window (RMR), q shared receive queue, o one-shot, b what a
// bind has named; - is none.
type Command struct {
	Op, On string
	Args   []string
}

// Parse reads a script: one command a line; # begins a comment.
func Parse(script string) (cmds []Command, err error) {
	for i, line := range strings.Split(script, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
			continue
		case len(words) == 1:
			return nil, fmt.Errorf("line %d: %q names no object", i+1, line)
		}
		for _, w := range words[2:] {
			if !strings.Contains(w, "=") {
				return nil, fmt.Errorf("line %d: %q is not key=value", i+1, w)
			}
		}
		cmds = append(cmds, Command{words[0], words[1], words[2:]})
	}
	return cmds, nil
}

// New makes a command. args are keys and values in turn; it leaves out values that
// are "" or 0.
func New(op, on string, args ...any) Command {
	c := Command{Op: op, On: on}
	for i := 0; i < len(args); i += 2 {
		if v := fmt.Sprint(args[i+1]); v != "" && v != "0" {
			c.Args = append(c.Args, fmt.Sprint(args[i], "=", v))
		}
	}
	return c
}

func (c Command) String() string {
	return strings.Join(append([]string{c.Op, c.On}, c.Args...), " ")
}

// Batch returns the commands that are arguments: 0=send;cookie=3 is the first.
func (c Command) Batch() (all []Command) {
	for i := 0; c.Has(strconv.Itoa(i)); i++ {
		words := strings.Split(c.Text(strconv.Itoa(i)), ";")
		all = append(all, Command{Op: words[0], On: c.On, Args: words[1:]})
	}
	return all
}

// asArgument is the inverse of one element of [Command.Batch].
func (c Command) asArgument() string { return strings.Join(append([]string{c.Op}, c.Args...), ";") }

// Text returns an argument; "" without it.
func (c Command) Text(key string) string {
	for _, a := range c.Args {
		if k, v, _ := strings.Cut(a, "="); k == key {
			return v
		}
	}
	return ""
}

// Has reports whether the command has an argument.
func (c Command) Has(key string) bool { return c.Text(key) != "" }

// Int returns an argument as a number; 0 without it.
func (c Command) Int(key string) int {
	n, _ := strconv.Atoi(c.Text(key))
	return n
}

// Index returns the number in an object's name; -1 for none and for another kind.
func Index(kind byte, name string) int {
	if len(name) < 2 || name[0] != kind {
		return -1
	}
	n, err := strconv.Atoi(name[1:])
	if err != nil {
		return -1
	}
	return n
}

// Bits returns an argument of names joined by |, as the sum of their numbers.
func (c Command) Bits(key string, names map[string]int) (sum int) {
	for _, n := range strings.Split(c.Text(key), "|") {
		sum |= names[n]
	}
	return sum
}

// Segment is a piece of a region: m0:8+4 is 4 bytes from offset 8 on. b0:8+4 is a
// piece of what bind 0 has named; its offset counts from the beginning of the
// region, too.
type Segment struct {
	Region   int
	Off, Len int
	Window   bool // Region is the number of a bind
}

// Segments returns an argument of segments that are joined by commas.
func (c Command) Segments(key string) (segs []Segment) {
	text := c.Text(key)
	if text == "" {
		return nil
	}
	for _, t := range strings.Split(text, ",") {
		name, span, _ := strings.Cut(t, ":")
		off, n, _ := strings.Cut(span, "+")
		var s Segment
		if s.Region = Index('m', name); s.Region < 0 {
			s.Region = Index('b', name)
			s.Window = s.Region >= 0
		}
		s.Off, _ = strconv.Atoi(off)
		s.Len, _ = strconv.Atoi(n)
		segs = append(segs, s)
	}
	return segs
}

// JoinSegments is the inverse of [Command.Segments].
func JoinSegments(segs []Segment) string {
	texts := make([]string, len(segs))
	for i, s := range segs {
		kind := 'm'
		if s.Window {
			kind = 'b'
		}
		texts[i] = fmt.Sprintf("%c%d:%d+%d", kind, s.Region, s.Off, s.Len)
	}
	return strings.Join(texts, ",")
}
