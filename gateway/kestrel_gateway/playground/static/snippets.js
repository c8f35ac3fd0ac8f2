// The question on the page as code that asks the same: for curl, and for three Python packages.

export const LANGUAGES = [
  { name: "curl", title: "curl", write: writeCurl, note: "" },
  { name: "python", title: "Python", write: writePython, note: "Needs kestrel_client of this project, and reaches Triton's gRPC port." },
  { name: "openai", title: "OpenAI", write: writeOpenAI, note: "Needs pip install openai." },
  { name: "tritonclient", title: "tritonclient", write: writeTriton, note: "Needs pip install 'tritonclient[grpc]', and reaches Triton's gRPC port." },
];

// `place` says where the server is: {origin, grpc, hasKeys}.
export function snippet(name, question, place) {
  const { write, note } = LANGUAGES.find((language) => language.name === name);
  const isHttp = write === writeCurl || write === writeOpenAI;
  const key = place.hasKeys && (isHttp
    ? "Put your key into the variable KESTREL_API_KEY."
    : "That port takes no keys: it answers only those who send the server's own secret.");
  return { code: write(question, place), note: [note, key].filter(Boolean).join(" ") };
}

const shell = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
const python = (value) => (value === true ? "True" : value === false ? "False" : JSON.stringify(value));
const keywords = (values) => Object.entries(values).map(([name, value]) => `${name}=${python(value)}`);

function writeCurl({ skill: { name: skill, isOwn }, picture, fields, settings, stream }, { origin, hasKeys }) {
  const parts = [`curl -sS${stream ? "N" : ""} ${shell(`${origin}/v1/${skill}`)}`];
  if (isOwn) return writeOwnCurl(skill, picture, { ...fields, settings, ...(stream ? { stream } : {}) }, origin, hasKeys);
  if (hasKeys) parts.push('-H "Authorization: Bearer $KESTREL_API_KEY"');
  // In quotes, curl takes a name as it is, with commas and semicolons.
  if (picture) parts.push(`-F ${shell(`image=@${/^[\w./-]+$/.test(picture.name) ? picture.name : JSON.stringify(picture.name)}`)}`);
  const texts = { ...fields, ...settings, ...(stream ? { stream } : {}) };
  // Not -F, which would take an @ at the beginning for a file.
  for (const [name, value] of Object.entries(texts)) parts.push(`--form-string ${shell(`${name}=${value}`)}`);
  if (!picture && parts.length === 1) parts.push("--form-string stream=false");
  return parts.join(" \\\n  ");
}

// A form has only texts, and an own skill may take numbers: so JSON, with the picture as base64.
function writeOwnCurl(skill, picture, body, origin, hasKeys) {
  const text = JSON.stringify(picture ? { ...body, image_url: "" } : body);
  const key = hasKeys ? ' -H "Authorization: Bearer $KESTREL_API_KEY"' : "";
  const send = `curl -sSN ${shell(`${origin}/v1/${skill}`)} -H "Content-Type: application/json"${key} -d @-`;
  if (!picture) return `printf %s ${shell(text)} |\n  ${send}`;
  return `{ printf %s ${shell(text.slice(0, -2))}; base64 < ${shell(picture.name)} | tr -d '\\n'; printf '"}'; } |\n  ${send}`;
}

function writePython({ skill: { name: skill, isOwn }, picture, fields, settings, stream }, { grpc }) {
  if (isOwn) {
    const given = [python(skill), picture ? python(picture.name) : "None", ...keywords({ ...fields, ...settings })];
    return `from kestrel_client import Client\n\nwith Client(${python(grpc)}) as client:\n    print(client.ask(${given.join(", ")}).output)`;
  }
  const { question, object, ...others } = fields;
  const words = question ?? object;
  const given = [
    picture ? python(picture.name) : "None",
    ...(words === undefined ? [] : [python(words)]),
    ...keywords({ ...others, ...settings }),
  ];
  const call = (more = []) => `client.${skill}(${[...given, ...more].join(", ")})`;
  const body = stream
    ? [`with ${call(["stream=True"])} as stream:`, "    for chunk in stream:", '        print(chunk.text, end="", flush=True)', "print()"]
    : skill === "query" || skill === "caption"
      ? [`print(${call()}.text)`]
      : [`for found in ${call()}.${{ detect: "objects", point: "points", segment: "segments" }[skill]}:`, "    print(found)"];
  return ["from kestrel_client import Client", "", `with Client(${python(grpc)}) as client:`, ...body.map((line) => `    ${line}`)].join("\n");
}

function writeOpenAI({ skill: { name: skill, isOwn }, picture, fields, settings, stream }, { origin, hasKeys }) {
  if (isOwn) return `# OpenAI's API has no way to ask for ${skill}; curl, Python and tritonclient have.`;
  const { max_objects: most, max_tokens: tokens, adapter, ...sampling } = settings;
  const isQuery = skill === "query";
  const text = isQuery ? fields.question : `/${skill} ${JSON.stringify({ ...fields, ...(most ? { max_objects: most } : {}) })}`;
  const isStream = stream && isQuery; // the answer of a command is one document
  const given = [
    ...keywords({ ...sampling, ...(tokens ? { max_completion_tokens: tokens } : {}) }),
    ...(fields.reasoning ? ['extra_body={"reasoning": True}'] : []),
    ...(isStream ? ["stream=True"] : []),
  ];
  const part = `{"type": "text", "text": ${python(text)}}`;
  const type = picture?.file.type || "image/png";
  return [
    ...(picture ? ["import base64"] : []),
    ...(hasKeys ? ["import os"] : []),
    ...(picture || hasKeys ? [""] : []),
    "from openai import OpenAI",
    "",
    `client = OpenAI(base_url=${python(`${origin}/v1`)}, api_key=${hasKeys ? 'os.environ["KESTREL_API_KEY"]' : '"none"'})`,
    ...(picture ? [`with open(${python(picture.name)}, "rb") as file:`, "    picture = base64.b64encode(file.read()).decode()"] : []),
    "content = [",
    ...(picture ? [`    {"type": "image_url", "image_url": {"url": ${python(`data:${type};base64,`)} + picture}},`] : []),
    `    ${part},`,
    "]",
    "answer = client.chat.completions.create(",
    `    ${[`model=${python(adapter ? `moondream/${adapter}` : "moondream")}`, 'messages=[{"role": "user", "content": content}]', ...given].join(",\n    ")},`,
    ")",
    ...(isStream
      ? ["for chunk in answer:", "    if chunk.choices:", '        print(chunk.choices[0].delta.content or "", end="", flush=True)', "print()"]
      : ["print(answer.choices[0].message.content)"]),
  ].join("\n");
}

const TENSORS = {
  question: ["object", "BYTES"], object: ["object", "BYTES"], length: ["object", "BYTES"],
  temperature: ["np.float32", "FP32"], top_p: ["np.float32", "FP32"], max_tokens: ["np.int32", "INT32"],
  max_objects: ["np.int32", "INT32"], seed: ["np.int64", "INT64"], reasoning: ["bool", "BOOL"], stream: ["bool", "BOOL"],
};

function writeTriton({ skill: { name: skill, extras = [] }, picture, fields, settings, stream }, { grpc }) {
  const own = extras.map(({ name }) => name).filter((name) => !(name in TENSORS) && name in fields);
  const others = Object.fromEntries(Object.entries(fields).filter(([name]) => !own.includes(name)));
  const values = { skill, ...others, ...settings, ...(stream ? { stream } : {}) };
  // Arguments that have no tensor of their own come in one, as JSON.
  if (own.length) values.arguments = JSON.stringify(Object.fromEntries(own.map((name) => [name, fields[name]])));
  const inputs = Object.entries(values).map(([name, value]) => {
    const [kind, datatype] = TENSORS[name] ?? ["object", "BYTES"];
    return `    tensor(${python(name.toUpperCase())}, ${python(value)}${datatype === "BYTES" ? ".encode()" : ""}, ${kind}, "${datatype}"),`;
  });
  return [
    "import json",
    "",
    "import numpy as np",
    "import tritonclient.grpc as triton",
    "",
    "def tensor(name, value, kind, datatype):",
    "    made = triton.InferInput(name, [1], datatype)",
    "    made.set_data_from_numpy(np.array([value], dtype=kind))",
    "    return made",
    "",
    "def show(result, error):",
    "    print(error or json.loads(result.as_numpy(\"TEXT_OUTPUT\")[0]))",
    "",
    "inputs = [",
    ...inputs,
    ...(picture ? [`    tensor("IMAGE", open(${python(picture.name)}, "rb").read(), object, "BYTES"),`] : []),
    "]",
    `with triton.InferenceServerClient(${python(grpc)}) as client:`,
    "    client.start_stream(show)",
    '    client.async_stream_infer("moondream", inputs)',
    "    client.stop_stream()  # waits for the answer",
  ].join("\n");
}
