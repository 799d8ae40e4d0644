// Bars that are drawn to scale. Each has a text for those who do not see it.
import { html, svg, nothing } from "/static/vendor/lit-html.js";

const WIDTH = 1000;

// The pattern of reservations; once on each page that draws one.
export const hatch = html`<svg class="hidden" aria-hidden="true"><defs>
  <pattern id="hatch" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
    <line x1="0" y1="0" x2="0" y2="8" stroke="var(--reserved)" stroke-width="4"></line>
  </pattern></defs></svg>`;

const part = (from, amount, kind, height = 22) =>
  amount > 0 ? svg`<rect class=${kind} x=${from * WIDTH} y="1" width=${amount * WIDTH} height=${height - 2}></rect>` : nothing;

// A queue: amounts as shares of the cluster. What is above the guarantee has another colour.
export function queueBar({ used, reserved, pending, guaranteed, maximum, label }) {
  const within = Math.min(used, guaranteed);
  const shown = Math.max(0, Math.min(pending, 1 - used - reserved));
  return html`<svg class="bar" viewBox="0 0 ${WIDTH} 22" preserveAspectRatio="none" role="img" aria-label=${label}>
    <title>${label}</title>
    ${part(0, maximum, "track")} ${part(0, within, "used")} ${part(within, used - within, "over")}
    ${part(used, reserved, "reserved")} ${part(used + reserved, shown, "pending")}
    ${svg`<line class="guaranteed" x1=${guaranteed * WIDTH} x2=${guaranteed * WIDTH} y1="0" y2="22"></line>`}
  </svg>`;
}

// A node: `parts` are [{amount, kind, title}], `total` and `scale` in the same unit.
export function nodeBar({ parts, total, scale, label }) {
  let from = 0;
  const drawn = parts.map(({ amount, kind, title, href }) => {
    const x = (from / scale) * WIDTH;
    from += amount;
    const box = svg`<rect class=${kind} x=${x} y="1" width=${(amount / scale) * WIDTH} height="24"><title>${title}</title></rect>`;
    return href ? svg`<a href=${href} tabindex="-1">${box}</a>` : box;
  });
  return html`<svg class="bar" viewBox="0 0 ${WIDTH} 26" preserveAspectRatio="none" role="img" aria-label=${label}>
    ${part(0, total / scale, "track", 26)} ${drawn}
  </svg>`;
}

export const swatch = (kind, text) => html`<li><svg viewBox="0 0 14 14" aria-hidden="true"><rect class=${kind} x="1" y="1" width="12" height="12"></rect></svg>${text}</li>`;
