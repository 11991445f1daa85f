// Tabs, devices, theme and printing.
const redrawn = [];
const reports = loadReports();
const panes = reports.map((report, place) => makePane(report, place));
const isComparing = panes.length > 1;

const VIEWS = [
  { name: "compare", label: "Compare", has: () => isComparing, whole: compareView },
  { name: "summary", label: "Summary", has: () => true, view: summaryView },
  { name: "memory", label: "Memory", has: (device) => device.memory && (device.memory.timeline || device.memory.peak || device.memory.by_stage.length || device.rows.some((row) => row.memory !== null)), view: memoryView },
  { name: "operations", label: "Operations", has: (device) => device.rows.length, view: operationsView },
  { name: "layers", label: "Layers", has: (device) => device.rows.some((row) => row.module) || (device.memory && device.memory.by_layer.length), view: layersView },
  { name: "tiles", label: "Tiles", has: (device) => device.memory && device.memory.tiles, view: tilesView },
  { name: "pipeline", label: "Pipeline", has: (device) => device.pipeline, view: pipelineView },
  { name: "host", label: "Host", has: (device) => device.host && device.host.entries.length, view: hostView },
  { name: "details", label: "Details", has: () => true, view: detailsView },
];

let tabs = [];
let shown = null;

function makePane(report, place) {
  const pane = { report, place, device: report.devices[0], showOperation: null };
  pane.choose = (number) => {
    pane.device = report.devices[number];
    const select = document.getElementById(`device-${place}`);
    if (select) select.value = String(number);
    build(shown);
    announce(`${pane.device.title} is shown`);
  };
  pane.open = (name, operation) => {
    show(name);
    if (pane.showOperation) pane.showOperation(operation);
  };
  return pane;
}

function build(wanted) {
  const main = document.getElementById("main"), list = document.getElementById("tabs");
  redrawn.length = sized.length = 0;
  tabs = VIEWS.filter((view) => panes.some((pane) => view.has(pane.device))).map((view) => {
    const panel = element("div", { role: "tabpanel", id: `panel-${view.name}`, "aria-labelledby": `tab-${view.name}`, tabindex: "0", hidden: true, "data-title": view.label });
    const tab = element("button", { type: "button", role: "tab", id: `tab-${view.name}`, "aria-controls": `panel-${view.name}`, "aria-selected": "false", tabindex: "-1", on: { click: () => show(view.name) } }, view.label);
    return { ...view, tab, panel, isBuilt: false };
  });
  list.replaceChildren(...tabs.map((each) => each.tab));
  main.replaceChildren(...tabs.map((each) => each.panel));
  const known = tabs.find((each) => each.name === wanted) || tabs[0];
  show(known.name);
}

function fill(tab) {
  if (tab.isBuilt) return;
  tab.isBuilt = true;
  if (tab.whole) {
    tab.panel.append(element("div", { class: "pane" }, element("div", { class: "grid" }, panes.map((pane) => paneTitle(pane))), tab.whole(panes)));
    return;
  }
  const places = panes.map((pane) => {
    const content = tab.has(pane.device) ? tab.view(pane) : [card(null, note(`This report has nothing to show here: ${tab.label.toLowerCase()}.`))];
    return element("div", { class: "pane" }, isComparing ? paneTitle(pane) : null, content);
  });
  tab.panel.append(element("div", { class: isComparing ? "panes two" : "panes" }, places));
}

function paneTitle(pane) {
  return element("p", { class: "pane-title" }, element("span", { class: "letter" }, "AB"[pane.place]), element("span", {}, `${pane.report.title}, ${pane.device.title} (${pane.report.kind})`));
}

function show(name) {
  const chosen = tabs.find((each) => each.name === name) || tabs[0];
  tooltip.hide();
  for (const each of tabs) {
    const isChosen = each === chosen;
    each.tab.setAttribute("aria-selected", isChosen ? "true" : "false");
    each.tab.tabIndex = isChosen ? 0 : -1;
    each.panel.hidden = !isChosen;
  }
  if (shown !== null && shown !== chosen.name) history.replaceState(null, "", `#${chosen.name}`);
  shown = chosen.name;
  fill(chosen);
  chosen.tab.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function moveByKeys(event) {
  const moves = { ArrowRight: 1, ArrowLeft: -1, Home: -tabs.length, End: tabs.length };
  if (!(event.key in moves)) return;
  event.preventDefault();
  const place = tabs.findIndex((each) => each.name === shown), last = tabs.length - 1;
  const next = event.key === "Home" ? 0 : event.key === "End" ? last : (place + moves[event.key] + tabs.length) % tabs.length;
  show(tabs[next].name);
  tabs[next].tab.focus();
}

function describeHeader() {
  const [report] = panes.map((pane) => pane.report), program = report.program;
  const facts = [program.name, program.mode, program.parameters ? `${countText(program.parameters)} parameters` : null, program.precision, program.micro_batch ? `micro-batch ${program.micro_batch}` : null,
    program.accumulation > 1 ? `accumulation ${program.accumulation}` : null, program.device_iterations > 1 ? `${program.device_iterations} device iterations` : null, program.replicas > 1 ? `${program.replicas} replicas` : null, program.stages > 1 ? `${program.stages} stages` : null];
  const text = isComparing ? panes.map((pane, place) => `${"AB"[place]}: ${pane.report.title}`).join("   ·   ") : facts.filter(Boolean).join(" · ");
  document.getElementById("subtitle").append(element("span", { class: "badge" }, isComparing ? "comparison" : report.kind), text);
  document.getElementById("origin").textContent = panes.map((pane) => `Made ${pane.report.created.replace("T", " ").slice(0, 16)} by ${pane.report.command.join(" ") || "pilotage"}`).join(" · ");
  const place = document.getElementById("devices");
  for (const pane of panes) {
    if (pane.report.devices.length < 2) continue;
    const select = element("select", { id: `device-${pane.place}`, on: { change: (event) => pane.choose(Number(event.target.value)) } }, pane.report.devices.map((device, number) => element("option", { value: number }, device.title)));
    place.append(element("label", {}, isComparing ? `Device of ${"AB"[pane.place]}` : "Device", select));
  }
}

function changeTheme(button) {
  const order = ["system", "light", "dark"], root = document.documentElement;
  const next = order[(order.indexOf(root.dataset.theme || "system") + 1) % order.length];
  if (next === "system") delete root.dataset.theme; else root.dataset.theme = next;
  button.textContent = `Theme: ${next}`;
  repaint();
}

function repaint() {
  for (const draw of redrawn) draw();
}

let themeOfScreen = null;

function preparePrint() {
  const root = document.documentElement;
  isPrinting = true;
  themeOfScreen = root.dataset.theme || null;
  root.dataset.theme = "light";
  // Charts are drawn for the width of their place, so every panel takes that of a sheet of paper now.
  root.classList.add("printing");
  for (const tab of tabs) fill(tab);
  for (const look of sized) look();
  repaint();
}

function endPrint() {
  const root = document.documentElement;
  isPrinting = false;
  root.classList.remove("printing");
  if (themeOfScreen) root.dataset.theme = themeOfScreen; else delete root.dataset.theme;
  build(shown);
}

function start() {
  if (!reports.every((report) => report.devices.length)) {
    document.getElementById("main").append(element("p", { class: "notice" }, "One of these reports names no device, so nothing can be shown."));
    return;
  }
  describeHeader();
  build(location.hash.slice(1) || null);
  document.getElementById("tabs").addEventListener("keydown", moveByKeys);
  document.getElementById("theme").addEventListener("click", (event) => changeTheme(event.currentTarget));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  addEventListener("hashchange", () => show(location.hash.slice(1)));
  addEventListener("beforeprint", preparePrint);
  addEventListener("afterprint", endPrint);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.matches("input, select, textarea")) return;
    const panel = tabs.find((each) => each.name === shown).panel;
    const search = panel.querySelector('input[type="search"]');
    if (search) {
      event.preventDefault();
      search.focus();
    }
  });
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

start();
