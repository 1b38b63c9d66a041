// A line on a terminal that rewrites itself: how much is done, and the time that is left. Nothing
// appears where standard error is no terminal, nor with --quiet.
#pragma once

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <chrono>
#include <mutex>
#include <string_view>

#include "sim/base/text.h"
#include "tools/herdsim/command.h"
#include "tools/herdsim/terminal.h"

namespace herdsim {

class ProgressLine {
 public:
  ProgressLine(const Options& options, Streams streams)
      : err_(streams.err), shows_(!options.quiet && is_terminal(streams.err)) {}
  // Wipes the line.
  ~ProgressLine() {
    if (shows_) fmt::print(err_, "\r\x1b[K");
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // `what` stands behind "3 of 10 ". A few times a second at most; callable from any thread.
  void show(int64_t done, int64_t of, std::string_view what) {
    if (!shows_) return;
    using Clock = std::chrono::steady_clock;
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (now - shown_ < std::chrono::milliseconds(200) && done < of) return;
    shown_ = now;
    const double elapsed = std::chrono::duration<double>(now - begin_).count();
    const double share = done > 0 ? static_cast<double>(of - done) / static_cast<double>(done) : 0;
    fmt::print(err_, "\r\x1b[K{} of {} {}, {} left", done, of, what,
               done == 0 ? "?" : to_text(seconds_rounded_up(elapsed * share)));
    err_.flush();
  }

 private:
  std::ostream& err_;
  const bool shows_;
  std::mutex mutex_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point shown_;
};

}  // namespace herdsim
