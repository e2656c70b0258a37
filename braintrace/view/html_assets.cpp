// SPDX-License-Identifier: Apache-2.0
// The fixed parts of the page: style and behaviour.
#include "braintrace/view/html_impl.h"

namespace braintrace::internal {
namespace {

constexpr std::string_view kStyle = R"css(
:root { color-scheme: light dark;
  --bg: #f6f8fa; --card: #ffffff; --fg: #1f2328; --soft: #59636e; --line: #d1d9e0;
  --code: #f6f8fa; --direct: #0969da; --direct-bg: #ddf4ff; --dense: #bc4c00;
  --dense-bg: #fff1e5; --local: #59636e; --local-bg: #eff2f5; --refused: #cf222e;
  --refused-bg: #ffebe9; --group: #1a7f37; --group-bg: #e6f6ea; --out: #8250df;
  --out-bg: #fbefff; --region-bg: #fff8c5; }
@media (prefers-color-scheme: dark) { :root {
  --bg: #0d1117; --card: #151b23; --fg: #f0f6fc; --soft: #9198a1; --line: #3d444d;
  --code: #0d1117; --direct: #58a6ff; --direct-bg: #12304f; --dense: #f0883e;
  --dense-bg: #432510; --local: #9198a1; --local-bg: #212830; --refused: #ff7b72;
  --refused-bg: #4b1a1a; --group: #56d364; --group-bg: #12261a; --out: #d2a8ff;
  --out-bg: #2d1f45; --region-bg: #3b2e0a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--fg); line-height: 1.5;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
main, header { max-width: 1180px; margin: 0 auto; padding: 0 20px; }
header { padding-top: 28px; }
h1 { font-size: 26px; margin: 0 0 4px; }
h2 { font-size: 17px; margin: 0 0 10px; }
p.lead { margin: 0 0 14px; color: var(--soft); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 16px 18px; margin: 0 0 18px; overflow: hidden; }
.chips { display: flex; flex-wrap: wrap; gap: 8px; margin: 0 0 18px; }
.chip { border: 1px solid var(--line); background: var(--card); border-radius: 999px;
  padding: 2px 12px; font-size: 13px; }
.chip b { margin-right: 4px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: left; color: var(--soft); font-weight: 600; font-size: 12px;
  text-transform: uppercase; letter-spacing: .04em; }
th, td { padding: 6px 12px 6px 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
tr:last-child td { border-bottom: 0; }
td.why { color: var(--soft); }
code, pre { font-family: ui-monospace, "SF Mono", "DejaVu Sans Mono", Menlo, monospace;
  font-size: 13px; }
pre { background: var(--code); border: 1px solid var(--line); border-radius: 8px;
  padding: 12px 14px; overflow: auto; max-height: 70vh; margin: 10px 0 0; line-height: 1.45; }
.tag { display: inline-block; border-radius: 6px; padding: 0 8px; font-size: 12.5px;
  font-weight: 600; white-space: nowrap; color: var(--local); background: var(--local-bg); }
.tag.direct, .tag.info { color: var(--direct); background: var(--direct-bg); }
.tag.dense, .tag.warning { color: var(--dense); background: var(--dense-bg); }
.tag.refused, .tag.error { color: var(--refused); background: var(--refused-bg); }
.tag.group { color: var(--group); background: var(--group-bg); }
.bar { display: flex; flex-wrap: wrap; gap: 8px 14px; align-items: center;
  margin: 0 0 10px; color: var(--soft); font-size: 13px; }
.bar .push { margin-left: auto; }
button, select, input[type=search] { font: inherit; font-size: 13px; color: var(--fg);
  background: var(--card); border: 1px solid var(--line); border-radius: 6px;
  padding: 3px 10px; }
button { cursor: pointer; }
button:hover { border-color: var(--soft); }
.key { display: inline-flex; align-items: center; gap: 6px; }
.key i { width: 26px; border-top: 2px solid; display: inline-block; }
.key i.direct { color: var(--direct); }
.key i.dense { color: var(--dense); border-top-width: 4px; }
.key i.cut { color: var(--refused); border-top-style: dotted; }
.key i.local { width: 18px; height: 12px; border: 1.5px dashed var(--local); }
.key i.group { width: 18px; height: 12px; border: 1.5px solid var(--group);
  border-radius: 4px; background: var(--group-bg); }
.stage { border: 1px solid var(--line); border-radius: 8px; overflow: hidden;
  background: var(--code); max-height: 78vh; cursor: grab; touch-action: pan-y; }
.stage.moving { cursor: grabbing; }
.stage svg { display: block; width: 100%; height: auto; max-height: 78vh; user-select: none; }
.stage a { text-decoration: none; }
.stage .graph > polygon { fill: transparent; stroke: none; }
.stage text { fill: var(--fg); font-family: inherit; }
.stage .node polygon, .stage .node path, .stage .node polyline, .stage .node ellipse {
  fill: var(--card); stroke: var(--soft); }
.stage .node.constant polygon { fill: none; stroke: none; }
.stage .edge path { stroke: var(--soft); }
.stage .edge polygon { stroke: var(--soft); fill: var(--soft); }
.stage .edge text { fill: var(--soft); }
.stage .weight.direct polygon, .stage .etp polygon { fill: var(--direct-bg); stroke: var(--direct); }
.stage .weight.dense polygon { fill: var(--dense-bg); stroke: var(--dense); }
.stage .weight.local polygon { fill: var(--local-bg); stroke: var(--local); }
.stage .weight.refused polygon { fill: var(--refused-bg); stroke: var(--refused); }
.stage .region polygon { fill: var(--region-bg); }
.stage .input ellipse, .stage .hidden ellipse { stroke: var(--group); }
.stage .input ellipse, .stage .cluster.group path { fill: var(--group-bg); stroke: var(--group); }
.stage .cluster.group text { fill: var(--group); }
.stage .cluster.group text[font-size="9.00"] { fill: var(--refused); }
.stage .cluster.untraced path { fill: none; stroke: var(--local); }
.stage .cluster.untraced text { fill: var(--soft); }
.stage .output ellipse { fill: var(--out-bg); stroke: var(--out); }
.stage .relation.direct path { stroke: var(--direct); }
.stage .relation.direct polygon { stroke: var(--direct); fill: var(--direct); }
.stage .relation.direct text { fill: var(--direct); }
.stage .relation.dense path { stroke: var(--dense); }
.stage .relation.dense polygon { stroke: var(--dense); fill: var(--dense); }
.stage .relation.dense text { fill: var(--dense); }
.stage .cut path, .stage .cut polygon, .stage .cut polyline { stroke: var(--refused); }
.stage .cut polygon { fill: var(--refused); }
.stage .cut text { fill: var(--refused); }
.tabs { display: flex; flex-wrap: wrap; gap: 4px; margin: 0 0 16px;
  border-bottom: 1px solid var(--line); }
.tabs button { border: 0; border-bottom: 2px solid transparent; border-radius: 0;
  background: none; padding: 7px 14px; font-size: 14px; color: var(--soft); }
.tabs button[aria-selected=true] { color: var(--fg); border-color: var(--direct);
  font-weight: 600; }
.charts { display: grid; gap: 14px; }
.charts svg { width: 100%; height: auto; max-width: 900px; }
.meter { display: block; height: 10px; min-width: 2px; border-radius: 3px;
  background: var(--direct); margin-top: 6px; }
td:has(.meter) { width: 55%; }
.card ul { color: var(--soft); margin: 12px 0 0; padding-left: 18px; }
details { margin: 0 0 6px; }
summary { cursor: pointer; font-weight: 600; }
details .stage { margin-top: 10px; }
.empty { color: var(--soft); margin: 0; }
footer { color: var(--soft); font-size: 13px; max-width: 1180px; margin: 0 auto;
  padding: 0 20px 30px; }
)css";

constexpr std::string_view kScript = R"js(
"use strict";
const fits = [];
for (const stage of document.querySelectorAll(".stage")) {
  const svg = stage.querySelector("svg");
  const whole = svg.viewBox.baseVal;
  const home = [whole.x, whole.y, whole.width, whole.height];
  // Not larger than life, and as wide as the stage: of a tall picture the top is seen.
  const start = () => {
    const life = 4 / 3, wide = Math.max(home[2], stage.clientWidth / life);
    const scale = stage.clientWidth / wide;
    const height = Math.min(innerHeight * .78, home[3] * scale);
    svg.style.height = height + "px";
    return [home[0] - (wide - home[2]) / 2, home[1], wide, height / scale];
  };
  // Whoever has moved or zoomed keeps what is seen when the stage changes its size.
  let view = home.slice(), touched = false;
  const apply = () => svg.setAttribute("viewBox", view.join(" "));
  const zoom = (factor, fx, fy) => {
    const width = Math.min(Math.max(view[2] * factor, home[2] / 60), home[2] * 12);
    const scale = width / view[2];
    touched = true;
    view = [view[0] + view[2] * (1 - scale) * fx, view[1] + view[3] * (1 - scale) * fy,
            width, view[3] * scale];
    apply();
  };
  const fit = () => {
    if (stage.clientWidth > 0 && !touched) { view = start(); apply(); }
  };
  fits.push(fit);
  new ResizeObserver(fit).observe(stage);
  stage.addEventListener("wheel", (e) => {
    if (!e.ctrlKey && !e.metaKey) return;
    e.preventDefault();
    const box = svg.getBoundingClientRect();
    zoom(e.deltaY > 0 ? 1.15 : 1 / 1.15, (e.clientX - box.x) / box.width,
         (e.clientY - box.y) / box.height);
  }, { passive: false });
  let last = null;
  stage.addEventListener("pointerdown", (e) => {
    last = [e.clientX, e.clientY];
    stage.setPointerCapture(e.pointerId);
    stage.classList.add("moving");
  });
  stage.addEventListener("pointermove", (e) => {
    if (!last) return;
    const scale = 1 / svg.getScreenCTM().a;
    touched = true;
    view[0] -= (e.clientX - last[0]) * scale;
    view[1] -= (e.clientY - last[1]) * scale;
    last = [e.clientX, e.clientY];
    apply();
  });
  const stop = () => { last = null; stage.classList.remove("moving"); };
  stage.addEventListener("pointerup", stop);
  stage.addEventListener("pointercancel", stop);
  for (const button of document.querySelectorAll("button[data-for='" + stage.id + "']"))
    button.addEventListener("click", () => {
      if (button.value === "in") zoom(1 / 1.4, .5, .5);
      else if (button.value === "out") zoom(1.4, .5, .5);
      else {
        touched = button.value === "all";
        view = touched ? home.slice() : start();
        apply();
      }
    });
}
const tabs = Array.from(document.querySelectorAll(".tabs button"));
const open = (name) => {
  if (!tabs.some((b) => b.dataset.tab === name)) name = tabs[0].dataset.tab;
  for (const b of tabs) {
    const chosen = b.dataset.tab === name;
    b.setAttribute("aria-selected", chosen);
    document.getElementById("tab-" + b.dataset.tab).hidden = !chosen;
  }
  for (const fit of fits) fit();
};
for (const b of tabs) b.addEventListener("click", () => {
  open(b.dataset.tab);
  history.replaceState(null, "", "#" + b.dataset.tab);
});
addEventListener("hashchange", () => open(location.hash.slice(1)));
open(location.hash.slice(1));
const rows = Array.from(document.querySelectorAll("tr[data-kind]"));
const kind = document.getElementById("kind");
const find = document.getElementById("find");
const levels = Array.from(document.querySelectorAll("input[data-level]"));
const filter = () => {
  const shown = levels.filter((b) => b.checked).map((b) => b.dataset.level);
  const words = find.value.toLowerCase();
  let count = 0;
  for (const row of rows) {
    const hit = (kind.value === "" || row.dataset.kind === kind.value) &&
                shown.includes(row.dataset.level) &&
                row.textContent.toLowerCase().includes(words);
    row.hidden = !hit;
    if (hit) count += 1;
  }
  document.getElementById("count").textContent = count + " of " + rows.length;
};
if (kind) {
  for (const control of [kind, find].concat(levels)) control.addEventListener("input", filter);
  filter();
}
)js";

}  // namespace

std::string_view page_style() { return kStyle; }
std::string_view page_script() { return kScript; }

std::string html_escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default: {
        const bool control =
            static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t';
        out += control ? ' ' : c;
      }
    }
  }
  return out;
}

}  // namespace braintrace::internal
