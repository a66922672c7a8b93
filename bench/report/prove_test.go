package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"godat/bench/lane"
	"godat/bench/load"
)

// proven is a row of which everything has run as it says.
func proven() Row {
	r := measured(polled, load.Closed, 400, 1)
	r.Provider, r.Ran = "iwarp", &lane.Ran{Loop: polled, Spins: true, Messages: 1000, Size: 64, Conns: 1, Provider: "iwarp"}
	r.Offered = &load.Offered{Outstanding: 16}
	return r
}

func TestARowThatIsNotWhatRanIsAnError(t *testing.T) {
	yes, no := true, false
	offered := func(rate load.Rate, o load.Offered) func(*Row) {
		return func(r *Row) { r.Rate, r.Offered = rate, &o }
	}
	for name, c := range map[string]struct {
		kind   Kind
		change func(*Row)
		says   string // empty: it is proven
	}{
		"as it says":                  {Delivery, func(*Row) {}, ""},
		"another loop":                {Delivery, func(r *Row) { r.Ran.Loop = channel }, `the loop that ran is "channel"`},
		"another loop, and refused":   {Delivery, func(r *Row) { r.Ran.Loop, r.Refused = channel, "busy" }, `the loop that ran is "channel"`},
		"nothing told":                {Delivery, func(r *Row) { r.Ran = nil }, "tells nothing"},
		"nothing told, and refused":   {Delivery, func(r *Row) { r.Ran, r.Refused = nil, "no" }, ""},
		"another process":             {Peers, func(r *Row) { r.Ran, r.Offered, r.Elsewhere = nil, nil, true }, ""},
		"no loop at the other end":    {Latency, func(*Row) {}, `the loop at the other end is ""`},
		"another at the other end":    {Latency, func(r *Row) { r.Ran.Far = channel }, `the loop at the other end is "channel"`},
		"the same at the other end":   {Latency, func(r *Row) { r.Ran.Far = polled }, ""},
		"a peer":                      {Peers, func(r *Row) { r.Name = "poll over iwarp" }, ""},
		"a peer over another":         {Peers, func(r *Row) { r.Name, r.Ran.Provider, r.Provider = "poll over iwarp", "loop", "loop" }, `"poll over loop"`},
		"connections":                 {Connect, func(r *Row) { r.Name, r.Ran.Loop = "iwarp", "wait" }, ""},
		"connections of another":      {Connect, func(r *Row) { r.Name = "loop" }, `"iwarp"`},
		"another size":                {Delivery, func(r *Row) { r.Ran.Size = 56 }, "56 bytes"},
		"no size":                     {Delivery, func(r *Row) { r.Ran.Size = 0 }, "0 bytes"},
		"an anchor without a size":    {Delivery, func(r *Row) { r.Ran.Size, r.Anchor = 0, true }, ""},
		"fewer connections":           {Delivery, func(r *Row) { r.Conns = 10 }, "1 connections carried its 1000 messages, not 10"},
		"another adapter":             {Delivery, func(r *Row) { r.Ran.Provider = "loop" }, `adapter was "loop"`},
		"parameters ignored":          {Delivery, func(r *Row) { r.Params = map[string]string{"fpdu": "1440"} }, "parameters map[], not map[fpdu:1440]"},
		"CRCs":                        {Delivery, func(r *Row) { r.Ran.CRC = &yes }, ""},
		"no CRCs, unasked":            {Delivery, func(r *Row) { r.Ran.CRC = &no }, "agreed on CRCs: false"},
		"CRCs, though not wanted":     {Delivery, func(r *Row) { r.Params = map[string]string{"crc": "false"}; r.Ran.Params, r.Ran.CRC = r.Params, &yes }, "give it to both ends"},
		"fewer outstanding":           {Delivery, func(r *Row) { r.Offered.Outstanding = 1 }, "1 messages were outstanding, not 16"},
		"more outstanding":            {Delivery, func(r *Row) { r.Offered.Outstanding = 17 }, "17 messages were outstanding, not 16"},
		"a poster in closed loop":     {Delivery, func(r *Row) { r.Offered.Producers = 1 }, "1 goroutines beside the consumer posted, not 0"},
		"no poster in open loop":      {Delivery, offered(1e6, load.Offered{Outstanding: 2}), "0 goroutines beside the consumer posted, not 1"},
		"the rate":                    {Delivery, offered(1e6, load.Offered{Producers: 1, Outstanding: 2}), ""},
		"a greater rate":              {Delivery, offered(1e5, load.Offered{Producers: 1, Outstanding: 2}), "1000 messages were taken in 1ms"},
		"at max":                      {Delivery, offered(load.Max, load.Offered{Producers: 1, Outstanding: 16, Room: 16}), ""},
		"at max with less room":       {Delivery, offered(load.Max, load.Offered{Producers: 1, Outstanding: 4, Room: 4}), "4 messages had room, not 16"},
		"at max with other producers": {Delivery, func(r *Row) { offered(load.Max, load.Offered{Producers: 1, Outstanding: 16})(r); r.Producers = 2 }, "1 goroutines beside the consumer posted, not 2"},
	} {
		t.Run(name, func(t *testing.T) {
			row := proven()
			c.change(&row)
			r := reportOf(row)
			r.Kind = c.kind
			if err := r.Prove(); c.says == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, c.says)
			}
		})
	}
}

func TestAConsumerThatPollsAndRestsIsSeen(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Row)
		idle   bool
	}{
		"a whole processor":    {func(r *Row) { r.Cores = about(0.97) }, false},
		"a third":              {func(r *Row) { r.Cores = about(0.36) }, true},
		"a third, of a waiter": {func(r *Row) { r.Cores, r.Ran.Spins = about(0.36), false }, false},
		"in closed loop":       {func(r *Row) { r.Cores, r.Rate = about(0.36), load.Closed }, false},
		"not kept up with":     {func(r *Row) { r.Cores, r.Saturated = about(0.36), true }, false},
		"unknown":              {func(r *Row) { r.Cores.Repeats = 0 }, false},
	} {
		row := proven()
		row.Rate = 10_000
		row.Samples[0].Took = time.Second
		c.change(&row)
		assert.Equal(t, c.idle, row.Idle() != "", name)
	}
}
