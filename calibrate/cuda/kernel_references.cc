#include "calibrate/cuda/kernel_references.h"

#include <cuda_bf16.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "calibrate/cuda/cuda_check.h"
#include "calibrate/cuda/cuda_kernels.h"

namespace herdsim::cuda {
namespace {

std::vector<double> values_of(const DeviceMemory& memory, size_t count) {
  check(cudaGetLastError());  // of a kernel that could not be launched
  std::vector<__nv_bfloat16> raw(count);
  check(
      cudaMemcpy(raw.data(), memory.get(), count * sizeof(__nv_bfloat16), cudaMemcpyDeviceToHost));
  std::vector<double> values;
  for (const __nv_bfloat16 v : raw) values.push_back(__bfloat162float(v));
  return values;
}
std::vector<double> floats_of(const DeviceMemory& memory, size_t count) {
  check(cudaGetLastError());
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
  size_t rows, width, count;
  DeviceMemory a{count * 2}, b{count * 2}, out{count * 2};
  std::vector<double> x, y;
  Inputs(size_t row_count, size_t row_width)
      : rows(row_count), width(row_width), count(row_count * row_width) {
    fill_random(a.get(), count, 1, nullptr);
    fill_random(b.get(), count, 2, nullptr);
    x = values_of(a, count);
    y = values_of(b, count);
  }
};

void check_elementwise(const Inputs& in) {
  std::vector<double> wanted;
  scale(in.a.get(), in.out.get(), in.count, nullptr);
  for (const double v : in.x) wanted.push_back(0.5 * v + 0.25);
  expect_near(values_of(in.out, in.count), wanted, "scale");
  swiglu(in.a.get(), in.b.get(), in.out.get(), in.count, nullptr);
  for (size_t i = 0; i < in.count; ++i) wanted[i] = in.x[i] / (1 + std::exp(-in.x[i])) * in.y[i];
  expect_near(values_of(in.out, in.count), wanted, "swiglu");
}

void check_rows(const Inputs& in) {
  std::vector<double> wanted(in.count);
  rms_norm(in.a.get(), in.b.get(), in.out.get(), in.rows, in.width, nullptr);
  for (size_t r = 0; r < in.rows; ++r) {
    double squares = 0;
    for (size_t i = 0; i < in.width; ++i)
      squares += in.x[r * in.width + i] * in.x[r * in.width + i];
    const double norm = std::sqrt(squares / static_cast<double>(in.width) + 1e-5);
    for (size_t i = 0; i < in.width; ++i)
      wanted[r * in.width + i] = in.x[r * in.width + i] / norm * in.y[i];
  }
  expect_near(values_of(in.out, in.count), wanted, "rms_norm");
  rope(in.a.get(), in.out.get(), in.rows, in.width, nullptr);
  for (size_t r = 0; r < in.rows; ++r) {
    for (size_t i = 0; i < in.width / 2; ++i) {
      const double angle =
          static_cast<double>(r) *
          std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(in.width));
      const double a = in.x[r * in.width + i], b = in.x[r * in.width + in.width / 2 + i];
      wanted[r * in.width + i] = a * std::cos(angle) - b * std::sin(angle);
      wanted[r * in.width + in.width / 2 + i] = a * std::sin(angle) + b * std::cos(angle);
    }
  }
  expect_near(values_of(in.out, in.count), wanted, "rope");
}

// A logit beyond the range of the exponential in each row, past the first warp's half: what the
// largest one is subtracted for.
Inputs with_peaks(Inputs in) {
  for (size_t r = 0; r < in.rows; ++r) {
    const size_t at = r * in.width + (r * 61 + 25) % in.width;
    const __nv_bfloat16 peak = __float2bfloat16(200);
    check(cudaMemcpy(static_cast<__nv_bfloat16*>(in.a.get()) + at, &peak, sizeof(peak),
                     cudaMemcpyHostToDevice));
    in.x[at] = 200;
  }
  return in;
}

void check_cross_entropy(const Inputs& in) {
  std::vector<int32_t> targets;
  for (size_t r = 0; r < in.rows; ++r)
    targets.push_back(static_cast<int32_t>((r * 37 + in.width - 1) % in.width));
  const DeviceMemory on_device(in.rows * sizeof(int32_t)), loss(in.rows * sizeof(float));
  check(cudaMemcpy(on_device.get(), targets.data(), in.rows * sizeof(int32_t),
                   cudaMemcpyHostToDevice));
  cross_entropy(in.a.get(), static_cast<const int32_t*>(on_device.get()),
                static_cast<float*>(loss.get()), in.rows, in.width, nullptr);
  std::vector<double> gradient(in.count), losses(in.rows);
  for (size_t r = 0; r < in.rows; ++r) {
    double sum = 0;
    for (size_t i = 0; i < in.width; ++i) sum += std::exp(in.x[r * in.width + i]);
    const auto target = static_cast<size_t>(targets[r]);
    losses[r] = std::log(sum) - in.x[r * in.width + target];
    for (size_t i = 0; i < in.width; ++i) {
      gradient[r * in.width + i] =
          (std::exp(in.x[r * in.width + i]) / sum - (i == target ? 1 : 0)) /
          static_cast<double>(in.rows);
    }
  }
  expect_near(floats_of(loss, in.rows), losses, "cross_entropy");
  expect_near(values_of(in.a, in.count), gradient, "cross_entropy gradient");
}

void check_adam(const Inputs& in) {
  const DeviceMemory master(in.count * 4), m(in.count * 4), v(in.count * 4);
  fill_random_floats(static_cast<float*>(master.get()), in.count, 3, nullptr);
  fill_random_floats(static_cast<float*>(m.get()), in.count, 4, nullptr);
  fill_random_floats(static_cast<float*>(v.get()), in.count, 5, nullptr);
  std::vector<float> squares;
  for (const double noise : floats_of(v, in.count))
    squares.push_back(static_cast<float>(noise * noise));
  check(cudaMemcpy(v.get(), squares.data(), in.count * 4, cudaMemcpyHostToDevice));
  const std::vector<double> before = floats_of(master, in.count), first = floats_of(m, in.count);
  fused_adam(in.out.get(), in.a.get(), static_cast<float*>(master.get()),
             static_cast<float*>(m.get()), static_cast<float*>(v.get()), in.count, nullptr);
  const std::vector<double> after = floats_of(master, in.count);
  // The step over the learning rate: beside the parameter it would drown in the tolerance.
  std::vector<double> steps(in.count), wanted(in.count), second(in.count);
  for (size_t i = 0; i < in.count; ++i) {
    const double g = in.x[i];
    second[i] = 0.95 * squares[i] + 0.05 * g * g;
    wanted[i] = (0.9 * first[i] + 0.1 * g) / (std::sqrt(second[i]) + 1e-8);
    steps[i] = (before[i] - after[i]) / 1e-3;
  }
  expect_near(steps, wanted, "fused_adam");
  expect_near(floats_of(v, in.count), second, "fused_adam moments");
  expect_near(values_of(in.out, in.count), after, "fused_adam parameter");
}

}  // namespace

void check_own_kernels(size_t rows, size_t width) {
  check_elementwise(Inputs(rows, width));
  check_rows(Inputs(rows, width));
  check_cross_entropy(Inputs(rows, width));
  check_cross_entropy(with_peaks(Inputs(rows, width)));
  check_adam(Inputs(rows, width));
  check(cudaDeviceSynchronize());
}

}  // namespace herdsim::cuda
