// gocgo.go - Go calls C, which calls Go: with gostack.go.
package main

/*
#include <stdlib.h>

extern int goCompare(int a, int b);

static int cCompare(const void *a, const void *b)
{
	return goCompare(*(const int *)a, *(const int *)b);
}

static void cSort(int *v, int n)
{
	qsort(v, n, sizeof(*v), cCompare);
}
*/
import "C"

var sinkBytes []byte

//export goCompare
func goCompare(a, b C.int) C.int {
	return compare(a, b)
}

// Allocates: it goes from the goroutine's stack to the system stack once more.
//
//go:noinline
func compare(a, b C.int) C.int {
	sinkBytes = make([]byte, 40000)
	return a - b
}

//go:noinline
func sortBurn() {
	var v [16]C.int
	for i := range v {
		v[i] = C.int(i * 7 % 16)
	}
	C.cSort(&v[0], C.int(len(v)))
}

func init() {
	cgoBurn = sortBurn
}
