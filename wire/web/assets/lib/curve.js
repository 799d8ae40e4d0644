// Curves of numbers that change in steps. Each has a text for those who do not see it.
import { html, nothing, svg } from "/static/vendor/lit-html.js";
import { duration } from "/static/lib/format.js";

const WIDTH = 600;
const HEIGHT = 100;

// The corners of a step curve, as text for a path. `points`: [time, value], each holds until the next one.
function path(points, { from, until, most }) {
  const x = (time) => ((Math.max(from, time) - from) / (until - from)) * WIDTH;
  const y = (value) => HEIGHT - 2 - (Math.min(value, most) / most) * (HEIGHT - 4);
  let text = "";
  points.forEach(([time, value], index) => {
    text += index ? `H${x(time).toFixed(1)}V${y(value).toFixed(1)}` : `M${x(time).toFixed(1)} ${y(value).toFixed(1)}`;
  });
  return points.length ? `${text}H${WIDTH}` : "";
}

const startX = (points, { from, until }) => ((Math.max(from, points[0][0]) - from) / (until - from)) * WIDTH;

// `series`: [{points, kind, filled}], drawn in this order; `most`: the value at the upper edge.
export function curve({ series, from, until, most, label, small = false }) {
  const scale = { from, until, most: most || 1 };
  return html`<svg class=${small ? "curve small" : "curve"} viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label=${label}>
    <title>${label}</title>
    ${series.filter(({ points }) => points.length).map(({ points, kind, filled }) => {
      const line = path(points, scale);
      return svg`${filled ? svg`<path class="area ${kind}" d=${`${line}V${HEIGHT}H${startX(points, scale).toFixed(1)}Z`}></path>` : nothing}
        <path class="line ${kind}" d=${line}></path>`;
    })}
  </svg>`;
}

// A curve with its name, its present value and its axes in words.
export function panel({ name, value, unit, ...drawn }) {
  return html`<figure class="panel"><figcaption><strong>${name}</strong> ${value}</figcaption>
    ${curve(drawn)}
    <p class="axis"><span>${duration(drawn.until - drawn.from)} ago</span><span>top: ${unit(drawn.most)}</span><span>now</span></p></figure>`;
}
