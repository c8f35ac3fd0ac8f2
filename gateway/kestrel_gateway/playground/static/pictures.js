// The picture at hand: chosen, dropped, pasted or a sample. Sent as it is; shown upright, as the model sees it.

import { find, make } from "./dom.js";

export class Pictures {
  #limit = Infinity;
  #onChange;
  #onProblem;
  current = null; // {file, name, url, width, height, sample}

  constructor(onChange, onProblem) {
    this.#onChange = onChange;
    this.#onProblem = onProblem;
    const input = find("file");
    find("choose").addEventListener("click", () => input.click());
    input.addEventListener("change", () => {
      if (input.files.length) this.take(input.files[0]);
      input.value = ""; // so that the same file can be chosen again
    });
    find("remove").addEventListener("click", () => this.show(null));
    this.#listenForDrops();
    document.addEventListener("paste", (event) => {
      const file = pictureIn(event.clipboardData);
      if (!file) return; // words go where the cursor is
      event.preventDefault();
      this.take(file);
    });
  }

  offer(samples, limit) {
    this.#limit = limit;
    find("choose").title = `JPEG, PNG, WebP or GIF, up to ${megabytes(limit)}; sent as it is`;
    find("samples").replaceChildren(...samples.map((name) =>
      make("button", {
        type: "button", title: name, "data-sample": name, "aria-pressed": "false",
        "aria-label": `Sample ${name.replace(/\.\w+$/, "")}`, onclick: () => this.takeSample(name),
      }, make("img", { src: `/samples/${name}`, alt: "", width: 52, height: 39 }))));
  }

  async takeSample(name) {
    const response = await fetch(`/samples/${name}`);
    if (response.ok) await this.take(new File([await response.blob()], name, { type: "image/png" }), name);
  }

  async take(file, sample = null) {
    if (file.size > this.#limit) {
      this.#onProblem(`${file.name} has ${megabytes(file.size)}; this server takes pictures up to ${megabytes(this.#limit)}.`,
        "Choose a smaller picture.");
      return;
    }
    const url = URL.createObjectURL(file);
    const image = new Image();
    image.src = url;
    try {
      await image.decode();
    } catch {
      URL.revokeObjectURL(url);
      this.#onProblem(`${file.name || "This file"} is not a picture that this browser can show.`, "Choose a JPEG, PNG, WebP or GIF.");
      return;
    }
    const name = sample ?? nameOf(file);
    this.show({ file, name, url, width: image.naturalWidth, height: image.naturalHeight, sample });
  }

  // Addresses of earlier pictures stay valid: the list of what was asked shows them again.
  show(picture) {
    this.current = picture;
    const frame = find("frame");
    frame.hidden = find("remove").hidden = !picture;
    find("empty").hidden = Boolean(picture);
    find("picture-note").textContent = picture ? `${picture.name} · ${picture.width} × ${picture.height}` : "";
    if (picture) {
      frame.style.setProperty("--ratio", picture.width / picture.height);
      Object.assign(find("picture"), { src: picture.url, alt: `The picture that is asked about: ${picture.name}` });
    }
    for (const button of find("samples").children) {
      button.setAttribute("aria-pressed", String(button.dataset.sample === picture?.sample));
    }
    this.#onChange(picture);
  }

  #listenForDrops() {
    const stage = find("stage");
    const isFile = (event) => event.dataTransfer.types.includes("Files");
    document.addEventListener("dragover", (event) => {
      if (!isFile(event)) return;
      event.preventDefault(); // a picture that misses the stage must not replace the page
      stage.classList.add("over");
    });
    document.addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) stage.classList.remove("over");
    });
    document.addEventListener("drop", (event) => {
      if (!isFile(event)) return;
      event.preventDefault();
      stage.classList.remove("over");
      const file = pictureIn(event.dataTransfer);
      if (file) this.take(file);
      else this.#onProblem("What was dropped is not a picture.", "Drop a JPEG, PNG, WebP or GIF.");
    });
  }
}

function pictureIn(data) {
  return [...(data?.files ?? [])].find((file) => file.type.startsWith("image/"));
}

// A name that the snippets can use: no folder, no line break, and an ending that fits.
function nameOf(file) {
  const ending = file.type.split("/")[1]?.replace("jpeg", "jpg").replace(/\W.*/, "") || "png";
  const name = (file.name || "").replace(/[\u0000-\u001f/\\]/g, "").trim();
  return name || `picture.${ending}`;
}

function megabytes(bytes) {
  return `${(bytes / 2 ** 20).toFixed(bytes < 10 * 2 ** 20 ? 1 : 0)} MB`;
}
