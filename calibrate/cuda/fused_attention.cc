#include "calibrate/cuda/fused_attention.h"

namespace herdsim::cuda {
namespace {

constexpr int64_t kScaleId = 100;

void set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
         cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  check(cudnnBackendSetAttribute(descriptor, name, type, count, values));
}

void set_descriptor(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                    cudnnBackendDescriptor_t value) {
  set(descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

// What an operation joins, in the order of FusedAttention::run.
constexpr std::array<cudnnBackendAttributeName_t, FusedAttention::kForwardTensors> kForward = {
    CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC,
    CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC,
    CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC};
constexpr std::array<cudnnBackendAttributeName_t, FusedAttention::kBackwardTensors> kBackward = {
    CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC,     CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC,
    CUDNN_ATTR_OPERATION_SDPA_BWD_VDESC,     CUDNN_ATTR_OPERATION_SDPA_BWD_ODESC,
    CUDNN_ATTR_OPERATION_SDPA_BWD_STATSDESC, CUDNN_ATTR_OPERATION_SDPA_BWD_DODDESC,
    CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC,    CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC,
    CUDNN_ATTR_OPERATION_SDPA_BWD_DVDESC};

}  // namespace

cudnnBackendDescriptor_t FusedAttention::make(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t descriptor = nullptr;
  check(cudnnBackendCreateDescriptor(type, &descriptor));
  made_.push_back(descriptor);
  return descriptor;
}

cudnnBackendDescriptor_t FusedAttention::tensor(int64_t id, cudnnDataType_t type,
                                                const std::array<int64_t, 4>& sizes,
                                                bool by_value) {
  const std::array<int64_t, 4> strides = {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3],
                                          sizes[3], 1};
  const int64_t alignment = 16;
  const cudnnBackendDescriptor_t t = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  set(t, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
  set(t, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  set(t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, sizes.data());
  set(t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides.data());
  set(t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
  if (by_value) set(t, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
  check(cudnnBackendFinalize(t));
  return t;
}

FusedAttention::FusedAttention(cudnnHandle_t handle, const AttentionShape& s) : handle_(handle) {
  const bool forward = s.pass == AttentionPass::kForward;
  const std::array<int64_t, 4> q = {s.batch, s.heads, s.query_tokens, s.head_dim};
  const std::array<int64_t, 4> kv = {s.batch, s.kv_heads, s.kv_tokens, s.head_dim};
  const std::array<int64_t, 4> stats = {s.batch, s.heads, s.query_tokens, 1};
  const std::vector<std::array<int64_t, 4>> sizes =
      forward ? std::vector<std::array<int64_t, 4>>{q, kv, kv, q, stats}
              : std::vector<std::array<int64_t, 4>>{q, kv, kv, q, stats, q, q, kv, kv};
  try {
    const cudnnBackendDescriptor_t operation =
        make(forward ? CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR
                     : CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR);
    for (size_t i = 0; i < sizes.size(); ++i) {
      const bool is_stats = i == kForwardTensors - 1;
      const auto id = static_cast<int64_t>(i + 1);
      set_descriptor(operation, forward ? kForward[i] : kBackward[i],
                     tensor(id, is_stats ? CUDNN_DATA_FLOAT : CUDNN_DATA_BFLOAT16, sizes[i]));
      ids_.push_back(id);
      bytes_.push_back(static_cast<size_t>(sizes[i][0] * sizes[i][1] * sizes[i][2] * sizes[i][3]) *
                       (is_stats ? 4 : 2));
    }
    set_descriptor(
        operation,
        forward ? CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC : CUDNN_ATTR_OPERATION_SDPA_BWD_SCALEDESC,
        tensor(kScaleId, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, true));
    check(cudnnBackendFinalize(operation));
    finalize_plan(operation);
  } catch (...) {
    for (auto it = made_.rbegin(); it != made_.rend(); ++it) cudnnBackendDestroyDescriptor(*it);
    throw;
  }
}

void FusedAttention::finalize_plan(cudnnBackendDescriptor_t operation) {
  const cudnnBackendDescriptor_t graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle_);
  set_descriptor(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  check(cudnnBackendFinalize(graph));
  const cudnnBackendDescriptor_t heuristic = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
  set_descriptor(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  set(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  check(cudnnBackendFinalize(heuristic));
  cudnnBackendDescriptor_t engine = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  int64_t found = 0;
  check(cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &found, &engine));
  if (found == 0) throw std::runtime_error("cuDNN has no engine for an attention");
  plan_ = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  set(plan_, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle_);
  set_descriptor(plan_, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine);
  check(cudnnBackendFinalize(plan_));
  int64_t bytes = 0;
  check(cudnnBackendGetAttribute(plan_, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
                                 1, &found, &bytes));
  workspace_bytes_ = static_cast<size_t>(bytes);
}

FusedAttention::~FusedAttention() {
  for (auto it = made_.rbegin(); it != made_.rend(); ++it) cudnnBackendDestroyDescriptor(*it);
}

void FusedAttention::run(const std::vector<void*>& pointers, const float* scale,
                         void* workspace) const {
  std::vector<int64_t> ids = ids_;
  std::vector<void*> all = pointers;
  ids.push_back(kScaleId);
  all.push_back(const_cast<float*>(scale));
  cudnnBackendDescriptor_t pack = nullptr;
  check(cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack));
  set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
      static_cast<int64_t>(all.size()), all.data());
  set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, static_cast<int64_t>(ids.size()),
      ids.data());
  set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  check(cudnnBackendFinalize(pack));
  const cudnnStatus_t status = cudnnBackendExecute(handle_, plan_, pack);
  cudnnBackendDestroyDescriptor(pack);
  check(status);
}

}  // namespace herdsim::cuda
