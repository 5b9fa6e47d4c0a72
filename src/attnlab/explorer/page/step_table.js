// The numbers of one step as tables for the CSV file.

import { vectorNames, vectorTable } from "explorer/csv.js";

/** For each head a line a source token, and then each vector of the step. */
export function stepTables({ heads, source, target }, wanted) {
  if (!heads) return [];
  const step = Math.min(wanted, target.length - 1);
  return heads.flatMap((head, number) => [tokenTable(head, source, step, heads.length > 1 ? `head_${number + 1}` : "source"), ...vectors(head, step)]);
}

function tokenTable(head, source, step, corner) {
  const columns = ["energies", "visible", "coverage", "emphasis", "weights"].filter((name) => head[name]);
  const names = [corner, ...columns, ...vectorNames("key", head.keys[0]), ...vectorNames("value", head.values[0])];
  const rows = source.map((token, j) => [token, ...columns.map((name) => Number(head[name][step][j])), ...head.keys[j], ...head.values[j]]);
  return [names, ...rows];
}

const vectors = (head, step) => ["query", "projected_query", "context"].filter((name) => head[name])
  .map((name) => vectorTable(name, head[name][step]));
