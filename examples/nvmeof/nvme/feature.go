package nvme

// Feature is what Set Features and Get Features are about: FID.
type Feature uint8

// Features.
const (
	FeatureVolatileCache Feature = 0x06
	FeatureQueues        Feature = 0x07
	FeatureAsyncEvents   Feature = 0x0b
	FeatureKeepAlive     Feature = 0x0f
	FeatureHostID        Feature = 0x81
)

// NamespaceNotices is the bit of FeatureAsyncEvents, and of Controller.AsyncEvents, for
// events of changed namespaces.
const NamespaceNotices uint32 = 1 << 8

// AsyncEvent is the result of an Async Event Request: the type in the low three bits,
// what happened in the second byte, and the log page that tells more in the third.
type AsyncEvent uint32

// NamespaceChanged is the event of changed namespaces, a notice.
const NamespaceChanged = AsyncEvent(LogChangedNamespaces)<<16 | 0<<8 | 2

// SetFeature returns the command that sets a feature.
func SetFeature(f Feature, value uint32) Command {
	return Command{Opcode: AdminSetFeatures, Flags: UsesList, CDW10: uint32(f), CDW11: value}
}

// GetFeature returns the command that gets a feature.
func GetFeature(f Feature) Command {
	return Command{Opcode: AdminGetFeatures, Flags: UsesList, CDW10: uint32(f)}
}

// Feature is the feature that the command is about.
func (c *Command) Feature() Feature { return Feature(c.CDW10) }

// Queues is the value of FeatureQueues for n I/O queues: the submission queues in the
// low half, the completion queues in the high one, both 0's based.
func Queues(n int) uint32 { return uint32(n-1) | uint32(n-1)<<16 }

// QueuesOf is how many I/O queues a value of FeatureQueues means.
func QueuesOf(value uint32) int { return min(int(value&0xffff), int(value>>16)) + 1 }
