// The saved choice of light or dark, set before the first paint. A classic script: modules run too late for that.
(() => {
  const KEY = "heartwheel.theme";
  const kept = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // storage may be forbidden; then the scheme of the system applies
    }
  };
  const apply = (/** @type {string | null} */ theme) => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  };
  globalThis.heartwheelTheme = {
    dark: () => (kept() ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark",
    set: (theme) => {
      try {
        localStorage.setItem(KEY, theme);
      } catch {
        // as above; then the choice lasts until the page is closed
      }
      apply(theme);
      dispatchEvent(new Event("heartwheel-theme"));
    },
  };
  apply(kept());
})();
