// What waits, and why: verdicts of `explain`.
import { html, nothing } from "/static/vendor/lit-html.js";
import { get } from "/static/lib/api.js";
import { amounts, duration, plural } from "/static/lib/format.js";

export const title = () => "Waiting";

export const load = async () => (await get("/ws/yarnling/v1/waiting")).waiting;

export const view = (waiting) => html`<h2>What waits</h2>
  <p class="quiet">For each resource request that has not been given a container: the reason, from the scheduler's state now.</p>
  ${waitingList(waiting)}`;

export function waitingList(waiting) {
  if (!waiting.length) return html`<p class="good">Nothing waits.</p>`;
  return waiting.map(
    (found) => html`<section aria-label=${found.application_id}>
      <h3><a href="/cluster/app/${found.application_id}">${found.application_id}</a> <span class="quiet">${found.user} in ${found.queue}, ${found.state}</span></h3>
      ${refusedStart(found)}${explanation(found)}</section>`
  );
}

// The last container that a node refused to start.
export function refusedStart({ refused_start: refused, now_ms }) {
  if (!refused) return nothing;
  return html`<div class="waiting">
    <p class="sentence">${refused.node_id} refused to start ${refused.container_id}, ${duration(now_ms - refused.at_ms)} ago:</p>
    <p>${refused.reason}</p></div>`;
}

export function explanation(found) {
  return found.verdicts.map((verdict) => {
    const asks = found.asks.filter(
      (ask) => ask.priority === verdict.priority && ask.allocation_request_id === verdict.allocation_request_id
    );
    return html`<div class="waiting">
      ${asks.map((ask) => html`<p>${request(ask)}</p>`)}
      <p class="sentence">${verdict.sentence}</p>
      ${verdict.changes.length ? html`<ul class="changes">${verdict.changes.map((change) => html`<li>it would get a container ${change}</li>`)}</ul>` : nothing}
      ${verdict.notes.map((note) => html`<p class="quiet">${note}</p>`)}
      <details><summary>details</summary><ul>
        ${verdict.nodes.map((alike) => html`<li>on ${plural(alike.count, "node")} (${alike.node_ids.slice(0, 5).join(", ")}): ${alike.sentence}</li>`)}
        ${verdict.settings.map((setting) => html`<li><code>${setting.key} = ${setting.value}</code></li>`)}
        ${verdict.since_ms > 0 ? html`<li>requested ${duration(found.now_ms - verdict.since_ms)} ago</li>` : nothing}
      </ul></details></div>`;
  });
}

function request(ask) {
  const where = ask.resource_name === "*" ? "anywhere" : `on ${ask.resource_name}${ask.relax_locality ? "" : " only"}`;
  return `${ask.count} × ${amounts(ask.capability)}, ${where}${ask.label ? `, label ${ask.label}` : ""}, priority ${ask.priority}`;
}
