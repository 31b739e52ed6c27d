// goprofile.go - lets goshares.go write Go's own CPU profile of its run to the file that GOPROFILE names.
package main

import (
	"os"
	"runtime/pprof"
)

func init() {
	path := os.Getenv("GOPROFILE")
	if path == "" {
		return
	}
	startProfile = func() func() {
		file, err := os.Create(path)
		if err == nil {
			err = pprof.StartCPUProfile(file)
		}
		if err != nil {
			panic(err)
		}
		return pprof.StopCPUProfile
	}
}
