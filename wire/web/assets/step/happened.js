// What happened in a step, and the steps around it.
import { html, nothing } from "/static/vendor/lit-html.js";

const MARKS = {
  note: "!", lost: "✗", preempted: "✗", placed: "+", refused: "–", released: "-", state: "•", effect: "→", reply: "←", then: "»",
};
const WORDS = {
  note: "change", lost: "lost", preempted: "preempted", placed: "placed", refused: "refused", released: "released",
  state: "new state", effect: "effect", reply: "reply", then: "then",
};
const seconds = (ms) => `${(ms / 1000).toFixed(3)} s`;

export const happened = ({ step }) => step ? now(step)
  : html`<div class="now"><h2>Nothing has happened yet</h2><p>Press n for the first event.</p></div>`;

export const around = (state, command) => html`<h3>Steps around it</h3>
  <ol class="trail">${state.around.map((other) => html`<li class=${other.isChange ? "changed" : ""}>
    <button aria-current=${other.number === state.position ? "step" : nothing} @click=${() => command("step", other.number)}>
      <span>${other.number}</span><span>${seconds(other.atMs)}</span><span>${other.place}</span><span title=${other.title}>${other.title}</span>
    </button></li>`)}</ol>`;

// The forks that a page in a file has.
export const whatIf = (state, command) => (state.forks ? html`<h3>What if?</h3>
  <ol class="trail">${state.forks.map((fork, number) => html`<li><button aria-current=${fork.branch === state.current ? "step" : nothing}
    @click=${() => command("what if", number)}><span>${fork.step}</span><span>${seconds(fork.atMs)}</span><span class="done">what if</span>
    <span class="whole">${fork.words}?</span></button></li>`)}</ol>
  ${state.current ? html`<button @click=${() => command("branch", 0)}>Back to the run</button>` : nothing}` : nothing);

// The list of moments; the last one up to the position is the current one.
export function moments(state, command) {
  const current = state.moments.findLastIndex((moment) => moment.step <= state.position);
  return html`<details class="moments" open><summary>Moments</summary>
    ${state.moments.length ? html`<ol class="trail">${state.moments.map((moment, index) => html`<li>
      <button aria-current=${index === current ? "step" : nothing} @click=${() => command("step", moment.step)}>
        <span>${moment.step}</span><span>${seconds(moment.atMs)}</span><span class=${moment.kind}>${moment.kind}</span><span class="whole">${moment.text}</span>
      </button></li>`)}</ol>` : html`<p class="quiet">None so far.</p>`}
    ${state.isComplete || state.forks ? nothing : html`<button @click=${() => command("moments")}>Look further</button>`}</details>`;
}

const now = (step) => html`<div class="now"><p class="when">${seconds(step.atMs)} · ${step.place}</p>
  <h2 role="status">${step.title}</h2>
  ${step.lines.length || step.isChange ? nothing : html`<p class="quiet">Nothing came of it.</p>`}
  <ul class="lines">${step.lines.map(({ kind, text }) => html`<li class=${kind}>
    <span class="mark" aria-hidden="true">${MARKS[kind]}</span><span class="hidden">${WORDS[kind]}: </span>${text}</li>`)}</ul>
  ${step.fields ? html`<details><summary>fields of the event</summary><pre>${step.fields}</pre></details>` : nothing}</div>`;
