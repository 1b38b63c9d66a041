#include <cuda_bf16.h>

#include "calibrate/cuda/cuda_kernels.h"

namespace herdsim::cuda {
namespace {

using bf16 = __nv_bfloat16;
constexpr int kThreads = 256;

#ifdef __CUDACC__
// Tests have one of their own, which runs a kernel's threads on the processor.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, Stream stream, Arguments... arguments) {
  kernel<<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(arguments...);
}
#endif

unsigned blocks_for(size_t count) {
  const size_t blocks = (count + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks > (1u << 20) ? (1u << 20) : blocks);
}

// SplitMix64: every value from its own index, so that the order of threads does not matter.
__device__ float noise(uint64_t index, uint64_t seed) {
  uint64_t z = (index + 1) * 0x9E3779B97F4A7C15ull + seed;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  z ^= z >> 31;
  return static_cast<float>(z >> 40) * (1.0f / (1 << 24)) - 0.5f;
}

__global__ void fill_kernel(bf16* values, size_t count, uint64_t seed) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x) {
    values[i] = __float2bfloat16(noise(i, seed));
  }
}
__global__ void fill_float_kernel(float* values, size_t count, uint64_t seed) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x) {
    values[i] = noise(i, seed);
  }
}
// Signs and mantissas at random, exponents about one: random bytes hold the format's NaN.
__global__ void fill_fp8_kernel(uint8_t* values, size_t count, uint64_t seed) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x) {
    const auto bits = static_cast<unsigned>((noise(i, seed) + 0.5f) * 256);
    values[i] = static_cast<uint8_t>((bits & 0x8fu) | 0x30u);
  }
}
__global__ void nothing_kernel() {}

// Two elements a thread and step.
__global__ void scale_kernel(const __nv_bfloat162* x, __nv_bfloat162* y, size_t pairs) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < pairs; i += size_t{gridDim.x} * blockDim.x) {
    const float2 v = __bfloat1622float2(x[i]);
    y[i] = __floats2bfloat162_rn(0.5f * v.x + 0.25f, 0.5f * v.y + 0.25f);
  }
}

// The sum over a block, for every thread.
__device__ float block_sum(float value) {
  __shared__ float partial[kThreads / 32];
  __shared__ float total;
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0) {
    float sum = 0;
    for (int i = 0; i < kThreads / 32; ++i) sum += partial[i];
    total = sum;
  }
  __syncthreads();
  return total;
}
__device__ float block_max(float value) {
  __shared__ float partial[kThreads / 32];
  __shared__ float most;
  for (int offset = 16; offset > 0; offset /= 2) value = fmaxf(value, __shfl_down_sync(0xffffffffu, value, offset));
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0) {
    float best = partial[0];
    for (int i = 1; i < kThreads / 32; ++i) best = fmaxf(best, partial[i]);
    most = best;
  }
  __syncthreads();
  return most;
}

__global__ void rms_norm_kernel(const __nv_bfloat162* x, const __nv_bfloat162* weight, __nv_bfloat162* y, size_t pairs) {
  const __nv_bfloat162* row = x + blockIdx.x * pairs;
  float squares = 0;
  for (size_t i = threadIdx.x; i < pairs; i += blockDim.x) {
    const float2 v = __bfloat1622float2(row[i]);
    squares += v.x * v.x + v.y * v.y;
  }
  const float scale = rsqrtf(block_sum(squares) / (2 * static_cast<float>(pairs)) + 1e-5f);
  for (size_t i = threadIdx.x; i < pairs; i += blockDim.x) {
    const float2 v = __bfloat1622float2(row[i]), w = __bfloat1622float2(weight[i]);
    y[blockIdx.x * pairs + i] = __floats2bfloat162_rn(v.x * scale * w.x, v.y * scale * w.y);
  }
}

__global__ void swiglu_kernel(const __nv_bfloat162* gate, const __nv_bfloat162* up, __nv_bfloat162* y, size_t pairs) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < pairs; i += size_t{gridDim.x} * blockDim.x) {
    const float2 g = __bfloat1622float2(gate[i]), u = __bfloat1622float2(up[i]);
    y[i] = __floats2bfloat162_rn(g.x / (1 + __expf(-g.x)) * u.x, g.y / (1 + __expf(-g.y)) * u.y);
  }
}

// Angles by the fast units: by the exact functions it would compute for longer than it waits for memory.
__global__ void rope_kernel(const bf16* x, bf16* y, size_t width) {
  constexpr float kLog2Of10000 = 13.287712f;
  const size_t half = width / 2, row = blockIdx.x;
  const float slope = -2.0f * kLog2Of10000 / static_cast<float>(width);
  for (size_t i = threadIdx.x; i < half; i += blockDim.x) {
    const float angle = static_cast<float>(row % 4096) * exp2f(slope * static_cast<float>(i));
    float sine, cosine;
    __sincosf(angle, &sine, &cosine);
    const float a = __bfloat162float(x[row * width + i]), b = __bfloat162float(x[row * width + half + i]);
    y[row * width + i] = __float2bfloat16(a * cosine - b * sine);
    y[row * width + half + i] = __float2bfloat16(a * sine + b * cosine);
  }
}

__global__ void cross_entropy_kernel(__nv_bfloat162* logits, const int32_t* targets, float* loss, size_t rows,
                                     size_t pairs) {
  __nv_bfloat162* row = logits + blockIdx.x * pairs;
  float most = -INFINITY;
  for (size_t i = threadIdx.x; i < pairs; i += blockDim.x) {
    const float2 v = __bfloat1622float2(row[i]);
    most = fmaxf(most, fmaxf(v.x, v.y));
  }
  most = block_max(most);
  float sum = 0;
  for (size_t i = threadIdx.x; i < pairs; i += blockDim.x) {
    const float2 v = __bfloat1622float2(row[i]);
    sum += __expf(v.x - most) + __expf(v.y - most);
  }
  sum = block_sum(sum);
  const auto target = static_cast<size_t>(targets[blockIdx.x]);
  if (threadIdx.x == 0) {
    const float2 v = __bfloat1622float2(row[target / 2]);
    loss[blockIdx.x] = logf(sum) + most - (target % 2 == 0 ? v.x : v.y);
  }
  __syncthreads();  // the loss reads the logit that is overwritten below
  const float share = 1 / sum, mean = 1 / static_cast<float>(rows);
  for (size_t i = threadIdx.x; i < pairs; i += blockDim.x) {
    const float2 v = __bfloat1622float2(row[i]);
    const float p = __expf(v.x - most) * share - (2 * i == target ? 1.0f : 0.0f);
    const float q = __expf(v.y - most) * share - (2 * i + 1 == target ? 1.0f : 0.0f);
    row[i] = __floats2bfloat162_rn(p * mean, q * mean);
  }
}

__global__ void adam_kernel(bf16* parameter, const bf16* gradient, float* master, float* m, float* v, size_t count) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x) {
    const float g = __bfloat162float(gradient[i]);
    const float first = m[i] = 0.9f * m[i] + 0.1f * g;
    const float second = v[i] = 0.95f * v[i] + 0.05f * g * g;
    const float p = master[i] -= 1e-3f * first / (sqrtf(second) + 1e-8f);
    parameter[i] = __float2bfloat16(p);
  }
}

}  // namespace

void fill_random(void* values, size_t count, uint64_t seed, Stream stream) {
  launch(fill_kernel, blocks_for(count), kThreads, stream, static_cast<bf16*>(values), count, seed);
}
void fill_random_floats(float* values, size_t count, uint64_t seed, Stream stream) {
  launch(fill_float_kernel, blocks_for(count), kThreads, stream, values, count, seed);
}
void fill_random_fp8(void* values, size_t count, uint64_t seed, Stream stream) {
  launch(fill_fp8_kernel, blocks_for(count), kThreads, stream, static_cast<uint8_t*>(values), count, seed);
}
void launch_nothing(Stream stream) { launch(nothing_kernel, 1, 1, stream); }
void scale(const void* x, void* y, size_t count, Stream stream) {
  launch(scale_kernel, blocks_for(count / 2), kThreads, stream, static_cast<const __nv_bfloat162*>(x),
         static_cast<__nv_bfloat162*>(y), count / 2);
}
void rms_norm(const void* x, const void* weight, void* y, size_t rows, size_t width, Stream stream) {
  launch(rms_norm_kernel, static_cast<unsigned>(rows), kThreads, stream, static_cast<const __nv_bfloat162*>(x),
         static_cast<const __nv_bfloat162*>(weight), static_cast<__nv_bfloat162*>(y), width / 2);
}
void swiglu(const void* gate, const void* up, void* y, size_t count, Stream stream) {
  launch(swiglu_kernel, blocks_for(count / 2), kThreads, stream, static_cast<const __nv_bfloat162*>(gate),
         static_cast<const __nv_bfloat162*>(up), static_cast<__nv_bfloat162*>(y), count / 2);
}
void rope(const void* x, void* y, size_t rows, size_t width, Stream stream) {
  launch(rope_kernel, static_cast<unsigned>(rows), kThreads, stream, static_cast<const bf16*>(x), static_cast<bf16*>(y),
         width);
}
void cross_entropy(void* logits, const int32_t* targets, float* loss, size_t rows, size_t vocabulary, Stream stream) {
  launch(cross_entropy_kernel, static_cast<unsigned>(rows), kThreads, stream, static_cast<__nv_bfloat162*>(logits), targets,
         loss, rows, vocabulary / 2);
}
void fused_adam(void* parameter, const void* gradient, float* master, float* m, float* v, size_t count, Stream stream) {
  launch(adam_kernel, blocks_for(count), kThreads, stream, static_cast<bf16*>(parameter),
         static_cast<const bf16*>(gradient), master, m, v, count);
}

}  // namespace herdsim::cuda
