#include "traces/proto_encoder.h"

#include <gtest/gtest.h>

#include <random>

#include "trace_subset.pb.h"

namespace herdsim {
namespace {

using namespace perfetto::protos;  // NOLINT: the messages of the schema under test

TEST(ProtoEncoder, bytes_equal_those_of_protobuf_for_random_messages) {
  std::mt19937_64 engine(17);
  ProtoEncoder encoder;
  for (int round = 0; round < 2'000; ++round) {
    // Lengths around 127 and 16,383, where a message's length takes another byte.
    const size_t near_border = (round % 2 == 0 ? 100 : 16'340) + engine() % 60;
    const uint64_t small_or_large = engine() >> (engine() % 64);
    const auto signed_value = static_cast<int32_t>(engine());
    TracePacket packet;
    packet.set_timestamp(small_or_large);
    TrackDescriptor& track = *packet.mutable_track_descriptor();
    track.set_uuid(engine() >> (engine() % 64));
    track.set_name(std::string(near_border, 'n'));
    track.mutable_counter()->set_unit_name("GB/s");
    track.set_sibling_order_rank(signed_value);

    encoder.clear();
    encoder.varint_field(8, packet.timestamp());
    const size_t outer = encoder.open(60);
    encoder.varint_field(1, track.uuid());
    encoder.bytes_field(2, track.name());
    const size_t counter = encoder.open(8);
    encoder.bytes_field(6, "GB/s");
    encoder.close(counter);
    encoder.int_field(12, signed_value);
    encoder.close(outer);
    ASSERT_EQ(encoder.written(), packet.SerializeAsString()) << "round " << round;
  }
}

TEST(ProtoEncoder, fixed_fields_and_doubles_equal_those_of_protobuf) {
  TrackEvent event;
  event.set_type(TrackEvent::TYPE_COUNTER);
  event.set_double_counter_value(-0.125);
  event.add_flow_ids(~uint64_t{0});
  ProtoEncoder encoder;
  encoder.varint_field(9, 4);
  encoder.double_field(44, -0.125);
  encoder.fixed64_field(47, ~uint64_t{0});
  EXPECT_EQ(encoder.written(), event.SerializeAsString());
}

TEST(ProtoEncoder, nested_messages_that_all_grow_keep_their_bodies) {
  ProtoEncoder encoder;
  std::vector<size_t> marks;
  for (int depth = 0; depth < 5; ++depth) marks.push_back(encoder.open(1));
  encoder.bytes_field(2, std::string(126, 'a'));
  while (!marks.empty()) {
    encoder.close(marks.back());
    marks.pop_back();
  }
  // The innermost body has 128 bytes; each level around it adds a tag and a length of two bytes.
  EXPECT_EQ(encoder.size(), 128u + 5 * 3);
}

}  // namespace
}  // namespace herdsim
