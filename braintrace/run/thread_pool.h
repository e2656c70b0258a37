// SPDX-License-Identifier: Apache-2.0
#pragma once
// A fixed set of threads that work through numbered tiles together with the caller.
// Which thread takes which tile is not fixed: a tile's result must depend on its number
// alone, then results are bit-identical at any thread count.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>

namespace braintrace {

class ThreadPool {
 public:
  // `threads` counts the caller; 1 starts none. UserError below 1 or above 1024.
  explicit ThreadPool(int threads = 1);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }

  // Calls task(tile, worker) once for each tile in [0, count); worker is in [0, size())
  // and no two calls with one worker run at a time. The first exception a task throws is
  // thrown again here; tiles not begun by then are left out. Does not allocate. Workers
  // flush denormals (ftz.h); the caller's mode is the caller's. One caller at a time, and
  // no task may call back: UserError.
  template <class F>
  void for_tiles(std::int64_t count, F&& task) {
    using Task = std::remove_reference_t<F>;
    run(
        count,
        [](void* t, std::int64_t tile, int worker) {
          (*static_cast<Task*>(t))(tile, worker);
        },
        const_cast<std::remove_const_t<Task>*>(&task));
  }
  // The same on the caller alone, in order: for work too small to share.
  template <class F>
  void for_tiles_if(bool shared, std::int64_t count, F&& task) {
    if (shared && size_ > 1) return for_tiles(count, task);
    for (std::int64_t i = 0; i < count; ++i) task(i, 0);
  }

  // 64-byte aligned room of a worker for the length of one tile.
  static constexpr std::size_t kScratchBytes = std::size_t{1} << 20;
  std::byte* scratch(int worker) const;

 private:
  using Call = void (*)(void* task, std::int64_t tile, int worker);
  void run(std::int64_t count, Call call, void* task);

  struct Shared;
  int size_;
  std::unique_ptr<Shared> shared_;
};

// Work worth waking other threads for, in ns on one thread.
inline constexpr double kSharedWork = 8e3;

// BRAINTRACE_THREADS if it is a number in 1 .. 1024, else the number of cores.
int default_threads();
// UserError in the caller's name below 0 or above 1024.
void check_threads(int threads, std::string_view caller);
// With default_threads() for 0; checks.
std::shared_ptr<ThreadPool> make_pool(int threads, std::string_view caller = "make_pool");

}  // namespace braintrace
