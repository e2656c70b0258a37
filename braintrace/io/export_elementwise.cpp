// SPDX-License-Identifier: Apache-2.0
// Element-by-element loops of an exported program.
#include <fmt/format.h>

#include "braintrace/io/export_impl.h"

namespace braintrace::internal {
namespace {

// Text of a helper: $T its element type, $f( a function of libm for that type.
struct HelperText {
  const char* name;
  const char* parameters;
  const char* body;
};
constexpr HelperText kHelpers[] = {
    {"sigmoid", "$T x",
     "const $T e = $exp(-$fabs(x)); return (x < 0 ? e : 1) / (1 + e);"},
    {"softplus", "$T x", "return (x > 0 ? x : 0) + $log1p($exp(-$fabs(x)));"},
    {"sign", "$T x", "return x != x ? x : ($T)((x > 0) - (x < 0));"},
    {"max", "$T a, $T b", "return a != a || a > b ? a : b;"},
    {"min", "$T a, $T b", "return a != a || a < b ? a : b;"},
    {"clamp", "$T x, $T low, $T high",
     "const $T raised = x < low ? low : x; return raised > high ? high : raised;"},
    // Towards zero; a plain cast is undefined outside the range of int32_t.
    {"to_int", "$T x",
     "if (x != x) return 0; if (x >= ($T)2147483647) return 2147483647; "
     "if (x <= ($T)-2147483647 - 1) return -2147483647 - 1; return (int32_t)x;"},
};

std::string_view suffix(DType d) { return d == DType::boolean ? "bool" : to_string(d); }

std::string wrapping(const char* op, const std::string& a, const std::string& b) {
  return fmt::format("(int32_t)((uint32_t){} {} (uint32_t){})", a, op, b);
}

std::string_view infix(MicroOp op) {
  switch (op) {
    case MicroOp::add:
      return "+";
    case MicroOp::sub:
      return "-";
    case MicroOp::mul:
      return "*";
    case MicroOp::div:
      return "/";
    case MicroOp::equal:
      return "==";
    case MicroOp::not_equal:
    case MicroOp::logical_xor:
      return "!=";
    case MicroOp::less:
      return "<";
    case MicroOp::less_equal:
      return "<=";
    case MicroOp::greater:
      return ">";
    case MicroOp::greater_equal:
      return ">=";
    case MicroOp::logical_and:
      return "&&";
    case MicroOp::logical_or:
      return "||";
    default:
      return "";
  }
}

// Name in libm.
std::string_view function_of(MicroOp op) {
  switch (op) {
    case MicroOp::sqrt:
      return "sqrt";
    case MicroOp::exp:
      return "exp";
    case MicroOp::expm1:
      return "expm1";
    case MicroOp::log:
      return "log";
    case MicroOp::log1p:
      return "log1p";
    case MicroOp::tanh:
      return "tanh";
    case MicroOp::erf:
      return "erf";
    case MicroOp::sin:
      return "sin";
    case MicroOp::cos:
      return "cos";
    case MicroOp::floor:
      return "floor";
    case MicroOp::pow:
      return "pow";
    default:
      return "";
  }
}

std::string_view helper_of(MicroOp op) {
  switch (op) {
    case MicroOp::sigmoid:
      return "sigmoid";
    case MicroOp::softplus:
      return "softplus";
    case MicroOp::sign:
      return "sign";
    case MicroOp::max:
      return "max";
    case MicroOp::min:
      return "min";
    case MicroOp::clamp:
      return "clamp";
    default:
      return "";
  }
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

}  // namespace

// f32 functions end in f in C and are overloads in C++.
std::string StepWriter::call(const std::string& function, DType d,
                             const std::string& arguments) {
  if (language_ == ExportLanguage::cpp17)
    return fmt::format("std::{}({})", function, arguments);
  return fmt::format("{}{}({})", function, d == DType::f32 ? "f" : "", arguments);
}

std::string StepWriter::helper(const std::string& name, DType d) {
  const std::string full = fmt::format("{}{}_{}", prefix_, name, suffix(d));
  if (helpers_.count(full)) return full;
  for (const HelperText& h : kHelpers) {
    if (name != h.name) continue;
    const std::string result(name == "to_int" ? "int32_t" : c_type(d));
    std::string text = fmt::format("static inline {} {}({}) {{ {} }}", result, full,
                                   h.parameters, h.body);
    // Only floats can differ from themselves; compilers warn about others.
    if (!is_float(d))
      text = replaced(replaced(text, "a != a || ", ""), "x != x ? x : ", "");
    text = replaced(text, "$T", c_type(d));
    for (const char* f : {"exp", "fabs", "log1p"}) {
      const std::string open = call(f, d, "");
      text = replaced(text, fmt::format("${}(", f), open.substr(0, open.size() - 1));
    }
    helpers_[full] = text;
    return full;
  }
  BT_INVARIANT(false);
  return full;
}

std::string StepWriter::expression(const Node& n, MicroOp op, const Place& p) {
  std::vector<std::string> x;
  for (const ValueId v : n.inputs) x.push_back(element(v, p));
  const DType in = graph_.type(n.inputs[0]).dtype, out = graph_.type(n.outputs[0]).dtype;
  if (op == MicroOp::select) return fmt::format("{} ? {} : {}", x[0], x[1], x[2]);
  if (op == MicroOp::logical_not) return "!" + x[0];
  if (op == MicroOp::convert) {
    if (out == DType::boolean) return x[0] + " != 0";
    if (out == DType::i32 && is_float(in))
      return fmt::format("{}({})", helper("to_int", in), x[0]);
    return fmt::format("({}){}", c_type(out), x[0]);
  }
  const bool integer = in == DType::i32;
  if (op == MicroOp::neg) return integer ? wrapping("-", "0", x[0]) : "-" + x[0];
  if (op == MicroOp::abs)
    return integer ? fmt::format("{} < 0 ? {} : {}", x[0], wrapping("-", "0", x[0]), x[0])
                   : call("fabs", in, x[0]);
  if (op == MicroOp::rsqrt)
    return fmt::format("{} / {}", literal_text(1, in), call("sqrt", in, x[0]));
  const bool arithmetic = op == MicroOp::add || op == MicroOp::sub || op == MicroOp::mul;
  if (integer && arithmetic) return wrapping(std::string(infix(op)).c_str(), x[0], x[1]);
  if (!infix(op).empty()) return fmt::format("{} {} {}", x[0], infix(op), x[1]);
  const std::string arguments = fmt::format("{}", fmt::join(x, ", "));
  if (!function_of(op).empty()) return call(std::string(function_of(op)), in, arguments);
  return fmt::format("{}({})", helper(std::string(helper_of(op)), in), arguments);
}

// One flat loop, or one loop per axis where an operand is stretched.
void StepWriter::write_elementwise(CodeWriter& w, const ExportKernel& k) {
  const Type& type = graph_.type(k.nodes[0]->outputs[0]);
  Shape shape = without_ones(type.shape);
  bool stretched = false;
  for (const Node* n : k.nodes)
    for (const ValueId v : n->inputs)
      stretched = stretched || !schedule_.views[v.index].maps.empty();
  if (!stretched && shape.size() > 1) shape = {type.size()};
  const std::vector<std::string> variables = open_loops(w, shape, "i");
  Place place{linear_text(variables, row_major_strides(shape), 0)};
  if (shape.size() > 1) {
    w.line(fmt::format("const int i = {};", place.flat));
    place = {"i", shape, variables};
  }
  local_.assign(graph_.num_values(), false);
  for (const Node* n : k.nodes) {
    const ValueId v = n->outputs[0];
    const auto l = std::get<lowering::Elementwise>(lowering_of(graph_, *n));
    w.line(fmt::format("const {} v{} = {};", c_type(graph_.type(v).dtype), v.index,
                       expression(*n, l.op, place)));
    local_[v.index] = true;
  }
  // Last, because a result may take the place of an operand.
  for (const Node* n : k.nodes) {
    const ValueId v = n->outputs[0];
    if (schedule_.stored[v.index])
      w.line(fmt::format("{}[{}] = v{};", buffer(v), place.flat, v.index));
  }
  local_.assign(graph_.num_values(), false);
  close_loops(w, shape);
}

}  // namespace braintrace::internal
