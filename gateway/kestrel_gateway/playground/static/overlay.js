// Draws boxes, points and outlines over the picture. Places are percentages of it, so they hold at every size.

import { draw, find } from "./dom.js";

const HUES = 8;
const percent = (fraction) => `${fraction * 100}%`;
export const hue = (index) => `mark hue-${index % HUES}`;

// Everything in an answer that has a place, in the order of the answer.
export function marksIn(document, label) {
  const marks = [];
  for (const box of document.objects ?? []) marks.push({ kind: "box", box, label: box.label ?? label });
  for (const point of document.points ?? []) marks.push({ kind: "point", point, label: point.label ?? label });
  for (const { svg_path: path, bbox: box } of document.segments ?? []) marks.push({ kind: "outline", box, path, label });
  const phrases = piecesOf(document.reasoning).filter(({ points }) => points.length);
  for (const [phrase, { text, points }] of phrases.entries()) {
    for (const [x, y] of points) marks.push({ kind: "point", point: { x, y }, label: text, phrase });
  }
  return marks.map((mark, index) => ({ ...mark, index }));
}

// The text of a thought in pieces, in order; a piece with points is a phrase that they belong to.
export function piecesOf(reasoning) {
  const letters = Array.from(reasoning?.text ?? ""); // offsets count characters, not the halves that JavaScript counts
  const pieces = [];
  let end = 0;
  for (const { start_idx: start, end_idx: stop, points } of reasoning?.grounding ?? []) {
    if (start < end || stop <= start) continue;
    pieces.push({ text: letters.slice(end, start).join(""), points: [] });
    pieces.push({ text: letters.slice(start, stop).join(""), points });
    end = stop;
  }
  pieces.push({ text: letters.slice(end).join(""), points: [] });
  return pieces;
}

// Marks are lit by number, from here or from the words beside the picture; all places that show one follow.
export class Overlay {
  #root = find("marks");
  #watchers = new Set();

  show(marks) {
    this.#watchers.clear();
    this.#root.replaceChildren(...marks.map((mark) => this.#drawn(mark)));
    fitTips(this.#root);
    this.light([]);
  }

  // `element` is lit with any of these marks, and lights all of them while it is hovered or focused.
  follow(element, indices) {
    const light = () => this.light(indices);
    const rest = () => this.light([]);
    element.addEventListener("pointerenter", light);
    element.addEventListener("pointerleave", rest);
    element.addEventListener("focus", light);
    element.addEventListener("blur", rest);
    this.#watchers.add((lit) => element.classList.toggle("lit", indices.some((index) => lit.includes(index))));
  }

  light(indices) {
    this.#root.classList.toggle("has-lit", indices.length > 0);
    for (const watcher of this.#watchers) watcher(indices);
  }

  #drawn(mark) {
    const shapes = { box: drawBox, point: drawPoint, outline: drawOutline }[mark.kind](mark);
    const isGrounded = mark.phrase !== undefined;
    const group = draw("g", {
      class: `${isGrounded ? "mark grounded" : hue(mark.index)} ${mark.kind}`, "data-index": mark.index,
      role: "img", "aria-label": `${mark.index + 1}: ${mark.label}`,
    }, ...shapes);
    this.follow(group, [mark.index]);
    return group;
  }
}

function drawBox({ box, index, label }) {
  const place = placeOf(box);
  return [
    draw("rect", { ...place, class: "halo" }),
    draw("rect", { ...place, class: "shape" }),
    ...badge(box.x_min, box.y_min, index, label),
  ];
}

function drawOutline({ box, path, index, label }) {
  const inside = { ...placeOf(box), viewBox: "0 0 1 1", preserveAspectRatio: "none", overflow: "visible" };
  const [, x = 0, y = 0] = path.match(/^\s*M\s*([\d.]+)[\s,]+([\d.]+)/) ?? []; // its number stands where it begins
  const across = (part, least, most) => least + Number(part) * (most - least);
  return [
    draw("svg", inside, draw("path", { d: path, class: "halo" }), draw("path", { d: path, class: "shape" })),
    ...badge(across(x, box.x_min, box.x_max), across(y, box.y_min, box.y_max), index, label),
  ];
}

function drawPoint({ point, index, label, phrase }) {
  const centre = { cx: percent(point.x), cy: percent(point.y) };
  const ring = draw("circle", { ...centre, r: 15, class: "ring" });
  if (phrase !== undefined) return [ring, draw("circle", { ...centre, r: 6, class: "dot" })];
  return [ring, draw("circle", { ...centre, r: 10, class: "dot" }), ...badge(point.x, point.y, index, label, "round")];
}

function placeOf(box) {
  return {
    x: percent(box.x_min), y: percent(box.y_min),
    width: percent(Math.max(0, box.x_max - box.x_min)), height: percent(Math.max(0, box.y_max - box.y_min)),
  };
}

// A number, and the words beside it while the mark is lit. Its size is in pixels of the screen.
function badge(x, y, index, label, form = "square") {
  const text = String(index + 1);
  const width = 11 + 7 * text.length;
  const at = { x: percent(x), y: percent(y), overflow: "visible" };
  const plate = form === "square" ? draw("rect", { x: -width / 2, y: -9, width, height: 18, rx: 5 }) : "";
  return [
    draw("svg", { ...at, class: "badge" }, plate, draw("text", { y: 0.5 }, text)),
    draw("svg", { ...at, class: "tip", "data-left": x > 0.7 }, draw("rect", { y: -10, height: 20, rx: 5 }), draw("text", { y: 0.5 }, label ?? "")),
  ];
}

// A plate as wide as its words, on the side where there is room for it. Known once the words are on the page.
function fitTips(root) {
  for (const tip of root.querySelectorAll(".tip")) {
    const [plate, words] = tip.children;
    const width = words.getComputedTextLength() + 14;
    const left = tip.hasAttribute("data-left") ? -width - 14 : 14;
    plate.setAttribute("x", left);
    plate.setAttribute("width", width);
    words.setAttribute("x", left + 7);
  }
}
