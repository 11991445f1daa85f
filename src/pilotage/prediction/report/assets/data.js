// The reports of this page. Operations travel as columns with numbers for repeated texts, and become rows here.
const PHASES = ["forward", "backward", "update"];
const CATEGORIES = ["weights", "gradients", "optimizer", "activations", "temporaries", "inputs", "code", "exchange", "outputs"];
const PARTS = ["compute", "exchange", "synchronisation", "host", "launch", "collectives", "bubble"];
const PART_COLORS = { compute: 3, exchange: 7, synchronisation: 4, host: 5, launch: 2, collectives: 1, bubble: 6 };

function colorOf(category) {
  const known = CATEGORIES.indexOf(category);
  if (known >= 0) return `var(--c${known})`;
  let sum = 0;
  for (const letter of category) sum += letter.charCodeAt(0);
  return `var(--c${(sum % 2) + 8})`;
}

function partColor(part) {
  return part in PART_COLORS ? `var(--c${PART_COLORS[part]})` : colorOf(part);
}

function phaseColor(phase) {
  return `var(--c${Math.max(0, PHASES.indexOf(phase))})`;
}

function ordered(table, order) {
  const place = (name) => (order.includes(name) ? order.indexOf(name) : order.length);
  return Object.entries(table || {}).filter(([, value]) => value > 0).sort(([first], [second]) => place(first) - place(second));
}

function loadReports() {
  const reports = JSON.parse(document.getElementById("data").textContent).reports;
  for (const report of reports) for (const device of report.devices) device.rows = operationRows(device.operations);
  return reports;
}

function operationRows(columns) {
  const rows = new Array(columns.count);
  for (let index = 0; index < columns.count; index += 1) {
    const row = {
      index,
      name: columns.texts[columns.name[index]],
      phase: PHASES[columns.phase[index]],
      module: columns.texts[columns.module[index]],
      stage: columns.stage[index],
      times: columns.times[index],
      flops: columns.flops[index],
      bytes: columns.bytes[index],
      seconds: columns.seconds[index],
      measured: columns.measured_seconds[index],
      memory: columns.measured_bytes[index],
      output: columns.texts[columns.output[index]],
      source: columns.source[index] === null ? null : columns.sources[columns.source[index]],
    };
    row.text = `${row.name} ${row.phase} ${row.module} ${row.output} ${row.source ? `${row.source.file}:${row.source.line} ${row.source.text}` : ""}`.toLowerCase();
    rows[index] = row;
  }
  return rows;
}

// The time to rank operations by: the measured one where there is one.
function timeOf(row) {
  const one = row.measured ?? row.seconds;
  return one === null || one === undefined ? null : one * row.times;
}

function sumOf(rows, value) {
  let total = 0;
  for (const row of rows) total += value(row) || 0;
  return total;
}

function hasMeasured(device) {
  return device.rows.some((row) => row.measured !== null);
}

function hasPredicted(device) {
  return device.rows.some((row) => row.seconds !== null);
}

// Rows with the same key as one, with added costs.
function grouped(rows, keyOf) {
  const groups = new Map();
  for (const row of rows) {
    const key = keyOf(row);
    const group = groups.get(key);
    if (!group) {
      groups.set(key, { ...row, key, members: 1, times: row.times, flops: row.flops * row.times, bytes: row.bytes * row.times,
        seconds: row.seconds === null ? null : row.seconds * row.times, measured: row.measured === null ? null : row.measured * row.times });
      continue;
    }
    group.members += 1;
    group.times += row.times;
    group.flops += row.flops * row.times;
    group.bytes += row.bytes * row.times;
    if (row.seconds !== null) group.seconds = (group.seconds || 0) + row.seconds * row.times;
    if (row.measured !== null) group.measured = (group.measured || 0) + row.measured * row.times;
    if (group.module !== row.module) group.module = commonModule(group.module, row.module);
    if (group.name !== row.name) group.name = "several";
    if (group.phase !== row.phase) group.phase = "all";
    if (group.output !== row.output) group.output = "";
    if (group.source !== row.source) group.source = null;
  }
  for (const group of groups.values()) {
    // Costs are of all runs now.
    group.runs = group.times;
    group.times = 1;
  }
  return [...groups.values()];
}

function commonModule(first, second) {
  const left = first.split("."), right = second.split("."), same = [];
  for (let place = 0; place < left.length && left[place] === right[place]; place += 1) same.push(left[place]);
  return same.join(".");
}
