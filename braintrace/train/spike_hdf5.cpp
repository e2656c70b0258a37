// SPDX-License-Identifier: Apache-2.0
// Reads variable-length spike lists through the HDF5 C library, when it is there.
#include "braintrace/train/spike_hdf5.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#ifdef BRAINTRACE_HDF5
#include <hdf5.h>
#endif

namespace braintrace {

Array bin_spikes(const SpikeTrain& train, const BinOptions& o) {
  BT_REQUIRE(
      o.steps > 0 && o.units > 0 && o.step > 0,
      fmt::format("bin_spikes: steps, units and step must be positive, got {}, {}, "
                  "{}",
                  o.steps, o.units, o.step));
  BT_REQUIRE(train.times.size() == train.units.size(),
             "bin_spikes: times and units must have equal lengths");
  Array out(DType::f32, {o.steps, o.units});
  float* p = out.mutable_data<float>();
  for (std::size_t i = 0; i < train.times.size(); ++i) {
    const std::int32_t unit = train.units[i];
    BT_REQUIRE(unit >= 0 && unit < o.units,
               fmt::format("bin_spikes: unit {} lies outside [0, {})", unit, o.units));
    const double t = std::floor(train.times[i] / o.step);
    if (t >= 0 && t < static_cast<double>(o.steps))
      p[static_cast<std::int64_t>(t) * o.units + unit] += 1;
  }
  return out;
}

#ifndef BRAINTRACE_HDF5

bool has_hdf5() { return false; }

std::vector<SpikeTrain> read_spike_trains(const std::string& path, std::int64_t,
                                          std::int64_t) {
  throw UserError(
      ErrorKind::not_supported,
      fmt::format("read_spike_trains: cannot read '{}': this build has no HDF5; "
                  "install libhdf5-dev and configure again",
                  path));
}

#else

namespace {

// Closes what it holds.
struct Handle {
  hid_t id;
  herr_t (*close)(hid_t);
  Handle(hid_t i, herr_t (*c)(hid_t), const std::string& what) : id(i), close(c) {
    BT_REQUIRE_KIND(id >= 0, ErrorKind::runtime,
                    "read_spike_trains: cannot open " + what);
  }
  ~Handle() { close(id); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
};

// The library prints its errors unless told not to; the library never prints.
struct Quiet {
  H5E_auto2_t function = nullptr;
  void* data = nullptr;
  Quiet() {
    H5Eget_auto2(H5E_DEFAULT, &function, &data);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Quiet() { H5Eset_auto2(H5E_DEFAULT, function, data); }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
};

std::int64_t length_of(hid_t dataset, const std::string& name) {
  const Handle space(H5Dget_space(dataset), H5Sclose, name);
  BT_REQUIRE(H5Sget_simple_extent_ndims(space.id) == 1,
             fmt::format("read_spike_trains: '{}' must have one axis", name));
  hsize_t n = 0;
  H5Sget_simple_extent_dims(space.id, &n, nullptr);
  return static_cast<std::int64_t>(n);
}

struct Range {
  std::int64_t first, count;
};

void read_range(hid_t dataset, hid_t memory_type, Range range, void* out,
                const std::string& name) {
  const Handle file_space(H5Dget_space(dataset), H5Sclose, name);
  const hsize_t start = static_cast<hsize_t>(range.first),
                count = static_cast<hsize_t>(range.count);
  H5Sselect_hyperslab(file_space.id, H5S_SELECT_SET, &start, nullptr, &count, nullptr);
  const Handle memory_space(H5Screate_simple(1, &count, nullptr), H5Sclose, name);
  const herr_t status =
      H5Dread(dataset, memory_type, memory_space.id, file_space.id, H5P_DEFAULT, out);
  BT_REQUIRE_KIND(status >= 0, ErrorKind::runtime,
                  fmt::format("read_spike_trains: cannot read '{}'", name));
}

// One list per sample. The type check keeps the library from misreading fixed-size data.
template <class T>
std::vector<std::vector<T> > read_lists(hid_t file, const std::string& name,
                                        hid_t element, Range range) {
  const Handle dataset(H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose,
                       "'" + name + "'");
  const Handle stored(H5Dget_type(dataset.id), H5Tclose, name);
  BT_REQUIRE(H5Tget_class(stored.id) == H5T_VLEN,
             fmt::format("read_spike_trains: '{}' must hold lists", name));
  BT_REQUIRE(length_of(dataset.id, name) >= range.first + range.count,
             fmt::format("read_spike_trains: '{}' is shorter than labels", name));
  const Handle type(H5Tvlen_create(element), H5Tclose, name);
  std::vector<hvl_t> raw(static_cast<std::size_t>(range.count), hvl_t{0, nullptr});
  read_range(dataset.id, type.id, range, raw.data(), name);
  std::vector<std::vector<T> > lists;
  for (const hvl_t& list : raw) {
    const T* p = static_cast<const T*>(list.p);
    lists.emplace_back(p, p + list.len);
    H5free_memory(list.p);
  }
  return lists;
}

}  // namespace

bool has_hdf5() { return true; }

std::vector<SpikeTrain> read_spike_trains(const std::string& path, std::int64_t first,
                                          std::int64_t limit) {
  const Quiet quiet;
  const Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose,
                    "'" + path + "'");
  const Handle labels(H5Dopen2(file.id, "labels", H5P_DEFAULT), H5Dclose, "'labels'");
  const std::int64_t total = length_of(labels.id, "labels");
  BT_REQUIRE(
      first >= 0 && first <= total,
      fmt::format("read_spike_trains: first must lie in [0, {}], got {}", total, first));
  const std::int64_t left = total - first;
  const Range range{first, limit < 0 ? left : std::min(limit, left)};
  if (range.count == 0) return {};
  std::vector<std::int32_t> classes(static_cast<std::size_t>(range.count));
  read_range(labels.id, H5T_NATIVE_INT32, range, classes.data(), "labels");
  auto times = read_lists<double>(file.id, "spikes/times", H5T_NATIVE_DOUBLE, range);
  auto units = read_lists<std::int32_t>(file.id, "spikes/units", H5T_NATIVE_INT32, range);

  std::vector<SpikeTrain> out;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    BT_REQUIRE(times[i].size() == units[i].size(),
               fmt::format("read_spike_trains: sample {} has {} times and {} units",
                           first + static_cast<std::int64_t>(i), times[i].size(),
                           units[i].size()));
    for (const std::int32_t u : units[i])
      BT_REQUIRE(u >= 0, fmt::format("read_spike_trains: unit {} is negative", u));
    out.push_back({std::move(times[i]), std::move(units[i]), classes[i]});
  }
  return out;
}

#endif

}  // namespace braintrace
