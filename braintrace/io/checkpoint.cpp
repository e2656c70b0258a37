// SPDX-License-Identifier: Apache-2.0
#include "braintrace/io/checkpoint.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include "braintrace/io/safetensors.h"
#include "braintrace/io/strict_json_impl.h"

namespace braintrace {
namespace {

using internal::in_quotes;
using nlohmann::json;

constexpr const char* kFormat = "braintrace checkpoint";
constexpr int kVersion = 1;
constexpr const char* kManifestKey = "braintrace";
constexpr const char* kHashKey = "hash";

struct NamedGroup {
  const char* name;
  Checkpoint::Group Checkpoint::*group;
};
constexpr NamedGroup kGroups[] = {{"weights", &Checkpoint::weights},
                                  {"states", &Checkpoint::states},
                                  {"traces", &Checkpoint::traces},
                                  {"optimizer", &Checkpoint::optimizer}};

// XXH3-128 over lengths and content, so that no byte can move from one field to another.
class Hasher {
 public:
  void add(std::string_view bytes) {
    add_number(bytes.size());
    XXH3_128bits_update(&state_, bytes.data(), bytes.size());
  }
  void add_number(std::uint64_t n) { XXH3_128bits_update(&state_, &n, sizeof n); }
  std::string text() const {
    const XXH128_hash_t h = XXH3_128bits_digest(&state_);
    return fmt::format("xxh3-128:{:016x}{:016x}", h.high64, h.low64);
  }
  Hasher() { XXH3_128bits_reset(&state_); }

 private:
  XXH3_state_t state_;
};

std::string content_hash(const std::string& manifest,
                         const std::map<std::string, Array>& arrays) {
  Hasher h;
  h.add(manifest);
  for (const auto& [name, a] : arrays) {
    h.add(name);
    h.add(to_string(a.dtype()));
    h.add_number(a.shape().size());
    for (const std::int64_t d : a.shape()) h.add_number(static_cast<std::uint64_t>(d));
    const Array packed = a.contiguous();
    h.add({static_cast<const char*>(packed.raw()), packed.num_bytes()});
  }
  return h.text();
}

std::string manifest_of(const Checkpoint& c) {
  BT_REQUIRE(c.step >= 0,
             fmt::format("save_checkpoint: step must be >= 0, got {}", c.step));
  json rng = json::object();
  for (const auto& [name, key] : c.rng) rng[name] = {key.a, key.b};
  const json manifest = {
      {"format", kFormat},
      {"version", kVersion},
      {"step", c.step},
      {"rng", rng},
      {"model", internal::parse_strict_json("save_checkpoint: model", c.model)},
      {"config", internal::parse_strict_json("save_checkpoint: config", c.config)}};
  return internal::dump_json("save_checkpoint", manifest);
}

Safetensors to_safetensors_content(const Checkpoint& c) {
  Safetensors s;
  for (const NamedGroup& g : kGroups)
    for (const auto& [name, a] : c.*g.group)
      s.arrays.emplace(fmt::format("{}/{}", g.name, name), a);
  const std::string manifest = manifest_of(c);
  s.metadata = {{kManifestKey, manifest}, {kHashKey, content_hash(manifest, s.arrays)}};
  return s;
}

Checkpoint::Group& group_of(const std::string& file, Checkpoint& c,
                            const std::string& array) {
  for (const NamedGroup& g : kGroups)
    if (array.starts_with(std::string(g.name) + "/")) return c.*g.group;
  throw UserError(
      fmt::format("{}: array {} must stand in weights/, states/, traces/ or optimizer/",
                  file, in_quotes(array)));
}

void read_rng(const std::string& file, const json& j, Checkpoint& c) {
  BT_REQUIRE(j.is_object(), file + ": manifest: 'rng' must be an object");
  for (const auto& [name, key] : j.items()) {
    const auto is_word = [](const json& w) {
      return w.is_number_unsigned() && w.get<std::uint64_t>() >> 32 == 0;
    };
    BT_REQUIRE(key.is_array() && key.size() == 2 && is_word(key[0]) && is_word(key[1]),
               fmt::format("{}: manifest: rng key {} must be two 32-bit numbers", file,
                           in_quotes(name)));
    c.rng[name] = {key[0].get<std::uint32_t>(), key[1].get<std::uint32_t>()};
  }
}

void read_manifest(const std::string& file, const std::string& text, Checkpoint& c) {
  const std::string where = file + ": manifest";
  const json m = internal::parse_strict_json(where, text);
  BT_REQUIRE(m.is_object() && m.contains("format") && m["format"] == kFormat,
             fmt::format("{}: 'format' must be '{}'", where, kFormat));
  BT_REQUIRE_KIND(
      m.contains("version") && m["version"] == kVersion, ErrorKind::not_supported,
      fmt::format("{}: this library reads version {}, found {}", where, kVersion,
                  m.contains("version") ? in_quotes(m["version"].dump()) : "none"));
  for (const char* key : {"step", "rng", "model", "config"})
    BT_REQUIRE(m.contains(key), fmt::format("{}: has no '{}'", where, key));
  BT_REQUIRE(m.size() == 6,
             fmt::format("{}: must have 6 entries, found {}", where, m.size()));
  BT_REQUIRE(m["step"].is_number_unsigned() && m["step"].get<std::uint64_t>() >> 63 == 0,
             fmt::format("{}: 'step' must be a whole number >= 0, got {}", where,
                         in_quotes(m["step"].dump())));
  c.step = m["step"].get<std::int64_t>();
  read_rng(file, m["rng"], c);
  c.model = internal::dump_json(where, m["model"]);
  c.config = internal::dump_json(where, m["config"]);
}

Checkpoint from_content(const std::string& file, Safetensors s) {
  const auto manifest = s.metadata.find(kManifestKey);
  const auto hash = s.metadata.find(kHashKey);
  BT_REQUIRE(
      s.metadata.size() == 2 && manifest != s.metadata.end() && hash != s.metadata.end(),
      file +
          ": not a checkpoint: '__metadata__' must hold exactly 'braintrace' and "
          "'hash'");
  Checkpoint c;
  // The version comes first: a later one may hash differently.
  read_manifest(file, manifest->second, c);
  const std::string found = content_hash(manifest->second, s.arrays);
  for (auto& [name, a] : s.arrays) {
    Checkpoint::Group& group = group_of(file, c, name);
    group.emplace(name.substr(name.find('/') + 1), std::move(a));
  }
  BT_REQUIRE(found == hash->second,
             fmt::format("{}: the content is damaged: its hash is {}, the file says {}",
                         file, found, in_quotes(hash->second)));
  return c;
}

}  // namespace

std::string to_bytes(const Checkpoint& c) {
  return to_safetensors(to_safetensors_content(c));
}

void save_checkpoint(const std::string& path, const Checkpoint& c,
                     const AtomicFileOptions& options) {
  write_safetensors(path, to_safetensors_content(c), options);
}

Checkpoint parse_checkpoint(std::string_view bytes, const std::string& name) {
  return from_content(name, parse_safetensors(bytes, name));
}

Checkpoint load_checkpoint(const std::string& path) {
  return from_content(path, read_safetensors(path));
}

}  // namespace braintrace
