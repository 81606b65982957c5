/** The script of a report: the page shows its drawings until this has replaced them. */

import uplotStyle from "uplot/dist/uPlot.min.css";

import { decode, unpacked, type Figures } from "./data";
import { enhance } from "./enhance";
import style from "./report.css";
import { enhanceTables } from "./tables";
import { themeSwitch } from "./theme";

function addStyle(text: string): void {
  const element = document.createElement("style");
  element.textContent = text;
  document.head.append(element);
}

async function main(): Promise<void> {
  addStyle(uplotStyle + style);
  document.body.prepend(themeSwitch());
  const figures = document.getElementById("figures");
  const columns = document.getElementById("columns");
  if (figures === null || columns === null) return enhanceTables(document);
  // A report that was cut off has no whole data: the drawings stay.
  const data = JSON.parse(figures.textContent ?? "") as Figures;
  const bytes = await unpacked((columns.textContent ?? "").trim());
  enhance(document.body, data, decode(data.columns, bytes));
  document.documentElement.dataset["ready"] = "";
}

main().catch((error: unknown) => {
  const note = document.createElement("p");
  note.className = "caption";
  note.setAttribute("role", "status");
  note.textContent = `The plots of this page do not answer (${String(error)}); the drawings are complete.`;
  document.body.prepend(note);
});
