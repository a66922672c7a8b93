//go:build !linux

package posts

func onThread() []provider { return nil }
