package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/target"
	dat "godat/runtime"
)

// list adds the target's disks, hosts and queues to the snapshots of the adapter, which the page of
// --inspect shows.
func list(ia *dat.IA, t *target.Target) error {
	for kind, rows := range map[string]func(target.Stats) []any{"disks": diskRows, "hosts": hostRows, "queues": queueRows} {
		if _, err := ia.Report(kind, func() []any { return rows(t.Stats()) }); err != nil {
			return err
		}
	}
	return nil
}

// diskRow is a disk in the snapshots of the adapter.
type diskRow struct {
	Disk      string
	UUID      string
	Bytes     uint64
	BlockSize int
	State     nvme.ANAState
	Queues    int // that have its memory registered
}

func diskRows(s target.Stats) (rows []any) {
	for _, d := range s.Disks {
		rows = append(rows, diskRow{fmt.Sprintf("disk %d", d.Number), d.ID.String(), d.Bytes, d.BlockSize, d.State, d.Queues})
	}
	return rows
}

// hostRow is a host that is connected: all that its queues have done.
type hostRow struct {
	Host                    string
	Controllers, Queues     int
	Reads, Writes, Failures uint64
	BytesRead, BytesWritten uint64
}

func hostRows(s target.Stats) (rows []any) {
	hosts, controllers := make(map[string]hostRow), make(map[uint16]bool)
	for _, q := range s.Queues {
		h := hosts[q.Host]
		h.Host = q.Host
		if !controllers[q.Controller] {
			controllers[q.Controller] = true
			h.Controllers++
		}
		h.Queues++
		h.Reads, h.Writes, h.Failures = h.Reads+q.Reads, h.Writes+q.Writes, h.Failures+q.Failures
		h.BytesRead, h.BytesWritten = h.BytesRead+q.BytesRead, h.BytesWritten+q.BytesWritten
		hosts[q.Host] = h
	}
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		rows = append(rows, hosts[host])
	}
	return rows
}

// queueRow is a queue in the snapshots of the adapter.
type queueRow struct {
	Queue                      string // of which controller
	Host, Address              string
	Reads, Writes, Failures    uint64
	BytesRead, BytesWritten    uint64
	ReadP99, WriteP99, Longest time.Duration
}

func queueRows(s target.Stats) (rows []any) {
	sortQueues(s.Queues)
	for _, q := range s.Queues {
		rows = append(rows, queueRow{
			Queue: fmt.Sprintf("controller %d, queue %d", q.Controller, q.Queue), Host: q.Host, Address: q.Address,
			Reads: q.Reads, Writes: q.Writes, Failures: q.Failures, BytesRead: q.BytesRead, BytesWritten: q.BytesWritten,
			ReadP99: q.Read.P99, WriteP99: q.Write.P99, Longest: max(q.Read.Longest, q.Write.Longest),
		})
	}
	return rows
}

func sortQueues(queues []target.QueueStats) {
	slices.SortFunc(queues, func(a, b target.QueueStats) int {
		return cmp.Or(cmp.Compare(a.Controller, b.Controller), cmp.Compare(a.Queue, b.Queue))
	})
}
