// A table of many rows that holds only the visible ones in the document.
const ROW_HEIGHT = 30, HEAD_HEIGHT = 36, PRINTED_ROWS = 150;
let tableCount = 0;
let isPrinting = false;

class RowTable {
  constructor({ label, columns, rows, sort, onChoose, height }) {
    this.columns = columns;
    this.all = rows;
    this.rows = rows;
    this.onChoose = onChoose;
    this.sorting = sort;
    this.active = -1;
    this.number = tableCount += 1;
    this.widths = columns.map((column) => column.width).join(" ");
    const least = columns.reduce((sum, column) => sum + (column.least || parseInt(column.width, 10) || 100), 0);
    this.head = element("div", { role: "row", class: "head", "aria-rowindex": 1, style: { gridTemplateColumns: this.widths } });
    this.inner = element("div", { class: "rows-inner", role: "rowgroup", style: { minWidth: `${least}px` } }, this.head);
    this.most = height || 620;
    this.node = element("div", { class: "rows", role: "grid", tabindex: "0", "aria-label": label, "aria-colcount": columns.length,
      on: { scroll: () => this.place(), keydown: (event) => this.key(event) } }, this.inner);
    this.drawn = [];
    new ResizeObserver(() => this.place(true)).observe(this.node);
    redrawn.push(() => this.place(true));
    this.show(rows);
  }

  show(rows) {
    this.all = rows;
    this.active = -1;
    this.sorted();
    this.node.scrollTop = 0;
    this.refresh();
  }

  sorted() {
    const column = this.columns.find((each) => each.key === this.sorting.key) || this.columns[0];
    const sign = this.sorting.down ? -1 : 1, value = column.value;
    const keys = new Map(this.all.map((row) => [row, value(row)]));
    this.rows = [...this.all].sort((first, second) => {
      const left = keys.get(first), right = keys.get(second);
      const isLeft = left === null || left === undefined, isRight = right === null || right === undefined;
      if (isLeft || isRight) return isLeft === isRight ? (first.index || 0) - (second.index || 0) : isLeft ? 1 : -1;
      if (left === right) return (first.index || 0) - (second.index || 0);
      return (left < right ? -1 : 1) * sign;
    });
  }

  sortBy(column) {
    const isSame = this.sorting.key === column.key;
    this.sorting = { key: column.key, down: isSame ? !this.sorting.down : Boolean(column.number) };
    this.active = -1;
    this.sorted();
    this.node.scrollTop = 0;
    this.refresh();
    announce(`Sorted by ${column.label}, ${this.sorting.down ? "descending" : "ascending"}`);
  }

  refresh() {
    const focused = this.head.contains(document.activeElement) ? [...this.head.querySelectorAll("button")].indexOf(document.activeElement) : -1;
    this.head.replaceChildren(...this.columns.map((column) => {
      const isSorted = column.key === this.sorting.key;
      const arrow = isSorted ? (this.sorting.down ? " ↓" : " ↑") : "";
      return element("div", { role: "columnheader", class: column.number ? "number" : null, "aria-sort": isSorted ? (this.sorting.down ? "descending" : "ascending") : null, title: column.title || null },
        element("button", { type: "button", tabindex: "-1", on: { click: () => this.sortBy(column) } }, `${column.label}${arrow}`));
    }));
    if (focused >= 0) this.head.querySelectorAll("button")[focused].focus();
    const total = HEAD_HEIGHT + this.rows.length * ROW_HEIGHT;
    this.inner.style.height = `${total}px`;
    this.node.style.height = `${Math.min(this.most, Math.max(total, 4 * ROW_HEIGHT) + 18)}px`;
    this.node.setAttribute("aria-rowcount", this.rows.length + 1);
    this.place(true);
  }

  // Draw the rows that are visible; on paper, the first ones.
  place(isForced) {
    const first = isPrinting ? 0 : Math.max(0, Math.floor(this.node.scrollTop / ROW_HEIGHT) - 8);
    const seen = Math.ceil((this.node.clientHeight || this.most) / ROW_HEIGHT) + 16;
    const end = Math.min(this.rows.length, isPrinting ? PRINTED_ROWS : first + seen);
    if (!isForced && this.from === first && this.to === end) return;
    this.from = first;
    this.to = end;
    const shown = this.rows.slice(first, end).map((row, place) => this.draw(row, first + place));
    if (!this.rows.length) shown.push(element("div", { class: "nothing" }, "Nothing matches."));
    if (isPrinting && end < this.rows.length) shown.push(element("div", { class: "nothing" }, `The first ${end} of ${wholeText(this.rows.length)} rows.`));
    this.inner.replaceChildren(this.head, ...shown);
    if (this.active >= first && this.active < end) this.node.setAttribute("aria-activedescendant", this.name(this.active));
    else this.node.removeAttribute("aria-activedescendant");
  }

  name(place) {
    return `table${this.number}-row${place}`;
  }

  draw(row, place) {
    return element("div", { role: "row", id: this.name(place), class: place === this.active ? "row active" : "row", "aria-rowindex": place + 2, "aria-selected": place === this.active ? "true" : "false",
      style: { gridTemplateColumns: this.widths, transform: `translateY(${place * ROW_HEIGHT}px)` }, on: { click: () => this.choose(place) } },
      this.columns.map((column) => {
        const content = column.show ? column.show(row) : column.value(row);
        const isEmpty = content === UNKNOWN || content === "" || content === null;
        return element("div", { role: "gridcell", class: `cell${column.number ? " number" : ""}${isEmpty ? " faint" : ""}${column.mono ? " mono" : ""}${column.tail ? " tail" : ""}`, title: column.tip ? column.tip(row) : typeof content === "string" && content.length > 14 ? content : null }, isEmpty ? UNKNOWN : column.tail ? element("bdi", {}, content) : content);
      }));
  }

  choose(place) {
    this.active = place;
    this.place(true);
    if (this.onChoose) this.onChoose(this.rows[place]);
  }

  reveal(row) {
    const place = this.rows.indexOf(row);
    if (place < 0) return;
    this.node.scrollTop = Math.max(0, place * ROW_HEIGHT - this.node.clientHeight / 2);
    this.choose(place);
  }

  key(event) {
    const page = Math.floor(this.node.clientHeight / ROW_HEIGHT) - 2;
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.rows.length, End: this.rows.length };
    if (!(event.key in moves) || !this.rows.length || event.target !== this.node) return;
    event.preventDefault();
    const place = Math.max(0, Math.min(this.rows.length - 1, this.active + moves[event.key]));
    const top = place * ROW_HEIGHT, high = this.node.clientHeight - HEAD_HEIGHT - 18;
    if (top < this.node.scrollTop) this.node.scrollTop = top;
    else if (top + ROW_HEIGHT > this.node.scrollTop + high) this.node.scrollTop = top + ROW_HEIGHT - high;
    this.choose(place);
  }
}
