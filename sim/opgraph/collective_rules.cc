#include "sim/opgraph/collective_rules.h"

#include <algorithm>
#include <string>
#include <utility>

namespace herdsim {
namespace {

const CollectiveRule* rule_of(std::span<const CollectiveRule> rules, const Work& work) {
  if (work.kind != WorkKind::kCollective || work.bytes <= Bytes()) return nullptr;
  return rule_about(rules, work.collective, work.communicator);
}

// The works that stand for each work, in their order: itself, or the phases of it, of which it
// becomes the first.
TypedVector<WorkId, std::vector<WorkId>> split_works(std::span<const CollectiveRule> rules,
                                                     TypedVector<WorkId, Work>& works) {
  TypedVector<WorkId, std::vector<WorkId>> parts;
  const size_t count = works.size();
  for (size_t w = 0; w < count; ++w) {
    const WorkId id(w);
    parts.push_back({id});
    const CollectiveRule* const rule = rule_of(rules, works[id]);
    if (rule == nullptr) continue;
    const std::vector<PlacedPhase> phases = placed_phases(rule->kind, rule->phases);
    const Work whole = works[id];
    for (size_t i = 0; i < phases.size(); ++i) {
      Work phase = whole;
      phase.collective = phases[i].phase.kind;
      phase.phase = phases[i];
      if (phases.size() > 1)
        phase.name += " " + std::to_string(i + 1) + "/" + std::to_string(phases.size());
      if (i == 0) {
        works[id] = std::move(phase);
      } else {
        parts[id].push_back(works.push_back(std::move(phase)));
      }
    }
  }
  return parts;
}

struct SplitProgram {
  Program program;
  std::vector<OpId> first, last;  // by old op
};

SplitProgram split_program(const Program& old,
                           const TypedVector<WorkId, std::vector<WorkId>>& parts) {
  SplitProgram split;
  Program& program = split.program;
  for (const Op& op : old.ops) {
    split.first.emplace_back(program.ops.size());
    for (const WorkId work : parts[op.work]) {
      Op phase = op;
      phase.work = work;
      phase.first_dependency = static_cast<uint32_t>(program.dependencies.size());
      // Those after the first wait for the one before them on their stream.
      const bool is_first = work == parts[op.work].front();
      phase.dependencies = is_first ? op.dependencies : 0;
      if (is_first) {
        for (const OpId before : old.dependencies_of(op))
          program.dependencies.push_back(split.last[before.index()]);
      }
      program.ops.push_back(phase);
    }
    split.last.emplace_back(program.ops.size() - 1);
  }
  for (const std::vector<OpId>& order : old.stream_order) {
    program.stream_order.emplace_back();
    for (const OpId op : order) {
      for (size_t o = split.first[op.index()].index(); o <= split.last[op.index()].index(); ++o) {
        program.stream_order.back().emplace_back(o);
      }
    }
  }
  return split;
}

}  // namespace

const CollectiveRule* rule_about(std::span<const CollectiveRule> rules, CollectiveKind kind,
                                 Communicator communicator) {
  const auto rule = std::find_if(rules.begin(), rules.end(), [&](const CollectiveRule& r) {
    return r.kind == kind && r.communicators.test(static_cast<size_t>(communicator));
  });
  return rule == rules.end() ? nullptr : &*rule;
}

void apply_rules(std::span<const CollectiveRule> rules, OpGraph& graph) {
  if (rules.empty()) return;
  const TypedVector<WorkId, std::vector<WorkId>> parts = split_works(rules, graph.works);
  TypedVector<ProgramId, SplitProgram> split;
  for (const Program& program : graph.programs) split.push_back(split_program(program, parts));
  for (size_t p = 0; p < split.size(); ++p) {
    Program& program = split[ProgramId(p)].program;
    for (Op& op : program.ops) {
      if (graph.works[op.work].kind == WorkKind::kSend)
        op.receive = split[op.peer].first[op.receive.index()];
    }
    graph.programs[ProgramId(p)] = std::move(program);
  }
}

}  // namespace herdsim
