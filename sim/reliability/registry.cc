#include <algorithm>

#include "sim/reliability/failure_class.h"

namespace herdsim {
namespace {

constexpr double per_llama3_gpu_hour(double count) { return count / kLlama3GpuHours; }
constexpr double per_month(double share) { return share / (365.25 / 12 * 24); }

constexpr double kHour = 3600;
// 2 h of automatic repair, then in 80 % of cases 2 days by hand: AIReSim's defaults, mean 40.4 h.
constexpr double kAutomaticRepair = 2 * kHour;
constexpr double kManualRepair = 50 * kHour;
// NCCL_IB_TIMEOUT 20 and RETRY_CNT 7: 4.096 us * 2^20 * 7.
constexpr double kNetworkTimeout = 30.1;

constexpr RandomDuration after(double seconds) {
  return {.shape = DurationShape::kConstant, .mean_seconds = seconds};
}
// Repair times are lognormal (Schroeder and Gibson, DSN'06); sigma 0.7 is assumed, within 0.5 to
// 0.8.
constexpr RandomDuration mended_after(double mean_seconds) {
  return {.shape = DurationShape::kLognormal, .mean_seconds = mean_seconds, .parameter = 0.7};
}

constexpr std::string_view kTable5 = "Llama 3, arXiv:2407.21783v3, Table 5, counts";
constexpr std::string_view kHpn =
    "HPN, SIGCOMM'24: 0.057 % of NIC-ToR links and 0.051 % of ToRs a month";

FailureClass llama3(std::string_view name, std::string_view help, double count, double detection) {
  FailureClass row;
  row.name = name;
  row.help = help;
  row.rate_per_hour = per_llama3_gpu_hour(count);
  row.detection = after(detection);
  row.source = kTable5;
  return row;
}

FailureClass replaced(FailureClass row, double repair_hours) {
  row.remedy = Remedy::kReplace;
  row.repair = mended_after(repair_hours * kHour);
  return row;
}

// Automatic repair first, by hand if that fails: AIReSim's defaults.
FailureClass replaced_in_two_stages(FailureClass row) {
  row.remedy = Remedy::kReplace;
  row.quick_share = 0.2;
  row.quick_repair_seconds = kAutomaticRepair;
  row.repair = mended_after(kManualRepair);
  row.repair_evidence = Evidence::kPublished;
  return row;
}

// A reset that remaps rows mends 70 %; the rest are swapped like any GPU.
FailureClass reset_or_replaced(FailureClass row) {
  row.remedy = Remedy::kReplace;
  row.quick_share = 0.7;
  row.quick_repair_seconds = kHour;
  row.repair = mended_after(40.4 * kHour);
  return row;
}

FailureClass restarted(FailureClass row) {
  row.remedy = Remedy::kRestart;
  row.scope = Scope::kJob;
  row.per = Exposure::kGpu;
  return row;
}

// The 18 causes of the published window, by count, and its planned interruptions.
void append_llama3(std::vector<FailureClass>& rows) {
  rows.push_back(replaced_in_two_stages(llama3("faulty_gpu", "GPU or its NVLink", 148, 10)));
  rows.back().detection_evidence = Evidence::kPublished;
  rows.push_back(
      reset_or_replaced(llama3("gpu_hbm3", "uncorrectable error of GPU memory", 72, 10)));
  rows.push_back(restarted(llama3("software_bug", "the job's own software", 54, 60)));

  FailureClass network =
      replaced(llama3("network_switch_cable", "switch, cable or optic; one in 19 is a whole ToR",
                      35, kNetworkTimeout),
               4);
  network.on_network_rail = true;
  network.on_one_plane = true;
  network.wider_share = 0.053;  // HPN: 0.9 ToR failures to 16.6 of links at this size and window
  network.wider_scope = Scope::kTor;
  network.detection_evidence = Evidence::kVendor;
  rows.push_back(network);

  rows.push_back(replaced(llama3("unplanned_host_maintenance", "a host that must go", 32, 30), 6));
  rows.push_back(
      reset_or_replaced(llama3("gpu_sram", "uncorrectable error of on-chip memory", 19, 10)));
  rows.push_back(replaced(
      llama3("gpu_system_processor_gsp", "the GPU's system processor; the host reboots", 17, 60),
      12));
  FailureClass nic = replaced_in_two_stages(llama3("nic", "network card", 7, kNetworkTimeout));
  nic.on_network_rail = true;
  nic.detection_evidence = Evidence::kVendor;
  rows.push_back(nic);
  rows.push_back(restarted(llama3("nccl_watchdog_timeout", "a hang of unknown cause", 7, 600)));
  rows.back().detection_evidence = Evidence::kPublished;

  FailureClass corruption = replaced_in_two_stages(
      llama3("silent_data_corruption", "a GPU computes wrong results", 6, 0));
  corruption.effect = Effect::kCorruption;
  // 4 h is read as the mean. As the median (mean 12.3 h) it would push the run of the paper below
  // the 90 % it reports.
  corruption.detection = {
      .shape = DurationShape::kLognormal, .mean_seconds = 4 * kHour, .parameter = 1.5};
  corruption.diagnosis_seconds = 600;  // assumed: replay on halves of the machine finds the host
  rows.push_back(corruption);

  rows.push_back(replaced(llama3("gpu_thermal_interface_sensor", "overheating GPU", 6, 120), 48));
  rows.push_back(replaced(llama3("ssd", "local disk", 3, 30), 24));
  rows.push_back(replaced(llama3("power_supply", "power supply", 3, 10), 24));
  rows.push_back(replaced(llama3("server_chassis", "chassis", 2, 30), 48));
  rows.push_back(replaced(llama3("io_expansion_board", "IO board", 2, 30), 48));
  rows.push_back(restarted(llama3("dependency_service", "a service the job needs", 2, 60)));
  rows.push_back(replaced(llama3("cpu", "processor of the host", 2, 10), 48));
  rows.push_back(replaced(llama3("system_memory", "memory of the host", 2, 10), 24));

  FailureClass planned =
      restarted(llama3("planned_maintenance", "maintenance, about daily", 47, 0));
  planned.effect = Effect::kPlannedStop;
  planned.law.shape = ArrivalShape::kScheduled;
  planned.source = "Llama 3, arXiv:2407.21783v3, 3.3.4: 47 of 466 interruptions were planned";
  rows.push_back(planned);
}

// Beyond that table: parts of the fabric at published rates, and what users ask about.
void append_others(std::vector<FailureClass>& rows) {
  rows.push_back({.name = "node_failure",
                  .help = "any failure of a host, where only a total rate is known",
                  .per = Exposure::kHost,
                  .rate_per_hour = 6.50 / 1000 / 24,
                  .detection = after(0),
                  .repair = mended_after(40.4 * kHour),
                  .source = "Kokolis et al., arXiv:2410.21680: 6.50 a 1,000 node-days (RSC-1)"});
  rows.push_back({.name = "nic_tor_link",
                  .help = "the cable or optic between a NIC and its ToR",
                  .per = Exposure::kNicLink,
                  .rate_per_hour = per_month(0.00057),
                  .on_network_rail = true,
                  .on_one_plane = true,
                  .detection = after(kNetworkTimeout),
                  .repair = mended_after(4 * kHour),
                  .detection_evidence = Evidence::kVendor,
                  .source = kHpn});
  rows.push_back({.name = "tor_switch",
                  .help = "a ToR: every host under it, or a rail of each",
                  .per = Exposure::kTor,
                  .rate_per_hour = per_month(0.00051),
                  .scope = Scope::kTor,
                  .on_network_rail = true,
                  .on_one_plane = true,
                  .detection = after(kNetworkTimeout),
                  .repair = mended_after(4 * kHour),
                  .detection_evidence = Evidence::kVendor,
                  .source = kHpn});
  rows.push_back(
      {.name = "link_flap",
       .help = "a link down for seconds; shorter than NCCL's retries it only stalls",
       .effect = Effect::kStall,
       .per = Exposure::kNicLink,
       .rate_per_hour = 5e-5,
       .scope = Scope::kJob,
       .on_network_rail = true,
       .on_one_plane = true,
       .detection = {.shape = DurationShape::kLognormal, .mean_seconds = 5.11, .parameter = 0.7},
       .remedy = Remedy::kRestart,
       .rate_evidence = Evidence::kAssumed,
       .rate_range = RateRange{0.1, 10,
                               "HPN, SIGCOMM'24 counts 5,000 to 60,000 a day in a fleet whose size it does not say"},
       .source = "MegaScale, NSDI'24: gaps of several seconds; median 4 s, sigma 0.7 and the rate "
                 "are assumed"});
  rows.push_back({.name = "power_domain",
                  .help = "a busway or row loses power",
                  .per = Exposure::kPowerDomain,
                  .rate_per_hour = 2e-5,
                  .scope = Scope::kPowerDomain,
                  .detection = after(10),
                  .repair = mended_after(4 * kHour),
                  .rate_evidence = Evidence::kAssumed,
                  .rate_range = RateRange{0.2, 5, "once in 1 to 30 years a domain; no publication counts them"},
                  .source = "assumed: once in 6 years a domain"});
  rows.push_back({.name = "pod_switch",
                  .help = "a whole pod drops out",
                  .per = Exposure::kPod,
                  .rate_per_hour = 1e-5,
                  .scope = Scope::kPod,
                  .detection = after(kNetworkTimeout),
                  .repair = mended_after(2 * kHour),
                  .rate_evidence = Evidence::kAssumed,
                  .rate_range = RateRange{0.07, 5,
                                          "from one ToR's published rate (HPN, SIGCOMM'24) to once in 2 years a pod"},
                  .source = "assumed: once in 11 years a pod"});
  rows.push_back(
      {.name = "storage_outage",
       .help = "the checkpoint store does not answer",
       .effect = Effect::kStorageOutage,
       .per = Exposure::kJob,
       .rate_per_hour = 1.0 / (30 * 24),
       .scope = Scope::kJob,
       .detection = {.shape = DurationShape::kLognormal, .mean_seconds = 1800, .parameter = 0.8},
       .remedy = Remedy::kRestart,
       .rate_evidence = Evidence::kAssumed,
       .rate_range = RateRange{0.25, 4, "once a week to once in 4 months; no publication counts them"},
       .source = "assumed: half an hour a month"});
  rows.push_back(
      {.name = "code_push",
       .help = "a planned restart on new code",
       .effect = Effect::kPlannedStop,
       .per = Exposure::kJob,
       .rate_per_hour = 1.0 / 24,
       .scope = Scope::kJob,
       .detection = after(0),
       .remedy = Remedy::kRestart,
       .rate_evidence = Evidence::kAssumed,
       .rate_range = RateRange{0, 3, "none to 3 a day; ByteRobust (SOSP'25) shows 28 runs in 10 days"},
       .source =
           "assumed within 0 to 3 a day; ByteRobust (SOSP'25) Fig. 2 shows 28 runs in 10 days"});
}

std::vector<FailureClass> make_rows() {
  std::vector<FailureClass> rows;
  append_llama3(rows);
  append_others(rows);
  return rows;
}

}  // namespace

const std::vector<FailureClass>& failure_classes() {
  static const std::vector<FailureClass> rows = make_rows();
  return rows;
}

const FailureClass* find_failure_class(std::string_view name) {
  for (const FailureClass& row : failure_classes()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

int64_t FailureDomains::units(Exposure per) const {
  const auto groups = [this](int64_t size) { return (gpus + size - 1) / size; };
  switch (per) {
    case Exposure::kJob:
      return 1;
    case Exposure::kGpu:
      return gpus;
    case Exposure::kHost:
      return hosts();
    case Exposure::kNicLink:
      return gpus * planes;
    case Exposure::kTor:
      return groups(gpus_per_tor) * planes;
    case Exposure::kPowerDomain:
      return groups(gpus_per_host * hosts_per_power_domain);
    case Exposure::kPod:
      return groups(gpus_per_pod);
  }
  return 0;
}

int64_t FailureDomains::hosts_lost(Scope scope) const {
  switch (scope) {
    case Scope::kJob:
      return 0;
    case Scope::kHost:
      return 1;
    case Scope::kTor:
      return std::clamp<int64_t>(gpus_per_tor * rails / gpus_per_host, 1, hosts());
    case Scope::kPowerDomain:
      return std::min(hosts_per_power_domain, hosts());
    case Scope::kPod:
      return std::clamp<int64_t>(gpus_per_pod / gpus_per_host, 1, hosts());
  }
  return 0;
}

std::vector<int64_t> FailureDomains::gpus_under_tor_of(int64_t gpu) const {
  const auto rail = [this](int64_t g) { return g % gpus_per_host * rails / gpus_per_host; };
  const int64_t group = hosts_lost(Scope::kTor) * gpus_per_host;
  const int64_t first = gpu / group * group;
  std::vector<int64_t> all;
  for (int64_t g = first; g < std::min(gpus, first + group); ++g) {
    if (rail(g) == rail(gpu)) all.push_back(g);
  }
  return all;
}

}  // namespace herdsim
