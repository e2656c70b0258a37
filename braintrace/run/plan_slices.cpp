// SPDX-License-Identifier: Apache-2.0
// Loops that work row by row, element by element or in products with the rows on the
// left: each thread takes a part of the rows through all turns, so that what goes from
// turn to turn stays in its cache and no turn waits.
#include <algorithm>
#include <map>
#include <set>

#include "braintrace/base/divide.h"
#include "braintrace/run/event_gemm.h"
#include "braintrace/run/gemm_impl.h"
#include "braintrace/run/plan_program_impl.h"

namespace braintrace::plan {
namespace {

// Elements of a part, about: its values fit the nearer caches.
constexpr std::int64_t kPartElements = 2048;
// Rows of a part where products read the whole right factor for each: enough to repay
// that, few enough that there is a part for every thread.
constexpr std::int64_t kPartRows = 16, kLeastRows = 4;

// A step of a body: one chain, or a product.
struct Link {
  TileSpec spec = {};
  std::vector<View> in = {}, out = {};
  const GemmStep* product = nullptr;
};

std::optional<Link> as_link(const Step& s) {
  if (const auto* f = std::get_if<FusedStep>(&s.kind)) {
    const auto* sums = std::get_if<FusedSum>(&f->program);
    if (sums && sums->has_sums()) return std::nullopt;
    return Link{f->chain, f->in, f->out};
  }
  if (const auto* c = std::get_if<CopyStep>(&s.kind)) {
    Link link{{.loop = c->to.shape}, {c->from}, {c->to}};
    link.spec.inputs.push_back({c->from.dtype, c->from.strides});
    link.spec.steps.push_back({MicroOp::copy, c->to.dtype, {0}});
    link.spec.outputs.push_back({1, c->to.strides});
    return link;
  }
  const auto* g = std::get_if<GemmStep>(&s.kind);
  if (!g || g->spec.batch != 1 || !is_float(g->spec.dtype) || g->spec.c.col != 1)
    return std::nullopt;
  return Link{{}, {g->a}, {g->c}, g};
}

// The rows of a product are axis 0 of both views.
bool has_rows(const Link& l) {
  const GemmSpec& s = l.product->spec;
  const auto by_rows = [&](const View& v, const MatrixStrides& m) {
    return !v.shape.empty() && v.shape[0] == s.m && v.strides[0] == m.row;
  };
  return by_rows(l.in[0], s.a) && by_rows(l.out[0], s.c);
}

std::int64_t rows_of(const Link& l) {
  if (l.product) return has_rows(l) ? l.product->spec.m : 0;
  const bool any = !l.spec.loop.empty() && num_elements(l.spec.loop) > 0;
  return any ? l.spec.loop[0] : 0;
}

std::int64_t elements_of(const Link& l) {
  return l.product ? l.product->spec.m * l.product->spec.n : num_elements(l.spec.loop);
}

// Buffers that change while the loop runs: what the body writes and the carried values.
// Every row of axis 0 must be the same stretch of memory in all views of one.
class Moving {
 public:
  Moving(const std::vector<Link>& links, const std::vector<Carry>& carry) {
    for (const Carry& c : carry) buffers_.insert({c.now, c.next});
    for (const Link& l : links)
      for (const View& v : l.out) buffers_.insert(v.buffer);
  }
  bool contains(const View& v) const { return buffers_.contains(v.buffer); }
  bool lies_by_rows(const View& v, std::int64_t size) {
    if (!contains(v)) return true;
    if (v.shape.empty() || v.shape[0] != size || v.offset < 0) return false;
    std::int64_t end = v.offset + 1;  // of the first row
    for (std::size_t a = 1; a < v.shape.size(); ++a) {
      if (v.strides[a] < 0) return false;
      end += (v.shape[a] - 1) * v.strides[a];
    }
    const std::int64_t row = v.strides[0];
    return end <= row && row_.insert({v.buffer, row}).first->second == row;
  }

 private:
  std::set<int> buffers_;
  std::map<int, std::int64_t> row_;
};

bool keeps_to_parts(const std::vector<Link>& links, const std::vector<Carry>& carry,
                    std::int64_t size) {
  Moving moving(links, carry);
  const auto fits = [&](const View& v) { return moving.lies_by_rows(v, size); };
  return std::all_of(links.begin(), links.end(), [&](const Link& l) {
    if (l.product && (moving.contains(l.product->b) ||
                      (l.product->bias && moving.contains(*l.product->bias))))
      return false;
    return rows_of(l) == size && std::all_of(l.in.begin(), l.in.end(), fits) &&
           std::all_of(l.out.begin(), l.out.end(), fits);
  });
}

// Rows of a part, by shape alone; 0 when cutting does not pay.
std::int64_t rows_of_part(std::int64_t size, std::int64_t row, bool products) {
  if (products) {
    if (size < 2 * kLeastRows) return 0;
    return divided_up(size, std::max<std::int64_t>(2, divided_up(size, kPartRows)));
  }
  if (size < 2 || size * row < kPartElements) return 0;
  const std::int64_t wanted = divided_up(size * row, kPartElements);
  return divided_up(size, std::min(size, std::max<std::int64_t>(2, wanted / 2 * 2)));
}

TileSpec of_part(TileSpec spec, std::int64_t size) {
  spec.loop[0] = size;
  return spec;
}

SlicedBody::Piece piece_of(const Link& l, std::int64_t part, std::int64_t rest) {
  SlicedBody::Piece p{.in = l.in, .out = l.out};
  if (l.product) {
    p.product = *l.product;
    return p;
  }
  p.whole = std::make_unique<TileProgram>(of_part(l.spec, part));
  if (rest > 0) p.last = std::make_unique<TileProgram>(of_part(l.spec, rest));
  return p;
}

std::byte* at_part(const Frame& f, const View& v, std::int64_t start) {
  const auto element = static_cast<std::int64_t>(size_of(v.dtype));
  return f.at(v) + start * v.strides[0] * element;
}

void run_product(const SlicedBody::Piece& p, const Frame& f, std::int64_t start,
                 std::int64_t rows, std::byte* scratch) {
  const GemmStep& g = *p.product;
  GemmSpec spec = g.spec;
  spec.m = rows;
  const auto product = g.events
                           ? (g.packed_b ? gemm_events_tiled_serial : gemm_events_serial)
                           : (g.packed_b ? gemm_packed_serial : gemm_serial);
  product(spec, at_part(f, p.in[0], start), f.at(g.b), at_part(f, p.out[0], start),
          g.bias ? f.at(*g.bias) : nullptr, scratch);
}

// One part of axis 0 through all turns.
void run_part(const ScanStep& s, SlicedBody::Room& room, std::int64_t number,
              std::byte* scratch) {
  const SlicedBody& b = *s.sliced;
  const std::int64_t start = number * b.part;
  const std::int64_t rows = std::min(b.part, b.size - start);
  for (std::int64_t k = 0; k < s.length; ++k) {
    set_slots(s, room.frame, k);
    for (const SlicedBody::Piece& p : b.pieces) {
      if (p.product) {
        run_product(p, room.frame, start, rows, scratch);
        continue;
      }
      for (std::size_t i = 0; i < p.in.size(); ++i)
        room.in[i] = at_part(room.frame, p.in[i], start);
      for (std::size_t i = 0; i < p.out.size(); ++i)
        room.out[i] = at_part(room.frame, p.out[i], start);
      (rows == b.part ? p.whole : p.last)
          ->run_serial(std::span(room.in).first(p.in.size()),
                       std::span(room.out).first(p.out.size()), scratch);
    }
  }
}

}  // namespace

std::optional<SlicedBody> sliced_body(const Block& body, const std::vector<Carry>& carry,
                                      std::int64_t length) {
  std::vector<Link> links;
  std::int64_t row = 1;
  bool products = false, events = false;
  for (const Step& step : body.steps) {
    std::optional<Link> l = as_link(step);
    if (!l || rows_of(*l) == 0) return std::nullopt;
    row = std::max(row, elements_of(*l) / rows_of(*l));
    products = products || l->product;
    events = events || (l->product && l->product->events);
    links.push_back(std::move(*l));
  }
  if (links.empty()) return std::nullopt;
  SlicedBody b;
  b.size = rows_of(links[0]);
  b.part = rows_of_part(b.size, row, products);
  if (b.part == 0 || !keeps_to_parts(links, carry, b.size)) return std::nullopt;
  b.parts = divided_up(b.size, b.part);
  b.only_shared = products && !events;
  std::size_t most = 0;
  for (const Link& l : links) {
    b.pieces.push_back(piece_of(l, b.part, b.size % b.part));
    const SlicedBody::Piece& p = b.pieces.back();
    b.work_ns += p.product ? gemm_ns(p.product->spec)
                           : p.whole->work_ns() * static_cast<double>(b.parts);
    most = std::max({most, p.in.size(), p.out.size()});
  }
  if (products && b.work_ns * static_cast<double>(length) < kSharedWork)
    return std::nullopt;
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
