// What each skill is called, which words it takes, which settings, and what to try with a sample.

const BUILTIN = [
  {
    name: "query", title: "Query", field: "question", label: "Question", hint: "Ask anything about the picture",
    needsPicture: false, streams: true, settings: ["temperature", "top_p", "max_tokens", "seed"],
  },
  {
    name: "caption", title: "Caption", needsPicture: true, streams: true,
    settings: ["temperature", "top_p", "max_tokens", "seed"],
  },
  {
    name: "detect", title: "Detect", field: "object", label: "What to find", hint: "What to draw boxes around",
    needsPicture: true, settings: ["max_objects"],
  },
  {
    name: "point", title: "Point", field: "object", label: "What to point at", hint: "What to point at",
    needsPicture: true, settings: ["max_objects"],
  },
  {
    name: "segment", title: "Segment", field: "object", label: "What to outline", hint: "What to outline",
    needsPicture: true, settings: ["max_objects"],
  },
];

// Those the server's model knows: the five of Moondream, then the operator's own. All five until the server has told.
export function skillsOf(told) {
  const known = BUILTIN.filter(({ name }) => !told.length || told.some((one) => one.name === name && one.supported));
  const names = BUILTIN.map(({ name }) => name);
  return [...known, ...told.filter(({ name, supported }) => supported && !names.includes(name)).map(ownSkill)];
}

// An own skill's first text that it needs is written where questions are; its other arguments stand among the settings.
function ownSkill({ name, meaning, image, streams, settings, arguments: all }) {
  const main = all.find(({ kind, required, choices }) => kind === "string" && required && !choices);
  return {
    name, title: name[0].toUpperCase() + name.slice(1), isOwn: true, streams,
    field: main?.name, label: main?.meaning, hint: main?.meaning, needsPicture: image === "required",
    settings: settings.filter((setting) => SETTINGS.includes(setting)),
    extras: all.filter((argument) => argument !== main && argument.name !== "spatial_refs"),
  };
}

const SETTINGS = ["temperature", "top_p", "max_tokens", "max_objects", "seed"];

const IDEAS = {
  "park.png": {
    query: ["What's in this image?", "Which thing is the biggest?", "What color is the balloon?"],
    object: ["dog", "everything", "balloon", "soccer ball"],
  },
  "street.png": {
    query: ["What does the sign say?", "What's in this picture?", "What is to the right of the bus?"],
    object: ["car", "house", "everything"],
  },
  "chart.png": {
    query: ["Which day has the most visitors?", "What is the value for Fri?", "What's the title?"],
    object: ["bars", "tallest bar", "text"],
  },
  "shapes.png": {
    query: ["What is in this picture?", "What color is the star?", "How many big shapes are there?"],
    object: ["big shapes", "green star", "heart", "small shapes"],
  },
  "circles.png": {
    query: ["How many circles are there?", "Is the star above the ring?", "What is in this picture?"],
    object: ["green circle", "white star", "ring"],
  },
  "sign.png": {
    query: ["What does the text say?", "Is the heart red?", "What is in this picture?"],
    object: ["ring", "heart", "shapes"],
  },
};

// For a sample, what it can be asked; for other pictures nobody knows that beforehand.
export function ideasFor(skill, picture) {
  if (!skill.field) return [];
  if (!picture?.sample) return skill.name === "query" ? [picture ? "What is in this picture?" : "What can you do?"] : [];
  return IDEAS[picture.sample]?.[skill.field === "question" ? "query" : skill.field] ?? [];
}
