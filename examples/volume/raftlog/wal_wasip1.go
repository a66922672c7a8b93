package raftlog

import "errors"

// openFiles: the write-ahead log is not for wasip1, where logs are in memory.
func openFiles(string, Config) (File, error) {
	return nil, errors.New("there is no write-ahead log for wasip1: set Config.File")
}
