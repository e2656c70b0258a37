// SPDX-License-Identifier: Apache-2.0
// Names as identifiers of C and C++.
#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "braintrace/io/export_impl.h"

namespace braintrace::internal {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Of C, C++ and their compilers, up to C++20 and C11.
constexpr std::string_view keywords[] = {"_Alignas",
                                         "_Alignof",
                                         "_Atomic",
                                         "_Bool",
                                         "_Complex",
                                         "_Generic",
                                         "_Imaginary",
                                         "_Noreturn",
                                         "_Static_assert",
                                         "_Thread_local",
                                         "alignas",
                                         "alignof",
                                         "and",
                                         "and_eq",
                                         "asm",
                                         "auto",
                                         "bitand",
                                         "bitor",
                                         "bool",
                                         "break",
                                         "case",
                                         "catch",
                                         "char",
                                         "char16_t",
                                         "char32_t",
                                         "char8_t",
                                         "class",
                                         "co_await",
                                         "co_return",
                                         "co_yield",
                                         "compl",
                                         "concept",
                                         "const",
                                         "const_cast",
                                         "consteval",
                                         "constexpr",
                                         "constinit",
                                         "continue",
                                         "decltype",
                                         "default",
                                         "delete",
                                         "do",
                                         "double",
                                         "dynamic_cast",
                                         "else",
                                         "enum",
                                         "explicit",
                                         "export",
                                         "extern",
                                         "false",
                                         "float",
                                         "for",
                                         "friend",
                                         "goto",
                                         "if",
                                         "inline",
                                         "int",
                                         "long",
                                         "mutable",
                                         "namespace",
                                         "new",
                                         "noexcept",
                                         "not",
                                         "not_eq",
                                         "nullptr",
                                         "operator",
                                         "or",
                                         "or_eq",
                                         "private",
                                         "protected",
                                         "public",
                                         "register",
                                         "reinterpret_cast",
                                         "requires",
                                         "restrict",
                                         "return",
                                         "short",
                                         "signed",
                                         "sizeof",
                                         "static",
                                         "static_assert",
                                         "static_cast",
                                         "std",
                                         "struct",
                                         "switch",
                                         "template",
                                         "this",
                                         "thread_local",
                                         "throw",
                                         "true",
                                         "try",
                                         "typedef",
                                         "typeid",
                                         "typename",
                                         "typeof",
                                         "union",
                                         "unsigned",
                                         "using",
                                         "virtual",
                                         "void",
                                         "volatile",
                                         "wchar_t",
                                         "while",
                                         "xor",
                                         "xor_eq"};

// Macros and types of the headers it includes, or of those around it.
constexpr std::string_view macros[] = {
    "EOF",    "HUGE_VAL", "HUGE_VALF", "HUGE_VALL", "I",       "INFINITY",
    "NAN",    "NULL",     "assert",    "errno",     "int32_t", "linux",
    "stderr", "stdin",    "stdout",    "uint32_t",  "unix"};

// Functions that C++ has outside of std too; of mathematics also with f and l behind.
constexpr std::string_view mathematics[] = {
    "acos",       "acosh",  "asin",      "asinh",  "atan",  "atan2",     "atanh",
    "cbrt",       "ceil",   "copysign",  "cos",    "cosh",  "erf",       "erfc",
    "exp",        "exp2",   "expm1",     "fabs",   "fdim",  "floor",     "fma",
    "fmax",       "fmin",   "fmod",      "frexp",  "hypot", "ilogb",     "ldexp",
    "lgamma",     "llrint", "llround",   "log",    "log10", "log1p",     "log2",
    "logb",       "lrint",  "lround",    "modf",   "nan",   "nearbyint", "nextafter",
    "nexttoward", "pow",    "remainder", "remquo", "rint",  "round",     "scalbln",
    "scalbn",     "sin",    "sinh",      "sqrt",   "tan",   "tanh",      "tgamma",
    "trunc",      "gamma",  "j0",        "j1",     "jn",    "y0",        "y1",
    "yn"};
constexpr std::string_view functions[] = {
    "abort",   "abs",     "atexit", "atof",    "atoi",   "atol",    "bsearch", "calloc",
    "clock",   "div",     "exit",   "fclose",  "fopen",  "fprintf", "fputs",   "fread",
    "free",    "fwrite",  "getenv", "index",   "labs",   "ldiv",    "main",    "malloc",
    "memchr",  "memcmp",  "memcpy", "memmove", "memset", "printf",  "putchar", "puts",
    "qsort",   "raise",   "rand",   "realloc", "remove", "rename",  "scanf",   "signal",
    "signgam", "sprintf", "srand",  "strcat",  "strchr", "strcmp",  "strcpy",  "strlen",
    "strtod",  "strtol",  "system", "time",    "tmpfile"};

template <std::size_t n>
bool holds(const std::string_view (&words)[n], std::string_view word) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

}  // namespace

bool is_identifier(std::string_view s) {
  return !s.empty() && !is_digit(s[0]) && std::all_of(s.begin(), s.end(), is_word);
}

bool is_keyword(std::string_view word) { return holds(keywords, word); }

bool is_library_name(std::string_view word) {
  if (holds(functions, word) || holds(macros, word) || holds(mathematics, word))
    return true;
  return (word.ends_with('f') || word.ends_with('l')) &&
         holds(mathematics, word.substr(0, word.size() - 1));
}

FieldNames::FieldNames()
    : taken_({"Learner", "index_errors", "init", "learning_rate", "scratch_bool",
              "scratch_f32", "scratch_f64", "scratch_i32", "self", "step"}) {}

std::string FieldNames::field(const std::string& name) {
  std::string text;
  for (const char c : name) text += is_word(c) ? c : '_';
  if (text.empty() || is_digit(text[0])) text = "_" + text;
  if (text.starts_with("bt_")) text += "_";  // helpers of the step end otherwise
  std::string unique = text;
  for (int n = 2;
       is_keyword(unique) || holds(macros, unique) || !taken_.insert(unique).second; ++n)
    unique = fmt::format("{}_{}", text, n);
  return unique;
}

}  // namespace braintrace::internal

namespace braintrace {

bool is_field_name(const std::string& name) {
  return internal::is_identifier(name) && internal::FieldNames().field(name) == name;
}

}  // namespace braintrace
