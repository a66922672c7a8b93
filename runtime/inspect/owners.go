package inspect

import (
	"fmt"
	"time"

	dat "godat/runtime"
	"godat/runtime/inspect/internal/owners"
)

// owner is what has registered memory, with what earlier looks saw of it.
type owner struct {
	owners.Owner
	// Grown is by how many bytes the least memory of the last looks is more than that of looks Since.
	Grown int64
	Since time.Time
	lows  lows
}

func ownersOf(s *dat.Snapshot) (list []owner) {
	for _, o := range owners.Of(s) {
		list = append(list, owner{Owner: o})
	}
	return list
}

// What the lows of an owner are of.
const (
	ofBytes = iota
	ofHeld
)

// take takes over what earlier looks saw of the owner.
func (o *owner) take(was *owner, at time.Time) {
	var before lows
	if was != nil {
		before = was.lows
	}
	o.lows = before.with(at, [3]uint64{o.Bytes, uint64(o.Held)})
	o.Since, o.Grown = o.lows[0].at, o.lows.grown(ofBytes)
}

// owners looks for memory, and for buffers with the program, that grow without end.
func (f *finder) owners() {
	for i := range f.now.Owners {
		o := &f.now.Owners[i]
		lasts := ago(f.now.At.Sub(o.lows[0].at))
		if o.lows.endless(f.now.At, ofHeld) {
			f.add(1, "buffers out", "memory", o.Name, "this program takes buffers and gives too few back: %s of %s out, %s more within %s%s, and the oldest for %s; a Release or Put is missing",
				number(o.Held), are(o.Buffers, "buffer"), number(int(o.lows.grown(ofHeld))), lasts, o.until(f.now.At), ago(o.HeldAge))
		}
		if o.lows.endless(f.now.At, ofBytes) {
			f.add(2, "memory grows", "memory", o.Name, "%s registered, more and more for %s, %s since then; if that is no load that grows, something is not closed or freed", octets(o.Bytes), lasts, octets(uint64(o.Grown)))
		}
	}
}

// until says when the program will have all buffers, if it goes on so.
func (o *owner) until(now time.Time) string {
	over, grown := now.Sub(o.lows[0].at), o.lows.grown(ofHeld)
	if grown <= 0 || o.Held >= o.Buffers {
		return ""
	}
	return ", so that none is left in about " + ago(time.Duration(float64(over)*float64(o.Buffers-o.Held)/float64(grown)))
}

var ownerFields = []field[owner]{
	{"owner", func(o *owner) value { return word(o.Name) }},
	{"memory", func(o *owner) value { return bytesOf(o.Bytes) }},
	{"grown", func(o *owner) value {
		if o.Grown < 0 {
			return value{text: "−" + octets(uint64(-o.Grown)), number: float64(o.Grown)}
		}
		return bytesOf(uint64(o.Grown))
	}},
	{"since", func(o *owner) value { return word(o.Since.Format(time.TimeOnly)) }},
	{"buffers", func(o *owner) value { return count(o.Buffers) }},
	{"held", func(o *owner) value { return count(o.Held) }},
	{"oldest held", func(o *owner) value { return lasting(o.HeldAge) }},
}

// heldText says for how long the oldest of the buffers that the program has has been out; nothing if it is not known yet.
func heldText(age time.Duration) string {
	if age == 0 {
		return ""
	}
	return fmt.Sprintf(", the oldest for %s", ago(age))
}
