#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <vector>

#include "calibrate/profile/profile_file.h"
#include "tools/scenario/profile_part.h"
#include "tools/scenario/scenario.pb.h"
#include "tools/scenario/spec_layers.h"
#include "tools/scenario/spec_parser.h"
#include "tools/scenario/spec_source.h"

namespace herdsim {
namespace {

namespace pb = google::protobuf;

// Throws: SpecError
SpecSource profile_source(const std::string& name) {
  if (is_spec_file(name)) return read_spec_file(name);
  return {.name = name,
          .file = "catalog/profiles/" + name + ".textproto",
          .text = std::string(profile_text(name)),
          .from_catalog = true};
}

bool is_only_a_base(const spec::Profile& part) {
  spec::Profile rest = part;
  rest.clear_base();
  std::vector<const pb::FieldDescriptor*> fields;
  rest.GetReflection()->ListFields(rest, &fields);
  return fields.empty();
}

// Throws: SpecError; its lines are those of a text that the user has never seen where fields have
// been changed.
DeviceProfile load(const spec::Profile& part, SpecReport* report) {
  if (is_only_a_base(part)) {
    const SpecSource source = profile_source(part.base());
    return load_profile_text(source.text, source.file);
  }
  spec::Profile whole = part;
  if (part.has_base()) {
    const SpecSource source = profile_source(part.base());
    spec::Profile under;
    FieldOrigins places;
    parse_spec(source, "profile.", &under, &places, report);
    // A profile that itself stands on one is read whole before fields of it are changed.
    if (under.has_base()) {
      const DeviceProfile base = load_profile_text(source.text, source.file);
      under.Clear();
      parse_spec({.name = source.name, .file = source.file, .text = save_profile_text(base)}, "profile.", &under,
                 &places, report);
    }
    lay_over(under, FieldOrigins(), &whole, &places);
  }
  whole.clear_base();
  std::string text;
  pb::TextFormat::PrintToString(whole, &text);
  try {
    return load_profile_text(text, report->file());
  } catch (const SpecError& error) {
    std::vector<Fault> faults = error.faults();
    for (Fault& fault : faults) fault.line = 0;
    throw SpecError(std::move(faults));
  }
}

}  // namespace

DeviceProfile device_profile_of(const spec::Profile& part, SpecReport* report) {
  if (!part.has_base() && is_only_a_base(part)) {
    report->add("profile.base", "is missing", "a catalogue name, a file, or a profile in place");
    report->mark_faulty("profile");
    return {};
  }
  try {
    return load(part, report);
  } catch (const SpecError& error) {
    for (const Fault& fault : error.faults()) {
      if (fault.line > 0) {
        report->add(fault);
      } else if (fault.field.empty() || fault.field == "profile") {
        report->add("profile.base", (fault.file.empty() ? "" : fault.file + " ") + fault.problem,
                    fault.allowed, fault.nearest);
      } else {
        report->add(path_with_dots("profile." + fault.field), fault.problem, fault.allowed,
                    fault.nearest);
      }
    }
    report->mark_faulty("profile");
    return {};
  }
}

std::vector<std::string> profile_warnings(const spec::Profile& part, const DeviceProfile& profile) {
  if (part.collective_size() == 0 && !is_spec_file(part.base())) return {};
  std::vector<std::string> catalogue_sources;
  for (const std::string& name : profile_names()) {
    for (const CollectiveCurve& curve : load_profile(name).collectives) {
      catalogue_sources.push_back(curve.provenance.source);
    }
  }
  const auto ignored = std::count_if(
      profile.collectives.begin(), profile.collectives.end(), [&](const CollectiveCurve& curve) {
        return curve.provenance.evidence != Evidence::kMeasured &&
               std::find(catalogue_sources.begin(), catalogue_sources.end(), curve.provenance.source) ==
                   catalogue_sources.end();
      });
  if (ignored == 0) return {};
  return {std::to_string(ignored) +
          " collective curves of the profile change nothing: only those labelled MEASURED are taken, the rest "
          "follows NCCL's model"};
}

}  // namespace herdsim
