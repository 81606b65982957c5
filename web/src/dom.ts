/** Elements of a page. Texts become text nodes, never markup. */

type Child = Node | string | null;

/** An element with attributes, and children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Record<string, string | boolean | number> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(key, "");
    else if (value !== false) element.setAttribute(key, String(value));
  }
  element.append(...children.filter((child): child is Node | string => child !== null));
  return element;
}

/** The element with this id, which the page has. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  return found as T;
}

/** Sets a text, if it is another one: screen readers read a status again that is set again. */
export function setText(node: Element, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}
