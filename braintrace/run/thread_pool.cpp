// SPDX-License-Identifier: Apache-2.0
#include "braintrace/run/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braintrace/base/error.h"
#include "braintrace/run/ftz.h"

namespace braintrace {
namespace {

constexpr int kMaxThreads = 1024;
// How long an idle thread looks for work before it sleeps. Regions of one plan follow
// each other closely, those of one step of training after the update of the weights; a
// thread that sleeps comes too late for the next one, and waking it costs the caller 10
// us.
constexpr std::chrono::microseconds kPatience(200);

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

struct FreeAligned {
  void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{64}); }
};
using Scratch = std::unique_ptr<std::byte[], FreeAligned>;

Scratch new_scratch() {
  return Scratch(static_cast<std::byte*>(
      ::operator new[](ThreadPool::kScratchBytes, std::align_val_t{64})));
}

}  // namespace

// `state` = region number * 2^16 + open flag * 2^15 + helpers inside. A helper enters
// only while the region is open, so a sleeping one is never waited for.
struct ThreadPool::Shared {
  static constexpr std::uint64_t kOpen = 1 << 15, kRegion = 1 << 16;

  std::atomic<std::uint64_t> state{0};
  // Every worker has a share of the tiles and takes those first: the same data in its
  // cache from region to region.
  struct alignas(64) Share {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };
  std::unique_ptr<Share[]> shares;
  int size = 1;
  // Written before the region opens, read inside it.
  alignas(64) Call call = nullptr;
  void* task = nullptr;
  std::int64_t count = 0;

  std::atomic<bool> stop{false}, in_use{false};
  std::mutex error_mutex;
  std::exception_ptr error;
  std::vector<Scratch> scratch;
  std::vector<std::thread> threads;

  void work(int worker) {
    try {
      for (int k = 0; k < size; ++k) {
        Share& s = shares[static_cast<std::size_t>((worker + k) % size)];
        for (std::int64_t i; (i = s.next.fetch_add(1)) < s.end;) call(task, i, worker);
      }
    } catch (...) {
      for (int k = 0; k < size; ++k) shares[static_cast<std::size_t>(k)].next = count;
      const std::lock_guard lock(error_mutex);
      if (!error) error = std::current_exception();
    }
  }

  // Waits until the state differs from what was seen; false when the pool stops.
  bool await_change(std::uint64_t seen) {
    constexpr int kLooks = 64;  // between two at the clock
    const auto start = std::chrono::steady_clock::now();
    do {
      for (int i = 0; i < kLooks; ++i) {
        if (state.load(std::memory_order_acquire) != seen) return !stop;
        pause();
      }
    } while (std::chrono::steady_clock::now() - start < kPatience);
    state.wait(seen, std::memory_order_acquire);
    return !stop;
  }

  bool enter() {
    std::uint64_t s = state.load(std::memory_order_acquire);
    while (s & kOpen)
      if (state.compare_exchange_weak(s, s + 1, std::memory_order_acq_rel)) return true;
    return false;
  }

  void help(int worker) {
    const FtzScope flush;
    std::uint64_t done = 0;  // the last region this helper took part in
    for (;;) {
      const std::uint64_t seen = state.load(std::memory_order_acquire);
      if (stop) return;
      if ((seen & kOpen) && seen / kRegion != done && enter()) {
        done = state.load(std::memory_order_relaxed) / kRegion;
        work(worker);
        state.fetch_sub(1, std::memory_order_acq_rel);
        continue;
      }
      if (!await_change(seen)) return;
    }
  }
};

ThreadPool::ThreadPool(int threads) : size_(threads) {
  BT_REQUIRE(
      threads >= 1 && threads <= kMaxThreads,
      fmt::format("ThreadPool: threads must be 1 to {}, got {}", kMaxThreads, threads));
  shared_ = std::make_unique<Shared>();
  for (int i = 0; i < threads; ++i) shared_->scratch.push_back(new_scratch());
  shared_->size = threads;
  shared_->shares = std::make_unique<Shared::Share[]>(static_cast<std::size_t>(threads));
  Shared* s = shared_.get();
  for (int i = 1; i < threads; ++i) s->threads.emplace_back([s, i] { s->help(i); });
}

ThreadPool::~ThreadPool() {
  shared_->stop = true;
  shared_->state.fetch_add(Shared::kRegion, std::memory_order_acq_rel);
  shared_->state.notify_all();
  for (std::thread& t : shared_->threads) t.join();
}

std::byte* ThreadPool::scratch(int worker) const {
  return shared_->scratch[static_cast<std::size_t>(worker)].get();
}

void ThreadPool::run(std::int64_t count, Call call, void* task) {
  if (size_ == 1 || count <= 1) {
    for (std::int64_t i = 0; i < count; ++i) call(task, i, 0);
    return;
  }
  constexpr int kPauses =
      3000;  // before the caller lets others run, who may be waited for
  Shared& s = *shared_;
  BT_REQUIRE_KIND(
      !s.in_use.exchange(true, std::memory_order_acquire), ErrorKind::runtime,
      "ThreadPool: two callers at once; a learner and what shares its threads "
      "must be called one after the other");
  const struct Leave {
    std::atomic<bool>& in_use;
    ~Leave() { in_use.store(false, std::memory_order_release); }
  } leave{s.in_use};
  s.call = call;
  s.task = task;
  s.count = count;
  for (int i = 0; i < size_; ++i) {
    s.shares[static_cast<std::size_t>(i)].next = count * i / size_;
    s.shares[static_cast<std::size_t>(i)].end = count * (i + 1) / size_;
  }
  s.state.fetch_add(Shared::kRegion + Shared::kOpen, std::memory_order_acq_rel);
  s.state.notify_all();
  s.work(0);
  s.state.fetch_sub(Shared::kOpen, std::memory_order_acq_rel);
  for (int i = 0; s.state.load(std::memory_order_acquire) & (Shared::kOpen - 1); ++i)
    i < kPauses ? pause() : std::this_thread::yield();
  if (s.error) std::rethrow_exception(std::exchange(s.error, nullptr));
}

int default_threads() {
  const char* text = std::getenv("BRAINTRACE_THREADS");
  int n = 0;
  if (text != nullptr) {
    const char* end = text + std::strlen(text);
    const auto [stop, error] = std::from_chars(text, end, n);
    if (error == std::errc() && stop == end && n >= 1 && n <= kMaxThreads) return n;
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void check_threads(int threads, std::string_view caller) {
  BT_REQUIRE(threads >= 0 && threads <= kMaxThreads,
             fmt::format("{}: threads must be 0 (as the environment says) to {}, got {}",
                         caller, kMaxThreads, threads));
}

std::shared_ptr<ThreadPool> make_pool(int threads, std::string_view caller) {
  check_threads(threads, caller);
  return std::make_shared<ThreadPool>(threads > 0 ? threads : default_threads());
}

}  // namespace braintrace
