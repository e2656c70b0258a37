// SPDX-License-Identifier: Apache-2.0
// Trainable two-operand contraction: "bhd,hde->bhe". The first letter of x and y is the
// batch; other letters of y that w does not have are shared: w meets every position.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "braintrace/ops/elementwise.h"
#include "braintrace/ops/etp.h"
#include "braintrace/ops/op_list.h"

namespace braintrace {
namespace {

struct Equation {
  std::string x, w, y;
};

bool holds(std::string_view letters, char c) {
  return letters.find(c) != std::string_view::npos;
}

void check(bool ok, std::string_view equation, std::string_view rule) {
  BT_REQUIRE(ok, fmt::format("einsum: {}, got '{}'", rule, equation));
}

void check_letters(std::string_view equation, std::string_view spec) {
  for (std::size_t i = 0; i < spec.size(); ++i) {
    check(spec[i] >= 'a' && spec[i] <= 'z', equation, "letters must be a to z");
    check(!holds(spec.substr(0, i), spec[i]), equation,
          fmt::format("letter '{}' repeats in '{}'", spec[i], spec));
  }
}

// The grammar of the op. Needs: no spaces.
Equation parsed(std::string_view text) {
  const std::size_t comma = text.find(','), arrow = text.find("->");
  check(comma != text.npos && arrow != text.npos && comma < arrow, text,
        "needs the form x,w->y");
  const Equation e{std::string(text.substr(0, comma)),
                   std::string(text.substr(comma + 1, arrow - comma - 1)),
                   std::string(text.substr(arrow + 2))};
  check(!holds(e.w, ',') && !holds(e.y, ','), text, "needs exactly two operands");
  for (const std::string& spec : {e.x, e.w, e.y}) check_letters(text, spec);
  check(!e.x.empty() && !e.y.empty() && e.x[0] == e.y[0], text,
        "x and y must start with the batch letter");
  check(!holds(e.w, e.x[0]), text, "the weight may not have the batch letter");
  for (char c : e.y)
    check(holds(e.x, c) || holds(e.w, c), text,
          fmt::format("letter '{}' of the output is in neither operand", c));
  for (char c : e.w)
    check(holds(e.x, c) || holds(e.y, c), text,
          fmt::format("letter '{}' of the weight is in neither x nor the output", c));
  return e;
}

// Sizes by letter; UserError when ranks or sizes disagree.
std::array<std::int64_t, 26> sizes_of(const Equation& e, const Shape& x, const Shape& w) {
  BT_REQUIRE(e.x.size() == x.size() && e.w.size() == w.size(),
             fmt::format("einsum: '{},{}->{}' does not fit the ranks of {} and {}", e.x,
                         e.w, e.y, to_string(x), to_string(w)));
  std::array<std::int64_t, 26> size;
  size.fill(-1);
  for (std::size_t i = 0; i < x.size(); ++i)
    size[static_cast<std::size_t>(e.x[i] - 'a')] = x[i];
  for (std::size_t i = 0; i < w.size(); ++i) {
    std::int64_t& n = size[static_cast<std::size_t>(e.w[i] - 'a')];
    BT_REQUIRE(n < 0 || n == w[i],
               fmt::format("einsum: letter '{}' is {} in x {} but {} in weight {}",
                           e.w[i], n, to_string(x), w[i], to_string(w)));
    n = w[i];
  }
  return size;
}

std::vector<Type> infer_einsum(std::span<const Type> in, const Attrs& attrs) {
  const Equation e = parsed(attrs.text("equation"));
  BT_REQUIRE_KIND(in[0].dtype == in[1].dtype && is_float(in[0].dtype), ErrorKind::type,
                  fmt::format("einsum: needs floats of one type, got {} and {}",
                              to_string(in[0]), to_string(in[1])));
  check_hooks("einsum", attrs);
  const auto size = sizes_of(e, in[0].shape, in[1].shape);
  Type y{in[0].dtype, {}};
  for (char c : e.y) y.shape.push_back(size[static_cast<std::size_t>(c - 'a')]);
  return {y};
}

Ints axes_of(std::string_view letters, std::string_view in) {
  Ints axes;
  for (char c : letters) axes.push_back(static_cast<std::int64_t>(in.find(c)));
  return axes;
}

template <class Keep>
std::string letters_where(std::string_view letters, Keep keep) {
  std::string out;
  std::copy_if(letters.begin(), letters.end(), std::back_inserter(out), keep);
  return out;
}

// x summed over the letters that only it has; `letters` becomes what remains.
Value without_own_letters(const Value& x, std::string& letters, const Equation& e) {
  const std::string own =
      letters_where(letters, [&](char c) { return !holds(e.w, c) && !holds(e.y, c); });
  if (own.empty()) return x;
  const Value reduced = sum(x, {.axes = axes_of(own, letters)});
  letters = letters_where(letters, [&](char c) { return !holds(own, c); });
  return reduced;
}

// The contraction by plain ops. Letters may stand anywhere, also in all three specs.
Value contracted(const Equation& e, const Value& x, const Value& w) {
  std::string left = e.x;
  const Value lhs = without_own_letters(x, left, e);
  const std::string both = letters_where(left, [&](char c) { return holds(e.w, c); });
  const std::string batch = letters_where(both, [&](char c) { return holds(e.y, c); });
  const std::string inner = letters_where(both, [&](char c) { return !holds(e.y, c); });
  const Value product = dot_general(lhs, w,
                                    {axes_of(inner, left), axes_of(inner, e.w),
                                     axes_of(batch, left), axes_of(batch, e.w)});
  const std::string order = batch +
                            letters_where(left, [&](char c) { return !holds(e.w, c); }) +
                            letters_where(e.w, [&](char c) { return !holds(left, c); });
  return transpose(product, axes_of(e.y, order));
}

void eval_einsum(const Kernel& k) {
  k.out[0] =
      contracted(parsed(k.attrs.text("equation")), k.in[0], k.in[1]).array().contiguous();
}

std::vector<Tangent> jvp_einsum(const Site& s, std::span<const Tangent> d) {
  const Equation e = parsed(s.attrs.text("equation"));
  Tangent left, right;
  if (d[0]) left = contracted(e, *d[0], s.in[1]);
  if (d[1]) right = contracted(e, s.in[0], *d[1]);
  return {sum_tangents(left, right)};
}

char unused_letter(const Equation& e) {
  for (char c = 'a'; c <= 'z'; ++c)
    if (!holds(e.x, c) && !holds(e.w, c) && !holds(e.y, c)) return c;
  throw UserError(ErrorKind::not_supported,
                  "einsum: no letter is left for the batch axis of vmap");
}

// Lanes get a letter of their own. With a weight per lane the op becomes plain products.
BatchResult batch_einsum(const Site& s, std::span<const BatchAxis> axes) {
  Equation e = parsed(s.attrs.text("equation"));
  const char c = unused_letter(e);
  const Lane x = fronted(lane(s, axes, 0)), w = fronted(lane(s, axes, 1));
  e.y.insert(0, 1, c);
  if (x.axis) e.x.insert(0, 1, c);
  if (w.axis) {
    e.w.insert(0, 1, c);
    return {{contracted(e, x.value, w.value)}, {0}};
  }
  Attrs attrs = s.attrs;
  attrs.set("equation", fmt::format("{},{}->{}", e.x, e.w, e.y));
  return {{emit1(s.op, {x.value, w.value}, attrs, s.loc)}, {0}};
}

// y's letters from an operand: its own are the same positions; the others meet what the
// operand loses.
InputFlow flow_from(std::string_view operand, std::string_view y) {
  const std::string lost = letters_where(operand, [&](char c) { return !holds(y, c); });
  std::size_t next = 0;
  InputFlow f;
  for (char c : y) {
    if (holds(operand, c))
      f.axes.push_back({Flow::same, static_cast<std::int64_t>(operand.find(c))});
    else if (next < lost.size())
      f.axes.push_back(
          {Flow::mixed, static_cast<std::int64_t>(operand.find(lost[next++]))});
    else
      f.axes.push_back({Flow::fresh, -1});
  }
  return f;
}

Rewrite inline_body_einsum(const Site& s) {
  return {{contracted(parsed(s.attrs.text("equation")), s.in[0], s.in[1])}};
}

PositionMap positions_einsum(const Signature& s) {
  const Equation e = parsed(s.attrs.text("equation"));
  return {{{flow_from(e.x, e.y)}, {flow_from(e.w, e.y)}}};
}

// ---- eligibility ----

std::string shared_letters(const Equation& e) {
  return letters_where(e.y.substr(1), [&](char c) { return !holds(e.w, c); });
}

std::string trace_letters(const Equation& e) {
  return e.y.substr(0, 1) + shared_letters(e) + e.w;
}

// v with its letters in the order of `target`, size-1 axes for the missing ones.
Value aligned(const Value& v, std::string_view letters, std::string_view target) {
  const std::string kept =
      letters_where(target, [&](char c) { return holds(letters, c); });
  const Value ordered = transpose(v, axes_of(kept, letters));
  Shape shape;
  for (char c : target)
    shape.push_back(
        holds(letters, c) ? ordered.dim(static_cast<std::int64_t>(kept.find(c))) : 1);
  return reshape(ordered, shape);
}

Type trace_einsum(const Signature& s, int) {
  const Equation e = parsed(s.attrs.text("equation"));
  const auto size = sizes_of(e, s.in[0].shape, s.in[1].shape);
  Type t{s.out[0].dtype, {}};
  for (char c : trace_letters(e))
    t.shape.push_back(size[static_cast<std::size_t>(c - 'a')]);
  return t;
}

Anchor anchor_einsum(const Signature& s, int) {
  const Equation e = parsed(s.attrs.text("equation"));
  Anchor a;
  for (char c : trace_letters(e))
    a.push_back({holds(e.y, c) ? static_cast<std::int64_t>(e.y.find(c)) : -1, {}});
  return a;
}

Value instant_einsum(const Site& s, int, const Value& df) {
  const Equation e = parsed(s.attrs.text("equation"));
  std::string letters = e.x;
  const Value x = without_own_letters(s.in[0], letters, e);
  const std::string target = trace_letters(e);
  return aligned(x, letters, target) * aligned(df, e.y, target);
}

std::vector<WeightInput> weights_einsum(const Signature&) { return {{"weight", 1}}; }

bool anchored_einsum(const Signature& s) {
  return shared_letters(parsed(s.attrs.text("equation"))).empty();
}

std::string_view reference_name_einsum(const Signature&) { return "etp_einsum"; }

const EtpRule rule_einsum = {
    .x = 0,
    .weights = weights_einsum,
    .trace = trace_einsum,
    .anchor = anchor_einsum,
    .instant = instant_einsum,
    .anchored = anchored_einsum,
    .reference_name = reference_name_einsum,
};

}  // namespace

const OpDef einsum_op = {
    .name = "einsum",
    .arity = 2,
    .attrs = {{"equation", AttrKind::text}, {"hooks", AttrKind::text, true}},
    .infer = infer_einsum,
    .eval = eval_einsum,
    .code = "einsum({equation}, $0, $1)",
    .jvp = jvp_einsum,
    .batch = batch_einsum,
    .positions = positions_einsum,
    .etp = &rule_einsum,
    .inline_body = inline_body_einsum,
};

Value einsum(std::string_view equation, Arg x, Arg weight, const Hook& hook) {
  std::string text(equation);
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  EtpOperands o = etp_operands("einsum", x, weight, {}, {.weight = hook});
  return emit1(einsum_op, std::move(o.values), with_hooks({{"equation", text}}, o.hooks),
               x.loc);
}

}  // namespace braintrace
