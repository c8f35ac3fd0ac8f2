// Shows one answer: its text as it grows, its thought, what was found, and how long it took.

import { draw, find, make } from "./dom.js";
import { hue, marksIn, piecesOf } from "./overlay.js";

const root = find("answer");
const TEXTS = ["answer", "caption", "text"];
const SHOWN = new Set([...TEXTS, "objects", "points", "segments", "reasoning", "path", "bbox", "metrics",
  "request_id", "finish_reason", "chunk", "completed", "logprobs"]);
const NOUNS = { box: "box|boxes", point: "point|points", outline: "outline|outlines" };

// An answer of which nothing is known yet. Gives the function that pieces are handed to.
export function showGrowing() {
  const text = make("p", { class: "text growing" });
  const thought = make("p");
  const reasoning = make("div", { class: "reasoning", hidden: true }, thought);
  root.replaceChildren(reasoning, text);
  root.hidden = false;
  root.setAttribute("aria-busy", "true");
  return (kind, piece) => {
    if (kind === "reasoning") reasoning.hidden = false;
    (kind === "reasoning" ? thought : text).append(piece);
  };
}

// What has come stays, without what would tell that more is coming.
export function stopGrowing() {
  root.removeAttribute("aria-busy");
  root.querySelector(".growing")?.classList.remove("growing");
  root.hidden = !root.textContent;
}

export function hideAnswer() {
  root.hidden = true;
  root.replaceChildren();
}

export function showAnswer({ question, document: told, tookMs }, overlay) {
  const marks = marksIn(told, question.fields.object);
  overlay.show(marks);
  const text = textOf(told);
  root.replaceChildren(...[
    told.reasoning && makeReasoning(told.reasoning, marks, overlay),
    text !== undefined && make("p", { class: "text" }, text || "(an empty answer)"),
    hasPlaces(told) && make("p", { class: "count" }, countOf(told, question.fields.object)),
    hasPlaces(told) && marks.length > 0 && makeList(marks, question.picture, overlay, question.fields.object),
    makeOthers(told),
    told.finish_reason === "length" && make("p", { class: "note" }, "It ended at its limit of tokens or objects; raise it in the settings for more."),
    makeTimes(told.metrics ?? {}, tookMs),
    makeRaw(told),
  ].filter(Boolean));
  root.hidden = false;
  root.removeAttribute("aria-busy");
}

// One line: for the list of what was asked, and for those who listen.
export function summaryOf(told, thing) {
  if (hasPlaces(told)) return countOf(told, thing);
  return textOf(told) ?? othersIn(told).map(([name, value]) => `${name} ${value}`).join(", ");
}

const textOf = (told) => told[TEXTS.find((name) => typeof told[name] === "string")];
const hasPlaces = (told) => ["objects", "points", "segments"].some((name) => Array.isArray(told[name]));

function countOf(told, thing) {
  const kind = told.objects ? "box" : told.points ? "point" : "outline";
  const count = (told.objects ?? told.points ?? told.segments).length;
  const [one, many] = NOUNS[kind].split("|");
  return count ? `${count} ${count === 1 ? one : many} for “${thing}”` : `Nothing found for “${thing}”`;
}

function makeReasoning(reasoning, marks, overlay) {
  const line = make("p");
  let phrase = -1;
  for (const { text, points } of piecesOf(reasoning)) {
    if (!points.length) {
      line.append(text);
      continue;
    }
    phrase += 1;
    const mine = marks.filter((mark) => mark.phrase === phrase).map((mark) => mark.index);
    const words = make("span", { class: "phrase", tabindex: 0, role: "note", "aria-label": `${text}, ${mine.length} places in the picture` }, text);
    overlay.follow(words, mine);
    line.append(words);
  }
  return make("div", { class: "reasoning" }, line);
}

// The words stand above the list; here only those that the server gave a thing for itself.
function makeList(marks, picture, overlay, asked) {
  return make("ol", { class: "found", "aria-label": "Results" }, ...marks.map((mark) => {
    const row = make("button", { type: "button", class: hue(mark.index) },
      make("span", { class: "index" }, String(mark.index + 1)),
      mark.label === asked ? "" : make("span", { class: "name" }, mark.label ?? ""),
      make("span", { class: "place" }, placeOf(mark, picture)));
    overlay.follow(row, [mark.index]);
    return make("li", {}, row);
  }));
}

// In pixels of the picture, which is what people cut out of it.
function placeOf({ kind, box, point }, { width, height }) {
  const at = (x, y) => `${Math.round(x * width)}, ${Math.round(y * height)}`;
  return kind === "point" ? at(point.x, point.y) : `${at(box.x_min, box.y_min)} – ${at(box.x_max, box.y_max)}`;
}

// What a skill of the operator's own may answer besides.
function othersIn(told) {
  const others = Object.entries(told).filter(([name]) => !SHOWN.has(name));
  return others.map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]);
}

function makeOthers(told) {
  const others = othersIn(told);
  return others.length > 0 && make("dl", { class: "others" }, ...others.map(([name, value]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

// Where the time of an answer goes, in the order of its life.
const PARTS = { queue: "queue_time_ms", image: "image_time_ms", vision: "vision_time_ms", prefill: "prefill_time_ms", decode: "decode_time_ms" };

function makeTimes(metrics, tookMs) {
  const parts = Object.entries(PARTS).map(([name, key]) => [name, metrics[key]]).filter(([, time]) => time !== undefined);
  const whole = Math.max(parts.reduce((sum, [, time]) => sum + time, 0), 1e-9);
  let at = 0;
  const bars = parts.map(([name, time]) => {
    const bar = draw("rect", { class: name, x: `${(100 * at) / whole}%`, y: 0, width: `${(100 * time) / whole}%`, height: 5 });
    at += time;
    return bar;
  });
  const numbers = [
    ["first token", milliseconds(metrics.ttft_ms)],
    ["total", milliseconds(tookMs)],
    ...parts.map(([name, time]) => [name, milliseconds(time), name]),
    ["tokens in", metrics.input_tokens],
    ["cached", metrics.cached_tokens],
    ["out", metrics.output_tokens],
  ].filter(([, value]) => value !== undefined);
  return make("div", { class: "times" },
    draw("svg", { class: "bar", "aria-hidden": "true" }, ...bars),
    make("dl", { class: "numbers", "aria-label": "Timings and tokens" }, ...numbers.map(([name, value, part = ""]) =>
      make("div", {}, make("dt", { class: part || false }, name), make("dd", {}, String(value))))));
}

function makeRaw(told) {
  const shown = Object.fromEntries(Object.entries(told).filter(([name]) => name !== "chunk" && name !== "completed"));
  return make("details", { class: "raw" }, make("summary", {}, "JSON"),
    make("pre", { tabindex: 0 }, JSON.stringify(shown, null, 2)));
}

export function milliseconds(time) {
  if (time === undefined || time === null) return undefined;
  if (time >= 1000) return `${(time / 1000).toFixed(time < 10000 ? 2 : 1)} s`;
  return `${time < 10 ? Number(time.toFixed(1)) : Math.round(time)} ms`;
}
