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

// One for the whole process and never freed: the text plugin of Graphviz 2.42 remembers a
// font name of the context it saw last and reads it again in the next one.
GVC_t* shared_context() {
  static GVC_t* const context = gvContext();
  return context;
}

struct Layout {
  Layout(GVC_t* c, Agraph_t* g) : context(c), graph(g) {
    done = gvLayout(context, graph, "dot") == 0;
  }
  ~Layout() { gvFreeLayout(context, graph); }
  GVC_t* context;
  Agraph_t* graph;
  bool done = false;
};

std::string first_line(const std::string& text) {
  return text.empty() ? "no reason given" : text.substr(0, text.find('\n'));
}

}  // namespace

std::string dot_to_svg(const std::string& dot) {
  const std::lock_guard lock(graphviz_lock);
  std::string log;
  const Collector collector(log);
  GVC_t* const context = shared_context();
  const std::unique_ptr<Agraph_t, int (*)(Agraph_t*)> graph(agmemread(dot.c_str()),
                                                            agclose);
  BT_REQUIRE(graph, fmt::format("dot_to_svg: malformed text: {}", first_line(log)));
  const Layout layout(context, graph.get());
  BT_REQUIRE_KIND(layout.done, ErrorKind::runtime,
                  fmt::format("dot_to_svg: layout failed: {}", first_line(log)));
  char* data = nullptr;
  unsigned int size = 0;
  const bool drawn = gvRenderData(context, graph.get(), "svg", &data, &size) == 0 && data;
  std::string svg = drawn ? std::string(data, size) : "";
  if (data) gvFreeRenderData(data);
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
