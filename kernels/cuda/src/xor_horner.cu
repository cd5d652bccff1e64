// xor_horner.cu: outputs whose matrix rows are geometric, row i being 1, q_i, q_i^2, ...; the number of inputs is data.
//
// Horner's rule from the last input to the first: sum_i = sum_i · q_i + input_j. Multiplying by the constant q_i is a
// small bit matrix in registers, so the loop is rolled and one kernel serves every k. program.cuh is generated:
// ROWS, and horner_step(sums, input) for one input. Macros as for xor_program.cu.
#include "planes.cuh"
#include "program.cuh"

DEVICE void take_first(Word *sums, const Word *input) {
#pragma unroll
  for (int i = 0; i < ROWS * PLANES; i++) sums[i] = input[i % PLANES];
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) xor_horner(const Work k) {
  for (Walk walk(k); walk.more(k); walk.next(k)) {
    const Lane lane(k, walk);
    if (!lane.live) continue;
    Word sums[ROWS * PLANES], even[PLANES], odd[PLANES];
    const int last = (int)k.c - 1;
    // Each block is loaded while the one before it is worked on; two buffers by name, so that both stay in registers.
    lane.load(even, last);
    if (last >= 1) lane.load(odd, last - 1);
    take_first(sums, even);
    for (int j = last - 1; j >= 0; j -= 2) {
      if (j >= 1) lane.load(even, j - 1);
      horner_step(sums, odd);
      if (j >= 1) {
        if (j >= 2) lane.load(odd, j - 2);
        horner_step(sums, even);
      }
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) lane.store(sums + i * PLANES, i);
  }
}
