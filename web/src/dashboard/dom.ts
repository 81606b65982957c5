/** Elements. Names from the network and from files become text, never markup. */

/** An element with attributes and children; a string is a text. */
export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Record<string, string> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** The element with this id, which the page has. */
export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no ${id}`);
  return found;
}

/** Sets a text, if it is another one: screen readers read a status again that is set again. */
export function setText(node: Element, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}
