// The documentation's two comforts: a button that copies each block of code, and the table of contents of a page, which
// is open where there is room for it. Without scripts all can be read.

import { copies } from "../shared/copy.js";

for (const code of document.querySelectorAll("pre.code")) {
  const [box, button] = ["div", "button"].map((tag) => document.createElement(tag));
  box.className = "copied";
  Object.assign(button, { className: "small", type: "button", textContent: "Copy" });
  code.replaceWith(box);
  box.append(code, button);
  copies(button, () => code.textContent.trimEnd());
}

const isWide = matchMedia("(min-width: 1100px)");
const fold = () => (document.querySelector(".sections details").open = isWide.matches);
isWide.addEventListener("change", fold);
fold();
