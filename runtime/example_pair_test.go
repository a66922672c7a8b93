package runtime_test

import (
	"context"
	"fmt"

	"godat/evd"
	"godat/hw"
	dat "godat/runtime"
)

// Two programs that have no connection manager exchange their values by means of their
// own: here they are in one process. Each gives the other what Local returns.
func ExampleIA_NewPaired() {
	ctx := context.Background()
	ia, err := dat.Open(ctx, "loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	var ends [2]*dat.Pairing
	for i := range ends {
		if ends[i], err = ia.NewPaired(dat.ConnConfig{}); err != nil {
			fmt.Println(err)
			return
		}
		defer ends[i].Close()
	}
	here, err := ends[0].Connect(ctx, ends[1].Local())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer here.Close()
	there, err := ends[1].Connect(ctx, ends[0].Local())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer there.Close()
	if err := here.SendBytes([]byte("hello")); err != nil {
		fmt.Println(err)
		return
	}
	b := there.Message(<-there.Events())
	fmt.Printf("%s\n", b.Bytes())
	there.Release(b)
	// Output:
	// hello
}

// An endpoint of the program's own pairs, too. After Reset it has other values.
func ExampleEndpoint_pair() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		local, err := p.client.PairAddr()
		if err != nil {
			return err
		}
		text, err := local.MarshalText()
		if err != nil {
			return err
		}
		var read hw.PairAddr
		if err := read.UnmarshalText(text); err != nil {
			return err
		}
		fmt.Println("the text holds all:", read == local)
		fmt.Println("once connected:", p.client.Pair(read))
		return nil
	})
	// Output:
	// the text holds all: true
	// once connected: ep.Pair: invalid state (EP connected): Disconnect ends the connection, and behind DISCONNECTED Reset lets it connect anew
}
