#!/bin/sh
# Compiles one-line uses of the base types: each must be accepted or refused as its first word says.
#   must_not_compile.sh COMPILER SOURCE_ROOT
compiler=$1
root=$2
failures=0
check() {
  verdict=refused
  printf '%s\n' '#include "sim/base/ids.h"' '#include "sim/base/inline_callback.h"' '#include "sim/base/units.h"' \
    '#include <array>' 'using namespace herdsim;' \
    "void use() { [[maybe_unused]] TypedVector<LinkId, int> by_link(1); $2; }" |
    "$compiler" -std=c++20 -fsyntax-only -I "$root" -x c++ - >/dev/null 2>&1 && verdict=accepted
  if [ "$verdict" != "$1" ]; then
    echo "should be $1, is $verdict: $2"
    failures=$((failures + 1))
  fi
}
# The control: every refusal below differs from something here in one type.
check accepted 'Bytes(1) + Bytes(2); Instant() + Duration(); by_link[LinkId(0)]; Bytes b = Bytes(5);
  InlineCallback([a = std::array<char, 48>()] {})'
check refused 'Bytes(1) + gigabits_per_second(1)'
check refused 'Instant() + Instant()'
check refused 'by_link[FlowId(0)]'
check refused 'Bytes b = 5'
check refused 'InlineCallback([a = std::array<char, 49>()] {})'
exit $failures
