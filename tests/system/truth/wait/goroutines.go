// goroutines.go - goroutines that wait in known ways, and measure it themselves.
//
// After "ready" it reads lines: "load" lets goroutines pass each other values until the next line, "wait" makes thousands
// of them wait for a channel, a mutex, a sleep, a select and the network. Then it prints, for each way, the function, the
// reason as the runtime calls it, how long all of them waited together, in ms, and how often; and ends with its input.
// With the argument "load" it does that until it is killed; with "pass" two goroutines pass 5,000 values, and it ends.
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	receivers = 2000
	few       = 20
	rounds    = 5
	pause     = 60 * time.Millisecond
)

// The time that one way of waiting took, and how often.
type total struct{ ns, count int64 }

func (t *total) since(begin time.Time) {
	atomic.AddInt64(&t.ns, int64(time.Since(begin)))
	atomic.AddInt64(&t.count, 1)
}

//go:noinline
func waitReceive(c chan int, t *total) {
	begin := time.Now()
	<-c
	t.since(begin)
}

//go:noinline
func waitSleep(t *total) {
	begin := time.Now()
	time.Sleep(pause)
	t.since(begin)
}

//go:noinline
func waitMutex(mutex *sync.Mutex, t *total) {
	begin := time.Now()
	mutex.Lock()
	t.since(begin)
}

//go:noinline
func waitSelect(a, b chan int, t *total) {
	begin := time.Now()
	select {
	case <-a:
	case <-b:
	}
	t.since(begin)
}

//go:noinline
func waitNetwork(c net.Conn, t *total) {
	var one [1]byte
	begin := time.Now()
	c.Read(one[:])
	t.since(begin)
}

//go:noinline
func feed(all []chan int) {
	for i := 0; i < rounds; i++ {
		time.Sleep(pause)
		for _, c := range all {
			c <- i
		}
	}
}

// Runs a function in n goroutines, some times each.
func spread(n int, done *sync.WaitGroup, body func(i int)) {
	for i := 0; i < n; i++ {
		done.Add(1)
		go func(i int) {
			defer done.Done()
			for k := 0; k < rounds; k++ {
				body(i)
			}
		}(i)
	}
}

func connect() (net.Conn, net.Conn) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer listener.Close()
	near, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		panic(err)
	}
	far, err := listener.Accept()
	if err != nil {
		panic(err)
	}
	return near, far
}

func waitAll() {
	var receive, sleep, lock, choose, network total
	var done sync.WaitGroup
	var mutex sync.Mutex
	var channels, others []chan int
	var near, far []net.Conn
	never := make(chan int)

	for i := 0; i < receivers; i++ {
		channels = append(channels, make(chan int))
	}
	for i := 0; i < few; i++ {
		others = append(others, make(chan int))
		a, b := connect()
		near, far = append(near, a), append(far, b)
	}
	spread(receivers, &done, func(i int) { waitReceive(channels[i], &receive) })
	go feed(channels[:receivers/2])
	go feed(channels[receivers/2:])
	spread(500, &done, func(int) { waitSleep(&sleep) })
	spread(few, &done, func(int) {
		waitMutex(&mutex, &lock)
		time.Sleep(pause / 20)
		mutex.Unlock()
	})
	spread(few, &done, func(i int) { waitSelect(never, others[i], &choose) })
	go feed(others)
	spread(few, &done, func(i int) { waitNetwork(far[i], &network) })
	go func() {
		for i := 0; i < rounds; i++ {
			time.Sleep(pause)
			for _, c := range near {
				c.Write([]byte{1})
			}
		}
	}()
	done.Wait()
	print := func(function, reason string, t total) {
		fmt.Printf("%s|%s|%.3f|%d\n", function, reason, float64(t.ns)/1e6, t.count)
	}
	print("waitReceive", "chan receive", receive)
	print("waitSleep", "sleep", sleep)
	print("waitMutex", "semacquire|sync.Mutex.Lock", lock)
	print("waitSelect", "select", choose)
	print("waitNetwork", "IO wait", network)
	fmt.Println("waited")
}

func pass() {
	c, d := make(chan int), make(chan int)
	go func() {
		for v := range c {
			d <- v
		}
	}()
	for i := 0; i < 5000; i++ {
		c <- i
		<-d
	}
}

// Two goroutines that pass a value to and fro, with so much work between that probes on it are not passed too often.
func load(end chan bool) {
	c, d := make(chan int), make(chan int)
	go func() {
		for v := range c {
			d <- v + 1
		}
		close(d)
	}()
	sum, since := 0, time.Now()
	for n := 0; ; n++ {
		select {
		case <-end:
			close(c)
			fmt.Println("loaded", sum == n, "passes", n, "seconds", time.Since(since).Seconds())
			end <- true
			return
		default:
		}
		for begin := time.Now(); time.Since(begin) < 20*time.Microsecond; {
		}
		c <- sum
		sum = <-d
	}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	end := make(chan bool)
	loaded := false
	fmt.Println("ready")
	if len(os.Args) > 1 && os.Args[1] == "load" {
		load(end)
	}
	if len(os.Args) > 1 && os.Args[1] == "pass" {
		pass()
		return
	}
	for lines.Scan() {
		if loaded {
			end <- true
			<-end
			loaded = false
		}
		switch lines.Text() {
		case "load":
			go load(end)
			loaded = true
			fmt.Println("loading")
		case "wait":
			waitAll()
		}
	}
}
