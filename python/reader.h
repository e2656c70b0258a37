// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of a Python call, read one by one in their order: by position or by name. The
// same walk, with no call at all, gives the signature for the documentation.
#include <optional>
#include <string>
#include <vector>

#include "bindings.h"
#include "made.h"

#include "braintrace/model/module.h"
#include "braintrace/nn/activation.h"
#include "braintrace/nn/coefficient.h"
#include "braintrace/nn/conv.h"
#include "braintrace/nn/surrogate.h"
#include "braintrace/nn/synapse_output.h"
#include "braintrace/ops/ops.h"

namespace braintrace::python {

// A Python object for a way to start a parameter.
struct NamedInitializer {
  Initializer f;
  Made made;
};

class Reader {
 public:
  Reader(std::string who, py::args args, py::kwargs kwargs);
  // Reads nothing; done() throws Described.
  struct Described {
    std::string signature;  // "(size, R=1.0, ...)"
  };
  explicit Reader(std::string who);

  // Without a default.
  std::int64_t integer(const char* name);  // an int, or a sequence of one
  double real(const char* name);
  Shape shape(const char* name);
  py::object object(const char* name);
  Module* module(const char* name);  // kept alive by what own() returns

  // All that is left: by position and by name.
  std::pair<py::tuple, py::dict> rest(const char* name);

  // With one: the field's present value. Numbers are never NaN.
  void take(const char* name, double& field);
  void take(const char* name, bool& field);
  void take(const char* name, std::int64_t& field);
  void take(const char* name, std::string& field);
  void take(const char* name, Ints& field);
  void take(const char* name, std::optional<std::int64_t>& field);
  void take(const char* name, std::optional<double>& field);
  void take(const char* name, std::optional<Array>& field);
  void take(const char* name, Initializer& field);
  void take_or_none(const char* name, Initializer& field);  // None: no such parameter
  void take(const char* name, nn::Activation& field);
  void take(const char* name, nn::Coefficient& field);
  void take(const char* name, nn::Surrogate& field);
  void take(const char* name, nn::PerAxis& field);
  void take(const char* name, nn::Padding& field);
  void take(const char* name, std::shared_ptr<Module>& field);
  void take(const char* name, py::object& field);

  // TypeError when something was not read.
  void done();

  // The new layer, which keeps every module alive that was read.
  template <class M, class... A>
  std::shared_ptr<Module> own(A&&... args) {
    auto m = std::make_shared<M>(std::forward<A>(args)...);
    auto kept = std::make_shared<
        std::pair<std::vector<std::shared_ptr<void>>, std::shared_ptr<M>>>(kept_, m);
    return {kept, m.get()};
  }

 private:
  std::optional<py::object> next(const char* name, const std::string& default_text);
  [[noreturn]] void refuse(const char* name, const char* wanted, py::handle found,
                           ErrorKind kind = ErrorKind::type) const;
  // UserError, naming the argument, unless Python's object is a T.
  template <class T>
  T as(const char* name, const char* wanted, const py::object& o) const;
  Shape integers(const char* name, const py::object& o) const;
  Shape sizes(const char* name, const py::object& o) const;  // none of them negative
  double number(const char* name, const char* wanted, const py::object& o) const;
  Array finite_array(const char* name, const char* wanted, const py::object& o) const;
  Initializer initializer(const char* name, const py::object& o) const;
  // What f() gives; its UserErrors start with the name of the argument.
  template <class F>
  auto named(const char* name, const F& f) const;
  py::object required(const char* name);

  std::string who_;
  py::args args_;
  py::kwargs kwargs_;
  std::size_t position_ = 0;
  std::size_t named_ = 0;
  std::string signature_;
  bool describing_ = false;
  std::vector<std::shared_ptr<void>> kept_;
};

// A number, values per unit, or a function (key, shape, dtype) -> array.
Initializer to_initializer(py::handle h);

}  // namespace braintrace::python
