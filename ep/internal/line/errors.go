package line

import "godat/hw"

// NilEndpoint is the error of a post to no endpoint.
func NilEndpoint(op hw.Op) error {
	return &hw.Error{Op: CallOf(op), Type: hw.InvalidHandle, Sub: hw.HandleEP, Text: "the endpoint is nil"}
}

// Wrap returns err with the name of the call that the program made.
func Wrap(op string, err error) error {
	if e, ok := err.(*hw.Error); ok {
		named := *e
		named.Op = op
		return &named
	}
	return err
}
