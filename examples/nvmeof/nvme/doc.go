// Package nvme has the words of NVMe and of NVMe over Fabrics on RDMA, as bytes on the
// wire: commands, completions, data descriptors, properties, identify and log pages,
// status codes, and the private data of connections. Names and numbers are those of the
// NVM Express Base Specification 1.4 and NVMe over Fabrics 1.1. All integers are
// little-endian.
//
// The package moves nothing and keeps nothing: encoders fill or append to a slice,
// decoders check the length first and return values. A field that is reserved is
// encoded as zero and ignored when it is decoded, as the specification asks.
package nvme
