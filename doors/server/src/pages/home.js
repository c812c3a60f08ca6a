"use strict";
const SHOWN_MAX = 50;
const by = (id) => document.getElementById(id);
const made = (tag, text, kind) => {
  const element = document.createElement(tag);
  element.textContent = text;
  if (kind) element.className = kind;
  return element;
};

function change(store, { key, kind }) {
  const line = document.createElement("li");
  line.append(made("span", kind, "kind " + kind), made("span", key, "key"), made("span", store, "where"));
  by("changes").prepend(line);
  while (by("changes").children.length > SHOWN_MAX) by("changes").lastChild.remove();
  by("none").hidden = true;
}

function watch(store) {
  const events = new EventSource(`/v1/stores/${encodeURIComponent(store)}/watch`);
  events.addEventListener("changed", (event) => {
    for (const one of JSON.parse(event.data).changes) change(store, one);
  });
}

async function start() {
  const answer = await fetch("/v1/stores");
  const stores = by("stores");
  stores.replaceChildren();
  if (!answer.ok) {
    stores.append(made("dt", "Private"), made("dd", "This server asks for a credential."));
    by("none").textContent = "Changes are shown where no credential is needed.";
    by("try").textContent = `curl -H 'Authorization: Bearer kw_…' ${location.origin}/v1/stores`;
    return;
  }
  const { items } = await answer.json();
  for (const { name, engine, tier, spaces, watch: can } of items) {
    const about = [engine, tier];
    if (spaces.length) about.push(spaces.length + (spaces.length === 1 ? " space" : " spaces"));
    stores.append(made("dt", name), made("dd", about.join(" · ")));
    if (can) watch(name);
  }
  const name = items.length ? items[0].name : "main";
  const at = `${location.origin}/v1/stores/${name}/entries/hello:world`;
  by("try").textContent = `curl -X PUT ${at} \\\n     -H 'content-type: application/json' -d '{"from":"me"}'\ncurl ${at}`;
}

start();
