// Making elements without a framework.

type Child = Node | string | undefined | false;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string | boolean | number | undefined | ((event: never) => void)> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value as EventListener);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
  for (const child of children) if (child !== undefined && child !== false) element.append(child);
  return element;
}

/** A button with a text and, in its tooltip, the key that does the same. */
export function button(label: string, key: string, click: () => void, style = ""): HTMLButtonElement {
  const title = key ? `${label} (${key})` : label;
  return h("button", { type: "button", class: style, title, click }, label);
}

/** Text for those who listen instead of looking. */
export function spoken(text: string): HTMLSpanElement {
  return h("span", { class: "spoken" }, text);
}
