package raftlog

import "errors"

// openWAL: the write-ahead log is not for wasip1, where logs are in memory.
func openWAL(string, Config) (Medium, error) {
	return nil, errors.New("there is no write-ahead log for wasip1: set Config.Medium")
}
