// SPDX-License-Identifier: Apache-2.0
#pragma once
// A fused chain some of whose values are summed over leading axes in the same pass: what
// is summed never goes through memory. Without sums: a chain in a loop around rows of
// traces.
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "braintrace/run/tile_program.h"

namespace braintrace {

class ThreadPool;

struct FusedSumSpec {
  TileSpec chain;            // over all axes of the loop
  std::size_t num_lead = 0;  // axes summed over, the first ones
  std::vector<int> summed;   // values of the chain; floats
};

// Sums run in the elements' own type, from the first position of the leading axes to the
// last: bit-identical at any number of threads.
class FusedSum {
 public:
  // The limits keep pointers on the stack. InternalError for a spec that does not fit.
  static constexpr std::size_t kMaxPointers = 64;
  static bool fits(const FusedSumSpec& spec);
  // The chain as rows of traces that know the loops of all axes but the last two;
  // nullopt: it is better run by itself.
  static std::optional<FusedSum> in_loop(const TileSpec& chain);
  explicit FusedSum(FusedSumSpec spec);

  // Outputs: those of the chain, then one packed array of the kept axes per sum. Does not
  // allocate.
  void run(std::span<const void* const> inputs, std::span<void* const> outputs,
           ThreadPool& pool) const;
  bool has_sums() const { return !spec_.summed.empty(); }
  std::string describe() const;

 private:
  struct Part {  // positions [start, start + size) of the first kept axis
    std::int64_t start, size;
    int trace = -1;  // of one trace, or of all that is done
    bool has(int of) const { return trace < 0 || trace == of; }
  };
  void cut_into_parts();
  Part part(std::int64_t tile) const;
  void run_part(const Part& p, std::span<const void* const> inputs,
                std::span<void* const> outputs, std::byte* scratch) const;

  FusedSumSpec spec_;
  Shape lead_;
  std::int64_t first_kept_ = 1;  // size of the axis that is cut into parts
  std::int64_t part_size_ = 1, num_parts_ = 0;
  std::int64_t row_ = 1;  // kept elements behind one position of that axis
  // Of a full part and of the last one; or only the first, of all rows of traces, some of
  // which are a part.
  std::unique_ptr<TileProgram> whole_, last_;
  bool of_rows_ = false;
  std::int64_t rows_each_ =
      1;  // of such rows, behind one position of the first kept axis
  // Traces that do not touch each other are walked through by different threads as far as
  // can be: what a processor fetches early beyond the last row of a part is then seldom
  // another thread's.
  int traces_ = 1;
  std::vector<int> trace_of_sum_;
  Ints lead_bytes_;  // between positions of the last leading axis, as run_loop wants them
  double work_ns_ = 0;
};

}  // namespace braintrace
