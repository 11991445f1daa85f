// Every operation, or groups of them, with search, sorting and details.
const GROUPS = {
  none: { label: "each operation", key: null },
  name: { label: "operation", key: (row) => row.name },
  module: { label: "module", key: (row) => row.module || "(no module)" },
  source: { label: "source line", key: (row) => (row.source ? `${row.source.file}:${row.source.line}` : "(no source line)") },
};

function operationsView(pane) {
  const { device } = pane;
  const search = element("input", { type: "search", placeholder: "Search operations, modules, files  ( / )", "aria-label": "Search operations", class: "search" });
  const phase = choice("Phase", [["", "all phases"], ...PHASES.filter((each) => device.rows.some((row) => row.phase === each)).map((each) => [each, each])]);
  const group = choice("Group by", Object.entries(GROUPS).map(([name, { label }]) => [name, label]));
  const found = element("span", { class: "found", role: "status" });
  const details = element("div", { class: "chosen-row" });
  const sums = { time: Math.max(1e-30, sumOf(device.rows, timeOf)), most: 1e-30 };
  const rows = new RowTable({ label: "Operations", columns: operationColumns(device, sums, false), rows: device.rows, sort: { key: "index", down: false },
    onChoose: (row) => details.replaceChildren(operationDetails(row, device)) });
  const place = element("div", {}, rows.node);
  let present = rows;
  const update = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let list = device.rows;
    if (phase.select.value) list = list.filter((row) => row.phase === phase.select.value);
    if (words.length) list = list.filter((row) => words.every((word) => row.text.includes(word)));
    const time = sumOf(list, timeOf), key = GROUPS[group.select.value].key;
    const shown = key ? grouped(list, key) : list;
    sums.most = shown.reduce((most, row) => Math.max(most, timeOf(row) || 0), 1e-30);
    present.show(shown);
    details.replaceChildren();
    found.textContent = `${wholeText(list.length)} of ${wholeText(device.rows.length)} operations${key ? ` in ${wholeText(shown.length)} groups` : ""}${time ? `, ${secondsText(time)}` : ""}`;
  };
  const regroup = () => {
    const isGrouped = group.select.value !== "none";
    present = new RowTable({ label: "Operations", columns: operationColumns(device, sums, isGrouped), rows: [], sort: isGrouped ? { key: hasPredicted(device) || hasMeasured(device) ? "time" : "flops", down: true } : { key: "index", down: false },
      onChoose: (row) => details.replaceChildren(operationDetails(row, device)) });
    place.replaceChildren(present.node);
    update();
  };
  search.addEventListener("input", update);
  phase.select.addEventListener("change", update);
  group.select.addEventListener("change", regroup);
  pane.showOperation = (index) => {
    search.value = "";
    phase.select.value = "";
    if (group.select.value !== "none") {
      group.select.value = "none";
      regroup();
    } else update();
    present.reveal(device.rows[index]);
  };
  update();
  const tools = element("div", { class: "tools" }, search, phase.node, group.node, found);
  const section = element("section", { class: "card long", "aria-label": "Operations" }, tools, place, details);
  return [section];
}

function choice(label, options) {
  const select = element("select", {}, options.map(([value, text]) => element("option", { value }, text)));
  return { select, node: element("label", {}, label, select) };
}

function operationColumns(device, sums, isGrouped) {
  const showsMeasured = hasMeasured(device), showsPredicted = hasPredicted(device);
  const hasTimes = isGrouped || device.rows.some((row) => row.times > 1), hasStage = device.rows.some((row) => row.stage !== null);
  const columns = [
    isGrouped ? { key: "members", label: "Ops", number: true, width: "64px", value: (row) => row.members, show: (row) => wholeText(row.members) } : { key: "index", label: "#", number: true, width: "64px", value: (row) => row.index, show: (row) => String(row.index) },
    { key: "name", label: isGrouped ? "Group" : "Operation", width: "minmax(170px, 1.3fr)", least: 170, mono: true, value: (row) => (isGrouped ? String(row.key) : row.name), show: (row) => (isGrouped ? groupName(row) : row.name.replace(/^aten\./, "")), tip: (row) => (isGrouped ? String(row.key) : row.name) },
    { key: "phase", label: "Phase", width: "92px", value: (row) => PHASES.indexOf(row.phase), show: (row) => element("span", { class: `phase-${row.phase}` }, row.phase) },
    { key: "module", label: "Module", width: "minmax(130px, 1.3fr)", least: 130, mono: true, tail: true, value: (row) => row.module },
  ];
  if (hasStage) columns.push({ key: "stage", label: "Stage", number: true, width: "60px", value: (row) => row.stage, show: (row) => (row.stage === null ? UNKNOWN : String(row.stage)) });
  if (!isGrouped) columns.push({ key: "output", label: "Output", width: "minmax(120px, 1fr)", least: 120, mono: true, value: (row) => row.output });
  columns.push({ key: "flops", label: "FLOP", title: "Floating-point operations of one run", number: true, width: "78px", value: (row) => row.flops, show: (row) => (row.flops ? workText(row.flops) : UNKNOWN) });
  columns.push({ key: "bytes", label: "Traffic", title: "Bytes read and written", number: true, width: "84px", value: (row) => row.bytes, show: (row) => (row.bytes ? bytesText(row.bytes) : UNKNOWN) });
  if (hasTimes) columns.push({ key: "times", label: "Runs", title: "Runs in one update", number: true, width: "56px", value: (row) => row.runs || row.times, show: (row) => wholeText(row.runs || row.times) });
  if (showsPredicted) columns.push({ key: "seconds", label: "Predicted", number: true, width: "108px", value: (row) => row.seconds, show: (row) => secondsText(row.seconds) });
  if (showsMeasured) columns.push({ key: "measured", label: "Measured", number: true, width: "108px", value: (row) => row.measured, show: (row) => secondsText(row.measured) });
  if (showsPredicted || showsMeasured) columns.push({ key: "time", label: "Share", title: "Share of the time of all operations", number: true, width: "116px", value: timeOf, show: (row) => shareCell(timeOf(row), sums, row.phase) });
  columns.push({ key: "source", label: "Source", width: "minmax(190px, 2fr)", least: 190, mono: true, value: (row) => (row.source ? `${row.source.file}:${String(row.source.line).padStart(7)}` : null),
    show: (row) => (row.source ? `${fileName(row.source.file)}:${row.source.line}  ${row.source.text}` : UNKNOWN), tip: (row) => (row.source ? `${row.source.file}:${row.source.line}\n${row.source.text}` : null) });
  return matchMedia("(max-width: 620px)").matches ? timesFirst(columns) : columns;
}

// On a narrow screen only a few columns are visible: what it is and how long it takes.
function timesFirst(columns) {
  const first = ["members", "index", "name", "seconds", "measured", "time"];
  const widths = { members: { width: "44px" }, index: { width: "44px" }, name: { width: "minmax(150px, 1.3fr)", least: 150 } };
  const ordered = [...columns.filter((column) => first.includes(column.key)), ...columns.filter((column) => !first.includes(column.key))];
  return ordered.map((column) => ({ ...column, ...widths[column.key] }));
}

function groupName(row) {
  if (row.source && String(row.key).startsWith(row.source.file)) return `${shortPath(row.source.file)}:${row.source.line}`;
  return String(row.key);
}

// The share of all time as a number, and a bar as long as the row is expensive among those shown.
function shareCell(time, sums, phase) {
  if (time === null) return UNKNOWN;
  return element("span", { class: "share-cell" }, meter(time / sums.most, phaseColor(phase)), element("span", {}, percentText(time / sums.time)));
}

function operationDetails(row, device) {
  const pairs = [];
  const add = (name, value) => { if (value !== null && value !== "" && value !== undefined) pairs.push(element("dt", {}, name), element("dd", {}, value)); };
  add("Module", row.module && element("code", {}, row.module));
  add("Output", row.output && element("code", {}, row.output));
  add("Runs in an update", wholeText(row.runs || row.times));
  add("Work", row.flops ? flopsText(row.flops) : null);
  add("Bytes read and written", row.bytes ? `${bytesText(row.bytes)}${row.flops ? ` (${(row.flops / row.bytes).toFixed(1)} FLOP for each byte)` : ""}` : null);
  const rate = (seconds) => (seconds && row.flops ? ` (${flopsText(row.flops / seconds)}/s)` : "");
  add("Predicted time", row.seconds === null ? null : `${secondsText(row.seconds)}${rate(row.seconds)}`);
  add("Measured time", row.measured === null ? null : `${secondsText(row.measured)}${rate(row.measured)}${row.seconds ? `, prediction ${changeText(row.measured, row.seconds)}` : ""}`);
  if (!row.members) add("Memory in use after it", row.memory === null ? null : bytesText(row.memory));
  add("Source", row.source && element("span", {}, element("code", {}, `${row.source.file}:${row.source.line}`), element("br", {}), element("code", {}, row.source.text)));
  const title = row.members ? `${groupName(row)}: ${wholeText(row.members)} operations` : `#${row.index} ${row.name} (${row.phase})`;
  return element("section", { "aria-label": "Chosen operation" }, element("h3", {}, title), element("dl", { class: "pairs" }, pairs));
}
