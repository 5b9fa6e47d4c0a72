// The table of runs sorts, filters and hides columns; tables that are wider than the page say so.
// Everything is read from the tables, and texts only ever become text nodes.
"use strict";
(() => {
  const table = document.getElementById("table-of-runs");
  const heads = [...table.tHead.rows[0].cells];
  const rows = [...table.tBodies[0].rows];
  const MISSING = ["", "–"];

  const plain = (text) => text.normalize("NFC").toLowerCase();
  const isNumber = (text) => Number.isFinite(Number(text)); // Number("") is 0, but missing values come first

  // One object a column: its name, its kind (system, choice, parameter, measure), and a text for each run.
  const columns = heads.map((head, place) => {
    const cells = rows.map((row) => row.cells[place]);
    const texts = cells.map((cell) => cell.textContent.trim());
    const values = cells.map((cell, run) => cell.dataset.v ?? texts[run]);
    const there = values.filter((value) => !MISSING.includes(value));
    return {
      place, head, cells, texts, values,
      name: head.textContent.trim(),
      kind: head.dataset.kind,
      better: head.dataset.better ?? "",
      numeric: there.length > 0 && there.every(isNumber),
      equal: head.dataset.kind !== "system" && new Set(values).size === 1 && rows.length > 1,
    };
  });
  const has = (column, run) => !MISSING.includes(column.values[run]);

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  // Sorting: the first click puts the best, the least or the first in the alphabet on top, the second turns that round.
  function sort(column) {
    const before = column.head.getAttribute("aria-sort");
    const first = column.better === "↑" ? "descending" : "ascending";
    const order = before === first ? (first === "ascending" ? "descending" : "ascending") : first;
    const sign = order === "ascending" ? 1 : -1;
    const compared = (one, other) =>
      column.numeric
        ? Number(column.values[one]) - Number(column.values[other])
        : column.texts[one].localeCompare(column.texts[other], undefined, { numeric: true });
    const places = rows.map((_, run) => run).sort((one, other) => {
      if (has(column, one) !== has(column, other)) return has(column, one) ? -1 : 1; // missing values stay below
      return has(column, one) ? sign * compared(one, other) : 0;
    });
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    column.head.setAttribute("aria-sort", order);
    table.tBodies[0].append(...places.map((run) => rows[run]));
  }
  for (const column of columns) {
    const button = element("button", { type: "button", class: "sort" }, ...column.head.childNodes);
    button.addEventListener("click", () => sort(column));
    column.head.replaceChildren(button);
  }

  // Filtering: every word must occur in a value; `name=value` looks at the columns of that name, in which
  // _ stands for a space: spaces separate words.
  const filter = element("input", { type: "search", id: "filter-of-runs", placeholder: "dot 3, or attention=dot" });
  const count = element("output", { for: "filter-of-runs", "aria-live": "polite" });
  let shown = new Set(rows.keys());

  const spaced = (name) => plain(name).replaceAll("_", " ");

  function matches(run, word) {
    const [, name, value] = word.match(/^([^=]+)=(.*)$/) ?? [null, "", word];
    return columns.some((column) =>
      (name ? spaced(column.name).includes(spaced(name)) : !column.equal) && plain(column.texts[run]).includes(value));
  }

  function applyFilter() {
    const words = plain(filter.value).split(/\s+/).filter(Boolean);
    shown = new Set([...rows.keys()].filter((run) => words.every((word) => matches(run, word))));
    rows.forEach((row, run) => { row.hidden = !shown.has(run); });
    count.textContent = `${shown.size} of ${rows.length} runs`;
  }
  filter.addEventListener("input", applyFilter);

  // Columns that are equal in all runs.
  const every = element("input", { type: "checkbox", id: "every-parameter" });
  const equal = columns.filter((column) => column.equal);
  function applyEqual() {
    for (const column of equal) {
      for (const cell of [column.head, ...column.cells]) cell.hidden = !every.checked;
    }
  }
  every.addEventListener("change", applyEqual);

  const tools = document.getElementById("tools-of-runs");
  tools.append(element("label", { for: "filter-of-runs" }, "Filter "), filter, count);
  if (equal.length > 0) {
    tools.append(element("label", {}, every, ` Show the ${equal.length} columns that are equal in all runs`));
  }

  // Words beside what scrolls, and a place for the keyboard.
  const HINT = "Scroll sideways for more columns →";
  const wide = [...document.querySelectorAll(".wide")];
  const hints = new Map(wide.map((box) => [box, element("p", { class: "hint" }, HINT)]));
  wide.forEach((box, number) => {
    box.setAttribute("aria-label", `table ${number + 1}`);
    box.before(hints.get(box));
  });
  function showHint(box) {
    const overflows = box.scrollWidth > box.clientWidth + 1;
    hints.get(box).hidden = !overflows;
    box.toggleAttribute("tabindex", overflows);
    if (overflows) box.setAttribute("tabindex", "0");
    if (overflows) box.setAttribute("role", "region");
    else box.removeAttribute("role");
  }
  const observer = new ResizeObserver((entries) => entries.forEach((entry) => showHint(entry.target.closest(".wide"))));
  for (const box of wide) {
    observer.observe(box);
    observer.observe(box.firstElementChild);
  }

  applyEqual();
  applyFilter();
})();

// MLflow shows its copy of this page in a frame: the reports lie beside the original page alone, and
// the frame lets no link out.
if (window.self !== window.top) {
  for (const link of document.querySelectorAll(".leads-out")) link.hidden = true;
  document.getElementById("framed-copy").hidden = false;
}
