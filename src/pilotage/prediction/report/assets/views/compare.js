// Two reports, figure by figure and operation by operation.
function compareView(panes) {
  const [first, second] = panes.map((pane) => pane.device);
  return [card("Figures", figuresTable(first, second)), changesOfOperations(first, second)];
}

function figuresTable(first, second) {
  const rows = [];
  const add = (name, left, right, text, isLess) => {
    if ((left === null || left === undefined) && (right === null || right === undefined)) return;
    const both = left !== null && left !== undefined && right !== null && right !== undefined;
    const style = !both || left === right || isLess === null ? "" : right < left === isLess ? "good-text" : "bad-text";
    rows.push([name, text(left), text(right), both ? text(right - left) : UNKNOWN, element("span", { class: style }, both && left > 0 ? changeText(left, right) : "")]);
  };
  const flops = (device) => sumOf(device.rows, (row) => row.flops * row.times) || null;
  add("Peak memory, predicted", first.peak_bytes && first.peak_bytes.value, second.peak_bytes && second.peak_bytes.value, bytesText, true);
  add("Peak memory, measured", first.measured && first.measured.peak_bytes, second.measured && second.measured.peak_bytes, bytesText, true);
  add("To spare", first.margin_bytes, second.margin_bytes, bytesText, false);
  add("Update, predicted", first.time && first.time.update_seconds.value, second.time && second.time.update_seconds.value, secondsSigned, true);
  add("Update, measured", first.measured && first.measured.update_seconds.value, second.measured && second.measured.update_seconds.value, secondsSigned, true);
  add("Loop, measured", first.measured && first.measured.loop_seconds, second.measured && second.measured.loop_seconds, secondsSigned, true);
  add("Throughput, predicted", first.time && first.time.throughput.value, second.time && second.time.throughput.value, rateSigned, false);
  add("Throughput, measured", first.measured && first.measured.throughput, second.measured && second.measured.throughput, rateSigned, false);
  add("Work in an update", flops(first), flops(second), flopsText, null);
  add("Operations", first.rows.length, second.rows.length, wholeText, null);
  const memory = (device, name) => (device.memory ? device.memory.by_category[name] ?? 0 : null);
  const categories = new Set([first, second].flatMap((device) => (device.memory ? Object.keys(device.memory.by_category) : [])));
  for (const name of [...CATEGORIES, ...categories].filter((each, place, all) => categories.has(each) && all.indexOf(each) === place)) add(`Memory: ${name}`, memory(first, name), memory(second, name), bytesText, true);
  const part = (device, name) => (device.time ? device.time.by_part[name] ?? 0 : null);
  const parts = new Set([first, second].flatMap((device) => (device.time ? Object.keys(device.time.by_part) : [])));
  for (const name of [...PARTS, ...parts].filter((each, place, all) => parts.has(each) && all.indexOf(each) === place)) add(`Time: ${name}`, part(first, name), part(second, name), secondsSigned, true);
  return table("Figures of both reports", [{ label: "Figure" }, { label: "A", number: true }, { label: "B", number: true }, { label: "B − A", number: true }, { label: "Change", number: true }], rows);
}

function secondsSigned(value) {
  return value < 0 ? `−${secondsText(-value)}` : secondsText(value);
}

function rateSigned(value) {
  return value < 0 ? `−${rateText(-value)}` : rateText(value);
}

function changesOfOperations(first, second) {
  const group = choice("By", [["name", "operation"], ["module", "module"], ["source", "source line"]]);
  const search = element("input", { type: "search", placeholder: "Search  ( / )", "aria-label": "Search the comparison", class: "search" });
  const columns = [
    { key: "name", label: "Group", width: "minmax(220px, 2fr)", least: 220, mono: true, value: (row) => row.name, show: (row) => row.shown },
    ...[["a", "A"], ["b", "B"]].map(([key, label]) => ({ key, label: `Time ${label}`, number: true, width: "110px", value: (row) => row[key], show: (row) => secondsText(row[key]) })),
    { key: "change", label: "B − A", number: true, width: "110px", value: (row) => Math.abs(row.change), show: (row) => element("span", { class: row.change < 0 ? "good-text" : row.change > 0 ? "bad-text" : "" }, secondsSigned(row.change)) },
    { key: "ratio", label: "Change", number: true, width: "90px", value: (row) => row.ratio, show: (row) => (row.a ? changeText(row.a, row.b) : row.b ? "new" : "") },
    ...[["countA", "A"], ["countB", "B"]].map(([key, label]) => ({ key, label: `Ops ${label}`, number: true, width: "80px", value: (row) => row[key], show: (row) => wholeText(row[key]) })),
    ...[["flopsA", "A"], ["flopsB", "B"]].map(([key, label]) => ({ key, label: `Work ${label}`, number: true, width: "110px", value: (row) => row[key], show: (row) => flopsText(row[key]) })),
  ];
  const rows = new RowTable({ label: "Operations of both reports", columns, rows: [], sort: { key: "change", down: true } });
  const update = () => {
    const key = GROUPS[group.select.value].key, words = search.value.toLowerCase().split(/\s+/).filter(Boolean), both = new Map();
    [first, second].forEach((device, side) => {
      for (const each of grouped(device.rows, key)) {
        const row = both.get(each.key) || { name: String(each.key), shown: groupName(each), a: 0, b: 0, countA: 0, countB: 0, flopsA: 0, flopsB: 0 };
        row[side ? "b" : "a"] += timeOf(each) || 0;
        row[side ? "countB" : "countA"] += each.members;
        row[side ? "flopsB" : "flopsA"] += each.flops;
        both.set(each.key, row);
      }
    });
    const list = [...both.values()].filter((row) => words.every((word) => row.name.toLowerCase().includes(word)));
    for (const row of list) Object.assign(row, { change: row.b - row.a, ratio: row.a ? row.b / row.a : null });
    rows.show(list);
  };
  group.select.addEventListener("change", update);
  search.addEventListener("input", update);
  update();
  const result = card("Where they differ", element("div", { class: "tools" }, search, group.node), rows.node);
  result.classList.add("long");
  return result;
}
