// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/optimizers.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "braintrace/base/divide.h"
#include "braintrace/run/ftz.h"
#include "braintrace/run/thread_pool.h"
#include "braintrace/train/gradients.h"
#include "braintrace/train/optimizer_kernels.h"
#include "braintrace/train/optimizer_program.h"

namespace braintrace {
namespace {

void require_at_least_zero(const char* who, const char* what, double v) {
  BT_REQUIRE(v >= 0 && std::isfinite(v),
             fmt::format("{}: {} must be >= 0 and finite, got {}", who, what, v));
}

void require_share(const char* who, const char* what, double v) {
  BT_REQUIRE(v >= 0 && v < 1,
             fmt::format("{}: {} must lie in [0, 1), got {}", who, what, v));
}

void check(const SGD& r) {
  require_at_least_zero("SGD", "lr", r.lr);
  require_at_least_zero("SGD", "momentum", r.momentum);
  require_at_least_zero("SGD", "weight_decay", r.weight_decay);
  BT_REQUIRE(!r.nesterov || r.momentum > 0,
             fmt::format("SGD: nesterov needs momentum > 0, got {}", r.momentum));
}

template <class R>
void check_adam(const char* who, const R& r) {
  require_at_least_zero(who, "lr", r.lr);
  require_share(who, "beta1", r.beta1);
  require_share(who, "beta2", r.beta2);
  require_at_least_zero(who, "eps", r.eps);
  require_at_least_zero(who, "weight_decay", r.weight_decay);
}

void check(const Adam& r) { check_adam("Adam", r); }
void check(const AdamW& r) { check_adam("AdamW", r); }

void check(const RMSprop& r) {
  require_at_least_zero("RMSprop", "lr", r.lr);
  require_share("RMSprop", "alpha", r.alpha);
  require_at_least_zero("RMSprop", "eps", r.eps);
  require_at_least_zero("RMSprop", "momentum", r.momentum);
  require_at_least_zero("RMSprop", "weight_decay", r.weight_decay);
}

void check(const Lion& r) {
  require_at_least_zero("Lion", "lr", r.lr);
  require_share("Lion", "beta1", r.beta1);
  require_share("Lion", "beta2", r.beta2);
  require_at_least_zero("Lion", "weight_decay", r.weight_decay);
}

// To be written to; what other arrays share is copied first.
void* elements_of(Array& a) {
  if (a.dtype() == DType::f64) return a.mutable_data<double>();
  return a.mutable_data<float>();
}

// Calls f(first, last) for all of n elements, part by part.
template <class F>
void for_parts(std::int64_t n, ThreadPool* pool, const F& f) {
  constexpr std::int64_t kPart = 1 << 14;
  if (pool == nullptr || n < 2 * kPart) return f(0, n);
  // Workers flush denormals: moments of small gradients would hang on who moves them.
  const unsigned long long mode = float_mode();
  pool->for_tiles(divided_up(n, kPart), [&](std::int64_t part, int) {
    const FloatModeScope as_caller(mode);
    f(part * kPart, std::min(n, (part + 1) * kPart));
  });
}

void check_pair(const Array& w, const std::string& path, const Array& g) {
  BT_REQUIRE_KIND(is_float(w.dtype()) && is_float(g.dtype()), ErrorKind::type,
                  fmt::format("Optimizer::update: '{}' must be f32 or f64, got {} with "
                              "gradient {}",
                              path, to_string(w.dtype()), to_string(g.dtype())));
  BT_REQUIRE(w.shape() == g.shape(),
             fmt::format("Optimizer::update: '{}' is {}, its gradient {}", path,
                         to_string(w.shape()), to_string(g.shape())));
}

constexpr const char* name_of(const SGD&) { return "SGD"; }
constexpr const char* name_of(const Adam&) { return "Adam"; }
constexpr const char* name_of(const AdamW&) { return "AdamW"; }
constexpr const char* name_of(const RMSprop&) { return "RMSprop"; }
constexpr const char* name_of(const Lion&) { return "Lion"; }

// "SGD", "Adam(m,v)": rules of one text can go on from each other's state.
std::string text_of(const UpdateRule& rule) {
  const std::vector<std::string> moments = moment_names(rule);
  const char* name = std::visit([](const auto& r) { return name_of(r); }, rule);
  if (moments.empty()) return name;
  std::string text = name;
  for (const std::string& m : moments) text += (&m == &moments[0] ? "(" : ",") + m;
  return text + ")";
}

constexpr std::string_view kRuleKey = "rule/";

// States written before they named their rule pass when they have its moments.
void require_rule(const UpdateRule& rule, const StateDict& state) {
  const std::string own = text_of(rule);
  for (const auto& [key, a] : state)
    BT_REQUIRE(
        !key.starts_with(kRuleKey) || key.substr(kRuleKey.size()) == own,
        fmt::format("Optimizer::load_state_dict: the state was written by {}, this "
                    "optimiser is {}",
                    key.substr(kRuleKey.size()), own));
}

// Needs: every moment of the rule for each path, and no other.
void require_moments(const UpdateRule& rule,
                     const std::map<std::string, StateDict>& moments) {
  const std::vector<std::string> own = moment_names(rule);
  for (const auto& [name, by_path] : moments) {
    BT_REQUIRE(std::find(own.begin(), own.end(), name) != own.end(),
               fmt::format("Optimizer::load_state_dict: '{}/{}' is no moment of {}", name,
                           by_path.begin()->first, text_of(rule)));
    for (const std::string& other : own)
      for (const auto& [path, a] : by_path) {
        const auto it = moments.find(other);
        BT_REQUIRE(it != moments.end() && it->second.contains(path),
                   fmt::format("Optimizer::load_state_dict: {} needs '{}/{}', which is "
                               "missing",
                               text_of(rule), other, path));
      }
  }
}

std::int64_t count_from(const StateDict& state, const char* key) {
  const auto it = state.find(key);
  BT_REQUIRE(it != state.end() && it->second.size() == 1 && it->second.at(0) >= 0,
             fmt::format("Optimizer::load_state_dict: '{}' must be one count >= 0", key));
  return static_cast<std::int64_t>(it->second.at(0));
}

}  // namespace

Optimizer::Optimizer(UpdateRule rule, OptimizerOptions options)
    : rule_(rule), options_(std::move(options)), kept_(moment_names(rule)) {
  std::visit([](const auto& r) { check(r); }, rule_);
  for (const std::optional<double>& clip : {options_.clip_norm, options_.clip_value})
    BT_REQUIRE(
        !clip || *clip > 0,
        fmt::format("Optimizer: clipping limits must be > 0, got {}", clip.value_or(0)));
}

double Optimizer::learning_rate() const {
  if (!options_.schedule) return std::visit([](const auto& r) { return r.lr; }, rule_);
  return options_.schedule(options_.manual_schedule ? schedule_count_ : num_updates_);
}

StateDict Optimizer::update(const StateDict& params, const StateDict& grads) {
  for (const auto& [path, g] : grads) {
    const auto it = params.find(path);
    BT_REQUIRE(it != params.end(),
               fmt::format("Optimizer::update: there is no parameter '{}'", path));
    check_pair(it->second, path, g);
  }
  StateDict clipped = grads;
  if (options_.clip_norm) clipped = clip_grad_norm(clipped, *options_.clip_norm);
  if (options_.clip_value) clipped = clip_grad_value(clipped, *options_.clip_value);
  const double lr = learning_rate();
  ++num_updates_;
  StateDict out;
  for (const auto& [path, gradient] : clipped) {
    Array w = params.at(path).contiguous();
    move(path, w, gradient, lr);
    out.emplace(path, std::move(w));
  }
  return out;
}

void Optimizer::move(const std::string& path, Array& w, const Array& gradient, double lr,
                     ThreadPool* pool) {
  const bool ready = gradient.dtype() == w.dtype() && gradient.is_contiguous();
  std::optional<Array> converted;
  if (!ready) converted = gradient.astype(w.dtype()).contiguous();
  const Array& g = ready ? gradient : *converted;
  const auto moment = [&](const std::string& name) {  // zeros when new
    Array& a = moments_[name].try_emplace(path, w.dtype(), w.shape()).first->second;
    if (a.dtype() != w.dtype()) a = a.astype(w.dtype());
    return elements_of(a);
  };
  Update u{.dtype = w.dtype(), .lr = lr, .t = num_updates_};
  u.w = elements_of(w);
  u.g = g.raw();
  for (const std::string& name : kept_) u.moment(name) = moment(name);
  const RuleForm form = form_of(rule_);
  for_parts(w.size(), pool, [&](std::int64_t first, std::int64_t last) {
    move_elements(form, u, first, last);
  });
}

void Optimizer::update(Module& model, const StateDict& grads) {
  braintrace::load_state_dict(model, update(braintrace::state_dict(model), grads));
}

void Optimizer::attach(Module& model, std::shared_ptr<ThreadPool> pool) {
  pool_ = std::move(pool);
  attached_.clear();
  for (const NamedState& s : collect_states(model))
    for (std::size_t k = 0; k < s.state->num_leaves(); ++k) {
      const std::string& key = s.state->spec(k).key;
      attached_[to_slashes(key.empty() ? s.path : s.path.child(key))] = {s.state, k};
    }
}

void Optimizer::update(const StateDict& grads) {
  BT_REQUIRE(!attached_.empty(), "Optimizer::update: no model; call attach(model) first");
  if (options_.clip_norm || options_.clip_value) {
    StateDict params;
    for (const auto& [path, g] : grads)
      if (const auto it = attached_.find(path); it != attached_.end())
        params.emplace(path, it->second.state->stored(it->second.leaf));
    for (const auto& [path, w] : update(params, grads))
      attached_.at(path).state->store(attached_.at(path).leaf, w);
    return;
  }
  for (const auto& [path, g] : grads) {
    const auto it = attached_.find(path);
    BT_REQUIRE(it != attached_.end(),
               fmt::format("Optimizer::update: there is no parameter '{}'", path));
    check_pair(it->second.state->stored(it->second.leaf), path, g);
  }
  const double lr = learning_rate();
  ++num_updates_;
  for (const auto& [path, g] : grads) {
    const Attached& a = attached_.find(path)->second;
    // In the state's own array: a copy that is stored back would cost another pass.
    move(path, const_cast<Array&>(a.state->stored(a.leaf)), g, lr, pool_.get());
  }
}

StateDict Optimizer::state_dict() const {
  StateDict out;
  out.emplace(std::string(kRuleKey) + text_of(rule_), scalar(1));
  out.emplace("updates", scalar(static_cast<double>(num_updates_), DType::f64));
  out.emplace("schedule", scalar(static_cast<double>(schedule_count_), DType::f64));
  for (const auto& [name, by_path] : moments_)
    for (const auto& [path, a] : by_path) out.emplace(name + "/" + path, a);
  return out;
}

void Optimizer::load_state_dict(const StateDict& state) {
  require_rule(rule_, state);
  const std::int64_t updates = count_from(state, "updates");
  const std::int64_t scheduled = count_from(state, "schedule");
  std::map<std::string, StateDict> moments;
  for (const auto& [key, a] : state) {
    if (key == "updates" || key == "schedule" || key.starts_with(kRuleKey)) continue;
    const std::size_t slash = key.find('/');
    BT_REQUIRE(
        slash != std::string::npos && is_float(a.dtype()),
        fmt::format("Optimizer::load_state_dict: '{}' is no moment of a parameter", key));
    moments[key.substr(0, slash)].emplace(key.substr(slash + 1), a);
  }
  require_moments(rule_, moments);
  num_updates_ = updates;
  schedule_count_ = scheduled;
  moments_ = std::move(moments);
}

}  // namespace braintrace
