"use strict";
// The controls, the keyboard, and the fields of what is selected.

const byId = (id) => document.getElementById(id);
const details = byId("details");
const HOSTS_SHOWN = 14;

function element(name, text, parent, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  if (parent) parent.append(made);
  return made;
}

function refresh({ keep = true } = {}) {
  const time = keep && shown ? timeAtTop() : 0;
  layOut(view.trueToTime, view.scale);
  view.chosen = -1;
  details.replaceChildren();
  measure();
  scroller.scrollTop = keep ? placeOf(time) * unit() / ratio() : 0;
  draw();
  summarize();
}

function timeAtTop() {
  const index = lowerBound(shown.places, view.top / unit());
  return index < shown.times.length ? shown.times[index] : 0;
}

const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

function summarize() {
  const messages = shown.items.filter((item) => item.kind === MESSAGE).length;
  const quiet = QUIET.reduce((sum, one) => sum + one, 0);
  const gone = SENT.reduce((sum, _, i) => sum + (isLost(i) && !wanted.hosts.has(SOURCE[i])), 0);
  const hidden = wanted.quiet || !quiet ? ""
    : ` ${counted(quiet, "heartbeat")} without news ${quiet === 1 ? "is" : "are"} hidden.`;
  byId("summary").textContent = `${(data.length / 1000).toFixed(1)} s, ${counted(data.lifelines.length, "host")}, `
    + `${counted(SENT.length, "call")}, ${gone} lost or refused; shown: ${counted(messages, "call")}, `
    + `${shown.items.length - messages} state changes and decisions.${hidden}`
    + (data.notes.length ? ` ${data.notes.join(" ")}` : "");
}

// A menu of checkboxes. `entries`: [key, text]; `hidden`: the set of keys that are switched off.
function menu(id, entries, hidden) {
  const box = byId(id).querySelector("div");
  const all = element("label", undefined, box), every = element("input", undefined, all);
  every.type = "checkbox"; every.checked = hidden.size === 0; all.append(" all");
  const boxes = entries.map(([key, text, set = hidden]) => {
    const one = element("label", undefined, box), input = element("input", undefined, one);
    input.type = "checkbox"; input.checked = !set.has(key); one.append(` ${text}`);
    input.addEventListener("change", () => { if (input.checked) set.delete(key); else set.add(key); refresh(); });
    return [input, key, set];
  });
  every.addEventListener("change", () => {
    for (const [input, key, set] of boxes) { input.checked = every.checked; if (every.checked) set.delete(key); else set.add(key); }
    refresh();
  });
}

function counts(numbers, keep = () => true) {
  const found = new Map();
  numbers.forEach((number, i) => { if (keep(i)) found.set(texts[number], (found.get(texts[number]) ?? 0) + 1); });
  return [...found].sort();
}

function hideMany() {
  if (data.lifelines.length - wanted.hosts.size <= HOSTS_SHOWN) return;
  const active = data.lifelines.map(() => 0);
  SENT.forEach((_, i) => { if (!QUIET[i]) { active[SOURCE[i]]++; active[TARGET[i]]++; } });
  const order = data.lifelines.map((_, host) => host).sort((a, b) => active[b] - active[a] || a - b);
  const kept = new Set([RM, ...order.filter((host) => !wanted.hosts.has(host)).slice(0, HOSTS_SHOWN - 1)]);
  order.forEach((host) => { if (!kept.has(host)) wanted.hosts.add(host); });
  data.notes.push(`The ${kept.size} busiest hosts of ${data.lifelines.length} are shown; choose others under Hosts.`);
}

function choose(index, { scroll = true } = {}) {
  if (index < 0 || index >= shown.items.length) return;
  view.chosen = index;
  const item = shown.items[index];
  if (scroll) {
    const place = item.first * unit();
    if (place < view.top + 30 || place > view.top + view.height - 80) scroller.scrollTop = (place - view.height / 3) / ratio();
  }
  draw();
  describe(item);
}

const seconds = (time) => `${(time / 1000).toFixed(3)} s`;

function close() { view.chosen = -1; details.replaceChildren(); draw(); }

function describe({ kind, number: i }) {
  details.replaceChildren();
  const host = kind === MESSAGE ? TARGET[i] : kind === CHANGE ? C_HOST[i] : RM;
  details.classList.toggle("left", view.columns[host] > view.wide / 2);
  const button = element("button", "\u00d7", details);
  button.setAttribute("aria-label", "Close the fields");
  button.addEventListener("click", close);
  if (kind !== MESSAGE) {
    const [at, text, label, detail] = kind === CHANGE ? [C_AT, "State", C_LABEL, C_DETAIL] : [D_AT, "Scheduler", D_LABEL, D_DETAIL];
    element("h2", `${text}: ${texts[label[i]]}`, details);
    element("p", `at ${seconds(at[i])}`, details);
    element("pre", texts[detail[i]], details);
    return;
  }
  element("h2", texts[ASKED[i]], details);
  element("p", `${data.lifelines[SOURCE[i]].name} \u2192 ${data.lifelines[TARGET[i]].name}`, details);
  element("p", data.outcomes[OUTCOME[i]] + (ARRIVALS[i] > 1 ? `; the request arrived ${ARRIVALS[i]} times` : ""), details, isLost(i) ? "bad" : "");
  const times = [`sent ${seconds(SENT[i])}`];
  for (const [name, after] of [["arrived", ARRIVED], ["replied", REPLIED], [isLost(i) ? "given up" : "answered", OVER]])
    if (after[i] >= 0) times.push(`${name} ${seconds(SENT[i] + after[i])}`);
  element("pre", times.join("\n"), details);
  if (ID[i] >= 0) element("p", `response id ${ID[i]}`, details);
  for (const [title, text] of [["Request", texts[REQUEST[i]]], [isLost(i) ? "Error" : "Reply", texts[REPLY[i]]]])
    if (text) { element("h3", title, details); element("pre", text, details); }
}

function nextLost() {
  const length = shown.items.length;
  for (let step = 1; step <= length; step++) {
    const index = (view.chosen + step) % length, item = shown.items[index];
    if (item.kind === MESSAGE && isLost(item.number)) return choose(index);
  }
  details.replaceChildren(element("p", "No message that is shown was lost or refused."));
}

// Goes to a moment: its item if that is shown, or else its time. `moment`: its number.
function goTo(moment, { describes = true } = {}) {
  const [time, , , kind, number] = data.moments[moment];
  view.moment = moment;
  measure();
  const index = shown.items.findIndex((item) => item.kind === kind && item.number === number);
  const place = (index < 0 ? placeOf(time) : shown.items[index].first) * unit();
  scroller.scrollTop = Math.max(0, place - view.height / 3) / ratio();
  view.top = scroller.scrollTop * ratio();
  const column = view.columns[kind === MESSAGE ? SOURCE[number] : kind === CHANGE ? C_HOST[number] : RM] ?? -1;
  const isSeen = column > scroller.scrollLeft + GUTTER && column < scroller.scrollLeft + view.width - 2 * COLUMN_MIN;
  if (column >= 0 && !isSeen) scroller.scrollLeft = Math.max(0, column - view.width / 3);
  if (index >= 0 && describes) return choose(index, { scroll: false });
  close();
}

const nextMoment = () => { if (data.moments.length) goTo((view.moment + 1) % data.moments.length); };

function listMoments() {
  const box = byId("moments").querySelector("div");
  if (!data.moments.length) element("p", "There is none in this run.", box);
  data.moments.forEach(([time, kind, text], moment) => {
    const button = element("button", `${seconds(time)} `, box);
    button.type = "button";
    element("b", kind, button);
    button.append(` ${text}`);
    button.addEventListener("click", () => { byId("moments").open = false; goTo(moment); });
  });
}

function zoom(factor) {
  if (view.trueToTime) view.scale = Math.min(200, Math.max(0.001, view.scale * factor));
  else view.row = Math.min(60, Math.max(9, view.row * (factor > 1 ? 1.2 : 1 / 1.2)));
  refresh();
}

function setTrueToTime(on) {
  view.trueToTime = byId("true-time").checked = on;
  refresh();
}

function setQuiet(on) { wanted.quiet = byId("quiet").checked = on; refresh(); }

const KEYS = {
  ArrowDown: () => choose(view.chosen < 0 ? firstVisible() : view.chosen + 1), ArrowUp: () => choose(Math.max(0, view.chosen - 1)),
  Home: () => choose(0), End: () => choose(shown.items.length - 1), "+": () => zoom(1.5), "-": () => zoom(1 / 1.5),
  t: () => setTrueToTime(!view.trueToTime), h: () => setQuiet(!wanted.quiet), n: nextLost, m: nextMoment, Escape: close,
};

const firstVisible = () => lowerBound(shown.items, view.top / unit(), (item) => item.first);

scroller.addEventListener("keydown", (event) => {
  const action = KEYS[event.key];
  if (!action || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  action();
});

picture.addEventListener("click", (event) => {
  const x = event.offsetX + scroller.scrollLeft, place = (event.offsetY + view.top - 22) / unit();
  const reach = 12 / unit();
  let best = -1, distance = Infinity;
  for (const index of between(place - reach, place + reach)) {
    const item = shown.items[index];
    const from = item.kind === MESSAGE ? view.columns[SOURCE[item.number]] : view.columns[item.kind === CHANGE ? C_HOST[item.number] : RM];
    const to = item.kind === MESSAGE ? view.columns[TARGET[item.number]] : from + view.column;
    const aside = Math.max(0, Math.min(from, to) - x, x - Math.max(from, to));
    const off = Math.min(...item.points.filter((one) => one >= 0).map((one) => Math.abs(one - place))) * unit() + aside;
    if (off < distance) { distance = off; best = index; }
  }
  if (best >= 0 && distance < 20) choose(best, { scroll: false });
});

let isDrawing = false;
scroller.addEventListener("scroll", () => {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => { isDrawing = false; draw(); });
});
new ResizeObserver(() => { measure(); draw(); }).observe(scroller);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); draw(); });

const seconds_of = (input, none) => (input.value === "" ? none : Number(input.value) * 1000);
byId("from").addEventListener("change", (event) => { wanted.from = seconds_of(event.target, 0); refresh(); });
byId("to").addEventListener("change", (event) => { wanted.to = seconds_of(event.target, Infinity); refresh(); });
byId("quiet").addEventListener("change", (event) => setQuiet(event.target.checked));
byId("true-time").addEventListener("change", (event) => setTrueToTime(event.target.checked));
byId("application").addEventListener("change", (event) => { wanted.app = event.target.value; refresh(); });
byId("find").addEventListener("change", (event) => { wanted.find = event.target.value.trim().toLowerCase(); refresh(); });
byId("in").addEventListener("click", () => zoom(1.5));
byId("out").addEventListener("click", () => zoom(1 / 1.5));
byId("moment").addEventListener("click", nextMoment);
byId("lost").addEventListener("click", nextLost);
byId("controls").addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("click", (event) => {
  for (const one of document.querySelectorAll(".menu[open]")) if (!one.contains(event.target)) one.open = false;
});

hideMany();
menu("hosts", data.lifelines.map((one, host) => [host, one.title === one.name ? one.name : `${one.title} (${one.name})`]), wanted.hosts);
menu("rpcs", counts(RPC).map(([name, count]) => [name, `${name} (${count})`]), wanted.rpcs);
menu("marks", [...counts(C_KIND).map(([name, count]) => [name, `${name} (${count})`, wanted.kinds]),
  ...counts(D_WHAT).map(([name, count]) => [name, `${name} (${count})`, wanted.whats])], wanted.kinds);
for (const [id, name] of Object.entries(data.applications)) element("option", name, byId("application")).value = id;
listMoments();
readColours();
refresh({ keep: false });
if (data.opening >= 0) goTo(data.opening, { describes: false });
