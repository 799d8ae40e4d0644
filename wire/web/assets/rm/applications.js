// The applications, newest first, with filters that are part of the address.
import { html, nothing } from "/static/vendor/lit-html.js";
import { get } from "/static/lib/api.js";
import { briefMoment, duration, memory, moment } from "/static/lib/format.js";
import { named, shortenedPaths } from "/static/lib/names.js";

const SHOWN_MAX = 300;
const QUEUE_MAX = 32; // characters of a queue's path
const STATES = ["", "NEW,NEW_SAVING,SUBMITTED,ACCEPTED", "RUNNING", "FINISHED", "FAILED", "KILLED"];
const NAMES = ["all states", "waiting for an AM", "running", "finished", "failed", "killed"];

export const title = () => "Applications";

export async function load({ states, query }) {
  const wanted = new URLSearchParams({ limit: String(SHOWN_MAX), deSelects: "resourceRequests" });
  const state = states ?? query.get("states");
  if (state) wanted.set("states", state);
  for (const name of ["queue", "user"]) if (query.get(name)) wanted.set(name, query.get(name));
  return (await get(`/ws/v1/cluster/apps?${wanted}`)).apps.app ?? [];
}

export function view(apps, { states, query }, draw) {
  const filter = (event) => {
    event.preventDefault();
    const chosen = new URLSearchParams();
    for (const [name, value] of new FormData(event.currentTarget.closest("form"))) if (value) chosen.set(name, value);
    history.pushState(null, "", `/cluster/apps${chosen.size ? `?${chosen}` : ""}`);
    draw();
  };
  const newest = [...apps].sort((a, b) => b.startedTime - a.startedTime || (a.id < b.id ? 1 : -1));
  return html`<h2>Applications</h2>
    <form class="filter" @submit=${filter} @change=${filter}>
      <label>State <select name="states">${STATES.map(
        (value, index) => html`<option value=${value} ?selected=${value === (states ?? query.get("states") ?? "")}>${NAMES[index]}</option>`
      )}</select></label>
      <label>Queue <input name="queue" value=${query.get("queue") ?? ""} autocomplete="off"></label>
      <label>User <input name="user" value=${query.get("user") ?? ""} autocomplete="off"></label>
      <button>Show</button>
    </form>
    ${newest.length ? table(newest) : html`<p>No application matches.</p>`}
    ${apps.length === SHOWN_MAX ? html`<p class="quiet">At most ${SHOWN_MAX} are shown.</p>` : nothing}`;
}

function table(apps) {
  const queues = shortenedPaths(apps.map((app) => app.queue), QUEUE_MAX);
  return html`<div class="scroll"><table class="applications">
  <thead><tr><th>State</th><th>Application</th><th>Name</th><th>User</th><th>Queue</th><th class="number">Containers</th>
    <th class="number">Memory</th><th class="number">Progress</th><th>Started</th><th class="number">Runs for</th></tr></thead>
  <tbody>${apps.map(
    (app) => html`<tr><td>${stateOf(app)}</td><td><a href="/cluster/app/${app.id}">${app.id}</a></td><td class="free">${app.name}</td><td>${app.user}</td>
      <td>${named(app.queue, queues.get(app.queue))}</td><td class="number">${Math.max(0, app.runningContainers)}</td><td class="number">${memory(Math.max(0, app.allocatedMB))}</td>
      <td class="number">${Math.round(app.progress)} %</td><td class="when" title=${moment(app.startedTime)}>${briefMoment(app.startedTime)}</td><td class="number">${duration(app.elapsedTime)}</td></tr>`
  )}</tbody></table></div>`;
}

export function stateOf(app) {
  const isOver = ["FINISHED", "FAILED", "KILLED"].includes(app.state);
  if (!isOver) return app.state;
  const kind = app.finalStatus === "SUCCEEDED" ? "good" : "bad";
  return html`<span class=${kind}>${app.state}${app.state === "FINISHED" ? `, ${app.finalStatus}` : ""}</span>`;
}
