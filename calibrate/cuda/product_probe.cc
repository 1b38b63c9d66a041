#include <bit>
#include <cmath>

#include "calibrate/cuda/cuda_kernels.h"
#include "calibrate/cuda/matmul.h"
#include "calibrate/cuda/prepared_probe.h"

namespace herdsim::cuda {
namespace {

// E4M3: a sign, four bits of exponent with a bias of 7, three of mantissa.
double fp8_value(uint8_t bits) {
  const int exponent = (bits >> 3) & 15, mantissa = bits & 7;
  const double size =
      exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return bits & 0x80 ? -size : size;
}

template <class T>
T value_at(const void* data, int64_t index) {
  T value{};
  check(cudaMemcpy(&value, static_cast<const T*>(data) + index, sizeof(T), cudaMemcpyDeviceToHost));
  return value;
}

class ProductProbe : public PreparedProbe {
 public:
  ProductProbe(const ProbeRoom& room, const GemmShape& shape)
      : room_(room),
        shape_(shape),
        buffers_(sizes(shape), true, room.stream),
        matmul_(room.blas, shape, room.workspace, room.workspace_bytes) {
    if (is_fp8()) {
      for (size_t i = 0; i < 2; ++i)
        fill_random_fp8(buffers_.at(i, 0), buffers_.bytes(i), i + 1, room.stream);
    }
    // Gradients of weights are added to.
    if (shape.pass == GemmPass::kWgrad)
      check(cudaMemsetAsync(buffers_.at(2, 0), 0, buffers_.bytes(2), room.stream));
  }

  void run() override {
    matmul_.run(buffers_.at(0), buffers_.at(1), buffers_.at(2), is_fp8() ? room_.one : nullptr,
                room_.stream);
    buffers_.advance();
  }

  // The first element of the first set.
  void check_result() const override {
    const GemmShape& g = shape_;
    double wanted = 0, size = 0;
    for (int64_t l = 0; l < g.k; ++l) {
      const double term = element(0, g.pass == GemmPass::kWgrad ? l * g.m : l) *
                          element(1, g.pass == GemmPass::kForward ? l : l * g.n);
      wanted += term;
      size += std::abs(term);
    }
    const double got = g.pass == GemmPass::kWgrad
                           ? static_cast<double>(value_at<float>(buffers_.at(2, 0), 0))
                           : bf16(buffers_.at(2, 0), 0);
    // fp8 products of some kernels keep fewer bits in their sums.
    const double near = is_fp8() ? 5e-3 : 1e-3;
    if (!(std::abs(got - wanted) <= 0.01 * std::abs(wanted) + near * size))
      throw std::runtime_error("a product computes something else than its reference");
  }

 private:
  bool is_fp8() const { return shape_.dtype == DataType::kFp8; }
  static std::vector<size_t> sizes(const GemmShape& g) {
    const auto m = static_cast<size_t>(g.m), n = static_cast<size_t>(g.n),
               k = static_cast<size_t>(g.k);
    const auto groups = static_cast<size_t>(g.groups),
               in = static_cast<size_t>(bytes_per_element(g.dtype));
    return {groups * m * k * in, groups * n * k * in,
            groups * m * n * (g.pass == GemmPass::kWgrad ? 4 : 2)};
  }
  static double bf16(const void* data, int64_t index) {
    return std::bit_cast<float>(uint32_t{value_at<uint16_t>(data, index)} << 16);
  }
  double element(size_t buffer, int64_t index) const {
    return is_fp8() ? fp8_value(value_at<uint8_t>(buffers_.at(buffer, 0), index))
                    : bf16(buffers_.at(buffer, 0), index);
  }

  const ProbeRoom& room_;
  GemmShape shape_;
  RotatingBuffers buffers_;
  Matmul matmul_;
};

}  // namespace

std::unique_ptr<PreparedProbe> prepare_product(const ProbeRoom& room, const GemmShape& shape) {
  return std::make_unique<ProductProbe>(room, shape);
}

}  // namespace herdsim::cuda
