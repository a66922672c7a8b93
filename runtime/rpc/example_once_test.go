package rpc_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"godat/ep"
	dat "godat/runtime"
	"godat/runtime/rpc"
)

// A caller numbers its changes, and makes one at a time, so the server needs to keep only the last
// number of each caller, with its answer. The call is idempotent then: the connection ends before
// the first answer, the client makes the call again, and the change is made once.
func Example_exactlyOnce() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ia, err := dat.Open(ctx, "loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	server, err := rpc.Listen(ctx, ia, "127.0.0.1:0", rpc.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, 4, (&account{last: map[string]change{}}).add) }()
	client, err := rpc.Dial(ctx, ia, server.Addr(), rpc.Config{Redial: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	for number, amount := range []byte{100, 50} {
		call := rpc.Call{Payload: append([]byte{byte(number + 1), amount}, "alice"...), Idempotent: true}
		sum, err := client.Call(ctx, call, nil)
		fmt.Println(binary.BigEndian.Uint64(sum), err)
	}
	stop()
	fmt.Println(errors.Join(client.Close(), <-served))
	// Output:
	// 100 <nil>
	// 150 <nil>
	// <nil>
}

// account is a sum. A program that keeps it on disk keeps last there, too, in the same write.
type account struct {
	mu   sync.Mutex
	sum  uint64
	last map[string]change // by caller
}

// change is a number, and the answer to it.
type change struct {
	number byte
	answer []byte
}

// add makes a change: its number, an amount, and the caller's name.
func (a *account) add(r *rpc.Request) ([]byte, error) {
	p := r.Payload()
	if len(p) < 2 {
		return nil, &rpc.Error{Code: rpc.CodeUnknown, Text: "no change"}
	}
	number, amount, caller := p[0], p[1], string(p[2:])
	a.mu.Lock()
	defer a.mu.Unlock()
	switch last := a.last[caller]; {
	case number == last.number: // again: the answer may not have come
		return last.answer, nil
	case number < last.number: // late: the caller has had the answer
		return nil, errors.New("an old change")
	}
	a.sum += uint64(amount)
	answer := binary.BigEndian.AppendUint64(nil, a.sum)
	a.last[caller] = change{number, answer}
	if number == 1 {
		_ = r.Conn().Endpoint.Disconnect(ep.Abrupt) // as a network does
	}
	return answer, nil
}
