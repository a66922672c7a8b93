//go:build !linux

package ledger

func onThread() []provider { return nil }
