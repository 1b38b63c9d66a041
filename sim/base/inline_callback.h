// A move-only callable of up to 48 bytes, kept inside the object: making, moving and calling one
// never allocates.
//
//   InlineCallback done = [this, op] { finish(op); };
//   done();
//
// A capture that does not fit is refused when it is compiled; capture an index or a pointer to the
// state instead.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace herdsim {

class InlineCallback {
 public:
  static constexpr size_t kCapacity = 48;

  InlineCallback() = default;

  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, InlineCallback> && std::is_invocable_v<F&>)
      InlineCallback(F&& callable) {
    hold(std::forward<F>(callable));
  }
  // Takes the callable in place of what it holds: what is written here is not read back until it is moved or called, while
  // a temporary that is moved at once waits for its own small writes.
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, InlineCallback> && std::is_invocable_v<F&>)
  InlineCallback& operator=(F&& callable) {
    reset();
    hold(std::forward<F>(callable));
    return *this;
  }

  InlineCallback(InlineCallback&& other) noexcept { take(other); }
  InlineCallback& operator=(InlineCallback&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  InlineCallback(const InlineCallback&) = delete;
  InlineCallback& operator=(const InlineCallback&) = delete;
  ~InlineCallback() { reset(); }

  // Requires: *this holds a callable.
  void operator()() { operations_->call(storage_); }
  explicit operator bool() const { return operations_ != nullptr; }
  // Destroys the callable, if any.
  void reset() {
    if (operations_ != nullptr && operations_->destroy != nullptr) operations_->destroy(storage_);
    operations_ = nullptr;
  }

 private:
  struct Operations {
    void (*call)(void*);
    // Both null where bytes can be copied and forgotten, which is what nearly every lambda here is.
    void (*relocate)(void* from, void* to);
    void (*destroy)(void*);
  };

  template <class F>
  static constexpr bool kPlain =
      std::is_trivially_copyable_v<F>&& std::is_trivially_destructible_v<F>;

  template <class F>
  static void call_stored(void* self) {
    (*std::launder(static_cast<F*>(self)))();
  }
  template <class F>
  static void relocate_stored(void* from, void* to) {
    F* source = std::launder(static_cast<F*>(from));
    ::new (to) F(std::move(*source));
    source->~F();
  }
  template <class F>
  static void destroy_stored(void* self) {
    std::launder(static_cast<F*>(self))->~F();
  }

  template <class F>
  static constexpr Operations kOperations{&call_stored<F>,
                                          kPlain<F> ? nullptr : &relocate_stored<F>,
                                          kPlain<F> ? nullptr : &destroy_stored<F>};

  // Requires: nothing is held.
  template <class F>
  void hold(F&& callable) {
    using Stored = std::remove_cvref_t<F>;
    static_assert(sizeof(Stored) <= kCapacity, "the capture is larger than 48 bytes: capture less");
    static_assert(alignof(Stored) <= alignof(void*), "the capture is aligned beyond a pointer");
    static_assert(std::is_nothrow_move_constructible_v<Stored>);
    std::memset(storage_, 0, kCapacity);  // all of it is copied when the callback moves
    ::new (static_cast<void*>(storage_)) Stored(std::forward<F>(callable));
    operations_ = &kOperations<Stored>;
  }

  void take(InlineCallback& other) noexcept {
    operations_ = other.operations_;
    if (operations_ != nullptr && operations_->relocate != nullptr) {
      operations_->relocate(other.storage_, storage_);
    } else {
      std::memcpy(storage_, other.storage_, kCapacity);
    }
    other.operations_ = nullptr;
  }

  const Operations* operations_ = nullptr;
  alignas(void*) std::byte storage_[kCapacity];
};

static_assert(sizeof(InlineCallback) == 56, "with its key, one event fills one cache line");

}  // namespace herdsim
