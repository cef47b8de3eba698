"use strict";
// Forgeworks' drop-downs: a button shows a list of plain divs or links. A `post` menu is a form that choosing sends, a
// `pick` menu fills a hidden field, and an item with `data-sub` opens the list of that name.

for (const menu of document.querySelectorAll("[data-menu]")) {
  const button = menu.querySelector("button");
  const lists = [...menu.querySelectorAll(".list")];
  const field = menu.querySelector("input[type=hidden]:not([name=form_key])");
  const options = [...menu.querySelectorAll("[role=option]")];

  const show = (wanted) => {
    for (const list of lists) list.hidden = list !== wanted;
    button.setAttribute("aria-expanded", String(Boolean(wanted)));
  };
  const write = () => {
    const chosen = field.value.split(",");
    for (const option of options) option.setAttribute("aria-selected", String(chosen.includes(option.dataset.value)));
    const texts = options.filter((option) => option.dataset.value && chosen.includes(option.dataset.value));
    const shown = texts.map((option) => option.textContent).join(", ") || menu.dataset.none;
    button.textContent = `${menu.dataset.title}: ${shown}`;
  };
  const choose = (value) => {
    if (menu.dataset.many) {
      const chosen = new Set(field.value.split(",").filter(Boolean));
      if (!chosen.delete(value)) chosen.add(value);
      field.value = [...chosen].join(",");
    } else {
      field.value = value;
    }
    show(null);
    if (menu.dataset.menu === "post") menu.submit();
    else write();
  };

  button.addEventListener("click", () => show(lists.every((list) => list.hidden) ? lists[0] : null));
  for (const option of options) option.addEventListener("click", () => choose(option.dataset.value));
  for (const item of menu.querySelectorAll("[data-sub]")) {
    item.addEventListener("click", () => show(lists.find((list) => list.dataset.for === item.dataset.sub)));
  }
  document.addEventListener("click", (event) => { if (!menu.contains(event.target)) show(null); });
  menu.addEventListener("keydown", (event) => { if (event.key === "Escape") show(null); });
  if (menu.dataset.menu === "pick") write();
}
