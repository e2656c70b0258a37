# SPDX-License-Identifier: Apache-2.0
"""Tables that notebooks show."""
from . import _core


def escape(text):
    import html  # only notebooks need it
    return html.escape(text)


def _cell(x):
    return escape(f"{x:.4g}" if isinstance(x, float) else "" if x is None else str(x))


def _table(caption, head, rows):
    lines = [[f"<th>{escape(h)}</th>" for h in head]]
    lines += [[f"<td>{_cell(x)}</td>" for x in row] for row in rows]
    body = "".join(f"<tr>{''.join(line)}</tr>" for line in lines)
    return f"<table><caption>{escape(caption)}</caption>{body}</table>"


def _certificate(c):
    return _table(f"{c.algorithm}: cosine {c.cosine:.4f} over {c.steps} steps",
                  ("parameter", "verdict", "because", "cosine", "error"),
                  [(r.parameter, r.verdict, r.because, r.cosine, r.error) for r in c.rows])


def _memory_plan(plan):
    return _table(f"{plan.algorithm}: {plan.total_bytes} bytes",
                  ("kind", "owner", "key", "shape", "dtype", "bytes"),
                  [(i.kind, i.owner, i.key, i.shape, i.dtype, i.bytes) for i in plan.items])


def _run_log(log):
    return _table(repr(log), ("update", "loss", "accuracy"),
                  [(p.update, p.loss, p.accuracy) for p in log.evaluations])


for _cls, _html in ((_core.Certificate, _certificate), (_core.MemoryPlan, _memory_plan),
                    (_core.RunLog, _run_log)):
    setattr(_cls, "_repr_html_", _html)
