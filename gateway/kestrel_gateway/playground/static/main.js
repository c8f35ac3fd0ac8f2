// The page: one question at a time, its answer, and what was asked before.

import { milliseconds, showAnswer, showGrowing, stopGrowing, summaryOf } from "./answer.js";
import { Refusal, ask } from "./asking.js";
import { find, make, makeTabs } from "./dom.js";
import { Form } from "./form.js";
import { History } from "./history.js";
import { Key } from "./key.js";
import { Overlay } from "./overlay.js";
import { Pictures } from "./pictures.js";
import { LANGUAGES, snippet } from "./snippets.js";

const place = { origin: location.origin, grpc: `${location.hostname}:8001`, hasKeys: false };
const overlay = new Overlay();
let language = LANGUAGES[0].name;
let running = null; // the AbortController of the question under way
let shownPicture = null; // whose marks are drawn

const key = new Key(() => {
  place.hasKeys = true;
  writeCode();
  clearProblem();
  loadAdapters();
  send();
});
const form = new Form(writeCode, () => (running ? cancel() : send()));
const pictures = new Pictures((picture) => {
  if (picture !== shownPicture) overlay.show([]);
  shownPicture = picture;
  clearProblem();
  form.pictureChanged(picture);
}, showProblem);
const history = new History((entry) => {
  cancel();
  clearProblem();
  pictures.show(entry.question.picture);
  form.restore(entry.question);
  showAnswer(entry, overlay);
  say(`Shown again: ${summaryOf(entry.document, entry.question.fields.object)}`);
});

async function send() {
  const question = form.question();
  const missing = form.missing(question);
  if (missing) {
    showProblem(missing);
    (find("prompt").hidden ? find("choose") : find("prompt")).focus();
    return;
  }
  if (!find("ask").reportValidity()) return;
  cancel();
  const mine = (running = new AbortController());
  begin();
  const began = performance.now();
  try {
    const told = await ask(question, { key: key.value, signal: mine.signal, onPiece: showGrowing() });
    const entry = { question, document: told, tookMs: performance.now() - began };
    if (running !== mine) return;
    showAnswer(entry, overlay);
    history.add(entry);
    say(`Answered in ${milliseconds(entry.tookMs)}: ${summaryOf(told, question.fields.object)}`);
  } catch (error) {
    if (running === mine) failed(error);
  } finally {
    if (running === mine) end();
  }
}

function begin() {
  clearProblem();
  overlay.show([]);
  find("send").textContent = "Cancel";
  find("send").classList.add("stops");
  say("Asking");
}

function end() {
  running = null;
  find("send").textContent = "Ask";
  find("send").classList.remove("stops");
}

// Leaving the request is all it takes: the server notices, and frees what it had for it.
function cancel() {
  if (!running) return;
  running.abort();
  stopGrowing();
  say("Cancelled");
  end();
}

function failed(error) {
  stopGrowing();
  if (!(error instanceof Refusal)) {
    console.error(error);
    showProblem("The page made a mistake.", "Reload it; if it happens again, tell us what you asked.");
    return;
  }
  if (error.status === 401) {
    key.askFor();
    if (!key.value) return; // the field itself says what to do
  }
  showProblem(error.message, error.advice, error);
}

function showProblem(sentence, advice = "", { code, requestId, mayRetry } = {}) {
  const trace = [code, requestId && `request ${requestId}`].filter(Boolean).join(" · ");
  find("problem").replaceChildren(...[
    make("strong", {}, sentence),
    advice && make("span", {}, advice),
    trace && make("span", { class: "note" }, trace),
    mayRetry && make("button", { type: "button", class: "secondary small", onclick: send }, "Ask again"),
  ].filter(Boolean));
  find("problem").hidden = false;
}

function clearProblem() {
  find("problem").hidden = true;
  find("problem").replaceChildren();
}

function say(words) {
  find("status").textContent = words;
}

function writeCode() {
  const question = form.question();
  const { code, note } = snippet(language, question, place);
  find("code").firstElementChild.textContent = code;
  find("copy").textContent = "Copy";
  find("code-note").replaceChildren(...whereToRun(question.picture), note);
}

function whereToRun(picture) {
  if (!picture) return [];
  const { name, sample } = picture;
  return ["Run it where ", sample ? make("a", { href: `/samples/${sample}`, download: sample }, name) : name, " lies. "];
}

async function copy() {
  const { code } = snippet(language, form.question(), place);
  try {
    await navigator.clipboard.writeText(code);
    find("copy").textContent = "Copied";
  } catch { // a page that is neither on this machine nor on https may not
    getSelection().selectAllChildren(find("code"));
    find("copy").textContent = "Press Ctrl+C";
  }
}

async function loadAdapters() {
  if (key.value || !place.hasKeys) await form.adapters.load(key.value);
}

async function start() {
  const response = await fetch("/playground/about.json");
  const about = await response.json();
  find("model").textContent = about.model;
  place.grpc = `${location.hostname}:${about.grpc_port}`;
  place.hasKeys = about.has_keys;
  if (about.has_keys) key.expect();
  form.offer(about.skills);
  await loadAdapters();
  pictures.offer(about.samples, about.max_picture_bytes);
  if (!pictures.current) await pictures.takeSample(about.samples.includes("shapes.png") ? "shapes.png" : about.samples[0]);
}

form.pictureChanged(null);
makeTabs(find("languages"), LANGUAGES, find("code"), (name) => {
  language = name;
  writeCode();
})(language);
find("copy").addEventListener("click", copy);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && running) cancel();
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) loadAdapters();
});
start().catch(() => showProblem("The page could not be loaded completely.", "Reload it; see whether the server is still running."));
