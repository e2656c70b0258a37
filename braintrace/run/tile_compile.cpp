// SPDX-License-Identifier: Apache-2.0
// Gives every value of a tile program a place: input or output memory where possible, a
// slot of scratch otherwise.
#include <algorithm>

#include "braintrace/base/error.h"
#include "braintrace/run/tile_compile_impl.h"

namespace braintrace {
namespace {

constexpr std::size_t kBlockBytes = 2048;   // of one slot, wished for
constexpr std::size_t kCacheBytes = 20480;  // of all slots, wished for
constexpr std::int64_t kMinBlock = 64;

// A step with the products it takes in: a b + c, or a b + c d.
struct InnerStep {
  MicroOp op;
  DType dtype;
  std::vector<int> operands;
  int products = 0;
  bool taken_in = false;  // by the sum that reads it
};

class Compiler {
 public:
  Compiler(const TileSpec& spec, std::int64_t block, Rows rows) : spec_(spec) {
    code_.num_inputs = static_cast<int>(spec.inputs.size());
    code_.num_outputs = static_cast<int>(spec.outputs.size());
    for (const TileOutput& o : spec.outputs) code_.memory_of.push_back(o.in_place);
    read_types();
    std::vector<Ints> strides;
    for (const TileInput& i : spec.inputs) strides.push_back(i.strides);
    for (const TileOutput& o : spec.outputs) strides.push_back(o.strides);
    for (const Ints& s : strides) BT_INVARIANT(s.size() == spec.loop.size());
    code_.layout = tile_layout(spec.loop, strides, block, rows);
    for (const TileStep& s : spec.steps) steps_.push_back({s.op, s.dtype, s.operands});
    take_in_products();
    order_steps();
    find_last_uses();
  }

  TileCode compile() {
    entry_.assign(types_.size(), -1);
    scalar_.assign(types_.size(), false);
    written_.assign(spec_.outputs.size(), false);
    for (int i = 0; i < code_.num_inputs; ++i) place_input(i);
    for (std::size_t s : order_)
      if (!steps_[s].taken_in) add_step(s);
    store_outputs();
    std::size_t widest = 1;
    for (DType d : types_) widest = std::max(widest, size_of(d));
    // The extra line keeps slots from sharing the low bits of their addresses.
    code_.slot_bytes = static_cast<std::size_t>(code_.layout.block) * widest;
    code_.slot_bytes = (code_.slot_bytes + 63) / 64 * 64 + 64;
    count_work();
    for (std::size_t axis = 0; axis < code_.layout.shape.size(); ++axis)
      for (const TilePlace& m : code_.moving)
        code_.moves.push_back(code_.strides(m.entry)[axis] *
                              static_cast<std::int64_t>(m.element));
    return std::move(code_);
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  DType type(int value) const { return types_[at(value)]; }

  void read_types() {
    for (const TileInput& i : spec_.inputs) types_.push_back(i.dtype);
    for (const TileStep& s : spec_.steps) {
      BT_INVARIANT(static_cast<int>(s.operands.size()) == arity(s.op));
      for (int v : s.operands) BT_INVARIANT(v >= 0 && at(v) < types_.size());
      types_.push_back(s.dtype);
    }
    for (const TileOutput& o : spec_.outputs) {
      BT_INVARIANT(o.value >= 0 && at(o.value) < types_.size());
      BT_INVARIANT(o.in_place < code_.num_inputs);
      if (o.in_place < 0) continue;
      const TileInput& i = spec_.inputs[at(o.in_place)];
      BT_INVARIANT(i.dtype == type(o.value) && i.strides == o.strides);
    }
  }

  static bool takes_products(const TileStep& s) {
    return s.op == MicroOp::add && is_float(s.dtype);
  }

  // Sums of products that only they read go through memory once; a product two sums read
  // is computed by both.
  void take_in_products() {
    std::vector<int> uses(types_.size(), 0);  // 3: somebody else's, or too many
    for (const TileStep& s : spec_.steps)
      for (int v : s.operands) uses[at(v)] += takes_products(s) ? 1 : 3;
    for (const TileOutput& o : spec_.outputs) uses[at(o.value)] += 3;
    std::vector<bool>& scalar = scalar_;
    scalar.assign(types_.size(), false);
    for (int i = 0; i < code_.num_inputs; ++i)
      scalar[at(i)] = access_of(code_.layout, at(i)) == Access::scalar;
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      InnerStep& step = steps_[s];
      scalar[at(code_.num_inputs) + s] =
          std::all_of(step.operands.begin(), step.operands.end(),
                      [&](int v) { return scalar[at(v)]; });
      const auto is_product = [&](int v) {
        const int p = v - code_.num_inputs;
        return p >= 0 && steps_[at(p)].op == MicroOp::mul && uses[at(v)] < 3 &&
               !scalar[at(v)];
      };
      if (takes_products(spec_.steps[s])) take_in(step, is_product, scalar);
    }
  }

  template <class IsProduct>
  void take_in(InnerStep& sum, const IsProduct& is_product,
               const std::vector<bool>& scalar) {
    std::vector<int> products, rest;
    for (int v : sum.operands) {
      if (!is_product(v)) {
        rest.push_back(v);
        continue;
      }
      InnerStep& p = steps_[at(v - code_.num_inputs)];
      p.taken_in = true;
      const bool turned = scalar[at(p.operands[0])];
      products.push_back(p.operands[turned ? 1 : 0]);
      products.push_back(p.operands[turned ? 0 : 1]);
      ++sum.products;
    }
    if (sum.products == 0) return;
    products.insert(products.end(), rest.begin(), rest.end());
    sum.operands = std::move(products);
  }

  // Single numbers first: their places then do not come between kernels that belong
  // together.
  void order_steps() {
    for (const bool single : {true, false})
      for (std::size_t s = 0; s < steps_.size(); ++s)
        if (scalar_[at(code_.num_inputs) + s] == single) order_.push_back(s);
    time_.resize(steps_.size());
    for (std::size_t t = 0; t < order_.size(); ++t)
      time_[order_[t]] = static_cast<int>(t);
  }

  void find_last_uses() {
    last_use_.assign(types_.size(), -1);
    for (std::size_t s : order_) {
      if (steps_[s].taken_in) continue;
      for (int v : steps_[s].operands) last_use_[at(v)] = time_[s];
    }
    for (const TileOutput& o : spec_.outputs)
      last_use_[at(o.value)] = static_cast<int>(spec_.steps.size());
  }

  int new_slot() {
    if (!free_.empty()) {
      const int slot = free_.back();
      free_.pop_back();
      return code_.slot_entry(slot);
    }
    return code_.slot_entry(code_.num_slots++);
  }

  void move_along(int entry, DType dtype) {
    code_.moving.push_back({entry, size_of(dtype)});
  }

  void place_input(int i) {
    if (last_use_[at(i)] < 0) return;
    const Access access = access_of(code_.layout, at(i));
    scalar_[at(i)] = access == Access::scalar;
    if (access == Access::direct || access == Access::scalar) {
      entry_[at(i)] = i;
      return move_along(i, type(i));
    }
    TileAction a{.kind = TileAction::gather, .element = size_of(type(i))};
    a.operands[0] = i;
    a.result = entry_[at(i)] = new_slot();
    if (access == Access::fixed) {
      kept_.push_back(i);
      code_.once.push_back(a);
    } else if (TileAction* first = unpaired(TileAction::gather, i)) {
      first->kind = TileAction::gather_pair;
      first->operands[1] = i;
      first->second = a.result;
    } else {
      code_.actions.push_back(a);
    }
  }

  // Every second of consecutive 4-byte elements.
  bool may_be_half(int entry, DType dtype) const {
    const Ints& strides = code_.strides(entry);
    return code_.layout.inside_rows && size_of(dtype) == 4 && !strides.empty() &&
           strides.back() == 2;
  }

  // An action of this kind that would go well with the same for `entry`, an input or
  // output: perhaps the other half of the same memory. Pointers tell when it runs.
  TileAction* unpaired(TileAction::Kind kind, int entry) {
    const bool in = kind == TileAction::gather;
    const DType dtype =
        in ? type(entry) : type(spec_.outputs[at(entry - code_.num_inputs)].value);
    if (!may_be_half(entry, dtype)) return nullptr;
    for (TileAction& a : code_.actions)
      if (a.kind == kind && a.element == size_of(dtype) &&
          code_.strides(in ? a.operands[0] : a.result) == code_.strides(entry))
        return &a;
    return nullptr;
  }

  // A value as a block of its own, for kernels that take no scalar there.
  int spread(int value) {
    TileAction a{.kind = TileAction::fill, .element = size_of(type(value))};
    a.operands[0] = entry_[at(value)];
    a.result = new_slot();
    code_.actions.push_back(a);
    return a.result;
  }

  void release(int entry) {
    if (entry >= code_.slot_entry(0)) free_.push_back(entry - code_.slot_entry(0));
  }

  // Frees what the step read last. Memory of elements of another size must not become
  // the step's result: a kernel may then overwrite what it has yet to read.
  void release_operands(std::size_t step, bool same_size) {
    const InnerStep& s = steps_[step];
    for (std::size_t i = 0; i < s.operands.size(); ++i) {
      const int v = s.operands[i];
      if (std::find(s.operands.begin(), s.operands.begin() + static_cast<long>(i), v) !=
          s.operands.begin() + static_cast<long>(i))
        continue;
      if (last_use_[at(v)] != time_[step]) continue;
      if (std::find(kept_.begin(), kept_.end(), v) != kept_.end()) continue;
      const bool same = size_of(type(v)) == size_of(s.dtype) && !scalar_[at(v)];
      if (same == same_size) release(entry_[at(v)]);
    }
  }

  // The output a step may write at once at this time, or -1.
  int direct_output(int value, int time) const {
    for (std::size_t o = 0; o < spec_.outputs.size(); ++o) {
      const TileOutput& out = spec_.outputs[o];
      if (out.value != value) continue;
      if (access_of(code_.layout, at(code_.num_inputs) + o) != Access::direct) continue;
      if (out.in_place >= 0 && last_use_[at(out.in_place)] > time) continue;
      return static_cast<int>(o);
    }
    return -1;
  }

  void add_step(std::size_t step) {
    const InnerStep& s = steps_[step];
    const int value = code_.num_inputs + static_cast<int>(step);
    if (last_use_[at(value)] < 0) return release_operands_unused(step);
    TileAction a;
    unsigned scalars = 0;
    for (std::size_t i = 0; i < s.operands.size(); ++i)
      if (scalar_[at(s.operands[i])]) scalars |= 1U << i;
    a.single = scalars == (1U << s.operands.size()) - 1;
    scalar_[at(value)] = a.single;
    if (a.single) scalars = 0;
    const DType operand = type(s.operands.back());
    a.call = s.products > 0 ? product_kernel(s.dtype, s.products, scalars)
                            : tile_kernel(s.op, operand, s.dtype, scalars);
    const bool spread_all = s.products == 0 && a.call == nullptr && scalars != 0;
    if (spread_all) a.call = tile_kernel(s.op, operand, s.dtype);
    BT_INVARIANT(a.call != nullptr);
    a.op = s.op;
    a.dtype = s.dtype;
    a.products = s.products;
    a.scalars = spread_all ? 0 : scalars;
    std::vector<int> temporary;
    for (std::size_t i = 0; i < s.operands.size(); ++i) {
      a.operands[i] = entry_[at(s.operands[i])];
      if (!spread_all || !scalar_[at(s.operands[i])]) continue;
      temporary.push_back(a.operands[i] = spread(s.operands[i]));
    }
    place_result(step, value, a);
    code_.actions.push_back(a);
    release_operands(step, false);
    for (int t : temporary) release(t);
  }

  void place_result(std::size_t step, int value, TileAction& a) {
    const int out = a.single ? -1 : direct_output(value, time_[step]);
    if (out < 0) {
      release_operands(step, true);
      a.result = new_slot();
    } else {
      a.result = code_.num_inputs + out;
      written_[at(out)] = true;
      move_along(a.result, type(value));
      release_operands(step, true);
    }
    entry_[at(value)] = a.result;
  }

  void release_operands_unused(std::size_t step) {
    release_operands(step, true);
    release_operands(step, false);
  }

  // Inputs passed on as outputs are read before any output is overwritten.
  void save_passed_inputs() {
    const bool overwrites = std::any_of(spec_.outputs.begin(), spec_.outputs.end(),
                                        [](const auto& o) { return o.in_place >= 0; });
    if (!overwrites) return;
    for (const TileOutput& o : spec_.outputs) {
      if (entry_[at(o.value)] >= code_.num_inputs || scalar_[at(o.value)]) continue;
      TileAction a{.call = tile_kernel(MicroOp::copy, type(o.value), type(o.value))};
      a.operands[0] = entry_[at(o.value)];
      a.result = entry_[at(o.value)] = new_slot();
      code_.actions.push_back(a);
    }
  }

  void store_outputs() {
    save_passed_inputs();
    for (std::size_t o = 0; o < spec_.outputs.size(); ++o) {
      if (written_[o]) continue;
      const int value = spec_.outputs[o].value;
      const int entry = code_.num_inputs + static_cast<int>(o);
      const bool direct = access_of(code_.layout, at(entry)) == Access::direct;
      TileAction a{.element = size_of(type(value))};
      a.operands[0] = entry_[at(value)];
      a.result = entry;
      if (direct) {
        a.kind = scalar_[at(value)] ? TileAction::fill : TileAction::kernel;
        a.call = tile_kernel(MicroOp::copy, type(value), type(value));
        move_along(entry, type(value));
      } else {
        if (scalar_[at(value)]) a.operands[0] = spread(value);
        a.kind = TileAction::scatter;
        if (TileAction* first = unpaired(TileAction::scatter, entry)) {
          TileAction both = *first;  // when both values are there: now
          both.kind = TileAction::scatter_pair;
          both.operands[1] = a.operands[0];
          both.second = entry;
          code_.actions.erase(code_.actions.begin() + (first - code_.actions.data()));
          a = both;
        }
      }
      code_.actions.push_back(a);
    }
  }

  void count_work() {
    double ns = 0.05 * (code_.num_inputs + code_.num_outputs);
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      const int value = code_.num_inputs + static_cast<int>(s);
      if (last_use_[at(value)] < 0 || scalar_[at(value)]) continue;
      const double products = 0.5 * steps_[s].products * cost_ns(MicroOp::mul);
      ns += (cost_ns(steps_[s].op) + products) * (size_of(steps_[s].dtype) > 4 ? 2 : 1);
    }
    code_.work_ns = ns * static_cast<double>(code_.layout.size);
  }

  const TileSpec& spec_;
  std::vector<InnerStep> steps_;
  TileCode code_;
  std::vector<DType> types_;        // of all values
  std::vector<std::size_t> order_;  // of the steps
  std::vector<int> time_;           // of a step in that order
  std::vector<int> last_use_;       // time, number of steps for outputs, -1 for none
  std::vector<int> entry_;          // of the pointer table
  std::vector<bool> scalar_;        // one element per block
  std::vector<bool> written_;       // outputs a step writes itself
  std::vector<int> kept_;           // inputs whose slot serves all blocks
  std::vector<int> free_;           // slots
};

}  // namespace

TileCode compile_tile(const TileSpec& spec, Rows rows) {
  std::size_t widest = 4;
  for (const TileInput& i : spec.inputs) widest = std::max(widest, size_of(i.dtype));
  for (const TileStep& s : spec.steps) widest = std::max(widest, size_of(s.dtype));
  auto block = static_cast<std::int64_t>(kBlockBytes / widest);
  TileCode code = Compiler(spec, block, rows).compile();
  while (block > kMinBlock &&
         static_cast<std::size_t>(code.num_slots) * code.slot_bytes > kCacheBytes) {
    block /= 2;
    code = Compiler(spec, block, rows).compile();
  }
  join_traces(code);
  prepare_rows(code);
  if (code.by_rows) return code;
  TileCode unmet = code;
  join_unmet_traces(unmet);
  prepare_rows(unmet);
  return unmet.by_rows ? unmet : code;
}

}  // namespace braintrace
