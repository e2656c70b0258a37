// SPDX-License-Identifier: Apache-2.0
// Recipes without trainable ops: element by element, and ops that mix positions.
#include "braintrace/testing/random_model_impl.h"

namespace braintrace::testing {
namespace {

void unary(ModelPlanner& m) {
  const Slot s = m.any();
  const std::int64_t kind = m.below(6);
  m.push(s.width, [=](const Pool& p) -> Value {
    const Value& x = p[s.id];
    switch (kind) {
      case 0:
        return tanh(x);
      case 1:
        return sigmoid(x);
      case 2:
        return 0.7 * x;
      case 3:
        return sin(x);
      case 4:
        return relu(x);
      default:
        return 1 - x;
    }
  });
}

void binary(ModelPlanner& m) {
  const Slot a = m.any(), b = m.of_width(a.width);
  const std::int64_t kind = m.below(4);
  m.push(a.width, [=](const Pool& p) -> Value {
    const Value &x = p[a.id], &y = p[b.id];
    switch (kind) {
      case 0:
        return x + y;
      case 1:
        return tanh(x) * sigmoid(y);
      case 2:
        return x - 0.5 * y;
      default:
        return maximum(x, y);
    }
  });
}

void gate(ModelPlanner& m) {
  m.mark("select");
  const Slot a = m.any(), b = m.of_width(a.width);
  m.push(a.width, [=](const Pool& p) { return select(p[a.id] > 0, p[a.id], p[b.id]); });
}

void stop(ModelPlanner& m) {
  m.mark("stop_gradient");
  const Slot a = m.any();
  m.push(a.width, [=](const Pool& p) { return stop_gradient(p[a.id]); });
}

// Spike with a triangular surrogate.
void spike(ModelPlanner& m) {
  m.mark("custom_jvp");
  const Slot a = m.any();
  m.push(a.width, [=](const Pool& p) {
    return custom_jvp(
        {p[a.id]},
        [](const Values& in) { return Values{astype(in[0] > 0, in[0].dtype())}; },
        [](const Values& in) { return Values{in[1] * relu(1 - abs(in[0]))}; },
        {.elementwise = true})[0];
  });
}

void flat(ModelPlanner& m) {
  m.mark("reshape");
  const Slot a = m.any();
  m.push(a.width, [=, back = m.shape(a.width)](const Pool& p) {
    return reshape(tanh(reshape(p[a.id], {-1})), back);
  });
}

// A plain (untraced) parameter, element by element.
void plain_scale(ModelPlanner& m) {
  m.mark("plain_parameter");
  const Slot a = m.any();
  m.push(a.width,
         [=, w = m.parameter({a.width})](const Pool& p) { return p[a.id] * w->value(); });
}

void rolled(ModelPlanner& m) {
  m.mark("roll");
  const Slot a = m.any();
  m.push(a.width, [=](const Pool& p) { return roll(p[a.id], 1); });
}

void flipped(ModelPlanner& m) {
  m.mark("flip");
  const Slot a = m.any();
  m.push(a.width, [=](const Pool& p) { return flip(p[a.id], {-1}); });
}

void reduced(ModelPlanner& m) {
  m.mark("reduce");
  const Slot a = m.any(), b = m.any();
  const std::int64_t kind = m.below(3);
  const bool all = m.chance(0.3);
  m.push(b.width, [=](const Pool& p) {
    const ReduceOptions o =
        all ? ReduceOptions{} : ReduceOptions{.axes = {-1}, .keepdims = true};
    const Value r = kind == 0   ? sum(p[a.id], o)
                    : kind == 1 ? mean(p[a.id], o)
                                : max(p[a.id], o);
    return p[b.id] + 0.2 * r;
  });
}

void summed(ModelPlanner& m) {
  m.mark("cumsum");
  const Slot a = m.any();
  m.push(a.width, [=](const Pool& p) { return 0.3 * cumsum(p[a.id]); });
}

void normed(ModelPlanner& m) {
  m.mark("norm");
  const Slot a = m.any();
  const bool soft = m.chance(0.4);
  m.push(a.width, [=](const Pool& p) {
    return soft ? softmax(p[a.id]) : layer_norm(p[a.id], {-1}, 1e-2);
  });
}

void joined(ModelPlanner& m) {
  m.mark("concat");
  const Slot a = m.any(), b = m.any();
  m.push(a.width + b.width, [=](const Pool& p) { return concat({p[a.id], p[b.id]}); });
}

void cut_out(ModelPlanner& m) {
  m.mark("slice");
  const Slot a = m.any();
  const std::int64_t n = 1 + m.below(a.width);
  m.push(n, [=](const Pool& p) { return slice_axis(p[a.id], -1, a.width - n, n); });
}

void plain_product(ModelPlanner& m) {
  m.mark("plain_product");
  const Slot a = m.any();
  const std::int64_t n = m.any_width();
  const bool fixed = m.chance(0.4);
  if (fixed) {
    m.push(n,
           [=, c = m.constant({a.width, n})](const Pool& p) { return dot(p[a.id], c); });
    return;
  }
  m.push(n, [=, w = m.parameter({a.width, n})](const Pool& p) {
    return dot(p[a.id], w->value());
  });
}

void swapped(ModelPlanner& m) {
  if (m.lead().size() != 1) return rolled(m);
  m.mark("transpose");
  const std::int64_t n = m.lead()[0];
  const Slot a = m.of_width(n);
  m.push(n, [=](const Pool& p) { return transpose(p[a.id]); });
}

constexpr ModelRecipe kPlain[] = {unary, unary, binary, binary,     gate,
                                  stop,  spike, flat,   plain_scale};
constexpr ModelRecipe kMixing[] = {rolled, flipped, reduced, reduced,       summed,
                                   normed, joined,  cut_out, plain_product, swapped};

}  // namespace

std::span<const ModelRecipe> plain_recipes() { return kPlain; }
std::span<const ModelRecipe> mixing_recipes() { return kMixing; }

}  // namespace braintrace::testing
