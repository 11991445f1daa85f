// Elements are made by functions that take text as text: nothing of a report is ever read as HTML.
const SVG = "http://www.w3.org/2000/svg";

function element(tag, properties, ...children) {
  return filled(document.createElement(tag), properties, children);
}

function drawn(tag, properties, ...children) {
  return filled(document.createElementNS(SVG, tag), properties, children);
}

function filled(node, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, action] of Object.entries(value)) node.addEventListener(event, action);
    else if (name === "style") Object.assign(node.style, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

function card(title, ...content) {
  return element("section", { class: "card" }, title && element("h2", {}, title), ...content);
}

function note(text) {
  return element("p", { class: "note" }, text);
}

function cell(content, isNumber) {
  return element("td", { class: isNumber ? "number" : null }, content);
}

// A table from rows of cells; the columns say which are numbers.
// A stacked table shows each row as a block on narrow screens, with the names of the columns beside the values.
function table(caption, columns, rows, stacked) {
  const head = columns.map((column) => element("th", { scope: "col", class: column.number ? "number" : null }, column.label));
  return element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
    element("table", { class: stacked ? "stacked" : null }, element("caption", { class: "unseen" }, caption), element("thead", {}, element("tr", {}, head)),
      element("tbody", {}, rows.map((row) => labelled(Array.isArray(row) ? element("tr", {}, row.map((each, place) => cell(each, columns[place].number))) : row, columns)))));
}

function labelled(row, columns) {
  [...row.children].forEach((each, place) => { if (columns[place]) each.dataset.label = columns[place].label; });
  return row;
}

function sourceLine(source) {
  if (!source) return element("span", { class: "note" }, "no source line");
  const name = `${shortPath(source.file)}:${source.line}`;
  return element("span", { class: "source", title: `${source.file}:${source.line}` },
    element("span", { class: "where" }, name), source.text ? element("span", { class: "code" }, `  ${source.text}`) : null);
}

function meter(share, color) {
  const inside = element("span", { style: { width: `${Math.max(0, Math.min(1, share || 0)) * 100}%`, background: color || "var(--c0)" } });
  return element("span", { class: "meter", "aria-hidden": "true" }, inside);
}

function announce(text) {
  document.getElementById("status").textContent = text;
}

const tooltip = {
  show(text, x, y) {
    const box = document.getElementById("tooltip");
    box.textContent = text;
    box.hidden = false;
    const { width, height } = box.getBoundingClientRect();
    const left = x + 14 + width > innerWidth ? Math.max(4, x - width - 14) : x + 14;
    const top = y + 14 + height > innerHeight ? Math.max(4, y - height - 14) : y + 14;
    box.style.left = `${left}px`;
    box.style.top = `${top}px`;
  },
  hide() {
    document.getElementById("tooltip").hidden = true;
  },
};

// Functions that draw a place again if its width has changed.
const sized = [];

// Draws now and whenever the width of the place changes; a hidden place has no width and is drawn when it is shown.
function whenSized(place, draw) {
  let last = 0;
  const look = () => {
    const width = Math.floor(place.clientWidth);
    if (width > 0 && width !== last) {
      last = width;
      draw(width);
    }
  };
  new ResizeObserver(look).observe(place);
  sized.push(look);
  look();
}
