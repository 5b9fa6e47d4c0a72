// The colour of a weight is a class, `heat-<level>`; heat_map.css gives it for a light and a dark page.

export const LEVELS = 20;

export const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

/** The number of the colour of a share between 0 and 1. */
export const level = (share) => Math.floor(LEVELS * Math.min(Math.max(share, 0), 1) + 0.5);
