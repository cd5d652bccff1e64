// Encodes with klauspost/reedsolomon, for bench/klauspost.py to time.
//
// Arguments: K M LENGTH. Prints the sum of the parity bytes of random data first, so that the work is real, then, for
// each number N read as a line, encodes N times and prints "done".
package main

import (
	"bufio"
	"fmt"
	"math/rand"
	"os"
	"strconv"

	"github.com/klauspost/reedsolomon"
)

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func main() {
	k, m, length := number(os.Args[1]), number(os.Args[2]), number(os.Args[3])
	code, err := reedsolomon.New(k, m, reedsolomon.WithAutoGoroutines(length))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shards := make([][]byte, k+m)
	for i := range shards {
		shards[i] = make([]byte, length)
		if i < k {
			rand.Read(shards[i])
		}
	}
	encode := func() {
		if err := code.Encode(shards); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	encode()
	sum := 0
	for _, shard := range shards[k:] {
		for _, value := range shard {
			sum += int(value)
		}
	}
	fmt.Println(sum)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		for i := number(lines.Text()); i > 0; i-- {
			encode()
		}
		fmt.Println("done")
	}
}
