// The catalogue's scenarios of which a publication printed the result, predicted and compared.
#pragma once

#include <string>
#include <vector>

namespace herdsim {

struct PublishedComparison {
  std::string scenario, source;
  double predicted_mfu = 0;  // attention counted half, as the mask is causal
  double predicted_mfu_full = 0;
  double published_mfu = 0;
  double tolerance = 0;  // of the MFU, absolute

  bool within() const;
};

// Of every catalogue scenario with a published MFU. Sequences beyond 100,000 tokens have a wider
// tolerance: documents are masked and the convention is not stated.
std::vector<PublishedComparison> compare_published_scenarios();

std::string published_table(const std::vector<PublishedComparison>& rows);
std::string published_json(const std::vector<PublishedComparison>& rows);
std::string published_csv(const std::vector<PublishedComparison>& rows);

}  // namespace herdsim
