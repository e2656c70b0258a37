// SPDX-License-Identifier: Apache-2.0
// Recipes with trainable ops, one per kind, and what stands before their weights.
#include "braintrace/testing/random_model_impl.h"

namespace braintrace::testing {
namespace {

void dense(ModelPlanner& m) {
  m.mark("matmul");
  const Slot a = m.any();
  const std::int64_t n = m.any_width();
  const Compute w = m.weight({a.width, n});
  if (m.chance(0.7)) {
    m.push(n, [=](const Pool& p) { return matmul(p[a.id], w(p)); });
    return;
  }
  m.mark("bias");
  m.push(n,
         [=, b = m.weight({n})](const Pool& p) { return matmul(p[a.id], w(p), b(p)); });
}

// The product every recurrent cell has: of the input, into the width of the states.
void of_input(ModelPlanner& m) {
  const Slot a = m.input();
  const std::int64_t n = m.any_width();
  m.push(n, [=, w = m.weight({a.width, n})](const Pool& p) {
    return matmul(p[a.id], w(p));
  });
}

void hooked(ModelPlanner& m) {
  m.mark("weight_hook");
  const Slot a = m.any();
  const std::int64_t n = m.any_width();
  m.push(n, [=, w = m.weight({a.width, n})](const Pool& p) {
    return matmul(p[a.id], w(p), {}, {.weight = [](const Value& v) { return tanh(v); }});
  });
}

void own_weight(ModelPlanner& m) {
  m.mark("element_wise");
  const Slot a = m.any();
  m.push(a.width, [=, w = m.weight({a.width})](const Pool& p) {
    return sigmoid(element_wise(w(p))) * p[a.id];
  });
}

void grouped(ModelPlanner& m) {
  m.mark("grouped_matmul");
  const Slot a = m.of_width(4);
  Shape split = m.lead();
  split.insert(split.end(), {2, 2});
  m.push(4, [=, back = m.shape(4), w = m.weight({2, 2, 2})](const Pool& p) {
    return reshape(grouped_matmul(reshape(p[a.id], split), w(p)), back);
  });
}

void einsummed(ModelPlanner& m) {
  m.mark("einsum");
  const Slot a = m.any();
  const std::int64_t n = m.any_width();
  const Compute w = m.weight({a.width, n});
  const bool rank1 = m.lead().empty();
  m.push(n, [=](const Pool& p) {
    if (!rank1) return einsum("bi,io->bo", p[a.id], w(p));
    return squeeze(einsum("bi,io->bo", expand_dims(p[a.id], 0), w(p)), 0);
  });
}

void sparse(ModelPlanner& m) {
  m.mark("sparse_matmul");
  const Slot a = m.any();
  const std::int64_t n = m.any_width();
  Ints rows, cols;
  for (std::int64_t i = 0; i < a.width; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      if ((i + j) % 2 == 0) {
        rows.push_back(i);
        cols.push_back(j);
      }
  const auto stored = static_cast<std::int64_t>(rows.size());
  m.push(n, [=, s = coo_structure(a.width, n, rows, cols), w = m.weight({stored})](
                const Pool& p) { return sparse_matmul(p[a.id], w(p), s); });
}

void low_rank(ModelPlanner& m) {
  m.mark("lora_matmul");
  const Slot a = m.any();
  const std::int64_t n = m.any_width();
  m.push(n, [=, b = m.weight({a.width, 2}), c = m.weight({2, n})](const Pool& p) {
    return lora_matmul(p[a.id], b(p), c(p), 0.5);
  });
}

void looked_up(ModelPlanner& m) {
  m.mark("embedding");
  const Slot a = m.any();
  const std::int64_t n = m.any_width();
  m.push(n, [=, w = m.weight({3, n})](const Pool& p) {
    const Value row = astype(sum(p[a.id], {.axes = {-1}}) > 0, DType::i32);
    return embedding(row, w(p));
  });
}

void convolved(ModelPlanner& m) {
  m.mark("conv");
  const Slot a = m.any();
  const std::int64_t n = m.lead().empty() ? 1 : m.lead()[0];
  m.push(a.width, [=, back = m.shape(a.width), w = m.weight({3, 1, 1})](const Pool& p) {
    const Value x = reshape(p[a.id], {n, a.width, 1});
    return reshape(conv(x, w(p), same_padding({a.width}, {3}, {})), back);
  });
}

constexpr ModelRecipe kWeights[] = {dense,  dense,      dense,      of_input, of_input,
                                    hooked, own_weight, own_weight, grouped,  einsummed,
                                    sparse, low_rank,   looked_up,  convolved};

}  // namespace

std::span<const ModelRecipe> weight_recipes() { return kWeights; }

Compute ModelPlanner::weight(const Shape& s) {
  if (chance(0.04)) {
    mark("constant_weight");
    return [c = constant(s)](const Pool&) { return Value(c); };
  }
  if (chance(0.35)) return prologue(s);
  mark("plain_weight");
  return [w = parameter(s)](const Pool&) { return w->value(); };
}

Compute ModelPlanner::prologue(const Shape& s) {
  Shape turned(s.rbegin(), s.rend());
  switch (below(8)) {
    case 0:
      mark("prologue_scale");
      return [w = parameter(s)](const Pool&) { return 2 * w->value(); };
    case 1:
      mark("prologue_mask");
      return [w = parameter(s), m = constant(s)](const Pool&) { return w->value() * m; };
    case 2:
      mark("prologue_tanh");
      return [w = parameter(s)](const Pool&) { return tanh(w->value()); };
    case 3:
      mark("prologue_sum");
      return [a = parameter(s), b = parameter(s)](const Pool&) {
        return a->value() + b->value();
      };
    case 4:
      mark("prologue_transpose");
      return [w = parameter(turned)](const Pool&) { return transpose(w->value()); };
    case 5:
      mark("prologue_stopped");
      return [a = parameter(s), b = parameter(s)](const Pool&) {
        return a->value() * stop_gradient(b->value());
      };
    case 6:
      mark("prologue_norm");
      return [w = parameter(s)](const Pool&) { return softmax(w->value()); };
    default:
      return dynamic_prologue(s);
  }
}

Compute ModelPlanner::dynamic_prologue(const Shape& s) {
  mark("prologue_dynamic");
  const Slot gate = any();
  return [w = parameter(s), gate](const Pool& p) {
    return w->value() * sigmoid(sum(p[gate.id]));
  };
}

}  // namespace braintrace::testing
