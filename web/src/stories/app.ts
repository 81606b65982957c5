/** The page of stories. */

import { Engine } from "../engine/engine";
import { byId, h } from "../dom";
import { moduleBytes, workerScript } from "../playground/files";
import { themeSwitch } from "../report/theme";
import data from "./data/stories.json";
import { Live } from "./live";
import type { Publication } from "./model";
import { Panel } from "./panel";
import { STORIES } from "./stories";

function main(): void {
  document.body.prepend(themeSwitch());
  const publications = data as unknown as Publication[];
  const live = new Live(async () => {
    if (typeof WebAssembly !== "object") throw new Error("this browser has no WebAssembly, or it is switched off");
    return Engine.load(workerScript(), await moduleBytes(""));
  });
  const panels: Panel[] = [];
  const place = byId("stories");
  const contents = byId("contents");
  for (const story of STORIES) {
    const publication = publications.find(({ key }) => key === story.key);
    if (publication === undefined) throw new Error(`no data of ${story.key}`);
    const source = `${publication.authors}, ${publication.year}, ${publication.kind}: ${publication.topic}.`;
    const all = story.figures.map((figure) => new Panel(publication, figure, live));
    panels.push(...all);
    contents.append(
      h(
        "li",
        {},
        h("a", { href: `#${story.key}` }, story.title),
        h("span", { class: "caption" }, ` ${publication.authors}, ${publication.year}`),
      ),
    );
    place.append(
      h(
        "article",
        { id: story.key },
        h("h2", {}, story.title),
        h(
          "p",
          { class: "caption" },
          source,
          " ",
          h("a", { href: `docs/reproductions/${story.key}.html` }, "The whole reproduction"),
        ),
        ...story.text.map((text) => h("p", {}, text)),
        ...all.map(({ element }) => element),
      ),
    );
  }
  const restyle = () => panels.forEach(({ chart }) => chart.restyle());
  new MutationObserver(restyle).observe(document.documentElement, {
    attributes: true,
    attributeFilter: ["data-theme"],
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
  byId("loading").remove();
  // The address may name a story, which was not there when the page was loaded.
  if (location.hash !== "") document.getElementById(location.hash.slice(1))?.scrollIntoView();
  document.documentElement.dataset["ready"] = "";
}

main();
