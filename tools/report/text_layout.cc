#include "tools/report/text_layout.h"

#include <algorithm>
#include <cmath>

#include "sim/base/table.h"

namespace herdsim {

std::string paragraph(std::string_view label, std::string_view text) {
  if (label.empty()) {
    TextTable lines({{"", Align::kWrap}});
    lines.add_row({std::string(text)});
    return lines.text();
  }
  TextTable lines({{""}, {"", Align::kWrap}});
  lines.add_row({std::string(label), std::string(text)});
  return lines.text();
}

std::string bar(double share, size_t width) {
  if (!(share > 0)) return "";
  const double columns = std::round(std::min(share, 1.0) * static_cast<double>(width));
  return std::string(std::max<size_t>(1, static_cast<size_t>(columns)), '#');
}

}  // namespace herdsim
