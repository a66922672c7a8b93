package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// options is the command line.
type options struct {
	Serve    serveOptions    `cmd:"" help:"Serve disks to hosts until interrupted."`
	Discover discoverOptions `cmd:"" help:"List the subsystems of a target."`
	Bench    benchOptions    `cmd:"" help:"Write to a disk, read it back, and say how fast that was. It destroys what the disk has."`
	Beside   besideOptions   `cmd:"" help:"Measure a target in this process beside plain RDMA writes and a net.Conn, and print ratios."`

	Provider string   `help:"Provider and device to run on." default:"iwarp"`
	Inspect  string   `help:"Show the adapter in a browser at this address." placeholder:"HOST:PORT"`
	Traces   string   `help:"Let visitors of the page trace connections into this directory." placeholder:"DIR"`
	Param    []string `help:"Parameter of the provider, as in crc=false; may be repeated." placeholder:"KEY=VALUE"`
}

type serveOptions struct {
	Listen      []string `help:"HOST:PORT; may be repeated." default:"127.0.0.1:4420"`
	Elsewhere   []string `help:"HOST:PORT of another target that serves the same subsystem, which hosts discover at this one, too; may be repeated."`
	Shared      bool     `help:"Other targets on this machine may serve the same files."`
	ANA         string   `help:"A file with the ANA state of the disks at this target: optimized, non-optimized, inaccessible, persistent-loss or change. SIGHUP reads it again." name:"ana" placeholder:"FILE"`
	Subsystem   string   `help:"The subsystem's NVMe qualified name. Without it, the name is made of the identity of the first disk that keeps one." placeholder:"NQN"`
	Disk        []string `help:"A disk, which may be repeated: mem:SIZE, or the PATH of a block device or file, for a file with :SIZE its least size (64M, 10G)." placeholder:"DISK" required:""`
	ID          []string `help:"The identity of the first disk, a UUID; of another one N=UUID. It may be repeated. A file keeps its own, in a file beside it; a disk in memory is another one each time; a block device has none unless it is said." name:"id" placeholder:"[N=]UUID"`
	Block       int      `help:"Bytes of a block: 512 or 4096." default:"4096"`
	Host        []string `help:"Name of a host that may connect; may be repeated. Without it, all may." placeholder:"NQN"`
	Queues      int      `help:"I/O queues of a controller." default:"8"`
	Depth       int      `help:"Entries of a queue." default:"128"`
	Controllers string   `help:"The ids that controllers may have, FIRST-LAST: apart for each of the targets that serve one subsystem together." placeholder:"FIRST-LAST"`
	Verbose     bool     `help:"Log commands that fail, too." short:"v"`

	Processors int `help:"Processors for the target (GOMAXPROCS). 0 takes half of them on iwarp, since the system's network needs the others, and else what Go takes." default:"0"`
}

// processors is how many processors the target takes on a provider, of those that Go has.
func (o *serveOptions) processors(provider string, have int) int {
	_, set := os.LookupEnv("GOMAXPROCS")
	switch {
	case o.Processors > 0:
		return o.Processors
	case set || !strings.HasPrefix(provider, "iwarp"):
		return have
	}
	return max(1, have/2)
}

type discoverOptions struct {
	Addr string `arg:"" help:"HOST:PORT of the target."`
}

type benchOptions struct {
	Addr      string        `arg:"" help:"HOST:PORT of the target."`
	Subsystem string        `help:"The subsystem's NVMe qualified name. Without it, the only one that the target knows." placeholder:"NQN"`
	Namespace uint32        `help:"The disk." default:"1"`
	Queues    int           `help:"I/O queues." default:"1"`
	Depth     int           `help:"Commands under way on each queue." default:"32"`
	Size      int           `help:"Bytes of a command." default:"4096"`
	Time      time.Duration `help:"How long to read and to write." default:"3s"`
}

type besideOptions struct {
	Turns int           `help:"Turns of each way." default:"7"`
	Turn  time.Duration `help:"How long a turn is." default:"500ms"`

	Processors []int `help:"Measure with so many processors (GOMAXPROCS), one after the other." default:"1,2"`
}

// Validate refuses values that make no sense. Kong calls it.
func (o *serveOptions) Validate() error {
	if o.Processors < 0 || len(o.Listen) == 0 {
		return errors.New("--processors must not be negative, and --listen must be an address")
	}
	return nil
}

// Validate refuses values that make no sense. Kong calls it.
func (o *benchOptions) Validate() error {
	if o.Depth < 1 || o.Depth > 1023 || o.Queues < 1 || o.Size < 512 || o.Time <= 0 {
		return errors.New("--depth must be 1 to 1023, --queues at least 1, --size at least 512, --time positive")
	}
	return nil
}

// Validate refuses values that make no sense. Kong calls it.
func (o *besideOptions) Validate() error {
	if o.Turns < 1 || o.Turn <= 0 || len(o.Processors) == 0 || slices.Min(o.Processors) < 1 {
		return errors.New("--turns, --turn and --processors must be positive")
	}
	return nil
}

// params are the provider's parameters.
func (o *options) params() (map[string]string, error) {
	params := make(map[string]string)
	for _, p := range o.Param {
		key, value, ok := strings.Cut(p, "=")
		if !ok {
			return nil, fmt.Errorf("--param %q is not KEY=VALUE", p)
		}
		params[key] = value
	}
	return params, nil
}

// parseSize is a number of bytes, with a unit K, M, G or T of powers of 1024.
func parseSize(text string) (int, error) {
	digits := strings.TrimRight(text, "KMGT")
	shift := 0
	if unit := text[len(digits):]; unit != "" {
		shift = 10 * (strings.Index("KMGT", unit) + 1)
	}
	n, err := strconv.Atoi(digits)
	if err != nil || shift == 0 && len(digits) < len(text) || n < 1 || n > maxSize>>shift {
		return 0, fmt.Errorf("%q is no size", text)
	}
	return n << shift, nil
}

const maxSize = int(^uint(0) >> 1)
