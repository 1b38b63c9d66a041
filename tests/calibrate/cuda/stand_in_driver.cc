// As much of NVIDIA's driver as cuDNN asks for when it builds a plan for a device that is not here:
// every kernel that it compiled is taken, none is run. Named libcuda.so.1 and loaded before cuDNN
// looks for that.
#include <cstdint>

namespace {

int anything = 0;

constexpr int kSuccess = 0, kNotInitialized = 3;

}  // namespace

extern "C" {

int cuLibraryLoadData(void** library, const void* /*code*/) {
  *library = &anything;
  return kSuccess;
}
int cuLibraryGetKernel(void** kernel, void* /*library*/, const char* /*name*/) {
  *kernel = &anything;
  return kSuccess;
}
int cuLibraryUnload(void* /*library*/) { return kSuccess; }
int cuKernelSetAttribute() { return kSuccess; }
int cuKernelGetAttribute(int* value) {
  *value = 0;
  return kSuccess;
}

#define HERDSIM_ABSENT(name) \
  int name() { return kNotInitialized; }
HERDSIM_ABSENT(cuCtxGetCurrent)
HERDSIM_ABSENT(cuCtxGetLimit)
HERDSIM_ABSENT(cuCtxPopCurrent)
HERDSIM_ABSENT(cuCtxPushCurrent)
HERDSIM_ABSENT(cuDeviceGet)
HERDSIM_ABSENT(cuDeviceGetCount)
HERDSIM_ABSENT(cuDriverGetVersion)
HERDSIM_ABSENT(cuGetErrorName)
HERDSIM_ABSENT(cuGetErrorString)
HERDSIM_ABSENT(cuLaunchCooperativeKernel)
HERDSIM_ABSENT(cuLaunchKernel)
HERDSIM_ABSENT(cuLaunchKernelEx)
HERDSIM_ABSENT(cuLibraryLoadFromFile)
HERDSIM_ABSENT(cuLinkAddData)
HERDSIM_ABSENT(cuLinkComplete)
HERDSIM_ABSENT(cuLinkCreate)
HERDSIM_ABSENT(cuLinkDestroy)
HERDSIM_ABSENT(cuOccupancyMaxPotentialClusterSize)
HERDSIM_ABSENT(cuStreamGetCtx)

}  // extern "C"
