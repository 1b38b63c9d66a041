#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/report/step_report.h"

namespace herdsim {
namespace {

using Json = nlohmann::ordered_json;

Json time_account(const StepResult& r) {
  Json account;
  const auto seconds = r.time_account_seconds();
  for (size_t i = 0; i < kTimeTerms; ++i) account[std::string(kTimeTermNames[i])] = seconds[i];
  return account;
}

Json link_tiers(const StepResult& r) {
  Json tiers = Json::array();
  for (const TierUse& tier : r.tiers) {
    tiers.push_back({{"tier", tier.tier},
                     {"links", tier.links},
                     {"mean_use", tier.mean_use},
                     {"highest_use", tier.highest_use}});
  }
  return tiers;
}

Json top_links(const StepResult& r) {
  constexpr size_t kShown = 16;
  Json links = Json::array();
  for (size_t i = 0; i < std::min(kShown, r.links.size()); ++i) {
    const LinkUse& link = r.links[i];
    Json loads;
    for (const LinkUse::Load& load : link.loads) loads[load.transfer] = load.carried.count();
    links.push_back({{"tier", link.tier},
                     {"first", link.first},
                     {"links", link.links},
                     {"capacity_bytes_per_second", link.capacity.bytes_per_second()},
                     {"carried_bytes", link.carried.count()},
                     {"use", link.use(r.step_time)},
                     {"carried_bytes_by_transfer", loads}});
  }
  return links;
}

Json collisions(const StepResult& r) {
  Json all = Json::array();
  for (const Collisions& c : r.collisions) {
    all.push_back({{"transfers", c.transfers},
                   {"slowest_factor", c.slowest_factor},
                   {"slowest_factor_error", c.error},
                   {"mean_factor", c.mean_factor},
                   {"connections", c.connections}});
  }
  return all;
}

Json jobs(const StepResult& r) {
  Json all = Json::array();
  for (const JobShare& job : r.jobs) {
    all.push_back({{"scenario", job.name},
                   {"gpus", job.gpus},
                   {"begins_s", job.begins.seconds()},
                   {"step_time_s", job.step_time.seconds()},
                   {"step_time_alone_s", job.alone.seconds()},
                   {"mfu", job.mfu},
                   {"mfu_alone", job.mfu_alone}});
  }
  return all;
}

Json storage(const StepResult& r) {
  Json flows = Json::array();
  for (const StorageFlow& flow : r.storage) {
    Json one = {{"flow", flow.what},
                {"bytes", flow.bytes.count()},
                {"begins_s", flow.begins.seconds()},
                {"takes_s", flow.took.seconds()}};
    if (!flow.job.empty()) one["job"] = flow.job;
    flows.push_back(std::move(one));
  }
  return {{"flows", flows},
          {"step_time_without_s", r.without_storage.seconds()},
          {"costs_s", (r.step_time - r.without_storage).seconds()}};
}

Json object_of(const StepResult& r) {
  const StageMemory* peak = r.peak_stage();
  const bool has_peak_rate = r.peak.per_second() > 0;
  Json object = {
      {"scenario", r.scenario},
      {"gpus", r.gpus},
      {"step_time_s", r.step_time.seconds()},
      {"tokens_per_step", r.tokens_per_step},
      {"tokens_per_second_per_gpu", r.tokens_per_second_per_gpu()},
      {"model_tflops_per_gpu", r.flops_per_gpu_causal().teraflops()},
      {"mfu", has_peak_rate ? Json(r.mfu_causal()) : Json()},
      {"mfu_convention",
       {{"attention_flops", "causal"}, {"peak_tflops", r.peak.teraflops()}, {"dtype", r.dtype}}},
      {"mfu_full_attention", has_peak_rate ? Json(r.mfu_full()) : Json()},
      {"time_account_s", time_account(r)},
      {"bubble_fraction", r.bubble_fraction()},
      {"peak_memory_bytes", peak != nullptr ? Json(peak->peak.count()) : Json()},
      {"peak_memory_stage", peak != nullptr ? Json(peak->stage) : Json()},
      {"peak_memory_moment", peak != nullptr ? Json(peak->moment) : Json()},
      {"fits", r.fits()},
      {"link_tiers", link_tiers(r)},
      {"top_links", top_links(r)},
      {"collisions", collisions(r)},
      {"simulated_ranks", r.simulated_ranks},
      {"events", r.events},
      {"wall_s", r.wall_seconds},
      {"fingerprint", r.fingerprint()},
      {"warnings", r.all_warnings()}};
  if (!r.jobs.empty()) object["jobs"] = jobs(r);
  if (!r.storage.empty()) object["storage"] = storage(r);
  return object;
}

std::string text_of(const Json& json) {
  return json.dump(2, ' ', false, nlohmann::detail::error_handler_t::replace) + "\n";
}

}  // namespace

std::string step_json(const StepResult& result) { return text_of(object_of(result)); }

std::string steps_json(std::span<const StepResult> results) {
  Json all = Json::array();
  for (const StepResult& result : results) all.push_back(object_of(result));
  return text_of(all);
}

}  // namespace herdsim
