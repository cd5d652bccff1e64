package main

import "github.com/klauspost/reedsolomon"

func init() {
	variants["jerasure"] = []reedsolomon.Option{reedsolomon.WithJerasureMatrix()}
}
