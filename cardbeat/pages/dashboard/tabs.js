// Tabs by the keyboard pattern of the ARIA Authoring Practices: arrows, Home and End move; one tab is in the tab order.

let made = 0;

/**
 * Fills `list` (role="tablist") with a tab for each `{ id, name }`; they show in `panel` (role="tabpanel").
 * `choose(id)` is called when one is chosen. Returns `select(id)`, which shows the choice without calling it.
 */
export function makeTabs(list, panel, items, choose) {
  made += 1;
  panel.id = `panel-${made}`;
  const tabs = items.map(({ id, name }) => tab(`tab-${made}-${id}`, id, name, panel.id));
  list.replaceChildren(...tabs);
  list.addEventListener("click", ({ target }) => target.dataset.id && pick(target));
  list.addEventListener("keydown", move);
  return select;

  function select(id) {
    for (const tab of tabs) {
      const isChosen = tab.dataset.id === id;
      tab.setAttribute("aria-selected", String(isChosen));
      tab.tabIndex = isChosen ? 0 : -1;
      if (isChosen) panel.setAttribute("aria-labelledby", tab.id);
    }
  }

  function pick(tab) {
    select(tab.dataset.id);
    choose(tab.dataset.id);
  }

  function move(event) {
    const at = tabs.indexOf(event.target);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined || at < 0) return;
    event.preventDefault();
    const next = tabs.at(to % tabs.length);
    next.focus();
    pick(next);
  }
}

function tab(id, choice, name, panelId) {
  const button = document.createElement("button");
  Object.assign(button, { id, type: "button", textContent: name });
  button.dataset.id = choice;
  button.setAttribute("role", "tab");
  button.setAttribute("aria-controls", panelId);
  return button;
}
