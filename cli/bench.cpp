// SPDX-License-Identifier: Apache-2.0
#include "bench.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>

#include "allocations.h"
#include "bench_models.h"
#include "output.h"
#include "run_request.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "braintrace/algo/algorithm_names.h"
#include "braintrace/algo/synthetic_gradient.h"
#include "braintrace/nn/model_registry.h"
#include "braintrace/run/product_bound.h"
#include "braintrace/run/thread_pool.h"
#include "braintrace/train/learner.h"
#include "braintrace/train/losses.h"
#include "braintrace/train/optimizers.h"
#include "braintrace/train/prepared_grad.h"

namespace braintrace::cli {
namespace {

constexpr const char* kBenchFooter =
    "Runs are timed after two that are not: the first compiles, the second fills caches. "
    "The\n"
    "last line is one JSON object; step_us_min is the fastest run, gemm_bound_us the "
    "time "
    "its\n"
    "matrix products take alone. With --repeat 0 the program ends with the first "
    "gradient "
    "of the\n"
    "sequence; first_gradient_ms counts from when the program was loaded.\n"
    "Examples:\n"
    "  braintrace bench --model gru --n-rec 256 --batch 16\n"
    "  braintrace bench --model lif --algorithm pp_prop --mode online --steps 1000\n"
    "  braintrace bench --model rnn --algorithm bptt --threads 1 --json\n"
    "  braintrace bench --repeat 0 --json            (how long until it learns)\n"
    "  braintrace bench --plan                       (what every kernel takes)\n";

// Nothing is compiled, allocated or read for the first time in later runs.
constexpr std::int64_t kWarmUps = 2;

using Clock = std::chrono::steady_clock;

const Clock::time_point kLoaded = Clock::now();  // before main()

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double cpu_seconds() {  // of the process: other programs on the machine do not count
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double peak_rss_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) return std::atof(line.c_str() + 6) / 1024;
  return 0;
}

// What the timed runs note down must not count as theirs.
std::vector<double> room_for(std::int64_t count) {
  std::vector<double> room;
  constexpr std::int64_t kMost = 1 << 20;
  room.reserve(static_cast<std::size_t>(std::min(count, kMost)));
  return room;
}

double percentile(std::vector<double> values, double p) {
  std::sort(values.begin(), values.end());
  const double at = p * static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(at + 0.5)];
}

Algorithm algorithm_of(const BenchRequest& r) {
  if (r.algorithm == "forward") return BPTT{};
  AlgorithmArgs args;
  if (takes_decay(r.algorithm)) args.decay_or_rank = 0.9;
  return algorithm_by_name(r.algorithm, args);
}

LearnerOptions options_of(const BenchRequest& r) {
  LearnerOptions o{.batch_size = r.batch, .seed = 1};
  o.dtype = r.dtype == "f64" ? DType::f64 : DType::f32;
  o.threads = r.threads;
  o.profile = r.plan;
  if (r.compat) o = compat(o);
  set_options(r.set, o.learning, o.graph);
  return o;
}

// What a rule wants from outside: a modulator of one, a predictor that is not trained.
void give_signals(Learner& learner) {
  const LearningSignal signal = learner.config().learning_signal();
  if (signal == LearningSignal::modulatory) learner.set_modulator(ones({}));
  if (signal != LearningSignal::bootstrapped) return;
  std::map<std::int64_t, Shape> shapes;
  for (const HiddenGroup& g : learner.graph().hidden_groups) {
    shapes[g.index] = g.varshape();
    shapes[g.index].push_back(g.num_state());
  }
  learner.set_synthesizer(SyntheticGradient(std::move(shapes), {.scale = 0.1}));
}

// What a mode does with what learns nothing step by step; empty: what it says.
std::string note_of(const BenchRequest& r) {
  if (r.algorithm == "forward" && r.mode == "online")
    return "forward moves no weights: single steps, as in mode stream";
  if (r.algorithm == "bptt" && r.mode != "window")
    return "bptt step by step goes back one step only: a truncated gradient";
  return "";
}

class Bench {
 public:
  explicit Bench(const BenchRequest& r)
      : request_(r),
        options_(options_of(r)),
        xs_(bench_inputs(r, *options_.dtype)),
        ys_(bench_targets(r, *options_.dtype)) {
    Shape example = bench_input(r);
    example.insert(example.begin(), r.batch);
    const auto start = Clock::now();
    model_ = nn::build_model(bench_model(r));
    learner_ = std::make_unique<Learner>(*model_, algorithm_of(r),
                                         std::vector{zeros(example)}, options_);
    compile_s_ = seconds_since(start);
    give_signals(*learner_);
    rate_ = std::make_unique<SpikeRate>(r, *model_, options_, xs_);
    rate_->tune();
  }

  nlohmann::ordered_json run() {
    if (request_.algorithm == "forward") return forward();
    if (request_.mode == "window") return window();
    if (request_.mode == "online" || request_.mode == "stream") return per_step();
    throw UserError(fmt::format(
        "bench: --mode must be window, online or stream, got '{}'", request_.mode));
  }

  std::string plan() const { return learner_->last_plan(); }

 private:
  PairLoss loss() {
    return [this](const Value& x, const Value& y) { return mse((*learner_)(x), y); };
  }

  // Of the sequence; without timed runs one is enough.
  std::int64_t runs() const {
    return request_.repeat > 0 ? kWarmUps + request_.repeat : 1;
  }

  // None when only the first gradient is asked for: finding them takes as long as that.
  std::vector<ProductShape> timed_products(const Graph& program) const {
    return request_.repeat > 0 ? products_of(program) : std::vector<ProductShape>{};
  }

  // The least CPU time of a step, all threads together, and when the first run was done.
  void note(std::int64_t run, double begin) {
    if (run == 0) first_s_ = seconds_since(kLoaded);
    const double s = (cpu_seconds() - begin) / static_cast<double>(request_.steps);
    if (run >= kWarmUps) cpu_s_ = cpu_s_ == 0 ? s : std::min(cpu_s_, s);
  }

  // Runs of the sequence: seconds per step once warm, and of all before; allocations per
  // step of the last one.
  struct Timed {
    std::vector<double> seconds;
    double warm_up = 0, allocations = 0;
  };
  template <class Run>
  Timed time_runs(const Run& run) {
    Timed t{.seconds = room_for(request_.repeat)};
    const auto steps = static_cast<double>(request_.steps);
    for (std::int64_t i = 0; i < runs(); ++i) {
      const std::int64_t before = allocations_so_far();
      const auto begin = Clock::now();
      const double cpu = cpu_seconds();
      run(i >= kWarmUps);
      const double seconds = seconds_since(begin) / steps;
      note(i, cpu);
      if (i < kWarmUps)
        t.warm_up += seconds;
      else
        t.seconds.push_back(seconds);
      t.allocations = static_cast<double>(allocations_so_far() - before) / steps;
    }
    return t;
  }

  nlohmann::ordered_json report(const Timed& timed,
                                const std::vector<ProductShape>& products,
                                double steps_per_run) {
    const std::vector<double>& step_seconds = timed.seconds;
    nlohmann::ordered_json j;
    j["model"] = request_.model;
    j["algorithm"] = request_.algorithm;
    j["mode"] = request_.mode;
    if (const std::string note = note_of(request_); !note.empty()) j["note"] = note;
    j["n_in"] = request_.n_in;
    j["n_rec"] = request_.n_rec;
    j["n_out"] = request_.n_out;
    j["batch"] = request_.batch;
    j["steps"] = request_.steps;
    j["window"] = window_;
    j["layers"] = request_.layers;
    j["threads"] = request_.threads > 0 ? request_.threads : default_threads();
    j["dtype"] = request_.dtype;
    j["estimator"] = request_.compat ? "compat" : "default";
    j["weight_paths"] = option_value(options_.graph, "weight_paths");
    j["spike_rate"] = rate_->now();  // after the runs: what they ran with
    j["peak_rss_mb"] = peak_rss_mb();
    j["first_gradient_ms"] = first_s_ * 1e3;
    j["compile_ms"] = compile_s_ * 1e3;
    if (step_seconds.empty()) return j;
    const double best = *std::min_element(step_seconds.begin(), step_seconds.end());
    double flops = 0;
    for (const ProductShape& p : products) flops += p.flops() / steps_per_run;
    const double bound = seconds_of_products(products, request_.threads) / steps_per_run;
    j["step_us_min"] = best * 1e6;
    j["step_cpu_us"] = cpu_s_ * 1e6;
    j["step_us_median"] = percentile(step_seconds, 0.5) * 1e6;
    j["allocations_per_step"] = timed.allocations;
    j["gflops"] = best > 0 ? flops / best * 1e-9 : 0;
    j["gemm_bound_us"] = bound * 1e6;
    return j;
  }

  nlohmann::ordered_json window() {
    GradOptions o{.window = request_.window};
    o.carry_traces = false;  // inside the sequence they are, from window to window
    o.reduction = Reduction::sum;
    std::map<const StepProgram*, double> programs;  // of the first sequence: their runs
    o.progress = [&, first = true](std::int64_t done, std::int64_t total) mutable {
      if (first) ++programs[learner_->last_program()];
      first = first && done < total;
      return true;
    };
    const std::vector<Array> data = {xs_, ys_};
    PreparedGrad prepared = learner_->prepare(loss(), xs_, ys_, o);
    GradResult result;
    const Timed timed = time_runs([&](bool) { prepared.grad_into(data, result); });
    // Programs are compiled as windows of their length first come.
    const std::vector<double>& warm = timed.seconds;
    const double best = warm.empty() ? 0 : *std::min_element(warm.begin(), warm.end());
    compile_s_ += static_cast<double>(request_.steps) *
                  std::max(timed.warm_up - static_cast<double>(kWarmUps) * best, 0.0);
    for (const auto& [program, times] : programs)
      window_ = std::max(window_, program->steps);
    std::vector<ProductShape> products;
    for (const auto& [program, times] : programs)
      for (ProductShape p : timed_products(program->graph)) {
        p.times *= times;
        products.push_back(p);
      }
    return report(timed, products, static_cast<double>(request_.steps));
  }

  nlohmann::ordered_json per_step() {
    const std::vector<Array> first = {row(xs_, 0).contiguous(), row(ys_, 0).contiguous()};
    const auto start = Clock::now();
    LossHandle handle = learner_->trace_loss(
        [&](const Values& in) {
          return LossResult{.loss = loss()(in[0], in[1]), .results = {}};
        },
        first);
    compile_s_ += seconds_since(start);
    Optimizer optimizer(SGD{.lr = 1e-4});
    return time_steps(
        [&](const std::vector<Array>& args) {
          if (request_.mode == "online")
            learner_->step_update(args, handle, optimizer);
          else
            learner_->step_grad(args, handle);
        },
        {xs_, ys_}, [&]() -> const Graph& { return handle.graph(); });
  }

  // One call for every step, and how long calls take.
  template <class Call, class Program>
  nlohmann::ordered_json time_steps(const Call& call, const std::vector<Array>& sequences,
                                    const Program& program) {
    std::vector<std::vector<Array>> data(static_cast<std::size_t>(request_.steps));
    for (std::size_t t = 0; t < data.size(); ++t)
      for (const Array& s : sequences)
        data[t].push_back(row(s, static_cast<std::int64_t>(t)).contiguous());
    std::vector<double> latency = room_for(request_.repeat * request_.steps);
    const Timed timed = time_runs([&](bool warm) {
      for (const std::vector<Array>& args : data) {
        const auto begin = Clock::now();
        call(args);
        if (warm) latency.push_back(seconds_since(begin));
      }
    });
    window_ = 1;
    nlohmann::ordered_json j = report(timed, timed_products(program()), 1);
    if (!latency.empty())
      j["latency_us"] = {{"p50", percentile(latency, 0.5) * 1e6},
                         {"p99", percentile(latency, 0.99) * 1e6},
                         {"max", percentile(latency, 1) * 1e6}};
    return j;
  }

  nlohmann::ordered_json forward() {
    const auto program = [&]() -> const Graph& {
      return learner_->last_program()->graph;
    };
    if (request_.mode != "window")
      return time_steps([&](const std::vector<Array>& args) { learner_->step(args); },
                        {xs_}, program);
    const std::vector<Array> sequences = {xs_};
    const EvolveOptions options{.chunk_size = request_.steps};
    const Timed timed =
        time_runs([&](bool) { learner_->etrace_evolve(sequences, options); });
    window_ = request_.steps;
    return report(timed, timed_products(program()),
                  static_cast<double>(learner_->last_program()->steps));
  }

  const BenchRequest& request_;
  LearnerOptions options_;
  Array xs_, ys_;
  std::unique_ptr<Module> model_;
  std::unique_ptr<Learner> learner_;
  std::unique_ptr<SpikeRate> rate_;
  double compile_s_ = 0, cpu_s_ = 0, first_s_ = 0;
  std::int64_t window_ = 0;
};

}  // namespace

CLI::App* add_bench(CLI::App& app, BenchRequest& r) {
  CLI::App* b =
      app.add_subcommand("bench", "time a learning rule on a model of any size");
  b->footer(kBenchFooter);
  b->fallthrough();
  const auto option = [b](const char* name, auto& value, const char* text,
                          const CLI::Validator& check) {
    b->add_option(name, value, text)->check(check)->capture_default_str();
  };
  const CLI::Validator size = whole_number(1, 1 << 24);
  option("--model", r.model, "gru, rnn, lstm, lif, alif or conv",
         one_of({"gru", "rnn", "lstm", "lif", "alif", "conv"}));
  b->add_option("--algorithm", r.algorithm, "a rule by name, bptt, or forward")
      ->capture_default_str();
  option("--mode", r.mode,
         "window (a sequence; traces end with it), online (weights move at every step) "
         "or stream",
         one_of({"window", "online", "stream"}));
  option("--n-in", r.n_in, "inputs (conv: side of the image)", size);
  option("--n-rec", r.n_rec, "recurrent units", size);
  option("--n-out", r.n_out, "outputs", size);
  option("--batch", r.batch, "samples", size);
  option("--steps", r.steps, "length of the sequence", size);
  option("--window", r.window, "steps per window; 0: chosen; --steps: one window",
         whole_number(0, 1 << 24));
  option("--layers", r.layers, "recurrent layers", layer_count());
  add_threads_option(*b, r.threads);
  option("--repeat", r.repeat, "timed runs; 0: only the first gradient",
         whole_number(0, 1 << 24));
  option("--dtype", r.dtype, "element type: f32 or f64", one_of({"f32", "f64"}));
  b->add_flag("--compat", r.compat, "the reference's estimator");
  b->add_option("--set", r.set, "a compile or learning option, name=value (repeatable)");
  b->add_flag("--plan", r.plan, "print the kernels and their times; slows the run");
  b->add_flag("--json", r.json, "only the JSON line");
  return b;
}

std::string bench(const BenchRequest& r) {
  Bench b(r);
  const nlohmann::ordered_json j = b.run();
  std::string text = r.plan ? b.plan() : "";
  if (!r.json && r.repeat == 0)
    text += fmt::format("{} {} {}: first gradient after {:.1f} ms\n", r.model,
                        r.algorithm, r.mode, j["first_gradient_ms"].get<double>());
  else if (!r.json)
    text += fmt::format(
        "{} {} {}: {:.2f} us per step (median {:.2f}); its products alone {:.2f} "
        "us{}{}\n",
        r.model, r.algorithm, r.mode, j["step_us_min"].get<double>(),
        j["step_us_median"].get<double>(), j["gemm_bound_us"].get<double>(),
        j.contains("note") ? "; " : "", note_of(r));
  return text + json_text(j) + "\n";
}

}  // namespace braintrace::cli
