"use strict";
// The data of the page as items, and which of them are shown in which rows.

const data = JSON.parse(document.getElementById("data").textContent);
const texts = data.texts;
const [SOURCE, TARGET, RPC, SENT, ARRIVED, REPLIED, OVER, OUTCOME, ASKED, SAID, REQUEST, REPLY, APPS, QUIET, ID, ARRIVALS] =
  data.messages.length ? data.messages : Array.from({ length: 16 }, () => []);
const [C_HOST, C_AT, C_KIND, C_LABEL, C_DETAIL, C_APP] = data.changes.length ? data.changes : [[], [], [], [], [], []];
const [D_AT, D_WHAT, D_LABEL, D_DETAIL, D_APP] = data.decisions.length ? data.decisions : [[], [], [], [], []];
const ANSWERED = data.outcomes.indexOf("answered"), UNDER_WAY = data.outcomes.indexOf("under way at the end");
const RM = data.lifelines.findIndex((one) => one.role === "RM");
const MESSAGE = 0, CHANGE = 1, DECISION = 2;
const GAP_MS = 500;

const isLost = (message) => OUTCOME[message] !== ANSWERED && OUTCOME[message] !== UNDER_WAY;

function family(message) {
  const roles = [data.lifelines[SOURCE[message]].role, data.lifelines[TARGET[message]].role];
  if (roles[0] === "CLIENT") return "client";
  if (roles[1] === "NM") return "start";
  return roles[0] === "NM" ? "node" : "app";
}

// [first, last] time at which each host did something.
const lives = data.lifelines.map(() => [Infinity, 0]);
function lived(host, time) { const life = lives[host]; life[0] = Math.min(life[0], time); life[1] = Math.max(life[1], time); }
SENT.forEach((time, i) => {
  lived(SOURCE[i], time); lived(SOURCE[i], time + Math.max(0, OVER[i]));
  if (ARRIVED[i] >= 0) { lived(TARGET[i], time + ARRIVED[i]); lived(TARGET[i], time + Math.max(ARRIVED[i], REPLIED[i])); }
});
C_AT.forEach((time, i) => lived(C_HOST[i], time));

// What the reader wants to see. `hosts`, `rpcs`, `kinds`, `whats`: sets of what is hidden.
const wanted = { hosts: new Set(), rpcs: new Set(), kinds: new Set(), whats: new Set(["released"]), quiet: false,
  app: "", from: 0, to: Infinity, find: "" };

const within = (time) => time >= wanted.from && time <= wanted.to;
const found = (...numbers) => !wanted.find || numbers.some((one) => texts[one].toLowerCase().includes(wanted.find));
const ofApp = (text) => !wanted.app || texts[text].split(" ").includes(wanted.app);

function showsMessage(i) {
  return (wanted.quiet || !QUIET[i]) && within(SENT[i]) && !wanted.hosts.has(SOURCE[i]) && !wanted.hosts.has(TARGET[i])
    && !wanted.rpcs.has(texts[RPC[i]]) && ofApp(APPS[i]) && found(ASKED[i], SAID[i], REQUEST[i], REPLY[i]);
}

// The shown items in the order of their rows: `kinds`, `numbers`, and the `first` and `last` position of each;
// `times` and `places`: of all rows, in order. For a message `points` has four positions: sent, arrived, replied, over.
let shown;

function layOut(trueToTime, scale) {
  const points = [];
  const add = (time, order, kind, number, part) => points.push([time, order, kind, number, part]);
  for (let i = 0; i < SENT.length; i++) {
    if (!showsMessage(i)) continue;
    // Within a millisecond: what arrives, what happens then, what is sent; and each message in its own order.
    add(SENT[i], ARRIVED[i] === 0 ? 0.5 : 4, MESSAGE, i, 0);
    if (ARRIVED[i] >= 0) add(SENT[i] + ARRIVED[i], 1, MESSAGE, i, 1);
    if (REPLIED[i] >= 0) add(SENT[i] + REPLIED[i], 3, MESSAGE, i, 2);
    if (OVER[i] >= 0) add(SENT[i] + OVER[i], OVER[i] === Math.max(0, REPLIED[i]) ? 5 : 0, MESSAGE, i, 3);
  }
  for (let i = 0; i < C_AT.length; i++)
    if (within(C_AT[i]) && !wanted.hosts.has(C_HOST[i]) && !wanted.kinds.has(texts[C_KIND[i]]) && ofApp(C_APP[i])
      && found(C_LABEL[i])) add(C_AT[i], 2, CHANGE, i, 0);
  for (let i = 0; i < D_AT.length; i++)
    if (within(D_AT[i]) && !wanted.hosts.has(RM) && !wanted.whats.has(texts[D_WHAT[i]]) && ofApp(D_APP[i])
      && found(D_LABEL[i], D_DETAIL[i])) add(D_AT[i], 2, DECISION, i, 0);
  points.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2] || a[3] - b[3] || a[4] - b[4]);
  shown = placed(points, trueToTime, scale);
}

function placed(points, trueToTime, scale) {
  const items = new Map(), times = [], places = [], gaps = [];
  const start = points.length ? points[0][0] : 0;
  const starts = data.faults.map((fault) => fault.from).sort((a, b) => a - b);
  let place = 0, before = null, begun = 0;
  for (const point of points) {
    const [time, , kind, number, part] = point;
    if (trueToTime) place = (time - start) * scale;
    else if (before !== null) {
      const sameMessage = kind === MESSAGE && before[2] === MESSAGE && before[3] === number && part === 2 && before[4] === 1;
      if (time - before[0] >= GAP_MS) { gaps.push([place + 1, time - before[0]]); place += 2; }
      else if (!(sameMessage && time === before[0])) place += 1;
      // The text of a message is above it: below that of a state or a decision it needs more room.
      if (kind === MESSAGE && part === 0 && before[2] !== MESSAGE) place += 0.5;
      if (starts[begun] <= time) place += 1; // for the name of the fault
    }
    times.push(time); places.push(place);
    const key = kind * 0x40000000 + number;
    let item = items.get(key);
    if (!item) items.set(key, item = { kind, number, first: place, last: place, points: [-1, -1, -1, -1] });
    item.points[part] = place;
    item.last = place;
    while (starts[begun] <= time) begun++;
    before = point;
  }
  const list = [...items.values()];
  const blocks = [];
  list.forEach((item, index) => { const block = index >> 8; blocks[block] = Math.max(blocks[block] ?? 0, item.last); });
  return { items: list, blocks, times, places, gaps, height: place + 2, start };
}

// The first index whose value is at least `value`, in an ascending array.
function lowerBound(array, value, of = (one) => one) {
  let low = 0, high = array.length;
  while (low < high) { const middle = (low + high) >> 1; if (of(array[middle]) < value) low = middle + 1; else high = middle; }
  return low;
}

function placeOf(time) {
  const index = lowerBound(shown.times, time);
  return index < shown.places.length ? shown.places[index] : shown.height;
}

// The items that reach into the rows from `top` to `bottom`.
function* between(top, bottom) {
  const end = lowerBound(shown.items, bottom, (item) => item.first);
  for (let block = 0; block << 8 < end; block++) {
    if (shown.blocks[block] < top) continue;
    for (let i = block << 8; i < Math.min(end, (block + 1) << 8); i++) if (shown.items[i].last >= top) yield i;
  }
}
