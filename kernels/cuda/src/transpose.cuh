// transpose.cuh: bits and bytes turned around in registers.
#pragma once
#include "primitives.cuh"

// 4 x 4 bytes: word i holds four positions of column i; word j of the result holds position j of four columns.
DEVICE void transpose_bytes(u32 *x, u32 a, u32 b, u32 c, u32 d) {
  const u32 ab0 = permute_bytes(a, b, 0x5140), ab1 = permute_bytes(a, b, 0x7362);
  const u32 cd0 = permute_bytes(c, d, 0x5140), cd1 = permute_bytes(c, d, 0x7362);
  x[0] = permute_bytes(ab0, cd0, 0x5410);
  x[1] = permute_bytes(ab0, cd0, 0x7632);
  x[2] = permute_bytes(ab1, cd1, 0x5410);
  x[3] = permute_bytes(ab1, cd1, 0x7632);
}

// The same for COUNT < 4 columns; the bytes of the others are rubbish, which a zero of the matrix hides.
template <int COUNT> DEVICE void transpose_bytes_of(u32 *x, const u32 *a) {
  if (COUNT == 4) {
    transpose_bytes(x, a[0], a[1], a[2], a[3]);
  } else if (COUNT == 1) {
#pragma unroll
    for (int j = 0; j < 4; j++) x[j] = a[0] >> (8 * j);
  } else {
    const u32 low = permute_bytes(a[0], a[1], 0x5140), high = permute_bytes(a[0], a[1], 0x7362);
    if (COUNT == 2) {
      x[0] = low;
      x[1] = low >> 16;
      x[2] = high;
      x[3] = high >> 16;
    } else {
      x[0] = permute_bytes(low, a[2], 0x4410);
      x[1] = permute_bytes(low, a[2], 0x5532);
      x[2] = permute_bytes(high, a[2], 0x6610);
      x[3] = permute_bytes(high, a[2], 0x7732);
    }
  }
}

DEVICE void swap_bits(u32 &a, u32 &b, int shift, u32 stays) {
  const u32 x = select_bits(stays, a, b << shift), y = select_bits(stays, a >> shift, b);
  a = x;
  b = y;
}

// 8 x 8 bits in each of four byte positions: bit b of byte p of word i becomes bit i of byte p of word b. Its own
// inverse: it makes bit planes of symbols, and symbols of bit planes.
DEVICE void transpose_bits(u32 *d) {
#pragma unroll
  for (int i = 0; i < 4; i++) swap_bits(d[i], d[i + 4], 4, 0x0f0f0f0fu);
#pragma unroll
  for (int i = 0; i < 8; i++)
    if (!(i & 2)) swap_bits(d[i], d[i + 2], 2, 0x33333333u);
#pragma unroll
  for (int i = 0; i < 8; i += 2) swap_bits(d[i], d[i + 1], 1, 0x55555555u);
}

// Low and high bytes of 16-bit words: words 2i and 2i + 1 become word i of `low` and of `high`, and back.
template <int WORDS> DEVICE void split_bytes(u32 *low, u32 *high, const u32 *raw) {
#pragma unroll
  for (int i = 0; i < WORDS; i++) {
    low[i] = permute_bytes(raw[2 * i], raw[2 * i + 1], 0x6420);
    high[i] = permute_bytes(raw[2 * i], raw[2 * i + 1], 0x7531);
  }
}
template <int WORDS> DEVICE void join_bytes(u32 *raw, const u32 *low, const u32 *high) {
#pragma unroll
  for (int i = 0; i < WORDS; i++) {
    raw[2 * i] = permute_bytes(low[i], high[i], 0x5140);
    raw[2 * i + 1] = permute_bytes(low[i], high[i], 0x7362);
  }
}
