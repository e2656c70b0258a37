// SPDX-License-Identifier: Apache-2.0
#include "braintrace/view/svg.h"

#include <fmt/format.h>

#include "braintrace/base/error.h"

#ifdef BRAINTRACE_HAS_GRAPHVIZ
#include <memory>
#include <mutex>

#include <graphviz/gvc.h>

namespace braintrace {
namespace {

// Graphviz keeps its parser and its error hook in globals, so one layout runs at a time.
// Both are set anew by every call; nothing is carried from one to the next.
std::mutex graphviz_lock;
std::string* messages = nullptr;

int collect(char* text) {
  if (messages) *messages += text;
  return 0;
}

struct Collector {
  explicit Collector(std::string& into) : old(agseterrf(collect)) { messages = &into; }
  ~Collector() {
    messages = nullptr;
    agseterrf(old);
  }
  agusererrf old;
};

std::string first_line(const std::string& text) {
  return text.empty() ? "no reason given" : text.substr(0, text.find('\n'));
}

}  // namespace

std::string dot_to_svg(const std::string& dot) {
  const std::lock_guard lock(graphviz_lock);
  std::string log;
  const Collector collector(log);
  const std::unique_ptr<GVC_t, int (*)(GVC_t*)> context(gvContext(), gvFreeContext);
  const std::unique_ptr<Agraph_t, int (*)(Agraph_t*)> graph(agmemread(dot.c_str()),
                                                            agclose);
  BT_REQUIRE(graph, fmt::format("dot_to_svg: malformed text: {}", first_line(log)));
  const bool laid_out = gvLayout(context.get(), graph.get(), "dot") == 0;
  BT_REQUIRE_KIND(laid_out, ErrorKind::runtime,
                  fmt::format("dot_to_svg: layout failed: {}", first_line(log)));
  char* data = nullptr;
  unsigned int size = 0;
  const bool drawn =
      gvRenderData(context.get(), graph.get(), "svg", &data, &size) == 0 && data;
  std::string svg = drawn ? std::string(data, size) : "";
  if (data) gvFreeRenderData(data);
  gvFreeLayout(context.get(), graph.get());
  BT_REQUIRE_KIND(drawn, ErrorKind::runtime,
                  fmt::format("dot_to_svg: drawing failed: {}", first_line(log)));
  return svg;
}

}  // namespace braintrace

#else

namespace braintrace {

std::string dot_to_svg(const std::string&) {
  throw UserError(ErrorKind::not_supported,
                  "dot_to_svg: built without Graphviz (Debian package libgraphviz-dev)");
}

}  // namespace braintrace

#endif

namespace braintrace {

std::string dot_to_inline_svg(const std::string& dot, const std::string& id_prefix) {
  std::string svg = dot_to_svg(dot);
  const std::size_t start = svg.find("<svg");
  BT_INVARIANT(start != std::string::npos);
  svg.erase(0, start);
  // Quotes inside texts are escaped, so this is always an attribute.
  const std::string id = " id=\"";
  for (std::size_t at = svg.find(id); at != std::string::npos; at = svg.find(id, at)) {
    at += id.size();
    svg.insert(at, id_prefix);
  }
  return svg;
}

}  // namespace braintrace
