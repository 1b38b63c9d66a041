#include "sim/reliability/reliability_base.h"

namespace herdsim {
namespace {

constexpr double per_thousand_node_days(double count) { return count / 1000 / 24; }

std::vector<BaseClass> llama3_classes() {
  std::vector<BaseClass> list;
  for (const std::string_view name :
       {"faulty_gpu", "gpu_hbm3", "software_bug", "network_switch_cable",
        "unplanned_host_maintenance", "gpu_sram", "gpu_system_processor_gsp", "nic",
        "nccl_watchdog_timeout", "silent_data_corruption", "gpu_thermal_interface_sensor", "ssd",
        "power_supply", "server_chassis", "io_expansion_board", "dependency_service", "cpu",
        "system_memory", "planned_maintenance"}) {
    list.push_back({.name = name, .rate_per_hour = std::nullopt});
  }
  return list;
}

std::vector<BaseClass> llama3_with_fewer_gpu_faults() {
  std::vector<BaseClass> list = llama3_classes();
  list.front().rate_per_hour = 126 / kLlama3GpuHours;
  return list;
}

std::vector<BaseClass> everything() {
  std::vector<BaseClass> list = llama3_classes();
  for (const std::string_view name :
       {"link_flap", "power_domain", "pod_switch", "storage_outage", "code_push"}) {
    list.push_back({.name = name, .rate_per_hour = std::nullopt});
  }
  return list;
}

ReliabilityBase total(std::string_view name, std::string_view help, double rate,
                      std::string_view source) {
  return {.name = name,
          .help = help,
          .source = source,
          .classes = {{.name = "node_failure", .rate_per_hour = per_thousand_node_days(rate)}},
          .slow = {}};
}

std::vector<ReliabilityBase> make_rows() {
  return {
      {.name = "llama3-54-days",
       .help = "the published 54 days of Llama 3 405B: 419 unexpected, 47 planned at 16,384 GPUs",
       .source = "arXiv:2407.21783v3, Table 5, counts",
       .classes = llama3_classes(),
       .slow = {"diurnal_clock"}},
      {.name = "llama3-126-gpu-faults",
       .help = "the same, with the count the printed 30.1 % and 58.7 % would need",
       .source = "sensitivity: the percentages of Table 5 fit 126 GPU faults, its count is 148",
       .classes = llama3_with_fewer_gpu_faults(),
       .slow = {"diurnal_clock"}},
      {.name = "shared-fleet",
       .help = "Llama 3's classes with flaps, outages, code pushes and fail-slow parts",
       .source = "arXiv:2407.21783v3; the additions are assumed, see each row",
       .classes = everything(),
       .slow = {"diurnal_clock", "slow_hosts", "bad_worker", "fail_slow_network",
                "fail_slow_large_job"}},
      {.name = "hpn-links",
       .help = "only NIC-ToR links and ToRs, at HPN's rates",
       .source = "HPN, SIGCOMM'24",
       .classes = {{.name = "nic_tor_link", .rate_per_hour = {}},
                   {.name = "tor_switch", .rate_per_hour = {}}},
       .slow = {}},
      total("rsc-1", "Meta's RSC-1, A100: 6.50 failures a 1,000 node-days", 6.50,
            "Kokolis et al., arXiv:2410.21680"),
      total("rsc-2", "Meta's RSC-2, A100: 2.34 failures a 1,000 node-days", 2.34,
            "Kokolis et al., arXiv:2410.21680"),
      total("ft-hsdp-100k", "100,000 GPUs, one interruption in 18 minutes", 6.4,
            "FT-HSDP, arXiv:2602.00277"),
      total("opt-175b", "992 A100s of OPT-175B: 16.1 failures a 1,000 node-days", 16.1,
            "metaseq chronicles"),
      total("young-fleet", "a new or badly run fleet: 20 failures a 1,000 node-days", 20,
            "band of 16 to 24, see opt-175b"),
      {.name = "none", .help = "nothing ever fails", .source = "", .classes = {}, .slow = {}},
  };
}

}  // namespace

const std::vector<ReliabilityBase>& reliability_bases() {
  static const std::vector<ReliabilityBase> rows = make_rows();
  return rows;
}

const ReliabilityBase* find_reliability_base(std::string_view name) {
  for (const ReliabilityBase& row : reliability_bases()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::vector<FailureClass> classes_of(const ReliabilityBase& base) {
  std::vector<FailureClass> list;
  for (const BaseClass& entry : base.classes) {
    list.push_back(*find_failure_class(entry.name));
    if (entry.rate_per_hour) list.back().rate_per_hour = *entry.rate_per_hour;
  }
  return list;
}

std::vector<SlowComponent> slow_components_of(const ReliabilityBase& base) {
  std::vector<SlowComponent> list;
  for (const std::string_view name : base.slow) list.push_back(*find_slow_component(name));
  return list;
}

double unplanned_rate_per_hour(const std::vector<FailureClass>& classes,
                               const FailureDomains& domains) {
  double sum = 0;
  for (const FailureClass& row : classes) {
    if (row.effect != Effect::kStop && row.effect != Effect::kCorruption) continue;
    sum += row.rate_per_hour * static_cast<double>(domains.units(row.per));
  }
  return sum;
}

}  // namespace herdsim
