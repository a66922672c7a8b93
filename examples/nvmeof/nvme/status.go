package nvme

import "fmt"

// Status is the status of a completion: the code in the low eight bits, its type in the
// next three, and DoNotRetry. The value is the status field of the completion without
// its phase bit.
type Status uint16

// DoNotRetry says that the same command would fail again.
const DoNotRetry Status = 1 << 14

// Generic command status.
const (
	Success                Status = 0x00
	InvalidOpcode          Status = 0x01
	InvalidField           Status = 0x02
	DataTransferError      Status = 0x04
	InternalError          Status = 0x06
	AbortRequested         Status = 0x07
	InvalidNamespace       Status = 0x0b
	CommandSequenceError   Status = 0x0c
	InvalidDescriptorCount Status = 0x0e
	DataLengthInvalid      Status = 0x0f
	DescriptorTypeInvalid  Status = 0x11
	OffsetInvalid          Status = 0x16
	KeepAliveExpired       Status = 0x19
	LBAOutOfRange          Status = 0x80
	CapacityExceeded       Status = 0x81
)

// Command specific status.
const (
	AsyncEventLimitExceeded Status = 0x105
	InvalidLogPage          Status = 0x109
	FeatureNotSaveable      Status = 0x10d
	FeatureNotChangeable    Status = 0x10e
	FeatureNotOfNamespace   Status = 0x10f

	ConnectIncompatibleFormat Status = 0x180
	ConnectControllerBusy     Status = 0x181
	ConnectInvalidParameters  Status = 0x182
	ConnectRestartDiscovery   Status = 0x183
	ConnectInvalidHost        Status = 0x184
)

// Path related status: the host may try the same command over another path.
const (
	InternalPathError       Status = 0x300
	ANAPersistentLossStatus Status = 0x301
	ANAInaccessibleStatus   Status = 0x302
	ANATransitionStatus     Status = 0x303
)

// Media and data integrity errors.
const (
	WriteFault     Status = 0x280
	ReadError      Status = 0x281
	CompareFailure Status = 0x285
)

var statusNames = map[Status]string{
	Success:                   "Successful Completion",
	InvalidOpcode:             "Invalid Command Opcode",
	InvalidField:              "Invalid Field in Command",
	DataTransferError:         "Data Transfer Error",
	InternalError:             "Internal Error",
	AbortRequested:            "Command Abort Requested",
	InvalidNamespace:          "Invalid Namespace or Format",
	CommandSequenceError:      "Command Sequence Error",
	InvalidDescriptorCount:    "Invalid Number of SGL Descriptors",
	DataLengthInvalid:         "Data SGL Length Invalid",
	DescriptorTypeInvalid:     "SGL Descriptor Type Invalid",
	OffsetInvalid:             "SGL Offset Invalid",
	KeepAliveExpired:          "Keep Alive Timeout Expired",
	LBAOutOfRange:             "LBA Out of Range",
	CapacityExceeded:          "Capacity Exceeded",
	AsyncEventLimitExceeded:   "Asynchronous Event Request Limit Exceeded",
	InvalidLogPage:            "Invalid Log Page",
	FeatureNotSaveable:        "Feature Identifier Not Saveable",
	FeatureNotChangeable:      "Feature Not Changeable",
	FeatureNotOfNamespace:     "Feature Not Namespace Specific",
	ConnectIncompatibleFormat: "Connect Incompatible Format",
	ConnectControllerBusy:     "Connect Controller Busy",
	ConnectInvalidParameters:  "Connect Invalid Parameters",
	ConnectRestartDiscovery:   "Connect Restart Discovery",
	ConnectInvalidHost:        "Connect Invalid Host",
	InternalPathError:         "Internal Path Error",
	ANAPersistentLossStatus:   "Asymmetric Access Persistent Loss",
	ANAInaccessibleStatus:     "Asymmetric Access Inaccessible",
	ANATransitionStatus:       "Asymmetric Access Transition",
	WriteFault:                "Write Fault",
	ReadError:                 "Unrecovered Read Error",
	CompareFailure:            "Compare Failure",
}

// Code is the status without its bit DoNotRetry and the bits that mean nothing here.
func (s Status) Code() Status { return s & 0x7ff }

// String is the specification's name of the status.
func (s Status) String() string {
	name, known := statusNames[s.Code()]
	if !known {
		name = fmt.Sprintf("status type %d, code %#02x", s.Code()>>8, uint8(s))
	}
	if s&DoNotRetry != 0 {
		name += " (Do Not Retry)"
	}
	return name
}

// Err is nil for Success. Otherwise it is a StatusError.
func (s Status) Err() error {
	if s.Code() == Success {
		return nil
	}
	return StatusError(s)
}

// StatusError is the error of a command that did not succeed. errors.Is compares codes,
// so that StatusError(LBAOutOfRange) also matches with DoNotRetry.
type StatusError Status

func (e StatusError) Error() string { return "nvme: " + Status(e).String() }

// Is reports whether target is a StatusError of the same code.
func (e StatusError) Is(target error) bool {
	t, ok := target.(StatusError)
	return ok && Status(t).Code() == Status(e).Code()
}
