// A graph of cuDNN operations joined by tensors, and a plan that computes it in one kernel.
//
// cuDNN's backend interface is untyped: every descriptor takes attributes by number. Here is the
// part of it that attention needs. cuDNN recognises the graph as a whole (see fused_attention.h);
// tensors between its operations never reach memory.
//
//   CudnnGraph graph;
//   const auto a = graph.stored(CUDNN_DATA_BFLOAT16, {1, 8, 512, 128});
//   const auto b = graph.stored(CUDNN_DATA_BFLOAT16, {1, 8, 128, 512});
//   const auto c = graph.stored(CUDNN_DATA_BFLOAT16, {1, 8, 512, 512});
//   graph.matmul(a, b, c);
//   CudnnPlan plan(graph, {.handle = handle});
//   const size_t bound = plan.bind({{a.id, pa}, {b.id, pb}, {c.id, pc}}, workspace);
//   plan.run(handle, bound);
#pragma once

#include <cudnn.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace herdsim::cuda {

// Where a plan is to run: on the device of a handle; or, to see whether cuDNN takes a graph, on one
// that JSON describes and that need not be here (from cuDNN 9.8 on).
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  std::string device_json;
};

// One backend descriptor, destroyed with this object.
class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type);
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
           const void* values);
  void set(cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value);
  void set(cudnnBackendAttributeName_t name, int64_t value);
  // Throws: std::runtime_error with cuDNN's reason.
  void finalize();
  cudnnBackendDescriptor_t get() const { return descriptor_.get(); }

 private:
  struct Destroy {
    void operator()(cudnnBackendDescriptor_t d) const { cudnnBackendDestroyDescriptor(d); }
  };
  std::unique_ptr<void, Destroy> descriptor_;
};

class CudnnGraph {
 public:
  using Sizes = std::array<int64_t, 4>;
  struct Tensor {
    cudnnBackendDescriptor_t descriptor = nullptr;
    int64_t id = 0;
  };
  struct Constant {
    int64_t id = 0;
    std::unique_ptr<float> value;  // its address is what runs read
  };

  static Sizes row_by_row(const Sizes& sizes);

  // In memory, bound to a pointer before a run.
  Tensor stored(cudnnDataType_t type, const Sizes& sizes, const Sizes& strides);
  Tensor stored(cudnnDataType_t type, const Sizes& sizes) {
    return stored(type, sizes, row_by_row(sizes));
  }
  // Between two operations.
  Tensor passing(cudnnDataType_t type, const Sizes& sizes, const Sizes& strides);
  Tensor passing(cudnnDataType_t type, const Sizes& sizes) {
    return passing(type, sizes, row_by_row(sizes));
  }
  Tensor constant(float value);

  // c = a b over the last two sizes. Heads of b may be fewer than those of a: then they are shared.
  void matmul(const Tensor& a, const Tensor& b, const Tensor& c);
  // Sizes that are 1 in y and not in x.
  void reduce(cudnnReduceTensorOp_t operation, const Tensor& x, const Tensor& y);
  // The same elements in another shape or order.
  void reshape(const Tensor& x, const Tensor& y);
  // y = f(x), f(x, b) or, by the truth of t, a choice of x and b.
  struct Pointwise {
    std::optional<Tensor> b = std::nullopt, t = std::nullopt;
    std::optional<int64_t> axis = std::nullopt;  // of generated indices
    cudnnDataType_t computed_in = CUDNN_DATA_FLOAT;
  };
  void pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor& y, const Pointwise& p);
  void pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor& y) {
    pointwise(mode, x, y, Pointwise{});
  }

 private:
  friend class CudnnPlan;
  Tensor tensor(cudnnDataType_t type, const Sizes& sizes, const Sizes& strides,
                std::optional<cudnnBackendAttributeName_t> flag);
  CudnnDescriptor& make(cudnnBackendDescriptorType_t type);

  std::vector<std::unique_ptr<CudnnDescriptor>> made_;
  std::vector<cudnnBackendDescriptor_t> operations_;
  std::vector<Constant> constants_;
  int64_t next_id_ = 1;
};

class CudnnPlan {
 public:
  // Finds the engines that cuDNN proposes for the graph, and builds the first that can be built.
  // Throws: std::runtime_error with cuDNN's reason where there is none.
  CudnnPlan(CudnnGraph graph, const CudnnTarget& target);

  // cuDNN's own number of the engine; and how many were proposed.
  int64_t engine() const { return engine_; }
  size_t proposed() const { return proposed_; }
  size_t workspace_bytes() const { return workspace_bytes_; }

  // Pointers by tensor id, for run(); packed once, since packing takes as long as a short kernel.
  size_t bind(const std::vector<std::pair<int64_t, void*>>& pointers, void* workspace);
  void run(cudnnHandle_t handle, size_t bound) const;

 private:
  bool build(cudnnBackendDescriptor_t configuration, const CudnnTarget& target);

  CudnnGraph graph_;
  std::vector<std::unique_ptr<CudnnDescriptor>> kept_;  // what the plan stands on
  std::unique_ptr<CudnnDescriptor> device_, plan_;
  std::vector<std::unique_ptr<CudnnDescriptor>> bound_;
  int64_t engine_ = -1;
  size_t proposed_ = 0, workspace_bytes_ = 0;
  std::string reason_;  // why the last one could not be built
};

}  // namespace herdsim::cuda
