// Package provider is a provider to learn from: the contract of package hw, filled in
// 600 lines without any of its optional interfaces. It moves bytes between queue pairs of
// one process, under one lock, in the call that posts a request.
//
// Read hw's documentation first, then device.go (what a device has: zones, regions,
// listeners), connect.go (how two queue pairs meet, and how they part) and queue.go (how a
// request is executed and completes). provider_test.go runs the contract's suite over it;
// a program opens it by
//
//	ia, err := dat.Open(ctx, "small", dat.WithProvider(new(provider.Provider)))
//
// Everything of package runtime works on it but what it leaves out: windows, shared
// receive queues, atomics, immediate data. What a provider gains by each optional
// interface is in hw's documentation.
package provider
