// What the theme adds to a page, made reachable: tables that scroll take the keyboard, and each block's buttons have a name.

const mend = () => {
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) table.tabIndex = 0;
  document.querySelectorAll(".md-code__nav").forEach((buttons, index) => {
    buttons.setAttribute("aria-label", `${buttons.firstElementChild?.title ?? ""} ${index + 1}`);
  });
};

mend();
new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
