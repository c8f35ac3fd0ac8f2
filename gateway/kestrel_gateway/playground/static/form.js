// What the visitor asks for: the skill, its words, its settings. Gives questions, and takes them back.

import { Adapters } from "./adapters.js";
import { find, make, makeTabs } from "./dom.js";
import { ideasFor, skillsOf } from "./skills.js";

export class Form {
  #choose;
  #skills = [];
  #picture = null;
  #untouched = true; // the words are an idea of ours: another sample brings another one
  #words = {}; // by the field they belong to, so that a skill's words come back with it
  #onChange;
  skill = null;
  adapters = new Adapters(() => this.#onChange());

  constructor(onChange, onSend) {
    this.#onChange = onChange;
    const prompt = find("prompt");
    prompt.addEventListener("input", () => {
      this.#untouched = false;
      this.#words[this.skill.field] = prompt.value;
    });
    prompt.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      find("ask").requestSubmit();
    });
    find("ask").addEventListener("input", () => this.#onChange());
    find("ask").addEventListener("submit", (event) => {
      event.preventDefault();
      onSend();
    });
    this.offer([]);
  }

  // The skills that the server has told of; without them, those that every Moondream has.
  offer(told) {
    this.#skills = skillsOf(told);
    this.#choose = makeTabs(find("tabs"), this.#skills, find("ask"), (name) => this.#shown(name));
    this.skill = this.#skills[0];
  }

  pictureChanged(picture) {
    this.#picture = picture;
    if (this.#untouched) this.#words = {};
    this.#choose(this.skill.name);
  }

  question() {
    const { skill } = this;
    const fields = {};
    if (skill.field) fields[skill.field] = find("prompt").value.trim();
    if (skill.name === "caption") fields.length = document.querySelector("[name=length]:checked").value;
    if (skill.name === "query" && find("reasoning").checked) fields.reasoning = true;
    for (const input of document.querySelectorAll("[data-extra]")) {
      const value = valueOf(input);
      if (value !== undefined) fields[input.dataset.extra] = value;
    }
    const given = skill.settings.filter((name) => find(name).value !== "" && find(name).validity.valid);
    const settings = Object.fromEntries(given.map((name) => [name, Number(find(name).value)]));
    if (this.adapters.value) settings.adapter = this.adapters.value;
    return { skill, picture: this.#picture, fields, settings, stream: Boolean(skill.streams) && find("stream").checked };
  }

  // What keeps the question from being sent, as a sentence; empty if nothing does.
  missing({ skill: { needsPicture, title, field, label }, picture, fields }) {
    if (needsPicture && !picture) return `${title} needs a picture: drop, paste or choose one.`;
    if (field && !fields[field]) return `${label} is empty: write what you want to know.`;
    return "";
  }

  restore({ skill, fields, settings, stream }) {
    this.#untouched = false;
    if (skill.field) this.#words[skill.field] = fields[skill.field];
    if (skill.name === "caption") document.querySelector(`[name=length][value=${fields.length}]`).checked = true;
    find("reasoning").checked = Boolean(fields.reasoning);
    if (skill.streams) find("stream").checked = stream;
    for (const name of skill.settings) find(name).value = settings[name] ?? "";
    this.adapters.value = settings.adapter ?? "";
    this.#choose(skill.name);
    for (const input of document.querySelectorAll("[data-extra]")) setValue(input, fields[input.dataset.extra]);
    this.#onChange();
  }

  #shown(name) {
    const skill = (this.skill = this.#skills.find((one) => one.name === name));
    const prompt = find("prompt");
    const ideas = ideasFor(skill, this.#picture);
    prompt.hidden = find("prompt-label").hidden = !skill.field;
    find("lengths").hidden = name !== "caption";
    find("reasoning-line").hidden = name !== "query";
    find("stream-line").hidden = !skill.streams;
    for (const label of document.querySelectorAll("[data-setting]")) {
      label.hidden = !skill.settings.includes(label.dataset.setting);
    }
    if (find("extras").dataset.of !== name) find("extras").replaceChildren(...(skill.extras ?? []).map(makeExtra));
    find("extras").dataset.of = name;
    if (skill.extras?.length) find("settings").open = true;
    if (skill.field) {
      find("prompt-label").textContent = skill.label;
      prompt.placeholder = skill.hint;
      prompt.value = this.#words[skill.field] ?? (this.#untouched ? ideas[0] ?? "" : "");
    }
    find("ideas").replaceChildren(...ideas.map((idea) =>
      make("button", { type: "button", onclick: () => this.#take(idea) }, idea)));
    this.#onChange();
  }

  #take(idea) {
    this.#words[this.skill.field] = find("prompt").value = idea;
    find("prompt").focus();
    this.#onChange();
  }
}

// A field for an argument of an own skill, by what the server says of it.
function makeExtra({ name, kind, meaning, required, choices, least, most, default: given }) {
  const common = { "data-extra": name, "data-kind": kind, required };
  const hint = given === undefined ? (required ? "needed" : "default") : String(given);
  const isNumber = kind === "integer" || kind === "number";
  const input = choices
    ? make("select", common, ...(required ? [] : [make("option", { value: "" }, hint)]), ...choices.map((one) => make("option", {}, one)))
    : kind === "boolean"
      ? make("input", { ...common, type: "checkbox", required: false })
      : isNumber
        ? make("input", { ...common, type: "number", min: least, max: most, step: kind === "integer" ? 1 : "any", placeholder: hint })
        : make("input", { ...common, type: "text", placeholder: hint });
  return make("label", { title: meaning }, name.replaceAll("_", " "), input);
}

function valueOf(input) {
  const { kind } = input.dataset;
  if (kind === "boolean") return input.checked || undefined;
  if (input.value === "") return undefined;
  if (kind === "string") return input.value;
  try {
    return JSON.parse(input.value); // a number, a list or an object
  } catch {
    return input.value; // which the server refuses, in its own words
  }
}

function setValue(input, value) {
  if (input.dataset.kind === "boolean") input.checked = Boolean(value);
  else input.value = value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
}
