// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cctype>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braintrace/ir/evaluate.h"
#include "braintrace/ir/print.h"
#include "braintrace/view/code_template_impl.h"

namespace braintrace::internal {
namespace {

constexpr int kUnary = 50, kTernary = 1;

struct Operator {
  std::string_view text;
  int precedence;
  bool chains;  // a op b op c reads as (a op b) op c without doubt
};
constexpr std::array<Operator, 12> kOperators = {{{"*", 40, true},
                                                  {"/", 40, true},
                                                  {"+", 30, true},
                                                  {"-", 30, true},
                                                  {"<", 20, false},
                                                  {"<=", 20, false},
                                                  {">", 20, false},
                                                  {">=", 20, false},
                                                  {"==", 15, false},
                                                  {"!=", 15, false},
                                                  {"&&", 10, true},
                                                  {"||", 5, true}}};

// What the form of a template says about precedence. Operands below the least precedence
// get parentheses.
struct Form {
  int precedence = kPrimary;
  int least_left = 0, least_right = 0;
};

Form form_of(std::string_view code) {
  if (code.find(" ? ") != std::string_view::npos)
    return {kTernary, kTernary + 1, kTernary + 1};
  if (code.starts_with("-") || code.starts_with("!"))
    return {kUnary, kUnary + 1, kUnary + 1};
  if (!code.starts_with("$0 ")) return {};
  const std::string_view rest = code.substr(3);
  for (const Operator& o : kOperators)
    if (rest.substr(0, rest.find(' ')) == o.text)
      return {o.precedence, o.precedence + (o.chains ? 0 : 1), o.precedence + 1};
  return {};
}

std::string unnamed_inputs(std::string_view code, std::span<const Expression> in) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < in.size(); ++i)
    if (code.find(fmt::format("${}", i)) == std::string_view::npos)
      texts.push_back(in[i].text);
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string element_code(const Array& a, std::int64_t i) {
  const double v = a.at(i);
  if (a.dtype() == DType::boolean) return v != 0 ? "true" : "false";
  if (a.dtype() == DType::f64) return fmt::format("{}", v);
  if (!is_float(a.dtype())) return fmt::format("{}", static_cast<std::int64_t>(v));
  return fmt::format("{}", static_cast<float>(v));
}

bool all_same(const Array& a) {
  return a.size() > 0 && a == full(a.shape(), a.at(0), a.dtype());
}

std::string array_code(const Array& a) {
  constexpr std::int64_t kShown = 4;
  if (a.rank() == 0) return element_code(a, 0);
  if (a.size() > 1 && all_same(a))
    return fmt::format("full({}, {})", to_string(a.shape()), element_code(a, 0));
  const std::string type = to_string(type_of(a));
  std::vector<std::string> shown;
  for (std::int64_t i = 0; i < std::min(a.size(), kShown); ++i)
    shown.push_back(element_code(a, i));
  if (a.size() > kShown) shown.push_back("...");
  return fmt::format("{}{{{}}}", type, fmt::join(shown, ", "));
}

std::string operand(const Expression& e, int least) {
  const std::string number = least > 0 ? number_of(e) : "";
  if (!number.empty()) return number.starts_with("-") ? "(" + number + ")" : number;
  return e.precedence < least ? "(" + e.text + ")" : e.text;
}

// The value of a node whose inputs are all known.
std::optional<Array> constant_of(const Node& n, std::span<const Expression> in) {
  constexpr std::int64_t kLargest = 65536;
  if (has(n.op->traits, Trait::constant)) return n.attrs.array("value");
  const Trait unknown = Trait::random | Trait::region;
  if (in.empty() || n.outputs.size() != 1 || has(n.op->traits, unknown)) return {};
  std::vector<Array> values;
  std::vector<Type> types;
  for (const Expression& e : in) {
    if (!e.constant) return {};
    values.push_back(*e.constant);
    types.push_back(type_of(values.back()));
  }
  if (infer_types(*n.op, types, n.attrs)[0].size() > kLargest) return {};
  return eval_op(*n.op, values, n.attrs)[0];
}

}  // namespace

std::string number_of(const Expression& e) {
  return e.constant && all_same(*e.constant) ? element_code(*e.constant, 0) : "";
}

std::string attribute_code(const Attr& a) {
  return kind_of(a) == AttrKind::array ? array_code(std::get<Array>(a)) : print(a);
}

Expression apply_template(const Node& n, std::span<const Expression> in,
                          const std::function<std::string(const Attr&)>& attribute) {
  // An op without a template is a call by its name.
  const std::string code =
      n.op->code.empty() ? std::string(n.op->name) + "($*)" : std::string(n.op->code);
  if (code == "$0" && in.size() == 1) return in[0];
  const Form form = form_of(code);
  Expression out{"", form.precedence};
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (code[i] == '$' && code[i + 1] == '*') {
      out.text += unnamed_inputs(code, in);
      ++i;
    } else if (code[i] == '$') {
      const auto which = static_cast<std::size_t>(code[++i] - '0');
      out.text += operand(in[which], which == 0 ? form.least_left : form.least_right);
    } else if (code[i] == '{') {
      const std::size_t end = code.find('}', i);
      const Attr* a = n.attrs.find(code.substr(i + 1, end - i - 1));
      if (a) out.text += attribute(*a);
      i = end;
    } else {
      out.text += code[i];
    }
  }
  out.constant = constant_of(n, in);
  const bool negative = out.precedence == kPrimary && out.text.starts_with("-");
  if (negative) out.precedence = kUnary;
  return out;
}

}  // namespace braintrace::internal
