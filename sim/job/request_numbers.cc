#include "sim/job/request_numbers.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>
#include <utility>

namespace herdsim {

void require(bool good, std::string_view field, std::string problem, std::string_view allowed,
             Faults& faults) {
  if (good) return;
  faults.add({.field = std::string(field),
              .problem = std::move(problem),
              .allowed = std::string(allowed)});
}

namespace {

void require_at_least_zero(double value, std::string_view field, Faults& faults) {
  require(value >= 0 && std::isfinite(value), field,
          fmt::format("{:g} is not a finite number of 0 or more", value), "0 or more", faults);
}

void check_reliability(const ReliabilityRequest& r, Faults& faults) {
  require_at_least_zero(r.rate_scale, "reliability.rate_scale", faults);
  require_at_least_zero(r.gpu_mtbf_h, "reliability.gpu_mtbf_h", faults);
  require_at_least_zero(r.failures_per_1000_node_days, "reliability.failures_per_1000_node_days",
                        faults);
  require_at_least_zero(r.job_mtbf_h, "reliability.job_mtbf_h", faults);
  require(r.weibull_k >= 0.2 && r.weibull_k <= 10, "reliability.weibull_k",
          fmt::format("{:g}", r.weibull_k), "0.2 to 10", faults);
  require(r.lemon_share >= 0 && r.lemon_share < 1, "reliability.lemon_share",
          fmt::format("{:g}", r.lemon_share), "0 to below 1", faults);
  require(r.lemon_factor >= 1, "reliability.lemon_factor", fmt::format("{:g}", r.lemon_factor),
          "1 or more", faults);
  require_at_least_zero(r.evict_slow_after_s, "reliability.evict_slow_after_s", faults);
  require_at_least_zero(r.power_cap_w, "reliability.power_cap_w", faults);
  require_at_least_zero(r.failure_rate_while_down, "reliability.failure_rate_while_down", faults);
  require(std::abs(r.failure_rate_per_kelvin) <= 0.1, "reliability.failure_rate_per_kelvin",
          fmt::format("{:g}", r.failure_rate_per_kelvin), "-0.1 to 0.1", faults);
  require(r.hosts_per_power_domain > 0, "reliability.hosts_per_power_domain",
          fmt::format("{} is not positive", r.hosts_per_power_domain), "1 or more", faults);
}

void check_checkpoint(const CheckpointRequest& c, Faults& faults) {
  require(c.interval_s > 0 && std::isfinite(c.interval_s), "checkpoint.interval_s",
          fmt::format("{:g} is not positive", c.interval_s), "more than 0 seconds", faults);
  require_at_least_zero(static_cast<double>(c.keep_last), "checkpoint.keep_last", faults);
  require(c.archive_every_s > 0, "checkpoint.archive_every_s",
          fmt::format("{:g} is not positive", c.archive_every_s), "more than 0 seconds", faults);
  require(c.bytes > Bytes(0), "checkpoint.bytes", "a checkpoint of no bytes", "1 or more", faults);
  const StorageModel& s = c.storage;
  for (const auto& [rate, field] :
       {std::pair{s.write_gb_per_s, "write_gigabytes_per_second"},
        std::pair{s.read_gb_per_s, "read_gigabytes_per_second"},
        std::pair{s.shared_cap_gb_per_s, "shared_gigabytes_per_second"},
        std::pair{s.client_gb_per_s, "client_gigabytes_per_second"},
        std::pair{s.frontend_gbit_per_s, "frontend_gigabits_per_second"},
        std::pair{s.copy_out_gb_per_s_per_gpu, "copy_out_gigabytes_per_second"},
        std::pair{s.peer_gb_per_s_per_gpu, "peer_gigabytes_per_second"},
        std::pair{s.nvme_gb_per_s_per_host, "nvme_gigabytes_per_second"}}) {
    require(rate > 0, fmt::format("checkpoint.storage.{}", field),
            "a bandwidth of zero never finishes", "more than 0 GB/s", faults);
  }
  require(s.burst_factor >= 1, "checkpoint.storage.burst_factor",
          fmt::format("{:g}", s.burst_factor), "1 or more", faults);
  require(s.write_amplification >= 1, "checkpoint.storage.write_amplification",
          fmt::format("{:g}", s.write_amplification), "1 or more", faults);
  require(s.capacity_petabytes > 0, "checkpoint.storage.capacity_petabytes", "a store without room", "more than 0 PB",
          faults);
  require(s.bytes_kept_per_byte >= 1, "checkpoint.storage.bytes_kept_per_byte",
          fmt::format("{:g}", s.bytes_kept_per_byte), "1 or more", faults);
  require(s.files_per_gpu >= 0 && s.files_per_second > 0 && s.directories > 0,
          "checkpoint.storage.files_per_second", "files that are never created",
          "files, directories and files a second of 1 or more", faults);
  require(s.background_share >= 0 && s.background_share < 1, "checkpoint.storage.background_share",
          fmt::format("{:g}", s.background_share), "0 to below 1", faults);
  for (const auto& [value, field] :
       {std::pair{s.data_loading_gb_per_s, "checkpoint.storage.data_loading_gigabytes_per_second"},
        std::pair{s.measured_block_s, "checkpoint.block_s"},
        std::pair{s.measured_save_s, "checkpoint.save_s"},
        std::pair{s.measured_load_s, "checkpoint.load_s"}}) {
    require_at_least_zero(value, field, faults);
  }
}

void check_recovery(const RecoveryRequest& r, Faults& faults) {
  require(r.spares >= 0, "recovery.spares", fmt::format("{} is below zero", r.spares), "0 or more",
          faults);
  require(r.technicians >= 0, "recovery.technicians",
          fmt::format("{} is below zero", r.technicians), "0 or more", faults);
  require_at_least_zero(r.health_check_s, "recovery.health_check_s", faults);
  for (const auto& [share, field] :
       {std::pair{r.unmended_share, "recovery.unmended_share"},
        std::pair{r.health_check_false_alarm, "recovery.health_check_false_alarm"}}) {
    require(share >= 0 && share < 1, field, fmt::format("{:g}", share), "0 to below 1", faults);
  }
  require(r.health_check_recall >= 0 && r.health_check_recall <= 1, "recovery.health_check_recall",
          fmt::format("{:g}", r.health_check_recall), "0 to 1", faults);
  require(r.refail_after_s > 0 && std::isfinite(r.refail_after_s), "recovery.refail_after_s",
          fmt::format("{:g} is not positive", r.refail_after_s), "more than 0 seconds", faults);
  require_at_least_zero(r.restart_s, "recovery.restart_s", faults);
  const PhaseTimes& p = r.phases;
  for (const auto& [value, field] :
       {std::pair{p.diagnosis_s, "recovery.diagnosis_s"},
        std::pair{p.reschedule_s, "recovery.reschedule_s"},
        std::pair{p.start_s, "recovery.start_s"}, std::pair{p.init_s, "recovery.init_s"},
        std::pair{p.warmup_s, "recovery.warmup_s"},
        std::pair{p.maintenance_s, "recovery.maintenance_s"}}) {
    require_at_least_zero(value, field, faults);
  }
}

}  // namespace

void append_machine_faults(const CampaignRequest& r, Faults& faults) {
  require(r.machine.gpus > 0, "gpus", fmt::format("{} is not positive", r.machine.gpus),
          "1 or more", faults);
  require(r.machine.gpus_per_host > 0 && r.machine.gpus_per_tor > 0 && r.machine.gpus_per_pod > 0,
          "cluster", "a host, ToR or pod of no GPUs", "1 or more", faults);
  require(r.nominal_step > Duration::zero() && r.nominal_step.is_finite(), "step",
          "the step time is not a positive number", "a positive time", faults);
  require_at_least_zero(r.run.days, "run.days", faults);
  require_at_least_zero(r.run.tokens, "run.tokens", faults);
  require(r.run.days > 0 || r.run.tokens > 0, "run.days",
          "the horizon is zero: neither days nor tokens are given",
          "more than 0 days or tokens: --days D, --tokens T, or run { } of the scenario", faults);
  require(r.run.tokens <= 0 || r.tokens_per_step > 0, "run.tokens", "a step trains no tokens", "",
          faults);
  require(r.run.replicas > 0, "run.replicas", fmt::format("{} is not positive", r.run.replicas),
          "1 or more", faults);
  require(r.data_parallel > 0, "parallel.dp", fmt::format("{} is not positive", r.data_parallel),
          "1 or more", faults);
}

void append_number_faults(const CampaignRequest& r, Faults& faults) {
  check_reliability(r.reliability, faults);
  check_checkpoint(r.checkpoint, faults);
  check_recovery(r.recovery, faults);
}

}  // namespace herdsim
