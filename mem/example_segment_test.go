package mem_test

import (
	"fmt"

	"godat/mem"
)

// A program tells its peer in a header where memory is.
func ExampleRemoteSegment_MarshalText() {
	mine := mem.RemoteSegment{Addr: 0x7f00_0000_1000, Len: 4096, Context: 0xc0ffee}
	text, err := mine.MarshalText()
	fmt.Println(string(text), err)
	var told mem.RemoteSegment
	err = told.UnmarshalText(text)
	fmt.Println(told == mine, err)
	// Output:
	// 00007f00000010000000100000c0ffee <nil>
	// true <nil>
}
