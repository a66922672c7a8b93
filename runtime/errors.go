package runtime

import "godat/hw"

// Error is a DAT return code with what it was about; see [hw.Error].
type Error = hw.Error

// ErrorType is the type of a return code.
type ErrorType = hw.Type

// ErrorSubtype refines it. Their constants are in package hw.
type ErrorSubtype = hw.Subtype

// Strerror says in words what a DAT_RETURN of the C library means; see
// [hw.Strerror].
func Strerror(code uint32) (major, minor string) { return hw.Strerror(code) }

// One error per return type, for errors.Is.
var (
	ErrAbort                     = hw.ErrAbort
	ErrConnQualInUse             = hw.ErrConnQualInUse
	ErrInsufficientResources     = hw.ErrInsufficientResources
	ErrInternal                  = hw.ErrInternal
	ErrInvalidHandle             = hw.ErrInvalidHandle
	ErrInvalidParameter          = hw.ErrInvalidParameter
	ErrInvalidState              = hw.ErrInvalidState
	ErrLength                    = hw.ErrLength
	ErrModelNotSupported         = hw.ErrModelNotSupported
	ErrProviderNotFound          = hw.ErrProviderNotFound
	ErrPrivileges                = hw.ErrPrivileges
	ErrProtection                = hw.ErrProtection
	ErrQueueEmpty                = hw.ErrQueueEmpty
	ErrQueueFull                 = hw.ErrQueueFull
	ErrTimeout                   = hw.ErrTimeout
	ErrProviderAlreadyRegistered = hw.ErrProviderAlreadyRegistered
	ErrProviderInUse             = hw.ErrProviderInUse
	ErrInvalidAddress            = hw.ErrInvalidAddress
	ErrInterrupted               = hw.ErrInterrupted
	ErrConnQualUnavailable       = hw.ErrConnQualUnavailable
	ErrReservedLMR               = hw.ErrReservedLMR
	ErrPortInUse                 = hw.ErrPortInUse
	ErrCommNotSupported          = hw.ErrCommNotSupported
	ErrNotImplemented            = hw.ErrNotImplemented
)

func closedIA(op string) error {
	return hw.Errorf(op, hw.InvalidHandle, hw.HandleIA, "the interface adapter is nil or closed")
}

func nilContext(op string) error {
	return hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "a nil context")
}

func closedListener(op string) error {
	return hw.Errorf(op, hw.InvalidHandle, hw.HandlePSP, "the listener is nil or closed")
}

func closedConn(op string) error {
	return hw.Errorf(op, hw.InvalidHandle, hw.HandleEP, "the connection is nil or closed")
}
