// What the visitor asks for: the skill, its words, its settings. Gives questions, and takes them back.

import { find, make, makeTabs } from "./dom.js";
import { SKILLS, ideasFor, skillNamed } from "./skills.js";

export class Form {
  #choose;
  #picture = null;
  #untouched = true; // the words are an idea of ours: another sample brings another one
  #words = {}; // by the field they belong to, so that a skill's words come back with it
  #onChange;
  skill = SKILLS[0];

  constructor(onChange, onSend) {
    this.#onChange = onChange;
    this.#choose = makeTabs(find("tabs"), SKILLS, find("ask"), (name) => this.#shown(name));
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
    const given = skill.settings.filter((name) => find(name).value !== "" && find(name).validity.valid);
    const settings = Object.fromEntries(given.map((name) => [name, Number(find(name).value)]));
    return { skill: skill.name, picture: this.#picture, fields, settings, stream: Boolean(skill.streams) && find("stream").checked };
  }

  // What keeps the question from being sent, as a sentence; empty if nothing does.
  missing({ skill, picture, fields }) {
    const { needsPicture, title, field, label } = skillNamed(skill);
    if (needsPicture && !picture) return `${title} needs a picture: drop, paste or choose one.`;
    if (field && !fields[field]) return `${label} is empty: write what you want to know.`;
    return "";
  }

  restore({ skill, fields, settings, stream }) {
    this.#untouched = false;
    const known = skillNamed(skill);
    if (known.field) this.#words[known.field] = fields[known.field];
    if (fields.length) document.querySelector(`[name=length][value=${fields.length}]`).checked = true;
    find("reasoning").checked = Boolean(fields.reasoning);
    if (known.streams) find("stream").checked = stream;
    for (const name of known.settings) find(name).value = settings[name] ?? "";
    this.#choose(skill);
  }

  #shown(name) {
    const skill = (this.skill = skillNamed(name));
    const prompt = find("prompt");
    const ideas = ideasFor(skill, this.#picture?.sample);
    prompt.hidden = find("prompt-label").hidden = !skill.field;
    find("lengths").hidden = name !== "caption";
    find("reasoning-line").hidden = name !== "query";
    find("stream-line").hidden = !skill.streams;
    for (const label of document.querySelectorAll("[data-setting]")) {
      label.hidden = !skill.settings.includes(label.dataset.setting);
    }
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
