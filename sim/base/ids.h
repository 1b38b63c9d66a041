// Typed indices. A LinkId addresses vectors of links and nothing else: `flows[link]` does not compile when the
// container is a `TypedVector`, and comparing ids of two kinds never does.
//
//   TypedVector<LinkId, Bandwidth> capacity;   capacity[LinkId(3)]
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace herdsim {

template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  explicit constexpr Id(size_t index) : index_(static_cast<uint32_t>(index)) {}
  constexpr size_t index() const { return index_; }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  uint32_t index_ = 0;
};

using RankId = Id<struct RankTag>;            // a process of the job
using GpuId = Id<struct GpuTag>;              // a device of the fabric
using NodeId = Id<struct NodeTag>;            // a vertex of the fabric: gpu, nic, switch
using HostId = Id<struct HostTag>;            // a server
using LinkId = Id<struct LinkTag>;            // a directed link of the fabric
using FlowId = Id<struct FlowTag>;            // a transfer in flight
using OpId = Id<struct OpTag>;                // an operation of one program
using ProgramId = Id<struct ProgramTag>;      // what ranks of one role execute
using CommGroupId = Id<struct CommGroupTag>;  // one communicator

// A vector addressed by one kind of id. Long-lived collections are these: ids survive reallocation, pointers do not.
template <class Key, class Value>
class TypedVector {
 public:
  TypedVector() = default;
  explicit TypedVector(size_t count, const Value& value = Value()) : values_(count, value) {}

  decltype(auto) operator[](Key key) { return values_[key.index()]; }
  decltype(auto) operator[](Key key) const { return values_[key.index()]; }
  size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  Key push_back(Value value) {
    values_.push_back(std::move(value));
    return Key(values_.size() - 1);
  }
  void reserve(size_t count) { values_.reserve(count); }
  void assign(size_t count, const Value& value) { values_.assign(count, value); }
  void resize(size_t count) { values_.resize(count); }
  auto begin() { return values_.begin(); }
  auto end() { return values_.end(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  const std::vector<Value>& values() const { return values_; }

 private:
  std::vector<Value> values_;
};

}  // namespace herdsim

template <class Tag>
struct std::hash<herdsim::Id<Tag>> {
  size_t operator()(herdsim::Id<Tag> id) const noexcept { return std::hash<size_t>()(id.index()); }
};
