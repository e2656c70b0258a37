// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/prepared_grad.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "braintrace/train/grad_driver_impl.h"

namespace braintrace {

struct PreparedGrad::Impl {
  Impl(Learner& learner, TracedFn loss, const GradOptions& options, std::int64_t length)
      : use(learner.use_),
        driver(learner, std::move(loss), options, length, "PreparedGrad"),
        borrows(learner.options().executor == ExecutorKind::plan) {}

  std::shared_ptr<LearnerUse> use;
  GradDriver driver;
  GradDriver::Fetch fetch;
  std::vector<Shape> shapes;
  const std::vector<Array>* sequences = nullptr;  // of the call that runs
  std::vector<Array> packed;                      // where they were not
  // Plans copy what they keep, so that a window may be a place in the caller's memory.
  bool borrows;
  std::shared_ptr<void> owner = std::make_shared<int>(0);

  void check(const std::vector<Array>& given) const;
  void read(const std::vector<Array>& given);
  void put_rows(std::int64_t t, std::int64_t count, bool stacked,
                std::vector<Array>& args);

 private:
  // What `count` rows of a sequence look like, made once: to be pointed at some.
  const Array& part(std::size_t sequence, std::int64_t count, bool stacked);
  std::map<std::tuple<std::size_t, std::int64_t, bool>, Array> parts_;
};

void PreparedGrad::Impl::check(const std::vector<Array>& given) const {
  BT_REQUIRE(given.size() == shapes.size(),
             fmt::format("PreparedGrad: {} sequences were prepared, got {}",
                         shapes.size(), given.size()));
  for (std::size_t i = 0; i < given.size(); ++i)
    BT_REQUIRE(
        given[i].shape() == shapes[i],
        fmt::format("PreparedGrad: sequence {} must have the prepared shape {}, got {}",
                    i, to_string(shapes[i]), to_string(given[i].shape())));
}

void PreparedGrad::Impl::read(const std::vector<Array>& given) {
  sequences = &given;
  if (std::all_of(given.begin(), given.end(),
                  [](const Array& a) { return a.is_contiguous(); }))
    return;
  packed.clear();
  for (const Array& s : given) packed.push_back(s.contiguous());
  sequences = &packed;
}

const Array& PreparedGrad::Impl::part(std::size_t sequence, std::int64_t count,
                                      bool stacked) {
  const std::tuple key(sequence, count, stacked);
  const Array& s = (*sequences)[sequence];
  const auto known = parts_.find(key);
  if (known != parts_.end() && known->second.dtype() == s.dtype()) return known->second;
  Shape shape = s.shape();
  shape[0] = count;
  if (!stacked) shape.erase(shape.begin());
  void* first = const_cast<void*>(s.raw());
  return parts_[key] = Array::borrowed(s.dtype(), shape, first, owner);
}

void PreparedGrad::Impl::put_rows(std::int64_t t, std::int64_t count, bool stacked,
                                  std::vector<Array>& args) {
  args.resize(sequences->size());
  for (std::size_t i = 0; i < args.size(); ++i) {
    const Array& s = (*sequences)[i];
    if (!borrows) {
      args[i] = stacked ? rows(s, t, count).contiguous() : row(s, t).contiguous();
      continue;
    }
    const std::size_t row_bytes = s.num_bytes() / static_cast<std::size_t>(s.shape()[0]);
    void* at = const_cast<std::byte*>(static_cast<const std::byte*>(s.raw()) +
                                      static_cast<std::size_t>(t) * row_bytes);
    args[i] = part(i, count, stacked);
    args[i].point_to(at);
  }
}

PreparedGrad::PreparedGrad(Learner& learner, TracedFn loss,
                           const std::vector<Array>& sequences,
                           const GradOptions& options)
    : impl_(std::make_unique<Impl>(learner, std::move(loss), options,
                                   common_length(sequences, "prepare"))) {
  for (const Array& s : sequences) impl_->shapes.push_back(s.shape());
  impl_->fetch = [this_ = impl_.get()](std::int64_t t, std::int64_t count, bool stacked,
                                       std::vector<Array>& args) {
    this_->put_rows(t, count, stacked, args);
  };
  const LearnerUse::Claim mine(*impl_->use, "prepare");
  impl_->read(sequences);
  impl_->driver.prepare(impl_->fetch);
}

PreparedGrad::~PreparedGrad() = default;
PreparedGrad::PreparedGrad(PreparedGrad&&) noexcept = default;

bool PreparedGrad::fits(const std::vector<Array>& sequences) const {
  return std::equal(sequences.begin(), sequences.end(), impl_->shapes.begin(),
                    impl_->shapes.end(),
                    [](const Array& a, const Shape& s) { return a.shape() == s; });
}

void PreparedGrad::set_mask(const std::optional<Array>& mask) {
  const LearnerUse::Claim mine(*impl_->use, "PreparedGrad");
  impl_->driver.set_mask(mask);
}

void PreparedGrad::set_modulators(const std::optional<Array>& modulators) {
  const LearnerUse::Claim mine(*impl_->use, "PreparedGrad");
  impl_->driver.set_modulators(modulators);
}

GradResult PreparedGrad::grad(const std::vector<Array>& sequences) {
  GradResult result;
  grad_into(sequences, result);
  return result;
}

void PreparedGrad::grad_into(const std::vector<Array>& sequences, GradResult& result) {
  const LearnerUse::Claim mine(*impl_->use, "PreparedGrad");
  impl_->check(sequences);
  impl_->read(sequences);
  impl_->driver.run(impl_->fetch, result);
}

PreparedGrad Learner::prepare(TracedFn loss, const std::vector<Array>& sequences,
                              const GradOptions& options) {
  return PreparedGrad(*this, std::move(loss), sequences, options);
}

PreparedGrad Learner::prepare(PairLoss loss, const Array& xs, const Array& ys,
                              const GradOptions& options) {
  return prepare(
      [loss = std::move(loss)](const Values& in) {
        return LossResult{.loss = loss(in[0], in[1]), .results = {}};
      },
      std::vector{xs, ys}, options);
}

}  // namespace braintrace
