// gostack.go - stacks of Go that are hard to walk: below systemstack and morestack, in signal handlers, in the vdso.
//
// It says "ready", reads from its standard input for how many milliseconds of CPU time it shall burn, and begins when the
// input ends. With GOSTACK_STEPS in the environment it does everything on one thread, over and over, and stops itself before.
// With gocgo.go it also calls C code that calls back.
//
// It imports next to nothing: a PIE needs all packages compiled anew.
package main

import (
	"runtime"
	"syscall"
	"time"
)

var sink int
var sinkTree, keptTree *tree

// Set by gocgo.go.
var cgoBurn func()

type tree struct {
	left, right *tree
	room        [6]int
}

// Garbage: the collector marks and sweeps on the system stack.
//
//go:noinline
func allocBurn(depth int) *tree {
	if depth == 0 {
		return &tree{}
	}
	return &tree{left: allocBurn(depth - 1), right: allocBurn(depth - 1)}
}

// A new goroutine has 2 KiB: the stack is copied again and again.
//
//go:noinline
func growBurn(depth int) int {
	var room [256]byte
	room[depth&255] = byte(depth)
	if depth == 0 {
		return int(room[0])
	}
	return growBurn(depth-1) + int(room[depth&255])
}

//go:noinline
func clockBurn() int {
	n := 0
	for i := 0; i < 1000; i++ {
		n += time.Now().Nanosecond()
	}
	return n
}

// To its own thread, so that each is handled at once. The runtime has a handler, which finds nothing to do.
//
//go:noinline
func signalBurn() {
	syscall.Tgkill(syscall.Getpid(), syscall.Gettid(), syscall.SIGURG)
}

func forever(burn func()) {
	go func() {
		for {
			burn()
		}
	}()
}

func cpuMilliseconds() int64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return (u.Utime.Sec+u.Stime.Sec)*1000 + (u.Utime.Usec+u.Stime.Usec)/1000
}

func readNumber() (n int64) {
	var b [1]byte
	for {
		got, err := syscall.Read(0, b[:])
		if err == syscall.EINTR {
			continue
		}
		if got != 1 {
			return n
		}
		if b[0] >= '0' && b[0] <= '9' {
			n = n*10 + int64(b[0]-'0')
		}
	}
}

//go:noinline
func recovers() (e interface{}) {
	defer func() { e = recover() }()
	panic("step")
}

func steps() {
	runtime.LockOSThread()
	syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
	for {
		sink += time.Now().Nanosecond()
		sinkTree = &tree{left: &tree{}}
		_ = make([]byte, 1<<16+sink&1)
		_ = recovers()
		if cgoBurn != nil {
			cgoBurn()
		}
		runtime.Gosched()
		sink += growBurn(100)
	}
}

func main() {
	if _, found := syscall.Getenv("GOSTACK_STEPS"); found {
		steps()
	}
	syscall.Write(1, []byte("ready\n"))
	until := cpuMilliseconds() + readNumber()
	keptTree = allocBurn(16) // to be marked each time
	forever(func() { sinkTree = allocBurn(12) })
	forever(func() { sinkTree = allocBurn(12) })
	forever(func() {
		done := make(chan int)
		go func() { done <- growBurn(300) }()
		sink += <-done
	})
	forever(func() { sink += clockBurn() })
	forever(signalBurn)
	if cgoBurn != nil {
		forever(cgoBurn)
	}
	for cpuMilliseconds() < until {
		time.Sleep(time.Millisecond)
	}
}
