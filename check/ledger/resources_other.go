//go:build !linux

package ledger

func warmUp() {}

func countDescriptors() int { return 0 }

func countMappings() int { return 0 }
