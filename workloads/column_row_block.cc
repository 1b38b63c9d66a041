#include "workloads/column_row_block.h"

namespace herdsim {
namespace {

// Gradients of what made the column products' input, on this rank's tokens.
std::vector<Kernel> source_kernels(const BlockBuilder& b, BackwardPart part,
                                   const Product& source) {
  std::vector<Kernel> kernels;
  const int64_t rows = b.spec.local_tokens();
  if (has_input(part)) kernels.push_back(b.k.dgrad(source, rows));
  if (has_weight(part)) b.k.append_wgrad(kernels, source, rows);
  return kernels;
}

}  // namespace

int append_block_backward(const BlockBuilder& b, int at, BackwardPart part,
                          const ColumnRowBlock& block) {
  const int64_t tokens = b.k.tokens();
  const bool input = has_input(part), weight = has_weight(part);
  std::vector<Kernel> inner, column_data, column_weight;
  b.k.append_backward_casts(inner, block.row, tokens, LayerKernels::Gathered::kYes, input, weight);
  if (input) inner.push_back(b.k.dgrad(block.row, tokens));
  if (weight) b.k.append_wgrad(inner, block.row, tokens);
  if (input) inner.insert(inner.end(), block.middle.begin(), block.middle.end());
  for (const Product& column : block.columns) {
    constexpr auto kOwn = LayerKernels::Gathered::kNo;
    column_data.push_back(b.k.dgrad(column, tokens));
    b.k.append_backward_casts(column_data, column, tokens, kOwn, true, false);
    if (!weight) continue;
    b.k.append_wgrad(column_weight, column, tokens);
    b.k.append_backward_casts(column_weight, column, tokens, kOwn, false, true);
  }
  const std::string& row = block.row.name;
  const std::string& column = block.columns.front().name;
  const bool split = b.spec.splits_sequence();
  const bool regather = split && weight && b.spec.software.tp_regather_in_backward;
  const Bytes regathered = b.spec.gathered_activation(block.input) * b.k.gathers(block.readers);
  if (!input) {
    const int inputs = regather ? b.t.tensor(CollectiveKind::kAllGather, regathered, {at}) : at;
    at = b.t.compute(row + " wgrad", inner, {at});
    if (block.source) {
      const auto more = source_kernels(b, part, *block.source);
      column_weight.insert(column_weight.end(), more.begin(), more.end());
    }
    return b.t.compute(column + " wgrad", column_weight, {at, inputs});
  }

  at = b.t.gather_then(row + " backward", b.spec.gathered_activation(), inner, {at});
  if (block.after_middle) at = block.after_middle(at);
  const bool overlap = b.spec.software.tp_backward_overlap;
  int gathered = at;
  if (regather) gathered = b.t.tensor(CollectiveKind::kAllGather, regathered, {at});
  const int data = b.t.compute(column + " dgrad", column_data, {overlap ? at : gathered});
  const auto reduce = split ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
  const int reduced = b.t.tensor(
      reduce, b.spec.activation(block.input) * b.k.reductions(block.readers), {data, gathered});
  int done = b.t.compute(column + " wgrad", column_weight,
                         overlap ? std::vector<int>{data, gathered} : std::vector<int>{reduced});
  if (block.source) {
    done = b.t.compute(block.source->name + " backward", source_kernels(b, part, *block.source),
                       {reduced, done});
  }
  return b.t.compute("gradient norm", {b.k.elementwise("norm", b.spec.software.backward, 0.3)},
                     {reduced, done});
}

}  // namespace herdsim
