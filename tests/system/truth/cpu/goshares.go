// goshares.go - burns 60 % of its CPU time in an inlined function, 30 % in a method and 10 % below 40 levels of recursion,
// and prints what the thread's own CPU clock says of each.
//
// It says "ready", reads from its standard input for how many milliseconds of CPU time it shall burn, and begins when the
// input ends. With goprofile.go, Go's own profiler can be asked for its account of the same run.
//
// It imports next to nothing: a PIE needs all packages compiled anew.
package main

import (
	"runtime"
	"syscall"
	"unsafe"
)

const levels = 40

var sink uint64

// Set by goprofile.go: begins a profile and returns what ends it.
var startProfile func() func()

type burner struct{ steps uint64 }

// The compiler inlines it; two lines of it are hot.
func inlinedBurn(x, steps uint64) uint64 {
	for i := uint64(0); i < steps; i++ { // inlined line
		x ^= x << 13 // inlined line
		x ^= x >> 7  // inlined line
	}
	return x
}

//go:noinline
func aroundInlined(steps uint64) uint64 {
	return inlinedBurn(steps|1, steps) + 1 // call site
}

//go:noinline
func (b *burner) methodBurn() uint64 {
	x := b.steps | 1
	for i := uint64(0); i < b.steps; i++ {
		x ^= x << 13
		x ^= x >> 9
	}
	return x
}

//go:noinline
func bottomBurn(steps uint64) uint64 {
	x := steps | 1
	for i := uint64(0); i < steps; i++ {
		x ^= x << 13
		x ^= x >> 11
	}
	return x
}

// A frame of a kilobyte: the stack grows on the way down, once.
//
//go:noinline
func recurse(level int, steps uint64) uint64 {
	var room [128]uint64
	if level == 1 {
		return bottomBurn(steps) + 1
	}
	room[level] = recurse(level-1, steps)
	return room[level] + uint64(len(room))
}

func cpuNs() int64 {
	const threadClock = 3
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, threadClock, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

func burnPart(part int, steps uint64) {
	switch part {
	case 0:
		sink += aroundInlined(steps)
	case 1:
		sink += (&burner{steps}).methodBurn()
	default:
		sink += recurse(levels, steps)
	}
}

func stepsPerMs() uint64 {
	const steps = 20000000
	began := cpuNs()
	sink += bottomBurn(steps)
	return steps * 1000000 / uint64(cpuNs()-began)
}

// One part takes 1 to 6 ms, between two looks at the clock.
func burn(ms int64, perMs uint64) (burnt [3]int64) {
	began := cpuNs()
	for cpuNs()-began < ms*1000000 {
		for part, share := range [3]uint64{6, 3, 1} {
			start := cpuNs()
			burnPart(part, share*perMs)
			burnt[part] += cpuNs() - start
		}
	}
	return burnt
}

func say(text string) {
	syscall.Write(1, []byte(text))
}

// "60.04", of less than 100.
func percent(hundredths int64) string {
	text := []byte("00.00")
	for i := len(text) - 1; i >= 0; i-- {
		if text[i] != '.' {
			text[i] = byte('0' + hundredths%10)
			hundredths /= 10
		}
	}
	return string(text)
}

func readNumber() (number int64) {
	var piece [16]byte
	for {
		n, err := syscall.Read(0, piece[:])
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 {
			return number
		}
		for _, c := range piece[:n] {
			if c >= '0' && c <= '9' {
				number = number*10 + int64(c-'0')
			}
		}
	}
}

func main() {
	runtime.LockOSThread()
	perMs := stepsPerMs()
	say("ready\n")
	ms := readNumber()
	if startProfile != nil {
		defer startProfile()()
	}
	burnt := burn(ms, perMs)
	sum := burnt[0] + burnt[1] + burnt[2]
	for i, name := range [3]string{"inlinedBurn", "(*burner).methodBurn", "bottomBurn"} {
		say("main." + name + " " + percent(burnt[i]*10000/sum) + "\n")
	}
}
