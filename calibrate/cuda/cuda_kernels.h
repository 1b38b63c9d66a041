// Launchers of the own kernels, callable from C++. Sizes count elements; a row is one token, of an
// even width.
#pragma once

#include <cstddef>
#include <cstdint>

namespace herdsim::cuda {

using Stream = void*;  // cudaStream_t

// Element types are __nv_bfloat16 where the pointer is void*.
void fill_random(void* values, size_t count, uint64_t seed, Stream stream);
void fill_random_floats(float* values, size_t count, uint64_t seed, Stream stream);

// E4M3 numbers of size 1/2 to 2, of either sign.
void fill_random_fp8(void* values, size_t count, uint64_t seed, Stream stream);

void launch_nothing(Stream stream);
// y = a x + b.
void scale(const void* x, void* y, size_t count, Stream stream);
// y = x * w / rms(x), rows of `width`.
void rms_norm(const void* x, const void* weight, void* y, size_t rows, size_t width, Stream stream);
// y = silu(gate) * up.
void swiglu(const void* gate, const void* up, void* y, size_t count, Stream stream);
// Pairs (i, i + width / 2) of each row turned by row * 10000^(-2i / width).
void rope(const void* x, void* y, size_t rows, size_t width, Stream stream);
// Gradient of the mean negative log likelihood of `targets`, over logits, in place of them; loss by
// row.
void cross_entropy(void* logits, const int32_t* targets, float* loss, size_t rows,
                   size_t vocabulary, Stream stream);
// Copies over and over, one block a multiprocessor, until *stop is not 0; each block sets its
// element of started to 1. Both are in host memory that the device reads and writes.
void copy_until(const void* from, void* to, size_t bytes, int blocks, const int* stop, int* started,
                Stream stream);
// Keeps a stream until *go is not 0, or for about a second. In host memory that the device reads.
void hold_until(const int* go, Stream stream);
// fp32 master copy and moments, bf16 gradient and parameter.
void fused_adam(void* parameter, const void* gradient, float* master, float* m, float* v,
                size_t count, Stream stream);

}  // namespace herdsim::cuda
