#include "calibrate/cuda/kernel_references.h"

#include <cuda_bf16.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "calibrate/cuda/cuda_check.h"
#include "calibrate/cuda/cuda_kernels.h"

namespace herdsim::cuda {
namespace {

constexpr size_t kRows = 6, kWidth = 512, kCount = kRows * kWidth;

std::vector<double> values_of(const DeviceMemory& memory, size_t count) {
  std::vector<__nv_bfloat16> raw(count);
  check(
      cudaMemcpy(raw.data(), memory.get(), count * sizeof(__nv_bfloat16), cudaMemcpyDeviceToHost));
  std::vector<double> values;
  for (const __nv_bfloat16 v : raw) values.push_back(__bfloat162float(v));
  return values;
}
std::vector<double> floats_of(const DeviceMemory& memory, size_t count) {
  std::vector<float> raw(count);
  check(cudaMemcpy(raw.data(), memory.get(), count * sizeof(float), cudaMemcpyDeviceToHost));
  return {raw.begin(), raw.end()};
}

// bf16 keeps eight bits; a few roundings follow each other.
void expect_near(const std::vector<double>& got, const std::vector<double>& wanted,
                 const char* kernel) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!(std::abs(got[i] - wanted[i]) <= 0.02 * std::abs(wanted[i]) + 0.004)) {
      throw std::runtime_error(std::string(kernel) + " computes something else than its reference");
    }
  }
}

struct Inputs {
  DeviceMemory a{kCount * 2}, b{kCount * 2}, out{kCount * 2};
  std::vector<double> x, y;
  Inputs() {
    fill_random(a.get(), kCount, 1, nullptr);
    fill_random(b.get(), kCount, 2, nullptr);
    x = values_of(a, kCount);
    y = values_of(b, kCount);
  }
};

void check_elementwise() {
  const Inputs in;
  std::vector<double> wanted;
  scale(in.a.get(), in.out.get(), kCount, nullptr);
  for (const double v : in.x) wanted.push_back(0.5 * v + 0.25);
  expect_near(values_of(in.out, kCount), wanted, "scale");
  swiglu(in.a.get(), in.b.get(), in.out.get(), kCount, nullptr);
  for (size_t i = 0; i < kCount; ++i) wanted[i] = in.x[i] / (1 + std::exp(-in.x[i])) * in.y[i];
  expect_near(values_of(in.out, kCount), wanted, "swiglu");
}

void check_rows() {
  const Inputs in;
  std::vector<double> wanted(kCount);
  rms_norm(in.a.get(), in.b.get(), in.out.get(), kRows, kWidth, nullptr);
  for (size_t r = 0; r < kRows; ++r) {
    double squares = 0;
    for (size_t i = 0; i < kWidth; ++i) squares += in.x[r * kWidth + i] * in.x[r * kWidth + i];
    const double norm = std::sqrt(squares / kWidth + 1e-5);
    for (size_t i = 0; i < kWidth; ++i)
      wanted[r * kWidth + i] = in.x[r * kWidth + i] / norm * in.y[i];
  }
  expect_near(values_of(in.out, kCount), wanted, "rms_norm");
  rope(in.a.get(), in.out.get(), kRows, kWidth, nullptr);
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t i = 0; i < kWidth / 2; ++i) {
      const double angle =
          static_cast<double>(r) * std::pow(10000.0, -2.0 * static_cast<double>(i) / kWidth);
      const double a = in.x[r * kWidth + i], b = in.x[r * kWidth + kWidth / 2 + i];
      wanted[r * kWidth + i] = a * std::cos(angle) - b * std::sin(angle);
      wanted[r * kWidth + kWidth / 2 + i] = a * std::sin(angle) + b * std::cos(angle);
    }
  }
  expect_near(values_of(in.out, kCount), wanted, "rope");
}

void check_cross_entropy() {
  const Inputs in;
  const std::vector<int32_t> targets = {0, 5, 100, 511, 7, 256};
  const DeviceMemory on_device(kRows * sizeof(int32_t)), loss(kRows * sizeof(float));
  check(
      cudaMemcpy(on_device.get(), targets.data(), kRows * sizeof(int32_t), cudaMemcpyHostToDevice));
  cross_entropy(in.a.get(), static_cast<const int32_t*>(on_device.get()),
                static_cast<float*>(loss.get()), kRows, kWidth, nullptr);
  std::vector<double> gradient(kCount), losses(kRows);
  for (size_t r = 0; r < kRows; ++r) {
    double sum = 0;
    for (size_t i = 0; i < kWidth; ++i) sum += std::exp(in.x[r * kWidth + i]);
    const auto target = static_cast<size_t>(targets[r]);
    losses[r] = std::log(sum) - in.x[r * kWidth + target];
    for (size_t i = 0; i < kWidth; ++i) {
      gradient[r * kWidth + i] =
          (std::exp(in.x[r * kWidth + i]) / sum - (i == target ? 1 : 0)) / kRows;
    }
  }
  expect_near(floats_of(loss, kRows), losses, "cross_entropy");
  expect_near(values_of(in.a, kCount), gradient, "cross_entropy gradient");
}

void check_adam() {
  const Inputs in;
  const DeviceMemory master(kCount * 4), m(kCount * 4), v(kCount * 4);
  fill_random_floats(static_cast<float*>(master.get()), kCount, 3, nullptr);
  fill_random_floats(static_cast<float*>(m.get()), kCount, 4, nullptr);
  check(cudaMemset(v.get(), 0, kCount * 4));
  const std::vector<double> before = floats_of(master, kCount), first = floats_of(m, kCount);
  fused_adam(in.out.get(), in.a.get(), static_cast<float*>(master.get()),
             static_cast<float*>(m.get()), static_cast<float*>(v.get()), kCount, nullptr);
  std::vector<double> wanted(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    const double g = in.x[i], next = 0.9 * first[i] + 0.1 * g, second = 0.05 * g * g;
    wanted[i] = before[i] - 1e-3 * next / (std::sqrt(second) + 1e-8);
  }
  expect_near(floats_of(master, kCount), wanted, "fused_adam");
  expect_near(values_of(in.out, kCount), wanted, "fused_adam parameter");
}

}  // namespace

void check_own_kernels() {
  check_elementwise();
  check_rows();
  check_cross_entropy();
  check_adam();
  check(cudaDeviceSynchronize());
}

}  // namespace herdsim::cuda
