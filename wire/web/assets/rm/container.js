// One container: why it is on its node, what its reservation waits for, and why it was preempted.
import { html, nothing } from "/static/vendor/lit-html.js";
import { get } from "/static/lib/api.js";
import { hatch, queueBar } from "/static/lib/draw.js";
import { amounts, duration, moment } from "/static/lib/format.js";

export const title = ({ id }) => id;

export const load = ({ id }) => get(`/ws/yarnling/v1/containers/${id}/explain`);

const LOCALITIES = { NODE_LOCAL: "node-local", RACK_LOCAL: "rack-local", OFF_SWITCH: "off-switch" };

export function view(found) {
  const app = found.container_id.replace(/^container_(?:e\d+_)?(\d+_\d+)_.*$/, "application_$1");
  const hasEnded = found.ended_ms !== null && found.sentences.length > 1; // then the last sentence is about the end
  const before = hasEnded ? found.sentences.slice(0, -1) : found.sentences;
  const end = hasEnded ? found.sentences.at(-1) : null;
  return html`${hatch}<h2>${found.container_id}</h2>
    <dl class="facts">
      <dt>application</dt><dd><a href="/cluster/app/${app}">${app}</a> of ${found.user} in ${found.queue}</dd>
      <dt>resources</dt><dd>${amounts(found.resource)}</dd>
      <dt>node</dt><dd><a href="/cluster/nodes?node=${encodeURIComponent(found.node_id)}">${found.node_id}</a>${found.locality ? `, ${LOCALITIES[found.locality]}` : ""}</dd>
      <dt>state</dt><dd>${found.state}</dd>
      ${times(found)}
    </dl>
    <h2>${found.state === "RESERVED" ? "Why it is reserved there" : "Why it is there"}</h2>
    ${before.map(sentenceOf)}
    ${found.passed.length ? passedNodes(found) : nothing}
    ${found.preemptions.length ? html`<h2>Why it was preempted</h2>${found.preemptions.map(preemption)}` : nothing}
    ${end ? html`<h2>Its end</h2>${sentenceOf(end)}` : nothing}`;
}

const sentenceOf = (sentence) => html`<p class="sentence">${sentence}</p>`;

// Each time that is known, with how long it was after the one before.
function times({ requested_ms, reserved_ms, placed_ms, ended_ms }) {
  const known = [["requested", requested_ms], ["reserved", reserved_ms], ["placed", placed_ms], ["ended", ended_ms]].filter(([, ms]) => ms !== null);
  return known.map(
    ([name, ms], index) => html`<dt>${name}</dt><dd>${moment(ms)}${index ? html` <span class="quiet">${duration(ms - known[index - 1][1])} later</span>` : nothing}</dd>`
  );
}

const passedNodes = ({ passed, placed_ms, reserved_ms, now_ms }) => html`<h3>Nodes that had refused its request</h3>
  <ul>${passed.map(
    ({ node_id, message, at_ms }) => html`<li><a href="/cluster/nodes?node=${encodeURIComponent(node_id)}">${node_id}</a>,
      ${duration((placed_ms ?? reserved_ms ?? now_ms) - at_ms)} before: ${message}</li>`
  )}</ul>`;

// What a round of preemption did with it, and the queues as the round saw them: bars of memory to the same scale.
function preemption(step) {
  const queues = [step.victim, step.served].filter(Boolean);
  const memoryOf = (resource) => resource["memory-mb"];
  const scale = Math.max(1, ...queues.flatMap((queue) => [memoryOf(queue.guaranteed), memoryOf(queue.used) + memoryOf(queue.pending)]));
  return html`<div class="waiting"><p class="sentence">${step.sentence}</p>
    ${queues.map((queue, index) => {
      const bar = { reserved: 0, maximum: 0, label: step.numbers[index] };
      for (const name of ["used", "pending", "guaranteed"]) bar[name] = memoryOf(queue[name]) / scale;
      return html`<p>${step.numbers[index]}</p>${queueBar(bar)}`;
    })}
    <p class="quiet">${moment(step.at_ms)} · the bars are memory: used, used above the guarantee (the line), and dashed what was pending</p></div>`;
}
