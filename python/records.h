// SPDX-License-Identifier: Apache-2.0
#pragma once
// Plain data in Python: records are equal, pickled and copied field by field, and have no
// hash.
#include "convert.h"
#include <fmt/format.h>

#include "braintrace/base/error.h"

namespace braintrace::python {

// UserError unless the pickled fields are as many as the record has.
template <class Record>
void require_fields(const py::tuple& t, std::size_t count) {
  BT_REQUIRE_KIND(
      t.size() == count, ErrorKind::type,
      fmt::format(
          "pickle: {} has {} fields, got {}",
          py::str(py::type::of<Record>().attr("__name__")).template cast<std::string>(),
          count, t.size()));
}

// `fields`: the tuple of a record, `make`: the record of a tuple.
template <class Record, class... More, class Fields, class Make>
void def_as_tuple(py::class_<Record, More...>& type, Fields fields, Make make) {
  type.def(py::pickle(fields, make));
  type.def(
      "__eq__",
      [fields](const Record& a, const Record& b) { return fields(a).equal(fields(b)); },
      py::is_operator());
}

template <class Record, class... More, class... Field>
void def_record(py::class_<Record, More...>& type, Field Record::*... field) {
  def_as_tuple(
      type, [=](const Record& r) { return py::make_tuple(r.*field...); },
      [=](const py::tuple& t) {
        require_fields<Record>(t, sizeof...(field));
        Record r;
        std::size_t at = 0;
        ((r.*field = t[at++].template cast<Field>()), ...);
        return r;
      });
}

}  // namespace braintrace::python
