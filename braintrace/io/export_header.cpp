// SPDX-License-Identifier: Apache-2.0
#include "braintrace/io/export_header.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "braintrace/io/export_impl.h"

namespace braintrace {
namespace {

using Role = ExportPort::Role;
using internal::c_type;
using internal::CodeWriter;
using internal::ExportSchedule;
using internal::is_carried;
using internal::partner_of;

struct Field {
  std::string name;
  Type type;
  std::optional<Array> initial;
  std::string comment;
};

class HeaderWriter {
 public:
  HeaderWriter(const Graph& g, const ExportSpec& spec, ExportLanguage language)
      : g_(g),
        spec_(spec),
        language_(language),
        schedule_(internal::schedule_for_export(g)),
        memory_(internal::place_for_export(g, spec, schedule_)),
        prefix_(language == ExportLanguage::cpp17 ? "bt_" : spec.name + "_"),
        step_(g, schedule_, language, prefix_) {}

  std::string write() {
    name_fields();
    const std::string body = step_body();  // first: it tells which helpers there are
    CodeWriter w;
    write_top(w);
    write_helpers(w);
    write_struct(w, body);
    return w.take();
  }

 private:
  bool is_cpp() const { return language_ == ExportLanguage::cpp17; }
  ValueId root(ValueId v) const { return schedule_.views[v.index].root; }
  bool is_program_input(ValueId v) const { return v.index < g_.inputs().size(); }

  // Of two ports of one name, the one a caller meets first keeps it.
  void name_fields() {
    in_.resize(spec_.inputs.size());
    out_.resize(spec_.outputs.size());
    for (const Role role : {Role::loss, Role::output, Role::argument, Role::gradient,
                            Role::state, Role::trace, Role::parameter}) {
      for (std::size_t i = 0; i < in_.size(); ++i)
        if (spec_.inputs[i].role == role)
          in_[i] = field_of(spec_.inputs[i], g_.type(g_.inputs()[i]));
      for (std::size_t i = 0; i < out_.size(); ++i)
        if (spec_.outputs[i].role == role && !is_carried(role))
          out_[i] = field_of(spec_.outputs[i], g_.type(g_.outputs()[i]));
    }
  }
  Field field_of(const ExportPort& p, const Type& t) {
    return {names_.field((p.role == Role::gradient ? "grad_" : "") + p.name), t,
            unless_zero(p.initial),
            fmt::format("{} {}", to_string(p.role), to_string(t))};
  }
  // Fields start as zeros; those that are zeros are not written out.
  static std::optional<Array> unless_zero(const std::optional<Array>& a) {
    return a && is_zero(*a) ? std::nullopt : a;
  }
  static bool is_zero(const Array& a) {
    const std::vector<double> values = a.to_doubles();
    return std::all_of(values.begin(), values.end(),
                       [](double v) { return v == 0 && !std::signbit(v); });
  }
  // ---- the step ----

  std::string step_body() {
    CodeWriter code;
    for (const internal::ExportKernel& k : schedule_.kernels) step_.write(code, k);
    write_results(code);
    const std::string kernels = code.take();
    CodeWriter w;
    for (const ValueId v : step_.arrays()) declare(w, v);
    return w.take() + kernels;
  }
  void declare(CodeWriter& w, ValueId v) {
    const Type& t = g_.type(v);
    const std::string_view type = c_type(t.dtype);
    if (const Array* a = schedule_.literals[v.index]) {
      w.line(fmt::format("static const {} t{}[{}] = {{{}}};", type, v.index,
                         std::max<std::int64_t>(a->size(), 1),
                         is_zero(*a) ? "0" : numbers(*a)));
    } else if (is_program_input(v)) {
      const auto at = static_cast<std::size_t>(
          std::find(g_.inputs().begin(), g_.inputs().end(), v) - g_.inputs().begin());
      w.line(fmt::format("const {}* const t{} = self->{};", type, v.index, in_[at].name));
    } else if (const auto& field = memory_.field[v.index]) {
      w.line(fmt::format("{}* const t{} = self->{};", type, v.index, name_of(*field)));
    } else {
      w.line(fmt::format("{}* const t{} = self->scratch_{} + {};", type, v.index,
                         scratch_name(t.dtype), memory_.offset[v.index]));
    }
  }
  const std::string& name_of(const internal::ExportField& f) const {
    return (f.is_input ? in_ : out_)[f.port].name;
  }
  // The output's value is computed where it belongs.
  bool in_place(std::size_t output) const {
    const internal::View& view = schedule_.views[g_.outputs()[output].index];
    const auto& field = memory_.field[view.root.index];
    const bool carried = is_carried(spec_.outputs[output].role);
    return field && view.maps.empty() && field->is_input == carried &&
           field->port == (carried ? partner_of(spec_, output) : output);
  }
  static std::string_view scratch_name(DType d) {
    return d == DType::boolean ? "bool" : to_string(d);
  }
  static std::string numbers(const Array& a) {
    std::string text;
    for (std::int64_t i = 0; i < a.size(); ++i)
      text += (i ? ", " : "") + internal::literal_text(a.at(i), a.dtype());
    return text;
  }

  // Results first, then the next states: both may read inputs.
  void write_results(CodeWriter& w) {
    for (std::size_t i = 0; i < spec_.outputs.size(); ++i) {
      const ValueId v = g_.outputs()[i];
      if (is_carried(spec_.outputs[i].role) || in_place(i)) continue;
      w.line("// " + out_[i].name);
      step_.write_copy(w, v, "self->" + out_[i].name);
    }
    // A next value that is another input must be read before that one changes.
    for (const std::size_t i : carried())
      if (is_program_input(root(g_.outputs()[i])))
        step_.write_copy(w, g_.outputs()[i], "self->" + stash(i));
    for (const std::size_t i : carried()) {
      const std::string field = partner(i).name;
      w.line("// next " + field);
      if (!stash_[i].empty())
        write_raw_copy(w, field, stash_[i], partner(i).type);
      else
        step_.write_copy(w, g_.outputs()[i], "self->" + field);
    }
    for (std::size_t i = 0; i < spec_.outputs.size(); ++i)
      if (spec_.outputs[i].role == Role::gradient) write_update(w, i);
  }
  // Carried outputs that really change.
  std::vector<std::size_t> carried() {
    stash_.resize(spec_.outputs.size());
    std::vector<std::size_t> list;
    for (std::size_t i = 0; i < spec_.outputs.size(); ++i) {
      if (!is_carried(spec_.outputs[i].role)) continue;
      const internal::View& view = schedule_.views[g_.outputs()[i].index];
      const bool same =
          view.maps.empty() && view.root == g_.inputs()[partner_of(spec_, i)];
      if (same || in_place(i)) continue;
      list.push_back(i);
    }
    return list;
  }
  const Field& partner(std::size_t output) const {
    return in_[partner_of(spec_, output)];
  }
  std::string stash(std::size_t i) {
    stash_[i] = names_.field("old_" + partner(i).name);
    extra_.push_back({stash_[i], partner(i).type, std::nullopt, "kept during a step"});
    return stash_[i];
  }
  void write_raw_copy(CodeWriter& w, const std::string& to, const std::string& from,
                      const Type& t) {
    const Shape flat = {t.size()};
    const auto i = internal::open_loops(w, flat, "i");
    w.line(fmt::format("self->{0}[{2}] = self->{1}[{2}];", to, from, i[0]));
    internal::close_loops(w, flat);
  }
  void write_update(CodeWriter& w, std::size_t output) {
    const Field& p = partner(output);
    w.line("// learn " + p.name);
    const Shape flat = {p.type.size()};
    const auto i = internal::open_loops(w, flat, "i");
    w.line(fmt::format("self->{0}[{2}] -= ({3})self->learning_rate * self->{1}[{2}];",
                       p.name, out_[output].name, i[0], c_type(p.type.dtype)));
    internal::close_loops(w, flat);
  }

  // ---- the header around it ----

  void write_top(CodeWriter& w) const {
    w.line("// Written by braintrace. One step of a model, learning included.");
    w.line(is_cpp()
               ? "//   Learner l;  fill the arguments;  l.step();  read the outputs"
               : fmt::format("//   {0}_Learner l;  {0}_init(&l);  fill the arguments;  "
                             "{0}_step(&l);  read the outputs",
                             spec_.name));
    const std::string guard = fmt::format("BRAINTRACE_{}_H", spec_.name);
    w.line("#ifndef " + guard);
    w.line("#define " + guard);
    w.line(is_cpp() ? "#include <cmath>" : "#include <math.h>");
    w.line(is_cpp() ? "#include <cstdint>" : "#include <stdint.h>");
    w.line(is_cpp() ? "" : "#include <string.h>");
    if (is_cpp()) w.line(fmt::format("namespace {} {{", spec_.name));
    w.line("");
  }
  void write_helpers(CodeWriter& w) const {
    if (is_cpp()) w.line("using std::int32_t;");
    if (is_cpp()) w.line("using std::uint32_t;");
    for (const auto& [name, text] : step_.helpers())
      if (!text.empty()) w.line(text);
    if (step_.reads_by_index()) {
      w.line("// An index outside its axis is counted and moved into it.");
      w.open(fmt::format("static inline int {}index(int32_t i, int n, int* errors) {{",
                         prefix_));
      w.line("if (i >= 0 && i < n) return i;");
      w.line("++*errors;");
      w.line("return i < 0 ? 0 : n - 1;");
      w.close();
    }
    w.line("");
  }
  std::vector<Field> fields() const {
    std::vector<Field> all = in_;
    for (const Field& f : out_)
      if (!f.name.empty()) all.push_back(f);
    all.insert(all.end(), extra_.begin(), extra_.end());
    for (const auto& [dtype, size] : memory_.scratch)
      all.push_back({fmt::format("scratch_{}", scratch_name(dtype)),
                     {dtype, {size}},
                     std::nullopt,
                     "values inside a step"});
    return all;
  }
  void write_struct(CodeWriter& w, const std::string& body) const {
    const std::string rate = internal::literal_text(spec_.learning_rate, DType::f64);
    w.open(is_cpp() ? "struct Learner {" : "typedef struct {");
    for (const Field& f : fields()) {
      const bool set = is_cpp() && f.initial;
      w.line(fmt::format(
          "{} {}[{}]{};  // {}", c_type(f.type.dtype), f.name,
          std::max<std::int64_t>(f.type.size(), 1),
          set ? fmt::format(" = {{{}}}", numbers(*f.initial)) : (is_cpp() ? " = {}" : ""),
          f.comment));
    }
    w.line(fmt::format("double learning_rate{};", is_cpp() ? " = " + rate : ""));
    if (step_.reads_by_index())
      w.line(fmt::format("int index_errors{};", is_cpp() ? " = 0" : ""));
    if (is_cpp()) {
      w.line("");
      w.open("void step() {");
      w.line("Learner* const self = this;");
    } else {
      w.close(fmt::format("}} {}_Learner;", spec_.name));
      w.line("");
      write_init(w, rate);
      w.open(
          fmt::format("static inline void {0}_step({0}_Learner* self) {{", spec_.name));
    }
    write_indented(w, body);
    w.close();
    if (is_cpp()) w.close("};");
    w.line("");
    if (is_cpp()) w.line(fmt::format("}}  // namespace {}", spec_.name));
    w.line("#endif");
  }
  void write_init(CodeWriter& w, const std::string& rate) const {
    w.open(fmt::format("static inline void {0}_init({0}_Learner* self) {{", spec_.name));
    w.line("memset(self, 0, sizeof *self);");
    w.line(fmt::format("self->learning_rate = {};", rate));
    for (const Field& f : in_) {
      if (!f.initial || f.type.size() == 0) continue;
      w.open("{");
      w.line(fmt::format("static const {} start[] = {{{}}};", c_type(f.type.dtype),
                         numbers(*f.initial)));
      w.line(fmt::format("memcpy(self->{}, start, sizeof start);", f.name));
      w.close();
    }
    w.close();
    w.line("");
  }
  static void write_indented(CodeWriter& w, const std::string& text) {
    std::size_t begin = 0;
    while (begin < text.size()) {
      const std::size_t end = text.find('\n', begin);
      w.line(std::string_view(text).substr(begin, end - begin));
      begin = end + 1;
    }
  }

  const Graph& g_;
  const ExportSpec& spec_;
  ExportLanguage language_;
  ExportSchedule schedule_;
  internal::ExportMemory memory_;
  std::string prefix_;
  internal::StepWriter step_;
  internal::FieldNames names_;
  std::vector<Field> in_, out_, extra_;  // out_: no name for carried outputs
  std::vector<std::string> stash_;       // by output
};

}  // namespace

std::string_view to_string(ExportLanguage language) {
  return language == ExportLanguage::cpp17 ? "c++17" : "c99";
}

std::string_view to_string(ExportPort::Role role) {
  switch (role) {
    case Role::argument:
      return "argument";
    case Role::state:
      return "state";
    case Role::trace:
      return "trace";
    case Role::parameter:
      return "parameter";
    case Role::output:
      return "output";
    case Role::loss:
      return "loss";
    case Role::gradient:
      return "gradient";
  }
  return "?";
}

std::string export_header(const Graph& g, const ExportSpec& spec,
                          ExportLanguage language) {
  internal::check_export_spec(g, spec, language);
  return HeaderWriter(g, spec, language).write();
}

}  // namespace braintrace
