// What was asked in this visit, newest first. Lives in this tab's memory and nowhere else.

import { milliseconds, summaryOf } from "./answer.js";
import { find, make } from "./dom.js";
import { skillNamed } from "./skills.js";

export class History {
  #list = find("entries");
  #onShow;

  constructor(onShow) {
    this.#onShow = onShow;
  }

  add(entry) {
    const { question, document: told, tookMs } = entry;
    const words = question.fields.question ?? question.fields.object ?? question.fields.length ?? "";
    const button = make("button", { type: "button", onclick: () => this.#show(button, entry) },
      question.picture ? make("img", { src: question.picture.url, alt: question.picture.name }) : make("span", { class: "blank" }),
      make("span", { class: "said" },
        make("span", { class: "asked" }, make("b", {}, skillNamed(question.skill).title), words),
        make("span", { class: "gave" }, summaryOf(told, question.fields.object))),
      make("span", { class: "took" }, milliseconds(tookMs)));
    this.#list.prepend(make("li", {}, button));
    find("history").hidden = false;
    this.#mark(button);
  }

  #show(button, entry) {
    this.#onShow(entry);
    this.#mark(button);
  }

  #mark(current) {
    for (const button of this.#list.querySelectorAll("button")) {
      button.toggleAttribute("aria-current", false);
    }
    current.setAttribute("aria-current", "true");
  }
}
