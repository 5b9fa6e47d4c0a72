// Elements by a function call, and a tree that is changed in place, so that focus, drags and scrolling last.

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "g", "rect", "path", "line", "text", "circle"]);

/** An element. Properties that start with `on` are handlers; null, undefined and false leave one out. */
export function h(tag, properties = {}, ...children) {
  // `title` is a tag of both; in a drawing it is asked for as "svg:title".
  const isSvg = SVG_TAGS.has(tag) || tag.startsWith("svg:");
  const element = isSvg ? document.createElementNS(SVG, tag.replace("svg:", "")) : document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element[name] = value;
    else if (name === "value") { element.value = value; element.setAttribute("value", value); }
    else if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  if (tag === "select") for (const option of element.options) option.selected = option.hasAttribute("selected");
  return element;
}

/** What scrolls where it does not fit, with a name; the keyboard reaches it. */
export const scrolling = (name, ...children) =>
  h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": name }, children);

const HANDLERS = ["onclick", "oninput", "onchange", "onkeydown", "onpointermove", "onpointerleave", "onpointerdown",
  "onpointerenter", "onfocus", "onsubmit", "ontoggle", "onblur"];

/**
 * Change the children of `live` into those of `wanted`, with as few new elements as possible.
 *
 * @param overwrite whether a box in which a person types takes the wanted text, too; else it keeps its own.
 */
export function morph(live, wanted, overwrite = false) {
  const now = [...live.childNodes];
  const next = [...wanted.childNodes];
  next.forEach((node, i) => {
    const old = now[i];
    if (!old) live.append(node);
    else if (old.nodeType !== node.nodeType || old.nodeName !== node.nodeName
      || (node.dataset?.key ?? "") !== (old.dataset?.key ?? "")) old.replaceWith(node);
    else if (node.nodeType === Node.TEXT_NODE) { if (old.data !== node.data) old.data = node.data; }
    else { copy(old, node); morph(old, node, overwrite); settle(old, node, overwrite); }
  });
  now.slice(next.length).forEach((node) => node.remove());
}

function copy(old, node) {
  for (const { name } of [...old.attributes]) {
    if (!node.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
  }
  for (const { name, value } of node.attributes) {
    if (old.getAttribute(name) === value) continue;
    if (name === "style") old.style.cssText = value; // as an attribute it would be refused
    else old.setAttribute(name, value);
  }
  for (const name of HANDLERS) if (old[name] !== node[name]) old[name] = node[name] ?? null;
}

/** What a person is typing stays; all else shows the state. */
function settle(old, node, overwrite) {
  const typing = !overwrite && old === document.activeElement && (old.nodeName === "TEXTAREA" || old.type === "text");
  if ("value" in old && !typing && !["BUTTON", "LI", "OPTION"].includes(old.nodeName) && old.value !== node.value) {
    old.value = node.value;
  }
  if (old.type === "checkbox" || old.type === "radio") old.checked = node.hasAttribute("checked");
}
