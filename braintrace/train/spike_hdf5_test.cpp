// SPDX-License-Identifier: Apache-2.0
// On small files made here with the HDF5 library.
#include "braintrace/train/spike_hdf5.h"

#include <filesystem>

#include <doctest/doctest.h>

#ifdef BRAINTRACE_HDF5
#include <hdf5.h>
#endif

namespace braintrace {

TEST_CASE("spikes are binned by time and unit") {
  const SpikeTrain train{{0.0, 0.009, 0.011, 5.0}, {1, 1, 0, 2}, 4};
  CHECK(bin_spikes(train, {.steps = 2, .units = 3}) == array({2, 3}, {0, 2, 0, 1, 0, 0}));
  CHECK_THROWS_WITH_AS(bin_spikes(train, {.steps = 2, .units = 2}),
                       "bin_spikes: unit 2 lies outside [0, 2)", UserError);
  CHECK_THROWS_AS(bin_spikes({{0.0}, {}, 0}), UserError);
}

#ifndef BRAINTRACE_HDF5

TEST_CASE("without HDF5 reading is refused with the way out") {
  CHECK_FALSE(has_hdf5());
  CHECK_THROWS_WITH_AS(read_spike_trains("x.h5"), doctest::Contains("libhdf5-dev"),
                       UserError);
}

#else

namespace {

struct File {
  std::filesystem::path path;
  hid_t id;
  explicit File(const std::string& name)
      : path(std::filesystem::temp_directory_path() / name),
        id(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) {
    H5Gclose(H5Gcreate2(id, "spikes", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  }
  ~File() { std::filesystem::remove(path); }
  void close() { H5Fclose(id); }

  template <class T>
  void lists(const char* name, hid_t element, std::vector<std::vector<T> > values) {
    std::vector<hvl_t> raw;
    for (auto& v : values) raw.push_back({v.size(), v.data()});
    write(name, H5Tvlen_create(element), raw.data(), values.size());
  }
  void write(const char* name, hid_t type, const void* data, hsize_t n) {
    const hid_t space = H5Screate_simple(1, &n, nullptr);
    const hid_t set =
        H5Dcreate2(id, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
    H5Dclose(set);
    H5Sclose(space);
  }
};

// As the published files: half-precision-like floats, small integers.
void fill(File& f, std::vector<std::vector<std::uint16_t> > units) {
  f.lists<float>("spikes/times", H5T_NATIVE_FLOAT, {{0.25F, 0.5F}, {}, {1}});
  f.lists<std::uint16_t>("spikes/units", H5T_NATIVE_UINT16, std::move(units));
  const std::uint16_t labels[] = {3, 0, 19};
  f.write("labels", H5T_NATIVE_UINT16, labels, 3);
  f.close();
}

}  // namespace

TEST_CASE("spike trains are read with their labels, all or a part") {
  CHECK(has_hdf5());
  File f("braintrace_spikes.h5");
  fill(f, {{10, 699}, {}, {5}});
  const auto all = read_spike_trains(f.path.string());
  REQUIRE(all.size() == 3);
  CHECK(all[0].times == std::vector<double>{0.25, 0.5});
  CHECK(all[0].units == std::vector<std::int32_t>{10, 699});
  CHECK(all[1].times.empty());
  CHECK(all[2].label == 19);
  const auto part = read_spike_trains(f.path.string(), 2, 5);
  REQUIRE(part.size() == 1);
  CHECK(part[0].units == std::vector<std::int32_t>{5});
  CHECK(read_spike_trains(f.path.string(), 3).empty());
  CHECK_THROWS_AS(read_spike_trains(f.path.string(), 4), UserError);
}

TEST_CASE("malformed spike files are refused") {
  CHECK_THROWS_AS(read_spike_trains("/no/such/file.h5"), UserError);
  File unequal("braintrace_unequal.h5");
  fill(unequal, {{10}, {}, {5}});
  CHECK_THROWS_WITH_AS(read_spike_trains(unequal.path.string()),
                       "read_spike_trains: sample 0 has 2 times and 1 units", UserError);
  File flat("braintrace_flat.h5");
  const float times[] = {1, 2};
  flat.write("spikes/times", H5T_NATIVE_FLOAT, times, 2);
  flat.write("labels", H5T_NATIVE_FLOAT, times, 2);
  flat.close();
  CHECK_THROWS_WITH_AS(read_spike_trains(flat.path.string()),
                       "read_spike_trains: 'spikes/times' must hold lists", UserError);
  File empty("braintrace_empty.h5");
  empty.close();
  CHECK_THROWS_AS(read_spike_trains(empty.path.string()), UserError);
}

#endif

}  // namespace braintrace
