package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"godat/hw"
	"godat/runtime/inspect/internal/process"
)

const (
	askedFor     = 2 * time.Second // that whoever has an address may take to say who it is
	longestPage  = 1 << 20         // bytes of what it says
	windowsInUse = syscall.Errno(10048)
)

// taken says why the page can't be at an address, who has it, and what to do.
func taken(ctx context.Context, address string, err error) error {
	var wrong *net.AddrError
	var unknown *net.DNSError
	switch {
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("inspect: %s is no address of this host; take one that it has, 127.0.0.1 for visitors on this host, or 0.0.0.0 for all: %w", hostOf(address), err)
	case errors.As(err, &wrong), errors.As(err, &unknown):
		return fmt.Errorf("inspect: %w: the page's is HOST:PORT, such as 127.0.0.1:6060, or :6060 for the same: %w", hw.ErrInvalidAddress, err)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("inspect: this process may not listen at %s; take a port above 1023: %w", address, err)
	case !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, windowsInUse):
		return err
	}
	const advice = "give this one another address, or port 0 for one that is free"
	p, ok := pageOf(ctx, address)
	switch {
	case !ok:
		return fmt.Errorf("inspect: another program, which shows no such page, listens at %s (`ss -ltnp` names it); %s: %w", address, advice, err)
	case p.PID == os.Getpid() && p.Host == process.Now().Host:
		return fmt.Errorf("inspect: this process has a page at %s already; %s: %w", address, advice, err)
	}
	return fmt.Errorf("inspect: http://%s/ is the page of another program already, %s, up for %s; %s: %w", address, cut(p.String()), ago(p.Uptime), advice, err)
}

// pageOf asks a page, of any version, which process it is of.
func pageOf(ctx context.Context, address string) (p process.Info, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, askedFor)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/?format=json", nil)
	if err != nil {
		return p, false
	}
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r) // of no proxy, and to nowhere else
	if err != nil {
		return p, false
	}
	defer func() { _ = answer.Body.Close() }()
	return p, processIn(json.NewDecoder(io.LimitReader(answer.Body, longestPage)), &p) == nil && p.PID != 0
}

// processIn finds the process in a page's JSON, before its tables, which may be long.
func processIn(page *json.Decoder, p *process.Info) error {
	for {
		key, err := page.Token()
		if err != nil {
			return err
		}
		if key == "Process" {
			return page.Decode(p)
		}
	}
}
