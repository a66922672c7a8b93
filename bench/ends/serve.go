package ends

import (
	"encoding/json"
	"io"
)

// said is what an end answers to an order: its report, or why there is none.
type said struct {
	Error  string
	Report any
}

// Failure is an order that an end could not obey.
type Failure struct{ What, Why string }

func (f Failure) Error() string { return "the " + f.What + ": " + f.Why }

// Serve obeys orders until one was the last. If the orders end before, the program that gave them has
// gone, and Serve calls gone, which ends the process: the work may wait for the other process for ever.
func Serve[Order any](in io.Reader, out io.Writer, gone func(), obey func(Order) (report any, last bool, err error)) error {
	orders, over := make(chan Order), make(chan struct{})
	defer close(over)
	go listen(json.NewDecoder(in), orders, over, gone)
	to := json.NewEncoder(out)
	for o := range orders {
		report, last, err := obey(o)
		say := said{Report: report}
		if err != nil {
			say.Error = err.Error()
		}
		if err := to.Encode(say); err != nil || last {
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
