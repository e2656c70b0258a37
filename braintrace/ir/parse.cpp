// SPDX-License-Identifier: Apache-2.0
// Reads the text form of print.h: a small recursive-descent parser.
#include <charconv>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "braintrace/ir/print.h"

namespace braintrace {
namespace {

constexpr int kMaxDepth = 64;  // nested sub-graphs; stops hostile texts

class Parser {
 public:
  Parser(std::string_view text, OpTable ops) : text_(text), ops_(ops) {}

  Graph whole() {
    Graph g = graph(0);
    skip_space();
    require(at_ == text_.size(), "expected the end of the text");
    return g;
  }

 private:
  [[noreturn]] void fail(std::string_view what, ErrorKind kind = ErrorKind::value) const {
    std::size_t line = 1;
    for (std::size_t i = 0; i < at_ && i < text_.size(); ++i) line += text_[i] == '\n';
    std::string_view rest = text_.substr(std::min(at_, text_.size()));
    rest = rest.substr(0, std::min(rest.find('\n'), std::size_t{40}));
    throw UserError(kind,
                    fmt::format("parse: line {}: {}, found '{}'", line, what, rest));
  }
  void require(bool ok, std::string_view what) const {
    if (!ok) fail(what);
  }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])))
      ++at_;
  }
  bool eat(std::string_view token) {
    skip_space();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!eat(token)) fail(fmt::format("expected '{}'", token));
  }
  bool peek(char c) {
    skip_space();
    return at_ < text_.size() && text_[at_] == c;
  }
  std::string_view word() {
    skip_space();
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    return text_.substr(begin, at_ - begin);
  }
  bool eat_word(std::string_view w) {
    const std::size_t before = at_;
    if (word() == w) return true;
    at_ = before;
    return false;
  }

  // Everything a number may be made of, "nan" and "inf" included.
  std::string_view number_token() {
    skip_space();
    const std::size_t begin = at_;
    if (at_ < text_.size() && text_[at_] == '-') ++at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool exponent_sign = (c == '+' || c == '-') && text_[at_ - 1] == 'e';
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && !exponent_sign)
        break;
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }
  std::int64_t to_integer(std::string_view token) const {
    std::int64_t v = 0;
    const auto r = std::from_chars(token.data(), token.data() + token.size(), v);
    require(r.ec == std::errc{} && r.ptr == token.data() + token.size(),
            fmt::format("'{}' is not an integer", token));
    return v;
  }
  double to_real(std::string_view token) const {
    if (token == "nan") return std::numeric_limits<double>::quiet_NaN();
    double v = 0;
    const auto r = std::from_chars(token.data(), token.data() + token.size(), v);
    require(r.ec == std::errc{} && r.ptr == token.data() + token.size(),
            fmt::format("'{}' is not a number", token));
    return v;
  }

  ValueId value_ref() {
    expect("%");
    const std::int64_t i = to_integer(number_token());
    const auto it = names_->find(i);
    require(it != names_->end(), fmt::format("value %{} is not defined here", i));
    return it->second;
  }
  ValueId new_value(GraphParts& p, const Type& t) {
    const ValueId id{static_cast<std::uint32_t>(p.types.size())};
    p.types.push_back(t);
    return id;
  }
  void name_value(std::int64_t label, ValueId id) {
    require(names_->emplace(label, id).second,
            fmt::format("%{} is defined twice", label));
  }

  Ints int_list() {
    expect("[");
    Ints out;
    if (eat("]")) return out;
    do out.push_back(to_integer(number_token()));
    while (eat(","));
    expect("]");
    return out;
  }
  Shape shape() {
    const Shape s = int_list();
    try {
      check_shape("shape", s);
    } catch (const UserError& e) {
      fail(e.what(), e.kind());
    }
    return s;
  }
  Type type() {
    const std::string_view name = word();
    const auto d = dtype_from_string(name);
    require(d.has_value(), fmt::format("'{}' is not an element type", name));
    return {*d, shape()};
  }

  std::string text_literal() {
    expect("\"");
    std::string out;
    while (true) {
      require(at_ < text_.size(), "unterminated text");
      char c = text_[at_++];
      if (c == '"') return out;
      if (c == '\\') {
        require(at_ < text_.size(), "unterminated text");
        c = text_[at_++];
        if (c == 'n') c = '\n';
      }
      out += c;
    }
  }

  double element(DType d) {
    const std::string_view token = number_token();
    if (d == DType::boolean) {
      require(token == "true" || token == "false", "expected true or false");
      return token == "true" ? 1 : 0;
    }
    if (d != DType::i32) return to_real(token);
    const std::int64_t v = to_integer(token);
    require(v == static_cast<std::int32_t>(v), fmt::format("{} does not fit i32", v));
    return static_cast<double>(v);
  }
  Array array_literal(DType d) {
    const Type t{d, shape()};
    expect("(");
    if (eat_word("splat")) {
      constexpr std::int64_t kMaxSplat = 1
                                         << 24;  // a short text must not claim gigabytes
      require(t.size() <= kMaxSplat, "a splat literal has at most 2^24 elements");
      const double v = element(d);
      expect(")");
      return full(t.shape, v, d);
    }
    std::vector<double> values;
    if (!peek(')')) do
        values.push_back(element(d));
      while (eat(","));
    expect(")");
    require(static_cast<std::int64_t>(values.size()) == t.size(),
            fmt::format("{} needs {} elements, got {}", to_string(t), t.size(),
                        values.size()));
    return array(t.shape, values, d);
  }

  Attr attribute(int depth) {
    if (peek('"')) return text_literal();
    if (peek('[')) return int_list();
    if (eat("{")) {
      auto g = std::make_shared<const Graph>(graph(depth + 1));
      expect("}");
      return g;
    }
    const std::size_t before = at_;
    if (const auto d = dtype_from_string(word())) {
      if (peek('[')) return array_literal(*d);
      return *d;
    }
    at_ = before;
    const std::string_view token = number_token();
    if (token == "true") return true;
    if (token == "false") return false;
    require(!token.empty(), "expected an attribute value");
    if (token.find_first_of(".enai") == std::string_view::npos) return to_integer(token);
    return to_real(token);
  }
  Attrs attributes(int depth) {
    Attrs attrs;
    if (!eat("{")) return attrs;
    do {
      const std::string name(word());
      require(!name.empty(), "expected an attribute name");
      require(!attrs.has(name), fmt::format("attribute '{}' is given twice", name));
      expect("=");
      attrs.set(name, attribute(depth));
    } while (eat(","));
    expect("}");
    return attrs;
  }

  // Lists of either kind look the same: the op says which one it wants.
  void take_indices(const OpDef& op, Attrs& attrs) {
    for (const AttrSpec& spec : op.attrs) {
      const Attr* a = attrs.find(spec.name);
      if (spec.kind != AttrKind::indices || !a || kind_of(*a) != AttrKind::ints) continue;
      attrs.set(std::string(spec.name), IndexList(std::get<Ints>(*a)));
    }
  }

  struct Declared {
    std::int64_t label;
    std::optional<Type> type;
  };
  std::vector<Declared> declarations() {
    std::vector<Declared> out;
    do {
      expect("%");
      Declared d{to_integer(number_token()), {}};
      if (eat(":")) d.type = type();
      out.push_back(d);
    } while (eat(","));
    return out;
  }

  void node(GraphParts& p, int depth) {
    const std::vector<Declared> outs = declarations();
    expect("=");
    const std::string_view name = word();
    const OpDef* op = find_op(ops_, name);
    require(op, fmt::format("unknown op '{}'", name));
    Node n{.op = op, .attrs = attributes(depth)};
    take_indices(*op, n.attrs);
    std::vector<Type> in;
    while (peek('%') && !next_is_definition()) {
      n.inputs.push_back(value_ref());
      in.push_back(p.types[n.inputs.back().index]);
    }
    const std::vector<Type> types = inferred(*op, in, n.attrs);
    require(types.size() == outs.size(), fmt::format("{} gives {} outputs, {} are named",
                                                     name, types.size(), outs.size()));
    for (std::size_t i = 0; i < outs.size(); ++i) {
      if (outs[i].type && *outs[i].type != types[i])
        fail(fmt::format("%{} is {}, but {} gives {}", outs[i].label,
                         to_string(*outs[i].type), name, to_string(types[i])));
      n.outputs.push_back(new_value(p, types[i]));
      name_value(outs[i].label, n.outputs.back());
    }
    p.nodes.push_back(std::move(n));
  }
  std::vector<Type> inferred(const OpDef& op, std::span<const Type> in,
                             const Attrs& attrs) {
    try {
      return infer_types(op, in, attrs);
    } catch (const UserError& e) {
      fail(e.what(), e.kind());
    }
  }
  // After an input list: does the next "%n" begin the next definition ("%n =", "%n:",
  // "%n,")?
  bool next_is_definition() {
    const std::size_t before = at_;
    ++at_;
    number_token();
    const bool yes = peek('=') || peek(':') || peek(',');
    at_ = before;
    return yes;
  }

  Graph graph(int depth) {
    require(depth < kMaxDepth, "sub-graphs are nested too deeply");
    std::map<std::int64_t, ValueId> names;
    std::map<std::int64_t, ValueId>* outer = names_;
    names_ = &names;
    GraphParts p;
    if (!eat_word("in")) fail("expected 'in'");
    while (peek('%') && !next_is_node()) {
      expect("%");
      const std::int64_t label = to_integer(number_token());
      expect(":");
      p.inputs.push_back(new_value(p, type()));
      name_value(label, p.inputs.back());
    }
    while (peek('%')) node(p, depth);
    if (!eat_word("out")) fail("expected 'out' or a node");
    while (peek('%')) p.outputs.push_back(value_ref());
    names_ = outer;
    return Graph(std::move(p));
  }
  // Inputs are "%n:type" followed by anything but "=" or ",".
  bool next_is_node() {
    const std::size_t before = at_;
    ++at_;
    number_token();
    bool yes = true;
    if (eat(":")) {
      word();
      if (peek('[')) {
        const std::size_t close = text_.find(']', at_);
        at_ = close == std::string_view::npos ? text_.size() : close + 1;
      }
      yes = peek('=') || peek(',');
    }
    at_ = before;
    return yes;
  }

  std::string_view text_;
  OpTable ops_;
  std::size_t at_ = 0;
  std::map<std::int64_t, ValueId>* names_ = nullptr;
};

}  // namespace

Graph parse(std::string_view text, OpTable ops) { return Parser(text, ops).whole(); }

}  // namespace braintrace
