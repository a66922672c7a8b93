package target

import (
	"cmp"
	"fmt"
	"log/slog"
	"math/bits"
	"time"

	"godat/examples/nvmeof/intake"
	"godat/examples/nvmeof/nvme"
)

// Config says what a target serves. Zero values take the defaults.
type Config struct {
	Addr      string // host:port
	Subsystem string // its NVMe qualified name, which no other subsystem of any host's targets may have
	// Namespaces are the disks at the beginning; the first one has the namespace id 1.
	// Target.Set and Target.Remove change them later. After New the target closes their stores.
	Namespaces []Namespace
	// Hosts are the names of the hosts that may connect; none means all hosts. The names
	// are what hosts say, and prove nothing.
	Hosts []string

	Transfer        int // the most bytes of data of a command, of which the power of two at or below counts; default and most 1 MiB
	Queues          int // I/O queues of a controller; default 8, at most 64
	Depth           int // entries of a queue; default 128
	Controllers     int // at a time; default 16
	HostControllers int // of one host's name at a time; default 4
	// AddressControllers are those of one IP address (or IPv6 network of 64 bits) at a time,
	// whatever names its hosts say; default 3/4 of Controllers.
	AddressControllers int
	// ControllerIDs are the ids that controllers may have; the default is 1 to 0xffef. Each
	// controller gets one at random. Targets that serve one subsystem together have ids apart
	// for certain with ranges that are apart: a host refuses a second controller of one id.
	ControllerIDs IDRange

	// ConnectTime is the most time from a connection to its Connect command; default 60 s. Linux
	// makes the connections of all its queues before it sends their Connect commands.
	ConnectTime time.Duration
	// ANATransition is the longest time for which an ANA group stays nvme.ANAChange, in whole
	// seconds; default 30 s. Linux resets the controller when it has taken twice as long.
	ANATransition time.Duration
	Log           *slog.Logger // nil means no log
	// Intake is how I/O queues take their events; the default is intake.Batches. With intake.Poll
	// each queue keeps a processor busy.
	Intake intake.Way
}

// IDRange is a range of the ids of controllers, both ends included.
type IDRange struct{ First, Last uint16 }

// mostController is the highest id of a controller; the specification reserves those above.
const mostController = 0xffef

const (
	inCapsule   = nvme.PageLen                  // bytes of data that a capsule takes
	maxTransfer = 1 << transferPages * pageSize // bytes of data of a command, unless the configuration has fewer
	pageSize    = 4096

	transferPages = 8 // as a power of two: MDTS

	mostTransition = 255 * time.Second

	mostQueues    = 64
	fewestEntries = 2
	mostEntries   = 1024
	adminEntries  = 32 // which a host may rely on
	asyncLimit    = 4  // Async Event Requests that a controller holds
	abortLimit    = 4  // Aborts that a host may have outstanding
)

// complete fills in the defaults and checks the rest.
func (cfg *Config) complete() error {
	cfg.Queues = cmp.Or(cfg.Queues, 8)
	cfg.Depth = cmp.Or(cfg.Depth, 128)
	cfg.Transfer = cmp.Or(cfg.Transfer, maxTransfer)
	cfg.Controllers = cmp.Or(cfg.Controllers, 16)
	cfg.HostControllers = cmp.Or(cfg.HostControllers, 4)
	cfg.AddressControllers = cmp.Or(cfg.AddressControllers, max(1, cfg.Controllers*3/4))
	cfg.ConnectTime = cmp.Or(cfg.ConnectTime, time.Minute)
	cfg.ANATransition = cmp.Or(cfg.ANATransition, 30*time.Second)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.ControllerIDs = cmp.Or(cfg.ControllerIDs, IDRange{1, mostController})
	switch {
	case cfg.Queues < 1 || cfg.Queues > mostQueues:
		return fmt.Errorf("target: %d I/O queues; there may be 1 to %d", cfg.Queues, mostQueues)
	case cfg.Depth < adminEntries || cfg.Depth > mostEntries:
		return fmt.Errorf("target: queues of %d entries; they may have %d to %d", cfg.Depth, adminEntries, mostEntries)
	case cfg.Transfer < 2*pageSize || cfg.Transfer > maxTransfer:
		return fmt.Errorf("target: commands of %d bytes; they may have %d to %d", cfg.Transfer, 2*pageSize, maxTransfer)
	case cfg.Controllers < 1 || cfg.HostControllers < 1 || cfg.AddressControllers < 1 || cfg.ConnectTime < 0:
		return fmt.Errorf("target: a limit is negative")
	case cfg.ANATransition < time.Second || cfg.ANATransition > mostTransition:
		return fmt.Errorf("target: ANA groups that change for %v; it may be 1 s to %v", cfg.ANATransition, mostTransition)
	case cfg.ControllerIDs.First < 1 || cfg.ControllerIDs.Last > mostController || cfg.ControllerIDs.size() < cfg.Controllers:
		return fmt.Errorf("target: ids %d to %d for %d controllers; they may be 1 to %d", cfg.ControllerIDs.First, cfg.ControllerIDs.Last, cfg.Controllers, mostController)
	case cfg.Subsystem == nvme.DiscoverySubsystem:
		return fmt.Errorf("target: %s is the name of the discovery subsystem", cfg.Subsystem)
	}
	cfg.Transfer = pageSize << cfg.transferShift()
	for _, name := range append([]string{cfg.Subsystem}, cfg.Hosts...) {
		if err := nvme.CheckName(name); err != nil {
			return fmt.Errorf("target: %w", err)
		}
	}
	if err := cfg.Intake.Check(); err != nil {
		return fmt.Errorf("target: %w", err)
	}
	return completeAll(cfg.Namespaces)
}

// completeAll completes namespaces of a target, whose IDs must differ.
func completeAll(all []Namespace) error {
	for i := range all {
		if err := all[i].complete(); err != nil {
			return fmt.Errorf("target: namespace %d: %w", i+1, err)
		}
		for j := range all[:i] {
			if all[j].ID == all[i].ID {
				return fmt.Errorf("target: namespaces %d and %d have one ID, %v: hosts would take them for one disk", j+1, i+1, all[i].ID)
			}
		}
	}
	return nil
}

// size is how many ids a range has.
func (r IDRange) size() int { return int(r.Last) - int(r.First) + 1 }

// transferShift is the longest transfer in pages, as a power of two: MDTS.
func (cfg *Config) transferShift() uint8 { return uint8(bits.Len(uint(cfg.Transfer/pageSize)) - 1) }
