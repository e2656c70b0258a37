// SPDX-License-Identifier: Apache-2.0
#include "braintrace/run/fused_sum.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "braintrace/base/divide.h"
#include "braintrace/base/error.h"
#include "braintrace/run/thread_pool.h"
#include "braintrace/run/trace_kernels.h"

namespace braintrace {
namespace {

// Sums of one part stay in the first-level cache beside the blocks of the chain. Large
// loops come from memory far away, in stretches as long as that cache allows.
constexpr std::int64_t kPartElements = 4096, kLongPart = 8192;
constexpr std::int64_t kLargeLoop = std::int64_t{1} << 19;  // elements

Ints behind(const Ints& list, std::size_t n) {
  return {list.begin() + static_cast<std::ptrdiff_t>(n), list.end()};
}

DType type_of_value(const TileSpec& s, int value) {
  const auto v = static_cast<std::size_t>(value);
  return v < s.inputs.size() ? s.inputs[v].dtype : s.steps[v - s.inputs.size()].dtype;
}

// The chain over one position of the leading axes and `size` positions of the first kept
// one, with the sums so far as inputs that are overwritten.
TileSpec part_spec(const FusedSumSpec& spec, std::int64_t size) {
  TileSpec t = spec.chain;
  t.loop = behind(t.loop, spec.num_lead);
  if (!t.loop.empty()) t.loop[0] = size;
  for (TileInput& i : t.inputs) i.strides = behind(i.strides, spec.num_lead);
  for (TileOutput& o : t.outputs) o.strides = behind(o.strides, spec.num_lead);
  const int old_inputs = static_cast<int>(t.inputs.size());
  const int sums = static_cast<int>(spec.summed.size());
  const auto moved = [&](int v) { return v < old_inputs ? v : v + sums; };
  for (TileStep& s : t.steps)
    for (int& v : s.operands) v = moved(v);
  for (TileOutput& o : t.outputs) o.value = moved(o.value);
  const Ints packed = row_major_strides(t.loop);
  for (int v : spec.summed) t.inputs.push_back({type_of_value(spec.chain, v), packed});
  for (int i = 0; i < sums; ++i) {
    const int v = spec.summed[static_cast<std::size_t>(i)], sum = old_inputs + i;
    t.steps.push_back({MicroOp::add, type_of_value(spec.chain, v), {sum, moved(v)}});
    const int result = old_inputs + sums + static_cast<int>(t.steps.size()) - 1;
    t.outputs.push_back({result, packed, sum});
  }
  return t;
}

// Bytes from one position of the last leading axis to the next, of the inputs of a part,
// then of its outputs. Sums stay where they are.
Ints bytes_between_leads(const FusedSumSpec& spec) {
  Ints bytes;
  const auto add = [&](const Ints& strides, DType d) {
    bytes.push_back(strides[spec.num_lead - 1] * static_cast<std::int64_t>(size_of(d)));
  };
  const TileSpec& c = spec.chain;
  for (const TileInput& i : c.inputs) add(i.strides, i.dtype);
  bytes.resize(bytes.size() + spec.summed.size());
  for (const TileOutput& o : c.outputs) add(o.strides, type_of_value(c, o.value));
  bytes.resize(bytes.size() + spec.summed.size());
  return bytes;
}

// Walks over the positions of some axes; `offset` in elements for one list of strides.
struct Walker {
  std::span<const std::int64_t> sizes;
  std::array<std::int64_t, 16> at = {};
  bool next() {
    for (std::size_t i = sizes.size(); i-- > 0;) {
      if (++at[i] < sizes[i]) return true;
      at[i] = 0;
    }
    return false;
  }
  std::int64_t offset(const Ints& strides) const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) sum += at[i] * strides[i];
    return sum;
  }
};

}  // namespace

bool FusedSum::fits(const FusedSumSpec& spec) {
  const std::size_t pointers =
      spec.chain.inputs.size() + spec.chain.outputs.size() + 2 * spec.summed.size();
  return pointers <= kMaxPointers && spec.num_lead < spec.chain.loop.size() &&
         spec.num_lead <= std::tuple_size_v<decltype(Walker::at)>;
}

std::optional<FusedSum> FusedSum::in_loop(const TileSpec& chain) {
  if (chain.loop.size() < 3 || num_elements(chain.loop) == 0) return std::nullopt;
  FusedSumSpec spec{.chain = chain, .num_lead = chain.loop.size() - 2};
  if (!fits(spec)) return std::nullopt;
  FusedSum found(std::move(spec));
  if (!found.of_rows_) return std::nullopt;
  return found;
}

FusedSum::FusedSum(FusedSumSpec spec) : spec_(std::move(spec)) {
  BT_INVARIANT(fits(spec_));
  const Shape& loop = spec_.chain.loop;
  const auto kept = loop.begin() + static_cast<std::ptrdiff_t>(spec_.num_lead);
  lead_ = {loop.begin(), kept};
  first_kept_ = *kept;
  row_ = num_elements(behind(loop, spec_.num_lead + 1));
  if (!lead_.empty()) lead_bytes_ = bytes_between_leads(spec_);
  cut_into_parts();
}

void FusedSum::cut_into_parts() {
  const auto program = [&](std::int64_t size) {
    return std::make_unique<TileProgram>(part_spec(spec_, size));
  };
  const bool large = num_elements(spec_.chain.loop) > kLargeLoop;
  const std::int64_t wanted = large ? kLongPart : kPartElements;
  part_size_ = std::clamp<std::int64_t>(wanted / std::max<std::int64_t>(row_, 1), 1,
                                        std::max<std::int64_t>(first_kept_, 1));
  num_parts_ = divided_up(first_kept_, part_size_);
  whole_ = program(part_size_);
  const std::int64_t rest = first_kept_ % part_size_;
  work_ns_ = whole_->work_ns() * static_cast<double>(num_elements(lead_)) *
             static_cast<double>(first_kept_) / static_cast<double>(part_size_);
  of_rows_ = !lead_.empty() && num_parts_ > 0 && whole_->knows_loops();
  if (of_rows_) {
    whole_ = program(first_kept_);
    of_rows_ = whole_->knows_loops() && whole_->rows() % first_kept_ == 0;
    if (!of_rows_) whole_ = program(part_size_);
  }
  if (of_rows_) {
    num_parts_ += num_parts_ > 1 ? num_parts_ % 2 : 0;  // two threads take as many each
    rows_each_ = whole_->rows() / first_kept_;
    traces_ = whole_->traces_apart();
    const int outputs = static_cast<int>(spec_.chain.outputs.size());
    for (int i = 0; i < static_cast<int>(spec_.summed.size()); ++i)
      trace_of_sum_.push_back(whole_->trace_that_writes(outputs + i));
  } else if (rest > 0) {
    last_ = program(rest);
  }
}

// Rows of traces move in groups: parts are as even as these allow.
FusedSum::Part FusedSum::part(std::int64_t tile) const {
  if (!of_rows_) {
    const std::int64_t start = tile * part_size_;
    return {start, std::min(part_size_, first_kept_ - start)};
  }
  const std::int64_t groups = divided_up(first_kept_, kTraceRows);
  const auto start = [&](std::int64_t k) {
    return std::min(groups * k / num_parts_ * kTraceRows, first_kept_);
  };
  const std::int64_t k = tile % num_parts_;
  return {start(k), start(k + 1) - start(k),
          traces_ > 1 ? static_cast<int>(tile / num_parts_) : -1};
}

void FusedSum::run_part(const Part& p, std::span<const void* const> inputs,
                        std::span<void* const> outputs, std::byte* scratch) const {
  const TileSpec& c = spec_.chain;
  const std::size_t sums = spec_.summed.size(), num_in = c.inputs.size();
  std::array<const void*, kMaxPointers> in;
  std::array<void*, kMaxPointers> out;
  for (std::size_t i = 0; i < sums; ++i) {
    const std::size_t element = size_of(type_of_value(c, spec_.summed[i]));
    auto* sum = static_cast<std::byte*>(outputs[c.outputs.size() + i]) +
                static_cast<std::size_t>(p.start * row_) * element;
    if (!of_rows_ || p.has(trace_of_sum_[i]))
      std::memset(sum, 0, static_cast<std::size_t>(p.size * row_) * element);
    in[num_in + i] = out[c.outputs.size() + i] = sum;
  }
  const TileProgram& program = of_rows_ || p.size == part_size_ ? *whole_ : *last_;
  const std::int64_t start = of_rows_ ? 0 : p.start;  // where the program begins
  for (std::size_t i = 0; of_rows_ && i < sums; ++i)
    in[num_in + i] = out[c.outputs.size() + i] = outputs[c.outputs.size() + i];
  Walker walker{std::span(lead_).first(lead_.size() - (of_rows_ ? 1 : 0))};
  do {
    const auto place = [&](const void* base, const Ints& strides, DType d) {
      const std::int64_t at = walker.offset(strides) + start * strides[lead_.size()];
      return static_cast<const std::byte*>(base) +
             at * static_cast<std::int64_t>(size_of(d));
    };
    for (std::size_t i = 0; i < num_in; ++i)
      in[i] = place(inputs[i], c.inputs[i].strides, c.inputs[i].dtype);
    for (std::size_t i = 0; i < c.outputs.size(); ++i)
      out[i] = const_cast<std::byte*>(
          place(outputs[i], c.outputs[i].strides, type_of_value(c, c.outputs[i].value)));
    const std::span<const void* const> all_in = std::span(in).first(num_in + sums);
    const std::span<void* const> all_out = std::span(out).first(c.outputs.size() + sums);
    if (of_rows_)
      program.run_loop(all_in, all_out,
                       {p.start * rows_each_, (p.start + p.size) * rows_each_, p.trace},
                       lead_.back(), lead_bytes_);
    else
      program.run_serial(all_in, all_out, scratch);
  } while (walker.next());
}

void FusedSum::run(std::span<const void* const> inputs, std::span<void* const> outputs,
                   ThreadPool& pool) const {
  if (num_elements(spec_.chain.loop) == 0) {
    for (std::size_t i = 0; i < spec_.summed.size(); ++i)
      std::memset(outputs[spec_.chain.outputs.size() + i], 0,
                  static_cast<std::size_t>(first_kept_ * row_) *
                      size_of(type_of_value(spec_.chain, spec_.summed[i])));
    return;
  }
  pool.for_tiles_if(work_ns_ > kSharedWork, num_parts_ * traces_,
                    [&](std::int64_t tile, int worker) {
                      run_part(part(tile), inputs, outputs, pool.scratch(worker));
                    });
}

std::string FusedSum::describe() const {
  if (spec_.summed.empty())
    return fmt::format("{}, in a loop over {}", whole_->describe(), to_string(lead_));
  return fmt::format("{}, {} summed over {}", whole_->describe(), spec_.summed.size(),
                     to_string(lead_));
}

}  // namespace braintrace
