//go:build !linux

package runtime

// pinnedWay is what polls a device where no thread can be kept on processors.
const pinnedWay = "goroutine"

func allCPUs() []int { return nil }
