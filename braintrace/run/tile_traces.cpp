// SPDX-License-Identifier: Apache-2.0
// Finds the kernels of a block that are the update of a trace and joins them.
#include <algorithm>
#include <optional>

#include "braintrace/run/trace_match_impl.h"

namespace braintrace {
namespace {

constexpr unsigned kThirdIsNumber = 4;
// Places of d and df among the operands of trace kernels: of one state, and the first of
// two.
constexpr int kOneStateD = 1, kOneStateDf = 2, kOneStateS = 4, kTwoStatesD = 2,
              kTwoStatesDf = 6;

class Joiner : TraceMatcher {
 public:
  explicit Joiner(TileCode& code) : TraceMatcher(code), code_(code) {}

  void run() {
    for (std::size_t last = 0; last < code_.actions.size(); ++last)
      if (auto found = match(last)) last -= join(*found, last);
  }
  // Traces that no signal meets.
  void run_unmet() {
    for (std::size_t last = 0; last < code_.actions.size(); ++last)
      if (auto found = moved(last)) last -= join(*found, last);
  }

 private:
  // t = d e; d may be a number that never changes.
  struct Decayed {
    int e, d;
    std::vector<int> numbers;  // as Match
  };
  std::optional<Decayed> as_decayed(std::size_t t) const {
    const int* in = action(t).operands;
    if (is_kernel(t, MicroOp::mul, 0, 0)) return Decayed{in[1], in[0], {}};
    for (const int side : {0, 1})
      if (is_kernel(t, MicroOp::mul, 0, 1U << side) && is_fixed(in[side]))
        return Decayed{in[1 - side], in[side], {kOneStateD}};
    return std::nullopt;
  }

  std::optional<Match> match(std::size_t last) const {
    for (const unsigned number : {0U, kSecondIsNumber})
      if (is_kernel(last, MicroOp::add, 1, number))
        if (auto m = one_state(last)) return m;
    if (is_kernel(last, MicroOp::add, 0, 0)) return summed(last);
    if (is_kernel(last, MicroOp::add, 1, kSecondIsNumber) && !is_summed(last))
      return two_states_of_one_sample(last, last, -1);
    for (const int pair : {0, 1})
      if (is_kernel(last, MicroOp::add, 2, kSecondIsNumber << (2 * pair)) &&
          !is_summed(last))
        return single_sample(last, pair);
    return std::nullopt;
  }
  // Is what the action makes added to something next? Then that ends the match.
  bool is_summed(std::size_t i) const {
    if (!is_slot(action(i).result)) return false;
    for (std::size_t next = i + 1; next < code_.actions.size(); ++next)
      if (reads(next, action(i).result)) return is_kernel(next, MicroOp::add, 0, 0);
    return false;
  }

  // t = d e, or t = d e + r with a number r, and its update; read by `reader`.
  struct OneState {
    std::size_t t;
    Decayed past;
    Update update;
    std::optional<int> drive = {};
  };
  std::optional<OneState> state_in(int slot, std::size_t reader) const {
    const auto t = maker(slot, reader);
    if (!t) return std::nullopt;
    const int* in = action(*t).operands;
    const bool driven = is_kernel(*t, MicroOp::add, 1, kThirdIsNumber);
    const auto past = driven ? Decayed{in[1], in[0], {}} : as_decayed(*t);
    const auto u = past ? update_of(*t, reader) : std::nullopt;
    if (!u) return std::nullopt;
    return OneState{*t, *past, *u, driven ? std::optional(in[2]) : std::nullopt};
  }
  // `rest`: the operands behind x; `total`: the action that makes the sum.
  std::optional<Match> match_of(TraceForm form, const OneState& o, std::vector<int> rest,
                                std::size_t total, std::optional<std::size_t> h) const {
    const TraceKind kind{action(total).dtype, form, o.update.input};
    const int sum = action(total).result;
    Match m{{.call = trace_kernel(kind),
             .num_operands = 4 + static_cast<int>(rest.size()),
             .operands = {o.past.e, o.past.d, o.update.df, o.update.x},
             .results = {o.update.result, sum, sum},
             .dtype = kind.dtype,
             .kind = kind},
            {o.t, o.update.action, total},
            o.past.numbers};
    std::copy(rest.begin(), rest.end(), m.trace.operands + 4);
    if (h) m.members.push_back(*h);
    take_in(m, o.update, kOneStateDf);
    m.given.insert(m.given.end(), {{o.past.e, o.t}, {o.past.d, o.t}});
    for (std::size_t i = 0; i < rest.size(); ++i)  // h reads all but the sum
      m.given.emplace_back(rest[i], h && i + 1 < rest.size() ? *h : total);
    std::sort(m.members.begin(), m.members.end());
    return may_wait(m) ? std::optional(m) : std::nullopt;
  }

  // last: s t + sum; s may be a number that never changes.
  std::optional<Match> one_state(std::size_t last) const {
    const int* in = action(last).operands;
    const bool number = action(last).scalars != 0;
    for (const int side : {0, 1}) {
      const int s = in[1 - side];
      if (number && (side == 1 || !is_fixed(s))) continue;
      const auto o = state_in(in[side], last);
      if (!o || o->drive) continue;
      auto m = match_of(TraceForm::added, *o, {s, in[2]}, last, {});
      if (!m) continue;
      if (number) m->numbers.push_back(kOneStateS);
      return m;
    }
    return std::nullopt;
  }

  // last: t + df x, or d e + df x
  std::optional<Match> moved(std::size_t last) const {
    const int* in = action(last).operands;
    if (is_kernel(last, MicroOp::add, 1, kSecondIsNumber)) {
      const auto t = maker(in[2], last);
      const auto past = t ? as_decayed(*t) : std::nullopt;
      if (!past || in[0] == in[2] || !is_read_only_by(last, in[2], *t))
        return std::nullopt;
      return moved_of(*past,
                      {last, TraceInput::product, in[0], in[1], action(last).result},
                      {*t, last});
    }
    for (const int pair : {0, 1}) {
      const unsigned x = kSecondIsNumber << (2 * pair),
                     d = kSecondIsNumber << (2 - 2 * pair);
      const int *fresh = in + 2 * pair, *old = in + 2 - 2 * pair;
      const Update u{last, TraceInput::product, fresh[0], fresh[1], action(last).result};
      if (is_kernel(last, MicroOp::add, 2, x))
        return moved_of({old[1], old[0], {}}, u, {last});
      if (is_kernel(last, MicroOp::add, 2, x | d) && is_fixed(old[1]) &&
          !is_fixed(fresh[1]))
        return moved_of({old[0], old[1], {kOneStateD}}, u, {last});
    }
    return std::nullopt;
  }
  std::optional<Match> moved_of(const Decayed& past, const Update& u,
                                const std::vector<std::size_t>& members) const {
    const TraceKind kind{action(u.action).dtype, TraceForm::moved, u.input};
    Match m{{.call = trace_kernel(kind),
             .num_operands = 4,
             .operands = {past.e, past.d, u.df, u.x},
             .results = {u.result, u.result, u.result},
             .dtype = kind.dtype,
             .kind = kind},
            members,
            past.numbers};
    take_in(m, u, kOneStateDf);
    m.given.insert(m.given.end(), {{past.e, members[0]}, {past.d, members[0]}});
    return may_wait(m) ? std::optional(m) : std::nullopt;
  }

  // last: s t + q y, y one number in the pair `number`
  std::optional<Match> single_sample(std::size_t last, int number) const {
    const int *in = action(last).operands, *fresh = in + 2 * number,
              *old = in + 2 * (1 - number);
    for (const int side : {0, 1}) {
      const auto o = state_in(old[side], last);
      if (!o || o->drive) continue;
      const std::vector<int> rest = {old[1 - side], fresh[0], fresh[1]};
      if (auto m = match_of(TraceForm::single, *o, rest, last, {})) return m;
    }
    return std::nullopt;
  }

  // last: sum + h
  std::optional<Match> summed(std::size_t last) const {
    const TileAction& sum = action(last);
    for (const int side : {0, 1}) {
      const auto h = maker(sum.operands[side], last);
      if (!h || !is_read_only_by(last, action(*h).result, *h)) continue;
      const int total = sum.operands[1 - side];
      for (const int pair : {0, 1})
        if (is_kernel(*h, MicroOp::add, 2, kSecondIsNumber << (2 * pair)))
          if (auto m = joined_state(last, *h, pair, total)) return m;
      if (auto m = two_states(last, *h, {.sum = total})) return m;
      if (is_kernel(*h, MicroOp::add, 1, kSecondIsNumber))
        if (auto m = two_states_of_one_sample(last, *h, total)) return m;
    }
    return std::nullopt;
  }

  // fresh: q y + h, y one number; last: that, or the sum of it and `sum`
  std::optional<Match> two_states_of_one_sample(std::size_t last, std::size_t fresh,
                                                int sum) const {
    const int* in = action(fresh).operands;
    const auto h = maker(in[2], fresh);
    if (!h || !is_read_only_by(fresh, in[2], *h)) return std::nullopt;
    return two_states(last, *h, {.sum = sum, .q = in[0], .y = in[1], .fresh = fresh});
  }

  // h = s t + c y, y one number in the pair `number`.
  std::optional<Match> joined_state(std::size_t last, std::size_t h, int number,
                                    int sum) const {
    const int *in = action(h).operands, *other = in + 2 * number,
              *own = in + 2 * (1 - number);
    for (const int side : {0, 1}) {
      const auto o = state_in(own[side], h);
      if (!o) continue;
      std::vector<int> rest = {own[1 - side], other[0], other[1], sum};
      if (o->drive) rest.insert(rest.end() - 1, *o->drive);
      const TraceForm form = o->drive ? TraceForm::driven : TraceForm::joined;
      if (auto m = match_of(form, *o, rest, last, h)) return m;
    }
    return std::nullopt;
  }

  // t = d_1 e_1 + d_2 e_2, or one of these terms; a coefficient may be a number that
  // never changes.
  struct Term {
    int d, e;
    bool number;
  };
  using Mixed = std::vector<Term>;
  std::optional<Term> term_of(std::size_t t, int i) const {
    const int* pair = action(t).operands + 2 * i;
    const unsigned numbers = action(t).scalars >> 2 * i & 3;
    if (numbers == 0) return Term{pair[0], pair[1], false};
    const int d = numbers == 1 ? pair[0] : pair[1], e = numbers == 1 ? pair[1] : pair[0];
    if (numbers == 3 || !is_fixed(d)) return std::nullopt;
    return Term{d, e, true};
  }
  std::optional<Mixed> as_mixed(std::size_t t) const {
    const unsigned scalars = action(t).scalars;
    int count = is_kernel(t, MicroOp::mul, 0, scalars) ? 1 : 0;
    if (is_kernel(t, MicroOp::add, 2, scalars)) count = 2;
    Mixed terms;
    for (int i = 0; i < count; ++i) {
      const auto term = term_of(t, i);
      if (!term || (i > 0 && term->e == terms[0].e)) return std::nullopt;
      terms.push_back(*term);
    }
    return count > 0 ? std::optional(terms) : std::nullopt;
  }

  // s_i t_i in h = s_1 t_1 + s_2 t_2.
  struct Half {
    int s;
    std::size_t t;
    Mixed terms;
    Update update;
  };
  std::optional<Half> half_of(std::size_t h, int i) const {
    const int* pair = action(h).operands + 2 * i;
    for (const int side : {1, 0}) {
      const auto t = maker(pair[side], h);
      const auto terms = t ? as_mixed(*t) : std::nullopt;
      const auto update = terms ? update_of(*t, h) : std::nullopt;
      if (update) return Half{pair[1 - side], *t, *terms, *update};
    }
    return std::nullopt;
  }

  // The states all terms read, in the order of the longer list; more than two: none.
  static Ints states_of(const Mixed& a, const Mixed& b) {
    if (a.size() < b.size()) return states_of(b, a);
    Ints states;
    for (const Mixed* terms : {&a, &b})
      for (const Term& term : *terms)
        if (std::find(states.begin(), states.end(), term.e) == states.end())
          states.push_back(term.e);
    if (states.size() == 1) states.push_back(states[0]);
    return states.size() == 2 ? states : Ints{};
  }

  // What is added to h, and where it goes; -1: is not there.
  struct Total {
    int sum = -1, q = -1, y = -1;
    std::size_t fresh = 0;  // the action that adds q y

    TraceForm form() const {
      return q < 0 ? TraceForm::added : sum < 0 ? TraceForm::single : TraceForm::joined;
    }
  };
  std::optional<Match> two_states(std::size_t last, std::size_t h,
                                  const Total& total) const {
    if (!is_kernel(h, MicroOp::add, 2, 0)) return std::nullopt;
    const auto first = half_of(h, 0), second = half_of(h, 1);
    if (!first || !second || first->t == second->t) return std::nullopt;
    const Update &u1 = first->update, &u2 = second->update;
    const auto is_number = [](const Update& u) { return u.input == TraceInput::number; };
    const bool numbers[] = {is_number(u1), is_number(u2)};
    if (!numbers[0] && !numbers[1] && u1.x != u2.x) return std::nullopt;
    const Ints states = states_of(first->terms, second->terms);
    if (states.empty()) return std::nullopt;
    const DType dtype = action(last).dtype;
    const bool mixed = first->terms.size() + second->terms.size() > 2;
    Match m{{.num_operands = kTraceOperands,
             .operands = {static_cast<int>(states[0]), static_cast<int>(states[1]), -1,
                          -1, -1, -1, u1.df, u2.df, numbers[0] ? u2.x : u1.x, first->s,
                          second->s, total.sum, total.q, total.y},
             .results = {u1.result, u2.result, action(last).result},
             .dtype = dtype,
             .call_rows = two_state_kernel({dtype, mixed, total.form()})},
            {first->t, second->t, u1.action, u2.action, h, last}};
    take_in(m, u1, kTwoStatesDf);
    take_in(m, u2, kTwoStatesDf + 1);
    for (const Half* half : {&*first, &*second}) {
      m.given.emplace_back(half->s, h);
      for (const Term& term : half->terms)
        m.given.insert(m.given.end(), {{term.d, half->t}, {term.e, half->t}});
    }
    m.given.emplace_back(total.sum, last);
    for (const int entry : {total.q, total.y}) m.given.emplace_back(entry, total.fresh);
    if (total.form() == TraceForm::joined) m.members.push_back(total.fresh);
    std::sort(m.members.begin(), m.members.end());
    if (!may_wait(m)) return std::nullopt;
    int place = kTwoStatesD;
    for (const Half* half : {&*first, &*second}) {
      for (const Term& term : half->terms) {
        const int at = place + (term.e == states[0] ? 0 : 1);
        m.trace.operands[at] = term.d;
        if (term.number) m.numbers.push_back(at);
      }
      place += 2;
    }
    for (const int i : {0, 1}) m.trace.rows.inputs[i].number = numbers[i];
    return m;
  }

  // How many actions vanish in front of the joined one.
  std::size_t join(const Match& m, std::size_t last) {
    TileAction joined{.kind = TileAction::trace,
                      .result = static_cast<int>(code_.traces.size())};
    code_.traces.push_back(m.trace);
    for (const int operand : m.numbers)
      spread(code_.traces.back(), operand, code_.actions[last].dtype);
    code_.actions[last] = joined;
    for (std::size_t i = m.members.size() - 1; i-- > 0;)
      code_.actions.erase(code_.actions.begin() +
                          static_cast<std::ptrdiff_t>(m.members[i]));
    return m.members.size() - 1;
  }

  // Kernels of traces read whole blocks.
  void spread(TileTrace& t, int operand, DType dtype) {
    const int number = t.operands[operand];
    const auto is_same = [&](const TileAction& a) {
      return a.kind == TileAction::fill && a.operands[0] == number;
    };
    auto made = std::find_if(code_.once.begin(), code_.once.end(), is_same);
    if (made == code_.once.end()) {
      TileAction fill{.kind = TileAction::fill, .element = size_of(dtype)};
      fill.operands[0] = number;
      fill.result = code_.slot_entry(code_.num_slots++);
      made = code_.once.insert(made, fill);
    }
    t.operands[operand] = made->result;
    t.spread.push_back({operand, number});
  }

  TileCode& code_;
};

}  // namespace

void join_traces(TileCode& code) { Joiner(code).run(); }
void join_unmet_traces(TileCode& code) { Joiner(code).run_unmet(); }

}  // namespace braintrace
