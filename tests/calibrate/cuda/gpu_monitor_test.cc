// What a GPU's monitor says where NVML is not there, and where it lacks some calls.
#include "calibrate/cuda/gpu_monitor.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace herdsim::cuda {
namespace {

void expect_nothing_known(const GpuMonitor& monitor) {
  EXPECT_EQ(monitor.clock_mhz(), 0);
  EXPECT_EQ(monitor.power(), 0);
  EXPECT_EQ(monitor.power_limit(), 0);
  EXPECT_EQ(monitor.pcie_rate(), 0);
  EXPECT_EQ(monitor.slowdown(), Slowdown::kNone);
  EXPECT_FALSE(monitor.has_nvlink_to(monitor).has_value());
}

// One test, since a library that has been loaded stays.
TEST(GpuMonitor, says_what_nvml_knows_and_nothing_where_it_does_not) {
  if (void* real = dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
    dlclose(real);
    GTEST_SKIP() << "a driver is here, whose library would be taken";
  }
  const GpuMonitor without("0000:18:00.0");
  expect_nothing_known(without);
  EXPECT_EQ(without.driver(), "");

  ASSERT_NE(dlopen(HERDSIM_STAND_IN_NVML, RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
  const GpuMonitor first("0000:18:00.0"), second("0000:2A:00.0");
  EXPECT_EQ(first.clock_mhz(), 1980);
  EXPECT_DOUBLE_EQ(first.power(), 650.5);
  EXPECT_EQ(first.power_limit(), 0) << "a call that is not there";
  EXPECT_EQ(first.driver(), "470.1");
  EXPECT_NEAR(first.pcie_rate(), 63e9, 0.1e9);  // PCIe 5.0, 16 lanes
  EXPECT_EQ(first.slowdown(), Slowdown::kPower);
  EXPECT_EQ(second.slowdown(), Slowdown::kHeat) << "which says more than the power limit";
  EXPECT_EQ(first.has_nvlink_to(second), true);
  EXPECT_EQ(first.has_nvlink_to(first), false);

  const GpuMonitor unknown("0000:FF:00.0");
  expect_nothing_known(unknown);
  EXPECT_EQ(unknown.driver(), "470.1");
}

}  // namespace
}  // namespace herdsim::cuda
