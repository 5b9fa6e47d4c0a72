// Tables of numbers as one CSV file, as Python's csv module and spreadsheets read it.
// A view gives its tables as lists of rows, the header first: from its answers, never from what is shown.

/** Tokens with commas and quotes in quotes; a longer token that a spreadsheet would compute gets an apostrophe. */
function field(value) {
  if (typeof value === "number") return String(value);
  const text = String(value);
  const isFormula = /^[=+@\t\r]./s.test(text) || /^-\D/.test(text);
  const safe = isFormula ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The tables, with an empty line between two of them. */
export function csvOf(tables) {
  const lines = (table) => table.map((row) => row.map(field).join(",")).join("\r\n");
  return `${tables.map(lines).join("\r\n\r\n")}\r\n`;
}

/** A heat map: source tokens as header, a line a target token. */
export function mapTable({ source, target, attention }, corner = "target") {
  const head = [corner, ...source];
  return [head, ...target.map((token, row) => [token, ...attention[row]])];
}

/** The maps of those answers that have attention, each with its name in the corner. */
export const mapTables = (named) => named.filter(([, answer]) => answer?.attention).map(([name, answer]) => mapTable(answer, name));

/** Log-probabilities of the target tokens before and after a change. */
export function effectsTable(before, after) {
  const rows = before.target.map((token, i) => {
    const [from, to] = [before.log_probs[i], after.log_probs[i]];
    return [token, from, to, to - from];
  });
  return [["target", "before", "after", "change"], ...rows];
}
