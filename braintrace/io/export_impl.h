// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the files of the exporter share: text of the target language, the schedule of a
// program, places in arrays.
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "braintrace/io/export_header.h"
#include "braintrace/ir/op_def.h"

namespace braintrace::internal {

// ---- text ----

// Lines with indentation. open() takes the line that ends in '{'.
class CodeWriter {
 public:
  void line(std::string_view text);
  void open(std::string_view text);
  void close(std::string_view text = "}");
  int depth() const { return depth_; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  int depth_ = 0;
};

std::string_view c_type(DType d);
std::string literal_text(double value, DType d);  // exact
bool is_splat(const Array& a);                    // one number everywhere
// Functions of the header that the step calls: one text per name.
using Helpers = std::map<std::string, std::string>;

// ---- elements ----

// One element by its row-major number; where loops run over the axes of a shape (ones
// dropped) also by its coordinates.
struct Place {
  std::string flat;
  Shape shape = {};
  std::vector<std::string> coordinates = {};
};

// y[p] = x[m(p)]: reads a smaller array as if it were stretched.
struct StretchMap {
  Shape shape;   // of y, ones dropped
  Ints strides;  // in x; 0 on stretched axes
};

// How a value is read: the root's element at the place the maps lead to.
struct View {
  ValueId root;
  std::vector<StretchMap> maps;  // applied first to last
};
Place apply(const StretchMap& map, const Place& place);
Shape without_ones(const Shape& s);

// "i0 * 12 + i2 + 3"; "0" when nothing is left.
std::string linear_text(std::span<const std::string> variables, const Ints& strides,
                        std::int64_t offset);

// ---- schedule ----

// One loop nest: several element-by-element nodes of one shape, or one other node.
struct ExportKernel {
  std::vector<const Node*> nodes;
  bool elementwise = false;
};

struct ExportSchedule {
  std::vector<ExportKernel> kernels;
  std::vector<View> views;             // by value id
  std::vector<const Array*> literals;  // by value id; null unless a constant
  std::vector<bool> stored;            // by value id: roots that need memory
  std::vector<int> kernel_of;          // by value id: who computes it; -1 for inputs
};
ExportSchedule schedule_for_export(const Graph& g);
Lowering lowering_of(const Graph& g, const Node& n);  // UserError not_supported

// ---- ports and memory ----

// Outputs with this role become the next value of an input.
bool is_carried(ExportPort::Role r);
// A gradient belongs to a parameter; the others to their own kind.
ExportPort::Role partner_role(ExportPort::Role r);
std::size_t partner_of(const ExportSpec& spec, std::size_t output);  // an input
void check_export_spec(const Graph& g, const ExportSpec& spec,
                       ExportLanguage language);  // UserError

// ---- names ----

bool is_identifier(std::string_view s);
bool is_keyword(std::string_view word);       // of C or C++
bool is_library_name(std::string_view word);  // what a namespace cannot be called

// Letters, digits and _; never twice, never a word of the language.
class FieldNames {
 public:
  FieldNames();
  std::string field(const std::string& name);

 private:
  std::set<std::string> taken_;
};

// The field of an input or output port.
struct ExportField {
  bool is_input = false;
  std::size_t port = 0;
};
struct ExportMemory {
  std::vector<std::optional<ExportField>> field;  // by value id: computed there
  std::vector<std::int64_t> offset;               // by value id: else here in scratch
  std::map<DType, std::int64_t> scratch;          // elements per type
};
ExportMemory place_for_export(const Graph& g, const ExportSpec& spec,
                              const ExportSchedule& s);

// ---- code ----

class StepWriter {
 public:
  // Functions of the header get the prefix, so that several headers can be used at once.
  StepWriter(const Graph& g, const ExportSchedule& s, ExportLanguage language,
             std::string prefix)
      : graph_(g), schedule_(s), language_(language), prefix_(std::move(prefix)) {}

  void write(CodeWriter& w, const ExportKernel& k);
  // target[i] = v[i] for all i.
  void write_copy(CodeWriter& w, ValueId v, const std::string& target);

  // Values the code reads or writes in memory, by the name t<id>.
  const std::set<ValueId>& arrays() const { return arrays_; }
  const Helpers& helpers() const { return helpers_; }
  bool reads_by_index() const { return helpers_.count("index") > 0; }

 private:
  std::string element(ValueId v, const Place& p);
  std::string element(ValueId v, const std::string& flat) {
    return element(v, Place{flat});
  }
  std::string buffer(ValueId v) {
    arrays_.insert(v);
    return fmt::format("t{}", v.index);
  }

  void write_elementwise(CodeWriter& w, const ExportKernel& k);
  std::string expression(const Node& n, MicroOp op, const Place& p);
  std::string call(const std::string& function, DType d, const std::string& argument);
  std::string helper(const std::string& name, DType d);

  void write_node(CodeWriter& w, const Node& n, const lowering::Transpose& l);
  void write_node(CodeWriter& w, const Node& n, const lowering::Slice& l);
  void write_node(CodeWriter& w, const Node& n, const lowering::Pad& l);
  void write_node(CodeWriter& w, const Node& n, const lowering::Concatenate& l);
  void write_node(CodeWriter& w, const Node& n, const lowering::Gather& l);
  void write_node(CodeWriter& w, const Node& n, const lowering::ScatterAdd& l);
  void write_node(CodeWriter& w, const Node& n, const lowering::Reduce& l);
  void write_node(CodeWriter& w, const Node& n, const lowering::Gemm& l);
  void write_node(CodeWriter& w, const Node& n, const lowering::Conv& l);
  void write_node(CodeWriter& w, const Node& n, const lowering::Sparse& l);
  void write_node(CodeWriter& w, const Node& n, const lowering::SparseOuter& l);
  template <class Other>
  void write_node(CodeWriter&, const Node&, const Other&) {
    BT_INVARIANT(false);  // the schedule has refused or resolved it
  }
  void move_elements(CodeWriter& w, const Shape& shape, const Node& n, std::size_t input,
                     const Ints& in_strides, std::int64_t in_offset,
                     const Ints& out_strides, std::int64_t out_offset);
  void fill(CodeWriter& w, ValueId v, const std::string& value);
  std::string sum_text(DType d, const std::string& a, const std::string& b);
  std::string product_text(DType d, const std::string& a, const std::string& b);

  const Graph& graph_;
  const ExportSchedule& schedule_;
  ExportLanguage language_;
  std::string prefix_;
  std::vector<bool> local_;  // by value id: computed in the open loop
  std::set<ValueId> arrays_;
  Helpers helpers_;
};

// Loops over the axes of a shape; axes of size 1 have no loop and the variable "0".
// Returns the variables.
std::vector<std::string> open_loops(CodeWriter& w, const Shape& shape,
                                    std::string_view prefix);
void close_loops(CodeWriter& w, const Shape& shape);

}  // namespace braintrace::internal
