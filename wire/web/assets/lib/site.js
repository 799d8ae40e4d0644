// What the pages of both daemons share: which path shows which view, when it is drawn again, and the header.
import { html, nothing, render } from "/static/vendor/lit-html.js";

const REFRESH_MS = 5000;
const main = document.getElementById("main");
const cluster = document.body.dataset.cluster; // its name, "" if it has none

// `routes`: [pattern, view, menu entry]; `menu`: [name, path].
// A view has load(params) -> data, view(data, params, draw) -> template and title(params). Returns `draw` and `reached`.
export function site({ name, routes, menu }) {
  let shown = 0;
  let isReached = true;
  let last = null; // {view, data} of what is drawn

  function route() {
    for (const [pattern, view, entry] of routes) {
      const found = location.pathname.match(pattern);
      if (found) return { view, entry, params: { ...found.groups, query: new URLSearchParams(location.search) } };
    }
    return null;
  }

  function drawHeader() {
    const entry = route()?.entry;
    const state = isReached ? "live" : html`<span class="bad">not reached: what is shown may be old</span>`;
    render(
      html`<div class="top"><h1>${cluster ? html`<strong>${cluster}</strong> · ` : nothing}${name}${cluster ? nothing : html` <span class="quiet">${location.host}</span>`}</h1><span class="state" role="status">${state}</span></div>
        <nav aria-label="Pages"><ul>${menu.map(
          ([text, path]) => html`<li><a href=${path} aria-current=${text === entry ? "page" : nothing}>${text}</a></li>`
        )}</ul></nav>`,
      document.getElementById("header")
    );
  }

  // Draws the page that the address names; with `isNew` false from the data that is there, as after a change of a filter.
  // An answer that comes after the reader has moved on is dropped.
  async function draw(isNew = true) {
    const found = route();
    if (!isNew && last && last.view === found?.view) {
      render(found.view.view(last.data, found.params, draw), main);
      return;
    }
    const number = ++shown;
    drawHeader();
    if (!found) {
      render(html`<h2>No such page</h2><p>${location.pathname}</p>`, main);
      return;
    }
    try {
      const data = await found.view.load(found.params);
      if (number !== shown) return;
      document.title = [found.view.title(found.params), cluster].filter(Boolean).join(" · ");
      last = { view: found.view, data };
      render(found.view.view(data, route().params, draw), main);
    } catch (error) {
      if (number === shown) render(html`<p class="error" role="alert">Cannot show this page: ${error.message}</p>`, main);
    }
  }

  function follow(event) {
    const link = event.target.closest?.("a[href]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    const url = new URL(link.getAttribute("href"), location.href);
    if (url.origin !== location.origin || !routes.some(([pattern]) => pattern.test(url.pathname)) || url.hash) return;
    event.preventDefault();
    history.pushState(null, "", url);
    main.focus();
    draw();
  }

  function reached(value) {
    if (value === isReached) return;
    isReached = value;
    drawHeader();
  }

  main.replaceChildren();
  document.addEventListener("click", follow);
  addEventListener("popstate", draw);
  setInterval(() => document.visibilityState === "visible" && draw(), REFRESH_MS);
  draw();
  return { draw, reached };
}

export const footer = (template) => render(template, document.getElementById("footer"));
