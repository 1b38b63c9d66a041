#include "tools/scenario/derived_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "tools/scenario/scenario.h"
#include "tools/scenario/scenario.pb.h"
#include "workloads/uneven_load.h"

namespace herdsim {
namespace {

// One host in this many stands by: 32 at 16,384 GPUs, where the hosts in repair stay below 26 in
// 99.9 % of the time (Llama 3's rate, 40.4 h of repair).
constexpr int64_t kHostsASpare = 64;

void note_formula(const std::string& path, const std::string& formula, SpecReport* report) {
  report->origins().set(path, {.comment = "default: " + formula});
}

class Derivation {
 public:
  Derivation(spec::Scenario* message, SpecReport* report) : m_(*message), report_(*report) {}

  void run() {
    derive_model_fields(m_.mutable_model(), "model.", &report_);
    spec::Parallel& p = *m_.mutable_parallel();
    const double replica =
        static_cast<double>(p.tp()) * static_cast<double>(p.cp()) * static_cast<double>(p.pp());
    constexpr double kMaxGpus = 1 << 22;
    if (!p.has_dp()) {
      const double fits =
          m_.has_gpus() && replica > 0 ? static_cast<double>(m_.gpus()) / replica : 1;
      const bool whole = fits >= 1 && fits <= kMaxGpus && fits == std::floor(fits);
      p.set_dp(whole ? static_cast<int64_t>(fits) : 1);
      note("parallel.dp", "gpus / (tp * cp * pp)");
      if (!report_.sound({"gpus", "parallel.tp", "parallel.cp", "parallel.pp"})) {
        report_.mark_faulty("parallel.dp");
      } else if (!whole) {
        report_.add("parallel.dp",
                    fmt::format("is left out, and gpus ({}) is not divisible by tp * cp * pp ({} * "
                                "{} * {} = {:.0f})",
                                m_.gpus(), p.tp(), p.cp(), p.pp(), replica),
                    "gpus that are a multiple of it");
      }
    }
    if (!m_.has_gpus()) {
      const double product = replica * static_cast<double>(p.dp());
      m_.set_gpus(product >= 1 && product <= kMaxGpus ? static_cast<int64_t>(product) : 1);
      note("gpus", "tp * cp * pp * dp");
    }
    sequence_parallelism(&p);
    weeks();
    storage_port();
    axis_order(p);
    documents(m_.mutable_training());
    for (int i = 0; i < m_.cluster().degraded_size(); ++i) {
      spec::Degraded& part = *m_.mutable_cluster()->mutable_degraded(i);
      if (!part.has_gpu()) continue;
      const std::string path = "cluster.degraded." + std::to_string(i);
      if (!part.has_compute_factor()) {
        part.set_compute_factor(Degradation{}.compute_factor);
        report_.origins().set(path + ".compute_factor", {.comment = "default"});
      }
      if (!part.has_nic_factor()) {
        part.set_nic_factor(Degradation{}.nic_factor);
        report_.origins().set(path + ".nic_factor", {.comment = "default"});
      }
    }
  }

 private:
  void sequence_parallelism(spec::Parallel* p) {
    if (p->has_sequence_parallel()) return;
    const bool has_experts = m_.model().experts() > 0;
    p->set_sequence_parallel(has_experts || m_.software().sequence_parallel());
    note("parallel.sequence_parallel", has_experts ? "experts need it" : "software.sequence_parallel");
  }

  // What training for weeks needs.
  void weeks() {
    if (!m_.recovery().has_spares()) {
      const int64_t hosts =
          (m_.gpus() + m_.cluster().gpus_per_host() - 1) / m_.cluster().gpus_per_host();
      m_.mutable_recovery()->set_spares((hosts + kHostsASpare - 1) / kHostsASpare);
      note("recovery.spares", "one for 64 hosts");
    }
  }

  // A host's way to the storage network is the cluster's, which a save in weeks of training and one
  // beside a step both take; it may be given by either name.
  void storage_port() {
    constexpr std::string_view kPort = "checkpoint.storage.frontend_gigabits_per_second";
    constexpr std::string_view kOfCluster = "cluster.storage_network.host_gigabits_per_second";
    constexpr double kNoBound = 1e5;  // Gb/s: beyond what a client could use
    spec::Storage* storage = m_.mutable_checkpoint()->mutable_storage();
    spec::StorageNetwork* network = m_.mutable_cluster()->mutable_storage_network();
    const bool over_training = network->path() == spec::StorageNetwork::TRAINING;
    if (!storage->has_frontend_gigabits_per_second()) {
      storage->set_frontend_gigabits_per_second(
          over_training ? m_.cluster().nic_gigabits_per_second() *
                              static_cast<double>(m_.cluster().gpus_per_host())
                        : network->host_gigabits_per_second());
      return note(std::string(kPort),
                  over_training ? "all NICs of a host" : std::string(kOfCluster));
    }
    if (over_training) return;
    const double port = storage->frontend_gigabits_per_second();
    if (!report_.origins().is_given(kOfCluster)) {
      network->set_host_gigabits_per_second(std::min(port, kNoBound));
      report_.origins().set(std::string(kOfCluster), {.comment = std::string(kPort)});
    } else if (port != network->host_gigabits_per_second()) {
      report_.add(kPort,
                  fmt::format("{} Gb/s, and {} says {}", port, kOfCluster,
                              network->host_gigabits_per_second()),
                  "one of the two, or the same in both");
    }
  }

  // Every axis once, or none at all.
  void axis_order(const spec::Parallel& p) {
    std::vector<int> axes(p.order().begin(), p.order().end());
    std::sort(axes.begin(), axes.end());
    if (axes.empty() || axes == std::vector<int>{spec::Parallel::TP, spec::Parallel::CP,
                                                 spec::Parallel::PP, spec::Parallel::DP}) {
      return;
    }
    report_.add("parallel.order", fmt::format("{} entries that do not name each axis once", axes.size()),
                "TP, CP, PP and DP, each once, from the innermost");
  }

  void documents(spec::Training* t) {
    if (t->documents().mean_tokens() <= 0 ||
        !report_.sound({"training.documents.mean_tokens", "training.documents.sigma",
                        "training.sequence_length", "training.global_batch"})) {
      return;
    }
    if (t->document_mask_fraction() != 1) {
      report_.add("training.document_mask_fraction", "is given beside training.documents",
                  "one of the two");
      return;
    }
    const DocumentLengths lengths{.mean_tokens = t->documents().mean_tokens(),
                                  .sigma = t->documents().sigma()};
    // Each is drawn.
    constexpr double kMostInSequence = 2e4, kMostInStep = 2e7;
    const double in_sequence = static_cast<double>(t->sequence_length()) /
                               mean_packed_tokens(lengths, t->sequence_length());
    const double in_step = in_sequence * static_cast<double>(t->global_batch());
    if (in_sequence > kMostInSequence || in_step > kMostInStep) {
      report_.add("training.documents.mean_tokens",
                  fmt::format("{:.2g} documents in a sequence, {:.2g} in a step", in_sequence, in_step),
                  fmt::format("lengths that give up to {:.0e} in a sequence and {:.0e} in a step",
                              kMostInSequence, kMostInStep));
      return;
    }
    t->set_document_mask_fraction(mean_document_mask(lengths, t->sequence_length()));
    note("training.document_mask_fraction", "what training.documents leave in the mean");
  }

  void note(const std::string& path, const std::string& formula) {
    note_formula(path, formula, &report_);
  }
  spec::Scenario& m_;
  SpecReport& report_;
};

}  // namespace

void derive_model_fields(spec::Model* model, const std::string& prefix, SpecReport* report) {
  if (!model->has_kv_heads() && model->has_heads()) {
    model->set_kv_heads(model->heads());
    note_formula(prefix + "kv_heads", "heads", report);
  }
  if (!model->has_head_dim() && model->has_hidden() && model->heads() > 0) {
    if (model->hidden() % model->heads() != 0) {
      report->add(prefix + "head_dim", "is missing, and heads does not divide hidden",
                  "a whole number");
    }
    model->set_head_dim(std::max<int64_t>(1, model->hidden() / model->heads()));
    note_formula(prefix + "head_dim", "hidden / heads", report);
  }
}

void derive_fields(spec::Scenario* message, SpecReport* report) {
  Derivation(message, report).run();
}

}  // namespace herdsim
