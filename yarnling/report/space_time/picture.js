"use strict";
// Draws the rows that are visible.

const scroller = document.getElementById("scroller"), spacer = document.getElementById("spacer");
const picture = document.getElementById("picture"), names = document.getElementById("names");
const GUTTER = 74, COLUMN_MIN = 84, NAMES_HEIGHT = 30, HEIGHT_MAX = 8e6, FONT = "12px system-ui, sans-serif";
const view = { row: 17, trueToTime: false, scale: 2, chosen: -1, moment: -1, top: 0, width: 0, height: 0, columns: [], wide: 0 };
const colours = {};

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ground", "ink", "muted", "rule", "soft", "node", "app", "start", "client", "lost", "state", "decision",
    "fault", "fault-ink", "chosen"]) colours[name] = style.getPropertyValue(`--${name}`).trim();
}

const unit = () => (view.trueToTime ? 1 : view.row);
const total = () => shown.height * unit() + 40;
const y = (place) => place * unit() + 22 - view.top;

function context(canvas, width, height) {
  const density = window.devicePixelRatio || 1;
  canvas.width = width * density; canvas.height = height * density;
  canvas.style.width = `${width}px`; canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(density, density);
  pen.font = FONT;
  return pen;
}

function measure() {
  const hosts = data.lifelines.map((_, index) => index).filter((index) => !wanted.hosts.has(index));
  view.width = scroller.clientWidth; view.height = scroller.clientHeight;
  const width = Math.max(COLUMN_MIN, (view.width - GUTTER - 8) / Math.max(1, hosts.length));
  view.wide = GUTTER + width * hosts.length;
  view.column = width;
  view.columns = data.lifelines.map(() => -1);
  hosts.forEach((host, place) => { view.columns[host] = GUTTER + width * (place + 0.5); });
  spacer.style.height = `${Math.min(HEIGHT_MAX, Math.max(view.height, total()))}px`;
  spacer.style.width = `${Math.max(view.width, view.wide)}px`;
}

// A browser's scroll bar ends at some millions of pixels: beyond that it stands for more than a pixel each.
const ratio = () => Math.max(1, (total() - view.height) / Math.max(1, Math.min(HEIGHT_MAX, total()) - view.height));

function draw() {
  view.top = scroller.scrollTop * ratio();
  const pen = context(picture, view.width, view.height);
  pen.fillStyle = colours.ground; pen.fillRect(0, 0, view.width, view.height);
  pen.translate(-scroller.scrollLeft, 0);
  const top = (view.top - 40) / unit(), bottom = (view.top + view.height + 40) / unit();
  drawFaults(pen);
  drawLifelines(pen);
  const visible = [...between(top, bottom)];
  for (const index of visible) if (shown.items[index].kind === MESSAGE) drawMessage(pen, index);
  for (const index of visible) if (shown.items[index].kind !== MESSAGE) drawMark(pen, index);
  const spots = view.trueToTime ? new Map() : null;
  for (const index of visible) drawLabels(pen, index, spots);
  drawFaultNames(pen);
  drawGaps(pen, top, bottom);
  drawTimes(pen, top, bottom);
  drawNames();
}

function drawNames() {
  const pen = context(names, view.width, NAMES_HEIGHT);
  pen.fillStyle = colours.soft; pen.fillRect(0, 0, view.width, NAMES_HEIGHT);
  pen.save();
  pen.translate(-scroller.scrollLeft, 0);
  pen.textAlign = "center"; pen.font = "600 13px system-ui, sans-serif"; pen.fillStyle = colours.ink;
  data.lifelines.forEach((one, host) => {
    if (view.columns[host] >= 0) pen.fillText(one.title, view.columns[host], 20, view.column - 8);
  });
  pen.restore();
  pen.fillStyle = colours.soft; pen.fillRect(0, 0, GUTTER - 6, NAMES_HEIGHT);
  pen.fillStyle = colours.muted; pen.font = FONT; pen.fillText("time in s", 8, 20);
}

function drawLifelines(pen) {
  view.columns.forEach((x, host) => {
    if (x < 0) return;
    const [from, until] = lives[host].map((time) => y(placeOf(time)));
    pen.strokeStyle = colours.rule; pen.lineWidth = 1; line(pen, x, 0, x, view.height);
    pen.strokeStyle = colours.muted; pen.lineWidth = 2.5; pen.globalAlpha = 0.7;
    if (until > 0 && from < view.height) line(pen, x, Math.max(0, from), x, Math.min(view.height, until));
    pen.globalAlpha = 1;
  });
}

// The bands of the faults that are in sight: [x, width] of each, and where it begins and ends.
function* faultBands() {
  for (const fault of data.faults) {
    const from = y(placeOf(fault.from)) - 8 - (view.trueToTime ? 0 : unit());
    const until = fault.until === null ? from + 18 : Math.max(from + 6, y(placeOf(fault.until)));
    if (until < 0 || from > view.height) continue;
    const spans = fault.hosts.length ? fault.hosts.filter((host) => view.columns[host] >= 0)
      .map((host) => [view.columns[host] - view.column / 2 + 3, view.column - 6]) : [[GUTTER, view.wide - GUTTER]];
    for (const [x, width] of spans) yield { fault, from, until, x, width };
  }
}

function drawFaults(pen) {
  for (const { fault, from, until, x, width } of faultBands()) {
    pen.fillStyle = colours.fault; pen.fillRect(x, from, width, until - from);
    pen.strokeStyle = colours["fault-ink"]; pen.lineWidth = 1; line(pen, x, from, x + width, from);
    if (fault.until !== null) line(pen, x, until, x + width, until);
    pen.fillStyle = colours["fault-ink"]; pen.textAlign = "left"; pen.font = FONT;
    if (fault.until !== null && until < view.height) pen.fillText("ends", x + 4, until - 3, width - 6);
  }
}

// The name of each fault at the top of its band; one that is longer than the band is wide begins left of it.
function drawFaultNames(pen) {
  pen.font = FONT; pen.lineJoin = "round"; pen.textAlign = "left";
  for (const { fault, from, until, x, width } of faultBands()) {
    const left = Math.max(GUTTER + scroller.scrollLeft, Math.min(x + 4, x + width - 2 - pen.measureText(fault.text).width));
    const base = Math.min(Math.max(from, 0) + 13, until - 2);
    pen.strokeStyle = colours.fault; pen.lineWidth = 3.5; pen.strokeText(fault.text, left, base);
    pen.fillStyle = colours["fault-ink"]; pen.fillText(fault.text, left, base);
  }
}

function line(pen, x1, y1, x2, y2) { pen.beginPath(); pen.moveTo(x1, y1); pen.lineTo(x2, y2); pen.stroke(); }

function arrow(pen, x1, y1, x2, y2) {
  line(pen, x1, y1, x2, y2);
  const angle = Math.atan2(y2 - y1, x2 - x1), size = 7;
  pen.beginPath(); pen.moveTo(x2, y2);
  pen.lineTo(x2 - size * Math.cos(angle - 0.4), y2 - size * Math.sin(angle - 0.4));
  pen.lineTo(x2 - size * Math.cos(angle + 0.4), y2 - size * Math.sin(angle + 0.4));
  pen.closePath(); pen.fill();
}

// A line that ends on its way, with a cross.
function lost(pen, x1, y1, x2, y2) {
  const x = x1 + (x2 - x1) * 0.55, end = y1 + (y2 - y1) * 0.55;
  pen.strokeStyle = colours.lost; pen.setLineDash([5, 4]); line(pen, x1, y1, x, end); pen.setLineDash([]);
  pen.lineWidth = 2.4; line(pen, x - 5, end - 5, x + 5, end + 5); line(pen, x - 5, end + 5, x + 5, end - 5);
}

function drawMessage(pen, index) {
  const { number: i, points, first, last } = shown.items[index];
  const x1 = view.columns[SOURCE[i]], x2 = view.columns[TARGET[i]];
  const bad = isLost(i);
  if (index === view.chosen) {
    pen.fillStyle = colours.chosen;
    pen.fillRect(Math.min(x1, x2), y(first) - 8, Math.abs(x2 - x1), y(last) - y(first) + 16);
  }
  const [sent, arrived, replied, over] = points.map((place) => (place < 0 ? null : y(place)));
  const slope = view.row * 0.9;
  pen.strokeStyle = pen.fillStyle = colours[family(i)]; pen.lineWidth = index === view.chosen ? 2.6 : 1.6;
  if (arrived !== null) arrow(pen, x1, sent, x2, arrived);
  else if (OUTCOME[i] !== UNDER_WAY) lost(pen, x1, sent, x2, sent + slope);
  else line(pen, x1, sent, (x1 + x2) / 2, sent + slope / 2);
  if (replied === null) return;
  pen.lineWidth = index === view.chosen ? 2.2 : 1.1; pen.globalAlpha = 0.85;
  if (over !== null && (!bad || texts[SAID[i]] !== "" && data.outcomes[OUTCOME[i]] === "refused")) {
    pen.strokeStyle = pen.fillStyle = bad ? colours.lost : colours[family(i)];
    pen.setLineDash([4, 3]); arrow(pen, x2, replied, x1, over); pen.setLineDash([]);
  } else if (OUTCOME[i] !== UNDER_WAY) lost(pen, x2, replied, x1, replied + slope);
  pen.globalAlpha = 1;
  if (over !== null && bad) { pen.fillStyle = colours.lost; pen.fillRect(x1 - 4, over - 4, 8, 8); }
}

function drawMark(pen, index) {
  const { kind, number: i, first } = shown.items[index], place = y(first);
  const x = view.columns[kind === CHANGE ? C_HOST[i] : RM];
  pen.fillStyle = index === view.chosen ? colours.chosen : colours.ground;
  if (index === view.chosen) pen.fillRect(x - 8, place - 8, view.column, 16);
  pen.fillStyle = kind === CHANGE ? colours.state : colours.decision;
  pen.beginPath();
  if (kind === CHANGE) pen.arc(x, place, 4.5, 0, 7); else pen.rect(x - 4.5, place - 4.5, 9, 9);
  pen.fill();
}

// Text beside the lifeline at `x`; `towards` is -1 for its left side. With `spots`, only where there is no text yet.
function label(pen, text, x, place, towards, colour, spots) { // place: the middle of the text
  if (!text || place < -10 || place > view.height + 10) return;
  pen.font = FONT;
  const width = pen.measureText(text).width;
  if (spots && !isFree(spots, width, x, place, towards)) return;
  // Where the diagram ends the text moves over the lifeline: better so than cut.
  const left = Math.max(GUTTER + 4, Math.min(towards < 0 ? x - 9 - width : x + 9, Math.max(view.wide, view.width) - width - 2));
  pen.textAlign = "left"; pen.strokeStyle = colours.ground; pen.lineWidth = 3.5; pen.lineJoin = "round";
  pen.strokeText(text, left, place + 3.5);
  pen.fillStyle = colour; pen.fillText(text, left, place + 3.5);
}

// Whether no text is there yet; then this one is. `spots`: {line of text: [from, to] of each text in it}.
function isFree(spots, width, x, place, towards) {
  const from = towards < 0 ? x - width - 9 : x + 9, lines = [Math.floor(place / 7), Math.floor(place / 7) + 1];
  const isTaken = lines.some((one) => (spots.get(one) ?? []).some(([start, end]) => start < from + width && from < end));
  if (isTaken) return false;
  for (const one of lines) spots.set(one, [...(spots.get(one) ?? []), [from, from + width]]);
  return true;
}

function drawLabels(pen, index, spots) {
  const { kind, number: i, points, first } = shown.items[index];
  if (kind === CHANGE) label(pen, texts[C_LABEL[i]], view.columns[C_HOST[i]], y(first), sideOf(C_HOST[i]), colours.state, spots);
  else if (kind === DECISION) label(pen, texts[D_LABEL[i]], view.columns[RM], y(first), sideOf(RM), colours.decision, spots);
  else {
    const x1 = view.columns[SOURCE[i]], x2 = view.columns[TARGET[i]], towards = x2 > x1 ? 1 : -1;
    const bad = isLost(i), colour = bad ? colours.lost : colours[family(i)];
    label(pen, texts[ASKED[i]], x1, y(points[0]) - 7, towards, colour, spots);
    if (bad) label(pen, texts[SAID[i]], points[2] >= 0 ? x2 : x1, y(points[3] >= 0 ? points[3] : points[2] >= 0 ? points[2] : points[0] + 0.8),
      points[2] >= 0 ? -towards : towards, colours.lost, spots);
    else if (points[2] >= 0) label(pen, texts[SAID[i]], x2, y(points[2]) + 6, -towards, colour, spots);
  }
}

// The side of a lifeline on which there is more room for text.
function sideOf(host) { return view.columns[host] > view.wide * 0.72 ? -1 : 1; }

function drawGaps(pen, top, bottom) {
  if (view.trueToTime) return;
  pen.textAlign = "center"; pen.font = FONT;
  for (let i = lowerBound(shown.gaps, top, (gap) => gap[0]); i < shown.gaps.length && shown.gaps[i][0] < bottom; i++) {
    const [place, length] = shown.gaps[i];
    pen.fillStyle = colours.soft; pen.fillRect(GUTTER, y(place) - 7, view.wide - GUTTER, 14);
    pen.fillStyle = colours.muted;
    pen.fillText(`${(length / 1000).toFixed(1)} s without other events`, GUTTER + (Math.min(view.width, view.wide) - GUTTER) / 2 + scroller.scrollLeft, y(place) + 4);
  }
}

function drawTimes(pen, top, bottom) {
  pen.translate(scroller.scrollLeft, 0);
  pen.fillStyle = colours.ground; pen.fillRect(0, 0, GUTTER - 6, view.height);
  pen.fillStyle = colours.muted; pen.textAlign = "right"; pen.font = "12px ui-monospace, monospace";
  let before = null, last = -99;
  for (let i = lowerBound(shown.places, Math.max(0, top)); i < shown.places.length && shown.places[i] < bottom; i++) {
    const time = shown.times[i], place = y(shown.places[i]);
    if (time === before || place - last < 13) continue;
    pen.fillText((time / 1000).toFixed(3), GUTTER - 12, place + 4);
    before = time; last = place;
  }
}
