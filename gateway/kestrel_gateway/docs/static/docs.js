// Draws /openapi.json: a section for each path, with a command to try it. Texts are set as texts, never as HTML.
"use strict";

const MAX_DEPTH = 4;
const METHODS = ["get", "post"];
const MAX_TOLD = 2 ** 31 - 1; // a limit that large is none

function make(tag, options = {}, ...children) {
  const { text, ...attributes } = options;
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function resolver(api) {
  return function resolve(part) {
    if (!part || !part.$ref) return part || {};
    return part.$ref.slice(2).split("/").reduce((at, key) => at[key], api);
  };
}

// Null is left out: it is as good as nothing everywhere.
function kindOf(schema, resolve) {
  return kindsOf(schema, resolve).filter((kind) => kind !== "null").join(" or ") || "null";
}

function kindsOf(schema, resolve) {
  schema = resolve(schema);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value));
  if ("const" in schema) return [JSON.stringify(schema.const)];
  const options = schema.anyOf || schema.oneOf;
  if (options) return [...new Set(options.flatMap((one) => kindsOf(one, resolve)))];
  const listed = schema.items ? `list of ${kindOf(schema.items, resolve)}` : "list";
  return [schema.type || "anything"].flat().map((kind) => (kind === "array" ? listed : kind));
}

function limitsOf(schema) {
  const { minimum, maximum, maxLength, maxItems } = schema;
  const said = [];
  if (minimum > -MAX_TOLD && maximum < MAX_TOLD) said.push(`From ${minimum} to ${maximum}.`);
  else if (minimum > -MAX_TOLD) said.push(`${minimum} or more.`);
  if (maxLength !== undefined) said.push(`At most ${maxLength} bytes.`);
  if (maxItems !== undefined) said.push(`At most ${maxItems}.`);
  return said.join(" ");
}

// What stands between backticks, as code.
function told(text) {
  return text.split("`").map((part, index) => (index % 2 ? make("code", { text: part }) : part));
}

// Rows of an object's fields: those inside other objects as `settings.max_tokens`, of lists as `messages[].role`.
function* rowsOf(schema, resolve, prefix = "", depth = 0) {
  schema = resolve(schema);
  for (const option of schema.anyOf || schema.oneOf || []) yield* rowsOf(option, resolve, prefix, depth);
  if (schema.items && depth < MAX_DEPTH) yield* rowsOf(schema.items, resolve, `${prefix}[]`, depth + 1);
  for (const [name, field] of Object.entries(schema.properties || {})) {
    const place = prefix ? `${prefix}.${name}` : name;
    const inner = resolve(field);
    yield [place, inner, (schema.required || []).includes(name)];
    if (depth < MAX_DEPTH) yield* rowsOf(inner, resolve, place, depth + 1);
  }
}

// `notes` are said of a field that has to be there, and of one that has not.
function fieldTable(schema, resolve, notes) {
  const body = make("tbody");
  const seen = new Set();
  for (const [place, field, isRequired] of rowsOf(schema, resolve)) {
    if (seen.has(place)) continue;
    seen.add(place);
    const words = [notes[isRequired ? 0 : 1], field.description || "", limitsOf(field)].filter(Boolean).join(" ");
    const cells = [make("td", { text: place }), make("td", { text: kindOf(field, resolve) }), make("td", {}, ...told(words))];
    body.append(make("tr", {}, ...cells));
  }
  return make("table", {}, body);
}

function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function command(path, method, operation, resolve) {
  const example = (operation.parameters || []).map(resolve).filter((one) => one.in === "path");
  const filled = example.reduce((at, one) => at.replace(`{${one.name}}`, one.example || one.name), path);
  const lines = [`curl -s ${location.origin}${filled}`];
  if ((operation.security || []).length && !operation.security.some((way) => !Object.keys(way).length))
    lines.push('  -H "Authorization: Bearer $KESTREL_API_KEY"');
  const content = operation.requestBody && operation.requestBody.content["application/json"];
  if (content) {
    const [first] = Object.values(content.examples || {});
    lines.push("  -H 'Content-Type: application/json'", `  -d ${quoted(JSON.stringify(first ? first.value : {}))}`);
  }
  return lines.join(" \\\n");
}

function tryIt(text) {
  const button = make("button", { type: "button", text: "copy" });
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "copied";
    } catch {
      button.textContent = "select it by hand";
    }
  });
  return make("div", { class: "try" }, make("pre", { text, tabindex: "0" }), button);
}

function answers(operation, resolve) {
  const body = make("tbody");
  for (const [status, given] of Object.entries(operation.responses)) {
    const answer = resolve(given);
    const kinds = Object.keys(answer.content || {}).join(", ");
    body.append(make("tr", {}, make("td", { text: status }), make("td", { text: kinds }), make("td", {}, ...told(answer.description))));
  }
  return make("table", {}, body);
}

function section(path, method, operation, resolve) {
  const title = make("h2", {}, make("span", { class: "method", text: method.toUpperCase() }), ` ${path}`);
  const node = make("section", { id: operation.operationId }, title, make("p", { text: operation.summary }));
  if (operation.description) node.append(make("p", { class: "soft" }, ...told(operation.description)));
  node.append(make("h3", { text: "Try it" }), tryIt(command(path, method, operation, resolve)));
  for (const [kind, content] of Object.entries((operation.requestBody || {}).content || {})) {
    const head = make("summary", {}, make("strong", { text: "Takes " }), kind);
    const box = make("details", {}, head, fieldTable(content.schema, resolve, ["Required.", ""]));
    box.open = kind === "application/json";
    node.append(make("h3"), box);
  }
  const given = (operation.responses["200"].content || {})["application/json"];
  if (given && given.schema) node.append(make("h3", { text: "Gives" }), fieldTable(given.schema, resolve, ["", "Not always there."]));
  node.append(make("h3", { text: "Statuses" }), answers(operation, resolve));
  return node;
}

function draw(api) {
  const resolve = resolver(api);
  document.getElementById("about").textContent = `${api.info.description} Version ${api.info.version}.`;
  const contents = document.getElementById("contents");
  const main = document.getElementById("paths");
  for (const { name } of api.tags) {
    contents.append(make("h2", { text: name }));
    for (const [path, methods] of Object.entries(api.paths))
      for (const method of METHODS) {
        const operation = methods[method];
        if (!operation || !operation.tags.includes(name)) continue;
        contents.append(make("a", { href: `#${operation.operationId}`, text: path }));
        main.append(section(path, method, operation, resolve));
      }
  }
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

async function begin() {
  try {
    const answer = await fetch("/openapi.json");
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    draw(await answer.json());
  } catch (error) {
    document.getElementById("about").textContent = `openapi.json cannot be read (${error.message}); load the page again.`;
  }
}

begin();
