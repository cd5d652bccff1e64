"""Declarations that every module of kernels starts with."""

from gfcode.kernels.simd.target import Target

__all__ = ["declarations"]


def declarations(target: Target) -> str:
    """Return the LLVM text of the intrinsics and metadata that kernels for `target` use."""
    vector = target.byte_vector
    lines = ["declare void @llvm.prefetch.p0(ptr, i32, i32, i32)", "!0 = !{i32 1}"]
    if target.x86:
        lines.append("declare void @llvm.x86.sse.sfence()")
    width = target.vector_bytes
    if target.product == "affine":
        lines.append(f"declare {vector} @llvm.x86.vgf2p8affineqb.{8 * width}({vector}, {vector}, i8)")
    elif target.product == "shuffle86":
        name = {16: "ssse3.pshuf.b.128", 32: "avx2.pshuf.b", 64: "avx512.pshuf.b.512"}[width]
        lines.append(f"declare {vector} @llvm.x86.{name}({vector}, {vector})")
    elif target.product == "sve":
        scalable = "<vscale x 16 x i8>"
        lines.append(f"declare {scalable} @llvm.vector.insert.nxv16i8.v{width}i8({scalable}, {vector}, i64)")
        lines.append(f"declare {vector} @llvm.vector.extract.v{width}i8.nxv16i8({scalable}, i64)")
        lines.append(f"declare {scalable} @llvm.aarch64.sve.tbl.nxv16i8({scalable}, {scalable})")
    else:
        lines.append(f"declare {vector} @llvm.aarch64.neon.tbl1.v16i8({vector}, {vector})")
    return "\n".join(lines)
