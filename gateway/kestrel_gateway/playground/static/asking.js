// Sends one question, reads its answer whole or in pieces, and turns what goes wrong into sentences.

export class Refusal extends Error {
  constructor(sentence, { advice = "", status = 0, code = "", requestId = "", mayRetry = false } = {}) {
    super(sentence);
    Object.assign(this, { advice, status, code, requestId, mayRetry });
  }
}

// Gives the document of the answer. `onPiece(kind, text)` is called with what comes before it.
export async function ask(question, { key, signal, onPiece }) {
  // The first says that the form is of this page, also where a proxy gives the server another name.
  const headers = { "X-Requested-With": "playground", ...(key ? { Authorization: `Bearer ${key}` } : {}) };
  const path = `/v1/${encodeURIComponent(question.skill.name)}`;
  let response;
  try {
    // A form has only texts. What an own skill's arguments are is told by JSON alone.
    const body = question.skill.isOwn ? await jsonOf(question) : formOf(question);
    response = await fetch(path, { method: "POST", body, headers, signal });
  } catch (error) {
    throw lost(error, "The server cannot be reached.");
  }
  const requestId = response.headers.get("x-request-id") ?? "";
  if (!response.ok) throw await refusalOf(response, requestId);
  try {
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
    return isStream ? await readEvents(response.body, onPiece, requestId) : await response.json();
  } catch (error) {
    throw error instanceof Refusal ? error : lost(error, "The connection broke before the answer was complete.");
  }
}

async function jsonOf({ picture, fields, settings, stream }) {
  const body = { ...fields, settings, ...(stream ? { stream } : {}) };
  if (picture) body.image_url = await dataUrl(picture.file);
  return new Blob([JSON.stringify(body)], { type: "application/json" });
}

function dataUrl(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

function formOf({ picture, fields, settings, stream }) {
  const form = new FormData();
  if (picture) form.append("image", picture.file, picture.name);
  for (const [name, value] of Object.entries(fields)) form.append(name, String(value));
  if (stream) form.append("stream", "true");
  if (Object.keys(settings).length) form.append("settings", JSON.stringify(settings));
  return form;
}

async function readEvents(body, onPiece, requestId) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Refusal("The answer ended before it was complete.", { ...AGAIN, requestId });
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data: ")) continue; // a comment that keeps the connection alive
      const document = JSON.parse(line.slice(6));
      if (document.error) throw refusalFrom(document.error, 0, requestId);
      if (document.completed) return document;
      if (document.chunk) onPiece("text", document.chunk);
      if (document.reasoning_chunk) onPiece("reasoning", document.reasoning_chunk);
    }
  }
}

const AGAIN = { advice: "Ask again; if that does not help, look into the server's log.", mayRetry: true };
const ADVICE = {
  401: { advice: "Enter a key that this server knows." },
  403: { advice: "Use another key, or ask who runs this server to allow it." },
  404: { advice: "This server does not have what was asked for." },
  408: { advice: "The connection may be slow; try a smaller picture.", mayRetry: true },
  413: { advice: "Choose a smaller picture." },
  415: { advice: "Choose a JPEG, PNG, WebP or GIF." },
  429: { advice: "Wait a moment, then ask again.", mayRetry: true },
  500: AGAIN,
  503: { advice: "It may be starting or ending. Ask again in a few seconds.", mayRetry: true },
  504: { advice: "Ask for less, or try again when it is less busy.", mayRetry: true },
};

async function refusalOf(response, requestId) {
  let told;
  try {
    told = (await response.json()).error;
  } catch { /* somebody else's page, such as a proxy's */ }
  const wait = response.headers.get("retry-after");
  const refusal = refusalFrom(told ?? { message: `The server answered with status ${response.status}` }, response.status, requestId);
  if (wait && response.status === 429) refusal.advice = `Ask again in ${wait} s.`;
  return refusal;
}

function refusalFrom({ message, code }, status, requestId) {
  const advice = ADVICE[status] ?? (status === 0 ? AGAIN : {});
  return new Refusal(sentence(message), { ...advice, status, code: code ?? "", requestId });
}

function lost(error, words) {
  if (error.name === "AbortError") return error;
  return new Refusal(words, { advice: "See whether it is still running, then ask again.", mayRetry: true });
}

function sentence(text) {
  const trimmed = String(text ?? "").trim() || "The server gave no reason";
  const begun = trimmed[0].toUpperCase() + trimmed.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}
