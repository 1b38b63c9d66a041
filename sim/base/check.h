// Checks of the program, not of its input. HERDSIM_CHECK(condition) << detail; is always on; HERDSIM_DCHECK vanishes
// with NDEBUG and is for hot loops. A failing check prints where and what, then aborts: never catch one, and never check
// what a user can cause (that is a SpecError).
#pragma once

#include <sstream>

namespace herdsim {

// Collects the message of a failing check and aborts when destroyed, at the end of the statement.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  [[noreturn]] ~CheckFailure();
  std::ostream& stream() { return message_; }

 private:
  std::ostringstream message_;
};

// Makes both branches of the macro's conditional void.
struct CheckVoid {
  void operator&(std::ostream&) const {}
};

}  // namespace herdsim

#define HERDSIM_CHECK(condition)           \
  (condition) ? (void)0                    \
              : ::herdsim::CheckVoid() &   \
                    ::herdsim::CheckFailure(__FILE__, __LINE__, #condition).stream()

#ifdef NDEBUG
#define HERDSIM_DCHECK(condition) HERDSIM_CHECK(true || (condition))
#else
#define HERDSIM_DCHECK(condition) HERDSIM_CHECK(condition)
#endif
