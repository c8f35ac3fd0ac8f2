// Makes elements. Words from outside only ever become text: there is no way here to hand over markup.

const SVG = "http://www.w3.org/2000/svg";

export const find = (id) => document.getElementById(id);

export function make(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function draw(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== ""));
  return element;
}

// One of several buttons is chosen; arrows, Home and End move between them, Tab leaves them.
export function makeTabs(list, choices, panel, onChoose) {
  const buttons = choices.map(({ name, title }) =>
    make("button", {
      type: "button", role: "tab", id: `${list.id}-${name}`, "aria-controls": panel.id,
      onclick: () => choose(name, true),
    }, title));
  const names = choices.map(({ name }) => name);

  function choose(name, isAsked = false) {
    names.forEach((other, index) => {
      buttons[index].setAttribute("aria-selected", String(other === name));
      buttons[index].tabIndex = other === name ? 0 : -1;
    });
    panel.setAttribute("aria-labelledby", `${list.id}-${name}`);
    onChoose(name, isAsked);
  }

  list.addEventListener("keydown", (event) => {
    const at = buttons.indexOf(document.activeElement);
    const moves = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: buttons.length - 1 };
    if (at < 0 || !(event.key in moves)) return;
    event.preventDefault();
    const next = (moves[event.key] + buttons.length) % buttons.length;
    buttons[next].focus();
    choose(names[next], true);
  });
  list.replaceChildren(...buttons);
  return choose;
}
