// host_entry.cpp: the kernel SHIM_KERNEL of the source SHIM_SOURCE as a C function, and one bare MMA for its layout.
#include SHIM_SOURCE

static void run(const void *work) { SHIM_KERNEL(*(const Work *)work); }

extern "C" int shim_launch(const void *work, unsigned blocks, unsigned threads, unsigned shared_bytes) {
  return shim::launch(blocks, threads, shared_bytes, run, work);
}
extern "C" unsigned shim_work_bytes() { return sizeof(Work); }
extern "C" unsigned long long shim_products() { return shim::launched_products(); }

struct Probe { int op; const u32 (*registers)[10]; u32 (*d)[4]; };  // of every lane: a0..a3, b0, b1, c0..c3
extern "C" int shim_probe(const Probe *probe) {
  return shim::launch(1, 32, 0, [](const void *p) {
    const Probe &q = *(const Probe *)p;
    const u32 *r = q.registers[threadIdx.x];
    u32 d[4] = {r[6], r[7], r[8], r[9]};
    if (q.op == 0) mma_u8_k32(d, r[0], r[1], r[2], r[3], r[4], r[5]);
    else if (q.op == 1) mma_b1_k128(d, r[0], r[1], r[4]);
    else mma_b1_k256(d, r[0], r[1], r[2], r[3], r[4], r[5]);
    memcpy(q.d[threadIdx.x], d, 16);
  }, probe);
}
