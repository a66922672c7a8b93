// Package beside measures the storage target beside what a program would use in its place:
// plain RDMA writes of the same size, and a server of the same commands on a net.Conn. All
// is in one process. The ways take turns of the same length, so that what disturbs the
// machine disturbs both, and what counts is the ratio of neighboring turns.
package beside
