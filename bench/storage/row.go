// Package storage is the study of delivery under storage: 4 KiB reads and writes through the target
// and the host of examples/nvmeof, with each way to take completions, from idle to saturation. Each
// row proves by its adapters' snapshots which loop it ran. The page that it writes is bench/STORAGE.md.
package storage

import (
	"fmt"
	"strings"

	"godat/examples/nvmeof/intake"
)

// Row is a way to take completions, at both ends.
type Row struct {
	Name   string
	Intake intake.Way // empty of a server on net.Conn, and of the pacer alone
	Rounds int        // of the adapters, PollerConfig.SpinRounds; but for comparisons 0
	Kernel bool       // the target is Linux's own
	Does   string
}

// The rows' names.
const (
	channel  = "channel"
	batches  = "batches"
	poll     = "poll"
	adaptive = "adaptive"
	onNet    = "net.Conn"
	pacing   = "pacer"
	inKernel = "nvmet-rdma"
)

// kernelRow takes part where counts are compared, and times are not: its target's processor time is no process's.
var kernelRow = Row{Name: inKernel, Intake: intake.Batches, Kernel: true, Does: "the target is Linux's nvmet-rdma, over a disk of null_blk in memory, and the host that of adaptive"}

// rows are those that a target of the library or a plain server has.
func rows() []Row {
	const asleep = -1
	return []Row{
		{Name: channel, Intake: intake.Channel, Rounds: asleep, Does: "each end receives one event at a time from a channel, and sleeps when none has come"},
		{Name: batches, Intake: intake.Batches, Rounds: asleep, Does: "each end receives batches of events from a channel, and sleeps when none has come"},
		{Name: poll, Intake: intake.Poll, Does: "each end dequeues in a loop that never sleeps, and polls the device or reads the socket itself"},
		{Name: adaptive, Intake: intake.Batches, Does: "what a program gets that sets nothing: batches, of an adapter that polls on while completions come sooner than a sleep costs, and sleeps otherwise"},
		{Name: onNet, Does: "a plain server and client on net.Conn, over loopback wherever other rows run, with the same blocks and the same CRCs, and no protocol that another program speaks; at a rate one goroutine of the client begins commands and another takes their completions, at saturation one does both"},
		{Name: pacing, Does: "no target and no command: the pacer ticks, and the host notes when. What it takes is in all other rows, too"},
	}
}

// Place is where a row runs.
type Place struct {
	Provider   string // as dat.Open takes it, or sim
	Processors int    // GOMAXPROCS of each process
}

// simulated is the provider of the simulated polled device.
const simulated = "sim"

// OneProcess reports whether both ends are in one process, since the provider reaches no other one.
func (p Place) OneProcess() bool { return p.Provider == simulated }

func (p Place) String() string {
	name, _, _ := strings.Cut(p.Provider, ":")
	return fmt.Sprintf("%s, GOMAXPROCS=%d", name, p.Processors)
}

// polled reports whether the device has queues that must be polled. Of one without, such as iwarp's
// sockets, batches are what a program gets that sets nothing.
func (p Place) polled() bool { return !strings.HasPrefix(p.Provider, "iwarp") }

// unset is the row of a program that sets nothing.
func (p Place) unset() string {
	if p.polled() {
		return adaptive
	}
	return batches
}

// has reports whether a row can run there: a net.Conn takes the place of a wire.
func (p Place) has(r Row) bool {
	switch r.Name {
	case onNet:
		return !p.OneProcess()
	case inKernel:
		return strings.HasPrefix(p.Provider, "ibv:")
	case adaptive:
		return p.polled()
	}
	return true
}
