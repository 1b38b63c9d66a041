// Where a number comes from. Every number that enters a result carries one of these labels and a source.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace herdsim {

enum class Evidence : uint8_t {
  kMeasured,   // by this project's harness on the device named
  kPublished,  // printed by a public source, or fitted from such prints
  kVendor,     // a data sheet or vendor document
  kAssumed,    // nobody stated it; a range belongs beside it
};

constexpr std::array<std::string_view, 4> kEvidenceNames = {"measured", "published", "vendor", "assumed"};

constexpr std::string_view evidence_name(Evidence e) { return kEvidenceNames[static_cast<size_t>(e)]; }

struct Provenance {
  Evidence evidence = Evidence::kAssumed;
  std::string source;
};

}  // namespace herdsim
