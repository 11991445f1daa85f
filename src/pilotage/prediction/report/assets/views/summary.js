// What it is about, whether it fits, how fast it is, what is expensive and what to change.
function summaryView(pane) {
  const { report, device } = pane;
  const content = [verdict(device), facts(report, device)];
  if (report.devices.length > 1) content.push(deviceTable(pane));
  const bars = [device.memory && ordered(device.memory.by_category, CATEGORIES).length && categoryCard(device), device.time && ordered(device.time.by_part, PARTS).length && partCard(device)].filter(Boolean);
  if (bars.length) content.push(element("div", { class: bars.length > 1 ? "grid" : null }, bars));
  if (device.insights.length) content.push(card("Insights", element("ul", { class: "insights" }, device.insights.map((text) => element("li", {}, text)))));
  if (device.expensive.length) content.push(expensiveCard(device));
  if (device.changes.length) content.push(changesCard(device));
  if (device.assumptions.length) content.push(element("section", { class: "card" }, element("details", {}, element("summary", {}, `Assumptions (${device.assumptions.length})`), element("ul", { class: "insights" }, device.assumptions.map((text) => element("li", {}, text))))));
  return content;
}

function verdict(device) {
  const measured = device.measured;
  const title = device.count > 1 ? `${device.count} × ${device.title}` : device.title;
  let badge = null, text = title;
  if (device.fits === true) [badge, text] = [element("span", { class: "badge good" }, "fits"), `${title}: ${bytesText(device.margin_bytes)} to spare`];
  else if (device.fits === false) [badge, text] = [element("span", { class: "badge bad" }, "does not fit"), `${title}: ${bytesText(Math.abs(device.margin_bytes || 0))} too much`];
  const hasGauge = (device.peak_bytes && (device.capacity_bytes || measured)) || (device.capacity_bytes && measured && measured.peak_bytes);
  return element("section", { class: "card verdict", "aria-label": "Result" }, element("p", { class: "verdict-line" }, badge, element("span", {}, text)),
    hasGauge ? gauge(device.peak_bytes, device.capacity_bytes, measured && measured.peak_bytes) : null);
}

// One figure each: what was measured if it was, with the prediction beside it.
function facts(report, device) {
  const rows = device.rows, measured = device.measured, time = device.time, list = [];
  const add = (name, value, ...under) => list.push(element("div", { class: "fact" }, element("dt", {}, name), element("dd", {}, value, under.filter(Boolean).map((line) => element("span", { class: "under" }, line)))));
  const both = (name, real, range, text, unit) => {
    if (real === null && !range) return;
    const among = range ? rangeText(range, text) : "", shown = (value) => element("span", {}, text(value), unit ? element("small", {}, ` ${unit}`) : null);
    if (real === null) add(`${name}, predicted`, shown(range.value), among);
    else add(`${name}, measured`, shown(real), range ? `predicted ${text(range.value)} (${changeText(real, range.value)})` : "", among ? `range ${among}` : "");
  };
  const unit = measured ? measured.unit : time ? time.unit : "samples/s", step = report.program.mode === "training" ? "Update" : "Call";
  both("Peak memory", (measured && measured.peak_bytes) ?? null, device.peak_bytes, bytesText);
  both(step, measured ? measured.update_seconds.value : null, time && time.update_seconds, secondsText);
  if (measured && measured.loop_seconds) {
    const between = Math.max(0, measured.loop_seconds - measured.update_seconds.value);
    add("Loop, measured", secondsText(measured.loop_seconds), `${secondsText(between)} (${percentText(between / measured.loop_seconds)}) is the script's own work`, `between ${step === "Update" ? "updates" : "calls"}, such as loading`);
  }
  both(measured && measured.loop_seconds ? "Throughput of the loop" : "Throughput", measured ? measured.throughput : null, time && time.throughput, (value) => rateText(value), unit);
  const flops = sumOf(rows, (row) => row.flops * row.times), seconds = measured ? measured.update_seconds.value : time ? time.update_seconds.value : null;
  if (flops) add(`Work in ${step === "Update" ? "an update" : "a call"}`, flopsText(flops), seconds ? `${flopsText(flops / seconds)}/s ${measured ? "reached" : "expected"}` : "");
  if (rows.length) add("Operations", wholeText(rows.length), `${wholeText(new Set(rows.map((row) => row.name)).size)} kinds`);
  return element("section", { class: "card", "aria-label": "Figures" }, element("dl", { class: "facts" }, list), measured ? note(measured.how) : null);
}

function deviceTable(pane) {
  const columns = [{ label: "Device" }, { label: "Fits" }, { label: "Peak", number: true }, { label: "To spare", number: true }, { label: "Update", number: true }, { label: "Throughput", number: true }];
  const rows = pane.report.devices.map((device, place) => element("tr", { class: device === pane.device ? "chosen" : null },
    cell(element("button", { type: "button", class: "link", on: { click: () => pane.choose(place) }, "aria-pressed": device === pane.device ? "true" : "false" }, device.title)),
    cell(fitBadge(device.fits)), cell(device.peak_bytes ? bytesText(device.peak_bytes.value) : UNKNOWN, true), cell(bytesText(device.margin_bytes), true),
    cell(device.time ? secondsText(device.time.update_seconds.value) : UNKNOWN, true), cell(device.time ? rateText(device.time.throughput.value, device.time.unit) : UNKNOWN, true)));
  return card("Devices", table("Devices", columns, rows, true));
}

function fitBadge(fits) {
  if (fits === null || fits === undefined) return UNKNOWN;
  return element("span", { class: `badge ${fits ? "good" : "bad"}` }, fits ? "fits" : "does not fit");
}

function categoryCard(device) {
  const entries = ordered(device.memory.by_category, CATEGORIES), total = entries.reduce((sum, [, value]) => sum + value, 0);
  return card("Memory at the peak", stackedBar(entries, total, bytesText, colorOf, "Memory at the peak"), legend(entries, total, bytesText, colorOf));
}

function partCard(device) {
  const entries = ordered(device.time.by_part, PARTS), total = entries.reduce((sum, [, value]) => sum + value, 0);
  return card("Time of an update, predicted", stackedBar(entries, total, secondsText, partColor, "Time of an update"), legend(entries, total, secondsText, partColor));
}

function expensiveCard(device) {
  return card("Most expensive", element("ol", { class: "expensive" }, device.expensive.map((each) => element("li", {},
    element("strong", {}, each.what), " ", [each.seconds !== null && secondsText(each.seconds), each.bytes !== null && bytesText(each.bytes)].filter(Boolean).join(", "),
    each.why ? element("div", {}, each.why) : null, each.source ? element("div", {}, sourceLine(each.source)) : null))));
}

function changesCard(device) {
  const peak = device.peak_bytes && device.peak_bytes.value, seconds = device.time && device.time.update_seconds.value, rate = device.time && device.time.throughput.value;
  const compared = (text, before, after, isBetter) => {
    const change = changeText(before, after);
    const style = !change || change === "same" ? "note" : isBetter(after - before) ? "good-text" : "bad-text";
    return element("span", {}, text, change ? element("span", { class: style }, `  ${change}`) : null);
  };
  const columns = [{ label: "Change" }, { label: "Fits" }, { label: "Peak", number: true }, { label: "Update", number: true }, { label: "Throughput", number: true }];
  // Those that fit first, by what they gain, as on the screen.
  const order = (first, second) => Number(first.fits === false) - Number(second.fits === false) || (second.throughput || 0) - (first.throughput || 0);
  const rows = [...device.changes].sort(order).map((each) => [element("div", {}, element("strong", {}, each.option), element("div", { class: "how" }, each.how)), fitBadge(each.fits),
    compared(bytesText(each.peak_bytes), peak, each.peak_bytes, (change) => change < 0), compared(secondsText(each.update_seconds), seconds, each.update_seconds, (change) => change < 0),
    compared(rateText(each.throughput), rate, each.throughput, (change) => change > 0)]);
  const result = card("What to change", table("What to change, with predictions", columns, rows, true), note("Each line was predicted by itself; effects do not simply add up."));
  result.classList.add("long");
  return result;
}
