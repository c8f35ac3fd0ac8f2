// The adapter that answers: a menu of those the server lists, hidden where it lists none. The address remembers it.

import { find, make } from "./dom.js";

export class Adapters {
  #onChange;
  #named = new URLSearchParams(location.search).get("adapter") ?? ""; // by the address, until the menu is there

  constructor(onChange) {
    this.#onChange = onChange;
    find("adapter").addEventListener("change", () => this.#remember());
  }

  get value() {
    return find("adapter").value;
  }

  // One that the server does not list may be a hub's, or gone: the server says so itself when it is asked.
  set value(name) {
    const menu = find("adapter");
    if (![...menu.options].some((option) => option.value === name)) menu.append(make("option", {}, name));
    menu.value = name;
    this.#remember();
  }

  // Adapters come and go while the server runs, so this is asked more than once.
  async load(key) {
    let listed;
    try {
      const response = await fetch("/v1/models", { headers: key ? { Authorization: `Bearer ${key}` } : {} });
      if (!response.ok) return; // without its key a server lists nothing
      listed = (await response.json()).data;
    } catch {
      return; // whoever asks is told soon enough that the server is away
    }
    const names = listed.filter(({ parent }) => parent).map(({ id, parent }) => id.slice(parent.length + 1));
    const chosen = this.value || this.#named;
    this.#named = "";
    find("adapter").replaceChildren(make("option", { value: "" }, "none"), ...names.map((name) => make("option", {}, name)));
    find("adapter-line").hidden = !names.length && !chosen;
    this.value = chosen;
  }

  #remember() {
    const address = new URL(location.href);
    if (this.value) address.searchParams.set("adapter", this.value);
    else address.searchParams.delete("adapter");
    history.replaceState(null, "", address);
    this.#onChange();
  }
}
