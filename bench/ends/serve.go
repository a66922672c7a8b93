package ends

import (
	"encoding/json"
	"io"
)

// Serve obeys orders until one was the last. If the orders end before, the program that gave them has
// gone, and Serve calls gone, which ends the process: the work may wait for the other process for ever.
func Serve[Order any](in io.Reader, out io.Writer, gone func(), obey func(Order) (report any, last bool)) error {
	orders, over := make(chan Order), make(chan struct{})
	defer close(over)
	go listen(json.NewDecoder(in), orders, over, gone)
	to := json.NewEncoder(out)
	for o := range orders {
		report, last := obey(o)
		if err := to.Encode(report); err != nil || last {
			return err
		}
	}
	return io.ErrUnexpectedEOF
}

func listen[Order any](from *json.Decoder, orders chan<- Order, over <-chan struct{}, gone func()) {
	defer close(orders)
	for {
		var o Order
		if err := from.Decode(&o); err != nil {
			select {
			case <-over: // that was the last one
			default:
				gone()
			}
			return
		}
		select {
		case orders <- o:
		case <-over:
			return
		}
	}
}
