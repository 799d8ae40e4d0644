"""The page of `yarnling plot`: Gantt charts by node and by application, the use of each queue, and the headroom of each
application.
"""

from __future__ import annotations

import re
from html import escape

from msgspec.structs import replace

from yarn.times import duration
from yarnling.report.curves import PANELS_MAX, QUEUE_LEGEND, QueueSeries
from yarnling.report.page import TEMPLATES, Page, Picture, PictureGroup, html_of
from yarnling.report.spans import Plot, SpanKind, rows_of
from yarnling.report.wording import counted, short_names
from yarnling.run.builder import natural

ROOT = "root"
HEADROOMS_MAX = 16
"""More applications than this have no curve of their headroom: those that use the least."""
_VIEW_BOX = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


def plot_page(plot: Plot, measured: str) -> str:
    """The page as one HTML document. Needs matplotlib."""
    groups = _groups(plot, measured)
    preempted = sum(span.is_preempted for span in plot.spans)
    containers = sum(span.kind is SpanKind.CONTAINER for span in plot.spans)
    found = [f"{counted(containers, 'container')}", f"{counted(len(plot.spans) - containers, 'reservation')}"]
    page = Page(
        title=f"{plot.title}: containers and queues",
        subject=f"{plot.title.removesuffix('.')}; {duration(plot.until_ms)}",
        headline=f"{', '.join(found)}, {preempted} preempted",
        findings=(),
        tiles=(),
        pictures=tuple(group for group in groups if group.pictures),
        tables=(),
        marks=plot.marks,
        notice="" if plot.spans else "No allocation of a container is known of this run.",
    )
    return html_of(page)


def plot_svg(plot: Plot, measured: str) -> str:
    """The pictures of the page one below the other, as one SVG. Needs matplotlib."""
    style = (TEMPLATES / "page.css").read_text(encoding="utf-8").partition("* {")[0]
    parts, top, width = [], 0.0, 0.0
    for group in _groups(replace(plot, marks=()), measured):
        for picture in group.pictures:
            box = _VIEW_BOX.search(picture.wide)
            assert box is not None, "matplotlib writes the view box"
            title = f'<text x="12" y="{top + 20}" font-weight="600" fill="var(--ink)">{_escaped(picture.title)}</text>'
            size = f'y="{top + 28}" width="{box[1]}" height="{box[2]}"'
            parts += [title, picture.wide.replace("<svg", f"<svg {size}", 1)]
            top += 40 + float(box[2])
            width = max(width, float(box[1]))
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="{width}" '
        f'height="{top}" viewBox="0 0 {width} {top}" font-family="system-ui, sans-serif">'
    )
    ground = '<rect width="100%" height="100%" fill="var(--page)"/>'
    return "\n".join([opening, f"<style>{style}</style>", ground, *parts, "</svg>", ""])


def _escaped(text: str) -> str:
    return escape("".join(one if one.isprintable() else "\ufffd" for one in text))


def _groups(plot: Plot, measured: str) -> list[PictureGroup]:
    from yarnling.report.curves import OTHER_QUEUES, OTHERS
    from yarnling.report.gantt import gantt
    from yarnling.report.queue_charts import queue_roles

    used: dict[str, float] = {}
    for span in plot.spans:
        used[span.queue] = used.get(span.queue, 0.0) + span.until_ms - span.from_ms
    roles = queue_roles(sorted(used), used)
    names = short_names(sorted(used))
    own = tuple((role, names[queue]) for queue, role in roles.items() if role != OTHERS)
    others = ((OTHERS, OTHER_QUEUES),) if OTHERS in roles.values() else ()
    marks = []
    if any(span.kind is SpanKind.RESERVATION for span in plot.spans):
        marks.append(("reserved", "reservation (hatched)"))
    if any(span.is_preempted for span in plot.spans):
        marks.append(("maximum", "preempted (cross at its end)"))
    charts: list[Picture] = []
    times_ms = [mark.at_ms for mark in plot.marks]
    if plot.spans:
        by_node = sorted(rows_of(plot.spans, lambda span: span.node), key=lambda row: natural(row.name))
        charts.append(gantt("by-node", "Containers by node", by_node, roles, plot.until_ms, times_ms))
        by_application = rows_of(plot.spans, lambda span: span.application)
        title = "Containers by application"
        charts.append(gantt("by-application", title, by_application, roles, plot.until_ms, times_ms))
    return [
        PictureGroup("Containers", tuple(charts), legend=(*own, *others, *marks)),
        PictureGroup("Use of the queues", _queue_pictures(plot, measured), legend=QUEUE_LEGEND),
        _headrooms(plot),
    ]


def _headrooms(plot: Plot) -> PictureGroup:
    from yarnling.report.headroom_charts import headroom_legend, headroom_picture

    chosen = sorted(plot.headrooms, key=lambda one: -sum(one.used))[:HEADROOMS_MAX]
    drawn = [one for one in plot.headrooms if one in chosen]
    left_out = len(plot.headrooms) - len(drawn)
    note = "Headroom is what the next allocate call would report; it is drawn above what the user has."
    note += f" {counted(left_out, 'application')} with less use left out." if left_out else ""
    times_ms = [mark.at_ms for mark in plot.marks]
    pictures = tuple(headroom_picture(one, number, times_ms) for number, one in enumerate(drawn))
    return PictureGroup("Headroom of the applications", pictures, note, headroom_legend(drawn))


def _queue_pictures(plot: Plot, measured: str) -> tuple[Picture, ...]:
    from yarnling.report.queue_charts import queue_use

    weights = {one.queue: sum(one.used) + sum(one.pending) for one in plot.queues}
    chosen: list[QueueSeries] = sorted(plot.queues, key=lambda one: -weights[one.queue])[:PANELS_MAX]
    drawn = [one for one in plot.queues if one in chosen and (one.queue == ROOT or weights[one.queue])]
    times_ms = [mark.at_ms for mark in plot.marks]
    return tuple(
        queue_use(f"{one.queue} {one.label}".strip(), one, measured, number, times_ms=times_ms)
        for number, one in enumerate(drawn)
    )
