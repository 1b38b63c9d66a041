// Numbers of a whiteboard: three digits below a thousand, whole from there, powers of ten from 1e7.
#pragma once

#include <string>

namespace herdsim {

std::string number_text(double value);

}  // namespace herdsim
