// The key of a server that asks for one. Held in memory: no storage, no address, no snippet has it.

import { find } from "./dom.js";

export class Key {
  value = "";
  isAsked = false;

  constructor(onGiven) {
    find("key-open").addEventListener("click", () => this.askFor());
    find("key-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.value = find("key").value.trim();
      if (!this.value) return;
      find("key-form").hidden = true;
      onGiven();
    });
  }

  // The server has keys, as it says itself or by its refusal.
  expect() {
    this.isAsked = true;
    find("key-open").hidden = false;
  }

  askFor() {
    this.expect();
    find("key-form").hidden = false;
    find("key").focus();
    find("key").select();
  }
}
