// What was asked in this visit, newest first. Lives in this tab's memory and nowhere else.

import { milliseconds, summaryOf } from "./answer.js";
import { find, make } from "./dom.js";

export class History {
  #list = find("entries");
  #onShow;

  constructor(onShow) {
    this.#onShow = onShow;
  }

  add(entry) {
    const { question, document: told, tookMs } = entry;
    const { skill, fields } = question;
    const words = fields[skill.field] ?? fields.length ?? "";
    const button = make("button", { type: "button", onclick: () => this.#show(button, entry) },
      question.picture ? make("img", { src: question.picture.url, alt: question.picture.name }) : make("span", { class: "blank" }),
      make("span", { class: "said" },
        make("span", { class: "asked" }, make("b", {}, skill.title), words),
        make("span", { class: "gave" }, summaryOf(told, fields.object))),
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
