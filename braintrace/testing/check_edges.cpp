// SPDX-License-Identifier: Apache-2.0
// Check 9 of the op harness: what cases rarely think of, made from the case itself. The
// driver, what is told of each kind, and windows on other memory.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "braintrace/run/plan.h"
#include "braintrace/testing/check_op_impl.h"

namespace braintrace::testing {

std::span<const std::string_view> edge_kinds() {
  static constexpr std::array<std::string_view, 7> kKinds = {
      "empty", "one", "broadcast", "views", "special", "integers", "refusals"};
  return kKinds;
}

namespace internal {
namespace {

// Every second element of every axis of a larger array.
Array spaced(const Array& a) {
  Shape wide = a.shape();
  for (std::int64_t& d : wide) d = 2 * d + 1;
  const bool is_scalar = wide.empty();
  if (is_scalar) wide = {3};
  Array out = full(wide, 1, a.dtype());
  const Ints strides = row_major_strides(wide);
  const Array packed = a.contiguous();
  visit_dtype(a.dtype(), [&]<class T>(T) {
    T* p = out.mutable_data<T>();
    for (std::int64_t i = 0; i < a.size(); ++i) {
      std::int64_t at = is_scalar ? 1 : 0;
      const Ints index = unravel(i, a.shape());
      for (std::size_t d = 0; d < index.size(); ++d)
        at += (2 * index[d] + 1) * strides[d];
      p[at] = packed.data<T>()[i];
    }
  });
  if (is_scalar) return out.sliced({1}, {1}, {1}).reshaped({});
  const auto rank = static_cast<std::size_t>(a.rank());
  return out.sliced(Ints(rank, 1), a.shape(), Ints(rank, 2));
}

// The same values, stored with the axes in reverse order.
Array stored_in_reverse(const Array& a) {
  Ints reversed = iota_ints(a.rank());
  std::reverse(reversed.begin(), reversed.end());
  return a.transposed(reversed).contiguous().transposed(reversed);
}

// The first row in place of all.
Array stretched(const Array& a) {
  if (a.rank() == 0 || a.shape()[0] == 0) return a;
  Shape row = a.shape();
  row[0] = 1;
  const auto rank = static_cast<std::size_t>(a.rank());
  return a.sliced(Ints(rank, 0), row, Ints(rank, 1)).broadcast_to(a.shape());
}

void check_same_bits(const Checked& k, const std::vector<Array>& got,
                     const std::vector<Array>& want, const std::string& what) {
  for (std::size_t i = 0; i < want.size(); ++i)
    if (!(got[i] == want[i]))
      fail(k, fmt::format("{}, output {}: got {}, want {} as for packed inputs", what, i,
                          to_string(got[i]), to_string(want[i])));
}

void check_view(Checked& k, const std::vector<Array>& views, const std::string& name) {
  std::vector<Array> packed;
  for (const Array& a : views) packed.push_back(a.contiguous());
  const std::vector<Array> want = eval_graph(k.graph, packed);
  check_same_bits(k, eval_graph(k.graph, views), want, name + ", interpreted");
  check_same_bits(k, run_eagerly(k.c, views), run_eagerly(k.c, packed), name + ", eager");
  std::vector<Array> planned, planned_packed;
  Plan plan(k.graph, {.threads = 1});
  plan.run(views, planned);
  Plan(k.graph, {.threads = 1}).run(packed, planned_packed);
  check_same_bits(k, planned, planned_packed, name + ", planned");
  met(k, "views");
}

}  // namespace

void met(Checked& k, std::string_view kind) { ++k.edges[std::string(kind)].met; }

void excuse(Checked& k, std::string_view kind, const std::string& reason) {
  k.edges[std::string(kind)].reason = reason;
}

void check_views(Checked& k) {
  if (k.c.inputs.empty()) return excuse(k, "views", "no inputs");
  struct Form {
    const char* name;
    Array (*make)(const Array&);
  };
  for (const Form& f : {Form{"spaced inputs", spaced},
                        Form{"inputs stored in reverse", stored_in_reverse},
                        Form{"stretched inputs", stretched}}) {
    if (f.make == stretched && !k.c.fixed_values.empty()) continue;
    std::vector<Array> views;
    for (const Array& a : k.c.inputs) views.push_back(f.make(a));
    check_view(k, views, f.name);
  }
}

void check_edges(Checked& k) {
  check_sizes(k);
  check_views(k);
  check_special(k);
  check_refusals(k);
  check_integers(k);
  for (std::string_view kind : edge_kinds()) {
    const EdgeTally& t = k.edges[std::string(kind)];
    k.notes += t.met > 0 ? fmt::format("  {} {}", kind, t.met)
                         : fmt::format("  {} - ({})", kind, t.reason);
  }
}

}  // namespace internal
}  // namespace braintrace::testing
