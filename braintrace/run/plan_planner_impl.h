// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns a Graph into the steps of a plan. Loops and branches are planned by the same
// planner on their sub-graphs, with all buffers in one table.
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "braintrace/run/plan_groups_impl.h"
#include "braintrace/run/plan_program_impl.h"

namespace braintrace::plan {

// One graph on its way to a block.
struct Scope {
  const Graph& g;
  Scope* outer;
  int depth;
  int begin;                          // the time of the loop or branch it belongs to
  bool repeats;                       // it is the body of a loop
  std::vector<const Node*> producer;  // by value
  std::vector<Lowering> lowered;      // by node
  std::vector<std::vector<std::size_t>> readers = {};  // by value: nodes
  std::vector<bool> spiking = {};                      // by value
  std::vector<bool> is_output = {};                    // by value
  std::vector<std::optional<View>> views = {};         // by value: where it is
  std::vector<std::optional<View>> homes = {};         // by value: where it is wanted
  std::vector<std::pair<View, View>> packs = {};       // strided views and packed copies
  std::vector<int> written = {};  // buffers its outputs belong in; a branch's are outside
  Block block = {};
};

// A fused group on its way to a step.
struct FusedChain {
  TileSpec spec;
  std::vector<View> in;
  std::map<ValueId, int> number;  // of its values in the spec
};

// An operand of a product: where it is and how its matrices lie there.
struct GemmOperand {
  View view;
  MatrixStrides strides;
};

// The same elements in the same order, in two buffers.
bool same_layout(const View& a, View b);

class Planner {
 public:
  explicit Planner(Program& p) : program_(p) {}

  // The block around a loop or branch, and the time that begins.
  struct Outer {
    Scope* scope = nullptr;
    int begin = 0;
    bool repeats = false;
    std::vector<bool> spiking = {};  // about the inputs of the block (plan_events_impl.h)
  };
  // The steps that compute the outputs of g, each in the place given (a view without a
  // buffer: not wanted). Inputs are where the views say.
  Block plan(const Graph& g, std::span<const View> inputs, std::span<const View> outputs,
             const Outer& outer);
  // `out` would like to take over the memory of `in`. To be said before planning.
  void add_partners(int in, int out) { partners_.insert({in, out}); }
  // Lets what a fused step writes lie where what it reads for the last time was. Needs:
  // everything planned.
  void reuse_memory();
  // May `out` take over the memory of `in`? Needs: everything planned.
  bool may_share(int in, int out) const;

  int add_buffer(Place place, std::int64_t bytes, int depth);
  // Is it there before the loop or branch begins?
  bool comes_from_outside(const Scope& s, const View& v);
  View add_packed(Place place, const Type& t, int depth);

 private:
  std::vector<Overwrite> overwrites(const Graph& g, std::span<const View> inputs,
                                    std::span<const View> outputs) const;
  void claim_homes(Scope& s, std::span<const View> outputs);
  void claim(Scope& s, ValueId v, const View& home);
  void plan_node(Scope& s, std::size_t index);
  void plan_view(Scope& s, const Node& n, const Lowering& l);
  void plan_constant(Scope& s, const Node& n);
  void plan_concatenate(Scope& s, const Node& n, std::int64_t axis);
  void plan_fused(Scope& s, const Group& group);
  View along_rows(Scope& s, const View& v);
  FusedChain chain_of(Scope& s, const Group& group, const std::vector<bool>& inside);
  int align_inputs(const std::vector<View>& in, const View& out, int time);
  bool may_reuse(const View& in, const View& out) const;
  bool is_taken(int in, int time) const;
  bool used_outside(const Scope& s, ValueId v, const std::vector<bool>& inside) const;
  // beta: what is kept of what lies where the result goes.
  void plan_gemm(Scope& s, const Node& n, lowering::Gemm l, double beta = 0);
  void plan_products(Scope& s, const Group& group);
  GemmOperand gemm_operand(Scope& s, const View& v, const Ints& batch, const Ints& rows,
                           const Ints& cols);
  void pack_invariant(Scope& s, ValueId factor, GemmStep& step);
  std::vector<PackStep> packs_of_parts(Scope& home, const GemmStep& step, View whole);
  void leave_out_copies(Scope& s, int to);
  View place_images(Scope& s, const Node& n, const ConvGeometry& g);
  void plan_conv(Scope& s, const Node& n, const ConvGeometry& g);
  bool plan_kernel(Scope& s, const Node& n, const Lowering& l, bool added = false);
  void plan_pad(Scope& s, const Node& n, const lowering::Pad& l);
  void plan_eval(Scope& s, const Node& n);
  void plan_scan(Scope& s, const Node& n, const lowering::Scan& l);
  void plan_while(Scope& s, const Node& n, const lowering::While& l);
  void plan_cond(Scope& s, const Node& n, const lowering::Cond& l);
  Carry add_carry(Scope& s, ValueId init, ValueId result);
  void settle_carry(Carry& c, int begin, int end);
  void extend_over_loop(const Scope& s, int begin, int end);
  void keep_apart(const Scope& s, int begin, int end);

  const View& view(const Scope& s, ValueId v) const;
  // Where a new value goes: its home, or a buffer of its own.
  View place(Scope& s, ValueId v);
  View place_packed(Scope& s, ValueId v);
  // The value's view, or a packed copy of it, made outside the loop if it comes from
  // there.
  View packed(Scope& s, const View& v, int time);
  void emit_copy(Scope& s, const View& from, const View& to, int time);
  void read(const View& v, int time);
  void write(const View& v, int time);
  void align(const View& in, const View& out, int time);
  int tick() { return now_++; }
  Buffer& buffer(const View& v) {
    return program_.buffers[static_cast<std::size_t>(v.buffer)];
  }

  Program& program_;
  int now_ = 0;
  std::set<std::pair<int, int>> partners_;
  // (in, out, time): the step reads element by element what it writes there.
  std::set<std::tuple<int, int, int>> aligned_;
};

}  // namespace braintrace::plan
