// What is shown, as files: a picture, numbers, and one page that works without the model.

import { h } from "explorer/dom.js";

function download(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Tables of numbers, as `csvOf` writes them. */
export const saveCsv = (csv) => download("attention.csv", `\ufeff${csv}`, "text/csv");

/** The view as a picture, twice as fine as on the screen, with all that scrolls unfolded. */
export async function savePicture(view) {
  const css = await styles();
  const wide = [...view.querySelectorAll(".scroll, .heat-scroll")].map((box) => box.scrollWidth + 40);
  const width = Math.max(view.scrollWidth, ...wide);
  const high = [...view.querySelectorAll(".scroll, .heat-scroll")].map((box) => box.scrollHeight - box.clientHeight);
  const height = view.scrollHeight + high.reduce((sum, each) => sum + each, 0) + 40;
  const body = document.createElementNS("http://www.w3.org/1999/xhtml", "body");
  const more = ".scroll, .heat-scroll { overflow: visible; max-height: none; } body { padding: 0 16px; } .map { max-width: none; }";
  const copy = view.cloneNode(true);
  // Cells go by the height of the window, and the picture has another one.
  const cells = [...view.querySelectorAll(".heat-cells")].map((each) => each.querySelector("rect").getBoundingClientRect().height);
  copy.querySelectorAll(".heat-map:has(.heat-cells)").forEach((figure, i) => figure.style.setProperty("--heat-largest", `${cells[i]}px`));
  const relative = h("input", { type: "checkbox", class: "heat-relative", hidden: true, checked: document.querySelector(".heat-relative")?.checked });
  body.append(h("style", {}, `${css}\n${more}`), relative, copy);
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" data-theme="${document.documentElement.dataset.theme}">`
    + `<foreignObject width="100%" height="100%">${new XMLSerializer().serializeToString(body)}</foreignObject></svg>`;
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = h("canvas", { width: 2 * width, height: 2 * height });
  const context = canvas.getContext("2d");
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => download("attention.png", blob));
}

async function styles() {
  const inside = document.querySelector("style")?.textContent;
  if (inside) return inside;
  const files = await Promise.all(["heat_map.css", "style.css"].map(async (name) => (await fetch(name)).text()));
  return files.join("\n").replaceAll(/@font-face \{[^}]*\}/g, ""); // a file has no fonts beside it
}

/** The page with its modules, its style and the answers inside of one file. */
export async function savePage(answers, state) {
  const modules = new Map();
  const add = async (name) => {
    if (modules.has(name)) return;
    modules.set(name, "");
    const text = await (await fetch(name.replace("explorer/", ""))).text();
    modules.set(name, text);
    await Promise.all([...text.matchAll(/ from "(explorer\/[^"]+)"/g)].map(([, other]) => add(other)));
  };
  await add("explorer/app.js");
  const base64 = (text) => btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(""));
  const imports = Object.fromEntries([...modules].map(([name, text]) => [name, `data:text/javascript;base64,${base64(text)}`]));
  const data = JSON.stringify(answers).replaceAll("<", "\\u003c"); // so that no token ends the script
  download("attention.html", `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>attnlab explorer</title>
<style>${await styles()}</style>
<script type="importmap">${JSON.stringify({ imports })}<\/script>
</head>
<body>
<div id="app"></div>
<script type="application/json" id="saved-answers" data-state="${encodeURIComponent(state)}">${data}<\/script>
<script type="module">import "explorer/app.js";<\/script>
</body>
</html>
`, "text/html");
}
