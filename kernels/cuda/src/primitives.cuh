// primitives.cuh: the types and single instructions that every kernel is written in.
//
// No header of the toolkit is included, so that NVRTC needs no include path. The same names are defined for g++ by
// the host shim of the tests (GFCODE_HOST_SHIM), and in plain C++ where PTX is not to be had (GFCODE_NO_PTX: ROCm), save
// those of matrix products and asynchronous copies, which there are none of then.
#pragma once

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#ifdef GFCODE_HOST_SHIM
#include "host_shim.h"
#else

#define DEVICE __device__ __forceinline__

extern __shared__ uint4 dynamic_shared_memory[];
DEVICE uint4 *shared_memory() { return dynamic_shared_memory; }

#endif  // GFCODE_HOST_SHIM

#if defined(GFCODE_NO_PTX)

DEVICE u32 xor3(u32 a, u32 b, u32 c) { return a ^ b ^ c; }
DEVICE u32 select_bits(u32 mask, u32 a, u32 b) { return (a & mask) | (b & ~mask); }
DEVICE u32 permute_bytes(u32 a, u32 b, u32 selector) {
  const u64 pair = (u64)b << 32 | a;
  u32 result = 0;
#pragma unroll
  for (int i = 0; i < 4; i++) result |= (u32)(pair >> (8 * (selector >> (4 * i) & 7)) & 255) << (8 * i);
  return result;
}
template <class T> DEVICE T load_once(const u8 *p) { return *(const T *)p; }
template <class T> DEVICE void store_once(u8 *p, T v) { *(T *)p = v; }

#elif !defined(GFCODE_HOST_SHIM)

// The compiler alone makes two instructions of these selects, and sometimes of a three-input XOR too.
DEVICE u32 xor3(u32 a, u32 b, u32 c) {
  u32 r;
  asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
}
// Bits of `a` where the mask is one, of `b` where it is zero.
DEVICE u32 select_bits(u32 mask, u32 a, u32 b) {
  u32 r;
  asm("lop3.b32 %0, %1, %2, %3, 0xCA;" : "=r"(r) : "r"(mask), "r"(a), "r"(b));
  return r;
}
DEVICE u32 permute_bytes(u32 a, u32 b, u32 selector) { return __byte_perm(a, b, selector); }

// Every input byte is read once and every output byte written once: neither belongs in L1, and the output is the
// first to leave L2. Volatile keeps loads where they are placed, ahead of the arithmetic that hides their latency.
template <class T> DEVICE T load_once(const u8 *p);
template <> DEVICE uint4 load_once<uint4>(const u8 *p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}
template <> DEVICE uint2 load_once<uint2>(const u8 *p) {
  uint2 v;
  asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
  return v;
}
template <> DEVICE u32 load_once<u32>(const u8 *p) {
  u32 v;
  asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(p));
  return v;
}
template <class T> DEVICE void store_once(u8 *p, T v);
template <> DEVICE void store_once<uint4>(u8 *p, uint4 v) {
  asm volatile("st.global.cs.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
template <> DEVICE void store_once<uint2>(u8 *p, uint2 v) {
  asm volatile("st.global.cs.v2.u32 [%0], {%1,%2};" ::"l"(p), "r"(v.x), "r"(v.y) : "memory");
}
template <> DEVICE void store_once<u32>(u8 *p, u32 v) {
  asm volatile("st.global.cs.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

// Copies from global to shared memory that pass no register. Before sm_80 an ordinary load and store take their place:
// the caller then uses one stage, and waiting means nothing.
#if __CUDA_ARCH__ >= 800
DEVICE void copy_async(uint4 *to, const u8 *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
DEVICE void copy_async(u32 *to, const u8 *from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int PENDING> DEVICE void wait_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory"); }
#else
DEVICE void copy_async(uint4 *to, const u8 *from) { *to = load_once<uint4>(from); }
DEVICE void copy_async(u32 *to, const u8 *from) { *to = load_once<u32>(from); }
DEVICE void commit_copies() {}
template <int PENDING> DEVICE void wait_copies() {}
#endif

// Matrix products of one warp, D += A · B, operands laid out as the PTX manual's "matrix fragments" say. Not
// volatile: pure functions of their operands, which the compiler may schedule.
DEVICE void mma_u8_k32(u32 *d, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#else  // Turing has a quarter of that shape, with the operands in the same registers
#define MMA_QUARTER(d0, d1, a, b) \
  asm("mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32 {%0,%1},{%2},{%3},{%0,%1};" : "+r"(d0), "+r"(d1) : "r"(a), "r"(b))
  MMA_QUARTER(d[0], d[1], a0, b0);
  MMA_QUARTER(d[2], d[3], a1, b0);
  MMA_QUARTER(d[0], d[1], a2, b1);
  MMA_QUARTER(d[2], d[3], a3, b1);
#undef MMA_QUARTER
#endif
}
#if __CUDA_ARCH__ >= 800
DEVICE void mma_b1_k256(u32 *d, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
DEVICE void mma_b1_k128(u32 *d, u32 a0, u32 a1, u32 b0) {
  asm("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a0), "r"(a1), "r"(b0));
}
#endif

#endif  // GFCODE_NO_PTX
