// Light or dark: the choice of the reader, else the preference of the system. Not a module, so that
// it applies before the first paint.

(() => {
  const root = document.documentElement;
  const preferred = matchMedia("(prefers-color-scheme: dark)");
  const current = () => root.dataset.theme ?? (preferred.matches ? "dark" : "light");
  const other = () => (current() === "dark" ? "light" : "dark");

  try {
    const chosen = localStorage.getItem("lowwater-theme");
    if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  } catch {
    // Storage may be forbidden; then the choice lasts as long as the page.
  }

  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const label = () => (button.textContent = other() === "dark" ? "Dark" : "Light");
    label();
    preferred.addEventListener("change", label);
    button.addEventListener("click", () => {
      root.dataset.theme = other();
      label();
      try {
        localStorage.setItem("lowwater-theme", root.dataset.theme);
      } catch {
        // As above.
      }
    });
  });
})();
