// SPDX-License-Identifier: Apache-2.0
// Loops that work element by element: each thread takes a part of the elements through
// all turns, so that what goes from turn to turn stays in its cache and no turn waits.
#include <algorithm>
#include <set>

#include "braintrace/run/plan_program_impl.h"

namespace braintrace::plan {
namespace {

// Elements of a part, about: its values fit the nearer caches.
constexpr std::int64_t kPartElements = 2048;

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// A step of a body as one chain.
struct Chain {
  TileSpec spec;
  const std::vector<View>*in, *out;
  std::vector<View> own_in = {}, own_out = {};  // of a copy
};

std::optional<Chain> as_chain(const Step& s) {
  if (const auto* f = std::get_if<FusedStep>(&s.kind)) {
    if (!std::holds_alternative<TileProgram>(f->program)) return std::nullopt;
    return Chain{f->chain, &f->in, &f->out};
  }
  const auto* c = std::get_if<CopyStep>(&s.kind);
  if (!c) return std::nullopt;
  Chain chain{.spec = {.loop = c->to.shape}, .in = nullptr, .out = nullptr};
  chain.spec.inputs.push_back({c->from.dtype, c->from.strides});
  chain.spec.steps.push_back({MicroOp::copy, c->to.dtype, {0}});
  chain.spec.outputs.push_back({1, c->to.strides});
  chain.own_in = {c->from};
  chain.own_out = {c->to};
  return chain;
}

const std::vector<View>& inputs(const Chain& c) { return c.in ? *c.in : c.own_in; }
const std::vector<View>& outputs(const Chain& c) { return c.out ? *c.out : c.own_out; }

// Every part of axis 0 is the same stretch of memory in all views of one buffer.
bool lies_by_parts(const View& v, std::int64_t size) {
  return is_packed(v) && v.offset == 0 && !v.shape.empty() && v.shape[0] == size;
}

// What changes while the loop runs, what the body writes and the carried values, is
// written and read part by part.
bool keeps_to_parts(const std::vector<Chain>& chains, const std::vector<Carry>& carry,
                    std::int64_t size) {
  std::set<int> moving;
  for (const Carry& c : carry) moving.insert({c.now, c.next});
  for (const Chain& c : chains)
    for (const View& v : outputs(c)) moving.insert(v.buffer);
  const auto fits = [&](const View& v) {
    return !moving.contains(v.buffer) || lies_by_parts(v, size);
  };
  return std::all_of(chains.begin(), chains.end(), [&](const Chain& c) {
    return c.spec.loop[0] == size &&
           std::all_of(inputs(c).begin(), inputs(c).end(), fits) &&
           std::all_of(outputs(c).begin(), outputs(c).end(), fits);
  });
}

TileSpec of_part(TileSpec spec, std::int64_t size) {
  spec.loop[0] = size;
  return spec;
}

std::byte* at_part(const Frame& f, const View& v, std::int64_t start) {
  const auto element = static_cast<std::int64_t>(size_of(v.dtype));
  return f.at(v) + start * v.strides[0] * element;
}

// One part of axis 0 through all turns.
void run_part(const ScanStep& s, SlicedBody::Room& room, std::int64_t number,
              std::byte* scratch) {
  const SlicedBody& b = *s.sliced;
  const std::int64_t start = number * b.part;
  const bool full = start + b.part <= b.size;
  for (std::int64_t k = 0; k < s.length; ++k) {
    set_slots(s, room.frame, k);
    for (const SlicedBody::Piece& p : b.pieces) {
      for (std::size_t i = 0; i < p.in.size(); ++i)
        room.in[i] = at_part(room.frame, p.in[i], start);
      for (std::size_t i = 0; i < p.out.size(); ++i)
        room.out[i] = at_part(room.frame, p.out[i], start);
      (full ? p.whole : p.last)
          ->run_serial(std::span(room.in).first(p.in.size()),
                       std::span(room.out).first(p.out.size()), scratch);
    }
  }
}

}  // namespace

std::optional<SlicedBody> sliced_body(const Block& body,
                                      const std::vector<Carry>& carry) {
  std::vector<Chain> chains;
  std::int64_t row = 1;
  for (const Step& step : body.steps) {
    std::optional<Chain> c = as_chain(step);
    if (!c || c->spec.loop.empty() || num_elements(c->spec.loop) == 0)
      return std::nullopt;
    row = std::max(row, num_elements(c->spec.loop) / c->spec.loop[0]);
    chains.push_back(std::move(*c));
  }
  if (chains.empty()) return std::nullopt;
  SlicedBody b;
  b.size = chains[0].spec.loop[0];
  if (b.size * row < 2 * kPartElements || !keeps_to_parts(chains, carry, b.size))
    return std::nullopt;
  const std::int64_t wanted = divided_up(b.size * row, kPartElements);
  b.part = divided_up(b.size, std::min(b.size, wanted / 2 * 2));
  b.parts = divided_up(b.size, b.part);
  if (b.parts < 2) return std::nullopt;
  const std::int64_t rest = b.size % b.part;
  std::size_t most = 0;
  for (const Chain& c : chains) {
    SlicedBody::Piece p{std::make_unique<TileProgram>(of_part(c.spec, b.part)), nullptr,
                        inputs(c), outputs(c)};
    if (rest > 0) p.last = std::make_unique<TileProgram>(of_part(c.spec, rest));
    b.work_ns += p.whole->work_ns() * static_cast<double>(b.parts);
    most = std::max({most, p.in.size(), p.out.size()});
    b.pieces.push_back(std::move(p));
  }
  b.rooms.resize(static_cast<std::size_t>(b.parts));
  for (SlicedBody::Room& r : b.rooms) {
    r.in.resize(most);
    r.out.resize(most);
  }
  return b;
}

void run_sliced(ScanStep& s, Frame& f) {
  SlicedBody& b = *s.sliced;
  const bool shared = b.work_ns * static_cast<double>(s.length) > kSharedWork;
  f.pool->for_tiles_if(shared, b.parts, [&](std::int64_t number, int worker) {
    SlicedBody::Room& room = b.rooms[static_cast<std::size_t>(number)];
    room.frame.base = f.base;
    run_part(s, room, number, f.pool->scratch(worker));
  });
}

}  // namespace braintrace::plan
