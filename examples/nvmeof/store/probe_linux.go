package store

import (
	"runtime/debug"
	"sync/atomic"
	"unsafe"
)

// probe touches each page of b, which begins with one. A page that fails is a signal (SIGBUS) at the access, which
// probe turns into ErrUnreadable. With write it also lets the file system prepare the page
// for writing, without a change of what is there.
func probe(b []byte, page int, write bool) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			err = ErrUnreadable
		}
	}()
	for at := 0; at < len(b); at += page {
		word := (*uint32)(unsafe.Pointer(&b[at])) // b begins with a page
		if write {
			atomic.OrUint32(word, 0)
		} else {
			atomic.LoadUint32(word)
		}
	}
	return nil
}

// zero clears b, and turns a page that fails into ErrUnreadable.
func zero(b []byte) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			err = ErrUnreadable
		}
	}()
	clear(b)
	return nil
}
