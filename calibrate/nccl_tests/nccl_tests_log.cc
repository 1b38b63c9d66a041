#include "calibrate/nccl_tests/nccl_tests_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "calibrate/nccl_tests/nccl_tests_parts.h"

namespace herdsim {
namespace {

constexpr size_t kLongestLine = 4096;  // no line of a table is longer; the rest is cut

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  size_t at = 0;
  while (at < line.size()) {
    while (at < line.size() && std::isspace(static_cast<unsigned char>(line[at])) != 0) ++at;
    const size_t begin = at;
    while (at < line.size() && std::isspace(static_cast<unsigned char>(line[at])) == 0) ++at;
    if (at > begin) words.push_back(line.substr(begin, at - begin));
  }
  return words;
}

// Where a launcher's tag that ends at `end` begins: "[1,0]<stdout>:", "Thu Jul 18 15:41:05
// 2024<stdout>:", or all of the line so far.
size_t tag_begin(const std::string& line, size_t end) {
  if (end > 0 && line[end - 1] == ']') {
    const size_t open = line.rfind('[', end);
    return open == std::string::npos ? 0 : open;
  }
  constexpr size_t kDate = 24;
  if (end > kDate && line[end - 8] == ':' && line[end - 11] == ':') return end - kDate;
  return 0;
}

// Without terminal colours, launchers' tags and "[rank]" marks, wherever a flush has put them.
std::string without_tags(std::string_view raw) {
  std::string line;
  for (size_t i = 0; i < std::min(raw.size(), kLongestLine); ++i) {
    if (raw[i] == '\x1b' && i + 1 < raw.size() && raw[i + 1] == '[') {
      while (i < raw.size() && std::isalpha(static_cast<unsigned char>(raw[i])) == 0) ++i;
    } else {
      line += raw[i] == '\0' ? ' ' : raw[i];
    }
  }
  for (const std::string_view mark : {"<stdout>:", "<stderr>:"}) {
    for (size_t at; (at = line.find(mark)) != std::string::npos;) {
      const size_t begin = tag_begin(line, at);
      line.replace(begin, at + mark.size() - begin, " ");
    }
  }
  return line;
}

std::string without_brackets(std::string line) {
  for (size_t open = line.find('['); open != std::string::npos; open = line.find('[', open + 1)) {
    const size_t close = line.find(']', open);
    if (close == std::string::npos) break;
    const bool digits =
        close > open + 1 && std::all_of(line.begin() + static_cast<ptrdiff_t>(open) + 1,
                                        line.begin() + static_cast<ptrdiff_t>(close), [](char c) {
                                          return std::isdigit(static_cast<unsigned char>(c)) != 0;
                                        });
    if (digits) line.replace(open, close - open + 1, " ");
  }
  return line;
}

// NCCL's own messages share the terminal, and begin in the middle of a row that was not flushed.
std::string before_message(const std::string& line) {
  const size_t at = std::min(line.find(" NCCL INFO"), line.find(" NCCL WARN"));
  if (at == std::string::npos) return line;
  std::string row = line.substr(0, at);
  const size_t glued = row.find(" -1");  // "-1host:42:43": a root and the message's host
  return glued == std::string::npos ? row : row.substr(0, glued + 3);
}

bool is_word(std::string_view text) {
  return !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) != 0 &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
         });
}

// The first place where a row can begin: two whole numbers and a type.
size_t row_begin(const std::vector<std::string_view>& words) {
  for (size_t i = 0; i + 2 < words.size(); ++i) {
    if (words[i] == "#") break;
    const std::optional<int64_t> size = whole_number(words[i]), count = whole_number(words[i + 1]);
    if (size && count && *size >= 0 && *count >= 0 && is_word(words[i + 2])) return i;
  }
  return words.size();
}

// The number after `key`, or 0.
int64_t number_after(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  if (at == std::string_view::npos) return 0;
  const std::vector<std::string_view> words = words_of(line.substr(at + key.size()).substr(0, 40));
  if (words.empty()) return 0;
  std::string_view digits = words.front();
  size_t end = 0;
  while (end < digits.size() && std::isdigit(static_cast<unsigned char>(digits[end])) != 0) ++end;
  return whole_number(digits.substr(0, end)).value_or(0);
}

// A name of hardware, or nothing: nothing else of a device line may pass.
std::string hardware_name(std::string_view text) {
  std::string name;
  for (const char c : text.substr(0, 64)) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == ' ' || c == '-' || c == '/';
    if (!plain) break;
    name += c;
  }
  while (!name.empty() && name.back() == ' ') name.pop_back();
  const size_t begin = name.find_first_not_of(' ');
  return begin == std::string::npos ? "" : name.substr(begin);
}

class TextReader {
 public:
  TextReader(const std::string& file, const NcclTestsHints& hints) : file_(file), hints_(hints) {
    log_.file = file;
  }

  NcclTestsLog read(std::string_view text) {
    int number = 0;
    while (!text.empty()) {
      const size_t end = text.find('\n');
      read_line(text.substr(0, end), ++number);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    drop_pending();
    finish_test();
    return std::move(log_);
  }

 private:
  void read_line(std::string_view raw, int number) {
    const std::string line = without_tags(raw);
    const std::string row_text = without_brackets(before_message(line));
    const std::vector<std::string_view> words = words_of(row_text);
    if (const size_t begin = row_begin(words); begin < words.size()) {
      drop_pending();
      read_row({words.begin() + static_cast<ptrdiff_t>(begin), words.end()}, number);
      return;
    }
    if (continue_row(words)) return;
    if (std::vector<std::string_view> names = header_words(words); !names.empty()) {
      if (const auto columns = nccl_tests_columns(names)) {
        start_table(*columns);
        return;
      }
    }
    if (line.find("(GB/s)") != std::string::npos && !columns_seen_rows_) {
      if (line.find("(ms)") != std::string::npos) columns_.time_scale = 1000;
      if (line.find("(us)") != std::string::npos) columns_.time_scale = 1;
      return;
    }
    read_context(line);
  }

  // A header pasted from a web page may have lost its '#', and "#" may stand alone or not.
  static std::vector<std::string_view> header_words(const std::vector<std::string_view>& words) {
    const auto first = std::find_if(words.begin(), words.end(), [](std::string_view w) {
      return w == "size" || w == "bytes" || w == "#size" || w == "#bytes";
    });
    std::vector<std::string_view> names(first, words.end());
    if (!names.empty() && names.front().starts_with('#')) names.front().remove_prefix(1);
    return names;
  }

  void start_table(const NcclTestsColumns& columns) {
    if (!test_.rows.empty()) finish_test();
    columns_ = columns;
    test_.had_header = true;
    columns_seen_rows_ = false;
  }

  void read_row(const std::vector<std::string_view>& cells, int number) {
    RowReading reading = read_nccl_tests_row(cells, columns_);
    if (!reading.row && columns_.time_scale == 1 && !test_.had_header) {
      NcclTestsColumns early = columns_;  // no header to say that times are milliseconds
      early.time_scale = 1000;
      early.lead = {"op"};
      reading = read_nccl_tests_row(cells, early);
    }
    if (!reading.row) {
      pending_.assign(cells.begin(), cells.end());
      pending_line_ = number;
      pending_problem_ = reading.problem;
      return;
    }
    accept(std::move(*reading.row), number);
  }

  void accept(NcclTestsRow row, int number) {
    if (test_.finished) finish_test();
    row.line = number;
    test_.rows.push_back(std::move(row));
    columns_seen_rows_ = true;
  }

  // The rest of a row whose beginning was flushed before a message.
  bool continue_row(const std::vector<std::string_view>& words) {
    if (pending_.empty() || words.size() < columns_.half.size()) return false;
    const bool cells = std::all_of(words.begin(), words.end(), [](std::string_view w) {
      return w == "N/A" || plain_number(w).has_value();
    });
    if (!cells) return false;
    std::vector<std::string_view> whole(pending_.begin(), pending_.end());
    whole.insert(whole.end(), words.begin(), words.end());
    RowReading reading = read_nccl_tests_row(whole, columns_);
    if (!reading.row) return false;
    const int line = pending_line_;
    pending_.clear();
    accept(std::move(*reading.row), line);
    return true;
  }

  void drop_pending() {
    if (pending_.empty()) return;
    log_.skipped.push_back({pending_line_, pending_problem_});
    pending_.clear();
  }

  // True where the line is one of the few that say something of the run.
  bool read_context(const std::string& line) {
    if (line.find("Out of bounds values") != std::string::npos) {
      test_.finished = true;
      test_.out_of_bounds = line.find("FAILED") != std::string::npos;
      return true;
    }
    if (const size_t at = line.find("Collective test starting:"); at != std::string::npos) {
      start_test();
      test_.collective = nccl_tests_collective(line.substr(at + 25, 60));
      return true;
    }
    if (line.find("nThread ") != std::string::npos && line.find("minBytes") != std::string::npos) {
      // Also the first line of builds that do not name the collective.
      if (!test_.rows.empty()) start_test();
      devices_.threads_times_gpus = number_after(line, "nThread ") * number_after(line, "nGpus ");
      return true;
    }
    if (line.find("Using devices") != std::string::npos) {
      const int64_t of_process = devices_.threads_times_gpus;
      devices_ = {.threads_times_gpus = of_process};
      hosts_.clear();
      gpu_.clear();
      return true;
    }
    if (const size_t at = line.find("nccl-library="); at != std::string::npos) {
      nccl_ = nccl_version_text(number_after(line, "nccl-library="));
      return true;
    }
    if (const size_t at = line.find("NCCL version "); at != std::string::npos) {
      const std::string version = line.substr(at + 13, 16);
      nccl_ = version.substr(0, version.find_first_not_of("0123456789."));
      return true;
    }
    if (const size_t at = line.find("NCCL_ALGO set by environment to "); at != std::string::npos) {
      algorithm_ = hardware_name(line.substr(at + 32, 20));
      return true;
    }
    return read_device(line);
  }

  bool read_device(const std::string& line) {
    const std::vector<std::string_view> words = words_of(line);
    if (const size_t at = line.find(" ranks on ");
        at != std::string::npos && line.find(" hosts") != std::string::npos) {
      const size_t begin = line.find_first_of("0123456789");
      devices_.ranks = whole_number(words_of(line.substr(begin, at - begin)).front()).value_or(0);
      devices_.hosts = number_after(line, " ranks on ");
      if (devices_.hosts > 0) devices_.most_on_a_host = devices_.ranks / devices_.hosts;
      if (const size_t gpu = line.find("GPU "); gpu != std::string::npos)
        gpu_ = hardware_name(line.substr(gpu + 4));
      return true;
    }
    if (line.find("NCCL INFO") != std::string::npos) return false;
    const size_t rank = line.find("Rank ");
    const size_t host = line.find(" on ", rank == std::string::npos ? 0 : rank);
    const size_t device = line.find(" device ", host == std::string::npos ? 0 : host);
    if (rank == std::string::npos || host == std::string::npos || device == std::string::npos) {
      if (line.starts_with("#") && line.find("...") != std::string::npos && devices_.ranks > 0) {
        devices_.cut = true;
      }
      return false;
    }
    devices_.ranks = std::max(devices_.ranks, number_after(line, "Rank ") + 1);
    // Only compared and counted, and forgotten with the reader.
    const int64_t on_host = ++hosts_[line.substr(host + 4, device - host - 4)];
    devices_.hosts = static_cast<int64_t>(hosts_.size());
    devices_.most_on_a_host = std::max(devices_.most_on_a_host, on_host);
    const size_t bracket = line.find(']', device);
    if (bracket != std::string::npos && gpu_.empty())
      gpu_ = hardware_name(line.substr(bracket + 1));
    return true;
  }

  void start_test() {
    drop_pending();
    finish_test();
    columns_ = {};
    columns_seen_rows_ = false;
    devices_ = {};
    hosts_.clear();
    gpu_.clear();
  }

  void finish_test() {
    if (!test_.rows.empty()) {
      test_.gpu = gpu_;
      test_.nccl = nccl_;
      test_.algorithm = algorithm_;
      test_.milliseconds = columns_.time_scale == 1000;
      identify_nccl_test(file_, devices_, hints_, test_);
      log_.tests.push_back(std::move(test_));
    }
    test_ = {};
  }

  const std::string& file_;
  const NcclTestsHints& hints_;
  NcclTestsLog log_;
  NcclTest test_;
  NcclTestsColumns columns_;
  bool columns_seen_rows_ = false;
  ListedDevices devices_;
  std::map<std::string, int64_t> hosts_;
  std::string gpu_, nccl_, algorithm_;
  std::vector<std::string> pending_;
  int pending_line_ = 0;
  std::string pending_problem_;
};

}  // namespace

size_t NcclTestsLog::rows() const {
  size_t count = 0;
  for (const NcclTest& test : tests) count += test.rows.size();
  return count;
}

NcclTestsLog read_nccl_tests(const std::string& file, std::string_view text,
                             const NcclTestsHints& hints) {
  const size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first != std::string_view::npos && text[first] == '{') {
    return read_nccl_tests_json(file, text.substr(first), hints);
  }
  return TextReader(file, hints).read(text);
}

}  // namespace herdsim
