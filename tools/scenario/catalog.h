// The catalogue: named scenarios, models, clusters and software stacks, text files under catalog/
// that are embedded into the program at build time, so that it needs no installed files.
//
//   for (std::string_view name : catalog_names(CatalogKind::kModels)) ...
//   catalog_find(CatalogKind::kModels, "llama3-405b")->text
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace herdsim {

enum class CatalogKind : uint8_t { kScenarios, kModels, kClusters, kSoftware };

struct CatalogKindRow {
  CatalogKind kind;
  std::string_view folder;    // under catalog/, and the word of `herdsim catalog KIND`
  std::string_view singular;  // in messages: "model"
};

// Every kind, in the order of `herdsim catalog`; the row of a kind is at its value.
constexpr std::array<CatalogKindRow, 4> kCatalogKinds = {{
    {CatalogKind::kScenarios, "scenarios", "scenario"},
    {CatalogKind::kModels, "models", "model"},
    {CatalogKind::kClusters, "clusters", "cluster"},
    {CatalogKind::kSoftware, "software", "software stack"},
}};

constexpr const CatalogKindRow& catalog_kind(CatalogKind kind) {
  return kCatalogKinds[static_cast<size_t>(kind)];
}

struct CatalogEntry {
  std::string_view name;  // "llama3-405b"
  std::string_view file;  // "catalog/models/llama3-405b.textproto"
  std::string_view text;
  // The first line of its leading comment, which says what it is.
  std::string_view help() const;
};

// In alphabetical order.
std::vector<CatalogEntry> catalog_entries(CatalogKind kind);
std::vector<std::string> catalog_names(CatalogKind kind);
std::optional<CatalogEntry> catalog_find(CatalogKind kind, std::string_view name);

}  // namespace herdsim
