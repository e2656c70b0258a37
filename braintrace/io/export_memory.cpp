// SPDX-License-Identifier: Apache-2.0
// Where the values of an exported step live: in the field of an output, in place of the
// state they replace, or in memory shared by values that are not needed at once.
#include <algorithm>

#include "braintrace/io/export_impl.h"

namespace braintrace::internal {
namespace {

struct Interval {
  std::int64_t begin, end;
  int last;  // kernel that reads it last
};

// First place that no value still in use covers.
std::int64_t lowest_gap(std::vector<Interval>& active, std::int64_t size) {
  std::sort(active.begin(), active.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::int64_t at = 0;
  for (const Interval& i : active) {
    if (at + size <= i.begin) break;
    at = std::max(at, i.end);
  }
  return at;
}

class Placement {
 public:
  Placement(const Graph& g, const ExportSpec& spec, const ExportSchedule& s)
      : g_(g), spec_(spec), s_(s), end_(static_cast<int>(s.kernels.size())) {
    memory_.field.resize(g.num_values());
    memory_.offset.resize(g.num_values(), 0);
    last_.resize(g.num_values(), -1);
    stretched_.resize(g.num_values(), -1);
    for (int k = 0; k < end_; ++k)
      for (const Node* n : kernel(k).nodes)
        for (const ValueId v : n->inputs) note_read(v, k);
    for (const ValueId v : g.outputs()) note_read(v, end_);
  }

  ExportMemory run() {
    for (std::size_t i = 0; i < spec_.outputs.size(); ++i)
      if (!is_carried(spec_.outputs[i].role)) bind(i, ExportField{false, i});
    for (std::size_t i = 0; i < spec_.outputs.size(); ++i)
      if (is_carried(spec_.outputs[i].role) && may_replace(i))
        bind(i, ExportField{true, partner_of(spec_, i)});
    for (int k = 0; k < end_; ++k) place_kernel(k);
    return std::move(memory_);
  }

 private:
  const ExportKernel& kernel(int k) const {
    return s_.kernels[static_cast<std::size_t>(k)];
  }
  const View& view(ValueId v) const { return s_.views[v.index]; }

  void note_read(ValueId v, int k) {
    last_[view(v).root.index] = k;
    if (!view(v).maps.empty()) stretched_[view(v).root.index] = k;
  }
  // The first output that is a computed value is computed in its field.
  void bind(std::size_t output, ExportField field) {
    const View& v = view(g_.outputs()[output]);
    const bool computed = s_.kernel_of[v.root.index] >= 0;
    if (computed && v.maps.empty() && !memory_.field[v.root.index])
      memory_.field[v.root.index] = field;
  }
  // The old value is read for the last time where the new one is computed, element by
  // element.
  bool may_replace(std::size_t output) const {
    const ValueId next = view(g_.outputs()[output]).root;
    const ValueId old = g_.inputs()[partner_of(spec_, output)];
    const int k = s_.kernel_of[next.index];
    return k >= 0 && kernel(k).elementwise && last_[old.index] <= k &&
           stretched_[old.index] < k;
  }
  void place_kernel(int k) {
    for (auto& [dtype, list] : active_)
      std::erase_if(list, [&](const Interval& i) { return i.last < k; });
    for (const Node* n : kernel(k).nodes) {
      const ValueId v = n->outputs[0];
      if (!s_.stored[v.index] || memory_.field[v.index]) continue;
      const Type& t = g_.type(v);
      std::vector<Interval>& list = active_[t.dtype];
      const std::int64_t at = lowest_gap(list, t.size());
      list.push_back({at, at + t.size(), std::max(last_[v.index], k)});
      memory_.offset[v.index] = at;
      std::int64_t& size = memory_.scratch[t.dtype];
      size = std::max(size, at + t.size());
    }
  }

  const Graph& g_;
  const ExportSpec& spec_;
  const ExportSchedule& s_;
  int end_;
  ExportMemory memory_;
  std::vector<int> last_;  // by value id: kernel that reads it last; end_ for outputs
  std::vector<int> stretched_;  // by value id: last kernel that reads it stretched
  std::map<DType, std::vector<Interval>> active_;
};

}  // namespace

ExportMemory place_for_export(const Graph& g, const ExportSpec& spec,
                              const ExportSchedule& s) {
  return Placement(g, spec, s).run();
}

}  // namespace braintrace::internal
