/** A switch between light and dark, above the setting of the system. */

const KEY = "lastmile-theme";

/** The setting that was stored; files from disk may have no store. */
function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function apply(theme: string | null): void {
  if (theme === "light" || theme === "dark") document.documentElement.dataset["theme"] = theme;
  else delete document.documentElement.dataset["theme"];
}

/** The button, which also applies the stored setting. */
export function themeSwitch(): HTMLButtonElement {
  apply(stored());
  const button = document.createElement("button");
  button.type = "button";
  button.className = "theme";
  button.textContent = "\u25d0";
  button.title = "Light or dark";
  button.setAttribute("aria-label", "Light or dark");
  button.addEventListener("click", () => {
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    const now = document.documentElement.dataset["theme"] ?? system;
    const next = now === "dark" ? "light" : "dark";
    apply(next);
    try {
      localStorage.setItem(KEY, next);
    } catch {
      // Without a store the setting lasts as long as the page.
    }
  });
  return button;
}
