// pprofdemo writes Go's own profiles of itself: cpu, heap, allocs, block, mutex and goroutine, each as NAME.pprof.
package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"
)

var kept [][]byte
var written int

//go:noinline
func burn() {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(make([]byte, 1<<20))
	w.Close()
	written += b.Len()
}

//go:noinline
func hold(n int) {
	for i := 0; i < n; i++ {
		kept = append(kept, make([]byte, 64<<10))
	}
}

// Four goroutines take turns with one lock.
func contend() {
	var lock sync.Mutex
	var all sync.WaitGroup
	for i := 0; i < 4; i++ {
		all.Add(1)
		go func() {
			for k := 0; k < 5; k++ {
				lock.Lock()
				time.Sleep(time.Millisecond)
				lock.Unlock()
			}
			all.Done()
		}()
	}
	all.Wait()
}

func save(name string) {
	f, err := os.Create(name + ".pprof")
	if err != nil {
		panic(err)
	}
	pprof.Lookup(name).WriteTo(f, 0)
	f.Close()
}

func main() {
	runtime.MemProfileRate = 4096
	runtime.SetBlockProfileRate(1)
	runtime.SetMutexProfileFraction(1)
	f, err := os.Create("cpu.pprof")
	if err != nil {
		panic(err)
	}
	pprof.StartCPUProfile(f)
	begin := time.Now()
	for time.Since(begin) < 400*time.Millisecond {
		burn()
	}
	pprof.StopCPUProfile()
	f.Close()
	hold(200)
	contend()
	runtime.GC()
	for _, name := range []string{"heap", "allocs", "block", "mutex", "goroutine"} {
		save(name)
	}
}
