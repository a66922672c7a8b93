package days

import (
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"godat/hw/iwarp"
)

// ofSystems are bad days of what the system gives, or does not. They change the process, so each is alone.
func init() {
	ofSystems = []day{
		{"the process has no descriptor left", `\d+ peers? turned away: this process has no descriptor left|has \d+ descriptors of \d+ open`, "", 0, func(s *stage) {
			s.iwarp(iwarp.Config{}, iwarp.Config{})
			ln := s.listens(s.ia)
			var was syscall.Rlimit
			require.NoError(s, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was))
			low := was
			low.Cur = 256
			require.NoError(s, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low))
			s.atEnd(func() { require.NoError(s, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was)) })
			var files []*os.File
			var mu sync.Mutex // guards files
			s.work.Go(func() {
				<-s.ctx.Done()
				mu.Lock()
				defer mu.Unlock()
				for _, f := range files {
					_ = f.Close()
				}
				files = nil
			})
			s.always(300*time.Millisecond, func() {
				mu.Lock()
				defer mu.Unlock()
				for s.ctx.Err() == nil {
					f, err := os.Open(os.DevNull)
					if err != nil {
						break
					}
					files = append(files, f)
				}
				last := len(files) - 1
				if last < 0 {
					return
				}
				_ = files[last].Close() // which the peer takes
				files = files[:last]
				if peer, err := net.Dial("tcp", ln.Addr()); err == nil {
					_ = peer.SetReadDeadline(time.Now().Add(time.Second))
					_, _ = peer.Read(make([]byte, 1))
					_ = peer.Close()
				}
			})
		}},
	}
	inTime = append(inTime, day{"the process's memory leaks", `of memory, more and more for`, "", endless, func(s *stage) {
		s.work.Go(func() {
			const size = 4 << 20
			var all [][]byte
			for s.ctx.Err() == nil {
				b, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
				if err != nil {
					s.Error(err)
					break
				}
				all = append(all, b)
				for i := 0; i < size; i += 4096 {
					b[i] = 1
				}
				s.sleep(time.Second)
			}
			for _, b := range all {
				_ = syscall.Munmap(b)
			}
		})
	}})
}
