// The modules of the model as a tree, with what each costs.
function layersView(pane) {
  const { device } = pane, root = moduleTree(device);
  const measured = hasMeasured(device), timed = measured || hasPredicted(device), hasMemory = device.memory && device.memory.by_layer.length > 0;
  const columns = [{ label: "Module" }, { label: "Operations", number: true }, { label: "Work", number: true },
    ...(timed ? [{ label: measured ? "Time, measured" : "Time, predicted", number: true }, { label: "Share", number: true }, { label: "" }] : []), ...(hasMemory ? [{ label: "Memory", number: true }, { label: "" }] : [])];
  const body = element("tbody", {});
  const search = element("input", { type: "search", placeholder: "Search modules", "aria-label": "Search modules" });
  const head = element("thead", {}, element("tr", {}, columns.map((column) => element("th", { scope: "col", class: column.number ? "number" : null }, column.label))));
  const most = Math.max(1, ...[...root.children.values()].map((each) => each.bytes));
  const draw = () => {
    const words = search.value.toLowerCase().trim(), rows = [];
    const visit = (node, depth) => {
      for (const child of [...node.children.values()]) {
        const matches = !words || child.path.toLowerCase().includes(words) || [...descendants(child)].some((each) => each.path.toLowerCase().includes(words));
        if (!matches) continue;
        rows.push(layerRow(child, depth, { root, timed, hasMemory, most, draw, isOpen: child.open || Boolean(words) }));
        if (child.open || words) visit(child, depth + 1);
      }
    };
    visit(root, 0);
    body.replaceChildren(...rows);
  };
  search.addEventListener("input", draw);
  const spread = (open) => { for (const each of descendants(root)) each.open = open && each.children.size > 0; draw(); };
  draw();
  const tools = element("div", { class: "tools" }, search, element("button", { type: "button", on: { click: () => spread(true) } }, "Open all"), element("button", { type: "button", on: { click: () => spread(false) } }, "Close all"));
  const result = card("Modules", tools, element("div", { class: "scroll tree", tabindex: "0", role: "group", "aria-label": "Modules" }, element("table", {}, element("caption", { class: "unseen" }, "Modules and their costs"), head, body)),
    hasMemory ? note("Memory: what belongs to the module at the peak. Time: forward and backward together.") : null);
  result.classList.add("long");
  return [result];
}

function moduleTree(device) {
  const fresh = (name, path) => ({ name, path, children: new Map(), count: 0, flops: 0, time: 0, bytes: 0, open: false });
  const root = fresh("", "");
  const add = (module, change) => {
    let node = root, path = "";
    change(root);
    for (const part of module ? module.split(".") : ["(outside of modules)"]) {
      path = path ? `${path}.${part}` : part;
      if (!node.children.has(part)) node.children.set(part, fresh(part, path));
      node = node.children.get(part);
      change(node);
    }
  };
  for (const row of device.rows) add(row.module, (node) => { node.count += 1; node.flops += row.flops * row.times; node.time += timeOf(row) || 0; });
  for (const layer of device.memory ? device.memory.by_layer : []) add(layer.module, (node) => { node.bytes += layer.bytes; });
  let level = [...root.children.values()];
  // Open until some twenty rows are visible.
  for (let shown = level.length; level.length && shown < 20; shown += level.length) {
    level = level.flatMap((node) => { node.open = node.children.size > 0; return [...node.children.values()]; });
  }
  return root;
}

function* descendants(node) {
  for (const child of node.children.values()) {
    yield child;
    yield* descendants(child);
  }
}

function layerRow(node, depth, { root, timed, hasMemory, most, draw, isOpen }) {
  const toggle = () => { node.open = !isOpen; draw(); };
  const twist = node.children.size ? element("button", { type: "button", class: "twist", "aria-expanded": isOpen ? "true" : "false", "aria-label": `${isOpen ? "Close" : "Open"} ${node.path}`, on: { click: toggle } }, isOpen ? "▼" : "▶") : element("span", { class: "leaf" });
  return element("tr", {}, element("td", { style: { paddingLeft: `${depth * 1.1}rem` }, title: node.path }, twist, element("span", { class: "mono" }, node.name)),
    cell(wholeText(node.count), true), cell(node.flops ? flopsText(node.flops) : UNKNOWN, true),
    ...(timed ? [cell(secondsText(node.time), true), cell(percentText(root.time ? node.time / root.time : null), true), cell(meter(root.time ? node.time / root.time : 0, "var(--c3)"))] : []),
    ...(hasMemory ? [cell(node.bytes ? bytesText(node.bytes) : UNKNOWN, true), cell(meter(node.bytes / most))] : []));
}
