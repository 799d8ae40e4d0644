// Steps through a simulated run: the keys and buttons, and what the server answers to each command.
import { html, nothing, render } from "/static/vendor/lit-html.js";
import { command as carryOut, load as loaded } from "/static/step/source.js";
import { around, happened, moments, whatIf } from "/static/step/happened.js";
import { cluster } from "/static/step/cluster.js";

// [command, words, key]
const MOVES = [
  ["back", "Back", "b"], ["next", "Next event", "n"], ["moment", "Next moment", "m"], ["heartbeat", "Next heartbeat", "h"], ["change", "Next change", "c"],
];
const KEYS = new Map([
  ...MOVES.map(([command, , key]) => [key, command]),
  [" ", "next"], ["Backspace", "back"], ["ArrowRight", "next"], ["ArrowLeft", "back"],
  ["H", "previous heartbeat"], ["C", "previous change"], ["M", "previous moment"], ["Home", "start"], ["End", "end"],
]);
const part = (name) => document.getElementById(name);
let state = null;
let said = "";
let isBusy = false;
let isPlaying = false;
const PLAY_MS = 400; // between two events while the run is played

async function load() {
  try {
    state = await loaded();
  } catch (error) {
    said = `the run cannot be reached: ${error.message}`;
  }
  draw();
}

async function command(name, argument = "") {
  if (isBusy) return false;
  isBusy = true;
  let isDone = false;
  try {
    state = await carryOut(name, String(argument));
    said = state.said;
    isDone = true;
  } catch (error) {
    said = error.message;
  }
  isBusy = false;
  if (said) isPlaying = false;
  draw();
  return isDone;
}

function play() {
  isPlaying = !isPlaying;
  draw();
}

async function submitted(event, name) {
  event.preventDefault();
  const field = event.currentTarget.elements.argument;
  if (field.value.trim() && (await command(name, field.value))) {
    field.value = "";
    field.blur();
  }
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  if (event.key === " " && event.target.closest("button, summary, a")) return;
  if (event.key === "p") {
    play();
    return;
  }
  if (event.key === "f" || event.key === "k" || event.key === "g") {
    event.preventDefault();
    const field = document.querySelector(event.key === "g" ? "form.time input" : "form.fork input");
    if (event.key === "k" && field) field.value = "kill ";
    field?.focus();
    return;
  }
  const node = /^[1-9]$/.test(event.key) && state?.view.nodes[event.key - 1];
  if (node) {
    command("heartbeat", node.name);
    return;
  }
  const name = KEYS.get(event.key);
  if (!name) return;
  event.preventDefault();
  command(name);
}

const seconds = (ms) => `${(ms / 1000).toFixed(3)} s`;

const toolbar = () => html`<div class="toolbar" role="toolbar" aria-label="Move through the run">
    ${MOVES.map(([name, words, key]) => html`<button @click=${() => command(name)}>${words}<kbd>${key}</kbd></button>`)}
    <button class="play" aria-pressed=${isPlaying} @click=${play}>${isPlaying ? "Pause" : "Play"}<kbd>p</kbd></button>
    <form class="time" @submit=${(event) => submitted(event, "time")}>
      <input name="argument" aria-label="Go to a time, in seconds" placeholder="12.5 s" inputmode="decimal" autocomplete="off">
      <button>Go<kbd>g</kbd></button></form>
    ${state?.forks ? nothing : html`<form class="fork" @submit=${(event) => submitted(event, "fork")}>
      <input name="argument" aria-label="A change, with which another run goes on from here" maxlength="500" autocomplete="off"
        placeholder="kill n2, or: submit eve containers=4">
      <button>Fork<kbd>f</kbd></button></form>`}
  </div>`;

const runs = () => (state.branches.length < 2 ? (state.repeated.includes("--change") ? state.branches[0] : nothing) : html`<label>run
    <select @change=${(event) => command("branch", event.target.value)}>
      ${state.branches.map((name, index) => html`<option value=${index} ?selected=${index === state.current}>${index + 1}: ${name}</option>`)}
    </select></label>`);

// True if the run can go on with this change from here: always with a server, else if the page has the fork.
const canFork = (text) => !state.forks
  || (state.current === 0 && state.forks.some((fork) => fork.step === state.position && fork.text === text));

function draw() {
  if (state) document.title = `${state.position}: ${state.title}`;
  render(
    html`<div class="top"><h1><strong>${state ? state.title : "Step through a run"}</strong></h1>
        ${state ? html`<span class="state">step ${state.position}${state.isComplete ? ` of ${state.known}` : ""}, ${seconds(state.atMs)} ${runs()}</span>` : nothing}</div>
      ${toolbar()}<p class="said" role="alert">${said}</p>`,
    part("header")
  );
  if (!state) return;
  render(html`<div class="columns"><section class="what" aria-label="What happened">${happened(state)}</section>
    <section class="cluster" aria-label="The cluster after it">${cluster(state.view, command, canFork)}</section>
    <section class="around" aria-label="Other steps">${around(state, command)}${whatIf(state, command)}${moments(state, command)}</section></div>`, part("main"));
  render(html`<p>The same in a terminal: <code class="repeat">${state.repeated}</code></p>
    ${state.forks ? html`<p>This page is a file and needs no server. With yarnling, any change can be made at any step.</p>` : html`<p>Changes: <code>kill</code>, <code>start</code>, <code>pause</code>, <code>resume</code>, <code>remove</code>, <code>cut</code> or <code>join</code> a node (<code>n2</code>);
    <code>kill rm</code>, <code>start rm</code>; <code>kill</code> an application or a container; <code>submit eve queue=a containers=4 memory=2048 seconds=30</code>;
    <code>set root.a.capacity=30 root.b.capacity=70</code>.</p>`}`, part("footer"));
}

part("main").replaceChildren();
document.addEventListener("keydown", pressed);
addEventListener("focus", load);
setInterval(() => isPlaying && command("next"), PLAY_MS);
load();
