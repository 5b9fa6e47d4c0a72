// The table of runs sorts, filters and hides columns; the parallel coordinates draw its columns.
// Everything is read from the table, and texts only ever become text nodes.
"use strict";
(() => {
  const table = document.getElementById("table-of-runs");
  const heads = [...table.tHead.rows[0].cells];
  const rows = [...table.tBodies[0].rows];
  const MISSING = ["", "–"];
  const SVG = "http://www.w3.org/2000/svg";

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

  function drawn(tag, attributes = {}, ...children) {
    const made = document.createElementNS(SVG, tag);
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

  // Filtering: every word must occur in a value; `name=value` looks at the columns of that name.
  const filter = element("input", { type: "search", id: "filter-of-runs", placeholder: "dot 3, or attention=dot" });
  const count = element("output", { for: "filter-of-runs", "aria-live": "polite" });
  let shown = new Set(rows.keys());

  function matches(run, word) {
    const [, name, value] = word.match(/^([^=]+)=(.*)$/) ?? [null, "", word];
    return columns.some((column) =>
      (name ? plain(column.name).includes(name) : !column.equal) && plain(column.texts[run]).includes(value));
  }

  function applyFilter() {
    const words = plain(filter.value).split(/\s+/).filter(Boolean);
    shown = new Set([...rows.keys()].filter((run) => words.every((word) => matches(run, word))));
    rows.forEach((row, run) => { row.hidden = !shown.has(run); });
    count.textContent = `${shown.size} of ${rows.length} runs`;
    drawLines();
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

  // Parallel coordinates: an axis for each chosen column, a line for each run, the better end of a measure on top.
  const figure = document.getElementById("parallel-figure");
  const words = element("output", { class: "quiet", "aria-live": "polite" });
  const candidates = columns.filter((column) => !column.equal && column.kind !== "system" && column.values.some((_, run) => has(column, run)));
  const usual = candidates.filter((column) => column.kind === "choice" || column.better !== "");
  const ranked = columns.find((column) => column.head.dataset.ranked !== undefined);
  const chosen = new Set([...usual.filter((column) => column.kind === "choice"), ranked, ...usual].filter((column) => candidates.includes(column)).slice(0, 9));
  const HEIGHT = 300, TOP = 46, LEFT = 105, RIGHT = 60, GAP = 110;
  const over = drawn("path", { class: "over" }); // the highlighted line once more, above the others
  let lines = new Map();
  let current = null; // the run that the Tab key reaches

  const shortened = (text, most = 15) => ([...text].length > most ? `${[...text].slice(0, most - 1).join("")}…` : text);
  const rounded = (value) => (value === 0 || (Math.abs(value) >= 1e-3 && Math.abs(value) < 1e5)
    ? String(Number(value.toPrecision(4))) : value.toExponential(1));

  // Where a run's value lies on an axis, 0 at the bottom to 1 on top, and the marks of the axis.
  function scaleOf(column) {
    const there = [...rows.keys()].filter((run) => has(column, run));
    if (!column.numeric) {
      const names = [...new Set(there.map((run) => column.texts[run]))]
        .sort((one, other) => other.localeCompare(one, undefined, { numeric: true }));
      const place = (text) => (names.length > 1 ? names.indexOf(text) / (names.length - 1) : 0.5);
      const step = Math.ceil(names.length / 16); // more names than fit
      return {
        at: (run) => place(column.texts[run]),
        marks: names.filter((_, number) => number % step === 0).map((name) => [place(name), name]),
      };
    }
    const numbers = there.map((run) => Number(column.values[run]));
    const [least, most] = [Math.min(...numbers), Math.max(...numbers)];
    const logarithmic = column.kind !== "measure" && least > 0 && most / least >= 50;
    const [bend, back] = logarithmic ? [Math.log, Math.exp] : [(value) => value, (value) => value];
    const [low, high] = [bend(least), bend(most)];
    const upside = (share) => (column.better === "↓" ? 1 - share : share);
    const place = (value) => upside(high > low ? (bend(value) - low) / (high - low) : 0.5);
    const few = [...new Set(numbers)];
    const written = (value) => (few.length <= 5 ? column.texts[there.find((run) => Number(column.values[run]) === value)] : rounded(value));
    const marks = few.length <= 5 ? few : [0, 1 / 3, 2 / 3, 1].map((share) => back(low + share * (high - low)));
    return { at: (run) => place(Number(column.values[run])), marks: marks.map((value) => [place(value), written(value)]) };
  }

  const described = (run, axes) =>
    `${columns[0].texts[run]}: ${axes.map((column) => `${column.name} ${column.texts[run] || "–"}`).join(", ")}`;

  function light(run, on) {
    lines.get(run)?.classList.toggle("lit", on);
    rows[run].classList.toggle("lit", on);
    if (on) words.textContent = described(run, columns.filter((column) => chosen.has(column)));
    if (on) over.setAttribute("d", lines.get(run)?.lastChild.getAttribute("d") ?? "");
    over.classList.toggle("lit", on);
  }

  function reach(run) {
    if (current !== null) lines.get(current)?.setAttribute("tabindex", "-1");
    current = run;
    lines.get(run)?.setAttribute("tabindex", "0");
  }

  function moved(event) {
    const order = [...table.tBodies[0].rows].map((row) => rows.indexOf(row)).filter((run) => lines.has(run));
    const place = order.indexOf(current);
    const next = { ArrowDown: place + 1, ArrowRight: place + 1, ArrowUp: place - 1, ArrowLeft: place - 1, Home: 0, End: order.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const run = order[Math.max(0, Math.min(order.length - 1, next))];
    reach(run);
    lines.get(run).focus();
  }

  function drawLines() {
    const axes = columns.filter((column) => chosen.has(column));
    lines = new Map();
    if (axes.length === 0) {
      figure.replaceChildren("Choose an axis.");
      return;
    }
    const scales = axes.map(scaleOf);
    const gaps = Math.max(axes.length - 1, 1);
    const width = Math.max(LEFT + RIGHT + GAP * gaps, figure.clientWidth);
    const x = (place) => LEFT + ((width - LEFT - RIGHT) / gaps) * place;
    const y = (share) => TOP + HEIGHT * (1 - share);
    const below = TOP + HEIGHT + 26; // missing values
    const svg = drawn("svg", {
      viewBox: `0 0 ${width} ${below + 14}`, width, height: below + 14, role: "group",
      "aria-label": "Parallel coordinates: a line for each run. The arrow keys go from run to run.",
    });
    const drawnAxes = axes.map((column, place) => {
      const axis = drawn("g", { class: "axis", transform: `translate(${x(place)} 0)` });
      const name = drawn("text", { class: "name", y: place % 2 ? TOP - 30 : TOP - 14 }, shortened(column.name, 26));
      name.append(drawn("title", {}, column.name));
      axis.append(name, drawn("line", { y1: TOP, y2: TOP + HEIGHT }));
      for (const [share, text] of scales[place].marks) {
        const mark = drawn("text", { x: -6, y: y(share) + 4, class: "mark" }, shortened(text));
        mark.append(drawn("title", {}, text));
        axis.append(drawn("line", { x1: -3, x2: 3, y1: y(share), y2: y(share) }), mark);
      }
      if (rows.some((_, run) => !has(column, run))) axis.append(drawn("text", { x: -6, y: below + 4, class: "mark" }, "–"));
      return axis;
    });
    const colours = ranked === undefined ? null : scaleOf(ranked);
    for (const run of shown) {
      const points = axes.map((column, place) => `${x(place)} ${has(column, run) ? y(scales[place].at(run)) : below}`);
      const path = `M${points.length > 1 ? points.join("L") : `${points[0]}h12`}`;
      const known = colours !== null && has(ranked, run);
      const line = drawn("g", { class: "run", tabindex: "-1", role: "img", "aria-label": described(run, axes) },
        drawn("title", {}, described(run, axes)), drawn("path", { d: path, class: "near" }),
        drawn("path", { d: path, style: `stroke: ${known ? `color-mix(in oklab, #e8710a ${100 * colours.at(run)}%, #2563c9)` : "gray"}` }));
      line.addEventListener("pointerenter", () => light(run, true));
      line.addEventListener("pointerleave", () => light(run, false));
      line.addEventListener("focus", () => light(run, true));
      line.addEventListener("blur", () => light(run, false));
      line.addEventListener("keydown", moved);
      lines.set(run, line);
      svg.append(line);
    }
    svg.append(over, ...drawnAxes); // labels above the lines
    figure.replaceChildren(svg);
    reach(shown.has(current) ? current : [...shown][0] ?? null);
  }

  rows.forEach((row, run) => {
    row.addEventListener("pointerenter", () => light(run, true));
    row.addEventListener("pointerleave", () => light(run, false));
  });

  const axesBox = document.getElementById("axes");
  for (const column of candidates) {
    const box = element("input", { type: "checkbox" });
    box.checked = chosen.has(column);
    box.addEventListener("change", () => {
      chosen[box.checked ? "add" : "delete"](column);
      drawLines();
    });
    axesBox.append(element("label", {}, box, ` ${column.name}`));
  }
  figure.after(words);
  applyEqual();
  applyFilter();
})();
