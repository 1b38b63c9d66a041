// The backward pass that attention and feed-forward blocks share: a row-parallel product, what lies
// in the middle, and column-parallel products.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "workloads/layer_blocks.h"

namespace herdsim {

struct ColumnRowBlock {
  Product row;
  // Between the products, run with the row product's kernels; and what else has to happen after
  // them.
  std::vector<Kernel> middle;
  std::function<int(int)> after_middle;
  std::vector<Product> columns;
  int64_t input = 0;    // channels that the column products take, gathered
  int64_t readers = 1;  // products that take them, where the model has these apart
  // What made that input from this rank's tokens, if anything did (latents).
  std::optional<Product> source;
};

// The regathered input hides under the data gradient of the column products, and the reduce-scatter
// under their weight gradient, where the stack overlaps them.
int append_block_backward(const BlockBuilder& b, int at, BackwardPart part,
                          const ColumnRowBlock& block);

}  // namespace herdsim
