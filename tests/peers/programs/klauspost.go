// Serves klauspost/reedsolomon over stdin and stdout, for the tests.
//
// A request is one line and its bytes:
//
//	encode VARIANT K M LENGTH\n          and K·LENGTH bytes of data
//	rebuild VARIANT K M LENGTH LOST\n    and (K+M)·LENGTH bytes of shards; LOST is i,j,...
//	split VARIANT K M LENGTH\n           and LENGTH bytes of a file
//
// The answer is "ok N\n" and N bytes (the parity; the lost shards in the order asked for; all shards), or
// "refused REASON\n".
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/klauspost/reedsolomon"
)

// variants is filled here and by jerasure.go, which needs a release that has WithJerasureMatrix.
var variants = map[string][]reedsolomon.Option{
	"default": nil,
	"cauchy":  {reedsolomon.WithCauchyMatrix()},
	"par1":    {reedsolomon.WithPAR1Matrix()},
}

func read(in io.Reader, count, length int) [][]byte {
	shards := make([][]byte, count)
	for i := range shards {
		shards[i] = make([]byte, length)
		if _, err := io.ReadFull(in, shards[i]); err != nil {
			os.Exit(1)
		}
	}
	return shards
}

func answer(out *bufio.Writer, shards [][]byte, err error) {
	if err != nil {
		fmt.Fprintf(out, "refused %s\n", strings.ReplaceAll(err.Error(), "\n", " "))
		return
	}
	total := 0
	for _, shard := range shards {
		total += len(shard)
	}
	fmt.Fprintf(out, "ok %d\n", total)
	for _, shard := range shards {
		out.Write(shard)
	}
}

func encode(options []reedsolomon.Option, data [][]byte, k, m, length int) ([][]byte, error) {
	code, err := reedsolomon.New(k, m, options...)
	if err != nil {
		return nil, err
	}
	shards := append([][]byte{}, data...)
	for i := 0; i < m; i++ {
		shards = append(shards, make([]byte, length))
	}
	return shards[k:], code.Encode(shards)
}

func rebuild(options []reedsolomon.Option, shards [][]byte, k, m int, lost []int) ([][]byte, error) {
	code, err := reedsolomon.New(k, m, options...)
	if err != nil {
		return nil, err
	}
	for _, i := range lost {
		shards[i] = nil
	}
	if err := code.Reconstruct(shards); err != nil {
		return nil, err
	}
	found := [][]byte{}
	for _, i := range lost {
		found = append(found, shards[i])
	}
	return found, nil
}

func split(options []reedsolomon.Option, file []byte, k, m int) ([][]byte, error) {
	code, err := reedsolomon.New(k, m, options...)
	if err != nil {
		return nil, err
	}
	shards, err := code.Split(file)
	if err != nil {
		return nil, err
	}
	return shards, code.Encode(shards)
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		words := strings.Fields(line)
		k, _ := strconv.Atoi(words[2])
		m, _ := strconv.Atoi(words[3])
		length, _ := strconv.Atoi(words[4])
		options, known := variants[words[1]]
		if words[0] == "split" {
			shards, err := split(options, read(in, 1, length)[0], k, m)
			answer(out, shards, err)
		} else if words[0] == "encode" {
			data := read(in, k, length)
			if !known {
				answer(out, nil, fmt.Errorf("unknown variant %s", words[1]))
			} else {
				parity, err := encode(options, data, k, m, length)
				answer(out, parity, err)
			}
		} else {
			shards := read(in, k+m, length)
			lost := []int{}
			for _, word := range strings.Split(words[5], ",") {
				i, _ := strconv.Atoi(word)
				lost = append(lost, i)
			}
			found, err := rebuild(options, shards, k, m, lost)
			answer(out, found, err)
		}
		out.Flush()
	}
}
