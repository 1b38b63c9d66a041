// herdsim-fit DEVICE DATA_FOLDER [-o FILE] [--no-cross-validation]: makes a profile of the
// catalogue from public tables.
#include <cstdio>
#include <fstream>
#include <string>

#include "calibrate/fit/device_fit.h"
#include "calibrate/profile/profile_file.h"
#include "sim/base/error.h"

int main(int argc, char** argv) {
  std::string device, folder, output;
  bool cross_validate = true;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--no-cross-validation") {
      cross_validate = false;
    } else if (argument == "-o" && i + 1 < argc) {
      output = argv[++i];
    } else if (device.empty()) {
      device = argument;
    } else {
      folder = argument;
    }
  }
  if (folder.empty()) {
    std::fprintf(
        stderr,
        "usage: herdsim-fit DEVICE DATA_FOLDER [-o FILE] [--no-cross-validation]\ndevices:");
    for (const std::string& name : herdsim::fitted_devices())
      std::fprintf(stderr, " %s", name.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  try {
    const herdsim::DeviceFit fit = herdsim::fit_device(device, folder, cross_validate);
    if (cross_validate) std::fputs(herdsim::error_table_text(fit.errors).c_str(), stdout);
    const std::string text = herdsim::save_profile_text(fit.profile);
    // What cannot be read back must not be written.
    herdsim::load_profile_text(text, output.empty() ? device : output);
    if (!output.empty() && !(std::ofstream(output) << text)) {
      std::fprintf(stderr, "%s: cannot be written\n", output.c_str());
      return 2;
    }
    return 0;
  } catch (const herdsim::SpecError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
