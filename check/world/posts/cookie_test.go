package posts

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/check/world/program"
)

func TestEveryBitOfACookieCounts(t *testing.T) {
	for bit := range 64 {
		d := newDesk(t).up()
		e := d.send(0)
		ev := eventOf(d, e)
		ev.Cookie ^= 1 << bit
		d.main.take(ev)
		assert.Equal(t, []Kind{Stranger}, d.kinds, "bit %d", bit)
	}
}

func TestTheSeedDecidesThePlans(t *testing.T) {
	plans := func(seed uint64) (all []plan) {
		l := &link{w: &world{World: program.Over(seed, nil, nil)}}
		for n := range uint64(50) {
			all = append(all, l.draw(l.w.dice(forLife, 3, n)))
		}
		return all
	}
	assert.Equal(t, plans(1), plans(1))
	assert.NotEqual(t, plans(1), plans(2))
}
