package nvme

// Feature is what Set Features and Get Features are about: FID.
type Feature uint8

// Features.
const (
	FeatureArbitration    Feature = 0x01
	FeaturePower          Feature = 0x02
	FeatureTemperature    Feature = 0x04
	FeatureErrorRecovery  Feature = 0x05
	FeatureVolatileCache  Feature = 0x06
	FeatureQueues         Feature = 0x07
	FeatureWriteAtomicity Feature = 0x0a
	FeatureAsyncEvents    Feature = 0x0b
	FeatureKeepAlive      Feature = 0x0f
	FeatureHostID         Feature = 0x81
)

// NamespaceNotices, ANANotices and DiscoveryNotices are the bits of FeatureAsyncEvents, and of
// Controller.AsyncEvents, for events of changed namespaces, of changed ANA groups and of a changed
// discovery log, which discovery controllers have. HealthEvents are those of the health log page.
const (
	NamespaceNotices uint32 = 1 << 8
	ANANotices       uint32 = 1 << 11
	DiscoveryNotices uint32 = 1 << 31
	HealthEvents     uint32 = 0xff
)

// LongHostID is the bit of CDW11 by which Get Features asks for a host identifier of 128 bits.
const LongHostID uint32 = 1 << 0

// Which says which value of a feature Get Features asks for: SEL.
type Which uint8

// The values of a feature.
const (
	CurrentValue Which = iota
	DefaultValue
	SavedValue
	Supported // what may be done with the feature: FeatureChangeable
)

// FeatureChangeable is the bit of a feature's capabilities which says that Set Features changes
// it.
const FeatureChangeable uint32 = 1 << 2

// AsyncEvent is the result of an Async Event Request: the type in the low three bits,
// what happened in the second byte, and the log page that tells more in the third.
type AsyncEvent uint32

// Events of changed namespaces, of changed ANA groups and of a changed discovery log, all notices.
const (
	NamespaceChanged = AsyncEvent(LogChangedNamespaces)<<16 | 0<<8 | 2
	ANAChanged       = AsyncEvent(LogANA)<<16 | 3<<8 | 2
	DiscoveryChanged = AsyncEvent(LogDiscovery)<<16 | 0xf0<<8 | 2
)

// SetFeature returns the command that sets a feature.
func SetFeature(f Feature, value uint32) Command {
	return Command{Opcode: AdminSetFeatures, Flags: UsesList, CDW10: uint32(f), CDW11: value}
}

// GetFeature returns the command that gets a feature's current value.
func GetFeature(f Feature) Command { return GetFeatureValue(f, CurrentValue) }

// GetFeatureValue returns the command that gets one of a feature's values.
func GetFeatureValue(f Feature, which Which) Command {
	return Command{Opcode: AdminGetFeatures, Flags: UsesList, CDW10: uint32(f) | uint32(which)<<8}
}

// Feature is the feature that the command is about.
func (c *Command) Feature() Feature { return Feature(c.CDW10) }

// Which is the value of the feature that a Get Features asks for.
func (c *Command) Which() Which { return Which(c.CDW10 >> 8 & 7) }

// Save is the bit of CDW10 by which Set Features asks to save the value over resets.
const Save uint32 = 1 << 31

// Queues is the value of FeatureQueues for n I/O queues: the submission queues in the
// low half, the completion queues in the high one, both 0's based.
func Queues(n int) uint32 { return uint32(n-1) | uint32(n-1)<<16 }

// QueuesOf is how many I/O queues a value of FeatureQueues means. ok is false for a number
// that the specification forbids.
func QueuesOf(value uint32) (n int, ok bool) {
	submission, completion := int(value&0xffff), int(value>>16)
	return min(submission, completion) + 1, max(submission, completion) != 0xffff
}

// Parts of the values of features.
const (
	ReservedArbitration uint32 = 0xf8    // bits of FeatureArbitration
	PowerStateMask      uint32 = 0x1f    // of FeaturePower
	WorkloadMask        uint32 = 7 << 5  // of FeaturePower
	RecoveryTimeMask    uint32 = 0xffff  // of FeatureErrorRecovery
	DeallocatedError    uint32 = 1 << 16 // of FeatureErrorRecovery: reads of deallocated blocks fail
	AtomicityOff        uint32 = 1 << 0  // of FeatureWriteAtomicity
)

// Threshold is a value of FeatureTemperature.
type Threshold uint32

// Kelvin is the threshold.
func (t Threshold) Kelvin() uint32 { return uint32(t) & 0xffff }

// Sensor is which sensor the threshold is about: 0 is the composite temperature, and
// AllSensors all of them.
func (t Threshold) Sensor() uint32 { return uint32(t) >> 16 & 0xf }

// Kind is 0 for a threshold that a temperature exceeds, 1 for one that it falls below.
func (t Threshold) Kind() uint32 { return uint32(t) >> 20 & 3 }

// AllSensors is the sensor that means all of them.
const AllSensors = 0xf
