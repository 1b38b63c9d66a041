// Pieces of a report for an 80-column terminal that are no tables.
#pragma once

#include <string>
#include <string_view>

namespace herdsim {

// `text` broken at spaces behind `label`, the further lines below its beginning.
//   paragraph("warning", "...")
std::string paragraph(std::string_view label, std::string_view text);

// `share` of `width` columns as '#', rounded to the nearest; a share above zero shows at least one.
std::string bar(double share, size_t width);

}  // namespace herdsim
