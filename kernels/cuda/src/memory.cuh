// memory.cuh: loads and stores at any address and of any length, for the edges of blocks and for unaligned ones.
#pragma once
#include "primitives.cuh"

// 16 bytes at p, of which [0, n) exist. Only aligned words that hold an existing byte are touched, so that a block at
// the very end of an allocation is never overrun. Bytes that do not exist are rubbish.
DEVICE uint4 load_edge(const u8 *p, i64 n) {
  const u32 skew = (u32)(u64)p & 3, shift = 8 * skew;
  const u32 *words = (const u32 *)(p - skew);
  u32 w[5];
#pragma unroll
  for (int i = 0; i < 5; i++) {
    const i64 first = 4 * i - (i64)skew;  // the byte of p at which word i starts
    w[i] = first < n && first < 16 ? __ldg(words + i) : 0;
  }
  return make_uint4(__funnelshift_r(w[0], w[1], shift), __funnelshift_r(w[1], w[2], shift),
                    __funnelshift_r(w[2], w[3], shift), __funnelshift_r(w[3], w[4], shift));
}

// The first n of 16 bytes to p; nothing else is written.
DEVICE void store_edge(u8 *p, i64 n, uint4 v) {
  const u32 w[4] = {v.x, v.y, v.z, v.w};
  if (((u64)p & 3) == 0) {
#pragma unroll
    for (int i = 0; i < 4; i++)
      if (4 * i + 4 <= n) *(u32 *)(p + 4 * i) = w[i];
      else
        for (int j = 0; j < 4; j++)
          if (4 * i + j < n) p[4 * i + j] = (u8)(w[i] >> (8 * j));
  } else {
#pragma unroll
    for (int i = 0; i < 16; i++)
      if (i < n) p[i] = (u8)(w[i >> 2] >> (8 * (i & 3)));
  }
}

// A word of four existing bytes at any address.
DEVICE u32 load_word(const u8 *p) {
  const u32 skew = (u32)(u64)p & 3;
  const u32 *words = (const u32 *)(p - skew);
  const u32 low = __ldg(words), high = skew ? __ldg(words + 1) : 0;
  return __funnelshift_r(low, high, 8 * skew);
}

DEVICE void store_word(u8 *p, u32 v) {
  if (((u64)p & 3) == 0) {
    *(u32 *)p = v;
  } else {
#pragma unroll
    for (int i = 0; i < 4; i++) p[i] = (u8)(v >> (8 * i));
  }
}
