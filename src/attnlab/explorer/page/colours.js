// The colour of a weight is a class, `heat-<level>`; heat_map.css gives it for a light and a dark page.

export const LEVELS = 20;
const FAINT = 0.1; // the largest weight of a row that the scale from 0 to 1 would leave nearly white

export const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

/** The number of the colour of a share between 0 and 1; a negative one has that of its size. */
export const level = (share) => Math.floor(LEVELS * Math.min(Math.abs(share), 1) + 0.5);

/** Whether most rows of a map have small weights alone, so that each needs a scale of its own. */
export function isFaint(attention) {
  if (!attention?.length) return false;
  const faint = attention.filter((row) => Math.max(...row) < FAINT);
  return 2 * faint.length > attention.length;
}
