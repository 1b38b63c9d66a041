#include "workloads/step_work.h"

#include <string>
#include <string_view>
#include <utility>

namespace herdsim {
namespace {

constexpr std::array<std::string_view, kUnitKinds> kNames = {"embedding", "layer", "layer", "layer",
                                                             "layer",     "head",  "head"};

class StepWorkBuilder {
 public:
  StepWorkBuilder(const WorkloadSpec& spec, const RankGrid& grid, TypedVector<WorkId, Work>& works)
      : spec_(spec), grid_(grid), works_(works) {}

  StepWork build() {
    passes();
    for (size_t u = 0; u < kUnitKinds; ++u) parameters(static_cast<UnitKind>(u));
    messages();
    end_of_step();
    return std::move(out_);
  }

 private:
  static size_t index(UnitKind unit) { return static_cast<size_t>(unit); }

  void passes() {
    const bool experts = spec_.model.is_moe();
    const bool recomputes = spec_.training.recompute != Recompute::kNone;
    const auto layers = [&](UnitKind plain, UnitKind recomputed, bool has_experts) {
      PassTemplates& keeps = out_.passes[index(plain)];
      keeps = layer_templates(spec_, works_, {.recomputes = false, .has_experts = has_experts});
      out_.passes[index(recomputed)] =
          recomputes
              ? layer_templates(spec_, works_, {.recomputes = true, .has_experts = has_experts})
              : keeps;
      for (const UnitKind unit : {plain, recomputed}) launch(unit, has_experts);
    };
    out_.passes[index(UnitKind::kEmbedding)] = embedding_templates(spec_, works_);
    layers(UnitKind::kLayer, UnitKind::kRecomputedLayer, experts);
    if (experts && spec_.model.first_dense_layers > 0) {
      layers(UnitKind::kDenseLayer, UnitKind::kRecomputedDenseLayer, false);
    }
    out_.passes[index(UnitKind::kHead)] = head_templates(spec_, works_);
    out_.passes[index(UnitKind::kTiedHead)] = out_.passes[index(UnitKind::kHead)];
    const double head = spec_.software.host_microseconds_per_head;
    out_.launch[index(UnitKind::kHead)] = {host_work("launch head", head), host_work("launch head backward", head)};
    out_.launch[index(UnitKind::kTiedHead)] = out_.launch[index(UnitKind::kHead)];
  }

  // Of one layer: its kernels, and each of its transfers within the layer. A split backward pass is
  // launched with its first half.
  void launch(UnitKind unit, bool has_experts) {
    const SoftwareStack& software = spec_.software;
    const PassTemplates& passes = out_.passes[index(unit)];
    // Once the host has read the counts, a forward pass launches its experts itself.
    const bool counts = spec_.host_counts_tokens();
    const auto transfers = [&](const WorkTemplate& steps, bool forward) {
      double time = 0;
      for (const TemplateStep& step : steps) {
        const Work& work = works_[step.work];
        if (work.stream != Stream::kTp && work.stream != Stream::kEp) continue;
        time += software.host_microseconds_per_transfer +
                stall_microseconds(software.host_stalls, grid_.group_size(work.communicator));
      }
      return time + (has_experts && !(counts && forward)
                         ? software.host_microseconds_per_expert_layer
                         : 0);
    };
    const double sharded = spec_.plan.shard == Sharding::kNone ? 0 : software.host_microseconds_per_sharded_layer;
    const double forward =
        software.host_microseconds_per_layer_forward + transfers(passes.forward, true);
    const double backward =
        software.host_microseconds_per_layer_backward + sharded + transfers(passes.backward, false);
    if (software.launch_blocking) return launch_between_kernels(unit, forward, backward);
    out_.launch[index(unit)] = {host_work("launch forward", forward),
                                host_work("launch backward", backward)};
  }

  // The GPU waits for each launch, those of recomputed kernels too.
  void launch_between_kernels(UnitKind unit, double forward, double backward) {
    const bool recomputed =
        unit == UnitKind::kRecomputedLayer || unit == UnitKind::kRecomputedDenseLayer;
    const bool again = recomputed && spec_.training.recompute == Recompute::kFull;
    PassTemplates& passes = out_.passes[index(unit)];
    idle(passes.forward, "launch forward", forward);
    for (WorkTemplate* pass : {&passes.backward, &passes.backward_input}) {
      idle(*pass, "launch backward", backward + (again ? forward : 0));
    }
  }

  void idle(WorkTemplate& pass, std::string name, double microseconds) {
    if (pass.empty() || microseconds <= 0) return;
    Work work;
    work.name = std::move(name);
    work.host_floor = seconds_rounded_up(microseconds * 1e-6);
    pass.push_back({works_.push_back(std::move(work)), {static_cast<int>(pass.size()) - 1}});
  }

  std::optional<WorkId> host_work(std::string name, double microseconds) {
    if (microseconds <= 0) return std::nullopt;
    Work work;
    work.kind = WorkKind::kHost;
    work.stream = Stream::kHost;
    work.name = std::move(name);
    work.host_floor = seconds_rounded_up(microseconds * 1e-6);
    return works_.push_back(std::move(work));
  }

  void parameters(UnitKind unit) {
    const UnitParameters p = unit_parameters(spec_, unit);
    const std::string name(kNames[index(unit)]);
    const bool fp8 = spec_.software.parameter_gather_fp8 &&
                     spec_.training.precision == DataType::kFp8 && is_layer(unit) &&
                     spec_.plan.shard != Sharding::kZero3;
    const DataType gather_type = fp8 ? DataType::kFp8 : spec_.software.parameter_gather_type;
    const auto gathered = [&](int64_t n) { return Bytes(n * bytes_per_element(gather_type)); };
    const auto reduced = [&](int64_t n) {
      return Bytes(n * bytes_per_element(spec_.software.gradient_reduce_type));
    };
    std::vector<WorkId>& gather = out_.gather[index(unit)];
    std::vector<WorkId>& reduce = out_.reduce[index(unit)];
    const bool hybrid = spec_.plan.is_hybrid();
    const auto among = [&](Communicator whole, int64_t count, const std::string& what) {
      if (spec_.plan.shard == Sharding::kNone) {
        append(reduce, "reduce " + what, CollectiveKind::kAllReduce, whole, reduced(count));
        return;
      }
      append(gather, "gather " + what, CollectiveKind::kAllGather, whole, gathered(count));
      append(reduce, "reduce " + what, CollectiveKind::kReduceScatter, whole, reduced(count));
    };
    among(hybrid ? Communicator::kShard : Communicator::kGradient, p.dense, name);
    if (hybrid && spec_.plan.shard != Sharding::kNone) {
      append(reduce, "reduce " + name + " over replicas", CollectiveKind::kAllReduce,
             Communicator::kReplica, reduced(p.dense / spec_.plan.shards()));
    }
    if (p.experts > 0) among(Communicator::kExpertGradient, p.experts, "experts");
  }

  void append(std::vector<WorkId>& list, std::string name, CollectiveKind kind,
              Communicator communicator, Bytes bytes) {
    if (grid_.group_size(communicator) == 1) return;
    list.push_back(works_.push_back(data_parallel(std::move(name), kind, communicator, bytes)));
  }

  static Work data_parallel(std::string name, CollectiveKind kind, Communicator communicator,
                            Bytes bytes) {
    Work work;
    work.kind = WorkKind::kCollective;
    work.stream = Stream::kDp;
    work.name = std::move(name);
    work.exposed_as = TimeTerm::kExposedDp;
    work.communicator = communicator;
    work.collective = kind;
    work.bytes = bytes;
    return work;
  }

  WorkId transfer(WorkKind kind, Stream stream, std::string name) {
    Work work;
    work.kind = kind;
    work.stream = stream;
    work.name = std::move(name);
    work.exposed_as = TimeTerm::kExposedPp;
    work.bytes = spec_.stage_message();
    return works_.push_back(std::move(work));
  }

  void messages() {
    out_.send_forward = transfer(WorkKind::kSend, Stream::kSendForward, "send activation");
    out_.send_backward = transfer(WorkKind::kSend, Stream::kSendBackward, "send gradient");
    out_.receive_forward = transfer(WorkKind::kReceive, Stream::kReceive, "receive activation");
    out_.receive_backward = transfer(WorkKind::kReceive, Stream::kReceive, "receive gradient");
    if (!spec_.software.p2p_async) {
      out_.read_message = host_work("read message", spec_.software.host_microseconds_per_message);
    }
  }

  void end_of_step() {
    if (spec_.model.tied_embeddings && spec_.plan.pp > 1) {
      const int64_t element = bytes_per_element(spec_.software.gradient_accumulation_type);
      out_.tied_gradients = works_.push_back(
          data_parallel("reduce tied embedding", CollectiveKind::kAllReduce, Communicator::kEnds,
                        Bytes(spec_.embedding_parameters() * element)));
    }
    out_.gradient_norm = works_.push_back(
        data_parallel("gradient norm", CollectiveKind::kAllReduce, Communicator::kWorld, Bytes(4)));
    if (spec_.software.norm_reductions_per_layer > 0 && spec_.splits_sequence() && spec_.plan.tp > 1) {
      Work work = data_parallel("reduce norm", CollectiveKind::kAllReduce, Communicator::kTensor,
                                Bytes(spec_.model.hidden * 4));
      work.stream = Stream::kTp;
      work.exposed_as = TimeTerm::kExposedTp;
      out_.norm_gradient = works_.push_back(std::move(work));
    }
    Work host;
    host.name = "host";
    host.host_floor = seconds_rounded_up(spec_.software.host_milliseconds_per_step * 1e-3);
    host.jitter = seconds_rounded_up(spec_.software.step_jitter_milliseconds * 1e-3);
    out_.host = works_.push_back(std::move(host));
  }

  const WorkloadSpec& spec_;
  const RankGrid& grid_;
  TypedVector<WorkId, Work>& works_;
  StepWork out_;
};

}  // namespace

UnitParameters unit_parameters(const WorkloadSpec& spec, UnitKind kind) {
  const auto layer = [&](bool with_experts) {
    const LayerParameters p = layer_parameters(spec.model, spec.plan, with_experts);
    return UnitParameters{p.dense(), p.experts};
  };
  switch (kind) {
    case UnitKind::kEmbedding:
      return {spec.table_parameters()};
    case UnitKind::kLayer:
    case UnitKind::kRecomputedLayer:
      return layer(spec.model.is_moe());
    case UnitKind::kDenseLayer:
    case UnitKind::kRecomputedDenseLayer:
      return layer(false);
    case UnitKind::kHead:
      return {spec.embedding_parameters() + spec.model.hidden};
    case UnitKind::kTiedHead:
      return {spec.model.hidden};
  }
  return {};
}

StepWork step_work(const WorkloadSpec& spec, const RankGrid& grid,
                   TypedVector<WorkId, Work>& works) {
  return StepWorkBuilder(spec, grid, works).build();
}

}  // namespace herdsim
