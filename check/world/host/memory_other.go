//go:build !unix

package host

import "context"

// withMemory leaves memory to the runtime, which copies it when it grows.
func withMemory(ctx context.Context) context.Context { return ctx }
