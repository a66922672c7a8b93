package tool

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

var errFormat = errors.New("its output has another form than that of the version that is known")

// numbers are the numbers of the last line that begins with one, which must have n fields.
// Fields that are no numbers are 0.
func numbers(output string, n int) (list []float64, err error) {
	var last []string
	for line := range strings.Lines(output) {
		f := strings.Fields(line)
		if len(f) == n {
			if _, err := number(f[0]); err == nil {
				last = f
			}
		}
	}
	if last == nil {
		return nil, fmt.Errorf("%w: %q", errFormat, lastLine(output))
	}
	for _, f := range last {
		x, _ := number(f)
		list = append(list, x)
	}
	return list, nil
}

// greatest is more than any figure of a turn.
const greatest = 1e15

// number reads a positive number, or 0.
func number(s string) (float64, error) {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || !(x >= 0 && x <= greatest) {
		return 0, fmt.Errorf("%q is no figure", s)
	}
	return x, nil
}

// usec is a number of microseconds.
func usec(x float64) time.Duration { return time.Duration(x * float64(time.Microsecond)) }

// trips are count round trips, by the time of half of one in microseconds. A median of 0
// is none.
func trips(count int, halfMean, halfMedian float64) (told, error) {
	said := told{count: count, median: usec(2 * halfMedian), mean: usec(2 * halfMean)}
	if said.mean <= 0 || count <= 0 {
		return said, fmt.Errorf("it measured no time for %d round trips", count)
	}
	said.perSecond = float64(time.Second) / float64(said.mean)
	return said, nil
}

// oneWay are count messages at a rate.
func oneWay(count int, perSecond float64) (told, error) {
	if !(perSecond > 0) || count <= 0 {
		return told{}, fmt.Errorf("it measured no rate of %d messages", count)
	}
	return told{count: count, perSecond: perSecond}, nil
}

// readUCX reads ucx_perftest's line of final numbers: iterations, and by percentile,
// average and overall the latency, the bandwidth without a percentile, and the rate.
func readUCX(latency bool) func(string, turn) (told, error) {
	return func(output string, _ turn) (told, error) {
		f, err := numbers(output, 8)
		if err != nil {
			return told{}, err
		}
		if latency {
			return trips(int(f[0]), f[3], f[1])
		}
		return oneWay(int(f[0]), f[7])
	}
}

// readPingpong reads fi_pingpong's line: bytes, sent, acknowledged, total, time, MB/sec,
// usec/xfer, Mxfers/sec. It rounds the bytes and the counts, as in 64k.
func readPingpong(output string, t turn) (told, error) {
	for line := range strings.Lines(output) {
		f := strings.Fields(line)
		if len(f) != 8 {
			continue
		}
		if _, err := number(strings.TrimRight(f[0], "kmg")); err != nil {
			continue
		}
		x, err := number(f[6])
		if err != nil {
			return told{}, err
		}
		return trips(t.count, x, 0)
	}
	return told{}, fmt.Errorf("%w: %q", errFormat, lastLine(output))
}

// readQperf reads a line of qperf, such as "latency = 10905 ns".
func readQperf(name, unit string, use func(x float64, t turn) (told, error)) func(string, turn) (told, error) {
	return func(output string, t turn) (told, error) {
		for line := range strings.Lines(output) {
			if f := strings.Fields(line); len(f) == 4 && f[0] == name && f[1] == "=" && f[3] == unit {
				x, err := number(f[2])
				if err != nil {
					return told{}, err
				}
				return use(x, t)
			}
		}
		return told{}, fmt.Errorf("%w: %q", errFormat, lastLine(output))
	}
}

// qperfTrips are the round trips of some seconds, by the nanoseconds of half of one.
func qperfTrips(ns float64, t turn) (told, error) {
	if ns < 1 {
		return told{}, fmt.Errorf("it measured %v ns", ns)
	}
	return trips(int(float64(t.seconds)*1e9/(2*ns)), ns/1e3, 0)
}

// qperfMessages are the messages of some seconds, by their bytes in a second.
func qperfMessages(bytes float64, t turn) (told, error) {
	perSecond := bytes / float64(t.size)
	return oneWay(int(float64(t.seconds)*perSecond), perSecond)
}

// readPerftestLatency reads a line of perftest's latency programs: bytes, iterations, and
// in microseconds least, greatest, typical, average, deviation, 99 % and 99.9 %.
func readPerftestLatency(output string, _ turn) (told, error) {
	f, err := numbers(output, 9)
	if err != nil {
		return told{}, err
	}
	return trips(int(f[1]), f[5], f[4])
}

// readPerftestBandwidth reads a line of perftest's bandwidth programs: bytes, iterations,
// peak and average in MB/sec, and the rate in millions of messages a second.
func readPerftestBandwidth(output string, _ turn) (told, error) {
	f, err := numbers(output, 5)
	if err != nil {
		return told{}, err
	}
	return oneWay(int(f[1]), f[4]*1e6)
}

// readDapltest reads the throughput of a performance test.
func readDapltest(output string, t turn) (told, error) {
	for line := range strings.Lines(output) {
		if f := strings.Fields(line); len(f) == 5 && f[0] == "Operation" && f[1] == "Throughput" && f[4] == "ops/sec" {
			x, err := number(f[3])
			if err != nil {
				return told{}, err
			}
			return oneWay(t.count, x)
		}
	}
	return told{}, fmt.Errorf("%w: %q", errFormat, lastLine(output))
}
