#include <optional>

#include "tools/scenario/scenario.pb.h"
#include "tools/scenario/weeks_values.h"

namespace herdsim {
namespace {

void to_message(const StorageModel& s, spec::Storage* m) {
  m->set_write_gigabytes_per_second(s.write_gb_per_s);
  m->set_read_gigabytes_per_second(s.read_gb_per_s);
  m->set_shared_gigabytes_per_second(s.shared_cap_gb_per_s);
  m->set_background_share(s.background_share);
  m->set_data_loading_gigabytes_per_second(s.data_loading_gb_per_s);
  m->set_copy_out_gigabytes_per_second(s.copy_out_gb_per_s_per_gpu);
  m->set_peer_gigabytes_per_second(s.peer_gb_per_s_per_gpu);
  m->set_nvme_gigabytes_per_second(s.nvme_gb_per_s_per_host);
  m->set_memory_save_block_s(s.memory_save_block_s);
  m->set_attach_s(s.attach_s);
  m->set_planning_s(s.planning_s);
  m->set_wait_s(s.wait_s);
  m->set_burst_factor(s.burst_factor);
  m->set_burst_s(s.burst_s);
  m->set_client_gigabytes_per_second(s.client_gb_per_s);
  m->set_files_per_gpu(s.files_per_gpu);
  m->set_files_per_second(s.files_per_second);
  m->set_directories(s.directories);
  m->set_write_amplification(s.write_amplification);
  m->set_capacity_petabytes(s.capacity_petabytes);
  m->set_bytes_kept_per_byte(s.bytes_kept_per_byte);
}

std::optional<double> if_given(bool given, double value) {
  return given ? std::optional(value) : std::nullopt;
}

ClassOverride class_from_message(const spec::FailureClass& m) {
  return {.name = m.name(),
          .rate_per_hour = if_given(m.has_rate_per_hour(), m.rate_per_hour()),
          .mtbf_h = if_given(m.has_mtbf_h(), m.mtbf_h()),
          .per_1000_node_days = if_given(m.has_per_1000_node_days(), m.per_1000_node_days()),
          .scale = if_given(m.has_scale(), m.scale()),
          .per = m.per(),
          .law = m.law(),
          .weibull_k = if_given(m.has_weibull_k(), m.weibull_k()),
          .branching = if_given(m.has_branching(), m.branching()),
          .mean_lag_s = if_given(m.has_mean_lag_s(), m.mean_lag_s()),
          .detection_s = if_given(m.has_detection_s(), m.detection_s()),
          .diagnosis_s = if_given(m.has_diagnosis_s(), m.diagnosis_s()),
          .repair_s = if_given(m.has_repair_s(), m.repair_s()),
          .scope = m.scope(),
          .remedy = m.remedy(),
          .effect = m.effect()};
}

SlowOverride slow_from_message(const spec::SlowPart& m) {
  return {.name = m.name(),
          .scale = if_given(m.has_scale(), m.scale()),
          .rate_per_hour = if_given(m.has_rate_per_hour(), m.rate_per_hour()),
          .duration_s = if_given(m.has_duration_s(), m.duration_s()),
          .share = if_given(m.has_share(), m.share()),
          .slowdown = if_given(m.has_slowdown(), m.slowdown())};
}

}  // namespace

void to_message(const ReliabilityRequest& r, spec::Reliability* m) {
  m->set_base(r.base);
  m->set_rate_scale(r.rate_scale);
  m->set_gpu_mtbf_h(r.gpu_mtbf_h);
  m->set_failures_per_1000_node_days(r.failures_per_1000_node_days);
  m->set_job_mtbf_h(r.job_mtbf_h);
  m->set_law(r.law);
  m->set_weibull_k(r.weibull_k);
  m->set_failure_log(r.failure_log);
  m->set_failure_log_gpus(r.failure_log_gpus);
  for (const std::string& name : r.corruption_detectors) m->add_corruption_detectors(name);
  m->set_restarts_can_fail(r.restarts_can_fail);
  m->set_failure_rate_while_down(r.failure_rate_while_down);
  m->set_failure_rate_per_kelvin(r.failure_rate_per_kelvin);
  m->set_power_cap_w(r.power_cap_w);
  m->set_lemon_share(r.lemon_share);
  m->set_lemon_factor(r.lemon_factor);
  m->set_remove_lemons(r.remove_lemons);
  m->set_evict_slow_after_s(r.evict_slow_after_s);
  m->set_hosts_per_power_domain(r.hosts_per_power_domain);
}

void to_message(const CheckpointRequest& c, spec::Checkpoint* m) {
  m->set_policy(c.policy);
  m->set_interval_s(c.interval_s);
  m->set_rule(c.rule);
  m->set_keep_last(c.keep_last);
  m->set_archive_every_s(c.archive_every_s);
  m->set_block_s(c.storage.measured_block_s);
  m->set_save_s(c.storage.measured_save_s);
  m->set_load_s(c.storage.measured_load_s);
  to_message(c.storage, m->mutable_storage());
}

void to_message(const RecoveryRequest& r, spec::Recovery* m) {
  m->set_policy(r.policy);
  m->set_technicians(r.technicians);
  m->set_health_check_s(r.health_check_s);
  m->set_unmended_share(r.unmended_share);
  m->set_health_check_recall(r.health_check_recall);
  m->set_health_check_false_alarm(r.health_check_false_alarm);
  m->set_refail_after_s(r.refail_after_s);
  m->set_restart_s(r.restart_s);
  m->set_diagnosis_s(r.phases.diagnosis_s);
  m->set_reschedule_s(r.phases.reschedule_s);
  m->set_start_s(r.phases.start_s);
  m->set_init_s(r.phases.init_s);
  m->set_warmup_s(r.phases.warmup_s);
  m->set_maintenance_s(r.phases.maintenance_s);
}

ReliabilityRequest reliability_from_message(const spec::Reliability& m) {
  ReliabilityRequest r{
      .base = m.base(),
      .rate_scale = m.rate_scale(),
      .gpu_mtbf_h = m.gpu_mtbf_h(),
      .failures_per_1000_node_days = m.failures_per_1000_node_days(),
      .job_mtbf_h = m.job_mtbf_h(),
      .law = m.law(),
      .weibull_k = m.weibull_k(),
      .failure_log = m.failure_log(),
      .failure_log_gpus = m.failure_log_gpus(),
      .corruption_detectors = {m.corruption_detectors().begin(), m.corruption_detectors().end()},
      .restarts_can_fail = m.restarts_can_fail(),
      .failure_rate_while_down = m.failure_rate_while_down(),
      .failure_rate_per_kelvin = m.failure_rate_per_kelvin(),
      .power_cap_w = m.power_cap_w(),
      .lemon_share = m.lemon_share(),
      .lemon_factor = m.lemon_factor(),
      .remove_lemons = m.remove_lemons(),
      .evict_slow_after_s = m.evict_slow_after_s(),
      .hosts_per_power_domain = m.hosts_per_power_domain()};
  for (const spec::FailureClass& c : m.classes()) r.classes.push_back(class_from_message(c));
  for (const spec::SlowPart& s : m.slow()) r.slow.push_back(slow_from_message(s));
  return r;
}

CheckpointRequest checkpoint_from_message(const spec::Checkpoint& m) {
  const spec::Storage& s = m.storage();
  return {.policy = m.policy(),
          .interval_s = m.interval_s(),
          .rule = m.rule(),
          .keep_last = m.keep_last(),
          .archive_every_s = m.archive_every_s(),
          .bytes = Bytes(m.bytes()),
          .storage = {.write_gb_per_s = s.write_gigabytes_per_second(),
                      .read_gb_per_s = s.read_gigabytes_per_second(),
                      .shared_cap_gb_per_s = s.shared_gigabytes_per_second(),
                      .background_share = s.background_share(),
                      .data_loading_gb_per_s = s.data_loading_gigabytes_per_second(),
                      .copy_out_gb_per_s_per_gpu = s.copy_out_gigabytes_per_second(),
                      .peer_gb_per_s_per_gpu = s.peer_gigabytes_per_second(),
                      .nvme_gb_per_s_per_host = s.nvme_gigabytes_per_second(),
                      .memory_save_block_s = s.memory_save_block_s(),
                      .attach_s = s.attach_s(),
                      .planning_s = s.planning_s(),
                      .wait_s = s.wait_s(),
                      .burst_factor = s.burst_factor(),
                      .burst_s = s.burst_s(),
                      .client_gb_per_s = s.client_gigabytes_per_second(),
                      .frontend_gbit_per_s = s.frontend_gigabits_per_second(),
                      .files_per_gpu = s.files_per_gpu(),
                      .files_per_second = s.files_per_second(),
                      .directories = s.directories(),
                      .write_amplification = s.write_amplification(),
                      .capacity_petabytes = s.capacity_petabytes(),
                      .bytes_kept_per_byte = s.bytes_kept_per_byte(),
                      .measured_block_s = m.block_s(),
                      .measured_save_s = m.save_s(),
                      .measured_load_s = m.load_s()}};
}

RecoveryRequest recovery_from_message(const spec::Recovery& m) {
  return {.policy = m.policy(),
          .spares = m.spares(),
          .technicians = m.technicians(),
          .health_check_s = m.health_check_s(),
          .unmended_share = m.unmended_share(),
          .health_check_recall = m.health_check_recall(),
          .health_check_false_alarm = m.health_check_false_alarm(),
          .refail_after_s = m.refail_after_s(),
          .restart_s = m.restart_s(),
          .phases = {.diagnosis_s = m.diagnosis_s(),
                     .reschedule_s = m.reschedule_s(),
                     .start_s = m.start_s(),
                     .init_s = m.init_s(),
                     .warmup_s = m.warmup_s(),
                     .maintenance_s = m.maintenance_s()}};
}

}  // namespace herdsim
