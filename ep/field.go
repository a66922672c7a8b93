package ep

// Field selects the fields that Query fills: DAT_EP_PARAM_MASK, with DAT 2.0's
// numbers.
type Field uint32

// The fields of Param and of its Attr.
const (
	FieldIA              Field = 0x1        // IA
	FieldState           Field = 0x2        // State
	FieldComm            Field = 0x4        // Comm
	FieldLocalAddr       Field = 0x8        // LocalAddr
	FieldLocalQual       Field = 0x10       // LocalQual
	FieldRemoteAddr      Field = 0x20       // RemoteAddr
	FieldRemoteQual      Field = 0x40       // RemoteQual
	FieldPZ              Field = 0x80       // PZ
	FieldRecvEVD         Field = 0x100      // Recv
	FieldRequestEVD      Field = 0x200      // Request
	FieldConnectEVD      Field = 0x400      // Conn
	FieldSRQ             Field = 0x800      // SRQ
	FieldServiceType     Field = 0x1000     // Attr.ServiceType
	FieldMaxMessageSize  Field = 0x2000     // Attr.MaxMessageSize
	FieldMaxRDMASize     Field = 0x4000     // Attr.MaxRDMASize
	FieldQoS             Field = 0x8000     // Attr.QoS
	FieldRecvFlags       Field = 0x10000    // Attr.RecvFlags
	FieldRequestFlags    Field = 0x20000    // Attr.RequestFlags
	FieldMaxRecvDTOs     Field = 0x40000    // Attr.MaxRecvDTOs
	FieldMaxRequestDTOs  Field = 0x80000    // Attr.MaxRequestDTOs
	FieldMaxRecvIOV      Field = 0x100000   // Attr.MaxRecvIOV
	FieldMaxRequestIOV   Field = 0x200000   // Attr.MaxRequestIOV
	FieldMaxReadIn       Field = 0x400000   // Attr.MaxReadIn
	FieldMaxReadOut      Field = 0x800000   // Attr.MaxReadOut
	FieldSoftHighWater   Field = 0x1000000  // Attr.SoftHighWatermark
	FieldMaxReadIOV      Field = 0x2000000  // Attr.MaxReadIOV
	FieldMaxWriteIOV     Field = 0x4000000  // Attr.MaxWriteIOV
	FieldTransportValues Field = 0x8000000  // ReceiverNotReady
	FieldTransportAttr   Field = 0x10000000 // ReceiverNotReady, too
	FieldProviderValues  Field = 0x20000000 // DrainTimeout
	FieldProviderAttr    Field = 0x40000000 // DrainTimeout, too

	FieldAttr Field = 0x7FFFF000 // all of Attr
	FieldAll  Field = 0x7FFFFFFF
)
