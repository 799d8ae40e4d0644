// Long names, shortened in the middle where they do not differ from one another.
import { html } from "/static/vendor/lit-html.js";

const END_MIN = 4; // characters that are kept at each end
const SEPARATOR = /[^\p{L}\p{N}]/u;

// {name: shortened}. Names of at most `most` characters stay as they are, and no two become the same.
export function shortened(names, most) {
  const sorted = [...new Set(names)].sort();
  const found = new Map(sorted.map((name, index) => [name, shorten(name, [sorted[index - 1], sorted[index + 1]], most)]));
  const counts = new Map();
  for (const short of found.values()) counts.set(short, (counts.get(short) ?? 0) + 1);
  for (const [name, short] of found) if (counts.get(short) > 1) found.set(name, name);
  return found;
}

// The same for paths of queues: each part among those at its level, so that a reader sees where the queue is.
export function shortenedPaths(paths, most) {
  const split = [...new Set(paths)].map((path) => path.split("."));
  const levels = Math.max(1, ...split.map((parts) => parts.length - 1));
  const each = Math.max(2 * END_MIN + 3, Math.floor((most - "root".length) / levels) - 1);
  const shorts = Array.from({ length: levels + 1 }, (_, level) => shortened(split.map((parts) => parts[level]).filter(Boolean), each));
  return new Map(split.map((parts) => [parts.join("."), parts.map((part, level) => shorts[level].get(part)).join(".")]));
}

// Cuts in the middle; if a neighbour in the order differs there, before or after that word, or on both sides of it.
function shorten(name, neighbours, most) {
  if (name.length <= most) return name;
  const cut = name.length - most + 1;
  const [from, until] = difference(name, neighbours.filter(Boolean));
  const middle = Math.floor((name.length - cut) / 2);
  const at = [middle, from - cut, until].find(
    (place) => place >= END_MIN && place + cut <= name.length - END_MIN && (place + cut <= from || place >= until)
  );
  if (at !== undefined) return `${name.slice(0, at)}…${name.slice(at + cut)}`;
  const ends = most - (until - from) - 2;
  if (ends < 2 * END_MIN || from < ends / 2 || name.length - until < ends / 2) return `${name.slice(0, middle)}…${name.slice(middle + cut)}`;
  return `${name.slice(0, Math.ceil(ends / 2))}…${name.slice(from, until)}…${name.slice(name.length - Math.floor(ends / 2))}`;
}

// The words of the name, from and until, in which it differs from its neighbours.
function difference(name, neighbours) {
  let [from, until] = [name.length, 0];
  for (const other of neighbours) {
    const start = commonStart(name, other);
    if (start < END_MIN) continue; // the beginning, which is kept, tells them apart
    const end = commonStart(reversed(name.slice(start)), reversed(other.slice(start)));
    [from, until] = [Math.min(from, start), Math.max(until, name.length - end)];
  }
  while (from > 0 && from < name.length && !SEPARATOR.test(name[from - 1])) from--;
  while (until > 0 && until < name.length && !SEPARATOR.test(name[until])) until++;
  return [from, until];
}

const reversed = (text) => [...text].reverse().join("");

function commonStart(one, other) {
  let length = 0;
  while (length < one.length && length < other.length && one[length] === other[length]) length++;
  return length;
}

// A name in its short form; the whole one is shown on demand, and read to those who do not see the page.
export const named = (name, short = name) => (short === name ? name : html`<abbr title=${name} aria-label=${name}>${short}</abbr>`);
