// SPDX-License-Identifier: Apache-2.0
// Finds the kernels of a block that are the update of a trace and joins them.
#include <algorithm>
#include <optional>

#include "braintrace/run/tile_actions_impl.h"

namespace braintrace {
namespace {

constexpr unsigned kSecondIsNumber = 2, kThirdIsNumber = 4;
// Places of d among the operands of trace kernels: of one state, and the first of two.
constexpr int kOneStateD = 1, kTwoStatesD = 2;

class Joiner : TileActions {
 public:
  explicit Joiner(TileCode& code) : TileActions(code), code_(code) {}

  void run() {
    for (std::size_t last = 0; last < code_.actions.size(); ++last)
      if (auto found = match(last)) last -= join(*found, last);
  }

 private:
  // Actions of one trace, in order, and what replaces them.
  struct Match {
    TileTrace trace;
    std::vector<std::size_t> members;        // the last one is where they join
    std::optional<std::size_t> behind = {};  // an action that vanishes, too
    std::vector<int> numbers = {};           // which operands are numbers, to be spread
  };
  // e' = t + u, by the place of its action.
  struct Update {
    std::size_t action;
    TraceInput input;
    int df, x, result;
  };

  // t + u?
  std::optional<Update> as_update(std::size_t i, int t) const {
    const TileAction& a = action(i);
    const int* in = a.operands;
    if (is_kernel(i, MicroOp::add, 1, kSecondIsNumber) && in[2] == t && in[0] != t)
      return Update{i, TraceInput::product, in[0], in[1], a.result};
    for (const int side : {0, 1})
      if (is_kernel(i, MicroOp::add, 0, side == 0 ? kSecondIsNumber : 1U) &&
          in[side] == t)
        return Update{i, TraceInput::number, in[1 - side], in[1 - side], a.result};
    return std::nullopt;
  }

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

  // The only reader of t beside the action `last`: t's update.
  std::optional<Update> update_of(std::size_t t, std::size_t last) const {
    const int slot = action(t).result;
    std::optional<Update> found;
    for (std::size_t i = t + 1; i < code_.actions.size(); ++i) {
      if (reads(i, slot) && i != last) {
        if (found || i > last) return std::nullopt;
        found = as_update(i, slot);
        if (!found) return std::nullopt;
      }
      if (!writes(i, slot)) continue;
      if (i < last) return std::nullopt;
      break;
    }
    return found;
  }

  std::optional<Match> match(std::size_t last) const {
    if (is_kernel(last, MicroOp::add, 1, 0)) return one_state(last);
    if (is_kernel(last, MicroOp::add, 0, 0)) return two_states(last);
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
             .kind = kind},
            {o.t, o.update.action, total},
            {},
            o.past.numbers};
    std::copy(rest.begin(), rest.end(), m.trace.operands + 4);
    if (h) m.members.push_back(*h);
    std::sort(m.members.begin(), m.members.end());
    return may_wait(m) ? std::optional(m) : std::nullopt;
  }

  // last: s t + sum
  std::optional<Match> one_state(std::size_t last) const {
    const int* in = action(last).operands;
    for (const int side : {0, 1}) {
      const auto o = state_in(in[side], last);
      if (!o || o->drive) continue;
      if (auto m = match_of(TraceForm::added, *o, {in[1 - side], in[2]}, last, {}))
        return m;
    }
    return std::nullopt;
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

  // last: sum + (s1 t1 + s2 t2)
  std::optional<Match> two_states(std::size_t last) const {
    const TileAction& sum = action(last);
    for (const int side : {0, 1}) {
      const auto h = maker(sum.operands[side], last);
      if (!h || !is_read_only_by(last, action(*h).result, *h)) continue;
      const int total = sum.operands[1 - side];
      for (const int pair : {0, 1})
        if (is_kernel(*h, MicroOp::add, 2, kSecondIsNumber << (2 * pair)))
          if (auto m = joined_state(last, *h, pair, total)) return m;
      if (!is_kernel(*h, MicroOp::add, 2, 0)) continue;
      if (auto m = two_states(last, *h, total)) return m;
    }
    return std::nullopt;
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

  bool is_read_only_by(std::size_t reader, int slot, std::size_t from) const {
    for (std::size_t i = from + 1; i < code_.actions.size(); ++i) {
      if (i != reader && reads(i, slot)) return false;
      if (i >= reader && writes(i, slot)) return true;
    }
    return true;
  }

  // d_i e_i in t = d_1 e_1 + d_2 e_2; a coefficient may be a number that never changes.
  struct Share {
    int d, e;
    bool number;
  };
  Share share_of(std::size_t t, int i) const {
    const int* pair = action(t).operands + 2 * i;
    const bool number = (action(t).scalars & kSecondIsNumber << 2 * i) != 0;
    return {pair[number ? 1 : 0], pair[number ? 0 : 1], number};
  }
  bool mixes_two(std::size_t t) const {
    const unsigned scalars = action(t).scalars;
    if ((scalars & ~(kSecondIsNumber | kSecondIsNumber << 2)) != 0 ||
        !is_kernel(t, MicroOp::add, 2, scalars))
      return false;
    for (const int i : {0, 1})
      if (const Share s = share_of(t, i); s.number && !is_fixed(s.d)) return false;
    return true;
  }

  // The signals and traces in h = s1 t1 + s2 t2, and the states that make t1 and t2.
  std::optional<Match> two_states(std::size_t last, std::size_t h, int sum) const {
    int s[2];
    std::size_t t[2];
    for (int i = 0; i < 2; ++i) {
      const int* pair = action(h).operands + 2 * i;
      const auto second = maker(pair[1], h);
      const bool turned = !second || !mixes_two(*second);
      const auto made = maker(pair[turned ? 0 : 1], h);
      if (!made || !mixes_two(*made)) return std::nullopt;
      s[i] = pair[turned ? 1 : 0];
      t[i] = *made;
    }
    const auto u1 = update_of(t[0], h), u2 = update_of(t[1], h);
    if (!u1 || !u2 || t[0] == t[1]) return std::nullopt;
    const bool first = u1->input == TraceInput::product;
    if (first && u2->input == TraceInput::product && u1->x != u2->x) return std::nullopt;
    const Share a1 = share_of(t[0], 0), a2 = share_of(t[0], 1);
    const Share b1 = share_of(t[1], 0), b2 = share_of(t[1], 1);
    if (a1.e != b1.e || a2.e != b2.e) return std::nullopt;
    const TraceInputs inputs{u1->input, u2->input};
    Match m{{.call = two_state_kernel(action(last).dtype, inputs),
             .num_operands = 12,
             .operands = {a1.e, a2.e, a1.d, a2.d, b1.d, b2.d, u1->df, u2->df,
                          first ? u1->x : u2->x, s[0], s[1], sum},
             .results = {u1->result, u2->result, action(last).result}},
            {t[0], t[1], u1->action, u2->action, h, last}};
    std::sort(m.members.begin(), m.members.end());
    if (!may_wait(m)) return std::nullopt;
    int place = kTwoStatesD;
    for (const Share& share : {a1, a2, b1, b2}) {
      if (share.number) m.numbers.push_back(place);
      ++place;
    }
    pair(m, inputs);
    return m;
  }

  // Takes in the actions that read and write the states as pairs, when nobody else needs
  // what they move.
  void pair(Match& m, TraceInputs inputs) const {
    TileTrace& t = m.trace;
    const auto in = maker(t.operands[0], m.members.front());
    if (!in || action(*in).kind != TileAction::gather_pair) return;
    const TileAction& gather = action(*in);
    if (gather.result != t.operands[0] || gather.second != t.operands[1]) return;
    const std::size_t last = m.members.back();
    std::optional<std::size_t> out;
    for (std::size_t i = *in + 1; i < code_.actions.size(); ++i) {
      const TileAction& a = action(i);
      const bool stores = i > last && !out && a.kind == TileAction::scatter_pair &&
                          a.operands[0] == t.results[0] && a.operands[1] == t.results[1];
      if (stores)
        out = i;
      else if (!is_member(m, i) && (i < last ? touches(i, gather.result, gather.second)
                                             : spoils(i, gather, t, !out)))
        return;
    }
    if (!out) return;
    t.paired = paired_trace_kernel(inputs);
    t.gather = gather;
    t.scatter = action(*out);
    m.members.insert(m.members.begin(), *in);
    m.behind = *out;
  }
  bool touches(std::size_t i, int a, int b) const {
    return reads(i, a) || reads(i, b) || writes(i, a) || writes(i, b);
  }
  // Does an action behind the update read what is moved, or (`early`) overwrite the new
  // states before they are stored?
  bool spoils(std::size_t i, const TileAction& gather, const TileTrace& t,
              bool early) const {
    const int *next = t.results, old[] = {gather.result, gather.second};
    return reads(i, old[0]) || reads(i, old[1]) || reads(i, next[0]) ||
           reads(i, next[1]) || (early && (writes(i, next[0]) || writes(i, next[1])));
  }
  static bool is_member(const Match& m, std::size_t i) {
    return std::find(m.members.begin(), m.members.end(), i) != m.members.end();
  }

  // Nobody between a member and the last one touches what it reads or makes; what members
  // hand to each other stays in registers.
  bool may_wait(const Match& m) const {
    const std::size_t last = m.members.back();
    for (const std::size_t member : m.members) {
      const TileAction& a = action(member);
      const bool stored = is_result(m, a.result);
      for (std::size_t i = member + 1; i < last; ++i) {
        if (is_member(m, i)) continue;
        if (stored && (reads(i, a.result) || writes(i, a.result))) return false;
        for (int k = 0; k < num_operands(a); ++k)
          if (writes(i, a.operands[k]) && !is_made_by(m, a.operands[k], member))
            return false;
      }
    }
    return true;
  }
  static bool is_result(const Match& m, int entry) {
    const int* end = m.trace.results + kTraceResults;
    return std::find(m.trace.results, end, entry) != end;
  }
  bool is_made_by(const Match& m, int entry, std::size_t reader) const {
    const auto made = maker(entry, reader);
    return made && is_member(m, *made);
  }

  // How many actions vanish in front of the joined one.
  std::size_t join(const Match& m, std::size_t last) {
    TileAction joined{.kind = TileAction::trace,
                      .result = static_cast<int>(code_.traces.size())};
    code_.traces.push_back(m.trace);
    for (const int operand : m.numbers)
      spread(code_.traces.back(), operand, code_.actions[last].dtype);
    code_.actions[last] = joined;
    if (m.behind)
      code_.actions.erase(code_.actions.begin() + static_cast<std::ptrdiff_t>(*m.behind));
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
    if (operand == kOneStateD) t.fixed_d = number;
  }

  TileCode& code_;
};

}  // namespace

void join_traces(TileCode& code) { Joiner(code).run(); }

}  // namespace braintrace
