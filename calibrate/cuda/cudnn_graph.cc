#include "calibrate/cuda/cudnn_graph.h"

#include <stdexcept>

namespace herdsim::cuda {
namespace {

std::string reason_of(cudnnStatus_t status) {
  std::array<char, 2048> text{};
  cudnnGetLastErrorString(text.data(), text.size());
  std::string reason = text.data();
  while (!reason.empty() && reason.back() == '\n') reason.pop_back();
  return std::string("cuDNN: ") + cudnnGetErrorString(status) +
         (reason.empty() ? "" : ": " + reason);
}

void check_cudnn(cudnnStatus_t status) {
  if (status != CUDNN_STATUS_SUCCESS) throw std::runtime_error(reason_of(status));
}

}  // namespace

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t made = nullptr;
  check_cudnn(cudnnBackendCreateDescriptor(type, &made));
  descriptor_.reset(made);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                          int64_t count, const void* values) {
  check_cudnn(cudnnBackendSetAttribute(get(), name, type, count, values));
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value) {
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, int64_t value) {
  set(name, CUDNN_TYPE_INT64, 1, &value);
}

void CudnnDescriptor::finalize() { check_cudnn(cudnnBackendFinalize(get())); }

CudnnGraph::Sizes CudnnGraph::row_by_row(const Sizes& sizes) {
  return {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1};
}

CudnnDescriptor& CudnnGraph::make(cudnnBackendDescriptorType_t type) {
  return *made_.emplace_back(std::make_unique<CudnnDescriptor>(type));
}

CudnnGraph::Tensor CudnnGraph::tensor(cudnnDataType_t type, const Sizes& sizes,
                                      const Sizes& strides,
                                      std::optional<cudnnBackendAttributeName_t> flag) {
  constexpr int64_t kAlignment = 16;  // bytes; cudaMalloc's are more
  constexpr bool kSet = true;
  const int64_t id = next_id_++;
  CudnnDescriptor& t = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  t.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  t.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, sizes.data());
  t.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides.data());
  t.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment);
  if (flag) t.set(*flag, CUDNN_TYPE_BOOLEAN, 1, &kSet);
  t.finalize();
  return {t.get(), id};
}

CudnnGraph::Tensor CudnnGraph::stored(cudnnDataType_t type, const Sizes& sizes,
                                      const Sizes& strides) {
  return tensor(type, sizes, strides, std::nullopt);
}

CudnnGraph::Tensor CudnnGraph::passing(cudnnDataType_t type, const Sizes& sizes,
                                       const Sizes& strides) {
  return tensor(type, sizes, strides, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
}

CudnnGraph::Tensor CudnnGraph::constant(float value) {
  const Tensor made =
      tensor(CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
  constants_.push_back({made.id, std::make_unique<float>(value)});
  return made;
}

void CudnnGraph::matmul(const Tensor& a, const Tensor& b, const Tensor& c) {
  constexpr cudnnDataType_t kSums = CUDNN_DATA_FLOAT;
  CudnnDescriptor& how = make(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &kSums);
  how.finalize();
  CudnnDescriptor& operation = make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a.descriptor);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b.descriptor);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c.descriptor);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how.get());
  operation.finalize();
  operations_.push_back(operation.get());
}

void CudnnGraph::reduce(cudnnReduceTensorOp_t kind, const Tensor& x, const Tensor& y) {
  constexpr cudnnDataType_t kSums = CUDNN_DATA_FLOAT;
  CudnnDescriptor& how = make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  how.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &kind);
  how.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &kSums);
  how.finalize();
  CudnnDescriptor& operation = make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x.descriptor);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y.descriptor);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how.get());
  operation.finalize();
  operations_.push_back(operation.get());
}

void CudnnGraph::reshape(const Tensor& x, const Tensor& y) {
  CudnnDescriptor& operation = make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x.descriptor);
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y.descriptor);
  operation.finalize();
  operations_.push_back(operation.get());
}

void CudnnGraph::pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor& y,
                           const Pointwise& p) {
  CudnnDescriptor& how = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  how.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &p.computed_in);
  if (p.axis) how.set(CUDNN_ATTR_POINTWISE_AXIS, *p.axis);
  how.finalize();
  CudnnDescriptor& operation = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how.get());
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x.descriptor);
  if (p.b) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, p.b->descriptor);
  if (p.t) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, p.t->descriptor);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y.descriptor);
  operation.finalize();
  operations_.push_back(operation.get());
}

CudnnPlan::CudnnPlan(CudnnGraph graph, const CudnnTarget& target) : graph_(std::move(graph)) {
  if (target.handle == nullptr) {
    device_ = std::make_unique<CudnnDescriptor>(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    device_->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                 static_cast<int64_t>(target.device_json.size()), target.device_json.data());
    device_->finalize();
  }
  CudnnDescriptor& operations = *kept_.emplace_back(
      std::make_unique<CudnnDescriptor>(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
  if (target.handle != nullptr)
    operations.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
  operations.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                 static_cast<int64_t>(graph_.operations_.size()), graph_.operations_.data());
  operations.finalize();
  // What cuDNN proposes; then whatever it has.
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    CudnnDescriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations.get());
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (device_) heuristic.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device_->get());
    heuristic.finalize();
    int64_t most = 0, found = 0;
    check_cudnn(cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                         CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &most, nullptr));
    std::vector<cudnnBackendDescriptor_t> configurations;
    for (int64_t i = 0; i < most; ++i) {
      configurations.push_back(
          kept_.emplace_back(std::make_unique<CudnnDescriptor>(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR))
              ->get());
    }
    if (most > 0) {
      check_cudnn(cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                           CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &found,
                                           configurations.data()));
    }
    proposed_ += static_cast<size_t>(found);
    for (int64_t i = 0; i < found; ++i) {
      if (build(configurations[static_cast<size_t>(i)], target)) return;
    }
  }
  throw std::runtime_error(proposed_ == 0
                               ? "cuDNN has no engine for a graph"
                               : "cuDNN builds none of its engines for a graph; " + reason_);
}

bool CudnnPlan::build(cudnnBackendDescriptor_t configuration, const CudnnTarget& target) {
  auto plan = std::make_unique<CudnnDescriptor>(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  if (device_) {
    plan->set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device_->get());
  } else {
    plan->set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
  }
  plan->set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  if (const cudnnStatus_t status = cudnnBackendFinalize(plan->get());
      status != CUDNN_STATUS_SUCCESS) {
    reason_ = reason_of(status);
    return false;
  }
  int64_t count = 0, bytes = 0;
  check_cudnn(cudnnBackendGetAttribute(plan->get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                       CUDNN_TYPE_INT64, 1, &count, &bytes));
  CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.get();
  check_cudnn(cudnnBackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &raw));
  check_cudnn(cudnnBackendGetAttribute(raw, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
                                       &count, &engine_));
  workspace_bytes_ = static_cast<size_t>(bytes);
  plan_ = std::move(plan);
  return true;
}

size_t CudnnPlan::bind(const std::vector<std::pair<int64_t, void*>>& pointers, void* workspace) {
  std::vector<int64_t> ids;
  std::vector<void*> all;
  for (const auto& [id, pointer] : pointers) {
    ids.push_back(id);
    all.push_back(pointer);
  }
  for (const CudnnGraph::Constant& constant : graph_.constants_) {
    ids.push_back(constant.id);
    all.push_back(constant.value.get());
  }
  CudnnDescriptor& pack = *bound_.emplace_back(
      std::make_unique<CudnnDescriptor>(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR));
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
           static_cast<int64_t>(all.size()), all.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, static_cast<int64_t>(ids.size()),
           ids.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  pack.finalize();
  return bound_.size() - 1;
}

void CudnnPlan::run(cudnnHandle_t handle, size_t bound) const {
  check_cudnn(cudnnBackendExecute(handle, plan_->get(), bound_[bound]->get()));
}

}  // namespace herdsim::cuda
