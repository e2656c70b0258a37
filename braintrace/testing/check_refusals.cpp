// SPDX-License-Identifier: Apache-2.0
// Check 9 of the op harness: an op given what it was not made for says what it found, or
// gives a result on which interpreter and plan agree. It never breaks.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "braintrace/ir/builder.h"
#include "braintrace/testing/check_op_impl.h"

namespace braintrace::testing::internal {
namespace {

constexpr std::int64_t kMaxRun = 10000;  // elements of a result worth computing

// One use of an op with something changed.
struct Misuse {
  std::string what;
  std::vector<Type> in;
  Attrs attrs;
  std::vector<std::string> found;  // the message must hold one of these
  bool run = true;                 // when the op accepts it
};

// As many of the array's elements as the type asks for, again and again.
Array refilled(const Array& a, const Type& t) {
  const DType stored = is_computable(t.dtype) ? t.dtype : DType::f32;
  Array out(stored, t.shape);
  if (a.size() == 0 || out.size() == 0) return out.astype(t.dtype);
  const Array source = a.astype(stored).contiguous();
  visit_dtype(stored, [&]<class T>(T) {
    T* p = out.mutable_data<T>();
    for (std::int64_t i = 0; i < out.size(); ++i) p[i] = source.data<T>()[i % a.size()];
  });
  return out.astype(t.dtype);
}

void run_misuse(const Checked& k, const Use& u, const Misuse& m) {
  std::vector<Array> inputs;
  for (std::size_t i = 0; i < m.in.size(); ++i)
    inputs.push_back(
        refilled(u.in.empty() ? Array() : u.in[std::min(i, u.in.size() - 1)], m.in[i]));
  const auto builder = Builder::create();
  Values in;
  for (const Type& t : m.in) in.push_back(builder->input(t));
  const Graph g = builder->finish(builder->record(*k.op, in, m.attrs));
  verify(g);
  check_planned(k, g, inputs, m.what);
}

void check_message(const Checked& k, const Misuse& m, const std::string& message) {
  if (!message.starts_with(k.c.op + ":"))
    fail(k,
         fmt::format("{}: the refusal does not start with the op: {}", m.what, message));
  const bool says = std::any_of(m.found.begin(), m.found.end(), [&](const auto& f) {
    return message.find(f) != std::string::npos;
  });
  if (!says)
    fail(k,
         fmt::format("{}: the refusal does not say what was found: {}", m.what, message));
}

void check_misuse(Checked& k, const Use& u, const Misuse& m) {
  std::vector<Type> out;
  try {
    out = infer_types(*k.op, m.in, m.attrs);
  } catch (const UserError& e) {
    check_message(k, m, e.what());
    return met(k, "refusals");
  } catch (const std::exception& e) {
    fail(k, fmt::format("{}: no UserError, but {}", m.what, e.what()));
  }
  if (!m.run || !k.c.fixed_values.empty()) return;
  for (const Type& t : out)
    if (t.size() > kMaxRun) return;
  try {
    run_misuse(k, u, m);
  } catch (const InternalError& e) {
    fail(k, fmt::format("{}: {}", m.what, e.what()));
  }
}

// What a message may show of the inputs: types (of the steps of a loop, too), shapes,
// ranks, sizes.
std::vector<std::string> shown(const std::vector<Type>& types) {
  std::vector<std::string> texts;
  for (const Type& t : types) {
    texts.push_back(to_string(t));
    texts.push_back(to_string(t.shape));
    texts.push_back(fmt::format("rank {}", t.rank()));
    for (std::int64_t d : t.shape) texts.push_back(fmt::format(" {} ", d));
    if (t.rank() > 0)
      texts.push_back(to_string(Type{t.dtype, {t.shape.begin() + 1, t.shape.end()}}));
  }
  return texts;
}

Misuse with_input(const Use& u, std::size_t i, const Type& t) {
  Misuse m{
      fmt::format("input {} as {}", i, to_string(t)), types_of(u.in), u.node->attrs, {}};
  m.in[i] = t;
  m.found = shown(m.in);
  m.found.emplace_back(", got [");  // the attribute that does not fit the input
  if (t.dtype != u.in[i].dtype()) m.found.emplace_back(to_string(t.dtype));
  return m;
}

void check_types(Checked& k, const Use& u) {
  for (std::size_t i = 0; i < u.in.size(); ++i) {
    const Type t = type_of(u.in[i]);
    for (DType d : {DType::f32, DType::f64, DType::i32, DType::boolean, DType::bf16})
      if (d != t.dtype) check_misuse(k, u, with_input(u, i, {d, t.shape}));
    for (std::size_t a = 0; a <= t.shape.size(); ++a) {
      Type more = t;
      more.shape.insert(more.shape.begin() + static_cast<std::ptrdiff_t>(a), 2);
      check_misuse(k, u, with_input(u, i, more));
      if (a == t.shape.size()) break;
      Type longer = t, less = t;
      ++longer.shape[a];
      less.shape.erase(less.shape.begin() + static_cast<std::ptrdiff_t>(a));
      check_misuse(k, u, with_input(u, i, longer));
      check_misuse(k, u, with_input(u, i, less));
    }
  }
}

void check_counts(Checked& k, const Use& u) {
  const std::vector<Type> types = types_of(u.in);
  for (int change : {-1, 1}) {
    Misuse m{"", types, u.node->attrs, {}};
    if (change < 0 && types.empty()) continue;
    if (change < 0) m.in.pop_back();
    if (change > 0) m.in.push_back(types.empty() ? Type{} : types.back());
    m.what = fmt::format("{} inputs", m.in.size());
    m.found = shown(m.in);
    m.found.emplace_back("got");
    check_misuse(k, u, m);
  }
}

Ints wrong_integers(std::int64_t v) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  return {v - 1, v + 1, -1, kMost, kLeast};
}

// Other values of the same kind. Far ones are not run: a loop of 2^63 steps is no
// mistake.
std::vector<Attr> other_values(const Attr& a) {
  std::vector<Attr> out;
  if (const auto* b = std::get_if<bool>(&a)) out.push_back(!*b);
  if (const auto* v = std::get_if<std::int64_t>(&a))
    for (std::int64_t w : wrong_integers(*v)) out.push_back(w);
  if (std::get_if<double>(&a)) out.insert(out.end(), {kNan, kInf, -1.0});
  if (std::get_if<std::string>(&a))
    out.insert(out.end(), {std::string(), std::string("?")});
  if (std::get_if<DType>(&a))
    out.insert(out.end(),
               {DType::f32, DType::f64, DType::i32, DType::boolean, DType::bf16});
  if (const auto* ints = std::get_if<Ints>(&a)) {
    Ints longer = *ints;
    longer.push_back(1);
    out.emplace_back(longer);
    for (std::size_t i = 0; i < ints->size(); ++i)
      for (std::int64_t w : wrong_integers((*ints)[i])) {
        Ints changed = *ints;
        changed[i] = w;
        out.emplace_back(changed);
      }
  }
  if (const auto* list = std::get_if<IndexList>(&a))
    for (std::int64_t w : {-1, 1000}) {
      Ints changed = list->ints();
      changed.empty() ? changed.push_back(w) : void(changed[0] = w);
      out.emplace_back(IndexList(changed));
    }
  return out;
}

bool is_far(const Attr& a) {
  const auto far = [](std::int64_t v) { return v > 100 || v < -100; };
  if (const auto* v = std::get_if<std::int64_t>(&a)) return far(*v);
  const auto* ints = std::get_if<Ints>(&a);
  return ints && std::any_of(ints->begin(), ints->end(), far);
}

void check_attributes(Checked& k, const Use& u) {
  const std::vector<Type> types = types_of(u.in);
  for (const auto& [name, value] : u.node->attrs.entries()) {
    Attrs missing;
    for (const auto& [other, kept] : u.node->attrs.entries())
      if (other != name) missing.set(other, kept);
    check_misuse(k, u, {"without " + name, types, missing, {name}});
    Attrs wrong = u.node->attrs;
    wrong.set(name, Array());
    if (kind_of(value) != AttrKind::array)
      check_misuse(k, u, {name + " as an array", types, wrong, {name}});
    for (const Attr& other : other_values(value)) {
      std::vector<std::string> found = shown(types);
      found.insert(found.end(), {name, "got", "holds", "named twice", "2^40"});
      wrong.set(name, other);
      check_misuse(k, u, {"another " + name, types, wrong, found, !is_far(other)});
    }
  }
  Attrs unknown = u.node->attrs;
  unknown.set("no_such_attribute", true);
  check_misuse(k, u, {"an unknown attribute", types, unknown, {"no_such_attribute"}});
}

}  // namespace

void check_refusals(Checked& k) {
  for (const Use& u : uses(k)) {
    check_types(k, u);
    check_counts(k, u);
    check_attributes(k, u);
  }
  excuse(k, "refusals", "the op stands in sub-graphs only");
}

}  // namespace braintrace::testing::internal
