// xor_program.cu: outputs = bit matrix · inputs for a matrix known when the kernel is built, as a straight-line program.
//
// program.cuh is generated (xor_text.py): apply_program(lane) loads the planes of each input block once, ahead of their
// use, XORs them in registers and stores each output block once. Macros: PACKETS, PACKET_BYTES, PLANES (bit planes of a
// block that a lane holds), VECTOR, UNALIGNED, TABLE, THREADS, MIN_BLOCKS.
#include "planes.cuh"
#include "program.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) xor_program(const Work k) {
  for (Walk walk(k); walk.more(k); walk.next(k)) {
    const Lane lane(k, walk);
    if (lane.live) apply_program(lane);
  }
}
