// What the host did in a real run, with the predicted updates beside the real ones.
const UPDATES = "updates", PREDICTED = "updates, predicted";

function hostView({ device }) {
  const entries = hostEntries(device), tracks = [...new Set(entries.map((entry) => entry.track))];
  const total = Math.max(1e-12, ...entries.map((entry) => entry.end));
  const names = new Map();
  for (const entry of entries) {
    const name = entry.name.replace(/\d+/g, "#"), key = `${entry.track}\n${name}`;
    const sum = names.get(key) || { track: entry.track, name, count: 0, seconds: 0 };
    sum.count += 1;
    sum.seconds += entry.end - entry.start;
    names.set(key, sum);
  }
  const rows = [...names.values()].sort((first, second) => second.seconds - first.seconds).slice(0, 60);
  return [card("Timeline of the run", timeline(entries, tracks, total), note("Drag or use the arrow keys to move, + and − to zoom, 0 to see everything.")),
    card("Where the time went", table("Time by activity", [{ label: "Track" }, { label: "Activity" }, { label: "Times", number: true }, { label: "Total", number: true }, { label: "Each", number: true }, { label: "Of the run", number: true }],
      rows.map((each) => [each.track, each.name, wholeText(each.count), secondsText(each.seconds), secondsText(each.seconds / each.count), percentText(each.seconds / total)])))];
}

// The entries, and for each update that was measured the predicted one.
function hostEntries(device) {
  const entries = [...device.host.entries];
  const place = entries.findIndex((entry) => entry.track === UPDATES);
  if (device.time && place >= 0) {
    const predicted = device.time.update_seconds.value;
    const added = entries.filter((entry) => entry.track === UPDATES).map((entry) => ({ track: PREDICTED, name: `${entry.name}, predicted`, start: entry.start, end: entry.start + predicted }));
    entries.splice(place, 0, ...added);
  }
  return entries;
}

function timeline(entries, tracks, total) {
  const place = element("div", {}), high = 24, gap = 22, left = 8, top = 20;
  const view = { from: 0, to: total };
  let width = 0;
  const lanes = new Map(tracks.map((track, number) => [track, number]));
  const height = tracks.length * (high + gap) + top + 8;
  const label = `Timeline of ${entries.length} activities in ${tracks.length} tracks over ${secondsText(total)}. The table below has the same in numbers.`;
  const canvas = element("canvas", { tabindex: "0", role: "img", "aria-label": label, style: { height: `${height}px`, cursor: "grab", touchAction: "pan-y" } });
  const x = (seconds) => left + ((seconds - view.from) / (view.to - view.from)) * (width - 2 * left);
  const y = (entry) => top + lanes.get(entry.track) * (high + gap) + 18;
  const draw = () => {
    const scale = devicePixelRatio || 1, style = getComputedStyle(document.documentElement), of = (name) => style.getPropertyValue(name).trim();
    canvas.width = width * scale;
    canvas.height = height * scale;
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.font = "11.5px system-ui, sans-serif";
    pen.fillStyle = of("--soft");
    const step = niceStep(view.to - view.from, Math.max(2, Math.floor(width / 130)));
    for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
      pen.globalAlpha = 0.2;
      pen.fillRect(x(at), top - 4, 1, height - top);
      pen.globalAlpha = 1;
      pen.fillText(secondsText(at), Math.min(x(at), width - 48), 11);
    }
    tracks.forEach((track, number) => { pen.fillStyle = of("--soft"); pen.fillText(track, left, top + number * (high + gap) + 13); });
    const lastPixel = new Map();
    for (const entry of entries) {
      if (entry.end < view.from || entry.start > view.to) continue;
      const from = Math.max(0, x(entry.start)), to = Math.min(width, x(entry.end));
      // Activities of less than a pixel are drawn once for each pixel.
      if (to - from < 0.7 && lastPixel.get(entry.track) === Math.floor(from)) continue;
      lastPixel.set(entry.track, Math.floor(from));
      pen.fillStyle = of(`--c${colorNumber(entry)}`);
      pen.globalAlpha = entry.track === PREDICTED ? 0.45 : 0.92;
      pen.fillRect(from, y(entry), Math.max(1, to - from - 0.5), high);
      pen.globalAlpha = 1;
      if (to - from > 44) {
        pen.save();
        pen.beginPath();
        pen.rect(from, y(entry), to - from - 4, high);
        pen.clip();
        pen.fillStyle = of("--card");
        pen.fillText(entry.name, from + 5, y(entry) + 16);
        pen.restore();
      }
    }
  };
  const zoom = (factor, center) => {
    const span = Math.min(total, Math.max(total / 1e6, (view.to - view.from) * factor)), share = (center - view.from) / (view.to - view.from);
    view.from = Math.max(0, Math.min(total - span, center - share * span));
    view.to = view.from + span;
    draw();
  };
  const move = (share) => {
    const span = view.to - view.from;
    view.from = Math.max(0, Math.min(total - span, view.from + share * span));
    view.to = view.from + span;
    draw();
  };
  const middle = () => (view.from + view.to) / 2, all = () => { view.from = 0; view.to = total; draw(); };
  const actions = { "+": () => zoom(0.5, middle()), "=": () => zoom(0.5, middle()), "-": () => zoom(2, middle()), 0: all, ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2) };
  canvas.addEventListener("keydown", (event) => { if (event.key in actions) { actions[event.key](); event.preventDefault(); } });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const share = (event.clientX - canvas.getBoundingClientRect().left - left) / (width - 2 * left);
    zoom(event.deltaY > 0 ? 1.25 : 0.8, view.from + share * (view.to - view.from));
  }, { passive: false });
  let held = null;
  canvas.addEventListener("pointerdown", (event) => { held = event.clientX; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointerup", () => { held = null; });
  canvas.addEventListener("pointermove", (event) => {
    if (held !== null) {
      move((held - event.clientX) / (width - 2 * left));
      held = event.clientX;
      return;
    }
    const box = canvas.getBoundingClientRect(), seconds = view.from + ((event.clientX - box.left - left) / (width - 2 * left)) * (view.to - view.from), at = event.clientY - box.top;
    const slack = (view.to - view.from) / width;
    const found = entries.filter((entry) => at >= y(entry) && at <= y(entry) + high && seconds >= entry.start - slack && seconds <= entry.end + slack).pop();
    if (found) tooltip.show(`${found.name}\n${found.track}\n${secondsText(found.end - found.start)}, from ${secondsText(found.start)}`, event.clientX, event.clientY);
    else tooltip.hide();
  });
  canvas.addEventListener("pointerleave", () => tooltip.hide());
  const button = (text, name, action) => element("button", { type: "button", "aria-label": name, on: { click: action } }, text);
  place.append(element("div", { class: "zoom" }, button("+", "Zoom in", actions["+"]), button("−", "Zoom out", actions["-"]), button("All", "Show everything", all), button("←", "Earlier", actions.ArrowLeft), button("→", "Later", actions.ArrowRight)), canvas);
  whenSized(place, (available) => { width = available; draw(); });
  redrawn.push(() => { if (width) draw(); });
  return place;
}

function colorNumber(entry) {
  if (entry.track === UPDATES || entry.track === PREDICTED) return 3;
  let sum = 0;
  for (const letter of entry.name.replace(/\d+/g, "")) sum = (sum * 31 + letter.charCodeAt(0)) % 997;
  return sum % 10;
}
