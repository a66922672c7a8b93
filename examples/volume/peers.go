package main

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"godat/examples/nvmeof/identity"
	"godat/examples/volume/node"
	dat "godat/runtime"
)

// A create without a token makes another volume. Whoever means a further node of one that is there has forgotten the
// token, so the nodes of --peers are asked first.

// peersTime is how long they may take.
const peersTime = 2 * time.Second

// firstOfAll refuses a create without a token if a node of a volume answers at --peers.
func (o *volumeOptions) firstOfAll(ctx context.Context, provider string) error {
	a, err := describe(o)
	if err != nil {
		return usageError{err}
	}
	if o.Token != "" || len(a.Peers) < 2 {
		return nil
	}
	ia, err := dat.Open(ctx, provider)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, peersTime)
	defer cancel()
	var all errgroup.Group
	for id, m := range a.Peers {
		if id != a.ID {
			all.Go(func() error { return o.somebody(ctx, ia, m.Addr) })
		}
	}
	return errors.Join(all.Wait(), ia.Close())
}

// somebody is an error if a node answers at an address.
func (o *volumeOptions) somebody(ctx context.Context, ia *dat.IA, addr string) error {
	s, err := node.Ask(ctx, ia, addr, askStatus)
	again := "the same command with --token"
	switch {
	case err == nil:
		if text, err := tokenFrom(&s); err == nil {
			again += " " + text
		} else {
			again += " and the file `token` of that node's directory"
		}
		return usageError{fmt.Errorf("node %d of volume %s answers at %s, so this would make another volume: give %s; "+
			"another volume has other addresses", s.ID, s.Volume, addr, again)}
	case hungUp(err):
		return usageError{fmt.Errorf("somebody listens at %s, as a node with certificates does, so this would make another volume: give %s and the file `token` of that node's directory; "+
			"another volume has other addresses", addr, again)}
	}
	return nil // nobody is there
}

var errSecret = errors.New("the token is secret")

// tokenFrom is the token of a volume whose nodes have no certificates, by what one of them says.
func tokenFrom(s *node.Status) (string, error) {
	all := make(map[string]string)
	for _, x := range slices.Concat(s.Terms.All, s.Terms.Founding) {
		all[x.Name] = x.Value
	}
	number := func(name string) int {
		n, _ := strconv.Atoi(all[name]) // 0 is no size
		return n
	}
	var t token
	var err error
	if t.Volume, err = identity.Parse(s.Volume); err != nil {
		return "", err
	}
	_, subsystem, _ := strings.Cut(all["subsystem"], "uuid:")
	if t.Subsystem, err = identity.Parse(subsystem); err != nil {
		return "", err
	}
	t.Size, t.SlotSize, t.Slots, t.Namespace = number("size"), number("slot-size"), number("slots"), uint32(number("namespace"))
	t.Peers = crc32.ChecksumIEEE([]byte(all["peers"]))
	if all["peers"] == "" || t.Size == 0 || t.Slots == 0 {
		return "", errSecret
	}
	return t.String(), nil
}
