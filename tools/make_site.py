#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Builds a small static site from README.md and docs/*.md.

Usage: make_site.py OUT [ROOT]. One page per document with a menu; pictures are copied; links
between documents lead to pages, links to other files of the tree stay text. Needs python3-markdown.
"""
import html
import re
import shutil
import sys
from pathlib import Path

import markdown

# Order of the menu; documents not named here follow by title.
FIRST = ["README", "quick_start", "concepts", "etrace", "compiler", "algorithms", "layers",
         "python", "performance", "extending", "differences", "faq"]
STYLE = """
:root { color-scheme: light dark; --line: #8884; --link: #2b6cb0; }
@media (prefers-color-scheme: dark) { :root { --link: #90cdf4; } }
body { margin: 0; font: 16px/1.55 system-ui, sans-serif; display: flex; }
nav { width: 15rem; padding: 1.5rem; border-right: 1px solid var(--line); flex: none; }
nav a { display: block; padding: .15rem 0; } nav a.here { font-weight: bold; }
main { max-width: 50rem; padding: 1rem 2rem 4rem; min-width: 0; }
a { color: var(--link); text-decoration: none; } a:hover { text-decoration: underline; }
pre { overflow-x: auto; padding: .8rem; border: 1px solid var(--line); border-radius: 6px; }
code { font: .9em/1.45 ui-monospace, monospace; }
table { border-collapse: collapse; } th, td { border: 1px solid var(--line); padding: .3rem .6rem; }
th, td { text-align: left; vertical-align: top; } img { max-width: 100%; background: white; }
@media (max-width: 50rem) { body { display: block; } nav { width: auto; } }
"""
LINK = re.compile(r'<a href="(?!https?:|#)([^"#]*)(#[^"]*)?">(.*?)</a>', re.S)


def documents(root):
    """(path, title) of every page, in the order of the menu."""
    found = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    titles = {p: re.search(r"^# (.+)$", p.read_text(), re.M).group(1) for p in found}
    rank = {name: i for i, name in enumerate(FIRST)}
    return sorted(titles.items(), key=lambda d: (rank.get(d[0].stem, len(FIRST)), d[1]))


def page_name(path):
    return "index.html" if path.stem == "README" else f"{path.stem}.html"


def with_links(text, source, pages):
    """Links to documents become links to their pages; those to other files become text."""
    def replace(m):
        target = (source.parent / m.group(1)).resolve()
        if target in pages:
            return f'<a href="{pages[target]}{m.group(2) or ""}">{m.group(3)}</a>'
        return m.group(3)
    return LINK.sub(replace, text)


def menu(docs, here):
    rows = [f'<a href="{page_name(p)}"{" class=here" if p == here else ""}>{html.escape(t)}</a>'
            for p, t in docs]
    return "\n".join(rows)


def build(root, out):
    docs = documents(root)
    pages = {p.resolve(): page_name(p) for p, _ in docs}
    out.mkdir(parents=True, exist_ok=True)
    for path, title in docs:
        body = markdown.markdown(path.read_text(), extensions=["tables", "fenced_code", "toc"])
        (out / page_name(path)).write_text(
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width">\n'
            f"<title>{html.escape(title)}</title><style>{STYLE}</style></head>\n"
            f"<body><nav>{menu(docs, path)}</nav>\n"
            f"<main>{with_links(body, path, pages)}</main></body></html>\n")
    if (root / "docs/pictures").exists():
        shutil.copytree(root / "docs/pictures", out / "pictures", dirs_exist_ok=True)
    return [page_name(p) for p, _ in docs]


def broken_links(out, pages):
    for page in pages:
        text = (out / page).read_text()
        for target in re.findall(r'(?:href|src)="(?!https?:|#)([^"#]+)', text):
            if not (out / target).exists():
                yield f"{page}: leads to {target}, which is not there"


def main():
    out = Path(sys.argv[1])
    root = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).resolve().parents[1]
    pages = build(root, out)
    broken = list(broken_links(out, pages))
    for line in broken:
        print(line)
    print(f"make_site: {len(pages)} pages in {out}, {len(broken)} broken link(s)")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
