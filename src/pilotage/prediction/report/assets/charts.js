// Charts as SVG.
function stackedBar(entries, total, text, color, label) {
  const bar = element("div", { class: "bar", role: "img", "aria-label": `${label}: ${entries.map(([name, value]) => `${name} ${text(value)}`).join(", ")}` });
  for (const [name, value] of entries) {
    const tip = `${titled(name)}: ${text(value)} (${percentText(value / total)})`;
    bar.append(element("span", { style: { width: `${(value / total) * 100}%`, background: color(name) },
      on: { mousemove: (event) => tooltip.show(tip, event.clientX, event.clientY), mouseleave: () => tooltip.hide() } }));
  }
  return bar;
}

function legend(entries, total, text, color) {
  return element("ul", { class: "legend" }, entries.map(([name, value]) => element("li", {},
    element("span", { class: "swatch", style: { background: color(name) } }), element("span", { class: "what" }, titled(name)),
    element("span", {}, text(value)), element("span", { class: "share" }, percentText(value / total)))));
}

// A bar of the peak against the capacity, with the range of the estimate.
function gauge(peak, capacity, measured) {
  const most = Math.max(capacity || 0, peak ? peak.high : 0, measured || 0) * 1.04;
  const place = (value) => `${((value / most) * 100).toFixed(2)}%`;
  const label = [peak && `predicted peak ${bytesText(peak.value)}`, measured && `measured peak ${bytesText(measured)}`, capacity && `capacity ${bytesText(capacity)}`].filter(Boolean).join(", ");
  const picture = drawn("svg", { role: "img", "aria-label": label, class: "chart" });
  const shown = peak ? peak.value : measured;
  const over = capacity && shown > capacity;
  picture.append(drawn("rect", { x: 0, y: 6, width: capacity ? place(capacity) : "100%", height: 16, rx: 5, fill: "var(--hover)" }));
  picture.append(drawn("rect", { x: 0, y: 6, width: place(shown), height: 16, rx: 5, fill: over ? "var(--bad)" : "var(--c0)" }));
  if (peak && peak.high > peak.low) {
    picture.append(drawn("line", { x1: place(peak.low), x2: place(peak.high), y1: 14, y2: 14, stroke: "var(--ink)", "stroke-width": 1.5 }));
    for (const end of [peak.low, peak.high]) picture.append(drawn("line", { x1: place(end), x2: place(end), y1: 9, y2: 19, stroke: "var(--ink)", "stroke-width": 1.5 }));
  }
  if (measured && peak) picture.append(drawn("line", { x1: place(measured), x2: place(measured), y1: 2, y2: 26, stroke: "var(--ink)", "stroke-width": 2, "stroke-dasharray": "3 2" }));
  if (capacity) picture.append(drawn("line", { x1: place(capacity), x2: place(capacity), y1: 2, y2: 26, stroke: "var(--bad)", "stroke-width": 2 }));
  const key = (className, text) => element("span", {}, element("span", { class: `mark ${className}` }), text);
  return element("div", { class: "gauge" }, picture, element("div", { class: "gauge-key" }, key(over ? "over" : "", `${peak ? "predicted" : "measured"} ${bytesText(shown)}`),
    measured && peak ? key("dashed", `measured ${bytesText(measured)}`) : null, capacity ? key("limit", `capacity ${bytesText(capacity)}`) : null));
}

function niceStep(most, count) {
  const raw = most / count, power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].find((factor) => factor * power >= raw) * power;
}

function binaryStep(most, count) {
  let unit = 1;
  while (most / unit >= 1024) unit *= 1024;
  return niceStep(most / unit, count) * unit;
}

// At most one point for two pixels, each the one with most memory among those it stands for.
function thinned(points, most, size) {
  if (points.length <= most) return points;
  const kept = [], step = points.length / most;
  for (let bucket = 0; bucket < most; bucket += 1) {
    let best = Math.floor(bucket * step);
    for (let place = best; place < Math.floor((bucket + 1) * step); place += 1) if (size(points[place]) > size(points[best])) best = place;
    kept.push(points[best]);
  }
  return kept;
}

// Memory over the operations of one update: stacked areas, a measured line, the capacity and the peak.
function memoryChart(device, onChoose) {
  const timeline = device.memory.timeline;
  const names = timeline ? CATEGORIES.filter((name) => timeline.bytes[name]).concat(Object.keys(timeline.bytes).filter((name) => !CATEGORIES.includes(name))) : [];
  const all = timeline ? timeline.operation.map((operation, place) => {
    const values = names.map((name) => timeline.bytes[name][place]);
    return { operation, values, total: values.reduce((sum, value) => sum + value, 0) };
  }) : [];
  const line = device.rows.filter((row) => row.memory !== null).map((row) => ({ operation: row.index, total: row.memory }));
  const last = Math.max(1, all.length ? all[all.length - 1].operation : 0, device.rows.length - 1);
  const place = element("div", { class: "memory-chart" });
  whenSized(place, (width) => place.replaceChildren(areaPicture({ device, names, all, line, last, width, onChoose })));
  return place;
}

function areaPicture({ device, names, all, line, last, width, onChoose }) {
  const height = Math.max(220, Math.min(340, width * 0.34)), left = 64, right = 12, top = 22, bottom = 40;
  const points = thinned(all, Math.floor((width - left - right) / 2), (point) => point.total);
  const dashes = thinned(line, Math.floor((width - left - right) / 2), (point) => point.total);
  const highest = Math.max(1, ...points.map((point) => point.total), ...dashes.map((point) => point.total));
  const capacity = device.capacity_bytes && device.capacity_bytes < highest * 1.6 ? device.capacity_bytes : null;
  const most = Math.max(highest, capacity || 0) * 1.08;
  const x = (operation) => left + (operation / last) * (width - left - right);
  const y = (bytes) => top + (1 - bytes / most) * (height - top - bottom);
  const peak = points.reduce((best, point) => (best && best.total >= point.total ? best : point), null);
  const summary = peak ? `Memory over ${wholeText(last + 1)} operations; the peak of ${bytesText(peak.total)} is at operation ${peak.operation}.` : "Measured memory over the operations.";
  const picture = drawn("svg", { class: "chart", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: "0", "aria-label": `${summary} Arrow keys move along the operations.` });
  const step = binaryStep(most, 4);
  for (let value = 0; value <= most; value += step) {
    picture.append(drawn("line", { class: "axis", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
    picture.append(drawn("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, bytesText(value).replace(/\.0+\u00a0/, SPACE)));
  }
  const below = new Array(points.length).fill(0);
  names.forEach((name, index) => {
    const lower = points.map((point, place) => `${x(point.operation).toFixed(1)},${y(below[place]).toFixed(1)}`).reverse();
    points.forEach((point, place) => { below[place] += point.values[index]; });
    const upper = points.map((point, place) => `${x(point.operation).toFixed(1)},${y(below[place]).toFixed(1)}`);
    if (points.length) picture.append(drawn("path", { d: `M${upper.join("L")}L${lower.join("L")}Z`, fill: colorOf(name), "fill-opacity": 0.9 }));
  });
  if (dashes.length) picture.append(drawn("path", { class: "measured", d: `M${dashes.map((point) => `${x(point.operation).toFixed(1)},${y(point.total).toFixed(1)}`).join("L")}` }));
  if (capacity) {
    for (const kind of ["under", "limit"]) picture.append(drawn("line", { class: kind, x1: left, x2: width - right, y1: y(capacity), y2: y(capacity) }));
    picture.append(drawn("text", { class: "over", x: width - right - 4, y: y(capacity) - 6, "text-anchor": "end" }, `capacity ${bytesText(capacity)}`));
  }
  picture.append(phaseBand(device.rows, x, height - bottom + 8, last));
  if (peak) {
    const anchor = x(peak.operation) > width * 0.7 ? "end" : x(peak.operation) < width * 0.3 ? "start" : "middle";
    picture.append(drawn("circle", { cx: x(peak.operation), cy: y(peak.total), r: 4, fill: "var(--ink)" }));
    picture.append(drawn("text", { class: "peak-label", x: x(peak.operation), y: y(peak.total) - 9, "text-anchor": anchor }, `peak ${bytesText(peak.total)}`));
  }
  return followed(picture, { points: points.length ? points : dashes, names, device, x, left, right, top, bottom, width, height, last, onChoose });
}

function phaseBand(rows, x, top, last) {
  const band = drawn("g", {});
  let start = 0;
  for (let place = 1; place <= rows.length; place += 1) {
    if (place < rows.length && rows[place].phase === rows[start].phase) continue;
    const from = x(start), to = place >= rows.length ? x(last) : x(place), phase = rows[start].phase;
    band.append(drawn("rect", { x: from, y: top, width: Math.max(1, to - from), height: 5, fill: phaseColor(phase) }));
    if (to - from > 55) band.append(drawn("text", { x: (from + to) / 2, y: top + 20, "text-anchor": "middle" }, phase));
    start = place;
  }
  return band;
}

// A cursor that follows the mouse or the arrow keys.
function followed(picture, { points, names, device, x, left, right, top, bottom, width, height, last, onChoose }) {
  if (!points.length) return picture;
  const cursor = drawn("line", { class: "cursor", y1: top, y2: height - bottom, visibility: "hidden" });
  picture.append(cursor);
  let current = null;
  const describe = (point) => {
    const row = device.rows[point.operation];
    const lines = row ? [`${row.name}  #${row.index} (${row.phase})`, row.module, row.source ? `${shortPath(row.source.file)}:${row.source.line}` : ""] : [`operation ${point.operation}`];
    lines.push(`${bytesText(point.total)} in use${row && row.memory !== null ? `, measured ${bytesText(row.memory)}` : ""}`);
    (point.values || []).forEach((value, place) => { if (value > 0) lines.push(`  ${titled(names[place])}: ${bytesText(value)}`); });
    return lines.filter(Boolean).join("\n");
  };
  const show = (place, box) => {
    current = Math.max(0, Math.min(points.length - 1, place));
    const at = x(points[current].operation);
    cursor.setAttribute("x1", at);
    cursor.setAttribute("x2", at);
    cursor.setAttribute("visibility", "visible");
    const text = describe(points[current]);
    tooltip.show(text, box ? box.x : picture.getBoundingClientRect().left + at, box ? box.y : picture.getBoundingClientRect().top + top);
    if (!box) announce(text);
  };
  const hide = () => { cursor.setAttribute("visibility", "hidden"); tooltip.hide(); };
  picture.addEventListener("mousemove", (event) => {
    const operation = ((event.clientX - picture.getBoundingClientRect().left - left) / (width - left - right)) * last;
    let low = 0, high = points.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (points[middle].operation < operation) low = middle + 1; else high = middle;
    }
    if (low > 0 && operation - points[low - 1].operation < points[low].operation - operation) low -= 1;
    show(low, { x: event.clientX, y: event.clientY });
  });
  picture.addEventListener("mouseleave", hide);
  picture.addEventListener("blur", hide);
  picture.addEventListener("click", () => { if (current !== null && onChoose) onChoose(points[current].operation); });
  picture.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -1e9, End: 1e9 };
    if (event.key in moves) {
      show((current ?? 0) + moves[event.key]);
      event.preventDefault();
    } else if (event.key === "Enter" && current !== null && onChoose) onChoose(points[current].operation);
    else if (event.key === "Escape") hide();
  });
  return picture;
}
