package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"godat/examples/nvmeof/store"
	"godat/examples/nvmeof/target"
)

// options is the command line.
type options struct {
	Serve    serveOptions    `cmd:"" help:"Serve disks to hosts until interrupted."`
	Discover discoverOptions `cmd:"" help:"List the subsystems of a target."`
	Bench    benchOptions    `cmd:"" help:"Write to a disk, read it back, and say how fast that was. It destroys what the disk has."`
	Beside   besideOptions   `cmd:"" help:"Measure a target in this process beside plain RDMA writes and a net.Conn, and print ratios."`

	Provider string   `help:"Provider and device to run on." default:"iwarp"`
	Param    []string `help:"Parameter of the provider, as in crc=false; may be repeated." placeholder:"KEY=VALUE"`
}

type serveOptions struct {
	Listen    string   `help:"HOST:PORT." default:"127.0.0.1:4420"`
	Subsystem string   `help:"The subsystem's NVMe qualified name." default:"nqn.2026-01.example.godat:disk"`
	Disk      []string `help:"A disk, which may be repeated: mem:SIZE, or the PATH of a block device or file, for a file with :SIZE its least size (64M, 10G)." placeholder:"DISK" required:""`
	Block     int      `help:"Bytes of a block: 512 or 4096." default:"4096"`
	Host      []string `help:"Name of a host that may connect; may be repeated. Without it, all may." placeholder:"NQN"`
	Queues    int      `help:"I/O queues of a controller." default:"8"`
	Depth     int      `help:"Entries of a queue." default:"128"`
	Verbose   bool     `help:"Log commands that fail, too." short:"v"`

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
	Subsystem string        `help:"The subsystem's NVMe qualified name." default:"nqn.2026-01.example.godat:disk"`
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
	if o.Processors < 0 {
		return errors.New("--processors must not be negative")
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

// openDisks opens the stores of the disks. On an error it has opened none.
func openDisks(o *serveOptions) (disks []target.Namespace, err error) {
	for i, text := range o.Disk {
		s, err := openStore(text)
		if err != nil {
			return nil, errors.Join(err, closeDisks(disks))
		}
		// The id is that of the name, so that it stays when the target is started again,
		// also with a larger size.
		path, _, _ := strings.Cut(text, ":")
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %s", o.Subsystem, i+1, path))
		disks = append(disks, target.Namespace{Store: s, BlockSize: o.Block, ID: [16]byte(sum[:])})
	}
	return disks, nil
}

func closeDisks(disks []target.Namespace) error {
	var errs []error
	for _, d := range disks {
		errs = append(errs, d.Store.Close())
	}
	return errors.Join(errs...)
}

// openStore opens what --disk says.
func openStore(text string) (store.Store, error) {
	path, size := text, 0
	if at := strings.LastIndexByte(text, ':'); at >= 0 {
		n, err := parseSize(text[at+1:])
		if err != nil {
			return nil, fmt.Errorf("--disk %s: %w", text, err)
		}
		path, size = text[:at], n
	}
	if path == "mem" {
		return store.NewMemory(size)
	}
	return store.OpenFile(path, size)
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
