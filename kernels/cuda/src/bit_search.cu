// bit_search.cu: which blocks have a one. out is a word for each block, [stripe][block], zero before; it becomes 1.
//
// Blocks lie at strides that are multiples of 16. Macro: THREADS. No PTX is needed here, and nothing crosses lanes:
// lanes that find a one store the same word.
#include "memory.cuh"
#include "work.cuh"

extern "C" __global__ void __launch_bounds__(THREADS) bit_search(const Work k) {
  for (Walk walk(k); walk.more(k); walk.next(k)) {
    const i64 offset = (i64)walk.tile * 512 + 16 * (threadIdx.x & 31), left = k.length - offset;
    if (left <= 0) continue;
    for (u32 block = 0; block < k.c; block++) {
      const u8 *p = k.in + (i64)walk.stripe * k.in_stripe + (i64)block * k.in_block + offset;
      u32 ones = 0;
      if (left >= 16) {
        const uint4 v = load_once<uint4>(p);
        ones = v.x | v.y | v.z | v.w;
      } else {
        for (int i = 0; i < left; i++) ones |= p[i];
      }
      if (ones) ((u32 *)k.out)[(u64)walk.stripe * k.c + block] = 1;
    }
  }
}
