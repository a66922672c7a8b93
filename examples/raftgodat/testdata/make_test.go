package raft_test

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"godat/examples/raftgodat"
	_ "godat/hw/iwarp"
	_ "godat/hw/loop"
	dat "godat/runtime"
)

func init() {
	ctx := context.Background()
	ia, err := dat.Open(ctx, os.Getenv("RAFTGODAT_DEVICE"))
	if err != nil {
		panic(err)
	}
	raft.Make = func(at raft.ServerAddress, timeout time.Duration) raft.Transport {
		cfg := raftgodat.Config{Advertise: at, Timeout: timeout}
		where := string(at)
		if !strings.Contains(where, ":") { // none, or a name
			where = ":0"
		}
		t, err := raftgodat.New(ctx, ia, where, cfg)
		if err != nil { // its node is there still, and the test wants the address alone
			t, err = raftgodat.New(ctx, ia, ":0", cfg)
		}
		if err != nil {
			panic(err)
		}
		return t
	}
}
