package runtime_test

import (
	"context"
	"fmt"
	"time"

	"godat/mem"
	dat "godat/runtime"
)

// A server that has as many requests as buffers makes the next one wait, and sheds it when
// that takes too long.
func ExampleBufferPool_wait() {
	ctx := context.Background()
	ia, err := dat.Open(ctx, "loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	pz, err := ia.NewPZ()
	if err != nil {
		fmt.Println(err)
		return
	}
	pool, err := pz.NewBufferPool(mem.BufferPoolConfig{Count: 1, Size: 4096})
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := pool.Wait(ctx)
	fmt.Println("the first request:", err)

	short, cancel := context.WithTimeoutCause(ctx, time.Millisecond, fmt.Errorf("the server is busy"))
	defer cancel()
	_, err = pool.Wait(short)
	fmt.Println("the second one:", err)

	time.AfterFunc(time.Millisecond, b.Put) // the first request is answered
	_, err = pool.Wait(ctx)
	fmt.Println("the third one:", err)
	// Output:
	// the first request: <nil>
	// the second one: the server is busy
	// the third one: <nil>
}
