// Memory over one update, and what is there at the peak.
function memoryView(pane) {
  const { device } = pane, memory = device.memory;
  const content = [];
  const hasLine = device.rows.some((row) => row.memory !== null);
  if (memory.timeline || hasLine) {
    const names = memory.timeline ? Object.keys(memory.timeline.bytes) : [];
    const keys = [...CATEGORIES.filter((name) => names.includes(name)), ...names.filter((name) => !CATEGORIES.includes(name))];
    content.push(card("Memory over one update", memoryChart(device, (operation) => pane.open("operations", operation)),
      element("ul", { class: "legend" }, keys.map((name) => element("li", {}, element("span", { class: "swatch", style: { background: colorOf(name) } }), element("span", { class: "what" }, titled(name)))),
        hasLine ? element("li", {}, element("span", { class: "swatch line" }), element("span", { class: "what" }, "Measured on the device")) : null),
      note("From left to right: the operations of one update. Choose a point to see its operation."),
      memory.tiles && memory.tiles.mean_bytes ? note(`All tiles together. The fullest tile decides, and it has ${percentText(memory.tiles.max_bytes / memory.tiles.mean_bytes - 1)} more than the mean.`) : null));
  }
  if (memory.peak && memory.peak.live.length) content.push(...peakCards(pane));
  if (memory.by_stage.length > 1) content.push(stageCard(memory.by_stage));
  if (!content.length) content.push(categoryCard(device));
  return content;
}

function peakCards(pane) {
  const { device } = pane, peak = device.memory.peak, row = device.rows[peak.operation];
  const total = Math.max(1, Object.values(device.memory.by_category).reduce((sum, value) => sum + value, 0));
  const shown = peak.live.reduce((sum, each) => sum + each.bytes, 0);
  const lines = new Map();
  for (const each of peak.live) {
    const key = each.source ? `${each.source.file}:${each.source.line}` : `${each.category} without a source line`;
    const line = lines.get(key) || { source: each.source, key, bytes: 0, tensors: 0, categories: {} };
    line.bytes += each.bytes;
    line.tensors += 1;
    line.categories[each.category] = (line.categories[each.category] || 0) + each.bytes;
    lines.set(key, line);
  }
  const list = [...lines.values()].sort((first, second) => second.bytes - first.bytes);
  const where = row ? element("p", {}, "The peak is at operation ", element("button", { type: "button", class: "link", on: { click: () => pane.open("operations", row.index) } }, `#${row.index} ${row.name}`), ` (${row.phase}${row.module ? `, ${row.module}` : ""}). `, row.source ? sourceLine(row.source) : null) : null;
  const columns = [{ label: "Source line" }, { label: "Tensors", number: true }, { label: "Bytes", number: true }, { label: "Share", number: true }, { label: "" }];
  const byLine = card("The peak by source line", where, table("The peak by source line", columns, list.map((line) => [
    line.source ? sourceLine(line.source) : element("span", { class: "note" }, titled(line.key)), wholeText(line.tensors), bytesText(line.bytes), percentText(line.bytes / total),
    meter(line.bytes / list[0].bytes, colorOf(Object.entries(line.categories).sort((first, second) => second[1] - first[1])[0][0]))])),
    note(`The ${peak.live.length} largest tensors, ${bytesText(shown)} of ${bytesText(total)} (${percentText(shown / total)}).`));
  const tensors = card("Tensors at the peak", table("Tensors at the peak", [{ label: "Tensor" }, { label: "Category" }, { label: "Module" }, { label: "Bytes", number: true }],
    peak.live.map((each) => [element("span", { class: "mono" }, each.name), element("span", {}, element("span", { class: "swatch", style: { background: colorOf(each.category), display: "inline-block", marginRight: "0.4rem" } }), titled(each.category)),
      element("span", { class: "mono" }, each.module || UNKNOWN), bytesText(each.bytes)])));
  byLine.classList.add("long");
  tensors.classList.add("long");
  return [byLine, tensors];
}

function stageCard(stages) {
  const most = Math.max(1, ...stages.map((each) => each.peak_bytes));
  const columns = [{ label: "Stage" }, { label: "Peak", number: true }, { label: "" }, { label: "Mostly" }];
  return card("Memory by stage", table("Memory by stage", columns, stages.map((each) => {
    const largest = Object.entries(each.by_category).sort((first, second) => second[1] - first[1])[0];
    return [String(each.stage), bytesText(each.peak_bytes), meter(each.peak_bytes / most), largest ? `${titled(largest[0])}, ${bytesText(largest[1])}` : UNKNOWN];
  })));
}
