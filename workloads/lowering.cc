#include "workloads/lowering.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "workloads/stage_program.h"
#include "workloads/uneven_load.h"

namespace herdsim {
namespace {

bool is_mirrored(const ScheduleRow& schedule) {
  return schedule.layout == ChunkLayout::kBidirectional;
}

WorkId optimizer_work(const WorkloadSpec& spec, const StepLayout& layout, int64_t stage,
                      TypedVector<WorkId, Work>& works) {
  UnitParameters held;
  int64_t layers = 0;
  for (int64_t chunk = 0; chunk < chunks_per_stage(layout.schedule, layout.shape); ++chunk) {
    for (const UnitKind unit : layout.units_at(stage, chunk)) {
      const UnitParameters p = unit_parameters(spec, unit);
      held.dense += p.dense;
      held.experts += p.experts;
      if (is_layer(unit)) ++layers;
    }
  }
  const bool shares = spec.plan.shard != Sharding::kNone;
  const int64_t copies = is_mirrored(layout.schedule) && !spec.plan.is_hybrid() ? 2 : 1;
  // Both moments are read and written.
  const double moments_saved =
      Training{}.optimizer_state_bytes() - spec.training.optimizer_state_bytes();
  const auto of_shard = [&](int64_t parameters, int64_t shards) {
    return static_cast<double>(parameters) / static_cast<double>(shares ? shards * copies : 1);
  };
  const double moved = (of_shard(held.dense, spec.plan.shards()) +
                        of_shard(held.experts, spec.plan.expert_copies())) *
                       (spec.software.optimizer_bytes - 2 * moments_saved);
  Work work;
  work.name = "optimizer";
  work.host_floor = seconds_rounded_up(static_cast<double>(layers) * 1e-6 *
                                       spec.software.host_microseconds_per_layer_optimizer);
  work.kernels.push_back(
      {"optimizer", TimeTerm::kOptimizer,
       MemoryTraffic{Bytes(static_cast<int64_t>(moved)), StreamClass::kOptimizer}});
  return works.push_back(std::move(work));
}

// Replaces the model chunk that each send carries by the op that receives it.
void connect_messages(OpGraph& graph, const TypedVector<ProgramId, std::vector<OpId>>& sends,
                      const StepTables& tables) {
  for (size_t p = 0; p < sends.size(); ++p) {
    for (const OpId send : sends[ProgramId(p)]) {
      Op& op = graph.programs[ProgramId(p)].ops[send.index()];
      const bool forward = graph.works[op.work].stream == Stream::kSendForward;
      const MessageTable& table = forward ? tables.forward : tables.backward;
      op.receive = table.receive(static_cast<int64_t>(op.receive.index()), op.micro_batch);
    }
  }
}

UnitKind layer_unit(const WorkloadSpec& spec, int64_t layer, int64_t in_chunk) {
  const bool dense = spec.model.is_moe() && !spec.model.layer_has_experts(layer);
  if (spec.training.layer_recomputes(layer, in_chunk)) {
    return dense ? UnitKind::kRecomputedDenseLayer : UnitKind::kRecomputedLayer;
  }
  return dense ? UnitKind::kDenseLayer : UnitKind::kLayer;
}

StepLayout step_layout(const WorkloadSpec& spec, const ScheduleRow& schedule,
                       const std::vector<StageLayout>& layouts) {
  const ScheduleShape shape = schedule_shape(spec.plan, spec.training);
  StepLayout layout{schedule, shape, {}, {}};
  const int64_t chunks = model_chunks(schedule, shape);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const ChunkPlace place = place_of_chunk(schedule, shape, 0, chunk);
    const StageLayout& stage = layouts[static_cast<size_t>(place.stage)];
    std::vector<UnitKind> units;
    if (chunk == 0) units.push_back(UnitKind::kEmbedding);
    const auto local = static_cast<size_t>(place.chunk);
    for (int64_t l = 0; l < stage.layers[local]; ++l) {
      units.push_back(layer_unit(spec, stage.first_layer[local] + l, l));
    }
    if (chunk == chunks - 1) {
      const bool tied_here = spec.model.tied_embeddings && stage.embedding_chunk.has_value();
      units.push_back(tied_here ? UnitKind::kTiedHead : UnitKind::kHead);
    }
    layout.units.push_back(std::move(units));
    const auto first = std::find(layout.units.begin(), layout.units.end(), layout.units.back());
    layout.alike.push_back(static_cast<size_t>(first - layout.units.begin()));
  }
  return layout;
}

}  // namespace

ScheduleShape schedule_shape(const ParallelPlan& plan, const Training& training) {
  return {.stages = plan.pp,
          .micro_batches = training.global_batch / (plan.dp * plan.micro_batch),
          .virtual_stages = plan.virtual_stages,
          .consecutive_micro_batches = training.consecutive_micro_batches};
}

OpGraph lower_step(const WorkloadSpec& spec, const ScheduleRow& schedule,
                   const std::vector<StageLayout>& layouts, const LoweringChoice& choice) {
  HERDSIM_CHECK(static_cast<int64_t>(layouts.size()) == spec.plan.pp) << "one layout a stage";
  const StepLayout layout = step_layout(spec, schedule, layouts);
  OpGraph graph;
  graph.grid = spec.plan.grid(is_mirrored(schedule));
  const StepWork work = step_work(spec, graph.grid, graph.works);
  const std::vector<ChunkBuckets> buckets = parameter_buckets(spec, layout.units, work, graph.works);
  const MessageTable none(layout.chunks(), layout.shape.micro_batches);
  StepTables tables{.forward = none, .backward = none};
  TypedVector<ProgramId, std::vector<OpId>> sends;
  for (int64_t stage = 0; stage < spec.plan.pp; ++stage) {
    const WorkId optimizer = optimizer_work(spec, layout, stage, graph.works);
    const Program* const before =
        stage > 0 ? &graph.programs[ProgramId(static_cast<size_t>(stage - 1))] : nullptr;
    StageProgram lowered = stage_program(
        {spec, layout, work, buckets, graph.works, stage, optimizer, before, choice.op_by_op},
        tables);
    graph.programs.push_back(std::move(lowered.program));
    sends.push_back(std::move(lowered.sends));
  }
  connect_messages(graph, sends, tables);
  graph.uneven[static_cast<size_t>(Uneven::kExperts)] = expert_load(spec, graph.grid);
  graph.uneven[static_cast<size_t>(Uneven::kDocuments)] = document_load(spec, graph.grid);
  return graph;
}

ModelFlops model_flops(const ModelArchitecture& model, const Training& training) {
  const auto tokens = static_cast<double>(training.tokens());
  const double matrices =
      static_cast<double>(model.active_matrix_parameters() + model.embedding_parameters());
  // Forward 2 s (h_q + h_v) a token and layer over the full square, backward twice that.
  const double square =
      6.0 * static_cast<double>(model.layers * (model.query_width() + model.attention_width())) *
      static_cast<double>(training.sequence_length);
  // Of every second layer only the band of its window.
  const double band = static_cast<double>(model.alternate_window) /
                      static_cast<double>(training.sequence_length);
  const double masked = model.alternate_window > 0 ? square / 2 * std::min(0.5, band) + square / 4
                                                   : square / 2;
  return {.causal = Flops(tokens * (6 * matrices + masked)),
          .full = Flops(tokens * (6 * matrices + square))};
}

}  // namespace herdsim
