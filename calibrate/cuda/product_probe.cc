#include <bit>
#include <cmath>
#include <vector>

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

// Every `stride`-th element from `first` on, in one copy.
template <class T>
std::vector<T> elements_of(const void* data, int64_t first, int64_t stride, int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  check(cudaMemcpy2D(values.data(), sizeof(T), static_cast<const T*>(data) + first,
                     static_cast<size_t>(stride) * sizeof(T), sizeof(T), values.size(),
                     cudaMemcpyDeviceToHost));
  return values;
}

class ProductProbe : public PreparedProbe {
 public:
  ProductProbe(const ProbeRoom& room, const GemmShape& shape)
      : room_(room),
        shape_(shape),
        buffers_(sizes(shape), true, room.stream),
        matmul_(room.blas, shape, room.one, room.workspace, room.workspace_bytes) {
    if (is_fp8()) {
      for (size_t i = 0; i < 2; ++i)
        fill_random_fp8(buffers_.at(i, 0), buffers_.bytes(i), i + 1, room.stream);
    }
    // Gradients of weights are added to.
    if (shape.pass == GemmPass::kWgrad)
      check(cudaMemsetAsync(buffers_.at(2, 0), 0, buffers_.bytes(2), room.stream));
  }

  void run() override {
    matmul_.run(buffers_.at(0), buffers_.at(1), buffers_.at(2), room_.stream);
    buffers_.advance();
  }

  // The first and the last element of the first set: rows and columns that change places show.
  void check_result() const override {
    check_element(0, 0, 0);
    check_element(shape_.groups - 1, shape_.m - 1, shape_.n - 1);
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
  static double bf16_value(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
  // Of an operand, along k.
  std::vector<double> line(size_t buffer, int64_t first, int64_t stride) const {
    std::vector<double> values;
    const void* data = buffers_.at(buffer, 0);
    if (is_fp8()) {
      for (const uint8_t bits : elements_of<uint8_t>(data, first, stride, shape_.k))
        values.push_back(fp8_value(bits));
    } else {
      for (const uint16_t bits : elements_of<uint16_t>(data, first, stride, shape_.k))
        values.push_back(bf16_value(bits));
    }
    return values;
  }

  // c[row, column] of a group against double precision.
  void check_element(int64_t group, int64_t row, int64_t column) const {
    const GemmShape& g = shape_;
    const bool a_by_columns = g.pass == GemmPass::kWgrad;    // a[k, m], else a[m, k]
    const bool b_by_columns = g.pass != GemmPass::kForward;  // b[k, n], else b[n, k]
    const std::vector<double> a =
        line(0, group * g.m * g.k + (a_by_columns ? row : row * g.k), a_by_columns ? g.m : 1);
    const std::vector<double> b =
        line(1, group * g.n * g.k + (b_by_columns ? column : column * g.k), b_by_columns ? g.n : 1);
    double wanted = 0, size = 0;
    for (size_t l = 0; l < a.size(); ++l) {
      wanted += a[l] * b[l];
      size += std::abs(a[l] * b[l]);
    }
    const int64_t at = (group * g.m + row) * g.n + column;
    const void* c = buffers_.at(2, 0);
    const double got = g.pass == GemmPass::kWgrad
                           ? static_cast<double>(elements_of<float>(c, at, 1, 1)[0])
                           : bf16_value(elements_of<uint16_t>(c, at, 1, 1)[0]);
    // fp8 products of some kernels keep fewer bits in their sums.
    const double near = is_fp8() ? 5e-3 : 1e-3;
    if (!(std::abs(got - wanted) <= 0.01 * std::abs(wanted) + near * size))
      throw std::runtime_error("a product computes something else than its reference");
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
