// One section of the list of checks: a heading that opens and closes it, and the rows below.

import { fromTemplate, part, setText } from "../shared/dom.js";

export class Section {
  constructor() {
    this.element = fromTemplate("check-section");
  }

  /** Shows a section that `arrange` returned, with the row of each check from `rowOf(check, isInGroup)`. */
  show({ title, isGroup, checks }, rowOf) {
    setText(part(this.element, "title"), title);
    setText(part(this.element, "count"), String(checks.length));
    place(part(this.element, "rows"), checks.map((check) => rowOf(check, isGroup).element));
  }
}

/** Sets the children of a node. Those that stay are moved only where their order changed. */
export function place(parent, children) {
  const wanted = new Set(children);
  for (const child of [...parent.children]) {
    if (!wanted.has(child)) child.remove();
  }
  children.forEach((child, index) => {
    if (parent.children[index] !== child) parent.insertBefore(child, parent.children[index] ?? null);
  });
}
