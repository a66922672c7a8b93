package program

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	dat "godat/runtime"
)

// Size says how much of everything a program has.
type Size struct {
	Servers, Clients int
	Rounds           int           // of each client
	Troubles         int           // of the script
	Without          []int         // those that are left out
	Pause            time.Duration // of a writer of a volume, or between two lives of posts, at most; 0 is as the program has it
}

// Program is what runs in a world: it returns an error if it can't begin, and tells the world of
// what must not be.
type Program interface{ Run(w *World) error }

// Names are those of all programs.
var Names = []string{"calls", "disks", "events", "memory", "messages", "streams"}

// Named returns a program by its name.
func Named(name string, size Size) (Program, error) {
	switch name {
	case "calls":
		return Calls{size}, nil
	case "disks":
		return Disks{size}, nil
	case "events":
		return Events{size}, nil
	case "memory":
		return Memory{size}, nil
	case "messages":
		return Messages{size}, nil
	case "streams":
		return Streams{size}, nil
	}
	return nil, fmt.Errorf("no program %q: one of %v", name, Names)
}

// mostPause is the most time that a client pauses between two rounds.
const mostPause = 400 * time.Millisecond

// service is a server's host, through the server's lives: the script starts it anew.
type service struct {
	host, address string
	number        int
	ia            *dat.IA
	restart       chan struct{}
	running       sync.WaitGroup
}

// party is what a client is given.
type party struct {
	number uint64
	host   string
	ia     *dat.IA
	addrs  []string // of all servers
	hosts  []string // theirs
}

// play opens an adapter for each host, starts the servers, and runs the clients while the script brings its
// troubles. start listens, sets the service's address and serves by goroutines of the service, until ctx ends.
func (z Size) play(w *World, start func(ctx context.Context, s *service) error, live func(ctx context.Context, p party)) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	services, addrs, servers := make([]*service, z.Servers), make([]string, z.Servers), make([]string, z.Servers)
	for i := range services {
		host := fmt.Sprintf("10.0.0.%d", i+1)
		ia, err := w.Open(host)
		if err != nil {
			return err
		}
		services[i] = &service{host: host, number: i, ia: ia, restart: make(chan struct{}, z.Troubles)}
		if err := start(ctx, services[i]); err != nil {
			return err
		}
		addrs[i], servers[i] = services[i].address, host
	}
	var clients, script sync.WaitGroup
	hosts := make([]string, z.Clients)
	for i := range hosts {
		hosts[i] = fmt.Sprintf("10.0.1.%d", i+1)
		ia, err := w.Open(hosts[i])
		if err != nil {
			return err
		}
		clients.Go(func() { live(ctx, party{number: uint64(i + 1), host: hosts[i], ia: ia, addrs: addrs, hosts: servers}) })
	}
	script.Go(func() { z.troubles(ctx, w, services, servers, hosts) })
	clients.Wait()
	stop()
	script.Wait()
	for _, s := range services {
		s.running.Wait()
	}
	return nil
}

// troubles plays the script.
func (z Size) troubles(ctx context.Context, w *World, services []*service, servers, clients []string) {
	if z.Troubles == 0 {
		return
	}
	within := time.Duration(z.Rounds) * mostPause / 2
	w.Play(ctx, w.Script(z.Troubles, within, clients, servers, z.Without), func(host string) {
		services[slices.Index(servers, host)].restart <- struct{}{}
	})
}
