// What a device must do to be calibrated. Everything else of the harness knows no device.
//
//   const int id = backend.prepare(Probe{GemmShape{.m = 512, .n = 512, .k = 512}});
//   const Sample s = backend.time(id, 10);     // seconds of one of ten runs back to back
//   backend.release(id);
//
// Several ranks may calibrate together, as they will train together: then every rank makes the same
// calls in the same order, and time() gives all of them the slowest rank's seconds, so that all
// take the same decisions.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/units.h"
#include "sim/models/kernel.h"

namespace herdsim {

// Among the first `ranks` ranks of the backend, 0: among all. `bytes` is the size of nccl-tests.
struct CollectiveProbe {
  std::string kind;  // as CollectiveCurve::kind
  Bytes bytes;
  int64_t ranks = 0;
};

struct CopyProbe {
  bool to_device = true;
  Bytes bytes;
};

// Between two devices of this process, by copy engine: `bytes` one way, or as many each way at
// once.
struct PeerCopyProbe {
  Bytes bytes;
  bool both_ways = false;
};

// The product, while something else goes on beside it on `sms` multiprocessors: what a transfer
// costs compute. A collective of all ranks where `collective` names its kind; else a copy in the
// memory of one device.
struct SharingProbe {
  GemmShape product;
  int64_t sms = 0;
  std::string collective;
};

// The shortest thing that the device can be asked to do.
struct LaunchProbe {};

// What the device does at most, measured by what does nothing else: the bound of products.
struct PeakProbe {};
constexpr double kPeakProbeFlops = 1 << 28;  // of one run

using Probe = std::variant<GemmShape, AttentionShape, MemoryTraffic, CollectiveProbe, CopyProbe,
                           PeerCopyProbe, SharingProbe, LaunchProbe, PeakProbe>;

// Text that tells probes apart and sorts them by kind: "gemm fp32 dgrad 512 512 512".
std::string probe_key(const Probe& probe);

// What holds a device's clock down.
enum class Slowdown : uint8_t { kNone, kPower, kHeat };

struct Sample {
  double seconds = 0;    // of one run
  double clock_mhz = 0;  // while it ran; 0: not known
  double watts = 0;      // of the board, likewise
  Slowdown slowdown = Slowdown::kNone;
};

// What stands in the database and in the profile's provenance.
struct DeviceFacts {
  std::string name;      // as its vendor prints it
  std::string software;  // driver and libraries with their versions
  Bytes memory;
  int64_t multiprocessors = 1;
  double watts = 0;        // of the board; 0: not known
  double memory_rate = 0;  // bytes a second, of a data sheet; 0: the fastest stream measured
  double peak_flops = 0;   // dense, of a data sheet; 0: the measured peak
  double host_rate = 0;    // bytes a second of the link to the host, each way; 0: not known
  double peer_rate = 0;    // of that to another device of the node, likewise
  std::string peer_link;   // what that is: "NVLink"; empty where there is no other device
  bool has_fp8 = false;    // products in it
  DataType product_type = DataType::kBf16;  // what its products really compute in
  std::vector<std::string> attention_kernels;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual const DeviceFacts& facts() const = 0;
  virtual int64_t ranks() const = 0;
  // Nodes that the first `ranks` ranks are on.
  virtual int64_t nodes_of(int64_t ranks) const = 0;
  int64_t nodes() const { return nodes_of(ranks()); }
  // Rank 0: the one that writes.
  virtual bool leads() const = 0;
  // Whether all ranks are of this process, so that no other waits where this one fails.
  virtual bool alone() const = 0;

  // Empty where the device can do it, else why not.
  virtual std::string why_not(const Probe& probe) const = 0;
  // Buffers of random numbers, several times larger than the last cache, so that each run finds its
  // data in memory; and one run, checked against a reference in double precision.
  // Throws: std::runtime_error where the result is wrong.
  virtual int prepare(const Probe& probe) = 0;
  virtual Sample time(int prepared, int64_t runs) = 0;
  // Once, without timing: for loops made of prepared work.
  virtual void run(int prepared) = 0;
  // Waits for everything that was run.
  virtual void finish() = 0;
  virtual void release(int prepared) = 0;
  // After prepare() or time() threw: drops what the probe held. Throws: std::runtime_error where
  // the device can do nothing any more.
  virtual void recover() = 0;

  // The leader's value, on every rank.
  virtual double agree(double value) = 0;
  // Whether it is so on every rank.
  virtual bool all(bool value) = 0;
};

}  // namespace herdsim
