// One scale for all weights: from the paper to a deep blue, or from the dark ground to a light one.

const LIGHT = [[255, 255, 255], [222, 235, 247], [158, 202, 225], [66, 130, 198], [20, 82, 160], [8, 40, 96]];
const DARK = [[19, 23, 31], [24, 44, 76], [30, 74, 135], [52, 118, 200], [120, 178, 240], [214, 234, 255]];

export const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

/** The colour of a weight between 0 and 1. */
export function colour(weight, dark = isDark()) {
  const stops = dark ? DARK : LIGHT;
  const place = Math.min(Math.max(weight, 0), 1) * (stops.length - 1);
  const at = Math.min(Math.floor(place), stops.length - 2);
  const mixed = stops[at].map((low, i) => Math.round(low + (stops[at + 1][i] - low) * (place - at)));
  return `rgb(${mixed.join(" ")})`;
}

/** The colour of a text on it. */
export function ink(weight, dark = isDark()) {
  return (weight > 0.5) === dark ? "#10141c" : "#ffffff";
}
