// SPDX-License-Identifier: Apache-2.0
#include "braintrace/view/html.h"

#include <set>

#include <doctest/doctest.h>

#include "braintrace/nn/linear.h"
#include "braintrace/nn/model_registry.h"
#include "braintrace/view/html_impl.h"

namespace html_test {

using namespace braintrace;

namespace {

std::string page_of(Module& model, const Shape& input, const HtmlOptions& options = {}) {
  init_all_states(model);
  return to_html(compile_etrace_graph(model, {zeros(input)}), options);
}

// The name of the first tag that is not closed in order; "" when all are.
std::string unbalanced(const std::string& page) {
  static const std::set<std::string> empty = {"meta", "link", "input", "br", "!DOCTYPE"};
  std::vector<std::string> open;
  for (auto at = page.find('<'); at != std::string::npos; at = page.find('<', at + 1)) {
    if (page.compare(at, 4, "<!--") == 0) {
      at = page.find("-->", at);
      continue;
    }
    const auto end = page.find('>', at);
    const bool closing = page[at + 1] == '/', alone = page[end - 1] == '/';
    const auto start = at + (closing ? 2 : 1);
    const std::string name =
        page.substr(start, page.find_first_of(" >/\n", start) - start);
    if (closing) {
      if (open.empty() || open.back() != name) return name;
      open.pop_back();
    } else if (!alone && !empty.contains(name)) {
      open.push_back(name);
    }
    // Style and script hold no tags.
    if (!closing && (name == "style" || name == "script"))
      at = page.find("</" + name, at) - 1;
  }
  return open.empty() ? "" : open.back();
}

// A weight whose name tries to end the page.
struct Hostile : Module {
  nn::Linear in{2, 3};
  HiddenState h{{3}};
  Hostile() {
    add("<script>alert('x')</script>\"&", in);
    add("h", h);
  }
  Value update(Value x) override {
    h.set(tanh(in(x)) + 0.5 * h.value());
    return h.value();
  }
};

}  // namespace

TEST_CASE("the page is well formed and loads nothing") {
  for (const auto& [kind, input] :
       {std::pair<const char*, Shape>{"single_rnn", {10}}, {"two_layer_gru", {10}}}) {
    const auto model = nn::build_model(kind);
    const std::string page = page_of(*model, input, {.title = kind});
    CHECK(unbalanced(page) == "");
    for (auto at = page.find("http"); at != std::string::npos;
         at = page.find("http", at + 1))
      CHECK(page.compare(at, 18, "http://www.w3.org/") == 0);
    CHECK(page.find("src=") == std::string::npos);
    CHECK(page.find("@import") == std::string::npos);
    CHECK(page.find("url(") == std::string::npos);
  }
}

TEST_CASE("every id of the page is used once") {
  const auto model = nn::build_model("two_layer_gru");
  const std::string page = page_of(*model, {10});
  std::set<std::string> ids;
  for (auto at = page.find(" id=\""); at != std::string::npos;
       at = page.find(" id=\"", at)) {
    at += 5;
    const std::string id = page.substr(at, page.find('"', at) - at);
    CHECK_MESSAGE(ids.insert(id).second, id);
  }
  CHECK(ids.contains("graph"));
  CHECK(ids.contains("program"));
}

TEST_CASE("the page says verdicts, reasons, cuts and diagnostics") {
  const auto model = nn::build_model("two_layer_gru");
  const std::string page = page_of(*model, {10});
  for (const char* part :
       {"<code>rnn1/Wr/weight</code></td><td><span class=\"tag dense\">dense</span>",
        "it reaches no hidden state", "Cut set", "prefers-color-scheme: dark",
        "data-kind=\"relation_included\" data-level=\"info\"",
        "<option value=\"history_cut\">", "auto rnn1_h_next = ", "rnn1/h at exit"})
    CHECK_MESSAGE(page.find(part) != std::string::npos, part);
}

TEST_CASE("names and titles cannot break out of the page") {
  Hostile model;
  const std::string page = page_of(model, {2}, {.title = "</title><b>"});
  CHECK(unbalanced(page) == "");
  CHECK(page.find("<script>alert") == std::string::npos);
  CHECK(page.find("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot;&amp;") !=
        std::string::npos);
  CHECK(page.find("<title>&lt;/title&gt;&lt;b&gt;</title>") != std::string::npos);
}

TEST_CASE("escaped text has no mark-up and no control characters") {
  CHECK(internal::html_escape("a<b>&\"'\x01\n") == "a&lt;b&gt;&amp;&quot;&#39; \n");
}

TEST_CASE("large programs are shown as text only") {
  const auto model = nn::build_model("single_rnn");
  CHECK(page_of(*model, {10}, {.max_program_nodes = 2}).find("as a picture") ==
        std::string::npos);
}

}  // namespace html_test
