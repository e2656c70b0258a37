// SPDX-License-Identifier: Apache-2.0
#include "braintrace/view/code.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braintrace/ir/op_def.h"
#include "braintrace/view/code_template_impl.h"
#include "braintrace/view/step_names.h"

namespace braintrace {
namespace {

using internal::Expression;

// Unique words, over all nested programs.
class Names {
 public:
  std::string unique(const std::string& wish) {
    std::string name = wish;
    for (int i = 2; !used_.insert(name).second; ++i) name = fmt::format("{}_{}", wish, i);
    return name;
  }
  std::string numbered(std::string_view prefix) {
    std::string name;
    do name = fmt::format("{}{}", prefix, next_[std::string(prefix)]++);
    while (!used_.insert(name).second);
    return name;
  }

 private:
  std::set<std::string> used_;
  std::map<std::string, int> next_;
};

std::vector<int> use_counts(const Graph& g, std::span<const ValueId> returns) {
  std::vector<int> uses(g.num_values());
  for (const Node& n : g.nodes())
    for (ValueId v : n.inputs) ++uses[v.index];
  for (ValueId v : returns) uses[v.index] += 2;  // a returned value keeps its own line
  return uses;
}

class Writer {
 public:
  Writer(const Graph& g, const CodeOptions& options, Names& names, int depth)
      : g_(g),
        options_(options),
        names_(names),
        pad_(static_cast<std::size_t>(depth) * 2, ' '),
        depth_(depth),
        returns_(options.returns
                     ? *options.returns
                     : std::vector<ValueId>(g.outputs().begin(), g.outputs().end())),
        uses_(use_counts(g, returns_)),
        expressions_(g.num_values()) {}

  std::string function();
  std::string lambda();

 private:
  std::string body();
  std::string statement(const Node& n);
  std::string name_input(ValueId v, std::string_view prefix);
  std::string name_output(ValueId v);
  std::string attribute(const Attr& a);
  Expression expression(const Node& n);

  const Graph& g_;
  const CodeOptions& options_;
  Names& names_;
  std::string pad_;
  int depth_;
  std::vector<ValueId> returns_;
  std::vector<int> uses_;
  std::vector<Expression> expressions_;  // by value: a name, or what stands in its place
};

std::string Writer::name_input(ValueId v, std::string_view prefix) {
  const auto it = options_.names.find(v);
  const std::string name = it == options_.names.end()
                               ? names_.numbered(prefix)
                               : names_.unique(view::identifier(it->second));
  expressions_[v.index] = {name};
  return name;
}

std::string Writer::name_output(ValueId v) { return name_input(v, "v"); }

std::string Writer::attribute(const Attr& a) {
  if (kind_of(a) != AttrKind::graph) return internal::attribute_code(a);
  static const CodeOptions plain;
  return Writer(*std::get<GraphPtr>(a), plain, names_, depth_ + 1).lambda();
}

Expression Writer::expression(const Node& n) {
  std::vector<Expression> in;
  for (ValueId v : n.inputs) in.push_back(expressions_[v.index]);
  return internal::apply_template(n, in, [&](const Attr& a) { return attribute(a); });
}

// The line of a node; empty when its value stands in the place of its one use.
std::string Writer::statement(const Node& n) {
  Expression e = expression(n);
  const bool one = n.outputs.size() == 1;
  const bool is_short =
      e.text.size() <= options_.inline_width && e.text.find('\n') == std::string::npos;
  if (one && is_short && !options_.names.contains(n.outputs[0])) {
    const int uses = uses_[n.outputs[0].index];
    const bool literal = !internal::number_of(e).empty();
    if (uses == 1 || literal) {
      expressions_[n.outputs[0].index] = std::move(e);
      return "";
    }
  }
  std::vector<std::string> names, types;
  for (ValueId v : n.outputs) {
    names.push_back(name_output(v));
    types.push_back(to_string(g_.type(v)));
  }
  const std::string left = one ? names[0] : fmt::format("[{}]", fmt::join(names, ", "));
  return fmt::format("{}  auto {} = {};  // {}\n", pad_, left, e.text,
                     fmt::join(types, ", "));
}

std::string Writer::body() {
  std::string text;
  for (const Node& n : g_.nodes()) text += statement(n);
  std::vector<std::string> results;
  for (ValueId v : returns_) results.push_back(expressions_[v.index].text);
  const std::string list = fmt::format("{}", fmt::join(results, ", "));
  return text + fmt::format("{}  return {};\n{}}}", pad_,
                            results.size() == 1 ? list : "{" + list + "}", pad_);
}

std::string Writer::lambda() {
  std::vector<std::string> names;
  for (ValueId v : g_.inputs()) names.push_back("auto " + name_input(v, "a"));
  return fmt::format("[=]({}) {{\n", fmt::join(names, ", ")) + body();
}

std::string Writer::function() {
  const std::string head = fmt::format("auto {}(", names_.unique(options_.function));
  const std::string indent(head.size(), ' ');
  std::vector<std::string> lines;
  std::size_t width = 0;
  for (ValueId v : g_.inputs()) {
    const bool last = lines.size() + 1 == g_.inputs().size();
    lines.push_back((lines.empty() ? head : indent) + "auto " + name_input(v, "a") +
                    (last ? ") {" : ","));
    width = std::max(width, lines.back().size());
  }
  if (lines.empty()) return head + ") {\n" + body() + "\n";
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const ValueId v = g_.inputs()[i];
    const auto note = options_.comments.find(v);
    text += fmt::format("{:<{}}  // {}{}\n", lines[i], width, to_string(g_.type(v)),
                        note == options_.comments.end() ? "" : "  " + note->second);
  }
  return text + body() + "\n";
}

}  // namespace

std::string to_code(const Graph& g, const CodeOptions& options) {
  Names names;
  return Writer(g, options, names, 0).function();
}

std::string to_code(const StepModel& step) {
  const view::StepNames names = view::step_names(step);
  CodeOptions options{.function = "step", .names = names.entry};
  std::vector<ValueId> returns(
      step.program.outputs().begin(),
      step.program.outputs().begin() + static_cast<std::ptrdiff_t>(step.num_outputs));
  for (const StepState& s : step.states) {
    for (std::size_t i = 0; i < s.in.size(); ++i) {
      options.comments[s.in[i]] = fmt::format("{}", to_string(s.kind));
      if (!s.written) continue;
      returns.push_back(s.out[i]);
      // A state may end the step with the value of another input: that keeps its name.
      options.names.emplace(s.out[i], view::leaf_name(s, i) + "_next");
    }
  }
  for (std::size_t i = 0; i < step.num_outputs; ++i)
    options.names.emplace(returns[i], fmt::format("y{}", i));
  options.returns = std::move(returns);
  return to_code(step.program, options);
}

}  // namespace braintrace
