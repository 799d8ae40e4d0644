// The configuration that is in force: each key with its value and where it was set.
import { html, nothing } from "/static/vendor/lit-html.js";
import { get } from "/static/lib/api.js";

export const title = () => "Configuration";

export const load = () => get("/ws/yarnling/v1/configuration");

export function view(found, { query }, draw) {
  const wanted = (query.get("key") ?? "").toLowerCase();
  const matches = (entries) => entries.filter((entry) => entry.key.toLowerCase().includes(wanted));
  const filter = (event) => {
    history.replaceState(null, "", `/cluster/configuration${event.target.value ? `?key=${encodeURIComponent(event.target.value)}` : ""}`);
    draw();
  };
  return html`<h2>Configuration</h2>
    <form class="filter" @submit=${(event) => event.preventDefault()}>
      <label>Key contains <input name="key" value=${query.get("key") ?? ""} @input=${filter} autocomplete="off"></label></form>
    ${found.faults.length ? html`<h3>Faults</h3><ul>${found.faults.map((fault) => html`<li>${fault}</li>`)}</ul>` : nothing}
    ${list("Set and read", matches(found.read))}
    ${list("Unknown", matches(found.unknown))}
    ${list("Known to Hadoop, not read by yarnling", matches(found.ignored))}
    <details ?open=${Boolean(wanted)}><summary>Not set: ${matches(found.defaulted).length} defaults</summary>${list("Not set: defaults", matches(found.defaulted))}</details>`;
}

function list(heading, entries) {
  if (!entries.length) return nothing;
  return html`<h3>${heading} (${entries.length})</h3><div class="scroll"><table>
    <thead><tr><th>Key</th><th>Value</th><th>From</th><th>Meaning</th></tr></thead>
    <tbody>${entries.map(
      (entry) => html`<tr><td class="key">${entry.key}</td><td class="key">${entry.value}</td><td>${entry.origin ?? ""}</td>
        <td>${entry.meaning ?? (entry.nearest ? `did you mean ${entry.nearest}?` : "")}</td></tr>`
    )}</tbody></table></div>`;
}
